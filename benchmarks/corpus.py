"""Owns the benchmark of corpora: building one, and mapping it to its next version.

Run as `python benchmarks/corpus.py --files 2000 --rounds 3`; `--dir DIR` keeps the data for the
next run. The yardstick is a plain script that reads and hashes the same files.
"""

from __future__ import annotations

import argparse
import json
import random
import shutil
import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from measure import MEGABYTE, Measurement
from score import RAGAUGE, run
from table import grid, machine

FILES = 2_000
MOST_SECONDS, MOST_MB = 60, 1_000  # aimed at for the map, at the usual size
SECTIONS, PARAGRAPHS, SENTENCES = 4, 4, 5  # of a file, a section, a paragraph
SEED = 20_261_115
YARDSTICK = "read and hash, plain script"
BUILD, DIFF = "`corpus build`", "`corpus diff`"
HASHING = """
import hashlib, pathlib, sys
for root in sys.argv[1:]:
    for path in sorted(pathlib.Path(root).rglob("*.md")):
        hashlib.sha256(path.read_bytes()).hexdigest()
"""


@dataclass(frozen=True)
class Versions:
    """Two versions of a folder of files, and how the second was made from the first."""

    old: Path
    new: Path
    files: int
    bytes: int
    edits: dict[str, int]


@dataclass(frozen=True)
class Figure:
    """One contender: the fastest of its rounds and the highest of its memory."""

    what: str
    seconds: float
    ratio: float
    peak_bytes: int


class Writer:
    """Writes text of made-up words; the same numbers give the same text."""

    def __init__(self, seed: int) -> None:
        self.chance = random.Random(seed)
        letters = "abcdefghijklmnoprstuvwz"
        self.words = [
            "".join(self.chance.choices(letters, k=self.chance.randint(2, 10)))
            for _ in range(20_000)
        ]
        self.weights = [1 / (rank + 10) for rank in range(len(self.words))]

    def sentence(self) -> str:
        """A sentence of some twelve words, common ones more often than rare ones."""
        words = self.chance.choices(self.words, self.weights, k=self.chance.randint(6, 18))
        return f"{' '.join(words).capitalize()}."

    def paragraph(self) -> str:
        return " ".join(self.sentence() for _ in range(SENTENCES))

    def section(self) -> list[str]:
        """A heading, paragraphs, and now and then some code or a table."""
        parts = [f"## {self.sentence().rstrip('.')[:40]}"]
        parts += [self.paragraph() for _ in range(PARAGRAPHS)]
        kind = self.chance.randrange(4)
        if kind == 0:
            parts.append("```py\n" + "\n".join(self.sentence() for _ in range(4)) + "\n```")
        elif kind == 1:
            rows = "\n".join(f"| {i} | {self.sentence()} |" for i in range(5))
            parts.append(f"| key | meaning |\n|---|---|\n{rows}")
        return parts

    def file(self) -> list[list[str]]:
        """A title with a paragraph, then sections."""
        first = [f"# {self.sentence().rstrip('.')[:40]}", self.paragraph()]
        return [first, *(self.section() for _ in range(SECTIONS))]


