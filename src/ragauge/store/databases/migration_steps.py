"""Schema versions: the numbered migrations of a kind of database, up and down."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from functools import cache
from typing import TYPE_CHECKING

from msgspec import Struct

from ragauge.errors import RagaugeError
from ragauge.store.databases.data_migrations import move_slices_back, move_slices_out

if TYPE_CHECKING:
    from ragauge.store.databases.queries import Execute

    Step = str | Callable[[Execute], None]
    """One statement, or what moves rows."""

_FILE = re.compile(r"(\d{4})_(\w+)\.sql")
_ROWS = {4: (move_slices_out, move_slices_back)}
"""By migration: what moves rows behind the statements that go up, and before those that go back."""


class Migration(Struct, frozen=True):
    """One step from a version to the next: the steps that go up, and those that go back."""

    number: int
    name: str
    up: tuple[Step, ...]
    down: tuple[Step, ...]


@cache
def migrations(database: str) -> tuple[Migration, ...]:
    """The migrations of a kind of database, from its folder of SQL files, numbered from 1."""
    from importlib.resources import files

    folder = files("ragauge") / "store" / "databases" / "migrations" / database
    texts = {entry.name: entry.read_text("utf-8") for entry in folder.iterdir()}
    numbered = []
    for number, name in enumerate(sorted(filter(_FILE.fullmatch, texts)), 1):
        stem = name.removesuffix(".sql")
        if int(stem[:4]) != number:
            raise ValueError(f"migration {number} of {database} is missing: {name} comes next")
        up: list[Step] = [*statements(texts[name])]
        down: list[Step] = [*statements(texts[f"{stem}.down.sql"])]
        if number in _ROWS:
            move_up, move_down = _ROWS[number]
            up.append(move_up)
            down.insert(0, move_down)
        numbered.append(Migration(number, stem[5:], tuple(up), tuple(down)))
    return tuple(numbered)


def statements(text: str) -> tuple[str, ...]:
    """Cut a file of SQL at the lines that end with a semicolon; comments have their own lines."""
    lines = [line for line in text.splitlines() if not line.lstrip().startswith("--")]
    parts = re.split(r";[ \t]*(?:\n|$)", "\n".join(lines))
    return tuple(part.strip() for part in parts if part.strip())


def newest(database: str) -> int:
    """The version that this ragauge reads and writes."""
    return len(migrations(database))


def steps(database: str, start: int, goal: int) -> list[Step]:
    """What migrates from one version to another, up or down."""
    every = migrations(database)
    if goal >= start:
        return [step for migration in every[start:goal] for step in migration.up]
    return [step for migration in reversed(every[goal:start]) for step in migration.down]


def take_steps(execute: Execute, steps: Iterable[Step]) -> None:
    """Take steps in the transaction that a caller has begun."""
    for step in steps:
        if isinstance(step, str):
            execute(step, ())
        else:
            step(execute)


def check_goal(database: str, goal: int) -> None:
    """Refuse a version that no migration leads to."""
    if not 0 <= goal <= newest(database):
        message = f"the tables of a store have no version {goal}"
        hint = f"known: 0 (no tables) to {newest(database)}"
        raise RagaugeError.of("unknown-name", message, hint=hint)
