"""Owns the benchmark of TREC files: `ragauge score` beside the libraries that read them too.

Run as `python benchmarks/trec.py --queries 2000,100000 --rounds 3`, in an environment that has the
peers (`make bench` sets one up); `--peers pytrec_eval` takes fewer, `--dir DIR` keeps the data.
"""

from __future__ import annotations

import argparse
import csv
import json
import sys
import tempfile
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path

from measure import MEGABYTE, Measurement, measure
from page import write_sections
from table import grid, machine
from trec_peers import CUTOFFS, PEERS

DEPTH = 100
AGREEING = 2_000  # queries whose values are compared one by one
SLOW = ("ir_measures", "ranx")
ROUNDS_UP_TO = 10_000  # queries; above, the slow peers have fewer rounds
SLOW_ROUNDS = 2
ALWAYS = ("qid", "label", "cause")  # columns of the CSV that are no values
NEAR = 1e-4  # a mean of values with four decimals is at most half of that off
OURS = "ragauge"
# What a family of ours is called by each peer, before the cut-off.
FAMILIES: dict[str, dict[str, str]] = {
    "retrieval.precision_at_cutoff": {
        "pytrec_eval": "P_", "ir_measures": "P@", "ranx": "precision@",
    },
    "retrieval.recall": {"pytrec_eval": "recall_", "ir_measures": "R@", "ranx": "recall@"},
    "retrieval.hit": {"pytrec_eval": "success_", "ir_measures": "Success@", "ranx": "hit_rate@"},
    "retrieval.mrr": {"ir_measures": "RR@", "ranx": "mrr@"},  # pytrec_eval has it without cut-off
    "retrieval.ndcg": {"pytrec_eval": "ndcg_cut_", "ir_measures": "nDCG@", "ranx": "ndcg@"},
    "retrieval.map": {"pytrec_eval": "map_cut_", "ir_measures": "AP@", "ranx": "map@"},
}  # fmt: skip
PACKAGES = {"pytrec_eval": "pytrec-eval-terrier", "ir_measures": "ir-measures", "ranx": "ranx"}
# How many times as long each peer should take, and memory less than any of them.
TARGETS = {"pytrec_eval": 5, "ir_measures": 12, "ranx": 12}


@dataclass(frozen=True)
class Inputs:
    """The two files, and where ragauge writes the values."""

    queries: int
    qrels: Path
    run: Path

    @property
    def values(self) -> Path:
        return self.run.with_name("values.csv")


@dataclass(frozen=True)
class Figure:
    """One contender at one size: the least time of its rounds and the highest memory."""

    queries: int
    who: str
    rounds: int
    seconds: float
    cpu_seconds: float
    peak_bytes: int
    in_rounds: tuple[float, ...]  # its seconds over ragauge's, round by round


def our_command(inputs: Inputs) -> tuple[str, ...]:
    """From TREC files to the values of every query in a CSV."""
    metrics, cutoffs = ",".join(FAMILIES), ",".join(map(str, CUTOFFS))
    asked = ("--no-intervals", "--metrics", metrics, "--k", cutoffs, "-o", str(inputs.values))
    files = (str(inputs.qrels), str(inputs.run))
    return (sys.executable, "-m", "ragauge", "score", *files, *asked)


def peer_command(who: str, inputs: Inputs, *more: str) -> tuple[str, ...]:
    """From TREC files to the values of every query in memory, and their means."""
    script = str(Path(__file__).with_name("trec_peers.py"))
    return (sys.executable, script, who, str(inputs.qrels), str(inputs.run), *more)


def generated(queries: int, folder: Path, *more: str) -> Inputs:
    """Generate in another process: what this one ever needed counts as its children's memory."""
    script = str(Path(__file__).with_name("trec_data.py"))
    wanted = ("--queries", str(queries), "--depth", str(DEPTH), "--out", str(folder))
    run("generating", (sys.executable, script, *wanted, *more))
    inputs = Inputs(queries, folder / "qrels.txt", folder / "run.txt")
    for path in (inputs.qrels, inputs.run):
        with path.open("rb") as file:
            while file.read(1 << 20):  # every contender finds the file in the page cache
                pass
    return inputs


