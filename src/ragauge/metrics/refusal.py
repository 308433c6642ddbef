"""Refusals: too many, and too few."""

from __future__ import annotations

from ragauge.model.metric import Example, Metric
from ragauge.model.populations import ANSWERABLE, UNANSWERABLE

METRICS = (
    Metric(
        id="refusal.over",
        title="Answerable questions that were refused",
        formula="1 if refused, else 0",
        over=ANSWERABLE,
        better="lower",
        source="WFGY example 08 and eval page (over-refusal)",
        value=lambda b, k: b.refused,
        example=Example(
            gold={"qid": "A1", "question": "What domain?", "answerable": True,
                  "gold_citations": ["pB#1"]},
            trace={"qid": "A1", "retrieved_ids": ["pB#1"],
                   "answer_json": {"claim": " Not in context ", "citations": []}},
            value=1.0,
            arithmetic="the claim is the refusal token after strip and lower, and the question "
            "has an answer: 1.",
        ),
    ),
    Metric(
        id="refusal.under",
        title="Unanswerable questions that were answered",
        formula="1 if answered, else 0",
        over=UNANSWERABLE,
        better="lower",
        source="WFGY example 08 and eval page (under-refusal)",
        value=lambda b, k: b.answered & b.refusable,
        elsewhere="Often called the hallucination rate; here it is only about questions that "
        "the gold set marks as unanswerable.",
        example=Example(
            gold={"qid": "A2", "question": "Explain Z.", "answerable": False,
                  "gold_citations": []},
            trace={"qid": "A2", "retrieved_ids": ["p1#1"],
                   "answer_json": {"claim": "Z is a city.", "citations": ["p1#1"]}},
            value=1.0,
            arithmetic="any answer to an unanswerable question counts: 1.",
        ),
    ),
)  # fmt: skip
