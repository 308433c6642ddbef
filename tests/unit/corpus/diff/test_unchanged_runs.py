"""Stretches: runs of the same bytes become one where the bytes between them are the same."""

from __future__ import annotations

from ragauge.corpus.diff.classify import unchanged_runs
from ragauge.model.migration import Run
from tests.support.cases import cases

OLD = b"one\n\ntwo\n\nthree\n"


@cases(
    ("new", "runs", "found"),
    [
        # `one` and `two` stand 2 bytes later, with the two line ends between them and behind
        (b"x\none\n\ntwo\n\n3\n", [(0, 2, 3), (5, 7, 3)], ((0, 2, 10),)),
        # three line ends between them: they are apart
        (b"one\n\n\ntwo\n", [(0, 0, 3), (5, 6, 3)], ()),
        # the order in which runs are told does not matter, nor that one is told twice
        (OLD, [(10, 10, 5), (0, 0, 3), (5, 5, 3), (5, 5, 3)], ((0, 0, 16),)),
        # the same way forward, and other text between
        (b"one\n,\ntwo", [(0, 0, 3), (6, 7, 2)], ()),
        # `one` alone is known as it is
        (b"one", [(0, 0, 3)], ()),
        (b"", [], ()),
        # two stretches; a blank before the first is in neither text
        (b"one\n\ntwo, three", [(0, 0, 3), (5, 5, 3), (10, 10, 5)], ((0, 0, 8),)),
        (b"three\none\n\ntwo", [(0, 6, 3), (5, 11, 3), (10, 0, 5)], ((0, 6, 8),)),
    ],
)
def test_runs_are_joined_over_what_stayed_between_them(
    new: bytes, runs: list[Run], found: tuple[Run, ...]
) -> None:
    assert unchanged_runs(OLD, new, runs) == found


def test_runs_that_overlap_are_one() -> None:
    assert unchanged_runs(b"abcdef", b"-abcdef", [(0, 1, 4), (2, 3, 4)]) == ((0, 1, 6),)
