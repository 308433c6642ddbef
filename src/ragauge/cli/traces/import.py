"""`ragauge traces import`: write traces of another tool's export under our own names."""

from __future__ import annotations

from typing import Any

import click

from ragauge.cli.options import FIELD_OPTIONS, FROM_OPTION, choice, options, read_config
from ragauge.cli.output import spare
from ragauge.cli.streams import print_line

READING_OPTIONS = [
    choice(
        "--retrieval",
        of=("last", "first", "union", "each"),
        default="last",
        help="Of several retrievals in one trace: which list of hits counts.",
    ),
    choice(
        "--stage",
        of=("last", "first"),
        default="last",
        help="Where a reranker follows a retriever: which list is `hits`, the one after it, or "
        "before it; the other one is written beside it.",
    ),
    click.option("--question", metavar="NAME", help="The variable that holds the question."),
    click.option("--run", metavar="NAME", help="Of several systems in one file: the one to read."),
]


@click.command("import", short_help="Write another tool's export as traces.")
@click.argument("files", nargs=-1, required=True, metavar="FILE...")
@click.option("-o", "out", required=True, metavar="OUT", help="The traces, as JSON Lines.")
@FROM_OPTION
@options(FIELD_OPTIONS)
@click.option("--gold", metavar="FILE", help="Give traces the ids of these questions, by text.")
@options(READING_OPTIONS)
def COMMAND(  # noqa: N802
    files: tuple[str, ...],
    out: str,
    format_name: str,
    gold: str | None,
    own_fields: tuple[str, ...],
    own_gold_fields: tuple[str, ...],
    **reading: Any,
) -> int:
    """Write what FILEs of another tool hold as traces to OUT, and say what was found in them.

    Spans of one trace may lie in several files, in any order. The same files give the same bytes.
    Traces whose spans lost hits are written with an error, so that nothing scores them as they
    are; errors keep their first line, never a stack.

    Exit code 3 if a file is damaged; 5, and no OUT, if there is no trace in them.
    """
    from ragauge.formats.imports.foreign_format import ImportOptions
    from ragauge.formats.imports.import_files import import_files

    for file in files:
        spare(out, {"export": file, "gold set": gold})
    coverage = import_files(
        files,
        out,
        "traces",
        format_name=format_name,
        gold=gold,
        options=ImportOptions(**reading),
        fields=read_config(None).field_maps.updated(own_fields, own_gold_fields),
    )
    print_line(f"wrote {out}, read as {coverage.format}")
    for name, count in coverage.table():
        print_line(f"{name:<24}{count:>16}".rstrip())
    for sentence in coverage.sentences():
        print_line(f"note: {sentence}")
    if gold is not None and coverage.reranked:
        _print_deltas(gold, out)
    return 0


def _print_deltas(gold: str, traces: str) -> None:
    """Print what the rerankers changed, where traces have the lists before and after them."""
    from ragauge.model.phrases import STAGE_HEADS, stage_cells
    from ragauge.scoring import score

    scored = score.score(
        gold, traces, profile="all", metrics=["retrieval.recall"], k=(1, 5, 10), intervals=False
    )
    for cells in (STAGE_HEADS, *map(stage_cells, scored.stages)) if scored.stages else ():
        figures = "".join(f"{cell:>9}" for cell in cells[1:])
        print_line(f"{cells[0]:<24}{figures}")
