"""Looking things up in a corpus: the block or section of an id, the text of a span, a quote.

Whatever cannot be found is a `FieldError` that names similar things that are there.
"""

from __future__ import annotations

import difflib
import heapq
import re
import unicodedata
from bisect import bisect_left, bisect_right
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from itertools import accumulate
from typing import AnyStr

from msgspec import Struct

from ragauge.corpus.canonical_text import line_starts
from ragauge.corpus.manifest import Corpus, read_corpus
from ragauge.corpus.section_tree import section_at
from ragauge.files.fields import FieldError
from ragauge.ids import split_section
from ragauge.model.corpus import Block, Document, Extent, Section
from ragauge.quotes import clusters, is_quote, normalised, outer_blanks
from ragauge.spans import Span

_CACHED_BYTES = 64 * 1024 * 1024
_MAX_SUGGESTED = 3
_MAX_COMPARED = 200
_SHORTEST_HASH = 8  # hexadecimal digits; fewer would confirm a document by accident
_WORD = re.compile(r"\S+")
_OTHER_CORPUS = (
    "check that it is the corpus that the ids were made from; `corpus redirect` follows ids"
)


class CorpusSpot(Struct, frozen=True, kw_only=True):
    """A place in a corpus: bytes of a document, with the section and the block that hold it.

    `block` is the block that the place lies in; None where it lies in several or between them.
    """

    doc: str
    start: int
    end: int
    section: str | None = None
    block: str | None = None


