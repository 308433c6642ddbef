"""Compares two runs that are on common ground: metrics, questions, causes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor

from msgspec.structs import replace

from ragauge.compare import metric_deltas, question_changes
from ragauge.compare.align import Aligned, Overlap, align
from ragauge.compare.common_gold import Stored
from ragauge.compare.config_causes import cause_note, causes
from ragauge.concurrency import uncollected
from ragauge.errors import RagaugeError
from ragauge.gates.drops import common
from ragauge.model.comparison import Cause, Compared, Comparison
from ragauge.model.run import Store
from ragauge.model.scores import MetricResult, Scores
from ragauge.model.verdict import Verdict
from ragauge.scoring.results import has_ranks
from ragauge.store.runs import find_run, run_scores
from ragauge.store.snapshot import read_snapshot


@uncollected()
def compare(
    aligned: Aligned,
    a: Compared,
    b: Compared,
    *,
    gated: Sequence[str] = (),
    config: tuple[Mapping[str, object], Mapping[str, object]] = ({}, {}),
    verdict: Verdict | None = None,
) -> Comparison:
    """Compare two runs that were brought on common ground."""
    one, other = aligned.a, aligned.b
    pairs = metric_deltas.pair(one, other)
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
    differing = causes(*config)
    with ThreadPoolExecutor(1) as aside:  # arrays are drawn and summed beside the words
        drawing = aside.submit(metric_deltas.deltas, one, other, pairs, frozenset(gated))
        why = cause_note(_of_changes(differing, aligned))
        found = question_changes.questions(one, other, pairs, rungs=aligned.rungs, why=why)
        deltas = drawing.result()
    return Comparison(
        run_a=_counted(a, one, pairs.mine.tolist()),
        run_b=_counted(b, other, pairs.theirs.tolist()),
        match=aligned.match,
        rungs=aligned.counts,
        aggregate_a=_aggregate(one),
        aggregate_b=_aggregate(other),
        deltas=deltas,
        kinds=question_changes.counts([each.kind for each in found]),
        answer_kinds=question_changes.counts(
            [each.answer.kind if each.answer is not None else None for each in found]
        ),
        per_query=found,
        counted=len(found),
        left_out=aligned.left_out,
        causes=differing,
        notes=(*aligned.notes, *pairs.notes()),
        verdict=verdict,
        ranked=aligned.ranked,
    )


def _of_changes(differing: Sequence[Cause], aligned: Aligned) -> list[Cause]:
    """What may have changed a question: not the gold set, where its own item is the same."""
    return [each for each in differing if each.about != "gold" or not aligned.unchanged]


def _aggregate(scores: Scores) -> dict[str, MetricResult]:
    """The metrics of one run; the intervals that matter here are those of the differences."""
    return {name: replace(each, interval=None) for name, each in scores.metrics.items()}


def _counted(run: Compared, scores: Scores, places: Sequence[int]) -> Compared:
    labels = [scores.questions.labels[place] for place in places]
    return replace(
        run,
        questions=scores.tally.gold,
        missing=labels.count("MISSING"),
        errored=labels.count("ERRORED"),
    )


def as_scored(a: Stored | Scores, b: Stored | Scores) -> Aligned:
    """Two runs as they were scored, where one is only a file of scores, which holds no hits."""
    one, other = (
        run_scores(each.store, each.record) if isinstance(each, Stored) else each for each in (a, b)
    )
    for scores in (one, other):
        if scores.per_question is None:
            raise RagaugeError.of(
                "incomparable",
                f"the scores of {scores.trace_name} have no values of questions",
                hint="save them with `ragauge score --full -o FILE.json`",
            )
    assert one.per_question is not None and other.per_question is not None
    _, _, changed = common(one.per_question, other.per_question)
    keys = [
        set(zip(each.per_question.qids, each.per_question.turns, strict=True))
        for each in (one, other)
        if each.per_question is not None
    ]
    reasons = {
        "gold-changed": changed,
        "only-in-a": len(keys[0] - keys[1]),
        "only-in-b": len(keys[1] - keys[0]),
    }
    notes = ["files of scores hold no hits: the runs were compared as they were scored"]
    hashed = bool(one.per_question.hashes and other.per_question.hashes)
    if not hashed:
        notes.append("a file has no gold hashes: items that were changed cannot be told")
    ranked = has_ranks(one.per_question) and has_ranks(other.per_question)
    if not ranked:
        notes.append("a file has no ranks: questions cannot be told apart by retrieval")
    return Aligned(
        a=one,
        b=other,
        left_out={reason: n for reason, n in reasons.items() if n},
        notes=tuple(notes),
        ranked=ranked,
        unchanged=hashed,
    )


def told_of(run: Stored | Scores, name: str = "") -> tuple[Compared, Mapping[str, object]]:
    """What a comparison says of a run, and how it was configured, as far as that is known."""
    if isinstance(run, Scores):
        return Compared(
            name=name,
            profile=run.profile,
            gold_name=run.gold_name,
            trace_name=run.trace_name,
            gold_hash=run.gold_hash,
        ), {"k": list(run.k), "profile": run.profile, "gold_hash": run.gold_hash}
    record = run.record
    snapshot = read_snapshot(record.snapshot, record.run_id)
    evidence = run.evidence
    return Compared(
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
    runs = [Stored(store, find_run(store, name)) for name in (a, b)]
    aligned = align(*runs, overlap=overlap, strict=strict, workers=workers)
    (one, before), (other, after) = (told_of(run) for run in runs)
    return compare(aligned, one, other, gated=gated, config=(before, after))
