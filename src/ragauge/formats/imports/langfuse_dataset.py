"""Langfuse data sets: items with an input and an expected output, as gold."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ragauge.formats.imports.coverage import Coverage
from ragauge.formats.imports.dataset_item import gold_row
from ragauge.formats.imports.foreign_format import ForeignFile, ForeignFormat, ImportOptions, Row
from ragauge.formats.imports.json_file import json_objects

_EXPECTED = ("expectedOutput", "expected_output")
_OF_A_SET = ("datasetId", "dataset_id", "datasetName", "dataset_name")


def _is_item(row: Mapping[str, Any]) -> bool:
    has_set = any(name in row for name in _OF_A_SET)
    return has_set and "input" in row and any(name in row for name in _EXPECTED)


def _recognise(file: ForeignFile) -> bool:
    row = file.first_row
    listed = next((row[name] for name in ("data", "items") if isinstance(row.get(name), list)), ())
    return _is_item(listed[0] if listed and isinstance(listed[0], dict) else row)


def _read_gold(files: Sequence[ForeignFile], _: ImportOptions, coverage: Coverage) -> Iterator[Row]:
    for file in files:
        for item in json_objects(file, "data", "items"):
            if not _is_item(item):
                coverage.note("rows that are no items (passed over)")
            elif item.get("status") == "ARCHIVED":
                coverage.note("items of the archive (passed over)")
            else:
                expected = next((item[name] for name in _EXPECTED if name in item), None)
                yield gold_row(
                    item.get("id"), item["input"], expected, item.get("metadata"), coverage
                )


FORMAT = ForeignFormat(
    name="langfuse-dataset",
    title="Langfuse dataset items",
    source="the public API of Langfuse, langfuse 5.0",
    recognise=_recognise,
    read_gold=_read_gold,
)
