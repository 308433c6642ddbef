"""What keeps a run from being measured as a whole: traces that are not there, or mean nothing."""

from __future__ import annotations

from ragauge.diagnose.rules import DiagnosisRule, RuleHit, Symptoms


def _missing(run: Symptoms) -> RuleHit | None:
    places = run.labelled("MISSING")
    if not len(places):
        return None
    return RuleHit(
        places=places,
        numbers=(run.number("run.missing"),),
        step="Run these questions, or compare one id of each file: a changed prefix is the usual "
        "cause.",
    )


def _errored(run: Symptoms) -> RuleHit | None:
    places = run.labelled("ERRORED")
    if not len(places):
        return None
    return RuleHit(
        places=places,
        numbers=(run.number("run.errored"),),
        step="Read the error of the first of them, mend it, and run these questions again.",
    )


def _embedders(run: Symptoms) -> RuleHit | None:
    embedders = run.scores.embedders
    if len(embedders) < 2:
        return None
    places = run.where("semantic.delta_s_hits", lambda v: v >= 0, worst="high")
    return RuleHit(
        places=places,
        numbers=(run.count(f"questions with ΔS, of {', '.join(embedders)}", places),),
        step="Measure ΔS with one embedder. Distances of two cannot be read together, so nothing "
        "is said of distances here.",
    )


RULES = (
    DiagnosisRule(
        id="missing-traces",
        title="Questions have no trace",
        find=_missing,
        source="own",
        needs=("run.missing",),
        blocking=True,
    ),
    DiagnosisRule(
        id="errored-traces",
        title="Traces carry errors",
        find=_errored,
        source="own",
        needs=("run.errored",),
        blocking=True,
    ),
    DiagnosisRule(
        id="mixed-embedders",
        title="ΔS comes from several embedders",
        find=_embedders,
        source="own",
        needs=("semantic.delta_s_hits",),
        blocking=True,
    ),
)
