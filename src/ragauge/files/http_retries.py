"""Requests that are sent again where the server asks for a while, or stumbles."""

from __future__ import annotations

import time
from collections.abc import Mapping

from ragauge.files.http_client import Response, WebError, request

TRIES = 6
LONGEST_WAIT = 60.0
TOO_MANY = 429


def is_passing(status: int) -> bool:
    """Whether a status says that the same request may work later."""
    return status == TOO_MANY or status >= 500


def request_patiently(
    method: str,
    url: str,
    body: bytes | None = None,
    headers: Mapping[str, str] | None = None,
    timeout: float = 60.0,
) -> Response:
    """Send a request up to six times, with the waits that the server asks for.

    The response may have any status that does not pass; WebError where none came.
    """
    reason = ""
    for number in range(TRIES):
        wait: float | None = None
        try:
            answer = request(method, url, body, headers, timeout)
            if not is_passing(answer.status):
                return answer
            reason = f"it answered with status {answer.status}"
            wait = _seconds(answer.headers.get("retry-after"))
        except WebError as error:
            if not error.transient:
                raise
            reason, wait = error.reason, error.wait
        if number + 1 < TRIES:
            time.sleep(min(LONGEST_WAIT, 0.5 * 2**number if wait is None else wait))
    raise WebError(f"{reason}, {TRIES} times", transient=True)


def _seconds(value: str | None) -> float | None:
    try:
        return None if value is None else max(0.0, float(value))
    except ValueError:
        return None
