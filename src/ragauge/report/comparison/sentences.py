"""How a comparison of two runs is worded, the same in every report of one."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from msgspec import Struct

from ragauge.model import phrases
from ragauge.model.comparison import (
    KINDS,
    RUNGS,
    Cause,
    Compared,
    Comparison,
    ComparisonView,
    Delta,
    Kind,
    QueryComparison,
)
from ragauge.model.metric_names import metric_label
from ragauge.text import plain

PLURALS: dict[Kind, str] = {
    "regression": "regressions",
    "loss": "losses",
    "win": "wins",
    "draw": "draws",
}
_TOLD: tuple[Kind, ...] = ("win", "loss", "regression")
_LEADING = ("retrieval.hit", "retrieval.recall", "answer.precision")


def run_lines(comparison: Comparison) -> list[tuple[str, str, str]]:
    """What is known of both runs, by name; what is known of neither is not there."""
    a, b = comparison.run_a, comparison.run_b
    told = [
        ("run", a.name, b.name),
        ("created", a.created_at, b.created_at),
        ("commit", a.commit_hash, b.commit_hash),
        ("suite", a.suite, b.suite),
        ("profile", a.profile, b.profile),
        ("gold", a.gold_name, b.gold_name),
        ("trace", a.trace_name, b.trace_name),
        ("chunker", ", ".join(a.chunker_versions), ", ".join(b.chunker_versions)),
    ]
    return [(head, one or "", other or "") for head, one, other in told if one or other]


def bounds(interval: tuple[float, float] | None) -> str:
    """The 95 % interval of a change."""
    return (
        "-"
        if interval is None
        else f"{phrases.signed(interval[0])} to {phrases.signed(interval[1])}"
    )


def chance(p: float | None) -> str:
    """A p-value with four decimals, or its size where these are all 0; never 0 itself."""
    if p is None:
        return "-"
    if p < 1e-300:
        return "<1e-300"  # floating point has no smaller ones to tell apart
    return f"{p:.0e}" if p < 0.00005 else f"{p:.4f}"


CHANCE = 0.05


def is_beyond_chance(delta: Delta) -> bool:
    """Whether the 95 % interval lies on one side of 0, and the test agrees.

    With a few questions that all went one way every resample does so too, and the interval is off 0
    whatever chance could have done; the test knows how few they are.
    """
    if delta.interval is None or (delta.interval[0] <= 0 <= delta.interval[1]):
        return False
    return delta.p is None or delta.p < CHANCE


def shown_deltas(deltas: Iterable[Delta]) -> list[Delta]:
    """The metrics with a value on either side, the gated ones first."""
    shown = [each for each in deltas if each.a is not None or each.b is not None]
    return sorted(shown, key=lambda each: not each.gated)


def undefined_line(deltas: Iterable[Delta]) -> str | None:
    """The metrics without a value on either side, by reason, in one line; None if there are none.

    Cut-offs of one metric are named once.
    """
    reasons: dict[str, dict[str, None]] = {}
    for each in deltas:
        if each.a is None and each.b is None:
            names = reasons.setdefault(each.reason or "no value", {})
            names[plain(metric_label(each.metric.partition("@")[0]))] = None
    if not reasons:
        return None
    told = "; ".join(f"{', '.join(reasons[why])} ({plain(why)})" for why in sorted(reasons))
    return f"undefined in both runs: {told}"


def reason_lines(deltas: Iterable[Delta]) -> list[str]:
    """What there is to say of a metric that has a value on a side, such as why it has no change."""
    found = tuple(deltas)
    return lost_lines(found) + [
        f"{plain(metric_label(each.metric))}: {plain(each.reason)}"
        for each in shown_deltas(found)
        if each.reason and not each.lost
    ]


LOST = "†"
"""Marks a metric where questions or slots without a result were filled in or left out."""


def metric_name(delta: Delta) -> str:
    """A metric's name, marked `↓` where less is better, `*` where gated and `†` for losses."""
    marks = f"{' ↓' if delta.better == 'lower' else ''}{' *' if delta.gated else ''}"
    return plain(metric_label(delta.metric)) + marks + (f" {LOST}" if delta.lost else "")


