"""Levenshtein distances of many pairs: equal to the plain table, whatever the strings."""

from __future__ import annotations

import random
from collections.abc import Sequence

import numpy as np
import pytest

from ragauge.stats import levenshtein
from ragauge.stats.levenshtein import distances

ALPHABETS = {
    "two letters": "ab",
    "latin": "abcdefghijklmnopqrstuvwxyz ",
    "unicode": "aé\u0301\u0394\u4e2d\u6587\U0001f600\U0010ffff\ud800\x00",
    "many": "".join(chr(0x4E00 + i) for i in range(2000)),
}
EDGES = (1, 63, 64, 65, 127, 128, 129)


def table(a: str, b: str) -> int:
    """The textbook table of distances, row by row."""
    row = list(range(len(b) + 1))
    for i, x in enumerate(a, 1):
        corner, row[0] = row[0], i
        for j, y in enumerate(b, 1):
            corner, row[j] = row[j], min(row[j] + 1, row[j - 1] + 1, corner + (x != y))
    return row[-1]


def word(dice: random.Random, alphabet: str, length: int) -> str:
    return "".join(dice.choices(alphabet, k=length))


def edited(dice: random.Random, text: str, alphabet: str, edits_made: int) -> str:
    letters = list(text)
    for _ in range(edits_made):
        at = dice.randint(0, len(letters))
        letters[at : at + dice.randint(0, 1)] = dice.choices(alphabet, k=dice.randint(0, 1))
    return "".join(letters)


def assert_exact(pairs: Sequence[tuple[str, str]]) -> None:
    assert distances(pairs).tolist() == [table(a, b) for a, b in pairs]


@pytest.fixture(params=["side by side", "one by one"])
def _both_ways(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Few pairs go one by one; here the way is chosen whatever their number."""
    monkeypatch.setattr(levenshtein, "_FEW", 0 if request.param == "side by side" else 10**9)


def test_known_distances() -> None:
    """The examples of every textbook, and the empty string."""
    pairs = [
        ("kitten", "sitting"),  # k→s, e→i, +g
        ("saturday", "sunday"),
        ("", ""),
        ("", "abc"),
        ("abc", ""),
        ("same", "same"),
        ("ab", "ba"),  # a swap is two edits
        ("e\u0301", "\u00e9"),  # code points, not what is seen
    ]
    assert distances(pairs).tolist() == [3, 3, 0, 3, 3, 0, 2, 2]


def test_no_pairs() -> None:
    """The answer is empty, and of whole numbers."""
    found = distances([])
    assert found.shape == (0,)
    assert found.dtype == np.int64


@pytest.mark.slow
@pytest.mark.usefixtures("_both_ways")
@pytest.mark.parametrize("alphabet", ALPHABETS.values(), ids=ALPHABETS)
def test_equal_to_the_table_on_random_strings(alphabet: str) -> None:
    """Lengths from 0 to 200: unrelated strings, and strings a few edits apart."""
    dice = random.Random(1)
    pairs = []
    for _ in range(20):
        text = word(dice, alphabet, dice.randint(0, 200))
        pairs.append((text, word(dice, alphabet, dice.randint(0, 200))))
        pairs.append((text, edited(dice, text, alphabet, dice.randint(1, 20))))
    pairs += [
        (word(dice, alphabet, dice.randint(0, 6)), word(dice, alphabet, dice.randint(0, 6)))
        for _ in range(100)
    ]
    assert_exact(pairs)


@pytest.mark.usefixtures("_both_ways")
def test_equal_to_the_table_where_words_begin_and_end() -> None:
    """All pairs of lengths around the 64 bits of a word; `z` makes carries run far."""
    dice = random.Random(2)
    texts = [word(dice, "abz", length) for length in EDGES]
    others = [word(dice, "zzzzzza", length) for length in EDGES]
    assert_exact([(a, b) for a in texts for b in others])


def test_all_ways_meet_in_one_call() -> None:
    """Enough pairs of each length to go side by side, with long ones that go one by one."""
    dice = random.Random(3)
    pairs = [
        (word(dice, "abcd", dice.randint(0, 70)), word(dice, "abcd", dice.randint(0, 70)))
        for _ in range(300)
    ]
    pairs.append((word(dice, "abcd", 700), word(dice, "abcd", 650)))
    dice.shuffle(pairs)
    assert_exact(pairs)


def test_long_strings() -> None:
    """Thousands of characters: the distance is that of the edits made."""
    text = "abcdefghij" * 400
    assert distances([(text, text[1:] + "xyz"), (text, text[:2000] + text[2001:])]).tolist() == [
        4,
        1,
    ]


@pytest.mark.parametrize(("name", "limit"), [("_LANES", 7), ("_TEXT_CELLS", 500)])
def test_chunks_do_not_change_the_result(
    name: str, limit: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Memory is bounded by chunks; where they are cut does not matter."""
    monkeypatch.setattr(levenshtein, "_FEW", 0)
    monkeypatch.setattr(levenshtein, name, limit)
    dice = random.Random(4)
    assert_exact(
        [
            (word(dice, "abc", dice.randint(1, 80)), word(dice, "abc", dice.randint(1, 80)))
            for _ in range(60)
        ]
    )


def test_a_large_alphabet_makes_smaller_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Masks take room for every letter of a chunk, so chunks shrink until they fit."""
    monkeypatch.setattr(levenshtein, "_FEW", 4)
    monkeypatch.setattr(levenshtein, "_MASK_CELLS", 1000)
    dice = random.Random(5)
    many = ALPHABETS["many"]
    assert_exact([(word(dice, many, 20), word(dice, many, 30)) for _ in range(64)])


def test_a_pair_is_computed_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Repeated pairs, in either order, are one piece of work."""
    seen = []
    plain = levenshtein._single

    def spy(pattern: str, text: str) -> int:
        seen.append((pattern, text))
        return plain(pattern, text)

    monkeypatch.setattr(levenshtein, "_single", spy)
    pairs = [("abc", "abd"), ("abd", "abc"), ("abc", "abd"), ("abc", "abc"), ("", "abc")]
    assert distances(pairs).tolist() == [1, 1, 1, 0, 3]
    assert len(seen) == 1


def test_distances_are_a_metric() -> None:
    """Zero only for equal strings, the same both ways, and no way round is shorter."""
    dice = random.Random(6)
    words = sorted({word(dice, "ab", dice.randint(0, 12)) for _ in range(30)})
    n = len(words)
    found = distances([(a, b) for a in words for b in words]).reshape(n, n)
    assert np.array_equal(found == 0, np.eye(n, dtype=bool))
    assert np.array_equal(found, found.T)
    assert (found[:, None, :] <= found[:, :, None] + found[None, :, :]).all()
