"""Owns the benchmark of `ragauge score`: time and memory beside the plain scorer, and start-up.

Run as `python benchmarks/score.py --traces 100000,1000000,5000000 --rounds 3`; `--dir DIR` keeps
the data for the next run, `--write docs/benchmarks.md` puts the tables into that page.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from generate import Files, Parameters, generate
from measure import Measurement, measure
from page import write_sections
from table import Report, Start, Timing

QUESTIONS = 10_000
ROUNDS_UP_TO = 1_000_000  # larger sizes run once, and without the single worker
START_ROUNDS = 5
NUMBERS = ("precision", "chr", "under_refusal", "over_refusal", "recall@k")
ACCEPTED = {0, 1, 4}  # passed, a gate failed, not evaluable: the scoring itself went well
BASELINE = "standard-library baseline"
RAGAUGE = (sys.executable, "-m", "ragauge")


@dataclass(frozen=True)
class Contender:
    """One command of a round."""

    what: str
    command: tuple[str, ...]
    out: Path | None = None  # where it writes its JSON; without one, on stdout


def contenders(files: Files, traces: int, folder: Path) -> list[Contender]:
    """List what runs in each round, the baseline first."""
    data = ("--gold", str(files.gold), "--trace", str(files.trace))
    script = str(Path(__file__).with_name("baseline.py"))
    listed = [Contender(BASELINE, (sys.executable, script, *data))]
    runs = [(("ship", "--full"), 2), (("all",), 2)]
    if traces <= ROUNDS_UP_TO:
        runs.append((("all",), 1))
    for profile, workers in runs:
        out = folder / f"{profile[0]}-{workers}.json"
        options = ("--profile", *profile, "--format", "json", "--workers", str(workers))
        command = (*RAGAUGE, "score", *data, *options, "-o", str(out))
        plural = "" if workers == 1 else "s"
        what = f"`--profile {' '.join(profile)}`, {workers} worker{plural}"
        listed.append(Contender(what, command, out))
    return listed


def run(
    what: str, command: Sequence[str], accepted: set[int], *, sampled: bool = True
) -> Measurement:
    """Measure one command; anything but an accepted exit code ends the benchmark."""
    result = measure(command, sampled=sampled)
    if result.returncode not in accepted:
        tail = "\n".join(result.stderr.splitlines()[-20:])
        raise SystemExit(f"error: {what} ended with exit code {result.returncode}\n{tail}")
    print(f"  {result.seconds:8.3f} s  {result.peak_mb:7.1f} MB  {what}", file=sys.stderr)
    return result


def check(outputs: dict[str, Any], traces: int) -> None:
    """Stop unless every contender computed what the baseline did, from all of the traces."""
    expected = outputs[BASELINE]
    first: dict[str, Any] = {}
    for what, output in outputs.items():
        if "--profile ship" in what:
            got = {name: output.get(name) for name in NUMBERS}
            if got != expected:
                raise SystemExit(f"error: {what} gives {got}, the baseline {expected}")
        elif "--profile all" in what:
            metrics = output.get("metrics") or {}
            records = max((each.get("records", 0) for each in metrics.values()), default=0)
            if records < traces:
                raise SystemExit(f"error: {what} scored {records:,} of {traces:,} traces")
            first = first or metrics
            if metrics != first:
                raise SystemExit(f"error: {what} gives other metrics than more workers do")


def benchmark(traces: int, rounds: int, folder: Path) -> list[Timing]:
    """Run one size in interleaved rounds; keep the fastest time and the highest memory."""
    files = generate(Parameters(traces, min(QUESTIONS, traces)), folder)
    with files.trace.open("rb") as file:
        while file.read(1 << 24):  # every contender finds the file in the page cache
            pass
    listed = contenders(files, traces, folder)
    results: dict[str, list[Measurement]] = {each.what: [] for each in listed}
    for number in range(rounds if traces <= ROUNDS_UP_TO else 1):
        print(f"{traces:,} traces, round {number + 1}", file=sys.stderr)
        outputs = {}
        for each in listed:
            if each.out:
                each.out.unlink(missing_ok=True)
            result = run(each.what, each.command, ACCEPTED if each.out else {0})
            results[each.what].append(result)
            outputs[each.what] = json.loads(
                each.out.read_text(encoding="utf-8") if each.out else result.stdout
            )
        check(outputs, traces)
    return [
        Timing(
            traces=traces,
            what=what,
            seconds=min(result.seconds for result in measured),
            trace_bytes=files.trace_bytes,
            peak_bytes=max(result.peak_bytes for result in measured),
            memory=measured[0].memory,
            baseline=min(result.seconds for result in results[BASELINE]),
        )
        for what, measured in results.items()
    ]


def start_up(folder: Path) -> list[Start]:
    """Time what a user waits for before any real work, beside a bare interpreter."""
    files = generate(Parameters(10, 10), folder)
    data = ("--gold", str(files.gold), "--trace", str(files.trace), "--profile", "ship")
    commands = {
        "`python -c pass`": (sys.executable, "-c", "pass"),
        "`ragauge --help`": (*RAGAUGE, "--help"),
        "`ragauge score`, 10 questions": (*RAGAUGE, "score", *data),
    }
    seconds: dict[str, list[float]] = {what: [] for what in commands}
    print("start-up", file=sys.stderr)
    for _ in range(START_ROUNDS):
        for what, command in commands.items():
            accepted = ACCEPTED if "score" in command else {0}
            seconds[what].append(run(what, command, accepted).seconds)
    bare = min(next(iter(seconds.values())))
    return [Start(what, min(measured), bare) for what, measured in seconds.items()]


def section(sizes: Sequence[int], rounds: int, folder: Path) -> str:
    """Measure, and lay everything out as Markdown."""
    starts = start_up(folder / "start")
    timings = [timing for size in sizes for timing in benchmark(size, rounds, folder / str(size))]
    listed = ",".join(map(str, sizes))
    command = f"python benchmarks/score.py --traces {listed} --rounds {rounds}"
    return Report(command, timings, starts).markdown()


def sizes_of(listed: str) -> list[int]:
    """Read sizes with commas between them."""
    return sorted({int(size) for size in listed.split(",")})


def add_options(parser: argparse.ArgumentParser) -> None:
    """Declare what decides about this benchmark alone."""
    parser.add_argument(
        "--traces", type=sizes_of, default="100000,1000000,5000000", help="sizes of the trace files"
    )


def main() -> int:
    """Benchmark from the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    add_options(parser)
    parser.add_argument("--rounds", type=int, default=3, help="interleaved rounds of each size")
    parser.add_argument("--dir", type=Path, help="keep the generated data here")
    parser.add_argument("--write", type=Path, help="put the tables into this Markdown file")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        text = section(options.traces, options.rounds, options.dir or Path(temporary))
    print(text)
    if options.write:
        write_sections(options.write, {"score": text})
    return 0


if __name__ == "__main__":
    sys.exit(main())
