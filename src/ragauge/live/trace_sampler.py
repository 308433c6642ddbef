"""Sampling: which traces are stored, decided by a stable hash before anything is written.

The same trace is always in or always out, on every server. A trace that its hash leaves out may
still come in by another rate, when one of its spans has an error or asks a gold question. That may
be seen in a later request than its first spans, so these wait in memory for a while. They are lost
there when the process ends, or for want of room; `known_from` says since when none was.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterable, Sequence
from hashlib import blake2b
from threading import Lock
from typing import Any, NamedTuple

from msgspec import Struct

from ragauge.formats.imports.span import TraceSpan
from ragauge.live.settings import LiveSettings, Sampling
from ragauge.live.spool import decode_spans, encode_spans

_PROMOTED = 100_000
"""So many traces are remembered whose rate was raised."""
_HELD_BYTES = 64 * 2**20

_SESSIONS = ("session.id", "gen_ai.conversation.id", "langfuse.session.id")
"""Attributes that name the session of a trace."""


def hash_share(key: str) -> float:
    """Where a key stands between 0 and 1, the same everywhere; always below 1."""
    digest = blake2b(key.encode("utf-8", "surrogatepass"), digest_size=8).digest()
    return (int.from_bytes(digest, "big") >> 11) / 2**53


class SampledItems(NamedTuple):
    """What is stored of a request, by the rate that let it in, and how much was left out."""

    by_rate: dict[float, list[TraceSpan]]
    left_out: int
    released: Sequence[tuple[str, str]] = ()
    """The traces whose earlier spans come with these; forgotten when all is on disk."""
    known_from: int = 0
    """Of a trace that began before, by a clock in milliseconds, earlier spans may be lost."""


class _Held(Struct, gc=False):
    """Spans of a trace that is out so far, as they were encoded: objects would take thrice as much.

    `since` is when the first of them came.
    """

    since: int
    parts: list[bytes] = []
    size: int = 0

    def spans(self) -> list[TraceSpan]:
        return [span for part in self.parts for span in decode_spans(part)]


class TraceSampler:
    """Decides for the traces of one server. Requests may come from several threads.

    `known_from` is when it began. `raised` are traces that an earlier process took by another rate,
    and that are not complete yet.
    """

    def __init__(
        self,
        settings: LiveSettings,
        *,
        known_from: int = 0,
        raised: Iterable[tuple[tuple[str, str], float]] = (),
        span_question: Callable[[TraceSpan], str | None] | None = None,
        is_gold: Callable[[str], bool] | None = None,
    ) -> None:
        self.rates: Sampling = settings.sampling
        self.by_session = settings.sampling.by == "session"
        self.longest_ms = int(settings.assemble_longest * 1000)
        self.span_question = span_question
        self.is_gold = is_gold
        self.takes_all = self.rates.rate >= 1
        own = [self.rates.rate, self.rates.errors]
        self.most = max([*own, self.rates.gold] if is_gold is not None else own)
        self._lock = Lock()
        self._promoted: OrderedDict[tuple[str, str], float] = OrderedDict(raised)
        self._sessions: OrderedDict[tuple[str, str], str] = OrderedDict()
        self._held: OrderedDict[tuple[str, str], _Held] = OrderedDict()
        self._held_bytes = 0
        self._known_from = known_from

    def sample_spans(self, tenant: str, spans: list[TraceSpan], *, now: int) -> SampledItems:
        """Sample the spans of a request; earlier spans may come with them."""
        if self.takes_all or not spans:
            return SampledItems({1.0: spans} if spans else {}, 0)
        traces: dict[str, list[TraceSpan]] = {}
        for span in spans:
            traces.setdefault(span.trace_id, []).append(span)
        by_rate: dict[float, list[TraceSpan]] = {}
        released = []
        left_out = 0
        with self._lock:
            self._forget(now)
            for trace_id, own in traces.items():
                key = tenant, trace_id
                share = hash_share(self._sampling_key(key, own))
                rate = max(self._rate_of_spans(own), self._promoted.get(key, 0.0))
                if share < rate:
                    if rate > self.rates.rate:
                        self._remember(self._promoted, key, rate)
                    chosen = by_rate.setdefault(rate, [])
                    if key in self._held:
                        chosen += self._held[key].spans()
                        released.append(key)
                    chosen += own
                else:
                    left_out += len(own)
                    if share < self.most:
                        self._hold(key, own, now)
        return SampledItems(by_rate, left_out, released, self._known_from)

    def forget(self, released: Iterable[tuple[str, str]]) -> None:
        """Forget spans that are on disk by now."""
        with self._lock:
            for key in released:
                held = self._held.pop(key, None)
                self._held_bytes -= 0 if held is None else held.size

    def sample_row(self, trace_id: str, row: dict[str, Any]) -> float | None:
        """The rate that lets a native row in; None where it stays out."""
        rate = self.rates.rate
        if row.get("error"):
            rate = max(rate, self.rates.errors)
        question = row.get("question")
        if self.is_gold is not None and isinstance(question, str) and self.is_gold(question):
            rate = max(rate, self.rates.gold)
        session = row.get("session")
        key = session if self.by_session and isinstance(session, str) else trace_id
        return rate if hash_share(key) < rate else None

    def _sampling_key(self, key: tuple[str, str], spans: Iterable[TraceSpan]) -> str:
        if not self.by_session:
            return key[1]
        session = next((name for span in spans if (name := _session(span)) is not None), None)
        if session is not None:
            self._remember(self._sessions, key, session)
            return session
        return self._sessions.get(key, key[1])

    def _rate_of_spans(self, spans: Iterable[TraceSpan]) -> float:
        rate = self.rates.rate
        for span in spans:
            if span.error is not None:
                rate = max(rate, self.rates.errors)
            if self.is_gold is not None and self.span_question is not None and not span.parent_id:
                question = self.span_question(span)
                if question is not None and self.is_gold(question):
                    rate = max(rate, self.rates.gold)
        return rate

    def _remember(self, memory: OrderedDict[Any, Any], key: tuple[str, str], value: object) -> None:
        memory[key] = value
        memory.move_to_end(key)
        if len(memory) > _PROMOTED:
            memory.popitem(last=False)

    def _hold(self, key: tuple[str, str], spans: list[TraceSpan], now: int) -> None:
        held = self._held.get(key)
        if held is None:
            held = self._held[key] = _Held(now)
        part = encode_spans(spans)
        held.parts.append(part)
        held.size += len(part)
        self._held_bytes += len(part)
        while self._held_bytes > _HELD_BYTES and self._held:
            self._known_from = max(self._known_from, self._drop_oldest() + 1)

    def _forget(self, now: int) -> None:
        while self._held and next(iter(self._held.values())).since < now - self.longest_ms:
            self._drop_oldest()

    def _drop_oldest(self) -> int:
        """Drop the spans that wait longest; since when they did."""
        _, held = self._held.popitem(last=False)
        self._held_bytes -= held.size
        return held.since


def _session(span: TraceSpan) -> str | None:
    for name in _SESSIONS:
        value = span.attributes.get(name)
        if isinstance(value, str) and value:
            return value
    return None


def filling_rate(traces_an_hour: float, samples: int) -> float:
    """The rate at which an hour of traffic fills one window; 1 where even all is too little."""
    return 1.0 if traces_an_hour <= samples else samples / traces_an_hour
