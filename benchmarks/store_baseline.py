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
from itertools import product
from typing import Any

Row = dict[str, Any]
Place = tuple[str, int, int]  # document, start, end
BATCH = 10_000
K = 10  # within which something counts as found


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


def rank_of_id(hits: list[Any], expected: str) -> int:
    """The rank of an id; 0 if it is not there."""
    for rank, hit in enumerate(hits, 1):
        if (hit if isinstance(hit, str) else hit["id"]) == expected:
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


def rank_of(hits: list[Any], expected: Any) -> int:
    """The rank of what is expected, an id or a place, within the cut-off; else 0."""
    rank = (rank_of_id if isinstance(expected, str) else rank_of_place)(hits, expected)
    return rank if rank <= K else 0


def windows(place: Place) -> list[Place]:
    """Where in a chunk evidence may stand: 40 bytes, every 20."""
    doc, start, end = place
    if end - start <= 40:
        return [place]
    return [*((doc, x, x + 40) for x in range(start, end - 40, 20)), (doc, end - 40, end)]


def expected_of(row: Row) -> list[Any]:
    """What a gold row expects: ids, or places."""
    listed = row["relevant"] if "relevant" in row else row["gold_citations"]
    return [e if isinstance(e, str) else (e["doc"], e["start"], e["end"]) for e in listed]


def kind_of(ranks: tuple[tuple[int, int], ...]) -> str:
    """What became of a question, by the ranks of its pieces in both runs."""
    found = sum(a > 0 for a, _ in ranks), sum(b > 0 for _, b in ranks)
    if found[1] < found[0]:
        return "regression"
    if any(a and not b for a, b in ranks):
        return "mixed"
    change = sum((1 / b if b else 0) - (1 / a if a else 0) for a, b in ranks)
    if abs(change) < 1e-9:
        return "draw"
    return "win" if change > 0 else "loss"


def pairs_of(piece: Any, a: list[Any], b: list[Any], places: dict[str, Place]) -> set[Any]:
    """The ranks of a piece in both runs; of a chunk that run b has otherwise, at every place."""
    if not places or not isinstance(piece, str):
        return {(rank_of(a, piece), rank_of(b, piece))}
    if piece not in places:
        return {(0, 0), (0, 1)}  # nobody knows where it stands
    return {(rank_of(a, place), rank_of(b, place)) for place in windows(places[piece])}


def compare(gold_path: str, a_path: str, b_path: str) -> dict[str, int]:
    """Count what became of the questions; chunks of the first run are looked for as places."""
    expected = {row["qid"]: expected_of(row) for row in rows(gold_path)}
    ids = {each for listed in expected.values() for each in listed if isinstance(each, str)}
    places: dict[str, Place] = {}
    hits: dict[str, list[Any]] = {}
    for row in rows(a_path):
        hits[row["qid"]] = hits_of(row)
        for hit in hits[row["qid"]]:
            if isinstance(hit, dict) and hit["id"] in ids:
                places[hit["id"]] = (hit["doc"], *hit["offsets"])
    kinds = dict.fromkeys(("regression", "mixed", "undecided", "loss", "win", "draw"), 0)
    for row in rows(b_path):
        if listed := expected[row["qid"]]:
            both = hits[row["qid"]], hits_of(row)
            pieces = [pairs_of(piece, *both, places) for piece in listed]
            possible = {kind_of(ranks) for ranks in product(*pieces)}
            kinds[possible.pop() if len(possible) == 1 else "undecided"] += 1
    return kinds


if __name__ == "__main__":
    what, *paths = sys.argv[1:]
    print(json.dumps(store(*paths) if what == "store" else compare(*paths)))
