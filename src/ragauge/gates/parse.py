"""Parse gates: from command lines, tables and profiles to `Gate` values."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, Any, Literal, get_args

import msgspec
from msgspec import Meta, Struct
from msgspec.structs import replace

from ragauge import registry
from ragauge.errors import Place, RagaugeError
from ragauge.gates.bands import limit_text, zone_limit
from ragauge.metrics.metric import Better, Metric
from ragauge.model.metric_names import JOINED_IDS, metric_label
from ragauge.model.profile import Profile
from ragauge.model.semantic import Zone
from ragauge.model.verdict import Gate
from ragauge.stats.error_rates import Policy

# Names may hold the signs of λ, as old ids do; `<>` only as one, or `lambda_<>=0.5` would be torn.
_ITEM = re.compile(r"([A-Za-z](?:[\w.@→←×]|<>)*)\s*(>=|<=|=)\s*(\S.*)\Z")
_LIMIT = re.compile(r"(>=|<=)?\s*(\S.*)\Z")
_SIGN_OF: dict[Better, str] = {"higher": ">=", "lower": "<="}
_KEYS = (
    "metric, threshold, zone or max_drop, slice, min_n, review = [lo, hi], "
    "policy = point | confident-pass | confident-fail"
)
FEWEST = 5
"""Questions below which a gate is not evaluable, unless it says otherwise itself."""


class _GateTable(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    threshold: str | float | None = None
    zone: Zone | None = None
    max_drop: float | None = None
    metric: str | None = None
    slice: str | None = None
    min_n: Annotated[int, Meta(ge=1)] | None = None
    review: tuple[float, float] | None = None
    policy: Policy | Literal["interval"] = "point"


def parse_items(text: str, profile: Profile, k: Sequence[int]) -> list[Gate]:
    """Read gates from a command line: `precision=0.80,refusal.over<=0.1`."""
    gates: list[Gate] = []
    for item in text.split(","):
        match = _ITEM.match(item.strip())
        if match is None:
            raise _bad(item, "write NAME=NUMBER, METRIC>=NUMBER or METRIC<=NUMBER")
        name, sign, number = match.groups()
        limit = number if sign == "=" else f"{sign}{number}"
        built_in = profile.gates.get(name)
        if isinstance(built_in, Mapping):
            # A gate of the profile by its own name: only the number is new.
            key = "max_drop" if "max_drop" in built_in else "threshold"
            if key == "max_drop" and sign == ">=":
                raise _bad(item, "a drop has a limit: use = or <=")
            kept = {option: value for option, value in built_in.items() if option != "zone"}
            table = {**kept, key: _number(item, number) if key == "max_drop" else limit}
            (gate,) = parse_table({name: table}, profile, k, origin="--gates")
        else:
            gate = _gate(name, limit, profile, k, "--gates")
        same = next((other for other in gates if other.key == gate.key), None)
        if same is not None:
            hint = f"`{same.name}` already has a threshold: write one, the stricter of the two"
            raise _bad(f"{item.strip()}, which is a second one on {gate.metric}", hint)
        gates.append(gate)
    return gates


def _number(item: str, text: str) -> float:
    try:
        if "_" in text:  # Python reads 1_000, and nobody who writes a gate means it
            raise ValueError(text)
        number = float(text)
    except ValueError as error:
        raise _bad(item, "the threshold must be a number") from error
    if not math.isfinite(number):
        raise _bad(item, "the threshold must be a finite number")
    return number


def parse_table(
    table: Mapping[str, Any],
    profile: Profile,
    k: Sequence[int],
    *,
    origin: str,
    place_of: Callable[[str], Place] | None = None,
) -> list[Gate]:
    """Read gates from a TOML table: a number, a number with its sign, or a table with options.

    `place_of` says where a gate stands; without it errors name the origin alone.
    """
    gates = []
    for name, value in table.items():
        try:
            if isinstance(value, Mapping):
                options = _options(name, value, origin)
                limits = (options.threshold, options.zone, options.max_drop)
                limit = str(next(value for value in limits if value is not None))
                gates.append(_gate(name, limit, profile, k, origin, options))
            elif isinstance(value, str | int | float) and not isinstance(value, bool):
                gates.append(_gate(name, str(value), profile, k, origin))
            else:
                raise _bad(f"{name} = {value!r}", 'write a number, ">= 0.80", or a table')
        except RagaugeError as error:
            place = None if origin == "--gates" else Place(origin)  # a command line is none
            if place_of is not None:
                place = place_of(name)
            elif error.code == "bad-config":  # it says by itself where the gate was set
                raise
            raise RagaugeError([replace(error.problems[0], place=place)]) from error
    return gates


def _options(name: str, value: Mapping[str, Any], origin: str) -> _GateTable:
    try:
        options = msgspec.convert(value, _GateTable)
    except msgspec.ValidationError as error:
        raise RagaugeError.of(
            "bad-config", f"gate `{name}` in {origin}: {error}", hint=f"keys: {_KEYS}"
        ) from error
    limits = (options.threshold, options.zone, options.max_drop)
    if sum(value is not None for value in limits) != 1:
        raise RagaugeError.of(
            "bad-config",
            f"gate `{name}` in {origin} needs one of threshold, zone and max_drop",
            hint=f"keys: {_KEYS}",
        )
    review, part = options.review, options.slice
    if review is not None and review[0] > review[1]:
        raise _bad(f"{name} review = {list(review)}", "write review = [low, high]")
    if part is not None and "=" not in part:
        raise _bad(f"{name} slice = {part}", 'write slice = "type=table"')
    return options


def merge(*layers: Sequence[Gate]) -> list[Gate]:
    """Put layers of gates together: a later layer replaces the gate on the same metric.

    The later layer's order comes first, then what is left of the earlier ones: a gate that is
    not repeated stays in force.
    """
    merged: list[Gate] = []
    for layer in layers:
        replaced = {gate.key for gate in layer}
        merged = [*layer, *(gate for gate in merged if gate.key not in replaced)]
    return merged


def _bad(item: str, hint: str) -> RagaugeError:
    return RagaugeError.of("bad-gate", f"cannot read the gate `{item.strip()}`", hint=hint)


def _gate(
    name: str,
    limit: str,
    profile: Profile,
    k: Sequence[int],
    origin: str,
    options: _GateTable = _GateTable(),  # noqa: B008  (frozen)
) -> Gate:
    on, part, is_drop = options.metric or name, options.slice, options.max_drop is not None
    if part is not None and part.startswith("lang="):  # as the field of gold items is spelled
        part = f"language={part.removeprefix('lang=')}"
    meant = profile.meant(on)
    base, at, cut = meant.rpartition("@") if "@" in meant else (meant, "", "")
    if base not in registry.metrics():
        raise registry.unknown_name("metric", on, [*registry.metrics(), *profile.aliases])
    metric = registry.metrics()[base]
    if metric.at_k and not at:
        if len(k) != 1:
            raise _bad(name, f"say the cut-off: {base}@{k[0] if k else 5}")
        cut = str(k[0])
    (selected,) = registry.select([f"{base}@{cut}" if metric.at_k or at else base], k)
    match = _LIMIT.match(limit.strip())
    if match is None:
        raise _bad(f"{name} {limit}", 'write a number or ">= 0.80"')
    sign, number = match.groups()
    zone = _zone(name, number, selected.id)
    if zone is not None:
        number = limit_text(zone_limit(zone, selected.id))
    # A name that somebody chose for the gate stays; that of its metric gives way to the label.
    own_title = _title(selected.id, is_drop=is_drop, part=part) if on == name else None
    right = "<=" if is_drop else _SIGN_OF[metric.better]
    if sign is not None and sign != right:
        raise _bad(f"{name} {sign} {number}", f"{base} is better when {metric.better}: use {right}")
    threshold = _number(f"{name} {limit}", number)
    for edge in (threshold, *(options.review or ())):
        _refuse_outside(f"{name} {limit}", edge, metric, is_drop=is_drop)
    return Gate(
        name=name,
        metric=selected.id,
        better=metric.better,
        threshold=threshold,
        given=number,
        origin=origin,
        title=profile.titles.get(name) or own_title,
        is_drop=is_drop,
        part=part,
        instead=profile.instead.get(selected.id),
        deprecated=on if profile.is_deprecated(on) else None,
        joined_id=on if on in JOINED_IDS else None,
        min_n=_least(meant, profile, options) if options.min_n is None else options.min_n,
        review=options.review,
        policy="confident-pass" if options.policy == "interval" else options.policy,
        zone=zone,
    )


def _refuse_outside(item: str, edge: float, metric: Metric, *, is_drop: bool) -> None:
    """Refuse a threshold that no value of the metric can be on both sides of.

    `max_drop = 2` or `<= 5` on a rate would pass whatever the system does.
    """
    low, high = metric.range
    if is_drop:
        low, high = low - high, high - low
    if low <= edge <= high or (metric.sums and edge >= low):
        return
    hint = f"{metric.id} is in {low:g} to {high:g}"
    if is_drop:
        hint = f"{metric.id} cannot drop by more than {high:g}"
    if metric.range == (0.0, 1.0) and 1 < abs(edge) <= 100:
        hint += f"; write {edge / 100:g} for {edge:g} %"
    message = f"the gate `{item.strip()}`: {edge:g} is outside the range of {metric.id}"
    raise RagaugeError.of("bad-gate", message, hint=hint)


def _least(meant: str, profile: Profile, options: _GateTable) -> int:
    """The fewest questions of a gate that does not say so itself.

    The gates of a profile, with whatever number, keep the verdict of their source, and what a run
    counts of itself is no sample.
    """
    is_drop = options.max_drop is not None
    built_in = (
        (profile.meant(limit.get("metric", name)), "max_drop" in limit)
        if isinstance(limit, Mapping)
        else (profile.meant(name), False)
        for name, limit in profile.gates.items()
    )
    source = options.slice is None and (meant, is_drop) in built_in
    return 0 if source or meant.startswith("run.") else FEWEST


def _zone(name: str, limit: str, metric_id: str) -> Zone | None:
    """The zone of ΔS that a limit names, if it is no number."""
    zone = next((zone for zone in get_args(Zone) if zone == limit), None)
    if zone is not None and not metric_id.startswith("semantic."):
        raise _bad(f"{name} = {limit}", "zones are of ΔS: write a number for other metrics")
    return zone


def _title(metric_id: str, *, is_drop: bool, part: str | None) -> str | None:
    """The label of a gate's metric, with what the gate is on; None where the name will do."""
    label = metric_label(metric_id)
    if label == metric_id:
        return None
    return f"{label}{' drop' if is_drop else ''}{f', {part}' if part is not None else ''}"


def profile_gates(profile: Profile, k: Sequence[int]) -> list[Gate]:
    """The gates that are built into a profile."""
    return parse_table(profile.gates, profile, k, origin=f"profile {profile.name}")


def deprecation_notes(gates: Sequence[Gate], profile: Profile) -> list[str]:
    """What to say of gates that a user wrote with a short name that surprises.

    The profile's own gates are not told: nobody wrote them, and sources print these names.
    """
    return [
        f"the short name `{gate.deprecated}` in {gate.origin} is deprecated, because it surprises: "
        f"in profile {profile.name} it means `{gate.metric}`; write that id"
        for gate in gates
        if gate.deprecated is not None and not gate.origin.startswith("profile ")
    ]
