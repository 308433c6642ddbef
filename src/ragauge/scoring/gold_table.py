"""The gold set of a run as a table: its questions, their evidence, and the slices they are in."""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import pairwise
from typing import Any, NamedTuple
from zlib import crc32

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from ragauge.errors import MAX_REPORTED, Place, Problem, RagaugeError
from ragauge.gold.findings import has_evidence
from ragauge.ids import section_of, type_of
from ragauge.metrics.columns import Bools, Column, GoldColumns, Ints
from ragauge.model.chunk import Chunk
from ragauge.model.gold import GoldItem
from ragauge.model.options import Options
from ragauge.model.profile import JoinRules, Profile
from ragauge.scoring.evidence_pieces import (
    EvidencePieces,
    GoldDetails,
    documents_of,
    gold_details_of,
    pieces_of,
)
from ragauge.scoring.join import gold_columns
from ragauge.scoring.packed_texts import BlockWriter, PackedTexts, PackedTextWriter, encoded
from ragauge.scoring.trace_columns import (
    ASKED,
    EVIDENCE,
    NEEDLE,
    QID,
    QUESTION,
    GoldKeys,
    as_compared,
)
from ragauge.text import phrase_needles, plain, question_key, short_claims, substring_needles

_MOST_NAMED = 5
SLICES = ("type", "tag", "section", "document", "language", "difficulty")
"""The dimensions by which questions are grouped."""


class UnmatchedClaims(Struct, frozen=True):
    """Claims that can never match, because they are too short: how many, and the first of them."""

    count: int
    first: tuple[str, ...]


class GoldLabels(Struct, frozen=True, kw_only=True):
    """What gold items say themselves, before a profile decides what they mean by silence.

    `expecting` items say whether there is an answer; those `to_answer` do not say that there is
    none, and `without_evidence` of these name nothing that an answer could be found in.
    """

    expecting: int
    to_answer: int
    without_evidence: int


class GoldTable(Struct, frozen=True, kw_only=True):
    """The questions of a run in file order; `slices` holds for each dimension who is in which part.

    `identity` orders questions by what they are, so that the order of the file never shows. The
    last ones, `beside` of them, are not measured: they are there for the traces that are theirs.
    `questions` has the question and the paraphrases of each, unless traces are joined by them.
    """

    read: int
    qids: Sequence[str]
    turns: Sequence[int | None]
    lines: Sequence[int | None]
    identity: Ints
    columns: GoldColumns
    keys: GoldKeys
    by_turn: dict[str, dict[int, int]]
    paraphrases: dict[int, dict[str, int]]
    cluster: Ints | None
    slices: Mapping[str, Mapping[str, Column]]
    chunks: dict[str, Chunk] = {}
    beside: int = 0
    unmatched_claims: UnmatchedClaims | None = None
    labels: GoldLabels | None = None

    @property
    def measured(self) -> int:
        """How many questions are measured; they come first."""
        return len(self.qids) - self.beside

    def only_measured(self) -> GoldTable:
        """The table without the questions that are not measured, for reports."""
        if not self.beside:
            return self
        end = self.measured
        return replace(
            self,
            qids=self.qids[:end],
            turns=self.turns[:end],
            lines=self.lines[:end],
            identity=self.identity[self.identity < end],
            columns=self.columns.first(end),
            cluster=None if self.cluster is None else self.cluster[:end],
            beside=0,
        )

    def name(self, question: int) -> str:
        """How a question is called in messages."""
        turn = self.turns[question]
        return self.qids[question] if turn is None else f"{self.qids[question]} turn {turn}"


def gold_table(
    items: Sequence[GoldItem],
    profile: Profile,
    options: Options,
    *,
    name: str,
    chunks: dict[str, Chunk] | None = None,
    slices: bool = True,
    beside: Sequence[GoldItem] = (),
) -> GoldTable:
    """Make the table of a gold set under a profile, with its slices unless they are not wanted.

    `beside` are items of the same gold set that are not measured: their traces are not unknown,
    and are still the context of later turns.
    """
    unique = unique_items(items, profile, name)
    builder = GoldTableBuilder(profile, options, name=name, chunks=chunks, slices=slices)
    for item in unique:
        builder.add(item)
    for item in _others(beside, unique, profile.join):
        builder.add(item, measured=False)
    return builder.table(read=len(items))


