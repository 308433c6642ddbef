"""`ragauge traces migrate`: move traces to the next version of their corpus."""

from __future__ import annotations

from typing import Literal

import click

from ragauge.cli.options import MOVE_OPTIONS, move, options
from ragauge.cli.output import spare


@click.command("migrate", short_help="Move traces to the next version of their corpus.")
@click.argument("traces", metavar="TRACES")
@options(MOVE_OPTIONS)
def COMMAND(  # noqa: N802
    traces: str,
    migration: str,
    out: str,
    min_confidence: float,
    on_unmapped: Literal["stop", "keep", "drop"],
) -> int:
    """Write TRACES to FILE as they are in the new corpus of MAP.

    Hits, citations, their documents, sections and offsets become those of the new corpus; names
    of fields, their order and all else stay. A redirected citation keeps its old id as `id_prev`.
    A hit on a block that was split becomes hits on all of its parts. Ids that are not of the old
    corpus stay and are counted. Traces are read one by one: memory does not grow with the file.

    Exit code 3, and no FILE, if something has no new place; 5 if there are no rows.
    """
    spare(out, {"trace file": traces, "map": migration})
    return move("traces", traces, migration, out, least=min_confidence, on_unmapped=on_unmapped)
