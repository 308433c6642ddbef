"""The files of the WFGY eval page: `gold.jsonl`, and traces with `answer_json`."""

from ragauge.model.dialect import Dialect

DIALECT = Dialect(
    name="ship",
    title="gold.jsonl with gold_citations, trace.jsonl with retrieved_ids and answer_json",
    source="WFGY eval page",
    profile="ship",
    gold_marks=frozenset({"gold_claim_substr", "gold_citations"}),
    trace_marks=frozenset({"answer_json", "retrieved_ids"}),
    own_gold={
        "qid": ("qid",),
        "question": ("question",),
        "relevant": ("gold_citations",),
        "claims": ("gold_claim_substr",),
        "answerable": ("answerable",),
    },
    own_trace={
        "qid": ("qid", "q_id"),
        "question": ("q",),
        "hits": ("retrieved_ids",),
        "answer": ("answer_json",),
    },
    # A crash that was logged as `answer_json: null` is an empty answer, whatever stands beside it.
    sole_gold=("relevant", "claims", "answerable"),
    sole_trace=("qid", "hits", "answer", "claim", "text", "citations"),
)
