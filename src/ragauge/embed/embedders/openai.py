"""Embedders behind `POST {base}/embeddings`, the interface of OpenAI that many servers speak.

Nothing is connected to but the address that was named. The key comes from an environment variable,
and is never shown or stored.
"""

from __future__ import annotations

import base64
import binascii
import os
from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import urlsplit

import msgspec
import numpy as np

from ragauge.errors import RagaugeError
from ragauge.files.connections import name_host
from ragauge.files.http_client import Response, WebError, host_and_port
from ragauge.files.http_retries import request_patiently
from ragauge.model.access import Access
from ragauge.model.embedder import Embedded, EmbedderKind, Role, Vectors

BASES = ("RAGAUGE_EMBED_BASE", "OPENAI_BASE_URL")
KEYS = ("RAGAUGE_EMBED_KEY", "OPENAI_API_KEY")
_AT_ONCE = 64
_KNOWN = (
    "base", "model", "dimensions", "key_variable", "query_prefix", "document_prefix", "timeout",
)  # fmt: skip


class _EmbeddingItem(msgspec.Struct):
    index: int
    embedding: list[float] | str


class _EmbeddingResponse(msgspec.Struct):
    data: list[_EmbeddingItem]


class OpenAIEmbedder:
    """A model on a server. A text that is too long for it is refused by the server, not cut."""

    lexical = False

    def __init__(self, settings: Mapping[str, Any]) -> None:
        self.base = _base(settings)
        self.model = str(settings.get("model") or "")
        if not self.model:
            raise _config("there is no model", "write --embed openai:MODEL")
        self.wanted = _number(settings, "dimensions", None)
        self.timeout = float(_number(settings, "timeout", 60) or 60)
        self.dimensions = self.wanted or 0
        self.prefixes = {
            "query": str(settings.get("query_prefix", "")),
            "document": str(settings.get("document_prefix", "")),
        }
        self.key = _key(settings)
        host = urlsplit(self.base).netloc.rpartition("@")[2]
        # Two servers may call different weights by one name: the host is a part of the id.
        self.id = f"{self.model}@{host};dimensions={self.wanted or 'own'};unit"
        if any(self.prefixes.values()):
            self.id += f";prefix={self.prefixes['query']!r},{self.prefixes['document']!r}"

    def embed(self, texts: Sequence[str], role: Role) -> Embedded:
        """Ask the server for the vectors, some texts at a time."""
        rows: list[Vectors] = []
        for start in range(0, len(texts), _AT_ONCE):
            part = texts[start : start + _AT_ONCE]
            rows += self._ask([self.prefixes[role] + text for text in part])
        vectors = np.stack(rows) if rows else np.zeros((0, self.dimensions), np.float32)
        return Embedded(vectors, [False] * len(texts))

    def _ask(self, texts: Sequence[str]) -> list[Vectors]:
        sizes = {} if self.wanted is None else {"dimensions": self.wanted}
        body = {"model": self.model, "input": list(texts), "encoding_format": "float", **sizes}
        headers = {"content-type": "application/json", "accept": "application/json"}
        if self.key:
            headers["authorization"] = f"Bearer {self.key}"
        answer = self._post(msgspec.json.encode(body), headers)
        try:
            items = msgspec.json.decode(answer.body, type=_EmbeddingResponse).data
            # Servers may answer in any order; `index` says which text a vector is of.
            vectors = {item.index: _unit(item.embedding) for item in items}
        except (msgspec.DecodeError, UnicodeDecodeError, ValueError, binascii.Error) as error:
            raise _failed(self.base, "it did not answer with vectors") from error
        if len(items) != len(texts) or set(vectors) != set(range(len(texts))):
            raise _failed(self.base, f"{len(items)} vectors came for {len(texts)} texts")
        lengths = {len(vector) for vector in vectors.values()} | ({self.dimensions} - {0})
        if len(lengths) != 1:
            raise _failed(self.base, f"its vectors have different lengths: {sorted(lengths)}")
        self.dimensions = lengths.pop()
        return [vectors[place] for place in range(len(texts))]

    def _post(self, body: bytes, headers: Mapping[str, str]) -> Response:
        """Send one request, again after a while where the server asks for that or stumbles."""
        try:
            answer = request_patiently(
                "POST", f"{self.base}/embeddings", body, headers, self.timeout
            )
        except WebError as error:
            raise _failed(self.base, error.reason) from error
        if answer.status != 200:
            about = " (the key)" if answer.status in (401, 403) else ""
            raise _failed(self.base, f"it answered with status {answer.status}{about}")
        return answer


def _unit(values: list[float] | str) -> Vectors:
    """A vector of length 1, from numbers or from base64 of single-precision ones."""
    if isinstance(values, str):
        vector = np.frombuffer(base64.b64decode(values, validate=True), "<f4").astype(np.float64)
    else:
        vector = np.array(values, np.float64)
    length = float(np.sqrt((vector * vector).sum())) if len(vector) else 0.0
    if not np.isfinite(length) or not length:  # ΔS with it would be no number
        raise ValueError("a vector without a direction")
    return (vector / length).astype(np.float32)


def _base(settings: Mapping[str, Any]) -> str:
    variable = next((name for name in BASES if os.environ.get(name)), None)
    address = settings.get("base") or (os.environ[variable] if variable is not None else None)
    if not address:
        raise _config(
            "there is no address",
            f"set `base` in [embedders.openai] of ragauge.toml, or {BASES[0]} in the environment",
        )
    unknown = sorted(set(settings) - set(_KNOWN))
    if unknown:
        raise _config(f"unknown settings: {', '.join(unknown)}", f"known: {', '.join(_KNOWN)}")
    base = str(address).rstrip("/")
    try:
        host, _ = host_and_port(base)
    except WebError as error:
        raise _config("its address is no URL", "write https://HOST/v1") from error
    if variable is not None and not settings.get("base"):
        name_host(host, f"named by {variable}")
    return base


def _reaches(settings: Mapping[str, Any]) -> Sequence[Access]:
    """The server, also where only the variable is named that it is sent the value of."""
    host, port = host_and_port(_base(settings))
    variable = settings.get("key_variable")
    variables = [str(variable)] if variable else [name for name in KEYS if os.environ.get(name)][:1]
    keys = ("base", "key_variable")
    return (Access(host=host, port=port, keys=keys, variables=tuple(variables)),)


def _key(settings: Mapping[str, Any]) -> str | None:
    variable = settings.get("key_variable")
    if variable is None:
        return next((os.environ[name] for name in KEYS if os.environ.get(name)), None)
    key = os.environ.get(str(variable))
    if not key:
        raise _config(f"the variable {variable} is not set", "set it, or leave out `key_variable`")
    return key


def _number(settings: Mapping[str, Any], name: str, usual: int | None) -> int | None:
    value = settings.get(name, usual)
    if value is not None and (not isinstance(value, int) or isinstance(value, bool) or value < 1):
        raise _config(f"`{name}` must be a whole number from 1", "write it without quotes")
    return value


def _config(message: str, hint: str) -> RagaugeError:
    return RagaugeError.of("bad-config", f"the embedder openai: {message}", hint=hint)


def _failed(base: str, reason: str) -> RagaugeError:
    host = urlsplit(base).netloc.rpartition("@")[2]
    hint = "check address, key and model; vectors that were made are kept in the cache"
    return RagaugeError.of("embedder-failed", f"no vectors from {host}: {reason}", hint=hint)


EMBEDDER = EmbedderKind(
    name="openai",
    title="a server that speaks OpenAI's POST /embeddings, at the address that you name",
    open=OpenAIEmbedder,
    reaches=_reaches,
)
