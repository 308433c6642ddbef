"""Git commit: which commit and branch a run was made from, by whom, and what was changed since.

A folder may come from anyone, and so may the settings in its `.git`, with which git starts
programs. Commit and branch are therefore read from files. Only `_git_answer` runs git, and keeps it
from every setting of the folder.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

_HASH = re.compile(r"[0-9a-f]{40}(?:[0-9a-f]{24})?")
_SHORT = re.compile(r"[0-9a-f]{7,64}")
_NAME = re.compile(r"[\w.:/+@-]{1,128}", re.ASCII)  # other systems than git have commits too
_REF = re.compile(r"refs/[^\x00-\x20\x7f~^:?*\[\\]+")
_MOST = 1 << 16  # bytes of a file that holds one line
_HOPS = 5  # as many as git follows from one symbolic ref to the next
_BRANCHES = "refs/heads/"
_MOST_OF_A_NAME = 250
_PATIENCE = 10.0  # seconds for git; in a folder that takes longer, what it would say is not known


class GitFacts(NamedTuple):
    """Where a run comes from, by the names that a stored run has for it; None is not known."""

    commit_hash: str | None = None
    branch: str | None = None
    author: str | None = None
    dirty: bool | None = None


def git_facts(
    folder: Path, environ: Mapping[str, str], *, commit: str | None = None, author: bool = False
) -> GitFacts:
    """What is known of the checkout that a folder is in; of its author only if that is wanted.

    `commit` is what a user says. Author and changes are those of the commit that is checked out,
    so they are not known of any other.
    """
    named = commit or commit_hash(folder, environ)
    checkout = _checkout(folder)
    measured = checkout
    if checkout is None or named is None or not _names(named, checkout.commit):
        measured = None
    return GitFacts(
        commit_hash=named,
        branch=_branch(environ, checkout),
        author=_author(environ, measured) if author else None,
        dirty=None if measured is None else _dirty(measured),
    )


def _names(named: str, commit: str) -> bool:
    """Whether a name is a hash, or the beginning of one."""
    return _SHORT.fullmatch(named.lower()) is not None and commit.startswith(named.lower())


def commit_hash(folder: Path, environ: Mapping[str, str]) -> str | None:
    """Name the commit of a folder; None where there is none to be found.

    RAGAUGE_COMMIT says so, or else GITHUB_SHA or CI_COMMIT_SHA, or else `.git` in the folder or
    the nearest parent that has one. A variable that is no name of a commit is passed over.
    """
    chosen = environ.get("RAGAUGE_COMMIT", "").strip()
    if _NAME.fullmatch(chosen):
        return chosen
    for variable in ("GITHUB_SHA", "CI_COMMIT_SHA"):
        commit = environ.get(variable, "").strip().lower()
        if _SHORT.fullmatch(commit):
            return commit
    checkout = _checkout(folder)
    return None if checkout is None else checkout.commit


class _Checkout(NamedTuple):
    """A folder with files of a commit: `git` is its own part of `.git`, `shared` the rest."""

    tree: Path
    git: Path
    shared: Path
    commit: str
    branch: str | None


def _checkout(folder: Path) -> _Checkout | None:
    try:
        return _find_checkout(Path(os.path.realpath(folder)))
    except (OSError, ValueError):  # a ValueError is a path that no system would take
        return None


def _find_checkout(folder: Path) -> _Checkout | None:
    for parent in (folder, *folder.parents):
        git = parent / ".git"
        if git.is_file():  # of a worktree or submodule: it says where the folder is
            pointer = _line(git)
            if pointer is None or not pointer.startswith("gitdir:"):
                return None
            git = parent / pointer.removeprefix("gitdir:").strip()
        if (git / "HEAD").is_file():
            return _resolved(parent, git)
        if (parent / ".git").is_file():
            return None
    return None


def _resolved(tree: Path, git: Path) -> _Checkout | None:
    """Follow HEAD to a commit; the first branch on the way is the one that is checked out."""
    branch = None
    # A worktree has a HEAD of its own, and shares its branches with the folder in `commondir`.
    common_folder = _line(git / "commondir")
    shared = git / common_folder if common_folder else git
    value = _line(git / "HEAD")
    for _ in range(_HOPS):
        if value is None:
            return None
        if _HASH.fullmatch(value.lower()):
            return _Checkout(tree, git, shared, value.lower(), branch)
        if not value.startswith("ref:"):
            return None
        ref = value.removeprefix("ref:").strip()
        if _REF.fullmatch(ref) is None or ".." in ref:
            return None
        if branch is None and ref.startswith(_BRANCHES):
            branch = ref.removeprefix(_BRANCHES)
        value = _line(git / ref) or _line(shared / ref) or _packed(shared / "packed-refs", ref)
    return None


def _line(path: Path) -> str | None:
    """The first line of a small file; None if there is no such file."""
    if not path.is_file():
        return None
    with path.open("rb") as file:
        lines = file.read(_MOST).splitlines()
    return os.fsdecode(lines[0]).strip() if lines else None


def _packed(path: Path, name: str) -> str | None:
    """The commit of a ref in the file that git packs refs into."""
    if not path.is_file():
        return None
    wanted = os.fsencode(name)
    with path.open("rb") as file:
        for line in file:
            commit, _, ref = line.strip().partition(b" ")
            if ref == wanted and not commit.startswith((b"#", b"^")):
                return os.fsdecode(commit)
    return None


def _branch(environ: Mapping[str, str], checkout: _Checkout | None) -> str | None:
    """The branch that RAGAUGE_BRANCH, the CI system, or HEAD names."""
    named = environ.get("RAGAUGE_BRANCH", "").strip() or _github(environ) or _gitlab(environ)
    if not named and checkout is not None:
        named = checkout.branch or ""
    return named if named.isprintable() and 0 < len(named) <= _MOST_OF_A_NAME else None


def _github(environ: Mapping[str, str]) -> str:
    """The branch of a push, or the one that a pull request brings.

    A branch of a fork stands behind its owner: anyone may call theirs `main`.
    """
    if not environ.get("GITHUB_HEAD_REF"):
        is_branch = environ.get("GITHUB_REF_TYPE") == "branch"
        return environ.get("GITHUB_REF_NAME", "") if is_branch else ""
    try:
        with open(environ.get("GITHUB_EVENT_PATH", ""), "rb") as file:
            head = json.load(file)["pull_request"]["head"]
            own = head["repo"]["full_name"] == environ.get("GITHUB_REPOSITORY")
            return str(head["ref"] if own else head["label"])
    except (OSError, ValueError, LookupError, TypeError, RecursionError):
        return environ.get("GITHUB_REF", "").removeprefix("refs/")


def _gitlab(environ: Mapping[str, str]) -> str:
    """The same of GitLab."""
    branch = environ.get("CI_MERGE_REQUEST_SOURCE_BRANCH_NAME", "")
    source = environ.get("CI_MERGE_REQUEST_SOURCE_PROJECT_PATH", "")
    if branch and source != environ.get("CI_MERGE_REQUEST_PROJECT_PATH", ""):
        return f"{source}:{branch}"
    return branch or environ.get("CI_COMMIT_BRANCH", "")


def _author(environ: Mapping[str, str], checkout: _Checkout | None) -> str | None:
    """The name that RAGAUGE_AUTHOR says, or that of the author of the commit; no address."""
    named = environ.get("RAGAUGE_AUTHOR", "").strip()
    if not named and checkout is not None:
        text = _git_answer(checkout, "cat-file", "commit", checkout.commit) or ""
        head = text.partition("\n\n")[0].splitlines()
        lines = [line for line in head if line.startswith("author ")]
        named = lines[0].removeprefix("author ").partition(" <")[0].strip() if lines else ""
    return named if named.isprintable() and 0 < len(named) <= _MOST_OF_A_NAME else None


def _dirty(checkout: _Checkout) -> bool | None:
    """Whether files of the commit were changed; files that git does not know play no part."""
    changed = _git_answer(
        checkout, "status", "--porcelain", "--untracked-files=no", "--ignore-submodules=all"
    )
    return None if changed is None else bool(changed)


def _git_answer(checkout: _Checkout, *words: str) -> str | None:
    """What git says of a checkout; None if it is not there, fails, or takes too long.

    Its settings, hooks and attributes lie in `.git`, and several of them are commands that git
    runs: `core.fsmonitor`, `filter.NAME.clean`, the address of a remote to fetch from. So git gets
    an empty folder for `.git`, which has nothing but the commit, and reads the objects and the
    index of the real one. The settings of the user and of the system are not read either.
    """
    program = shutil.which("git")
    if program is None or not os.path.isabs(program):  # never one from the current folder
        return None
    sha256 = len(checkout.commit) == 64
    with tempfile.TemporaryDirectory(prefix="ragauge-") as folder:
        empty = Path(folder)
        for name in ("refs", "objects"):
            (empty / name).mkdir()
        (empty / "HEAD").write_text(f"{checkout.commit}\n")
        (empty / "config").write_text(
            f"[core]\nrepositoryformatversion = {int(sha256)}\nbare = false\nfilemode = false\n"
            + "[extensions]\nobjectformat = sha256\n" * sha256
        )
        environ = {
            **{name: text for name, text in os.environ.items() if not name.startswith("GIT_")},
            "GIT_DIR": folder,
            "GIT_WORK_TREE": str(checkout.tree),
            "GIT_INDEX_FILE": str(checkout.git / "index"),
            "GIT_OBJECT_DIRECTORY": str(checkout.shared / "objects"),
            "GIT_CONFIG_GLOBAL": os.devnull,
            "GIT_CONFIG_NOSYSTEM": "1",
            "GIT_ATTR_NOSYSTEM": "1",
            "GIT_OPTIONAL_LOCKS": "0",
            "GIT_NO_LAZY_FETCH": "1",
            "GIT_TERMINAL_PROMPT": "0",
            "LC_ALL": "C",
        }
        try:
            done = subprocess.run(
                [program, *words],
                cwd=checkout.tree,
                env=environ,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                timeout=_PATIENCE,
                check=True,
            )
        except (OSError, ValueError, subprocess.SubprocessError):
            return None
    return done.stdout.decode("utf-8", "replace")
