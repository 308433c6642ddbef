"""What `ragauge.toml` connects to and runs needs the user's consent; nothing is sent without it."""

from __future__ import annotations

import os
import socket
import threading
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import click
import pytest

from ragauge.cli.main import root
from tests.support.command import GOLD, TRACES, Folder, Outcome
from tests.support.literal_embedder import plane_only
from tests.support.web_servers import Request, Server, http, serving

SECRET = "s3cret-of-the-user"
ROW = {
    "qid": "A1",
    "question": "Does X support null keys?",
    "topk": [{"id": "p1#2", "text": "X rejects null keys."}],
}


@pytest.fixture(autouse=True)
def _own_folders(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    """A user who has trusted nothing and begun nothing."""
    for name in ("XDG_CONFIG_HOME", "XDG_CACHE_HOME"):
        monkeypatch.setenv(name, str(tmp_path_factory.mktemp(name)))
    for name in ("RAGAUGE_ALLOW_HOSTS", "RAGAUGE_EMBED_BASE", "OPENAI_BASE_URL", "PGHOST"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("GITHUB_TOKEN", SECRET)


def vectors(request: Request) -> bytes:
    """A vector for each text, all the same."""
    texts = request.json["input"]
    return http({"data": [{"index": n, "embedding": [1.0, 0.0]} for n in range(len(texts))]})


@pytest.fixture
def server() -> Iterator[Server]:
    with serving(vectors) as running:
        yield running


def port(server: Server) -> int:
    return int(server.listening.getsockname()[1])


def write_openai(folder: Folder, base: str | None, *, name: str = "ragauge.toml") -> None:
    lines = [
        "# whoever opened the pull request wrote this",
        'embed = "openai:x"',
        'embed_cache = "none"',
        "[embedders.openai]",
        'key_variable = "GITHUB_TOKEN"',
    ]
    if base is not None:
        lines.append(f'base = "{base}/v1"')
    folder.write(name, "\n".join(lines) + "\n")


def scored(folder: Folder, *arguments: str) -> Outcome:
    """Score without gates: all that is of interest is what was sent."""
    folder.write("gold.jsonl", GOLD[:1])
    folder.write("trace.jsonl", [ROW])
    return folder.run("score", "gold.jsonl", "trace.jsonl", "--profile", "all", *arguments)


# --- an embedder in ragauge.toml ---


def test_nothing_is_sent_to_a_host_that_only_the_file_names(folder: Folder, server: Server) -> None:
    write_openai(folder, server.url)
    outcome = scored(folder)
    assert (outcome.exit_code, outcome.out) == (2, "")
    (problem,) = outcome.problems
    assert (problem.code, problem.where) == ("host-not-allowed", "ragauge.toml:6")
    assert "`127.0.0.1`" in problem.message
    assert "GITHUB_TOKEN" in problem.message
    for way in ("--allow-host 127.0.0.1", "RAGAUGE_ALLOW_HOSTS=127.0.0.1", "ragauge trust"):
        assert way in problem.hint
    assert (server.connections, server.requests) == (0, [])
    assert "connecting" not in outcome.err


def test_nothing_is_read_before_that(folder: Folder, server: Server) -> None:
    """Neither gold nor traces are there, and nobody has noticed."""
    write_openai(folder, server.url)
    outcome = folder.run("score", "gold.jsonl", "trace.jsonl")
    assert (outcome.exit_code, outcome.codes) == (2, {"host-not-allowed"})


@pytest.mark.parametrize("way", ["--allow-host", "with port", "variable", "trust", "many"])
def test_with_consent_the_key_is_sent_and_the_host_announced(
    folder: Folder, server: Server, way: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_openai(folder, server.url)
    arguments: list[str] = []
    if way == "--allow-host":
        arguments = ["--allow-host", "127.0.0.1"]
    elif way == "with port":
        arguments = ["--allow-host", f"127.0.0.1:{port(server)}"]
    elif way == "many":
        arguments = ["--allow-host", "example.com", "--allow-host", "127.0.0.1"]
    elif way == "variable":
        monkeypatch.setenv("RAGAUGE_ALLOW_HOSTS", "example.com, 127.0.0.1")
    else:
        assert folder.run("trust").exit_code == 0
    outcome = scored(folder, *arguments)
    assert outcome.problems == []
    assert server.requests[0].headers["authorization"] == f"Bearer {SECRET}"
    announced = [line for line in outcome.err.splitlines() if line.startswith("connecting")]
    assert announced == [f"connecting to 127.0.0.1:{port(server)} (named in ragauge.toml:6)"]
    assert SECRET not in outcome.err + outcome.out


@pytest.mark.parametrize(
    "host", ["127.0.0.2", "127.0.0.1:9", "0.0.0.1", "localhost", "*", "127.0.0.1.evil.com"]
)
def test_another_host_is_not_allowed(folder: Folder, server: Server, host: str) -> None:
    write_openai(folder, server.url)
    assert scored(folder, "--allow-host", host).codes == {"host-not-allowed"}
    assert server.connections == 0


@pytest.mark.parametrize("host", ["http://127.0.0.1", "127.0.0.1/v1", "a b", "", "user@host"])
def test_what_is_no_host_cannot_be_allowed(folder: Folder, host: str) -> None:
    write_openai(folder, "http://127.0.0.1:9")
    outcome = scored(folder, "--allow-host", host)
    assert (outcome.exit_code, outcome.codes) == (2, {"usage"})


def test_the_command_line_chooses_an_embedder_and_the_file_its_host(
    folder: Folder, server: Server
) -> None:
    folder.write("ragauge.toml", f'[embedders.openai]\nbase = "{server.url}/v1"\n')
    outcome = scored(folder, "--embed", "openai:x", "--embed-cache", "none")
    assert outcome.codes == {"host-not-allowed"}
    assert server.connections == 0


def test_a_variable_of_the_file_is_not_sent_to_the_host_of_the_environment(
    folder: Folder, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The user's own server is not the place for whatever the file chooses of the environment."""
    monkeypatch.setenv("RAGAUGE_EMBED_BASE", f"{server.url}/v1")
    write_openai(folder, None)
    outcome = scored(folder)
    assert outcome.codes == {"host-not-allowed"}
    assert outcome.problems[0].where == "ragauge.toml:5"
    assert server.connections == 0
    assert scored(folder, "--allow-host", "127.0.0.1").problems == []
    assert server.requests[0].headers["authorization"] == f"Bearer {SECRET}"


def test_what_the_user_names_needs_no_consent_and_is_announced(
    folder: Folder, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RAGAUGE_EMBED_BASE", f"{server.url}/v1")
    folder.write("ragauge.toml", 'embed = "openai:x"\nembed_cache = "none"\n')
    outcome = scored(folder)
    assert outcome.problems == []
    assert f"connecting to 127.0.0.1:{port(server)} (named by RAGAUGE_EMBED_BASE)" in outcome.err
    assert "authorization" not in server.requests[0].headers


@pytest.mark.parametrize(
    "arguments",
    [
        ("calibrate", "gold.jsonl"),
        ("probe", "k-sweep", "trace.jsonl"),
        ("probe", "triangulate", "gold.jsonl", "trace.jsonl"),
        ("shadow", "--live", "a.jsonl", "--shadow", "b.jsonl", "--gold", "gold.jsonl"),
        ("run", "--gold", "gold.jsonl", "--target", "python:json:loads"),
    ],
    ids=lambda arguments: arguments[0],
)
def test_every_command_that_embeds_asks_first(
    folder: Folder, server: Server, arguments: tuple[str, ...]
) -> None:
    """Before anything is read: none of the files is there."""
    write_openai(folder, server.url)
    outcome = folder.run(*arguments)
    assert (outcome.exit_code, outcome.codes) == (2, {"host-not-allowed"})
    assert server.connections == 0


def test_settings_of_another_file_are_no_more_trusted(folder: Folder, server: Server) -> None:
    write_openai(folder, server.url, name="ci/other.toml")
    outcome = scored(folder, "--config", "ci/other.toml")
    assert outcome.codes == {"host-not-allowed"}
    assert outcome.problems[0].where == "ci/other.toml:6"


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ('embed = "sentence_transformers:./model"', 1),
        ('embed = "sentence_transformers"\n[embedders.sentence_transformers]\npath = "./model"', 3),
        ('embed = "minilm"\n[embedders.minilm]\npath = "m.onnx"\nsha256 = "00"', 4),
    ],
)
def test_a_model_that_may_hold_code_needs_trust(folder: Folder, text: str, line: int) -> None:
    folder.write("ragauge.toml", text)
    for arguments in ((), ("--allow-host", "model"), ("--allow-host", "./model")):
        outcome = scored(folder, *arguments)
        if outcome.codes == {"usage"}:
            continue  # that is no host
        assert (outcome.exit_code, outcome.codes) == (2, {"not-trusted"})
        assert outcome.problems[0].where == f"ragauge.toml:{line}"
    assert folder.run("trust").exit_code == 0
    assert "not-trusted" not in scored(folder).codes


def test_a_plugin_gets_no_settings_of_the_file_without_trust(
    folder: Folder, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It does not say what they lead to; without settings it is what the user installed."""
    plane_only(monkeypatch)
    folder.write("ragauge.toml", 'embed = "plane"\nembed_cache = "none"\n')
    row = {**ROW, "question": "1 0", "topk": [{"id": "p1#2", "text": "1 0"}]}
    gold = [{**GOLD[0], "question": "1 0"}]
    assert folder.score([row], "--profile", "all", gold=gold).problems == []
    folder.write("ragauge.toml", 'embed = "plane"\n[embedders.plane]\nurl = "http://evil"\n')
    assert folder.score([row], "--profile", "all", gold=gold).codes == {"not-trusted"}


# --- a store in ragauge.toml ---


@pytest.fixture
def database() -> Iterator[list[bytes]]:
    """A server that speaks no PostgreSQL: the first bytes of every connection that is made."""
    pytest.importorskip("psycopg")
    seen: list[bytes] = []
    listening = socket.create_server(("127.0.0.1", 0))

    def accept() -> None:
        with suppress(OSError):
            while True:
                connection, _ = listening.accept()
                with connection:
                    seen.append(connection.recv(1000))

    threading.Thread(target=accept, daemon=True).start()
    os.environ["RAGAUGE_TEST_PORT"] = str(listening.getsockname()[1])
    yield seen
    del os.environ["RAGAUGE_TEST_PORT"]
    listening.shutdown(socket.SHUT_RDWR)
    listening.close()


def write_store(folder: Folder, *more: str) -> None:
    url = f"postgresql://someone@127.0.0.1:{os.environ['RAGAUGE_TEST_PORT']}/runs?sslmode=disable"
    folder.write("ragauge.toml", "\n".join([f'store = "{url}"', *more]) + "\n")


STORED = [
    ("runs", "list"),
    ("runs", "show", "one"),
    ("runs", "delete", "one"),
    ("runs", "import", "export.jsonl"),
    ("history", "answer.precision"),
    ("baseline", "set", "one"),
    ("baseline", "show"),
    ("rescore", "--all"),
    ("compare", "one", "two"),
    ("compare", "scores.json", "two"),
    ("leaderboard", "one", "two"),
    ("leaderboard", "scores.json", "two"),
    ("gate", "one"),
    ("gate", "scores.json", "--baseline", "best-of:5@main"),
    ("gate", "scores.json", "--baseline", "one"),
    ("view", "one", "--no-open"),
    ("diagnose", "one"),
    ("prompt", "one"),
    ("probe", "k-sweep", "one"),
    ("score", "gold.jsonl", "trace.jsonl", "--store"),
    ("score", "gold.jsonl", "trace.jsonl", "--baseline", "one"),
    ("score", "gold.jsonl", "trace.jsonl", "--baseline", "best-of:5"),
    ("run", "--gold", "gold.jsonl", "--target", "python:json:loads"),
    ("run", "--resume", "one"),
    ("shadow", "--live", "one", "--shadow", "two"),
]


@pytest.mark.parametrize("arguments", STORED, ids=" ".join)
def test_no_command_connects_to_a_store_that_only_the_file_names(
    folder: Folder, database: list[bytes], arguments: tuple[str, ...]
) -> None:
    write_store(folder)
    outcome = folder.run(*arguments)
    assert (outcome.exit_code, outcome.out, database) == (2, "", [])
    assert outcome.codes == {"host-not-allowed"}
    assert outcome.problems[0].where == "ragauge.toml:1"


def test_a_store_that_is_allowed_is_connected_to_and_announced(
    folder: Folder, database: list[bytes]
) -> None:
    write_store(folder)
    outcome = folder.run("runs", "list", "--allow-host", "127.0.0.1")
    assert outcome.codes == {"store-unavailable"}  # it closes the connection
    assert b"someone" in database[0]
    port = os.environ["RAGAUGE_TEST_PORT"]
    assert f"connecting to 127.0.0.1:{port} (named in ragauge.toml:1)" in outcome.err


def test_a_store_on_the_command_line_needs_no_consent(
    folder: Folder, database: list[bytes]
) -> None:
    url = f"postgresql://127.0.0.1:{os.environ['RAGAUGE_TEST_PORT']}/runs?sslmode=disable"
    outcome = folder.run("runs", "list", "--store", url)
    assert outcome.codes == {"store-unavailable"}
    assert database
    assert "(named on the command line)" in outcome.err


def test_a_store_that_is_not_used_needs_no_consent(folder: Folder, database: list[bytes]) -> None:
    """`score` without --store writes nothing into it."""
    write_store(folder)
    assert folder.score().exit_code == 0
    assert database == []


# --- a target in ragauge.toml ---

APP = """
import pathlib
pathlib.Path("ran.txt").write_text("imported")
def answer(question):
    return {"answer": "not in context", "retrieved_ids": []}
"""


@pytest.mark.parametrize(
    "address",
    [
        "python:app:answer",
        "python:./app.py:answer",
        "command:sh -c 'touch ran.txt'",
        "langchain:app:answer",
        "llamaindex:app:answer",
    ],
)
def test_code_that_only_the_file_names_does_not_run(folder: Folder, address: str) -> None:
    folder.write("app.py", APP)
    folder.write("ragauge.toml", f'# ours\ntarget = "{address}"\n')
    outcome = folder.run("run", "--gold", "gold.jsonl")
    assert (outcome.exit_code, outcome.codes) == (2, {"not-trusted"})
    assert outcome.problems[0].where == "ragauge.toml:2"
    assert not (folder.path / "ran.txt").exists()
    assert not (folder.path / "ragauge.db").exists()  # the store was not opened either


def test_code_that_is_trusted_runs(folder: Folder) -> None:
    folder.write("app.py", APP)
    folder.write("gold.jsonl", GOLD)
    folder.write("ragauge.toml", 'target = "python:app:answer"\ngold = "gold.jsonl"\n')
    shown = folder.run("trust")
    assert "line 1: uses the target python:app:answer" in shown.out
    outcome = folder.run("run", "--profile", "ship")
    assert "stored 3 results" in outcome.err
    assert (folder.path / "ran.txt").exists()


def test_a_service_of_the_file_is_asked_where_its_host_is_allowed(folder: Folder) -> None:
    with serving(lambda _: http({"answer": "not in context", "retrieved_ids": []})) as service:
        address = f"{service.url}/ask?key=${{GITHUB_TOKEN}}"
        folder.write("ragauge.toml", f'target = "{address}"\ngold = "gold.jsonl"\n')
        folder.write("gold.jsonl", GOLD)
        refused = folder.run("run", "--profile", "ship")
        assert refused.codes == {"host-not-allowed"}
        assert "GITHUB_TOKEN" in refused.problems[0].message
        assert service.connections == 0
        outcome = folder.run("run", "--profile", "ship", "--allow-host", "127.0.0.1")
        assert "stored 3 results" in outcome.err
        assert len(service.requests) == 3
        assert outcome.err.count("connecting to") == 1
        assert "(named in ragauge.toml:1)" in outcome.err


def test_a_target_on_the_command_line_is_announced_once(folder: Folder) -> None:
    folder.write("gold.jsonl", GOLD * 1)
    with serving(lambda _: http({"answer": "not in context", "retrieved_ids": []})) as service:
        outcome = folder.run(
            "run", "--gold", "gold.jsonl", "--profile", "ship", "--target", f"{service.url}/ask"
        )
        line = f"connecting to 127.0.0.1:{port(service)} (named on the command line)"
        assert outcome.err.count(line) == 1


# --- a run that somebody else began ---

FAILING = """
import pathlib
pathlib.Path("ran.txt").write_text("imported")
def answer(question):
    raise ValueError("not today")
"""


def begun(folder: Folder, *arguments: str) -> None:
    """A run in the store of the folder, all of whose questions ended in an error."""
    folder.write("app.py", FAILING)
    folder.write("gold.jsonl", GOLD)
    outcome = folder.run(
        "run", "--gold", "gold.jsonl", "--target", "python:app:answer", "--profile", "ship",
        "--run-id", "one", "--retries", "0", *arguments,
    )  # fmt: skip
    assert "3 of them errors" in outcome.err
    (folder.path / "ran.txt").unlink()


RESUME = ("run", "--resume", "one", "--retry-errors", "--retries", "0")


def somebody_else(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Go on as a user who has the same store, from a checkout, and never began a run."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "another user"))


def test_a_run_of_ones_own_is_resumed_without_a_word(folder: Folder) -> None:
    begun(folder)
    assert "stored 3 results" in folder.run(*RESUME).err


def test_code_that_a_foreign_store_names_does_not_run(
    folder: Folder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun(folder)
    somebody_else(tmp_path, monkeypatch)
    outcome = folder.run(*RESUME)
    assert (outcome.exit_code, outcome.codes) == (2, {"not-trusted"})
    assert "--target python:app:answer" in outcome.problems[0].hint
    outcome = folder.run(*RESUME, "--target", "python:app:answer")
    assert "stored 3 results" in outcome.err


def test_options_and_embedders_of_a_foreign_store_are_repeated_too(
    folder: Folder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    code = FAILING.replace("question)", "question, base)")
    plane_only(monkeypatch)
    folder.write("app.py", code)
    monkeypatch.setattr("tests.cli.test_trust.FAILING", code)
    begun(folder, "--option", "base=http://evil", "--embed", "plane", "--embed-cache", "none")
    somebody_else(tmp_path, monkeypatch)
    repeated = ["--target", "python:app:answer"]
    outcome = folder.run(*RESUME, *repeated)
    assert outcome.codes == {"not-trusted"}
    assert "--option base=http://evil" in outcome.problems[0].hint
    repeated += ["--option", "base=http://evil"]
    outcome = folder.run(*RESUME, *repeated)
    assert outcome.codes == {"not-trusted"}
    assert "--embed plane" in outcome.problems[0].hint
    outcome = folder.run(*RESUME, *repeated, "--embed", "plane", "--embed-cache", "none")
    assert "stored 3 results" in outcome.err


# --- the command ---


def test_trust_shows_what_it_trusts(folder: Folder, server: Server) -> None:
    write_openai(folder, server.url)
    outcome = folder.run("trust", "--dry-run")
    place = os.path.realpath(folder.path / "ragauge.toml")
    lines = [
        place,
        f"  line 6: connects to 127.0.0.1:{port(server)}, with the value of GITHUB_TOKEN",
    ]
    assert (outcome.exit_code, outcome.out.splitlines()) == (0, lines)
    assert "nothing was written" in outcome.err
    assert scored(folder).codes == {"host-not-allowed"}
    outcome = folder.run("trust", str(folder.path))
    assert (outcome.exit_code, outcome.out.splitlines()) == (0, lines)
    listed = folder.run("trust", "--list")
    assert listed.out.splitlines()[0] == f"{place}  (trusted)"
    assert SECRET not in outcome.out + listed.out
    assert server.connections == 0


def test_trust_ends_when_a_network_setting_changes(folder: Folder, server: Server) -> None:
    write_openai(folder, server.url)
    folder.run("trust")
    path = folder.path / "ragauge.toml"
    path.write_text(path.read_text() + "[gates]\nprecision = 0\n")
    assert scored(folder).problems == []  # gates lead nowhere
    sent = server.connections
    path.write_text(path.read_text().replace("GITHUB_TOKEN", "AWS_SECRET_ACCESS_KEY"))
    outcome = scored(folder)
    assert outcome.codes == {"host-not-allowed"}
    assert "changed since" in outcome.problems[0].message
    assert server.connections == sent
    assert "changed since" in folder.run("trust", "--list").out


def test_trust_is_for_one_file_by_its_real_path(folder: Folder, server: Server) -> None:
    write_openai(folder, server.url)
    folder.run("trust")
    (folder.path / "copy.toml").write_bytes((folder.path / "ragauge.toml").read_bytes())
    (folder.path / "link.toml").symlink_to("ragauge.toml")
    assert scored(folder, "--config", "copy.toml").codes == {"host-not-allowed"}
    assert scored(folder, "--config", "link.toml").problems == []


def test_trust_can_be_taken_back(folder: Folder, server: Server) -> None:
    write_openai(folder, server.url)
    folder.run("trust")
    assert folder.run("trust", "--remove").exit_code == 0
    assert scored(folder).codes == {"host-not-allowed"}
    assert "nothing is trusted" in folder.run("trust", "--list").err
    assert folder.run("trust", "--remove").codes == {"usage"}


def test_a_file_that_leads_nowhere_needs_no_trust(folder: Folder) -> None:
    folder.write("ragauge.toml", 'store = "sqlite:///x.db"\nembed = "hashing"\n')
    outcome = folder.run("trust")
    assert (outcome.exit_code, "nothing to trust" in outcome.out) == (0, True)
    assert folder.run("trust", "--list").out == ""


@pytest.mark.parametrize(
    "arguments", [("--list", "x"), ("--list", "--remove"), ("--dry-run", "--list")]
)
def test_options_of_trust_that_exclude_each_other(
    folder: Folder, arguments: tuple[str, ...]
) -> None:
    assert folder.run("trust", *arguments).codes == {"usage"}


def test_a_file_that_is_not_there_cannot_be_trusted(folder: Folder) -> None:
    assert folder.run("trust", "nowhere.toml").codes == {"file-not-found"}


def test_a_folder_of_the_project_is_never_that_of_the_user(
    folder: Folder, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A relative XDG_CONFIG_HOME would be in the checkout; its specification forbids it."""
    write_openai(folder, server.url)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(folder.path / "settings"))
    folder.run("trust")
    assert (folder.path / "settings/ragauge/trusted.toml").exists()
    monkeypatch.setenv("XDG_CONFIG_HOME", "settings")
    monkeypatch.setenv("HOME", str(folder.path / "home"))
    assert scored(folder).codes == {"host-not-allowed"}
    assert server.connections == 0


def test_a_damaged_list_is_told_with_its_line(folder: Folder, server: Server) -> None:
    write_openai(folder, server.url)
    path = Path(os.environ["XDG_CONFIG_HOME"]) / "ragauge" / "trusted.toml"
    path.parent.mkdir()
    path.write_text("# fine\n[[file]\n")
    outcome = scored(folder)
    assert (outcome.exit_code, outcome.codes) == (2, {"bad-config"})
    assert outcome.problems[0].where == f"{path}:2"


# --- every command ---


def commands(command: click.Command, name: str) -> Iterator[tuple[str, click.Command]]:
    if not isinstance(command, click.Group):
        yield name, command
        return
    context = click.Context(command, info_name=name)
    for each in command.list_commands(context):
        inner = command.get_command(context, each)
        assert inner is not None
        yield from commands(inner, f"{name} {each}".strip())


def test_every_command_that_may_connect_can_be_allowed_a_host() -> None:
    options = {
        name: {flag for parameter in command.params for flag in parameter.opts}
        for name, command in commands(root, "")
    }
    connecting = {name for name, flags in options.items() if flags & {"--store", "--embed"}}
    assert {"score", "run", "compare", "runs list", "probe k-sweep"} <= connecting
    assert [name for name in connecting if "--allow-host" not in options[name]] == []
    assert {name for name in options if "--allow-host" in options[name]} == connecting


def test_traces_without_texts_send_nothing(folder: Folder, server: Server) -> None:
    """A host that is allowed is announced when it is connected to, and not before."""
    write_openai(folder, server.url)
    outcome = folder.score(TRACES, "--allow-host", "127.0.0.1")
    assert (server.connections, "connecting" in outcome.err) == (0, False)
