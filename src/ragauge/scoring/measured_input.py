"""Traces whose ΔS is taken anew on their way into a run.

They are read in file order, measured some at a time, and written as traces to a temporary file,
which workers read as they read stored ones. Each knows the line that it came from.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack

import msgspec
from msgspec.structs import replace

from ragauge.errors import MAX_REPORTED, Place, Problem, RagaugeError
from ragauge.files.fields import FieldError, Row
from ragauge.files.open import PathLike
from ragauge.files.ranges import Range, Source
from ragauge.formats.detect import Choice
from ragauge.formats.json_rows import decode_row
from ragauge.formats.load import name_of, rows_of
from ragauge.formats.loaded import Loaded
from ragauge.formats.traces import Reader
from ragauge.model.chunk import Chunk
from ragauge.model.embedder import Embedding
from ragauge.model.gold import GoldItem
from ragauge.model.scores import Scores
from ragauge.model.semantic import Bands
from ragauge.model.trace import Trace
from ragauge.scoring.inputs import GoldInput, TraceInput, feed_stored, stored_engine
from ragauge.scoring.remeasure import Remeasurer, opened_remeasurer, semantic_of
from ragauge.scoring.scoring_run import Run
from ragauge.scoring.tasks.lines import Laid, ListLines
from ragauge.scoring.tasks.pack import Pack, Packed
from ragauge.scoring.tasks.task import Task


def measured_input(
    stack: ExitStack,
    given: object,
    source: Source | None,
    choice: Choice,
    embed: Embedding,
    *,
    workers: int | None,
    items: Iterable[GoldItem],
    chunks: Mapping[str, Chunk],
    corpus: PathLike | None,
) -> MeasuredInput:
    """Open the embedder and its cache, to measure the traces of a run."""
    name = name_of(given, source, "<traces>")
    remeasurer = opened_remeasurer(stack, embed, items, chunks, corpus, name)
    return MeasuredInput(stack, given, source, choice, workers, remeasurer)


class MeasuredInput(TraceInput):
    """The traces of a run with ΔS by an embedder, in place of what they recorded."""

    def __init__(
        self,
        stack: ExitStack,
        given: object,
        source: Source | None,
        choice: Choice,
        workers: int | None,
        remeasurer: Remeasurer,
    ) -> None:
        if source is not None and source.layout == "run":
            raise RagaugeError.of(
                "usage",
                f"`{source.name}` is a TREC run, which has no texts to measure",
                hint="leave out --embed, or give traces with the text of their hits",
            )
        super().__init__(stack, given, None, choice, workers)
        self.original = source
        self.stack = stack
        self.workers = workers
        self.remeasurer = remeasurer
        self.problems: list[Problem] = []
        self.problem_count = 0
        self.frozen: Source | None = None

    def feed(self, run: Run, gold: GoldInput) -> None:  # noqa: ARG002
        """Measure the traces, and feed them to a run."""
        size = 0
        handle, path = tempfile.mkstemp(prefix="ragauge-")
        self.stack.callback(os.unlink, path)
        encode = msgspec.json.Encoder().encode
        with os.fdopen(handle, "wb") as file:
            for trace in self.remeasurer.traces(self._read()):
                size += file.write(encode(trace) + b"\n")
        name = run.trace_name
        self.frozen = Source(name, path, 0, size, "lines" if size else "empty", ())
        if self.original is not None:
            run.note_problems(Loaded([], self.problems, self.problem_count), self.original)
        self.engine = stored_engine(self.stack, -(-size // 1024), self.workers)
        feed_stored(run, self.frozen, self.engine)
        run.warnings += self.remeasurer.notes()
        run.ranges = [replace(part, first_line=0) for part in run.ranges]

    def _read(self) -> Iterator[Trace]:
        if self.original is None:
            for place, trace in enumerate(self._in_memory()):
                yield trace if trace.line is not None else replace(trace, line=place + 1)
            return
        reader = Reader(self.choice.dialect, own=self.choice.own)
        for line, data, cut, overlong in rows_of(self.original):
            row: Row | None = None
            try:
                row = decode_row(data, cut=cut, overlong=overlong)
                yield reader.trace(row, line)
            except FieldError as failure:
                self.problem_count += 1
                if len(self.problems) < MAX_REPORTED:
                    where = Place(self.original.name, line)
                    self.problems.append(reader.problem(failure, row, where))

    def packed(self, run: Run, gold: GoldInput) -> Iterator[Packed]:  # noqa: ARG002
        """The measured traces again, packed for a store."""
        assert self.frozen is not None and self.engine is not None
        job = replace(run.job(self.frozen), stored=True, qids=tuple(run.table.qids))
        parts: list[Range] = list(run.ranges) if self.frozen.size else []
        yield from self.engine.map(Task(Pack(job.qids), job), parts)

    def laid(self, run: Run, gold: GoldInput) -> Iterator[Laid]:  # noqa: ARG002
        """The measured traces again, as lines."""
        assert self.frozen is not None and self.engine is not None
        job = replace(run.job(self.frozen), stored=True)
        parts = list(run.ranges) if self.frozen.size else []
        yield from self.engine.map(Task(ListLines(), job), parts)

    def concluded(self, scores: Scores, bands: Mapping[str, Bands]) -> Scores:
        """The scores with what is known of ΔS."""
        return replace(scores, semantic=semantic_of(scores, bands, self.remeasurer))
