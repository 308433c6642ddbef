"""Pinning: evidence that names a block, a chunk or a quote gets its place in the corpus.

A pinned entry has the document, the bytes, the text at them and the hash of the document, so that
any chunking can be scored against it and an edit of the document is noticed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from hashlib import sha256
from typing import TYPE_CHECKING, Any, NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from ragauge.corpus.chunk_list import read_chunk_list
from ragauge.corpus.lookup import CorpusSpot, Lookup, open_corpus, short_quote
from ragauge.errors import MAX_REPORTED, Problem, RagaugeError
from ragauge.files.atomic_write import write_atomically
from ragauge.files.fields import (
    FieldError,
    Row,
    as_id,
    as_int,
    as_text,
    meaning,
    pick,
    wrong_type,
)
from ragauge.formats.gold import MIGRATED_TO, Own
from ragauge.formats.gold_evidence import (
    entries,
    negative_entries,
    only_document,
    refuse_mixed_units,
    replaced,
)
from ragauge.formats.gold_files import (
    GoldRows,
    comments_lost,
    form_of,
    read_items,
    without_draft,
    written,
)
from ragauge.gold.fingerprints import Fingerprints, text_changed
from ragauge.gold.narrow import Choose, Narrower, OpenSample
from ragauge.model.chunk import Chunk
from ragauge.model.corpus import Extent
from ragauge.model.field_spellings import (
    GOLD_SPELLINGS,
    HIT_DOCS,
    HIT_HASHES,
    HIT_IDS,
    HIT_SECTIONS,
)
from ragauge.quotes import normalised
from ragauge.spans import EXACT_UNITS, PLACE_NAMES, Span, spans_in, unit_in

if TYPE_CHECKING:
    from ragauge.gold.lock import Lock  # which reads gold, and so needs this module

LONGEST_QUOTE = 2000
"""Characters of the longest quote that is added; of longer text its hash is kept.

