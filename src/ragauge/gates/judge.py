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
from ragauge.gates.chances import drop_gate_chances, level_gate_chances
from ragauge.gates.damage import with_damage
from ragauge.gates.document_level import BY_DOCUMENT, document_gate, hint_at_documents
from ragauge.gates.drops import GAPS, Drop, drop_of
from ragauge.gates.lost_results import Extreme
from ragauge.gates.parse import merge, parse_items, parse_table, profile_gates
from ragauge.gates.unknown_places import (
    WHY_UNKNOWN,
    estimated_drop,
    level_of_ends,
    result_of_ends,
    with_separate_ends,
)
from ragauge.gates.waivers import refuse_unusable, with_waiver
from ragauge.metrics.metric import Better
from ragauge.model.phrases import count
from ragauge.model.scores import PLACE_UNKNOWN, MetricResult, Scores
from ragauge.model.scores_document import load_scores
from ragauge.model.semantic import Bands, is_lexical
from ragauge.model.verdict import ORDER, Gate, GateResult, Status, Verdict, VerdictBlock, Waiver
from ragauge.stats.intervals import Interval

FEW = 10
"""Questions below which a gate says how much one of them decides."""
_OF_ALL_TRACES = ("run.", "cost.")
"""Metrics on what traces have and lack: those with an error are in them as they are."""


