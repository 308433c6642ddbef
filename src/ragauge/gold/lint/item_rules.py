"""Rules about one item: by itself, and against a corpus if there is one."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from msgspec import Struct

from ragauge.corpus.resolve import Resolver, ResolveReport
from ragauge.errors import MAX_REPORTED, Problem
from ragauge.gold.coverage import Reach, ReachFinder, SectionRef, evidence_of, same_place
from ragauge.gold.findings import lacks_evidence, names_evidence
from ragauge.gold.lint.near_duplicates import NEAR_SHARE, normalised, similarity
from ragauge.gold.lint.rules import LintFinding, identity, lint_finding
from ragauge.ids import distance, lies_in, split_section
from ragauge.model.gold import GoldItem
from ragauge.model.options import Options
from ragauge.text import MIN_NEEDLE, fold, phrase_needles, substring_needles

PARAPHRASES = 3
"""Wordings of a question under `canary`: its convergence is measured over three slots."""
FARTHEST = 4
"""Edges of the title tree to a negative that is near: as far as a cousin section.

Up to the parent of the parent and down again, as from S.4.2 to S.1.3.
"""


class NegativeCounts(Struct):
    """How many negatives were measured, and how many could not be."""

    negatives: int = 0
    unplaced: int = 0


def item_findings(
    item: GoldItem, options: Options, *, texts: bool, paraphrases: bool
) -> Iterator[LintFinding]:
    """What is wrong with an item by itself.

    `texts`: questions are expected; judgements have none. `paraphrases`: three of them are.
    """
    yield from _question(item, texts=texts)
    if lacks_evidence(item):
        yield lint_finding(
            "no-evidence",
            "the item is answerable and names no evidence",
            "name the chunks or places that hold the answer, or set answerable to false",
            item,
        )
    if item.expect == "refuse" and names_evidence(item):
        yield lint_finding(
            "refusal-with-evidence",
            "the item is unanswerable and names evidence",
            "remove the evidence (near misses belong in negatives), or set answerable to true",
            item,
        )
    yield from _claims(item)
    yield from _contradictions(item, options)
    yield from _relevant_negatives(item)
    if paraphrases and len(set(item.paraphrases)) < PARAPHRASES:
        yield lint_finding(
            "few-paraphrases",
            f"the item has {len(set(item.paraphrases))} paraphrases, and {PARAPHRASES} are asked",
            "add wordings of the same question, not of the same words",
            item,
        )


def _question(item: GoldItem, *, texts: bool) -> Iterator[LintFinding]:
    blank = [
        f"paraphrases[{number}]" for number, text in enumerate(item.paraphrases) if not text.strip()
    ]
    if item.question is not None and not item.question.strip() and not blank:
        blank = ["the question"]
    for name in blank:
        yield lint_finding("empty-question", f"{name} has no text", "write it, or remove it", item)
    if item.question is None and texts:
        yield lint_finding("no-question", "the item has no question", "add the question", item)


def _claims(item: GoldItem) -> Iterator[LintFinding]:
    claims = item.claims_any or ()
    needles = phrase_needles if item.claim_rule == "phrase" else substring_needles
    short = [claim for claim in claims if not needles([claim])]
    if not short:
        return
    least = f"a claim needs {MIN_NEEDLE} characters"
    if len(short) == len(claims) and item.expect != "refuse":
        yield lint_finding(
            "unmatchable-claims",
            f"no claim can match: {_quoted(short)}",
            f"{least} to match; quote more of the answer",
            item,
        )
        return
    for claim in short:
        yield lint_finding(
            "short-claim",
            f"the claim {_quoted([claim])} can never match",
            f"{least} to match; quote more of the answer, or remove it",
            item,
        )


def _contradictions(item: GoldItem, options: Options) -> Iterator[LintFinding]:
    wanted = [
        (text, fold(text, ignore_case=options.ignore_case))
        for text in dict.fromkeys(item.must_contain)
    ]
    for text in dict.fromkeys(item.forbidden):
        folded = fold(text, ignore_case=options.ignore_case)
        if not folded:
            yield lint_finding(
                "contradiction",
                "the empty string is forbidden, and every answer contains it",
                "remove it",
                item,
            )
            continue
        # Only this way round: with `port` asked for, `port 80` may be forbidden.
        for other, folded_other in wanted:
            if folded in folded_other:
                both = (
                    "both asked for and forbidden"
                    if folded == folded_other
                    else (f"forbidden, and stands in {_quoted([other])}, which is asked for")
                )
                yield lint_finding(
                    "contradiction",
                    f"{_quoted([text])} is {both}",
                    "no answer can pass: remove one of them",
                    item,
                )


def _relevant_negatives(item: GoldItem) -> Iterator[LintFinding]:
    if not item.negatives and item.decoy_section is None:
        return
    named = {entry if isinstance(entry, str) else entry.id for entry in evidence_of(item)}
    for name in dict.fromkeys(item.negatives):
        if name in named:
            yield lint_finding(
                "relevant-negative",
                f"`{name}` is both evidence and a negative",
                "remove it from one of the lists",
                item,
            )
    if item.decoy_section is not None and item.anchor_section is not None:
        decoy, anchor = split_section(item.decoy_section), split_section(item.anchor_section)
        apart = None not in (decoy[0], anchor[0]) and decoy[0] != anchor[0]
        if not apart and lies_in(decoy[1], anchor[1]):
            yield lint_finding(
                "relevant-negative",
                f"the decoy section `{item.decoy_section}` lies in the anchor section "
                f"`{item.anchor_section}`",
                "name another section as decoy",
                item,
            )


def near_paraphrases(item: GoldItem, wordings: Sequence[str]) -> Iterator[LintFinding]:
    """Wordings of an item, as they are compared, that are nearly the same."""
    seen: list[str] = []
    for text in wordings:
        alike = max((similarity(text, other) for other in seen), default=0.0) if text else 0.0
        if alike >= NEAR_SHARE:
            words = "the same words" if alike == 1 else f"nearly the same words ({alike:.2f})"
            yield lint_finding(
                "near-duplicate-paraphrase",
                f"two wordings of the question have {words}: {_quoted([text])}",
                "word it anew, or remove it",
                item,
            )
        seen.append(text)


def wordings_of(item: GoldItem) -> list[str]:
    """The question and its paraphrases, as they are compared.

    A question that is the first paraphrase counts once.
    """
    question = [] if item.question is None else [item.question]
    if question and item.paraphrases and item.paraphrases[0] == item.question:
        question = []
    return [normalised(text) for text in (*question, *item.paraphrases)]


def far_negatives(
    item: GoldItem,
    sections: Sequence[SectionRef],
    section_ref: Callable[[str], SectionRef],
    judged: NegativeCounts,
) -> Iterator[LintFinding]:
    """The negatives that are far from all sections of the answer; `section_ref` locates an id."""
    for name in dict.fromkeys(item.negatives):
        steps = [_steps(section_ref(name), section) for section in sections]
        known_steps = [count for count in steps if count is not None]
        judged.negatives += 1
        if not known_steps:
            judged.unplaced += 1
        elif min(known_steps) > FARTHEST:
            away = (
                "in another document"
                if min(known_steps) == _OTHER_DOCUMENT
                else f"{min(known_steps)} edges away"
            )
            yield lint_finding(
                "far-negative",
                f"the negative `{name}` is {away} from the answer",
                f"choose one no more than {FARTHEST} edges away: `ragauge gold negatives` "
                "lists some",
                item,
            )


_OTHER_DOCUMENT = 1 << 30


def _steps(one: SectionRef, other: SectionRef) -> int | None:
    if one[0] is not None and other[0] is not None and one[0] != other[0]:
        return _OTHER_DOCUMENT
    if one[1] is None or other[1] is None:
        return None
    return distance(one[1], other[1])


def _quoted(texts: list[str]) -> str:
    shortened = [text if len(text) <= 40 else f"{text[:37]}..." for text in texts[:3]]
    more = f" and {len(texts) - 3} more" if len(texts) > 3 else ""
    return ", ".join(f"`{text}`" for text in shortened) + more


MAX_LISTED_ITEMS = 200
"""Items whose missing evidence is reported one by one: finding what may be meant takes time."""


def unresolved(
    items: Sequence[GoldItem], resolver: Resolver, report: ResolveReport
) -> Iterator[LintFinding]:
    """What of the evidence is not in the corpus; beyond some items it is only counted.

    `found` gets the counts of what was looked up.
    """
    # A report that is full already only counts, which is fast; the texts are made afterwards, for
    # the first items by id. So the findings do not depend on the order of the file.
    brief = ResolveReport(problems=[Problem("unresolved", "", "")] * MAX_REPORTED)
    bad: list[tuple[GoldItem, int]] = []
    for item in items:
        count = sum(1 for _ in resolver.item(item, brief))
        if count:
            bad.append((item, count))
    report.ids, report.places, report.quotes = brief.ids, brief.places, brief.quotes
    report.problem_count = sum(count for _, count in bad)
    bad.sort(key=lambda entry: identity(entry[0]))
    for item, _ in bad[:MAX_LISTED_ITEMS]:
        for error in resolver.item(item, ResolveReport()):
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
