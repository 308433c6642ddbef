"""Documents of other libraries become hits, whatever names their fields have.

A document of another library has a text, perhaps an id and a score, and metadata. The fields of a
hit are looked for in the metadata under the names that are in use, or that options give.
"""

from __future__ import annotations

import threading
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

from ragauge.corpus.lookup import Lookup
from ragauge.corpus.manifest import read_corpus
from ragauge.files.fields import FieldError
from ragauge.model.target import TargetError, TargetOptions
from ragauge.spans import UNITS, Span, span_of_text, spans_in
from ragauge.targets.shared.address import TargetSettings

FIELDS: Mapping[str, tuple[str, ...]] = {
    "id": ("chunk_id", "id", "snippet_id", "block_id", "_id"),
    "doc": (
        "doc", "doc_id", "doc_path", "source", "path", "file_path", "file_name", "filename",
        "document_id", "url", "uri",
    ),
    "section": ("section", "section_id"),
    "type": ("type",),
    "text": ("text", "page_content", "content", "document", "chunk", "passage", "chunk_text"),
    "score": ("score", "relevance_score", "similarity", "similarity_score", "_score"),
    "start": ("start", "start_byte"),
    "end": ("end", "end_byte"),
}  # fmt: skip
"""The names under which the fields of a hit are looked for, the first that is there wins."""

FIELD_NAMES = (*FIELDS, "unit", "strip")
"""The settings of every adapter: names of fields, the unit of offsets, a prefix of paths."""

_PASSED_ON = ("doc_hash", "text_hash", "chunker_version", "policy_hash")
_CHARACTERS = (("start_char", "end_char"), ("start_char_idx", "end_char_idx"))
_START_INDEX = "start_index"
_PLACES = ("offsets", "span", "source_spans", "unit", "line_start", "line_end")
_INNER = ("metadata", "cmetadata", "metadata_", "meta", "payload", "_source", "node", "document")
"""Where the fields of a document stand one level deeper: in LangChain's tables, in LlamaIndex's,
and in what services answer with."""


