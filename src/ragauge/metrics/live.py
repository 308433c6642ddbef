"""Live traffic: what traces show without gold, over every trace and not over questions.

In production one question may come a thousand times. A share or a percentile here is one of traces:
what a user meets. Only what compares the repeats of a question is over questions.
"""

from __future__ import annotations

from functools import partial

import numpy as np

from ragauge.metrics.batch import Batch
from ragauge.metrics.columns import Bools, Floats
from ragauge.metrics.metric import Example, Metric, answer_row
from ragauge.metrics.populations import (
    LIVE_ALL,
    LIVE_ANSWERED,
    LIVE_CITED,
    LIVE_KNOWN,
    LIVE_RANKED,
    LIVE_REPEATED,
    LIVE_SEARCHED,
    LIVE_TIMED,
    LIVE_TRACED,
    LIVE_WITH_ANSWER,
)
from ragauge.metrics.questions import Questions

_DEPTH = 5
_MICRO = 1000  # steps in a millisecond that sums are exact to
_YEAR = 366 * 24 * 3600 * 1000.0
_QUESTION = {"qid": "L1", "question": "Where is the switch?"}
_source = "WFGY live monitoring page"


def _delta_s(batch: Batch, k: int) -> Floats:  # noqa: ARG001
    """ΔS of the cited snippet; of the first hits where no citation has one."""
    hits = np.where(
        batch.listed_in("delta_s", _DEPTH), batch.quantile_of("delta_s", 0.5, _DEPTH), np.nan
    )
    return np.where(batch.listed_in("delta_s_cited"), batch.single("delta_s_cited"), hits)


def _flips(questions: Questions) -> Bools:
    mixed = (questions.silent > 0) & (questions.silent < questions.slots)
    refuses = (questions.refused > 0) & (questions.refused < questions.slots)
    held: Bools = mixed | refuses | (questions.citation_jaccard == 0)
    return held


def _validity(batch: Batch, k: int) -> Bools:  # noqa: ARG001
    held: Bools = batch.in_context & ~batch.listed_in("unknown_cited")
    return held


def _unknown_share(batch: Batch, k: int) -> Floats:  # noqa: ARG001
    share: Floats = batch.single("unknown_hits") / np.maximum(1, batch.hit_count)
    return share


_of_traffic = partial(Metric, better="lower", source=_source, only_named=True)
_latency = partial(
    _of_traffic,
    binary=False,
    of_records=True,
    range=(0.0, _YEAR),
    unit=_MICRO,
    over=LIVE_TIMED,
    value=lambda batch, k: batch.single("total_ms"),
    example=Example(
        _QUESTION,
        [
            {**_QUESTION, "seed": 1, "hits": ["a#1"], "latency_ms": 300},
            {**_QUESTION, "seed": 2, "hits": ["a#1"], "latency_ms": 300},
        ],
        300.0,
        "one question, two traces of 300 ms: every percentile is 300.",
    ),
)
_distance = partial(
    _of_traffic,
    binary=False,
    of_records=True,
    range=(0.0, 2.0),
    over=LIVE_TRACED,
    undefined="no-delta-s",
    value=_delta_s,
    elsewhere="ΔS is 1 - cos, as traces record it. Its bands belong to one embedder.",
    example=Example(
        _QUESTION,
        {
            **_QUESTION,
            "topk": ["a#1", "a#2"],
            "ΔS": [0.2, 0.5],
            "answer_json": {"claim": "In the hall.", "citations": ["a#2"]},
        },
        0.5,
        "the cited hit is the second one: 0.5.",
    ),
)
_SLOTS = [
    {**_QUESTION, "seed": 1, "topk": ["a#1", "a#2"],
     "answer_json": {"claim": "In the hall.", "citations": ["a#1"]}},
    {**_QUESTION, "seed": 2, "topk": ["a#2", "a#1"],
     "answer_json": {"claim": "In the hall.", "citations": ["a#2"]}},
]  # fmt: skip