class Tolerance(Struct, frozen=True, kw_only=True):
    """What the caller lets pass that would otherwise make a run not evaluable.

    What is missing, errored or skipped in a baseline is let pass with that in the run: a drop is
    then judged on the questions that the baseline has results for. `errored` is the share of traces
    that may have an error; True for any. `fewer_questions`: a drop may be judged on few of the
    questions of the baseline. `doc_level`: where two runs share only documents, a gate on a drop
    may be judged by the metric of documents.
    """

    missing: bool = False
    errored: float = 0.0
    skipped: bool = False
    empty: bool = False
    no_baseline: bool = False
    other_questions: bool = False
    fewer_questions: bool = False
    no_delta_s: bool = True
    doc_level: bool = False

    def lets_errors_pass(self, scores: Scores) -> bool:
        """Whether a run has no more errors than are let pass."""
        # 29 of 100 are 29 %, though 0.29 · 100 is a little less than 29 in doubles.
        return scores.tally.errored <= self.errored * scores.tally.traces * (1 + 1e-12)

    def gaps(self, baseline: Scores | None) -> list[str]:
        """The codes of what a baseline may lack."""
        errored = baseline is not None and self.lets_errors_pass(baseline)
        allowed = self.missing, errored, self.skipped
        codes = [code for code, passes in zip(GAPS, allowed, strict=True) if passes]
        return [*codes, "fewer-questions"] if self.fewer_questions else codes


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
    fail_on_review: bool = False,
    bands: Mapping[str, Bands] = {},
    alone: bool = True,
) -> Verdict:
    """Judge scores by gates. Pure: the same scores and gates give the same verdict.

    Gates on a drop are judged against the baseline, and are not evaluable without one. `beside`
    are the scores to set beside the baseline, where it takes others than those that are judged:
    of two stored runs, both as they were aligned. Nor are they evaluable against a baseline that
    lacks results: its zeros would hide a drop.

    `source_rules` is for profiles that follow a source: 0/0 takes the source's default, and
    errored traces count as answers. `whole_grid`: slots that are missing block the verdict.
    `fail_on_review`: what a person should look at exits as a gate that failed.
    `bands` are those of embedders by their ids, for gates on a zone of ΔS; without them those hold
    that the scores were made with. `alone`: no other gates decide of the run, so that one with
    nothing but gates that are not judged is not evaluable.
    """
    refuse_unusable(waivers, gates)
    results = []
    drop_scores = beside or scores
    if baseline is not None:
        drop_scores, baseline = with_separate_ends(drop_scores, baseline)
    for written in gates:
        gate = with_bands(written, scores, bands)
        if gate.is_drop:
            result = _judge_drop(
                drop_scores,
                gate,
                baseline,
                tolerance,
                source_rules=source_rules,
                whole_grid=whole_grid,
            )
        else:
            result = _judge_level(scores, gate, tolerance, source_rules=source_rules)
            result = in_bands(result, scores, bands, required=not tolerance.no_delta_s)
        result = with_damage(result, drop_scores if gate.is_drop else scores, baseline)
        results.append(with_waiver(result, waivers, today))
    blocks = []
    if gates:
        blocks = _blocks(scores, tolerance, source_rules=source_rules, whole_grid=whole_grid)
        # What a gate says of the fewest questions itself is judged with it.
        silent = any(not gate.min_n and not gate.metric.startswith("run.") for gate in gates)
        if silent and 1 in (scores.tally.gold, scores.tally.scored if source_rules else 0):
            blocks.append(VerdictBlock("too-few", "a run of one question shows nothing"))
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
    unjudged = [result for result in results if result.status == "not-judged"]
    deciding = [result for result in results if not result.waived and result not in unjudged]
    if unjudged and not deciding and alone:
        why = "; ".join(dict.fromkeys(result.reason or "" for result in unjudged))
        blocks.append(VerdictBlock("unjudged-delta-s", f"no gate is left to decide: {why}"))
    if blocks:
        worst = "not-evaluable"
    codes = {
        "not-judged": ExitCode.PASS,
        "pass": ExitCode.PASS,
        "review": ExitCode.GATE_FAILED if fail_on_review else ExitCode.PASS,
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
    scores: Scores,
    gate: Gate,
    baseline: Scores | None,
    tolerance: Tolerance,
    *,
    source_rules: bool,
    whole_grid: bool,
) -> GateResult:
    """Judge a gate on how much worse a metric is than in the baseline.

    Traces of the run with an error count as the worst, and where that decides, as the best too.
    """
    ends = scores.ends
    if baseline is not None and ends is not None and baseline.ends is not None:
        low, high = (
            _judge_drop(
                run, gate, before, tolerance, source_rules=source_rules, whole_grid=whole_grid
            )
            for run, before in ((ends.low, baseline.ends.low), (ends.high, baseline.ends.high))
        )
        result = result_of_ends(low, high, ends)
        # A sample is of all questions, and says nothing of a slice; nor does it fill any gap.
        estimate = ends.estimates.get(gate.metric) if gate.part is None else None
        if result.code == PLACE_UNKNOWN and estimate is None:
            return _judge_by_document(
                result, (scores, baseline), tolerance, source_rules=source_rules, grid=whole_grid
            )
        if result.code != PLACE_UNKNOWN or estimate is None:
            return result
        if low.value is None or high.value is None:
            return result
        return replace(
            _judged(gate, *estimated_drop(estimate, gate, low.n), "lower"),
            reason=f"estimated from {estimate.pins} sampled pins",
        )
    trouble = _doubtful(gate.metric, scores)
    if trouble is not None and baseline is not None:
        return _undefined(gate, 0, trouble, CODES[trouble].title)
    errors = not tolerance.lets_errors_pass(scores) and not gate.metric.startswith("run.")
    if errors and source_rules and baseline is not None:
        # Where an error counts as an answer, nobody knows any more which questions have one.
        return _undefined(gate, 0, "errored-traces", _errors_text(scores))

    def judged_as(lost_as: Extreme) -> GateResult:
        drop = drop_of(
            gate.metric,
            gate.better,
            scores,
            baseline,
            max_drop=gate.threshold,
            whole_grid=whole_grid,
            tolerated=tolerance.gaps(baseline),
            lost_as=lost_as,
            chosen_from=gate.chosen_from,
            part=gate.part,
        )
        return _judged_drop(gate, drop, baseline, tolerance)

    judged = judged_as("worst")
    if not errors or judged.status in ("pass", "not-evaluable"):
        return judged
    return _agreed(judged, (judged, judged_as("best")), scores)


def _judge_by_document(
    result: GateResult,
    runs: tuple[Scores, Scores],
    tolerance: Tolerance,
    *,
    source_rules: bool,
    grid: bool,
) -> GateResult:
    """The result of a gate that is open as the runs share only documents, where that is accepted.

    It is then a gate on the metric of documents, and says so.
    """
    ends, before = runs[0].ends, runs[1].ends
    assert ends is not None and before is not None
    moved = document_gate(result.gate, ends)
    if moved is None or ends.by_document is None or before.by_document is None:
        return result
    if not tolerance.doc_level:
        return hint_at_documents(result, moved, ends.open.get(result.gate.metric, 0))
    judged = _judge_drop(
        ends.by_document,
        moved,
        before.by_document,
        tolerance,
        source_rules=source_rules,
        whole_grid=grid,
    )
    judged = with_damage(judged, ends.by_document, before.by_document)
    return replace(judged, reason=f"{BY_DOCUMENT}; {judged.reason}")


