"""Early reduction: a trace and its gold item become a handful of integers.

Every set and rank metric derives from these columns, so no metric loops over traces. The columns
are plain arrays: a worker needs neither numpy nor the metrics.
"""

from __future__ import annotations

import re
from collections.abc import Container, Mapping, Sequence
from itertools import compress
from operator import contains
from struct import pack

from msgspec import Struct, field
from msgspec.structs import replace

from ragauge.metrics.facts import Fact
from ragauge.model.chunk import Chunk
from ragauge.model.error_reasons import reason_code, reason_of
from ragauge.model.options import Options
from ragauge.model.profile import JoinRules
from ragauge.model.trace import Answer, SlotKey, Trace, Usage
from ragauge.scoring.evidence_pieces import GoldDetails
from ragauge.scoring.packed_texts import (
    PackedBlock,
    PackedIndex,
    PackedLists,
    PackedTexts,
    UnpackedValues,
)
from ragauge.scoring.refusals import NaturalRefusals
from ragauge.scoring.trace_details import TableBytes, TraceDetails
from ragauge.text import REFUSAL_TOKEN, contains_word, normalise


class GoldKeys(Struct, frozen=True, kw_only=True):
    """What reduction needs to know of the gold items; their texts are packed in `block`.

    `counted` says for items in which not all pieces of evidence are relevant which are; `more`
    holds the needles behind the first of items that have several; `odd_evidence` and `odd_asked`
    are lists that cannot be packed. `details` are those of items whose evidence is more than ids.
    `short` holds the claims that are sought as whole words, `references` the right answers in the
    form that answers are compared in. `to_refuse` are the items whose claims and references
    describe a refusal.
    """

    block: PackedBlock = field(default_factory=PackedBlock)
    more: dict[int, tuple[str, ...]] = {}
    constraints: dict[int, frozenset[str]] = {}
    counted: dict[int, tuple[str, ...]] = {}
    odd_evidence: dict[int, tuple[str, ...]] = {}
    odd_asked: dict[int, tuple[str, ...]] = {}
    details: dict[int, GoldDetails] = {}
    short: dict[int, tuple[str, ...]] = {}
    references: dict[int, tuple[str, ...]] = {}
    to_refuse: frozenset[int] = frozenset()

    @property
    def evidence(self) -> PackedLists:
        """The pieces of evidence of each item that are known by id alone."""
        return PackedLists(self.block, EVIDENCE, self.odd_evidence)

    @property
    def needle(self) -> PackedTexts:
        """The first needle of each item, or an empty text."""
        return PackedTexts(self.block, NEEDLE)

    @property
    def asked(self) -> PackedLists:
        """The question of each item and its paraphrases; none where traces are joined by them."""
        return PackedLists(self.block, ASKED, self.odd_asked)

    @property
    def by_qid(self) -> PackedIndex:
        """The items without a turn by their ids."""
        return PackedIndex(self.block, QID)

    @property
    def by_question(self) -> PackedIndex:
        """The items by their questions, where traces may be joined by them."""
        return PackedIndex(self.block, QUESTION)


QID, QUESTION, ASKED, EVIDENCE, NEEDLE = "qid", "question", "asked", "evidence", "needle"
"""The columns of texts in the block of the keys."""

_NEVER = "\ud800"
"""No file holds a lone surrogate: it cannot be decoded from UTF-8."""

_NONE: frozenset[str] = frozenset()
_SHORT = 32
"""Up to this length a list is searched faster than a set is built from it."""

# Plain integers: operations on flags take ten times as long.
_REFUSED = int(Fact.REFUSED)
_BY_TRACE = int(Fact.BY_FLAG | Fact.BY_GROUNDED)
_BY_TOKEN = int(Fact.BY_TOKEN | Fact.REFUSED)
_BY_PATTERN = int(Fact.BY_PATTERN | Fact.REFUSED)
_BY_NATURAL = int(Fact.BY_NATURAL | Fact.REFUSED)


def as_compared(text: str) -> str:
    """A text in which neither blanks, case nor a full stop at the end matter."""
    return " ".join(text.lower().split()).rstrip(" .!")