METRICS = (
    _of_traffic(
        id="live.coverage",
        title="Answers with citations that can be true",
        formula="1 if C is not empty, C ⊆ hits and no cited id is in `unknown_ids`, else 0",
        over=LIVE_ANSWERED,
        better="higher",
        value=lambda batch, k: batch.cited & _validity(batch, k),
        elsewhere="Coverage without gold: an answer that cites nothing counts as 0, so a system "
        "that stops citing is seen. Questions that match gold have answer.coverage beside it.",
        example=Example(
            _QUESTION,
            answer_row("In the hall.", [], qid="L1", retrieved_ids=["a#1", "a#2"]),
            0.0,
            "answered, and nothing is cited: 0.",
        ),
    ),
    _of_traffic(
        id="live.citation_validity",
        title="Citing answers whose citations can be true",
        formula="1 if C ⊆ hits and no cited id is in `unknown_ids`, else 0",
        over=LIVE_CITED,
        better="higher",
        value=_validity,
        elsewhere="Citation accuracy without gold: an answer that cites what was retrieved may "
        "still be wrong. Answers without a citation are not in it; live.coverage has them.",
        example=Example(
            _QUESTION,
            answer_row("In the hall.", ["a#1", "a#7"], qid="L1", retrieved_ids=["a#1", "a#2"]),
            0.0,
            "a#7 is cited and was not retrieved: 0.",
        ),
    ),
    _of_traffic(
        id="live.empty",
        title="Searches that found nothing",
        formula="1 if there is no hit, else 0",
        over=LIVE_SEARCHED,
        value=lambda b, k: b.hit_count == 0,
        example=Example(_QUESTION, {**_QUESTION, "hits": []}, 1.0, "no hit: 1."),
    ),
    _of_traffic(
        id="live.refusal",
        title="Answers that refuse",
        formula="1 if the answer is a refusal, else 0",
        over=LIVE_WITH_ANSWER,
        value=lambda b, k: b.refused,
        example=Example(
            _QUESTION,
            answer_row("not in context", [], qid="L1", retrieved_ids=["a#1"]),
            1.0,
            "the claim is the refusal token: 1.",
        ),
    ),
    _of_traffic(
        id="live.error",
        title="Traces that carry an error",
        formula="1 if the trace has an error, else 0",
        over=LIVE_ALL,
        value=lambda b, k: b.with_error,
        example=Example(_QUESTION, {**_QUESTION, "error": "timeout"}, 1.0, "an error: 1."),
    ),
    _latency(
        id="live.latency_p50",
        quantile="median",
        title="Time of a trace, median",
        formula="`latency_ms`, `elapsed_ms`, or retrieve and reason together, in milliseconds; the "
        "median over traces",
    ),
    _latency(
        id="live.latency_p95",
        quantile="p95",
        title="Time of a trace, 95th percentile",
        formula="`latency_ms`, `elapsed_ms`, or retrieve and reason together, in milliseconds; the "
        "95th percentile over traces, interpolated linearly",
    ),
    _distance(
        id="live.delta_s_median",
        quantile="median",
        title="Distance of what is used from the question, median",
        formula="ΔS(question, cited snippet) of the first citation that has one, else the median "
        "of the first five hits; the median over traces",
    ),
    _distance(
        id="live.delta_s_p90",
        quantile="p90",
        title="Distance of what is used from the question, 90th percentile",
        formula="ΔS(question, cited snippet) of the first citation that has one, else the median "
        "of the first five hits; the 90th percentile over traces, interpolated linearly",
    ),
    _of_traffic(
        id="live.lambda_flip",
        reads_slots=True,
        title="Repeated questions that are treated differently",
        formula="1 if some traces of the question refuse, fail or cite nothing (where nothing is "
        "answered: find nothing) and others do not, or if no id is cited by all, else 0",
        over=LIVE_REPEATED,
        of_question=_flips,
        elsewhere="λ without gold: whether the repeats agree, not whether they are right. "
        "Repeats of questions that match gold have stability.flip_rate.",
        example=Example(
            _QUESTION, _SLOTS, 1.0, "{a#1} and {a#2} are cited: no id is cited by both, 1."
        ),
    ),
    _of_traffic(
        id="live.kendall_tau",
        reads_slots=True,
        binary=False,
        better="higher",
        range=(-1.0, 1.0),
        title="How alike the order of the hits of repeats is",
        formula="the mean over pairs of traces of a question of Kendall's tau-b on the ids that "
        "both have among their first ten; pairs with fewer than two are left out",
        over=LIVE_RANKED,
        of_question=lambda q: q.rank_tau,
        example=Example(_QUESTION, _SLOTS, -1.0, "a#1 and a#2 stand in opposite order: -1."),
    ),
    _of_traffic(
        id="live.unknown_ids",
        binary=False,
        title="Share of the hits that the corpus does not have",
        formula="hits whose id is in `unknown_ids` / hits; only of traces that say what is unknown",
        over=LIVE_KNOWN,
        value=_unknown_share,
        example=Example(
            _QUESTION,
            {**_QUESTION, "hits": ["a#1", "a#2", "x#1", "x#2"], "unknown_ids": ["x#1"]},
            0.25,
            "1 of 4 hits is unknown: 1 / 4.",
        ),
    ),
)
