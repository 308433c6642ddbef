"""Owns the benchmark of pages: writing a run as HTML, beside scoring the same files.

Run as `python benchmarks/report.py --reported 10000 --rounds 3`; `--dir DIR` keeps the data for
the next run, `--write docs/benchmarks.md` puts the tables into that page.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random

import store_data
from measure import MEGABYTE, Measurement
from page import write_sections
from score import ACCEPTED, RAGAUGE, run
from table import grid, machine

QUESTIONS = 10_000
MOST_SECONDS, MOST_MB = 3, 6  # aimed at for a page, at the usual size
TEXT = 512  # characters of a hit
RULES = {
    "plain": ("--profile", "ship"),
    "placed": ("--profile", "kb", "--dialect", "native"),
    "told": ("--profile", "all", "--dialect", "native"),
}
SCORE, WITH_PAGE, VIEW = "`score`", "`score -o report.html`", "`view` of a stored run"
COMPARE, COMPARED = "`compare`", "`compare -o report.html`"


@dataclass(frozen=True)
class Figure:
    """One contender: the fastest of its rounds, the highest of its memory, the size of its page."""

    kind: str
    what: str
    seconds: float
    ratio: float
    peak_bytes: int
    page_bytes: int | None


def told_lines(trace: Path, random: Random) -> Iterator[str]:
    """Traces whose hits have texts and whose answers cite the first hit."""
    words = [
        "".join(random.choices("abcdefghijklmnoprstuvwz", k=random.randint(2, 10)))
        for _ in range(5_000)
    ]
    with trace.open(encoding="utf-8") as file:
        for line in file:
            row = json.loads(line)
            for hit in row["hits"]:
                text = " ".join(random.choices(words, k=TEXT // 3))
                start, end = hit["offsets"]
                hit["text"] = text[: end - start].ljust(end - start)
            said = " ".join(random.choices(words, k=30))
            row["answer"] = {"text": said, "citations": [row["hits"][0]["id"]]}
            yield json.dumps(row) + "\n"


def files_of(kind: str, questions: int, folder: Path) -> tuple[Path, Path]:
    """The gold set and the traces of a kind, one for each question."""
    if kind == "plain":
        plain = store_data.plain_results(questions, questions, folder / "plain")
        return plain.gold, plain.trace
    placed = store_data.placed_results(questions, questions, folder / "placed")
    if kind == "placed":
        return placed.gold, placed.trace
    trace = folder / "told" / "trace.jsonl"
    store_data.unless_there(
        trace.parent, {"told": questions},
        lambda: store_data.write(trace, told_lines(placed.trace, Random(1))),
    )  # fmt: skip
    return placed.gold, trace


def benchmark_run(kind: str, questions: int, rounds: int, folder: Path) -> list[Figure]:
    """Score, score with a page, and write the page of a stored run, in interleaved rounds."""
    gold, trace = files_of(kind, questions, folder)
    given = (*RAGAUGE, "score", str(gold), str(trace), *RULES[kind], "--no-intervals")
    pages = {WITH_PAGE: folder / f"{kind}-score.html", VIEW: folder / f"{kind}-view.html"}
    store = f"sqlite:///{(folder / f'{kind}.db').resolve()}"
    (folder / f"{kind}.db").unlink(missing_ok=True)
    run("storing, not counted", (*given, f"--store={store}", "--run-id", "r"), ACCEPTED)
    score = (*given, "--format", "json")
    return measured(kind, rounds, pages, {
        SCORE: score,
        WITH_PAGE: (*score, "-o", str(pages[WITH_PAGE])),
        VIEW: (*RAGAUGE, "view", "r", "--store", store, "--no-open", "-o", str(pages[VIEW])),
    })  # fmt: skip


def benchmark_pair(questions: int, rounds: int, folder: Path) -> list[Figure]:
    """Compare two stored runs over other chunks, and compare them with a page."""
    pair = store_data.placed_pairs(questions, folder / "pair")[1]
    database = folder / "pair.db"
    database.unlink(missing_ok=True)
    store = f"sqlite:///{database.resolve()}"
    for name, trace in (("a", pair.a), ("b", pair.b)):
        given = (*RAGAUGE, "score", str(pair.gold), str(trace), *RULES["placed"])
        command = (*given, "--no-intervals", f"--store={store}", "--run-id", f"run-{name}")
        run(f"storing run {name}, not counted", command, ACCEPTED)
    pages = {COMPARED: folder / "compare.html"}
    compare = (*RAGAUGE, "compare", "run-a", "run-b", "--store", store, "--format", "json")
    return measured("other chunks", rounds, pages, {
        COMPARE: compare,
        COMPARED: (*compare, "-o", str(pages[COMPARED])),
    })  # fmt: skip


def measured(
    kind: str, rounds: int, pages: Mapping[str, Path], commands: Mapping[str, tuple[str, ...]]
) -> list[Figure]:
    """Run all commands round by round; what the first prints, the second must print too."""
    results: dict[str, list[Measurement]] = {what: [] for what in commands}
    for number in range(rounds):
        print(f"{kind}, round {number + 1}", file=sys.stderr)
        for what, command in commands.items():
            results[what].append(run(what, command, ACCEPTED))
    first, second = list(commands)[:2]
    if results[first][-1].stdout != results[second][-1].stdout:
        raise SystemExit(f"error: {kind}: {second} prints something else than {first}")
    fastest = {what: min(each.seconds for each in found) for what, found in results.items()}
    return [
        Figure(
            kind=kind,
            what=what,
            seconds=fastest[what],
            ratio=fastest[what] / fastest[first],
            peak_bytes=max(each.peak_bytes for each in found),
            page_bytes=pages[what].stat().st_size if what in pages else None,
        )
        for what, found in results.items()
    ]


def figures_table(figures: Sequence[Figure], questions: int) -> str:
    """Lay out what was measured."""
    rows = (
        (
            f"{questions:,}",
            each.kind,
            each.what,
            f"{each.seconds:.2f}",
            f"{each.ratio:.2f}",
            f"{each.peak_bytes / MEGABYTE:,.0f}",
            "" if each.page_bytes is None else f"{each.page_bytes / MEGABYTE:.2f}",
        )
        for each in figures
    )
    header = ("questions", "kind", "what", "seconds", "ratio", "peak MB", "page MB")
    return grid("rllrrrr", header, rows)


def targets_table(figures: Sequence[Figure], questions: int) -> str:
    """Set what was measured beside what is aimed at; other sizes reach nothing."""
    rows = []
    for each in figures:
        if each.page_bytes is None:
            continue
        size = each.page_bytes / MEGABYTE
        goals = [("MB", MOST_MB, size)]
        if each.what == VIEW:
            goals.append(("s", MOST_SECONDS, each.seconds))
        elif each.what == WITH_PAGE:
            goals.append(("s more", MOST_SECONDS, each.seconds - each.seconds / each.ratio))
        for unit, most, found in goals:
            reached = "yes" if found < most else "no"
            rows.append((
                f"{each.what}, {each.kind}", f"< {most} {unit}", f"{found:.2f}",
                reached if questions == QUESTIONS else "not at this size",
            ))  # fmt: skip
    return grid("lrrl", (f"target: {QUESTIONS:,} questions", "most", "measured", "reached"), rows)


def section(questions: int, rounds: int, folder: Path) -> str:
    """Measure, and lay everything out as Markdown."""
    folder.mkdir(parents=True, exist_ok=True)
    figures = [
        figure for kind in RULES for figure in benchmark_run(kind, questions, rounds, folder)
    ]
    figures += benchmark_pair(questions, rounds, folder)
    return "\n\n".join([
        f"Made by `python benchmarks/report.py --reported {questions} --rounds {rounds}`.",
        f"{machine()}. Whole processes with their start: fastest of the interleaved rounds, "
        "highest memory of the process tree. **ratio** is the time over that of the same command "
        "without a page; for `view`, which reads a run from SQLite and scores nothing, over that "
        "of `score`.",
        f"One trace a question with {store_data.HITS} hits. `plain` are ids, a claim and "
        f"citations; `placed` have documents and offsets; `told` have texts of {TEXT} characters "
        "too, and answers that cite. `other chunks` are two runs over two chunkings. All are "
        "scored without intervals. What is printed is the same with a page and without.",
        figures_table(figures, questions),
        targets_table(figures, questions),
    ])  # fmt: skip


def add_options(parser: argparse.ArgumentParser) -> None:
    """Declare what decides about this benchmark alone."""
    parser.add_argument(
        "--reported", type=int, default=QUESTIONS, metavar="N", help="questions of a page"
    )


def main() -> int:
    """Benchmark from the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    add_options(parser)
    parser.add_argument("--rounds", type=int, default=3, help="interleaved rounds of each")
    parser.add_argument("--dir", type=Path, help="keep the generated data here")
    parser.add_argument("--write", type=Path, help="write this Markdown page")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        text = section(options.reported, options.rounds, options.dir or Path(temporary))
    print(text)
    if options.write:
        write_sections(options.write, {"report": text})
    return 0


if __name__ == "__main__":
    sys.exit(main())
