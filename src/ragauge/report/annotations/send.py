"""Sending annotations: request by request, and what came of them, counted."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

import msgspec
from msgspec import Struct

from ragauge.errors import RagaugeError
from ragauge.files.connections import name_host
from ragauge.files.http_client import Response, WebError, host_and_port, shown_url
from ragauge.files.http_retries import request_patiently
from ragauge.files.redaction import SecretValues, redacted
from ragauge.report.annotations.annotation import Annotator, Entry, Taken
from ragauge.text import plain

_NOT_AUTHORISED = (401, 403)
_LONGEST_REASON = 200
_TIMEOUT = 60.0


class Sent(Struct, kw_only=True):
    """How many annotations a service took and refused, and why; `unsent` were not tried."""

    accepted: int = 0
    rejected: int = 0
    unsent: int = 0
    reasons: Counter[str] = msgspec.field(default_factory=Counter)


def host_of(annotator: Annotator, given: str | None, environment: Mapping[str, str]) -> str:
    """The address of the service: as given, or as a variable of the environment says."""
    variable = next((name for name in annotator.host_variables if environment.get(name)), None)
    address = given or (None if variable is None else environment[variable])
    if not address:
        raise RagaugeError.of(
            "usage",
            "--send needs to know where to",
            hint=f"give --host https://..., or set {annotator.host_variables[0]}",
        )
    try:
        host, _ = host_and_port(address)
    except WebError as error:
        raise RagaugeError.of(
            "usage", f"the host is no address: {error.reason}", hint="write https://HOST"
        ) from error
    if not given:
        name_host(host, f"named by {variable}")
    return address.rstrip("/")


class AnnotationSender:
    """Sends entries to one service; requests that are refused are halved to find what is wrong."""

    def __init__(self, annotator: Annotator, host: str, environment: Mapping[str, str]) -> None:
        self.annotator = annotator
        self.url = f"{host}{annotator.path}"
        headers = annotator.headers(environment)
        self.secrets = SecretValues(headers.values())
        self.headers = {**headers, "content-type": "application/json"}
        self.one_by_one = False
        self.sent = Sent()

    def send(self, entries: Sequence[Entry]) -> Sent:
        """Send all entries; what a service that is gone did not get is counted as unsent."""
        waiting = [
            list(entries[start : start + self.annotator.at_once])
            for start in range(0, len(entries), self.annotator.at_once)
        ][::-1]
        while waiting:
            batch = waiting.pop()
            if self.one_by_one and len(batch) > 1:
                waiting += [[entry] for entry in reversed(batch)]
                continue
            try:
                response = self._post(batch)
            except WebError as error:
                self._note(error.reason, 1)
                self.sent.unsent += len(batch) + sum(map(len, waiting))
                break
            if response.status in _NOT_AUTHORISED:
                raise self._not_authorised(response)
            if response.status // 100 == 2:
                self._count(response, len(batch))
            elif len(batch) > 1 and response.status // 100 == 4:
                half = len(batch) // 2
                waiting += [batch[half:], batch[:half]]
            else:
                self.sent.rejected += len(batch)
                self._note(self._why(response), len(batch))
        return self.sent

    def _post(self, batch: Sequence[Entry]) -> Response:
        annotator = self.annotator
        if self.one_by_one and annotator.single_body is not None:
            return self._request(annotator.single_body(batch[0]))
        response = self._request(annotator.body(batch))
        is_refused = response.status // 100 == 4 and response.status not in _NOT_AUTHORISED
        if is_refused and len(batch) == 1 and annotator.single_body is not None:
            single = self._request(annotator.single_body(batch[0]))
            if single.status // 100 == 2:  # a server that takes no lists
                self.one_by_one = True
                return single
        return response

    def _request(self, body: object) -> Response:
        data = msgspec.json.encode(body)
        return request_patiently("POST", self.url, data, self.headers, _TIMEOUT)

    def _count(self, response: Response, count: int) -> None:
        try:
            taken = self.annotator.taken(response, count)
        except (msgspec.DecodeError, UnicodeDecodeError, ValueError):
            # Whoever answers so is not the service that was meant.
            taken = Taken(0, count, ("its answer is not that of the service",) * count)
        self.sent.accepted += taken.accepted
        self.sent.rejected += taken.rejected
        for number in range(taken.rejected):
            reasons = taken.reasons or ("no reason given",)
            self._note(reasons[min(number, len(reasons) - 1)], 1)

    def _note(self, reason: str, count: int) -> None:
        words = plain(self.secrets.hide(str(redacted(reason))))
        self.sent.reasons[words[:_LONGEST_REASON]] += count

    def _why(self, response: Response) -> str:
        said = " ".join(response.body[:1000].decode("utf-8", "replace").split())
        return f"status {response.status}: {said}" if said else f"status {response.status}"

    def _not_authorised(self, response: Response) -> RagaugeError:
        done = self.sent.accepted
        return RagaugeError.of(
            "not-sent",
            f"{shown_url(self.url)} answered with status {response.status} (the keys); "
            f"{done} results were taken before",
            hint="check the keys in the environment, and that they are of this project",
        )
