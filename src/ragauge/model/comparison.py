"""Comparisons: two runs of the same questions, side by side."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, NamedTuple

from msgspec import Struct

from ragauge.codes import ExitCode
from ragauge.metrics.metric import Better
from ragauge.model.drilldown import Drilldowns
from ragauge.model.report import ReportFormat
from ragauge.model.scores import MetricResult, SampledEstimate
from ragauge.model.verdict import Status, Verdict

SCHEMA = "ragauge.compare/2"

Kind = Literal["win", "loss", "draw", "regression", "mixed", "undecided"]
KINDS: tuple[Kind, ...] = ("regression", "mixed", "undecided", "loss", "win", "draw")
"""What may come of a question, in the order in which a reader wants to see it."""

WORSE: tuple[Kind, ...] = ("regression", "mixed", "loss")
"""Kinds of questions that lost something."""

DocKind = Literal["doc_win", "doc_loss", "doc_draw", "doc_regression", "doc_mixed"]
"""What came of the documents of a question: never what came of its evidence."""
DOC_KINDS: tuple[DocKind, ...] = (
    "doc_regression", "doc_mixed", "doc_loss", "doc_win", "doc_draw",
)  # fmt: skip


def doc_kind(kind: Kind) -> DocKind | None:
    """The kind of a question whose documents changed so; None for one that nobody knows."""
    return next((name for name in DOC_KINDS if name == f"doc_{kind}"), None)


MatchLevel = Literal["exact", "doc_span", "quote", "doc", "none"]
MATCH_LEVELS: tuple[MatchLevel, ...] = ("exact", "doc_span", "quote", "doc", "none")
"""How an expected item is recognised on both sides, from the best to none at all."""

Match = Literal[
    "exact",
    "unproven",
    "fallback_doc_span",
    "fallback_quote",
    "fallback_doc",
    "mixed",
    "none",
]


DEFAULT_K = 10
"""The cut-off of the kinds of questions where no gate has one."""

RANKS = ("retrieval.mrr@999999999", "retrieval.mrr_doc@999999999")
"""Reciprocal ranks without a cut-off, which every stored run keeps for its questions: by evidence,
and by document where an item names no more."""


CHANCE = 0.05
"""A p-value below this counts as a change, as the 95 % interval does."""

Regression = Literal["yes", "no", "open"]
RankBand = tuple[int | None, int | None]


def rank_text(band: tuple[int | None, int | None]) -> str:
    """A rank, a miss, or from the best to the worst."""
    best, worst = ("miss" if rank is None else str(rank) for rank in band)
    return best if best == worst else f"{best}…{worst}"


class PlaceCounts(Struct, frozen=True, kw_only=True):
    """What gold that names chunks leaves open, and how large the pieces of text are.

    regression_open  questions of which nobody can say whether something was lost
    kind_open        questions without a kind that holds at all places
    unplaced         chunks of which nothing is known but that gold names them
    wide             questions with too many combinations of places to compute one by one
    least_evidence   bytes of the shortest evidence that was considered
    gold_bytes       the median size of the chunks that gold names
    hit_bytes        the median size of a hit, in run a and in run b
    top_bytes        bytes in the hits within the cut-off, the mean over questions of either run
    """

    regression_open: int
    kind_open: int
    unplaced: int
    wide: int
    least_evidence: int
    gold_bytes: float
    hit_bytes: tuple[float, float]
    top_bytes: tuple[float, float]
    sure: int = 0
    none: int = 0

    @property
    def has_sizes(self) -> bool:
        """Whether sizes are known; files of scores hold no hits."""
        return any((self.gold_bytes, *self.hit_bytes))


class IdFacts(Struct, frozen=True, kw_only=True):
    """How many chunk ids two runs show and share, and how many mean two things.

    Of very many ids a fair sample is counted. `proof` is why ids are taken for the same chunks or
    not: `proved`, `unproven`, or what refutes it.
    """

    common: int
    distinct_a: int
    distinct_b: int
    reused: int
    proof: str = "unproven"


class ComparedRun(Struct, frozen=True, kw_only=True):
    """One of the two runs: what it is called, and what is known of how it came about.

    `questions` is how many gold items it has, `missing` and `errored` how many of those that were
    compared have no result or an error.
    """

    name: str
    profile: str
    gold_name: str
    trace_name: str
    gold_hash: str | None = None
    created_at: str | None = None
    commit_hash: str | None = None
    suite: str | None = None
    chunker_versions: tuple[str, ...] = ()
    questions: int = 0
    missing: int = 0
    errored: int = 0


class GuessedDelta(NamedTuple):
    """One metric in both runs, and b - a, at places that are guessed."""

    a: float
    b: float
    delta: float


class Delta(Struct, frozen=True, kw_only=True):
    """One metric in both runs, over the questions where both have a value.

    delta        b - a, from unrounded values; None with a `reason`
    interval     95 %, of the differences question by question
    p, p_holm    two-sided, as it is and corrected (Holm) over the metrics that the headline may
                 speak of: the gated ones, or those of the profile where no gate is on a drop; None
                 for all others
    test         the test behind p
    detectable   the smallest change that this n would show in four cases of five
    lost         questions or slots without a result were counted as the worst, or excluded
    band         the ends of b - a where it depends on places that gold does not say; `a_band` and
                 `b_band` those of either run
    band_interval  from the lower 95 % bound of the low end to the upper one of the high end
    open         how many questions the ends differ by
    estimate     of a random sample of these that were pinned, where there are enough
    guess        both runs where the words of the questions let the evidence be; nothing is decided
                 by it
    """

    metric: str
    better: Better
    a: float | None
    b: float | None
    delta: float | None
    n: int
    interval: tuple[float, float] | None = None
    p: float | None = None
    p_holm: float | None = None
    test: Literal["mcnemar", "permutation"] | None = None
    detectable: float | None = None
    gated: bool = False
    reason: str | None = None
    lost: bool = False
    band: tuple[float, float] | None = None
    band_interval: tuple[float, float] | None = None
    a_band: tuple[float, float] | None = None
    b_band: tuple[float, float] | None = None
    open: int = 0
    estimate: SampledEstimate | None = None
    guess: GuessedDelta | None = None

    @property
    def is_changed(self) -> bool:
        """Whether the metric changed beyond chance, although several were tested.

        The 95 % interval must lie on one side of 0, and the corrected test agree: an interval
        holds a few values that all went one way for more than chance would, and the test knows how
        few they are. A metric that the headline does not speak of is never called changed.
        """
        return self._off_zero and self.p_holm is not None and self.p_holm < CHANCE

    @property
    def is_moved(self) -> bool:
        """Whether a metric outside the headline moved, by its own test: one in twenty does."""
        return self._off_zero and self.p_holm is None and self.p is not None and self.p < CHANCE

    @property
    def _off_zero(self) -> bool:
        interval = self.interval or self.band_interval
        return interval is not None and not interval[0] <= 0 <= interval[1]

    @property
    def worse(self) -> bool:
        """Whether run b is on the worse side, however little; of a band, wherever it stands."""
        ends = self.band if self.delta is None else (self.delta, self.delta)
        if ends is None:
            return False
        return ends[1] < 0 if self.better == "higher" else ends[0] > 0


class SliceDelta(Struct, frozen=True, kw_only=True):
    """One metric over the questions of a slice that have a value in both runs.

    The interval is of this slice alone. Of twenty slices one lies beside 0 by chance, so there is
    no test, and no headline speaks of it.
    """

    metric: str
    better: Better
    a: float
    b: float
    delta: float
    n: int
    interval: tuple[float, float] | None = None

    @property
    def worse(self) -> bool:
        """Whether run b is on the worse side, however little."""
        return self.delta < 0 if self.better == "higher" else self.delta > 0


class ComparedSlice(Struct, frozen=True, kw_only=True):
    """A part of the questions: how many there are, and its metrics where n is large enough."""

    n: int
    deltas: tuple[SliceDelta, ...] = ()

    def of(self, metric: str) -> SliceDelta | None:
        """The change of one metric."""
        return next((delta for delta in self.deltas if delta.metric == metric), None)


class AnswerChange(Struct, frozen=True, kw_only=True):
    """What came of the answer to one question: labels of both sides, and what flipped.

    refusal     `answered → refused` or `refused → answered`
    citations   `hit → miss` or `miss → hit`, where citations of the evidence were measured
    a_cause, b_cause   what the labels come from, where that is known
    """

    kind: Kind | None
    a_label: str
    b_label: str
    refusal: str | None = None
    citations: str | None = None
    a_cause: str | None = None
    b_cause: str | None = None


class QueryComparison(Struct, frozen=True, kw_only=True):
    """One question in both runs. `kind` is None where nothing is expected of retrieval.

    Ranks are those of the first evidence and count from 1; of a question with several slots the
    reciprocals are the means over its slots. `units` is how many things are expected: groups, or
    else pieces of evidence, or else documents. `a_units` and `b_units` are how many of them are
    found within the cut-off of the comparison, the mean over slots; `lost` and `gained` name those
    that are found less, or more, often than before. `rungs` are the match levels of its expected
    items.

    Where gold names chunks and not the evidence in them, `possible` are the kinds that it may have,
    and `regression` says whether something is lost: at all places, at none, or at some. A kind that
    is not `certain` is not that of all places. `places` is how many there are, `a_found` and
    `b_found` how many of them are found within the cut-off. A rank that is not the same at all of
    them is a pair, the best and the worst; the worst is None where a place is not found.
    `doc_kind` is what came of the documents, where nothing better is known of some of the evidence.
    """

    query_id: str
    kind: Kind | None
    a_hit_rank: int | RankBand | None
    b_hit_rank: int | RankBand | None
    note: str | None = None
    turn: int | None = None
    a_reciprocal: float | None = None
    b_reciprocal: float | None = None
    units: int | None = None
    a_units: float | None = None
    b_units: float | None = None
    lost: tuple[str, ...] = ()
    gained: tuple[str, ...] = ()
    rungs: tuple[MatchLevel, ...] = ()
    answer: AnswerChange | None = None
    possible: tuple[Kind, ...] = ()
    regression: Regression | None = None
    certain: bool = True
    places: int | None = None
    a_found: int | None = None
    b_found: int | None = None
    doc_kind: DocKind | None = None

    @property
    def certain_kind(self) -> Kind | None:
        """The kind, where all places of the evidence agree on it."""
        return self.kind if self.certain else "undecided"

    @property
    def is_sure_loss(self) -> bool:
        """Whether it lost something at every place, although it is not of one kind."""
        return not self.certain and self.regression == "yes"


class Cause(Struct, frozen=True, kw_only=True):
    """A difference between the configurations of the two runs that may explain the numbers.

    `about` is what it concerns: chunker, embedder, prompt, model, k, gold, corpus or other.
    """

    about: str
    key: str
    a: str | None
    b: str | None


class DocumentLevel(Struct, frozen=True, kw_only=True):
    """What two runs found of the documents that hold the evidence, where places cannot be told.

    deltas  of the metrics of documents
    kinds   of the questions, by id and turn
    """

    deltas: tuple[Delta, ...]
    kinds: Mapping[tuple[str, int | None], DocKind | None]


class Comparison(Struct, frozen=True, kw_only=True):
    """Two runs compared on the questions that both have unchanged.

    match        one word for the levels of all expected items; `none` where nothing is expected
    rungs        how many expected items were matched at which level
    kinds        how many questions of each kind, for retrieval and for the answer
    left_out     how many questions were excluded, by reason
    counted      how many questions were compared
    ranked       whether ranks are known, so that questions can be told apart by retrieval
    k            the cut-off within which something counts as found in the kinds of questions
    ids          what the chunk ids of both runs have in common; None for files of scores
    places       what is open, where evidence stands somewhere in a chunk; None where none does
    slices       the parts of each dimension, such as languages, with their own changes
    documents    what was found by document, where that is all that is known of some evidence
    parts        of each question, by id and turn, the slices that it is in, as `type=table`
    """

    run_a: ComparedRun
    run_b: ComparedRun
    match: Match
    rungs: Mapping[MatchLevel, int]
    aggregate_a: Mapping[str, MetricResult]
    aggregate_b: Mapping[str, MetricResult]
    deltas: tuple[Delta, ...]
    kinds: Mapping[Kind, int]
    answer_kinds: Mapping[Kind, int]
    per_query: tuple[QueryComparison, ...]
    counted: int
    left_out: Mapping[str, int] = {}
    causes: tuple[Cause, ...] = ()
    notes: tuple[str, ...] = ()
    verdict: Verdict | None = None
    ranked: bool = True
    k: int = DEFAULT_K
    ids: IdFacts | None = None
    places: PlaceCounts | None = None
    slices: Mapping[str, Mapping[str, ComparedSlice]] = {}
    documents: DocumentLevel | None = None
    parts: Mapping[tuple[str, int | None], tuple[str, ...]] = {}

    @property
    def doc_kinds(self) -> dict[DocKind, int]:
        """How many questions there are of each kind by document."""
        kinds = [query.doc_kind for query in self.per_query]
        return {kind: kinds.count(kind) for kind in DOC_KINDS}

    @property
    def recognised(self) -> Match | None:
        """The word for the levels; None where the runs are files of scores, which hold no hits."""
        return self.match if self.rungs else None


class KindCheck(Struct, frozen=True, kw_only=True):
    """What `--fail-on` found of one kind.

    given      the limit as it was written
    kinds      those that count as it, and how many questions are of each, in retrieval or in
               their answers: a question that is of two of them counts as the first
    allowed    how many may be
    explained  how many of them the noise of the baseline explains, as its repeats tell
    doc_kinds  the same by document, of questions of which no more is known, where that is accepted
    open       how many others may be of these kinds, as gold names chunks and not the evidence
    by_document  how many of those are open as nothing but their documents is known
    repeated   how many questions the baseline asked several times in one wording
    unstable   how many of those came out differently in the baseline itself
    p          how often exchanged repeats look as bad; None where the baseline has no noise
    """

    kind: Kind
    kinds: Mapping[Kind, int]
    given: str = ""
    allowed: int = 0
    explained: int = 0
    doc_kinds: Mapping[DocKind, int] = {}
    open: int = 0
    by_document: int = 0
    repeated: int = 0
    unstable: int = 0
    p: float | None = None

    @property
    def questions(self) -> int:
        """How many questions count."""
        return sum(self.kinds.values()) + sum(self.doc_kinds.values())

    @property
    def failed(self) -> bool:
        """Whether there are too many."""
        return self.questions - self.explained > self.allowed

    @property
    def is_open(self) -> bool:
        """Whether there may be too many."""
        return not self.failed and self.questions - self.explained + self.open > self.allowed


class ComparisonView(Struct, frozen=True, kw_only=True):
    """What a report of a comparison shows, and for whom: width and colour are the screen's.

    `full` lists draws too. `details` are the questions one by one, where a report asked for them,
    in the order of `comparison.per_query`. `fail_on` are the kinds of which there may not be too
    many; without one nothing was asked of questions. `undecided` says why that cannot be told of
    all questions. `raw_csv` is as in `View`.
    """

    comparison: Comparison
    full: bool = False
    width: int = 80
    color: bool = False
    details: Drilldowns | None = None
    fail_on: tuple[KindCheck, ...] = ()
    undecided: str | None = None
    raw_csv: bool = False

    @property
    def exit_code(self) -> ExitCode:
        """What the command ends with: the gates go before the questions."""
        verdict = self.comparison.verdict
        if verdict is not None and verdict.exit_code != ExitCode.PASS:
            return verdict.exit_code
        if self._is_failed:
            return ExitCode.GATE_FAILED
        return ExitCode.PASS if self.undecided is None else ExitCode.NOT_EVALUABLE

    @property
    def _is_failed(self) -> bool:
        return any(check.failed for check in self.fail_on)

    @property
    def status(self) -> Status | None:
        """The word for that; None where neither gates nor questions were to decide."""
        verdict = self.comparison.verdict
        if self._is_failed and self.exit_code == ExitCode.GATE_FAILED:
            return "fail"
        if verdict is not None and (self.undecided is None or verdict.exit_code != ExitCode.PASS):
            return verdict.status
        if self.undecided is not None:
            return "not-evaluable"
        return "pass" if self.fail_on else None


class ComparisonReport(ReportFormat[ComparisonView], frozen=True, kw_only=True):
    """A way to write a comparison down."""
