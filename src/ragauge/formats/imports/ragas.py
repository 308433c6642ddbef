"""ragas: rows of `EvaluationDataset`, JSON Lines or CSV, under the names of today and of before.

A row is a trace and a test case in one: `score ragas.jsonl ragas.jsonl` takes it as both.
"""

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
from ragauge.model.field_spellings import GOLD_SPELLINGS, TRACE_SPELLINGS
from ragauge.text import question_id

_QUESTIONS = ("user_input", "question")
_IDS = ("qid", "id", "query_id", "question_id")
_NEW = {
    "retrieved_contexts", "retrieved_context_ids", "reference_contexts", "reference_context_ids",
    "response", "reference",
}  # fmt: skip
_OLD = {"contexts", "ground_truth", "ground_truths"}
_OURS = {
    name
    for spellings, fields in (
        (TRACE_SPELLINGS, ("hits", "citations")),
        (GOLD_SPELLINGS, ("relevant", "relevant_docs", "claims", "must_contain")),
    )
    for field in fields
    for name in spellings[field]
}
"""Names that make a row with `question` and `contexts` one of our own."""


def _recognise(file: ForeignFile) -> bool:
    names = head_names(file)
    if "user_input" in names:
        return bool(names & _NEW) or _is_conversation(file.first_row.get("user_input"))
    return "question" in names and bool(names & _OLD) and not names & _OURS


def _read_traces(
    files: Sequence[ForeignFile], _: ImportOptions, coverage: Coverage
) -> Iterator[Row]:
    for file in files:
        for row in json_objects(file):
            yield from _traces(row, coverage)


def _traces(row: Row, coverage: Coverage) -> Iterator[Row]:
    asked = _asked(row)
    hits = text_hits(
        texts_of(first_of(row, "retrieved_contexts", "contexts")),
        texts_of(row.get("retrieved_context_ids")),
        coverage,
    )
    answer = first_of(row, "response", "answer")
    if isinstance(asked, list):
        turns = _turns(asked)
        for number, (question, said) in enumerate(turns):
            is_last = number == len(turns) - 1
            trace: Row = {**_conversation(row, turns), "turn": number, "question": question}
            if said is not None:
                trace["answer"] = said
            if is_last and hits is not None:
                trace["hits"] = hits
            yield trace
        return
    trace = {}
    if (qid := id_of(first_of(row, *_IDS))) is not None:
        trace["qid"] = qid
    if asked is not None:
        trace["question"] = asked
    if hits is not None:
        trace["hits"] = hits
    if isinstance(answer, str):
        trace["answer"] = answer
    if "hits" not in trace and "answer" not in trace:
        coverage.note("rows with neither contexts nor a response (passed over)")
        return
    yield trace


def _read_gold(files: Sequence[ForeignFile], _: ImportOptions, coverage: Coverage) -> Iterator[Row]:
    rows = (row for file in files for row in json_objects(file))
    return distinct_items((item for row in rows for item in _items(row, coverage)), coverage)


def _items(row: Row, coverage: Coverage) -> Iterator[Row]:
    asked = _asked(row)
    expected = texts_of(first_of(row, "reference", "ground_truth", "ground_truths")) or []
    if isinstance(asked, list):
        turns = _turns(asked)
        for number, (question, _) in enumerate(turns):
            item: Row = {**_conversation(row, turns), "turn": number, "question": question}
            if number == len(turns) - 1:
                expect_answers(item, expected, coverage)
            yield item
        return
    item = {}
    if (qid := id_of(first_of(row, *_IDS))) is not None:
        item["qid"] = qid
    if asked is not None:
        item["question"] = asked
    ids = texts_of(row.get("reference_context_ids"))
    if ids is not None:
        item["relevant"] = ids
    elif contexts := texts_of(row.get("reference_contexts")):
        item["relevant"] = quotes(contexts)
    expect_answers(item, expected, coverage)
    yield item


def _asked(row: Row) -> str | list[Any] | None:
    """The question, or the messages of a conversation."""
    value = first_of(row, *_QUESTIONS)
    if isinstance(value, str) and value.lstrip().startswith("["):
        opened = opened_cell(value)
        value = opened if _is_conversation(opened) else value
    return value if _is_conversation(value) else text_of(value)


def _is_conversation(value: Any) -> bool:
    return (
        isinstance(value, list)
        and bool(value)
        and all(isinstance(message, dict) and "content" in message for message in value)
    )


def _turns(messages: Sequence[Row]) -> list[tuple[str, str | None]]:
    """What was asked in each turn, and the last thing that was said to it."""
    turns: list[tuple[str, str | None]] = []
    for message in messages:
        kind, content = message.get("type", message.get("role")), message.get("content")
        if not isinstance(content, str):
            continue
        if kind in ("human", "user"):
            turns.append((content, None))
        elif kind in ("ai", "assistant") and turns:
            turns[-1] = (turns[-1][0], content)
    return turns


def _conversation(row: Row, turns: Sequence[tuple[str, str | None]]) -> Row:
    """The id of a conversation: its own, or one that all its questions make."""
    own = id_of(first_of(row, *_IDS))
    return {"qid": own or question_id("\n".join(question for question, _ in turns))}


FORMAT = ForeignFormat(
    name="ragas",
    title="ragas rows",
    source="ragas 0.4.3; old names as in 0.1",
    recognise=_recognise,
    read_traces=_read_traces,
    read_gold=_read_gold,
)
