"""Findings: what a run's counts say that a reader should know before trusting a number."""

from __future__ import annotations

from collections.abc import Sequence

from ragauge.model.gold import GoldItem
from ragauge.model.metric import Tally
from ragauge.model.profile import JoinRules


def findings(
    tally: Tally,
    rules: JoinRules,
    *,
    missing: Sequence[str],
    stray: str | None,
    embedders: Sequence[str] = (),
) -> list[str]:
    """Sentences about what is missing, stands twice, belongs to nothing, or went wrong.

    `missing` are the ids without a trace, `stray` the first trace that belongs to no gold item.
    """
    key = "question" if rules.by == "question" else "id"
    again = (
        "on a question that another trace is on too"
        if rules.keep == "every"
        else f"replaced by a later one of the same {'question' if rules.keep == 'last' else 'slot'}"
    )
    skipped = tally.gold_skipped + tally.trace_skipped
    said = [
        (tally.gold_duplicates, "gold item", f"replaced by a later one with the same {key}"),
        (tally.missing, "gold item", f"without a trace: {some(missing)}"),
        (tally.missing_slots, "slot", "(paraphrase × seed) without a trace"),
        (tally.duplicates, "trace", again),
        (tally.unknown, "trace", f"of no gold item, the first: {stray}"),
        (tally.errored, "trace", "with an error"),
        (tally.repeated_ids, "trace", "with an id twice among the hits"),
        (tally.disordered, "trace", "whose ranks or scores disagree with the order that counts"),
        (skipped, "bad line", "skipped"),
    ]
    found = [f"{n} {noun if n == 1 else noun + 's'} {what}" for n, noun, what in said if n]
    if len(embedders) > 1:
        found.append(f"ΔS of different embedders: {some(embedders)}")
    return found


def gold_findings(items: Sequence[GoldItem]) -> list[str]:
    """Sentences about gold items that can hardly be meant as they are."""
    unread = sorted(unread_fields(items))
    bare = [item.qid for item in items if lacks_evidence(item)]
    said = []
    if unread:
        said.append(f"fields of the gold set that nothing reads: {some(unread)}")
    if bare:
        noun = "item" if len(bare) == 1 else "items"
        said.append(f"{len(bare)} answerable gold {noun} without evidence: {some(bare)}")
    return said


def unread_fields(items: Sequence[GoldItem]) -> dict[str, list[GoldItem]]:
    """The fields that nothing reads, each with the items that have it."""
    found: dict[str, list[GoldItem]] = {}
    for item in items:
        for name in item.extra:
            found.setdefault(name, []).append(item)
    return found


def lacks_evidence(item: GoldItem) -> bool:
    """Whether an item is to be answered and does not say from what."""
    return item.expect == "answer" and not has_evidence(item)


def has_evidence(item: GoldItem) -> bool:
    """Whether an item names evidence of any kind, or the section that holds the answer."""
    return bool(names_evidence(item) or item.anchor_section)


def names_evidence(item: GoldItem) -> bool:
    """Whether an item names evidence; a section alone also says where an answer is missed."""
    return bool(
        item.relevant or item.anchors or item.places or item.groups or item.grades
        or item.relevant_docs
    )  # fmt: skip


def some(names: Sequence[str], most: int = 5) -> str:
    """The first names of a list, and how many more there are."""
    shown = ", ".join(names[:most])
    return shown if len(names) <= most else f"{shown} and {len(names) - most} more"
