"""Running: a target is asked a gold set, and what it answers becomes a stored run with its scores.

Every result is stored under the number of its slot, so a run that was stopped and resumed is the
same as one that was not.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, suppress
from hashlib import sha256
from typing import Any

import msgspec
from msgspec import Struct
from msgspec.structs import replace

import ragauge
from ragauge import registry
from ragauge.corpus.chunk_list import digest
from ragauge.corpus.lookup import Lookup
from ragauge.corpus.manifest import read_corpus
from ragauge.errors import RagaugeError
from ragauge.files.open import PathLike
from ragauge.files.ranges import Source
from ragauge.files.redaction import REDACTED, redacted, redacted_url
from ragauge.formats.detect import Choice, choose, cutoffs
from ragauge.formats.load import name_of, open_source, read_gold
from ragauge.formats.traces import Reader
from ragauge.gold.locate import locator
from ragauge.model.chunk import Chunk
from ragauge.model.embedder import Embedding
from ragauge.model.gold import GoldItem
from ragauge.model.options import Options
from ragauge.model.payloads import (
    freeze_chunks,
    freeze_gold,
    gold_hash,
    gold_key,
    item_hash,
    thaw_chunks,
    thaw_gold,
)
from ragauge.model.phrases import count
from ragauge.model.run import RunRecord, Store
from ragauge.model.scores import Scores
from ragauge.model.semantic import Bands
from ragauge.model.target import Doubting, Target, TargetOptions
from ragauge.model.trace import Trace
from ragauge.run.ask import Kept, Limits, Progress, Runner
from ragauge.run.finish import Keeper, finish_run
from ragauge.run.resume import rest_of, take_back
from ragauge.run.slots import Seeds, Slots, chosen, refuse_unasked, with_turns_before
from ragauge.scoring import score
from ragauge.scoring.gold_table import gold_table, unique_items
from ragauge.scoring.remeasure import opened_remeasurer
from ragauge.scoring.scoring_run import Inputs, Run, ScoringPlan
from ragauge.scoring.tasks.job import Job
from ragauge.store.runs import Wanted, begin_run, now, refuse_tag
from ragauge.store.snapshot import plan_of, read_snapshot, snapshot_of
from ragauge.text import plain


class Asked(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What of a run must stay the same until its end, as its snapshot tells it."""

    address: str
    k: int
    options: dict[str, Any] = {}
    corpus: str | None = None
    chunks: str | None = None
    embedder: str | None = None
    embed: str | None = None
    seeds: Seeds = ()
    filters: tuple[str, ...] = ()
    limit: int | None = None
    timing: bool = True

    def target_options(self, timeout: float) -> TargetOptions:
        """What the target is opened with."""
        return TargetOptions(
            k=self.k,
            timeout=timeout,
            corpus=self.corpus,
            chunks=self.chunks,
            embedder=self.embedder,
            settings=self.options,
        )


class Measuring(Struct, frozen=True, kw_only=True):
    """How the answers are scored; see `pipeline.score`."""

    profile: str | None = None
    dialect: str = "auto"
    cutoffs: tuple[int, ...] | None = None
    metrics: Sequence[str] = ()
    also: Sequence[str] = ()
    gates: score.GateMaker | None = None
    refusal_patterns: tuple[str, ...] = ()
    options: Options = Options()
    intervals: bool = True
    count_repeats: bool = False


class Material(Struct, frozen=True, kw_only=True):
    """What is asked and how it will be scored."""

    items: list[GoldItem]
    chunks: dict[str, Chunk]
    plan: ScoringPlan
    inputs: Inputs

    @property
    def gold_hash(self) -> str:
        """A hash of what the gold items say."""
        unique = unique_items(self.items, self.plan.profile, self.inputs.gold_name)
        return gold_hash((item.qid, item.turn, item_hash(item)) for item in unique)

    def slots(self, seeds: Seeds) -> Slots:
        """The slots; traces that are joined by the question alone cannot tell paraphrases."""
        by_question = self.plan.profile.join.by == "question"
        items = (
            [replace(item, paraphrases=()) for item in self.items] if by_question else self.items
        )
        return Slots(items, seeds)

    def job(self) -> Job:
        """What packs traces; it fails where the gold set is at odds with itself."""
        table = gold_table(
            self.items,
            self.plan.profile,
            self.plan.options,
            name=self.inputs.gold_name,
            chunks=self.chunks,
        )
        run = Run(
            self.plan, table, gold_name=self.inputs.gold_name, trace_name=self.inputs.trace_name
        )
        job = run.job(Source("", "", 0, 0, "lines", ()))
        return replace(job, qids=tuple(table.qids))


def shown_address(address: str) -> str:
    """An address without secrets, as it is stored and shown."""
    scheme, _, rest = address.partition(":")
    if scheme == "command":
        with suppress(ValueError):
            words = shlex.split(rest)
            if redacted(words) != words:
                return f"command:{shlex.join(redacted(words))}"
    return plain(redacted_url(address) if scheme.startswith("http") else str(redacted(address)))


