"""The table of the questions that made a gate fail."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ragauge.model import phrases
from ragauge.model.verdict import GateResult
from ragauge.report.terminal.console import plain_table

if TYPE_CHECKING:
    from rich.console import Console


def print_damage(console: Console, result: GateResult, *, full: bool) -> None:
    """Print the questions that made a gate fail, the worst first."""
    table = plain_table(
        phrases.damage_title(result), *phrases.DAMAGE_HEADS, right=("share",), whole=("share",)
    )
    listed = result.damage if full else result.damage[: phrases.MOST_DAMAGED]
    for question in listed:
        table.add_row(*phrases.damage_cells(question))
    console.print(table)
    if len(result.damage) > len(listed):
        console.print(f"... and {len(result.damage) - len(listed):,} more; --full shows all")
