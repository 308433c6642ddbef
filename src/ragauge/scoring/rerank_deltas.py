"""What a reranker changed: the metrics of retrieval on the lists before it and after it.

Both lists are scored as files of their own, by the same gold set and the same rules, over the
traces that have both. A question without a reranker would only hide what it did.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from contextlib import ExitStack
from typing import Any

import msgspec
import numpy as np
from msgspec.structs import replace

from ragauge.files.ranges import Source, rows_of
from ragauge.files.temporary_file import temporary_file
from ragauge.formats.rerank_stages import (
    at_first_stage,
    at_last_stage,
    has_both_stages,
    mentions_field,
    trace_at_first_stage,
    trace_at_last_stage,
)
from ragauge.model.field_spellings import FIRST_HITS, LAST_HITS
from ragauge.model.scores import Scores, StageDelta
from ragauge.model.trace import Trace, TraceSet

METRICS = ("retrieval.recall", "retrieval.mrr@10", "retrieval.ndcg")
_BOTH = (FIRST_HITS, LAST_HITS)
_BAD = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)
_decode = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode
_encode = msgspec.json.Encoder().encode

StageScorer = Callable[[object, Source | None, ExitStack], Scores]
"""Scores the traces of one stage: those in memory, or those of a source."""


def stage_deltas(
    traces: object, source: Source | None, score_stage: StageScorer
) -> tuple[StageDelta, ...]:
    """The metrics of the traces that have both lists; none where no reranker was used."""
    with ExitStack() as stack:
        if source is not None:
            sources = _stage_sources(stack, source)
            if sources is None:
                return ()
            first, last = (score_stage(one.path, one, stack) for one in sources)
        else:
            in_memory = _reranked_traces(traces)
            if not in_memory:
                return ()
            before = tuple(map(_only_hits, map(trace_at_first_stage, in_memory)))
            after = tuple(map(_only_hits, map(trace_at_last_stage, in_memory)))
            first, last = (score_stage(stage, None, stack) for stage in (before, after))
    return tuple(_deltas(first, last))


def _stage_sources(stack: ExitStack, source: Source) -> tuple[Source, Source] | None:
    """The rows that have both lists, once with the first and once with the last."""
    if not mentions_field(source, FIRST_HITS):
        return None
    copies = [stack.enter_context(temporary_file()) for _ in range(2)]
    count = 0
    for _, data, _, _ in rows_of(source):
        try:
            row = _decode(data)
        except _BAD:
            continue  # an error elsewhere, with its line
        if has_both_stages(row):
            count += 1
            for copy, step in zip(copies, (at_first_stage, at_last_stage), strict=True):
                copy.file.write(_encode(_without_other_stages(step(row))) + b"\n")
    if not count:
        return None
    sources = []
    for copy in copies:
        copy.file.flush()
        size = os.path.getsize(copy.path)
        sources.append(
            replace(
                source, path=copy.path, start=0, size=size, layout="lines", notes=(), tabular=False
            )
        )
    return sources[0], sources[1]


def _without_other_stages(row: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in row.items() if name not in _BOTH}


def _reranked_traces(traces: object) -> list[Trace]:
    """The traces in memory that have both lists; an iterator is gone by now."""
    if isinstance(traces, TraceSet):
        traces = traces.traces
    if not isinstance(traces, list | tuple):
        return []
    return [
        trace
        for trace in traces
        if isinstance(trace, Trace) and isinstance(trace.extra.get(FIRST_HITS), list)
    ]


def _only_hits(trace: Trace) -> Trace:
    return replace(trace, extra=_without_other_stages(trace.extra))


def _deltas(first: Scores, last: Scores) -> Iterable[StageDelta]:
    assert first.per_question is not None and last.per_question is not None
    for metric, after in last.metrics.items():
        before = first.metrics[metric]
        if after.value is None or before.value is None:
            continue
        better = worse = 0
        if metric in last.per_question.metrics:
            change = last.per_question.of(metric) - first.per_question.of(metric)
            better, worse = int(np.sum(change > 0)), int(np.sum(change < 0))
        yield StageDelta(
            metric=metric,
            first=before.value,
            last=after.value,
            n=after.n,
            better=better,
            worse=worse,
        )