def run(what: str, command: Sequence[str], *, sampled: bool = False) -> Measurement:
    """Measure one command; a failure ends the benchmark."""
    result = measure(command, sampled=sampled)
    if result.returncode != 0:
        tail = "\n".join(result.stderr.splitlines()[-20:])
        raise SystemExit(f"error: {what} ended with exit code {result.returncode}\n{tail}")
    print(f"  {result.seconds:8.3f} s  {result.peak_mb:7.1f} MB  {what}", file=sys.stderr)
    return result


def score(who: str, inputs: Inputs, *, sampled: bool = False) -> Measurement:
    """Run one contender to its end."""
    if who == OURS:
        inputs.values.unlink(missing_ok=True)
        return run(who, our_command(inputs), sampled=sampled)
    return run(who, peer_command(who, inputs), sampled=sampled)


def our_values(path: Path) -> Iterator[tuple[str, dict[tuple[str, int], str]]]:
    """Read the CSV row by row: a query, and its values as printed, by family and cut-off."""
    with path.open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            named = (name.rpartition("@") for name in row if name not in ALWAYS)
            yield row["qid"], {(f, int(k)): row[f"{f}@{k}"] for f, _, k in named}


def expected(values: Mapping[str, float], family: str, cutoff: int) -> float:
    """Find what pytrec_eval says about one of our metrics."""
    if family == "retrieval.mrr":
        reciprocal = values["recip_rank"]
        return reciprocal if reciprocal * cutoff > 1 - NEAR else 0.0
    return values[FAMILIES[family]["pytrec_eval"] + str(cutoff)]


def compare_values(ours: Path, theirs: Path) -> int:
    """Stop unless each value in the CSV is pytrec_eval's, rounded; say how many there are."""
    peer: dict[str, dict[str, float]] = json.loads(theirs.read_text(encoding="utf-8"))
    asked = {(family, cutoff) for family in FAMILIES for cutoff in CUTOFFS}
    seen: set[str] = set()
    for qid, values in our_values(ours):
        seen.add(qid)
        if values.keys() != asked:
            raise SystemExit(f"error: {ours.name} lacks {sorted(asked - values.keys())}")
        for (family, cutoff), value in values.items():
            want = f"{expected(peer[qid], family, cutoff):.4f}"
            if value != want:
                raise SystemExit(
                    f"error: {family}@{cutoff} of query {qid} is {value}, by pytrec_eval {want}"
                )
    if seen != peer.keys():
        raise SystemExit(f"error: {len(seen):,} queries in {ours.name}, {len(peer):,} in the peer")
    return len(seen) * len(asked)


def compare_means(who: str, printed: str, ours: Mapping[tuple[str, int], float]) -> None:
    """Stop unless the means that a peer printed are those of the CSV."""
    lines = (line.split("\t") for line in printed.splitlines() if "\t" in line)
    theirs = {name: float(mean) for name, mean in lines}
    for (family, cutoff), mean in ours.items():
        if who not in FAMILIES[family]:
            continue
        other = theirs[FAMILIES[family][who] + str(cutoff)]
        if abs(mean - other) > NEAR:
            raise SystemExit(f"error: {family}@{cutoff} is {mean:.6f}, by {who} {other:.6f}")


def our_means(path: Path) -> dict[tuple[str, int], float]:
    """Average the columns of the CSV."""
    sums: defaultdict[tuple[str, int], float] = defaultdict(float)
    rows = 0
    for _, values in our_values(path):
        rows += 1
        for key, value in values.items():
            sums[key] += float(value)
    return {key: total / rows for key, total in sums.items()}


