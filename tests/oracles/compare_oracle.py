"""Two runs of the same gold set compared, from the specification's words, one hit at a time.

It is slow on purpose: spans and quotes are sets of single bytes, and numbers are fractions until
the very end. Nothing of the package is imported, so that the two can disagree.
Rows are read in one spelling: gold `qid`, `relevant` (ids, or objects with `doc`, `start`, `end`
and perhaps `id` and `quote`) and `expected_doc_ids`; traces `qid`, `seed`, `error` and `topk`,
whose hits have `id` and perhaps `doc`, `offsets`, `text`, `doc_hash` and `chunker_version`. A list
of chunks has rows like hits, all with `doc` and `offsets`; no document has the text of all of them,
so that the list tells texts of chunks and never the whole text of a document.
"""

from __future__ import annotations

import unicodedata
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property
from math import comb
from typing import Any

Row = dict[str, Any]

RUNGS = ("exact", "doc_span", "quote", "doc", "none")
MRR_CUT = 10
EDGE = 12  # characters that two texts share at their ends before it counts


# --- what one side knows --------------------------------------------------------------------------


@dataclass
class Chunk:
    """What the hits of one run tell of a chunk id."""

    doc: str | None = None
    span: tuple[int, int] | None = None
    text: str | None = None


@dataclass(eq=False)
class Side:
    """One run: its traces by question, and what its hits and its list tell of chunks and documents.

    `wanted` are the ids that gold names.
    """

    traces: list[Row]
    listed: dict[str, Row] = field(default_factory=dict)
    wanted: set[str] = field(default_factory=set)
    chunks: dict[str, Chunk] = field(default_factory=dict)
    versions_of: dict[str, set[str]] = field(default_factory=dict)
    hashes_of: dict[str, set[str]] = field(default_factory=dict)
    versions: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        for trace in self.traces:  # what a hit does not say is said by the list
            hits = trace.get("topk") or []
            trace["topk"] = [{**self.listed.get(hit["id"], {}), **hit} for hit in hits]
        rows = [*self.listed.values(), *self.hits]
        for hit in rows:  # also where an error came after them
            chunk = self.chunks.setdefault(hit["id"], Chunk())
            chunk.doc = chunk.doc or hit.get("doc")
            chunk.span = chunk.span or span_of(hit)
            chunk.text = chunk.text or hit.get("text")
            version = hit.get("chunker_version")
            if version is not None:
                self.versions.add(version)
            doc = hit.get("doc")
            if doc is None:
                continue
            self.versions_of.setdefault(doc, set())
            self.hashes_of.setdefault(doc, set())
            if version is not None:
                self.versions_of[doc].add(version)
            if hit.get("doc_hash") is not None:
                self.hashes_of[doc].add(hit["doc_hash"])

    @property
    def hits(self) -> list[Row]:
        return [hit for trace in self.traces for hit in trace.get("topk") or []]

    @property
    def docs(self) -> set[str]:
        return set(self.hashes_of)

    @cached_property
    def shown(self) -> set[str]:
        """The ids of the chunks whose place or text the run shows."""
        told = {hit["id"] for hit in self.hits if span_of(hit) or hit.get("text") is not None}
        return told | (self.listed.keys() & self.wanted)

    def only_with(self, text: str, doc: str | None) -> Row | None:
        """The one chunk of the list with a text, in a document or in any."""
        rows = [row for row in self.listed.values() if row.get("text") == text]
        rows = [row for row in rows if doc is None or row["doc"] == doc]
        return rows[0] if len(rows) == 1 else None

    @cached_property
    def measures(self) -> bool:
        """Whether its hits have spans at all; a run without any hit has nothing against them."""
        return not self.hits or any(span_of(hit) is not None for hit in self.hits)

    def slots(self, qid: str) -> list[Row]:
        return [trace for trace in self.traces if trace["qid"] == qid]

    def carries(self, qid: str, what: str) -> bool:
        """Whether each hit of a question has this field; so it is where there is no hit."""
        return all(hit.get(what) is not None for trace in self.slots(qid) for hit in hits_of(trace))

    def state(self, qid: str) -> str:
        slots = self.slots(qid)
        if not slots:
            return "missing"
        return "errored" if all(has_error(trace) for trace in slots) else "there"

    def lost(self, qid: str) -> int:
        """How many slots carry an error."""
        return sum(has_error(trace) for trace in self.slots(qid))