class Lookup:
    """Finds documents, blocks, sections and quotes of one corpus; texts are read when needed."""

    def __init__(self, corpus: Corpus) -> None:
        self.corpus = corpus
        self.documents = {document.doc: document for document in corpus.documents}
        self.blocks = {block.id: block for block in corpus.blocks}
        self._texts: OrderedDict[str, bytes] = OrderedDict()
        self._cached_bytes = 0
        self._decoded: tuple[str, str] = ("", "")

    @cached_property
    def blocks_by_doc(self) -> dict[str, list[Block]]:
        """The blocks of each document, in reading order."""
        by_doc: dict[str, list[Block]] = {doc: [] for doc in self.documents}
        for block in self.corpus.blocks:
            by_doc[block.doc].append(block)
        return by_doc

    @cached_property
    def sections_by_doc(self) -> dict[str, list[Section]]:
        """The sections of each document, in reading order."""
        by_doc: dict[str, list[Section]] = {doc: [] for doc in self.documents}
        for section in self.corpus.sections:
            by_doc[section.doc].append(section)
        return by_doc

    @cached_property
    def _sections(self) -> dict[str, dict[str, Section]]:
        """The sections of each id, by document."""
        by_id: dict[str, dict[str, Section]] = {}
        for section in self.corpus.sections:
            by_id.setdefault(section.id, {})[section.doc] = section
        return by_id

    def document(self, doc: str) -> Document:
        """The document of that name."""
        document = self.documents.get(doc)
        if document is None:
            raise _unresolved(f"the corpus has no document `{doc}`", _near(doc, self.documents))
        return document

    def block(self, name: str) -> Block:
        """The block of that id."""
        block = self.blocks.get(name)
        if block is None:
            raise _unresolved(f"the corpus has no block `{name}`", self._like(name))
        return block

    def _like(self, name: str) -> str:
        """Name blocks that may be meant: of the same document, or of one called alike."""
        doc, _, tail = name.rpartition("#")
        if doc in self.documents:
            return _near(name, (block.id for block in self.blocks_by_doc[doc]))
        similar = _similar_names(doc, self.documents) if doc else []
        moved = [f"{other_doc}#{tail}" for other_doc in similar]
        return _suggest([block_id for block_id in moved if block_id in self.blocks])

    def section(self, name: str, doc: str | None = None) -> Section:
        """The section that `guide.md#S.4.2` names, or `S.4.2` in a document."""
        inside, path = split_section(name)
        doc = inside if inside is not None else doc
        # With or without the leading `S.`.
        by_doc = {**self._sections.get(f"S.{path}", {}), **self._sections.get(path, {})}
        if doc is None:
            if len(by_doc) != 1:
                why = f"it stands in {len(by_doc)} documents" if by_doc else "no document has it"
                hint = "write it with its document, as in guide.md#S.4.2"
                raise _unresolved(f"the section `{name}` cannot be told: {why}", hint)
            return next(iter(by_doc.values()))
        self.document(doc)
        if doc not in by_doc:
            section_ids = [section.id for section in self.sections_by_doc[doc]]
            raise _unresolved(f"`{doc}` has no section `{path}`", _near(path, section_ids))
        return by_doc[doc]

    def text(self, doc: str) -> bytes:
        """The canonical text of a document; those asked for last are kept."""
        text = self._texts.get(doc)
        if text is not None:
            self._texts.move_to_end(doc)
            return text
        text = self.corpus.text(self.document(doc))
        self._texts[doc] = text
        self._cached_bytes += len(text)
        while self._cached_bytes > _CACHED_BYTES and len(self._texts) > 1:
            self._cached_bytes -= len(self._texts.popitem(last=False)[1])
        return text

    def _characters(self, doc: str) -> str:
        """The text of a document as characters; the last one is kept."""
        if self._decoded[0] != doc:
            self._decoded = (doc, self.text(doc).decode())
        return self._decoded[1]

    def quote(self, spot: CorpusSpot) -> str:
        """The text at a place."""
        return self.text(spot.doc)[spot.start : spot.end].decode()

    def spot(self, doc: str, start: int, end: int) -> CorpusSpot:
        """The place of some bytes, which must lie in the text and not cut a character in two."""
        size = self.document(doc).bytes
        if not 0 <= start < end <= size:
            message = f"the bytes {start} to {end} are not in `{doc}`, which has {size}"
            hint = "the document changed, or the offsets count something other than UTF-8 bytes"
            raise _unresolved(message, hint)
        text = self.text(doc)
        for offset in (start, end):
            if offset < size and text[offset] & 0xC0 == 0x80:
                hint = "offsets count UTF-8 bytes; for characters say `unit: char`"
                raise _unresolved(f"the byte {offset} of `{doc}` is inside a character", hint)
        return self._spot(doc, start, end)

    def _spot(self, doc: str, start: int, end: int) -> CorpusSpot:
        at = section_at(self.sections_by_doc[doc], start)
        section = None if at is None else at.id
        touched = self.touched(doc, start, end)
        inside = len(touched) == 1 and touched[0].span[0] <= start and end <= touched[0].span[1]
        block = touched[0].id if inside else None
        return CorpusSpot(doc=doc, start=start, end=end, section=section, block=block)

    def spot_of(self, block: Block) -> CorpusSpot:
        """The place of a block."""
        doc, (start, end) = block.doc, block.span
        return CorpusSpot(doc=doc, start=start, end=end, section=block.section, block=block.id)

    def touched(self, doc: str, start: int, end: int) -> Sequence[Block]:
        """The blocks that share at least one byte with an extent, in reading order."""
        blocks = self.blocks_by_doc[doc]
        first = bisect_right(blocks, start, key=lambda block: block.span[1])
        last = bisect_left(blocks, end, key=lambda block: block.span[0])
        return [block for block in blocks[first:last] if block.span[0] < block.span[1]]

    def type_at(self, doc: str, start: int, end: int) -> str | None:
        """The type of the block that holds most of an extent; of equal ones the first."""
        best: tuple[int, str | None] = (0, None)
        for block in self.touched(doc, start, end):
            shared = min(end, block.span[1]) - max(start, block.span[0])
            if shared > best[0]:
                best = (shared, block.type)
        return best[1]

    def section_with_most(self, spots: Sequence[CorpusSpot]) -> str | None:
        """The section whose blocks hold most of some places; of equal ones the first."""
        shared: dict[str, int] = {}
        for spot in spots:
            for block in self.touched(spot.doc, spot.start, spot.end):
                common = min(spot.end, block.span[1]) - max(spot.start, block.span[0])
                shared[block.section] = shared.get(block.section, 0) + common
        return max(shared, key=lambda section: shared[section]) if shared else spots[0].section

    def in_bytes(self, doc: str, span: Span) -> Extent:
        """A span of bytes, characters, lines or pages as bytes; tokens and times have no place."""
        if span.unit == "byte":
            return span.start, span.end
        if span.unit == "char":
            text = self._characters(doc)
            if not 0 <= span.start <= span.end <= len(text):
                where = f"the characters {span.start} to {span.end}"
                hint = "the document changed, or the offsets count something else"
                raise _unresolved(f"{where} are not in `{doc}`, which has {len(text)}", hint)
            start = len(text[: span.start].encode())
            return start, start + len(text[span.start : span.end].encode())
        if span.unit == "line":
            return self._numbered(doc, span, line_starts(self.text(doc)))
        if span.unit == "page" and self.document(doc).pages:
            return self._numbered(doc, span, self.document(doc).pages)
        raise _unresolved(
            f"a place in {span.unit}{'' if span.unit == 'ms' else 's'} cannot be found in `{doc}`",
            "give bytes, characters (`unit: char`) or lines (`unit: line`)",
        )

    def _numbered(self, doc: str, span: Span, starts: Sequence[int]) -> Extent:
        """Lines or pages, counted from 1, as bytes; what begins behind the last byte is none."""
        size = self.document(doc).bytes
        edges = [*(start for start in starts if start < size), size]
        if not 1 <= span.start < span.end <= len(edges):
            raise _unresolved(
                f"`{doc}` has the {span.unit}s 1 to {len(edges) - 1}, not {span.start} to "
                f"{span.end - 1}",
                f"the document changed, or the {span.unit}s are counted otherwise",
            )
        return edges[span.start - 1], edges[span.end - 1]

    def places_of(self, doc: str, quote: str) -> list[Extent]:
        """Every place of a quote: as it stands, else with white space and NFC made alike."""
        return places_in(self.text(doc), quote)

    def find_quote(self, doc: str, quote: str, occurrence: int | None = None) -> CorpusSpot:
        """The place of a quote; where it stands several times, the occurrence says which."""
        self.document(doc)
        places = self.places_of(doc, quote) if quote.strip() else []
        if not places:
            message = f"the quote does not stand in `{doc}`: {short_quote(quote)}"
            hint = "copy it from the canonical text of the corpus"
            raise FieldError("quote-not-found", message, hint)
        if occurrence is None and len(places) > 1:
            named = ", ".join(str(start) for start, _ in places[:5])
            raise FieldError(
                "quote-ambiguous",
                f"the quote stands {len(places)} times in `{doc}`, at {named}: "
                f"{short_quote(quote)}",
                "say which with `occurrence`, counted from 1, or quote more",
            )
        if occurrence is not None and not 1 <= occurrence <= len(places):
            raise FieldError(
                "quote-not-found",
                f"`{doc}` has the quote {len(places)} times, not {occurrence}: "
                f"{short_quote(quote)}",
                "`occurrence` counts from 1",
            )
        return self._spot(doc, *places[(occurrence or 1) - 1])

    def check_quote(self, spot: CorpusSpot, quote: str, *, exact: bool = True) -> None:
        """Refuse a quote that does not stand at its place, and say where it does stand.

        `exact`: nor may the place have white space at its ends that the quote has not, or lack some
        that it has. Places in lines or pages are not as fine as that.
        """
        text = self.quote(spot)
        same_words = normalised(text) == normalised(quote)
        if same_words and (not exact or is_quote(text, quote)):
            return
        places = self.places_of(spot.doc, quote)
        elsewhere = ", ".join(f"{start} to {end}" for start, end in places[:_MAX_SUGGESTED])
        wrong = f"has {_blanks_apart(text, quote)} than the quote" if same_words else ""
        raise FieldError(
            "quote-moved",
            f"the text at {spot.start} to {spot.end} of `{spot.doc}` "
            f"{wrong or 'is not the quote'}: {short_quote(quote)}",
            f"it stands at {elsewhere}" if places else "it does not stand in the document any more",
        )


