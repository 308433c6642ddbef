"""`ragauge gold new`: draft gold items from a corpus, to be completed by a person."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from ragauge.cli.options import whole_number, write_new
from ragauge.cli.output import spare


@click.command("new", short_help="Draft gold items from a corpus.")
@click.option("--corpus", required=True, metavar="DIR", help="The corpus to draft from.")
@click.option(
    "--section",
    "sections",
    multiple=True,
    metavar="DOC#S.2",
    help="Draft from this section and those below it; may be repeated.",
)
@whole_number(
    "--per-section", least=1, most=1000, default=1, help="At most so many drafts from one section."
)
@whole_number("-n", "count", least=1, most=100_000, default=20, help="At most so many drafts.")
@whole_number(
    "--negatives", least=0, most=1000, default=5, help="How many hard negatives each draft gets."
)
@click.option(
    "--dialect", default="native", metavar="NAME", help="Write the field names of a dialect."
)
@click.option(
    "--like", metavar="GOLD", help="Write the field names of this gold set, and none of its ids."
)
@click.option("-o", "out", required=True, metavar="FILE", help="draft.yaml or draft.jsonl.")
@click.option("--force", is_flag=True, help="Replace FILE if it is there.")
def COMMAND(corpus: str, out: str, force: bool, **choices: Any) -> int:  # noqa: N802
    """Draft items: evidence with its place, section, type and hard negatives, and no question.

    Blocks are chosen so that all documents and types have their turn. A draft has an empty
    question and `draft: true`, and no command scores it before a person has written the one and
    removed the other. In YAML the titles above each item say where it is from.

    Drafts that are to go into a gold set are written --like it: its dialect, and with it profile
    and gates, stay as they are. For canary, --dialect canary adds paraphrases and the section.

    Exit code 5 if there is no block to draft from.
    """
    from ragauge.gold.draft import draft_text
    from ragauge.text import plain

    spare(out, {"corpus": corpus, "gold set": choices["like"]})
    draft = draft_text(corpus, out, **choices)
    write_new({Path(out): draft.text}, force=force)
    types = ", ".join(f"{name} {number:,}" for name, number in draft.types.items())
    click.echo(f"drafts     {draft.drafts:,}  ({types})")
    click.echo(f"documents  {draft.documents:,} of {draft.all_documents:,}")
    click.echo(f"sections   {draft.sections:,} of {draft.all_sections:,} that have text")
    click.echo(plain(f"next: write the questions in {out}, and remove `draft` from each item"))
    return 0
