"""The terminal report of a comparison: what changed, and the questions that changed."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from ragauge.model import phrases
from ragauge.model.comparison import ComparisonReport, ComparisonView, Delta, Kind
from ragauge.model.metric_names import metric_label
from ragauge.report.ci import entries
from ragauge.report.comparison import sentences
from ragauge.report.comparison.sentences import QuestionGroup
from ragauge.report.terminal.console import COLORS, Screen, plain_table
from ragauge.report.terminal.damage_table import print_damage
from ragauge.text import plain

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

_ROWS = 8
_GAP = 2
_HEADS = ("metric", "a", "b", "Δ", "95 % interval", "p", "n", "detectable")
_ALWAYS_SHOWN = 6
"""So many of the heads are shown at any width."""
_NAME, _NAME_NARROW = 20, 12
"""The room that names of metrics need, before intervals are broken and after."""
_PARTS = re.compile(r"[^._]+[._]?|[._]")
_LARGE = re.compile(r"(?<!\d)\d{3,}+\.\d{4}")
"""Numbers from 100 on, such as milliseconds, of which one decimal is enough on a screen."""
_KINDS: dict[Kind, str] = {
    "regression": "red", "mixed": "yellow", "undecided": "yellow", "loss": "red", "win": "green",
    "draw": "",
}  # fmt: skip


def _text(view: ComparisonView) -> str:
    from rich.text import Text

    screen = Screen(view.width, color=view.color)
    console = screen.console
    comparison = view.comparison
    console.print(Text(sentences.headline(comparison), style="bold"))
    console.print(sentences.run_line("a", comparison.run_a))
    console.print(sentences.run_line("b", comparison.run_b))
    console.print(sentences.left_out_line(comparison))
    console.print()
    for result in phrases.failed_drops(comparison.verdict):
        print_damage(console, result, full=view.full)
        console.print()
    _print_deltas(console, view)
    _print_slices(console, view)
    console.print(sentences.rung_line(comparison))
    for line in (*sentences.place_lines(comparison), *sentences.document_lines(comparison)):
        console.print(line)
    console.print(sentences.retrieval_line(comparison))
    console.print(sentences.answer_line(comparison))
    _print_questions(console, view)
    _print_causes(console, view)
    if comparison.notes:
        console.print()
    for note in comparison.notes:
        console.print(f"note: {plain(note)}")
    _print_verdict(console, view)
    return screen.text()


def _table(*columns: str, right: tuple[str, ...] = ()) -> Table:
    return plain_table(*columns, right=right, whole=right, padding=(0, 1, 0, 0))


def _print_deltas(console: Console, view: ComparisonView) -> None:
    from rich.text import Text

    deltas = sentences.shown_deltas(view.comparison.deltas)
    guessed = sentences.has_guess(deltas)
    rows = [_cells(delta, guessed=guessed) for delta in deltas]
    heads = _fitting(rows, view.width, guessed=guessed)
    if heads:
        table = _table(*heads, right=tuple(heads[1:]))
        for delta, row in zip(deltas, rows, strict=True):
            # A string would lose the line ends that were set here.
            cells = [Text(cell) for cell in row[: len(heads)]]
            cells[3] = _colored(row[3], delta)
            table.add_row(*cells)
        console.print(table)
    else:
        for delta in deltas:
            console.print(sentences.delta_line(delta))
    legend = _legend(deltas)
    if legend:
        console.print(legend)
    moved = sentences.moved_line(view.comparison.deltas)
    if moved is not None:
        console.print(moved)
    for line in sentences.reason_lines(view.comparison.deltas):
        console.print(line)
    undefined = sentences.undefined_line(view.comparison.deltas)
    if undefined is not None:
        console.print(undefined)
    if view.comparison.deltas:
        console.print()


def _print_slices(console: Console, view: ComparisonView) -> None:
    slices = sentences.listed_slices(view.comparison)
    metrics = sentences.slice_metrics(view.comparison)
    if not metrics:
        return
    heads = [f"Δ {plain(metric_label(metric))}" for metric in metrics]
    for dimension, parts in slices.items():
        table = _table(plain(dimension), "n", *heads, right=("n",))
        listed = parts if view.full else parts[:_ROWS]
        for name, part in listed:
            table.add_row(plain(name), str(part.n), *sentences.slice_cells(part, metrics))
        console.print(table)
        if len(parts) > len(listed):
            console.print(f"... and {len(parts) - len(listed)} more; --full shows all")
        console.print()
    if slices:
        console.print(sentences.SLICE_NOTE)
        console.print()


def _cells(delta: Delta, *, guessed: bool) -> list[str]:
    cells = [
        sentences.side(delta.a, delta.a_band),
        sentences.side(delta.b, delta.b_band),
        sentences.change(delta),
        sentences.bounds(delta.interval or delta.band_interval),
        sentences.chance(sentences.corrected(delta)),
        *([sentences.guess(delta)] if guessed else []),
        str(delta.n),
        phrases.number(delta.detectable),
    ]
    return [sentences.metric_name(delta), *map(_shortened, cells)]


def _shortened(cell: str) -> str:
    return _LARGE.sub(lambda match: f"{float(match[0]):.1f}", cell)


def _fitting(rows: list[list[str]], width: int, *, guessed: bool) -> list[str]:
    """The heads of as many columns as fit; none if not even those that are always shown do.

    Before that, long names are broken in the rows, and then intervals too.
    """
    if not rows:
        return []
    # `n` and `detectable` go first: with the interval on the screen they say the least.
    heads = [*_HEADS[:_ALWAYS_SHOWN], *(["guess"] if guessed else []), *_HEADS[_ALWAYS_SHOWN:]]
    longest = max(len(row[0]) for row in rows)
    while len(heads) > _ALWAYS_SHOWN + guessed and _width(heads, rows) > width:
        heads.pop()
    for is_narrow in (False, True):
        if is_narrow:
            heads[4] = "95 %\ninterval"
            for row in rows:
                row[4] = row[4].replace(" to ", " to\n")
        room = width - _width(heads[1:], [row[1:] for row in rows]) - _GAP
        if room >= min(longest, _NAME_NARROW if is_narrow else _NAME):
            for row in rows:
                row[0] = _broken(row[0], room)
            return heads
    return []


def _broken(name: str, room: int) -> str:
    """A metric's name in lines that fit, broken behind dots and underscores."""
    lines = [""]  # all but the first are indented by a space, so that they are not taken for a name
    for part in _PARTS.findall(name):
        if lines[-1].strip() and len(lines[-1] + part.rstrip()) > room:
            lines.append(" ")
        lines[-1] += part
    return "\n".join(lines)