class HitMaker:
    """Makes hits of documents, with the places of a corpus where one is named."""

    def __init__(self, settings: TargetSettings, options: TargetOptions) -> None:
        self.names = {
            field: (own,) if (own := settings.text(field)) is not None else names
            for field, names in FIELDS.items()
        }
        self.chosen = {field for field in FIELDS if settings.text(field) is not None}
        self.unit = settings.one_of("unit", UNITS) or "byte"
        self.strip = settings.text("strip", "") or ""
        self.lookup = None if options.corpus is None else Lookup(read_corpus(options.corpus))
        self.lock = threading.Lock()  # a lookup is not made for threads

    def wanted(self, provided: Collection[str] = ()) -> tuple[str, ...]:
        """The names of what hits are made of, for a database that can leave the rest where it is.

        What is `provided` beside the metadata is wanted from there only where an option names it.
        """
        field_names = [
            name
            for field, names in self.names.items()
            if field in self.chosen or field not in provided
            for name in names
        ]
        pairs = [name for pair in _CHARACTERS for name in pair]
        return tuple(dict.fromkeys((*field_names, *_PASSED_ON, *pairs, _START_INDEX, *_PLACES)))

    def hit(
        self,
        metadata: Mapping[str, Any],
        *,
        text: str | None = None,
        name: object = None,
        score: float | None = None,
        doc: object = None,
        span: Span | None = None,
    ) -> dict[str, Any]:
        """Make a hit of a document: what is given beside the metadata is what the library says.

        A name that an option gives must be there; it comes before what the library says.
        """
        text = text if text is not None else _text(self._find(metadata, "text"))
        row: dict[str, Any] = {
            "id": self._chosen(metadata, "id", name),
            "doc": self._chosen(metadata, "doc", doc),
            "section": self._find(metadata, "section"),
            "type": _text(self._find(metadata, "type")),
            "score": score if score is not None else _number(self._find(metadata, "score")),
            "text": text,
        }
        row |= {key: metadata[key] for key in _PASSED_ON if metadata.get(key) is not None}
        if isinstance(row["doc"], str):
            row["doc"] = row["doc"].removeprefix(self.strip)
            row["path"] = self._other_name(metadata, row["doc"])
        spans = self._spans(metadata, text) or (() if span is None else (span,))
        self._place(row, spans)
        if row["id"] is None and (row["doc"] is None or not spans) and not (text or "").strip():
            listed = ", ".join(sorted(metadata)) or "none"
            raise TargetError(
                "a document has neither an id nor a place; its fields are "
                f"{listed}: name one with --option id=FIELD"
            )
        return {field: value for field, value in row.items() if value is not None}

    def _chosen(self, metadata: Mapping[str, Any], field: str, value: object) -> Any:
        """What an option names, else what the library says, else what is found."""
        if field in self.chosen or value is None:
            return _id(self._find(metadata, field))
        return _id(value)

    def _find(self, metadata: Mapping[str, Any], field: str) -> Any:
        for name in self.names[field]:
            value = _at(metadata, name)
            if value is not None:
                return value
        if field in self.chosen:
            listed = ", ".join(sorted(metadata)) or "none"
            raise TargetError(
                f"a document has no field `{self.names[field][0]}`; its fields are {listed}"
            )
        return None

    def _other_name(self, metadata: Mapping[str, Any], doc: str) -> str | None:
        """A second name of the document: one is often random, and the other its path."""
        if "doc" in self.chosen:
            return None
        names = (_at(metadata, name) for name in self.names["doc"])
        return next((name for name in names if isinstance(name, str) and name != doc), None)

    def _spans(self, metadata: Mapping[str, Any], text: str | None) -> tuple[Span, ...]:
        """Where a document lies, under any of the spellings of an offset."""
        start, end = self._find(metadata, "start"), self._find(metadata, "end")
        try:
            if start is not None and end is not None:
                unit = str(metadata.get("unit") or self.unit)
                return spans_in({"start": start, "end": end, "unit": unit}, "metadata")
            if start is not None and text:
                unit = str(metadata.get("unit") or self.unit)
                return span_of_text({"start": start, "unit": unit}, "metadata", text)
            for first, last in _CHARACTERS:
                if metadata.get(first) is not None and metadata.get(last) is not None:
                    return (Span(int(metadata[first]), int(metadata[last]), "char"),)
            start_index = metadata.get(_START_INDEX)
            if start_index is not None and text:  # what LangChain's splitters say, in characters
                return (Span(int(start_index), int(start_index) + len(text), "char"),)
            place_fields = {name: value for name, value in metadata.items() if name in _PLACES}
            return spans_in(place_fields, "metadata", unit=self.unit)
        except (FieldError, TypeError, ValueError) as error:
            raise TargetError(f"the place of a document cannot be read: {error}") from error

    def _place(self, row: dict[str, Any], spans: Sequence[Span]) -> None:
        """Write down where a hit lies; in bytes, with section and type, where a corpus is known."""
        doc = row["doc"]
        if self.lookup is not None and doc in self.lookup.documents:
            with self.lock:
                spans = self._in_corpus(self.lookup, row, spans)
        if spans:
            pairs = [[span.start, span.end] for span in spans]
            row["unit"] = None if spans[0].unit == "byte" else spans[0].unit
            row |= {"offsets": pairs[0]} if len(pairs) == 1 else {"source_spans": pairs}

    def _in_corpus(
        self, lookup: Lookup, row: dict[str, Any], spans: Sequence[Span]
    ) -> Sequence[Span]:
        doc = row["doc"]
        try:
            spots = [lookup.spot(doc, *lookup.in_bytes(doc, span)) for span in spans]
        except FieldError:
            return spans  # of another version: its text may still be found
        row.setdefault("doc_hash", lookup.documents[doc].hash)
        if spots:
            first = spots[0]
            row["section"] = row["section"] or first.section
            row["type"] = row["type"] or lookup.type_at(doc, first.start, first.end)
        return [Span(spot.start, spot.end) for spot in spots]


def flat(payload: Mapping[str, Any]) -> dict[str, Any]:
    """A payload whose metadata stand one level deeper, on one level; what is outside wins."""
    fields: dict[str, Any] = {}
    for name in _INNER:
        inner = payload.get(name)
        if isinstance(inner, Mapping):
            fields = {**flat(inner), **fields}
    outer = {name: value for name, value in payload.items() if value is not None}
    return {**fields, **outer} if fields else dict(payload)


def by_score(hits: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """Hits by falling score, then by id: a database may order ties as it likes."""
    return sorted(hits, key=lambda hit: (-hit["score"], str(hit.get("id", ""))))


def failure(error: BaseException) -> TargetError:
    """What a library raised, as the error of one question."""
    message = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
    return TargetError(message, transient=isinstance(error, OSError))


def _at(metadata: Mapping[str, Any], name: str) -> Any:
    """A value by its name, or by the names on the way to it."""
    value = metadata.get(name)
    if value is not None or "." not in name:
        return value
    for part in name.split("."):
        value = metadata.get(part) if isinstance(metadata, Mapping) else None
        metadata = value if isinstance(value, Mapping) else {}
    return value


def _id(value: Any) -> Any:
    return value if value is None or isinstance(value, str | int) else str(value)


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) else None


def _number(value: Any) -> float | None:
    return float(value) if isinstance(value, int | float) else None
