"""Owns the benchmark of memory with large gold sets: how it grows, beside the plain scorer.

Run as `python benchmarks/gold_memory.py --gold-sizes 50000,200000,1000000`: gold sets of so many
questions with as many traces. `--dir DIR` keeps the data for the next run.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from generate import Parameters, generate
from page import write_sections
from score import ACCEPTED, NUMBERS, RAGAUGE, run, sizes_of
from table import MEGABYTE, grid, machine

BASELINE = "standard-library baseline"
CONTENDERS = (("ship", 1), ("ship", 2), ("all", 2))  # profile and workers
JUDGED = ("ship", 2)
JUDGED_AT, MOST_MB = 1_000_000, 1_100  # half of what such a run once took


@dataclass(frozen=True)
class Peak:
    """The highest memory of one command with a gold set of some size."""

    questions: int
    what: str
    input_bytes: int
    peak_bytes: int
    cpu_seconds: float
    memory: str


def benchmark(questions: int, folder: Path) -> list[Peak]:
    """Run every command once: memory hardly differs from run to run."""
    files = generate(Parameters(questions, questions), folder)
    size = files.gold.stat().st_size + files.trace_bytes
    data = ("--gold", str(files.gold), "--trace", str(files.trace))
    script = str(Path(__file__).with_name("baseline.py"))
    print(f"{questions:,} questions", file=sys.stderr)
    plain = run(BASELINE, (sys.executable, script, *data), {0})
    expected = json.loads(plain.stdout)
    results = [(BASELINE, plain)]
    for profile, workers in CONTENDERS:
        out = folder / "scores.json"
        out.unlink(missing_ok=True)
        options = ("--profile", profile, "--workers", str(workers), "--format", "json")
        command = (*RAGAUGE, "score", *data, *options, "-o", str(out))
        what = name_of(profile, workers)
        results.append((what, run(what, command, ACCEPTED)))
        scored = json.loads(out.read_text(encoding="utf-8"))
        if profile == "ship" and {name: scored.get(name) for name in NUMBERS} != expected:
            raise SystemExit(f"error: ship gives {scored}, the baseline {expected}")
    return [
        Peak(questions, what, size, result.peak_bytes, result.cpu_seconds or 0.0, result.memory)
        for what, result in results
    ]


def name_of(profile: str, workers: int) -> str:
    """How a command is called in the tables."""
    return f"`--profile {profile}`, {workers} worker{'' if workers == 1 else 's'}"


def sizes_table(peaks: Sequence[Peak]) -> str:
    """Show every size, with ratios to the input and to the plain scorer."""
    plain = {peak.questions: peak for peak in peaks if peak.what == BASELINE}
    return grid(
        "rlrrrr",
        ("questions", "what", "CPU s", "peak MB", "of the files", "of the baseline"),
        (
            (
                f"{peak.questions:,}",
                peak.what,
                f"{peak.cpu_seconds:.1f}",
                f"{peak.peak_bytes / MEGABYTE:,.0f}",
                f"{peak.peak_bytes / peak.input_bytes:.2f}",
                f"{peak.peak_bytes / plain[peak.questions].peak_bytes:.2f}",
            )
            for peak in peaks
        ),
    )


def growth_table(peaks: Sequence[Peak]) -> str:
    """Show what each question more takes, between the smallest and the largest size."""
    few, many = (choose(peak.questions for peak in peaks) for choose in (min, max))
    if few == many:
        return ""
    small = {peak.what: peak for peak in peaks if peak.questions == few}
    rows = (
        (
            peak.what,
            f"{(peak.peak_bytes - small[peak.what].peak_bytes) / (many - few):,.0f}",
        )
        for peak in peaks
        if peak.questions == many
    )
    return grid("lr", (f"from {few:,} to {many:,} questions", "bytes for each question"), rows)


def target_table(peaks: Sequence[Peak]) -> str:
    """Set the size that the project promises something of beside the promise."""
    judged = [p for p in peaks if p.questions == JUDGED_AT and p.what == name_of(*JUDGED)]
    rows = [
        (f"{peak.what}, peak MB", f"≤ {MOST_MB:,}", f"{peak.peak_bytes / MEGABYTE:,.0f}",
         "yes" if peak.peak_bytes <= MOST_MB * MEGABYTE else "no")
        for peak in judged
    ]  # fmt: skip
    return grid("lrrl", (f"target: {JUDGED_AT:,} questions", "limit", "measured", "reached"), rows)


def section(sizes: Sequence[int], folder: Path) -> str:
    """Measure, and lay everything out as Markdown."""
    peaks = [peak for size in sizes for peak in benchmark(size, folder / str(size))]
    kinds = ", ".join(sorted({peak.memory for peak in peaks}))
    listed = ",".join(map(str, sizes))
    parts = [
        f"Made by `python benchmarks/gold_memory.py --gold-sizes {listed}`.",
        f"{machine()}. One trace a question; one run of each, the highest memory of the process "
        f"tree ({kinds}). **of the files** is that memory over the bytes of gold and traces.",
        sizes_table(peaks),
        growth_table(peaks),
        target_table(peaks) if JUDGED_AT in sizes else "",
    ]
    return "\n\n".join(part for part in parts if part)


def add_options(parser: argparse.ArgumentParser) -> None:
    """Declare what decides about this benchmark alone."""
    parser.add_argument(
        "--gold-sizes", type=sizes_of, default="50000,200000,1000000", help="questions of gold sets"
    )


def main() -> int:
    """Benchmark from the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    add_options(parser)
    parser.add_argument("--dir", type=Path, help="keep the generated data here")
    parser.add_argument("--write", type=Path, help="put the tables into this Markdown file")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        text = section(options.gold_sizes, options.dir or Path(temporary))
    print(text)
    if options.write:
        write_sections(options.write, {"gold": text})
    return 0


if __name__ == "__main__":
    sys.exit(main())
