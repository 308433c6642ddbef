"""RAGChecker: what it checks and what it writes back, `{"results": [...]}`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from ragauge.formats.imports.coverage import Coverage
from ragauge.formats.imports.foreign_format import ForeignFile, ForeignFormat, ImportOptions, Row
from ragauge.formats.imports.json_file import json_objects
from ragauge.formats.imports.row_parts import distinct_items, expect_answers, id_of, text_of

_LIST = "results"


def _recognise(file: ForeignFile) -> bool:
    row = file.first_row
    listed = row.get(_LIST)
    if isinstance(listed, list) and listed and isinstance(listed[0], dict):
        row = listed[0]
    return "gt_answer" in row and "query" in row


def _read_traces(files: Sequence[ForeignFile], _: ImportOptions, __: Coverage) -> Iterator[Row]:
    for file in files:
        for result in json_objects(file, _LIST):
            trace = _identity(result)
            if isinstance(result.get("retrieved_context"), list):
                trace["hits"] = [_hit(entry) for entry in result["retrieved_context"]]
            if isinstance(result.get("response"), str):
                trace["answer"] = result["response"]
            yield trace


def _hit(entry: Any) -> Row:
    """A retrieved passage; RAGChecker calls its id the document's, and it may have none."""
    if not isinstance(entry, dict):
        return {"text": str(entry)}
    hit: Row = {}
    if (doc := id_of(entry.get("doc_id"))) is not None:
        hit = {"id": doc, "doc": doc}
    if isinstance(entry.get("text"), str):
        hit["text"] = entry["text"]
    return hit


def _read_gold(files: Sequence[ForeignFile], _: ImportOptions, coverage: Coverage) -> Iterator[Row]:
    def items() -> Iterator[Row]:
        for file in files:
            for result in json_objects(file, _LIST):
                item = _identity(result)
                expected = text_of(result.get("gt_answer"))
                expect_answers(item, [expected] if expected is not None else [], coverage)
                yield item

    return distinct_items(items(), coverage)


def _identity(result: Row) -> Row:
    identity: Row = {}
    if (qid := id_of(result.get("query_id"))) is not None:
        identity["qid"] = qid
    if (question := text_of(result.get("query"))) is not None:
        identity["question"] = question
    return identity


FORMAT = ForeignFormat(
    name="ragchecker",
    title="RAGChecker results",
    source="RAGChecker 0.1.9",
    recognise=_recognise,
    read_traces=_read_traces,
    read_gold=_read_gold,
)
