"""Facts about chunks and documents, collected from the hits of a run trace by trace."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Set
from zlib import crc32

from msgspec import Struct

from ragauge.ids import doc_of
from ragauge.model.chunk import Chunk
from ragauge.model.evidence import SKETCH, Carries, ChunkFacts, DocFacts, Evidence, SketchRow
from ragauge.model.gold import Anchor, GoldItem
from ragauge.model.payloads import id_number, number_of
from ragauge.model.trace import Hit, Trace
from ragauge.scoring.trace_columns import GoldKeys
from ragauge.spans import place_name
from ragauge.text import text_hash

_Sketch = dict[int, tuple[int, int, int]]
_MOST_VALUES = 20
_MOST_SEEN = 1 << 18
"""Hits that are remembered, so that a chunk that comes often is read once."""
_CLASH = (1 << 64) - 1
"""Marks what a run says in two ways. It must not depend on which of the two came first."""
_SPANS, _DOCS, _TEXTS = int(Carries.SPANS), int(Carries.DOCS), int(Carries.TEXTS)


class CollectedFacts(Struct, kw_only=True):
    """The facts so far; workers send them range by range, and `merge` puts them together."""

    expected: dict[str, ChunkFacts] = {}
    negatives: dict[str, ChunkFacts] = {}
    docs: dict[str, DocFacts] = {}
    chunkers: set[str] = set()
    policies: set[str] = set()
    units: set[str] = set()
    sketch: _Sketch = {}
    index: dict[str, set[str]] = {}

    def merge(self, other: CollectedFacts) -> None:
        """Add the facts of another part of the run; what was known before wins."""
        for mine, new in ((self.expected, other.expected), (self.negatives, other.negatives)):
            for name, facts in new.items():
                _learn(mine, name, facts)
        for name, doc in other.docs.items():
            before = self.docs.get(name)
            self.docs[name] = doc if before is None else _same_doc(before, doc)
        self.chunkers |= other.chunkers
        self.policies |= other.policies
        self.units |= other.units
        for name, values in other.index.items():
            self.index.setdefault(name, set()).update(values)
        for number, row in other.sketch.items():
            _put(self.sketch, number, row)
        if len(self.sketch) > 4 * SKETCH:
            self.sketch = _smallest(self.sketch)

    def evidence(self) -> Evidence:
        """All of it in a fixed order."""
        rows = [
            SketchRow(number, *(0 if word == _CLASH else word for word in row))
            for number, row in _smallest(self.sketch).items()
        ]
        return Evidence(
            expected={name: self.expected[name] for name in sorted(self.expected)},
            negatives={name: self.negatives[name] for name in sorted(self.negatives)},
            docs={name: self.docs[name] for name in sorted(self.docs)},
            chunkers=tuple(sorted(self.chunkers)),
            policies=tuple(sorted(self.policies)),
            units=tuple(sorted(self.units)),
            sketch=tuple(rows),
            bare_places=bool(rows),
            index={
                name: tuple(sorted(self.index[name])[:_MOST_VALUES]) for name in sorted(self.index)
            },
        )


class FactsCollector:
    """Collects facts; `chunks` places ids, and has texts for hits without one.

    `wanted` are the ids that the gold set names as evidence, `negatives` the hard negatives.
    Hashes of texts and the sketch are for runs that are compared (`comparable`): a page shows
    neither.
    """

    def __init__(
        self,
        wanted: Set[str],
        chunks: Mapping[str, Chunk],
        *,
        negatives: Set[str] = frozenset(),
        comparable: bool = True,
    ) -> None:
        self.wanted = wanted
        self.negatives = negatives - wanted
        self.chunks = chunks
        self.comparable = comparable
        self.found = CollectedFacts()
        self.seen: set[tuple[object, ...]] = set()
        self.smallest: set[int] = set()
        self.limit = 1 << 64

    def take(self) -> CollectedFacts:
        """Hand over what is new since the last time."""
        taken, self.found = self.found, CollectedFacts()
        if len(self.seen) > _MOST_SEEN:
            self.seen = set()
        return taken

    def add(self, trace: Trace) -> int:
        """Look at one trace; return what all its hits carry."""
        spanned = named = quotable = True
        for name, value in trace.index.items():
            self.found.index.setdefault(name, set()).add(value)
        version = trace.index.get("chunker_version")
        policy = trace.index.get("policy_hash")
        for hit in trace.hits:
            chunk = self.chunks.get(hit.id)
            doc = hit.doc or (chunk.doc if chunk is not None else None) or doc_of(hit.id)
            spans = hit.spans or (chunk.spans if chunk is not None else ())
            spanned = spanned and bool(spans)
            named = named and doc is not None
            quotable = quotable and has_text(hit, chunk)
            # Score, type and ΔS differ from question to question; what is stored does not.
            key = (hit.id, doc, spans, hit.text_hash or hit.text, hit.doc_hash, hit.chunker_version)
            if key not in self.seen:
                self.seen.add(key)
                facts = ChunkFacts(
                    doc=doc,
                    path=hit.path,
                    spans=spans,
                    text=hit.text,
                    text_hash=_text_hash(hit) if self.comparable else hit.text_hash,
                    chunker_version=hit.chunker_version or version,
                    policy_hash=hit.policy_hash or policy,
                )
                self._note(hit.id, facts, hit.doc_hash)
        return spanned * _SPANS | named * _DOCS | quotable * _TEXTS

    def add_chunks(self) -> None:
        """Look at the list of chunks: the ids that the gold set names, and all documents."""
        for name in sorted((self.wanted | self.negatives) & self.chunks.keys()):
            chunk = self.chunks[name]
            facts = ChunkFacts(
                doc=chunk.doc,
                spans=chunk.spans,
                text=chunk.text,
                text_hash=chunk.text_hash,
                chunker_version=chunk.chunker_version,
                policy_hash=chunk.policy_hash,
            )
            self._note(name, facts, chunk.doc_hash)
        for chunk in self.chunks.values():
            key = (chunk.doc, chunk.doc_hash, chunk.chunker_version, chunk.policy_hash)
            if key not in self.seen:
                self.seen.add(key)
                facts = ChunkFacts(
                    doc=chunk.doc,
                    chunker_version=chunk.chunker_version,
                    policy_hash=chunk.policy_hash,
                )
                self._document(facts, chunk.doc_hash)

    def _note(self, name: str, facts: ChunkFacts, doc_hash: str | None) -> None:
        gathered = self.found
        if name in self.wanted:
            _learn(gathered.expected, name, facts)
        elif name in self.negatives:
            _learn(gathered.negatives, name, facts)
        gathered.units.update(span.unit for span in facts.spans)
        self._document(facts, doc_hash)
        if not self.comparable:
            return
        if crc32(name.encode()) << 32 > self.limit:
            return
        number = id_number(name)
        # Without its document, which has a number of its own: offsets that differ tell two chunks
        # apart also where a run names no documents, or names them anew.
        place = place_name("", facts.spans) if facts.spans else None
        _put(
            gathered.sketch, number, (_number(facts.text_hash), _number(place), _number(facts.doc))
        )
        self.smallest.add(number)
        if len(self.smallest) > 2 * SKETCH:
            self.smallest = set(sorted(self.smallest)[:SKETCH])
            self.limit = max(self.smallest)

    def _document(self, facts: ChunkFacts, doc_hash: str | None) -> None:
        gathered = self.found
        version, policy = facts.chunker_version, facts.policy_hash
        if version is not None:
            gathered.chunkers.add(version)
        if policy is not None:
            gathered.policies.add(policy)
        name = facts.doc or facts.path
        if name is not None:
            doc = DocFacts(
                path=facts.path,
                hashes=_one(doc_hash),
                chunkers=_one(version),
                policies=_one(policy),
            )
            before = gathered.docs.get(name)
            gathered.docs[name] = doc if before is None else _same_doc(before, doc)


def has_text(hit: Hit, chunk: Chunk | None) -> bool:
    """Whether the text of a hit is known: its own, or that of its chunk in the list."""
    return hit.text is not None or (chunk is not None and chunk.text is not None)


def _learn(facts_by_id: dict[str, ChunkFacts], name: str, facts: ChunkFacts) -> None:
    before = facts_by_id.get(name)
    facts_by_id[name] = facts if before is None else _both(before, facts)


def _one(value: str | None) -> tuple[str, ...]:
    return () if value is None else (value,)


def _text_hash(hit: Hit) -> str | None:
    if hit.text_hash is not None or hit.text is None or hit.snippet:
        return hit.text_hash
    return text_hash(hit.text)


def _both(one: ChunkFacts, other: ChunkFacts) -> ChunkFacts:
    """The facts of two hits on one chunk together; the first wins."""
    if one == other:
        return one
    return ChunkFacts(
        doc=one.doc or other.doc,
        path=one.path or other.path,
        spans=one.spans or other.spans,
        text=one.text or other.text,
        text_hash=one.text_hash or other.text_hash,
        chunker_version=one.chunker_version or other.chunker_version,
        policy_hash=one.policy_hash or other.policy_hash,
    )


def _same_doc(one: DocFacts, other: DocFacts) -> DocFacts:
    if one == other:
        return one
    return DocFacts(
        path=one.path or other.path,
        hashes=_union(one.hashes, other.hashes),
        chunkers=_union(one.chunkers, other.chunkers),
        policies=_union(one.policies, other.policies),
    )


def _union(one: Iterable[str], other: Iterable[str]) -> tuple[str, ...]:
    return tuple(sorted({*one, *other}))


def _number(text: str | None) -> int:
    return 0 if text is None else number_of(text)


def _put(sketch: _Sketch, number: int, row: tuple[int, int, int]) -> None:
    """Add a row; what is said in two ways stays marked, whatever comes first."""
    mine = sketch.get(number)
    if mine is None:
        sketch[number] = row
    elif mine != row:
        text, place, doc = (
            (one or other) if not one or not other or one == other else _CLASH
            for one, other in zip(mine, row, strict=True)
        )
        sketch[number] = (text, place, doc)


def _smallest(sketch: _Sketch) -> _Sketch:
    return {number: sketch[number] for number in sorted(sketch)[:SKETCH]}


def wanted_ids(keys: GoldKeys) -> set[str]:
    """The chunk ids that a gold set names, by its keys."""
    names = {name for ids in keys.evidence for name in ids}
    for details in keys.details.values():
        names.update(anchor.id for anchor in details.anchors if anchor.id is not None)
    return names


def unwanted_ids(keys: GoldKeys) -> set[str]:
    """The chunk ids that a gold set names as hard negatives, by its keys."""
    return {name for details in keys.details.values() for name in details.negatives}


def expected_ids(items: Iterable[GoldItem]) -> set[str]:
    """The chunk ids that gold items name as evidence."""
    names: set[str] = set()
    for item in items:
        names.update(item.relevant)
        names.update(item.grades)
        for member in (*item.anchors, *(one for group in item.groups for one in group)):
            name = member.id if isinstance(member, Anchor) else member
            if name is not None:
                names.add(name)
    return names


def negative_ids(items: Iterable[GoldItem]) -> set[str]:
    """The chunk ids that gold items name as hard negatives."""
    return {name for item in items for name in item.negatives}
