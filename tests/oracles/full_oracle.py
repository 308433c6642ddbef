"""Every metric of the specification outside `ship` and `smoke`, one record at a time, in the open.

It is slow on purpose: spans are sets of single bytes, numbers are fractions until the very end, and
each formula stands where it is used. Nothing of the package is imported, so that the two can
disagree. Rows are read in one spelling: what else a dialect accepts is not this module's concern.
"""

from __future__ import annotations

import itertools
import math
import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any

Row = dict[str, Any]
Path = tuple[int | str, ...]
Byte = tuple[str | None, int]
Slot = tuple[Any, Any, Any, Any]  # qid, paraphrase, seed, turn

REFUSAL = "not in context"
# The sentences of the cases that decline in other words, and no others.
NATURAL_REFUSALS = ("not in context.", "not  in context", "i don't know.", "i do not know why.")
SHORTEST_SUBSTRING = 5
LAMBDA_CUT = 5
MRR_CUT = 10
TAU_CUT = 10
DELTA_S_CUT = 5
STATES = {
    "→": "stability.convergent",
    "←": "stability.lambda_divergent",
    "<>": "stability.lambda_recursive",
    "×": "stability.lambda_chaotic",
}

LISTED_IN_TEXT = re.compile(r"citations\s*:\s*\[([^\]]*)\]", re.IGNORECASE)
# guide.md#S.4.2.p.Bk011a and S.4.2.p.Bk011a; doc|r=…|s=…|p=…|b=…; A.3.1.bk012; p1#2
TYPED_ID = re.compile(r"(?:(?P<doc>.+)#)?(?P<section>S(?:\.\d+)+)\.[pctfx]\.Bk\d+[a-z]?")
PIPED_ID = re.compile(r"(?P<doc>[^|]+)\|r=[^|]*\|s=(?P<section>[^|]*)\|p=[^|]*\|b=[^|]*")
PLAIN_ID = re.compile(r"(?P<section>[A-Z](?:\.\d+)+)\.bk\d+")
PAGE_ID = re.compile(r"(?P<doc>p[0-9A-Za-z]+)#\d+")
PAGE_AS_SECTION = re.compile(r"p\d+")


@dataclass(frozen=True)
class Result:
    """A reported number: `n` counts questions, `records` their slots in the population."""

    value: float | None
    n: int
    records: int
    excluded: dict[str, int]


# --- ids, sections, spans -------------------------------------------------------------------------


def doc_of(name: str | None) -> str | None:
    """The document that an id names by its form, if it does."""
    for grammar in (TYPED_ID, PIPED_ID, PAGE_ID):
        match = grammar.fullmatch(name or "")
        if match:
            return match["doc"]
    return None


def section_of(name: str | None) -> str | None:
    """The section that an id names by its form, if it does."""
    for grammar in (TYPED_ID, PIPED_ID, PLAIN_ID):
        match = grammar.fullmatch(name or "")
        if match:
            section = match["section"]
            return None if PAGE_AS_SECTION.fullmatch(section) else section
    return None


def section_path(section: str | None) -> Path | None:
    """`S.4.10`, `4.10` and `guide.md#S.4.10` are all (4, 10)."""
    if not section:
        return None
    parts = section.rpartition("#")[2].split(".")
    if parts[0] == "S":
        parts = parts[1:]
    return tuple(int(part) if part.isdecimal() else part for part in parts)


def tree_distance(one: Path, other: Path) -> int:
    """Edges from one section up to the lowest common ancestor and down to the other."""
    common = 0
    for left, right in zip(one, other, strict=False):
        if left != right:
            break
        common += 1
    return (len(one) - common) + (len(other) - common)


@dataclass(frozen=True)
class Block:
    """What has an id, a place, or both: a piece of evidence, a hit, a citation."""

    id: str | None
    doc: str | None
    section: Path | None
    start: int | None
    end: int | None

    @property
    def identity(self) -> tuple[Any, ...]:
        return (self.id, self.doc, self.start, self.end)

    @cached_property
    def bytes(self) -> frozenset[Byte]:
        if self.start is None or self.end is None:
            return frozenset()
        return frozenset((self.doc, place) for place in range(self.start, self.end))


def read_block(entry: str | Row, chunks: Row, only_doc: str | None) -> Block:
    """Read an id or an object; what it does not say comes from the chunk list, or from its id."""
    row: Row = {"id": entry} if isinstance(entry, str) else entry
    name = row.get("id")
    chunk: Row = (chunks.get(name) if name else None) or {}
    start, end = row.get("offsets") or (row.get("start"), row.get("end"))
    if start is None:
        start, end = chunk.get("start"), chunk.get("end")
    return Block(
        id=name,
        doc=row.get("doc") or chunk.get("doc") or doc_of(name) or only_doc,
        section=section_path(row.get("section") or section_of(name) or chunk.get("section")),
        start=start,
        end=end,
    )


def all_bytes(blocks: Iterable[Block]) -> frozenset[Byte]:
    return frozenset().union(*(block.bytes for block in blocks))


def touches(block: Block, piece: Block) -> bool:
    """A hit or a citation is this piece: by id, or by half of the shorter span."""
    if piece.id is not None and block.id == piece.id:
        return True
    common = len(block.bytes & piece.bytes)
    return common > 0 and 2 * common >= min(len(block.bytes), len(piece.bytes))


# --- gold -----------------------------------------------------------------------------------------


