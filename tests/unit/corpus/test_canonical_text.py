"""Canonical text: lines, trimmed extents, and where runs of text come from."""

from __future__ import annotations

from ragauge.corpus.canonical_text import (
    TextWriter,
    line_starts,
    lines_of,
    stripped,
    trimmed,
    well_formed,
)
from tests.support.cases import cases


def test_lines_end_at_crlf_cr_and_lf_only() -> None:
    text = "a\r\nb\rc\nd\u2028e\x0bf\x0cg\x85h"
    assert lines_of(text) == ["a", "b", "c", "d\u2028e\x0bf\x0cg\x85h"]
    assert line_starts(text.encode()) == [0, 3, 5, 7]
    assert line_starts(b"") == [0]


@cases(
    ("text", "expected"),
    [
        (b"\n \n  a\n b \n\n", b"  a\n b"),
        (b"\r\r  a\r", b"  a"),
        (b"a", b"a"),
        (b" \n\t", b""),
        (b"", b""),
    ],
)
def test_trimmed_keeps_the_indentation_of_the_first_line(text: bytes, expected: bytes) -> None:
    start, end = trimmed(text, 0, len(text))
    assert text[start:end] == expected


def test_trimmed_stays_inside_its_extent() -> None:
    assert trimmed(b"a\n\nb\n\nc", 1, 6) == (3, 4)


def test_stripped_atoms_keep_their_origins() -> None:
    atoms = [(" \n", 0), ("  a", 2), (" ", None), ("b ", 9), ("\n", 11)]
    assert stripped(atoms) == [("a", 4), (" ", None), ("b", 9)]
    assert stripped(atoms, lines=True) == [("  a", 2), (" ", None), ("b", 9)]
    assert stripped([(" ", 0)]) == []


def test_runs_that_go_on_in_the_source_are_one() -> None:
    writer = TextWriter()
    assert writer.block([("a", 4), ("é", 5), ("b", 6), ("c", 9)]) == (0, 5)
    assert writer.block([("d", 10), (" | ", None), ("e", 11)]) == (7, 12)
    assert writer.text.decode() == "aébc\n\nd | e"
    # a, é and b follow each other in both; c not in the source, d and e not in the text
    assert writer.origins == ((0, 4, 4), (4, 9, 1), (7, 10, 1), (11, 11, 1))


def test_surrogates_are_joined_or_replaced() -> None:
    assert well_formed("a\ud83d\ude00b\ud800") == "a😀b\ufffd"
    assert well_formed("plain") == "plain"
