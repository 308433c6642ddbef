"""How a baseline is named: a run or a file, the newest or pinned run of a folder, the best of some.

NAME              a stored run, or a file
latest:FOLDER     the newest run that a folder keeps
pinned:FOLDER     the run that it has pinned
best-of:N         for each gate the best of the last N runs of the suite in the store
best-of:N@BRANCH  of those of a branch
best-of:N:FOLDER  of those that a folder keeps
"""

from __future__ import annotations

import re
from typing import Literal

from msgspec import Struct

from ragauge.errors import RagaugeError

_IN_FOLDER = re.compile(r"(latest|pinned):(?P<folder>.+)", re.DOTALL)
_BEST = re.compile(
    r"best-of:(?P<count>[1-9][0-9]{0,3})(?:@(?P<branch>.+)|:(?P<folder>.+))?", re.DOTALL
)


class BaselineName(Struct, frozen=True, kw_only=True):
    """A name that was understood; `count` is how many runs the best is chosen from."""

    text: str
    kind: Literal["run", "latest", "pinned", "best-of"] = "run"
    folder: str | None = None
    branch: str | None = None
    count: int = 1

    @property
    def label(self) -> str:
        """The name without the folder: what a gate's title has room for."""
        if self.kind == "run":
            return re.split(r"[/\\]", self.text)[-1] or self.text
        if self.kind != "best-of":
            return self.kind
        return f"best-of:{self.count}" + (f"@{self.branch}" if self.branch else "")

    def in_folder(self, folder: str) -> str:
        """The same name with another folder."""
        return f"{self.label}:{folder}"


def parse_baseline_name(text: str) -> BaselineName:
    """Read the name of a baseline."""
    if match := _IN_FOLDER.fullmatch(text):
        kind: Literal["latest", "pinned"] = "latest" if match[1] == "latest" else "pinned"
        return BaselineName(text=text, kind=kind, folder=match["folder"])
    if text.startswith("best-of"):
        match = _BEST.fullmatch(text)
        if match is None:
            hint = "write best-of:10, best-of:10@main, or best-of:10:FOLDER"
            raise RagaugeError.of("usage", f"cannot read the baseline `{text}`", hint=hint)
        return BaselineName(
            text=text,
            kind="best-of",
            count=int(match["count"]),
            branch=match["branch"],
            folder=match["folder"],
        )
    return BaselineName(text=text)
