"""`ragauge validate`: read gold and traces, say what is in them and what is wrong."""

from __future__ import annotations

from typing import Any

import click

from ragauge.cli.options import FIELD_OPTIONS, CommandOptions, gold_and_trace, options, say
from ragauge.cli.store_options import CONFIG_OPTION
from ragauge.cli.streams import print_line, print_lines


@click.command("validate", short_help="Check that files can be read and fit together.")
@click.argument("files", nargs=-1, metavar="[GOLD [TRACE]]")
@click.option("--gold", metavar="FILE", help="The gold set.")
@click.option("--trace", metavar="FILE", help="The traces.")
@click.option("--profile", metavar="NAME", help="Read as under this profile.")
@click.option("--dialect", metavar="NAME", help="Force the field names of a dialect.")
@options(FIELD_OPTIONS)
@click.option("--corpus", metavar="DIR", help="Look up every id and place in this corpus.")
@click.option(
    "--chunks",
    metavar="FILE",
    help="With a corpus: where the chunks of the index lie, JSON Lines with id, doc, start, end.",
)
@click.option("--fields", "list_fields", is_flag=True, help="List the fields that nothing reads.")
@CONFIG_OPTION
def COMMAND(files: tuple[str, ...], **values: Any) -> int:  # noqa: N802
    """Check that gold and traces can be read and belong together; nothing is scored.

    With a corpus, every document, block, section, place and quote that they name must be in it.
    Exit code 3 with every problem (up to 20 a file); 5 if there is nothing in them, or nothing that
    is read could be measured; 4 if scores would mean nothing, as no id is in both, or traces are
    about other questions; else 0.
    """
    from ragauge.codes import ExitCode
    from ragauge.formats.loaded_rows import without_repeats
    from ragauge.formats.unread_fields import listed_fields
    from ragauge.model import phrases
    from ragauge.scoring.validate import validate

    asked = CommandOptions(**values)
    config = asked.config
    gold, trace = gold_and_trace(files, asked.gold, asked.trace)
    if not files:
        gold, trace = gold or config.gold, trace or config.trace
    if gold is None and trace is None:
        raise click.UsageError("name a gold set, a trace file, or both")
    corpus = asked.configured("corpus")
    if asked.chunks is not None and corpus is None:
        raise click.UsageError("--chunks is looked up in a corpus: name it with --corpus DIR")
    checks = validate(
        gold,
        trace,
        profile=asked.configured("profile"),
        dialect=asked.configured("dialect") or "auto",
        corpus=corpus,
        chunks=asked.configured("chunks"),
        fields=asked.field_maps,
        ignore_fields=config.ignored_fields,
    )
    for check in checks.files:
        print_line(
            f"{check.name}: {phrases.count(check.rows, check.kind)}"
            + (f", dialect {check.dialect}" if check.dialect is not None else "")
            + "".join(f", {note}" for note in check.notes)
        )
        for problem in without_repeats(check.problems):
            for line in str(problem).split("\n"):
                say(line)
        if check.problem_count > len(check.problems):
            more = check.problem_count - len(check.problems)
            say(f"... and {more} more problems in {check.name}")
    print_lines(checks.findings)
    if asked.list_fields:
        listed = [line for use in checks.fields for line in listed_fields(use)]
        print_lines(listed or ["all fields are read"])
    if any(check.problem_count for check in checks.files):
        return int(ExitCode.BAD_INPUT)
    if any(check.rows == 0 for check in checks.files):
        click.echo(
            "error[nothing-measured]: a file has no rows\n  hint: check how it is written", err=True
        )
        return int(ExitCode.NOTHING_MEASURED)
    for block in checks.blocks:
        say(f"error[{block.code}]: {block.message}")
        say(f"  hint: `ragauge explain {block.code}`")
    if checks.blocks:
        return int(max(block.exit_code for block in checks.blocks))
    click.echo("ok")
    return 0