class Columns(Struct, frozen=True, kw_only=True):
    """The columns of some records as bytes: 32-bit integers in `numbers`, 0 or 1 in `flags`.

    `ranks` has one entry for each piece of evidence of each record that is known by id alone, in
    the gold item's order: the 0-based rank of its first occurrence among the hits, or -1.
    `details` are sparse tables; their records count from the first of these columns, as in `open`:
    what those records cite that have a citation outside their hits. `reasons` are those of errors;
    the table `error` has their codes.
    """

    numbers: dict[str, bytes]
    flags: dict[str, bytes]
    ranks: bytes
    details: dict[str, TableBytes] = {}
    open: dict[int, tuple[str, ...]] = {}
    reasons: tuple[str, ...] = ()


SlotName = SlotKey | int | str | None
"""A slot; where only the seed is known the seed alone, which costs less to look up."""

Pending = tuple[int, SlotName, int, Sequence[str], str | None, Sequence[str] | None, int]
"""A record before reduction: question, slot, line, hit ids, what was said, citations, facts."""


def refusal_rule(rules: JoinRules, options: Options) -> str:
    """What counts as a refusal: as the user says, as configured patterns imply, or the profile."""
    if options.refusal_rule is not None:
        return options.refusal_rule
    return "natural" if options.refusal_patterns else rules.refusal


