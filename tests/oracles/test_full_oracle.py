"""The full oracle gives numbers that were worked out by hand, and its cases are worth scoring."""

from __future__ import annotations

import json
import math
from collections import Counter
from fractions import Fraction
from typing import Any

import pytest

from tests.oracles.full_cases import FLAVOURS, case
from tests.oracles.full_oracle import (
    STATES,
    Result,
    doc_of,
    edit_distance,
    evaluate,
    quantile,
    section_of,
    section_path,
    tau_b,
    tree_distance,
)
from tests.support.cases import cases

Row = dict[str, Any]


def hits(*ids: str) -> list[Row]:
    return [{"id": name} for name in ids]


def spans(*places: tuple[str, str, int, int]) -> list[Row]:
    return [{"id": name, "doc": doc, "offsets": [a, b]} for name, doc, a, b in places]


def gold(qid: str = "a", **fields: Any) -> Row:
    return {"qid": qid, "question": f"What is {qid}?", **fields}


def trace(qid: str = "a", **fields: Any) -> Row:
    return {"qid": qid, **fields}


def said(claim: str, *citations: str | Row, **fields: Any) -> Row:
    return {"claim": claim, "citations": list(citations), **fields}


def value(metric: str, golds: list[Row] | Row, traces: list[Row] | Row, **options: Any) -> Any:
    return result(metric, golds, traces, **options).value


def result(metric: str, golds: list[Row] | Row, traces: list[Row] | Row, **options: Any) -> Result:
    gold_rows = [golds] if isinstance(golds, dict) else golds
    trace_rows = [traces] if isinstance(traces, dict) else traces
    return evaluate(gold_rows, trace_rows, **options)[metric]


# --- helpers --------------------------------------------------------------------------------------


@cases(
    ("name", "doc", "section"),
    [
        ("guide.md#S.4.2.p.Bk011a", "guide.md", "S.4.2"),
        ("S.4.2.p.Bk011a", None, "S.4.2"),
        ("wp|r=8c1e9a02|s=3.2|p=014|b=006", "wp", "3.2"),
        ("wp|r=8c1e9a02|s=p005|p=005|b=004", "wp", None),
        ("A.3.1.bk012", None, "A.3.1"),
        ("p1#2", "p1", None),
        ("c_00123", None, None),
    ],
)
def test_ids_name_documents_and_sections(name: str, doc: str | None, section: str | None) -> None:
    assert (doc_of(name), section_of(name)) == (doc, section)


def test_sections_are_paths_of_numbers() -> None:
    assert section_path("S.1.10") == section_path("1.10") == section_path("g.md#S.1.10") == (1, 10)
    assert tree_distance((1, 10), (1, 2)) == 2  # up to 1, down to 2
    assert tree_distance((4, 2, 1), (4,)) == 2  # two up
    assert tree_distance((4, 2), (5, 1)) == 4  # up to the root and down again


def test_statistics() -> None:
    four = [Fraction(n) for n in (4, 1, 3, 2)]
    assert quantile(four, Fraction(1, 2)) == Fraction(5, 2)
    assert quantile(four, Fraction(9, 10)) == Fraction(37, 10)  # place 2.7: 3 + 0.7
    assert edit_distance("kitten", "sitting") == 3
    assert edit_distance("", "abc") == 3
    assert tau_b([1, 2, 3], [1, 3, 2]) == Fraction(1, 3)  # 2 pairs agree, 1 does not
    assert tau_b([1], [1]) is None


# --- retrieval by ids -----------------------------------------------------------------------------

TWO = gold(answerable=True, relevant=["p1", "p2", "p1"])  # a set of two
FOUR_HITS = trace(topk=hits("x", "p1", "p1", "p2"))


@cases(
    ("metric", "expected"),
    [
        ("precision@3", 1 / 3),  # x, p1, p1: one id of three items
        ("precision@5", 2 / 4),  # only four hits
        ("precision_at_cutoff@5", 2 / 5),
        ("recall@3", 1 / 2),
        ("recall@5", 1.0),
        ("recall_all@3", 0.0),
        ("recall_all@5", 1.0),
        ("hit@1", 0.0),
        ("hit@3", 1.0),
        ("mrr@10", 1 / 2),
        ("map@5", (1 / 2 + 2 / 4) / 2),  # ranks 2 and 4
        ("map@3", (1 / 2) / 2),  # divided by |G|, whatever k
        ("r_precision", 1 / 2),  # p1 among the first two
        ("ndcg@3", (1 / math.log2(3)) / (1 + 1 / math.log2(3))),
        ("ndcg@5", (1 / math.log2(3) + 1 / math.log2(5)) / (1 + 1 / math.log2(3))),
        ("empty", 0.0),
    ],
)
def test_ranks_of_ids(metric: str, expected: float) -> None:
    assert value(f"retrieval.{metric}", TWO, FOUR_HITS) == pytest.approx(expected, abs=1e-15)


