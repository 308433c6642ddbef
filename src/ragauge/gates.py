"""Gates: reading demands, and judging scores by them."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from datetime import date
from typing import Any, Literal

import msgspec
from msgspec import Struct

from ragauge import registry
from ragauge.drops import drop_of
from ragauge.errors import CODES, ExitCode, Place, RagaugeError
from ragauge.model.aggregate import Scores, SliceResult
from ragauge.model.metric import Better
from ragauge.model.profile import Profile
from ragauge.model.verdict import ORDER, Block, Gate, GateResult, Status, Verdict, Waiver

_ITEM = re.compile(r"\s*([A-Za-z][\w.@→←×<>]*?)\s*(>=|<=|=)\s*(\S.*?)\s*\Z")
_DEMAND = re.compile(r"\s*(>=|<=)?\s*(\S.*?)\s*\Z")
_SIGN_OF: dict[Better, str] = {"higher": ">=", "lower": "<="}
# 1.96 for the 95 % interval and 0.84 for a power of 80 %.
_DETECTABLE = (1.959963984540054 + 0.8416212335729143) / (2 * 1.959963984540054)


_KEYS = "metric, threshold or max_drop, slice, min_n, review = [lo, hi], policy = point | interval"


class _Table(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    threshold: str | float | None = None
    max_drop: float | None = None
    metric: str | None = None
    slice: str | None = None
    min_n: int = 0
    review: tuple[float, float] | None = None
    policy: Literal["point", "interval"] = "point"


class Tolerance(Struct, frozen=True, kw_only=True):
    """What the caller lets pass that would otherwise make a run not evaluable."""

    missing: bool = False
    errored: bool = False
    skipped: bool = False
    empty: bool = False


def parse_items(text: str, profile: Profile, k: Sequence[int]) -> list[Gate]:
    """Read gates from a command line: `precision=0.80,refusal.over<=0.1`."""
    gates: dict[str, Gate] = {}
    for item in text.split(","):
        match = _ITEM.match(item)
        if match is None:
            raise _bad(item, "write NAME=NUMBER, METRIC>=NUMBER or METRIC<=NUMBER")
        name, sign, given = match.groups()
        demand = given if sign == "=" else f"{sign}{given}"
        built_in = profile.gates.get(name)
        if isinstance(built_in, Mapping):
            # A gate of the profile by its own name: only the number is new.
            key = "max_drop" if "max_drop" in built_in else "threshold"
            table = {**built_in, key: _number(name, given) if key == "max_drop" else demand}
            (gates[name],) = parse_table({name: table}, profile, k, origin="--gates")
        else:
            gates[name] = _gate(name, demand, profile, k, origin="--gates")
    return list(gates.values())


def _number(name: str, given: str) -> float:
    try:
        return float(given)
    except ValueError as error:
        raise _bad(f"{name}={given}", "the threshold must be a number") from error


def parse_table(
    table: Mapping[str, Any], profile: Profile, k: Sequence[int], *, origin: str
) -> list[Gate]:
    """Read gates from a TOML table: a number, a demand, or a table with options."""
    gates = []
    for name, value in table.items():
        if isinstance(value, Mapping):
            gate = _gate_of_table(name, value, profile, k, origin)
        elif isinstance(value, str | int | float) and not isinstance(value, bool):
            gate = _gate(name, str(value), profile, k, origin=origin)
        else:
            raise _bad(f"{name} = {value!r}", 'write a number, ">= 0.80", or a table')
        gates.append(gate)
    return gates


def _gate_of_table(
    name: str, value: Mapping[str, Any], profile: Profile, k: Sequence[int], origin: str
) -> Gate:
    try:
        options = msgspec.convert(value, _Table)
    except msgspec.ValidationError as error:
        raise RagaugeError.of(
            "bad-config", f"gate `{name}` in {origin}: {error}", hint=f"keys: {_KEYS}"
        ) from error
    if (options.threshold is None) == (options.max_drop is None):
        raise RagaugeError.of(
            "bad-config",
            f"gate `{name}` in {origin} needs either threshold or max_drop",
            hint=f"keys: {_KEYS}",
        )
    review = options.review
    if review is not None and review[0] > review[1]:
        raise _bad(f"{name} review = {list(review)}", "write review = [low, high]")
    if options.slice is not None and "=" not in options.slice:
        raise _bad(f"{name} slice = {options.slice}", 'write slice = "type=table"')
    is_drop = options.max_drop is not None
    if is_drop and options.slice is not None:
        raise _bad(f"{name} slice = {options.slice}", "a drop is judged over all questions")
    demand = str(options.max_drop if is_drop else options.threshold)
    gate = _gate(name, demand, profile, k, origin=origin, metric=options.metric, is_drop=is_drop)
    return msgspec.structs.replace(
        gate, min_n=options.min_n, review=review, policy=options.policy, part=options.slice
    )


def merge(*layers: Sequence[Gate]) -> list[Gate]:
    """Put layers of gates together: a later layer replaces the gate on the same metric.

    The later layer's order comes first, then what is left of the earlier ones: a demand that is
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
    demand: str,
    profile: Profile,
    k: Sequence[int],
    *,
    origin: str,
    metric: str | None = None,
    is_drop: bool = False,
) -> Gate:
    try:
        return _read_gate(name, metric or name, demand, profile, k, origin, is_drop=is_drop)
    except RagaugeError as error:
        problem = error.problems[0]
        place = None if origin == "--gates" else Place(origin)
        raise RagaugeError([msgspec.structs.replace(problem, place=place)]) from error


