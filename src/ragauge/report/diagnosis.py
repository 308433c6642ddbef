"""A diagnosis in words: tables for the terminal, Markdown, and JSON with a versioned schema."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Sequence
from typing import Any

import msgspec

from ragauge.model import phrases, scores_document
from ragauge.model.diagnosis import SCHEMA, Diagnosis, DiagnosisFinding, Number, Tallied, Witness
from ragauge.model.metric_names import metric_label
from ragauge.model.scores_document import rounded
from ragauge.report import markdown
from ragauge.report.terminal.console import Screen, plain_table
from ragauge.text import plain

_NOTHING = "Nothing stands out: no rule found what it looks for."
_NOTHING_ROSE = "Nothing rose against the baseline."


def json_text(diagnosis: Diagnosis) -> str:
    """The whole diagnosis as JSON."""
    return scores_document.json_text(to_document(diagnosis))


def to_document(diagnosis: Diagnosis) -> dict[str, Any]:
    """The whole diagnosis as plain JSON values, rounded as every printed value is."""
    fields = msgspec.to_builtins(diagnosis)
    return {
        "schema": SCHEMA,
        **fields,
        "findings": [_finding(finding) for finding in diagnosis.findings],
        "questions": [witness_document(question) for question in diagnosis.questions],
    }


def _finding(finding: DiagnosisFinding) -> dict[str, Any]:
    return {
        **msgspec.to_builtins(finding),
        "share": rounded(finding.share),
        "numbers": [
            {
                **msgspec.to_builtins(number),
                "value": rounded(number.value),
                "before": rounded(number.before),
            }
            for number in finding.numbers
        ],
        "witnesses": [witness_document(witness) for witness in finding.witnesses],
    }


def witness_document(witness: Witness) -> dict[str, Any]:
    """A question as evidence, as plain JSON values."""
    numbers = {name: rounded(value) for name, value in witness.numbers.items()}
    return {**msgspec.to_builtins(witness), "numbers": numbers}


def opening(diagnosis: Diagnosis) -> str:
    """What was diagnosed, in one line."""
    questions = phrases.count(diagnosis.counted, "question")
    against = ""
    if diagnosis.baseline is not None:
        against = f", against {plain(diagnosis.baseline)}"
    traces = phrases.count(diagnosis.records, "trace")
    return f"{plain(diagnosis.name)}: profile {diagnosis.profile}, {questions}, {traces}{against}"


def headline(finding: DiagnosisFinding, counted: int) -> str:
    """A finding in one line."""
    rose = "" if finding.was is None else f", {finding.was} in the baseline"
    return f"{finding.title}: {finding.affected} of {phrases.count(counted, 'question')}{rose}"


def number_cells(number: Number) -> tuple[str, str, str, str]:
    """A number as a row: its name, value, n and reading; a count is a whole number.

    With a baseline the reading says what the value was there.
    """
    value = phrases.number(number.value)
    if number.whole and number.value is not None:
        value = str(int(number.value))
    reading = plain(number.reading)
    if number.before is not None:
        was = f"was {phrases.number(number.before)}"
        reading = f"{was}; {reading}" if reading else was
    return plain(metric_label(number.name)), value, str(number.n), reading


def witness_line(witness: Witness) -> str:
    """A question as evidence, in one line."""
    name = phrases.question_name(witness.qid, witness.turn)
    label = witness.label if witness.cause is None else f"{witness.label}, {witness.cause}"
    return f"{name} ({label}) {plain(witness.where)}"


def _origin(finding: DiagnosisFinding) -> str:
    """The rule, and the page that it comes from, if it is not our own."""
    source = "" if finding.source == "own" else f", after {finding.source}"
    return f"{finding.id}{source}"


def _behind(witness: Witness) -> str:
    return ", ".join(f"{metric_label(name)} {value:.4f}" for name, value in witness.numbers.items())


def table_text(diagnosis: Diagnosis, *, width: int = 80, color: bool = False) -> str:
    """The diagnosis for a terminal."""
    screen = Screen(width, color=color)
    console = screen.console
    console.print(opening(diagnosis))
    for head, rows in (("label", diagnosis.labels), ("cause", diagnosis.causes)):
        if rows:
            console.print()
            console.print(_tallied(head, rows))
    console.print()
    if not diagnosis.findings:
        console.print(_nothing(diagnosis))
    for place, finding in enumerate(diagnosis.findings, 1):
        _print_finding(console, place, finding, diagnosis.counted, width)
    if diagnosis.questions:
        heads = (f"look at ({diagnosis.listed_of})", "label", "cause", "where")
        table = plain_table(*heads, whole=("label", "cause"))
        for question in diagnosis.questions:
            name = phrases.question_name(question.qid, question.turn)
            table.add_row(name, question.label, question.cause or "", plain(question.where))
        console.print(table)
        more = diagnosis.listed_of - len(diagnosis.questions)
        if more > 0:
            console.print(f"... and {more} more; --limit shows more")
    for line in footers(diagnosis):
        for part in textwrap.wrap(line, width, break_on_hyphens=False):
            console.print(part)
    return screen.text()


def _nothing(diagnosis: Diagnosis) -> str:
    return _NOTHING if diagnosis.baseline is None else _NOTHING_ROSE


def _tallied(head: str, rows: Sequence[Tallied]) -> Any:
    right = ("questions", "traces")
    table = plain_table(head, *right, right=right, overflow="ellipsis")
    for tallied in rows:
        table.add_row(tallied.name, str(tallied.questions), str(tallied.records))
    return table


def _print_finding(
    console: Any, place: int, finding: DiagnosisFinding, counted: int, width: int
) -> None:
    from rich.text import Text

    head = f"{place}. {headline(finding, counted)}"
    console.print(Text(head, style="bold"))
    table = plain_table("number", "value", "n", "read as", right=("value", "n"))
    for number in finding.numbers:
        table.add_row(*number_cells(number))
    console.print(table)
    for line in (
        *(witness_line(witness) for witness in finding.witnesses),
        f"next: {finding.step}",
        f"rule: {_origin(finding)}",
    ):
        for part in textwrap.wrap(line, width - 3, subsequent_indent="  ", break_on_hyphens=False):
            console.print(f"   {part}")
    console.print()


def footers(diagnosis: Diagnosis) -> list[str]:
    """What was not looked at, and what else is known of the run."""
    lines = []
    if diagnosis.steady:
        lines.append(f"no more than in the baseline: {', '.join(diagnosis.steady)}")
    if diagnosis.silent:
        lines.append(f"not looked for, nothing was recorded: {', '.join(diagnosis.silent)}")
    return [*lines, *(f"note: {plain(note)}" for note in diagnosis.notes)]


def markdown_text(diagnosis: Diagnosis) -> str:
    """The diagnosis as Markdown."""
    lines = [
        f"# ragauge: diagnosis of {markdown.escaped(diagnosis.name)}",
        "",
        f"{markdown.escaped(opening(diagnosis))}.",
        "",
        *_markdown_tallied("label", diagnosis.labels),
        *_markdown_tallied("cause", diagnosis.causes),
        "## Likely causes",
        "",
        *(markdown_findings(diagnosis.findings, diagnosis.counted) or [_nothing(diagnosis), ""]),
    ]
    if diagnosis.questions:
        rows = [
            (
                markdown.escaped(phrases.question_name(question.qid, question.turn)),
                question.label,
                question.cause or "",
                markdown.code(question.where),
                _behind(question),
            )
            for question in diagnosis.questions
        ]
        listed = f"{len(diagnosis.questions)} of {diagnosis.listed_of}"
        lines += [f"## Look at ({listed})", ""]
        lines += markdown.table(["question", "label", "cause", "where", "numbers"], rows)
    lines += [f"- {markdown.escaped(line)}" for line in footers(diagnosis)]
    return "\n".join(lines).rstrip() + "\n"


def markdown_findings(findings: Iterable[DiagnosisFinding], counted: int) -> list[str]:
    """Each finding with its numbers, its questions and the next step."""
    lines: list[str] = []
    for place, finding in enumerate(findings, 1):
        lines += [f"### {place}. {markdown.escaped(headline(finding, counted))}", ""]
        rows = [
            (markdown.escaped(name), value, n, markdown.escaped(reading))
            for name, value, n, reading in map(number_cells, finding.numbers)
        ]
        lines += markdown.table(["number", "value", "n", "read as"], rows)
        lines += [f"- {markdown.escaped(witness_line(witness))}" for witness in finding.witnesses]
        lines += ["", f"**Next:** {markdown.escaped(finding.step)}", ""]
        lines += [f"Rule {markdown.escaped(_origin(finding))}.", ""]
    return lines


def _markdown_tallied(head: str, rows: Sequence[Tallied]) -> list[str]:
    if not rows:
        return []
    cells = [
        (f"`{tallied.name}`", str(tallied.questions), str(tallied.records)) for tallied in rows
    ]
    return markdown.table([head, "questions", "traces"], cells)
