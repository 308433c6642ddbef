"""A running app writes traces that `ragauge score` reads, and never notices a fault of the file."""

from __future__ import annotations

import asyncio
import json
import logging
import os
import subprocess
import sys
import threading
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest

import ragauge
from ragauge import RagaugeError
from tests.support.command import Folder

pytestmark = pytest.mark.usefixtures("folder")  # all of them write into it

GOLD = [
    {"qid": "A", "question": "Where is the key?", "answerable": True,
     "relevant": ["c1"], "claims_any": ["under the mat"]},
    {"qid": "B", "question": "Who has it?", "answerable": True, "relevant": ["c2"],
     "claims_any": ["the cat"]},
]  # fmt: skip
HITS = [{"id": "c1", "text": "The key is under the mat.", "score": 0.9}, {"id": "c9"}]


def rows(path: str | Path = "traces.jsonl") -> list[dict[str, Any]]:
    return [json.loads(line) for line in Path(path).read_text("utf-8").splitlines()]


def without_time(row: dict[str, Any]) -> dict[str, Any]:
    assert row.pop("latency_ms") >= 0
    return row


def test_what_is_written_is_scored(folder: Folder) -> None:
    recorder = ragauge.record("logs/traces.jsonl")
    assert recorder.write("Where is the key?", "It is under the mat.", HITS)
    assert recorder.write("Who has it?", "the cat", ["c3"], qid="B", citations=["c3"], tokens=12)
    folder.write("gold.jsonl", GOLD)
    outcome = folder.run("score", "gold.jsonl", "logs/traces.jsonl", "--k", "5", "--format", "json")
    document = json.loads(outcome.out)
    assert outcome.exit_code == 0, outcome.err
    assert document["metrics"]["retrieval.recall@5"]["value"] == 0.5  # c1 of A; not c2 of B
    assert not [warning for warning in document["warnings"] if "not read" in warning]
    # Rows in memory are the same.
    assert ragauge.score(GOLD, rows("logs/traces.jsonl"))["recall@5"].value == 0.5


def test_a_trace_is_filled_in_while_it_is_open() -> None:
    recorder = ragauge.record("traces.jsonl")
    with recorder.trace("Where is the key?", qid="A", turn=1) as trace:
        trace.hits = HITS
        trace.answer = "It is under the mat."
        trace.fields["citations"] = ["c1"]
    (row,) = rows()
    assert without_time(row) == {
        "qid": "A", "question": "Where is the key?", "hits": HITS, "turn": 1,
        "answer": "It is under the mat.", "citations": ["c1"],
    }  # fmt: skip


def test_an_error_of_the_app_is_an_errored_trace() -> None:
    recorder = ragauge.record("traces.jsonl")

    @recorder
    def ask(question: str) -> str:
        raise TimeoutError(f"the index\nsleeps: {question}")

    with pytest.raises(TimeoutError):
        ask("Where is the key?")
    with pytest.raises(KeyboardInterrupt), recorder.trace("Stopped by hand"):
        raise KeyboardInterrupt
    (row,) = rows()
    assert without_time(row) == {
        "question": "Where is the key?",
        "error": "TimeoutError: the index",
    }
    scores = ragauge.score(GOLD[:1], "traces.jsonl")
    assert scores.tally.errored == 1
    assert scores.questions[0].label == "ERRORED"


class Message:
    content = "It is under the mat."


class Result:
    answer = "It is under the mat."
    hits = HITS


class Document:
    """As LangChain's."""

    def __init__(self, text: str, **metadata: Any) -> None:
        self.page_content, self.metadata, self.id = text, metadata, None


@pytest.mark.parametrize(
    "returned",
    [
        ("It is under the mat.", HITS),
        (HITS, "It is under the mat."),
        (Message(), HITS),
        {"answer": "It is under the mat.", "hits": HITS},
        {"response": "It is under the mat.", "documents": HITS},
        {"answer": Message(), "sources": HITS},
        Result(),
    ],
    ids=lambda returned: type(returned).__name__,
)
def test_a_function_is_decorated_whatever_it_returns(returned: Any) -> None:
    @ragauge.record("traces.jsonl")
    def ask(user: int, question: str) -> Any:
        """Answers."""
        return returned if user and question else None

    assert ask(7, question="Where is the key?") is returned
    assert ask.__doc__ == "Answers."
    (row,) = rows()
    assert without_time(row) == {
        "question": "Where is the key?", "answer": "It is under the mat.", "hits": HITS,
    }  # fmt: skip


