"""Rules that need a corpus: whether ids, places and quotes of items are there."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ragauge.corpus.resolve import Found, Resolver
from ragauge.errors import MAX_REPORTED, Problem
from ragauge.gold.coverage import Reach, ReachFinder, same_place
from ragauge.gold.lint.rules import LintFinding, identity, lint_finding
from ragauge.model.gold import GoldItem

MAX_LISTED_ITEMS = 200
"""Items whose missing evidence is told one by one: finding what may be meant takes time."""


def unresolved(
    items: Sequence[GoldItem], resolver: Resolver, report: Found
) -> Iterator[LintFinding]:
    """What of the evidence is not in the corpus; beyond some items it is only counted.

    `found` gets the counts of what was looked up.
    """
    brief = Found(problems=[Problem("unresolved", "", "")] * MAX_REPORTED)
    bad: list[tuple[GoldItem, int]] = []
    for item in items:
        count = sum(1 for _ in resolver.item(item, brief))
        if count:
            bad.append((item, count))
    report.ids, report.places, report.quotes = brief.ids, brief.places, brief.quotes
    report.problem_count = sum(count for _, count in bad)
    bad.sort(key=lambda entry: identity(entry[0]))
    for item, _ in bad[:MAX_LISTED_ITEMS]:
        for error in resolver.item(item, Found()):
            yield lint_finding(error.code, error.message, error.hint, item)
    more = sum(count for _, count in bad[MAX_LISTED_ITEMS:])
    if more:
        yield lint_finding(
            "unresolved",
            f"{more} more ids or places of {len(bad) - MAX_LISTED_ITEMS} other items are not in "
            "the corpus",
            "mend those above first: is it the corpus that the set was made for?",
            times=more,
        )


def overlapping_negatives(
    item: GoldItem, reach: Reach, reach_finder: ReachFinder
) -> Iterator[LintFinding]:
    """Negatives that lie where the evidence lies, under another id."""
    for name in dict.fromkeys(item.negatives):
        if name not in item.relevant and same_place(reach_finder.spots(name), reach.places):
            yield lint_finding(
                "relevant-negative",
                f"the negative `{name}` lies where the evidence lies",
                "choose another negative, or another place",
                item,
            )