class Reducer:
    """Turns traces into columns for one gold set under one profile's rules.

    Records are collected and reduced many at a time: each step is one pass of a built-in over all
    of them, which is much cheaper than a loop that takes all steps for one record.
    """

    def __init__(
        self,
        keys: GoldKeys,
        rules: JoinRules,
        *,
        count_repeats: bool = False,
        note_open: bool = False,
        chunks: Mapping[str, Chunk] | None = None,
        options: Options = Options(),  # noqa: B008  (frozen)
        bytes_too: bool = True,
    ) -> None:
        self.keys = keys
        self.detail = TraceDetails(
            keys.details,
            chunks or {},
            options,
            errors_count=rules.absent == "empty-answer",
            bytes_too=bytes_too,
        )
        # A source reads no citations in the text; traces may have been read before a profile was.
        self.lists_only = rules.absent == "empty-answer"
        self.count_repeats = count_repeats
        self.note_open = note_open
        needle = keys.needle.reader()
        self.needle = UnpackedValues[int, str](lambda place: needle(place) or _NEVER).__getitem__
        self.evidence = UnpackedValues(keys.evidence.reader()).__getitem__
        self.rule = refusal_rule(rules, options)
        self.patterns = [re.compile(pattern, re.IGNORECASE) for pattern in options.refusal_patterns]
        # Where only the token counts, what reads like a refusal is looked for and reported.
        languages = () if self.rule == "grounded" else options.refusal_languages
        self.natural = NaturalRefusals(languages)
        self.pending: list[Pending] = []
        self._begin()

    def _begin(self) -> None:
        self.count = 0
        self.slots: dict[SlotName, int] = {}
        self.numbers: dict[str, list[bytes]] = {name: [] for name in NUMBERS}
        self.flags: dict[str, list[bytes]] = {name: [] for name in FLAGS}
        self.ranks: list[bytes] = []
        self.open: dict[int, tuple[str, ...]] = {}
        self.reasons: set[str] = set()

    def take(self) -> tuple[Columns, list[SlotKey]]:
        """The columns so far; the next record begins new ones."""
        self.flush()
        columns = Columns(
            numbers={name: b"".join(parts) for name, parts in self.numbers.items()},
            flags={name: b"".join(parts) for name, parts in self.flags.items()},
            ranks=b"".join(self.ranks),
            details=self.detail.tables.take(),
            open=self.open,
            reasons=tuple(sorted(self.reasons)),
        )
        slots = [slot if isinstance(slot, tuple) else (None, slot, None) for slot in self.slots]
        self._begin()
        return columns, slots

    def add_trace(self, question: int, slot: SlotName, trace: Trace, line: int) -> None:
        """Reduce a trace of the model."""
        answer = trace.answer
        text: str | None = None
        citations: Sequence[str] | None = None
        facts = 0
        if trace.error is not None:
            facts = int(Fact.ERRORED)
            self._note_error(trace.error)
        if answer is not None and answer.cites_in_text and self.lists_only:
            answer = replace(answer, citations=None, cites_in_text=False)
            trace = replace(trace, answer=answer)
        if answer is not None:
            text, citations = answer.said, answer.citations
            facts |= self._declared(answer.refused, answer.grounded)
            if answer.odd_citations:
                facts |= Fact.ODD_CITATIONS
            if answer.cites_in_text:
                facts |= Fact.CITES_IN_TEXT
            if answer.constraints_echo is not None:
                facts |= Fact.ECHO
                echoed = {constraint.strip() for constraint in answer.constraints_echo}
                if self.keys.constraints.get(question, _NONE) <= echoed:
                    facts |= Fact.ECHOED
        hits = [hit.id for hit in trace.hits]
        facts |= self.detail.add(self.count + len(self.pending), question, trace, hits)
        self.pending.append((question, slot, line, hits, text, citations, facts))

    def _note_error(self, message: str) -> None:
        """Note why the record that is pended next failed."""
        reason = reason_of(message)
        self.reasons.add(reason)
        record = self.count + len(self.pending)
        self.detail.tables.add("error", record, 0, reason_code(reason))

    def note_times(self, retrieve: float | None, reason: float | None, total: float | None) -> None:
        """Note the times of the record that is pended next."""
        record, add = self.count + len(self.pending), self.detail.tables.add
        for name, value in (("retrieve", retrieve), ("reason", reason), ("total", total)):
            if value is not None:
                add(f"{name}_ms", record, 0, value)

    def note_usage(self, usage: Usage) -> None:
        """Note what the record cost that is pended next."""
        self.detail.add_usage(self.count + len(self.pending), usage)

    def _declared(self, refused: bool | None, grounded: bool | None) -> int:
        """What the flags of an answer say. A flag alone decides, both ways."""
        facts = 0
        if refused is not None or grounded is not None:
            facts |= Fact.ANSWER
        if grounded is not None:
            facts |= Fact.GROUNDED_KNOWN | (Fact.GROUNDED if grounded else 0)
        says_refused = refused if refused is not None else grounded is False
        if self.rule == "token":
            facts |= Fact.SAYS_REFUSED if says_refused else 0
        elif self.rule == "grounded":
            facts |= Fact.BY_GROUNDED | Fact.REFUSED if grounded is False else 0
        elif refused is not None:
            # BY_FLAG alone, without REFUSED: the trace says that this is no refusal.
            facts |= Fact.BY_FLAG | (Fact.REFUSED if refused else 0)
        elif grounded is not None:
            facts |= Fact.BY_GROUNDED | (0 if grounded else Fact.REFUSED)
        return int(facts)

    def refusal(self, question: int, answer: Answer) -> int:
        """Which rules find that an answer is a refusal, as bits of `Fact`; 0 where it is none."""
        facts = self._declared(answer.refused, answer.grounded)
        if not facts & _BY_TRACE and answer.said is not None and self.rule != "grounded":
            text = normalise(answer.said)
            if text == REFUSAL_TOKEN:
                facts |= _BY_TOKEN
            elif self._matches(answer.said):
                facts |= _BY_PATTERN
            elif self.rule == "natural" and self._natural([question], [text])[0]:
                facts |= _BY_NATURAL
        return facts if facts & _REFUSED else 0

    def _matches(self, text: str) -> bool:
        return any(pattern.search(text) for pattern in self.patterns)

    def _natural(
        self, questions: Sequence[int], texts: Sequence[str], contained: Sequence[int] | None = None
    ) -> bytes:
        """Which texts, in lower case, decline as a whole.

        One that contains a claim of its item or equals its reference is an answer, however it
        reads, unless the item is to be refused: then these say how.
        """
        if contained is None:
            contained = self._contained(questions, texts)
        keys = self.keys
        # Those that contain a claim, as most answers of a good system do, need not be looked at.
        places = [
            place
            for place, question in enumerate(questions)
            if not contained[place] or question in keys.to_refuse
        ]
        declining = bytearray(len(texts))
        found = self.natural.find([texts[place] for place in places])
        for place in compress(places, found):
            question = questions[place]
            references = () if question in keys.to_refuse else keys.references.get(question, ())
            declining[place] = as_compared(texts[place]) not in references
        return bytes(declining)

    def _contained(self, questions: Sequence[int], texts: Sequence[str]) -> bytearray:
        """Which texts, in lower case, contain a claim of their item."""
        more, short = self.keys.more, self.keys.short
        contained = bytearray(map(contains, texts, map(self.needle, questions)))
        if more and not more.keys().isdisjoint(questions):
            for place, question in enumerate(questions):
                if question in more and not contained[place]:
                    contained[place] = any(one in texts[place] for one in more[question])
        if short and not short.keys().isdisjoint(questions):
            for place, question in enumerate(questions):
                if question in short and not contained[place]:
                    text = texts[place]
                    contained[place] = any(contains_word(text, word) for word in short[question])
        return contained

    def flush(self) -> None:
        """Reduce the records that are pending."""
        if self.pending:
            columns = zip(*self.pending, strict=True)
            self.pending.clear()
            self.reduce(*columns)

    def reduce(
        self,
        questions: Sequence[int],
        slots: Sequence[SlotName],
        lines: Sequence[int],
        hits: Sequence[Sequence[str]],
        answers: Sequence[str | None],
        citations: Sequence[Sequence[str] | None],
        facts: Sequence[int],
    ) -> None:
        """Reduce records that are given as columns.

        Steps that nearly every record takes are one call of a built-in over all of them; what few
        records need, as several citations or needles, is a loop over those few.
        """
        slot_codes = self.slots
        self.count += len(questions)
        evidence = list(map(self.evidence, questions))
        relevant = evidence
        if self.keys.counted:
            relevant = list(map(self.keys.counted.get, questions, evidence))
        texts = ["" if text is None else text.strip().lower() for text in answers]
        contained = self._contained(questions, texts)
        cites = [names or () for names in citations]
        first = [names[0] if names else None for names in cites]
        cited = list(map(len, cites))
        sizes = list(map(len, hits))
        longest = max(sizes, default=0)
        pools: Sequence[Container[str]] = hits if longest <= _SHORT else list(map(set, hits))
        in_context = bytearray(map(contains, pools, first))
        cited_relevant: list[int] = list(map(contains, relevant, first))
        for place in [place for place, count in enumerate(cited) if count > 1]:
            listed, pool, wanted = cites[place], pools[place], relevant[place]
            different = set(listed) if len(listed) != 2 or listed[0] == listed[1] else listed
            inside = hitting = 0
            for name in different:
                inside += name in pool
                hitting += name in wanted
            cited[place] = len(different)
            in_context[place], cited_relevant[place] = inside == len(different), hitting
        if self.note_open:
            first_record = self.count - len(questions)
            for place, count in enumerate(cited):
                if count and not in_context[place]:
                    self.open[first_record + place] = tuple(cites[place])
        try:
            codes = [slot_codes[slot] for slot in slots]
        except KeyError:
            codes = [slot_codes.setdefault(slot, len(slot_codes)) for slot in slots]
        ranks = [
            ordered.index(name) if name in pool else -1
            for ids, pool, ordered in zip(evidence, pools, hits)  # noqa: B905 (the inner loop)
            for name in ids
        ]
        self.ranks.append(pack(f"{len(ranks)}i", *ranks))
        layout = f"{len(questions)}i"
        for name, column in zip(
            NUMBERS, (questions, codes, lines, facts, sizes, cited, cited_relevant), strict=True
        ):
            self.numbers[name].append(pack(layout, *column))
        tokens = bytes(map(REFUSAL_TOKEN.__eq__, texts))
        matched = bytes(len(texts))
        if self.patterns:
            matched = bytes([self._matches(text or "") for text in answers])
        natural = self._natural(questions, texts, contained)
        repeated = b""
        if self.count_repeats:
            repeated = bytes([len(set(ids)) != len(ids) for ids in hits])
        silent, unlisted = _nones(answers), _nones(citations)
        for name, flag in zip(
            FLAGS,
            (contained, tokens, matched, natural, silent, unlisted, in_context, repeated),
            strict=True,
        ):
            self.flags[name].append(bytes(flag))


NUMBERS = ("question", "slot", "line", "facts", "hits", "cited", "cited_relevant")
FLAGS = ("contained", "token", "pattern", "natural", "silent", "unlisted", "in_context", "repeated")


def _nones(column: Sequence[object]) -> bytes:
    """1 where there is nothing; mostly there is something everywhere."""
    if None not in column:
        return bytes(len(column))
    return bytes([value is None for value in column])


def slot_name(paraphrase: int | None, seed: int | str | None, turn: int | None) -> SlotName:
    """Name a slot."""
    return seed if paraphrase is None and turn is None else (paraphrase, seed, turn)