@dataclass(eq=False)
class Item:
    """One gold row."""

    row: Row
    expect: str | None  # "answer", "refuse", or None: unlabelled
    pieces: list[Block]  # G
    gains: list[tuple[Block, Fraction]]
    groups: list[list[Block]]
    docs: frozenset[str]  # that its anchors and its expected documents name
    anchor: Path | None
    anchor_docs: frozenset[str]  # empty: the section may be in any document

    @property
    def key(self) -> tuple[Any, Any]:
        return (self.row["qid"], self.row.get("turn"))

    @property
    def only_doc(self) -> str | None:
        return next(iter(self.docs)) if len(self.docs) == 1 else None

    @property
    def all_pieces(self) -> list[Block]:
        """Whatever has a rank: evidence, what is graded, and members of groups."""
        return [*self.pieces, *(piece for piece, _ in self.gains), *itertools.chain(*self.groups)]

    @property
    def expected_docs(self) -> set[str]:
        return set(self.row.get("expected_doc_ids") or [])

    @property
    def negatives(self) -> set[str]:
        return set(self.row.get("negatives") or [])

    @property
    def paraphrases(self) -> list[str]:
        return list(self.row.get("paraphrases") or [])

    @property
    def gold_bytes(self) -> frozenset[Byte]:
        return all_bytes(self.pieces)

    def in_anchor(self, block: Block) -> bool:
        """The block's section is the anchor section or below it, in a right document."""
        if self.anchor is None or block.section is None:
            return False
        if self.anchor_docs and block.doc not in self.anchor_docs:
            return False
        return block.section[: len(self.anchor)] == self.anchor


def read_item(row: Row, chunks: Row, rules: str, relevance_level: int) -> Item:
    relevant = row.get("relevant") or []
    grades: dict[str, int] = row.get("grades") or {}
    group_rows = row.get("groups") or []
    anchor_section = row.get("anchor_section")

    entries = [*relevant, *itertools.chain.from_iterable(group_rows)]
    named = {entry["doc"] for entry in entries if isinstance(entry, dict) and entry.get("doc")}
    docs = frozenset(named | set(row.get("expected_doc_ids") or []))
    only_doc = next(iter(docs)) if len(docs) == 1 else None

    def blocks(of: Iterable[str | Row]) -> list[Block]:
        return distinct(read_block(entry, chunks, only_doc) for entry in of)

    groups = [blocks(group) for group in group_rows]
    if relevant:
        pieces = blocks(relevant)
        # A member that the evidence places somewhere is the evidence, not only its id.
        placed = {piece.id: piece for piece in pieces if piece.start is not None}
        groups = [
            distinct(
                placed.get(member.id, member) if member.start is None else member
                for member in group
            )
            for group in groups
        ]
    elif grades:
        pieces = blocks(name for name, grade in grades.items() if grade >= relevance_level)
    else:
        pieces = distinct(itertools.chain.from_iterable(groups))

    gains = [(piece, Fraction(1)) for piece in pieces]
    if grades:
        judged = blocks(relevant)
        known = {piece.id for piece in judged}
        judged += blocks(name for name in grades if name not in known)
        weighed = [(piece, Fraction(grades.get(piece.id or "", 1))) for piece in judged]
        gains = [(piece, gain) for piece, gain in weighed if gain > 0]

    expect = None
    if row.get("answerable") is not None:
        expect = "answer" if row["answerable"] else "refuse"
    elif rules == "canary" and (pieces or anchor_section):
        expect = "answer"
    written_doc = (anchor_section or "").rpartition("#")[0]
    return Item(
        row=row,
        expect=expect,
        pieces=pieces,
        gains=gains,
        groups=groups,
        docs=docs,
        anchor=section_path(anchor_section),
        anchor_docs=frozenset({written_doc}) if written_doc else docs,
    )


def distinct(blocks: Iterable[Block]) -> list[Block]:
    return list({block.identity: block for block in blocks}.values())


# --- traces ---------------------------------------------------------------------------------------


@dataclass(eq=False)
class Answer:
    """What was answered: an answer, or a refusal."""

    claim: str
    spoken: bool
    lists_citations: bool
    citations: list[Block]  # in order, as given
    citation_delta_s: list[Fraction | None]  # of each citation's own
    refused: bool
    grounded: bool | None
    echo: list[str] | None


