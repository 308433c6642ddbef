"""`ragauge run`: ask a system every question of a gold set, store the run, and decide."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager, redirect_stdout
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from ragauge.cli.options import (
    ALLOW_OPTIONS,
    ASK_OPTIONS,
    BASELINE_OPTION,
    DELTA_S_OPTION,
    EMBED_OPTIONS,
    FORMAT_OPTION,
    GATE_OPTIONS,
    GOLD_FIELD_OPTION,
    PATIENCE_OPTIONS,
    SAVE_RUN_OPTION,
    STAGE_OPTION,
    CommandOptions,
    embedding,
    finite,
    of_them_errors,
    options,
    permit,
    permit_embedder,
    questions_a_second,
    say,
    target_settings,
    whole_number,
    whole_numbers,
)
from ragauge.cli.output import OUTPUT_OPTIONS, asked_reports, conclude, output_files
from ragauge.cli.store_options import (
    STORE_OPTION,
    CorpusOption,
    checkout_facts,
    details_in,
    new_id,
    refuse_run_file_name,
)
from ragauge.cli.streams import show_progress
from ragauge.model.metric_names import MAX_K

if TYPE_CHECKING:
    from ragauge.model.report import Report
    from ragauge.model.run import RunRecord, Store
    from ragauge.model.scores import Scores
    from ragauge.model.target import Target
    from ragauge.run.ask import Limits, Progress
    from ragauge.run.run import Asked, Resumed, RunInput

_K = 10
_OF_NEW_RUNS = [
    "filter",
    "limit",
    "profile",
    "cutoffs",
    "run-id",
    "suite",
    "snapshot",
    "commit",
    "no-timing",
]
"""Options that a run which is resumed does not take."""


class _Screen:
    """One line on standard error that says how far a run is; nothing where it is no terminal."""

    def __init__(self) -> None:
        self.is_terminal = sys.stderr.isatty()
        self.next = 0.0

    def show(self, progress: Progress) -> None:
        """Show the progress, a few times a second."""
        if self.is_terminal and progress.seconds >= self.next:
            self.next = progress.seconds + 0.2
            show_progress(progress_line(progress))

    def clear(self) -> None:
        """Take the line away."""
        if self.is_terminal and self.next:
            show_progress("")


def progress_line(progress: Progress) -> str:
    """How far a run is: done, rate, time left, errors, and how many found their evidence."""
    rate = progress.done / progress.seconds if progress.seconds else 0.0
    parts = [f"{progress.done:,}/{progress.total:,}", f"{rate:,.1f}/s"]
    if progress.stopped is not None:
        parts.append("ending")
    elif rate:
        left = round((progress.total - progress.done) / rate)
        parts.append(f"{left // 60}:{left % 60:02} left")
    parts.append(f"{progress.errors:,} error{'' if progress.errors == 1 else 's'}")
    if progress.labelled:
        parts.append(f"{progress.hits / progress.labelled:.1%} found")
    return "  ".join(parts)


@click.command("run", short_help="Ask a system every question, store the run, and decide.")
@click.option("--gold", metavar="FILE", help="The gold set whose questions are asked.")
@GOLD_FIELD_OPTION
@click.option(
    "--target",
    metavar="ADDRESS",
    help="The system: python:module:function, http://..., command:PROGRAM, or of a plugin "
    "(default: the one in ragauge.toml).",
)
@click.option(
    "--k", type=click.IntRange(1, MAX_K), help=f"How many hits are wanted (default: {_K})."
)
@click.option("--seeds", metavar="N[,N...]", help="Ask everything once with each seed.")
@click.option(
    "--limit", type=click.IntRange(1), metavar="N", help="Only the first N items of those."
)
@whole_number(
    "--concurrency",
    least=1,
    most=1024,
    default=8,
    metavar="N",
    help="Questions that are asked at the same time.",
)
@click.option(
    "--timeout",
    type=click.FloatRange(0.001, 86_400),
    default=60.0,
    show_default=True,
    callback=finite,
    metavar="SECONDS",
    help="How long one question may take.",
)
@whole_number(
    "--retries",
    least=0,
    most=100,
    default=2,
    metavar="N",
    help="How often a question is asked again after an error that may pass.",
)
@options(PATIENCE_OPTIONS)
@options(ASK_OPTIONS)
@click.option("--resume", metavar="RUN", help="Go on with a run that was stopped.")
@click.option(
    "--retry-errors", is_flag=True, help="With --resume: ask what ended in an error again."
)
@click.option("--profile", metavar="NAME", help="As for `score` (default: by the gold set).")
@options(EMBED_OPTIONS)
@options(GATE_OPTIONS)
@options([STAGE_OPTION, BASELINE_OPTION, FORMAT_OPTION, STORE_OPTION, SAVE_RUN_OPTION])
@click.option(
    "--run-id", metavar="ID", callback=new_id, help="How the run is called (default: by time)."
)
@click.option("--suite", metavar="NAME", help="The suite that the run belongs to.")
@click.option("--tag", "tags", multiple=True, metavar="TAG", help="Tag the run. Repeats.")
@click.option(
    "--snapshot",
    metavar="FILE",
    help="How the system is configured (JSON, TOML, YAML), to be stored and compared.",
)
@click.option("--commit", metavar="HASH", help="The commit (default: from CI or .git).")
@options(OUTPUT_OPTIONS)
@click.option("--full", is_flag=True, help="Add n, what was left out, intervals, every question.")
@options([*ALLOW_OPTIONS, DELTA_S_OPTION])
def COMMAND(**values: Any) -> int:  # noqa: N802
    """Ask a system every question of a gold set, store the run, and decide as `score` does.

    Every answer is stored when it arrives. A run that was stopped goes on with --resume RUN; what
    it was begun with need not be said again.
    """
    from ragauge.run import run as running

    options = CommandOptions(**values)
    plan = _plan(options)
    with ExitStack() as stack:
        create = options.resume is None
        store = stack.enter_context(options.store(create=create))
        answered = (_start if create else _resume)(stack, store, plan)
        plan.screen.clear()
        if answered.progress.stopped is not None:
            return _stopped(store, answered.run, answered.progress, plan.limits)
        scores = running.complete(
            store,
            answered.run,
            answered.material,
            options.config.bands,
            ignore_fields=options.config.ignored_fields,
        )
        code = _judge(stack, store, answered, scores, plan)
    if options.allow_errored:
        return code
    return _unless_all_failed(code, scores, answered.run)


class _Plan(NamedTuple):
    """The options as they were understood, before anything is opened or asked."""

    options: CommandOptions
    settings: dict[str, str]
    limits: Limits
    reports: Sequence[Report]
    screen: _Screen


class _Answered(NamedTuple):
    """A run whose questions were asked, to the end or until it was stopped."""

    run: RunRecord
    asked: Asked
    material: RunInput
    progress: Progress


def _plan(options: CommandOptions) -> _Plan:
    """Read what the options say; what cannot be is refused here, before a store is opened."""
    from ragauge import registry
    from ragauge.run.ask import Limits

    config = options.config
    if options.save_run is not None:
        refuse_run_file_name(options.save_run)
    options.spare(
        [*output_files(options.outputs), *([options.save_run] if options.save_run else [])],
        {
            "gold set": options.gold or config.gold,
            "list of chunks": options.configured("chunks"),
            "corpus": options.configured("corpus"),
            "snapshot": options.snapshot,
            "cache of vectors": options.configured("embed_cache"),
        },
        baselines=options.baseline,
    )
    limits = Limits(
        concurrency=options.concurrency,
        timeout=options.timeout,
        retries=options.retries,
        rate=questions_a_second(options.rate),
        max_errors=options.max_errors,
        max_wait=options.max_wait,
        keep_going=options.keep_going,
    )
    settings = target_settings(options.pairs)
    reports = asked_reports(options.format_name, options.outputs, registry.profile("all"))
    if options.resume is not None:
        values = {**vars(options), "filter": options.filters}
        flags = [f"--{name}" for name in _OF_NEW_RUNS if values[name.replace("-", "_")]]
        if flags:
            raise click.UsageError(
                f"{', '.join(flags)}: a run that is resumed stays as it was begun"
            )
    elif options.retry_errors:
        raise click.UsageError("--retry-errors goes with --resume RUN")
    else:
        permit_embedder(config, options.embed)
        if options.target is None:
            from ragauge.trust.needs import needs_of_target

            permit(config, needs_of_target(config))
    return _Plan(options, settings, limits, reports, _Screen())


def _start(stack: ExitStack, store: Store, plan: _Plan) -> _Answered:
    """Store a new run, and ask all its questions."""
    from ragauge.run import run as running
    from ragauge.run.slots import read_seeds
    from ragauge.store.runs import RunDescription
    from ragauge.store.snapshot import load_system

    options, config = plan.options, plan.options.config
    gold, address = options.configured("gold"), options.configured("target")
    if gold is None or address is None:
        missing = "--gold FILE" if gold is None else "--target ADDRESS"
        raise click.UsageError(f"nothing to ask: give {missing}")
    ks = whole_numbers("--cutoffs", options.cutoffs) or config.k or None
    asked = running.Asked(
        address=address,
        k=options.k or max((_K, *(ks or ()))),
        options=plan.settings,
        corpus=options.configured("corpus"),
        chunks=options.configured("chunks"),
        embedder=options.embedder,
        embed=options.configured("embed"),
        seeds=read_seeds(options.seeds),
        filters=options.filters,
        limit=options.limit,
        timing=not options.no_timing,
        stage=options.stage,
    )
    material = running.read_run_input(
        gold,
        asked,
        running.ScoringRequest(
            profile=options.configured("profile"),
            dialect=config.dialect or "auto",
            cutoffs=ks,
            metrics=config.metrics,
            also=[name for report in plan.reports for name in report.needs],
            gates=options.all_gates,
            refusal_patterns=config.refusal.patterns,
            options=config.options,
            count_repeats=options.full,
            fields=options.field_maps,
            ignore_fields=config.ignored_fields,
        ),
    )
    snapshot = {} if options.snapshot is None else load_system(Path(options.snapshot))
    wanted = RunDescription(
        run_id=options.run_id,
        suite=options.configured("suite") or "default",
        tags=options.tags,
        **checkout_facts(config, options.commit),
        system={**config.system, **snapshot},
    )
    with _opened(asked, plan.limits) as target:
        begun = running.start_run(store, asked, material, target, wanted)
        run = _held(stack, store, begun.run_id)
        return _ask(store, running.Resumed(run, asked, material), target, plan)


def _resume(stack: ExitStack, store: Store, plan: _Plan) -> _Answered:
    """Ask what a stored run has no answer to yet."""
    from ragauge.run import run as running
    from ragauge.run.slots import read_seeds

    options = plan.options
    again = running.resumed(
        store,
        _held(stack, store, options.resume or ""),
        gold=options.gold,
        fields=options.field_maps,
        address=options.target,
        k=options.k,
        options=plan.settings or None,
        seeds=None if options.seeds is None else read_seeds(options.seeds),
        corpus=options.corpus,
        chunks=options.chunks,
        embedder=options.embedder,
        embed=options.embed,
        stage=None if options.stage == "last" else options.stage,
    )
    if again.asked.embed is not None:
        permit_embedder(options.config, again.asked.embed)
    with _opened(again.asked, plan.limits) as target:
        return _ask(store, again, target, plan)


def _ask(store: Store, begun: Resumed, target: Target, plan: _Plan) -> _Answered:
    """Ask the open slots of a run; ΔS is taken as it was begun, whatever ragauge.toml says now."""
    from ragauge.run import run as running

    name, cache = begun.asked.embed, plan.options.embed_cache
    progress = running.ask_all(
        store,
        begun.run,
        begun.asked,
        begun.run_input,
        target,
        plan.limits,
        retry_errors=plan.options.retry_errors,
        on_progress=plan.screen.show,
        on_note=lambda note: say(f"warning: {note}"),
        embed=None if name is None else embedding(name, cache, None, plan.options.config),
    )
    return _Answered(begun.run, begun.asked, begun.run_input, progress)


def _judge(stack: ExitStack, store: Store, answered: _Answered, scores: Scores, plan: _Plan) -> int:
    """Say what was stored, print the reports, and give the exit code."""
    from ragauge import registry
    from ragauge.cli.named_runs import RunFinder, gate_baselines
    from ragauge.compare.common_gold import StoredRun
    from ragauge.model.phrases import count
    from ragauge.store import runs as run_store

    options, config = plan.options, plan.options.config
    run_id = answered.run.run_id
    for tag in options.tags if options.resume is not None else ():
        store.tag(tag, run_id)
    stored = f"stored {count(scores.tally.traces, 'result')} as {run_id} in {store.name}"
    say(f"{stored}{of_them_errors(scores.tally.errored, scores.errors)}")
    finished = run_store.find_run(store, run_id)
    if options.save_run is not None:
        from ragauge.store.run_files import write_run_file

        write_run_file(store, finished, options.save_run)
        say(f"saved the run {run_id} to {options.save_run}")
    profile = registry.profile(scores.profile)
    gates = options.all_gates(profile, scores.k)
    finder = RunFinder(stack, config, store=store, suite=finished.suite)
    allow_none = options.allow_no_baseline
    named = finder.baselines(options.baseline, run=finished, allow_none=allow_none)
    baselines = gate_baselines(named, scores, StoredRun(store, finished), gates)
    texts = CorpusOption.of(answered.asked.corpus, config)
    return conclude(
        scores,
        profile,
        gates,
        config,
        allowed=options.tolerance,
        as_of=options.as_of,
        runs=[finished],
        format_name=options.format_name,
        outputs=options.outputs,
        full=options.full,
        raw_csv=options.raw_csv,
        baselines=baselines,
        details=details_in(stack, plan.reports, store, finished, scores, texts),
    )


def _held(stack: ExitStack, store: Store, name: str) -> RunRecord:
    """A run that no other process goes on with meanwhile, as it was left by the last one."""
    from ragauge.store.runs import find_run

    record = find_run(store, name, complete=False)
    stack.enter_context(store.hold(record.run_id))
    return find_run(store, record.run_id, complete=False)


def _unless_all_failed(code: int, scores: Scores, run: RunRecord) -> int:
    """The exit code; where not one question was answered, nothing was measured that could pass."""
    from ragauge.codes import ExitCode
    from ragauge.model.error_reasons import counted_reasons

    undecided = code in (ExitCode.PASS, ExitCode.NOTHING_MEASURED)
    if not undecided or scores.tally.errored < scores.tally.traces:
        return code
    how = f"ragauge run --resume {run.run_id} --retry-errors"
    say(f"every question ended in an error: {counted_reasons(scores.errors)}")
    say(f"  hint: fix the target, then `{how}`")
    return int(ExitCode.NOT_EVALUABLE)


@contextmanager
def _opened(asked: Asked, limits: Limits) -> Iterator[Target]:
    """The target of a run. What it prints goes to standard error: the report is printed here."""
    from ragauge.run import run as running

    target_options = asked.target_options(limits.timeout)
    with (
        redirect_stdout(sys.stderr),
        closing(running.open_target(asked.address, target_options)) as target,
    ):
        yield target


def _stopped(store: Store, run: RunRecord, progress: Progress, limits: Limits) -> int:
    """Say how a run that was stopped goes on."""
    from ragauge.errors import RagaugeError
    from ragauge.run import run as running

    left = progress.total - progress.done
    how = f"ragauge run --resume {run.run_id} --store {store.name}"
    if progress.stopped == "interrupted":
        sentence = f"interrupted: {progress.done} results were stored, {left} are left"
        say(sentence)
        say(f"  hint: go on with `{how}`")
        return 130
    why = running.why_stopped(progress, limits)
    message = f"{why}; {progress.done} results were stored, {left} are left"
    hint = f"fix the target, then `{how} --retry-errors`"
    if progress.stopped == "same-error":
        hint += "; --keep-going asks all questions"
    raise RagaugeError.of("too-many-errors", message, hint=hint)
