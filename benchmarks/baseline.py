"""Owns the yardstick: a plain standard-library scorer of the five `ship` numbers.

Written the way one would write it for a single afternoon's use, neither slowed down nor tuned.
Run as `python benchmarks/baseline.py --gold gold.jsonl --trace trace.jsonl`.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from typing import Any

Row = dict[str, Any]
REFUSAL = "not in context"
SHORTEST_SUBSTRING = 5


def rows(path: str) -> Iterator[Row]:
    """Read a JSON Lines file."""
    with open(path, encoding="utf-8") as file:
        for line in file:
            if line.strip():
                yield json.loads(line)


def contains(claim: str, substrings: list[str] | None) -> bool:
    """Say whether the claim has one of the substrings; an empty list asks for nothing."""
    if substrings == []:
        return True
    lowered = claim.lower()
    return any(len(s) >= SHORTEST_SUBSTRING and s.lower() in lowered for s in substrings or [])


def cites(citations: list[str], gold: set[str], retrieved: list[str]) -> bool:
    """Say whether the citations are all retrieved ids and meet the gold ones."""
    cited = set(citations)
    if not cited <= set(retrieved):
        return False
    return bool(cited & gold) if gold else not cited


def score(gold_path: str, trace_path: str, k: int) -> dict[str, float]:
    """Compute the five numbers from the last trace of each question."""
    gold = {row["qid"]: row for row in rows(gold_path)}
    last = {row["qid"]: row for row in rows(trace_path)}
    answered = answerable = unanswerable = correct = hits = under = over = recalled = 0
    for qid, item in gold.items():
        trace = last.get(qid, {})
        answer = trace.get("answer_json") or {}
        claim = (answer.get("claim") or "").strip()
        retrieved = trace.get("retrieved_ids") or []
        evidence = set(item.get("gold_citations") or [])
        refused = claim.lower() == REFUSAL
        answered += not refused
        if not item.get("answerable"):
            unanswerable += 1
            under += not refused
            continue
        answerable += 1
        over += refused
        recalled += evidence <= set(retrieved[:k])
        if not refused and cites(answer.get("citations") or [], evidence, retrieved):
            hits += 1
            correct += contains(claim, item.get("gold_claim_substr"))
    return {
        "precision": round(correct / answered, 4) if answered else 1.0,
        "chr": round(hits / answered, 4) if answered else 1.0,
        "under_refusal": round(under / unanswerable, 4) if unanswerable else 0.0,
        "over_refusal": round(over / answerable, 4) if answerable else 0.0,
        "recall@k": round(recalled / answerable, 4) if answerable else 0.0,
    }


def main() -> None:
    """Score from the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--gold", required=True)
    parser.add_argument("--trace", required=True)
    parser.add_argument("--k", type=int, default=5)
    options = parser.parse_args()
    print(json.dumps(score(options.gold, options.trace, options.k), indent=2))


if __name__ == "__main__":
    main()
