"""Tasks: what is to be done on the ranges of a file, as values that travel to a worker.

An engine needs no more than a `RangeTask` and ranges to do anything, wherever its workers are. The
work that only reads columns is here; other kinds of work are in modules of their own.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar, Generic, TypeVar

from msgspec import Struct

from ragauge.files.ranges import Range
from ragauge.scoring.tasks.job import Job, NamedHits, Partial
from ragauge.scoring.tasks.reduce import RangeReducer

Result = TypeVar("Result")


class Work(Struct, Generic[Result], frozen=True, tag=True):
    """What is done on each range; `result` is the type of what comes back."""

    result: ClassVar[Any]

    def begin(self, worker: Worker) -> Callable[[Range], Result]:
        """Get ready in a worker; what is returned is called with one range after another."""
        raise NotImplementedError


class RangeTask(Struct, Generic[Result], frozen=True):
    """Work on the ranges of a file, and the job that says how its rows are read.

    The two travel apart: a job has the whole gold set, and several tasks share one.
    """

    work: Work[Result]
    job: Job | None = None


class Worker:
    """Does tasks in the process that it is in; the reducer of a job serves later tasks too."""

    def __init__(self) -> None:
        self._job: Job | None = None
        self._reducer: RangeReducer | None = None

    def take(self, job: Job) -> None:
        """Take a job, which all work from now on belongs to."""
        if job is not self._job:
            self._job, self._reducer = job, None

    @property
    def job(self) -> Job:
        """The job at hand."""
        if self._job is None:
            raise ValueError("this work needs a job")
        return self._job

    def reducer(self) -> RangeReducer:
        """The reducer of the job at hand."""
        if self._reducer is None:
            self._reducer = RangeReducer(self.job)
        return self._reducer

    def new_reducer(self) -> RangeReducer:
        """A reducer of the job that has not met any question yet."""
        self._reducer = None
        return self.reducer()


class Reduce(Work[Partial], frozen=True):
    """Rows to columns. Ranges must come from the last to the first: the last trace counts."""

    result = Partial

    def begin(self, worker: Worker) -> Callable[[Range], Partial]:
        """Reduce with a reducer of its own."""
        return worker.new_reducer().reduce


class FindIds(Work[list[str]], frozen=True):
    """Which of some ids are among the hits of the rows of a range."""

    result = list[str]
    ids: frozenset[str]

    def begin(self, worker: Worker) -> Callable[[Range], list[str]]:
        """Scan with the reducer that is there."""
        reducer = worker.reducer()
        return lambda part: sorted(reducer.scan(part, self.ids))


class NameHits(Work[NamedHits], frozen=True):
    """What the hits and citations of the rows of a range are known by."""

    result = NamedHits
    names: frozenset[str]

    def begin(self, worker: Worker) -> Callable[[Range], NamedHits]:
        """Read with the reducer that is there."""
        reducer = worker.reducer()
        return lambda part: reducer.name_hits(part, self.names)
