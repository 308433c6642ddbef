"""`ragauge run`: ask a system every question of a gold set, store the run, and decide."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager, redirect_stdout
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ragauge.cli.options import (
    ALLOW_OPTIONS,
    BASELINE_OPTION,
    EMBED_OPTIONS,
    FORMAT_OPTION,
    GATE_OPTIONS,
    embedding,
    finite,
    gates_from,
    options,
    read_config,
)
from ragauge.cli.output import OUTPUT_OPTION, asked_reports, conclude, output_files, spare_inputs
from ragauge.cli.store_options import STORE_OPTION, Texts, against, details_in, new_id, the_store

if TYPE_CHECKING:
    from ragauge.config import Config
    from ragauge.model.embedder import Embedding
    from ragauge.model.profile import Profile
    from ragauge.model.run import RunRecord, Store
    from ragauge.model.scores import Scores
    from ragauge.model.target import Target
    from ragauge.model.verdict import Gate
    from ragauge.run.ask import Limits, Progress
    from ragauge.run.run import Asked

_RATE = re.compile(r"(\d+(?:\.\d+)?)(?:/(s|m|h))?")
_SECONDS = {None: 1, "s": 1, "m": 60, "h": 3600}
_K = 10


def _rate(text: str | None) -> float | None:
    match = None if text is None else _RATE.fullmatch(text)
    if text is None:
        return None
    if match is None or not float(match[1]):
        raise click.UsageError(f"--rate takes a number as in 20/s, 100/m or 500/h, got {text!r}")
    return float(match[1]) / _SECONDS[match[2]]


def _settings(pairs: Sequence[str]) -> dict[str, str]:
    found: dict[str, str] = {}
    for pair in pairs:
        name, equals, value = pair.partition("=")
        if not equals or not name or name in found:
            raise click.UsageError(f"--option takes NAME=VALUE, each name once, got {pair!r}")
        found[name] = value
    return found


def _cutoffs(text: str | None) -> tuple[int, ...] | None:
    if text is None:
        return None
    try:
        return tuple(int(part) for part in text.split(","))
    except ValueError as error:
        raise click.UsageError(f"--cutoffs takes whole numbers, got {text!r}") from error


class _Screen:
    """One line on standard error that says how far a run is; nothing where it is no terminal."""

    def __init__(self) -> None:
        self.shown = sys.stderr.isatty()
        self.next = 0.0

    def told(self, progress: Progress) -> None:
        """Show the progress, a few times a second."""
        if self.shown and progress.seconds >= self.next:
            self.next = progress.seconds + 0.2
            click.echo(f"\r\x1b[K{progress_line(progress)}", err=True, nl=False)

    def clear(self) -> None:
        """Take the line away."""
        if self.shown and self.next:
            click.echo("\r\x1b[K", err=True, nl=False)


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
@click.option(
    "--target",
    metavar="ADDRESS",
    help="The system: python:module:function, http://..., command:PROGRAM, or of a plugin.",
)
@click.option(
    "--option",
    "pairs",
    multiple=True,
    metavar="NAME=VALUE",
    help="What the target is told beside; ${NAME} in headers and URLs is taken from the "
    "environment. Repeats.",
)
@click.option("--k", type=click.IntRange(1), help=f"How many hits are wanted (default: {_K}).")
@click.option("--seeds", metavar="N[,N...]", help="Ask everything once with each seed.")
@click.option(
    "--filter",
    "filters",
    multiple=True,
    metavar="FILTER",
    help="Only items with type=..., tag=..., lang=..., group=..., difficulty=... or qid=...; ~ "
    "instead of = takes a regular expression. Repeats: all must hold.",
)
@click.option(
    "--limit", type=click.IntRange(1), metavar="N", help="Only the first N items of those."
)
@click.option(
    "--concurrency",
    type=click.IntRange(1, 1024),
    default=8,
    show_default=True,
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
@click.option(
    "--retries",
    type=click.IntRange(0, 100),
    default=2,
    show_default=True,
    metavar="N",
    help="How often a question is asked again after an error that may pass.",
)
@click.option("--rate", metavar="N/s", help="Questions a second (/s), minute (/m) or hour (/h).")
@click.option(
    "--max-errors",
    type=click.IntRange(0),
    metavar="N",
    help="Stop after more errors than these; the run can be resumed.",
)
@click.option("--resume", metavar="RUN", help="Go on with a run that was stopped.")
@click.option(
    "--retry-errors", is_flag=True, help="With --resume: ask what ended in an error again."
)
@click.option("--no-timing", is_flag=True, help="Do not store how long answers took.")
@click.option("--profile", metavar="NAME", help="As for `score` (default: by the gold set).")
@click.option("--cutoffs", metavar="K[,K...]", help="Cut-offs of the metrics (the profile's own).")
@click.option("--corpus", metavar="DIR", help="A built corpus: for targets that search one, too.")
@click.option("--chunks", metavar="FILE", help="Where the chunks of the index lie.")
@click.option("--embedder", metavar="NAME", help="For targets that compare vectors.")
@options(EMBED_OPTIONS)
@options(GATE_OPTIONS)
@options([BASELINE_OPTION, FORMAT_OPTION, STORE_OPTION])
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
@OUTPUT_OPTION
@click.option("--full", is_flag=True, help="Add n, what was left out, intervals, every question.")
@options(ALLOW_OPTIONS)
def COMMAND(  # noqa: N802
    gold: str | None,
    target: str | None,
    pairs: tuple[str, ...],
    k: int | None,
    seeds: str | None,
    filters: tuple[str, ...],
    limit: int | None,
    concurrency: int,
    timeout: float,
    retries: int,
    rate: str | None,
    max_errors: int | None,
    resume: str | None,
    retry_errors: bool,
    no_timing: bool,
    profile: str | None,
    cutoffs: str | None,
    corpus: str | None,
    chunks: str | None,
    embedder: str | None,
    embed: str | None,
    embed_cache: str | None,
    gates: str | None,
    config_path: str | None,
    as_of: str | None,
    baseline: str | None,
    format_name: str,
    store_url: str | None,
    run_id: str | None,
    suite: str | None,
    tags: tuple[str, ...],
    snapshot: str | None,
    commit: str | None,
    outputs: tuple[str, ...],
    full: bool,
    allow_missing: bool,
    allow_errored: bool,
    allow_skipped: bool,
    allow_empty: bool,
    allow_no_baseline: bool,
) -> int:
    """Ask a system every question of a gold set, store the run, and decide as `score` does.

    Every answer is stored when it arrives. A run that was stopped goes on with --resume RUN; what
    it was begun with need not be said again.
    """
    from ragauge import registry
    from ragauge.gates.judge import Tolerance
    from ragauge.model.phrases import count
    from ragauge.run import run as running
    from ragauge.run.ask import Limits
    from ragauge.run.slots import read_seeds
    from ragauge.store import runs as run_store

    config = read_config(config_path)
    spare_inputs(
        output_files(outputs),
        config,
        config_path,
        gates=gates,
        baseline=baseline,
        store_url=store_url,
        others={
            "gold set": gold or config.gold,
            "list of chunks": chunks or config.chunks,
            "corpus": corpus or config.corpus,
            "snapshot": snapshot,
            "cache of vectors": embed_cache or config.embed_cache,
        },
    )
    limits = Limits(
        concurrency=concurrency,
        timeout=timeout,
        retries=retries,
        rate=_rate(rate),
        max_errors=max_errors,
    )
    settings = _settings(pairs)
    reports = asked_reports(format_name, outputs, registry.profile("all"))

    def demanded(chosen: Profile, ks: Sequence[int]) -> list[Gate]:
        return gates_from(chosen, ks, config, gates)

    screen = _Screen()
    ask = partial(running.ask_all, on_progress=screen.told, on_note=_noted)
    if resume is not None:
        _refuse(
            {
                "--filter": filters,
                "--limit": limit,
                "--profile": profile,
                "--cutoffs": cutoffs,
                "--run-id": run_id,
                "--suite": suite,
                "--snapshot": snapshot,
                "--commit": commit,
                "--no-timing": no_timing,
            }
        )
    elif retry_errors:
        raise click.UsageError("--retry-errors goes with --resume RUN")
    with ExitStack() as stack:
        store = stack.enter_context(the_store(store_url, config, create=resume is None))
        if resume is not None:
            again = running.resumed(
                store,
                _held(stack, store, resume),
                gold=gold,
                address=target,
                k=k,
                options=settings or None,
                seeds=None if seeds is None else read_seeds(seeds),
                corpus=corpus,
                chunks=chunks,
                embedder=embedder,
                embed=embed,
            )
            run, asked, given = again.run, again.asked, again.material
            with _opened(asked, limits) as opened:
                progress = ask(
                    store,
                    run,
                    asked,
                    given,
                    opened,
                    limits,
                    retry_errors=retry_errors,
                    embed=_measuring(asked, embed_cache, config),
                )
        else:
            gold = gold or config.gold
            if gold is None or target is None:
                missing = "--gold FILE" if gold is None else "--target ADDRESS"
                raise click.UsageError(f"nothing to ask: give {missing}")
            ks = _cutoffs(cutoffs) or config.k or None
            asked = running.Asked(
                address=target,
                k=k or max((_K, *(ks or ()))),
                options=settings,
                corpus=corpus or config.corpus,
                chunks=chunks or config.chunks,
                embedder=embedder,
                embed=embed or config.embed,
                seeds=read_seeds(seeds),
                filters=filters,
                limit=limit,
                timing=not no_timing,
            )
            given = running.material(
                gold,
                asked,
                running.Measuring(
                    profile=profile or config.profile,
                    dialect=config.dialect or "auto",
                    cutoffs=ks,
                    metrics=config.metrics,
                    also=[name for each in reports for name in each.needs],
                    gates=demanded,
                    refusal_patterns=config.refusal.patterns,
                    options=config.options,
                    count_repeats=full,
                ),
            )
            wanted = run_store.Wanted(
                run_id=run_id,
                suite=suite or config.suite or "default",
                tags=tags,
                commit_hash=commit or _commit(),
                system=_system(snapshot, config),
            )
            with _opened(asked, limits) as opened:
                begun = running.start_run(store, asked, given, opened.about, wanted)
                run = _held(stack, store, begun.run_id)
                progress = ask(
                    store,
                    run,
                    asked,
                    given,
                    opened,
                    limits,
                    embed=_measuring(asked, embed_cache, config),
                )
        screen.clear()
        if progress.stopped is not None:
            return _stopped(store, run, progress, limits)
        scores = running.complete(store, run, given, config.bands)
        for tag in tags if resume is not None else ():
            store.tag(tag, run.run_id)
        errors = scores.tally.errored
        told = f"stored {count(scores.tally.traces, 'result')} as {run.run_id} in {store.name}"
        click.echo(f"{told}{f', {errors} of them errors' if errors else ''}", err=True)
        finished = run_store.find_run(store, run.run_id)
        live = against(baseline, config, store, finished)
        chosen = registry.profile(scores.profile)
        allowed = Tolerance(
            missing=allow_missing,
            errored=allow_errored,
            skipped=allow_skipped,
            empty=allow_empty,
            no_baseline=allow_no_baseline,
        )
        code = conclude(
            scores,
            chosen,
            demanded(chosen, scores.k),
            config,
            allowed=allowed,
            as_of=as_of,
            format_name=format_name,
            outputs=outputs,
            full=full,
            baseline=live.baseline,
            beside=live.beside,
            details=details_in(
                stack, reports, store, finished, scores, Texts.of(asked.corpus, config)
            ),
        )
    return _unless_all_failed(code, scores, run) if not allow_errored else code


def _held(stack: ExitStack, store: Store, name: str) -> RunRecord:
    """A run that no other process goes on with meanwhile, as it was left by the last one."""
    from ragauge.store.runs import find_run

    found = find_run(store, name, complete=False)
    stack.enter_context(store.hold(found.run_id))
    return find_run(store, found.run_id, complete=False)


def _noted(note: str) -> None:
    click.echo(f"warning: {note}", err=True)


def _unless_all_failed(code: int, scores: Scores, run: RunRecord) -> int:
    """The exit code; where not one question was answered, nothing was measured that could pass."""
    from ragauge.codes import ExitCode

    if code != ExitCode.PASS or scores.tally.errored < scores.tally.traces:
        return code
    how = f"ragauge run --resume {run.run_id} --retry-errors"
    click.echo(f"every question ended in an error\n  hint: mend the target, then `{how}`", err=True)
    return int(ExitCode.NOT_EVALUABLE)


def _measuring(asked: Asked, cache: str | None, config: Config) -> Embedding | None:
    """How ΔS is taken of the answers: as the run was begun, whatever ragauge.toml says now."""
    return None if asked.embed is None else embedding(asked.embed, cache, None, config)


def _refuse(flags: dict[str, object]) -> None:
    given = [flag for flag, value in flags.items() if value]
    if given:
        raise click.UsageError(f"{', '.join(given)}: a run that is resumed stays as it was begun")


def _commit() -> str | None:
    from ragauge.store.git_commit import commit_hash

    return commit_hash(Path.cwd(), os.environ)


def _system(snapshot: str | None, config: Config) -> dict[str, Any]:
    from ragauge.store.snapshot import load_system

    return {**config.system, **({} if snapshot is None else load_system(Path(snapshot)))}


@contextmanager
def _opened(asked: Asked, limits: Limits) -> Iterator[Target]:
    """The target of a run. What it prints goes to standard error: the report is printed here."""
    from ragauge.run import run as running

    given = asked.target_options(limits.timeout)
    with redirect_stdout(sys.stderr), closing(running.open_target(asked.address, given)) as target:
        yield target


def _stopped(store: Store, run: RunRecord, progress: Progress, limits: Limits) -> int:
    """Say how a run that was stopped goes on."""
    from ragauge.errors import RagaugeError

    left = progress.total - progress.done
    how = f"ragauge run --resume {run.run_id} --store {store.name}"
    if progress.stopped == "interrupted":
        told = f"interrupted: {progress.done} results were stored, {left} are left"
        click.echo(f"{told}\n  hint: go on with `{how}`", err=True)
        return 130
    words = f"more than {limits.max_errors} errors"
    if progress.stopped == "hanging":
        words = "too many calls that never came back"
    raise RagaugeError.of(
        "too-many-errors",
        f"{words}: {progress.done} results were stored, {left} are left",
        hint=f"mend the target, then `{how} --retry-errors`",
    )
