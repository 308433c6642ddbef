"""What distances show: a sweep over k, and cited snippets that are far away.

What is high is said by the bands of the embedder. Distances of several embedders are not read
together, those that compare words are not read at all; nor is a sweep whose lists end at five.
"""

from __future__ import annotations

import numpy as np

from ragauge.diagnose.rules import SLACK, DiagnosisRule, RuleHit, Symptoms
from ragauge.model.scores import Scores
from ragauge.model.semantic import Bands, is_lexical

FLAT = 0.05
FALLING = 0.10
"""Flat and falling are numbers of our own: the pages say flat, high and sharp."""

_FIRST, _DEEP = "semantic.delta_s_hits@5", "semantic.delta_s_hits@20"
_CITED = "semantic.delta_s_cited"


def bands_of(scores: Scores) -> Bands:
    """The bands of the embedder, or those of the source documents where it has none."""
    return Bands() if scores.semantic is None else scores.semantic.bands


def unread(scores: Scores) -> str | None:
    """Why nothing is concluded from the ΔS of a run; None where it is read."""
    if len(scores.embedders) > 1:
        return "it comes from several embedders"
    lexical = [embedder for embedder in scores.embedders if is_lexical(embedder)]
    return f"{lexical[0]} compares words, not meanings" if lexical else None


def notes(scores: Scores) -> list[str]:
    """What is not looked for although there is ΔS; several embedders are a finding themselves."""
    why = unread(scores) if len(scores.embedders) == 1 else None
    names = ", ".join(rule.id for rule in RULES)
    return [] if why is None else [f"not looked for in ΔS, as {why}: {names}"]


def _sweep(run: Symptoms) -> tuple[float, float] | None:
    """ΔS of the first five and twenty hits, where the lists are longer than five."""
    first, deep = run.value(_FIRST), run.value(_DEEP)
    if first is None or deep is None or unread(run.scores) is not None:
        return None
    # Where lists end at five both values are the same by construction, which would look flat.
    deeper = run.of(_FIRST) != run.of(_DEEP)
    return (first, deep) if bool((deeper & ~np.isnan(run.of(_DEEP))).any()) else None


def _flat(run: Symptoms) -> RuleHit | None:
    sweep, risk = _sweep(run), bands_of(run.scores).risk
    if sweep is None or sweep[0] < risk or abs(sweep[1] - sweep[0]) > FLAT + SLACK:
        return None
    return RuleHit(
        places=run.where(_FIRST, lambda v: v >= risk, worst="high"),
        numbers=(
            run.number(_FIRST, f"high: {risk:.2f} or more"),
            run.number(_DEEP, f"flat: within {FLAT:.2f} of the first"),
        ),
        step="Check that the index and the queries are embedded alike: one model, one metric, "
        "vectors normalised on writing and on reading. Then build the index again.",
    )


def _falling(run: Symptoms) -> RuleHit | None:
    sweep = _sweep(run)
    if sweep is None or sweep[0] - sweep[1] < FALLING - SLACK:
        return None
    return RuleHit(
        places=run.where(_FIRST, lambda v: v > sweep[1], worst="high"),
        numbers=(
            run.number(_FIRST),
            run.number(_DEEP, f"{FALLING:.2f} or more below the first"),
        ),
        step="Widen the candidates: closer text stands further down. Loosen filters, and rerank "
        "or mix in a second retriever before cutting.",
    )


def _far(run: Symptoms) -> RuleHit | None:
    if unread(run.scores) is not None:
        return None
    bands = bands_of(run.scores)
    places = run.where(_CITED, lambda v: v >= bands.risk, worst="high")
    if not len(places):
        return None
    return RuleHit(
        places=places,
        numbers=(
            run.number(_CITED, f"stable: below {bands.stable:.2f}"),
            run.number(f"{_CITED}_p90", f"far: {bands.risk:.2f} or more"),
        ),
        step="Read the cited snippets of these questions. Where they do answer, the bands do not "
        "fit this embedder; where they do not, similarity is mistaken for meaning: rerank.",
    )


RULES = (
    DiagnosisRule(
        id="metric-mismatch",
        title="Hits are far away at any depth",
        find=_flat,
        source="WFGY ΔS probes (k sweep flat and high)",
        needs=(_FIRST, _DEEP),
    ),
    DiagnosisRule(
        id="filter-too-strict",
        title="Closer text stands further down",
        find=_falling,
        source="WFGY ΔS probes (k sweep falling)",
        needs=(_FIRST, _DEEP),
    ),
    DiagnosisRule(
        id="far-citations",
        title="Cited snippets are far from the question",
        find=_far,
        source="WFGY ΔS thresholds (risk zone)",
        needs=(_CITED, f"{_CITED}_p90"),
    ),
)