def _width(heads: list[str], rows: list[list[str]]) -> int:
    """How wide a table of these columns is; rows may have more of them."""
    from rich.cells import cell_len

    cells = [
        max(cell_len(line) for row in (heads, *rows) for line in row[place].split("\n"))
        for place in range(len(heads))
    ]
    return sum(cells) + _GAP * (len(cells) - 1)


def _colored(text: str, delta: Delta) -> Text:
    """Green for better and red for worse, bold where it is beyond chance."""
    from rich.text import Text

    color = "red" if delta.worse else "green" if delta.delta else ""
    return Text(text, style=f"bold {color}" if delta.is_changed else color)


def _legend(deltas: list[Delta]) -> str:
    """What the marks in the table mean; only those that are in it."""
    notes = []
    if any(delta.gated for delta in deltas):
        notes.append("* gated")
    if any(delta.p_holm is not None for delta in deltas):
        notes.append(f"p corrected (Holm) over {sentences.family(deltas)}")
    if any(delta.better == "lower" for delta in deltas):
        notes.append("↓ less is better")
    if any(delta.lost for delta in deltas):
        notes.append(f"{sentences.LOST} something has no result: see below")
    if sentences.has_guess(deltas):
        notes.append(sentences.GUESS_NOTE)
    return "; ".join(notes)


def _print_questions(console: Console, view: ComparisonView) -> None:
    groups = sentences.groups(view, _ROWS)
    for group in groups:
        console.print()
        console.print(_question_table(group))
        if group.more:
            console.print(f"... and {group.more} more; --full shows all")
    slots = sentences.slots_line(groups)
    if slots is not None:
        console.print(slots)


def _question_table(group: QuestionGroup) -> Table:
    head = f"{group.about} {sentences.PLURALS[group.kind]} ({group.total})"
    if group.about == "retrieval":
        table = _table(head, "rank a", "rank b", "note", right=("rank a", "rank b"))
    else:
        table = _table(head, "label a", "label b", "flipped")
    table.columns[0].header_style = _KINDS[group.kind]
    for query in group.queries:
        name = phrases.question_name(query.query_id, query.turn)
        table.add_row(name, *sentences.change_cells(query, group.about))
    return table


def _print_causes(console: Console, view: ComparisonView) -> None:
    causes = view.comparison.causes
    if not causes:
        return
    console.print()
    console.print("why it may differ:")
    listed = causes if view.full else causes[:_ROWS]
    for cause in listed:
        console.print(f"  {sentences.cause_line(cause)}")
    if len(causes) > len(listed):
        console.print(f"... and {len(causes) - len(listed)} more; --full shows all")


def _print_verdict(console: Console, view: ComparisonView) -> None:
    from rich.text import Text

    verdict = view.comparison.verdict
    decision = entries.decision(view)
    if decision is None:
        return
    console.print()
    for result in () if verdict is None else verdict.gates:
        if result.status != "pass":
            name, value, threshold, *_ = phrases.gate_cells(result)
            note = phrases.gate_note(result)
            line = f"{name}: {value}, demanded {threshold}{f' ({note})' if note else ''}"
            console.print(plain(line))
    style = f"bold {COLORS[view.status or 'pass']}"
    console.print(Text(plain(decision), style=style))


REPORT = ComparisonReport(
    name="table", title="tables for the terminal", content=_text, suffixes=(".txt",)
)
