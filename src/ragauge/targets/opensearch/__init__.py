"""The targets `opensearch:URL/INDEX` and `elasticsearch:URL/INDEX`: an index on a search server.

Both products speak the same REST interface, but for the search of nearest vectors.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from urllib.parse import quote

from ragauge.files import http_client
from ragauge.model.embedder import Vectors
from ragauge.model.target import TargetError, TargetKind, TargetOptions, TargetQuestion
from ragauge.targets.opensearch import request
from ragauge.targets.opensearch.index import IndexDescription, Indexes, index_hash, read_indexes
from ragauge.targets.opensearch.response import CountResponse, SearchHit, SearchResponse
from ragauge.targets.opensearch.server import PRODUCTS, WHO, Server
from ragauge.targets.shared.address import OF_EMBEDDER, TargetSettings, refused, split_address
from ragauge.targets.shared.foreign_hits import FIELD_NAMES, FIELDS, HitMaker, flat
from ragauge.targets.shared.vector_index import NAMES, Vectoriser

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
        self.k = options.k
        self.tail = f"/_search{_parameters(settings)}"
        self.way = _way(settings)
        self.field = settings.text("vector")
        body = self._body(settings)
        self.asked = body.tree
        self.hits = HitMaker(settings, options)
        names = self.hits.wanted(_BESIDE_SOURCE)
        self.body = body.completed([*names, *(f"metadata.{name}" for name in names)])
        self.vectoriser: Vectoriser | None = None
        try:
            self.indexes, self.documents = self._describe_index()
            if self.indexes is not None and self.way == "match":
                self.indexes.check_words(request.fields_of(settings.text("match", "") or ""))
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

    def _body(self, settings: TargetSettings) -> request.SearchBody:
        elastic = self.scheme == "elasticsearch"
        value = settings.needed(self.way, f"{self.way}=FIELD")
        candidates = None
        if settings.text("candidates") is not None:
            if not elastic or self.way != "vector":
                raise refused(
                    "`candidates` is for the vectors of Elasticsearch",
                    "leave it out, or say it in a body",
                )
            most = request.MOST_CANDIDATES
            candidates = int(settings.number("candidates", max(100, self.k), self.k, most))
        if self.way == "match":
            return request.by_words(value)
        if self.way == "body":
            return request.own_body(value)
        return request.by_vector(value, self.k, candidates, elastic=elastic)

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
            raise refused(f"{server.shown}: {counted.shards.lacking}", "mend the index first")
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
