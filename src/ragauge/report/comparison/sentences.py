"""How a comparison of two runs is worded, the same in every report of one.

What runs and verdicts share with comparisons is worded in `model/phrases`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from msgspec import Struct

from ragauge.model import phrases
from ragauge.model.comparison import (
    KINDS,
    MATCH_LEVELS,
    WORSE,
    Cause,
    ComparedRun,
    ComparedSlice,
    Comparison,
    ComparisonView,
    Delta,
    Kind,
    QueryComparison,
    RankBand,
    SliceDelta,
    rank_text,
)
from ragauge.model.metric_names import metric_label
from ragauge.text import plain

PLURALS: dict[Kind, str] = {
    "regression": "regressions",
    "mixed": "mixed",
    "undecided": "undecided",
    "loss": "losses",
    "win": "wins",
    "draw": "draws",
}
_HEADLINE_KINDS: tuple[Kind, ...] = ("win", "loss", "mixed", "undecided", "regression")
_RARE_KINDS: tuple[Kind, ...] = ("mixed", "undecided")
"""Kinds that are named only where there are any."""
_FOREMOST = ("retrieval.hit", "retrieval.recall", "answer.precision")
"""Of metrics that are alike gated and alike certain, a headline names the first of these."""


def run_lines(comparison: Comparison) -> list[tuple[str, str, str]]:
    """What is known of both runs, by name; what is known of neither is not there."""
    a, b = comparison.run_a, comparison.run_b
    pairs = [
        ("run", a.name, b.name),
        ("created", a.created_at, b.created_at),
        ("commit", a.commit_hash, b.commit_hash),
        ("suite", a.suite, b.suite),
        ("profile", a.profile, b.profile),
        ("gold", a.gold_name, b.gold_name),
        ("trace", a.trace_name, b.trace_name),
        ("chunker", ", ".join(a.chunker_versions), ", ".join(b.chunker_versions)),
    ]
    return [(head, of_a or "", of_b or "") for head, of_a, of_b in pairs if of_a or of_b]


def bounds(interval: tuple[float, float] | None) -> str:
    """The 95 % interval of a change."""
    return "-" if interval is None else " to ".join(map(phrases.signed_number, interval))


def side(value: float | None, band: tuple[float, float] | None) -> str:
    """A metric of one run; its ends where it depends on places that gold does not say."""
    if band is None:
        return phrases.number(value)
    return " … ".join(map(phrases.number, band))


def change(delta: Delta) -> str:
    """How a metric changed; the ends where that depends on places that gold does not say."""
    if delta.band is None:
        return phrases.signed_number(delta.delta)
    return " … ".join(map(phrases.signed_number, delta.band))


def place_lines(comparison: Comparison) -> list[str]:
    """What is open as gold names chunks, how large pieces and hits are, and what decides it."""
    places = comparison.places
    if places is None:
        return []
    gold_bytes, hit_a, hit_b, top_a, top_b = (
        f"{round(size):,}" for size in (places.gold_bytes, *places.hit_bytes, *places.top_bytes)
    )
    lines = [f"regressions: {places.sure} sure, {places.regression_open} open, {places.none} none"]
    if places.has_sizes:
        lines[0] += (
            f" · chunk of the gold {gold_bytes} bytes (median), hits of a {hit_a}, of b {hit_b}"
            f" · bytes in the first {comparison.k}: a {top_a}, b {top_b}"
        )
    lines += [
        f"{plain(metric_label(delta.metric))}: {phrases.signed_number(delta.estimate.delta)} "
        f"({bounds(delta.estimate.interval)}), estimated from {delta.estimate.pins} sampled pins"
        for delta in comparison.deltas
        if delta.estimate is not None
    ]
    if places.unplaced:
        lines.append(
            f"unplaced: {phrases.count(places.unplaced, 'chunk')} known from the gold set alone"
        )
    if places.wide:
        lines.append(
            f"{phrases.count(places.wide, 'question')} with too many combinations of places: "
            "the ends of either run were taken"
        )
    by_document = sum(
        not query.certain and query.doc_kind is not None for query in comparison.per_query
    )
    if places.kind_open > by_document or (places.regression_open and not by_document):
        pins = min(40, places.kind_open)
        lines.append(
            "gold names chunks, and nobody wrote down where in them the evidence stands; to "
            f"decide: ragauge gold pin --narrow --open CMP.json --sample {pins}"
        )
    return lines


def document_lines(comparison: Comparison) -> list[str]:
    """What was found by document, where that is all that is known of some evidence."""
    kinds = comparison.doc_kinds
    if not any(kinds.values()):
        return []
    counts = ", ".join(f"{n} {kind}" for kind, n in kinds.items() if n)
    lines = [f"by document, which does not show that the evidence was found: {counts}"]
    deltas = () if comparison.documents is None else comparison.documents.deltas
    lines += [
        f"by document: {plain(delta.metric)} {side(delta.a, None)} → {side(delta.b, None)}, "
        f"{change(delta)} ({bounds(delta.interval)}), n = {delta.n}"
        for delta in deltas
        if delta.metric.endswith(f"@{comparison.k}")
    ]
    return lines


def chance(p: float | None) -> str:
    """A p-value with four decimals, or its size where these are all 0; never 0 itself."""
    if p is None:
        return "-"
    if p < 1e-300:
        return "<1e-300"  # floating point has no smaller ones to tell apart
    return f"{p:.0e}" if p < 0.00005 else f"{p:.4f}"


GUESS_NOTE = (
    "guess: Δ if the evidence stands where the words of the question do, which favours retrievers "
    "that match words; it decides nothing"
)


def has_guess(deltas: Iterable[Delta]) -> bool:
    """Whether any difference has a guess, and a table a column for it."""
    return any(delta.guess is not None for delta in deltas)


def guess(delta: Delta) -> str:
    """The difference at guessed places."""
    return "" if delta.guess is None else phrases.signed_number(delta.guess.delta)


def shown_deltas(deltas: Iterable[Delta]) -> list[Delta]:
    """The metrics with a value on either side, the gated ones first."""
    valued = [delta for delta in deltas if _has_value(delta)]
    return sorted(valued, key=lambda delta: not delta.gated)


def _has_value(delta: Delta) -> bool:
    sides = (delta.a, delta.b, delta.a_band, delta.b_band)
    return any(value is not None for value in sides)


def undefined_line(deltas: Iterable[Delta]) -> str | None:
    """The metrics without a value on either side, by reason, in one line; None if there are none.

    Cut-offs of one metric are named once.
    """
    reasons: dict[str, dict[str, None]] = {}
    for delta in deltas:
        if not _has_value(delta):
            names = reasons.setdefault(delta.reason or "no value", {})
            names[plain(metric_label(delta.metric.partition("@")[0]))] = None
    if not reasons:
        return None
    names_by_reason = "; ".join(
        f"{', '.join(reasons[reason])} ({plain(reason)})" for reason in sorted(reasons)
    )
    return f"undefined in both runs: {names_by_reason}"


def reason_lines(deltas: Iterable[Delta]) -> list[str]:
    """What there is to say of a metric that has a value on a side, such as why it has no change."""
    every = tuple(deltas)
    return lost_lines(every) + [
        f"{plain(metric_label(delta.metric))}: {plain(delta.reason)}"
        for delta in shown_deltas(every)
        if delta.reason and not delta.lost and delta.band is None
    ]


LOST = "†"
"""Marks a metric where questions or slots without a result were filled in or excluded."""


def metric_name(delta: Delta) -> str:
    """A metric's name, marked `↓` where less is better, `*` where gated and `†` for losses."""
    marks = f"{' ↓' if delta.better == 'lower' else ''}{' *' if delta.gated else ''}"
    return plain(metric_label(delta.metric)) + marks + (f" {LOST}" if delta.lost else "")


