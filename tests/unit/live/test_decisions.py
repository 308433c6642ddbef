"""Decisions in a store: when they are made, what they rest on, who is told, and what is run."""

from __future__ import annotations

import json
import sqlite3
import sys
import zlib
from collections.abc import Iterator
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from ragauge.errors import RagaugeError
from ragauge.live.database import LiveDatabase, open_database
from ragauge.live.decision_rules import RULES, evidence_maker, record_bytes, unpack_evidence
from ragauge.live.decisions import (
    LATE_ALERTS,
    SETTLE,
    Decisions,
    StoredDecision,
    firing_times,
    read_decisions,
    read_record,
    repeat_decision,
    run_command,
)
from ragauge.live.settings import Alerts, LiveSettings, MirrorRule, Webhook
from tests.support.cases import cases
from tests.support.decided_store import (
    HOUR,
    MINUTE,
    NOW,
    TARGET,
    add_alert,
    add_pairs,
    add_window,
    decide_now,
    insert_pairs,
    pair_row,
    promoted,
    settings_of,
    values,
)
from tests.support.postgres import own_schema, server_url

SERVER = [pytest.mark.slow, pytest.mark.xdist_group("postgres")]  # starting it takes seconds


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=SERVER)])
def database(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[LiveDatabase]:
    with ExitStack() as stack:
        url = f"sqlite:///{tmp_path / 'live.db'}"
        if request.param == "postgres":
            url = stack.enter_context(own_schema(server_url(request.config)))
        yield stack.enter_context(closing(open_database(url)))


def newest(database: LiveDatabase) -> StoredDecision:
    return read_decisions(database)[0]


def test_a_window_that_closes_is_decided_about_once(database: LiveDatabase) -> None:
    settings = promoted(database)
    stored = newest(database)
    assert (stored.decision, stored.app, stored.live) == ("promote", "shop", "i1")
    assert (stored.begins_at, stored.ends_at) == ("2026-09-21T14:09:00Z", "2026-09-21T14:14:00Z")
    assert stored.shadow.startswith(TARGET)
    record = read_record(stored)
    assert record.reasons == ("every condition holds",)
    assert record.pairs["shadow-answered"] == 600
    decide_now(database, settings, NOW + 10_000)  # another server
    assert len(read_decisions(database, limit=9)) == 1


def test_pairs_that_come_later_do_not_decide_a_window_anew(database: LiveDatabase) -> None:
    settings = settings_of()
    add_window(database)
    decide_now(database, settings)
    add_pairs(database, settings)  # a restarted server sees them
    decide_now(database, settings, NOW + 10_000)
    assert [stored.decision for stored in read_decisions(database, limit=9)] == ["hold"]


def test_a_decision_is_repeated_to_the_byte(database: LiveDatabase) -> None:
    promoted(database)
    stored = newest(database)
    assert record_bytes(repeat_decision(database, stored)).decode() == stored.record_json


def test_the_repetition_needs_no_pair_any_more(database: LiveDatabase) -> None:
    promoted(database)
    with database.transaction() as execute:
        execute("DELETE FROM live_pairs", ())
    assert repeat_decision(database, newest(database)).decision == "promote"


def test_a_record_that_was_changed_is_noticed(database: LiveDatabase) -> None:
    promoted(database)
    stored = newest(database)
    forged = replace(stored, record_json=stored.record_json.replace('"n":600', '"n":601', 1))
    with pytest.raises(RagaugeError, match="its evidence gives another record"):
        repeat_decision(database, forged)
    with pytest.raises(RagaugeError, match="another record"):
        repeat_decision(database, replace(stored, record_hash="0" * 64))


def test_rules_of_another_version_are_not_passed_off_as_these(
    database: LiveDatabase, monkeypatch: pytest.MonkeyPatch
) -> None:
    promoted(database)
    monkeypatch.setattr("ragauge.live.decisions.RULES", RULES + 1)
    with pytest.raises(RagaugeError, match=f"version {RULES} of the rules, and this is"):
        repeat_decision(database, newest(database))
    # Evidence of version 1 was packed otherwise: its version is read all the same.
    maker = evidence_maker(
        zlib.compress(b'{"rules":1,"ragauge_version":"0","pairs":[["t","q",1]]}')
    )
    assert (maker.rules, maker.ragauge_version) == (1, "0")


def test_a_decision_is_never_changed_or_deleted(database: LiveDatabase) -> None:
    promoted(database)
    for sql in ("UPDATE eval_decisions SET decision = 'hold'", "DELETE FROM eval_decisions"):
        with pytest.raises(RagaugeError), database.transaction() as execute:
            execute(sql, ())
    assert newest(database).decision == "promote"


def test_it_waits_until_alerts_of_the_window_are_evaluated(database: LiveDatabase) -> None:
    settings = settings_of()
    add_window(database)
    add_pairs(database, settings)
    decisions = Decisions(settings, database)
    decisions.step(NOW + 1000)
    assert read_decisions(database) == []
    decisions.step(NOW + 1000 + SETTLE - 1)
    assert read_decisions(database) == []
    decisions.step(NOW + 1000 + SETTLE + 5000)
    assert newest(database).decision == "promote"


def test_only_windows_of_all_traffic_count_and_old_ones_are_left_alone(
    database: LiveDatabase,
) -> None:
    settings = settings_of()
    add_window(database, build="b1")
    add_window(database, NOW - 2 * HOUR)
    decide_now(database, settings)
    assert read_decisions(database) == []
    add_window(database, NOW)
    decide_now(database, settings)
    assert len(read_decisions(database, limit=9)) == 1


def test_only_pairs_before_the_end_of_the_window_count(database: LiveDatabase) -> None:
    settings = settings_of()
    add_window(database)
    add_pairs(database, settings)
    late = [
        pair_row(900 + n, "shadow", values("uncited"), asked=NOW + n, settings=settings)
        for n in range(100)
    ]
    insert_pairs(database, late)
    decide_now(database, settings)
    assert newest(database).decision == "promote"
    assert read_record(newest(database)).pairs["shadow-answered"] == 600


def test_pairs_with_another_index_of_live_or_of_the_shadow_do_not_count(
    database: LiveDatabase,
) -> None:
    settings = settings_of()
    add_window(database)
    before = NOW - 32 * HOUR
    add_pairs(database, settings, n=90, hours=2, ends=before, live="i0", first=1000)
    add_pairs(
        database, settings, n=90, hours=1, ends=before, first=2000,
        measured=values("uncited", index="old"),
    )  # fmt: skip
    add_pairs(database, settings)
    decide_now(database, settings)
    record = read_record(newest(database))
    assert (record.decision, record.live) == ("promote", "i1")
    assert record.pairs["questions"] == 600


def test_a_shadow_that_has_just_changed_starts_anew(database: LiveDatabase) -> None:
    settings = settings_of()
    add_window(database)
    add_pairs(database, settings, ends=NOW - HOUR)
    add_pairs(database, settings, n=30, hours=0.5, first=1000, measured=values(index="i3"))
    decide_now(database, settings)
    record = read_record(newest(database))
    assert record.decision == "hold"
    assert record.reasons[0] == "30 pairs, of 200 that are needed"


def test_pairs_of_other_tenants_and_apps_stay_theirs(database: LiveDatabase) -> None:
    settings = settings_of()
    add_window(database)
    add_pairs(database, settings, tenant="acme")
    add_pairs(database, settings, app="wiki", first=5000)
    decide_now(database, settings)
    assert read_record(newest(database)).pairs == {"questions": 0, "left-out": 0}
    assert newest(database).decision == "hold"


def test_of_very_many_pairs_a_stable_sample_is_taken(database: LiveDatabase) -> None:
    settings = settings_of(most_pairs=300)
    add_window(database)
    add_pairs(database, settings)
    decide_now(database, settings)
    record = read_record(newest(database))
    assert (record.pairs["shadow-answered"], record.pairs["left-out"]) == (300, 300)
    sampled = database.read("SELECT evidence FROM eval_decisions")
    assert len({pair.question for pair in unpack_evidence(bytes(sampled[0][0])).pairs}) == 300


def test_pairs_that_were_skipped_or_are_being_asked(database: LiveDatabase) -> None:
    settings = settings_of()
    add_window(database)
    add_pairs(database, settings)
    more = [
        pair_row(700, "shadow", {"why": "conversation"}, asked=NOW - 9, settings=settings,
                 state="skipped"),
        pair_row(701, "shadow", None, asked=NOW - 8, settings=settings, state="asking"),
    ]  # fmt: skip
    insert_pairs(database, more)
    decide_now(database, settings)
    record = read_record(newest(database))
    assert record.unmeasured == {"conversation": 1}
    assert record.pairs["shadow-skipped"] == 1
    assert "shadow-asking" not in record.pairs


def test_alerts_in_two_windows_roll_back(database: LiveDatabase) -> None:
    settings = settings_of()
    add_window(database, NOW - 5 * MINUTE)
    add_window(database, NOW)
    add_pairs(database, settings)
    add_alert(database, NOW - 9 * MINUTE, "pending", "firing")
    decide_now(database, settings)
    first, second = read_decisions(database, limit=9)[::-1]
    assert (first.decision, second.decision) == ("hold", "roll-back")
    assert read_record(second).reasons == ("alerts in 2 consecutive windows: coverage",)


def test_one_alert_is_not_two_where_windows_are_short(database: LiveDatabase) -> None:
    """Windows of a minute: an alert at the end of the second one was not firing in the first."""
    settings = settings_of()
    add_window(database, NOW - MINUTE, minutes=1)
    add_window(database, NOW, minutes=1)
    add_alert(database, NOW, "inactive", "firing")
    decide_now(database, settings)
    record = read_record(newest(database))
    assert record.decision == "hold"
    assert [window.firing for window in record.windows] == [(), ("coverage",)]
    add_window(database, NOW + MINUTE, minutes=1)
    decide_now(database, settings, NOW + MINUTE)
    assert newest(database).decision == "roll-back"


def test_an_alert_belongs_to_the_window_that_it_was_evaluated_after(database: LiveDatabase) -> None:
    settings = settings_of()
    add_window(database, NOW)
    add_pairs(database, settings)
    add_alert(database, NOW + LATE_ALERTS, "pending", "firing")
    decide_now(database, settings, NOW + LATE_ALERTS)
    assert read_record(newest(database)).reasons == ("an alert is firing: coverage",)


def test_an_alert_that_was_resolved_before_a_window_is_none_of_its(database: LiveDatabase) -> None:
    settings = settings_of()
    add_window(database, NOW)
    add_pairs(database, settings)
    add_alert(database, NOW - 20 * MINUTE, "pending", "firing")
    add_alert(database, NOW - 6 * MINUTE, "firing", "resolved")
    decide_now(database, settings)
    assert newest(database).decision == "promote"


def test_times_of_firing_are_read_from_the_changes_of_state(database: LiveDatabase) -> None:
    add_alert(database, 10, "inactive", "firing", rule="a")
    add_alert(database, 20, "firing", "resolved", rule="a")
    add_alert(database, 25, "firing", "firing", rule="b")  # its beginning was deleted by age
    add_alert(database, 30, "resolved", "firing", rule="a")
    assert firing_times(database, "", "shop") == [("a", 10, 20), ("b", 25, None), ("a", 30, None)]
    assert firing_times(database, "other", "shop") == []


def test_index_drift_rolls_back_even_without_a_shadow(database: LiveDatabase) -> None:
    add_window(database, NOW - 5 * MINUTE)
    add_window(database, NOW)
    add_alert(database, NOW - MINUTE, "inactive", "firing", rule="index-drift")
    decide_now(database, LiveSettings())
    assert [stored.decision for stored in read_decisions(database, limit=9)] == ["roll-back"]
    assert newest(database).shadow == ""
    assert repeat_decision(database, newest(database)).decision == "roll-back"


def test_a_change_of_mind_is_told_once_and_with_the_row(database: LiveDatabase) -> None:
    """The message lies in the outbox in the transaction of the decision, for each webhook."""
    hooks = (Webhook(url="https://one.invalid/x"), Webhook(url="https://two.invalid/y"))
    settings = replace(settings_of(), alerts=Alerts(webhooks=hooks))
    decisions = Decisions(settings, database, settle=0)

    def told() -> list[dict[str, Any]]:
        rows = database.read("SELECT webhook, payload FROM live_outbox ORDER BY webhook")
        return [{"webhook": name, **json.loads(payload)} for name, payload in rows]

    add_window(database, NOW - 10 * MINUTE)
    decisions.step(NOW)  # hold: nothing new
    assert (len(read_decisions(database, limit=9)), told()) == (1, [])
    add_pairs(database, settings)
    for number, ends in enumerate((NOW, NOW + 5 * MINUTE)):
        add_window(database, ends)
        decisions.step(NOW + (number + 1) * 10_000)
    assert [stored.decision for stored in read_decisions(database, limit=2)] == ["promote"] * 2
    messages = told()  # promote twice in a row is one piece of news
    assert [message["webhook"].partition("#")[0] for message in messages] == [
        "one.invalid",
        "two.invalid",
    ]
    assert messages[0]["text"] == "shop: promote (every condition holds)"
    assert messages[0]["record"]["decision"] == "promote"
    assert messages[0]["number"] == read_decisions(database, limit=9)[1].number


def test_a_message_that_cannot_be_queued_undoes_the_decision(
    database: LiveDatabase, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = settings_of()
    add_window(database)
    add_pairs(database, settings)

    def fail(*_: Any) -> None:
        raise RuntimeError("the outbox is away")

    decisions = Decisions(settings, database, settle=0)
    with monkeypatch.context() as patched:
        patched.setattr("ragauge.live.decisions.queue_messages", fail)
        with pytest.raises(RuntimeError):
            decisions.step(NOW)
    assert read_decisions(database) == []
    decisions.step(NOW + 10_000)
    assert newest(database).decision == "promote"


def actions(database: LiveDatabase) -> list[tuple[Any, ...]]:
    sql = "SELECT decision, exit_code, output FROM live_actions ORDER BY decision"
    return [tuple(row) for row in database.read(sql)]


def test_a_command_follows_a_promotion_once(database: LiveDatabase, tmp_path: Path) -> None:
    script = tmp_path / "promote.py"
    script.write_text(
        "import json, os, sys\n"
        "record = json.load(sys.stdin)\n"
        "with open(sys.argv[1], 'a') as stream:\n"
        "    stream.write(os.environ['RAGAUGE_DECISION'] + ' ' + record['app'] + '\\n')\n"
        "print('switched; token=sk-abcdef1234567890abcdef')\n"
    )
    out = tmp_path / "out.txt"
    settings = settings_of(on_promote=f"command:{sys.executable} {script} {out}")
    add_pairs(database, settings)
    decisions = Decisions(settings, database, settle=0)
    for number in range(3):
        add_window(database, NOW + number * 5 * MINUTE)
        decisions.step(NOW + number * 5 * MINUTE)
        decisions.wait()
        decisions.step(NOW + number * 5 * MINUTE + 10_000)
    assert len(read_decisions(database, limit=9)) == 3
    assert out.read_text() == "promote shop\n"
    ((number, exit_code, output),) = actions(database)
    assert (number, exit_code) == (read_decisions(database, limit=9)[-1].number, 0)
    assert "switched" in output
    assert "sk-abcdef" not in output


def test_no_command_follows_a_hold(database: LiveDatabase) -> None:
    settings = settings_of(on_promote="command:false", on_roll_back="command:false")
    add_window(database)
    decide_now(database, settings).wait()
    assert actions(database) == []


@cases(
    ("command", "exit_code", "words"),
    [
        ("command:no-such-program-here --now", None, "no-such-program-here"),
        (f"command:{sys.executable} -c 'raise SystemExit(7)'", 7, ""),
        (f"command:{sys.executable} -c 'import time; time.sleep(9)'", None, "no end within"),
        ("command:echo 'unfinished", None, "No closing quotation"),
    ],
)
def test_how_a_command_ends_is_noted(command: str, exit_code: int | None, words: str) -> None:
    ended = run_command(3, command, "promote", b"{}", timeout=0.5)
    assert (ended.decision, ended.exit_code) == (3, exit_code)
    assert words in ended.output


def test_a_command_is_no_line_of_a_shell(tmp_path: Path) -> None:
    ended = run_command(1, f"command:echo hello > {tmp_path / 'x'}", "promote", b"{}")
    assert ended.output.startswith("hello >")
    assert not (tmp_path / "x").exists()


@pytest.mark.parametrize("command", ["rm -rf /", "command:", "command:   "])
def test_a_setting_that_names_no_command_is_refused(command: str) -> None:
    with pytest.raises(msgspec.ValidationError, match="on_promote"):
        msgspec.convert({"target": TARGET, "on_promote": command}, MirrorRule)


def test_damaged_evidence_is_an_error_and_no_crash(tmp_path: Path) -> None:
    path = tmp_path / "live.db"
    opened = open_database(f"sqlite:///{path}")
    promoted(opened)
    opened.close()
    with sqlite3.connect(path) as connection:
        connection.execute("DROP TRIGGER eval_decisions_stay")
        connection.execute("UPDATE eval_decisions SET evidence = x'00'")
    opened = open_database(f"sqlite:///{path}")
    with pytest.raises(RagaugeError, match="cannot be read"):
        repeat_decision(opened, newest(opened))
    opened.close()