def has_error(trace: Row) -> bool:
    return trace.get("error") is not None


def hits_of(trace: Row) -> list[Row]:
    return [] if has_error(trace) else list(trace.get("topk") or [])


def span_of(row: Row) -> tuple[int, int] | None:
    return tuple(row["offsets"]) if row.get("offsets") else None


# --- what is the same on both ---------------------------------------------------------------------


@dataclass(eq=False)
class Pair:
    """Two sides, and which names of documents and chunks mean the same on both."""

    def fewer(self, qid: str, side: Side) -> int:
        """How many fewer slots of a question a side has than the other."""
        most = max(len(self.a.slots(qid)), len(self.b.slots(qid)))
        return most - len(side.slots(qid))

    a: Side
    b: Side

    def other(self, side: Side) -> Side:
        return self.b if side is self.a else self.a

    def name_in(self, doc: str, side: Side) -> str | None:
        """What a document of either side is called on this one: by its name, else by its content.

        The content decides only if just one document here has it under a name that is new.
        """
        if doc in side.docs:
            return doc
        other = self.other(side)
        hashes = other.hashes_of.get(doc, set())
        new = [
            name for name in side.docs if name not in other.docs and hashes & side.hashes_of[name]
        ]
        return new[0] if len(new) == 1 else None

    def unchanged(self, doc: str) -> bool:
        """The document has the same hash on both sides, or none on either."""
        found = []
        for side in (self.a, self.b):
            name = self.name_in(doc, side)
            found.append(side.hashes_of[name] if name is not None else set())
        return found[0] == found[1]

    def edited(self, doc: str | None) -> bool:
        """The document is known to have another content on the other side."""
        if doc is None:
            return False
        found = []
        for side in (self.a, self.b):
            name = self.name_in(doc, side)
            found.append(side.hashes_of[name] if name is not None else set())
        return bool(found[0] and found[1]) and found[0] != found[1]

    def same_versions(self, doc: str | None) -> bool:
        """Both sides cut the document by the same chunker, or neither says by which.

        A run without a single hit says nothing against it. Where a side has not met the document,
        one version in common is enough.
        """
        if not all(side.hits or side.listed for side in (self.a, self.b)):
            return True
        met = [doc is not None and self.name_in(doc, side) is not None for side in (self.a, self.b)]
        found = self.versions(doc)
        if all(met) or not (found[0] and found[1]):
            return found[0] == found[1]
        return bool(found[0] & found[1])

    def versions(self, doc: str | None) -> list[set[str]]:
        """The chunkers that each side names for a document, or at all if it has not met it."""
        found = []
        for side in (self.a, self.b):
            name = self.name_in(doc, side) if doc is not None else None
            found.append(side.versions_of[name] if name is not None else side.versions)
        return found

    def doubted(self, doc: str | None) -> bool:
        """Neither side says how the document was cut, and what they show has no id in common."""
        one, two = self.a.shown, self.b.shown
        shared = (one | self.a.listed.keys()) & (two | self.b.listed.keys())
        return bool(one and two) and not shared and not any(self.versions(doc))

    def unlisted(self, qid: str, name: str | None, doc: str | None) -> bool:
        """One list has the id, and the other, which places the hits, has it not; no version says
        that both are cut alike."""
        if name is None or not (self.a.listed and self.b.listed) or any(self.versions(doc)):
            return False
        there = [side for side in (self.a, self.b) if name in side.listed]
        return len(there) == 1 and self.other(there[0]).carries(qid, "offsets")

    def standing(self, piece: Piece) -> list[Row] | None:
        """The chunk of each list that has the very text of a piece, if there is just one."""
        if not piece.quote:
            return None
        names = [self.name_in(piece.doc, side) if piece.doc else None for side in (self.a, self.b)]
        found = [
            side.only_with(piece.quote, name)
            for side, name in zip((self.a, self.b), names, strict=True)
        ]
        rows = [row for row in found if row is not None]
        return rows if len(rows) == 2 else None

    def same_chunk(self, name: str) -> bool | None:
        """Whether the id has the same content on both sides; None if that is not known."""
        one, two = self.a.chunks.get(name), self.b.chunks.get(name)
        if one is None or two is None:
            return None
        if one.text is not None and two.text is not None:
            return one.text == two.text
        if one.span is None or two.span is None:
            return None
        if one.span != two.span:
            return False
        if one.doc is None or two.doc is None:
            return None  # other documents have chunks at the same offsets
        if not self.same_document(one.doc, two.doc):
            return False
        return True if self.unchanged(one.doc) and self.unchanged(two.doc) else None

    def same_document(self, a: str, b: str) -> bool:
        """Whether a name of the first side and one of the second mean the same document."""
        return self.name_in(a, self.b) == b or self.name_in(b, self.a) == a

    @cached_property
    def contradictions(self) -> tuple[bool, set[str]]:
        """Whether equal ids with other texts speak against all ids, or only those of documents."""
        everywhere, docs = False, set()
        for name in set(self.a.chunks) & set(self.b.chunks):
            if self.same_chunk(name) is not False:
                continue
            one, two = self.a.chunks[name].doc, self.b.chunks[name].doc
            known = one is not None and two is not None and self.same_document(one, two)
            if known and not (self.same_versions(one) and self.same_versions(two)):
                continue  # the document has another chunker: other texts are no wonder
            if known and (self.edited(one) or self.edited(two)):
                docs |= {one or "", two or ""}
            else:
                everywhere = True
        return everywhere, docs

    def trusted(self, doc: str | None) -> bool:
        """Whether equal ids of a document mean equal chunks although not both are known."""
        everywhere, docs = self.contradictions
        if doc is not None:
            names = {self.name_in(doc, side) or doc for side in (self.a, self.b)}
            if len(names) > 1 or self.edited(doc):
                return False  # ids may count chunks, or name the document
        return self.same_versions(doc) and not everywhere and doc not in docs


