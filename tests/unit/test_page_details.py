"""Data of the page: what goes in comes out again, and what does not fit is chosen and counted."""

from __future__ import annotations

import base64
import json
import zlib
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragauge.model.drilldown import Attempt, Drilldown, Passage
from ragauge.page.blocks import packed
from ragauge.page.details import Gathered
from ragauge.page.fitting import GAP, STEPS, Omitted, shorten
from ragauge.page.stock import PIECES, QUESTIONS
from tests.pages import drilldown, passage

PLENTY = 10**9
WORDS = "alpha beta gamma delta epsilon zeta eta theta iota kappa lambda mu nu xi omicron pi rho"


def opened(text: str) -> Any:
    return json.loads(zlib.decompress(base64.b64decode(text)))


def pieces_of(made: Any) -> list[list[Any]]:
    """The rows of all pieces: id, doc, section, where, type, text."""
    return [list(row) for block in made.pieces for row in zip(*opened(block), strict=True)]


def long_text(i: int) -> str:
    """About 3,000 characters that no other text has."""
    words = WORDS.split()
    return " ".join(f"{words[(i + j * j) % 17]}{i * j % 9973}" for j in range(300))


def question(i: int, hits: int = 3, text: bool = True) -> Drilldown:
    found = tuple(
        passage(i * 100 + place, long_text(i * 100 + place) if text else None)
        for place in range(hits)
    )
    return Drilldown(qid=f"Q{i}", attempts=(Attempt(hits=found, answer="x" * 3000),))


@given(st.recursive(st.none() | st.booleans() | st.integers(-9, 9) | st.text(),
                    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner)))  # fmt: skip
def test_what_is_packed_is_unpacked(value: Any) -> None:
    assert opened(packed(value)) == value


def test_halves_of_characters_are_kept() -> None:
    nan = float("nan")
    assert opened(packed({"a": ["\ud800x", 0.5, nan]})) == {"a": ["\ud800x", 0.5, None]}
    assert opened(packed({"a": ["x", 0.5, nan]})) == {"a": ["x", 0.5, None]}


def test_a_question_comes_out_as_it_went_in() -> None:
    made = Gathered([drilldown(7, attempts=2)], [True]).packed(PLENTY)
    ((found,),) = map(opened, made.questions)
    assert found["gold"] == "gold.jsonl:8"
    assert found["expected"] == [{"name": "guide.md#S.7", "doc": "guide.md", "quote": "treasure"}]
    assert [each["seed"] for each in found["attempts"]] == ["0", "1"]
    hits = found["attempts"][0]["hits"]
    assert hits["marks"] == [0, 0b1001, 0]  # gold is the first bit, cited the fourth
    assert hits["highlights"] == {"1": [[7, 15]]}
    assert hits["score"] == [0.79, 0.78, 0.77]  # 1 - 21/100 for the first: 7 * 3 = 21
    assert hits["delta_s"] == [0.25, 0.25, 0.25]
    rows = pieces_of(made)
    assert hits["piece"] == [0, 1, 1]  # each is the difference from the one before
    first = rows[hits["piece"][0]]
    assert first[:5] == ["guide.md#S.21", "guide.md", "S.21", "bytes 21-30", None]
    assert first[5].startswith("before treasure behind w49 ")
    assert made.omitted.sentences() == []


def test_a_passage_is_stored_once_for_all_who_show_it() -> None:
    shared = passage(1, "the same text")
    many = [Drilldown(qid=str(i), attempts=(Attempt(hits=(shared,), citations=(shared,)),))
            for i in range(500)]  # fmt: skip
    made = Gathered(many, [False] * 500).packed(PLENTY)
    assert [row[5] for row in pieces_of(made)] == ["the same text"]


