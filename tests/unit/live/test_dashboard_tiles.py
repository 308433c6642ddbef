"""What a tile and the first line say: never better than what was measured."""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from ragauge.live.dashboard.queries import AlertFacts, AlertRow, LiveWindow, WindowValue
from ragauge.live.dashboard.tiles import (
    MetricTile,
    Threshold,
    headline,
    metric_tiles,
    thresholds_of,
    tile_state,
)
from ragauge.live.settings import AlertRule, Alerts, LiveSettings
from tests.support.cases import cases

FLOOR = Threshold(rule="r", metric="m", below=0.7)
CEILING = Threshold(rule="r", metric="m", above=0.1)


def measured(
    value: float | None, low: float | None, high: float | None, n: int = 200
) -> WindowValue:
    return WindowValue(value, n, (low, high))


@cases(
    ("threshold", "value", "state"),
    [
        (FLOOR, measured(0.8, 0.7, 0.9), "within"),  # not below it, to the last bound
        (FLOOR, measured(0.8, 0.69, 0.9), "undecided"),
        (FLOOR, measured(0.65, 0.6, 0.7), "undecided"),  # 0.7 itself would be good
        (FLOOR, measured(0.65, 0.6, 0.699), "beyond"),
        (CEILING, measured(0.05, 0.0, 0.099), "within"),
        (CEILING, measured(0.05, 0.0, 0.1), "undecided"),  # 0.1 itself is bad: `≥ .10`
        (CEILING, measured(0.2, 0.1, 0.3), "beyond"),
        (FLOOR, measured(0.9, None, None), "undecided"),  # an open interval proves nothing
        (FLOOR, measured(0.9, 0.8, None), "within"),
        (FLOOR, WindowValue(0.9, 200, None), "undecided"),
        (
            Threshold(rule="r", metric="m", below=0.7, by_point=True),
            WindowValue(0.9, 200),
            "within",
        ),
        (
            Threshold(rule="r", metric="m", above=0.7, by_point=True),
            WindowValue(0.7, 200),
            "beyond",
        ),
        (FLOOR, measured(0.9, 0.8, 1.0, n=19), "too-little-data"),
        (FLOOR, measured(None, None, None, n=0), "no-data"),
        (None, measured(0.9, 0.8, 1.0), "unwatched"),
    ],
)
def test_within_is_said_of_whole_intervals_only(
    threshold: Threshold | None, value: WindowValue, state: str
) -> None:
    assert tile_state(value, threshold, closed=True, firing=False) == state


def test_what_is_rounded_is_not_judged() -> None:
    """0.69996 is shown as 0.7000, and is below 0.7."""
    value = WindowValue(0.8, 200, (0.7, 0.9), unrounded=(0.8, 0.69996, 0.9, None))
    assert tile_state(value, FLOOR, closed=True, firing=False) == "undecided"


def test_a_window_with_too_little_traffic_is_not_judged() -> None:
    value = measured(0.9, 0.8, 1.0)
    assert tile_state(value, FLOOR, closed=False, firing=False) == "too-little-data"
    assert tile_state(value, FLOOR, closed=True, firing=True) == "firing"


def alert(rule: str, state: str, **facts: Any) -> AlertRow:
    return AlertRow(
        app="a", rule=rule, series="", state=state, since=0, seen=0, facts=AlertFacts(**facts)
    )


def window(**metrics: WindowValue) -> LiveWindow:
    return LiveWindow(
        number=1, app="a", build="", index_hash="", question_type="", begins_at="", ends_at="",
        state="closed", samples=200, sample_rate=1.0, metrics=metrics,
    )  # fmt: skip


def tiles(*values: WindowValue, alerts: tuple[AlertRow, ...] = ()) -> list[MetricTile]:
    named = {f"m{place}": value for place, value in enumerate(values)}
    thresholds = {name: Threshold(rule=name, metric=name, below=0.7) for name in named}
    return metric_tiles([window(**named)], thresholds, alerts)


