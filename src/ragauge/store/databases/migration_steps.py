"""Schema versions: the numbered SQL migrations of a kind of database, up and down."""

from __future__ import annotations

import re
from functools import cache

from msgspec import Struct

from ragauge.errors import RagaugeError

_FILE = re.compile(r"(\d{4})_(\w+)\.sql")


class Migration(Struct, frozen=True):
    """One step from a version to the next: the statements that go up, and those that go back."""

    number: int
    name: str
    up: tuple[str, ...]
    down: tuple[str, ...]


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
        down = texts[f"{stem}.down.sql"]
        numbered.append(Migration(number, stem[5:], statements(texts[name]), statements(down)))
    return tuple(numbered)


def statements(text: str) -> tuple[str, ...]:
    """Cut a file of SQL at the lines that end with a semicolon; comments have their own lines."""
    lines = [line for line in text.splitlines() if not line.lstrip().startswith("--")]
    parts = re.split(r";[ \t]*(?:\n|$)", "\n".join(lines))
    return tuple(part.strip() for part in parts if part.strip())


def newest(database: str) -> int:
    """The version that this ragauge reads and writes."""
    return len(migrations(database))


def steps(database: str, start: int, goal: int) -> list[str]:
    """The statements that migrate from one version to another, up or down."""
    every = migrations(database)
    if goal >= start:
        return [statement for step in every[start:goal] for statement in step.up]
    return [statement for step in reversed(every[goal:start]) for statement in step.down]


def check_goal(database: str, goal: int) -> None:
    """Refuse a version that no migration leads to."""
    if not 0 <= goal <= newest(database):
        message = f"the tables of a store have no version {goal}"
        hint = f"known: 0 (no tables) to {newest(database)}"
        raise RagaugeError.of("unknown-name", message, hint=hint)
