"""Places of texts in a corpus: held against a search that looks everywhere."""

from __future__ import annotations

import random
import unicodedata
from collections.abc import Mapping
from pathlib import Path

import pytest

from ragauge.corpus.place_index import LEAST_RUN, PlaceIndex, TextPlace, write_place_index
from ragauge.quotes import normalised
from tests.support.cases import cases
from tests.support.effort import seeds

WORDS = ("the", "port", "of", "a", "café", "8080", "naïve", "–", "日本語", "is", "x" * 30)
BLANKS = (" ", " ", " ", "\n", "\n\n", "  ", "\t", "\u00a0", " \u2003 ", "\r\n")


def index_of(folder: Path, texts: Mapping[str, str]) -> PlaceIndex:
    path = folder / "places"
    with path.open("w+b") as file:
        write_place_index(file, [(name, text.encode()) for name, text in texts.items()])
    return PlaceIndex(str(path))


def prose(rng: random.Random, length: int) -> str:
    return "".join(rng.choice(WORDS) + rng.choice(BLANKS) for _ in range(length))


def longest_run(texts: Mapping[str, str], wanted: str) -> int:
    """The length of the longest run of a normalised text in any normalised document."""
    text = normalised(wanted)
    best = 0
    for document in map(normalised, texts.values()):
        for start in range(len(text)):
            while start + best < len(text) and text[start : start + best + 1] in document:
                best += 1
    return best


@cases("seed", seeds(60))
def test_a_text_is_found_where_it_stands_and_nowhere_else(seed: int, tmp_path: Path) -> None:
    rng = random.Random(seed)
    texts = {f"{n}.md": prose(rng, rng.randint(0, 120)) for n in range(3)}
    texts["decomposed.md"] = unicodedata.normalize("NFD", prose(rng, 60))
    index = index_of(tmp_path, texts)
    for _ in range(30):
        doc = rng.choice(list(texts))
        start = rng.randrange(len(texts[doc]) + 1)
        cut = texts[doc][start : start + rng.choice((5, 20, 60, 200))].strip()
        wanted = rng.choice(BLANKS).join(cut.split())
        if not normalised(wanted):
            assert index.find(wanted).place is None
            continue
        normal = {name: normalised(text) for name, text in texts.items()}
        count = sum(
            text.startswith(normalised(wanted), at)
            for text in normal.values()
            for at in range(len(text))
        )
        match = index.find(wanted)
        if count == 0:  # a cut through a letter with its mark
            assert not match.whole
        elif count > 1:
            assert match.ambiguous
            assert match.place is None
        else:
            assert match.whole
            assert match.place is not None
            place = match.place
            inside = texts[place.doc].encode()[place.start : place.end].decode()
            assert normalised(inside) == normalised(wanted)
            assert inside == inside.strip()


@cases("seed", seeds(60))
def test_a_part_of_a_text_is_found_by_its_longest_run(seed: int, tmp_path: Path) -> None:
    rng = random.Random(seed)
    texts = {f"{n}.md": prose(rng, rng.randint(20, 100)) for n in range(3)}
    index = index_of(tmp_path, texts)
    for _ in range(10):
        doc = rng.choice(list(texts))
        start = rng.randrange(len(texts[doc]))
        core = texts[doc][start : start + rng.choice((30, 45, 90, 160))]
        around = ("Q" * rng.randint(0, 60), "Z" * rng.randint(0, 60))
        wanted = f"{around[0]} {core} {around[1]}"
        best = longest_run(texts, wanted)
        text = normalised(wanted)
        match = index.find(wanted)
        if match.place is not None:
            place = match.place
            inside = normalised(texts[place.doc].encode()[place.start : place.end].decode())
            assert inside in text
            assert len(inside) >= LEAST_RUN
            assert 2 * len(inside) >= len(text)
            assert len(inside) in (best, best - 1, best - 2)  # without blanks at its ends
        elif not match.ambiguous:
            assert best - 2 < max(LEAST_RUN, len(text) / 2)


def test_a_text_of_one_document_is_sought_there_alone(tmp_path: Path) -> None:
    shared = "The gateway listens on port 8080 unless the environment says otherwise."
    index = index_of(tmp_path, {"a.md": f"# A\n\n{shared}\n", "b.md": f"{shared}\n\nMore."})
    assert index.find(shared).ambiguous
    assert index.find(shared, "a.md").place == TextPlace("a.md", 5, 5 + len(shared))
    assert index.find(shared, "b.md").place == TextPlace("b.md", 0, len(shared))
    assert index.find("More.").place == TextPlace("b.md", len(shared) + 2, len(shared) + 7)


def test_a_run_shorter_than_forty_characters_or_half_says_nothing(tmp_path: Path) -> None:
    text = "Backups are kept for thirty days, then they are removed from all regions at once."
    index = index_of(tmp_path, {"a.md": text})
    assert index.find(f"{text[:39]}§").place is None
    # 40 of 45 characters, then 40 of 79 (a half), then 40 of 81
    for more, expected in ((5, True), (39, True), (41, False)):
        match = index.find(text[:40] + "§" * more)
        assert (match.place == TextPlace("a.md", 0, 40)) is expected
        assert not match.whole


@pytest.mark.slow
@pytest.mark.parametrize("letter", ["a", "ab", "abcabd "])
def test_texts_that_repeat_themselves_are_ambiguous_at_once(letter: str, tmp_path: Path) -> None:
    """Each entry of the table is the same here; nothing may be compared with everything."""
    index = index_of(tmp_path, {"a.md": letter * 60_000})
    assert index.find(letter * 20_000).ambiguous
    for n in range(10):
        assert index.find(f"{letter * 5_000}{n}!").place is None
        assert index.find(f"!{n}{letter * 400}{n}!").place is None


def test_characters_are_counted_as_bytes(tmp_path: Path) -> None:
    text = "é" * 700 + "日本" + "x" * 700
    index = index_of(tmp_path, {"a.md": text, "b.md": "plain"})
    for start, end in ((0, 1), (699, 703), (511, 1025), (1400, 1402), (1402, 1402)):
        expected = len(text[:start].encode()), len(text[:end].encode())
        assert index.to_bytes("a.md", start, end) == expected
    assert index.to_bytes("a.md", 0, len(text) + 1) is None
    assert index.to_bytes("b.md", 1, 3) == (1, 3)
    assert index.to_bytes("b.md", 1, 6) is None


def test_a_corpus_without_text_finds_nothing(tmp_path: Path) -> None:
    for texts in ({}, {"a.md": ""}, {"a.md": "  \n"}):
        index = index_of(tmp_path, texts)
        assert index.find("x" * 60).place is None
        assert index.find("x").place is None
