"""A comparison as Parquet: the columns of the CSV, unrounded."""

from __future__ import annotations

from ragauge.files.csv_parquet import as_parquet
from ragauge.model.comparison import ComparisonReport, ComparisonView
from ragauge.report.question_columns import compared_columns


def _bytes(view: ComparisonView) -> bytes:
    return as_parquet(compared_columns(view.comparison))


REPORT = ComparisonReport(
    name="parquet",
    title="the kinds, ranks and labels of each question, unrounded",
    content=_bytes,
    suffixes=(".parquet",),
)
