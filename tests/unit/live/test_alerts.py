"""The states of alerts, by windows and a clock that tests set."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from ragauge.errors import RagaugeError
from ragauge.live import alerts
from ragauge.live.alert_log import AlertLog, read_events
from ragauge.live.alerts import AlertEvaluator, AlertKey, needed_evidence, read_alerts
from ragauge.live.database import LiveDatabase, open_database
from ragauge.live.settings import AlertRule, Alerts, LiveSettings, Webhook
from tests.support.live_windows import MINUTE, NOON, add_trace, add_window, rate
from tests.support.postgres import own_schema, server_url

FLOOR = AlertRule(metric="m", below=0.7, for_minutes=5, keep_minutes=5)
BAD, GOOD, UNCLEAR = 0.50, 0.90, 0.66


@pytest.fixture(
    params=[
        "sqlite",
        pytest.param("postgres", marks=[pytest.mark.slow, pytest.mark.xdist_group("postgres")]),
    ]
)
def database(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[LiveDatabase]:
    """A store of either kind: the SQL must run on both."""
    if request.param == "sqlite":
        store = open_database(f"sqlite:///{tmp_path}/store.db")
        yield store
        store.close()
        return
    with own_schema(server_url(request.config)) as url:
        store = open_database(url)
        yield store
        store.close()


@pytest.fixture
def file_store(tmp_path: Path) -> Iterator[LiveDatabase]:
    store = open_database(f"sqlite:///{tmp_path}/store.db")
    yield store
    store.close()


def settings(rule: AlertRule = FLOOR, **options: Any) -> LiveSettings:
    webhooks = (Webhook(url="https://hooks.example/SECRET"),)
    options = {"defaults": False, "rules": {"mine": rule}, "webhooks": webhooks, **options}
    return LiveSettings(alerts=Alerts(**options))


class Monitor:
    """A server with its windows: each call is the next one, evaluated a second after its end."""

    def __init__(self, database: LiveDatabase, live: LiveSettings) -> None:
        self.database = database
        self.live = live
        self.now = NOON
        self.evaluator = AlertEvaluator(live, database)

    def window(self, value: float | None, n: int = 200, minutes: int = 5, **options: Any) -> str:
        self.now += minutes * MINUTE
        metrics = {} if value is None else {"m": rate(value, n)}
        add_trace(self.database, self.now - 1, build=options.get("build", "1.0"))
        add_window(self.database, self.now, metrics, minutes=minutes, **options)
        self.evaluator.step(self.now + 1_000)
        return self.state(f"build={options['build']}" if options.get("build") else "")

    def wait(self, minutes: float) -> str:
        self.now += round(minutes * MINUTE)
        self.evaluator.step(self.now + 1_000)
        return self.state()

    def restart(self) -> None:
        self.evaluator = AlertEvaluator(self.live, self.database)

    def state(self, series: str = "") -> str:
        record = read_alerts(self.database).get(AlertKey("", "shop", "mine", series))
        return "" if record is None else record.state

    @property
    def steps(self) -> list[tuple[str, str]]:
        return [(event["before"], event["state"]) for event in read_events(self.database)]

    @property
    def messages(self) -> list[Any]:
        rows = self.database.read("SELECT payload FROM live_outbox ORDER BY number")
        return [msgspec.json.decode(payload) for (payload,) in rows]


def test_from_inactive_over_pending_and_firing_to_resolved(database: LiveDatabase) -> None:
    monitor = Monitor(database, settings())
    assert [monitor.window(value) for value in (GOOD, BAD, BAD, BAD, GOOD, GOOD)] == [
        "inactive",
        "pending",
        "firing",
        "firing",
        "firing",  # kept for 5 minutes
        "resolved",
    ]
    assert monitor.steps == [
        ("inactive", "pending"),
        ("pending", "firing"),
        ("firing", "resolved"),
    ]
    # Webhooks hear of the alarm and of its end, and of nothing between.
    assert [message["alerts"][0]["state"] for message in monitor.messages] == ["firing", "resolved"]


def test_resolved_becomes_inactive_after_a_quarter_of_an_hour(file_store: LiveDatabase) -> None:
    monitor = Monitor(file_store, settings())
    for value in (BAD, BAD, GOOD, GOOD):
        monitor.window(value)
    assert [monitor.window(GOOD) for _ in range(4)] == ["resolved"] * 3 + ["inactive"]


def test_for_counts_from_the_first_window_that_is_beyond(file_store: LiveDatabase) -> None:
    rule = AlertRule(metric="m", below=0.7, for_minutes=12)
    monitor = Monitor(file_store, settings(rule))
    states = [monitor.window(BAD) for _ in range(4)]
    assert states == ["pending", "pending", "pending", "firing"]  # 0, 5, 10 and 15 minutes


def test_one_good_window_ends_what_is_pending(file_store: LiveDatabase) -> None:
    rule = AlertRule(metric="m", below=0.7, for_minutes=12)
    monitor = Monitor(file_store, settings(rule))
    # 0.9 of 200 is 7 standard errors above: nothing is left of what was before.
    states = [monitor.window(value) for value in (BAD, BAD, GOOD, BAD, BAD, BAD)]
    assert states == ["pending", "pending", "inactive", "pending", "pending", "pending"]


def test_noise_around_the_threshold_does_not_fire(file_store: LiveDatabase) -> None:
    monitor = Monitor(file_store, settings())
    values = [0.66, 0.73, 0.64, 0.72, 0.67, 0.74, 0.63, 0.71] * 3  # each within 2 errors of 0.035
    assert "firing" not in [monitor.window(value) for value in values]


def test_windows_that_are_unclear_one_by_one_fire_together(file_store: LiveDatabase) -> None:
    """0.66 of 200 is 1.2 standard errors below 0.70: no window of its own, but hours of them."""
    monitor = Monitor(file_store, settings())
    states = [monitor.window(UNCLEAR) for _ in range(24)]
    assert states[0] == "inactive"
    assert states[-1] == "firing"
    assert states == sorted(states, key=["inactive", "pending", "firing"].index)


def test_overlapping_windows_count_once(file_store: LiveDatabase) -> None:
    """A window of 30 minutes each minute: 29 of its minutes are not news."""
    monitor = Monitor(file_store, settings())
    for _ in range(3):
        monitor.now += MINUTE
        add_window(file_store, monitor.now, {"m": rate(0.62)}, minutes=30)
        monitor.evaluator.step(monitor.now + 6_000)
        (record,) = read_alerts(file_store).values()
        assert record.seen == monitor.now
        assert record.counted_until == NOON + MINUTE
        # 0.62 of 200 has the upper bound 0.6850: z = 1.96 × 0.08 / 0.0650 = 2.41, which is
        # 1 × 2.41 - 1/2 for a shift of 1, and 3 × 2.41 - 9/2 for a shift of 3.
        assert [round(total, 1) for total in record.sums] == [1.9, 2.7]


def test_the_longer_a_window_the_less_evidence_is_needed() -> None:
    """30 days have 8,640 windows of 5 minutes and 720 of an hour."""
    assert round(needed_evidence(FLOOR, 5 * MINUTE), 2) == 9.76  # ln(2 × 8640)
    assert round(needed_evidence(FLOOR, 60 * MINUTE), 2) == 7.27  # ln(2 × 720)
    point = AlertRule(metric="m", below=0.7, policy="point")
    assert needed_evidence(point, 5 * MINUTE) == 0


def test_a_window_of_an_hour_fires_without_waiting_for_the_next(file_store: LiveDatabase) -> None:
    monitor = Monitor(file_store, settings())
    assert monitor.window(0.4, minutes=60) == "pending"
    assert monitor.wait(4) == "pending"
    assert monitor.wait(1) == "firing"


def test_firing_goes_on_until_the_value_itself_is_back(file_store: LiveDatabase) -> None:
    """Not when noise could explain it: an alert at its threshold would go on and off."""
    monitor = Monitor(file_store, settings())
    states = [monitor.window(value) for value in (BAD, BAD, UNCLEAR, UNCLEAR, 0.70, 0.70)]
    assert states == ["pending", *["firing"] * 4, "resolved"]


def test_keep_starts_again_when_it_is_bad_again(file_store: LiveDatabase) -> None:
    monitor = Monitor(file_store, settings(AlertRule(metric="m", below=0.7, keep_minutes=9)))
    for value in (BAD, BAD, GOOD, UNCLEAR, GOOD):
        monitor.window(value)
    assert monitor.wait(8) == "firing"
    assert monitor.wait(1) == "resolved"


def test_a_ceiling_fires_upwards_and_a_floor_downwards(file_store: LiveDatabase) -> None:
    rules = {
        "floor": AlertRule(metric="m", below=0.5),
        "ceiling": AlertRule(metric="m", above=0.5),
    }
    monitor = Monitor(file_store, settings(rules=rules))
    for _ in range(3):
        monitor.window(0.9)
    records = read_alerts(file_store)
    assert {key.rule: record.state for key, record in records.items()} == {
        "floor": "inactive",
        "ceiling": "firing",
    }


def test_too_little_data_is_a_state_and_not_green(file_store: LiveDatabase) -> None:
    monitor = Monitor(file_store, settings())
    assert monitor.window(GOOD, n=10) == "too-little-data"
    assert monitor.window(GOOD) == "inactive"
    # A window that waited a day for its samples says nothing good, and may say something bad.
    assert monitor.window(GOOD, n=60, state="too-little-traffic") == "too-little-data"
    assert monitor.window(0.1, n=60, state="too-little-traffic") == "pending"
    assert monitor.messages == []


def test_too_little_data_resolves_nothing(file_store: LiveDatabase) -> None:
    monitor = Monitor(file_store, settings())
    for value in (BAD, BAD):
        monitor.window(value)
    assert monitor.window(GOOD, n=5) == "firing"
    assert monitor.wait(30) == "firing"


def test_silence_is_no_data_and_resolves_nothing(file_store: LiveDatabase) -> None:
    monitor = Monitor(file_store, settings())
    monitor.window(BAD)
    assert monitor.window(BAD) == "firing"
    assert monitor.wait(59) == "firing"
    assert monitor.wait(1) == "no-data"
    # It was firing before, so what is still bad fires at once, and what is good resolves it.
    assert monitor.window(UNCLEAR) == "firing"
    monitor.wait(60)
    assert monitor.window(GOOD) == "resolved"
    told = [message["alerts"][0]["state"] for message in monitor.messages]
    assert told == ["firing", "no-data", "firing", "no-data", "resolved"]


def test_traffic_that_fills_no_window_yet_is_not_silence(file_store: LiveDatabase) -> None:
    monitor = Monitor(file_store, settings())
    monitor.window(GOOD)
    for _ in range(9):
        monitor.now += 10 * MINUTE
        add_trace(file_store, monitor.now)
        monitor.evaluator.step(monitor.now + 1_000)
        assert monitor.state() == "inactive"


def test_a_metric_that_is_gone_has_no_data_while_others_go_on(file_store: LiveDatabase) -> None:
    monitor = Monitor(file_store, settings())
    assert monitor.window(None) == ""  # never measured: no alert
    monitor.window(GOOD)
    states = [monitor.window(None) for _ in range(12)]
    assert states == ["inactive"] * 11 + ["no-data"]  # 60 minutes


def test_an_app_that_goes_silent_is_told_in_one_message(file_store: LiveDatabase) -> None:
    rules = {name: AlertRule(metric="m", below=0.7) for name in ("a", "b", "c")}
    monitor = Monitor(file_store, settings(rules=rules))
    monitor.window(GOOD)
    monitor.wait(61)
    (message,) = monitor.messages
    assert [entry["rule"] for entry in message["alerts"]] == ["a", "b", "c"]


def test_state_survives_a_restart(database: LiveDatabase) -> None:
    monitor = Monitor(database, settings())
    for value in (BAD, BAD):
        monitor.restart()
        monitor.window(value)
    monitor.restart()
    assert monitor.state() == "firing"
    monitor.restart()
    monitor.window(GOOD)
    monitor.restart()
    assert monitor.window(GOOD) == "resolved"
    assert len(monitor.messages) == 2


def test_a_crash_before_the_commit_loses_and_doubles_nothing(
    file_store: LiveDatabase, monkeypatch: pytest.MonkeyPatch
) -> None:
    monitor = Monitor(file_store, settings())
    monitor.window(BAD)
    with monkeypatch.context() as patch:

        def crash(*_arguments: object) -> None:
            raise OSError("the power is gone")

        patch.setattr(alerts, "queue_messages", crash)
        with pytest.raises(OSError, match="power"):
            monitor.window(BAD)
    assert monitor.state() == "pending"  # neither the state nor its event was written
    assert monitor.wait(0.2) == "firing"
    assert monitor.steps == [("inactive", "pending"), ("pending", "firing")]
    assert len(monitor.messages) == 1


def test_one_of_two_servers_evaluates(database: LiveDatabase) -> None:
    monitor = Monitor(database, settings())
    other = open_database(database.url)
    try:
        with other.hold(alerts.LOCK):
            assert monitor.window(GOOD) == ""
        # The next one takes over where the other was, and tells nobody twice.
        second = AlertEvaluator(settings(), other)
        second.step(monitor.now + 2_000)
        assert monitor.state() == "inactive"
        monitor.window(BAD)
        monitor.window(BAD)
        second.step(monitor.now + 9_000)
        assert monitor.state() == "firing"
        assert len(monitor.messages) == 1
    finally:
        other.close()


def test_windows_that_become_visible_late_are_not_lost(file_store: LiveDatabase) -> None:
    """Another server's window may have a smaller number than one that was seen before."""
    monitor = Monitor(file_store, settings(rules={"mine": FLOOR}))
    monitor.window(GOOD, app="shop")
    with file_store.transaction() as execute:
        execute("UPDATE eval_live_windows SET number = 100 WHERE app = 'shop'", ())
    monitor.restart()
    monitor.evaluator.step(monitor.now + 10_000)
    add_window(file_store, monitor.now, {"m": rate(GOOD)}, app="late")
    with file_store.transaction() as execute:
        execute("UPDATE eval_live_windows SET number = 50 WHERE app = 'late'", ())
    monitor.evaluator.step(monitor.now + 20_000)
    assert {key.app for key in read_alerts(file_store)} == {"shop", "late"}


