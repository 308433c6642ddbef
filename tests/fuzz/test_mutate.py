"""Broken files and command lines: always another one, and the same one for the same seed."""

from __future__ import annotations

import gzip
import zlib
from random import Random

import pytest

from tests.fuzz import mutate
from tests.support.command import GOLD, lines_of

CONTENT = lines_of(GOLD)


def broken(seed: int) -> bytes:
    return mutate.mutate_bytes(Random(seed), CONTENT)


def test_the_same_seed_breaks_a_file_in_the_same_way() -> None:
    """Also after many others: no change may leave a trace in the values that are put in."""
    first = [broken(seed) for seed in range(300)]
    assert [broken(seed) for seed in range(300)] == first
    assert len(set(first)) > 250
    assert max(map(len, first)) <= mutate.MOST_BYTES


@pytest.mark.parametrize("content", [b"", b"\n", b"\x00", b"[]", b'{"a": [', b"[" * 3_000])
def test_any_content_can_be_broken(content: bytes) -> None:
    for seed in range(100):
        mutate.mutate_bytes(Random(seed), content)


def test_a_packed_file_is_broken_inside_and_outside() -> None:
    inside = 0
    for seed in range(40):
        content = mutate.mutate_packed(Random(seed), CONTENT, "gzip")
        try:
            inside += gzip.decompress(content) != CONTENT
        except (OSError, EOFError, zlib.error):
            continue
    assert 5 < inside < 35


def test_a_command_line_gets_options_of_its_command() -> None:
    lines = [
        mutate.mutate_arguments(Random(seed), ("gold", "lint", "gold.jsonl"), ["gold.jsonl"])
        for seed in range(200)
    ]
    assert all(line[:2] == ("gold", "lint") for line in lines)
    words = {word for line in lines for word in line}
    assert {"--strict", "--corpus", "--dialect"} <= words
    assert not {"--workers", "--on-bad-line"} & words
