"""Owns the whole run: every benchmark, one after the other, and the page that they are written to.

Run as `make bench`, or as `python benchmarks/run.py --only trec --rounds 5 --queries 10000` for a
part of it; `--write docs/benchmarks.md` leaves what was not measured as it is.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import corpus
import gold_memory
import report
import resampling
import runner
import score
import store
import trec
from page import TITLES, write_sections


def main() -> int:
    """Benchmark from the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--only", action="append", choices=TITLES, help="leave the others out; may be repeated"
    )
    parser.add_argument("--rounds", type=int, default=3, help="interleaved rounds of each")
    score.add_options(parser)
    gold_memory.add_options(parser)
    store.add_options(parser)
    report.add_options(parser)
    trec.add_options(parser)
    resampling.add_options(parser)
    parser.add_argument("--files", type=int, default=corpus.FILES, help="files of a corpus")
    parser.add_argument("--asked", type=int, default=20_000, help="questions to ask a system")
    parser.add_argument("--dir", type=Path, help="keep the generated data here")
    parser.add_argument("--write", type=Path, help="write this Markdown page")
    options = parser.parse_args()
    rounds: int = options.rounds
    with tempfile.TemporaryDirectory() as temporary:
        folder: Path = options.dir or Path(temporary)
        # TREC first: it takes memory from the kernel, which counts a child at least as large as
        # this process has ever been.
        work: dict[str, Callable[[], str]] = {
            "trec": lambda: "\n\n".join(
                trec.sections(options.queries, rounds, options.peers, folder / "trec")
            ),
            "score": lambda: score.section(options.traces, rounds, folder / "score"),
            "gold": lambda: gold_memory.section(options.gold_sizes, folder / "gold"),
            "store": lambda: store.section(
                store.size_of(options), rounds, folder / "store", options.postgres
            ),
            "report": lambda: report.section(options.reported, rounds, folder / "report"),
            "resampling": lambda: "\n\n".join(
                resampling.sections(rounds, resampling.size_of(options))
            ),
            "corpus": lambda: corpus.section(options.files, rounds, folder / "corpus"),
            "runner": lambda: runner.whole_section(options.asked, rounds, folder / "runner"),
        }
        for name, section in work.items():
            if options.only and name not in options.only:
                continue
            text = section()
            print(f"## {TITLES[name]}\n\n{text}\n", flush=True)
            if options.write:  # at once: a later failure loses nothing
                write_sections(options.write, {name: text})
    return 0


if __name__ == "__main__":
    sys.exit(main())
