"""Makes a case smaller while it still shows the same fault."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TypeVar

from tests.fuzz.case import Case
from tests.fuzz.mutate import command_of

MOST_TRIES = 400
Piece = TypeVar("Piece")


def minimise(case: Case, fails: Callable[[Case], bool], *, tries: int = MOST_TRIES) -> Case:
    """The smallest case that was found; `fails` says whether one still shows the fault.

    Files go first, then words of the command line, then lines and bytes of each file. The number of
    tries is bounded, so a large file may stay larger than it needs to be.
    """
    budget = _Budget(tries, fails)

    def shorter(case: Case, name: str, pieces: Sequence[bytes]) -> Case:
        def with_pieces(kept: Sequence[bytes]) -> Case:
            return replace(case, files={**case.files, name: b"".join(kept)})

        return with_pieces(_fewer(pieces, lambda kept: budget.fails(with_pieces(kept))))

    for name in sorted(case.files, key=lambda name: -len(case.files[name])):
        fewer = replace(case, files={key: text for key, text in case.files.items() if key != name})
        if budget.fails(fewer):
            case = fewer
    _, depth = command_of(case.arguments)
    head = case.arguments[:depth]
    words = _fewer(
        case.arguments[depth:],
        lambda kept: budget.fails(replace(case, arguments=(*head, *kept))),
    )
    case = replace(case, arguments=(*head, *words))
    for name in sorted(case.files, key=lambda name: len(case.files[name])):
        case = shorter(case, name, case.files[name].splitlines(keepends=True))
        content = case.files[name]
        case = shorter(case, name, [content[place : place + 1] for place in range(len(content))])
    return case


class _Budget:
    """Counts tries; when none is left, nothing fails any more, so nothing shrinks."""

    def __init__(self, tries: int, fails: Callable[[Case], bool]) -> None:
        self._left = tries
        self._fails = fails

    def fails(self, case: Case) -> bool:
        self._left -= 1
        return self._left >= 0 and self._fails(case)


def _fewer(pieces: Sequence[Piece], fails: Callable[[Sequence[Piece]], bool]) -> list[Piece]:
    """Leave out ever smaller runs of pieces, as long as it still fails (ddmin)."""
    kept = list(pieces)
    size = len(kept)
    while size >= 1 and kept:
        start = 0
        while start < len(kept):
            rest = kept[:start] + kept[start + size :]
            if fails(rest):
                kept = rest
            else:
                start += size
        size //= 2
    return kept
