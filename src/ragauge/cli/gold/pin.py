"""`ragauge gold pin`: give evidence its bytes, quote and document hash."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import click

from ragauge.cli.options import choice, say
from ragauge.cli.output import spare

if TYPE_CHECKING:
    from ragauge.gold.narrow import SentenceChoice


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
@click.option(
    "--narrow",
    is_flag=True,
    help="Make of each chunk the sentence in it that is the evidence: the one with a claim, "
    "required string or reference answer that stands once in the chunk, else the one you choose.",
)
@click.option(
    "--open",
    "comparison",
    metavar="CMP.json",
    help="With --narrow: only questions that this comparison leaves open.",
)
@click.option(
    "--sample",
    type=click.IntRange(1),
    metavar="M",
    help="With --open: a random sample of so many; `compare` estimates the rest from 20 on.",
)
@click.option("--seed", type=int, default=0, show_default=True, help="Of the sample.")
@click.option("--dialect", default="auto", metavar="NAME", help="Force the names of a dialect.")
def COMMAND(  # noqa: N802
    gold: str,
    corpus: str,
    chunks: str | None,
    lock: str | None,
    out: str,
    on_unresolved: str,
    narrow: bool,
    comparison: str | None,
    sample: int | None,
    seed: int,
    **choices: Any,
) -> int:
    """Pin the evidence of GOLD: ids of blocks and chunks, and quotes, become places.

    An entry gets doc, start and end in bytes, the quote that stands there, doc_hash and section;
    of text over 2,000 characters the hash is kept instead of the quote. Entries that have a place
    are checked. Names and other fields stay as they are. Pinning what is pinned changes nothing.
    An id that stands for other text than when the set was frozen with its corpus is refused.
    An id says that the evidence stands somewhere in its chunk, and so does its place (`grain:
    chunk`): with --narrow it becomes a sentence (`grain: evidence`), which any chunking can be
    scored against. Sentences are chosen by their number on standard input, with those that share
    words with the question first; an empty line leaves the chunk as it is.
    The suffix of FILE says its form: .yaml, .json, or else JSON Lines. Exit code 3 with every
    item that cannot be resolved, and nothing is written.
    """
    from ragauge.gold.lock import lock_beside
    from ragauge.gold.pin import pin_file
    from ragauge.text import plain

    if (comparison is not None or sample is not None) and not narrow:
        raise click.UsageError("--open and --sample are for --narrow")
    if sample is not None and comparison is None:
        raise click.UsageError("--sample draws from what a comparison leaves open: give --open")
    inputs = {"corpus": corpus, "list of chunks": chunks, "lock": lock, "comparison": comparison}
    spare(out, inputs)
    if narrow:
        from ragauge.gold.narrow import OpenSample, open_sample

        drawn = OpenSample() if comparison is None else open_sample(comparison, sample, seed)
        choices["narrow"] = drawn, _choose
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
    for kind, outcome in (
        ("string", "narrowed to the sentence with a string of the item"),
        ("person", "narrowed to the sentence that you chose"),
        ("left", "left as whole chunks"),
    ):
        if kind in pinned.narrowed:
            click.echo(f"{kind:<10} {pinned.narrowed[kind]:,} entries {outcome}")
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


def _choose(asked: SentenceChoice) -> int | None:
    """Ask a person for a sentence; None for an empty line, and at the end of the input."""
    from ragauge.text import plain

    say("")
    say(plain(f"{asked.qid}: {asked.question or ''}  [{asked.chunk}]"))
    for number, sentence in enumerate(asked.sentences, 1):
        say(plain(f"{number:>4}  {sentence.text}"))
    while True:
        click.echo("sentence (empty: none) > ", nl=False, err=True)
        line = sys.stdin.readline()
        if not line.strip():
            return None
        if line.strip().isdecimal() and 1 <= int(line) <= len(asked.sentences):
            return int(line) - 1
        say(f"a number from 1 to {len(asked.sentences)}, or nothing")
