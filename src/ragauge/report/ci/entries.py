"""A verdict for CI systems: an entry for each gate and each other obstacle.

JUnit, annotations and code quality only write these entries down, so they cannot disagree.
"""

from __future__ import annotations

from typing import Literal

from msgspec import Struct
from msgspec.structs import replace

from ragauge.codes import ExitCode
from ragauge.model import phrases
from ragauge.model.comparison import ComparisonView, KindCheck
from ragauge.model.verdict import GateResult, Status, Verdict
from ragauge.report.ci.github_commands import Level, command
from ragauge.report.ci.junit_xml import Case
from ragauge.report.comparison import sentences
from ragauge.text import plain

Outcome = Literal["pass", "review", "waived", "not-judged", "fail", "error"]
LEVELS: dict[Outcome, Level] = {
    "fail": "error", "error": "error", "review": "warning", "waived": "notice",
    "not-judged": "notice",
}  # fmt: skip
"""How loud an entry is; a gate that passes says nothing."""


_OUTCOMES: dict[Status, Outcome] = {
    "not-judged": "not-judged", "pass": "pass", "review": "review", "fail": "fail",
    "not-evaluable": "error",
}  # fmt: skip


class VerdictEntry(Struct, frozen=True, kw_only=True):
    """One entry: a gate with its threshold, or a reason for which there can be no verdict."""

    name: str
    outcome: Outcome
    message: str
    kind: str
    result: GateResult | None = None


def verdict_entries(verdict: Verdict) -> list[VerdictEntry]:
    """The gates in their order, then the blocks; a block that only repeats a gate is no entry."""
    strict = verdict.status == "review" and verdict.exit_code != ExitCode.PASS
    entries = [_gate(result, fail_on_review=strict) for result in verdict.gates]
    gate_messages = {
        f"{phrases.gate_name(result)}: {result.reason}"
        for result in verdict.gates
        if result.code is not None
    }
    return entries + [
        VerdictEntry(
            name=block.code, outcome="error", message=plain(block.message), kind=block.code
        )
        for block in verdict.blocks
        if block.message not in gate_messages
    ]


def _gate(result: GateResult, *, fail_on_review: bool) -> VerdictEntry:
    outcome = _OUTCOMES[result.status]
    if outcome == "review" and fail_on_review:
        outcome = "fail"
    outcome = "waived" if result.waived else outcome
    note = phrases.gate_note(result)
    about = "drop " if result.gate.is_drop else ""
    message = (
        f"{about}{phrases.number(result.value)}, demanded {phrases.threshold_text(result)} "
        f"(n = {result.n}){f': {note}' if note else ''}"
    )
    kind = result.code or f"gate-{'failed' if result.status == 'fail' else result.status}"
    return VerdictEntry(
        name=plain(phrases.gate_name(result)),
        outcome=outcome,
        message=plain(message),
        kind=kind,
        result=result,
    )


def decision(view: ComparisonView) -> str | None:
    """What a comparison decides and why, in one line; None where nothing was to be decided."""
    verdict = view.comparison.verdict
    counts = fail_on_counts(view)
    if not counts:
        if verdict is not None and (view.undecided is None or verdict.exit_code):
            return phrases.verdict_headline(verdict)
        if view.undecided is not None:
            return f"{phrases.VERDICTS['not-evaluable']}: {view.undecided} (fail-on)"
        return f"PASS: {_passed(view)} (fail-on)" if view.fail_on else None
    if verdict is not None and verdict.exit_code:
        return f"{phrases.verdict_headline(verdict)}; {counts} (fail-on)"
    return f"{phrases.VERDICTS['fail']}: {counts} (fail-on)"


def fail_on_counts(view: ComparisonView) -> str:
    """How many questions there are of the kinds that `--fail-on` forbids; empty if none fails."""
    words = (_check_words(check) for check in view.fail_on if check.failed)
    return " and ".join(dict.fromkeys(words))


