"""The questions of a run, or of two runs compared, as columns: what CSV and Parquet hold."""

from __future__ import annotations

from collections.abc import Callable
from operator import attrgetter
from typing import Any, Literal

import numpy as np

from ragauge.files.table_writer import TableColumn
from ragauge.model.comparison import Comparison, QueryComparison, RankBand
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
    columns = []
    for name, kind, value_of in _COMPARED:
        values: Any = [value_of(query) for query in comparison.per_query]
        if kind == "number":
            values = np.array(values, np.float64)  # which has nan for None
        columns.append(TableColumn(name=name, kind=kind, values=values))
    return columns


def _one_rank(rank: int | RankBand | None) -> int | None:
    """A rank; None for one that depends on the place of the evidence."""
    return None if isinstance(rank, tuple) else rank


def _of_answer(field: str) -> Callable[[QueryComparison], str | None]:
    return lambda query: getattr(query.answer, field, None)


_COMPARED: tuple[
    tuple[str, Literal["text", "whole", "number"], Callable[[QueryComparison], Any]], ...
] = (
    ("qid", "text", attrgetter("query_id")),
    ("turn", "whole", attrgetter("turn")),
    ("kind", "text", attrgetter("kind")),
    ("regression", "text", attrgetter("regression")),
    ("possible", "text", lambda query: " ".join(query.possible) or None),
    ("a_rank", "whole", lambda query: _one_rank(query.a_hit_rank)),
    ("b_rank", "whole", lambda query: _one_rank(query.b_hit_rank)),
    ("a_reciprocal", "number", attrgetter("a_reciprocal")),
    ("b_reciprocal", "number", attrgetter("b_reciprocal")),
    ("units", "whole", attrgetter("units")),
    ("a_units", "number", attrgetter("a_units")),
    ("b_units", "number", attrgetter("b_units")),
    ("lost", "text", lambda query: " ".join(query.lost) or None),
    ("rungs", "text", lambda query: " ".join(query.rungs) or None),
    ("answer_kind", "text", _of_answer("kind")),
    ("a_label", "text", _of_answer("a_label")),
    ("b_label", "text", _of_answer("b_label")),
    ("a_cause", "text", _of_answer("a_cause")),
    ("b_cause", "text", _of_answer("b_cause")),
    ("refusal", "text", _of_answer("refusal")),
    ("citations", "text", _of_answer("citations")),
    ("note", "text", attrgetter("note")),
)
"""The name of each column, its kind, and where its values are."""
