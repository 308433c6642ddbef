"""Data migrations: what a migration does to rows that SQL alone cannot, in its transaction."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from ragauge.store.packed_slices import UNREADABLE_SLICES, join_slices, split_slices

if TYPE_CHECKING:
    from ragauge.store.databases.queries import Execute


def move_slices_out(execute: Execute) -> None:
    """Move the slices of every scoring from its aggregate to the column of packed ones.

    A run has the aggregate of its last scoring; one that differs from it keeps its slices, as they
    stand nowhere else.
    """
    sql = "UPDATE eval_scorings SET aggregate_json = ?, slices = ? WHERE run_id = ? AND number = ?"
    for run_id, number, aggregate, _ in _scorings(execute):
        split = split_slices(aggregate)
        if split.slices:
            execute(sql, (*split, run_id, number))
    for run_id, aggregate, slices in _last_scorings(execute):
        split = split_slices(aggregate)
        if split.slices == slices:
            _set_aggregate(execute, run_id, split.aggregate)


def move_slices_back(execute: Execute) -> None:
    """Put the slices back into the aggregates; what cannot be read is lost with its column."""
    for run_id, aggregate, slices in _last_scorings(execute):
        if slices and not split_slices(aggregate).slices:
            _set_aggregate(execute, run_id, _joined(aggregate, slices))
    sql = "UPDATE eval_scorings SET aggregate_json = ? WHERE run_id = ? AND number = ?"
    for run_id, number, aggregate, slices in _scorings(execute):
        if slices:
            execute(sql, (_joined(aggregate, slices), run_id, number))


def _joined(aggregate: str, slices: bytes) -> str:
    try:
        return join_slices(aggregate, slices)
    except UNREADABLE_SLICES:
        return aggregate


def _set_aggregate(execute: Execute, run_id: str, aggregate: str) -> None:
    execute("UPDATE eval_runs SET aggregate_json = ? WHERE run_id = ?", (aggregate, run_id))


def _scorings(execute: Execute) -> Iterator[tuple[str, int, str, bytes]]:
    """Every scoring, one at a time: all of them at once may be larger than memory."""
    keys = execute("SELECT run_id, number FROM eval_scorings ORDER BY run_id, number", ())
    # As text: the driver of PostgreSQL would parse JSON.
    columns = "CAST(aggregate_json AS TEXT), slices"
    sql = f"SELECT {columns} FROM eval_scorings WHERE run_id = ? AND number = ?"
    for key in keys.fetchall():
        ((aggregate, slices),) = execute(sql, key).fetchall()
        yield *key, aggregate, slices


def _last_scorings(execute: Execute) -> Iterator[tuple[str, str, bytes]]:
    """Each run that has scorings, with its own aggregate and the slices of the last of them."""
    runs = execute("SELECT DISTINCT run_id FROM eval_scorings", ())
    sql = (
        "SELECT CAST(run.aggregate_json AS TEXT), scoring.slices"
        " FROM eval_runs AS run JOIN eval_scorings AS scoring ON scoring.run_id = run.run_id"
        " WHERE run.run_id = ? ORDER BY number DESC LIMIT 1"
    )
    for (run_id,) in runs.fetchall():
        ((aggregate, slices),) = execute(sql, (run_id,)).fetchall()
        yield run_id, aggregate, slices
