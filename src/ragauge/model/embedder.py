"""Embedders: texts become vectors, whose distances are ΔS."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, Protocol

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from ragauge.model.access import Access

Role = Literal["query", "document"]
Vectors = NDArray[np.float32]


class Embedded(Struct, frozen=True):
    """Vectors of length 1, a row for each text, and which texts were cut off before their end.

    A text without any token has a row of zeros: it has no direction, and no ΔS.
    """

    vectors: Vectors
    truncated: Sequence[bool]


class Embedder(Protocol):
    """Makes vectors. The vector of a text never depends on the texts that it comes with.

    id        names all that a vector depends on: model, hash of its weights, pooling, prefixes,
              longest text, normaliser; ΔS of different ids are never compared
    lexical   it compares words and not meanings: its ΔS never feeds a gate
    """

    id: str
    dimensions: int
    lexical: bool

    def embed(self, texts: Sequence[str], role: Role) -> Embedded:
        """Make the vectors of some texts, as queries or as documents."""


class Embedding(Struct, frozen=True, kw_only=True):
    """How ΔS is to be taken anew.

    name       an embedder, or embedder:model
    settings   of embedders, by their names
    cache      the file of the vectors, `none` for no file, the user's own if not given
    tolerance  with it, recorded ΔS are compared with the measured ones
    """

    name: str
    settings: Mapping[str, Mapping[str, Any]] = {}
    cache: str | None = None
    tolerance: float | None = None


class EmbedderKind(Struct, frozen=True, kw_only=True):
    """A kind of embedder, and how one is opened with its settings.

    `reaches` says which hosts and which code settings lead to, before anything is opened; without
    it any setting that ragauge.toml gives needs the user's consent.
    """

    name: str
    title: str
    open: Callable[[Mapping[str, Any]], Embedder]
    reaches: Callable[[Mapping[str, Any]], Sequence[Access]] | None = None
