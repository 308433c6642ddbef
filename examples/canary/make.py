"""Writes gold.jsonl, live.jsonl, shadow.jsonl and shadow-fixed.jsonl beside handbook.md.

The ids and byte offsets are real: they are where the blocks lie in handbook.md. What the two
indexes retrieve is made up by the rules below, and no model was asked. No randomness, no clock:
the same script writes the same bytes.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

HERE = Path(__file__).parent
DOC = "handbook.md"
TYPES = {"p": "prose", "c": "code", "t": "table", "f": "figure"}
SEEDS = (1, 2)
TOP = 5
Slots = Mapping[str, tuple[int, ...]]


class Block(NamedTuple):
    """A block of the handbook: its id, and its bytes from `start` up to `end`."""

    id: str
    start: int
    end: int
    text: str

    @property
    def type(self) -> str:
        """The content type that the id speaks of."""
        return TYPES[self.id.split(".Bk")[0][-1]]

    @property
    def section(self) -> str:
        """The id without type and number."""
        return self.id.rsplit(".", 2)[0]


class Question(NamedTuple):
    """A question: its wordings, its evidence as a section and types, and the ΔS of the best hit."""

    qid: str
    paraphrases: tuple[str, str, str]
    section: str
    evidence: tuple[str, ...]
    near: float


QUESTIONS = (
    Question(
        "TW-01",
        ("What does the installer ask for?", "Which questions come up during setup?",
         "What must I enter to install Tidewater?"),
        "S.1.1", ("pa", "c"), 0.27,
    ),
    Question(
        "TW-02",
        ("May the service account change files?", "What rights has the account?",
         "Can the keeper account write?"),
        "S.1.1", ("pb",), 0.30,
    ),
    Question(
        "TW-03",
        ("How much does a bucket cost?", "What is the monthly price of a bucket?",
         "Bucket or disk: what do they cost?"),
        "S.1.2", ("t", "p"), 0.34,
    ),
    Question(
        "TW-04",
        ("When does the nightly run begin?", "At what time are copies made?",
         "What is the hour of the nightly run?"),
        "S.2.1", ("pa",), 0.24,
    ),
    Question(
        "TW-05",
        ("How do I try a run without copying?", "Is there a dry run?",
         "Which command only shows what would be copied?"),
        "S.2.1", ("c", "pa"), 0.36,
    ),
    Question(
        "TW-06",
        ("How many weekly copies are kept?", "What is the retention of weekly copies?",
         "After how many days is a weekly copy deleted?"),
        "S.2.2", ("t", "p"), 0.31,
    ),
    Question(
        "TW-07",
        ("How do I get one file back?", "Restore a single file: how?",
         "Which command restores a file of a given day?"),
        "S.3.1", ("c", "p"), 0.29,
    ),
    Question(
        "TW-08",
        ("What do I need for a full restore?", "Which key opens the copies?",
         "Can copies be read without the recovery key?"),
        "S.3.2", ("pa",), 0.33,
    ),
    Question(
        "TW-09",
        ("In which order does a full restore go?", "What comes first in a full restore?",
         "Show the steps of a full restore."),
        "S.3.2", ("f",), 0.62,
    ),
    Question(
        "TW-10",
        ("What does TW-21 mean?", "A checksum does not match: what now?",
         "Which code stands for a wrong checksum?"),
        "S.4.1", ("t", "p"), 0.38,
    ),
)  # fmt: skip


class Run(NamedTuple):
    """What is special about an index; slots are numbered from 0 to 5.

    lost       slots in which the second piece of evidence of a question is not retrieved
    misplaced  slots whose citation has offsets that are far from the evidence
    wavering   slots whose log says that λ is recursive
    closer     how much smaller every ΔS is than in the table of questions
    """

    name: str
    index_hash: str
    day: str
    lost: Slots
    misplaced: Slots = MappingProxyType({})
    wavering: Slots = MappingProxyType({})
    closer: float = 0.0
    damaged: bool = False


ALL = (0, 1, 2, 3, 4, 5)
RUNS = (
    Run("live", "faiss:v3:hnsw:cos", "2026-03-02", lost={"TW-10": (1,)},
        misplaced={"TW-08": (5,)}, damaged=True),
    Run("shadow", "faiss:v4:hnsw:cos", "2026-03-03",
        lost={"TW-03": ALL, "TW-05": (2, 5), "TW-06": (0, 1, 2), "TW-10": (1,)},
        misplaced={"TW-08": (5,)}, wavering={"TW-05": (5,)}, closer=0.02),
    Run("shadow-fixed", "faiss:v5:hnsw:cos", "2026-03-04",
        lost={"TW-05": (2,)}, closer=0.02),
)  # fmt: skip


def blocks_of(text: str) -> list[Block]:
    """Number the headings, and the blocks behind them; neighbouring paragraphs share a number."""
    blocks: list[Block] = []
    path: list[int] = []
    start = 0
    paragraphs: list[list[tuple[str, int, int, str]]] = []
    for part in re.split(r"(\n\n+)", text):
        end = start + len(part.rstrip("\n").encode())
        if part.startswith("#"):
            level = len(part) - len(part.lstrip("#")) - 1
            path = [*path, 0][:level] if level else []
            if level:
                path = [*path[: level - 1], path[level - 1] + 1]
            paragraphs.append([])
        elif part.strip():
            kind = {"`": "c", "|": "t", "!": "f"}.get(part[0], "p")
            section = ".".join(["S", *map(str, path)])
            entry = (f"{section}.{kind}", start, end, part.rstrip("\n"))
            if paragraphs[-1] and kind == "p" and paragraphs[-1][-1][0] == entry[0]:
                paragraphs[-1].append(entry)
            else:
                paragraphs.append([entry])
        start += len(part.encode())
    for number, group in enumerate(filter(None, paragraphs), 1):
        for place, (name, first, last, words) in enumerate(group):
            letter = "abc"[place] if len(group) > 1 else ""
            blocks.append(Block(f"{name}.Bk{number:03}{letter}", first, last, words))
    return blocks


def evidence_of(question: Question, blocks: list[Block]) -> list[Block]:
    """The blocks that a question's short names mean: `pa` is the first half of the prose."""
    found = []
    for name in question.evidence:
        kind, letter = name[0], name[1:]
        found += [
            block
            for block in blocks
            if block.section == question.section
            and block.id.startswith(f"{question.section}.{kind}.")
            and block.id.endswith(letter)
        ]
    return found