def test_a_rule_for_builds_has_a_series_for_each(file_store: LiveDatabase) -> None:
    monitor = Monitor(file_store, settings(AlertRule(metric="m", below=0.7, by="build")))
    monitor.window(BAD, build="2.0")
    assert monitor.window(BAD, build="2.0") == "firing"
    assert monitor.window(GOOD, build="1.0") == "inactive"
    # A build that nobody serves any more ends its alert; the app has data.
    for _ in range(13):
        monitor.window(GOOD, build="1.0")
    assert monitor.state("build=2.0") == "inactive"
    assert monitor.messages[-1]["alerts"][0]["state"] == "inactive"


def test_a_rule_that_is_gone_ends_its_alert(file_store: LiveDatabase) -> None:
    monitor = Monitor(file_store, settings())
    monitor.window(BAD)
    monitor.window(BAD)
    monitor.live = settings(rules={})
    monitor.restart()
    assert monitor.wait(1) == "inactive"


def test_a_rise_is_over_the_windows_an_hour_before(file_store: LiveDatabase) -> None:
    rule = AlertRule(metric="m", rise=0.3, for_minutes=5)
    monitor = Monitor(file_store, settings(rule))

    def window(value: float) -> str:
        monitor.now += 5 * MINUTE
        metric = {"value": value, "n": 200, "interval": [value * 0.95, value * 1.05]}
        add_trace(file_store, monitor.now - 1)
        add_window(file_store, monitor.now, {"m": metric})
        monitor.evaluator.step(monitor.now + 1_000)
        return monitor.state()

    # 6 windows that ended an hour before the 19th began, and earlier ones too few.
    states = [window(100.0) for _ in range(20)]
    assert states == ["too-little-data"] * 18 + ["inactive"] * 2
    assert [window(125.0) for _ in range(3)] == ["inactive"] * 3  # 25 % more
    assert [window(200.0) for _ in range(2)] == ["pending", "firing"]
    # While it fires it is held against what was before: a day later it still is twice that.
    assert [window(200.0) for _ in range(40)] == ["firing"] * 40
    record = read_alerts(file_store)[AlertKey("", "shop", "mine", "")]
    assert record.reference is not None
    assert record.reference.value == 100.0
    assert record.threshold == 130.0


