"""`ragauge explain`: what an error code, a rule, an exit code or a label means."""

from __future__ import annotations

import textwrap

import click


@click.command("explain", short_help="Explain an error code, rule, exit code or label.")
@click.argument("code", required=False, metavar="[CODE]")
def COMMAND(code: str | None) -> int:  # noqa: N802
    """Explain an error code, a rule of `gold lint`, an exit code or a label.

    Without CODE, list them all.
    """
    from ragauge.codes import CODES, ExitCode
    from ragauge.gold.lint.rules import RULES
    from ragauge.model.labels import CAUSES, MEANINGS
    from ragauge.registry import metrics, unknown_name

    if code is None:
        click.echo("error codes, with their exit codes")
        for name, entry in CODES.items():
            click.echo(_listed(f"{name:<17}{int(entry.exit):>3}  ", entry.title))
        click.echo("rules of `gold lint`, with their severities")
        for name, rule in RULES.items():
            if name not in CODES:
                click.echo(_listed(f"{name:<26}{rule.severity:<9}", rule.title))
        click.echo("labels, from best to worst")
        for label, meaning in MEANINGS.items():
            click.echo(_listed(f"{label:<22}", meaning))
        click.echo("causes of labels, in the order in which an answer is made")
        for cause, meaning in CAUSES.items():
            click.echo(_listed(f"{cause:<22}", meaning))
        return 0
    name = code.strip("[]`")
    for severity in ("error[", "warning[", "note["):
        name = name.removeprefix(severity)
    if name in CODES:
        entry = CODES[name]
        click.echo(f"{name}: {entry.title}  (exit code {int(entry.exit)})\n")
        click.echo(textwrap.fill(entry.explanation, 80))
    elif name in RULES:
        rule = RULES[name]
        click.echo(f"{name}: {rule.title}  ({rule.severity} of `gold lint`)\n")
        click.echo(textwrap.fill(rule.explanation, 80))
    elif name.upper() in MEANINGS:
        click.echo(f"{name.upper()}: {MEANINGS[name.upper()]}")
    elif name.lower() in CAUSES:
        click.echo(f"{name.lower()}: {CAUSES[name.lower()]}  (cause of a label)")
    elif name.isascii() and name.isdecimal() and int(name) in set(ExitCode):
        exit_code = ExitCode(int(name))
        click.echo(f"exit code {name}: {exit_code.name.lower().replace('_', ' ')}")
        for entry in CODES.values():
            if entry.exit == exit_code:
                click.echo(f"  {entry.name:<18} {entry.title}")
    elif name.partition("@")[0] in metrics():
        click.echo(f"`{name}` is a metric: `ragauge metrics {name}` explains it")
    else:
        raise unknown_name("code", code, [*CODES, *RULES, *MEANINGS, *CAUSES])
    return 0


def _listed(head: str, text: str) -> str:
    return textwrap.fill(
        text, 80, initial_indent=f"  {head}", subsequent_indent=" " * (len(head) + 2)
    )
