"""Stability of slots: how alike they cite, answer and rank under other words and seeds."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from hashlib import blake2b
from itertools import combinations
from typing import NamedTuple

import numpy as np

from ragauge.metrics.columns import Bools, Floats, Ints
from ragauge.model.trace import SlotKey
from ragauge.stats.kendall import tau_of_lists
from ragauge.stats.levenshtein import distances

PAIRS = 30_000
MOST_SLOTS = 12
"""Pairs that are compared in a run, and slots of a question. 2,000 questions with
the usual six slots (three paraphrases, two seeds) have exactly this many pairs; 1,000 seeds of one
question alone would be 500,000 edit distances (decision 0011)."""


class ComparedSlot(NamedTuple):
    """What is compared of a slot; `claim` is None where nothing was answered."""

    citations: frozenset[str]
    claim: str | None
    hits: tuple[str, ...]


def slot_order(key: SlotKey) -> tuple[tuple[int, int, str], ...]:
    """Slots in an order that no file order can change: by paraphrase, seed, turn."""
    return tuple(
        (0, 0, "") if part is None else (1, part, "") if isinstance(part, int) else (2, 0, part)
        for part in key
    )


def drawing_order(names: Sequence[str]) -> Ints:
    """The questions by a hash of their names, so that neither file order nor luck decides."""

    def drawn(question: int) -> bytes:
        return blake2b(names[question].encode(), digest_size=8).digest()

    return np.array(sorted(range(len(names)), key=drawn), np.int64)


def to_compare(slots: Ints, order: Ints) -> Bools:
    """The questions whose slots are compared: all, or in a large run as many as PAIRS allows.

    They are taken in the order given. More slots can only make the choice smaller.
    """
    used = np.minimum(slots, MOST_SLOTS).astype(np.int64)
    pairs = used * (used - 1) // 2
    chosen = pairs > 0
    if int(pairs.sum()) <= PAIRS:
        return chosen
    drawn = order[chosen[order]]
    fitting = int(np.searchsorted(np.cumsum(pairs[drawn]), PAIRS, side="right"))
    picked = np.zeros(len(slots), np.bool_)
    picked[drawn[: max(1, fitting)]] = True
    return picked


def compare(
    questions: int, slots: Mapping[int, Sequence[ComparedSlot]], *, claims_too: bool = True
) -> dict[str, Floats]:
    """Compare the slots of each question that has several; nan where there is nothing to say.

    Claims take most of the time, and are only compared where a metric is on them.
    """
    jaccard, tau, edit = (np.full(questions, np.nan) for _ in range(3))
    pairs: list[tuple[str, str]] = []
    owners: list[tuple[int, int]] = []
    for question, group in slots.items():
        jaccard[question] = _jaccard([slot.citations for slot in group])
        tau[question] = _tau([slot.hits for slot in group])
        claims = [slot.claim for slot in group if slot.claim is not None and claims_too]
        # Two empty texts have no longer length to divide by.
        mine = [pair for pair in combinations(claims, 2) if any(pair)]
        pairs += mine
        owners.append((question, len(mine)))
    edits = distances(pairs).astype(np.float64)
    longer = np.array([max(len(one), len(other), 1) for one, other in pairs], np.float64)
    shares = edits / longer if len(pairs) else edits
    start = 0
    for question, count in owners:
        if count:
            edit[question] = float(np.median(shares[start : start + count]))
        start += count
    return {"citation_jaccard": jaccard, "claim_distance": edit, "rank_tau": tau}


def _jaccard(sets: Sequence[frozenset[str]]) -> float:
    union = frozenset[str]().union(*sets)
    if not union:
        return float("nan")
    return len(sets[0].intersection(*sets[1:])) / len(union)


def _tau(lists: Iterable[tuple[str, ...]]) -> float:
    taus = []
    for one, other in combinations(lists, 2):
        if one == other and len(set(one)) > 1:
            taus.append(1.0)
            continue
        value = tau_of_lists(one, other)
        if value is not None:
            taus.append(value)
    return float(np.sum(np.sort(np.array(taus)))) / len(taus) if taus else float("nan")
