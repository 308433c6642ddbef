"""Owns what the benchmarks print: the tables, the growth figures, and what they were taken on."""

from __future__ import annotations

import os
import platform
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

MEGABYTE = 1_000_000
JUDGED_AT = 1_000_000  # the size at which the ratio is promised
MOST_RATIO, MOST_MB, MOST_START = 0.5, 300, 0.4  # what the project promises


@dataclass(frozen=True)
class Timing:
    """One contender at one size: the fastest of its rounds and the highest of its memory."""

    traces: int
    what: str
    seconds: float
    trace_bytes: int
    peak_bytes: int
    memory: str
    baseline: float  # seconds of the baseline at this size

    @property
    def ratio(self) -> float:
        """The time as a share of the baseline's."""
        return self.seconds / self.baseline

    @property
    def peak_mb(self) -> float:
        """The peak memory in megabytes."""
        return self.peak_bytes / MEGABYTE


@dataclass(frozen=True)
class Start:
    """A command that hardly works, and the bare interpreter beside it."""

    what: str
    seconds: float
    bare: float


@dataclass(frozen=True)
class Report:
    """Everything one run of the benchmark found out."""

    command: str
    timings: Sequence[Timing]
    starts: Sequence[Start]

    def markdown(self) -> str:
        """Lay the figures out as Markdown tables, which also read well in a terminal."""
        kinds = ", ".join(sorted({timing.memory for timing in self.timings}))
        parts = [
            f"Made by `{self.command}`.",
            f"{machine()}. Fastest of the interleaved rounds (one round above 1,000,000 traces); "
            f"highest memory of the process tree ({kinds}).",
            self._sizes(),
            self._growth(),
            self._start_up(),
            self._promises(),
        ]
        return "\n\n".join(part for part in parts if part)

    def _sizes(self) -> str:
        header = ("traces", "what", "seconds", "ratio", "MB/s", "traces/s", "peak MB")
        return grid(
            "rlrrrrr",
            header,
            (
                (
                    f"{timing.traces:,}",
                    timing.what,
                    f"{timing.seconds:.2f}",
                    f"{timing.ratio:.2f}",
                    f"{timing.trace_bytes / MEGABYTE / timing.seconds:,.0f}",
                    f"{timing.traces / timing.seconds:,.0f}",
                    f"{timing.peak_mb:.0f}",
                )
                for timing in self.timings
            ),
        )

    def _growth(self) -> str:
        """Divide the largest size by the smallest: 1.00 is linear time and flat memory."""
        few = min(timing.traces for timing in self.timings)
        many = max(timing.traces for timing in self.timings)
        small = {timing.what: timing for timing in self.timings if timing.traces == few}
        large = [t for t in self.timings if t.traces == many and t.what in small]
        if few == many:
            return ""
        header = (f"from {few:,} to {many:,} traces", "time per trace, ratio", "peak memory, ratio")
        rows = (
            (
                t.what,
                f"{(t.seconds / t.traces) / (small[t.what].seconds / few):.2f}",
                f"{t.peak_bytes / max(1, small[t.what].peak_bytes):.2f}",
            )
            for t in large
        )
        return grid("lrr", header, rows)

    def _start_up(self) -> str:
        rows = (
            (start.what, f"{start.seconds:.3f}", f"{start.seconds / start.bare:.1f}")
            for start in self.starts
        )
        return grid("lrr", ("start-up", "seconds", "ratio"), rows)

    def _promises(self) -> str:
        """Set the worst figure of each kind beside what the project promises."""
        ours = [timing for timing in self.timings if "`--profile" in timing.what]
        two = [timing.ratio for timing in ours if "2 workers" in timing.what]
        judged = [t.ratio for t in ours if "2 workers" in t.what and t.traces == JUDGED_AT] or two
        figures = (
            ("time against the baseline, 2 workers", max(judged), MOST_RATIO, ".2f"),
            ("peak MB", max(timing.peak_mb for timing in ours), MOST_MB, ".0f"),
            ("start-up seconds", max(start.seconds for start in self.starts), MOST_START, ".3f"),
        )
        rows = (
            (name, f"≤ {most}", format(worst, form), "yes" if worst <= most else "no")
            for name, worst, most, form in figures
        )
        return grid("lrrl", ("promise", "limit", "worst", "kept"), rows)


def grid(align: str, header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Write a Markdown table, each column aligned by its letter: `l` or `r`."""
    cells = [header, *rows]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    sides = {"l": "<", "r": ">"}
    lines = []
    for row in cells:
        padded = (
            f"{cell:{sides[letter]}{width}}"
            for cell, width, letter in zip(row, widths, align, strict=True)
        )
        lines.append(f"| {' | '.join(padded)} |")
    rule = (
        "-" * (width + 2) if letter == "l" else "-" * (width + 1) + ":"
        for width, letter in zip(widths, align, strict=True)
    )
    lines.insert(1, f"|{'|'.join(rule)}|")
    return "\n".join(lines)


def machine() -> str:
    """Describe the processor and the interpreter, and nothing that identifies the machine."""
    model = platform.processor() or platform.machine()
    information = Path("/proc/cpuinfo")
    if information.exists():
        for line in information.read_text(encoding="utf-8").splitlines():
            if line.startswith("model name"):
                model = line.partition(":")[2].strip()
                break
    name = platform.python_implementation()
    return f"{model}, {os.cpu_count()} cores, {name} {platform.python_version()}"
