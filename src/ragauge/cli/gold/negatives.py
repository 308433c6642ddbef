"""`ragauge gold negatives`: suggest hard negatives from the corpus."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from ragauge.cli.options import whole_number
from ragauge.cli.output import spare
from ragauge.cli.store_options import ANY_FORMAT
from ragauge.cli.streams import print_json

if TYPE_CHECKING:
    from ragauge.gold.negatives import ItemNegatives, Suggestions


@click.command("negatives", short_help="Suggest hard negatives from a corpus.")
@click.argument("gold", metavar="GOLD")
@click.option("--corpus", required=True, metavar="DIR", help="The corpus that evidence lies in.")
@click.option("--chunks", metavar="LIST", help="Where the chunks of another chunker lie.")
@whole_number(
    "-n",
    "count",
    least=1,
    most=1000,
    default=5,
    help="How many negatives an item shall have; those it has count.",
)
@click.option("--anywhere", is_flag=True, help="Take like words from all documents.")
@click.option("-o", "out", metavar="FILE", help="Write GOLD with the negatives added; may be GOLD.")
@ANY_FORMAT
@click.option("--dialect", default="auto", metavar="NAME", help="Force the names of a dialect.")
def COMMAND(  # noqa: N802
    gold: str, corpus: str, chunks: str | None, out: str | None, format_name: str, **choices: Any
) -> int:
    """Suggest for each item of GOLD the nearest blocks that are not its evidence.

    Near by section and by words (BM25 with the question), in turn, in the same document and at most
    4 edges away in its title tree. Blocks that touch the evidence or repeat its text are never
    suggested. Without -o nothing is written. The dialect of GOLD stays what it is.
    """
    from ragauge.gold.lock import lock_beside
    from ragauge.gold.negatives import suggest_negatives
    from ragauge.text import plain

    spare(out, {"corpus": corpus, "list of chunks": chunks})
    lock = lock_beside(gold)
    suggestions = suggest_negatives(gold, corpus, out, chunks=chunks, lock=lock, **choices)
    if format_name == "json":
        print_json(_document(suggestions))
    else:
        for item in suggestions.items:
            for line in _lines(item):
                click.echo(plain(line))
    if out is not None:
        click.echo(plain(f"wrote {out}"), err=format_name == "json")
        if suggestions.comments:
            lost = f"{suggestions.comments:,} comments inside changed values are not kept"
            click.echo(lost, err=format_name == "json")
    total = sum(len(item.negatives) for item in suggestions.items)
    summary = (
        f"{total:,} negatives for {sum(bool(item.negatives) for item in suggestions.items):,} items"
    )
    if suggestions.unplaced:
        summary += f"; {suggestions.unplaced:,} items have no evidence to be near to"
    if suggestions.short:
        summary += f"; {suggestions.short:,} items got fewer than asked for"
    click.echo(summary, err=format_name == "json")
    return 0


def _lines(item: ItemNegatives) -> list[str]:
    if not item.negatives:
        return []
    width = max(len(negative.id) for negative in item.negatives)
    lines = [f"{item.qid}  (line {item.line})"]
    for negative in item.negatives:
        far = "other document" if negative.distance is None else f"distance {negative.distance}"
        lines.append(
            f"  {negative.id:<{width}}  {negative.reason:<7}  {far}  score {negative.score:.4f}"
        )
    return lines


def _document(suggestions: Suggestions) -> dict[str, Any]:
    return {
        "items": [
            {
                "qid": item.qid,
                "line": item.line,
                "negatives": [
                    {
                        "id": negative.id,
                        "reason": negative.reason,
                        "distance": negative.distance,
                        "score": negative.score,
                        "doc": negative.spot.doc,
                        "section": negative.spot.section,
                        "start": negative.spot.start,
                        "end": negative.spot.end,
                    }
                    for negative in item.negatives
                ],
            }
            for item in suggestions.items
        ],
        "unplaced": suggestions.unplaced,
        "short": suggestions.short,
    }
