"""Unread fields: what stands in gold and traces and nothing reads, and what it may be meant for.

They are looked for in a sample, read apart from the rows that are scored: a misspelt field is in
every row, or in a part of the file. So the fast path pays nothing, and the result is the same for
any number of workers.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any, Literal

import msgspec
from msgspec import Struct

from ragauge.files.ranges import Source, plan, read_rows
from ragauge.formats.gold import DRAFT, MIGRATED_TO, PREVIOUS
from ragauge.model.field_spellings import (
    ANSWER_SPELLINGS,
    GOLD_NAMES,
    GOLD_SPELLINGS,
    HIT_SPELLINGS,
    IMPORT_NAMES,
    INDEX_NAMES,
    PERF_SPELLINGS,
    TRACE_NAMES,
    TRACE_SPELLINGS,
)
from ragauge.spans import PLACE_NAMES
from ragauge.text import plain

Side = Literal["gold", "trace"]

FIRST_ROWS = 1000
"""Rows at the head of a file that are looked at."""
SPREAD_ROWS = 1000
"""Rows that are looked at in what is behind them, all over the file."""
_LONGEST_ROW = 1 << 20
"""A longer row is not looked at: a sample must stay cheap."""
_LONGEST_NAME = 60
_MOST_NAMES = 1000
"""Different names of a file; where ids are names, more of them say nothing new."""

# Read of a row, or left there by `ragauge` itself, and no spelling of a field. `ts` and `ok` of the
# source documents, and `k`, which targets write, are fields that a score has no use for.
_ALSO_READ: Mapping[Side, frozenset[str]] = {
    "gold": frozenset((DRAFT, MIGRATED_TO)),
    "trace": frozenset(("ts", "ok", "k", *IMPORT_NAMES)),
}
_HIT_NAMES = frozenset(name for names in HIT_SPELLINGS.values() for name in names)
_HIT_NAMES |= {*PLACE_NAMES, *INDEX_NAMES, "id_prev"}
_ANSWER_NAMES = frozenset(name for names in ANSWER_SPELLINGS.values() for name in names)
_LIST_NAMES = frozenset(TRACE_SPELLINGS["hits"])
_PERF_NAMES = frozenset(name for names in PERF_SPELLINGS.values() for name in names)

_decode_row = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode
_decode_list = msgspec.json.Decoder(list[msgspec.Raw]).decode
_NOT_A_ROW = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)
_NULL = msgspec.Raw(b"null")


class UnreadField(Struct, frozen=True):
    """A field that nothing reads: its path, in how many rows it is, and what it may be meant for.

    `meant` is None also where those rows have the field that it looks like.
    """

    name: str
    rows: int
    meant: str | None = None


class FieldUse(Struct, frozen=True, kw_only=True):
    """The fields of a file, as far as it was looked at: those that are read, and the others."""

    side: Side
    looked: int
    unread: tuple[UnreadField, ...] = ()
    read: frozenset[str] = frozenset()

    @property
    def is_mute(self) -> bool:
        """Whether no row says more than which question it is about, by names that are read."""
        return self.looked > 0 and self.read <= _WHICH_QUESTION


_WHICH_QUESTION = frozenset(("qid", "question", "paraphrase", "seed", "turn", "index"))


def _fields_by_name(side: Side) -> dict[str, str]:
    spellings = GOLD_SPELLINGS if side == "gold" else TRACE_SPELLINGS
    fields = {name: field for field, names in spellings.items() for name in names}
    if side == "trace":
        fields |= {"retrieval": "hits"} | dict.fromkeys(INDEX_NAMES, "index")
    return fields


_FIELD_OF: Mapping[Side, Mapping[str, str]] = {
    "gold": _fields_by_name("gold"),
    "trace": _fields_by_name("trace"),
}
_NAMES: Mapping[Side, Collection[str]] = {"gold": GOLD_NAMES, "trace": TRACE_NAMES}


def field_use(source: Source, side: Side, *, ignore: Collection[str] = ()) -> FieldUse:
    """Look at the fields of a sample of a file's rows; `ignore` are names that may be there."""
    counter = FieldCounter(side, ignore)
    for data in sampled_rows(source):
        try:
            row = _decode_row(data)
        except _NOT_A_ROW:
            continue  # an error elsewhere, with its line
        counter.add({name: raw for name, raw in row.items() if raw != _NULL})
    return counter.use()


def field_use_of_extra(
    extras: Sequence[Mapping[str, Any]], side: Side, *, ignore: Collection[str] = ()
) -> FieldUse:
    """The same of rows in memory, of which only the fields are there that nothing reads."""
    counter = FieldCounter(side, ignore)
    for place in _spread(len(extras)):
        counter.add(extras[place])
    return counter.use()