def _check_words(check: KindCheck) -> str:
    """How many questions, and what is let pass of them."""
    counts = [
        f"{n} {kind if n == 1 else sentences.PLURALS[kind]}" for kind, n in check.kinds.items() if n
    ]
    counts += [f"{n} {kind} (by document)" for kind, n in check.doc_kinds.items() if n]
    words = " and ".join(counts)
    if check.explained and check.p is not None:
        words += f", {check.explained} within the noise of run a (p = {check.p:.4f})"
    return f"{words}, {check.allowed} allowed" if check.allowed else words


def _passed(view: ComparisonView) -> str:
    listed = [check for check in view.fail_on if check.questions]
    if not listed:
        return f"no {_or_words(view)}"
    return " and ".join(map(_check_words, listed))


def fail_on_cases(view: ComparisonView, group: str) -> tuple[Case, ...]:
    """`--fail-on` as a test; none if it was not asked for."""
    if not view.fail_on:
        return ()
    counts = fail_on_counts(view)
    name = f"no {_or_words(view)}"
    case = Case(group=group, name=name)
    if counts:
        message = f"{name}: {counts} (fail-on)"
        case = replace(case, outcome="failure", kind="fail-on", message=message)
    elif view.undecided is not None:
        message = f"{name}: {view.undecided} (fail-on)"
        case = replace(case, outcome="error", kind="incomparable", message=message)
    return (case,)


def _or_words(view: ComparisonView) -> str:
    kinds = dict.fromkeys(kind for check in view.fail_on for kind in check.kinds)
    return " or ".join(sentences.PLURALS[kind] for kind in kinds)


def gate_cases(verdict: Verdict, group: str) -> tuple[Case, ...]:
    """The entries as tests: gates that are waived, under review or not judged pass, and say so."""
    return tuple(_case(entry, group) for entry in verdict_entries(verdict))


def _case(entry: VerdictEntry, group: str) -> Case:
    result = entry.result
    name = entry.name if result is None else f"{entry.name} {phrases.threshold_text(result)}"
    message = f"{entry.name}: {entry.message}"
    quiet = entry.outcome not in ("fail", "error")
    notes = [f"{entry.outcome}: {message}"] if quiet and entry.outcome != "pass" else []
    numbers = [] if result is None else _numbers(entry.outcome, result)
    return Case(
        group=group,
        name=plain(name),
        kind="" if quiet else entry.kind,
        outcome="passed" if quiet else "failure" if entry.outcome == "fail" else "error",
        message="" if quiet else message,
        output="\n".join([*notes, *numbers]),
    )


def _numbers(outcome: Outcome, result: GateResult) -> list[str]:
    gate = result.gate
    pairs = [
        ("metric", gate.metric),
        ("verdict", "waived" if outcome == "waived" else result.status),
        ("value", phrases.number(result.value)),
        ("demand", phrases.threshold_text(result)),
        ("policy", gate.policy),
        ("margin", phrases.margin(result)),
        ("n", str(result.n)),
        ("interval", phrases.interval(result.interval)),
        ("origin", gate.origin),
    ]
    if gate.part is not None:
        pairs.append(("slice", gate.part))
    if (chances := phrases.chance_line(result)) is not None:
        pairs.append(("chances", chances))
    return [f"{name}: {plain(value)}" for name, value in pairs]


def gate_annotations(verdict: Verdict, level: Level) -> list[str]:
    """The entries of one level as workflow commands, without a file: they are about the run."""
    lines = []
    for entry in verdict_entries(verdict):
        if LEVELS.get(entry.outcome) == level:
            outcome = {"error": "not evaluable", "not-judged": "not judged"}.get(
                entry.outcome, entry.outcome
            )
            is_gate = entry.result is not None
            title = f" gate {entry.name}: {outcome}" if is_gate else f": {entry.name}"
            lines.append(command(level, entry.message, title=f"ragauge{title}"))
    return lines
