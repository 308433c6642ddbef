"""The targets `opensearch:URL/INDEX` and `elasticsearch:URL/INDEX`: an index on a search server.

Both products speak the same REST interface, but for the search of nearest vectors. Passwords and
keys come from the environment; one that stands in an address is never shown.
"""

from __future__ import annotations

import base64
import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from hashlib import sha256
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import quote, unquote, urlsplit

import msgspec
from msgspec import Struct

from ragauge.errors import RagaugeError
from ragauge.files import http_client
from ragauge.files.redaction import REDACTED
from ragauge.model.embedder import Vectors
from ragauge.model.target import TargetError, TargetKind, TargetOptions, TargetQuestion
from ragauge.targets.shared.address import (
    OF_EMBEDDER,
    TOO_MANY_REQUESTS,
    TargetSettings,
    refused,
    retry_after,
    send,
    shown_url,
    split_address,
)
from ragauge.targets.shared.foreign_hits import FIELD_NAMES, FIELDS, HitMaker, flat
from ragauge.targets.shared.vector_index import NAMES, Vectoriser

# --- responses: hits, why some are missing, and refusals ---

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
        reason = _cause(self.failures[0]) if self.failures else None
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
        text = _cause(first) or _cause(error) or text
    elif isinstance(error, str):
        text = error
    for secret in secrets:  # before the text is cut, or half a secret would stay
        text = text.replace(secret, REDACTED)
    return " ".join(text.split())[:_SHOWN]


def _cause(cause: Any) -> str | None:
    """The type and the reason of a failure; that of a shard has them one level deeper."""
    if not isinstance(cause, dict):
        return None
    if isinstance(cause.get("reason"), dict):
        return _cause(cause["reason"])
    parts = [cause[name] for name in ("type", "reason") if isinstance(cause.get(name), str)]
    return " ".join(": ".join(parts).split())[:_SHOWN] or None


# --- the server: where its index is, who asks it, and its answers ---

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
        self.shown = shown_url(self.url, example)
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
        return send(method, f"{self.url}{tail}", body, self.headers, self.timeout)

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
            raise self._failed(status, message, retry_after(response))
        try:
            return msgspec.json.decode(response.body, type=kind)
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
            reason = refusal(response.body, self.secrets)
            message = f"{self.shown} answered something else ({error}): {reason}"
            raise self._failed(status, message) from error

    def _failed(self, status: int, message: str, wait: float | None = None) -> RefusedError:
        busy = status == TOO_MANY_REQUESTS
        error = RefusedError(message, transient=status in _PASSING, wait=wait, busy=busy)
        error.status = status
        return error

    def never(self, error: TargetError) -> RagaugeError:
        """What goes wrong before the first question, as the error of the address."""
        status = error.status if isinstance(error, RefusedError) else None
        product = self.product
        pair = f"{product.variables}_USERNAME and {product.variables}_PASSWORD"
        who = f"the environment says who asks: {product.key}, or {pair}"
        hints = {
            200: f"is it a server of {product.title}?",
            400: "one search was tried first: check the index, its fields and the query",
            401: who,
            403: who,
            404: "check the name of the index",
            None: "nothing was asked yet: check the address, and whether the server is well",
        }
        return refused(error.reason, hints.get(status, hints[None]))


def _secret(variable: str, *, needed: bool) -> str | None:
    """What the environment holds, without a newline that came along."""
    value = os.environ.get(variable, "").strip() or None
    if value is None and needed:
        raise refused(f"the environment has no `{variable}`", f"set it: export {variable}=...")
    return value


