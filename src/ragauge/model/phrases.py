"""How numbers, gates and verdicts are worded, the same in every report.

It also chooses what tables show and in which order: Markdown and terminal must not disagree.
"""

from __future__ import annotations

from ragauge.codes import ExitCode
from ragauge.metrics.metric import Metric
from ragauge.model.labels import GOOD, LABELS
from ragauge.model.metric_names import metric_label
from ragauge.model.scores import MetricResult, QuestionList, Scores, SliceResult
from ragauge.model.verdict import GateResult, Verdict
from ragauge.stats.intervals import Interval
from ragauge.text import plain

VERDICTS = {"pass": "PASS", "review": "REVIEW", "fail": "FAIL", "not-evaluable": "NOT EVALUABLE"}


AGGREGATE_PHRASES = {
    "mean": "the mean over questions",
    "ratio": "one sum over the other, each question with its mean",
    "share": "one count of the run over another",
    "sum": "the sum over all records",
    "median": "the median over questions",
    "p90": "the 90th percentile over questions",
    "p95": "the 95th percentile over questions",
}
"""How the values of questions become one number."""


def null_rule(metric: Metric) -> str:
    """When a metric is null."""
    if metric.share is not None:
        return "null where no trace was read"
    if metric.ratio is not None:
        return "null where the population is empty, or nothing was or should be refused"
    if metric.of_question is not None:
        return "null where no question is in the population"
    return "null where no record is in the population"


def exclusion_reasons(metric: Metric) -> list[str]:
    """The reasons for which a record (or question) can be excluded from a metric."""
    reasons = [requirement.reason for requirement in metric.over.requires]
    return list(dict.fromkeys([*reasons, *([metric.undefined] if metric.undefined else [])]))


def number(value: float | None) -> str:
    """A value with four decimals, or a dash for 0/0."""
    return "-" if value is None else f"{value + 0.0:.4f}"  # the sum turns -0.0 into 0.0


def interval(bounds: Interval | None) -> str:
    """A 95 % interval, which may be open on one side."""
    low, high = bounds or (None, None)
    if low is not None and high is not None:
        return f"{low:.4f} to {high:.4f}"
    if low is not None:
        return f"{low:.4f} or more"
    return "-" if high is None else f"{high:.4f} or less"


def metric_note(result: MetricResult) -> str:
    """Why a value is undefined, or what was excluded from it."""
    if result.value is None:
        default = "" if result.default is None else f"; the source prints {result.default:g}"
        return f"0/0: {result.left_out or result.reason}{default}"
    return "; ".join(filter(None, (result.note, result.left_out)))


def metric_head(metric_id: str) -> str:
    """What a metric is called above a narrow column: in two lines where its name has two parts."""
    label = metric_label(metric_id)
    if label == metric_id:
        return label.replace(".", ".\n", 1)
    return label.replace(" ", "\n", 1)


def gate_name(result: GateResult) -> str:
    """The gate's title, or its name."""
    return result.gate.title or result.gate.name


def threshold_text(result: GateResult) -> str:
    """The gate's threshold as it was written, with its sign."""
    return f"{result.gate.sign} {result.gate.given}"


def margin(result: GateResult) -> str:
    """How far the value is on the good side, with its sign."""
    return signed_number(result.margin)


def gate_cells(result: GateResult) -> tuple[str, ...]:
    """The row of a gate: name, value, threshold, margin, n, smallest detectable change, status."""
    return (
        gate_name(result),
        number(result.value),
        threshold_text(result),
        margin(result),
        str(result.n),
        number(result.detectable),
        "waived" if result.waived else result.status,
    )


def signed_number(value: float | None) -> str:
    """A difference with its sign and four decimals; never a zero that is none."""
    if value is None:
        return "-"
    if value and abs(value) < 0.00005:
        return f"{value:+.0e}"
    return f"{value + 0.0:+.4f}"


def count(n: int, noun: str) -> str:
    """A number with its noun."""
    return f"{n} {noun}" if n == 1 else f"{n} {noun}s"


def run_summary(scores: Scores) -> str:
    """What was scored, in one line."""
    return (
        f"profile {scores.profile}, {count(scores.tally.gold, 'question')}, "
        f"{count(scores.tally.scored, 'trace')} scored"
    )


