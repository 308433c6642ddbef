"""A TREC run against qrels: the rank of every judged document in the list of its query.

Lists are ordered as trec_eval orders them: by score in single precision, the highest first, and
equal scores by the bytes of the document id, the largest first. The file's own order and the rank
column count for nothing.
"""

from __future__ import annotations

import mmap
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import repeat
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ragauge.files.ranges import Source
from ragauge.formats.trec.lines import BLOCK_BYTES, RUN, BadLine, BadLines, Lines, in_blocks, parse
from ragauge.formats.trec.qrels import Qrels
from ragauge.formats.trec.tokens import (
    Flags,
    HashTable,
    Index,
    Tokens,
    Words,
    equal,
    fingerprints,
    keys,
    less,
    padded,
    run_starts,
)

MOST_UNKNOWN = 20
_LONGEST_SORTED = 256  # bytes of an id; longer ones are sorted one by one
_NONE = np.zeros(0, np.bool_)


class UnknownQuery(NamedTuple):
    """A query of the run that has no judgements, and its first line."""

    qid: str
    line: int


@dataclass(frozen=True, slots=True, eq=False)
class MatchedRun:
    """What a run says about the judged documents; the counts are over the queries of the qrels."""

    rank: NDArray[np.int32]  # of each judgement: from 0, or -1 if it was not retrieved
    hits: NDArray[np.int32]  # of each query: the length of its list
    seen: Flags
    first_line: NDArray[np.int32]  # 0 if the run does not have the query
    unknown: tuple[UnknownQuery, ...]  # the first few
    unknown_count: int
    lines: int
    disordered: int  # queries whose lines are not in the order of their scores
    repeated: int  # queries with a document more than once
    problems: tuple[BadLine, ...]
    problem_count: int


class _BlockRanks(NamedTuple):
    """What is kept of a block: its runs of lines of one query, and the ranks found in them."""

    query: Index
    length: Index
    first_line: Index
    begin: Index  # where each run of lines is in the file
    end: Index
    disordered: Flags
    repeated: Flags
    judged: Index
    rank: Index
    unknown: dict[bytes, int]
    usable: int
    lines: int
    trouble: BadLines


def match(
    qrels: Qrels, source: Source, *, threads: int = 2, block_bytes: int = BLOCK_BYTES
) -> MatchedRun:
    """Find the judged documents in a run file."""

    def work(lines: Lines, start: int) -> _BlockRanks:
        return _match_lines(qrels, lines, start)

    parts = in_blocks(source, RUN, work, threads=threads, block_bytes=block_bytes)
    out = _Result(qrels)
    for part in parts:
        out.add(part)
    runs = [part.query for part in parts]
    split = np.bincount(np.concatenate(runs), minlength=len(qrels.qids)) > 1 if runs else _NONE
    if split.any():  # by the edge of a block, or because its lines are not together
        with (
            open(source.path, "rb") as file,
            mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as whole,
        ):
            for text in _together(parts, split, whole, block_bytes):
                out.put(_match_lines(qrels, parse(padded(text), len(text), RUN), 0))
    return out.matched()


