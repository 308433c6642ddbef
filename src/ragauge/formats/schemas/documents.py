"""The schemas of what commands write as JSON: scores, and comparisons.

They come from the structs that are written and read, with words for every key.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, get_args

import msgspec

from ragauge.formats.schemas.descriptions import COMPARE_FIELDS, SCORES_FIELDS
from ragauge.formats.schemas.parts import DIALECT, FLAG, NUMBER, TEXT, Schema, optional
from ragauge.metrics.metric import Better
from ragauge.model import comparison, scores
from ragauge.model.labels import LABELS
from ragauge.model.scores_document import LAYOUT
from ragauge.model.verdict import Status
from ragauge.stats.error_rates import Policy

WHOLE: Schema = {"type": "integer"}
OR_NUMBER: Schema = {"type": ["number", "null"]}
OR_TEXT: Schema = {"type": ["string", "null"]}
INTERVAL: Schema = {
    "type": ["array", "null"], "prefixItems": [OR_NUMBER, OR_NUMBER], "minItems": 2, "maxItems": 2,
}  # fmt: skip
COUNTS: Schema = {"type": "object", "additionalProperties": WHOLE}
STATUS: Schema = {"enum": list(get_args(Status))}


def record(**fields: Schema) -> Schema:
    """An object in which every field is always written."""
    return {"type": "object", "properties": fields, "required": list(fields)}


def listed(items: Schema) -> Schema:
    """A list."""
    return {"type": "array", "items": items}


_CHANCES = record(
    fails_unchanged=NUMBER,
    reviews_unchanged=NUMBER,
    worse=OR_NUMBER,
    passes_worse=OR_NUMBER,
    reviews_worse=OR_NUMBER,
    perfect_from={"type": ["integer", "null"]},
)
_GATE = record(
    name=TEXT,
    metric=TEXT,
    slice=OR_TEXT,
    drop=FLAG,
    demand=TEXT,
    status=STATUS,
    value=OR_NUMBER,
    threshold=NUMBER,
    n=WHOLE,
    margin=OR_NUMBER,
    interval=INTERVAL,
    detectable=OR_NUMBER,
    policy={"enum": [*get_args(Policy)]},
    chances={"anyOf": [_CHANCES, {"type": "null"}]},
    origin=TEXT,
    reason=OR_TEXT,
    caution=OR_TEXT,
    waived=OR_TEXT,
    damage=listed(
        record(
            query_id=TEXT,
            value=NUMBER,
            damage=NUMBER,
            share=NUMBER,
            turn={"type": ["integer", "null"]},
            before=OR_NUMBER,
            lost=listed(TEXT),
        )
    ),
)
_GATE["properties"] = {
    **_GATE["properties"],
    "against": {**TEXT, "description": "the baseline of this drop, where there are several"},
}
VERDICT = record(
    status=STATUS,
    exit_code=WHOLE,
    gates=listed(_GATE),
    blocks=listed(record(code=TEXT, message=TEXT)),
)
"""What `verdict_document` writes."""
_AGGREGATE = record(
    value=OR_NUMBER,
    n=WHOLE,
    records=WHOLE,
    interval=INTERVAL,
    version=WHOLE,
    unrounded=OR_NUMBER,
    reason=OR_TEXT,
    band=INTERVAL,
)
_SHARE: Schema = {"type": ["number", "null"], "exclusiveMinimum": 0, "maximum": 1}
_DELTA = record(
    a=OR_NUMBER,
    b=OR_NUMBER,
    delta=OR_NUMBER,
    n=WHOLE,
    interval=INTERVAL,
    p=_SHARE,
    p_holm=_SHARE,
    changed=FLAG,
    moved=FLAG,
    test={"enum": ["mcnemar", "permutation", None]},
    detectable=OR_NUMBER,
    gated=FLAG,
    better={"enum": [*get_args(Better)]},
    reason=OR_TEXT,
    band=INTERVAL,
    band_interval=INTERVAL,
    a_band=INTERVAL,
    b_band=INTERVAL,
    open=WHOLE,
    estimate=optional(record(delta=NUMBER, interval=INTERVAL, pins=WHOLE, by=TEXT)),
    unrounded=record(a=OR_NUMBER, b=OR_NUMBER, delta=OR_NUMBER, interval=INTERVAL),
)
_DELTA["properties"]["guess"] = record(a=NUMBER, b=NUMBER, delta=NUMBER)  # where it is asked for
_SLICE_DELTA = record(a=NUMBER, b=NUMBER, delta=NUMBER, n=WHOLE, interval=INTERVAL)
_CHECK_FIELDS = {
    "questions": WHOLE,
    "kinds": COUNTS,
    "doc_kinds": COUNTS,
    "allowed": WHOLE,
    "explained": WHOLE,
    "open": WHOLE,
    "repeated": WHOLE,
    "unstable": WHOLE,
    "p": _SHARE,
    "by_document": FLAG,
    "failed": FLAG,
    "status": {"enum": ["pass", "fail", "open"]},
}
_CHECK = record(**_CHECK_FIELDS)
_SIZES = (
    "least_evidence",
    "gold_bytes",
    "a_hit_bytes",
    "b_hit_bytes",
    "a_top_bytes",
    "b_top_bytes",
)
_KINDS = record(**dict.fromkeys(comparison.KINDS, WHOLE))
_DOC_KINDS = record(**dict.fromkeys(comparison.DOC_KINDS, WHOLE))


def _keyed(value: Schema) -> Schema:
    return {"type": "object", "additionalProperties": value}


def compare_schema() -> Schema:
    """The schema of what `report/comparison/json.py` writes."""
    run = of_struct(comparison.ComparedRun, written=True)
    aggregate = {"type": "object", "additionalProperties": _AGGREGATE}
    deltas = record(
        chunker_version_match={"enum": [*get_args(comparison.Match), None]},
        rungs=record(**dict.fromkeys(comparison.MATCH_LEVELS, WHOLE)),
        undecided=record(regression_open=WHOLE, kind_open=WHOLE, unplaced=WHOLE, wide=WHOLE),
        ids=optional(of_struct(comparison.IdFacts, written=True)),
        sizes=optional(record(**dict.fromkeys(_SIZES, WHOLE))),
    )
    body = record(
        schema={"const": comparison.SCHEMA},
        run_a=TEXT,
        run_b=TEXT,
        runs=record(a=run, b=run),
        aggregate_a=aggregate,
        aggregate_b=aggregate,
        deltas={**deltas, "additionalProperties": _DELTA},
        slices=_keyed(_keyed(record(n=WHOLE, deltas=_keyed(_SLICE_DELTA)))),
        kinds=record(retrieval=_KINDS, answer=_KINDS, document=_DOC_KINDS),
        document_level=optional(_keyed(_DELTA)),
        k=WHOLE,
        left_out=COUNTS,
        counted=WHOLE,
        causes=listed(of_struct(comparison.Cause, written=True)),
        notes=listed(TEXT),
        verdict=optional(VERDICT),
        fail_on={"type": "object", "additionalProperties": _CHECK},
        fail_on_checks=listed(record(given=TEXT, kind=TEXT, **_CHECK_FIELDS)),
        fail_on_reason=OR_TEXT,
        exit_code=WHOLE,
        per_query=listed(of_struct(comparison.QueryComparison, written=True)),
    )
    return document(
        f"compare:{comparison.SCHEMA.partition('/')[2]}",
        "ragauge comparison",
        "What `ragauge compare --format json` prints and `-o FILE.json` writes.",
        described(body, COMPARE_FIELDS),
    )


_COUNTED = ("missing", "duplicates", "unknown", "errored", "skipped")
"""Counts that stand at the top once more, for readers of the document."""


def scores_schema() -> Schema:
    """The schema of what `score` writes as JSON, and `gate` reads again."""
    body = of_struct(LAYOUT)
    counted = dict.fromkeys(_COUNTED, WHOLE)
    body["properties"] |= {"schema": {"const": scores.SCHEMA}, **counted, "verdict": VERDICT}
    question = body["properties"]["questions"]["items"]["properties"]
    question["label"] = {"enum": list(LABELS)}
    question["labels"]["propertyNames"] = {"enum": list(LABELS)}
    return document(
        f"scores:{scores.SCHEMA.partition('/')[2]}",
        "ragauge scores document",
        "What `ragauge score --full -o FILE.json` writes and `ragauge gate` reads again. The "
        "profile ship writes the keys of its source in front of these.",
        described(body, SCORES_FIELDS),
    )


def of_struct(struct: Any, *, written: bool = False) -> Schema:
    """The schema of a struct without references; `written`: all its fields are always there."""
    (top,), named = msgspec.json.schema_components([struct], ref_template="{name}")

    def inlined(node: Any) -> Any:
        if isinstance(node, list):
            return [inlined(child) for child in node]
        if not isinstance(node, dict):
            return node
        if "$ref" in node:
            return inlined(named[node["$ref"]])
        dropped = ("title", "description", "default") if "type" in node or "anyOf" in node else ()
        schema = {key: inlined(value) for key, value in node.items() if key not in dropped}
        if "properties" in node:  # whose names are not those of a schema
            schema["properties"] = {
                key: inlined(value) for key, value in node["properties"].items()
            }
            if written:
                schema["required"] = list(schema["properties"])
        return schema

    whole: Schema = inlined(top)
    return whole


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
