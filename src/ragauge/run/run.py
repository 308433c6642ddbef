"""`ragauge run`: a target is asked a gold set, and its answers become a stored run with scores.

Every result is stored under the number of its slot, so a run that was stopped and resumed is the
same as one that was not.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, suppress
from typing import Any

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from ragauge import registry
from ragauge.corpus.chunk_list import chunk_list_digest
from ragauge.corpus.lookup import Lookup
from ragauge.corpus.manifest import read_corpus
from ragauge.errors import RagaugeError
from ragauge.files.open import PathLike
from ragauge.files.ranges import Source
from ragauge.files.redaction import REDACTED, SecretValues, redacted
from ragauge.formats.detect import FormatChoice, choose, cutoffs
from ragauge.formats.field_map import NO_FIELDS, FieldMaps, Stage
from ragauge.formats.load import name_of, open_source, read_gold
from ragauge.formats.traces import RowReader
from ragauge.gold.locate import locator
from ragauge.model.chunk import Chunk
from ragauge.model.embedder import Embedding
from ragauge.model.error_reasons import counted_reasons
from ragauge.model.field_spellings import FIRST_HITS, LAST_HITS
from ragauge.model.gold import GoldItem
from ragauge.model.options import Options
from ragauge.model.payloads import UNREADABLE, gold_hash, item_hash, thaw, thaw_gold, trace_of
from ragauge.model.phrases import count
from ragauge.model.run import RunRecord, Store
from ragauge.model.scores import Scores, StageDelta
from ragauge.model.semantic import Bands
from ragauge.model.target import RevisingTarget, Target, TargetKind, TargetOptions
from ragauge.model.trace import Trace
from ragauge.run.answer_to_trace import FirstStageReader
from ragauge.run.ask import BatchCounts, Limits, Progress, Runner
from ragauge.run.finish import ResultWriter, finish_run
from ragauge.run.resume import remaining_slots, withdraw_answers
from ragauge.run.secrets import configured_secrets, shown_address, shown_options
from ragauge.run.slots import (
    GoldSlots,
    Seeds,
    choose_items,
    refuse_without_question,
    with_turns_before,
)
from ragauge.scoring import score
from ragauge.scoring.gold_table import gold_table, unique_items
from ragauge.scoring.remeasure import opened_remeasurer
from ragauge.scoring.rerank_deltas import METRICS, stage_deltas
from ragauge.scoring.scoring_run import InputFacts, ScoringPlan, ScoringRun
from ragauge.scoring.tasks.job import Job
from ragauge.store.runs import RunDescription, add_run, stored_chunks
from ragauge.store.snapshot import plan_of, read_snapshot, snapshot_of
from ragauge.trust.begun_runs import is_own_run, remember_run
from ragauge.trust.needs import embedder_leads_outside, target_leads_outside


class Asked(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What must stay the same until the end of a run; stored in its snapshot as `target`."""

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
    stage: Stage = "last"

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


class ScoringRequest(Struct, frozen=True, kw_only=True):
    """How the answers are scored; see `scoring.score`."""

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
    fields: FieldMaps = NO_FIELDS
    ignore_fields: tuple[str, ...] = ()


class RunInput(Struct, frozen=True, kw_only=True):
    """The gold items that are asked, and how the answers will be scored."""

    items: list[GoldItem]
    chunks: dict[str, Chunk]
    plan: ScoringPlan
    inputs: InputFacts

    @property
    def gold_hash(self) -> str:
        """A hash of what the gold items say."""
        unique = unique_items(self.items, self.plan.profile, self.inputs.gold_name)
        return gold_hash((item.qid, item.turn, item_hash(item)) for item in unique)

    def slots(self, seeds: Seeds) -> GoldSlots:
        """The slots that are asked, with paraphrases where traces can be joined with them."""
        # By the question alone, a paraphrase would find no gold item.
        by_question = self.plan.profile.join.by == "question"
        items = (
            [replace(item, paraphrases=()) for item in self.items] if by_question else self.items
        )
        return GoldSlots(items, seeds)

    def job(self) -> Job:
        """What packs traces; it fails where the gold set is at odds with itself."""
        table = gold_table(
            self.items,
            self.plan.profile,
            self.plan.options,
            name=self.inputs.gold_name,
            chunks=self.chunks,
        )
        run = ScoringRun(
            self.plan, table, gold_name=self.inputs.gold_name, trace_name=self.inputs.trace_name
        )
        job = run.job(Source("", "", 0, 0, "lines", ()))
        return replace(job, qids=tuple(table.qids))


