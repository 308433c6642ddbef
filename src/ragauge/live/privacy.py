"""Privacy: what comes in loses its secrets, its users' names and what the project hides.

Nothing is written before it went through here. A user is known by a keyed hash, so that all of a
user's traces can be deleted and nobody can be named from the store alone.
"""

from __future__ import annotations

import hmac
import re
import secrets
from collections.abc import Iterable
from functools import lru_cache
from hashlib import sha256
from typing import Any

import msgspec

from ragauge.errors import RagaugeError
from ragauge.files.redaction import (
    REDACTED,
    is_free_of_keys,
    is_secret,
    is_secret_header,
    redacted,
    without_secret_pairs,
)
from ragauge.formats.imports.span import TraceSpan
from ragauge.live.database import LiveDatabase
from ragauge.live.settings import HINT, Redaction
from ragauge.text import compiled_pattern

USER_ATTRIBUTES = frozenset(
    ("user.id", "enduser.id", "langfuse.user.id", "user.email", "user.name", "user_id", "userId")
)
USER_FIELDS = ("user_key", "user_id", "userId", "user")
"""Where a native row names its user; the first that is there counts."""

_NO_TEXTS = (
    "id", "key", "kind", "type", "role", "model", "model_name", "provider", "system", "version",
    "service.name", "operation.name", "app", "build", "index", "index_hash", "metric", "analyzer",
    "doc", "source", "file_name", "session", "lang", "mime_type", "trace_id",
)  # fmt: skip
"""So end the names of what is no text of a person, in attributes and in rows."""
_HEADER = re.compile(r"(?:http\.)?(?:request|response)\.header\.(.+)", re.IGNORECASE)
_KEY_NAME = "user-hash"
_MOST_NAMES, _LONGEST_NAME = 65536, 200
"""So many names are remembered, and none that is longer: they come from outside."""


def user_hash_key(database: LiveDatabase) -> bytes:
    """The key of users' hashes, made with the store's first server and the same for all of them."""
    sql = "SELECT value FROM live_keys WHERE name = ?"
    if not database.read(sql, (_KEY_NAME,)):
        with database.transaction() as execute:
            execute(
                "INSERT INTO live_keys (name, value) VALUES (?, ?) ON CONFLICT (name) DO NOTHING",
                (_KEY_NAME, secrets.token_hex(32)),
            )
    return bytes.fromhex(database.read(sql, (_KEY_NAME,))[0][0])


def user_key(user: str, key: bytes) -> str:
    """What a user is called in the store."""
    return hmac.new(key, user.encode("utf-8", "surrogatepass"), sha256).hexdigest()[:32]


