"""From rows to the model: every spelling, the shapes of answers, and what wins over what."""

from __future__ import annotations

from typing import Any

import pytest

from ragauge import registry
from ragauge.errors import Place
from ragauge.files.fields import FieldError
from ragauge.formats.json_rows import decode_row
from ragauge.formats.traces import RowReader
from ragauge.model.gold import GoldItem
from ragauge.model.trace import Answer, Hit, Trace
from tests.support.cases import cases

NATIVE = RowReader(registry.dialect("native"), own=False)
SHIP = RowReader(registry.dialect("ship"), own=True)
SMOKE = RowReader(registry.dialect("smoke"), own=True)
READERS = {"native": NATIVE, "ship": SHIP, "smoke": SMOKE}


def trace(reader: RowReader = NATIVE, /, **row: Any) -> Trace:
    return reader.trace(row)


def answer(reader: RowReader = NATIVE, /, **row: Any) -> Answer:
    found = reader.trace(row).answer
    assert found is not None
    return found


def gold(reader: RowReader = NATIVE, /, **row: Any) -> GoldItem:
    return reader.gold({"qid": "A1", **row})


# --- spellings of traces ---


@cases("reader", READERS.values(), ids=READERS.keys())
@cases("name", ["qid", "q_id", "id"])
def test_the_id_of_a_trace(reader: RowReader, name: str) -> None:
    """Any spelling is read in any dialect; a whole number is its digits."""
    assert trace(reader, **{name: "A1"}).qid == "A1"
    assert trace(reader, **{name: 17}).qid == "17"
    assert trace(reader, **{name: ""}).qid is None


@cases("reader", READERS.values(), ids=READERS.keys())
@cases("name", ["q", "question", "query"])
def test_the_question_of_a_trace(reader: RowReader, name: str) -> None:
    """It is kept as it stands, blanks included: traces are joined by its exact text."""
    assert trace(reader, **{name: " What? "}).question == " What? "


@cases("reader", READERS.values(), ids=READERS.keys())
@cases("name", ["topk", "retrieved_ids", "chunks", "items", "retrieved", "hits_top_k"])
def test_the_hits_of_a_trace(reader: RowReader, name: str) -> None:
    """In the order of the list, doubles included; also below `retrieval`."""
    hits = (Hit("b"), Hit("a"), Hit("b"), Hit("7"))
    listed = ["b", {"id": "a"}, "b", 7]
    assert trace(reader, **{name: listed}).hits == hits
    assert trace(reader, retrieval={name: listed}).hits == hits
    assert trace(reader, retrieval=listed).hits == hits


def test_no_hits_are_the_empty_list() -> None:
    """Absent, null and empty are the same."""
    assert trace().hits == trace(topk=None).hits == trace(topk=[]).hits == ()
    assert trace(retrieval={}).hits == trace(retrieval={"other": 1}).hits == ()


def test_hits_at_the_top_win_over_none_below() -> None:
    """A `retrieval` object may hold other things."""
    assert trace(topk=["a"], retrieval={"took_ms": 5}).hits == (Hit("a"),)


@cases("name", ["id", "chunk_id", "snippet_id", "block_id"])
def test_the_id_of_a_hit(name: str) -> None:
    """Each spelling alone."""
    assert trace(topk=[{name: "p1#2"}]).hits == (Hit("p1#2"),)


def test_the_other_fields_of_a_hit() -> None:
    """Document and section in their spellings, score, type and text."""
    for doc in ("doc", "doc_id", "doc_path"):
        for section in ("section", "section_id"):
            (hit,) = trace(
                topk=[{"id": "a", doc: "d.md", section: "4.2", "score": 1, "type": "code",
                       "text": "x", "more": True}]
            ).hits  # fmt: skip
            assert hit == Hit("a", "d.md", "4.2", 1.0, "code", "x")
            assert isinstance(hit.score, float)


