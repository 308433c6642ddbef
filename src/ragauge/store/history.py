"""History: a metric in every stored run, where its values cannot be compared, and what is noise."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import date
from fnmatch import fnmatchcase
from typing import Any

import msgspec
from msgspec import Struct

from ragauge import registry
from ragauge.errors import RagaugeError
from ragauge.metrics.metric import Better
from ragauge.model.metric_names import current_id
from ragauge.model.run import RunRecord, Store
from ragauge.model.verdict import Gate
from ragauge.stats.intervals import Interval
from ragauge.stats.series import (
    ChangeTest,
    NewestTest,
    TrendTest,
    change_test,
    newest_test,
    trend_test,
)
from ragauge.store.packed_slices import UNREADABLE_SLICES, unpack_slices

SCHEMA = "ragauge.history/1"


class StoredMetric(Struct, frozen=True, kw_only=True):
    """One metric as the stored scores of a run have it, rounded as everywhere.

    `unrounded` begins with the value as it was measured, by which gates decide.
    """

    value: float | None
    n: int
    version: int
    better: Better
    interval: Interval | None = None
    reason: str | None = None
    unrounded: tuple[float | None, ...] = ()


class _Aggregate(Struct, frozen=True, kw_only=True):
    metrics: dict[str, StoredMetric] = {}


class _SliceMetric(Struct, frozen=True, kw_only=True):
    value: float | None
    n: int
    interval: Interval | None = None
    unrounded: tuple[float | None, ...] = ()


class _Part(Struct, frozen=True, kw_only=True):
    metrics: dict[str, _SliceMetric] = {}


_decode = msgspec.json.Decoder(_Aggregate).decode
_decode_slices = msgspec.json.Decoder(dict[str, dict[str, _Part]]).decode


class Point(Struct, frozen=True, kw_only=True):
    """The metric in one run; `changes` says what is not as in the run before, in words."""

    run: RunRecord
    metric: str
    measured: StoredMetric
    changes: tuple[str, ...] = ()


class SeriesTests(Struct, frozen=True, kw_only=True):
    """What the newest comparable values say: whether they moved by more than their noise.

    `changed_at` is the run with which the level changed.
    """

    newest: NewestTest
    trend: TrendTest
    change: ChangeTest
    changed_at: str | None = None


class Timeline(Struct, frozen=True, kw_only=True):
    """The points from the oldest run to the newest, and the ids of runs that give none.

    `part` is the slice, as `type=table`; `gates` are those on the metric over the same questions.
    """

    asked: str
    points: tuple[Point, ...]
    part: str | None = None
    gates: tuple[Gate, ...] = ()
    without: tuple[str, ...] = ()
    incomplete: tuple[str, ...] = ()
    unreadable: tuple[str, ...] = ()

    def last(self, count: int | None) -> Timeline:
        """The same with the newest points only; what changed before them is still said."""
        points = self.points if count is None else self.points[-count:]
        return msgspec.structs.replace(self, points=points)

    def comparable(self) -> tuple[Point, ...]:
        """The newest points with a value, back to the last change that parts them from others."""
        changed = [place for place, point in enumerate(self.points) if point.changes]
        points = self.points[changed[-1] :] if changed else self.points
        return tuple(point for point in points if point.measured.value is not None)

    def tests(self, last: int) -> SeriesTests | None:
        """Test the newest value against at most `last` before it, and all of them for changes."""
        points = self.comparable()[-1 - last :]
        values = [point.measured.value for point in points if point.measured.value is not None]
        if not values:
            return None
        change = change_test(values)
        return SeriesTests(
            newest=newest_test(values, points[-1].measured.better, last=last),
            trend=trend_test(values),
            change=change,
            changed_at=None if change.place is None else points[change.place].run.run_id,
        )

    def passes(self, point: Point) -> bool | None:
        """Whether a value is on the right side of every gate on its level; None without gates."""
        value = point.measured.value
        if point.measured.unrounded and point.measured.unrounded[0] is not None:
            value = point.measured.unrounded[0]
        levels = [gate for gate in self.gates if not gate.is_drop and gate.metric == point.metric]
        if value is None or not levels:
            return None
        return all(
            value >= gate.threshold if gate.better == "higher" else value <= gate.threshold
            for gate in levels
        )

    def document(self, last: int = 20) -> dict[str, Any]:
        """As plain JSON values."""
        return {
            "schema": SCHEMA,
            "metric": self.asked,
            "slice": self.part,
            "gates": [
                {
                    "name": gate.name,
                    "drop": gate.is_drop,
                    "threshold": gate.threshold,
                    "sign": gate.sign,
                    "origin": gate.origin,
                }
                for gate in self.gates
            ],
            "tests": msgspec.to_builtins(self.tests(last)),
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
        "branch": run.branch,
        "author": run.author,
        "dirty": run.dirty,
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


def choose_runs(
    runs: Iterable[RunRecord],
    *,
    profile: str | None = None,
    tags: Sequence[str] = (),
    branches: Sequence[str] = (),
    since: date | None = None,
    until: date | None = None,
) -> list[RunRecord]:
    """Those runs that fit all that is asked for; of tags and branches, any of several patterns.

    A tag names one run, so a series of them has a pattern: `nightly-*`. Both days are included.
    """
    return [
        run
        for run in runs
        if profile in (None, run.profile)
        and (not tags or any(fnmatchcase(tag, name) for tag in run.tags for name in tags))
        and (not branches or any(fnmatchcase(run.branch or "", name) for name in branches))
        and (since is None or run.created_at[:10] >= since.isoformat())
        and (until is None or "" < run.created_at[:10] <= until.isoformat())
    ]


def measured_in_slice(store: Store, run: RunRecord, part: str) -> dict[str, StoredMetric] | None:
    """The metrics of one part of a slice, as `type=table`, from the last scoring of a run.

    None if they cannot be read; no metric where the run has no such part, or too few questions in
    it.
    """
    measured = measured_in(run)
    scorings = store.scorings(run.run_id)
    if measured is None or not scorings:
        return measured
    dimension, _, name = part.partition("=")
    try:
        slices = _decode_slices(unpack_slices(scorings[-1].slices))
    except (msgspec.ValidationError, *UNREADABLE_SLICES):
        return None
    of_part = slices.get(dimension, {}).get(name, _Part()).metrics
    return {
        metric_id: msgspec.structs.replace(
            measured[metric_id],
            value=result.value,
            n=result.n,
            interval=result.interval,
            unrounded=result.unrounded,
            reason=None,
        )
        for old_id, result in of_part.items()
        if (metric_id := current_id(old_id)) in measured
    }


def timeline(
    runs: Iterable[RunRecord],
    metric: str,
    *,
    part: str | None = None,
    measure: Callable[[RunRecord], dict[str, StoredMetric] | None] | None = None,
) -> Timeline:
    """Follow a metric, by its id or a short name of the runs' profiles, from run to run.

    `measure` says what was measured in a run, where it is not all questions: in a slice, `part`.
    """
    measure = measure or measured_in
    points: list[Point] = []
    excluded: dict[str, list[str]] = {"without": [], "incomplete": [], "unreadable": []}
    profiles: list[str] = []
    for run in runs:
        if run.status != "complete":
            excluded["incomplete"].append(run.run_id)
            continue
        profiles.append(run.profile)
        measured = measure(run)
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
    return Timeline(
        asked=metric,
        points=tuple(points),
        part=part,
        without=tuple(excluded["without"]),
        incomplete=tuple(excluded["incomplete"]),
        unreadable=tuple(excluded["unreadable"]),
    )


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
