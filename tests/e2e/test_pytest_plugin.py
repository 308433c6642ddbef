"""The pytest plugin in real pytest processes, and that it is not there unless it is used."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple
from xml.etree import ElementTree

import pytest

from tests.e2e.process import GOLD, TRACES, WRONG, environment, write

TIMEOUT = 120
# One of three answers is wrong: A0002 should be refused, so precision is 2/3 and under-refusal 1/1.
FAILED_GATES = """\
FAIL: precision, citation hit rate, under-refusal
  gate `precision`: 0.6667 >= 0.80 (n = 3): fail
  gate `citation hit rate`: 0.6667 >= 0.75 (n = 3): fail
  gate `under-refusal`: 1.0000 <= 0.05 (n = 1): fail
  1 question to look at:
    A0002  HALLUCINATION  tests/trace.jsonl:2
"""
FILES = 'gold="gold.jsonl", trace="trace.jsonl"'


class Ended(NamedTuple):
    """What came of a session: exit code, what was said, and the outcome of each test."""

    code: int
    out: str
    outcomes: dict[str, str]

    @property
    def plain(self) -> str:
        """What was said, without the marks in front of the lines of an assertion."""
        return re.sub(r"^E(   )?(    )?(AssertionError: )?", "", self.out, flags=re.MULTILINE)


class Project:
    """A project with tests, a gold set, and traces in `tests/`."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        write(folder / "pytest.ini", "[pytest]\n")
        write(folder / "tests" / "gold.jsonl", GOLD)
        write(folder / "tests" / "trace.jsonl", WRONG)

    def test_file(self, text: str, name: str = "tests/test_rag.py") -> None:
        write(self.folder / name, f"import pytest\n\n{text}")

    def run(self, *arguments: str) -> Ended:
        command = [sys.executable, "-m", "pytest", "-W", "error", "--strict-markers",
                   "--strict-config", "-v", *arguments]  # fmt: skip
        done = subprocess.run(
            command, cwd=self.folder, env=environment(COLUMNS="120"), encoding="utf-8",
            capture_output=True, timeout=TIMEOUT, check=False,
        )  # fmt: skip
        said = done.stdout + done.stderr
        assert "INTERNALERROR" not in said, said
        return Ended(done.returncode, said, dict(_outcomes(said)))


def _outcomes(said: str) -> Iterator[tuple[str, str]]:
    """The outcome of each test by the name behind its file, as `-v` and xdist say it."""
    after = re.compile(r"^\S+?::(\S.*?) (PASSED|FAILED|ERROR|XFAIL|SKIPPED)\b", re.MULTILINE)
    before = re.compile(
        r"^\[gw\d\] \[ *\d+%\] (PASSED|FAILED|ERROR|XFAIL|SKIPPED) \S+?::(.*?) *$", re.MULTILINE
    )
    yield from after.findall(said)
    yield from ((name, outcome) for outcome, name in before.findall(said))


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return Project(tmp_path)


def test_failing_gates_fail_the_test_with_their_numbers_and_the_worst_questions(
    project: Project,
) -> None:
    project.test_file(
        f"@pytest.mark.ragauge({FILES})\n"
        "def test_ship(ragauge_run):\n    ragauge_run.assert_gates()\n"
    )
    ended = project.run()
    assert ended.code == 1
    assert ended.outcomes == {"test_ship": "FAILED"}
    assert FAILED_GATES in ended.plain
    assert ">       ragauge_run.assert_gates()" in ended.out
    assert "asserting.py" not in ended.out  # the traceback ends in the user's own line


def test_gates_that_hold_pass(project: Project) -> None:
    write(project.folder / "tests" / "trace.jsonl", TRACES)
    project.test_file(
        f"@pytest.mark.ragauge({FILES})\ndef test_ship(ragauge_run):\n"
        "    ragauge_run.assert_gates()\n"
        "    assert ragauge_run.verdict.status == 'pass'\n"
        "    assert ragauge_run.scores.metrics['refusal.under'].value == 0\n"
        "    assert [each.label for each in ragauge_run.questions] == ['OK', 'REFUSAL_OK', 'OK']\n"
    )
    assert project.run().outcomes == {"test_ship": "PASSED"}


