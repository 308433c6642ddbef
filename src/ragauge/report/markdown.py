"""Markdown tables of gates, metrics and questions, and pages of them that must fit.

Sections that are too long are cut between rows, and a last line says what was cut.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence

from msgspec import Struct

from ragauge.model import phrases
from ragauge.model.metric_names import metric_label
from ragauge.model.scores import QuestionResult, Scores
from ragauge.model.verdict import Verdict
from ragauge.text import plain

Escape = Callable[[str], str]
"""How text of others is made safe: `escaped`, or `shortened` where a page has a limit."""

# An underscore inside of a word is no mark in GitHub's Markdown, and ids are full of them.
_MARKS = re.compile(r"([\\`*\[\]~$]|(?<![^\W_])_|_(?![^\W_]))")
_BEGINNINGS = re.compile(r"^(?:(?=[#+=-])|(\d+)(?=[.)](?: |$)))")
"""Where a line would begin a heading or a list."""


_LINKS = re.compile(
    r"(?P<at>@)(?!(?<=[A-Za-z0-9_]@)[0-9]+(?![A-Za-z0-9_.]))"
    r"|(?P<scheme>:)(?=//)|(?P<www>\bwww)(?=\.)|(?P<number>\#)(?=[0-9])|(?P<issue>\bGH-)(?=[0-9])",
    re.IGNORECASE,
)
"""What GitHub makes a link of without any mark: people, addresses, numbers of issues.

`recall@5` is none: a letter stands before it, and only a number behind.
"""
_LONGEST = 500


def escaped(text: str) -> str:
    """Text that Markdown shows as it is, that links nowhere and calls nobody.

    An empty character parts what would be a link. A backslash would not do: GitHub looks for people
    in the text that it has rendered. Pipes are left to the tables, which escape them.
    """
    safe = _MARKS.sub(r"\\\1", plain(text).strip())
    safe = safe.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return _LINKS.sub(r"\g<0>&#8203;", _BEGINNINGS.sub(r"\1\\", safe))


def shortened(text: str) -> str:
    """Escaped text of at most 500 characters, for pages that may not be larger than so many."""
    return escaped(text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…")


def marker(name: str) -> str:
    """The hidden line by which a comment is found again."""
    word = re.sub(r"[^A-Za-z0-9._]+", "-", name).strip("-")[:80]
    return f"<!-- ragauge:{word or 'run'} -->"


def folded(title: str, lines: Sequence[str]) -> list[str]:
    """Lines that a reader unfolds; the title is shown as it is."""
    return [f"<details><summary>{title}</summary>", "", *lines, "</details>", ""]


class MarkdownSection(Struct, frozen=True, kw_only=True):
    """A part of a page: its lines, of which only `rows` may be left out.

    `title` is what the note about a cut calls it.
    """

    title: str
    head: tuple[str, ...] = ()
    rows: tuple[str, ...] = ()
    foot: tuple[str, ...] = ()


def section(title: str, lines: Sequence[str]) -> MarkdownSection:
    """Lines as a section that may be cut between the rows of its table or its list."""
    first = next(
        (n + 1 for n, line in enumerate(lines) if line.startswith("| ---")),
        next((n for n, line in enumerate(lines) if line.startswith("- ")), len(lines)),
    )
    last = first
    while last < len(lines) and lines[last].startswith(("| ", "- ")):
        last += 1
    return MarkdownSection(
        title=title,
        head=tuple(lines[:first]),
        rows=tuple(lines[first:last]),
        foot=tuple(lines[last:]),
    )


def code(name: str, escape: Escape = escaped) -> str:
    """An id or a place as code, unless it is none that code can hold."""
    if "`" in name or plain(name) != name or name != name.strip() or not name:
        return escape(name)
    return f"`{name}`"


def metric_name(metric_id: str, escape: Escape = escaped) -> str:
    """A metric's label in plain text, or its id as code where it has none."""
    label = metric_label(metric_id)
    return code(metric_id, escape) if label == metric_id else escape(label)


def _row(cells: Iterable[str]) -> str:
    escaped = (cell.replace("|", "\\|").replace("\n", " ") for cell in cells)
    return f"| {' | '.join(escaped)} |"


def table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    """The lines of a table, with a blank line behind it."""
    return [_row(heads), _row("---" for _ in heads), *(_row(row) for row in rows), ""]


GATE_HEADS = ("gate", "value", "demand", "margin", "n", "detectable", "verdict")


def more(left: int) -> list[str]:
    """How many are not listed; nothing if all are."""
    return [f"... and {left} more.", ""] if left > 0 else []


def gates(verdict: Verdict, escape: Escape = escaped) -> list[str]:
    """A table of the gates; nothing if there are none."""
    if not verdict.gates:
        return []
    rows = []
    for result in verdict.gates:
        name, *cells = phrases.gate_cells(result)
        rows.append((escape(name), *cells, escape(phrases.gate_note(result))))
    return [*table([*GATE_HEADS, ""], rows), *chances(verdict, escape)]


def chances(verdict: Verdict, escape: Escape = escaped) -> list[str]:
    """How often each gate decides wrongly, to be unfolded; nothing where it is not known."""
    rows = [(escape(name), *cells) for name, *cells in phrases.chance_rows(verdict)]
    if not rows:
        return []
    lines = [phrases.CHANCE_NOTE, "", *table(phrases.CHANCE_HEADS, rows)]
    return folded("How often these gates decide wrongly", lines)


