"""What the overview says of a metric: its last value, and whether that is known to be good.

A metric is within its threshold only if its whole interval is on the good side. What was not
measured is never green.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal

from msgspec import Struct

from ragauge.live.alert_rules import rules_of
from ragauge.live.dashboard.queries import AlertRow, LiveWindow, WindowValue
from ragauge.live.settings import LiveSettings
from ragauge.model.metric_names import metric_label

TileState = Literal[
    "within", "undecided", "beyond", "firing", "too-little-data", "no-data", "unwatched"
]
LEAST_N = 20
"""Below it a 95 % interval of a rate is some 0.4 wide: the tile says so instead of a colour."""
TONES: dict[TileState, str] = {
    "within": "good", "undecided": "warn", "beyond": "bad", "firing": "bad",
    "too-little-data": "quiet", "no-data": "quiet", "unwatched": "quiet",
}  # fmt: skip
WORDS: dict[TileState, str] = {  # of the threshold
    "within": "within",
    "undecided": "undecided",
    "beyond": "beyond",
    "firing": "firing",
    "too-little-data": "too little data",
    "no-data": "no data",
    "unwatched": "no threshold",
}
ALERT_TONES = {
    "firing": "bad", "pending": "warn", "resolved": "good", "inactive": "quiet",
    "no-data": "quiet", "too-little-data": "quiet",
}  # fmt: skip


class Threshold(Struct, frozen=True, kw_only=True):
    """What a rule asks of a metric: not below a number, or below one.

    `least` is the n from which it is judged at all.
    """

    rule: str
    metric: str
    below: float | None = None
    above: float | None = None
    by_point: bool = False
    least: int = LEAST_N

    @property
    def text(self) -> str:
        """The good side, as a tile has it."""
        parts = [] if self.below is None else [f"≥ {self.below:g}"]
        return ", ".join([*parts, *([] if self.above is None else [f"< {self.above:.4g}"])])

    @property
    def edges(self) -> list[float]:
        """Its numbers."""
        return [number for number in (self.below, self.above) if number is not None]

    def judge(self, value: float, interval: tuple[float | None, float | None] | None) -> TileState:
        """Whether a value with its interval is on the good side, on the bad one, or on both."""
        if self.by_point:
            low = high = value
        elif interval is None:
            return "undecided"
        else:
            low = float("-inf") if interval[0] is None else interval[0]
            high = float("inf") if interval[1] is None else interval[1]
        if (self.below is not None and high < self.below) or (
            self.above is not None and low >= self.above
        ):
            return "beyond"
        if (self.below is not None and low < self.below) or (
            self.above is not None and high >= self.above
        ):
            return "undecided"
        return "within"


def thresholds_of(
    settings: LiveSettings, app: str, alerts: Sequence[AlertRow] = ()
) -> dict[str, Threshold]:
    """The thresholds of an app by metric; of several rules for one metric the strictest.

    A rule on a rise has the number that the evaluator last computed from earlier windows.
    """
    rises = {alert.rule: alert.facts.threshold for alert in alerts if not alert.series}
    thresholds: dict[str, Threshold] = {}
    for name, rule in rules_of(settings.alerts).items():
        above = rule.above if rule.rise is None else rises.get(name)
        if rule.app not in (None, app) or (rule.below is None and above is None):
            continue
        own = Threshold(
            rule=name, metric=rule.metric, below=rule.below, above=above,
            by_point=rule.policy == "point", least=rule.least,
        )  # fmt: skip
        other = thresholds.get(rule.metric)
        thresholds[rule.metric] = own if other is None else _strictest(other, own)
    return thresholds


def _strictest(one: Threshold, two: Threshold) -> Threshold:
    below = [number for number in (one.below, two.below) if number is not None]
    above = [number for number in (one.above, two.above) if number is not None]
    return Threshold(
        rule=one.rule,
        metric=one.metric,
        below=max(below, default=None),
        above=min(above, default=None),
        by_point=one.by_point and two.by_point,
        least=max(one.least, two.least),
    )


_ORDER: tuple[TileState, ...] = (
    "firing", "beyond", "undecided", "within", "too-little-data", "no-data", "unwatched",
)  # fmt: skip
"""What somebody should look at first comes first."""

REASONS = {
    "no-answer": "no trace has an answer",
    "no-citations": "no answer cites anything",
    "no-common-hits": "no question came twice",
    "no-delta-s": "traces record no ΔS",
    "no-evidence": "no gold question with evidence came",
    "no-manifest": "no corpus is named in [live]",
    "no-time": "traces record no time",
    "one-slot": "no question came twice",
    "refused": "every answer refuses",
    "unlabelled": "no question of the gold set came",
}
"""Why a metric has no value, as a person says it."""


class MetricTile(Struct, frozen=True, kw_only=True):
    """One metric of the last window."""

    metric: str
    state: TileState
    measured: WindowValue
    threshold: Threshold | None
    note: str = ""
    history: tuple[float | None, ...] = ()

    @property
    def tone(self) -> str:
        """The tone of its colour."""
        return TONES[self.state]

    @property
    def word(self) -> str:
        """Its state in words."""
        return WORDS[self.state]

    @property
    def was_measured(self) -> bool:
        """Whether this window or an earlier one has a value: that it is gone must be seen."""
        return self.measured.value is not None or any(one is not None for one in self.history)


def tile_state(
    measured: WindowValue, threshold: Threshold | None, *, closed: bool, firing: bool
) -> TileState:
    """The state of one metric: an alert that fires says more than the last window."""
    if firing:
        return "firing"
    value = measured.exact_value
    if value is None or not measured.n:
        return "no-data"
    least = LEAST_N if threshold is None else threshold.least
    if not closed or measured.n < least:
        return "too-little-data"
    return "unwatched" if threshold is None else threshold.judge(value, measured.exact_interval)


def metric_tiles(
    windows: Sequence[LiveWindow],
    thresholds: Mapping[str, Threshold],
    alerts: Sequence[AlertRow],
) -> list[MetricTile]:
    """The tiles of an app: what is bad first, each with what it was in earlier windows.

    `windows` come with the newest first. A metric that is watched and was never measured has a tile
    too: that it is missing must be seen.
    """
    if not windows:
        return []
    newest = windows[0]
    fired = {
        metric
        for alert in alerts
        if alert.is_unresolved and (metric := alert_metric(alert, thresholds)) is not None
    }
    measured = {name: value for name, value in newest.metrics.items() if value.n or value.reason}
    names = [*(name for name in thresholds if name not in measured), *measured]
    tiles = []
    # What an evaluator measures itself, as the drift of documents, is in no window.
    by_alert = {alert.facts.metric: alert.facts.measured for alert in alerts if not alert.series}
    for name in names:
        value = newest.metrics.get(name) or by_alert.get(name, WindowValue())
        threshold = thresholds.get(name)
        state = tile_state(value, threshold, closed=newest.is_closed, firing=name in fired)
        history = tuple(
            found.value if (found := window.metrics.get(name)) is not None else None
            for window in reversed(windows)
        )
        note = REASONS.get(value.reason or "", value.reason or "")
        if state == "undecided":
            note = "no interval" if value.interval is None else "the interval crosses the threshold"
        tiles.append(
            MetricTile(
                metric=name, state=state, measured=value, threshold=threshold, note=note,
                history=history,
            )
        )  # fmt: skip
    return sorted(
        tiles, key=lambda tile: (tile.threshold is None, _ORDER.index(tile.state), tile.metric)
    )


def alert_metric(alert: AlertRow, thresholds: Mapping[str, Threshold]) -> str | None:
    """The metric that an alert is about."""
    if alert.facts.metric:
        return alert.facts.metric
    return next((name for name, rule in thresholds.items() if rule.rule == alert.rule), None)


class StatusLine(Struct, frozen=True):
    """The line above everything: a tone, what is so, and what there is to know beside it."""

    tone: str
    text: str
    below: str = ""


def headline(
    tiles: Sequence[MetricTile],
    alerts: Sequence[AlertRow],
    *,
    stale: str | None,
    behind: str | None,
    troubles: Sequence[str] = (),
) -> StatusLine:
    """Green only if all was measured, it is current, and nothing fires or is beyond.

    `stale` says since when nothing came; `behind` that scoring does not keep up; `troubles` why
    some of what came is in no number.
    """
    firing = [alert for alert in alerts if alert.is_unresolved]
    counts = {state: sum(tile.state == state for tile in tiles) for state in TONES}
    summary = ", ".join(
        f"{count} {WORDS[state]}" for state, count in counts.items() if count and state != "firing"
    )
    if firing:
        names = ", ".join(dict.fromkeys(alert.rule for alert in firing))
        plural = "alert is" if len(firing) == 1 else "alerts are"
        return StatusLine("bad", f"{len(firing)} {plural} firing: {names}", summary)
    if troubles:
        return StatusLine("bad", "Some of what came is in no number below", summary)
    if stale is not None:
        return StatusLine("quiet", stale, summary)
    if behind is not None:
        return StatusLine("warn", behind, summary)
    beyond = [tile for tile in tiles if tile.state == "beyond"]
    if beyond:
        names = ", ".join(metric_label(tile.metric) for tile in beyond)
        plural = "metric is" if len(beyond) == 1 else "metrics are"
        text = f"{len(beyond)} {plural} beyond the threshold, nothing fires yet: {names}"
        return StatusLine("warn", text, summary)
    if not any(tile.state in ("within", "undecided", "unwatched") for tile in tiles):
        return StatusLine("quiet", "Too little was measured to say anything", summary)
    if not counts["within"]:
        return StatusLine("quiet", "Nothing is firing, and nothing is known to be good", summary)
    if counts["undecided"]:
        text = "Nothing is firing; what is known is within its threshold"
        return StatusLine("good", text, summary)
    return StatusLine("good", "Nothing is firing; all is within its threshold", summary)