def test_the_slot_of_a_trace() -> None:
    """Paraphrase and turn are whole numbers, a seed may be a name."""
    found = trace(qid="A1", paraphrase=2, seed="seed-a", turn=1)
    assert (found.paraphrase, found.seed, found.turn) == (2, "seed-a", 1)
    assert trace(seed=7).seed == 7
    bare = trace(qid="A1")
    assert (bare.paraphrase, bare.seed, bare.turn) == (None, None, None)


@cases(
    ("value", "expected"),
    [
        (None, None),
        (False, None),
        ("", None),
        ("timeout", "timeout"),
        (True, "true"),
        ({"code": 500}, '{"code": 500}'),
    ],
)
def test_the_error_of_a_trace(value: object, expected: str | None) -> None:
    """Anything but nothing is an error; it is shown as the file has it."""
    assert trace(error=value).error == expected


def test_what_nothing_reads_is_kept() -> None:
    """Under the names of the file, in traces and in gold."""
    assert trace(qid="A1", note=1, mood=5).extra == {"note": 1, "mood": 5}
    assert gold(question="?", note=[1]).extra == {"note": [1]}


def test_the_line_rides_along() -> None:
    """Any number can be followed back to its row."""
    assert NATIVE.trace({"qid": "A1"}, 42).line == 42
    assert NATIVE.gold({"qid": "A1"}, 43).line == 43


# --- shapes of answers ---


@cases("name", ["answer_json", "answer"])
@cases("reader", READERS.values(), ids=READERS.keys())
def test_an_answer_as_an_object(reader: RowReader, name: str) -> None:
    """Claim, text, citations, flags and echo inside it."""
    body = {
        "claim": "X.",
        "text": "X, because.",
        "citations": ["a", {"id": "b"}, 7],
        "refused": False,
        "grounded": True,
        "constraints_echo": ["c"],
    }
    found = answer(reader, **{name: body})
    assert found == Answer(
        claim="X.", text="X, because.", citations=("a", "b", "7"), refused=False, grounded=True,
        constraints_echo=("c",),
    )  # fmt: skip
    assert found.said == "X."


@cases("name", ["answer", "answer_text"])
@cases("reader", READERS.values(), ids=READERS.keys())
def test_an_answer_as_text(reader: RowReader, name: str) -> None:
    """With its citations inside it."""
    found = answer(reader, **{name: "X. Citations: [a, b c]"})
    assert found.said == "X. Citations: [a, b c]"
    assert found.citations == ("a", "b", "c")


@cases("name", ["citations", "answer_citations", "cited_chunks"])
@cases("reader", [NATIVE, SMOKE], ids=["native", "smoke"])
def test_citations_beside_a_text(reader: RowReader, name: str) -> None:
    """Ids, or objects with an id, in any spelling."""
    found = answer(reader, answer="X.", **{name: ["a", {"chunk_id": "b"}, {"snippet_id": 7}]})
    assert found.citations == ("a", "b", "7")


@cases("listed", [["b"], []], ids=["a list", "an empty list"])
@cases("reader", [NATIVE, SMOKE], ids=["native", "smoke"])
def test_a_json_list_wins_over_the_text(reader: RowReader, listed: list[str]) -> None:
    """Even when it is empty: it was written on purpose."""
    found = answer(reader, answer="X. citations: [a]", citations=listed)
    assert found.citations == tuple(listed)
    found = answer(reader, answer={"text": "X. citations: [a]", "citations": listed})
    assert found.citations == tuple(listed)


@cases("odd", ["a", "", 5, 0, True, {"id": "a"}])
@cases("reader", READERS.values(), ids=READERS.keys())
def test_citations_that_are_no_list_are_none(reader: RowReader, odd: object) -> None:
    """Then the text is looked at; where it has no list either, the oddity is remembered."""
    inside = answer(reader, answer_json={"claim": "X.", "citations": odd})
    assert inside.citations is None
    assert inside.odd_citations is bool(odd)
    text = answer(reader, answer="X. citations: [a]", citations=odd)
    assert text.citations == ("a",)
    assert not text.odd_citations


