"""What rows of test frameworks have in common: lists in cells, hits, quotes, expected answers."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Any

import msgspec

from ragauge.formats.imports.coverage import Coverage
from ragauge.formats.imports.foreign_format import ForeignFile, Row
from ragauge.formats.table_cells import opened_cell
from ragauge.text import REFUSAL_TOKEN, normalise, question_id

_HEAD_ROWS = 50
_WORD, _NO_WORD = re.compile("[!-~]{1,200}"), re.compile("[0-9#/_:-]")
"""Contexts without a blank, some with a digit or a sign that words do not have, are no passages."""
WEAK_CLAIMS = (
    "expected answers also stand as claims, which is weak: an answer has to contain them word for "
    "word"
)


def head_names(file: ForeignFile) -> set[str]:
    """The fields of the rows at the head of a file; a table leaves empty cells out."""
    value = file.json_head
    rows: Sequence[Any]
    if isinstance(value, list):
        rows = value
    else:
        lines = file.head.removeprefix(b"\xef\xbb\xbf").split(b"\n")
        rows = [file.first_row, *_decoded(lines[:_HEAD_ROWS])]
    named = [row for row in islice(rows, _HEAD_ROWS) if isinstance(row, dict)]
    return {name for row in named for name in row}


def _decoded(lines: Sequence[bytes]) -> list[Any]:
    rows = []
    for line in lines:
        try:
            rows.append(msgspec.json.decode(line))
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            continue  # a blank line, or one that the head cuts
    return rows


def first_of(row: Row, *names: str) -> Any:
    """The first of some fields that is there and not empty."""
    values = (row.get(name) for name in names)
    return next((value for value in values if value is not None and value != ""), None)


def text_of(value: Any) -> str | None:
    """A text with something in it, else None."""
    return value if isinstance(value, str) and value.strip() else None


def id_of(value: Any) -> str | None:
    """An id: a text, or a whole number as its digits."""
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    return text_of(value)


def texts_of(value: Any, separator: str | None = None) -> list[str] | None:
    """A list of texts, also from the cell of a table; None where there is none at all."""
    if isinstance(value, str):
        opened = opened_cell(value) if value.lstrip().startswith("[") else value
        if isinstance(opened, str):
            parts = opened.split(separator) if separator is not None else [opened]
            opened = [part for part in parts if part.strip()]
        value = opened
    if not isinstance(value, list):
        return None
    return [str(one) for one in value if one is not None]


def text_hits(
    texts: Sequence[str] | None, ids: Sequence[str] | None, coverage: Coverage
) -> list[Row] | None:
    """Hits of texts and ids that stand in two lists, rank by rank; None where there is no list."""
    if texts is None and ids is None:
        return None
    if ids and texts and len(ids) != len(texts):
        coverage.note("rows with another number of ids than of texts (texts left out)")
        texts = None
    if not ids:
        if texts and all(map(_WORD.fullmatch, texts)) and any(map(_NO_WORD.search, texts)):
            coverage.note("rows with single words as contexts (read as ids)")
            return [{"id": text} for text in texts]
        return [{"text": text} for text in texts or ()]
    if not texts:
        return [{"id": chunk_id} for chunk_id in ids]
    return [{"id": one, "text": text} for one, text in zip(ids, texts, strict=True)]


def quotes(texts: Sequence[str]) -> list[Row]:
    """Evidence that is known by its text."""
    return [{"quote": text} for text in dict.fromkeys(texts) if text.strip()]


def expect_answers(item: Row, answers: Sequence[str], coverage: Coverage) -> None:
    """Give a gold item the answers that are expected of it; the refusal token expects none."""
    answers = [answer for answer in dict.fromkeys(answers) if answer.strip()]
    if not answers:
        return
    if all(normalise(answer) == REFUSAL_TOKEN for answer in answers):
        item["answerable"] = False
        return
    item["answerable"] = True
    item["reference_answers"] = answers
    item["claims_any"] = answers
    coverage.note(WEAK_CLAIMS)


def distinct_items(items: Iterator[Row], coverage: Coverage) -> Iterator[Row]:
    """Gold items with an id each; one that says the same again is passed over.

    Files of results have a test case once for every system. Two that differ stay, and are refused
    where they are scored.
    """
    written: set[bytes] = set()
    for bare in items:
        question = bare.get("question")
        item = {"qid": question_id(question), **bare} if question and "qid" not in bare else bare
        encoded = msgspec.json.encode(item, order="deterministic")
        if encoded in written:
            coverage.note("test cases that stand twice (passed over)")
            continue
        written.add(encoded)
        yield item