def gate_origins(verdict: Verdict) -> list[str]:
    """Where gates come from that are not the profile's own."""
    by_origin: dict[str, list[str]] = {}
    for result in verdict.gates:
        if not result.gate.origin.startswith("profile "):
            # By the name that stands there, not by the label: this is where to change it.
            by_origin.setdefault(result.gate.origin, []).append(result.gate.name)
    return [f"from {origin}: {', '.join(names)}" for origin, names in by_origin.items()]


def gate_note(result: GateResult) -> str:
    """What else there is to say of a gate."""
    return "; ".join(filter(None, (result.waived or result.reason, result.caution)))


def percent(share: float) -> str:
    """A chance in words: 3.1 %; below one in a thousand it is only said to be so."""
    if share < 0.001:
        return "under 0.1 %"
    return "over 99.9 %" if share > 0.999 else f"{100 * share:.1f} %"


def chance_line(result: GateResult) -> str | None:
    """How often a gate decides wrongly at this n; None where that is not known."""
    chances = result.chances
    if chances is None:
        return None
    kind = "drop" if result.gate.is_drop else "level"
    parts = [f"fails an unchanged system in {percent(chances.fails_unchanged)} of runs"]
    if chances.reviews_unchanged >= 0.0005:
        parts[0] += f" (review: {percent(chances.reviews_unchanged)})"
    if chances.worse is not None and chances.passes_worse is not None:
        true = "one that dropped by" if kind == "drop" else "one at"
        text = f"passes {true} {chances.worse:.4f} in {percent(chances.passes_worse)}"
        if chances.reviews_worse is not None and chances.reviews_worse >= 0.0005:
            text += f" (review: {percent(chances.reviews_worse)})"
        parts.append(text)
    if result.gate.policy == "confident-pass":
        best = "no change at all" if kind == "drop" else "a perfect score"
        parts.append(
            f"{best} can pass from n = {chances.perfect_from} on"
            if chances.perfect_from is not None
            else f"not even {best} can pass, at any n"
        )
    return f"{result.gate.policy}, n = {result.n}: {'; '.join(parts)}"


CHANCE_HEADS = ("gate", "policy", "unchanged fails", "one at", "passes", "perfect from")
"""The columns of how often gates decide wrongly."""
CHANCE_NOTE = (
    "At this n: how often a gate fails a system that did not change, and passes one that lies the "
    "smallest detectable change beyond the threshold; from which n a perfect score can pass."
)


def chance_rows(verdict: Verdict) -> list[tuple[str, ...]]:
    """The rows below those heads: the gates whose chances are known."""
    rows: list[tuple[str, ...]] = []
    for result in verdict.gates:
        chances = result.chances
        if chances is None:
            continue
        perfect = "-"
        if result.gate.policy == "confident-pass":
            perfect = "never" if chances.perfect_from is None else f"n = {chances.perfect_from}"
        rows.append(
            (
                gate_name(result),
                result.gate.policy,
                _chance(chances.fails_unchanged, chances.reviews_unchanged),
                number(chances.worse),
                _chance(chances.passes_worse, chances.reviews_worse),
                perfect,
            )
        )
    return rows


def _chance(share: float | None, review: float | None) -> str:
    if share is None:
        return "-"
    text = percent(share)
    return f"{text} (review {percent(review)})" if review is not None and review >= 0.0005 else text


def verdict_headline(verdict: Verdict) -> str:
    """The verdict in one line."""
    if not verdict.gates and not verdict.blocks:
        return "no gates: nothing was decided"
    if verdict.exit_code == ExitCode.NOTHING_MEASURED:
        return f"NOTHING MEASURED: {verdict.blocks[0].message}"
    not_waived = [result for result in verdict.gates if not result.waived]
    failed = [gate_name(result) for result in not_waived if result.status == "fail"]
    if verdict.blocks:
        reasons = [block.message for block in verdict.blocks]
        if failed:
            reasons.append(f"failed: {', '.join(failed)}")
        return f"{VERDICTS[verdict.status]}: {'; '.join(reasons)}"
    names = failed or [gate_name(result) for result in not_waived if result.status == "review"]
    word = VERDICTS[verdict.status]
    if verdict.status == "review" and verdict.exit_code == ExitCode.GATE_FAILED:
        word += " (fails by --fail-on-review)"
    return f"{word}: {', '.join(names)}" if names else word


