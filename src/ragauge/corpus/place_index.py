"""The index of places: where in a corpus a text stands, found without reading the corpus again.

The texts of all documents are written to one file, as they are and as `quotes.normalised` leaves
them, with every 16 bytes at a distance of 24 in a sorted table. A run of 39 bytes holds such 16
bytes whole, wherever it begins, so 24 steps of binary search find every place of a text. The file
is made once; worker processes map it into memory and share it (decision 0046).
"""

from __future__ import annotations

import mmap
import re
import struct
import unicodedata
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from functools import cached_property
from typing import BinaryIO, NamedTuple

import msgspec
from msgspec import Struct

from ragauge.corpus.document_names import DocumentNames
from ragauge.quotes import clusters, normalised

LEAST_RUN = 40
"""Characters that a part of a text must have to say where it stands."""

_GRAM, _STEP = 16, 24
_SURE = _GRAM + _STEP - 1  # bytes that hold a whole entry of the table, wherever they begin
_FEW = 8  # entries that are looked at without searching for a rarer one
_MOST_TRIES = 4096  # entries that are compared before the text is searched from end to end
_MOST_PLACES = 64  # places of the middle of a text, beyond which it says nothing
_ODD = 0x9E3779B97F4A7C15, 0xC2B2AE3D27D4EB4F  # any two odd numbers: they spread the 16 bytes
_WORD64 = (1 << 64) - 1
_PAIR = struct.Struct("<QQ")
_CHARACTERS_APART = 512

# White space that does not become a blank of the same size: a run, or one of several bytes.
_RESIZED = re.compile(r"\s{2,}|[^\S\t\n\x0b\x0c\r\x1c-\x1f ]")
_WORD = re.compile(r"\S+")
_END = b"\n"  # stands between documents: no normalised text has a line end


class TextPlace(NamedTuple):
    """Bytes of a document."""

    doc: str
    start: int
    end: int


class TextMatch(NamedTuple):
    """Where a text stands: in one place, in none, or in several (`ambiguous`).

    `whole`: all of it, not just its longest run.
    """

    place: TextPlace | None = None
    whole: bool = False
    ambiguous: bool = False


class _IndexedDocument(Struct, frozen=True, array_like=True):
    """A document: where its text, its normalised text and its steps are in the file."""

    name: str
    text: tuple[int, int]
    folded: tuple[int, int]
    steps: tuple[int, int]
    ascii: bool


class _Header(Struct, frozen=True):
    documents: list[_IndexedDocument]
    folded: int
    steps: int
    keys: int
    positions: int
    entries: int
    step_count: int