def _read_gate(
    name: str, on: str, demand: str, profile: Profile, k: Sequence[int], origin: str, *,
    is_drop: bool,
) -> Gate:  # fmt: skip
    meant = _meant(on, profile)
    base, at, cut = meant.rpartition("@") if "@" in meant else (meant, "", "")
    if base not in registry.metrics():
        raise registry.unknown_name("metric", on, [*registry.metrics(), *profile.aliases])
    metric = registry.metrics()[base]
    if metric.at_k and not at:
        if len(k) != 1:
            raise _bad(name, f"say the cut-off: {base}@{k[0] if k else 5}")
        cut = str(k[0])
    (selected,) = registry.select([f"{base}@{cut}" if metric.at_k or at else base], k)
    match = _DEMAND.match(demand)
    if match is None:
        raise _bad(f"{name} {demand}", 'write a number or ">= 0.80"')
    sign, given = match.groups()
    right = "<=" if is_drop else _SIGN_OF[metric.better]
    if sign is not None and sign != right:
        raise _bad(f"{name} {sign} {given}", f"{base} is better when {metric.better}: use {right}")
    try:
        threshold = float(given if "_" not in given else "one number")
    except ValueError as error:
        raise _bad(f"{name} {demand}", "the threshold must be a number") from error
    if not math.isfinite(threshold):
        raise _bad(f"{name} {demand}", "the threshold must be a finite number")
    return Gate(
        name=name,
        metric=selected.id,
        better=metric.better,
        threshold=threshold,
        given=given,
        origin=origin,
        title=profile.titles.get(name),
        is_drop=is_drop,
        instead=profile.instead.get(selected.id),
    )


def _meant(name: str, profile: Profile) -> str:
    """The metric that a gate's name means: `recall@5` is the short name `recall@k` at 5."""
    short, at, cut = name.partition("@")
    if name not in profile.aliases and f"{short}@k" in profile.aliases and at:
        return f"{profile.aliases[f'{short}@k']}@{cut}"
    return profile.aliases.get(name, name)


