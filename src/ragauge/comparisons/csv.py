"""A comparison as CSV: one line a question, with its kinds, ranks and labels."""

from __future__ import annotations

from ragauge.document import DECIMALS
from ragauge.model.comparison import ComparisonReport, ComparisonView
from ragauge.sheetfiles import as_csv
from ragauge.sheets import compared_columns


def _text(view: ComparisonView) -> str:
    return as_csv(compared_columns(view.comparison), decimals=DECIMALS)


REPORT = ComparisonReport(
    name="csv", title="the kinds, ranks and labels of each question", content=_text,
    suffixes=(".csv",),
)  # fmt: skip