@pytest.mark.parametrize("body", ["pass", "assert ragauge_run.scores"])
def test_gates_of_the_marker_are_judged_although_the_test_does_not(
    project: Project, body: str
) -> None:
    """A test that forgets to assert must not pass."""
    argument = "ragauge_run" if "ragauge_run" in body else ""
    project.test_file(
        f'@pytest.mark.ragauge({FILES}, gates="precision=0.9")\n'
        f"def test_ship({argument}):\n    {body}\n"
    )
    ended = project.run()
    assert ended.outcomes == {"test_ship": "FAILED"}
    assert "gate `precision`: 0.6667 >= 0.9 (n = 3): fail" in ended.out
    assert "During handling" not in ended.out


def test_a_marker_without_gates_is_judged_by_the_profile(project: Project) -> None:
    project.test_file(f"@pytest.mark.ragauge({FILES})\ndef test_ship():\n    pass\n")
    assert FAILED_GATES in project.run().out


def test_a_bare_test_is_judged_by_what_its_markers_name(project: Project) -> None:
    """Files alone are a setting for a class or a module; demands hold for all tests in it."""
    project.test_file(
        f"pytestmark = pytest.mark.ragauge({FILES})\n\ndef test_unrelated():\n    pass\n\n"
        "@pytest.mark.ragauge(invariants='precision >= 0.6')\ndef test_holds():\n    pass\n\n"
        "@pytest.mark.ragauge(signals='precision')\ndef test_recorded():\n    pass\n\n"
        "@pytest.mark.ragauge(gates='precision=0.9')\nclass TestShip:\n"
        "    def test_fails(self):\n        pass\n\n"
        "    @pytest.mark.ragauge(gates='precision=0.1,chr=0.1,under=1')\n"
        "    def test_nearest_wins(self):\n        pass\n\n"
        "    def test_question(self, ragauge_question):\n        pass\n"
    )
    outcomes = project.run().outcomes
    assert outcomes.pop("test_unrelated") == "PASSED"
    assert outcomes.pop("test_holds") == "PASSED"
    assert outcomes.pop("test_recorded") == "PASSED"
    assert outcomes.pop("TestShip::test_fails") == "FAILED"
    assert outcomes.pop("TestShip::test_nearest_wins") == "PASSED"
    assert outcomes.pop("TestShip::test_question[the run]") == "FAILED"  # 0.6667 is below 0.9
    assert len(outcomes) == 3
    assert set(outcomes.values()) == {"PASSED"}  # a question is judged by its label alone


def test_no_gates_at_all_fail(project: Project) -> None:
    """The profile `all` has no gates: nothing would be decided."""
    project.test_file(f"@pytest.mark.ragauge({FILES}, profile='all')\ndef test_it():\n    pass\n")
    ended = project.run()
    assert ended.outcomes == {"test_it": "FAILED"}
    assert "no gates: nothing was decided" in ended.out


@pytest.mark.parametrize(
    ("trace", "said"),
    [
        (TRACES[:2], "NOT EVALUABLE: 1 of 3 gold items has no trace"),
        ([{"qid": "other", "answer_json": {}}], "NOTHING MEASURED"),
    ],
)
@pytest.mark.parametrize("demand", ["gates='precision=0.1'", "invariants='precision>=0.1'"])
def test_what_cannot_be_judged_fails(
    project: Project, trace: list[dict[str, object]], said: str, demand: str
) -> None:
    write(project.folder / "tests" / "trace.jsonl", trace)
    project.test_file(f"@pytest.mark.ragauge({FILES}, {demand})\ndef test_it():\n    pass\n")
    ended = project.run()
    assert ended.outcomes == {"test_it": "FAILED"}
    assert said in ended.out


def test_the_gates_of_the_project_stay_in_force(project: Project) -> None:
    write(project.folder / "ragauge.toml", '[gates]\nprecision = "0.1"\nchr = "0.1"\nunder = "1"\n')
    project.test_file(
        f"@pytest.mark.ragauge({FILES})\ndef test_it():\n    pass\n\n"
        f"@pytest.mark.ragauge({FILES}, config='none')\ndef test_without():\n    pass\n"
    )
    assert project.run().outcomes == {"test_it": "PASSED", "test_without": "FAILED"}


