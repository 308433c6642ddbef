"""The table of questions as data: columns that a reader sorts and filters by."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

from msgspec import Struct

from ragauge.report.html.data_blocks import packed
from ragauge.report.html.details import PIECES, QUESTIONS

MARKS = {
    "gold": "evidence", "document": "right document", "negative": "known wrong", "cited": "cited",
}  # fmt: skip
"""How the marks of hits are called on the page."""


class Choice(Struct, frozen=True):
    """A value that many questions share; `tone` colours it and `meaning` explains it."""

    name: str
    tone: str = "quiet"
    meaning: str = ""


class Column(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One column: ids, texts, numbers, or numbers of choices (-1 is none).

    `hidden` ones are shown in the drill-down only, `wide` ones where there is room, and `right`
    ones stand at the right, as numbers do.
    """

    name: str
    head: str
    form: Literal["id", "text", "number", "choice", "word"]
    values: Sequence[Any]
    choices: tuple[Choice, ...] = ()
    about: str = ""
    hidden: bool = False
    wide: bool = False
    filtered: bool = False
    right: bool = False
    all_choices: str = ""


def choice_column(
    name: str, head: str, found: Sequence[str | None], choices: Sequence[Choice], **more: Any
) -> Column:
    """A column of choices, of which only those are kept that a question has."""
    present = set(found)
    kept = tuple(choice for choice in choices if choice.name in present)
    places = {choice.name: place for place, choice in enumerate(kept)}
    values = [-1 if each is None else places[each] for each in found]
    return Column(name=name, head=head, form="choice", values=values, choices=kept, **more)


def named_choices(found: Sequence[str | None]) -> list[Choice]:
    """Choices that have no order of their own, by name."""
    return [Choice(name) for name in sorted({each for each in found if each is not None})]


def index(
    columns: Sequence[Column],
    failing: Sequence[bool],
    *,
    sides: tuple[str, ...],
    sort: str,
    detailed: bool,
    metrics: Sequence[str] = (),
    note: str = "",
    rule: str = "",
) -> str:
    """The table, packed. `sides` are the names of the runs, `sort` the column it is sorted by.

    `detailed` says whether there are drill-downs, and `note` why there are none. `rule` tells how
    marks and ranks differ.
    """
    return packed(
        {
            "count": len(failing),
            "questions_per_block": QUESTIONS,
            "pieces_per_block": PIECES,
            "columns": list(columns),
            "failing": [int(each) for each in failing],
            "sides": sides,
            "sort": sort,
            "detailed": detailed,
            "metrics": list(metrics),
            "marks": MARKS,
            "note": note,
            "rule": rule,
        }
    )
