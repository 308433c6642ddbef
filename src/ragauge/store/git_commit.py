"""Git commit: which commit a run was made from, without running git."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path

_HASH = re.compile(r"[0-9a-f]{40}(?:[0-9a-f]{24})?")
_SHORT = re.compile(r"[0-9a-f]{7,64}")
_NAME = re.compile(r"[\w.:/+@-]{1,128}", re.ASCII)  # other systems than git have commits too
_REF = re.compile(r"refs/[^\x00-\x20\x7f~^:?*\[\\]+")
_MOST = 1 << 16  # bytes of a file that holds one line
_HOPS = 5  # as many as git follows from one symbolic ref to the next


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
    try:
        return _checked_out(Path(os.path.realpath(folder)))
    except (OSError, ValueError):  # a ValueError is a path that no system would take
        return None


def _checked_out(folder: Path) -> str | None:
    for parent in (folder, *folder.parents):
        git = parent / ".git"
        if git.is_file():  # of a worktree or submodule: it says where the folder is
            pointer = _line(git)
            if pointer is None or not pointer.startswith("gitdir:"):
                return None
            git = parent / pointer.removeprefix("gitdir:").strip()
        if (git / "HEAD").is_file():
            return _resolved(git)
        if (parent / ".git").is_file():
            return None
    return None


def _resolved(git: Path) -> str | None:
    """Follow HEAD to a commit."""
    # A worktree has a HEAD of its own, and shares its branches with the folder in `commondir`.
    common_folder = _line(git / "commondir")
    shared = git / common_folder if common_folder else git
    value = _line(git / "HEAD")
    for _ in range(_HOPS):
        if value is None:
            return None
        if _HASH.fullmatch(value.lower()):
            return value.lower()
        if not value.startswith("ref:"):
            return None
        ref = value.removeprefix("ref:").strip()
        if _REF.fullmatch(ref) is None or ".." in ref:
            return None
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
