"""Systems as their own quickstarts build them: `run` needs the target and the corpus, no more.

Each system indexes the pages of this project's documentation at its default settings. What it
retrieves is asked of it here once more, and the recall is computed from the files, byte by byte;
`run` must say the same. Where a library is not installed its tests are skipped.
"""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from ragauge.corpus.build import build
from tests.support.command import Folder, Outcome, lines_of
from tests.support.postgres import own_schema
from tests.support.search_server import SearchServer, alike, searching
from tests.support.web_servers import Request, http, serving
from tests.unit.targets.test_pgvector import server  # noqa: F401  (a fixture)

pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore"),  # what these libraries warn of is theirs
    pytest.mark.xdist_group("postgres"),
]

PAGES = Path(__file__).resolve().parents[3] / "docs"
FOLDERS = ("tutorial", "explanation", "decisions")
K = 4
Piece = tuple[str, int, int]
"""A document, and bytes of it."""

EMBEDDING = '''
import hashlib, re

def vector(text):
    """Words of a text in 1024 places: deterministic, and good enough to find a page."""
    numbers = [0.0] * 1024
    for word in re.findall(r"\\w+", text.lower()):
        numbers[int.from_bytes(hashlib.md5(word.encode()).digest()[:2], "big") % 1024] += 1.0
    length = sum(number * number for number in numbers) ** 0.5 or 1.0
    return [number / length for number in numbers]
'''


