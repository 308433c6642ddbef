"""What may be wrong with citations: none, of the wrong bytes, of what nobody retrieved."""

from __future__ import annotations

import numpy as np

from ragauge.diagnose.rules import DiagnosisRule, RuleHit, Symptoms


def _none(run: Symptoms) -> RuleHit | None:
    if run.scores.cites or not run.scores.tally.answered:
        return None
    places = run.where("answer.compliance", lambda v: ~np.isnan(v))
    return RuleHit(
        places=places,
        numbers=(
            run.number("answer.compliance", "the share with a list of citations, or a refusal"),
        ),
        step="Let the answer name its evidence before it speaks, as ids in a list, and log it. "
        "Until then coverage and citation accuracy cannot be measured.",
    )


def _ignored(run: Symptoms) -> RuleHit | None:
    places = run.caused("retrieved-not-cited", unless="OVER_REFUSAL")
    if not len(places):
        return None
    return RuleHit(
        places=places,
        numbers=(
            run.number("retrieval.hit@5", "high while citations miss: retrieval is not it"),
            run.number("citation.hit_rate_answerable"),
        ),
        step="Look at the prompt of these questions: is the evidence in it, with its id? Allow "
        "citations of listed ids only, and answer from cited text only.",
    )


def _offsets(run: Symptoms) -> RuleHit | None:
    places = run.caused("cited-wrong-offsets")
    if not len(places):
        return None
    return RuleHit(
        places=places,
        numbers=(
            run.number("citation.accuracy", "canary: 0.95 at least"),
            run.number("answer.coverage", "high while accuracy is low: right section"),
        ),
        step="Compare the text that offsets were taken from with the text that gold was pinned "
        "to: another normaliser or tokenizer moves them. Freeze it and make the offsets again.",
    )


def _unretrieved(run: Symptoms) -> RuleHit | None:
    if run.value("retrieval.empty") == 1.0:
        return None  # no hit was recorded, so nothing is known to be missing among them
    # What a refusal cites is no answer.
    refused = {*run.labelled("REFUSAL_OK", "OVER_REFUSAL").tolist()}
    outside = run.where("citation.in_context", lambda v: v < 1).tolist()
    places = np.array([place for place in outside if place not in refused], np.int64)
    if not len(places):
        return None
    missed = places[run.of("retrieval.hit@50")[places] == 0]
    resolved = run.value("citation.resolved")
    step = "Refuse answers that cite an id which was not in their context: it was made up, or "
    step += "remembered from another turn."
    if resolved is not None and resolved < 1:
        step = "Some cited ids are nowhere in the run. After a rebuild, redirect the old ids: "
        step += "`ragauge corpus diff OLD NEW` writes the map, `ragauge traces migrate` applies it."
    return RuleHit(
        places=places,
        numbers=(
            run.number("citation.in_context"),
            run.number("citation.resolved", "below 1: ids that no hit of the run has"),
            run.count("cites so, no evidence in top 50", missed, "retrieval missed it too"),
        ),
        step=step,
    )


RULES = (
    DiagnosisRule(
        id="no-citations",
        title="Answers cite nothing",
        find=_none,
        source="WFGY chunking eval page (eval without cite-first)",
        needs=("answer.compliance",),
    ),
    DiagnosisRule(
        id="evidence-ignored",
        title="The evidence is retrieved, and not cited",
        find=_ignored,
        source="WFGY ops playbook (CHR drop, retrieval fine)",
        needs=("retrieval.hit@5", "citation.hit_rate_answerable"),
    ),
    DiagnosisRule(
        id="offsets-drift",
        title="The right place is cited by wrong offsets",
        find=_offsets,
        source="WFGY chunking eval page (right section, wrong offsets)",
        needs=("citation.accuracy", "answer.coverage"),
    ),
    DiagnosisRule(
        id="unretrieved-citations",
        title="Something is cited that was not retrieved",
        find=_unretrieved,
        source="WFGY eval page (citations within hits); reindex page",
        needs=("citation.in_context", "citation.resolved"),
    ),
)