def lost_lines(deltas: Iterable[Delta]) -> list[str]:
    """What became of questions and slots without a result, each way once with its metrics."""
    names: dict[str, list[str]] = {}
    for delta in shown_deltas(deltas):
        if delta.lost and delta.reason:
            names.setdefault(delta.reason, []).append(plain(metric_label(delta.metric)))
    return [f"{LOST} {', '.join(metrics)}: {plain(reason)}" for reason, metrics in names.items()]


def delta_line(delta: Delta) -> str:
    """One metric in one line, for screens that have no room for a table."""
    return (
        f"{metric_name(delta)}: {side(delta.a, delta.a_band)} → {side(delta.b, delta.b_band)}, "
        f"{change(delta)} ({bounds(delta.interval or delta.band_interval)}), "
        f"p {chance(corrected(delta))}"
        f"{'' if delta.guess is None else f', guess {guess(delta)}'}"
    )


def corrected(delta: Delta) -> float | None:
    """The p-value to read: the corrected one where there is one."""
    return delta.p if delta.p_holm is None else delta.p_holm


def headline(comparison: Comparison) -> str:
    """The result of the comparison, in one sentence."""
    if comparison.counted == 0:
        excluded = sum(comparison.left_out.values())
        return "no questions compared" + (f": {excluded} left out" if excluded else "")
    parts = []
    for about, kinds in (("", comparison.kinds), ("answers: ", comparison.answer_kinds)):
        if any(kinds.values()):
            parts.append(about + _all_counted(kinds, _HEADLINE_KINDS))
    opening = f"{phrases.count(comparison.counted, 'question')} compared"
    if not parts:
        return f"{opening}: {_evidence(comparison.deltas)}"
    return f"{opening}: {'; '.join([*parts, _evidence(comparison.deltas)])}"


