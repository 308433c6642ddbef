"""`ragauge corpus diff`: map the blocks of one version of a corpus to the next one."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from ragauge.cli.output import spare, spare_outputs
from ragauge.cli.store_options import ANY_FORMAT
from ragauge.cli.streams import print_json

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ragauge.model.migration import Header, MapRow

_MOST_SHOWN = 20


@click.command("diff", short_help="Map the ids of one version of a corpus to the next.")
@click.argument("old", metavar="OLD")
@click.argument("new", metavar="NEW")
@click.option("-o", "out", metavar="MAP", help="Write the map to this file, as JSON Lines.")
@click.option("--review", metavar="FILE", help="Write the rows that a person should look at.")
@ANY_FORMAT
@click.option("--fail-on-targets", is_flag=True, help="Exit with 1 if a target is missed.")
def COMMAND(  # noqa: N802
    old: str,
    new: str,
    out: str | None,
    review: str | None,
    format_name: str,
    fail_on_targets: bool,
) -> int:
    """Find where every block, section and document of OLD stands in NEW.

    OLD and NEW are corpora that `ragauge corpus build` wrote. The map names for each old id its
    kind (same, shift, edit, split, merge, move, unmapped), its new places, and a confidence: the
    share of its text that stands there. `gold migrate`, `traces migrate` and `corpus redirect`
    read it. The same corpora give the same bytes. Exit code 5 if OLD has no blocks.
    """
    import msgspec

    from ragauge.codes import ExitCode
    from ragauge.corpus.diff.classify import migration_map
    from ragauge.corpus.diff.map_file import write_map, write_rows
    from ragauge.corpus.manifest import read_corpus
    from ragauge.errors import RagaugeError
    from ragauge.text import plain

    for option, file in (("-o", out), ("--review", review)):
        spare(file, {"old corpus": old, "new corpus": new}, option=option)
    if review is not None:
        spare_outputs(review, [out], option="--review")
    before, after = read_corpus(old), read_corpus(new)
    if not before.blocks:
        raise RagaugeError.of(
            "nothing-measured", f"`{old}` has no blocks", hint="there is no id that could move"
        )
    migration = migration_map(before, after)
    looked_at = [row for row in migration.rows if row.for_review]
    if out is not None:
        write_map(out, migration)
    if review is not None:
        write_rows(review, looked_at)
    if format_name == "json":
        document = {
            **msgspec.to_builtins(migration.header),
            "review": msgspec.to_builtins(looked_at[:_MOST_SHOWN]),
        }
        print_json(document)
    else:
        written = [] if out is None else [f"wrote {out}"]
        for line in [*written, *_lines(migration.header), *_review(looked_at)]:
            click.echo(plain(line))
    missed = [target for target in migration.header.targets if not target.met]
    return int(ExitCode.GATE_FAILED) if missed and fail_on_targets else 0


def _lines(header: Header) -> list[str]:
    """What is in the map, in words."""
    lines = [f"from revision {header.old.revision} to {header.new.revision}"]
    for subject in ("document", "section", "block"):
        kinds = header.counts[subject]
        split = ", ".join(f"{kind} {count:,}" for kind, count in kinds.items())
        lines.append(f"{subject + 's':14} {sum(kinds.values()):,}  ({split})")
    for target in header.targets:
        value = getattr(header.figures, target.figure)
        number = "none"
        if value is not None:
            number = f"{value:,}" if isinstance(value, int) else f"{value:.4f}"
        outcome = "met" if target.met else "missed"
        name = target.figure.replace("_", " ")
        lines.append(f"{name:14} {number}  target {target.demand}: {outcome}")
    return lines


def _review(rows: Sequence[MapRow]) -> list[str]:
    """The rows that a person should look at, as many as are shown."""
    lines = [f"{'to look at':14} {len(rows):,}"]
    for row in rows[:_MOST_SHOWN]:
        places = ", ".join(place.id for place in row.new) or row.note or "nowhere"
        lines.append(f"  {row.confidence:.4f} {row.kind:8} {row.old.id} -> {places}")
    if len(rows) > _MOST_SHOWN:
        lines.append(f"  ... and {len(rows) - _MOST_SHOWN:,} more; --review FILE has them all")
    return lines
