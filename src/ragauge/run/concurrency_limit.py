"""How many questions are asked at the same time: fewer, and later, when a target is busy.

The limit is halved when the target refuses and grows by one for each round of answers, as the
congestion window of TCP does (additive increase, multiplicative decrease).
"""

from __future__ import annotations

import math
import threading
import time
from hashlib import blake2b

_ROUNDS, _MOST_ROUNDS = 8, 128  # for one more place, near the number that was refused before
_LEAST_SPREAD = 0.25  # seconds over which questions come back after a pause


def spread(number: int, attempt: int) -> float:
    """A fraction from 0 to 1 that differs by slot and attempt, and is the same in every run."""
    digest = blake2b(f"{number}:{attempt}".encode(), digest_size=4).digest()
    return int.from_bytes(digest, "big") / 2**32


class ConcurrencyLimit:
    """The places of questions that may be asked at once, from 1 to `most`.

    allowed      how many places there are now; a fraction is on the way to the next one
    refused_at   how many there were when the target last refused
    rounds       rounds of answers before that number is tried again; more each time it is refused
    round        counts the times that the number was halved: what was asked before the last of
                 them says nothing new
    """

    def __init__(self, most: int, stop: threading.Event) -> None:
        self.most = most
        self.stop = stop
        self.allowed = float(most)
        self.refused_at = math.inf
        self.rounds = _ROUNDS
        self.asking = 0
        self.round = 0
        self.paused_until = self.pause = 0.0
        self.changed = threading.Condition()

    def enter(self, number: int) -> int | None:
        """Wait until a slot may be asked; return the round, or None if the run ends.

        After a pause slots come back one by one, each at a time of its own.
        """
        waited_for = 0.0
        while not self.stop.is_set():
            until, now = self.paused_until, time.monotonic()
            if until > max(now, waited_for):
                waited_for = until
                own = spread(number, self.round) * max(_LEAST_SPREAD, self.pause / 10)
                self.stop.wait(until + own - now)
                continue
            with self.changed:
                if self.paused_until > max(time.monotonic(), waited_for):
                    continue
                if self.asking + 1 <= self.allowed:
                    self.asking += 1
                    return self.round
                self.changed.wait()
        return None

    def leave(self) -> None:
        """Give a place back."""
        with self.changed:
            self.asking -= 1
            self.changed.notify()

    def grow(self) -> None:
        """Allow a little more after an answer; carefully where the target refused before."""
        if self.allowed >= self.most:
            return
        with self.changed:
            before = int(self.allowed)
            careful = before + 1 >= self.refused_at
            step = 1 / (self.allowed * (self.rounds if careful else 1))
            self.allowed = min(float(self.most), self.allowed + step)
            if self.allowed >= self.refused_at + 1:  # it has room for more than it had then
                self.refused_at = math.inf
            if int(self.allowed) > before:
                self.changed.notify()

    def shrink(self, asked_in: int) -> None:
        """Allow half after a refusal, once for all that was asked in one round."""
        with self.changed:
            if asked_in == self.round:
                again = int(self.allowed) == self.refused_at
                self.rounds = min(_MOST_ROUNDS, 2 * self.rounds) if again else _ROUNDS
                self.refused_at = int(self.allowed)
                self.allowed = max(1.0, self.allowed / 2)
                self.round += 1

    def pause_for(self, seconds: float) -> None:
        """Let nothing be asked for some seconds."""
        with self.changed:
            until = time.monotonic() + seconds
            if until > self.paused_until:
                self.paused_until, self.pause = until, seconds

    def wake(self) -> None:
        """Let everybody who waits see that the run ends."""
        with self.changed:
            self.changed.notify_all()
