"""`ragauge serve`: what its settings may not do, found before anything listens."""

from __future__ import annotations

import msgspec
import pytest

from ragauge.live.settings import LiveSettings
from ragauge.live.web import LiveServer
from ragauge.live.worker_process import WorkerOrder, WorkerProcess
from tests.support.command import Folder
from tests.support.worker_run import run_worker

WEBHOOK = '[[live.alerts.webhooks]]\nurl = "{}"\n'
RULE = '[live.alerts.rules.errors]\nmetric = "{}"\nabove = 0.1\n'


@pytest.fixture(autouse=True)
def _never_listens(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is not refused fails the test, instead of serving for ever."""

    def listen(_: object) -> None:
        pytest.fail("it would listen")

    monkeypatch.setattr(WorkerProcess, "start", lambda _: None)
    monkeypatch.setattr(LiveServer, "run", listen)


@pytest.mark.parametrize(
    ("settings", "code", "line"),
    [
        (WEBHOOK.format("not a url"), "bad-config", 1),
        (WEBHOOK.format("file:///etc/passwd"), "bad-config", 1),
        ('[live.shadow]\ntarget = "nosuch:x"\n', "bad-target", 2),
        ('[live.shadow]\ntarget = "bm25:"\nlive = "bm26:"\n', "bad-target", 3),
        (RULE.format("live.errors"), "bad-config", 2),
        (RULE.format("retrieval.recall@77"), "bad-config", 2),
        ('[live]\ncorpus = "nosuch"\n', "file-not-found", 2),
        ('[live]\ngold = "nosuch.jsonl"\n', "file-not-found", 2),
        ('[live.redaction]\npatterns = ["a", "("]\n', "bad-config", 2),
        ('[live.alerts]\nlog = "gold.jsonl"\n', "bad-config", 2),
        ('[live.alerts]\nlog = "notes.log"\n', "bad-config", 2),
        ('[live.alerts]\nlog = "profile"\n', "bad-config", 2),
        ('[live.alerts]\nlog = "link.jsonl"\n', "bad-config", 2),
    ],
)
def test_settings_that_the_worker_would_fail_at_are_refused_at_their_line(
    folder: Folder, settings: str, code: str, line: int
) -> None:
    """Else the server would take traces that nobody scores, and tell nobody."""
    kept = {"gold.jsonl": '{"qid": "A", "question": "x"}\n', "notes.log": "words", "profile": ""}
    for name, content in kept.items():
        folder.write(name, content)
    (folder.path / "link.jsonl").symlink_to("profile")
    folder.write("ragauge.toml", settings)
    outcome = folder.run("serve", "--port", "0", "--allow-host", "x")
    assert outcome.exit_code in (2, 3)
    assert outcome.codes == {code}
    assert f"ragauge.toml:{line}" in outcome.err
    assert {name: (folder.path / name).read_text() for name in kept} == kept


@pytest.mark.parametrize(
    ("settings", "code"),
    [
        ('[live]\nstore = "postgresql://db.example/x"\n', "host-not-allowed"),
        (WEBHOOK.format("http://hook.example/x"), "host-not-allowed"),
        ('[live.shadow]\ntarget = "http://ask.example/x"\n', "host-not-allowed"),
        ('[live.shadow]\ntarget = "python:evil:ask"\n', "not-trusted"),
        ('[live.shadow]\ntarget = "bm25:"\nlive = "command:evil"\n', "not-trusted"),
        ('[live.shadow]\ntarget = "bm25:"\non_promote = "command:evil"\n', "not-trusted"),
        ('[live.shadow]\ntarget = "bm25:"\non_roll_back = "command:evil"\n', "not-trusted"),
        ('[live.shadow]\ntarget = "bm25:"\noptions = {a = "${HOME}"}\n', "not-trusted"),
    ],
)
def test_what_the_file_connects_to_or_runs_needs_consent(
    folder: Folder, settings: str, code: str
) -> None:
    folder.write("ragauge.toml", settings)
    outcome = folder.run("serve", "--port", "0")
    assert (outcome.exit_code, outcome.codes) == (2, {code})
    assert not list(folder.path.glob("*.db*")), "nothing is opened before"


def test_another_variable_to_sign_with_ends_trust(
    folder: Folder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(folder.path / "settings"))
    hook = WEBHOOK.format("http://hook.example/x") + 'secret_variable = "{}"\n'
    folder.write("ragauge.toml", hook.format("HOOK_SECRET"))
    assert folder.run("trust").exit_code == 0
    trusted = folder.run("serve", "--port", "0")
    assert trusted.codes == {"bad-config"}, "it is not set, which is all that is wrong"
    folder.write("ragauge.toml", hook.format("GITHUB_TOKEN"))
    changed = folder.run("serve", "--port", "0")
    assert changed.codes == {"host-not-allowed"}
    assert "has changed since" in changed.err


@pytest.mark.slow
def test_the_worker_announces_its_hosts_and_prints_nothing_that_is_obeyed(folder: Folder) -> None:
    order = WorkerOrder(
        settings=LiveSettings(),
        store_url="sqlite:///live.db",
        spool="spool",
        named_hosts={"127.0.0.1": "named in ragauge.toml:7"},
    )
    err = run_worker(msgspec.json.encode(order), folder.path)
    assert "connecting to 127.0.0.1:1 (named in ragauge.toml:7)" in err
    assert "\x1b" not in err
    (line,) = [line for line in err.splitlines() if "an app\\x1b]0;title\\x07" in line]
    assert line.endswith("INFO promote"), "no line of its own"
    assert "a target prints\\x1b[2J" in err
    assert not any(line.lstrip().startswith("::") for line in err.splitlines())
