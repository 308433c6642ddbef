"""Owns the benchmark of stored runs: storing results and comparing runs, beside plain scripts.

Run as `python benchmarks/store.py --results 1000000 --questions 100000 --rounds 1`; `--postgres
URL` names a server (otherwise one is started, where its programs are installed), `--dir DIR` keeps
the data for the next run, `--write docs/benchmarks.md` puts the tables into that page.
"""

from __future__ import annotations

import argparse
import json
import sqlite3
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import store_data
import store_server
from generate import Files
from measure import MEGABYTE, Measurement
from page import write_sections
from score import ACCEPTED, RAGAUGE, run
from table import grid, machine

RESULTS, QUESTIONS = 1_000_000, 100_000
SEEDS = 10  # results of one question
MOST_STORING, MOST_COMPARING = 120, 10  # seconds aimed at, at the usual sizes
SCRIPT = (sys.executable, str(Path(__file__).with_name("store_baseline.py")))
BASELINE = "plain script"
UNSTORED = "`score`, not stored"
SQLITE, POSTGRES = "`score --store=sqlite:///`", "`score --store=postgresql://`"
COMPARE = "`compare --format json`"
RULES = {
    "plain": ("--profile", "ship", "--no-intervals"),
    "placed": ("--profile", "kb", "--dialect", "native", "--no-intervals"),
}
SITUATIONS = {
    "ids": "same chunks, gold as ids",
    "places": "other chunks, gold as places",
    "old ids": "other chunks, gold as ids of run a",
}


