"""`ragauge gold lint`: what in a gold set can be read and still cannot be meant as it is."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from ragauge.cli.options import choice, read_config
from ragauge.cli.streams import print_json, print_line, print_lines

if TYPE_CHECKING:
    from ragauge.gold.lint.check import LintReport

_MOST = 20


@click.command("lint", short_help="Find items that cannot be meant as they are.")
@click.argument("gold", metavar="GOLD")
@click.option("--corpus", metavar="DIR", help="Look evidence up in this corpus.")
@click.option("--chunks", metavar="FILE", help="Where the chunks of an index lie, as JSON Lines.")
@click.option(
    "--lock", metavar="FILE", help="What ids stood for (default: beside GOLD, if it is there)."
)
@click.option("--profile", metavar="NAME", help="Judge as under this profile.")
@click.option("--dialect", metavar="NAME", help="Force the field names of a dialect.")
@choice(
    "--format",
    "format_name",
    of=["table", "json"],
    default="table",
    help="What is printed; json has every finding.",
)
@click.option("--strict", is_flag=True, help="Exit with 1 if there are warnings.")
def COMMAND(  # noqa: N802
    gold: str,
    profile: str | None,
    dialect: str | None,
    format_name: str,
    strict: bool,
    **places: Any,
) -> int:
    """Check a gold set by rules; each finding has its line, its rule and a hint.

    Rows that cannot be read are told and left out. At most 20 findings of a severity are printed.
    `ragauge explain RULE` says what a rule is about. Exit code 3 if there are errors, 5 if there
    is no item, 1 for warnings under --strict, else 0.
    """
    from ragauge.codes import ExitCode
    from ragauge.gold.gold_file import no_items
    from ragauge.gold.lint import check

    config = read_config(None)
    report = check.lint(
        gold,
        **places,
        profile=profile or config.profile,
        dialect=dialect or config.dialect or "auto",
        options=config.options,
        fields=config.field_maps,
    )
    if not report.items and not report.problem_count:
        raise no_items(report.name)
    if format_name == "json":
        print_json(check.to_json(report))
    else:
        _print(report)
    if report.count("error"):
        return int(ExitCode.BAD_INPUT)
    return int(ExitCode.GATE_FAILED) if strict and report.count("warning") else 0


def _print(report: LintReport) -> None:
    from ragauge.gold.lint.rules import SEVERITIES
    from ragauge.model import phrases

    print_line(
        f"{report.name}: {phrases.count(report.items, 'gold item')}, dialect {report.dialect}, "
        f"profile {report.profile}"
    )
    for note in report.notes:
        print_line(f"note: {note}")
    for problem in report.problems:
        print_lines(str(problem).split("\n"))
    more = report.problem_count - len(report.problems)
    if more > 0:
        print_line(f"... and {more} more rows that cannot be read")
    for severity in SEVERITIES:
        findings = [finding for finding in report.findings if finding.severity == severity]
        for finding in findings[:_MOST]:
            print_lines(finding.text(report.name).split("\n"))
        if len(findings) > _MOST:
            print_line(f"... and {phrases.count(len(findings) - _MOST, f'more {severity}')}")
    print_lines(_figures(report))
    counts = [phrases.count(report.count(severity), severity) for severity in SEVERITIES]
    fine = not report.count("error") and not report.count("warning")
    print_line(f"ok: {', '.join(counts)}" if fine else ", ".join(counts))


def _figures(report: LintReport) -> list[str]:
    """What was looked at, what was left out, and the figures of the set."""
    from collections import Counter

    from ragauge.gold.coverage import COVERAGE
    from ragauge.model import phrases

    lines = []
    rules = Counter(finding.rule for finding in report.findings)
    if sum(rules.values()) > _MOST:
        lines.append("rules      " + ", ".join(f"{name} {n}" for name, n in sorted(rules.items())))
    if report.resolved is not None:
        lines.append(f"looked up  {report.resolved.summary()}")
    coverage = report.coverage
    if coverage is not None and coverage.share is not None:
        lines.append(
            f"sections   {coverage.sections_reached} of {coverage.sections} reached "
            f"({coverage.share:.2f}, target {COVERAGE:.2f})"
        )
        lines.append(f"documents  {coverage.docs_reached} of {coverage.docs} reached")
    if report.types:
        lines.append("types      " + ", ".join(f"{name} {n}" for name, n in report.types.items()))
    if report.unplaced:
        lines.append(
            f"not judged {phrases.count(report.unplaced, 'negative')} of {report.negatives}: "
            "where they lie is not known"
        )
    if report.turns:
        lines.append(f"not judged the words of {phrases.count(report.turns, 'turn')}")
    if report.problem_count:
        lines.append(f"left out   {phrases.count(report.problem_count, 'row')} that cannot be read")
    return lines
