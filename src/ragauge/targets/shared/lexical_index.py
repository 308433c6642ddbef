"""BM25 over passages: Lucene's formula over the words of `corpus.bm25`, ties broken by id."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from ragauge.corpus.bm25 import Bm25Index
from ragauge.model.target import TargetOptions
from ragauge.targets.shared.address import TargetSettings
from ragauge.targets.shared.corpus_index import Passages, Ranked, best

K1 = 1.5
B = 0.75
NAMES = ("b", "k1")
"""The settings that it takes."""

ANALYZER = "nfkc-casefold-words-1"
"""How texts become words; another way to make them bumps the number."""


class LexicalIndex:
    """An index of scores by word, made once; only read when it is searched."""

    def __init__(
        self, passages: Passages, settings: TargetSettings, _options: TargetOptions
    ) -> None:
        self.order = passages.order
        self.k1 = settings.number("k1", K1, 0, 100)
        self.b = settings.number("b", B, 0, 1)
        self.index = Bm25Index(passages.texts(), k1=self.k1, b=self.b, lucene=True)

    @property
    def facts(self) -> Mapping[str, Any]:
        """The formula and its numbers."""
        return {"bm25": "lucene", "k1": self.k1, "b": self.b, "analyzer": ANALYZER}

    @property
    def names(self) -> Mapping[str, str]:
        """What a trace row says of it."""
        return {"metric": "bm25", "analyzer": ANALYZER}

    def search(self, text: str, k: int) -> list[Ranked]:
        """The best passages that share a word with the question."""
        scores = self.index.scores(text)
        numbers = np.flatnonzero(scores > 0)
        return best(scores[numbers], numbers, self.order, k)

    def close(self) -> None:
        """Nothing is open."""