def slice_keys(
    items: Sequence[GoldItem],
    profile: Profile,
    options: Options,
    *,
    name: str,
    chunks: Mapping[str, Chunk] | None = None,
) -> dict[str, dict[str, list[tuple[str, int | None]]]]:
    """The slices of a gold set alone: the ids and turns of who is in each part of a dimension."""
    slices: dict[str, dict[str, list[tuple[str, int | None]]]] = {}
    chunks = chunks or {}
    for item in unique_items(items, profile, name):
        pieces = pieces_of(item, chunks, options)
        for dimension, names in _parts(item, pieces, chunks):
            for part in dict.fromkeys(names):
                members = slices.setdefault(dimension, {}).setdefault(part, [])
                members.append((item.qid, item.turn))
    return {
        dimension: dict(sorted(slices[dimension].items()))
        for dimension in SLICES
        if dimension in slices
    }


_AT_ONCE = 1024
_SORTED_WIDTH = 64  # bytes of an id up to which ids are sorted as a column of equal widths


class _Order(NamedTuple):
    """The places of items in an order, and which have the id of the next one in it."""

    places: Ints
    same: Bools


class GoldTableBuilder:
    """Makes a gold table of items that come one by one, and keeps none of them.

    An item takes a kilobyte, its row of the table a tenth of that; a gold set may have a million.
    Items must be unique, as `unique_items` gives them.
    """

    def __init__(
        self,
        profile: Profile,
        options: Options,
        *,
        name: str,
        chunks: dict[str, Chunk] | None = None,
        slices: bool = True,
    ) -> None:
        self.rules = profile.join
        self.options = options
        self.name = name
        self.chunks = chunks or {}
        self.waiting: list[GoldItem] = []
        self.waiting_measured = 0
        self.measured = self.size = 0
        self.turns: dict[int, int] = {}
        self.lines: array[int] = array("q")
        self.columns: list[GoldColumns] = []
        self.by_turn: dict[str, dict[int, int]] = {}
        self.paraphrases: dict[int, dict[str, int]] = {}
        self.parts = {dimension: _Members() for dimension in SLICES} if slices else {}
        self.qids, self.questions = PackedTextWriter(), PackedTextWriter()
        self.evidence, self.needles = PackedTextWriter(), PackedTextWriter()
        self.asked_by: array[int] = array("I")  # the item of each question
        self.more: dict[int, tuple[str, ...]] = {}
        self.constraints: dict[int, frozenset[str]] = {}
        self.counted: dict[int, tuple[str, ...]] = {}
        self.odd_evidence: dict[int, tuple[str, ...]] = {}
        self.details: dict[int, GoldDetails] = {}
        self.asked = PackedTextWriter()
        self.odd_asked: dict[int, tuple[str, ...]] = {}
        self.expecting = self.to_answer = self.without_evidence = 0
        self.short: dict[int, tuple[str, ...]] = {}
        self.references: dict[int, tuple[str, ...]] = {}
        self.to_refuse: set[int] = set()
        self.unmatched_count = 0
        self.unmatched: list[tuple[tuple[str, int, str], int, str]] = []

    def add(self, item: GoldItem, *, measured: bool = True) -> None:
        """Add an item; those that are not measured come last."""
        self.waiting.append(item)
        self.waiting_measured += measured
        if len(self.waiting) == _AT_ONCE:
            self._flush()

    def add_as_joined(self, item: GoldItem) -> None:
        """Add an item as it was read."""
        self.add(_as_joined(item, self.rules))

    def finish(self) -> int:
        """Take in the last items; say how many there are."""
        if self.waiting or not self.columns:
            self._flush()
        return self.size

    def repeated(self) -> dict[int, int | None]:
        """For each item with an id that others have: the last of them for the first, else None."""
        places, same = self._order
        repeated: dict[int, int | None] = {}
        for at in np.flatnonzero(same).tolist():
            first, last = int(places[at]), int(places[at + 1])
            if first not in repeated:
                repeated[first] = last
                head = first
            repeated[head], repeated[last] = last, None
        return repeated

    def _flush(self) -> None:
        items, chunks, options = self.waiting, self.chunks, self.options
        pieces = [pieces_of(item, chunks, options) for item in items]
        details = {
            place: more
            for place, item in enumerate(items)
            if (more := gold_details_of(item, pieces[place], chunks, options, self.name))
            is not None
        }
        self.columns.append(gold_columns(items, pieces, details, self.rules))
        self.details |= {self.size + place: more for place, more in details.items()}
        for place, (item, mine) in enumerate(zip(items, pieces, strict=True)):
            question = self.size + place
            self._add_keys(question, item, mine)
            self._add_names(question, item)
            if place < self.waiting_measured:
                self._add_labels(item)
            if self.parts and place < self.waiting_measured:
                for dimension, names in _parts(item, mine, chunks):
                    self.parts[dimension].add(names, question)
        self.size += len(items)
        self.measured += self.waiting_measured
        self.waiting, self.waiting_measured = [], 0

    def _add_labels(self, item: GoldItem) -> None:
        self.expecting += item.expect is not None
        if item.expect != "refuse":
            self.to_answer += 1
            self.without_evidence += not has_evidence(item)

    def _add_names(self, question: int, item: GoldItem) -> None:
        """What a trace may name the item by."""
        self.qids.add(encoded(item.qid))
        self.lines.append(-1 if item.line is None else item.line)
        if item.turn is not None:
            self.turns[question] = item.turn
            self.by_turn.setdefault(item.qid, {})[item.turn] = question
        if item.paraphrases and self.rules.keep == "slot":
            self.paraphrases[question] = {
                text: number for number, text in reversed(list(enumerate(item.paraphrases)))
            }
        for text in self._asked(item):
            self.questions.add(encoded(text))
            self.asked_by.append(question)
        if self.rules.by != "question":
            texts = (item.question, *item.paraphrases) if item.question else ()
            if not self.asked.add_list(texts):
                self.odd_asked[question] = texts

    def _asked(self, item: GoldItem) -> list[str]:
        """The texts that traces may name the item by.

        Where a text only stands in for an id, its case and blanks do not count; a profile that
        joins by the text alone takes it as it is, as its source does.
        """
        if self.rules.by == "question":
            return [] if item.question is None else [item.question]
        if self.rules.by != "either":
            return []
        keys = dict.fromkeys(map(question_key, (item.question, *item.paraphrases)))
        return [key for key in keys if key]

    def _add_keys(self, question: int, item: GoldItem, pieces: EvidencePieces) -> None:
        """What reduction compares a trace with."""
        needles: tuple[str, ...] = ()
        if item.claims_any:
            by_phrase = item.claim_rule == "phrase"
            needles = (phrase_needles if by_phrase else substring_needles)(item.claims_any)
            self._add_short_claims(question, item, item.claims_any)
        if item.references:
            self.references[question] = tuple(map(as_compared, item.references))
        if item.expect == "refuse" and (item.claims_any or item.references):
            self.to_refuse.add(question)
        self.needles.add(encoded(needles[0]) if needles else b"")
        if len(needles) > 1:
            self.more[question] = needles[1:]
        if not self.evidence.add_list(pieces.ids):
            self.odd_evidence[question] = pieces.ids
        if pieces.ids and not all(pieces.relevant[: len(pieces.ids)]):
            self.counted[question] = tuple(
                name for name, counts in zip(pieces.ids, pieces.relevant, strict=False) if counts
            )
        if item.constraints:
            self.constraints[question] = frozenset(map(str.strip, item.constraints))

    def _add_short_claims(self, question: int, item: GoldItem, claims: Sequence[str]) -> None:
        """Claims that are sought as whole words, or that can never match."""
        short = short_claims(claims)
        if not short:
            return
        if self.rules.short_claims == "words":
            self.short[question] = short
            return
        identity = item.qid, -1 if item.turn is None else item.turn, item.question or ""
        for place, claim in enumerate(claims):
            if short_claims([claim]):
                self.unmatched_count += 1
                named = f"`{plain(claim)}` ({plain(item.qid)})"
                self.unmatched = sorted([*self.unmatched, (identity, place, named)])[:_MOST_NAMED]

    @cached_property
    def _order(self) -> _Order:
        """The order of the items by what they are, once all are there."""
        data, offsets = self.qids.data, self.qids.offsets
        keys: Any
        widths = np.diff(np.asarray(offsets)).astype(np.int64)
        width = int(widths.max(initial=1))
        if self.turns or self.rules.by == "question" or width > _SORTED_WIDTH or 0 in data:
            # UTF-8 sorts as its characters do.
            keys = [
                (bytes(data[first:last]), self.turns.get(question, -1))
                for question, (first, last) in enumerate(pairwise(offsets))
            ]
            if self.rules.by == "question":
                asked, ends = self.questions.data, pairwise(self.questions.offsets)
                texts = [bytes(asked[first:last]) for first, last in ends]
                keys = list(zip(keys, texts, strict=True))
            order = sorted(range(self.size), key=keys.__getitem__)
            same = [keys[one] == keys[other] for one, other in pairwise(order)]
            return _Order(np.array(order, np.int64), np.array(same, np.bool_))
        # With many items a sort of Python objects takes the longest of all steps.
        letters = np.zeros((self.size, width), np.uint8)
        letters[np.arange(width) < widths[:, None]] = np.frombuffer(data, np.uint8)
        column = letters.reshape(-1).view(f"S{width}")
        places = np.argsort(column, kind="stable")
        column = column[places]
        return _Order(places, column[1:] == column[:-1])

    def table(self, *, read: int) -> GoldTable:
        """The table of all items; `read` is how many there were before they were unique."""
        self.finish()
        order = self._order.places
        without_turn = np.ones(self.size, np.bool_)
        without_turn[list(self.turns)] = False
        asked_by = np.asarray(self.asked_by, np.int64)
        block = BlockWriter()
        _add_index(block, QID, self.qids, np.arange(self.size), without_turn)
        _add_index(block, QUESTION, self.questions, asked_by, np.ones(len(asked_by), np.bool_))
        block.add_texts(EVIDENCE, self.evidence)
        block.add_texts(NEEDLE, self.needles)
        block.add_texts(ASKED, self.asked)
        keys = GoldKeys(
            block=block.block(),
            more=self.more,
            constraints=self.constraints,
            counted=self.counted,
            odd_evidence=self.odd_evidence,
            odd_asked=self.odd_asked,
            details=self.details,
            short=self.short,
            references=self.references,
            to_refuse=frozenset(self.to_refuse),
        )
        qids = PackedTexts(keys.block, QID)
        turns: list[int | None] = [None] * self.size
        for question, turn in self.turns.items():
            turns[question] = turn
        lines: Sequence[int | None] = self.lines
        if -1 in self.lines:
            lines = [None if line < 0 else line for line in self.lines]
        rank = np.empty(self.size, np.int32)
        rank[order] = np.arange(self.size, dtype=np.int32)
        columns = GoldColumns(
            **{
                name: np.concatenate([getattr(part, name) for part in self.columns])
                for name in GoldColumns.__struct_fields__
            }
        )
        self.columns = []
        return GoldTable(
            read=read,
            qids=qids,
            turns=turns,
            lines=lines,
            identity=order,
            columns=columns,
            keys=keys,
            by_turn=self.by_turn,
            paraphrases=self.paraphrases,
            cluster=_clusters(qids) if self.by_turn else None,
            slices={
                dimension: members.parts(rank)
                for dimension, members in self.parts.items()
                if members.names
            },
            chunks=self.chunks,
            beside=self.size - self.measured,
            unmatched_claims=UnmatchedClaims(
                self.unmatched_count, tuple(named for _, _, named in self.unmatched)
            )
            if self.unmatched_count
            else None,
            labels=GoldLabels(
                expecting=self.expecting,
                to_answer=self.to_answer,
                without_evidence=self.without_evidence,
            ),
        )


