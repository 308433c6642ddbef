"""A shadow verdict in words: tables for the terminal, Markdown for a pull request, and JSON."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from ragauge.model import phrases, scores_document
from ragauge.model.agreement import SAME_CITATIONS, Agreement, AgreementFigure, DifferingSlot
from ragauge.model.comparison import Delta
from ragauge.model.metric_names import metric_label
from ragauge.model.scores_document import rounded, rounded_pair, verdict_document
from ragauge.model.shadow import SCHEMA, FailedGate, ShadowReport, ShadowSlice
from ragauge.report import markdown
from ragauge.report.comparison import sentences
from ragauge.report.diagnosis import headline as finding_headline
from ragauge.report.diagnosis import markdown_findings, witness_document, witness_line
from ragauge.report.terminal.console import COLORS, Screen, plain_table
from ragauge.text import plain

_HEADS = ("metric", "live", "shadow", "Δ", "95 % interval", "n")
_OF_FINDING = ("id", "title", "affected", "was", "rose", "step")
_DECIDED = {
    "eligible": "eligible for canary",
    "review": "eligible for canary after review",
    "not-eligible": "not eligible for canary",
    "not-evaluable": "cannot be judged",
}


def headline(report: ShadowReport) -> str:
    """What was decided, and by which gates or blocks."""
    decision = _DECIDED[report.decision]
    beside = phrases.unjudged_note(report.verdict)
    reasons = phrases.verdict_headline(report.verdict).removesuffix(beside).partition(": ")[2]
    decision = f"{decision}: {reasons}{beside}" if reasons else f"{decision}{beside}"
    if report.unjudged:
        decision += f" (index only; not judged: {', '.join(report.unjudged)})"
    return decision


def agreement_lines(agreement: Agreement) -> list[str]:
    """What the two runs have in common, a line for each figure."""
    by = "chunk id" if agreement.by == "id" else "place, since the chunkings differ"
    lines = [f"{phrases.count(agreement.slots, 'slot')} compared by {by}"]
    for side, n in (("live", agreement.only_a), ("shadow", agreement.only_b)):
        if n:
            lines.append(f"{phrases.count(n, 'slot')} only in the {side} run: not compared")
    meets = agreement.meets_target
    met = "met" if meets else "not met"
    target = "" if meets is None else f"; a cutover asks for {SAME_CITATIONS}: {met}"
    lines.append(f"same citations {_agreed(agreement.citations)}{target}")
    if agreement.differing:
        mapped = len(agreement.differing) - agreement.unmapped
        lines.append(
            f"of {phrases.count(len(agreement.differing), 'slot')} that cite otherwise, {mapped} "
            "have a replacement for everything"
        )
    lines.append(f"rank-biased overlap {_agreed(agreement.rbo)}")
    lines.append(f"tau of the first ten {_agreed(agreement.tau)}")
    return lines


def _agreed(figure: AgreementFigure) -> str:
    over = f"{phrases.count(figure.questions, 'question')}, {phrases.count(figure.slots, 'slot')}"
    return f"{phrases.number(figure.value)} ({over})"


def differing_line(differing: DifferingSlot) -> str:
    """A slot that cites otherwise, in one line."""
    slot = [
        f"{name} {value}"
        for name, value in (("paraphrase", differing.paraphrase), ("seed", differing.seed))
        if value is not None
    ]
    changes = [f"{plain(old)} → {plain(new)}" for old, new in differing.replaced]
    changes += [f"lost {plain(name)}" for name in differing.lost]
    changes += [f"new {plain(name)}" for name in differing.gained]
    name = phrases.question_name(differing.qid, differing.turn)
    return f"{' '.join([name, *slot])}: {'; '.join(changes)}"


def json_text(report: ShadowReport) -> str:
    """The whole verdict as JSON."""
    document: dict[str, Any] = {
        "schema": SCHEMA,
        "decision": report.decision,
        "profile": report.profile,
        "live": msgspec.to_builtins(report.live),
        "shadow": msgspec.to_builtins(report.shadow),
        "verdict": verdict_document(report.verdict),
        "failed": [_failed(failed) for failed in report.failed],
        "chunker_version_match": report.match,
        "rungs": dict(report.rungs),
        "deltas": {delta.metric: _delta(delta) for delta in report.deltas},
        "by_type": {
            name: {"n": part.n, "deltas": {delta.metric: _delta(delta) for delta in part.deltas}}
            for name, part in report.types.items()
        },
        "agreement": _agreement(report.agreement),
        "kinds": {"retrieval": dict(report.kinds), "answer": dict(report.answer_kinds)},
        "findings": [
            {name: getattr(finding, name) for name in _OF_FINDING} for finding in report.findings
        ],
        "counted": report.counted,
        "left_out": dict(sorted(report.left_out.items())),
        "notes": list(report.notes),
        "unjudged": list(report.unjudged),
    }
    return scores_document.json_text(document)


def _failed(failed: FailedGate) -> dict[str, Any]:
    return {
        "gate": failed.gate.gate.name,
        "status": failed.gate.status,
        "step": failed.step,
        "worst": [witness_document(witness) for witness in failed.worst],
    }


def _delta(delta: Delta) -> dict[str, Any]:
    return {
        "live": rounded(delta.a),
        "shadow": rounded(delta.b),
        "delta": rounded(delta.delta),
        "n": delta.n,
        "interval": rounded_pair(delta.interval),
        "band": rounded_pair(delta.band),
        "band_interval": rounded_pair(delta.band_interval),
        "live_band": rounded_pair(delta.a_band),
        "shadow_band": rounded_pair(delta.b_band),
        "p": None if delta.p is None else float(f"{delta.p:.4g}"),
        "better": delta.better,
        "reason": delta.reason,
    }


def _agreement(agreement: Agreement) -> dict[str, Any]:
    document = msgspec.to_builtins(agreement)
    figures = {
        name: {**document[name], "value": rounded(document[name]["value"])}
        for name in ("citations", "rbo", "tau")
    }
    return {
        **document,
        **figures,
        "target": SAME_CITATIONS,
        "unmapped": agreement.unmapped,
        "meets_target": agreement.meets_target,
    }


def table_text(
    report: ShadowReport, *, limit: int = 5, width: int = 80, color: bool = False
) -> str:
    """The verdict for a terminal."""
    from rich.text import Text

    screen = Screen(width, color=color)
    console = screen.console

    def say(text: str, indent: str = "") -> None:
        for line in textwrap.wrap(
            text, width, initial_indent=indent, subsequent_indent=indent, break_on_hyphens=False
        ):
            console.print(line)

    say(
        f"live {plain(report.live.name)}, shadow {plain(report.shadow.name)}: "
        f"profile {report.profile}, {phrases.count(report.counted, 'question')}"
    )
    console.print()
    if report.verdict.gates:
        console.print(_gates(report))
        for result in report.verdict.gates:
            if phrases.gate_note(result):
                say(f"{phrases.gate_name(result)}: {phrases.gate_note(result)}")
        console.print()
    console.print(_deltas(report.deltas))
    for line in sentences.lost_lines(report.deltas):
        say(line)
    for name, part in report.types.items():
        console.print()
        say(f"{plain(name)}, {phrases.count(part.n, 'question')}" + _too_few(part))
        if part.deltas:
            console.print(_deltas(part.deltas))
            for line in sentences.lost_lines(part.deltas):
                say(line)
    console.print()
    for line in agreement_lines(report.agreement):
        say(line)
    for differing in report.agreement.differing[:limit]:
        say(differing_line(differing), "  ")
    more = len(report.agreement.differing) - limit
    if more > 0:
        console.print(f"  ... and {more} more; --format json lists all")
    console.print()
    for failed in report.failed:
        say(f"{phrases.gate_name(failed.gate)}: {failed.gate.status}")
        for witness in failed.worst[:limit]:
            say(witness_line(witness), "  ")
        say(f"next: {failed.step}", "  ")
    for finding in report.findings:
        say(f"diagnosis: {finding_headline(finding, report.shadow.questions)} ({finding.id})")
    for note in _notes(report):
        say(f"note: {note}")
    if report.failed or report.findings or _notes(report):
        console.print()
    style = f"bold {COLORS[report.verdict.status]}"
    for line in textwrap.wrap(headline(report), width, break_on_hyphens=False):
        console.print(Text(line, style=style))
    return screen.text()


def _too_few(part: ShadowSlice) -> str:
    return "" if part.deltas else ": no value, by too few questions or unknown places"


def _gates(report: ShadowReport) -> Any:
    from rich.text import Text

    right = ("value", "margin", "n")
    heads = ("gate", "value", "demand", "margin", "n", "verdict")
    table = plain_table(*heads, right=right, whole=right, overflow="ellipsis")
    for result in report.verdict.gates:
        *cells, _, status = phrases.gate_cells(result)
        table.add_row(*cells, Text(status, style=COLORS[result.status]))
    return table


def _deltas(deltas: Sequence[Delta]) -> Any:
    table = plain_table(*_HEADS, right=("live", "shadow", "Δ", "n"), padding=(0, 1, 0, 0))
    for cells in map(_cells, deltas):
        table.add_row(*cells)
    return table


def _cells(delta: Delta) -> tuple[str, ...]:
    return (
        f"{plain(metric_label(delta.metric))}{' ↓' if delta.better == 'lower' else ''}"
        f"{f' {sentences.LOST}' if delta.lost else ''}",
        sentences.side(delta.a, delta.a_band),
        sentences.side(delta.b, delta.b_band),
        sentences.change(delta),
        sentences.bounds(delta.interval or delta.band_interval),
        str(delta.n),
    )


def _notes(report: ShadowReport) -> list[str]:
    excluded = [
        f"{n} questions left out: {reason}" for reason, n in sorted(report.left_out.items())
    ]
    return [*excluded, *map(plain, report.notes)]


def markdown_text(report: ShadowReport, *, limit: int = 5) -> str:
    """The verdict as the body of a comment on a pull request."""
    lines = [
        f"# ragauge: {markdown.escaped(headline(report))}",
        "",
        f"Live {markdown.code(report.live.name)}, shadow {markdown.code(report.shadow.name)}, "
        f"{phrases.count(report.counted, 'question')}.",
        "",
        *markdown.gates(report.verdict),
        *_markdown_failed(report.failed, limit),
        "## Shadow against live",
        "",
        *_markdown_deltas(report.deltas),
        *_markdown_types(report.types),
        "## Agreement",
        "",
        *(f"- {markdown.escaped(line)}" for line in agreement_lines(report.agreement)),
        *(
            f"  - {markdown.escaped(differing_line(differing))}"
            for differing in report.agreement.differing[:limit]
        ),
        "",
    ]
    if report.findings:
        lines += ["## What rose against the live run", ""]
        lines += markdown_findings(report.findings, report.shadow.questions)
    lines += [f"- {markdown.escaped(note)}" for note in _notes(report)]
    return "\n".join(lines).rstrip() + "\n"


def _markdown_failed(failed: Sequence[FailedGate], limit: int) -> list[str]:
    lines: list[str] = []
    for failed_gate in failed:
        name = markdown.escaped(phrases.gate_name(failed_gate.gate))
        lines += [f"**{name}**: {markdown.escaped(failed_gate.step)}", ""]
        worst = [
            f"- {markdown.escaped(witness_line(witness))}" for witness in failed_gate.worst[:limit]
        ]
        lines += [*worst, ""] if worst else []
    return lines


def _markdown_deltas(deltas: Sequence[Delta]) -> list[str]:
    lost_lines = [f"- {markdown.escaped(line)}" for line in sentences.lost_lines(deltas)]
    rows = markdown.table(_HEADS, [_cells(delta) for delta in deltas])
    return [*rows, *lost_lines, ""] if lost_lines else rows


def _markdown_types(types: Mapping[str, ShadowSlice]) -> list[str]:
    lines: list[str] = []
    for name, part in types.items():
        few = _too_few(part)
        lines += [f"### {markdown.escaped(name)}, {phrases.count(part.n, 'question')}{few}", ""]
        lines += _markdown_deltas(part.deltas) if part.deltas else []
    return lines
