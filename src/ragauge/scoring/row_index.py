"""The rows of a run that was just scored, for a page: where each of them is, and how it fared."""

from __future__ import annotations

from collections.abc import Iterable, Set
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ragauge.metrics.columns import Ints
from ragauge.model.labels import LABELS
from ragauge.model.trace import SlotKey
from ragauge.scoring.chunk_facts import CollectedFacts
from ragauge.scoring.tasks.row_notes import NotedRows


class RowIndex(NamedTuple):
    """The rows that belong to a question, in file order; `slots` has what `slot` numbers.

    `facts` are what their hits say, range by range in file order.
    """

    question: Ints
    slot: Ints
    begin: Ints
    size: Ints
    line: Ints
    slots: list[SlotKey]
    facts: list[CollectedFacts]


def row_index(noted: Iterable[tuple[int, NotedRows]]) -> RowIndex:
    """The index of a run by the notes on its ranges, which come from the last to the first.

    Each comes with the first line of its range.
    """
    codes: dict[SlotKey, int] = {}
    columns: list[list[Ints]] = [[np.zeros(0, np.int64)] for _ in range(5)]
    facts: list[CollectedFacts] = []
    for first_line, rows in noted:
        slot_codes = np.array([codes.setdefault(slot, len(codes)) for slot in rows.slots], np.int64)
        question, slot, begin, size, line = (
            np.frombuffer(column, np.int64)
            for column in (rows.questions, rows.slot_codes, rows.begins, rows.sizes, rows.lines)
        )
        numbers = (question, slot_codes[slot], begin, size, first_line + line)
        for column, part in zip(columns, numbers, strict=True):
            column.append(part)
        facts.append(rows.facts)
    question, slot, begin, size, line = (np.concatenate(column)[::-1] for column in columns)
    return RowIndex(question, slot, begin, size, line, list(codes), facts[::-1])


class RecordLabels(NamedTuple):
    """The labels of records, each with its question and the line of its trace."""

    question: Ints
    line: Ints
    label: NDArray[np.uint8]

    def of(self, questions: Set[int]) -> dict[tuple[int, int], str]:
        """The labels of some questions by question and line."""
        mine = np.isin(self.question, list(questions))
        keys = zip(self.question[mine].tolist(), self.line[mine].tolist(), strict=True)
        names = (LABELS[label] for label in self.label[mine].tolist())
        return dict(zip(keys, names, strict=True))


NO_LABELS = RecordLabels(np.zeros(0, np.int64), np.zeros(0, np.int64), np.zeros(0, np.uint8))