def test_no_list_is_not_the_empty_list() -> None:
    """An answer without citations differs from one that lists none."""
    assert answer(answer="X.").citations is None
    assert answer(answer="X. citations: []").citations == ()
    assert answer(answer_json={"claim": "X."}).citations is None
    assert answer(answer_json={"claim": "X.", "citations": None}).citations is None


def test_flags_may_stand_beside_the_answer() -> None:
    """And the echo, too."""
    found = answer(answer="X.", refused=True, grounded=False, constraints_echo=["c"])
    assert (found.refused, found.grounded, found.constraints_echo) == (True, False, ("c",))


@cases(
    "row",
    [
        {},
        {"answer": None},
        {"answer_json": None, "citations": None},
        {"answer_json": {}},
        {"answer": {}},
        {"answer_json": {"claim": None, "citations": None}},
        {"topk": ["a"], "error": "timeout"},
    ],
)
def test_a_trace_without_an_answer_has_none(row: dict[str, Any]) -> None:
    """null and the empty object are no answer."""
    assert trace(**row).answer is None


@cases(
    "row",
    [
        {"answer": ""},
        {"answer_json": {"claim": ""}},
        {"answer_json": {"citations": []}},
        {"citations": []},
        {"refused": False},
        {"grounded": True},
    ],
)
def test_anything_that_is_there_is_an_answer(row: dict[str, Any]) -> None:
    """A claim, a text, a citations list or a flag, be it empty or false."""
    assert trace(**row).answer is not None


def test_the_claim_is_what_was_said_where_there_is_a_text_too() -> None:
    """`said` is what needles and the refusal token are looked for in."""
    assert answer(answer_json={"claim": "X."}, answer="X, in many words.").said == "X."
    assert answer(answer_json={"text": "X."}).said == "X."


# --- dialects ---


def test_under_ship_only_the_answer_object_speaks() -> None:
    """What stands beside `answer_json` in other spellings is as if it were not there."""
    row = {
        "answer_json": {"claim": "X."},
        "answer": "Y. citations: [a]",
        "citations": ["a"],
        "refused": True,
    }
    found = answer(SHIP, **row)
    assert (found.claim, found.citations) == ("X.", None)


def test_under_ship_the_second_own_id_is_read_where_the_first_is_empty() -> None:
    """As the source's `qid or q_id` does."""
    assert trace(SHIP, qid="", q_id="A1").qid == "A1"
    assert trace(SHIP, qid="A2", q_id="A1", id="A3").qid == "A2"


def test_under_smoke_citations_are_stripped() -> None:
    """Of blanks around them, as in the source; other dialects take ids as they are."""
    assert answer(SMOKE, answer="X.", citations=[" a ", "b\n"]).citations == ("a", "b")
    assert answer(NATIVE, answer="X.", citations=[" a "]).citations == (" a ",)


# --- gold ---


@cases("name", ["qid", "q_id", "id", "query_id"])
def test_the_id_of_a_gold_item(name: str) -> None:
    """Any spelling; a whole number is its digits."""
    assert NATIVE.gold({name: "A1"}).qid == "A1"
    assert NATIVE.gold({name: 17}).qid == "17"


@pytest.mark.parametrize("name", ["question", "q", "query"])
def test_the_question_of_a_gold_item(name: str) -> None:
    """With paraphrases only, the first is the question."""
    assert gold(**{name: "What?"}).question == "What?"
    assert gold(**{name: "What?"}, paraphrases=["Which?"]).question == "What?"
    assert gold(paraphrases=["Which?", "What?"]).question == "Which?"
    assert gold(paraphrases=[]).question is None


@cases("name", ["relevant", "gold_ids", "gold_citations", "expected_chunk_ids"])
@cases("reader", READERS.values(), ids=READERS.keys())
def test_the_evidence_of_a_gold_item(reader: RowReader, name: str) -> None:
    """Any spelling, in any dialect."""
    assert gold(reader, question="?", **{name: ["a", 7]}).relevant == ("a", "7")
    assert gold(reader, question="?", **{name: None}).relevant == ()