def _encoded(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


# --- what the server says of an index: its name, its UUID and its fields ---

VECTORS = {"knn_vector": "opensearch", "dense_vector": "elasticsearch"}
"""The types of fields that hold vectors, and whose they are."""

_WHOLE = ("flattened", "flat_object")  # what stands in these is not in the mapping
_SIZES = ("dimension", "dims")
_METRICS = ("space_type", "similarity")


class _IndexSettings(Struct, frozen=True):
    uuid: str | None = None


class _SettingsOfIndex(Struct, frozen=True):
    index: _IndexSettings = _IndexSettings()


class IndexDescription(Struct, frozen=True):
    """What a server says of one index."""

    mappings: dict[str, Any] = {}
    settings: _SettingsOfIndex = _SettingsOfIndex()


class Indexes(Struct, frozen=True):
    """The indexes behind a name (an alias or a pattern may mean several), and their fields.

    `names` are those of the server with their UUIDs, as its own logs write them.
    """

    names: tuple[str, ...]
    fields: Mapping[str, Sequence[Mapping[str, Any]]]
    mapping: str

    def check_words(self, names: Sequence[str]) -> None:
        """Raise if a field is searched that is not there: the server would find nothing in it."""
        for name in names:
            field = name.partition("^")[0]
            if "*" in field:  # the server expands the pattern
                continue
            parents = _parents(field)
            if any(self._is(parent, "nested") for parent in parents):
                raise refused(
                    f"`{field}` stands in nested objects, which `match` does not reach",
                    "write the query with --option body=@FILE",
                )
            inside = any(self._is(parent, kind) for parent in parents for kind in _WHOLE)
            if field not in self.fields and not inside:
                raise refused(
                    f"the index has no field `{field}`", f"it has: {self._listed() or 'none'}"
                )

    def vector_lengths(self, name: str) -> list[int]:
        """The lengths of a field's vectors, as far as mappings name them; raise if it has none."""
        definitions = [
            definition
            for definition in self.fields.get(name, ())
            if str(definition.get("type")) in VECTORS
        ]
        if not definitions:
            vector_fields = [field for field in self.fields if self.owner(field) is not None]
            raise refused(
                f"the index has no vectors in `{name}`", f"it has them in: {_joined(vector_fields)}"
            )
        return [
            definition[key]
            for definition in definitions
            for key in _SIZES
            if isinstance(definition.get(key), int)
        ]

    def owner(self, name: str) -> str | None:
        """The product whose vectors a field holds."""
        for definition in self.fields.get(name, ()):
            if (kind := str(definition.get("type"))) in VECTORS:
                return VECTORS[kind]
        return None

    def metric(self, name: str) -> str | None:
        """How the vectors of a field are compared, where the mapping says it."""
        for definition in self.fields.get(name, ()):
            # OpenSearch has the metric in the method of the field, Elasticsearch beside the type.
            method = definition.get("method")
            for holder in (definition, method if isinstance(method, Mapping) else {}):
                for key in _METRICS:
                    if isinstance(holder.get(key), str):
                        return str(holder[key])
        return None

    def _is(self, name: str, kind: str) -> bool:
        return any(field.get("type") == kind for field in self.fields.get(name, ()))

    def _listed(self) -> str:
        """The fields in which `match` may find something: no vectors, and nothing nested."""
        return _joined(
            [
                name
                for name in self.fields
                if self.owner(name) is None
                and not any(self._is(part, "nested") for part in (name, *_parents(name)))
            ]
        )


def read_indexes(descriptions: Mapping[str, IndexDescription]) -> Indexes:
    """Combine the descriptions of the indexes behind a name."""
    fields: dict[str, list[Mapping[str, Any]]] = {}
    for _, description in sorted(descriptions.items()):
        for path, field in _fields(description.mappings):
            fields.setdefault(path, []).append(field)
    mappings = {name: description.mappings for name, description in descriptions.items()}
    return Indexes(
        names=tuple(
            f"{name}/{description.settings.index.uuid or '?'}"
            for name, description in sorted(descriptions.items())
        ),
        fields=fields,
        mapping=_hash(mappings),
    )


def index_hash(indexes: Indexes, documents: int) -> str:
    """A hash of what an index is: it changes if documents or fields come, or another index."""
    return _hash([indexes.names, indexes.mapping, documents])


def _hash(value: Any) -> str:
    return sha256(msgspec.json.encode(value, order="deterministic")).hexdigest()[:32]


def _fields(
    mapping: Mapping[str, Any], before: str = ""
) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """The fields of a mapping with the paths to them; objects without a type are only the way."""
    for group in ("properties", "fields", "runtime"):
        members = mapping.get(group)
        for name, field in members.items() if isinstance(members, Mapping) else ():
            if isinstance(field, Mapping):
                path = f"{before}{name}"
                if field.get("type") not in (None, "object"):
                    yield path, field
                yield from _fields(field, f"{path}.")


def _parents(path: str) -> list[str]:
    return [path[:at] for at, char in enumerate(path) if char == "."]


def _joined(names: Sequence[str]) -> str:
    ordered = sorted(names)
    return ", ".join(ordered[:20]) + (", ..." if len(ordered) > 20 else "") or "none"


# --- bodies of searches: by words, by a vector, or a body of the user's own ---
#
# All three are bodies with holes. A hole is a whole value of the JSON and is filled with one: no
# question can break out of it, whatever it holds.

HOLES = ("question", "k", "vector")
"""What a body may name in braces."""

MOST_CANDIDATES = 10_000
"""The most that Elasticsearch looks at on a shard, and the most neighbours of both products."""

_CANDIDATES = 100
_EXAMPLE = 'as in {"query": {"match": {"text": {question}}}}'
_HOLE = re.compile(r"\{(" + "|".join(HOLES) + r")\}")
# A string as it stands, so that only a hole outside of one is put between quotes.
_BARE = re.compile(r'"(?:[^"\\]|\\.)*"|(' + _HOLE.pattern.replace("(", "(?:") + ")")


class SearchBody(Struct, frozen=True):
    """A body with holes, which stand in its `tree` as texts."""

    tree: Mapping[str, Any]

    @property
    def holes(self) -> frozenset[str]:
        """Which holes there are; one that is only a part of a text is refused."""
        return _holes(self.tree)

    def filled(self, values: Mapping[str, Any]) -> bytes:
        """The body with a value in each hole, as JSON."""
        return msgspec.json.encode(_filled(self.tree, values))

    def completed(self, fields: Sequence[str]) -> SearchBody:
        """The same body, which asks for k hits and for some fields if it says nothing of them."""
        return SearchBody({"size": "{k}", "_source": list(fields), **self.tree})


def by_words(fields: str) -> SearchBody:
    """A search for the words of a question in one field, or in several with weights (`title^2`)."""
    names = fields_of(fields)
    if len(names) == 1 and not set("^*") & set(names[0]):
        query: Any = {"match": {names[0]: {"query": "{question}"}}}
    else:
        query = {"multi_match": {"query": "{question}", "fields": names}}
    return SearchBody({"query": query, "track_total_hits": False})


def by_vector(field: str, k: int, candidates: int | None, *, elastic: bool) -> SearchBody:
    """A search for the nearest vectors; the two products want it said differently."""
    if k > MOST_CANDIDATES:
        raise refused(
            f"no server gives {k:,} neighbours", f"--k can be {MOST_CANDIDATES:,} at most"
        )
    if not elastic:
        query: Any = {"query": {"knn": {field: {"vector": "{vector}", "k": "{k}"}}}}
        return SearchBody({**query, "track_total_hits": False})
    knn = {
        "field": field,
        "query_vector": "{vector}",
        "k": "{k}",
        "num_candidates": max(k, _CANDIDATES) if candidates is None else candidates,
    }
    return SearchBody({"knn": knn, "track_total_hits": False})


def own_body(option: str) -> SearchBody:
    """The body that an option gives: JSON, or `@FILE`; holes with quotes around them or without."""
    text = option
    if option.startswith("@"):
        try:
            text = Path(option[1:]).read_text("utf-8")
        except (OSError, UnicodeDecodeError, ValueError) as error:
            reason = (getattr(error, "strerror", None) or type(error).__name__).lower()
            message = f"the body `{option[1:]}` cannot be read: {reason}"
            raise refused(message, "write body=@FILE") from error
    try:
        quoted = _BARE.sub(lambda match: f'"{match[1]}"' if match[1] else match[0], text)
        tree = msgspec.json.decode(quoted)
        if not isinstance(tree, dict):
            raise refused("the body is no JSON object", _EXAMPLE)
        holes = _holes(tree)
    except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
        raise refused(f"the body is no JSON: {error}", _EXAMPLE) from error
    if not holes & {"question", "vector"}:
        raise refused("the body asks every question alike", f"put a hole in it, {_EXAMPLE}")
    return SearchBody(tree)


def fields_of(fields: str) -> list[str]:
    """The fields that an option names, divided by commas."""
    names = [name.strip() for name in fields.split(",")]
    if not all(name.partition("^")[0] for name in names):
        raise refused(f"`match={fields}` names no field between its commas", "match=title^2,text")
    return names


def _holes(value: Any) -> frozenset[str]:
    """The holes in a tree; one that is not a whole value could only be filled by pasting."""
    if isinstance(value, Mapping):
        for name in value:
            _refuse_part(name)
        return frozenset().union(*map(_holes, value.values()))
    if isinstance(value, list):
        return frozenset().union(*map(_holes, value))
    if not isinstance(value, str):
        return frozenset()
    hole = _HOLE.fullmatch(value)
    if hole is None:
        _refuse_part(value)
        return frozenset()
    return frozenset([hole[1]])


def _refuse_part(text: str) -> None:
    hole = _HOLE.search(text)
    if hole is not None:
        raise refused(
            f"`{hole[0]}` is only a part of a text or a name in the body",
            f"a hole is a whole value, {_EXAMPLE}",
        )


def _filled(value: Any, values: Mapping[str, Any]) -> Any:
    if isinstance(value, Mapping):
        return {name: _filled(item, values) for name, item in value.items()}
    if isinstance(value, list):
        return [_filled(item, values) for item in value]
    hole = _HOLE.fullmatch(value) if isinstance(value, str) else None
    return value if hole is None else values[hole[1]]


# --- the target ---

PROBE = "ragauge"
"""What is asked before the first question: a query that cannot work is refused at once."""

_WAYS = ("match", "vector", "body")
_PASSED_ON = ("preference", "routing", "search_pipeline")
_KNOWN = (*FIELD_NAMES, *NAMES, *WHO, *_WAYS, *_PASSED_ON, "candidates")
_BESIDE_SOURCE = ("id", "score")  # fields of a hit that do not stand in its source
_COPY = "ragauge"  # searches with the same word go to the same copies of the shards


class SearchTarget:
    """Asks an index of a server; order and scores are those of the server."""

    def __init__(self, address: str, options: TargetOptions) -> None:
        place, settings = split_address(address, options, _KNOWN)
        self.scheme = options.scheme if options.scheme in PRODUCTS else TARGET.name
        self.server = Server(place, self.scheme, settings, options.timeout)
        self.secrets = self.server.secrets
        self.k = options.k
        self.tail = f"/_search{_parameters(settings)}"
        self.hits = HitMaker(settings, options)
        self.vectoriser: Vectoriser | None = None
        try:
            description = None
            if not any(name in settings.given for name in _WAYS):
                description = self._describe_index()
                settings = self._usual_way(settings, description[0], options.embedder)
            self.way = _way(settings)
            self.field = settings.text("vector")
            body = self._body(settings)
            self.asked = body.tree
            names = self.hits.wanted(_BESIDE_SOURCE)
            self.body = body.completed([*names, *(f"metadata.{name}" for name in names)])
            self.indexes, self.documents = description or self._describe_index()
            if self.indexes is not None and self.way == "match":
                self.indexes.check_words(fields_of(settings.text("match", "") or ""))
            self.vectoriser = _vectoriser(settings, options, wanted="vector" in body.holes)
            self._check_vector()
            self._search(PROBE, self._vector(PROBE))  # a query that cannot work fails here
        except TargetError as error:
            self.close()
            raise self.server.never(error) from error
        except BaseException:
            self.close()
            raise
        self.facts = self._facts()

    def _usual_way(
        self, settings: TargetSettings, indexes: Indexes | None, embedder: str | None
    ) -> TargetSettings:
        """Where nothing says how to search: by vectors if an embedder is named, else by words.

        The fields are the only one with vectors, and the first with a text under one of its usual
        names: `vector_field` and `text` of an index that LangChain filled.
        """
        if indexes is None:  # who may only search is not told the fields
            return settings
        of_vectors = any(name in NAMES or name.startswith(OF_EMBEDDER) for name in settings.given)
        if of_vectors or embedder is not None:
            fields = [name for name in indexes.fields if indexes.owner(name) is not None]
            if len(fields) > 1:
                raise refused(f"the index has vectors in {_joined(fields)}", "write vector=FIELD")
            way = "vector"
        else:
            fields = [name for name in self.hits.names["text"] if name in indexes.fields][:1]
            way = "match"
        usual = {way: fields[0]} if fields else {}
        return TargetSettings({**settings.given, **usual})

    def _body(self, settings: TargetSettings) -> SearchBody:
        elastic = self.scheme == "elasticsearch"
        value = settings.needed(self.way, f"{self.way}=FIELD")
        candidates = None
        if settings.text("candidates") is not None:
            if not elastic or self.way != "vector":
                raise refused(
                    "`candidates` is for the vectors of Elasticsearch",
                    "leave it out, or say it in a body",
                )
            most = MOST_CANDIDATES
            candidates = int(settings.number("candidates", max(100, self.k), self.k, most))
        if self.way == "match":
            return by_words(value)
        if self.way == "body":
            return own_body(value)
        return by_vector(value, self.k, candidates, elastic=elastic)

    def _describe_index(self) -> tuple[Indexes | None, int]:
        """The index and its number of documents; a user who may only search gets no description."""
        server = self.server
        response = server.send("GET")
        if self.scheme == "opensearch" and "x-elastic-product" in response.headers:
            raise refused(
                f"{server.shown} is Elasticsearch", "write elasticsearch: for opensearch:"
            )
        indexes = None
        if response.status != 403:
            indexes = read_indexes(server.read(response, dict[str, IndexDescription]))
            if not indexes.names:
                raise refused(f"{server.shown}: no index has this name", "check the name")
        counted = server.read(server.send("GET", "/_count"), CountResponse)
        if counted.shards.lacking is not None:
            raise refused(f"{server.shown}: {counted.shards.lacking}", "repair the index first")
        if not counted.count:
            raise refused(f"the index `{server.index}` is empty", "fill it first")
        return indexes, counted.count

    def _check_vector(self) -> None:
        if self.field is None or self.indexes is None or self.vectoriser is None:
            return
        owner = self.indexes.owner(self.field)
        if owner is not None and owner != self.scheme:
            raise refused(
                f"the vectors in `{self.field}` are those of {PRODUCTS[owner].title}",
                f"write {owner}: for {self.scheme}:",
            )
        for length in self.indexes.vector_lengths(self.field):
            self.vectoriser.refuse_other_length(self.field, length)

    def _facts(self) -> dict[str, Any]:
        """What every trace says of the index."""
        indexes = self.indexes
        facts = {
            "index_hash": None if indexes is None else index_hash(indexes, self.documents),
            "embed_model": None if self.vectoriser is None else self.vectoriser.embedder.id,
            "metric": None if indexes is None or not self.field else indexes.metric(self.field),
        }
        return {name: value for name, value in facts.items() if value is not None}

    @property
    def about(self) -> Mapping[str, Any]:
        """Which index it is, how much it holds and how it is asked: another one is noticed."""
        return {
            "product": self.server.product.title,
            "index": self.server.index,
            "indexes": None if self.indexes is None else list(self.indexes.names),
            "documents": self.documents,
            "mapping": None if self.indexes is None else self.indexes.mapping,
            "query": self.asked,
            "k": self.k,
            **self.facts,
        }

    def ask(self, question: TargetQuestion) -> Mapping[str, Any]:
        """Search for one question; by vectors, one without a direction is near nothing."""
        vector = self._vector(question.text)
        hits: list[SearchHit] = []
        if self.way != "vector" or (vector is not None and vector.any()):
            hits = self._search(question.text, vector)
        return {"hits": [self._hit(hit) for hit in hits[: self.k]], "k": self.k, **self.facts}

    def _vector(self, text: str) -> Vectors | None:
        return None if self.vectoriser is None else self.vectoriser.vectors([text], "query")[0]

    def _search(self, text: str, vector: Vectors | None) -> list[SearchHit]:
        numbers = None if vector is None else vector.tolist()
        body = self.body.filled({"question": text, "k": self.k, "vector": numbers})
        response = self.server.read(self.server.send("POST", self.tail, body), SearchResponse)
        if response.lacking is not None:  # half an answer would look like a worse index
            raise TargetError(f"{self.server.shown}: {response.lacking}", transient=True)
        return response.hits.hits

    def _hit(self, hit: SearchHit) -> dict[str, Any]:
        fields, score = flat(hit.source), hit.score
        if "score" in self.hits.chosen:
            score = None
        elif score is None:  # a field of that name is not what the server ranked by
            fields = {name: value for name, value in fields.items() if name not in FIELDS["score"]}
        return self.hits.hit(fields, name=hit.id, score=score)

    def close(self) -> None:
        """Close the cache of vectors, and the connection of this thread."""
        if self.vectoriser is not None:
            self.vectoriser.close()
        http_client.close()


def _way(settings: TargetSettings) -> str:
    """The way to search: exactly one of three."""
    ways = [name for name in _WAYS if settings.text(name) is not None]
    if len(ways) != 1:
        problem = f"not {' and '.join(ways)}" if ways else "and was told none"
        raise refused(
            f"the target takes one of match, vector and body, {problem}",
            "match=FIELD searches words, vector=FIELD vectors, body=@FILE as you write it",
        )
    return ways[0]


def _parameters(settings: TargetSettings) -> str:
    """What stands behind the `?`: copies of a shard may differ, so the same one is asked."""
    parameters = {name: settings.text(name) for name in _PASSED_ON}
    parameters["preference"] = parameters["preference"] or _COPY
    pairs = [
        f"{name}={quote(value, safe='')}"
        for name, value in parameters.items()
        if value not in (None, "none")
    ]
    return f"?{'&'.join(pairs)}" if pairs else ""


def _vectoriser(
    settings: TargetSettings, options: TargetOptions, *, wanted: bool
) -> Vectoriser | None:
    """What makes vectors of questions, where some are asked for."""
    if wanted:
        return Vectoriser(settings, options)
    for name in settings.given:
        if name in NAMES or name.startswith(OF_EMBEDDER):
            raise refused(f"`{name}` is for vectors, and none are compared", "leave it out")
    return None


TARGET = TargetKind(
    name="opensearch",
    title="an index of OpenSearch or Elasticsearch: opensearch:http://HOST:9200/INDEX?match=FIELD",
    schemes=("opensearch", "elasticsearch"),
    open=SearchTarget,
)