def others_of(blocks: list[Block], evidence: list[Block]) -> list[Block]:
    """The blocks nearest to the evidence in the handbook, none of which answers."""
    middle = blocks.index(evidence[0])
    return sorted(
        (block for block in blocks if block not in evidence and block.section != "S"),
        key=lambda block: (abs(blocks.index(block) - middle), block.start),
    )


def gold_row(question: Question, blocks: list[Block]) -> dict[str, Any]:
    """The form of the eval page, with the place of each piece of evidence beside its id."""
    evidence = evidence_of(question, blocks)
    strangers = [
        block.id for block in others_of(blocks, evidence) if block.section != question.section
    ]
    return {
        "qid": question.qid,
        "paraphrases": list(question.paraphrases),
        "relevant": [
            {"id": block.id, "doc": DOC, "start": block.start, "end": block.end}
            for block in evidence
        ],
        "anchor_section": question.section,
        "negatives": strangers[:2],
    }


def trace_row(
    run: Run, question: Question, number: int, place: int, blocks: list[Block]
) -> dict[str, Any]:
    """What an index did for one slot of one question."""
    evidence = evidence_of(question, blocks)
    others = others_of(blocks, evidence)
    shown = evidence[:1] if number in run.lost.get(question.qid, ()) else evidence
    turn = number % 3
    hits = [*shown[:1], *others[turn : turn + 1], *shown[1:], *others[turn + 1 :]][:TOP]
    far = [
        round(question.near - run.closer + 0.01 * (number % 3) + 0.03 * rank, 2)
        for rank in range(len(hits))
    ]
    cited = evidence[0]
    end = cited.text.find(". ") + 1 if cited.type == "prose" else 0
    length = end or cited.end - cited.start  # of prose the first sentence, of all else the whole
    shift = 400 if number in run.misplaced.get(question.qid, ()) else 0
    minute, second = divmod(place * 7, 60)
    return {
        "qid": question.qid,
        "query": question.paraphrases[number // 2],
        "seed": SEEDS[number % 2],
        "topk": [
            {"id": block.id, "score": round(1.1 - distance, 2),
             "offsets": [block.start, block.end], "type": block.type}
            for block, distance in zip(hits, far, strict=True)
        ],
        "ΔS": far,
        "λ_state": "<>" if number in run.wavering.get(question.qid, ()) else "→",
        "answer_citations": [
            {"id": cited.id, "offsets": [cited.start + shift, cited.start + shift + length]}
        ],
        "index_hash": run.index_hash,
        "embed_model": "minilm-l6",
        "ts": f"{run.day}T09:{minute:02}:{second:02}Z",
    }  # fmt: skip


def main() -> None:
    """Write the four files."""
    blocks = blocks_of((HERE / DOC).read_text("utf-8"))
    write("gold", [gold_row(question, blocks) for question in QUESTIONS], damaged=False)
    slots = [(question, number) for question in QUESTIONS for number in range(3 * len(SEEDS))]
    for run in RUNS:
        rows = [
            trace_row(run, question, number, place, blocks)
            for place, (question, number) in enumerate(slots)
        ]
        write(run.name, rows, damaged=run.damaged)


def write(name: str, rows: list[dict[str, Any]], *, damaged: bool) -> None:
    """Write JSON Lines; `damaged` writes Greek letters as a logger with the wrong encoding does."""
    text = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
    if damaged:
        text = text.encode().decode("cp1252")
    (HERE / f"{name}.jsonl").write_text(text, "utf-8", newline="\n")


if __name__ == "__main__":
    main()
