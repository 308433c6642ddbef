"""The target `bm25:DIR`: the words of the question, searched in a corpus."""

from __future__ import annotations

from ragauge.model.target import TargetKind
from ragauge.targets.shared.corpus_index import open_corpus_target
from ragauge.targets.shared.lexical_index import NAMES, LexicalIndex

TARGET = TargetKind(
    name="bm25",
    title="BM25 over a corpus: bm25:DIR",
    schemes=("bm25",),
    open=lambda address, options: open_corpus_target(address, options, NAMES, LexicalIndex),
    reaches=lambda _: (),
)
