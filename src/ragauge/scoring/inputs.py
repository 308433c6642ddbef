"""What is scored, as it is read: gold as a table, traces from a file or from memory.

Inputs know the job that they are read for, and nothing of the run that takes their results.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import count

from msgspec import Struct
from msgspec.structs import replace

from ragauge.errors import RagaugeError
from ragauge.files.open import PathLike
from ragauge.files.ranges import Range, Source, plan, read_rows
from ragauge.formats.detect import FormatChoice
from ragauge.formats.gold import Locate
from ragauge.formats.load import name_of, read_gold, read_traces, values_of
from ragauge.formats.loaded_rows import LoadedRows
from ragauge.formats.rows_in_memory import Rows
from ragauge.formats.trec.qrels import Qrels, read_qrels
from ragauge.model.chunk import Chunk
from ragauge.model.gold import GoldItem, GoldSet
from ragauge.model.options import Options
from ragauge.model.payloads import trace_of
from ragauge.model.scores import Scores
from ragauge.model.trace import Trace, TraceSet
from ragauge.scoring import trec
from ragauge.scoring.engines.choose import Engine
from ragauge.scoring.gold_table import GoldTable, GoldTableBuilder, gold_table
from ragauge.scoring.row_index import RecordLabels, RowIndex
from ragauge.scoring.scoring_run import InputFacts, ScoringPlan
from ragauge.scoring.tasks.job import Job, NamedHits, Partial
from ragauge.scoring.tasks.pack import RowSerialiser, SerialisedRows, SerialiseRows
from ragauge.scoring.tasks.reduce import RangeReducer, hits_of, named_hits
from ragauge.scoring.tasks.task import FindIds, NameHits, RangeTask, Reduce

Gold = PathLike | GoldSet | Iterable[GoldItem] | Rows
Traces = PathLike | TraceSet | Iterable[Trace] | Rows

_TRACES_AT_ONCE = 2048
_NO_PROBLEMS = LoadedRows([], [], 0)


class GoldInput:
    """The gold of a run, as a table. Judgements for a TREC run never become items.

    With `table_options` the rows of a file go straight into a table under these options.
    """

    def __init__(
        self,
        gold: object,
        source: Source | None,
        trace: Source | None,
        choice: FormatChoice,
        *,
        locate: Locate | None = None,
        table_options: Options | None = None,
    ) -> None:
        self.gold = gold
        self.source = source
        self.choice = choice
        self.locate = locate
        self.forgotten = False
        self.qrels: Qrels | None = None
        self._builder: GoldTableBuilder | None = None
        self._read = 0
        if _is_layout(source, "qrels") and _is_layout(trace, "run"):
            assert source is not None
            self.qrels = read_qrels(source)
            problems = [problem.at(source.name) for problem in self.qrels.problems]
            self.loaded = LoadedRows([], problems, self.qrels.problem_count)
        elif not (table_options is not None and self._stream(table_options)):
            self.loaded = read_gold(gold, source, choice, locate=locate)

    def _stream(self, options: Options) -> bool:
        """Read a file of rows straight into a table, item by item; False where that cannot be.

        Then all items are needed at once: turns belong together, and what is wrong with several
        items is said in the order of the checks.
        """
        source, profile = self.source, self.choice.profile
        if source is None or source.layout not in ("lines", "array"):
            return False
        if profile.join.by == "question":
            return False
        builder = GoldTableBuilder(profile, options, name=source.name)
        try:
            self._read_rows(lambda _, item: builder.add_as_joined(item))
            self._read = builder.finish()
            repeated = builder.repeated()
            if builder.turns or (repeated and profile.join.duplicate_gold == "error"):
                return False
            if repeated:
                # The last item with an id counts, in the place of the first. Reading the file
                # again takes less than keeping every item until all are known.
                builder = GoldTableBuilder(profile, options, name=source.name)
                self._read_last(repeated, builder)
        except RagaugeError:
            return False
        self._builder, self.forgotten = builder, True
        return True

    def _read_rows(self, take: Callable[[int, GoldItem], None]) -> None:
        """Read the rows of the file; `take` is given the items with their numbers."""
        numbers = count()
        self.loaded = read_gold(
            self.gold,
            self.source,
            self.choice,
            locate=self.locate,
            take=lambda item: take(next(numbers), item),
        )

    def _read_last(self, repeated: Mapping[int, int | None], builder: GoldTableBuilder) -> None:
        """Build a table of a file with repeated ids; they go from item to item that counts."""
        last = dict.fromkeys(repeated.values())
        counting: dict[int, GoldItem] = {}

        def note(number: int, item: GoldItem) -> None:
            if number in last:
                counting[number] = item

        def add(number: int, item: GoldItem) -> None:
            replacement = repeated.get(number, number)
            if replacement is not None:
                builder.add_as_joined(counting.get(replacement, item))

        self._read_rows(note)
        self._read_rows(add)

    def items(self) -> list[GoldItem]:
        """The gold items; judgements become items only here, where a store asks for them."""
        if self.source is not None and (self.qrels is not None or self.forgotten):
            return read_gold(self.gold, self.source, self.choice, locate=self.locate).items
        return self.loaded.items

    def forget_items(self) -> None:
        """Let go of the items of a file, once there is a table of them: they are far larger.

        Whoever asks for them after all has them read again.
        """
        if self.source is not None and not self.forgotten:
            self.loaded = replace(self.loaded, items=[])
            self.forgotten = True

    def table(self, options: Options, name: str, chunks: dict[str, Chunk]) -> GoldTable:
        """The table under some options; those that it was read for, if it was."""
        if self.qrels is not None:
            return trec.table_of(self.qrels, options)
        if self._builder is not None:
            return self._builder.table(read=self._read)
        return gold_table(self.loaded.items, self.choice.profile, options, name=name, chunks=chunks)


def _is_layout(source: Source | None, layout: str) -> bool:
    return source is not None and source.layout == layout


class TraceFile:
    """A file of traces, read by an engine in ranges.

    The rows of a `stored` file are traces as a store has them; each knows its own line.
    """

    def __init__(
        self,
        source: Source,
        engine: Engine,
        *,
        stored: bool = False,
        notes: Sequence[str] = (),
        problems: LoadedRows = _NO_PROBLEMS,
    ) -> None:
        self.source = source
        self.engine = engine
        self.stored = stored
        self.ranges = plan(source)
        if stored:
            self.ranges = [replace(part, first_line=0) for part in self.ranges]
        self.notes = [*(f"{source.name}: {note}" for note in source.notes), *notes]
        self.problems = problems

    def partials(self, job: Job) -> Iterator[Partial]:
        """The partials of all ranges, from the last range to the first (decision 0004)."""
        return self.engine.map(RangeTask(Reduce(), job), self.ranges[::-1])

    def rows(self, job: Job, index: int) -> Iterator[tuple[int, Trace | bytes]]:
        """The rows of a range from the last to the first, each with its line in the range."""
        rows = read_rows(job.source, self.ranges[index])
        for place in reversed(range(len(rows.data))):
            if self.stored:
                trace = trace_of(rows.data[place])
                yield trace.line or 0, trace
            elif place not in rows.overlong and rows.data[place].strip():
                yield rows.line(place), rows.data[place]

    def find_ids(self, job: Job, ids: frozenset[str]) -> set[str]:
        """Which of some ids are among the hits of any row."""
        return set().union(*self.engine.map(RangeTask(FindIds(ids), job), self.ranges))

    def named_hits(self, job: Job, names: frozenset[str]) -> NamedHits:
        """What the hits and citations of all rows are known by."""
        parts = self.engine.map(RangeTask(NameHits(names), job), self.ranges)
        return functools.reduce(operator.or_, parts, NamedHits())

    def packed(
        self, job: Job, qids: tuple[str, ...], first: dict[int, int]
    ) -> Iterator[SerialisedRows]:
        """The traces in file order as rows for a store; `first` has the first line of ranges."""
        numbered = [replace(part, first_line=first[part.index]) for part in self.ranges]
        yield from self.engine.map(RangeTask(SerialiseRows(qids), job), numbered)


class TracesInMemory:
    """Traces in memory, as one range; those without a line are numbered from 1."""

    stored = False
    ranges = (Range(0, 0, 0, 0),)

    def __init__(
        self,
        traces: Sequence[Trace],
        name: str,
        *,
        notes: Sequence[str] = (),
        problems: LoadedRows = _NO_PROBLEMS,
    ) -> None:
        self.traces = traces
        self.source = Source(name, "", 0, 0, "lines", ())
        self.notes = notes
        self.problems = problems

    def partials(self, job: Job) -> Iterator[Partial]:
        """One partial with all traces; from now on their hits have places."""
        reducer = RangeReducer(job)
        if reducer.placer is not None:
            self.traces = [reducer.placed(trace) for trace in self.traces]
        yield reducer.reduce_traces(self.traces)

    def rows(self, job: Job, index: int) -> Iterator[tuple[int, Trace]]:  # noqa: ARG002
        """The traces from the last to the first, each with its line."""
        for place in reversed(range(len(self.traces))):
            line = self.traces[place].line
            yield place + 1 if line is None else line, self.traces[place]

    def find_ids(self, job: Job, ids: frozenset[str]) -> set[str]:  # noqa: ARG002
        """Which of some ids are among the hits of any trace."""
        return {name for trace in self.traces for name in hits_of(trace) if name in ids}

    def named_hits(self, job: Job, names: frozenset[str]) -> NamedHits:
        """What the hits and citations of all traces are known by."""
        parts = (named_hits(trace, names, job.chunks) for trace in self.traces)
        return functools.reduce(operator.or_, parts, NamedHits())

    def packed(
        self,
        job: Job,
        qids: tuple[str, ...],
        first: dict[int, int],  # noqa: ARG002
    ) -> Iterator[SerialisedRows]:
        """The traces as rows for a store."""
        packer = RowSerialiser(replace(job, qids=qids))
        # Some at a time, so that what is made of them is never there as a whole.
        for start in range(0, max(1, len(self.traces)), _TRACES_AT_ONCE):
            yield packer.pack_traces(self.traces[start : start + _TRACES_AT_ONCE], start + 1)


AnyTraces = TraceFile | TracesInMemory


def open_traces(
    traces: object, source: Source | None, choice: FormatChoice, engine: Engine | None
) -> AnyTraces:
    """The traces of a run; those of a file are read by the engine, or else loaded as a whole."""
    if source is None:
        return TracesInMemory(traces_in_memory(traces), name_of(traces, None, "<traces>"))
    return loaded_traces(source, choice) if engine is None else TraceFile(source, engine)


def traces_in_memory(traces: object) -> Sequence[Trace]:
    """Traces that were given as such; an iterator is read once."""
    if isinstance(traces, TraceSet):
        return traces.traces
    return values_of(traces, Trace, "traces")


def loaded_traces(source: Source, choice: FormatChoice) -> TracesInMemory:
    """A file that cannot be read in ranges, as a whole: the lines of a TREC run make one trace."""
    loaded = read_traces(source, choice)
    notes = [f"{source.name}: {note}" for note in (*source.notes, *loaded.notes)]
    return TracesInMemory(loaded.items, source.name, notes=notes, problems=loaded)


class PageRows(Struct, frozen=True):
    """The traces of a run as a page finds them: in their file by the index, or in memory.

    Questions are numbered as the gold items stand; `labels` are those of the scored records.
    """

    job: Job
    index: RowIndex
    labels: RecordLabels
    traces: Sequence[Trace] | None = None


class ScoredRun(Struct, frozen=True, kw_only=True):
    """A run that was scored, with all that a store needs of it, while its files are open.

    `rows` are the traces for a store, not made before they are walked; `for_page` is what a page
    needs, if the plan asked for it. `table` is that of the items, where there is one already.
    """

    scores: Scores
    plan: ScoringPlan
    items: list[GoldItem]
    chunks: dict[str, Chunk]
    inputs: InputFacts
    rows: Iterator[SerialisedRows]
    for_page: PageRows | None = None
    table: GoldTable | None = None
