"""`ragauge runs`: list, show, tag, delete, export and import stored runs, and compact stores."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from contextlib import suppress
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import click

from ragauge.cli.options import CommandOptions, options, say, screen, whole_number
from ragauge.cli.store_options import (
    ANY_FORMAT,
    CONFIG_OPTION,
    STORE_OPTION,
    is_file,
    new_id,
    refuse_run_file_name,
    temporary_store,
)
from ragauge.cli.streams import binary_output, print_json, print_lines

if TYPE_CHECKING:
    from ragauge.model.run import RunRecord, Store

_WHERE = [STORE_OPTION, CONFIG_OPTION]


@click.group(
    "runs",
    no_args_is_help=False,
    short_help="List, show, tag, delete, export or import stored runs.",
)
def COMMAND() -> None:  # noqa: N802
    """List, show, tag, delete, export and import stored runs, and compact their store.

    RUN is the id of a run, the beginning of one (4 characters or more), a tag, or `latest`.
    """


_HOURS = {"h": 1, "d": 24, "w": 7 * 24}


def _age(_context: click.Context, _option: click.Parameter, text: str | None) -> timedelta | None:
    """An age such as 30d."""
    if text is None:
        return None
    count, unit = text[:-1], text[-1:].lower()
    if not (count.isascii() and count.isdecimal()) or unit not in _HOURS or len(count) > 6:
        raise click.BadParameter(f"{text!r} is no age: write 12h, 30d or 8w")
    return timedelta(hours=int(count) * _HOURS[unit])


@COMMAND.command("list", short_help="List the runs of a store, the newest last.")
@click.option("--suite", metavar="S", help="Only the runs of this suite.")
@whole_number("--limit", least=1, metavar="N", help="Only the newest N.")
@options([ANY_FORMAT, *_WHERE])
def _list(suite: str | None, limit: int | None, format_name: str, **where: Any) -> int:
    """List the runs of a store, the newest last.

    Columns that the screen has no room for are left out; JSON has them all. Exit code 5 if
    there is nothing to list.
    """
    from ragauge.codes import ExitCode
    from ragauge.report.terminal import stored_runs

    with CommandOptions(**where).store() as store:
        stored = store.runs(suite=suite)
        if not stored:
            _say_nothing_there(store, suite)
            return int(ExitCode.NOTHING_MEASURED)
        runs = stored if limit is None else stored[-limit:]
        if format_name == "json":
            entries = [stored_runs.run_entry(run) for run in runs]
            print_json({"schema": stored_runs.RUNS, "store": store.name, "runs": entries})
            return 0
        print_lines(stored_runs.run_list(runs, int(screen()["width"])))
        if len(runs) < len(stored):
            say(f"the newest {len(runs)} of {len(stored)} runs")
        return 0


def _say_nothing_there(store: Store, suite: str | None) -> None:
    suites = sorted({run.suite for run in store.runs()})
    if suite is None or not suites:
        say(f"no run is stored in {store.name}; `ragauge score ... --store` stores one")
    else:
        say(f"no run of the suite `{suite}` is stored; there are {', '.join(suites)}")


@COMMAND.command("show", short_help="Show what is stored of a run, and its scores.")
@click.argument("name", metavar="RUN")
@click.option("--question", metavar="QID", help="Show this question: its gold item and traces.")
@click.option("--full", is_flag=True, help="All bad lines, slices and questions.")
@options([ANY_FORMAT, *_WHERE])
def _show(name: str, question: str | None, full: bool, format_name: str, **where: Any) -> int:
    """Show what is stored of RUN, and its scores as `score` prints them.

    With --question, JSON has a line for each gold item and each stored trace of the question; in
    the table, hits that were expected are marked with `*`.
    """
    from ragauge.model.payloads import thaw_evidence
    from ragauge.report.terminal import stored_runs
    from ragauge.store.runs import find_run, run_scores
    from ragauge.store.snapshot import read_snapshot

    asked = CommandOptions(**where)
    config = asked.config
    with asked.store() as store:
        run = find_run(store, name, suite=config.suite, complete=False)
        if question is not None:
            return _show_question(store, run, question, format_name)
        details = stored_runs.StoredRunInfo(
            run=run,
            snapshot=read_snapshot(run.snapshot, run.run_id),
            evidence=thaw_evidence(run.evidence, run.run_id),
            scorings=store.scorings(run.run_id),
            scores=run_scores(store, run) if run.status == "complete" else None,
            full=full,
        )
    if format_name == "json":
        print_json(stored_runs.info_document(details))
        return 0
    width = int(screen()["width"])
    lines = stored_runs.info_lines(details, width)
    if details.scores is not None:
        lines += ["", *stored_runs.scores_lines(details.scores, full=full, width=width)]
    print_lines(lines)
    for warning in details.scores.warnings if details.scores is not None else ():
        say(f"warning: {warning}")
    return 0


def _show_question(store: Store, run: RunRecord, question: str, format_name: str) -> int:
    from ragauge.model.payloads import thaw_chunks, thaw_gold
    from ragauge.report.terminal import question as closeup
    from ragauge.store.runs import run_scores
    from ragauge.store.snapshot import read_snapshot

    close = closeup.close_up(
        question,
        read_snapshot(run.snapshot, run.run_id),
        thaw_gold(store.gold(run.gold_key), run.run_id),
        {} if run.chunks is None else thaw_chunks(store.chunks(run.chunks), run.run_id),
        store.results(run.run_id),
        scores=run_scores(store, run) if run.status == "complete" else None,
    )
    if format_name == "json":
        for document in closeup.documents(close):
            print_json(document, indent=None)
    else:
        print_lines(closeup.lines(close, int(screen()["width"])))
    if run.status != "complete":
        say(f"the run {run.run_id} is incomplete: results may be missing")
    return 0


@COMMAND.command("tag", short_help="Give a run a tag, or remove one.")
@click.argument("name", metavar="RUN")
@click.argument("tag")
@click.option("--remove", is_flag=True, help="Remove the tag from the run.")
@options(_WHERE)
def _tag(name: str, tag: str, remove: bool, **where: Any) -> int:
    """Let TAG name RUN; a tag names one run, and leaves the one that it named before.

    The tags `baseline` and `baseline:SUITE` name baselines, which must be complete runs.
    """
    from ragauge.store.runs import BASELINE, find_run, refuse_tag
    from ragauge.text import plain

    asked = CommandOptions(**where)
    config = asked.config
    refuse_tag(tag)
    with asked.store() as store:
        is_baseline = tag.partition(":")[0] == BASELINE
        run = find_run(store, name, suite=config.suite, complete=is_baseline and not remove)
        if remove:
            if tag not in run.tags:
                has = f"it has {', '.join(run.tags)}" if run.tags else "it has no tags"
                raise click.UsageError(plain(f"the run {run.run_id} has no tag `{tag}`; {has}"))
            store.untag(tag)
            say(f"`{tag}` no longer names {run.run_id}")
            return 0
        runs = store.runs()
        if tag in (stored.run_id for stored in runs):
            raise click.UsageError(plain(f"`{tag}` cannot be a tag: it is the id of a run"))
        before = next((stored.run_id for stored in runs if tag in stored.tags), run.run_id)
        store.tag(tag, run.run_id)
        say(f"`{tag}` names {run.run_id}" + (f", before {before}" * (before != run.run_id)))
        return 0


@COMMAND.command("delete", short_help="Delete runs with all that belongs to them.")
@click.argument("names", nargs=-1, metavar="[RUN]...")
@click.option("--incomplete", is_flag=True, help="All runs that are not complete.")
@click.option(
    "--older-than",
    callback=_age,
    metavar="AGE",
    help="All runs that are older: 12h, 30d or 8w (hours, days, weeks).",
)
@whole_number(
    "--keep", least=1, metavar="N", help="All complete runs but the newest N of each suite."
)
@click.option("--suite", metavar="S", help="With these options: only the runs of this suite.")
@click.option("--dry-run", is_flag=True, help="List what would be deleted, and delete nothing.")
@click.option("--yes", is_flag=True, help="Do not ask.")
@click.option("--force", is_flag=True, help="Also delete a run that is named and is a baseline.")
@options(_WHERE)
def _delete(**values: Any) -> int:
    """Delete runs with their results, scores and tags; all of them, or none if one is refused.

    Runs are named, or chosen: --incomplete, --older-than and --keep together choose those that fit
    them all. Baselines and all other runs with a tag are never chosen. A run that is being stored
    right now is incomplete too.

    On a terminal it asks first; elsewhere --yes is needed. Later runs use the space that becomes
    free; `ragauge runs compact` returns it.
    """
    from ragauge.report.terminal import stored_runs

    asked = CommandOptions(**values)
    by_age = [
        flag
        for flag, value in (("--older-than", asked.older_than), ("--keep", asked.keep))
        if value is not None
    ]
    conditions = ["--incomplete"] * asked.incomplete + by_age
    if not asked.names and not conditions:
        raise click.UsageError(
            "name the runs to delete, or give --incomplete, --older-than or --keep"
        )
    if asked.names and by_age:
        raise click.UsageError(f"name the runs to delete, or give {by_age[0]}: not both")
    with asked.store() as store:
        runs = _named_runs(store, asked) if asked.names else []
        if conditions:
            named = {run.run_id for run in runs}
            runs += [run for run in _chosen_runs(store, asked) if run.run_id not in named]
        if not runs:
            say(f"no run in {store.name} fits {' '.join(conditions)}: nothing was deleted")
            return 0
        if asked.dry_run:
            print_lines(stored_runs.run_list(runs, int(screen()["width"])))
            say(f"{_counted(runs)} would be deleted; nothing was")
            return 0
        if not asked.yes and not _agreed(runs):
            say("nothing was deleted")
            return 0
        for run in runs:
            store.delete(run.run_id)
            say(f"deleted {run.run_id}")
        store.reuse_deleted()
        return 0


def _named_runs(store: Store, asked: CommandOptions) -> list[RunRecord]:
    """The runs that are named, each once; baselines are refused unless --force is given."""
    from ragauge.store.runs import find_run

    suite = asked.suite or asked.config.suite
    named = {}
    for name in asked.names:
        run = find_run(store, name, suite=suite, complete=False)
        named[run.run_id] = run
    if not asked.force:
        _refuse_baselines(list(named.values()))
    return list(named.values())


def _chosen_runs(store: Store, asked: CommandOptions) -> list[RunRecord]:
    """The runs that fit all conditions; baselines and runs with a tag are left, and said to be."""
    from ragauge.store.runs import outdated_runs

    baselines = _configured_baselines(store, asked)
    fitting = outdated_runs(
        store.runs(suite=asked.suite),
        incomplete=asked.incomplete,
        older_than=asked.older_than,
        keep=asked.keep,
    )
    for run in fitting:
        if run.tags:
            say(f"kept {run.run_id}: it has the tag {', '.join(run.tags)}")
        elif run.run_id in baselines:
            say(f"kept {run.run_id}: it is a baseline of {asked.config.origin}")
    return [run for run in fitting if not run.tags and run.run_id not in baselines]


def _configured_baselines(store: Store, asked: CommandOptions) -> set[str]:
    """The ids of the runs in the store that the configuration names as baselines."""
    from ragauge.errors import RagaugeError
    from ragauge.model.baseline_name import parse_baseline_name
    from ragauge.store.runs import find_run

    run_ids = set()
    for name in asked.config.baselines:
        if parse_baseline_name(name).kind == "run" and not is_file(name):
            with suppress(RagaugeError):
                run = find_run(store, name, suite=asked.config.suite, complete=False)
                run_ids.add(run.run_id)
    return run_ids


def _refuse_baselines(runs: Sequence[RunRecord]) -> None:
    from ragauge.errors import RagaugeError
    from ragauge.store.runs import BASELINE
    from ragauge.text import plain

    for run in runs:
        tags = [tag for tag in run.tags if tag.partition(":")[0] == BASELINE]
        if tags:
            message = plain(f"the run {run.run_id} is a baseline: {', '.join(tags)}")
            hint = "make another run the baseline first, or say --force; nothing was deleted"
            raise RagaugeError.of("usage", message, hint=hint)


def _agreed(runs: Sequence[RunRecord]) -> bool:
    from ragauge.model import phrases

    if not sys.stdin.isatty():
        raise click.UsageError(
            "nobody can be asked here: say --yes to delete, or --dry-run to see what would be"
        )
    for run in runs:
        say(f"{run.run_id}, {run.created_at}, {phrases.count(run.results, 'result')}")
    return click.confirm(f"delete {_counted(runs)}?", err=True)


def _counted(runs: Sequence[RunRecord]) -> str:
    from ragauge.model import phrases

    return phrases.count(len(runs), "run")


@COMMAND.command("compact", short_help="Return the space of deleted runs to the disk.")
@options(_WHERE)
def _compact(**where: Any) -> int:
    """Return the space of deleted runs to the disk.

    Other processes that use the store wait until it is done. A PostgreSQL database is compacted
    with VACUUM FULL, which needs room for a copy of its largest table.
    """
    with CommandOptions(**where).store() as store:
        before, after = store.compact()
        say(f"compacted {store.name}: {_megabytes(after)}, before {_megabytes(before)}")
        return 0


def _megabytes(size: int) -> str:
    return f"{size / 1e6:,.1f} MB"


@COMMAND.command("export", short_help="Write a run to a file of JSON Lines.")
@click.argument("name", metavar="RUN")
@click.option(
    "-o",
    "output",
    required=True,
    metavar="FILE",
    help="Where to: FILE.jsonl, FILE.jsonl.gz, or - for standard output.",
)
@options(_WHERE)
def _export(name: str, output: str, **where: Any) -> int:
    """Write all that is stored of RUN to a file; the same run gives the same bytes.

    Tags are not written. A result that cannot be read is kept byte by byte, and counted.
    """
    from ragauge.model import phrases
    from ragauge.store import export
    from ragauge.store.runs import find_run

    if output != "-":
        refuse_run_file_name(output, "-o")
    asked = CommandOptions(**where)
    config = asked.config
    asked.spare([output] if output != "-" else [], {})
    with asked.store() as store:
        run = find_run(store, name, suite=config.suite)
        if output == "-":
            stream = binary_output()
            counts = export.export_run(store, run, stream)
            stream.flush()
        else:
            with export.gzip_if_named_so(output) as file:
                counts = export.export_run(store, run, file)
    results = phrases.count(counts.results, "result")
    say(f"exported {run.run_id}: {results}" + (f" to {output}" * (output != "-")))
    if counts.unreadable:
        rows = phrases.count(counts.unreadable, "stored row")
        say(f"warning: {rows} cannot be read; kept byte by byte")
    return 0


@COMMAND.command("import", short_help="Bring an exported run into a store.")
@click.argument("file", metavar="FILE")
@click.option(
    "--run-id", callback=new_id, metavar="NEW", help="Store it under this id (default: its own)."
)
@options(_WHERE)
def _import(file: str, run_id: str | None, **where: Any) -> int:
    """Bring a run that `runs export` wrote into a store, which is made if need be.

    A file that was cut off or changed is refused, and nothing is imported. - is standard input.
    """
    from ragauge.model import phrases
    from ragauge.store import export

    with CommandOptions(**where).store(create=True) as store:
        done = export.import_run(store, file, run_id=run_id)
        results = phrases.count(done.counts.results, "result")
        say(f"imported {done.run_id}: {results} into {store.name}")
    if done.counts.unreadable:
        rows = phrases.count(done.counts.unreadable, "row")
        say(f"warning: {rows} cannot be read; kept byte by byte")
    return 0


@COMMAND.command("keep", short_help="Keep a run file in a folder with the newest ones.")
@click.argument("file", metavar="FILE")
@click.option(
    "--in", "folder", required=True, metavar="DIR", help="The folder, which is made if need be."
)
@whole_number("--last", least=1, default=20, metavar="N", help="How many runs the folder keeps.")
@click.option("--pin", is_flag=True, help="Pin this run: `pinned:DIR` names it from now on.")
def _keep(file: str, folder: str, last: int, pin: bool) -> int:
    """Keep a file of --save-run or `runs export` in DIR, and delete the oldest ones beyond N.

    `latest:DIR`, `pinned:DIR` and `best-of:N:DIR` then name runs in it. The first run that is kept
    is pinned. A file that was cut off or changed is refused, and the folder stays as it is.
    """
    from pathlib import Path

    from ragauge.errors import Place, RagaugeError
    from ragauge.model import phrases
    from ragauge.store.export import import_run
    from ragauge.store.run_files import keep_run_file, read_run_file

    run_file = read_run_file(file)
    if run_file is None:
        message = "it is not an exported run, or is not there"
        hint = "write one with `ragauge score --save-run FILE` or `ragauge runs export`"
        raise RagaugeError.of("bad-export", message, hint=hint, place=Place(file))
    with temporary_store() as store:
        import_run(store, file)  # all of it can be read, or it is no baseline
    done = keep_run_file(run_file, Path(folder), last=last, pin=pin)
    say(f"kept {run_file.run.run_id} as {done.path}" + (", pinned" * done.pinned))
    if done.deleted:
        say(f"deleted {phrases.count(len(done.deleted), 'older run')}")
    return 0
