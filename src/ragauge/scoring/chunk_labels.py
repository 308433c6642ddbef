"""Labels and causes of records whose evidence stands somewhere in a chunk.

Whether such evidence was cited, and at which rank it was found, may depend on where it stands. What
is the same wherever that is, is said like of any other record. Else the label is the worst of the
possible ones, and the cause is `place-unknown`: nothing is called right that may be wrong, and
nothing is blamed that may be right.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from typing import NamedTuple

import numpy as np

from ragauge.metrics.batch import Batch
from ragauge.metrics.columns import Ints
from ragauge.metrics.facts import Fact
from ragauge.metrics.metric import Metric
from ragauge.model.labels import GOOD, LABELS
from ragauge.scoring.chunk_ends import OpenRecords
from ragauge.scoring.chunk_records import ChunkRecords, rank_ends, rebuilt
from ragauge.scoring.labels import PLACE_UNKNOWN_CAUSE, LabelColumns, labels_of

_OK = LABELS.index("OK")
_GOOD = np.array([label in GOOD for label in LABELS], np.bool_)


class ChunkLabels(NamedTuple):
    """The labels of records, and the questions of which it is open whether an answer is right.

    Whether a record hits is said only where it is sure.
    """

    columns: LabelColumns
    open_answers: frozenset[int]


def chunk_labels(run: ChunkRecords, correct: Metric, *, least: int) -> ChunkLabels:
    """The labels of all records of a run that may depend on places, in their order.

    `correct` is the profile's precision metric.
    """
    plain = labels_of(run.batch, correct)
    questions = list(run.by_place)
    records = np.array([at for question in questions for at in run.records[question]], np.int64)
    if not len(records):
        return ChunkLabels(plain, frozenset())
    ends = [labels_of(batch, correct) for batch in _at_ends(run, questions, records, least)]
    labels = np.array([end.labels for end in ends])
    causes = np.array([end.causes for end in ends])
    is_open = (labels != labels[0]).any(axis=0) | (causes != causes[0]).any(axis=0)
    # Of an answer that is right wherever the evidence stands, only its offsets may be open.
    is_open &= ~(labels == _OK).all(axis=0)
    plain.labels[records] = labels.max(axis=0)  # from best to worst
    plain.causes[records] = np.where(is_open, PLACE_UNKNOWN_CAUSE, causes[-1])
    plain.hit[records] = np.all([end.hit for end in ends], axis=0)
    is_right = _GOOD[labels]
    may_be_right = (is_right != is_right[0]).any(axis=0)
    return ChunkLabels(plain, frozenset(run.batch.question[records[may_be_right]].tolist()))


def _at_ends(run: ChunkRecords, questions: list[int], records: Ints, least: int) -> Iterator[Batch]:
    """The records with evidence cited and found as badly as may be, up to as well as may be.

    A label, and a cause, changes in one direction with each of these, so that the ends show
    whether it changes at all.
    """
    cited = OpenRecords(run, records, least).citations()
    all_ranks = [rank_ends(run, question) for question in questions]
    ranks = [
        np.array([rank for ends in all_ranks for row in ends[end] for rank in row], np.int32)
        for end in (1, 0)  # the worst first
    ]
    accurate = int(Fact.ACCURATE)
    for batch, agreeing, of_pieces in product(cited, cited, ranks):
        facts = (batch.facts & ~accurate) | (agreeing.facts & accurate)
        yield rebuilt(batch, facts=facts.astype(batch.facts.dtype), ranks=of_pieces)
