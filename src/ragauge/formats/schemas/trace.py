"""The schema of traces: every spelling of every field, with the checks of `formats.hits`."""

from __future__ import annotations

from collections.abc import Mapping

from ragauge.formats.hits import MOST_COST, MOST_MS, MOST_TOKENS
from ragauge.formats.schemas import parts
from ragauge.formats.schemas.descriptions import TRACE_FIELDS
from ragauge.formats.schemas.parts import Schema, any_there, optional, row, there
from ragauge.model import greek_names
from ragauge.model.field_spellings import (
    ANSWER_SPELLINGS,
    FIRST_HITS,
    HIT_SPELLINGS,
    INDEX_NAMES,
    PERF_SPELLINGS,
    TRACE_SPELLINGS,
    USAGE_SPELLINGS,
)

_MILLISECONDS: Schema = {"type": ["number", "object"], "minimum": 0, "maximum": MOST_MS}
_DELTA: Schema = {**parts.DISTANCE, "items": optional(parts.DISTANCE)}
_STATE: Schema = {"pattern": parts.words_pattern(greek_names.STATE_FORMS)}
"""Text must be a state. What is no text is not looked at."""
_CITATIONS: Schema = {"items": parts.defined("citation")}
"""A list of citations; anything else there is no citation."""


def _amount(most: float) -> Schema:
    number: Schema = {"minimum": 0, "maximum": most}
    names = [name for names in USAGE_SPELLINGS.values() for name in names]
    properties = {name: optional({"type": "number", **number}) for name in names}
    return {"type": ["number", "object"], **number, "properties": properties}


_TIMES = {name: optional(_MILLISECONDS) for names in PERF_SPELLINGS.values() for name in names}
_TYPES: dict[str, Schema] = {
    **dict.fromkeys(("qid", "seed"), parts.ID),
    **dict.fromkeys(("question", "claim", "text"), parts.TEXT),
    **dict.fromkeys(("paraphrase", "turn"), parts.WHOLE),
    **dict.fromkeys(("refused", "grounded", "oversampled"), parts.FLAG),
    "hits": {"type": "array", "items": parts.defined("hit")},
    "answer": parts.defined("answer"),
    "citations": _CITATIONS,
    "constraints_echo": parts.TEXTS,
    "unknown_ids": parts.TEXTS,
    "error": {},
    "delta_s": parts.defined("delta"),
    "perf": {"properties": _TIMES},
    "total_ms": _MILLISECONDS,
    "tokens": _amount(MOST_TOKENS),
    "cost": _amount(MOST_COST),
}
"""What a field may hold, by its own name; null is absence everywhere."""


def undamaged(names: tuple[str, ...]) -> list[str]:
    """Names as they are meant, without the forms that a wrong decoding gave them."""
    return [name for name in names if all(char.isascii() or char in "Δ∆λ" for char in name)]


def schema() -> Schema:
    """The schema of a trace, or of an array of them."""
    fields: Schema = {}
    for field, names in TRACE_SPELLINGS.items():
        for name in undamaged(names):
            kind = _state(name) if field == "lambda_state" else _TYPES[field]
            if name == "answer_json":
                kind = {"allOf": [kind, {"type": "object"}]}
            other = "" if name == names[0] else f"the same as `{names[0]}`: "
            fields[name] = {**optional(kind), "description": f"{other}{TRACE_FIELDS[field]}"}
    fields["retrieval"] = {
        "type": ["array", "object", "null"],
        "items": parts.defined("hit"),
        "properties": {name: fields[name] for name in TRACE_SPELLINGS["hits"]},
        "description": "the hits, or an object that holds them",
    }
    fields[FIRST_HITS] = {
        **optional(_TYPES["hits"]),
        "description": "the hits that a reranker was given, where `hits` is the list that it gave",
    }
    for name in INDEX_NAMES:
        fields[name] = {"description": "what identifies the index that the trace came from"}
    return parts.one_or_many(
        "trace:1",
        "ragauge traces",
        "One trace, as on a line of a trace file, or an array of them. What a schema cannot say is "
        "left to `ragauge validate`: that start lies before end, that the spellings of a field "
        "agree, and that a list of ΔS has an entry for each hit.",
        "trace",
        {
            "trace": row(fields),
            "hit": _hit(),
            "citation": _citation(),
            "answer": _answer(),
            "measured": {"properties": _deltas()},
            "delta": {**_DELTA, "type": ["number", "array", "null"]},
            "state": _STATE,
            **parts.DEFINITIONS,
        },
    )


def _state(name: str) -> Schema:
    """A name with an underscore can only mean a state; any other may be a weight or a word."""
    return {**parts.defined("state"), "items": parts.defined("state")} if "_" in name else {}


def _deltas() -> Schema:
    return {name: parts.defined("delta") for name in undamaged(TRACE_SPELLINGS["delta_s"])}


_HIT_TYPES: dict[str, Schema] = {
    **dict.fromkeys(
        ("doc_hash", "text_hash", "policy_hash", "chunker_version"), optional(parts.ID)
    ),
    "score": optional(parts.NUMBER),
    **dict.fromkeys(("type", "text", "snippet"), optional(parts.TEXT)),
    "citation": {"if": {"type": "object"}, "then": parts.PLACED},
}
"""What a hit may hold beside its place and ΔS."""
_ANSWER_TYPES: dict[str, Schema] = {
    **dict.fromkeys(("claim", "text"), optional(parts.TEXT)),
    "citations": _CITATIONS,
    **dict.fromkeys(("refused", "grounded"), optional(parts.FLAG)),
    "constraints_echo": optional(parts.TEXTS),
}
_PLACED_AND_MEASURED: Schema = {"allOf": [parts.PLACED, parts.defined("measured")]}


def _spelled(types: Schema, spellings: Mapping[str, tuple[str, ...]]) -> Schema:
    return {name: schema for field, schema in types.items() for name in spellings[field]}


def _hit() -> Schema:
    words = any_there(("text", "snippet"), {"type": "string", "pattern": r"\S"})
    return {
        "description": "an id, or an object with an id, a document or a text",
        "if": {"type": "object"},
        "then": {
            **_PLACED_AND_MEASURED,
            "properties": _spelled(_HIT_TYPES, HIT_SPELLINGS),
            "anyOf": [parts.HAS_ID, parts.HAS_DOC, words],
        },
        "else": parts.ID,
    }


def _citation() -> Schema:
    with_spot = {"anyOf": [parts.HAS_SPAN, there("kind")]}
    place: Schema = {
        **_PLACED_AND_MEASURED,
        "anyOf": [parts.HAS_ID, {"allOf": [parts.HAS_DOC, with_spot]}],
    }
    inner = {
        "if": there("citation", {"type": "string"}),
        "else": {
            "if": there("citation", {"type": "object"}),
            "then": {"properties": {"citation": place}, **parts.defined("measured")},
            "else": place,
        },
    }
    return {
        "description": "an id, or an object with an id or a place",
        "if": {"type": "object"},
        "then": {"if": parts.HAS_ID, "then": place, "else": inner},
        "else": parts.ID,
    }


def _answer() -> Schema:
    states = {name: _state(name) for name in undamaged(TRACE_SPELLINGS["lambda_state"])}
    return {
        "description": "the answer: text, or an object",
        "type": ["string", "object"],
        "properties": {**_spelled(_ANSWER_TYPES, ANSWER_SPELLINGS), **states},
        **parts.defined("measured"),
    }
