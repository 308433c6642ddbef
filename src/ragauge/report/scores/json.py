"""The scores document as JSON: what `ragauge gate` reads again."""

from __future__ import annotations

import msgspec

from ragauge.model.report import Report, View
from ragauge.model.scores_document import to_document


def _text(view: View) -> str:
    document = to_document(view.scores, view.verdict, full=view.full)
    return msgspec.json.format(msgspec.json.encode(document), indent=2).decode() + "\n"


REPORT = Report(
    name="json",
    title="the scores document, with a versioned schema",
    content=_text,
    suffixes=(".json",),
    public=True,
)
