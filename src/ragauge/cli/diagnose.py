"""`ragauge diagnose`: what is likely to be wrong with a run, and what to do next."""

from __future__ import annotations

from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

import click

from ragauge.cli.named_runs import RunFinder, names_run
from ragauge.cli.options import (
    EMBED_OPTIONS,
    THREE_FORMATS,
    WORKERS_OPTION,
    CommandOptions,
    embedding,
    options,
    screen,
    whole_number,
)
from ragauge.cli.store_options import CONFIG_OPTION, STORE_OPTION
from ragauge.cli.streams import print_text

if TYPE_CHECKING:
    from ragauge.diagnose.diagnose import MeasuredRun


@click.command("diagnose", short_help="Say what is likely to be wrong with a run.")
@click.argument("run", metavar="RUN|GOLD")
@click.argument("trace", required=False, metavar="[TRACE]")
@click.option("--profile", metavar="NAME", help="As for `score` (default: by the files or run).")
@click.option("--dialect", metavar="NAME", help="For files, as in `score`.")
@click.option("--chunks", metavar="FILE", help="For files: where the chunks of the index lie.")
@click.option("--corpus", metavar="DIR", help="For files: a built corpus.")
@click.option(
    "--baseline",
    metavar="RUN|TRACE",
    help="Rank causes by what rose against a stored run, a run file, or another trace file.",
)
@options(EMBED_OPTIONS)
@options([STORE_OPTION, CONFIG_OPTION])
@THREE_FORMATS
@whole_number("--limit", least=0, default=10, help="Questions that are listed.")
@WORKERS_OPTION
def COMMAND(**values: Any) -> int:  # noqa: N802
    """Say what is likely to be wrong with a run, with the numbers that say so.

    RUN is a stored run (id, tag, `baseline`, `latest`) or a file of --save-run; with GOLD and TRACE
    two files are read. With --baseline causes are ranked by what rose against it: such a run, or a
    trace file that is scored with the same gold.
    """
    from ragauge.diagnose.diagnose import diagnosis_of
    from ragauge.report import diagnosis as texts

    asked = CommandOptions(**values)
    if asked.trace is None and not names_run(asked.run):
        raise click.UsageError("give a stored run, or a gold set and its traces")
    if asked.trace is None and asked.baseline is not None and not names_run(asked.baseline):
        raise click.UsageError("--baseline: a trace file needs GOLD and TRACE beside it")
    measured = _stored(asked, asked.run) if asked.trace is None else _files(asked, asked.trace)
    baseline = None
    if asked.baseline is not None:
        of_run = names_run(asked.baseline)
        baseline = (_stored if of_run else _files)(asked, asked.baseline)
    diagnosis = diagnosis_of(measured, limit=asked.limit, baseline=baseline)
    if asked.format_name == "json":
        text = texts.json_text(diagnosis)
    elif asked.format_name == "md":
        text = texts.markdown_text(diagnosis)
    else:
        text = texts.table_text(diagnosis, **screen())
    print_text(text, "json" if asked.format_name == "json" else "text")
    return 0


def _stored(asked: CommandOptions, name: str) -> MeasuredRun:
    from ragauge.diagnose.diagnose import measured_run

    config = asked.config
    for_files = ("dialect", "chunks", "corpus", "embed")
    stray = [f"--{option}" for option in for_files if getattr(asked, option) is not None]
    if stray and asked.trace is None:
        raise click.UsageError(f"{', '.join(stray)}: only for files")
    with ExitStack() as stack:
        finder = RunFinder(
            stack,
            config,
            open_store=lambda: stack.enter_context(asked.store()),
            suite=config.suite or "default",
        )
        run = finder.run(name)
        return measured_run(
            run.store,
            run.record,
            profile=asked.profile,
            workers=asked.workers,
            bands=config.bands,
        )


def _files(asked: CommandOptions, trace: str) -> MeasuredRun:
    from ragauge.diagnose.diagnose import measured_files

    config = asked.config
    return measured_files(
        asked.run,
        trace,
        profile=asked.configured("profile"),
        dialect=asked.configured("dialect") or "auto",
        k=config.k or None,
        refusal_patterns=config.refusal.patterns,
        chunks=asked.configured("chunks"),
        corpus=asked.configured("corpus"),
        options=config.options,
        fields=asked.field_maps,
        ignore_fields=config.ignored_fields,
        workers=asked.workers,
        embed=embedding(asked.embed, asked.embed_cache, None, config),
        bands=config.bands,
    )
