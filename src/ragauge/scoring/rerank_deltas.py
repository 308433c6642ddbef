"""What a reranker changed: the metrics of retrieval on the lists before it and after it."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct
from msgspec.structs import replace

from ragauge.files.open import PathLike
from ragauge.formats.hits import hit
from ragauge.formats.load import load_gold, load_traces
from ragauge.model.trace import Trace
from ragauge.scoring.score import score

METRICS = ("retrieval.recall", "retrieval.mrr", "retrieval.ndcg")
_BEFORE = "hits_before_rerank"


class RerankDelta(Struct, frozen=True):
    """A metric over the questions whose hits were put in another order."""

    metric: str
    before: float
    after: float
    n: int


def rerank_deltas(
    gold: PathLike, traces: PathLike, *, k: Sequence[int] = (1, 5, 10)
) -> list[RerankDelta]:
    """The metrics of the traces that have both lists; none where no reranker was used."""
    reranked = [trace for trace in load_traces(traces).traces if _BEFORE in trace.extra]
    if not reranked:
        return []
    asked = {trace.qid for trace in reranked}
    items = [item for item in load_gold(gold).items if item.qid in asked]
    if not items:
        return []
    first, last = (
        score(items, stage, metrics=METRICS, k=k, profile="all", intervals=False).metrics
        for stage in ([_before(trace) for trace in reranked], reranked)
    )
    deltas = []
    for metric, after in last.items():
        before = first[metric]
        if after.value is not None and before.value is not None:
            deltas.append(RerankDelta(metric, before.value, after.value, after.n))
    return deltas


def _before(trace: Trace) -> Trace:
    entries = trace.extra[_BEFORE]
    hits = tuple(hit(entry, f"{_BEFORE}[{rank}]") for rank, entry in enumerate(entries))
    return replace(trace, hits=hits)
