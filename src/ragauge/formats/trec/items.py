"""Judgements and runs of TREC as gold items and traces, one by one."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from ragauge.errors import MAX_REPORTED, Problem
from ragauge.files.ranges import Source
from ragauge.formats.loaded import LoadedRows
from ragauge.formats.trec.lines import BadLine
from ragauge.formats.trec.qrels import QrelsRow, RunRow, qrels_rows, run_rows
from ragauge.model.gold import GoldItem
from ragauge.model.trace import Hit, Trace


def gold_items(source: Source, queries: Mapping[str, str]) -> LoadedRows:
    """Judgements as gold items with grades; `queries` gives the questions where they are known."""
    grades: dict[str, dict[str, float]] = {}
    lines: dict[str, int] = {}
    problems: list[Problem] = []
    count = 0
    for row in qrels_rows(source):
        if isinstance(row, QrelsRow):
            grades.setdefault(row.qid, {})[row.docid] = float(row.grade)
            lines.setdefault(row.qid, row.line)
        else:
            count += 1
            problems += [row.at(source.name)] if len(problems) < MAX_REPORTED else []
    items = [
        GoldItem(qid=qid, question=queries.get(qid), grades=judged, line=lines[qid])
        for qid, judged in grades.items()
    ]
    return LoadedRows(items, problems, count)


def traces(source: Source) -> LoadedRows:
    """A run as traces: by score in single precision, ties by document id, both descending."""
    rows: dict[str, list[RunRow]] = {}
    problems: list[Problem] = []
    count = 0
    for row in run_rows(source):
        if isinstance(row, BadLine):
            count += 1
            problems += [row.at(source.name)] if len(problems) < MAX_REPORTED else []
        else:
            rows.setdefault(row.qid, []).append(row)
    return LoadedRows([_trace(qid, retrieved) for qid, retrieved in rows.items()], problems, count)


def _trace(qid: str, rows: list[RunRow]) -> Trace:
    def place(row: RunRow) -> tuple[float, bytes]:
        return float(np.float32(row.score)), row.docid.encode()

    ordered = sorted(rows, key=place, reverse=True)
    return Trace(
        qid=qid,
        hits=tuple(Hit(row.docid, score=row.score) for row in ordered),
        disordered=[row.docid for row in ordered] != [row.docid for row in rows],
        line=rows[0].line,
    )
