"""Owns the benchmark of the overview: a store with 90 days of minutes beside one with a day.

Run as `python benchmarks/dashboard.py --days 90 --rounds 9`. A page is asked for in this process,
by the application that `ragauge serve` serves, and the CPU of this process is counted, as the
machine may be busy. What is printed is a ratio too: the same page over one day takes as long on the
same machine, or it does not.
"""

from __future__ import annotations

import argparse
import json
import math
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from ragauge.live.database import LiveDatabase, open_database
from ragauge.live.metric_hours import MetricHours

NOW = 1_790_000_040_000
MINUTE = 60_000
PARTS = (("", "", ""), ("b1", "i1", ""), ("b2", "i2", ""), ("b1", "i1", "how-to"))
"""Builds, indexes and types that are kept apart; the first is over all."""
METRICS = (
    "live.coverage", "live.citation_validity", "live.empty", "live.refusal", "live.error",
    "live.latency_p50", "live.latency_p95", "live.delta_s_median", "live.delta_s_p90",
    "live.lambda_flip", "live.kendall_tau", "live.unknown_ids", "answer.coverage",
    "citation.accuracy", "retrieval.recall@5", "retrieval.mrr",
)  # fmt: skip
DOCUMENTS = {f"docs/guide-{number}.md": 40 for number in range(120)}
"""Documents that the hits of a window lie in, as a window of all traffic has them."""
PAGES = (
    "/", "/metric?range=24h", "/metric?range=7d", "/metric?range=90d", "/metric?range=90d&by=build",
    "/alerts", "/traces", "/ingest", "/metrics",
)  # fmt: skip
MOST_SECONDS, MOST_RATIO = 0.3, 2.0


def time_text(at: int) -> str:
    """A time as windows have it."""
    return datetime.fromtimestamp(at / 1000, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def windows(days: int) -> Iterator[tuple[Any, ...]]:
    """A window of five minutes each, for every part."""
    for number in range(days * 288, 0, -1):
        ends = NOW - number * 5 * MINUTE
        for build, index, kind in PARTS:
            metrics = {
                name: {
                    "value": 0.8 + 0.1 * math.sin(number / 50 + place), "n": 200,
                    "excluded": {"unlabelled": 12, "oversampled": 3}, "interval": [0.7, 0.95],
                    "unrounded": [0.812345678901, 0.7012345678, 0.951234567], "version": 1,
                }
                for place, name in enumerate(METRICS)
            }  # fmt: skip
            documents = {} if build else DOCUMENTS
            text = json.dumps({"metrics": metrics, "counts": {}, "documents": documents})
            begins = time_text(ends - 5 * MINUTE)
            yield (
                "",
                "shop",
                build,
                index,
                kind,
                begins,
                time_text(ends),
                "closed",
                200,
                1.0,
                "0",
                text,
            )


def minutes(days: int) -> Iterator[tuple[Any, ...]]:
    """Every minute of every part."""
    last = NOW // MINUTE
    for number in range(days * 1440, 0, -1):
        for build, index, kind in PARTS:
            yield "", "shop", last - number, build, index, kind, 40, 1.0, b"x" * 200


def counts(days: int) -> Iterator[tuple[Any, ...]]:
    """What came in, by the minute."""
    last = NOW // MINUTE
    for number in range(days * 1440, 0, -1):
        for outcome in ("accepted", "sampled-out", "scored"):
            yield "", last - number, outcome, 300, 40


def fill(database: LiveDatabase, days: int) -> int:
    """Fill a store; returns how many rows of minutes it has."""
    with database.transaction() as execute:
        database.execute_many(
            "INSERT INTO eval_live_windows (tenant, app, build, index_hash, question_type,"
            " begins_at, ends_at, state, samples, sample_rate, ragauge_version, aggregate_json)"
            " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            windows(days),
        )
        database.execute_many(
            "INSERT INTO eval_live_minutes (tenant, app, minute, build, index_hash, question_type,"
            " samples, sample_rate, partials) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
            minutes(days),
        )
        database.execute_many(
            "INSERT INTO live_counts (tenant, minute, outcome, spans, traces)"
            " VALUES (?, ?, ?, ?, ?)",
            counts(days),
        )
        arrived = range(NOW - 1_000_000, NOW, 500)
        database.execute_many(
            "INSERT INTO live_traces (tenant, trace_id, app, build, index_hash, question_type,"
            " arrived, minute, state, sample_rate) VALUES ('', ?, 'shop', 'b1', 'i1', '', ?, ?,"
            " 'scored', 1.0)",
            ((str(at), at, at // MINUTE) for at in arrived),
        )
        rows = execute("SELECT count(*) FROM eval_live_minutes", ()).fetchone()
    hours, newest = MetricHours(database), ""
    while newest != (newest := str(database.read("SELECT max(minute) FROM live_marks"))):
        hours.step(NOW)
    return int(rows[0])


def page_seconds(folder: Path, days: int, rounds: int) -> tuple[int, dict[str, float]]:
    """Rows of minutes, and the median CPU of each page once templates are loaded."""
    from starlette.testclient import TestClient

    from ragauge.live.server_state import LiveState
    from ragauge.live.settings import LiveSettings
    from ragauge.live.web import make_app

    url = f"sqlite:///{folder / f'{days}.db'}"
    with closing(open_database(url)) as database:
        rows = fill(database, days)
    with closing(LiveState(LiveSettings(), url, clock=lambda: NOW)) as state:
        client = TestClient(make_app(state), base_url="http://localhost:4319")
        seconds = {}
        for page in PAGES:
            taken = []
            for number in range(rounds + 1):
                begin = time.process_time()
                answer = client.get(page)
                if number:
                    taken.append(time.process_time() - begin)
                if answer.status_code != 200:
                    raise SystemExit(f"{page}: {answer.status_code}")
            seconds[page] = statistics.median(taken)
    return rows, seconds


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the table; 1 if the overview is too slow, or slower with more days."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--days", type=int, default=90)
    parser.add_argument("--rounds", type=int, default=9)
    asked = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory(prefix="ragauge-board-") as name:
        _, day = page_seconds(Path(name), 1, asked.rounds)
        rows, many = page_seconds(Path(name), asked.days, asked.rounds)
    print(f"{asked.days} days: {rows:,} rows of minutes, {len(METRICS)} metrics in each window\n")
    print("| page | CPU with a day | with all days | ratio |\n|---|---:|---:|---:|")
    for page in PAGES:
        ratio = many[page] / day[page]
        print(f"| `{page}` | {day[page]:.3f} s | {many[page]:.3f} s | {ratio:.2f} |")
    return int(many["/"] > MOST_SECONDS or many["/"] > MOST_RATIO * day["/"])


if __name__ == "__main__":
    sys.exit(main())
