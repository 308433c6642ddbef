"""Access: tokens with scopes and a tenant, sessions of browsers, and who may come without either.

A token is `rgk_ID_SECRET`; the store has the hash of its secret alone. While a store has never had
a token, and the server listens on this machine only, everything is open to this machine: requests
that a foreign web page makes are refused by their Host and Origin.
"""

from __future__ import annotations

import hmac
import secrets
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager
from hashlib import sha256
from ipaddress import ip_address
from typing import TYPE_CHECKING, NamedTuple, TypeVar
from urllib.parse import parse_qsl, urlsplit

from msgspec import Struct

from ragauge.errors import RagaugeError
from ragauge.live.database import LiveDatabase

if TYPE_CHECKING:
    from starlette.requests import Request

INGEST, READ, ADMIN = "ingest", "read", "admin"
SCOPES = (INGEST, READ, ADMIN)
PREFIX = "rgk"
COOKIE = "ragauge_session"
FORM_COOKIE = "ragauge_form"
"""What a form must repeat where there is no session: the form that logs in, and all of them while
the server is open to this machine."""
SESSION_MS = 12 * 3_600_000
_FRESH_MS = 5000
"""So long after a token was revoked, a server that knew it may still let it in."""
_GRACE_MS = 60_000
"""While the store is down, a token that was good counts for so long."""
_REMEMBERED = 10_000
_SAFE = ("GET", "HEAD", "OPTIONS")
_URL_NAMES = frozenset(("token", "access_token", "api_key", "apikey", "key", "authorization"))

Answer = TypeVar("Answer")
Databases = Callable[[], AbstractContextManager[LiveDatabase]]


class AccessDeniedError(Exception):
    """A request that is not let in: the status of the answer, and the reason."""

    def __init__(self, status: int, reason: str) -> None:
        super().__init__(reason)
        self.status = status
        self.reason = reason


class Caller(Struct, frozen=True):
    """Who sends a request: a tenant, and what it may do. `csrf` is what its forms must repeat."""

    tenant: str
    scopes: frozenset[str]
    token_id: str | None = None
    csrf: str | None = None


class LiveToken(Struct, frozen=True):
    """A token as the store has it."""

    token_id: str
    tenant: str
    scopes: frozenset[str]
    secret_hash: str
    note: str
    created: int
    expires: int | None
    revoked: int | None

    def is_active(self, now: int) -> bool:
        """Whether it counts at a time."""
        return self.revoked is None and (self.expires is None or now < self.expires)


_COLUMNS = "token_id, tenant, scopes, secret_hash, note, created, expires, revoked"


def _token(row: Sequence[object]) -> LiveToken:
    token_id, tenant, scopes, *rest = row
    return LiveToken(token_id, tenant, frozenset(str(scopes).split(",")), *rest)  # type: ignore[arg-type]


def _hash(secret: str) -> str:
    return sha256(secret.encode("utf-8", "surrogatepass")).hexdigest()


class NewToken(NamedTuple):
    """A token that was made: what is shown once, and its id."""

    text: str
    token_id: str


def create_token(
    database: LiveDatabase,
    scopes: Iterable[str],
    *,
    now: int,
    tenant: str = "",
    note: str = "",
    expires: int | None = None,
) -> NewToken:
    """Make a token and store its hash."""
    chosen = sorted(set(scopes), key=SCOPES.index)
    token_id, secret = secrets.token_hex(6), secrets.token_hex(32)
    values = token_id, tenant, ",".join(chosen), _hash(secret), note, now, expires
    with database.transaction() as execute:
        execute(
            "INSERT INTO live_tokens "
            "(token_id, tenant, scopes, secret_hash, note, created, expires) "
            "VALUES (?, ?, ?, ?, ?, ?, ?)",
            values,
        )
    return NewToken(f"{PREFIX}_{token_id}_{secret}", token_id)


def list_tokens(database: LiveDatabase) -> list[LiveToken]:
    """All tokens, the oldest first."""
    rows = database.read(f"SELECT {_COLUMNS} FROM live_tokens ORDER BY created, token_id")
    return [_token(row) for row in rows]


def revoke_token(database: LiveDatabase, token_id: str, *, now: int) -> bool:
    """Revoke a token, and end its sessions; False where there is none that counts."""
    with database.transaction() as execute:
        cursor = execute(
            "UPDATE live_tokens SET revoked = ? WHERE token_id = ? AND revoked IS NULL",
            (now, token_id),
        )
        execute("DELETE FROM live_sessions WHERE token_id = ?", (token_id,))
    return bool(cursor.rowcount)


def is_loopback(host: str) -> bool:
    """Whether an address or a name is this machine and nothing else."""
    if host.lower().rstrip(".") == "localhost":
        return True
    try:
        return ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


