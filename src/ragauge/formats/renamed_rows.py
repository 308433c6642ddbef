"""A file whose rows get our names and types before anything reads them.

The copy has each row on the line that it has in the original, so that every message about a row
names the right one. Rows that are no JSON objects are copied as they are: whoever reads them next
says what is wrong with them.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from itertools import islice
from typing import Any

import msgspec
from msgspec.structs import replace

from ragauge.errors import MAX_REPORTED, Place, Problem, RagaugeError
from ragauge.files.duplicate_keys import duplicate_keys
from ragauge.files.fields import FieldError, Row
from ragauge.files.ranges import MAX_LINE, Source, rows_of
from ragauge.files.temporary_file import temporary_file
from ragauge.formats.evidence_rows import with_rows_as_evidence
from ragauge.formats.field_map import FieldMap, FieldMapper, plain_value, refuse_missing
from ragauge.formats.field_path import opened_text
from ragauge.formats.gold import misspelt_id
from ragauge.formats.hit_rows import with_rows_as_hits
from ragauge.formats.library_hits import NOTE, holds_library_hits, with_known_hits
from ragauge.formats.rerank_stages import at_first_stage, refuse_single_stage
from ragauge.formats.table_cells import CellReader, listed_cell, opened_cell
from ragauge.model.field_spellings import GOLD_SPELLINGS, TRACE_SPELLINGS
from ragauge.text import MADE_ID, question_id

RowStep = Callable[[Mapping[str, Any]], dict[str, Any]]
"""Makes a row of a row; values may be raw JSON."""

NAMED_BY_QUESTION = "no item has an id: each is named after its question"
_JOINED_BY_QUESTION = "the gold set has no ids: traces are joined by their questions"
_LOOKED_AT = 100
"""Rows whose fields are named where a path leads nowhere."""
_encode = msgspec.json.Encoder().encode
_decode_fields = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode
_decode_row = msgspec.json.Decoder(dict[str, Any]).decode
_BAD = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)


def renamed_source(stack: ExitStack, source: Source, fields: FieldMap) -> Source:
    """The source under our names; it is the same one where there is nothing to do."""
    if source.layout not in ("lines", "array", "object"):
        return source
    steps: list[RowStep] = []
    if fields.entries:
        steps.append(_mapper(source, fields))
    if source.tabular:
        steps.append(CellReader(fields.side))
    notes = source.notes
    if fields.side == "gold" and _lacks_ids(source, fields):
        steps.append(_with_question_id)
        is_asked = any(entry.name in GOLD_SPELLINGS["qid"] for entry in fields.entries)
        misspelt = None if is_asked else misspelt_id(next(_decoded(source), {}))
        notes += (NAMED_BY_QUESTION if misspelt is None else f"{NAMED_BY_QUESTION}; {misspelt}",)
    if _may_hold_library_hits(source, fields) and holds_library_hits(source):
        steps.append(with_known_hits)
        notes += (NOTE,)
    if fields.by_question and _has_other_ids(source, steps):
        steps.append(_named_by_question)
        notes += (_JOINED_BY_QUESTION,)
    if fields.stage == "first":
        steps.append(at_first_stage)
    if not steps:
        return source
    copy = stack.enter_context(temporary_file())
    for part in _copied(source, steps):
        copy.file.write(part)
    copy.file.flush()
    layout = "array" if source.layout == "array" else "lines"
    size = os.path.getsize(copy.path)
    renamed = replace(
        source, path=copy.path, start=0, size=size, layout=layout, notes=notes, tabular=False
    )
    if source.tabular:
        as_one = with_rows_as_hits if fields.side == "traces" else with_rows_as_evidence
        renamed = as_one(stack, renamed)
    if fields.stage == "first":
        refuse_single_stage(renamed)
    return renamed


def _mapper(source: Source, fields: FieldMap) -> FieldMapper:
    """The mapper for a file, without optional entries that it has nothing for."""
    openers = (opened_cell, listed_cell) if source.tabular else (opened_text, opened_text)
    missing = FieldMapper(fields, *openers).missing(_decoded(source))
    if missing and next(_decoded(source), None) is not None:
        rows = islice(_decoded(source), _LOOKED_AT)
        present = list(dict.fromkeys(name for row in rows for name in row))
        refuse_missing(missing, source.name, fields.side, present)
    entries = tuple(entry for entry in fields.entries if entry.required or entry not in missing)
    return FieldMapper(replace(fields, entries=entries), *openers)


def _may_hold_library_hits(source: Source, fields: FieldMap) -> bool:
    """Whether a file may have hits as objects, and nobody has said where their fields are."""
    heads = {entry.name.partition(".")[0] for entry in fields.entries}
    is_rows = fields.side == "traces" and not source.tabular
    return is_rows and heads.isdisjoint(TRACE_SPELLINGS["hits"])


def _lacks_ids(source: Source, fields: FieldMap) -> bool:
    """Whether no item of a gold set has an id, and there are some with a question.

    Where only some have none, that is a mistake, and an error for whoever reads them.
    """
    for entry in fields.entries:
        if entry.name in GOLD_SPELLINGS["qid"]:
            return not entry.path
    count = 0
    for row in _decoded(source):
        if any(row.get(name) is not None for name in GOLD_SPELLINGS["qid"]):
            return False
        count += 1
    return count > 0


def _with_question_id(row: Mapping[str, Any]) -> dict[str, Any]:
    """A gold item with an id made of its question; without a question it stays as it is."""
    for name in ("question", "paraphrases"):
        for spelling in GOLD_SPELLINGS[name]:
            value = row.get(spelling)
            plain = msgspec.json.decode(value) if isinstance(value, msgspec.Raw) else value
            text = plain[0] if isinstance(plain, list) and plain else plain
            if isinstance(text, str) and text.strip():
                return {"qid": question_id(text), **row}
    return dict(row)


def _has_other_ids(source: Source, steps: Sequence[RowStep]) -> bool:
    """Whether the first traces have ids, and are to be named after their questions instead."""
    for first in islice(_decoded(source), _LOOKED_AT):
        row: Mapping[str, Any] = first
        try:
            for step in steps:
                row = step(row)
        except FieldError:
            continue
        if _named_by_question(row) != row:
            return True
    return False


def _named_by_question(row: Mapping[str, Any]) -> dict[str, Any]:
    """A trace under the id that gold without ids has for its question; without one as it is."""
    names = [name for name in TRACE_SPELLINGS["qid"] if name in row]
    asked = (plain_value(row.get(name)) for name in TRACE_SPELLINGS["question"])
    question = next((text for text in asked if isinstance(text, str) and text.strip()), None)
    if question is None or any(_is_made_id(plain_value(row[name])) for name in names) or not names:
        return dict(row)
    rest = {name: value for name, value in row.items() if name not in names}
    return {"qid": question_id(question), **rest}


def _is_made_id(value: Any) -> bool:
    """Whether an id was made of a question, as in the traces of `ragauge run`."""
    return isinstance(value, str) and MADE_ID.fullmatch(value) is not None


def _decoded(source: Source) -> Iterator[Row]:
    for _, data, _, _ in rows_of(source):
        try:
            yield _decode_row(data)
        except _BAD:
            continue


def _copied(source: Source, steps: Sequence[RowStep]) -> Iterator[bytes]:
    """The bytes of the copy, row by row."""
    problems: list[Problem] = []
    count = 0
    is_array = source.layout == "array"
    line, before = 1, b"[" if is_array else b""
    for number, data, cut, overlong in rows_of(source):
        if overlong:
            raise _too_long(source, number)
        try:
            row = _renamed(data, steps)
        except FieldError as error:
            count += 1
            if len(problems) < MAX_REPORTED:
                place = Place(source.name, number)
                problems.append(Problem(error.code, error.message, error.hint, place))
            continue
        if source.layout == "object":
            row = row.replace(b"\n", b" ")  # values that are copied as they stand may be long
        yield before + b"\n" * (number - line) + row
        line = number
        before = b"," if is_array else b"\n"
        if before == b"\n":
            line += 1
        if cut and not is_array:
            before = b""
    if count:
        raise RagaugeError(problems, total=count)
    yield b"[]" if is_array and before == b"[" else b"]" if is_array else before


def _renamed(data: bytes, steps: Sequence[RowStep]) -> bytes:
    try:
        row: Mapping[str, Any] = _decode_fields(data)
        for step in steps:
            row = step(row)
        encoded = _encode(row)
    except _BAD:
        return data
    except OverflowError as error:
        message = f"the row holds a number that is too long: {error}"
        raise FieldError("bad-field", message, "use a smaller number") from error
    return _with_duplicates(encoded, data)


def _with_duplicates(encoded: bytes, data: bytes) -> bytes:
    """A row with the keys twice that were there twice: it must not lose what is wrong with it."""
    keys = {key.rpartition(".")[2] for key in duplicate_keys(data)}
    if not keys:
        return encoded
    row = _decode_fields(encoded)
    again = [
        _encode(key) + b":" + (bytes(row[key]) if key in row else b"null,%b:null" % _encode(key))
        for key in sorted(keys)
    ]
    return encoded[:-1] + (b"," if row else b"") + b",".join(again) + b"}"


def _too_long(source: Source, line: int) -> RagaugeError:
    hint = "a newline is missing, or the row holds a whole document: write one row per line"
    message = f"the line is longer than {MAX_LINE // 2**20} MiB"
    place = Place(source.name, line)
    return RagaugeError.of("line-too-long", message, hint=hint, place=place)