def test_invariants_stand_alone_and_signals_never_fail(project: Project) -> None:
    project.test_file(
        f"pytestmark = pytest.mark.ragauge({FILES})\n\n"
        "def test_holds(ragauge_run):\n"
        "    ragauge_run.invariants('precision >= 0.6', 'refusal.over <= 0')\n\n"
        "def test_fails(ragauge_run):\n    ragauge_run.invariants('refusal.under <= 0.02')\n\n"
        "@pytest.mark.ragauge(invariants=['refusal.under <= 0.02'])\n"
        "def test_before(ragauge_run):\n    raise SystemExit('it was run')\n\n"
        "def test_signal(ragauge_run):\n"
        "    assert ragauge_run.signals('refusal.under') == {'refusal.under': 1.0}\n\n"
        "def test_unmeasured(ragauge_run):\n"
        "    found = ragauge_run.signals('retrieval.ndcg@2', 'latency.total_ms_p95')\n"
        "    assert found['latency.total_ms_p95'] is None\n"
    )
    ended = project.run()
    assert ended.outcomes == {
        "test_holds": "PASSED", "test_fails": "FAILED", "test_before": "FAILED",
        "test_signal": "PASSED", "test_unmeasured": "PASSED",
    }  # fmt: skip
    assert ended.out.count("invariant `under-refusal`: 1.0000 <= 0.02 (n = 1): fail") == 2
    assert "it was run" not in ended.out


@pytest.mark.parametrize("workers", [(), ("-n", "2")])
def test_signals_reach_the_summary_and_the_xml_file(
    project: Project, workers: tuple[str, ...]
) -> None:
    project.test_file(
        f"@pytest.mark.ragauge({FILES}, signals=['precision', 'latency.total_ms_p95'])\n"
        "def test_signal(ragauge_run):\n    pass\n"
    )
    ended = project.run("--junitxml=report.xml", *workers)
    assert ended.outcomes == {"test_signal": "PASSED"}
    summary = ended.out.partition("ragauge signals")[2]
    assert (
        "\ntests/test_rag.py::test_signal\n"
        "  answer.grounded_precision = 0.6667 (n = 3)\n"
        "  latency.total_ms_p95 = 0/0 (n = 0)\n" in summary
    )
    tree = ElementTree.parse(project.folder / "report.xml")
    found = {each.get("name"): each.get("value") for each in tree.iter("property")}
    assert found == {
        "ragauge.answer.grounded_precision": "0.6667",
        "ragauge.answer.grounded_precision.n": "3",
        "ragauge.latency.total_ms_p95": "0/0",
        "ragauge.latency.total_ms_p95.n": "0",
    }


QUESTIONS = (
    f"@pytest.mark.ragauge({FILES})\n"
    "def test_question(ragauge_question):\n    ragauge_question.assert_good()\n"
)


@pytest.mark.parametrize("workers", [(), ("-n", "2")])
def test_every_question_is_a_test(project: Project, workers: tuple[str, ...]) -> None:
    project.test_file(QUESTIONS)
    ended = project.run(*workers)
    assert ended.outcomes == {
        "test_question[A0001]": "PASSED",
        "test_question[A0002]": "FAILED",
        "test_question[A0003]": "PASSED",
    }
    assert (
        "A0002: HALLUCINATION: answered, although there is no answer\n"
        "  question: Explain Z.\n"
        "  gold:     tests/gold.jsonl:2\n"
        "  trace:    tests/trace.jsonl:2\n" in ended.plain
    )


def test_failed_questions_can_be_run_again_and_known_ones_expected(project: Project) -> None:
    project.test_file(QUESTIONS)
    assert project.run().code == 1
    assert project.run("--lf").outcomes == {"test_question[A0002]": "FAILED"}
    project.test_file(
        QUESTIONS.replace("    ragauge", "    if ragauge_question.qid == 'A0002':\n"
                          "        pytest.xfail('known')\n    ragauge", 1)
    )  # fmt: skip
    assert project.run().outcomes["test_question[A0002]"] == "XFAIL"


def test_turns_are_named_and_odd_ids_do_no_harm(project: Project) -> None:
    gold = [
        {"qid": "T", "turn": turn, "question": "q", "answerable": True, "relevant": ["a"]}
        for turn in (1, 2)
    ] + [{"qid": "[x]::ä\u001b[1m", "question": "q", "answerable": False}]
    traces = [{"qid": "T", "turn": 1, "topk": ["a"], "answer": {"text": "a", "citations": ["a"]}}]
    write(project.folder / "tests" / "gold.jsonl", gold)
    write(project.folder / "tests" / "trace.jsonl", traces)
    project.test_file(QUESTIONS)
    ended = project.run()
    assert "test_question[T 1] PASSED" in ended.out
    assert "test_question[T 2] FAILED" in ended.out
    assert "3 items" in ended.out
    assert "T turn 2: MISSING: no trace" in ended.plain
    assert "\u001b" not in ended.out


