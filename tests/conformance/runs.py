"""Runs to hold components against: an empty one, an ordinary one, and random ones of any shape."""

from __future__ import annotations

import json
import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ragauge import score
from ragauge.model.scores import Scores

Row = dict[str, Any]

ORDINARY_GOLD: list[Row] = [
    {"qid": "a1", "q": "What is X?", "answerable": True, "gold_ids": ["p1", "p2"],
     "gold_claim": "X is a mapping."},
    {"qid": "a2", "q": "How | why?", "answerable": True, "gold_ids": ["p3"], "gold_claim": "So."},
    {"qid": "u1", "q": "Where is Y?", "answerable": False, "gold_ids": []},
    {"qid": "x1", "q": "Who?", "gold_ids": []},
    {"qid": "m1", "q": "When?", "answerable": True, "gold_ids": ["p4"]},
]  # fmt: skip
ORDINARY_TRACE: list[Row] = [
    {"qid": "a1", "q": "What is X?", "chunks": [{"id": "p1"}, {"id": "p2"}, {"id": "p2"}],
     "answer": "X is a mapping.", "citations": ["p1"], "ΔS": [0.25, 0.5, None],
     "tokens": 900, "cost": 0.25,
     "perf": {"t_retrieve_ms": 40, "t_reason_ms": 800}},
    {"qid": "a1", "q": "What is X?", "seed": 2, "chunks": [{"id": "p2"}, {"id": "p1"}],
     "answer": "A mapping.", "citations": ["p2"], "λ_state": "→"},
    {"qid": "a2", "q": "How | why?", "chunks": [], "answer": "not in context", "citations": []},
    {"qid": "a2", "q": "How | why?", "chunks": [], "answer": "Because.", "citations": ["p9"]},
    {"qid": "u1", "q": "Where is Y?", "chunks": [{"id": "p1"}], "answer": "There."},
    {"qid": "x1", "q": "Who?", "chunks": [], "error": "timeout"},
    {"qid": "zz", "q": "Which?", "chunks": [], "answer": "That."},
]  # fmt: skip
"""Rows that every profile can read, with something of everything that can go wrong."""


def write(path: Path, rows: list[Row]) -> Path:
    """Write rows as JSON Lines."""
    path.write_text("".join(f"{json.dumps(row)}\n" for row in rows), encoding="utf-8")
    return path


def scored(folder: Path, gold: list[Row], trace: list[Row], **options: Any) -> Scores:
    """Score rows by way of files, all metrics."""
    options = {"metrics": ["*"], **options}
    gold_path, trace_path = write(folder / "gold.jsonl", gold), write(folder / "trace.jsonl", trace)
    return score(gold_path, trace_path, **options)


IDS = ["p1", "p2", "p3", "p4", "S.1.p.Bk001", "d1#S.1.2.c.Bk002", "d2#3"]
DOCS = ["d1", "d2"]
SECTIONS = ["S.1", "S.1.2", "S.2"]


