"""Judgements from TREC qrels files, grouped by query, and the rows of both kinds of TREC file."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import accumulate
from typing import NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray

from ragauge.files.ranges import Source
from ragauge.formats.trec.lines import (
    BEIR,
    BLOCK_BYTES,
    QRELS,
    RUN,
    BadLine,
    BadLines,
    LineForm,
    Lines,
    Number,
    exact_rows,
    in_blocks,
    parse,
)
from ragauge.formats.trec.tokens import (
    HashTable,
    Index,
    Tokens,
    Words,
    fingerprints,
    keys,
    padded,
    run_starts,
)

_HEAD = 64 * 1024
_BATCH = 1 << 17  # judged documents whose repeats are looked for at a time
_BEIR_HEADER = [name.encode() for name in BEIR.fields]


class TrecRow(NamedTuple):
    """A judgement or a result as its line has it; the number is its grade or its score."""

    line: int
    qid: str
    docid: str
    number: Number


@dataclass(frozen=True, slots=True, eq=False)
class Qrels:
    """The judgements of a file by query; query i owns judgements offsets[i] to offsets[i + 1].

    Queries and judgements are in the order of their first lines. Of two lines for one document of
    a query the last one gives the grade; `duplicates` counts the lines that lost.
    """

    qids: list[str]
    offsets: Index
    docs: Tokens
    grade: NDArray[np.int32]
    first_line: NDArray[np.int32]
    lines: int
    duplicates: int
    problems: tuple[BadLine, ...]
    problem_count: int
    codes: dict[bytes, int]  # the number of a query by the bytes of its id
    fingerprint: Words


def read_qrels(source: Source, *, threads: int = 2, block_bytes: int = BLOCK_BYTES) -> Qrels:
    """Read a TREC qrels file, or a BEIR one with its header."""
    form, source, before = _qrels_form(source)
    parts = in_blocks(source, form, _judged, threads=threads, block_bytes=block_bytes)
    parts = parts or [_judged(parse(padded(b""), 0, form), 0)]
    queries = _number(parts, before)
    rows = _join(parts, queries)
    total = len(rows.query)
    if (rows.query[1:] < rows.query[:-1]).any():  # the lines of a query are not together
        rows = rows.pick(np.argsort(rows.query, kind="stable"))
    offsets = _offsets(rows.query, len(queries.names))
    last = _last_grades(rows, offsets)
    if last is not None:
        rows = rows.pick(last)
        offsets = _offsets(rows.query, len(queries.names))
    return Qrels(
        qids=[qid.decode() for qid in queries.names],
        offsets=offsets,
        docs=rows.docs,
        grade=rows.grade,
        first_line=queries.first_line.astype(np.int32),
        lines=total,
        duplicates=total - len(rows.docs),
        problems=tuple(queries.trouble.first),
        problem_count=queries.trouble.total,
        codes={qid: number for number, qid in enumerate(queries.names)},
        fingerprint=rows.fingerprint,
    )


class _Judged(NamedTuple):
    """What is kept of a block of qrels: its judgements, and its runs of lines of one query."""

    qids: list[bytes]
    first_lines: Index
    counts: Index
    docs: Tokens
    grade: NDArray[np.int32]
    fingerprint: Words
    lines: int
    trouble: BadLines


def _judged(lines: Lines, _start: int) -> _Judged:
    first = run_starts(lines.qid)
    return _Judged(
        qids=lines.qid.pick(first).all(),
        first_lines=lines.line(first),
        counts=np.diff(first, append=len(lines.qid)),
        docs=lines.docid,
        grade=lines.number.astype(np.int32, copy=False),
        fingerprint=fingerprints(lines.docid),
        lines=lines.count,
        trouble=lines.trouble,
    )


class _Queries(NamedTuple):
    """The queries of all blocks, in the order of their first lines."""

    names: list[bytes]
    first_line: Index
    number: Index  # of each run of lines of one query
    trouble: BadLines


def _number(parts: list[_Judged], before: int) -> _Queries:
    first_run: dict[bytes, int] = {}
    runs: list[int] = []
    lines: list[Index] = []
    trouble = BadLines()
    for part in parts:
        runs += map(first_run.setdefault, part.qids, range(len(runs), len(runs) + len(part.qids)))
        lines.append(part.first_lines + before)
        trouble.merge(part.trouble, before)
        before += part.lines
    first = np.array(runs, np.int64)
    is_first = first == np.arange(len(runs))
    number = (np.cumsum(is_first) - 1)[first]
    return _Queries(list(first_run), np.concatenate(lines)[is_first], number, trouble)


class _Judgements(NamedTuple):
    """The judgements of all blocks."""

    query: Index
    docs: Tokens
    grade: NDArray[np.int32]
    fingerprint: Words

    def pick(self, chosen: Index) -> _Judgements:
        """Choose some of the judgements, in any order."""
        docs, grade = self.docs.pick(chosen), self.grade[chosen]
        return _Judgements(self.query[chosen], docs, grade, self.fingerprint[chosen])


def _join(parts: list[_Judged], queries: _Queries) -> _Judgements:
    begins = accumulate((len(part.docs.text) for part in parts), initial=0)
    docs = Tokens(
        np.concatenate([part.docs.text for part in parts]),
        np.concatenate(
            [part.docs.start + begin for part, begin in zip(parts, begins, strict=False)]
        ),
        np.concatenate([part.docs.size for part in parts]),
    )
    return _Judgements(
        np.repeat(queries.number, np.concatenate([part.counts for part in parts])),
        docs,
        np.concatenate([part.grade for part in parts]),
        np.concatenate([part.fingerprint for part in parts]),
    )


def _offsets(query: Index, queries: int) -> Index:
    out = np.zeros(queries + 1, np.int64)
    np.cumsum(np.bincount(query, minlength=queries), out=out[1:])
    return out


def _last_grades(rows: _Judgements, offsets: Index) -> Index | None:
    """Give the first of two judgements of a document the grade of the last; say which stay."""
    query = rows.query
    suspects: set[int] = set()
    begin = 0
    while begin < len(query):
        # Up to the end of the query that fills the batch.
        end = int(offsets[query[min(begin + _BATCH, len(query)) - 1] + 1])
        here = slice(begin, end)
        slots = HashTable(keys(rows.fingerprint[here], query[here]))
        suspects.update(query[here][slots.later].tolist())
        begin = end
    dropped: list[int] = []
    for number in suspects:
        first: dict[bytes, int] = {}
        for index in range(int(offsets[number]), int(offsets[number + 1])):
            earliest = first.setdefault(rows.docs.get(index), index)
            if earliest != index:
                rows.grade[earliest] = rows.grade[index]
                dropped.append(index)
    return np.delete(np.arange(len(query)), dropped) if dropped else None


def _qrels_form(source: Source) -> tuple[LineForm, Source, int]:
    """Tell the form of a qrels file by its first line; a header is skipped, and counted."""
    with open(source.path, "rb") as file:
        file.seek(source.start)
        head = file.read(_HEAD)
    body = head.lstrip()
    header, _, _ = body.partition(b"\n")
    if header.split() != _BEIR_HEADER:
        return QRELS, source, 0
    skipped = len(head) - len(body) + len(header)
    skipped += head[skipped : skipped + 1] == b"\n"
    after = msgspec.structs.replace(source, start=source.start + skipped)
    return BEIR, after, head[:skipped].count(b"\n")


def qrels_rows(source: Source) -> Iterator[TrecRow | BadLine]:
    """Yield the judgements of a qrels file in file order, and the bad lines in their places."""
    form, source, before = _qrels_form(source)
    return _rows(source, form, before)


def run_rows(source: Source) -> Iterator[TrecRow | BadLine]:
    """Yield the results of a run file in file order, and the bad lines in their places."""
    return _rows(source, RUN, 0)


def _rows(source: Source, form: LineForm, before: int) -> Iterator[TrecRow | BadLine]:
    with open(source.path, "rb") as file:
        file.seek(source.start)
        for row in exact_rows(file, source.size - source.start, form):
            if isinstance(row, BadLine):
                yield msgspec.structs.replace(row, line=row.line + before)
            elif row is not None:
                qid, docid = row.fields[form.qid].decode(), row.fields[form.docid].decode()
                yield TrecRow(row.line + before, qid, docid, row.number)