class Documentation:
    """A folder with pages, its corpus, and questions whose evidence stands in the pages."""

    def __init__(self, folder: Path, suffix: str) -> None:
        self.source = folder / "home" / "me" / "pages"
        for name in FOLDERS:
            for page in sorted((PAGES / name).glob("*.md")):
                copy = self.source / name / f"{page.stem}{suffix}"
                copy.parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(page, copy)
        self.texts = {
            path.relative_to(self.source).as_posix(): path.read_text("utf-8")
            for path in sorted(self.source.rglob(f"*{suffix}"))
        }
        self.corpus = folder / "corpus"
        build([str(self.source)], self.corpus, workers=1)
        self.evidence = dict(self._evidence())
        rows = [
            {"qid": qid, "question": question, "answerable": True,
             "relevant": [{"doc": doc, "start": start, "end": end}]}
            for qid, (question, (doc, start, end)) in self.evidence.items()
        ]  # fmt: skip
        self.gold = folder / "gold.jsonl"
        self.gold.write_bytes(lines_of(rows))

    def _evidence(self) -> Iterator[tuple[str, tuple[str, Piece]]]:
        """One line of every other page, with words of it as the question.

        One in four asks with the words of another page: no system finds what it is not asked for.
        """
        everything = "\n".join(self.texts.values())
        chosen: list[tuple[str, str]] = []
        for doc, text in sorted(self.texts.items())[::2]:
            lines = [line for line in text.split("\n") if 60 < len(line) < 140]
            lines = [line for line in lines if everything.count(line) == 1]
            chosen += [(doc, lines[len(lines) // 2])] if lines else []
        for number, (doc, line) in enumerate(chosen):
            start = len(self.texts[doc][: self.texts[doc].index(line)].encode())
            asked = chosen[number - 1][1] if number % 4 == 0 else line
            piece = (doc, start, start + len(line.encode()))
            yield f"q{number}", (" ".join(asked.split()[::2]), piece)

    def place(self, name: str, text: str) -> Piece:
        """Where a retrieved text stands: in the one page whose path ends so, if it names one."""
        pages = [doc for doc in self.texts if not name or name.endswith(f"/{doc}")]
        (doc,) = [doc for doc in pages if self.texts[doc].count(text) == 1]
        start = len(self.texts[doc][: self.texts[doc].index(text)].encode())
        return doc, start, start + len(text.encode())

    def recall(self, retrieve: Callable[[str], Sequence[tuple[str, str]]]) -> float:
        """The share of questions whose evidence is half covered by what is retrieved."""
        hits = 0
        for question, (doc, start, end) in self.evidence.values():
            covered: set[int] = set()
            for name, text in retrieve(question)[:K]:
                where, first, last = self.place(name, text)
                if where == doc:
                    covered |= set(range(max(first, start), min(last, end)))
            hits += 2 * len(covered) >= end - start
        return hits / len(self.evidence)


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> Documentation:
    return Documentation(tmp_path_factory.mktemp("pages"), ".md")


@pytest.fixture(scope="module")
def texts(tmp_path_factory: pytest.TempPathFactory) -> Documentation:
    """The same as plain text, which LlamaIndex reads without a package of its own."""
    return Documentation(tmp_path_factory.mktemp("texts"), ".txt")


def asked(folder: Folder, documentation: Documentation, target: str) -> Outcome:
    """Ask a target, with nothing said but where the corpus is."""
    return folder.run(
        "run", "--gold", str(documentation.gold), "--target", target, "--k", str(K),
        "--corpus", str(documentation.corpus), "--profile", "all", "--format", "json",
        "--store", "sqlite:///runs.db", "--gates", f"retrieval.recall@{K}>=0",
    )  # fmt: skip


def assert_recall(outcome: Outcome, expected: float) -> None:
    assert outcome.exit_code == 0, outcome.err
    document = json.loads(outcome.out)
    metric = document["metrics"].get(f"retrieval.recall@{K}")
    assert metric["value"] == round(expected, 4)
    assert 0.0 < expected < 1.0  # a system that finds some and misses some
    assert "unplaced" not in document["placing"] or not document["placing"]["unplaced"]


def module(folder: Folder, name: str, text: str) -> Any:
    """A module of the user's own, written and imported."""
    path = folder.write(f"{name}.py", f"{EMBEDDING}\n{text}")
    space: dict[str, Any] = {"__name__": name, "__file__": str(path)}
    exec(compile(path.read_text("utf-8"), str(path), "exec"), space)
    return space


LANGCHAIN = """
from langchain_core.embeddings import Embeddings
from langchain_community.document_loaders import DirectoryLoader, TextLoader
from langchain_text_splitters import RecursiveCharacterTextSplitter

class Local(Embeddings):
    def embed_documents(self, texts):
        return [vector(text) for text in texts]
    def embed_query(self, text):
        return vector(text)

loader = DirectoryLoader({folder!r}, glob="**/*.md", loader_cls=TextLoader)
splitter = RecursiveCharacterTextSplitter(chunk_size=1000, chunk_overlap=200{more})
splits = splitter.split_documents(sorted(loader.load(), key=lambda page: page.metadata["source"]))
"""

IN_MEMORY = """
from langchain_core.vectorstores import InMemoryVectorStore
store = InMemoryVectorStore(Local())
store.add_documents(documents=splits)
retriever = store.as_retriever()
"""

FAISS = """
from langchain_community.vectorstores import FAISS
store = FAISS.from_documents(splits, Local())
retriever = store.as_retriever()
"""


def langchain(folder: Folder, pages: Documentation, store: str, more: str = "") -> Any:
    for name in ("langchain_core", "langchain_community", "langchain_text_splitters"):
        pytest.importorskip(name)
    text = LANGCHAIN.format(folder=str(pages.source), more=more)
    return module(folder, "quickstart", text + store)


def documents_of(retriever: Any) -> Callable[[str], list[tuple[str, str]]]:
    return lambda question: [
        (document.metadata["source"], document.page_content)
        for document in retriever.invoke(question)
    ]


@pytest.mark.parametrize("more", ["", ", add_start_index=True"])
@pytest.mark.parametrize("store", [IN_MEMORY, FAISS])
def test_the_quickstart_of_langchain(
    folder: Folder, pages: Documentation, store: str, more: str
) -> None:
    if store is FAISS:
        pytest.importorskip("faiss")
    own = langchain(folder, pages, store, more)
    expected = pages.recall(documents_of(own["retriever"]))
    outcome = asked(folder, pages, "langchain:quickstart.py:retriever")
    assert_recall(outcome, expected)
    placing = json.loads(outcome.out)["placing"]
    assert placing["placed"].keys() == ({"offsets"} if more else {"text"})
    assert placing["prefixes"] == [f"{pages.source}/"]


LLAMAINDEX = """
from llama_index.core import Settings, SimpleDirectoryReader, VectorStoreIndex
from llama_index.core.embeddings import BaseEmbedding
from llama_index.core.llms import MockLLM

class Local(BaseEmbedding):
    def _get_text_embedding(self, text):
        return vector(text)
    def _get_query_embedding(self, query):
        return vector(query)
    async def _aget_query_embedding(self, query):
        return vector(query)

Settings.embed_model = Local()
Settings.llm = MockLLM()
documents = SimpleDirectoryReader({folder!r}, recursive=True).load_data()
index = VectorStoreIndex.from_documents(documents)
retriever = index.as_retriever()
engine = index.as_query_engine()
"""


@pytest.mark.parametrize("asked_object", ["retriever", "engine"])
def test_the_quickstart_of_llamaindex(
    folder: Folder, texts: Documentation, asked_object: str
) -> None:
    pytest.importorskip("llama_index.core")
    own = module(folder, "quickstart", LLAMAINDEX.format(folder=str(texts.source)))

    def retrieve(question: str) -> list[tuple[str, str]]:
        nodes = own["retriever"].retrieve(question)
        return [(node.metadata["file_path"], node.node.get_content()) for node in nodes]

    expected = texts.recall(retrieve)
    assert_recall(asked(folder, texts, f"llamaindex:quickstart.py:{asked_object}"), expected)


# --- databases, asked with ragauge's own vectors ---


def chunks_of(documentation: Documentation) -> list[tuple[str, str, str]]:
    """Chunks of some lines: an id that says nothing, the absolute path, and the text."""
    rows: list[tuple[str, str, str]] = []
    for doc, text in documentation.texts.items():
        lines = text.split("\n")
        for first in range(0, len(lines), 12):
            chunk = "\n".join(lines[first : first + 12]).strip()
            if chunk and text.count(chunk) == 1:
                rows.append((f"{len(rows)}", str(documentation.source / doc), chunk))
    return rows


def nearest(rows: Sequence[tuple[str, str, str]]) -> Callable[[str], list[tuple[str, str]]]:
    """The exact search: by the cosine of ragauge's lexical vectors."""
    from ragauge.embed.embedders.hashing import Hashing

    embedder = Hashing()
    vectors = embedder.embed([text for _, _, text in rows], "document").vectors

    def retrieve(question: str) -> list[tuple[str, str]]:
        query = embedder.embed([question], "query").vectors[0]
        scores = [round(float(vector @ query), 6) for vector in vectors]
        order = sorted(range(len(rows)), key=lambda at: (-scores[at], rows[at][0]))
        return [(rows[at][1], rows[at][2]) for at in order]

    return retrieve


def hashed(texts: Sequence[str]) -> list[list[float]]:
    from ragauge.embed.embedders.hashing import Hashing

    vectors: list[list[float]] = Hashing().embed(texts, "document").vectors.tolist()
    return vectors


def test_a_collection_of_chroma(folder: Folder, pages: Documentation) -> None:
    chromadb = pytest.importorskip("chromadb")
    rows = chunks_of(pages)
    client = chromadb.PersistentClient(path=str(folder.path / "chroma"))
    # Searched wide enough to be exact: threads build the index a little otherwise each time.
    settings = {"hnsw:space": "cosine", "hnsw:construction_ef": 1000, "hnsw:search_ef": 1000}
    collection = client.create_collection("pages", metadata=settings)
    collection.add(
        ids=[name for name, _, _ in rows],
        documents=[text for _, _, text in rows],
        metadatas=[{"source": source} for _, source, _ in rows],
        embeddings=hashed([text for _, _, text in rows]),
    )
    del collection, client
    expected = pages.recall(nearest(rows))
    outcome = asked(folder, pages, "chroma:chroma?collection=pages&embedder=hashing")
    assert_recall(outcome, expected)


def test_a_collection_of_qdrant_as_langchain_fills_it(folder: Folder, pages: Documentation) -> None:
    qdrant = pytest.importorskip("qdrant_client")
    rows = chunks_of(pages)
    vectors = hashed([text for _, _, text in rows])
    client = qdrant.QdrantClient(path=str(folder.path / "qdrant"))
    distance = qdrant.models.Distance.COSINE
    size = qdrant.models.VectorParams(size=len(vectors[0]), distance=distance)
    client.create_collection("pages", vectors_config=size)
    points = [
        qdrant.models.PointStruct(
            id=int(name),
            vector=vector,
            payload={"page_content": text, "metadata": {"source": source}},
        )
        for (name, source, text), vector in zip(rows, vectors, strict=True)
    ]
    client.upsert("pages", points)
    client.close()
    expected = pages.recall(nearest(rows))
    outcome = asked(folder, pages, "qdrant:qdrant?collection=pages&embedder=hashing")
    assert_recall(outcome, expected)


def opensearch_of_langchain(pages: Documentation) -> SearchServer:
    """An index with the fields and the mapping that `OpenSearchVectorSearch` makes by default."""
    rows = chunks_of(pages)
    vectors = hashed([text for _, _, text in rows])
    method = {
        "name": "hnsw", "space_type": "l2", "engine": "faiss",
        "parameters": {"ef_construction": 512, "m": 16},
    }  # fmt: skip
    field = {"type": "knn_vector", "dimension": len(vectors[0]), "method": method}
    words = {"type": "text", "fields": {"keyword": {"type": "keyword", "ignore_above": 256}}}
    return SearchServer(
        name="pages",
        documents={
            name: {"vector_field": vector, "text": text, "metadata": {"source": source}}
            for (name, source, text), vector in zip(rows, vectors, strict=True)
        },
        mapping={
            "properties": {
                "vector_field": field,
                "text": words,
                "metadata": {"properties": {"source": words}},
            }
        },
    )


def test_an_index_of_opensearch_as_langchain_fills_it(folder: Folder, pages: Documentation) -> None:
    """The server needs Java and is no package: a stand-in that is as strict as it is."""
    with searching(opensearch_of_langchain(pages)) as index:
        outcome = asked(folder, pages, f"{index.address}?embedder=hashing")
    assert_recall(outcome, pages.recall(nearest(chunks_of(pages))))


def test_the_words_of_an_index_that_langchain_filled(folder: Folder, pages: Documentation) -> None:
    """With nothing said but where the index is, its texts are searched."""
    rows = chunks_of(pages)

    def retrieve(question: str) -> list[tuple[str, str]]:
        wanted = set(question.lower().split())
        shares = [alike(wanted, set(text.lower().split())) for _, _, text in rows]
        order = sorted((at for at in range(len(rows)) if shares[at]), key=lambda at: -shares[at])
        return [(rows[at][1], rows[at][2]) for at in order]

    with searching(opensearch_of_langchain(pages)) as index:
        outcome = asked(folder, pages, index.address)
    assert_recall(outcome, pages.recall(retrieve))


def test_langchains_own_table_of_pgvector(
    folder: Folder,
    pages: Documentation,
    server: str,  # noqa: F811
) -> None:
    vectorstores = pytest.importorskip("langchain_postgres.vectorstores")
    psycopg = pytest.importorskip("psycopg")
    rows = chunks_of(pages)
    with own_schema(server) as url:
        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute("CREATE EXTENSION IF NOT EXISTS vector SCHEMA pg_catalog")

        class Local:
            def embed_documents(self, texts: list[str]) -> list[list[float]]:
                return hashed(texts)

            def embed_query(self, text: str) -> list[float]:
                return hashed([text])[0]

        store = vectorstores.PGVector(
            embeddings=Local(), collection_name="pages", create_extension=False,
            connection=url.replace("postgresql://", "postgresql+psycopg://"),
        )  # fmt: skip
        store.add_texts(
            [text for _, _, text in rows],
            metadatas=[{"source": source} for _, source, _ in rows],
            ids=[name for name, _, _ in rows],
        )
        store._engine.dispose()
        joined = "&" if "?" in url else "?"
        target = f"pgvector:{url}{joined}table=langchain_pg_embedding&embedder=hashing"
        outcome = asked(folder, pages, target)
    assert_recall(outcome, pages.recall(nearest(rows)))


# --- services and programs that answer in words of their own ---


def own_json(results: Sequence[tuple[str, str]]) -> bytes:
    """A service with names of its own, and its hits inside an object."""
    passages = [
        {"content": text, "similarity": 1 - rank / 10, "metadata": {"source": source}}
        for rank, (source, text) in enumerate(results)
    ]
    body = {"data": {"results": passages}, "response": "It is so."}
    return http(body, Content_Type="application/json")


def lines(results: Sequence[tuple[str, str]]) -> bytes:
    """A stream of lines: first the sources, then the answer token by token."""
    sources = [{"page_content": text, "file_path": source} for source, text in results]
    rows = [{"type": "sources", "sources": sources}]
    rows += [{"type": "token", "token": token} for token in ("It ", "is ", "so.")]
    return http(lines_of(rows), Content_Type="application/x-ndjson")


def events(results: Sequence[tuple[str, str]]) -> bytes:
    """Server-sent events, as a chat service sends them."""
    contexts = [{"text": text, "metadata": {"file_name": source}} for source, text in results]
    parts = [f"event: sources\ndata: {json.dumps({'contexts': contexts})}\n"]
    for token in ("It ", "is ", "so."):
        parts.append(f"data: {json.dumps({'choices': [{'delta': {'content': token}}]})}\n")
    parts.append("data: [DONE]\n")
    return http("\n".join([*parts, ""]).encode(), Content_Type="text/event-stream; charset=utf-8")


@pytest.mark.parametrize("answer", [own_json, lines, events])
def test_a_service_with_answers_of_its_own(
    folder: Folder, pages: Documentation, answer: Callable[..., bytes]
) -> None:
    retrieve = nearest(chunks_of(pages))

    def respond(request: Request) -> bytes:
        return answer(retrieve(request.json["question"])[:K])

    with serving(respond) as service:
        outcome = asked(folder, pages, f"{service.url}/ask")
    assert_recall(outcome, pages.recall(retrieve))
    answered = json.loads(outcome.out)["counts"]["answered"]
    assert answered == len(pages.evidence)


PROGRAM = """
import json, sys
rows = json.load(open({rows!r}))
for line in sys.stdin:
    question = json.loads(line)["question"]
    print(json.dumps(dict(documents=rows[question])), flush=True)
"""


@pytest.mark.parametrize("kind", ["command", "python"])
def test_a_program_that_gives_texts(folder: Folder, pages: Documentation, kind: str) -> None:
    """Texts alone: neither ids nor names of documents."""
    retrieve = nearest(chunks_of(pages))
    by_question = {
        question: [text for _, text in retrieve(question)[:K]]
        for question, _ in pages.evidence.values()
    }
    folder.write("rows.json", json.dumps(by_question))
    if kind == "command":
        program = folder.write("program.py", PROGRAM.format(rows=str(folder.path / "rows.json")))
        target = f"command:{sys.executable} {program}"
    else:
        text = "import json\nrows = json.load(open('rows.json'))\ndef ask(question):\n"
        folder.write("own.py", f"{text}    return dict(contexts=rows[question])\n")
        target = "python:own.py:ask"
    assert_recall(asked(folder, pages, target), pages.recall(retrieve))
