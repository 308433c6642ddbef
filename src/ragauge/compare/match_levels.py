"""Match levels: by what each expected piece of evidence is recognised in both runs.

    exact      by its chunk id, where that is the same chunk in both runs
    doc_span   by its place in a document whose text is the same in both runs
    quote      by its words, in the document or anywhere
    doc        by its document as a whole
    none       by nothing: the piece is excluded from both runs

The best level that works *in both runs* is taken for both. Two levels side by side would measure
the matching instead of the systems: a document is found more easily than a chunk of it, so the run
that had to fall back would look better.

The order is from what can be wrong least to what can be wrong most. A place in an unchanged text is
beyond doubt. Words may stand twice. A document is larger than its evidence, so it hides losses; it
comes last and never serves hard negatives.

Levels are chosen by what the runs know and what hits carry, never by what is hit: a miss must not
slide down to a level where it would look like a hit (decision 0016).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from msgspec.structs import replace

from ragauge.compare.follow_map import MapFollower
from ragauge.compare.same_documents import SameDocuments
from ragauge.ids import doc_of, split_section
from ragauge.model.chunk import Chunk
from ragauge.model.comparison import MATCH_LEVELS, Match, MatchLevel
from ragauge.model.evidence import Carries
from ragauge.model.gold import Anchor, GoldItem, Grain
from ragauge.quotes import normalised
from ragauge.scoring.evidence_pieces import EFFECTIVE_PREFIX
from ragauge.scoring.places import ANYWHERE, FOREIGN_ID, NOWHERE
from ragauge.spans import UNITS, Span, of_unit
from ragauge.text import text_hash

Piece = str | Anchor
"""A piece of evidence as gold has it: the id of a chunk, or a place."""

# Plain numbers: operators of an IntFlag are slow, and these run for every question.
SPANS, DOCS, TEXTS = int(Carries.SPANS), int(Carries.DOCS), int(Carries.TEXTS)
_BYTES = "byte"


class Clue(NamedTuple):
    """What one source says of a piece: gold itself, or what a run knows of the chunk.

    `later`: the second run says so, of its own version of the document. `text_hash` is of the
    whole chunk.
    """

    doc: str | None
    spans: tuple[Span, ...] = ()
    quote: str | None = None
    section: str | None = None
    later: bool = False
    text_hash: str | None = None

    @property
    def unit(self) -> str | None:
        """The unit of its spans; None if it has none, or none of any length."""
        if len(self.spans) == 1:
            only = self.spans[0]
            return only.unit if only.end > only.start else None
        units = {span.unit for span in self.spans}
        return min(units) if len(units) == 1 and of_unit(self.spans, min(units)) else None


class PieceMatch(NamedTuple):
    """The level of a piece, and what it is looked for by in each run."""

    level: MatchLevel
    anchors: tuple[Anchor | None, Anchor | None] = (None, None)


_NO_MATCH = PieceMatch("none")


_NOTES = {
    "rewritten": (
        "expected text",
        "not in the documents of both runs: deleted, rewritten, or in several documents",
    ),
    "textless": (
        "expected piece",
        "compared by document alone: the document changed, and a run has no text to look for a "
        "quote in (lists of chunks with texts, or --map, tell more)",
    ),
    "anywhere": (
        "expected text",
        "looked for in any document, because a run does not know its document",
    ),
    "unplaced": (
        "place",
        "left out that gold gives beside the evidence: the document changed, or a run has no spans "
        "to compare with",
    ),
    "negatives": (
        "hard negative",
        "left out on both sides: no place or quote recognises it in both runs",
    ),
    "unmatched": (
        "expected piece", "not recognised in both runs: a chunk may stand anywhere, a place is "
        "left out on both sides",
    ),
}  # fmt: skip


class MatchNotes:
    """Counts of what a reader should know and the levels do not show.

    rewritten      expected texts that are not in the documents of both runs
    anywhere       expected texts that are looked for in any document
    unplaced       places beside the evidence that say nothing any more
    renamed        documents that the runs call by other names
    no_common_ids  pieces whose ids are not believed, because the runs share no id
    textless       pieces of changed documents that only texts could find, and there are none
    negatives      hard negatives that cannot be recognised in both runs
    unproven       pieces whose ids are used although nothing proves that they are the same chunks
    """

    def __init__(self) -> None:
        self.rewritten = self.anywhere = self.unplaced = 0
        self.no_common_ids = self.textless = self.negatives = self.unproven = 0
        self.renamed: dict[str, tuple[str, str]] = {}

    def lines(self, reused_id: str | None, unmatched: int) -> list[str]:
        """All of it in words; for a reused id, chunker versions cannot be believed."""
        lines = []
        if reused_id is not None:
            lines.append(
                f"chunk `{reused_id}` is not the same in both runs although nothing says that "
                "the chunking changed: equal ids alone are not taken for equal chunks"
            )
        if self.no_common_ids:
            lines.append(
                "the runs share no chunk id, and neither says by what chunker: "
                f"{_many(self.no_common_ids, 'piece')} recognised by place or quote"
            )
        if self.unproven:
            lines.append(
                f"{_many(self.unproven, 'expected id')} taken for the same chunk in both runs, and "
                "nothing proves it: record `chunker_version`, `policy_hash` and `doc_hash` with "
                "the hits, or their spans or texts"
            )
        if self.renamed:
            name_a, name_b = self.renamed[min(self.renamed)]
            lines.append(
                f"documents with another name in the other run: {len(self.renamed):,}, "
                f"for example `{name_a}` and `{name_b}`"
            )
        counts = {**vars(self), "unmatched": unmatched}
        lines += [
            f"{_many(counts[name], noun)} {what}"
            for name, (noun, what) in _NOTES.items()
            if counts[name]
        ]
        return lines


def _many(count: int, noun: str) -> str:
    return f"{count:,} {noun} was" if count == 1 else f"{count:,} {noun}s were"


class PieceMatcher:
    """Finds the match level of pieces, from what two runs know.

    With a `follower`, places of the first run's corpus are followed into that of the second.
    `notes` counts what a reader should know.
    """

    def __init__(self, same: SameDocuments, follower: MapFollower | None = None) -> None:
        self.same = same
        self.follower = follower
        self.notes = MatchNotes()
        self._comparable: dict[tuple[str, str], bool] = {}
        self._names: dict[str, tuple[str, str]] = {}

    def names(self, doc: str) -> tuple[str, str]:
        """What the runs call a document; a name that is new is counted."""
        names = self._names.get(doc)
        if names is None:
            if self.same.pair(doc).moved:
                self.notes.renamed[doc] = self.same.pair(doc).names
            if self.follower is not None and self.follower.new_name(doc) != doc:
                self.follower.followed += 1
            names = self._names[doc] = self._names_of(doc)
        return names

    def _names_of(self, doc: str) -> tuple[str, str]:
        names = self.same.pair(doc).names
        if self.follower is not None and (new := self.follower.new_name(doc)) != doc:
            names = names[0], new
        return names

    def known_documents(self, item: GoldItem, pieces: Sequence[Piece]) -> set[tuple[str, str]]:
        """The documents that pieces are known to be in, as the runs call them."""
        docs = {self.clues(piece, item)[0].doc for piece in pieces}
        return {self._names_of(doc) for doc in docs if doc is not None}

    # --- what is known of a piece ---

    def clues(self, piece: Piece, item: GoldItem) -> list[Clue]:
        """What is known of a piece: by gold, by the first run, by the second, by its id."""
        a, b = self.same.a, self.same.b
        if isinstance(piece, Anchor):
            clues = [Clue(piece.doc, piece.spans, piece.quote, piece.section)]
            if piece.id is not None:
                # Gold has the place already; the chunk of that id adds words to look for.
                for facts in (a.chunk_facts(piece.id), b.chunk_facts(piece.id)):
                    if facts is not None and facts.text:
                        clues.append(Clue(piece.doc, (), facts.text, piece.section))
            return clues
        clues = []
        if item.places:
            clues = [
                Clue(place.doc, place.spans, place.quote, place.section)
                for place in item.places
                if place.id == piece
            ]
        for run in (a, b):
            facts = run.chunk_facts(piece)
            if facts is not None:
                chunk = run.chunks.get(piece) if run.chunks else None
                section = chunk.section if chunk is not None else None
                doc = facts.doc or facts.path
                clues.append(Clue(doc, facts.spans, facts.text, section, run is b, facts.text_hash))
        if len(clues) == 1 and clues[0].doc:
            return clues
        if len(clues) > 1 and piece in self.same.contradicted:
            # The runs mean different chunks: the first source is the one that gold was made by.
            clues = [_merged(clues)]
        docs = [clue.doc for clue in clues if clue.doc is not None]
        doc = docs[0] if docs else doc_of(piece) or _only_document(item)
        return [clue if clue.doc else clue._replace(doc=doc) for clue in clues] or [Clue(doc)]

    # --- exact ---

    def not_exact(
        self, item: GoldItem, pieces: Sequence[Piece], carried: tuple[int, int]
    ) -> tuple[list[list[Clue] | None], str | None]:
        """The clues of the pieces that are not exact, None for the others; and the unit of places.

        `carried` are the bits that the hits of each run carry. A doubtful piece falls back only to
        where the very passage is looked for; else its id is believed.
        """
        all_clues: list[list[Clue] | None] = []
        doubtful: list[int] = []
        for place, piece in enumerate(pieces):
            clues = self.clues(piece, item)
            if not self._is_exact(piece, clues, carried):
                all_clues.append(clues)
            elif self._is_doubtful(piece, clues):
                doubtful.append(place)
                all_clues.append(clues)
            else:
                self.count_unproven(piece, clues)
                all_clues.append(None)
        if not any(all_clues):
            return all_clues, None
        both = carried[0] & carried[1]
        unit = self._unit(item, pieces, all_clues, both)
        # A piece that is believed after all may change the unit, which others may depend on.
        while doubtful:
            stuck = [
                place
                for place in doubtful
                if not self._can_find_passage(all_clues[place] or (), both, unit)
            ]
            if not stuck:
                break
            doubtful = [place for place in doubtful if place not in stuck]
            for place in stuck:
                self.count_unproven(pieces[place], all_clues[place] or ())
                all_clues[place] = None
            unit = self._unit(item, pieces, all_clues, both) if any(all_clues) else None
        self.notes.no_common_ids += len(doubtful)
        return all_clues, unit

    def count_unproven(self, piece: Piece, clues: Sequence[Clue]) -> None:
        """Note an id that is used, and that nothing proves to be the same chunk in both runs."""
        if self.same.one_run or grain_of(piece) == "evidence":
            return
        chunk_id = piece if isinstance(piece, str) else piece.id
        if chunk_id is not None and self.same.same_chunk(chunk_id):
            return
        docs = {clue.doc for clue in clues if clue.doc is not None}
        self.notes.unproven += not (docs and all(map(self.same.proves_ids, docs)))

    def _is_exact(self, piece: Piece, clues: Sequence[Clue], carried: tuple[int, int]) -> bool:
        """Whether an id means the same in both runs, so far as they tell."""
        same, follower = self.same, self.follower
        if isinstance(piece, Anchor):
            if follower is not None and follower.changes(piece.doc):
                return False
            trusted = same.trusts_ids(piece.doc) and piece.id not in same.contradicted
            return trusted and not same.refuted and not same.is_recut(piece.doc)
        if piece in same.contradicted:
            return False
        if follower is not None and follower.renames(piece):
            return False
        if same.refuted or any(same.is_recut(clue.doc) for clue in clues):
            return same.same_chunk(piece)
        for clue in clues:
            if not same.trusts_ids(clue.doc):
                # Another chunker may still have cut this very chunk alike.
                return same.same_chunk(piece)
        return not self._listed_once(piece, clues, carried)

    def _listed_once(self, piece: str, clues: Sequence[Clue], carried: tuple[int, int]) -> bool:
        """Whether one run's list has an id and that of the other has not, nor says why.

        A list speaks of an index if it places the hits; a list that does not is of another index
        and says nothing.
        """
        a, b = self.same.a.chunks, self.same.b.chunks
        if not a or not b or (piece in a) == (piece in b):
            return False
        lacking = 1 if piece in a else 0
        if not carried[lacking] & SPANS:
            return False
        return not all(self.same.chunker_recorded(clue.doc) for clue in clues)

    def _is_doubtful(self, piece: Piece, clues: Sequence[Clue]) -> bool:
        """Whether a piece is exact only because no chunker is recorded, and the runs share no id.

        That is what a new chunking looks like, and also what two small runs of one chunking may
        look like.
        """
        if not self.same.no_common_ids or self.same.refuted:
            return False
        if isinstance(piece, Anchor):
            return self.same.doubts_ids(piece.doc)
        return any(self.same.doubts_ids(clue.doc) for clue in clues)

    # --- falling back ---

    def fall_back(
        self,
        piece: Piece,
        name: str,
        clues: Sequence[Clue],
        both: int,
        unit: str | None,
        *,
        whole_document: bool = True,
    ) -> PieceMatch:
        """The best level below exact that works in both runs, by any of the clues.

        `name` is what the piece is called in effective gold, `both` the bits that the hits of both
        runs carry. Without `whole_document` only the very passage will do.
        """
        grain = grain_of(piece)
        return (
            self._by_span(name, clues, both, unit, grain)
            or self._by_map(piece, name, clues, both, unit)
            or self._by_quote(name, clues, both, grain)
            or self._by_text_hash(name, clues, both, unit, grain)
            or (self._by_document(name, clues, both) if whole_document else None)
            or (self._by_nothing(name) if whole_document and grain == "chunk" else _NO_MATCH)
        )

    def _by_span(
        self, name: str, clues: Sequence[Clue], both: int, unit: str | None, grain: Grain
    ) -> PieceMatch | None:
        """By a place of the same text, in what each run calls the document."""
        for clue in clues:
            if self.spans_work(clue, both, unit):
                assert clue.doc is not None
                names = self.names(clue.doc)
                text = clue.quote if grain == "chunk" else None
                return _match("doc_span", names, name, clue, grain, spans=clue.spans, quote=text)
        return None

    def _by_nothing(self, name: str) -> PieceMatch:
        """A chunk that is known from gold alone: not found by the run whose chunks gold names.

        The other run may have found its evidence by any hit; so may both, where gold names the
        chunks of neither.
        """
        anchor_a, anchor_b = (
            Anchor(doc=NOWHERE if home else ANYWHERE, spans=(), id=name, grain="chunk")
            for home in self.same.homes
        )
        return self._with_own_ids(PieceMatch("none", (anchor_a, anchor_b)))

    def _by_map(
        self, piece: Piece, name: str, clues: Sequence[Clue], both: int, unit: str | None
    ) -> PieceMatch | None:
        """By an old place and its new one, or by the old and the new id of a block."""
        if self.follower is None:
            return None
        for clue in clues:
            new_place = self._followed(clue, both, unit)
            if new_place is not None and clue.doc is not None:
                self.follower.followed += 1
                known = self.same.a.find(clue.doc)
                doc = clue.doc if known is None else known.name
                old = Anchor(
                    doc=doc,
                    spans=clue.spans,
                    id=name,
                    section=clue.section,
                    grain=grain_of(piece),
                )
                new = replace(old, doc=new_place[0], spans=new_place[1])
                return PieceMatch("doc_span", (old, new))
        blocks = self.follower.by_id(piece, self.same) if isinstance(piece, str) else None
        if blocks is None:
            return None
        self.follower.followed += 1
        return PieceMatch("exact", blocks)

    def _by_quote(
        self, name: str, clues: Sequence[Clue], both: int, grain: Grain
    ) -> PieceMatch | None:
        """By the words of the piece."""
        if not both & TEXTS:
            return None
        for clue in clues:
            quotation = self._quotation(clue)
            if quotation is None:
                continue
            quote, docs = quotation
            pair = self.same.pair(clue.doc)
            self.notes.anywhere += "" in docs
            if pair.moved or (all(docs) and pair.names != docs):
                self.notes.renamed[pair.name] = docs
            return _match("quote", docs, name, clue, grain, quote=quote)
        return None

    def _by_text_hash(
        self, name: str, clues: Sequence[Clue], both: int, unit: str | None, grain: Grain
    ) -> PieceMatch | None:
        """By the places of the two listed chunks with the very text, in documents that differ.

        It counts as a quote: the words are what both runs have in common.
        """
        for clue in clues:
            chunks = self._listed_chunks(clue, both, unit)
            if chunks is not None:
                anchor_a, anchor_b = (
                    Anchor(
                        doc=chunk.doc,
                        spans=chunk.spans,
                        id=name,
                        section=clue.section,
                        grain=grain,
                    )
                    for chunk in chunks
                )
                return PieceMatch("quote", (anchor_a, anchor_b))
        return None

    def _by_document(self, name: str, clues: Sequence[Clue], both: int) -> PieceMatch | None:
        """By the document as a whole; why the passage cannot be looked for is counted."""
        if both & TEXTS:
            self.notes.rewritten += any(normalised(clue.quote or "") for clue in clues)
        elif both & DOCS and any(self._edited(clue.doc) for clue in clues):
            self.notes.textless += 1
        for clue in clues:
            if clue.doc is not None and both & DOCS:
                # Evidence, too, stands somewhere in its document: who has no more than that of a
                # hit cannot say whether it holds it.
                match = _match("doc", self.names(clue.doc), name, clue, "chunk")
                return self._with_own_ids(match)
        return None

    def _with_own_ids(self, match: PieceMatch) -> PieceMatch:
        """A chunk that is looked for by its document: a hit with its id is it in its own run."""
        anchors = [
            anchor
            if anchor is None or home
            else replace(anchor, id=FOREIGN_ID + (anchor.id or "").removeprefix(EFFECTIVE_PREFIX))
            for anchor, home in zip(match.anchors, self.same.homes, strict=True)
        ]
        return match._replace(anchors=(anchors[0], anchors[1]))

    # --- what works in both runs ---

    def _unit(
        self,
        item: GoldItem,
        pieces: Sequence[Piece],
        all_clues: Sequence[list[Clue] | None],
        both: int,
    ) -> str | None:
        """The one unit that places of an item may have: that of gold, or else the first to work.

        Overlaps in bytes and in lines cannot be added, so an item never mixes them.
        """
        own: set[str] = set()
        if item.places or item.anchors or item.groups:
            anchors = (piece for piece in pieces if isinstance(piece, Anchor))
            own = {span.unit for anchor in (*anchors, *item.places) for span in anchor.spans}
        for chunks in (self.same.a.chunks, self.same.b.chunks):
            if chunks:
                for piece, clues in zip(pieces, all_clues, strict=True):
                    if clues is None and piece in chunks:
                        own |= {span.unit for span in chunks[str(piece)].spans}
        if own:
            return min(own) if len(own) == 1 else None
        for unit in UNITS:
            for clues in all_clues:
                for clue in clues or ():
                    if self._has_place(clue, both, unit):
                        return unit
        return None

    def _has_place(self, clue: Clue, both: int, unit: str | None) -> bool:
        """Whether a clue has a place in both runs, the same or another."""
        return (
            self.spans_work(clue, both, unit)
            or self._followed(clue, both, unit) is not None
            or self._listed_chunks(clue, both, unit) is not None
        )

    def _can_find_passage(self, clues: Sequence[Clue], both: int, unit: str | None) -> bool:
        """Whether the very passage can be looked for in both runs, by any of the clues."""
        if any(self._has_place(clue, both, unit) for clue in clues):
            return True
        return bool(both & TEXTS) and any(self._quotation(clue) is not None for clue in clues)

    def spans_work(self, clue: Clue, both: int, unit: str | None) -> bool:
        """Whether the place of a clue is the same in both runs, and their hits have places."""
        if unit is None or not both & SPANS or clue.doc is None or clue.unit != unit:
            return False
        comparable = self._comparable.get((clue.doc, unit))
        if comparable is None:
            changed = self.follower is not None and self.follower.changes(clue.doc)
            comparable = self._comparable[clue.doc, unit] = (
                self.same.a.measures(unit)
                and self.same.b.measures(unit)
                and self.same.pair(clue.doc).content == "same"
                and not changed
            )
        return comparable

    def _followed(
        self, clue: Clue, both: int, unit: str | None
    ) -> tuple[str, tuple[Span, ...]] | None:
        """Where the map of the corpora has the place of a clue; None without a map.

        What the second run says is of the new corpus already.
        """
        if self.follower is None or unit != _BYTES or not both & SPANS or clue.unit != unit:
            return None
        if clue.doc is None or clue.later:
            return None
        return self.follower.by_place(clue.doc, clue.spans, self.same)

    def _listed_chunks(self, clue: Clue, both: int, unit: str | None) -> tuple[Chunk, Chunk] | None:
        """The listed chunk of each run that has the very text of a clue.

        Lists without texts tell it by hashes, as the blocks of a corpus do.
        """
        a, b = self.same.a, self.same.b
        if not a.chunks or not b.chunks or unit != _BYTES or not both & SPANS:
            return None
        if not (a.measures(unit) and b.measures(unit)):
            return None
        hashed = clue.text_hash or (text_hash(clue.quote) if clue.quote else None)
        if hashed is None:
            return None
        pair = self.same.pair(clue.doc)
        chunk_a, chunk_b = a.only_chunk_with(hashed, pair.a), b.only_chunk_with(hashed, pair.b)
        if chunk_a is None or chunk_b is None:
            return None
        # A hash that an index gives may be of a normalised text: parts of other lengths are not
        # the same bytes.
        lengths_a, lengths_b = (
            [(span.unit, span.length) for span in chunk.spans] for chunk in (chunk_a, chunk_b)
        )
        if lengths_a != lengths_b or any(unit_a != _BYTES for unit_a, _ in lengths_a):
            return None
        return chunk_a, chunk_b

    def _quotation(self, clue: Clue) -> tuple[str, tuple[str, str]] | None:
        """The quote of a clue, and the document of each run that it is looked for in."""
        quote = normalised(clue.quote or "")
        if not quote:
            return None
        pair = self.same.pair(clue.doc)
        doc_a = self.same.a.quoted_in(pair.a, quote)
        doc_b = self.same.b.quoted_in(pair.b, quote)
        return None if doc_a is None or doc_b is None else (quote, (doc_a, doc_b))

    def _edited(self, doc: str | None) -> bool:
        return doc is not None and self.same.pair(doc).content == "differs"


def _match(
    level: MatchLevel,
    docs: tuple[str, str],
    name: str,
    clue: Clue,
    grain: Grain,
    *,
    spans: tuple[Span, ...] = (),
    quote: str | None = None,
) -> PieceMatch:
    """The piece as both runs call it: a place, a quote, or a whole document."""
    doc_a, doc_b = docs
    anchor = Anchor(doc=doc_a, spans=spans, id=name, section=clue.section, quote=quote, grain=grain)
    return PieceMatch(level, (anchor, anchor if doc_a == doc_b else replace(anchor, doc=doc_b)))


def grain_of(piece: Piece) -> Grain:
    """Whether a piece is the evidence itself, or a chunk that holds it somewhere."""
    return "chunk" if isinstance(piece, str) or piece.is_chunk else "evidence"


def _merged(clues: Sequence[Clue]) -> Clue:
    """One clue of several: of each thing what the first that knows it says."""
    merged = Clue(*(next(filter(None, values), values[-1]) for values in zip(*clues, strict=True)))
    return merged._replace(later=clues[0].later)


def _only_document(item: GoldItem) -> str | None:
    """The document of an item that names no other."""
    docs = {*(item.relevant_docs or ()), *(place.doc for place in (*item.anchors, *item.places))}
    docs |= {doc for chunk_id in item.relevant if (doc := doc_of(chunk_id)) is not None}
    section = split_section(item.anchor_section)[0] if item.anchor_section is not None else None
    docs |= {section} if section is not None else set()
    return docs.pop() if len(docs) == 1 else None


def match_of(counts: Mapping[MatchLevel, int], *, unproven: int = 0) -> Match:
    """One word for the levels of all expected pieces; ids that only meet prove nothing."""
    used = [level for level in MATCH_LEVELS if counts[level]]
    if not used or used == ["none"]:
        return "none"
    if len(used) > 1:
        return "mixed"
    if used == ["exact"] and unproven:
        return "unproven"
    matches: dict[MatchLevel, Match] = {
        "exact": "exact",
        "doc_span": "fallback_doc_span",
        "quote": "fallback_quote",
        "doc": "fallback_doc",
    }
    return matches[used[0]]
