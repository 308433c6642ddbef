"""How numbers, gates and verdicts are worded, the same in every report."""

from __future__ import annotations

from ragauge.errors import ExitCode
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
        return f"0/0: {result.left_out or result.reason}{default}"
    return result.left_out


def gate_name(result: GateResult) -> str:
    """The gate's title, or its name."""
    return result.gate.title or result.gate.name


def demand(result: GateResult) -> str:
    """What the gate demands."""
    return f"{result.gate.sign} {result.gate.given}"


def margin(result: GateResult) -> str:
    """How far the value is on the good side, with its sign; never a zero that is none."""
    if result.margin is None:
        return "-"
    if result.margin and abs(result.margin) < 0.00005:
        return f"{result.margin:+.0e}"
    return f"{result.margin + 0.0:+.4f}"


def count(n: int, noun: str) -> str:
    """A number with its noun."""
    return f"{n} {noun}" if n == 1 else f"{n} {noun}s"


def opening(scores: Scores) -> str:
    """What was scored, in one line."""
    return (
        f"profile {scores.profile}, {count(scores.tally.gold, 'question')}, "
        f"{count(scores.tally.scored, 'trace')} scored"
    )


def origins(verdict: Verdict) -> list[str]:
    """Where gates come from that are not the profile's own."""
    found: dict[str, list[str]] = {}
    for result in verdict.gates:
        if not result.gate.origin.startswith("profile "):
            found.setdefault(result.gate.origin, []).append(result.gate.name)
    return [f"from {origin}: {', '.join(names)}" for origin, names in found.items()]


def gate_note(result: GateResult) -> str:
    """What else there is to say of a gate."""
    return result.waived or result.reason or ""


def headline(verdict: Verdict) -> str:
    """The verdict in one line."""
    if not verdict.gates and not verdict.blocks:
        return "no gates: nothing was decided"
    if verdict.exit_code == ExitCode.NOTHING_MEASURED:
        return f"NOTHING MEASURED: {verdict.blocks[0].message}"
    open_gates = [each for each in verdict.gates if not each.waived]
    failed = [gate_name(each) for each in open_gates if each.status == "fail"]
    if verdict.blocks:
        reasons = [block.message for block in verdict.blocks]
        if failed:
            reasons.append(f"failed: {', '.join(failed)}")
        return f"{VERDICTS[verdict.status]}: {'; '.join(reasons)}"
    named = failed or [gate_name(each) for each in open_gates if each.status == "review"]
    return f"{VERDICTS[verdict.status]}: {', '.join(named)}" if named else VERDICTS[verdict.status]


def to_look_at(scores: Scores, most: int) -> list[QuestionResult]:
    """The questions to look at first: the worst labels, in gold order."""
    bad = [each for each in scores.questions if each.label not in GOOD]
    return sorted(bad, key=lambda each: -LABELS.index(each.label))[:most]
