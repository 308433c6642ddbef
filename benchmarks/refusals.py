"""Owns the measure of the natural refusals: precision and recall on answers that others labelled.

Run as `python benchmarks/refusals.py FOLDER`. FOLDER holds the files of `results/` of FinanceBench
(patronus-ai/financebench, commit cc39aeb): JSON Lines with `financebench_id`, `model_answer` and
`label`, where people wrote `Refusal`, `Correct Answer` or `Incorrect Answer`. The 150 questions are
cut into three parts by the hashes of their ids, so that no question is in two of them. The first
part was looked at while the patterns were written, the second after it had missed a target; of the
third only these figures were. The exit code is 1 where the third part misses .95 or .85.
`--labels FILE` takes one file with `answer` and `refused` in each line instead.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from ragauge.scoring.refusals import VERSION, NaturalRefusals

PARTS = ("written with", "looked at later", "held out")
PRECISION, RECALL = 0.95, 0.85


class LabelledAnswer(NamedTuple):
    """What a model said, and whether people called it a refusal."""

    text: str
    refused: bool


class Agreement(NamedTuple):
    """How the patterns agree with the labels."""

    answers: int
    refusals: int
    found: int
    right: int

    @property
    def precision(self) -> float:
        """The share of what was found that is a refusal."""
        return self.right / self.found if self.found else 0.0

    @property
    def recall(self) -> float:
        """The share of the refusals that were found."""
        return self.right / self.refusals if self.refusals else 0.0

    def __str__(self) -> str:
        return (
            f"{self.answers:>6,} answers {self.refusals:>5,} refusals  precision "
            f"{self.precision:.3f}  recall {self.recall:.3f}  ({self.right} of {self.found} found)"
        )


def agreement(answers: Iterable[LabelledAnswer], languages: Iterable[str]) -> Agreement:
    """Precision and recall of the patterns on labelled answers."""
    rows = list(answers)
    found = NaturalRefusals(languages).find([row.text.strip().lower() for row in rows])
    right = sum(row.refused and declines for row, declines in zip(rows, found, strict=True))
    return Agreement(len(rows), sum(row.refused for row in rows), sum(found), right)


def financebench(folder: Path) -> dict[str, list[LabelledAnswer]]:
    """The labelled answers of FinanceBench in three parts of 50 questions."""
    rows = [
        json.loads(line)
        for path in sorted(folder.glob("*.jsonl"))
        for line in path.read_text("utf-8").splitlines()
    ]
    ids = {row["financebench_id"] for row in rows}
    ordered = sorted(ids, key=lambda name: hashlib.sha256(name.encode()).hexdigest())
    part_of = {
        name: PARTS[place * len(PARTS) // len(ordered)] for place, name in enumerate(ordered)
    }
    parts: dict[str, list[LabelledAnswer]] = {part: [] for part in PARTS}
    for row in rows:
        answer = LabelledAnswer(str(row["model_answer"]), row["label"] == "Refusal")
        parts[part_of[row["financebench_id"]]].append(answer)
    return parts


def labelled_file(path: Path) -> list[LabelledAnswer]:
    """The answers of a file with `answer` and `refused` in each line."""
    rows = map(json.loads, path.read_text("utf-8").splitlines())
    return [LabelledAnswer(row["answer"], bool(row["refused"])) for row in rows]


def main() -> int:
    """Measure, and say whether the held-out part reaches its targets."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path, nargs="?")
    parser.add_argument("--labels", type=Path)
    parser.add_argument("--languages", default="en")
    asked = parser.parse_args()
    languages = asked.languages.split(",")
    print(f"natural refusals, version {VERSION}, languages {', '.join(languages)}")
    if asked.labels is not None:
        print(f"{asked.labels.name:<16}{agreement(labelled_file(asked.labels), languages)}")
        return 0
    if asked.folder is None or not any(asked.folder.glob("*.jsonl")):
        print("no results of FinanceBench: give the folder of its files", file=sys.stderr)
        return 2
    measured = {
        name: agreement(answers, languages) for name, answers in financebench(asked.folder).items()
    }
    for name, found in measured.items():
        print(f"{name:<16}{found}")
    held_out = measured[PARTS[-1]]
    return 0 if held_out.precision >= PRECISION and held_out.recall >= RECALL else 1


if __name__ == "__main__":
    sys.exit(main())