def unread_notes(uses: Iterable[FieldUse]) -> list[str]:
    """A sentence on each near miss, and one on all other fields that nothing reads."""
    notes = []
    others = 0
    for use in uses:
        for field in use.unread:
            if field.meant is None:
                others += 1
                continue
            many = "every" if field.rows == use.looked else f"{field.rows:,} of {use.looked:,}"
            rows = "row" if many == "every" else "rows"
            notes.append(
                f"`{_shown(field.name)}` is in {many} {use.side} {rows} looked at and is not "
                f"read: did you mean `{field.meant}`?"
            )
    if others:
        what, pronoun = ("field is", "it") if others == 1 else ("fields are", "them")
        notes.append(
            f"{others:,} other {what} not read: `ragauge validate --fields` lists {pronoun}"
        )
    return notes


def listed_fields(use: FieldUse) -> list[str]:
    """All fields of a file that nothing reads, a line each."""
    return [
        f"`{_shown(field.name)}` in {field.rows:,} of {use.looked:,} {use.side} rows looked at"
        + (f"; did you mean `{field.meant}`?" if field.meant is not None else "")
        for field in use.unread
    ]


def _shown(name: str) -> str:
    return plain(name if len(name) <= _LONGEST_NAME else f"{name[: _LONGEST_NAME - 3]}...")


class FieldCounter:
    """Counts the fields of rows, each under its path."""

    def __init__(self, side: Side, ignore: Collection[str]) -> None:
        self.side: Side = side
        self.ignore = frozenset(ignore)
        self.names = frozenset(_NAMES[side])
        self.field_of = _FIELD_OF[side]
        self.looked = 0
        self.read: set[str] = set()
        self.unread: dict[str, int] = {}
        self.meant: dict[str, str] = {}

    def use(self) -> FieldUse:
        """What was counted, what is in most rows first."""
        unread = [
            UnreadField(name, rows, self.meant.get(name)) for name, rows in self.unread.items()
        ]
        unread.sort(key=lambda field: (-field.rows, field.name))
        return FieldUse(
            side=self.side,
            looked=self.looked,
            unread=tuple(unread),
            read=frozenset(self.read),
        )

    def add(self, row: Mapping[str, Any]) -> None:
        """Count the fields of a row whose values are not null."""
        self.looked += 1
        here = {self.field_of[name] for name in row if name in self.field_of}
        self.read |= here
        for name, raw in row.items():
            if name in self.names:
                if self.side == "trace" and isinstance(raw, msgspec.Raw):
                    self._inside(name, raw)
            elif not self._is_expected(name):
                meant = near_name(name, self.names)
                if meant is not None and self.field_of.get(meant, meant) in here:
                    meant = None
                self._count(name, meant)

    def _is_expected(self, name: str) -> bool:
        if name in self.ignore or name in _ALSO_READ[self.side]:
            return True
        # What `gold migrate` leaves in an item is no mistake of its author.
        return self.side == "gold" and name.removesuffix(PREVIOUS) in self.names

    def _count(self, path: str, meant: str | None) -> None:
        if path not in self.unread and len(self.unread) >= _MOST_NAMES:
            return
        self.unread[path] = self.unread.get(path, 0) + 1
        if meant is not None:
            self.meant.setdefault(path, meant)

    def _inside(self, name: str, raw: msgspec.Raw) -> None:
        """Count the fields of the first hit of a row, of its answer and of its times."""
        field = self.field_of[name]
        if field == "answer":
            self._count_inside(_object(raw), name, _ANSWER_NAMES)
        elif field == "perf":
            self._count_inside(_object(raw), name, _PERF_NAMES)
        elif field == "hits":
            nested = _object(raw) if name == "retrieval" else {}
            self._count_inside(nested, name, _LIST_NAMES)
            for inner_name in _LIST_NAMES.intersection(nested):
                self._first_hit(f"{name}.{inner_name}", nested[inner_name])
            if not nested:
                self._first_hit(name, raw)

    def _first_hit(self, path: str, raw: msgspec.Raw) -> None:
        try:
            hits = _decode_list(raw)
        except _NOT_A_ROW:
            return  # another type than is read: an error elsewhere
        if hits:
            self._count_inside(_object(hits[0]), f"{path}[]", _HIT_NAMES)

    def _count_inside(
        self, fields: Mapping[str, msgspec.Raw], path: str, names: frozenset[str]
    ) -> None:
        for name, raw in fields.items():
            inner = f"{path}.{name}"
            if name not in names and raw != _NULL and inner not in self.ignore:
                meant = near_name(name, names)
                there = meant is None or meant in fields
                self._count(inner, None if there else f"{path}.{meant}")


def _object(raw: msgspec.Raw) -> Mapping[str, msgspec.Raw]:
    """The fields of an object; none of what is no object."""
    try:
        return _decode_row(raw)
    except _NOT_A_ROW:
        return {}


def sampled_rows(source: Source) -> Iterator[bytes]:
    """The first rows of a file, and rows spread over what is behind them, in file order."""
    if source.layout in ("lines", "object", "array") and source.size:
        yield from _sampled_lines(source) if source.layout == "lines" else _sampled_parts(source)