def target_kind(address: str) -> TargetKind:
    """The kind of target that an address names."""
    kinds = registry.targets()
    scheme, colon, _ = address.partition(":")
    if not colon or scheme not in kinds:
        raise RagaugeError.of(
            "bad-target",
            f"`{shown_address(address)}` is no target",
            hint=f"known: {', '.join(f'{kind}:' for kind in sorted(kinds))}; for example "
            "python:module:function",
        )
    return kinds[scheme]


def open_target(address: str, options: TargetOptions) -> Target:
    """Open the target behind an address."""
    kind = target_kind(address)
    scheme, _, rest = address.partition(":")
    try:
        return kind.open(rest, replace(options, scheme=scheme))
    except RagaugeError as error:
        secrets = configured_secrets(address, options.settings)
        problems = [
            replace(problem, message=secrets.hide(problem.message), hint=secrets.hide(problem.hint))
            for problem in error.problems
        ]
        raise RagaugeError(problems, total=error.total) from error


def read_run_input(gold: PathLike, asked: Asked, measuring: ScoringRequest) -> RunInput:
    """Read the gold set, choose what is asked of it, and plan how it is scored."""
    with ExitStack() as stack:
        source = open_source(stack, gold, fields=measuring.fields)
        choice = choose(measuring.dialect, measuring.profile, gold=source)
        lookup = None if asked.corpus is None else Lookup(read_corpus(asked.corpus))
        locate = None if lookup is None else locator(lookup)
        loaded = read_gold(gold, source, choice, locate=locate)
        loaded.stop_on_problems()
        name = name_of(gold, source, "<gold>")
        wanted = choose_items(loaded.items, asked.filters, asked.limit)
        items = with_turns_before(loaded.items, wanted)
        if not items:
            message = f"there is nothing to ask in {name}"
            hint = "no item passes all filters" if asked.filters else "the gold set is empty"
            raise RagaugeError.of("nothing-measured", message, hint=hint)
        refuse_without_question(items, name)
        chunks = score.known_chunks(stack, asked.chunks, lookup, gold=(lambda: items, name))
        file_notes = source.notes if source is not None else ()
        notes = [f"{name}: {note}" for note in (*file_notes, *loaded.notes)]
        if choice.note:
            notes.append(choice.note)
        if len(items) < len(loaded.items):
            notes.append(f"{len(items)} of {len(loaded.items)} gold items were asked")
        if earlier := len(items) - len(wanted):
            whose = "a conversation was" if earlier == 1 else "conversations were"
            notes.append(f"{count(earlier, 'earlier turn')} of {whose} asked too")
        return RunInput(
            items=items,
            chunks=chunks,
            plan=_plan(choice, measuring, chunks),
            inputs=InputFacts(
                gold_name=name,
                trace_name=shown_address(asked.address),
                notes=tuple(notes),
                gold_fields=score.fields_of(gold, source, "gold", measuring.ignore_fields),
            ),
        )


def _plan(choice: FormatChoice, measuring: ScoringRequest, chunks: dict[str, Chunk]) -> ScoringPlan:
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
            chunks=chunk_list_digest(chunks) if chunks else None,
        ),
        intervals=measuring.intervals,
        count_repeats=measuring.count_repeats,
        asked_k=measuring.cutoffs is not None,
    )


