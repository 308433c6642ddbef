"""Places: where the evidence of a chunk id may stand, and at which rank each place is found.

The id of a chunk says that the evidence stands somewhere in it. Windows of the shortest evidence
that is considered, each half a window behind the one before, are the places it may stand at. A
place is found like an anchor: by the first hits that together cover half of it.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from ragauge.model.gold import Anchor
from ragauge.quotes import border, normalised
from ragauge.scoring.evidence_pieces import EFFECTIVE_PREFIX, GoldDetails, is_somewhere
from ragauge.scoring.evidence_places import RankedPlace, refuse_mixed
from ragauge.spans import Merged, merged, of_unit, size

LEAST_EVIDENCE = 40
"""Bytes of the shortest evidence. Of 20, 40, 80 and 160, measured against true spans, it was the
longest that made few sure regressions wrong (docs/explanation/rechunking.md)."""

NOT_FOUND = -1
"""The rank of a place that no hit finds; ranks count from 0."""

_LEAST_SHARED = 20


def places_of(piece: Merged, *, least: int = LEAST_EVIDENCE, text: str | None = None) -> Merged:
    """The places of a piece; those of white space alone are left out where its text is known.

    `text` is used where it has as many bytes as the piece.
    """
    windows: Merged = []
    step = max(1, least // 2)
    for start, end in piece:
        if end - start <= least:
            windows.append((start, end))
            continue
        windows.extend((at, at + least) for at in range(start, end - least, step))
        windows.append((end - least, end))
    data = None if text is None else text.encode(errors="surrogatepass")
    if data is None or len(piece) != 1 or len(data) != piece[0][1] - piece[0][0]:
        return windows
    first = piece[0][0]
    written = [window for window in windows if data[window[0] - first : window[1] - first].strip()]
    return written or windows


def ranks_of_places(
    places: Merged, covers: Iterable[tuple[int, Merged]], *, single: bool = False
) -> list[int]:
    """The rank at which each place is found; `covers` are hits in the order of their ranks.

    Places stand in order, and each byte is counted once however often it is covered: the work grows
    with the number of places and of hits, not with their product. `single`: one hit alone must do.
    """
    ranks = [NOT_FOUND] * len(places)
    missing = [(end - start + 1) // 2 for start, end in places]  # bytes to half of each
    starts = [start for start, _ in places]
    longest = max((end - start for start, end in places), default=0)
    gaps = merged(places)
    left = len(places)
    for rank, spans in covers:
        if single:
            missing = [(end - start + 1) // 2 for start, end in places]
            fresh = _shared(spans, merged(places))
        else:
            fresh = _shared(spans, gaps)
            gaps = _without(gaps, fresh) if fresh else gaps
        for start, end in fresh:
            at = bisect_right(starts, start - longest)
            while at < len(places) and starts[at] < end:
                low, high = places[at]
                missing[at] -= max(0, min(high, end) - max(low, start))
                if missing[at] <= 0 and ranks[at] == NOT_FOUND:
                    ranks[at] = rank
                    left -= 1
                at += 1
        if not left:
            break
    return ranks


def _shared(spans: Merged, gaps: Merged) -> Merged:
    """What two unions have in common."""
    shared: Merged = []
    for start, end in spans:
        for low, high in gaps:
            if low >= end:
                break
            if high > start:
                shared.append((max(start, low), min(end, high)))
    return shared


def _without(gaps: Merged, covered: Merged) -> Merged:
    """Intervals less what is covered of them."""
    left: Merged = []
    for low, high in gaps:
        at = low
        for start, end in covered:
            if end <= at or start >= high:
                continue
            if start > at:
                left.append((at, start))
            at = max(at, end)
        if at < high:
            left.append((at, high))
    return left


def shared_text(piece: str, text: str, *, least: int = _LEAST_SHARED) -> Merged:
    """The bytes of a piece's text that the text of a hit shares; both are normalised.

    All of it where the hit contains it; every occurrence of a hit that stands inside; else what the
    end of one and the start of the other have in common.
    """
    if not piece or not text:
        return []
    if piece in text:
        return [(0, _bytes(piece, len(piece)))]
    if text in piece:
        if _bytes(text, len(text)) < least:
            return []
        intervals = []
        at = piece.find(text)
        while at >= 0:
            intervals.append((_bytes(piece, at), _bytes(piece, at + len(text))))
            at = piece.find(text, at + 1)
        return merged(intervals)
    head, tail = border(text, piece, least), border(piece, text, least)
    length = _bytes(piece, len(piece))
    parts = [(0, _bytes(piece, head)), (_bytes(piece, len(piece) - tail), length)]
    return merged((start, end) for start, end in parts if end > start)


def _bytes(text: str, characters: int) -> int:
    """How many bytes some first characters of a text are."""
    if text.isascii():
        return characters
    return len(text[:characters].encode(errors="surrogatepass"))


def runs_of(ranks: Sequence[int]) -> list[tuple[int, int]]:
    """Ranks as runs: where each begins, and its rank; neighbours are mostly found together."""
    return [(at, rank) for at, rank in enumerate(ranks) if at == 0 or rank != ranks[at - 1]]


# --- the chunks of an item ---

PLACE_TABLE = "place_rank"
"""The table of ranks of places: runs of places of one rank, by the first place of each."""

POSSIBLE_TABLE = "possible_rank"
"""The table of ranks at which evidence may be found of which no place is known."""

SIZE_TABLE = "hit_bytes"
"""The table of sizes of hits, by their rank."""

POSSIBLE_CITED_TABLE = "possible_citation"
"""The table of citations that may be of a chunk of which no place is known, by their numbers: 1
where it is named by its id, and surely is."""

OWN_TABLE = "own_chunk"
"""The table of chunks that a hit names by their ids: 1 where it lies at their place or says nothing
of its own, -1 where it lies elsewhere."""

TOUCH_TABLE = "touched_chunk"
"""The table of chunks that another hit or citation touches: 1 where a list of chunks has all of
these with the chunk itself, else 2; 0 where it is the very chunk under another id."""

HITS_TABLE = "touching_hits"
"""The table of records with a hit that touches a chunk; all its covers are in the next ones."""

COVER_TABLES = ("cover_start", "cover_end", "cover_size")
"""What hits cover of touched chunks, by chunk and rank: from where to where, and their sizes."""

CITED_COVER_TABLES = ("cited_start", "cited_end", "cited_size")
"""The same of citations, by their numbers among those of the answer."""

ACCURATE_TABLE = "accurate_chunk"
"""The table of touched chunks that a citation agrees with: 1 wherever the evidence stands, else 0
where it may."""

MOST_RANKS = 1 << 16
ANYWHERE = "\0anywhere"
"""The document of a chunk of which nothing is known: any hit may hold its evidence."""

NOWHERE = "\0nowhere"
"""The document of a chunk that a run does not have: no hit of it holds its evidence."""

FOREIGN_ID = f"{EFFECTIVE_PREFIX}\0"
"""What the id of an effective place begins with where a hit with its id may be another chunk."""

_MOST_POSSIBLE = 20


class ChunkPlaces(NamedTuple):
    """A chunk among the anchors of an item: its number there, its places, and that of the first.

    Places of the chunks of an item are numbered through. A chunk without places is known by its
    document at best. `text` is normalised, and there where places are bytes of it.
    """

    number: int
    anchor: Anchor
    first: int
    places: Merged
    text: str | None = None


def chunk_places(details: GoldDetails, *, least: int = LEAST_EVIDENCE) -> tuple[ChunkPlaces, ...]:
    """The chunks of an item whose evidence may stand anywhere in them."""
    chunks = []
    first = 0
    for number, anchor in enumerate(details.anchors):
        if not is_somewhere(anchor):
            continue
        text = None
        places: Merged = []
        if anchor.spans:
            piece = of_unit(anchor.spans, anchor.spans[0].unit)
            places = places_of(piece, least=least, text=anchor.quote)
        elif anchor.quote is not None:
            text = normalised(anchor.quote)
            places = places_of([(0, _bytes(text, len(text)))], least=least)
        chunks.append(ChunkPlaces(number, anchor, first, places, text))
        first += len(places)
    return tuple(chunks)


def place_runs(
    chunk: ChunkPlaces,
    hits: Sequence[RankedPlace],
    first: Mapping[str, int],
    *,
    single: bool = False,
) -> list[tuple[int, int]]:
    """The ranks of the places of a chunk, as runs; `first` has the first rank of each id."""
    covers = [(cover.rank, cover.spans) for cover in chunk_covers(chunk, hits, first)]
    return runs_of(ranks_of_places(chunk.places, covers, single=single))


class ChunkCover(NamedTuple):
    """What a hit covers of the document of a chunk, or of its text; `size` is that of the hit."""

    rank: int
    id: str
    spans: Merged
    size: int


def chunk_covers(
    chunk: ChunkPlaces, hits: Sequence[RankedPlace], first: Mapping[str, int]
) -> list[ChunkCover]:
    """What hits cover of a chunk with places, in the order of their ranks.

    A hit with its own id covers all of it, unless it says of itself that it lies elsewhere.
    """
    anchor = chunk.anchor
    covers: list[ChunkCover] = []
    if chunk.text is not None:
        whole = [(0, _bytes(chunk.text, len(chunk.text)))]
        for rank, hit in hits:
            if first.get(hit.id, rank) != rank:
                continue
            if hit.id == anchor.id and not hit.text:
                covers.append(ChunkCover(rank, hit.id, whole, whole[0][1]))
            elif hit.may_quote(anchor.doc):
                shared = shared_text(chunk.text, hit.text)
                if shared:
                    covers.append(ChunkCover(rank, hit.id, shared, _bytes(hit.text, len(hit.text))))
        return covers
    unit = anchor.spans[0].unit
    for rank, hit in hits:
        if hit.spans and anchor.doc in hit.docs:
            refuse_mixed(hit, unit)
            spans = of_unit(hit.spans, unit)
            covers.append(ChunkCover(rank, hit.id, spans, size(spans)))
        elif hit.id == anchor.id and not hit.spans:
            piece = of_unit(anchor.spans, unit)
            covers.append(ChunkCover(rank, hit.id, piece, size(piece)))
    return covers


def own_chunk(
    chunk: ChunkPlaces, hits: Sequence[RankedPlace], first: Mapping[str, int]
) -> int | None:
    """Whether a hit is the chunk by its id: 1, or -1 if it lies elsewhere; None where none is."""
    rank = None if chunk.anchor.id is None else first.get(chunk.anchor.id)
    if rank is None:
        return None
    hit = next((hit for at, hit in hits if at == rank), None)
    if hit is None or not hit.spans or not chunk.anchor.spans:
        return 1
    unit = chunk.anchor.spans[0].unit
    same = of_unit(hit.spans, unit) == of_unit(chunk.anchor.spans, unit)
    return 1 if same and chunk.anchor.doc in hit.docs else -1


def is_whole(chunk: ChunkPlaces, cover: ChunkCover) -> bool:
    """Whether a hit is the very chunk, under whatever name."""
    if chunk.text is not None:
        length = _bytes(chunk.text, len(chunk.text))
        return cover.size == length and cover.spans == [(0, length)]
    piece = of_unit(chunk.anchor.spans, chunk.anchor.spans[0].unit)
    return cover.size == size(piece) and cover.spans == piece


def touching(chunk: ChunkPlaces, covers: Sequence[ChunkCover]) -> list[ChunkCover]:
    """The covers that have something in common with a chunk, cut to it."""
    if chunk.text is not None:
        return [cover for cover in covers if cover.spans]
    piece = of_unit(chunk.anchor.spans, chunk.anchor.spans[0].unit)
    cut = (cover._replace(spans=_shared(cover.spans, piece)) for cover in covers)
    return [cover for cover in cut if cover.spans]


def possible_ranks(
    chunk: ChunkPlaces, hits: Sequence[RankedPlace], first: Mapping[str, int]
) -> list[tuple[int, bool]]:
    """The ranks at which a chunk of unknown place may be found, and whether it surely is there.

    A hit with its own id holds all of it, so that nothing behind it can matter. Where no rank is
    sure, the chunk may not be found at all.
    """
    own_id = (chunk.anchor.id or "").removeprefix(EFFECTIVE_PREFIX)
    doc = chunk.anchor.doc
    sure = first.get(own_id)
    ranks = [rank for rank, hit in hits if doc == ANYWHERE or doc in hit.stated]
    ranks = [rank for rank in ranks if sure is None or rank < sure][:_MOST_POSSIBLE]
    return [*((rank, False) for rank in ranks), *([] if sure is None else [(sure, True)])]
