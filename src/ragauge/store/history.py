"""History: a metric in every stored run, and where its values cannot be compared."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec
from msgspec import Struct

from ragauge import registry
from ragauge.errors import RagaugeError
from ragauge.metrics.metric import Better
from ragauge.model.metric_names import current_id
from ragauge.model.run import RunRecord
from ragauge.stats.intervals import Interval

SCHEMA = "ragauge.history/1"


class StoredMetric(Struct, frozen=True, kw_only=True):
    """One metric as the stored scores of a run have it, rounded as everywhere."""

    value: float | None
    n: int
    version: int
    better: Better
    interval: Interval | None = None
    reason: str | None = None


class _Aggregate(Struct, frozen=True, kw_only=True):
    metrics: dict[str, StoredMetric] = {}


_decode = msgspec.json.Decoder(_Aggregate).decode


class Point(Struct, frozen=True, kw_only=True):
    """The metric in one run; `changes` says what is not as in the run before, in words."""

    run: RunRecord
    metric: str
    measured: StoredMetric
    changes: tuple[str, ...] = ()


class Timeline(Struct, frozen=True, kw_only=True):
    """The points from the oldest run to the newest, and the ids of runs that give none."""

    asked: str
    points: tuple[Point, ...]
    without: tuple[str, ...] = ()
    incomplete: tuple[str, ...] = ()
    unreadable: tuple[str, ...] = ()

    def last(self, count: int | None) -> Timeline:
        """The same with the newest points only; what changed before them is still said."""
        points = self.points if count is None else self.points[-count:]
        return msgspec.structs.replace(self, points=points)

    def document(self) -> dict[str, Any]:
        """As plain JSON values."""
        return {
            "schema": SCHEMA,
            "metric": self.asked,
            "points": [_entry(point) for point in self.points],
            "without": list(self.without),
            "incomplete": list(self.incomplete),
            "unreadable": list(self.unreadable),
        }


def _entry(point: Point) -> dict[str, Any]:
    run, measured = point.run, point.measured
    bounds = measured.interval
    return {
        "run_id": run.run_id,
        "created_at": run.created_at,
        "suite": run.suite,
        "profile": run.profile,
        "metric": point.metric,
        "value": measured.value,
        "interval": None if bounds is None else list(bounds),
        "n": measured.n,
        "version": measured.version,
        "better": measured.better,
        "reason": measured.reason,
        "gold_hash": run.gold_hash,
        "commit_hash": run.commit_hash,
        "tags": list(run.tags),
        "changes": list(point.changes),
    }


def measured_in(run: RunRecord) -> dict[str, StoredMetric] | None:
    """The metrics of a run by name, from its stored scores; None if these cannot be read."""
    try:
        measured = _decode(run.aggregate).metrics
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return None
    return {current_id(metric_id): each for metric_id, each in measured.items()}


def timeline(runs: Iterable[RunRecord], metric: str) -> Timeline:
    """Follow a metric, by its id or a short name of the runs' profiles, from run to run."""
    points: list[Point] = []
    excluded: dict[str, list[str]] = {"without": [], "incomplete": [], "unreadable": []}
    profiles: list[str] = []
    for run in runs:
        if run.status != "complete":
            excluded["incomplete"].append(run.run_id)
            continue
        profiles.append(run.profile)
        measured = measured_in(run)
        if measured is None:
            excluded["unreadable"].append(run.run_id)
            continue
        name = _name_in(measured, _meant(metric, run.profile), metric)
        if name is None:
            excluded["without"].append(run.run_id)
            continue
        point = Point(run=run, metric=name, measured=measured[name])
        changes = _changes(points[-1], point) if points else ()
        points.append(msgspec.structs.replace(point, changes=changes))
    if not points:
        _refuse_unknown(metric, profiles)
    run_ids = {reason: tuple(ids) for reason, ids in excluded.items()}
    return Timeline(asked=metric, points=tuple(points), **run_ids)


def _meant(metric: str, profile: str) -> str:
    """What a name means under a profile; a profile that is gone has no short names."""
    stored_profile = registry.profiles().get(profile)
    return current_id(metric) if stored_profile is None else stored_profile.meant(metric)


def _name_in(metrics: Mapping[str, StoredMetric], meant: str, asked: str) -> str | None:
    """The name of the metric among those of a run; without a cut-off, its only one is meant."""
    if meant in metrics:
        return meant
    if "@" in meant:
        return None
    cuts = [name for name in metrics if name.partition("@")[0] == meant]
    if len(cuts) > 1:
        message = f"`{asked}` was measured at several cut-offs"
        raise RagaugeError.of("unknown-metric", message, hint=f"say which one: {', '.join(cuts)}")
    return cuts[0] if cuts else None


def _refuse_unknown(metric: str, profiles: Sequence[str]) -> None:
    """Raise if no profile of the runs, or of all where there are no runs, knows the name."""
    asked = dict.fromkeys(profiles) or registry.profiles()
    meant = {_meant(metric, profile) for profile in asked}
    metrics = registry.metrics()
    if not any(name.partition("@")[0] in metrics for name in meant):
        raise registry.unknown_name("metric", metric, metrics)


def _changes(before: Point, point: Point) -> tuple[str, ...]:
    """Why the values of two runs cannot be compared, in words."""
    changes = []
    if before.metric != point.metric:
        changes.append(f"another metric: {before.metric} → {point.metric}")
    elif before.measured.version != point.measured.version:
        versions = f"version {before.measured.version} → {point.measured.version}"
        changes.append(f"the formula changed: {versions}")
    if before.run.profile != point.run.profile:
        changes.append(f"another profile: {before.run.profile} → {point.run.profile}")
    if before.run.gold_hash != point.run.gold_hash:
        old, new = (one.run.gold_hash[:8] or "unknown" for one in (before, point))
        changes.append(f"the gold set changed: {old} → {new}")
    return tuple(changes)
