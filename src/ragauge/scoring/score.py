"""`score`: from file names to scores. This is the public API.

One way, no back arrows: open the inputs, which chooses dialect and profile; plan what to measure;
score. Gates are made for the profile of the opened inputs, and given to the plan as values.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Any, Literal

from msgspec import Struct
from msgspec.structs import replace

from ragauge import registry
from ragauge.corpus.chunk_list import chunk_list_digest, load_chunks
from ragauge.corpus.known_places import opened_place_index
from ragauge.corpus.lookup import Lookup
from ragauge.corpus.manifest import read_corpus
from ragauge.corpus.resolve import Resolver, block_chunks, refuse_moved
from ragauge.errors import RagaugeError
from ragauge.files.open import PathLike, opened
from ragauge.files.ranges import Source
from ragauge.formats.detect import FormatChoice, choose, cutoffs
from ragauge.formats.field_map import NO_FIELDS, FieldMaps, Stage, as_field_maps
from ragauge.formats.load import name_of, open_sources
from ragauge.formats.rerank_stages import traces_at_first_stage
from ragauge.formats.rows_in_memory import rereadable
from ragauge.formats.unread_fields import FieldUse, Side, field_use, field_use_of_extra
from ragauge.gold.locate import locator
from ragauge.model.chunk import Chunk
from ragauge.model.comparison import RANKS
from ragauge.model.embedder import Embedding
from ragauge.model.gold import GoldItem, GoldSet
from ragauge.model.options import Options
from ragauge.model.profile import Profile
from ragauge.model.scores import Scores, StageDelta
from ragauge.model.semantic import Bands
from ragauge.model.trace import Trace, TraceSet
from ragauge.model.verdict import Gate
from ragauge.scoring.engines.choose import Engine, file_engine
from ragauge.scoring.gold_table import GoldTable, gold_table
from ragauge.scoring.inputs import (
    AnyTraces,
    Gold,
    GoldInput,
    PageRows,
    ScoredRun,
    TraceFile,
    Traces,
    TracesInMemory,
    loaded_traces,
    open_traces,
    traces_in_memory,
)
from ragauge.scoring.rerank_deltas import METRICS, stage_deltas
from ragauge.scoring.results import with_hashes, with_reciprocals, without_metrics
from ragauge.scoring.row_index import NO_LABELS, row_index
from ragauge.scoring.scoring_run import InputFacts, ScoringPlan, ScoringRun, job_of
from ragauge.scoring.tasks.job import Job
from ragauge.scoring.tasks.pack import SerialisedRows
from ragauge.scoring.trace_columns import GoldKeys
from ragauge.text import compiled_pattern

if TYPE_CHECKING:
    from ragauge.scoring.remeasure import Remeasurer

_EMPTY = "retrieval.empty"
"""The one metric of retrieval that asks whether there are hits, and not where they stand."""

GateMaker = Callable[[Profile, Sequence[int]], Sequence[Gate]]


def score(
    gold: Gold,
    traces: Traces,
    *,
    profile: str | None = None,
    dialect: str = "auto",
    k: Sequence[int] | int | None = None,
    metrics: Sequence[str] = (),
    also: Sequence[str] = (),
    gates: Sequence[Gate] | GateMaker = (),
    missing: Literal["count", "exclude"] = "count",
    on_bad_line: Literal["stop", "skip"] = "stop",
    refusal_patterns: Sequence[str] = (),
    workers: int | None = None,
    intervals: bool = True,
    count_repeats: bool = True,
    chunks: PathLike | None = None,
    corpus: PathLike | None = None,
    options: Options = Options(),  # noqa: B008  (frozen)
    hashes: bool = False,
    keep: Callable[[ScoredRun], None] | None = None,
    embed: Embedding | None = None,
    bands: Mapping[str, Bands] | None = None,
    fields: FieldMaps | Mapping[str, Any] | None = None,
    ignore_fields: Sequence[str] = (),
    stage: Stage | None = None,
    note_rows: bool = False,
) -> Scores:
    """Score traces against gold.

    Files are streamed. Dicts, frames of pandas and polars, tables of Arrow and data sets are read
    as the rows of a file; sets and values of our own are taken as they are. `metrics` replaces the
    profile's choice, `also` adds to it, and so do `gates` (or a function that makes them for the
    profile found), which are not judged here: `gate` decides.
    `count_repeats` looks for ids that stand twice among the hits of a trace, which takes time.
    `chunks` is a list of where the chunks of the index lie; `corpus` is a folder whose blocks are
    such a list too, and which tells the section and type of chunks that lack them; quotes in gold
    files are looked up in it, and characters become bytes of it. `hashes` adds
    a hash of what each gold item says, by which a comparison notices items that were changed, and
    the rank of its evidence; a gold set of very many items takes less memory without.
    `keep` is given all that a store needs, while the files are open, and with `note_rows` what a
    page needs that shows the traces. The result does not depend on
    `workers`. `embed` takes ΔS anew from texts; `bands` are those of embedders by their ids.
    `fields` says where the rows of files have our fields, as `[fields]` in `ragauge.toml`:
    `{"answer": "response", "hits": "sources[].id", "gold": {"relevant": "evidence"}}`.
    `ignore_fields` are fields of the files that nothing reads, and that nothing is said of.
    `stage`, where traces have a list of hits before a reranker (`hits_before_rerank`): `first`
    scores that list, `last` the one after it. What the reranker changed is in `stages` either way.
    """
    gold, traces = rereadable(gold), rereadable(traces)
    _one_of("missing", missing, ("count", "exclude"))
    own_fields = as_field_maps(fields)
    if stage is not None:
        _one_of("stage", stage, ("last", "first"))
        own_fields = own_fields.at_stage(stage)
    _one_of("on_bad_line", on_bad_line, ("stop", "skip"))
    with opened_inputs(
        gold, traces, dialect=dialect, profile=profile, k=k, fields=own_fields
    ) as inputs:
        plan = scoring_plan(
            inputs,
            metrics=metrics,
            also=also,
            gates=gates(inputs.profile, inputs.k) if callable(gates) else gates,
            ranks=hashes or keep is not None,
            options=replace(options, missing=missing, refusal_patterns=tuple(refusal_patterns)),
            intervals=intervals,
            count_repeats=count_repeats,
            note_rows=note_rows,
        )
        run = score_inputs(
            inputs,
            plan,
            skip_bad_lines=on_bad_line == "skip",
            chunks=chunks,
            corpus=corpus,
            hashes=hashes or keep is not None,
            workers=workers,
            embed=embed,
            bands=bands,
            ignore_fields=(*ignore_fields, *own_fields.gold.ignore, *own_fields.traces.ignore),
        )
        if keep is not None:
            keep(run.to_store())
        return run.scores


class OpenedInputs(Struct, frozen=True, kw_only=True):
    """Gold and traces that are open, and what was chosen for them; only their heads were read.

    What is opened for them later goes on the same stack, and ends with them.
    """

    gold: Gold
    gold_source: Source | None
    traces: Traces
    trace_source: Source | None
    choice: FormatChoice
    k: tuple[int, ...]
    stack: ExitStack
    asked_k: bool = False
    stage: Stage = "last"

    @property
    def profile(self) -> Profile:
        """The profile: as asked for, or that of the dialect."""
        return self.choice.profile


@contextmanager
def opened_inputs(
    gold: Gold,
    traces: Traces,
    *,
    dialect: str = "auto",
    profile: str | None = None,
    k: Sequence[int] | int | None = None,
    fields: FieldMaps = NO_FIELDS,
) -> Iterator[OpenedInputs]:
    """Open gold and traces, and choose dialect, profile and cut-offs for them."""
    with ExitStack() as stack:
        gold_source, trace_source = open_sources(
            stack, gold, traces, fields=fields, dialect=dialect
        )
        stage = fields.traces.stage
        if trace_source is None and stage == "first":
            name = name_of(traces, None, "<traces>")
            staged = traces_at_first_stage(traces_in_memory(traces), name)
            dialect_name = traces.dialect if isinstance(traces, TraceSet) else "native"
            traces = TraceSet(traces=staged, name=name, dialect=dialect_name)
        loaded_as = [
            loaded.dialect for loaded in (gold, traces) if isinstance(loaded, GoldSet | TraceSet)
        ]
        choice = choose(dialect, profile, gold=gold_source, trace=trace_source, loaded=loaded_as)
        yield OpenedInputs(
            gold=gold,
            gold_source=gold_source,
            traces=traces,
            trace_source=trace_source,
            choice=choice,
            k=cutoffs(k, choice.profile),
            stack=stack,
            asked_k=k is not None,
            stage=stage,
        )


def _check_options(options: Options) -> None:
    """Refuse readings that decide nothing."""
    if not math.isfinite(options.relevance_level):
        message = f"the relevance level must be a finite number, got {options.relevance_level}"
        raise RagaugeError.of("usage", message, hint="grades are mostly 0, 1, 2 and 3")
    for pattern in options.refusal_patterns:
        try:
            compiled_pattern(pattern, ignore_case=True)
        except ValueError as error:
            hint = "write it as Python's `re` takes it"
            raise RagaugeError.of("usage", f"{error}", hint=hint) from error


def scoring_plan(
    inputs: OpenedInputs,
    *,
    metrics: Sequence[str] = (),
    also: Sequence[str] = (),
    gates: Sequence[Gate] = (),
    ranks: bool = False,
    options: Options = Options(),  # noqa: B008  (frozen)
    intervals: bool = True,
    count_repeats: bool = True,
    note_rows: bool = False,
) -> ScoringPlan:
    """What is to be measured; nothing is read for it.

    `ranks` adds the reciprocal ranks without a cut-off, which comparisons ask for. `note_rows` is
    for a page that shows the traces.
    """
    _check_options(options)
    profile, choice = inputs.profile, inputs.choice
    wanted = [profile.meant(name) for name in metrics]
    for gate in gates:
        wanted += [gate.metric, *([gate.instead] if gate.instead is not None else [])]
    if not metrics:
        wanted = [*profile.metrics, *wanted]
    selected = registry.select([*wanted, *also], inputs.k)
    for metric in registry.select(RANKS if ranks else (), inputs.k):
        if metric not in selected:
            selected.append(metric)
    return ScoringPlan(
        profile=profile,
        dialect=choice.dialect,
        own=choice.own,
        sole=choice.sole,
        k=inputs.k,
        selected=selected,
        options=options,
        absent_counts=options.missing != "exclude",
        intervals=intervals,
        count_repeats=count_repeats,
        note_rows=note_rows,
        asked_k=inputs.asked_k,
    )


def score_inputs(
    inputs: OpenedInputs,
    plan: ScoringPlan,
    *,
    skip_bad_lines: bool = False,
    chunks: PathLike | None = None,
    corpus: PathLike | None = None,
    hashes: bool = False,
    workers: int | None = None,
    embed: Embedding | None = None,
    bands: Mapping[str, Bands] | None = None,
    ignore_fields: Sequence[str] = (),
) -> ScoredInputs:
    """Score opened inputs. The way of a trace: file, range, columns, records, sums, scores."""
    stack, choice = inputs.stack, inputs.choice
    gold_name = name_of(inputs.gold, inputs.gold_source, "<gold>")
    trace_name = name_of(inputs.traces, inputs.trace_source, "<traces>")
    engine: Engine | None = None
    if embed is None and inputs.trace_source is not None and inputs.trace_source.layout != "run":
        # Before gold is read, so that workers import meanwhile.
        engine = file_engine(stack, inputs.trace_source, workers)
    lookup = None if corpus is None else Lookup(read_corpus(corpus))
    locate = None if lookup is None else locator(lookup)
    # Nobody else asks for the items then, unless a store does, which has them read again.
    only_table = not (chunks or corpus or embed or hashes or plan.note_rows)
    gold = GoldInput(
        inputs.gold,
        inputs.gold_source,
        inputs.trace_source,
        choice,
        locate=locate,
        table_options=plan.options if only_table else None,
    )
    if not skip_bad_lines:
        gold.loaded.stop_on_problems()
    listed = known_chunks(stack, chunks, lookup, gold=(gold.items, gold_name))
    plan = replace(
        plan, options=replace(plan.options, chunks=chunk_list_digest(listed) if listed else None)
    )
    remeasurer: Remeasurer | None = None
    if embed is not None:
        from ragauge.scoring.remeasure import opened_remeasurer

        remeasurer = opened_remeasurer(stack, embed, gold.items(), listed, corpus, trace_name)
    table = gold.table(plan.options, gold_name, listed)
    plan = replace(plan, places=place_index(stack, table.keys, table.chunks, lookup))
    if not (hashes or plan.note_rows):  # then nobody asks for them, unless a store does
        gold.forget_items()
    traces: AnyTraces | None = None  # a TREC run over judgements never becomes traces
    if remeasurer is not None:
        from ragauge.scoring.remeasure import measured_traces

        traces = measured_traces(
            stack, inputs.traces, inputs.trace_source, choice, remeasurer, workers
        )
    elif gold.qrels is None:
        traces = open_traces(inputs.traces, inputs.trace_source, choice, engine)
    run = ScoringRun(plan, table, gold_name=gold_name, trace_name=trace_name)
    run.note_gold(gold.loaded, inputs.gold_source)
    if choice.note:
        run.warnings.append(choice.note)
    run.note_fields(
        fields_of(inputs.gold, inputs.gold_source, "gold", ignore_fields),
        fields_of(inputs.traces, inputs.trace_source, "trace", ignore_fields),
    )
    if traces is not None:
        run.read(traces)
    elif gold.qrels is not None and inputs.trace_source is not None:
        run.read_trec(gold.qrels, inputs.trace_source)
    if not skip_bad_lines:
        run.stop_on_problems()
    file_facts = run.inputs()  # before the second pass adds what it has to say
    scores = run.finish()
    if remeasurer is not None or bands:
        from ragauge.scoring.remeasure import semantic_of

        scores = replace(scores, semantic=semantic_of(scores, bands or {}, remeasurer))
    scores = replace(
        scores,
        stage=inputs.stage,
        stages=_stage_deltas(inputs, plan, chunks=chunks, corpus=corpus, workers=workers),
    )
    if hashes:
        scores = with_reciprocals(with_hashes(scores, gold.items(), choice.profile, listed))
    reported = without_metrics(scores, RANKS, values=True) if hashes else scores
    return ScoredInputs(inputs, reported, scores, run, file_facts, gold, traces, listed)


def _stage_deltas(
    inputs: OpenedInputs,
    plan: ScoringPlan,
    *,
    chunks: PathLike | None,
    corpus: PathLike | None,
    workers: int | None,
) -> tuple[StageDelta, ...]:
    """What a reranker changed, where traces have both lists and retrieval is measured."""
    if not any(chosen.id.startswith("retrieval.") for chosen in plan.selected):
        return ()
    if inputs.gold_source is None and not isinstance(inputs.gold, GoldSet | list | tuple):
        return ()  # an iterator has been read
    options = replace(plan.options, missing="exclude", chunks=None)

    def score_stage(traces: Any, source: Source | None, stack: ExitStack) -> Scores:
        staged = replace(inputs, traces=traces, trace_source=source, stack=stack)
        stage_plan = scoring_plan(
            staged, metrics=METRICS, options=options, intervals=False, count_repeats=False
        )
        done = score_inputs(
            staged, stage_plan, skip_bad_lines=True, chunks=chunks, corpus=corpus, workers=workers
        )
        return done.scores

    return stage_deltas(inputs.traces, inputs.trace_source, score_stage)


def fields_of(
    rows: object, source: Source | None, side: Side, ignore: Sequence[str] = ()
) -> FieldUse | None:
    """Which fields an input has, and which of them are not read; None where it has no fields.

    Of what is in memory only the fields are known that are not read.
    """
    if source is not None:
        use = field_use(source, side, ignore=ignore)
        return use if use.looked else None
    if isinstance(rows, GoldSet | TraceSet):
        rows = rows.items if isinstance(rows, GoldSet) else rows.traces
    if not isinstance(rows, Sequence):  # an iterator is read once, and not here
        return None
    extras = [row.extra for row in rows if isinstance(row, GoldItem | Trace)]
    return field_use_of_extra(extras, side, ignore=ignore) if extras else None


class ScoredInputs:
    """Scores of opened inputs, and what a store needs beyond them, while the inputs are open.

    `scores` do not have what was only measured for comparisons.
    """

    def __init__(
        self,
        opened: OpenedInputs,
        reported: Scores,
        scores: Scores,
        run: ScoringRun,
        file_facts: InputFacts,
        gold: GoldInput,
        traces: AnyTraces | None,
        chunks: dict[str, Chunk],
    ) -> None:
        self._opened = opened
        self.scores = reported
        self._scores = scores
        self._run = run
        self._file_facts = file_facts
        self._gold = gold
        self._traces = traces
        self._chunks = chunks

    def to_store(self) -> ScoredRun:
        """The run for a store; its traces are read again when they are walked."""
        return ScoredRun(
            scores=without_metrics(self._scores, RANKS),
            plan=unranked(self._run.plan),
            items=self._gold.items(),
            chunks=self._chunks,
            inputs=self._file_facts,
            rows=self._rows(),
            for_page=self._for_page() if self._run.plan.note_rows else None,
            table=None if self._gold.qrels is not None else self._run.table,
        )

    def _rows(self) -> Iterator[SerialisedRows]:
        qids = tuple(self._run.table.qids)
        if self._traces is not None and self._run.reading is not None:
            yield from self._traces.packed(self._run.reading, qids, self._run.first_lines())
            return
        traces, table, job = self._trec_items()
        # Judgements have an order of their own, by which the run counts its questions.
        places = {qid: place for place, qid in enumerate(qids)}
        order = [places[qid] for qid in table.qids]
        for packed in traces.packed(job, qids, {}):
            yield packed.renumbered(order)

    def _for_page(self) -> PageRows:
        run, traces, job = self._run, self._traces, self._run.reading
        if traces is None or job is None:
            traces, _, job = self._trec_items()
            noted = [(0, partial.noted) for partial in traces.partials(job) if partial.noted]
            return PageRows(job, row_index(noted), NO_LABELS, traces.traces)
        in_memory = traces.traces if isinstance(traces, TracesInMemory) else None
        return PageRows(job, row_index(run.noted_rows()), run.record_labels(), in_memory)

    def _trec_items(self) -> tuple[TracesInMemory, GoldTable, Job]:
        """Judgements and a TREC run as items and traces, which they never became before."""
        run, source = self._run, self._opened.trace_source
        assert source is not None
        table = gold_table(
            self._gold.items(), run.plan.profile, run.plan.options, name=run.gold_name, chunks={}
        )
        return loaded_traces(source, self._opened.choice), table, job_of(run.plan, table, source)


def score_stored(
    table: GoldTable, traces: Source, plan: ScoringPlan, *, given: InputFacts, engine: Engine
) -> Scores:
    """Score stored traces: `traces` holds their JSON, a line each, as it was stored.

    The values of questions have the ranks of `RANKS` among them.
    """
    ranks = [chosen for chosen in registry.select(RANKS, plan.k) if chosen not in plan.selected]
    plan = replace(plan, selected=[*plan.selected, *ranks])
    run = ScoringRun(plan, table, gold_name=given.gold_name, trace_name=given.trace_name)
    run.take_inputs(given)
    run.read(TraceFile(traces, engine, stored=True))
    return without_metrics(run.finish(), RANKS)


def place_index(
    stack: ExitStack, keys: GoldKeys, chunks: Mapping[str, Chunk], lookup: Lookup | None
) -> str | None:
    """The path of an index in which hits are placed, if the evidence of a gold set needs one."""
    details = keys.details.values()
    if not any(detail.places or detail.docs or detail.quoted for detail in details):
        return None
    return opened_place_index(stack, lookup, chunks)


def unranked(plan: ScoringPlan) -> ScoringPlan:
    """The plan without what is only measured for comparisons."""
    return replace(plan, selected=[chosen for chosen in plan.selected if chosen.id not in RANKS])


def known_chunks(
    stack: ExitStack,
    given: PathLike | None,
    lookup: Lookup | None,
    *,
    gold: tuple[Callable[[], Sequence[GoldItem]], str],
) -> dict[str, Chunk]:
    """The chunks that are known: blocks of the corpus, and those of the list, which come first.

    Gold that quotes another version of the corpus is refused.
    """
    source = None if given is None else stack.enter_context(opened(given))
    if lookup is None:
        return {} if source is None else load_chunks(source)
    refuse_moved(lookup, gold[0](), gold[1])
    chunks = block_chunks(lookup)
    if source is not None:
        chunks |= load_chunks(source, check=Resolver(lookup, None).chunk)
    return chunks


def _one_of(name: str, value: str, allowed: Sequence[str]) -> None:
    if value not in allowed:
        raise RagaugeError.of(
            "usage",
            f"{name} must be one of {', '.join(allowed)}, got {value!r}",
            hint="check the spelling",
        )
