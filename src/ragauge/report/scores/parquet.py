"""The values of each question as Parquet: the columns of the CSV, unrounded."""

from __future__ import annotations

from ragauge.files.table_writer import as_parquet
from ragauge.model.report import Report
from ragauge.report.question_columns import question_columns

REPORT = Report(
    name="parquet",
    title="the values of each question, unrounded",
    content=lambda view: as_parquet(question_columns(view.scores, view.verdict)),
    suffixes=(".parquet",),
    public=True,
)
