"""What became of a file: the rows that could be read, and the problems of the others."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from msgspec import Struct

from ragauge.errors import Problem, RagaugeError


class LoadedRows(Struct, frozen=True):
    """The rows of a file that could be read, and what was wrong with the others.

    `duplicate_keys` are the first of those that were read although an object has a key twice.
    """

    items: list[Any]
    problems: list[Problem]
    problem_count: int
    duplicate_keys: tuple[Problem, ...] = ()
    duplicate_key_count: int = 0

    @property
    def notes(self) -> list[str]:
        """What is to be said of the rows that were read."""
        places = [
            (problem.place.line or 0, problem.message)
            for problem in self.duplicate_keys
            if problem.place
        ]
        return duplicate_key_notes(self.duplicate_key_count, places)

    def stop_on_problems(self) -> None:
        """Raise what was wrong, if anything was."""
        if self.problem_count:
            raise RagaugeError(self.problems, total=self.problem_count)


def duplicate_key_notes(count: int, first: Sequence[tuple[int, str]]) -> list[str]:
    """A sentence on rows with a key twice, if there are any; `first` has lines and messages."""
    if not count:
        return []
    line, message = first[0]
    rows = f"{count} row{'' if count == 1 else 's'} with a key twice in one object"
    return [f"{rows}, of which the last counts; on line {line} {message.partition(' in one')[0]}"]
