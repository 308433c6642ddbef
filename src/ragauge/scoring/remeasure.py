"""ΔS of traces measured again from their texts, apart from what they recorded.

Recorded and new values are never mixed: with an embedder, a hit or a citation without a text has no
ΔS at all, whatever it recorded.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from itertools import islice

import msgspec
import numpy as np
from msgspec.structs import replace

from ragauge.corpus.lookup import Lookup
from ragauge.corpus.manifest import read_corpus
from ragauge.embed.measure import Measurer, is_same_model, open_measurer
from ragauge.errors import MAX_REPORTED, Place, Problem, RagaugeError
from ragauge.files.fields import FieldError, Row
from ragauge.files.ranges import Source, rows_of
from ragauge.files.temporary_file import temporary_file
from ragauge.formats.detect import FormatChoice
from ragauge.formats.json_rows import decode_row, duplicate_key_error
from ragauge.formats.load import name_of
from ragauge.formats.loaded_rows import LoadedRows, duplicate_key_notes
from ragauge.formats.traces import RowReader
from ragauge.model.chunk import Chunk
from ragauge.model.embedder import Embedding
from ragauge.model.gold import GoldItem
from ragauge.model.scores import Scores
from ragauge.model.semantic import ZONES, Anchored, Bands, Recheck, Semantic
from ragauge.model.trace import Trace
from ragauge.scoring.engines.choose import file_engine
from ragauge.scoring.inputs import TraceFile, traces_in_memory
from ragauge.scoring.known_texts import TextFinder, evidence_of, first_of
from ragauge.scoring.results import at
from ragauge.stats.intervals import quantile
from ragauge.text import some

_WINDOW = 512
"""Traces whose texts are embedded together: embedders are fast on many texts at once."""

TOLERANCE = 0.01
GOLD_TARGET = 0.35
"""How near the evidence of a good gold item is to its question, as the source documents have it."""


class Remeasurer:
    """Takes ΔS of traces anew, and notes what a reader should know of it."""

    def __init__(
        self,
        measurer: Measurer,
        items: Iterable[GoldItem],
        texts: TextFinder,
        *,
        tolerance: float | None = None,
        trace_name: str = "",
    ) -> None:
        self.measurer = measurer
        self.texts = texts
        self.tolerance = tolerance
        self.trace_name = trace_name
        self.items = {(item.qid, item.turn): item for item in items}
        self.wanted = {name for item in self.items.values() for name in _names(item)}
        self.evidence: dict[str, str] = {}
        self.measured = self.textless = self.questionless = self.circular = self.uncited = 0
        self.compared = self.differing = 0
        self.worst = 0.0
        self.listed: list[str] = []
        self.recorded_by: set[str] = set()

    def traces(self, recorded: Iterable[Trace]) -> Iterator[Trace]:
        """The traces with their new ΔS, in the same order."""
        rest = iter(recorded)
        while window := list(islice(rest, _WINDOW)):
            asked = [self._question(trace) for trace in window]
            hit_texts = [[self.texts.of_hit(hit) for hit in trace.hits] for trace in window]
            cited = [
                self._cited(trace, texts) for trace, texts in zip(window, hit_texts, strict=True)
            ]
            measurable = zip(asked, hit_texts, cited, strict=True)
            self.measurer.prepare(
                [
                    question
                    for question, texts, snippet in measurable
                    if question and (snippet or any(texts))
                ],
                "query",
            )
            self.measurer.prepare(
                [text for texts in (*hit_texts, cited) for text in texts if text], "document"
            )
            for trace, question, texts, snippet in zip(
                window, asked, hit_texts, cited, strict=True
            ):
                yield self._one(trace, question, texts, snippet)
            self.measurer.forget()

    def _question(self, trace: Trace) -> str | None:
        """What was asked: as the trace says, or as the gold item of its slot does."""
        if trace.question is not None:
            return trace.question
        item = self._item(trace)
        if item is None:
            return None
        number = trace.paraphrase
        if number is not None and 0 <= number < len(item.paraphrases):
            return item.paraphrases[number]
        return item.question

    def _item(self, trace: Trace) -> GoldItem | None:
        qid = trace.qid or ""
        return self.items.get((qid, trace.turn)) or self.items.get((qid, None))

    def _cited(self, trace: Trace, texts: Sequence[str | None]) -> str | None:
        """The text of the first citation that has one: the hit that it names, or its own.

        What a hit has is what was retrieved and cited, also where the citation points to a part of
        it, as in recorded ΔS; the place of a citation counts where no hit or chunk has its id.
        """
        if trace.answer is None or not trace.answer.citations:
            return None
        by_id: dict[str, str | None] = {}
        for hit, text in zip(trace.hits, texts, strict=True):
            by_id.setdefault(hit.id, text)
        for citation in trace.answer.listed:
            text = by_id.get(citation.id)
            text = text if text is not None else self.texts.of_citation(citation)
            if text and text.strip():
                return text
        self.uncited += 1
        return None

    def _one(
        self, trace: Trace, question: str | None, texts: Sequence[str | None], snippet: str | None
    ) -> Trace:
        if question is None and trace.hits:
            self.questionless += 1
        self.circular += is_same_model(trace.index.get("embed_model", ""), self.id)
        hits = []
        for rank, (hit, text) in enumerate(zip(trace.hits, texts, strict=True)):
            if text is not None and hit.id in self.wanted:
                self.evidence.setdefault(hit.id, text)
            value = self.measurer.distance(question, text)
            self.measured += value is not None
            self.textless += not text
            self._compare(trace, f"hit {rank + 1}", hit.delta_s, value)
            hits.append(replace(hit, delta_s=value))
        answer = trace.answer
        if answer is not None:
            value = self.measurer.distance(question, snippet)
            self._compare(trace, "the answer", answer.delta_s, value)
            cited = tuple(replace(citation, delta_s=None) for citation in answer.cited)
            answer = replace(answer, delta_s=value if answer.citations else None, cited=cited)
        return replace(trace, hits=tuple(hits), answer=answer, embedder=self.id)

    @property
    def id(self) -> str:
        """The embedder."""
        return self.measurer.embedder.id

    def _compare(self, trace: Trace, what: str, old: float | None, new: float | None) -> None:
        if self.tolerance is None or old is None or new is None:
            return
        if "embed_model" in trace.index:
            self.recorded_by.add(trace.index["embed_model"])
        self.compared += 1
        apart = abs(old - new)
        self.worst = max(self.worst, apart)
        if apart > self.tolerance:
            self.differing += 1
            if len(self.listed) < MAX_REPORTED:
                where = at(self.trace_name, trace.line) if trace.line else self.trace_name
                self.listed.append(
                    f"{where}: {what} of {trace.qid or trace.question}: "
                    f"recorded {old:.4f}, measured {new:.4f}"
                )

    def recheck(self) -> Recheck | None:
        """How recorded and new ΔS differ, where that was asked for."""
        if self.tolerance is None:
            return None
        return Recheck(
            compared=self.compared,
            differing=self.differing,
            worst=self.worst,
            tolerance=self.tolerance,
            listed=tuple(self.listed),
            recorded_by=tuple(sorted(self.recorded_by)),
        )

    def anchored(self) -> Anchored | None:
        """ΔS of questions and their own evidence, where its text is known; None if it never is."""
        pairs = []
        for item in sorted(self.items.values(), key=lambda item: (item.qid, item.turn or 0)):
            question = item.question or (item.paraphrases[0] if item.paraphrases else None)
            text = self._evidence(item)
            if question and text:
                pairs.append((question, text))
        values = self.measurer.distances(pairs)
        if not values:
            return None
        column = np.array(values)
        median, p90 = quantile(column, 0.5), quantile(column, 0.9)
        assert median is not None and p90 is not None
        far = sum(value > GOLD_TARGET for value in values)
        return Anchored(n=len(values), median=median, p90=p90, far=far, target=GOLD_TARGET)

    def _evidence(self, item: GoldItem) -> str | None:
        def named(name: str) -> str | None:
            return self.texts.of_id(name) or self.evidence.get(name)

        return first_of(self.texts.of_evidence(item, named))

    def notes(self) -> list[str]:
        """Sentences about what has no ΔS, and what makes the numbers doubtful."""
        notes = self.measurer.notes()
        counted = [
            (self.textless, "hit", "without a text: no ΔS"),
            (self.uncited, "answer", "without a citation that has a text: no ΔS of what is cited"),
            (self.questionless, "trace", "whose question is not known: no ΔS"),
        ]
        notes += [f"{n} {noun if n == 1 else noun + 's'} {what}" for n, noun, what in counted if n]
        if self.circular:
            noun = "trace was" if self.circular == 1 else "traces were"
            notes.append(
                f"{self.circular} {noun} ranked by the embedder that ΔS is taken with "
                f"({self.id}): the first hits are near by construction"
            )
        recheck = self.recheck()
        if recheck is not None:
            differing = f"{recheck.differing} of {recheck.compared} recorded ΔS differ"
            notes.append(
                f"{differing} from the measured ones by more than {recheck.tolerance:g}; "
                f"the most by {recheck.worst:.4f}"
            )
            if recheck.recorded_by:
                notes.append(f"the recorded ΔS are of {some(recheck.recorded_by)}")
            notes += recheck.listed
        return notes


def _names(item: GoldItem) -> list[str]:
    """The ids of an item's evidence, whose texts are looked for among the hits."""
    pieces = evidence_of(item)
    return [*pieces.ids, *(anchor.id for anchor in pieces.anchors if anchor.id is not None)]


