"""LegalBench-RAG: benchmarks with snippets of files as evidence, and results of retrieval."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from ragauge.formats.imports.coverage import Coverage
from ragauge.formats.imports.foreign_format import ForeignFile, ForeignFormat, ImportOptions, Row
from ragauge.formats.imports.json_file import json_objects
from ragauge.formats.imports.row_parts import distinct_items, text_of

_TESTS, _RESULTS = "tests", "qa_result_list"


def _recognise(file: ForeignFile) -> bool:
    row = file.first_row
    for name in (_TESTS, _RESULTS):
        listed = row.get(name)
        if isinstance(listed, list) and listed and isinstance(listed[0], dict):
            row = listed[0]
            break
    truth = row.get("qa_gt", row)
    return isinstance(truth, dict) and "query" in truth and isinstance(truth.get("snippets"), list)


def _rows(files: Sequence[ForeignFile]) -> Iterator[Row]:
    for file in files:
        yield from json_objects(file, _TESTS, _RESULTS)


def _read_traces(
    files: Sequence[ForeignFile], _: ImportOptions, coverage: Coverage
) -> Iterator[Row]:
    for row in _rows(files):
        truth, retrieved = row.get("qa_gt"), row.get("retrieved_snippets")
        if not isinstance(truth, dict) or not isinstance(retrieved, list):
            coverage.note("test cases without retrieved snippets (passed over)")
            continue
        # A snippet without a place is still a rank.
        hits = [_place(snippet, coverage) or _file_of(snippet) for snippet in retrieved]
        yield {"question": truth.get("query"), "hits": hits}


def _read_gold(files: Sequence[ForeignFile], _: ImportOptions, coverage: Coverage) -> Iterator[Row]:
    return distinct_items((_item(row, coverage) for row in _rows(files)), coverage)


def _item(row: Row, coverage: Coverage) -> Row:
    truth = row.get("qa_gt", row)
    truth = truth if isinstance(truth, dict) else {}
    item: Row = {}
    if (question := text_of(truth.get("query"))) is not None:
        item["question"] = question
    snippets = truth.get("snippets")
    places = [_place(snippet, coverage) for snippet in snippets or ()]
    item["answerable"] = True
    item["relevant"] = [place for place in places if place is not None]
    if isinstance(truth.get("tags"), list):
        item["tags"] = [str(tag) for tag in truth["tags"]]
    return item


def _place(snippet: Any, coverage: Coverage) -> Row | None:
    """A snippet as a place: a half-open range of characters of a file."""
    span = snippet.get("span") if isinstance(snippet, dict) else None
    if (
        not isinstance(span, list)
        or len(span) != 2
        or not all(isinstance(offset, int) and not isinstance(offset, bool) for offset in span)
        or text_of(snippet.get("file_path")) is None
    ):
        coverage.note("snippets without a file and a span (no evidence, and found by nothing)")
        return None
    place: Row = {"doc": snippet["file_path"], "start": span[0], "end": span[1], "unit": "char"}
    if isinstance(snippet.get("answer"), str):
        place["quote"] = snippet["answer"]
    score = snippet.get("score")
    if isinstance(score, int | float) and not isinstance(score, bool):
        place["score"] = score
    return place


def _file_of(snippet: Any) -> Row:
    name = text_of(snippet.get("file_path")) if isinstance(snippet, dict) else None
    return {} if name is None else {"doc": name}


FORMAT = ForeignFormat(
    name="legalbench-rag",
    title="LegalBench-RAG snippets",
    source="LegalBench-RAG, August 2024",
    recognise=_recognise,
    read_traces=_read_traces,
    read_gold=_read_gold,
)
