"""Reloading: stored runs are read back and scored again, one after the other."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import ExitStack

from ragauge.archive import StoredTraces, begin_loading
from ragauge.goldtable import GoldTable
from ragauge.inputs import Engine, stored_engine
from ragauge.model.aggregate import Scores
from ragauge.model.run import RunRecord, Store
from ragauge.pipeline import score_stored
from ragauge.scoring import ScoringPlan


class Reloading:
    """Runs that may have to be scored again; nothing is read before it has begun."""

    def __init__(
        self, stack: ExitStack, runs: Sequence[tuple[Store, RunRecord]], workers: int | None
    ) -> None:
        self.stack = stack
        self.runs = runs
        self.workers = workers
        self.engine: Engine | None = None
        self.waiting: list[Callable[[], StoredTraces]] = []

    def begin(self) -> Engine:
        """Begin to read all runs, if that was not done yet; the caller may go on meanwhile."""
        if self.engine is None:
            results = max(run.results for _, run in self.runs)
            self.engine = stored_engine(self.stack, results, self.workers)
            self.waiting = [
                begin_loading(self.stack, store, run, self.engine) for store, run in self.runs
            ]
        return self.engine

    def score(self, place: int, table: GoldTable, plan: ScoringPlan) -> Scores:
        """Score one of the runs again."""
        engine = self.begin()
        source, given = self.waiting[place]()
        return score_stored(table, source, plan, given=given, engine=engine)
