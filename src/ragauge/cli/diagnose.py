"""`ragauge diagnose`: what is likely to be wrong with a run, and what to do next."""

from __future__ import annotations

from contextlib import ExitStack
from typing import TYPE_CHECKING

import click

from ragauge.cli.options import options, read_config, screen
from ragauge.cli.store_options import CONFIG_OPTION, STORE_OPTION, is_file, the_store

if TYPE_CHECKING:
    from ragauge.config import Config
    from ragauge.diagnose.diagnose import MeasuredRun


@click.command("diagnose", short_help="Say what is likely to be wrong with a run.")
@click.argument("run", metavar="RUN|GOLD")
@click.argument("trace", required=False, metavar="[TRACE]")
@click.option("--profile", metavar="NAME", help="As for `score` (default: by the files or run).")
@click.option("--dialect", metavar="NAME", help="For files, as in `score`.")
@click.option("--chunks", metavar="FILE", help="For files: where the chunks of the index lie.")
@click.option("--corpus", metavar="DIR", help="For files: a built corpus.")
@options([STORE_OPTION, CONFIG_OPTION])
@click.option(
    "--format",
    "format_name",
    type=click.Choice(["table", "json", "md"]),
    default="table",
    show_default=True,
    help="What is printed.",
)
@click.option(
    "--limit",
    type=click.IntRange(0),
    default=10,
    show_default=True,
    help="Questions that are listed.",
)
@click.option("--workers", type=click.IntRange(1, 256), help="Processes (default: by size).")
def COMMAND(  # noqa: N802
    run: str,
    trace: str | None,
    profile: str | None,
    dialect: str | None,
    chunks: str | None,
    corpus: str | None,
    store_url: str | None,
    config_path: str | None,
    format_name: str,
    limit: int,
    workers: int | None,
) -> int:
    """Say what is likely to be wrong with a run, with the numbers that say so.

    RUN is a stored run (id, tag, `baseline`, `latest`); with GOLD and TRACE two files are read.
    """
    from ragauge.diagnose.diagnose import diagnosis_of
    from ragauge.report import diagnosis as texts

    config = read_config(config_path)
    if trace is None:
        file_options = {"--dialect": dialect, "--chunks": chunks, "--corpus": corpus}
        measured = _stored(run, profile, store_url, config, workers, file_options)
    else:
        measured = _files(run, trace, profile, dialect, (chunks, corpus), config, workers)
    diagnosis = diagnosis_of(measured, limit=limit)
    if format_name == "json":
        text = texts.json_text(diagnosis)
    elif format_name == "md":
        text = texts.markdown_text(diagnosis)
    else:
        text = texts.table_text(diagnosis, **screen())
    click.echo(text, nl=False)
    return 0


def _stored(
    name: str,
    profile: str | None,
    store_url: str | None,
    config: Config,
    workers: int | None,
    file_options: dict[str, str | None],
) -> MeasuredRun:
    from ragauge.diagnose.diagnose import measured_run
    from ragauge.store import runs as run_store

    if is_file(name):
        raise click.UsageError("give a stored run, or a gold set and its traces")
    stray = [flag for flag, value in file_options.items() if value is not None]
    if stray:
        raise click.UsageError(f"{', '.join(stray)}: only for files")
    with ExitStack() as stack:
        store = stack.enter_context(the_store(store_url, config))
        record = run_store.find_run(store, name, suite=config.suite or "default")
        return measured_run(store, record, profile=profile, workers=workers, bands=config.bands)


def _files(
    gold: str,
    trace: str,
    profile: str | None,
    dialect: str | None,
    places: tuple[str | None, str | None],
    config: Config,
    workers: int | None,
) -> MeasuredRun:
    from ragauge.diagnose.diagnose import measured_files

    return measured_files(
        gold,
        trace,
        profile=profile or config.profile,
        dialect=dialect or config.dialect or "auto",
        k=config.k or None,
        refusal_patterns=config.refusal.patterns,
        chunks=places[0],
        corpus=places[1],
        options=config.options,
        workers=workers,
        bands=config.bands,
    )
