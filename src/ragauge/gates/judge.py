"""Judge scores by gates: levels against thresholds, drops against a baseline, and what blocks."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from datetime import date

from msgspec import Struct
from msgspec.structs import replace

from ragauge import registry
from ragauge.codes import CODES, ExitCode
from ragauge.errors import RagaugeError
from ragauge.files.open import PathLike
from ragauge.gates.bands import in_bands, with_bands
from ragauge.gates.drops import GAPS, drop_of
from ragauge.gates.parse import merge, parse_items, parse_table, profile_gates
from ragauge.gates.waivers import refuse_stray, with_waiver
from ragauge.metrics.metric import Better
from ragauge.model.phrases import count
from ragauge.model.scores import Scores
from ragauge.model.scores_document import load_scores
from ragauge.model.semantic import Bands, is_lexical
from ragauge.model.verdict import ORDER, Gate, GateResult, Status, Verdict, VerdictBlock, Waiver
from ragauge.stats.intervals import Interval


class Tolerance(Struct, frozen=True, kw_only=True):
    """What the caller lets pass that would otherwise make a run not evaluable.

    What is missing, errored or skipped in a baseline is let pass with that in the run: a drop is
    then judged on the questions that the baseline has results for.
    """

    missing: bool = False
    errored: bool = False
    skipped: bool = False
    empty: bool = False
    no_baseline: bool = False
    other_questions: bool = False
    no_delta_s: bool = True

    @property
    def gaps(self) -> list[str]:
        """The codes of what a baseline may lack."""
        allowed = self.missing, self.errored, self.skipped
        return [code for code, passes in zip(GAPS, allowed, strict=True) if passes]


def judge(
    scores: Scores,
    gates: Sequence[Gate],
    *,
    source_rules: bool,
    whole_grid: bool = False,
    tolerance: Tolerance = Tolerance(),  # noqa: B008  (frozen)
    waivers: Sequence[Waiver] = (),
    today: date | None = None,
    baseline: Scores | None = None,
    beside: Scores | None = None,
    bands: Mapping[str, Bands] = {},
) -> Verdict:
    """Judge scores by gates. Pure: the same scores and gates give the same verdict.

    Gates on a drop are judged against the baseline, and are not evaluable without one. `beside`
    are the scores to set beside the baseline, where it takes others than those that are judged:
    of two stored runs, both as they were aligned. Nor are they evaluable against a baseline that
    lacks results: its zeros would hide a drop.

    `source_rules` is for profiles that follow a source: 0/0 takes the source's default, and
    errored traces count as answers. `whole_grid`: slots that are missing block the verdict.
    `bands` are those of embedders by their ids, for gates on a zone of ΔS; without them those hold
    that the scores were made with.
    """
    refuse_stray(waivers, gates)
    results = []
    for written in gates:
        gate = with_bands(written, scores, bands)
        if gate.is_drop:
            drop_scores = beside or scores
            result = _judge_drop(drop_scores, gate, baseline, tolerance, whole_grid=whole_grid)
        else:
            result = _judge_level(scores, gate)
            result = in_bands(result, scores, bands, required=not tolerance.no_delta_s)
        results.append(with_waiver(result, waivers, today))
    blocks = []
    if gates:
        blocks = _blocks(scores, tolerance, source_rules=source_rules, whole_grid=whole_grid)
    blocks += [
        VerdictBlock(result.code, f"{result.gate.title or result.gate.name}: {result.reason}")
        for result in results
        if result.code is not None and not result.waived
    ]
    # Chunks that gold does not name may still be recognised beside a baseline.
    only_drops = bool(gates) and all(gate.is_drop for gate in gates)
    blocks += standing_blocks(beside if beside is not None and only_drops else scores, tolerance)
    if baseline is not None and any(gate.is_drop for gate in gates):
        # Zeros of a baseline that mean nothing would hide any drop.
        blocks += [
            VerdictBlock(block.code, f"the baseline: {block.message}")
            for block in standing_blocks(baseline, tolerance)
        ]
    if scores.unmeasured is not None:
        blocks = [scores.unmeasured]
    worst: Status = max(
        ("pass" if result.waived else result.status for result in results),
        key=ORDER.index,
        default="pass",
    )
    if worst == "not-judged":
        why = "; ".join(dict.fromkeys(result.reason or "" for result in results))
        blocks.append(VerdictBlock("unjudged-delta-s", f"no gate is left to decide: {why}"))
    if blocks:
        worst = "not-evaluable"
    codes = {
        "pass": ExitCode.PASS,
        "review": ExitCode.PASS,
        "fail": ExitCode.GATE_FAILED,
        "not-evaluable": ExitCode.NOT_EVALUABLE,
    }
    exit_code = codes[worst] if scores.measured else ExitCode.NOTHING_MEASURED
    return Verdict(status=worst, exit_code=exit_code, gates=tuple(results), blocks=tuple(blocks))


def standing_blocks(
    scores: Scores,
    tolerance: Tolerance = Tolerance(),  # noqa: B008  (frozen)
) -> list[VerdictBlock]:
    """Why the numbers of a run mean nothing, with or without gates, unless it is let pass."""
    passed = {"foreign-traces"} if tolerance.other_questions else set()
    return [block for block in scores.blocks if block.code not in passed]


def _judge_drop(
    scores: Scores, gate: Gate, baseline: Scores | None, tolerance: Tolerance, *, whole_grid: bool
) -> GateResult:
    """Judge a gate on how much worse a metric is than in the baseline."""
    trouble = _doubtful(gate.metric, scores)
    if trouble is not None and baseline is not None:
        return _undefined(gate, 0, trouble, CODES[trouble].title)
    drop = drop_of(
        gate.metric,
        gate.better,
        scores,
        baseline,
        max_drop=gate.threshold,
        whole_grid=whole_grid,
        tolerated=tolerance.gaps,
    )
    if drop.value is None:
        result = _undefined(gate, drop.n, drop.code or "incomparable", drop.reason)
        if baseline is None and tolerance.no_baseline:
            excluded = "left out: there is no baseline, and --allow-no-baseline"
            return replace(result, waived=excluded)
        return result
    if drop.n < gate.min_n:
        return _undefined(gate, drop.n, "too-few", f"n = {drop.n} is below min_n = {gate.min_n}")
    result = _judged(gate, drop.value, drop.n, drop.interval, "lower")
    result = replace(result, detectable=drop.detectable)
    reason = drop.reason if result.reason is None else f"{drop.reason}; {result.reason}"
    return replace(result, reason=reason)


def _judge_level(scores: Scores, gate: Gate) -> GateResult:
    name = gate.metric
    if gate.instead is not None and not scores.cites:
        name = gate.instead
    if gate.part is not None and name in scores.metrics:
        dimension, _, value_of_slice = gate.part.partition("=")
        part = scores.slices.get(dimension, {}).get(value_of_slice)
        result = None if part is None else part.metrics.get(name)
        if part is None or result is None or result.value is None:
            n = 0 if part is None else part.n
            if n >= scores.options.min_n:
                return _undefined(gate, n, "undefined-metric", f"0/0 in {gate.part}")
            why = f"{gate.part} has {count(n, 'question')}, too few for a value"
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
    trouble = _doubtful(name, scores)
    if trouble is not None:
        return _undefined(gate, result.n, trouble, CODES[trouble].title)
    judged = _judged(gate, value, result.n, result.interval, gate.better)
    if gate.better == result.better:
        judged = replace(judged, detectable=result.detectable)
    if result.value is None:
        reason = f"0/0 ({result.left_out or result.reason}): the source counts it as {value:g}"
        judged = replace(judged, reason=reason)
    if name != gate.metric:
        instead = f"no answer cites anything: judged by {name}"
        reason = instead if judged.reason is None else f"{instead}; {judged.reason}"
        judged = replace(judged, reason=reason)
    return judged


def _doubtful(metric: str, scores: Scores) -> str | None:
    """Why a ΔS cannot be judged: several embedders, or one that only compares words."""
    if not metric.startswith("semantic."):
        return None
    if len(scores.embedders) > 1:
        return "mixed-embedders"
    return "lexical-embedder" if any(map(is_lexical, scores.embedders)) else None


def _judged(
    gate: Gate, value: float, n: int, interval: Interval | None, better: Better
) -> GateResult:
    """Compare a value with the threshold, by the point or by the bound on the wrong side."""
    deciding = value
    if gate.policy == "interval":
        # The bound on the wrong side: "surely good enough", where the point says "probably".
        bound = None if interval is None else interval[0 if better == "higher" else 1]
        if bound is None:
            return _undefined(gate, n, "undefined-metric", "no interval to judge by")
        deciding = bound
    margin = deciding - gate.threshold if better == "higher" else gate.threshold - deciding
    # A difference of two means may be off by its last bit; nothing else is.
    # Levels are compared by the values themselves: a margin of -1e-17 may only be rounding.
    holds = deciding >= gate.threshold if better == "higher" else deciding <= gate.threshold
    met = margin >= -1e-12 if gate.is_drop else holds
    status: Status = "pass" if met else "fail"
    reason = None
    if gate.policy == "interval":
        side = "lower" if better == "higher" else "upper"
        reason = f"judged by the {side} bound {deciding:.4f}"
    if gate.review is not None and gate.review[0] <= deciding <= gate.review[1]:
        status = "review"
        reason = f"in the review band {gate.review[0]:g} to {gate.review[1]:g}"
    return GateResult(
        gate=gate,
        status=status,
        value=value,
        n=n,
        margin=margin,
        interval=interval,
        detectable=None,
        reason=reason,
    )


def _undefined(gate: Gate, n: int, code: str, reason: str) -> GateResult:
    return GateResult(
        gate=gate,
        status="not-evaluable",
        value=None,
        n=n,
        margin=None,
        interval=None,
        detectable=None,
        reason=reason,
        code=code,
    )


def _blocks(
    scores: Scores, tolerance: Tolerance, *, source_rules: bool, whole_grid: bool
) -> list[VerdictBlock]:
    tally = scores.tally
    skipped = tally.gold_skipped + tally.trace_skipped
    texts: list[tuple[str, str]] = []
    if tally.missing and not tolerance.missing:
        verb = "has" if tally.missing == 1 else "have"
        missing = f"{tally.missing} of {tally.gold} gold items {verb} no trace"
        texts.append(("missing-traces", missing))
    if tally.missing_slots and whole_grid and not tolerance.missing:
        noun = "slot has" if tally.missing_slots == 1 else "slots have"
        missing = f"{tally.missing_slots} {noun} no trace (paraphrase × seed)"
        texts.append(("missing-traces", missing))
    if tally.errored and not source_rules and not tolerance.errored:
        noun = "trace carries" if tally.errored == 1 else "traces carry"
        texts.append(("errored-traces", f"{tally.errored} {noun} an error"))
    if skipped and not tolerance.skipped:
        noun = "line was" if skipped == 1 else "lines were"
        texts.append(("skipped-lines", f"{skipped} bad {noun} skipped"))
    if source_rules and not tally.answered and not tally.answerable and not tolerance.empty:
        texts.append(("nothing-answered", CODES["nothing-answered"].title))
    return [VerdictBlock(code, text) for code, text in texts]


def gate(
    scores: Scores | PathLike,
    gates: str | dict[str, object] | Sequence[Gate] | None = None,
    *,
    allow_missing: bool = False,
    allow_errored: bool = False,
    allow_skipped: bool = False,
    allow_empty: bool = False,
    allow_no_baseline: bool = False,
    allow_other_questions: bool = False,
    require_delta_s: bool = False,
    waivers: Sequence[Waiver] = (),
    today: date | None = None,
    baseline: Scores | PathLike | None = None,
    bands: Mapping[str, Bands] = {},
) -> Verdict:
    """Judge scores (or a saved scores file) by gates.

    `gates` may be text (`"precision=0.80,refusal.over<=0.1"`), a table as in `ragauge.toml`, or
    Gate values, which stand alone; text and tables go on top of the gates of the scores' profile.
    Waivers are judged on `today`, by the clock if it is not given. Gates on a drop are judged
    against `baseline`; those on a zone of ΔS by `bands`, or by those of the scores.
    """
    scores = _loaded(scores)
    baseline = None if baseline is None else _loaded(baseline)
    profile = registry.profile(scores.profile)
    layers = [profile_gates(profile, scores.k)]
    if isinstance(gates, str):
        layers.append(parse_items(gates, profile, scores.k))
    elif isinstance(gates, dict):
        layers.append(parse_table(gates, profile, scores.k, origin="gates"))
    elif gates is not None:
        layers = [list(gates)]
    return judge(
        scores,
        merge(*layers),
        source_rules=profile.follows_source,
        whole_grid=profile.join.grid == "complete",
        tolerance=Tolerance(
            missing=allow_missing,
            errored=allow_errored,
            skipped=allow_skipped,
            empty=allow_empty,
            no_baseline=allow_no_baseline,
            other_questions=allow_other_questions,
            no_delta_s=not require_delta_s,
        ),
        waivers=waivers,
        today=date.today() if waivers and today is None else today,
        baseline=baseline,
        bands=bands,
    )


def _loaded(scores: Scores | PathLike) -> Scores:
    if isinstance(scores, Scores):
        return scores
    if isinstance(scores, str | os.PathLike):
        return load_scores(scores)
    raise RagaugeError.of(
        "usage",
        f"scores must be those of `score`, or a path, got: {type(scores).__name__}",
        hint="give what `ragauge.score` returned, or a file of `score --full -o FILE.json`",
    )
