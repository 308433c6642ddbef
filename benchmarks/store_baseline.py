"""Owns the yardsticks of the store benchmark: a plain archive of traces, and a plain comparison.

Written the way one would write them for a single afternoon's use, neither slowed down nor tuned.
Run as `python benchmarks/store_baseline.py store TRACE DATABASE` or as
`python benchmarks/store_baseline.py compare GOLD TRACE_A TRACE_B`.
"""

from __future__ import annotations

import json
import sqlite3
import sys
import zlib
from collections.abc import Iterator, Sequence
from contextlib import closing
from typing import Any

Row = dict[str, Any]
Place = tuple[str, int, int]  # document, start, end
BATCH = 10_000


def store(trace_path: str, database: str) -> dict[str, int]:
    """Put every line of a trace file into a table of a new database."""
    count = 0
    with closing(sqlite3.connect(database)) as connection:
        connection.execute(
            "CREATE TABLE results (run_id TEXT, ordinal INTEGER, qid TEXT, line BLOB, "
            "PRIMARY KEY (run_id, ordinal))"
        )
        batch: list[tuple[str, int, str, bytes]] = []
        with open(trace_path, "rb") as file:
            for line in file:
                batch.append(("run", count, json.loads(line)["qid"], zlib.compress(line)))
                count += 1
                if len(batch) == BATCH:
                    insert(connection, batch)
                    batch = []
        insert(connection, batch)
    return {"results": count}


def insert(connection: sqlite3.Connection, batch: Sequence[tuple[str, int, str, bytes]]) -> None:
    """Write one batch in a transaction."""
    with connection:
        connection.executemany("INSERT INTO results VALUES (?, ?, ?, ?)", batch)


def rows(path: str) -> Iterator[Row]:
    """Read a JSON Lines file."""
    with open(path, encoding="utf-8") as file:
        for line in file:
            yield json.loads(line)


def hits_of(row: Row) -> list[Any]:
    """The hits: ids, or objects with an id and a place."""
    found: list[Any] = row["hits"] if "hits" in row else row["retrieved_ids"]
    return found


def rank_of_id(hits: list[Any], expected: set[str]) -> int:
    """The rank of the first expected id; 0 if there is none."""
    for rank, hit in enumerate(hits, 1):
        if (hit if isinstance(hit, str) else hit["id"]) in expected:
            return rank
    return 0


def rank_of_place(hits: list[Any], place: Place) -> int:
    """The rank at which the hits cover half of a place; 0 if they do not. No two hits overlap."""
    doc, start, end = place
    covered = 0
    for rank, hit in enumerate(hits, 1):
        if hit["doc"] == doc:
            covered += max(0, min(end, hit["offsets"][1]) - max(start, hit["offsets"][0]))
            if 2 * covered >= end - start:
                return rank
    return 0


def rank_of(hits: list[Any], expected: list[Any]) -> int:
    """The best rank of what is expected, ids or places."""
    if isinstance(expected[0], str):
        return rank_of_id(hits, set(expected))
    return min((rank for rank in (rank_of_place(hits, e) for e in expected) if rank), default=0)


def expected_of(row: Row) -> list[Any]:
    """What a gold row expects: ids, or places."""
    listed = row["relevant"] if "relevant" in row else row["gold_citations"]
    return [e if isinstance(e, str) else (e["doc"], e["start"], e["end"]) for e in listed]


def kind_of(first: int, second: int) -> str:
    """What became of a question."""
    if first and not second:
        return "regression"
    if first == second:
        return "draw"
    return "win" if not first or second < first else "loss"


def compare(gold_path: str, a_path: str, b_path: str) -> dict[str, int]:
    """Count what became of the questions; ids of the first run are looked for as its places."""
    expected = {row["qid"]: expected_of(row) for row in rows(gold_path)}
    ids = {each for listed in expected.values() for each in listed if isinstance(each, str)}
    places: dict[str, Place] = {}
    ranks: dict[str, int] = {}
    for row in rows(a_path):
        hits = hits_of(row)
        for hit in hits:
            if isinstance(hit, dict) and hit["id"] in ids:
                places[hit["id"]] = (hit["doc"], *hit["offsets"])
        listed = expected[row["qid"]]
        ranks[row["qid"]] = rank_of(hits, listed) if listed else 0
    kinds = dict.fromkeys(("regression", "loss", "win", "draw"), 0)
    for row in rows(b_path):
        listed = expected[row["qid"]]
        if places:
            listed = [places[each] for each in listed if each in places]
        if listed:
            kinds[kind_of(ranks[row["qid"]], rank_of(hits_of(row), listed))] += 1
    return kinds


if __name__ == "__main__":
    what, *paths = sys.argv[1:]
    print(json.dumps(store(*paths) if what == "store" else compare(*paths)))