def test_mrr_is_zero_beyond_ten() -> None:
    late = [f"x{n}" for n in range(10)]
    row = gold(relevant=["p1"])
    assert value("retrieval.mrr@10", row, trace(topk=hits(*late, "p1"))) == 0.0
    assert value("retrieval.mrr@10", row, trace(topk=hits(*late[1:], "p1"))) == 1 / 10


def test_missing_and_errored_have_no_hits() -> None:
    golds = [gold(name, answerable=True, relevant=["p1"]) for name in "abcd"]
    traces = [
        trace("a", topk=hits("p1")),
        trace("b", topk=hits("p1"), error="late"),
        trace("d", topk=[]),
    ]  # c is missing
    assert result("retrieval.recall@5", golds, traces) == Result(1 / 4, 4, 4, {})
    no_hits = {"no-hits": 3}
    assert result("retrieval.precision@5", golds, traces) == Result(1.0, 1, 1, no_hits)
    lost = {"missing": 1, "errored": 1}
    assert result("retrieval.empty", golds, traces) == Result(1 / 2, 2, 2, lost)
    left = result("retrieval.recall@5", golds, traces, missing="exclude")
    assert left == Result(1 / 2, 2, 2, lost)
    assert result("run.missing", golds, traces) == Result(1 / 4, 4, 4, {})
    assert result("run.errored", golds, traces, missing="exclude") == Result(1 / 4, 4, 4, {})


def test_grades() -> None:
    """Gains are 3, 1 and nothing for 0; at ranks 2 and 1."""
    row = gold(grades={"p1": 3, "p2": 1, "p3": 0})
    run = trace(topk=hits("p2", "p1", "p3"))
    best = 3 + 1 / math.log2(3)
    assert value("retrieval.ndcg@5", row, run) == pytest.approx((1 + 3 / math.log2(3)) / best)
    assert value("retrieval.ndcg@1", row, run) == pytest.approx(1 / 3)
    assert value("retrieval.precision@5", row, run) == 2 / 3
    # From grade 2 on, only p1 is evidence; the gains stay.
    assert value("retrieval.recall@1", row, run, relevance_level=2) == 0.0
    assert value("retrieval.ndcg@1", row, run, relevance_level=2) == pytest.approx(1 / 3)
    # `relevant` decides what evidence is; p9 has no grade and gains 1.
    beside = {**row, "relevant": ["p9"]}
    assert value("retrieval.recall@5", beside, run) == 0.0
    best += 1 / math.log2(4)
    assert value("retrieval.ndcg@5", beside, run) == pytest.approx((1 + 3 / math.log2(3)) / best)


def test_groups() -> None:
    """One of `p1 or p2` is enough; `p3` is too late for k = 1."""
    row = gold(groups=[["p1", "p2"], ["p3"]])
    run = trace(topk=hits("p2", "p3"))
    assert value("retrieval.group_recall@1", row, run) == 1 / 2
    assert value("retrieval.group_recall@3", row, run) == 1.0
    assert value("retrieval.recall@3", row, run) == 2 / 3  # of p1, p2, p3


def test_negatives() -> None:
    """One of three hits is a negative, and it stands before the evidence."""
    row = gold(relevant=["p1"], negatives=["n1", "n2"])
    golds = [row, {**row, "qid": "b"}, {**row, "qid": "c"}]
    traces = [
        trace("a", topk=hits("n1", "p1", "x")),
        trace("b", topk=hits("p1", "n1", "n1", "n2")),
        trace("c", topk=[]),
    ]
    # 1/3 and 2/4; c has no hits.
    share = result("retrieval.negative@5", golds, traces)
    assert share == Result(5 / 12, 2, 2, {"no-hits": 1})
    assert result("retrieval.negative_above", golds, traces) == Result(1 / 3, 3, 3, {})
    never_found = trace(topk=hits("x", "n2"))
    assert value("retrieval.negative_above", row, never_found) == 1.0


