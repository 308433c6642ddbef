"""Files under other names, mapped back, are the same files: whatever the dialect and the path."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from ragauge import score
from ragauge.model.field_spellings import GOLD_NAMES, TRACE_NAMES
from ragauge.model.scores import Scores
from ragauge.scoring.engines import choose
from tests.support.command import GOLD, TRACES, Row

ROOT = Path(__file__).resolve().parents[2]
DEMO = ROOT / "src" / "ragauge" / "cli" / "demo_data"
CANARY = ROOT / "examples" / "canary"


def rows_in(path: Path) -> list[Row]:
    return [json.loads(line) for line in path.read_text("utf-8").splitlines() if line.strip()]


FILES: dict[str, tuple[list[Row], list[Row]]] = {
    "ship": (GOLD, TRACES),
    "demo": (rows_in(DEMO / "gold.jsonl"), rows_in(DEMO / "trace.jsonl")),
    "canary": (rows_in(CANARY / "gold.jsonl"), rows_in(CANARY / "live.jsonl")),
}


def renamed(rows: list[Row], names: frozenset[str], inside: bool) -> tuple[list[Row], Row]:
    """Rows under other names, one level deeper if asked, and the map that undoes it."""
    fields: Row = {}
    others: list[Row] = []
    for row in rows:
        other: Row = {}
        for name, value in row.items():
            if name not in names:
                other[name] = value
            elif inside:
                other.setdefault("payload", {})[f"their {name}"] = value
                fields[name] = f"payload.their {name}"
            else:
                other[f"their {name}"] = value
                fields[name] = f"their {name}"
        others.append(other)
    return others, fields


def written(path: Path, rows: list[Row]) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


def essence(scores: Scores) -> Any:
    return (
        scores.profile,
        scores.dialect,
        {name: (one.value, one.n, one.excluded) for name, one in scores.metrics.items()},
        [(one.qid, one.label, one.turn) for one in scores.questions],
        scores.tally,
    )


@pytest.mark.parametrize("inside", [False, True])
@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("workers", [1, pytest.param(2, marks=pytest.mark.slow)])
def test_a_map_undoes_other_names(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, inside: bool, workers: int
) -> None:
    """The dialect too is recognised by the names that are mapped to."""
    monkeypatch.setattr(choose, "RANGE_BYTES", 4096)
    gold, traces = FILES[name]
    plain = score(written(tmp_path / "gold.jsonl", gold), written(tmp_path / "trace.jsonl", traces))
    other_gold, gold_fields = renamed(gold, GOLD_NAMES, inside)
    other_traces, trace_fields = renamed(traces, TRACE_NAMES, inside)
    mapped = score(
        written(tmp_path / "other-gold.jsonl", other_gold),
        written(tmp_path / "other-trace.jsonl", other_traces),
        fields={"gold": gold_fields, "traces": trace_fields},
        workers=workers,
    )
    assert essence(mapped) == essence(plain)
