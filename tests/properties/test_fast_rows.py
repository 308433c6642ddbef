"""The fast path gives the trace that the exact path gives, or none."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragauge import registry
from ragauge.files.fields import FieldError
from ragauge.formats.fast_rows import FastDecoder
from ragauge.formats.json_rows import decode_row
from ragauge.formats.traces import RowReader
from ragauge.model.trace import Answer, Trace
from tests.support.effort import examples

texts = st.sampled_from(["", "a", "ä", "Δ", "guide.md", "x\u2028y", "1"])
odd: st.SearchStrategy[Any] = st.sampled_from(
    [None, 0, 1, -1, 2**63, 1.5, True, "s", [], [1], [1, 2], [2, 1], {}]
)
offsets = st.one_of(
    st.tuples(st.integers(0, 9), st.integers(0, 9)).map(list), odd, st.just({"start": 1, "end": 3})
)
hits = st.one_of(
    texts,
    st.fixed_dictionaries(
        {},
        optional={
            "id": st.one_of(texts, odd), "chunk_id": texts, "doc": st.one_of(texts, odd),
            "doc_id": texts, "doc_path": texts, "offsets": offsets, "span": offsets,
            "start": odd, "end": odd, "unit": st.sampled_from(["byte", "char", "x"]),
            "score": odd, "rank": odd, "section": st.one_of(texts, odd), "type": texts,
            "text": st.one_of(texts, odd), "snippet": texts, "chunker_version": odd,
            "doc_hash": st.one_of(texts, odd), "text_hash": texts, "content_hash": texts,
            "policy_hash": texts, "delta_s": odd, "ΔS": odd, "heading": odd,
        },
    ),
)  # fmt: skip
answers = st.one_of(
    odd,
    st.fixed_dictionaries(
        {},
        optional={
            "claim": st.one_of(texts, odd),
            "citations": st.one_of(st.lists(texts, max_size=2), odd),
            "text": st.one_of(texts, st.just("So. citations: [a, ä]")), "refused": odd,
            "grounded": odd, "note": odd,
        },
    ),
)  # fmt: skip
rows = st.fixed_dictionaries(
    {"qid": st.one_of(texts, odd)},
    optional={
        "question": st.one_of(texts, odd), "q": texts, "query": texts, "seed": odd, "turn": odd,
        "paraphrase": odd, "topk": st.lists(hits, max_size=3), "hits": st.lists(hits, max_size=2),
        "retrieved_ids": st.lists(texts, max_size=3), "chunks": st.lists(hits, max_size=2),
        "citations": st.one_of(st.lists(st.one_of(texts, st.just(" a ")), max_size=2), odd),
        "cited_chunks": st.lists(texts, max_size=2), "q_id": texts, "refused": odd,
        "answer": st.one_of(answers, texts, st.sampled_from(("So. citations: [a, ä]", "So [1]."))),
        "answer_json": answers, "error": odd, "latency_ms": odd, "answer_text": texts,
        "elapsed_ms": odd, "perf": st.one_of(odd, st.just({"t_retrieve_ms": 2, "t_reason_ms": 3})),
        "embed_model": st.one_of(texts, odd), "build": odd, "more": odd, "lambda": odd,
    },
)  # fmt: skip


def fast_trace(row: dict[str, Any], *, strip_citations: bool = False) -> Trace | None:
    """The trace of a row on the fast path alone."""
    data = json.dumps(row).encode()
    return FastDecoder(unread=False).trace(
        data, 3, strip_citations=strip_citations, cites_in_text=False
    )


@pytest.mark.parametrize(
    ("dialect", "own"),
    [("native", False), ("canary", True), ("ship", True), ("smoke", True), ("kb", True)],
)
@given(row=rows, escaped=st.booleans())
@examples(100)
def test_a_quick_trace_is_the_exact_one(
    dialect: str, own: bool, row: dict[str, Any], escaped: bool
) -> None:
    data = json.dumps(row, ensure_ascii=escaped).encode()
    rules = registry.dialect(dialect)
    quick = FastDecoder(unread=False).trace(
        data,
        7,
        strip_citations=own and rules.strip_citations,
        cites_in_text=rules.cites_in_text,
    )
    if quick is not None:
        try:
            exact = RowReader(registry.dialect(dialect), own=own).trace(
                decode_row(data, cut=False, overlong=False), 7
            )
        except FieldError as error:
            pytest.fail(f"the exact path refuses {data!r}: {error.message}")
        assert quick == exact


def test_the_usual_row_is_quick() -> None:
    """Else nothing is gained, and the property above would hold for a path that is never taken."""
    row = {
        "qid": "Q1",
        "question": "Where?",
        "seed": 1,
        "topk": [
            {"id": "c1", "doc": "a.md", "offsets": [0, 9], "score": 0.9, "heading": "So"},
            {"id": "c2", "doc": "a.md", "start": 9, "end": 12, "chunker_version": "v1"},
        ],
        "answer": {"claim": "Here.", "citations": ["c1"]},
        "embed_model": "e5",
        "latency_ms": 12,
    }
    found = fast_trace(row)
    assert found is not None
    assert [hit.spans[0].end for hit in found.hits] == [9, 12]
    assert found.line == 3


def test_an_answer_in_words_is_quick_too() -> None:
    for answer, expected in (
        ({"text": "Here.", "citations": ["c1"]}, Answer(text="Here.", citations=("c1",))),
        ({"text": "Here. citations: [c1, c2]"},
         Answer(text="Here. citations: [c1, c2]", citations=("c1", "c2"))),
        ({"text": "", "claim": "So."}, Answer(text="", claim="So.")),
        ({"text": None}, None),
    ):  # fmt: skip
        row = {"qid": "Q1", "hits": [{"id": "c1", "doc": "a.md"}], "answer": answer}
        found = fast_trace(row)
        assert found is not None
        assert found.answer == expected
