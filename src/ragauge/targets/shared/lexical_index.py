"""BM25 over passages, by the library bm25s: Lucene's formula, the words of `ragauge.bm25`.

A passage scores the sum over the words of the question of idf · tf / (tf + k1 · (1 - b + b ·
length / mean length)), idf = ln(1 + (n - df + 0.5) / (df + 0.5)); a word that is said twice counts
twice. Words are added in the order of their spelling and scores are rounded, so that the same
passages give the same scores everywhere.
"""

from __future__ import annotations

from array import array
from collections.abc import Mapping
from typing import Any

import numpy as np

from ragauge.corpus.bm25 import words_of
from ragauge.targets.shared.address import Settings, library
from ragauge.targets.shared.corpus_index import Passages
from ragauge.targets.shared.top_k import Ranked, best

K1 = 1.5
B = 0.75
DECIMALS = 4
NAMES = ("b", "k1")
"""What it may be told."""

ANALYZER = "nfkc-casefold-words-1"
"""How texts become words; another way to make them bumps the number."""


class LexicalIndex:
    """An index of scores by word, made once; only read when it is searched."""

    def __init__(self, passages: Passages, settings: Settings) -> None:
        bm25s = library("bm25s", "bm25")
        self.order = passages.order
        self.k1 = settings.number("k1", K1, 0, 100)
        self.b = settings.number("b", B, 0, 1)
        self.words: dict[str, int] = {}
        counted = [self._numbers(text) for text in passages.texts()]
        self.model = bm25s.BM25(
            k1=self.k1, b=self.b, method="lucene", backend="numpy", csc_backend="numpy"
        )
        if self.words:
            self.model.index((counted, self.words), create_empty_token=False, show_progress=False)

    def _numbers(self, text: str) -> array[int]:
        words = self.words
        return array("i", [words.setdefault(word, len(words)) for word in words_of(text)])

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
        asked = [self.words[word] for word in sorted(words_of(text)) if word in self.words]
        if not asked:
            return []
        scores = np.round(self.model.get_scores_from_ids(asked).astype(np.float64), DECIMALS)
        numbers = np.flatnonzero(scores > 0)
        return best(scores[numbers], numbers, self.order, k)

    def close(self) -> None:
        """Nothing is open."""
