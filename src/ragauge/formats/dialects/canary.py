"""The files of the WFGY chunking eval page: gold with paraphrases, traces with topk, ΔS and λ."""

from ragauge.model import greek_names
from ragauge.model.dialect import Dialect

DIALECT = Dialect(
    name="canary",
    title="gold with paraphrases, anchor_section and negatives; traces with topk, ΔS and λ_state",
    source="WFGY chunking eval page",
    profile="canary",
    # Not `negatives`: `gold negatives` adds them to gold of any dialect, which stays what it is.
    gold_marks=frozenset({"paraphrases", "anchor_section"}),
    trace_marks=frozenset(
        {*greek_names.DELTA_S, *greek_names.LAMBDA, "index_hash", "anchor", "answer_citations"}
    ),
    own_gold={"qid": ("qid",), "relevant": ("relevant",), "anchor_section": ("anchor_section",)},
    own_trace={
        "qid": ("qid",),
        "question": ("query", "question"),
        "hits": ("topk",),
        "citations": ("answer_citations",),
    },
)
