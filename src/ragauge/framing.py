"""Messages over pipes: a length and the bytes behind it."""

from __future__ import annotations

from typing import IO


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
