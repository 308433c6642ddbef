"""`ragauge gold stats`: what is in a gold set, and what it can show."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING

import click

from ragauge.cli.options import read_config, screen
from ragauge.cli.store_options import ANY_FORMAT
from ragauge.cli.streams import print_json

if TYPE_CHECKING:
    from ragauge.gold.stats import GoldStats

_MOST = 8


@click.command("stats", short_help="Count what is in a gold set, and say what it can show.")
@click.argument("gold", metavar="GOLD")
@click.option("--corpus", metavar="DIR", help="Count what of this corpus is reached.")
@click.option("--chunks", metavar="FILE", help="Where the chunks of an index lie, as JSON Lines.")
@click.option("--profile", metavar="NAME", help="Read as under this profile.")
@click.option("--dialect", metavar="NAME", help="Force the field names of a dialect.")
@ANY_FORMAT
def COMMAND(  # noqa: N802
    gold: str,
    corpus: str | None,
    chunks: str | None,
    profile: str | None,
    dialect: str | None,
    format_name: str,
) -> int:
    """Count items, evidence and wordings, and say how small a change the set can show.

    A row that cannot be read is an error (exit code 3). Exit code 5 if there is no item.
    """
    from ragauge.gold import stats as gold_stats
    from ragauge.text import plain

    config = read_config(None)
    stats = gold_stats.stats(
        gold,
        corpus=corpus,
        chunks=chunks,
        profile=profile or config.profile,
        dialect=dialect or config.dialect or "auto",
        fields=config.field_maps,
    )
    if format_name == "json":
        print_json(gold_stats.to_json(stats))
        return 0
    for line in _lines(stats, screen()["width"]):
        click.echo(plain(line))
    return 0


def _lines(stats: GoldStats, width: int) -> list[str]:
    from ragauge.gold.coverage import COVERAGE
    from ragauge.model import phrases
    from ragauge.report.terminal.stored_runs import TerminalColumn, table

    lines = [f"{stats.name}: {phrases.count(stats.items, 'gold item')}, dialect {stats.dialect}"]
    lines += [f"note: {note}" for note in stats.notes]
    if stats.turns:
        lines.append(
            f"turns      {stats.turns} of {phrases.count(stats.conversations, 'conversation')}"
        )
    for name, counts in stats.counts.items():
        lines += _wrapped(f"{name:<11}", counts, width)
    if stats.evident:
        lines.append(
            f"evidence   {stats.entries} in {phrases.count(stats.evident, 'item')}, "
            f"{stats.pinned} of them pinned to places ({stats.pinned / stats.evident:.2f})"
        )
    if stats.grades:
        lines += _wrapped(f"{'grades':<11}", stats.grades, width)
    coverage = stats.coverage
    if coverage is not None:
        share = "" if coverage.share is None else f" ({coverage.share:.2f}, target {COVERAGE:.2f})"
        lines += [
            f"sections   {coverage.sections_reached} of {coverage.sections} reached{share}",
            f"documents  {coverage.docs_reached} of {coverage.docs} reached",
        ]
    number = partial(TerminalColumn, right=True)
    spreads = stats.spreads.values()
    spread_columns = [
        TerminalColumn("", list(stats.spreads)),
        number("items", [str(spread.items) for spread in spreads]),
        number("total", [str(spread.total) for spread in spreads]),
        number("least", [f"{spread.least:g}" for spread in spreads]),
        number("median", [f"{spread.median:g}" for spread in spreads]),
        number("most", [f"{spread.most:g}" for spread in spreads]),
    ]
    sizes = [(name, size) for name, size in stats.sizes.items() if size.n]
    size_columns = [
        TerminalColumn("what n can show", [name for name, _ in sizes]),
        number("n", [str(size.n) for _, size in sizes]),
        TerminalColumn("rate known to", [f"±{size.half_width:.4f}" for _, size in sizes]),
        TerminalColumn("detectable", [phrases.number(size.detectable) for _, size in sizes]),
    ]
    lines += ["", *table(spread_columns, width), "", *table(size_columns, width)]
    lines.append("for a rate near 0.5; detectable: the change shown in four cases of five")
    return lines


def _wrapped(head: str, counts: Mapping[str, int], width: int) -> list[str]:
    """Counts in a line or a few; the rarest are summed up."""
    import textwrap

    from ragauge.text import plain

    entries = [f"{plain(name)} {count}" for name, count in list(counts.items())[:_MOST]]
    if len(counts) > _MOST:
        entries.append(f"and {len(counts) - _MOST} more")
    return textwrap.wrap(
        ", ".join(entries), width, initial_indent=head, subsequent_indent=" " * len(head)
    )