def open_target(address: str, options: TargetOptions) -> Target:
    """Open the target behind an address; options that name a scheme's own things go with it."""
    kinds = registry.targets()
    scheme, colon, rest = address.partition(":")
    if not colon or scheme not in kinds:
        raise RagaugeError.of(
            "bad-target",
            f"`{shown_address(address)}` is no target",
            hint=f"known: {', '.join(f'{each}:' for each in sorted(kinds))}; for example "
            "python:module:function",
        )
    return kinds[scheme].open(rest, replace(options, scheme=scheme))


def material(gold: PathLike, asked: Asked, measuring: Measuring) -> Material:
    """Read the gold set, choose what is asked of it, and plan how it is scored."""
    with ExitStack() as stack:
        source = open_source(stack, gold)
        choice = choose(measuring.dialect, measuring.profile, gold=source)
        lookup = None if asked.corpus is None else Lookup(read_corpus(asked.corpus))
        locate = None if lookup is None else locator(lookup)
        loaded = read_gold(gold, source, choice, locate=locate)
        loaded.stop_on_problems()
        name = name_of(gold, source, "<gold>")
        wanted = chosen(loaded.items, asked.filters, asked.limit)
        items = with_turns_before(loaded.items, wanted)
        if not items:
            raise RagaugeError.of(
                "nothing-measured",
                f"there is nothing to ask in {name}",
                hint="no item passes all filters" if asked.filters else "the gold set is empty",
            )
        refuse_unasked(items, name)
        chunks = score.known_chunks(stack, asked.chunks, lookup, gold=(lambda: items, name))
        notes = [f"{name}: {note}" for note in source.notes] if source is not None else []
        if choice.note:
            notes.append(choice.note)
        if len(items) < len(loaded.items):
            notes.append(f"{len(items)} of {len(loaded.items)} gold items were asked")
        if earlier := len(items) - len(wanted):
            whose = "a conversation was" if earlier == 1 else "conversations were"
            notes.append(f"{count(earlier, 'earlier turn')} of {whose} asked too")
        return Material(
            items=items,
            chunks=chunks,
            plan=_plan(choice, measuring, chunks),
            inputs=Inputs(
                gold_name=name, trace_name=shown_address(asked.address), notes=tuple(notes)
            ),
        )


def _plan(choice: Choice, measuring: Measuring, chunks: dict[str, Chunk]) -> ScoringPlan:
    """The plan of a run whose traces are not there yet."""
    profile = choice.profile
    ks = cutoffs(measuring.cutoffs, profile)
    wanted = [profile.meant(name) for name in measuring.metrics] or list(profile.metrics)
    for gate in measuring.gates(profile, ks) if measuring.gates is not None else ():
        wanted += [gate.metric, *([gate.instead] if gate.instead is not None else [])]
    return ScoringPlan(
        profile=profile,
        dialect=choice.dialect,
        own=choice.own,
        k=ks,
        selected=registry.select([*wanted, *measuring.also], ks),
        options=replace(
            measuring.options,
            refusal_patterns=measuring.refusal_patterns,
            chunks=digest(chunks) if chunks else None,
        ),
        patterns=measuring.refusal_patterns,
        intervals=measuring.intervals,
        count_repeats=measuring.count_repeats,
    )


def start_run(
    store: Store, asked: Asked, given: Material, about: Mapping[str, Any], wanted: Wanted
) -> RunRecord:
    """Add a run with its gold set and its chunks; it is incomplete until it is finished."""
    for tag in wanted.tags:
        refuse_tag(tag)
    created_at = now() if wanted.created_at is None else wanted.created_at
    rows = freeze_gold(given.items)
    stored = replace(asked, address=shown_address(asked.address))
    system = {**wanted.system, "target": {**about, **msgspec.to_builtins(stored)}}
    stamp = created_at.replace("-", "").replace(":", "")
    said = sha256(f"{given.gold_hash}{stored}".encode()).hexdigest()[:6]
    run = RunRecord(
        run_id=wanted.run_id or f"{stamp}-{said}",
        suite=wanted.suite,
        profile=given.plan.profile.name,
        created_at=created_at,
        commit_hash=wanted.commit_hash,
        gold_hash=given.gold_hash,
        gold_key=gold_key(rows),
        chunks=digest(given.chunks) if given.chunks else None,
        snapshot=snapshot_of(
            given.plan, given.inputs, system=system, ragauge_version=ragauge.__version__
        ).encoded(),
    )
    given.job()  # before anything is stored: the gold set may be at odds with itself
    run = begin_run(store, run, chosen=wanted.run_id is not None)
    store.add_gold(run.gold_key, rows)
    if run.chunks is not None:
        store.add_chunks(run.chunks, freeze_chunks(given.chunks))
    for tag in wanted.tags:
        store.tag(tag, run.run_id)
    return run


class Resumed(Struct, frozen=True):
    """A stored run that can be gone on with: how it was asked, and what it is asked."""

    run: RunRecord
    asked: Asked
    material: Material


