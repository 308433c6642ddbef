"""Sameness: whether two runs mean the same by the name of a document, a chunking or a chunk id."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import Literal, NamedTuple

import numpy as np

from ragauge.compare.known_documents import Document, Library, Side
from ragauge.metrics.columns import Bools
from ragauge.model.evidence import ChunkFacts, SketchRow
from ragauge.model.payloads import id_number, number_of
from ragauge.spans import Span, of_unit
from ragauge.text import text_hash

Content = Literal["same", "differs", "unsure"]


class Pair(NamedTuple):
    """A name, and what it stands for on both sides; None where a side knows nothing of the kind.

    `named_a` and `named_b`: that side knows the document by this very name.
    """

    name: str
    a: Document | None
    b: Document | None
    named_a: bool
    named_b: bool
    content: Content

    @property
    def names(self) -> tuple[str, str]:
        """What the sides call it."""
        return (
            self.name if self.a is None else self.a.name,
            self.name if self.b is None else self.b.name,
        )

    @property
    def renamed(self) -> bool:
        """Whether the sides call it by different names."""
        one, other = self.names
        return one != other

    @property
    def moved(self) -> bool:
        """Whether it has another path too, where it has one: not only its id is new."""
        if self.a is None or self.b is None or not self.renamed:
            return False
        return self.a.path is None or self.a.path != self.b.path


class Sameness:
    """What two sides have in common.

    contradicted   expected ids that mean something else on the other side
    off            an id that shows that equal chunker versions cannot be believed; mostly None
    """

    def __init__(self, a: Side, b: Side) -> None:
        self.a, self.b = Library(a), Library(b)
        self._pairs: dict[str | None, Pair] = {}
        self._trusted: dict[str | None, bool] = {}
        self.contradicted: set[str] = set()
        self.off: str | None = None
        for name in sorted(self._clashing()):
            self.contradicted.add(name)
            if self.off is None and not self._explained(name):
                self.off = name
        if self.off is None:
            self.off = self._clash_in_sketches()

    @cached_property
    def whole(self) -> bool:
        """Whether every id means the same on both sides: no document has to be looked at."""
        return (
            self.off is None
            and not self.contradicted
            and not self.strangers
            and self._listed_alike()
            and self.trusts(None)
            and all(map(self.trusts, self._unequal()))
        )

    def _listed_alike(self) -> bool:
        a, b = self.a.side.chunks, self.b.side.chunks
        return not a or not b or a is b or a.keys() == b.keys()

    def _unequal(self) -> Iterator[str]:
        """The names of documents that the sides do not say the very same of."""
        a, b = self.a, self.b
        plain = not (a.side.texts or b.side.texts)
        if plain and a.side.chunks == b.side.chunks and a.side.evidence == b.side.evidence:
            return
        for one, other in ((a, b), (b, a)):
            for name, facts in one.docs.items():
                alike = facts is not None and facts == other.docs.get(name)
                if not (alike and plain and one.hashes.get(name) == other.hashes.get(name)):
                    yield name
            for path, ids in one.paths.items():
                if path in one.docs or path in other.docs or ids != other.paths.get(path):
                    yield path

    def trusts(self, doc: str | None) -> bool:
        """Whether equal ids in a document are equal chunks, because the chunking is the same."""
        if self.a.is_blank or self.b.is_blank:
            return True  # a run without a hit misses everything, under any chunking
        found = self._trusted.get(doc)
        if found is None:
            pair = self.locate(doc)
            found = self._trusted[doc] = (
                self.off is None
                and pair.content != "differs"
                and not pair.renamed
                and self.same_chunking(pair.a, pair.b)
            )
        return found

    def same_chunking(self, a: Document | None, b: Document | None) -> bool:
        """Whether two documents went through the same chunker, as far as the sides say."""
        a = a if a is not None and a.seen else None
        b = b if b is not None and b.seen else None
        one, other = a or self.a, b or self.b
        for mine, theirs in ((one.chunkers, other.chunkers), (one.policies, other.policies)):
            if mine == theirs:
                continue
            if (a is not None and b is not None) or set(mine).isdisjoint(theirs):
                return False
        return True

    def recorded(self, doc: str | None) -> bool:
        """Whether a side says at all what chunker a document went through, or the whole run."""
        pair = self.locate(doc)
        for document, library in ((pair.a, self.a), (pair.b, self.b)):
            known = library if document is None or not document.seen else document
            if known.chunkers or known.policies:
                return True
        return False

    def doubts(self, doc: str | None) -> bool:
        """Whether nobody says how a document was cut, and the runs have no chunk id in common."""
        return self.strangers and not self.recorded(doc)

    @cached_property
    def strangers(self) -> bool:
        """Whether both runs show chunks, and no id is the same: as if they had been cut anew.

        A run that shows none contradicts nothing. Ids of a list count as shown.
        """
        a, b = self.a, self.b
        if not a.shown or not b.shown or not a.shown.isdisjoint(b.shown):
            return False
        if not a.side.chunks.keys().isdisjoint(b.side.chunks.keys()):
            return False
        return not (a.lists_any(b.shown) or b.lists_any(a.shown))

    def locate(self, name: str | None) -> Pair:
        """Find a document on both sides: by its id, else its path, else its content."""
        found = self._pairs.get(name)
        if found is None:
            found = self._pairs[name] = self._locate(name)
        return found

    def _locate(self, name: str | None) -> Pair:
        if name is None:
            return Pair("", None, None, False, False, "same")
        a, b = self.a.find(name), self.b.find(name)
        named_a, named_b = a is not None, b is not None
        if a is not None and b is None:
            b = _counterpart(a, self.b, self.a)
        elif b is not None and a is None:
            a = _counterpart(b, self.a, self.b)
        content = _content(a, b)
        if content == "same" and (a is None) != (b is None):
            # A side that knows the texts of its documents, and not this one, may well lack it.
            lacking = self.a if a is None else self.b
            content = "unsure" if lacking.side.texts else content
        return Pair(name, a, b, named_a, named_b, content)

    def same_chunk(self, name: str) -> bool:
        """Whether both sides know a chunk id, and know that its content is the same."""
        one, other = self.a.facts(name), self.b.facts(name)
        if one is None or other is None:
            return False
        told = _same_text(one, other)
        if told is None:
            return self._same_place(one, other) is True
        return told

    def _same_place(self, one: ChunkFacts, other: ChunkFacts) -> bool | None:
        """Whether two sides place a chunk alike in the same text; None if they do not say."""
        if not one.spans or not other.spans:
            return None
        doc, twin = one.doc or one.path, other.doc or other.path
        if _unions(one.spans) != _unions(other.spans):
            return False
        if doc is None or twin is None:
            return None
        if not self._same_document(doc, twin):
            return False
        return True if self._contents(doc, twin) == {"same"} else None

    def _same_document(self, a: str | None, b: str | None) -> bool:
        """Whether a name of the first side and one of the second mean the same document."""
        if a is None or b is None or a == b:
            return a == b
        there, here = self.locate(a).b, self.locate(b).a
        return (there is not None and b in (there.name, there.path, *there.ids)) or (
            here is not None and a in (here.name, here.path, *here.ids)
        )

    def _contents(self, a: str | None, b: str | None) -> set[Content]:
        """What is known of the content of a document that the sides call by these names."""
        return {self.locate(a).content, self.locate(b).content}

    def _clashing(self) -> Iterator[str]:
        """The ids that both sides know by name, and know to differ."""
        a, b = self.a.side, self.b.side
        mine, theirs = self.a.named, self.b.named
        shared = mine.keys() & theirs.keys()
        yield from (name for name in shared if self._clash(mine[name], theirs[name]))
        if a.chunks and b.chunks and a.chunks is not b.chunks:
            listed = {each for each in a.chunks.keys() & b.chunks.keys() if each not in shared}
            listed = {each for each in listed if a.chunks[each] != b.chunks[each]}
        else:
            listed = set()
        listed |= (mine.keys() & b.chunks.keys()) | (theirs.keys() & a.chunks.keys())
        for name in listed - shared:
            one, other = self.a.facts(name), self.b.facts(name)
            if one is not None and other is not None and self._clash(one, other):
                yield name

    def _clash(self, one: ChunkFacts, other: ChunkFacts) -> bool:
        if one == other:
            return False
        told = _same_text(one, other)
        return self._same_place(one, other) is False if told is None else not told

    def _explained(self, name: str) -> bool:
        """Whether a chunk differs because its document was edited, or is said to be cut anew."""
        one, other = self.a.facts(name), self.b.facts(name)
        if one is None or other is None:
            return False
        if (one.chunker_version, one.policy_hash) != (other.chunker_version, other.policy_hash):
            return True
        doc, twin = one.doc or one.path, other.doc or other.path
        return self._same_document(doc, twin) and self._changed(doc, twin)

    def _changed(self, doc: str | None, twin: str | None) -> bool:
        """Whether a document was edited, or says that it was cut by another chunker."""
        if "differs" in self._contents(doc, twin):
            return True
        names = {each for each in (doc, twin) if each is not None}
        pairs = [self.locate(each) for each in names]
        return any(not self.same_chunking(pair.a, pair.b) for pair in pairs)

    def _clash_in_sketches(self) -> str | None:
        """An id in both sketches that differs, and whose document was neither edited nor recut."""
        rows, others = _differing(self.a.side.evidence.sketch, self.b.side.evidence.sketch)
        if not rows:
            return None
        names = {
            number_of(name): name
            for side in (self.a, self.b)
            for known in (side.docs, side.paths)
            for name in known
        }
        for row, other in zip(rows, others, strict=True):
            doc, twin = names.get(row.doc), names.get(other.doc)
            if doc is not None and self._same_document(doc, twin):
                renamed = doc != twin and not (row.text and other.text)
                if renamed or self._changed(doc, twin):
                    continue  # a place is named with its document
            return self._name_of(row.id)
        return None

    def _name_of(self, number: int) -> str:
        for side in (self.a.side, self.b.side):
            for known in (side.evidence.expected, side.evidence.negatives, side.chunks):
                for name in known:
                    if id_number(name) == number:
                        return name
        return f"number {number:016x}"


def _counterpart(doc: Document, other: Library, own: Library) -> Document | None:
    """The same document under another name: by id, else by path, else by content."""
    for name in (*doc.ids, *([doc.path] if doc.path is not None else [])):
        found = other.find(name)
        if found is not None:
            return found
    return other.like(doc, own)


def _content(a: Document | None, b: Document | None) -> Content:
    """Hashes tell first; where they do not agree, the texts may: a hash is of one kind or another.

    Known on neither side counts as the same, on one side only it does not.
    """
    mine, theirs = a.hashes if a is not None else (), b.hashes if b is not None else ()
    if mine and mine == theirs:
        return "same"
    if a is not None and b is not None and a.text is not None and b.text is not None:
        if a.text == b.text:
            return "same"
        if (mine and theirs) or not _compatible(a.text, b.text):
            return "differs"
    elif mine and theirs:
        return "differs"
    return "unsure" if mine or theirs else "same"


def _compatible(one: str, other: str) -> bool:
    """Whether two texts may be of one document: a blank may stand for what a side does not know.

    Texts put together from chunks have blanks where no chunk lies, byte for byte.
    """
    a, b = (np.frombuffer(text.encode(), np.uint8) for text in (one, other))
    shorter = min(len(a), len(b))
    a, b = a[:shorter], b[:shorter]
    blank = ord(" ")
    return bool(((a == b) | (a == blank) | (b == blank)).all())


def _same_text(one: ChunkFacts, other: ChunkFacts) -> bool | None:
    """Whether two chunks have the same text; None if a side does not know it all.

    The hash of one side may be its own and that of the other made here: then the text decides.
    """
    mine, theirs = one.text_hash, other.text_hash
    if mine is None or theirs is None:
        return None
    return (
        mine == theirs
        or (one.text is not None and text_hash(one.text) == theirs)
        or (other.text is not None and text_hash(other.text) == mine)
    )


def _unions(spans: tuple[Span, ...]) -> dict[str, list[tuple[int, int]]]:
    return {unit: of_unit(spans, unit) for unit in sorted({span.unit for span in spans})}


def _differing(
    one: tuple[SketchRow, ...], other: tuple[SketchRow, ...]
) -> tuple[list[SketchRow], list[SketchRow]]:
    """The rows of ids that two sketches share and tell different things of."""
    if not one or not other or one == other:
        return [], []
    a, b = np.array(one, np.uint64), np.array(other, np.uint64)
    _, mine, theirs = np.intersect1d(a[:, 0], b[:, 0], return_indices=True)
    a, b = a[mine], b[theirs]
    texts: Bools = (a[:, 1] != 0) & (b[:, 1] != 0)
    places: Bools = (a[:, 2] != 0) & (b[:, 2] != 0) & ~texts
    differ = (texts & (a[:, 1] != b[:, 1])) | (places & (a[:, 2] != b[:, 2]))
    return (
        [SketchRow(*row) for row in a[differ].tolist()],
        [SketchRow(*row) for row in b[differ].tolist()],
    )
