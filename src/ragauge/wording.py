"""How numbers, gates and verdicts are worded, the same in every report."""

from __future__ import annotations

from ragauge.model.aggregate import MetricResult, QuestionResult, Scores
from ragauge.model.labels import GOOD, LABELS
from ragauge.model.verdict import GateResult, Verdict

VERDICTS = {
    "pass": "PASS",
    "review": "REVIEW",
    "fail": "FAIL",
    "not-evaluable": "NOT EVALUABLE",
}


def number(value: float | None) -> str:
    """A value with four decimals, or a dash for 0/0."""
    return "-" if value is None else f"{value + 0.0:.4f}"


def interval(bounds: tuple[float, float] | None) -> str:
    """A 95 % interval."""
    return "-" if bounds is None else f"{bounds[0]:.4f} to {bounds[1]:.4f}"


def metric_note(result: MetricResult) -> str:
    """Why a value is undefined, or what was left out of it."""
    if result.value is None:
        default = "" if result.default is None else f"; the source prints {result.default:g}"
        return f"0/0: {result.reason}{default}"
    return ", ".join(f"{count} {reason}" for reason, count in result.excluded.items())


def gate_name(result: GateResult) -> str:
    """The gate's title, or its name."""
    return result.gate.title or result.gate.name


def demand(result: GateResult) -> str:
    """What the gate demands."""
    return f"{result.gate.sign} {result.gate.given}"


def margin(result: GateResult) -> str:
    """How far the value is on the good side, with its sign."""
    return "-" if result.margin is None else f"{result.margin + 0.0:+.4f}"


def gate_note(result: GateResult) -> str:
    """What else there is to say of a gate."""
    return result.waived or result.reason or ""


def headline(verdict: Verdict) -> str:
    """The verdict in one line."""
    if not verdict.gates and not verdict.blocks:
        return "no gates: nothing was decided"
    parts = [VERDICTS[verdict.status]]
    failed = [
        gate_name(each) for each in verdict.gates if each.status == "fail" and not each.waived
    ]
    if failed:
        parts.append(f"failed: {', '.join(failed)}")
    parts += [block.message for block in verdict.blocks]
    parts += [
        f"{gate_name(each)}: {each.reason}"
        for each in verdict.gates
        if each.status == "not-evaluable" and not each.waived
    ]
    return " - ".join(parts)


def to_look_at(scores: Scores, most: int) -> list[QuestionResult]:
    """The questions to look at first: the worst labels, in gold order."""
    bad = [each for each in scores.questions if each.label not in GOOD]
    return sorted(bad, key=lambda each: -LABELS.index(each.label))[:most]
