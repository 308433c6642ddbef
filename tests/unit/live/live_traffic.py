"""Live traffic for tests: a spool in memory, rows as apps send them, and a worker."""

from __future__ import annotations

import random
from collections.abc import Iterable, Sequence
from hashlib import blake2b
from pathlib import Path
from typing import Any

import msgspec

from ragauge.formats.imports.span import TraceSpan
from ragauge.live.database import SteadyDatabase
from ragauge.live.settings import LiveSettings, Sampling
from ragauge.live.spool import BodyKind, Spool, SpoolReader, encode_spans
from ragauge.live.trace_values import KnownIds, LiveGold
from ragauge.live.worker import ScoredTraffic, WorkerContext

MINUTE = 60_000
START = 29_800_000 * MINUTE
"""The moment at which the traffic of tests begins."""


class SpoolOfTests:
    """A real spool, and what tests put into it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.writer = Spool(folder, most_bytes=2**30)
        self.reader = SpoolReader(folder)

    def put(
        self,
        kind: BodyKind,
        body: bytes,
        received: int,
        *,
        tenant: str = "",
        rate: float = 1.0,
        known_from: int = 0,
    ) -> None:
        """Put a body, and wait until it is on disk."""
        key = blake2b(f"{tenant}\0{received}".encode() + body, digest_size=16).digest()
        put = self.writer.put(tenant, key, kind, received, body, rate, known_from=known_from)
        put.result(10)

    def put_rows(self, rows: Iterable[dict[str, Any]], received: int, **options: Any) -> None:
        """Put native rows."""
        self.put("rows", b"\n".join(map(msgspec.json.encode, rows)), received, **options)

    def put_spans(self, spans: Iterable[TraceSpan], received: int, **options: Any) -> None:
        """Put spans."""
        self.put("spans", encode_spans(spans), received, **options)

    def close(self) -> None:
        """End the writer."""
        self.writer.close()
        self.reader.close()


def worker(
    spool: SpoolOfTests,
    *,
    gold: Sequence[dict[str, Any]] = (),
    known: KnownIds | None = None,
    settings: LiveSettings | None = None,
    url: str | None = None,
) -> ScoredTraffic:
    """A worker's traffic part, as a new process would build it."""
    return ScoredTraffic(
        WorkerContext(
            settings=settings or LiveSettings(sampling=Sampling(rate=1.0)),
            database=SteadyDatabase(url or f"sqlite:///{spool.folder / 'live.db'}"),
            spool=SpoolReader(spool.folder),
            folder=spool.folder,
            gold=LiveGold([msgspec.json.encode(row) for row in gold]),
            known_ids=known,
        )
    )


GOLD = [
    {"qid": "G1", "question": "What is SCU?", "paraphrases": ["Explain SCU"], "type": "lookup",
     "answerable": True, "relevant": ["a.md#1"], "gold_citations": ["a.md#1"]},
    {"qid": "G2", "question": "Where is the switch?", "type": "howto", "answerable": True,
     "relevant": ["b.md#2", "b.md#3"]},
    {"qid": "G3", "question": "Who won in 2090?", "answerable": False, "type": "lookup"},
]  # fmt: skip


def traffic(count: int, *, seed: int = 1, builds: Sequence[str] = ("v1",)) -> list[dict[str, Any]]:
    """Rows of an app: some ask gold questions, some repeat, some fail, some refuse."""
    draw = random.Random(seed)
    rows = []
    for number in range(count):
        kind = draw.random()
        question = f"How do I do thing {draw.randrange(count // 2)}?"
        if kind < 0.15:
            question = draw.choice(["what is  scu?", "Explain SCU", "Where is the switch?",
                                    "Who won in 2090?"])  # fmt: skip
        hits = [
            {
                "id": f"{draw.choice('abc')}.md#{draw.randrange(1, 6)}",
                "text": f"A text of hit {place} that nobody measures.",
                "score": 1 - place / 10,
                "delta_s": round(draw.random(), 3),
            }
            for place in range(draw.randrange(5))
        ]
        ids = [hit["id"] for hit in hits]
        row: dict[str, Any] = {
            "trace_id": f"{number:032x}",
            "app": "shop",
            "build": draw.choice(builds),
            "index_hash": draw.choice(["i1", "i1", "i2"]),
            "question": question,
            "hits": hits,
            "answer": draw.choice(["It is so.", "I don't know.", "not in context"]),
            "citations": draw.sample(ids, min(len(ids), 1)) + ["z.md#9"] * (draw.random() < 0.1),
            "latency_ms": round(draw.expovariate(1 / 400), 2),
            "session": f"s{number}",
        }
        if kind > 0.85:  # cites by the number of a hit, in the text alone
            row["answer"] = "It is so [1]."
            del row["citations"]
        if kind > 0.95:
            row = {name: row[name] for name in ("trace_id", "app", "build", "question")}
            row["error"] = "timeout after 30 s"
        rows.append(row)
    return rows
