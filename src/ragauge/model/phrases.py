"""How numbers, gates and verdicts are worded, the same in every report.

It also chooses what tables show and in which order: Markdown and terminal must not disagree.
"""

from __future__ import annotations

from ragauge.codes import ExitCode
from ragauge.metrics.metric import Metric
from ragauge.model.labels import GOOD, LABELS
from ragauge.model.metric_names import metric_label
from ragauge.model.scores import (
    PLACE_UNKNOWN,
    MetricResult,
    QuestionList,
    Scores,
    SliceResult,
    StageDelta,
)
from ragauge.model.verdict import DamagedQuestion, GateResult, Verdict
from ragauge.stats.intervals import Interval
from ragauge.text import plain

VERDICTS = {
    "not-judged": "NOT JUDGED",
    "pass": "PASS",
    "review": "REVIEW",
    "fail": "FAIL",
    "not-evaluable": "NOT EVALUABLE",
}


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


def metric_number(result: MetricResult | None) -> str:
    """The value of a metric, or its least and its greatest one; a dash for neither."""
    if result is None or result.band is None:
        return number(None if result is None else result.value)
    low, high = result.band
    return f"{number(low)} … {number(high)}"


def interval(bounds: Interval | None) -> str:
    """A 95 % interval, which may be open on one side."""
    low, high = bounds or (None, None)
    if low is not None and high is not None:
        return f"{low:.4f} to {high:.4f}"
    if low is not None:
        return f"{low:.4f} or more"
    return "-" if high is None else f"{high:.4f} or less"


_PLACE_NOTE = "place unknown"


def metric_interval(result: MetricResult) -> str:
    """The 95 % interval of a metric, or that there is none as its evidence may stand anywhere."""
    return _PLACE_NOTE if result.reason == PLACE_UNKNOWN else interval(result.interval)


def metric_note(result: MetricResult) -> str:
    """Why a value is undefined, or what was excluded from it."""
    if result.reason == PLACE_UNKNOWN:
        return "; ".join(filter(None, (result.note, result.left_out)))
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
    stage = " on the hits before the reranker" if scores.stage == "first" else ""
    return (
        f"profile {scores.profile}, {count(scores.tally.gold, 'question')}, "
        f"{count(scores.tally.scored, 'trace')} scored{stage}"
    )


STAGE_HEADS = ("reranked", "first", "last", "change", "better", "worse", "n")


def stage_cells(delta: StageDelta) -> tuple[str, ...]:
    """The row of a metric before and after a reranker."""
    return (
        metric_label(delta.metric),
        number(delta.first),
        number(delta.last),
        signed_number(delta.last - delta.first),
        str(delta.better),
        str(delta.worse),
        str(delta.n),
    )


def gate_origins(verdict: Verdict) -> list[str]:
    """Where gates come from that are not the profile's own."""
    by_origin: dict[str, list[str]] = {}
    for result in verdict.gates:
        if not result.gate.origin.startswith("profile "):
            # By the name that stands there, not by the label: this is where to change it.
            names = by_origin.setdefault(result.gate.origin, [])
            if result.gate.name not in names:  # against several baselines it is one gate
                names.append(result.gate.name)
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


CHANCE_HEADS = ("gate", "policy", "unchanged fails", "worse at", "passes", "perfect from")
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
    line = f"{word}: {', '.join(names)}" if names else word
    return f"{line}{unjudged_note(verdict)}"


def unjudged_note(verdict: Verdict) -> str:
    """The gates that left the verdict, and why, to stand behind it; empty where there are none."""
    unjudged = verdict.unjudged
    if not unjudged:
        return ""
    reasons = "; ".join(dict.fromkeys(result.reason or "" for result in unjudged))
    return f" (not judged: {', '.join(map(gate_name, unjudged))}: {reasons})"


MOST_DAMAGED = 20
"""Questions that made a gate fail, of each gate, where not all are listed."""


