"""`ragauge shadow`: a second index beside the live one, judged by the gates of a profile."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager, suppress
from datetime import date
from typing import Any, NamedTuple

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from ragauge import registry
from ragauge.compare import align, common_gold, compare, metric_deltas
from ragauge.diagnose.diagnose import MeasuredRun, measured_run, types_of
from ragauge.diagnose.rank_findings import diagnose, witness
from ragauge.diagnose.rules import Symptoms
from ragauge.errors import RagaugeError
from ragauge.gates.drops import GAPS
from ragauge.gates.judge import Tolerance, judge
from ragauge.metrics.columns import Ints
from ragauge.metrics.metric import Tally
from ragauge.model.agreement import By
from ragauge.model.comparison import Delta
from ragauge.model.diagnosis import DiagnosisFinding
from ragauge.model.embedder import Embedding
from ragauge.model.payloads import UNREADABLE, thaw, trace_of
from ragauge.model.phrases import count
from ragauge.model.run import RunRecord, Store
from ragauge.model.scores import PLACE_UNKNOWN, Scores
from ragauge.model.semantic import Bands
from ragauge.model.shadow import FailedGate, ShadowReport, ShadowSlice
from ragauge.model.verdict import Gate, GateResult, VerdictBlock, Waiver
from ragauge.run import run as running
from ragauge.run.ask import Limits, Progress
from ragauge.run.shadow_agreement import SlotContent, SlotKey, agree, slot_content
from ragauge.scoring.inputs import ScoredRun
from ragauge.scoring.score import score
from ragauge.store.runs import RunDescription, find_run, store_run, stored_chunks

PROFILE = "canary"

STEPS = {
    "answer.coverage": "Look at the sections that these answers cite: where evidence and citation "
    "lie in neighbouring sections, the boundaries of the new chunks are in the wrong place.",
    "citation.accuracy": "Compare the text that the new offsets were taken from with that of the "
    "gold set: another normaliser moves them. Make the offsets again, then judge again.",
    "semantic.delta_s_cited": "Read the cited snippets: chunks that are too long are far from any "
    "question. A new embedder needs bands of its own.",
    "semantic.delta_s_hits": "Check that index and queries are embedded alike, then look at the "
    "length of the chunks.",
    "retrieval.recall": "Look at what the live index finds for these questions and the shadow does "
    "not: text that was cut off, or was not ingested.",
    "stability.convergent": "Ask these questions again, each wording by itself: where the hits "
    "differ fix retrieval, where they do not fix the prompt.",
}
"""The step to take for a gate, by the metric that it is on."""

OF_ANSWERS = ("answer.", "citation.", "refusal.")
"""Families of metrics that an index without answers has no value for."""

_AGAIN = (
    "Ask the live index again until nothing is missing (`ragauge run --resume RUN --retry-errors` "
    "goes on with a stored run), then judge again."
)
_PIN = (
    "Write down where in the chunks the evidence stands: `ragauge gold pin --narrow`, then judge "
    "again."
)
_OTHERWISE = "Look at these questions in both runs: `ragauge compare LIVE SHADOW` lists them."


class Rules(Struct, frozen=True, kw_only=True):
    """How a shadow is judged; `gates` makes them for some cut-offs.

    `index_only`: the indexes are judged without answers, by the gates that need none. `bands` are
    those of ΔS by embedder.
    """

    gates: Callable[[Sequence[int]], Sequence[Gate]]
    profile: str = PROFILE
    tolerance: Tolerance = Tolerance()
    waivers: Sequence[Waiver] = ()
    today: date | None = None
    limit: int = 5
    min_n: int | None = None
    workers: int | None = None
    index_only: bool = False
    bands: Mapping[str, Bands] = {}
    fail_on_review: bool = False


class ShadowRequest(NamedTuple):
    """How a side that is a target is asked."""

    asked: running.Asked
    measuring: running.ScoringRequest
    limits: Limits
    wanted: RunDescription


class Answered(NamedTuple):
    """A target that was asked everything: its run, and how many of the results are errors.

    `reasons` counts the errors by what they have in common.
    """

    run: RunRecord
    errors: int
    reasons: Mapping[str, int]


class Interrupted(KeyboardInterrupt):
    """A target was not asked to the end. Its run is stored as far as it came, and can go on.

    `progress` is None where asking was ended at once, by a second interrupt.
    """

    def __init__(self, run_id: str, progress: Progress | None = None) -> None:
        super().__init__(run_id)
        self.run_id = run_id
        self.progress = progress


def asked_run(
    store: Store,
    gold: str,
    asking: ShadowRequest,
    *,
    on_progress: Callable[[Progress], None] = lambda _: None,
    embed: Embedding | None = None,
    on_note: Callable[[str], None] = lambda _: None,
) -> Answered:
    """Ask a target every slot of the gold set, and store the run; `Interrupted` names the run."""
    run_input = running.read_run_input(gold, asking.asked, asking.measuring)
    options = asking.asked.target_options(asking.limits.timeout)
    with ExitStack() as stack:
        with closing(running.open_target(asking.asked.address, options)) as target:
            run = running.start_run(store, asking.asked, run_input, target, asking.wanted)
            stack.enter_context(_named(run))
            stack.enter_context(store.hold(run.run_id))
            progress = running.ask_all(
                store,
                run,
                asking.asked,
                run_input,
                target,
                asking.limits,
                on_progress=on_progress,
                embed=embed,
                on_note=on_note,
            )
        if progress.stopped == "interrupted":
            raise Interrupted(run.run_id, progress)
        if progress.stopped is not None:
            why = running.why_stopped(progress, asking.limits)
            raise RagaugeError.of(
                "too-many-errors",
                f"the run `{run.run_id}` was stopped ({why}): {progress.done} of "
                f"{progress.total} slots were asked",
                hint=f"go on with `ragauge run --resume {run.run_id} --store {store.name}`, then "
                "name it here",
            )
        scores = running.complete(store, run, run_input)
    return Answered(find_run(store, run.run_id), scores.tally.errored, scores.errors)


@contextmanager
def _named(run: RunRecord) -> Iterator[None]:
    """Let an interrupt at any moment name the run that was begun."""
    try:
        yield
    except Interrupted:
        raise
    except KeyboardInterrupt as at_once:
        raise Interrupted(run.run_id) from at_once


def scored_run(store: Store, gold: str, trace: str, name: str, **options: Any) -> RunRecord:
    """Score a trace file and store the run under its name, in a store that is gone at the end."""
    stored: list[RunRecord] = []
    unmeasured: list[VerdictBlock] = []

    def keep(scored: ScoredRun) -> None:
        unmeasured.extend(scored.scores.blocks)
        if scored.scores.measured:
            description = RunDescription(run_id=name, created_at="", is_file=True)
            stored.append(store_run(store, scored, description))

    score(gold, trace, keep=keep, **options)
    if not stored:
        message = f"no trace of `{trace}` belongs to a gold item"
        hint = "compare one id of each file: a changed prefix is the usual cause"
        if unmeasured:
            message = f"nothing was measured of `{trace}`: {unmeasured[0].message}"
            hint = "compare the fields of the files with those that are read"
        raise RagaugeError.of("nothing-measured", message, hint=hint)
    return find_run(store, name)


def judge_shadow(
    live: common_gold.StoredRun, shadow: common_gold.StoredRun, rules: Rules
) -> ShadowReport:
    """Judge a shadow run by the gates of a profile, and against the live run for drops.

    Where the chunkings differ, both runs are judged on common ground: each expected item as it is
    recognised on both sides.
    """
    aligned = align.align(live, shadow, profile=rules.profile, workers=rules.workers)
    gates, unjudged = _split(rules.gates(aligned.b.k), rules, aligned.b)
    measured = measured_run(
        shadow.store,
        shadow.record,
        profile=rules.profile,
        workers=rules.workers,
        intervals=True,
        slices=any(gate.part is not None for gate in gates),
        bands=rules.bands,
    )
    # With the same ids on both sides the shadow is judged by its own scores; otherwise by those
    # over evidence that both sides recognise.
    exact = aligned.match in ("exact", "unproven", "none")
    scores = measured.scores if exact else aligned.b
    profile = registry.profile(rules.profile)
    verdict = judge(
        scores,
        gates,
        source_rules=profile.follows_source,
        whole_grid=profile.join.grid == "complete",
        tolerance=rules.tolerance,
        waivers=rules.waivers,
        today=rules.today,
        baseline=aligned.a,
        beside=aligned.b,
        fail_on_review=rules.fail_on_review,
        bands=rules.bands,
    )
    (one, before), (other, after) = compare.describe_run(live), compare.describe_run(shadow)
    names = list(dict.fromkeys(_judged_by(gate, scores) for gate in gates))
    only = replace(aligned, a=_only(aligned.a, names), b=_only(aligned.b, names))
    comparison = compare.compare(only, one, other, gated=names, config=(before, after))
    types = types_of(measured.items, measured.plan, dict(measured.chunks), aligned.b)
    notes = [*aligned.notes, *_lacking("live", aligned.a.tally)]
    notes += _lacking("shadow", scores.tally)
    if not exact:
        notes.append("the chunkings differ: both runs are judged on common ground")
    by: By = "id" if exact else "place"
    return ShadowReport(
        profile=rules.profile,
        live=comparison.run_a,
        shadow=comparison.run_b,
        verdict=verdict,
        match=comparison.match,
        rungs=comparison.rungs,
        deltas=comparison.deltas,
        types=_by_type(aligned, _known(comparison.deltas), types, rules.min_n),
        agreement=agree(slot_contents(live), slot_contents(shadow), by),
        failed=_failed(verdict.gates, scores, aligned, rules.limit),
        kinds=comparison.kinds,
        answer_kinds=comparison.answer_kinds,
        findings=_findings(measured, live, rules, exact=exact),
        counted=comparison.counted,
        left_out=comparison.left_out,
        notes=tuple(notes),
        unjudged=unjudged,
    )


def _split(
    gates: Sequence[Gate], rules: Rules, shadow: Scores
) -> tuple[list[Gate], tuple[str, ...]]:
    """The gates that are judged, and the names of those on answers where there shall be none."""
    if not rules.index_only:
        return list(gates), ()
    # Answers that are there and not judged would let a worse system pass without a word.
    if shadow.tally.answered or shadow.tally.refused:
        message = "--index-only: the shadow run has answers, which would go unjudged"
        raise RagaugeError.of("usage", message, hint="leave --index-only out")
    judged = [gate for gate in gates if not _judged_by(gate, shadow).startswith(OF_ANSWERS)]
    names = tuple(gate.title or gate.name for gate in gates if gate not in judged)
    return judged, names


def _lacking(side: str, tally: Tally) -> list[str]:
    """What one side has no result for."""
    gaps = []
    if tally.missing:
        gaps.append(f"{tally.missing} of {count(tally.gold, 'question')} without a trace")
    if tally.missing_slots:
        gaps.append(f"{count(tally.missing_slots, 'slot')} (paraphrase × seed) without a trace")
    if tally.errored:
        gaps.append(f"{tally.errored} of {count(tally.scored, 'trace')} with an error")
    return [f"{side}: {gap}" for gap in gaps]


def _only(scores: Scores, names: Sequence[str]) -> Scores:
    """Scores with some metrics only; the values of questions stay."""
    metrics = {name: scores.metrics[name] for name in names if name in scores.metrics}
    return replace(scores, metrics=metrics)


def _judged_by(gate: Gate, scores: Scores) -> str:
    """The metric that a gate judges; where nothing is cited, the one in its place."""
    return gate.instead if gate.instead is not None and not scores.cites else gate.metric


def _findings(
    measured: MeasuredRun, live: common_gold.StoredRun, rules: Rules, *, exact: bool
) -> tuple[DiagnosisFinding, ...]:
    """What rose against the live run, the likeliest first; across chunkings ids prove nothing.

    Chunks that were cut, or whose offsets moved, are not the same chunks and no other chunking.
    """
    if not measured.scores.measured:
        return ()
    baseline = measured_run(
        live.store,
        live.record,
        profile=rules.profile,
        workers=rules.workers,
        slices=False,
        bands=rules.bands,
    )
    if not exact and not _is_same_chunking(measured, baseline):
        return ()
    diagnosis = diagnose(
        measured.scores,
        types=measured.types(),
        hits=measured.hits,
        before=baseline.symptoms() if baseline.scores.measured else None,
        limit=rules.limit,
    )
    return diagnosis.findings[:3]


def _is_same_chunking(shadow: MeasuredRun, live: MeasuredRun) -> bool:
    if shadow.hits is None or live.hits is None:
        return False
    return shadow.hits.is_same_chunking(live.hits)


def _known(deltas: Sequence[Delta]) -> list[str]:
    """The metrics that do not depend on places that gold does not say."""
    return [delta.metric for delta in deltas if delta.a_band is None and delta.b_band is None]


def _by_type(
    aligned: align.Aligned, names: Sequence[str], types: Mapping[str, Ints], min_n: int | None
) -> dict[str, ShadowSlice]:
    """The gated metrics by type of evidence, over the questions that both runs have."""
    pairs = metric_deltas.pair(aligned.a, aligned.b)
    least = aligned.b.options.min_n if min_n is None else min_n
    parts = {}
    for name, places in sorted(types.items()):
        mine = np.isin(pairs.theirs, places)
        n = int(np.count_nonzero(mine))
        if n < least:  # a mean over so few questions says nothing
            parts[name] = ShadowSlice(n=n)
            continue
        part = pairs.only(mine)
        deltas = metric_deltas.deltas(
            _with_values(aligned.a, names, part.mine),
            _with_values(aligned.b, names, part.theirs),
            part,
            frozenset(),
        )
        parts[name] = ShadowSlice(n=n, deltas=tuple(delta for delta in deltas if delta.n >= least))
    return parts


def _with_values(scores: Scores, names: Sequence[str], places: Ints) -> Scores:
    """Scores with those metrics only that have a value for one of the questions."""
    values = scores.per_question
    with_values = [
        name
        for name in names
        if values is not None
        and name in values.metrics
        and name in scores.metrics
        and not np.isnan(values.of(name)[places]).all()
    ]
    return _only(scores, with_values)


def _failed(
    results: Sequence[GateResult], scores: Scores, aligned: align.Aligned, limit: int
) -> tuple[FailedGate, ...]:
    """The gates that do not hold, each with its worst questions."""
    failed = []
    run = Symptoms(scores)
    for result in results:
        if result.status in ("not-judged", "pass", "review") or result.waived:
            continue
        if result.code in GAPS:
            failed.append(FailedGate(gate=result, step=_AGAIN, worst=()))
            continue
        if result.code == PLACE_UNKNOWN:
            failed.append(FailedGate(gate=result, step=_PIN, worst=()))
            continue
        name = _judged_by(result.gate, scores)
        is_drop = result.gate.is_drop
        places = _fallen(aligned, scores, name) if is_drop else _worst(run, result, name)
        base = name.partition("@")[0].removesuffix("_p90")  # steps are by metric, not by cut-off
        failed.append(
            FailedGate(
                gate=result,
                step=STEPS.get(base, _OTHERWISE),
                worst=tuple(witness(run, place) for place in places[:limit]),
            )
        )
    return tuple(failed)


def _worst(run: Symptoms, result: GateResult, name: str) -> list[int]:
    """The questions on the wrong side of a gate's threshold, the furthest first."""
    limit = result.gate.threshold
    if result.gate.better == "higher":
        return [int(place) for place in run.where(name, lambda v: v < limit)]
    return [int(place) for place in run.where(name, lambda v: v > limit, worst="high")]