# --- expected items -------------------------------------------------------------------------------


@dataclass(frozen=True)
class Piece:
    """One expected item as gold names it, with what the runs know of it."""

    id: str | None
    doc: str | None
    span: tuple[int, int] | None
    quote: str | None
    placed: bool  # gold itself says where it lies
    moved: bool = False  # it lies elsewhere on the other side


def pieces_of(item: Row, pair: Pair) -> list[Piece]:
    """The expected items of a question; what gold does not say comes from a, else from b."""
    entries = [
        entry if isinstance(entry, dict) else {"id": entry} for entry in item.get("relevant") or []
    ]
    named = {entry["doc"] for entry in entries if entry.get("doc")}
    named |= set(item.get("expected_doc_ids") or [])
    only_doc = next(iter(named)) if len(named) == 1 else None
    pieces: dict[Any, Piece] = {}
    for entry in entries:
        name = entry.get("id")
        placed = entry.get("start") is not None
        span: tuple[int, int] | None
        known = [side.chunks[name] for side in (pair.a, pair.b) if name in side.chunks]
        if placed:
            doc, span = entry["doc"], (entry["start"], entry["end"])
        else:
            doc = next((each.doc for each in known if each.doc), None) or only_doc
            span = next((each.span for each in known if each.span), None)
        quote = entry.get("quote") or next((each.text for each in known if each.text), None)
        # As gold writes them: a place with a quote and the same without one are two entries.
        key = (name, doc, span, entry.get("quote")) if placed else name
        pieces.setdefault(key, Piece(name, doc, span, quote, placed))
    # An id that a place has is that place. Ids stand first.
    placed_ids = {piece.id for piece in pieces.values() if piece.placed}
    kept = [piece for piece in pieces.values() if piece.placed or piece.id not in placed_ids]
    return sorted(kept, key=lambda piece: piece.placed)