def start_run(
    store: Store,
    asked: Asked,
    run_input: RunInput,
    target: Target,
    wanted: RunDescription,
) -> RunRecord:
    """Add a run with its gold set and its chunks; it is incomplete until it is finished."""
    stored = replace(asked, address=shown_address(asked.address))
    shown = replace(stored, options=shown_options(asked.options))
    secrets = configured_secrets(asked.address, asked.options, target)
    about = secrets.hide_in({**wanted.system, "target": dict(target.about)})
    system = {**about, "target": {**about["target"], **msgspec.to_builtins(shown)}}
    snapshot = snapshot_of(run_input.plan, run_input.inputs, system=system)
    hashed = run_input.gold_hash
    run_input.job()  # before anything is stored: the gold set may be at odds with itself
    # The repr of the struct, so also the name of its class, is a part of the id.
    content = f"{hashed}{stored}"
    items, chunks = run_input.items, run_input.chunks
    run = add_run(store, wanted, snapshot, items, chunks, gold_hash=hashed, content=content)
    for tag in wanted.tags:
        store.tag(tag, run.run_id)
    remember_run(run.run_id, _encoded(_asked_of(run)))
    return run


class Resumed(Struct, frozen=True):
    """A stored run that can go on: how it was asked, and its gold set."""

    run: RunRecord
    asked: Asked
    run_input: RunInput


def resumed(
    store: Store,
    run: RunRecord,
    *,
    gold: PathLike | None = None,
    fields: FieldMaps = NO_FIELDS,
    **same: Any,
) -> Resumed:
    """Load a run that was stopped; `same` are settings given again, which must agree."""
    snapshot = read_snapshot(run.snapshot, run.run_id)
    asked = _asked_of(run)
    _refuse_unless_begun(run, asked, same)
    for name, value in same.items():
        # What is stored has no secrets, so what is given again is compared without them.
        stored = getattr(asked, name)
        if value is None and REDACTED in str(stored):
            raise _refused(
                run, f"has a secret in its {name}, which is not stored", f"give the {name} again"
            )
        if value is None:
            continue
        repeated = _SHOWN.get(name, redacted)(value)
        if msgspec.to_builtins(repeated) != msgspec.to_builtins(stored):
            raise _refused(
                run,
                f"has {_setting(name, stored)}, and {_setting(name, repeated)} was given",
                "leave it out, or begin a new run",
            )
    asked = replace(asked, **{name: value for name, value in same.items() if value is not None})
    items = thaw_gold(store.gold(run.gold_key), run.run_id)
    if not items:  # an older ragauge stored the gold set in a second transaction
        hint = f"begin a new run; `ragauge runs delete {run.run_id}` removes this one"
        raise _refused(run, "was stopped before its gold set was stored", hint)
    run_input = RunInput(
        items=items,
        chunks=stored_chunks(store, run),
        plan=plan_of(snapshot.scoring),
        inputs=snapshot.inputs,
    )
    if gold is not None:
        rules = snapshot.scoring
        again = read_run_input(
            gold,
            asked,
            ScoringRequest(profile=rules.profile, dialect=rules.dialect, fields=fields),
        )
        if again.gold_hash != run.gold_hash:
            raise _refused(
                run,
                f"was begun with another gold set than {again.inputs.gold_name}",
                "leave --gold out to ask what the run began with, or begin a new run",
            )
    return Resumed(run, asked, run_input)


_SHOWN: Mapping[str, Callable[[Any], Any]] = {"address": shown_address, "options": shown_options}
"""How settings are stored that may hold a secret."""


_FLAGS = {
    "address": "--target",
    "options": "--option",
    "embedder": "--embedder",
    "embed": "--embed",
}


def _asked_of(run: RunRecord) -> Asked:
    """What a stored run was begun with, without its secrets."""
    try:
        return msgspec.convert(read_snapshot(run.snapshot, run.run_id).system.get("target"), Asked)
    except msgspec.ValidationError as error:
        raise _refused(
            run, "was not made by `ragauge run`", "it has no questions to ask"
        ) from error


