"""The targets `python:`, `command:` and `http:`, with real functions, processes and servers."""

from __future__ import annotations

import shutil
import ssl
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest

from ragauge.errors import RagaugeError
from ragauge.files import http_client
from ragauge.model.target import Exchange, Target, TargetError, TargetOptions, TargetQuestion
from ragauge.run import run
from ragauge.run.secrets import shown_address
from ragauge.targets.http import HttpTarget
from tests.support.web_servers import Request, http, serving

ASKED = TargetQuestion(
    qid="Q1", text='What is "X"?', paraphrase=2, seed=7, turn=3,
    history=(Exchange("before", "so"),), number=4,
)  # fmt: skip
PLAIN = TargetQuestion(qid="Q1", text="What is X?")


@contextmanager
def opened(address: str, timeout: float = 10.0, /, **settings: str) -> Iterator[Target]:
    target = run.open_target(address, TargetOptions(k=5, timeout=timeout, settings=settings))
    with closing(target):
        yield target


def refused(address: str, **settings: str) -> str:
    with pytest.raises(RagaugeError) as caught, opened(address, **settings):
        pass
    assert caught.value.code == "bad-target"
    assert caught.value.problems[0].hint
    return caught.value.problems[0].message


def failure(target: Target, question: TargetQuestion = PLAIN) -> TargetError:
    with pytest.raises(TargetError) as caught:
        target.ask(question)
    return caught.value


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A folder of one's own, and no connection that was kept."""
    monkeypatch.chdir(tmp_path)
    yield
    http_client.close()


# --- python ---

FUNCTIONS = """
import asyncio, time
from beside import NAME

def all(question, qid, paraphrase, seed, turn, history, k):
    return [question, qid, paraphrase, seed, turn, history, k]
def some(k, question): return {"hits": [question, str(k)]}
def one(query): return [query]
def first(query, k=3, top=1): return [query, k, top]
def anything(**given): return given
def keyword(*, question): return [question]
async def later(question):
    await asyncio.sleep(0.01)
    return [question]
async def never(question): await asyncio.sleep(60)
def broken(question): raise ValueError("no index")
def unreachable(question): raise ConnectionError("refused")
def leaves(question): raise SystemExit(2)
class Busy(Exception):
    def __init__(self, after): self.retry_after = after
def busy(question): raise Busy(1.5)
def odd(question): raise Busy("soon")
class System:
    def ask(self, question): return [question, NAME]
    async def __call__(self, question): return ["called"]
system = System()
number = 3
def needs(question, client): ...
"""


@pytest.fixture
def functions() -> str:
    Path("beside.py").write_text("NAME = 'beside'\n")
    Path("my_rag.py").write_text(FUNCTIONS)
    return "python:my_rag"


@pytest.mark.parametrize(
    ("name", "settings", "answer"),
    [
        ("all", {}, ['What is "X"?', "Q1", 2, 7, 3, [{"question": "before", "answer": "so"}], 5]),
        ("some", {}, {"hits": ['What is "X"?', "5"]}),
        ("one", {}, ['What is "X"?']),
        ("first", {}, ['What is "X"?', 5, 1]),
        ("first", {"top": "4"}, ['What is "X"?', 5, 4]),
        ("keyword", {}, ['What is "X"?']),
        ("later", {}, ['What is "X"?']),
        ("system.ask", {}, ['What is "X"?', "beside"]),
        ("system", {}, ["called"]),
    ],
)
def test_a_function_gets_what_it_takes(
    functions: str, name: str, settings: dict[str, str], answer: Any
) -> None:
    with opened(f"{functions}:{name}", **settings) as target:
        assert target.ask(ASKED) == answer


@pytest.mark.parametrize(
    ("name", "transient", "wait"),
    [("busy", True, 1.5), ("odd", False, None), ("unreachable", True, None)],
)
def test_an_exception_may_ask_for_a_wait(
    functions: str, name: str, transient: bool, wait: float | None
) -> None:
    with opened(f"{functions}:{name}") as target:
        error = failure(target)
    assert (error.transient, error.wait, error.busy) == (transient, wait, wait is not None)