def damage(
    verdict: Verdict | None, marks: str, escape: Escape = escaped, *, full: bool = False
) -> list[str]:
    """The questions that made gates on a drop fail, a table for each gate."""
    lines: list[str] = []
    for result in phrases.failed_drops(verdict):
        listed = result.damage if full else result.damage[: phrases.MOST_DAMAGED]
        rows = [tuple(map(escape, phrases.damage_cells(question))) for question in listed]
        title = escape(phrases.damage_title(result))
        lines += [f"{marks} {title[:1].upper()}{title[1:]}", ""]
        lines += [
            *table(["question", *phrases.DAMAGE_HEADS], rows),
            *more(len(result.damage) - len(listed)),
        ]
    return lines


def metrics(scores: Scores, verdict: Verdict, escape: Escape = escaped) -> list[str]:
    """A table of the metrics, and below it those that have no value."""
    lines = table(
        ["metric", "value", "n", "95 % interval", "left out"],
        [
            (
                metric_name(name, escape),
                phrases.metric_number(result),
                str(result.n),
                phrases.metric_interval(result),
                escape(phrases.metric_note(result)),
            )
            for name, result in phrases.listed_metrics(scores, verdict).items()
        ],
    )
    rest = [*phrases.count_lines(scores), *phrases.undefined_metric_lines(scores, verdict)]
    return [*lines, *(f"- {escape(line)}" for line in rest), *([""] if rest else [])]


def stages(scores: Scores, heading: str, escape: Escape = escaped) -> list[str]:
    """What a reranker changed, where traces have the lists before and after it."""
    if not scores.stages:
        return []
    rows = (
        (metric_name(delta.metric, escape), *phrases.stage_cells(delta)[1:])
        for delta in scores.stages
    )
    return [f"{heading} Reranked", "", *table(phrases.STAGE_HEADS, rows)]


def slices(scores: Scores, verdict: Verdict, most: int, escape: Escape = escaped) -> list[str]:
    """A table for each dimension; at most so many parts of each."""
    tables = slice_tables(scores, verdict, most, escape)
    return [line for lines in tables.values() for line in lines]


def slice_tables(
    scores: Scores, verdict: Verdict, most: int, escape: Escape = escaped
) -> dict[str, list[str]]:
    """The heading and the table of each dimension."""
    columns = phrases.slice_metrics(scores, verdict)
    tables: dict[str, list[str]] = {}
    for dimension, parts in phrases.listed_slices(scores).items():
        rows = [
            (
                escape(name),
                str(part.n),
                *(phrases.metric_number(part.metrics.get(metric)) for metric in columns),
            )
            for name, part in list(parts.items())[:most]
        ]
        lines = [f"## By {escape(dimension)}", ""]
        lines += table(
            [escape(dimension), "n", *(metric_name(metric, escape) for metric in columns)], rows
        )
        lines += more(len(parts) - most)
        tables[dimension] = lines
    return tables


def questions(listed: Sequence[QuestionResult], escape: Escape = escaped) -> list[str]:
    """A table of questions with their labels, and where to look."""
    has_causes = any(question.cause is not None for question in listed)
    rows = [
        (
            escape(phrases.question_name(question.qid, question.turn)),
            escape(question.label),
            *([escape(question.cause or "")] if has_causes else []),
            code(question.trace or question.gold, escape),
        )
        for question in listed
    ]
    heads = ["question", "label", *(["cause"] if has_causes else []), "where"]
    return table(heads, rows)


def warnings(scores: Scores, escape: Escape = escaped) -> list[str]:
    """The findings about the run, as a list."""
    return [f"- {escape(warning)}" for warning in scores.warnings]


_ROOM_FOR_NOTE = 600  # six titles of 60 characters, with counts and the words between
_NAMED = 6


def size(lines: Iterable[str]) -> int:
    """The bytes of lines in UTF-8, line ends included."""
    return sum(len(line.encode("utf-8", "replace")) + 1 for line in lines)


def text_within(sections: Sequence[MarkdownSection], most: int) -> str:
    """A page of sections within so many bytes."""
    return "\n".join(lines_within(sections, most)).rstrip() + "\n"


def lines_within(sections: Sequence[MarkdownSection], most: int) -> list[str]:
    """The lines of sections within so many bytes, and behind them what was left out.

    A section that does not fit loses its last rows, or goes as a whole; a later one that is small
    enough still gets its place.
    """
    if sum(size((*section.head, *section.rows, *section.foot)) for section in sections) <= most:
        return [
            line for section in sections for line in (*section.head, *section.rows, *section.foot)
        ]
    left = most - _ROOM_FOR_NOTE
    lines: list[str] = []
    cut: list[str] = []
    for section in sections:
        room = left - size((*section.head, *section.foot))
        row_count = _rows_within(section.rows, room)
        if room < 0 or (section.rows and not row_count):
            cut.append(f"all of {section.title[:60]}")
            continue
        if row_count < len(section.rows):
            total = len(section.rows)
            cut.append(f"{total - row_count} of {total} rows of {section.title[:60]}")
        section_lines = (*section.head, *section.rows[:row_count], *section.foot)
        left -= size(section_lines)
        lines += section_lines
    return [*lines, f"Left out, because this page may not be larger: {_listed(cut)}."]


def _rows_within(rows: Sequence[str], room: int) -> int:
    """How many rows fit, from the first on."""
    for place, row in enumerate(rows):
        room -= size([row])
        if room < 0:
            return place
    return len(rows)


def _listed(cut: Sequence[str]) -> str:
    more = len(cut) - _NAMED
    named = "; ".join(cut[:_NAMED])
    return f"{named}; and {more} more sections" if more > 0 else named
