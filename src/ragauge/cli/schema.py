"""`ragauge schema`: print the JSON Schema of a kind of file."""

from __future__ import annotations

import click

from ragauge.cli.streams import print_text


@click.command("schema", short_help="Print the JSON Schema of gold, traces, scores or compares.")
@click.argument(
    "name",
    type=click.Choice(["gold", "trace", "scores", "compare"]),
    metavar="gold|trace|scores|compare",
)
def COMMAND(name: str) -> int:  # noqa: N802
    """Print the JSON Schema (2020-12) of one kind of file, for editors and other checks.

    `ragauge validate` checks more: spellings that disagree, ids that stand twice, ids that are not
    in the corpus.
    """
    from ragauge.formats.schemas.catalogue import schema_text

    print_text(schema_text(name), "json")
    return 0
