"""BM25 over texts: an inverted index in arrays, and how like a query every text is.

A text's score is the sum over the query's words of idf · tf · (k1 + 1) / (tf + k1 · (1 - b + b ·
length / mean length)), idf = ln(1 + (n - df + 0.5) / (df + 0.5)). Lucene's form lacks the constant
factor (k1 + 1). Words are added in order, and scores are rounded, so that the same texts give the
same scores everywhere.
"""

from __future__ import annotations

import math
import re
import unicodedata
from collections import Counter
from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

K1 = 1.2  # with B the values of Lucene, OpenSearch and Elasticsearch
B = 0.75
DECIMALS = 4  # sums differ in their last digits between machines; the order of texts must not

_WORD = re.compile(r"\w+")
# Scripts without blanks between words: each two neighbours count as a word.
_UNSPACED = re.compile("[\u0e00-\u0eff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff]+")


def words_of(text: str) -> list[str]:
    """The words of a text in order: folded in case and form, pairs where nothing parts them."""
    words: list[str] = []
    for word in _WORD.findall(unicodedata.normalize("NFKC", text).casefold()):
        if _UNSPACED.search(word) is None:
            words.append(word)
            continue
        at = 0
        for run in _UNSPACED.finditer(word):
            if word[at : run.start()]:
                words.append(word[at : run.start()])
            pairs = [run[0][i : i + 2] for i in range(len(run[0]) - 1)]
            words += pairs or [run[0]]
            at = run.end()
        if word[at:]:
            words.append(word[at:])
    return words


class Bm25Index:
    """An index over texts, which are known by their place in the order they come in.

    `lengths` are their numbers of words.
    """

    def __init__(
        self, texts: Iterable[str], *, k1: float = K1, b: float = B, lucene: bool = False
    ) -> None:
        self._lucene = lucene
        self._terms: dict[str, int] = {}
        terms, texts_of, counts, lengths = self._postings(texts)
        self.lengths = lengths
        self.size = len(lengths)
        order = np.argsort(terms, kind="stable")
        self._texts = texts_of[order]
        self._starts = np.searchsorted(terms[order], np.arange(len(self._terms) + 1))
        mean = lengths.sum() / self.size if lengths.sum() else 1.0
        norm = k1 * (1 - b + b * lengths / mean)
        frequency = np.diff(self._starts)
        odds = (self.size - frequency + 0.5) / (frequency + 0.5)
        tf = counts[order].astype(np.float64)
        if lucene:
            # The same steps in the same precision as the library bm25s, which made these scores
            # before: four decimals of stored runs stay what they were.
            single = np.array([math.log(1 + ratio) for ratio in odds.tolist()], np.float32)
            weights = single[terms[order]] * (tf / (norm[self._texts] + tf))
            self._weights: NDArray[Any] = weights.astype(np.float32)
        else:
            idf = np.log1p(odds)
            self._weights = idf[terms[order]] * tf * (k1 + 1) / (tf + norm[self._texts])

    def _postings(
        self, texts: Iterable[str]
    ) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64], NDArray[np.float64]]:
        terms: list[int] = []
        places: list[int] = []
        counts: list[int] = []
        lengths: list[int] = []
        for place, text in enumerate(texts):
            counted = Counter(words_of(text))
            lengths.append(sum(counted.values()))
            terms += [self._terms.setdefault(word, len(self._terms)) for word in counted]
            places += [place] * len(counted)
            counts += counted.values()
        return (
            np.array(terms, np.int64),
            np.array(places, np.int64),
            np.array(counts, np.int64),
            np.array(lengths, np.float64),
        )

    def scores(self, query: str) -> NDArray[np.float64]:
        """How like the query each text is; a word counts once, and in Lucene's form each time."""
        total = np.zeros(self.size, self._weights.dtype)
        words = words_of(query)
        for word in sorted(words if self._lucene else set(words)):
            term = self._terms.get(word)
            if term is not None:
                part = slice(self._starts[term], self._starts[term + 1])
                total[self._texts[part]] += self._weights[part]  # a text stands there once
        scores: NDArray[np.float64] = total.astype(np.float64)
        return np.round(scores, DECIMALS)
