"""Writing a text file so that it is whole or not there at all."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

from ragauge.errors import RagaugeError


def write_atomically(name: str | os.PathLike[str], text: str) -> None:
    """Write a text file by a temporary file and a rename, so that it is whole or not there."""
    path = Path(name)
    temporary = None
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(
            "w", encoding="utf-8", newline="\n", dir=path.parent,
            prefix=f".{path.name}.", delete=False,
        ) as file:  # fmt: skip
            temporary = file.name
            file.write(text)
        # Temporary files are private; a report gets the permissions of any new file.
        mask = os.umask(0)
        os.umask(mask)
        os.chmod(temporary, 0o666 & ~mask)
        os.replace(temporary, path)
    except OSError as error:
        _discard(temporary)
        raise RagaugeError.of(
            "file-unreadable",
            f"`{path}` cannot be written: {error.strerror or error}",
            hint="check that the folder exists and may be written to",
        ) from error
    except BaseException:
        _discard(temporary)
        raise


def _discard(temporary: str | None) -> None:
    if temporary is not None and os.path.exists(temporary):
        os.unlink(temporary)
