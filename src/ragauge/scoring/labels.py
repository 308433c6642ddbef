"""Labelling: one word a record for what came of it."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ragauge.metrics.batch import Batch
from ragauge.metrics.columns import Bools
from ragauge.model.labels import LABELS

_CODE = {label: code for code, label in enumerate(LABELS)}


def label_records(batch: Batch, correct: Bools, *, grounded: bool) -> NDArray[np.uint8]:
    """The label of each record, as its place in LABELS.

    `correct` is the value of the profile's precision metric. A profile that follows its source
    scores missing traces as empty answers, but the label says what they are. `grounded`: citing
    nothing is a hit where there is no evidence.
    """
    answerable, refusable = batch.answerable, batch.refusable
    answered, refused = batch.answered, batch.refused
    creditable = batch.creditable & answered
    labels = np.full(batch.size, _CODE["UNLABELLED"], np.uint8)
    labels[~batch.has_answer] = _CODE["NO_ANSWER"]
    labels[answerable & refused] = _CODE["OVER_REFUSAL"]
    labels[refusable & refused] = _CODE["REFUSAL_OK"]
    hit = batch.hit
    if grounded:
        hit = hit | ((batch.relevant_count == 0) & ~batch.cited)
    labels[creditable & ~hit] = _CODE["ANS_NO_HIT"]
    labels[creditable & hit & ~batch.in_context] = _CODE["OUT_OF_SCOPE"]
    labels[creditable & hit & batch.in_context] = _CODE["CLAIM_MISSING"]
    labels[creditable & correct] = _CODE["OK"]
    labels[refusable & answered] = _CODE["HALLUCINATION"]
    labels[batch.errored] = _CODE["ERRORED"]
    labels[batch.traceless] = _CODE["MISSING"]
    return labels
