"""A comparison as CSV: one line a question, with its kinds, ranks and labels."""

from __future__ import annotations

from ragauge.files.table_writer import as_csv
from ragauge.model.comparison import ComparisonReport
from ragauge.model.scores_document import DECIMALS
from ragauge.report.question_columns import compared_columns

REPORT = ComparisonReport(
    name="csv",
    title="the kinds, ranks and labels of each question",
    syntax="csv",
    content=lambda view: as_csv(
        compared_columns(view.comparison), decimals=DECIMALS, raw=view.raw_csv
    ),
    suffixes=(".csv",),
)
