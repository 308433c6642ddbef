"""What the parts of the web process share: settings, spool, access, counts, and the store."""

from __future__ import annotations

import logging
import threading
import time
import traceback
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any

from ragauge.errors import RagaugeError
from ragauge.formats.imports.span import TraceSpan
from ragauge.live.access import AccessControl, is_loopback
from ragauge.live.database import LiveDatabase, open_database
from ragauge.live.ingest_counts import IngestCounts, traces_an_hour
from ragauge.live.privacy import Redactor, user_hash_key
from ragauge.live.settings import LiveSettings
from ragauge.live.spool import Spool, SpoolReader, SpoolState, decode_spans, spool_folder
from ragauge.live.trace_sampler import TraceSampler, filling_rate
from ragauge.text import question_key

_FREE = 8
_WRITE_EVERY = 5.0
_log = logging.getLogger("ragauge.live")


def now_ms() -> int:
    """The clock of the server."""
    return int(time.time() * 1000)


class DatabasePool:
    """Connections to the store, each used by one thread at a time: `with pool() as database`."""

    def __init__(self, url: str) -> None:
        self.url = url
        self._free: list[LiveDatabase] = []
        self._lock = threading.Lock()
        self._is_closed = False

    @contextmanager
    def __call__(self) -> Iterator[LiveDatabase]:
        """A connection that nobody else uses; after a failure no old one is used again."""
        with self._lock:
            database = self._free.pop() if self._free else None
        if database is None:
            database = open_database(self.url)
        try:
            yield database
        except BaseException:
            with self._lock:
                old, self._free = [database, *self._free], []
            for one in old:
                with suppress(Exception):
                    one.close()
            raise
        with self._lock:
            if len(self._free) < _FREE and not self._is_closed:
                self._free.append(database)
                return
        database.close()

    def close(self) -> None:
        """Close what is free; what is in use is closed when it comes back."""
        with self._lock:
            self._is_closed = True
            free, self._free = self._free, []
        for database in free:
            database.close()


class LiveState:
    """One web process: what its requests share, and what it does beside them."""

    def __init__(
        self,
        settings: LiveSettings,
        store_url: str,
        *,
        gold_texts: Iterable[str] = (),
        clock: Callable[[], int] = now_ms,
    ) -> None:
        self.settings = settings
        self.store_url = store_url
        self.now = clock
        self.started = clock()
        self.databases = DatabasePool(store_url)
        with self.databases() as database:  # the tables are made here, before anybody asks
            key = user_hash_key(database)
            self.traces_an_hour = traces_an_hour(database, self.started)
        self.counts = IngestCounts(clock)
        self.redactor = Redactor(settings.redaction, key)
        gold_keys = frozenset(filter(None, map(question_key, gold_texts)))
        self.spool_folder: Path = spool_folder(settings, store_url)
        self.sampler = TraceSampler(
            settings,
            known_from=self.started,
            raised=_raised_traces(self.spool_folder, settings, self.started).items(),
            span_question=_span_question(),
            is_gold=(lambda text: question_key(text) in gold_keys) if gold_keys else None,
        )
        self.spool = Spool(self.spool_folder, most_bytes=settings.limits.spool_bytes)
        self.access = AccessControl(
            self.databases,
            per_second=settings.limits.requests_per_second,
            now=clock,
            is_local=is_loopback(settings.host),
        )
        self.admitted_bytes = 0
        """Bytes of the requests that are being read; only the event loop counts them."""
        self.faults: dict[str, int] = {}
        self.store_error: str | None = None
        self.worker_state: Callable[[], dict[str, Any]] | None = None
        self._stop = threading.Event()
        self._writer = threading.Thread(target=self._write_counts, name="counts", daemon=True)
        self._writer.start()

    def log_fault(self, part: str, error: Exception) -> None:
        """Note a fault of ours: where it was, and never what was in the data."""
        frame = traceback.extract_tb(error.__traceback__)[-1]
        place = f"{Path(frame.filename).name}:{frame.lineno}"
        self.faults[part] = self.faults.get(part, 0) + 1
        _log.error("fault in the %s: %s at %s", part, type(error).__name__, place)

    def spool_state(self) -> SpoolState:
        """How full the spool is."""
        with closing(SpoolReader(self.spool_folder)) as reader:
            return reader.state()

    @property
    def filling_rate(self) -> float | None:
        """The sampling rate at which an hour fills one window; None before any traffic."""
        if self.traces_an_hour is None:
            return None
        return filling_rate(self.traces_an_hour, self.settings.window.samples)

    def _write_counts(self) -> None:
        while not self._stop.wait(_WRITE_EVERY):
            self.write_counts()

    def write_counts(self) -> None:
        """Write the counts to the store, and see whether it is there."""
        try:
            with self.databases() as database:
                self.counts.write(database)
                self.traces_an_hour = traces_an_hour(database, self.now())
            self.store_error = None
        except RagaugeError as error:
            self.store_error = error.problems[0].message

    def close(self) -> None:
        """Write what is still in memory, and end."""
        self._stop.set()
        self._writer.join(timeout=_WRITE_EVERY)
        self.spool.close()
        self.write_counts()
        self.databases.close()


def _raised_traces(folder: Path, settings: LiveSettings, now: int) -> dict[tuple[str, str], float]:
    """The traces that the process before took by a higher rate: the rest of them may still come."""
    after = now - int(settings.assemble_longest * 1000)
    with closing(SpoolReader(folder)) as reader:
        return {
            (body.tenant, span.trace_id): body.rate
            for body in reader.raised(settings.sampling.rate, after)
            for span in decode_spans(body.body)
        }


def _span_question() -> Callable[[TraceSpan], str | None]:
    """What reads the question of a span, in the words of any vocabulary."""
    from ragauge import registry
    from ragauge.formats.imports import payload
    from ragauge.formats.imports.vocabulary import Vocabulary

    vocabularies: list[Vocabulary] = sorted(
        registry.vocabularies().values(), key=lambda one: (one.general, one.name)
    )
    readers = [(mark, one.read) for one in vocabularies for mark in one.marks]

    def question(span: TraceSpan) -> str | None:
        for mark, read in readers:
            if mark in span.attributes:
                facts = read(span)
                return facts.question or payload.question_in(facts.input)
        return None

    return question
