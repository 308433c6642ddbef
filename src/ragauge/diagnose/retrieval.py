"""What may be wrong with retrieval: nothing comes back, the wrong thing does, or too far down."""

from __future__ import annotations

import numpy as np

from ragauge.diagnose.rules import SLACK, DiagnosisRule, RuleHit, Symptoms
from ragauge.model.diagnosis import Number

RERANK_FROM = 0.85
"""Evidence must be in the first fifty hits this often before a reranker is worth its cost."""

TYPE_GAP = 0.20
"""A type whose evidence is found so much less often than prose has lost its typing. Own choice:
the pages name the symptom and no number."""

_RECALL, _HIT = "retrieval.recall@5", "retrieval.hit@"


def _empty(run: Symptoms) -> RuleHit | None:
    places = run.where("retrieval.empty", lambda v: v > 0, worst="high")
    if not len(places):
        return None
    step = "Read the indexer's log and ask for one of these questions by hand: a failed ingest "
    step += "and a wrong namespace both look like this."
    if run.value("retrieval.empty") == 1.0:
        step = "No trace has a hit. Log what was retrieved, or nothing can be said of retrieval."
    return RuleHit(
        places=places,
        step=step,
        numbers=(run.number("retrieval.empty", "the sources accept none"),),
    )


def _missed(run: Symptoms) -> RuleHit | None:
    places = run.caused("retrieval-miss")
    if not len(places):
        return None
    return RuleHit(
        places=places,
        numbers=(
            run.number(_RECALL),
            run.number(f"{_HIT}50", "1 less this: evidence that no hit has"),
        ),
        step="See whether the index holds the evidence: `ragauge validate GOLD TRACE --corpus DIR` "
        "names ids that the corpus lacks. What is in the corpus and never retrieved was not "
        "ingested, or is filtered away: compare the index with its manifest and rebuild it whole.",
    )


def _low(run: Symptoms) -> RuleHit | None:
    places = run.caused("ranked-too-low")
    if not len(places):
        return None
    deep = run.value(f"{_HIT}50")
    enough = deep is not None and deep >= RERANK_FROM
    step = (
        "Rerank: the evidence is in the candidates often enough for a reranker to find it."
        if enough
        else "Widen the candidates first: below 0.85 a reranker has too little to work with."
    )
    return RuleHit(
        places=places,
        numbers=(
            run.number(f"{_HIT}3"),
            run.number(f"{_HIT}20", "high while hit@3 is low: order, not reach"),
            run.number(f"{_HIT}50", f"rerank from {RERANK_FROM} on"),
        ),
        step=step,
    )


def _beaten(run: Symptoms) -> RuleHit | None:
    places = run.caused("negative-preferred")
    if not len(places):
        return None
    return RuleHit(
        places=places,
        numbers=(
            run.number("retrieval.negative_above"),
            run.number("retrieval.negative@5"),
        ),
        step="Look at where the negatives lie: text of a neighbouring section in one chunk with "
        "the answer's is a boundary in the wrong place. Cut at headings and index again.",
    )


def _beside(run: Symptoms) -> RuleHit | None:
    places = run.caused("near-miss-section")
    if not len(places):
        return None
    return RuleHit(
        places=places,
        numbers=(
            run.number("retrieval.anchor_hit@5", "high while recall is low: right section"),
            run.number(_RECALL),
            run.number("citation.anchor_distance", "0 the section, 1 its parent, 2 a sibling"),
        ),
        step="Tighten the blocks: the right neighbourhood is found and the block is not. If the "
        "retrieved block does answer the question, add it to the gold item's evidence.",
    )


def _untyped(run: Symptoms) -> RuleHit | None:
    least = run.scores.options.min_n
    prose, n = run.mean(_RECALL, run.types.get("prose", np.zeros(0, np.int64)))
    if prose is None or n < least:
        return None
    numbers, lost = [Number(name=f"{_RECALL}, prose", value=prose, n=n)], []
    for name, places in sorted(run.types.items()):
        mean, size = run.mean(_RECALL, places)
        if name == "prose" or mean is None or size < least or prose - mean < TYPE_GAP - SLACK:
            continue
        reading = f"{TYPE_GAP:.2f} or more below prose"
        numbers.append(Number(name=f"{_RECALL}, {name}", value=mean, n=size, reading=reading))
        lost.append(places)
    if not lost:
        return None
    of_lost_types = set(np.concatenate(lost).tolist())
    short = run.where(_RECALL, lambda v: v < 1)
    places = np.array([place for place in short.tolist() if place in of_lost_types], np.int64)
    return RuleHit(
        places=places,
        numbers=tuple(numbers),
        step="Keep the type of a block through chunking and ranking: tables and code that are "
        "embedded as prose are found as prose. `ragauge corpus build` shows the types.",
    )


RULES = (
    DiagnosisRule(
        id="retrieval-empty",
        title="Nothing is retrieved",
        find=_empty,
        source="WFGY ops playbook (retrieval empty)",
        needs=("retrieval.empty",),
    ),
    DiagnosisRule(
        id="evidence-not-retrieved",
        title="The evidence is never retrieved",
        find=_missed,
        source="WFGY eval page (recall@k low); fragmentation page",
        needs=(_RECALL, f"{_HIT}50"),
    ),
    DiagnosisRule(
        id="boundaries-bleed",
        title="Near negatives come before the evidence",
        find=_beaten,
        source="WFGY chunking eval page (boundary leaks)",
        needs=("retrieval.negative@5", "retrieval.negative_above"),
    ),
    DiagnosisRule(
        id="adjacent-block",
        title="The hits lie beside the evidence",
        find=_beside,
        source="WFGY chunk id page (adjacent section)",
        needs=("retrieval.anchor_hit@5", _RECALL, "citation.anchor_distance"),
    ),
    DiagnosisRule(
        id="ordering",
        title="The evidence is retrieved, and ranked too low",
        find=_low,
        source="WFGY rerankers page",
        needs=(f"{_HIT}3", f"{_HIT}20", f"{_HIT}50"),
    ),
    DiagnosisRule(
        id="typing-lost",
        title="Evidence of one type is found less than prose",
        find=_untyped,
        source="WFGY chunking eval page (tables and code)",
        needs=(_RECALL,),
    ),
)
