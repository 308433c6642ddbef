"""The wiring: from file names to scores and verdicts. This is the public API."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from typing import Literal

from msgspec.structs import replace

from ragauge import registry
from ragauge.corpus.chunk_list import digest, load_chunks
from ragauge.corpus.lookup import Lookup
from ragauge.corpus.manifest import read_corpus
from ragauge.corpus.resolve import Resolver, block_chunks, refuse_moved
from ragauge.errors import RagaugeError
from ragauge.files.open import PathLike, opened
from ragauge.files.ranges import Source
from ragauge.formats.detect import choose, cutoffs
from ragauge.formats.load import as_trec, name_of, open_source
from ragauge.gold.locate import locator
from ragauge.model.chunk import Chunk
from ragauge.model.comparison import RANKS
from ragauge.model.embedder import Embedding
from ragauge.model.gold import GoldItem, GoldSet
from ragauge.model.options import Options
from ragauge.model.profile import Profile
from ragauge.model.scores import Scores
from ragauge.model.semantic import Bands
from ragauge.model.trace import TraceSet
from ragauge.model.verdict import Gate
from ragauge.scoring.gold_table import GoldTable
from ragauge.scoring.inputs import Engine, Gold, GoldInput, Kept, TraceInput, Traces, feed_stored
from ragauge.scoring.results import unlisted, with_hashes, with_reciprocals
from ragauge.scoring.scoring_run import Inputs, Run, ScoringPlan

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
    keep: Callable[[Kept], None] | None = None,
    look: Callable[[Kept], None] | None = None,
    embed: Embedding | None = None,
    bands: Mapping[str, Bands] | None = None,
) -> Scores:
    """Score traces against gold.

    Files are streamed; sets and lists from memory are taken as they are. `metrics` replaces the
    profile's choice, `also` adds to it, and so do `gates` (or a function that makes them for the
    profile found), which are not judged here: `gate` decides.
    `count_repeats` looks for ids that stand twice among the hits of a trace, which takes time.
    `chunks` is a list of where the chunks of the index lie; `corpus` is a folder whose blocks are
    such a list too, and which tells the section and type of chunks that lack them; quotes in gold
    files are looked up in it, and characters become bytes of it. `hashes` adds
    a hash of what each gold item says, by which a comparison notices items that were changed, and
    the rank of its evidence.
    `keep` is given all that a store needs, while the files are open. `look` is given the same but
    the hashes and ranks, which only a store has a use for. The result does not depend on
    `workers`. `embed` takes ΔS anew from texts; `bands` are those of embedders by their ids.
    """
    _one_of("missing", missing, ("count", "exclude"))
    _one_of("on_bad_line", on_bad_line, ("stop", "skip"))
    with ExitStack() as stack:
        gold_source = open_source(stack, gold)
        trace_source = open_source(stack, traces)
        gold_source = as_trec(gold_source, trace_source)
        loaded_as = [
            each.dialect for each in (gold, traces) if isinstance(each, GoldSet | TraceSet)
        ]
        choice = choose(dialect, profile, gold=gold_source, trace=trace_source, loaded=loaded_as)
        if embed is None:
            feeding = TraceInput(stack, traces, trace_source, choice, workers)
        ks = cutoffs(k, choice.profile)
        skip = on_bad_line == "skip"
        lookup = None if corpus is None else Lookup(read_corpus(corpus))
        locate = None if lookup is None else locator(lookup)
        known = GoldInput(gold, gold_source, trace_source, choice, locate=locate)
        loaded = known.loaded
        if not skip:
            loaded.stop_on_problems()
        demanded = gates(choice.profile, ks) if callable(gates) else gates
        wanted = [choice.profile.meant(name) for name in metrics]
        for gate in demanded:
            wanted += [gate.metric, *([gate.instead] if gate.instead is not None else [])]
        if not metrics:
            wanted = [*choice.profile.metrics, *wanted]
        selected = registry.select([*wanted, *also], ks)
        ranks = RANKS if keep is not None or hashes else ()
        selected += [each for each in registry.select(ranks, ks) if each not in selected]
        name = name_of(gold, gold_source, "<gold>")
        listed = known_chunks(stack, chunks, lookup, gold=(known.items, name))
        if embed is not None:
            from ragauge.scoring.measured_input import measured_input

            feeding = measured_input(
                stack,
                traces,
                trace_source,
                choice,
                embed,
                workers=workers,
                items=known.items(),
                chunks=listed,
                corpus=corpus,
            )
        options = replace(
            options,
            missing=missing,
            refusal_patterns=tuple(refusal_patterns),
            chunks=digest(listed) if listed else None,
        )
        table = known.table(options, name, listed)
        run = Run(
            ScoringPlan(
                profile=choice.profile,
                dialect=choice.dialect,
                own=choice.own,
                k=ks,
                selected=selected,
                options=options,
                absent_counts=missing != "exclude",
                patterns=tuple(refusal_patterns),
                intervals=intervals,
                count_repeats=count_repeats,
            ),
            table,
            gold_name=name,
            trace_name=name_of(traces, trace_source, "<traces>"),
        )
        run.note_gold(loaded.problems, loaded.problem_count, gold_source)
        if choice.note:
            run.warnings.append(choice.note)
        feeding.feed(run, known)
        if not skip:
            run.stop_on_problems()
        given = run.inputs()
        scores = feeding.concluded(run.finish(), bands or {})
        if hashes or keep is not None:
            scores = with_reciprocals(with_hashes(scores, known.items(), choice.profile))
        if keep is not None or look is not None:
            kept = Kept(
                scores=unlisted(scores, RANKS),
                plan=unranked(run.plan),
                items=known.items(),
                chunks=listed,
                inputs=given,
                rows=feeding.packed(run, known),
                lines=feeding.laid(run, known),
                table=None if known.qrels is not None else table,
            )
            for give in (keep, look):
                if give is not None:
                    give(kept)
        return unlisted(scores, RANKS, values=True) if ranks else scores


def score_stored(
    table: GoldTable, traces: Source, plan: ScoringPlan, *, given: Inputs, engine: Engine
) -> Scores:
    """Score stored traces: `traces` holds their JSON, a line each, as it was frozen.

    The values of questions have the ranks of `RANKS` among them.
    """
    ranks = [each for each in registry.select(RANKS, plan.k) if each not in plan.selected]
    plan = replace(plan, selected=[*plan.selected, *ranks])
    run = Run(plan, table, gold_name=given.gold_name, trace_name=given.trace_name)
    run.take_inputs(given)
    feed_stored(run, traces, engine)
    return unlisted(run.finish(), RANKS)


def unranked(plan: ScoringPlan) -> ScoringPlan:
    """The plan without what is only measured for comparisons."""
    return replace(plan, selected=[each for each in plan.selected if each.id not in RANKS])


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
    known = block_chunks(lookup)
    if source is not None:
        known |= load_chunks(source, check=Resolver(lookup, None).chunk)
    return known


def _one_of(name: str, value: str, known: Sequence[str]) -> None:
    if value not in known:
        raise RagaugeError.of(
            "usage",
            f"{name} must be one of {', '.join(known)}, got {value!r}",
            hint="check the spelling",
        )
