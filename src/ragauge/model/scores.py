"""Scores: what a run measured, ready to be judged, reported and saved."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any, Literal, overload

import numpy as np
from msgspec import Struct
from msgspec.structs import replace
from numpy.typing import NDArray

from ragauge.codes import CODES, ExitCode
from ragauge.metrics.metric import Better, Tally
from ragauge.model.labels import ABSENT
from ragauge.model.options import Options
from ragauge.model.placement import Placing
from ragauge.model.semantic import Semantic
from ragauge.model.unit_ranks import UnitRanks
from ragauge.model.verdict import VerdictBlock
from ragauge.stats.intervals import Interval

SCHEMA = "ragauge.scores/2"


class ErroredValue(Struct, frozen=True):
    """A metric as if all traces with an error were at one end of its range."""

    value: float
    n: int
    interval: Interval | None = None


class BandEnd(Struct, frozen=True, kw_only=True):
    """A metric at one end of what places leave open, as far as it differs from the other end."""

    value: float
    interval: Interval | None = None
    detectable: float | None = None
    errored: tuple[ErroredValue, ErroredValue] | None = None


class MetricResult(Struct, frozen=True, kw_only=True):
    """One reported number with all that is needed to read it.

    `value` is None for 0/0, and `reason` then says why. `default` is what the profile's source
    prints in that case. `interval_reason` says why there is no interval, or only half of one.
    `detectable` is the smallest change to the worse that four runs of five would show. `note` is
    what a reader of the value must know. `errored` is the metric with the traces that have an error
    at their worst, and at their best; None where there are none, or it counts them itself. `band`
    has its least and its greatest value where it depends on places that gold does not say, and
    `ends` all that is known of it at these two.
    """

    value: float | None
    n: int
    records: int
    excluded: dict[str, int]
    interval: Interval | None
    version: int
    better: Better
    reason: str | None = None
    default: float | None = None
    interval_reason: str | None = None
    detectable: float | None = None
    note: str | None = None
    errored: tuple[ErroredValue, ErroredValue] | None = None
    band: tuple[float, float] | None = None
    ends: tuple[BandEnd, BandEnd] | None = None

    @property
    def at_ends(self) -> tuple[MetricResult, MetricResult] | None:
        """The number where it is least and where it is greatest; None where it is one number."""
        if self.ends is None:
            return None
        low, high = (
            replace(
                self,
                value=end.value,
                interval=end.interval,
                detectable=end.detectable,
                errored=end.errored,
                reason=None,
                band=None,
                ends=None,
            )
            for end in self.ends
        )
        return low, high

    @property
    def left_out(self) -> str:
        """How many records were excluded, by reason, in words."""
        return ", ".join(f"{count} {reason}" for reason, count in self.excluded.items())

    @property
    def shown(self) -> float | None:
        """The value, or the source's default for 0/0."""
        return self.default if self.value is None else self.value


class QuestionResult(Struct, frozen=True, kw_only=True):
    """What came of one question: its worst label, and where to look.

    `cause` refines the label: what most of its slots failed by. `causes` counts them over slots.
    """

    qid: str
    label: str
    gold: str
    trace: str | None
    labels: dict[str, int]
    turn: int | None = None
    cause: str | None = None
    causes: dict[str, int] = {}


