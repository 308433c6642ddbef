"""The pytest plugin: a marker, two fixtures and two options. Nothing runs until one is used.

Loading it imports nothing of ragauge but this file, so that other test suites pay nothing.
"""

from __future__ import annotations

import sys
from collections.abc import Generator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import pytest

if TYPE_CHECKING:
    from ragauge.testing import JudgedQuestion, JudgedRun, Scorer

MARKER = "ragauge"
RUN, QUESTION = "ragauge_run", "ragauge_question"
CHECKS = ("gates", "invariants", "signals")
WHOLE = "the run"
"""What stands behind the name of a test for each question where the whole run is judged."""
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
            f"--ragauge-{name}",
            metavar="FILE",
            default=None,
            help=f"The {what} of ragauge tests that name none.",
        )


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
def ragauge_question(request: pytest.FixtureRequest) -> JudgedQuestion:
    """One question of the run: a test with this fixture runs once for each."""
    question: JudgedQuestion = request.param
    return question


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Make a test for every question, where a test asks for one."""
    if QUESTION not in metafunc.fixturenames:
        return
    definition = metafunc.definition
    questions = _scored_run(definition, lambda *_: None).questions
    if not questions:
        _stop(f"{definition.nodeid}: the gold set holds no questions, so nothing would be tested")
    ids = [
        question.qid if question.turn is None else f"{question.qid} {question.turn}"
        for question in questions
    ]
    metafunc.parametrize(QUESTION, questions, ids=ids, indirect=True)


@pytest.hookimpl(hookwrapper=True)
def pytest_pycollect_makeitem(
    collector: pytest.Module | pytest.Class,
) -> Generator[None, Any, None]:
    """Add a test for what the markers of tests for each question ask of the whole run."""
    outcome = yield
    if outcome.excinfo is not None:
        return
    collected = outcome.get_result()
    items = collected if isinstance(collected, list) else [collected]
    asked = [
        item
        for item in items
        if isinstance(item, pytest.Function) and QUESTION in item.fixturenames
    ]
    if asked:
        outcome.force_result([*items, *_whole_runs(collector, asked)])


class WholeRun(pytest.Item):
    """A test that takes no fixture and does nothing: the checks of its markers are judged.

    It is one item of the collection, so that the verdict is the same for any order and any number
    of workers, and so that the tests of questions still say which questions are bad.
    """

    def like(self, items: Sequence[pytest.Item]) -> None:
        """Take over the markers that all these tests have, and where they stand."""
        shared = set.intersection(*({id(mark) for mark in item.own_markers} for item in items))
        self.own_markers += [mark for mark in items[0].own_markers if id(mark) in shared]
        self.keywords.update((mark.name, mark) for mark in self.own_markers)
        path, line, domain = items[0].reportinfo()
        self.place = path, line, f"{domain.partition('[')[0]}[{self.name.partition('[')[2]}"

    def runtest(self) -> None:
        """Nothing: `pytest_runtest_call` judges what the markers ask for."""

    def reportinfo(self) -> Any:
        """File, line and title, as those of the tests of questions."""
        return self.place


def _whole_runs(collector: pytest.Collector, asked: Sequence[pytest.Function]) -> list[WholeRun]:
    """One test for each set of our markers that has checks."""
    groups: dict[tuple[int, ...], list[pytest.Function]] = {}
    for item in asked:
        groups.setdefault(tuple(map(id, item.iter_markers(MARKER))), []).append(item)
    whole_runs: list[WholeRun] = []
    for items in groups.values():
        if _has_checks(items[0]):
            number = f" {len(whole_runs) + 1}" if whole_runs else ""
            name = f"{items[0].originalname}[{WHOLE}{number}]"
            # The id is spelled out: `--lf` knows ids by their parts, and a name alone has none.
            place = f"{collector.nodeid}::{name}"
            whole: WholeRun = WholeRun.from_parent(collector, name=name, nodeid=place)
            whole.like(items)
            whole_runs.append(whole)
    return whole_runs


def _has_checks(node: pytest.Item) -> bool:
    """Whether the markers of a test ask for any check: an empty list asks for none."""
    if any(mark.args for mark in node.iter_markers(MARKER)):
        return True  # what is wrong with them is told when the test is run
    arguments = _arguments(node)
    return any(arguments.get(name) not in (None, (), []) for name in CHECKS)


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_call(item: pytest.Item) -> None:
    """Apply the checks of the markers before the test: signals are recorded, invariants judged.

    A test that takes no fixture would measure nothing and pass, so its run is made here.
    """
    if _RUN not in item.stash and _is_bare(item):
        item.stash[_BARE] = True
        _run_of(item)
    run = item.stash.get(_RUN, None)
    if run is not None:
        _check_marker(run)


@pytest.hookimpl(trylast=True, specname="pytest_runtest_call")
def pytest_runtest_called(item: pytest.Item) -> None:
    """Judge the gates after the test, unless it failed; whatever the test made of them itself.

    They are judged where a marker names them, and where a test without fixtures asks for no more.
    """
    run = item.stash.get(_RUN, None)
    if run is None:
        return
    named = run.settings
    alone = _BARE in item.stash and not (named.invariants or named.signals)
    if named.gates is not None or alone:
        _judged(run.assert_gates)


def _is_bare(item: pytest.Item) -> bool:
    """Whether a test without our fixtures carries the marker, or inherits one with checks."""
    markers = list(item.iter_markers(MARKER))
    if not markers or QUESTION in getattr(item, "fixturenames", ()):
        return False
    own = any(mark.name == MARKER for mark in item.own_markers)
    return own or any(name in mark.kwargs for mark in markers for name in CHECKS)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """List the signals, by test; nothing where there are none."""
    recorded: dict[str, dict[str, tuple[float | str, int]]] = {}
    for reports in terminalreporter.stats.values():
        for report in reports:
            if getattr(report, "when", None) == "call":
                values = _recorded(getattr(report, "user_properties", None))
                if values:
                    recorded[str(report.nodeid)] = values
    if not recorded:
        return
    terminalreporter.section("ragauge signals")
    for test, values in sorted(recorded.items()):
        terminalreporter.write_line(test)
        for name, (value, n) in values.items():
            value_text = f"{value:.4f}" if isinstance(value, float) else value
            terminalreporter.write_line(f"  {name} = {value_text} (n = {n})")


def _recorded(properties: object) -> dict[str, tuple[float | str, int]]:
    """The signals among the properties of a test, with their n.

    Anybody may record anything there: what does not look as we write it is not ours.
    """
    values: dict[str, Any] = {}
    for pair in properties if isinstance(properties, list | tuple) else ():
        # pytest-xdist turns tuples into lists.
        if isinstance(pair, list | tuple) and len(pair) == 2 and isinstance(pair[0], str):
            values[pair[0]] = pair[1]
    return {
        name.removeprefix(PREFIX): (value, values[f"{name}.n"])
        for name, value in values.items()
        if name.startswith(PREFIX) and name.isprintable()
        if isinstance(value, float | int) or (isinstance(value, str) and value == "0/0")
        if isinstance(values.get(f"{name}.n"), int)
    }


def _run_of(item: pytest.Item) -> JudgedRun:
    """The run of a test; signals are recorded with the test, so that they reach its reports."""
    if _RUN not in item.stash:

        def record(name: str, value: object) -> None:
            item.user_properties.append((f"{PREFIX}{name}", value))

        item.stash[_RUN] = _scored_run(item, record)
    return item.stash[_RUN]


def _arguments(node: pytest.Item) -> dict[str, Any]:
    """What the markers of a test say; the marker nearest to the test wins."""
    arguments: dict[str, Any] = {}
    for mark in reversed(list(node.iter_markers(MARKER))):
        if mark.args:
            _stop(f'{node.nodeid}: the marker ragauge takes arguments by name, as gold="FILE"')
        arguments |= mark.kwargs
    return arguments


def _scored_run(node: pytest.Item, record: Any) -> JudgedRun:
    """Score what the markers of a test say."""
    from ragauge.errors import RagaugeError
    from ragauge.files import connections
    from ragauge.testing import JudgedRun, Scorer, read_settings

    connections.listen(lambda line: print(line, file=sys.stderr))
    config = node.config
    here = Path(config.invocation_params.dir)
    arguments: dict[str, Any] = {
        name: str(here / value)
        for name in ("gold", "trace")
        if (value := config.getoption(f"ragauge_{name}")) is not None
    }
    arguments |= _arguments(node)
    scorer = config.stash.setdefault(_SCORER, Scorer(config.rootpath))
    try:
        settings = read_settings(arguments, (node.path.parent, config.rootpath))
        return JudgedRun(scorer, settings, record=record, stop=_stop)
    except RagaugeError as error:
        problem = scorer.shortened(str(error))
    return _stop(problem)


def _stop(text: str) -> NoReturn:
    """End the test (or its collection) with a message and without a traceback."""
    __tracebackhide__ = True
    from ragauge.text import plain

    pytest.fail("\n".join(map(plain, text.split("\n"))), pytrace=False)


def _check_marker(run: JudgedRun) -> None:
    """Record the signals of the marker, then judge its invariants."""
    from ragauge.testing import texts

    run.signals(*texts(run.settings.signals))
    _judged(lambda: run.invariants(*texts(run.settings.invariants)))


def _judged(check: Any) -> None:
    """Fail with what a check says; the test's author wrote no line that a traceback could show."""
    failure = None
    try:
        check()
    except AssertionError as error:
        failure = str(error)
    if failure is not None:  # not inside `except`: one failure and not a chain of two
        pytest.fail(failure, pytrace=False)
