"""`ragauge prompt`: a scoring prompt with the data, for those who want a model's second opinion."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import click

from ragauge.cli.options import gates_from, options, read_config
from ragauge.cli.store_options import CONFIG_OPTION, STORE_OPTION, is_file, the_store

if TYPE_CHECKING:
    from ragauge.config import Config
    from ragauge.diagnose.diagnose import MeasuredRun
    from ragauge.model.run import RunRecord, Store
    from ragauge.model.verdict import Verdict


class GoldAndTrace(NamedTuple):
    """Two files, and how they are read."""

    gold: str
    trace: str
    profile: str | None
    dialect: str | None


@click.command("prompt", short_help="Print a prompt for a language model's second opinion.")
@click.argument("run", metavar="RUN|GOLD")
@click.argument("trace", required=False, metavar="[TRACE]")
@click.option("--profile", metavar="NAME", help="As for `score` (default: by the files or run).")
@click.option("--dialect", metavar="NAME", help="For files, as in `score`.")
@options([STORE_OPTION, CONFIG_OPTION])
@click.option(
    "--limit",
    type=click.IntRange(0),
    default=10,
    show_default=True,
    help="Questions that are shown, the worst first.",
)
def COMMAND(  # noqa: N802
    run: str,
    trace: str | None,
    profile: str | None,
    dialect: str | None,
    store_url: str | None,
    config_path: str | None,
    limit: int,
) -> int:
    """Print a prompt with the rules, the numbers and the worst questions of a run.

    RUN is a stored run (id, tag, `baseline`, `latest`); with GOLD and TRACE two files are read.
    Nothing is sent anywhere, and secrets are left out.
    """
    from ragauge import registry
    from ragauge.diagnose import prompt
    from ragauge.diagnose.diagnose import diagnosis_of, measured_run, prompt_questions
    from ragauge.diagnose.rank_findings import NEEDS
    from ragauge.diagnose.rules import bands_of, unread
    from ragauge.model.report import View

    config = read_config(config_path)
    report = registry.report("compact")
    with ExitStack() as stack:
        if trace is None:
            store, record = _stored(stack, run, store_url, config, dialect)
        else:
            store, record = _scored(stack, GoldAndTrace(run, trace, profile, dialect), config)
        measured = measured_run(
            store, record, profile=profile, also=(*NEEDS, *report.needs), bands=config.bands
        )
        diagnosis = diagnosis_of(measured, limit=limit)
        questions = prompt_questions(measured, store, record, diagnosis.questions)
    verdict = _verdict(measured, config)
    chosen = registry.profile(measured.scores.profile)
    compact = report.text(View(scores=measured.scores, verdict=verdict, profile=chosen))
    text = prompt.prompt(
        diagnosis,
        compact,
        questions,
        verdict=verdict,
        bands=bands_of(measured.scores),
        doubt=unread(measured.scores),
    )
    click.echo(text, nl=False)
    return 0


def _stored(
    stack: ExitStack, name: str, store_url: str | None, config: Config, dialect: str | None
) -> tuple[Store, RunRecord]:
    from ragauge.store import runs as run_store

    if is_file(name):
        raise click.UsageError("give a stored run, or a gold set and its traces")
    if dialect is not None:
        raise click.UsageError("--dialect: only for files")
    store = stack.enter_context(the_store(store_url, config))
    return store, run_store.find_run(store, name, suite=config.suite or "default")


def _scored(stack: ExitStack, files: GoldAndTrace, config: Config) -> tuple[Store, RunRecord]:
    """Trace files as a run in a store of its own, gone at the end."""
    import tempfile

    from ragauge.run.shadow import scored_run
    from ragauge.store import runs as run_store

    folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="ragauge-"))
    url = f"sqlite:///{Path(folder) / 'run.db'}"
    store = stack.enter_context(run_store.opened_store(url, create=True))
    run = scored_run(
        store,
        files.gold,
        files.trace,
        files.trace,
        profile=files.profile or config.profile,
        dialect=files.dialect or config.dialect or "auto",
        k=config.k or None,
        refusal_patterns=config.refusal.patterns,
        options=config.options,
        intervals=False,
    )
    return store, run


def _verdict(measured: MeasuredRun, config: Config) -> Verdict:
    """The gates as they stand; without a live run those on a drop are left out."""
    from ragauge import registry
    from ragauge.gates.judge import judge

    scores = measured.scores
    profile = registry.profile(scores.profile)
    gates = [gate for gate in gates_from(profile, scores.k, config, None) if not gate.is_drop]
    return judge(
        scores,
        gates,
        source_rules=profile.follows_source,
        whole_grid=profile.join.grid == "complete",
    )
