"""Labels: one word a record for what came of it, and the worst one for its question."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ragauge.model.batch import Batch, Bools

MEANINGS: dict[str, str] = {
    "OK": "answered rightly: the profile's precision counts it",
    "REFUSAL_OK": "refused, and the gold item says that it should be",
    "UNLABELLED": "the gold item does not say whether there is an answer",
    "NO_ANSWER": "the trace has hits but no answer of any kind",
    "OVER_REFUSAL": "refused, although there is an answer",
    "CLAIM_MISSING": "cites the evidence in scope, but no gold claim is in what was said",
    "OUT_OF_SCOPE": "cites the evidence, and also something that was not retrieved",
    "ANS_NO_HIT": "answered without citing any of the evidence",
    "HALLUCINATION": "answered, although there is no answer",
    "ERRORED": "the trace carries an error",
    "MISSING": "no trace",
}
"""The labels from best to worst; a question with several slots shows its worst."""

LABELS = tuple(MEANINGS)
GOOD = ("OK", "REFUSAL_OK")
_CODE = {label: code for code, label in enumerate(LABELS)}


def label_records(batch: Batch, correct: Bools, missing: Bools) -> NDArray[np.uint8]:
    """The label of each record, as its place in LABELS.

    `correct` is the value of the profile's precision metric. `missing` are the records that stand
    for no trace; a profile that follows its source scores them as empty answers, but the label
    says what they are.
    """
    answerable, refusable = batch.answerable, batch.refusable
    answered, refused = batch.answered, batch.refused
    creditable = batch.creditable & answered
    labels = np.full(batch.size, _CODE["UNLABELLED"], np.uint8)
    labels[~batch.has_answer] = _CODE["NO_ANSWER"]
    labels[answerable & refused] = _CODE["OVER_REFUSAL"]
    labels[refusable & refused] = _CODE["REFUSAL_OK"]
    labels[creditable & ~batch.hit] = _CODE["ANS_NO_HIT"]
    labels[creditable & batch.hit & ~batch.in_context] = _CODE["OUT_OF_SCOPE"]
    labels[creditable & batch.hit & batch.in_context] = _CODE["CLAIM_MISSING"]
    labels[creditable & correct] = _CODE["OK"]
    labels[refusable & answered] = _CODE["HALLUCINATION"]
    labels[batch.errored] = _CODE["ERRORED"]
    labels[missing] = _CODE["MISSING"]
    return labels