def _sampled_lines(source: Source) -> Iterator[bytes]:
    with open(source.path, "rb") as file:
        file.seek(source.start)
        rows = 0
        while rows < FIRST_ROWS and (row := file.readline(_LONGEST_ROW)):
            rows += 1
            if row.strip():
                yield row
        start = last = file.tell()
        if start >= source.size:
            return
        for number in range(SPREAD_ROWS):
            position = start + (source.size - start) * number // SPREAD_ROWS
            if position < last:
                continue  # inside of the row that was looked at last
            if position > start:  # the line that begins at or behind the position
                file.seek(position - 1)
                file.readline(_LONGEST_ROW)
            else:
                file.seek(position)
            row = file.readline(_LONGEST_ROW)
            last = file.tell()
            if row.strip():
                yield row


def _sampled_parts(source: Source) -> Iterator[bytes]:
    """Of an array its first ranges as a whole, and some elements of others."""
    parts = plan(source)
    rows = 0
    number = 0
    rest: list[bytes] = []
    while number < len(parts) and rows < FIRST_ROWS:
        data = read_rows(source, parts[number]).data
        yield from data[: FIRST_ROWS - rows]
        rest = data[FIRST_ROWS - rows :]
        rows += len(data)
        number += 1
    left = len(parts) - number + bool(rest)
    if not left:
        return
    most_parts = min(left, SPREAD_ROWS)
    of_each = SPREAD_ROWS // most_parts
    yield from _evenly(rest, of_each if left <= SPREAD_ROWS else 1)
    behind = parts[number:]
    for part in _evenly(behind, most_parts - bool(rest)):
        yield from _evenly(read_rows(source, part).data, of_each)


def _evenly(things: Sequence[Any], most: int) -> Iterator[Any]:
    """As many of some things, evenly spread; all if they are fewer."""
    most = min(most, len(things))
    return (things[len(things) * number // most] for number in range(most))


def _spread(size: int) -> Iterator[int]:
    """The places that a sample of rows in memory takes."""
    yield from range(min(size, FIRST_ROWS))
    yield from _evenly(range(FIRST_ROWS, size), SPREAD_ROWS)


# --- near misses ---

_DOUBLED = re.compile(r"(.)\1+")
_WORDS = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+|[^\W\d_a-zA-Z]+")


@lru_cache(maxsize=4096)
def near_name(name: str, names: frozenset[str]) -> str | None:
    """The name among `names` that another one was probably meant to be; None if none is near.

    Near is what differs in case and in how words are joined, in singular and plural, in the order
    of words, or in a letter or two, where the name is long enough not to be another word.
    """
    if not name or len(name) > _LONGEST_NAME:
        return None
    mine = _NameForms(name)
    ranked = sorted(
        (rank, candidate)
        for candidate in names
        if (rank := mine.distance(_forms(candidate))) is not None
    )
    return ranked[0][1] if ranked else None


class _NameForms:
    """A name as it is compared: its letters, its words in singular, and those in order."""

    def __init__(self, name: str) -> None:
        words = [word.lower() for word in _WORDS.findall(name)]
        singular = [_singular(word) for word in words]
        self.plain = name.lower()
        self.letters = "".join(words)
        self.singular = "".join(singular)
        self.in_order = tuple(sorted(singular))

    def distance(self, other: _NameForms) -> tuple[int, int] | None:
        """How another name differs, and by how many letters; None where it is another word."""
        if not self.letters or not other.letters:
            return None
        for rank, form in enumerate(("plain", "letters", "singular", "in_order")):
            if getattr(self, form) == getattr(other, form):
                return rank, 0
        if _undoubled(self.letters) == _undoubled(other.letters):
            return 4, 1  # `qidd`: too short for any other slip
        shorter = min(len(self.letters), len(other.letters))
        most = 2 if shorter >= 8 else 1 if shorter >= 5 else 0
        edits = _edits(self.letters, other.letters, most)
        return None if edits is None else (4, edits)


@lru_cache(maxsize=1024)
def _forms(name: str) -> _NameForms:
    return _NameForms(name)


def _undoubled(letters: str) -> str:
    return _DOUBLED.sub(r"\1", letters)


def _singular(word: str) -> str:
    if len(word) > 4 and word.endswith("ies"):
        return f"{word[:-3]}y"
    return word[:-1] if len(word) > 2 and word.endswith("s") and not word.endswith("ss") else word


def _edits(one: str, other: str, most: int) -> int | None:
    """How many letters are added, lost, changed or swapped with the next; None for more."""
    if abs(len(one) - len(other)) > most:
        return None
    before: list[int] = []
    row = list(range(len(other) + 1))
    for i, letter in enumerate(one, 1):
        above, row = row, [i]
        for j, wanted in enumerate(other, 1):
            cost = min(above[j] + 1, row[j - 1] + 1, above[j - 1] + (letter != wanted))
            if i > 1 and j > 1 and letter == other[j - 2] and one[i - 2] == wanted:
                cost = min(cost, before[j - 2] + 1)
            row.append(cost)
        before = above
    return row[-1] if row[-1] <= most else None
