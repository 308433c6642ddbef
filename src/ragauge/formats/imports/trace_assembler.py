"""Spans become traces: grouped by trace, in whatever order and file they come, then put together.

What was read of a span waits in a file without a name, so that memory grows with the number of
spans and not with their texts.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack
from io import BytesIO
from itertools import groupby, islice
from operator import attrgetter
from typing import IO, Any

import msgspec
from msgspec import Struct

from ragauge import registry
from ragauge.files.redaction import redacted
from ragauge.formats.imports import documents, payload
from ragauge.formats.imports.api_citations import CitedSource, cited_hits, references_in
from ragauge.formats.imports.coverage import Coverage
from ragauge.formats.imports.foreign_format import ForeignFile, ImportOptions, ReadRows, Row
from ragauge.formats.imports.json_file import iso_time
from ragauge.formats.imports.span import CHAIN, MODEL, RERANKER, RETRIEVER, SpanFacts, TraceSpan
from ragauge.formats.imports.vocabulary import Vocabulary
from ragauge.formats.rerank_stages import at_first_stage
from ragauge.model.field_spellings import FIRST_HITS

_LATEST = 2**63 - 1
_TOGETHER = 64
"""So many spans of a trace are written at once, where they follow each other."""
_BUFFER = 1024 * 1024
_SIZE_BITS = 32
_LARGEST = (1 << _SIZE_BITS) - 1

_FOREIGN = "traces without a span of a known convention (passed over)"
_EMPTY = "traces without a question, a retrieval or an answer (passed over)"
_PARTIAL = "traces with spans whose parent is not in the files"
_TWICE = "spans that came twice (counted once)"
_TRUNCATED = "traces that lost hits before the export (written as errors, never scored)"
_SEVERAL = "traces with several retrievals"


class _Record(Struct, array_like=True, gc=False):
    """A span as it waits for the rest of its trace."""

    span_id: str
    parent_id: str | None
    start: int
    end: int
    error: str | None
    facts: SpanFacts | None


def _by_start(records: Iterable[_Record]) -> list[_Record]:
    """Records in the order of their starts; of those of one moment the longest first."""
    ordered = sorted(records, key=_start)
    if len(set(map(_start, ordered))) < len(ordered):
        ordered.sort(key=lambda record: (record.start, -record.end, record.span_id))
    return ordered


def _by_end(record: _Record) -> tuple[int, int, str]:
    return record.end, -record.start, record.span_id


_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(list[_Record]).decode
_trace_id, _start = attrgetter("trace_id"), attrgetter("start")


def traces_of(
    spans: Iterable[TraceSpan],
    options: ImportOptions,
    coverage: Coverage,
    *,
    in_memory: bool = False,
) -> Iterator[Row]:
    """The traces that spans are, in the order of their times.

    `in_memory` is for few spans, as a request brings them: their texts wait there.
    """
    assembler = TraceAssembler(options, coverage, in_memory=in_memory)
    with assembler.file:
        assembler.add(spans)
        yield from assembler.rows()


def span_reader(
    spans: Callable[[Sequence[ForeignFile], Coverage], Iterable[TraceSpan]],
) -> ReadRows:
    """What reads the traces of a format whose files are spans."""

    def read_traces(
        files: Sequence[ForeignFile], options: ImportOptions, coverage: Coverage
    ) -> Iterator[Row]:
        yield from traces_of(spans(files, coverage), options, coverage)

    return read_traces


class TraceAssembler:
    """Takes spans in any order, and gives the traces in the order of their times."""

    def __init__(
        self, options: ImportOptions, coverage: Coverage, *, in_memory: bool = False
    ) -> None:
        self.options = options
        self.coverage = coverage
        vocabularies: list[Vocabulary] = sorted(
            registry.vocabularies().values(), key=lambda one: (one.general, one.name)
        )
        self.vocabularies = vocabularies
        # Of the conventions that a span follows, the first one reads it. A span mostly has the mark
        # of the span before it, and none that would go first.
        self.marks = [(mark, one.read) for one in vocabularies for mark in one.marks]
        self.usual_mark, self.usual_reader = self.marks[0]
        self.marks_before: frozenset[str] = frozenset()
        self.in_memory = in_memory
        self.file: IO[bytes] = (
            BytesIO() if in_memory else tempfile.TemporaryFile(buffering=_BUFFER)  # noqa: SIM115  (its user closes it)
        )
        self.size = 0
        # For each trace its earliest time, then where its spans stand in the file: offset and size
        # in one number, and a bare list of them, since there may be millions.
        self.traces: dict[str, list[int]] = {}

    def add(self, spans: Iterable[TraceSpan]) -> None:
        """Take spans. Those of one trace mostly follow each other, and are written together."""
        for trace_id, run in groupby(spans, _trace_id):
            while records := [self._record(span) for span in islice(run, _TOGETHER)]:
                self._store(trace_id, records)

    def _record(self, span: TraceSpan) -> _Record:
        attributes = span.attributes
        if self.usual_mark in attributes and self.marks_before.isdisjoint(attributes):
            facts: SpanFacts | None = self.usual_reader(span)
        else:
            facts = self._read_by_mark(span)
        build = span.resource.get("service.version")
        if isinstance(build, str) and facts is not None and facts.role in (RETRIEVER, CHAIN):
            facts.index = {"build": build, **(facts.index or {})}
        return _Record(span.span_id, span.parent_id, span.start, span.end, span.error, facts)

    def _read_by_mark(self, span: TraceSpan) -> SpanFacts | None:
        for place, (mark, read) in enumerate(self.marks):
            if mark in span.attributes:
                self.usual_mark, self.usual_reader = mark, read
                self.marks_before = frozenset(earlier for earlier, _ in self.marks[:place])
                return read(span)
        return self._read_by_prefix(span) if span.dropped else None

    def _store(self, trace_id: str, records: list[_Record]) -> None:
        start = min(map(_start, records))
        try:
            data = _encode(records)
        except OverflowError:  # a number that no format but JSON can hold
            data = _encode([_storable(record) for record in records])
        place = self.size << _SIZE_BITS | len(data)
        trace = self.traces.get(trace_id)
        if trace is None:
            self.traces[trace_id] = [start, place]
        else:
            trace[0] = min(trace[0], start)
            trace.append(place)
        self.file.write(data)
        self.size += len(data)

    def _read_by_prefix(self, span: TraceSpan) -> SpanFacts | None:
        """What a span says that lost the attribute it would be known by."""
        for vocabulary in self.vocabularies:
            prefixes = vocabulary.prefixes
            if prefixes and any(key.startswith(prefixes) for key in span.attributes):
                return vocabulary.read(span)
        return None

    def rows(self) -> Iterator[Row]:
        """The traces of all spans, by time; those of one moment by their ids."""
        ordered = sorted((trace[0], trace_id) for trace_id, trace in self.traces.items())
        with ExitStack() as stack:
            file = self.file
            if not self.in_memory:
                file.flush()
                # Without a buffer: traces that overlap in time are read from here and there.
                unbuffered = open(file.fileno(), "rb", buffering=0, closefd=False)  # noqa: SIM115
                file = stack.enter_context(unbuffered)
            stored = _RecordFile(file)
            for _, trace_id in ordered:
                records = stored.records(self.traces.pop(trace_id)[1:])
                yield from self._assembled(trace_id, self._unique(records))

    def _unique(self, records: Sequence[_Record]) -> dict[str, _Record]:
        """The spans by id. One that comes twice (sent again, or begun and ended) is one."""
        by_id = {record.span_id: record for record in records}
        if len(by_id) == len(records):
            return by_id
        by_id = {}
        for record in records:
            earlier = by_id.setdefault(record.span_id, record)
            if earlier is not record:
                self.coverage.note(_TWICE)
                earlier.end = max(earlier.end, record.end)
                earlier.error = earlier.error or record.error
                earlier.parent_id = earlier.parent_id or record.parent_id
                if earlier.facts is None or record.facts is None:
                    earlier.facts = earlier.facts or record.facts
                else:
                    for name in SpanFacts.__struct_fields__:
                        if getattr(earlier.facts, name) in (None, []):
                            setattr(earlier.facts, name, getattr(record.facts, name))
        return by_id

    def _assembled(self, trace_id: str, by_id: dict[str, _Record]) -> Iterator[Row]:
        known = []
        is_partial = False
        for record in _by_start(by_id.values()):
            if record.facts is not None:
                known.append(record)
                for note in record.facts.notes or ():
                    self.coverage.note(note)
            if record.parent_id is not None and record.parent_id not in by_id:
                is_partial = True
        if not known:
            self.coverage.note(_FOREIGN)
            return
        if is_partial:
            self.coverage.note(_PARTIAL)
        trace = _SpanTree(known, by_id)
        question, answer = trace.question(), trace.answer()
        retrievals, rerankings = trace.retrievals(), trace.with_role(RERANKER)
        if not retrievals and not rerankings and question is None and answer is None:
            self.coverage.note(_EMPTY)
            return
        if not retrievals and not rerankings and not trace.speaks():
            self.coverage.note(_EMPTY)
            return
        if len(retrievals) > 1 and not rerankings:
            self.coverage.note(f"{_SEVERAL}, read with --retrieval {self.options.retrieval}")
        if self.options.retrieval == "each" and len(retrievals) > 1 and not rerankings:
            for retrieval in retrievals:
                asked = retrieval.facts.question  # type: ignore[union-attr]
                row = self._row(trace_id, trace, [retrieval], [], asked or question, answer)
                if asked is not None and question is not None and asked != question:
                    row.pop("qid", None)  # a question of its own, which may be one of the gold set
                yield row
            return
        if self.options.retrieval == "first":
            chosen = retrievals[:1]
        elif self.options.retrieval == "union":
            chosen = retrievals
        else:
            chosen = retrievals[-1:]
        if question is None:
            asked_in = [*chosen, *rerankings, *known]
            texts = (record.facts.question for record in asked_in)  # type: ignore[union-attr]
            question = next((text for text in texts if text), None)
        yield self._row(trace_id, trace, chosen, rerankings, question, answer)

    def _row(
        self,
        trace_id: str,
        trace: _SpanTree,
        retrievals: Sequence[_Record],
        rerankings: Sequence[_Record],
        question: str | None,
        answer: _Answer | None,
    ) -> Row:
        row: Row = {}
        if (qid := trace.first("qid")) is not None:
            row["qid"] = qid
        if question is not None:
            row["question"] = question
        error = trace.error()
        lost = trace.lost([*retrievals, *rerankings])
        if lost is not None:
            self.coverage.note(_TRUNCATED)
            error = f"truncated: {lost}"
            row["hits"] = []
        else:
            before = _union([record.facts.hits for record in retrievals])  # type: ignore[union-attr]
            if not retrievals and not rerankings:
                before = trace.searched_files()
            after, given = _reranked(rerankings)
            if after is None:
                row["hits"] = before
            else:
                row["hits"] = after
                row[FIRST_HITS] = before or given or []
                if self.options.stage == "first":
                    row = at_first_stage(row)
        if answer is not None:
            row["answer"] = answer.text
            if answer.citations is not None:
                row["citations"] = cited_hits(answer.citations, row["hits"])
        if error is not None:
            row["error"] = redacted(error)
        main = trace.main
        if (time := iso_time(main.start)) is not None:
            row["ts"] = time
        if main.end > main.start:
            row["latency_ms"] = (main.end - main.start) / 1e6
        spent = 0
        for record in retrievals:
            spent += max(0, record.end - record.start)
        if spent:
            row["perf"] = {"t_retrieve_ms": spent / 1e6}
        if (session := trace.first("session")) is not None:
            row["session"] = session
        row.update(trace.index())
        row["trace_id"] = trace_id
        if main.span_id and " " not in main.span_id:  # `trace 123` is a span of our own making
            row["span_id"] = main.span_id
        return row


class _RecordFile:
    """Reads records back: ahead where traces follow each other, else what is asked for alone."""

    def __init__(self, file: IO[bytes]) -> None:
        self.file = file
        self.start = 0
        self.block = memoryview(b"")

    def records(self, places: Sequence[int]) -> list[_Record]:
        """The records at some places."""
        first, *others = places
        records: list[_Record] = _decode(self._taken(first >> _SIZE_BITS, first & _LARGEST))
        for place in others:
            records += _decode(self._taken(place >> _SIZE_BITS, place & _LARGEST))
        return records

    def _taken(self, first: int, size: int) -> memoryview:
        offset = first - self.start
        if offset < 0 or offset + size > len(self.block):
            is_next = 0 <= offset <= len(self.block)
            self.file.seek(first)
            self.block = memoryview(self.file.read(max(size, _BUFFER) if is_next else size))
            self.start, offset = first, 0
        return self.block[offset : offset + size]


def _storable(record: _Record) -> _Record:
    """A record whose numbers have 64 bits: a time is cut, any other number is kept as text."""
    facts = _small(msgspec.to_builtins(record.facts))
    start, end = min(record.start, _LATEST), min(record.end, _LATEST)
    return msgspec.structs.replace(
        record, start=start, end=end, facts=msgspec.convert(facts, SpanFacts | None)
    )


def _small(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _small(entry) for name, entry in value.items()}
    if isinstance(value, list | tuple):
        return [_small(entry) for entry in value]
    is_large = isinstance(value, int) and not -_LATEST <= value <= _LATEST
    return str(value) if is_large else value


def _citations_in(value: Any) -> list[CitedSource] | None:
    """The citations of an answer that is an object; an empty list of annotations says nothing."""
    if not isinstance(value, dict | list):
        return None
    references = references_in(value)
    is_own = isinstance(value, dict) and isinstance(value.get("citations"), list)
    return references if references or is_own else None


class _Answer(Struct, frozen=True):
    text: str
    citations: list[CitedSource] | None


class _SpanTree:
    """The known spans of one trace by time, and which of them stand above the others."""

    def __init__(self, known: Sequence[_Record], by_id: dict[str, _Record]) -> None:
        self.known = known
        self.by_id = by_id
        self.by_role: dict[str, list[_Record]] = {}
        tops: list[_Record] = []
        for record in known:
            role = record.facts.role  # type: ignore[union-attr]
            if role in self.by_role:
                self.by_role[role].append(record)
            else:
                self.by_role[role] = [record]
            above = by_id.get(record.parent_id)  # type: ignore[arg-type]
            if above is None or (
                (above.facts is None or above is record) and self._known_above(record) is None
            ):
                tops.append(record)
        self.tops = tops or list(known[:1])  # spans can be each other's parents, if they lie
        self.main = next((top for top in self.tops if top.parent_id is None), self.tops[0])
        self.tops.remove(self.main)
        self.tops.insert(0, self.main)

    def _known_above(self, record: _Record) -> _Record | None:
        """The next span above that a vocabulary knows."""
        above = None if record.parent_id is None else self.by_id.get(record.parent_id)
        if above is None or (above.facts is not None and above is not record):
            return above
        met = {record.span_id}
        while record.parent_id is not None and record.parent_id not in met:
            above = self.by_id.get(record.parent_id)
            if above is None:
                return None
            if above.facts is not None:
                return above
            met.add(above.span_id)
            record = above
        return None

    def with_role(self, role: str) -> list[_Record]:
        """The spans that did something, by the time at which they ended."""
        chosen = self.by_role.get(role, [])
        return sorted(chosen, key=_by_end) if len(chosen) > 1 else chosen

    def speaks(self) -> bool:
        """Whether somebody asked: a model wrote, or something holds the steps together."""
        return MODEL in self.by_role or self.main.facts.role == CHAIN  # type: ignore[union-attr]

    def retrievals(self) -> list[_Record]:
        """The retrievals; of two spans for one of them, as LlamaIndex writes, the outer counts."""
        outer: list[_Record] = []
        for record in self.with_role(RETRIEVER):
            above = self._known_above(record)
            is_inner = (
                above is not None
                and above.facts.role == RETRIEVER  # type: ignore[union-attr]
                and _same_question(record, above)
            )
            if not is_inner:
                outer.append(record)
            elif above is not None and not above.facts.hits and above.facts.lost is None:  # type: ignore[union-attr]
                above.facts.hits = record.facts.hits  # type: ignore[union-attr]
        return outer

    def question(self) -> str | None:
        """What was asked: what the outermost span was given."""
        for top in self.tops:
            facts = top.facts
            assert facts is not None
            text = facts.question or payload.question_in(facts.input)
            if text is not None:
                return text
        return None

    def answer(self) -> _Answer | None:
        """What the outermost span gave back, or else the last model."""
        tops = [top for top in self.tops if top.facts.role in (CHAIN, MODEL)]  # type: ignore[union-attr]
        for records in (tops, reversed(self.with_role(MODEL))):
            for record in records:
                output = payload.decoded(record.facts.output)  # type: ignore[union-attr]
                text = payload.answer_in(output)
                if text is not None:
                    return _Answer(text, _citations_in(output))
        return None

    def searched_files(self) -> list[dict[str, Any]]:
        """The hits of a search that the API of a model did by itself."""
        for record in [*self.tops, *self.known]:
            hits = documents.searched_files(record.facts.output, [])  # type: ignore[union-attr]
            if hits:
                return hits
        return []

    def error(self) -> str | None:
        """Why the trace failed; a step that failed inside one that went well is none."""
        for top in self.tops:
            if error := top.error or top.facts.error:  # type: ignore[union-attr]
                return error
        if self.main.parent_id is not None:  # without the first span: any step that failed
            for record in self.known:
                if error := record.error or record.facts.error:  # type: ignore[union-attr]
                    return error
        return None

    def lost(self, chosen: Sequence[_Record]) -> str | None:
        """What is missing of the hits of some spans."""
        texts = (record.facts.lost for record in chosen)  # type: ignore[union-attr]
        return next((text for text in texts if text is not None), None)

    def first(self, name: str) -> Any:
        """The first value of a fact, from the outermost span to the last."""
        for records in (self.tops, self.known):
            for record in records:
                value = getattr(record.facts, name)
                if value is not None:
                    return value
        return None

    def index(self) -> dict[str, str]:
        """What identifies the index: as the outermost spans say, then as retrievers do."""
        names: dict[str, str] = {}
        for record in (*self.tops, *self.with_role(RETRIEVER)):
            index = record.facts.index  # type: ignore[union-attr]
            if index is not None and index != names:
                names = {**index, **names}
        return dict(sorted(names.items())) if len(names) > 1 else names


def _same_question(record: _Record, above: _Record) -> bool:
    one, other = record.facts.question, above.facts.question  # type: ignore[union-attr]
    return one is None or other is None or one == other


def _union(lists: Sequence[list[dict[str, Any]] | None]) -> list[dict[str, Any]]:
    """The hits of several lists, each once, in the order in which they came."""
    if len(lists) == 1:
        return lists[0] or []
    seen: set[str] = set()
    hits: list[dict[str, Any]] = []
    for hit in (hit for listed in lists for hit in listed or ()):
        key = hit.get("id") or hit.get("text") or ""
        if key not in seen or not key:
            seen.add(key)
            hits.append(hit)
    return hits


def _reranked(
    rerankings: Sequence[_Record],
) -> tuple[list[dict[str, Any]] | None, list[dict[str, Any]] | None]:
    """The hits of the last reranker, and those it was given; None where there is no reranker."""
    if not rerankings:
        return None, None
    facts = rerankings[-1].facts
    assert facts is not None
    return facts.hits or [], facts.candidates
