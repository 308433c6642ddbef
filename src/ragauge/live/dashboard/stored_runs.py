"""Runs and comparisons of the store as pages: those that `ragauge view` writes.

Runs have no tenant, so that only callers of the tenant `''`, who share the store with its owner,
see them.
"""

from __future__ import annotations

from contextlib import ExitStack
from typing import cast

from ragauge import registry
from ragauge.compare import align, compare
from ragauge.compare.common_gold import StoredRun
from ragauge.gates.judge import judge
from ragauge.gates.parse import profile_gates
from ragauge.live.database import LiveDatabase
from ragauge.model.comparison import ComparisonView
from ragauge.model.report import View
from ragauge.model.run import RunRecord, Store
from ragauge.report.drilldown.questions import details_of_comparison, details_of_run
from ragauge.report.html.comparison_page import comparison_page
from ragauge.report.html.run_page import run_page
from ragauge.store import runs as run_store

MOST_LISTED = 200


def _store(database: LiveDatabase) -> Store:
    """The same connection as a store of runs."""
    return cast(Store, database)


def list_runs(database: LiveDatabase) -> list[RunRecord]:
    """The last runs, the newest first."""
    return _store(database).runs()[: -MOST_LISTED - 1 : -1]


def page_of_run(database: LiveDatabase, run_id: str) -> str:
    """The page of a stored run, judged by the gates of its profile that need no baseline."""
    store = _store(database)
    run = run_store.find_run(store, run_id)
    scores = run_store.run_scores(store, run)
    profile = registry.profile(scores.profile)
    gates = [gate for gate in profile_gates(profile, scores.k) if not gate.is_drop]
    verdict = judge(
        scores,
        gates,
        source_rules=profile.follows_source,
        whole_grid=profile.join.grid == "complete",
    )
    with ExitStack() as stack:
        details = stack.enter_context(details_of_run(store, run, scores, None))
        view = View(scores=scores, verdict=verdict, profile=profile, full=True, details=details)
        return run_page(view)


def page_of_comparison(database: LiveDatabase, before: str, after: str) -> str:
    """The page of two stored runs side by side."""
    store = _store(database)
    a, b = (StoredRun(store, run_store.find_run(store, name)) for name in (before, after))
    aligned = align.align(a, b, detailed=True, workers=1)
    (one, before_facts), (two, after_facts) = compare.describe_run(a), compare.describe_run(b)
    comparison = compare.compare(aligned, one, two, config=(before_facts, after_facts))
    with ExitStack() as stack:
        details = None
        if aligned.compared_gold:
            opened = details_of_comparison(a, b, aligned, comparison, None)
            details = stack.enter_context(opened)
        return comparison_page(ComparisonView(comparison=comparison, full=True, details=details))
