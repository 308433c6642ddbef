"""The run itself: what is missing, carries an error, stands twice, or belongs to nothing."""

from __future__ import annotations

from ragauge.metrics.metric import Example, Metric
from ragauge.metrics.populations import ALL, SHOWS_MISSING

_GOLD = {"qid": "A1", "question": "What domain?", "answerable": True, "gold_citations": ["pB#1"]}

METRICS = (
    Metric(
        id="run.missing",
        title="Gold items without a trace",
        formula="1 if the item has no trace, else 0",
        over=SHOWS_MISSING,
        better="lower",
        source="own",
        value=lambda b, k: b.traceless,
        example=Example(
            gold=_GOLD,
            trace={"qid": "A1", "retrieved_ids": []},
            value=0.0,
            arithmetic="there is a trace, though an empty one: 0.",
        ),
    ),
    Metric(
        id="run.errored",
        title="Traces that carry an error",
        formula="1 if the trace has an error, else 0",
        over=ALL,
        better="lower",
        source="own",
        value=lambda b, k: b.with_error,
        example=Example(
            gold=_GOLD,
            trace={"qid": "A1", "error": "timeout after 30 s"},
            value=1.0,
            arithmetic="the field `error` is not empty: 1.",
        ),
    ),
    Metric(
        id="run.duplicate",
        title="Traces that a later trace of the same slot replaced",
        formula="replaced traces / traces read",
        over=ALL,
        better="lower",
        source="own",
        share=lambda tally: (tally.duplicates, tally.traces),
        example=Example(
            gold=_GOLD,
            trace={"qid": "A1", "retrieved_ids": []},
            value=0.0,
            arithmetic="one trace was read, none was replaced: 0 / 1.",
        ),
    ),
    Metric(
        id="run.unknown",
        title="Traces that belong to no gold item",
        formula="traces with an unknown id / traces read",
        over=ALL,
        better="lower",
        source="own",
        share=lambda tally: (tally.unknown, tally.traces),
        example=Example(
            gold=_GOLD,
            trace={"qid": "B7", "retrieved_ids": []},
            value=1.0,
            arithmetic="the only trace read names B7, which the gold set does not have: 1 / 1.",
        ),
    ),
)
