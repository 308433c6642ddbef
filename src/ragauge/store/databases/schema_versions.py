"""What every kind of store needs: the numbered migrations, and the words for what went wrong."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from functools import cache
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from ragauge.errors import RagaugeError
from ragauge.model.run import RunRecord, Scoring

RUN_COLUMNS = (
    "run_id", "suite", "profile", "created_at", "commit_hash", "gold_hash", "gold_key", "chunks",
    "config_snapshot_json", "aggregate_json", "status", "schema_version", "results",
)  # fmt: skip
"""The columns of a run in the order of its fields, up to `evidence` and `tags`."""

REOPENED = "status = 'incomplete', results = 0, aggregate_json = '{}', evidence = "
"""What a run that is incomplete again has; the empty evidence follows."""

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
    found = []
    for number, name in enumerate(sorted(filter(_FILE.fullmatch, texts)), 1):
        stem = name.removesuffix(".sql")
        if int(stem[:4]) != number:
            raise ValueError(f"migration {number} of {database} is missing: {name} comes next")
        down = texts[f"{stem}.down.sql"]
        found.append(Migration(number, stem[5:], statements(texts[name]), statements(down)))
    return tuple(found)


def statements(text: str) -> tuple[str, ...]:
    """Cut a file of SQL at the lines that end with a semicolon; comments have their own lines."""
    lines = [line for line in text.splitlines() if not line.lstrip().startswith("--")]
    parts = re.split(r";[ \t]*(?:\n|$)", "\n".join(lines))
    return tuple(part.strip() for part in parts if part.strip())


def newest(database: str) -> int:
    """The version that this ragauge reads and writes."""
    return len(migrations(database))


def steps(database: str, start: int, goal: int) -> list[str]:
    """The statements that lead from one version to another, up or down."""
    known = migrations(database)
    if goal >= start:
        return [each for step in known[start:goal] for each in step.up]
    return [each for step in reversed(known[goal:start]) for each in step.down]


def check_goal(database: str, goal: int) -> None:
    """Refuse a version that no migration leads to."""
    if not 0 <= goal <= newest(database):
        raise RagaugeError.of(
            "unknown-name",
            f"the tables of a store have no version {goal}",
            hint=f"known: 0 (no tables) to {newest(database)}",
        )


def run_row(run: RunRecord) -> list[object]:
    """What `RUN_COLUMNS` and `evidence` hold for a run that begins."""
    begun = replace(run, status="incomplete")
    return [getattr(begun, field) for field in RunRecord.__struct_fields__[:-1]]


def run_record(row: Sequence[Any], tags: Iterable[str]) -> RunRecord:
    """Build a run from a row that has its fields in their order, and its tags."""
    fields = zip(RunRecord.__struct_fields__, (*row, tuple(tags)), strict=True)
    return RunRecord(**dict(fields))


def scoring(row: Sequence[Any]) -> Scoring:
    """Build a scoring from a row that has its fields in their order."""
    return Scoring(**dict(zip(Scoring.__struct_fields__, row, strict=True)))


def unknown_run(name: str, run_id: str) -> RagaugeError:
    """Build the error for a run that is not there."""
    return RagaugeError.of(
        "unknown-run",
        f"{name} has no run `{run_id}`",
        hint="`ragauge runs list` shows what there is",
    )


def run_exists(name: str, run_id: str) -> RagaugeError:
    """Build the error for an id that is taken."""
    return RagaugeError.of(
        "run-exists",
        f"{name} already has a run `{run_id}`",
        hint="choose another --run-id, or delete the old run with `ragauge runs delete`",
    )


def run_held(run_id: str) -> RagaugeError:
    """Build the error for a run that another process is writing."""
    return RagaugeError.of(
        "run-held",
        f"another process is writing the run `{run_id}`",
        hint=f"wait until it ends; `ragauge run --resume {run_id}` then goes on with what is left",
    )


def nothing_stored(name: str) -> RagaugeError:
    """Build the error for a store that should be there and is not."""
    return RagaugeError.of(
        "store-unavailable",
        f"nothing has been stored in {name} yet",
        hint=f"check the URL, or store a run: `ragauge score ... --store {name}`",
    )


def newer_store(name: str, found: int, known: int) -> RagaugeError:
    """Build the error for a store that a newer ragauge wrote."""
    return RagaugeError.of(
        "newer-store",
        f"{name} has version {found}, and this ragauge knows versions up to {known}",
        hint="upgrade ragauge, or use another store; nothing was changed",
    )


def not_ours(name: str, why: str) -> RagaugeError:
    """Build the error for something that is no store, or is one no more."""
    return RagaugeError.of(
        "bad-store",
        f"{name} is not a store that can be used: {why}",
        hint="check the URL; a store that was damaged must be restored from a copy",
    )


def unavailable(name: str, words: str, hint: str) -> RagaugeError:
    """Build the error for a database that refuses, with its own words."""
    return RagaugeError.of("store-unavailable", f"{name} cannot be used: {words}", hint=hint)


def clash(name: str, words: str) -> RagaugeError:
    """Build the error for two writers that wrote the same thing."""
    hint = "another process may have stored the same at the same time; look, and try again"
    return unavailable(name, words, hint)
