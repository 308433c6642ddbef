"""A comparison as Parquet: the columns of the CSV, unrounded."""

from __future__ import annotations

from ragauge.files.table_writer import as_parquet
from ragauge.model.comparison import ComparisonReport
from ragauge.report.question_columns import compared_columns

REPORT = ComparisonReport(
    name="parquet",
    title="the kinds, ranks and labels of each question, unrounded",
    content=lambda view: as_parquet(compared_columns(view.comparison)),
    suffixes=(".parquet",),
)
