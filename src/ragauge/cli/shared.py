"""What several commands need: common options, writing output, and talking on stderr."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

if TYPE_CHECKING:
    from ragauge.config import Config
    from ragauge.gates import Tolerance
    from ragauge.model.aggregate import Scores
    from ragauge.model.embedder import Embedding
    from ragauge.model.profile import Profile
    from ragauge.model.report import Report, View
    from ragauge.model.verdict import Gate

F = TypeVar("F", bound=Callable[..., Any])

ALLOW_OPTIONS = [
    click.option("--allow-missing", is_flag=True, help="Judge although gold items have no trace."),
    click.option("--allow-errored", is_flag=True, help="Judge although traces carry errors."),
    click.option("--allow-skipped", is_flag=True, help="Judge although bad lines were skipped."),
    click.option(
        "--allow-empty", is_flag=True, help="Judge although nothing was answered or answerable."
    ),
    click.option(
        "--allow-no-baseline", is_flag=True, help="Leave gates on a drop out: this is the baseline."
    ),
]
FORMAT_OPTION = click.option(
    "--format",
    "format_name",
    default="table",
    metavar="NAME",
    show_default=True,
    help="What is printed: table, json, md, csv or compact.",
)
BASELINE_OPTION = click.option(
    "--baseline",
    metavar="RUN",
    help="The live system, for gates on a drop: a stored run (id, tag, `baseline`), or a file from "
    "`score --full -o FILE.json`.",
)
GATE_OPTIONS = [
    click.option(
        "--gates",
        metavar="GATES",
        help="NAME=NUMBER,... or METRIC>=NUMBER,... or a TOML file; on top of ragauge.toml and "
        "the profile's own.",
    ),
    click.option(
        "--config", "config_path", metavar="FILE", help="Read this instead of ./ragauge.toml."
    ),
    click.option(
        "--as-of", metavar="DATE", help="The day that waivers are judged on (default: today)."
    ),
]
EMBED_OPTIONS = [
    click.option(
        "--embed", metavar="NAME[:MODEL]",
        help="Take ΔS from texts with this embedder: minilm, hashing (lexical), openai, "
        "sentence_transformers.",
    ),
    click.option(
        "--embed-cache", metavar="FILE",
        help="Where vectors are kept; `none` keeps nothing (default: the user's folder for "
        "caches).",
    ),
]  # fmt: skip


def finite(_context: click.Context, _option: click.Parameter, value: float | None) -> float | None:
    """Refuse what is no number: `nan` passes every comparison with a limit."""
    if value is not None and value != value:  # noqa: PLR0124
        raise click.BadParameter("it must be a number")
    return value


def options(decorators: Sequence[Callable[[F], F]]) -> Callable[[F], F]:
    """Apply several option decorators, in order."""

    def apply(function: F) -> F:
        for decorator in reversed(decorators):
            function = decorator(function)
        return function

    return apply


def read_config(path: str | None) -> Config:
    """Read the given configuration, or ./ragauge.toml where there is one."""
    from ragauge.config import FILE_NAME, Config, load_config

    if path is not None:
        return load_config(Path(path))
    here = Path(FILE_NAME)
    return load_config(here) if here.exists() else Config()


def embedding(
    name: str | None, cache: str | None, tolerance: float | None, config: Config
) -> Embedding | None:
    """How ΔS is to be taken anew; None where it is not."""
    from ragauge.model.embedder import Embedding

    name = name or config.embed
    if name is None:
        if tolerance is not None or cache is not None:
            raise click.UsageError("--verify-delta-s and --embed-cache need --embed NAME")
        return None
    return Embedding(
        name=name, settings=config.embedders, cache=cache or config.embed_cache,
        tolerance=tolerance,
    )  # fmt: skip


def gates_from(profile: Profile, k: Sequence[int], config: Config, given: str | None) -> list[Gate]:
    """The gates of the profile, the configuration and the command line, put together."""
    from ragauge import demands
    from ragauge.config import load_gates
    from ragauge.pipeline import profile_gates

    layers = [
        profile_gates(profile, k),
        demands.parse_table(config.gates, profile, k, origin="ragauge.toml"),
    ]
    if given is not None and (given.endswith(".toml") or Path(given).is_file()):
        layers.append(demands.parse_table(load_gates(Path(given)), profile, k, origin=given))
    elif given is not None:
        layers.append(demands.parse_items(given, profile, k))
    return demands.merge(*layers)


def day(given: str | None, *, needed: bool) -> Any:
    """The date that waivers are judged on; the clock is only asked when there are waivers."""
    from datetime import date

    if given is not None:
        try:
            return date.fromisoformat(given)
        except ValueError as error:
            raise click.UsageError(f"--as-of takes a date as YYYY-MM-DD, got {given!r}") from error
    return date.today() if needed else None


def choose_report(name: str, profile: Profile) -> Report:
    """The report of that name, or the profile's own version of it."""
    from ragauge import registry

    public = [report.name for report in registry.reports().values() if report.public]
    if name not in public:
        raise registry.unknown_name("format", name, public)
    return registry.report(profile.reports.get(name, name))


