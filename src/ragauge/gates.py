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
from ragauge.errors import CODES, ExitCode, Place, RagaugeError
from ragauge.model.aggregate import MetricResult, Scores
from ragauge.model.metric import Better
from ragauge.model.profile import Profile
from ragauge.model.verdict import ORDER, Block, Gate, GateResult, Status, Verdict, Waiver

_ITEM = re.compile(r"\s*([A-Za-z][\w.@]*)\s*(>=|<=|=)\s*(\S.*?)\s*\Z")
_DEMAND = re.compile(r"\s*(>=|<=)?\s*(\S.*?)\s*\Z")
_SIGN_OF: dict[Better, str] = {"higher": ">=", "lower": "<="}
# 1.96 for the 95 % interval and 0.84 for a power of 80 %.
_DETECTABLE = (1.959963984540054 + 0.8416212335729143) / (2 * 1.959963984540054)


class _Table(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    threshold: str | float
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
        gates[name] = _gate(name, demand, profile, k, origin="--gates")
    return list(gates.values())


def parse_table(
    table: Mapping[str, Any], profile: Profile, k: Sequence[int], *, origin: str
) -> list[Gate]:
    """Read gates from a TOML table: a number, a demand, or a table with options."""
    gates = []
    for name, value in table.items():
        if isinstance(value, Mapping):
            try:
                options = msgspec.convert(value, _Table)
            except msgspec.ValidationError as error:
                raise RagaugeError.of(
                    "bad-config",
                    f"gate `{name}` in {origin}: {error}",
                    hint="keys: threshold, min_n, review = [lo, hi], policy = point | interval",
                ) from error
            gate = _gate(name, str(options.threshold), profile, k, origin=origin)
            review = options.review
            if review is not None and review[0] > review[1]:
                raise _bad(f"{name} review = {list(review)}", "write review = [low, high]")
            gate = msgspec.structs.replace(
                gate, min_n=options.min_n, review=review, policy=options.policy
            )
        elif isinstance(value, str | int | float) and not isinstance(value, bool):
            gate = _gate(name, str(value), profile, k, origin=origin)
        else:
            raise _bad(f"{name} = {value!r}", 'write a number, ">= 0.80", or a table')
        gates.append(gate)
    return gates


def merge(*layers: Sequence[Gate]) -> list[Gate]:
    """Put layers of gates together: a later layer replaces the gate on the same metric.

    The later layer's order comes first, then what is left of the earlier ones: a demand that is
    not repeated stays in force.
    """
    merged: list[Gate] = []
    for layer in layers:
        replaced = {gate.metric for gate in layer}
        merged = [*layer, *(gate for gate in merged if gate.metric not in replaced)]
    return merged


def _bad(item: str, hint: str) -> RagaugeError:
    return RagaugeError.of("bad-gate", f"cannot read the gate `{item.strip()}`", hint=hint)


def _gate(name: str, demand: str, profile: Profile, k: Sequence[int], *, origin: str) -> Gate:
    try:
        return _read_gate(name, demand, profile, k, origin=origin)
    except RagaugeError as error:
        problem = error.problems[0]
        place = None if origin == "--gates" else Place(origin)
        raise RagaugeError([msgspec.structs.replace(problem, place=place)]) from error


def _read_gate(name: str, demand: str, profile: Profile, k: Sequence[int], *, origin: str) -> Gate:
    base, at, cut = _meant(name, profile).partition("@")
    if base not in registry.metrics():
        raise registry.unknown_name("metric", name, [*registry.metrics(), *profile.aliases])
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
    right = _SIGN_OF[metric.better]
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
) -> Verdict:
    """Judge scores by gates. Pure: the same scores and gates give the same verdict.

    `source_rules` is for profiles that follow a source: 0/0 takes the source's default, and
    errored traces count as answers.
    """
    _refuse_stray(waivers, gates)
    results = [_with_waiver(_one(scores, gate), waivers, today) for gate in gates]
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


def _one(scores: Scores, gate: Gate) -> GateResult:
    result = scores.metrics.get(gate.metric)
    if result is None:
        return _undefined(gate, 0, "undefined-metric", f"{gate.metric} is not in these scores")
    value = result.shown
    if value is None:
        why = f"0/0: {result.left_out or result.reason}"
        return _undefined(gate, result.n, "undefined-metric", why)
    if result.n < gate.min_n:
        why = f"n = {result.n} is below min_n = {gate.min_n}"
        return _undefined(gate, result.n, "too-few", why)
    deciding = value
    if gate.policy == "interval":
        if result.interval is None:
            return _undefined(gate, result.n, "undefined-metric", "no interval to judge by")
        deciding = result.interval[0] if gate.better == "higher" else result.interval[1]
    margin = deciding - gate.threshold if gate.better == "higher" else gate.threshold - deciding
    # The comparison is made on the values themselves: a margin of -1e-17 may only be rounding.
    met = deciding >= gate.threshold if gate.better == "higher" else deciding <= gate.threshold
    status: Status = "pass" if met else "fail"
    reason = None
    if gate.policy == "interval":
        side = "lower" if gate.better == "higher" else "upper"
        reason = f"judged by the {side} bound {deciding:.4f}"
    if gate.review is not None and gate.review[0] <= deciding <= gate.review[1]:
        status = "review"
        reason = f"in the review band {gate.review[0]:g} to {gate.review[1]:g}"
    if result.value is None:
        reason = f"0/0 ({result.left_out or result.reason}): the source counts it as {value:g}"
    return GateResult(
        gate=gate,
        status=status,
        value=value,
        n=result.n,
        margin=margin,
        interval=result.interval,
        detectable=_detectable(result),
        reason=reason,
    )


def _detectable(result: MetricResult) -> float | None:
    if result.interval is None:
        return None
    return (result.interval[1] - result.interval[0]) * _DETECTABLE


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
