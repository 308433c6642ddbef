"""The questions of a run, or of two runs compared, as columns: what CSV and Parquet hold."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ragauge.files.csv_parquet import TableColumn
from ragauge.model.comparison import AnswerChange, Comparison, QueryComparison
from ragauge.model.scores import Scores


def question_columns(scores: Scores) -> list[TableColumn]:
    """The id of each question, its turn, label and cause where there are any, and its values.

    A metric that nobody has a value of is no column.
    """
    values = scores.per_question
    if values is None:
        return [TableColumn(name="qid", kind="text", values=[])]
    columns = [TableColumn(name="qid", kind="text", values=values.qids)]
    if any(turn is not None for turn in values.turns):
        columns.append(TableColumn(name="turn", kind="whole", values=values.turns))
    questions = scores.questions
    columns.append(TableColumn(name="label", kind="word", values=questions.labels))
    if any(cause is not None for cause in questions.causes):
        columns.append(TableColumn(name="cause", kind="word", values=questions.causes))
    for place, name in enumerate(values.metrics):
        if not np.isnan(values.values[place]).all():
            columns.append(TableColumn(name=name, kind="number", values=values.values[place]))
    return columns


def compared_columns(comparison: Comparison) -> list[TableColumn]:
    """The result of each question on both sides; the columns are always the same."""
    queries = comparison.per_query
    return [
        _text(queries, "qid", lambda query: query.query_id),
        TableColumn(name="turn", kind="whole", values=[query.turn for query in queries]),
        _text(queries, "kind", lambda query: query.kind),
        TableColumn(name="a_rank", kind="whole", values=[query.a_hit_rank for query in queries]),
        TableColumn(name="b_rank", kind="whole", values=[query.b_hit_rank for query in queries]),
        _number(queries, "a_reciprocal", lambda query: query.a_reciprocal),
        _number(queries, "b_reciprocal", lambda query: query.b_reciprocal),
        _text(queries, "rungs", lambda query: " ".join(query.rungs) or None),
        *(
            _text(queries, name, lambda query, of=of: _of_answer(query, of))
            for name, of in _ANSWER.items()
        ),
        _text(queries, "note", lambda query: query.note),
    ]


_ANSWER: dict[str, Callable[[AnswerChange], str | None]] = {
    "answer_kind": lambda answer: answer.kind,
    "a_label": lambda answer: answer.a_label,
    "b_label": lambda answer: answer.b_label,
    "a_cause": lambda answer: answer.a_cause,
    "b_cause": lambda answer: answer.b_cause,
    "refusal": lambda answer: answer.refusal,
    "citations": lambda answer: answer.citations,
}


def _of_answer(query: QueryComparison, of: Callable[[AnswerChange], str | None]) -> str | None:
    return None if query.answer is None else of(query.answer)


def _text(queries: Sequence[QueryComparison], name: str, of: Callable[..., Any]) -> TableColumn:
    return TableColumn(name=name, kind="text", values=[of(query) for query in queries])


def _number(
    queries: Sequence[QueryComparison], name: str, of: Callable[[QueryComparison], float | None]
) -> TableColumn:
    numbers = [of(query) for query in queries]
    values = [math.nan if value is None else value for value in numbers]
    return TableColumn(name=name, kind="number", values=np.array(values, np.float64))
