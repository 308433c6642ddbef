"""The drill-downs of a page, as many as there is room for."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Sequence

from ragauge.model.drilldown import Drilldown
from ragauge.page.fitting import STEPS, TEXT_STEPS
from ragauge.page.markup import shortened
from ragauge.page.rows import QuestionRow
from ragauge.page.stock import Packed, Stock
from ragauge.pausing import uncollected

MOST_TEXT = 300
"""Characters of a question that the table has; the drill-down has all of them."""
_CAUTION = 0.98


class Gathered:
    """The drill-downs of a page before it is known how much of them there is room for.

    `failing` says which questions keep what they have the longest. `texts` and `types` are the
    words and types of the questions, for the table.
    """

    def __init__(self, drilldowns: Iterable[Drilldown], failing: Sequence[bool]) -> None:
        self.failing = failing
        self.types: list[str | None] = []
        self.texts: list[str] = []
        self._stock = Stock()
        self._questions: list[QuestionRow] = []
        with uncollected():
            for each, is_failing in zip(drilldowns, failing, strict=True):
                self.types.append(each.type)
                self.texts.append(shortened(each.question or "", MOST_TEXT))
                self._questions.append(self._stock.question(each, is_failing))
                if self.texts[-1] == each.question:
                    self._questions[-1].question = None  # the table has all of it
            self._stock.finish()

    def packed(self, room: int) -> Packed:
        """The blocks within so many bytes, if need be with less in them.

        Packing all of them at every step would take long: how far texts must be cut is guessed.
        """
        stock, questions, failing = self._stock, self._questions, self.failing

        def seems_to_fit(place: int) -> bool:
            return stock.estimate(questions, STEPS[place]) <= room * _CAUTION

        with uncollected():
            places = range(len(TEXT_STEPS))
            first = bisect_left(places, True, key=seems_to_fit) if questions else 0
            for step in STEPS[first:-1]:
                made = stock.packed(questions, failing, step, room=room)
                if made is not None:
                    return made
            made = stock.packed(questions, failing, STEPS[-1], room=None)
        assert made is not None
        return made