@dataclass(frozen=True)
class Size:
    """How much there is to do."""

    results: int = RESULTS
    questions: int = QUESTIONS

    @property
    def storing(self) -> int:
        """The questions of the results that are stored."""
        return max(1, self.results // SEEDS)


@dataclass(frozen=True)
class Place:
    """Where a contender stores: how to empty it, and what is in it afterwards."""

    clear: Callable[[], None]
    results: Callable[[], int]
    disk_bytes: Callable[[], int]


@dataclass(frozen=True)
class Contender:
    """One command of a round."""

    what: str
    command: tuple[str, ...]
    place: Place | None = None


@dataclass(frozen=True)
class Figure:
    """One contender: the fastest of its rounds, the highest of its memory, or why there is none."""

    what: str
    about: str
    seconds: float = 0.0
    baseline: float = 1.0
    peak_bytes: int = 0
    memory: str = ""
    disk_bytes: int | None = None
    missing: str = ""


def in_file(path: Path, table: str) -> Place:
    """A database in a file, of which nothing is left when it is emptied."""

    def clear() -> None:
        for end in ("", "-wal", "-shm", "-journal"):
            path.with_name(path.name + end).unlink(missing_ok=True)

    def results() -> int:
        with closing(sqlite3.connect(path)) as database:
            return int(database.execute(f"SELECT count(*) FROM {table}").fetchone()[0])

    return Place(clear, results, lambda: path.stat().st_size)


def storing_contenders(
    kind: str, files: Files, folder: Path, server: store_server.Server
) -> list[Contender]:
    """List what runs in each round, the baseline first."""
    data = ("--gold", str(files.gold), "--trace", str(files.trace))
    score = (*RAGAUGE, "score", *data, *RULES[kind], "--format", "json")
    theirs, ours = folder / "plain.db", folder / "ragauge.db"
    listed = [
        Contender(
            BASELINE, (*SCRIPT, "store", str(files.trace), str(theirs)), in_file(theirs, "results")
        ),
        Contender(UNSTORED, score),
        Contender(
            SQLITE,
            (*score, f"--store=sqlite:///{ours.resolve()}"),
            in_file(ours, "eval_query_results"),
        ),
    ]
    if server.url:
        place = Place(server.clear, server.results, server.disk_bytes)
        listed.append(Contender(POSTGRES, (*score, f"--store={server.store}"), place))
    return listed


def warm(*paths: Path) -> None:
    """Read files once, so that every contender finds them in the page cache."""
    for path in paths:
        with path.open("rb") as file:
            while file.read(1 << 24):
                pass


def figure_of(what: str, about: str, measured: Mapping[str, list[Measurement]]) -> Figure:
    """Keep the fastest time and the highest memory of a contender, taken as in the last round."""
    kind = measured[what][-1].memory
    return Figure(
        what=what,
        about=about,
        seconds=min(result.seconds for result in measured[what]),
        baseline=min(result.seconds for result in measured[BASELINE]),
        peak_bytes=max(result.peak_bytes for result in measured[what] if result.memory == kind),
        memory=kind,
    )


def benchmark_storing(
    kind: str, files: Files, size: Size, rounds: int, folder: Path, server: store_server.Server
) -> list[Figure]:
    """Store one kind of results in interleaved rounds; all of them must have arrived."""
    warm(files.gold, files.trace)
    listed = storing_contenders(kind, files, folder, server)
    measured: dict[str, list[Measurement]] = {each.what: [] for each in listed}
    disk: dict[str, int] = {}
    for number in range(rounds):
        print(f"storing {size.results:,} {kind} results, round {number + 1}", file=sys.stderr)
        for each in listed:
            if each.place:
                each.place.clear()
            accepted = {0} if each.what == BASELINE else ACCEPTED
            result = run(each.what, each.command, accepted)
            measured[each.what].append(result)
            if each.place:
                arrived = each.place.results()
                if arrived != size.results:
                    raise SystemExit(f"error: {each.what} stored {arrived:,} of {size.results:,}")
                disk[each.what] = each.place.disk_bytes()
                each.place.clear()
        check_scores(measured)
    figures = [
        Figure(**{**vars(figure_of(what, kind, measured)), "disk_bytes": disk.get(what)})
        for what in measured
    ]
    if server.missing:
        figures.append(Figure(POSTGRES, kind, missing=server.missing))
    return figures


def check_scores(measured: Mapping[str, list[Measurement]]) -> None:
    """Stop if a run has other scores because it was stored; only then its gold set has a hash."""
    said = {
        what: {**json.loads(results[-1].stdout), "gold_hash": None}
        for what, results in measured.items()
        if what != BASELINE
    }
    for what, scores in said.items():
        if scores != said[UNSTORED]:
            raise SystemExit(f"error: {what} prints other scores than {UNSTORED}")


def stored_pair(pair: store_data.Pair, kind: str, database: Path) -> str:
    """Store both runs of a pair, and give the URL of the store."""
    in_file(database, "").clear()
    url = f"sqlite:///{database.resolve()}"
    for name, trace in (("a", pair.a), ("b", pair.b)):
        data = ("--gold", str(pair.gold), "--trace", str(trace), *RULES[kind])
        command = (*RAGAUGE, "score", *data, f"--store={url}", "--run-id", f"run-{name}")
        run(f"storing run {name}, not counted", command, ACCEPTED)
    return url


def benchmark_comparing(
    about: str, pair: store_data.Pair, kind: str, rounds: int, folder: Path
) -> list[Figure]:
    """Compare two runs in interleaved rounds; both must count the same wins and losses."""
    print(f"comparing, {about}", file=sys.stderr)
    url = stored_pair(pair, kind, folder / "compare.db")
    warm(pair.gold, pair.a, pair.b)
    ours = (*RAGAUGE, "compare", "run-a", "run-b", f"--store={url}", "--format", "json")
    commands = {
        BASELINE: (*SCRIPT, "compare", *map(str, (pair.gold, pair.a, pair.b))),
        COMPARE: ours,
    }
    measured: dict[str, list[Measurement]] = {what: [] for what in commands}
    for number in range(rounds + 1):
        # The last round is for the memory: looking at it costs time.
        for what, command in commands.items():
            measured[what].append(run(what, command, {0}, sampled=number == rounds))
        check_kinds(about, *(json.loads(measured[what][-1].stdout) for what in commands))
    in_file(folder / "compare.db", "").clear()
    return [figure_of(what, about, measured) for what in commands]


def check_kinds(about: str, plain: dict[str, int], ours: dict[str, Any]) -> None:
    """Stop unless the plain script found as many wins, losses, draws and regressions."""
    counted = ours["kinds"]["retrieval"]
    if counted != plain:
        raise SystemExit(f"error: {about}: compare counts {counted}, the plain script {plain}")


def storing_table(figures: Sequence[Figure], size: Size) -> str:
    """Lay out the figures of storing."""
    header = (
        "results", "kind", "what", "seconds", "ratio", "storing alone, s", "peak MB", "disk MB",
    )  # fmt: skip
    unstored = {each.about: each.seconds for each in figures if each.what == UNSTORED}
    rows = []
    for each in figures:
        head = (f"{size.results:,}", each.about, each.what)
        if each.missing:
            rows.append((*head, each.missing, "", "", "", ""))
            continue
        alone = each.seconds - unstored[each.about] if each.what in (SQLITE, POSTGRES) else None
        rows.append((
            *head,
            f"{each.seconds:.2f}",
            f"{each.seconds / each.baseline:.2f}",
            "" if alone is None else f"{alone:.2f}",
            f"{each.peak_bytes / MEGABYTE:,.0f}",
            "" if each.disk_bytes is None else f"{each.disk_bytes / MEGABYTE:,.0f}",
        ))  # fmt: skip
    return grid("rllrrrrr", header, rows)


def comparing_table(figures: Sequence[Figure], size: Size) -> str:
    """Lay out the figures of comparing."""
    rows = (
        (
            f"{size.questions:,}",
            each.about,
            each.what,
            f"{each.seconds:.2f}",
            f"{each.seconds / each.baseline:.2f}",
            f"{each.peak_bytes / MEGABYTE:,.0f}",
        )
        for each in figures
    )
    header = ("questions", "situation", "what", "seconds", "ratio", "peak MB")
    return grid("rllrrr", header, rows)


def targets_table(storing: Sequence[Figure], comparing: Sequence[Figure], size: Size) -> str:
    """Set what was measured beside what is aimed at; other sizes reach nothing."""
    rows = []
    for figures, wanted, most, whole in (
        (storing, (SQLITE, POSTGRES), MOST_STORING, size.results == RESULTS),
        (comparing, (COMPARE,), MOST_COMPARING, size.questions == QUESTIONS),
    ):
        for each in figures:
            if each.what in wanted:
                reached = "yes" if each.seconds < most else "no"
                if each.missing or not whole:
                    reached = "not measured" if each.missing else "not at this size"
                measured = "" if each.missing else f"{each.seconds:.2f}"
                rows.append((f"{each.what}, {each.about}", f"< {most}", measured, reached))
    header = f"target: {RESULTS:,} results, {QUESTIONS:,} questions"
    return grid("lrrl", (header, "seconds", "measured", "reached"), rows)


def measured_storing(
    size: Size, rounds: int, folder: Path, postgres: str | None
) -> Iterator[tuple[Files, list[Figure]]]:
    """Make and store the results of each kind."""
    kinds = {"plain": store_data.plain_results, "placed": store_data.placed_results}
    with store_server.opened(postgres) as server:
        for kind, make in kinds.items():
            files = make(size.results, size.storing, folder / kind)
            yield files, benchmark_storing(kind, files, size, rounds, folder, server)


def measured_comparing(size: Size, rounds: int, folder: Path) -> list[Figure]:
    """Make, store and compare two runs in each situation."""
    ids = store_data.plain_pair(size.questions, folder / "ids")
    places, old_ids = store_data.placed_pairs(size.questions, folder / "places")
    return [
        figure
        for about, pair, kind in (
            ("ids", ids, "plain"),
            ("places", places, "placed"),
            ("old ids", old_ids, "placed"),
        )
        for figure in benchmark_comparing(SITUATIONS[about], pair, kind, rounds, folder)
    ]


def section(size: Size, rounds: int, folder: Path, postgres: str | None = None) -> str:
    """Measure, and lay everything out as Markdown."""
    folder.mkdir(parents=True, exist_ok=True)
    stored = list(measured_storing(size, rounds, folder, postgres))
    storing = [figure for _, figures in stored for figure in figures]
    comparing = measured_comparing(size, rounds, folder)
    kinds = ", ".join(sorted({each.memory for each in (*storing, *comparing) if each.memory}))
    plain, placed = (files.trace_bytes / size.results for files, _ in stored)
    named = " --postgres URL" if postgres else ""
    options = f"--results {size.results} --questions {size.questions} --rounds {rounds}{named}"
    return "\n\n".join([
        f"Made by `python benchmarks/store.py {options}`.",
        f"{machine()}. Whole processes: fastest of the interleaved rounds, highest memory of the "
        f"process tree ({kinds}), without that of a database server. **ratio** is the time over "
        "that of the plain script.",
        f"Storing: {size.results:,} results of {size.storing:,} questions. `plain` are ids, a "
        f"claim and citations, {plain:,.0f} bytes each, scored with "
        f"`{' '.join(RULES['plain'])}`; `placed` are {store_data.HITS} hits with document, "
        f"offsets, score, chunker version and document hash, {placed:,.0f} bytes each, scored with "
        f"`{' '.join(RULES['placed'])}`. The plain script parses each line and writes it, "
        "compressed, into an SQLite table; it scores nothing. **storing alone** is the time with "
        "`--store` less the time without. All results arrived, and the scores are the same with a "
        "store and without.",
        storing_table(storing, size),
        f"Comparing: two runs of {size.questions:,} questions with one result each, in an SQLite "
        "store. The plain script reads both trace files and counts wins, losses, draws and "
        "regressions, without statistics; `compare` counts the same ones. Memory is "
        "of a round of its own.",
        comparing_table(comparing, size),
        targets_table(storing, comparing, size),
    ])  # fmt: skip


def add_options(parser: argparse.ArgumentParser, questions: str = "--compared") -> None:
    """Declare what decides about this benchmark alone; `questions` is how that option is called."""
    parser.add_argument("--results", type=int, default=RESULTS, help="results to store")
    parser.add_argument(
        questions, dest="compared", type=int, default=QUESTIONS, metavar="N",
        help="questions of the runs to compare",
    )  # fmt: skip
    parser.add_argument(
        "--postgres", metavar="URL",
        help=f"a server to store to, in the schema {store_server.SCHEMA}, which is dropped",
    )  # fmt: skip


def size_of(options: argparse.Namespace) -> Size:
    """Read the size back."""
    return Size(options.results, options.compared)


def main() -> int:
    """Benchmark from the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    add_options(parser, "--questions")
    parser.add_argument("--rounds", type=int, default=3, help="interleaved rounds")
    parser.add_argument("--dir", type=Path, help="keep the generated data here")
    parser.add_argument("--write", type=Path, help="put the tables into this Markdown file")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder: Path = options.dir or Path(temporary)
        text = section(size_of(options), options.rounds, folder, options.postgres)
    print(text)
    if options.write:
        write_sections(options.write, {"store": text})
    return 0


if __name__ == "__main__":
    sys.exit(main())
