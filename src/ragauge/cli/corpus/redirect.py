"""`ragauge corpus redirect`: say where an id or some bytes went."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import click

from ragauge.cli.store_options import ANY_FORMAT
from ragauge.cli.streams import print_json

if TYPE_CHECKING:
    from ragauge.corpus.diff.redirects import Redirected, Redirects
    from ragauge.model.migration import MapRow

_SPAN = re.compile(r"(.+):([0-9]+)-([0-9]+)", re.DOTALL)


@click.command("redirect", short_help="Say where an id or some bytes went.")
@click.argument("migration", metavar="MAP")
@click.argument("name", metavar="[ID|DOC:START-END]", required=False)
@click.option(
    "--span",
    type=(str, click.IntRange(0), click.IntRange(0)),
    metavar="DOC START END",
    help="Bytes of a document, where its name could be taken for something else.",
)
@ANY_FORMAT
def COMMAND(  # noqa: N802
    migration: str, name: str | None, span: tuple[str, int, int] | None, format_name: str
) -> int:
    """Look up a block, a section (`doc#S.1.2`), a document or bytes (`doc:120-180`) in MAP.

    MAP is a file that `ragauge corpus diff OLD NEW -o MAP` wrote. Exit code 3 if the map does not
    know the name, or if there is no new place.
    """
    import msgspec

    from ragauge.corpus.diff.map_file import read_map
    from ragauge.corpus.diff.redirects import Redirects
    from ragauge.text import plain

    if (name is None) == (span is None):
        raise click.UsageError("give an id, DOC:START-END, or --span DOC START END, and one only")
    redirects = Redirects(read_map(migration))
    row = redirects.find(name) if name is not None else None
    if row is not None:
        answer = _of_row(row, migration)
    else:
        written = _SPAN.fullmatch(name) if name is not None else None
        if written is not None:
            span = (written[1], int(written[2]), int(written[3]))
        answer = _of_span(redirects, name, span, migration)
    if format_name == "json":
        print_json(msgspec.to_builtins(answer))
        return 0
    for line in _lines(answer):
        click.echo(plain(line))
    return 0


def _of_row(row: MapRow, migration: str) -> dict[str, Any]:
    import msgspec

    if not row.new:
        near = f"; {row.note}" if row.note else ""
        raise _nowhere(
            f"the {row.of} `{row.old.id}` has no place in the new corpus{near}", migration
        )
    return dict(msgspec.to_builtins(row))


def _of_span(
    redirects: Redirects, name: str | None, span: tuple[str, int, int] | None, migration: str
) -> dict[str, Any]:
    import msgspec

    if span is not None and span[1] >= span[2]:
        raise click.UsageError(f"bytes {span[1]} to {span[2]} are none: START must be before END")
    redirected: Redirected | None = None if span is None else redirects.span(*span)
    if redirected is None or span is None:
        what = f"`{name}`" if span is None else f"the document `{span[0]}`"
        raise _nowhere(f"no row of the map speaks of {what}", migration)
    doc, start, end = span
    if not redirected.places:
        raise _nowhere(
            f"nothing of bytes {start} to {end} of `{doc}` is in the new corpus", migration
        )
    return {
        "of": "span",
        "kind": "same text" if redirected.exact else "changed text",
        "old": {"id": f"{doc}:{start}-{end}", "doc": doc, "span": [start, end]},
        "new": [
            {
                "id": place.block or f"{place.doc}:{place.span[0]}-{place.span[1]}",
                **msgspec.to_builtins(place),
            }
            for place in redirected.places
        ],
        "confidence": round(redirected.share, 4),
    }


def _nowhere(message: str, migration: str) -> Exception:
    from ragauge.errors import Place, RagaugeError

    hint = "ids are those of the old corpus; `ragauge corpus diff --review` lists what is gone"
    return RagaugeError.of("unmapped", message, hint=hint, place=Place(migration))


def _lines(answer: dict[str, Any]) -> list[str]:
    note = f"  ({answer['note']})" if answer.get("note") else ""
    first = f"{answer['old']['id']}  {answer['kind']}, confidence {answer['confidence']:.4f}{note}"
    return [first] + [
        f"-> {place['id']}  {place['doc']} bytes {place['span'][0]} to {place['span'][1]}"
        for place in answer["new"]
    ]
