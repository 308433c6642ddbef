"""Early reduction: a trace and its gold item become a handful of integers.

Every set and rank metric derives from these columns, so no metric loops over traces. The columns
are plain arrays: a worker needs neither numpy nor the metrics.
"""

from __future__ import annotations

import re
from array import array
from collections.abc import Iterable, Sequence

from msgspec import Struct

from ragauge.model.facts import Fact
from ragauge.model.gold import GoldItem
from ragauge.model.profile import JoinRules
from ragauge.model.trace import SlotKey, Trace
from ragauge.text import REFUSAL_TOKEN, normalise, phrase_needles, substring_needles


class GoldKey(Struct, frozen=True, array_like=True):
    """What reduction needs to know of one gold item."""

    relevant: tuple[str, ...]
    needles: tuple[str, ...]
    vacuous: bool
    constraints: frozenset[str]


def gold_key(item: GoldItem) -> GoldKey:
    """Prepare a gold item for reduction.

    An empty list of claim substrings is contained in any claim; an absent one in none.
    """
    claims = item.claims_any or ()
    by_phrase = item.claim_rule == "phrase"
    return GoldKey(
        relevant=tuple(dict.fromkeys(item.relevant)),
        needles=phrase_needles(claims) if by_phrase else substring_needles(claims),
        vacuous=item.claims_any == () and not by_phrase,
        constraints=frozenset(each.strip() for each in item.constraints),
    )


class Columns:
    """Growing columns, one entry a record; `ranks` holds the found evidence of all records.

    `found[i]` entries of `ranks` belong to record i: the 0-based rank of the first occurrence of
    each piece of evidence among its hits.
    """

    NAMES = ("question", "slot", "line", "facts", "hits", "found", "cited", "ranks")

    def __init__(self) -> None:
        self.question = array("i")
        self.slot = array("i")
        self.line = array("i")
        self.facts = array("i")
        self.hits = array("i")
        self.found = array("i")
        self.cited = array("i")
        self.ranks = array("i")

    def to_bytes(self) -> tuple[bytes, ...]:
        """Give the columns as bytes, in the order of NAMES."""
        return tuple(getattr(self, name).tobytes() for name in self.NAMES)


class Reducer:
    """Turns traces into columns for one gold set under one profile's rules."""

    def __init__(
        self, keys: Sequence[GoldKey], rules: JoinRules, *, patterns: Iterable[str] = ()
    ) -> None:
        self.keys = keys
        self.declared = rules.refusal == "declared"
        self.patterns = [re.compile(pattern, re.IGNORECASE) for pattern in patterns]
        self.columns = Columns()
        self.slots: dict[SlotKey, int] = {}

    def take(self) -> tuple[Columns, list[SlotKey]]:
        """Hand over the columns gathered so far, and begin anew."""
        columns, slots = self.columns, list(self.slots)
        self.columns = Columns()
        self.slots = {}
        return columns, slots

    def add_trace(self, question: int, trace: Trace, line: int) -> None:
        """Reduce a trace of the model."""
        answer = trace.answer
        said: str | None = None
        citations: Sequence[str] | None = None
        facts = int(Fact.ERRORED) if trace.error is not None else 0
        if answer is not None:
            said, citations = answer.said, answer.citations
            facts |= self._declared(question, answer.refused, answer.grounded, said)
            if answer.odd_citations:
                facts |= Fact.ODD_CITATIONS
            if said is not None or citations is not None:
                facts |= Fact.ANSWER
            if answer.constraints_echo is not None:
                facts |= Fact.ECHO
                echoed = {each.strip() for each in answer.constraints_echo}
                if self.keys[question].constraints <= echoed:
                    facts |= Fact.ECHOED
        slot = (trace.paraphrase, trace.seed, trace.turn)
        self.add(question, slot, line, [hit.id for hit in trace.hits], said, citations, facts)

    def _declared(
        self, question: int, refused: bool | None, grounded: bool | None, said: str | None
    ) -> int:
        facts = 0
        if refused is not None or grounded is not None:
            facts |= Fact.ANSWER
        if not self.declared:
            return int(facts)
        if refused is not None:
            # BY_FLAG alone, without REFUSED: the trace says that this is no refusal.
            facts |= Fact.BY_FLAG | (Fact.REFUSED if refused else 0)
        elif grounded is False:
            facts |= Fact.BY_GROUNDED | Fact.REFUSED
        elif said is not None and normalise(said) != REFUSAL_TOKEN:
            if any(pattern.search(said) for pattern in self.patterns):
                facts |= Fact.BY_PATTERN | Fact.REFUSED
        return int(facts)

    def add(
        self,
        question: int,
        slot: SlotKey,
        line: int,
        hits: Sequence[str],
        said: str | None,
        citations: Sequence[str] | None,
        facts: int = 0,
    ) -> None:
        """Reduce one record. This is the inner loop: plain integers, no enum arithmetic."""
        key = self.keys[question]
        columns = self.columns
        unique = set(hits)
        found = 0
        for each in key.relevant:
            if each in unique:
                columns.ranks.append(hits.index(each))
                found += 1
        count = len(hits)
        if len(unique) != count:
            facts |= 65536  # REPEATED
        lowered = ""
        if said is not None:
            lowered = said.strip().lower()
            if lowered == REFUSAL_TOKEN and not facts & 12288:  # BY_FLAG | BY_GROUNDED
                facts |= 2052  # BY_TOKEN | REFUSED
        if key.vacuous:
            facts |= 128  # CONTAINED
        else:
            for needle in key.needles:
                if needle in lowered:
                    facts |= 128
                    break
        cited = 0
        if citations is None:
            if not facts & 256:  # ODD_CITATIONS
                facts |= 64  # IN_CONTEXT: nothing is cited from elsewhere
        else:
            facts |= 8  # LISTED
            cites = set(citations)
            cited = len(cites)
            if cited:
                facts |= 16  # CITED
                if not cites.isdisjoint(key.relevant):
                    facts |= 32  # CITED_RELEVANT
            if cites <= unique:
                facts |= 64
        code = self.slots.get(slot)
        if code is None:
            code = self.slots[slot] = len(self.slots)
        columns.question.append(question)
        columns.slot.append(code)
        columns.line.append(line)
        columns.facts.append(facts)
        columns.hits.append(count)
        columns.found.append(found)
        columns.cited.append(cited)
