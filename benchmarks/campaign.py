"""Owns the long campaigns of `make slow`; each prints date, commit and figures as Markdown.

Run as `make slow-stats`, or as `python benchmarks/campaign.py stats --effort 0.1` for a short look.
"""

from __future__ import annotations

import argparse
import hashlib
import math
import os
import re
import runpy
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import redirect_stdout
from datetime import UTC, datetime
from functools import partial
from io import StringIO
from pathlib import Path

import numpy as np

import documents as real_documents
import equal_runs
import interval_coverage as coverage
import live_campaign
import rechunked
from generate import Parameters, generate
from page import write_sections
from ragauge import gate, registry, score
from ragauge.errors import RagaugeError
from ragauge.files import ranges
from ragauge.formats.imports.import_files import import_files
from ragauge.model.report import View
from ragauge.scoring.engines import choose
from ragauge.stats.paired import permutation
from ragauge.stats.significance import mcnemar
from table import grid, machine

ROOT = Path(__file__).resolve().parents[1]
FIXTURES = ROOT / "tests" / "fixtures" / "imports"
RESAMPLES = 500  # enough for shares of thousands of simulations, and four times as fast
_COUNTED = re.compile(r"(\d+) (passed|failed|errors?|skipped)")


def fuzz(effort: float) -> int:
    """Run the properties and oracles with many more examples, from a seed that is new each time."""
    seed = int(time.time())
    environment = {"RAGAUGE_TEST_EFFORT": f"{20 * effort:g}", "RAGAUGE_TEST_SEED": str(seed)}
    again = " ".join(f"{name}={value}" for name, value in environment.items())
    print(f"The same again: `{again} pytest --hypothesis-seed={seed}`\n")
    chosen = f"--hypothesis-seed={seed}"
    print("Properties and oracles:\n")
    failed = _pytest(["tests/properties", "tests/oracles", chosen], environment)
    print("\nRandom tests of single modules and commands:\n")
    others = ["tests/unit", "tests/cli", "tests/conformance", "-m", "hypothesis", chosen]
    failed = _pytest(others, environment) or failed
    print("\nRuns that are killed and resumed:\n")
    killed = ["tests/e2e/test_run.py", "-k", "killed_and_resumed", chosen]
    return _pytest(killed, environment) or failed


def docs(_: float) -> int:
    """Run every command of every page, and look at the site as files and in a browser."""
    return _pytest(["tests/unit/test_docs.py", "tests/e2e/test_site.py", "tests/browser"])


def documents(effort: float) -> int:
    """Parse real documents of many producers, and changed ones: no parser may fail."""
    seed = int(time.time())
    mutations = max(1, round(500 * effort))
    print(f"The same again: `benchmarks/documents.py --mutations {mutations} --seed {seed}`\n")
    archives = real_documents.ARCHIVES if effort >= 1 else real_documents.ARCHIVES[:1]
    folder = real_documents.default_folder()
    try:
        return real_documents.campaign(archives, folder, mutations=mutations, seed=seed)
    except real_documents.UnreachableError as error:
        print(f"not fetched: {error}")
        return real_documents.UNREACHABLE


def chunkings(effort: float) -> int:
    """Compare chunkings by chunk ids, and hold what is said of them against the truth by bytes."""
    return rechunked.campaign(effort)


