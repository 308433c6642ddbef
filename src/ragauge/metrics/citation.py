"""Citations: do they point at the evidence, and at what was retrieved."""

from __future__ import annotations

from ragauge.model.metric import Example, Metric
from ragauge.model.populations import ANSWERABLE, ANSWERED, CITED

METRICS = (
    Metric(
        id="citation.hit_rate",
        title="Answers whose citations hit, in scope",
        formula="1 if the item is not to be refused, C ⊆ hits, and C ∩ G ≠ ∅ (or both are "
        "empty), else 0",
        over=ANSWERED,
        better="higher",
        source="WFGY eval page (CHR)",
        value=lambda b, k: b.hit_in_scope,
        elsewhere="WFGY example 08 means by CHR a hit among the answerable questions, whether or "
        "not the cited id was retrieved: that is citation.hit_rate_answerable.",
        example=Example(
            gold={"qid": "A1", "question": "What domain?", "answerable": True,
                  "gold_citations": ["pB#1"]},
            trace={"qid": "A1", "retrieved_ids": ["p1#2"],
                   "answer_json": {"claim": "example.com", "citations": ["pB#1"]}},
            value=0.0,
            arithmetic="C = {pB#1} is in G, but it was not retrieved: out of scope, 0.",
        ),
    ),
    Metric(
        id="citation.hit_rate_answerable",
        title="Answerable questions answered with a hit",
        formula="1 if answered and C ∩ G ≠ ∅, else 0",
        over=ANSWERABLE,
        better="higher",
        source="WFGY example 08 (CHR)",
        value=lambda b, k: b.answered & b.hit,
        elsewhere="Refusing an answerable question counts 0 here and is left out of "
        "citation.hit_rate.",
        example=Example(
            gold={"qid": "q1", "q": "What is X?", "answerable": True, "gold_ids": ["p1#1"]},
            trace={"q": "What is X?", "chunks": [{"id": "p3#1"}],
                   "answer": "A mapping. Citations: [p3#1 p1#1]"},
            value=1.0,
            arithmetic="the text cites p3#1 and p1#1; C ∩ G = {p1#1}: 1.",
        ),
    ),
    Metric(
        id="citation.in_context",
        title="Citations taken only from what was retrieved",
        formula="1 if C ⊆ hits, else 0",
        over=CITED,
        better="higher",
        source="WFGY eval page (scoped grounding)",
        value=lambda b, k: b.in_context,
        example=Example(
            gold={"qid": "A1", "question": "What domain?", "answerable": True,
                  "gold_citations": ["pB#1"]},
            trace={"qid": "A1", "retrieved_ids": ["p1#2", "pB#1"],
                   "answer_json": {"claim": "example.com", "citations": ["pB#1", "p8#3"]}},
            value=0.0,
            arithmetic="p8#3 is cited and was not retrieved: 0.",
        ),
    ),
)  # fmt: skip