def _encoded(asked: Asked) -> bytes:
    return msgspec.json.encode(asked, order="deterministic")


def _refuse_unless_begun(run: RunRecord, asked: Asked, repeated: Mapping[str, Any]) -> None:
    """Refuse to connect or to run code for a stored run that is not the user's own.

    A store may come from anybody, as may a checkout with a `ragauge.db`. What the user repeats on
    the command line is the user's own again.
    """
    if is_own_run(run.run_id, _encoded(asked)):
        return
    outside = {
        "address": target_leads_outside(asked.address),
        "options": target_leads_outside(asked.address),
        "embedder": asked.embedder is not None and embedder_leads_outside(asked.embedder),
        "embed": asked.embed is not None and embedder_leads_outside(asked.embed),
    }
    for name, flag in _FLAGS.items():
        value = getattr(asked, name)
        if not value or not outside[name] or repeated.get(name) is not None:
            continue
        texts = [f"{key}={one}" for key, one in value.items()] if name == "options" else [value]
        again = " ".join(f"{flag} {shlex.quote(text)}" for text in texts)
        raise RagaugeError.of(
            "not-trusted",
            f"you did not begin the run `{run.run_id}` on this machine, and it would use "
            f"{' '.join(texts)}",
            hint=f"a store may come from anybody; if you want that, add {again}",
        )


def _setting(name: str, value: object) -> str:
    return f"the target `{value}`" if name == "address" else f"{name} {value}"


def _refused(run: RunRecord, reason: str, hint: str) -> RagaugeError:
    return RagaugeError.of("cannot-resume", f"the run `{run.run_id}` {reason}", hint=hint)


def ask_all(
    store: Store,
    run: RunRecord,
    asked: Asked,
    run_input: RunInput,
    target: Target,
    limits: Limits,
    *,
    retry_errors: bool = False,
    on_progress: Callable[[Progress], None] = lambda _: None,
    embed: Embedding | None = None,
    on_note: Callable[[str], None] = lambda _: None,
) -> Progress:
    """Ask every slot that has no result yet, and store each answer when it arrives.

    With `retry_errors`, slots that have an error are asked again, and the turns that follow them.
    With `embed`, answers are stored with ΔS by that embedder; `on_note` gets notes for the user.
    """
    secrets = configured_secrets(asked.address, asked.options, target)
    _refuse_changed(run, target, secrets)
    slots = run_input.slots(asked.seeds)
    remaining = remaining_slots(store, run, slots, retry_errors=retry_errors)
    if run.status == "complete" and not remaining.total:
        hint = "it has no errors either" if retry_errors else "--retry-errors asks errors again"
        raise _refused(run, "is complete", hint)
    limits = replace(limits, timing=asked.timing)
    job = run_input.job()
    reader = RowReader(run_input.plan.dialect, own=run_input.plan.own)
    if asked.stage == "first":
        reader = FirstStageReader(run_input.plan.dialect, own=run_input.plan.own)
    earlier = remaining.answers_before(store, run)
    with ExitStack() as stack:
        # What is stored has its place, so that nobody needs the corpus again.
        lookup = None if asked.corpus is None else Lookup(read_corpus(asked.corpus))
        job = replace(job, places=score.place_index(stack, job.keys, job.chunks, lookup))
        writer = ResultWriter(store, run, job, replacing=False)
        remeasurer = None
        if embed is not None:
            remeasurer = opened_remeasurer(
                stack, embed, run_input.items, run_input.chunks, asked.corpus
            )

        def write(batch: Sequence[Trace]) -> BatchCounts:
            return writer.write(batch if remeasurer is None else list(remeasurer.traces(batch)))

        runner = Runner(
            target,
            reader,
            limits,
            write,
            total=remaining.total,
            secrets=secrets,
            on_progress=on_progress,
            on_note=on_note,
        )
        # Before the first question: a run that is stopped now must not look complete, nor have
        # answers to turns whose history changes.
        if run.status == "complete" or remaining.stale:
            store.reopen(run.run_id, dropping=remaining.stale)
        progress = runner.run(slots.sequences(remaining.wanted), remaining.wanted, earlier)
        if isinstance(target, RevisingTarget):
            # Only now is it known which answers of a program that miscounted are its own.
            replacing = ResultWriter(store, run, job, replacing=True)
            progress.errors += withdraw_answers(store, run, slots, target.settle(), replacing)
        for note in remeasurer.notes() if remeasurer is not None else ():
            on_note(note)
        if isinstance(reader, FirstStageReader) and not reader.swapped and progress.done:
            on_note(f"no answer has `{FIRST_HITS}`: the only list of hits was taken for the first")
        if secrets.hidden:
            answers = count(secrets.hidden, "answer")
            on_note(f"{answers} repeated a secret of the target, stored as {REDACTED}")
        return progress


