"""`ragauge gate`: judge a saved scores file again, under other gates."""

from __future__ import annotations

import click

from ragauge.cli.shared import (
    ALLOW_OPTIONS,
    BASELINE_OPTION,
    FORMAT_OPTION,
    GATE_OPTIONS,
    choose_report,
    conclude,
    gates_from,
    load_baseline,
    options,
    read_config,
    report_for_file,
)


@click.command("gate", short_help="Judge a saved scores file under other gates.")
@click.argument("scores_file", metavar="SCORES")
@options(GATE_OPTIONS)
@options([BASELINE_OPTION, FORMAT_OPTION])
@click.option("-o", "outputs", multiple=True, metavar="FILE", help="Also write FILE. Repeats.")
@options(ALLOW_OPTIONS)
def COMMAND(  # noqa: N802
    scores_file: str, gates: str | None, config_path: str | None, as_of: str | None,
    format_name: str, outputs: tuple[str, ...], allow_missing: bool, allow_errored: bool,
    allow_skipped: bool, allow_empty: bool, allow_no_baseline: bool,
    baseline: str | None,
) -> int:  # fmt: skip
    """Judge saved SCORES (from `ragauge score --full -o FILE.json`) without scoring again."""
    import msgspec

    from ragauge import pipeline, registry
    from ragauge.gates import Tolerance

    scores = pipeline.load_scores(scores_file)
    profile = registry.profile(scores.profile)
    config = read_config(config_path)
    judged_by = gates_from(profile, scores.k, config, gates)
    if not judged_by:
        raise click.UsageError("there are no gates: give --gates, or set them in ragauge.toml")
    plain = msgspec.structs.replace(profile, reports={})
    choose_report(format_name, plain)
    for output in outputs:
        report_for_file(output, plain)
    allowed = Tolerance(
        missing=allow_missing, errored=allow_errored, skipped=allow_skipped, empty=allow_empty,
        no_baseline=allow_no_baseline,
    )  # fmt: skip
    return conclude(
        scores, plain, judged_by, config,
        allowed=allowed, as_of=as_of, format_name=format_name, outputs=outputs, full=False,
        baseline=load_baseline(baseline or config.baseline),
    )  # fmt: skip