@dataclass(eq=False)
class Record:
    """A gold item with the trace of one slot, or with none."""

    item: Item
    slot: Slot | None
    trace: Row | None
    chunks: Row
    missing: bool = False
    errored: bool = False
    earlier: frozenset[str] = frozenset()  # ids of hits in earlier turns

    @cached_property
    def hits(self) -> list[Block]:
        if self.trace is None or self.errored:
            return []
        only_doc = self.item.only_doc
        return [read_block(hit, self.chunks, only_doc) for hit in self.trace.get("topk") or []]

    @cached_property
    def hit_delta_s(self) -> list[Fraction | None]:
        """One for each hit: its own, else its place in the list of the trace."""
        if self.trace is None or self.errored:
            return []
        listed = self.trace.get("ΔS") or []
        values: list[Fraction | None] = []
        for place, hit in enumerate(self.trace.get("topk") or []):
            own = hit.get("ΔS")
            if own is None and place < len(listed):
                own = listed[place]
            values.append(None if own is None else Fraction(own))
        return values

    @cached_property
    def answer(self) -> Answer | None:
        if self.trace is None or self.errored:
            return None
        return read_answer(self.trace, self.chunks, self.item.only_doc)

    @property
    def said(self) -> Answer:
        """The answer of a record that has one."""
        assert self.answer is not None
        return self.answer

    @property
    def refused(self) -> bool:
        return self.answer is not None and self.answer.refused

    @property
    def answered(self) -> bool:
        return self.answer is not None and not self.answer.refused

    @property
    def citations(self) -> list[Block]:
        return [] if self.answer is None else self.answer.citations

    @property
    def cited_ids(self) -> set[str | None]:
        return {citation.id for citation in self.citations}

    @property
    def pieces(self) -> list[Block]:
        return self.item.pieces

    # Ranks begin with 1; None is not found.

    def rank_of(self, piece: Block) -> int | None:
        """Where the id stands, or where at least half of the span has been seen, if sooner."""
        seen: set[Byte] = set()
        for rank, hit in enumerate(self.hits, start=1):
            if piece.id is not None and hit.id == piece.id:
                return rank
            seen |= hit.bytes & piece.bytes
            if piece.bytes and 2 * len(seen) >= len(piece.bytes):
                return rank
        return None

    @cached_property
    def found(self) -> list[int]:
        """The ranks of the pieces that are found, lowest first."""
        ranks = (self.rank_of(piece) for piece in self.pieces)
        return sorted(rank for rank in ranks if rank is not None)

    @cached_property
    def relevant_ranks(self) -> dict[str | None, int]:
        """For each id of a relevant hit, the first rank at which it is relevant."""
        first: dict[str | None, int] = {}
        for rank, hit in enumerate(self.hits, start=1):
            if any(touches(hit, piece) for piece in self.pieces):
                first.setdefault(hit.id, rank)
        return first

    def relevant_within(self, k: int) -> int:
        """How many different ids among the first k hits are relevant."""
        return sum(rank <= k for rank in self.relevant_ranks.values())

    @property
    def sections_here(self) -> list[Block]:
        """The citations with a section that are not in another document than the anchor's."""
        docs = self.item.anchor_docs
        placed = [citation for citation in self.citations if citation.section is not None]
        return [c for c in placed if c.doc is None or not docs or c.doc in docs]

    @property
    def hit(self) -> bool:
        """C ∩ G is not empty."""
        return any(touches(cited, piece) for cited in self.citations for piece in self.pieces)

    @property
    def in_context(self) -> bool:
        """Every cited id is among the hits of this turn or of an earlier one."""
        return self.cited_ids <= {hit.id for hit in self.hits} | self.earlier

    @property
    def hit_in_scope(self) -> bool:
        nothing_to_cite = not self.pieces and not self.citations
        return self.item.expect != "refuse" and self.in_context and (self.hit or nothing_to_cite)

    @property
    def claim_contained(self) -> bool:
        wanted = self.item.row.get("gold_claim_substr")
        if wanted is None:
            return False
        if not wanted:
            return True
        claim = self.said.claim.strip().lower()
        needles = [substring.lower() for substring in wanted]
        return any(
            needle in claim if len(needle) >= SHORTEST_SUBSTRING else stands_alone(needle, claim)
            for needle in needles
        )

    @property
    def cited_delta_s(self) -> Fraction | None:
        """Of the first citation that has one: its own, else that of the first hit with its id."""
        if self.answer is None:
            return None
        for citation, own in zip(self.answer.citations, self.answer.citation_delta_s, strict=True):
            if own is not None:
                return own
            ids = [hit.id for hit in self.hits]
            if citation.id in ids:
                recorded = self.hit_delta_s[ids.index(citation.id)]
                if recorded is not None:
                    return recorded
        return None

    def delta_s_within(self, k: int | None) -> list[Fraction]:
        return [value for value in self.hit_delta_s[:k] if value is not None]

    @property
    def retrieve_ms(self) -> Fraction | None:
        return self._milliseconds((self.trace or {}).get("perf"), "t_retrieve_ms")

    @property
    def reason_ms(self) -> Fraction | None:
        return self._milliseconds((self.trace or {}).get("perf"), "t_reason_ms")

    @property
    def total_ms(self) -> Fraction | None:
        whole = self._milliseconds(self.trace, "latency_ms")
        if whole is not None:
            return whole
        if self.retrieve_ms is None or self.reason_ms is None:
            return None
        return self.retrieve_ms + self.reason_ms

    @staticmethod
    def _milliseconds(row: Row | None, name: str) -> Fraction | None:
        value = (row or {}).get(name)
        return None if value is None else Fraction(value)


def stands_alone(word: str, text: str) -> bool:
    """Whether a word is in a text with no letter or digit, nor a joined digit, beside it."""
    alone = rf"(?<![^\W_])(?<![0-9][.,]){re.escape(word.strip())}(?![^\W_])(?![.,][0-9])"
    return bool(word.strip()) and re.search(alone, text) is not None


def read_answer(trace: Row, chunks: Row, only_doc: str | None) -> Answer | None:
    """An answer has a claim, a citations list or a flag; anything else is none."""
    row = trace.get("answer_json") or {}
    claim, listed = row.get("claim"), row.get("citations")
    flag, grounded = row.get("refused"), row.get("grounded")
    if claim is None and flag is None and grounded is None and not isinstance(listed, list):
        return None
    if not isinstance(listed, list):
        in_text = LISTED_IN_TEXT.search(claim or "")
        listed = None
        if in_text:
            listed = [part for part in re.split(r"[,\s]+", in_text[1]) if part]
    if flag is not None:
        refused = bool(flag)
    elif grounded is not None:
        refused = not grounded
    else:
        refused = (claim or "").strip().lower() in (REFUSAL, *NATURAL_REFUSALS)
    entries = listed or []
    own = [entry.get("ΔS") if isinstance(entry, dict) else None for entry in entries]
    return Answer(
        claim=claim or "",
        spoken=claim is not None,
        lists_citations=listed is not None,
        citations=[read_block(entry, chunks, only_doc) for entry in entries],
        citation_delta_s=[None if value is None else Fraction(value) for value in own],
        refused=refused,
        grounded=grounded,
        echo=row.get("constraints_echo"),
    )


@dataclass(eq=False)
class Run:
    """All records, and what the join left over."""

    items: list[Item]
    records: list[Record]
    traces: int
    replaced: int
    unknown: int
    retrieved_ids: set[str]  # of any trace without error, scored or not
    any_answer: bool