def test_documents() -> None:
    """guide.md by its field, p1 by the id, api.md not at all."""
    row = gold(expected_doc_ids=["guide.md", "p1", "api.md"])
    run = trace(topk=[{"id": "k1", "doc": "guide.md"}, {"id": "p1#4"}, {"id": "p1#5"}])
    assert value("retrieval.recall_doc@1", row, run) == 1 / 3
    assert value("retrieval.recall_doc@3", row, run) == 2 / 3
    assert value("retrieval.mrr_doc@10", row, run) == 1.0
    assert value("retrieval.hit_doc@1", row, run) == 1.0
    assert value("retrieval.hit_doc@3", gold(expected_doc_ids=["api.md"]), run) == 0.0


def test_the_first_document_has_the_rank_of_its_hit() -> None:
    """x.md stands twice before p1: third; behind ten hits of others it counts nothing."""
    row = gold(expected_doc_ids=["guide.md", "p1"])
    others = [{"id": f"k{n}", "doc": "x.md"} for n in range(10)]
    assert value("retrieval.mrr_doc@10", row, trace(topk=[*others[:2], {"id": "p1#4"}])) == 1 / 3
    assert value("retrieval.mrr_doc@10", row, trace(topk=[*others[1:], {"id": "p1#4"}])) == 1 / 10
    assert value("retrieval.mrr_doc@10", row, trace(topk=[*others, {"id": "p1#4"}])) == 0.0
    assert result("retrieval.mrr_doc@10", gold(), trace()).excluded == {"no-docs": 1}


def test_anchor_section() -> None:
    """Below counts, above and beside do not: 1.10 is not below 1.1."""
    run = trace(topk=hits("S.1.10.p.Bk001", "S.1.p.Bk002", "S.1.1.4.p.Bk003"))
    row = gold(anchor_section="S.1.1")
    assert value("retrieval.anchor_hit@1", row, run) == 0.0
    assert value("retrieval.anchor_hit@3", row, run) == 1.0
    assert value("retrieval.anchor_hit@3", gold(anchor_section="S.1.2"), run) == 0.0
    other = trace(topk=hits("api.md#S.1.1.p.Bk001"))
    assert value("retrieval.anchor_hit@3", row, other) == 1.0  # in any document
    elsewhere = gold(anchor_section="guide.md#S.1.1")
    assert value("retrieval.anchor_hit@3", elsewhere, other) == 0.0
    named = gold(anchor_section="S.1.1", expected_doc_ids=["guide.md"])
    assert value("retrieval.anchor_hit@3", named, other) == 0.0


# --- retrieval by spans ---------------------------------------------------------------------------


def test_anchors_are_found_when_half_is_seen() -> None:
    """[0, 100) of g: 30 bytes at rank 1, nothing new at 2, 20 more at 3: half at rank 3."""
    row = gold(relevant=[{"doc": "g", "start": 0, "end": 100}])
    run = trace(topk=spans(("k1", "g", 0, 30), ("k2", "h", 0, 100), ("k3", "g", 20, 50)))
    assert value("retrieval.mrr@10", row, run) == 1 / 3
    assert value("retrieval.recall@1", row, run) == 0.0
    # Each of k1 and k3 lies wholly inside, so both are relevant; k2 is in another document.
    assert value("retrieval.precision@3", row, run) == 2 / 3
    assert value("retrieval.precision@1", row, run) == 1.0
    assert value("retrieval.span_recall@3", row, run) == 50 / 100
    assert value("retrieval.span_precision@3", row, run) == 50 / 150
    assert value("retrieval.span_iou@3", row, run) == 50 / 200  # 100 of g, 100 of h
    # 49 of 100 are not half.
    assert value("retrieval.hit@5", row, trace(topk=spans(("k", "g", 51, 101)))) == 0.0
    assert value("retrieval.hit@5", row, trace(topk=spans(("k", "g", 50, 101)))) == 1.0


def test_an_anchor_with_an_id_is_found_by_either() -> None:
    row = gold(relevant=[{"id": "b", "doc": "g", "start": 0, "end": 10}])
    by_id = trace(topk=[{"id": "x"}, {"id": "b"}])
    assert value("retrieval.mrr@10", row, by_id) == 1 / 2
    by_span = trace(topk=[*spans(("k", "g", 0, 5)), {"id": "b"}])
    assert value("retrieval.mrr@10", row, by_span) == 1.0