def failed_drops(verdict: Verdict | None) -> list[GateResult]:
    """The gates on a drop that failed, and of which it is known by what questions."""
    results = () if verdict is None else verdict.gates
    return [one for one in results if one.gate.is_drop and one.damage and not one.waived]


def damage_title(result: GateResult) -> str:
    """What a list of such questions is of, and how many there are."""
    return f"made {gate_name(result)} fail ({len(result.damage):,})"


DAMAGE_HEADS = ("value", "share", "lost")


def damage_cells(question: DamagedQuestion) -> tuple[str, str, str, str]:
    """A question that made a gate fail: its name, values, share of the damage, what it lost."""
    value = number(question.value)
    if question.before is not None:
        value = f"{number(question.before)} → {value}"
    name = question_name(question.query_id, question.turn)
    return name, value, f"{100 * question.share:.1f} %", ", ".join(map(plain, question.lost))


def damage_line(result: GateResult, question: DamagedQuestion) -> str:
    """The same in one line, with the gate."""
    name, value, share, lost = damage_cells(question)
    line = f"{name}: {gate_name(result)}, {value}, {share} of the damage"
    return f"{line}; lost {lost}" if lost else line


def damage_notes(verdict: Verdict | None) -> dict[tuple[str, int | None], str]:
    """What questions did to gates on a drop that failed: of each the gate, values and losses."""
    notes: dict[tuple[str, int | None], list[str]] = {}
    for result in failed_drops(verdict):
        for question in result.damage:
            key = question.query_id, question.turn
            notes.setdefault(key, []).append(damage_line(result, question).partition(": ")[2])
    return {key: "; ".join(lines) for key, lines in notes.items()}


def damage_of(verdict: Verdict | None) -> dict[tuple[str, int | None], tuple[str, float]]:
    """The questions that made gates fail, the worst first: by which of them, and their share.

    A question that made several fail is named with the gate that it has the largest share of.
    """
    shares: dict[tuple[str, int | None], tuple[str, float]] = {}
    for result in () if verdict is None else verdict.gates:
        for question in () if result.waived else result.damage:
            key = question.query_id, question.turn
            if question.share > shares.get(key, ("", 0.0))[1]:
                shares[key] = gate_name(result), question.share
    return dict(sorted(shares.items(), key=lambda item: -item[1][1]))


def questions_needing_attention(scores: Scores, verdict: Verdict | None = None) -> QuestionList:
    """The questions that need attention, the worst labels first, each label in gold order.

    Those that made a gate fail come before all others, by their share of the damage.

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
    damaged = damage_of(verdict)
    if damaged and scores.per_question is not None:
        values = scores.per_question
        keys = zip(values.qids, values.turns, strict=True)
        places = {key: place for place, key in enumerate(keys) if key in damaged}
        first = [places[key] for key in damaged if key in places]
        bad = list(dict.fromkeys([*first, *bad]))
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
        if result.value is not None
        or result.band is not None
        or result.default is not None
        or name in gated
    }


def undefined_metric_lines(scores: Scores, verdict: Verdict) -> list[str]:
    """The other metrics, by the reason for which they have no value."""
    in_table = listed_metrics(scores, verdict)
    by_reason: dict[str, dict[str, None]] = {}
    for name, result in scores.metrics.items():
        if name not in in_table:
            labels = by_reason.setdefault(result.reason or "", {})
            labels[metric_label(name.partition("@")[0])] = None  # all cut-offs once
    lines = []
    for reason, labels in sorted(by_reason.items()):
        why = _PLACE_NOTE if reason == PLACE_UNKNOWN else f"0/0 ({reason})"
        lines.append(f"{why}: {', '.join(labels)}")
    return lines


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
        if name in scores.metrics
        and (scores.metrics[name].value is not None or scores.metrics[name].band is not None)
    ]
    return valued[:SLICE_COLUMNS]
