"""A history of merges in a real git repository, judged by the runs that its main branch keeps."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.command import Folder, Row, lines_of

ROOT = Path(__file__).resolve().parents[2]
SCRIPT = ROOT / "scripts" / "kept_runs.sh"
BRANCH = "ragauge-runs"
QUESTIONS = 60
MERGES = 12
RULES = ("--profile", "all", "--k", "5", "--dialect", "native", "--no-intervals")
GATES = '[gates]\n"retrieval.recall@5" = { max_drop = 0.02, policy = "point" }\n'

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        shutil.which("git") is None or shutil.which("bash") is None, reason="it needs git and bash"
    ),
]


def gold() -> list[Row]:
    return [
        {
            "qid": f"Q{number:02}", "question": f"What is {number}?", "answerable": True,
            "gold_spans": [{"doc": "guide.md", "start": number * 100, "end": number * 100 + 80}],
        }
        for number in range(QUESTIONS)
    ]  # fmt: skip


def traces(*, lost: int, size: int = 100, chunker: str = "v1") -> list[Row]:
    """The evidence of all questions but the first `lost`, in chunks of a size."""
    rows = []
    for number in range(QUESTIONS):
        start = number * 100 if number >= lost else 90_000 + number * 100
        hit = {
            "id": f"{chunker}-{start}", "doc": "guide.md", "offsets": [start, start + size],
            "doc_hash": "h", "chunker_version": chunker,
        }  # fmt: skip
        rows.append({"qid": f"Q{number:02}", "hits": [hit]})
    return rows


class Project:
    """A repository whose system writes trace.jsonl, its origin, and a CI that judges commits."""

    def __init__(self, folder: Folder) -> None:
        self.folder = folder
        self.origin = folder.path / "origin.git"
        self.time = 1_768_000_000
        self.git("init", "--quiet", "--bare", str(self.origin))
        self.git("init", "--quiet", "--initial-branch=main", ".")
        self.git("remote", "add", "origin", str(self.origin))
        folder.write("gold.jsonl", gold())
        folder.write("ragauge.toml", GATES)
        folder.write(".gitignore", "*.gz\nkept/\norigin.git/\nscores.json\nragauge-here\n")
        self.commit("main", traces(lost=0))

    def git(self, *words: str) -> str:
        done = subprocess.run(
            ["git", "-c", "user.name=dev", "-c", "user.email=dev@example.com", *words],
            cwd=self.folder.path, capture_output=True, text=True, check=True,
        )  # fmt: skip
        return done.stdout

    def commit(self, branch: str, rows: list[Row]) -> None:
        self.folder.write("trace.jsonl", lines_of(rows))
        self.git("add", ".")
        self.git("commit", "--quiet", "--message", branch)
        self.git("push", "--quiet", "origin", "HEAD")

    def merge(self, branch: str) -> None:
        self.git("checkout", "--quiet", "main")
        self.git("merge", "--quiet", "--no-ff", "--message", f"merge {branch}", branch)
        self.git("push", "--quiet", "origin", "main")

    def branch(self, name: str, rows: list[Row]) -> None:
        """A pull request: a branch of main with other traces."""
        self.git("checkout", "--quiet", "-b", name, "main")
        self.commit(name, rows)

    def kept_runs(self, *words: str) -> int:
        environ = {**os.environ, "PYTHONPATH": str(ROOT / "src")}
        command = self.folder.path / "ragauge-here"
        command.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m ragauge "$@"\n')
        command.chmod(0o755)
        environ["RAGAUGE_COMMAND"] = str(command)
        done = subprocess.run(
            ["bash", str(SCRIPT), words[0], str(self.origin), BRANCH, *words[1:]],
            cwd=self.folder.path, env=environ, check=False,
        )  # fmt: skip
        return done.returncode

    def judge(self, *more: str) -> dict[str, str]:
        """What CI says of the checked-out commit: the status of the gate against each baseline."""
        self.time += 86_400
        os.environ["SOURCE_DATE_EPOCH"] = str(self.time)
        options = [word for name in BASELINES for word in ("--baseline", name)]
        done = self.folder.run(
            "score", "gold.jsonl", "trace.jsonl", *RULES, "--save-run", "run.jsonl.gz",
            "-o", "scores.json", *options, *more,
        )  # fmt: skip
        assert done.exit_code in (0, 1), done.err
        gates = json.loads((self.folder.path / "scores.json").read_text())["verdict"]["gates"]
        return {gate.get("against", ""): gate["status"] for gate in gates}

    def keep(self) -> None:
        """What CI does on the main branch: the run is kept, and later jobs fetch it."""
        assert self.kept_runs("keep", "run.jsonl.gz", "20") == 0
        shutil.rmtree(self.folder.path / "kept", ignore_errors=True)
        assert self.kept_runs("fetch", "kept") == 0


BASELINES = ("latest:kept", "pinned:kept", "best-of:10:kept")


@pytest.fixture
def project(folder: Folder, monkeypatch: pytest.MonkeyPatch) -> Project:
    """A project whose main branch has kept its first run, in which everything is found."""
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "0")
    project = Project(folder)
    assert project.kept_runs("fetch", "kept") == 9  # there is no branch yet
    project.judge("--allow-no-baseline")
    project.keep()
    return project


def test_twelve_small_steps_pass_the_moving_baseline_and_fail_the_others(project: Project) -> None:
    """Each merge loses one question of 60 (0.0167, and 0.02 is allowed): from 1.00 to 0.80."""
    history = []
    for merge in range(1, MERGES + 1):
        project.branch(f"change-{merge}", traces(lost=merge))
        history.append(project.judge())
        project.merge(f"change-{merge}")
        project.keep()
    # Every step is green by itself, and a fifth of the recall is gone.
    assert [said["latest"] for said in history] == ["pass"] * MERGES
    # The first step is allowed; the second makes it 2/60 = 0.033 in all.
    drifted = ["pass"] + ["fail"] * (MERGES - 1)
    assert [said["pinned"] for said in history] == drifted
    assert [said["best-of:10"] for said in history] == drifted
    log = project.git("log", "--oneline", "--merges", "main")
    assert len(log.splitlines()) == MERGES
    runs = project.git("--git-dir", str(project.origin), "log", "--oneline", BRANCH)
    assert len(runs.splitlines()) == 1, "the branch of runs does not grow with every merge"


def test_a_rechunked_pull_request_is_judged_on_its_hits(project: Project) -> None:
    """Other chunks of the same documents: green if nothing is lost, red if something is."""
    project.branch("smaller-chunks", traces(lost=0, size=60, chunker="v2"))
    assert set(project.judge().values()) == {"pass"}
    compared = project.folder.run(
        "compare", "latest:kept", "run.jsonl.gz", "--fail-on", "regression"
    )
    assert compared.exit_code == 0, compared.out
    assert "fallback_doc_span" in compared.out
    project.git("checkout", "--quiet", "main")
    project.branch("worse-chunks", traces(lost=3, size=60, chunker="v2"))
    assert set(project.judge().values()) == {"fail"}


def test_two_jobs_that_keep_at_once_both_do(
    folder: Folder, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A job that was overtaken starts again on top of what the other kept."""
    project = Project(folder)
    for number in (1, 2, 3):
        monkeypatch.setenv("SOURCE_DATE_EPOCH", str(1_768_000_000 + number))
        done = folder.run(
            "score", "gold.jsonl", "trace.jsonl", *RULES, "--save-run", f"run{number}.jsonl.gz",
            "--run-id", f"run{number}", "--allow-no-baseline",
        )  # fmt: skip
        assert done.exit_code == 0, done.err
    assert project.kept_runs("keep", "run1.jsonl.gz", "20") == 0
    command = ["bash", str(SCRIPT), "keep", str(project.origin), BRANCH]
    environ = {**os.environ, "RAGAUGE_COMMAND": str(folder.path / "ragauge-here"),
               "PYTHONPATH": str(ROOT / "src")}  # fmt: skip
    jobs = [
        subprocess.Popen([*command, f"run{number}.jsonl.gz", "20"], cwd=folder.path, env=environ)
        for number in (2, 3)
    ]
    assert [job.wait(60) for job in jobs] == [0, 0]
    listed = project.git("--git-dir", str(project.origin), "ls-tree", "--name-only", BRANCH)
    assert [name for name in ("run1", "run2", "run3") if name in listed] == ["run1", "run2", "run3"]