def test_several_anchors_at_one_rank_are_capped() -> None:
    """Both are found at rank 1: 1 + 1 against 1 + 1 / log2(3), and 2 found at 1 hit."""
    row = gold(relevant=[{"doc": "g", "start": 0, "end": 9}, {"doc": "g", "start": 10, "end": 19}])
    run = trace(topk=spans(("k", "g", 0, 20)))
    assert value("retrieval.ndcg@5", row, run) == 1.0
    assert value("retrieval.map@5", row, run) == 1.0
    assert value("retrieval.recall@1", row, run) == 1.0
    assert value("retrieval.precision@1", row, run) == 1.0
    assert value("retrieval.r_precision", row, run) == 1 / 2  # one relevant hit, cut at 2


def test_spans_without_documents_lie_in_the_only_one() -> None:
    row = gold(relevant=[{"doc": "g", "start": 0, "end": 10}])
    run = trace(topk=[{"id": "k", "offsets": [0, 10]}])
    assert value("retrieval.hit@1", row, run) == 1.0
    two = gold(relevant=[*row["relevant"], {"doc": "h", "start": 0, "end": 10}])
    assert value("retrieval.hit@1", two, run) == 0.0


def test_no_retrieved_bytes() -> None:
    row = gold(relevant=[{"doc": "g", "start": 0, "end": 10}])
    run = trace(topk=hits("k"))
    assert value("retrieval.span_recall@5", row, run) == 0.0
    assert value("retrieval.span_iou@5", row, run) == 0.0
    assert result("retrieval.span_precision@5", row, run) == Result(None, 0, 0, {"no-spans": 1})


def test_chunks_give_ids_their_spans() -> None:
    """c1 was cut again as d1, which covers 6 of its 10 bytes."""
    chunks = {"c1": {"doc": "g", "start": 0, "end": 10}}
    run = trace(topk=spans(("d1", "g", 4, 14)))
    assert value("retrieval.hit@1", gold(relevant=["c1"]), run) == 0.0
    assert value("retrieval.hit@1", gold(relevant=["c1"]), run, chunks=chunks) == 1.0


# --- answers --------------------------------------------------------------------------------------


def test_scope_and_claims() -> None:
    """a does all; b cites what it did not retrieve; c does not say it; d should be refused."""
    fields: Row = {"relevant": ["p1"], "gold_claim_substr": ["Null Keys", "abcd"]}
    golds = [gold(name, answerable=name != "d", **fields) for name in "abcd"]
    good = said("It rejects null keys.", "p1")
    traces = [
        trace("a", topk=hits("p1"), answer_json=good),
        trace("b", topk=hits("p2"), answer_json=good),
        trace("c", topk=hits("p1"), answer_json=said("abcde", "p1")),
        trace("d", topk=hits("p1"), answer_json=good),
    ]
    assert value("answer.precision", golds, traces) == 3 / 4
    assert value("answer.grounded_precision", golds, traces) == 1 / 4
    containment = result("answer.claim_containment", golds, traces)
    assert containment == Result(2 / 3, 3, 3, {"unanswerable": 1})
    assert value("citation.hit_rate", golds, traces) == 2 / 4
    assert value("citation.hit_rate_answerable", golds, traces) == 1.0
    assert value("citation.in_context", golds, traces) == 3 / 4


def test_nothing_to_cite_and_nothing_cited_is_a_hit_in_scope() -> None:
    run = trace(topk=hits("p1"), answer_json=said("So."))
    assert value("citation.hit_rate", gold(), run) == 1.0
    assert value("citation.hit_rate", gold(relevant=["p1"]), run) == 0.0
    assert value("answer.grounded_precision", gold(answerable=True), run) == 0.0  # no claims field
    empty = gold(answerable=True, gold_claim_substr=[])
    assert value("answer.grounded_precision", empty, run) == 1.0


def test_strings() -> None:
    """NFC on both sides; letters of other case differ unless told otherwise."""
    row = gold(must_contain=["caf\u00e9"], forbidden=["Tea"])
    run = trace(answer_json={"claim": "A cafe\u0301, no tea"})
    assert value("answer.groundedness", row, run) == 1.0
    assert value("answer.groundedness", row, run, ignore_case=True) == 0.0
    refusal = trace(answer_json={"claim": "not in context"})
    assert value("answer.groundedness", row, refusal) == 0.0
    assert result("answer.groundedness", gold(must_contain=[]), run).excluded == {"no-strings": 1}


