"""Diagnosing: files and stored runs are measured as a diagnosis needs them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import ExitStack
from typing import Any

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from ragauge.diagnose.hit_facts import HitFacts, read_hit_facts
from ragauge.diagnose.prompt import PromptQuestion
from ragauge.diagnose.rank_findings import NEEDS, diagnose
from ragauge.diagnose.rules import Symptoms
from ragauge.errors import RagaugeError
from ragauge.metrics.columns import Ints
from ragauge.model.chunk import Chunk
from ragauge.model.diagnosis import Diagnosis, Witness
from ragauge.model.gold import GoldItem
from ragauge.model.payloads import UNREADABLE, thaw, thaw_chunks, thaw_gold, trace_of
from ragauge.model.run import ResultFacts, RunRecord, Store
from ragauge.model.scores import Scores
from ragauge.model.semantic import Bands
from ragauge.model.trace import Trace
from ragauge.scoring.engines.choose import stored_engine
from ragauge.scoring.gold_table import gold_table
from ragauge.scoring.identify import EvidenceIdentifier
from ragauge.scoring.inputs import Gold, ScoredRun, Traces
from ragauge.scoring.remeasure import semantic_of
from ragauge.scoring.results import at, with_hashes
from ragauge.scoring.score import score, score_stored
from ragauge.scoring.scoring_run import ScoringPlan
from ragauge.store.runs import begin_loading, stored_semantic
from ragauge.store.snapshot import plan_of, read_snapshot, rules_under


class MeasuredRun(Struct, frozen=True, kw_only=True):
    """A run with all that was asked of it: its scores, its gold items, and how it was scored."""

    name: str
    scores: Scores
    items: Sequence[GoldItem]
    plan: ScoringPlan
    chunks: Mapping[str, Chunk] = {}
    hits: HitFacts | None = None

    def symptoms(self) -> Symptoms:
        """The run as rules ask it, to be a baseline."""
        return Symptoms(self.scores, self.types(), hits=self.hits, name=self.name)

    def types(self) -> dict[str, Ints]:
        """The questions by the type of their evidence, as places among those of the scores."""
        return types_of(self.items, self.plan, dict(self.chunks), self.scores)


def measured_files(
    gold: Gold, traces: Traces, *, name: str = "", also: Sequence[str] = NEEDS, **options: Any
) -> MeasuredRun:
    """Score traces against gold, as `scoring.score` does, with what `also` names."""
    scored_runs: list[ScoredRun] = []
    hits: list[HitFacts] = []

    def keep(scored: ScoredRun) -> None:
        scored_runs.append(scored)
        rows = ((facts, payload) for batch in scored.rows for facts, payload, _ in batch.rows)
        hits.append(_hits(rows, scored.plan, scored.items, scored.chunks, scored.scores))

    score(gold, traces, also=also, intervals=False, keep=keep, **options)
    (scored,) = scored_runs
    return MeasuredRun(
        name=name or scored.scores.trace_name,
        scores=scored.scores,
        items=scored.items,
        plan=scored.plan,
        chunks=scored.chunks,
        hits=hits[0],
    )


def _hits(
    rows: Iterable[tuple[ResultFacts, bytes]],
    plan: ScoringPlan,
    items: Sequence[GoldItem],
    chunks: dict[str, Chunk],
    scores: Scores,
) -> HitFacts:
    identifier = EvidenceIdentifier(plan, items, chunks, gold_name=scores.gold_name)
    identifier.follow_places(scores)
    return read_hit_facts(rows, identifier, scores)


def measured_run(
    store: Store,
    run: RunRecord,
    *,
    profile: str | None = None,
    also: Sequence[str] = NEEDS,
    workers: int | None = None,
    intervals: bool = False,
    slices: bool = True,
    bands: Mapping[str, Bands] | None = None,
) -> MeasuredRun:
    """Score a stored run again, under its own profile or another one; nothing is written.

    `bands` are those of embedders by their ids; for an embedder that has none of them, those hold
    that the run was stored with.
    """
    rules = rules_under(read_snapshot(run.snapshot, run.run_id).scoring, profile)
    plan = plan_of(rules, metrics=(*rules.metrics, *also))
    plan = replace(plan, intervals=intervals, slices=slices)
    with ExitStack() as stack:
        engine = stored_engine(stack, run.results, workers)
        loading = begin_loading(stack, store, run, engine)
        items = thaw_gold(store.gold(run.gold_key), run.run_id)
        chunks: dict[str, Chunk] = {}
        if run.chunks is not None:
            chunks = thaw_chunks(store.chunks(run.chunks), run.run_id)
        loaded = loading()
        table = gold_table(
            items, plan.profile, plan.options, name=loaded.inputs.gold_name, chunks=chunks
        )
        scores = score_stored(table, loaded.source, plan, given=loaded.inputs, engine=engine)
        scores = with_hashes(scores, items, plan.profile, chunks)
    semantic = semantic_of(scores, bands or {}, None) or stored_semantic(store, run)
    scores = replace(scores, semantic=semantic)
    rows = ((row.facts, row.payload) for row in store.results(run.run_id))
    hits = _hits(rows, plan, items, chunks, scores)
    return MeasuredRun(
        name=run.run_id, scores=scores, items=items, plan=plan, chunks=chunks, hits=hits
    )


def types_of(
    items: Sequence[GoldItem], plan: ScoringPlan, chunks: dict[str, Chunk], scores: Scores
) -> dict[str, Ints]:
    """The questions by the type of their evidence, as places among those of the scores."""
    table = gold_table(items, plan.profile, plan.options, name=scores.gold_name, chunks=chunks)
    values = scores.per_question
    assert values is not None
    places = {key: i for i, key in enumerate(zip(values.qids, values.turns, strict=True))}
    keys = list(zip(table.qids, table.turns, strict=True))
    return {
        name: np.array([places[keys[i]] for i in part.tolist() if keys[i] in places], np.int64)
        for name, part in table.slices.get("type", {}).items()
    }


def diagnosis_of(
    measured: MeasuredRun, *, limit: int = 10, baseline: MeasuredRun | None = None
) -> Diagnosis:
    """Say what is likely to be wrong with a run that was measured for it.

    With a baseline, say what rose against it.
    """
    if baseline is not None:
        _refuse_unusable(baseline)
    _refuse_unusable(measured)
    return diagnose(
        measured.scores,
        types=measured.types(),
        hits=measured.hits,
        before=None if baseline is None else baseline.symptoms(),
        name=measured.name,
        limit=limit,
    )


def _refuse_unusable(measured: MeasuredRun) -> None:
    if not measured.scores.tally.scored:
        raise RagaugeError.of(
            "nothing-measured",
            f"no trace of `{measured.name}` belongs to a gold item",
            hint="compare one id of each file: a changed prefix is the usual cause",
        )
    # Causes of numbers that mean nothing would send people to rebuild an index that is fine.
    for block in measured.scores.blocks:
        hint = f"`ragauge explain {block.code}` says more"
        raise RagaugeError.of(block.code, f"`{measured.name}`: {block.message}", hint=hint)


def prompt_questions(
    measured: MeasuredRun, store: Store, run: RunRecord, witnesses: Sequence[Witness]
) -> list[PromptQuestion]:
    """The questions with their gold items, each with the trace that its label is of."""
    items = {(item.qid, item.turn): item for item in measured.items}
    wanted = {(witness.qid, witness.turn): witness for witness in witnesses}
    traces: dict[tuple[str, int | None], Trace] = {}
    for row in store.results(run.run_id) if wanted else ():
        facts = row.facts
        key = (facts.query_id, facts.turn)
        if key not in wanted:  # profiles that ignore turns have one question for all of them
            key = (facts.query_id, None)
        if key not in wanted:
            continue
        try:
            trace = trace_of(thaw(row.payload))
        except UNREADABLE:
            continue
        # Where no line agrees, the last trace of the question stands in.
        if key not in traces or not _is_worst(traces[key], wanted[key], measured):
            traces[key] = trace
    return [
        PromptQuestion(witness=witness, item=items.get(key), trace=traces.get(key))
        for key, witness in wanted.items()
    ]


def _is_worst(trace: Trace, witness: Witness, measured: MeasuredRun) -> bool:
    return witness.where == at(measured.scores.trace_name, trace.line)
