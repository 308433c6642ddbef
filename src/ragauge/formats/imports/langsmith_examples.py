"""LangSmith examples: the data sets that runs are evaluated on, as gold."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ragauge.formats.imports.coverage import Coverage
from ragauge.formats.imports.dataset_item import gold_row
from ragauge.formats.imports.foreign_format import ForeignFile, ForeignFormat, ImportOptions, Row
from ragauge.formats.imports.json_file import json_objects


def _recognise(file: ForeignFile) -> bool:
    row = file.first_row
    return "dataset_id" in row and "inputs" in row and "run_type" not in row


def _read_gold(files: Sequence[ForeignFile], _: ImportOptions, coverage: Coverage) -> Iterator[Row]:
    for file in files:
        for example in json_objects(file):
            if "inputs" not in example:
                coverage.note("rows that are no examples (passed over)")
                continue
            expected, metadata = example.get("outputs"), example.get("metadata")
            yield gold_row(example.get("id"), example["inputs"], expected, metadata, coverage)


FORMAT = ForeignFormat(
    name="langsmith-examples",
    title="LangSmith examples",
    source="langsmith 0.14.17",
    recognise=_recognise,
    read_gold=_read_gold,
)
