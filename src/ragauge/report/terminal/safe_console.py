"""A console and a table on which text from files draws nothing but itself.

They are apart from `console` because rich takes long to import, and most commands draw no table.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from rich.console import Console
from rich.segment import Segment
from rich.table import Table
from rich.text import Text

from ragauge.text import plain, visible


class SafeConsole(Console):
    """Cleans strings before they are laid out, and once more what is drawn of styled text."""

    def print(self, *objects: Any, **settings: Any) -> None:
        """Print objects; a string is one line, whatever line ends an id brought into it."""
        super().print(*map(_cleaned, objects), **settings)

    def render_str(self, text: str, **settings: Any) -> Text:
        """Lay a string out."""
        return super().render_str(visible(text), **settings)

    def render(self, *arguments: Any, **settings: Any) -> Iterable[Segment]:
        """Draw anything."""
        for text, style, control in super().render(*arguments, **settings):
            yield Segment(visible(text), style, control)


class SafeTable(Table):
    """A table whose cells are one line each before they are wrapped."""

    def add_row(self, *cells: Any, **settings: Any) -> None:
        """Add a row of cells."""
        super().add_row(*map(_cleaned, cells), **settings)


def _cleaned(renderable: Any) -> Any:
    return plain(renderable) if isinstance(renderable, str) else renderable
