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
    BaselineScores,
    CorpusOption,
    against,
    details_in,
    is_file,
)
from ragauge.cli.streams import print_json, print_lines

if TYPE_CHECKING:
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
    """Judge a stored RUN, or SCORES from `ragauge score --full -o FILE.json`, without scoring."""
    import msgspec

    from ragauge import registry
    from ragauge.model import scores_document
    from ragauge.store import runs as run_store

    asked = CommandOptions(**values)
    name, config, outputs = asked.name, asked.config, asked.outputs
    asked.spare(output_files(outputs), {"scores": name}, baseline=asked.baseline)
    with ExitStack() as stack:
        store = run = None
        if is_file(name):
            if asked.baseline is not None and not is_file(asked.baseline):
                permit_store(config)  # before the scores are read
            scores = scores_document.load_scores(name)
        else:
            store = stack.enter_context(asked.store())
            run = run_store.find_run(store, name)
            scores = run_store.run_scores(store, run)
        profile = registry.profile(scores.profile)
        judged_by = asked.all_gates(profile, scores.k)
        if not judged_by:
            raise click.UsageError("there are no gates: give --gates, or set them in ragauge.toml")
        plain = msgspec.structs.replace(profile, reports={})
        reports = [] if asked.self_test else asked_reports(asked.format_name, outputs, plain)
        live = BaselineScores()
        if asked.baseline or any(gate.is_drop for gate in judged_by):
            live = against(asked.baseline, config, store, run)
        if asked.self_test:
            return _self_test(live.beside or scores, judged_by, live.baseline, asked)
        return conclude(
            scores,
            plain,
            judged_by,
            config,
            allowed=asked.tolerance,
            as_of=asked.as_of,
            format_name=asked.format_name,
            outputs=outputs,
            full=False,
            raw_csv=asked.raw_csv,
            baseline=live.baseline,
            beside=live.beside,
            details=details_in(stack, reports, store, run, scores, CorpusOption.of(None, config)),
        )


def _self_test(
    scores: Scores, gates: Sequence[Gate], baseline: Scores | None, asked: CommandOptions
) -> int:
    """Print how often each gate would flip, and say so in the exit code where it cannot be told."""
    from ragauge import registry
    from ragauge.codes import ExitCode
    from ragauge.gates.self_test import self_test

    if asked.outputs or asked.format_name not in ("table", "json"):
        raise click.UsageError("--self-test prints a table or JSON: --format table or json, no -o")
    if not scores.measured:
        return int(ExitCode.NOTHING_MEASURED)
    whole = registry.profile(scores.profile).join.grid == "complete"
    tests = self_test(scores, gates, baseline=baseline, whole_grid=whole, tolerance=asked.tolerance)
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
    noisy = [test for test in tests if test.flips is not None and test.flips > 0.05]
    if noisy:
        lines += [
            "",
            *wrap(
                "A gate that flips in more than 5 % of trials decides by chance: ask more "
                'questions, leave a margin, or use policy = "interval".',
                width,
            ),
        ]
    return lines
