"""Rewriting evidence through a migration map: ids, places, sections and documents inside rows.

Every entry keeps the form it has: an id stays an id, an object keeps its names, their order and
what nobody reads. What cannot be redirected is a problem, and is kept or dropped as was asked.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from hashlib import sha256
from typing import Any, Literal

from msgspec import Struct

from ragauge.corpus.diff.redirects import NewSpan, Redirected, Redirects
from ragauge.files.fields import FieldError, Row, as_id
from ragauge.ids import doc_of, parts_of, section_of, split_section
from ragauge.model.field_spellings import HIT_DOCS, HIT_HASHES, HIT_IDS, HIT_SECTIONS
from ragauge.model.migration import MapRow, NewPlace
from ragauge.spans import Span, spans_in

OnUnmapped = Literal["stop", "keep", "drop"]
NewTexts = Callable[[str, int, int], str]
"""Gives the text at some bytes of a document of the new corpus."""

UNMAPPED = "unmapped"
DOC_NAMES = (*HIT_DOCS, "path")
QUOTES = ("quote", "text", "quote_hash")
"""Where gold has the text at a place, or its hash."""
SPAN_NAMES = ("span", "offsets", "source_spans", "start", "end", "start_byte", "end_byte")
_HINT = "look at the row in the map; correct it by hand, or say --on-unmapped keep or drop"
_LETTERED = re.compile(r"(.+\.Bk[0-9]+)([a-z])")  # a chunker's part of a block: `...p.Bk011b`


class MigrationSettings(Struct, frozen=True, kw_only=True):
    """How rows are rewritten: which confidence is enough, and what becomes of the rest.

    `strict` refuses a place whose `doc_hash` is neither that of the old text nor of the new one.
    It is on for gold, and off for traces: these say what was retrieved then. `new_blocks` are the
    ids of the new corpus, where it is at hand.
    """

    least: float
    on_unmapped: OnUnmapped = "stop"
    strict: bool = True
    texts: NewTexts | None = None
    new_blocks: frozenset[str] = frozenset()


class _OldEntry(Struct, frozen=True):
    """An object of evidence as it was: its fields, its path in the row, and its id if it has one.

    `prev`: a new id has the old one beside it, as `id_prev`.
    """

    value: Row
    path: str
    id: str | None
    prev: bool


class Rewriter:
    """Rewrites the evidence of one row after another, and counts what it did.

    `problems` are those of the row at hand; whoever reads them empties the list. `reused` are the
    ids of the row that stay because they have no new place, and that name other text there.
    """

    def __init__(self, redirects: Redirects, settings: MigrationSettings) -> None:
        self.redirects = redirects
        self.settings = settings
        self.tally: Counter[str] = Counter()
        self.problems: list[FieldError] = []
        self.reused: list[str] = []
        self._holders: dict[str, list[str]] = {}
        documents = redirects.documents.values()
        self.old_hashes = {row.old.hash for row in documents}
        self.old_hashes |= {row.old.source_hash for row in documents}
        self._new_blocks = settings.new_blocks | {
            place.id for row in redirects.blocks.values() for place in row.new
        }

    def fail(self, path: str, message: str) -> None:
        """Note something that cannot be redirected."""
        self.tally[UNMAPPED] += 1
        self.problems.append(FieldError(UNMAPPED, f"`{path}`: {message}", _HINT))

    def rejected(self, value: Any) -> list[Any]:
        """What replaces an entry that cannot be redirected."""
        return [] if self.settings.on_unmapped == "drop" else [value]

    def entry(self, value: Any, path: str, *, unit: str = "byte", prev: bool = False) -> list[Any]:
        """Rewrite an entry of evidence, an id or an object: none, one or several take its place.

        `prev`: an id that was redirected becomes an object that keeps the old one as `id_prev`.
        """
        if isinstance(value, dict):
            return self._object(value, path, unit, prev=prev)
        old = as_id(value, path)
        moved = self.ids(old, path)
        if moved is None:
            return self.rejected(value)
        if moved == [old]:
            return [value]
        return [{"id": new, "id_prev": old} if prev else new for new in moved]

    def ids(self, old: str, path: str) -> list[str] | None:
        """The new ids of an id; None if it has none. An id that is not of the corpus stays."""
        row = self.redirects.find(old)
        moved = self._unlisted(old, path) if row is None else None
        if row is not None and self._usable(row, path):
            self.tally[row.kind] += 1
            moved = [place.id for place in row.new]
        if moved is None and self.settings.on_unmapped == "keep" and old in self._new_blocks:
            self.reused.append(old)
        return moved

    def _unlisted(self, old: str, path: str) -> list[str] | None:
        """An id that no row is about: part of a block, foreign, or wrong."""
        lettered = _LETTERED.fullmatch(old)
        row = self.redirects.blocks.get(lettered[1]) if lettered else None
        if row is not None and lettered is not None:
            # How a chunker would cut the new block is known only if the text is the same.
            if row.new and row.confidence == 1 and row.kind in ("same", "shift", "move"):
                self.tally[row.kind] += 1
                return [f"{row.new[0].id}{lettered[2]}"]
            self.fail(path, f"`{old}` is a part of a block that did not stay as it was")
            return None
        parts = parts_of(old)
        # An id of the corpus' own grammar that the map does not have is a mistake. Any other one
        # is of another chunker, and is kept: nothing is known about it.
        if parts.section is not None and parts.doc in self.redirects.documents:
            self.fail(path, f"no block of the old corpus has the id `{old}`")
            return None
        self.tally["foreign"] += 1
        return [old]

    def _usable(self, row: MapRow, path: str) -> bool:
        if not row.new:
            near = f" ({row.note})" if row.note else ""
            self.fail(path, f"`{row.old.id}` has no place in the new corpus{near}")
            return False
        # What points at a section points at what is below that heading, also after a paragraph of
        # it has gone: under its old name it is followed with less.
        if row.confidence < self.settings.least and not row.named:
            sure = f"a confidence of {row.confidence:.2f}, which is below {self.settings.least:g}"
            self.fail(path, f"`{row.old.id}` went to `{row.new[0].id}` with {sure}")
            return False
        return True

    def documents(self, value: Any, path: str) -> list[str]:
        """The new names of a document."""
        old = as_id(value, path)
        row = self.redirects.documents.get(old)
        if row is None:
            self.tally["foreign"] += 1
            return [old]
        if not self._usable(row, path):
            return self.rejected(old)
        self.tally[row.kind] += 1
        return [place.doc for place in row.new]

    def section(self, value: Any, docs: Sequence[str], path: str) -> Any:
        """The new name of a section, in the form that it has; `docs` are those it may be in.

        A section that became several is the one that has its heading, or most of it.
        """
        old = as_id(value, path)
        doc, section = split_section(old)
        # A bare `S.2` is of a document that the item names, else of any that has such a section.
        # In several documents it is followed only if all of them agree on the new number.
        named = [doc] if doc is not None else [name for name in docs if self._has(name, section)]
        if doc is None and not named:
            named = self._holding(section)
        rows = [row for name in named if (row := self.redirects.section(name, section))]
        rejected = (self.rejected(value) or [None])[0]
        if not rows:
            if doc in self.redirects.documents:
                self.fail(path, f"the old corpus has no section `{old}`")
                return rejected
            self.tally["foreign"] += 1
            return value
        if not self._usable(rows[0], path):
            return rejected
        place = rows[0].new[0]
        tail = place.id.rpartition("#")[2]
        if any(not row.new or row.new[0].id.rpartition("#")[2] != tail for row in rows):
            why = f"`{old}` is in several documents and went to different places: name one"
            self.fail(path, why)
            return rejected
        self.tally[rows[0].kind] += 1
        new = _section_like(old, tail, place.doc)
        return value if new == old else new

    def _holding(self, section: str) -> list[str]:
        """The documents of the old corpus that have a section of that number."""
        if section not in self._holders:
            documents = self.redirects.documents
            self._holders[section] = [doc for doc in documents if self._has(doc, section)]
        return self._holders[section]

    def _has(self, doc: str, section: str) -> bool:
        return self.redirects.section(doc, section) is not None

    def _object(self, value: Row, path: str, unit: str, *, prev: bool) -> list[Any]:
        """Rewrite an object; some keep their place, or all they say, in a `citation` inside."""
        inner = value.get("citation")
        if not isinstance(inner, Mapping | str):
            return self._flat(value, path, unit, prev=prev)
        moved = self.entry(inner, f"{path}.citation", unit=unit, prev=prev)
        if all(value.get(name) is None for name in HIT_IDS):
            return [{**value, "citation": entry} for entry in moved]
        inside = moved[0] if moved else inner
        return [{**entry, "citation": inside} for entry in self._flat(value, path, unit, prev=prev)]

    def _flat(self, value: Row, path: str, unit: str, *, prev: bool) -> list[Any]:
        """Rewrite an object that names an id, a place in a document, or both."""
        id_name = next((name for name in HIT_IDS if value.get(name) is not None), None)
        old_id = as_id(value[id_name], f"{path}.{id_name}") if id_name is not None else None
        row = self.redirects.find(old_id) if old_id is not None else None
        spans = spans_in(value, path, unit=unit)
        doc = _doc(value, old_id, row)
        old = _OldEntry(value, path, old_id, prev)
        # A place is more exact than an id: it is followed by its bytes, unless it is just the place
        # of the whole block that is named, which then goes wherever the block goes.
        if spans and doc in self.redirects.documents:
            settled = self._settled(value, path, doc)
            if settled is not None:
                return settled
            if row is None or row.of != "block" or not _is_whole(row, doc, spans):
                return self._place(old, doc, spans)
        elif row is None and old_id is None:
            return self._only_document(value, path)
        if old_id is None:
            return [value]
        new = self.ids(old_id, f"{path}.{id_name}")
        if new is None:
            return self.rejected(value)
        if row is None or not row.new:
            return [with_names(old, {old_id: new[0]})]
        return [self._copied(old, place, row, spans=bool(spans)) for place in row.new]

    def _settled(self, value: Row, path: str, doc: str) -> list[Any] | None:
        """What becomes of a place whose hash says that it is not of the old text; None if it is.

        A file that was migrated already has the hash of the new text: running twice changes
        nothing.
        """
        if self.is_there(value, doc):
            self.tally["already new"] += 1
            return [value]
        if self.settings.strict and self._is_of_other_text(value, doc):
            self.fail(path, f"its `doc_hash` is not that of `{doc}` in the old corpus")
            return self.rejected(value)
        return None

    def _copied(self, old: _OldEntry, place: NewPlace, row: MapRow, *, spans: bool) -> Row:
        """An object as it is at one of the new places of its block.

        A place stays that of its own text, also where the new block holds more.
        """
        entry = with_names(old, {old.id or "": place.id, row.old.doc: place.doc})
        entry = self._hashed(entry, row.old.doc, place.doc)
        entry = with_section(entry, section_of(place.id))
        if not spans:
            (start, end), (first, last) = place.span, row.old.span
            whole = place.runs is None and end - start == last - first
            return self._quoted(entry, place.doc, [place.span], exact=whole)
        held = self.redirects.held(row, place)
        extents = [new_span.span for new_span in held.places]
        return self._quoted(with_spans(entry, extents), place.doc, extents, exact=held.exact)

    def _only_document(self, value: Row, path: str) -> list[Any]:
        name = next((spelling for spelling in DOC_NAMES if value.get(spelling) is not None), None)
        if name is None:
            return [value]
        old = as_id(value[name], f"{path}.{name}")
        return [
            self._hashed(with_names(_OldEntry(value, path, None, prev=False), {old: new}), old, new)
            for new in self.documents(old, f"{path}.{name}")
        ]

    def _place(self, old: _OldEntry, doc: str, spans: Sequence[Span]) -> list[Any]:
        """Rewrite an object by where it lies."""
        name = self.redirects.unchanged(doc)
        if name is None and any(span.unit != "byte" for span in spans):
            self.fail(old.path, f"offsets in {spans[0].unit}s cannot be followed; write bytes")
            return self.rejected(old.value)
        if name is not None:
            redirects = [Redirected((NewSpan(name, (s.start, s.end)),), 1.0, True) for s in spans]
        else:
            answers = [self.redirects.span(doc, span.start, span.end) for span in spans]
            redirects = [redirect for redirect in answers if redirect is not None]
        total = sum(span.length for span in spans) or 1
        share = sum(r.share * s.length for r, s in zip(redirects, spans, strict=True)) / total
        if share < self.settings.least:
            where = f"bytes {spans[0].start} to {spans[-1].end} of `{doc}`"
            below = f"is in the new corpus, which is below {self.settings.least:g}"
            self.fail(old.path, f"{share:.2f} of the text at {where} {below}")
            return self.rejected(old.value)
        exact = all(redirect.exact for redirect in redirects)
        by_doc: dict[str, list[NewSpan]] = {}
        for redirect in redirects:
            for place in redirect.places:
                by_doc.setdefault(place.doc, []).append(place)
        self.tally["place kept" if exact else "place changed"] += 1
        exact = exact and len(by_doc) == 1
        return [self._moved(old, doc, places, exact=exact) for places in by_doc.values()]

    def _moved(self, old: _OldEntry, doc: str, places: Sequence[NewSpan], *, exact: bool) -> Row:
        """An object as it is at the new places of one document."""
        new_doc = places[0].doc
        names = {doc: new_doc}
        if old.id is not None:
            names[old.id] = self._id_there(old.id, places, old.path)
        entry = self._hashed(with_names(old, names), doc, new_doc)
        entry = self._section_there(entry, doc, names.get(old.id or ""), places, old.path)
        spans = [place.span for place in places]
        if spans != [(s.start, s.end) for s in spans_in(old.value, old.path)]:
            entry = with_spans(entry, spans)
        return self._quoted(entry, new_doc, spans, exact=exact)

    def _id_there(self, old_id: str, places: Sequence[NewSpan], path: str) -> str:
        """The new id of an object that lies at a place: that of the block which lies there."""
        row = self.redirects.blocks.get(old_id)
        if row is None:
            new = self.ids(old_id, path)
            return new[0] if new else old_id
        self.tally[row.kind] += 1
        there = [place.block for place in places if place.block is not None]
        return there[0] if there else row.new[0].id if row.new else old_id

    def _section_there(
        self, entry: Row, doc: str, new_id: str | None, places: Sequence[NewSpan], path: str
    ) -> Row:
        name = next((name for name in HIT_SECTIONS if entry.get(name) is not None), None)
        if name is None:
            return entry
        section = section_of(new_id or places[0].block or "")
        if section is not None:
            return with_section(entry, section)
        return {**entry, name: self.section(entry[name], [doc], f"{path}.{name}")}

    def is_there(self, value: Row, doc: str) -> bool:
        """Whether a place was pinned to the new text already."""
        stated = hash_in(value)
        row = self.redirects.documents.get(doc)
        if stated is None or row is None:
            return False
        new = {digest for place in row.new for digest in (place.hash, place.source_hash)}
        return stated in new - {None, row.old.hash, row.old.source_hash}

    def _is_of_other_text(self, value: Row, doc: str) -> bool:
        stated = hash_in(value)
        old = self.redirects.documents[doc].old
        return stated is not None and stated not in (old.hash, old.source_hash)

    def _hashed(self, entry: Row, old_doc: str, new_doc: str) -> Row:
        """Give an object the hash of the new text, where it had that of the old one."""
        row = self.redirects.documents.get(old_doc)
        new = [] if row is None else [place for place in row.new if place.doc == new_doc]
        if row is None or not new:
            return entry
        hashes = {row.old.source_hash: new[0].source_hash or new[0].hash, row.old.hash: new[0].hash}
        return {
            name: hashes.get(old, old) if name in HIT_HASHES[0] and isinstance(old, str) else old
            for name, old in entry.items()
        }

    def _quoted(
        self, entry: Row, doc: str, spans: Sequence[tuple[int, int]], *, exact: bool
    ) -> Row:
        """Cut a quote anew where its text changed; without the texts it is renamed `quote_prev`.

        A quote that is not the text at its place would be an error of `gold lint`. What a trace
        quotes is what was retrieved, and stays.
        """
        names = [name for name in QUOTES if entry.get(name) is not None]
        if exact or not names or not self.settings.strict:
            return entry
        texts = self.settings.texts
        if texts is None:
            self.tally["quote put aside"] += 1
            return {(f"{name}_prev" if name in names else name): entry[name] for name in entry}
        quote = "".join(texts(doc, *span) for span in spans)
        self.tally["quote cut anew"] += 1
        return with_quote(entry, quote, parts=len(spans))


def _doc(value: Row, old_id: str | None, row: MapRow | None) -> str:
    for name in DOC_NAMES:
        if isinstance(value.get(name), str):
            return str(value[name])
    if row is not None:
        return row.old.doc
    return (doc_of(old_id) if old_id is not None else None) or ""


def _is_whole(row: MapRow, doc: str, spans: Sequence[Span]) -> bool:
    """Whether a place is that of the whole block."""
    extents = [(span.start, span.end) for span in spans if span.unit == "byte"]
    return doc == row.old.doc and extents == [row.old.span]


def hash_in(value: Row) -> str | None:
    """The hash that an object gives of the text of its document."""
    stated = next((value[name] for name in HIT_HASHES[0] if value.get(name) is not None), None)
    return stated if isinstance(stated, str) else None


def with_names(entry: _OldEntry, names: Mapping[str, str]) -> Row:
    """Put new names where an object has its id and its document."""
    changed: dict[str, Any] = {}
    for name, value in entry.value.items():
        named = name in HIT_IDS or name in DOC_NAMES
        new = names.get(str(value)) if named and isinstance(value, str | int) else None
        changed[name] = value if new is None or new == value else new
        renamed = name in HIT_IDS and changed[name] != value
        if renamed and entry.prev and entry.id is not None:
            changed.setdefault("id_prev", value)
    return changed


def with_quote(entry: Row, quote: str, *, parts: int) -> Row:
    """Put a new quote where an object has one; of text in several parts its hash is kept."""
    digest = sha256(quote.encode()).hexdigest()
    changed: dict[str, Any] = {}
    for name, value in entry.items():
        if name not in QUOTES or value is None:
            changed[name] = value
        elif name == "quote_hash" or parts > 1:
            changed["quote_hash"] = digest
        else:
            changed[name] = quote
    return changed


def with_section(entry: Row, section: str | None) -> Row:
    """Put a new section where an object names its own."""
    if section is None:
        return entry
    return {
        name: _section_like(value, section)
        if name in HIT_SECTIONS and isinstance(value, str)
        else value
        for name, value in entry.items()
    }


def _section_like(old: str, section: str, new_doc: str | None = None) -> str:
    """Write a section as the one that it replaces: with its document or without, with S or not."""
    doc, tail = split_section(old)
    if not tail.startswith("S"):
        section = section.removeprefix("S.")
    return section if doc is None else f"{new_doc or doc}#{section}"


def with_spans(entry: Row, spans: Sequence[tuple[int, int]]) -> Row:
    """Write spans in the form that an object has; several need `source_spans`."""
    form = next((name for name in SPAN_NAMES if entry.get(name) is not None), None)
    if len(spans) > 1 or form == "source_spans":
        listed = entry.get("source_spans")
        model = listed[0] if isinstance(listed, list) and listed else None
        rest = {name: value for name, value in entry.items() if name not in SPAN_NAMES}
        return {**rest, "source_spans": [_span_like(model, span) for span in spans]}
    start, end = spans[0]
    plain = {"start": start, "end": end, "start_byte": start, "end_byte": end}
    changed = {name: plain.get(name, old) for name, old in entry.items() if old is not None}
    for name in ("span", "offsets"):
        if name in changed:
            changed[name] = _span_like(entry[name], spans[0])
    return {**entry, **changed}


def _span_like(model: Any, span: tuple[int, int]) -> Any:
    """Write a span as a list or as an object, as another one is."""
    if not isinstance(model, Mapping):
        return list(span)
    plain = {"start": span[0], "end": span[1], "start_byte": span[0], "end_byte": span[1]}
    return {name: plain.get(name, value) for name, value in model.items()}
