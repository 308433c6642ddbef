"""The hidden folder beside an output in which it is made, and what of it an end by force leaves.

A folder of ours has a marker inside that names its output, and is held while a build goes on. So
the next build of the same output can tell what nobody needs any more, and removes nothing else.
"""

from __future__ import annotations

import shutil
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import IO

from ragauge.files.lock import hold

MARKER = ".ragauge-building"
_NEW, _OLD = "new", "old"


class Workplace:
    """A marked folder with a new folder in it, which comes to its place in one step."""

    def __init__(self, out: Path) -> None:
        """Make the folder beside `out`, after clearing what earlier builds have left."""
        self.out = out
        clear(out)
        self.folder = Path(tempfile.mkdtemp(prefix=f".{out.name}.", dir=out.parent))
        self.new = self.folder / _NEW
        self.marker: IO[bytes] | None = None
        try:
            self._mark()
            self.new.mkdir()
        except BaseException:
            self.discard()
            raise

    def _mark(self) -> None:
        """Put the marker in; it is held before anybody can see it."""
        early = self.folder / f"{MARKER}.early"
        self.marker = early.open("wb")
        self.marker.write(_said(self.out))
        self.marker.flush()
        hold(self.marker)
        with suppress(PermissionError):  # Windows renames no open files: leftovers stay there
            early.rename(self.folder / MARKER)

    def put_in_place(self) -> None:
        """Replace the output by the new folder; if that fails, the old one is back."""
        if not self.out.exists():
            self.new.rename(self.out)
            return
        old = self.folder / _OLD
        self.out.rename(old)
        try:
            self.new.rename(self.out)
        except BaseException:
            old.rename(self.out)
            raise

    def discard(self) -> None:
        """Remove the folder and what is still in it."""
        if self.marker is not None:
            self.marker.close()
        shutil.rmtree(self.folder, ignore_errors=True)


def clear(out: Path) -> None:
    """Remove what builds of this output left when they were ended by force.

    One may have been ended between taking the old output away and putting the new one there: then
    the old one comes back first.
    """
    for folder in sorted(out.parent.glob(f".{_escaped(out.name)}.*")):
        marker = folder / MARKER
        with suppress(OSError):
            if folder.is_symlink() or marker.is_symlink() or marker.read_bytes() != _said(out):
                continue
            with marker.open("rb+") as stream:
                hold(stream)  # whoever still builds holds it, which is an error here
                if (folder / _OLD).exists() and not out.exists():
                    (folder / _OLD).rename(out)
                shutil.rmtree(folder, ignore_errors=True)


def _said(out: Path) -> bytes:
    return f"a corpus is being built here, to become {out.name}\n".encode(errors="surrogateescape")


def _escaped(name: str) -> str:
    import glob

    return glob.escape(name)
