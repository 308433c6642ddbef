"""Owns the TREC data of the benchmarks: a qrels file and a run file like those of a large task.

Run as `python benchmarks/trec_data.py --queries 100000 --depth 100 --out DIR`.
"""

from __future__ import annotations

import argparse
import json
import sys
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

VERSION = 1  # raise it whenever the lines change, so that stored files are made again

Bytes = NDArray[np.uint8]
Integers = NDArray[np.int64]

FIRST_QID = 101
FIRST_DOC = 1_000_000  # seven digits for every document id
MICRO = 1_000_000  # scores have six decimals
JUDGED = (10, 20)  # judged documents of a query, from and to
RETRIEVED = 0.4  # of those, as far as they fit into the list
GRADES = (0, 0, 1, 1, 1, 2, 3)
TIED = MICRO // 2  # with ties, scores are multiples of this: some three documents share one
CHUNK = 2_000  # queries formatted at a time


@dataclass(frozen=True)
class TrecParameters:
    """What decides every byte of the two files."""

    queries: int
    depth: int
    documents: int = 8_000_000
    seed: int = 1
    ties: bool = False  # scores so coarse that several documents of a query share one
    version: int = VERSION


@dataclass(frozen=True)
class TrecFiles:
    """Where the two files are, and how large the run is."""

    qrels: Path
    run: Path
    run_bytes: int


def text(literal: bytes, rows: int) -> Bytes:
    """Repeat a literal on every row."""
    return np.broadcast_to(np.frombuffer(literal, np.uint8), (rows, len(literal)))


def digits(values: Integers, width: int, *, padded: bool = False) -> Bytes:
    """Write numbers in `width` columns; without padding the columns of leading zeros hold 0."""
    out = np.empty((len(values), width), np.uint8)
    rest = values.astype(np.uint32)
    for column in range(width - 1, -1, -1):
        higher = rest // np.uint32(10)
        out[:, column] = rest - higher * np.uint32(10) + 48
        if not padded and column < width - 1:
            out[rest == 0, column] = 0
        rest = higher
    return out


def lines(*columns: Bytes) -> bytes:
    """Put columns beside each other and drop the empty places."""
    table = np.concatenate(columns, axis=1)
    kept: Bytes = table[table != 0]
    return kept.tobytes()


def distinct(random: np.random.Generator, rows: int, count: int, documents: int) -> Integers:
    """Draw distinct documents for every row: one in each of `count` equal parts, shuffled."""
    part = documents // count
    drawn = random.integers(0, part, (rows, count)) + np.arange(count) * part
    return random.permuted(drawn, axis=1) + FIRST_DOC


def chunk(parameters: TrecParameters, first: int, rows: int) -> tuple[bytes, bytes]:
    """Write the qrels lines and the run lines of some queries."""
    random = np.random.default_rng((parameters.seed, first))
    depth, most = parameters.depth, JUDGED[1]
    drawn = distinct(random, rows, depth + most, parameters.documents)
    hits, others = drawn[:, :depth], drawn[:, depth:]

    count = random.integers(JUDGED[0], JUDGED[1] + 1, rows)
    # A judged document is one of the list, more often near its top, or one outside.
    places = np.sort(random.random((rows, most)) ** 2 * (depth - most), axis=1).astype(np.int64)
    places += np.arange(most)  # sorted and spread: no place is taken twice
    found = (random.random((rows, most)) < RETRIEVED) & (depth > most)
    inside = np.take_along_axis(hits, np.clip(places, 0, depth - 1), axis=1)
    judged = np.where(found, inside, others)[np.arange(most) < count[:, None]]

    queries = np.arange(first, first + rows) + FIRST_QID
    grades = random.choice(np.array(GRADES), len(judged))
    qrels = lines(
        digits(np.repeat(queries, count), 7), text(b" 0 doc", len(judged)),
        digits(judged, 7), text(b" ", len(judged)), digits(grades, 1), text(b"\n", len(judged)),
    )  # fmt: skip

    total = rows * depth
    steps = random.integers(1, 30 * MICRO // depth, (rows, depth))
    scores = (np.cumsum(steps[:, ::-1], axis=1)[:, ::-1] + MICRO // 2).ravel()
    if parameters.ties:
        scores -= scores % TIED
    whole = np.maximum(scores // MICRO, 0)
    run = lines(
        digits(np.repeat(queries, depth), 7), text(b" Q0 doc", total), digits(hits.ravel(), 7),
        text(b" ", total), digits(np.tile(np.arange(1, depth + 1), rows), 5), text(b" ", total),
        digits(whole, 3), text(b".", total), digits(scores % MICRO, 6, padded=True),
        text(b" bench\n", total),
    )  # fmt: skip
    return qrels, run


def generate_trec(parameters: TrecParameters, out: Path) -> TrecFiles:
    """Write qrels.txt and run.txt into `out`, unless they are there already."""
    out.mkdir(parents=True, exist_ok=True)
    qrels, run, stamp = out / "qrels.txt", out / "run.txt", out / "trec.json"
    if stamp.exists() and qrels.exists() and run.exists():
        wanted = asdict(parameters) | {"run_bytes": run.stat().st_size}
        if json.loads(stamp.read_text(encoding="utf-8")) == wanted:
            return TrecFiles(qrels, run, run.stat().st_size)
    stamp.unlink(missing_ok=True)  # written last: an interrupted run leaves no stamp
    with qrels.open("wb") as judged_file, run.open("wb") as run_file:
        for first in range(0, parameters.queries, CHUNK):
            judged, hits = chunk(parameters, first, min(CHUNK, parameters.queries - first))
            judged_file.write(judged)
            run_file.write(hits)
    size = run.stat().st_size
    stamp.write_text(json.dumps(asdict(parameters) | {"run_bytes": size}), encoding="utf-8")
    return TrecFiles(qrels, run, size)


def main() -> int:
    """Generate from the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--queries", type=int, default=100_000)
    parser.add_argument("--depth", type=int, default=100)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--ties", action="store_true", help="let documents share scores")
    parser.add_argument("--out", type=Path, required=True)
    options = parser.parse_args()
    parameters = TrecParameters(
        options.queries, options.depth, seed=options.seed, ties=options.ties
    )
    files = generate_trec(parameters, options.out)
    print(f"{files.qrels.name}, {files.run.name}: {files.run_bytes:,} bytes", file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main())