def lost_lines(deltas: Iterable[Delta]) -> list[str]:
    """What became of questions and slots without a result, each way once with its metrics."""
    names: dict[str, list[str]] = {}
    for each in shown_deltas(deltas):
        if each.lost and each.reason:
            names.setdefault(each.reason, []).append(plain(metric_label(each.metric)))
    return [f"{LOST} {', '.join(metrics)}: {plain(why)}" for why, metrics in names.items()]


def delta_line(delta: Delta) -> str:
    """One metric in one line, for screens that have no room for a table."""
    return (
        f"{metric_name(delta)}: {phrases.number(delta.a)} → {phrases.number(delta.b)}, "
        f"{phrases.signed(delta.delta)} ({bounds(delta.interval)}), p {chance(corrected(delta))}"
    )


def corrected(delta: Delta) -> float | None:
    """The p-value to read: the corrected one where there is one."""
    return delta.p if delta.p_holm is None else delta.p_holm


def headline(comparison: Comparison) -> str:
    """What came of the comparison, in one sentence."""
    if comparison.counted == 0:
        left = sum(comparison.left_out.values())
        return "no questions compared" + (f": {left} left out" if left else "")
    parts = []
    for about, kinds in (("", comparison.kinds), ("answers: ", comparison.answer_kinds)):
        if any(kinds.values()):
            parts.append(about + ", ".join(_counted(kinds, kind) for kind in _TOLD))
    opening = f"{phrases.count(comparison.counted, 'question')} compared"
    if not parts:
        return f"{opening}: {_evidence(comparison.deltas)}"
    return f"{opening}: {'; '.join([*parts, _evidence(comparison.deltas)])}"


def _evidence(deltas: Sequence[Delta]) -> str:
    """The change of the foremost metric, and whether there is any that is more than chance."""
    known = [each for each in shown_deltas(deltas) if each.delta is not None]
    if not known:
        return "nothing measured in both runs"
    if all(each.delta == 0 for each in known):
        return "no metric differs"
    lead = min(known, key=_standing)
    told = f"{plain(metric_label(lead.metric))} {phrases.signed(lead.delta)}"
    certain = [each for each in known if is_beyond_chance(each)]
    if not certain:
        sizes = {each.n for each in known}
        n = f"n = {max(sizes)}" if len(sizes) == 1 else f"n up to {max(sizes)}"
        return f"{told}; no change that {n} can show"
    worse = sum(each.worse for each in certain)
    tried = sum(each.interval is not None for each in known)
    return (
        f"{told}; {len(certain)} of {phrases.count(tried, 'metric')} changed beyond chance: "
        f"{len(certain) - worse} better, {worse} worse"
    )


def _standing(delta: Delta) -> tuple[bool, bool, int]:
    """The foremost metric comes first: gated, then changed beyond chance, then by what it is."""
    base = delta.metric.partition("@")[0]
    place = _LEADING.index(base) if base in _LEADING else len(_LEADING)
    return not delta.gated, not is_beyond_chance(delta), place


def _counted(kinds: Mapping[Kind, int], kind: Kind) -> str:
    n = kinds.get(kind, 0)
    return f"{n} {kind if n == 1 else PLURALS[kind]}"


def retrieval_line(comparison: Comparison) -> str:
    """How many questions of each kind there are in retrieval."""
    if not comparison.ranked:
        return "retrieval: not compared question by question, as the ranks are not known"
    gone = sum(each.kind is None and each.a_reciprocal is not None for each in comparison.per_query)
    rest = comparison.counted - gone - sum(comparison.kinds.values())
    told = _kinds("retrieval", comparison.kinds, rest, "with nothing expected of retrieval")
    if gone:
        told += f"; {phrases.count(gone, 'question')} without a result in either run"
    return told


def answer_line(comparison: Comparison) -> str:
    """How many questions of each kind there are in answers."""
    rest = comparison.counted - sum(comparison.answer_kinds.values())
    return _kinds("answers", comparison.answer_kinds, rest, "with no answers to compare")


