"""`GET /api/decision`: what a deployer asks: the newest decision about an app, or one by number."""

from __future__ import annotations

import msgspec
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from ragauge.errors import RagaugeError
from ragauge.live.access import READ, require
from ragauge.live.decisions import StoredDecision, read_decisions
from ragauge.live.server_state import LiveState


async def decision(request: Request) -> Response:
    """`GET /api/decision?app=NAME&number=N`, both optional: the record, with its number.

    404 where nothing was decided: a deployer must not take silence for consent.
    """
    caller = await require(request, READ)
    state: LiveState = request.app.state.live
    text = request.query_params.get("number")
    if text is not None and not (text.isascii() and text.isdecimal() and len(text) < 16):
        return _problem(400, "`number` is no number of a decision")
    number = None if text is None else int(text)
    app = request.query_params.get("app")
    try:
        stored = await run_in_threadpool(_newest, state, caller.tenant, app, number)
    except RagaugeError as error:
        return _problem(503, error.problems[0].message, {"Retry-After": "1"})
    if stored is None:
        return _problem(404, "nothing was decided")
    head = msgspec.json.encode({"number": stored.number, "created_at": stored.created_at})
    # The record is passed on as it was stored, to the byte.
    content = head[:-1] + b',"record":' + stored.record_json.encode() + b"}"
    return Response(content, media_type="application/json", headers={"Cache-Control": "no-store"})


ROUTES = [Route("/api/decision", decision, methods=["GET"])]


def _newest(
    state: LiveState, tenant: str, app: str | None, number: int | None
) -> StoredDecision | None:
    with state.databases() as database:
        decisions = read_decisions(database, tenant=tenant, app=app, number=number)
    return decisions[0] if decisions else None


def _problem(status: int, reason: str, headers: dict[str, str] | None = None) -> Response:
    content = msgspec.json.encode({"error": reason})
    return Response(content, status, headers, "application/json")
