"""Messages over pipes: a length and the bytes behind it, to processes of our own."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import IO


def started(*arguments: str) -> subprocess.Popen[bytes]:
    """Start a Python process that imports this very package and is spoken to over its pipes."""
    root = str(Path(__file__).resolve().parents[1])
    path = os.pathsep.join(filter(None, [root, os.environ.get("PYTHONPATH")]))
    return subprocess.Popen(
        [sys.executable, *arguments],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        # An interrupt from the keyboard is for the parent, which then closes the pipes.
        start_new_session=os.name == "posix",
        env={**os.environ, "PYTHONPATH": path},
    )


def write_message(stream: IO[bytes], payload: bytes) -> None:
    """Write one message: its length in 8 bytes, then its bytes."""
    stream.write(len(payload).to_bytes(8, "big"))
    stream.write(payload)
    stream.flush()


def read_message(stream: IO[bytes]) -> bytes | None:
    """Read one message; None at the end of the stream."""
    head = stream.read(8)
    if len(head) < 8:
        return None
    size = int.from_bytes(head, "big")
    payload = stream.read(size)
    return payload if len(payload) == size else None
