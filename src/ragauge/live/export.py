"""A window as files: its traces and its gold set, as `ragauge score` reads them."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

from msgspec import Struct

from ragauge.errors import RagaugeError
from ragauge.files.atomic_write import atomic_file
from ragauge.live.database import LiveDatabase
from ragauge.live.trace_values import LiveGold
from ragauge.live.window_scores import StoredTrace, asked_traces, gold_rows
from ragauge.live.windows import Series, minute_at, stored_traces

TRACES, GOLD = "traces.jsonl", "gold.jsonl"


class WindowFacts(Struct, frozen=True, kw_only=True):
    """A window that has ended, as the store has it."""

    number: int
    series: Series
    begins_at: str
    ends_at: str
    state: str
    samples: int
    sample_rate: float
    ragauge_version: str
    aggregate: str


_COLUMNS = (
    "number, tenant, app, build, index_hash, question_type, begins_at, ends_at, state, samples, "
    "sample_rate, ragauge_version, CAST(aggregate_json AS TEXT)"
)


def _window(row: tuple[object, ...]) -> WindowFacts:
    number, tenant, app, build, index_hash, kind, *facts = row
    return WindowFacts(
        number=number,  # type: ignore[arg-type]
        series=Series(tenant, app, build, index_hash, kind),  # type: ignore[arg-type]
        **dict(zip(WindowFacts.__struct_fields__[2:], facts, strict=True)),  # type: ignore[arg-type]
    )


def list_windows(
    database: LiveDatabase, *, tenant: str = "", app: str | None = None, limit: int = 20
) -> list[WindowFacts]:
    """The last windows, the newest first."""
    where, names = "tenant = ?", [tenant]
    if app is not None:
        where += " AND app = ?"
        names.append(app)
    rows = database.read(
        f"SELECT {_COLUMNS} FROM eval_live_windows WHERE {where} ORDER BY number DESC LIMIT ?",
        (*names, limit),
    )
    return [_window(row) for row in rows]


def find_window(database: LiveDatabase, number: int, *, tenant: str = "") -> WindowFacts:
    """A window by its number."""
    rows = database.read(
        f"SELECT {_COLUMNS} FROM eval_live_windows WHERE number = ? AND tenant = ?",
        (number, tenant),
    )
    if not rows:
        hint = "`ragauge live windows` lists them"
        raise RagaugeError.of("no-such-window", f"there is no window {number}", hint=hint)
    return _window(rows[0])


def window_gold(database: LiveDatabase, digest: str) -> LiveGold:
    """The gold set that a window was measured with."""
    rows = database.read("SELECT body FROM live_gold WHERE digest = ?", (digest,))
    return LiveGold.unpacked(bytes(rows[0][0])) if rows else LiveGold()


class Exported(Struct, frozen=True):
    """What was written: how many traces and gold items."""

    traces: int
    items: int


def export_window(
    database: LiveDatabase, window: WindowFacts, gold: LiveGold, folder: str | os.PathLike[str]
) -> Exported:
    """Write the traces and the gold set of a window into a folder.

    A window whose traces are not all there any more is refused: other numbers would come of it.
    """
    path = Path(folder)
    path.mkdir(parents=True, exist_ok=True)
    qids: list[str] = []
    with ExitStack() as stack:
        file = stack.enter_context(atomic_file(path / TRACES))
        for asked in asked_traces(_bodies(database, window), gold):
            qids.append(asked.qid)
            file.write(asked.line + b"\n")
        if len(qids) != window.samples:
            message = f"{len(qids)} of the {window.samples} traces of the window are still stored"
            hint = "bodies are kept for `retention.bodies` days, and deleted on demand"
            raise RagaugeError.of("window-gone", message, hint=hint)
    with atomic_file(path / GOLD) as file:
        items = 0
        for row in gold_rows(qids, gold):
            file.write(row + b"\n")
            items += 1
    return Exported(len(qids), items)


def _bodies(database: LiveDatabase, window: WindowFacts) -> Iterator[StoredTrace]:
    begins, end = minute_at(window.begins_at), minute_at(window.ends_at)
    return stored_traces(database, window.series, begins, end, column="body")
