"""Align two stored runs: score both on the gold they share, with every piece matched alike.

    two stored runs -> common gold -> match level of each expected piece -> effective gold of both
    runs -> scores of both runs

`compare.compare` makes deltas and changes of the scores.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from functools import cache
from typing import Any, Literal, NamedTuple

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from ragauge import registry
from ragauge.compare.common_gold import (
    CommonGold,
    Key,
    StoredInputs,
    StoredRun,
    common_gold,
    common_rules,
    documents_of,
    read_inputs,
)
from ragauge.compare.config_causes import names_other_chunker
from ragauge.compare.document_level import document_gold, document_plan, with_document_level
from ragauge.compare.effective_gold import EffectiveGold, expected_pieces, match_items
from ragauge.compare.follow_map import MapFollower
from ragauge.compare.match_levels import grain_of
from ragauge.compare.place_guess import with_guess
from ragauge.compare.places import PlacedRuns, PlaceFindings, placed_runs
from ragauge.compare.same_documents import SameDocuments
from ragauge.compare.sampled_pins import (
    FEWEST_PINS,
    SampledPins,
    estimate_from_pins,
    sampled_pins,
    widened,
)
from ragauge.concurrency import paused_collector
from ragauge.corpus.diff.map_file import read_map
from ragauge.corpus.diff.redirects import Redirects
from ragauge.errors import RagaugeError
from ragauge.model.chunk import Chunks
from ragauge.model.comparison import MATCH_LEVELS, RANKS, IdFacts, Match, MatchLevel
from ragauge.model.gold import GoldItem
from ragauge.model.phrases import count, question_name
from ragauge.model.run import RunRecord, Store
from ragauge.model.scores import PerQuestion, Scores
from ragauge.scoring.engines.choose import Engine, side_engines
from ragauge.scoring.gold_table import GoldTable, gold_table, slice_keys, unique_items
from ragauge.scoring.places import LEAST_EVIDENCE
from ragauge.scoring.results import with_unit_names
from ragauge.scoring.score import score_stored
from ragauge.scoring.scoring_run import InputFacts, ScoringPlan
from ragauge.store.runs import StoredTraces, begin_loading, run_scores
from ragauge.store.snapshot import ScoringRules, plan_of, rules_under
from ragauge.text import some

Overlap = Literal["cumulative", "single"]
UNMATCHED = "not-recognised"
"""Why a question is excluded of which no expected piece is recognised in both runs."""


class ComparedGold(Struct, frozen=True):
    """What both runs were scored with: the items they share, those of each run, and the rules.

    `beside_a` and `beside_b` are the items of each run that were not compared.
    """

    items: Sequence[GoldItem]
    items_a: Sequence[GoldItem]
    items_b: Sequence[GoldItem]
    rules: ScoringRules
    beside_a: Sequence[GoldItem] = ()
    beside_b: Sequence[GoldItem] = ()


class Aligned(Struct, frozen=True, kw_only=True):
    """The scores of both runs on the gold items that they share, each recognised alike.

    `compared_gold` is there for who wants to look at questions one by one. `unchanged`: it is
    known that the gold of what is compared did not change. `every_unit`: the ranks of all that is
    expected are known, not only those of the first evidence. `field_notes` are those of `notes`
    that say which fields of the files are not read. `places` is what is known of questions whose
    evidence stands somewhere in a chunk, `ids` what the ids of both runs have in common.
    """

    a: Scores
    b: Scores
    levels: Mapping[Key, tuple[MatchLevel, ...]] = {}
    counts: Mapping[MatchLevel, int] = {}
    match: Match = "none"
    excluded: Mapping[str, int] = {}
    notes: tuple[str, ...] = ()
    compared_gold: ComparedGold | None = None
    ranked: bool = True
    every_unit: bool = True
    unchanged: bool = True
    field_notes: tuple[str, ...] = ()
    places: PlaceFindings | None = None
    ids: IdFacts | None = None


class AlignOptions(Struct, frozen=True, kw_only=True):
    """How two runs are aligned; what each means is said at `align`."""

    overlap: Overlap = "cumulative"
    strict: bool = False
    workers: int | None = None
    profile: str | None = None
    detailed: bool = False
    migration: str | os.PathLike[str] | None = None
    least_evidence: int = LEAST_EVIDENCE
    guess_place: bool = False


@paused_collector()
def align(
    a: StoredRun,
    b: StoredRun,
    *,
    overlap: Overlap = "cumulative",
    strict: bool = False,
    workers: int | None = None,
    profile: str | None = None,
    detailed: bool = False,
    migration: str | os.PathLike[str] | None = None,
    least_evidence: int = LEAST_EVIDENCE,
    guess_place: bool = False,
) -> Aligned:
    """Score two stored runs on what they share, each expected item matched by one level in both.

    With a `profile`, both are scored by it, whatever they were scored by before. `detailed` keeps
    the items that the questions can be looked at with. `migration` is the map from the corpus of
    run a to that of run b, by which places and gold items are followed. `least_evidence` is how
    many bytes the evidence has at least that stands somewhere in a chunk. `guess_place` adds what
    the metrics were if it stood where the words of the question let it be.
    """
    options = AlignOptions(
        overlap=overlap,
        strict=strict,
        workers=workers,
        profile=profile,
        detailed=detailed,
        migration=migration,
        least_evidence=least_evidence,
        guess_place=guess_place,
    )
    aligned, sampled = _aligned(a, b, options)
    if sampled is None:
        return aligned
    wide, _ = _aligned(a, b, replace(options, strict=False, detailed=False), before_pins=True)
    return _with_estimates(aligned, wide, sampled)


def _aligned(
    a: StoredRun, b: StoredRun, asked: AlignOptions, *, before_pins: bool = False
) -> tuple[Aligned, SampledPins | None]:
    """Two runs aligned, and the random sample of questions whose evidence was narrowed, if any.

    `before_pins`: that sample is scored as if its evidence still were whole chunks.
    """
    overlap, profile, follower = asked.overlap, asked.profile, _follower(asked.migration)
    with ExitStack() as stack:
        # Reading traces back takes longest, and workers do it beside this process: it begins as
        # soon as it is clear that stored values will not do.
        rescoring = RunRescorer(stack, [(run.store, run.record) for run in (a, b)], asked.workers)
        inputs_a = read_inputs(a)
        inputs_b = read_inputs(b, inputs_a)
        names_ids = any(item.relevant for item in inputs_b.items)
        if names_ids and _chunking(a) != _chunking(b):  # the runs themselves say it
            rescoring.begin()

        scoring_a, scoring_b = inputs_a.snapshot.scoring, inputs_b.snapshot.scoring
        rules, notes = common_rules(scoring_a, scoring_b)
        run_ids = a.record.run_id, b.record.run_id
        common = common_gold(inputs_a, inputs_b, run_ids, follower)
        sampled = sampled_pins(common.items)
        items = list(map(widened, common.items)) if before_pins else common.items
        excluded = common.excluded
        keys = {(item.qid, item.turn) for item in items}
        other_profile = profile is not None and {scoring_a.profile, scoring_b.profile} != {profile}
        if other_profile:
            rules, notes = rules_under(rules, profile), []

        same = SameDocuments(
            documents_of(a, inputs_a, keys),
            documents_of(b, inputs_b, keys),
            other_chunker=names_other_chunker(inputs_a.snapshot.system, inputs_b.snapshot.system),
            one_run=a.store is b.store and a.record.run_id == b.record.run_id,
        )
        stored_values_do = (
            not (excluded or notes or other_profile or before_pins)
            and overlap == rules.options.overlap
        )
        if not stored_values_do or (names_ids and not same.all_ids_agree):
            rescoring.begin()
        gold = match_items(items, same, follower=follower, earlier=common.earlier)
        if asked.strict and gold.match != "exact":
            _refuse(gold, items)
        unmatched = _unmatched(gold, items, run_ids)
        if unmatched:
            notes = [*notes, _unmatched_note(items, unmatched)]
            excluded = {**excluded, UNMATCHED: len(unmatched)}
            items, gold = _without(items, gold, unmatched)

        scores_a = scores_b = places = None
        if stored_values_do and not unmatched and gold.items_a == gold.items_b == tuple(items):
            scores_a, scores_b = _stored_scores(a), _stored_scores(b)
        compared = {(item.qid, item.turn) for item in items}
        beside_a, beside_b = (inputs.items_beside(compared) for inputs in (inputs_a, inputs_b))
        if scores_a is None or scores_b is None:
            rules = replace(
                rules,
                options=replace(
                    rules.options, overlap=overlap, least_evidence=asked.least_evidence
                ),
            )
            metrics = tuple(dict.fromkeys((*scoring_b.metrics, *scoring_a.metrics)))
            plan = replace(
                plan_of(rules, metrics=metrics), intervals=False, slices=False, judge_places=False
            )
            ground = _Ground(
                rescoring, items, gold, same, follower, (inputs_a, inputs_b), (beside_a, beside_b)
            )
            placed = _scored_by_places(ground, plan, guess_place=asked.guess_place)
            scores_a, scores_b = (
                replace(scores, unmatched=len(unmatched)) for scores in (placed.a, placed.b)
            )
            places, notes = placed.places, [*notes, *placed.notes]
    field_notes = _field_notes(
        (a.record.run_id, inputs_a.snapshot.inputs), (b.record.run_id, inputs_b.snapshot.inputs)
    )
    scores_a, scores_b = _with_slices((scores_a, scores_b), items, inputs_b)
    return Aligned(
        a=replace(scores_a, gone=_gone(inputs_a, common)),
        b=scores_b,
        levels=_levels_by_key(items, gold),
        counts={level: gold.counts.get(level, 0) for level in MATCH_LEVELS},
        match=gold.match,
        excluded=excluded,
        notes=(*field_notes, *notes, *gold.notes, *_skipped_notes(scores_a, scores_b)),
        field_notes=field_notes,
        compared_gold=ComparedGold(items, gold.items_a, gold.items_b, rules, beside_a, beside_b)
        if asked.detailed
        else None,
        places=places,
        ids=same.ids(proved=gold.match == "exact"),
    ), sampled


class _Ground(NamedTuple):
    """What both runs are scored on, and by whom."""

    rescoring: RunRescorer
    items: Sequence[GoldItem]
    gold: EffectiveGold
    same: SameDocuments
    follower: MapFollower | None
    inputs: tuple[StoredInputs, StoredInputs]
    beside: tuple[Sequence[GoldItem], Sequence[GoldItem]]


def _scored_by_places(ground: _Ground, plan: ScoringPlan, *, guess_place: bool) -> PlacedRuns:
    """Both runs scored anew, at every place where evidence may stand, and by document."""
    gold, items = ground.gold, ground.items
    a, b = _score_both(ground.rescoring, gold, ground.inputs, ground.beside, plan)
    if not gold.items_a == gold.items_b == tuple(items):
        # What was matched by other means than places needs none.
        a, b = map(_without_placing_block, (a, b))
    placed = placed_runs(a, b, plan.selected)
    places = placed.places
    if places is None:
        return placed
    if guess_place:
        placed = with_guess(placed, (a, b), gold.items_a, plan.selected)
    if gold.counts.get("doc"):
        by_document = _score_both(
            ground.rescoring,
            document_gold(items, gold, ground.same, ground.follower),
            ground.inputs,
            ground.beside,
            document_plan(plan),
        )
        levels = _levels_by_key(items, gold)
        runs = with_document_level((placed.a, placed.b), by_document, places, levels)
        placed = placed._replace(a=runs[0], b=runs[1])
    return placed


def _levels_by_key(
    items: Sequence[GoldItem], gold: EffectiveGold
) -> dict[Key, tuple[MatchLevel, ...]]:
    pairs = zip(items, gold.levels, strict=True)
    return {(item.qid, item.turn): levels for item, levels in pairs}


def _score_both(
    rescoring: RunRescorer,
    gold: EffectiveGold,
    inputs: tuple[StoredInputs, StoredInputs],
    beside: tuple[Sequence[GoldItem], Sequence[GoldItem]],
    plan: ScoringPlan,
) -> tuple[Scores, Scores]:
    """Both runs, scored with their effective gold."""
    items = gold.items_a, gold.items_b
    table = _gold_table(items[0], beside[0], inputs[0], plan)
    waiting_a = rescoring.score(0, table, plan)
    if (inputs[0].chunks, beside[0], items[0]) != (inputs[1].chunks, beside[1], items[1]):
        table = _gold_table(items[1], beside[1], inputs[1], plan)
    waiting_b = rescoring.score(1, table, plan)
    a, b = (
        _without_chunks(_with_unit_names(waiting(), effective, run.chunks))
        for waiting, effective, run in zip((waiting_a, waiting_b), items, inputs, strict=True)
    )
    return a, b


def _follower(migration: str | os.PathLike[str] | None) -> MapFollower | None:
    return None if migration is None else MapFollower(Redirects(read_map(migration)))


def _with_estimates(aligned: Aligned, wide: Aligned, sampled: SampledPins) -> Aligned:
    """Runs with what a random sample of pinned questions says of all that were open."""
    if wide.places is None or aligned.a.ends is None or aligned.b.ends is None:
        return aligned
    if not sampled.is_complete:
        note = (
            f"{sampled.pinned} of {count(sampled.drawn, 'question')} that were drawn to be pinned "
            f"are: no estimate (all of them, and {FEWEST_PINS} at least, are needed)"
        )
        return replace(aligned, notes=(*aligned.notes, note))
    estimates = estimate_from_pins((aligned.a, aligned.b), (wide.a, wide.b), wide.places, sampled)
    return replace(
        aligned,
        a=replace(aligned.a, ends=replace(aligned.a.ends, estimates=estimates)),
        b=replace(aligned.b, ends=replace(aligned.b.ends, estimates=estimates)),
    )


def _chunking(run: StoredRun) -> tuple[tuple[str, ...], tuple[str, ...]]:
    return run.evidence.chunkers, run.evidence.policies


def _gone(before: StoredInputs, common: CommonGold) -> tuple[str, ...]:
    """The questions of the first run that the second has no more, or asks otherwise."""
    kept = {(item.qid, item.turn) for item in common.items}
    return tuple(question_name(*key) for key in before.hashes if key not in kept)


def _skipped_notes(a: Scores, b: Scores) -> list[str]:
    return [
        f"{count(scores.tally.trace_skipped, 'result')} of run {run} could not be read"
        for run, scores in (("a", a), ("b", b))
        if scores.tally.trace_skipped
    ]


def _without_placing_block(scores: Scores) -> Scores:
    blocks = tuple(block for block in scores.blocks if block.code != "nothing-placed")
    return replace(scores, blocks=blocks)


def _field_notes(*runs: tuple[str, InputFacts]) -> tuple[str, ...]:
    """What the files of the runs have that nothing reads; what both have is said once."""
    names: dict[str, list[str]] = {}
    for run_id, inputs in runs:
        for note in inputs.field_notes:
            names.setdefault(note, []).append(run_id)
    return tuple(f"{' and '.join(run_ids)}: {note}" for note, run_ids in names.items())


def _unmatched(
    gold: EffectiveGold, items: Sequence[GoldItem], run_ids: tuple[str, str]
) -> frozenset[int]:
    """The items of which no expected piece is recognised in both runs, by their places.

    If that is so of all that expect something, there is nothing to compare.
    """
    nothing = frozenset(
        place for place, levels in enumerate(gold.levels) if levels and set(levels) == {"none"}
    )
    # A chunk of which nothing is known is open, and its question stays; a place is not.
    unmatched = frozenset(
        place
        for place in nothing
        if all(grain_of(piece) == "evidence" for piece in expected_pieces(items[place]))
    )
    if nothing and len(nothing) == sum(map(bool, gold.levels)):
        raise RagaugeError.of(
            "incomparable",
            f"nothing that is expected is recognised in both {run_ids[0]} and {run_ids[1]}: "
            f"{some([items[place].qid for place in sorted(nothing)])}",
            hint="the chunks differ: say where they lie (hits with `doc` and `offsets` or `text`, "
            "or --chunks-a and --chunks-b), or pin the gold set to places with `gold pin`",
        )
    return unmatched


def _unmatched_note(items: Sequence[GoldItem], unmatched: Collection[int]) -> str:
    names = [question_name(items[place].qid, items[place].turn) for place in sorted(unmatched)]
    verb = "was" if len(names) == 1 else "were"
    return (
        f"{count(len(names), 'question')} {verb} left out, as nothing recognises what they "
        f"expect in both runs: {some(names)}"
    )


def _without(
    items: Sequence[GoldItem], gold: EffectiveGold, unmatched: Collection[int]
) -> tuple[list[GoldItem], EffectiveGold]:
    """The items but some, and how they are matched; the counts stay, as they say what was lost."""
    places = [place for place in range(len(items)) if place not in unmatched]
    return [items[place] for place in places], replace(
        gold,
        levels=tuple(gold.levels[place] for place in places),
        items_a=tuple(gold.items_a[place] for place in places),
        items_b=tuple(gold.items_b[place] for place in places),
    )


def _refuse(gold: EffectiveGold, items: Sequence[GoldItem]) -> None:
    """Raise if --strict-chunker-version forbids the comparison."""
    qids = [
        item.qid
        for item, levels in zip(items, gold.levels, strict=True)
        if any(level != "exact" for level in levels)
    ]
    if gold.match == "unproven":
        raise RagaugeError.of(
            "chunker-mismatch",
            f"nothing proves that {count(gold.unproven, 'expected chunk id')} of both runs "
            f"{'means' if gold.unproven == 1 else 'mean'} the same chunk",
            hint="record `chunker_version`, `policy_hash` and `doc_hash` with the hits, or their "
            "spans or texts; or leave out --strict-chunker-version",
        )
    if qids:
        raise RagaugeError.of(
            "chunker-mismatch",
            f"{count(len(qids), 'question')} cannot be compared by chunk ids: "
            f"{', '.join(qids[:5])}{' ...' if len(qids) > 5 else ''}",
            hint="leave out --strict-chunker-version to compare them by span, quote or document",
        )


def _stored_scores(run: StoredRun) -> Scores | None:
    """The scores as they are stored, if they are of the formulas of this version."""
    scores = run_scores(run.store, run.record)
    values = scores.per_question
    if values is None or any(name not in values.metrics for name in RANKS):
        return None
    if values.ends is not None:
        return None  # places are taken in both runs at once
    if values.units is None or not values.units.names:
        return None  # of an older version
    metrics = registry.metrics()
    for name, result in scores.metrics.items():
        metric = metrics.get(name.partition("@")[0])
        if metric is None or metric.version != result.version:
            return None
    return _without_chunks(scores)


def _gold_table(
    items: Sequence[GoldItem], beside: Sequence[GoldItem], inputs: StoredInputs, plan: ScoringPlan
) -> GoldTable:
    return gold_table(
        items,
        plan.profile,
        plan.options,
        name=inputs.snapshot.inputs.gold_name,
        chunks=inputs.chunks,
        slices=False,
        beside=beside,
    )


def _with_slices(
    runs: tuple[Scores, Scores], items: Sequence[GoldItem], inputs: StoredInputs
) -> tuple[Scores, Scores]:
    """Scores that say which questions are in which slice, by the gold as it is written."""
    keys: dict[str, dict[str, list[Key]]] | None = None
    sides = []
    for scores in runs:
        values = scores.per_question
        assert values is not None
        if values.slices:
            sides.append(scores)
            continue
        if keys is None:  # it takes as long as a good part of scoring, and is the same for both
            keys = slice_keys(
                items,
                registry.profile(scores.profile),
                scores.options,
                name=inputs.snapshot.inputs.gold_name,
                chunks=inputs.chunks,
            )
        sides.append(_in_slices_of(scores, values, keys))
    return sides[0], sides[1]


def _in_slices_of(
    scores: Scores, values: PerQuestion, keys: Mapping[str, Mapping[str, Sequence[Key]]]
) -> Scores:
    place_of = {key: place for place, key in enumerate(zip(values.qids, values.turns, strict=True))}
    slices = {
        dimension: {
            part: np.array(sorted(place_of[key] for key in members), np.int64)
            for part, members in parts.items()
        }
        for dimension, parts in keys.items()
    }
    ends = scores.ends
    if ends is not None:  # they are of the same questions, and judged as the run itself is
        low, high = (_in_slices(end, slices) for end in (ends.low, ends.high))
        documents = None if ends.by_document is None else _in_slices(ends.by_document, slices)
        scores = replace(scores, ends=replace(ends, low=low, high=high, by_document=documents))
    return _in_slices(scores, slices)


def _in_slices(scores: Scores, slices: Mapping[str, Mapping[str, Any]]) -> Scores:
    values = scores.per_question
    assert values is not None
    return replace(scores, per_question=replace(values, slices=slices))


def _with_unit_names(scores: Scores, items: Sequence[GoldItem], chunks: Chunks) -> Scores:
    """Scores whose expected units have names: by these they are the same in both runs."""
    values = scores.per_question
    assert values is not None
    ordered = unique_items(items, registry.profile(scores.profile), scores.gold_name)
    return replace(scores, per_question=with_unit_names(values, ordered, chunks, scores.options))


def _without_chunks(scores: Scores) -> Scores:
    """Scores whose list of chunks does not matter: the two runs may have one each."""
    return replace(scores, options=replace(scores.options, chunks=None))


class RunRescorer:
    """Two runs that may have to be scored again; no trace is read before `begin`."""

    def __init__(
        self, stack: ExitStack, runs: Sequence[tuple[Store, RunRecord]], workers: int | None
    ) -> None:
        self.stack = stack
        self.runs = runs
        self.workers = workers
        self.engines: Sequence[Engine] = ()
        self.waiting: list[Callable[[], StoredTraces]] = []

    def begin(self) -> None:
        """Begin to read all runs, if that was not done yet; the caller may go on meanwhile."""
        if self.engines:
            return
        # Threads that wait for workers end when these do: so they are entered first, and left last.
        self.threads = self.stack.enter_context(ThreadPoolExecutor(len(self.runs)))
        results = [run.results for _, run in self.runs]
        self.engines = side_engines(self.stack, results, self.workers)
        self.waiting = [
            cache(begin_loading(self.stack, store, run, engine))  # a run may be scored twice
            for (store, run), engine in zip(self.runs, self.engines, strict=True)
        ]

    def score(self, place: int, table: GoldTable, plan: ScoringPlan) -> Callable[[], Scores]:
        """Begin to score one of the runs again; what is returned waits for it."""
        self.begin()
        return self.threads.submit(self._score, place, table, plan).result

    def _score(self, place: int, table: GoldTable, plan: ScoringPlan) -> Scores:
        source, inputs = self.waiting[place]()
        return score_stored(table, source, plan, given=inputs, engine=self.engines[place])
