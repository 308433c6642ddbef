"""The values of each question as CSV: one line a question, one column a metric."""

from __future__ import annotations

from ragauge.files.table_writer import as_csv
from ragauge.model.report import Report
from ragauge.model.scores_document import DECIMALS
from ragauge.report.question_columns import question_columns

REPORT = Report(
    name="csv",
    title="the values of each question",
    syntax="csv",
    content=lambda view: as_csv(
        question_columns(view.scores, view.verdict), decimals=DECIMALS, raw=view.raw_csv
    ),
    suffixes=(".csv",),
    public=True,
)
