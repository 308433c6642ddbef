"""Owns the benchmark of the statistics: intervals and permutation beside plain numpy.

Run as `python benchmarks/resampling.py --rounds 3`; `--questions`, `--metrics` and `--repeats` set
other sizes, `--write docs/benchmarks.md` puts the tables into that page. Each contender runs in a
process of its own, which tells how long the work took.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from measure import MEGABYTE, Measurement, measure
from page import write_sections
from ragauge.stats.intervals import (
    Interval,
    delta_interval,
    group_sums,
    quantile_interval,
    score_interval,
    unbounded_interval,
)
from ragauge.stats.paired import permutation
from table import grid, machine

PART = 10  # plain numpy does a tenth of the repeats, and its time is multiplied
SHARE = 0.95
SEED = 1
NEAR = 0.25  # of an interval's width: more apart than that, one of the two is wrong
ERRORS = 4  # standard errors of a p-value near 0.5 that chance may make of the fewer permutations
MOST_SECONDS, MOST_MB = 2, 300  # what is aimed at, for the work on all metrics

Floats = NDArray[np.float64]
Results = list[list[float]]


@dataclass(frozen=True)
class Size:
    """How much there is to do: an even number of metrics, and repeats in tens."""

    questions: int = 10_000
    metrics: int = 20
    repeats: int = 10_000

    @property
    def fewer(self) -> int:
        """The repeats of plain numpy."""
        return self.repeats // PART

    @property
    def options(self) -> tuple[str, ...]:
        """This size on the command line."""
        named = (("--questions", self.questions), ("--metrics", self.metrics))
        return tuple(
            word for name, n in (*named, ("--repeats", self.repeats)) for word in (name, str(n))
        )


@dataclass(frozen=True)
class Data:
    """Two runs: hits, scores and milliseconds of every question, and who is in the population."""

    size: Size
    a: Floats
    b: Floats
    inside: Floats

    @classmethod
    def generate(cls, size: Size) -> Data:
        rng = np.random.default_rng(SEED)
        shape = (size.questions, size.metrics)
        inside = (rng.random(shape) < np.linspace(1.0, 0.5, size.metrics)).astype(np.float64)
        hard = rng.random((size.questions, 1))
        sides = []
        for gain in (0.0, 0.002):
            values = np.clip(hard + gain + rng.normal(0, 0.2, shape), 0, 1)
            values[:, ::2] = rng.random((size.questions, size.metrics // 2)) < values[:, ::2]
            values[:, -1] = np.round(np.exp(6 + hard[:, 0] + values[:, -1]), 3)
            sides.append(values * inside)
        return cls(size, a=sides[0], b=sides[1], inside=inside)

    @property
    def milliseconds(self) -> Floats:
        return np.random.default_rng(SEED).lognormal(6.5, 0.8, len(self.a))


def _bounds(estimates: Floats) -> Results:
    found: Results = np.quantile(estimates, [0.025, 0.975], axis=0).T.tolist()
    return found


def _results(intervals: Sequence[Interval | None]) -> Results:
    return [
        [bound for bound in interval if bound is not None]
        for interval in intervals
        if interval is not None
    ]


def _columns(data: Data, values: Floats) -> list[Floats]:
    """The values of each metric, of the questions in its population."""
    inside = data.inside > 0
    return [column[members] for column, members in zip(values.T, inside.T, strict=True)]


def our_intervals(data: Data) -> Results:
    *rates, milliseconds = _columns(data, data.a)
    intervals = [score_interval(group_sums(values)) for values in rates]
    return _results([*intervals, unbounded_interval(milliseconds)])


def plain_bootstrap(data: Data) -> Results:
    rng = np.random.default_rng(SEED)
    estimates = np.empty((data.size.fewer, data.size.metrics))
    for row in estimates:
        picks = rng.integers(0, len(data.a), len(data.a))
        row[:] = data.a[picks].sum(axis=0) / data.inside[picks].sum(axis=0)
    return _bounds(estimates)


def our_quantile(data: Data) -> Results:
    return _results([quantile_interval(data.milliseconds, SHARE)])


def plain_quantile(data: Data) -> Results:
    rng = np.random.default_rng(SEED)
    values = data.milliseconds
    estimates = np.empty((data.size.fewer, 1))
    for row in estimates:
        row[:] = np.quantile(values[rng.integers(0, len(data.a), len(data.a))], SHARE)
    return _bounds(estimates)


def our_paired(data: Data) -> Results:
    *rates, milliseconds = _columns(data, data.b - data.a)
    intervals = [delta_interval(group_sums(values)) for values in rates]
    return _results([*intervals, unbounded_interval(milliseconds)])


def plain_paired(data: Data) -> Results:
    rng = np.random.default_rng(SEED)
    estimates = np.empty((data.size.fewer, data.size.metrics))
    for row in estimates:
        picks = rng.integers(0, len(data.a), len(data.a))
        totals = data.inside[picks].sum(axis=0)
        row[:] = data.b[picks].sum(axis=0) / totals - data.a[picks].sum(axis=0) / totals
    return _bounds(estimates)


def our_permutation(data: Data) -> Results:
    inside = data.inside > 0
    found = permutation(data.b - data.a, inside=inside, permutations=data.size.repeats)
    return [[p] for p in found if p is not None]


def plain_permutation(data: Data) -> Results:
    rng = np.random.default_rng(SEED)
    differences = data.b - data.a
    total = np.abs(differences.sum(axis=0))
    hits = np.zeros(data.size.metrics)
    for _ in range(data.size.fewer):
        signs = rng.integers(0, 2, len(data.a)) * 2.0 - 1.0
        hits += np.abs(signs @ differences) >= total
    return [[p] for p in ((1 + hits) / (1 + data.size.fewer)).tolist()]


INTERVALS = "intervals of all metrics"
PERMUTATION = "paired permutation of all metrics"
WORK: dict[str, tuple[Callable[[Data], Results], Callable[[Data], Results]]] = {
    INTERVALS: (our_intervals, plain_bootstrap),
    f"interval of one quantile, {SHARE}": (our_quantile, plain_quantile),
    "paired intervals of all metrics": (our_paired, plain_paired),
    PERMUTATION: (our_permutation, plain_permutation),
}
NOTHING = "imports and data alone"


@dataclass(frozen=True)
class Figure:
    """One contender: its fastest round, and the highest memory."""

    what: str
    who: str
    seconds: float
    peak_bytes: int
    memory: str
    ratio: float | None = None


def child(what: str, who: str, size: Size) -> dict[str, Any]:
    """Do the work once, in this process."""
    data = Data.generate(size)
    if what == NOTHING:
        return {"seconds": 0.0, "results": []}
    started = time.perf_counter()
    results = WORK[what][who == "plain"](data)
    return {"seconds": time.perf_counter() - started, "results": results}


def run(what: str, who: str, size: Size) -> tuple[Measurement, dict[str, Any]]:
    """Measure one child; a failure ends the benchmark."""
    result = measure((sys.executable, __file__, *size.options, "--child", what, who))
    if result.returncode != 0:
        tail = "\n".join(result.stderr.splitlines()[-20:])
        raise SystemExit(f"error: {what} ended with exit code {result.returncode}\n{tail}")
    output: dict[str, Any] = json.loads(result.stdout)
    seconds = output["seconds"]
    print(f"  {seconds:8.3f} s  {result.peak_mb:7.1f} MB  {what}, {who}", file=sys.stderr)
    return result, output


def check(what: str, ours: Results, plain: Results, size: Size) -> None:
    """Stop unless both found the same, as far as chance lets them."""
    if len(ours) != len(plain) or not ours:
        raise SystemExit(f"error: {what} has {len(ours)} results, plain numpy {len(plain)}")
    near_p = ERRORS * 0.5 / size.fewer**0.5
    for mine, other in zip(ours, plain, strict=True):
        near = NEAR * (other[1] - other[0]) if len(other) == 2 else near_p
        if any(abs(x - y) > near for x, y in zip(mine, other, strict=True)):
            raise SystemExit(f"error: {what} gives {mine}, plain numpy {other}")


def benchmark(rounds: int, size: Size) -> list[Figure]:
    """Run all contenders in interleaved rounds."""
    measured: dict[tuple[str, str], list[tuple[Measurement, float]]] = {}
    for number in range(rounds):
        print(f"round {number + 1}", file=sys.stderr)
        result, _ = run(NOTHING, "ours", size)
        measured.setdefault((NOTHING, ""), []).append((result, 0.0))
        for what in WORK:
            found = {}
            for who, times in (("ours", 1), ("plain", PART)):
                result, output = run(what, who, size)
                found[who] = output["results"]
                measured.setdefault((what, who), []).append((result, output["seconds"] * times))
            check(what, found["ours"], found["plain"], size)
    fastest = {key: min(seconds for _, seconds in each) for key, each in measured.items()}
    return [
        Figure(
            what=what,
            who=who,
            seconds=fastest[what, who],
            peak_bytes=max(result.peak_bytes for result, _ in measured[what, who]),
            memory=measured[what, who][0][0].memory,
            ratio=fastest[what, who] / fastest[what, "plain"] if who else None,
        )
        for what, who in measured
    ]


def figures_table(figures: Sequence[Figure]) -> str:
    """Lay out the figures of all contenders."""
    names = {"ours": "ragauge", "plain": f"plain numpy loop, 1/{PART} × {PART}", "": ""}
    rows = (
        (
            figure.what,
            names[figure.who],
            f"{figure.seconds:.2f}" if figure.who else "",
            "" if figure.ratio is None else f"{figure.ratio:.2g}",
            f"{figure.peak_bytes / MEGABYTE:.0f}",
        )
        for figure in figures
    )
    return grid("llrrr", ("what", "by", "seconds", "ratio", "peak MB"), rows)


def targets_table(figures: Sequence[Figure], size: Size) -> str:
    """Set what was measured beside what is aimed at."""
    rows = []
    for figure in figures:
        if figure.who == "ours" and figure.what in (INTERVALS, PERMUTATION):
            for unit, value, most, form in (
                ("seconds", figure.seconds, MOST_SECONDS, ".2f"),
                ("peak MB", figure.peak_bytes / MEGABYTE, MOST_MB, ".0f"),
            ):
                reached = "yes" if value < most else "no"
                rows.append((f"{figure.what}, {unit}", f"< {most}", format(value, form), reached))
    header = f"target: {size.repeats:,} × {size.metrics} metrics × {size.questions:,} questions"
    return grid("lrrl", (header, "limit", "measured", "reached"), rows)


def sections(rounds: int = 3, size: Size | None = None) -> list[str]:
    """Measure, and lay the figures out as Markdown, a paragraph or table each."""
    size = size or Size()
    figures = benchmark(rounds, size)
    kinds = ", ".join(sorted({figure.memory for figure in figures}))
    other = "" if size == Size() else " " + " ".join(size.options)
    return [
        f"Made by `python benchmarks/resampling.py --rounds {rounds}{other}`.",
        f"{machine()}. {size.questions:,} questions, {size.metrics} metrics, {size.repeats:,} "
        "resamples or permutations. Seconds are those of the work alone, without start-up, the "
        "fastest of the interleaved rounds; memory is the highest of the whole process "
        f"({kinds}).",
        "Plain numpy draws the questions or signs of one resample after another, where our "
        "intervals are closed forms. It does "
        f"{size.fewer:,} of them, and its seconds are {PART} times what that took. Its results "
        "must agree with ours as far as chance allows.",
        figures_table(figures),
        targets_table(figures, size),
    ]


def add_options(parser: argparse.ArgumentParser) -> None:
    """Declare what decides about this benchmark alone."""
    usual = Size()
    parser.add_argument("--questions", type=int, default=usual.questions, help="to resample")
    parser.add_argument("--metrics", type=int, default=usual.metrics, help="to resample")
    parser.add_argument("--repeats", type=int, default=usual.repeats, help="of resampling")


def size_of(options: argparse.Namespace) -> Size:
    """Read the size back."""
    return Size(options.questions, options.metrics, options.repeats)


def main() -> int:
    """Benchmark from the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    add_options(parser)
    parser.add_argument("--rounds", type=int, default=3, help="interleaved rounds")
    parser.add_argument("--write", type=Path, help="put the tables into this Markdown file")
    parser.add_argument("--child", nargs=2, metavar=("WHAT", "WHO"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    size = size_of(options)
    if options.child:
        print(json.dumps(child(options.child[0], options.child[1], size)))
        return 0
    text = "\n\n".join(sections(options.rounds, size))
    print(text)
    if options.write:
        write_sections(options.write, {"resampling": text})
    return 0


if __name__ == "__main__":
    sys.exit(main())
