"""Random golden sets and stored query results of the kb evaluation."""

from __future__ import annotations

import json
import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any

Row = dict[str, Any]

DOCS = ["d1", "d2", "d3", "d4"]
CHUNKS = {f"{doc}-{n}": doc for doc in DOCS for n in range(1, 6)}
WORDS = ["seven days", "the key", "Größe", "never", "14"]
GONE = "d9-1"
"""A chunk that no index has."""


def place_of(chunk: str) -> Row:
    """The lines of a chunk; no two chunks of a document share one."""
    doc, number = chunk.split("-")
    first = 10 * int(number)
    return {"kind": "line", "path": f"notes/{doc}.md", "start": first, "end": first + 9}


class _Maker:
    def __init__(self, rng: random.Random) -> None:
        self.rng = rng

    def chance(self, share: float) -> bool:
        return self.rng.random() < share

    def query(self, number: int) -> Row:
        """Every list may be absent, empty, or hold a name twice."""
        rng = self.rng
        row: Row = {"id": f"q{number}", "query": f"What about {number}?"}
        if self.chance(0.8):
            row["expected_doc_ids"] = rng.choices(DOCS, k=rng.choice([0, 0, 1, 1, 2, 3]))
        if self.chance(0.7):
            row["expected_chunk_ids"] = rng.choices(list(CHUNKS), k=rng.choice([0, 1, 1, 2, 4]))
        if self.chance(0.5):
            row["must_contain"] = rng.sample(WORDS, k=rng.choice([0, 1, 1, 2]))
        if self.chance(0.3):
            row["forbidden"] = rng.sample(WORDS, k=rng.choice([0, 1]))
        if self.chance(0.2):
            row["lang"] = rng.choice(["en", "ko"])
        return row

    def hits(self) -> list[Row]:
        """As many as ten and more, a chunk perhaps twice."""
        size = self.rng.choice([0, 1, 2, 4, 8, 12])
        chosen = self.rng.choices(list(CHUNKS), k=size)
        return [
            {
                "rank": rank,
                "chunk_id": chunk,
                "doc_id": CHUNKS[chunk],
                "doc_path": place_of(chunk)["path"],
                "citation": place_of(chunk),
            }
            for rank, chunk in enumerate(chosen, start=1)
        ]

    def answer(self, hits: Sequence[Row], *, by_place: bool) -> Row:
        rng = self.rng
        pool = [*(hit["chunk_id"] for hit in hits), rng.choice(list(CHUNKS))]
        named = rng.choices(pool, k=rng.choice([0, 1, 1, 2])) + [GONE] * self.chance(0.1)
        citations: list[Any] = list(named)
        if by_place:
            citations = [{"marker": "[#1]", "citation": place_of(chunk)} for chunk in named]
        said = rng.sample(WORDS, k=rng.randrange(len(WORDS)))
        return {
            "answer": f"It says: {', '.join(said)}.",
            "grounded": self.chance(0.7),
            "citations": citations,
        }

    def result(self, number: int) -> Row:
        """What is stored of a query: found, answered, searched only, or failed on the way."""
        hits = self.hits()
        row: Row = {"query_id": f"q{number}", "hits_top_k": hits, "elapsed_ms": 3, "error": None}
        row["answer"] = (
            self.answer(hits, by_place=self.chance(0.5)) if self.chance(0.7) else None
        )  # fmt: skip
        if self.chance(0.15):
            row["error"] = "llm: connection refused"
            if self.chance(0.5):
                row["hits_top_k"] = []
        return row


def kb_case(seed: int, *, complete: bool) -> tuple[list[Row], list[Row]]:
    """A golden set and a run; a run that is not complete lacks results, and has strange ones."""
    rng = random.Random(seed)
    make = _Maker(rng)
    numbers = range(rng.choice([1, 2, 5, 9, 24]))
    golden = [make.query(number) for number in numbers]
    asked = [number for number in numbers if complete or rng.random() < 0.7]
    if not complete and rng.random() < 0.3:
        asked.append(77)
    results = [make.result(number) for number in asked]
    rng.shuffle(results)
    return golden, results


def write_golden(path: Path, golden: Sequence[Row], *, nested: bool) -> Path:
    """Write a golden set in the form that the suffix names: YAML, a JSON array or JSON Lines."""
    if path.suffix == ".yaml":
        lines = ["# expected_doc_ids: [] means that the query should be refused"]
        lines += ["queries:"] if nested else []
        for row in golden:
            fields = [f"{key}: {json.dumps(row[key], ensure_ascii=False)}" for key in row]
            lines += [f"{'  ' * nested}- {fields[0]}"]
            lines += [f"{'  ' * nested}  {field}" for field in fields[1:]]
        text = "\n".join(lines) + "\n"
    elif path.suffix == ".json":
        text = json.dumps(golden, indent=1)
    else:
        text = "".join(f"{json.dumps(row, ensure_ascii=False)}\n" for row in golden)
    path.write_text(text, "utf-8")
    return path


def write_lines(path: Path, rows: Sequence[Row]) -> Path:
    path.write_text("".join(f"{json.dumps(row)}\n" for row in rows), "utf-8")
    return path
