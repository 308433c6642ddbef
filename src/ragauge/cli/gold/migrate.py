"""`ragauge gold migrate`: move a gold set to the next version of its corpus."""

from __future__ import annotations

from typing import Literal

import click

from ragauge.cli.options import MOVE_OPTIONS, move, options
from ragauge.cli.output import spare


@click.command("migrate", short_help="Move a gold set to the next version of its corpus.")
@click.argument("gold", metavar="GOLD")
@options(MOVE_OPTIONS)
@click.option(
    "--corpus", metavar="DIR", help="The new corpus: quotes whose text changed are cut from it."
)
def COMMAND(  # noqa: N802
    gold: str,
    migration: str,
    out: str,
    min_confidence: float,
    on_unmapped: Literal["stop", "keep", "drop"],
    corpus: str | None,
) -> int:
    """Write GOLD to FILE as it is in the new corpus of MAP.

    Ids in evidence, groups, grades and negatives, anchors with their offsets, sections and
    documents become those of the new corpus; names of fields, their order and all else stay. A
    block that was split becomes all of its parts, blocks that became one stand once. Ids that are
    not of the old corpus stay and are counted.

    The suffix of FILE says its form: .yaml, .json, or else JSON Lines. In YAML, comments stay;
    those inside values that change are lost, and counted.

    What was moved is stamped with the revision of its corpus, and not moved twice. With
    --on-unmapped drop, an item without any evidence left becomes a draft and is listed, and so
    with keep one whose id names other text in the new corpus.

    Exit code 3, and no FILE, if something has no new place; 4 if there are drafts, which a person
    must look at before FILE can be scored; 5 if there are no rows.
    """
    spare(out, {"gold set": gold, "map": migration, "corpus": corpus})
    return move(
        "gold", gold, migration, out, least=min_confidence, on_unmapped=on_unmapped, corpus=corpus
    )