def test_files_may_come_from_the_command_line(project: Project) -> None:
    project.test_file("def test_it(ragauge_run):\n    ragauge_run.assert_gates()\n")
    options = ("--ragauge-gold", "tests/gold.jsonl", "--ragauge-trace", "tests/trace.jsonl")
    for more in ((), ("-n", "2")):
        assert FAILED_GATES in project.run(*options, *more).plain
    ended = project.run()
    assert "error[usage]: the test names no gold file" in ended.out
    assert "--ragauge-gold FILE" in ended.out


def test_files_are_looked_for_beside_the_test_and_then_in_the_root(project: Project) -> None:
    write(project.folder / "data" / "gold.jsonl", GOLD)
    write(project.folder / "data" / "trace.jsonl", WRONG)
    write(project.folder / "tests" / "data" / "trace.jsonl", TRACES)
    project.test_file(
        "@pytest.mark.ragauge(gold='data/gold.jsonl', trace='data/trace.jsonl')\n"
        "def test_it():\n    pass\n"
    )
    assert project.run().outcomes == {
        "test_it": "PASSED"
    }  # tests/data/trace.jsonl is the right one


def test_a_run_is_scored_once(project: Project) -> None:
    project.test_file(
        "from ragauge.scoring import score as pipeline\n"
        "calls, score = [], pipeline.score\n"
        "pipeline.score = lambda *files, **options: calls.append(1) or score(*files, **options)\n"
        f"pytestmark = pytest.mark.ragauge({FILES})\n\n"
        "@pytest.mark.parametrize('number', range(3))\n"
        "def test_it(ragauge_run, number):\n"
        "    assert ragauge_run.scores and len(calls) == 1\n\n"
        "def test_question(ragauge_question):\n    assert ragauge_question and len(calls) == 1\n"
    )
    ended = project.run()
    assert set(ended.outcomes.values()) == {"PASSED"}
    assert len(ended.outcomes) == 6


BAD_INPUT = (
    ('gold="gone.jsonl", trace="trace.jsonl"',
     "error[file-not-found]: there is no file `tests/gone.jsonl`"),
    ('gold="gold.jsonl", trace="broken.jsonl"',
     "error[bad-json]: JSON is malformed: invalid character (byte 4)\n"
     "  --> tests/broken.jsonl:1  (dialect ship)"),
    (f"{FILES}, gates='precison=0.5'",
     "error[unknown-metric]: there is no metric `precison`\n  hint: did you mean `precision`?"),
    (f"{FILES}, gates='precision'", "error[bad-gate]: cannot read the gate `precision`\n"),
    (f"{FILES}, gates='gone.toml'", "error[file-not-found]: there is no gates file `tests/gone"),
    (f"{FILES}, invariants='precision <= 0.5'",
     "error[bad-gate]: cannot read the gate `precision <= 0.5`"),
    (f"{FILES}, signals=['retrieval.recal@5']",
     "error[unknown-metric]: there is no metric `retrieval.recal@5`"),
    (f"{FILES}, profil='ship'",
     "error[unknown-name]: there is no setting `profil`\n  hint: did you mean `profile`?"),
    (f"{FILES}, k='five'", "error[usage]: the settings of the test cannot be used"),
    ('"gold.jsonl"', "the marker ragauge takes arguments by name"),
)  # fmt: skip


def test_bad_input_is_told_without_a_traceback(project: Project) -> None:
    """With the fixture of the run, with that of a question, and with none."""
    write(project.folder / "tests" / "broken.jsonl", "not JSON\n")
    for number, (settings, _) in enumerate(BAD_INPUT):
        for kind, argument in (("bare", ""), ("run", "ragauge_run"), ("each", "ragauge_question")):
            project.test_file(
                f"@pytest.mark.ragauge({settings})\ndef test_{kind}_{number}({argument}):\n"
                "    pass\n",
                f"tests/test_{kind}_{number}.py",
            )
    ended = project.run("--continue-on-collection-errors", "--randomly-dont-reorganize")
    headed = re.split(r"\n_{5,} (.+?) _{5,}\n", ended.plain.partition("short test summary")[0])
    sections = dict(zip(headed[1::2], headed[2::2], strict=True))
    assert len(sections) == 3 * len(BAD_INPUT), sections.keys()
    for number, (_, said) in enumerate(BAD_INPUT):
        for title in (
            f"test_bare_{number}",
            f"ERROR at setup of test_run_{number}",
            f"ERROR collecting tests/test_each_{number}.py",
        ):
            assert said in sections[title], title
    for sign in ("Traceback", "During handling", "src/ragauge", ".py:1"):
        assert sign not in ended.out


