"""A stand-in for OpenSearch and Elasticsearch: one index over HTTP, as strict as the products are.

It knows what the target asks and refuses the rest with the errors of the real servers, so that a
request in the shape of the other product fails here too.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

from tests.support.web_servers import Request, Server, http, serving

Json = dict[str, Any]
WHOLE = {"total": 2, "successful": 2, "skipped": 0, "failed": 0}
BOTH = ("opensearch", "elasticsearch")
MOST = 10_000

_SEARCHES = {"preference", "routing"}
_KEYS = {"size", "_source", "query", "track_total_hits", "sort", "from"}
_PHRASES = {
    200: "OK", 400: "Bad Request", 401: "Unauthorized", 403: "Forbidden", 404: "Not Found",
    405: "Method Not Allowed", 406: "Not Acceptable",
}  # fmt: skip


class RefusalError(Exception):
    """What a server says no with."""

    def __init__(self, status: int, kind: str, reason: str) -> None:
        super().__init__(reason)
        self.status = status
        cause = {"type": kind, "reason": reason}
        self.body = {"error": {"root_cause": [cause], **cause}, "status": status}


@dataclass
class SearchServer:
    """One index, what it demands of those who ask, and what is wrong with it."""

    product: str = "opensearch"
    name: str = "chunks"
    uuid: str = "Xq0vW1c3R5mT7bN9kL2pZg"
    documents: dict[str, Json] = field(default_factory=dict)
    mapping: Json = field(default_factory=dict)
    allowed: str | None = None
    told: bool = True
    twist: Callable[[Json], Json] = lambda body: body
    instead: Callable[[Request], bytes | None] | None = None
    server: Server | None = None

    @property
    def elastic(self) -> bool:
        return self.product == "elasticsearch"

    @property
    def address(self) -> str:
        assert self.server is not None
        return f"{self.product}:{self.server.url}/{self.name}"

    @property
    def searches(self) -> list[Json]:
        """The bodies of all searches so far, without the one that tries whether one can search."""
        return [request.json for request in self.requests if "/_search" in request.line][1:]

    @property
    def requests(self) -> list[Request]:
        assert self.server is not None
        return self.server.requests

    def answer(self, request: Request) -> bytes | None:
        if self.instead is not None:
            return self.instead(request)
        try:
            status, body = 200, self._answer(request)
        except RefusalError as error:
            status, body = error.status, error.body
        kind = request.headers.get("accept", "")
        kind = kind if "compatible-with" in kind else "application/json"
        product = {"X_elastic_product": "Elasticsearch"} if self.elastic else {}
        return http(body, f"{status} {_PHRASES[status]}", Content_Type=kind, **product)

    def _answer(self, request: Request) -> Json:
        method, target, _ = request.line.split(" ")
        if self.allowed is not None and request.headers.get("authorization") != self.allowed:
            raise RefusalError(401, "security_exception", "unable to authenticate")
        parts = urlsplit(target)
        name, _, what = parts.path.removeprefix("/").partition("/")
        if unquote(name) != self.name:
            raise RefusalError(404, "index_not_found_exception", f"no such index [{name}]")
        given = dict(parse_qsl(parts.query))
        if (method, what) == ("GET", ""):
            self._only(target, given, set())
            return self._described()
        if what == "_count":
            self._only(target, given, set())
            return {"count": len(self.documents), "_shards": WHOLE}
        if (method, what) == ("POST", "_search"):
            more = set() if self.elastic else {"search_pipeline"}
            self._only(target, given, _SEARCHES | more)
            if "json" not in request.headers.get("content-type", ""):
                raise RefusalError(406, "media_type_header_exception", "Content-Type")
            return self.twist(self._found(request.json))
        raise RefusalError(405, "method_not_allowed", f"Incorrect HTTP method for [{target}]")

    def _only(self, target: str, given: Mapping[str, str], known: set[str]) -> None:
        for name in given:
            if name not in known:
                told = f"request [{target}] contains unrecognized parameter: [{name}]"
                raise RefusalError(400, "illegal_argument_exception", told)

    def _described(self) -> Json:
        if not self.told:
            raise RefusalError(403, "security_exception", "action [indices:admin/get] is forbidden")
        settings = {"index": {"uuid": self.uuid, "number_of_shards": "2"}}
        held = {"aliases": {}, "mappings": self.mapping, "settings": settings}
        return {self.name: held}

    def _found(self, body: Json) -> Json:
        for name in body:
            if name not in _KEYS and not (self.elastic and name == "knn"):
                told = f"Unknown key for a START_OBJECT in [{name}]."
                raise RefusalError(400, "parsing_exception", told)
        size = body.get("size", 10)
        if size > MOST:
            told = f"Result window is too large, must be less than or equal to: [{MOST}]"
            raise RefusalError(400, "illegal_argument_exception", told)
        scored = self._nearest(body["knn"]) if "knn" in body else self._query(body.get("query", {}))
        scored.sort(key=lambda pair: -pair[1])  # those that tie stay in the order of the documents
        hits = [
            {
                "_index": self.name,
                "_id": name,
                "_score": None if "sort" in body else score,
                "_source": kept(self.documents[name], body.get("_source", True)),
            }
            for name, score in scored[:size]
        ]
        listed: Json = {"max_score": scored[0][1] if scored else None, "hits": hits}
        if body.get("track_total_hits", True):
            listed["total"] = {"value": len(scored), "relation": "eq"}
        return {"took": 3, "timed_out": False, "_shards": WHOLE, "hits": listed}

    def _query(self, query: Json) -> list[tuple[str, float]]:
        ((kind, inside),) = query.items()
        if kind == "match":
            ((name, said),) = inside.items()
            return self._words(said if isinstance(said, str) else said["query"], {name: 1.0})
        if kind == "multi_match":
            weights = {}
            for each in inside["fields"]:
                name, _, weight = each.partition("^")
                weights[name] = float(weight or 1)
            return self._words(inside["query"], weights)
        if kind == "knn" and not self.elastic:
            ((name, said),) = inside.items()
            return self._near(name, said["vector"], said["k"])
        if kind == "knn":
            raise RefusalError(400, "parsing_exception", f"[knn] query does not support {inside}")
        raise RefusalError(400, "parsing_exception", f"unknown query [{kind}]")

    def _nearest(self, near: Json) -> list[tuple[str, float]]:
        if near["num_candidates"] < near["k"]:
            told = "Validation Failed: 1: [num_candidates] cannot be less than [k];"
            raise RefusalError(400, "action_request_validation_exception", told)
        return self._near(near["field"], near["query_vector"], near["k"])

    def _near(self, name: str, vector: list[float], k: int) -> list[tuple[str, float]]:
        found = []
        for key, held in self.documents.items():
            if len(held[name]) != len(vector):
                told = f"the query vector has a different dimension [{len(vector)}]"
                raise RefusalError(400, "illegal_argument_exception", told)
            found.append((key, (1 + cosine(held[name], vector)) / 2))
        return sorted(found, key=lambda pair: -pair[1])[:k]

    def _words(self, text: str, weights: Mapping[str, float]) -> list[tuple[str, float]]:
        wanted = set(text.lower().split())
        found = []
        for key, held in self.documents.items():
            share = max(
                weight * alike(wanted, set(str(held.get(name, "")).lower().split()))
                for name, weight in weights.items()
            )
            if share:
                found.append((key, share))
        return found


def alike(one: set[str], other: set[str]) -> float:
    """The words of both by the words of either."""
    return len(one & other) / len(one | other)


def cosine(one: list[float], other: list[float]) -> float:
    product = math.fsum(a * b for a, b in zip(one, other, strict=True))
    return product / (math.hypot(*one) * math.hypot(*other))


def kept(source: Json, wanted: Any, before: str = "") -> Json:
    """The part of a document that a search asks for, by the paths to it."""
    if wanted is True:
        return source
    names = wanted or []
    found = {}
    for name, value in source.items():
        path = f"{before}{name}"
        if path in names:
            found[name] = value
        elif isinstance(value, dict):
            inside = kept(value, names, f"{path}.")
            found |= {name: inside} if inside else {}
    return found


@contextmanager
def searching(index: SearchServer) -> Iterator[SearchServer]:
    """The index on a server of its own, until the end."""
    with serving(index.answer) as server:
        index.server = server
        yield index
