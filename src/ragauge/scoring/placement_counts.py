"""Counts of placed hits: whether the hits of a run can be held against the places of its gold."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from ragauge.corpus.document_names import DocumentNames, prefix_between
from ragauge.ids import doc_of
from ragauge.model.chunk import Chunk
from ragauge.model.trace import Hit, Trace
from ragauge.scoring.chunk_facts import wanted_ids
from ragauge.scoring.evidence_pieces import GoldDetails
from ragauge.scoring.trace_columns import GoldKeys


class PlacementCounts:
    """Counts by what hits are placed, over the questions whose evidence is a place or a quote.

    `prefixes` are the beginnings of names by which their documents differ from the corpus's.
    """

    def __init__(self, keys: GoldKeys, chunks: Mapping[str, Chunk]) -> None:
        self.details = {
            question: details
            for question, details in keys.details.items()
            if details.places or details.quoted
        }
        self.chunks = chunks
        self.ids = wanted_ids(keys) if self.details else frozenset()
        docs = {anchor.doc for details in self.details.values() for anchor in details.places}
        self.docs = frozenset(docs)
        self.names = DocumentNames(self.docs)
        self.counts: Counter[str] = Counter()
        self.prefixes: set[str] = set()

    def add(self, question: int, trace: Trace) -> None:
        """Count the hits of a trace."""
        details = self.details.get(question)
        if details is None or trace.error is not None:
            return
        docs, by_offsets = self.docs, 0
        for hit in trace.hits:
            if hit.placement is None and hit.spans and hit.doc in docs:
                by_offsets += 1  # the usual case: it says all itself
                continue
            self.counts[self._placement(hit, details)] += 1
            if hit.placement is not None and hit.path is not None and hit.doc is not None:
                prefix = prefix_between(hit.path, hit.doc)
                if prefix:
                    self.prefixes.add(prefix)
        if by_offsets:
            self.counts["offsets"] += by_offsets

    def take(self) -> dict[str, int]:
        """The counts so far; the next hit begins new ones."""
        counts, self.counts = dict(self.counts), Counter()
        return counts

    def _placement(self, hit: Hit, details: GoldDetails) -> str:
        chunk = self.chunks.get(hit.id)
        if hit.id in self.ids or (chunk is not None and chunk.spans):
            return "id"
        if not details.places:  # a quote: any text can be held against it
            has_text = hit.text or (chunk is not None and chunk.text)
            return "quote" if has_text else "no-text"
        docs = [name for name in (hit.doc, hit.path) if name] or [doc_of(hit.id) or ""]
        if hit.spans and not self.docs.isdisjoint(docs):
            return "offsets" if hit.placement in (None, "unknown-document") else hit.placement
        if hit.placement is not None:
            return hit.placement
        if not hit.spans:
            return "no-corpus" if hit.text else "no-text"
        is_other = any(self._is_other_name(name) for name in docs)
        return "other-name" if is_other else "offsets"

    def _is_other_name(self, name: str) -> bool:
        match = self.names.match(name)
        return bool(match.ambiguous or (match.doc is not None and match.doc != name))
