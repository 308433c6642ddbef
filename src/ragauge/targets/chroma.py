"""The target `chroma:PATH?collection=NAME`: a collection of Chroma, asked with our own vectors.

Chroma's own embedding function would be downloaded at its first use, so it is never used.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from ragauge.files.connections import announce
from ragauge.files.redaction import redacted_url
from ragauge.model.embedder import Vectors
from ragauge.model.target import TargetKind, TargetOptions
from ragauge.targets.shared.address import library, refused, split_address
from ragauge.targets.shared.foreign_hits import FIELD_NAMES, HitMaker, failure
from ragauge.targets.shared.vector_index import NAMES, NearestTarget, Vectoriser

_FILE = "chroma.sqlite3"


class ChromaTarget(NearestTarget):
    """Asks one collection for the nearest of its chunks."""

    def __init__(self, address: str, options: TargetOptions) -> None:
        place, settings = split_address(address, options, (*FIELD_NAMES, *NAMES, "collection"))
        name = settings.needed("collection", "chroma:PATH?collection=chunks")
        self.chromadb = library("chromadb", "chroma")
        self.quiet = library("chromadb.config", "chroma").Settings(
            # Else it reads a `.env` of the current folder, whose settings name classes to import.
            _env_file=None,
            anonymized_telemetry=False,
        )
        client = self._client(place)
        self.collection = _collection(client, name, redacted_url(place))
        self.hits = HitMaker(settings, options)
        self.k = options.k
        self.space = _space(self.collection)
        self.vectoriser = Vectoriser(settings, options)
        try:
            self._check_size(name)
        except BaseException:
            self.vectoriser.close()
            raise
        self.facts = {"collection": name, "k": self.k, "metric": self.space}

    def _client(self, place: str) -> Any:
        if place.startswith(("http://", "https://")):
            from urllib.parse import urlsplit

            url = urlsplit(place)
            tls = url.scheme == "https"
            announce(url.hostname or place, url.port or (443 if tls else 8000))
            return _tried(
                lambda: self.chromadb.HttpClient(
                    host=url.hostname,
                    port=url.port or (443 if tls else 8000),
                    ssl=tls,
                    settings=self.quiet,
                ),
                f"Chroma at {url.hostname} cannot be asked",
            )
        if not (Path(place) / _FILE).is_file():  # Chroma would make an empty one
            raise refused(
                f"there is no database of Chroma in `{place}`", f"name the folder with {_FILE}"
            )
        return _tried(
            lambda: self.chromadb.PersistentClient(path=place, settings=self.quiet),
            f"the database in `{place}` cannot be opened",
        )

    def _check_size(self, name: str) -> None:
        """Refuse an empty collection, and vectors of another length than the questions'."""
        vectors = self.collection.get(limit=1, include=["embeddings"])["embeddings"]
        if vectors is None or not len(vectors):
            raise refused(f"the collection `{name}` is empty", "name the one that holds the chunks")
        self.vectoriser.refuse_other_length(name, len(vectors[0]))

    def nearest(self, vector: Vectors) -> Iterable[dict[str, Any]]:
        """The nearest chunks."""
        try:
            result = self.collection.query(
                query_embeddings=[vector.tolist()],
                n_results=self.k,
                include=["documents", "metadatas", "distances"],
            )
        except Exception as error:  # the library has no base class of its own
            raise failure(error) from error
        columns = (result[name][0] for name in ("ids", "documents", "metadatas", "distances"))
        for name, text, metadata, distance in zip(*columns, strict=True):
            # A score is higher for what is nearer.
            score = 1.0 - distance if self.space in ("cosine", "ip") else -distance
            yield self.hits.hit(metadata or {}, text=text, name=name, score=round(score, 6))

    def close(self) -> None:
        """Close the cache of vectors; Chroma closes what it opened when it is let go of."""
        self.vectoriser.close()


def _tried(make: Any, words: str) -> Any:
    try:
        return make()
    except Exception as error:  # the library has no base class of its own
        raise refused(f"{words}: {type(error).__name__}: {error}", "check the address") from error


def _collection(client: Any, name: str, place: str) -> Any:
    names = [str(getattr(entry, "name", entry)) for entry in client.list_collections()]
    if name not in names:
        listed = ", ".join(sorted(names)) or "none"
        raise refused(f"`{place}` has no collection `{name}`", f"it has: {listed}")
    return _tried(
        lambda: client.get_collection(name, embedding_function=None),
        f"the collection `{name}` cannot be opened",
    )


def _space(collection: Any) -> str:
    """How a collection measures: `l2` where nothing says otherwise."""
    configuration = getattr(collection, "configuration_json", None) or {}
    index = configuration.get("hnsw") or configuration.get("spann") or {}
    return str(index.get("space") or (collection.metadata or {}).get("hnsw:space") or "l2")


TARGET = TargetKind(
    name="chroma",
    title="a collection of Chroma: chroma:PATH?collection=NAME",
    schemes=("chroma",),
    open=ChromaTarget,
)