def test_compliance_and_echo() -> None:
    golds = [gold(name, constraints=["cite first", " short "]) for name in "abcd"]
    traces = [
        trace("a", answer_json=said("So.", constraints_echo=[" cite first", "short"])),
        trace("b", answer_json={"claim": "So.", "constraints_echo": ["cite first"]}),
        trace("c", answer_json={"claim": " Not in context "}),
        trace("d", answer_json={"constraints_echo": ["cite first"]}),
    ]
    # a lists, b does not, c refuses, d is no answer.
    compliance = result("answer.compliance", golds, traces)
    assert compliance == Result(2 / 3, 3, 3, {"no-answer": 1})
    echo = result("answer.constraints_echoed", golds, traces)
    assert echo == Result(1 / 2, 2, 2, {"no-answer": 1, "no-echo": 1})


def test_coverage() -> None:
    """By an id of the evidence (a), by the section (b), not by a neighbour (c)."""
    golds = [gold(n, answerable=True, relevant=["p1"], anchor_section="S.4.2") for n in "abc"]
    cited = {"a": "p1", "b": "S.4.2.1.c.Bk003", "c": "S.4.p.Bk001"}
    traces = [trace(name, answer_json=said("So.", cited[name])) for name in "abc"]
    assert value("answer.coverage", golds, traces) == pytest.approx(2 / 3)
    # Distances of b and c are 1 and 1; p1 has no section.
    distance = result("citation.anchor_distance", golds, traces)
    assert distance == Result(1.0, 2, 2, {"no-section": 1})


def test_rows_without_answerable() -> None:
    row, run = gold(relevant=["p1"]), trace(answer_json=said("So.", "p1"))
    assert result("answer.coverage", row, run).excluded == {"unlabelled": 1}
    assert value("answer.coverage", row, run, rules="canary") == 1.0
    assert value("answer.precision", row, run) == 0.0
    assert value("answer.precision", gold(anchor_section="S.1"), run, rules="canary") == 0.0
    nothing_known = result("answer.coverage", gold(), run, rules="canary")
    assert nothing_known.excluded == {"unlabelled": 1}


# --- citations ------------------------------------------------------------------------------------


def test_citation_precision_and_recall() -> None:
    """Two of the three different ids are evidence; two of the four pieces are cited."""
    row = gold(relevant=["p1", "p2", "p3", {"doc": "g", "start": 0, "end": 100}])
    run = trace(answer_json=said("So.", "p1", "p2", "p1", "x"))
    assert value("citation.precision", row, run) == 2 / 3
    assert value("citation.recall", row, run) == 2 / 4
    # 10 of its 20 bytes lie in the anchor: half of the shorter.
    by_span = said("So.", {"id": "k", "doc": "g", "offsets": [90, 110]})
    assert value("citation.recall", row, trace(answer_json=by_span)) == 1 / 4
    less = said("So.", {"id": "k", "doc": "g", "offsets": [91, 111]})
    assert value("citation.precision", row, trace(answer_json=less)) == 0.0
    refused = trace(answer_json=said("So.", "p1", refused=True))
    assert value("citation.precision", row, refused) == 1.0
    assert result("citation.recall", row, refused).excluded == {"refused": 1}


@cases(
    ("citation", "expected"),
    [
        ({"id": "k", "doc": "g", "offsets": [70, 230]}, 1.0),  # 30 bytes of room on both sides
        ({"id": "k", "doc": "g", "offsets": [69, 230]}, 0.0),
        ({"id": "k", "doc": "g", "offsets": [70, 100]}, 0.0),  # in the room, but beside the gold
        ({"id": "k", "doc": "g", "offsets": [70, 101]}, 1.0),
        ({"id": "k", "doc": "h", "offsets": [100, 200]}, 0.0),  # another document
        ({"id": "k", "doc": "g", "section": "S.4.2", "offsets": [100, 200]}, 1.0),
        ({"id": "k", "doc": "g", "section": "S.4", "offsets": [100, 200]}, 0.0),
        ({"id": "S.4.2.p.Bk001", "doc": "g"}, 0.0),  # the right block, but no span
    ],
)
def test_citation_accuracy(citation: Row, expected: float) -> None:
    row = gold(relevant=[{"id": "S.4.2.p.Bk001", "doc": "g", "start": 100, "end": 200}])
    run = trace(answer_json=said("So.", citation))
    assert value("citation.accuracy", row, run) == expected


def test_citation_accuracy_has_a_window_and_a_mode() -> None:
    row = gold(relevant=[{"doc": "g", "start": 100, "end": 200}])
    run = trace(answer_json=said("So.", {"id": "k", "doc": "g", "offsets": [95, 200]}))
    assert value("citation.accuracy", row, run, window=5) == 1.0
    assert value("citation.accuracy", row, run, window=4) == 0.0
    assert value("citation.accuracy", row, run, window=4, citation_mode="overlap") == 1.0
    assert result("citation.accuracy", gold(relevant=["p"]), run).excluded == {"no-spans": 1}


