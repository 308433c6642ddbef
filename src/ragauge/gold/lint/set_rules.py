"""Rules about the set as a whole: ids, wordings, types, coverage, size, and fields nobody reads."""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Mapping, Sequence

from ragauge.gold.coverage import COVERAGE, Coverage
from ragauge.gold.findings import unread_fields
from ragauge.gold.lint import near_duplicates as resemblance
from ragauge.gold.lint.rules import LintFinding, identity, lint_finding
from ragauge.model.dialect import GOLD_NAMES
from ragauge.model.gold import GoldItem
from ragauge.stats.sample_size import Size
from ragauge.text import some

SHOWN_CHANGE = 0.10
"""A set that cannot show a change of this much, in a rate near one half, is small: 193 can."""


def duplicates(items: Sequence[GoldItem], *, turns: bool) -> Iterator[LintFinding]:
    """Ids that stand twice; with `turns` an id may stand once a turn."""
    by_key: dict[tuple[str, int | None], list[GoldItem]] = {}
    for item in items:
        by_key.setdefault((item.qid, item.turn if turns else None), []).append(item)
    for (qid, turn), same in by_key.items():
        if len(same) > 1:
            with_turn = "" if turn is None else f" with turn {turn}"
            lines = [str(item.line) for item in same if item.line is not None]
            where = f"they stand on lines {some(lines)}: " if lines else ""
            yield lint_finding(
                "duplicate-qid",
                f"{len(same)} items have the id `{qid}`{with_turn}",
                f"{where}give every item its own id",
                same[0],
                times=len(same) - 1,
            )


def near_duplicates(
    items: Sequence[GoldItem], wordings: Sequence[Sequence[str]]
) -> Iterator[LintFinding]:
    """Items that ask nearly the same; a family of them is one finding.

    `wordings` are those of each item, as they are compared.
    """
    ids = sorted({item.qid for item in items if item.turn is None})
    number_of = {qid: number for number, qid in enumerate(ids)}
    texts: list[str] = []
    owners: list[int] = []
    first: dict[str, GoldItem] = {}
    for item, item_texts in zip(items, wordings, strict=True):
        if item.turn is None:
            first.setdefault(item.qid, item)
            texts += item_texts
            owners += [number_of[item.qid]] * len(item_texts)
    families = resemblance.group_near_duplicates(texts, owners)
    members = {owner for family in families if len(family) == 2 for owner in family}
    words: dict[int, list[str]] = {}
    for text, owner in zip(texts, owners, strict=True):
        if owner in members and text:
            words.setdefault(owner, []).append(text)
    for family in families:
        names = [ids[owner] for owner in family]
        alike = "nearly the same"
        if len(family) == 2:
            one, other = family
            most = max(resemblance.similarity(a, b) for a in words[one] for b in words[other])
            alike = "the same" if most == 1 else f"nearly the same ({most:.2f})"
        yield lint_finding(
            "near-duplicate-question",
            f"{len(names)} items ask {alike}: {some(names)}",
            "keep one of them, or make the others ask for something else",
            first[names[0]],
            times=len(names) - 1,
        )


def unread(items: Sequence[GoldItem]) -> Iterator[LintFinding]:
    """Fields that nothing reads, each with the field that may be meant."""
    for name, having in sorted(unread_fields(items).items()):
        # `answerabel` is 0.9 like `answerable`; a lower cutoff would suspect more honest remarks.
        near = difflib.get_close_matches(name.lower(), sorted(GOLD_NAMES), 1, cutoff=0.8)
        count = f"{len(having)} item{'' if len(having) == 1 else 's'}"
        item = min(having, key=identity)
        if near:
            yield lint_finding(
                "misspelt-field",
                f"nothing reads the field `{name}` of {count}",
                f"did you mean `{near[0]}`?",
                item,
                times=len(having),
            )
        else:
            yield lint_finding(
                "unread-field",
                f"nothing reads the field `{name}` of {count}",
                "leave it if it is a remark; `ragauge explain unread-field` says more",
                item,
                times=len(having),
            )


def balance(
    types: Mapping[str, int], coverage: Coverage | None, min_n: int
) -> Iterator[LintFinding]:
    """Types of content that too few questions, or none, are on."""
    for name, blocks in coverage.blocks.items() if coverage is not None else ():
        if name != "caption" and not types.get(name):  # nobody asks about a caption alone
            yield lint_finding(
                "missing-type",
                f"no question is on {name}; the corpus has {blocks} such blocks",
                f"add {min_n} or more, so that the slice has a value",
            )
    for name, count in sorted(types.items()):
        if count < min_n:
            noun = "question is" if count == 1 else "questions are"
            yield lint_finding(
                "few-of-type",
                f"{count} {noun} on {name}, and a slice needs {min_n}",
                f"add {min_n - count} more, or do not read the slice",
            )


def low_coverage(coverage: Coverage | None) -> Iterator[LintFinding]:
    """Whether the questions reach too few sections."""
    share = None if coverage is None else coverage.share
    if coverage is not None and share is not None and share < COVERAGE:
        yield lint_finding(
            "low-coverage",
            f"the questions reach {coverage.sections_reached} of {coverage.sections} sections "
            f"({share:.2f}), and the target is {COVERAGE:.2f}",
            "`ragauge gold new` drafts items from a section",
        )


def size(set_size: Size) -> Iterator[LintFinding]:
    """Whether the set is too small to show much."""
    if set_size.detectable is not None and set_size.detectable > SHOWN_CHANGE:
        yield lint_finding(
            "set-size",
            f"{set_size.n} question{'' if set_size.n == 1 else 's'}: a change of a rate below "
            f"{set_size.detectable:.2f} would not show",
            f"a change of {SHOWN_CHANGE:.2f} takes {set_size.needed(SHOWN_CHANGE)} questions, "
            f"one of 0.05 takes {set_size.needed(0.05)}",
        )