def _evidence(deltas: Sequence[Delta]) -> str:
    """The change of the foremost metric, and whether there is any that is more than chance.

    Only of metrics whose p-values are corrected for each other: the gated ones, or those of the
    profile. What else moved is in `moved_line`.
    """
    changes = [
        delta for delta in shown_deltas(deltas) if delta.delta is not None or delta.band is not None
    ]
    if not changes:
        return "nothing measured in both runs"
    if all(delta.delta == 0 for delta in changes):
        return "no metric differs"
    # One whose places are unknown has no p, and may still be the foremost.
    gates = any(delta.gated for delta in changes)
    tested = [
        delta
        for delta in changes
        if delta.p_holm is not None or (delta.band is not None and delta.gated == gates)
    ]
    foremost = min(tested or changes, key=_importance)
    moved = f"{plain(metric_label(foremost.metric))} {change(foremost)}"
    certain = [delta for delta in tested if delta.is_changed]
    if not certain and foremost.estimate is not None:
        estimate = foremost.estimate
        return (
            f"{moved}, about {phrases.signed_number(estimate.delta)} "
            f"({bounds(estimate.interval)}) by {estimate.pins} sampled pins"
        )
    if not certain and foremost.band is not None:
        return f"{moved}, no estimate: gold names chunks, places unknown"
    if not certain:
        sizes = {delta.n for delta in changes}
        n = f"n = {max(sizes)}" if len(sizes) == 1 else f"n up to {max(sizes)}"
        return f"{moved}; no change that {n} can show"
    worse = sum(delta.worse for delta in certain)
    noun = "gated metric" if foremost.gated else "metric"
    return (
        f"{moved}; {len(certain)} of {phrases.count(len(tested), noun)} changed beyond chance: "
        f"{len(certain) - worse} better, {worse} worse"
    )


SLICE_NOTE = "Δ of each slice with its own 95 % interval, not adjusted for their number"
_SLICE_COLUMNS = 2


def slice_metrics(comparison: Comparison) -> list[str]:
    """The metrics that tables of slices show, the foremost ones; JSON has all of a headline."""
    tested = [delta for delta in shown_deltas(comparison.deltas) if delta.p_holm is not None]
    valued = [
        delta for delta in tested if None not in (delta.a, delta.b, delta.delta, delta.interval)
    ]
    return [delta.metric for delta in sorted(valued, key=_importance)[:_SLICE_COLUMNS]]


def listed_slices(comparison: Comparison) -> dict[str, list[tuple[str, ComparedSlice]]]:
    """The parts that tables show: those with a value, of dimensions with more than one.

    One part of all questions says nothing that the table of metrics does not.
    """
    listed = {}
    for dimension, parts in comparison.slices.items():
        valued = [(name, part) for name, part in parts.items() if part.deltas]
        if len(parts) > 1 and valued:
            listed[dimension] = valued
    return listed


def slice_cells(part: ComparedSlice, metrics: Sequence[str]) -> list[str]:
    """The changes of some metrics in a slice, each with its interval."""
    cells = []
    for metric in metrics:
        delta = part.of(metric)
        if delta is None:
            cells.append("-")
        else:
            change = phrases.signed_number(delta.delta)
            cells.append(f"{change} ({bounds(delta.interval)})" if delta.interval else change)
    return cells


def slice_lines(comparison: Comparison, *, worse: bool = False) -> list[tuple[str, str]]:
    """Each slice that tables show, and its changes in a line; or those surely worse by a metric."""
    metrics = slice_metrics(comparison)
    lines = []
    for dimension, parts in listed_slices(comparison).items():
        for name, part in parts:
            deltas = [delta for metric in metrics if (delta := part.of(metric)) is not None]
            if worse:
                deltas = [delta for delta in deltas if _is_surely_worse(delta)]
            texts = [
                f"{plain(metric_label(delta.metric))} {phrases.signed_number(delta.delta)} "
                f"({bounds(delta.interval)}), n = {delta.n}"
                for delta in deltas
            ]
            if texts:
                lines.append((plain(f"{dimension}={name}"), "; ".join(texts)))
    return lines


