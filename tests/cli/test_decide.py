"""`ragauge decide`: what it shows of decisions, its exit codes, and that it repeats them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import closing

import pytest

from ragauge.live.database import DEFAULT_URL, LiveDatabase, open_database
from tests.support.command import Folder
from tests.support.decided_store import (
    MINUTE,
    NOW,
    add_alert,
    add_pairs,
    add_window,
    decide_now,
    promoted,
    settings_of,
)


@pytest.fixture
def database(folder: Folder) -> Iterator[LiveDatabase]:  # noqa: ARG001
    """The store that the commands find by themselves, in the folder of the test."""
    with closing(open_database(DEFAULT_URL)) as opened:
        yield opened


def test_promote_is_0_and_says_every_condition(folder: Folder, database: LiveDatabase) -> None:
    promoted(database)
    outcome = folder.run("decide", "show")
    assert outcome.exit_code == 0
    assert outcome.out.startswith("PROMOTE  decision 1 of 2026-09-21T14:14:00Z\n")
    assert "every condition holds" in outcome.out
    assert "✓ citation accuracy: lower bound 0.9936 ≥ 0.9500 (n = 600)" in outcome.out
    assert "– coverage of gold against live: not judged, 0 questions" in outcome.out
    assert "600 mirrored (600 answered); 200 asked of live again (200 answered)" in outcome.out


def test_hold_is_4_and_roll_back_is_1(folder: Folder, database: LiveDatabase) -> None:
    settings = settings_of()
    add_window(database, NOW - 5 * MINUTE)
    decide_now(database, settings)
    held = folder.run("decide", "show")
    assert held.exit_code == 4
    assert held.out.startswith("HOLD  decision 1")
    assert "0 pairs, of 200 that are needed" in held.out
    add_window(database, NOW)
    add_alert(database, NOW - MINUTE, "inactive", "firing", rule="index-drift")
    decide_now(database, settings)
    back = folder.run("decide", "show")
    assert back.exit_code == 1
    assert back.out.startswith("ROLL BACK  decision 2")
    assert folder.run("decide", "show", "1").exit_code == 4
    assert folder.run("decide", "repeat", "1").exit_code == 4
    assert folder.run("decide", "repeat").exit_code == 1


def test_json_is_the_record_to_the_byte(folder: Folder, database: LiveDatabase) -> None:
    promoted(database)
    stored = database.read("SELECT record_json FROM eval_decisions")[0][0]
    assert folder.run("decide", "show", "--format", "json").out == stored + "\n"
    repeated = folder.run("decide", "repeat", "--format", "json")
    assert repeated.out == stored + "\n"
    assert "the same bytes" in repeated.err


def test_list_has_the_newest_last(folder: Folder, database: LiveDatabase) -> None:
    settings = settings_of()
    add_window(database, NOW - 5 * MINUTE)
    decide_now(database, settings)
    add_pairs(database, settings)
    add_window(database, NOW)
    add_window(database, NOW, app="wiki")
    decide_now(database, settings)
    outcome = folder.run("decide", "list")
    assert outcome.exit_code == 0
    lines = outcome.out.splitlines()
    assert [line.split()[:3] for line in lines[2:]] == [
        ["1", "hold", "shop"],
        ["2", "promote", "shop"],
        ["3", "hold", "wiki"],
    ]
    listed = json.loads(folder.run("decide", "list", "--format", "json", "--app", "wiki").out)
    assert [entry["number"] for entry in listed["decisions"]] == [3]
    assert listed["decisions"][0]["reasons"][0] == "0 pairs, of 200 that are needed"
    newest = folder.run("decide", "list", "--limit", "1").out.splitlines()
    assert newest[2].split()[0] == "3"
    assert folder.run("decide", "show", "--app", "shop").out.startswith("PROMOTE")
    assert folder.run("decide", "show", "--tenant", "acme").exit_code == 5


def test_nothing_decided_is_5_and_no_decision_is_an_error(
    folder: Folder, database: LiveDatabase
) -> None:
    assert database.read("SELECT count(*) FROM eval_decisions") == [(0,)]
    nothing = folder.run("decide", "list")
    assert (nothing.exit_code, nothing.out) == (5, "")
    assert "nothing was decided" in nothing.err
    missing = folder.run("decide", "show", "7")
    assert missing.exit_code == 5
    assert missing.codes == {"nothing-measured"}


@pytest.mark.parametrize("arguments", [("show", "9" * 30), ("list", "--limit", "9" * 30)])
def test_numbers_that_no_store_has_are_refused(
    folder: Folder, database: LiveDatabase, arguments: tuple[str, ...]
) -> None:
    promoted(database)
    assert folder.run("decide", *arguments).exit_code == 2


def test_no_store_is_an_error_and_none_is_made(folder: Folder) -> None:
    assert folder.run("decide", "list").exit_code not in (0, 70)
    assert not list(folder.path.iterdir())


def test_what_a_command_did_is_said(folder: Folder, database: LiveDatabase) -> None:
    settings = settings_of(on_promote="command:echo switched")
    add_window(database)
    add_pairs(database, settings)
    decisions = decide_now(database, settings)
    assert "it runs, or was cut off" in folder.run("decide", "show").err
    decisions.wait()
    decisions.step(NOW + 10_000)
    assert "command:echo switched: exit code 0: switched" in folder.run("decide", "show").err
