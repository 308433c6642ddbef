"""`ragauge shadow`: may a second index take over some of the traffic of the live one?"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, redirect_stdout
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import click

from ragauge.cli.options import (
    ALLOW_OPTIONS,
    EMBED_OPTIONS,
    GATE_OPTIONS,
    day,
    embedding,
    finite,
    gates_from,
    options,
    read_config,
    screen,
    tolerance_of,
)
from ragauge.cli.output import spare_inputs
from ragauge.cli.store_options import STORE_OPTION, is_file, the_store

if TYPE_CHECKING:
    from ragauge.compare.common_gold import StoredRun
    from ragauge.config import Config
    from ragauge.model.embedder import Embedding
    from ragauge.model.run import Store
    from ragauge.model.shadow import ShadowReport
    from ragauge.model.verdict import Gate
    from ragauge.run.shadow import Interrupted, ShadowRequest

_SUFFIXES = {".json": "json", ".md": "md", ".txt": "table"}


class ShadowSide(NamedTuple):
    """One of the two indexes as the command line names it, and what goes with it."""

    role: str
    name: str
    chunks: str | None
    corpus: str | None
    embedder: str | None


class AskOptions(NamedTuple):
    """How targets are asked, and files are read."""

    gold: str | None
    profile: str
    k: int
    seeds: str | None
    timeout: float
    concurrency: int
    retries: int
    embed: Embedding | None


def _sided(name: str, metavar: str, words: str) -> list[object]:
    """The same option for each side."""
    return [
        click.option(f"--{role}-{name}", metavar=metavar, help=f"{words} of the {role} index.")
        for role in ("live", "shadow")
    ]


@click.command("shadow", short_help="Judge a shadow index against the live one.")
@click.option("--live", required=True, metavar="RUN|TRACE|TARGET", help="The live index.")
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
@click.option(
    "--k",
    type=click.IntRange(1),
    default=10,
    show_default=True,
    help="For targets: how many hits are wanted.",
)
@click.option("--seeds", metavar="N[,N...]", help="For targets: ask everything once with each.")
@click.option(
    "--timeout",
    type=click.FloatRange(0, min_open=True),
    default=60.0,
    show_default=True,
    callback=finite,
    help="For targets: seconds for one question.",
)
@click.option(
    "--concurrency",
    type=click.IntRange(1, 1024),
    default=8,
    show_default=True,
    help="For targets: questions that are asked at a time.",
)
@click.option(
    "--retries",
    type=click.IntRange(0, 100),
    default=2,
    show_default=True,
    help="For targets: how often a question is asked again after an error that may pass.",
)
@options(EMBED_OPTIONS)
@click.option(
    "--index-only",
    is_flag=True,
    help="Judge indexes that give no answers: leave out the gates on answers and citations.",
)
@options([*GATE_OPTIONS, STORE_OPTION])
@click.option(
    "--format",
    "format_name",
    type=click.Choice(["table", "json", "md"]),
    default="table",
    show_default=True,
    help="What is printed.",
)
@click.option(
    "-o",
    "outputs",
    multiple=True,
    metavar="FILE",
    help="Also write FILE; its suffix says the format. Repeats.",
)
@click.option(
    "--limit",
    type=click.IntRange(0),
    default=5,
    show_default=True,
    help="Questions that are listed for each gate.",
)
@click.option(
    "--min-n",
    type=click.IntRange(1),
    metavar="N",
    help="A type of evidence with fewer questions shows its n alone (default: as scored, 5).",
)
@options(ALLOW_OPTIONS[:4])
@click.option("--workers", type=click.IntRange(1, 256), help="Processes (default: by size).")
def COMMAND(  # noqa: N802
    live: str,
    shadow: str,
    gold: str | None,
    profile: str,
    live_chunks: str | None,
    shadow_chunks: str | None,
    live_corpus: str | None,
    shadow_corpus: str | None,
    live_embedder: str | None,
    shadow_embedder: str | None,
    k: int,
    seeds: str | None,
    timeout: float,
    concurrency: int,
    retries: int,
    embed: str | None,
    embed_cache: str | None,
    index_only: bool,
    gates: str | None,
    config_path: str | None,
    as_of: str | None,
    store_url: str | None,
    format_name: str,
    outputs: tuple[str, ...],
    limit: int,
    min_n: int | None,
    workers: int | None,
    **allow: bool,
) -> int:
    """Judge whether a shadow index is eligible for canary, against the live one.

    Each side is a stored run (id, tag, `baseline`, `latest`), a trace file with --gold, or a
    target as in `run`, which is asked every slot and stored.
    """
    from ragauge import registry
    from ragauge.run.shadow import Rules, judge_shadow

    config = read_config(config_path)
    registry.profile(profile)
    files = [(name, _format_of(name)) for name in outputs]
    spare_inputs(
        outputs,
        config,
        config_path,
        gates=gates,
        store_url=store_url,
        others={
            "live run": live,
            "shadow run": shadow,
            "gold set": gold or config.gold,
            "live list of chunks": live_chunks,
            "shadow list of chunks": shadow_chunks,
            "live corpus": live_corpus,
            "shadow corpus": shadow_corpus,
            "cache of vectors": embed_cache or config.embed_cache,
        },
    )
    how = AskOptions(
        gold or config.gold,
        profile,
        k,
        seeds,
        timeout,
        concurrency,
        retries,
        embedding(embed, embed_cache, None, config),
    )
    sides = (
        ShadowSide("live", live, live_chunks, live_corpus, live_embedder),
        ShadowSide("shadow", shadow, shadow_chunks, shadow_corpus, shadow_embedder),
    )

    def shadow_gates(ks: Sequence[int]) -> list[Gate]:
        return gates_from(registry.profile(profile), ks, config, gates)

    rules = Rules(
        gates=shadow_gates,
        profile=profile,
        tolerance=tolerance_of(allow),
        waivers=config.waivers,
        today=day(as_of, needed=bool(config.waivers)),
        limit=limit,
        min_n=min_n,
        workers=workers,
        index_only=index_only,
        bands=config.bands,
    )
    with _both(sides, how, config, store_url) as (one, other):
        report = judge_shadow(one, other, rules)
    _emit(report, format_name, files, limit)
    return int(report.verdict.exit_code)


@contextmanager
def _both(
    sides: tuple[ShadowSide, ShadowSide], how: AskOptions, config: Config, store_url: str | None
) -> Iterator[tuple[StoredRun, StoredRun]]:
    """Both sides as stored runs; those of files are gone at the end."""
    with ExitStack() as stack:
        kinds = [_kind(side) for side in sides]
        for side, kind in zip(sides, kinds, strict=True):
            _refuse_stray(side, kind, how)
        store = None
        if any(kind != "file" for kind in kinds):
            create = "target" in kinds
            store = stack.enter_context(the_store(store_url, config, create=create))
        stored = [
            _stored(stack, side, kind, how, config, store)
            for side, kind in zip(sides, kinds, strict=True)
        ]
        yield stored[0], stored[1]


def _kind(side: ShadowSide) -> str:
    """Whether a side is a target, a file, or a stored run."""
    from ragauge import registry

    scheme, colon, _ = side.name.partition(":")
    if colon and scheme in registry.targets():
        return "target"
    return "file" if is_file(side.name) else "run"


def _refuse_stray(side: ShadowSide, kind: str, how: AskOptions) -> None:
    unusable = {
        f"--{side.role}-chunks": side.chunks if kind == "run" else None,
        f"--{side.role}-corpus": side.corpus if kind == "run" else None,
        f"--{side.role}-embedder": side.embedder if kind != "target" else None,
    }
    stray = [flag for flag, value in unusable.items() if value is not None]
    if stray:
        raise click.UsageError(f"{', '.join(stray)}: not for a {kind}")
    if kind != "run" and how.gold is None:
        raise click.UsageError(f"--{side.role} {side.name}: give the gold set with --gold FILE")


def _stored(
    stack: ExitStack,
    side: ShadowSide,
    kind: str,
    how: AskOptions,
    config: Config,
    store: Store | None,
) -> StoredRun:
    from ragauge.compare.common_gold import StoredRun
    from ragauge.run.shadow import Interrupted, asked_run
    from ragauge.store import runs as run_store

    if kind == "file":
        return _file(stack, side, how, config)
    assert store is not None
    if kind == "run":
        return StoredRun(
            store, run_store.find_run(store, side.name, suite=config.suite or "default")
        )
    try:
        with redirect_stdout(sys.stderr):  # what a target prints is not the report
            run, errors = asked_run(
                store,
                how.gold or "",
                _asking(side, how, config),
                embed=how.embed,
                on_note=lambda note: click.echo(f"warning: {side.role}: {note}", err=True),
            )
    except Interrupted as stopped:
        click.echo(_left(side, store, stopped), err=True)
        raise click.exceptions.Exit(130) from stopped
    sentence = f"stored {side.role}: {run.results} results as {run.run_id}"
    click.echo(f"{sentence}{f', {errors} of them errors' if errors else ''}", err=True)
    return StoredRun(store, run)


def _left(side: ShadowSide, store: Store, stopped: Interrupted) -> str:
    """What is stored of a side that was not asked to the end, and how it goes on."""
    sentence = f"interrupted: what the {side.role} index answered so far was stored"
    if stopped.progress is not None:
        done, total = stopped.progress.done, stopped.progress.total
        sentence = f"interrupted: {done} results of the {side.role} index were stored, "
        sentence += f"{total - done} are left"
    how = f"ragauge run --resume {stopped.run_id} --store {store.name}"
    return (
        f"{sentence}\n  hint: go on with `{how}`, then judge it as --{side.role} {stopped.run_id}"
    )


def _file(stack: ExitStack, side: ShadowSide, how: AskOptions, config: Config) -> StoredRun:
    """A trace file as a run in a store of its own, gone at the end."""
    import tempfile

    from ragauge.compare.common_gold import StoredRun
    from ragauge.run.shadow import scored_run
    from ragauge.store import runs as run_store

    folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="ragauge-"))
    url = f"sqlite:///{Path(folder) / 'run.db'}"
    store = stack.enter_context(run_store.opened_store(url, create=True))
    run = scored_run(
        store,
        how.gold or "",
        side.name,
        side.name,
        profile=how.profile,
        dialect=config.dialect or "auto",
        k=config.k or None,
        chunks=side.chunks,
        corpus=side.corpus,
        refusal_patterns=config.refusal.patterns,
        options=config.options,
        intervals=False,
        embed=how.embed,
    )
    return StoredRun(store, run)


def _asking(side: ShadowSide, how: AskOptions, config: Config) -> ShadowRequest:
    from ragauge.run import run as running
    from ragauge.run.ask import Limits
    from ragauge.run.shadow import ShadowRequest
    from ragauge.run.slots import read_seeds
    from ragauge.store.git_commit import commit_hash
    from ragauge.store.runs import RunDescription

    return ShadowRequest(
        asked=running.Asked(
            address=side.name,
            k=how.k,
            corpus=side.corpus,
            chunks=side.chunks,
            embedder=side.embedder,
            seeds=read_seeds(how.seeds),
            embed=None if how.embed is None else how.embed.name,
        ),
        measuring=running.ScoringRequest(
            profile=how.profile,
            dialect=config.dialect or "auto",
            cutoffs=config.k or None,
            refusal_patterns=config.refusal.patterns,
            options=config.options,
        ),
        limits=Limits(concurrency=how.concurrency, timeout=how.timeout, retries=how.retries),
        wanted=RunDescription(
            suite=config.suite or "default",
            commit_hash=commit_hash(Path.cwd(), os.environ),
            system=config.system,
        ),
    )


def _format_of(name: str) -> str:
    suffix = Path(name).suffix
    if suffix not in _SUFFIXES:
        suffixes = ", ".join(sorted(_SUFFIXES))
        raise click.UsageError(f"-o {name}: the suffix says the format; known: {suffixes}")
    return _SUFFIXES[suffix]


def _emit(
    report: ShadowReport, format_name: str, files: Sequence[tuple[str, str]], limit: int
) -> None:
    from ragauge.files.atomic_write import write_atomically
    from ragauge.report import shadow as shadowtexts

    def text(kind: str) -> str:
        if kind == "json":
            return shadowtexts.json_text(report)
        if kind == "md":
            return shadowtexts.markdown_text(report, limit=limit)
        return shadowtexts.table_text(report, limit=limit)

    for name, kind in files:
        write_atomically(name, text(kind))
    if format_name == "table":
        click.echo(shadowtexts.table_text(report, limit=limit, **screen()), nl=False)
    else:
        click.echo(text(format_name), nl=False)
