"""`ragauge trust`: let a `ragauge.toml` connect to its hosts and run its code, as it stands now."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import click

from ragauge.cli.options import say

if TYPE_CHECKING:
    from ragauge.trust.trusted_files import TrustedFile


@click.command("trust", short_help="Let a ragauge.toml connect to its hosts and run its code.")
@click.argument("path", required=False, metavar="[PATH]")
@click.option("--dry-run", is_flag=True, help="Show what would be trusted; write nothing.")
@click.option("--list", "listed", is_flag=True, help="List what you have trusted.")
@click.option("--remove", "removed", is_flag=True, help="Trust PATH no longer.")
def COMMAND(path: str | None, dry_run: bool, listed: bool, removed: bool) -> int:  # noqa: N802
    """Show what a ragauge.toml connects to and runs, and trust it.

    PATH is the file or its folder (default: ./ragauge.toml). Trust is for the settings that it has
    now: when store, target, embed, [embedders] or what [live] leads to change, it has to be given
    again. It is written to trusted.toml in your own folder for settings, never into the project.
    """
    from ragauge.config import FILE_NAME, load_config
    from ragauge.trust import trusted_files
    from ragauge.trust.consent import describe
    from ragauge.trust.needs import all_needs

    if dry_run + listed + removed > 1:
        raise click.UsageError("give one of --dry-run, --list and --remove")
    if listed:
        if path is not None:
            raise click.UsageError("--list takes no PATH")
        return _list()
    file = Path(path or ".")
    if file.is_dir():
        file = file / FILE_NAME
    if removed:
        if not trusted_files.remove_trusted(str(file)):
            raise click.UsageError(f"{file} is not trusted: `ragauge trust --list` shows what is")
        _print(f"no longer trusted: {os.path.realpath(file)}")
        return 0
    config = load_config(file)
    needs = all_needs(config)
    _print(trusted_files.real_path(config))
    for need in needs:
        _print(f"  line {need.place.line}: {describe(need.access)}")
    if not needs:
        _print("  connects to nothing and runs nothing: there is nothing to trust")
        return 0
    if dry_run:
        say("nothing was written")
        return 0
    trusted_files.trust(config, [describe(need.access) for need in needs])
    say(f"trusted until these settings change; written to {trusted_files.trusted_path()}")
    return 0


def _list() -> int:
    from ragauge.trust.trusted_files import read_trusted

    files = read_trusted()
    for file in files:
        _print(f"{file.path}  ({_state(file)})")
        for access in file.access:
            _print(f"  {access}")
    if not files:
        say("nothing is trusted")
    return 0


def _state(file: TrustedFile) -> str:
    from ragauge.config import load_config
    from ragauge.errors import RagaugeError
    from ragauge.trust.trusted_files import network_hash

    try:
        same = network_hash(load_config(Path(file.path))) == file.sha256
    except RagaugeError:
        return "cannot be read"
    return "trusted" if same else "changed since: not trusted"


def _print(text: str) -> None:
    from ragauge.text import plain

    click.echo(plain(text))
