"""What may be wrong with answers: what they say, and when they refuse."""

from __future__ import annotations

from ragauge.diagnose.rules import DiagnosisRule, RuleHit, Symptoms

PRECISION, CITED, UNDER, OVER = 0.80, 0.75, 0.05, 0.10
"""The ship gates."""

_SAID = (None, "retrieved-not-cited", "out-of-scope-citation", "cited-wrong-offsets")
"""Causes that are not of retrieval: the evidence was there."""

_PRECISION, _CITED = "answer.grounded_precision", "citation.hit_rate"


def _claims(run: Symptoms) -> RuleHit | None:
    places = run.caused("claim-missing")
    if not len(places):
        return None
    return RuleHit(
        places=places,
        numbers=(
            run.number(_PRECISION, f"ship: {PRECISION:.2f} at least"),
            run.number(_CITED, "high while precision is low: the evidence is cited"),
        ),
        step="Read claim and gold side by side. A right claim in other words needs another "
        "substring in the gold item; a wrong one needs a schema that asks for the fact itself.",
    )


def _ungrounded(run: Symptoms) -> RuleHit | None:
    precision, cited = run.value(_PRECISION), run.value(_CITED)
    if precision is None or cited is None or precision >= PRECISION or cited >= CITED:
        return None
    wrong = run.labelled("ANS_NO_HIT", "OUT_OF_SCOPE")
    causes = run.scores.questions.causes
    places = wrong[[causes[place] in _SAID for place in wrong.tolist()]]
    if not len(places):
        return None
    return RuleHit(
        places=places,
        numbers=(
            run.number(_PRECISION, f"below {PRECISION:.2f}"),
            run.number(_CITED, f"below {CITED:.2f} too: grounding, not wording"),
        ),
        step="Answer from evidence only: a template that knows nothing else, and candidates that "
        "both retrievers agree on.",
    )


def _hallucinated(run: Symptoms) -> RuleHit | None:
    places = run.labelled("HALLUCINATION")
    if not len(places):
        return None
    return RuleHit(
        places=places,
        numbers=(run.number("refusal.under", f"ship and smoke: {UNDER:.2f} at most"),),
        step="Read these answers against the corpus. If it does hold the answer, the gold item is "
        "wrong; if not, make the refusal the rule wherever no cited text says it.",
    )


def _refused(run: Symptoms) -> RuleHit | None:
    places = run.labelled("OVER_REFUSAL")
    if not len(places):
        return None
    causes = run.scores.questions.causes
    with_evidence = places[[causes[place] == "retrieved-not-cited" for place in places.tolist()]]
    step = "Loosen the template: most of these had the evidence in front of them and refused."
    if 2 * len(with_evidence) < len(places):
        step = "Retrieve more before ranking: most of these refused because the evidence was not "
        step += "among the first five hits."
    return RuleHit(
        places=places,
        numbers=(
            run.count("refused with evidence in top 5", with_evidence),
            run.number("refusal.over", f"ship: {OVER:.2f} at most; smoke: 0.25"),
        ),
        step=step,
    )


RULES = (
    DiagnosisRule(
        id="claims-miss",
        title="Answers cite the evidence, and say something else",
        find=_claims,
        source="WFGY eval page (precision low, CHR high)",
        needs=(_PRECISION, _CITED),
    ),
    DiagnosisRule(
        id="grounding-broken",
        title="Answers do not rest on the evidence",
        find=_ungrounded,
        source="WFGY eval page (precision low, CHR low)",
        needs=(_PRECISION, _CITED),
    ),
    DiagnosisRule(
        id="under-refusal",
        title="Questions without an answer are answered",
        find=_hallucinated,
        source="WFGY eval page (under-refusal high)",
        needs=("refusal.under",),
    ),
    DiagnosisRule(
        id="over-refusal",
        title="Questions with an answer are refused",
        find=_refused,
        source="WFGY eval page and example 08 (over-refusal high)",
        needs=("refusal.over",),
    ),
)
