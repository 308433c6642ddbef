"""Gold: what is known of the right answer to a question."""

from __future__ import annotations

from typing import Any, Literal

from msgspec import Struct

from ragauge.spans import Span

Expect = Literal["answer", "refuse"]
ClaimRule = Literal["substring", "phrase"]


class Anchor(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Evidence as a place in a document, so that any chunking can be scored against it.

    `id` is the block that it came from, where that is known; `quote` is the text at the place.
    """

    doc: str
    spans: tuple[Span, ...]
    id: str | None = None
    section: str | None = None
    quote: str | None = None


class GoldItem(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A question and what its answer must do; fields that nothing reads stay in `extra`.

    Evidence is `relevant` (ids) and `anchors` (places). `places` are known places of the evidence
    that are no evidence of their own: they serve span metrics and citation accuracy. An absent
    `relevant_docs` says nothing, an empty one says that no document holds an answer.
    `references` are right answers, any of which is enough.
    """

    qid: str
    turn: int | None = None
    question: str | None = None
    paraphrases: tuple[str, ...] = ()
    expect: Expect | None = None
    relevant: tuple[str, ...] = ()
    anchors: tuple[Anchor, ...] = ()
    places: tuple[Anchor, ...] = ()
    relevant_docs: tuple[str, ...] | None = None
    groups: tuple[tuple[str | Anchor, ...], ...] = ()
    grades: dict[str, float] = {}
    anchor_section: str | None = None
    negatives: tuple[str, ...] = ()
    decoy_section: str | None = None
    claims_any: tuple[str, ...] | None = None
    claim_rule: ClaimRule = "substring"
    references: tuple[str, ...] = ()
    must_contain: tuple[str, ...] = ()
    forbidden: tuple[str, ...] = ()
    constraints: tuple[str, ...] = ()
    type: str | None = None
    tags: tuple[str, ...] = ()
    group: str | None = None
    difficulty: str | None = None
    lang: str | None = None
    extra: dict[str, Any] = {}
    line: int | None = None


class GoldSet(Struct, frozen=True, kw_only=True):
    """The items of a gold file in file order, with the file they came from."""

    items: tuple[GoldItem, ...]
    name: str
    dialect: str
    notes: tuple[str, ...] = ()
    skipped: int = 0
