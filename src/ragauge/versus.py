"""Versus: two runs are brought on common ground, whatever became of their chunks, and compared."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from functools import cached_property
from typing import Literal

from msgspec import Struct
from msgspec.structs import replace

from ragauge import changes, contrast, registry
from ragauge.archive import find_run, run_scores
from ragauge.causes import cause_note, causes
from ragauge.chunklist import full_texts
from ragauge.drops import common
from ragauge.errors import RagaugeError
from ragauge.freezing import thaw_chunks, thaw_evidence, thaw_gold
from ragauge.goldtable import GoldTable, gold_table
from ragauge.ladder import Climber, Ladder, Side
from ragauge.model.aggregate import MetricResult, Scores
from ragauge.model.comparison import RANKS, RUNGS, Compared, Comparison, Match, Rung
from ragauge.model.evidence import Evidence
from ragauge.model.gold import GoldItem
from ragauge.model.run import RunRecord, Store
from ragauge.model.verdict import Verdict
from ragauge.pausing import uncollected
from ragauge.pieces import Chunk
from ragauge.reloading import Reloading
from ragauge.scoring import ScoringPlan
from ragauge.snapshots import ScoringRules, Snapshot, plan_of, read_snapshot, rules_under
from ragauge.wording import count

Overlap = Literal["cumulative", "single"]
Key = tuple[str, int | None]


class Stored:
    """A run in a store, complete."""

    def __init__(self, store: Store, record: RunRecord) -> None:
        self.store = store
        self.record = record

    @cached_property
    def evidence(self) -> Evidence:
        """What the run knows of chunks and documents."""
        return thaw_evidence(self.record.evidence, self.record.run_id)


class Aligned(Struct, frozen=True, kw_only=True):
    """The scores of both runs on the gold items that they share, each recognised alike."""

    a: Scores
    b: Scores
    rungs: Mapping[Key, tuple[Rung, ...]] = {}
    counts: Mapping[Rung, int] = {}
    match: Match = "none"
    left_out: Mapping[str, int] = {}
    notes: tuple[str, ...] = ()


class _Known(Struct, frozen=True):
    """What is known of a stored run before its results are looked at."""

    gold_key: str
    snapshot: Snapshot
    evidence: Evidence
    items: list[GoldItem]
    hashes: dict[Key, str]
    chunks: dict[str, Chunk]


def _known(run: Stored, shared: _Known | None) -> _Known:
    record, store = run.record, run.store
    if shared is not None and shared.gold_key == record.gold_key:
        items, hashes = shared.items, shared.hashes
    else:
        rows = list(store.gold(record.gold_key))
        items = thaw_gold(rows, record.run_id)
        hashes = {(row.query_id, row.turn): row.item_hash for row in rows}
    return _Known(
        record.gold_key,
        read_snapshot(record.snapshot, record.run_id),
        run.evidence,
        items,
        hashes,
        {} if record.chunks is None else thaw_chunks(store.chunks(record.chunks), record.run_id),
    )


@uncollected()
def align(
    a: Stored, b: Stored, *, overlap: Overlap = "cumulative", strict: bool = False,
    workers: int | None = None, profile: str | None = None,
) -> Aligned:  # fmt: skip
    """Score two stored runs on what they share, each expected item matched by one rung on both.

    With a `profile`, both are scored by it, whatever they were scored by before.
    """
    with ExitStack() as stack:
        loading = Reloading(stack, [(run.store, run.record) for run in (a, b)], workers)
        known_a = _known(a, None)
        known_b = _known(b, known_a)
        by_ids = any(item.relevant for item in known_b.items)
        if by_ids and _recut(a.evidence, b.evidence):
            loading.begin()  # ids will not do: the traces are read while all else is thought over
        rules, notes = _rules(known_a.snapshot.scoring, known_b.snapshot.scoring)
        items, left_out = _common(known_a, known_b, a, b)
        keys = {(item.qid, item.turn) for item in items}
        climber = Climber(_side(a, known_a, keys), _side(b, known_b, keys))
        scored = {known.snapshot.scoring.profile for known in (known_a, known_b)}
        other_profile = profile is not None and scored != {profile}
        if other_profile:
            rules, notes = rules_under(rules, profile), []
        fitting = not (left_out or notes or other_profile) and overlap == rules.options.overlap
        if not fitting or (by_ids and not climber.same.whole):
            loading.begin()
        ladder = climber.climb_all(items)
        if strict and ladder.match != "exact":
            _refuse(ladder, items)
        one = other = None
        if fitting and ladder.items_a == ladder.items_b == tuple(items):
            one, other = _as_stored(a), _as_stored(b)
        if one is None or other is None:
            rules = replace(rules, options=replace(rules.options, overlap=overlap))
            names = _metrics(known_a.snapshot.scoring, known_b.snapshot.scoring)
            plan = replace(plan_of(rules, metrics=names), intervals=False, slices=False)
            table = _table(ladder.items_a, plan, known_a)
            one = _unplaced(loading.score(0, table, plan))
            if ladder.items_b != ladder.items_a or known_b.chunks != known_a.chunks:
                table = _table(ladder.items_b, plan, known_b)
            other = _unplaced(loading.score(1, table, plan))
    rungs = {
        (item.qid, item.turn): found for item, found in zip(items, ladder.rungs, strict=True)
    }  # fmt: skip
    skipped = [
        f"{count(scores.tally.trace_skipped, 'result')} of run {side} could not be read"
        for side, scores in (("a", one), ("b", other))
        if scores.tally.trace_skipped
    ]
    return Aligned(
        a=one, b=other, rungs=rungs, counts={rung: ladder.counts.get(rung, 0) for rung in RUNGS},
        match=ladder.match, left_out=left_out, notes=(*notes, *ladder.notes, *skipped),
    )  # fmt: skip


def _recut(a: Evidence, b: Evidence) -> bool:
    """Whether the runs themselves say that their chunks were made in different ways."""
    return (a.chunkers, a.policies) != (b.chunkers, b.policies)


def _rules(a: ScoringRules, b: ScoringRules) -> tuple[ScoringRules, list[str]]:
    """The rules that both runs are scored by: those of run b, and a note where they differ."""
    differing = [
        name
        for name in ("profile", "k", "options")
        if _plain(a, name) != _plain(b, name)
    ]  # fmt: skip
    told = [
        f"the runs were scored by different {' and '.join(differing)}: both were scored again by "
        "those of run b"
    ]
    return b, told if differing else []


def _plain(rules: ScoringRules, name: str) -> object:
    value = getattr(rules, name)
    return replace(value, chunks=None) if name == "options" else value


def _metrics(a: ScoringRules, b: ScoringRules) -> tuple[str, ...]:
    return tuple(dict.fromkeys((*b.metrics, *a.metrics)))


def _common(
    known_a: _Known, known_b: _Known, a: Stored, b: Stored
) -> tuple[list[GoldItem], dict[str, int]]:
    """The gold items that both runs have unchanged, and how many were left out, by reason."""
    one, other = known_a.hashes, known_b.hashes
    both = one.keys() & other.keys()
    items = [
        item
        for item in known_b.items
        if one.get((item.qid, item.turn)) == other[item.qid, item.turn]
    ]
    if not items:
        raise RagaugeError.of(
            "nothing-in-common",
            f"{a.record.run_id} and {b.record.run_id} have no unchanged question in common",
            hint="compare runs of the same gold set: `ragauge runs list` shows their gold hashes",
        )
    reasons = {
        "gold-changed": sum(one[key] != other[key] for key in both),
        "only-in-a": len(one.keys() - both),
        "only-in-b": len(other.keys() - both),
    }
    return items, {reason: n for reason, n in reasons.items() if n}


def _side(run: Stored, known: _Known, keys: set[Key]) -> Side:
    carries: dict[Key, int] = {}
    for qid, turn, carried in run.store.carried(run.record.run_id):
        key: Key = (qid, turn)
        if key not in keys:
            key = (qid, None)
        carries[key] = carries.get(key, -1) & carried
    return Side(
        evidence=known.evidence, carries=carries, chunks=known.chunks,
        texts=full_texts(known.chunks),
    )  # fmt: skip


def _refuse(ladder: Ladder, items: Sequence[GoldItem]) -> None:
    names = [
        item.qid
        for item, rungs in zip(items, ladder.rungs, strict=True)
        if any(rung != "exact" for rung in rungs)
    ]
    if names:
        raise RagaugeError.of(
            "chunker-mismatch",
            f"{count(len(names), 'question')} cannot be compared by chunk ids: "
            f"{', '.join(names[:5])}{' ...' if len(names) > 5 else ''}",
            hint="leave out --strict-chunker-version to compare them by span, quote or document",
        )


def _as_stored(run: Stored) -> Scores | None:
    """The scores as they are stored, if they are of the formulas of this version."""
    scores = run_scores(run.store, run.record)
    values = scores.per_question
    if values is None or any(name not in values.metrics for name in RANKS):
        return None
    known = registry.metrics()
    for name, result in scores.metrics.items():
        metric = known.get(name.partition("@")[0])
        if metric is None or metric.version != result.version:
            return None
    return _unplaced(scores)


def _table(items: Sequence[GoldItem], plan: ScoringPlan, known: _Known) -> GoldTable:
    return gold_table(
        items, plan.profile, plan.options, name=known.snapshot.inputs.gold_name,
        chunks=known.chunks, slices=False,
    )  # fmt: skip


def _unplaced(scores: Scores) -> Scores:
    """Scores whose list of chunks does not matter: the two runs may have one each."""
    return replace(scores, options=replace(scores.options, chunks=None))


@uncollected()
def compare(
    aligned: Aligned, a: Compared, b: Compared, *, gated: Sequence[str] = (),
    config: tuple[Mapping[str, object], Mapping[str, object]] = ({}, {}),
    verdict: Verdict | None = None,
) -> Comparison:  # fmt: skip
    """Compare two runs that were brought on common ground."""
    one, other = aligned.a, aligned.b
    pairs = contrast.pair(one, other)
    if not len(pairs.mine):
        raise RagaugeError.of(
            "nothing-in-common", f"{a.name} and {b.name} have no question in common",
            hint="compare runs of the same gold set",
        )  # fmt: skip
    differing = causes(*config)
    with ThreadPoolExecutor(1) as aside:  # arrays are drawn and summed beside the words
        drawing = aside.submit(contrast.deltas, one, other, pairs, frozenset(gated))
        found = changes.questions(one, other, pairs, rungs=aligned.rungs, why=cause_note(differing))
        deltas = drawing.result()
    return Comparison(
        run_a=_counted(a, one, pairs.mine.tolist()),
        run_b=_counted(b, other, pairs.theirs.tolist()),
        match=aligned.match,
        rungs=aligned.counts,
        aggregate_a=_aggregate(one),
        aggregate_b=_aggregate(other),
        deltas=deltas,
        kinds=changes.counts([each.kind for each in found]),
        answer_kinds=changes.counts([
            each.answer.kind if each.answer is not None else None for each in found
        ]),
        per_query=found,
        counted=len(found),
        left_out=aligned.left_out,
        causes=differing,
        notes=aligned.notes,
        verdict=verdict,
    )  # fmt: skip


def _aggregate(scores: Scores) -> dict[str, MetricResult]:
    """The metrics of one run; the intervals that matter here are those of the differences."""
    return {name: replace(each, interval=None) for name, each in scores.metrics.items()}


def _counted(run: Compared, scores: Scores, places: Sequence[int]) -> Compared:
    labels = [scores.questions.labels[place] for place in places]
    return replace(
        run, questions=scores.tally.gold, missing=labels.count("MISSING"),
        errored=labels.count("ERRORED"),
    )  # fmt: skip


def as_scored(a: Stored | Scores, b: Stored | Scores) -> Aligned:
    """Two runs as they were scored, where one is only a file of scores, which holds no hits."""
    one, other = (
        run_scores(each.store, each.record) if isinstance(each, Stored) else each
        for each in (a, b)
    )  # fmt: skip
    for scores in (one, other):
        if scores.per_question is None:
            raise RagaugeError.of(
                "incomparable", f"the scores of {scores.trace_name} have no values of questions",
                hint="save them with `ragauge score --full -o FILE.json`",
            )  # fmt: skip
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
    if not (one.per_question.hashes and other.per_question.hashes):
        notes.append("a file has no gold hashes: items that were changed cannot be told")
    return Aligned(
        a=one, b=other, left_out={reason: n for reason, n in reasons.items() if n},
        notes=tuple(notes),
    )  # fmt: skip


def told_of(run: Stored | Scores, name: str = "") -> tuple[Compared, Mapping[str, object]]:
    """What a comparison says of a run, and how it was configured, as far as that is known."""
    if isinstance(run, Scores):
        return Compared(
            name=name, profile=run.profile, gold_name=run.gold_name, trace_name=run.trace_name,
            gold_hash=run.gold_hash,
        ), {"k": list(run.k), "profile": run.profile, "gold_hash": run.gold_hash}  # fmt: skip
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
    store: Store, a: str, b: str, *, overlap: Overlap = "cumulative", strict: bool = False,
    gated: Sequence[str] = (), workers: int | None = None,
) -> Comparison:  # fmt: skip
    """Compare two stored runs, each named by id, tag, or `latest`."""
    runs = [Stored(store, find_run(store, name)) for name in (a, b)]
    aligned = align(*runs, overlap=overlap, strict=strict, workers=workers)
    (one, before), (other, after) = (told_of(run) for run in runs)
    return compare(aligned, one, other, gated=gated, config=(before, after))
