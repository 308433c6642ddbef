"""Filling a page: texts in blocks, as much of each as there is room for, measured and not guessed.

A step says how many characters each text may have. The first step that fits is taken, and then
texts get what the step before it gives them, one by one from the first, until the room is used up.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Generic, TypeVar

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from ragauge.report.html.data_blocks import compressed, encoded
from ragauge.sidework import beside

Item = TypeVar("Item")
Limits = NDArray[np.int64]
"""How many characters each item may have."""
ALL = 2**40
"""A limit that is none."""
_SAMPLE = 300_000
_SAMPLE_ITEMS = 4_000
"""Characters and items from which it is guessed at which step to begin."""
_LEFT = 0.02
"""The share of the room that is not worth filling any more."""


class Packer:
    """Packs values, and remembers what it packed: most blocks are the same when one is tried."""

    def __init__(self) -> None:
        self._known: dict[bytes, str] = {}

    def packed(self, values: Iterable[Any]) -> list[str]:
        """Values as the texts of elements."""
        raws = list(map(encoded, values))
        new = [raw for raw in dict.fromkeys(raws) if raw not in self._known]
        self._known.update(zip(new, beside(compressed, new), strict=True))
        return [self._known[raw] for raw in raws]


class Filled(Struct, frozen=True):
    """Blocks, and the limit under which each item stands in them."""

    blocks: list[str]
    limits: Limits


class Filling(Generic[Item]):
    """Items whose texts may be cut: `lengths` are their characters, `cut` cuts one to a limit."""

    def __init__(
        self, items: Sequence[Item], lengths: Sequence[int], cut: Callable[[int, int], Any],
        size: int,
    ) -> None:  # fmt: skip
        self._items = items
        self._lengths = np.array(lengths, np.int64)
        self._cut = cut
        self._starts = range(0, len(items), size)
        self._size = size

    def filled(self, steps: Sequence[Limits], room: int) -> Filled:
        """The blocks within so many bytes; under the last step if even that is too much."""
        if not self._lengths.any():
            return Filled(self._within(steps[0], None) or [], steps[0])
        last = len(steps) - 1
        places = range(last)
        step = bisect_left(places, True, key=lambda i: self._guess(steps[i]) <= room)
        blocks = self._within(steps[step], room if step < last else None)
        while blocks is None:
            step += 1
            blocks = self._within(steps[step], room if step < last else None)
        limits = steps[step].copy()
        left = room - sum(map(len, blocks))
        least = int(max(room, 0) * _LEFT)
        while step > 0 and left > least:
            step -= 1
            is_all = True
            for number, start in enumerate(self._starts):
                if left <= least:
                    is_all = False
                    break
                gained, whole = self._raised(blocks, number, start, limits, steps[step], left)
                left -= gained
                is_all &= whole
            if not is_all:
                break
        return Filled(blocks, limits)

    def _raised(
        self, blocks: list[str], number: int, start: int, limits: Limits, higher: Limits, left: int
    ) -> tuple[int, bool]:
        """Give a block more, or as many of its items as fit; what that took, and whether all."""
        stop = min(start + self._size, len(self._items))
        before = len(blocks[number])

        def mixed(count: int) -> tuple[Limits, str]:
            tried = limits.copy()
            tried[start : start + count] = higher[start : start + count]
            return tried, self._block(tried, start)

        low, high = 0, stop - start
        if np.minimum(higher[start:stop], self._lengths[start:stop]).sum() == np.minimum(
            limits[start:stop], self._lengths[start:stop]
        ).sum():  # fmt: skip
            return 0, True
        tried, text = mixed(high)
        if len(text) - before <= left:
            low = high
        kept = (tried, text) if low else None
        while high - low > 1:
            middle = (low + high) // 2
            tried, text = mixed(middle)
            if len(text) - before <= left:
                low, kept = middle, (tried, text)
            else:
                high = middle
        if kept is None:
            return 0, False
        limits[:] = kept[0]
        blocks[number] = kept[1]
        return len(kept[1]) - before, low == stop - start

    def _within(self, limits: Limits, room: int | None) -> list[str] | None:
        """All blocks under limits, or None where they need more room than there is."""
        made = []
        size = 0
        for text in beside(compressed, (self._raw(limits, start) for start in self._starts)):
            made.append(text)
            size += len(text)
            if room is not None and size > room:
                return None
        return made

    def _block(self, limits: Limits, start: int) -> str:
        return compressed(self._raw(limits, start))

    def _raw(self, limits: Limits, start: int) -> bytes:
        part = limits[start : start + self._size]
        if not np.minimum(part, self._lengths[start : start + self._size]).any():
            return _NOTHING
        cut = self._cut
        return encoded([cut(start + i, most) for i, most in enumerate(part.tolist())])

    def _guess(self, limits: Limits) -> float:
        """About how many bytes all takes under limits, judged by every so many items."""
        lengths = np.minimum(self._lengths, limits)
        total = int(lengths.sum())
        if total == 0:
            return 0.0
        every = max(1, total // _SAMPLE, len(lengths) // _SAMPLE_ITEMS)
        chosen = range(0, len(lengths), every)
        made = compressed(encoded([self._cut(i, int(limits[i])) for i in chosen]))
        return len(made) * total / max(int(lengths[::every].sum()), 1)


_NOTHING = b"[]"
"""A block whose items have no text."""
