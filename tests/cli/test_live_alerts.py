"""`ragauge live alerts`: the states of alert rules, and what changed."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ragauge.live.alerts import AlertEvaluator
from ragauge.live.database import open_database
from ragauge.live.settings import AlertRule, Alerts, LiveSettings, Webhook
from tests.support.command import Folder
from tests.support.live_windows import MINUTE, NOON, add_window, rate


@pytest.fixture
def store(tmp_path: Path) -> str:
    """A store in which one rule fires and one does not."""
    url = f"sqlite:///{tmp_path}/live.db"
    database = open_database(url)
    rules = {"low": AlertRule(metric="m", below=0.7), "high": AlertRule(metric="m", above=0.9)}
    webhooks = (Webhook(url="https://hooks.example/SECRET"),)
    alerts = Alerts(defaults=False, rules=rules, webhooks=webhooks)
    evaluator = AlertEvaluator(LiveSettings(alerts=alerts), database)
    for number in (1, 2):
        ends = NOON + number * 5 * MINUTE
        add_window(database, ends, {"m": rate(0.5)})
        evaluator.step(ends + 1_000)
    database.close()
    return url


def test_the_table_has_value_interval_and_threshold(folder: Folder, store: str) -> None:
    outcome = folder.run("live", "alerts", "--store", store)
    assert outcome.exit_code == 1  # one fires
    lines = outcome.out.splitlines()
    assert lines[0].split()[:3] == ["state", "rule", "app"]
    (fired,) = [line for line in lines if "firing" in line]
    # 100 of 200: 0.5 ± 0.069. There is no room for the column `since`.
    assert " ".join(fired.split()) == "firing low shop 0.5 0.4314 to 0.5686 200 < 0.7"
    assert "1 message waits for a webhook" in outcome.err


def test_json_has_the_same_and_the_changes(folder: Folder, store: str) -> None:
    outcome = folder.run("live", "alerts", "--store", store, "--events", "--format", "json")
    document = json.loads(outcome.out)
    assert [(one["rule"], one["state"]) for one in document["alerts"]] == [
        ("high", "inactive"),
        ("low", "firing"),
    ]
    assert [(one["before"], one["state"]) for one in document["events"]] == [
        ("inactive", "pending"),
        ("pending", "firing"),
    ]
    assert document["messages"] == {"waiting": 1}
    assert "SECRET" not in outcome.out


def test_changes_as_a_table(folder: Folder, store: str) -> None:
    outcome = folder.run("live", "alerts", "--store", store, "--events", "--limit", "1")
    assert "pending → firing" in outcome.out
    assert "inactive → pending" not in outcome.out


def test_a_store_without_alerts(folder: Folder, tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/empty.db"
    open_database(url).close()
    outcome = folder.run("live", "alerts", "--store", url)
    assert outcome.exit_code == 5
    assert "no rule was evaluated" in outcome.err


def test_apps_and_tenants_are_apart(folder: Folder, store: str) -> None:
    assert folder.run("live", "alerts", "--store", store, "--app", "other").exit_code == 5
    assert folder.run("live", "alerts", "--store", store, "--tenant", "other").exit_code == 5
