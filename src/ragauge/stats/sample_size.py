"""What a number of questions can show: how well a rate is known, and the least change seen."""

from __future__ import annotations

from msgspec import Struct

from ragauge.stats.intervals import Z95, wilson

_MOST = 1 << 24


class Size(Struct, frozen=True):
    """A set of n questions, judged by a rate of one half, where least is known."""

    n: int

    @property
    def half_width(self) -> float | None:
        """How far the 95 % interval goes to each side."""
        bounds = _bounds(self.n)
        return None if bounds is None else (bounds[1] - bounds[0]) / 2

    @property
    def detectable(self) -> float | None:
        """The smallest change that a run would show in four cases of five."""
        return detectable(_bounds(self.n))

    @staticmethod
    def needed(change: float) -> int:
        """The fewest questions that show a change of this much."""
        few, enough = 0, _MOST
        while enough - few > 1:
            middle = (few + enough) // 2
            if (detectable(_bounds(middle)) or 1.0) <= change:
                enough = middle
            else:
                few = middle
        return enough


def _bounds(n: int) -> tuple[float, float] | None:
    return wilson(n / 2, n) if n else None


# Z95 for the 95 % interval, and 0.84 for a power of 80 %.
_DETECTABLE = (Z95 + 0.8416212335729143) / (2 * Z95)


def detectable(interval: tuple[float, float] | None) -> float | None:
    """The smallest change that a run with this interval would show in four cases of five.

    Values that are all the same have an interval without width, which tells nothing.
    """
    return None if interval is None else (interval[1] - interval[0]) * _DETECTABLE or None
