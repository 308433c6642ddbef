"""Causes: which step failed first, and the neighbours of each definition."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragauge import score
from ragauge.model.gold import GoldItem
from ragauge.model.labels import CAUSES, LABELS, SEARCH_CAUSES
from ragauge.model.trace import Answer, Hit, Trace
from ragauge.store import runs as run_store
from tests.support.cases import cases
from tests.support.command import Folder, Row
from tests.support.stored_runs import URL, put

GOLD: Row = {
    "qid": "q", "question": "?", "answerable": True, "relevant": ["S.4.2.p.Bk001"],
    "anchor_section": "S.4.2", "negatives": ["S.4.3.p.Bk009"], "gold_claim_substr": ["blue whale"],
}  # fmt: skip
E, NEG, INSIDE, ELSEWHERE = "S.4.2.p.Bk001", "S.4.3.p.Bk009", "S.4.2.p.Bk002", "S.9.1.p.Bk0"
FILL = [f"{ELSEWHERE}{n}" for n in range(9)]


def answer(*citations: str, claim: str = "A blue whale.") -> Row:
    return {"claim": claim, "citations": list(citations)}


REFUSAL = {"claim": "not in context", "citations": []}

# hits, answer, label under `all` (None: under `ship`), cause
CASES: list[tuple[str, list[str], Row | None, str, str | None]] = [
    ("right", [E], answer(E), "OK", None),
    ("missed", FILL[:3], answer(FILL[0]), "ANS_NO_HIT", "retrieval-miss"),
    ("missed and refused", FILL[:3], REFUSAL, "OVER_REFUSAL", "retrieval-miss"),
    ("missed, no answer", FILL[:3], None, "NO_ANSWER", "retrieval-miss"),
    # a hit of the anchor section within the first five, and one just below them
    ("near at rank 5", [*FILL[:4], INSIDE], answer(FILL[0]), "ANS_NO_HIT", "near-miss-section"),
    ("near at rank 6", [*FILL[:5], INSIDE], answer(FILL[0]), "ANS_NO_HIT", "retrieval-miss"),
    # citing a sibling (two edges) is near, a section of another chapter is not
    ("sibling cited", ["S.4.3.p.Bk001"], answer("S.4.3.p.Bk001"), "ANS_NO_HIT",
     "near-miss-section"),
    ("other chapter cited", ["S.5.3.p.Bk001"], answer("S.5.3.p.Bk001"), "ANS_NO_HIT",
     "retrieval-miss"),
    # the negative above the evidence, below it, alone, and beyond the first five
    ("negative above", [NEG, E], answer(FILL[0]), "ANS_NO_HIT", "negative-preferred"),
    ("negative below", [E, NEG, FILL[0]], answer(FILL[0]), "ANS_NO_HIT", "retrieved-not-cited"),
    ("negative alone", [FILL[0], NEG], answer(FILL[0]), "ANS_NO_HIT", "negative-preferred"),
    ("negative at rank 6", [*FILL[:5], NEG], answer(FILL[0]), "ANS_NO_HIT", "retrieval-miss"),
    ("negative above, no answer", [NEG, E], None, "NO_ANSWER", "negative-preferred"),
    ("negative above, evidence cited", [NEG, E], answer(E), "OK", None),
    # evidence at rank 5 and at rank 6
    ("rank 5", [*FILL[:4], E], answer(FILL[0]), "ANS_NO_HIT", "retrieved-not-cited"),
    ("rank 6", [*FILL[:5], E], answer(FILL[0]), "ANS_NO_HIT", "ranked-too-low"),
    ("rank 6, no answer", [*FILL[:5], E], None, "NO_ANSWER", "ranked-too-low"),
    ("rank 5, no answer", [*FILL[:4], E], None, "NO_ANSWER", None),
    ("rank 5, refused", [*FILL[:4], E], REFUSAL, "OVER_REFUSAL", "retrieved-not-cited"),
    # evidence in reach, and something is cited that nobody retrieved
    ("cites the unknown", [E, FILL[0]], answer("S.9.9.p.Bk077"), "ANS_NO_HIT",
     "out-of-scope-citation"),
    # also where the answer counts as right: its evidence is cited and was not retrieved
    ("cites unseen evidence", FILL[:3], answer(E), "OK", "out-of-scope-citation"),
    ("cites unseen evidence, beside it", [INSIDE], answer(E), "OK", "out-of-scope-citation"),
    ("cites evidence and the unknown", [E], answer(E, "S.9.9.p.Bk077"), "OK",
     "out-of-scope-citation"),
    ("refuses and cites the unknown", [E], {**REFUSAL, "citations": ["S.9.9.p.Bk077"]},
     "OVER_REFUSAL", "retrieved-not-cited"),
    ("cites the unknown, rank 6", [*FILL[:5], E], answer("S.9.9.p.Bk077"), "ANS_NO_HIT",
     "ranked-too-low"),
]  # fmt: skip


def outcome(folder: Folder, gold: Row, trace: Row, profile: str) -> tuple[str, str | None]:
    one = folder.write("gold.jsonl", [gold])
    other = folder.write("trace.jsonl", [{"qid": "q", **trace}])
    found = score(one, other, profile=profile, intervals=False).questions
    assert found.causes == [found[0].cause]
    assert found[0].causes == ({} if found[0].cause is None else {found[0].cause: 1})
    return found[0].label, found[0].cause


@cases(("hits", "said", "label", "cause"), [case[1:] for case in CASES], ids=[c[0] for c in CASES])
def test_the_cause_is_the_first_step_that_failed(
    folder: Folder, hits: list[str], said: Row | None, label: str, cause: str | None
) -> None:
    trace: Row = {"retrieved_ids": hits}
    if said is not None:
        trace["answer_json"] = said
    assert outcome(folder, GOLD, trace, "all") == (label, cause)


@pytest.mark.parametrize(
    ("said", "label", "cause"),
    [
        (answer(E, claim="A fin whale."), "CLAIM_MISSING", "claim-missing"),
        (answer(E, "S.9.9.p.Bk077"), "OUT_OF_SCOPE", "out-of-scope-citation"),
        (answer(E), "OK", None),
    ],
)
def test_labels_that_say_their_cause_have_it(
    folder: Folder, said: Row, label: str, cause: str | None
) -> None:
    trace = {"retrieved_ids": [E], "answer_json": said}
    gold = {name: value for name, value in GOLD.items() if name != "relevant"}
    assert outcome(folder, {**gold, "gold_citations": [E]}, trace, "ship") == (label, cause)


PLACED: Row = {
    "qid": "q", "paraphrases": ["?"], "anchor_section": "S.4.2",
    "relevant": [{"id": E, "doc": "h.md", "start": 100, "end": 200}],
}  # fmt: skip


@cases(
    ("citation", "label", "cause"),
    [
        ({"id": E, "offsets": [100, 200]}, "OK", None),
        # 30 bytes each side are allowed: 70 to 230 agrees, 69 does not
        ({"id": E, "offsets": [70, 230]}, "OK", None),
        ({"id": E, "offsets": [69, 200]}, "OK", "cited-wrong-offsets"),
        ({"id": INSIDE, "offsets": [400, 450]}, "OK", "cited-wrong-offsets"),
        ({"id": "S.5.1.p.Bk001", "offsets": [900, 950]}, "ANS_NO_HIT", "out-of-scope-citation"),
        # without offsets nothing is known to be wrong with them
        ({"id": E}, "OK", None),
    ],
)
def test_offsets_are_wrong_where_the_right_place_is_cited_by_others(
    folder: Folder, citation: Row, label: str, cause: str | None
) -> None:
    """Also of answers that count as right: coverage does not ask for offsets."""
    trace = {
        "query": "?", "topk": [{"id": E, "doc": "h.md"}],
        "answer_citations": [{"doc": "h.md", **citation}],
    }  # fmt: skip
    assert outcome(folder, PLACED, trace, "canary") == (label, cause)


@cases(
    ("gold", "hits", "cause"),
    [
        ({"anchor_section": "S.4.2"}, [*FILL[:5], INSIDE], "ranked-too-low"),
        ({"anchor_section": "S.4.2"}, FILL[:2], "retrieval-miss"),
        ({"expected_doc_ids": ["a.md"]}, [{"id": "1", "doc": "b.md"}], "retrieval-miss"),
        ({"expected_doc_ids": ["a.md"]}, [{"id": "1", "doc": "a.md"}], "retrieved-not-cited"),
        ({}, FILL[:2], None),
    ],
)
def test_without_evidence_a_section_or_a_document_is_expected(
    folder: Folder, gold: Row, hits: list[object], cause: str | None
) -> None:
    item = {"qid": "q", "question": "?", "answerable": True, **gold}
    trace = {"hits": hits, "answer": {"claim": "x", "citations": []}}
    assert outcome(folder, item, trace, "all")[1] == cause


def test_an_answer_that_nobody_judges_may_cite_out_of_scope(folder: Folder) -> None:
    item = {key: value for key, value in GOLD.items() if key != "answerable"}
    for cited, cause in ((E, "out-of-scope-citation"), (FILL[0], "retrieval-miss")):
        trace = {"retrieved_ids": FILL[:2], "answer_json": answer(cited)}
        assert outcome(folder, item, trace, "all") == ("UNLABELLED", cause)


def test_unanswerable_questions_have_no_cause(folder: Folder) -> None:
    item = {**GOLD, "answerable": False, "relevant": [], "anchor_section": None, "negatives": []}
    trace = {"retrieved_ids": FILL[:2], "answer_json": answer(FILL[0])}
    assert outcome(folder, item, trace, "all") == ("HALLUCINATION", None)


def test_a_run_that_records_no_hits_has_no_cause_of_retrieval(folder: Folder) -> None:
    """One hit anywhere in the run, and an empty list is a miss."""
    gold = folder.write("gold.jsonl", [GOLD, {**GOLD, "qid": "p"}])
    silent: list[Row] = [{"qid": q, "answer_json": answer("x")} for q in ("q", "p")]
    trace = folder.write("trace.jsonl", silent)
    assert score(gold, trace, profile="all").questions.causes == [None, None]
    searched: list[Row] = [{**silent[0], "retrieved_ids": ["y"]}, silent[1]]
    trace = folder.write("trace.jsonl", searched)
    assert score(gold, trace, profile="all").questions.causes == ["retrieval-miss"] * 2


def test_a_question_shows_the_cause_of_most_slots(folder: Folder) -> None:
    """Two slots ranked too low, one missed: 2 of 3. With one each, the earlier step is shown."""
    gold = folder.write("gold.jsonl", [GOLD])
    low = {"retrieved_ids": [*FILL[:5], E], "answer_json": answer(FILL[0])}
    lost = {"retrieved_ids": FILL[:5], "answer_json": answer(FILL[0])}
    rows = [{"qid": "q", "seed": n, **each} for n, each in enumerate((low, lost, low))]
    found = score(gold, folder.write("trace.jsonl", rows), profile="all").questions[0]
    assert (found.cause, found.causes) == (
        "ranked-too-low", {"retrieval-miss": 1, "ranked-too-low": 2},
    )  # fmt: skip
    found = score(gold, folder.write("trace.jsonl", rows[:2]), profile="all").questions[0]
    assert (found.cause, found.causes) == (
        "retrieval-miss", {"retrieval-miss": 1, "ranked-too-low": 1},
    )  # fmt: skip


@pytest.mark.usefixtures("folder")
def test_causes_are_stored_with_the_scores() -> None:
    low = {"retrieved_ids": [*FILL[:5], E], "answer_json": answer(FILL[0])}
    rows = [{"qid": "q", "seed": 1, **low}, {"qid": "q", "seed": 2, "retrieved_ids": FILL}]
    with run_store.opened_store(URL, create=True) as store:
        put(store, "r", rows, gold=[GOLD], profile="all")
        kept = run_store.run_scores(store, run_store.find_run(store, "r")).questions
        again = run_store.recompute_scores(store, run_store.find_run(store, "r")).questions
    assert kept.causes == again.causes == ["retrieval-miss"]
    assert kept[0] == again[0]
    assert kept[0].causes == {"retrieval-miss": 1, "ranked-too-low": 1}


def test_every_cause_is_explained() -> None:
    assert set(SEARCH_CAUSES) < set(CAUSES)
    assert not set(CAUSES) & set(LABELS)
    assert all(CAUSES.values())


ids = st.sampled_from([E, NEG, INSIDE, *FILL])


@given(
    hits=st.lists(ids, max_size=8),
    cites=st.none() | st.lists(ids, max_size=3),
    refused=st.booleans(),
)
def test_a_good_record_has_no_cause_and_a_bad_one_has(
    hits: list[str], cites: list[str] | None, refused: bool
) -> None:
    """Of an answerable question with evidence: every record that is not right says why."""
    item = GoldItem(
        qid="q", question="?", expect="answer", relevant=(E,), anchor_section="S.4.2",
        negatives=(NEG,),
    )  # fmt: skip
    said = None if cites is None else Answer(
        claim="x", citations=tuple(cites), refused=refused
    )  # fmt: skip
    spare = Trace(qid="other", hits=(Hit("x"),))
    found = score(
        [item, GoldItem(qid="other", question="!")],
        [Trace(qid="q", hits=tuple(map(Hit, hits)), answer=said), spare],
        profile="all", intervals=False,
    ).questions[0]  # fmt: skip
    if found.label == "OK":  # right, though it may have cited what was not retrieved
        beyond = cites is not None and not set(cites) <= set(hits)
        assert found.cause == ("out-of-scope-citation" if beyond else None)
    elif found.label in ("ANS_NO_HIT", "OVER_REFUSAL"):
        assert found.cause in CAUSES
        if E in hits[:5] and hits.index(E) < (hits.index(NEG) if NEG in hits else 99):
            assert found.cause in ("retrieved-not-cited", "out-of-scope-citation")
    assert (E not in hits) <= (found.cause not in ("ranked-too-low", "retrieved-not-cited"))
