"""Hashed n-grams of words and characters: a distance of wording, without any model.

It measures whether texts share words, not whether they mean the same. So its ΔS is called lexical,
and never feeds a gate.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Mapping, Sequence
from hashlib import blake2b
from itertools import pairwise
from math import sqrt
from typing import Any

import numpy as np

from ragauge.model.embedder import Embedded, EmbedderKind, Role

DIMENSIONS = 2048
_WORD = re.compile(r"[^\W_]+")
_GRAMS = (3, 4)
_WHOLE, _PAIR, _PART = 1.0, 0.5, 0.35
"""What a word, two words that follow each other, and a part of a word count for."""


class Hashing:
    """Counts n-grams under a hash that is the same everywhere."""

    id = "lexical-hash-v1"
    dimensions = DIMENSIONS
    lexical = True

    def embed(self, texts: Sequence[str], role: Role) -> Embedded:  # noqa: ARG002
        """Make the vectors of some texts; a text without a letter or digit has none."""
        vectors = np.zeros((len(texts), DIMENSIONS), np.float32)
        for row, text in enumerate(texts):
            vectors[row] = _vector(text)
        return Embedded(vectors, [False] * len(texts))


def features(text: str) -> Counter[tuple[str, float]]:
    """The n-grams of a text with what each counts for, and how often each occurs."""
    folded = unicodedata.normalize("NFKC", text).casefold()
    words = _WORD.findall(folded)
    counts: Counter[tuple[str, float]] = Counter()
    for word in words:
        counts["w" + word, _WHOLE] += 1
        edged = f"<{word}>"
        for size in _GRAMS:
            for start in range(len(edged) - size + 1):
                counts["c" + edged[start : start + size], _PART] += 1
    for one, other in pairwise(words):
        counts[f"p{one} {other}", _PAIR] += 1
    return counts


def _vector(text: str) -> np.ndarray[Any, np.dtype[np.float64]]:
    """Sum signed weights at hashed places, in an order of their own, and scale to length 1."""
    total = np.zeros(DIMENSIONS, np.float64)
    for (name, weight), count in sorted(features(text).items()):
        digest = blake2b(name.encode("utf-8", "surrogatepass"), digest_size=8).digest()
        number = int.from_bytes(digest, "little")
        sign = 1.0 if number >> 63 else -1.0
        total[number % DIMENSIONS] += sign * weight * sqrt(count)
    length = float(np.sqrt((total * total).sum()))
    return total / length if length else total


def _open(settings: Mapping[str, Any]) -> Hashing:  # noqa: ARG001
    return Hashing()


EMBEDDER = EmbedderKind(
    name="hashing",
    title="hashed n-grams of words and characters: lexical, no model, never gated",
    open=_open,
    reaches=lambda _: (),
)