class _Maker:
    """Makes rows by chance; what they hold is valid, and seldom makes sense."""

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)

    def chance(self, share: float) -> bool:
        return self.rng.random() < share

    def some(self, of: Sequence[str] = IDS) -> list[str]:
        return self.rng.choices(of, k=self.rng.randrange(4))

    def place(self) -> Row:
        start = self.rng.randrange(60)
        return {
            "doc": self.rng.choice(DOCS),
            "start": start,
            "end": start + self.rng.randint(1, 60),
        }

    def evidence(self) -> list[Any]:
        """Ids, and now and then places, some of which have an id or a section as well."""
        found: list[Any] = list(self.some())
        while self.chance(0.3):
            entry = self.place()
            if self.chance(0.3):
                entry["id"] = self.rng.choice(IDS)
            if self.chance(0.3):
                entry["section"] = self.rng.choice(SECTIONS)
            found.append(entry)
        return found

    def block(self) -> Any:
        """A hit or a citation: an id, or an id with more."""
        name = self.rng.choice(IDS)
        if self.chance(0.5):
            return name
        block: Row = {"id": name}
        if self.chance(0.7):
            place = self.place()
            block |= {"doc": place["doc"], "offsets": [place["start"], place["end"]]}
        if self.chance(0.3):
            block["section"] = self.rng.choice(SECTIONS)
        return block

    def blocks(self) -> list[Any]:
        return [self.block() for _ in range(self.rng.choice([0, 1, 1, 2, 3, 5, 7]))]

    def gold(self, number: int) -> Row:
        row: Row = {"qid": f"q{number}", "q": f"question {number}", "relevant": self.evidence()}
        if self.chance(0.8):
            row["answerable"] = self.chance(0.6)
        if self.chance(0.7):
            row["claims_any"] = self.rng.choices(["right", "left", "up"], k=self.rng.randrange(3))
        if self.chance(0.5):
            row["constraints"] = ["Be brief."]
        if self.chance(0.3):
            grades = [-1, 0, 0.5, 1, 3]
            row["grades"] = {name: self.rng.choice(grades) for name in self.some()}
        if self.chance(0.3):
            members = [*self.some(), self.place()]
            row["groups"] = [[each] for each in members] + [members]
        if self.chance(0.4):
            row["expected_doc_ids"] = self.some(DOCS)
        if self.chance(0.5):
            row["anchor_section"] = self.rng.choice([*SECTIONS, "d1#S.1"])
        if self.chance(0.4):
            row["negatives"] = [*self.some(), *([self.place()] if self.chance(0.3) else [])]
        if self.chance(0.2):
            row["decoy_section"] = self.rng.choice(SECTIONS)
        if self.chance(0.3):
            row["must_contain"] = self.some(["right", "the"])
        if self.chance(0.3):
            row["forbidden"] = self.some(["left", "up"])
        if self.chance(0.4):
            row["reference_answers"] = self.some(["right", "the left one", "left, not right"])
        return row

    def trace(self, number: int) -> Row:
        row: Row = {"qid": f"q{number}", "q": f"question {number}", "hits": self.blocks()}
        row["seed"] = self.rng.randrange(3)
        if self.chance(0.7):
            row["answer"] = self.rng.choice(["right", "the left one", "not in context", ""])
        if self.chance(0.7):
            row["citations"] = self.blocks()
        if self.chance(0.2):
            row[self.rng.choice(["refused", "grounded"])] = self.chance(0.5)
        if self.chance(0.1):
            row["error"] = "late"
        if self.chance(0.4):
            echoes = [[], ["Be brief."], [" Be brief. ", "Be exact."]]
            row["constraints_echo"] = self.rng.choice(echoes)
        if self.chance(0.5):
            row["ΔS"] = self.rng.choice(
                [0.25, [self.rng.choice([None, 0, 0.3, 1.5, 2]) for _ in row["hits"]]]
            )
        if self.chance(0.5):
            row["λ_state"] = self.rng.choice(["→", "←", "<>", "×", "convergent"])
        if self.chance(0.5):
            row["perf"] = {"t_retrieve_ms": self.rng.randrange(90), "t_reason_ms": 0.125}
        if self.chance(0.3):
            row["latency_ms"] = self.rng.randrange(2000)
        if self.chance(0.3):
            row["tokens"] = self.rng.randrange(2000)
            row["cost"] = self.rng.randrange(2000) / 1024
        if self.chance(0.3):
            row["unknown_ids"] = self.rng.sample(["p1", "p2", "p3", "p9"], self.rng.randrange(4))
            row["oversampled"] = self.chance(0.3)
        return row


def random_rows(seed: int) -> tuple[list[Row], list[Row]]:
    """Gold and traces in every state: refused, errored, missing, answerless, unlabelled, odd.

    Every third run is of an index alone, without answers, and every fourth has a conversation.
    """
    make = _Maker(seed)
    gold = [make.gold(number) for number in range(make.rng.randrange(1, 9))]
    trace = [make.trace(make.rng.randrange(10)) for _ in range(make.rng.randrange(28))]
    if seed % 3 == 2:
        said = ("answer", "citations", "refused", "grounded", "constraints_echo")
        trace = [{name: row[name] for name in row if name not in said} for row in trace]
    if seed % 4 == 3:
        for turn in (1, 2):
            item = {**make.gold(20 + turn), "qid": "talk", "turn": turn}
            gold.append(item)
            trace += [
                {**make.trace(20 + turn), "qid": "talk", "turn": turn, "q": item["q"]}
                for _ in range(make.rng.randrange(4))
            ]
    return gold, trace