def readings(piece: Piece, pair: Pair) -> list[Piece]:
    """The piece as each side knows it; as both do where gold places it, or where they disagree."""
    known = [side.chunks[piece.id] for side in (pair.a, pair.b) if piece.id in side.chunks]
    if piece.placed or len(known) < 2 or pair.same_chunk(piece.id or "") is False:
        return [piece]
    return [
        replace(piece, doc=chunk.doc or piece.doc, span=chunk.span, quote=chunk.text)
        for chunk in known
    ]


def rung_of(qid: str, piece: Piece, pair: Pair) -> tuple[str, Piece]:
    """The first rung for which both sides carry what it needs, whatever they hit.

    With the reading of the piece that it works for.
    """
    sides = (pair.a, pair.b)
    each = readings(piece, pair)
    docs = {reading.doc for reading in each}
    same = pair.same_chunk(piece.id) if piece.id is not None else None
    believed = same is not False and all(pair.trusted(doc) for doc in docs)
    if not piece.placed and any(pair.unlisted(qid, piece.id, doc) for doc in docs):
        believed = False
    if believed and not any(pair.doubted(doc) for doc in docs):
        return "exact", piece
    if same and not piece.placed:
        return "exact", piece
    spanned = all(side.carries(qid, "offsets") for side in sides)
    measured = spanned and all(side.measures for side in sides)
    for reading in each:
        placed = reading.doc is not None and reading.span is not None
        if measured and placed and pair.unchanged(reading.doc or ""):
            return "doc_span", reading
    for reading in each:
        if reading.quote and all(side.carries(qid, "text") for side in sides):
            return "quote", reading
    for reading in each:
        if pair.standing(reading) and spanned:
            return "quote", reading
    if believed:
        return "exact", piece  # a document would say less than a doubtful id
    if piece.doc is not None and all(side.carries(qid, "doc") for side in sides):
        return "doc", piece
    return "none", piece


def documents_of(item: Row) -> list[Piece]:
    """Of a question that names documents and nothing in them."""
    docs = dict.fromkeys(item.get("expected_doc_ids") or [])
    return [Piece(None, doc, None, None, placed=False) for doc in docs]


def rung_of_document(qid: str, piece: Piece, pair: Pair) -> str:
    """By document, never exact; where a side names none, only a name both or neither knows."""
    sides = (pair.a, pair.b)
    if len({piece.doc in side.docs for side in sides}) == 1:
        return "doc"
    return "doc" if all(side.carries(qid, "doc") for side in sides) else "none"


# --- ranks ----------------------------------------------------------------------------------------


def plain(text: str) -> str:
    return " ".join(unicodedata.normalize("NFC", text).split())


