"""Trace rows to columns: on the fast path many rows at a time, else on the exact path one by one.

A row that the fast path cannot read is read again on the exact path, which alone decides what is an
error. The two paths give the same columns; a test compares them.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence, Set
from itertools import chain
from typing import NamedTuple, cast

import msgspec

from ragauge.corpus.hit_placer import HitPlacer
from ragauge.corpus.place_index import PlaceIndex
from ragauge.errors import MAX_REPORTED, Place
from ragauge.files.fields import FieldError, Row
from ragauge.files.ranges import Range, Rows, read_rows
from ragauge.formats.fast_rows import FastAnswer, FastDecoder, FastRow
from ragauge.formats.hits import TEXT_ID
from ragauge.formats.json_rows import decode_row, duplicate_key_error
from ragauge.formats.traces import RowReader
from ragauge.ids import parts_of
from ragauge.metrics.facts import Fact
from ragauge.model.chunk import Chunk
from ragauge.model.payloads import trace_of, unreadable
from ragauge.model.trace import Citation, Hit, Trace
from ragauge.scoring.chunk_facts import wanted_ids
from ragauge.scoring.packed_texts import UnpackedValues
from ragauge.scoring.placement_counts import PlacementCounts
from ragauge.scoring.tasks.asked_questions import AskedQuestions
from ragauge.scoring.tasks.job import Job, Misplaced, NamedHits, Partial
from ragauge.scoring.tasks.row_notes import NotedRows, RowNotes
from ragauge.scoring.trace_columns import Reducer, SlotName, slot_name
from ragauge.spans import place_name
from ragauge.text import question_key

_LONGEST_EXAMPLE = 60
"""Of a text that is shown as an example."""

_CHUNK = 512
_CITES_IN_TEXT = int(Fact.CITES_IN_TEXT)


class Usual(NamedTuple):
    """What a row of a usual shape says."""

    question: str | None
    hits: Sequence[str]
    said: str | None
    citations: Sequence[str] | None
    facts: int


class RangeReducer:
    """Reduces ranges of a trace file, one after another, from the last range to the first.

    Records come out in descending order too, so that the first of a slot is the one to keep.
    """

    def __init__(self, job: Job) -> None:
        self.job = job
        self.reader = RowReader(job.dialect, own=job.own, sole=job.sole)
        self.reducer = Reducer(
            job.keys,
            job.rules,
            count_repeats=job.count_repeats,
            note_open=job.note_open,
            chunks=job.chunks,
            options=job.options,
            bytes_too=job.bytes_too,
        )
        # Nothing that is scored depends on fields that nothing reads; a trace that is read in full
        # has them.
        closed = self.reader.closed_trace
        self.fast = FastDecoder(unread=True, closed=closed)
        self.fast_in_full = FastDecoder(unread=False, closed=closed)
        self.pend = self.reducer.pending.append
        self.by_qid = UnpackedValues(job.keys.by_qid.last).__getitem__
        self.by_question = UnpackedValues(job.keys.by_question.only).__getitem__
        self.by_question_only = job.rules.by == "question"
        self.keep_last = job.rules.keep == "last"
        self.strip_citations = self.reader.strip_citations
        self.cites_in_text = self.reader.cites_in_text
        # Places and lists of chunks are looked up for each trace by itself.
        self.exact_only = bool(job.keys.details or job.chunks or job.stored)
        self.by_columns = not (
            self.by_question_only
            or self.strip_citations
            or self.exact_only
            or job.paraphrases
            or job.by_turn
            or job.measured is not None
        )
        self.placer: HitPlacer | None = None
        if job.places is not None:
            quoted = any(details.quoted for details in job.keys.details.values())
            self.placer = HitPlacer(PlaceIndex(job.places), job.chunks, texts=quoted)
        self.placements = PlacementCounts(job.keys, job.chunks)
        # Under `keep = last` a question that was met further down needs no second look.
        self.met = bytearray(len(job.keys.evidence))
        self.notes = RowNotes(wanted_ids(job.keys), job.chunks) if job.note_rows else None
        self.asked = AskedQuestions(job.keys.asked)
        self.row = 0
        self._begin()

    def _begin(self) -> None:
        self.traces = self.unknown = self.beside = self.problem_count = 0
        self.by_text = self.ambiguous = 0
        self.crlf = False
        self.unknown_first: list[tuple[int, str]] = []
        self.problems: list[Misplaced] = []
        self.duplicate_keys: list[tuple[int, str]] = []
        self.duplicate_key_count = 0
        self.closed: dict[str, tuple[int, int]] = {}

    def reduce(self, part: Range) -> Partial:
        """Reduce one range. Ranges must come in descending order."""
        rows = read_rows(self.job.source, part)
        is_end = part.end >= self.job.source.size
        for start in reversed(range(0, len(rows.data), _CHUNK)):
            self._chunk(rows, start, is_end=is_end)
        if self.job.check_keys:
            for index, row in enumerate(rows.data):
                self._check_keys(row, rows.line(index))
        noted = None if self.notes is None else self.notes.take(part, rows)
        return self._finish(part.index, rows.newlines, noted)

    def reduce_traces(self, traces: Sequence[Trace]) -> Partial:
        """Reduce traces that are in memory, as one range; their lines are absolute."""
        for index in reversed(range(len(traces))):
            self.row, line = index, traces[index].line
            self._add(traces[index], index + 1 if line is None else line)
        noted = None if self.notes is None else self.notes.take_traces(traces)
        return self._finish(0, 0, noted)

    def scan(self, part: Range, wanted: Set[str]) -> set[str]:
        """Which of some ids are among the hits of a range's rows."""
        rows = read_rows(self.job.source, part)
        retrieved: set[str] = set()
        for start in range(0, len(rows.data), _CHUNK):
            data = rows.data[start : start + _CHUNK]
            decoded = self.fast.rows(data) if self.by_columns else None
            if decoded is not None and decoded[0].hit_kind == "ids":
                hits = chain.from_iterable(row.hits or () for row in decoded)
            else:
                hits = chain.from_iterable(self._hits_of(row) for row in data)
            retrieved.update(chunk_id for chunk_id in hits if chunk_id in wanted)
        return retrieved

    def name_hits(self, part: Range, names: Set[str]) -> NamedHits:
        """What the hits and citations of a range's rows are known by; `names` are those of gold."""
        named = NamedHits()
        for data in read_rows(self.job.source, part).data:
            trace = self.read(data) if data.strip() else None
            if trace is not None:
                named |= named_hits(trace, names, self.job.chunks)
        return named

    def _hits_of(self, data: bytes) -> Sequence[str]:
        row = None if self.exact_only else self.try_decode(data)
        usual = None if row is None else self.usual(row)
        if usual is not None:
            return usual.hits
        if not data.strip():
            return ()
        trace = self.read(data)
        return () if trace is None else hits_of(trace)

    def read(self, data: bytes, line: int | None = None) -> Trace | None:
        """Read a row in full once more; None for a bad line, which was counted before."""
        try:
            if self.job.stored:
                return self.placed(trace_of(data))
            trace = self.fast_in_full.trace(
                data,
                line,
                strip_citations=self.strip_citations,
                cites_in_text=self.cites_in_text,
            )
            if trace is None:
                trace = self.reader.trace(decode_row(data, cut=False, overlong=False), line)
            return self.placed(trace)
        except (FieldError, msgspec.DecodeError):
            return None

    def placed(self, trace: Trace) -> Trace:
        """The trace with its hits placed in the corpus, where there is one."""
        return trace if self.placer is None else self.placer.trace(trace)

    def _finish(self, range_index: int, newlines: int, noted: NotedRows | None) -> Partial:
        columns, slots = self.reducer.take()
        partial = Partial(
            range_index=range_index,
            columns=columns,
            slots=slots,
            newlines=newlines,
            crlf=self.crlf,
            traces=self.traces,
            unknown=self.unknown,
            unknown_first=tuple(sorted(self.unknown_first)[:MAX_REPORTED]),
            problems=tuple(sorted(self.problems, key=_line)[:MAX_REPORTED]),
            problem_count=self.problem_count,
            embedders=tuple(sorted(self.reducer.detail.embedders)),
            beside=self.beside,
            noted=noted,
            duplicate_keys=tuple(sorted(self.duplicate_keys)[:MAX_REPORTED]),
            duplicate_key_count=self.duplicate_key_count,
            closed=self.closed,
            placements=self.placements.take(),
            prefixes=tuple(sorted(self.placements.prefixes)),
            by_text=self.by_text,
            ambiguous=self.ambiguous,
            asked=self.asked.take(),
        )
        self._begin()
        return partial

    def _chunk(self, rows: Rows, start: int, *, is_end: bool) -> None:
        data = rows.data[start : start + _CHUNK]
        # A look at both ends: files of two writers have their line ends in stretches.
        self.crlf = self.crlf or data[0].endswith(b"\r") or data[-1].endswith(b"\r")
        if self.by_columns and rows.lines is None:
            decoded = self.fast.rows(data)
            if decoded is not None and self._columns(decoded, start):
                return
        index = start + len(data)
        for row in reversed(data):
            index -= 1
            self.row = index
            fast = None if self.job.stored else self.fast.row(row)
            if fast is None or not self._fast(fast, row, rows.line(index)):
                cut = is_end and not rows.ended and index == len(rows.data) - 1
                self._exact(rows, index, cut=cut)
        self.reducer.flush()

    def _columns(self, rows: list[FastRow], start: int) -> bool:
        """Reduce rows by columns, all steps on all rows; False if they are not plain enough."""
        if rows[0].hit_kind != "ids" or not rows[0].answer_is_object:
            return False
        rows.reverse()
        qids = [row.qid for row in rows]
        answers: list[FastAnswer] = [row.answer for row in rows]
        if not all(qids) or None in answers or any(row.text is not None for row in answers):
            return False
        if any(row.total_ms is not None or row.perf is not None for row in rows):
            return False
        if any(row.tokens is not None or row.cost is not None for row in rows):
            return False
        lines: Sequence[int] = range(start + len(rows) - 1, start - 1, -1)
        codes = list(map(self.by_qid, cast("list[str]", qids)))
        self.traces += len(rows)
        if self.asked.questions:
            self.asked.add_all(codes, [row.question for row in rows], lines)
        if self.notes is not None:
            for code, slot, row, line in zip(codes, _slots(rows), rows, lines, strict=True):
                self.notes.note_hits(row.hits or ())
                if code is not None:
                    self.notes.note(code, slot, line)
        if None in codes or self.keep_last:
            to_reduce = []
            for place, code in enumerate(codes):
                if code is None:
                    self._unknown(lines[place], rows[place].qid)
                elif not self.keep_last:
                    to_reduce.append(place)
                elif not self.met[code]:
                    self.met[code] = 1
                    to_reduce.append(place)
            rows = [rows[place] for place in to_reduce]
            answers = [answers[place] for place in to_reduce]
            codes = [codes[place] for place in to_reduce]
            lines = [lines[place] for place in to_reduce]
        self.reducer.reduce(
            cast("list[int]", codes),
            _slots(rows),
            lines,
            [row.hits or () for row in rows],
            [answer.claim for answer in answers],
            [answer.citations for answer in answers],
            [0] * len(rows),
        )
        return True

    def try_decode(self, data: bytes) -> FastRow | None:
        """Decode a row of a usual shape; None if it is for the exact path."""
        return self.fast.row(data)

    def usual(self, row: FastRow) -> Usual | None:
        """What a row says that gives no more of its hits than ids and texts; None for others."""
        if row.hit_kind == "places":
            return None
        claim, text, citations, in_text = row.answered(cites_in_text=self.cites_in_text)
        if citations is not None and self.strip_citations:
            citations = [chunk_id.strip() for chunk_id in citations]
        said = text if claim is None else claim
        return Usual(row.question, row.hit_ids, said, citations, _CITES_IN_TEXT if in_text else 0)

    def _fast(self, row: FastRow, data: bytes, line: int) -> bool:
        """Reduce a row of a usual shape; return False if it needs the exact path."""
        usual = None if self.exact_only else self.usual(row)
        if usual is None:
            trace = row.trace(
                None, strip_citations=self.strip_citations, cites_in_text=self.cites_in_text
            )
            if trace is None:
                return False
            try:
                self._add(trace, line)
            except FieldError as error:  # offsets of another unit than those of the gold
                self._problem(error, decode_row(data, cut=False, overlong=False), line)
            return True
        question, hits, said, citations, facts = usual
        code = self.find(row.qid, row.question, row.turn)
        if self._admit(row, line, code):
            assert code is not None
            timing = row.timing()
            if timing is not None:
                self.reducer.note_times(timing.retrieve, timing.reason, timing.total)
            usage = row.usage()
            if usage is not None:
                self.reducer.note_usage(usage)
            paraphrase = self.paraphrase(code, row.paraphrase, question)
            slot = slot_name(paraphrase, row.seed, row.turn)
            self.pend((code, slot, line, hits, said, citations, facts))
        return True

    def paraphrase(self, code: int, number: int | None, question: str | None) -> int | None:
        """The number of the paraphrase: as given, or found by its text."""
        if number is not None or code not in self.job.paraphrases:
            return number
        paraphrases = self.job.paraphrases[code]
        exact = paraphrases.get(question or "")
        if exact is not None or self.by_question_only:
            return exact
        key = question_key(question)
        return next(
            (place for text, place in paraphrases.items() if question_key(text) == key), None
        )

    def _admit(self, row: FastRow | Trace, line: int, code: int | None) -> bool:
        """Count a trace of a question; return whether it is to be reduced."""
        self.traces += 1
        if self.notes is not None:
            self.notes.note_hits(row.hits or ())
        if not row.qid and self.job.rules.by == "either":
            if code is not None:
                self.by_text += 1
            elif len(self.job.keys.by_question.numbers(question_key(row.question))) > 1:
                self.ambiguous += 1
        if code is None:
            self._unknown(line, row.qid or row.question)
            return False
        self.beside += self._is_beside(code)
        self.asked.add(code, row.question, line)
        if self.notes is not None:
            paraphrase = self.paraphrase(code, row.paraphrase, row.question)
            slot = slot_name(paraphrase, row.seed, row.turn)
            self.notes.note(code, slot, self.row)
        if self.keep_last:
            if self.met[code]:
                return False
            self.met[code] = 1
        return True

    def _is_beside(self, code: int) -> bool:
        """Whether a question is not measured."""
        return self.job.measured is not None and code >= self.job.measured

    def find(self, qid: str | None, question: str | None, turn: int | None) -> int | None:
        """The gold item that a trace belongs to."""
        if self.by_question_only:
            return self.by_question(question or "")
        if qid:
            turns = self.job.by_turn.get(qid)
            if turns is not None and turn in turns:
                return turns[turn]
            return self.by_qid(qid)
        return self.by_question(question_key(question)) if self.job.rules.by == "either" else None

    def _unknown(self, line: int, name: str | None) -> None:
        self.unknown += 1
        self.unknown_first.append((line, name or "(no id)"))
        if len(self.unknown_first) > 4 * MAX_REPORTED:
            self.unknown_first = sorted(self.unknown_first)[:MAX_REPORTED]

    def _exact(self, rows: Rows, index: int, *, cut: bool) -> None:
        data = rows.data[index]
        if self.job.stored:
            self._stored(data)
            return
        overlong = index in rows.overlong
        line = rows.line(index)
        if not overlong and not data.strip():
            return
        row: Row | None = None
        try:
            row = decode_row(data, cut=cut, overlong=overlong)
            self._add(self.reader.trace(row), line)
        except FieldError as error:
            self._problem(error, row, line)
        else:
            for name in self.reader.closed_names(row):
                count, first = self.closed.get(name, (0, line))
                self.closed[name] = count + 1, min(line, first)
            if not self.job.check_keys:
                self._check_keys(data, line)

    def _check_keys(self, data: bytes, line: int) -> None:
        """Count a row that has a key twice in one object."""
        error = duplicate_key_error(data)
        if error is None:
            return
        # Which rows take the exact path may depend on the rows around them, and a count must not:
        # those that the fast path could have read are left to `validate`.
        fresh = FastDecoder(unread=True, closed=self.reader.closed_trace)
        if not self.job.check_keys and fresh.row(data) is not None:
            return
        self.duplicate_key_count += 1
        self.duplicate_keys.append((line, error.message))
        if len(self.duplicate_keys) > 4 * MAX_REPORTED:
            self.duplicate_keys = sorted(self.duplicate_keys)[:MAX_REPORTED]

    def _problem(self, error: FieldError, row: Row | None, line: int) -> None:
        self.problem_count += 1
        problem = self.reader.problem(error, row, Place(self.job.source.name))
        self.problems.append(Misplaced(line, problem))
        if len(self.problems) > 4 * MAX_REPORTED:
            self.problems = sorted(self.problems, key=_line)[:MAX_REPORTED]

    def _stored(self, data: bytes) -> None:
        trace = self.read(data)
        if trace is not None:
            self._add(trace, trace.line or 0)
            return
        self.problem_count += 1
        problem = unreadable(self.job.source.name)
        self.problems.append(Misplaced(0, problem))

    def _add(self, trace: Trace, line: int) -> None:
        """Reduce a trace, then count it: one that is refused is a bad line and nothing else."""
        code = self.find(trace.qid, trace.question, trace.turn)
        if code is not None:
            trace = self.placed(trace)
        if code is not None and not (self.keep_last and self.met[code]):
            paraphrase = self.paraphrase(code, trace.paraphrase, trace.question)
            slot = slot_name(paraphrase, trace.seed, trace.turn)
            detail = self.reducer.detail
            embedders = set(detail.embedders)
            try:
                self.reducer.add_trace(code, slot, trace, line)
            except FieldError:
                detail.embedders = embedders
                raise
            if self._is_beside(code):  # no ΔS that is measured comes from its embedder
                detail.embedders = embedders
        if code is not None and not self._is_beside(code):
            self.placements.add(code, trace)
        self._admit(trace, line, code)


