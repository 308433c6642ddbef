"""Judgements and runs of TREC as gold and traces: item by item, or straight into columns.

Straight into columns is how a run over judgements is scored: millions of lines never become
objects. Item by item is for everything else: judgements with JSON traces, or the other way round.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from ragauge.errors import MAX_REPORTED, Problem
from ragauge.goldtable import GoldTable
from ragauge.join import Records
from ragauge.loading import Loaded
from ragauge.model.columns import GoldColumns
from ragauge.model.facts import Fact
from ragauge.model.gold import GoldItem
from ragauge.model.options import Options
from ragauge.model.trace import Hit, Trace
from ragauge.reduce import GoldKeys
from ragauge.source import Source
from ragauge.trec import Qrels, QrelsRow, RunRow, qrels_rows, run_rows
from ragauge.treclines import BadLine
from ragauge.trecmatch import Matched


def gold_items(source: Source, queries: Mapping[str, str]) -> Loaded:
    """Judgements as gold items with grades; `queries` gives the questions where they are known."""
    grades: dict[str, dict[str, float]] = {}
    lines: dict[str, int] = {}
    problems: list[Problem] = []
    count = 0
    for row in qrels_rows(source):
        if isinstance(row, QrelsRow):
            grades.setdefault(row.qid, {})[row.docid] = float(row.grade)
            lines.setdefault(row.qid, row.line)
        else:
            count += 1
            problems += [row.at(source.name)] if len(problems) < MAX_REPORTED else []
    items = [
        GoldItem(qid=qid, question=queries.get(qid), grades=found, line=lines[qid])
        for qid, found in grades.items()
    ]
    return Loaded(items, problems, count)


def traces(source: Source) -> Loaded:
    """A run as traces: by score in single precision, ties by document id, both descending."""
    rows: dict[str, list[RunRow]] = {}
    problems: list[Problem] = []
    count = 0
    for row in run_rows(source):
        if isinstance(row, BadLine):
            count += 1
            problems += [row.at(source.name)] if len(problems) < MAX_REPORTED else []
        else:
            rows.setdefault(row.qid, []).append(row)
    return Loaded([_trace(qid, found) for qid, found in rows.items()], problems, count)


def _trace(qid: str, rows: list[RunRow]) -> Trace:
    def place(row: RunRow) -> tuple[float, bytes]:
        return float(np.float32(row.score)), row.docid.encode()

    ordered = sorted(rows, key=place, reverse=True)
    return Trace(
        qid=qid,
        hits=tuple(Hit(row.docid, score=row.score) for row in ordered),
        disordered=[row.docid for row in ordered] != [row.docid for row in rows],
        line=rows[0].line,
    )


def table_of(qrels: Qrels, options: Options) -> GoldTable:
    """Judgements as the gold table of a run."""
    size = len(qrels.qids)
    query = np.repeat(np.arange(size), np.diff(qrels.offsets))
    grade = qrels.grade
    relevant = grade >= options.relevance_level
    piece = _pieces(qrels, options)
    none, nobody = np.zeros(size, np.int32), np.zeros(size, np.bool_)
    columns = GoldColumns(
        answerable=nobody, unanswerable=nobody, creditable=nobody, refusable=nobody,
        relevant_count=np.bincount(query[relevant], minlength=size).astype(np.int32),
        piece_count=np.bincount(query[piece], minlength=size).astype(np.int32),
        id_count=np.bincount(query[piece], minlength=size).astype(np.int32),
        piece_relevant=relevant[piece],
        piece_gain=np.maximum(0, grade[piece]).astype(np.float64),
        has_claims=nobody, has_constraints=nobody, vacuous=nobody, group_count=none,
        member_count=none, member_group=none[:0], member_piece=none[:0], doc_count=none,
        has_section=nobody, has_negatives=nobody, has_strings=nobody,
        span_bytes=np.zeros(size, np.int64),
    )  # fmt: skip
    order = sorted(range(size), key=qrels.qids.__getitem__)
    return GoldTable(
        read=size, qids=qrels.qids, turns=[None] * size, lines=qrels.first_line.tolist(),
        identity=np.array(order, np.int64), columns=columns,
        keys=GoldKeys(evidence=[], needle=[], more={}, constraints=[]),
        by_qid={}, by_turn={}, by_question={}, paraphrases={}, cluster=None, slices={},
    )  # fmt: skip


def _pieces(qrels: Qrels, options: Options) -> np.typing.NDArray[np.bool_]:
    """Which judgements are pieces of evidence: relevant, or with a gain."""
    found: np.typing.NDArray[np.bool_] = (qrels.grade > 0) | (
        qrels.grade >= options.relevance_level
    )
    return found


def records_of_run(qrels: Qrels, matched: Matched, options: Options) -> Records:
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