def join(gold_rows: list[Row], trace_rows: list[Row], chunks: Row, items: list[Item]) -> Run:
    """Give each slot its last trace, and each item without a trace one missing record."""
    assert len(items) == len(gold_rows)
    by_key = {item.key: item for item in items}
    scored: dict[tuple[int, Slot], Record] = {}
    unknown = replaced = 0
    for trace in trace_rows:
        qid, turn = trace.get("qid"), trace.get("turn")
        item = by_key.get((qid, turn)) or by_key.get((qid, None))
        if item is None:
            unknown += 1
            continue
        paraphrase = trace.get("paraphrase")
        if paraphrase is None and trace.get("query") in item.paraphrases:
            paraphrase = item.paraphrases.index(trace["query"])
        slot = (qid, paraphrase, trace.get("seed"), turn)
        replaced += (id(item), slot) in scored
        scored[id(item), slot] = Record(item, slot, trace, chunks, errored=has_error(trace))

    records = list(scored.values())
    for record in records:
        record.earlier = frozenset(
            hit.id
            for other in records
            if _is_earlier(other, record)
            for hit in other.hits
            if hit.id
        )
    traced = {id(record.item) for record in records}
    for item in items:
        if id(item) not in traced:
            records.append(Record(item, None, None, chunks, missing=True))
    sound = [trace for trace in trace_rows if not has_error(trace)]
    return Run(
        items=items,
        records=records,
        traces=len(trace_rows),
        replaced=replaced,
        unknown=unknown,
        retrieved_ids={hit["id"] for trace in sound for hit in trace.get("topk") or []},
        any_answer=any(read_answer(trace, {}, None) is not None for trace in sound),
    )


def has_error(trace: Row) -> bool:
    return trace.get("error") is not None


def _is_earlier(other: Record, record: Record) -> bool:
    if other.slot is None or record.slot is None:
        return False
    (*other_question, other_turn), (*question, turn) = other.slot, record.slot
    if other_turn is None or turn is None:
        return False
    return other_question == question and other_turn < turn


# --- statistics -----------------------------------------------------------------------------------


def mean(values: Sequence[Fraction]) -> Fraction:
    return sum(values, Fraction(0)) / len(values)


def quantile(values: Sequence[Fraction], share: Fraction) -> Fraction:
    """Interpolated linearly between the two nearest of the ordered values."""
    ordered = sorted(values)
    place = share * (len(ordered) - 1)
    below = math.floor(place)
    above = min(below + 1, len(ordered) - 1)
    return ordered[below] + (place - below) * (ordered[above] - ordered[below])


def median(values: Sequence[Fraction]) -> Fraction:
    return quantile(values, Fraction(1, 2))


def p90(values: Sequence[Fraction]) -> Fraction:
    return quantile(values, Fraction(9, 10))


def p95(values: Sequence[Fraction]) -> Fraction:
    return quantile(values, Fraction(19, 20))


def edit_distance(one: str, other: str) -> int:
    """The fewest insertions, deletions and replacements of characters."""
    table = [[max(row, column) for column in range(len(other) + 1)] for row in range(len(one) + 1)]
    for row, column in itertools.product(range(1, len(one) + 1), range(1, len(other) + 1)):
        table[row][column] = min(
            table[row - 1][column] + 1,
            table[row][column - 1] + 1,
            table[row - 1][column - 1] + (one[row - 1] != other[column - 1]),
        )
    return table[-1][-1]


def tau_b(one: Sequence[int], other: Sequence[int]) -> Fraction | None:
    """Kendall's tau-b; ranks within a list never tie here, but the formula does not rely on it."""
    agree = tied_one = tied_other = pairs = 0
    for left, right in itertools.combinations(range(len(one)), 2):
        first, second = one[left] - one[right], other[left] - other[right]
        pairs += 1
        tied_one += first == 0
        tied_other += second == 0
        agree += (first * second > 0) - (first * second < 0)
    if pairs in (tied_one, tied_other):
        return None
    if tied_one == tied_other:
        return Fraction(agree, pairs - tied_one)
    return Fraction(agree / math.sqrt((pairs - tied_one) * (pairs - tied_other)))


# --- metrics over records -------------------------------------------------------------------------

Test = Callable[[Record], bool]
Value = Callable[[Record], Fraction | int | bool]
Aggregate = Callable[[Sequence[Fraction]], Fraction]


@dataclass(frozen=True)
class Reason:
    """Why a record is not in a population."""

    name: str
    applies: Test


MISSING = Reason("missing", lambda r: r.missing)
ERRORED = Reason("errored", lambda r: r.errored)
NO_ANSWER = Reason("no-answer", lambda r: r.answer is None)
UNLABELLED = Reason("unlabelled", lambda r: r.item.expect is None)
UNANSWERABLE = Reason("unanswerable", lambda r: r.item.expect == "refuse")
ANSWERABLE = Reason("answerable", lambda r: r.item.expect == "answer")
REFUSED = Reason("refused", lambda r: r.refused)
# `grounded` decides where it is given; an answer without it must not be a refusal.
NOT_GROUNDED = Reason(
    "refused", lambda r: r.refused if r.said.grounded is None else not r.said.grounded
)
NO_CITATIONS = Reason("no-citations", lambda r: not r.citations)
NO_EVIDENCE = Reason("no-evidence", lambda r: not r.pieces)
NO_GAIN = Reason("no-gain", lambda r: not r.item.gains)
NO_DOCS = Reason("no-docs", lambda r: not r.item.expected_docs)
NO_GROUPS = Reason("no-groups", lambda r: not r.item.groups)
NO_ANCHOR = Reason("no-anchor", lambda r: r.item.anchor is None)
NO_NEGATIVES = Reason("no-negatives", lambda r: not r.item.negatives)
NO_CLAIMS = Reason("no-claims", lambda r: not r.item.row.get("gold_claim_substr"))
NO_STRINGS = Reason(
    "no-strings", lambda r: not (r.item.row.get("must_contain") or r.item.row.get("forbidden"))
)
NO_CONSTRAINTS = Reason("no-constraints", lambda r: not r.item.row.get("constraints"))
NO_ECHO = Reason("no-echo", lambda r: r.said.echo is None)
NO_SPANS = Reason("no-spans", lambda r: not r.item.gold_bytes)
NO_HITS = Reason("no-hits", lambda r: not r.hits)
NO_SECTION = Reason("no-section", lambda r: all(c.section is None for c in r.citations))

