"""Where a file stands, seen from the folder that a CI system shows files from."""

from __future__ import annotations

import os
from functools import lru_cache
from pathlib import PurePath
from typing import NamedTuple

_ROOTS = ("GITHUB_WORKSPACE", "CI_PROJECT_DIR")
"""Where GitHub and GitLab say which folder holds the repository."""
_STDIN = ("", "-", "<stdin>")
"""What a place is called that is no file."""


class FileLocation(NamedTuple):
    """A file as CI systems name it, and the line in it where one is known."""

    file: str
    line: int | None


def location_of(place: str | None) -> FileLocation | None:
    """The file and line of a place such as `eval/gold.jsonl:3`; None where it is no file."""
    if place is None:
        return None
    name, colon, number = place.rpartition(":")
    is_line = bool(colon) and number.isascii() and number.isdecimal() and len(number) < 10
    file = name if is_line else place
    if file in _STDIN:
        return None
    return FileLocation(seen_from_root(file), int(number) if is_line and int(number) > 0 else None)


def seen_from_root(name: str) -> str:
    """A path relative to the root of the repository where it is below it, with `/`; else as it is.

    The root is the folder that GitHub or GitLab names, wherever this process works, for what is
    below that; for the rest it is the working directory.
    """
    return _seen(name, os.getcwd(), tuple(os.environ.get(variable, "") for variable in _ROOTS))


@lru_cache(maxsize=64)  # thousands of questions come from one file
def _seen(name: str, here: str, roots: tuple[str, ...]) -> str:
    posix_name = PurePath(name).as_posix()
    folder, base = os.path.split(os.path.join(here, name))
    try:
        whole = os.path.join(os.path.realpath(folder), base)  # a linked file keeps its own name
        root = _root(whole, os.path.realpath(here), roots)
        below = PurePath(posix_name if root is None else os.path.relpath(whole, root))
    except ValueError:  # another drive, or no name that a file could have
        return posix_name
    return posix_name if below.parts[:1] == (os.pardir,) else below.as_posix()


def _root(file: str, here: str, roots: tuple[str, ...]) -> str | None:
    """The folder that a file is seen from; None for one that is better left as it is.

    A CI system would look for a relative name in the repository, so a file outside of it keeps
    its name, unless this process works somewhere that has nothing to do with the repository.
    """
    repositories = [os.path.realpath(root) for root in roots if root]
    for root in repositories:
        if PurePath(file).is_relative_to(root):
            return root
    related = any(os.path.commonpath([here, root]) in (here, root) for root in repositories)
    return None if related else here
