"""`ragauge gold freeze`: write down what every item of a gold set says."""

from __future__ import annotations

import click

from ragauge.cli.options import read_config
from ragauge.cli.output import spare_inputs


@click.command("freeze", short_help="Write a lock of a gold set.")
@click.argument("gold", metavar="GOLD")
@click.option(
    "-o", "out", metavar="FILE", help="The lock (default: beside GOLD, with the suffix .lock)."
)
@click.option("--corpus", metavar="DIR", help="Note the text that ids stand for in this corpus.")
@click.option("--chunks", metavar="FILE", help="Where the chunks of an index lie, as JSON Lines.")
@click.option("--profile", metavar="NAME", help="Read as under this profile.")
@click.option("--dialect", metavar="NAME", help="Force the field names of a dialect.")
@click.option("--force", is_flag=True, help="Replace a lock that holds another set.")
def COMMAND(  # noqa: N802
    gold: str,
    out: str | None,
    corpus: str | None,
    chunks: str | None,
    profile: str | None,
    dialect: str | None,
    force: bool,
) -> int:
    """Write a lock: the hash of the set, and each item with its hash, one a line.

    Commit it beside the set; `gold verify` tells what changed since. The same items give the same
    bytes, in whatever order they stand. With --corpus the lock has a fingerprint of the text that
    each id stands for, by which `gold lint`, `gold pin` and `gold verify` notice other text under
    the same id. Exit code 5 if there is no item.
    """
    from ragauge.gold.lock import freeze
    from ragauge.model import phrases
    from ragauge.text import plain

    config = read_config(None)
    inputs = {"gold set": gold, "corpus": corpus, "list of chunks": chunks}
    spare_inputs([] if out is None else [out], config, None, others=inputs)
    done = freeze(
        gold,
        out,
        corpus=corpus,
        chunks=chunks,
        profile=profile or config.profile,
        dialect=dialect or config.dialect or "auto",
        force=force,
        fields=config.field_maps,
    )
    lock = done.lock
    click.echo(
        plain(
            f"{'wrote' if done.fresh else 'unchanged:'} {done.path}, "
            f"{phrases.count(len(lock.items), 'item')}, dialect {lock.dialect}"
        )
    )
    click.echo(f"gold hash  {lock.gold_hash}")
    if lock.texts:
        names = {name for by_id in lock.texts.values() for name in by_id}
        click.echo(f"texts      {phrases.count(len(names), 'id')} with a fingerprint")
    return 0