def changed_sentence(file: list[list[str]], writer: Writer) -> None:
    first, _, rest = file[2][1].partition(". ")
    words = first.split()
    words[len(words) // 2] = writer.sentence().split()[0]
    file[2][1] = f"{' '.join(words)}. {rest}"


def inserted_subtitle(file: list[list[str]], writer: Writer) -> None:
    first, _, rest = file[3][2].partition(". ")
    file[3][2:3] = [f"{first}.", f"### {writer.sentence()[:20]}", rest]


def removed_break(file: list[list[str]], _: Writer) -> None:
    file[4][1:3] = [f"{file[4][1]}\n{file[4][2]}"]


def inserted_section(file: list[list[str]], writer: Writer) -> None:
    file.insert(2, writer.section())


def moved_section(file: list[list[str]], _: Writer) -> None:
    file.append(file.pop(2))


EDITS: dict[str, Callable[[list[list[str]], Writer], None]] = {
    "sentence changed": changed_sentence,
    "subtitle inserted": inserted_subtitle,
    "line break removed": removed_break,
    "section inserted": inserted_section,
    "section moved": moved_section,
}
RENAMED = "file renamed"


def text_of(file: Sequence[Sequence[str]]) -> str:
    return "".join(f"{part}\n\n" for section in file for part in section)


def versions(files: int, folder: Path) -> Versions:
    """Write both versions; one file in ten is edited, in each of the ways in turn."""
    writer = Writer(SEED)
    kinds = [*EDITS, RENAMED]
    edits = dict.fromkeys(kinds, 0)
    old, new = folder / "old", folder / "new"
    for root in (old, new):
        shutil.rmtree(root, ignore_errors=True)
    size = 0
    for number in range(files):
        file = writer.file()
        name = f"part{number % 20:02}/page{number:05}.md"
        for root in (old, new):
            (root / name).parent.mkdir(parents=True, exist_ok=True)
        text = text_of(file)
        size += len(text.encode())
        (old / name).write_text(text, encoding="utf-8", newline="\n")
        if number % 10 == 0:
            kind = kinds[number // 10 % len(kinds)]
            edits[kind] += 1
            if kind == RENAMED:
                name = name.replace("page", "leaf")
            else:
                EDITS[kind](file, writer)
        (new / name).write_text(text_of(file), encoding="utf-8", newline="\n")
    return Versions(old, new, files, size, edits)


def commands(data: Versions, folder: Path) -> dict[str, tuple[str, ...]]:
    """List what runs in each round, the yardstick first."""
    made = [str(folder / f"corpus-{name}") for name in ("old", "new")]
    build = (*RAGAUGE, "corpus", "build")
    return {
        YARDSTICK: (sys.executable, "-c", HASHING, str(data.old), str(data.new)),
        f"{BUILD}, old": (*build, str(data.old), "-o", made[0]),
        f"{BUILD}, new": (*build, str(data.new), "-o", made[1]),
        DIFF: (*RAGAUGE, "corpus", "diff", *made, "-o", str(folder / "map.jsonl"),
               "--format", "json"),
    }  # fmt: skip


def check(data: Versions, printed: str) -> dict[str, dict[str, int]]:
    """Stop unless every edit was found for what it is."""
    found = json.loads(printed)
    counts: dict[str, dict[str, int]] = found["counts"]
    blocks, edits = counts["block"], data.edits
    for kind, least in (
        ("edit", edits["sentence changed"]),
        ("split", edits["subtitle inserted"]),
        ("merge", 2 * edits["line break removed"]),
    ):
        if blocks.get(kind, 0) != least:
            raise SystemExit(f"error: {least} blocks of the kind {kind} were made, found {blocks}")
    if counts["document"].get("move", 0) != edits[RENAMED] or "unmapped" in blocks:
        raise SystemExit(f"error: not every document and block was found again: {counts}")
    return counts


def section(files: int, rounds: int, folder: Path) -> str:
    """Measure, and lay everything out as Markdown."""
    folder.mkdir(parents=True, exist_ok=True)
    data = versions(files, folder)
    listed = commands(data, folder)
    measured: dict[str, list[Measurement]] = {what: [] for what in listed}
    for number in range(rounds):
        print(f"{files:,} files, round {number + 1}", file=sys.stderr)
        for what, command in listed.items():
            measured[what].append(run(what, command, {0}))
        counts = check(data, measured[DIFF][-1].stdout)
    yardstick = min(result.seconds for result in measured[YARDSTICK])
    figures = [
        Figure(
            what,
            min(result.seconds for result in results),
            min(result.seconds for result in results) / yardstick,
            max(result.peak_bytes for result in results),
        )
        for what, results in measured.items()
    ]
    kinds = ", ".join(sorted({each.memory for results in measured.values() for each in results}))
    edits = ", ".join(f"{name} {count}" for name, count in data.edits.items())
    shown = ", ".join(f"{kind} {count:,}" for kind, count in counts["block"].items())
    return "\n\n".join([
        f"Made by `python benchmarks/corpus.py --files {files} --rounds {rounds}`.",
        f"{machine()}. {files:,} Markdown files of made-up words, {data.bytes / MEGABYTE:.1f} MB a "
        f"version; edits in the second one: {edits}. Whole processes: fastest of the interleaved "
        f"rounds, highest memory of the process tree ({kinds}). **ratio** is the time over that of "
        "a plain script that reads and hashes the files of both versions. Every edit was found "
        f"for what it is; blocks of the map: {shown}.",
        grid("lrrr", ("what", "seconds", "ratio", "peak MB"), (
            (each.what, f"{each.seconds:.2f}", f"{each.ratio:.1f}",
             f"{each.peak_bytes / MEGABYTE:,.0f}")
            for each in figures
        )),
        targets_table(figures[-1], files),
    ])  # fmt: skip


def targets_table(diff: Figure, files: int) -> str:
    """Set what was measured beside what is aimed at; other sizes reach nothing."""
    rows = []
    for name, value, most in (
        ("seconds", diff.seconds, MOST_SECONDS),
        ("peak MB", diff.peak_bytes / MEGABYTE, MOST_MB),
    ):
        reached = "yes" if value < most else "no"
        reached = reached if files == FILES else "not at this size"
        rows.append((f"{DIFF}, {name}", f"< {most:,}", f"{value:,.2f}", reached))
    return grid("lrrl", (f"target: {FILES:,} files", "limit", "measured", "reached"), rows)


def main() -> int:
    """Benchmark from the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--files", type=int, default=FILES, help="files of a version")
    parser.add_argument("--rounds", type=int, default=3, help="interleaved rounds")
    parser.add_argument("--dir", type=Path, help="keep the generated data here")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        print(section(options.files, options.rounds, options.dir or Path(temporary)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
