"""`ragauge gold pin`: give evidence its bytes, quote and document hash."""

from __future__ import annotations

from typing import Any

import click

from ragauge.cli.options import choice, say
from ragauge.cli.output import spare


@click.command("pin", short_help="Give evidence its place in a corpus.")
@click.argument("gold", metavar="GOLD")
@click.option("--corpus", required=True, metavar="DIR", help="The corpus that evidence lies in.")
@click.option("--chunks", metavar="LIST", help="Where the chunks of another chunker lie.")
@click.option(
    "--lock", metavar="FILE", help="What ids stood for (default: beside GOLD, if it is there)."
)
@click.option("-o", "out", required=True, metavar="FILE", help="What is written; may be GOLD.")
@click.option("--repin", is_flag=True, help="Follow a quote that now stands elsewhere, and once.")
@choice(
    "--on-unresolved",
    of=["stop", "keep"],
    default="stop",
    help="What to do with an item whose evidence is not found.",
)
@click.option("--dialect", default="auto", metavar="NAME", help="Force the names of a dialect.")
def COMMAND(  # noqa: N802
    gold: str,
    corpus: str,
    chunks: str | None,
    lock: str | None,
    out: str,
    on_unresolved: str,
    **choices: Any,
) -> int:
    """Pin the evidence of GOLD: ids of blocks and chunks, and quotes, become places.

    An entry gets doc, start and end in bytes, the quote that stands there, doc_hash and section;
    of text over 2,000 characters the hash is kept instead of the quote. Entries that have a place
    are checked. Names and other fields stay as they are. Pinning what is pinned changes nothing.
    An id that stands for other text than when the set was frozen with its corpus is refused.
    The suffix of FILE says its form: .yaml, .json, or else JSON Lines. Exit code 3 with every
    item that cannot be resolved, and nothing is written.
    """
    from ragauge.gold.lock import lock_beside
    from ragauge.gold.pin import pin_file
    from ragauge.text import plain

    spare(out, {"corpus": corpus, "list of chunks": chunks, "lock": lock})
    choices |= {"keep": on_unresolved == "keep", "lock": lock_beside(gold, lock)}
    pinned = pin_file(gold, corpus, out, chunks=chunks, **choices)
    click.echo(plain(f"wrote {out}"))
    click.echo(f"items      {pinned.items:,}, {len(pinned.changes):,} changed")
    for kind, outcome in (
        ("pinned", "given a place"),
        ("converted", "converted to bytes"),
        ("moved", "moved to where the quote stands now"),
        ("checked", "found at their place"),
    ):
        if kind in pinned.counts:
            click.echo(f"{kind:<10} {pinned.counts[kind]:,} entries {outcome}")
    if pinned.unchecked:
        click.echo(f"unchecked  {pinned.unchecked:,} ids whose text the lock does not have")
    if pinned.graded:
        click.echo(f"graded     {pinned.graded:,} ids in grades, which have no place")
    if pinned.comments:
        click.echo(f"comments   {pinned.comments:,} inside changed values, which are not kept")
    if pinned.problem_count:
        click.echo(f"unresolved {pinned.problem_count:,} items, left as they were")
        for problem in pinned.problems:
            say(f"kept: {problem.place}: {problem.message} [{problem.code}]")
        if pinned.problem_count > len(pinned.problems):
            more = pinned.problem_count - len(pinned.problems)
            click.echo(f"kept: ... and {more} more", err=True)
    return 0
