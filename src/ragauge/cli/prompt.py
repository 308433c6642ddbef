"""`ragauge prompt`: a scoring prompt with the data, for those who want a model's second opinion."""

from __future__ import annotations

from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

import click

from ragauge.cli.options import CommandOptions, gates_from, options, whole_number
from ragauge.cli.store_options import CONFIG_OPTION, STORE_OPTION, is_file, temporary_store

if TYPE_CHECKING:
    from ragauge.config import Config
    from ragauge.model.run import RunRecord, Store
    from ragauge.model.scores import Scores
    from ragauge.model.verdict import Verdict


@click.command("prompt", short_help="Print a prompt for a language model's second opinion.")
@click.argument("run", metavar="RUN|GOLD")
@click.argument("trace", required=False, metavar="[TRACE]")
@click.option("--profile", metavar="NAME", help="As for `score` (default: by the files or run).")
@click.option("--dialect", metavar="NAME", help="For files, as in `score`.")
@options([STORE_OPTION, CONFIG_OPTION])
@whole_number("--limit", least=0, default=10, help="Questions that are shown, the worst first.")
def COMMAND(**values: Any) -> int:  # noqa: N802
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

    asked = CommandOptions(**values)
    config = asked.config
    report = registry.report("compact")
    with ExitStack() as stack:
        store, record = (_stored if asked.trace is None else _scored)(stack, asked)
        also = (*NEEDS, *report.needs)
        measured = measured_run(store, record, profile=asked.profile, also=also, bands=config.bands)
        diagnosis = diagnosis_of(measured, limit=asked.limit)
        questions = prompt_questions(measured, store, record, diagnosis.questions)
    scores = measured.scores
    verdict = _verdict(scores, config)
    view = View(scores=scores, verdict=verdict, profile=registry.profile(scores.profile))
    text = prompt.prompt(
        diagnosis,
        report.text(view),
        questions,
        verdict=verdict,
        bands=bands_of(scores),
        doubt=unread(scores),
    )
    click.echo(text, nl=False)
    return 0


def _stored(stack: ExitStack, asked: CommandOptions) -> tuple[Store, RunRecord]:
    from ragauge.store import runs as run_store

    if is_file(asked.run):
        raise click.UsageError("give a stored run, or a gold set and its traces")
    if asked.dialect is not None:
        raise click.UsageError("--dialect: only for files")
    store = stack.enter_context(asked.store())
    return store, run_store.find_run(store, asked.run, suite=asked.config.suite or "default")


def _scored(stack: ExitStack, asked: CommandOptions) -> tuple[Store, RunRecord]:
    """Trace files as a run in a store of its own, gone at the end."""
    from ragauge.run.shadow import scored_run

    config = asked.config
    store = stack.enter_context(temporary_store())
    run = scored_run(
        store,
        asked.run,
        asked.trace,
        asked.trace,
        profile=asked.configured("profile"),
        dialect=asked.configured("dialect") or "auto",
        k=config.k or None,
        refusal_patterns=config.refusal.patterns,
        options=config.options,
        intervals=False,
    )
    return store, run


def _verdict(scores: Scores, config: Config) -> Verdict:
    """The gates as they stand; without a live run those on a drop are left out."""
    from ragauge import registry
    from ragauge.gates.judge import judge

    profile = registry.profile(scores.profile)
    gates = [gate for gate in gates_from(profile, scores.k, config, None) if not gate.is_drop]
    return judge(
        scores,
        gates,
        source_rules=profile.follows_source,
        whole_grid=profile.join.grid == "complete",
    )