def _blanks_apart(text: str, quote: str) -> str:
    """Say what white space a text has more or less at its ends than a quote."""
    differences = []
    ends = zip(outer_blanks(text), outer_blanks(quote), ("beginning", "end"), strict=True)
    for here, wanted, end in ends:
        more = len(here.encode()) - len(wanted.encode())
        if more:
            count = "1 byte" if abs(more) == 1 else f"{abs(more)} bytes"
            side = "more" if more > 0 else "less"
            differences.append(f"{count} of white space {side} at its {end}")
        elif here != wanted:
            differences.append(f"other white space at its {end}")
    return " and ".join(differences)


def is_hash_of(document: Document, digest: str) -> bool:
    """Whether a hash is of this text; it may be cut short, and be of the source file."""
    prefix = digest.removeprefix("sha256:").lower()
    hashes = (document.hash, document.source_hash)
    return len(prefix) >= _SHORTEST_HASH and any(full.startswith(prefix) for full in hashes)


def _unresolved(message: str, hint: str) -> FieldError:
    return FieldError("unresolved", message, hint)


def _similar_names(name: str, candidates: Iterable[str]) -> list[str]:
    """Names that have the same last part, or else are spelt much alike."""
    names = list(candidates)
    last = name.rpartition("/")[2]
    same = [candidate for candidate in names if candidate.rpartition("/")[2] == last]
    if same:
        return same[:_MAX_SUGGESTED]
    # difflib takes long: only the names with the longest common beginning are compared.
    nearest = heapq.nlargest(_MAX_COMPARED, names, key=lambda other: _common_prefix(name, other))
    return difflib.get_close_matches(name, nearest, n=_MAX_SUGGESTED, cutoff=0.8)