A hash is enough to notice a change; a quote that an author wrote is never dropped.
"""

UNRESOLVED = frozenset(
    {"unresolved", "quote-not-found", "quote-ambiguous", "quote-moved", "text-changed"}
)
"""What `keep` leaves as it is; any other problem is one of the file."""

_NOTHING: Mapping[str, str] = {}
_QUOTE_HASH = "quote_hash"
_SPAN_NAMES = frozenset(PLACE_NAMES) - {"kind"}


class PinnedEntry(NamedTuple):
    """Where one entry lies, and what was done: `pinned`, `converted`, `moved` or `checked`.

    `id` is the one that it was found by, if it was.
    """

    value: Any
    spots: tuple[CorpusSpot, ...]
    kind: str
    id: str | None = None


class PinnedRow(NamedTuple):
    """A row with its evidence pinned, all places of it, and how many entries became what.

    `named` are the ids that were given a place.
    """

    fields: dict[str, Any]
    spots: tuple[CorpusSpot, ...]
    counts: Counter[str]
    named: tuple[str, ...]


class PinResult(Struct, frozen=True, kw_only=True):
    """What pinning a file gave: the rows that changed, counts, and what could not be resolved.

    `graded` counts ids in `grades`, which has room for ids alone; `unchecked` those that were
    pinned although the lock does not say which text they stand for; `comments` counts those of
    YAML that were lost in rows that changed; `narrowed` counts what became of chunks: narrowed by a
    string, by a person, or left as they were.
    """

    changes: dict[int, dict[str, Any]]
    counts: dict[str, int]
    items: int
    graded: int
    unchecked: int
    problems: tuple[Problem, ...]
    problem_count: int
    fatal: bool
    comments: int = 0
    narrowed: dict[str, int] = {}


class Pinner:
    """Pins entries to a corpus; ids are blocks of it, or chunks of a list.

    `repin`: a quote that occurs once, and not where its offsets say, is followed. Where an item was
    frozen, `frozen` has the fingerprints of the text that its ids stood for then, and an id that
    stands for other text now is refused.
    """

    def __init__(
        self, lookup: Lookup, chunks: Mapping[str, Chunk] | None = None, *, repin: bool = False
    ) -> None:
        self.lookup = lookup
        self.chunks = chunks or {}
        self.repin = repin
        self.fingerprints = Fingerprints(lookup, self.chunks)

    def row(self, row: Row, own: Own, frozen: Mapping[str, str] = _NOTHING) -> PinnedRow:
        """Pin the evidence of a row; fields, their names and their order stay."""
        fields = dict(row)
        unit = unit_in(row, "", "byte")
        only = only_document(row, own)
        pinned_entries: list[PinnedEntry] = []
        listed = entries(row, own)
        refuse_mixed_units([*listed, *negative_entries(row)], unit)
        for name, path, value in listed:
            pinned = self.entry(value, path, unit=unit, doc=only, frozen=frozen)
            pinned_entries.append(pinned)
            if pinned.value != value:
                fields[name] = replaced(fields[name], path.removeprefix(name), pinned.value)
        negatives = self._negatives(row, unit, only)
        if negatives:
            fields["negatives"] = negatives
        if unit != "byte" and (pinned_entries or negatives):
            del fields["unit"]  # every entry has bytes now
        return PinnedRow(
            fields,
            tuple(dict.fromkeys(spot for entry in pinned_entries for spot in entry.spots)),
            Counter(entry.kind for entry in pinned_entries),
            tuple(entry.id for entry in pinned_entries if entry.id is not None),
        )

    def _negatives(self, row: Row, unit: str, doc: str | None) -> list[Any]:
        """The hard negatives, each with its place; an id that nobody knows stays an id."""
        pinned: list[Any] = []
        for _, path, value in negative_entries(row):
            named = not isinstance(value, Mapping)
            if named and value not in self.chunks and value not in self.lookup.blocks:
                pinned.append(value)
            else:
                pinned.append(self.entry(value, path, unit=unit, doc=doc).value)
        return pinned

    def entry(
        self,
        value: Any,
        path: str,
        *,
        unit: str = "byte",
        doc: str | None = None,
        frozen: Mapping[str, str] = _NOTHING,
    ) -> PinnedEntry:
        """Pin one entry: an id, an object with an id, a place or a quote."""
        if not isinstance(value, Mapping):
            return self._named({"id": value}, as_id(value, path), path, frozen)
        id_name, identifier = pick(value, HIT_IDS, inside=f"{path}.")
        spans = spans_in(value, path, unit=unit)
        if spans or value.get("quote") is not None:
            doc_name, named = pick(value, HIT_DOCS, inside=f"{path}.")
            doc = as_id(named, doc_name) if named is not None else doc
            if doc is None:
                hint = 'add the document: {"doc": "guide.md", "quote": "..."}'
                raise wrong_type(path, "a place in a document", value, hint)
            entry = dict(value) if named is not None else {"doc": doc, **value}
            if not spans:
                return self._quoted(entry, doc, path)
            return self._placed(entry, doc, spans, path)
        if identifier is None:
            hint = 'write "id" or {"doc": "guide.md", "quote": "..."}'
            raise wrong_type(path, "an id, or a place in a document", value, hint)
        return self._named(dict(value), as_id(identifier, id_name), path, frozen)

    def _named(
        self, entry: dict[str, Any], name: str, path: str, frozen: Mapping[str, str]
    ) -> PinnedEntry:
        """Give an id its place."""
        chunk = self.chunks.get(name)
        section = None if chunk is None else chunk.section
        if chunk is not None:
            spots = self._chunk_spots(name, chunk)
        else:
            spots = (self.lookup.spot_of(self._block(name)),)
        if name in frozen and frozen[name] != self.fingerprints.of_id(name):
            text = " ".join(self.lookup.quote(spot) for spot in spots)
            raise text_changed(name, short_quote(text))
        stated_doc = pick(entry, HIT_DOCS, inside=f"{path}.")[1]
        if stated_doc is not None and stated_doc != spots[0].doc:
            raise FieldError(
                "unresolved",
                f"`{path}` names the document `{stated_doc}`, and `{name}` lies in "
                f"`{spots[0].doc}`",
                "keep the one that is meant",
            )
        if stated_doc is None:
            entry["doc"] = spots[0].doc
        _write_spans(entry, spots)
        evidence = self._evidenced(entry, spots, section)
        # The id says that the evidence stands somewhere in the chunk; its place says no more.
        evidence.setdefault("grain", "chunk")
        return PinnedEntry(evidence, spots, "pinned", name)

    def _block(self, name: str) -> Any:
        try:
            return self.lookup.block(name)
        except FieldError as error:
            if self.chunks:
                message = f"neither the list of chunks nor the corpus has `{name}`"
                raise FieldError(error.code, message, error.hint) from error
            hint = error.hint
            if not hint.startswith("did you mean"):
                hint = f"{hint}; ids of another chunker need its list: --chunks"
            raise FieldError(error.code, error.message, hint) from error

    def _chunk_spots(self, name: str, chunk: Chunk) -> tuple[CorpusSpot, ...]:
        """Where a chunk of the list lies; its text and hash must be those of the corpus."""
        document = self.lookup.document(chunk.doc)
        if chunk.doc_hash not in (None, document.hash, document.source_hash):
            message = f"the chunk `{name}` was cut from another version of `{chunk.doc}`"
            hint = "build the corpus from the files that were chunked, or chunk them again"
            raise FieldError("unresolved", message, hint)
        spots = self._spots(chunk.doc, chunk.spans)
        if chunk.text is not None:
            text = " ".join(self.lookup.quote(spot) for spot in spots)
            if normalised(text) != normalised(chunk.text) and len(spots) == 1:
                raise FieldError(
                    "quote-moved",
                    f"the text of the chunk `{name}` is not the one at its place in the corpus",
                    "its offsets may count characters: then say `unit: char` in the list",
                )
        return spots

    def _spots(self, doc: str, spans: Sequence[Span]) -> tuple[CorpusSpot, ...]:
        return tuple(self.lookup.spot(doc, *self._extent(doc, span)) for span in spans)

    def _extent(self, doc: str, span: Span) -> Extent:
        """A span in bytes; lines without the line end behind the last one."""
        self.lookup.document(doc)
        start, end = self.lookup.in_bytes(doc, span)
        if span.unit == "line":
            end = start + len(self.lookup.text(doc)[start:end].rstrip(b"\r\n"))
        return start, end

    def _quoted(self, entry: dict[str, Any], doc: str, path: str) -> PinnedEntry:
        """Find a quote that has no offsets."""
        quote, occurrence = as_text(entry["quote"], f"{path}.quote"), entry.get("occurrence")
        if occurrence is not None:
            occurrence = as_int(occurrence, f"{path}.occurrence")
        spot = self.lookup.find_quote(doc, quote, occurrence)
        _write_spans(entry, (spot,))
        return PinnedEntry(self._evidenced(entry, (spot,)), (spot,), "pinned")

    def _placed(
        self, entry: dict[str, Any], doc: str, spans: Sequence[Span], path: str
    ) -> PinnedEntry:
        """Check a place, and give it in bytes."""
        stated = entry.get("quote", entry.get("text"))
        quote = as_text(stated, f"{path}.quote") if stated is not None else None
        kind = "pinned" if quote is None and entry.get(_QUOTE_HASH) is None else "checked"
        if any(span.unit != "byte" for span in spans):
            kind = "converted"
        try:
            spots = self._spots(doc, spans)
            if quote is not None and len(spots) == 1:
                exact = all(span.unit in EXACT_UNITS for span in spans)
                self.lookup.check_quote(spots[0], quote, exact=exact)
            else:
                self._check_hashes(entry, spots, path)
        except FieldError as error:
            # Only to a quote that occurs once: `find_quote` raises otherwise. Anything else is the
            # work of a migration map.
            if not self.repin or quote is None or error.code not in UNRESOLVED:
                raise
            spots = (self.lookup.find_quote(doc, quote),)
            kind = "moved"
        if kind in ("converted", "moved"):
            _write_spans(entry, spots)
        if kind == "moved":  # the section is that of the old place; the new one is added below
            entry = {name: value for name, value in entry.items() if name not in HIT_SECTIONS}
            entry = self._renamed(entry, spots[0])
        return PinnedEntry(self._evidenced(entry, spots), spots, kind)

    def _renamed(self, entry: dict[str, Any], spot: CorpusSpot) -> dict[str, Any]:
        """An entry that moved: an id of another text leaves, and the block there may give one."""
        block = self.lookup.blocks.get(spot.block or "")
        renamed: dict[str, Any] = {}
        for name, value in entry.items():
            if name not in HIT_IDS or value == spot.block:
                renamed[name] = value
            elif block is not None and block.span == (spot.start, spot.end):
                renamed[name] = block.id
        return renamed

    def _check_hashes(self, entry: Row, spots: Sequence[CorpusSpot], path: str) -> None:
        """A place without a quote is accepted unless a hash contradicts it.

        In an edited document, nothing shows that such a place still means the same.
        """
        quote_hash = entry.get(_QUOTE_HASH)
        if quote_hash is not None:
            if quote_hash != self._hash(spots):
                raise FieldError(
                    "quote-moved",
                    f"the text at {spots[0].start} to {spots[-1].end} of `{spots[0].doc}` is not "
                    f"the one that `{path}` was pinned to",
                    "`ragauge corpus diff` and `gold migrate` follow an edit",
                )
            return
        name, doc_hash = pick(entry, HIT_HASHES[0], inside=f"{path}.")
        document = self.lookup.document(spots[0].doc)
        hashes = (None, document.hash, document.source_hash)
        if (None if doc_hash is None else as_text(doc_hash, name)) not in hashes:
            raise FieldError(
                "unresolved",
                f"`{document.doc}` was edited since `{path}` was pinned, and there is no quote to "
                "find the place by",
                "`ragauge corpus diff` and `gold migrate` follow an edit",
            )

    def _evidenced(
        self, entry: dict[str, Any], spots: Sequence[CorpusSpot], section: str | None = None
    ) -> dict[str, Any]:
        """Add to an entry the text at its place, the hash of its document and its section."""
        evidence = dict(entry)
        text = self.lookup.quote(spots[0])
        if len(spots) > 1 or (evidence.get("quote") is None and len(text) > LONGEST_QUOTE):
            evidence[_QUOTE_HASH] = self._hash(spots)
        elif "text" not in evidence:
            evidence["quote"] = text
        present = (name for name in HIT_HASHES[0] if evidence.get(name) is not None)
        evidence[next(present, "doc_hash")] = self.lookup.document(spots[0].doc).hash
        section = section if section is not None else spots[0].section
        if section is not None and all(evidence.get(spelling) is None for spelling in HIT_SECTIONS):
            evidence["section"] = section
        return evidence

    def _hash(self, spots: Sequence[CorpusSpot]) -> str:
        text = b"".join(self.lookup.text(spot.doc)[spot.start : spot.end] for spot in spots)
        return sha256(text).hexdigest()


def frozen_texts(gold: GoldRows, index: int, lock: Lock | None) -> Mapping[str, str]:
    """The fingerprints that a lock has of the ids of a row; none where there is no lock."""
    if lock is None:
        return _NOTHING
    row = gold.rows[index].fields
    own = gold.reader.own_gold
    qid = pick(row, GOLD_SPELLINGS["qid"], own.get("qid", ()), meaning=meaning)[1]
    turn = row.get("turn")
    key = (str(qid), turn if isinstance(turn, int) else None)
    return lock.texts_of(key, row.get(MIGRATED_TO))


def pin(
    gold: GoldRows, pinner: Pinner, lock: Lock | None = None, narrower: Narrower | None = None
) -> PinResult:
    """Pin every row of a file; a row with a problem stays as it is, and is reported.

    A row is pinned whole or not at all: half pinned, one part of its evidence would be found by id
    and the other by place.
    """
    changes: dict[int, dict[str, Any]] = {}
    counts: Counter[str] = Counter()
    problems: list[Problem] = []
    failed = graded = unchecked = 0
    fatal = False
    for index, raw in enumerate(gold.rows):
        try:
            frozen = frozen_texts(gold, index, lock)
            pinned = pinner.row(raw.fields, gold.reader.own_gold, frozen)
            item = gold.reader.gold(without_draft(pinned.fields), raw.line)
            if narrower is not None:
                fields = narrower.row(pinned.fields, gold.reader.own_gold, item)
                item = gold.reader.gold(without_draft(fields), raw.line)
                pinned = pinned._replace(fields=fields)
        except FieldError as error:
            failed += 1
            fatal = fatal or error.code not in UNRESOLVED
            if len(problems) < MAX_REPORTED:
                problems.append(gold.problem(error, index))
            continue
        counts += pinned.counts
        placed = {anchor.id for anchor in item.anchors}
        graded += sum(name not in placed for name in item.grades)
        unchecked += sum(name not in frozen for name in pinned.named)
        if pinned.fields != raw.fields:
            changes[index] = pinned.fields
    return PinResult(
        changes=changes,
        counts=dict(counts),
        items=len(gold.rows),
        graded=graded,
        unchecked=unchecked if lock is not None else 0,
        problems=tuple(problems),
        problem_count=failed,
        fatal=fatal,
        narrowed={} if narrower is None else dict(narrower.counts),
    )


def _write_spans(entry: dict[str, Any], spots: Sequence[CorpusSpot]) -> None:
    """Give an entry its bytes where its offsets stood, or behind its document."""
    if len(spots) == 1:
        extent = [spots[0].start, spots[0].end]
        # Beside some values of `kind`, a plain start and end would count lines.
        offsets: dict[str, Any] = dict(zip(("start", "end"), extent, strict=True))
        if "kind" in entry:
            offsets = {"span": extent}
    else:
        offsets = {"source_spans": [[spot.start, spot.end] for spot in spots]}
    old = dict(entry)
    first = next((name for name in old if name in _SPAN_NAMES), None)
    behind = next((name for name in old if name in HIT_DOCS), None)
    entry.clear()
    for name, value in old.items():
        if name == first:
            entry.update(offsets)
        if name not in _SPAN_NAMES:
            entry[name] = value
        if first is None and name == behind:
            entry.update(offsets)


def pin_file(
    gold: str,
    corpus: str,
    out: str,
    *,
    chunks: str | None = None,
    repin: bool = False,
    keep: bool = False,
    dialect: str = "auto",
    lock: Lock | None = None,
    narrow: tuple[OpenSample, Choose | None] | None = None,
) -> PinResult:
    """Pin the evidence of a gold file and write it; nothing is written if it cannot be pinned.

    `keep`: items that cannot be resolved are written as they are. `lock` knows which text ids stood
    for when the set was frozen. `narrow` says of which questions chunks become sentences, and who
    chooses these.
    """
    rows = read_items(gold, dialect)
    form_of(out, rows.form)
    pinner = Pinner(open_corpus(corpus), read_chunk_list(chunks), repin=repin)
    narrower = None if narrow is None else Narrower(pinner.lookup, *narrow)
    pinned = pin(rows, pinner, lock, narrower)
    if pinned.problem_count and (pinned.fatal or not keep):
        raise RagaugeError(pinned.problems, total=pinned.problem_count)
    write_atomically(out, written(rows, pinned.changes, out))
    return replace(pinned, comments=comments_lost(rows, pinned.changes, out))