OTHER_DOCUMENT = Reason(
    "other-document",
    lambda r: any(c.section is not None for c in r.citations) and not r.sections_here,
)

TRACED = (MISSING, ERRORED)
WITH_ANSWER = (*TRACED, NO_ANSWER)
ANSWERED = (*WITH_ANSWER, REFUSED)
SHOULD_ANSWER = (UNLABELLED, UNANSWERABLE)
SHOULD_REFUSE = (UNLABELLED, ANSWERABLE)


@dataclass(frozen=True)
class Metric:
    """A value per record, the records that are left out, and how questions are put together."""

    id: str
    left_out: tuple[Reason, ...]
    value: Value
    aggregate: Aggregate = mean


def retrieval_metrics(k: int) -> list[Metric]:
    """Missing and errored records stay in: they have no hits."""

    def ndcg(record: Record) -> Fraction:
        gained = [(record.rank_of(piece), gain) for piece, gain in record.item.gains]
        dcg = [gain / log2(rank + 1) for rank, gain in gained if rank is not None and rank <= k]
        ideal = sorted((gain for _, gain in gained), reverse=True)[:k]
        best = [gain / log2(rank + 1) for rank, gain in enumerate(ideal, start=1)]
        return min(Fraction(1), sum(dcg, Fraction(0)) / sum(best, Fraction(0)))

    def average_precision(record: Record) -> Fraction:
        precisions = [
            min(Fraction(1), Fraction(number, rank))
            for number, rank in enumerate(record.found, start=1)
            if rank <= k
        ]
        return sum(precisions, Fraction(0)) / len(record.pieces)

    def docs_covered(record: Record) -> Fraction:
        seen = {hit.doc for hit in record.hits[:k]}
        return share(record.item.expected_docs & seen, record.item.expected_docs)

    def groups_satisfied(record: Record) -> Fraction:
        satisfied = [
            any((record.rank_of(member) or math.inf) <= k for member in group)
            for group in record.item.groups
        ]
        return Fraction(sum(satisfied), len(satisfied))

    def negatives_share(record: Record) -> Fraction:
        top = record.hits[:k]
        return share(record.item.negatives & {hit.id for hit in top}, top)

    def found(record: Record) -> int:
        return sum(rank <= k for rank in record.found)

    labelled = (NO_EVIDENCE,)
    return [
        Metric(
            f"retrieval.precision@{k}",
            (NO_EVIDENCE, NO_HITS),
            lambda r: Fraction(r.relevant_within(k), len(r.hits[:k])),
        ),
        Metric(
            f"retrieval.precision_at_cutoff@{k}",
            labelled,
            lambda r: Fraction(r.relevant_within(k), k),
        ),
        Metric(f"retrieval.recall@{k}", labelled, lambda r: Fraction(found(r), len(r.pieces))),
        Metric(
            f"retrieval.recall_all@{k}",
            (*SHOULD_ANSWER, NO_EVIDENCE),
            lambda r: found(r) == len(r.pieces),
        ),
        Metric(f"retrieval.hit@{k}", labelled, lambda r: found(r) > 0),
        Metric(f"retrieval.ndcg@{k}", (NO_EVIDENCE, NO_GAIN), ndcg),
        Metric(f"retrieval.map@{k}", labelled, average_precision),
        Metric(f"retrieval.recall_doc@{k}", (NO_DOCS,), docs_covered),
        Metric(f"retrieval.hit_doc@{k}", (NO_DOCS,), lambda r: docs_covered(r) > 0),
        Metric(f"retrieval.group_recall@{k}", (NO_GROUPS,), groups_satisfied),
        Metric(
            f"retrieval.anchor_hit@{k}",
            (NO_ANCHOR,),
            lambda r: any(r.item.in_anchor(hit) for hit in r.hits[:k]),
        ),
        Metric(f"retrieval.negative@{k}", (NO_EVIDENCE, NO_NEGATIVES, NO_HITS), negatives_share),
        *span_metrics(k),
    ]


def span_metrics(k: int) -> list[Metric]:
    def retrieved(record: Record) -> frozenset[Byte]:
        return all_bytes(record.hits[:k])

    def covered(record: Record) -> frozenset[Byte]:
        return retrieved(record) & record.item.gold_bytes

    nothing_retrieved = Reason("no-spans", lambda r: not retrieved(r))
    return [
        Metric(
            f"retrieval.span_recall@{k}",
            (NO_SPANS,),
            lambda r: share(covered(r), r.item.gold_bytes),
        ),
        Metric(
            f"retrieval.span_precision@{k}",
            (NO_SPANS, nothing_retrieved),
            lambda r: share(covered(r), retrieved(r)),
        ),
        Metric(
            f"retrieval.span_iou@{k}",
            (NO_SPANS,),
            lambda r: share(covered(r), retrieved(r) | r.item.gold_bytes),
        ),
    ]


def log2(number: int) -> Fraction:
    return Fraction(math.log2(number))


def share(part: Iterable[Any], whole: Iterable[Any]) -> Fraction:
    return Fraction(len(list(part)), len(list(whole)))


