"""What became of a file: the rows that could be read, and the problems of the others."""

from __future__ import annotations

from typing import Any

from msgspec import Struct

from ragauge.errors import Problem, RagaugeError


class LoadedRows(Struct, frozen=True):
    """The rows of a file that could be read, and what was wrong with the others."""

    items: list[Any]
    problems: list[Problem]
    problem_count: int

    def stop_on_problems(self) -> None:
        """Raise what was wrong, if anything was."""
        if self.problem_count:
            raise RagaugeError(self.problems, total=self.problem_count)