def test_a_gold_set_without_questions_is_an_error_and_no_skip(project: Project) -> None:
    write(project.folder / "tests" / "gold.jsonl", "")
    project.test_file(QUESTIONS)
    ended = project.run()
    assert ended.code == 2
    assert "the gold set holds no questions, so nothing would be tested" in ended.out


UNUSED = "def test_it():\n    pass\n"
LOADED = (
    "import sys\nfrom pathlib import Path\n\n"
    "def pytest_sessionfinish():\n"
    "    Path('loaded.txt').write_text(' '.join(sys.modules))\n"
)


def test_a_project_that_does_not_use_it_loads_nothing_and_it_can_be_left_out(
    project: Project,
) -> None:
    """Other plugins load what they like: only the difference is ours."""
    project.test_file(UNUSED)
    write(project.folder / "conftest.py", LOADED)
    loaded = []
    for options in ((), ("-p", "no:ragauge")):
        ended = project.run(*options)
        assert ended.outcomes == {"test_it": "PASSED"}
        assert "signals" not in ended.out
        loaded.append(set((project.folder / "loaded.txt").read_text("utf-8").split()))
    assert loaded[0] - loaded[1] == {"ragauge", "ragauge.pytest_plugin"}
    assert not any(name.startswith("ragauge") for name in loaded[1])


def test_it_does_no_harm_that_ragauge_was_imported_before_pytest(project: Project) -> None:
    """pytest marks what comes with a plugin for rewriting, and warns of what is there already.

    An editable installation lists no files, so one that does is put beside it.
    """
    project.test_file(UNUSED)
    installed = project.folder / "site" / "ragauge-9.dist-info"
    write(installed / "METADATA", "Metadata-Version: 2.1\nName: ragauge\nVersion: 9\n")
    write(installed / "RECORD", "ragauge/__init__.py,,\nragauge/pytest_plugin.py,,\n")
    write(installed / "entry_points.txt", "[pytest11]\nragauge = ragauge.pytest_plugin\n")
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c",
         "import ragauge, pytest, sys; sys.exit(pytest.main(['-W', 'error', 'tests']))"],
        cwd=project.folder, env=environment(PYTHONPATH="site"), encoding="utf-8",
        capture_output=True, timeout=TIMEOUT, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    assert "1 passed" in done.stdout


def test_the_marker_the_fixtures_and_the_options_are_listed(project: Project) -> None:
    project.test_file(UNUSED)
    assert "@pytest.mark.ragauge(gold, trace, gates" in project.run("--markers").out
    listed = project.run("--fixtures").out
    assert "ragauge_run" in listed
    assert "ragauge_question" in listed
    assert "--ragauge-gold=FILE" in project.run("--help").out


def test_unittest_classes_can_carry_the_marker(project: Project) -> None:
    project.test_file(
        "import unittest\n\n@pytest.mark.ragauge(gold='gold.jsonl', trace='trace.jsonl')\n"
        "class TestShip(unittest.TestCase):\n"
        f"    @pytest.mark.ragauge({FILES})\n    def test_it(self):\n        pass\n"
    )
    assert project.run().outcomes == {"TestShip::test_it": "FAILED"}


DEMANDS = (
    ("invariants=['precision >= 0.9']", "FAILED",
     "FAIL: precision\n  invariant `precision`: 0.6667 >= 0.9 (n = 3): fail"),
    ("gates='precision=0.9'", "FAILED", "gate `precision`: 0.6667 >= 0.9 (n = 3): fail"),
    ("gates={}", "FAILED", FAILED_GATES),  # named, and nothing added: those of the profile
    ("signals=['nothing']", "FAILED", "error[unknown-metric]: there is no metric `nothing`"),
    ("gates='precision=0.6,chr=0.6,under=1', invariants='precision >= 0.6'", "PASSED", ""),
    ("signals='precision'", "PASSED",
     "test_question_5[the run]\n  answer.grounded_precision = 0.6667 (n = 3)\n"),
)  # fmt: skip