class QuestionList(Sequence[QuestionResult]):
    """The results of the questions in gold order; each is made when it is asked for.

    `labels` has their labels at once: a run of a hundred thousand questions mostly needs no more;
    `causes` has what refines them.
    """

    def __init__(
        self,
        labels: Sequence[str],
        make: Callable[[int], QuestionResult],
        counts: Callable[[int], Mapping[str, int] | None] | None = None,
        *,
        causes: Sequence[str | None] | None = None,
    ) -> None:
        self.labels = labels
        self.causes = [None] * len(labels) if causes is None else causes
        self._make = make
        self._counts = counts

    def counts(self, place: int) -> Mapping[str, int] | None:
        """How many slots of a question have which label; None where there is but one slot."""
        if self._counts is not None:
            return self._counts(place)
        question = self._make(place)
        return None if question.labels == {question.label: 1} else question.labels

    @cached_property
    def slots(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """How many slots of each question have a result, and how many an error."""
        there, wrong = np.zeros((2, len(self)), np.int64)
        for place, label in enumerate(self.labels):
            several = self.counts(place)
            if several is None:
                there[place] = label not in ABSENT
                wrong[place] = label == "ERRORED"
            else:
                wrong[place] = several.get("ERRORED", 0)
                there[place] = sum(n for name, n in several.items() if name not in ABSENT)
        return there, wrong

    @classmethod
    def of(cls, questions: Sequence[QuestionResult]) -> QuestionList:
        """The list of results that are there already."""
        labels = [question.label for question in questions]
        causes = [question.cause for question in questions]
        return cls(labels, questions.__getitem__, causes=causes)

    def __len__(self) -> int:
        return len(self.labels)

    @overload
    def __getitem__(self, place: int) -> QuestionResult: ...

    @overload
    def __getitem__(self, place: slice) -> list[QuestionResult]: ...

    def __getitem__(self, place: int | slice) -> QuestionResult | list[QuestionResult]:
        if isinstance(place, slice):
            return [self._make(index) for index in range(*place.indices(len(self)))]
        return self._make(range(len(self))[place])

    def __iter__(self) -> Iterator[QuestionResult]:
        return map(self._make, range(len(self)))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, QuestionList) and list(self) == list(other)

    def __hash__(self) -> int:
        return hash(tuple(self.labels))


class SliceResult(Struct, frozen=True, kw_only=True):
    """One part of the questions: how many there are, and each metric over them.

    A metric whose n is below the least that is shown has no value.
    """

    n: int
    metrics: dict[str, MetricResult]

    def value(self, metric: str) -> float | None:
        """The value of a metric over the part, None if it has none there."""
        return self.metrics[metric].value if metric in self.metrics else None


class QuestionEnds(Struct, frozen=True, kw_only=True):
    """Values of questions that depend on where in a chunk the evidence stands.

    low, high    the least and the greatest value, as (metrics, questions)
    questions    those whose values depend on places
    best, worst  the ranks of all that is expected, where it is found best and where worst
    """

    low: NDArray[np.float64]
    high: NDArray[np.float64]
    questions: NDArray[np.int64]
    best: UnitRanks | None = None
    worst: UnitRanks | None = None


class PerQuestion(Struct, frozen=True, kw_only=True):
    """The value of each metric for each question, nan where it has none, as (metrics, questions).

    Only of metrics that are made of values of questions. `hashes` are of what the gold items say,
    where they were asked for: values of an item that was changed are not compared. So are
    `reciprocals`, the reciprocal ranks of the first evidence without a cut-off; nan where nothing
    is expected. `units` are the ranks of all that is expected: by them a question is compared,
    whatever was measured. `slices` has for each dimension the places of the questions in each part.
    `ends` are there where values depend on places that gold does not say: they are nan then.
    """

    metrics: tuple[str, ...]
    qids: Sequence[str]
    turns: Sequence[int | None]
    values: NDArray[np.float64]
    hashes: Sequence[str] = ()
    reciprocals: NDArray[np.float64] | None = None
    units: UnitRanks | None = None
    slices: Mapping[str, Mapping[str, NDArray[np.integer[Any]]]] = {}
    ends: QuestionEnds | None = None

    def of(self, metric: str) -> NDArray[np.float64]:
        """The values of one metric."""
        values: NDArray[np.float64] = self.values[self.metrics.index(metric)]
        return values

    def open_count(self, metric: str, part: str | None = None) -> int:
        """How many questions have a value that depends on the place; of those in a slice."""
        if self.ends is None or metric not in self.metrics:
            return 0
        row = self.metrics.index(metric)
        is_open = self.ends.low[row] < self.ends.high[row]
        inside = None if part is None else self.in_slice(part)
        return int(np.count_nonzero(is_open if inside is None else is_open & inside))

    def in_slice(self, part: str) -> NDArray[np.bool_] | None:
        """Which questions are in a part such as `type=table`; None where that is not known."""
        if not self.slices:
            return None
        dimension, _, name = part.partition("=")
        inside = np.zeros(len(self.qids), np.bool_)
        inside[self.slices.get(dimension, {}).get(name, [])] = True
        return inside


class RowResult(Struct, frozen=True, kw_only=True):
    """One scored row, for profiles that score every row."""

    qid: str
    answered: bool
    hit: bool
    refused: bool
    label: str


