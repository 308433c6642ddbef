"""Pacing: how fast a target is asked, and how long is waited before it is asked again."""

from __future__ import annotations

import threading
import time
from hashlib import blake2b

_FIRST_WAIT, _LAST_WAIT = 0.25, 30.0


class Pace:
    """Lets questions through one by one: at a rate, and not before a target wants to be asked."""

    def __init__(self, rate: float | None) -> None:
        self.gap = 0.0 if rate is None else 1 / rate
        self.next = 0.0
        self.lock = threading.Lock()

    def wait(self) -> float:
        """The seconds to wait before the next question; its place is taken."""
        if not self.gap and not self.next:
            return 0.0
        with self.lock:
            now = time.monotonic()
            at = max(now, self.next)
            if self.gap or self.next <= now:
                self.next = at + self.gap if self.gap else 0.0
            return at - now

    def hold(self, seconds: float) -> None:
        """Let nothing through for some seconds."""
        with self.lock:
            self.next = max(self.next, time.monotonic() + seconds)


def backoff(number: int, attempt: int) -> float:
    """Seconds to wait before a slot is asked again: longer each time, and never in step.

    The spread comes from the slot, not from chance.
    """
    digest = blake2b(f"{number}:{attempt}".encode(), digest_size=4).digest()
    spread = int.from_bytes(digest, "big") / 2**32
    return float(min(_LAST_WAIT, _FIRST_WAIT * 2**attempt) * (0.5 + spread))
