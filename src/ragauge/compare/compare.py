"""Compare two runs that were aligned: deltas of metrics, changes of questions, causes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor

from msgspec.structs import replace

from ragauge import registry
from ragauge.compare import metric_deltas, question_changes
from ragauge.compare.align import Aligned, Overlap, align
from ragauge.compare.common_gold import StoredRun
from ragauge.compare.config_causes import cause_note, causes
from ragauge.compare.document_level import document_level, with_doc_kinds
from ragauge.compare.metric_deltas import QuestionPairs
from ragauge.compare.places import (
    BandContext,
    ChangeContext,
    band_deltas,
    place_counts,
    separate_changes,
    separate_counts,
    separate_deltas,
    with_guesses,
    with_places,
)
from ragauge.compare.question_changes import Judging
from ragauge.concurrency import paused_collector
from ragauge.errors import RagaugeError
from ragauge.gates.drops import common_questions
from ragauge.gates.judge import Tolerance, standing_blocks
from ragauge.gates.unknown_places import with_separate_ends
from ragauge.model.comparison import DEFAULT_K, Cause, ComparedRun, Comparison, Delta
from ragauge.model.run import Store
from ragauge.model.scores import MetricResult, PerQuestion, Scores
from ragauge.model.verdict import Verdict, VerdictBlock
from ragauge.scoring.results import has_ranks
from ragauge.store.runs import find_run, run_scores
from ragauge.store.snapshot import read_snapshot


@paused_collector()
def compare(
    aligned: Aligned,
    a: ComparedRun,
    b: ComparedRun,
    *,
    gated: Sequence[str] = (),
    config: tuple[Mapping[str, object], Mapping[str, object]] = ({}, {}),
    verdict: Verdict | None = None,
    tolerance: float = 0.0,
) -> Comparison:
    """Compare two aligned runs; `config` is how each was configured, `gated` what Holm corrects.

    The kinds of questions are by the cut-off of the gated metrics. `tolerance` is how much the
    recall of a question with more units than that may fall.
    """
    scores_a, scores_b = aligned.a, aligned.b
    pairs = metric_deltas.pair(scores_a, scores_b)
    if not len(pairs.mine):
        raise RagaugeError.of(
            "nothing-in-common",
            f"{a.name} and {b.name} have no question in common",
            hint="compare runs of the same gold set",
        )
    if not aligned.counts:  # a file of scores says little of how its run was configured
        shared = config[0].keys() & config[1].keys()
        config = (
            {name: config[0][name] for name in shared},
            {name: config[1][name] for name in shared},
        )
    all_causes = causes(*config)
    with ThreadPoolExecutor(1) as thread:  # arrays are drawn and summed beside the words
        computing = thread.submit(_deltas, aligned, pairs, frozenset(gated))
        why = cause_note(_of_changes(all_causes, aligned))
        judging = Judging(kind_cutoff(gated), tolerance, why)
        changes = question_changes.questions(
            scores_a, scores_b, pairs, levels=aligned.levels, judging=judging
        )
        changes = tuple(map(question_changes.with_regression, changes))
        places = None
        if aligned.places is not None:
            changes = with_places(changes, aligned.places, _change_context(aligned, pairs, judging))
            least = scores_a.options.least_evidence
            places = place_counts(changes, aligned.places, k=judging.k, least=least)
        elif scores_a.ends is not None and scores_b.ends is not None:  # files of scores
            context = _change_context(aligned, pairs, judging)
            correct = registry.profile(scores_b.profile).correct
            changes = separate_changes(changes, scores_a, scores_b, context, correct)
            places = separate_counts(changes, scores_a, scores_b)
        documents = document_level(scores_a, scores_b, judging)
        changes = with_doc_kinds(changes, documents)
        deltas = computing.result()
    # What the headline may speak of, and no more: a table of all metrics by all slices is noise.
    # Nor of what depends on places that gold does not say.
    in_slices = [
        delta.metric
        for delta in deltas
        if delta.p_holm is not None and delta.a is not None and delta.b is not None
    ]
    return Comparison(
        run_a=_counted(a, scores_a, pairs.mine.tolist()),
        run_b=_counted(b, scores_b, pairs.theirs.tolist()),
        match=aligned.match,
        rungs=aligned.counts,
        aggregate_a=_aggregate(scores_a),
        aggregate_b=_aggregate(scores_b),
        deltas=deltas,
        kinds=question_changes.counts([change.certain_kind for change in changes]),
        answer_kinds=question_changes.counts(
            [change.answer.kind if change.answer is not None else None for change in changes]
        ),
        per_query=changes,
        counted=len(changes),
        left_out=aligned.excluded,
        causes=all_causes,
        notes=(*aligned.notes, *_fall_note(aligned, deltas), *pairs.notes()),
        verdict=verdict,
        ranked=aligned.ranked,
        k=judging.k,
        ids=aligned.ids,
        places=places,
        slices=metric_deltas.slice_deltas(scores_a, scores_b, pairs, in_slices),
        documents=documents,
        parts=metric_deltas.parts_of_questions(scores_b),
    )


_FALL = 0.5


def _fall_note(aligned: Aligned, deltas: Sequence[Delta]) -> list[str]:
    """A question to ask where ids that nothing proves find next to nothing any more."""
    fell = any(
        delta.metric.startswith("retrieval.hit@")
        and delta.delta is not None
        and delta.delta < -_FALL
        for delta in deltas
    )
    if aligned.match != "unproven" or not fell:
        return []
    return [
        "retrieval fell by more than half by ids that nothing proves: are the ids positions "
        "(doc:0, doc:1, …) of another chunking?"
    ]


def _change_context(aligned: Aligned, pairs: QuestionPairs, judging: Judging) -> ChangeContext:
    values = aligned.a.per_question
    units = None if values is None else values.units
    return ChangeContext(
        k=judging.k,
        tolerance=judging.tolerance,
        pairs=pairs,
        names=() if units is None else units.names,
        by_source=aligned.b.profile == "kb",
    )


def _deltas(aligned: Aligned, pairs: QuestionPairs, gated: frozenset[str]) -> tuple[Delta, ...]:
    """The difference of each metric; where places are unknown, from both ends."""
    plain = metric_deltas.deltas(aligned.a, aligned.b, pairs, gated)
    ends_a, ends_b = aligned.a.ends, aligned.b.ends
    if ends_a is None or ends_b is None:
        return plain
    low = metric_deltas.deltas(ends_a.low, ends_b.low, pairs, gated)
    high = metric_deltas.deltas(ends_a.high, ends_b.high, pairs, gated)
    if aligned.places is None:
        deltas = separate_deltas(plain, low, high, ends_b)
        return metric_deltas.corrected(deltas, aligned.b)
    context = BandContext(aligned.places, ends_a.low, ends_b.low, ends_b.estimates)
    deltas = metric_deltas.corrected(band_deltas(plain, low, high, context), aligned.b)
    if ends_a.guess is None or ends_b.guess is None:
        return deltas
    return with_guesses(deltas, metric_deltas.deltas(ends_a.guess, ends_b.guess, pairs, gated))


def kind_cutoff(gated: Sequence[str]) -> int:
    """Within which rank something counts as found: the largest cut-off of the gated metrics.

    With the smallest, what is lost between the two would make a gate fail and be nobody's loss.
    """
    cutoffs = [
        int(k)
        for family, _, k in (metric.partition("@") for metric in gated)
        if k and family.startswith("retrieval.")
    ]
    return max(cutoffs, default=DEFAULT_K)


def comparison_blocks(aligned: Aligned, tolerance: Tolerance) -> list[VerdictBlock]:
    """Why two runs say nothing of each other: one means nothing, or they share no metric."""
    sides: dict[VerdictBlock, list[str]] = {}
    for side, scores in (("run a", aligned.a), ("run b", aligned.b)):
        blocks = standing_blocks(scores, tolerance)
        if scores.unmeasured is not None:
            blocks = [scores.unmeasured]
        for block in blocks:
            sides.setdefault(block, []).append(side)
    blocks = [
        VerdictBlock(block.code, f"{' and '.join(named)}: {block.message}")
        for block, named in sides.items()
    ]
    if not blocks and not _measured(aligned.a) & _measured(aligned.b):
        blocks.append(VerdictBlock("incomparable", "no metric has a value in both runs"))
    return blocks


def _measured(scores: Scores) -> set[str]:
    """The metrics of a run that have a population, but for what is counted of any run."""
    metrics = scores.metrics.items()
    return {name for name, result in metrics if result.n and not name.startswith("run.")}


def _of_changes(all_causes: Sequence[Cause], aligned: Aligned) -> list[Cause]:
    """What may have changed a question: not the gold set, where its own item is the same."""
    return [cause for cause in all_causes if cause.about != "gold" or not aligned.unchanged]


def _aggregate(scores: Scores) -> dict[str, MetricResult]:
    """The metrics of one run; the intervals that matter here are those of the differences."""
    return {name: replace(result, interval=None) for name, result in scores.metrics.items()}


def _counted(run: ComparedRun, scores: Scores, places: Sequence[int]) -> ComparedRun:
    labels = [scores.questions.labels[place] for place in places]
    return replace(
        run,
        questions=scores.tally.gold,
        missing=labels.count("MISSING"),
        errored=labels.count("ERRORED"),
    )


def align_scores(a: StoredRun | Scores, b: StoredRun | Scores) -> Aligned:
    """Two runs as they were scored, where one is only a file of scores, which holds no hits."""
    scores_a, scores_b = (
        run_scores(run.store, run.record) if isinstance(run, StoredRun) else run for run in (a, b)
    )
    values_a, values_b = _values(scores_a), _values(scores_b)
    _, _, changed = common_questions(values_a, values_b)
    keys_a, keys_b = (
        set(zip(values.qids, values.turns, strict=True)) for values in (values_a, values_b)
    )
    excluded = {
        "gold-changed": changed,
        "only-in-a": len(keys_a - keys_b),
        "only-in-b": len(keys_b - keys_a),
    }
    notes = ["files of scores hold no hits: the runs were compared as they were scored"]
    hashed = bool(values_a.hashes and values_b.hashes)
    if not hashed:
        notes.append("a file has no gold hashes: items that were changed cannot be told")
    ranked = has_ranks(values_a) and has_ranks(values_b)
    every_unit = values_a.units is not None and values_b.units is not None
    if not ranked:
        notes.append("a file has no ranks: questions cannot be told apart by retrieval")
    elif not every_unit:
        notes.append(
            "a file was saved before all ranks were: questions are told apart by their first "
            "evidence alone, and other pieces may be lost"
        )
    scores_b, scores_a = with_separate_ends(scores_b, scores_a)
    return Aligned(
        a=scores_a,
        b=scores_b,
        excluded={reason: n for reason, n in excluded.items() if n},
        notes=tuple(notes),
        ranked=ranked,
        every_unit=every_unit,
        unchanged=hashed,
    )


def _values(scores: Scores) -> PerQuestion:
    if scores.per_question is None:
        raise RagaugeError.of(
            "incomparable",
            f"the scores of {scores.trace_name} have no values of questions",
            hint="save them with `ragauge score --full -o FILE.json`",
        )
    return scores.per_question


def describe_run(
    run: StoredRun | Scores, name: str = ""
) -> tuple[ComparedRun, Mapping[str, object]]:
    """What a comparison says of a run, and how it was configured, as far as that is known."""
    if isinstance(run, Scores):
        return ComparedRun(
            name=name,
            profile=run.profile,
            gold_name=run.gold_name,
            trace_name=run.trace_name,
            gold_hash=run.gold_hash,
        ), {"k": list(run.k), "profile": run.profile, "gold_hash": run.gold_hash}
    record = run.record
    snapshot = read_snapshot(record.snapshot, record.run_id)
    evidence = run.evidence
    return ComparedRun(
        name=record.run_id,
        profile=record.profile,
        gold_name=snapshot.inputs.gold_name,
        trace_name=snapshot.inputs.trace_name,
        gold_hash=record.gold_hash,
        created_at=record.created_at or None,
        commit_hash=record.commit_hash,
        suite=record.suite if record.created_at else None,
        chunker_versions=evidence.chunkers,
    ), {**snapshot.compared(evidence), "gold_hash": record.gold_hash}


def compare_runs(
    store: Store,
    a: str,
    b: str,
    *,
    overlap: Overlap = "cumulative",
    strict: bool = False,
    gated: Sequence[str] = (),
    workers: int | None = None,
) -> Comparison:
    """Compare two stored runs, each named by id, tag, or `latest`."""
    runs = [StoredRun(store, find_run(store, name)) for name in (a, b)]
    aligned = align(*runs, overlap=overlap, strict=strict, workers=workers)
    (run_a, config_a), (run_b, config_b) = (describe_run(run) for run in runs)
    return compare(aligned, run_a, run_b, gated=gated, config=(config_a, config_b))
