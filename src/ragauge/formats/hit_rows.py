"""Tables with a row for each hit: the rows of one question become one trace.

Read row by row, each of them would be a trace with one hit, and the last would replace the others.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from typing import Any

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from ragauge.errors import Place, RagaugeError
from ragauge.files.fields import Row
from ragauge.files.ranges import Source, rows_of
from ragauge.files.temporary_file import temporary_file
from ragauge.model.field_spellings import HIT_SPELLINGS, TRACE_NAMES, TRACE_SPELLINGS
from ragauge.text import question_key

_HITS = TRACE_SPELLINGS["hits"]
_SLOT = ("paraphrase", "seed", "turn")
_COLUMNS = {
    name: field
    for field in ("id", "doc", "path", "section", "score", "rank", "text", "snippet")
    for name in HIT_SPELLINGS[field]
    if name not in TRACE_NAMES
}
"""Columns that say something of a hit, where a row is one."""
_NUMBERS = ("score", "rank")
_IDS = tuple(name for name, field in _COLUMNS.items() if field == "id")
_decode = msgspec.json.Decoder(dict[str, Any]).decode
_encode = msgspec.json.Encoder().encode
_BAD = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)

Key = tuple[Any, ...]


class _HitRow(Struct, frozen=True):
    """A row that may be a hit: where it stands, its hit, and what it says of the whole trace."""

    line: int
    row: Row
    hit: Mapping[str, Any]
    rest: Mapping[str, Any]


def with_rows_as_hits(stack: ExitStack, source: Source) -> Source:
    """The source with one row a question; the same source where rows are whole traces.

    Rows are hits where a question has several, each has one hit of its own, and all else that they
    say is the same. A trace stands on the line of its first row.
    """
    counts = Counter(key for _, row in _rows(source) if (key := _key(row)) is not None)
    if not counts or max(counts.values()) == 1:
        return source
    groups: dict[Key, list[_HitRow]] = {}
    for line, row in _rows(source):
        hit_row, key = _hit_row(line, row), _key(row)
        if hit_row is None or key is None:
            return source  # a list of hits, or nothing to tell questions apart by
        groups.setdefault(key, []).append(hit_row)
    several = [group for group in groups.values() if len(group) > 1]
    alike = [group for group in several if _is_one_trace(group)]
    if not alike:
        return source  # asked again: the last one counts, and that is said
    odd = next((group for group in several if not _is_one_trace(group)), None)
    if odd is not None:
        raise _ambiguous(source.name, odd, alike[0])
    traces = {group[0].line: _trace(source.name, group) for group in groups.values()}
    rows = sum(map(len, groups.values()))
    note = f"rows are hits: {rows:,} rows of {len(traces):,} questions were read as their traces"
    copy = stack.enter_context(temporary_file())
    at = 1
    for line, trace in sorted(traces.items()):
        copy.file.write(b"\n" * (line - at) + _encode(trace) + b"\n")
        at = line + 1
    copy.file.flush()
    size = os.path.getsize(copy.path)
    notes = (*source.notes, note)
    return replace(source, path=copy.path, start=0, size=size, layout="lines", notes=notes)


def _rows(source: Source) -> Iterator[tuple[int, Row]]:
    for line, data, _, _ in rows_of(source):
        try:
            yield line, _decode(data)
        except _BAD:
            continue  # an error elsewhere, with its line


def _key(row: Row) -> Key | None:
    """What the rows of one trace share: the question, and which time it was asked."""
    qid = next((row[name] for name in TRACE_SPELLINGS["qid"] if row.get(name) is not None), None)
    if qid is None:
        asked = (row.get(name) for name in TRACE_SPELLINGS["question"])
        qid = next((question_key(text) for text in asked if isinstance(text, str)), None)
    return None if qid is None else (str(qid), *(str(row.get(name)) for name in _SLOT))


def _hit_row(line: int, row: Row) -> _HitRow | None:
    """A row as a hit; None where it has a list of several, or nothing of a hit."""
    lists = [name for name in _HITS if row.get(name) is not None]
    hit: dict[str, Any] = {}
    for name in lists:
        listed = row[name]
        if not isinstance(listed, list) or len(listed) > 1:
            return None
        if listed:
            entry = listed[0]
            hit |= entry if isinstance(entry, dict) else {"id": entry}
    if not lists and all(row.get(name) is None for name in _IDS):
        return None
    columns = [name for name in row if name in _COLUMNS]
    for name in columns:
        if row[name] is not None and row[name] != "":
            field = _COLUMNS[name]
            hit.setdefault(field, _number(row[name]) if field in _NUMBERS else row[name])
    rest = {name: row[name] for name in row if name not in columns and name not in lists}
    return _HitRow(line, row, hit, rest)


def _number(cell: Any) -> Any:
    """A number that a cell may be; anything else is for whoever reads hits to refuse."""
    try:
        number = float(cell)
    except (TypeError, ValueError):
        return cell
    return int(number) if number.is_integer() and abs(number) < 2**53 else number


def _is_one_trace(group: Sequence[_HitRow]) -> bool:
    """Whether rows differ in their hits alone."""
    names = {_encode([row.hit.get("id"), row.hit.get("doc"), row.hit.get("text")]) for row in group}
    said = [_said_of_trace(row.rest) for row in group]
    return len(names) == len(group) and all(rest == said[0] for rest in said)


def _said_of_trace(rest: Mapping[str, Any]) -> dict[str, Any]:
    """What a row says of its trace; questions are the same where they join the same gold item."""
    said = {name: value for name, value in rest.items() if name in TRACE_NAMES}
    for name in TRACE_SPELLINGS["question"]:
        if isinstance(said.get(name), str):
            said[name] = question_key(said[name])
    return said


def _trace(name: str, group: Sequence[_HitRow]) -> Row:
    """The trace that some rows are, with its hits by rank, else by score, else as they stand."""
    ranks = [row.hit.get("rank") for row in group]
    if all(isinstance(rank, int) for rank in ranks):
        if len(set(ranks)) < len(ranks):
            twice = [row for row in group if ranks.count(row.hit["rank"]) > 1]
            raise _same_rank(name, twice)
        group = sorted(group, key=lambda row: row.hit["rank"])
    elif all(isinstance(row.hit.get("score"), int | float) for row in group):
        group = sorted(group, key=lambda row: -row.hit["score"])
    return {**group[0].rest, "hits": [row.hit for row in group if row.hit]}


def _ambiguous(name: str, odd: Sequence[_HitRow], alike: Sequence[_HitRow]) -> RagaugeError:
    message = (
        f"lines {_lines(alike)} look like the hits of one trace, but lines {_lines(odd)}, of one "
        "question too, differ in more than their hits, or repeat one"
    )
    hint = "write one row a trace with a list of hits, or give each trace of a question its `seed`"
    return RagaugeError.of("bad-field", message, hint=hint, place=Place(name, odd[0].line))


def _same_rank(name: str, rows: Sequence[_HitRow]) -> RagaugeError:
    message = f"lines {_lines(rows)} are hits of one question and have the same rank"
    hint = "number the hits of a question from 1, or give each trace of a question its `seed`"
    return RagaugeError.of("bad-field", message, hint=hint, place=Place(name, rows[0].line))


def _lines(rows: Sequence[_HitRow]) -> str:
    listed = [str(row.line) for row in rows[:3]]
    return ", ".join(listed) + (" and more" if len(rows) > 3 else "")
