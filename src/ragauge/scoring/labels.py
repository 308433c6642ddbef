"""Labels: one word for the outcome of each record, and the cause where something failed."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ragauge.metrics.batch import NEVER, Batch
from ragauge.metrics.columns import Bools, Ints
from ragauge.metrics.facts import Fact
from ragauge.metrics.metric import Metric
from ragauge.model.labels import CAUSES, LABELS


class LabelColumns(NamedTuple):
    """The label and the cause of each record by their codes, and whether it cites evidence."""

    labels: NDArray[np.uint8]
    causes: NDArray[np.uint8]
    hit: Bools

    def between(self, start: int, end: int) -> LabelColumns:
        """Those of some records."""
        part = slice(start, end)
        return LabelColumns(self.labels[part], self.causes[part], self.hit[part])


def labels_of(batch: Batch, correct: Metric) -> LabelColumns:
    """The labels and causes of records; `correct` is the profile's precision metric."""
    assert correct.value is not None
    labels = label_records(
        batch,
        np.asarray(correct.value(batch, 0), np.bool_),
        grounded=correct.id == "answer.grounded_precision",
    )
    return LabelColumns(labels, refine_records(batch, labels), batch.hit.copy())


_LABEL_CODE = {label: code for code, label in enumerate(LABELS)}


def label_records(batch: Batch, correct: Bools, *, grounded: bool) -> NDArray[np.uint8]:
    """The label of each record, as its place in LABELS.

    `correct` is the value of the profile's precision metric. A profile that follows its source
    scores missing traces as empty answers, but the label says what they are. `grounded`: citing
    nothing is a hit where there is no evidence.
    """
    answerable, refusable = batch.answerable, batch.refusable
    answered, refused = batch.answered, batch.refused
    creditable = batch.creditable & answered
    labels = np.full(batch.size, _LABEL_CODE["UNLABELLED"], np.uint8)
    labels[~batch.has_answer] = _LABEL_CODE["NO_ANSWER"]
    labels[answerable & refused] = _LABEL_CODE["OVER_REFUSAL"]
    labels[refusable & refused] = _LABEL_CODE["REFUSAL_OK"]
    hit = batch.hit
    if grounded:
        hit = hit | ((batch.relevant_count == 0) & ~batch.cited)
    labels[creditable & ~hit] = _LABEL_CODE["ANS_NO_HIT"]
    labels[creditable & hit & ~batch.in_context] = _LABEL_CODE["OUT_OF_SCOPE"]
    labels[creditable & hit & batch.in_context] = _LABEL_CODE["CLAIM_MISSING"]
    labels[creditable & correct] = _LABEL_CODE["OK"]
    labels[refusable & answered] = _LABEL_CODE["HALLUCINATION"]
    labels[batch.errored] = _LABEL_CODE["ERRORED"]
    labels[batch.traceless] = _LABEL_CODE["MISSING"]
    return labels


DEPTH = 5
"""The hits that a reader is taken to see. They decide causes, and λ in a run without answers."""


NEAR_EDGES = 2
"""A sibling section is two edges away in the title tree, a parent or child one."""


_OPEN = ("UNLABELLED", "NO_ANSWER", "OVER_REFUSAL", "ANS_NO_HIT")


_CAUSE_CODE = {cause: code for code, cause in enumerate(CAUSES, 1)}

PLACE_UNKNOWN_CAUSE = _CAUSE_CODE["place-unknown"]
"""The code of the cause of what depends on where in a chunk the evidence stands."""


def refine_records(batch: Batch, labels: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """The cause of each record as its place in CAUSES, from 1; 0 for none.

    What is expected is the evidence or, where an item has none, its section or its documents. A
    later line wins: what failed earlier in the making of an answer explains what came after it.
    """
    causes = np.zeros(batch.size, np.uint8)
    label = {name: labels == code for code, name in enumerate(LABELS)}
    lost = np.zeros(batch.size, np.bool_)
    for name in _OPEN:
        lost |= label[name]
    lost &= ~(batch.hit & batch.answered) & ~batch.refusable  # what a refusal cites is no answer
    spoke = lost & batch.has_answer
    rank, expects = _expected(batch)
    never = rank == NEVER
    causes[spoke & expects & (rank < DEPTH)] = _CAUSE_CODE["retrieved-not-cited"]
    # Also of answers that count as right, or that nobody judges: a profile need not ask for hits.
    beyond = batch.answered & batch.cited & ~batch.in_context
    causes[(spoke | label["OK"] | label["UNLABELLED"]) & beyond] = _CAUSE_CODE[
        "out-of-scope-citation"
    ]
    lost &= expects
    causes[lost & (rank >= DEPTH)] = _CAUSE_CODE["ranked-too-low"]
    causes[lost & never] = _CAUSE_CODE["retrieval-miss"]
    causes[lost & never & _near(batch)] = _CAUSE_CODE["near-miss-section"]
    beaten = (batch.first_negative < rank) & (batch.first_negative < DEPTH)
    causes[lost & batch.has_negatives & beaten] = _CAUSE_CODE["negative-preferred"]
    causes[label["OUT_OF_SCOPE"]] = _CAUSE_CODE["out-of-scope-citation"]
    causes[label["CLAIM_MISSING"]] = _CAUSE_CODE["claim-missing"]
    # Also of answers that count as right: a profile may not ask for offsets.
    causes[(label["OK"] | (spoke & (rank < DEPTH))) & _misplaced(batch)] = _CAUSE_CODE[
        "cited-wrong-offsets"
    ]
    return causes


def _expected(batch: Batch) -> tuple[Ints, Bools]:
    """The rank of the first hit that is expected, and whether anything is."""
    has_evidence, has_docs = batch.relevant_count > 0, batch.doc_count > 0
    section = batch.single("section_rank", NEVER).astype(np.int64)
    otherwise = np.where(batch.has_section, section, batch.first_doc)
    rank = np.where(has_evidence, batch.first_relevant, otherwise)
    expects: Bools = has_evidence | batch.has_section | has_docs
    return rank, expects


def _near(batch: Batch) -> Bools:
    """Whether something from a section near the evidence was retrieved, or cited."""
    retrieved = (batch.relevant_count > 0) & batch.section_in_top(DEPTH)
    cited = batch.listed_in("distance") & (batch.single("distance") <= NEAR_EDGES)
    near: Bools = retrieved | cited
    return near


def _misplaced(batch: Batch) -> Bools:
    """Whether the right block or section is cited with offsets, and none of them agrees."""
    aims = batch.hit | batch.has(Fact.CITES_SECTION)
    with_offsets = (batch.span_bytes > 0) & batch.has(Fact.CITES_SPAN)
    wrong: Bools = batch.answered & aims & with_offsets & ~batch.has(Fact.ACCURATE)
    return wrong
