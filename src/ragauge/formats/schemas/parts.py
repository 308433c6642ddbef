"""The pieces that schemas of rows are made of: ids, numbers, offsets, places."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Any

from ragauge.files.fields import ID_NAMES, INT64
from ragauge.model.field_spellings import HIT_DOCS, HIT_SECTIONS
from ragauge.spans import OFFSET_PAIRS, UNITS

Schema = dict[str, Any]

DIALECT = "https://json-schema.org/draft/2020-12/schema"
"""The language of the schemas; it is a name, and nothing is fetched from there."""

WHOLE: Schema = {"type": "integer", "minimum": -INT64, "maximum": INT64 - 1}
OFFSET: Schema = {"type": "integer", "minimum": 0, "maximum": INT64 - 1}
TEXT: Schema = {"type": "string"}
FLAG: Schema = {"type": "boolean"}
NUMBER: Schema = {"type": "number"}
ID: Schema = {**WHOLE, "type": ["string", "integer"]}
"""An id is text; a whole number is read as its digits."""
TEXTS: Schema = {"type": "array", "items": TEXT}
IDS: Schema = {"type": "array", "items": ID}
DISTANCE: Schema = {"type": "number", "minimum": 0, "maximum": 2}

PLACE_DOCS = (*HIT_DOCS, "path")


def optional(schema: Schema) -> Schema:
    """The schema, or null, which counts as absent."""
    kind = schema.get("type")
    if kind is None:
        return {"anyOf": [{"type": "null"}, schema]}
    kinds = [kind] if isinstance(kind, str) else kind
    return {**schema, "type": [*kinds, "null"]}


def there(name: str, schema: Schema | None = None) -> Schema:
    """A field that is there and not null."""
    wanted = {"not": {"type": "null"}} if schema is None else schema
    return {"required": [name], "properties": {name: wanted}}


def any_there(names: Iterable[str], schema: Schema | None = None) -> Schema:
    """At least one of some fields is there and not null."""
    return {"anyOf": [there(name, schema) for name in names]}


def row(fields: Schema, **rules: Any) -> Schema:
    """An object with known fields, which may hold others too."""
    return {"type": "object", "properties": fields, **rules}


def one_or_many(name: str, title: str, description: str, item: str, defs: Schema) -> Schema:
    """The schema of a file: one row (a line of JSON Lines), or an array of rows."""
    reference = {"$ref": f"#/$defs/{item}"}
    return {
        "$schema": DIALECT,
        "$id": f"urn:ragauge:schema:{name}",
        "title": title,
        "description": description,
        "if": {"type": "array"},
        "then": {"items": reference},
        "else": reference,
        "$defs": defs,
    }


def spelled(text: str) -> str:
    """A pattern for a word in any case."""
    pattern = re.sub(r"[].^$*+?()[{}|\\/-]", r"\\\g<0>", text)
    return re.sub("[A-Za-z]", lambda letter: f"[{letter[0].lower()}{letter[0].upper()}]", pattern)


def words_pattern(words: Sequence[str]) -> str:
    """A pattern for any of some words, with blanks around it."""
    return rf"^\s*(?:{'|'.join(map(spelled, words))})\s*$"


_UNIT_WORDS = [f"{unit}{end}" for unit in (*UNITS, "character", "codepoint") for end in ("", "s")]
UNIT: Schema = {"type": "string", "pattern": words_pattern(_UNIT_WORDS)}


def defined(name: str) -> Schema:
    """What a schema says under that name among its definitions."""
    return {"$ref": f"#/$defs/{name}"}


SPAN, PLACED = defined("span"), defined("placed")
HAS_ID, HAS_DOC, HAS_SPAN = defined("has_id"), defined("has_doc"), defined("has_span")
_HAS_PAIR = defined("has_pair")
_OFFSETS: Schema = {name: optional(OFFSET) for pair in OFFSET_PAIRS for name in pair}
_OFFSETS |= {"unit": optional(UNIT)}

DEFINITIONS: Schema = {
    "span": {
        "description": "offsets: [start, end], or an object that names them",
        "if": {"type": "array"},
        "then": {"prefixItems": [OFFSET, OFFSET], "minItems": 2, "maxItems": 2},
        "else": {"type": "object", "properties": _OFFSETS, **_HAS_PAIR},
    },
    "placed": {
        "description": "what names an item and says where it lies",
        "properties": {
            **{name: optional(ID) for name in (*ID_NAMES, *PLACE_DOCS, *HIT_SECTIONS)},
            **_OFFSETS,
            "span": optional(SPAN),
            "offsets": optional(SPAN),
            "source_spans": optional({"type": "array", "items": SPAN}),
        },
    },
    "has_id": any_there(ID_NAMES),
    "has_doc": any_there(PLACE_DOCS),
    "has_pair": {
        "anyOf": [
            *({"allOf": [there(start), there(end)]} for start, end in OFFSET_PAIRS),
            {"allOf": [there("kind", {"const": "page"}), there("page", OFFSET)]},
        ]
    },
    # In the order in which offsets are looked for: an empty list ends the search.
    "has_span": {
        "anyOf": [
            there("span"),
            there("offsets"),
            there("source_spans", {"type": "array", "minItems": 1}),
            {"not": there("source_spans"), **_HAS_PAIR},
        ]
    },
}
"""What several schemas of rows refer to."""
