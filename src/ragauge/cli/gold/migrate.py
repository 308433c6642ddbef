"""`ragauge gold migrate`: move a gold set to the next version of its corpus."""

from __future__ import annotations

from typing import Literal

import click


@click.command("migrate", short_help="Move a gold set to the next version of its corpus.")
@click.argument("gold", metavar="GOLD")
@click.option("--map", "migration", required=True, metavar="MAP", help="From `corpus diff`.")
@click.option("-o", "out", required=True, metavar="FILE", help="The new file, as JSON Lines.")
@click.option(
    "--min-confidence", type=click.FloatRange(0, 1), default=0.85, show_default=True,
    help="Take what has less for unmapped.",
)  # fmt: skip
@click.option(
    "--on-unmapped", type=click.Choice(["stop", "keep", "drop"]), default="stop",
    show_default=True, help="What to do with an id or a place that has no new one.",
)  # fmt: skip
@click.option(
    "--corpus", metavar="DIR", help="The new corpus: quotes whose text changed are cut from it."
)
def COMMAND(  # noqa: N802
    gold: str, migration: str, out: str, min_confidence: float,
    on_unmapped: Literal["stop", "keep", "drop"], corpus: str | None,
) -> int:  # fmt: skip
    """Write GOLD to FILE as it is in the new corpus of MAP.

    Ids in evidence, groups, grades and negatives, anchors with their offsets, sections and
    documents become those of the new corpus; names of fields, their order and all else stay. A
    block that was split becomes all of its parts, blocks that became one stand once. Ids that are
    not of the old corpus stay and are counted.

    Exit code 3, and no FILE, if something has no new place; 5 if there are no rows.
    """
    from ragauge.relocating import relocate, told
    from ragauge.text import plain

    done = relocate(
        "gold", gold, migration, out, least=min_confidence, on_unmapped=on_unmapped, corpus=corpus
    )
    click.echo(plain(f"wrote {out}"))
    for line in told(done, on_unmapped):
        click.echo(plain(line))
    for problem in done.problems:
        click.echo(plain(f"unmapped: {problem.place}: {problem.message}"), err=True)
    if done.unmapped > len(done.problems):
        click.echo(f"unmapped: ... and {done.unmapped - len(done.problems)} more", err=True)
    return 0
