"""`assert_rag`: what a live system did with one question is what its gold item says."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import ragauge
from ragauge import RagaugeError, assert_rag, load_gold
from ragauge.corpus.build import build
from tests.support.cases import cases
from tests.support.command import Folder

ASKED = "Where is the key?"
ITEM: dict[str, Any] = {"qid": "A", "question": ASKED, "answerable": True, "relevant": ["c1", "c2"],
        "claims_any": ["under the mat", "beneath the mat"]}  # fmt: skip
SAID = "It is under the mat."
HITS = [{"id": "c9", "text": "A cat."}, {"id": "c1", "text": "The key is under the mat."}]


@cases(
    ("gold", "answer", "hits", "options"),
    [
        (ITEM, SAID, HITS, {}),
        (ITEM, SAID, ["c2"], {}),
        (ITEM, SAID, HITS, {"citations": ["c1"]}),
        (ITEM, SAID, HITS, {"gates": "recall@2>=0.5"}),
        (ITEM, SAID, None, {"only": "answer"}),
        (ITEM, None, ["c1"], {"only": "retrieval"}),
        ({"answerable": False}, "I don't know.", [], {}),
        ({"claims_any": ["the mat"]}, SAID, [], {}),
        ({"must_contain": ["mat"], "forbidden": ["roof"]}, SAID, [], {}),
        ({"relevant": ["c1"]}, SAID, ["c1"], {}),
    ],
)
def test_a_right_answer_passes(gold: Any, answer: Any, hits: Any, options: Any) -> None:
    assert_rag(ASKED, answer, hits, gold, **options)


@cases(
    ("gold", "answer", "hits", "options", "said"),
    [
        (ITEM, "On the roof.", HITS, {}, "none of the claims is in the answer"),
        (ITEM, SAID, ["c9"], {}, "none of the evidence is among the hits"),
        (ITEM, SAID, [], {}, "none of the evidence is among the hits"),
        (ITEM, SAID, None, {}, "none of the evidence is among the hits"),
        (ITEM, SAID, HITS, {"k": 1}, "none of the evidence is among the hits"),
        (ITEM, "I don't know.", HITS, {}, "it refused, and there is an answer"),
        (ITEM, None, HITS, {}, "there is no answer"),
        (ITEM, SAID, HITS, {"citations": ["c9"]}, "the citations miss the evidence"),
        (ITEM, SAID, HITS, {"citations": []}, "the citations miss the evidence"),
        (ITEM, SAID, HITS, {"gates": "recall@2>=0.6"}, "is 0.5000, not >= 0.6"),
        (ITEM, SAID, HITS, {"gates": {"retrieval.recall@2": 1}}, "is 0.5000, not >= 1"),
        ({"answerable": False}, SAID, [], {}, "it answered, and there is no answer"),
        ({"must_contain": ["roof"]}, SAID, [], {}, "lacks what it must contain"),
        ({"forbidden": ["mat"]}, SAID, [], {}, "says what is forbidden"),
        ({"relevant": ["c1"]}, "I don't know.", ["c1"], {}, "it refused"),
    ],
)
def test_a_wrong_answer_fails(gold: Any, answer: Any, hits: Any, options: Any, said: str) -> None:
    with pytest.raises(AssertionError, match=said):
        assert_rag(ASKED, answer, hits, gold, **options)


def test_a_failure_says_asked_expected_said_and_retrieved() -> None:
    with pytest.raises(AssertionError) as raised:
        assert_rag(ASKED, "On the\nroof.\x1b[31m", [HITS[0]], ITEM)
    assert str(raised.value) == (
        "none of the claims is in the answer; none of the evidence is among the hits\n"
        "  asked:     Where is the key?\n"
        "  expected:  any of 'under the mat', 'beneath the mat'\n"
        "             evidence c1, c2\n"
        "  said:      On the roof.\\x1b[31m\n"
        "  retrieved: 1. c9 'A cat.'"
    )


def test_the_item_is_looked_up_in_a_gold_set(folder: Folder) -> None:
    rows: list[dict[str, Any]] = [ITEM, {"qid": "B", "question": "Who?", "claims_any": ["me"]}]
    path = folder.write("gold.jsonl", rows)
    for gold in (path, str(path), rows, load_gold(rows), load_gold(rows).items[0]):
        assert_rag("where is  the KEY?", SAID, HITS, gold)
    assert_rag("Who, please?", "me", [], rows, qid="B")
    with pytest.raises(RagaugeError, match=r"did you mean 'Where is the key\?'"):
        assert_rag("Where is the keys?", SAID, HITS, rows)
    with pytest.raises(RagaugeError, match="qid= one of A, C"):
        assert_rag(ASKED, SAID, HITS, [*rows, {**ITEM, "qid": "C"}])
    with pytest.raises(RagaugeError, match="no gold item asks 'Z'"):
        assert_rag(ASKED, SAID, HITS, rows, qid="Z")


def test_hits_are_placed_by_their_texts(folder: Folder) -> None:
    text = "# Keys\n\nThe key is under the mat.\n\nThe cat sleeps on the roof all day long.\n"
    folder.write("docs/keys.md", text)
    build(["docs"], Path("corpus"), workers=1)
    start = text.index("The key")
    gold = {"relevant": [{"doc": "keys.md", "start": start, "end": start + 25}],
            "claims_any": ["under the mat"]}  # fmt: skip
    assert_rag(ASKED, SAID, ["The key is under the mat."], gold, corpus="corpus")
    cat = "The cat sleeps on the roof all day long."
    with pytest.raises(AssertionError, match="none of the evidence"):
        assert_rag(ASKED, SAID, [cat], gold, corpus="corpus")


@cases(
    ("arguments", "said"),
    [
        ((None, SAID, HITS, ITEM), "the question is a text"),
        (("", SAID, HITS, ITEM), "the question is a text"),
        ((ASKED, 5, HITS, ITEM), "the answer is a text, got: int"),
        ((ASKED, SAID, "c1", ITEM), "hits are a list"),
        ((ASKED, SAID, 5, ITEM), "hits are a list"),
        ((ASKED, SAID, HITS, None), "got: NoneType"),
        ((ASKED, SAID, HITS, 5), "got: int"),
        ((ASKED, SAID, HITS, []), "gold has no rows"),
        ((ASKED, SAID, HITS, {}), "says nothing that could be checked"),
        ((ASKED, SAID, HITS, "nosuch.jsonl"), "nosuch.jsonl"),
    ],
)
def test_what_cannot_be_asked_is_an_error_and_no_failure(arguments: Any, said: str) -> None:
    with pytest.raises(RagaugeError, match=said):
        assert_rag(*arguments)


def test_it_is_the_one_of_the_module_for_tests() -> None:
    from ragauge import testing

    assert ragauge.assert_rag is testing.assert_rag
