"""`ragauge shadow`: may a second index take over some of the traffic of the live one?"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, redirect_stdout
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from ragauge.cli.named_runs import RunFinder, names_run
from ragauge.cli.options import (
    ALLOW_OPTIONS,
    ASK_OPTIONS,
    DELTA_S_OPTION,
    EMBED_OPTIONS,
    GATE_OPTIONS,
    PATIENCE_OPTIONS,
    STAGE_OPTION,
    THREE_FORMATS,
    WORKERS_OPTION,
    CommandOptions,
    day,
    embedding,
    finite,
    is_strict,
    of_them_errors,
    options,
    questions_a_second,
    say,
    screen,
    target_settings,
    whole_number,
    whole_numbers,
)
from ragauge.cli.output import refuse_past
from ragauge.cli.store_options import STORE_OPTION, checkout_facts, is_file
from ragauge.cli.streams import print_text

if TYPE_CHECKING:
    from ragauge.compare.common_gold import StoredRun
    from ragauge.model.report import Syntax
    from ragauge.model.run import RunRecord, Store
    from ragauge.run.shadow import Interrupted, ShadowRequest

_SIDE_PARTS = ("chunks", "corpus", "embedder", "option")
_SUFFIXES = {".json": "json", ".md": "md", ".txt": "table"}


class ShadowSide(NamedTuple):
    """One of the two indexes as the command line names it, and what goes with it."""

    role: str
    name: str
    chunks: str | None
    corpus: str | None
    embedder: str | None
    option: tuple[str, ...]


def _sided(name: str, metavar: str, words: str, *, multiple: bool = False) -> list[object]:
    """The same option for each side; without `live` or `shadow` it is for both."""
    return [
        click.option(
            f"--{role}-{name}",
            metavar=metavar,
            multiple=multiple,
            help=f"{words} of the {role} index.{' Repeats.' if multiple else ''}",
        )
        for role in ("live", "shadow")
    ]


@click.command("shadow", short_help="Judge a shadow index against the live one.")
@click.option(
    "--live",
    required=True,
    metavar="RUN|TRACE|TARGET",
    help="The live index; a RUN is stored, or in a run file.",
)
@click.option("--shadow", required=True, metavar="RUN|TRACE|TARGET", help="The index to judge.")
@click.option("--gold", metavar="FILE", help="The gold set, for trace files and targets.")
@click.option(
    "--profile",
    default="canary",
    show_default=True,
    metavar="NAME",
    help="Whose gates decide; both runs are scored by it.",
)
@options(_sided("chunks", "FILE", "Where the chunks lie"))  # type: ignore[arg-type]
@options(_sided("corpus", "DIR", "The built corpus"))  # type: ignore[arg-type]
@options(_sided("embedder", "NAME", "For targets: the embedder"))  # type: ignore[arg-type]
@options(_sided("option", "NAME=VALUE", "What is told to the target", multiple=True))  # type: ignore[arg-type]
@whole_number("--k", least=1, default=10, help="For targets: how many hits are wanted.")
@click.option("--seeds", metavar="N[,N...]", help="For targets: ask everything once with each.")
@click.option(
    "--timeout",
    type=click.FloatRange(0, min_open=True),
    default=60.0,
    show_default=True,
    callback=finite,
    help="For targets: seconds for one question.",
)
@whole_number(
    "--concurrency",
    least=1,
    most=1024,
    default=8,
    help="For targets: questions that are asked at a time.",
)
@whole_number(
    "--retries",
    least=0,
    most=100,
    default=2,
    help="For targets: how often a question is asked again after an error that may pass.",
)
@options(PATIENCE_OPTIONS)
@options([*ASK_OPTIONS, STAGE_OPTION])
@options(EMBED_OPTIONS)
@click.option(
    "--index-only",
    is_flag=True,
    help="Judge indexes that give no answers: leave out the gates on answers and citations.",
)
@options([*GATE_OPTIONS, STORE_OPTION])
@THREE_FORMATS
@click.option(
    "-o",
    "outputs",
    multiple=True,
    metavar="FILE",
    help="Also write FILE; its suffix says the format. Repeats.",
)
@whole_number("--limit", least=0, default=5, help="Questions that are listed for each gate.")
@click.option(
    "--min-n",
    type=click.IntRange(1),
    metavar="N",
    help="A type of evidence with fewer questions shows its n alone (default: as scored, 5).",
)
@options([*ALLOW_OPTIONS[:6], DELTA_S_OPTION])
@WORKERS_OPTION
def COMMAND(**values: Any) -> int:  # noqa: N802
    """Judge whether a shadow index is eligible for canary, against the live one.

    Each side is a stored run (id, tag, `baseline`, `latest`), a trace file with --gold, or a
    target as in `run`, which is asked every slot and stored.
    """
    from ragauge import registry
    from ragauge.files.atomic_write import write_atomically
    from ragauge.report import shadow as shadowtexts
    from ragauge.run.shadow import Rules, judge_shadow

    asked = CommandOptions(**values)
    config, profile = asked.config, registry.profile(asked.profile)
    files = [(name, _format_of(name)) for name in asked.outputs]
    sides = [
        ShadowSide(
            role, *(values[name] for name in (role, *(f"{role}_{part}" for part in _SIDE_PARTS)))
        )
        for role in ("live", "shadow")
    ]
    asked.spare(
        asked.outputs,
        {
            "live run": asked.live,
            "shadow run": asked.shadow,
            "gold set": asked.configured("gold"),
            "live list of chunks": asked.live_chunks,
            "shadow list of chunks": asked.shadow_chunks,
            "live corpus": asked.live_corpus,
            "shadow corpus": asked.shadow_corpus,
            "cache of vectors": asked.configured("embed_cache"),
        },
    )
    asked.gold = asked.configured("gold")
    asked.both = {name: asked.configured(name) for name in ("chunks", "corpus")}
    asked.embedding = embedding(asked.embed, asked.embed_cache, None, config)
    rules = Rules(
        gates=lambda ks: asked.all_gates(profile, ks),
        profile=asked.profile,
        tolerance=asked.tolerance,
        waivers=config.waivers,
        today=_day(asked),
        limit=asked.limit,
        min_n=asked.min_n,
        workers=asked.workers,
        index_only=asked.index_only,
        bands=config.bands,
        fail_on_review=is_strict("fail_on_review"),
    )
    with _both(sides, asked) as (one, other):
        if rules.today is not None and asked.as_of is not None and config.waivers:
            # Stored runs say when they were made; files were looked at before they were scored.
            stored = [side.record for side in (one, other) if side.record.created_at]
            refuse_past(rules.today, stored, config.waivers)
        report = judge_shadow(one, other, rules)
    texts: dict[str, Callable[..., str]] = {
        "json": lambda **_: shadowtexts.json_text(report),
        "md": lambda **_: shadowtexts.markdown_text(report, limit=asked.limit),
        "table": lambda **size: shadowtexts.table_text(report, limit=asked.limit, **size),
    }
    for name, kind in files:
        write_atomically(name, texts[kind]())
    syntax: Syntax = "json" if asked.format_name == "json" else "text"
    print_text(texts[asked.format_name](**screen()), syntax)
    return int(report.verdict.exit_code)


def _day(asked: CommandOptions) -> Any:
    """The day that waivers are judged on: not before either side was there."""
    today = day(asked.as_of, needed=bool(asked.config.waivers))
    if asked.as_of is not None and asked.config.waivers:
        files = [name for name in (asked.live, asked.shadow) if is_file(name)]
        undated: list[RunRecord | str | None] = [name for name in files if not names_run(name)]
        refuse_past(today, undated, asked.config.waivers)
    return today


@contextmanager
def _both(sides: list[ShadowSide], asked: CommandOptions) -> Iterator[tuple[StoredRun, StoredRun]]:
    """Both sides as stored runs; those of files are gone at the end."""
    with ExitStack() as stack:
        kinds = [_kind(side) for side in sides]
        for side, kind in zip(sides, kinds, strict=True):
            _refuse_stray(side, kind, asked)
        finder = RunFinder(
            stack,
            asked.config,
            open_store=lambda: stack.enter_context(asked.store(create="target" in kinds)),
            suite=asked.config.suite or "default",
        )
        stored = [side.name for side, kind in zip(sides, kinds, strict=True) if kind == "run"]
        if "target" in kinds:
            _ = finder.store  # before anything is asked
        finder.open_for(stored)
        one, other = (
            _stored(stack, side, kind, asked, finder)
            for side, kind in zip(sides, kinds, strict=True)
        )
        yield one, other


def _kind(side: ShadowSide) -> str:
    """Whether a side is a target, a file of traces, or a run: stored, or in a run file."""
    from ragauge import registry

    scheme, colon, _ = side.name.partition(":")
    if colon and scheme in registry.targets():
        return "target"
    return "run" if names_run(side.name) else "file"


def _refuse_stray(side: ShadowSide, kind: str, asked: CommandOptions) -> None:
    unusable = {
        f"--{side.role}-chunks": side.chunks if kind == "run" else None,
        f"--{side.role}-corpus": side.corpus if kind == "run" else None,
        f"--{side.role}-embedder": side.embedder if kind != "target" else None,
        "--stage first": True if kind == "run" and asked.stage == "first" else None,
    }
    stray = [flag for flag, value in unusable.items() if value is not None]
    if stray:
        raise click.UsageError(f"{', '.join(stray)}: not for a {kind}")
    unread = {
        "--live-option": asked.live_option if side.role == "live" else (),
        "--shadow-option": asked.shadow_option if side.role == "shadow" else (),
        "--filter": asked.filters,
    }
    for flag, value in unread.items():
        if value and kind != "target":
            raise click.UsageError(f"{flag}: --{side.role} {side.name} is no target")
    if kind != "run" and asked.gold is None:
        raise click.UsageError(f"--{side.role} {side.name}: give the gold set with --gold FILE")


def _stored(
    stack: ExitStack, side: ShadowSide, kind: str, asked: CommandOptions, finder: RunFinder
) -> StoredRun:
    from ragauge.compare.common_gold import StoredRun
    from ragauge.run.shadow import Interrupted, asked_run

    if kind == "file":
        return asked.scored_file(
            stack,
            asked.gold,
            side.name,
            chunks=side.chunks or asked.both["chunks"],
            corpus=side.corpus or asked.both["corpus"],
            embed=asked.embedding,
        )
    if kind == "run":
        return finder.run(side.name)
    store = finder.store
    try:
        with redirect_stdout(sys.stderr):  # what a target prints is not the report
            answered = asked_run(
                store,
                asked.gold,
                _asking(side, asked),
                embed=asked.embedding,
                on_note=lambda note: say(f"warning: {side.role}: {note}"),
            )
    except Interrupted as stopped:
        for line in _left(side, store, stopped):
            say(line)
        raise click.exceptions.Exit(130) from stopped
    run = answered.run
    sentence = f"stored {side.role}: {run.results} results as {run.run_id}"
    say(f"{sentence}{of_them_errors(answered.errors, answered.reasons)}")
    return StoredRun(store, run)


def _left(side: ShadowSide, store: Store, stopped: Interrupted) -> tuple[str, str]:
    """What is stored of a side that was not asked to the end, and how it goes on."""
    sentence = f"interrupted: what the {side.role} index answered so far was stored"
    if stopped.progress is not None:
        done, total = stopped.progress.done, stopped.progress.total
        sentence = f"interrupted: {done} results of the {side.role} index were stored, "
        sentence += f"{total - done} are left"
    how = f"ragauge run --resume {stopped.run_id} --store {store.name}"
    hint = f"  hint: go on with `{how}`, then judge it as --{side.role} {stopped.run_id}"
    return sentence, hint


def _asking(side: ShadowSide, asked: CommandOptions) -> ShadowRequest:
    from ragauge.run import run as running
    from ragauge.run.ask import Limits
    from ragauge.run.shadow import ShadowRequest
    from ragauge.run.slots import read_seeds
    from ragauge.store.runs import RunDescription

    config = asked.config
    limits = Limits(
        concurrency=asked.concurrency,
        timeout=asked.timeout,
        retries=asked.retries,
        rate=questions_a_second(asked.rate),
        max_errors=asked.max_errors,
        max_wait=asked.max_wait,
        keep_going=asked.keep_going,
    )
    return ShadowRequest(
        asked=running.Asked(
            address=side.name,
            k=asked.k,
            options={**target_settings(asked.pairs), **target_settings(side.option)},
            corpus=side.corpus or asked.both["corpus"],
            chunks=side.chunks or asked.both["chunks"],
            embedder=side.embedder or asked.embedder,
            seeds=read_seeds(asked.seeds),
            filters=asked.filters,
            timing=not asked.no_timing,
            stage=asked.stage,
            embed=None if asked.embedding is None else asked.embedding.name,
        ),
        measuring=running.ScoringRequest(
            profile=asked.profile,
            dialect=config.dialect or "auto",
            cutoffs=whole_numbers("--cutoffs", asked.cutoffs) or config.k or None,
            refusal_patterns=config.refusal.patterns,
            options=config.options,
            fields=config.field_maps,
        ),
        limits=limits,
        wanted=RunDescription(
            suite=config.suite or "default",
            **checkout_facts(config),
            system=config.system,
        ),
    )


def _format_of(name: str) -> str:
    suffix = Path(name).suffix
    if suffix not in _SUFFIXES:
        suffixes = ", ".join(sorted(_SUFFIXES))
        raise click.UsageError(f"-o {name}: the suffix says the format; known: {suffixes}")
    return _SUFFIXES[suffix]
