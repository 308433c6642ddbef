"""The target `hybrid:DIR`: BM25 and vectors over a corpus, made one by reciprocal rank fusion."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ragauge.model.target import TargetKind, TargetOptions
from ragauge.targets.shared import lexical_index, vector_index
from ragauge.targets.shared.address import TargetSettings
from ragauge.targets.shared.corpus_index import Passages, Ranked, fused, open_corpus_target

NAMES = (*lexical_index.NAMES, *vector_index.NAMES, "rrf", "depth")
CONSTANT = 60
DEPTH = 100
"""How far down each ranking goes into the fusion, where no more hits are wanted."""


class HybridIndex:
    """Two indexes over the same passages."""

    def __init__(
        self, passages: Passages, settings: TargetSettings, options: TargetOptions
    ) -> None:
        self.order = passages.order
        self.constant = settings.number("rrf", CONSTANT, 1, 100_000)
        self.depth = int(settings.number("depth", DEPTH, 1, 100_000))
        self.lexical = lexical_index.LexicalIndex(passages, settings, options)
        self.vectors = vector_index.VectorIndex(passages, settings, options)

    @property
    def facts(self) -> Mapping[str, Any]:
        """What both say, and how they are fused."""
        both = {**self.lexical.facts, **self.vectors.facts}
        return {**both, "rrf": self.constant, "depth": self.depth}

    @property
    def names(self) -> Mapping[str, str]:
        """What a trace row says of it."""
        return {**self.lexical.names, **self.vectors.names, "metric": "rrf"}

    def search(self, text: str, k: int) -> list[Ranked]:
        """The best of both rankings."""
        deep = max(k, self.depth)
        rankings = [self.lexical.search(text, deep), self.vectors.search(text, deep)]
        return fused(rankings, self.order, k, self.constant)

    def close(self) -> None:
        """Close what the vectors have open."""
        self.vectors.close()


TARGET = TargetKind(
    name="hybrid",
    title="BM25 and vectors over a corpus, fused by rank: hybrid:DIR",
    schemes=("hybrid",),
    open=lambda address, options: open_corpus_target(address, options, NAMES, HybridIndex),
)
