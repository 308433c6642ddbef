"""Trace rows on the fast path: typed decoding of the usual shapes, many rows at a time.

A row of any other shape, or one that does not decode, is read again on the exact path, which alone
decides what is an error. The two paths give the same columns; a test compares them.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
from msgspec import UNSET, Raw, Struct, UnsetType

from ragauge.errors import MAX_REPORTED, Place, Problem
from ragauge.fields import INT64, FieldError, Row
from ragauge.model.dialect import Dialect
from ragauge.model.profile import JoinRules
from ragauge.model.trace import Trace
from ragauge.reading import Reader, decode_row
from ragauge.reduce import GoldKey, Reducer
from ragauge.source import Range, Rows, Source, read_rows
from ragauge.text import citations_in

_CHUNK = 1024


class _FastHit(Struct, gc=False):
    id: str
    chunk_id: Raw | UnsetType = UNSET
    snippet_id: Raw | UnsetType = UNSET
    block_id: Raw | UnsetType = UNSET


class _FastAnswer(Struct, gc=False):
    claim: str | None = None
    citations: list[str] | None = None
    text: Raw | UnsetType = UNSET
    refused: Raw | UnsetType = UNSET
    grounded: Raw | UnsetType = UNSET
    constraints_echo: Raw | UnsetType = UNSET


class _FastRow(Struct, gc=False):
    qid: str | None = None
    q: str | None = None
    question: str | None = None
    seed: int | None = None
    paraphrase: int | None = None
    turn: int | None = None
    retrieved_ids: list[str] | None = None
    chunks: list[_FastHit] | None = None
    answer_json: _FastAnswer | None = None
    answer: str | None = None
    citations: list[str] | None = None
    # Any of these sends the row to the exact path.
    q_id: Raw | UnsetType = UNSET
    id: Raw | UnsetType = UNSET
    query_id: Raw | UnsetType = UNSET
    query: Raw | UnsetType = UNSET
    topk: Raw | UnsetType = UNSET
    items: Raw | UnsetType = UNSET
    retrieved: Raw | UnsetType = UNSET
    hits_top_k: Raw | UnsetType = UNSET
    hits: Raw | UnsetType = UNSET
    retrieval: Raw | UnsetType = UNSET
    answer_text: Raw | UnsetType = UNSET
    answer_citations: Raw | UnsetType = UNSET
    cited_chunks: Raw | UnsetType = UNSET
    refused: Raw | UnsetType = UNSET
    grounded: Raw | UnsetType = UNSET
    constraints_echo: Raw | UnsetType = UNSET
    error: Raw | UnsetType = UNSET


class Job(Struct, frozen=True, kw_only=True):
    """All that a worker needs to reduce the ranges of one trace file."""

    source: Source
    dialect: Dialect
    own: bool
    rules: JoinRules
    keys: list[GoldKey]
    by_qid: dict[str, int]
    by_question: dict[str, int]
    patterns: tuple[str, ...] = ()


class Misplaced(Struct, frozen=True, array_like=True):
    """A problem whose line is still counted from the start of its range."""

    line: int
    problem: Problem


class Partial(Struct, frozen=True, kw_only=True):
    """The records of one range as columns, and what was counted on the way."""

    range_index: int
    columns: tuple[bytes, ...]
    slots: list[tuple[int | None, int | str | None, int | None]]
    newlines: int
    traces: int
    unknown: int
    unknown_first: tuple[tuple[int, str], ...]
    problems: tuple[Misplaced, ...]
    problem_count: int


class RangeReducer:
    """Reduces ranges of a trace file, one after another, from the last range to the first.

    Records come out in descending order too, so that the first of a slot is the one to keep.
    """

    def __init__(self, job: Job) -> None:
        self.job = job
        self.reader = Reader(job.dialect, own=job.own)
        self.reducer = Reducer(job.keys, job.rules, patterns=job.patterns)
        self.decode = msgspec.json.Decoder(_FastRow).decode
        self.plain_only = not job.patterns
        # Under `keep = last` a question that was met further down needs no second look.
        self.met: set[int] = set()
        self._begin()

    def _begin(self) -> None:
        self.traces = self.unknown = self.problem_count = 0
        self.unknown_first: list[tuple[int, str]] = []
        self.problems: list[Misplaced] = []

    def reduce(self, part: Range) -> Partial:
        """Reduce one range. Ranges must come in descending order."""
        rows = read_rows(self.job.source, part)
        is_end = part.end >= self.job.source.size
        for start in reversed(range(0, len(rows.data), _CHUNK)):
            self._chunk(rows, start, is_end=is_end)
        return self._finish(part.index, rows.newlines)

    def reduce_traces(self, traces: Sequence[Trace]) -> Partial:
        """Reduce traces that are in memory, as one range; their lines are absolute."""
        for index in reversed(range(len(traces))):
            line = traces[index].line
            self._add(traces[index], index + 1 if line is None else line)
        return self._finish(0, 0)

    def _finish(self, range_index: int, newlines: int) -> Partial:
        columns, slots = self.reducer.take()
        partial = Partial(
            range_index=range_index,
            columns=columns.to_bytes(),
            slots=slots,
            newlines=newlines,
            traces=self.traces,
            unknown=self.unknown,
            unknown_first=tuple(sorted(self.unknown_first)[:MAX_REPORTED]),
            problems=tuple(sorted(self.problems, key=_line)[:MAX_REPORTED]),
            problem_count=self.problem_count,
        )
        self._begin()
        return partial

    def _chunk(self, rows: Rows, start: int, *, is_end: bool) -> None:
        data = rows.data[start : start + _CHUNK]
        decoded: Sequence[_FastRow | None]
        try:
            if not all(map(bytes.isascii, data)):
                b"\n".join(data).decode()
            decoded = list(map(self.decode, data))
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            decoded = [self._try_decode(each) for each in data]
        for offset in reversed(range(len(data))):
            fast = decoded[offset]
            index = start + offset
            if fast is None or not self._fast(fast, rows.line(index)):
                last = is_end and index == len(rows.data) - 1
                self._exact(rows, index, last=last)

    def _try_decode(self, data: bytes) -> _FastRow | None:
        try:
            data.decode()
            return self.decode(data)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            return None

    def _find(self, qid: str | None, question: str | None) -> int | None:
        by = self.job.rules.by
        if by == "question":
            return self.job.by_question.get(question or "")
        if qid:
            return self.job.by_qid.get(qid)
        return self.job.by_question.get(question or "") if by == "either" else None

    def _count(self, code: int | None, line: int, name: str | None) -> bool:
        """Count a trace; say whether it is to be reduced."""
        self.traces += 1
        if code is None:
            self.unknown += 1
            self.unknown_first.append((line, name or "(no id)"))
            if len(self.unknown_first) > 4 * MAX_REPORTED:
                self.unknown_first = sorted(self.unknown_first)[:MAX_REPORTED]
            return False
        if self.job.rules.keep == "last":
            if code in self.met:
                return False
            self.met.add(code)
        return True

    def _fast(self, row: _FastRow, line: int) -> bool:
        """Reduce a row of the usual shape; return False if it needs the exact path."""
        if not (
            row.q_id is UNSET and row.id is UNSET and row.query_id is UNSET
            and row.query is UNSET and row.topk is UNSET and row.items is UNSET
            and row.retrieved is UNSET and row.hits_top_k is UNSET and row.hits is UNSET
            and row.retrieval is UNSET and row.answer_text is UNSET
            and row.answer_citations is UNSET and row.cited_chunks is UNSET
            and row.refused is UNSET and row.grounded is UNSET
            and row.constraints_echo is UNSET and row.error is UNSET and self.plain_only
        ):  # fmt: skip
            return False
        question = row.q
        if question is None:
            question = row.question
        elif row.question is not None:
            return False
        seed = row.seed
        if seed is not None and not -INT64 <= seed < INT64:
            return False
        hits: Sequence[str]
        if row.chunks is None:
            hits = row.retrieved_ids or ()
        elif row.retrieved_ids is None:
            chunks = row.chunks
            for hit in chunks:
                if not (
                    hit.chunk_id is UNSET and hit.snippet_id is UNSET and hit.block_id is UNSET
                ):
                    return False
            hits = [hit.id for hit in chunks]
        else:
            return False
        facts = 0
        answer = row.answer_json
        if answer is None:
            said, citations = row.answer, row.citations
            if said is not None and citations is None:
                citations = citations_in(said)
        elif row.answer is None and row.citations is None:
            if not (
                answer.text is UNSET and answer.refused is UNSET and answer.grounded is UNSET
                and answer.constraints_echo is UNSET
            ):  # fmt: skip
                return False
            said, citations = answer.claim, answer.citations
        else:
            return False
        code = self._find(row.qid, question)
        if not self._count(code, line, row.qid or question):
            return True
        assert code is not None
        if citations is not None and self.reader.strip_citations:
            citations = [each.strip() for each in citations]
        if said is not None or citations is not None:
            facts = 2  # ANSWER
        slot = (row.paraphrase, seed, row.turn)
        self.reducer.add(code, slot, line, hits, said, citations, facts)
        return True

    def _exact(self, rows: Rows, index: int, *, last: bool) -> None:
        data = rows.data[index]
        overlong = index in rows.overlong
        line = rows.line(index)
        if not overlong and not data.strip():
            return
        row: Row | None = None
        try:
            row = decode_row(data, last=last, overlong=overlong)
            trace = self.reader.trace(row)
        except FieldError as error:
            self.problem_count += 1
            problem = self.reader.problem(error, row, Place(self.job.source.name))
            self.problems.append(Misplaced(line, problem))
            if len(self.problems) > 4 * MAX_REPORTED:
                self.problems = sorted(self.problems, key=_line)[:MAX_REPORTED]
            return
        self._add(trace, line)

    def _add(self, trace: Trace, line: int) -> None:
        code = self._find(trace.qid, trace.question)
        if self._count(code, line, trace.qid or trace.question):
            assert code is not None
            self.reducer.add_trace(code, trace, line)


def _line(entry: Misplaced) -> int:
    return entry.line
