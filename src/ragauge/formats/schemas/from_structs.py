"""Schemas of documents from the structs that are written and read, with words for every key."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, get_args

import msgspec

from ragauge.formats.schemas.parts import DIALECT, Schema
from ragauge.model.verdict import Status

WHOLE: Schema = {"type": "integer"}
TEXT: Schema = {"type": "string"}
NUMBER: Schema = {"type": "number"}
OR_NUMBER: Schema = {"type": ["number", "null"]}
OR_TEXT: Schema = {"type": ["string", "null"]}
INTERVAL: Schema = {
    "type": ["array", "null"], "prefixItems": [NUMBER, NUMBER], "minItems": 2, "maxItems": 2,
}  # fmt: skip
COUNTS: Schema = {"type": "object", "additionalProperties": WHOLE}
STATUS: Schema = {"enum": list(get_args(Status))}


def record(fields: Schema) -> Schema:
    """An object in which every field is always written."""
    return {"type": "object", "properties": fields, "required": list(fields)}


def mapped(values: Schema) -> Schema:
    """An object whose keys are data."""
    return {"type": "object", "additionalProperties": values}


def listed(items: Schema) -> Schema:
    """A list."""
    return {"type": "array", "items": items}


VERDICT: Schema = record(
    {
        "status": STATUS,
        "exit_code": WHOLE,
        "gates": listed(
            record(
                {
                    "name": TEXT,
                    "metric": TEXT,
                    "slice": OR_TEXT,
                    "drop": {"type": "boolean"},
                    "demand": TEXT,
                    "status": STATUS,
                    "value": OR_NUMBER,
                    "threshold": NUMBER,
                    "n": WHOLE,
                    "margin": OR_NUMBER,
                    "interval": INTERVAL,
                    "detectable": OR_NUMBER,
                    "policy": {"enum": ["point", "interval"]},
                    "origin": TEXT,
                    "reason": OR_TEXT,
                    "waived": OR_TEXT,
                }
            )
        ),
        "blocks": listed(record({"code": TEXT, "message": TEXT})),
    }
)
"""What `verdict_document` writes."""


def of_struct(struct: Any, *, written: bool = False) -> Schema:
    """The schema of a struct without references; `written`: all its fields are always there."""
    (top,), named = msgspec.json.schema_components([struct], ref_template="{name}")
    inlined: Schema = _inlined(top, named, written=written)
    return inlined


def _inlined(node: Any, named: Mapping[str, Any], *, written: bool) -> Any:
    if isinstance(node, list):
        return [_inlined(child, named, written=written) for child in node]
    if not isinstance(node, dict):
        return node
    if "$ref" in node:
        return _inlined(named[node["$ref"]], named, written=written)
    dropped = ("title", "description", "default") if "type" in node or "anyOf" in node else ()
    inlined: Schema = {}
    for key, value in node.items():
        if key == "properties":
            inlined[key] = {
                name: _inlined(child, named, written=written) for name, child in value.items()
            }
        elif key not in dropped:
            inlined[key] = _inlined(value, named, written=written)
    if written and "properties" in inlined:
        inlined["required"] = list(inlined["properties"])
    return inlined


def described(schema: Schema, words: Mapping[str, str], path: str = "") -> Schema:
    """The schema with the words for each key in it.

    `words` has paths: `[]` behind a list, and one word in capitals for keys that are data.
    """
    worded = dict(schema)
    if path in words:
        worded["description"] = words[path]
    if "properties" in worded:
        worded["properties"] = {
            name: described(child, words, f"{path}.{name}".lstrip("."))
            for name, child in worded["properties"].items()
        }
    if isinstance(worded.get("additionalProperties"), dict):
        inner = f"{path}.{_any_key(path, words, worded.get('properties', {}))}".lstrip(".")
        worded["additionalProperties"] = described(worded["additionalProperties"], words, inner)
    if isinstance(worded.get("items"), dict):
        worded["items"] = described(worded["items"], words, f"{path}[]")
    if "anyOf" in worded:
        worded["anyOf"] = [
            described(option, {key: text for key, text in words.items() if key != path}, path)
            for option in worded["anyOf"]
        ]
    return worded


def _any_key(path: str, words: Mapping[str, str], properties: Mapping[str, Any]) -> str:
    """The word that stands for any key below a path."""
    parts = (
        key.removeprefix(f"{path}.").partition(".")[0]
        for key in words
        if key.startswith(f"{path}.")
    )
    return next((part for part in parts if part.isupper() and part not in properties), "KEY")


def document(name: str, title: str, description: str, body: Schema) -> Schema:
    """The whole schema of a document."""
    head = {"$schema": DIALECT, "$id": f"urn:ragauge:schema:{name}", "title": title}
    return {**head, "description": description, **body}