def unique_items(items: Sequence[GoldItem], profile: Profile, gold_name: str) -> list[GoldItem]:
    """One item an id and turn (or a question): the last if the profile says so, else an error."""
    unique: dict[object, GoldItem] = {}
    problems: list[Problem] = []
    for item in items:
        key = _joined_by(item, profile.join)
        place = Place(gold_name, item.line, item.qid)
        if key is None:
            problems.append(
                Problem(
                    "missing-field",
                    "the item has no question to join traces by",
                    'add the question as "q"',
                    place,
                )
            )
            continue
        if key in unique and profile.join.duplicate_gold == "error":
            first = unique[key].line
            turn = "" if item.turn is None else f" with turn {item.turn}"
            problems.append(
                Problem(
                    "duplicate-qid",
                    f"the id `{item.qid}`{turn} stands twice, first on line {first}",
                    "give every gold item its own id (or turn)",
                    place,
                )
            )
        unique[key] = item
    if problems:
        raise RagaugeError(problems[:MAX_REPORTED], total=len(problems))
    return [_as_joined(item, profile.join) for item in unique.values()]


def _joined_by(item: GoldItem, rules: JoinRules) -> object:
    """What distinguishes an item from others; None where it lacks it."""
    if rules.by == "question":
        return item.question
    return item.qid if rules.keep != "slot" or item.turn is None else (item.qid, item.turn)