def test_what_a_webhook_is_told(file_store: LiveDatabase) -> None:
    rule = AlertRule(metric="live.latency_p95", above=1000)
    monitor = Monitor(file_store, settings(rule))
    for number in range(2):
        monitor.now += 5 * MINUTE
        for place in range(8):
            add_trace(
                file_store,
                monitor.now - MINUTE,
                trace_id=f"{number}-{place}",
                timing={"total": 1000.0 * place},
                facts={"embed_model": "e5"},
            )
        metric = {"value": 7000.0, "n": 200, "interval": [6500.0, 7500.0], "version": 1}
        add_window(file_store, monitor.now, {"live.latency_p95": metric})
        monitor.evaluator.step(monitor.now + 1_000)
    (message,) = monitor.messages
    (entry,) = message["alerts"]
    assert message["schema"] == "ragauge.alerts/1"
    assert message["config_hash"] == monitor.evaluator.config_hash
    assert len(message["config_hash"]) == 32
    assert entry["value"] == 7000.0
    assert (entry["n"], entry["interval"], entry["threshold"]) == (200, [6500.0, 7500.0], 1000)
    assert entry["worst_traces"] == ["1-7", "1-6", "1-5", "1-4", "1-3"]
    assert entry["indexes"] == [
        {"build": "1.0", "index_hash": "i1", "facts": {"embed_model": "e5"}, "traces": 8}
    ]
    assert message["text"] == (
        "firing: mine in shop: live.latency_p95 is 7000 (n 200, 95 % 6500 to 7500, threshold 1000)"
    )
    (row,) = file_store.read("SELECT webhook, payload, dedupe_key FROM live_outbox")
    assert "SECRET" not in str(row)


