"""What a notebook shows of a result: the verdict, the gates, and the questions to look at.

A fragment of HTML with its own style in each element: a notebook shows it inside a page of its own,
and takes scripts and style sheets away. Everything in it is escaped, as in the pages.
"""

from __future__ import annotations

from typing import Any

from ragauge.model import phrases
from ragauge.model.comparison import ComparisonView, QueryComparison
from ragauge.model.scores import Scores
from ragauge.model.verdict import Verdict
from ragauge.report.ci import entries
from ragauge.report.comparison import sentences
from ragauge.report.html.markup import environment, label_tone

MOST_METRICS = 10
MOST_QUESTIONS = 8
MOST_WARNINGS = 5


def score_summary(scores: Scores, verdict: Verdict) -> str:
    """Scores in a notebook: verdict, gates, metrics without a gate, the worst questions."""
    gated = {result.gate.metric for result in verdict.gates}
    metrics = {
        name: result
        for name, result in phrases.listed_metrics(scores, verdict).items()
        if name not in gated
    }
    attention = phrases.questions_needing_attention(scores)
    return _rendered(
        "notebook_scores.html",
        headline=phrases.verdict_headline(verdict),
        status=verdict.status if verdict.gates or verdict.blocks else None,
        scores=scores,
        verdict=verdict,
        metrics=dict(list(metrics.items())[:MOST_METRICS]),
        more_metrics=max(0, len(metrics) - MOST_METRICS),
        questions=attention[:MOST_QUESTIONS],
        attention=len(attention),
        warnings=scores.warnings[:MOST_WARNINGS],
        more_warnings=max(0, len(scores.warnings) - MOST_WARNINGS),
        label_tone=label_tone,
    )


def comparison_summary(view: ComparisonView) -> str:
    """A comparison in a notebook: verdict, metrics, the questions that became worse."""
    comparison = view.comparison
    worse = sorted(filter(_is_worse, comparison.per_query), key=_badness)
    deltas = sentences.shown_deltas(comparison.deltas)
    deltas.sort(key=lambda delta: (not delta.gated, not delta.is_changed))
    return _rendered(
        "notebook_comparison.html",
        headline=sentences.headline(comparison),
        status=view.status,
        decision=entries.decision(view) if view.fail_on else None,
        comparison=comparison,
        verdict=comparison.verdict,
        deltas=deltas[:MOST_METRICS],
        more_deltas=max(0, len(deltas) - MOST_METRICS),
        questions=worse[:MOST_QUESTIONS],
        worse=len(worse),
        sentences=sentences,
    )


def _is_worse(query: QueryComparison) -> bool:
    kinds = (query.kind, None if query.answer is None else query.answer.kind)
    return any(kind not in (None, "win", "draw") for kind in kinds)


def _badness(query: QueryComparison) -> tuple[bool, bool]:
    answer = None if query.answer is None else query.answer.kind
    return query.kind != "regression", answer != "regression"


def _rendered(template: str, **context: Any) -> str:
    return environment().get_template(template).render(**context)
