"""What a result was scored from, kept with it: a page shows hits, and scores hold none."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

from ragauge.errors import RagaugeError
from ragauge.model.drilldown import Drilldowns
from ragauge.model.scores import Scores
from ragauge.scoring import score as scoring


class KeptInputs:
    """Gold and traces as they were given, and the options of scoring.

    They are scored again for a page. Rows or files that have changed since then would show other
    hits beside the old numbers: then the page has none.
    """

    def __init__(self, gold: Any, traces: Any, **options: Any) -> None:
        self.gold = gold
        self.traces = traces
        self.options = {name: value for name, value in options.items() if name != "keep"}

    @contextmanager
    def details(self, scores: Scores) -> Iterator[Drilldowns | None]:
        """The questions one by one; None where they cannot be read again as they were."""
        with ExitStack() as stack:
            yield self._details(stack, scores)

    def _details(self, stack: ExitStack, scores: Scores) -> Drilldowns | None:
        from ragauge.report.drilldown.questions import (
            JustScored,
            details_of_scored,
            just_scored,
        )

        if not (_is_lasting(self.gold) and _is_lasting(self.traces)):
            return None
        kept: list[JustScored] = []
        try:
            again = scoring.score(
                self.gold,
                self.traces,
                **self.options,
                note_rows=True,
                keep=lambda run: kept.append(stack.enter_context(just_scored(run))),
            )
        except (RagaugeError, OSError):  # a file is gone, or is another one
            return None
        if again.metrics != scores.metrics or again.questions != scores.questions:
            return None
        corpus, texts = self.options.get("corpus"), None
        if corpus is not None:
            from ragauge.corpus.excerpts import Excerpts

            texts = Excerpts((os.fspath(corpus),))
        return details_of_scored(kept[0], scores, texts)


def _is_lasting(given: object) -> bool:
    """Whether what was given can be read twice: a pipe or standard input cannot."""
    if isinstance(given, str | os.PathLike):
        return os.path.isfile(given) or os.path.isdir(given)
    return given is not None