def test_tenants_are_apart(file_store: LiveDatabase) -> None:
    monitor = Monitor(file_store, settings())
    for _ in range(2):
        monitor.window(GOOD)
        add_window(file_store, monitor.now, {"m": rate(BAD)}, tenant="other")
        monitor.evaluator.step(monitor.now + 7_000)
    records = read_alerts(file_store)
    assert {key.tenant: record.state for key, record in records.items()} == {
        "": "inactive",
        "other": "firing",
    }
    assert [message["tenant"] for message in monitor.messages] == ["other"]
    assert [key.tenant for key in read_alerts(file_store, tenant="other")] == ["other"]


# --- the log ---


def test_the_log_has_every_change_once(file_store: LiveDatabase, tmp_path: Path) -> None:
    file = tmp_path / "alerts.jsonl"
    monitor = Monitor(file_store, settings())
    monitor.window(BAD)
    log = AlertLog(str(file), file_store)
    log.step(monitor.now)  # what was before it is in the store
    for value in (BAD, GOOD, GOOD):
        monitor.window(value)
        log.step(monitor.now)
        log = AlertLog(str(file), file_store)  # a server that starts again
    lines = [msgspec.json.decode(line) for line in file.read_bytes().splitlines()]
    assert [(line["before"], line["state"]) for line in lines] == [
        ("pending", "firing"),
        ("firing", "resolved"),
    ]
    assert lines[0]["record"]["measured"]["value"] == BAD


@pytest.mark.parametrize("content", [b'{"qid": "A1"}\n', b'{"qid": "A1"}', b"export A=1\n", b"a"])
def test_a_file_with_other_lines_is_not_written_to(
    file_store: LiveDatabase, tmp_path: Path, content: bytes
) -> None:
    file = tmp_path / "notes.jsonl"
    file.write_bytes(content)
    monitor = Monitor(file_store, settings())
    log = AlertLog(str(file), file_store)
    for value in (BAD, BAD):
        monitor.window(value)
    with pytest.raises(RagaugeError, match="other lines than alerts"):
        log.step(monitor.now)
    assert file.read_bytes() == content


def test_a_line_that_a_crash_has_cut_is_written_again(
    file_store: LiveDatabase, tmp_path: Path
) -> None:
    file = tmp_path / "alerts.jsonl"
    monitor = Monitor(file_store, settings())
    log = AlertLog(str(file), file_store)
    log.step(monitor.now)
    for value in (BAD, BAD, GOOD, GOOD):
        monitor.window(value)
    log.step(monitor.now)
    whole = file.read_bytes()
    file.write_bytes(whole[:-10])
    AlertLog(str(file), file_store).step(monitor.now)
    assert file.read_bytes() == whole