def _slots(rows: Sequence[FastRow]) -> list[SlotName]:
    paraphrases = [row.paraphrase for row in rows]
    turns = [row.turn for row in rows]
    if paraphrases.count(None) == turns.count(None) == len(rows):
        return [row.seed for row in rows]
    return [slot_name(row.paraphrase, row.seed, row.turn) for row in rows]


def hits_of(trace: Trace) -> list[str]:
    """The ids that a trace retrieved, and the names of their places; none if it has an error."""
    if trace.error is not None:
        return []
    names = [hit.id for hit in trace.hits]
    for hit in trace.hits:
        if hit.spans:
            docs = (hit.doc, hit.path)
            names += [place_name(doc, hit.spans) for doc in docs if doc is not None]
        elif hit.spot is not None:
            names.append(hit.spot)
    return names


def named_hits(trace: Trace, names: Set[str], chunks: Mapping[str, Chunk]) -> NamedHits:
    """What the hits and citations of a trace are known by."""
    cited = trace.answer.listed if trace.answer is not None else ()
    things: list[Hit | Citation] = [*trace.hits, *cited]
    called = [thing for thing in things if not (isinstance(thing, Citation) and thing.placed)]
    ids = [thing.id for thing in called]
    parts = [parts_of(name) for name in ids]
    docs = {thing.doc for thing in things} | {hit.path for hit in trace.hits}
    docs |= {part.doc for part in parts}
    documents = docs - {None}
    named = [parts_of(hit.id).doc for hit in trace.hits]
    of_hits = {name for hit in trace.hits for name in (hit.id, hit.doc, hit.path)}.union(named)
    return NamedHits(
        matched=not names.isdisjoint((*ids, *documents)),
        placed=any(thing.spans for thing in things),
        listed=not chunks.keys().isdisjoint(ids),
        documented=bool(documents),
        quotable=any(hit.text for hit in trace.hits),
        example=next(map(_shown_name, called), None),
        retrieved=not of_hits.isdisjoint(names),
        example_hit=next(map(_shown_name, trace.hits), None),
        ending=next((doc for doc in sorted(map(str, documents)) if _ends_as_one(doc, names)), None),
        identified=any(hit.doc or hit.path or not hit.id.startswith(TEXT_ID) for hit in trace.hits),
    )


def _ends_as_one(doc: str, names: Set[str]) -> bool:
    """Whether a document is one of some names with folders before it."""
    parts = re.split(r"[/\\]", doc)
    return any("/".join(parts[place:]) in names for place in range(1, len(parts)))


def _shown_name(thing: Hit | Citation) -> str:
    """What a hit or a citation is called, for a reader: a name made of a text is that text."""
    if isinstance(thing, Hit) and thing.text and thing.id.startswith(TEXT_ID):
        words = " ".join(thing.text.split())
        cut = len(words) > _LONGEST_EXAMPLE
        return f'the text "{words[:_LONGEST_EXAMPLE].rstrip() + "..." if cut else words}"'
    return f"`{thing.id}`"


def _line(entry: Misplaced) -> int:
    return entry.line
