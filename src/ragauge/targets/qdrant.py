"""The target `qdrant:PLACE?collection=NAME`: a collection of Qdrant, in a folder or on a server."""

from __future__ import annotations

import io
import os
import pickle
import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from ragauge.files.connections import announce
from ragauge.files.redaction import redacted_url
from ragauge.model.embedder import Vectors
from ragauge.model.target import TargetKind, TargetOptions
from ragauge.targets.shared.address import library, refused, split_address
from ragauge.targets.shared.foreign_hits import FIELD_NAMES, HitMaker, failure, flat
from ragauge.targets.shared.vector_index import NAMES, NearestTarget, Vectoriser

KEY_VARIABLE = "QDRANT_API_KEY"
MEMORY = ":memory:"

_MODELS = ("qdrant_client.http.models.models", "qdrant_client.models.models")
_VALUES = {
    ("uuid", "UUID"),
    ("datetime", "datetime"),
    ("datetime", "date"),
    ("datetime", "timezone"),
    ("datetime", "timedelta"),
    ("decimal", "Decimal"),
    ("numpy", "ndarray"),
    ("numpy", "dtype"),
    *(
        (f"numpy.{core}.multiarray", name)
        for core in ("core", "_core")
        for name in ("_reconstruct", "scalar")
    ),
}
"""What a vector or a payload may hold beside plain values."""


class QdrantTarget(NearestTarget):
    """Asks one collection for the nearest of its points; `vector` names one of several."""

    def __init__(self, address: str, options: TargetOptions) -> None:
        names = (*FIELD_NAMES, *NAMES, "collection", "vector")
        place, settings = split_address(address, options, names)
        self.name = settings.needed("collection", "qdrant:PATH?collection=chunks")
        self.vector = settings.text("vector")
        client = library("qdrant_client", "qdrant").QdrantClient
        self.client = _opened(client, place, options.timeout)
        key = os.environ.get(KEY_VARIABLE)
        self.secrets = [key] if key else []
        remote = place.startswith(("http://", "https://"))
        # The local mode of the client was not made for threads.
        self.lock: Any = nullcontext() if remote else threading.Lock()
        try:
            size, self.metric = self._vectors(redacted_url(place))
            self.hits = HitMaker(settings, options)
            self.k = options.k
            self.vectoriser = Vectoriser(settings, options)
        except BaseException:
            self.client.close()
            raise
        try:
            self.vectoriser.refuse_other_length(self.name, size)
        except BaseException:
            self.close()
            raise
        self.facts = {"collection": self.name, "k": self.k, "metric": self.metric}

    def _vectors(self, place: str) -> tuple[int, str]:
        """The length of the collection's vectors, and how they are compared."""
        try:
            names = sorted(
                collection.name for collection in self.client.get_collections().collections
            )
            if self.name not in names:
                raise refused(
                    f"`{place}` has no collection `{self.name}`",
                    f"it has: {', '.join(names) or 'none'}",
                )
            vectors = self.client.get_collection(self.name).config.params.vectors
        except (OSError, RuntimeError, ValueError, _api_errors()) as error:
            raise refused(f"`{place}` cannot be asked: {error}", "check the address") from error
        if isinstance(vectors, dict):
            if self.vector is None and len(vectors) == 1:
                self.vector = next(iter(vectors))
            if self.vector not in vectors:
                raise refused(
                    f"`{self.name}` has the vectors {', '.join(sorted(vectors)) or 'none'}",
                    "say which with --option vector=NAME",
                )
            vectors = vectors[self.vector]
        return int(vectors.size), str(getattr(vectors.distance, "value", vectors.distance)).lower()

    def nearest(self, vector: Vectors) -> Iterable[dict[str, Any]]:
        """The nearest points."""
        try:
            with self.lock:
                points = self.client.query_points(
                    self.name,
                    query=vector.tolist(),
                    limit=self.k,
                    with_payload=True,
                    using=self.vector,
                ).points
        except Exception as error:  # the library has no base class of its own
            raise failure(error) from error
        return map(self._hit, points)

    def _hit(self, point: Any) -> dict[str, Any]:
        payload = flat(point.payload or {})
        # Points are numbered or have a UUID: the chunk's own id stands in the payload.
        has_id = any(payload.get(name) is not None for name in self.hits.names["id"])
        far = self.metric in ("euclid", "manhattan")
        score = round(-point.score if far else point.score, 6)
        return self.hits.hit(payload, name=None if has_id else point.id, score=score)

    def close(self) -> None:
        """Close the client and the cache of vectors."""
        self.vectoriser.close()
        self.client.close()


class _PointUnpickler(pickle.Unpickler):
    """Reads points that the client pickled, and nothing that could run.

    A folder may come from anybody, and a pickle calls whatever it names.
    """

    def find_class(self, module_name: str, name: str) -> Any:
        """The class of a model; dotted names would reach into what a module imports."""
        if module_name in _MODELS and name.isidentifier():
            value = super().find_class(module_name, name)
            if isinstance(value, type) and value.__module__ == module_name:
                return value
        if (module_name, name) in _VALUES:
            return super().find_class(module_name, name)
        raise pickle.UnpicklingError(f"{module_name}.{name}")


class _HarmlessPickle:
    """Stands in for `pickle` in the client."""

    dumps = staticmethod(pickle.dumps)

    @staticmethod
    def loads(data: bytes) -> Any:
        """Read a point."""
        return _PointUnpickler(io.BytesIO(data)).load()


@contextmanager
def _harmless_points() -> Iterator[None]:
    """Let the client read its points by `_PointUnpickler`: it reads all of them when it is made."""
    module = library("qdrant_client.local.persistence", "qdrant")
    before = module.pickle
    module.pickle = _HarmlessPickle
    try:
        yield
    finally:
        module.pickle = before


def _opened(client: Any, place: str, timeout: float) -> Any:
    """A client for a server, a folder, or nothing but memory."""
    if place == MEMORY:
        return client(location=MEMORY)
    if place.startswith(("http://", "https://")):
        key = os.environ.get(KEY_VARIABLE)
        announce(urlsplit(place).hostname or place, urlsplit(place).port or 6333)
        return client(
            url=place, api_key=key, timeout=max(1, int(timeout)), check_compatibility=False
        )
    if not (Path(place) / "meta.json").is_file():  # the client would make an empty one
        raise refused(
            f"there is no database of Qdrant in `{place}`", "name the folder with meta.json"
        )
    try:
        with _harmless_points():
            return client(path=place)
    except pickle.UnpicklingError as error:
        raise refused(
            f"`{place}` holds a point that would run code: {error}",
            "fill the collection anew, or ask it on a server",
        ) from error
    except (OSError, RuntimeError, ValueError) as error:
        message = str(error).partition("\n")[0]
        raise refused(
            f"`{place}` cannot be opened: {message}", "is another process using it?"
        ) from error


def _api_errors() -> type[Exception]:
    """What the client raises when a server cannot be reached or refuses."""
    error_class: type[Exception] = library("qdrant_client.http.exceptions", "qdrant").ApiException
    return error_class


TARGET = TargetKind(
    name="qdrant",
    title="a collection of Qdrant: qdrant:PATH?collection=NAME",
    schemes=("qdrant",),
    open=QdrantTarget,
)
