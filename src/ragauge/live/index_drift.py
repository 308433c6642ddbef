"""Index drift: two indexes under one build, and a change of the documents that are retrieved.

More than one index hash, embedder, metric, analyzer or chunker under one build within 5 minutes
means that answers depend on which replica was asked. Drift of what is retrieved is the population
stability index (PSI) of documents against traces of the last week. A PSI of samples is never 0,
so its noise is measured by shuffling the same traces, and only what exceeds the noise counts.
"""

from __future__ import annotations

import zlib
from collections import Counter
from collections.abc import Sequence
from hashlib import blake2b
from typing import NamedTuple

import msgspec
import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from ragauge.ids import parts_of
from ragauge.live.alert_rules import Measurement
from ragauge.live.database import LiveDatabase
from ragauge.stats.resampling import SEED

MINUTE = 60_000
DRIFT_MINUTES = 5
FACTS = ("index_hash", "embed_model", "metric", "analyzer", "chunker_version")

COMMON = 50  # documents with a bin of their own
OTHERS = 50  # bins that all other documents share by a hash of their id
NEW = COMMON + OTHERS
"""The bin of documents that the baseline does not have: a hash would hide them in the rest."""

SHUFFLES = 399
HALF = 0.5  # added to every bin, so that an empty one has a logarithm
FEWEST_TRACES = 100  # of either side
MOST_TRACES = 1_000
BURST = 60 * MINUTE
BASELINE_GAP = 60 * MINUTE
BASELINE_STAYS = 60 * MINUTE
BASELINE_SPAN = 7 * 24 * 60 * MINUTE
BASELINE_SLOTS = 40


class FactsSeen(Struct, frozen=True):
    """The values of one fact under one build, and how many traces had each."""

    tenant: str
    app: str
    build: str
    fact: str
    values: dict[str, int]


class RetrievedDocuments(Struct, frozen=True):
    """The documents of a trace's hits, and the burst that it came in.

    A burst is a question within an hour: what many ask at once comes and goes together.
    """

    burst: str
    documents: tuple[str, ...]


def apps_with_traces(database: LiveDatabase) -> list[tuple[str, str]]:
    """Tenant and app of all traces; one look into the index for each, however many traces."""
    apps: list[tuple[str, str]] = []
    sql = "SELECT tenant, app FROM live_traces ORDER BY tenant, app LIMIT 1"
    rows = database.read(sql)
    while rows:
        apps.append((rows[0][0], rows[0][1]))
        sql = (
            "SELECT tenant, app FROM live_traces WHERE (tenant, app) > (?, ?)"
            " ORDER BY tenant, app LIMIT 1"
        )
        rows = database.read(sql, apps[-1])
    return apps


def last_traffic(database: LiveDatabase, tenant: str, app: str) -> int | None:
    """The end of the last minute with a trace of an app, in milliseconds; None without any."""
    sql = "SELECT max(minute) FROM live_traces WHERE tenant = ? AND app = ?"
    minute = database.read(sql, (tenant, app))[0][0]
    return None if minute is None else (int(minute) + 1) * MINUTE


def facts_seen(database: LiveDatabase, tenant: str, app: str, now: int) -> list[FactsSeen]:
    """What traces of the last 5 minutes say of their index, by build and fact.

    A trace that does not name a fact says nothing about it.
    """
    rows = database.read(
        "SELECT build, index_hash, index_facts, count(*) FROM live_traces"
        " WHERE tenant = ? AND app = ? AND minute >= ? AND arrived > ? AND arrived <= ?"
        " GROUP BY build, index_hash, index_facts",
        (
            tenant,
            app,
            (now - DRIFT_MINUTES * MINUTE) // MINUTE,
            now - DRIFT_MINUTES * MINUTE,
            now,
        ),
    )
    seen: dict[tuple[str, str], Counter[str]] = {}
    for build, index_hash, facts_json, count in rows:
        facts = msgspec.json.decode(facts_json)
        for fact in FACTS:
            value = facts.get(fact) or (index_hash if fact == "index_hash" else None)
            if value:
                seen.setdefault((build, fact), Counter())[str(value)] += int(count)
    return [
        FactsSeen(tenant, app, build, fact, dict(sorted(values.items())))
        for (build, fact), values in sorted(seen.items())
    ]