class _Result:
    """Collects the parts in file order."""

    def __init__(self, qrels: Qrels) -> None:
        queries = len(qrels.qids)
        self.rank = np.full(len(qrels.docs), -1, np.int32)
        self.hits = np.zeros(queries, np.int32)
        self.first_line = np.zeros(queries, np.int32)
        self.disordered = np.zeros(queries, np.bool_)
        self.repeated = np.zeros(queries, np.bool_)
        self.unknown: dict[bytes, int] = {}
        self.trouble = BadLines()
        self.usable = self.lines = 0

    def add(self, part: _BlockRanks) -> None:
        """Add what the next block has."""
        fresh = np.flatnonzero(self.hits[part.query] == 0)[::-1]  # the first of two is written last
        self.first_line[part.query[fresh]] = part.first_line[fresh] + self.lines
        self.put(part)
        for name, line in part.unknown.items():
            self.unknown.setdefault(name, line + self.lines)
        self.trouble.merge(part.trouble, self.lines)
        self.lines += part.lines
        self.usable += part.usable

    def put(self, part: _BlockRanks) -> None:
        """Take over what was found for the queries of a part, in place of what was known."""
        self.hits[part.query] = part.length
        self.rank[part.judged] = part.rank
        self.disordered[part.query] = part.disordered
        self.repeated[part.query] = part.repeated

    def matched(self) -> MatchedRun:
        """Return the whole."""
        first_unknown = list(self.unknown.items())[:MOST_UNKNOWN]
        return MatchedRun(
            rank=self.rank,
            hits=self.hits,
            seen=self.hits > 0,
            first_line=self.first_line,
            unknown=tuple(UnknownQuery(name.decode(), line) for name, line in first_unknown),
            unknown_count=len(self.unknown),
            lines=self.usable,
            disordered=int(np.count_nonzero(self.disordered)),
            repeated=int(np.count_nonzero(self.repeated)),
            problems=tuple(self.trouble.first),
            problem_count=self.trouble.total,
        )


def _match_lines(qrels: Qrels, lines: Lines, start: int) -> _BlockRanks:
    """Find the judged documents of a block, as if no query went on outside it."""
    first = run_starts(lines.qid)
    names = lines.qid.pick(first).all()
    query = np.fromiter(map(qrels.codes.get, names, repeat(-1)), np.int64, len(names))
    count = np.diff(first, append=len(lines.qid))
    first_line = lines.line(first)
    begin = lines.origin[first] + start
    end = np.append(begin, start + lines.size)[1:]
    docs, score = lines.docid, lines.number
    is_known = query >= 0
    unknown: dict[bytes, int] = {}
    if not is_known.all():
        for index in np.flatnonzero(~is_known).tolist():
            unknown.setdefault(names[index], int(first_line[index]))
        of_known = np.repeat(is_known, count)
        docs, score = docs.pick(of_known), score[of_known]
        query, count, first_line = query[is_known], count[is_known], first_line[is_known]
        begin, end = begin[is_known], end[is_known]
    lists = _RankedLists(docs, query, count, np.repeat(np.arange(len(query)), count))
    lists, disordered = _in_order(lists, score)
    judged, owner = _judgements(qrels.offsets, query)
    place, repeated = _find(qrels, lists, judged, owner)
    rank = np.where(place < 0, -1, place - (np.cumsum(count) - count)[owner])
    return _BlockRanks(
        query,
        count,
        first_line,
        begin,
        end,
        disordered,
        repeated,
        judged,
        rank.astype(np.int32),
        unknown,
        len(lines.qid),
        lines.count,
        lines.trouble,
    )


class _RankedLists(NamedTuple):
    """Runs of lines of one query: their documents, and of each run its query and its length."""

    docs: Tokens
    query: Index
    length: Index
    run: Index  # of each document


def _in_order(lists: _RankedLists, score: NDArray[np.generic]) -> tuple[_RankedLists, Flags]:
    """Order each run as trec_eval does; also say which runs were not in that order."""
    bits = (score.astype(np.float32) + np.float32(0)).view(np.uint32)  # -0 and 0 are equal
    bits = np.where(bits >> 31, bits, ~bits & np.uint32(0x7FFFFFFF))  # the highest score is first
    place = (lists.run.astype(np.uint64) << np.uint64(32)) | bits
    wrong = place[1:] < place[:-1]
    tied = np.flatnonzero(place[1:] == place[:-1])
    if len(tied):
        wrong[tied] = less(lists.docs.pick(tied), lists.docs.pick(tied + 1))
    disordered = np.zeros(len(lists.query), np.bool_)
    if not wrong.any():
        return lists, disordered
    disordered[lists.run[1:][wrong]] = True
    order = np.arange(len(place))
    some = np.flatnonzero(disordered[lists.run])
    order[some] = _sorted(some, place, lists.docs)
    return lists._replace(docs=lists.docs.pick(order)), disordered


