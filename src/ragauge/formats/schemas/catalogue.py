"""The schemas by name, and how they are written down."""

from __future__ import annotations

import json
from collections.abc import Callable

from ragauge.formats.schemas import documents, gold, trace
from ragauge.formats.schemas.parts import Schema

SCHEMAS: dict[str, Callable[[], Schema]] = {
    "gold": gold.schema,
    "trace": trace.schema,
    "scores": documents.scores_schema,
    "compare": documents.compare_schema,
}


def schema_text(name: str) -> str:
    """A schema as JSON, the same bytes every time."""
    return json.dumps(SCHEMAS[name](), indent=2, ensure_ascii=False) + "\n"
