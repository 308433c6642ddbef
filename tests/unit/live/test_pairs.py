"""Pairs of live and shadow results: by what hits are recognised, and what is said of each side."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragauge.live.pairs import (
    RUNGS,
    TOP,
    TopCoverage,
    cover_top,
    measure_pair,
    outcome_of,
    refusal_reader,
)
from ragauge.model.trace import Answer, Citation, Hit, Timing, Trace
from ragauge.spans import Span
from tests.support.cases import cases

REFUSES = refusal_reader()


def hit(name: str, start: int | None = None, end: int = 0, **more: Any) -> Hit:
    spans = () if start is None else (Span(start, end),)
    return Hit(name, **{"doc": "d" if spans else None, "spans": spans, **more})


def trace(*hits: Hit, chunker: str | None = None, **more: Any) -> Trace:
    index = {} if chunker is None else {"chunker_version": chunker}
    return Trace(hits=hits, index=index, **more)


def ids(names: str, **more: Any) -> Trace:
    return trace(*(Hit(name) for name in names), **more)


def test_ids_count_where_both_have_the_same_chunker() -> None:
    live, shadow = ids("abcde", chunker="v1"), ids("xbaye", chunker="v1")
    # a, b and e of five
    assert cover_top(live, shadow) == TopCoverage(3, 5, "exact")


def test_only_the_first_five_of_either_side_count() -> None:
    live, shadow = ids("abcdefg", chunker="v1"), ids("vwxyzabcde", chunker="v1")
    assert cover_top(live, shadow) == TopCoverage(0, 5, "exact")
    # f and g are beyond live's top 5: they are not asked for
    assert cover_top(live, ids("fgabc", chunker="v1")) == TopCoverage(3, 5, "exact")


def test_a_repeated_id_is_asked_for_once() -> None:
    assert cover_top(ids("aab", chunker="v1"), ids("a", chunker="v1")) == TopCoverage(1, 2, "exact")


def test_other_chunks_are_recognised_by_their_places() -> None:
    """[0, 100) is covered by 30 + 20 bytes of two hits together, [200, 300) by 49 only."""
    live = trace(hit("a", 0, 100), hit("b", 200, 300), chunker="v1")
    shadow = trace(hit("a", 0, 30), hit("x", 30, 50), hit("y", 251, 400), chunker="v2")
    assert cover_top(live, shadow) == TopCoverage(1, 2, "span")
    wider = trace(hit("a", 0, 30), hit("x", 30, 50), hit("y", 250, 400), chunker="v2")
    assert cover_top(live, wider) == TopCoverage(2, 2, "span")


def test_the_same_place_of_another_document_is_another_place() -> None:
    live = trace(hit("a", 0, 100, doc="one.md"))
    assert cover_top(live, trace(hit("a", 0, 100, doc="two.md"))) == TopCoverage(0, 1, "span")


def test_offsets_into_a_changed_document_say_nothing() -> None:
    live = trace(hit("a", 0, 100, doc_hash="old", text="the limit is five gigabytes"))
    shadow = trace(hit("x", 40, 140, doc_hash="new", text="Now: the limit is five gigabytes"))
    assert cover_top(live, shadow) == TopCoverage(1, 1, "quote")


def test_hits_without_places_are_recognised_by_their_text() -> None:
    live = trace(
        Hit("1", text="Refunds take five days. Ask support."),
        Hit("2", text="Plans are billed monthly in advance."),
    )
    shadow = trace(Hit("1", text="Ask support."), Hit("9", text="Refunds  take five\ndays."))
    # both texts of the shadow lie in the first text of live, and cover it; the second is not there
    assert cover_top(live, shadow) == TopCoverage(1, 2, "quote")


def test_an_id_that_stands_for_other_text_is_no_match() -> None:
    """Versions claim to be equal, and the id says otherwise: ids are not trusted."""
    live = trace(Hit("a", text="one text of some length"), chunker="v1")
    shadow = trace(Hit("a", text="something else altogether"), chunker="v1")
    assert cover_top(live, shadow) == TopCoverage(0, 1, "quote")


def test_bare_ids_are_taken_where_nothing_speaks_against_them() -> None:
    assert cover_top(ids("ab"), ids("bx")) == TopCoverage(1, 2, "id")
    assert cover_top(ids("ab", chunker="v1"), ids("bx")) == TopCoverage(1, 2, "id")


def test_bare_ids_of_two_chunkers_have_no_common_ground() -> None:
    assert cover_top(ids("ab", chunker="v1"), ids("ab", chunker="v2")) == "no-common-ground"


def test_documents_are_the_last_rung() -> None:
    live = trace(Hit("a", doc="x.md"), Hit("b", doc="y.md"), chunker="v1")
    shadow = trace(Hit("q", doc="y.md"), chunker="v2")
    assert cover_top(live, shadow) == TopCoverage(1, 2, "document")


def test_a_miss_does_not_slide_down_to_a_milder_rung() -> None:
    """The document is the same, the place is not: by place it is a miss."""
    live, shadow = trace(hit("a", 0, 100)), trace(hit("b", 500, 600))
    assert cover_top(live, shadow) == TopCoverage(0, 1, "span")


def test_nothing_retrieved_covers_nothing_and_nothing_to_cover_is_no_number() -> None:
    assert cover_top(ids("ab", chunker="v1"), ids("")) == TopCoverage(0, 2, "exact")
    assert cover_top(ids(""), ids("ab")) == "live-empty"


def test_live_asked_again_is_measured_by_the_rung_of_the_shadow() -> None:
    """By id the neighbour is a miss; by place it covers half, as it would for the shadow."""
    live = trace(hit("a", 0, 100), chunker="v1")
    again = trace(hit("b", 50, 150), chunker="v1")
    assert cover_top(live, again) == TopCoverage(0, 1, "exact")
    assert cover_top(live, again, first="span") == TopCoverage(1, 1, "span")


@given(st.lists(st.integers(0, 40), max_size=8), st.sampled_from(RUNGS))
def test_whoever_retrieves_the_same_covers_all(starts: list[int], first: str) -> None:
    hits = [
        hit(f"c{start}", start, start + 10, text=f"the words of chunk number {start}")
        for start in starts
    ]
    same = trace(*hits, chunker="v1")
    top = cover_top(same, same, first=first)  # type: ignore[arg-type]
    if hits:
        wanted = len(set(starts[:TOP]))
        assert isinstance(top, TopCoverage)
        assert top[:2] == (wanted, wanted)
    else:
        assert top == "live-empty"


@cases(
    ("answer", "outcome"),
    [
        (Answer(text="Five.", citations=("a",)), "cited"),
        (Answer(text="Five.", citations=("a", "z")), "invalid"),
        (Answer(text="Five.", citations=()), "uncited"),
        (Answer(text="Five."), "uncited"),
        (Answer(text="I don't know."), "refused"),
        (Answer(claim="not in context", citations=("a",)), "refused"),
        (Answer(text="I don't know.", refused=False), "uncited"),
        (Answer(text="Five.", refused=True, citations=("a",)), "refused"),
        (Answer(text="Five.", grounded=False), "refused"),
        (None, "hits"),
    ],
)
def test_what_became_of_a_question(answer: Answer | None, outcome: str) -> None:
    assert outcome_of(trace(Hit("a"), Hit("b"), answer=answer), REFUSES) == outcome


def test_errors_and_empty_lists_have_outcomes_of_their_own() -> None:
    assert outcome_of(trace(), REFUSES) == "empty"
    assert outcome_of(trace(Hit("a"), error="it broke"), REFUSES) == "failed"


def test_own_patterns_count_as_refusals() -> None:
    answer = Answer(text="Kein Treffer im Handbuch.")
    assert not REFUSES(answer)
    assert refusal_reader(["kein treffer"])(answer)


def test_delta_s_is_of_the_citation_and_else_of_the_hits() -> None:
    hits = (Hit("a", delta_s=0.2), Hit("b", delta_s=0.5), Hit("c", delta_s=0.9))
    cites_b = trace(*hits, answer=Answer(text="x", citations=("b",)))
    own = Answer(text="x", citations=("b",), cited=(Citation("b", delta_s=0.1),))
    no_answer = trace(*hits)

    def delta_s(side: Trace) -> float | None:
        return measure_pair(ids("a"), side, REFUSES).other.delta_s

    assert delta_s(cites_b) == 0.5
    assert delta_s(trace(*hits, answer=own)) == 0.1
    assert delta_s(no_answer) == 0.5  # the median of 0.2, 0.5 and 0.9
    assert delta_s(ids("a")) is None


def test_a_pair_has_order_citations_latency_and_index_of_both_sides() -> None:
    live = ids("abc", answer=Answer(text="x", citations=("a",)), timing=Timing(total=80.0))
    shadow = Trace(
        hits=tuple(map(Hit, "acb")),
        answer=Answer(text="x", citations=("a",)),
        timing=Timing(total=95.0),
        index={"index_hash": "h2"},
    )
    values = measure_pair(live, shadow, REFUSES)
    assert values.tau == pytest.approx(1 / 3)  # one of three pairs is turned round
    assert values.same_citations is True
    assert (values.live.ms, values.other.ms) == (80.0, 95.0)
    assert (values.live.index, values.other.index) == (None, "h2")
    other = measure_pair(live, ids("abc", answer=Answer(text="x", citations=("b",))), REFUSES)
    assert other.same_citations is False
    assert measure_pair(ids("a"), ids("a"), REFUSES).same_citations is None


def test_an_error_leaves_nothing_to_compare() -> None:
    values = measure_pair(ids("ab"), Trace(error="timed out"), REFUSES)
    assert (values.found, values.unmeasured, values.other.outcome) == (None, "failed", "failed")
