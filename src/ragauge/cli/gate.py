"""`ragauge gate`: judge a stored run or a saved scores file, under other gates."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from typing import TYPE_CHECKING

import click

from ragauge.cli.options import (
    ALLOW_OPTIONS,
    BASELINE_OPTION,
    FORMAT_OPTION,
    GATE_OPTIONS,
    gates_from,
    options,
    read_config,
    screen,
    tolerance_of,
)
from ragauge.cli.output import OUTPUT_OPTION, asked_reports, conclude, output_files, spare_inputs
from ragauge.cli.store_options import (
    STORE_OPTION,
    BaselineScores,
    CorpusOption,
    against,
    details_in,
    is_file,
    the_store,
)

if TYPE_CHECKING:
    from ragauge.gates.judge import Tolerance
    from ragauge.gates.self_test import SelfTest
    from ragauge.model.scores import Scores
    from ragauge.model.verdict import Gate


@click.command("gate", short_help="Judge a stored run or saved scores under other gates.")
@click.argument("name", metavar="RUN|SCORES")
@options(GATE_OPTIONS)
@options([BASELINE_OPTION, STORE_OPTION, FORMAT_OPTION])
@OUTPUT_OPTION
@click.option(
    "--self-test",
    is_flag=True,
    help="Do not judge: show how often each gate would flip on identical systems (A/A).",
)
@options(ALLOW_OPTIONS)
def COMMAND(  # noqa: N802
    name: str,
    gates: str | None,
    config_path: str | None,
    as_of: str | None,
    format_name: str,
    outputs: tuple[str, ...],
    baseline: str | None,
    store_url: str | None,
    self_test: bool,
    **allow: bool,
) -> int:
    """Judge a stored RUN, or SCORES from `ragauge score --full -o FILE.json`, without scoring."""
    import msgspec

    from ragauge import registry
    from ragauge.model import scores_document
    from ragauge.store import runs as run_store

    config = read_config(config_path)
    spare_inputs(
        output_files(outputs),
        config,
        config_path,
        gates=gates,
        baseline=baseline,
        store_url=store_url,
        others={"scores": name},
    )
    with ExitStack() as stack:
        store = run = None
        if is_file(name):
            scores = scores_document.load_scores(name)
        else:
            store = stack.enter_context(the_store(store_url, config))
            run = run_store.find_run(store, name)
            scores = run_store.run_scores(store, run)
        profile = registry.profile(scores.profile)
        judged_by = gates_from(profile, scores.k, config, gates)
        if not judged_by:
            raise click.UsageError("there are no gates: give --gates, or set them in ragauge.toml")
        plain = msgspec.structs.replace(profile, reports={})
        reports = [] if self_test else asked_reports(format_name, outputs, plain)
        needed = any(gate.is_drop for gate in judged_by)
        live = against(baseline, config, store, run) if needed or baseline else BaselineScores()
        allowed = tolerance_of(allow)
        if self_test:
            whole = profile.join.grid == "complete"
            return _self_test(
                live.beside or scores,
                judged_by,
                live.baseline,
                format_name,
                outputs,
                whole_grid=whole,
                allowed=allowed,
            )
        return conclude(
            scores,
            plain,
            judged_by,
            config,
            allowed=allowed,
            as_of=as_of,
            format_name=format_name,
            outputs=outputs,
            full=False,
            baseline=live.baseline,
            beside=live.beside,
            details=details_in(stack, reports, store, run, scores, CorpusOption.of(None, config)),
        )


def _self_test(
    scores: Scores,
    gates: Sequence[Gate],
    baseline: Scores | None,
    format_name: str,
    outputs: Sequence[str],
    *,
    whole_grid: bool,
    allowed: Tolerance,
) -> int:
    """Print how often each gate would flip, and say so in the exit code where it cannot be told."""
    from ragauge.codes import ExitCode
    from ragauge.gates.self_test import self_test

    if outputs or format_name not in ("table", "json"):
        raise click.UsageError("--self-test prints a table or JSON: --format table or json, no -o")
    if not scores.measured:
        return int(ExitCode.NOTHING_MEASURED)
    tests = self_test(scores, gates, baseline=baseline, whole_grid=whole_grid, tolerance=allowed)
    click.echo(_as_json(tests) if format_name == "json" else _as_text(tests))
    simulated = any(test.flips is not None for test in tests)
    return int(ExitCode.PASS if simulated else ExitCode.NOT_EVALUABLE)


def _as_json(tests: Sequence[SelfTest]) -> str:
    import json

    gates = [
        {
            "name": test.gate.name,
            "metric": test.gate.metric,
            "demand": f"{test.gate.sign} {test.gate.given}",
            "drop": test.gate.is_drop,
            "n": test.n,
            "status": test.status,
            "flips": None if test.flips is None else round(test.flips, 4),
            "method": test.method,
            "reason": test.reason,
        }
        for test in tests
    ]
    return json.dumps({"schema": "ragauge.self-test/1", "gates": gates}, indent=2)


def _as_text(tests: Sequence[SelfTest]) -> str:
    """One paragraph a gate: how often it would flip, and what was tried."""
    from textwrap import fill

    width = min(100, screen()["width"])
    lines = ["How often each gate would decide otherwise on identical systems (A/A):", ""]
    for test in tests:
        gate = test.gate
        name = f"{gate.title or gate.name} {gate.sign} {gate.given}"
        share = "unknown" if test.flips is None else f"{test.flips:.1%}"
        lines.append(f"{share:>8}  {name}  (n = {test.n}, now: {test.status})")
        method = test.method if test.reason is None else f"{test.method}: {test.reason}"
        indent = " " * 10
        lines.append(fill(method, width, initial_indent=indent, subsequent_indent=indent))
    noisy = [test for test in tests if test.flips is not None and test.flips > 0.05]
    if noisy:
        lines += [
            "",
            fill(
                "A gate that flips in more than 5 % of trials decides by chance: ask more "
                'questions, leave a margin, or use policy = "interval".',
                width,
            ),
        ]
    return "\n".join(lines)