def _refuse_changed(run: RunRecord, target: Target, secrets: SecretValues) -> None:
    """Raise if the target says other things of itself than when the run was begun."""
    stored = read_snapshot(run.snapshot, run.run_id).system.get("target", {})
    about = msgspec.json.decode(msgspec.json.encode(redacted(secrets.hide_in(dict(target.about)))))
    changed = [
        name
        for name, value in about.items()
        if name not in Asked.__struct_fields__ and stored.get(name) != value
    ]
    if changed:
        reason = f"was begun with another `{changed[0]}` of its target: {stored.get(changed[0])}"
        raise _refused(run, reason, f"it is {about[changed[0]]} now: begin a new run")


def why_stopped(progress: Progress, limits: Limits) -> str:
    """Why a run was stopped before its end, with the reasons of its errors."""
    reasons = counted_reasons(progress.reasons)
    if progress.stopped == "same-error":
        return f"all of the first {sum(progress.reasons.values())} results are errors: {reasons}"
    words = f"more than {limits.max_errors} errors"
    if progress.stopped == "hanging":
        words = "too many calls that never came back"
    return f"{words}: {reasons}" if reasons else words


def complete(
    store: Store,
    run: RunRecord,
    run_input: RunInput,
    bands: Mapping[str, Bands] | None = None,
    *,
    ignore_fields: Sequence[str] = (),
) -> Scores:
    """Score a run that has all its results, and mark it complete."""
    scores = finish_run(
        store, run, run_input.job(), run_input.items, bands, ignore_fields=ignore_fields
    )
    asked = _asked_of(run)
    return replace(scores, stage=asked.stage, stages=_deltas_of_run(store, run, asked, run_input))


def _deltas_of_run(
    store: Store, run: RunRecord, asked: Asked, run_input: RunInput
) -> tuple[StageDelta, ...]:
    """What the reranker of a target changed, where its answers have the lists before and after."""
    reranked: list[Trace] = []
    for _, payload in store.payloads(run.run_id):
        with suppress(*UNREADABLE):  # it is counted where the run is scored
            trace = trace_of(thaw(payload))
            if isinstance(trace.extra.get(FIRST_HITS), list):
                lists = {name: trace.extra.get(name) for name in (FIRST_HITS, LAST_HITS)}
                extra = {name: hits for name, hits in lists.items() if hits is not None}
                reranked.append(replace(trace, answer=None, index={}, extra=extra))

    def score_stage(traces: Any, _source: Source | None, _stack: ExitStack) -> Scores:
        return score.score(
            run_input.items,
            traces,
            profile=run_input.plan.profile.name,
            k=run_input.plan.k,
            metrics=METRICS,
            missing="exclude",
            intervals=False,
            chunks=asked.chunks,
            corpus=asked.corpus,
            options=replace(run_input.plan.options, chunks=None),
        )

    return stage_deltas(reranked, None, score_stage)
