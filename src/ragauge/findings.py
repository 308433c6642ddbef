"""Findings: what a run's counts say that a reader should know before trusting a number."""

from __future__ import annotations

from collections.abc import Sequence

from ragauge.model.gold import GoldItem
from ragauge.model.metric import Tally
from ragauge.model.profile import JoinRules


def findings(
    tally: Tally, rules: JoinRules, *, missing: Sequence[str], stray: str | None
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
        (tally.missing, "gold item", f"without a trace: {_some(missing)}"),
        (tally.missing_slots, "slot", "(paraphrase × seed) without a trace"),
        (tally.duplicates, "trace", again),
        (tally.unknown, "trace", f"of no gold item, the first: {stray}"),
        (tally.errored, "trace", "with an error"),
        (tally.repeated_ids, "trace", "with an id twice among the hits"),
        (skipped, "bad line", "skipped"),
    ]
    return [f"{n} {noun if n == 1 else noun + 's'} {what}" for n, noun, what in said if n]


def gold_findings(items: Sequence[GoldItem]) -> list[str]:
    """Sentences about gold items that can hardly be meant as they are."""
    unread = sorted({name for item in items for name in item.extra})
    bare = [item.qid for item in items if item.expect == "answer" and not item.relevant]
    said = []
    if unread:
        said.append(f"fields of the gold set that nothing reads: {_some(unread)}")
    if bare:
        noun = "item" if len(bare) == 1 else "items"
        said.append(f"{len(bare)} answerable gold {noun} without evidence: {_some(bare)}")
    return said


def _some(names: Sequence[str], most: int = 5) -> str:
    shown = ", ".join(names[:most])
    return shown if len(names) <= most else f"{shown} and {len(names) - most} more"