@pytest.mark.parametrize("n", [1, QUESTIONS, QUESTIONS + 1])
def test_questions_come_in_blocks(n: int) -> None:
    made = Gathered([drilldown(i) for i in range(n)], [False] * n).packed(PLENTY)
    assert [len(opened(block)) for block in made.questions] == (
        [n] if n <= QUESTIONS else [QUESTIONS, 1]
    )
    assert len(made.pieces) == -(-3 * n // PIECES)


def test_the_words_of_a_question_are_stored_once() -> None:
    """The table has all words of a short question; the drill-down has those of a long one."""
    long = "why " * 200
    gathered = Gathered([Drilldown(qid="a", question="Short?"),
                         Drilldown(qid="b", question=long)], [False, False])  # fmt: skip
    assert gathered.texts[0] == "Short?"
    assert gathered.texts[1].endswith("…")
    ((short, other),) = map(opened, gathered.packed(PLENTY).questions)
    assert "question" not in short
    assert other["question"] == long


def test_as_many_drilldowns_as_questions_are_demanded() -> None:
    with pytest.raises(ValueError, match="zip"):
        Gathered([drilldown(1)], [False, False])


def test_numbers_that_are_none_are_not_shown() -> None:
    bad = Drilldown(qid="a", attempts=(Attempt(hits=(passage(1, score=float("nan")),),
                                               delta_s=float("inf")),))  # fmt: skip
    ((found,),) = map(opened, Gathered([bad], [False]).packed(PLENTY).questions)
    assert found["attempts"][0]["hits"]["score"] == [None]
    assert "delta_s" not in found["attempts"][0]


def test_a_text_is_shortened_around_its_evidence() -> None:
    text = "a" * 100 + "EVIDENCE" + "b" * 100
    short = shorten(text, [(100, 108)], 28)
    assert short.text == "… " + "a" * 10 + "EVIDENCE" + "b" * 10 + " …"
    assert short.span(100, 108) == (12, 20)
    assert short.text[12:20] == "EVIDENCE"
    assert short.span(0, 5) is None


def test_a_text_without_evidence_keeps_its_beginning() -> None:
    assert shorten("abcdefghij", [], 4).text == "abcd …"


def test_evidence_in_two_places_keeps_both() -> None:
    text = f"{'a' * 200}ONE{'b' * 200}TWO{'c' * 200}"
    short = shorten(text, [(200, 203), (403, 406)], 40)
    spans = [short.span(200, 203), short.span(403, 406)]
    assert [short.text[slice(*span)] for span in spans if span] == ["ONE", "TWO"]
    assert short.text.count(GAP.strip()) == 3


@given(st.text(min_size=1, max_size=200),
       st.lists(st.tuples(st.integers(-5, 210), st.integers(-5, 210)), max_size=4),
       st.integers(1, 150))  # fmt: skip
def test_what_is_kept_of_a_highlight_is_what_it_was(
    text: str, spans: list[tuple[int, int]], most: int
) -> None:
    spans = [(a, b) for a, b in spans if 0 <= a < b <= len(text)]
    short = shorten(text, spans, most)
    for start, end in spans:
        found = short.span(start, end)
        if found is not None:
            kept = short.text[found[0] : found[1]]
            assert text[start:end].startswith(kept)
    assert len(short.text) <= most + len(GAP) * (len(spans) + 1) + len(spans)


def steps_taken(rooms: list[int], hits: int = 3) -> list[Omitted]:
    failing = [i % 4 == 0 for i in range(40)]
    many = [question(i, hits) for i in range(40)]
    return [Gathered(many, failing).packed(room).omitted for room in rooms]


def test_texts_of_fine_questions_are_shortened_first() -> None:
    """40 questions of 3 hits, each text of its own: 30 fine ones have 90 texts."""
    whole = Gathered([question(i) for i in range(40)], [i % 4 == 0 for i in range(40)])
    size = whole.packed(PLENTY).size
    (omitted,) = steps_taken([int(size * 0.8)])
    assert omitted.shortened == 90
    assert omitted.answers == 30
    assert omitted.texts == 0


def test_failing_questions_keep_their_texts_the_longest() -> None:
    failing = [i % 4 == 0 for i in range(40)]
    gathered = Gathered([question(i) for i in range(40)], failing)
    size = gathered.packed(PLENTY).size
    made = gathered.packed(int(size * 0.45))
    lengths = {row[0]: len(row[5]) for row in pieces_of(made)}
    mine = {name: int(name.rpartition(".")[2]) // 100 % 4 == 0 for name in lengths}
    shortest_failing = min(length for name, length in lengths.items() if mine[name])
    assert shortest_failing > max(length for name, length in lengths.items() if not mine[name])


def test_less_room_never_gives_more() -> None:
    gathered = Gathered([question(i, 12) for i in range(40)], [i % 4 == 0 for i in range(40)])
    size = gathered.packed(PLENTY).size
    sizes = [gathered.packed(int(size * share)).size for share in (1, 0.8, 0.5, 0.2, 0.1, 0.05)]
    assert sizes == sorted(sizes, reverse=True)
    for share, found in zip((1, 0.8, 0.5, 0.2, 0.1), sizes, strict=False):
        assert found <= size * share


def test_hits_beyond_the_tenth_go_before_whole_questions() -> None:
    """Without any room nothing is shown, and all that is told."""
    (nothing,) = steps_taken([0], hits=12)
    assert nothing.questions == 40
    told = nothing.sentences()
    assert told[-1] == "40 questions are shown without details"
    many = [question(i, 300, text=False) for i in range(20)]
    gathered = Gathered(many, [i == 0 for i in range(20)])
    whole = gathered.packed(PLENTY).size
    short = gathered.packed(int(whole * 0.9)).omitted
    assert short.hits == 19 * 290  # of 19 fine questions, all but ten of 300
    assert short.cut_questions == 19
    assert short.questions == 0
    rows = pieces_of(gathered.packed(int(whole * 0.9)))
    assert sum(row[0] is not None for row in rows) == 300 + 17 * 10  # two share those of the first


def test_the_first_of_the_failing_questions_are_shown_if_not_all_can_be() -> None:
    """Of 3,000 failing ones, 2,000 fit; fine ones have gone before."""
    n = 6000
    failing = [i % 2 == 1 for i in range(n)]
    gathered = Gathered([drilldown(i) for i in range(n)], failing)
    shown = STEPS[-2]
    assert shown.failing_shown == 2000
    expected = shown.shown(failing)
    assert expected.count(True) == 2000
    assert expected[:4] == [False, True, False, True]
    assert not any(expected[4000:])  # question 3999 is the 2,000th that fails
    room = int(gathered.packed(PLENTY).size * 0.28)
    made = gathered.packed(room)
    rows = [row for block in made.questions for row in opened(block)]
    assert made.size <= room
    assert made.omitted.questions == sum(row.get("cut", False) for row in rows)
    assert [not row.get("cut", False) for row in rows] == expected


def test_steps_keep_less_and_less() -> None:
    def kept(most: int | None) -> float:
        return float("inf") if most is None else most

    assert STEPS[-1].shown([True, False]) == [False, False]
    for before, after in pairwise(STEPS):
        assert kept(after.fine) <= kept(before.fine)
        if after.only_marked == before.only_marked:
            assert kept(after.failing) <= kept(before.failing)
        assert kept(after.fine) <= kept(after.failing)
        assert after.fine_shown <= before.fine_shown


def test_highlights_move_with_their_shortened_text() -> None:
    text = f"{long_text(1)} EVIDENCE {long_text(2)}"
    start = text.index("EVIDENCE")
    hit = Passage(id="x", text=text, highlights=((start, start + 8),), marks=("gold",))
    many = [Drilldown(qid="a", attempts=(Attempt(hits=(hit,)),)), *(question(i) for i in range(9))]
    gathered = Gathered(many, [False] * 10)
    made = gathered.packed(gathered.packed(PLENTY).size // 2)
    first = opened(made.questions[0])[0]["attempts"][0]["hits"]
    short = pieces_of(made)[first["piece"][0]][5]
    begin, end = first["highlights"]["0"][0]
    assert len(short) < len(text)
    assert short[begin:end] == "EVIDENCE"
