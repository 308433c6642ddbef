"""`ragauge score`: measure traces against gold, and decide where there are gates."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import click

from ragauge.cli.shared import (
    ALLOW_OPTIONS,
    FORMAT_OPTION,
    GATE_OPTIONS,
    choose_report,
    conclude,
    gates_from,
    options,
    read_config,
    report_for_file,
)

if TYPE_CHECKING:
    from ragauge.model.profile import Profile
    from ragauge.model.verdict import Gate


def _numbers(text: str | None) -> tuple[int, ...] | None:
    if text is None:
        return None
    try:
        return tuple(int(part) for part in text.split(","))
    except ValueError as error:
        raise click.UsageError(f"--k takes whole numbers, got {text!r}") from error


def _one(
    option: str, flag: str, named: str | None, position: str | None, fallback: str | None
) -> str:
    if named is not None and position is not None:
        raise click.UsageError(f"the {option} file is given twice: {named!r} and {position!r}")
    found = named or position or fallback
    if found is None:
        raise click.UsageError(
            f"no {option} file: give {flag} FILE, or set `{option}` in ragauge.toml"
        )
    return found


@click.command("score", short_help="Score traces against gold, and decide.")
@click.argument("files", nargs=-1, metavar="[GOLD TRACE]")
@click.option("--gold", metavar="FILE", help="The gold set: JSON, JSONL, also gzipped; - is stdin.")
@click.option("--trace", metavar="FILE", help="The traces: JSON, JSONL, also gzipped; - is stdin.")
@click.option(
    "--profile", metavar="NAME", help="ship, smoke or all; the dialect chooses if not given."
)
@click.option("--dialect", default=None, metavar="NAME", help="Force the field names of a dialect.")
@click.option("--k", "ks", metavar="K[,K...]", help="Cut-offs (the profile's own if not given).")
@click.option(
    "--metrics", "names", metavar="ID[,ID...]", help="Only these; `family.*` is a family."
)
@options(GATE_OPTIONS)
@options([FORMAT_OPTION])
@click.option(
    "-o",
    "outputs",
    multiple=True,
    metavar="FILE",
    help="Also write FILE; its suffix says the format. Repeats.",
)
@click.option(
    "--full",
    is_flag=True,
    help="Add n, what was left out, intervals, every question, and repeated ids.",
)
@click.option(
    "--missing", type=click.Choice(["count", "exclude"]), default="count", show_default=True,
    help="Missing and errored traces in retrieval metrics: as no hits, or left out.",
)  # fmt: skip
@click.option(
    "--on-bad-line", type=click.Choice(["stop", "skip"]), default="stop", show_default=True,
    help="Stop at bad lines, or count, list and skip them.",
)  # fmt: skip
@options(ALLOW_OPTIONS)
@click.option("--workers", type=click.IntRange(1, 256), help="Processes (default: by file size).")
def COMMAND(  # noqa: N802
    files: tuple[str, ...], gold: str | None, trace: str | None, profile: str | None,
    dialect: str | None, ks: str | None, names: str | None, gates: str | None,
    config_path: str | None, as_of: str | None, format_name: str, outputs: tuple[str, ...],
    full: bool, missing: Literal["count", "exclude"], on_bad_line: Literal["stop", "skip"],
    allow_missing: bool, allow_errored: bool, allow_skipped: bool, allow_empty: bool,
    workers: int | None,
) -> int:  # fmt: skip
    """Score traces against a gold set, and decide by the gates of the profile.

    GOLD and TRACE may be given by position or by option, or come from ragauge.toml.
    """
    from ragauge import pipeline, registry
    from ragauge.errors import RagaugeError
    from ragauge.gates import Tolerance

    if len(files) > 2:
        raise click.UsageError(f"at most two files: GOLD and TRACE, got {len(files)}")
    config = read_config(config_path)
    gold = _one("gold", "--gold", gold, files[0] if files else None, config.gold)
    trace = _one("trace", "--trace", trace, files[1] if len(files) > 1 else None, config.trace)
    if trace == config.trace and not Path(trace).exists():
        raise RagaugeError.of(
            "file-not-found", f"there is no file `{trace}`, which ragauge.toml names",
            hint="your pipeline writes it: one line a question of the gold set",
        )  # fmt: skip
    if gold == trace == "-":
        raise click.UsageError("only one of gold and trace can be standard input")
    anyone = registry.profile("all")
    choose_report(format_name, anyone)
    for output in outputs:
        report_for_file(output, anyone)

    def demanded(chosen: Profile, cutoffs: Sequence[int]) -> list[Gate]:
        return gates_from(chosen, cutoffs, config, gates)

    scores = pipeline.score(
        gold,
        trace,
        profile=profile or config.profile,
        dialect=dialect or config.dialect or "auto",
        k=_numbers(ks) or config.k or None,
        metrics=names.split(",") if names else config.metrics,
        gates=demanded,
        missing=missing,
        on_bad_line=on_bad_line,
        refusal_patterns=config.refusal.patterns,
        workers=workers,
        count_repeats=full,
    )
    chosen = registry.profile(scores.profile)
    allowed = Tolerance(
        missing=allow_missing, errored=allow_errored, skipped=allow_skipped, empty=allow_empty
    )
    return conclude(
        scores, chosen, demanded(chosen, scores.k), config,
        allowed=allowed, as_of=as_of, format_name=format_name, outputs=outputs, full=full,
    )  # fmt: skip
