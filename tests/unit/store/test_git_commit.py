"""The commit of a run: from variables, from real repositories, from folders made by hand."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragauge.store import git_commit
from ragauge.store.git_commit import GitFacts, commit_hash, git_facts
from tests.support.cases import cases

ONE, OTHER = "1" * 40, "2f" * 20
needs_git = pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")


def git(folder: Path, *words: str) -> str:
    """Run git without the settings of whoever runs the tests."""
    environ = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    environ |= {
        "GIT_CONFIG_NOSYSTEM": "1", "GIT_CONFIG_GLOBAL": os.devnull, "HOME": str(folder),
        "GIT_AUTHOR_NAME": "a", "GIT_AUTHOR_EMAIL": "a@example.com",
        "GIT_COMMITTER_NAME": "a", "GIT_COMMITTER_EMAIL": "a@example.com",
    }  # fmt: skip
    command = ["git", "-c", "init.defaultBranch=main", "-c", "protocol.file.allow=always", *words]
    return subprocess.run(
        command, cwd=folder, env=environ, check=True, capture_output=True, text=True
    ).stdout.strip()


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """A repository with two commits on main and a branch with a slash in its name."""
    folder = tmp_path / "repository"
    folder.mkdir()
    git(folder, "init")
    for number in (1, 2):
        (folder / "file").write_text(str(number))
        git(folder, "add", "file")
        git(folder, "commit", "-m", str(number))
    git(folder, "branch", "feature/x", "HEAD~1")
    return folder


def made(folder: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text.encode("utf-8", "surrogateescape"))
    return folder


# --- variables ---


@cases(
    ("environ", "expected"),
    [
        ({"RAGAUGE_COMMIT": ONE, "GITHUB_SHA": OTHER}, ONE),
        ({"GITHUB_SHA": ONE, "CI_COMMIT_SHA": OTHER}, ONE),
        ({"CI_COMMIT_SHA": OTHER}, OTHER),
        ({"RAGAUGE_COMMIT": "", "GITHUB_SHA": " ", "CI_COMMIT_SHA": OTHER}, OTHER),
        ({"RAGAUGE_COMMIT": " r1234\n"}, "r1234"),  # other systems count their commits
        ({"RAGAUGE_COMMIT": "two words", "GITHUB_SHA": OTHER.upper()}, OTHER),
        ({"GITHUB_SHA": "main", "CI_COMMIT_SHA": "abc1234"}, "abc1234"),
        ({"RAGAUGE_COMMIT": "x" * 129}, None),
        ({"GITHUB_SHA": "g" * 40}, None),
        ({}, None),
    ],
)
def test_variables(tmp_path: Path, environ: dict[str, str], expected: str | None) -> None:
    made(tmp_path, {".git/HEAD": "nothing of use"})
    assert commit_hash(tmp_path, environ) == expected


def test_a_variable_goes_before_the_folder(tmp_path: Path) -> None:
    made(tmp_path, {".git/HEAD": ONE})
    assert commit_hash(tmp_path, {}) == ONE
    assert commit_hash(tmp_path, {"CI_COMMIT_SHA": OTHER}) == OTHER


# --- real repositories ---


@needs_git
def test_a_branch_and_a_folder_below(repository: Path) -> None:
    head = git(repository, "rev-parse", "HEAD")
    below = repository / "a" / "b"
    below.mkdir(parents=True)
    assert commit_hash(repository, {}) == commit_hash(below, {}) == head
    git(repository, "checkout", "feature/x")
    assert commit_hash(repository, {}) == git(repository, "rev-parse", "HEAD") != head


@needs_git
def test_a_detached_head(repository: Path) -> None:
    git(repository, "checkout", "--detach", "HEAD~1")
    assert commit_hash(repository, {}) == git(repository, "rev-parse", "feature/x")


@needs_git
def test_packed_refs(repository: Path) -> None:
    git(repository, "tag", "-a", "v1", "-m", "an annotated tag has a line of its own")
    git(repository, "pack-refs", "--all", "--prune")
    assert not (repository / ".git/refs/heads/main").exists()
    assert commit_hash(repository, {}) == git(repository, "rev-parse", "HEAD")
    git(repository, "commit", "--allow-empty", "-m", "3")  # a loose ref goes before a packed one
    assert commit_hash(repository, {}) == git(repository, "rev-parse", "HEAD")


@needs_git
@pytest.mark.parametrize("packed", [False, True])
def test_a_worktree(repository: Path, tmp_path: Path, packed: bool) -> None:
    tree = tmp_path / "tree"
    git(repository, "worktree", "add", str(tree), "feature/x")
    if packed:
        git(repository, "pack-refs", "--all", "--prune")
    assert (tree / ".git").is_file()
    assert commit_hash(tree, {}) == git(repository, "rev-parse", "feature/x")
    assert commit_hash(repository, {}) == git(repository, "rev-parse", "main")


@needs_git
def test_a_submodule(repository: Path, tmp_path: Path) -> None:
    outer = tmp_path / "outer"
    outer.mkdir()
    git(outer, "init")
    git(outer, "submodule", "add", str(repository), "inner")
    assert (outer / "inner/.git").is_file()
    assert commit_hash(outer / "inner", {}) == git(repository, "rev-parse", "main")
    assert commit_hash(outer, {}) is None  # nothing is committed there yet
    git(outer, "commit", "-m", "1")
    assert commit_hash(outer, {}) == git(outer, "rev-parse", "HEAD")


@needs_git
def test_the_other_kind_of_hash(tmp_path: Path) -> None:
    try:
        git(tmp_path, "init", "--object-format=sha256")
    except subprocess.CalledProcessError:
        pytest.skip("this git knows SHA-1 only")
    git(tmp_path, "commit", "--allow-empty", "-m", "1")
    found = commit_hash(tmp_path, {})
    assert found == git(tmp_path, "rev-parse", "HEAD")
    assert len(found) == 64


@needs_git
def test_no_commit_yet(tmp_path: Path) -> None:
    git(tmp_path, "init")
    assert commit_hash(tmp_path, {}) is None


# --- folders made by hand ---


@cases(
    ("files", "expected"),
    [
        ({".git/HEAD": ONE}, ONE),
        ({".git/HEAD": f"{OTHER.upper()}\r\n"}, OTHER),
        ({".git/HEAD": "ref: refs/heads/a", ".git/refs/heads/a": ONE + "\n"}, ONE),
        ({".git/HEAD": "ref:refs/heads/a", ".git/packed-refs": f"{ONE} refs/heads/a"}, ONE),
        (
            {
                ".git/HEAD": "ref: refs/heads/a\n",
                ".git/packed-refs": (
                    f"# pack-refs with: peeled fully-peeled sorted\n{OTHER} refs/heads/ab\n"
                    f"^{OTHER}\n{ONE} refs/heads/a\n"
                ),
            },
            ONE,
        ),
        (  # a ref may name another
            {
                ".git/HEAD": "ref: refs/heads/a",
                ".git/refs/heads/a": "ref: refs/heads/b",
                ".git/refs/heads/b": ONE,
            },
            ONE,
        ),
        ({".git": "gitdir: ../elsewhere\n", "../elsewhere/HEAD": ONE}, ONE),
        (
            {
                ".git": "gitdir: real/worktrees/w",
                "real/worktrees/w/HEAD": "ref: refs/heads/a",
                "real/worktrees/w/commondir": "../..\n",
                "real/refs/heads/a": ONE,
            },
            ONE,
        ),
        ({".git/config": "", "../.git/HEAD": ONE}, ONE),  # an empty shell: git looks further up
        ({".git/HEAD": ""}, None),
        ({".git/HEAD": "ref: refs/heads/a"}, None),
        ({".git/HEAD": "ref: "}, None),
        ({".git/HEAD": "ref: refs/../../secret", "secret": ONE}, None),
        ({".git/HEAD": "ref: /secret", ".git/secret": ONE}, None),
        ({".git/HEAD": "ref: refs/heads/a", ".git/refs/heads/a": "ref: refs/heads/a"}, None),
        ({".git/HEAD": "ref: refs/heads/a", ".git/refs/heads/a/b": ONE}, None),
        ({".git/HEAD": "ref: refs/heads/a", ".git/packed-refs": "x refs/heads/a"}, None),
        ({".git/HEAD": ONE[:-1]}, None),
        ({".git/HEAD": "\udcff\udcfe\x00"}, None),
        ({".git/HEAD": "ref: refs/heads/.invalid"}, None),  # refs in a table: git alone knows
        ({".git/HEAD/x": ONE}, None),
        ({".git": "gitdir: nowhere", "../.git/HEAD": ONE}, None),
        ({".git": "gitdir: a\x00b"}, None),
        ({".git": "gitdir:"}, None),
        ({".git": "something else", "../.git/HEAD": ONE}, None),
        ({".git": ""}, None),
    ],
)
def test_folders_made_by_hand(tmp_path: Path, files: dict[str, str], expected: str | None) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    if "../.git/HEAD" not in files:  # whatever there is above the temporary folder
        made(tmp_path, {".git/HEAD": "nothing of use"})
    made(folder, files)
    assert commit_hash(folder, {}) == expected


def test_folders_that_are_none(tmp_path: Path) -> None:
    made(tmp_path, {".git/HEAD": "nothing of use", "file": ""})
    for name in ("missing", "file", "file/below", "with\x00null", "long" * 500):
        assert commit_hash(tmp_path / name, {}) is None


@pytest.mark.skipif(not hasattr(os, "symlink"), reason="no symbolic links here")
def test_a_link_is_followed(tmp_path: Path) -> None:
    made(tmp_path, {"real/.git/HEAD": ONE, "real/runs/x": "", ".git/HEAD": OTHER})
    try:
        (tmp_path / "link").symlink_to(tmp_path / "real/runs", target_is_directory=True)
        (tmp_path / "circle").symlink_to(tmp_path / "circle")
    except OSError:
        pytest.skip("no right to make symbolic links")
    assert commit_hash(tmp_path / "link", {}) == ONE
    assert commit_hash(tmp_path / "circle", {}) == OTHER


@given(head=st.binary(max_size=80), ref=st.binary(max_size=80), packed=st.binary(max_size=200))
def test_nothing_is_raised(
    tmp_path_factory: pytest.TempPathFactory, head: bytes, ref: bytes, packed: bytes
) -> None:
    folder = tmp_path_factory.mktemp("any")
    made(folder, {".git/refs/heads/a": "", ".git/refs/heads/b": "ref: refs/heads/c"})
    (folder / ".git/refs/heads/a").write_bytes(ref)
    (folder / ".git/packed-refs").write_bytes(packed)
    for start in (b"", b"ref: refs/heads/a", b"ref: refs/heads/b", b"ref: refs/heads/"):
        (folder / ".git/HEAD").write_bytes(start + head)
        found = commit_hash(folder, {})
        assert found is None or set(found) <= set("0123456789abcdef")
    (folder / ".git/HEAD").unlink()


# --- branch, author and changes ---


@needs_git
def test_a_run_knows_its_branch_and_whether_files_were_changed(repository: Path) -> None:
    head = git(repository, "rev-parse", "HEAD")
    assert git_facts(repository, {}) == GitFacts(head, "main", None, False)
    (repository / "unknown").write_text("a store, a report: git does not know it")
    assert git_facts(repository, {}).dirty is False
    (repository / "file").write_text("changed")
    assert git_facts(repository, {}).dirty is True
    git(repository, "add", "file")  # in the index, not in a commit
    assert git_facts(repository, {}).dirty is True
    git(repository, "commit", "-m", "3")
    assert git_facts(repository, {}).dirty is False
    (repository / "file").touch()  # another time, the same bytes
    assert git_facts(repository, {}).dirty is False
    (repository / "file").unlink()
    assert git_facts(repository, {}).dirty is True


@needs_git
def test_a_checkout_of_a_commit_has_no_branch(repository: Path) -> None:
    git(repository, "checkout", "--detach", "feature/x")
    assert git_facts(repository, {}).branch is None
    git(repository, "checkout", "feature/x")
    facts = git_facts(repository, {})
    assert (facts.branch, facts.dirty) == ("feature/x", False)


@needs_git
def test_a_worktree_and_a_submodule_have_facts_of_their_own(repository: Path) -> None:
    beside = repository.parent / "beside"
    git(repository, "worktree", "add", str(beside), "feature/x")
    (beside / "file").write_text("changed")
    assert git_facts(beside, {})[1:] == ("feature/x", None, True)
    assert git_facts(repository, {})[1:] == ("main", None, False)
    inner = beside.parent / "whole"
    inner.mkdir()
    git(inner, "init")
    git(inner, "submodule", "add", str(repository), "part")
    git(inner, "commit", "-m", "with a part")
    assert git_facts(inner / "part", {}).dirty is False
    (inner / "part" / "file").write_text("changed")
    assert git_facts(inner / "part", {}).dirty is True
    # Looking into a part would read the settings of the part.
    assert git_facts(inner, {}).dirty is False


@needs_git
def test_a_repository_with_long_hashes(tmp_path: Path) -> None:
    git(tmp_path, "init", "--object-format=sha256")
    (tmp_path / "file").write_text("1")
    git(tmp_path, "add", "file")
    git(tmp_path, "commit", "-m", "1")
    commit = git(tmp_path, "rev-parse", "HEAD")
    assert len(commit) == 64
    assert git_facts(tmp_path, {}, author=True) == GitFacts(commit, "main", "a", False)
    (tmp_path / "file").write_text("2")
    assert git_facts(tmp_path, {}).dirty is True


@needs_git
def test_the_author_is_read_only_if_asked_for(repository: Path) -> None:
    assert git_facts(repository, {}).author is None
    assert git_facts(repository, {}, author=True).author == "a"  # the name, not the address
    assert git_facts(repository, {"RAGAUGE_AUTHOR": " B. \n"}, author=True).author == "B."
    assert git_facts(repository, {"RAGAUGE_AUTHOR": "B."}).author is None
    assert git_facts(repository, {"RAGAUGE_AUTHOR": "evil\x1b[2J"}, author=True).author is None


@needs_git
def test_of_another_commit_than_the_one_that_is_checked_out_no_more_is_known(
    repository: Path,
) -> None:
    head = git(repository, "rev-parse", "HEAD")
    older = git(repository, "rev-parse", "HEAD~1")
    for commit in (older, "r1234", OTHER):
        assert git_facts(repository, {}, commit=commit, author=True) == GitFacts(commit, "main")
        assert git_facts(repository, {"RAGAUGE_COMMIT": commit}).dirty is None
    assert git_facts(repository, {}, commit=head[:8]).dirty is False
    assert git_facts(repository, {"GITHUB_SHA": head}).dirty is False


def test_outside_of_a_repository_nothing_is_known(tmp_path: Path) -> None:
    assert git_facts(tmp_path, {}) == GitFacts()
    made(tmp_path, {".git/HEAD": "ref: refs/heads/main", ".git/refs/heads/main": ONE})
    # There are no objects: git cannot say anything.
    assert git_facts(tmp_path, {}, author=True) == GitFacts(ONE, "main")


def event(folder: Path, full_name: str, **head: str) -> dict[str, str]:
    content = {"pull_request": {"head": {**head, "repo": {"full_name": full_name}}}}
    (folder / "event.json").write_text(json.dumps(content))
    return {
        "GITHUB_HEAD_REF": head["ref"], "GITHUB_REF_NAME": "7/merge", "GITHUB_REF_TYPE": "branch",
        "GITHUB_REF": "refs/pull/7/merge", "GITHUB_REPOSITORY": "we/it",
        "GITHUB_EVENT_PATH": str(folder / "event.json"),
    }  # fmt: skip


def test_the_branch_of_a_pull_request(tmp_path: Path) -> None:
    """One of a fork is never taken for one of ours, whatever it is called."""
    environ = event(tmp_path, "we/it", ref="fix", label="we:fix")
    assert git_facts(tmp_path, environ).branch == "fix"
    environ = event(tmp_path, "they/it", ref="main", label="they:main")
    assert git_facts(tmp_path, environ).branch == "they:main"
    (tmp_path / "event.json").write_text('{"pull_request": {"head": {"repo": null}}}')
    assert git_facts(tmp_path, environ).branch == "pull/7/merge"
    (tmp_path / "event.json").unlink()
    assert git_facts(tmp_path, environ).branch == "pull/7/merge"


@cases(
    ("environ", "branch"),
    [
        ({"RAGAUGE_BRANCH": "mine", "CI_COMMIT_BRANCH": "main"}, "mine"),
        ({"GITHUB_REF_NAME": "main", "GITHUB_REF_TYPE": "branch"}, "main"),
        ({"GITHUB_REF_NAME": "v1", "GITHUB_REF_TYPE": "tag"}, None),
        ({"CI_COMMIT_BRANCH": "main"}, "main"),
        (
            {
                "CI_MERGE_REQUEST_SOURCE_BRANCH_NAME": "fix",
                "CI_MERGE_REQUEST_SOURCE_PROJECT_PATH": "we/it",
                "CI_MERGE_REQUEST_PROJECT_PATH": "we/it",
            },
            "fix",
        ),
        (
            {
                "CI_MERGE_REQUEST_SOURCE_BRANCH_NAME": "main",
                "CI_MERGE_REQUEST_SOURCE_PROJECT_PATH": "they/it",
                "CI_MERGE_REQUEST_PROJECT_PATH": "we/it",
            },
            "they/it:main",
        ),
        ({"RAGAUGE_BRANCH": "a\x1b[2Jb"}, None),
        ({"RAGAUGE_BRANCH": "x" * 300}, None),
    ],
)
def test_the_branch_by_variables(
    tmp_path: Path, environ: dict[str, str], branch: str | None
) -> None:
    assert git_facts(tmp_path, environ).branch == branch


@needs_git
def test_no_setting_of_a_hostile_checkout_is_obeyed(
    repository: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each of these runs a program when someone calls `git status` there; none runs here."""
    marker = repository.parent / "ran"
    program = repository.parent / "program"
    program.write_text(f"#!/bin/sh\ntouch {marker}\ncat\n")
    program.chmod(0o755)
    (repository / ".gitattributes").write_text("file filter=evil diff=evil\n")
    git(repository, "add", ".gitattributes")
    git(repository, "commit", "-m", "attributes")
    for setting in (
        "core.fsmonitor", "filter.evil.clean", "filter.evil.process", "core.pager",
        "core.sshCommand", "diff.evil.textconv", "gpg.program", "core.alternateRefsCommand",
    ):  # fmt: skip
        git(repository, "config", setting, str(program))
    git(repository, "config", "log.showSignature", "true")
    (repository / ".git" / "info").mkdir(exist_ok=True)
    (repository / ".git" / "info" / "attributes").write_text("* filter=evil\n")
    for hook in ("post-index-change", "reference-transaction", "fsmonitor-watchman"):
        shutil.copy(program, repository / ".git" / "hooks" / hook)
    (repository / "file").write_text("changed")
    git(repository, "status")
    assert marker.exists()  # git by itself does run them
    marker.unlink()
    index = (repository / ".git" / "index").read_bytes()
    monkeypatch.setenv("GIT_DIR", str(repository / ".git"))
    monkeypatch.setenv("GIT_CONFIG_COUNT", "1")
    monkeypatch.setenv("GIT_CONFIG_KEY_0", "core.fsmonitor")
    monkeypatch.setenv("GIT_CONFIG_VALUE_0", str(program))
    facts = git_facts(repository, {}, author=True)
    assert (facts.dirty, facts.author) == (True, "a")
    assert not marker.exists()
    assert (repository / ".git" / "index").read_bytes() == index  # nothing was written either


@needs_git
def test_a_git_that_lies_in_the_folder_is_not_run(
    repository: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    marker = repository.parent / "ran"
    (repository / "git").write_text(f"#!/bin/sh\ntouch {marker}\n")
    (repository / "git").chmod(0o755)
    monkeypatch.chdir(repository)
    for path in (".", ""):
        monkeypatch.setenv("PATH", path)
        assert git_facts(repository, {}).dirty is None
    assert not marker.exists()


def test_a_git_that_takes_too_long_or_fails_says_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made(tmp_path, {".git/HEAD": ONE, "bin/git": "#!/bin/sh\nexec sleep 60\n"})
    (tmp_path / "bin" / "git").chmod(0o755)
    monkeypatch.setattr(git_commit, "_PATIENCE", 0.05)
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:{os.environ['PATH']}")
    assert git_facts(tmp_path, {}) == GitFacts(ONE)
    (tmp_path / "bin" / "git").write_text("#!/bin/sh\nexit 3\n")
    assert git_facts(tmp_path, {}, author=True) == GitFacts(ONE)
