"""Owns the benchmark of two versions of ragauge: the same commands, before and after a change.

Run as `python benchmarks/versions.py --before COMMIT --rounds 5`, in an environment that has what
both versions import. A round runs every command with one version and then with the other, and the
order of the two changes from round to round. What both print is compared, but does not have to be
the same: a change may be meant.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path

import corpus
import store_data
from measure import Measurement, measure
from page import write_sections
from table import grid, machine
from trec_data import TrecParameters, generate_trec

ROOT = Path(__file__).resolve().parents[1]
ACCEPTED = (0, 1, 4)  # generated answers are too poor to pass gates
RAGAUGE = (sys.executable, "-P", "-m", "ragauge")
TREC = "retrieval.precision_at_cutoff,retrieval.recall,retrieval.ndcg,retrieval.mrr"

Commands = dict[str, tuple[str, ...]]


def scoring(traces: int, folder: Path) -> Commands:
    """Score traces of ids and traces with places, with one worker and with two."""
    questions = max(10, traces // 20)
    plain = store_data.plain_results(traces, questions, folder / "plain")
    placed = store_data.placed_results(traces // 4, questions // 4, folder / "placed")
    commands: Commands = {}
    for kind, files, rules in (
        ("plain", plain, ("--profile", "ship", "--full")),
        ("plain", plain, ("--profile", "all")),
        ("placed", placed, ("--profile", "kb", "--dialect", "native")),
    ):
        for workers in ("1", "2"):
            what = f"`score`, {kind}, `{rules[1]}`, workers: {workers}"
            given = ("score", str(files.gold), str(files.trace), *rules, "--workers", workers)
            commands[what] = (*given, "--format", "json")
    return commands


def pages(questions: int, folder: Path) -> Commands:
    """Write the page of a run, one trace a question."""
    placed = store_data.placed_results(questions, questions, folder / "page")
    given = ("score", str(placed.gold), str(placed.trace), "--profile", "kb")
    page = str(folder / "page.html")
    return {"`score -o report.html`": (*given, "--dialect", "native", "-o", page)}


def comparisons(questions: int, folder: Path) -> Commands:
    """Compare two runs: over the same chunks, and over others."""
    same = store_data.plain_pair(questions, folder / "same")
    other = store_data.placed_pairs(questions, folder / "other")[1]
    return {
        f"`compare`, {name}": (
            "compare",
            str(pair.a),
            str(pair.b),
            "--gold",
            str(pair.gold),
            *rules,
        )
        for name, pair, rules in (
            ("same chunks", same, ("--profile", "ship", "--format", "json")),
            ("other chunks", other, ("--dialect", "native", "--format", "json")),
        )
    }


def trec_files(queries: int, folder: Path) -> Commands:
    """Score a TREC run of a hundred results a query, as the benchmark beside other libraries."""
    files = generate_trec(TrecParameters(queries, 100), folder / "trec")
    given = ("score", str(files.qrels), str(files.run), "--metrics", TREC, "--k", "1,3,5,10")
    return {"`score`, TREC": (*given, "--no-intervals", "--format", "json")}


def corpora(files: int, folder: Path) -> Commands:
    """Build a corpus, and follow an edit."""
    data = corpus.versions(files, folder / "corpus")
    old, new = (str(folder / f"corpus-{name}") for name in ("old", "new"))
    diff = ("corpus", "diff", old, new, "-o", str(folder / "map.jsonl"), "--format", "json")
    return {
        "`corpus build`": ("corpus", "build", str(data.old), "-o", old),
        "`corpus build`, edited": ("corpus", "build", str(data.new), "-o", new),
        "`corpus diff`": diff,
    }


def ran(command: tuple[str, ...], source: Path) -> Measurement:
    """Run a command with the code of one version."""
    os.environ["PYTHONPATH"] = str(source)
    result = measure((*RAGAUGE, *command), sampled=False)
    if result.returncode not in ACCEPTED:
        raise SystemExit(f"error: exit {result.returncode} of {' '.join(command)}\n{result.stderr}")
    return result


def rounds_of(
    commands: Commands, sources: Mapping[str, Path], rounds: int
) -> dict[str, dict[str, list[Measurement]]]:
    """Run every command with each version, in as many rounds as asked for."""
    results: dict[str, dict[str, list[Measurement]]] = {
        what: {version: [] for version in sources} for what in commands
    }
    for number in range(rounds):
        order = list(sources) if number % 2 == 0 else list(sources)[::-1]
        for what, command in commands.items():
            for version in order:
                results[what][version].append(ran(command, sources[version]))
    return results


def table(results: Mapping[str, Mapping[str, list[Measurement]]]) -> str:
    """Show the least times of both versions, and after over before."""
    rows = []
    for what, versions in results.items():
        before, after = versions["before"], versions["after"]
        cells = [what]
        for field in ("cpu_seconds", "seconds"):
            least = [min(getattr(run, field) for run in runs) for runs in (before, after)]
            cells += [f"{least[0]:.2f}", f"{least[1]:.2f}", f"{least[1] / least[0]:.2f}"]
        peaks = [max(run.peak_bytes for run in runs) for runs in (before, after)]
        cells.append(f"{peaks[1] / peaks[0]:.2f}")
        cells.append("yes" if before[0].stdout == after[0].stdout else "no")
        rows.append(tuple(cells))
    titles = ("what", "CPU before", "after", "ratio", "wall before", "after", "ratio", "memory")
    return grid("lrrrrrrrl", (*titles, "same output"), rows)


def main() -> int:
    """Measure from the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--before", required=True, help="a commit")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--size", type=float, default=1.0, help="a factor for all sizes")
    parser.add_argument("--only", default="", help="commands whose name has this in it")
    parser.add_argument("--dir", type=Path, help="keep the data here")
    parser.add_argument("--write", type=Path, metavar="PAGE", help="put the table into a page")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="ragauge-versions-") as temporary:
        before = Path(temporary) / "before"
        clone = ("git", "clone", "-q", "--shared", "--no-checkout", str(ROOT), str(before))
        subprocess.run(clone, check=True)
        subprocess.run(("git", "-C", str(before), "checkout", "-q", options.before), check=True)
        folder = options.dir or Path(temporary) / "data"
        folder.mkdir(parents=True, exist_ok=True)
        size = options.size
        commands = {
            **scoring(round(400_000 * size), folder),
            **pages(round(10_000 * size), folder),
            **comparisons(round(20_000 * size), folder),
            **trec_files(round(20_000 * size), folder),
            **corpora(max(10, round(1_000 * size)), folder),
        }
        commands = {what: given for what, given in commands.items() if options.only in what}
        sources = {"before": before / "src", "after": ROOT / "src"}
        results = rounds_of(commands, sources, options.rounds)
    text = (
        f"Made by `python benchmarks/versions.py --before {options.before}`.\n\n{machine()}. "
        f"{options.rounds} rounds, interleaved: the least time, the highest memory of a process; "
        f"ratios are after over before.\n\n{table(results)}"
    )
    print(text)
    if options.write:
        write_sections(options.write, {"versions": text.rstrip()})
    return 0


if __name__ == "__main__":
    sys.exit(main())