def _judged_drop(
    gate: Gate, drop: Drop, baseline: Scores | None, tolerance: Tolerance
) -> GateResult:
    if drop.value is None:
        result = _undefined(gate, drop.n, drop.code or "incomparable", drop.reason)
        if baseline is None and tolerance.no_baseline:
            excluded = "left out: there is no baseline, and --allow-no-baseline"
            return replace(result, waived=excluded)
        return result
    if drop.n < gate.min_n:
        return _undefined(gate, drop.n, "too-few", f"n = {drop.n} is below min_n = {gate.min_n}")
    result = _judged(gate, drop.value, drop.n, drop.interval, "lower")
    if result.code is not None:
        return result
    result = replace(
        result,
        detectable=drop.detectable,
        reason=drop.reason if result.reason is None else f"{drop.reason}; {result.reason}",
        caution=_few(drop.n, gate.metric) if drop.n < FEW else None,
    )
    return replace(result, chances=drop_gate_chances(result, drop.noise))


def _errors_text(scores: Scores) -> str:
    noun = "trace carries" if scores.tally.errored == 1 else "traces carry"
    return f"{scores.tally.errored} {noun} an error"


def _agreed(judged: GateResult, ends: tuple[GateResult, GateResult], scores: Scores) -> GateResult:
    """The verdict that a gate has with errors at their worst and at their best, if it is one."""
    worst, best = ends
    assert worst.value is not None and best.value is not None
    between = f"{worst.value:.4f} with them at their worst, {best.value:.4f} at their best"
    text = f"{_errors_text(scores)}: {between}"
    if worst.status == best.status:
        reason = text if judged.reason is None else f"{judged.reason}; {text}"
        return replace(judged, status=worst.status, reason=reason)
    return _undefined(judged.gate, judged.n, "errored-traces", f"{text}; --allow-errored judges")


def _judge_level(
    scores: Scores, gate: Gate, tolerance: Tolerance, *, source_rules: bool
) -> GateResult:
    name = gate.metric
    if gate.instead is not None and not scores.cites:
        name = gate.instead
    if gate.part is not None and name in scores.metrics:
        dimension, _, value_of_slice = gate.part.partition("=")
        part = scores.slices.get(dimension, {}).get(value_of_slice)
        result = None if part is None else part.metrics.get(name)
        is_open = result is not None and result.reason == PLACE_UNKNOWN
        if part is None or result is None or (result.value is None and not is_open):
            n = 0 if part is None else part.n
            if n >= scores.options.min_n:
                return _undefined(gate, n, "undefined-metric", f"0/0 in {gate.part}")
            why = f"{gate.part} has {count(n, 'question')}, too few for a value"
            return _undefined(gate, n, "too-few", why)
    else:
        result = scores.metrics.get(name)
    if result is None:
        return _undefined(gate, 0, "undefined-metric", f"{name} is not in these scores")
    if result.reason == PLACE_UNKNOWN and result.ends is None:
        return _undefined(gate, result.n, PLACE_UNKNOWN, WHY_UNKNOWN)
    if result.at_ends is not None:
        low, high = (
            _judge_number(scores, gate, name, end, tolerance, source_rules=source_rules)
            for end in result.at_ends
        )
        values = scores.per_question
        return level_of_ends(low, high, 0 if values is None else values.open_count(name, gate.part))
    return _judge_number(scores, gate, name, result, tolerance, source_rules=source_rules)


def _judge_number(
    scores: Scores,
    gate: Gate,
    name: str,
    result: MetricResult,
    tolerance: Tolerance,
    *,
    source_rules: bool,
) -> GateResult:
    """Judge a gate by one number of a metric; `name` is the metric that it is judged by."""
    value = result.shown
    if value is None:
        why = f"0/0: {result.left_out or result.reason}"
        return _undefined(gate, result.n, "undefined-metric", why)
    trouble = _doubtful(name, scores)
    if trouble is not None:
        return _undefined(gate, result.n, trouble, CODES[trouble].title)
    if result.n < gate.min_n:
        why = f"n = {result.n} is below min_n = {gate.min_n}"
        return _undefined(gate, result.n, "too-few", why)
    judged = _judged(gate, value, result.n, result.interval, gate.better)
    if not tolerance.lets_errors_pass(scores) and not name.startswith(_OF_ALL_TRACES):
        agreed = _undefined(gate, result.n, "errored-traces", _errors_text(scores))
        if result.errored is not None:
            worst, best = (
                _judged(gate, end.value, end.n, end.interval, gate.better) for end in result.errored
            )
            agreed = _agreed(judged, (worst, best), scores)
        if agreed.code is not None and not source_rules:
            return agreed
        # The source's own verdict is still printed; the code keeps the run from passing by it.
        by_source = replace(judged, reason=agreed.reason, code=agreed.code)
        judged = agreed if agreed.code is None else by_source
    if gate.better == result.better:
        judged = replace(judged, detectable=result.detectable)
    judged = replace(judged, chances=level_gate_chances(judged, name, scores))
    if result.value is None:
        reason = f"0/0 ({result.left_out or result.reason}): the source counts it as {value:g}"
        judged = replace(judged, reason=reason)
    elif result.n < FEW and not name.startswith("run."):
        judged = replace(judged, caution=_few(result.n, name))
    if name != gate.metric:
        instead = f"no answer cites anything: judged by {name}"
        reason = instead if judged.reason is None else f"{instead}; {judged.reason}"
        judged = replace(judged, reason=reason)
    return judged


