"""Data of the page: what goes in comes out again, and what does not fit is chosen and counted."""

from __future__ import annotations

import base64
import json
import random
import zlib
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.effort import examples
from tests.support.html_pages import drilldown, passage

from ragauge.model.drilldown import Attempt, Drilldown, Expected, Passage
from ragauge.report.html.data_blocks import serialised
from ragauge.report.html.details import PIECES, QUESTIONS, PageDetails, priority
from ragauge.report.html.size_budget import (
    ANSWER_STEPS,
    GAP,
    MOST_FIELD,
    MOST_ID,
    TEXT_STEPS,
    shorten,
)

PLENTY = 10**9
WORDS = "alpha beta gamma delta epsilon zeta eta theta iota kappa lambda mu nu xi omicron pi rho"


def opened(text: str) -> Any:
    return json.loads(zlib.decompress(base64.b64decode(text)))


def pieces_of(made: Any) -> list[list[Any]]:
    """The rows of all pieces: id, doc, section, where, type, text."""
    rows = []
    for keys, texts in zip(map(opened, made.pieces), map(opened, made.texts), strict=True):
        count = len(keys[0]) if keys else 0
        rows += [[*row, text] for *row, text in zip(*keys, texts or [None] * count, strict=True)]
    return rows


def rows_of(made: Any) -> list[Any]:
    """The rows of all questions, those that fail first."""
    return [row for block in made.questions for row in opened(block)]


def answers_of(made: Any) -> list[list[str | None]]:
    return [each for block in made.answers for each in opened(block)]


