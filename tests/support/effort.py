"""How much random tests try: as much as they say, less in the fast lane, more in a campaign.

`make unit` sets `RAGAUGE_TEST_EFFORT` to a fifth. `make slow-fuzz` sets it to 20 and a new
`RAGAUGE_TEST_SEED` each time, which it prints: the same two find the same failure again.
"""

from __future__ import annotations

import os

from hypothesis import settings

EFFORT = float(os.environ.get("RAGAUGE_TEST_EFFORT", "1"))
FIRST_SEED = int(os.environ.get("RAGAUGE_TEST_SEED", "0"))
FEWEST = 5  # fewer examples than these are hardly random


def examples(count: int) -> settings:
    """That many examples: the same on every machine and in every run, but for a campaign."""
    return settings(
        max_examples=max(FEWEST, round(count * EFFORT)),
        derandomize=EFFORT <= 1,
        deadline=None,
        database=None,
    )


def seeds(count: int, *, step: int = 1) -> range:
    """The seeds of that many random cases; with `step` only the first of each group of them."""
    groups = max(1, round(count * EFFORT / step))
    return range(FIRST_SEED, FIRST_SEED + groups * step, step)
