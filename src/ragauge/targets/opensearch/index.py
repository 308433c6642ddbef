"""What a search server tells of an index: which it is, and what its fields are."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from hashlib import sha256
from typing import Any

import msgspec
from msgspec import Struct

from ragauge.targets.shared.address import refused

VECTORS = {"knn_vector": "opensearch", "dense_vector": "elasticsearch"}
"""The types of fields that hold vectors, and whose they are."""

_WHOLE = ("flattened", "flat_object")  # what stands in these is not in the mapping
_SIZES = ("dimension", "dims")
_METRICS = ("space_type", "similarity")


class _Settings(Struct, frozen=True):
    uuid: str | None = None


class _AllSettings(Struct, frozen=True):
    index: _Settings = _Settings()


class Described(Struct, frozen=True):
    """What a server says of one index."""

    mappings: dict[str, Any] = {}
    settings: _AllSettings = _AllSettings()


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
            plain = name.partition("^")[0]
            if "*" in plain:
                continue
            parents = _parents(plain)
            if any(self._is(parent, "nested") for parent in parents):
                raise refused(
                    f"`{plain}` stands in nested objects, which `match` does not reach",
                    "write the query with --option body=@FILE",
                )
            inside = any(self._is(parent, kind) for parent in parents for kind in _WHOLE)
            if plain not in self.fields and not inside:
                raise refused(
                    f"the index has no field `{plain}`", f"it has: {self._listed() or 'none'}"
                )

    def check_vector(self, name: str, made: int, embedder: str) -> None:
        """Raise if a field holds no vectors, or none of the length that an embedder makes."""
        held = [each for each in self.fields.get(name, ()) if each.get("type") in VECTORS]
        if not held:
            vectors = [
                each
                for each, kinds in self.fields.items()
                if any(kind.get("type") in VECTORS for kind in kinds)
            ]
            raise refused(
                f"the index has no vectors in `{name}`", f"it has them in: {_joined(vectors)}"
            )
        for size in _sizes(held):
            if size != made:
                raise refused(
                    f"the vectors of `{name}` have {size} numbers, those of {embedder} {made}",
                    "name the embedder that made them: --option embedder=NAME",
                )

    def owner(self, name: str) -> str | None:
        """The product whose vectors a field holds."""
        found = (VECTORS.get(str(each.get("type"))) for each in self.fields.get(name, ()))
        return next((each for each in found if each is not None), None)

    def metric(self, name: str) -> str | None:
        """How the vectors of a field are compared, where the mapping says it."""
        for each in self.fields.get(name, ()):
            method = each.get("method")
            for holder in (each, method if isinstance(method, Mapping) else {}):
                for key in _METRICS:
                    if isinstance(holder.get(key), str):
                        return str(holder[key])
        return None

    def _is(self, name: str, kind: str) -> bool:
        return any(each.get("type") == kind for each in self.fields.get(name, ()))

    def _has_words(self, name: str) -> bool:
        """Whether `match` may find something in a field: in no vectors, in nothing nested."""
        within = [name, *_parents(name)]
        return self.owner(name) is None and not any(self._is(each, "nested") for each in within)

    def _listed(self) -> str:
        return _joined([each for each in self.fields if self._has_words(each)])


def read_indexes(described: Mapping[str, Described]) -> Indexes:
    """Put together what a server says of the indexes behind a name."""
    fields: dict[str, list[Mapping[str, Any]]] = {}
    for _, each in sorted(described.items()):
        for path, field in _fields(each.mappings):
            fields.setdefault(path, []).append(field)
    mappings = {name: each.mappings for name, each in described.items()}
    return Indexes(
        names=tuple(
            f"{name}/{each.settings.index.uuid or '?'}" for name, each in sorted(described.items())
        ),
        fields=fields,
        mapping=_hash(mappings),
    )


def index_hash(indexes: Indexes, documents: int) -> str:
    """A hash of what an index is: it changes if documents or fields come, or another index."""
    return _hash([indexes.names, indexes.mapping, documents])


def _sizes(fields: Sequence[Mapping[str, Any]]) -> list[int]:
    """The lengths of vectors that some definitions of a field name; not all of them do."""
    return [each[key] for each in fields for key in _SIZES if isinstance(each.get(key), int)]


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
    return [path[:at] for at, each in enumerate(path) if each == "."]


def _joined(names: Sequence[str]) -> str:
    shown = sorted(names)
    return ", ".join(shown[:20]) + (", ..." if len(shown) > 20 else "") or "none"