def uncut_retrieval_metrics() -> list[Metric]:
    def reciprocal_rank(record: Record) -> Fraction:
        first = record.found[0] if record.found else math.inf
        return Fraction(1, int(first)) if first <= MRR_CUT else Fraction(0)

    def reciprocal_rank_of_document(record: Record) -> Fraction:
        for rank, hit in enumerate(record.hits[:MRR_CUT], start=1):
            if hit.doc in record.item.expected_docs:
                return Fraction(1, rank)
        return Fraction(0)

    def negative_above(record: Record) -> bool:
        ranks = [n for n, hit in enumerate(record.hits) if hit.id in record.item.negatives]
        first_negative = ranks[0] + 1 if ranks else math.inf
        return first_negative < (record.found[0] if record.found else math.inf)

    def r_precision(record: Record) -> Fraction:
        size = len(record.pieces)
        return Fraction(record.relevant_within(size), size)

    return [
        Metric(f"retrieval.mrr@{MRR_CUT}", (NO_EVIDENCE,), reciprocal_rank),
        Metric(f"retrieval.mrr_doc@{MRR_CUT}", (NO_DOCS,), reciprocal_rank_of_document),
        Metric("retrieval.r_precision", (NO_EVIDENCE,), r_precision),
        Metric("retrieval.negative_above", (NO_EVIDENCE, NO_NEGATIVES), negative_above),
        Metric("retrieval.empty", TRACED, lambda r: not r.hits),
    ]


def answer_metrics(ignore_case: bool) -> list[Metric]:
    def comparable(text: str) -> str:
        text = unicodedata.normalize("NFC", text)
        return text.casefold() if ignore_case else text

    def strings_respected(record: Record) -> bool:
        text = comparable(record.said.claim)
        wanted = record.item.row.get("must_contain") or []
        unwanted = record.item.row.get("forbidden") or []
        return all(comparable(string) in text for string in wanted) and not any(
            comparable(string) in text for string in unwanted
        )

    def constraints_echoed(record: Record) -> bool:
        echoed = {element.strip() for element in record.said.echo or []}
        return all(constraint.strip() in echoed for constraint in record.item.row["constraints"])

    return [
        Metric("answer.precision", ANSWERED, lambda r: r.item.expect == "answer" and r.hit),
        Metric(
            "answer.grounded_precision",
            ANSWERED,
            lambda r: r.item.expect == "answer" and r.claim_contained and r.hit_in_scope,
        ),
        Metric(
            "answer.claim_containment",
            (*WITH_ANSWER, *SHOULD_ANSWER, NO_CLAIMS),
            lambda r: r.answered and r.claim_contained,
        ),
        Metric("answer.groundedness", (*WITH_ANSWER, NO_STRINGS), strings_respected),
        Metric("answer.groundedness_labelled", (*WITH_ANSWER, NO_STRINGS), strings_respected),
        Metric("answer.compliance", WITH_ANSWER, lambda r: r.said.lists_citations or r.refused),
        Metric(
            "answer.constraints_echoed",
            (*WITH_ANSWER, NO_CONSTRAINTS, NO_ECHO),
            constraints_echoed,
        ),
        Metric(
            "answer.coverage",
            (*WITH_ANSWER, *SHOULD_ANSWER),
            lambda r: r.hit or any(r.item.in_anchor(citation) for citation in r.citations),
        ),
        Metric("refusal.over", (*WITH_ANSWER, *SHOULD_ANSWER), lambda r: r.refused),
        Metric("refusal.under", (*WITH_ANSWER, *SHOULD_REFUSE), lambda r: r.answered),
        Metric("refusal.correct", (*WITH_ANSWER, *SHOULD_REFUSE), lambda r: r.refused),
    ]


def citation_metrics(run: Run, chunks: Row, mode: str, window: int) -> list[Metric]:
    known_ids = set(chunks) or run.retrieved_ids

    def agrees(citation: Block, piece: Block) -> bool:
        if not citation.bytes or not piece.bytes or citation.doc != piece.doc:
            return False
        if None not in (citation.section, piece.section) and citation.section != piece.section:
            return False
        assert piece.start is not None
        assert piece.end is not None
        room = {(piece.doc, b) for b in range(piece.start - window, piece.end + window)}
        if mode == "within":
            return citation.bytes <= room and bool(citation.bytes & piece.bytes)
        return bool(citation.bytes & room)

    def precision(record: Record) -> Fraction:
        # Places where evidence has places, else ids: one chunk cited at two places is two then.
        placed = any(piece.bytes for piece in record.item.all_pieces)
        hitting: set[Any] = set()
        cited: set[Any] = set()
        for citation in record.citations:
            name = (citation.identity, citation.section) if placed else citation.id
            cited.add(name)
            if any(touches(citation, piece) for piece in record.pieces):
                hitting.add(name)
        return share(hitting, cited)

    def recall(record: Record) -> Fraction:
        reached = [
            piece
            for piece in record.pieces
            if any(touches(cited, piece) for cited in record.citations)
        ]
        return share(reached, record.pieces)

    def distance(record: Record) -> Fraction:
        anchor = record.item.anchor
        assert anchor is not None
        placed = {(c.identity, c.section or ()) for c in record.sections_here}
        return mean([Fraction(tree_distance(section, anchor)) for _, section in placed])

    return [
        Metric("citation.hit_rate", ANSWERED, lambda r: r.hit_in_scope),
        Metric(
            "citation.hit_rate_answerable",
            (*WITH_ANSWER, *SHOULD_ANSWER),
            lambda r: r.answered and r.hit,
        ),
        Metric(
            "citation.accuracy",
            (*ANSWERED, NO_CITATIONS, NO_SPANS),
            lambda r: any(agrees(cited, piece) for cited in r.citations for piece in r.pieces),
        ),
        Metric("citation.precision", (*WITH_ANSWER, NO_CITATIONS, NO_EVIDENCE), precision),
        Metric("citation.recall", (*ANSWERED, NO_EVIDENCE), recall),
        Metric("citation.in_context", (*WITH_ANSWER, NO_CITATIONS), lambda r: r.in_context),
        Metric(
            "citation.coverage",
            (*WITH_ANSWER, NOT_GROUNDED, NO_CITATIONS),
            lambda r: r.cited_ids <= known_ids,
        ),
        Metric(
            "citation.resolved",
            (*WITH_ANSWER, NOT_GROUNDED),
            lambda r: bool(r.citations) and r.cited_ids <= known_ids,
        ),
        Metric(
            "citation.anchor_distance",
            (*WITH_ANSWER, NO_CITATIONS, NO_ANCHOR, OTHER_DOCUMENT, NO_SECTION),
            distance,
        ),
    ]


