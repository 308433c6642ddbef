"""The outbox: messages to webhooks, stored with what they tell of, sent by threads of their own.

A message is written in the transaction that changes an alert or a decision, so neither is ever
without the other. The worker's loop only claims rows and notes results; a receiver that hangs holds
up its own thread for 5 seconds and nothing else. Delivery is at least once: the id of a message
stays the same, so a receiver can drop what it has seen.

Headers and signature are those of the Standard Webhooks specification, which has libraries to check
them in most languages.
"""

from __future__ import annotations

import base64
import binascii
import hmac
import logging
import os
import queue
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from hashlib import blake2b, sha256
from typing import Any, NamedTuple
from urllib.parse import urlsplit

import msgspec
from msgspec import Struct

from ragauge import __version__
from ragauge.errors import RagaugeError
from ragauge.files import http_client
from ragauge.files.http_client import WebError
from ragauge.live.database import Execute, LiveDatabase
from ragauge.live.settings import HINT, Alerts, Webhook

_log = logging.getLogger("ragauge.live")

MINUTE = 60_000
TIMEOUT = 5.0
FIRST_WAIT = 5_000
LONGEST_WAIT = 60 * MINUTE
GIVE_UP_AFTER = 24 * 60 * MINUTE
CLAIM = 2 * MINUTE
"""How long a message belongs to the server that has taken it; then another may."""

AT_ONCE = 20
GONE = 410
MOST_ANSWER = 64 * 1024
SECRET_PREFIX = "whsec_"


class Message(Struct, frozen=True):
    """What is told, and the key by which nobody is told twice."""

    tenant: str
    key: str
    payload: dict[str, Any]


def webhook_name(webhook: Webhook) -> str:
    """A name that may be stored and logged: the path of such a URL often is the secret."""
    host = urlsplit(webhook.url).hostname or "?"
    return f"{host}#{sha256(webhook.url.encode()).hexdigest()[:8]}"


def queue_messages(
    execute: Execute, webhooks: Sequence[Webhook], messages: Sequence[Message], now: int
) -> None:
    """Write messages to every webhook, within the transaction of what they tell of."""
    for message in messages:
        payload = msgspec.json.encode(message.payload, order="deterministic").decode()
        for webhook in webhooks:
            name = webhook_name(webhook)
            key = blake2b(f"{message.key}\0{name}".encode(), digest_size=16).hexdigest()
            execute(
                "INSERT INTO live_outbox"
                " (tenant, dedupe_key, webhook, created, payload, next_try, state)"
                " VALUES (?, ?, ?, ?, ?, ?, 'waiting') ON CONFLICT (dedupe_key) DO NOTHING",
                (message.tenant, key, name, now, payload, now),
            )


def teller(webhooks: Sequence[Webhook]) -> Callable[[Execute, str, str, dict[str, Any], int], None]:
    """What queues one message of a tenant to all webhooks, by its key, within a transaction."""

    def tell(execute: Execute, tenant: str, key: str, payload: dict[str, Any], now: int) -> None:
        queue_messages(execute, webhooks, [Message(tenant, f"{tenant}\0{key}", payload)], now)

    return tell


def count_messages(database: LiveDatabase, *, tenant: str) -> dict[str, int]:
    """How many messages of a tenant wait, were sent, or were given up."""
    rows = database.read(
        "SELECT state, count(*) FROM live_outbox WHERE tenant = ? GROUP BY state ORDER BY state",
        (tenant,),
    )
    return {state: int(count) for state, count in rows}


def signature(secret: str, key: str, timestamp: int, body: bytes) -> str:
    """The header `webhook-signature`: HMAC-SHA256 of id, time in seconds, and body."""
    if secret.startswith(SECRET_PREFIX):
        secret_bytes = base64.b64decode(secret.removeprefix(SECRET_PREFIX), validate=True)
    else:
        secret_bytes = secret.encode()
    signed = f"{key}.{timestamp}.".encode() + body
    digest = hmac.digest(secret_bytes, signed, "sha256")
    return f"v1,{base64.b64encode(digest).decode()}"


def secrets_of(alerts: Alerts, environment: Mapping[str, str] = os.environ) -> dict[str, str]:
    """The secrets of the webhooks by their names; an error where a variable is not set."""
    secrets = {}
    for webhook in alerts.webhooks:
        variable = webhook.secret_variable
        if variable is None:
            continue
        secret = environment.get(variable)
        if not secret:
            message = f"[live.alerts] webhooks: the variable `{variable}` is not set"
            hint = "set it to the secret that the receiver checks signatures with"
            raise RagaugeError.of("bad-config", message, hint=hint)
        try:
            signature(secret, "", 0, b"")
        except binascii.Error:
            message = f"[live.alerts] webhooks: `{variable}` is not base64 behind {SECRET_PREFIX}"
            raise RagaugeError.of("bad-config", message, hint=HINT) from None
        secrets[webhook_name(webhook)] = secret
    return secrets


class _Delivery(NamedTuple):
    """A message that was claimed, on its way to the thread that sends it."""

    number: int
    key: str
    body: bytes
    created: int
    tries: int


class _Answer(NamedTuple):
    """What became of a delivery; `error` is None if it was taken."""

    delivery: _Delivery
    error: str | None
    gone: bool = False
    wait: float | None = None