class Redactor:
    """Takes out of spans and rows what must not be stored."""

    def __init__(self, settings: Redaction, key: bytes) -> None:
        self._fields = frozenset(name.lower() for name in settings.fields)
        self._patterns = []
        for pattern in settings.patterns:
            try:
                self._patterns.append(compiled_pattern(pattern))
            except ValueError as error:
                message = f"[live.redaction] patterns: {error}"
                raise RagaugeError.of("bad-config", message, hint=HINT) from error
        self._plain_names: set[str] = set()
        self._key = key
        self._drops_texts = settings.texts

    def spans(self, spans: list[TraceSpan]) -> list[TraceSpan]:
        """Redact the spans of a request, in place; their resources are replaced by copies."""
        resources: dict[int, dict[str, Any]] = {}
        originals = []  # held, so that no other resource gets the same id
        for span in spans:
            span.attributes = self._attributes(span.attributes)
            span.name = self._text(span.name)
            if span.error is not None:
                span.error = self._text(span.error)
            if self._drops_texts:
                span.attributes = self._without_texts("", span.attributes)
                span.error = None if span.error is None else self._hashed(span.error)
            if span.resource:
                copy = resources.get(id(span.resource))
                if copy is None:
                    originals.append(span.resource)
                    copy = resources[id(span.resource)] = self._attributes(span.resource)
                span.resource = copy
        return spans

    def row(self, row: dict[str, Any]) -> dict[str, Any]:
        """Redact a native row; its user is replaced by a hash."""
        user = next((row[name] for name in USER_FIELDS if row.get(name)), None)
        rest = {name: value for name, value in row.items() if name not in USER_FIELDS}
        copy: dict[str, Any] = self._deep(redacted(rest))
        if self._drops_texts:
            copy = self._without_texts("", copy)
        if user is not None:
            copy["user_key"] = user_key(_user_name(user), self._key)
        return copy

    def _attributes(self, attributes: dict[str, Any]) -> dict[str, Any]:
        """Attributes without what must not be stored; the same object where that is nothing."""
        texts = [value for value in attributes.values() if isinstance(value, str)]
        # One look at all names and all texts of a span: most have nothing that could be a secret.
        joined = "\n".join(texts)
        if self._patterns or not (self._are_plain(attributes) and is_free_of_keys(joined)):
            return {name: self._attribute(name, value) for name, value in attributes.items()}
        changed = {}
        if len(texts) < len(attributes):
            for name, value in attributes.items():
                if isinstance(value, dict | list):
                    changed[name] = self._value(value)
        if '"' in joined or "=" in joined:
            for name, value in attributes.items():
                if isinstance(value, str) and (text := without_secret_pairs(value)) is not value:
                    changed[name] = text
        return {**attributes, **changed} if changed else attributes

    def _are_plain(self, names: Iterable[str]) -> bool:
        """Whether no name is of a secret, of a user or of what the project hides."""
        if self._plain_names.issuperset(names):
            return True
        plain = {
            name for name in names if len(name) <= _LONGEST_NAME and self._kind_of(name) == "plain"
        }
        if len(self._plain_names) + len(plain) > _MOST_NAMES:
            self._plain_names.clear()
        self._plain_names |= plain
        return self._plain_names.issuperset(names)

    def _kind_of(self, name: str) -> str:
        if name.lower() in self._fields:
            return "secret"
        return _kind_of(name) if len(name) <= _LONGEST_NAME else _kind_of.__wrapped__(name)

    def _attribute(self, name: str, value: Any) -> Any:
        kind = self._kind_of(name)
        if kind == "plain":
            return self._value(value)
        if kind == "user" and isinstance(value, str):
            return user_key(value, self._key)
        return value if value is None or isinstance(value, bool) else REDACTED

    def _value(self, value: Any) -> Any:
        if isinstance(value, str):
            return self._text(value)
        if isinstance(value, dict | list):
            return self._deep(redacted(value))
        return value

    def _text(self, text: str) -> str:
        text = redacted(text)
        for pattern in self._patterns:
            text = pattern.sub(REDACTED, text)
        return text

    def _without_texts(self, name: str, value: Any) -> Any:
        """Data whose texts are hashes, but for names, ids and kinds: equal texts stay equal."""
        if isinstance(value, dict):
            return {key: self._without_texts(key, entry) for key, entry in value.items()}
        if isinstance(value, list):
            return [self._without_texts(name, entry) for entry in value]
        if not isinstance(value, str) or not value or name.lower().endswith(_NO_TEXTS):
            return value
        if name.lower().endswith("metadata") and value.startswith("{"):
            try:
                inside = msgspec.json.decode(value)
            except (msgspec.DecodeError, RecursionError):
                return self._hashed(value)
            return msgspec.json.encode(self._without_texts(name, inside)).decode()
        return self._hashed(value)

    def _hashed(self, text: str) -> str:
        return f"[text {user_key(text, self._key)[:16]}]"

    def _deep(self, value: Any) -> Any:
        """The project's own fields and patterns, at any depth that JSON readers allow."""
        if not self._fields and not self._patterns:
            return value
        if isinstance(value, dict):
            return {
                name: REDACTED if name.lower() in self._fields else self._deep(entry)
                for name, entry in value.items()
            }
        if isinstance(value, list):
            return [self._deep(entry) for entry in value]
        if isinstance(value, str):
            for pattern in self._patterns:
                value = pattern.sub(REDACTED, value)
        return value


def _user_name(user: object) -> str:
    return user if isinstance(user, str) else msgspec.json.encode(user).decode()


@lru_cache(_MOST_NAMES)
def _kind_of(name: str) -> str:
    """Whether the name of an attribute is plain, of a secret, or of a user."""
    if name in USER_ATTRIBUTES:
        return "user"
    header = _HEADER.fullmatch(name)
    if is_secret(name) or (header is not None and is_secret_header(header[1])):
        return "secret"
    return "plain"