def _sorted(some: Index, place: Words, docs: Tokens) -> Index:
    """Sort lines by their place, and those of one place by their document, the largest first."""
    out = some[np.argsort(place[some])]
    value = place[out]
    same = value[1:] == value[:-1]
    tied = np.zeros(len(out), np.bool_)
    tied[1:] |= same
    tied[:-1] |= same
    at = np.flatnonzero(tied)
    if len(at):
        out[at] = out[at][_by_document(docs.pick(out[at]), value[at])]
    return out


def _by_document(docs: Tokens, value: Words) -> Index:
    longest = docs.longest()
    if longest <= _LONGEST_SORTED:
        words = [~docs.word(number).byteswap() for number in range((longest + 7) // 8)]
        return np.lexsort((*reversed(words), value))
    names, values = docs.all(), value.tolist()
    descending = sorted(range(len(names)), key=names.__getitem__, reverse=True)
    return np.array(sorted(descending, key=values.__getitem__), np.int64)


def _judgements(offsets: Index, query: Index) -> tuple[Index, Index]:
    """List the judgements of some queries, and of each its place among the queries."""
    size = offsets[query + 1] - offsets[query]
    owner = np.repeat(np.arange(len(query)), size)
    shift = offsets[query] - (np.cumsum(size) - size)
    return np.arange(len(owner)) + shift[owner], owner


def _find(qrels: Qrels, lists: _RankedLists, judged: Index, owner: Index) -> tuple[Index, Flags]:
    """Find the first line of each judged document, and the runs that repeat a document.

    The hashes only propose: if a proposal turns out wrong, the whole block is looked up by bytes.
    """
    docs, query, run = lists.docs, lists.query, lists.run
    slots = HashTable(keys(fingerprints(docs), query[run]))
    place = slots.find(keys(qrels.fingerprint[judged], query[owner]))
    retrieved = np.flatnonzero(place >= 0)
    at = place[retrieved]
    sure = equal(qrels.docs.pick(judged[retrieved]), docs.pick(at))
    sure &= query[run[at]] == query[owner[retrieved]]
    later, earlier = slots.later, slots.earlier
    same = equal(docs.pick(later), docs.pick(earlier))
    same &= query[run[later]] == query[run[earlier]]
    if not (sure.all() and same.all()):
        return _find_by_bytes(qrels, lists, judged, owner)
    repeated = np.zeros(len(query), np.bool_)
    repeated[run[later]] = True
    return place, repeated


def _find_by_bytes(
    qrels: Qrels, lists: _RankedLists, judged: Index, owner: Index
) -> tuple[Index, Flags]:
    first: list[dict[bytes, int]] = [{} for _ in lists.query]
    for index, (run, name) in enumerate(zip(lists.run.tolist(), lists.docs.all(), strict=True)):
        first[run].setdefault(name, index)
    wanted = zip(owner.tolist(), qrels.docs.pick(judged).all(), strict=True)
    place = [first[run].get(name, -1) for run, name in wanted]
    distinct = np.array([len(names) for names in first], np.int64)
    return np.array(place, np.int64), distinct < lists.length


def _together(
    parts: list[_BlockRanks], split: Flags, file: mmap.mmap, block_bytes: int
) -> Iterator[bytes]:
    """Yield the lines of split queries, those of one query together, some block at a time."""
    query = np.concatenate([part.query for part in parts])
    chosen = np.flatnonzero(split[query])
    chosen = chosen[np.argsort(query[chosen], kind="stable")]
    begin = np.concatenate([part.begin for part in parts])[chosen].tolist()
    end = np.concatenate([part.end for part in parts])[chosen].tolist()
    pieces: list[bytes] = []
    size, current = 0, -1
    for owner, a, b in zip(query[chosen].tolist(), begin, end, strict=True):
        if owner != current and size >= block_bytes:
            yield b"".join(pieces)
            pieces, size = [], 0
        current = owner
        piece = file[a:b]
        pieces.append(piece if piece.endswith(b"\n") else piece + b"\n")
        size += len(piece)
    yield b"".join(pieces)
