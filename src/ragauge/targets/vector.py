"""The target `vector:DIR`: the passages of a corpus whose vectors are nearest to the question's."""

from __future__ import annotations

from ragauge.model.target import TargetKind, TargetOptions
from ragauge.targets.shared.address import split_address
from ragauge.targets.shared.corpus_index import CORPUS_NAMES, CorpusTarget, open_passages
from ragauge.targets.shared.vector_index import NAMES, VectorIndex, Vectoriser


def _open(address: str, options: TargetOptions) -> CorpusTarget:
    place, settings = split_address(address, options, (*CORPUS_NAMES, *NAMES))
    passages = open_passages(place, settings, options)
    return CorpusTarget(passages, VectorIndex(passages, Vectoriser(settings, options)), options.k)


TARGET = TargetKind(
    name="vector",
    title="exact search by vectors over a corpus: vector:DIR",
    schemes=("vector",),
    open=_open,
)