def scale(effort: float) -> int:
    """Score large files cut in many ways: workers and ranges change no byte of the report."""
    sizes = [round(size * effort) for size in (100_000, 1_000_000)]
    rows, differing = [], 0
    for traces in sizes:
        with tempfile.TemporaryDirectory(prefix="ragauge-scale-") as folder:
            files = generate(Parameters(traces, max(10, traces // 100)), Path(folder))
            digests = set()
            for workers, range_bytes in _cuts(files.trace_bytes):
                start = time.perf_counter()
                digest = _report_digest(files.gold, files.trace, workers, range_bytes)
                seconds = time.perf_counter() - start
                digests.add(digest)
                rows.append(
                    (f"{traces:,}", f"{workers}", f"{range_bytes:,}", f"{seconds:.1f}", digest)
                )
            differing += len(digests) > 1
    print(grid("rrrrl", ("traces", "workers", "bytes a range", "seconds", "report"), rows))
    print(f"\n{len(rows)} ways to cut {len(sizes)} files: {differing} files with two results")
    return int(differing > 0)


def _cuts(trace_bytes: int) -> Iterator[tuple[int, int]]:
    """Workers and bytes of a range: one piece, pieces of odd sizes, and very many of them."""
    for workers in (1, 2, 3):
        for pieces in (1, 7, 100):
            yield workers, trace_bytes // pieces + pieces


def _report_digest(gold: Path, trace: Path, workers: int, range_bytes: int) -> str:
    """The beginning of the hash of the full JSON report, and of its every question."""
    assert ranges.plan.__kwdefaults__ is not None
    ranges.plan.__kwdefaults__["range_bytes"] = range_bytes
    vars(choose)["RANGE_BYTES"] = range_bytes  # its own name of the same number
    profile = registry.profile("all")
    scores = score(gold, trace, profile="all", workers=workers)
    view = View(scores=scores, verdict=gate(scores), profile=profile, full=True)
    text = registry.report("json").text(view)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def stats(effort: float) -> int:
    """Simulate what the statistics promise: 95 % intervals cover, and equal runs rarely differ."""
    runs = max(100, round(20_000 * effort))
    exact = [*coverage.rates(), *coverage.quantiles()]
    drawn = [
        *coverage.means(runs),
        *coverage.conversations(runs),
        *coverage.differences(runs),
    ]
    print(grid("lrrrr", ("interval of", "n", "lowest", "highest", "mean width"), _covered(exact)))
    print("\nExact: every outcome by its probability, at true values from 0.5 to 0.99.\n")
    print(grid("lrrrr", ("interval of", "n", "lowest", "highest", "mean width"), _covered(drawn)))
    print(f"\n{runs:,} runs a true value, of the same values. Nothing may be below 0.93, but for")
    print(f"{', '.join(coverage.STRESS)}: {coverage.LEAST_STRESS}.\n")
    rng = np.random.default_rng(20_261_115)
    draws = max(20, runs // 10)
    rows = [
        (name, f"{n:,}", f"{share:.3f}", f"± {1.96 * (share * (1 - share) / draws) ** 0.5:.3f}")
        for name, n, simulate in _simulations(rng)
        for share in [sum(simulate() for _ in range(draws)) / draws]
    ]
    print(grid("lrrr", ("equal runs", "n", "share", "of the simulation"), rows))
    print(f"\n{draws:,} simulations each; p < 0.05 promises at most 0.05.")
    # Of few runs a cell may be low by chance: four standard errors, and none of the usual number.
    luck = 0.0 if runs >= 20_000 else 4 * (0.93 * 0.07 / runs) ** 0.5
    low = [cell for cell in exact if cell.coverage < coverage.least(cell)]
    low += [cell for cell in drawn if cell.coverage < coverage.least(cell) - luck]
    for cell in low:
        print(f"too low: {cell}")
    loud = _alarms(max(2, round(400 * effort)))
    return int(bool(low or loud))


def _alarms(draws: int) -> list[equal_runs.Alarm]:
    """Print how often comparisons of simulated runs raise alarm; return those that do too often."""
    alarms = list(equal_runs.campaign(np.random.default_rng(20_261_116), draws))
    rows = [
        (
            alarm.what,
            f"{alarm.n:,}",
            str(alarm.repeats),
            f"{alarm.unstable:.0%}",
            f"{alarm.share:.3f}",
            f"{alarm.allowed:.2f}" if alarm.allowed < 1 else "-",
        )
        for alarm in alarms
    ]
    print()
    print(grid("lrrrrr", ("comparison", "n", "repeats", "unstable", "alarm", "at most"), rows))
    print(
        f"\n{draws:,} comparisons each, through `score` and `compare`: an unstable question finds"
    )
    print(
        "each of its two pieces in half of its slots. Where questions are lost, which should raise"
    )
    print("alarm, there are a quarter as many comparisons.")
    # A share of 5 % is a little more in half of all simulations: two standard errors, and one draw.
    luck = 2 * (equal_runs.MOST * (1 - equal_runs.MOST) / draws) ** 0.5 + 1 / draws
    loud = [alarm for alarm in alarms if alarm.share > alarm.allowed + luck]
    for alarm in loud:
        print(f"too often: {alarm}")
    return loud


def _covered(cells: Sequence[coverage.Cell]) -> list[tuple[str, ...]]:
    """One row for each kind and size: the lowest and highest coverage over all true values."""
    rows: list[tuple[str, ...]] = []
    for kind, n in dict.fromkeys((cell.kind, cell.n) for cell in cells):
        same = [cell for cell in cells if (cell.kind, cell.n) == (kind, n)]
        shares = [cell.coverage for cell in same]
        width = sum(cell.width for cell in same) / len(same)
        shown = "-" if math.isnan(width) else f"{width:.3f}"
        rows.append((kind, f"{n:,}", f"{min(shares):.3f}", f"{max(shares):.3f}", shown))
    return rows


def _simulations(rng: np.random.Generator) -> Iterator[tuple[str, int, Callable[[], bool]]]:
    """Each kind of test at each size, as a function that draws once."""
    for n in (10, 30, 100, 1_000):
        yield "McNemar says p < 0.05", n, partial(_mcnemar_differs, rng, n)
        yield "permutation says p < 0.05", n, partial(_permutation_differs, rng, n)


def _mcnemar_differs(rng: np.random.Generator, n: int) -> bool:
    """Two runs of hits and misses, both with three hits of four."""
    a, b = rng.random((2, n)) < 0.75
    return mcnemar(int((a & ~b).sum()), int((b & ~a).sum())) < 0.05


def _permutation_differs(rng: np.random.Generator, n: int) -> bool:
    a, b = rng.beta(2, 5, (2, n, 1))
    (p,) = permutation(b - a, permutations=RESAMPLES)
    return p is not None and p < 0.05


def imports(effort: float) -> int:
    """Make the exports again with the newest libraries, and say where they carry something else."""
    needed = runpy.run_path(str(FIXTURES / "make.py"))["REQUIREMENTS"]
    rows, changed = [], 0
    names = list(needed)
    for name in names[: max(1, round(len(names) * effort))]:
        with tempfile.TemporaryDirectory() as scratch:
            folder = Path(scratch)
            python = folder / "environment" / "bin" / "python"
            newest = [requirement.partition("==")[0] for requirement in needed[name]]
            for command in (
                [sys.executable, "-m", "venv", str(folder / "environment")],
                [str(python), "-m", "pip", "install", "-q", "--pre", *newest],
                [str(python), str(FIXTURES / "make.py"), name, str(folder / "made")],
            ):
                done = subprocess.run(command, capture_output=True, encoding="utf-8", check=False)
                if done.returncode:
                    break
            if done.returncode:
                changed += 1
                rows.append([name, "cannot be made", done.stderr.strip().rpartition("\n")[2][:80]])
                continue
            for made in sorted((folder / "made").iterdir()):
                before, now = _carried(FIXTURES / made.name), _carried(made)
                changed += before != now
                rows.append([made.name, before, "the same" if before == now else now])
    print(grid("lll", ("export", "traces, answers, errors; hits, ids, texts, scores", "now"), rows))
    return int(changed > 0)


def _carried(path: Path) -> str:
    """What an export carries, in short."""
    with tempfile.TemporaryDirectory() as scratch:
        try:
            found = import_files([str(path)], f"{scratch}/traces.jsonl", "traces")
        except RagaugeError as error:
            return error.problems[0].message
    traces = f"{found.rows}, {found.answers}, {found.errors}"
    return f"{traces}; {found.hits}, {found.hit_ids}, {found.hit_texts}, {found.hit_scores}"


def live(effort: float) -> int:
    """Kill the live monitor at random moments, and load it: what it acknowledged is on disk."""
    return live_campaign.campaign(effort)


def _pytest(arguments: Sequence[str], environment: Mapping[str, str] | None = None) -> int:
    """Run tests, slow ones too, and print how many there were and how long they took."""
    start = time.perf_counter()
    command = [sys.executable, "-m", "pytest", "-q", "-n", "auto", "--dist", "loadgroup"]
    done = subprocess.run(
        [*command, *arguments],
        cwd=ROOT,
        env={**os.environ, **(environment or {})},
        stdout=subprocess.PIPE,
        encoding="utf-8",
        check=False,
    )
    minutes = (time.perf_counter() - start) / 60
    last = done.stdout.rstrip().rpartition("\n")[2]
    counts = {kind: number for number, kind in _COUNTED.findall(last)}
    if done.returncode:
        print(done.stdout)
    row = [counts.get(kind, "0") for kind in ("passed", "failed", "skipped")]
    print(grid("rrrr", ("passed", "failed", "skipped", "minutes"), [[*row, f"{minutes:.1f}"]]))
    return done.returncode


def _git(*arguments: str) -> str:
    done = subprocess.run(
        ["git", *arguments], cwd=ROOT, capture_output=True, encoding="utf-8", check=False
    )
    return done.stdout.strip()


CAMPAIGNS = {
    "fuzz": fuzz,
    "imports": imports,
    "docs": docs,
    "documents": documents,
    "chunkings": chunkings,
    "live": live,
    "scale": scale,
    "stats": stats,
}


def main() -> int:
    """Run one campaign from the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("name", choices=CAMPAIGNS)
    parser.add_argument("--effort", type=float, default=1.0, help="times the usual sizes")
    parser.add_argument("--write", type=Path, metavar="PAGE", help="put the figures into a page")
    options = parser.parse_args()
    commit = _git("describe", "--always") or "unknown"
    today = datetime.now(UTC).date()
    # Figures of another campaign on the page change nothing that is measured.
    changed = _git("status", "--porcelain", "--", "src", "tests", "benchmarks", "pyproject.toml")
    with redirect_stdout(StringIO()) as figures:
        state = f"commit {commit} and changes" if changed else f"commit {commit}"
        print(f"Made by `make slow-{options.name}` on {today}, {state}.")
        print(f"{machine()}.\n")
        code = CAMPAIGNS[options.name](options.effort)
    print(figures.getvalue(), end="")
    if options.write and code == 0:  # a campaign that fails has no figures, but something to mend
        write_sections(options.write, {f"slow-{options.name}": figures.getvalue().rstrip()})
    return code


if __name__ == "__main__":
    sys.exit(main())