def _fallen(aligned: align.Aligned, scores: Scores, name: str) -> list[int]:
    """The questions that lost most against the live run, as places among those of the scores."""
    one, other, mine = aligned.a.per_question, aligned.b.per_question, scores.per_question
    if one is None or other is None or mine is None:
        return []
    if name not in one.metrics or name not in other.metrics:
        return []
    pairs = metric_deltas.pair(aligned.a, aligned.b)
    better = registry.metrics()[name.partition("@")[0]].better
    lost = one.of(name)[pairs.mine] - other.of(name)[pairs.theirs]
    # A question without a value on one side has not dropped.
    lost = np.nan_to_num(lost if better == "higher" else -lost)
    places = {key: i for i, key in enumerate(zip(mine.qids, mine.turns, strict=True))}
    order = np.argsort(-lost, kind="stable")
    keys = [
        (other.qids[place], other.turns[place])
        for place in pairs.theirs[order[lost[order] > 0]].tolist()
    ]
    return [places[key] for key in keys if key in places]


def slot_contents(run: common_gold.StoredRun) -> dict[SlotKey, SlotContent]:
    """What each slot of a stored run retrieved and cited; of a slot that comes twice, the last.

    Errors and questions outside the gold set are excluded; so is what cannot be read, which the
    scores count.
    """
    chunks = stored_chunks(run.store, run.record)
    contents: dict[SlotKey, SlotContent] = {}
    with ExitStack() as stack:
        rows = run.store.results(run.record.run_id)
        if hasattr(rows, "close"):
            stack.callback(rows.close)
        for facts, payload, _ in rows:
            key = (facts.query_id, facts.paraphrase, facts.seed, facts.turn)
            contents.pop(key, None)  # the last result of a slot counts, even if it is an error
            if facts.outcome == "ok":
                with suppress(*UNREADABLE):
                    contents[key] = slot_content(trace_of(thaw(payload)), chunks)
    return contents
