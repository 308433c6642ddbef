"""The `ship` numbers (seeds 003 and 004) from their definitions, one plain judgement per gold item.

Nothing of the package is imported here, so that the two can disagree.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

REFUSAL = "not in context"
SHORTEST_SUBSTRING = 5
DEFAULT_GATES = "precision=0.80,chr=0.75,under=0.05,over=0.10"


@dataclass(frozen=True)
class Judged:
    """One gold item with the trace that is scored for it."""

    expected: bool | None  # None: unlabelled
    answered: bool
    contained: bool
    hit: bool
    found: bool  # all gold citations among the first k retrieved ids


def score_ship(
    gold_rows: list[dict[str, Any]],
    trace_rows: list[dict[str, Any]],
    *,
    k: int = 5,
    gates: str = DEFAULT_GATES,
) -> dict[str, Any]:
    """Return the object that the reference scorer prints as JSON, keys in the same order."""
    gold = {row["qid"]: row for row in gold_rows}  # the last row of a qid wins
    trace_of = _last_trace_of_each_qid(trace_rows)
    judged = [_judge(row, trace_of.get(qid, {}), k) for qid, row in gold.items()]

    answered = [item for item in judged if item.answered]
    answerable = [item for item in judged if item.expected is True]
    # Unlabelled items are no hallucination when answered, yet they widen what under is a share of.
    unanswerable_count = len(judged) - len(answerable)
    # An item known to be unanswerable earns nothing, whatever it cites.
    may_earn = [item for item in answered if item.expected is not False]

    precision = _share(sum(i.contained and i.hit for i in may_earn), len(answered), empty=1.0)
    hit_rate = _share(sum(i.hit for i in may_earn), len(answered), empty=1.0)
    under = _share(len(answered) - len(may_earn), unanswerable_count, empty=0.0)
    over = _share(sum(not i.answered for i in answerable), len(answerable), empty=0.0)
    recall = _share(sum(i.found for i in answerable), len(answerable), empty=0.0)

    thresholds = _thresholds(gates)
    passed = (
        precision >= float(thresholds["precision"])
        and hit_rate >= float(thresholds["chr"])
        and under <= float(thresholds["under"])
        and over <= float(thresholds["over"])
    )
    return {
        "answered": len(answered),
        "refused": len(judged) - len(answered),
        "answerable": len(answerable),
        "unanswerable": unanswerable_count,
        "precision": round(precision, 4),
        "chr": round(hit_rate, 4),
        "under_refusal": round(under, 4),
        "over_refusal": round(over, 4),
        "recall@k": round(recall, 4),
        "k": k,
        "gates": thresholds,
        "pass": passed,
    }


def _last_trace_of_each_qid(trace_rows: list[dict[str, Any]]) -> dict[str, dict[str, Any]]:
    last: dict[str, dict[str, Any]] = {}
    for row in trace_rows:
        qid = row.get("qid") or row.get("q_id")
        if qid:
            last[qid] = row
    return last


def _judge(gold: dict[str, Any], trace: dict[str, Any], k: int) -> Judged:
    answer = trace.get("answer_json") or {}
    claim = (answer.get("claim") or "").strip()
    retrieved = trace.get("retrieved_ids") or []
    gold_citations = gold.get("gold_citations") or []
    return Judged(
        expected=gold.get("answerable"),
        answered=claim.lower() != REFUSAL,
        contained=_contained(gold.get("gold_claim_substr"), claim),
        hit=_hit(answer.get("citations") or [], gold_citations, retrieved),
        found=all(wanted in retrieved[:k] for wanted in gold_citations),
    )


def _contained(substrings: list[str] | None, claim: str) -> bool:
    if substrings is None:
        return False
    if not substrings:
        return True
    lowered = [text.lower() for text in substrings]  # lowering can lengthen: "İ" becomes two
    return any(len(text) >= SHORTEST_SUBSTRING and text in claim.lower() for text in lowered)


def _hit(citations: Any, gold_citations: list[str], retrieved: list[str]) -> bool:
    if not isinstance(citations, list) or any(cited not in retrieved for cited in citations):
        return False
    if not gold_citations:
        return not citations
    return any(cited in gold_citations for cited in citations)


def _share(part: int, whole: int, *, empty: float) -> float:
    return part / whole if whole else empty


def _thresholds(gates: str) -> dict[str, str]:
    named: dict[str, str] = {}
    for gate in gates.split(","):
        name, _, threshold = gate.partition("=")
        named[name] = threshold
    return named
