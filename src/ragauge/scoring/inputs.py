"""What a run is fed with: files of any kind, sets from memory, and the engine that reads them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from typing import Protocol, TypeVar

from msgspec import Struct
from msgspec.structs import replace

from ragauge.concurrency import cores
from ragauge.files.open import PathLike
from ragauge.files.ranges import RANGE_BYTES, Range, Source, plan
from ragauge.formats.detect import Choice
from ragauge.formats.gold import Locate
from ragauge.formats.load import read_gold, read_traces
from ragauge.formats.loaded import Loaded
from ragauge.formats.trec.qrels import Qrels, read_qrels
from ragauge.formats.trec.ranks import match
from ragauge.model.chunk import Chunk
from ragauge.model.gold import GoldItem, GoldSet
from ragauge.model.options import Options
from ragauge.model.scores import Scores
from ragauge.model.semantic import Bands
from ragauge.model.trace import Trace, TraceSet
from ragauge.scoring import trec
from ragauge.scoring.engines.local import InProcess, Subprocesses
from ragauge.scoring.gold_table import GoldTable, gold_table
from ragauge.scoring.scoring_run import Inputs, Run, ScoringPlan
from ragauge.scoring.second_pass import Retrieved
from ragauge.scoring.tasks.job import Job
from ragauge.scoring.tasks.lines import Laid, LineMaker, ListLines
from ragauge.scoring.tasks.pack import Pack, Packed, RangePacker
from ragauge.scoring.tasks.task import FindIds, Reduce, Task

Result = TypeVar("Result")

Gold = PathLike | GoldSet | Iterable[GoldItem]
Traces = PathLike | TraceSet | Iterable[Trace]
POOL_FROM_BYTES = 16 * 1024 * 1024
MOST_WORKERS = 8
_STORED_BYTES = 1024  # of a stored trace, roughly: most have ten hits
_PACKED = 2048


class Engine(Protocol):
    """Does tasks on ranges, in this process or elsewhere."""

    def map(self, task: Task[Result], ranges: Sequence[Range]) -> Iterator[Result]:
        """The result of each range, in the order of the ranges.

        The results of one task are taken before the next one is given.
        """
        ...


class GoldInput:
    """The gold of a run, as a table. Judgements for a TREC run never become items."""

    def __init__(
        self,
        given: object,
        source: Source | None,
        trace: Source | None,
        choice: Choice,
        *,
        locate: Locate | None = None,
    ) -> None:
        self.source = source
        self.given = given
        self.qrels: Qrels | None = None
        self.choice = choice
        both = source is not None and trace is not None
        if both and source.layout == "qrels" and trace.layout == "run":  # type: ignore[union-attr]
            assert source is not None
            self.qrels = read_qrels(source)
            problems = [each.at(source.name) for each in self.qrels.problems]
            self.loaded = Loaded([], problems, self.qrels.problem_count)
        else:
            self.loaded = read_gold(given, source, choice, locate=locate)

    def items(self) -> list[GoldItem]:
        """The gold items; judgements become items only here, where a store asks for them."""
        if self.qrels is not None and self.source is not None:
            return read_gold(self.given, self.source, self.choice).items
        return self.loaded.items

    def table(self, options: Options, name: str, chunks: dict[str, Chunk]) -> GoldTable:
        """The table under some options."""
        if self.qrels is not None:
            return trec.table_of(self.qrels, options)
        return gold_table(self.loaded.items, self.choice.profile, options, name=name, chunks=chunks)


class TraceInput:
    """The traces of a run. A pool of workers starts at once, so that it warms up meanwhile."""

    def __init__(
        self,
        stack: ExitStack,
        given: object,
        source: Source | None,
        choice: Choice,
        workers: int | None,
    ) -> None:
        self.given = given
        self.source = source
        self.choice = choice
        ranged = source is not None and source.layout != "run"
        size = source.size if source is not None else 0
        self.engine = _engine(stack, size, workers) if ranged else None

    def feed(self, run: Run, gold: GoldInput) -> None:
        """Feed the traces to a run."""
        source = self.source
        if source is None:
            run.add_traces(self._in_memory())
        elif gold.qrels is not None:
            matched = match(gold.qrels, source)
            options = run.plan.options
            records = trec.records_of_run(gold.qrels, matched, options)
            run.add_matched(matched, records, source, duplicates=gold.qrels.duplicates)
        elif self.engine is None:
            loaded = read_traces(source, self.choice)
            run.add_traces(loaded.items)
            run.note_problems(loaded, source)
        else:
            ranges = plan(source)
            run.note_source(source, ranges)
            job = run.job(source)
            run.retrieved = retrieved_by(self.engine, job, ranges)
            run.add_partials(self.engine.map(Task(Reduce(), job), ranges[::-1]))

    def _in_memory(self) -> Sequence[Trace]:
        """Traces that were given as such; an iterator is read once and kept."""
        if not isinstance(self.given, TraceSet | tuple):
            self.given = tuple(self.given)  # type: ignore[arg-type]
        return self.given.traces if isinstance(self.given, TraceSet) else self.given

    def concluded(self, scores: Scores, bands: Mapping[str, Bands]) -> Scores:
        """The scores with the zones of ΔS, where there are bands for its embedder."""
        if not bands:
            return scores
        from ragauge.scoring.remeasure import semantic_of

        return replace(scores, semantic=semantic_of(scores, bands, None))

    def packed(self, run: Run, gold: GoldInput) -> Iterator[Packed]:
        """The traces again, in file order and packed for a store, once the run is fed."""
        table = self._table(run, gold)
        job = replace(self._job(run, table), qids=tuple(run.table.qids))
        if self.source is not None and self.engine is not None:
            yield from self.engine.map(Task(Pack(job.qids), job), self._ranges(run))
            return
        order: list[int] | None = None
        if table is not run.table:
            places = {qid: place for place, qid in enumerate(run.table.qids)}
            order = [places[qid] for qid in table.qids]
        packer = RangePacker(job)
        for first, some in self._some_traces():
            packed = packer.pack_traces(some, first)
            yield packed if order is None else _ordered(packed, order)

    def laid(self, run: Run, gold: GoldInput) -> Iterator[Laid]:
        """The traces again, in file order and as lines, once the run is fed.

        Their questions are numbered as the gold items stand.
        """
        job = self._job(run, self._table(run, gold))
        if self.source is not None and self.engine is not None:
            yield from self.engine.map(Task(ListLines(), job), self._ranges(run))
            return
        maker = LineMaker(job)
        for first, some in self._some_traces():
            yield maker.lay_traces(some, first)

    def _table(self, run: Run, gold: GoldInput) -> GoldTable:
        """The table of a run; of judgements, which never became items before, that of the items."""
        if gold.qrels is None:
            return run.table
        return gold_table(
            gold.items(), run.plan.profile, run.plan.options, name=run.gold_name, chunks={}
        )

    def _job(self, run: Run, table: GoldTable) -> Job:
        job = run.job(self.source or Source("", "", 0, 0, "lines", ()))
        if table is run.table:
            return job
        return replace(
            job,
            keys=table.keys,
            by_qid=table.by_qid,
            by_turn=table.by_turn,
            by_question=table.by_question,
            paraphrases=table.paraphrases,
        )

    def _ranges(self, run: Run) -> list[Range]:
        first = run.first_lines()
        return [replace(part, first_line=first[part.index]) for part in run.ranges]

    def _some_traces(self) -> Iterator[tuple[int, Sequence[Trace]]]:
        """Traces in memory, some at a time, each time with the number of the first."""
        if self.source is not None:
            items: Sequence[Trace] = read_traces(self.source, self.choice).items
        else:
            items = self._in_memory()
        for start in range(0, max(1, len(items)), _PACKED):
            yield start + 1, items[start : start + _PACKED]


def _ordered(packed: Packed, order: Sequence[int]) -> Packed:
    """Rows whose questions are counted as the run counts them: judgements have their own order."""
    rows = [
        (facts, payload, None if question is None else order[question])
        for facts, payload, question in packed.rows
    ]
    return replace(packed, rows=rows)


class Kept(Struct, frozen=True, kw_only=True):
    """All that a store needs of a run, while its files are open.

    `rows` are the traces for a store, and `lines` for who looks at them once; neither is made
    before it is walked. `table` is that of the items, where there is one already.
    """

    scores: Scores
    plan: ScoringPlan
    items: list[GoldItem]
    chunks: dict[str, Chunk]
    inputs: Inputs
    rows: Iterator[Packed]
    lines: Iterator[Laid]
    table: GoldTable | None = None


def stored_engine(stack: ExitStack, results: int, workers: int | None) -> Engine:
    """The engine for stored runs of so many results, whose traces are not unpacked yet."""
    return _engine(stack, results * _STORED_BYTES, workers)


def file_engine(stack: ExitStack, source: Source, workers: int | None) -> Engine:
    """The engine for a file of rows."""
    return _engine(stack, source.size, workers)


def side_engines(stack: ExitStack, results: Sequence[int], workers: int | None) -> list[Engine]:
    """An engine for each of some stored runs, which share the workers that one would have."""
    sizes = [count * _STORED_BYTES for count in results]
    count = _worker_count(workers, max(sizes))
    if count < len(results):
        return [InProcess() for _ in results]
    return [stack.enter_context(Subprocesses(count // len(results))) for _ in results]


def feed_stored(run: Run, source: Source, engine: Engine) -> None:
    """Feed stored traces to a run."""
    # Every row knows the line that it came from: ranges add nothing to it.
    ranges = [replace(part, first_line=0) for part in plan(source)]
    job = run.note_stored(source, ranges)
    run.retrieved = retrieved_by(engine, job, ranges)
    run.add_partials(engine.map(Task(Reduce(), job), ranges[::-1]))


def retrieved_by(engine: Engine, job: Job, ranges: Sequence[Range]) -> Retrieved:
    """Looks for ids among the hits of all rows."""

    def retrieved(ids: frozenset[str]) -> set[str]:
        return set().union(*engine.map(Task(FindIds(ids), job), ranges))

    return retrieved


def _engine(stack: ExitStack, size: int, workers: int | None) -> Engine:
    count = _worker_count(workers, size)
    if count <= 1:
        return InProcess()
    return stack.enter_context(Subprocesses(count))


def _worker_count(workers: int | None, size: int) -> int:
    if workers is None:
        if size < POOL_FROM_BYTES:
            return 1
        workers = min(cores(), MOST_WORKERS)
    return max(1, min(workers, -(-size // RANGE_BYTES)))
