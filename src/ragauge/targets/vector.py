"""The target `vector:DIR`: the passages of a corpus whose vectors are nearest to the question's."""

from __future__ import annotations

from ragauge.model.target import TargetKind
from ragauge.targets.shared.corpus_index import open_corpus_target
from ragauge.targets.shared.vector_index import NAMES, VectorIndex

TARGET = TargetKind(
    name="vector",
    title="exact search by vectors over a corpus: vector:DIR",
    schemes=("vector",),
    open=lambda address, options: open_corpus_target(address, options, NAMES, VectorIndex),
)