def test_a_function_that_takes_anything_gets_everything(functions: str) -> None:
    with opened(f"{functions}:anything", extra="[1, 2]", word="so") as target:
        given = dict(target.ask(ASKED))
    assert given.pop("extra") == [1, 2]
    assert given.pop("word") == "so"
    assert list(given) == ["question", "qid", "paraphrase", "seed", "turn", "history", "k"]


def test_a_function_may_be_named_by_its_file(functions: str) -> None:
    assert functions
    Path("sub").mkdir()
    Path("my_rag.py").rename("sub/rag.py")
    Path("beside.py").rename("sub/beside.py")
    with opened("python:sub/rag.py:one") as target:
        found: Any = target.ask(PLAIN)
    assert found == ["What is X?"]


@pytest.mark.parametrize(
    ("name", "reason", "transient"),
    [
        ("broken", "ValueError: no index", False),
        ("unreachable", "ConnectionError: refused", True),
        ("leaves", "SystemExit: 2", False),
    ],
)
def test_what_a_function_raises_is_its_error(
    functions: str, name: str, reason: str, transient: bool
) -> None:
    with opened(f"{functions}:{name}") as target:
        error = failure(target)
    assert (error.reason, error.transient) == (reason, transient)


def test_an_async_function_that_hangs_is_given_up(functions: str) -> None:
    with opened(f"{functions}:never", 0.1) as target:
        error = failure(target)
    assert (error.reason, error.transient) == ("no answer within 0.1 s", True)


@pytest.mark.parametrize(
    ("address", "message"),
    [
        ("python:my_rag", "`python:my_rag` names no function"),
        ("python:my_rag:nothing", "there is no `nothing` in `my_rag`"),
        ("python:my_rag:number", "`number` in `my_rag` is no function"),
        ("python:my_rag:needs", "`my_rag:needs` needs `client`, which nothing gives it"),
        ("python:no_such_module:f", "`no_such_module` cannot be imported: ModuleNotFoundError"),
        ("python:no/file.py:f", "there is no file `no/file.py`"),
        ("python:damaged:f", "`damaged` cannot be imported: SyntaxError"),
    ],
)
def test_functions_that_can_never_work_are_refused(
    functions: str, address: str, message: str
) -> None:
    assert functions
    Path("damaged.py").write_text("def f(:\n")
    assert refused(address).startswith(message)


def test_an_option_that_no_parameter_takes_is_refused(functions: str) -> None:
    assert refused(f"{functions}:one", top="3") == "`my_rag:one` takes no `top`"


def test_a_scheme_that_nobody_knows_is_refused_with_those_that_are() -> None:
    with pytest.raises(RagaugeError, match=r"known: .*command:, .*python:"):
        run.open_target("ftp://host", TargetOptions())
    assert refused("nonsense") == "`nonsense` is no target"


# --- command ---

PROGRAM = """
import json, os, sys, time
for line in sys.stdin:
    asked = json.loads(line)
    question = asked["question"]
    if question == "die":
        print("I cannot", file=sys.stderr); print("go on", file=sys.stderr)
        os._exit(3)
    if question == "killed": os.kill(os.getpid(), 9)
    if question == "hang": time.sleep(60)
    if question == "garbage": print("Loading model..."); sys.stdout.flush(); continue
    if question == "close": os.close(1); time.sleep(60)
    if question == "flood": sys.stderr.write("x" * 300_000 + "\\n"); sys.stderr.flush()
    print(json.dumps({"hits": [str(os.getpid())], "asked": asked}), flush=True)
"""


@pytest.fixture
def program() -> str:
    Path("program.py").write_text(PROGRAM)
    return f"command:{sys.executable} program.py"


def asked(text: str) -> TargetQuestion:
    return TargetQuestion(qid="Q", text=text)