def judge(
    scores: Scores,
    gates: Sequence[Gate],
    *,
    source_rules: bool,
    tolerance: Tolerance = Tolerance(),  # noqa: B008  (frozen)
    waivers: Sequence[Waiver] = (),
    today: date | None = None,
    baseline: Scores | None = None,
) -> Verdict:
    """Judge scores by gates. Pure: the same scores and gates give the same verdict.

    Demands on a drop are judged against the baseline, and are not evaluable without one.

    `source_rules` is for profiles that follow a source: 0/0 takes the source's default, and
    errored traces count as answers.
    """
    _refuse_stray(waivers, gates)
    results = [
        _with_waiver(
            _fallen(scores, gate, baseline) if gate.is_drop else _one(scores, gate), waivers, today
        )
        for gate in gates
    ]
    blocks = _blocks(scores, tolerance, source_rules=source_rules) if gates else []
    blocks += [
        Block(result.code, f"{result.gate.title or result.gate.name}: {result.reason}")
        for result in results
        if result.code is not None and not result.waived
    ]
    if not scores.measured:
        blocks = [Block("nothing-measured", CODES["nothing-measured"].title)]
    worst: Status = max(
        ("pass" if result.waived else result.status for result in results),
        key=ORDER.index,
        default="pass",
    )
    if blocks:
        worst = "not-evaluable"
    codes = {"pass": ExitCode.PASS, "review": ExitCode.PASS, "fail": ExitCode.GATE_FAILED,
             "not-evaluable": ExitCode.NOT_EVALUABLE}  # fmt: skip
    exit_code = codes[worst] if scores.measured else ExitCode.NOTHING_MEASURED
    return Verdict(status=worst, exit_code=exit_code, gates=tuple(results), blocks=tuple(blocks))


def _fallen(scores: Scores, gate: Gate, baseline: Scores | None) -> GateResult:
    """Judge a demand on how much worse a metric is than in the baseline."""
    drop = drop_of(gate.metric, gate.better, scores, baseline)
    if drop.value is None:
        return _undefined(gate, drop.n, drop.code or "incomparable", drop.reason)
    if drop.n < gate.min_n:
        return _undefined(gate, drop.n, "too-few", f"n = {drop.n} is below min_n = {gate.min_n}")
    result = _judged(gate, drop.value, drop.n, drop.interval, "lower")
    reason = drop.reason if result.reason is None else f"{drop.reason}; {result.reason}"
    return msgspec.structs.replace(result, reason=reason)


def _one(scores: Scores, gate: Gate) -> GateResult:
    name = gate.metric
    if gate.instead is not None and not scores.cites:
        name = gate.instead
    if gate.part is not None and name in scores.metrics:
        part = _part(scores, gate.part)
        result = None if part is None else part.metrics.get(name)
        if part is None or result is None or result.value is None:
            n = 0 if part is None else part.n
            why = f"{gate.part} has {n} questions, too few for a value"
            return _undefined(gate, n, "too-few", why)
    else:
        result = scores.metrics.get(name)
    if result is None:
        return _undefined(gate, 0, "undefined-metric", f"{name} is not in these scores")
    value = result.shown
    if value is None:
        why = f"0/0: {result.left_out or result.reason}"
        return _undefined(gate, result.n, "undefined-metric", why)
    if result.n < gate.min_n:
        why = f"n = {result.n} is below min_n = {gate.min_n}"
        return _undefined(gate, result.n, "too-few", why)
    if name.startswith("semantic.") and len(scores.embedders) > 1:
        return _undefined(gate, result.n, "mixed-embedders", CODES["mixed-embedders"].title)
    judged = _judged(gate, value, result.n, result.interval, gate.better)
    if result.value is None:
        told = f"0/0 ({result.left_out or result.reason}): the source counts it as {value:g}"
        judged = msgspec.structs.replace(judged, reason=told)
    if name != gate.metric:
        told = f"no answer cites anything: judged by {name}"
        judged = msgspec.structs.replace(
            judged, reason=told if judged.reason is None else f"{told}; {judged.reason}"
        )
    return judged


def _part(scores: Scores, name: str) -> SliceResult | None:
    dimension, _, value = name.partition("=")
    return scores.slices.get(dimension, {}).get(value)


