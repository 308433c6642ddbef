"""Code quality for GitLab: an entry for each failing question and gate, with a lasting name."""

from __future__ import annotations

import json
from hashlib import sha256
from typing import Any

from ragauge.model import phrases
from ragauge.model.report import Report, View
from ragauge.model.scores import QuestionResult
from ragauge.report.ci.entries import VerdictEntry, verdict_entries
from ragauge.report.ci.paths import FileLocation, location_of, seen_from_root
from ragauge.text import plain

_SEVERITIES = {
    "HALLUCINATION": "critical", "ERRORED": "critical", "MISSING": "critical",
    "UNLABELLED": "info", "NO_ANSWER": "minor",
}  # fmt: skip
_NO_FILES = ("--gates", "gates", "invariants")
"""Where else than in a file gates are set: on the command line, and in Python."""
_GATES = {
    "fail": "blocker", "error": "blocker", "review": "minor", "waived": "info",
    "not-judged": "info",
}  # fmt: skip


def _text(view: View) -> str:
    gold = location_of(view.scores.gold_name) or FileLocation("gold", None)
    findings = [
        _gate(entry, gold) for entry in verdict_entries(view.verdict) if entry.outcome in _GATES
    ]
    notes = phrases.damage_notes(view.verdict)
    findings += [
        _question(question, gold, notes.get((question.qid, question.turn)))
        for question in phrases.questions_needing_attention(view.scores, view.verdict)
    ]
    counts: dict[str, int] = {}
    for finding in findings:  # of two with one fingerprint GitLab shows the first only
        name = finding["fingerprint"]
        counts[name] = counts.get(name, 0) + 1
        if counts[name] > 1:
            finding["fingerprint"] = _fingerprint([name, counts[name]])
    return json.dumps(findings, indent=1, ensure_ascii=False) + "\n"


def _fingerprint(key: list[object]) -> str:
    return sha256(json.dumps(key).encode()).hexdigest()[:40]


def _finding(
    name: str, description: str, severity: str, location: FileLocation, key: tuple[object, ...]
) -> dict[str, Any]:
    """One finding; its fingerprint has no line, so that it stays the same when lines move."""
    return {
        "description": plain(description),
        "check_name": f"ragauge/{name}",
        "fingerprint": _fingerprint([name, location.file, *key]),
        "severity": severity,
        "location": {"path": location.file, "lines": {"begin": location.line or 1}},
    }


def _question(question: QuestionResult, gold: FileLocation, damage: str | None) -> dict[str, Any]:
    name = phrases.question_name(question.qid, question.turn)
    label = phrases.labelled(question.label, question.cause)
    label = label if damage is None else f"{label}; {damage}"
    return _finding(
        question.label,
        f"{name}: {label}",
        _SEVERITIES.get(question.label, "major"),
        location_of(question.gold) or gold,
        (question.qid, question.turn),
    )


def _gate(entry: VerdictEntry, gold: FileLocation) -> dict[str, Any]:
    """A gate is found where it was set, if that is a file; else at the gold set."""
    result = entry.result
    if result is None:
        return _finding(entry.kind, entry.message, _GATES[entry.outcome], gold, ())
    origin = result.gate.origin
    is_file = origin not in _NO_FILES and not origin.startswith("profile ")
    location = FileLocation(seen_from_root(origin), None) if is_file else gold
    key = (result.gate.metric, result.gate.is_drop, result.gate.part)
    description = f"gate {entry.name}: {entry.message}"
    return _finding("gate", description, _GATES[entry.outcome], location, key)


REPORT = Report(
    name="gitlab", title="code quality JSON for GitLab", syntax="json", content=_text, public=True
)
