"""The `smoke` report (seed 001, its Python scorer) from its definitions, one row per trace line.

Nothing of the package is imported here, so that the two can disagree.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import groupby
from typing import Any

REFUSAL = "not in context"
SHORTEST_PHRASE = 5
PHRASE_LETTERS = frozenset("abcdefghijklmnopqrstuvwxyz0123456789")
LISTED_IN_TEXT = re.compile(r"(?i:citations)\s*:\s*\[(?P<ids>[^\]]*)\]")


@dataclass(frozen=True)
class Row:
    """One trace line whose question is in the gold set."""

    qid: str
    answerable: bool
    refused: bool
    hit: bool
    contained: bool
    lists_citations: bool

    @property
    def label(self) -> str:
        if not self.answerable:
            return "REFUSAL_OK" if self.refused else "HALLUCINATION"
        if self.refused:
            return "OVER_REFUSAL"
        return "OK" if self.hit else "ANS_NO_HIT"


def score_smoke(gold_rows: list[dict[str, Any]], trace_rows: list[dict[str, Any]]) -> str:
    """Return the whole Markdown report, with the newline at its end."""
    rows = _rows(gold_rows, trace_rows)
    numbers = _numbers(rows)
    bullets = (
        ("Answer precision (over answered)", "precision"),
        ("Over-refusal (answerable but refused)", "over_refusal"),
        ("Under-refusal / Hallucination (unanswerable but answered)", "under_refusal"),
        ("Citation hit rate (answerable)", "chr"),
        ("Claim containment (answerable)", "claim_containment"),
    )
    lines = ["# RAG Quality Report", "", f"- Questions scored: **{len(rows)}**"]
    lines += [f"- {title}: **{100 * numbers[name]:.1f}%**" for title, name in bullets]
    lines += ["", "## Per-question", ""]
    lines += ["| qid | answered | hit | refusal | label |"]
    lines += ["|-----|----------|-----|---------|-------|"]
    for row in rows:
        cells = [row.qid, _word(not row.refused), _word(row.hit), _word(row.refused)]
        lines.append(f"| {' | '.join(cells)} | **{row.label}** |")
    return "\n".join(lines) + "\n"


def smoke_numbers(
    gold_rows: list[dict[str, Any]], trace_rows: list[dict[str, Any]]
) -> dict[str, Any]:
    """Return the unrounded rates, `compliance` (None if no line is scored) and the `rows`."""
    rows = _rows(gold_rows, trace_rows)
    compliant = sum(row.lists_citations or row.refused for row in rows)
    return {
        **_numbers(rows),
        "compliance": compliant / len(rows) if rows else None,
        "rows": [{"qid": row.qid, "label": row.label} for row in rows],
    }


def _numbers(rows: list[Row]) -> dict[str, float]:
    answerable = [row for row in rows if row.answerable]
    unanswerable = [row for row in rows if not row.answerable]
    answered = [row for row in rows if not row.refused]
    return {
        "precision": _share(row.answerable and row.hit for row in answered),
        "over_refusal": _share(row.refused for row in answerable),
        "under_refusal": _share(not row.refused for row in unanswerable),
        "chr": _share(row.hit and not row.refused for row in answerable),
        "claim_containment": _share(row.contained and not row.refused for row in answerable),
    }


def _rows(gold_rows: list[dict[str, Any]], trace_rows: list[dict[str, Any]]) -> list[Row]:
    gold_of = {gold["q"]: gold for gold in gold_rows}  # the last row of a question wins
    rows = []
    for trace in trace_rows:
        gold = gold_of.get(trace.get("q") or trace.get("question") or "")
        if gold is None:
            continue
        answer = trace.get("answer") or ""
        cited = _cited(answer, trace.get("citations"))
        rows.append(
            Row(
                qid=gold["qid"],
                answerable=bool(gold["answerable"]),
                refused=answer.strip().lower() == REFUSAL,
                hit=any(wanted in (cited or []) for wanted in gold.get("gold_ids", [])),
                contained=any(p in answer.lower() for p in _phrases(gold.get("gold_claim") or "")),
                lists_citations=cited is not None,
            )
        )
    return rows


def _cited(answer: str, field: Any) -> list[str] | None:
    """The cited ids; None where the row has no list of them at all."""
    if isinstance(field, list):
        return [str(cited).strip() for cited in field]
    listed = LISTED_IN_TEXT.search(answer)
    return None if listed is None else listed["ids"].replace(",", " ").split()


def _phrases(gold_claim: str) -> list[str]:
    """Runs of ASCII letters, digits, hyphens and blanks that begin with a letter or digit."""
    runs = ("".join(run) for inside, run in groupby(gold_claim.lower(), _in_phrase) if inside)
    trimmed = (_from_first_letter(run).rstrip() for run in runs)
    return [phrase for phrase in trimmed if len(phrase) >= SHORTEST_PHRASE]


def _in_phrase(character: str) -> bool:
    return character in PHRASE_LETTERS or character == "-" or character.isspace()


def _from_first_letter(run: str) -> str:
    while run and run[0] not in PHRASE_LETTERS:
        run = run[1:]
    return run


def _share(flags: Iterable[bool]) -> float:
    counted = list(flags)
    return sum(counted) / len(counted) if counted else 0.0


def _word(flag: bool) -> str:
    return "true" if flag else "false"
