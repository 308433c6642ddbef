"""Versus: two runs are brought on common ground, whatever became of their chunks, and compared."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from typing import Literal

from msgspec import Struct
from msgspec.structs import replace

from ragauge import registry
from ragauge.compare.common_gold import (
    Key,
    Known,
    Stored,
    common_items,
    known_of,
    metrics_of,
    rules_of,
    set_aside,
    side_of,
)
from ragauge.compare.follow_map import Follower
from ragauge.compare.match_levels import Climber, Ladder
from ragauge.concurrency import uncollected
from ragauge.corpus.diff.map_file import read_map
from ragauge.corpus.diff.redirects import Redirects
from ragauge.errors import RagaugeError
from ragauge.model.chunk import Chunk
from ragauge.model.comparison import RANKS, RUNGS, Match, Rung
from ragauge.model.evidence import Evidence
from ragauge.model.gold import GoldItem
from ragauge.model.phrases import count, question_name
from ragauge.model.run import RunRecord, Store
from ragauge.model.scores import Scores
from ragauge.scoring.gold_table import GoldTable, gold_table
from ragauge.scoring.inputs import Engine, side_engines
from ragauge.scoring.score import score_stored
from ragauge.scoring.scoring_run import ScoringPlan
from ragauge.store.runs import StoredTraces, begin_loading, run_scores
from ragauge.store.snapshot import ScoringRules, plan_of, rules_under
from ragauge.text import some

Overlap = Literal["cumulative", "single"]
_Items = tuple[dict[str, Chunk], Sequence[GoldItem], Sequence[GoldItem]]
UNMATCHED = "not-recognised"
"""Why a question is left out of which no expected piece is recognised in both runs."""


class Ground(Struct, frozen=True, kw_only=True):
    """What both runs were scored with: the items they share, those of each side, and the rules.

    `beside_a` and `beside_b` are the items of each side that were not compared.
    """

    items: Sequence[GoldItem]
    items_a: Sequence[GoldItem]
    items_b: Sequence[GoldItem]
    rules: ScoringRules
    beside_a: Sequence[GoldItem] = ()
    beside_b: Sequence[GoldItem] = ()


class Aligned(Struct, frozen=True, kw_only=True):
    """The scores of both runs on the gold items that they share, each recognised alike.

    `ground` is there for who wants to look at questions one by one. `unchanged`: it is known that
    the gold of what is compared did not change.
    """

    a: Scores
    b: Scores
    rungs: Mapping[Key, tuple[Rung, ...]] = {}
    counts: Mapping[Rung, int] = {}
    match: Match = "none"
    left_out: Mapping[str, int] = {}
    notes: tuple[str, ...] = ()
    ground: Ground | None = None
    ranked: bool = True
    unchanged: bool = True


@uncollected()
def align(
    a: Stored,
    b: Stored,
    *,
    overlap: Overlap = "cumulative",
    strict: bool = False,
    workers: int | None = None,
    profile: str | None = None,
    detailed: bool = False,
    migration: str | os.PathLike[str] | None = None,
) -> Aligned:
    """Score two stored runs on what they share, each expected item matched by one rung on both.

    With a `profile`, both are scored by it, whatever they were scored by before. `detailed` keeps
    the items that the questions can be looked at with. `migration` is the map from the corpus of
    run a to that of run b, by which places and gold items are followed.
    """
    follower = None if migration is None else Follower(Redirects(read_map(migration)))
    with ExitStack() as stack:
        loading = Reloading(stack, [(run.store, run.record) for run in (a, b)], workers)
        known_a = known_of(a, None)
        known_b = known_of(b, known_a)
        by_ids = any(item.relevant for item in known_b.items)
        if by_ids and _recut(a.evidence, b.evidence):
            loading.begin()  # ids will not do: the traces are read while all else is thought over
        rules, notes = rules_of(known_a.snapshot.scoring, known_b.snapshot.scoring)
        items, earlier, left_out = common_items(known_a, known_b, a, b, follower)
        keys = {(item.qid, item.turn) for item in items}
        sides = side_of(a, known_a, keys), side_of(b, known_b, keys)
        climber = Climber(*sides, follower=follower, earlier=earlier)
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
        unmatched = _unmatched(ladder, items, a, b)
        if unmatched:
            fitting = False
            notes = [*notes, _unmatched_note(items, unmatched)]
            left_out = {**left_out, UNMATCHED: len(unmatched)}
            items, ladder = _without(items, ladder, unmatched)
            keys = {(item.qid, item.turn) for item in items}
        one = other = None
        if fitting and ladder.items_a == ladder.items_b == tuple(items):
            one, other = _as_stored(a), _as_stored(b)
        if one is None or other is None:
            rules = replace(rules, options=replace(rules.options, overlap=overlap))
            names = metrics_of(known_a.snapshot.scoring, known_b.snapshot.scoring)
            plan = replace(plan_of(rules, metrics=names), intervals=False, slices=False)
            mine, theirs = (
                (known.chunks, set_aside(known, keys), items_of_side)
                for known, items_of_side in ((known_a, ladder.items_a), (known_b, ladder.items_b))
            )
            table = _table(mine, plan, known_a)
            first = loading.score(0, table, plan)
            if mine != theirs:
                table = _table(theirs, plan, known_b)
            second = loading.score(1, table, plan)
            one, other = (
                replace(_unplaced(found()), unmatched=len(unmatched)) for found in (first, second)
            )
    rungs = {(item.qid, item.turn): found for item, found in zip(items, ladder.rungs, strict=True)}
    skipped = [
        f"{count(scores.tally.trace_skipped, 'result')} of run {side} could not be read"
        for side, scores in (("a", one), ("b", other))
        if scores.tally.trace_skipped
    ]
    ground = None
    if detailed:
        ground = Ground(
            items=items,
            items_a=ladder.items_a,
            items_b=ladder.items_b,
            rules=rules,
            beside_a=set_aside(known_a, keys),
            beside_b=set_aside(known_b, keys),
        )
    return Aligned(
        a=one,
        b=other,
        rungs=rungs,
        counts={rung: ladder.counts.get(rung, 0) for rung in RUNGS},
        match=ladder.match,
        left_out=left_out,
        notes=(*notes, *ladder.notes, *skipped),
        ground=ground,
    )


def _unmatched(ladder: Ladder, items: Sequence[GoldItem], a: Stored, b: Stored) -> frozenset[int]:
    """The items of which no expected piece is recognised in both runs, by their places.

    If that is so of all that expect something, there is nothing to compare.
    """
    found = frozenset(
        place for place, rungs in enumerate(ladder.rungs) if rungs and set(rungs) == {"none"}
    )
    if found and len(found) == sum(map(bool, ladder.rungs)):
        names = f"{a.record.run_id} and {b.record.run_id}"
        raise RagaugeError.of(
            "incomparable",
            f"nothing that is expected is recognised in both {names}: "
            f"{some([items[place].qid for place in sorted(found)])}",
            hint="the chunks differ: say where they lie (hits with `doc` and `offsets` or `text`, "
            "or --chunks-a and --chunks-b), or pin the gold set to places with `gold pin`",
        )
    return found


def _unmatched_note(items: Sequence[GoldItem], unmatched: Collection[int]) -> str:
    names = [question_name(items[place].qid, items[place].turn) for place in sorted(unmatched)]
    verb = "was" if len(names) == 1 else "were"
    return (
        f"{count(len(names), 'question')} {verb} left out, as nothing recognises what they "
        f"expect in both runs: {some(names)}"
    )


def _without(
    items: Sequence[GoldItem], ladder: Ladder, places: Collection[int]
) -> tuple[list[GoldItem], Ladder]:
    """The items but some, and what the ladder says of them; its counts stay."""
    kept = [place for place in range(len(items)) if place not in places]
    rungs, one, other = (
        tuple(each[place] for place in kept)
        for each in (ladder.rungs, ladder.items_a, ladder.items_b)
    )
    return [items[place] for place in kept], replace(
        ladder, rungs=rungs, items_a=one, items_b=other
    )


def _recut(a: Evidence, b: Evidence) -> bool:
    """Whether the runs themselves say that their chunks were made in different ways."""
    return (a.chunkers, a.policies) != (b.chunkers, b.policies)


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


def _table(side: _Items, plan: ScoringPlan, known: Known) -> GoldTable:
    chunks, beside, items = side
    return gold_table(
        items,
        plan.profile,
        plan.options,
        name=known.snapshot.inputs.gold_name,
        chunks=chunks,
        slices=False,
        beside=beside,
    )


def _unplaced(scores: Scores) -> Scores:
    """Scores whose list of chunks does not matter: the two runs may have one each."""
    return replace(scores, options=replace(scores.options, chunks=None))


class Reloading:
    """Runs that may have to be scored again; nothing is read before it has begun."""

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
            begin_loading(self.stack, store, run, engine)
            for (store, run), engine in zip(self.runs, self.engines, strict=True)
        ]

    def score(self, place: int, table: GoldTable, plan: ScoringPlan) -> Callable[[], Scores]:
        """Begin to score one of the runs again; what is returned waits for it."""
        self.begin()
        return self.threads.submit(self._score, place, table, plan).result

    def _score(self, place: int, table: GoldTable, plan: ScoringPlan) -> Scores:
        source, given = self.waiting[place]()
        return score_stored(table, source, plan, given=given, engine=self.engines[place])
