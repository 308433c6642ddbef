"""Windows of live traffic."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from ragauge import score
from ragauge.live.export import export_window, list_windows, window_gold
from ragauge.live.settings import LiveSettings, Sampling, WindowRule
from ragauge.live.windows import at_minute, exact_numbers, summed, unpacked_partials
from ragauge.live.worker import ScoredTraffic
from ragauge.model.scores_document import metrics_document
from tests.unit.live.live_traffic import GOLD, MINUTE, START, SpoolOfTests, traffic, worker


def windows(part: ScoredTraffic) -> list[tuple[Any, ...]]:
    rows = part.windows.database.read(
        "SELECT build, index_hash, question_type, begins_at, ends_at, state, samples, "
        "aggregate_json FROM eval_live_windows ORDER BY build, index_hash, question_type, begins_at"
    )
    return [(*row[:7], json.loads(row[7])) for row in rows]


def test_a_window_closes_when_it_has_samples_and_minutes(tmp_path: Path) -> None:
    spool = SpoolOfTests(tmp_path)
    part = worker(spool, gold=GOLD)
    rows = traffic(250)
    for minute in range(5):
        spool.put_rows(rows[50 * minute : 50 * minute + 50], START + minute * MINUTE + 7)
        part.step(START + minute * MINUTE + 1000)
    assert not [
        row for row in windows(part) if row[:3] == ("", "", "")
    ]  # 250 samples, but the fifth minute is not over
    part.step(START + 5 * MINUTE + 20_000)
    (total,) = [row for row in windows(part) if row[:3] == ("", "", "")]
    assert total[3:7] == (
        at_minute(START // MINUTE), at_minute(START // MINUTE + 5), "closed", 250,
    )  # fmt: skip
    assert spool.reader.depth() == 0


def closed_windows(tmp_path: Path, count: int = 600, **options: Any) -> ScoredTraffic:
    """Five minutes of traffic, scored, and the parts of the worker.

    A sender that saw no answer sends again: some rows come twice, in another body.
    """
    spool = SpoolOfTests(tmp_path)
    part = worker(spool, gold=GOLD, **options)
    rows = traffic(count, builds=("v1", "v2"))
    step = count // 5
    for minute in range(5):
        spool.put_rows(rows[step * minute : step * (minute + 1)], START + minute * MINUTE + 7)
        again = rows[max(0, step * minute - 20) : step * minute + 5]
        spool.put_rows(again, START + minute * MINUTE + 9)
    part.step(START + 6 * MINUTE)
    before = windows(part)
    spool.put_rows(rows, START + 6 * MINUTE)  # all of it, when the window is closed
    part.step(START + 8 * MINUTE)
    assert windows(part) == before
    return part


@pytest.mark.slow
def test_a_window_is_the_offline_score_of_its_traces_byte_for_byte(tmp_path: Path) -> None:
    part = closed_windows(tmp_path)
    database = part.windows.database
    listed = list_windows(database, limit=100)
    # All traffic, two builds, two indexes, builds of an index, types: those with 200 samples.
    assert len(listed) >= 5
    for window in listed:
        aggregate = json.loads(window.aggregate)
        gold = window_gold(database, aggregate["gold"]["digest"])
        folder = tmp_path / f"window-{window.number}"
        exported = export_window(database, window, gold, folder)
        assert exported.traces == window.samples >= 200
        scores = score(
            folder / "gold.jsonl", folder / "traces.jsonl", profile="live", dialect="native"
        )
        offline = json.dumps(metrics_document(scores))
        assert offline == json.dumps(aggregate["metrics"])
    (total,) = [window for window in listed if window.series.is_total]
    metrics = json.loads(total.aggregate)["metrics"]
    assert total.samples == 600
    assert metrics["live.error"]["value"] > 0
    assert metrics["live.refusal"]["value"] > 0
    assert metrics["live.coverage"]["n"] > 0
    assert metrics["answer.coverage"]["n"] == 2  # two gold items have evidence
    assert metrics["live.lambda_flip"]["n"] > 50  # questions that came again


def test_a_day_with_too_little_traffic_is_a_state_and_silence_is_said_once(tmp_path: Path) -> None:
    spool = SpoolOfTests(tmp_path)
    rule = WindowRule(samples=10, longest_hours=1)
    settings = LiveSettings(sampling=Sampling(rate=1.0), window=rule)
    part = worker(spool, settings=settings)
    row = {"question": "a?", "hits": ["a.md#S1"], "build": "v1", "app": "shop"}
    spool.put_rows([row, row, row], START)
    for minute in range(0, 60 * 5, 7):
        part.step(START + minute * MINUTE)
        if minute == 126:  # a new worker knows no less
            part = worker(spool, settings=settings)
    begins = START // MINUTE
    hours = [at_minute(begins + 60 * hour) for hour in range(4)]
    assert [(row[0], *row[3:7]) for row in windows(part)] == [
        ("", hours[0], hours[1], "too-little-traffic", 3),
        ("", hours[1], hours[2], "too-little-traffic", 0),  # and then nothing more is said
        ("v1", hours[0], hours[1], "too-little-traffic", 3),
    ]
    spool.put_rows([row] * 12, START + 400 * MINUTE)
    part.step(START + 410 * MINUTE)
    new = [row[3:7] for row in windows(part) if row[0] == ""][-1]
    assert new == (at_minute(begins + 400), at_minute(begins + 405), "closed", 12)


@pytest.mark.slow
def test_sums_of_minutes_give_the_means_of_their_window(tmp_path: Path) -> None:
    part = closed_windows(tmp_path, 300)
    rows = part.windows.database.read("SELECT partials, samples FROM eval_live_minutes")
    means = summed([unpacked_partials(bytes(partials)) for partials, _ in rows])
    (total,) = [row for row in windows(part) if row[:3] == ("", "", "")]
    metrics = total[7]["metrics"]
    assert sum(samples for _, samples in rows) == 300
    for name in ("live.error", "live.empty", "live.citation_validity", "live.refusal"):
        value, interval = exact_numbers(metrics[name])
        assert means[name] == pytest.approx(value, abs=1e-12)
        assert interval is not None
        assert interval[0] <= value <= interval[1]  # type: ignore[operator]
    latencies = [
        value
        for partials, _ in rows
        for value in unpacked_partials(bytes(partials))["values"]["live.latency_p95"]
    ]
    ordered = sorted(latencies)
    place = 0.95 * (len(ordered) - 1)
    below = int(place)
    expected = ordered[below] + (place - below) * (ordered[below + 1] - ordered[below])
    assert exact_numbers(metrics["live.latency_p95"])[0] == pytest.approx(expected)