@pytest.mark.parametrize(("value", "expected"), [(True, "answer"), (False, "refuse"), (None, None)])
def test_what_is_expected_of_an_answer(value: object, expected: str | None) -> None:
    """Absent and null are unlabelled, not unanswerable."""
    assert gold(answerable=value).expect == expected
    assert gold().expect is None


def test_the_claims_of_a_gold_item() -> None:
    """Substrings are taken whole, `gold_claim` is cut into phrases; absent is not empty."""
    found = gold(gold_claim_substr=["x", ""])
    assert (found.claims_any, found.claim_rule) == (("x", ""), "substring")
    assert gold(gold_claim_substr=[]).claims_any == ()
    assert gold().claims_any is None
    found = gold(gold_claim="X is a map.")
    assert (found.claims_any, found.claim_rule) == (("X is a map.",), "phrase")
    found = gold(gold_claim=["x", "", "y"])
    assert (found.claims_any, found.claim_rule) == (("x", "y"), "phrase")
    found = gold(claims_any=["x"])
    assert (found.claims_any, found.claim_rule) == (("x",), "substring")


def test_the_other_fields_of_a_gold_item() -> None:
    """Constraints and slices."""
    found = gold(constraints=["c"], type="code", tags=["t"], group="g", difficulty="d", lang="de")
    assert (found.constraints, found.tags) == (("c",), ("t",))
    assert (found.type, found.group, found.difficulty, found.lang) == ("code", "g", "d", "de")


# --- bytes and places ---


def test_a_row_is_decoded_with_its_last_duplicate_key() -> None:
    """At every level."""
    row = decode_row(b'{"a": 1, "a": {"b": 1, "b": 2}}', cut=False, overlong=False)
    assert row == {"a": {"b": 2}}


@cases(
    ("data", "code", "hint"),
    [
        (b"{'a': 1}", "bad-json", "double quotes"),
        (b"{", "bad-json", "each object on one line"),
        (b'{"a": 1,', "bad-json", "each object on one line"),
        (b"a,b,c", "bad-json", "every line must be one JSON object"),
        (b'{"a": NaN}', "bad-json", "write null"),
        (b'{"a" 1}', "bad-json", "JSON tool"),
        (b"[]", "not-a-row", "one JSON object per line"),
        (b'{"a": "\0"}', "nul-byte", "damaged"),
        (b'{"a": "\xff"}', "bad-encoding", "UTF-8"),
    ],
)
def test_the_hint_fits_the_damage(data: bytes, code: str, hint: str) -> None:
    """It says what to do about this line, not about lines in general."""
    with pytest.raises(FieldError) as caught:
        decode_row(data, cut=False, overlong=False)
    assert caught.value.code == code
    assert hint in caught.value.hint


def test_only_the_last_line_can_be_truncated() -> None:
    """Where it has no newline; the same bytes in the middle are malformed."""
    for cut, code in ((True, "truncated-line"), (False, "bad-json")):
        with pytest.raises(FieldError) as caught:
            decode_row(b'{"qid": "A1", "answer', cut=cut, overlong=False)
        assert caught.value.code == code


def test_a_problem_names_the_item_as_far_as_it_is_known() -> None:
    """By any spelling of the id; without a row there is only file and line."""
    error = FieldError("bad-field", "what", "how")
    place = Place("trace.jsonl", 42)
    for name in ("qid", "q_id", "id", "query_id"):
        problem = SHIP.problem(error, {name: 7}, place)
        assert str(problem.place) == "trace.jsonl:42  (qid 7, dialect ship)"
    assert str(NATIVE.problem(error, {}, place).place) == "trace.jsonl:42  (dialect native)"
    assert str(NATIVE.problem(error, None, place).place) == "trace.jsonl:42  (dialect native)"
    assert str(problem) == (
        "error[bad-field]: what\n  --> trace.jsonl:42  (qid 7, dialect ship)\n  hint: how"
    )
