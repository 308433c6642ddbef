"""Stretches: text that went on as it was, over headings and from block to block."""

from __future__ import annotations

from collections.abc import Iterable

from ragauge.model.migration import Run

_BLANK = frozenset(b" \t\r\n")


def stretches(old: bytes, new: bytes, runs: Iterable[Run]) -> tuple[Run, ...]:
    """Join runs of the same bytes where the bytes between them are the same, too.

    What is in one run alone is known already, so only those that hold several come out. Blanks
    before and behind a stretch that stayed belong to it.
    """
    found: list[Run] = []
    joined = False
    start = shift = end = 0
    for before, after, size in sorted(set(runs)):
        if end and after - before == shift and old[end:before] == new[end + shift : before + shift]:
            end, joined = max(end, before + size), True
            continue
        if joined:
            found.append(_widened(old, new, start, end, shift))
        start, end, shift, joined = before, before + size, after - before, False
    if joined:
        found.append(_widened(old, new, start, end, shift))
    return tuple(found)


def _widened(old: bytes, new: bytes, start: int, end: int, shift: int) -> Run:
    while start and start + shift and old[start - 1] == new[start + shift - 1] in _BLANK:
        start -= 1
    while end < len(old) and end + shift < len(new) and old[end] == new[end + shift] in _BLANK:
        end += 1
    return start, start + shift, end - start
