"""`ragauge metrics`: list the metrics, or explain one."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import click

from ragauge.cli.options import screen
from ragauge.cli.store_options import ANY_FORMAT
from ragauge.cli.streams import print_json

if TYPE_CHECKING:
    from ragauge.metrics.metric import Metric


@click.command("metrics", short_help="List the metrics, or explain one.")
@click.argument("name", required=False, metavar="[ID]")
@ANY_FORMAT
def COMMAND(name: str | None, format_name: str) -> int:  # noqa: N802
    """List all metrics, or explain one with its formula and a worked example."""
    from ragauge import registry
    from ragauge.model.metric_names import current_id, labelled_id

    metrics_by_id = registry.metrics()
    if name is None:
        metrics = list(metrics_by_id.values())
        if format_name == "json":
            print_json([_entry(metric) for metric in metrics])
        else:
            click.echo(_table(metrics), nl=False)
        return 0
    base = labelled_id(current_id(name)).partition("@")[0]
    short = {}
    for profile in registry.profiles().values() if base not in metrics_by_id else ():
        meanings = (
            profile.meant(spelling).partition("@")[0] for spelling in (name, base, f"{base}@k")
        )
        meant = next((meaning for meaning in meanings if meaning in metrics_by_id), None)
        if meant is not None:
            short[profile.name] = meant
    for profile_name, meant in short.items():
        click.echo(f"in the profile {profile_name}, {name} is short for {meant}", err=True)
    chosen = dict.fromkeys(short.values() if short else [base])
    if not chosen.keys() <= metrics_by_id.keys():
        raise registry.unknown_name("metric", name, metrics_by_id)
    metrics = [metrics_by_id[metric_id] for metric_id in chosen]
    if format_name == "json":
        print_json([_entry(metric) for metric in metrics])
    else:
        click.echo("\n".join(explain(metric) for metric in metrics), nl=False)
    return 0


def _entry(metric: Metric) -> dict[str, object]:
    from msgspec.structs import asdict

    from ragauge.model import phrases

    return {
        "id": metric.id,
        "title": metric.title,
        "formula": metric.formula,
        "over": metric.over.name,
        "over_meaning": metric.over.meaning,
        "aggregate": metric.aggregate,
        "left_out": phrases.exclusion_reasons(metric),
        "null": phrases.null_rule(metric),
        "range": list(metric.range),
        "better": metric.better,
        "at_k": metric.at_k,
        "version": metric.version,
        "source": metric.source,
        "elsewhere": metric.elsewhere,
        "example": asdict(metric.example),
    }


def _table(metrics: list[Metric]) -> str:
    from ragauge.report.terminal.console import Screen, plain_table

    table = plain_table("metric", "better", "what it is", whole=("metric",))
    for metric in metrics:
        full_id = f"{metric.id}@k" if metric.at_k else metric.id
        table.add_row(full_id, metric.better, metric.title)
    drawn = Screen(int(screen()["width"]), color=False)
    drawn.console.print(table)
    return f"{drawn.text()}\n`ragauge metrics ID` explains one.\n"


def explain(metric: Metric) -> str:
    """A metric in words: formula, population, null rule, a worked example, and its source."""
    import textwrap

    from ragauge.model import phrases
    from ragauge.model.metric_names import metric_label

    def block(label: str, text: str) -> str:
        return textwrap.fill(
            text,
            80,
            initial_indent=f"{label:<10}",
            subsequent_indent=" " * 10,
            break_on_hyphens=False,
            break_long_words=False,
        )

    full_id = f"{metric.id}@k" if metric.at_k else metric.id
    label = metric_label(full_id)
    reasons = ", ".join(phrases.exclusion_reasons(metric)) or "none"
    lines = [
        f"{full_id}  (version {metric.version}, {metric.better} is better)",
        metric.title,
        "",
        *([block("label", f"`{label}` in tables and reports")] if label != full_id else []),
        block("formula", metric.formula),
        block("over", f"{metric.over.name}: {metric.over.meaning}"),
        block("left out", f"by name and counted: {reasons}"),
        block("together", phrases.AGGREGATE_PHRASES[metric.aggregate]),
        block(
            "0/0",
            f"{phrases.null_rule(metric)}, with the reason, and a gate on it is not evaluable; "
            "where a profile follows a source, its gates judge what the source prints",
        ),
        block("source", metric.source),
    ]
    if metric.may_cut:
        lines.insert(4, block("cut-off", f"{metric.id}@k takes the first k hits only"))
    if metric.elsewhere:
        lines.append(block("compare", metric.elsewhere))
    example = metric.example
    traces = example.trace if isinstance(example.trace, list) else [example.trace]
    lines += ["", "example"]
    lines += [
        block(f"  {name}", json.dumps(row, ensure_ascii=False))
        for name, row in (("gold", example.gold), *(("trace", trace) for trace in traces))
    ]
    value = "null" if example.value is None else f"{example.value:g}"
    lines.append(block("  value", f"{value}: {example.arithmetic}"))
    return "\n".join(lines) + "\n"
