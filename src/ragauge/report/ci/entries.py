"""What a verdict tells a CI system: one entry for each gate, and one for each other obstacle."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

from ragauge.model import phrases
from ragauge.model.comparison import ComparisonView
from ragauge.model.verdict import GateResult, Verdict
from ragauge.report.ci.github_commands import Level, command
from ragauge.report.ci.junit_xml import Case
from ragauge.report.comparison import sentences
from ragauge.text import plain

Outcome = Literal["pass", "review", "waived", "fail", "error"]
LEVELS: dict[Outcome, Level] = {
    "fail": "error", "error": "error", "review": "warning", "waived": "notice",
}  # fmt: skip
"""How loud an entry is; a gate that passes says nothing."""


class Ruling(Struct, frozen=True, kw_only=True):
    """One entry: a gate with what it demanded, or a reason for which there can be no verdict."""

    name: str
    outcome: Outcome
    message: str
    kind: str
    result: GateResult | None = None


def rulings(verdict: Verdict) -> list[Ruling]:
    """The gates in their order, then the blocks; a block that is a gate's own is told there."""
    found = [_gate(result) for result in verdict.gates]
    told = {
        f"{phrases.gate_name(result)}: {result.reason}"
        for result in verdict.gates
        if result.code is not None
    }
    return found + [
        Ruling(name=block.code, outcome="error", message=plain(block.message), kind=block.code)
        for block in verdict.blocks
        if block.message not in told
    ]


def _gate(result: GateResult) -> Ruling:
    outcome: Outcome = "error" if result.status == "not-evaluable" else result.status
    outcome = "waived" if result.waived else outcome
    note = phrases.gate_note(result)
    about = "drop " if result.gate.is_drop else ""
    message = (
        f"{about}{phrases.number(result.value)}, demanded {phrases.demand(result)} "
        f"(n = {result.n}){f': {note}' if note else ''}"
    )
    kind = result.code or f"gate-{'failed' if result.status == 'fail' else result.status}"
    return Ruling(
        name=plain(phrases.gate_name(result)),
        outcome=outcome,
        message=plain(message),
        kind=kind,
        result=result,
    )


def decision(view: ComparisonView) -> str | None:
    """What a comparison decides and why, in one line; None where nothing was to be decided."""
    verdict = view.comparison.verdict
    found = forbidden(view)
    if not found:
        if verdict is not None and (view.undecided is None or verdict.exit_code):
            return phrases.headline(verdict)
        if view.undecided is not None:
            return f"{phrases.VERDICTS['not-evaluable']}: {view.undecided} (fail-on)"
        return f"PASS: no {_or_words(view)} (fail-on)" if view.fail_on else None
    if verdict is not None and verdict.exit_code:
        return f"{phrases.headline(verdict)}; {found} (fail-on)"
    return f"{phrases.VERDICTS['fail']}: {found} (fail-on)"


def forbidden(view: ComparisonView) -> str:
    """How many questions there are of the kinds that may not be; nothing if there are none."""
    return " and ".join(
        f"{n} {kind if n == 1 else sentences.PLURALS[kind]}"
        for kind, n in view.fail_on.items()
        if n
    )


def questions_case(view: ComparisonView, group: str) -> tuple[Case, ...]:
    """The demand on questions as a test; none if there is no such demand."""
    if not view.fail_on:
        return ()
    found = forbidden(view)
    name = f"no {_or_words(view)}"
    if not found and view.undecided is not None:
        return (
            Case(
                group=group,
                name=name,
                outcome="error",
                kind="incomparable",
                message=f"{name}: {view.undecided} (fail-on)",
            ),
        )
    if not found:
        return (Case(group=group, name=name, outcome="passed"),)
    return (
        Case(
            group=group,
            name=name,
            outcome="failure",
            kind="fail-on",
            message=f"{name}: {found} (fail-on)",
        ),
    )


def _or_words(view: ComparisonView) -> str:
    return " or ".join(sentences.PLURALS[kind] for kind in view.fail_on)


def cases(verdict: Verdict, group: str) -> tuple[Case, ...]:
    """The entries as tests: a waived gate and one under review pass, and say so."""
    return tuple(_case(each, group) for each in rulings(verdict))


def _case(ruling: Ruling, group: str) -> Case:
    result = ruling.result
    name = ruling.name if result is None else f"{ruling.name} {phrases.demand(result)}"
    told = f"{ruling.name}: {ruling.message}"
    quiet = ruling.outcome in ("pass", "review", "waived")
    aside = [f"{ruling.outcome}: {told}"] if ruling.outcome in ("review", "waived") else []
    numbers = [] if result is None else _numbers(ruling.outcome, result)
    return Case(
        group=group,
        name=plain(name),
        kind="" if quiet else ruling.kind,
        outcome="passed" if quiet else "failure" if ruling.outcome == "fail" else "error",
        message="" if quiet else told,
        output="\n".join([*aside, *numbers]),
    )


def _numbers(outcome: Outcome, result: GateResult) -> list[str]:
    gate = result.gate
    pairs = [
        ("metric", gate.metric),
        ("verdict", "waived" if outcome == "waived" else result.status),
        ("value", phrases.number(result.value)),
        ("demand", phrases.demand(result)),
        ("margin", phrases.margin(result)),
        ("n", str(result.n)),
        ("interval", phrases.interval(result.interval)),
        ("origin", gate.origin),
    ]
    if gate.part is not None:
        pairs.append(("slice", gate.part))
    return [f"{name}: {plain(value)}" for name, value in pairs]


def annotated(verdict: Verdict, level: Level) -> list[str]:
    """The entries of one level as workflow commands, without a file: they are about the run."""
    return [
        command(
            level,
            each.message,
            title=f"ragauge gate {each.name}: {_SAID[each.outcome]}"
            if each.result is not None
            else f"ragauge: {each.name}",
        )
        for each in rulings(verdict)
        if LEVELS.get(each.outcome) == level
    ]


_SAID: dict[Outcome, str] = {
    "pass": "pass", "review": "review", "waived": "waived", "fail": "fail",
    "error": "not evaluable",
}  # fmt: skip
