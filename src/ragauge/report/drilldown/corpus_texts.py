"""Texts that a run does not have, read from a corpus, with their evidence highlighted."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from ragauge.corpus.excerpts import Excerpt, Excerpts
from ragauge.ids import doc_of
from ragauge.model.evidence import DocFacts
from ragauge.report.html.size_budget import GAP, shorten
from ragauge.scoring.highlights import Highlights, spaced
from ragauge.spans import Span

MOST = 20_000
"""Characters of a passage; a run whose chunks are whole documents would fill all memory."""


class ShownText(NamedTuple):
    """A text as a page shows it, and the parts of it that are evidence."""

    text: str
    highlights: Highlights = ()


class CorpusTextReader:
    """Reads the texts of one run, or of two, by what they know of the content of documents.

    Where two runs know different contents of a document, nobody can tell which is meant.
    """

    def __init__(self, texts: Excerpts, docs_of_runs: Sequence[Mapping[str, DocFacts]]) -> None:
        self._texts = texts
        self._known = docs_of_runs
        self._hashes: dict[tuple[str, ...], tuple[str, ...] | None] = {}

    def find(
        self,
        name: str,
        doc: str | None,
        spans: tuple[Span, ...],
        doc_hash: str | None,
        path: str | None = None,
    ) -> Excerpt | None:
        """What the corpus has of a passage, unless the run says that it was another text.

        `path` is another name of the document; where it has none, the id may name one.
        """
        doc = doc or path or doc_of(name)
        docs = () if doc is None else (doc,) if path is None or path == doc else (doc, path)
        hashes = (doc_hash,) if doc_hash is not None else self._hashes_of(docs)
        return None if hashes is None else self._texts.find(name, docs, spans, hashes)

    def _hashes_of(self, docs: tuple[str, ...]) -> tuple[str, ...] | None:
        if docs in self._hashes:
            return self._hashes[docs]
        hashes_of_runs = [
            tuple(
                digest for doc in docs if doc in docs_of_run for digest in docs_of_run[doc].hashes
            )
            for docs_of_run in self._known
        ]
        different = list(dict.fromkeys(hashes for hashes in hashes_of_runs if hashes))
        agreed = None if len(different) > 1 else different[0] if different else ()
        self._hashes[docs] = agreed
        return agreed

    def shown(self, excerpt: Excerpt, lit: Highlights) -> ShownText:
        """The text of an excerpt; `lit` counts its parts as if nothing stood between them."""
        parts = excerpt.parts
        text = parts[0] if len(parts) == 1 else GAP.join(parts)
        if len(parts) > 1 and lit:
            lit = spaced(lit, [len(part) for part in parts], len(GAP))
        if len(text) <= MOST:
            return ShownText(text, lit)
        self._texts.cut.add((excerpt.doc, excerpt.spans))
        short = shorten(text, lit, MOST)
        moved = (short.span(*span) for span in lit)
        return ShownText(short.text, tuple(span for span in moved if span is not None))
