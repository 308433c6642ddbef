"""`ragauge demo`: score the bundled example, where one gate fails, and say what to do next."""

from __future__ import annotations

from importlib.resources import as_file, files
from pathlib import Path
from typing import TYPE_CHECKING

import click

from ragauge.cli.options import screen, write_new
from ragauge.cli.output import choose_report
from ragauge.cli.streams import print_text

if TYPE_CHECKING:
    from ragauge.model.scores import Scores

_NAMES = ("gold.jsonl", "trace.jsonl")


@click.command("demo", short_help="Score a bundled example in which one gate fails.")
@click.option("--write", metavar="FOLDER", help="Write the example files there, and stop.")
@click.option("--force", is_flag=True, help="With --write: replace files that are already there.")
def COMMAND(write: str | None, force: bool) -> int:  # noqa: N802
    """Score a bundled example: a help desk that answers what it should refuse.

    One gate fails, and that is the point: the exit code is 0 all the same.
    """
    from ragauge.gates import judge

    if write is not None:
        bundle = files("ragauge.cli.demo_data")
        texts = {Path(write) / name: (bundle / name).read_text("utf-8") for name in _NAMES}
        write_new(texts, force=force)
        return 0
    import msgspec

    from ragauge import registry
    from ragauge.model import phrases
    from ragauge.model.report import View
    from ragauge.scoring import score

    with as_file(files("ragauge.cli.demo_data")) as folder:
        scores = score.score(folder / "gold.jsonl", folder / "trace.jsonl", profile="ship")
        rows = {name: (folder / name).read_text("utf-8").splitlines() for name in _NAMES}
        scores = _relative(scores, str(folder))
    profile = registry.profile("ship")
    verdict = judge.gate(scores)
    view = View(scores=scores, verdict=verdict, profile=profile)
    click.echo("$ ragauge score --gold demo/gold.jsonl --trace demo/trace.jsonl\n")
    sized = msgspec.structs.replace(view, **screen())
    print_text(choose_report("table", profile).text(sized))
    click.echo()
    failed = [gate for gate in verdict.gates if gate.status == "fail"]
    culprits = [question for question in scores.questions if question.label == "HALLUCINATION"]
    for result in failed:
        click.echo(
            f"The gate `{phrases.gate_name(result)}` failed: {phrases.number(result.value)} is not "
            f"{phrases.threshold_text(result)} (n = {result.n})."
        )
    if culprits:
        first = culprits[0]
        gold_line, trace_line = (
            rows[name][int(str(place).rpartition(":")[2]) - 1]
            for name, place in zip(_NAMES, (first.gold, first.trace), strict=True)
        )
        gold = msgspec.json.decode(gold_line)
        trace = msgspec.json.decode(trace_line)
        click.echo(
            f"Look at {first.trace}: question {first.qid} has no answer in the documents\n"
            f"({first.gold} says answerable: false), yet the system answered.\n"
            f"  asked   {gold['question']}\n"
            f"  said    {trace['answer_json']['claim']}\n"
            f"  cited   {', '.join(trace['answer_json']['citations'])}\n"
        )
    click.echo(
        "Next, a user would make the prompt refuse when no passage answers, run the\n"
        "questions again, and score the new traces. In CI the same command exits with 1\n"
        "and blocks the merge until it holds. The files, to try it yourself:\n"
        "  ragauge demo --write try-ragauge\n"
        "  ragauge score try-ragauge/gold.jsonl try-ragauge/trace.jsonl; echo $?"
    )
    return 0


def _relative(scores: Scores, folder: str) -> Scores:
    """The same scores with the places written from the bundle's folder."""
    import msgspec

    from ragauge.model.scores import QuestionList

    def short(place: str | None) -> str:
        return str(place).replace(folder, "demo", 1).replace("\\", "/")

    questions = QuestionList.of(
        [
            msgspec.structs.replace(
                question, gold=short(question.gold), trace=short(question.trace)
            )
            for question in scores.questions
        ]
    )
    return msgspec.structs.replace(
        scores, questions=questions, gold_name="demo/gold.jsonl", trace_name="demo/trace.jsonl"
    )
