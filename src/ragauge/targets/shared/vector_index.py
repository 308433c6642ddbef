"""Vectors of passages and questions, and which passages are nearest.

The search is exact. A matrix product finds the candidates; their scores are then taken again in
double precision, row by row, and rounded: neither threads nor the linear algebra library show.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ragauge.embed.cache import IN_MEMORY, VectorCache, default_path, key_of
from ragauge.embed.measure import NO_CACHE, embed_into_cache, open_embedder
from ragauge.model.embedder import Role, Vectors
from ragauge.model.target import TargetOptions, TargetQuestion
from ragauge.targets.shared.address import OF_EMBEDDER, TargetSettings, refused
from ragauge.targets.shared.corpus_index import Passages, Ranked, best
from ragauge.targets.shared.foreign_hits import by_score

DEFAULT = "minilm"
DECIMALS = 6
NAMES = ("embedder", OF_EMBEDDER, "cache")
"""The settings of an embedder: its name, its own settings, and the file of its cache."""

_AT_ONCE = 256
_ROWS = 4096
_SLACK = 1e-3  # far more than a product in single precision can be off (about 1e-6)


class Vectoriser:
    """Makes vectors, each text once: what is in the cache is taken from there.

    An embedder need not know of threads: one text is embedded after another.
    """

    def __init__(self, settings: TargetSettings, options: TargetOptions) -> None:
        name = settings.text("embedder", options.embedder) or DEFAULT
        kind = name.partition(":")[0]
        self.embedder = open_embedder(name, {kind: settings.below(OF_EMBEDDER)})
        path = settings.text("cache", str(default_path()))
        self.cache = VectorCache(IN_MEMORY if path in (None, NO_CACHE) else path)
        self.lock = threading.Lock()
        self.truncated = 0

    def vectors(self, texts: Sequence[str], role: Role) -> Vectors:
        """The vectors of some texts, a row each; a text without a word has a row of zeros."""
        keys = [key_of(self.embedder.id, role, text) for text in texts]
        with self.lock:
            cached = self.cache.find(list(dict.fromkeys(keys)))
            missing = {
                key: text for key, text in zip(keys, texts, strict=True) if key not in cached
            }
            if missing:
                cached |= embed_into_cache(self.cache, self.embedder, missing, role)
            self.truncated += sum(cached[key].truncated for key in keys)
        matrix = np.zeros((len(keys), self.embedder.dimensions), np.float32)
        for row, key in enumerate(keys):
            matrix[row] = cached[key].vector
        return matrix

    def refuse_other_length(self, holder: str, length: int) -> None:
        """Raise if stored vectors have another length than those of this embedder.

        The right length does not prove the right model, but a wrong one proves a wrong model.
        """
        own = self.embedder.dimensions
        if length != own:
            raise refused(
                f"the vectors of `{holder}` have {length} numbers, those of "
                f"{self.embedder.id} {own}",
                "name the embedder that made them: --option embedder=NAME",
            )

    def close(self) -> None:
        """Close the cache."""
        with self.lock:
            self.cache.connection.close()


class NearestTarget:
    """Asks a database for what is nearest to the vector of a question: what all kinds share.

    `facts` say which collection or table it is, and by what `metric` it compares.
    """

    facts: dict[str, Any]
    vectoriser: Vectoriser

    @property
    def about(self) -> Mapping[str, Any]:
        """What is asked, and the embedder of the questions."""
        return {**self.facts, "embed_model": self.vectoriser.embedder.id}

    def ask(self, question: TargetQuestion) -> Mapping[str, Any]:
        """Ask for what is nearest."""
        vector = self.vectoriser.vectors([question.text], "query")[0]
        return {
            "hits": by_score(self.nearest(vector)),
            "embed_model": self.vectoriser.embedder.id,
            "metric": self.facts["metric"],
        }

    def nearest(self, vector: Vectors) -> Iterable[dict[str, Any]]:
        """The hits for a vector, in any order."""
        raise NotImplementedError


class VectorIndex:
    """The vectors of all passages as one matrix of unit rows; only read when it is searched."""

    def __init__(
        self, passages: Passages, settings: TargetSettings, options: TargetOptions
    ) -> None:
        self.order = passages.order
        self.vectoriser = vectoriser = Vectoriser(settings, options)
        count = len(passages)
        self.matrix = np.zeros((count, vectoriser.embedder.dimensions), np.float32)
        for start in range(0, count, _AT_ONCE):
            numbers = range(start, min(start + _AT_ONCE, count))
            texts = [passages.text(number) for number in numbers]
            self.matrix[start : numbers.stop] = vectoriser.vectors(texts, "document")
        self.truncated = vectoriser.truncated
        self.directed = self.matrix.any(axis=1)

    @property
    def facts(self) -> Mapping[str, Any]:
        """The embedder, and how vectors are compared."""
        return {
            "embed_model": self.vectoriser.embedder.id,
            "metric": "cosine",
            "truncated_passages": self.truncated,
        }

    @property
    def names(self) -> Mapping[str, str]:
        """What a trace row says of it."""
        return {"embed_model": self.vectoriser.embedder.id, "metric": "cosine"}

    def search(self, text: str, k: int) -> list[Ranked]:
        """The passages nearest to the question; none where it has no direction."""
        vector = self.vectoriser.vectors([text], "query")[0]
        if not vector.any():
            return []
        # Only candidates: the sum of a product depends on the library and its threads.
        rough = self.matrix @ vector
        rough[~self.directed] = -np.inf  # a text without words is near nothing
        numbers = np.flatnonzero(self.directed)
        if len(numbers) > k:
            least = np.partition(rough, len(rough) - k)[len(rough) - k]
            numbers = np.flatnonzero(rough >= least - _SLACK)
        return best(self._exact(numbers, vector), numbers, self.order, k)

    def _exact(self, numbers: NDArray[np.int64], vector: Vectors) -> NDArray[np.float64]:
        """The cosines of some passages, rounded."""
        double = vector.astype(np.float64)
        cosines = np.empty(len(numbers), np.float64)
        for start in range(0, len(numbers), _ROWS):
            part = self.matrix[numbers[start : start + _ROWS]].astype(np.float64)
            cosines[start : start + _ROWS] = (part * double).sum(axis=1)
        return np.round(cosines, DECIMALS) + 0.0  # no minus before a zero

    def close(self) -> None:
        """Close the cache of the vectors."""
        self.vectoriser.close()