def test_citations_resolve_to_any_hit_of_the_run() -> None:
    """a cites a hit of b; b cites nothing; c is not grounded; d cites what nobody found."""
    golds = [gold(name) for name in "abcd"]
    traces = [
        trace("a", topk=[], answer_json=said("So.", "p1")),
        trace("b", topk=hits("p1"), answer_json=said("So.", grounded=True)),
        trace("c", topk=hits("p1"), answer_json=said("So.", "p1", grounded=False)),
        trace("d", topk=hits("p1"), answer_json=said("So.", "p1", "p7")),
    ]
    resolved = result("citation.resolved", golds, traces)
    assert resolved == Result(1 / 3, 3, 3, {"refused": 1})


def test_earlier_turns_are_context() -> None:
    """p1 was retrieved in turn 1 by the same seed only."""
    golds = [gold(relevant=["p1"], turn=1), gold(relevant=["p1"], turn=2)]
    answer = said("So.", "p1")
    traces = [
        trace(turn=1, seed=0, topk=hits("p1"), answer_json=said("So.")),
        trace(turn=2, seed=0, topk=hits("p2"), answer_json=answer),
        trace(turn=2, seed=1, topk=hits("p2"), answer_json=answer),
    ]
    in_context = result("citation.in_context", golds, traces)
    assert in_context == Result(1 / 2, 1, 2, {"no-citations": 1})
    # Turn 1 cites nothing: 0; turn 2: 1/2.
    assert result("citation.hit_rate", golds, traces) == Result(1 / 4, 2, 3, {})
    later = [trace(turn=1, topk=[], answer_json=answer), trace(turn=2, topk=hits("p1"))]
    assert value("citation.in_context", golds, later) == 0.0


def test_turns_join_their_row_or_the_one_without() -> None:
    golds = [gold(turn=1), gold()]
    traces = [trace(turn=1), trace(turn=2), trace(turn=3), trace()]
    assert result("run.missing", golds, traces) == Result(0.0, 2, 4, {})
    assert value("run.unknown", golds[:1], traces) == 3 / 4


# --- refusals -------------------------------------------------------------------------------------


def test_refusals() -> None:
    """a, b and c should be answered, u and v refused; slots of one question share its vote."""
    golds = [gold(name, answerable=name in "abc") for name in "abcuv"]
    no, yes = said("not in context"), said("So.")
    traces = [
        trace("a", answer_json=yes),
        trace("b", seed=0, answer_json=no),
        trace("b", seed=1, answer_json=yes),
        trace("c", answer_json=said("not in context", refused=False)),
        trace("u", answer_json=said("So.", refused=True)),
        trace("v", seed=0, answer_json=said("So.", grounded=False)),
        trace("v", seed=1, answer_json=yes),
        trace("v", seed=2, answer_json=said("Not here.")),
    ]
    over = result("refusal.over", golds, traces)
    assert over == Result(1 / 6, 3, 4, {"unanswerable": 4})  # 0, 1/2, 0
    assert value("refusal.under", golds, traces) == pytest.approx(1 / 3)  # 0, 2/3
    assert value("refusal.correct", golds, traces) == pytest.approx(2 / 3)
    # TP = 1 + 1/3, FN = 2/3, FP = 1/2: (8/3) / (8/3 + 7/6) = 16/23.
    f1 = result("refusal.f1", golds, traces)
    assert f1 == Result(16 / 23, 5, 8, {})


def test_no_answer_is_no_refusal() -> None:
    golds, run = [gold(answerable=True), gold("b", answerable=False)], trace(topk=hits("p1"))
    left_out = {"no-answer": 1, "missing": 1}
    for metric in ("refusal.over", "refusal.under", "refusal.f1", "answer.compliance"):
        assert result(metric, golds, run) == Result(None, 0, 0, left_out)


def test_no_refusal_anywhere_has_no_f1() -> None:
    run = trace(answer_json=said("So."))
    assert result("refusal.f1", gold(answerable=True), run) == Result(None, 1, 1, {})


# --- distances and times --------------------------------------------------------------------------


