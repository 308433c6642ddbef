"""Gates on ΔS that are written in bands: their thresholds are those of the run's embedder.

`{ zone = "stable" }` on a median is the end of that zone, and on a 90th percentile three quarters
of the transitional zone further: 0.40 and 0.55 with the bands of the source documents. Where the
embedder was calibrated, its own bands stand in for them; where calibration showed that its ΔS
cannot tell evidence from hard negatives, such gates are not judged.
"""

from __future__ import annotations

from collections.abc import Mapping

from msgspec.structs import replace

from ragauge.model.scores import Scores
from ragauge.model.semantic import Bands, Zone
from ragauge.model.verdict import Gate, GateResult

P90_SHARE = 0.75
"""How much of the transitional zone a 90th percentile may take: 0.55 is 0.40 + ¾ · 0.20."""

SOURCE = Bands()


def zone_limit(zone: Zone, metric: str, bands: Bands = SOURCE) -> float:
    """The largest value of a metric that is in a zone, to four decimals."""
    width = bands.risk - bands.stable
    edge = bands.stable if zone == "stable" else bands.risk
    share = P90_SHARE if metric.partition("@")[0].endswith("_p90") else 0.0
    return round(edge + share * width, 4)


def calibrated_bands(scores: Scores, bands: Mapping[str, Bands]) -> Bands | None:
    """The bands of the embedder of a run, as the project has them now or had them when scoring."""
    if len(scores.embedders) == 1 and scores.embedders[0] in bands:
        return bands[scores.embedders[0]]
    semantic = scores.semantic
    return None if semantic is None or semantic.bands == SOURCE else semantic.bands


def with_bands(gate: Gate, scores: Scores, bands: Mapping[str, Bands]) -> Gate:
    """A gate on a zone with the threshold of the run's embedder; any other as it is."""
    if gate.zone is None:
        return gate
    own = calibrated_bands(scores, bands) or SOURCE
    limit = zone_limit(gate.zone, gate.metric, own)
    return replace(gate, threshold=limit, given=limit_text(limit))


def limit_text(limit: float) -> str:
    """A threshold with all of its decimals, two at least."""
    return max(f"{limit:.2f}", f"{limit:g}", key=len)


def in_bands(
    result: GateResult, scores: Scores, bands: Mapping[str, Bands], *, required: bool
) -> GateResult:
    """Say by which bands a gate was judged, or that its ΔS decides nothing.

    `required`: a gate that is not judged blocks the verdict.
    """
    gate = result.gate
    if gate.zone is None or result.value is None:
        return result
    embedder = "an embedder that no trace names"
    if scores.embedders:  # up to the hash of its weights, which nobody reads
        embedder = scores.embedders[0].partition("@")[0]
    own = calibrated_bands(scores, bands)
    if own is None:
        return _noted(result, f"by the source's numbers: no bands are calibrated for {embedder}")
    fit = own.calibration
    if fit is not None and not fit.judged:
        note = f"ΔS of {embedder} does not tell evidence from {fit.against} (AUC {fit.auc:.2f})"
        # How often it would decide wrongly is nobody's matter either.
        unjudged = replace(result, margin=None, reason=note, chances=None, caution=None)
        if required:
            return replace(unjudged, status="not-evaluable", code="unjudged-delta-s")
        return replace(unjudged, status="not-judged")
    limit = zone_limit(gate.zone, gate.metric)
    by_source = "pass" if result.value <= limit else "fail"
    note = f"bands of {embedder}; by the source's numbers (<= {limit_text(limit)}): {by_source}"
    return _noted(result, note)


def _noted(result: GateResult, note: str) -> GateResult:
    return replace(result, reason=note if result.reason is None else f"{result.reason}; {note}")
