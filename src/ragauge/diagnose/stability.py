"""What may be wrong between slots: the same question, in other words or with another seed."""

from __future__ import annotations

from ragauge.diagnose.rules import DiagnosisRule, RuleHit, Symptoms

TAU = 0.60
SAME_CITATIONS = 0.70
SAME_WORDS = 0.20
FLIPS = 0.05

_TAU, _JACCARD = "stability.rank_tau", "stability.citation_jaccard"
_EDITS = "stability.claim_distance"
_MIXED, _CONVERGENT = "stability.lambda_recursive", "stability.convergent"


def _orders(run: Symptoms) -> RuleHit | None:
    places = run.where(_TAU, lambda v: v < TAU)
    if not len(places):
        return None
    return RuleHit(
        places=places,
        numbers=(run.number(_TAU, f"{TAU:.2f} at least"),),
        step="Break ties by id, pin the reranker's seed and keep the order of headers fixed, so "
        "that the same hits stand in the same order.",
    )


def _flips(run: Symptoms) -> RuleHit | None:
    rate = run.value(_MIXED)
    places = run.where(_MIXED, lambda v: v > 0, worst="high")
    if rate is None or rate <= FLIPS or not len(places):
        return None
    tau = run.value(_TAU)
    step = "Mend retrieval first: wordings of one question retrieve different text."
    if tau is not None and tau >= TAU:
        step = "Fix the prompt: the hits agree, the answers do not. Keep system text, task, "
        step += "constraints, citations and answer in one order, and pin the seed."
    return RuleHit(
        places=places,
        numbers=(
            run.number(_MIXED, f"some slots hit and some do not; {FLIPS:.2f} at most"),
            run.number(_CONVERGENT, "canary: 0.95 at least"),
            run.number(_TAU, f"from {TAU:.2f} on retrieval is steady"),
        ),
        step=step,
    )


def _citing(run: Symptoms) -> RuleHit | None:
    places = run.where(_JACCARD, lambda v: v < SAME_CITATIONS)
    if not len(places):
        return None
    return RuleHit(
        places=places,
        numbers=(run.number(_JACCARD, f"{SAME_CITATIONS:.2f} at least"),),
        step="Look for near duplicates among the cited blocks: remove them from the index, and "
        "hand fewer hits to the answer.",
    )


def _saying(run: Symptoms) -> RuleHit | None:
    places = run.where(_EDITS, lambda v: v > SAME_WORDS, worst="high")
    if not len(places):
        return None
    return RuleHit(
        places=places,
        numbers=(
            run.number(_EDITS, f"{SAME_WORDS:.2f} at most"),
            run.number("stability.refusal_consistency", "0.98 at least"),
        ),
        step="Ask for the claim in a fixed schema and pin the temperature: the wording changes "
        "from slot to slot. Where λ is → all the same, only the wording does.",
    )


RULES = (
    DiagnosisRule(
        id="order-flips",
        title="Hits change places between slots",
        find=_orders,
        source="WFGY chunking eval page (order flips); reranker checklist",
        needs=(_TAU,),
    ),
    DiagnosisRule(
        id="outcome-flips",
        title="The outcome depends on wording or seed",
        find=_flips,
        source="WFGY ΔS probes (λ flips)",
        needs=(_MIXED, _CONVERGENT, _TAU),
    ),
    DiagnosisRule(
        id="citations-vary",
        title="Slots of a question cite different text",
        find=_citing,
        source="WFGY semantic stability page (CSS)",
        needs=(_JACCARD,),
    ),
    DiagnosisRule(
        id="claims-vary",
        title="Slots of a question say different things",
        find=_saying,
        source="WFGY semantic stability page (NED50, RCR)",
        needs=(_EDITS, "stability.refusal_consistency"),
    ),
)