def test_delta_s() -> None:
    """x is cited first and has none; p2 has its own in the list, in question b by itself."""
    golds = [gold(), gold("b"), gold("c")]
    found = {"topk": hits("p1", "p2", "p1"), "ΔS": [0.2, 0.4, 0.6]}
    traces = [
        trace("a", seed=0, **found, answer_json=said("So.", "x", "p2")),
        trace("a", seed=1, **found, answer_json=said("So.", "p1")),
        trace("b", **found, answer_json=said("So.", {"id": "p2", "ΔS": 0.7})),
        trace("c", topk=[{"id": "p1", "ΔS": 0.1}, {"id": "p2"}], answer_json=said("So.")),
    ]
    # a: mean of 0.4 and 0.2; b: 0.7. Median 0.5, p90 0.3 + 0.9 * 0.4.
    cited = result("semantic.delta_s_cited", golds, traces)
    assert cited.value == pytest.approx(0.5)
    assert (cited.n, cited.records, cited.excluded) == (2, 3, {"no-citations": 1})
    assert value("semantic.delta_s_cited_p90", golds, traces) == pytest.approx(0.66)
    # Medians over hits: 0.4, 0.4, 0.1; p90: 0.4 + 0.8 * 0.2 = 0.56, again, and 0.1.
    assert value("semantic.delta_s_hits", golds, traces) == pytest.approx(0.4)
    assert value("semantic.delta_s_hits_p90", golds, traces) == pytest.approx(0.56)
    six = trace(topk=hits(*"uvwxyz"), ΔS=[0.1, 0.2, 0.3, 0.4, 0.5, 0.9])
    assert value("semantic.delta_s_hits@5", gold(), six) == pytest.approx(0.3)
    assert value("semantic.delta_s_hits", gold(), six) == pytest.approx(0.35)


def test_times() -> None:
    golds = [gold(name) for name in "abc"]
    traces = [
        trace("a", seed=0, perf={"t_retrieve_ms": 10, "t_reason_ms": 90}),
        trace("a", seed=1, perf={"t_retrieve_ms": 30}, latency_ms=300),
        trace("b", perf={"t_retrieve_ms": 40}),
        trace("c", perf={"t_retrieve_ms": 5}, error="late"),
    ]
    # a: 20, b: 40.
    retrieve = result("latency.retrieve_ms", golds, traces)
    assert retrieve == Result(30.0, 2, 3, {"errored": 1})
    assert value("latency.retrieve_ms_p95", golds, traces) == 39.0
    assert value("latency.reason_ms", golds, traces) == 90.0
    total = result("latency.total_ms", golds, traces)  # 10 + 90, and 300 as given
    assert total == Result(200.0, 1, 2, {"errored": 1, "no-time": 1})


# --- the run --------------------------------------------------------------------------------------


def test_the_last_trace_of_a_slot_is_scored() -> None:
    row = gold(relevant=["p1"], paraphrases=["What?", "What now?"])
    traces = [
        trace(query="What now?", topk=hits("p1")),
        trace(paraphrase=1, topk=[]),
        trace(query="What?", topk=hits("p1")),
        trace("nobody", topk=hits("p1")),
    ]
    assert result("run.duplicate", row, traces) == Result(1 / 4, 4, 4, {})
    assert result("run.unknown", row, traces) == Result(1 / 4, 4, 4, {})
    assert result("retrieval.hit@1", row, traces) == Result(1 / 2, 1, 2, {})


# --- stability ------------------------------------------------------------------------------------

HIT = {"topk": hits("p1"), "answer_json": said("So.", "p1")}
MISS = {"topk": hits("p1"), "answer_json": said("So.", "x")}
SILENT = {"topk": hits("p1"), "answer_json": said("So.")}
REFUSAL = {"topk": hits("p1"), "answer_json": said("not in context", "p1")}
ERROR = {"error": "late"}


@cases(
    ("slots", "state"),
    [
        ([HIT, HIT], "→"),
        ([HIT, MISS], "<>"),
        ([HIT, ERROR], "<>"),
        ([SILENT, REFUSAL, ERROR], "←"),
        ([SILENT, MISS], "×"),
    ],
)
def test_lambda(slots: list[Row], state: str) -> None:
    traces = [trace(seed=seed, **slot) for seed, slot in enumerate(slots)]
    results = evaluate([gold(relevant=["p1"])], traces)
    assert results[STATES[state]].value == 1.0
    assert results["stability.flip_rate"].value == float(state != "→")
    assert sum(results[name].value or 0 for name in STATES.values()) == 1.0


@pytest.mark.parametrize(
    ("slots", "state"),
    [([REFUSAL, REFUSAL], "→"), ([REFUSAL, HIT], "<>"), ([HIT, ERROR], "×")],
)
def test_lambda_of_what_should_be_refused(slots: list[Row], state: str) -> None:
    traces = [trace(seed=seed, **slot) for seed, slot in enumerate(slots)]
    assert value(STATES[state], gold(answerable=False), traces) == 1.0


