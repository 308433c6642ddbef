"""Responses of a search server: hits, why some are missing, and refusals."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec
from msgspec import Struct

from ragauge.files.redaction import REDACTED

_SHOWN = 200


class SearchHit(Struct, frozen=True, rename={"id": "_id", "score": "_score", "source": "_source"}):
    """One document that was found; it has no score where the user's own body sorts by a field."""

    id: str
    score: float | None = None
    source: dict[str, Any] = {}


class Shards(Struct, frozen=True):
    """How many parts of an index were asked and have answered; those skipped count as such."""

    total: int
    successful: int
    failed: int = 0
    failures: list[Any] = []

    @property
    def lacking(self) -> str | None:
        """What is missing of a whole answer; a shard without a copy is in neither number."""
        # `failed` leaves out shards that have no copy to ask.
        missing = max(self.failed, self.total - self.successful)
        if missing <= 0:
            return None
        reason = _reason(self.failures[0]) if self.failures else None
        message = f"{missing} of {self.total} shards did not answer"
        return message if reason is None else f"{message}: {reason}"


class Clusters(Struct, frozen=True):
    """How many clusters were asked, where an index lies on several."""

    total: int = 0
    successful: int = 0


class _Hits(Struct, frozen=True):
    hits: list[SearchHit]


class SearchResponse(Struct, frozen=True, rename={"shards": "_shards", "clusters": "_clusters"}):
    """The answer to a search. What says whether it is whole must be there."""

    timed_out: bool
    shards: Shards
    hits: _Hits
    clusters: Clusters | None = None

    @property
    def lacking(self) -> str | None:
        """Why the hits are not all that there are; None where they are."""
        if self.timed_out:
            return "the search was timed out before its end"
        if self.clusters is not None and self.clusters.successful < self.clusters.total:
            missing = self.clusters.total - self.clusters.successful
            return f"{missing} of {self.clusters.total} clusters did not answer"
        return self.shards.lacking


class CountResponse(Struct, frozen=True, rename={"shards": "_shards"}):
    """The answer to the question how many documents there are."""

    count: int
    shards: Shards


def refusal(body: bytes, secrets: Iterable[str]) -> str:
    """Why a server refuses, in its own words, on one line and without what is secret."""
    text = body.decode("utf-8", errors="replace")
    try:
        decoded = msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        decoded = None
    error = decoded.get("error") if isinstance(decoded, dict) else None
    if isinstance(error, dict):
        causes = error.get("root_cause")
        first = causes[0] if isinstance(causes, list) and causes else error
        text = _reason(first) or _reason(error) or text
    elif isinstance(error, str):
        text = error
    for secret in secrets:  # before the text is cut, or half a secret would stay
        text = text.replace(secret, REDACTED)
    return " ".join(text.split())[:_SHOWN]


def _reason(cause: Any) -> str | None:
    """The type and the reason of a failure; that of a shard has them one level deeper."""
    if not isinstance(cause, dict):
        return None
    if isinstance(cause.get("reason"), dict):
        return _reason(cause["reason"])
    parts = [cause[name] for name in ("type", "reason") if isinstance(cause.get(name), str)]
    return " ".join(": ".join(parts).split())[:_SHOWN] or None