def check_values(queries: int, folder: Path) -> int:
    """Compare all values with pytrec_eval's, on lists in which documents share scores."""
    inputs = generated(queries, folder, "--ties")
    theirs = folder / "pytrec_eval.json"
    score(OURS, inputs)
    run("pytrec_eval", peer_command("pytrec_eval", inputs, "--values", str(theirs)))
    return compare_values(inputs.values, theirs)


def benchmark(queries: int, rounds: int, peers: Sequence[str], folder: Path) -> list[Figure]:
    """Run one size in interleaved rounds, each contender after the other."""
    inputs = generated(queries, folder)
    measured: dict[str, list[Measurement]] = {who: [] for who in (OURS, *peers)}
    for number in range(rounds):
        print(f"{queries:,} queries, round {number + 1}", file=sys.stderr)
        for who, results in measured.items():
            if who in SLOW and queries > ROUNDS_UP_TO and number >= SLOW_ROUNDS:
                continue
            results.append(score(who, inputs))
    means = our_means(inputs.values)
    for who in peers:
        compare_means(who, measured[who][0].stdout, means)
    print("once more for the memory of all processes, not timed", file=sys.stderr)
    whole = score(OURS, inputs, sampled=True).peak_bytes  # the only one that may start others
    return [
        Figure(
            queries=queries,
            who=who,
            rounds=len(results),
            seconds=min(result.seconds for result in results),
            cpu_seconds=min(result.cpu_seconds or 0.0 for result in results),
            peak_bytes=max([r.peak_bytes for r in results] + ([whole] if who == OURS else [])),
            in_rounds=tuple(
                result.seconds / ours.seconds
                for ours, result in zip(measured[OURS], results, strict=False)  # fewer, the slow
            ),
        )
        for who, results in measured.items()
    ]


def released(who: str) -> str:
    """Name a peer with its version."""
    try:
        return f"{who} {version(PACKAGES[who])}"
    except PackageNotFoundError:
        return who


def figures_table(figures: Sequence[Figure]) -> str:
    """Lay out the figures; a ratio says how many times as much as ragauge."""
    ours = {figure.queries: figure for figure in figures if figure.who == OURS}
    header = (
        "queries", "what", "rounds", "seconds", "ratio", "CPU s", "ratio", "peak MB", "ratio",
    )  # fmt: skip
    rows = []
    for figure in figures:
        us = ours[figure.queries]
        row = [f"{figure.queries:,}", figure.who, str(figure.rounds)]
        for value, base, form in (
            (figure.seconds, us.seconds, ".2f"),
            (figure.cpu_seconds, us.cpu_seconds, ".2f"),
            (figure.peak_bytes / MEGABYTE, us.peak_bytes / MEGABYTE, ",.0f"),
        ):
            row += [format(value, form), f"{value / base:.1f}" if base else ""]
        rows.append(row)
    return grid("rlrrrrrrr", header, rows)


def targets_table(figures: Sequence[Figure]) -> str:
    """Set what was measured at the largest size beside what is aimed at."""
    largest = max(figure.queries for figure in figures)
    last = {figure.who: figure for figure in figures if figure.queries == largest}
    us = last.pop(OURS)
    rows = []
    for who, figure in last.items():
        spread = f"{min(figure.in_rounds):.1f} to {max(figure.in_rounds):.1f}"
        for what, ratio, least, rounds in (
            ("time", figure.seconds / us.seconds, TARGETS[who], spread),
            ("memory", figure.peak_bytes / us.peak_bytes, 1, ""),
        ):
            asked = f"≥ {least}" if least > 1 else f"> {least}"
            reached = "yes" if (ratio >= least if least > 1 else ratio > least) else "no"
            rows.append((f"{what} of {who}", asked, f"{ratio:.2f}", reached, rounds))
    header = (
        f"target at {largest:,} queries", "times ragauge's", "measured", "reached",
        "in single rounds",
    )  # fmt: skip
    return grid("lrrlr", header, rows)


