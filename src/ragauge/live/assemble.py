"""Spans that were spooled become traces: which are complete, and what their spans make.

A trace is complete when its root has ended and nothing came for a moment, when nothing came for
longer, or when it is open for too long. Time is what the spool has been read up to, not a clock:
spans that wait in a backlog are not late.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from operator import attrgetter
from typing import Any

from msgspec import Struct

from ragauge.formats.imports.coverage import Coverage
from ragauge.formats.imports.foreign_format import ImportOptions, Row
from ragauge.formats.imports.span import TraceSpan
from ragauge.formats.imports.trace_assembler import traces_of
from ragauge.live.settings import LiveSettings
from ragauge.live.spool import SpooledBody, decode_spans

SKEW_BEFORE = 24 * 3600 * 1000
SKEW_AFTER = 5 * 60 * 1000
"""Milliseconds by which the clock of a span may differ from the time of its arrival: spans of a
long job or of a slow queue are old, and none is from the future."""
SENT_WITHIN = 10_000
"""Milliseconds within which exporters send a span that has ended, usually."""

USER_NAMES = (
    "user_key", "user.id", "enduser.id", "langfuse.user.id", "user_id", "userId", "user.email",
    "user.name",
)  # fmt: skip
"""Attributes that name the user; the collector has put a keyed hash there."""

_start = attrgetter("start")


class PendingTrace(Struct, kw_only=True):
    """The spans of a trace so far, and the spooled bodies that they came in."""

    tenant: str
    trace_id: str
    rate: float
    first: int
    last: int
    known_from: int = 0
    spans: dict[str, TraceSpan] = {}
    bodies: set[int] = set()
    root_ended: bool = False
    conflicts: int = 0

    def add(self, span: TraceSpan) -> None:
        """Take a span; one that was here before may only say the same."""
        before = self.spans.get(span.span_id)
        if before is None or before.end == 0:  # what was sent when it began says less
            self.spans[span.span_id] = span
        elif span.end != 0 and span != before:
            self.conflicts += 1
        self.root_ended = self.root_ended or (span.parent_id is None and span.end > 0)

    @property
    def skewed(self) -> bool:
        """Whether the clock of its spans is not that of this machine."""
        start = min(map(_start, self.spans.values())) // 1_000_000
        return not self.first - SKEW_BEFORE <= start <= self.last + SKEW_AFTER

    def may_lack_spans(self, longest: int) -> bool:
        """Whether earlier spans may be lost, where it was only kept for its error or its question.

        They waited in the memory of the collector; `known_from` says since when all are there.
        """
        if self.first >= self.known_from + longest:
            return False
        spans = self.spans.values()
        if all(span.parent_id is not None for span in spans):
            return True  # nobody knows when it began
        ahead = max(span.end for span in spans) // 1_000_000 - self.last
        start: int = min(map(_start, spans)) // 1_000_000
        if ahead > 0:  # its clock is, by that or more
            start -= ahead + SENT_WITHIN
        return start < self.known_from

    def attribute(self, *names: str) -> str | None:
        """The first of some attributes that a span or its resource has, by the time of spans."""
        spans = list(self.spans.values())
        for span in sorted(spans, key=_start) if len(spans) > 1 else spans:
            for attributes in (span.attributes, span.resource):
                for name in names:
                    if name in attributes:
                        value = attributes[name]
                        if isinstance(value, str) and value:
                            return value
        return None


class Assembler:
    """Holds the spans of traces that are not complete yet."""

    def __init__(self, settings: LiveSettings) -> None:
        self.idle = round(settings.assemble_after * 1000)
        self.after_root = round(settings.assemble_root * 1000)
        self.longest = round(settings.assemble_longest * 1000)
        self.open: dict[tuple[str, str], PendingTrace] = {}

    def add(self, body: SpooledBody) -> int:
        """Take the spans of a body; returns how many traces they are of."""
        tenant, received, rate = body.tenant, body.received, body.rate
        keys = set()
        for span in decode_spans(body.body):
            key = tenant, span.trace_id
            trace = self.open.get(key)
            if trace is None:
                trace = self.open[key] = PendingTrace(
                    tenant=tenant,
                    trace_id=span.trace_id,
                    rate=rate,
                    first=received,
                    last=received,
                    known_from=body.known_from,
                )
            trace.add(span)
            if key not in keys:
                keys.add(key)
                trace.bodies.add(body.number)
                trace.last = max(trace.last, received)
                trace.rate = max(trace.rate, rate)
                trace.known_from = min(trace.known_from, body.known_from)
        return len(keys)

    def complete(self, read_until: int) -> list[PendingTrace]:
        """The traces that are complete when the spool has been read up to a time."""
        return [trace for trace in self.open.values() if self._is_complete(trace, read_until)]

    def forget(self, traces: Iterable[PendingTrace]) -> None:
        """Let go of traces that are stored."""
        for trace in traces:
            del self.open[trace.tenant, trace.trace_id]

    def _is_complete(self, trace: PendingTrace, read_until: int) -> bool:
        quiet = read_until - trace.last
        return (
            quiet >= self.idle
            or (trace.root_ended and quiet >= self.after_root)
            or read_until - trace.first >= self.longest
        )


class AssembledTrace(Struct, frozen=True):
    """A complete trace and the row that its spans make; None where they are of no RAG system."""

    trace: PendingTrace
    row: Row | None


def rows_of(traces: Iterable[PendingTrace]) -> Iterator[AssembledTrace]:
    """The row of each trace, in their order."""
    by_tenant: dict[str, dict[str, PendingTrace]] = {}
    for trace in traces:
        by_tenant.setdefault(trace.tenant, {})[trace.trace_id] = trace
    for group in by_tenant.values():
        spans = (span for trace in group.values() for span in trace.spans.values())
        rows: dict[str, Row] = {}
        for row in traces_of(spans, ImportOptions(), Coverage(), in_memory=True):
            rows[row["trace_id"]] = row
        for trace_id, trace in group.items():
            assembled = rows.get(trace_id)
            if assembled is not None:
                assembled.update(_facts_of(trace, assembled))
            yield AssembledTrace(trace, assembled)


def _facts_of(trace: PendingTrace, row: Row) -> dict[str, Any]:
    """What spans say beside the trace itself: the app, its build, and who asked."""
    facts = {
        "app": trace.attribute("service.name"),
        "build": row.get("build") or trace.attribute("service.version", "deployment.id"),
        "user_key": trace.attribute(*USER_NAMES),
    }
    return {name: value for name, value in facts.items() if value is not None}