def questions_needing_attention(scores: Scores) -> QuestionList:
    """The questions that need attention, the worst labels first, each label in gold order.

    Where nothing was answered, that a question has no answer says nothing of it; what its hits
    lack does.
    """
    labels, causes = scores.questions.labels, scores.questions.causes
    silent = not scores.tally.answered and not scores.tally.refused
    fine = {*GOOD, "NO_ANSWER", "UNLABELLED"} if silent else {*GOOD}
    bad = [
        place
        for place, label in enumerate(labels)
        if label not in fine or (silent and label not in GOOD and causes[place] is not None)
    ]
    bad.sort(key=lambda place: -LABELS.index(labels[place]))
    # Mostly the first few are shown: of a large gold set there may be hundreds of thousands.
    return QuestionList(
        [labels[place] for place in bad],
        lambda index: scores.questions[bad[index]],
        causes=[causes[place] for place in bad],
    )


def labelled(label: str, cause: str | None) -> str:
    """A label with what it comes from, where that is known."""
    return label if cause is None else f"{label}: {cause}"


def question_name(qid: str, turn: int | None) -> str:
    """A question's id, safe to show, with its turn where it is one of a conversation."""
    name = plain(qid)
    return name if turn is None else f"{name} turn {turn}"


def listed_metrics(scores: Scores, verdict: Verdict) -> dict[str, MetricResult]:
    """The metrics that are shown one by one: those with a value, and those with a gate."""
    gated = {result.gate.metric for result in verdict.gates}
    return {
        name: result
        for name, result in scores.metrics.items()
        if result.value is not None or result.default is not None or name in gated
    }


def undefined_metric_lines(scores: Scores, verdict: Verdict) -> list[str]:
    """The other metrics, by the reason for which they have no value."""
    in_table = listed_metrics(scores, verdict)
    by_reason: dict[str, dict[str, None]] = {}
    for name, result in scores.metrics.items():
        if name not in in_table:
            labels = by_reason.setdefault(result.reason or "", {})
            labels[metric_label(name.partition("@")[0])] = None  # all cut-offs once
    return [f"0/0 ({reason}): {', '.join(labels)}" for reason, labels in sorted(by_reason.items())]


def count_lines(scores: Scores) -> list[str]:
    """The counts behind refusal as a classification, λ and zones of ΔS, where there are any."""
    lines = []
    if any(number for case, number in scores.confusion.items() if "to be refused" in case):
        cases = "; ".join(f"{case}: {number}" for case, number in scores.confusion.items())
        lines.append(f"records {cases}")
    if scores.refusal_rules:
        rules = ", ".join(f"{number} by {rule}" for rule, number in scores.refusal_rules.items())
        lines.append(f"refusals: {rules}")
    for kind, states in scores.states.items():
        counts = ", ".join(f"{state} {number}" for state, number in states.items())
        lines.append(f"questions by λ, {kind}: {counts}")
    semantic = scores.semantic
    if semantic is not None and any(semantic.zones.values()):
        zones = ", ".join(f"{zone} {number}" for zone, number in semantic.zones.items())
        ends = f"stable below {semantic.bands.stable:.2f}, risk from {semantic.bands.risk:.2f}"
        lines.append(f"questions by zone of ΔS: {zones} ({ends})")
    return lines


def listed_slices(scores: Scores) -> dict[str, dict[str, SliceResult]]:
    """The parts that tables show: of sections and documents only dimensions with a value in them.

    Every gold set has documents, mostly of one or two questions; JSON has them all.
    """
    least = scores.options.min_n
    return {
        dimension: parts
        for dimension, parts in scores.slices.items()
        if dimension not in ("section", "document")
        or any(part.n >= least for part in parts.values())
    }


_USUAL_IN_SLICES = (
    "answer.precision", "answer.grounded_precision", "answer.coverage", "retrieval.recall@5",
    "retrieval.precision@5", "retrieval.hit@5",
)  # fmt: skip
SLICE_COLUMNS = 4
"""Metrics that a table of slices shows: the gated ones first."""


def slice_metrics(scores: Scores, verdict: Verdict) -> list[str]:
    """The metrics that tables of slices show; JSON has all of them."""
    gated = [result.gate.metric for result in verdict.gates]
    rest = [name for name in scores.metrics if not name.startswith("run.")]
    valued = [
        name
        for name in dict.fromkeys([*gated, *_USUAL_IN_SLICES, *rest])
        if name in scores.metrics and scores.metrics[name].value is not None
    ]
    return valued[:SLICE_COLUMNS]
