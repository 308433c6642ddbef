"""Judgements and runs of TREC as gold and traces: item by item, or straight into columns.

Straight into columns is how a run over judgements is scored: millions of lines never become
objects. Item by item is for everything else: judgements with JSON traces, or the other way round.
"""

from __future__ import annotations

import numpy as np

from ragauge.formats.trec.qrels import Qrels
from ragauge.formats.trec.ranks import MatchedRun
from ragauge.metrics.columns import GoldColumns
from ragauge.metrics.facts import Fact
from ragauge.model.options import Options
from ragauge.scoring.gold_table import GoldTable
from ragauge.scoring.join import Records
from ragauge.scoring.trace_columns import GoldKeys


def table_of(qrels: Qrels, options: Options) -> GoldTable:
    """Judgements as the gold table of a run."""
    size = len(qrels.qids)
    query = np.repeat(np.arange(size), np.diff(qrels.offsets))
    grade = qrels.grade
    relevant = grade >= options.relevance_level
    piece = _pieces(qrels, options)
    none, nobody = np.zeros(size, np.int32), np.zeros(size, np.bool_)
    columns = GoldColumns(
        answerable=nobody,
        unanswerable=nobody,
        creditable=nobody,
        refusable=nobody,
        relevant_count=np.bincount(query[relevant], minlength=size).astype(np.int32),
        piece_count=np.bincount(query[piece], minlength=size).astype(np.int32),
        id_count=np.bincount(query[piece], minlength=size).astype(np.int32),
        piece_relevant=relevant[piece],
        piece_gain=np.maximum(0, grade[piece]).astype(np.float64),
        has_claims=nobody,
        has_constraints=nobody,
        vacuous=nobody,
        group_count=none,
        member_count=none,
        member_group=none[:0],
        member_piece=none[:0],
        doc_count=none,
        has_section=nobody,
        has_negatives=nobody,
        has_strings=nobody,
        span_bytes=np.zeros(size, np.int64),
    )
    order = sorted(range(size), key=qrels.qids.__getitem__)
    return GoldTable(
        read=size,
        qids=qrels.qids,
        turns=[None] * size,
        lines=qrels.first_line.tolist(),
        identity=np.array(order, np.int64),
        columns=columns,
        keys=GoldKeys(evidence=[], needle=[], more={}, constraints=[]),
        by_qid={},
        by_turn={},
        by_question={},
        ambiguous=frozenset(),
        paraphrases={},
        cluster=None,
        slices={},
    )


def _pieces(qrels: Qrels, options: Options) -> np.typing.NDArray[np.bool_]:
    """Which judgements are pieces of evidence: relevant, or with a gain."""
    is_piece: np.typing.NDArray[np.bool_] = (qrels.grade > 0) | (
        qrels.grade >= options.relevance_level
    )
    return is_piece


def records_of_run(qrels: Qrels, matched: MatchedRun, options: Options) -> Records:
    """The records of a run over judgements: one for each query that the run has."""
    seen = matched.seen
    question = np.flatnonzero(seen)
    of = np.repeat(seen, np.diff(qrels.offsets)) & _pieces(qrels, options)
    none = np.zeros(len(question), np.int32)
    return Records(
        question=question,
        slot=none.astype(np.int64),
        position=matched.first_line[question].astype(np.int64),
        facts=np.full(len(question), int(Fact.IN_CONTEXT), np.int32),
        hits=matched.hits[question],
        cited=none,
        cited_relevant=none,
        ranks=matched.rank[of],
        details={},
    )
