"""Every metric equals the independent oracle, on random runs of every flavour."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Literal

from ragauge import score
from ragauge.model.scores import Scores
from tests.oracles.full_cases import case
from tests.oracles.full_oracle import Result, evaluate
from tests.support.cases import cases
from tests.support.effort import seeds

CLOSE = 1e-9
EXTRA = ("semantic.delta_s_hits@5", "semantic.delta_s_hits_p90@5")
OTHER_WORDS = {
    "citation.coverage": {"not-grounded": "refused"},
    "citation.resolved": {"not-grounded": "refused"},
    "semantic.delta_s_cited": {"no-answer": "no-citations"},
    "semantic.delta_s_cited_p90": {"no-answer": "no-citations"},
    "retrieval.span_precision": {"no-retrieved-bytes": "no-spans"},
}
"""Reasons that the oracle calls by another name."""


def _scores(folder: Path, seed: int, rules: str) -> tuple[Scores, dict[str, Result]]:
    gold, trace = case(seed)
    paths = []
    for name, rows in (("gold.jsonl", gold), ("trace.jsonl", trace)):
        path = folder / name
        escaped = seed % 3 == 0
        path.write_text(
            "".join(f"{json.dumps(row, ensure_ascii=escaped)}\n" for row in rows), "utf-8"
        )
        paths.append(path)
    missing: Literal["exclude", "count"] = "exclude" if seed % 5 == 4 else "count"
    found = score(
        *paths, profile=rules, dialect="native", metrics=["*", *EXTRA], intervals=False,
        missing=missing,
    )  # fmt: skip
    return found, evaluate(gold, trace, rules=rules, missing=missing)


def _reasons(metric: str, excluded: dict[str, int]) -> dict[str, int]:
    words = OTHER_WORDS.get(metric.partition("@")[0], {})
    renamed: dict[str, int] = {}
    for reason, count in excluded.items():
        name = words.get(reason, reason)
        renamed[name] = renamed.get(name, 0) + count
    return renamed


@cases("rules", ["all", "canary"])
@cases("first", seeds(80, step=40))
def test_every_metric_equals_the_oracle(first: int, rules: str, tmp_path: Path) -> None:
    """Value, n and records are the oracle's; for metrics of records so is what was left out."""
    for seed in range(first, first + 40):
        scores, expected = _scores(tmp_path, seed, rules)
        assert expected.keys() <= scores.metrics.keys()
        for name, wanted in expected.items():
            found = scores.metrics[name]
            place = f"seed {seed}, {name}"
            if found.band is not None:
                # The oracle takes all of a chunk for evidence: one of the stretches of the band.
                # What the ends are is the other oracle's: test_places_oracle.py.
                assert wanted.value is not None, place
                assert found.value is None, place
                assert found.band[0] - CLOSE < float(wanted.value) < found.band[1] + CLOSE, place
            else:
                assert (found.value is None) == (wanted.value is None), place
                if found.value is not None and wanted.value is not None:
                    assert abs(found.value - float(wanted.value)) < CLOSE, place
            assert found.n == wanted.n, place
            if name.startswith("run."):
                continue
            assert found.records == wanted.records, place
            if not name.startswith("stability."):
                assert _reasons(name, found.excluded) == wanted.excluded, place
