"""What recorded distances show: a sweep over k, and cited snippets that are far away.

Distances of several embedders are not read together; nor is a sweep whose lists end at five.
"""

from __future__ import annotations

import numpy as np

from ragauge.diagnosis.rules import SLACK, Found, Rule, Symptoms

RISK = 0.60
FLAT = 0.05
FALLING = 0.10
"""Flat and falling are numbers of our own: the pages say flat, high and sharp."""

_FIRST, _DEEP = "semantic.delta_s_hits@5", "semantic.delta_s_hits@20"
_CITED = "semantic.delta_s_cited"


def _sweep(run: Symptoms) -> tuple[float, float] | None:
    """ΔS of the first five and twenty hits, where the lists are longer than five."""
    first, deep = run.value(_FIRST), run.value(_DEEP)
    if first is None or deep is None or len(run.scores.embedders) > 1:
        return None
    deeper = run.of(_FIRST) != run.of(_DEEP)
    return (first, deep) if bool((deeper & ~np.isnan(run.of(_DEEP))).any()) else None


def _flat(run: Symptoms) -> Found | None:
    sweep = _sweep(run)
    if sweep is None or sweep[0] < RISK or abs(sweep[1] - sweep[0]) > FLAT + SLACK:
        return None
    return Found(
        places=run.where(_FIRST, lambda v: v >= RISK, worst="high"),
        numbers=(
            run.number(_FIRST, f"high: {RISK:.2f} or more"),
            run.number(_DEEP, f"flat: within {FLAT:.2f} of the first"),
        ),
        step="Check that the index and the queries are embedded alike: one model, one metric, "
        "vectors normalised on writing and on reading. Then build the index again.",
    )


def _falling(run: Symptoms) -> Found | None:
    sweep = _sweep(run)
    if sweep is None or sweep[0] - sweep[1] < FALLING - SLACK:
        return None
    return Found(
        places=run.where(_FIRST, lambda v: v > sweep[1], worst="high"),
        numbers=(
            run.number(_FIRST),
            run.number(_DEEP, f"{FALLING:.2f} or more below the first"),
        ),
        step="Widen the candidates: closer text stands further down. Loosen filters, and rerank "
        "or mix in a second retriever before cutting.",
    )


def _far(run: Symptoms) -> Found | None:
    if len(run.scores.embedders) > 1:
        return None
    places = run.where(_CITED, lambda v: v >= RISK, worst="high")
    if not len(places):
        return None
    return Found(
        places=places,
        numbers=(
            run.number(_CITED, "canary: 0.40 at most"),
            run.number(f"{_CITED}_p90", "canary: 0.55 at most"),
        ),
        step="Read the cited snippets of these questions. Where they do answer, the bands do not "
        "fit this embedder; where they do not, similarity is mistaken for meaning: rerank.",
    )


RULES = (
    Rule(
        id="metric-mismatch", title="Hits are far away at any depth", find=_flat,
        source="WFGY ΔS probes (k sweep flat and high)", needs=(_FIRST, _DEEP),
    ),
    Rule(
        id="filter-too-strict", title="Closer text stands further down", find=_falling,
        source="WFGY ΔS probes (k sweep falling)", needs=(_FIRST, _DEEP),
    ),
    Rule(
        id="far-citations", title="Cited snippets are far from the question", find=_far,
        source="WFGY ΔS thresholds (risk zone)", needs=(_CITED, f"{_CITED}_p90"),
    ),
)  # fmt: skip
