"""Stored scores: what a store holds of a scoring, and scores again from it."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any

import msgspec
import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from ragauge import __version__, registry
from ragauge.codes import ExitCode
from ragauge.errors import RagaugeError
from ragauge.metrics.columns import Floats
from ragauge.model.labels import LABELS
from ragauge.model.metric_names import current_id
from ragauge.model.payloads import UNREADABLE
from ragauge.model.run import Scoring, ValueColumn
from ragauge.model.scores import (
    PerQuestion,
    QuestionEnds,
    QuestionList,
    QuestionResult,
    Scores,
)
from ragauge.model.scores_document import from_document, to_document
from ragauge.model.unit_ranks import UnitRanks
from ragauge.model.verdict import Verdict
from ragauge.store.packed_slices import join_slices, pack_slices

_LEVEL = 1  # the fastest of zlib, as payloads are compressed everywhere
_REMEMBERED = 4096
_UNIT_COLUMNS = ("counts", "slots", "unit", "rank", "slot", "wording", "good")
_NO_VERDICT = Verdict(status="pass", exit_code=ExitCode.PASS, gates=(), blocks=())


class _Units(Struct, kw_only=True):
    """The ranks of what questions expect, as the columns of `UnitRanks`."""

    counts: list[int]
    slots: list[int]
    unit: list[int]
    rank: list[int]
    names: list[tuple[str, ...]] = []
    slot: list[int] = []
    wording: list[int] = []
    good: list[int] = []

    def check(self, questions: int) -> None:
        """Raise ValueError where the columns do not belong together."""
        lengths = {len(self.counts), len(self.slots), questions}
        if len(lengths) > 1 or len(self.names) not in (0, questions):
            raise ValueError("the columns of its units differ in length")
        units = sum(self.counts)
        known = all(0 <= unit < units for unit in self.unit)
        if not known or len(self.rank) != len(self.unit) or self.unit != sorted(self.unit):
            raise ValueError("it has ranks of no unit")
        if min(self.rank, default=1) < 1 or min(self.slots, default=0) < 0:
            raise ValueError("it has a rank below 1, or fewer slots than none")
        slots = {len(self.wording), len(self.good), sum(self.slots)}
        most = max(self.slots, default=0)
        if len(slots) > 1 or any(not 0 <= slot < most for slot in self.slot):
            raise ValueError("the columns of its slots differ in length")
        if len(self.slot) != len(self.unit):
            raise ValueError("it does not say which slot found what")


class _Ends(Struct, kw_only=True):
    """What depends on where in chunks the evidence stands: of `QuestionEnds` what is not a value.

    `low` and `high` have the ends of each metric for each of the questions; null for no value.
    """

    questions: list[int]
    low: dict[str, list[float | None]]
    high: dict[str, list[float | None]]
    best: _Units | None = None
    worst: _Units | None = None

    def check(self, questions: int) -> None:
        """Raise ValueError where the columns do not belong together."""
        if any(not 0 <= place < questions for place in self.questions):
            raise ValueError("it has ends of no question")
        columns = [*self.low.values(), *self.high.values()]
        if any(len(column) != len(self.questions) for column in columns):
            raise ValueError("the columns of its ends differ in length")
        for units in (self.best, self.worst):
            if units is not None and len({len(units.counts), len(units.slots), questions}) > 1:
                raise ValueError("the columns of its units differ in length")


class _Questions(Struct, kw_only=True):
    """The questions of a run as columns; `counts` only of those with other than one label.

    `causes` only of those that have one, as counts in which the first of the most is meant; runs
    of an older store have none, and no `units`.
    """

    qids: list[str]
    turns: list[int | None]
    hashes: list[str]
    labels: list[int]
    gold: list[str]
    trace: list[str | None]
    counts: dict[int, dict[str, int]]
    causes: dict[int, dict[str, int]] = {}
    units: _Units | None = None
    slices: dict[str, dict[str, list[int]]] = {}
    ends: _Ends | msgspec.UnsetType = msgspec.UNSET

    def check(self) -> None:
        """Raise ValueError where the columns are not of one length, or of no known labels."""
        count = len(self.qids)
        columns = (self.turns, self.labels, self.gold, self.trace)
        if any(len(column) != count for column in columns) or len(self.hashes) not in (0, count):
            raise ValueError("its columns differ in length")
        if any(not 0 <= code < len(LABELS) for code in self.labels):
            raise ValueError("it has a label that this version does not know")
        if any(not 0 <= place < count for place in (*self.counts, *self.causes)):
            raise ValueError("it counts labels of no question")
        if not all(self.causes.values()):
            raise ValueError("it has causes without a name")
        if self.units is not None:
            self.units.check(count)
        parts = [places for names in self.slices.values() for places in names.values()]
        if any(not 0 <= place < count for places in parts for place in places):
            raise ValueError("it has slices of no question")
        if self.ends is not msgspec.UNSET:
            self.ends.check(count)


def _listed_ends(values: PerQuestion) -> _Ends | msgspec.UnsetType:
    """The ends of values as they are stored; nothing where all values are sure."""
    ends = values.ends
    if ends is None:
        return msgspec.UNSET
    low, high = (
        {
            name: [None if value != value else value for value in row.tolist()]  # noqa: PLR0124
            for name, row in zip(values.metrics, table[:, ends.questions], strict=True)
        }
        for table in (ends.low, ends.high)
    )
    return _Ends(
        questions=ends.questions.tolist(),
        low=low,
        high=high,
        best=None if ends.best is None else _listed(ends.best),
        worst=None if ends.worst is None else _listed(ends.worst),
    )


def _with_ends(values: PerQuestion, stored: _Ends | msgspec.UnsetType) -> PerQuestion:
    """Values of questions with the ends that are stored of them."""
    if stored is msgspec.UNSET:
        return values
    questions = np.array(stored.questions, np.int64)
    tables = []
    for ends in (stored.low, stored.high):
        table = values.values.copy()
        for row, name in enumerate(values.metrics):
            if name in ends:
                table[row, questions] = np.array(ends[name], np.float64)  # nan for None
        tables.append(table)
    units = [None if one is None else _as_columns(one) for one in (stored.best, stored.worst)]
    return replace(
        values,
        ends=QuestionEnds(
            low=tables[0], high=tables[1], questions=questions, best=units[0], worst=units[1]
        ),
    )


def serialise_scores(
    scores: Scores, *, number: int, created_at: str
) -> tuple[Scoring, list[ValueColumn]]:
    """What is stored of scores: the aggregate, the questions, and a column for each metric."""
    document = aggregate_document(scores)
    slices = pack_slices(document.pop("slices"))
    listed = list(scores.questions)
    values = scores.per_question
    questions = _Questions(
        qids=[result.qid for result in listed],
        turns=[result.turn for result in listed],
        hashes=list(values.hashes) if values is not None else [],
        labels=[LABELS.index(result.label) for result in listed],
        gold=[result.gold for result in listed],
        trace=[result.trace for result in listed],
        counts={
            place: result.labels
            for place, result in enumerate(listed)
            if result.labels != {result.label: 1}
        },
        causes={place: result.causes for place, result in enumerate(listed) if result.causes},
        units=None if values is None or values.units is None else _listed(values.units),
        slices={
            dimension: {name: places.tolist() for name, places in names.items()}
            for dimension, names in (values.slices if values is not None else {}).items()
        },
        ends=msgspec.UNSET if values is None else _listed_ends(values),
    )
    scoring = Scoring(
        number=number,
        created_at=created_at,
        ragauge_version=__version__,
        aggregate=msgspec.json.encode(document).decode(),
        questions=zlib.compress(msgspec.json.encode(questions), _LEVEL),
        slices=slices,
    )
    columns = []
    if values is not None:
        columns = [
            ValueColumn(name, _version(scores, name), serialise_values(column))
            for name, column in zip(values.metrics, values.values, strict=True)
        ]
    return scoring, columns


def _listed(units: UnitRanks) -> _Units:
    columns = {name: getattr(units, name).tolist() for name in _UNIT_COLUMNS}
    return _Units(**columns, names=list(units.names))


def _as_columns(units: _Units) -> UnitRanks:
    columns = {name: np.array(getattr(units, name), np.int64) for name in _UNIT_COLUMNS}
    return UnitRanks(**columns, names=units.names)


def value_texts(scores: Scores) -> Callable[[int], str]:
    """What was measured of a question, as a JSON list in the order of the columns.

    It is made when it is asked for: the lists of all questions would take more than the run.
    """
    values = scores.per_question
    encode = msgspec.json.Encoder().encode
    rows = np.empty((0, 0)) if values is None else np.ascontiguousarray(values.values.T)

    @lru_cache(_REMEMBERED)  # the results of a question often stand together
    def text(question: int) -> str:
        return encode(rows[question].tolist()).decode()  # what is not a number becomes null

    return text


def _version(scores: Scores, name: str) -> int:
    if name in scores.metrics:
        return scores.metrics[name].version
    return registry.metrics()[name.partition("@")[0]].version


def aggregate_document(scores: Scores) -> dict[str, Any]:
    """The scores document without questions and verdict: gates may be others on another day."""
    document = to_document(scores, _NO_VERDICT, full=False)
    del document["verdict"]
    return document


def deserialise_scores(scoring: Scoring, columns: Sequence[ValueColumn], name: str) -> Scores:
    """Scores as they were stored: all but the rows of profiles that score every row."""
    # An older run has λ → twice, under its old id and as `stability.convergent`.
    by_metric = {current_id(column.metric): column for column in columns}
    try:
        data = zlib.decompress(scoring.questions)
        questions = msgspec.json.decode(data, type=_Questions)
        questions.check()
        values = np.array(
            [deserialise_values(column.payload) for column in by_metric.values()], np.float64
        )
        aggregate = join_slices(scoring.aggregate, scoring.slices)
    except (*UNREADABLE, ValueError) as error:
        message = f"the scores of {name} cannot be read: {error}"
        hint = f"compute them again: ragauge rescore {name}"
        raise RagaugeError.of("bad-store", message, hint=hint) from error
    scores = from_document(aggregate.encode(), name)

    causes: list[str | None] = [None] * len(questions.labels)
    for place, counted in questions.causes.items():
        causes[place] = max(counted, key=counted.__getitem__)  # the first of the most

    def make(place: int) -> QuestionResult:
        label = LABELS[questions.labels[place]]
        return QuestionResult(
            qid=questions.qids[place],
            label=label,
            gold=questions.gold[place],
            trace=questions.trace[place],
            labels=questions.counts.get(place, {label: 1}),
            turn=questions.turns[place],
            cause=causes[place],
            causes=questions.causes.get(place, {}),
        )

    per_question = PerQuestion(
        metrics=tuple(by_metric),
        qids=questions.qids,
        turns=questions.turns,
        values=values.reshape(len(by_metric), len(questions.qids)),
        hashes=questions.hashes,
        units=None if questions.units is None else _as_columns(questions.units),
        slices={
            dimension: {name: np.array(places, np.int64) for name, places in names.items()}
            for dimension, names in questions.slices.items()
        },
    )
    labels = [LABELS[code] for code in questions.labels]
    return replace(
        scores,
        questions=QuestionList(labels, make, questions.counts.get, causes=causes),
        per_question=_with_ends(per_question, questions.ends),
    )


def serialise_values(values: Floats) -> bytes:
    """A column of values as it is stored."""
    return zlib.compress(np.ascontiguousarray(values, "<f8").tobytes(), _LEVEL)


def deserialise_values(payload: bytes) -> Floats:
    """The column of values that a payload holds."""
    return np.frombuffer(zlib.decompress(payload), "<f8").astype(np.float64)