class StageDelta(Struct, frozen=True, kw_only=True):
    """A metric on the lists before and after a reranker, over the questions that have both.

    `better` and `worse` are how many of them the reranker moved up and down.
    """

    metric: str
    first: float
    last: float
    n: int
    better: int
    worse: int


PLACE_UNKNOWN = "place-unknown"
"""Why there is no number: gold names chunks, and the number depends on where in them."""


class SampledEstimate(Struct, frozen=True, kw_only=True):
    """A difference that is estimated from a random sample of open questions that were pinned.

    `pins` is how many, `interval` 95 %.
    """

    delta: float
    interval: tuple[float, float]
    pins: int
    by: str = "sampled pins"


class PlaceEnds(Struct, frozen=True, kw_only=True):
    """A run that is compared with another, where evidence stands somewhere in a chunk.

    low, high   its scores where the difference of each metric is least, and where it is greatest
    unknown     metrics of which nothing can be said, as they depend on more than ranks
    open        by metric, the questions whose difference depends on the place
    estimates   by metric, its difference as a random sample of pinned questions has it
    guess       its scores at places that are guessed, where somebody asked for them
    by_document the scores of the run by the documents of its evidence, where no more is known of it
    movable     metrics of which that alone is why they are open
    """

    low: Scores
    high: Scores
    unknown: frozenset[str]
    open: dict[str, int]
    estimates: dict[str, SampledEstimate] = {}
    guess: Scores | None = None
    by_document: Scores | None = None
    movable: frozenset[str] = frozenset()


class Scores(Struct, frozen=True, kw_only=True):
    """The result of scoring one run. Values are not rounded here, only where they are printed.

    confusion     refusal as a classification: the four counts
    states        how many questions have which λ, computed and recorded
    embedders     the embedders that the recorded ΔS come from
    cites         whether any answer cites anything
    errors        how many traces failed for which reason, the most frequent first
    joined        how traces met gold items, where it was not by their ids alone
    gold_hash     of what the gold set says, where it was asked for
    semantic      what is known of ΔS beyond its metrics: bands, zones, how it was measured
    unmatched     how many gold items a comparison excludes, as nothing that they expect is
                  recognised in both runs
    gone          the questions of a baseline that the other run has no more, or says otherwise
    placing       by what hits were placed where the evidence has places, and why some were not
    blocks        why the numbers mean nothing, whatever the gates say
    stage         which list of hits was scored where traces have one before a reranker too
    stages        what the reranker changed, where traces have both lists
    chunk_records the records of questions whose evidence stands somewhere in a chunk; never saved
    ends          of a run that is compared: the same at the ends of what its places leave open;
                  never saved
    """

    profile: str
    dialect: str
    k: tuple[int, ...]
    gold_name: str
    trace_name: str
    tally: Tally
    metrics: dict[str, MetricResult]
    refusal_rules: dict[str, int]
    questions: QuestionList
    rows: tuple[RowResult, ...] = ()
    warnings: tuple[str, ...] = ()
    skipped: tuple[str, ...] = ()
    options: Options = Options()
    slices: dict[str, dict[str, SliceResult]] = {}
    confusion: dict[str, int] = {}
    states: dict[str, dict[str, int]] = {}
    embedders: tuple[str, ...] = ()
    cites: bool = False
    errors: dict[str, int] = {}
    joined: dict[str, int] = {}
    per_question: PerQuestion | None = None
    gold_hash: str | None = None
    semantic: Semantic | None = None
    unmatched: int = 0
    gone: tuple[str, ...] = ()
    placing: Placing | None = None
    blocks: tuple[VerdictBlock, ...] = ()
    stage: Literal["last", "first"] = "last"
    stages: tuple[StageDelta, ...] = ()
    chunk_records: Any = None
    ends: PlaceEnds | None = None

    @property
    def measured(self) -> bool:
        """Whether any trace met a gold item, and anything was measured."""
        return self.unmeasured is None

    @property
    def unmeasured(self) -> VerdictBlock | None:
        """Why nothing was measured; None where something was."""
        if not (self.tally.gold and self.tally.scored):
            return VerdictBlock("nothing-measured", CODES["nothing-measured"].title)
        blocks = (block for block in self.blocks if block.exit_code == ExitCode.NOTHING_MEASURED)
        return next(blocks, None)
