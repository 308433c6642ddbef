"""The scores document as JSON: what `ragauge gate` reads again."""

from __future__ import annotations

from ragauge.model.report import Report, View
from ragauge.model.scores_document import json_text, to_document


def _text(view: View) -> str:
    document = to_document(view.scores, view.verdict, full=view.full, raw_slices=True)
    return json_text(document)


REPORT = Report(
    name="json",
    title="the scores document, with a versioned schema",
    syntax="json",
    content=_text,
    suffixes=(".json",),
    public=True,
)
