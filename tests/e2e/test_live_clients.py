"""Clients that nobody here wrote, at their default settings, against a real server.

Each sends the traces of a small RAG system by its own exporter and writes the same spans to a file.
The server scores what came; `score` of the file must say the same, to the byte.
"""

from __future__ import annotations

import itertools
import json
import os
import shutil
import sqlite3
import subprocess
import time
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from ragauge import score
from ragauge.config import load_config
from ragauge.live.settings import live_settings
from ragauge.live.worker import ScoredTraffic, worker_context
from ragauge.live.worker_process import WorkerOrder
from ragauge.model.scores_document import metrics_document
from tests.support.live_process import live_process, wait_until

ROOT = Path(__file__).parents[2]
JAVASCRIPT = ROOT / "build" / "javascript" / "node_modules"
SENDER = ROOT / "tests" / "fixtures" / "javascript" / "send_spans.js"
SETTINGS = """[live]
gold = "gold.jsonl"
assemble_root = 0.2
assemble_after = 1
[live.sampling]
rate = 1.0
[live.window]
samples = 4
"""

pytestmark = [
    pytest.mark.slow,
    pytest.mark.usefixtures("in_folder"),
    pytest.mark.filterwarnings("ignore"),  # what these libraries warn of is theirs
]


@pytest.fixture
def in_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


