"""The terminal: a console of a given width whose text is collected, and plain tables for it."""

from __future__ import annotations

import io
from collections.abc import Collection
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console, JustifyMethod, OverflowMethod
    from rich.table import Table

COLORS = {
    "not-judged": "yellow", "pass": "green", "review": "yellow", "fail": "red",
    "not-evaluable": "magenta",
}  # fmt: skip
"""The colour of each status."""


class StyledText(str):
    """Text whose escape sequences are our own: colours, around text that was cleaned."""

    __slots__ = ()


class Screen:
    """Collects what is printed for a screen of some width, in colour or without."""

    def __init__(self, width: int, *, color: bool) -> None:
        from ragauge.report.terminal.safe_console import SafeConsole

        self._buffer = io.StringIO()
        self.console: Console = SafeConsole(
            file=self._buffer,
            width=width,
            force_terminal=color,
            no_color=not color,
            highlight=False,
            emoji=False,
            markup=False,
            legacy_windows=False,
            color_system="standard" if color else None,
        )

    def text(self) -> StyledText:
        """What was printed, without blanks at the ends of lines, and with a newline behind it."""
        lines = self._buffer.getvalue().split("\n")
        return StyledText("\n".join(line.rstrip() for line in lines).rstrip("\n") + "\n")


def plain_table(
    *heads: str,
    right: Collection[str] = (),
    whole: Collection[str] = (),
    overflow: OverflowMethod = "fold",
    padding: tuple[int, int, int, int] = (0, 1, 0, 1),
) -> Table:
    """A table with a line below its heads and no other lines.

    Columns of `right` are aligned there, as numbers are, and those of `whole` are never wrapped.
    """
    from rich import box

    from ragauge.report.terminal.safe_console import SafeTable

    table = SafeTable(
        box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False, expand=False, padding=padding
    )
    for head in heads:
        justify: JustifyMethod = "right" if head in right else "left"
        table.add_column(head, justify=justify, overflow=overflow, no_wrap=head in whole)
    return table
