"""`ragauge gold import`: write another tool's test set as a gold set under our own names."""

from __future__ import annotations

from typing import Any

import click

from ragauge.cli.options import FROM_OPTION, GOLD_FIELD_OPTION, choice, read_config
from ragauge.cli.output import spare
from ragauge.cli.streams import print_line


@click.command("import", short_help="Write another tool's test set as a gold set.")
@click.argument("files", nargs=-1, required=True, metavar="FILE...")
@click.option("-o", "out", required=True, metavar="OUT", help="The gold set, as JSON Lines.")
@FROM_OPTION
@GOLD_FIELD_OPTION
@click.option("--question", metavar="NAME", help="The variable that holds the question.")
@choice(
    "--empty-context",
    of=("unlabelled", "refuse"),
    default="unlabelled",
    help="What a test case without context and without an expected answer asks for.",
)
def COMMAND(  # noqa: N802
    files: tuple[str, ...],
    out: str,
    format_name: str,
    own_gold_fields: tuple[str, ...],
    **reading: Any,
) -> int:
    """Write the test cases in FILEs of another tool as gold items to OUT.

    The same files give the same bytes. Look at OUT before you score with it: what another tool
    calls a reference answer or a context is written as the nearest thing that a gold item has, and
    `ragauge gold lint` says what is weak.

    Exit code 3 if a file is damaged; 5, and no OUT, if there is no test case in them.
    """
    from ragauge.formats.imports.foreign_format import ImportOptions
    from ragauge.formats.imports.import_files import import_files

    for file in files:
        spare(out, {"export": file})
    coverage = import_files(
        files,
        out,
        "gold",
        format_name=format_name,
        options=ImportOptions(**reading),
        fields=read_config(None).field_maps.updated((), own_gold_fields),
    )
    print_line(f"wrote {out}, read as {coverage.format}")
    for name, count in coverage.gold_table():
        print_line(f"{name:<24}{count:>16}".rstrip())
    for sentence in coverage.sentences():
        print_line(f"note: {sentence}")
    return 0