def _common_prefix(one: str, other: str) -> int:
    """How many characters two names have in common at their beginning."""
    pairs = zip(one, other, strict=False)
    return next((at for at, (a, b) in enumerate(pairs) if a != b), min(len(one), len(other)))


def _near(name: str, candidates: Iterable[str]) -> str:
    return _suggest(_similar_names(name, candidates))


def _suggest(close: Sequence[str]) -> str:
    named = " or ".join(f"`{candidate}`" for candidate in close)
    return f"did you mean {named}?" if named else _OTHER_CORPUS


def short_quote(quote: str) -> str:
    """A quote as messages show it: on one line, and cut short."""
    text = normalised(quote)
    return f"`{text}`" if len(text) <= 60 else f"`{text[:57]}...`"


def open_corpus(folder: str) -> Lookup:
    """Read a corpus so that it can be asked."""
    return Lookup(read_corpus(folder))


def places_in(text: bytes, quote: str) -> list[Extent]:
    """Every place of a quote in a text, in order; those that overlap an earlier one as well.

    Where it is nowhere byte for byte, runs of white space count as one blank, and composed
    characters as their parts.
    """
    wanted = quote.encode(errors="surrogatepass")
    exact = [(at, at + len(wanted)) for at in _all_starts(text, wanted)] if wanted else []
    return exact if exact else _normalised_places(text.decode(), normalised(quote))


def _all_starts(text: AnyStr, wanted: AnyStr) -> Iterator[int]:
    at = text.find(wanted)
    while at >= 0:
        yield at
        at = text.find(wanted, at + 1)


def _normalised_places(text: str, wanted: str) -> list[Extent]:
    """The places of a normalised quote; an extent never begins or ends in white space."""
    if not wanted:
        return []
    # The text is composed word by word, so that a place in the composed text leads back to a word
    # of the text by its number, whatever composing did to lengths.
    words = [(word[0], word.start()) for word in _WORD.finditer(text)]
    folded = [unicodedata.normalize("NFC", word) for word, _ in words]
    starts = list(accumulate((len(word) + 1 for word in folded), initial=0))
    places = []
    for first in _all_starts(" ".join(folded), wanted):
        edges = []
        for letter, behind in ((first, False), (first + len(wanted) - 1, True)):
            number = bisect_right(starts, letter) - 1
            word, origin = words[number]
            inside = letter - starts[number]
            if folded[number] == word:
                edges.append(origin + inside + behind)
            else:
                edges.append(origin + _edges(word)[inside][behind])
        places.append((edges[0], edges[1]))
    return [(len(text[:start].encode()), len(text[:end].encode())) for start, end in places]


def _edges(word: str) -> list[tuple[int, int]]:
    """From where to where the letters of a word come that are left when it is composed."""
    edges: list[tuple[int, int]] = []
    at = 0
    for cluster in clusters(word):
        composed = unicodedata.normalize("NFC", cluster)
        edges += [(at, at + len(cluster))] * len(composed)
        at += len(cluster)
    return edges
