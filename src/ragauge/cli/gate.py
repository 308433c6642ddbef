"""`ragauge gate`: judge a stored run or a saved scores file, under other gates."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

import click

from ragauge.cli.options import (
    ALLOW_OPTIONS,
    BASELINE_OPTION,
    DELTA_S_OPTION,
    FORMAT_OPTION,
    GATE_OPTIONS,
    CommandOptions,
    options,
    permit_store,
    screen,
)
from ragauge.cli.output import OUTPUT_OPTIONS, asked_reports, conclude, output_files
from ragauge.cli.store_options import (
    STORE_OPTION,
    CorpusOption,
    details_in,
    is_file,
)
from ragauge.cli.streams import print_json, print_lines

if TYPE_CHECKING:
    from ragauge.gates.baselines import GateBaseline
    from ragauge.gates.self_test import SelfTest
    from ragauge.model.scores import Scores
    from ragauge.model.verdict import Gate


@click.command("gate", short_help="Judge a stored run or saved scores under other gates.")
@click.argument("name", metavar="RUN|SCORES")
@options(GATE_OPTIONS)
@options([BASELINE_OPTION, STORE_OPTION, FORMAT_OPTION])
@options(OUTPUT_OPTIONS)
@click.option(
    "--self-test",
    is_flag=True,
    help="Do not judge: show how often each gate would flip on identical systems (A/A).",
)
@options([*ALLOW_OPTIONS, DELTA_S_OPTION])
def COMMAND(**values: Any) -> int:  # noqa: N802
    """Judge a run without scoring: a stored RUN, a file of --save-run, or SCORES.

    SCORES are from `ragauge score --full -o FILE.json`; they hold no hits.
    """
    import msgspec

    from ragauge import registry
    from ragauge.cli.named_runs import RunFinder, gate_baselines
    from ragauge.compare.common_gold import StoredRun
    from ragauge.model.baseline_name import parse_baseline_name
    from ragauge.store import runs as run_store

    asked = CommandOptions(**values)
    name, config, outputs = asked.name, asked.config, asked.outputs
    asked.spare(output_files(outputs), {"scores": name}, baselines=asked.baseline)
    with ExitStack() as stack:
        store = run = None
        finder = RunFinder(stack, config, open_store=lambda: stack.enter_context(asked.store()))
        for baseline in asked.baseline:
            if parse_baseline_name(baseline).folder is None and not is_file(baseline):
                permit_store(config)  # before the scores are read
        source = finder.source(name)
        if isinstance(source, StoredRun):
            store, run = source.store, source.record
            scores = run_store.run_scores(store, run)
            finder.suite = run.suite
        else:
            scores = source
        profile = registry.profile(scores.profile)
        judged_by = asked.all_gates(profile, scores.k)
        if not judged_by:
            raise click.UsageError("there are no gates: give --gates, or set them in ragauge.toml")
        plain = msgspec.structs.replace(profile, reports={})
        reports = [] if asked.self_test else asked_reports(asked.format_name, outputs, plain)
        baselines: list[GateBaseline] = []
        if asked.baseline or any(gate.is_drop for gate in judged_by):
            named = finder.baselines(asked.baseline, run=run, allow_none=asked.allow_no_baseline)
            compared = source if isinstance(source, StoredRun) else None
            baselines = gate_baselines(
                named, scores, compared, judged_by, allow_itself=asked.self_test
            )
        if asked.self_test:
            return _self_test(scores, judged_by, baselines, asked)
        return conclude(
            scores,
            plain,
            judged_by,
            config,
            allowed=asked.tolerance,
            as_of=asked.as_of,
            runs=[name if run is None else run],
            format_name=asked.format_name,
            outputs=outputs,
            full=False,
            raw_csv=asked.raw_csv,
            baselines=baselines,
            details=details_in(stack, reports, store, run, scores, CorpusOption.of(None, config)),
        )


def _self_test(
    scores: Scores, gates: Sequence[Gate], baselines: Sequence[GateBaseline], asked: CommandOptions
) -> int:
    """Print how often each gate would flip, and say so in the exit code where it cannot be told."""
    from ragauge import registry
    from ragauge.codes import ExitCode
    from ragauge.gates.self_test import self_test

    if asked.outputs or asked.format_name not in ("table", "json"):
        raise click.UsageError("--self-test prints a table or JSON: --format table or json, no -o")
    if not scores.measured:
        return int(ExitCode.NOTHING_MEASURED)
    # Gates on a level are tried on the run itself, those on a drop against each baseline.
    groups: list[tuple[Scores, Gate, Scores | None]] = [
        (scores, gate, None) for gate in gates if not (gate.is_drop and baselines)
    ]
    for baseline in baselines:
        run = baseline.beside or scores
        groups += [(run, gate, baseline.scores) for gate in baseline.gates(gates)]
    order = [gate.key for gate in gates]
    groups.sort(key=lambda group: order.index(group[1].key))
    tests = [
        test
        for run, gate, before in groups
        for test in self_test(
            run,
            [gate],
            baseline=before,
            whole_grid=registry.profile(scores.profile).join.grid == "complete",
            tolerance=asked.tolerance,
            bands=asked.config.bands,
        )
    ]
    if asked.format_name == "json":
        print_json(_document(tests))
    else:
        print_lines(_lines(tests))
    simulated = any(test.flips is not None for test in tests)
    return int(ExitCode.PASS if simulated else ExitCode.NOT_EVALUABLE)


def _document(tests: Sequence[SelfTest]) -> dict[str, Any]:
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
            "policy": test.gate.policy,
            "slice": test.gate.part,
            "against": test.gate.against,
            "advice": test.advice,
        }
        for test in tests
    ]
    return {"schema": "ragauge.self-test/1", "gates": gates}


def _lines(tests: Sequence[SelfTest]) -> list[str]:
    """One paragraph a gate: how often it would flip, and what was tried."""
    from textwrap import wrap

    width = min(100, screen()["width"])
    lines = ["How often each gate would decide otherwise on identical systems (A/A):", ""]
    for test in tests:
        gate = test.gate
        name = f"{gate.title or gate.name} {gate.sign} {gate.given}"
        share = "unknown" if test.flips is None else f"{test.flips:.1%}"
        lines.append(f"{share:>8}  {name}  (n = {test.n}, now: {test.status})")
        method = test.method if test.reason is None else f"{test.method}: {test.reason}"
        indent = " " * 10
        lines += wrap(method, width, initial_indent=indent, subsequent_indent=indent)
        if test.advice is not None:
            advice = f"decides by chance: {test.advice}"
            lines += wrap(advice, width, initial_indent=indent, subsequent_indent=indent)
    return lines
