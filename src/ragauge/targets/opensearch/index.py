"""What a search server says of an index: its name, its UUID and its fields."""

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

    def _has_words(self, name: str) -> bool:
        """Whether `match` may find something in a field: in no vectors, in nothing nested."""
        path = [name, *_parents(name)]
        return self.owner(name) is None and not any(self._is(part, "nested") for part in path)

    def _listed(self) -> str:
        return _joined([name for name in self.fields if self._has_words(name)])


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
