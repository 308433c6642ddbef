"""Judgements and runs written down in every way that is read, and their scores per question."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ragauge.model.scores import Scores

Row = dict[str, Any]
Qrels = Mapping[str, Mapping[str, int]]
Run = Mapping[str, Sequence[tuple[str, float]]]
"""Of each topic the documents and their scores, in any order; a document may stand twice."""

BEIR_HEADER = "query-id\tcorpus-id\tscore\n"


def write_lines(path: Path, rows: Iterable[Row]) -> Path:
    path.write_text("".join(f"{json.dumps(row, ensure_ascii=False)}\n" for row in rows), "utf-8")
    return path


def write_qrels(path: Path, qrels: Qrels) -> Path:
    lines = [
        f"{qid} 0 {doc} {grade}\n" for qid, docs in qrels.items() for doc, grade in docs.items()
    ]
    path.write_text("".join(lines), "utf-8")
    return path


def write_run(path: Path, run: Run) -> Path:
    """A TREC run; the rank column is a constant, since nothing may be ordered by it."""
    lines = [
        f"{qid} Q0 {doc} 1 {score!r} tag\n" for qid, found in run.items() for doc, score in found
    ]
    path.write_text("".join(lines), "utf-8")
    return path


def write_beir(folder: Path, qrels: Qrels, split: str = "test") -> Path:
    """A BEIR folder: judgements with a header, and the questions."""
    (folder / "qrels").mkdir(parents=True)
    lines = [
        f"{qid}\t{doc}\t{grade}\n" for qid, docs in qrels.items() for doc, grade in docs.items()
    ]
    (folder / "qrels" / f"{split}.tsv").write_text(BEIR_HEADER + "".join(lines), "utf-8")
    queries = [{"_id": qid, "text": f"What of {qid}?", "metadata": {}} for qid in qrels]
    write_lines(folder / "queries.jsonl", queries)
    return folder


def write_graded(path: Path, qrels: Qrels) -> Path:
    """Gold items with the judgements as grades."""
    return write_lines(path, ({"qid": qid, "grades": docs} for qid, docs in qrels.items()))


def in_order(found: Sequence[tuple[str, float]]) -> list[str]:
    """The documents by score in single precision and then by id, both descending."""
    placed = [(float(np.float32(score)), doc.encode(), doc) for doc, score in found]
    return [doc for _, _, doc in sorted(placed, reverse=True)]


def write_traces(path: Path, run: Run) -> Path:
    """Traces whose lists stand in the order that trec_eval would give them."""
    return write_lines(path, ({"qid": qid, "topk": in_order(found)} for qid, found in run.items()))


def values(scores: Scores, metric: str) -> dict[str, float | None]:
    """The value of a metric for each question, None where it has none."""
    table = scores.per_question
    assert table is not None
    column = table.of(metric).tolist()
    return {
        qid: None if math.isnan(value) else value
        for qid, value in zip(table.qids, column, strict=True)
    }


def mean(scores: Scores, metric: str) -> float:
    """The value of a metric over all questions; it must have one."""
    value = scores.metrics[metric].value
    assert value is not None
    return value
