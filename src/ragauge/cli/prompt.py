"""`ragauge prompt`: a scoring prompt with the data, for those who want a model's second opinion."""

from __future__ import annotations

from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

import click

from ragauge.cli.options import CommandOptions, gates_from, options, whole_number
from ragauge.cli.store_options import CONFIG_OPTION, STORE_OPTION
from ragauge.cli.streams import print_text

if TYPE_CHECKING:
    from ragauge.compare.common_gold import StoredRun
    from ragauge.config import Config
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

    RUN is a stored run (id, tag, `baseline`, `latest`) or a run file (--save-run, `runs export`,
    latest:DIR, pinned:DIR); with GOLD and TRACE two files are read.
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
        if asked.trace is None:
            run = _stored(stack, asked)
        else:
            run = asked.scored_file(
                stack, asked.run, asked.trace, chunks=config.chunks, corpus=config.corpus
            )
        measured = measured_run(
            run.store,
            run.record,
            profile=asked.profile,
            also=(*NEEDS, *report.needs),
            bands=config.bands,
        )
        diagnosis = diagnosis_of(measured, limit=asked.limit)
        questions = prompt_questions(measured, run.store, run.record, diagnosis.questions)
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
    print_text(text)
    return 0


def _stored(stack: ExitStack, asked: CommandOptions) -> StoredRun:
    from ragauge.cli.named_runs import RunFinder, names_run

    if not names_run(asked.run):
        raise click.UsageError("give a stored run, a run file, or a gold set and its traces")
    if asked.dialect is not None:
        raise click.UsageError("--dialect: only for files of traces")
    finder = RunFinder(
        stack,
        asked.config,
        open_store=lambda: stack.enter_context(asked.store()),
        suite=asked.config.suite or "default",
    )
    return finder.run(asked.run)


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
        bands=config.bands,
    )
