"""`token` and `serve`: secrets are shown once, and what a file leads to needs consent first."""

from __future__ import annotations

import json
import re

from tests.support.cases import cases
from tests.support.command import Folder

STORE = "--store=sqlite:///live.db"


def create(folder: Folder, *options: str) -> str:
    outcome = folder.run("token", "create", "--scope", "ingest", *options, STORE)
    assert outcome.exit_code == 0, outcome.err
    return outcome.out.strip()


def test_a_token_is_printed_once_and_listed_without_its_secret(folder: Folder) -> None:
    token = create(
        folder, "--scope", "read", "--tenant", "shop", "--note", "exporter", "--days", "7"
    )
    match = re.fullmatch(r"rgk_([0-9a-f]{12})_([0-9a-f]{64})", token)
    assert match is not None
    listed = folder.run("token", "list", STORE)
    assert match[1] in listed.out
    assert match[2] not in listed.out + listed.err
    (entry,) = json.loads(folder.run("token", "list", "--format", "json", STORE).out)["tokens"]
    expected = {"token_id": match[1], "tenant": "shop", "scopes": ["ingest", "read"],
                "state": "active", "note": "exporter"}  # fmt: skip
    assert expected.items() <= entry.items()
    assert entry["expires"] is not None


def test_a_revoked_token_is_said_to_be(folder: Folder) -> None:
    first, second = create(folder), create(folder)
    assert folder.run("token", "revoke", first.split("_")[1], STORE).exit_code == 0
    assert folder.run("token", "revoke", second, STORE).exit_code == 0  # the whole token will do
    listed = json.loads(folder.run("token", "list", "--format", "json", STORE).out)["tokens"]
    assert [entry["state"] for entry in listed] == ["revoked", "revoked"]
    again = folder.run("token", "revoke", first.split("_")[1], STORE)
    assert (again.exit_code, again.codes) == (2, {"no-token"})


@cases(
    "options",
    [
        ("create",),
        ("create", "--scope", "all"),
        ("create", "--scope", "read", "--tenant", "Two Words"),
        ("create", "--scope", "read", "--tenant", "x" * 65),
        ("create", "--scope", "read", "--days", "0"),
        ("revoke",),
    ],
)
def test_what_is_no_token_is_refused(folder: Folder, options: tuple[str, ...]) -> None:
    assert folder.run("token", *options, STORE).codes == {"usage"}


def test_no_token_yet(folder: Folder) -> None:
    create(folder)
    assert folder.run("token", "list", "--store=sqlite:///other.db").codes == {"store-unavailable"}


def test_an_address_for_others_needs_a_token(folder: Folder) -> None:
    outcome = folder.run("serve", "--host", "0.0.0.0", STORE)
    assert (outcome.exit_code, outcome.codes) == (2, {"no-token"})


@cases(
    ("settings", "code", "line"),
    [
        ('[live]\nstore = "postgresql://db.example.com/x"', "host-not-allowed", 2),
        ('[live.shadow]\ntarget = "https://shadow.example.com/ask"', "host-not-allowed", 2),
        ('[live.shadow]\ntarget = "python:app:answer"', "not-trusted", 2),
        ('[live.shadow]\ntarget = "bm25:."\nlive = "command:rm"', "not-trusted", 3),
        ('[live.shadow]\ntarget = "bm25:."\non_promote = "command:rm -rf ."', "not-trusted", 3),
        (
            '[live.shadow]\ntarget = "bm25:."\n[live.shadow.options]\nx = "${HOME}"',
            "not-trusted",
            3,
        ),
        ('[[live.alerts.webhooks]]\nurl = "https://hooks.example.com/x"', "host-not-allowed", 2),
    ],
)
def test_what_the_file_leads_to_needs_consent(
    folder: Folder, settings: str, code: str, line: int
) -> None:
    """And the file is asked for its consent again when one of these settings changes."""
    folder.write("ragauge.toml", settings + "\n")
    command = ("token", "list") if "store" in settings else ("serve", STORE)
    outcome = folder.run(*command)
    assert (outcome.exit_code, outcome.codes) == (2, {code})
    assert outcome.problems[0].where == f"ragauge.toml:{line}"
    assert folder.run("trust").exit_code == 0
    changed = settings.replace("example.com", "evil.example").replace("python:app", "python:other")
    changed = changed.replace('"command:rm', '"command:rm x').replace("${HOME}", "${PATH}")
    assert changed != settings
    folder.write("ragauge.toml", changed + "\n")
    assert "has changed since" in folder.run(*command).err


def test_a_store_that_is_named_on_the_command_line_needs_none(folder: Folder) -> None:
    folder.write("ragauge.toml", '[live]\nstore = "postgresql://db.example.com/x"\n')
    create(folder)


def test_other_settings_of_live_change_no_trust(folder: Folder) -> None:
    webhook = '[[live.alerts.webhooks]]\nurl = "https://hooks.example.com/x"\n'
    folder.write("ragauge.toml", webhook)
    assert folder.run("trust").exit_code == 0
    folder.write("ragauge.toml", "[live.sampling]\nrate = 0.5\n" + webhook)
    assert "(trusted)" in folder.run("trust", "--list").out
