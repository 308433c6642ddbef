"""Retrieval: did the evidence come back, and how far up."""

from __future__ import annotations

from ragauge.model.metric import Example, Metric
from ragauge.model.populations import ANSWERABLE_EVIDENCE

METRICS = (
    Metric(
        id="retrieval.recall_all",
        at_k=True,
        title="All evidence in the top k",
        formula="1 if G ⊆ R_k, else 0",
        over=ANSWERABLE_EVIDENCE,
        better="higher",
        source="WFGY eval page (Recall@k)",
        value=lambda b, k: b.relevant_in_top(k) == b.relevant_count,
        elsewhere=(
            "Most tools mean by recall@k the share of the evidence that came back "
            "(trec_eval, ranx, ragas), or whether any of it did (hit rate). This is "
            "all-or-nothing: an upper bound on what can be answered from the top k."
        ),
        example=Example(
            gold={"qid": "A1", "question": "Which keys are refused?", "answerable": True,
                  "gold_citations": ["p1#2", "p4#1"]},
            trace={"qid": "A1", "retrieved_ids": ["p1#2", "p9#9", "p4#1"]},
            value=1.0,
            arithmetic="G = {p1#2, p4#1}; both are among the first 5 hits (ranks 1 and 3): 1. "
            "At k = 2 the second is missing, and the value is 0.",
        ),
    ),
)  # fmt: skip
