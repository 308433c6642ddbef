"""Owns the stopwatch: wall and processor time of a command, and the peak memory of all of it.

Run as `python benchmarks/measure.py COMMAND [ARGUMENT ...]`.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

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
    memory: str  # "pss", "rss", "maxrss" or "unknown": how peak_bytes was taken
    stdout: str
    stderr: str
    cpu_seconds: float | None = None  # user and system, of it and the children it waited for

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


def measure(command: Sequence[str], *, sampled: bool = True) -> Measurement:
    """Run a command to its end.

    Sampled, with a look at /proc every few milliseconds, for the memory of a process tree. That
    costs gigabytes of pages dearly; not sampled, memory is what the kernel kept for the largest
    process, and nothing disturbs. A child is then never smaller than this process was when it
    started it: keep this one small.
    """
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        started = time.perf_counter()
        with subprocess.Popen(command, stdout=out, stderr=err) as process:
            watched = sampled and PROC.joinpath("self/statm").exists()
            sampler = Sampler(process.pid) if watched else None
            if sampler:
                sampler.start()
            cpu_seconds, largest = _wait(process)
            seconds = time.perf_counter() - started
        if sampler:
            sampler.ended.set()
            sampler.join()
        said = []
        for stream in (out, err):
            stream.seek(0)
            said.append(stream.read().decode("utf-8", errors="replace"))
    peak, memory = _peak(sampler, largest)
    return Measurement(process.returncode, seconds, peak, memory, said[0], said[1], cpu_seconds)


def _wait(process: subprocess.Popen[bytes]) -> tuple[float | None, int]:
    """Wait for the end; give its processor seconds and largest resident bytes, where told."""
    if not hasattr(os, "wait4"):  # Windows
        process.wait()
        return None, 0
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    unit = 1 if sys.platform == "darwin" else 1024
    return used.ru_utime + used.ru_stime, used.ru_maxrss * unit


def _peak(sampler: Sampler | None, largest: int) -> tuple[int, str]:
    """Choose the best figure there is for the memory of the run."""
    if sampler and sampler.peak_pss:
        return sampler.peak_pss, "pss"
    if sampler and sampler.peak_rss:
        return sampler.peak_rss, "rss"
    # The largest process, not a sum: the whole only for commands of one process.
    return largest, "maxrss" if largest else "unknown"


if __name__ == "__main__":
    result = measure(sys.argv[1:])
    sys.stdout.write(result.stdout)
    sys.stderr.write(result.stderr)
    print(f"{result.seconds:.3f} s, {result.peak_mb:.1f} MB ({result.memory})", file=sys.stderr)
    sys.exit(result.returncode)