def test_lambda_of_retrieval_alone() -> None:
    """Found at rank 5 (a), at rank 6 in one slot (b), never with hits (c), never without (d)."""
    golds = [gold(name, relevant=["p1"]) for name in "abcd"]
    golds.append(gold("u", answerable=False))
    five, six = hits(*"vwxy", "p1"), hits(*"vwxyz", "p1")
    found: dict[str, list[list[Row]]] = {
        "a": [five, five],
        "b": [five, six],
        "c": [six, []],
        "d": [[], []],
        "u": [five, []],
    }
    traces = [trace(n, seed=s, topk=top) for n, tops in found.items() for s, top in enumerate(tops)]
    for name in STATES.values():
        assert result(name, golds, traces) == Result(1 / 4, 4, 8, {"unanswerable": 1})


def test_one_slot_has_no_lambda() -> None:
    golds = [gold("a", relevant=["p1"]), gold("b"), gold("c", relevant=["p1"])]
    traces = [trace("a", **HIT), trace("b", seed=0, **HIT), trace("b", seed=1, **HIT)]
    left_out = {"one-slot": 1, "no-evidence": 1, "missing": 1}
    assert result("stability.convergent", golds, traces) == Result(None, 0, 0, left_out)


def test_recorded_lambda() -> None:
    """a agrees; the slots of b differ, which is <>, but all of them hit; c records nothing."""
    golds = [gold(name, relevant=["p1"]) for name in "abc"]
    states: dict[str, list[str | None]] = {"a": ["→", "→"], "b": ["→", "×"], "c": [None, None]}
    traces = [
        trace(name, seed=seed, **HIT, λ_state=state)
        for name, of_slots in states.items()
        for seed, state in enumerate(of_slots)
    ]
    disagreement = result("stability.lambda_disagreement", golds, traces)
    assert disagreement == Result(1 / 2, 2, 4, {"no-lambda": 1})


def test_stability_extras() -> None:
    traces = [
        trace(seed=0, topk=hits("p", "q", "r"), answer_json=said("kitten", "p", "q")),
        trace(seed=1, topk=hits("p", "r", "q", "q"), answer_json=said("sitting", "p")),
        trace(seed=2, topk=hits("r", "s"), answer_json=said("not in context", "p")),
    ]
    results = evaluate([gold()], traces)
    assert results["stability.citation_jaccard"].value == 1 / 2  # {p} of {p, q}
    assert results["stability.refusal_consistency"].value == pytest.approx(2 / 3)
    assert results["stability.claim_distance"].value == pytest.approx(3 / 7)
    # p q r against p r q; with the third only r is common.
    assert results["stability.rank_tau"].value == pytest.approx(1 / 3)


def test_stability_without_anything_to_compare() -> None:
    traces = [trace(seed=seed, topk=hits(f"x{seed}")) for seed in (0, 1)]
    results = evaluate([gold()], traces)
    names = ("citation_jaccard", "refusal_consistency", "claim_distance", "rank_tau")
    assert [results[f"stability.{name}"].value for name in names] == [None] * 4


# --- cases ----------------------------------------------------------------------------------------

ROUNDS = 160


def test_cases_are_the_same_every_time_and_plain_json() -> None:
    for seed in range(16):
        rows = case(seed)
        assert case(seed) == rows
        assert json.loads(json.dumps(rows)) == list(rows)


@pytest.mark.slow
def test_cases_move_every_metric() -> None:
    """Every metric takes many values, also strictly between its ends, in some flavour."""
    values: dict[str, set[float | None]] = {}
    reasons: Counter[str] = Counter()
    for seed in range(ROUNDS):
        for metric, scored in evaluate(*case(seed)).items():
            values.setdefault(metric, set()).add(scored.value)
            reasons.update(scored.excluded)
            assert (scored.n == 0) <= (scored.value is None)
            assert scored.n <= scored.records
    dull = [metric for metric, seen in values.items() if len(seen) < 8]
    assert not dull
    assert 10 * len(FLAVOURS) <= ROUNDS
    expected = """missing errored no-answer unlabelled unanswerable answerable refused no-citations
        no-evidence no-docs no-groups no-anchor no-negatives no-claims no-strings no-constraints
        no-echo no-spans no-hits no-delta-s no-time no-section"""
    assert set(expected.split()) <= set(reasons)
