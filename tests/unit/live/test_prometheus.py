"""`/metrics`: text that Prometheus reads, with a number of series that traffic cannot grow."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from prometheus_client.parser import text_string_to_metric_families

from ragauge.live.access import INGEST, READ, create_token
from ragauge.live.server_state import LiveState, now_ms
from ragauge.live.traffic import quarantine_path
from ragauge.live.windows import at_minute
from tests.support.live_server import PROTOBUF, live_client, live_state, otlp_request

_INSERT = """INSERT INTO eval_live_windows
(tenant, app, build, index_hash, question_type, begins_at, ends_at, state, samples, sample_rate,
 ragauge_version, aggregate_json) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, 1.0, '0', ?)"""
LAST = now_ms() // 60_000


def add_window(
    state: LiveState, app: str, *, tenant: str = "", minute: int = 0, **options: Any
) -> None:
    metrics = options.get("metrics") or {
        "live.empty": {"value": 0.25, "n": 200, "interval": [0.2, 0.3], "version": 1}
    }
    values = (
        tenant, app, options.get("build", ""), options.get("index_hash", ""),
        options.get("slice", ""), at_minute(LAST + minute), at_minute(LAST + minute + 5),
        options.get("window", "closed"), options.get("samples", 200),
        json.dumps({"metrics": metrics}),
    )  # fmt: skip
    with state.databases() as database, database.transaction() as execute:
        execute(_INSERT, values)


def series(text: str) -> dict[str, dict[tuple[tuple[str, str], ...], float]]:
    families: dict[str, dict[tuple[tuple[str, str], ...], float]] = {}
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            labels = tuple(sorted(sample.labels.items()))
            assert labels not in families.setdefault(sample.name, {})  # none twice
            families[sample.name][labels] = sample.value
    return families


def test_what_came_in_is_counted_by_its_end(tmp_path: Path) -> None:
    with live_client(tmp_path) as client:
        body = otlp_request(traces=2).SerializeToString()
        for _ in range(2):
            client.post("/v1/traces", content=body, headers=PROTOBUF)
        client.post("/v1/traces", content=b"\xff", headers=PROTOBUF)
        response = client.get("/metrics")
    assert response.headers["content-type"].startswith("text/plain; version=0.0.4")
    families = series(response.text)
    assert families["ragauge_ingest_spans_total"] == {
        (("outcome", "accepted"),): 4,
        (("outcome", "duplicate"),): 4,
        (("outcome", "undecodable"),): 0,
    }
    assert families["ragauge_ingest_requests_total"][(("outcome", "undecodable"),)] == 1
    assert families["ragauge_spool_bodies"] == {(): 1}
    assert families["ragauge_spool_bytes"][()] > 0
    assert families["ragauge_store_up"] == {(): 1}
    assert families["ragauge_sampling_rate"] == {(): 1}


def test_the_newest_window_of_each_series_is_there_with_n_and_interval(tmp_path: Path) -> None:
    with live_client(tmp_path) as client:
        state = client.app.state.live  # type: ignore[attr-defined]
        add_window(state, "shop", minute=0, metrics={"live.empty": {"value": 0.9, "n": 200}})
        add_window(state, "shop", minute=5)
        add_window(state, "shop", minute=5, build="7", slice="how")
        add_window(state, "shop", minute=10, index_hash="i1")  # never a label
        add_window(state, "odd", metrics={"live.empty": {"value": None, "n": 0, "interval": None}})
        families = series(client.get("/metrics").text)
    own = (("app", "shop"), ("build", ""), ("metric", "live.empty"), ("slice", ""))
    cut = (("app", "shop"), ("build", "7"), ("metric", "live.empty"), ("slice", "how"))
    assert families["ragauge_window_value"] == {own: 0.25, cut: 0.25}
    assert families["ragauge_window_value_low"][own] == 0.2
    assert families["ragauge_window_value_high"][own] == 0.3
    assert families["ragauge_window_n"][own] == 200
    assert "i1" not in str(families)


def test_too_little_traffic_old_builds_and_bodies_put_aside_are_told_apart(tmp_path: Path) -> None:
    with live_client(tmp_path) as client:
        state = client.app.state.live  # type: ignore[attr-defined]
        add_window(state, "shop", minute=-5)
        add_window(state, "quiet", minute=-5, window="too-little-traffic", samples=3)
        add_window(state, "shop", minute=-3 * 24 * 60, build="retired")
        path = state.spool_folder / quarantine_path("7", "", "rows")
        path.parent.mkdir()
        path.write_bytes(b"x")
        families = series(client.get("/metrics").text)
    closed = {dict(own)["app"]: value for own, value in families["ragauge_window_closed"].items()}
    assert closed == {"shop": 1, "quiet": 0}
    assert "retired" not in str(families)
    ends = set(families["ragauge_window_end_timestamp_seconds"].values())
    assert ends == {LAST * 60}
    assert families["ragauge_quarantined_bodies"] == {(): 1}


def test_hostile_names_stay_labels(tmp_path: Path) -> None:
    hostile = 'x"} 1\nragauge_store_up 0\\ \u2028\r<script>' + "y" * 500
    with live_client(tmp_path) as client:
        add_window(client.app.state.live, hostile)  # type: ignore[attr-defined]
        text = client.get("/metrics").text
    families = series(text)
    (labels,) = families["ragauge_window_value"]
    assert dict(labels)["app"].startswith('x"} 1\nragauge_store_up 0\\ ')
    assert len(dict(labels)["app"]) <= 120
    assert families["ragauge_store_up"] == {(): 1}


def test_series_have_a_limit_and_the_rest_is_counted(tmp_path: Path) -> None:
    with live_client(tmp_path, limits={"series": 30}) as client:
        for number in range(40):
            add_window(client.app.state.live, f"app{number:02}", samples=10 + number)  # type: ignore[attr-defined]
        families = series(client.get("/metrics").text)
    labelled = sum(
        sum("app" in dict(labels) and dict(labels)["app"] != "other" for labels in own)
        for own in families.values()
    )
    assert labelled == 30
    # 40 windows have 7 series each: samples, closed, end, n, value, low and high
    assert families["ragauge_series_omitted"] == {(): 40 * 7 - 30}
    other = {"app": "other", "build": "other", "slice": "other"}
    # The newest 4 windows fit, and 2 series of the fifth, samples and closed (4·7 + 2 = 30), so the
    # samples of 35 are summed: 10 + 0 up to 10 + 34; of the fifth n is too
    rest = families["ragauge_window_samples"][tuple(sorted(other.items()))]
    assert rest == sum(10 + number for number in range(35))
    n = families["ragauge_window_n"][tuple(sorted({**other, "metric": "live.empty"}.items()))]
    assert n == 36 * 200
    assert "ragauge_ingest_spans_total" not in families  # nothing came
    assert families["ragauge_spool_bodies"] == {(): 0}  # what does not grow is always there


def test_a_tenant_sees_its_own(tmp_path: Path) -> None:
    with live_client(tmp_path) as client:
        state = client.app.state.live  # type: ignore[attr-defined]
        with state.databases() as database:
            tokens = {
                name: create_token(database, [INGEST, READ], now=state.now(), tenant=name).text
                for name in ("a", "b")
            }
        state.access._open = None
        headers = {name: {"authorization": f"Bearer {token}"} for name, token in tokens.items()}
        body = otlp_request().SerializeToString()
        client.post("/v1/traces", content=body, headers={**PROTOBUF, **headers["a"]})
        add_window(state, "shop", tenant="a")
        of_a, of_b = (series(client.get("/metrics", headers=headers[name]).text) for name in "ab")
        assert client.get("/metrics").status_code == 401
    assert "ragauge_window_value" in of_a
    assert "ragauge_window_value" not in of_b
    assert "ragauge_ingest_spans_total" in of_a
    assert "ragauge_ingest_spans_total" not in of_b


def test_without_the_store_the_rest_is_there(tmp_path: Path) -> None:
    from ragauge.errors import RagaugeError
    from ragauge.live.prometheus import metrics_text

    with live_state(tmp_path) as state:

        def down() -> Any:
            raise RagaugeError.of("store-unavailable", "it is down", hint="wait")

        pool, state.databases = state.databases, down  # type: ignore[assignment]
        families = series(metrics_text(state, ""))
        state.databases = pool
    assert families["ragauge_store_up"] == {(): 0}
    assert families["ragauge_spool_bodies"] == {(): 0}
