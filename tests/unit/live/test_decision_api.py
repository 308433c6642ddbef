"""`GET /api/decision`: the record to the byte, for whoever may read it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from ragauge.live.access import create_token
from tests.support.decided_store import NOW, add_window, decide_now, promoted, settings_of
from tests.support.live_server import live_client


def state_of(client: Any) -> Any:
    return client.app.state.live


def test_the_newest_decision_with_its_record_to_the_byte(tmp_path: Path) -> None:
    with live_client(tmp_path) as client:
        with state_of(client).databases() as database:
            promoted(database)
            add_window(database, NOW, app="wiki")
            decide_now(database, settings_of())
            records = database.read("SELECT record_json FROM eval_decisions ORDER BY number")
        newest = client.get("/api/decision")
        assert newest.status_code == 200
        assert newest.headers["cache-control"] == "no-store"
        assert newest.json()["record"]["app"] == "wiki"
        shop = client.get("/api/decision", params={"app": "shop"})
        assert shop.json()["number"] == 1
        assert shop.json()["record"]["decision"] == "promote"
        assert records[0][0] in shop.text
        assert json.loads(client.get("/api/decision?number=1").text) == shop.json()


def test_silence_is_no_consent(tmp_path: Path) -> None:
    with live_client(tmp_path) as client:
        answer = client.get("/api/decision")
        assert (answer.status_code, answer.json()) == (404, {"error": "nothing was decided"})
        for bad in ("x", "-1", "1.5", "9" * 30, "\u0661"):
            assert client.get("/api/decision", params={"number": bad}).status_code == 400


def test_only_readers_of_the_tenant_see_it(tmp_path: Path) -> None:
    with live_client(tmp_path) as client:
        with state_of(client).databases() as database:
            promoted(database)
            tokens = {
                name: create_token(database, [scope], now=0, tenant=tenant).text
                for name, scope, tenant in (
                    ("reader", "read", ""),
                    ("sender", "ingest", ""),
                    ("stranger", "read", "acme"),
                )
            }

        def status(name: str | None) -> int:
            headers = {} if name is None else {"Authorization": f"Bearer {tokens[name]}"}
            return int(client.get("/api/decision?number=1", headers=headers).status_code)

        assert status("reader") == 200
        assert status("sender") == 403
        assert status("stranger") == 404
        assert status(None) == 401
