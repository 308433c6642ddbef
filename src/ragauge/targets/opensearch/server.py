"""A search server: where its index is, who asks it, and its answers or why there are none.

Passwords and keys come from the environment; one that stands in an address is never shown.
"""

from __future__ import annotations

import base64
import os
from typing import TypeVar
from urllib.parse import unquote, urlsplit

import msgspec
from msgspec import Struct

from ragauge.errors import RagaugeError
from ragauge.files import http_client
from ragauge.model.target import TargetError
from ragauge.targets.opensearch.response import refusal
from ragauge.targets.shared.address import TargetSettings, refused

WHO = ("key_env", "user")
"""What an option may say of who asks."""

_PASSING = (408, 425, 429, 500, 502, 503, 504)
_ANY = TypeVar("_ANY")


class Product(Struct, frozen=True):
    """How a product authenticates: `key` names the variable whose value is sent after `word`."""

    title: str
    variables: str
    key: str
    word: str
    user: str


PRODUCTS = {
    "opensearch": Product("OpenSearch", "OPENSEARCH", "OPENSEARCH_TOKEN", "Bearer", "admin"),
    "elasticsearch": Product("Elasticsearch", "ELASTIC", "ELASTIC_API_KEY", "ApiKey", "elastic"),
}


class RefusedError(TargetError):
    """An answer that is none, with its status."""

    status = 200


class Server:
    """One index on one server. It may be asked from several threads at once."""

    def __init__(self, place: str, scheme: str, settings: TargetSettings, timeout: float) -> None:
        self.product = PRODUCTS[scheme]
        self.timeout = timeout
        self.url = place.rstrip("/")
        example = f"write {scheme}:http://HOST:9200/INDEX?match=FIELD"
        try:
            self.shown = http_client.shown_url(self.url)
        except http_client.WebError as error:
            raise refused(error.reason, example) from error
        parts = urlsplit(self.url)
        self.index = unquote(parts.path.rpartition("/")[2])
        if not self.index or self.index.startswith("_") or "#" in self.url:
            raise refused(f"`{self.shown}` names no index", example)
        self.headers = {"Accept": "application/json", "Content-Type": "application/json"}
        self.secrets: list[str] = []
        self._authorise(parts.username, parts.password, settings)

    def _authorise(self, user: str | None, password: str | None, settings: TargetSettings) -> None:
        """Say who asks: as the address says, else as options and the environment do."""
        option_user, variable_option = settings.text("user"), settings.text("key_env")
        if (user is not None and option_user) or (password is not None and variable_option):
            raise refused("who asks is told twice", "say it in the address or in the options")
        if password is not None:  # the client sends what stands in the address
            pair = f"{unquote(user or '')}:{unquote(password)}"
            self._hide(unquote(password), password, _encoded(pair))
            return
        product = self.product
        user = option_user or unquote(user or "") or None
        if user is None:
            key = _secret(variable_option or product.key, needed=variable_option is not None)
            if key is not None:
                # A key of Elasticsearch is `id:secret`, sent as base64, or base64 already.
                sent = _encoded(key) if product.word == "ApiKey" and ":" in key else key
                self._hide(key, key.partition(":")[2], sent)
                self.headers["Authorization"] = f"{product.word} {sent}"
                return
        variable = variable_option or f"{product.variables}_PASSWORD"
        secret = _secret(variable, needed=user is not None)
        if secret is not None:
            user = user or os.environ.get(f"{product.variables}_USERNAME") or product.user
            pair = _encoded(f"{user}:{secret}")
            self._hide(secret, pair)
            self.headers["Authorization"] = f"Basic {pair}"

    def _hide(self, *secrets: str) -> None:
        # The longest first: one secret may be a part of another.
        self.secrets += sorted(filter(None, secrets), key=len, reverse=True)

    def send(self, method: str, tail: str = "", body: bytes | None = None) -> http_client.Response:
        """Send a request to what stands below the index."""
        try:
            return http_client.request(
                method, f"{self.url}{tail}", body, self.headers, self.timeout
            )
        except http_client.WebError as error:
            raise TargetError(error.reason, transient=error.transient, wait=error.wait) from error

    def read(self, response: http_client.Response, kind: type[_ANY]) -> _ANY:
        """The answer as it should be; `RefusedError` where the server refuses."""
        status = response.status
        if 300 <= status < 400:
            location = response.headers.get("location", "nowhere").partition("?")[0]
            message = f"{self.shown} answered {status}, to {location}: write that address"
            raise self._failed(status, message)
        if status != 200:
            reason = refusal(response.body, self.secrets)
            message = f"{self.shown} answered {status}{f': {reason}' if reason else ''}"
            raise self._failed(status, message, response.headers.get("retry-after", ""))
        try:
            return msgspec.json.decode(response.body, type=kind)
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
            reason = refusal(response.body, self.secrets)
            message = f"{self.shown} answered something else ({error}): {reason}"
            raise self._failed(status, message) from error

    def _failed(self, status: int, message: str, after: str = "") -> RefusedError:
        seconds = float(after) if after.isascii() and after.isdecimal() else None
        error = RefusedError(message, transient=status in _PASSING, wait=seconds)
        error.status = status
        return error

    def never(self, error: TargetError) -> RagaugeError:
        """What goes wrong before the first question, as the error of the address."""
        status = error.status if isinstance(error, RefusedError) else None
        hint = "nothing was asked yet: check the address, and whether the server is well"
        if status in (401, 403):
            product = self.product
            pair = f"{product.variables}_USERNAME and {product.variables}_PASSWORD"
            hint = f"the environment says who asks: {product.key}, or {pair}"
        elif status == 404:
            hint = "check the name of the index"
        elif status == 400:
            hint = "one search was tried first: check the index, its fields and the query"
        elif status == 200:
            hint = f"is it a server of {self.product.title}?"
        return refused(error.reason, hint)


def _secret(variable: str, *, needed: bool) -> str | None:
    """What the environment holds, without a newline that came along."""
    value = os.environ.get(variable, "").strip() or None
    if value is None and needed:
        raise refused(f"the environment has no `{variable}`", f"set it: export {variable}=...")
    return value


def _encoded(text: str) -> str:
    return base64.b64encode(text.encode()).decode()
