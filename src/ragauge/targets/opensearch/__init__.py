"""The targets `opensearch:URL/INDEX` and `elasticsearch:URL/INDEX`: an index on a search server.

Both products speak the same REST interface, but for the search of nearest vectors.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from urllib.parse import quote

from ragauge.files import http_client
from ragauge.model.embedder import Vectors
from ragauge.model.target import Question, TargetError, TargetKind, TargetOptions
from ragauge.targets.opensearch import request
from ragauge.targets.opensearch.index import Described, Indexes, index_hash, read_indexes
from ragauge.targets.opensearch.response import Counted, Found, SearchHit
from ragauge.targets.opensearch.server import PRODUCTS, WHO, Server
from ragauge.targets.shared.address import OF_EMBEDDER, Settings, refused, split_address
from ragauge.targets.shared.foreign_hits import FIELD_NAMES, FIELDS, HitMaker, flat
from ragauge.targets.shared.vector_index import NAMES, Vectoriser

PROBE = "ragauge"
"""What is asked before the first question: a query that cannot work is refused at once."""

_WAYS = ("match", "vector", "body")
_PASSED_ON = ("preference", "routing", "search_pipeline")
_KNOWN = (*FIELD_NAMES, *NAMES, *WHO, *_WAYS, *_PASSED_ON, "candidates")
_TOLD = ("id", "score")  # beside the source
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
        names = self.hits.wanted(_TOLD)
        self.body = body.completed([*names, *(f"metadata.{name}" for name in names)])
        self.vectoriser: Vectoriser | None = None
        try:
            self.indexes, self.documents = self._look()
            if self.indexes is not None and self.way == "match":
                self.indexes.check_words(request.fields_of(settings.text("match", "") or ""))
            self.vectoriser = _vectoriser(settings, options, wanted="vector" in body.holes)
            self._check_vector()
            self._found(PROBE, self._vector(PROBE))
        except TargetError as error:
            self.close()
            raise self.server.never(error) from error
        except BaseException:
            self.close()
            raise
        self.facts = self._facts()

    def _body(self, settings: Settings) -> request.Body:
        elastic = self.scheme == "elasticsearch"
        said = settings.needed(self.way, f"{self.way}=FIELD")
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
            return request.by_words(said)
        if self.way == "body":
            return request.own_body(said)
        return request.by_vector(said, self.k, candidates, elastic=elastic)

    def _look(self) -> tuple[Indexes | None, int]:
        """What the index is and how much it holds; who may only search is not told the former."""
        server = self.server
        response = server.send("GET")
        if self.scheme == "opensearch" and "x-elastic-product" in response.headers:
            raise refused(
                f"{server.shown} is Elasticsearch", "write elasticsearch: for opensearch:"
            )
        indexes = None
        if response.status != 403:
            indexes = read_indexes(server.read(response, dict[str, Described]))
            if not indexes.names:
                raise refused(f"{server.shown}: no index has this name", "check the name")
        counted = server.read(server.send("GET", "/_count"), Counted)
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
        embedder = self.vectoriser.embedder
        self.indexes.check_vector(self.field, embedder.dimensions, embedder.id)

    def _facts(self) -> dict[str, Any]:
        """What every trace tells of the index."""
        known = self.indexes
        names = {
            "index_hash": None if known is None else index_hash(known, self.documents),
            "embed_model": None if self.vectoriser is None else self.vectoriser.embedder.id,
            "metric": None if known is None or not self.field else known.metric(self.field),
        }
        return {name: value for name, value in names.items() if value is not None}

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

    def ask(self, question: Question) -> Mapping[str, Any]:
        """Search for one question; by vectors, one without a direction is near nothing."""
        vector = self._vector(question.text)
        found: list[SearchHit] = []
        if self.way != "vector" or (vector is not None and vector.any()):
            found = self._found(question.text, vector)
        return {"hits": [self._hit(each) for each in found[: self.k]], "k": self.k, **self.facts}

    def _vector(self, text: str) -> Vectors | None:
        return None if self.vectoriser is None else self.vectoriser.vectors([text], "query")[0]

    def _found(self, text: str, vector: Vectors | None) -> list[SearchHit]:
        near = None if vector is None else vector.tolist()
        sent = self.body.filled({"question": text, "k": self.k, "vector": near})
        found = self.server.read(self.server.send("POST", self.tail, sent), Found)
        if found.lacking is not None:  # half an answer would look like a worse index
            raise TargetError(f"{self.server.shown}: {found.lacking}", transient=True)
        return found.hits.hits

    def _hit(self, found: SearchHit) -> dict[str, Any]:
        fields, score = flat(found.source), found.score
        if "score" in self.hits.chosen:
            score = None
        elif score is None:  # a field of that name is not what the server ranked by
            fields = {name: each for name, each in fields.items() if name not in FIELDS["score"]}
        return self.hits.hit(fields, name=found.id, score=score)

    def close(self) -> None:
        """Close the cache of vectors, and the connection of this thread."""
        if self.vectoriser is not None:
            self.vectoriser.close()
        http_client.close()


def _way(settings: Settings) -> str:
    """How is searched: exactly one of three ways."""
    given = [name for name in _WAYS if settings.text(name) is not None]
    if len(given) != 1:
        said = f"not {' and '.join(given)}" if given else "and was told none"
        raise refused(
            f"the target takes one of match, vector and body, {said}",
            "match=FIELD searches words, vector=FIELD vectors, body=@FILE as you write it",
        )
    return given[0]


def _parameters(settings: Settings) -> str:
    """What stands behind the `?`: copies of a shard may differ, so the same one is asked."""
    given = {name: settings.text(name) for name in _PASSED_ON}
    given["preference"] = given["preference"] or _COPY
    pairs = [
        f"{name}={quote(value, safe='')}"
        for name, value in given.items()
        if value not in (None, "none")
    ]
    return f"?{'&'.join(pairs)}" if pairs else ""


def _vectoriser(settings: Settings, options: TargetOptions, *, wanted: bool) -> Vectoriser | None:
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