def _as_joined(item: GoldItem, rules: JoinRules) -> GoldItem:
    ignores_turns = rules.keep != "slot"
    return replace(item, turn=None) if ignores_turns and item.turn is not None else item


def _others(
    items: Sequence[GoldItem], measured: Sequence[GoldItem], rules: JoinRules
) -> list[GoldItem]:
    """Items that are none of those kept, the last of each."""
    taken = {_joined_by(item, rules) for item in measured}
    others = {
        key: _as_joined(item, rules)
        for item in items
        if (key := _joined_by(item, rules)) is not None and key not in taken
    }
    return list(others.values())


def _clusters(qids: Sequence[str]) -> Ints:
    """The conversation of each item: turns of one id belong together, numbered by their ids."""
    numbers = {qid: number for number, qid in enumerate(sorted(set(qids)))}
    return np.array([numbers[qid] for qid in qids], np.int64)


def _add_index(
    block: BlockWriter, name: str, texts: PackedTextWriter, numbers: Ints, chosen: Bools
) -> None:
    """Add texts to a block, with an index of the chosen ones that a worker looks numbers up by."""
    data = memoryview(texts.data)
    hashes = (crc32(data[first:last]) for first, last in pairwise(texts.offsets))
    entries = np.flatnonzero(chosen).astype(np.uint32)
    buckets = np.fromiter(hashes, np.uint32, len(texts))[entries]
    count = 1 << max(0, len(entries) - 1).bit_length()
    buckets &= np.uint32(count - 1)
    data.release()
    begins = np.cumsum(np.bincount(buckets, minlength=count), dtype=np.uint32)
    block.add(f"{name} entries", entries[np.argsort(buckets, kind="stable")])
    block.add(f"{name} buckets", np.concatenate([np.zeros(1, np.uint32), begins]))
    block.add(f"{name} numbers", numbers.astype(np.uint32))
    block.add_texts(name, texts)