def tone(*values: WindowValue, alerts: tuple[AlertRow, ...] = (), **more: Any) -> str:
    about = {"stale": None, "behind": None, **more}
    return headline(tiles(*values, alerts=alerts), alerts, **about).tone


GOOD, CROSSING = measured(0.9, 0.8, 1.0), measured(0.75, 0.65, 0.85)
BAD, FEW, NONE = measured(0.5, 0.4, 0.6), measured(0.9, 0.5, 1.0, n=3), WindowValue(None, 0, None)


def test_the_first_line_is_green_only_if_something_is_known_to_be_good() -> None:
    assert tone(GOOD) == tone(GOOD, CROSSING) == tone(GOOD, NONE) == "good"
    assert tone(CROSSING) == tone(FEW) == tone(NONE) == tone() == "quiet"
    assert tone(GOOD, BAD) == "warn"
    assert tone(GOOD, alerts=(alert("x", "firing"),)) == "bad"
    assert tone(GOOD, alerts=(alert("x", "no-data", was_firing=True),)) == "bad"
    assert tone(GOOD, alerts=(alert("x", "resolved", was_firing=True),)) == "good"
    assert tone(GOOD, stale="No data") == "quiet"
    assert tone(GOOD, behind="Scoring is behind") == "warn"


def test_a_watched_metric_that_is_missing_has_a_tile() -> None:
    (missing,) = metric_tiles([window()], {"m": FLOOR}, ())
    assert (missing.metric, missing.state) == ("m", "no-data")
    assert metric_tiles([], {"m": FLOOR}, ()) == []


def test_an_alert_marks_the_tile_of_its_metric() -> None:
    (tile,) = tiles(GOOD, alerts=(alert("any-name", "firing", metric="m0"),))
    assert tile.state == "firing"
    (tile,) = tiles(GOOD, alerts=(alert("m0", "firing"),))  # by the name of the rule
    assert tile.state == "firing"


def test_thresholds_are_the_strictest_of_the_app() -> None:
    rules = {
        "one": AlertRule(metric="m", below=0.7),
        "two": AlertRule(metric="m", below=0.8),
        "other app": AlertRule(metric="m", below=0.99, app="b"),
        "late": AlertRule(metric="slow", rise=0.3),
    }
    settings = LiveSettings(alerts=Alerts(defaults=False, rules=rules))
    found = thresholds_of(settings, "a")
    assert {name: rule.below for name, rule in found.items()} == {"m": 0.8}
    known = thresholds_of(settings, "a", [alert("late", "inactive", threshold=130.0)])
    assert known["slow"].above == 130.0
    assert thresholds_of(settings, "b")["m"].below == 0.99


def test_what_is_bad_comes_first_and_what_was_never_measured_apart() -> None:
    rule = {"a": FLOOR, "b": FLOOR, "c": FLOOR, "gone": FLOOR, "drift": CEILING, "never": FLOOR}
    thresholds = {name: replace(one, metric=name) for name, one in rule.items()}
    newest = {
        "a": measured(0.9, 0.8, 1.0), "b": measured(0.5, 0.4, 0.6), "c": measured(0.7, 0.6, 0.8),
        "free": measured(0.9, 0.8, 1.0), "gone": WindowValue(reason="no-citations"),
        "never": WindowValue(reason="one-slot"),
    }  # fmt: skip
    before = {**newest, "gone": measured(1.0, 0.9, 1.0)}
    windows = [window(**newest), window(**before)]
    drift = alert("drift", "inactive", metric="drift", measured=measured(0.02, 0.0, 0.05))
    found = metric_tiles(windows, thresholds, [drift])
    assert [(tile.metric, tile.state) for tile in found] == [
        ("b", "beyond"), ("c", "undecided"), ("a", "within"), ("drift", "within"),
        ("gone", "no-data"), ("never", "no-data"), ("free", "unwatched"),
    ]  # fmt: skip
    assert [tile.metric for tile in found if not tile.was_measured] == ["never"]
    assert {tile.metric: tile.note for tile in found}["never"] == "no question came twice"
