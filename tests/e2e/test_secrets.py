"""Secrets of a configuration that a system repeats: they are stored nowhere and shown nowhere."""

from __future__ import annotations

import sqlite3
import sys
from contextlib import closing, suppress
from itertools import chain
from pathlib import Path

import pytest

from ragauge.model.payloads import thaw
from tests.e2e.process import run, write
from tests.support.web_servers import Request, http, serving

HEADER, KEY, TENANT = "Bearer s3cret-token-417", "k3y-of-ours", "tenant17"
HIDDEN = ("s3cret-token-417", KEY, TENANT)
GOLD = [
    {"qid": f"Q{n}", "question": f"Number {n}?", "answerable": True, "relevant": [f"d{n}#1"]}
    for n in range(6)
]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write(tmp_path / "gold.jsonl", GOLD)
    return tmp_path


def everything_stored(folder: Path) -> str:
    """All that the store holds, its packed values unpacked."""
    parts = []
    with closing(sqlite3.connect(folder / "ragauge.db")) as database:
        tables = database.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall()
        for (table,) in tables:
            for value in chain.from_iterable(database.execute(f"SELECT * FROM {table}")):
                parts.append(str(value))
                if isinstance(value, bytes):
                    with suppress(Exception):  # not every value is packed
                        parts.append(thaw(value).decode())
    return "\n".join(parts)


def check_nowhere(folder: Path, hidden: tuple[str, ...], *said: str) -> None:
    """Look at the store, and at whatever commands show of the run."""
    stored, prompt = everything_stored(folder), run(folder, "prompt", "one").stdout
    run(folder, "view", "one", "-o", "page.html", "--no-open")
    shown = [
        *said,
        stored,
        prompt,
        (folder / "page.html").read_text(),
        run(folder, "runs", "show", "one").stdout,
        run(folder, "runs", "show", "one", "--question", "Q0").stdout,
        run(folder, "runs", "show", "one", "--question", "Q3").stdout,
        run(folder, "runs", "export", "one", "-o", "-").stdout,
        run(folder, "diagnose", "one").stdout,
    ]
    for secret in hidden:
        assert not any(secret in text for text in shown)
    assert "[redacted]" in stored
    assert "[redacted]" in prompt


def test_a_service_that_repeats_its_headers(folder: Path) -> None:
    """In answers, hits, fields of its own, refusals, and in what it says while it is busy."""

    def echo(request: Request) -> bytes:
        sent = f"{request.headers['authorization']} {request.headers['x-key']} for "
        sent += request.headers["x-tenant"]
        number = int(request.json["qid"][1:])
        if number == 0:
            return http({"detail": sent}, "403 Forbidden")
        if number == 1:
            return http(f"<p>{sent}</p>".encode())
        if number == 2:
            return http({"hits": sent})
        hits = [{"id": f"d{number}#1", "text": f"You sent {sent}."}]
        return http({"hits": hits, "answer": sent, "debug": {"headers": [sent], sent: 1}})

    with serving(echo) as server:
        done = run(
            folder, "run", "--gold", "gold.jsonl", "--target", server.url, "--run-id", "one",
            "--profile", "kb", "--retries", "0", "--allow-errored",
            "--option", f"header.Authorization={HEADER}", "--option", f"header.X-Key={KEY}",
            "--option", f"header.X-Tenant={TENANT}", "--option", "header.Accept-Language=de",
        )  # fmt: skip
        assert server.requests[0].headers["x-key"] == KEY  # it is sent as it was given
    assert done.returncode in (0, 1, 4), done.stderr
    assert "warning: 4 answers repeated a secret of the target, stored as [redacted]" in done.stderr
    check_nowhere(folder, HIDDEN, done.stdout, done.stderr)


PROGRAM = """
import json, sys
for line in sys.stdin:
    asked = json.loads(line)
    number = int(asked["qid"][1:])
    if number == 0:
        print(f"called with {sys.argv}", file=sys.stderr, flush=True)
        sys.exit(3)
    hit = {"id": f"d{number}#1", "text": " ".join(sys.argv)}
    answer = {"slot": asked["slot"], "hits": [hit], "answer": f"called with {sys.argv[2:]}"}
    print(json.dumps(answer), flush=True)
"""


def test_a_program_that_repeats_its_options(folder: Path) -> None:
    """Secrets behind short options, long ones, and in headers."""
    write(folder / "program.py", PROGRAM)
    words = f"-p hunter2xyz --api-key={KEY} -u me:{TENANT} -k 5 -H 'X-Own: s3cret-token-417'"
    done = run(
        folder, "run", "--gold", "gold.jsonl", "--run-id", "one", "--profile", "kb",
        "--target", f"command:{sys.executable} program.py {words}", "--retries", "0",
        "--allow-errored",
    )  # fmt: skip
    assert done.returncode in (0, 1, 4), done.stderr
    check_nowhere(folder, ("hunter2xyz", *HIDDEN), done.stdout, done.stderr)
    assert "-k 5" in run(folder, "runs", "show", "one").stdout