def check_address(host: str, tokens: Iterable[LiveToken], *, now: int) -> None:
    """Refuse to listen where other machines reach the server, while nobody has a token."""
    if is_loopback(host) or any(token.is_active(now) for token in tokens):
        return
    message = f"`{host}` can be reached from other machines, and there is no token"
    hint = "make one first: ragauge token create --scope ingest; or listen on 127.0.0.1"
    raise RagaugeError.of("no-token", message, hint=hint)


class _Bucket(Struct):
    """What a caller may still send in this second."""

    left: float
    at: float


class _Known(Struct):
    token: LiveToken | None
    at: int


class AccessControl:
    """Decides about requests. Any thread may ask; `now` gives milliseconds."""

    def __init__(
        self,
        databases: Databases,
        *,
        per_second: int,
        now: Callable[[], int],
        is_local: bool = True,
    ) -> None:
        self._databases = databases
        self._per_second = per_second
        self._now = now
        self._is_local = is_local
        self._lock = threading.Lock()
        self._known: OrderedDict[str, _Known] = OrderedDict()
        self._buckets: OrderedDict[str, _Bucket] = OrderedDict()
        self._open: tuple[bool, int] | None = None

    def is_open(self) -> bool:
        """Whether this machine comes in without a token: there has never been one."""
        now = self._now()
        if not self._is_local:
            return False
        if self._open is None or now - self._open[1] > _FRESH_MS:
            if self._open is not None and not self._open[0]:
                return False  # a store that had a token never opens again
            with self._databases() as database:
                rows = database.read("SELECT count(*) FROM live_tokens")
            self._open = rows[0][0] == 0, now
        return self._open[0]

    def is_fresh(self, text: str | None) -> bool:
        """Whether the answer for a token, or for none, is known without the store."""
        if text is None:
            return not self._is_local or (
                self._open is not None and self._now() - self._open[1] <= _FRESH_MS
            )
        known = self._known.get(text.strip().split("_")[1] if text.count("_") > 1 else "")
        return known is not None and self._now() - known.at <= _FRESH_MS

    def caller_of_token(self, text: str) -> Caller:
        """Who has this token; an error where it does not count."""
        prefix, _, rest = text.partition("_")
        token_id, _, secret = rest.partition("_")
        token = self._find(token_id) if prefix == PREFIX and len(token_id) < 64 else None
        # Compared also where there is no such token: the time tells nothing.
        same = hmac.compare_digest(_hash(secret), "" if token is None else token.secret_hash)
        if token is None or not same or not token.is_active(self._now()):
            raise AccessDeniedError(401, "the token is not known, or no longer counts")
        return Caller(token.tenant, token.scopes, token.token_id)

    def _find(self, token_id: str) -> LiveToken | None:
        now = self._now()
        with self._lock:
            known = self._known.get(token_id)
        if known is not None and now - known.at <= _FRESH_MS:
            return known.token
        sql = f"SELECT {_COLUMNS} FROM live_tokens WHERE token_id = ?"
        try:
            with self._databases() as database:
                rows = database.read(sql, (token_id,))
        except RagaugeError:
            if known is not None and known.token is not None and now - known.at <= _GRACE_MS:
                return known.token
            raise
        token = _token(rows[0]) if rows else None
        with self._lock:
            self._known[token_id] = _Known(token, now)
            self._known.move_to_end(token_id)
            if len(self._known) > _REMEMBERED:
                self._known.popitem(last=False)
        return token

    def may_go_on(self, caller: Caller) -> bool:
        """Whether a caller is below its number of requests a second."""
        name, now = caller.token_id or "", time.monotonic()
        with self._lock:
            bucket = self._buckets.get(name)
            if bucket is None:
                bucket = self._buckets[name] = _Bucket(float(self._per_second), now)
                if len(self._buckets) > _REMEMBERED:
                    self._buckets.popitem(last=False)
            gained = (now - bucket.at) * self._per_second
            bucket.left, bucket.at = min(float(self._per_second), bucket.left + gained), now
            if bucket.left < 1:
                return False
            bucket.left -= 1
            return True

    def start_session(self, text: str) -> str:
        """Log a browser in with a token that may read; what goes into its cookie."""
        caller = self.caller_of_token(text)
        if not caller.scopes & {READ, ADMIN}:
            raise AccessDeniedError(403, "the token has no scope to read")
        session, now = secrets.token_urlsafe(32), self._now()
        with self._databases() as database, database.transaction() as execute:
            execute("DELETE FROM live_sessions WHERE expires < ?", (now,))
            execute(
                "INSERT INTO live_sessions (session_hash, token_id, csrf, created, expires) "
                "VALUES (?, ?, ?, ?, ?)",
                (_hash(session), caller.token_id, secrets.token_urlsafe(24), now, now + SESSION_MS),
            )
        return session

    def end_session(self, session: str) -> None:
        """Log a browser out."""
        with self._databases() as database, database.transaction() as execute:
            execute("DELETE FROM live_sessions WHERE session_hash = ?", (_hash(session),))

    def caller_of_session(self, session: str) -> Caller | None:
        """Who logged in with a cookie; None where the session has ended."""
        sql = "SELECT token_id, csrf, expires FROM live_sessions WHERE session_hash = ?"
        with self._databases() as database:
            rows = database.read(sql, (_hash(session),))
        now = self._now()
        if not rows or rows[0][2] < now:
            return None
        token = self._find(rows[0][0])
        if token is None or not token.is_active(now):
            return None
        return Caller(token.tenant, token.scopes, token.token_id, rows[0][1])


