"""Code quality for GitLab: an entry for each failing question and gate, with a lasting name."""

from __future__ import annotations

import json
from hashlib import sha256
from typing import Any

from ragauge.model import phrases
from ragauge.model.report import Report, View
from ragauge.model.scores import QuestionResult
from ragauge.report.ci import entries as rulings
from ragauge.report.ci.entries import Ruling
from ragauge.report.ci.paths import Spot, seen_from_root, spot_of
from ragauge.text import plain

_SEVERITIES = {
    "HALLUCINATION": "critical", "ERRORED": "critical", "MISSING": "critical",
    "UNLABELLED": "info", "NO_ANSWER": "minor",
}  # fmt: skip
_NO_FILES = ("--gates", "gates", "invariants")
"""Where else than in a file gates are set: on the command line, and in Python."""
_GATES = {"fail": "blocker", "error": "blocker", "review": "minor", "waived": "info"}


def _text(view: View) -> str:
    spot = spot_of(view.scores.gold_name) or Spot("gold", None)
    entries = [
        _gate(each, spot) for each in rulings.rulings(view.verdict) if each.outcome in _GATES
    ]
    entries += [_question(each, spot) for each in phrases.bad_questions(view.scores)]
    taken: dict[str, int] = {}
    for entry in entries:  # of two with one fingerprint GitLab shows the first only
        name = entry["fingerprint"]
        taken[name] = taken.get(name, 0) + 1
        if taken[name] > 1:
            entry["fingerprint"] = _fingerprint([name, taken[name]])
    return json.dumps(entries, indent=1, ensure_ascii=False) + "\n"


def _fingerprint(key: list[object]) -> str:
    return sha256(json.dumps(key).encode()).hexdigest()[:40]


def _entry(
    name: str, description: str, severity: str, spot: Spot, key: tuple[object, ...]
) -> dict[str, Any]:
    """One entry; its fingerprint has no line, so that it stays the same when lines move."""
    return {
        "description": plain(description),
        "check_name": f"ragauge/{name}",
        "fingerprint": _fingerprint([name, spot.file, *key]),
        "severity": severity,
        "location": {"path": spot.file, "lines": {"begin": spot.line or 1}},
    }


def _question(question: QuestionResult, gold: Spot) -> dict[str, Any]:
    name = phrases.question_name(question.qid, question.turn)
    told = question.label if question.cause is None else f"{question.label}: {question.cause}"
    return _entry(
        question.label,
        f"{name}: {told}",
        _SEVERITIES.get(question.label, "major"),
        spot_of(question.gold) or gold,
        (question.qid, question.turn),
    )


def _gate(ruling: Ruling, gold: Spot) -> dict[str, Any]:
    """A gate stands where it was set, if that is a file; else with the gold set."""
    result = ruling.result
    if result is None:
        return _entry(ruling.kind, ruling.message, _GATES[ruling.outcome], gold, ())
    origin = result.gate.origin
    is_file = origin not in _NO_FILES and not origin.startswith("profile ")
    spot = Spot(seen_from_root(origin), None) if is_file else gold
    key = (result.gate.metric, result.gate.is_drop, result.gate.part)
    told = f"gate {ruling.name}: {ruling.message}"
    return _entry("gate", told, _GATES[ruling.outcome], spot, key)


REPORT = Report(name="gitlab", title="code quality JSON for GitLab", content=_text, public=True)
