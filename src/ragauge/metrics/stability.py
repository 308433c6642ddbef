"""Stability: does a question get the same treatment under other words and seeds."""

from __future__ import annotations

from functools import partial

import numpy as np

from ragauge.metrics import populations
from ragauge.metrics.columns import Bools, Floats
from ragauge.metrics.facts import LAMBDA_STATES
from ragauge.metrics.metric import Example, Metric
from ragauge.metrics.questions import Questions

_GOLD = {"qid": "A1", "question": "What is SCU?", "relevant": ["p1#2"]}
_SLOTS = [
    {"qid": "A1", "seed": 1, "topk": ["p1#2", "p3#1"],
     "answer_json": {"claim": "A unlock.", "citations": ["p1#2"]}},
    {"qid": "A1", "seed": 2, "topk": ["p3#1", "p1#2"],
     "answer_json": {"claim": "An unlock.", "citations": ["p1#2", "p3#1"]}},
]  # fmt: skip
_example = partial(Example, _GOLD, _SLOTS)
# → is `stability.convergent`. Ids are in letters, so that every one can be typed on a keyboard;
# those with signs are in `model.metric_names`.
_MEANINGS = {
    "←": ("divergent", "no slot hits, and every slot refuses or cites nothing"),
    "<>": ("recursive", "some slots hit and some do not (to be refused: some refuse)"),
    "×": ("chaotic", "no slot hits otherwise (to be refused: none refuses)"),
}
_RECIPE = (
    "λ is computed from ids, over the slots (paraphrase × seed) of a question. A hit is a cited "
    "piece of evidence; where no trace of the run has an answer, evidence among the first five hits"
)


def _is(state: str, questions: Questions) -> Bools:
    held: Bools = questions.state == LAMBDA_STATES.index(state)
    return held


def _consistency(questions: Questions) -> Floats:
    refused, spoken = questions.refused, questions.spoken
    share: Floats = np.maximum(refused, spoken - refused) / np.maximum(1, spoken)
    return share


def _state_metric(state: str) -> Metric:
    word, meaning = _MEANINGS[state]
    return Metric(
        id=f"stability.lambda_{word}",
        version=3,
        title=f"Questions whose λ is {state} ({word})",
        formula=f"1 if λ is {state}: {meaning}, else 0",
        over=populations.WITH_LAMBDA,
        better="lower",
        source="own, after the WFGY λ pages",
        of_question=lambda q: _is(state, q),
        example=_example(0.0, "both slots are answered and cite p1#2: λ is →."),
    )


METRICS = (
    Metric(
        id="stability.convergent",
        version=3,
        title="Questions that every slot answers with a hit",
        formula="1 if λ of the question is →: every slot is answered and hits (to be refused: "
        "every slot refuses), else 0",
        over=populations.WITH_LAMBDA,
        better="higher",
        source="WFGY chunking eval page (λ convergent)",
        of_question=lambda q: _is("→", q),
        elsewhere=f"{_RECIPE}. The sources record λ as a label of unknown origin: that is kept "
        "beside it, see stability.lambda_disagreement.",
        example=_example(1.0, "both slots are answered and cite p1#2: λ is →, 1."),
    ),
    *map(_state_metric, _MEANINGS),
    Metric(
        id="stability.flip_rate",
        version=3,
        title="Questions that are not convergent",
        formula="1 if λ of the question is not →, else 0",
        over=populations.WITH_LAMBDA,
        better="lower",
        source="WFGY live monitoring page (flip rate)",
        of_question=lambda q: ~_is("→", q),
        example=_example(0.0, "λ is →: 0."),
    ),
    Metric(
        id="stability.lambda_disagreement",
        version=3,
        title="Questions whose recorded λ is not the computed one",
        formula="1 if the recorded state (<> where slots record different ones) differs from the "
        "computed λ, else 0",
        over=populations.WITH_RECORDED_LAMBDA,
        better="lower",
        source="own",
        of_question=lambda q: q.recorded != q.state,
        example=Example(
            _GOLD, [{**row, "λ_state": "<>"} for row in _SLOTS], 1.0, "recorded <>, computed →: 1."
        ),
    ),
    Metric(
        id="stability.citation_jaccard",
        reads_slots=True,
        version=2,
        binary=False,
        title="What all slots cite, over what any slot cites",
        formula="what the citations of all slots share / what any of them has; null if none cites",
        over=populations.SLOTS_CITING,
        better="higher",
        source="WFGY semantic stability page (CSS)",
        of_question=lambda q: q.citation_jaccard,
        elsewhere="The page counts 1 where nobody cites; here that is undefined.",
        example=_example(0.5, "{p1#2} in both, {p1#2, p3#1} in either: 1 / 2."),
    ),
    Metric(
        id="stability.refusal_consistency",
        version=2,
        binary=False,
        title="Slots that agree on refusing or not",
        formula="the larger share of refusals or answers among the slots that have either",
        over=populations.SLOTS_SPOKEN,
        better="higher",
        source="WFGY semantic stability page (RCR)",
        of_question=_consistency,
        elsewhere="It speaks of agreement, not of being right: all slots may be wrong together.",
        example=_example(1.0, "no slot refuses: 2 / 2."),
    ),
    Metric(
        id="stability.claim_distance",
        reads_slots=True,
        reads_claims=True,
        version=2,
        binary=False,
        title="How much the wording of the answers differs",
        formula="the median over pairs of answered slots of Levenshtein distance / longer length",
        over=populations.SLOTS_ANSWERED,
        better="lower",
        source="WFGY semantic stability page (NED50)",
        of_question=lambda q: q.claim_distance,
        example=_example(
            0.1, "`A unlock.` and `An unlock.` differ by one of 10 characters: 1 / 10."
        ),
    ),
    Metric(
        id="stability.rank_tau",
        reads_slots=True,
        binary=False,
        range=(-1.0, 1.0),
        title="How alike the order of the hits is",
        formula="the mean over pairs of slots of Kendall's tau-b on the ids that both have among "
        "their first ten; pairs with fewer than two are left out",
        over=populations.SLOTS_RANKED,
        better="higher",
        source="WFGY live monitoring page (Kendall tau)",
        of_question=lambda q: q.rank_tau,
        example=_example(-1.0, "p1#2 and p3#1 stand in opposite order: -1."),
    ),
)
