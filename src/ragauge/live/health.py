"""`/healthz` and `/readyz`: the process lives; and whether it can take what is sent to it."""

from __future__ import annotations

from typing import Any

import msgspec
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from ragauge.errors import RagaugeError
from ragauge.live.server_state import LiveState

_RETRY = {"Retry-After": "1"}


async def healthz(_request: Request) -> Response:
    """`GET /healthz`: 200 as long as the process answers."""
    return Response(b"ok\n", media_type="text/plain")


async def readyz(request: Request) -> Response:
    """`GET /readyz`: 200 where the store and the spool can be written, else 503 and why."""
    state: LiveState = request.app.state.live
    problems = await run_in_threadpool(problems_of, state)
    content = {"ready": not problems, "problems": problems, **sampling_advice(state)}
    return Response(
        msgspec.json.encode(content),
        200 if not problems else 503,
        _RETRY if problems else None,
        "application/json",
    )


ROUTES = [
    Route("/healthz", healthz, methods=["GET"]),
    Route("/readyz", readyz, methods=["GET"]),
]


def problems_of(state: LiveState) -> list[str]:
    """What keeps the server from taking and scoring traces; nothing where it is ready."""
    problems = []
    # The second time with a new connection: the store may have been restarted since the last use.
    if _store_problem(state) is not None and (problem := _store_problem(state)) is not None:
        problems.append(f"store: {problem}")
    if state.spool.is_full:
        problems.append("spool: over its high-water mark")
    if state.spool.last_error is not None:
        problems.append(f"spool: {state.spool.last_error}")
    if state.worker_state is not None and not state.worker_state()["running"]:
        problems.append("worker: it does not run")
    return problems


def _store_problem(state: LiveState) -> str | None:
    try:
        with state.databases() as database, database.transaction() as execute:
            execute("DELETE FROM live_sessions WHERE expires < ?", (0,))  # a write without effect
    except RagaugeError as error:
        return error.problems[0].message
    return None


def sampling_advice(state: LiveState) -> dict[str, Any]:
    """Which rate is set, how many traces come, and which rate would fill a window in an hour."""
    return {
        "sampling": {
            "rate": state.settings.sampling.rate,
            "traces_an_hour": state.traces_an_hour,
            "fills_a_window_an_hour": state.filling_rate,
        }
    }
