"""The questions of stored runs one by one: what was wanted, what came, and which is which."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace
from tests.support.cases import cases
from tests.support.chunked_runs import TEXT, Index, asked, item
from tests.support.command import GOLD, TRACES, Folder
from tests.support.effort import examples
from tests.support.postgres import own_schema, server_url
from tests.support.stored_runs import URL, change, put

from ragauge.cli.store_options import temporary_store
from ragauge.compare import align, common_gold, compare
from ragauge.model.drilldown import Attempt, Drilldown, Expected
from ragauge.model.gold import Anchor, GoldItem
from ragauge.model.run import Store
from ragauge.model.scores import PerQuestion
from ragauge.model.trace import Answer, Citation, Hit, Timing, Trace
from ragauge.report.drilldown.questions import details_of_comparison, details_of_run
from ragauge.scoring import score
from ragauge.scoring.inputs import Gold, Traces
from ragauge.spans import Span
from ragauge.store import runs as run_store


@contextmanager
def drilled(gold: Gold, traces: Traces, **options: Any) -> Iterator[list[Drilldown]]:
    """The drill-downs of traces that are scored, stored aside, and gone at the end."""
    with temporary_store() as store:
        scores = run_store.keep_run(store, gold, traces, run_id="r", intervals=False, **options)
        run = run_store.find_run(store, "r")
        with details_of_run(store, run, scores) as details:
            found = list(details)
            assert len(details) == len(scores.questions)
            assert list(details) == found  # they may be walked again
            yield found


def only(gold: GoldItem, *traces: Trace, **options: Any) -> Drilldown:
    """The drill-down of one question."""
    with drilled([gold], traces, **{"profile": "all", **options}) as (found,):
        return found


def attempt(gold: GoldItem, trace: Trace, **options: Any) -> Attempt:
    (found,) = only(gold, trace, **options).attempts
    return found


def marks(found: Attempt) -> list[tuple[str, ...]]:
    return [hit.marks for hit in found.hits]


def lit(found: Attempt) -> list[list[str]]:
    """The words that are highlighted in each hit."""
    return [[(hit.text or "")[start:end] for start, end in hit.highlights] for hit in found.hits]


# --- what was wanted


def test_a_question_is_told_as_gold_has_it() -> None:
    gold = GoldItem(
        qid="q", question="Which keys?", paraphrases=("What keys?",), expect="answer",
        relevant=("d.md#1",), relevant_docs=("d.md",), negatives=("x",), decoy_section="S.9",
        anchor_section="d.md#S.4", claims_any=("rejects",), must_contain=("null",),
        forbidden=("maybe",), type="fact", tags=("keys", "v2"), line=7,
    )  # fmt: skip
    found = only(gold, Trace(qid="q"))
    assert found == Drilldown(
        qid="q", question="Which keys?", paraphrases=("What keys?",), expect="answer",
        gold="<gold>:7",
        expected=(
            Expected(name="d.md#1", doc="d.md"),
            Expected(name="d.md", doc="d.md", where="the document"),
            Expected(name="d.md#S.4", where="the section"),
        ),
        negatives=("x", "section S.9"), claims=("rejects",), must_contain=("null",),
        forbidden=("maybe",), type="fact", tags=("keys", "v2"),
        attempts=(Attempt(trace="<traces>:1"),),
    )  # fmt: skip


def test_places_quotes_and_grades_are_told() -> None:
    gold = GoldItem(
        qid="q", question="?", expect="answer",
        anchors=(
            Anchor(doc="d", spans=(Span(10, 20),), quote="ten bytes"),
            Anchor(doc="e", spans=(Span(3, 5),), id="e1"),
        ),
        grades={"g": 2.0, "e1": 1.0, "never": 0.0},
    )  # fmt: skip
    with drilled([gold], [Trace(qid="q")], profile="all") as (found,):
        assert found.expected == (
            Expected(name="d#byte=10-20", doc="d", where="bytes 10-20", quote="ten bytes"),
            Expected(name="e1", doc="e", where="bytes 3-5", grade=1.0),
            Expected(name="g", grade=2.0),
        )


def test_questions_stand_in_the_order_of_the_scores_and_lines_are_told(folder: Folder) -> None:
    """Also those without a trace, which have no attempts."""
    folder.write("gold.jsonl", GOLD[::-1])
    folder.write("trace.jsonl", TRACES[:2])
    with drilled("gold.jsonl", "trace.jsonl", profile="all") as found:
        assert [each.qid for each in found] == ["A3", "A2", "A1"]
        assert [each.gold for each in found] == [f"gold.jsonl:{line}" for line in (1, 2, 3)]
        traces = [[each.trace for each in one.attempts] for one in found]
        assert traces == [[], ["trace.jsonl:2"], ["trace.jsonl:1"]]


def test_judgements_keep_the_order_of_their_scores(folder: Folder) -> None:
    folder.write("x.qrels", "q2 0 d1 1\nq10 0 d2 2\nq2 0 d3 0\n")
    folder.write("x.run", "q10 Q0 d2 1 0.5 t\nq10 Q0 d9 2 0.4 t\nq2 Q0 d3 1 1.0 t\n")
    with drilled("x.qrels", "x.run") as found:
        scored = score.score("x.qrels", "x.run").questions
        assert [each.qid for each in found] == [each.qid for each in scored]
        by_qid = {each.qid: each for each in found}
        assert by_qid["q10"].expected == (Expected(name="d2", grade=2.0),)
        assert [marks(each) for each in by_qid["q10"].attempts] == [[("gold",), ()]]
        assert [marks(each) for each in by_qid["q2"].attempts] == [[()]]


# --- what came


def test_ids_are_marked_as_evidence_document_negative_and_cited() -> None:
    gold = GoldItem(
        qid="q", question="?", expect="answer", relevant=("a#1", "b"), negatives=("n", "a#3")
    )
    found = attempt(gold, Trace(
        qid="q", hits=tuple(map(Hit, ("x", "a#2", "n", "a#1", "a#3", "b"))),
        answer=Answer(claim="so", citations=("a#1", "n", "gone")),
    ))  # fmt: skip
    assert marks(found) == [
        (), ("document",), ("negative", "cited"), ("gold", "cited"), ("document", "negative"),
        ("gold",),
    ]  # fmt: skip
    assert [(each.id, each.marks) for each in found.citations] == [
        ("a#1", ("gold",)), ("n", ("negative",)), ("gone", ()),
    ]  # fmt: skip
    assert found.answer == "so"


def test_a_passage_says_all_that_its_hit_says() -> None:
    gold = GoldItem(qid="q", question="?", expect="answer", relevant=("a",))
    found = attempt(gold, Trace(
        qid="q", lambda_state="→", timing=Timing(total=12.5),
        hits=(
            Hit("a", doc="d", section="S.1", score=0.5, type="table", text="t", delta_s=0.25,
                spans=(Span(3, 4), Span(8, 9))),
            Hit("b", spot="page 3, left"),
        ),
        answer=Answer(text="long", cited=(Citation("a", doc="d", spans=(Span(3, 4),)),),
                      citations=("a",)),
    ))  # fmt: skip
    first, second = found.hits
    assert (first.doc, first.section, first.where) == ("d", "S.1", "bytes 3-4, 8-9")
    assert (first.score, first.type, first.text, first.delta_s) == (0.5, "table", "t", 0.25)
    assert second.where == "page 3, left"
    assert (found.latency_ms, found.lambda_state, found.answer) == (12.5, "→", "long")
    assert found.delta_s == 0.25  # of the citation, from the hit of the same id
    assert [(each.doc, each.where) for each in found.citations] == [("d", "bytes 3-4")]


def test_a_list_of_chunks_gives_places_and_texts(folder: Folder) -> None:
    chunks = [
        {"id": "a", "doc": "d", "start": 0, "end": 4, "text": "four"},
        {"id": "b", "doc": "d", "start": 4, "end": 9, "text": "fiver", "section": "S.2"},
    ]
    folder.write("chunks.jsonl", chunks)
    gold = GoldItem(
        qid="q", question="?", expect="answer", anchors=(Anchor(doc="d", spans=(Span(2, 6),)),)
    )
    trace = Trace(qid="q", hits=(Hit("b"), Hit("a", text="of it")))
    found = attempt(gold, trace, chunks="chunks.jsonl")
    assert [(hit.text, hit.doc, hit.section) for hit in found.hits] == [
        ("fiver", "d", "S.2"), ("of it", "d", None),
    ]  # fmt: skip
    # Two of the four bytes lie in each; "of it" is no text of four bytes, so nothing is lit in it.
    assert marks(found) == [("gold",), ("gold",)]
    assert lit(found) == [["fi"], []]


def test_what_is_cited_and_was_not_retrieved_is_told_by_the_list_of_chunks(folder: Folder) -> None:
    chunk = {"doc": "d", "start": 0, "end": 4, "text": "four"}
    folder.write("chunks.jsonl", [{**chunk, "id": "a"}, {**chunk, "id": "b"}])
    gold = GoldItem(qid="q", question="?", expect="answer", relevant=("a",))
    trace = Trace(
        qid="q", hits=(Hit("a"),), answer=Answer(claim="x", citations=("a", "b", "unknown"))
    )
    found = attempt(gold, trace, chunks="chunks.jsonl")
    assert [(each.id, each.text, each.where) for each in found.citations] == [
        ("a", None, None), ("b", "four", "bytes 0-4"), ("unknown", None, None),
    ]  # fmt: skip


def test_places_are_marked_by_the_rule_of_halves_and_lit_by_bytes() -> None:
    index = Index("doc", TEXT, "c")
    gold = item(anchors=[Anchor(doc="doc", spans=(Span(100, 200),))])
    found = attempt(gold, Trace(qid="q", hits=(
        index.hit(90, 110),  # 10 of 20 bytes: half of the shorter
        index.hit(80, 105),  # 5 of 25
        index.hit(110, 150),
        index.hit(300, 320),
        Index("other", TEXT, "o").hit(100, 200),
    )))  # fmt: skip
    assert marks(found) == [("gold",), ("document",), ("gold",), ("document",), ()]
    assert lit(found) == [[TEXT[100:110]], [TEXT[100:105]], [TEXT[110:150]], [], []]


def test_bytes_of_other_scripts_are_lit_as_characters() -> None:
    text = "Größe: 30 μm"  # ö and ß have two bytes each, μ too
    assert len(text.encode()) == 15
    gold = item(anchors=[Anchor(doc="d", spans=(Span(1002, 1007),))])  # "öß" and "e"
    hit = Hit("h", doc="d", text=text, spans=(Span(1000, 1015),))
    assert lit(attempt(gold, Trace(qid="q", hits=(hit,)))) == [["öße"]]


def test_quotes_are_marked_and_lit() -> None:
    gold = item(anchors=[Anchor(doc="d", spans=(), quote="rejects  null keys")])
    found = attempt(gold, Trace(qid="q", hits=(
        Hit("a", doc="d", text="The table\nrejects null\nkeys."),
        Hit("b", doc="d", text="The table."),
        Hit("c", doc="e", text="It rejects null keys."),
    )))  # fmt: skip
    assert marks(found) == [("gold",), ("document",), ()]
    assert lit(found) == [["rejects null\nkeys"], [], []]


def test_offsets_in_an_unknown_document_light_nothing() -> None:
    """Two documents are named, and the hit says of neither that it is in it."""
    anchors = [
        Anchor(doc="d", spans=(Span(0, 4),)),
        Anchor(doc="e", spans=(Span(50, 60),), quote="of it"),
    ]
    trace = Trace(qid="q", hits=(Hit("a", text="some of it", spans=(Span(0, 10),)),))
    found = attempt(item(anchors=anchors), trace)
    assert marks(found) == [()]
    assert lit(found) == [["of it"]]


def test_offsets_of_another_unit_mark_nothing(folder: Folder) -> None:
    """Scoring refuses them; a run that is only looked at says what it can."""
    gold = item(anchors=[Anchor(doc="d", spans=(Span(0, 3, "line"),))])
    found = attempt(
        gold, Trace(qid="q", hits=(Hit("a", doc="d", spans=(Span(0, 3),), text="abc"),))
    )
    assert marks(found) == [("document",)]
    assert lit(found) == [[]]
    assert folder.path.is_dir()


def test_documents_are_evidence_where_nothing_else_is_expected() -> None:
    gold = GoldItem(qid="q", question="?", expect="answer", relevant_docs=("d",))
    found = attempt(gold, Trace(qid="q", hits=(Hit("a", doc="e"), Hit("b", doc="d"))))
    assert marks(found) == [(), ("gold",)]


def test_a_decoy_section_is_negative() -> None:
    gold = GoldItem(qid="q", question="?", expect="answer", relevant=("a",), decoy_section="S.4")
    found = attempt(gold, Trace(qid="q", hits=(
        Hit("x", doc="d", section="S.4.2"), Hit("y", doc="d", section="S.40"),
    )))  # fmt: skip
    assert marks(found) == [("negative",), ()]


def test_a_citation_that_is_a_place_marks_the_hit_that_it_shares() -> None:
    gold = GoldItem(qid="q", question="?", expect="answer", relevant=("a",))
    place = Citation("d#byte=0-10", doc="d", spans=(Span(0, 10),), placed=True)
    found = attempt(gold, Trace(
        qid="q",
        hits=(Hit("b", doc="d", spans=(Span(50, 60),)), Hit("a", doc="d", spans=(Span(0, 12),))),
        answer=Answer(claim="x", citations=(place.id,), cited=(place,)),
    ))  # fmt: skip
    assert marks(found) == [(), ("gold", "cited")]


names = st.sampled_from(["d#1", "d#2", "e#1", "x", "y"])
docs = st.sampled_from(["d", "e"])
spans = st.tuples(st.integers(0, 8), st.integers(1, 8)).map(
    lambda each: (Span(each[0] * 10, (each[0] + each[1]) * 10),)
)
quotes = st.sampled_from(["null keys are refused here", "every other key is taken"])
places = st.builds(
    Anchor, doc=docs, spans=spans, id=st.none() | names, section=st.none(), quote=st.none() | quotes
) | st.builds(Anchor, doc=docs, spans=st.just(()), quote=quotes)
hits = st.lists(
    st.builds(
        Hit, names, doc=st.none() | docs, spans=st.just(()) | spans,
        text=st.none() | quotes.map(lambda each: f"And {each}, it says."),
    ),
    min_size=1, max_size=5, unique_by=lambda hit: hit.id,
)  # fmt: skip
golds = st.builds(
    GoldItem, qid=st.just("q"), question=st.just("?"), expect=st.just("answer"),
    relevant=st.lists(names, max_size=2, unique=True).map(tuple),
    anchors=st.lists(places, max_size=2).map(tuple),
    negatives=st.lists(names, max_size=2, unique=True).map(tuple),
)  # fmt: skip


def at_ends(values: PerQuestion, metric: str, question: int) -> tuple[float, float]:
    """The least and the greatest value of a question."""
    if values.ends is None:
        return (values.of(metric)[question],) * 2
    row = values.metrics.index(metric)
    return values.ends.low[row, question], values.ends.high[row, question]


@examples(25)
@given(st.lists(st.tuples(golds, hits), min_size=1, max_size=12))
def test_what_is_marked_is_what_was_counted(cases: list[tuple[GoldItem, list[Hit]]]) -> None:
    """The shares of evidence and of negatives among the hits, counted by metrics and by marks.

    Where gold names a chunk, and its evidence may stand anywhere in it, what is surely evidence is
    at most the least value, and what may be is at least the greatest. One hit more has a place: a
    run in which none has is not scored.
    """
    anchor = Anchor(doc="placed", spans=(Span(0, 9),))
    item = GoldItem(qid="q", question="?", expect="answer", anchors=(anchor,))
    cases = [*cases, (item, [Hit("placed", doc="placed", spans=(Span(0, 9),))])]
    gold = [replace(each, qid=f"q{i}", question=f"?{i}") for i, (each, _) in enumerate(cases)]
    traces = [Trace(qid=f"q{i}", hits=tuple(found)) for i, (_, found) in enumerate(cases)]
    metrics = {"gold": "retrieval.precision@10", "negative": "retrieval.negative@10"}
    options = {"profile": "all", "metrics": list(metrics.values()), "k": 10}
    values = score.score(gold, traces, intervals=False, **options).per_question  # type: ignore[arg-type]
    assert values is not None
    with drilled(gold, traces, **options) as drilldowns:
        for place, drilldown in enumerate(drilldowns):
            shown = marks(drilldown.attempts[0])
            for mark, metric in metrics.items():
                low, high = at_ends(values, metric, place)
                counted = sum(mark in each for each in shown) / len(shown)
                possible = sum("possible" in each for each in shown) / len(shown)
                if mark == "gold" and possible:
                    assert counted - 1e-9 <= low <= high <= counted + possible + 1e-9
                else:
                    assert math.isnan(low) or counted == pytest.approx(low) == pytest.approx(high)


# --- refusals


REFUSALS = [
    (Answer(claim=" Not in context ", citations=()), "token"),
    (Answer(claim="x", refused=True), "refused flag"),
    (Answer(claim="not in context", refused=False), None),  # the trace says that it is none
    (Answer(claim="x", grounded=False), "grounded flag"),
    (Answer(claim="I cannot say", citations=()), "pattern"),
    (Answer(claim="Yes.", citations=("a",)), None),
    (Answer(citations=()), None),
]


@cases(("answer", "rule"), REFUSALS)
def test_the_rule_that_found_a_refusal(answer: Answer, rule: str | None) -> None:
    gold = GoldItem(qid="q", question="?", expect="refuse")
    found = attempt(gold, Trace(qid="q", answer=answer), refusal_patterns=["cannot say"])
    assert found.refusal == rule


def test_a_profile_that_knows_the_token_alone_finds_no_other_rule(folder: Folder) -> None:
    folder.write("gold.jsonl", GOLD)
    refused = {**TRACES[1], "refused": True, "answer_json": {"claim": "No.", "citations": []}}
    folder.write("trace.jsonl", [TRACES[1], refused])
    with drilled("gold.jsonl", "trace.jsonl", profile="smoke") as found:
        rules = [each.refusal for one in found for each in one.attempts]
        assert rules == ["token", None]


def test_an_error_is_no_refusal() -> None:
    gold = GoldItem(qid="q", question="?", expect="answer", relevant=("a",))
    trace = Trace(qid="q", error="timeout", answer=Answer(claim="not in context"))
    found = attempt(gold, trace)
    assert (found.error, found.refusal) == ("timeout", None)


answers = st.builds(
    Answer,
    claim=st.sampled_from([None, "not in context", "NOT IN CONTEXT ", "I cannot say", "yes"]),
    refused=st.sampled_from([None, True, False]),
    grounded=st.sampled_from([None, True, False]),
    citations=st.sampled_from([None, (), ("a",)]),
)


@examples(50)
@given(st.lists(answers, min_size=1, max_size=6), st.sampled_from(["all", "ship", "kb"]))
def test_the_rules_that_are_shown_are_those_that_were_counted(
    given_answers: list[Answer], profile: str
) -> None:
    """Over a whole run, as many refusals by each rule as its scores count."""
    gold = [GoldItem(qid=f"q{i}", question=f"?{i}", expect="refuse") for i in range(6)]
    traces = [Trace(qid=f"q{i}", answer=each) for i, each in enumerate(given_answers)]
    patterns = ["cannot say"]
    counted = score.score(
        gold, traces, profile=profile, refusal_patterns=patterns, intervals=False
    ).refusal_rules
    shown: dict[str, int] = {}
    with drilled(gold, traces, profile=profile, refusal_patterns=patterns) as found:
        for rule in (each.refusal for one in found for each in one.attempts):
            if rule is not None:
                shown[rule] = shown.get(rule, 0) + 1
    assert shown == counted


# --- slots


def test_slots_stand_by_paraphrase_seed_and_turn() -> None:
    gold = GoldItem(
        qid="q", question="How?", paraphrases=("How so?", "In what way?"), expect="answer",
        relevant=("a",),
    )  # fmt: skip
    given_slots = [(1, 10), (1, 2), (0, 10), (0, 2)]
    traces = [
        Trace(qid="q", paraphrase=paraphrase, seed=seed, line=line)
        for line, (paraphrase, seed) in enumerate(given_slots, 1)
    ]
    found = only(gold, *traces).attempts
    assert [(each.paraphrase, each.seed, each.asked, each.trace) for each in found] == [
        (0, "2", "How so?", "<traces>:4"),
        (0, "10", "How so?", "<traces>:3"),
        (1, "2", "In what way?", "<traces>:2"),
        (1, "10", "In what way?", "<traces>:1"),
    ]


def test_words_are_told_where_they_are_not_those_of_the_question() -> None:
    gold = GoldItem(qid="q", question="How?", paraphrases=("How so?",), expect="answer")
    said = [attempt(gold, Trace(qid="q", question=words)) for words in ("How?", "How so?", "Why?")]
    assert [(each.paraphrase, each.asked) for each in said] == [
        (None, None), (0, "How so?"), (None, "Why?"),
    ]  # fmt: skip


def test_turns_of_a_conversation_are_questions_of_their_own() -> None:
    gold = [
        GoldItem(
            qid="talk", turn=turn, question=f"{turn}?", expect="answer", relevant=(f"c{turn}",)
        )
        for turn in (1, 2)
    ]
    traces = [Trace(qid="talk", turn=turn, hits=(Hit("c1"), Hit("c2"))) for turn in (2, 1)]
    with drilled(gold, traces, profile="all") as found:
        assert [(each.qid, each.turn) for each in found] == [("talk", 1), ("talk", 2)]
        assert [marks(each.attempts[0]) for each in found] == [[("gold",), ()], [(), ("gold",)]]
        assert [each.attempts[0].turn for each in found] == [None, None]


def test_turns_that_gold_does_not_tell_apart_are_slots() -> None:
    gold = GoldItem(qid="talk", question="?", expect="answer", relevant=("c",))
    found = only(gold, *(Trace(qid="talk", turn=turn) for turn in (2, 1)))
    assert [each.turn for each in found.attempts] == [1, 2]


def test_the_last_trace_of_a_slot_is_shown_and_the_others_are_counted() -> None:
    gold = GoldItem(qid="q", question="?", expect="answer", relevant=("a",))
    traces = [
        Trace(qid="q", seed=seed, hits=(Hit(name),), line=line)
        for line, (seed, name) in enumerate([(1, "old"), (2, "x"), (1, "older"), (1, "new")], 1)
    ]
    found = only(gold, *traces).attempts
    assert [(each.seed, each.hits[0].id, each.replaced) for each in found] == [
        ("1", "new", 2), ("2", "x", 0),
    ]  # fmt: skip
    assert found[0].trace == "<traces>:4"


def test_profiles_that_keep_one_trace_or_every_one_show_what_they_score(folder: Folder) -> None:
    folder.write("gold.jsonl", GOLD)
    folder.write("trace.jsonl", [{**TRACES[0], "seed": 1}, {**TRACES[0], "seed": 2}])
    with drilled("gold.jsonl", "trace.jsonl", profile="ship") as found:
        assert [(each.seed, each.replaced) for each in found[0].attempts] == [("2", 1)]
    with drilled("gold.jsonl", "trace.jsonl", profile="smoke") as found:
        assert [(each.seed, each.replaced) for each in found[0].attempts] == [("1", 0), ("2", 0)]


def test_slots_that_did_not_fare_alike_have_labels_of_their_own() -> None:
    gold = GoldItem(qid="q", question="?", expect="answer", relevant=("a",))
    cases = {
        1: Answer(claim="x", citations=("a",)), 2: Answer(claim="not in context"),
        3: Answer(claim="x", citations=("b",)), 4: Answer(claim="x", citations=("a",)),
    }  # fmt: skip
    traces = [
        Trace(qid="q", seed=seed, hits=(Hit("a"), Hit("b")), answer=answer)
        for seed, answer in cases.items()
    ]
    found = only(gold, *traces).attempts
    assert [each.label for each in found] == ["OK", "OVER_REFUSAL", "ANS_NO_HIT", "OK"]
    alike = only(gold, traces[0], traces[3]).attempts
    assert [each.label for each in alike] == ["OK", "OK"]
    assert only(gold, traces[0]).attempts[0].label is None  # that of the question is enough


said = st.sampled_from([
    Answer(claim="x", citations=("a",)), Answer(claim="x", citations=("b",)),
    Answer(claim="not in context"), Answer(claim="x", citations=("gone",)), None,
])  # fmt: skip


@examples(25)
@given(st.lists(st.lists(st.tuples(said, st.booleans()), max_size=5), min_size=1, max_size=5))
def test_labels_of_slots_add_up_to_those_of_their_questions(
    cases: list[list[tuple[Answer | None, bool]]],
) -> None:
    gold = [
        GoldItem(qid=f"q{i}", question=f"?{i}", expect="answer", relevant=("a",))
        for i in range(len(cases))
    ]
    traces = [
        Trace(qid=f"q{i}", seed=seed, hits=(Hit("a"), Hit("b")), answer=answer,
              error="no" if failed else None)
        for i, slots in enumerate(cases)
        for seed, (answer, failed) in enumerate(slots)
    ]  # fmt: skip
    if not traces:
        return
    counted = score.score(gold, traces, profile="all", intervals=False).questions
    with drilled(gold, traces, profile="all") as found:
        for result, shown in zip(counted, found, strict=True):
            if len(shown.attempts) > 1:
                assert Counter(each.label for each in shown.attempts) == result.labels


def test_rows_that_share_a_line_have_no_labels_that_might_be_wrong(folder: Folder) -> None:
    """A JSON array on one line: which of its rows has which label cannot be told."""
    folder.write("gold.jsonl", GOLD[:1])
    wrong = {**TRACES[0], "seed": 2, "answer_json": {"claim": "not in context", "citations": []}}
    folder.write("trace.json", json.dumps([{**TRACES[0], "seed": 1}, wrong]))
    with drilled("gold.jsonl", "trace.json", profile="all") as (found,):
        assert [each.seed for each in found.attempts] == ["1", "2"]
        labels = [each.label for each in found.attempts]
        lines = [each.trace for each in found.attempts]
        assert labels == (["OK", "OVER_REFUSAL"] if lines[0] != lines[1] else [None, None])


# --- what is damaged


def test_a_trace_that_cannot_be_read_is_an_attempt_with_an_error(folder: Folder) -> None:
    assert folder.path.is_dir()
    with run_store.opened_store(URL, create=True) as store:
        put(store, "r", profile="all")
        change("UPDATE eval_query_results SET result_json = x'00' WHERE ordinal = 1")
        run = run_store.find_run(store, "r")
        with details_of_run(store, run, run_store.run_scores(store, run)) as details:
            found = list(details)
    assert [[each.error for each in one.attempts] for one in found] == [
        [None], ["the stored trace cannot be read"], [None],
    ]  # fmt: skip


def test_details_outlive_their_store(folder: Folder) -> None:
    assert folder.path.is_dir()
    with run_store.opened_store(URL, create=True) as store:
        put(store, "r", profile="all")
        run = run_store.find_run(store, "r")
        made = details_of_run(store, run, run_store.run_scores(store, run))
        details = made.__enter__()
    assert [len(each.attempts) for each in details] == [1, 1, 1]
    made.__exit__(None, None, None)


def test_the_order_of_the_file_plays_no_part(folder: Folder) -> None:
    """Traces of a thousand slots, forwards and backwards: the same drill-downs but for lines."""
    gold = [
        GoldItem(qid=f"q{i}", question=f"?{i}", expect="answer", relevant=(f"c{i}",))
        for i in range(50)
    ]
    traces = [
        Trace(qid=f"q{i}", seed=seed, hits=(Hit(f"c{i}"), Hit(f"c{seed}")), line=1)
        for i in range(50)
        for seed in range(20)
    ]
    assert folder.path.is_dir()
    with drilled(gold, traces, profile="all") as one, drilled(
        gold, traces[::-1], profile="all"
    ) as other:  # fmt: skip
        assert one == other
        assert all(len(each.attempts) == 20 for each in one)


@pytest.mark.slow
@pytest.mark.xdist_group("postgres")
def test_both_kinds_of_store_give_the_same_details(request: pytest.FixtureRequest) -> None:
    gold = [GoldItem(qid="q", question="?", expect="answer", relevant=("a",))]
    answers_of = (Answer(claim="x", citations=("a",)), Answer(claim="not in context"))
    traces = [
        Trace(qid="q", seed=seed, hits=(Hit("a"),), answer=answer)
        for seed, answer in enumerate(answers_of)
    ]
    made = []
    with ExitStack() as stack:
        url = stack.enter_context(own_schema(server_url(request.config)))
        for store in (temporary_store(), run_store.opened_store(url, create=True)):
            opened = stack.enter_context(store)
            run = stored(opened, "r", gold, traces).record
            scores = run_store.run_scores(opened, run)
            details = stack.enter_context(details_of_run(opened, run, scores))
            made.append(list(details))
    assert made[0] == made[1]
    assert [each.label for each in made[1][0].attempts] == ["OK", "OVER_REFUSAL"]


# --- two runs


def stored(
    store: Store, name: str, gold: Sequence[GoldItem], traces: Sequence[Trace], **options: Any
) -> common_gold.StoredRun:
    run_store.keep_run(store, gold, traces, run_id=name, profile="all", intervals=False, **options)
    return common_gold.StoredRun(store, run_store.find_run(store, name))


def compared(
    gold: Sequence[GoldItem], a: Sequence[Trace], b: Sequence[Trace], **options: Any
) -> list[Drilldown]:
    """The drill-downs of a comparison, which stand in the order of its questions."""
    with temporary_store() as store:
        runs = stored(store, "a", gold, a), stored(store, "b", gold, b)
        aligned = align.align(*runs, detailed=True, **options)
        (one, _), (other, _) = (compare.describe_run(run) for run in runs)
        comparison = compare.compare(aligned, one, other)
        with details_of_comparison(*runs, aligned, comparison) as details:
            found = list(details)
        assert [(each.qid, each.turn) for each in found] == [
            (each.query_id, each.turn) for each in comparison.per_query
        ]
        return found


OLD = Index("doc", TEXT, "old-", version="1")
NEW = Index("doc", TEXT, "new-", version="2")


def test_both_sides_are_marked_under_the_same_evidence() -> None:
    """Ids of the old chunks mean a place in the new run, and the place is marked there."""
    gold = [item("old-100", qid="q")]
    (found,) = compared(
        gold,
        [asked(OLD.hit(0, 100), OLD.hit(100, 200), cites=["old-100"])],
        [asked(NEW.hit(90, 150), NEW.hit(300, 360), NEW.hit(150, 210))],
    )
    assert [each.rung for each in found.expected] == ["doc_span"]
    (one,), (other,) = found.attempts, found.other
    assert marks(one) == [("document",), ("gold", "cited")]
    # 50 of 60 and 50 of 60 bytes of the hundred in which the evidence stands somewhere.
    assert marks(other) == [("possible",), ("document",), ("possible",)]
    assert lit(other) == [[TEXT[100:150]], [], [TEXT[150:200]]]
    assert one.trace == "<traces>:1"


def test_a_document_with_another_name_is_marked_on_both_sides() -> None:
    """Each side is marked under its own effective item: the same bytes, in `doc` and in `moved`."""
    old, new = OLD._replace(doc_hash="h"), NEW._replace(doc="moved", doc_hash="h")
    (found,) = compared(
        [item("old-100")], [asked(old.hit(100, 200))], [asked(new.hit(0, 60), new.hit(120, 180))]
    )
    assert [each.rung for each in found.expected] == ["doc_span"]
    assert marks(found.attempts[0]) == [("gold",)]
    assert lit(found.attempts[0]) == [[TEXT[100:200]]]
    assert marks(found.other[0]) == [("document",), ("gold",)]
    assert lit(found.other[0]) == [[], [TEXT[120:180]]]


def test_the_same_chunks_are_marked_by_their_ids() -> None:
    gold = [item("old-0", qid=qid) for qid in ("q2", "q1")]
    a = [asked(OLD.hit(0, 100), qid="q1"), asked(OLD.hit(100, 200), qid="q2")]
    found = compared(gold, a, a[:1])
    assert {each.qid: [rung.rung for rung in each.expected] for each in found} == {
        "q1": ["exact"], "q2": ["exact"],
    }  # fmt: skip
    by_qid = {each.qid: each for each in found}
    assert marks(by_qid["q1"].other[0]) == [("gold",)]
    assert by_qid["q2"].other == ()  # it has no trace there
    assert by_qid["q2"].gold == "<gold>"


def test_quotes_are_looked_for_where_documents_were_edited() -> None:
    edited = f"A new beginning. {TEXT}"
    new = Index("doc", edited, "new-", version="2", doc_hash="b", kept=("doc", "text"))
    old = OLD._replace(doc_hash="a", kept=("doc", "text"))
    (found,) = compared(
        [item("old-100")], [asked(old.hit(100, 200))], [asked(new.hit(100, 160), new.hit(160, 220))]
    )
    assert [each.rung for each in found.expected] == ["quote"]
    # The quote ends with a blank, which is no part of what is compared.
    assert "".join(part for hit in lit(found.other[0]) for part in hit) == TEXT[100:200].strip()


def test_nothing_is_kept_for_details_that_nobody_asked_for() -> None:
    with temporary_store() as store:
        gold = [item("c")]
        runs = [stored(store, name, gold, [asked(Hit("c"))]) for name in ("a", "b")]
        assert align.align(*runs).compared_gold is None


def test_an_export_that_was_imported_has_the_same_details(folder: Folder) -> None:
    """All comes from what is stored of a run: an export is enough to look at it elsewhere."""
    assert folder.path.is_dir()
    with run_store.opened_store(URL, create=True) as store:
        put(store, "r", profile="all")
    assert folder.run("runs", "export", "r", "-o", "r.jsonl").exit_code == 0
    outcome = folder.run("runs", "import", "r.jsonl", "--store", "sqlite:///other.db")
    assert outcome.exit_code == 0, outcome.err
    made = []
    for url in (URL, "sqlite:///other.db"):
        with run_store.opened_store(url) as store:
            run = run_store.find_run(store, "r")
            with details_of_run(store, run, run_store.run_scores(store, run)) as details:
                made.append(list(details))
    assert made[0] == made[1]
    assert Path("r.jsonl").exists()
    assert json.loads(Path("r.jsonl").read_bytes().splitlines()[0])
