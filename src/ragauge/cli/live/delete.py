"""`ragauge live delete`: traces that have to go."""

from __future__ import annotations

import time
from contextlib import closing
from typing import Any

import click

from ragauge.cli.live_store import live_store_url
from ragauge.cli.options import CommandOptions, options, say
from ragauge.cli.store_options import CONFIG_OPTION, STORE_OPTION


@click.command("delete", short_help="Delete traces by their ids or by their user.")
@click.option("--trace", "trace_ids", multiple=True, metavar="ID", help="A trace. Repeats.")
@click.option("--user", "users", multiple=True, metavar="ID", help="All traces of a user. Repeats.")
@click.option("--tenant", default="", metavar="NAME", help="That of this tenant.")
@options([STORE_OPTION, CONFIG_OPTION])
def COMMAND(trace_ids: tuple[str, ...], users: tuple[str, ...], tenant: str, **where: Any) -> int:  # noqa: N802
    """Delete traces: rows, bodies, pairs, gold candidates, and what waits in the spool.

    Messages to webhooks no longer name them. A user is named as the app names it; the store has
    only a keyed hash of that. The numbers of minutes, windows and decisions stay, which name
    nobody. Deleting what is not there is no error.
    """
    from ragauge.live.database import open_database
    from ragauge.live.delete import delete_traces
    from ragauge.live.privacy import user_hash_key, user_key
    from ragauge.live.settings import live_settings
    from ragauge.live.spool import FILE_NAME, SpoolReader, spool_folder

    if not trace_ids and not users:
        raise click.UsageError("say what to delete: --trace ID or --user ID")
    asked = CommandOptions(**where)
    url = live_store_url(asked)
    folder = spool_folder(live_settings(asked.config), url)
    with closing(open_database(url, create=False)) as database:
        key = user_hash_key(database) if users else b""
        spool = SpoolReader(folder) if (folder / FILE_NAME).exists() else None
        try:
            deleted = delete_traces(
                database,
                spool,
                tenant=tenant,
                trace_ids=trace_ids,
                user_keys=[user_key(user, key) for user in users],
                now=int(time.time() * 1000),
            )
        finally:
            if spool is not None:
                spool.close()
    say(
        f"deleted {deleted.traces} traces, {deleted.pairs} pairs, {deleted.candidates} gold "
        f"candidates, {deleted.spooled} traces that waited in the spool and {deleted.put_aside} "
        f"bodies that were put aside, and took ids out of {deleted.messages} messages"
    )
    return 0