def report_for_file(name: str, profile: Profile) -> Report:
    """The report that a file's suffix asks for."""
    from ragauge import registry

    suffix = Path(name).suffix
    for report in registry.reports().values():
        if suffix in report.suffixes:
            return choose_report(report.name, profile)
    known = sorted(suffix for report in registry.reports().values() for suffix in report.suffixes)
    raise click.UsageError(f"-o {name}: the suffix says the format; known: {', '.join(known)}")


def screen() -> dict[str, Any]:
    """Width and colour of standard output: 80 columns and none where it is not a terminal."""
    if not sys.stdout.isatty():
        return {"width": 80, "color": False}
    return {
        "width": shutil.get_terminal_size((80, 24)).columns,
        "color": "NO_COLOR" not in os.environ and os.environ.get("TERM") != "dumb",
    }


def conclude(
    scores: Scores,
    profile: Profile,
    gates: Sequence[Gate],
    config: Config,
    *,
    allowed: Tolerance,
    as_of: str | None,
    format_name: str,
    outputs: Sequence[str],
    full: bool,
    baseline: Scores | None = None,
    beside: Scores | None = None,
) -> int:
    """Judge scores, write and print what was asked for, and return the exit code."""
    from ragauge.gates import judge
    from ragauge.model.report import View

    verdict = judge(
        scores,
        gates,
        source_rules=profile.follows_source,
        whole_grid=profile.join.grid == "complete",
        tolerance=allowed,
        waivers=config.waivers,
        today=day(as_of, needed=bool(config.waivers)),
        baseline=baseline,
        beside=beside,
    )
    view = View(scores=scores, verdict=verdict, profile=profile, full=full)
    emit(view, format_name, outputs)
    talk(view, format_name)
    return int(verdict.exit_code)


def write_new(files: Mapping[Path, str], *, force: bool) -> None:
    """Write files that are not there yet, all or none; with `force` replace those that are."""
    from ragauge.errors import RagaugeError
    from ragauge.writing import write_atomically

    there = [str(path) for path in files if path.exists()]
    if there and not force:
        raise RagaugeError.of(
            "file-exists",
            f"already there: {', '.join(there)}",
            hint="nothing was written; use --force to replace them, or another folder",
        )
    for path, text in files.items():
        write_atomically(path, text)
        click.echo(f"wrote {path}")


def emit(view: View, format_name: str, outputs: Sequence[str]) -> None:
    """Write the files that were asked for, then print the chosen format."""
    import msgspec

    from ragauge.writing import write_atomically

    texts: dict[str, str] = {}
    for name in outputs:
        report = report_for_file(name, view.profile)
        if report.name not in texts:
            texts[report.name] = report.text(view)
        write_atomically(name, texts[report.name])
    report = choose_report(format_name, view.profile)
    if format_name == "table" or report.name not in texts:
        texts[report.name] = report.text(msgspec.structs.replace(view, **screen()))
    click.echo(texts[report.name], nl=False)


def talk(view: View, format_name: str) -> None:
    """Say on stderr what the printed format does not: warnings, failed gates, the verdict."""
    from ragauge import wording

    for warning in view.scores.warnings:
        click.echo(f"warning: {warning}", err=True)
    for line in view.scores.skipped:
        click.echo(f"skipped: {line}", err=True)
    more = view.scores.tally.gold_skipped + view.scores.tally.trace_skipped
    more -= len(view.scores.skipped)
    if more > 0:
        click.echo(f"skipped: ... and {more} more", err=True)
    if format_name == "table":
        return
    for result in view.verdict.gates:
        if result.status != "pass":
            note = wording.gate_note(result)
            click.echo(
                f"gate `{wording.gate_name(result)}`: {wording.number(result.value)} "
                f"{wording.demand(result)} (n = {result.n}): {result.status}"
                + (f" - {note}" if note else ""),
                err=True,
            )
    if view.verdict.gates or view.verdict.blocks:
        click.echo(f"verdict: {wording.headline(view.verdict)}", err=True)
