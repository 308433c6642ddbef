"""Sparklines: a series of numbers as one line of text, a character for each."""

from __future__ import annotations

import math
from collections.abc import Sequence

BLOCKS = "▁▂▃▄▅▆▇█"
"""The eight levels, from the lowest to the highest."""

PLAIN = "_.-=+*%#"
"""The same for screens that show ASCII only."""

MISSING = "·"
PLAIN_MISSING = " "
_MIDDLE = 3  # ▄ fills half of its place


def sparkline(
    values: Sequence[float | None],
    *,
    low: float | None = None,
    high: float | None = None,
    ascii: bool = False,
) -> str:
    """Draw one character for each value, between the smallest and the largest of them.

    `low` and `high` replace the ends of the scale; what lies beyond is drawn at the end. None and
    nan are drawn as a dot (a blank in ASCII), and where the scale has no length, as all values
    are equal, each is drawn at the middle level.
    """
    if low is not None and high is not None and low > high:
        raise ValueError(f"the scale goes from {low} down to {high}")
    levels, missing = (PLAIN, PLAIN_MISSING) if ascii else (BLOCKS, MISSING)
    numbers = [value for value in values if value is not None and math.isfinite(value)]
    bottom = min([*numbers, *([] if high is None else [high])], default=0.0) if low is None else low
    top = max([*numbers, bottom]) if high is None else high
    return "".join(
        missing
        if value is None or math.isnan(value)
        else levels[_level(value, bottom, top, len(levels))]
        for value in values
    )


def _level(value: float, bottom: float, top: float, levels: int) -> int:
    if value < bottom:
        return 0
    if value > top:
        return levels - 1
    if bottom == top:
        return _MIDDLE
    if math.isinf(top - bottom):
        # The whole difference of two large numbers may be beyond any float; half of the smallest
        # number there is would be 0.
        value, bottom, top = value / 2, bottom / 2, top / 2
    share = (value - bottom) / (top - bottom)
    return min(levels - 1, int(share * levels))
