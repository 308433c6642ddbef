"""The run itself: what is missing, carries an error, stands twice, or belongs to nothing."""

from __future__ import annotations

from functools import partial

from ragauge.metrics.metric import Example, Metric
from ragauge.metrics.populations import ALL, SHOWS_MISSING

_GOLD = {"qid": "A1", "question": "What domain?", "answerable": True, "gold_citations": ["pB#1"]}
_run_fault = partial(Metric, better="lower", source="own")

METRICS = (
    _run_fault(
        id="run.missing",
        title="Gold items without a trace",
        formula="1 if the item has no trace, else 0",
        over=SHOWS_MISSING,
        value=lambda b, k: b.traceless,
        example=Example(
            _GOLD,
            {"qid": "A1", "retrieved_ids": []},
            0.0,
            "there is a trace, though an empty one: 0.",
        ),
    ),
    _run_fault(
        id="run.errored",
        title="Traces that carry an error",
        formula="1 if the trace has an error, else 0",
        over=ALL,
        value=lambda b, k: b.with_error,
        example=Example(
            _GOLD,
            {"qid": "A1", "error": "timeout after 30 s"},
            1.0,
            "the field `error` is not empty: 1.",
        ),
    ),
    _run_fault(
        id="run.duplicate",
        title="Traces that a later trace of the same slot replaced",
        formula="replaced traces / traces read",
        over=ALL,
        share=lambda tally: (tally.duplicates, tally.traces),
        example=Example(
            _GOLD,
            {"qid": "A1", "retrieved_ids": []},
            0.0,
            "one trace was read, none was replaced: 0 / 1.",
        ),
    ),
    _run_fault(
        id="run.unknown",
        title="Traces that belong to no gold item",
        formula="traces with an unknown id / traces read",
        over=ALL,
        share=lambda tally: (tally.unknown, tally.traces),
        example=Example(
            _GOLD,
            {"qid": "B7", "retrieved_ids": []},
            1.0,
            "the only trace read names B7, which the gold set does not have: 1 / 1.",
        ),
    ),
)
