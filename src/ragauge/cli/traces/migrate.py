"""`ragauge traces migrate`: move traces to the next version of their corpus."""

from __future__ import annotations

from typing import Literal

import click


@click.command("migrate", short_help="Move traces to the next version of their corpus.")
@click.argument("traces", metavar="TRACES")
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
def COMMAND(  # noqa: N802
    traces: str, migration: str, out: str, min_confidence: float,
    on_unmapped: Literal["stop", "keep", "drop"],
) -> int:  # fmt: skip
    """Write TRACES to FILE as they are in the new corpus of MAP.

    Hits, citations, their documents, sections and offsets become those of the new corpus; names
    of fields, their order and all else stay. A redirected citation keeps its old id as `id_prev`.
    A hit on a block that was split becomes hits on all of its parts. Ids that are not of the old
    corpus stay and are counted. Traces are read one by one: memory does not grow with the file.

    Exit code 3, and no FILE, if something has no new place; 5 if there are no rows.
    """
    from ragauge.relocating import relocate, told
    from ragauge.text import plain

    done = relocate("traces", traces, migration, out, least=min_confidence, on_unmapped=on_unmapped)
    click.echo(plain(f"wrote {out}"))
    for line in told(done, on_unmapped):
        click.echo(plain(line))
    for problem in done.problems:
        click.echo(plain(f"unmapped: {problem.place}: {problem.message}"), err=True)
    if done.unmapped > len(done.problems):
        click.echo(f"unmapped: ... and {done.unmapped - len(done.problems)} more", err=True)
    return 0