def noise(i: int, size: int) -> str:
    """Characters that do not compress to less than three quarters of them."""
    return base64.b64encode(random.Random(i).randbytes(size * 3 // 4)).decode()


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
    assert opened(serialised(value)) == value


def test_halves_of_characters_are_kept() -> None:
    nan = float("nan")
    assert opened(serialised({"a": ["\ud800x", 0.5, nan]})) == {"a": ["\ud800x", 0.5, None]}
    assert opened(serialised({"a": ["x", 0.5, nan]})) == {"a": ["x", 0.5, None]}


def test_a_question_comes_out_as_it_went_in() -> None:
    made = PageDetails([drilldown(7, attempts=2)], [True]).blocks_within(PLENTY)
    ((found,),) = map(opened, made.questions)
    assert found["gold"] == "gold.jsonl:8"
    assert found["expected"] == [{"name": "guide.md#S.7", "doc": "guide.md", "quote": "treasure"}]
    assert [each["seed"] for each in found["attempts"]] == ["0", "1"]
    hits = found["attempts"][0]["hits"]
    assert hits["marks"] == [0, 0b10001, 0]  # gold is the first bit, cited the fifth
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
    made = PageDetails(many, [False] * 500).blocks_within(PLENTY)
    assert [row[5] for row in pieces_of(made)] == ["the same text"]


def test_the_text_of_an_expected_piece_is_that_of_a_hit_elsewhere() -> None:
    """It is stored once, is cut as the texts of hits are, and stays with its question."""
    missed = passage(1, long_text(1), score=None, marks=("gold",))
    many = [
        Drilldown(qid="a", evidence=(missed,), attempts=(Attempt(hits=(passage(2, "x"),)),)),
        Drilldown(qid="b", attempts=(Attempt(hits=(passage(1, long_text(1)),)),)),
    ]
    made = PageDetails(many, [True, False]).blocks_within(PLENTY)
    one, other = rows_of(made)
    assert one["evidence"] == {"piece": [0], "marks": [1]}
    assert other["attempts"][0]["hits"]["piece"] == [0]
    assert [row[0] for row in pieces_of(made)] == ["guide.md#S.1", "guide.md#S.2"]
    whole = made.size
    made = PageDetails(many, [True, False]).blocks_within(whole - 100)
    assert made.omitted.shortened == 1
    assert (pieces_of(made)[0][5] or "").endswith(" …")


def test_an_expected_piece_keeps_its_place_where_hits_are_left_out() -> None:
    hits = tuple(passage(place) for place in range(2, 42))
    shown = Drilldown(qid="a", evidence=(passage(1, "here"),), attempts=(Attempt(hits=hits),))
    made = PageDetails([shown], [True]).blocks_within(900)
    assert made.omitted.hits == 30
    (row,) = rows_of(made)
    (piece,) = row["evidence"]["piece"]
    assert pieces_of(made)[piece][0] == "guide.md#S.1"


@pytest.mark.parametrize("n", [1, QUESTIONS, QUESTIONS + 1])
def test_questions_come_in_blocks(n: int) -> None:
    made = PageDetails([drilldown(i) for i in range(n)], [False] * n).blocks_within(PLENTY)
    assert [len(opened(block)) for block in made.questions] == (
        [n] if n <= QUESTIONS else [QUESTIONS, 1]
    )
    assert len(made.pieces) == -(-3 * n // PIECES)


def test_the_words_of_a_question_are_stored_once() -> None:
    """The table has all words of a short question; the drill-down has those of a long one."""
    long = "why " * 200
    details = PageDetails([Drilldown(qid="a", question="Short?"),
                         Drilldown(qid="b", question=long)], [False, False])  # fmt: skip
    assert details.texts[0] == "Short?"
    assert details.texts[1].endswith("…")
    ((short, other),) = map(opened, details.blocks_within(PLENTY).questions)
    assert "question" not in short
    assert other["question"] == long


def test_as_many_drilldowns_as_questions_are_demanded() -> None:
    with pytest.raises(ValueError, match="zip"):
        PageDetails([drilldown(1)], [False, False])


def test_numbers_that_are_none_are_not_shown() -> None:
    bad = Drilldown(qid="a", attempts=(Attempt(hits=(passage(1, score=float("nan")),),
                                               delta_s=float("inf")),))  # fmt: skip
    ((found,),) = map(opened, PageDetails([bad], [False]).blocks_within(PLENTY).questions)
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


FAILING = [i % 4 == 0 for i in range(40)]


def test_texts_of_fine_questions_are_cut_before_those_of_failing_ones() -> None:
    """40 questions of 3 hits, each text of its own: 10 failing ones have 30 texts."""
    details = PageDetails([question(i) for i in range(40)], FAILING)
    whole = details.blocks_within(PLENTY)
    made = details.blocks_within(int(whole.size * 0.6))
    lengths = [(int(row[0].rpartition(".")[2]) // 100 % 4 == 0, len(row[5] or ""))
               for row in pieces_of(made)]  # fmt: skip
    of_failing = [length for is_failing, length in lengths if is_failing]
    assert len(of_failing) == 30
    assert min(of_failing) >= max(length for is_failing, length in lengths if not is_failing)
    assert made.omitted.shortened + made.omitted.texts > 0
    assert [made.omitted.hits, made.omitted.questions] == [0, 0]


def test_answers_stay_longer_than_texts_and_lists_longer_than_answers() -> None:
    many = [
        Drilldown(qid=f"Q{i}", attempts=(Attempt(answer=noise(i, 900), hits=(
            passage(i, noise(1000 + i, 3000)),)),))
        for i in range(40)
    ]  # fmt: skip
    details = PageDetails(many, FAILING)
    little = details.blocks_within(44_000)  # the answers are 36,000 characters
    assert little.omitted.answers == little.omitted.lost_answers == 0
    assert little.omitted.texts + little.omitted.shortened == 40 - sum(
        len(row[5] or "") == 3000 for row in pieces_of(little)
    )
    assert little.omitted.texts > 0
    less = details.blocks_within(25_000)
    assert less.omitted.texts == 40
    assert less.omitted.answers + less.omitted.lost_answers > 0
    assert less.omitted.questions == 0


@given(st.lists(st.sampled_from([0, 30, 900, 6000]), min_size=30, max_size=120),
       st.sampled_from([30_000, 60_000, 120_000]))  # fmt: skip
@examples(25)
def test_room_is_used_up_where_anything_is_left_out(sizes: list[int], room: int) -> None:
    """No text here is longer than 6,000 characters, so that little room can remain."""
    many = [
        Drilldown(qid=f"Q{i}", attempts=(Attempt(answer=noise(i, size // 3),
                                                 hits=(passage(i, noise(i, size)),)),))
        for i, size in enumerate(sizes)
    ]  # fmt: skip
    made = PageDetails(many, [i % 3 == 0 for i in range(len(sizes))]).blocks_within(room)
    assert made.size <= room
    if made.omitted.sentences():
        assert made.size >= room - 8_000


@pytest.mark.slow
def test_one_huge_text_or_answer_costs_the_others_nothing() -> None:
    many = [question(i, 1) for i in range(20)]
    huge = Drilldown(qid="H", attempts=(Attempt(answer=noise(1, 400_000), hits=(
        passage(9999, noise(2, 400_000)),)),))  # fmt: skip
    room = PageDetails(many, [True] * 20).blocks_within(PLENTY).size + 60_000
    for at in (0, 10, 20):
        made = PageDetails([*many[:at], huge, *many[at:]], [True] * 21).blocks_within(room)
        assert made.omitted.sentences() == [
            "1 text of a passage is shortened", "1 answer is shortened"
        ]  # fmt: skip
        (said,) = answers_of(made)[at]
        assert said is not None
        assert said.endswith(f"({400_000 - 20_000:,} more characters are not on this page)")


def test_long_fields_are_cut_and_say_so() -> None:
    long, many = "x" * 50_000, tuple(f"p{i}" for i in range(400))
    item = Drilldown(
        qid="a", question=long, paraphrases=(long, "short"), claims=many,
        expected=(Expected(name=long, where=long, quote=long),),
        attempts=(Attempt(error=long, asked=long, seed=long,
                          hits=(Passage(id=long, doc=long, text="t"),) * 2),),
    )  # fmt: skip
    made = PageDetails([item], [True]).blocks_within(PLENTY)
    (row,) = rows_of(made)
    said = f" … ({50_000 - MOST_FIELD:,} more characters are not on this page)"
    (attempt,) = row["attempts"]
    for text in (row["question"], row["paraphrases"][0], row["expected"][0]["quote"],
                 attempt["error"], attempt["asked"]):  # fmt: skip
        assert text == long[:MOST_FIELD] + said
    assert row["claims"][-1] == "… and 100 more, which are not on this page"
    ((name, doc, *_, text),) = pieces_of(made)
    assert len(name) == len(doc) < MOST_ID + 100
    assert text == "t"
    # question, paraphrase, claims, name, where, quote, error, asked, seed, id, doc
    assert made.omitted.fields == 11


@pytest.mark.slow
def test_less_room_never_gives_more() -> None:
    details = PageDetails([question(i, 12) for i in range(40)], FAILING)
    size = details.blocks_within(PLENTY).size
    shares = (1.1, 0.8, 0.5, 0.2, 0.1)
    sizes = [details.blocks_within(int(size * share)).size for share in shares]
    for share, found in zip(shares, sizes, strict=True):
        assert found <= size * share
    assert sizes == sorted(sizes, reverse=True)


def test_hits_beyond_the_tenth_go_before_whole_questions() -> None:
    many = [question(i, 300, text=False) for i in range(20)]
    details = PageDetails(many, [i == 19 for i in range(20)])
    whole = details.blocks_within(PLENTY).size
    made = details.blocks_within(int(whole * 0.7))
    assert made.omitted.questions == 0
    assert made.omitted.hits == 290 * made.omitted.cut_questions > 0
    rows = rows_of(made)
    kept = [len(row["attempts"][0]["hits"]["piece"]) for row in rows]
    assert kept == sorted(kept, reverse=True)  # the failing one is stored first
    assert set(kept) == {300, 10}
    shown = {row[0] for row in pieces_of(made)}
    assert "guide.md#S.2199" in shown  # the last hit of question 19, 19 * 100 + 299


def test_as_many_questions_are_shown_as_fit_failing_ones_first() -> None:
    n = 3000
    failing = [i % 2 == 1 for i in range(n)]
    many = [Drilldown(qid=str(i), paraphrases=(noise(i, 120),)) for i in range(n)]
    details = PageDetails(many, failing)
    for room in (330_000, 110_000):
        made = details.blocks_within(room)
        rows = rows_of(made)
        shown = [not row.get("cut", False) for row in rows]
        assert made.omitted.questions == shown.count(False) > 0
        assert shown == sorted(shown, reverse=True)
        assert room * 0.9 < made.size <= room
        at = priority(failing)[1]
        assert at == 3
        assert rows[1]["paraphrases"] == list(many[3].paraphrases)


def test_nothing_fits_and_that_is_told() -> None:
    made = PageDetails([question(i, 12) for i in range(40)], FAILING).blocks_within(0)
    assert made.omitted.sentences() == ["40 questions are shown without details"]


def test_a_list_that_is_empty_is_packed() -> None:
    assert PageDetails([], []).blocks_within(0).size == 0


@pytest.mark.parametrize("steps", [TEXT_STEPS, ANSWER_STEPS])
def test_steps_keep_less_and_less(steps: tuple[tuple[int, ...], ...]) -> None:
    assert set(steps[-1]) == {0}
    for before, after in pairwise(steps):
        assert all(less <= more for more, less in zip(before, after, strict=True))
        assert after != before
        assert list(after) == sorted(after)  # fine, failing, marked


def test_highlights_move_with_their_shortened_text() -> None:
    text = f"{long_text(1)} EVIDENCE {long_text(2)}"
    start = text.index("EVIDENCE")
    hit = Passage(id="x", text=text, highlights=((start, start + 8),), marks=("gold",))
    many = [Drilldown(qid="a", attempts=(Attempt(hits=(hit,)),)), *(question(i) for i in range(9))]
    details = PageDetails(many, [False] * 10)
    made = details.blocks_within(details.blocks_within(PLENTY).size // 2)
    first = opened(made.questions[0])[0]["attempts"][0]["hits"]
    short = pieces_of(made)[first["piece"][0]][5]
    begin, end = first["highlights"]["0"][0]
    assert len(short) < len(text)
    assert short[begin:end] == "EVIDENCE"
