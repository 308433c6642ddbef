"""Atomic writes: a file is there as a whole or not at all."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

from ragauge.errors import RagaugeError

_BUFFER = 1024 * 1024


def write_atomically(name: str | os.PathLike[str], text: str) -> None:
    """Write a text file, whole or not at all."""
    with atomic_file(name) as file:
        file.write(text.encode())


@contextmanager
def atomic_file(name: str | os.PathLike[str]) -> Iterator[IO[bytes]]:
    """Yield a temporary file that takes its name when all went well, and is gone otherwise."""
    refuse_special(name)
    path = Path(os.path.realpath(name))  # what a link leads to is written, and the link stays
    if in_corpus(path):
        message = f"`{name}` is in a corpus, and nothing else is written into one"
        raise RagaugeError.of("file-exists", message, hint="name a file in another folder")
    temporary = None
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(
            "wb", _BUFFER, dir=path.parent, prefix=f".{path.name}.", delete=False
        ) as file:
            temporary = file.name
            yield file
        # Temporary files are private; what was asked for gets the permissions of any new file.
        mask = os.umask(0)
        os.umask(mask)
        os.chmod(temporary, 0o666 & ~mask)
        os.replace(temporary, path)
        temporary = None
    except OSError as error:
        message = f"`{name}` cannot be written: {error.strerror or error}"
        hint = "check that the folder may be written to, and that the disk has room"
        raise RagaugeError.of("file-unreadable", message, hint=hint) from error
    finally:
        if temporary is not None:
            with suppress(OSError):
                os.unlink(temporary)


def refuse_special(name: str | os.PathLike[str]) -> None:
    """Refuse to put a file where a folder, a pipe or a device such as /dev/stdout stands."""
    try:
        path = Path(os.path.realpath(name))
        special = path.exists() and not path.is_file()
    except (OSError, ValueError) as error:
        message = f"`{name}` cannot be the name of a file: {error}"
        raise RagaugeError.of("file-unreadable", message, hint="name another file") from error
    if special or not os.path.basename(os.fspath(name)):
        message = f"`{name}` is no ordinary file and is not replaced"
        hint = "name a file; its folder is made if it is not there"
        raise RagaugeError.of("file-unreadable", message, hint=hint)


def in_corpus(path: Path) -> bool:
    """Whether a file would come to stand among those of a corpus: its lists, or its texts."""
    above = [folder.parent for folder in path.parents if folder.name == "text"]
    return any(map(_is_corpus, (path.parent, *above)))


def _is_corpus(folder: Path) -> bool:
    try:
        with (folder / "manifest.json").open("rb") as file:
            return b'"ragauge.corpus/' in file.read(256)
    except OSError:
        return False