def _is_surely_worse(delta: SliceDelta) -> bool:
    """Whether the interval of a slice, taken alone, lies on the worse side."""
    if delta.interval is None:
        return False
    low, high = delta.interval
    return high < 0 if delta.better == "higher" else low > 0


def family(deltas: Iterable[Delta]) -> str:
    """What p-values are corrected over."""
    is_gated = any(delta.gated for delta in deltas if delta.p_holm is not None)
    return "the gated metrics" if is_gated else "the metrics of the profile"


def moved_line(deltas: Iterable[Delta], most: int = 8) -> str | None:
    """What moved beside the metrics of the headline, by tests that are not corrected; or None."""
    moved = [delta for delta in shown_deltas(deltas) if delta.is_moved]
    if not moved:
        return None
    names = [f"{plain(metric_label(delta.metric))} {change(delta)}" for delta in moved[:most]]
    rest = f" and {len(moved) - most} more" if len(moved) > most else ""
    return f"also moved (unadjusted): {', '.join(names)}{rest}"


def _importance(delta: Delta) -> tuple[bool, bool, int]:
    """The foremost metric comes first: gated, then changed beyond chance, then by what it is."""
    base = delta.metric.partition("@")[0]
    place = _FOREMOST.index(base) if base in _FOREMOST else len(_FOREMOST)
    return not delta.gated, not delta.is_changed, place


def _all_counted(kinds: Mapping[Kind, int], named: Sequence[Kind]) -> str:
    """How many questions of each kind; `mixed` is rare, and not named where there are none."""
    counted = [kind for kind in named if kind not in _RARE_KINDS or kinds.get(kind)]
    return ", ".join(_counted(kinds, kind) for kind in counted)


def _counted(kinds: Mapping[Kind, int], kind: Kind) -> str:
    n = kinds.get(kind, 0)
    return f"{n} {kind if n == 1 else PLURALS[kind]}"


def retrieval_line(comparison: Comparison) -> str:
    """How many questions of each kind there are in retrieval."""
    if not comparison.ranked:
        return "retrieval: not compared question by question, as the ranks are not known"
    without_result = sum(
        query.kind is None and query.a_reciprocal is not None for query in comparison.per_query
    )
    rest = comparison.counted - without_result - sum(comparison.kinds.values())
    line = _kinds("retrieval", comparison.kinds, rest, "with nothing expected of retrieval")
    if without_result:
        line += f"; {phrases.count(without_result, 'question')} without a result in either run"
    return line


def answer_line(comparison: Comparison) -> str:
    """How many questions of each kind there are in answers."""
    rest = comparison.counted - sum(comparison.answer_kinds.values())
    return _kinds("answers", comparison.answer_kinds, rest, "with no answers to compare")


def _kinds(about: str, kinds: Mapping[Kind, int], rest: int, others: str) -> str:
    line = f"{about}: {_all_counted(kinds, KINDS)}"
    return f"{line}; {phrases.count(rest, 'question')} {others}" if rest > 0 else line


def rung_line(comparison: Comparison) -> str:
    """How expected items were recognised on both sides, with counts."""
    if comparison.recognised is None:
        return "chunker_version_match: not known, as files of scores hold no hits"
    counts = [
        f"{comparison.rungs[rung]} {rung}" for rung in MATCH_LEVELS if comparison.rungs.get(rung, 0)
    ]
    return f"chunker_version_match: {comparison.match} ({', '.join(counts) or 'no expected items'})"


def left_out_line(comparison: Comparison) -> str:
    """How many questions were compared, and how many excluded for which reason."""
    compared = f"{phrases.count(comparison.counted, 'question')} compared"
    excluded = comparison.left_out
    reasons = ", ".join(f"{excluded[reason]} {plain(reason)}" for reason in sorted(excluded))
    return f"{compared}, {sum(excluded.values())} left out{f': {reasons}' if reasons else ''}"


def run_line(letter: str, run: ComparedRun) -> str:
    """One of the two runs in one line, with its missing and errored questions."""
    parts = [f"{letter} = {plain(run.name)}"]
    if run.created_at:
        parts.append(plain(run.created_at))
    if run.commit_hash:
        parts.append(f"commit {plain(run.commit_hash)[:12]}")
    parts.append(f"profile {plain(run.profile)}")
    parts.append(phrases.count(run.questions, "question"))
    return f"{', '.join(parts)}, {run.missing} missing, {run.errored} errored"


