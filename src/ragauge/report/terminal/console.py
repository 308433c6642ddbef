"""The terminal: a console of a given width whose text is collected, and plain tables for it."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

COLORS = {"pass": "green", "review": "yellow", "fail": "red", "not-evaluable": "magenta"}
"""The colour of each status."""


class Screen:
    """Collects what is printed for a screen of some width, in colour or without."""

    def __init__(self, width: int, *, color: bool) -> None:
        from rich.console import Console

        self._buffer = io.StringIO()
        self.console: Console = Console(
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

    def text(self) -> str:
        """What was printed, without blanks at the ends of lines, and with a newline behind it."""
        lines = self._buffer.getvalue().split("\n")
        return "\n".join(line.rstrip() for line in lines).rstrip("\n") + "\n"


def plain_table(*, padding: tuple[int, int, int, int] = (0, 1, 0, 1)) -> Table:
    """A table with a line below its heads and no other lines."""
    from rich import box
    from rich.table import Table

    return Table(
        box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False, expand=False, padding=padding
    )
