"""Cost: the tokens and the money that a run took, as the traces record them."""

from __future__ import annotations

from functools import partial

from ragauge.metrics.metric import Example, Metric
from ragauge.metrics.populations import WITH_COST, WITH_TOKENS

_GOLD = {"qid": "A1", "question": "What domain?", "relevant": ["pB#1"]}
_TRACES = [
    {"qid": "A1", "seed": 1, "topk": ["pB#1"], "tokens": 900, "cost": 0.003},
    {"qid": "A1", "seed": 2, "topk": ["pB#1"], "tokens": 1500, "cost": 0.005},
]
_tokens = partial(
    Metric,
    binary=False,
    range=(0.0, 1e12),
    unit=1000,
    over=WITH_TOKENS,
    better="lower",
    source="own",
    value=lambda batch, k: batch.single("tokens"),
)
_money = partial(
    Metric,
    binary=False,
    range=(0.0, 1e7),
    unit=10**8,
    over=WITH_COST,
    better="lower",
    source="own",
    value=lambda batch, k: batch.single("cost"),
)

METRICS = (
    _tokens(
        id="cost.tokens",
        title="Tokens of a trace",
        formula="`tokens` of the trace, or the total of its `usage`",
        elsewhere="What is recorded is taken as it is: some count the tokens of the embedder and "
        "of a judge, some do not.",
        example=Example(_GOLD, _TRACES, 1200.0, "two slots of one question: (900 + 1500) / 2."),
    ),
    _tokens(
        id="cost.tokens_total",
        title="Tokens of the run",
        formula="`tokens` of all scored traces, added up",
        sums=True,
        example=Example(_GOLD, _TRACES, 2400.0, "900 + 1500."),
    ),
    _money(
        id="cost.mean",
        title="Cost of a trace",
        formula="`cost` of the trace, in the currency of whoever recorded it",
        example=Example(_GOLD, _TRACES, 0.004, "two slots of one question: (0.003 + 0.005) / 2."),
    ),
    _money(
        id="cost.total",
        title="Cost of the run",
        formula="`cost` of all scored traces, added up",
        sums=True,
        example=Example(_GOLD, _TRACES, 0.008, "0.003 + 0.005."),
    ),
)
