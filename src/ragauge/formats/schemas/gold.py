"""The schema of gold sets: every spelling of every field, with the checks of `formats.gold`."""

from __future__ import annotations

from ragauge.formats.gold import DRAFT, MIGRATED_TO
from ragauge.formats.schemas import parts
from ragauge.formats.schemas.descriptions import GOLD_FIELDS
from ragauge.formats.schemas.parts import Schema, any_there, optional, row, there
from ragauge.model.field_spellings import GOLD_SPELLINGS, HIT_DOCS

_MEMBER: Schema = parts.defined("evidence")
_PLACE: Schema = parts.defined("place")
_CLAIMS: Schema = {"type": ["string", "array"], "items": parts.TEXT}

_ANSWERS: Schema = {"type": ["string", "number"]}
_ANSWER: Schema = {
    "if": {"type": "object"},
    "then": there("text", _ANSWERS),
    "else": _ANSWERS,
}
_TEXTS: Schema = {
    "properties": {"text": {"type": ["string", "number", "array", "null"], "items": _ANSWER}}
}
"""Reference answers as SQuAD has them: an object with their texts, or a list of such objects."""

_TYPES: dict[str, Schema] = {
    **dict.fromkeys(("qid", "anchor_section", "decoy_section"), parts.ID),
    **dict.fromkeys(("question", "type", "group", "difficulty", "lang"), parts.TEXT),
    **dict.fromkeys(("paraphrases", "claims", "must_contain", "forbidden"), parts.TEXTS),
    **dict.fromkeys(("constraints", "tags"), parts.TEXTS),
    "answerable": parts.FLAG,
    "references": {"type": ["string", "number", "array", "object"], **_TEXTS, "items": _ANSWER},
    "relevant": {"type": "array", "items": _MEMBER},
    "relevant_docs": {**parts.WHOLE, "type": ["string", "integer", "array"], "items": parts.ID},
    "places": {"type": "array", "items": _PLACE},
    "groups": {"type": "array", "items": {"type": "array", "items": _MEMBER, "minItems": 1}},
    "grades": {"type": "object", "additionalProperties": parts.NUMBER},
    "negatives": {"type": "array", "items": parts.defined("negative")},
    "turn": parts.WHOLE,
    "unit": parts.UNIT,
}
"""What a field may hold, by its own name; null is absence everywhere."""


_OWN_TYPES: dict[str, Schema] = {
    "gold_claim": _CLAIMS,
    "expect": {"enum": ["answer", "refuse", "unlabelled"]},
}
"""What a name may hold where it is not what the other names of its field may."""


def schema() -> Schema:
    """The schema of a gold item, or of an array of them."""
    fields: Schema = {}
    for field, names in GOLD_SPELLINGS.items():
        for name in names:
            kind = _OWN_TYPES.get(name, _TYPES[field])
            other = "" if name == names[0] else f"the same as `{names[0]}`: "
            fields[name] = {**optional(kind), "description": f"{other}{GOLD_FIELDS[field]}"}
    fields[DRAFT] = {
        "enum": [False, None],
        "description": "true marks a draft, which nothing reads: confirm it first",
    }
    fields[MIGRATED_TO] = {
        **optional(parts.TEXT),
        "description": "the revision of the corpus that `gold migrate` moved the item to",
    }
    named = {"type": ["string", "integer"], "minLength": 1}
    unquoted = {"properties": {"quote": {"type": "null"}}}
    quote = {"quote": optional(parts.TEXT), "text": optional(parts.TEXT)}
    in_document = any_there(HIT_DOCS)
    words, unplaced = {"type": "string", "pattern": r"\S"}, {"not": parts.HAS_SPAN}
    return parts.one_or_many(
        "gold:1",
        "ragauge gold set",
        "One gold item, as on a line of a gold file, or an array of them. What a schema cannot say "
        "is left to `ragauge validate`: that start lies before end, that the spellings of a field "
        "agree, that ids are unique, and that offsets have one unit. Evidence is described as it "
        "is scored: a quote of a document without offsets, `{doc, quote}`, does not fit until "
        "`ragauge gold pin` has found its bytes in a corpus; a quote alone, `{quote}`, does.",
        "item",
        {
            "item": row(fields, anyOf=[there(name, named) for name in GOLD_SPELLINGS["qid"]]),
            "evidence": {
                "description": "an id, a place in a document, or a quote",
                "if": {"type": "object"},
                "then": {
                    **parts.PLACED,
                    "properties": quote,
                    "anyOf": [
                        {"allOf": [parts.HAS_ID, {"not": parts.HAS_SPAN}, unquoted]},
                        {"allOf": [in_document, parts.HAS_SPAN]},
                        {"allOf": [there("quote", words), {"not": in_document}, unplaced]},
                    ],
                },
                "else": parts.ID,
            },
            "negative": {
                "description": "an id, a place in a document, or a quote",
                "if": {"type": "object", **there("quote", parts.TEXT)},
                "then": {**parts.PLACED, "properties": quote},
                "else": _MEMBER,
            },
            "place": {
                **row(quote, allOf=[in_document, parts.HAS_SPAN]),
                "description": "a place in a document",
                **parts.PLACED,
            },
            **parts.DEFINITIONS,
        },
    )
