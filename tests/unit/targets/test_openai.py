"""A language model over another target: what is sent to it, and how its answers are read."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from ragauge.model.target import Exchange, TargetError
from ragauge.targets.openai import RULES, answer_of, messages
from ragauge.text import REFUSAL_TOKEN
from tests.support.cases import cases
from tests.support.corpora import FIRST, LAST, made
from tests.support.target_calls import RED, asked, names, opened, refusal

KEY = "sk-very-secret"


class Model:
    """A server that answers as it is told, and remembers what it was sent."""

    def __init__(self) -> None:
        self.status = 200
        self.headers: dict[str, str] = {}
        self.body: Any = None
        self.said = "citations: [P1]\nThey are red."
        self.requests: list[tuple[str, Mapping[str, str], Any]] = []
        model = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                sent = self.rfile.read(int(self.headers["content-length"]))
                model.requests.append((self.path, dict(self.headers), json.loads(sent)))
                body = model.body if model.body is not None else model.completion()
                data = body if isinstance(body, bytes) else json.dumps(body).encode()
                self.send_response(model.status)
                for name, value in model.headers.items():
                    self.send_header(name, value)
                self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

            def log_message(self, *_: object) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.thread = threading.Thread(target=self.server.serve_forever, args=(0.01,), daemon=True)
        self.thread.start()
        self.base = f"http://127.0.0.1:{self.server.server_port}/v1"

    def completion(self) -> dict[str, Any]:
        message = {"role": "assistant", "content": self.said}
        return {
            "choices": [{"message": message, "finish_reason": "stop"}],
            "usage": {"prompt_tokens": 90, "completion_tokens": 7, "details": {"cached": 1}},
        }


@pytest.fixture
def model() -> Iterator[Model]:
    made_model = Model()
    yield made_model
    made_model.server.shutdown()
    made_model.server.server_close()
    made_model.thread.join()


@pytest.fixture
def ask(
    model: Model, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Callable[..., Any]]:
    """Asks the model over BM25 on the small corpus."""
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    retriever = f"bm25:{made(tmp_path)}"
    target = opened(f"openai:{model.base}?model=small", k=2, retriever=retriever)
    yield lambda text=RED, **more: asked(target, text, **more)
    target.close()


def test_an_answer_has_hits_claim_and_citations(ask: Callable[..., Any], model: Model) -> None:
    trace = ask()
    assert names(trace.hits) == [LAST, FIRST]
    assert trace.answer.claim == "They are red."
    assert trace.answer.citations == (LAST,)
    assert trace.answer.refused is False
    assert trace.index["index_hash"]
    path, headers, sent = model.requests[0]
    assert path == "/v1/chat/completions"
    assert headers["Authorization"] == f"Bearer {KEY}"
    assert (sent["model"], sent["temperature"]) == ("small", 0.0)
    assert "seed" not in sent
    assert sent["messages"][0] == {"role": "system", "content": RULES}
    assert "[P1]\nÄpfel are red.\n\n[P2]\n" in sent["messages"][-1]["content"]
    assert sent["messages"][-1]["content"].endswith(f"Question: {RED}")


def test_a_refusal_is_the_token_alone(ask: Callable[..., Any], model: Model) -> None:
    model.said = " Not in context.\n"
    trace = ask()
    assert (trace.answer.claim, trace.answer.refused) == (REFUSAL_TOKEN, True)
    assert trace.answer.citations == ()


def test_seed_and_earlier_turns_are_sent(ask: Callable[..., Any], model: Model) -> None:
    ask(seed=7, history=(Exchange("What is red?", "Äpfel."), Exchange("And blue?", None)))
    sent = model.requests[0][2]
    assert sent["seed"] == 7
    assert [(each["role"], each["content"]) for each in sent["messages"][1:-1]] == [
        ("user", "What is red?"), ("assistant", "Äpfel."), ("user", "And blue?"),
    ]  # fmt: skip


def test_a_question_without_passages_is_asked_all_the_same(
    ask: Callable[..., Any], model: Model
) -> None:
    model.said = REFUSAL_TOKEN
    trace = ask("zebra")
    assert (trace.hits, trace.answer.refused) == ((), True)
    assert "There are no passages." in model.requests[0][2]["messages"][-1]["content"]


@pytest.mark.parametrize(
    ("status", "headers", "transient", "wait"),
    [
        (429, {"Retry-After": "7"}, True, 7.0),
        (503, {}, True, None),
        (401, {}, False, None),
        (404, {"Retry-After": "soon"}, False, None),
    ],
)
def test_a_service_that_refuses_is_the_error_of_a_question(
    ask: Callable[..., Any],
    model: Model,
    status: int,
    headers: dict[str, str],
    transient: bool,
    wait: float | None,
) -> None:
    model.status, model.headers = status, headers
    model.body = {"error": f"bad key {KEY}"}
    with pytest.raises(TargetError) as raised:
        ask()
    assert (raised.value.transient, raised.value.wait) == (transient, wait)
    assert f"answered {status}" in raised.value.reason
    assert KEY not in raised.value.reason


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (b"<html>", "answered no completion"),
        ({"choices": "none"}, "answered no completion"),
        ({"choices": []}, "answered nothing"),
        ({"choices": [{"message": {"content": None}}]}, "answered nothing"),
        ({"choices": [{"message": {"content": "They"}, "finish_reason": "length"}]}, "cut off"),
    ],
)
def test_garbage_is_the_error_of_a_question(
    ask: Callable[..., Any], model: Model, body: Any, reason: str
) -> None:
    model.body = body
    with pytest.raises(TargetError, match=reason):
        ask()


def test_the_key_is_in_the_environment_and_nowhere_else(
    model: Model, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    monkeypatch.setenv("OTHER_KEY", KEY)
    settings: dict[str, Any] = {"retriever": f"bm25:{made(tmp_path)}"}
    target = opened(f"openai:{model.base}?model=small", **settings)
    asked(target)
    assert "Authorization" not in model.requests[0][1]
    target.close()
    target = opened(f"openai:{model.base}?model=small&key_env=OTHER_KEY", **settings)
    asked(target)
    assert model.requests[1][1]["Authorization"] == f"Bearer {KEY}"
    assert KEY not in str(target.about)
    target.close()
    (problem,) = refusal(f"openai:{model.base}?model=small&key_env=NO_KEY", **settings).problems
    assert "`NO_KEY`" in problem.message


@cases(
    ("address", "settings", "message"),
    [
        ("openai:http://h/v1", {"retriever": "bm25:x"}, "needs `model`"),
        ("openai:http://h/v1?model=m", {}, "needs `retriever`"),
        ("openai:http://h/v1?model=m", {"retriever": "x:y"}, "`x:` is no retriever"),
        ("openai:http://h/v1?model=m", {"retriever": "openai:y"}, "`openai:` is no retriever"),
        ("openai:ftp://h?model=m", {"retriever": "bm25:x"}, ""),
        ("openai:http://h/v1?model=m&key=1", {"retriever": "bm25:x"}, "no `key`"),
        ("openai:http://h/v1?model=m&temperature=9", {"retriever": "b:x"}, "from 0 to 2"),
    ],
)
def test_an_address_that_can_never_work_is_refused(
    address: str, settings: dict[str, Any], message: str
) -> None:
    (problem,) = refusal(address, **settings).problems
    assert problem.code == "bad-target"
    assert message in problem.message


HITS: list[dict[str, Any]] = [{"id": "a b", "text": "One."}, {"id": "c", "text": None}]


@cases(
    ("said", "answer"),
    [
        ("citations: [P1, P2]\nYes.", {"claim": "Yes.", "citations": ["a b", "c"]}),
        ("Citations: [p2]\n\nYes.", {"claim": "Yes.", "citations": ["c"]}),
        ("Yes. citations: [2]", {"claim": "Yes.", "citations": ["c"]}),
        ("citations: [c, P3, P0, x]\nYes.", {"claim": "Yes.", "citations": ["c", "P3", "P0", "x"]}),
        ("citations: []\nYes.", {"claim": "Yes.", "citations": []}),
        ("Yes.", {"claim": "Yes."}),
        ("It is not in context here.", {"claim": "It is not in context here."}),
    ],
)
def test_labels_become_ids_and_unknown_ones_stay(said: str, answer: dict[str, Any]) -> None:
    assert answer_of(said, HITS) == {**answer, "refused": False}


@pytest.mark.parametrize(
    "said", [REFUSAL_TOKEN, "NOT IN CONTEXT.", "citations: []\nnot in context"]
)
def test_a_refusal_cites_nothing(said: str) -> None:
    assert answer_of(said, HITS) == {"claim": REFUSAL_TOKEN, "citations": [], "refused": True}


def test_the_rules_name_the_line_and_the_token() -> None:
    (system, user) = messages("Why?", HITS)
    assert "citations: [P1, P3]" in system["content"]
    assert REFUSAL_TOKEN in system["content"]
    assert user["content"] == "Passages:\n\n[P1]\nOne.\n\n[P2]\n\n\nQuestion: Why?"