def measured_metrics() -> list[Metric]:
    """Distances and times: what was recorded, put together by medians and percentiles."""
    no_cited = Reason("no-delta-s", lambda r: r.cited_delta_s is None)
    cited = (*TRACED, NO_CITATIONS, no_cited)
    metrics = [
        Metric("semantic.delta_s_cited", cited, lambda r: r.cited_delta_s or 0, median),
        Metric("semantic.delta_s_cited_p90", cited, lambda r: r.cited_delta_s or 0, p90),
    ]
    for suffix, cut in (("", None), (f"@{DELTA_S_CUT}", DELTA_S_CUT)):
        metrics += delta_s_metrics(suffix, cut)
    times: dict[str, Callable[[Record], Fraction | None]] = {
        "retrieve": lambda r: r.retrieve_ms,
        "reason": lambda r: r.reason_ms,
        "total": lambda r: r.total_ms,
    }
    for name, time in times.items():
        metrics += time_metrics(f"latency.{name}_ms", time)
    return metrics


def delta_s_metrics(suffix: str, cut: int | None) -> list[Metric]:
    none_recorded = Reason("no-delta-s", lambda r: not r.delta_s_within(cut))
    left_out = (*TRACED, none_recorded)
    return [
        Metric(
            f"semantic.delta_s_hits{suffix}",
            left_out,
            lambda r: median(r.delta_s_within(cut)),
            median,
        ),
        Metric(
            f"semantic.delta_s_hits_p90{suffix}",
            left_out,
            lambda r: p90(r.delta_s_within(cut)),
            median,
        ),
    ]


def time_metrics(name: str, time: Callable[[Record], Fraction | None]) -> list[Metric]:
    left_out = (*TRACED, Reason("no-time", lambda r: time(r) is None))
    return [
        Metric(name, left_out, lambda r: time(r) or 0, median),
        Metric(f"{name}_p95", left_out, lambda r: time(r) or 0, p95),
    ]


def over_records(metric: Metric, records: Iterable[Record], missing: str) -> Result:
    """Slots of a question first, then questions."""
    reasons = metric.left_out
    if missing == "exclude":
        reasons = (*TRACED, *reasons)
    of_question: dict[int, list[Fraction]] = {}
    excluded: Counter[str] = Counter()
    for record in records:
        reason = next((reason.name for reason in reasons if reason.applies(record)), None)
        if reason:
            excluded[reason] += 1
        else:
            value = Fraction(metric.value(record))
            of_question.setdefault(id(record.item), []).append(value)
    means = [mean(values) for values in of_question.values()]
    whole = float(metric.aggregate(means)) if means else None
    return Result(whole, len(means), sum(map(len, of_question.values())), dict(excluded))


# --- metrics over the whole run -------------------------------------------------------------------


def refusal_f1(records: Iterable[Record]) -> Result:
    """A refusal is the positive; the slots of a question share its one vote."""
    excluded: Counter[str] = Counter()
    of_question: dict[int, list[Record]] = {}
    for record in records:
        reasons = (*WITH_ANSWER, UNLABELLED)
        reason = next((reason.name for reason in reasons if reason.applies(record)), None)
        if reason:
            excluded[reason] += 1
        else:
            of_question.setdefault(id(record.item), []).append(record)
    true_positive = false_positive = false_negative = Fraction(0)
    for slots in of_question.values():
        refused = mean([Fraction(record.refused) for record in slots])
        if slots[0].item.expect == "refuse":
            true_positive += refused
            false_negative += 1 - refused
        else:
            false_positive += refused
    whole = 2 * true_positive + false_positive + false_negative
    value = float(2 * true_positive / whole) if whole else None
    return Result(value, len(of_question), sum(map(len, of_question.values())), dict(excluded))


def run_metrics(run: Run) -> dict[str, Result]:
    of_item: dict[int, list[Record]] = {}
    for record in run.records:
        of_item.setdefault(id(record.item), []).append(record)

    def over_items(test: Test) -> Result:
        shares = [mean([Fraction(test(r)) for r in records]) for records in of_item.values()]
        value = float(mean(shares)) if shares else None
        return Result(value, len(shares), len(run.records), {})

    def over_traces(count: int) -> Result:
        value = count / run.traces if run.traces else None
        return Result(value, run.traces, run.traces, {})

    return {
        "run.missing": over_items(lambda r: r.missing),
        "run.errored": over_items(lambda r: r.errored),
        "run.duplicate": over_traces(run.replaced),
        "run.unknown": over_traces(run.unknown),
    }


# --- stability ------------------------------------------------------------------------------------