def resumed(store: Store, run: RunRecord, *, gold: PathLike | None = None, **same: Any) -> Resumed:
    """What is known of a run that was stopped; `same` is what is said again, and must agree."""
    snapshot = read_snapshot(run.snapshot, run.run_id)
    try:
        asked = msgspec.convert(snapshot.system.get("target"), Asked)
    except msgspec.ValidationError as error:
        raise _refused(
            run, "was not made by `ragauge run`", "it has no questions to ask"
        ) from error
    for name, value in same.items():
        known = getattr(asked, name)
        if value is None and REDACTED in str(known):
            raise _refused(
                run, f"has a secret in its {name}, which is not stored", f"give the {name} again"
            )
        if value is None:
            continue
        shown = shown_address(value) if name == "address" else redacted(value)
        if msgspec.to_builtins(shown) != msgspec.to_builtins(known):
            raise _refused(
                run,
                f"has {_told(name, known)}, and {_told(name, shown)} was given",
                "leave it out, or begin a new run",
            )
    asked = replace(asked, **{name: value for name, value in same.items() if value is not None})
    given = Material(
        items=thaw_gold(store.gold(run.gold_key), run.run_id),
        chunks={} if run.chunks is None else thaw_chunks(store.chunks(run.chunks), run.run_id),
        plan=plan_of(snapshot.scoring),
        inputs=snapshot.inputs,
    )
    if gold is not None:
        rules = snapshot.scoring
        again = material(gold, asked, Measuring(profile=rules.profile, dialect=rules.dialect))
        if again.gold_hash != run.gold_hash:
            raise _refused(
                run,
                f"was begun with another gold set than {again.inputs.gold_name}",
                "leave --gold out to ask what the run began with, or begin a new run",
            )
    return Resumed(run, asked, given)


def _told(name: str, value: object) -> str:
    return f"the target `{value}`" if name == "address" else f"{name} {value}"


def _refused(run: RunRecord, words: str, hint: str) -> RagaugeError:
    return RagaugeError.of("cannot-resume", f"the run `{run.run_id}` {words}", hint=hint)


def ask_all(
    store: Store,
    run: RunRecord,
    asked: Asked,
    given: Material,
    target: Target,
    limits: Limits,
    *,
    retry_errors: bool = False,
    told: Callable[[Progress], None] = lambda _: None,
    embed: Embedding | None = None,
    noted: Callable[[str], None] = lambda _: None,
) -> Progress:
    """Ask every slot that has no result yet, and store each answer when it arrives.

    With `retry_errors`, slots that have an error are asked again, and the turns that follow them.
    With `embed`, answers are stored with ΔS by that embedder; `noted` is told what is to be known.
    """
    _refuse_changed(run, target)
    slots = given.slots(asked.seeds)
    rest = rest_of(store, run, slots, retry_errors=retry_errors)
    if run.status == "complete" and not rest.total:
        hint = "it has no errors either" if retry_errors else "--retry-errors asks errors again"
        raise _refused(run, "is complete", hint)
    limits = replace(limits, timing=asked.timing)
    job = given.job()
    keeper = Keeper(store, run, job, replacing=False)
    reader = Reader(given.plan.dialect, own=given.plan.own)
    known = rest.answers_before(store, run)
    with ExitStack() as stack:
        measured = None
        if embed is not None:
            measured = opened_remeasurer(stack, embed, given.items, given.chunks, asked.corpus)

        def keep(batch: Sequence[Trace]) -> Kept:
            return keeper.keep(batch if measured is None else list(measured.traces(batch)))

        runner = Runner(target, reader, limits, keep, total=rest.total, told=told, noted=noted)
        if run.status == "complete" or rest.stale:
            store.reopen(run.run_id, dropping=rest.stale)
        progress = runner.run(slots.strands(rest.wanted), rest.wanted, known)
        if isinstance(target, Doubting):
            again = Keeper(store, run, job, replacing=True)
            progress.errors += take_back(store, run, slots, target.settle(), again)
        for note in measured.notes() if measured is not None else ():
            noted(note)
        return progress


def _refuse_changed(run: RunRecord, target: Target) -> None:
    """Raise if the target says other things of itself than when the run was begun."""
    stored = read_snapshot(run.snapshot, run.run_id).system.get("target", {})
    about = msgspec.json.decode(msgspec.json.encode(redacted(dict(target.about))))
    changed = [
        name
        for name, value in about.items()
        if name not in Asked.__struct_fields__ and stored.get(name) != value
    ]
    if changed:
        words = f"was begun with another `{changed[0]}` of its target: {stored.get(changed[0])}"
        raise _refused(run, words, f"it is {about[changed[0]]} now: begin a new run")


def complete(
    store: Store, run: RunRecord, given: Material, bands: Mapping[str, Bands] | None = None
) -> Scores:
    """Score a run that has all its results, and mark it complete."""
    return finish_run(store, run, given.job(), given.items, bands)
