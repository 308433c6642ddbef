"""JUnit XML: suites of test cases as the readers of CI systems take them.

The shape keeps to the schema of Jenkins' xUnit plugin, which refuses a whole file for less:
properties belong to suites, never to a case. Two attributes of a case, `file` and `line`, are in
some versions of it only; GitLab and others go by them. There is no time: nobody has measured one.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Literal
from xml.etree import ElementTree

from msgspec import Struct

from ragauge.report.ci.paths import FileLocation

Outcome = Literal["passed", "failure", "error"]

_FORBIDDEN = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""What XML 1.0 has no way to write."""


class Case(Struct, frozen=True, kw_only=True):
    """One test: its name, its outcome, and why.

    kind      the type of a failure or error, a short word
    message   one line about it
    body      all that there is to say about it
    output    what there is to know whatever the outcome
    """

    group: str
    name: str
    outcome: Outcome = "passed"
    kind: str = ""
    message: str = ""
    body: str = ""
    output: str = ""
    location: FileLocation | None = None


class Suite(Struct, frozen=True, kw_only=True):
    """Tests that belong together, and what holds for all of them."""

    name: str
    cases: tuple[Case, ...]
    properties: tuple[tuple[str, str], ...] = ()


def junit(suites: Sequence[Suite]) -> str:
    """The XML document of suites."""
    every = [case for suite in suites for case in suite.cases]
    root = ElementTree.Element("testsuites", {"name": "ragauge", **_counts(every)})
    for suite in suites:
        counts = {**_counts(suite.cases), "skipped": "0"}
        element = ElementTree.SubElement(root, "testsuite", {"name": legal(suite.name), **counts})
        _properties(element, suite.properties)
        counts_by_name: dict[tuple[str, str], int] = {}
        for case in suite.cases:
            count = counts_by_name[case.group, case.name] = (
                counts_by_name.get((case.group, case.name), 0) + 1
            )
            _case(element, case, case.name if count == 1 else f"{case.name} ({count})")
    ElementTree.indent(root, " ")
    text = ElementTree.tostring(root, encoding="unicode")
    return f'<?xml version="1.0" encoding="utf-8"?>\n{text}\n'


def _counts(cases: Sequence[Case]) -> dict[str, str]:
    outcomes = [case.outcome for case in cases]
    return {
        "tests": str(len(outcomes)),
        "failures": str(outcomes.count("failure")),
        "errors": str(outcomes.count("error")),
    }


def _case(suite: ElementTree.Element, case: Case, name: str) -> None:
    attributes = {"classname": legal(case.group), "name": legal(name)}
    if case.location is not None:
        attributes["file"] = legal(case.location.file)
        if case.location.line is not None:
            attributes["line"] = str(case.location.line)
    element = ElementTree.SubElement(suite, "testcase", attributes)
    if case.outcome != "passed":
        kind = {"type": legal(case.kind)} if case.kind else {}
        attributes_of_outcome = {"message": legal(case.message), **kind}
        outcome = ElementTree.SubElement(element, case.outcome, attributes_of_outcome)
        outcome.text = legal(case.body or case.message)
    if case.output:
        ElementTree.SubElement(element, "system-out").text = legal(case.output)


def _properties(parent: ElementTree.Element, pairs: Sequence[tuple[str, str]]) -> None:
    if pairs:
        element = ElementTree.SubElement(parent, "properties")
        for name, value in pairs:
            ElementTree.SubElement(
                element, "property", {"name": legal(name), "value": legal(value)}
            )


def legal(text: str) -> str:
    r"""Text with `\x1b` and the like for characters that XML 1.0 cannot hold."""
    return _FORBIDDEN.sub(lambda match: ascii(match[0])[1:-1], text)
