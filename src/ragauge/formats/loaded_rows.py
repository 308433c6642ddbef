"""What became of a file: the rows that could be read, and the problems of the others."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from ragauge.errors import Problem, RagaugeError

_FEWEST_REPEATS = 3
"""Fewer problems of one kind are listed one by one."""


class LoadedRows(Struct, frozen=True):
    """The rows of a file that could be read, and what was wrong with the others.

    `duplicate_keys` are the first of those that were read although an object has a key twice;
    `closed` are names that the profile does not read, with the number of rows and the first line.
    """

    items: list[Any]
    problems: list[Problem]
    problem_count: int
    duplicate_keys: tuple[Problem, ...] = ()
    duplicate_key_count: int = 0
    closed: dict[str, tuple[int, int]] = {}

    @property
    def notes(self) -> list[str]:
        """What is to be said of the rows that were read."""
        places = [
            (problem.place.line or 0, problem.message)
            for problem in self.duplicate_keys
            if problem.place
        ]
        notes = duplicate_key_notes(self.duplicate_key_count, places)
        return [*notes, *closed_name_notes(self.closed)]

    def stop_on_problems(self) -> None:
        """Raise what was wrong, if anything was."""
        if self.problem_count:
            listed = without_repeats(self.problems)
            left = len(self.problems) - len(listed)
            raise RagaugeError(listed, total=self.problem_count - left)


def without_repeats(problems: Sequence[Problem]) -> list[Problem]:
    """Problems, of which those that stand on line after line are one: a name that is misspelt.

    Its message says how far they go. Whatever stands alone keeps its own line.
    """
    series: list[list[Problem]] = []
    for problem in problems:
        if series and _goes_on(series[-1][-1], problem):
            series[-1].append(problem)
        else:
            series.append([problem])
    listed: list[Problem] = []
    for group in series:
        first, last = group[0], group[-1].place
        if len(group) < _FEWEST_REPEATS or last is None:
            listed += group
        else:
            message = f"{first.message}; the same up to line {last.line}"
            listed.append(replace(first, message=message))
    return listed


def _goes_on(one: Problem, other: Problem) -> bool:
    same = (one.code, one.message, one.hint) == (other.code, other.message, other.hint)
    if one.code != "missing-field" or not same:
        return False
    lines = [problem.place.line if problem.place is not None else None for problem in (one, other)]
    return lines[0] is not None and lines[1] == lines[0] + 1


def duplicate_key_notes(count: int, first: Sequence[tuple[int, str]]) -> list[str]:
    """A sentence on rows with a key twice, if there are any; `first` has lines and messages."""
    if not count:
        return []
    line, message = first[0]
    rows = f"{count} row{'' if count == 1 else 's'} with a key twice in one object"
    return [f"{rows}, of which the last counts; on line {line} {message.partition(' in one')[0]}"]


def closed_name_notes(closed: Mapping[str, tuple[int, int]]) -> list[str]:
    """A sentence on each name that is another spelling of a field and is not read under a profile.

    Each has the number of rows that say something under it, and the line of the first.
    """
    return [
        f"`{name}` on line {line}{'' if count == 1 else f' and {count - 1} more'} is not read: the "
        "profile was asked for by name and reads only its source's names (--dialect native reads "
        "every spelling)"
        for name, (count, line) in sorted(closed.items())
    ]
