"""Owns the peers of the TREC benchmark: each reads both files its own way and scores every query.

Run as `python benchmarks/trec_peers.py pytrec_eval QRELS RUN` (or `ir_measures`, `ranx`), in an
environment that has the library; one library per process, so that its memory is its own. Prints
how many values per query and measure there are, and the mean of each measure. With `--values FILE`
pytrec_eval writes the values of each query as JSON instead.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections import defaultdict
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path

CUTOFFS = (1, 3, 5, 10)


@dataclass(frozen=True)
class Scored:
    """What a library computed."""

    values: int
    means: Mapping[str, float]


def values_by_pytrec_eval(qrels_path: str, run_path: str) -> dict[str, dict[str, float]]:
    """Follow its README: parse both files into dictionaries, then evaluate."""
    pytrec_eval = import_module("pytrec_eval")

    with open(qrels_path, encoding="utf-8") as file:
        qrels = pytrec_eval.parse_qrel(file)
    with open(run_path, encoding="utf-8") as file:
        run = pytrec_eval.parse_run(file)
    cuts = ",".join(map(str, CUTOFFS))
    families = ("P", "recall", "success", "ndcg_cut", "map_cut")
    measures = {f"{family}.{cuts}" for family in families} | {"recip_rank"}  # it has no cut-off
    results: dict[str, dict[str, float]] = pytrec_eval.RelevanceEvaluator(qrels, measures).evaluate(
        run
    )
    return results


def with_pytrec_eval(qrels_path: str, run_path: str) -> Scored:
    """Take the means of what it found."""
    results = values_by_pytrec_eval(qrels_path, run_path)
    sums: defaultdict[str, float] = defaultdict(float)
    for values in results.values():
        for name, value in values.items():
            sums[name] += value
    means = {name: total / len(results) for name, total in sums.items()}
    return Scored(len(results) * len(means), means)


def with_ir_measures(qrels_path: str, run_path: str) -> Scored:
    """Follow its documentation: read both files lazily, then iterate over the values."""
    ir_measures = import_module("ir_measures")
    families = [getattr(ir_measures, name) for name in ("P", "R", "Success", "RR", "nDCG", "AP")]
    measures = [family @ cut for family in families for cut in CUTOFFS]
    qrels = ir_measures.read_trec_qrels(qrels_path)
    run = ir_measures.read_trec_run(run_path)
    sums: defaultdict[str, float] = defaultdict(float)
    queries: defaultdict[str, int] = defaultdict(int)
    for metric in ir_measures.iter_calc(measures, qrels, run):
        sums[str(metric.measure)] += metric.value
        queries[str(metric.measure)] += 1
    means = {name: total / queries[name] for name, total in sums.items()}
    return Scored(sum(queries.values()), means)


def with_ranx(qrels_path: str, run_path: str) -> Scored:
    """Follow its documentation: load both files, then evaluate without taking the mean."""
    ranx = import_module("ranx")
    families = ("precision", "recall", "hit_rate", "mrr", "ndcg", "map")
    measures = [f"{family}@{cut}" for family in families for cut in CUTOFFS]
    qrels = ranx.Qrels.from_file(qrels_path, kind="trec")
    run = ranx.Run.from_file(run_path, kind="trec")
    results = ranx.evaluate(qrels, run, measures, return_mean=False, make_comparable=True)
    means = {name: float(sum(values) / len(values)) for name, values in results.items()}
    return Scored(sum(map(len, results.values())), means)


PEERS: dict[str, Callable[[str, str], Scored]] = {
    "pytrec_eval": with_pytrec_eval,
    "ir_measures": with_ir_measures,
    "ranx": with_ranx,
}


def main() -> int:
    """Run one peer from the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("peer", choices=sorted(PEERS))
    parser.add_argument("qrels")
    parser.add_argument("run")
    parser.add_argument("--values", type=Path, help="write the values here (pytrec_eval only)")
    options = parser.parse_args()
    if options.values:
        values = values_by_pytrec_eval(options.qrels, options.run)
        options.values.write_text(json.dumps(values), encoding="utf-8")
        return 0
    scored = PEERS[options.peer](options.qrels, options.run)
    print(f"{scored.values} values")
    for name, mean in sorted(scored.means.items()):
        print(f"{name}\t{mean:.6f}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
