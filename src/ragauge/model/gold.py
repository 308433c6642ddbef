"""Gold: what is known of the right answer to a question."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Literal

from msgspec import Struct

from ragauge.spans import Span

Expect = Literal["answer", "refuse"]
ClaimRule = Literal["substring", "phrase"]
Grain = Literal["evidence", "chunk"]
GRAINS: tuple[Grain, ...] = ("evidence", "chunk")


class NarrowedFrom(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The chunk that evidence was narrowed from: its id and place.

    Where its question was drawn at random: one of `drawn` out of `of` open ones, by that seed.
    """

    spans: tuple[Span, ...]
    id: str | None = None
    drawn: int | None = None
    of: int | None = None
    seed: int | None = None


class Anchor(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Evidence as a place in a document, so that any chunking can be scored against it.

    `id` is the block that it came from, where that is known; `quote` is the text at the place.
    `grain` says whether a person chose the place as the evidence, or whether it is that of a chunk
    which holds the evidence somewhere; where nothing says so, a place with an id is a chunk.
    """

    doc: str
    spans: tuple[Span, ...]
    id: str | None = None
    section: str | None = None
    quote: str | None = None
    grain: Grain | None = None
    narrowed_from: NarrowedFrom | None = None

    @property
    def is_chunk(self) -> bool:
        """Whether the evidence stands somewhere in this place, and nobody said where."""
        return self.grain == "chunk" or (self.grain is None and self.id is not None)


class GoldItem(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A question and what its answer must do; fields that nothing reads stay in `extra`.

    Evidence is `relevant` (ids) and `anchors` (places). `places` are known places of the evidence
    that are no evidence of their own: they serve span metrics and citation accuracy. An absent
    `relevant_docs` says nothing, an empty one says that no document holds an answer. Hard negatives
    are `negatives` (ids) and `negative_places`, of which those without spans are quotes.
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
    negative_places: tuple[Anchor, ...] = ()
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


CHUNKS_ONLY = "this gold will not survive a new chunker: `ragauge gold pin --narrow`"
"""What is said of a gold set whose evidence is whole chunks."""


def names_chunks_only(items: Iterable[GoldItem]) -> bool:
    """Whether all evidence of a gold set is whole chunks; not where it names none."""
    any_chunk = False
    for item in items:
        pieces = (*item.relevant, *item.anchors, *item.grades)
        pieces += tuple(member for group in item.groups for member in group)
        if any(isinstance(piece, Anchor) and not piece.is_chunk for piece in pieces):
            return False
        any_chunk = any_chunk or bool(pieces)
    return any_chunk


class GoldSet(Struct, frozen=True, kw_only=True):
    """The items of a gold file in file order, with the file they came from."""

    items: tuple[GoldItem, ...]
    name: str
    dialect: str
    notes: tuple[str, ...] = ()
    skipped: int = 0