@pytest.mark.parametrize("workers", [(), ("-n", "2")])
def test_what_the_marker_of_a_question_test_demands_is_a_test_of_its_own(
    project: Project, workers: tuple[str, ...]
) -> None:
    project.test_file(
        "".join(
            f"@pytest.mark.ragauge({FILES}, {demand})\n"
            f"def test_question_{number}(ragauge_question):\n    pass\n\n"
            for number, (demand, _, _) in enumerate(DEMANDS)
        )
    )
    ended = project.run(*workers)
    assert ended.outcomes == {
        f"test_question_{number}[{name}]": outcome if name == "the run" else "PASSED"
        for number, (_, outcome, _) in enumerate(DEMANDS)
        for name in ("A0001", "A0002", "A0003", "the run")
    }
    for _, _, said in DEMANDS:
        assert said in ended.out
    assert "Traceback" not in ended.out
    assert ended.out.count("ragauge_question") == 0  # no function was called that could be shown


def test_no_demand_adds_no_test(project: Project) -> None:
    project.test_file(
        "@pytest.mark.ragauge(gates='precision=0.9')\nclass TestOther:\n"
        f"    @pytest.mark.ragauge({FILES}, gates=None, invariants=[], signals=())\n"
        "    def test_question(self, ragauge_question):\n        pass\n"
    )
    assert len(project.run().outcomes) == 3


def test_demands_on_questions_hold_for_every_run_and_can_be_selected_and_expected(
    project: Project,
) -> None:
    """Skips and marks of one parameter do not take the demands of the whole away."""
    project.test_file(
        "strict = pytest.mark.ragauge(gates='precision=0.9')\n"
        "loose = pytest.mark.ragauge(gates='precision=0.1,chr=0,under=1')\n\n"
        f"@pytest.mark.ragauge({FILES})\n"
        "@pytest.mark.parametrize('p', [\n"
        "    pytest.param('a', marks=[strict, pytest.mark.skip]),\n"
        "    pytest.param('b', marks=strict), pytest.param('c', marks=loose),\n"
        "])\n"
        "def test_question(p, ragauge_question, ragauge_run):\n    pytest.skip('later')\n\n"
        f"@pytest.mark.ragauge({FILES}, gates='precision=0.9')\n"
        "@pytest.mark.xfail(reason='known')\n"
        "def test_known(ragauge_question):\n    assert False\n"
    )
    for select in ((), ("tests/test_rag.py::test_question", "tests/test_rag.py::test_known")):
        outcomes = project.run(*select).outcomes
        assert outcomes.pop("test_question[the run]") == "FAILED"
        assert outcomes.pop("test_question[the run 2]") == "PASSED"
        assert {outcomes[name] for name in outcomes if "question" in name} == {"SKIPPED"}
        assert outcomes["test_known[the run]"] == "XFAIL"
    assert project.run("--lf").outcomes == {"test_question[the run]": "FAILED"}


def test_swallowing_a_failure_does_not_undo_what_the_marker_demands(project: Project) -> None:
    body = (
        "    try:\n        ragauge_run.assert_gates()\n    except AssertionError:\n        pass\n"
    )
    project.test_file(
        f"@pytest.mark.ragauge({FILES}, gates='precision=0.9')\n"
        f"def test_demanded(ragauge_run):\n{body}\n"
        f"@pytest.mark.ragauge({FILES})\ndef test_own(ragauge_run):\n{body}"
    )
    ended = project.run()
    assert ended.outcomes == {"test_demanded": "FAILED", "test_own": "PASSED"}
    assert "gate `precision`: 0.6667 >= 0.9 (n = 3): fail" in ended.out


FOREIGN_PROPERTIES = (
    "(1, 2)", "('a', 'b', 'c')", "()", "None", "7", "'ragauge.ab'", "('ragauge.x',)",
    "('ragauge.x', object())", "('ragauge.x', 1)", "('ragauge.x.n', [])", "([], {})",
    "('ragauge.y', __import__('numpy').zeros(2))", "('ragauge.y.n', 2)",
    "('ragauge.\x1b[1m', 1)",
)  # fmt: skip


def test_properties_of_others_do_no_harm(project: Project) -> None:
    """A foreign suite may record what it likes, even under our own prefix."""
    project.test_file(
        "def test_recorded(record_property):\n    record_property(1, 2)\n\n"
        "def test_appended(request):\n"
        f"    request.node.user_properties += [{', '.join(FOREIGN_PROPERTIES)}]\n\n"
        "def test_replaced(request):\n    request.node.user_properties = [None]\n"
    )
    ended = project.run()
    assert ended.code == 0
    assert set(ended.outcomes.values()) == {"PASSED"}
    assert "signals" not in ended.out
