"""The target `bm25:DIR`: the words of the question, searched in a corpus."""

from __future__ import annotations

from ragauge.model.target import TargetKind, TargetOptions
from ragauge.targets.shared.address import split_address
from ragauge.targets.shared.corpus_index import CORPUS_NAMES, CorpusTarget, open_passages
from ragauge.targets.shared.lexical_index import NAMES, LexicalIndex


def _open(address: str, options: TargetOptions) -> CorpusTarget:
    place, settings = split_address(address, options, (*CORPUS_NAMES, *NAMES))
    passages = open_passages(place, settings, options)
    return CorpusTarget(passages, LexicalIndex(passages, settings), options.k)


TARGET = TargetKind(
    name="bm25",
    title="BM25 over a corpus: bm25:DIR",
    schemes=("bm25",),
    open=_open,
)
