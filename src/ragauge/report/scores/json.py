"""The scores document as JSON: what `ragauge gate` reads again."""

from __future__ import annotations

from ragauge.model.report import Report
from ragauge.model.scores_document import json_text, to_document

REPORT = Report(
    name="json",
    title="the scores document, with a versioned schema",
    syntax="json",
    content=lambda view: json_text(to_document(view.scores, view.verdict, full=view.full)),
    suffixes=(".json",),
    public=True,
)
