"""The values of each question as CSV: one line a question, one column a metric."""

from __future__ import annotations

from ragauge.document import DECIMALS
from ragauge.model.report import Report, View
from ragauge.sheetfiles import as_csv
from ragauge.sheets import question_columns


def _text(view: View) -> str:
    return as_csv(question_columns(view.scores), decimals=DECIMALS)


REPORT = Report(
    name="csv", title="the values of each question", content=_text, suffixes=(".csv",), public=True
)
