"""Reloading: stored runs are read back and scored again, side by side where there are workers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack

from ragauge.model.run import RunRecord, Store
from ragauge.model.scores import Scores
from ragauge.scoring.gold_table import GoldTable
from ragauge.scoring.inputs import Engine, side_engines
from ragauge.scoring.score import score_stored
from ragauge.scoring.scoring_run import ScoringPlan
from ragauge.store.runs import StoredTraces, begin_loading


class Reloading:
    """Runs that may have to be scored again; nothing is read before it has begun."""

    def __init__(
        self, stack: ExitStack, runs: Sequence[tuple[Store, RunRecord]], workers: int | None
    ) -> None:
        self.stack = stack
        self.runs = runs
        self.workers = workers
        self.engines: Sequence[Engine] = ()
        self.waiting: list[Callable[[], StoredTraces]] = []

    def begin(self) -> None:
        """Begin to read all runs, if that was not done yet; the caller may go on meanwhile."""
        if self.engines:
            return
        # Threads that wait for workers end when these do: so they are entered first, and left last.
        self.threads = self.stack.enter_context(ThreadPoolExecutor(len(self.runs)))
        results = [run.results for _, run in self.runs]
        self.engines = side_engines(self.stack, results, self.workers)
        self.waiting = [
            begin_loading(self.stack, store, run, engine)
            for (store, run), engine in zip(self.runs, self.engines, strict=True)
        ]

    def score(self, place: int, table: GoldTable, plan: ScoringPlan) -> Callable[[], Scores]:
        """Begin to score one of the runs again; what is returned waits for it."""
        self.begin()
        return self.threads.submit(self._score, place, table, plan).result

    def _score(self, place: int, table: GoldTable, plan: ScoringPlan) -> Scores:
        source, given = self.waiting[place]()
        return score_stored(table, source, plan, given=given, engine=self.engines[place])