def _judged(
    gate: Gate, value: float, n: int, interval: tuple[float, float] | None, better: Better
) -> GateResult:
    """Compare a value with the threshold, by the point or by the bound on the wrong side."""
    deciding = value
    if gate.policy == "interval":
        if interval is None:
            return _undefined(gate, n, "undefined-metric", "no interval to judge by")
        deciding = interval[0] if better == "higher" else interval[1]
    margin = deciding - gate.threshold if better == "higher" else gate.threshold - deciding
    # A difference of two means may be off by its last bit; nothing else is.
    slack = 1e-12 if gate.is_drop else 0.0
    met = margin >= -slack if gate.is_drop else _holds(deciding, gate.threshold, better)
    status: Status = "pass" if met else "fail"
    reason = None
    if gate.policy == "interval":
        side = "lower" if better == "higher" else "upper"
        reason = f"judged by the {side} bound {deciding:.4f}"
    if gate.review is not None and gate.review[0] <= deciding <= gate.review[1]:
        status = "review"
        reason = f"in the review band {gate.review[0]:g} to {gate.review[1]:g}"
    return GateResult(
        gate=gate, status=status, value=value, n=n, margin=margin, interval=interval,
        detectable=_detectable(interval), reason=reason,
    )  # fmt: skip


def _holds(value: float, threshold: float, better: Better) -> bool:
    """Compare the values themselves: a margin of -1e-17 may only be rounding."""
    return value >= threshold if better == "higher" else value <= threshold


def _detectable(interval: tuple[float, float] | None) -> float | None:
    return None if interval is None else (interval[1] - interval[0]) * _DETECTABLE


def _undefined(gate: Gate, n: int, code: str, reason: str) -> GateResult:
    return GateResult(
        gate=gate, status="not-evaluable", value=None, n=n, margin=None, interval=None,
        detectable=None, reason=reason, code=code,
    )  # fmt: skip


def _refuse_stray(waivers: Sequence[Waiver], gates: Sequence[Gate]) -> None:
    known = {name for gate in gates for name in (gate.name, gate.metric)}
    for waiver in waivers:
        if waiver.gate not in known:
            raise RagaugeError.of(
                "bad-config",
                f"a waiver names `{waiver.gate}`, and there is no such gate",
                hint=f"gates: {', '.join(gate.name for gate in gates) or 'none'}",
            )


def _with_waiver(result: GateResult, waivers: Sequence[Waiver], today: date | None) -> GateResult:
    mine = [each for each in waivers if each.gate in (result.gate.name, result.gate.metric)]
    if result.status in ("pass", "review") or not mine:
        return result
    last = max(mine, key=lambda each: each.expires)
    if today is not None and today <= last.expires:
        note = f"waived until {last.expires}: {last.reason}"
        return msgspec.structs.replace(result, waived=note)
    note = f"the waiver expired on {last.expires}"
    reason = note if result.reason is None else f"{result.reason}; {note}"
    return msgspec.structs.replace(result, reason=reason)


def _blocks(scores: Scores, tolerance: Tolerance, *, source_rules: bool) -> list[Block]:
    tally = scores.tally
    blocks = []
    if tally.missing and not tolerance.missing:
        verb = "has" if tally.missing == 1 else "have"
        blocks.append(
            Block("missing-traces", f"{tally.missing} of {tally.gold} gold items {verb} no trace")
        )
    if tally.errored and not source_rules and not tolerance.errored:
        noun = "trace carries" if tally.errored == 1 else "traces carry"
        blocks.append(Block("errored-traces", f"{tally.errored} {noun} an error"))
    skipped = tally.gold_skipped + tally.trace_skipped
    if skipped and not tolerance.skipped:
        noun = "line was" if skipped == 1 else "lines were"
        blocks.append(Block("skipped-lines", f"{skipped} bad {noun} skipped"))
    if source_rules and not tally.answered and not tally.answerable and not tolerance.empty:
        blocks.append(Block("nothing-answered", CODES["nothing-answered"].title))
    return blocks
