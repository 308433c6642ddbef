"""`ragauge live`: windows listed and exported, traces deleted."""

from __future__ import annotations

import json

import pytest

from ragauge.live.privacy import user_hash_key, user_key
from tests.support.command import Folder
from tests.unit.live.live_traffic import GOLD, MINUTE, START, SpoolOfTests, traffic, worker


@pytest.fixture
def store(folder: Folder) -> str:
    """A store with five minutes of scored traffic; its spool lies beside it."""
    url = "sqlite:///live.db"
    spool = SpoolOfTests(folder.path / "live.db.spool")
    part = worker(spool, gold=GOLD, url=url)
    key = user_hash_key(part.traffic.database)
    rows = [{**row, "user_key": user_key("ann", key)} for row in traffic(240)]
    spool.put_rows(rows, START)
    part.step(START + 6 * MINUTE)
    spool.put_rows([{"question": "late?", "hits": [], "user_key": user_key("ann", key)}], START)
    spool.close()
    return url


@pytest.mark.slow
def test_an_exported_window_has_the_numbers_of_the_window(store: str, folder: Folder) -> None:
    listed = folder.run("live", "windows", "--store", store, "--format", "json")
    windows = json.loads(listed.out)["windows"]
    (total,) = [each for each in windows if not each["build"] and not each["index_hash"]]
    number = str(total["number"])
    exported = folder.run("live", "export", "--store", store, "--window", number, "--out", "out")
    assert exported.exit_code == 0, exported.err
    scored = folder.run(
        "score", "out/gold.jsonl", "out/traces.jsonl", "--profile", "live", "--dialect", "native",
        "--format", "json",
    )  # fmt: skip
    assert scored.exit_code == 0, scored.err
    metrics = json.loads(scored.out)["metrics"]
    assert json.dumps(metrics) == json.dumps(total["metrics"])
    assert "all" in folder.run("live", "windows", "--store", store).out


@pytest.mark.slow
def test_a_user_is_deleted_from_the_store_and_the_spool(store: str, folder: Folder) -> None:
    deleted = folder.run("live", "delete", "--store", store, "--user", "ann")
    assert "deleted 240 traces, 0 pairs, 0 gold candidates, 1 traces" in deleted.err
    again = folder.run("live", "delete", "--store", store, "--user", "ann")
    assert "deleted 0 traces" in again.err
    gone = folder.run("live", "export", "--store", store, "--window", "1", "--out", "out")
    assert gone.codes == {"window-gone"}


@pytest.mark.parametrize("link", ["live.db", "kept.jsonl", "live.db.spool/spool.db", None])
def test_an_export_spares_what_is_read(store: str, folder: Folder, link: str | None) -> None:
    """A link in the folder, or the gold set of the project, is not written over."""
    kept = folder.write("kept.jsonl", '{"qid": "A", "question": "x"}\n')
    name = "gold.jsonl" if link is None else "kept.jsonl"
    folder.write("ragauge.toml", f'gold = "{name}"\n')
    (folder.path / "out").mkdir()
    if link is None:
        kept = folder.write("gold.jsonl", '{"qid": "A", "question": "x"}\n')
    else:
        kept = folder.path / link
        (folder.path / "out" / "traces.jsonl").symlink_to(kept)
    before = kept.read_bytes()
    out = "." if link is None else "out"
    outcome = folder.run("live", "export", "--store", store, "--window", "1", "--out", out)
    assert (outcome.exit_code, outcome.codes) == (2, {"usage"})
    assert kept.read_bytes() == before


def test_what_is_not_there_or_not_said_is_refused(store: str, folder: Folder) -> None:
    missing = folder.run("live", "export", "--store", store, "--window", "99", "--out", "out")
    assert missing.codes == {"no-such-window"}
    assert folder.run("live", "delete", "--store", store).exit_code == 2
    assert folder.run("live", "windows", "--store", store, "--app", "other").exit_code == 5
