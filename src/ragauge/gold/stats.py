"""What is in a gold set: counts, evidence, wordings, what of a corpus it reaches, what it shows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from statistics import median
from typing import Any

from msgspec import Struct, to_builtins

from ragauge.corpus.chunk_list import read_chunk_list
from ragauge.files.open import PathLike
from ragauge.formats.field_map import NO_FIELDS, FieldMaps
from ragauge.gold.coverage import (
    Reach,
    ReachFinder,
    SectionCoverage,
    coverage_json,
    coverage_of,
    evidence_of,
)
from ragauge.gold.gold_file import gold_file, lookup_of
from ragauge.gold.lint.check import size_json
from ragauge.model.gold import Anchor, GoldItem
from ragauge.stats.sample_size import Size

SCHEMA = "ragauge.gold-stats/1"
UNLABELLED = "unlabelled"
EXPECTED = {"answer": "answer", "refuse": "refuse", None: UNLABELLED}


class Spread(Struct, frozen=True, kw_only=True):
    """How a count is spread over the items: how many have any, and how many they have."""

    items: int
    total: int
    least: float
    median: float
    most: float


class GoldStats(Struct, frozen=True, kw_only=True):
    """What is in a gold set.

    counts   items by expect, type, tag, difficulty and language; an item may have several types
    spreads  what items have: kinds of evidence, negatives, wordings, lengths of questions
    grades   how often each grade occurs
    entries  entries of evidence; `evident` items have some, and `pinned` of these have a place
             in a document beside or instead of every id
    sizes    what the questions can show: all, those to be answered, those to be refused
    """

    name: str
    dialect: str
    items: int
    conversations: int
    turns: int
    counts: dict[str, dict[str, int]]
    spreads: dict[str, Spread]
    grades: dict[str, int]
    entries: int
    evident: int
    pinned: int
    coverage: SectionCoverage | None
    sizes: dict[str, Size]
    notes: tuple[str, ...] = ()


def stats(
    gold: PathLike,
    *,
    corpus: PathLike | None = None,
    chunks: PathLike | None = None,
    profile: str | None = None,
    dialect: str = "auto",
    fields: FieldMaps = NO_FIELDS,
) -> GoldStats:
    """Count what is in a gold set."""
    lookup = lookup_of(corpus)
    with gold_file(gold, profile=profile, dialect=dialect, lookup=lookup, fields=fields) as file:
        items, notes = file.items, file.notes
    reach_finder = ReachFinder(lookup, read_chunk_list(chunks))
    reaches = [reach_finder.reach(item) for item in items]
    evident = [item for item in items if any(evidence_of(item)) or item.places]
    expected = Counter(EXPECTED[item.expect] for item in items)
    pairs = zip(items, reaches, strict=True)
    answered = [reach for item, reach in pairs if item.expect != "refuse"]
    return GoldStats(
        name=file.source.name,
        dialect=file.choice.dialect.name,
        items=len(items),
        conversations=len({item.qid for item in items if item.turn is not None}),
        turns=sum(item.turn is not None for item in items),
        counts=_counts(items, reaches, expected),
        spreads=_spreads(items, reaches),
        grades=_tally(f"{grade:g}" for item in items for grade in item.grades.values()),
        entries=sum(len(list(evidence_of(item))) for item in items),
        evident=len(evident),
        pinned=sum(_is_pinned(item) for item in evident),
        coverage=None if lookup is None else coverage_of(lookup, answered),
        sizes={
            "all": Size(len(items)),
            "to be answered": Size(expected["answer"]),
            "to be refused": Size(expected["refuse"]),
        },
        notes=tuple(notes),
    )


def _counts(
    items: Sequence[GoldItem], reaches: Sequence[Reach], expected: Mapping[str, int]
) -> dict[str, dict[str, int]]:
    counts_by_field = {
        "expect": {name: expected[name] for name in EXPECTED.values() if expected[name]},
        "type": _tally(kind for reach in reaches for kind in dict.fromkeys(reach.types)),
        "tag": _tally(tag for item in items for tag in dict.fromkeys(item.tags)),
        "difficulty": _tally(item.difficulty for item in items),
        "language": _tally(item.lang for item in items),
        "group": _tally(item.group for item in items),
    }
    return {name: counts for name, counts in counts_by_field.items() if counts}


def _is_pinned(item: GoldItem) -> bool:
    """Whether any chunker can be scored by an item: places are known, and not only ids."""
    return bool(item.places) or all(isinstance(entry, Anchor) for entry in evidence_of(item))


def _tally(values: Iterable[str | None]) -> dict[str, int]:
    """How often each value stands, the most frequent first."""
    counts = Counter(value for value in values if value is not None)
    return dict(sorted(counts.items(), key=lambda entry: (-entry[1], entry[0])))


def _spreads(items: Sequence[GoldItem], reaches: Sequence[Reach]) -> dict[str, Spread]:
    questions = [item.question for item in items if item.question is not None]
    anchored = [
        [entry for entry in (*evidence_of(item), *item.places) if isinstance(entry, Anchor)]
        for item in items
    ]
    counts_by_kind = {
        "evidence ids": [sum(isinstance(e, str) for e in evidence_of(item)) for item in items],
        "places": [len(anchors) for anchors in anchored],
        "quotes": [sum(anchor.quote is not None for anchor in anchors) for anchors in anchored],
        "documents": [len(reach.docs) for reach in reaches],
        "groups": [len(item.groups) for item in items],
        "grades": [len(item.grades) for item in items],
        "negatives": [len(item.negatives) for item in items],
        "claims": [len(item.claims_any or ()) for item in items],
        "must contain": [len(item.must_contain) for item in items],
        "forbidden": [len(item.forbidden) for item in items],
        "paraphrases": [len(item.paraphrases) for item in items],
        "characters of a question": [len(text) for text in questions],
        "words of a question": [len(text.split()) for text in questions],
    }
    return {name: _spread(counts) for name, counts in counts_by_kind.items() if any(counts)}


def _spread(counts: Sequence[int]) -> Spread:
    return Spread(
        items=sum(count > 0 for count in counts),
        total=sum(counts),
        least=min(counts),
        median=median(counts),
        most=max(counts),
    )


def to_json(stats: GoldStats) -> dict[str, Any]:
    """The counts as a document."""
    coverage = coverage_json(stats.coverage)
    if stats.coverage is not None and coverage is not None:
        coverage["blocks"] = stats.coverage.blocks
    return {
        "schema": SCHEMA,
        "gold": stats.name,
        "dialect": stats.dialect,
        "items": stats.items,
        "conversations": stats.conversations,
        "turns": stats.turns,
        "counts": stats.counts,
        "spreads": to_builtins(stats.spreads),
        "grades": stats.grades,
        "evidence": {
            "entries": stats.entries,
            "items": stats.evident,
            "pinned": stats.pinned,
            "share_pinned": round(stats.pinned / stats.evident, 4) if stats.evident else None,
        },
        "coverage": coverage,
        "sizes": {name: size_json(size) for name, size in stats.sizes.items()},
    }
