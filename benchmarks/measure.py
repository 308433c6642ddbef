"""Owns the stopwatch: the wall time of a command and the peak memory of its whole process tree.

Run as `python benchmarks/measure.py COMMAND [ARGUMENT ...]`.
"""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

try:
    import resource
except ImportError:  # Windows
    resource = None  # type: ignore[assignment]

MEGABYTE = 1_000_000
TICK = 0.010  # seconds between two looks at the process tree
DETAIL_EVERY = 5  # ticks between two readings of smaps_rollup, which costs far more than statm
NEW_HIGH = 1.02  # growth of the resident size that asks for such a reading at once
PROC = Path("/proc")


@dataclass(frozen=True)
class Measurement:
    """One finished run of a command."""

    returncode: int
    seconds: float
    peak_bytes: int
    memory: str  # "pss", "rss" or "maxrss": how peak_bytes was taken
    stdout: str
    stderr: str

    @property
    def peak_mb(self) -> float:
        """The peak in megabytes of a million bytes."""
        return self.peak_bytes / MEGABYTE


def tree(root: int) -> list[int]:
    """List a process and its living descendants."""
    found, waiting = [], [root]
    while waiting:
        pid = waiting.pop()
        found.append(pid)
        try:
            for thread in os.listdir(f"/proc/{pid}/task"):
                with open(f"/proc/{pid}/task/{thread}/children", "rb") as file:
                    waiting.extend(map(int, file.read().split()))
        except OSError:
            continue  # it ended between two reads
    return found


def resident(pid: int) -> int:
    """Read the resident bytes of one process; 0 if it has ended."""
    try:
        with open(f"/proc/{pid}/statm", "rb") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, IndexError):
        return 0


def proportional(pid: int) -> int | None:
    """Read the proportional bytes (shared pages divided among their users), where allowed."""
    try:
        with open(f"/proc/{pid}/smaps_rollup", "rb") as file:
            for line in file:
                if line.startswith(b"Pss:"):
                    return int(line.split()[1]) * 1024
    except OSError:
        pass
    return None


class Sampler(threading.Thread):
    """Watches a process tree until told to stop, and remembers the highest sums."""

    def __init__(self, root: int) -> None:
        """Prepare to watch the tree below `root`."""
        super().__init__(daemon=True)
        self.root = root
        self.ended = threading.Event()
        self.peak_rss = 0
        self.peak_pss = 0

    def run(self) -> None:
        """Look every tick; take the dearer reading seldom, or when the tree has grown."""
        tick, asked_at = 0, 0
        while not self.ended.is_set():
            pids = tree(self.root)
            rss = sum(map(resident, pids))
            self.peak_rss = max(self.peak_rss, rss)
            if tick % DETAIL_EVERY == 0 or rss > asked_at * NEW_HIGH:
                asked_at = max(asked_at, rss)
                readings = [(proportional(pid), pid) for pid in pids]
                if any(pss is not None for pss, _ in readings):
                    total = sum(resident(pid) if pss is None else pss for pss, pid in readings)
                    self.peak_pss = max(self.peak_pss, total)
            tick += 1
            self.ended.wait(TICK)


def measure(command: Sequence[str]) -> Measurement:
    """Run a command to its end, undisturbed except for a look at /proc every few milliseconds."""
    started = time.perf_counter()
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, encoding="utf-8", errors="replace"
    ) as process:
        sampler = Sampler(process.pid) if PROC.joinpath("self/statm").exists() else None
        if sampler:
            sampler.start()
        stdout, stderr = process.communicate()
        seconds = time.perf_counter() - started
    if sampler:
        sampler.ended.set()
        sampler.join()
    peak, memory = _peak(sampler)
    return Measurement(process.returncode, seconds, peak, memory, stdout, stderr)


def _peak(sampler: Sampler | None) -> tuple[int, str]:
    """Choose the best figure there is for the memory of the run."""
    if sampler and sampler.peak_pss:
        return sampler.peak_pss, "pss"
    if sampler and sampler.peak_rss:
        return sampler.peak_rss, "rss"
    if resource is None:
        return 0, "unknown"
    # The largest child so far, not a sum: an upper bound only for commands of one process.
    largest = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
    return largest * (1 if sys.platform == "darwin" else 1024), "maxrss"


if __name__ == "__main__":
    result = measure(sys.argv[1:])
    sys.stdout.write(result.stdout)
    sys.stderr.write(result.stderr)
    print(f"{result.seconds:.3f} s, {result.peak_mb:.1f} MB ({result.memory})", file=sys.stderr)
    sys.exit(result.returncode)
