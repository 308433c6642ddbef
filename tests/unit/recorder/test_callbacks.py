"""Callbacks of real LangChain and LlamaIndex write what `ragauge score` scores as it is.

The systems are those of the quickstarts. What they retrieve is asked of them here once more, and
the recall is computed from the files, byte by byte; the recorded traces must say the same.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

import ragauge
from ragauge import RagaugeError
from ragauge.recorder import langchain as langchain_recorder
from tests.support.command import Folder
from tests.unit.recorder.test_record import rows
from tests.unit.targets import test_quickstarts as quickstarts
from tests.unit.targets.test_quickstarts import Documentation, pages, texts  # noqa: F401

pytestmark = [
    pytest.mark.slow,
    pytest.mark.usefixtures("folder"),
    pytest.mark.filterwarnings("ignore"),  # what these libraries warn of is theirs
]

CHAIN = """
from langchain_core.language_models.fake_chat_models import GenericFakeChatModel
from langchain_core.messages import AIMessage
from langchain_core.output_parsers import StrOutputParser
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.runnables import RunnablePassthrough
import itertools

model = GenericFakeChatModel(messages=itertools.repeat(AIMessage("As the pages say.")))
prompt = ChatPromptTemplate.from_template("Context: {context} Question: {question}")
chain = (
    {"context": retriever, "question": RunnablePassthrough()} | prompt | model | StrOutputParser()
)
"""


@pytest.fixture
def chain(folder: Folder, pages: Documentation) -> dict[str, Any]:  # noqa: F811
    own: dict[str, Any] = quickstarts.langchain(folder, pages, quickstarts.IN_MEMORY + CHAIN)
    return own


def scored_recall(folder: Folder, documentation: Documentation) -> float:
    outcome = folder.run(
        "score", str(documentation.gold), "traces.jsonl", "--k", str(quickstarts.K),
        "--corpus", str(documentation.corpus), "--format", "json",
    )  # fmt: skip
    document = json.loads(outcome.out)
    assert outcome.exit_code == 0, outcome.err
    assert document["counts"]["scored"] == len(documentation.evidence)
    assert not document["placing"].get("unplaced")
    assert not [warning for warning in document["warnings"] if "not read" in warning]
    value: float = document["metrics"][f"retrieval.recall@{quickstarts.K}"]["value"]
    return value


def test_a_chain_of_langchain_is_recorded_in_two_lines(
    folder: Folder, pages: Documentation, chain: dict[str, Any]  # noqa: F811
) -> None:  # fmt: skip
    callback = ragauge.record("traces.jsonl").langchain()
    for qid, (question, _) in pages.evidence.items():
        config = {"callbacks": [callback], "metadata": {"qid": qid}}
        chain["chain"].invoke(question, config=config)
    expected = pages.recall(quickstarts.documents_of(chain["retriever"]))
    assert 0 < expected < 1
    assert scored_recall(folder, pages) == round(expected, 4)
    first = rows()[0]
    assert first["answer"] == "As the pages say."
    assert first["question"] == next(iter(pages.evidence.values()))[0]
    assert first["latency_ms"] > 0
    assert first["hits"][0].keys() >= {"id", "text", "doc"}
    assert first["hits"][0]["doc"].startswith(str(pages.source))


def test_what_is_streamed_awaited_and_run_at_once_is_recorded_too(
    chain: dict[str, Any],
) -> None:
    callback = ragauge.record("traces.jsonl").langchain()
    config = {"callbacks": [callback], "metadata": {"qid": "Q7"}}
    assert "".join(chain["chain"].stream("Why ids?", config=config)) == "As the pages say."
    asyncio.run(chain["chain"].ainvoke("Why spans?", config=config))
    with ThreadPoolExecutor(4) as pool:
        list(
            pool.map(
                lambda number: chain["chain"].invoke(f"Number {number}?", config=config), range(12)
            )
        )
    chain["chain"].batch(["One?", "Two?"], config=config)
    recorded = rows()
    assert len(recorded) == 16
    assert {row["question"] for row in recorded} == {
        "Why ids?", "Why spans?", "One?", "Two?", *(f"Number {number}?" for number in range(12)),
    }  # fmt: skip
    for row in recorded:
        assert row["qid"] == "Q7"
        assert row["answer"] == "As the pages say."
        expected = chain["retriever"].invoke(row["question"])
        assert [hit["text"] for hit in row["hits"]] == [doc.page_content for doc in expected]


def test_a_retriever_alone_and_one_inside_a_chain_are_recorded(
    chain: dict[str, Any],
) -> None:
    callback = ragauge.record("traces.jsonl").langchain()
    chain["retriever"].invoke("Why ids?", config={"callbacks": [callback]})
    own = chain["retriever"].with_config(callbacks=[callback])  # which knows nothing of the chain
    ({"context": own, "question": lambda text: text} | chain["prompt"]).invoke("Why spans?")
    first, second = rows()
    assert (first["question"], second["question"]) == ("Why ids?", "Why spans?")
    assert len(first["hits"]) == len(second["hits"]) == 4
    assert "answer" not in first


def test_messages_and_objects_hold_question_and_answer(
    chain: dict[str, Any],
) -> None:
    messages = pytest.importorskip("langchain_core.messages")
    runnable = pytest.importorskip("langchain_core.runnables").RunnableLambda

    def answer(state: dict[str, Any]) -> dict[str, Any]:
        chain["retriever"].invoke("rewritten")
        return {"messages": [*state["messages"], messages.AIMessage("Because.")]}

    def cite(_: dict[str, Any]) -> dict[str, Any]:
        return {"answer": "Because.", "citations": ["c1"], "context": []}

    callback = ragauge.record("traces.jsonl").langchain()
    config: Any = {"callbacks": [callback]}
    history = [messages.SystemMessage("Be kind."), messages.HumanMessage("Why ids?")]
    runnable(answer).invoke({"messages": history}, config=config)
    runnable(cite).invoke({"input": "Why spans?", "chat_history": []}, config=config)
    first, second = rows()
    assert (first["question"], first["answer"]) == ("Why ids?", "Because.")
    assert len(first["hits"]) == 4
    assert (second["question"], second["answer"]) == ("Why spans?", "Because.")
    assert second["citations"] == ["c1"]
    assert "hits" not in second


def test_of_several_retrievals_one_is_chosen(chain: dict[str, Any]) -> None:
    runnable = pytest.importorskip("langchain_core.runnables").RunnableLambda

    def twice(_: str) -> str:
        chain["retriever"].invoke("decisions about intervals")
        chain["retriever"].invoke("gold sets and chunkings")
        return "So."

    for choice, count in (("last", 4), ("first", 4), ("union", 8)):
        callback = ragauge.record(f"{choice}.jsonl").langchain(retrieval=choice)
        runnable(twice).invoke("Why?", config={"callbacks": [callback]})
        (row,) = rows(f"{choice}.jsonl")
        assert len(row["hits"]) == count
    first, last, union = (rows(f"{name}.jsonl")[0]["hits"] for name in ("first", "last", "union"))
    assert union == [*first, *last]
    with pytest.raises(RagaugeError, match="known: first, last, union"):
        ragauge.record("t.jsonl").langchain(retrieval="all")


def test_errors_of_a_chain_are_errored_traces(chain: dict[str, Any]) -> None:
    runnable = pytest.importorskip("langchain_core.runnables").RunnableLambda

    def broken(_: Any) -> str:
        raise TimeoutError("model with key sk-proj-abcdef0123456789abcdef sleeps")

    callback = ragauge.record("traces.jsonl").langchain()
    with pytest.raises(TimeoutError):
        (chain["retriever"] | runnable(broken)).invoke("Why ids?", config={"callbacks": [callback]})
    chain["model"].invoke("no retrieval: a piece of some app", config={"callbacks": [callback]})
    (row,) = rows()
    assert row["error"].startswith("TimeoutError(")
    assert "sk-proj" not in row["error"]
    assert len(row["hits"]) == 4
    assert "answer" not in row
    scores = ragauge.score([{"qid": "1", "question": "Why ids?", "relevant": ["x"]}], rows())
    assert scores.tally.errored == 1


def test_a_disk_that_is_full_does_not_stop_a_chain(folder: Folder, chain: dict[str, Any]) -> None:
    folder.write("file", "")
    recorder = ragauge.record("file/traces.jsonl")
    said = chain["chain"].invoke("Why ids?", config={"callbacks": [recorder.langchain()]})
    assert said == "As the pages say."
    assert recorder.failures == 1


# --- LlamaIndex ---


@pytest.fixture
def index(folder: Folder, texts: Documentation) -> dict[str, Any]:  # noqa: F811
    pytest.importorskip("llama_index.core")
    text = quickstarts.LLAMAINDEX.format(folder=str(texts.source))
    own: dict[str, Any] = quickstarts.module(folder, "quickstart", text)
    return own


@pytest.fixture
def recorded() -> Iterator[Any]:
    pytest.importorskip("llama_index.core")
    handler = ragauge.record("traces.jsonl").llamaindex()
    yield handler
    handler.stop()


@pytest.mark.parametrize("asked", ["engine", "retriever"])
def test_queries_of_llamaindex_are_recorded_in_one_line(
    folder: Folder, texts: Documentation, index: dict[str, Any], asked: str  # noqa: F811
) -> None:  # fmt: skip
    def retrieve(question: str) -> list[tuple[str, str]]:
        nodes = index["retriever"].retrieve(question)
        return [(node.metadata["file_path"], node.node.get_content()) for node in nodes]

    instrumentation = pytest.importorskip("llama_index.core.instrumentation.dispatcher")
    expected = texts.recall(retrieve)
    handler = ragauge.record("traces.jsonl").llamaindex()
    for qid, (question, _) in texts.evidence.items():
        with instrumentation.instrument_tags({"qid": qid}):
            if asked == "engine":
                index["engine"].query(question)
            else:
                index["retriever"].retrieve(question)
    handler.stop()
    index["retriever"].retrieve("after the end")
    assert 0 < expected < 1
    assert scored_recall(folder, texts) == round(expected, 4)
    first = rows()[0]
    assert ("answer" in first) == (asked == "engine")
    assert first["hits"][0]["doc"].startswith(str(texts.source))


def test_streamed_awaited_and_parallel_queries_are_recorded(
    index: dict[str, Any], recorded: Any
) -> None:
    streaming = index["index"].as_query_engine(streaming=True)
    response = streaming.query("Why ids?")
    assert not Path("traces.jsonl").exists()  # not before the answer is there
    said = "".join(response.response_gen)
    assert rows()[0]["answer"] == said != ""
    asyncio.run(index["engine"].aquery("Why spans?"))
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(index["engine"].query, [f"Number {number}?" for number in range(8)]))
    written = rows()
    assert [row["question"] for row in written[:2]] == ["Why ids?", "Why spans?"]
    assert {row["question"] for row in written[2:]} == {f"Number {n}?" for n in range(8)}
    recorded.stop()
    for row in written:
        nodes = index["retriever"].retrieve(row["question"])
        assert [hit["id"] for hit in row["hits"]] == [node.node.node_id for node in nodes]


@pytest.mark.usefixtures("recorded")
def test_both_lists_of_a_reranker_and_chats_are_recorded(index: dict[str, Any]) -> None:
    memory_module = pytest.importorskip("llama_index.core.memory")
    base: Any = pytest.importorskip("llama_index.core.postprocessor.types").BaseNodePostprocessor

    class Backwards(base):  # type: ignore[misc]
        def _postprocess_nodes(self, nodes: Any, *_: Any) -> Any:
            return nodes[::-1][:1]

    engine = index["index"].as_query_engine(node_postprocessors=[Backwards()])
    engine.query("Why ids?")
    memory = memory_module.ChatMemoryBuffer.from_defaults()
    index["index"].as_chat_engine(chat_mode="context", memory=memory).chat("Why spans?")
    reranked, chat = rows()
    assert len(reranked["hits"]) == 1
    assert reranked["hits"] == reranked["hits_before_rerank"][-1:]
    assert chat["question"] == "Why spans?"
    assert len(chat["hits"]) == 2
    assert isinstance(chat["answer"], str)


def test_errors_of_a_query_are_errored_traces(
    index: dict[str, Any], recorded: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_args: Any, **_kwargs: Any) -> Any:
        raise TimeoutError("the model sleeps")

    monkeypatch.setattr(type(index["engine"]._response_synthesizer), "get_response", broken)
    with pytest.raises(TimeoutError):
        index["engine"].query("Why ids?")
    (row,) = rows()
    assert row["question"] == "Why ids?"
    assert row["error"] == "TimeoutError: the model sleeps"
    assert len(row["hits"]) == 2
    assert not recorded._ragauge_parents
    assert not recorded._ragauge_trees


@pytest.mark.parametrize("needs", ["langchain_core", "llama_index.core", "pandas"])
def test_the_examples_of_the_pages_run(needs: str) -> None:
    pytest.importorskip(needs)
    fence = f"```python needs={needs}\n"
    how_to = sorted((Path(__file__).resolve().parents[3] / "docs" / "how-to").glob("*.md"))
    blocks = [
        part.partition("```")[0]
        for page in how_to
        for part in page.read_text("utf-8").split(fence)[1:]
    ]
    assert blocks
    for block in blocks:
        exec(compile(block, needs, "exec"), {})
    if needs != "pandas":
        (row,) = rows()
        assert row["question"] == "Which port is used?"
        assert row["hits"][0]["text"] == "The server listens on port 8080."


def test_without_the_library_the_error_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    langchain_recorder._tracer_class.cache_clear()
    monkeypatch.setitem(__import__("sys").modules, "langchain_core.tracers.base", None)
    with pytest.raises(RagaugeError, match=r"pip install 'ragauge\[langchain\]'"):
        ragauge.record("t.jsonl").langchain()
    langchain_recorder._tracer_class.cache_clear()
