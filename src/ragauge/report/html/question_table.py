"""The table of questions as data: columns that a reader sorts and filters by."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal

from msgspec import Struct

from ragauge.report.html.data_blocks import serialised
from ragauge.report.html.details import PIECES, QUESTIONS, PageDetails
from ragauge.report.html.size_budget import MOST_ID, capped

MARKS = {
    "gold": "evidence", "possible": "may be evidence", "document": "right document",
    "negative": "known wrong", "cited": "cited",
}  # fmt: skip
"""How the marks of hits are called on the page."""


class ColumnChoice(Struct, frozen=True):
    """A value that many questions share; `tone` colours it and `meaning` explains it."""

    name: str
    tone: str = "quiet"
    meaning: str = ""


class QuestionColumn(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One column: ids, texts, numbers, or numbers of choices (-1 is none).

    `hidden` ones are shown in the drill-down only, `wide` ones where there is room, and `right`
    ones stand at the right, as numbers do.
    """

    name: str
    head: str
    form: Literal["id", "text", "number", "choice", "word"]
    values: Sequence[Any]
    choices: tuple[ColumnChoice, ...] = ()
    about: str = ""
    hidden: bool = False
    wide: bool = False
    filtered: bool = False
    right: bool = False
    all_choices: str = ""


def choice_column(
    name: str,
    values: Sequence[str | None],
    choices: Iterable[ColumnChoice],
    all_choices: str,
    *,
    head: str | None = None,
    **more: Any,
) -> QuestionColumn:
    """A column of choices to filter by; those that no question has are not among them."""
    taken = set(values)
    choices = tuple(choice for choice in choices if choice.name in taken)
    places = {choice.name: place for place, choice in enumerate(choices)}
    return QuestionColumn(
        name=name,
        head=head or name,
        form="choice",
        values=[-1 if value is None else places[value] for value in values],
        choices=choices,
        filtered=True,
        all_choices=all_choices,
        **more,
    )


def word_column(
    name: str, values: Sequence[str | None], *, head: str | None = None, **more: Any
) -> QuestionColumn:
    """A column of short texts."""
    return QuestionColumn(name=name, head=head or name, form="word", values=values, **more)


def damage_column(
    keys: Sequence[tuple[str, int | None]],
    damage: Mapping[tuple[str, int | None], tuple[str, float]],
) -> QuestionColumn:
    """The share of each question in the damage of the gate that it made fail."""
    words = [
        f"{100 * found[1]:.1f} % of {found[0]}" if (found := damage.get(key)) is not None else None
        for key in keys
    ]
    return word_column("damage", words, head="share of the damage", wide=True)


def first_columns(
    qids: Iterable[str], turns: Sequence[int | None], details: PageDetails | None
) -> list[QuestionColumn]:
    """The id of each question, and its turn, words and type where they are known."""
    ids = [capped(qid, MOST_ID) for qid in qids]
    columns = [QuestionColumn(name="qid", head="question id", form="id", values=ids)]
    if any(turn is not None for turn in turns):
        columns.append(QuestionColumn(name="turn", head="turn", form="number", values=turns))
    if details is None:
        return columns
    texts = details.texts
    columns.append(QuestionColumn(name="question", head="question", form="text", values=texts))
    if any(details.types):
        # Types have no order of their own, as labels have: they are sorted by name.
        names = sorted({name for name in details.types if name is not None})
        choices = map(ColumnChoice, names)
        columns.append(choice_column("type", details.types, choices, "all types", wide=True))
    return columns


def table_block(
    columns: Sequence[QuestionColumn],
    failing: Sequence[bool],
    *,
    sides: tuple[str, ...],
    sort: str,
    detailed: bool,
    metrics: Sequence[str] = (),
    note: str = "",
    rule: str = "",
) -> str:
    """The table as a block. `sides` are the names of the runs, `sort` the column it is sorted by.

    `detailed` says whether there are drill-downs, and `note` why there are none. `rule` says how
    marks and ranks differ.
    """
    return serialised(
        {
            "count": len(failing),
            "questions_per_block": QUESTIONS,
            "pieces_per_block": PIECES,
            "columns": list(columns),
            "failing": list(map(int, failing)),
            "sides": sides,
            "sort": sort,
            "detailed": detailed,
            "metrics": list(metrics),
            "marks": MARKS,
            "note": note,
            "rule": rule,
        }
    )
