"""Refusals: too many, and too few."""

from __future__ import annotations

import numpy as np

from ragauge.metrics.batch import Batch
from ragauge.metrics.columns import Floats
from ragauge.metrics.metric import Example, Metric, answer_row
from ragauge.metrics.populations import ANSWERABLE, EXPECT_LABELLED, UNANSWERABLE

_REFUSABLE = {"qid": "A2", "question": "Explain Z.", "answerable": False}


def _f1(batch: Batch, k: int) -> tuple[Floats, Floats]:  # noqa: ARG001
    """Twice the right refusals, and that plus the wrong refusals and the wrong answers."""
    right: Floats = 2.0 * (batch.refused & batch.unanswerable).astype(np.float64)
    wrong = (batch.refused & batch.answerable) | (~batch.refused & batch.unanswerable)
    return right, right + wrong.astype(np.float64)


METRICS = (
    Metric(
        id="refusal.over",
        version=2,
        title="Answerable questions that were refused",
        formula="1 if refused, else 0",
        over=ANSWERABLE,
        better="lower",
        source="WFGY example 08 and eval page (over-refusal)",
        value=lambda b, k: b.refused,
        example=Example(
            {
                "qid": "A1",
                "question": "What domain?",
                "answerable": True,
                "gold_citations": ["pB#1"],
            },
            answer_row(" Not in context ", [], retrieved_ids=["pB#1"]),
            1.0,
            "the claim is the refusal token after strip and lower, and the question "
            "has an answer: 1.",
        ),
    ),
    Metric(
        id="refusal.under",
        version=2,
        title="Unanswerable questions that were answered",
        formula="1 if answered, else 0",
        over=UNANSWERABLE,
        better="lower",
        source="WFGY example 08 and eval page (under-refusal)",
        value=lambda b, k: b.answered & b.refusable,
        elsewhere="Often called the hallucination rate; here it is only about questions that "
        "the gold set marks as unanswerable.",
        example=Example(
            {"qid": "A2", "question": "Explain Z.", "answerable": False, "gold_citations": []},
            answer_row("Z is a city.", ["p1#1"], qid="A2", retrieved_ids=["p1#1"]),
            1.0,
            "any answer to an unanswerable question counts: 1.",
        ),
    ),
    Metric(
        id="refusal.correct",
        version=2,
        title="Questions to be refused that were refused",
        formula="1 if refused, else 0",
        over=UNANSWERABLE,
        better="higher",
        source="kb evaluation (refusal_correctness)",
        value=lambda b, k: b.refused,
        elsewhere="The kb evaluation marks such questions with an empty expected_doc_ids.",
        example=Example(
            _REFUSABLE,
            {
                "qid": "A2",
                "hits_top_k": [],
                "answer": {"answer": "I found nothing.", "grounded": False},
            },
            1.0,
            "the question is to be refused, and the answer is not grounded: 1.",
        ),
    ),
    Metric(
        id="refusal.f1",
        version=2,
        binary=False,
        title="Refusal as a classification: F1",
        formula="2·TP / (2·TP + FP + FN), where a refusal is positive: TP refused and to be "
        "refused, FP refused and answerable, FN answered and to be refused",
        over=EXPECT_LABELLED,
        better="higher",
        source="own",
        ratio=_f1,
        f1=True,
        elsewhere="Over- and under-refusal can each be bought with the other; this cannot. The "
        "report has the four counts beside it.",
        example=Example(
            _REFUSABLE,
            answer_row("not in context", [], qid="A2"),
            1.0,
            "TP = 1, FP = FN = 0: 2 / 2.",
        ),
    ),
)