def test_functions_that_wait_and_that_yield_are_decorated() -> None:
    recorder = ragauge.record("traces.jsonl")

    @recorder
    async def wait(question: str) -> str:
        await asyncio.sleep(0)
        return question.replace("q1", "one")

    @recorder
    async def stream_slowly(question: str) -> AsyncIterator[str]:
        for piece in ("tw", question.replace("q2", "o")):
            yield piece

    @recorder
    def stream(question: str) -> Iterator[Any]:
        yield "thr"
        yield question.replace("q3", "ee")
        yield HITS

    async def all_of_it() -> list[str]:
        return [piece async for piece in stream_slowly("q2")]

    assert asyncio.run(wait("q1")) == "one"
    assert asyncio.run(all_of_it()) == ["tw", "o"]
    assert list(stream("q3")) == ["thr", "ee", HITS]
    assert [(row["question"], row["answer"], row.get("hits")) for row in rows()] == [
        ("q1", "one", None), ("q2", "two", None), ("q3", "three", HITS),
    ]  # fmt: skip


def test_documents_keep_what_places_them() -> None:
    documents = [Document("The key is under the mat.", source="/srv/docs/key.md", start_index=4)]
    ragauge.record("traces.jsonl").write("q", "a", [*documents, "a text of more than four words"])
    (row,) = rows()
    assert row["hits"] == [
        {"doc": "/srv/docs/key.md", "text": "The key is under the mat.", "offsets": [4, 29],
         "unit": "char"},
        {"text": "a text of more than four words"},
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("document", "hit"),
    [
        ({"id": "c", "text": "t", "source": "a.md"}, {"id": "c", "text": "t", "doc": "a.md"}),
        ({"id": "c", "metadata": {"file_path": "/x/a.md"}}, {"id": "c", "doc": "/x/a.md"}),
        ({"chunk_id": "c", "doc": "a.md", "colour": "red"}, {"chunk_id": "c", "doc": "a.md"}),
        (({"id": "c"}, 0.5), {"id": "c", "score": 0.5}),
        ({"payload": {"text": "one two three"}}, {"text": "one two three"}),
    ],
)
def test_dicts_become_hits_that_are_read_whole(document: Any, hit: Any) -> None:
    ragauge.record("traces.jsonl").write("q", "a", [document])
    (row,) = rows()
    assert row["hits"] == [hit]


def test_secrets_are_not_recorded() -> None:
    recorder = ragauge.record("traces.jsonl", secrets=["correct horse battery"])
    key = "sk-proj-abcdef0123456789abcdef"
    recorder.write(
        f"use {key}", "It is correct horse battery.", [{"id": "c", "text": "token=abcdef0123"}],
        headers={"authorization": "Bearer abc.def"},
    )  # fmt: skip
    text = Path("traces.jsonl").read_text()
    assert key not in text
    assert "correct horse" not in text
    assert "abc.def" not in text
    assert text.count("[redacted]") >= 3


def test_what_json_does_not_know_is_written_as_text() -> None:
    recorder = ragauge.record("traces.jsonl")
    recorder.write("q", "half a \ud83d", [{"id": "c", "seen": {1, 2}, "n": 10**30}])
    recorder.write("q", "nan", [{"id": "c", "score": float("nan")}])
    recorder.write("q", object(), "c1")
    assert recorder.failures == 0
    first, second, third = rows()
    assert first["answer"] == "half a ?"
    assert second["hits"][0]["score"] is None
    assert third["hits"] == ["c1"]


