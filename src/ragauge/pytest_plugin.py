"""The pytest plugin: a marker, two fixtures and two options. Nothing runs until one is used.

Loading it imports nothing of ragauge but this file, so that other test suites pay nothing.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import pytest

if TYPE_CHECKING:
    from ragauge.asserting import JudgedRun, Question, Scorer

MARKER = "ragauge"
RUN, QUESTION = "ragauge_run", "ragauge_question"
DEMANDS = {"gates", "invariants", "signals"}
PREFIX = "ragauge."
"""What the names of recorded signals begin with."""

_SCORER: pytest.StashKey[Scorer] = pytest.StashKey()
_RUN: pytest.StashKey[JudgedRun] = pytest.StashKey()
_BARE: pytest.StashKey[bool] = pytest.StashKey()


def pytest_addoption(parser: pytest.Parser) -> None:
    """Offer default files for tests that name none."""
    group = parser.getgroup("ragauge", "scores of retrieval-augmented systems")
    for name, what in (("gold", "gold set"), ("trace", "traces")):
        group.addoption(
            f"--ragauge-{name}", metavar="FILE", default=None,
            help=f"The {what} of ragauge tests that name none.",
        )  # fmt: skip


def pytest_configure(config: pytest.Config) -> None:
    """Make the marker known."""
    config.addinivalue_line(
        "markers",
        "ragauge(gold, trace, gates, invariants, signals, profile, ...): what is scored for the "
        "test, and what is demanded of it",
    )


@pytest.fixture
def ragauge_run(request: pytest.FixtureRequest) -> JudgedRun:
    """The run that the marker `ragauge` describes, scored once in a session."""
    return _run_of(request.node)


@pytest.fixture
def ragauge_question(request: pytest.FixtureRequest) -> Question:
    """One question of the run: a test with this fixture runs once for each."""
    found: Question = request.param
    return found


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Make a test for every question, where a test asks for one."""
    if QUESTION not in metafunc.fixturenames:
        return
    definition = metafunc.definition
    questions = _made(definition, lambda *_: None).questions
    if not questions:
        _stop(f"{definition.nodeid}: the gold set holds no questions, so nothing would be tested")
    ids = [each.qid if each.turn is None else f"{each.qid} {each.turn}" for each in questions]
    metafunc.parametrize(QUESTION, questions, ids=ids, indirect=True)


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_call(item: pytest.Item) -> None:
    """Apply what the markers demand before the test: signals are recorded, invariants judged.

    A test that takes no fixture would measure nothing and pass, so its run is made here.
    """
    if _RUN not in item.stash and _is_bare(item):
        item.stash[_BARE] = True
        _run_of(item)
    run = item.stash.get(_RUN, None)
    if run is not None:
        _demanded(run)


@pytest.hookimpl(trylast=True, specname="pytest_runtest_call")
def pytest_runtest_called(item: pytest.Item) -> None:
    """Judge the gates after the test, unless it failed or has asserted them itself.

    They are judged where a marker names them, and where a test without fixtures demands no more.
    """
    run = item.stash.get(_RUN, None)
    if run is None or run.gates_asserted:
        return
    named = run.settings
    alone = _BARE in item.stash and not (named.invariants or named.signals)
    if named.gates is not None or alone:
        _judged(run.assert_gates)


def _is_bare(item: pytest.Item) -> bool:
    """Whether a test without our fixtures carries the marker, or inherits one that demands."""
    if QUESTION in getattr(item, "fixturenames", ()):
        return False
    own = any(mark.name == MARKER for mark in item.own_markers)
    return own or any(DEMANDS & mark.kwargs.keys() for mark in item.iter_markers(MARKER))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """List the signals, by test; nothing where there are none."""
    found: dict[str, dict[str, object]] = {}
    for reports in terminalreporter.stats.values():
        for report in reports:
            if getattr(report, "user_properties", None) and getattr(report, "when", "") == "call":
                values = {
                    name.removeprefix(PREFIX): value
                    for name, value in report.user_properties
                    if name.startswith(PREFIX)
                }
                if values:
                    found[report.nodeid] = values
    if not found:
        return
    terminalreporter.section("ragauge signals")
    for test, values in sorted(found.items()):
        terminalreporter.write_line(test)
        for name, value in values.items():
            if f"{name}.n" in values:
                shown = f"{value:.4f}" if isinstance(value, float) else str(value)
                terminalreporter.write_line(f"  {name} = {shown} (n = {values[f'{name}.n']})")


def _run_of(item: pytest.Item) -> JudgedRun:
    """The run of a test; signals are recorded with the test, so that they reach its reports."""
    if _RUN not in item.stash:

        def record(name: str, value: object) -> None:
            item.user_properties.append((f"{PREFIX}{name}", value))

        item.stash[_RUN] = _made(item, record)
    return item.stash[_RUN]


def _made(node: pytest.Item, record: Any) -> JudgedRun:
    """Score what the markers of a test say; the marker nearest to the test wins."""
    from ragauge.asserting import JudgedRun, Scorer
    from ragauge.errors import RagaugeError
    from ragauge.runsettings import read_settings

    config = node.config
    here = Path(config.invocation_params.dir)
    given: dict[str, Any] = {
        name: str(here / value)
        for name in ("gold", "trace")
        if (value := config.getoption(f"ragauge_{name}")) is not None
    }
    for mark in reversed(list(node.iter_markers(MARKER))):
        if mark.args:
            _stop(f'{node.nodeid}: the marker ragauge takes arguments by name, as gold="FILE"')
        given |= mark.kwargs
    scorer = config.stash.setdefault(_SCORER, Scorer(config.rootpath))
    try:
        settings = read_settings(given, (node.path.parent, config.rootpath))
        return JudgedRun(scorer, settings, record=record, stop=_stop)
    except RagaugeError as error:
        told = scorer.shortened(str(error))
    return _stop(told)


def _stop(text: str) -> NoReturn:
    """End the test (or its collection) with a message and without a traceback."""
    __tracebackhide__ = True
    from ragauge.text import plain

    pytest.fail("\n".join(map(plain, text.split("\n"))), pytrace=False)


def _demanded(run: JudgedRun) -> None:
    """Record the signals of the marker, then judge its invariants."""
    from ragauge.runsettings import texts

    run.signals(*texts(run.settings.signals))
    _judged(lambda: run.invariants(*texts(run.settings.invariants)))


def _judged(check: Any) -> None:
    """Fail with what a check says; the test's author wrote no line that a traceback could show."""
    told = None
    try:
        check()
    except AssertionError as error:
        told = str(error)
    if told is not None:  # not inside `except`: one failure and not a chain of two
        pytest.fail(told, pytrace=False)