def refuse_token_in_url(query: bytes, path: str) -> None:
    """Refuse a token in an address: addresses end up in logs, histories and links."""
    secret = f"{PREFIX}_"
    pairs = parse_qsl(query.decode("latin-1"), keep_blank_values=True)
    if secret in path or any(
        name.lower() in _URL_NAMES or secret in value or secret in name for name, value in pairs
    ):
        reason = "a token goes into the header `Authorization: Bearer ...`, never into an address"
        raise AccessDeniedError(400, f"{reason}; revoke one that was sent in an address")


def refuse_foreign_page(host: str, origin: str | None, site: str | None, *, local: bool) -> None:
    """Refuse what a page of another site sends, by the headers that browsers do not let it forge.

    `local` is for a server that is open to this machine: a name that leads here from outside, as in
    DNS rebinding, is refused too.
    """
    if local and not is_loopback(urlsplit(f"//{host}").hostname or ""):
        raise AccessDeniedError(403, "this server answers to localhost only")
    is_foreign = origin is not None and urlsplit(origin).netloc.lower() != host.lower()
    if is_foreign or site in ("cross-site", "same-site"):
        raise AccessDeniedError(403, "a page of another site may not send this")


async def require(request: Request, scope: str) -> Caller:
    """Who sends a request, if it may do this; else `AccessDeniedError`, which has the answer."""
    access: AccessControl = request.app.state.live.access
    headers = request.headers
    refuse_token_in_url(request.scope["query_string"], request.scope["path"])
    authorization = headers.get("authorization")
    host, origin, site = (headers.get(name) for name in ("host", "origin", "sec-fetch-site"))
    is_safe = request.method in _SAFE
    if authorization is not None:
        scheme, _, text = authorization.partition(" ")
        if scheme.lower() != "bearer":
            raise AccessDeniedError(401, "send the token as `Authorization: Bearer ...`")
        caller = await _quickly(access.is_fresh(text), access.caller_of_token, text.strip())
    elif session := request.cookies.get(COOKIE):
        logged_in = await _quickly(False, access.caller_of_session, session)
        if logged_in is None:
            raise AccessDeniedError(401, "the session has ended: log in again")
        caller = logged_in
        if not is_safe:
            refuse_foreign_page(host or "", origin, site, local=False)
            await _check_csrf(request, caller.csrf)
    elif await _quickly(access.is_fresh(None), access.is_open):
        site = None if is_safe and headers.get("sec-fetch-mode") == "navigate" else site
        refuse_foreign_page(host or "", origin, site, local=True)
        caller = Caller("", frozenset(SCOPES), csrf=request.cookies.get(FORM_COOKIE))
    else:
        raise AccessDeniedError(401, "a token is needed: `Authorization: Bearer rgk_...`")
    if scope not in caller.scopes and not (scope == READ and ADMIN in caller.scopes):
        raise AccessDeniedError(403, f"the token has no scope `{scope}`")
    if not access.may_go_on(caller):
        raise AccessDeniedError(429, "too many requests of this token in a second")
    return caller


async def _quickly(at_once: bool, ask: Callable[..., Answer], *arguments: str) -> Answer:
    """Ask in a thread, as the store may have to be waited for; or here, where it need not."""
    from starlette.concurrency import run_in_threadpool

    return ask(*arguments) if at_once else await run_in_threadpool(ask, *arguments)


async def check_form(request: Request, csrf: str | None) -> None:
    """Refuse a form that no page of this server has sent.

    A browser says where a form comes from, and the form repeats what only its page was told. A
    program with a token in its header needs neither: no page can make a browser send that.
    """
    headers = request.headers
    if headers.get("authorization") is not None:
        return
    host, origin, site = (headers.get(name) for name in ("host", "origin", "sec-fetch-site"))
    if origin is None and site is None:
        raise AccessDeniedError(403, "a form must say where it comes from: `Origin` is missing")
    refuse_foreign_page(host or "", origin, site, local=False)
    await _check_csrf(request, csrf)


async def _check_csrf(request: Request, csrf: str | None) -> None:
    sent = request.headers.get("x-csrf-token")
    if sent is None and "form-urlencoded" in request.headers.get("content-type", ""):
        form = dict(parse_qsl((await request.body()).decode("utf-8", "replace")))
        sent = form.get("csrf")
    if not sent or not csrf or not hmac.compare_digest(sent.encode(), csrf.encode()):
        raise AccessDeniedError(403, "the form has expired: load the page again")