def test_a_fault_of_the_file_never_reaches_the_app(
    folder: Folder, caplog: pytest.LogCaptureFixture
) -> None:
    folder.write("file", "")
    recorder = ragauge.record("file/traces.jsonl")  # below a file there can be none
    with caplog.at_level(logging.WARNING, "ragauge"):
        assert not recorder.write("q", "a")
        assert not recorder.write("q", "a")
    assert recorder.failures == 2
    assert len(caplog.records) == 1  # once, not for every question
    assert "traces are not recorded in file/traces.jsonl" in caplog.text

    class Odd:
        @property
        def page_content(self) -> str:
            raise ValueError("closed")

    healthy = ragauge.record("traces.jsonl")
    assert not healthy.write("q", "a", [Odd()])
    assert healthy.failures == 1
    with pytest.raises(RagaugeError, match="cannot be written"):
        ragauge.record("file/traces.jsonl", strict=True).write("q", "a")


def test_half_a_line_of_a_killed_process_stays_one_bad_line() -> None:
    Path("traces.jsonl").write_bytes(b'{"question": "lost", "ans')
    ragauge.record("traces.jsonl").write("q", "a")
    lines = Path("traces.jsonl").read_text().splitlines()
    assert lines[0] == '{"question": "lost", "ans'
    assert json.loads(lines[1])["question"] == "q"


def test_a_file_that_was_rotated_is_made_anew() -> None:
    recorder = ragauge.record("traces.jsonl")
    recorder.write("q1", "a")
    os.rename("traces.jsonl", "traces.1.jsonl")
    recorder.write("q2", "a")
    assert [row["question"] for row in rows()] == ["q2"]


def test_threads_write_whole_lines() -> None:
    recorder = ragauge.record("traces.jsonl")
    text = "word " * 2000

    def work(name: int) -> None:
        for number in range(20):
            recorder.write(f"{name}-{number}", text)

    threads = [threading.Thread(target=work, args=(name,)) for name in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len({row["question"] for row in rows()}) == len(rows()) == 160


@pytest.mark.slow
def test_processes_write_whole_lines() -> None:
    code = (
        "import ragauge, sys\n"
        "recorder = ragauge.record('traces.jsonl', strict=True)\n"
        "for number in range(50): recorder.write(f'{sys.argv[1]}-{number}', 'word ' * 20000)\n"
    )
    workers = [subprocess.Popen([sys.executable, "-c", code, str(name)]) for name in range(3)]
    assert [worker.wait(120) for worker in workers] == [0, 0, 0]
    assert len({row["question"] for row in rows()}) == 150


@pytest.mark.parametrize("path", [None, 5, b"traces.jsonl", ["traces.jsonl"]])
def test_a_path_is_needed(path: Any) -> None:
    with pytest.raises(RagaugeError, match="recorded in a file"):
        ragauge.record(path)


def test_what_cannot_be_decorated_or_chosen_is_an_error() -> None:
    with pytest.raises(RagaugeError, match=r"recorder\.write"):
        ragauge.record("t.jsonl")("Where?")  # type: ignore[type-var]
    with pytest.raises(RagaugeError, match="a list of texts"):
        ragauge.record("t.jsonl", secrets="abc")


@pytest.mark.parametrize(
    ("document", "hit"),
    [
        (
            {"page_content": "Port 8080.", "metadata": {"id": "net#1", "source": "net.md"}},
            {"id": "net#1", "doc": "net.md", "text": "Port 8080."},
        ),
        (
            {"text": "Port 8080.", "metadata": {"id": "net#1"}},
            {"id": "net#1", "text": "Port 8080."},
        ),
        ({"content": "Port 8080.", "id": "net#1"}, {"id": "net#1", "text": "Port 8080."}),
        (
            {"node": {"text": "Port 8080.", "id_": "net#1"}, "score": 0.5},
            {"id": "net#1", "text": "Port 8080.", "score": 0.5},
        ),
        (
            ({"page_content": "Port 8080.", "metadata": {"source": "net.md"}}, 0.5),
            {"doc": "net.md", "text": "Port 8080.", "score": 0.5},
        ),
    ],
)
def test_documents_as_dicts_keep_their_text_and_id(
    document: Any, hit: dict[str, Any], tmp_path: Path
) -> None:
    """An app that answers in JSON has the documents of its library as dicts."""
    path = tmp_path / "traces.jsonl"
    assert ragauge.record(path).write("Which port?", "8080", [document])
    assert json.loads(path.read_text())["hits"] == [hit]
