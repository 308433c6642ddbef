"""Gold: what is known of the right answer to a question."""

from __future__ import annotations

from typing import Any, Literal

from msgspec import Struct

Expect = Literal["answer", "refuse"]
ClaimRule = Literal["substring", "phrase"]


class GoldItem(Struct, frozen=True, kw_only=True):
    """A question and what its answer must do; fields that nothing reads stay in `extra`."""

    qid: str
    question: str | None = None
    paraphrases: tuple[str, ...] = ()
    expect: Expect | None = None
    relevant: tuple[str, ...] = ()
    claims_any: tuple[str, ...] | None = None
    claim_rule: ClaimRule = "substring"
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
