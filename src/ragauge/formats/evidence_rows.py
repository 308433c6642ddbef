"""Gold tables with a row for each piece of evidence: the rows of one question become one item.

Spreadsheets and judgements are written so. Read row by row, the second row of a question is an item
whose id is there twice.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from typing import Any

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from ragauge.files.fields import Row
from ragauge.files.ranges import Source, rows_of
from ragauge.files.temporary_file import temporary_file
from ragauge.model.field_spellings import GOLD_NAMES, GOLD_SPELLINGS
from ragauge.text import question_key

_EVIDENCE = (*GOLD_SPELLINGS["relevant"], *GOLD_SPELLINGS["relevant_docs"])
_IDS = GOLD_SPELLINGS["relevant"]
_GRADE = ("grade", "relevance", "rel")
"""Columns with the grade of a judgement, where a row is one."""
_decode = msgspec.json.Decoder(dict[str, Any]).decode
_encode = msgspec.json.Encoder().encode
_BAD = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)


class _EvidenceRow(Struct, frozen=True):
    """A row: where it stands, the lists of evidence in it, and what it says of the question."""

    line: int
    evidence: Mapping[str, Sequence[Any]]
    grade: float | None
    rest: Row


def with_rows_as_evidence(stack: ExitStack, source: Source) -> Source:
    """The source with one row a question; the same source where rows are whole items.

    Rows are pieces of evidence where some question has several, each names evidence, and all else
    that they say is the same. An item stands on the line of its first row.
    """
    groups: dict[str, list[_EvidenceRow]] = {}
    for line, row in _rows(source):
        key = _key(row)
        if key is None:
            return source
        groups.setdefault(key, []).append(_evidence_row(line, row))
    several = [group for group in groups.values() if len(group) > 1]
    if not several or not all(map(_is_one_item, several)):
        return source  # an id that is there twice, which is said with its lines
    is_graded = all(row.grade is not None for group in groups.values() for row in group)
    items = {group[0].line: _item(group, is_graded=is_graded) for group in groups.values()}
    copy = stack.enter_context(temporary_file())
    at = 1
    for line, item in sorted(items.items()):
        copy.file.write(b"\n" * (line - at) + _encode(item) + b"\n")
        at = line + 1
    copy.file.flush()
    rows = sum(map(len, groups.values()))
    note = f"rows are evidence: {rows:,} rows of {len(items):,} questions were read as their items"
    size = os.path.getsize(copy.path)
    notes = (*source.notes, note)
    return replace(source, path=copy.path, start=0, size=size, layout="lines", notes=notes)


def _rows(source: Source) -> Iterator[tuple[int, Row]]:
    for line, data, _, _ in rows_of(source):
        try:
            yield line, _decode(data)
        except _BAD:
            continue  # an error elsewhere, with its line


def _key(row: Row) -> str | None:
    """What the rows of one item share: the id, or else the question."""
    qid = next((row[name] for name in GOLD_SPELLINGS["qid"] if row.get(name) is not None), None)
    if qid is not None:
        return f"{qid} {row.get('turn')}"
    asked = (row.get(name) for name in GOLD_SPELLINGS["question"])
    return next((question_key(text) for text in asked if isinstance(text, str)), None)


def _evidence_row(line: int, row: Row) -> _EvidenceRow:
    evidence = {name: row[name] for name in _EVIDENCE if isinstance(row.get(name), list)}
    grades = (_number(row[name]) for name in _GRADE if row.get(name) is not None)
    rest = {name: value for name, value in row.items() if name not in evidence}
    return _EvidenceRow(line, evidence, next(grades, None), rest)


def _number(cell: Any) -> float | None:
    try:
        return float(cell)
    except (TypeError, ValueError):
        return None


def _is_one_item(group: Sequence[_EvidenceRow]) -> bool:
    """Whether rows name evidence each, none the same, and differ in nothing else that is read."""
    pieces = {_encode(row.evidence) for row in group}
    said = [_said(row.rest) for row in group]
    if len(pieces) < len(group) or not all(any(row.evidence.values()) for row in group):
        return False
    return all(rest == said[0] for rest in said)


def _said(rest: Row) -> dict[str, Any]:
    said = {name: value for name, value in rest.items() if name in GOLD_NAMES}
    for name in GOLD_SPELLINGS["question"]:
        if isinstance(said.get(name), str):
            said[name] = question_key(said[name])
    return said


def _item(group: Sequence[_EvidenceRow], *, is_graded: bool) -> Row:
    """The item that some rows are; graded where every row of the table has a grade."""
    item: dict[str, Any] = {name: v for name, v in group[0].rest.items() if name not in _GRADE}
    grades: dict[str, Any] = {}
    for row in group:
        for name, entries in row.evidence.items():
            if is_graded and name in _IDS and all(isinstance(entry, str) for entry in entries):
                grades |= dict.fromkeys(entries, row.grade)
            else:
                listed = item.setdefault(name, [])
                listed += [entry for entry in entries if entry not in listed]
    if grades:
        whole = all(grade.is_integer() for grade in grades.values())
        item["grades"] = {name: int(one) if whole else one for name, one in grades.items()}
    return item
