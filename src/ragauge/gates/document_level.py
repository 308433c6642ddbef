"""Gates where two runs share only documents: not evaluable, or judged by document if accepted.

A document is found more easily than the evidence in it: by document a gate passes what lost its
evidence. So it moves to the metric of documents only where somebody accepts that, under the name of
that metric (decision 0060). What is surely lost fails before that.
"""

from __future__ import annotations

from msgspec.structs import replace

from ragauge.model.metric_names import by_document
from ragauge.model.phrases import count
from ragauge.model.scores import PlaceEnds
from ragauge.model.verdict import Gate, GateResult

BY_DOCUMENT = "by document (--accept-doc-level), which does not show that the evidence was found"


def document_gate(gate: Gate, ends: PlaceEnds) -> Gate | None:
    """The gate on the metric of documents; None where not all that is open is open for that."""
    moved = by_document(gate.metric)
    if moved is None or gate.metric not in ends.movable:
        return None
    part = "" if gate.part is None else f", {gate.part}"
    return replace(
        gate,
        metric=moved,
        title=f"{moved} drop{part} (by document, instead of {gate.metric})",
        moved_from=gate.metric,
    )


def hint_at_documents(result: GateResult, moved: Gate, n: int) -> GateResult:
    """A result that cannot be judged, with why, and with what could be judged instead."""
    why = (
        f"of {count(n, 'question')} the runs share only documents, which do not show whether the "
        "evidence was found: record offsets or texts with the hits; --accept-doc-level judges "
        f"{moved.metric} instead, by document"
    )
    return replace(result, reason=why)