class DocumentDrift:
    """The PSI of windows against a sample of the week before, which is kept for an hour."""

    def __init__(self, database: LiveDatabase) -> None:
        self.database = database
        self._baselines: dict[tuple[str, str], tuple[int, list[RetrievedDocuments]]] = {}

    def measure(self, tenant: str, app: str, begins: int, ends: int) -> Measurement:
        """The PSI of an app's window above chance; its n is 0 where no trace names a document."""
        current = self._sample(tenant, app, begins, ends, slots=DRIFT_MINUTES)
        if not current:
            return Measurement()
        taken, baseline = self._baselines.get((tenant, app), (0, []))
        # What is younger than an hour may be what drifts.
        end = begins - BASELINE_GAP
        if not 0 <= end - taken < BASELINE_STAYS or not baseline:
            begin = self._first(tenant, app, end - BASELINE_SPAN)
            baseline = self._sample(tenant, app, begin, end, slots=BASELINE_SLOTS)
            self._baselines[tenant, app] = end, baseline
        return document_psi(current, baseline)

    def _first(self, tenant: str, app: str, earliest: int) -> int:
        """When the first trace of an app came, of those from a time on."""
        sql = "SELECT min(minute) FROM live_traces WHERE tenant = ? AND app = ? AND minute >= ?"
        minute = self.database.read(sql, (tenant, app, earliest // MINUTE))[0][0]
        return earliest if minute is None else max(earliest, int(minute) * MINUTE)

    def _sample(
        self, tenant: str, app: str, begins: int, ends: int, *, slots: int
    ) -> list[RetrievedDocuments]:
        """Traces from all of a time: as many of each of some equal parts of it."""
        span = max(1, (ends - begins) // slots)
        traces = []
        for start in range(begins, ends, span):
            rows = self.database.read(
                "SELECT question_key, arrived, measured FROM live_traces"
                " WHERE tenant = ? AND app = ? AND minute >= ? AND minute <= ?"
                " AND arrived >= ? AND arrived < ? AND measured IS NOT NULL"
                " ORDER BY minute, trace_id LIMIT ?",
                (
                    tenant,
                    app,
                    start // MINUTE,
                    (start + span) // MINUTE,
                    start,
                    min(start + span, ends),
                    MOST_TRACES // slots,
                ),
            )
            traces += [
                RetrievedDocuments(f"{question} {int(arrived) // BURST}", _documents(packed))
                for question, arrived, packed in rows
            ]
        return [trace for trace in traces if trace.documents]


class _Hit(Struct):
    id: str
    doc: str | None = None


class _Trace(Struct):
    hits: tuple[_Hit, ...] = ()


_decode_trace = msgspec.json.Decoder(_Trace).decode


def _documents(packed: bytes) -> tuple[str, ...]:
    hits = _decode_trace(zlib.decompress(packed)).hits
    return tuple(dict.fromkeys(hit.doc or parts_of(hit.id).doc or hit.id for hit in hits))


def document_psi(
    current: Sequence[RetrievedDocuments], baseline: Sequence[RetrievedDocuments]
) -> Measurement:
    """The PSI of the documents retrieved, above what chance gives, with its interval.

    Whole bursts are shuffled between the two sides. The value is the PSI less the mean of the
    shuffled ones; the lower bound is the PSI less what 97.5 % of them stay below, and the upper
    bound less what 2.5 % do.
    """
    current = [trace for trace in current if trace.documents]
    baseline = [trace for trace in baseline if trace.documents]
    n = len(current)
    if n < FEWEST_TRACES or len(baseline) < FEWEST_TRACES:
        return Measurement(None, n, None)
    clusters: dict[tuple[int, str], int] = {}
    sizes: list[int] = []
    numbers: dict[str, int] = {}
    entries: list[tuple[int, int, float]] = []
    for side, traces in enumerate((current, baseline)):
        for place, trace in enumerate(traces):
            cluster = clusters.setdefault((side, trace.burst or f"\0{place}"), len(clusters))
            if cluster == len(sizes):
                sizes.append(0)
            sizes[cluster] += 1
            weight = 1 / len(trace.documents)  # each trace weighs the same
            for document in trace.documents:
                entries.append((cluster, numbers.setdefault(document, len(numbers)), weight))
    hits = _Hits(
        cluster=np.array([entry[0] for entry in entries]),
        document=np.array([entry[1] for entry in entries]),
        weight=np.array([entry[2] for entry in entries]),
        bin_of=_bins(numbers, [entry[1] for entry in entries]),
    )
    seen = _psi(hits, np.array([side == 0 for side, _ in clusters]))
    random = np.random.Generator(np.random.PCG64(SEED))
    shuffled = np.empty(SHUFFLES)
    weights = np.array(sizes)
    for number in range(SHUFFLES):
        order = random.permutation(len(sizes))
        taken = np.cumsum(weights[order]) <= n
        taken[0] = True
        is_current = np.zeros(len(sizes), bool)
        is_current[order[taken]] = True
        shuffled[number] = _psi(hits, is_current)
    shuffled.sort()
    low, high = shuffled[round(0.025 * SHUFFLES) - 1], shuffled[round(0.975 * SHUFFLES)]
    value = seen - float(shuffled.mean())
    return Measurement(value, n, (seen - float(high), seen - float(low)))


class _Hits(NamedTuple):
    """All hits of both sides: the burst, the document, and the weight of each."""

    cluster: NDArray[np.int64]
    document: NDArray[np.int64]
    weight: NDArray[np.float64]
    bin_of: NDArray[np.int64]


def _bins(numbers: dict[str, int], documents: Sequence[int]) -> NDArray[np.int64]:
    """The bin of each document, by how often both sides together retrieved it."""
    counts = Counter(documents)
    ranked = sorted(numbers, key=lambda name: (-counts[numbers[name]], name))
    bins = np.zeros(len(numbers), np.int64)
    for place, name in enumerate(ranked):
        digest = blake2b(name.encode("utf-8", "surrogatepass"), digest_size=8).digest()
        shared = COMMON + int.from_bytes(digest, "big") % OTHERS
        bins[numbers[name]] = place if place < COMMON else shared
    return bins


def _psi(hits: _Hits, is_current: NDArray[np.bool_]) -> float:
    """Σ (p - q) ln(p / q) over the bins, of the shares of both sides; half a trace in each bin."""
    current = is_current[hits.cluster]
    is_old = np.bincount(hits.document[~current], minlength=len(hits.bin_of)) > 0
    bins = np.where(current & ~is_old[hits.document], NEW, hits.bin_of[hits.document])
    one, other = (
        np.bincount(bins[side], weights=hits.weight[side], minlength=NEW + 1) + HALF
        for side in (current, ~current)
    )
    p, q = one / one.sum(), other / other.sum()
    return float(((p - q) * np.log(p / q)).sum())