def test_a_process_is_asked_again_and_again(program: str) -> None:
    with opened(program) as target:
        found = [target.ask(ASKED) for _ in range(3)]
    assert len({each["hits"][0] for each in found}) == 1
    assert found[0]["asked"] == {
        "qid": "Q1", "question": 'What is "X"?', "paraphrase": 2, "seed": 7, "turn": 3,
        "history": [{"question": "before", "answer": "so"}], "k": 5, "slot": 4,
    }  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize(
    ("text", "reason", "transient"),
    [
        ("die", "the process ended with exit code 3; it said: I cannot | go on", True),
        ("killed", "the process was killed by signal 9", True),
        ("hang", "no answer within 0.5 s", True),
        ("garbage", "a line of the output is no JSON", False),
        ("close", "the process closed its output", True),
    ],
)
def test_a_process_that_fails_is_replaced(
    program: str, text: str, reason: str, transient: bool
) -> None:
    with opened(program, 0.5 if text == "hang" else 10.0) as target:
        if text == "hang":
            target.timeout = 10.0  # type: ignore[attr-defined]  # to start a process takes a while
            target.ask(asked("warm"))
            target.timeout = 0.5  # type: ignore[attr-defined]
        before = None if text == "hang" else target.ask(asked("ok"))["hits"]
        error = failure(target, asked(text))
        assert error.reason.startswith(reason)
        assert error.transient is transient
        target.timeout = 10.0  # type: ignore[attr-defined]
        assert target.ask(asked("ok"))["hits"] != before


def test_a_process_that_complains_at_length_is_not_stuck(program: str) -> None:
    with opened(program) as target:
        assert target.ask(asked("flood"))["hits"]


def test_processes_are_gone_when_the_target_is_closed(program: str) -> None:
    with opened(program) as target:
        pid = int(target.ask(asked("ok"))["hits"][0])
        assert Path(f"/proc/{pid}").exists() or not Path("/proc").exists()
    assert not Path(f"/proc/{pid}").exists()


@pytest.mark.parametrize(
    ("address", "message"),
    [
        ("command:", "`command:` names no program"),
        ("command:no-such-program-here x", "there is no program `no-such-program-here`"),
        ("command:python 'x", "`python 'x` cannot be split: No closing quotation"),
    ],
)
def test_commands_that_can_never_work_are_refused(address: str, message: str) -> None:
    assert refused(address) == message


# --- http ---