class Monitored:
    """What a server made of the traces of a client."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def states(self) -> dict[str, int]:
        """How many traces are in which state."""
        with closing(sqlite3.connect(self.folder / "ragauge-live.db", timeout=30)) as connection:
            return dict(connection.execute("SELECT state, count(*) FROM live_traces GROUP BY 1"))

    def window(self) -> dict[str, Any]:
        """The metrics of all traffic, after the server has ended, as ten minutes later."""
        order = WorkerOrder(
            settings=live_settings(load_config(self.folder / "ragauge.toml")),
            store_url=f"sqlite:///{self.folder / 'ragauge-live.db'}",
            spool=str(self.folder / "ragauge-live.db.spool"),
        )
        context = worker_context(order)
        ScoredTraffic(context).step(int(time.time() * 1000) + 600_000)
        ((aggregate,),) = context.database.read(
            "SELECT CAST(aggregate_json AS TEXT) FROM eval_live_windows "
            "WHERE build = '' AND index_hash = '' AND question_type = ''"
        )
        metrics: dict[str, Any] = json.loads(aggregate)["metrics"]
        return metrics


def write_gold(folder: Path, rows: Sequence[dict[str, Any]]) -> None:
    (folder / "gold.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (folder / "ragauge.toml").write_text(SETTINGS)


def same_as_offline(folder: Path, spans: Path) -> dict[str, Any]:
    """The metrics of the server, which are those of `score` for the file of the same spans."""
    metrics = Monitored(folder).window()
    offline = score(folder / "gold.jsonl", spans, profile="live")
    assert json.dumps(metrics) == json.dumps(metrics_document(offline))
    return metrics


@pytest.mark.parametrize("kind", ["json", "proto"])
def test_the_exporters_for_javascript(tmp_path: Path, kind: str) -> None:
    node = shutil.which("node")
    if node is None or not JAVASCRIPT.exists():
        pytest.skip("the packages for JavaScript are not installed: see `make javascript`")
    gold = [
        {"qid": f"Q{number}", "question": f"Where is part {number}? – «größe» 🙂",
         "answerable": True, "relevant": [f"part-{number + 1}"]}
        for number in range(4)
    ]  # fmt: skip
    write_gold(tmp_path, gold)
    spans = tmp_path / "spans.json"
    with live_process(tmp_path) as server:
        done = subprocess.run(
            [node, str(SENDER), f"{server.url}/v1/traces", kind, str(spans)],
            env={**os.environ, "NODE_PATH": str(JAVASCRIPT)},
            capture_output=True, encoding="utf-8", timeout=60, check=False,
        )  # fmt: skip
        assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
        monitored = Monitored(tmp_path)
        wait_until(lambda: sum(monitored.states().values()) == 4)
    assert monitored.states() == {"scored": 3, "errored": 1}
    metrics = same_as_offline(tmp_path, spans)
    assert metrics["live.error"]["value"] == 0.25  # 1 of 4 fails
    assert metrics["live.coverage"]["value"] == 1.0  # [1] cites the first hit
    assert metrics["retrieval.recall@5"]["value"] == 0.75  # what fails has found nothing


def test_rows_of_any_program(tmp_path: Path) -> None:
    """In an empty folder, by HTTP alone, in the three ways that rows may come."""
    rows = [
        {"trace_id": f"t{number}", "question": f"Where is part {number}?", "answer": "There [1].",
         "hits": [{"id": f"part-{number}", "text": "In a drawer.", "score": 0.5}],
         "latency_ms": 10 + number}
        for number in range(6)
    ]  # fmt: skip
    gold = [{"qid": f"Q{number}", "question": f"Where is part {number}?"} for number in range(6)]
    write_gold(tmp_path, gold)
    lines = [json.dumps(row) for row in rows]
    (tmp_path / "rows.jsonl").write_text("\n".join(lines))
    bodies = {
        "application/json": [lines[0], f"[{lines[1]}, {lines[2]}]"],
        "application/x-ndjson": ["\n".join(lines[3:])],
    }
    with live_process(tmp_path) as server:
        for media, texts in bodies.items():
            for text in texts:
                answer = server.ask("/api/traces", text.encode(), Content_Type=media)
                assert (answer.status, json.loads(answer.body)["rejected"]) == (200, 0)
        monitored = Monitored(tmp_path)
        wait_until(lambda: sum(monitored.states().values()) == 6)
    assert monitored.states() == {"scored": 6}
    assert not (tmp_path / "ragauge-live.db.spool" / "quarantine").exists()
    metrics = same_as_offline(tmp_path, tmp_path / "rows.jsonl")
    assert metrics["live.latency_p50"]["value"] == 12.5  # of 10 to 15


class PythonClient:
    """A provider of OpenTelemetry with the exporter that its page shows, and a file beside it."""

    def __init__(self, url: str, file: Path) -> None:
        exporters = pytest.importorskip("opentelemetry.exporter.otlp.proto.http.trace_exporter")
        from opentelemetry.sdk.resources import Resource
        from opentelemetry.sdk.trace import TracerProvider
        from opentelemetry.sdk.trace.export import BatchSpanProcessor
        from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

        self.file = file
        self.kept = InMemorySpanExporter()
        self.provider = TracerProvider(resource=Resource.create({"service.name": "shop"}))
        sender = exporters.OTLPSpanExporter(endpoint=f"{url}/v1/traces")
        self.provider.add_span_processor(BatchSpanProcessor(sender))
        self.provider.add_span_processor(BatchSpanProcessor(self.kept))

    def close(self) -> None:
        """Send what waits, and write the file."""
        from opentelemetry.exporter.otlp.proto.common.trace_encoder import encode_spans

        self.provider.shutdown()
        self.file.write_bytes(encode_spans(self.kept.get_finished_spans()).SerializeToString())


PARTS = range(12)
PARTS_GOLD = [
    {"qid": f"Q{number}", "question": f"Where is part {number}?", "answerable": True,
     "relevant": [f"part-{number}"]}
    for number in range(6)
]  # fmt: skip


def recall(found: Sequence[Sequence[str]]) -> float:
    """The share of questions whose part is among the hits; neither all nor none."""
    hits = sum(f"part-{number}" in ids for number, ids in enumerate(found))
    assert 0 < hits < len(found)
    return round(hits / len(found), 4)


def test_langchain_with_openinference(tmp_path: Path) -> None:
    langchain = pytest.importorskip("openinference.instrumentation.langchain")
    from langchain_core.documents import Document  # type: ignore[import-not-found]
    from langchain_core.embeddings import DeterministicFakeEmbedding  # type: ignore[import-not-found]
    from langchain_core.language_models.fake_chat_models import GenericFakeChatModel  # type: ignore[import-not-found]
    from langchain_core.messages import AIMessage  # type: ignore[import-not-found]
    from langchain_core.output_parsers import StrOutputParser  # type: ignore[import-not-found]
    from langchain_core.prompts import ChatPromptTemplate  # type: ignore[import-not-found]
    from langchain_core.runnables import RunnablePassthrough  # type: ignore[import-not-found]
    from langchain_core.vectorstores import InMemoryVectorStore  # type: ignore[import-not-found]

    write_gold(tmp_path, PARTS_GOLD)
    store = InMemoryVectorStore(DeterministicFakeEmbedding(size=16))
    store.add_documents(
        [
            Document(
                id=f"part-{part}",
                page_content=f"Part {part} is in drawer {part}.",
                metadata={"source": f"drawer{part}.md"},
            )
            for part in PARTS
        ]
    )
    model = GenericFakeChatModel(messages=itertools.repeat(AIMessage("In a drawer [1].")))
    prompt = ChatPromptTemplate.from_template("Context: {context} Question: {question}")
    retriever = store.as_retriever(search_kwargs={"k": 5})
    chain: Any = (
        {"context": retriever, "question": RunnablePassthrough()} | prompt | model
        | StrOutputParser()
    )  # fmt: skip
    instrumentor = langchain.LangChainInstrumentor()
    with live_process(tmp_path) as server:
        client = PythonClient(server.url, tmp_path / "spans.pb")
        instrumentor.instrument(tracer_provider=client.provider)
        try:
            for row in PARTS_GOLD:
                chain.invoke(row["question"])
        finally:
            instrumentor.uninstrument()
            client.close()
        monitored = Monitored(tmp_path)
        wait_until(lambda: sum(monitored.states().values()) == len(PARTS_GOLD))
    assert monitored.states() == {"scored": 6}
    metrics = same_as_offline(tmp_path, client.file)
    found = [[hit.id for hit in retriever.invoke(row["question"])] for row in PARTS_GOLD]
    assert metrics["retrieval.recall@5"]["value"] == recall(found)
    assert metrics["live.coverage"]["value"] == 1.0  # [1] cites the first hit


def test_llama_index_with_openinference(tmp_path: Path) -> None:
    llama_index = pytest.importorskip("openinference.instrumentation.llama_index")
    from llama_index.core import MockEmbedding, VectorStoreIndex  # type: ignore[import-not-found]
    from llama_index.core.llms import MockLLM  # type: ignore[import-not-found]
    from llama_index.core.schema import TextNode  # type: ignore[import-not-found]

    write_gold(tmp_path, PARTS_GOLD)
    nodes = [
        TextNode(
            id_=f"part-{part}",
            text=f"Part {part} is in drawer {part}.",
            metadata={"file_name": f"drawer{part}.md"},
        )
        for part in PARTS
    ]
    instrumentor = llama_index.LlamaIndexInstrumentor()
    with live_process(tmp_path) as server:
        client = PythonClient(server.url, tmp_path / "spans.pb")
        instrumentor.instrument(tracer_provider=client.provider)
        try:
            index = VectorStoreIndex(nodes, embed_model=MockEmbedding(embed_dim=8))
            engine = index.as_query_engine(llm=MockLLM(max_tokens=20), similarity_top_k=5)
            for row in PARTS_GOLD:
                engine.query(row["question"])
        finally:
            instrumentor.uninstrument()
            client.close()
        monitored = Monitored(tmp_path)
        wait_until(lambda: sum(monitored.states().values()) == 1 + len(PARTS_GOLD))
    assert monitored.states() == {"scored": 6, "unusable": 1}  # to build the index was a trace too
    metrics = same_as_offline(tmp_path, client.file)
    retriever = index.as_retriever(similarity_top_k=5)
    found = [[hit.node_id for hit in retriever.retrieve(row["question"])] for row in PARTS_GOLD]
    assert metrics["retrieval.recall@5"]["value"] == recall(found)
    assert metrics["live.coverage"]["value"] == 0.0  # the answers cite nothing
