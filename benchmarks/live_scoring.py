"""Scoring of live traces: CPU and memory of the worker for spans and for native rows.

    python -m benchmarks.live_scoring [--traces 30000] [--kind spans|rows] [--store URL]

Bodies are made first and lie in a real spool; what is measured is one worker that reads, assembles,
scores and stores them, sums their minutes and closes their window, by a clock of its own. The
target is 0.5 s of CPU for 1,000 traces and 300 MB for a window of 30,000.
"""

from __future__ import annotations

import argparse
import json
import random
import resource
import sys
import tempfile
import time
from hashlib import blake2b
from pathlib import Path
from typing import Any

import msgspec

from ragauge.formats.imports.span import TraceSpan
from ragauge.live.settings import LiveSettings, Sampling
from ragauge.live.spool import Spool, encode_spans
from ragauge.live.worker import LiveWorker, ScoredTraffic, worker_context
from ragauge.live.worker_process import WorkerOrder

MINUTE = 60_000
START = 29_800_000 * MINUTE
SENTENCE = "the valve of a pump is closed by hand when its lamp shows red and water runs"
WORDS = SENTENCE.split()


def _text(draw: random.Random, count: int) -> str:
    return " ".join(draw.choices(WORDS, k=count))


def native_row(draw: random.Random, number: int) -> dict[str, Any]:
    """A trace with five hits of 60 words, an answer and a citation; a tenth asks again."""
    asked = draw.randrange(200) if draw.random() < 0.1 else number
    hits = [
        {
            "id": f"doc{draw.randrange(400)}.md#{place}",
            "score": 0.9 - place / 10,
            "text": _text(draw, 60),
        }
        for place in range(5)
    ]
    return {
        "trace_id": f"{number:032x}",
        "app": "shop",
        "build": "v7",
        "index_hash": "i1",
        "question": f"How is part {asked} closed?",
        "hits": hits,
        "answer": _text(draw, 40),
        "citations": [hits[0]["id"]],
        "latency_ms": draw.expovariate(1 / 400),
    }


def spans_of(row: dict[str, Any], received: int) -> list[TraceSpan]:
    """The same as three spans of OpenInference: chain, retriever, model."""
    start = received * 1_000_000
    resource_of_app = {"service.name": row["app"], "service.version": row["build"]}
    output = json.dumps({"answer": row["answer"], "citations": row["citations"]})
    documents = {}
    for place, hit in enumerate(row["hits"]):
        name = f"retrieval.documents.{place}.document"
        documents[f"{name}.id"] = hit["id"]
        documents[f"{name}.content"] = hit["text"]
        documents[f"{name}.score"] = hit["score"]
    kinds = (
        ("CHAIN", None, {"input.value": row["question"], "output.value": output}),
        ("RETRIEVER", 1, {"input.value": row["question"], **documents}),
        ("LLM", 1, {"output.value": row["answer"]}),
    )
    return [
        TraceSpan(
            row["trace_id"], f"{place + 1:016x}", None if parent is None else f"{parent:016x}",
            kind.lower(), start + place, start + 10**8 - place,
            {"openinference.span.kind": kind, **attributes}, None, 0, resource_of_app,
        )
        for place, (kind, parent, attributes) in enumerate(kinds)
    ]  # fmt: skip


def fill(folder: Path, traces: int, kind: str, minutes: int) -> None:
    """Put the bodies of some minutes of traffic into a spool, 20 traces each."""
    draw = random.Random(1)
    spool = Spool(folder, most_bytes=2**34)
    for number in range(0, traces, 20):
        received = START + number * minutes * MINUTE // traces
        rows = [native_row(draw, number + place) for place in range(20)]
        if kind == "rows":
            body = b"\n".join(map(msgspec.json.encode, rows))
        else:
            body = encode_spans([span for row in rows for span in spans_of(row, received)])
        key = blake2b(body, digest_size=16).digest()
        waiting = spool.put("", key, "rows" if kind == "rows" else "spans", received, body, 1.0)
    waiting.result(600)
    spool.close()


def main() -> None:
    """Measure, and print what came out."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--traces", type=int, default=30_000)
    options.add_argument("--kind", choices=("spans", "rows"), default="spans")
    options.add_argument("--minutes", type=int, default=5)
    options.add_argument("--store")
    asked = options.parse_args()
    with tempfile.TemporaryDirectory(prefix="ragauge-live-") as name:
        folder = Path(name)
        fill(folder, asked.traces, asked.kind, asked.minutes)
        order = WorkerOrder(
            settings=LiveSettings(sampling=Sampling(rate=1.0)),
            store_url=asked.store or f"sqlite:///{folder / 'live.db'}",
            spool=str(folder),
        )
        context = worker_context(order)
        part = ScoredTraffic(context)
        begun, wall = time.process_time(), time.perf_counter()
        part.traffic.step(START + (asked.minutes + 1) * MINUTE)
        stored = time.process_time()
        LiveWorker([part]).step(START + (asked.minutes + 1) * MINUTE)
        ended = time.process_time()
        rows = context.database.read("SELECT count(*) FROM live_traces")[0][0]
        windows = context.database.read("SELECT max(samples), count(*) FROM eval_live_windows")[0]
    if rows != asked.traces or not windows[0]:
        sys.exit(f"{rows} of {asked.traces} traces were stored, and {windows[1]} windows closed")
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    each = 1000 / asked.traces
    print(f"{asked.traces} traces as {asked.kind}, {windows[1]} windows of up to {windows[0]}")
    print(f"  stored  {(stored - begun) * each:.3f} s of CPU for 1,000 traces")
    print(f"  windows {(ended - stored) * each:.3f} s of CPU for 1,000 traces")
    print(f"  both    {(ended - begun) * each:.3f} s of CPU for 1,000 traces")
    print(f"  {time.perf_counter() - wall:.1f} s, {peak:.0f} MB at most")


if __name__ == "__main__":
    main()
