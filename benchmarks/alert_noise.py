"""Owns the simulation of alerts: false alarms of 30 unchanged days, and how soon a fall is noticed.

Traffic is drawn as production sends it: a few questions make most of it, a question comes several
times in a row, one question is hot for a while, and every question has its own quality, so traces
of a window are not independent. Windows, intervals and states are those of `ragauge serve`.

    python benchmarks/alert_noise.py --days 30 --seeds 3
"""

from __future__ import annotations

import argparse
import math
import time
from collections.abc import Callable, Iterator, Sequence
from statistics import median
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ragauge.live.alert_rules import DEFAULTS, BaselineLevel, Measurement, read_window, reference_of
from ragauge.live.alerts import MINUTE, AlertRecord, after_time, after_window
from ragauge.live.index_drift import RetrievedDocuments, document_psi
from ragauge.live.settings import AlertRule
from ragauge.stats.intervals import group_sums, quantile, quantile_interval, score_interval

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

SAMPLES, MINUTES = 200, 5
QUESTIONS = 2_000
REPEATS = 3.0  # traces in a row that a question has on average
HOT = 0.05  # the share of traffic that one question has for a while
HOT_MINUTES = 60
RATES = (2.0, 20.0, 200.0)
"""Sampled traces a minute: a window takes 100, 10 or 5 minutes."""
DOCUMENTS = 500
HITS = 5
HOURS_BEFORE = 12  # without a change, before a fall


class Quality(NamedTuple):
    """How good a system is: the level that a rule watches, and how it spreads over questions."""

    kind: str  # rate, mean, quantile, latency or documents
    level: float
    share: float = 0.5  # of a quantile
    repeated: bool = False  # over questions that came twice, not over traces
    floor: bool = False  # less is worse


QUALITIES: dict[str, Quality] = {
    "coverage": Quality("rate", 0.70, floor=True),
    "citation-accuracy": Quality("rate", 0.95, floor=True),
    "delta-s-p90": Quality("quantile", 0.60, share=0.9),
    "delta-s-median": Quality("quantile", 0.45),
    "lambda-flip": Quality("rate", 0.10, repeated=True),
    "kendall-tau": Quality("mean", 0.60, repeated=True, floor=True),
    "latency-p95": Quality("latency", 800.0, share=0.95),
    "empty-results": Quality("rate", 0.01),
    "errors": Quality("rate", 0.01),
    "unknown-ids": Quality("rate", 0.01),
    "document-drift": Quality("documents", 0.0),
}
"""Each rule with the truth exactly at its threshold: no worse place for a false alarm. Latency and
documents have no such place; they stay as they are."""


class Traffic:
    """Questions as they come, at a rate, from a seed."""

    def __init__(self, rate: float, seed: int) -> None:
        self.rate = rate
        self.random = np.random.Generator(np.random.PCG64(seed))
        weights = 1 / np.arange(1, QUESTIONS + 1) ** 0.9  # Zipf's law, a little flatter
        self.weights = self.random.permutation(weights / weights.sum())
        self._ends = np.cumsum(self.weights)
        self._hot = 0
        self._hot_until = 0.0

    def window_minutes(self) -> int:
        """How long a window takes at this rate."""
        return max(MINUTES, math.ceil(SAMPLES / self.rate))

    def questions(self, minute: float) -> Ints:
        """The questions of the window that begins at a minute, one for each trace."""
        count = max(SAMPLES, int(self.random.poisson(self.rate * self.window_minutes())))
        runs = max(1, round(count / REPEATS * 1.5))
        asked = self._draw(runs)
        if minute >= self._hot_until:
            self._hot = int(self._draw(1)[0])
            self._hot_until = minute + self.random.exponential(HOT_MINUTES)
        asked[self.random.random(runs) < HOT] = self._hot
        lengths = self.random.geometric(1 / REPEATS, runs)
        traces = np.repeat(asked, lengths)
        while len(traces) < count:
            traces = np.concatenate([traces, self._draw(count - len(traces))])
        return traces[:count]

    def forget(self) -> None:
        """Let the next window have a hot question of its own."""
        self._hot_until = 0.0

    def _draw(self, count: int) -> Ints:
        places = np.searchsorted(self._ends, self.random.random(count))
        return np.minimum(places, QUESTIONS - 1).astype(np.int64)


