"""`ragauge corpus build`: make documents into canonical text, a title tree and typed blocks."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, Literal

import click

from ragauge.cli.options import WORKERS_OPTION, choice, say
from ragauge.cli.streams import show_progress

if TYPE_CHECKING:
    from ragauge.corpus.build import BuildResult

_MOST_NOTES = 20
_MOST_KINDS = 8


@click.command("build", short_help="Build a corpus folder from files and folders.")
@click.argument("paths", nargs=-1, required=True, metavar="PATHS...")
@click.option("-o", "out", required=True, metavar="DIR", help="The folder that is written.")
@WORKERS_OPTION
@choice(
    "--on-bad-file",
    of=["stop", "skip"],
    default="stop",
    help="What to do with a file that cannot be parsed.",
)
@click.option(
    "--follow-symlinks",
    is_flag=True,
    help="Follow links that lead out of a folder, too. Without this they are left out and counted.",
)
def COMMAND(  # noqa: N802
    paths: tuple[str, ...],
    out: str,
    workers: int | None,
    on_bad_file: Literal["stop", "skip"],
    follow_symlinks: bool,
) -> int:
    """Parse PATHS and write a corpus to DIR: manifest.json, three lists, and the texts.

    Folders are read with all folders below them; hidden files and files of other kinds are left
    out. A document is named by its path in the given folder. DIR is replaced if it is a corpus.
    The same files give the same bytes. Exit code 5 if there is no document.
    """
    from ragauge.corpus.build import build
    from ragauge.errors import MAX_REPORTED
    from ragauge.text import plain

    shows = sys.stderr.isatty()
    try:
        progress = _progress if shows else None
        built = build(
            paths,
            out,
            workers=workers,
            on_bad_file=on_bad_file,
            follow_symlinks=follow_symlinks,
            progress=progress,
            on_traceback=_show_traceback if os.environ.get("RAGAUGE_DEBUG") else None,
        )
    finally:
        if shows:
            show_progress("")
    for line in _lines(built):
        click.echo(plain(line))
    for problem in built.skipped:
        where = f"{problem.place}: " if problem.place is not None else ""
        say(f"skipped: {where}{problem.message} [{problem.code}]")
    if built.skipped_count > len(built.skipped):
        more = built.skipped_count - len(built.skipped)
        click.echo(f"skipped: ... and {more} more", err=True)
    for link in built.links[:MAX_REPORTED]:
        say(f"not followed: {link} leads out of the folder; --follow-symlinks follows it")
    if len(built.links) > MAX_REPORTED:
        click.echo(f"not followed: ... and {len(built.links) - MAX_REPORTED} more", err=True)
    return 0


def _show_traceback(doc: str, text: str) -> None:
    say(f"{doc}:")
    for line in text.splitlines():
        say(line)


def _progress(done: int, total: int) -> None:
    if done % 20 == 0 or done == total:
        show_progress(f"parsed {done:,} of {total:,} files")


def _lines(built: BuildResult) -> list[str]:
    """What was built, in words."""
    counts = built.counts
    lines = [
        f"wrote {built.folder}, revision {built.manifest.revision}",
        f"documents  {counts.documents:,}{_split(counts.formats)}",
        f"sections   {counts.sections:,}",
        f"blocks     {counts.blocks:,}{_split(counts.types)}",
        f"bytes      {counts.bytes:,}",
    ]
    left_out = built.manifest.left_out
    if left_out:
        lines.append(f"left out   {sum(left_out.values()):,}{_split(left_out)}")
    if built.skipped_count:
        lines.append(f"skipped    {built.skipped_count:,}")
    lines += [f"note: {note.doc}: {note.text}" for note in built.notes[:_MOST_NOTES]]
    if len(built.notes) > _MOST_NOTES:
        lines.append(f"note: ... and {len(built.notes) - _MOST_NOTES} more")
    return lines


def _split(parts: dict[str, int]) -> str:
    """The parts of a sum, the largest first."""
    if not parts:
        return ""
    ordered = sorted(parts.items(), key=lambda part: (-part[1], part[0]))
    kinds = [f"{name} {count:,}" for name, count in ordered[:_MOST_KINDS]]
    if len(ordered) > _MOST_KINDS:
        kinds.append(f"and {len(ordered) - _MOST_KINDS} more kinds")
    return f"  ({', '.join(kinds)})"
