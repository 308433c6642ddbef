"""The worst traces of a window for a metric: where somebody who was paged begins to look."""

from __future__ import annotations

import math
import zlib
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from statistics import median

import msgspec
from msgspec import Struct

from ragauge.live.database import LiveDatabase
from ragauge.live.pairs import refusal_reader
from ragauge.model.trace import Trace
from ragauge.stats.kendall import tau_of_lists

MINUTE = 60_000
WORST = 5
MOST_TRACES = 5_000
"""Of so many traces the worst are chosen: the first of a window by their ids, which are random."""

_refuses = refusal_reader()


class WindowTrace(Struct, frozen=True):
    """A trace of a window, with the question that it shares with its repeats."""

    trace_id: str
    question: str
    trace: Trace


def worst_traces(
    database: LiveDatabase,
    tenant: str,
    app: str,
    build: str | None,
    times: tuple[int, int],
    metric: str,
) -> list[str]:
    """The ids of the five worst traces of an app, or of one build, within two times.

    Traces that are not bad at all are not among them; metrics that need gold have none.
    """
    begins, ends = times
    rows = database.read(
        "SELECT trace_id, question_key, measured FROM live_traces WHERE tenant = ? AND app = ?"
        " AND minute >= ? AND minute <= ? AND arrived >= ? AND arrived <= ?"
        f"{' AND build = ?' if build is not None else ''} AND measured IS NOT NULL"
        " ORDER BY trace_id LIMIT ?",
        (
            tenant,
            app,
            begins // MINUTE,
            ends // MINUTE,
            begins,
            ends,
            *(() if build is None else (build,)),
            MOST_TRACES,
        ),
    )
    traces = [
        WindowTrace(
            trace_id, question or "", msgspec.json.decode(zlib.decompress(packed), type=Trace)
        )
        for trace_id, question, packed in rows
    ]
    badness = _BADNESS.get(metric)
    if badness is not None:
        marks = [badness(one.trace) for one in traces]
    elif metric in _OF_REPEATS:
        marks = _OF_REPEATS[metric](traces)
    else:
        return []
    ranked = sorted(
        (-mark, one.trace_id)
        for mark, one in zip(marks, traces, strict=True)
        if mark is not None and mark > 0
    )
    return [trace_id for _, trace_id in ranked[:WORST]]


# --- how bad a trace is; None where a metric does not look at it ---


def _latency(trace: Trace) -> float | None:
    return None if trace.timing is None else trace.timing.total


def _delta_s(trace: Trace) -> float | None:
    cited = [] if trace.answer is None else [entry.delta_s for entry in trace.answer.listed]
    if trace.answer is not None and trace.answer.delta_s is not None:
        cited = [trace.answer.delta_s]
    values = [value for value in cited if value is not None]
    values = values or [hit.delta_s for hit in trace.hits[:5] if hit.delta_s is not None]
    return median(values) if values else None


def _invalid_citations(trace: Trace) -> float | None:
    if trace.answer is None or not trace.answer.listed:
        return None
    valid = {hit.id for hit in trace.hits} - set(trace.unknown_ids or ())
    return float(sum(entry.id not in valid for entry in trace.answer.listed))


def _uncovered(trace: Trace) -> float | None:
    """An answer without citations is as bad as one whose citations are all wrong."""
    answer = trace.answer
    if answer is None or trace.error is not None or _refuses(answer):
        return None
    wrong = _invalid_citations(trace)
    return 1.0 if wrong is None else wrong / len(answer.listed)


_BADNESS: dict[str, Callable[[Trace], float | None]] = {
    "live.coverage": _uncovered,
    "live.citation_validity": _invalid_citations,
    "live.delta_s_median": _delta_s,
    "live.delta_s_p90": _delta_s,
    "live.empty": lambda trace: float(not trace.hits),
    "live.error": lambda trace: float(trace.error is not None),
    "live.latency_p50": _latency,
    "live.latency_p95": _latency,
}


def _disagreement(traces: Sequence[WindowTrace]) -> list[float | None]:
    """How far the ranking of a trace is from those of the other traces of its question."""
    repeats: dict[str, list[WindowTrace]] = defaultdict(list)
    for one in traces:
        repeats[one.question].append(one)
    marks: list[float | None] = []
    for one in traces:
        ids = [hit.id for hit in one.trace.hits]
        taus = [
            tau_of_lists(ids, [hit.id for hit in other.trace.hits])
            for other in repeats[one.question][:20]
            if other is not one
        ]
        values = [1 - tau for tau in taus if tau is not None]
        marks.append(math.fsum(values) / len(values) if values else None)
    return marks


def _flips(traces: Sequence[WindowTrace]) -> list[float | None]:
    """Whether a trace cites other than most traces of its question."""
    usual: dict[str, Counter[tuple[str, ...]]] = defaultdict(Counter)
    for one in traces:
        usual[one.question][_cited(one.trace)] += 1
    marks: list[float | None] = []
    for one in traces:
        counts = usual[one.question]
        most = max(counts.values())
        marks.append(1 - counts[_cited(one.trace)] / most if counts.total() > 1 else None)
    return marks


def _cited(trace: Trace) -> tuple[str, ...]:
    return () if trace.answer is None else tuple(sorted({one.id for one in trace.answer.listed}))


_OF_REPEATS: dict[str, Callable[[Sequence[WindowTrace]], list[float | None]]] = {
    "live.kendall_tau": _disagreement,
    "live.lambda_flip": _flips,
}