def opened_remeasurer(
    stack: ExitStack,
    embed: Embedding,
    items: Iterable[GoldItem],
    chunks: Mapping[str, Chunk],
    corpus: str | os.PathLike[str] | None,
    trace_name: str = "",
) -> Remeasurer:
    """Open an embedder with its cache, to take ΔS of traces."""
    measurer = stack.enter_context(
        open_measurer(embed.name, settings=embed.settings, cache=embed.cache)
    )
    lookup = None if corpus is None else Lookup(read_corpus(corpus))
    return Remeasurer(
        measurer,
        items,
        TextFinder(chunks, lookup),
        tolerance=embed.tolerance,
        trace_name=trace_name,
    )


def measured_traces(
    stack: ExitStack,
    traces: object,
    source: Source | None,
    choice: FormatChoice,
    remeasurer: Remeasurer,
    workers: int | None,
) -> TraceFile:
    """Traces with ΔS by an embedder, in place of what they recorded.

    They are read in file order, measured some at a time, and written to a temporary file, which
    is read as stored traces are. Each knows the line that it came from.
    """
    if source is not None and source.layout == "run":
        raise RagaugeError.of(
            "usage",
            f"`{source.name}` is a TREC run, which has no texts to measure",
            hint="leave out --embed, or give traces with the text of their hits",
        )
    problems = _RowProblems()
    if source is not None:
        recorded = _read(source, choice, problems)
    else:
        recorded = (
            trace if trace.line is not None else replace(trace, line=place)
            for place, trace in enumerate(traces_in_memory(traces), 1)
        )
    measured = stack.enter_context(temporary_file())
    encode = msgspec.json.Encoder().encode
    size = 0
    for trace in remeasurer.traces(recorded):
        size += measured.file.write(encode(trace) + b"\n")
    measured.file.flush()
    name = name_of(traces, source, "<traces>")
    notes = [] if source is None else list(source.notes)
    notes += duplicate_key_notes(len(problems.duplicate_keys), problems.duplicate_keys)
    file_notes = [f"{name}: {note}" for note in notes]
    rows = Source(name, measured.path, 0, size, "lines" if size else "empty", ())
    return TraceFile(
        rows,
        file_engine(stack, rows, workers),
        stored=True,
        notes=[*file_notes, *remeasurer.notes()],
        problems=LoadedRows([], problems.listed, problems.count),
    )


