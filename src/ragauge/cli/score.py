"""`ragauge score`: measure traces against gold, and decide where there are gates."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Literal

import click

from ragauge.cli.options import (
    ALLOW_HOST_OPTION,
    ALLOW_OPTIONS,
    BASELINE_OPTION,
    DELTA_S_OPTION,
    EMBED_OPTIONS,
    FIELD_OPTIONS,
    FORMAT_OPTION,
    GATE_OPTIONS,
    SAVE_RUN_OPTION,
    STAGE_OPTION,
    embedding,
    finite,
    gates_from,
    gold_and_trace,
    options,
    read_config,
)
from ragauge.cli.output import OUTPUT_OPTIONS, asked_reports, conclude, output_files, spare_inputs
from ragauge.cli.store_options import CorpusOption, StoreRequest, destination_of, new_id

if TYPE_CHECKING:
    from ragauge.formats.field_map import Stage
    from ragauge.model.options import CitationMode

CITATION_MODES = ("within", "endpoints", "overlap")


def _numbers(text: str | None) -> tuple[int, ...] | None:
    if text is None:
        return None
    try:
        return tuple(int(part) for part in text.split(","))
    except ValueError as error:
        raise click.UsageError(f"--k takes whole numbers, got {text!r}") from error


def _needed(option: str, path: str | None) -> str:
    if path is None:
        raise click.UsageError(
            f"no {option} file: give --{option} FILE, or set `{option}` in ragauge.toml"
        )
    return path


@click.command("score", short_help="Score traces against gold, and decide.")
@click.argument("files", nargs=-1, metavar="[GOLD TRACE]")
@click.option(
    "--gold",
    metavar="FILE",
    help="The gold set: JSON, JSONL, YAML, CSV, Parquet, TREC qrels, BEIR folder; - is stdin.",
)
@click.option(
    "--trace",
    metavar="FILE",
    help="The traces: JSON, JSONL, CSV, Parquet, TREC run, also gzipped; - is stdin.",
)
@click.option(
    "--profile",
    metavar="NAME",
    help="ship, smoke, canary, kb or all; the dialect chooses if not given.",
)
@click.option("--dialect", default=None, metavar="NAME", help="Force the field names of a dialect.")
@options([*FIELD_OPTIONS, STAGE_OPTION])
@click.option("--k", "ks", metavar="K[,K...]", help="Cut-offs (the profile's own if not given).")
@click.option(
    "--metrics", "names", metavar="ID[,ID...]", help="Only these; `family.*` is a family."
)
@click.option(
    "--chunks",
    metavar="FILE",
    help="Where the chunks of the index lie: JSON Lines with id, doc, start, end.",
)
@click.option(
    "--corpus",
    metavar="DIR",
    help="A corpus whose blocks are chunks too; it tells section and type of chunks.",
)
@options(EMBED_OPTIONS)
@click.option(
    "--verify-delta-s",
    "tolerance",
    is_flag=False,
    flag_value=0.01,
    default=None,
    type=click.FloatRange(0, 2),
    metavar="[TOLERANCE]",
    callback=finite,
    help="With --embed: tell where recorded ΔS differ from measured ones (by more than 0.01).",
)
@options(GATE_OPTIONS)
@options([BASELINE_OPTION, FORMAT_OPTION, ALLOW_HOST_OPTION])
@click.option(
    "--store",
    "store_url",
    is_flag=False,
    flag_value="",
    default=None,
    metavar="[URL]",
    help="Store the run: sqlite:///FILE or postgresql://... (without a URL: the store of "
    "ragauge.toml, else sqlite:///ragauge.db).",
)
@SAVE_RUN_OPTION
@click.option(
    "--run-id",
    metavar="ID",
    callback=new_id,
    help="How the stored or saved run is called (default: by time).",
)
@click.option("--suite", metavar="NAME", help="The suite that a stored run belongs to.")
@click.option("--tag", "tags", multiple=True, metavar="TAG", help="Tag the stored run. Repeats.")
@click.option(
    "--snapshot",
    metavar="FILE",
    help="How the system is configured (JSON, TOML, YAML), to be stored and compared.",
)
@click.option("--commit", metavar="HASH", help="The commit (default: from CI or .git).")
@options(OUTPUT_OPTIONS)
@click.option(
    "--full",
    is_flag=True,
    help="Add n, what was left out, intervals, every question, and repeated ids.",
)
@click.option(
    "--missing",
    type=click.Choice(["count", "exclude"]),
    default="count",
    show_default=True,
    help="Missing and errored traces in retrieval metrics: as no hits, or left out.",
)
@click.option(
    "--on-bad-line",
    type=click.Choice(["stop", "skip"]),
    default="stop",
    show_default=True,
    help="Stop at bad lines, or count, list and skip them.",
)
@options([*ALLOW_OPTIONS, DELTA_S_OPTION])
@click.option(
    "--citation-mode",
    type=click.Choice(CITATION_MODES),
    default=None,
    help="When a cited span agrees with a gold span (default: within).",
)
@click.option(
    "--relevance-level",
    type=float,
    default=None,
    metavar="L",
    callback=finite,
    help="The lowest grade that counts as relevant (default: 1).",
)
@click.option("--ignore-case", is_flag=True, help="For must_contain and forbidden.")
@click.option(
    "--min-n",
    type=click.IntRange(1),
    default=None,
    metavar="N",
    help="A slice of fewer questions shows no value (default: 5).",
)
@click.option(
    "--intervals/--no-intervals",
    default=True,
    help="Compute 95 % intervals, or leave them out.",
)
@click.option("--workers", type=click.IntRange(1, 256), help="Processes (default: by file size).")
def COMMAND(  # noqa: N802
    files: tuple[str, ...],
    gold: str | None,
    trace: str | None,
    profile: str | None,
    dialect: str | None,
    own_fields: tuple[str, ...],
    own_gold_fields: tuple[str, ...],
    stage: Stage,
    ks: str | None,
    names: str | None,
    gates: str | None,
    config_path: str | None,
    as_of: str | None,
    format_name: str,
    outputs: tuple[str, ...],
    raw_csv: bool,
    full: bool,
    missing: Literal["count", "exclude"],
    on_bad_line: Literal["stop", "skip"],
    accept_doc_level: bool,
    allow_missing: bool,
    allow_errored: float,
    allow_skipped: bool,
    allow_empty: bool,
    allow_no_baseline: bool,
    allow_fewer_questions: bool,
    allow_other_questions: bool,
    require_delta_s: bool,
    workers: int | None,
    chunks: str | None,
    baseline: tuple[str, ...],
    citation_mode: CitationMode | None,
    relevance_level: float | None,
    ignore_case: bool,
    min_n: int | None,
    intervals: bool,
    store_url: str | None,
    save_run: str | None,
    run_id: str | None,
    suite: str | None,
    tags: tuple[str, ...],
    snapshot: str | None,
    commit: str | None,
    corpus: str | None,
    embed: str | None,
    embed_cache: str | None,
    tolerance: float | None,
) -> int:
    """Score traces against a gold set, and decide by the gates of the profile.

    GOLD and TRACE may be given by position or by option, or come from ragauge.toml.
    """
    from msgspec.structs import replace

    from ragauge import registry
    from ragauge.errors import RagaugeError
    from ragauge.gates.judge import Tolerance
    from ragauge.scoring import score

    gold, trace = gold_and_trace(files, gold, trace)
    config = read_config(config_path)
    gold = _needed("gold", gold or config.gold)
    trace = _needed("trace", trace or config.trace)
    spare_inputs(
        [*output_files(outputs), *([] if save_run is None else [save_run])],
        config,
        config_path,
        gates=gates,
        baselines=baseline,
        store_url=store_url,
        others={
            "gold set": gold,
            "trace file": trace,
            "list of chunks": chunks or config.chunks,
            "snapshot": snapshot,
            "corpus": corpus or config.corpus,
            "cache of vectors": embed_cache or config.embed_cache,
        },
    )
    if trace == config.trace and not Path(trace).exists():
        message = f"there is no file `{trace}`, which ragauge.toml names"
        hint = "your pipeline writes it: one line a question of the gold set"
        raise RagaugeError.of("file-not-found", message, hint=hint)
    if gold == trace == "-":
        raise click.UsageError("only one of gold and trace can be standard input")
    anyone = registry.profile("all")
    reports = asked_reports(format_name, outputs, anyone)
    asked_options = {
        "citation_mode": citation_mode,
        "relevance_level": relevance_level,
        "ignore_case": ignore_case or None,
        "min_n": min_n,
    }
    chosen_options = replace(
        config.options,
        missing=missing,
        refusal_patterns=tuple(config.refusal.patterns),
        **{name: value for name, value in asked_options.items() if value is not None},
    )

    request = StoreRequest(
        url=store_url,
        save_run=save_run,
        run_id=run_id,
        suite=suite,
        tags=tags,
        snapshot=snapshot,
        commit=commit,
    )
    embedder = embedding(embed, embed_cache, tolerance, config)
    with destination_of(request, config, reports) as destination:
        destination.find_baselines(baseline, allow_none=allow_no_baseline)
        for_comparison = full or bool(destination.baselines) or destination.stores
        with score.opened_inputs(
            gold,
            trace,
            profile=profile or config.profile,
            dialect=dialect or config.dialect or "auto",
            k=_numbers(ks) or config.k or None,
            fields=config.field_maps.updated(own_fields, own_gold_fields).at_stage(stage),
        ) as inputs:
            chosen_gates = gates_from(inputs.profile, inputs.k, config, gates)
            plan = score.scoring_plan(
                inputs,
                metrics=names.split(",") if names else config.metrics,
                also=[name for report in reports for name in report.needs],
                gates=chosen_gates,
                ranks=for_comparison,
                options=chosen_options,
                intervals=intervals,
                count_repeats=full,
                note_rows=destination.detailed,
            )
            scored = score.score_inputs(
                inputs,
                plan,
                skip_bad_lines=on_bad_line == "skip",
                chunks=chunks or config.chunks,
                corpus=corpus or config.corpus,
                hashes=for_comparison,
                workers=workers,
                embed=embedder,
                bands=config.bands,
                ignore_fields=config.ignored_fields,
            )
            destination.take(scored)
            scores = scored.scores
            del scored  # it holds the gold set and the sums, which no report needs
        allowed = Tolerance(
            missing=allow_missing,
            errored=allow_errored,
            skipped=allow_skipped,
            empty=allow_empty,
            no_baseline=allow_no_baseline,
            other_questions=allow_other_questions,
            fewer_questions=allow_fewer_questions,
            no_delta_s=not require_delta_s,
            doc_level=accept_doc_level,
        )
        return conclude(
            scores,
            inputs.profile,
            chosen_gates,
            config,
            allowed=allowed,
            as_of=as_of,
            runs=[trace],
            format_name=format_name,
            outputs=outputs,
            full=full,
            raw_csv=raw_csv,
            baselines=destination.gate_baselines(scores, chosen_gates),
            details=destination.details(scores, CorpusOption.of(corpus, config)),
        )