def test_a_service_is_sent_the_question_and_answers_with_a_row() -> None:
    with serving(lambda _: http({"hits": ["a"]})) as server, opened(f"{server.url}/ask") as target:
        assert target.ask(ASKED) == {"hits": ["a"]}
        request = server.requests[0]
        assert request.line == "POST /ask HTTP/1.1"
        assert request.headers["content-type"] == "application/json"
        assert request.json == {
            "question": 'What is "X"?', "qid": "Q1", "paraphrase": 2, "seed": 7, "turn": 3,
            "history": [{"question": "before", "answer": "so"}], "k": 5,
        }  # fmt: skip


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A certificate of 127.0.0.1 with its key, which nobody has signed but itself."""
    program = shutil.which("openssl")
    if program is None:
        pytest.skip("there is no openssl to make a certificate with")
    path = tmp_path_factory.mktemp("tls") / "certificate.pem"
    subprocess.run(
        [program, "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-keyout", path,
         "-out", path.with_name("public.pem"), "-subj", "/CN=127.0.0.1", "-addext",
         "subjectAltName=IP:127.0.0.1"], check=True, capture_output=True,
    )  # fmt: skip
    path.write_bytes(path.read_bytes() + path.with_name("public.pem").read_bytes())
    return path


def _encrypted(certificate: Path) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)
    return context


@pytest.mark.slow
def test_a_service_behind_tls_is_asked_if_its_certificate_is_trusted(
    certificate: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
    with serving(lambda _: http({"hits": ["a"]}), _encrypted(certificate)) as server:
        assert server.url.startswith("https://")
        with opened(f"{server.url}/ask") as target:
            assert target.ask(PLAIN) == {"hits": ["a"]}
        assert [request.line for request in server.requests] == ["POST /ask HTTP/1.1"]


@pytest.mark.slow
def test_a_service_whose_certificate_nobody_trusts_is_told_nothing(certificate: Path) -> None:
    with (
        serving(lambda _: http({"hits": ["a"]}), _encrypted(certificate)) as server,
        opened(server.url) as target,
    ):
        error = failure(target)
        assert "certificate" in str(error).lower()
        assert server.requests == []


def test_a_body_is_filled_in_as_json() -> None:
    body = '{"query": {question}, "filter": {"top": {k}, "seed": {seed}}, "q": [{paraphrase}]}'
    with serving(lambda _: http({})) as server, opened(server.url, body=body) as target:
        target.ask(TargetQuestion(qid="Q", text='a "{k}" \\ é'))
        assert server.requests[0].json == {
            "query": 'a "{k}" \\ é', "filter": {"top": 5, "seed": None}, "q": [None],
        }  # fmt: skip


def test_a_url_is_filled_in_and_asked_by_get() -> None:
    with serving(lambda _: http({})) as server:
        with opened(f"{server.url}/find?q={{question}}&n={{k}}") as target:
            target.ask(asked("a b&c=ü/"))
        assert server.requests[0].line == "GET /find?q=a%20b%26c%3D%C3%BC%2F&n=5 HTTP/1.1"
        assert server.requests[0].body == b""


def test_secrets_come_from_the_environment_and_are_told_to_nobody(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("RAG_TOKEN", "geheim-123")

    def echo(request: Request) -> bytes:
        return http({"you sent": request.headers["authorization"]}, "403 Forbidden")

    header = {"header.Authorization": "Bearer ${RAG_TOKEN}"}
    with serving(echo) as server, opened(server.url, **header) as target:
        error = failure(target)
        assert server.requests[0].headers["authorization"] == "Bearer geheim-123"
        assert "geheim" not in error.reason
        assert "answered 403" in error.reason
        assert "geheim" not in str(target.about)


@pytest.mark.parametrize(
    ("options", "secrets"),
    [
        ({"header.X-Own": "${RAG_TOKEN}"}, ["geheim-123"]),
        ({"header.Authorization": "Bearer ${RAG_TOKEN}"}, ["geheim-123", "Bearer geheim-123"]),
        ({"header.X-Own": "literal"}, ["literal"]),
        ({"header.Accept-Language": "de", "header.User-Agent": "mine"}, []),
    ],
)
def test_headers_are_secrets_of_a_service(
    monkeypatch: pytest.MonkeyPatch, options: dict[str, str], secrets: list[str]
) -> None:
    monkeypatch.setenv("RAG_TOKEN", "geheim-123")
    with opened("http://127.0.0.1:9/", **options) as target:
        assert isinstance(target, HttpTarget)
        assert sorted(set(target.secrets)) == sorted(secrets)


def test_a_secret_that_is_not_there_is_refused() -> None:
    message = refused("http://127.0.0.1:9/", **{"header.X": "${NOT_SET_ANYWHERE}"})
    assert message == "the environment has no `NOT_SET_ANYWHERE`, which the target asks for"


@pytest.mark.parametrize(
    ("status", "headers", "transient", "wait"),
    [
        ("500 Error", {}, True, None),
        ("503 Busy", {"Retry_After": "2"}, True, 2.0),
        ("429 Slow", {"Retry_After": "Sun, 15 Nov 2026 10:00:30 GMT",
                      "Date": "Sun, 15 Nov 2026 10:00:00 GMT"}, True, 30.0),
        ("429 Slow", {"Retry_After": "soon"}, True, None),
        ("400 Bad", {}, False, None),
        ("404 None", {}, False, None),
    ],
)  # fmt: skip
def test_statuses_say_whether_another_try_is_worth_it(
    status: str, headers: dict[str, str], transient: bool, wait: float | None
) -> None:
    with serving(lambda _: http({"detail": "no"}, status, **headers)) as server:
        with opened(server.url) as target:
            error = failure(target)
        assert error.reason == f'{server.url} answered {status[:3]}: {{"detail": "no"}}'
        assert (error.transient, error.wait) == (transient, wait)


def test_a_redirect_is_not_followed() -> None:
    answer = http({}, "302 Found", Location="http://elsewhere/?token=x")
    with serving(lambda _: answer) as server, opened(server.url) as target:
        told = f"{server.url} answered 302, to http://elsewhere/: write that address"
        assert failure(target).reason == told


def test_what_is_no_json_is_an_error() -> None:
    with serving(lambda _: http(b"<html>oops</html>")) as server, opened(server.url) as target:
        assert failure(target).reason == f"{server.url} answered no JSON: <html>oops</html>"


def test_a_service_that_hangs_is_given_up() -> None:
    def hang(_: Request) -> bytes | None:
        server.ended.wait(600)
        return None

    with serving(hang) as server, opened(server.url, 0.1) as target:
        error = failure(target)
        assert error.transient
        assert error.reason == f"no answer from {server.url} within 0.1 s"


ANSWER = {
    "result": {
        "documents": [
            {"meta": {"key": "a", "file": "a.md"}, "similarity": 0.9},
            {"meta": {"key": "b"}, "similarity": 0.5},
        ],
        "text": "So it is.",
        "sources": ["a"],
    }
}


def test_paths_pick_a_row_out_of_an_answer() -> None:
    paths = {
        "hits": "result.documents", "id": "meta.key", "score": "similarity", "doc": "meta.file",
        "answer": "result.text", "citations": "result.sources",
    }  # fmt: skip
    with serving(lambda _: http(ANSWER)) as server, opened(server.url, **paths) as target:
        assert target.ask(PLAIN) == {
            "hits": [
                {"id": "a", "score": 0.9, "doc": "a.md"}, {"id": "b", "score": 0.5, "doc": None},
            ],
            "answer": "So it is.",
            "citations": ["a"],
        }  # fmt: skip


def test_a_path_that_finds_no_hits_is_an_error() -> None:
    with serving(lambda _: http({"x": 1})) as server, opened(server.url, hits="found") as target:
        assert failure(target).reason == "`hits=found` finds no list in the answer"


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"hits": "a["}, "`hits=a[` is no JMESPath"),
        ({"id": "x"}, "there are paths into hits, and none to them"),
        ({"body": '{"q": question}'}, "the body is no JSON"),
        ({"colour": "red"}, "a service takes no option `colour`"),
    ],
)
def test_options_that_can_never_work_are_refused(settings: dict[str, str], message: str) -> None:
    assert refused("http://127.0.0.1:9/", **settings).startswith(message)


def test_a_missing_package_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "jmespath", None)
    with pytest.raises(RagaugeError, match=r"pip install 'ragauge\[http\]'") as caught:
        run.open_target("http://127.0.0.1:9/", TargetOptions(settings={"hits": "a"}))
    assert caught.value.code == "missing-extra"


@pytest.mark.parametrize(
    ("address", "shown"),
    [
        ("http://me:pw@host/x?api_key=1&k=2", "http://me:[redacted]@host/x?api_key=[redacted]&k=2"),
        ("command:rag --api-key abc --k 3", "command:rag --api-key '[redacted]' --k 3"),
        ("command:rag -p hunter2 -k 3", "command:rag -p '[redacted]' -k 3"),
        ("command:rag  --k 3", "command:rag  --k 3"),
        ("python:a:b", "python:a:b"),
    ],
)
def test_addresses_are_shown_without_secrets(address: str, shown: str) -> None:
    assert shown_address(address) == shown
