"""The profiles `ship` and `smoke` print what their oracles print, over hundreds of cases."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

from ragauge import gate, registry, score
from ragauge.gates.parse import merge, parse_items, profile_gates
from ragauge.model.report import View
from tests.oracles.cases import Case, ship_case, smoke_case
from tests.oracles.ship_oracle import score_ship
from tests.oracles.smoke_oracle import score_smoke, smoke_numbers
from tests.support.cases import cases
from tests.support.effort import seeds

BATCH = 100


def _write(folder: Path, case: Case, rng: random.Random) -> tuple[Path, Path]:
    gold, trace = folder / "gold", folder / "trace"
    for path, rows in ((gold, case.gold_rows), (trace, case.trace_rows)):
        ascii_only = rng.random() < 0.5
        if rng.random() < 0.3:
            text = json.dumps(rows, indent=rng.choice([None, 1]), ensure_ascii=ascii_only)
        else:
            lines = [json.dumps(row, ensure_ascii=ascii_only) for row in rows]
            text = rng.choice(["\n", "\r\n"]).join(lines) + rng.choice(["", "\n", "\n\n"])
        path.write_bytes(text.encode())
    return gold, trace


def _printed(case: Case, gold: Path, trace: Path, name: str, format_name: str) -> tuple[str, View]:
    profile = registry.profile(name)
    gates = merge(
        profile_gates(profile, (case.k,)),
        parse_items(case.gates, profile, (case.k,)) if name == "ship" else [],
    )
    scores = score(gold, trace, profile=name, k=case.k, gates=gates, intervals=False)
    view = View(scores=scores, verdict=gate(scores, gates), profile=profile)
    return registry.report(profile.reports[format_name]).text(view), view


@cases("first", seeds(4 * BATCH, step=BATCH))
def test_ship_json_equals_the_oracle(first: int, tmp_path: Path) -> None:
    """Same keys, same order, same numbers, same bytes, for every generated case."""
    for number in range(first, first + BATCH):
        rng = random.Random(number)
        case = ship_case(rng)
        expected = score_ship(case.gold_rows, case.trace_rows, k=case.k, gates=case.gates)
        text, _ = _printed(case, *_write(tmp_path, case, rng), "ship", "json")
        assert text == json.dumps(expected, indent=2) + "\n", f"case {number}"


@cases("first", seeds(4 * BATCH, step=BATCH))
def test_smoke_markdown_equals_the_oracle(first: int, tmp_path: Path) -> None:
    """Same lines; and the numbers behind them, compliance included, to the last bit."""
    for number in range(first, first + BATCH):
        rng = random.Random(number)
        case = smoke_case(rng)
        text, view = _printed(case, *_write(tmp_path, case, rng), "smoke", "md")
        assert text == score_smoke(case.gold_rows, case.trace_rows), f"case {number}"
        expected: dict[str, Any] = smoke_numbers(case.gold_rows, case.trace_rows)
        metrics = view.scores.metrics
        assert metrics["answer.compliance"].value == expected["compliance"], f"case {number}"
        assert metrics["answer.precision"].shown == expected["precision"], f"case {number}"