@dataclass(eq=False)
class Question:
    """An item with all its slots."""

    item: Item
    slots: list[Record]
    index_only: bool  # no trace of the run has an answer

    @property
    def why_not(self) -> str | None:
        """Why nothing can be said about stability."""
        if not self.slots or self.slots[0].missing:
            return "missing"
        return "one-slot" if len(self.slots) == 1 else None

    @property
    def why_no_state(self) -> str | None:
        if self.why_not:
            return self.why_not
        if self.item.expect == "refuse":
            return "unanswerable" if self.index_only else None
        return None if self.item.pieces else "no-evidence"

    @property
    def state(self) -> str:
        """λ from what the slots did."""
        if self.item.expect == "refuse":
            refusals = [slot.refused for slot in self.slots]
            if all(refusals):
                return "→"
            return "<>" if any(refusals) else "×"
        if self.index_only:
            hits = [any(rank <= LAMBDA_CUT for rank in slot.found) for slot in self.slots]
            silent = [not slot.hits for slot in self.slots]
        else:
            hits = [slot.answered and slot.hit for slot in self.slots]
            silent = [slot.refused or not slot.citations for slot in self.slots]
        if all(hits):
            return "→"
        if any(hits):
            return "<>"
        return "←" if all(silent) else "×"

    @property
    def recorded_state(self) -> str | None:
        """What the traces of the slots say, where they say it."""
        traces = [slot.trace or {} for slot in self.slots if not slot.errored]
        states = {trace["λ_state"] for trace in traces if trace.get("λ_state") is not None}
        if len(states) > 1:
            return "<>"
        return states.pop() if states else None

    @property
    def citation_jaccard(self) -> Fraction | None:
        sets = [slot.cited_ids for slot in self.slots]
        union = set[str | None]().union(*sets)
        return share(set.intersection(*sets), union) if union else None

    @property
    def refusal_consistency(self) -> Fraction | None:
        refusals = [Fraction(slot.refused) for slot in self.slots if slot.answer is not None]
        return max(mean(refusals), 1 - mean(refusals)) if refusals else None

    @property
    def claim_distance(self) -> Fraction | None:
        claims = [slot.said.claim for slot in self.slots if slot.answered and slot.said.spoken]
        distances = [
            Fraction(edit_distance(one, other), max(len(one), len(other)))
            for one, other in itertools.combinations(claims, 2)
            if one or other  # two empty claims are 0/0
        ]
        return median(distances) if distances else None

    @property
    def rank_tau(self) -> Fraction | None:
        taus = []
        for one, other in itertools.combinations(self.slots, 2):
            left = [hit.id for hit in one.hits[:TAU_CUT]]
            right = [hit.id for hit in other.hits[:TAU_CUT]]
            common = sorted(set(left) & set(right), key=left.index)
            tau = tau_b([left.index(c) for c in common], [right.index(c) for c in common])
            if tau is not None:
                taus.append(tau)
        return mean(taus) if taus else None


def stability_metrics(run: Run, missing: str) -> dict[str, Result]:
    """Each question is one; `excluded` counts questions here."""
    questions = []
    for item in run.items:
        slots = [record for record in run.records if record.item is item]
        if missing == "exclude":
            slots = [record for record in slots if not record.errored]
        questions.append(Question(item, slots, not run.any_answer))

    def over_questions(
        why_not: Callable[[Question], str | None], value: Callable[[Question], Fraction | bool]
    ) -> Result:
        excluded = Counter(why_not(question) for question in questions)
        rest = [question for question in questions if why_not(question) is None]
        number = float(mean([Fraction(value(question)) for question in rest])) if rest else None
        reasons = {reason: count for reason, count in excluded.items() if reason}
        return Result(number, len(rest), sum(len(question.slots) for question in rest), reasons)

    def of_states(test: Callable[[str], bool]) -> Result:
        return over_questions(lambda q: q.why_no_state, lambda q: test(q.state))

    def of_values(value: Callable[[Question], Fraction | None], without: str) -> Result:
        def why_not(question: Question) -> str | None:
            return question.why_not or (without if value(question) is None else None)

        return over_questions(why_not, lambda question: value(question) or Fraction(0))

    results = {
        "stability.flip_rate": of_states(lambda state: state != "→"),
        "stability.lambda_disagreement": over_questions(
            lambda q: q.why_no_state or (None if q.recorded_state else "no-lambda"),
            lambda q: q.state != q.recorded_state,
        ),
        "stability.citation_jaccard": of_values(lambda q: q.citation_jaccard, "no-citations"),
        "stability.refusal_consistency": of_values(lambda q: q.refusal_consistency, "no-answer"),
        "stability.claim_distance": of_values(lambda q: q.claim_distance, "no-pairs"),
        "stability.rank_tau": of_values(lambda q: q.rank_tau, "no-pairs"),
    }
    for state, name in STATES.items():
        results[name] = of_states(state.__eq__)
    return results


# --- the whole ------------------------------------------------------------------------------------


def evaluate(
    gold_rows: list[Row],
    trace_rows: list[Row],
    *,
    ks: Sequence[int] = (1, 3, 5, 10),
    rules: str = "all",
    chunks: Row | None = None,
    citation_mode: str = "within",
    window: int = 30,
    missing: str = "count",
    ignore_case: bool = False,
    relevance_level: int = 1,
) -> dict[str, Result]:
    """Return every metric by id.

    `chunks` maps ids to `{doc, start, end}` (and `section`, if known). `citation_mode` is `within`
    (the cited span lies inside the widened gold span and overlaps the gold span) or `overlap` (it
    overlaps the widened gold span). `missing` is `count` or `exclude`.
    """
    blocks = chunks or {}
    items = [read_item(row, blocks, rules, relevance_level) for row in gold_rows]
    run = join(gold_rows, trace_rows, blocks, items)
    metrics = [
        *itertools.chain.from_iterable(retrieval_metrics(k) for k in ks),
        *uncut_retrieval_metrics(),
        *answer_metrics(ignore_case),
        *citation_metrics(run, blocks, citation_mode, window),
        *measured_metrics(),
    ]
    results = {metric.id: over_records(metric, run.records, missing) for metric in metrics}
    results["refusal.f1"] = refusal_f1(run.records)
    return {**results, **run_metrics(run), **stability_metrics(run, missing)}
