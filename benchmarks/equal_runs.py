"""Owns the simulation of equal runs: how often a comparison of a system with itself raises alarm.

A share of the questions is unstable: each slot finds each of their pieces with chance one half. All
others find the same every time. Used by `make slow-stats` and, in a small part, by a test.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from ragauge import score
from ragauge.compare.align import Aligned
from ragauge.compare.compare import compare
from ragauge.compare.fail_on import FailOn, check_kinds
from ragauge.model.comparison import ComparedRun, Comparison
from ragauge.model.scores import Scores
from ragauge.report.comparison import sentences

MOST = 0.05
"""The share of equal runs that may raise alarm."""
_PIECES = 2
_HITS = 5


class Alarm(NamedTuple):
    """How often simulated comparisons of one kind raised alarm, and how often they may."""

    what: str
    n: int
    repeats: int
    unstable: float
    share: float
    allowed: float


class System:
    """Draws runs of one system over fixed questions."""

    def __init__(self, rng: np.random.Generator, n: int, unstable: float, repeats: int) -> None:
        self.rng = rng
        self.repeats = repeats
        # The chance that a slot finds each piece: one half, or else always or never.
        chances = np.where(rng.random((n, _PIECES)) < 0.8, 1.0, 0.0)
        chances[: round(n * unstable)] = 0.5
        self.chances = chances
        self.gold = [
            {"qid": f"Q{i:04}", "question": f"question {i}?", "answerable": True,
             "relevant": [f"d{i}#{piece}" for piece in range(_PIECES)]}
            for i in range(n)
        ]  # fmt: skip

    def run(self, lost: Sequence[int] = ()) -> Scores:
        """One run; it never finds anything of the questions that are lost."""
        chances = self.chances.copy()
        chances[list(lost)] = 0.0
        found = self.rng.random((self.repeats, *chances.shape)) < chances
        places = self.rng.permuted(
            np.tile(np.arange(_HITS), (self.repeats, len(chances), 1)), axis=2
        )
        stable = (chances % 1 == 0).all(axis=1)
        places[:, stable] = np.arange(_HITS)
        traces: list[dict[str, Any]] = []
        for seed in range(self.repeats):
            for i, item in enumerate(self.gold):
                hits = [f"x{rank}" for rank in range(_HITS)]
                for piece in range(_PIECES):
                    if found[seed, i, piece]:
                        hits[places[seed, i, piece]] = f"d{i}#{piece}"
                traces.append({"qid": item["qid"], "seed": seed, "topk": hits})
        runs: list[Scores] = []
        score(
            self.gold,
            traces,
            profile="all",
            keep=lambda scored: runs.append(scored.scores),
            intervals=False,
        )
        return runs[0]


def compared(a: Scores, b: Scores, gated: Sequence[str] = ()) -> Comparison:
    """Two runs as `compare` compares them."""
    run = ComparedRun(name="run", profile="all", gold_name="gold", trace_name="trace")
    return compare(Aligned(a=a, b=b), run, run, gated=gated)


def headlines(
    rng: np.random.Generator, draws: int, n: int, unstable: float, gated: Sequence[str] = ()
) -> Alarm:
    """How often the headline of two equal runs claims a change."""
    system = System(rng, n, unstable, 1)
    claims = sum(
        "beyond chance" in sentences.headline(compared(system.run(), system.run(), gated))
        for _ in range(draws)
    )
    what = f"headline, {len(gated)} gated metrics" if gated else "headline, profile all"
    return Alarm(what, n, 1, unstable, claims / draws, MOST)


def failures(
    rng: np.random.Generator,
    draws: int,
    n: int,
    unstable: float,
    repeats: int,
    lost: Sequence[int] = (),
) -> Alarm:
    """How often `--fail-on regression` is red; without lost questions the runs are equal."""
    system = System(rng, n, unstable, repeats)
    if len(lost):
        system.chances[list(lost)] = 1.0
    limits = [FailOn.parse("regression")]
    red = 0
    for _ in range(draws):
        a, b = system.run(), system.run(lost)
        aligned = Aligned(a=a, b=b)
        red += any(check.failed for check in check_kinds(compared(a, b), aligned, limits))
    what = f"fail-on, {len(lost)} stable questions lost" if len(lost) else "fail-on, equal runs"
    return Alarm(what, n, repeats, unstable, red / draws, 1.0 if len(lost) else MOST)


GATED = ("retrieval.recall@5", "retrieval.mrr@10", "retrieval.hit@1")


def campaign(rng: np.random.Generator, draws: int) -> Iterator[Alarm]:
    """Every kind of alarm: by the headline, by `--fail-on` of equal runs, and of runs that lost."""
    for unstable in (0.05, 0.25):
        for gated in ((), GATED):
            yield headlines(rng, draws, 200, unstable, gated)
    for n, unstable, repeats in ((200, 0.05, 3), (200, 0.25, 2), (200, 0.25, 3), (50, 0.25, 6)):
        yield failures(rng, draws, n, unstable, repeats)
    for unstable, repeats, lost in ((0.0, 2, 1), (0.05, 3, 2), (0.25, 3, 5), (0.25, 6, 2)):
        yield failures(rng, max(1, draws // 4), 200, unstable, repeats, range(200 - lost, 200))
