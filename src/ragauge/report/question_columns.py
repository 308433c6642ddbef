"""The questions of a run, or of two runs compared, as columns: what CSV and Parquet hold."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from operator import attrgetter
from typing import Any, Literal

import numpy as np
from msgspec.structs import replace

from ragauge.files.table_writer import TableColumn
from ragauge.model import phrases
from ragauge.model.comparison import Comparison, QueryComparison, RankBand
from ragauge.model.scores import Scores
from ragauge.model.verdict import Verdict


def question_columns(scores: Scores, verdict: Verdict | None = None) -> list[TableColumn]:
    """The id of each question, its turn, label and cause where there are any, and its values.

    A metric that nobody has a value of is no column. One that depends on where in a chunk the
    evidence stands has columns of its least and its greatest value. Where gates failed, the
    questions that made them fail come first, with the gate and their share of the damage.
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
    damage = phrases.damage_of(verdict)
    keys = list(zip(values.qids, values.turns, strict=True))
    if damage:
        columns += _damage_columns([damage.get(key) for key in keys])
    for place, name in enumerate(values.metrics):
        if not np.isnan(values.values[place]).all():
            columns.append(TableColumn(name=name, kind="number", values=values.values[place]))
        if values.open_count(name) and values.ends is not None:
            ends = ("low", values.ends.low[place]), ("high", values.ends.high[place])
            columns += [
                TableColumn(name=f"{name} {end}", kind="number", values=of_end)
                for end, of_end in ends
            ]
    return _damaged_first(columns, keys, damage)


def _damage_columns(damage: Sequence[tuple[str, float] | None]) -> list[TableColumn]:
    """The gate that each question made fail, and its share of the damage."""
    gates = [None if one is None else one[0] for one in damage]
    shares = np.array([np.nan if one is None else one[1] for one in damage], np.float64)
    return [
        TableColumn(name="failed_gate", kind="text", values=gates),
        TableColumn(name="damage_share", kind="number", values=shares),
    ]


def _damaged_first(
    columns: list[TableColumn],
    keys: Sequence[tuple[str, int | None]],
    damage: Mapping[tuple[str, int | None], tuple[str, float]],
) -> list[TableColumn]:
    """The columns with the rows of those that made a gate fail before all others."""
    if not damage:
        return columns
    places = {key: place for place, key in enumerate(keys)}
    first = [places[key] for key in damage if key in places]
    order = list(dict.fromkeys([*first, *range(len(keys))]))
    return [
        replace(
            column,
            values=column.values[order]
            if isinstance(column.values, np.ndarray)
            else [column.values[place] for place in order],
        )
        for column in columns
    ]


def compared_columns(comparison: Comparison) -> list[TableColumn]:
    """The result of each question on both sides; the columns are always the same.

    Those that made a gate fail come first.
    """
    columns = []
    for name, kind, value_of in _COMPARED:
        values: Any = [value_of(query) for query in comparison.per_query]
        if kind == "number":
            values = np.array(values, np.float64)  # which has nan for None
        columns.append(TableColumn(name=name, kind=kind, values=values))
    damage = phrases.damage_of(comparison.verdict)
    keys = [(query.query_id, query.turn) for query in comparison.per_query]
    slices = ["; ".join(comparison.parts.get(key, ())) or None for key in keys]
    columns.append(TableColumn(name="slices", kind="text", values=slices))
    columns += _damage_columns([damage.get(key) for key in keys])
    return _damaged_first(columns, keys, damage)


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
    ("certain", "text", lambda query: query.kind and ("yes" if query.certain else "no")),
    ("regression", "text", attrgetter("regression")),
    ("possible", "text", lambda query: " ".join(query.possible) or None),
    ("doc_kind", "text", attrgetter("doc_kind")),
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
