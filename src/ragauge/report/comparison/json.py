"""The comparison as JSON, with a versioned schema and every question."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from ragauge.model.comparison import (
    KINDS,
    MATCH_LEVELS,
    SCHEMA,
    ComparedSlice,
    ComparisonReport,
    ComparisonView,
    Delta,
    Kind,
    KindCheck,
    PlaceCounts,
    QueryComparison,
)
from ragauge.model.scores import MetricResult
from ragauge.model.scores_document import json_text, rounded, rounded_pair, verdict_document

_SMALLEST = 2.225e-308
"""Stands for p-values that floating point holds as 0, which no test ever gives."""


def _document(view: ComparisonView) -> dict[str, Any]:
    comparison = view.comparison
    verdict = comparison.verdict
    return {
        "schema": SCHEMA,
        "run_a": comparison.run_a.name,
        "run_b": comparison.run_b.name,
        "runs": {
            "a": msgspec.to_builtins(comparison.run_a),
            "b": msgspec.to_builtins(comparison.run_b),
        },
        "aggregate_a": _aggregate(comparison.aggregate_a),
        "aggregate_b": _aggregate(comparison.aggregate_b),
        "deltas": {
            "chunker_version_match": comparison.recognised,
            "rungs": {rung: comparison.rungs.get(rung, 0) for rung in MATCH_LEVELS},
            "undecided": _undecided(comparison.places),
            "ids": None if comparison.ids is None else msgspec.to_builtins(comparison.ids),
            "sizes": _sizes(comparison.places),
            **{delta.metric: _delta(delta) for delta in comparison.deltas},
        },
        "slices": {
            dimension: {name: _slice(part) for name, part in parts.items()}
            for dimension, parts in comparison.slices.items()
        },
        "kinds": {
            "retrieval": _kinds(comparison.kinds),
            "answer": _kinds(comparison.answer_kinds),
            "document": comparison.doc_kinds,
        },
        "document_level": None
        if comparison.documents is None
        else {delta.metric: _delta(delta) for delta in comparison.documents.deltas},
        "k": comparison.k,
        "left_out": dict(sorted(comparison.left_out.items())),
        "counted": comparison.counted,
        "causes": msgspec.to_builtins(comparison.causes),
        "notes": list(comparison.notes),
        "verdict": None if verdict is None else verdict_document(verdict),
        "fail_on": _by_kind(view),
        "fail_on_checks": [
            {"given": check.given, "kind": check.kind, **_check(check)} for check in view.fail_on
        ],
        "fail_on_reason": view.undecided,
        "exit_code": int(view.exit_code),
        "per_query": [_query(query) for query in comparison.per_query],
    }


def _undecided(places: PlaceCounts | None) -> dict[str, int]:
    """How much is open, as gold does not say where in a chunk the evidence stands."""
    names = ("regression_open", "kind_open", "unplaced", "wide")
    return {name: 0 if places is None else getattr(places, name) for name in names}


def _sizes(places: PlaceCounts | None) -> dict[str, Any] | None:
    """How large chunks and hits are, where runs of several chunkings were compared."""
    if places is None or not places.has_sizes:
        return None
    return {
        "least_evidence": places.least_evidence,
        "gold_bytes": round(places.gold_bytes),
        "a_hit_bytes": round(places.hit_bytes[0]),
        "b_hit_bytes": round(places.hit_bytes[1]),
        "a_top_bytes": round(places.top_bytes[0]),
        "b_top_bytes": round(places.top_bytes[1]),
    }


def _kinds(kinds: Mapping[Kind, int]) -> dict[str, int]:
    return {kind: kinds.get(kind, 0) for kind in KINDS}


def _aggregate(metrics: Mapping[str, MetricResult]) -> dict[str, Any]:
    return {
        name: {
            "value": rounded(result.value),
            "n": result.n,
            "records": result.records,
            "interval": rounded_pair(result.interval),
            "version": result.version,
            "unrounded": result.value,
            "reason": result.reason,
            "band": rounded_pair(result.band),
        }
        for name, result in metrics.items()
    }


def _p(value: float | None) -> float | None:
    """A p-value with four significant digits; never 0."""
    return None if value is None else float(f"{max(value, _SMALLEST):.4g}")


def _delta(delta: Delta) -> dict[str, Any]:
    return {
        "a": rounded(delta.a),
        "b": rounded(delta.b),
        "delta": rounded(delta.delta),
        "n": delta.n,
        "interval": rounded_pair(delta.interval),
        "p": _p(delta.p),
        "p_holm": _p(delta.p_holm),
        "changed": delta.is_changed,
        "moved": delta.is_moved,
        "test": delta.test,
        "detectable": rounded(delta.detectable),
        "gated": delta.gated,
        "better": delta.better,
        "reason": delta.reason,
        "band": rounded_pair(delta.band),
        "band_interval": rounded_pair(delta.band_interval),
        "a_band": rounded_pair(delta.a_band),
        "b_band": rounded_pair(delta.b_band),
        "open": delta.open,
        "estimate": None if delta.estimate is None else msgspec.to_builtins(delta.estimate),
        **(
            {}
            if delta.guess is None
            else {"guess": {name: rounded(value) for name, value in delta.guess._asdict().items()}}
        ),
        "unrounded": {"a": delta.a, "b": delta.b, "delta": delta.delta, "interval": delta.interval},
    }


def _slice(part: ComparedSlice) -> dict[str, Any]:
    deltas = {
        delta.metric: {
            "a": rounded(delta.a),
            "b": rounded(delta.b),
            "delta": rounded(delta.delta),
            "n": delta.n,
            "interval": rounded_pair(delta.interval),
        }
        for delta in part.deltas
    }
    return {"n": part.n, "deltas": deltas}


def _by_kind(view: ComparisonView) -> dict[str, Any]:
    """The limit of each kind that decides: of several, one that failed, or that allows least."""
    by_kind: dict[str, Any] = {}
    for check in sorted(
        view.fail_on, key=lambda one: (not one.failed, not one.is_open, one.allowed)
    ):
        by_kind.setdefault(check.kind, _check(check))
    return {check.kind: by_kind[check.kind] for check in view.fail_on}


def _check(check: KindCheck) -> dict[str, Any]:
    return {
        "questions": check.questions,
        "kinds": dict(check.kinds),
        "doc_kinds": dict(check.doc_kinds),
        "allowed": check.allowed,
        "explained": check.explained,
        "open": check.open,
        "repeated": check.repeated,
        "unstable": check.unstable,
        "p": _p(check.p),
        "by_document": check.by_document,
        "failed": check.failed,
        "status": "fail" if check.failed else "open" if check.is_open else "pass",
    }


def _query(query: QueryComparison) -> QueryComparison:
    """The question as it is written: its fields in their order, with means over slots rounded."""
    return msgspec.structs.replace(
        query,
        **{name: rounded(getattr(query, name)) for name in _ROUNDED},
    )


_ROUNDED = ("a_reciprocal", "b_reciprocal", "a_units", "b_units")


REPORT = ComparisonReport(
    name="json",
    title="the comparison with every question, with a versioned schema",
    syntax="json",
    content=lambda view: json_text(_document(view)),
    suffixes=(".json",),
)
