"""The profile `kb` gives the numbers of the kb evaluation, on random golden sets and runs."""

from __future__ import annotations

import json
from collections import Counter
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from ragauge import gate, registry, score
from ragauge.model.report import View
from ragauge.model.scores import Scores
from tests.oracles.kb_cases import CHUNKS, kb_case, place_of, write_golden, write_lines
from tests.oracles.kb_oracle import Row, Share, aggregate
from tests.support.effort import seeds

CASES = 300
CLOSE = 1e-9
SUFFIXES = (".yaml", ".jsonl", ".json")


def scored(
    folder: Path, seed: int, golden: list[Row], results: list[Row], **options: Any
) -> Scores:
    path = folder / f"golden{SUFFIXES[seed % len(SUFFIXES)]}"
    return score(
        write_golden(path, golden, nested=seed % 2 == 0),
        write_lines(folder / "results.jsonl", results),
        dialect="kb", intervals=False, **options,
    )  # fmt: skip


def compare(scores: Scores, expected: dict[str, Share], place: str) -> None:
    """Every name of the source means a metric with the source's value, over as many queries."""
    meant = registry.profile("kb").meant
    assert scores.profile == "kb"
    for name, wanted in expected.items():
        found = scores.metrics[meant(name)]
        where = f"{place}, {name}"
        assert found.n == wanted.n, where
        assert (found.value is None) == (wanted.value is None), where
        if found.value is not None and wanted.value is not None:
            assert abs(found.value - float(wanted.value)) < CLOSE, where


@pytest.mark.parametrize("first", seeds(100, step=50))
def test_a_run_has_the_numbers_of_the_source(first: int, tmp_path: Path) -> None:
    """Every query has a result, as a runner stores them; golden sets are YAML, JSON and lines."""
    for seed in range(first, first + 50):
        golden, results = kb_case(seed, complete=True)
        found = scored(tmp_path, seed, golden, results)
        compare(found, aggregate(golden, results), f"seed {seed}")


@pytest.mark.parametrize("first", seeds(50, step=50))
def test_citations_are_looked_up_in_the_index(first: int, tmp_path: Path) -> None:
    """A list of chunks is the index: what is in it resolves, whether or not anybody found it."""
    listed = [
        {"id": chunk, "doc": CHUNKS[chunk], "start": 10 * n, "end": 10 * n + 10}
        for n, chunk in enumerate(list(CHUNKS)[:12])
    ]
    chunks = write_lines(tmp_path / "chunks.jsonl", listed)
    for seed in range(first, first + 50):
        golden, results = kb_case(seed, complete=True)
        for row in results:  # ids only: the places of the list are of another kind
            answer = row["answer"] or {"citations": []}
            if any(isinstance(each, dict) for each in answer["citations"]):
                answer["citations"] = [
                    chunk
                    for each in answer["citations"]
                    for chunk in [*CHUNKS, "d9-1"]
                    if place_of(chunk) == each["citation"]
                ]
        expected = aggregate(golden, results, database={row["id"] for row in listed})
        compare(scored(tmp_path, seed, golden, results, chunks=chunks), expected, f"seed {seed}")


@pytest.mark.parametrize("first", seeds(50, step=50))
def test_queries_without_a_result(first: int, tmp_path: Path) -> None:
    """They are misses and no empty results, or with `missing="exclude"` as invisible as there.

    Results without a query change nothing, but what they retrieved may be cited.
    """
    for seed in range(first, first + 50):
        golden, results = kb_case(seed, complete=False)
        missed = aggregate(golden, results, unstored="missed")
        compare(scored(tmp_path, seed, golden, results), missed, f"seed {seed}")
        unbroken = [row for row in results if row["error"] is None]
        invisible = aggregate(golden, unbroken)
        found = scored(tmp_path, seed, golden, unbroken, missing="exclude")
        compare(found, invisible, f"seed {seed}, excluded")


def test_what_is_written_down_has_four_decimals(tmp_path: Path) -> None:
    """The scores document holds the stored form of every number, null included."""
    report, profile = registry.report("json"), registry.profile("kb")
    for seed in range(12):
        golden, results = kb_case(seed, complete=True)
        scores = scored(tmp_path, seed, golden, results)
        view = View(scores=scores, verdict=gate(scores), profile=profile)
        written = json.loads(report.text(view))["metrics"]
        for name, wanted in aggregate(golden, results).items():
            assert written[profile.meant(name)]["value"] == wanted.stored, (seed, name)


def test_cases_move_every_number() -> None:
    """Each takes many values, null among them, so that agreeing means something."""
    values: dict[str, set[Fraction | None]] = {}
    kinds: Counter[str] = Counter()
    for seed in range(CASES):
        golden, results = kb_case(seed, complete=True)
        for name, share in aggregate(golden, results).items():
            values.setdefault(name, set()).add(share.value)
        kinds.update("failed" if row["error"] else "stored" for row in results)
        kinds.update("deep" for row in results if len(row["hits_top_k"]) > 10)
        kinds.update("refuse" for query in golden if query.get("expected_doc_ids") == [])
        kinds.update("unlabelled" for query in golden if "expected_doc_ids" not in query)
    assert not [name for name, seen in values.items() if len(seen) < 6]
    assert all(None in seen for name, seen in values.items() if name != "empty_result_rate")
    assert min(kinds.values()) > 50
