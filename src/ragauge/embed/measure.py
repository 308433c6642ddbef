"""Opening embedders by name, and ΔS of texts; each text is embedded once."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from contextlib import contextmanager
from math import sqrt
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ragauge import registry
from ragauge.embed.cache import IN_MEMORY, Cached, VectorCache, default_path, key_of
from ragauge.errors import RagaugeError
from ragauge.model.embedder import Embedder, Role
from ragauge.model.semantic import is_lexical

if TYPE_CHECKING:
    from collections.abc import Iterator

_AT_ONCE = 256
_MOST_RECENT = 4096
NO_CACHE = "none"


def open_embedder(name: str, settings: Mapping[str, Mapping[str, Any]] | None = None) -> Embedder:
    """Open the embedder that `NAME` or `NAME:MODEL` means, with its settings by name."""
    kind, _, model = name.partition(":")
    kinds = registry.embedders()
    if kind not in kinds:
        raise registry.unknown_name("embedder", kind, kinds)
    options = dict((settings or {}).get(kind, {}))
    if model:
        options["model"] = model
    embedder = kinds[kind].open(options)
    if embedder.lexical != is_lexical(embedder.id):
        message = f"the embedder `{kind}` has the id `{embedder.id}`"
        hint = "an id begins with `lexical` if, and only if, the embedder compares words"
        raise RagaugeError.of("bad-plugin", message, hint=hint)
    return embedder


def is_same_model(named: str, embedder: str) -> bool:
    """Whether the name of a model that a trace records is that of an embedder.

    `sentence-transformers/all-MiniLM-L6-v2` and `all-minilm-l6-v2` are; so is the whole id.
    """
    if named == embedder:
        return True
    short = [name.partition("@")[0].rpartition("/")[2].casefold() for name in (named, embedder)]
    return bool(short[0]) and short[0] == short[1]


def embed_into_cache(
    cache: VectorCache, embedder: Embedder, texts: Mapping[bytes, str], role: Role
) -> dict[bytes, Cached]:
    """Embed texts that the cache does not have, by their keys, and add their vectors to it."""
    embedded = embedder.embed(list(texts.values()), role)
    vectors = {
        key: Cached(embedded.vectors[row], bool(embedded.truncated[row]))
        for row, key in enumerate(texts)
    }
    cache.add(vectors)
    return vectors


class Measurer:
    """Measures ΔS of texts. Vectors come from the cache, or are computed and stored there.

    The values do not depend on the order in which it is asked, nor on what is in the cache.
    """

    def __init__(self, embedder: Embedder, cache: VectorCache) -> None:
        self.embedder = embedder
        self.cache = cache
        self.made = self.found = 0
        self.truncated: set[bytes] = set()
        self._recent: dict[bytes, Direction | None] = {}

    def prepare(self, texts: Iterable[str], role: Role) -> None:
        """Compute the vectors that are missing, in batches that are cached at once."""
        keyed = ((key_of(self.embedder.id, role, text), text) for text in texts if text.strip())
        wanted = {key: text for key, text in keyed if key not in self._recent}
        keys = sorted(wanted)  # the same batches, whatever the order of the texts
        for start in range(0, len(keys), _AT_ONCE):
            self._batch(keys[start : start + _AT_ONCE], wanted, role)

    def _batch(self, keys: Sequence[bytes], texts: Mapping[bytes, str], role: Role) -> None:
        vectors = self.cache.find(keys)
        missing = {key: texts[key] for key in keys if key not in vectors}
        if missing:
            vectors |= embed_into_cache(self.cache, self.embedder, missing, role)
        self.made += len(missing)
        self.found += len(keys) - len(missing)
        for key in keys:
            cached = vectors[key]
            if cached.truncated:
                self.truncated.add(key)
            self._recent[key] = direction(cached.vector)

    def forget(self) -> None:
        """Let go of directions, so that a long run needs no more memory than a short one."""
        if len(self._recent) > _MOST_RECENT:
            self._recent.clear()

    def distance(self, question: str | None, text: str | None) -> float | None:
        """ΔS of a question and a text; None where one of them is empty."""
        if not question or not text:
            return None
        return delta_s(self.direction(question, "query"), self.direction(text, "document"))

    def distances(self, pairs: Sequence[tuple[str, str]]) -> list[float]:
        """ΔS of many questions and texts, without those that have none."""
        return [value for value in self.each_distance(pairs) if value is not None]

    def each_distance(self, pairs: Sequence[tuple[str, str]]) -> list[float | None]:
        """ΔS of each of many questions and texts."""
        values: list[float | None] = []
        for start in range(0, len(pairs), _AT_ONCE):
            part = pairs[start : start + _AT_ONCE]
            self.prepare([question for question, _ in part], "query")
            self.prepare([text for _, text in part], "document")
            values += [self.distance(question, text) for question, text in part]
            self.forget()
        return values

    def between(self, one: str | None, other: str | None) -> float | None:
        """ΔS of two texts that are both documents."""
        if not one or not other:
            return None
        return delta_s(self.direction(one, "document"), self.direction(other, "document"))

    def direction(self, text: str, role: Role) -> Direction | None:
        """The direction of one text; None if it is empty or says nothing."""
        if not text.strip():
            return None
        key = key_of(self.embedder.id, role, text)
        if key not in self._recent:
            self.prepare([text], role)
        return self._recent[key]

    def notes(self) -> list[str]:
        """What a reader should know: texts that were cut off, and trouble with the cache."""
        notes = list(self.cache.notes)
        if self.cache.damaged:
            notes.append(f"{self.cache.damaged} vectors of the cache were damaged and made anew")
        if self.truncated:
            count = len(self.truncated)
            noun = "text was" if count == 1 else "texts were"
            longer = f"{count} {noun} longer than {self.embedder.id} reads"
            notes.append(f"{longer}: ΔS is of their beginnings")
        if self.embedder.lexical:
            lexical = f"ΔS of {self.embedder.id} is lexical"
            notes.append(f"{lexical}: it compares words, and feeds no gate")
        return notes


@contextmanager
def open_measurer(
    name: str,
    *,
    settings: Mapping[str, Mapping[str, Any]] | None = None,
    cache: str | os.PathLike[str] | None = None,
) -> Iterator[Measurer]:
    """Open an embedder with its cache: a file, the user's own where none is named, or `none`."""
    embedder = open_embedder(name, settings)
    path = default_path() if cache is None else cache
    with VectorCache(IN_MEMORY if str(path) == NO_CACHE else path) as opened:
        yield Measurer(embedder, opened)


class Direction:
    """A vector that distances are taken from; `square` is the square of its length."""

    __slots__ = ("square", "values")

    def __init__(self, vector: NDArray[np.float32]) -> None:
        # Products of two single-precision numbers are exact in double precision.
        self.values = vector.astype(np.float64)
        self.square = _dot(self.values, self.values)


def delta_s(one: Direction | None, other: Direction | None) -> float | None:
    """1 - cos of two vectors, from 0 to 2; None where one of them has no direction."""
    if one is None or other is None or not one.square or not other.square:
        return None
    dot = _dot(one.values, other.values)
    # Rounding can leave the range by a few bits where two vectors are parallel.
    return min(2.0, max(0.0, 1.0 - dot / sqrt(one.square * other.square)))


def direction(vector: NDArray[np.float32]) -> Direction | None:
    """The direction of a vector; None for one of zeros, which a text without words has."""
    return Direction(vector) if vector.any() else None


def _dot(one: NDArray[np.float64], other: NDArray[np.float64]) -> float:
    """Add the products up in numpy's fixed order: a linear algebra library has one of its own."""
    return float((one * other).sum())