def quoted_places(quote: str, text: str) -> set[int]:
    """The places of the characters of a quote that a text holds: all, a part, or an end."""
    least = min(EDGE, -(-len(quote) // 5))
    if not quote or not text:
        return set()
    if quote in text:
        return set(range(len(quote)))
    if len(text) < least:
        return set()
    if text in quote:
        start = quote.index(text)
        return set(range(start, start + len(text)))
    found: set[int] = set()
    for length in range(least, min(len(quote), len(text)) + 1):
        if text.endswith(quote[:length]):
            found |= set(range(length))
        if text.startswith(quote[-length:]):
            found |= set(range(len(quote) - length, len(quote)))
    return found


def bytes_at(quote: str, places: set[int]) -> set[int]:
    """The places of bytes for places of characters."""
    found: set[int] = set()
    start = 0
    for place, letter in enumerate(quote):
        end = start + len(letter.encode())
        if place in places:
            found |= set(range(start, end))
        start = end
    return found


def covered_by(hit: Row, piece: Piece, rung: str, doc: str | None, only: str | None) -> set[int]:
    """The bytes of an expected item that one hit holds."""
    if rung == "quote":
        if doc is not None and hit.get("doc") not in (None, doc):
            return set()
        quote = plain(piece.quote or "")
        return bytes_at(quote, quoted_places(quote, plain(hit.get("text") or "")))
    if (hit.get("doc") or only) != doc or span_of(hit) is None or piece.span is None:
        return set()
    start, end = span_of(hit) or (0, 0)
    return set(range(max(start, piece.span[0]), min(end, piece.span[1])))


def rank_of(
    hits: Sequence[Row], piece: Piece, rung: str, doc: str | None, only: str | None, overlap: str
) -> int | None:
    """Where an expected item is found under its rung; `doc` is its document's name here."""
    if rung == "quote":
        whole = len(plain(piece.quote or "").encode())
    else:
        whole = piece.span[1] - piece.span[0] if piece.span else 0
    seen: set[int] = set()
    ids = [hit["id"] for hit in hits]
    for rank, hit in enumerate(hits, start=1):
        if rung == "exact" and piece.id is not None and hit["id"] == piece.id:
            return rank
        if rung == "doc" or (piece.id is None and piece.span is None):
            if hit.get("doc") == doc:
                return rank
            continue
        if rung == "exact" and not piece.placed:
            continue
        if rung == "quote" and hit["id"] in ids[: rank - 1]:
            continue  # an id that came before gains nothing again
        part = covered_by(hit, piece, rung, doc, only)
        seen = part if overlap == "single" else seen | part
        if whole and 2 * len(seen) >= whole:
            return rank
    return None


# --- the comparison -------------------------------------------------------------------------------


@dataclass(frozen=True)
class Question:
    """One question: rungs, ranks for each slot, and what came of it."""

    qid: str
    rungs: tuple[str, ...]
    kind: str | None
    ranks_a: tuple[int | None, ...]
    ranks_b: tuple[int | None, ...]
    reciprocal_a: Fraction | None
    reciprocal_b: Fraction | None


@dataclass(frozen=True)
class Difference:
    """One metric on both sides; `p` only where each question has 0 or 1."""

    a: Fraction | None
    b: Fraction | None
    n: int
    p: Fraction | None

    @property
    def delta(self) -> Fraction | None:
        return None if self.a is None or self.b is None else self.b - self.a


@dataclass(frozen=True)
class Compared:
    """All that this module says of two runs."""

    match: str
    rungs: dict[str, int]
    kinds: dict[str, int]
    questions: dict[str, Question]
    metrics: dict[str, Difference]


def mean(values: Iterable[Fraction]) -> Fraction | None:
    found = list(values)
    return sum(found, Fraction(0)) / len(found) if found else None


KIND_CUT = 10
_ZERO = Fraction(0)


def kind_of(
    states: tuple[str, str],
    ranks: Sequence[Sequence[Sequence[int | None]]],
    lost: tuple[int, int] = (0, 0),
) -> str | None:
    """What came of all that a question expects; `ranks` are by side, slot and expected item.

    Something is found as often as the share of slots that have it within the cut-off. A question
    without a result is worse than a miss, and a slot without one is, too: `lost` counts them.
    Where both lack it there is no kind.
    """
    there_a, there_b = (state == "there" for state in states)
    if not there_a and not there_b:
        return None
    shares: list[list[Fraction]] = []
    more: list[Fraction] = []
    for slots in ranks:
        near = [[rank if rank and rank <= KIND_CUT else None for rank in slot] for slot in slots]
        items = list(zip(*near, strict=True))
        shares.append([Fraction(sum(rank is not None for rank in e), len(e)) for e in items])
        every = [rank for slot in near for rank in slot]
        more.append(mean(Fraction(1, rank) if rank else Fraction(0) for rank in every) or _ZERO)
    a, b = shares
    changes = [after - before for before, after in zip(a, b, strict=True)]
    if sum(changes) < 0:
        return "regression"
    if min(changes) < 0:
        return "mixed"
    if max(changes) > 0 or more[1] > more[0]:
        return "win"
    if more[1] < more[0]:
        return "loss"
    if there_a != there_b:
        return "win" if there_b else "loss"
    return "draw" if lost[0] == lost[1] else "win" if lost[0] > lost[1] else "loss"


def mcnemar(pairs: Iterable[tuple[Fraction, Fraction]]) -> Fraction:
    """Exact and two-sided: of the questions that differ, half would be won by chance."""
    counts = Counter((a > b) - (a < b) for a, b in pairs)
    fewer, n = min(counts[1], counts[-1]), counts[1] + counts[-1]
    return min(Fraction(1), 2 * Fraction(sum(comb(n, i) for i in range(fewer + 1)), 2**n))


def holm(ps: Mapping[str, float]) -> dict[str, float]:
    """The smallest p times their number, the next times one less, and never falling."""
    found: dict[str, float] = {}
    highest = 0.0
    for place, name in enumerate(sorted(ps, key=lambda each: ps[each])):
        highest = max(highest, min(1.0, (len(ps) - place) * ps[name]))
        found[name] = highest
    return found


def word_for(rungs: Iterable[str]) -> str:
    found = set(rungs)
    if len(found) > 1:
        return "mixed"
    one = next(iter(found), "none")
    return one if one in ("exact", "none") else f"fallback_{one}"


def compare(
    gold: Sequence[Row],
    traces_a: list[Row],
    traces_b: list[Row],
    *,
    ks: Sequence[int],
    overlap: str = "cumulative",
    lists: tuple[Sequence[Row], Sequence[Row]] = ((), ()),
) -> Compared:
    """Compare two runs over the same gold rows."""
    entries = [entry for item in gold for entry in item.get("relevant") or []]
    ids = (entry.get("id") if isinstance(entry, dict) else entry for entry in entries)
    named = {str(each) for each in ids if each is not None}
    pair = Pair(
        *(
            Side([dict(trace) for trace in traces], {row["id"]: row for row in rows}, named)
            for traces, rows in zip((traces_a, traces_b), lists, strict=True)
        )
    )
    questions: dict[str, Question] = {}
    values: dict[str, list[tuple[Fraction, Fraction]]] = {
        name: []
        for name in (
            f"retrieval.mrr@{MRR_CUT}",
            *(f"retrieval.{each}@{k}" for each in ("hit", "recall") for k in ks),
        )
    }
    every_rung: list[str] = []
    for item in gold:
        qid = item["qid"]
        pieces = pieces_of(item, pair)
        if pieces:
            read = [rung_of(qid, piece, pair) for piece in pieces]
        else:
            pieces = documents_of(item)
            read = [(rung_of_document(qid, piece, pair), piece) for piece in pieces]
        rungs = [rung for rung, _ in read]
        left = [(reading, rung) for rung, reading in read if rung != "none"]
        ranks: list[list[list[int | None]]] = []  # side, slot, expected item
        for side in (pair.a, pair.b):
            slots = side.slots(qid) or [{"qid": qid}]
            if side.slots(qid):  # what the other run was asked, and this one not
                slots = slots + [{"qid": qid}] * pair.fewer(qid, side)
            docs = _named_documents(item, list(zip(pieces, rungs, strict=True)), pair, side)
            ranks.append(
                [_ranks(hits_of(trace), left, docs, pair, side, overlap, qid) for trace in slots]
            )
        every_rung += rungs
        if rungs and not left:
            continue  # nothing of it is recognised: it is left out
        if not left:
            questions[qid] = Question(qid, tuple(rungs), None, (), (), None, None)
            continue
        best = [[min((r for r in slot if r), default=None) for slot in each] for each in ranks]
        reciprocal = [
            mean(Fraction(1, rank) if rank else Fraction(0) for rank in each) or Fraction(0)
            for each in best
        ]
        lost = [side.lost(qid) + pair.fewer(qid, side) for side in (pair.a, pair.b)]
        kind = kind_of((pair.a.state(qid), pair.b.state(qid)), ranks, (lost[0], lost[1]))
        questions[qid] = Question(
            qid, tuple(rungs), kind, tuple(best[0]), tuple(best[1]), reciprocal[0], reciprocal[1]
        )
        if not item.get("relevant"):
            continue  # only documents are expected: other metrics are about them
        for name, found in values.items():
            one, two = (mean(_value(name, slot) for slot in each) or Fraction(0) for each in ranks)
            found.append((one, two))
    return Compared(
        match=word_for(every_rung),
        rungs=dict(Counter(every_rung)),
        kinds=dict(Counter(each.kind for each in questions.values() if each.kind)),
        questions=questions,
        metrics={name: _difference(found) for name, found in values.items()},
    )


def _named_documents(
    item: Row, pieces: Sequence[tuple[Piece, str]], pair: Pair, side: Side
) -> set[str]:
    """The documents that a question names besides the places of its pieces.

    Where a piece is looked for elsewhere than gold says, all documents that pieces are known to be
    in are named; else those that gold names, as without a comparison.
    """
    docs = set(item.get("expected_doc_ids") or [])
    if not all(_as_gold_says(piece, rung, pair) for piece, rung in pieces):
        docs |= {piece.doc for piece, _ in pieces if piece.doc is not None}
    return {pair.name_in(doc, side) or doc for doc in docs}


def _as_gold_says(piece: Piece, rung: str, pair: Pair) -> bool:
    """Whether a piece is looked for by the very id or place that gold gives."""
    if rung == "exact" or piece.doc is None:
        return rung == "exact"
    names = {pair.name_in(piece.doc, side) or piece.doc for side in (pair.a, pair.b)}
    return rung == "doc_span" and piece.placed and piece.id is None and names == {piece.doc}


def _ranks(
    hits: Sequence[Row], left: Sequence[tuple[Piece, str]], docs: set[str], pair: Pair,
    side: Side, overlap: str, qid: str,
) -> list[int | None]:  # fmt: skip
    """The rank of each expected item in one list of hits."""
    left = [(_here(piece, rung, pair, side, qid), rung) for piece, rung in left]
    left = [(piece, "doc_span" if piece.moved else rung) for piece, rung in left]
    names = [
        None if piece.doc is None else _name(piece.doc, rung, pair, side) for piece, rung in left
    ]
    said = [rung != "exact" or piece.placed for piece, rung in left]  # an id names no document
    named = docs | {name for name, says in zip(names, said, strict=True) if name and says}
    only = next(iter(named)) if len(named) == 1 else None
    return [
        rank_of(hits, piece, rung, name, only, overlap)
        for (piece, rung), name in zip(left, names, strict=True)
    ]


def _here(piece: Piece, rung: str, pair: Pair, side: Side, qid: str) -> Piece:
    """A piece with the place that the list of this side gives it."""
    if rung == "exact" and not piece.placed and piece.id in side.listed:
        row = side.listed[piece.id]
        return replace(piece, doc=row["doc"], span=span_of(row), placed=True)
    if rung == "quote" and not all(each.carries(qid, "text") for each in (pair.a, pair.b)):
        rows = pair.standing(piece)
        found = rows[side is pair.b] if rows else None
        if found is not None:
            return replace(piece, doc=found["doc"], span=span_of(found), moved=True)
    return piece


def _name(doc: str, rung: str, pair: Pair, side: Side) -> str | None:
    """A quote is looked for in any document where its own is not known; else the name stays."""
    return pair.name_in(doc, side) or (None if rung == "quote" else doc)


def _value(metric: str, ranks: Sequence[int | None]) -> Fraction:
    """A metric of one slot."""
    name, _, k = metric.rpartition("@")
    found = [rank for rank in ranks if rank is not None and rank <= int(k)]
    if name == "retrieval.mrr":
        return Fraction(1, min(found)) if found else Fraction(0)
    if name == "retrieval.hit":
        return Fraction(bool(found))
    return Fraction(len(found), len(ranks))


def _difference(pairs: Sequence[tuple[Fraction, Fraction]]) -> Difference:
    whole = all(value in (0, 1) for pair in pairs for value in pair)
    return Difference(
        a=mean(a for a, _ in pairs),
        b=mean(b for _, b in pairs),
        n=len(pairs),
        p=mcnemar(pairs) if pairs and whole else None,
    )