class _Sender:
    """The thread of one webhook: it posts, and knows nothing of the store."""

    def __init__(self, webhook: Webhook, secret: str | None, timeout: float) -> None:
        self.name = webhook_name(webhook)
        self.per_minute = webhook.per_minute
        self.sent: deque[int] = deque()  # when, within the last minute
        self.answers: queue.SimpleQueue[_Answer] = queue.SimpleQueue()
        self.waiting = 0
        self._url = webhook.url
        self._secret = secret
        self._timeout = timeout
        self._todo: queue.SimpleQueue[_Delivery | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._run, name=f"webhook {self.name}", daemon=True)
        self._thread.start()

    def room(self, now: int) -> int:
        """How many messages may go out now."""
        while self.sent and self.sent[0] <= now - MINUTE:
            self.sent.popleft()
        return max(0, min(self.per_minute - len(self.sent), AT_ONCE - self.waiting))

    def put(self, delivery: _Delivery, now: int) -> None:
        self.sent.append(now)
        self.waiting += 1
        self._todo.put(delivery)

    def close(self) -> None:
        self._todo.put(None)
        self._thread.join(self._timeout + 1)

    def _run(self) -> None:
        while (delivery := self._todo.get()) is not None:
            self.answers.put(self._post(delivery))
        http_client.close()

    def _post(self, delivery: _Delivery) -> _Answer:
        timestamp = int(time.time())  # receivers compare it with their own clock
        headers = {
            "Content-Type": "application/json",
            "User-Agent": f"ragauge/{__version__}",
            "webhook-id": delivery.key,
            "webhook-timestamp": str(timestamp),
        }
        if self._secret is not None:
            headers["webhook-signature"] = signature(
                self._secret, delivery.key, timestamp, delivery.body
            )
        try:
            response = http_client.request(
                "POST", self._url, delivery.body, headers, self._timeout, most_bytes=MOST_ANSWER
            )
        except WebError as error:
            return _Answer(delivery, self._without_url(error.reason))
        except Exception as error:
            # Whatever it was, the thread must live, and the message stays in the outbox.
            return _Answer(delivery, type(error).__name__)
        if response.status // 100 == 2:
            return _Answer(delivery, None)
        asked = response.headers.get("retry-after", "")
        return _Answer(
            delivery,
            f"it answered with status {response.status}",
            gone=response.status == GONE,
            wait=float(asked) if asked.isascii() and asked.isdecimal() else None,
        )

    def _without_url(self, reason: str) -> str:
        try:
            shown = http_client.shown_url(self._url)
        except WebError:
            return reason
        return reason.replace(shown, self.name)


class Outbox:
    """The part of the worker that sends what waits, with back-off, for up to a day."""

    name = "outbox"

    def __init__(
        self,
        alerts: Alerts,
        database: LiveDatabase,
        *,
        environment: Mapping[str, str] = os.environ,
        timeout: float = TIMEOUT,
    ) -> None:
        secrets = secrets_of(alerts, environment)
        self.database = database
        self._senders = {
            name: _Sender(webhook, secrets.get(name), timeout)
            for webhook in alerts.webhooks
            if (name := webhook_name(webhook))
        }

    def step(self, now: int) -> None:
        """Note what became of messages, and hand out those that are due, without any waiting."""
        self._note_answers(now)
        self._drop_unknown(now)
        for sender in self._senders.values():
            room = sender.room(now)
            if room:
                for delivery in self._claimed(sender.name, room, now):
                    sender.put(delivery, now)

    def close(self) -> None:
        """End the threads; what they have not sent stays in the outbox."""
        for sender in self._senders.values():
            sender.close()

    def _claimed(self, webhook: str, room: int, now: int) -> list[_Delivery]:
        rows = self.database.read(
            "SELECT number, dedupe_key, payload, created, tries, next_try FROM live_outbox"
            " WHERE state = 'waiting' AND next_try <= ? AND webhook = ?"
            " ORDER BY next_try, number LIMIT ?",
            (now, webhook, room),
        )
        claimed = []
        for number, key, payload, created, tries, next_try in rows:
            with self.database.transaction() as execute:
                # Another server on the same store may have been quicker.
                cursor = execute(
                    "UPDATE live_outbox SET next_try = ?"
                    " WHERE number = ? AND state = 'waiting' AND next_try = ?",
                    (now + CLAIM, number, next_try),
                )
                if cursor.rowcount == 1:
                    claimed.append(_Delivery(number, key, payload.encode(), created, tries))
        return claimed

    def _note_answers(self, now: int) -> None:
        for sender in self._senders.values():
            while not sender.answers.empty():
                answer = sender.answers.get()
                sender.waiting -= 1
                self._note(sender.name, answer, now)

    def _note(self, name: str, answer: _Answer, now: int) -> None:
        delivery, tries = answer.delivery, answer.delivery.tries + 1
        state, next_try = "sent", now
        if answer.error is not None:
            wait = min(LONGEST_WAIT, FIRST_WAIT * 2 ** min(delivery.tries, 20))
            wait = max(wait, min(LONGEST_WAIT, round(1000 * (answer.wait or 0))))
            next_try = now + wait
            over = answer.gone or next_try - delivery.created > GIVE_UP_AFTER
            state = "given-up" if over else "waiting"
            _log.warning(
                "webhook %s: %s; message %s is %s", name, answer.error, delivery.key, state
            )
        with self.database.transaction() as execute:
            execute(
                "UPDATE live_outbox SET state = ?, tries = ?, next_try = ?, last_error = ?"
                " WHERE number = ? AND state = 'waiting'",
                (state, tries, next_try, answer.error, delivery.number),
            )

    def _drop_unknown(self, now: int) -> None:
        """Give up messages to webhooks that are no longer in the settings."""
        rows = self.database.read(
            "SELECT DISTINCT webhook FROM live_outbox WHERE state = 'waiting' AND next_try <= ?",
            (now,),
        )
        for (name,) in rows:
            if name not in self._senders:
                with self.database.transaction() as execute:
                    execute(
                        "UPDATE live_outbox SET state = 'given-up', last_error = ?"
                        " WHERE state = 'waiting' AND webhook = ?",
                        ("the webhook is no longer in the settings", name),
                    )