class _RowProblems:
    """The first rows that could not be read, how many there are, and rows with a key twice."""

    def __init__(self) -> None:
        self.listed: list[Problem] = []
        self.duplicate_keys: list[tuple[int, str]] = []
        self.count = 0

    def add(self, problem: Problem) -> None:
        """Count a problem, and list it if it is among the first."""
        self.count += 1
        if len(self.listed) < MAX_REPORTED:
            self.listed.append(problem)


def _read(source: Source, choice: FormatChoice, problems: _RowProblems) -> Iterator[Trace]:
    reader = RowReader(choice.dialect, own=choice.own, sole=choice.sole)
    for line, data, cut, overlong in rows_of(source):
        row: Row | None = None
        try:
            row = decode_row(data, cut=cut, overlong=overlong)
            yield reader.trace(row, line)
            if (duplicate := duplicate_key_error(data)) is not None:
                problems.duplicate_keys.append((line, duplicate.message))
        except FieldError as failure:
            problems.add(reader.problem(failure, row, Place(source.name, line)))


def semantic_of(
    scores: Scores, bands: Mapping[str, Bands], remeasurer: Remeasurer | None
) -> Semantic | None:
    """What is known of the ΔS of a run; None where nothing beyond the metrics is.

    Zones are counted over questions, by the cited snippet where anything is cited, else by the
    hits. Bands are those of the embedder, or where it has none those of the source documents.
    """
    embedder = remeasurer.id if remeasurer is not None else None
    if embedder is None and len(scores.embedders) == 1 and scores.embedders[0] in bands:
        embedder = scores.embedders[0]
    if embedder is None:
        return None
    mine = bands.get(embedder, Bands())
    zones = dict.fromkeys(ZONES, 0)
    values = scores.per_question
    names = ("semantic.delta_s_cited", "semantic.delta_s_hits@5", "semantic.delta_s_hits")
    for name in names:
        if values is None or name not in values.metrics:
            continue
        distances = [value for value in values.of(name).tolist() if value == value]  # noqa: PLR0124
        for value in distances:
            zones[mine.zone(value)] += 1
        if distances:
            break
    return Semantic(
        embedder=embedder,
        bands=mine,
        zones=zones,
        measured=remeasurer is not None,
        anchors=None if remeasurer is None else remeasurer.anchored(),
        recheck=None if remeasurer is None else remeasurer.recheck(),
    )
