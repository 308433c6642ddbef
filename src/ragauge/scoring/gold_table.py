"""The gold set of a run as a table: its questions, their evidence, and the slices they are in."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from ragauge.errors import MAX_REPORTED, Place, Problem, RagaugeError
from ragauge.gold.findings import has_evidence
from ragauge.ids import section_of, type_of
from ragauge.metrics.columns import GoldColumns, Ints
from ragauge.model.chunk import Chunk
from ragauge.model.gold import GoldItem
from ragauge.model.options import Options
from ragauge.model.profile import JoinRules, Profile
from ragauge.scoring.evidence_pieces import EvidencePieces, documents_of, gold_details_of, pieces_of
from ragauge.scoring.join import gold_columns
from ragauge.scoring.tasks.asked_questions import Texts
from ragauge.scoring.trace_columns import GoldKeys, gold_keys

SLICES = ("type", "tag", "section", "document", "language", "difficulty")
"""The dimensions by which questions are grouped."""


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
    by_qid: dict[str, int]
    by_turn: dict[str, dict[int, int]]
    by_question: dict[str, int]
    paraphrases: dict[int, dict[str, int]]
    cluster: Ints | None
    slices: Mapping[str, Mapping[str, Ints]]
    chunks: dict[str, Chunk] = {}
    beside: int = 0
    questions: Sequence[Texts] = ()
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
    chunks = chunks or {}
    rules = profile.join
    unique = unique_items(items, profile, name)
    measured = len(unique)
    unique += _others(beside, unique, rules)
    pieces = [pieces_of(item, chunks, options) for item in unique]
    details = {
        question: more
        for question, item in enumerate(unique)
        if (more := gold_details_of(item, pieces[question], chunks, options, name)) is not None
    }
    by_turn: dict[str, dict[int, int]] = {}
    for question, item in enumerate(unique):
        if item.turn is not None:
            by_turn.setdefault(item.qid, {})[item.turn] = question
    # Resamples and means go by this order, so that a gold set may be sorted anew.
    order = sorted(range(len(unique)), key=lambda question: _identity(unique[question]))
    return GoldTable(
        read=len(items),
        qids=[item.qid for item in unique],
        turns=[item.turn for item in unique],
        lines=[item.line for item in unique],
        identity=np.array(order, np.int64),
        columns=gold_columns(unique, pieces, details, rules),
        keys=gold_keys(unique, pieces, details),
        by_qid={item.qid: code for code, item in enumerate(unique) if item.turn is None},
        by_turn=by_turn,
        by_question=_by_question(unique, rules),
        paraphrases=_paraphrases(unique) if rules.keep == "slot" else {},
        cluster=_clusters(unique) if by_turn else None,
        slices=_slices(
            unique, pieces, chunks, [question for question in order if question < measured]
        )
        if slices
        else {},
        chunks=chunks,
        beside=len(unique) - measured,
        questions=() if rules.by == "question" else [_texts(item) for item in unique],
        labels=_labels(unique[:measured]),
    )


def _labels(items: Sequence[GoldItem]) -> GoldLabels:
    to_answer = [item for item in items if item.expect != "refuse"]
    return GoldLabels(
        expecting=sum(item.expect is not None for item in items),
        to_answer=len(to_answer),
        without_evidence=sum(not has_evidence(item) for item in to_answer),
    )


def _texts(item: GoldItem) -> Texts:
    """The texts in which an item may be asked, its question first."""
    if item.question is None or not item.paraphrases:
        return item.question
    return item.question, *item.paraphrases


def _identity(item: GoldItem) -> tuple[str, int, str]:
    return item.qid, -1 if item.turn is None else item.turn, item.question or ""


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


def _by_question(items: Sequence[GoldItem], rules: JoinRules) -> dict[str, int]:
    """The items by their exact question; a question that two items share names neither."""
    codes: dict[str, int] = {}
    shared: set[str] = set()
    for code, item in enumerate(items):
        texts = {item.question, *(item.paraphrases if rules.by == "either" else ())} - {None}
        for text in texts:
            assert text is not None
            if text in codes:
                shared.add(text)
            codes[text] = code
    return {text: code for text, code in codes.items() if text not in shared}


def _paraphrases(items: Sequence[GoldItem]) -> dict[int, dict[str, int]]:
    """The number of each paraphrase by its text, for the items that have any."""
    return {
        code: {text: number for number, text in reversed(list(enumerate(item.paraphrases)))}
        for code, item in enumerate(items)
        if item.paraphrases
    }


def _clusters(items: Sequence[GoldItem]) -> Ints:
    """The conversation of each item: turns of one id belong together, numbered by their ids."""
    numbers = {qid: number for number, qid in enumerate(sorted({item.qid for item in items}))}
    return np.array([numbers[item.qid] for item in items], np.int64)


def _slices(
    items: Sequence[GoldItem],
    pieces: Sequence[EvidencePieces],
    chunks: Mapping[str, Chunk],
    order: Sequence[int],
) -> dict[str, dict[str, Ints]]:
    """Who is in which part of each dimension; a dimension that no item has is not listed.

    The questions of a part stand in the order given, which their resamples are tied to.
    """
    members: dict[str, dict[str, list[int]]] = {dimension: {} for dimension in SLICES}
    for question in order:
        item = items[question]
        for dimension, names in _parts(item, pieces[question], chunks):
            for name in dict.fromkeys(names):
                members[dimension].setdefault(name, []).append(question)
    return {
        dimension: {name: np.array(parts[name], np.int64) for name in sorted(parts)}
        for dimension, parts in members.items()
        if parts
    }


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
