"""Owns the data of the store benchmark: traces whose hits say where they lie, and pairs of runs.

Run as `python benchmarks/store_data.py --results 10000 --questions 1000 --out DIR`. The plain
traces are those of `generate.py`.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from random import Random

import generate

VERSION = 1  # raise it whenever the rows change, so that stored files are made again

HITS = generate.HITS
TOGETHER = 2  # neighbouring chunks that are found of each document beside the evidence
QUESTIONS_PER_DOCUMENT = 20
FEWEST_DOCUMENTS = 40
DOCUMENT_BYTES = 24_576  # a multiple of both sizes of chunks
STRIDE = 7  # between the documents of one result
RETRIEVED = 0.8  # results that hold the evidence, or some of it
FOUND = 0.8  # of those, the share of the chunks that the evidence was cut into
SCORES = 200  # lists of falling scores to choose from


@dataclass(frozen=True)
class Chunker:
    """Cuts every document into chunks of one size."""

    name: str
    size: int

    @property
    def chunks(self) -> int:
        """How many chunks a document has."""
        return DOCUMENT_BYTES // self.size

    def covering(self, start: int, end: int) -> range:
        """The chunks of a document that hold a part of a place in it."""
        return range(start // self.size, (end - 1) // self.size + 1)


OLD, NEW = Chunker("fixed-512", 512), Chunker("fixed-384", 384)


@dataclass(frozen=True)
class Pair:
    """A gold set and two trace files of it."""

    gold: Path
    a: Path
    b: Path


@dataclass(frozen=True, slots=True)
class Question:
    """A question, and the place of its evidence: a chunk of the old chunker."""

    qid: str
    asked: str
    doc: int
    number: int


def doc_name(doc: int) -> str:
    return f"docs/page-{doc:06d}.md"


def chunk_id(chunker: Chunker, doc: int, number: int) -> str:
    return f"{chunker.name[-3:]}-{doc:06d}-{number:03d}"


def hit_heads(chunker: Chunker, docs: int) -> list[list[str]]:
    """Format the hits of every chunk, up to the score."""
    heads = []
    for doc in range(docs):
        name = doc_name(doc)
        tail = f'"chunker_version":"{chunker.name}","doc_hash":"'
        tail += sha256(name.encode()).hexdigest()[:16] + '","score":'
        heads.append(
            [
                f'{{"id":"{chunk_id(chunker, doc, number)}","doc":"{name}",'
                f'"offsets":[{number * chunker.size},{(number + 1) * chunker.size}],{tail}'
                for number in range(chunker.chunks)
            ]
        )
    return heads


def build_questions(count: int, random: Random) -> list[Question]:
    """Invent the questions."""
    docs = documents(count)
    subjects, verbs = generate.SUBJECTS.split(","), generate.VERBS.split(",")
    questions = []
    for place in range(count):
        doc, number = random.randrange(docs), random.randrange(OLD.chunks)
        asked = f"Which {random.choice(subjects)} {place} {random.choice(verbs)} it?"
        questions.append(Question(f"Q{place:06d}", asked, doc, number))
    return questions


def documents(questions: int) -> int:
    """How many documents there are for so many questions."""
    return max(FEWEST_DOCUMENTS, questions // QUESTIONS_PER_DOCUMENT)


def gold_lines(questions: Sequence[Question], *, by_ids: bool) -> Iterator[str]:
    """The gold set, its evidence as ids of the old chunker or as places."""
    for each in questions:
        start = each.number * OLD.size
        place = {"doc": doc_name(each.doc), "start": start, "end": start + OLD.size}
        evidence = chunk_id(OLD, each.doc, each.number) if by_ids else place
        row = {"qid": each.qid, "question": each.asked, "answerable": True, "relevant": [evidence]}
        yield json.dumps(row) + "\n"


def placed_lines(
    questions: Sequence[Question], results: int, chunker: Chunker, random: Random
) -> Iterator[str]:
    """The traces, one seed of all questions after the other; no chunk is found twice in one."""
    chance = random.random
    docs = documents(len(questions))
    heads = hit_heads(chunker, docs)
    falling = [
        [f"{score:.4f}}}" for score in sorted((chance() for _ in range(HITS)), reverse=True)]
        for _ in range(SCORES)
    ]
    for count in range(results):
        seed, place = divmod(count, len(questions))
        asked = questions[place]
        first, hits = int(chance() * docs), []
        for step in range(HITS // TOGETHER):
            doc = (first + step * STRIDE) % docs
            if doc == asked.doc:
                doc = (first + HITS * STRIDE // TOGETHER) % docs
            number = int(chance() * (chunker.chunks - TOGETHER))
            hits += heads[doc][number : number + TOGETHER]
        if chance() < RETRIEVED:
            start = asked.number * OLD.size
            for number in chunker.covering(start, start + OLD.size):
                if chance() < FOUND:
                    # Squared: near the top.
                    hits[int(chance() * chance() * HITS)] = heads[asked.doc][number]
        scores = falling[int(chance() * SCORES)]
        found = ",".join([hit + score for hit, score in zip(hits, scores, strict=True)])
        yield (
            f'{{"qid":"{asked.qid}","seed":{seed},"question":"{asked.asked}",'
            f'"hits":[{found}],"elapsed_ms":{20 + int(chance() * 400)}}}\n'
        )


def write(path: Path, lines: Iterable[str]) -> None:
    with path.open("w", encoding="utf-8", newline="\n") as file:
        file.writelines(lines)


def unless_there(folder: Path, told: dict[str, int | str], make: Callable[[], None]) -> None:
    """Fill a folder, unless it was filled by the same parameters already."""
    folder.mkdir(parents=True, exist_ok=True)
    stamp = folder / "stamp.json"
    wanted = json.dumps(told | {"version": VERSION, "of_plain": generate.VERSION})
    if not stamp.exists() or stamp.read_text(encoding="utf-8") != wanted:
        stamp.unlink(missing_ok=True)  # written last: an interrupted run leaves no stamp
        make()
        stamp.write_text(wanted, encoding="utf-8")


def plain_results(results: int, questions: int, folder: Path) -> generate.Files:
    """A gold set and traces of ids, claims and citations."""
    return generate.generate(generate.Parameters(results, questions), folder)


def placed_results(results: int, questions: int, folder: Path) -> generate.Files:
    """A gold set of places, and traces whose hits lie somewhere."""
    gold, trace = folder / "gold.jsonl", folder / "trace.jsonl"

    def make() -> None:
        random = Random(1)
        asked = build_questions(questions, random)
        write(gold, gold_lines(asked, by_ids=False))
        write(trace, placed_lines(asked, results, OLD, random))

    unless_there(folder, {"placed": results, "questions": questions}, make)
    return generate.Files(gold, trace, trace.stat().st_size)


def plain_pair(questions: int, folder: Path) -> Pair:
    """Two runs of the same questions over the same chunks, which are ids only."""
    pair = Pair(folder / "gold.jsonl", folder / "a.jsonl", folder / "b.jsonl")

    def make() -> None:
        random = Random(1)
        parameters = generate.Parameters(questions, questions)
        ids = [f'"p{number // 10}#{number % 10}"' for number in range(100_000)]
        asked = generate.build_questions(parameters, random, ids)
        write(pair.gold, [each.gold_line for each in asked])
        for path in (pair.a, pair.b):
            write(path, generate.trace_blocks(parameters, asked, random, ids))

    unless_there(folder, {"pair": "plain", "questions": questions}, make)
    return pair


def placed_pairs(questions: int, folder: Path) -> tuple[Pair, Pair]:
    """Two runs over two chunkings, with gold as places, and with gold as ids of the first."""
    a, b = folder / "a.jsonl", folder / "b.jsonl"
    pairs = Pair(folder / "places.jsonl", a, b), Pair(folder / "ids.jsonl", a, b)

    def make() -> None:
        random = Random(1)
        asked = build_questions(questions, random)
        for pair, by_ids in zip(pairs, (False, True), strict=True):
            write(pair.gold, gold_lines(asked, by_ids=by_ids))
        for path, chunker in ((a, OLD), (b, NEW)):
            write(path, placed_lines(asked, questions, chunker, random))

    unless_there(folder, {"pair": "placed", "questions": questions}, make)
    return pairs


def main() -> int:
    """Generate from the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--results", type=int, default=10_000)
    parser.add_argument("--questions", type=int, default=1_000)
    parser.add_argument("--out", type=Path, required=True)
    options = parser.parse_args()
    files = placed_results(options.results, options.questions, options.out / "placed")
    placed_pairs(options.questions, options.out / "pair")
    print(f"{files.trace.name}: {files.trace_bytes:,} bytes", file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main())