def _kinds(about: str, kinds: Mapping[Kind, int], rest: int, others: str) -> str:
    told = f"{about}: {', '.join(_counted(kinds, kind) for kind in KINDS)}"
    return f"{told}; {phrases.count(rest, 'question')} {others}" if rest > 0 else told


def rung_line(comparison: Comparison) -> str:
    """How expected items were recognised on both sides, with counts."""
    if comparison.recognised is None:
        return "chunker_version_match: not known, as files of scores hold no hits"
    counts = [f"{comparison.rungs[rung]} {rung}" for rung in RUNGS if comparison.rungs.get(rung, 0)]
    return f"chunker_version_match: {comparison.match} ({', '.join(counts) or 'no expected items'})"


def left_out_line(comparison: Comparison) -> str:
    """How many questions were compared, and how many left out for which reason."""
    told = f"{phrases.count(comparison.counted, 'question')} compared"
    left = comparison.left_out
    reasons = ", ".join(f"{left[reason]} {plain(reason)}" for reason in sorted(left))
    return f"{told}, {sum(left.values())} left out{f': {reasons}' if reasons else ''}"


def run_line(letter: str, run: Compared) -> str:
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


def rank(place: int | None, reciprocal: float | None) -> str:
    """A rank or `miss`; of several slots the mean reciprocal rank, as they have no one rank."""
    if place is None and reciprocal:
        return f"RR {reciprocal:.4f}"
    told = "miss" if place is None else str(place)
    one = 1 / place if place else 0.0
    if reciprocal is None or abs(reciprocal - one) < 1e-9:
        return told
    return f"{told} ({reciprocal:.4f})"


def note(query: QueryComparison) -> str:
    """The note of a question, empty if it has none."""
    return plain(query.note or "")


def labelled(label: str, cause: str | None) -> str:
    """A label with what it comes from, where that is known."""
    return label if cause is None else f"{label}: {cause}"


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


def what_happened(query: QueryComparison, about: str) -> str:
    """What came of a question in retrieval or in its answer, in one line."""
    if about == "retrieval":
        told = (
            f"rank {rank(query.a_hit_rank, query.a_reciprocal)} → "
            f"{rank(query.b_hit_rank, query.b_reciprocal)}"
        )
        return f"{told}; {note(query)}" if query.note else told
    answer = query.answer
    assert answer is not None, query.query_id
    told = (
        f"{plain(labelled(answer.a_label, answer.a_cause))} → "
        f"{plain(labelled(answer.b_label, answer.b_cause))}"
    )
    return f"{told}; {flipped(query)}" if flipped(query) else told


class Group(Struct, frozen=True, kw_only=True):
    """The questions of one kind in retrieval or in answers, and how many more there are."""

    kind: Kind
    about: str
    queries: tuple[QueryComparison, ...]
    total: int

    @property
    def more(self) -> int:
        """How many questions are not listed."""
        return self.total - len(self.queries)


def groups(view: ComparisonView, most: int) -> list[Group]:
    """The questions to list, regressions first; all of them, and draws too, if the view is full."""
    found: dict[tuple[Kind, str], list[QueryComparison]] = {
        (kind, about): []
        for kind in KINDS
        if kind != "draw" or view.full
        for about in ("retrieval", "answer")
    }
    for query in view.comparison.per_query:
        answer = None if query.answer is None else query.answer.kind
        for kind, about in ((query.kind, "retrieval"), (answer, "answer")):
            if kind is not None and (kind, about) in found:
                found[kind, about].append(query)
    return [
        Group(
            kind=kind,
            about=about,
            total=len(queries),
            queries=tuple(queries if view.full else queries[:most]),
        )
        for (kind, about), queries in found.items()
        if queries
    ]


def slots_line(listed: Iterable[Group]) -> str | None:
    """What the brackets behind ranks mean; None if no listed question has any."""
    for group in listed:
        for each in group.queries if group.about == "retrieval" else ():
            sides = (each.a_hit_rank, each.a_reciprocal), (each.b_hit_rank, each.b_reciprocal)
            if any("(" in rank(*side) for side in sides):
                return "in brackets behind a rank: the mean reciprocal rank over the slots"
    return None