def sections(
    sizes: Sequence[int], rounds: int, peers: Sequence[str], folder: Path
) -> Iterator[str]:
    """Measure, and give the Markdown paragraph by paragraph."""
    missing = [who for who in peers if find_spec(who) is None]
    if find_spec("pytrec_eval") is None or missing:
        named = ", ".join(missing or ["pytrec_eval"])
        raise SystemExit(
            f"error: {named} not installed here\n"
            "  hint: `make bench` sets up an environment with all peers; --peers takes fewer"
        )
    print("values beside pytrec_eval's", file=sys.stderr)
    agreeing = min(AGREEING, max(sizes))
    compared = check_values(agreeing, folder / "ties")
    warm = generated(agreeing, folder / str(agreeing))
    print("warming up", file=sys.stderr)
    for who in peers:
        score(who, warm)
    figures = [
        figure for size in sizes for figure in benchmark(size, rounds, peers, folder / str(size))
    ]
    listed, named = ",".join(map(str, sizes)), ",".join(peers)
    fewer = "" if tuple(peers) == tuple(PEERS) else f" --peers {named}"
    families = ", ".join(family.removeprefix("retrieval.") for family in FAMILIES)
    yield f"Made by `python benchmarks/trec.py --queries {listed} --rounds {rounds}{fewer}`."
    yield (
        f"{machine()}; {', '.join(map(released, peers))}. {DEPTH} results a query, 10 to 20 "
        f"judged documents. Each process reads a qrels and a run file and computes {families} at "
        f"{', '.join(map(str, CUTOFFS))} for every query; ragauge also writes them all to a CSV "
        "(`-o values.csv`), the others keep them in memory. pytrec_eval computes the reciprocal "
        "rank once, having no cut-off for it."
    )
    yield (
        "Whole processes, in interleaved rounds: least wall time and processor time (user and "
        "system), highest memory. Memory is what the kernel reports for the process, mapped files "
        "included; for ragauge it is the sum over its processes if that is more. **ratio** is how "
        "many times ragauge's figure. Every library ran once before, as ranx needs a warm "
        "numba cache; the start-up that it has even then is part of its time."
    )
    yield figures_table(figures)
    yield (
        f"Before that, all {compared:,} values of {agreeing:,} queries with tied scores were "
        "compared: those of ragauge, with four decimals, are pytrec_eval's. The means of every "
        "measure agree with each peer at each size."
    )
    yield (
        "The measured ratio is that of the least times; where those of single rounds lie on both "
        "sides of a target, other work on the machine decides whether it is reached."
    )
    yield targets_table(figures)


def sizes_of(listed: str) -> list[int]:
    """Read sizes with commas between them."""
    return sorted({int(size) for size in listed.split(",")})


def peers_of(listed: str) -> list[str]:
    """Read names of peers with commas between them."""
    named = listed.split(",")
    if unknown := [who for who in named if who not in PEERS]:
        raise argparse.ArgumentTypeError(f"{', '.join(unknown)}: there are {', '.join(PEERS)}")
    return [who for who in PEERS if who in named]


def add_options(parser: argparse.ArgumentParser) -> None:
    """Declare what decides about this benchmark alone."""
    parser.add_argument(
        "--queries", type=sizes_of, default="2000,100000", help="sizes of the TREC files"
    )
    parser.add_argument("--peers", type=peers_of, default=",".join(PEERS), help="whom to measure")


def main() -> int:
    """Benchmark from the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    add_options(parser)
    parser.add_argument("--rounds", type=int, default=3, help="interleaved rounds of each size")
    parser.add_argument("--dir", type=Path, help="keep the generated data here")
    parser.add_argument("--write", type=Path, help="put the tables into this Markdown file")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder: Path = options.dir or Path(temporary)
        parts = sections(options.queries, options.rounds, options.peers, folder)
        text = "\n\n".join(parts)
    print(text)
    if options.write:
        write_sections(options.write, {"trec": text})
    return 0


if __name__ == "__main__":
    sys.exit(main())