class _Members:
    """Who is in which part of a dimension, as it is found."""

    def __init__(self) -> None:
        self.names: dict[str, int] = {}
        self.numbers: array[int] = array("I")
        self.questions: array[int] = array("I")

    def add(self, names: Iterable[str], question: int) -> None:
        """Put a question into parts."""
        for name in dict.fromkeys(names):
            self.numbers.append(self.names.setdefault(name, len(self.names)))
            self.questions.append(question)

    def parts(self, rank: Column) -> SliceParts:
        """The parts by their names; their questions stand in the order of their ranks."""
        names = sorted(self.names)
        place = np.empty(len(names), np.int64)
        place[[self.names[name] for name in names]] = np.arange(len(names))
        part = place[np.asarray(self.numbers)]
        questions = np.asarray(self.questions).astype(np.int32)
        counts = np.bincount(part, minlength=len(names))
        return SliceParts(names, counts, questions[np.lexsort((rank[questions], part))])


class SliceParts(Mapping[str, Column]):
    """The questions of each part of a dimension: one array for all, as there may be many parts."""

    def __init__(self, names: Sequence[str], counts: Ints, questions: Column) -> None:
        ends = np.cumsum(counts).tolist()
        self._places = dict(zip(names, zip([0, *ends], ends, strict=False), strict=True))
        self._questions = questions

    def __getitem__(self, name: str) -> Column:
        first, last = self._places[name]
        return self._questions[first:last]

    def __len__(self) -> int:
        return len(self._places)

    def __iter__(self) -> Iterator[str]:
        return iter(self._places)


def _parts(
    item: GoldItem, pieces: EvidencePieces, chunks: Mapping[str, Chunk]
) -> Iterable[tuple[str, Sequence[str]]]:
    names = [*pieces.ids, *(anchor.id for anchor in pieces.anchors if anchor.id is not None)]
    types = [
        kind
        for name in names
        if (kind := (chunks[name].type if name in chunks else None) or type_of(name)) is not None
    ]
    yield "type", [item.type] if item.type is not None else types
    yield "tag", item.tags
    sections = [item.anchor_section] if item.anchor_section is not None else []
    if not sections:
        stated = [anchor.section for anchor in pieces.anchors]
        by_name = [
            (chunks[name].section if name in chunks else None) or section_of(name) for name in names
        ]
        sections = [section for section in (*stated, *by_name) if section is not None]
    yield "section", sections
    yield "document", documents_of(item, pieces, chunks)
    yield "language", [item.lang] if item.lang is not None else []
    yield "difficulty", [item.difficulty] if item.difficulty is not None else []
