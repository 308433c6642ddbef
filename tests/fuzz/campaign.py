"""The campaign: cases of all targets in turn, findings once each, made small and kept."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from random import Random
from threading import Lock

from tests.fuzz.case import Case, Finding, write_case
from tests.fuzz.minimise import minimise
from tests.fuzz.targets import Target
from tests.fuzz.worker import Worker


@dataclass(frozen=True)
class Found:
    """A fault: its finding, the case that showed it first, and which one that was."""

    finding: Finding
    case: Case
    number: int


@dataclass
class Results:
    """What came of a campaign."""

    tried: Counter[str] = field(default_factory=Counter)  # by target
    times: Counter[tuple[str, str]] = field(default_factory=Counter)  # of each fault
    found: dict[tuple[str, str], Found] = field(default_factory=dict)  # by signature


def case_of(target: Target, seed: int, number: int) -> Case:
    """The same case for the same seed and number, whatever else is in the campaign."""
    return target.case(Random(f"{seed}:{target.name}:{number}"))


def campaign(
    targets: Sequence[Target],
    *,
    seed: int,
    goes_on: Callable[[int], bool],
    processes: int,
    first: int = 0,
    say: Callable[[str], None] = lambda _: None,
    new_worker: Callable[[], Worker] = Worker,
) -> Results:
    """Try case after case, a round being one of every target, while `goes_on(round)`."""
    results = Results()
    lock = Lock()

    def cases() -> Iterator[tuple[Target, int]]:
        for number in count(first):
            if not goes_on(number - first):
                return
            for target in targets:
                yield target, number

    remaining = cases()

    def work() -> None:
        worker = new_worker()
        try:
            while True:
                with lock:
                    chosen = next(remaining, None)
                if chosen is None:
                    return
                target, number = chosen
                case = case_of(target, seed, number)
                findings = worker.examine(case)
                with lock:
                    results.tried[target.name] += 1
                    for finding in findings:
                        results.times[finding.signature] += 1
                        if finding.signature not in results.found:
                            results.found[finding.signature] = Found(finding, case, number)
                            say(f"{target.name} {number}: {finding.kind}: {finding.words}")
        finally:
            worker.close()

    with ThreadPoolExecutor(processes) as threads:
        for done in [threads.submit(work) for _ in range(processes)]:
            done.result()
    return results


def keep(found: Found, folder: Path, *, new_worker: Callable[[], Worker] = Worker) -> Path:
    """Make the case of a fault small, and write it as a regression case."""
    worker = new_worker()
    try:
        signature = found.finding.signature

        def fails(case: Case) -> bool:
            return any(finding.signature == signature for finding in worker.examine(case))

        # A hang costs its whole limit each time, so it is kept as it is.
        small = found.case if found.finding.kind == "hang" else minimise(found.case, fails)
    finally:
        worker.close()
    return write_case(small, found.finding, folder)


def deadline(seconds: float) -> Callable[[int], bool]:
    """Go on until so many seconds are over; the first round is always finished."""
    end = time.monotonic() + seconds
    return lambda _: time.monotonic() < end
