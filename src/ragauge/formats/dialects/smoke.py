"""The files of the WFGY example 08: `qaset.json`, and traces with the answer as text."""

from ragauge.model.dialect import Dialect

DIALECT = Dialect(
    name="smoke",
    title="qaset.json with gold_ids, trace.jsonl with the answer as text, joined by the question",
    source="WFGY example 08",
    profile="smoke",
    gold_marks=frozenset({"gold_ids", "gold_claim"}),
    trace_marks=frozenset({"chunks", "ok"}),
    own_gold={
        "qid": ("qid",),
        "question": ("q",),
        "relevant": ("gold_ids",),
        "claims": ("gold_claim",),
    },
    own_trace={
        "question": ("q", "question"),
        "hits": ("chunks",),
        "answer": ("answer",),
        "citations": ("citations",),
    },
    strip_citations=True,
)