class System:
    """What a system does with questions: each has a quality of its own around the level."""

    def __init__(self, quality: Quality, traffic: Traffic) -> None:
        self.quality = quality
        self.traffic = traffic
        self._own = traffic.random.random(QUESTIONS)
        self._noise = traffic.random.standard_normal(QUESTIONS)
        self._weights = self._repeat_weights() if quality.repeated else traffic.weights
        self._shift = self._quantile_shift() if quality.kind in ("quantile", "latency") else 0.0
        self._load = 0.0
        self._documents = traffic.random.integers(0, DOCUMENTS, (QUESTIONS, HITS))
        self._before: list[RetrievedDocuments] = []
        self._hour = 0

    def measure(self, questions: Ints, worse_by: float) -> Measurement:
        """What a window of these questions measures, when the level is worse by so much."""
        quality = self.quality
        if quality.kind == "documents":
            return self._measure_documents(questions, worse_by)
        if quality.repeated:
            counts = np.bincount(questions, minlength=QUESTIONS)
            questions = np.flatnonzero(counts > 1).astype(np.int64)
        if quality.kind in ("quantile", "latency"):
            return self._measure_quantile(questions, worse_by)
        low, high = (-1.0, 1.0) if quality.kind == "mean" else (0.0, 1.0)
        values = self._shares(questions, worse_by, low, high)
        numbers = np.unique(questions, return_inverse=True)[1]
        sums: Floats = np.bincount(numbers, weights=values).astype(np.float64)
        sizes = np.bincount(numbers).astype(np.int64)
        bounds = score_interval(group_sums(sums, sizes))
        mean, *ends = (low + (high - low) * side for side in (float(values.mean()), *bounds))
        return Measurement(mean, len(values), (ends[0], ends[1]))

    def _shares(self, questions: Ints, worse_by: float, low: float, high: float) -> Floats:
        """Values in 0 to 1 with the level as their mean; half of the variance is of questions."""
        level = self.quality.level + (-worse_by if self.quality.floor else worse_by)
        level = min(1.0, max(0.0, (level - low) / (high - low)))
        # A question is good, bad, or in between.
        own = np.where(self._own < 0.25, 0.0, np.where(self._own > 0.75, 1.0, 0.5))
        mean = float((own * self._weights).sum())
        own = own * level / mean if mean > level else 1 - (1 - own) * (1 - level) / (1 - mean)
        chance = own[questions]
        if self.quality.kind == "mean":
            spread = self.traffic.random.uniform(-1, 1, len(questions))
            mixed: Floats = chance + spread * np.minimum(chance, 1 - chance)
            return mixed
        drawn: Floats = (self.traffic.random.random(len(questions)) < chance).astype(np.float64)
        return drawn

    def _values(self, questions: Ints) -> Floats:
        random = self.traffic.random.standard_normal(len(questions))
        spread: Floats = 0.6 * self._noise[questions] + 0.8 * random
        return spread

    def _repeat_weights(self) -> Floats:
        """How often each question comes twice in a window: then it counts, and only once."""
        counts = np.zeros(QUESTIONS)
        for number in range(400):
            asked = self.traffic.questions(number * 1e6)  # each with another hot question
            counts += np.bincount(asked, minlength=QUESTIONS) > 1
        self.traffic.forget()
        weights: Floats = counts / counts.sum()
        return weights

    def _quantile_shift(self) -> float:
        questions = self.traffic._draw(400_000)
        exact = quantile(self._values(questions), self.quality.share)
        assert exact is not None
        return exact

    def _measure_quantile(self, questions: Ints, worse_by: float) -> Measurement:
        values = self._values(questions) - self._shift
        if self.quality.kind == "latency":
            # The load comes and goes: half of it stays from one window to the next.
            self._load = 0.5 * self._load + self.traffic.random.normal(0, 0.03)
            values = self.quality.level * (1 + worse_by) * np.exp(0.5 * values + self._load)
        else:
            values = self.quality.level + worse_by + 0.12 * values
        value = quantile(values, self.quality.share)
        return Measurement(
            value, len(values), quantile_interval(values, self.quality.share, questions)
        )

    def _measure_documents(self, questions: Ints, worse_by: float) -> Measurement:
        """`worse_by` is the share of questions that get other documents."""
        table = self._documents
        self._hour += 1
        if worse_by:
            table = np.where((self._own < worse_by)[:, None], (table + 7) % (DOCUMENTS // 5), table)
        sample = [
            RetrievedDocuments(f"{number} {self._hour}", tuple(map(str, table[number])))
            for number in questions[:: max(1, len(questions) // 400)][:400].tolist()
        ]
        baseline = self._before
        if len(baseline) < 1000 and not worse_by:
            self._before = baseline + sample[:: max(1, len(sample) // 25)][:50]
        return document_psi(sample, baseline)


class WindowRun(NamedTuple):
    """The state of a rule after a window, and when that window ended."""

    minute: float
    record: AlertRecord


def watch(
    rule: AlertRule,
    quality: Quality,
    traffic: Traffic,
    days: float,
    worse_by: Callable[[float], float],
) -> Iterator[WindowRun]:
    """Let a rule watch a system for some days; `worse_by` says how much worse it is by minute."""
    system = System(quality, traffic)
    record, earlier = AlertRecord(), list[float]()
    length = traffic.window_minutes()
    for minute in np.arange(0, days * 24 * 60, length):
        begins, ends = round(minute * MINUTE), round((minute + length) * MINUTE)
        # A tick of the worker just before the window closes.
        record = after_time(record, rule, ends - 1000)
        yield WindowRun(minute + length - 1 / 60, record)
        share = np.mean([worse_by(moment) for moment in np.linspace(minute, minute + length, 11)])
        measured = system.measure(traffic.questions(float(minute)), float(share))
        if rule.rise is not None:
            gap = math.ceil(60 / length)
            past = earlier[: len(earlier) - gap][-288:]
            if record.state not in ("pending", "firing"):
                record = _with_reference(record, reference_of(past))
            if measured.value is not None:
                earlier.append(measured.value)
        reading = read_window(rule, measured, record.reference)
        record = after_window(record, rule, reading, (begins, ends))
        record = after_time(record, rule, ends)
        yield WindowRun(minute + length, record)


def _with_reference(record: AlertRecord, reference: BaselineLevel | None) -> AlertRecord:
    from msgspec.structs import replace

    return replace(record, reference=reference)


def false_alarms(name: str, rate: float, seed: int, days: float, better_by: float = 0.0) -> int:
    """How often a rule fires while nothing changes."""
    rule, traffic = DEFAULTS[name], Traffic(rate, seed)
    count, state = 0, "inactive"
    for run in watch(rule, QUALITIES[name], traffic, days, lambda _minute: -better_by):
        count += run.record.state == "firing" != state
        state = run.record.state
    return count


def minutes_to_notice(
    name: str, rate: float, seed: int, fall: float, better_by: float, hours: float = 24
) -> float | None:
    """Minutes from a fall to the alarm; None if there is none within some hours."""
    rule, traffic = DEFAULTS[name], Traffic(rate, seed)
    begin = HOURS_BEFORE * 60 + traffic.random.uniform(0, traffic.window_minutes())
    days = (begin / 60 + hours) / 24

    def worse_by(minute: float) -> float:
        return fall - better_by if minute >= begin else -better_by

    for run in watch(rule, QUALITIES[name], traffic, days, worse_by):
        if run.minute > begin and run.record.state == "firing":
            return run.minute - begin
    return None


FALLS: dict[str, tuple[float, Sequence[float]]] = {
    # How much better than its threshold a rule's number was, and by how much it falls.
    "coverage": (0.05, (0.10, 0.20)),
    "citation-accuracy": (0.02, (0.10, 0.20)),
    "delta-s-p90": (0.05, (0.10, 0.20)),
    "delta-s-median": (0.05, (0.10, 0.20)),
    "lambda-flip": (0.05, (0.10, 0.20)),
    "kendall-tau": (0.10, (0.20, 0.40)),
    "latency-p95": (0.0, (0.5, 1.0)),
    "empty-results": (0.005, (0.10, 0.20)),
    "errors": (0.005, (0.10, 0.20)),
    "document-drift": (0.0, (0.3, 0.6)),
}


def main() -> None:
    """Print both tables as Markdown."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--days", type=float, default=30)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--first-seed", type=int, default=1_000)
    parser.add_argument("--falls", type=int, default=40, help="how often each fall is simulated")
    parser.add_argument("--only", nargs="*", default=sorted(QUALITIES))
    arguments = parser.parse_args()
    if arguments.seeds:
        _print_false_alarms(arguments)
    if arguments.falls:
        _print_falls(arguments)


def _print_false_alarms(arguments: argparse.Namespace) -> None:
    seeds = range(arguments.first_seed, arguments.first_seed + arguments.seeds)
    print(f"| rule | {' | '.join(f'{rate:g} a minute' for rate in RATES)} | seconds |")
    print(f"|---|{'---:|' * (len(RATES) + 1)}")
    for name in arguments.only:
        begin = time.monotonic()
        cells = []
        for rate in RATES:
            alarms = [false_alarms(name, rate, seed, arguments.days) for seed in seeds]
            cells.append(f"{sum(alarms) / len(alarms):.2f} (most {max(alarms)})")
        print(f"| `{name}` | {' | '.join(cells)} | {time.monotonic() - begin:.0f} |", flush=True)
    print()


def _print_falls(arguments: argparse.Namespace) -> None:
    print(f"| rule | fall | {' | '.join(f'{rate:g} a minute' for rate in RATES)} |")
    print(f"|---|---|{'---:|' * len(RATES)}")
    for name in arguments.only:
        better_by, falls = FALLS.get(name, (0.0, ()))
        for fall in falls:
            cells = []
            for rate in RATES:
                seeds = range(arguments.first_seed, arguments.first_seed + arguments.falls)
                times = [minutes_to_notice(name, rate, seed, fall, better_by) for seed in seeds]
                cells.append(_noticed(times))
            print(f"| `{name}` | {fall:g} | {' | '.join(cells)} |", flush=True)


def _noticed(times: Sequence[float | None]) -> str:
    """The median time and that of 9 in 10, where so many were noticed."""
    noticed = sorted(math.inf if minutes is None else minutes for minutes in times)
    middle, late = median(noticed), noticed[math.ceil(0.9 * len(noticed)) - 1]
    shown = ("–" if math.isinf(minutes) else f"{minutes:.0f}" for minutes in (middle, late))
    return ", 9 of 10 in ".join(shown)


if __name__ == "__main__":
    main()