def _few(n: int, metric_id: str) -> str:
    """How much a gate on few questions depends on one of them."""
    text = f"judged on n = {n}"
    metric = registry.metrics()[metric_id.partition("@")[0]]
    if metric.aggregate == "mean" and metric.bounded:
        text += f"; one question moves it by {(metric.range[1] - metric.range[0]) / n:.2f}"
    return text


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
    """Compare a number with the threshold by the gate's policy.

    `point` asks the value itself. `confident-pass` asks the bound on the wrong side: it passes what
    is surely good enough. `confident-fail` fails what is surely too bad, the whole interval beyond
    the threshold; where only the value is, a person should look.

    Values and thresholds are each the double next to an exact number, so comparing them compares
    those numbers (`exact_sums.mean`).
    """
    deciding, reason = value, None
    status: Status = "pass" if _meets(value, gate.threshold, better) else "fail"
    if gate.policy != "point" and interval is None:
        return _undefined(gate, n, "undefined-metric", "no interval to judge by")
    if gate.policy == "confident-pass":
        assert interval is not None
        bound = interval[0 if better == "higher" else 1]
        if bound is None:
            return _undefined(gate, n, "undefined-metric", "no interval to judge by")
        deciding = bound
        status = "pass" if _meets(bound, gate.threshold, better) else "fail"
        reason = f"judged by the {'lower' if better == 'higher' else 'upper'} bound {bound:.4f}"
    elif gate.policy == "confident-fail" and status == "fail":
        assert interval is not None
        bound = interval[1 if better == "higher" else 0]
        # Where n cannot bound the number on its good side, it is not surely beyond anything.
        if bound is None or _meets(bound, gate.threshold, better):
            status = "review"
            reason = "the value is beyond the threshold, its interval not wholly"
        else:
            deciding = bound
            reason = f"surely beyond: even the {'upper' if better == 'higher' else 'lower'} "
            reason += f"bound is {bound:.4f}"
    surely = gate.policy == "confident-fail" and status == "fail"
    if gate.review is not None and gate.review[0] <= deciding <= gate.review[1] and not surely:
        status = "review"
        reason = f"in the review band {gate.review[0]:g} to {gate.review[1]:g}"
    return GateResult(
        gate=gate,
        status=status,
        value=value,
        n=n,
        margin=deciding - gate.threshold if better == "higher" else gate.threshold - deciding,
        interval=interval,
        detectable=None,
        reason=reason,
    )


def _meets(number: float, threshold: float, better: Better) -> bool:
    return number >= threshold if better == "higher" else number <= threshold


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
    allow_errored: bool | float = False,
    allow_skipped: bool = False,
    allow_empty: bool = False,
    allow_no_baseline: bool = False,
    allow_other_questions: bool = False,
    allow_fewer_questions: bool = False,
    fail_on_review: bool = False,
    require_delta_s: bool = False,
    waivers: Sequence[Waiver] = (),
    today: date | None = None,
    baseline: Scores | PathLike | None = None,
    beside: Scores | None = None,
    bands: Mapping[str, Bands] = {},
    accept_doc_level: bool = False,
) -> Verdict:
    """Judge scores (or a saved scores file) by gates.

    `gates` may be text (`"precision=0.80,refusal.over<=0.1"`), a table as in `ragauge.toml`, or
    Gate values, which stand alone; text and tables go on top of the gates of the scores' profile.
    Waivers are judged on `today`, by the clock if it is not given. Gates on a drop are judged
    against `baseline`; those on a zone of ΔS by `bands`, or by those of the scores. `allow_errored`
    may be the share of traces that may have an error. `beside` are the scores as they were aligned
    with the baseline; where they share only documents, `accept_doc_level` judges by these.
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
            fewer_questions=allow_fewer_questions,
            no_delta_s=not require_delta_s,
            doc_level=accept_doc_level,
        ),
        fail_on_review=fail_on_review,
        waivers=waivers,
        today=date.today() if waivers and today is None else today,
        baseline=baseline,
        beside=beside,
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
