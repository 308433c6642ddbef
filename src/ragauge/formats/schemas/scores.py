"""The schema of the scores document, from the struct that it is read into."""

from __future__ import annotations

from ragauge.formats.schemas.descriptions import SCORES_FIELDS
from ragauge.formats.schemas.from_structs import VERDICT, WHOLE, described, document, of_struct
from ragauge.formats.schemas.parts import Schema
from ragauge.model.scores import SCHEMA
from ragauge.model.scores_document import LAYOUT

_COUNTED = ("missing", "duplicates", "unknown", "errored", "skipped")
"""Counts that stand at the top once more, for readers of the document."""


def schema() -> Schema:
    """The schema of what `score` writes as JSON, and `gate` reads again."""
    body = of_struct(LAYOUT)
    body["properties"] |= {
        "schema": {"const": SCHEMA},
        **dict.fromkeys(_COUNTED, WHOLE),
        "verdict": VERDICT,
    }
    version = SCHEMA.partition("/")[2]
    return document(
        f"scores:{version}",
        "ragauge scores document",
        "What `ragauge score --full -o FILE.json` writes and `ragauge gate` reads again. The "
        "profile ship writes the keys of its source in front of these.",
        described(body, SCORES_FIELDS),
    )
