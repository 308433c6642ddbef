"""deepeval: goldens (JSON, JSON Lines, CSV) and the test cases of a test run."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from ragauge.formats.imports.coverage import Coverage
from ragauge.formats.imports.foreign_format import ForeignFile, ForeignFormat, ImportOptions, Row
from ragauge.formats.imports.json_file import json_objects
from ragauge.formats.imports.row_parts import (
    distinct_items,
    expect_answers,
    first_of,
    head_names,
    id_of,
    quotes,
    text_hits,
    text_of,
    texts_of,
)
from ragauge.formats.table_cells import opened_cell

_RUN = ("testCases", "test_cases")
_LATEST = "testRunData"
_SIGNS = {
    "actual_output", "actualOutput", "expected_output", "expectedOutput", "retrieval_context",
    "retrievalContext",
}  # fmt: skip
_METADATA = ("metadata", "additional_metadata", "additionalMetadata")
_UNNAMED = "test_case_"
"""What deepeval calls test cases that have no name."""
_BAR = "|"
"""What joins the texts of a list where goldens are saved as CSV or JSON Lines."""


def _recognise(file: ForeignFile) -> bool:
    names = head_names(file)
    if names & {*_RUN, _LATEST}:
        cases = first_of(_run(file.first_row), *_RUN)
        return isinstance(cases, list) and all(isinstance(case, dict) for case in cases)
    return "input" in names and bool(names & _SIGNS)


def _cases(files: Sequence[ForeignFile]) -> Iterator[Row]:
    for file in files:
        for row in json_objects(file):
            run = _run(row)
            lists = [run[name] for name in _RUN if isinstance(run.get(name), list)]
            if lists:
                yield from (case for cases in lists for case in cases if isinstance(case, dict))
            else:
                yield row


def _run(row: Row) -> Row:
    """A test run, also where it stands in `.deepeval/.latest_test_run.json`."""
    run = row.get(_LATEST)
    return run if isinstance(run, dict) else row


def _read_traces(
    files: Sequence[ForeignFile], _: ImportOptions, coverage: Coverage
) -> Iterator[Row]:
    for case in _cases(files):
        answer = first_of(case, "actual_output", "actualOutput")
        context = first_of(case, "retrieval_context", "retrievalContext")
        if answer is None and context is None:
            coverage.note("goldens without an actual output (passed over)")
            continue
        trace = _identity(case)
        hits = text_hits(texts_of(context, _BAR), None, coverage)
        if hits is not None:
            trace["hits"] = hits
        if isinstance(answer, str):
            trace["answer"] = answer
        seconds = first_of(case, "completion_time", "completionTime")
        if isinstance(seconds, int | float) and not isinstance(seconds, bool) and seconds >= 0:
            trace["latency_ms"] = seconds * 1000
        yield trace


def _read_gold(
    files: Sequence[ForeignFile], options: ImportOptions, coverage: Coverage
) -> Iterator[Row]:
    items = (_item(case, options, coverage) for case in _cases(files))
    return distinct_items(items, coverage)


def _item(case: Row, options: ImportOptions, coverage: Coverage) -> Row:
    item = _identity(case)
    expected = text_of(first_of(case, "expected_output", "expectedOutput"))
    # In CSV and JSON Lines an empty list is an empty text, and in CSV that is no cell at all.
    context = texts_of(case.get("context"), _BAR) or []
    if not context and expected is None:
        if options.empty_context == "refuse":
            item["answerable"] = False
            return item
        coverage.note("goldens with neither context nor expected output (left unlabelled)")
    if context:
        item["relevant"] = quotes(context)
    source = text_of(first_of(case, "source_file", "sourceFile"))
    if source is not None:
        item["relevant_docs"] = [source]
    expect_answers(item, [expected] if expected is not None else [], coverage)
    return item


def _identity(case: Row) -> Row:
    identity: Row = {}
    qid = next((qid for name in _METADATA if (qid := _qid(case.get(name))) is not None), None)
    name = text_of(case.get("name"))
    if qid is None and name is not None and not name.startswith(_UNNAMED):
        qid = name
    if qid is not None:
        identity["qid"] = qid
    if (question := text_of(case.get("input"))) is not None:
        identity["question"] = question
    return identity


def _qid(metadata: Any) -> str | None:
    if isinstance(metadata, str):
        metadata = opened_cell(metadata)
    return id_of(metadata.get("qid")) if isinstance(metadata, dict) else None


FORMAT = ForeignFormat(
    name="deepeval",
    title="deepeval test cases",
    source="deepeval 4.3.1",
    recognise=_recognise,
    read_traces=_read_traces,
    read_gold=_read_gold,
)