def cause_line(cause: Cause) -> str:
    """A difference between the configurations, as `chunker: size 512 → 256`."""
    a, b = (
        "not set" if side is None else "empty" if side == "" else plain(side)
        for side in (cause.a, cause.b)
    )
    return f"{plain(cause.about)}: {plain(cause.key)} {a} → {b}"


def rank(place: int | RankBand | None, reciprocal: float | None) -> str:
    """A rank or `miss`; of several slots the mean reciprocal rank, as they have no one rank.

    A rank that depends on the place of the evidence goes from the best to the worst.
    """
    if isinstance(place, tuple):
        return rank_text(place)
    if place is None and reciprocal:
        return f"RR {reciprocal:.4f}"
    words = "miss" if place is None else str(place)
    reciprocal_of_rank = 1 / place if place else 0.0
    if reciprocal is None or abs(reciprocal - reciprocal_of_rank) < 1e-9:
        return words
    return f"{words} ({reciprocal:.4f})"


def note(query: QueryComparison) -> str:
    """The note of a question, empty if it has none."""
    return plain(query.note or "")


def flipped(query: QueryComparison) -> str:
    """What flipped in an answer; the note too, unless a retrieval table has it already."""
    answer = query.answer
    parts = []
    if answer is not None and answer.refusal:
        parts.append(plain(answer.refusal))
    if answer is not None and answer.citations:
        parts.append(f"citations {plain(answer.citations)}")
    if query.note and query.kind in (None, "draw"):
        parts.append(plain(query.note))
    return "; ".join(parts)


def change_cells(query: QueryComparison, about: str) -> tuple[str, str, str]:
    """Both sides of a question, in retrieval or in its answer, and what else there is to say."""
    if about == "retrieval":
        a, b = (
            rank(query.a_hit_rank, query.a_reciprocal),
            rank(query.b_hit_rank, query.b_reciprocal),
        )
        return a, b, note(query)
    answer = query.answer
    assert answer is not None, query.query_id
    a = phrases.labelled(answer.a_label, answer.a_cause)
    b = phrases.labelled(answer.b_label, answer.b_cause)
    return plain(a), plain(b), flipped(query)


def what_happened(query: QueryComparison, about: str) -> str:
    """How a question changed in retrieval or in its answer, in one line."""
    a, b, rest = change_cells(query, about)
    change = f"rank {a} → {b}" if about == "retrieval" else f"{a} → {b}"
    return f"{change}; {rest}" if rest else change


class QuestionGroup(Struct, frozen=True, kw_only=True):
    """The questions of one kind in retrieval or in answers, and how many more there are."""

    kind: Kind
    about: str
    queries: tuple[QueryComparison, ...]
    total: int

    @property
    def more(self) -> int:
        """How many questions are not listed."""
        return self.total - len(self.queries)


def groups(view: ComparisonView, most: int) -> list[QuestionGroup]:
    """The questions to list, regressions first; all of them, and draws too, if the view is full."""
    queries_by_kind: dict[tuple[Kind, str], list[QueryComparison]] = {
        (kind, about): []
        for kind in KINDS
        if kind != "draw" or view.full
        for about in ("retrieval", "answer")
    }
    for query in view.comparison.per_query:
        answer = None if query.answer is None else query.answer.kind
        for kind, about in ((query.certain_kind, "retrieval"), (answer, "answer")):
            if kind is not None and (kind, about) in queries_by_kind:
                queries_by_kind[kind, about].append(query)
    return [
        QuestionGroup(
            kind=kind,
            about=about,
            total=len(queries),
            queries=tuple(queries if view.full else queries[:most]),
        )
        for (kind, about), queries in queries_by_kind.items()
        if queries
    ]


def worse_groups(view: ComparisonView) -> list[QuestionGroup]:
    """All questions that lost something."""
    every = groups(view, len(view.comparison.per_query))
    worse = [group for group in every if group.kind in WORSE]
    # At every place something is lost, however different it is.
    sure = [query for query in view.comparison.per_query if query.is_sure_loss]
    if sure:
        group = QuestionGroup(
            kind="undecided", about="retrieval", queries=tuple(sure), total=len(sure)
        )
        worse.insert(0, group)
    return worse


def slots_line(listed: Iterable[QuestionGroup]) -> str | None:
    """What the brackets behind ranks mean; None if no listed question has any."""
    for group in listed:
        for query in group.queries if group.about == "retrieval" else ():
            sides = (query.a_hit_rank, query.a_reciprocal), (query.b_hit_rank, query.b_reciprocal)
            if any("(" in rank(*side) for side in sides):
                return "in brackets behind a rank: the mean reciprocal rank over the slots"
    return None
