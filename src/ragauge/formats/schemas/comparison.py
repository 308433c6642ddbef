"""The schema of comparisons as JSON, as `report/comparison/json.py` writes them."""

from __future__ import annotations

from typing import get_args

from ragauge.formats.schemas.descriptions import COMPARE_FIELDS
from ragauge.formats.schemas.from_structs import (
    COUNTS,
    INTERVAL,
    OR_NUMBER,
    OR_TEXT,
    TEXT,
    VERDICT,
    WHOLE,
    described,
    document,
    listed,
    mapped,
    of_struct,
    record,
)
from ragauge.formats.schemas.parts import Schema, optional
from ragauge.metrics.metric import Better
from ragauge.model.comparison import (
    KINDS,
    MATCH_LEVELS,
    SCHEMA,
    Cause,
    ComparedRun,
    Match,
    QueryComparison,
)

_AGGREGATE = mapped(
    record(
        {
            "value": OR_NUMBER,
            "n": WHOLE,
            "records": WHOLE,
            "interval": INTERVAL,
            "version": WHOLE,
            "unrounded": OR_NUMBER,
            "reason": OR_TEXT,
        }
    )
)
_SHARE: Schema = {"type": ["number", "null"], "exclusiveMinimum": 0, "maximum": 1}
_DELTA = record(
    {
        "a": OR_NUMBER,
        "b": OR_NUMBER,
        "delta": OR_NUMBER,
        "n": WHOLE,
        "interval": INTERVAL,
        "p": _SHARE,
        "p_holm": _SHARE,
        "test": {"enum": ["mcnemar", "permutation", None]},
        "detectable": OR_NUMBER,
        "gated": {"type": "boolean"},
        "better": {"enum": [*get_args(Better)]},
        "reason": OR_TEXT,
        "unrounded": record(
            {"a": OR_NUMBER, "b": OR_NUMBER, "delta": OR_NUMBER, "interval": INTERVAL}
        ),
    }
)
_KINDS = record(dict.fromkeys(KINDS, WHOLE))


def schema() -> Schema:
    """The schema of what `compare --format json` prints."""
    run = of_struct(ComparedRun, written=True)
    first = {
        "chunker_version_match": {"enum": [*get_args(Match), None]},
        "rungs": record(dict.fromkeys(MATCH_LEVELS, WHOLE)),
    }
    body = record(
        {
            "schema": {"const": SCHEMA},
            "run_a": TEXT,
            "run_b": TEXT,
            "runs": record({"a": run, "b": run}),
            "aggregate_a": _AGGREGATE,
            "aggregate_b": _AGGREGATE,
            "deltas": {**record(first), "additionalProperties": _DELTA},
            "kinds": record({"retrieval": _KINDS, "answer": _KINDS}),
            "left_out": COUNTS,
            "counted": WHOLE,
            "causes": listed(of_struct(Cause, written=True)),
            "notes": listed(TEXT),
            "verdict": optional(VERDICT),
            "fail_on": COUNTS,
            "exit_code": WHOLE,
            "per_query": listed(of_struct(QueryComparison, written=True)),
        }
    )
    version = SCHEMA.partition("/")[2]
    return document(
        f"compare:{version}",
        "ragauge comparison",
        "What `ragauge compare --format json` prints and `-o FILE.json` writes.",
        described(body, COMPARE_FIELDS),
    )
