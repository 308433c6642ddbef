"""Random pairs of runs over the same gold set: documents in chunks, cut again, edited or renamed.

Every case has a scenario, which says what happened between the two runs, and a manner, which says
what the hits of each run tell of their chunks.
"""

from __future__ import annotations

import hashlib
import random
from dataclasses import dataclass, replace
from typing import Any

Row = dict[str, Any]

SCENARIOS = (
    "same",
    "finer",
    "coarser",
    "shifted",
    "edited",
    "edited and cut again",
    "renamed",
    "renamed and cut again",
    "deleted",
    "copied",
    "ids taken again",
    "one document cut again",
)
COPY = "copy.md"
TOLD = ("doc", "offsets", "text", "doc_hash", "chunker_version")


@dataclass(frozen=True)
class Document:
    name: str
    text: str
    cut: tuple[int, ...]  # where chunks end, in characters
    version: str
    ids: str  # how its chunks are called: a prefix


def word(rng: random.Random) -> str:
    return "".join(rng.choice("abcdefghijklmnopqrstuvwxyzäø") for _ in range(rng.randint(2, 9)))


def prose(rng: random.Random, words: int) -> str:
    return " ".join(word(rng) for _ in range(words)) + "."


def cut(rng: random.Random, text: str, size: int) -> tuple[int, ...]:
    """Chunks of about a size, which end anywhere."""
    ends: list[int] = []
    place = 0
    while place < len(text):
        place = min(len(text), place + rng.randint(max(1, size // 2), size * 3 // 2))
        ends.append(place)
    return tuple(ends)


def chunks_of(document: Document) -> list[Row]:
    """All hits that this document may give, with all that can be told of them."""
    content = hashlib.sha256(document.text.encode()).hexdigest()[:10]
    found: list[Row] = []
    start = 0
    for number, end in enumerate(document.cut):
        found.append(
            {
                "id": f"{document.ids}{number}",
                "doc": document.name,
                "offsets": [
                    len(document.text[:start].encode()), len(document.text[:end].encode()),
                ],
                "text": document.text[start:end],
                "doc_hash": content,
                "chunker_version": document.version,
            }
        )  # fmt: skip
        start = end
    return found


def again(rng: random.Random, document: Document, size: int, *, fresh: bool = True) -> Document:
    """The same text in other chunks, mostly with new ids and a new version."""
    ends = cut(rng, document.text, size)
    if not fresh:
        return replace(document, cut=ends)
    ids = document.ids if rng.random() < 0.3 else document.ids.replace("c", "n")
    return replace(document, cut=ends, version="v2", ids=ids)


def moved(document: Document, by: int) -> tuple[int, ...]:
    return tuple(end + by for end in document.cut)


def after(rng: random.Random, scenario: str, documents: list[Document]) -> list[Document]:
    """The documents of the second run."""
    first, *rest = documents
    size = 80
    if scenario in ("finer", "coarser", "shifted"):
        size = {"finer": 25, "coarser": 240, "shifted": 80}[scenario]
        return [again(rng, each, size) for each in documents]
    if scenario.startswith("edited"):
        intro = prose(rng, rng.randint(1, 8)) + " "
        edited = replace(
            first, text=intro + first.text, cut=(len(intro), *moved(first, len(intro)))
        )
        if scenario.endswith("again"):
            edited = again(rng, edited, rng.choice((30, 80, 200)))
        elif rng.random() < 0.5:  # the introduction becomes part of the first chunk: ids stay
            edited = replace(edited, cut=edited.cut[1:])
        return [edited, *rest]
    if scenario.startswith("renamed"):
        found = replace(first, name="moved-" + first.name)
        return [again(rng, found, 50) if scenario.endswith("again") else found, *rest]
    if scenario == "deleted":
        start, end = sorted(rng.sample(range(len(first.text)), 2))
        shorter = replace(first, text=first.text[:start] + first.text[end:] + ".")
        return [again(rng, shorter, rng.choice((30, 80))), *rest]
    if scenario == "ids taken again":
        return [again(rng, each, size, fresh=False) for each in documents]
    if scenario == "one document cut again":
        return [again(rng, first, 40), *rest]
    return list(documents)


def manner(rng: random.Random) -> dict[str, float]:
    """How likely a hit of a run tells each thing: always, never, or mostly."""
    return {name: rng.choice((1.0,) * 14 + (0.0,) * 3 + (0.9,)) for name in TOLD}


def hit(rng: random.Random, chunk: Row, told: dict[str, float]) -> Row:
    return {
        name: value for name, value in chunk.items() if name == "id" or rng.random() < told[name]
    }


def run(
    rng: random.Random, gold: list[Row], near: dict[str, list[Row]], all_chunks: list[Row],
    told: dict[str, float], slots: int,
) -> list[Row]:  # fmt: skip
    """Traces of a retriever that often finds something near to what is expected."""
    traces: list[Row] = []
    for item in gold:
        if rng.random() < 0.07:
            continue
        seeds: list[int | None] = [None] if slots == 1 else list(range(rng.randint(1, slots)))
        for seed in seeds:
            trace: Row = {"qid": item["qid"]}
            if seed is not None:
                trace["seed"] = seed
            if rng.random() < 0.07:
                trace["error"] = "timeout"
                if rng.random() < 0.7:
                    traces.append(trace)
                    continue
            found: list[Row] = []
            for _ in range(rng.choice((0, 1, 3, 5, 5, 8, 12))):
                close = near.get(item["qid"]) or []
                chunk = rng.choice(close if close and rng.random() < 0.35 else all_chunks)
                if rng.random() < 0.9 and any(each["id"] == chunk["id"] for each in found):
                    continue
                found.append(hit(rng, chunk, told))
            trace["topk"] = found
            traces.append(trace)
    return traces


def overlaps(one: str, other: str) -> bool:
    """Whether two texts share some thirteen characters."""
    return any(one[start : start + 13] in other for start in range(max(1, len(one) - 12)))


def questions(
    rng: random.Random, documents: list[Document], chunks: list[Row], new_chunks: list[Row]
) -> tuple[list[Row], dict[str, list[Row]], dict[str, list[Row]]]:
    """Gold rows, and for each the chunks of both runs that hold some of what it expects."""
    gold: list[Row] = []
    near_a: dict[str, list[Row]] = {}
    near_b: dict[str, list[Row]] = {}
    with_places = rng.random() < 0.3
    for number in range(rng.randint(1, 9)):
        qid = f"q{number}"
        row: Row = {"qid": qid, "question": f"What is {number}?"}
        close_a, close_b = [], []
        for _ in range(rng.choice((0, 1, 1, 1, 2, 3))):
            chunk = rng.choice(chunks if rng.random() < 0.9 else new_chunks)
            entry: Any = chunk["id"]
            if with_places and rng.random() < 0.5:
                start, end = chunk["offsets"]
                entry = {"doc": chunk["doc"]}
                if rng.random() < 0.3:
                    entry |= {"id": chunk["id"]}
                if rng.random() < 0.3:
                    entry |= {"quote": chunk["text"]}
                else:
                    start += rng.randint(0, (end - start) // 3)
                entry |= {"start": start, "end": end}
            row.setdefault("relevant", [])
            if entry not in row["relevant"]:
                row["relevant"].append(entry)
            close_a += [each for each in chunks if overlaps(chunk["text"], each["text"])]
            close_b += [each for each in new_chunks if overlaps(chunk["text"], each["text"])]
        if rng.random() < 0.08:
            row["expected_doc_ids"] = [rng.choice(documents).name]
        near_a[qid], near_b[qid] = close_a, close_b
        gold.append(row)
    return gold, near_a, near_b


def listed(seed: int) -> tuple[str, list[Row], list[Row], list[Row], tuple[list[Row], list[Row]]]:
    """A case whose hits say their ids alone; lists of chunks say all the rest, or a part of it.

    The first chunk of a document has no text, so that no list tells the text of a whole document.
    A document that was renamed has no copy: which of the two it is could be told in two ways.
    """
    rng = random.Random(f"listed {seed}")
    scenario, gold, traces_a, traces_b, chunks, new_chunks = _case(seed)
    new_chunks = [row for row in new_chunks if row["doc"] != COPY]
    there = {row["id"] for row in (*chunks, *new_chunks)}
    lists: list[list[Row]] = []
    told = {name for name in ("text", "doc_hash", "chunker_version") if rng.random() < 0.6}
    for rows in (chunks, new_chunks):
        if rng.random() < 0.15:
            told ^= {"chunker_version"}
        seen: set[str] = set()
        lists.append([])
        for row in rows:
            kept = told | {"id", "doc", "offsets"}
            if row["doc"] not in seen:
                kept -= {"text"}
            seen.add(row["doc"])
            lists[-1].append({name: value for name, value in row.items() if name in kept})
    for trace in (*traces_a, *traces_b):
        if trace.get("topk"):
            trace["topk"] = [{"id": hit["id"]} for hit in trace["topk"] if hit["id"] in there]
    return scenario, gold, traces_a, traces_b, (lists[0], lists[1])


def case(seed: int) -> tuple[str, list[Row], list[Row], list[Row]]:
    """The scenario, gold rows, and the traces of both runs."""
    return _case(seed)[:4]


def _case(seed: int) -> tuple[str, list[Row], list[Row], list[Row], list[Row], list[Row]]:
    """And all chunks of both runs."""
    rng = random.Random(f"compare {seed}")
    scenario = SCENARIOS[seed % len(SCENARIOS)]
    counted = rng.random() < 0.5  # ids of each document, or counted through all
    documents: list[Document] = []
    for number in range(rng.randint(1, 3)):
        text = prose(rng, rng.randint(20, 90))
        if number and scenario == "copied":
            own = prose(rng, 4)
            text = own + " " + documents[0].text + " " + prose(rng, rng.randint(3, 30))
        documents.append(
            Document(
                f"d{number}.md", text, cut(rng, text, 80), "v1",
                f"c{number}-" if counted else f"{'xyz'[number]}c",
            )
        )  # fmt: skip
    if scenario == "copied":
        later = [again(rng, each, 60) for each in documents]
        if rng.random() < 0.5:  # and changed, so that only the quote finds it
            later = [
                replace(each, text=each.text + " End.", cut=(*each.cut, len(each.text) + 5))
                for each in later
            ]
    else:
        later = after(rng, scenario, documents)
    if scenario.startswith("renamed") and rng.random() < 0.25:  # a copy: the hash is of two
        later.append(replace(later[0], name=COPY, ids="k"))
    chunks = [chunk for each in documents for chunk in chunks_of(each)]
    new_chunks = [chunk for each in later for chunk in chunks_of(each)]

    gold, near_a, near_b = questions(rng, documents, chunks, new_chunks)
    slots = rng.choice((1, 1, 2, 3))
    told_a = manner(rng)
    told_b = manner(rng) if rng.random() < 0.5 else told_a
    return (
        scenario,
        gold,
        run(rng, gold, near_a, chunks, told_a, slots),
        run(rng, gold, near_b, new_chunks, told_b, slots),
        chunks,
        new_chunks,
    )