def write_place_index(file: BinaryIO, texts: Iterable[tuple[str, bytes]]) -> None:
    """Write the index of documents, each a name and its UTF-8 text, to an empty file."""
    import numpy as np

    documents: list[_IndexedDocument] = []
    folded_texts: list[bytes] = []
    steps: list[int] = []
    at = folded_at = 0
    for name, text in texts:
        folded, mine = fold_text(text.decode("utf-8", "replace"))
        file.write(text)
        documents.append(
            _IndexedDocument(
                name,
                (at, at + len(text)),
                (folded_at, folded_at + len(folded)),
                (len(steps) // 2, (len(steps) + len(mine)) // 2),
                text.isascii(),
            )
        )
        at += len(text)
        folded_at += len(folded) + len(_END)
        folded_texts.append(folded)
        steps += mine
    blob = _END.join(folded_texts)
    count = max(0, (len(blob) - _GRAM) // _STEP + 1) if len(blob) >= _GRAM else 0
    padded = np.frombuffer(blob.ljust(count * _STEP, _END), np.uint8)[: count * _STEP]
    pairs = np.ascontiguousarray(padded.reshape(count, _STEP)[:, :_GRAM]).view("<u8")
    with np.errstate(over="ignore"):
        keys = pairs[:, 0] * np.uint64(_ODD[0]) + pairs[:, 1] * np.uint64(_ODD[1])
    order = np.argsort(keys, kind="stable")  # places of equal bytes stay in their order
    parts = (
        blob,
        np.array(steps, "<u8").tobytes(),
        keys[order].astype("<u8").tobytes(),
        (order * _STEP).astype("<u8").tobytes(),
    )
    starts = []
    for part in parts:
        file.write(bytes(-at % 8))
        at += -at % 8
        starts.append(at)
        file.write(part)
        at += len(part)
    folded_start, steps_start, keys_start, positions_start = starts
    header = msgspec.msgpack.encode(
        _Header(
            documents=documents,
            folded=folded_start,
            steps=steps_start,
            keys=keys_start,
            positions=positions_start,
            entries=count,
            step_count=len(steps) // 2,
        )
    )
    file.write(header)
    file.write(struct.pack("<Q", len(header)))
    file.flush()


def fold_text(text: str) -> tuple[bytes, list[int]]:
    """The normalised text in UTF-8, and its steps: pairs of a place in it and one in the text.

    From one step to the next both count alike; a step stands wherever they stop doing so.
    """
    if unicodedata.is_normalized("NFC", text):
        return _fold_blanks(text)
    folded: list[bytes] = []
    steps: list[int] = []
    at = folded_at = end = 0
    for word in _WORD.finditer(text):
        at += _size(text[end : word.start()])
        if folded:
            folded_at += 1
        end = word.end()
        parts: Sequence[str] = (word[0],)
        if not unicodedata.is_normalized("NFC", word[0]):
            parts = list(clusters(word[0]))
        pieces = []
        for part in parts:
            piece = unicodedata.normalize("NFC", part)
            steps += (folded_at, at)
            pieces.append(piece)
            if len(piece) > 1 and piece != part:  # all but its first letter stand at its end
                steps += (folded_at + _size(piece[0]), at + _size(part))
            folded_at += _size(piece)
            at += _size(part)
        steps += (folded_at, at)
        folded.append("".join(pieces).encode())
    return b" ".join(folded), steps


def _fold_blanks(text: str) -> tuple[bytes, list[int]]:
    body = text.strip()
    at = _size(text[: len(text) - len(text.lstrip())])
    steps = [0, at]
    folded_at = end = 0
    for blank in _RESIZED.finditer(body):
        size = _size(body[end : blank.start()])
        folded_at += size + 1
        at += size + _size(blank[0])
        end = blank.end()
        steps += (folded_at, at)
    return " ".join(body.split()).encode(), steps


def _size(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass"))


class PlaceIndex:
    """Finds places in the documents of an index file, which stays mapped into memory."""

    def __init__(self, path: str) -> None:
        with open(path, "rb") as file:
            data = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        self._data = data
        (length,) = struct.unpack("<Q", data[-8:])
        header = msgspec.msgpack.decode(data[-8 - length : -8], type=_Header)
        view = memoryview(data)
        self._folded_at = header.folded
        self._steps = view[header.steps : header.steps + header.step_count * 16].cast("Q")
        self._keys = view[header.keys : header.keys + header.entries * 8].cast("Q")
        self._positions = view[header.positions : header.positions + header.entries * 8].cast("Q")
        self._documents = header.documents
        self._by_name = {document.name: document for document in header.documents}
        self._begins = [document.folded[0] for document in header.documents]
        self._size = header.documents[-1].folded[1] if header.documents else 0
        self._characters: dict[str, list[int]] = {}

    def __contains__(self, doc: object) -> bool:
        return doc in self._by_name

    @cached_property
    def names(self) -> DocumentNames:
        """The names of the documents."""
        return DocumentNames([document.name for document in self._documents])

    def text(self, doc: str, start: int, end: int) -> str:
        """The text of some bytes of a document."""
        first, last = self._by_name[doc].text
        return self._data[first + start : min(first + end, last)].decode("utf-8", "replace")

    def size(self, doc: str) -> int:
        """How many bytes a document has."""
        first, last = self._by_name[doc].text
        return last - first

    def to_bytes(self, doc: str, start: int, end: int) -> tuple[int, int] | None:
        """Characters of a document as bytes; None where it does not have them."""
        document = self._by_name[doc]
        if document.ascii:
            return (start, end) if end <= self.size(doc) else None
        first, last = (self._byte_of(document, place) for place in (start, end))
        return None if first is None or last is None else (first, last)

    def _byte_of(self, document: _IndexedDocument, character: int) -> int | None:
        """The byte at which a character begins: counted from the last one that is noted."""
        noted = self._characters.get(document.name)
        if noted is None:
            text = self._data[slice(*document.text)].decode("utf-8", "replace")
            parts = (
                text[at : at + _CHARACTERS_APART] for at in range(0, len(text), _CHARACTERS_APART)
            )
            noted = [0]
            for part in parts:
                noted.append(noted[-1] + _size(part))
            self._characters[document.name] = noted
        number, rest = divmod(character, _CHARACTERS_APART)
        if number >= len(noted):
            return None
        start = document.text[0] + noted[number]
        end = min(start + 4 * rest, document.text[1])
        part = self._data[start:end].decode("utf-8", "replace")[:rest]
        return noted[number] + _size(part) if len(part) == rest else None

    def find(self, text: str, doc: str | None = None) -> TextMatch:
        """The place of a text in a document, or in the corpus: whole, else its longest run."""
        wanted = normalised(text)
        if not wanted:
            return TextMatch()
        needle = wanted.encode("utf-8", "surrogatepass")
        low, high = (0, self._size) if doc is None else self._by_name[doc].folded
        places = self._whole_places(needle, low, high)
        if places:
            if len(places) > 1:
                return TextMatch(ambiguous=True)
            return TextMatch(self._extent(places[0], places[0] + len(needle)), whole=True)
        if len(wanted) < LEAST_RUN:
            return TextMatch()
        return self._longest_run(wanted, needle, low, high)

    def _whole_places(self, needle: bytes, low: int, high: int) -> list[int]:
        """The first two places of a text."""
        places = None
        if len(needle) >= _SURE:
            places = self._places(needle, low, high, most=2)
        if places is None:
            places = []
            begin = self._folded_at
            search = re.compile(re.escape(needle)).search
            match = search(self._data, begin + low, begin + high)
            while match is not None and len(places) < 2:
                places.append(match.start() - begin)
                match = search(self._data, match.start() + 1, begin + high)
        return places

    def _places(self, needle: bytes, low: int, high: int, *, most: int) -> list[int] | None:
        """Places of at least 39 bytes; None where so many look alike that the table is no help."""
        places: list[int] = []
        tries = 0
        for first in range(_STEP):
            entries, at = self._entries(needle, first, low, high), first
            if len(entries) > _FEW:
                # All entries of one alignment are there or the text is not: take the rarest.
                for further in range(first + _STEP, len(needle) - _GRAM + 1, _STEP):
                    rarer = self._entries(needle, further, low, high)
                    if len(rarer) < len(entries):
                        entries, at = rarer, further
                    if len(entries) <= _FEW:
                        break
            for entry in entries:
                tries += 1
                if tries > _MOST_TRIES:
                    return None
                start = self._positions[entry] - at
                if low <= start <= high - len(needle) and self._is_at(needle, start):
                    places.append(start)
                    if len(places) >= most:
                        return places
        return places

    def _is_at(self, needle: bytes, start: int) -> bool:
        begin = self._folded_at + start
        if self._data[begin : begin + _SURE] != needle[:_SURE]:
            return False
        return self._data[begin : begin + len(needle)] == needle

    def _entries(self, needle: bytes, at: int, low: int, high: int) -> range:
        """The entries of the table for 16 bytes of a text that lie in a part of the corpus."""
        one, other = _PAIR.unpack_from(needle, at)
        key = (one * _ODD[0] + other * _ODD[1]) & _WORD64
        first = bisect_left(self._keys, key)
        if first == len(self._keys) or self._keys[first] != key:
            return range(0)
        last = bisect_right(self._keys, key, first)
        if low or high < self._size:
            first = bisect_left(self._positions, low, first, last)
            last = bisect_left(self._positions, high, first, last)
        return range(first, last)

    def _longest_run(self, wanted: str, needle: bytes, low: int, high: int) -> TextMatch:
        """The longest run of a text that stands in one place, if it is at least half of it."""
        diagonals = self._diagonals(wanted, needle, low, high)
        if diagonals is None:
            return TextMatch(ambiguous=True)
        best: list[tuple[int, int]] = []
        longest = 0
        for diagonal, at in diagonals:
            start, end = self._run(needle, at, diagonal, low, high)
            run = needle[start:end].decode("utf-8", "surrogatepass")
            length = len(run.strip())
            if length < LEAST_RUN or 2 * length < len(wanted) or length < longest:
                continue
            place = diagonal + start + len(run) - len(run.lstrip()), diagonal + end
            place = place[0], place[1] - len(run) + len(run.rstrip())
            best = [place] if length > longest else [*best, place]
            longest = length
        if len(best) != 1:
            return TextMatch(ambiguous=bool(best))
        return TextMatch(self._extent(*best[0]))

    def _diagonals(
        self, wanted: str, needle: bytes, low: int, high: int
    ) -> Iterable[tuple[int, int]] | None:
        """Where a text may begin, each with a place in it that agrees; None if too many may.

        A run of half of a text has its middle in it, so it has an entry of the table that begins
        less than 39 bytes before the middle or behind it.
        """
        middle = _size(wanted[: (len(wanted) - 1) // 2])
        first = max(0, middle - _SURE)
        last = min(len(needle) - _GRAM, middle + _SURE + 4)
        seeds: dict[int, int] = {}
        for at in range(first, last + 1):
            for entry in self._entries(needle, at, low, high):
                seeds.setdefault(self._positions[entry] - at, at)
                if len(seeds) > _MOST_PLACES:
                    return self._rare_diagonals(wanted, low, high)
        return seeds.items()

    def _rare_diagonals(self, wanted: str, low: int, high: int) -> Iterable[tuple[int, int]] | None:
        """The same, where the bytes around the middle are common.

        A run of half of a text has the quarter before its middle in it, or the one behind it.
        """
        quarter, middle = len(wanted) // 4, (len(wanted) + 1) // 2
        seeds: dict[int, int] = {}
        for first in (middle - quarter, middle):
            part = wanted[first : first + quarter].encode("utf-8", "surrogatepass")
            places = None
            if len(part) >= _SURE:
                places = self._places(part, low, high, most=_MOST_PLACES)
            if places is None or len(places) >= _MOST_PLACES:
                return None
            at = _size(wanted[:first])
            for place in places:
                seeds.setdefault(place - at, at)
        return seeds.items()

    def _run(self, needle: bytes, at: int, diagonal: int, low: int, high: int) -> tuple[int, int]:
        """How far a text and the corpus agree around a place of the text; whole characters."""
        begin = self._folded_at + diagonal
        first = max(0, low - diagonal)
        last = min(len(needle), high - diagonal)
        behind = _common(needle[at:last], self._data[begin + at : begin + last])
        before = _common(needle[first:at][::-1], self._data[begin + first : begin + at][::-1])
        start, end = at - before, at + behind
        while start < end and needle[start] & 0xC0 == 0x80:
            start += 1
        while end < len(needle) and end > start and needle[end] & 0xC0 == 0x80:
            end -= 1
        return start, end

    def _extent(self, start: int, end: int) -> TextPlace:
        """The bytes of a document for those of its normalised text."""
        document = self._documents[bisect_right(self._begins, start) - 1]
        first = document.folded[0]
        return TextPlace(
            document.name,
            self._original(document, start - first),
            self._original(document, end - first),
        )

    def _original(self, document: _IndexedDocument, place: int) -> int:
        first, last = document.steps
        number = bisect_right(range(first, last), place, key=lambda step: self._steps[2 * step])
        step = first + number - 1
        at = self._steps[2 * step + 1] + place - self._steps[2 * step]
        return at if step + 1 == last else min(at, self._steps[2 * step + 3])


def _common(one: bytes, other: bytes) -> int:
    """The length of what two texts begin with alike; every byte is compared about once."""
    low, high = 0, min(len(one), len(other))
    if one[:high] == other[:high]:
        return high
    high -= 1
    while low < high:
        half = (low + high + 1) // 2
        if one[low:half] == other[low:half]:
            low = half
        else:
            high = half - 1
    return low
