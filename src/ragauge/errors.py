"""Everything that can go wrong for a user: a problem, its place, and the one exception class."""

from __future__ import annotations

from collections.abc import Iterable

from msgspec import Struct

from ragauge.codes import CODES, ExitCode
from ragauge.text import plain

MAX_REPORTED = 20
"""Problems that are printed: a screen of them; more are mostly the same mistake again."""


class Place(Struct, frozen=True):
    """Where in the input something is: file, line, and the item on it."""

    file: str
    line: int | None = None
    qid: str | None = None
    dialect: str | None = None

    def __str__(self) -> str:
        where = self.file if self.line is None else f"{self.file}:{self.line}"
        named = {"qid": self.qid, "dialect": self.dialect}
        about = [f"{name} {value}" for name, value in named.items() if value is not None]
        return f"{where}  ({', '.join(about)})" if about else where


class Problem(Struct, frozen=True):
    """One thing a user can fix: its code, what is wrong, where, and how to fix it."""

    code: str
    message: str
    hint: str
    place: Place | None = None

    def __str__(self) -> str:
        lines = [f"error[{self.code}]: {self.message}"]
        if self.place is not None:
            lines.append(f"  --> {self.place}")
        lines.append(f"  hint: {self.hint}")
        # A line end in an id or a file name must not begin a line of its own.
        return "\n".join(map(plain, lines))


class RagaugeError(Exception):
    """The one exception for what a user can fix; it carries up to 20 problems at once."""

    def __init__(self, problems: Iterable[Problem], *, total: int | None = None) -> None:
        self.problems = tuple(problems)
        self.total = len(self.problems) if total is None else total
        super().__init__(str(self))

    @classmethod
    def of(cls, code: str, message: str, *, hint: str, place: Place | None = None) -> RagaugeError:
        """Build the common case: one problem."""
        return cls([Problem(code, message, hint, place)])

    @property
    def code(self) -> str:
        """The code of the first problem."""
        return self.problems[0].code

    @property
    def exit_code(self) -> ExitCode:
        """The exit code that the first problem's code stands for."""
        return CODES[self.code].exit

    def __str__(self) -> str:
        reported = self.problems[:MAX_REPORTED]
        text = "\n".join(str(problem) for problem in reported)
        more = self.total - len(reported)
        return f"{text}\n... and {more} more problems" if more > 0 else text
