"""`ragauge live export`: a window as files that `ragauge score` reads."""

from __future__ import annotations

import os
from contextlib import closing
from typing import Any

import click

from ragauge.cli.live_store import live_store_url
from ragauge.cli.options import CommandOptions, options, say, whole_number
from ragauge.cli.output import spare
from ragauge.cli.store_options import CONFIG_OPTION, STORE_OPTION


@click.command("export", short_help="Write the traces and the gold set of a window.")
@whole_number("--window", least=1, required=True, metavar="N", help="Its number.")
@click.option("--out", required=True, metavar="FOLDER", help="Where the two files go.")
@click.option("--tenant", default="", metavar="NAME", help="That of this tenant.")
@options([STORE_OPTION, CONFIG_OPTION])
def COMMAND(window: int, out: str, tenant: str, **where: Any) -> int:  # noqa: N802
    """Write traces.jsonl and gold.jsonl of a window.

    `ragauge score --profile live --dialect native` on them gives the numbers of the window, byte
    for byte. Questions that the gold set does not have are items without labels.
    """
    import msgspec

    from ragauge.live.database import open_database
    from ragauge.live.export import GOLD, TRACES, export_window, find_window, window_gold
    from ragauge.live.settings import live_settings
    from ragauge.live.spool import FILE_NAME, spool_folder

    asked = CommandOptions(**where)
    url = live_store_url(asked)
    config, settings = asked.config, live_settings(asked.config)
    inputs = {
        "store": url, "configuration": config.origin, "gold set": settings.gold,
        "gold set of the project": config.gold, "traces of the project": config.trace,
        "spool": f"sqlite:///{spool_folder(settings, url) / FILE_NAME}",
    }  # fmt: skip
    for name in (TRACES, GOLD):
        spare(os.path.join(out, name), inputs, option="--out")
    with closing(open_database(url, create=False)) as database:
        facts = find_window(database, window, tenant=tenant)
        digest = msgspec.json.decode(facts.aggregate)["gold"]["digest"]
        exported = export_window(database, facts, window_gold(database, digest), out)
    say(f"wrote {exported.traces} traces and {exported.items} gold items to {out}")
    return 0
