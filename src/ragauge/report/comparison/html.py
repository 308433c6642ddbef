"""The comparison as one HTML file: what changed, and every question with both ranked lists."""

from __future__ import annotations

from ragauge.model.comparison import ComparisonReport, ComparisonView


def _text(view: ComparisonView) -> str:
    # Imported when a page is made, as for the page of a run.
    from ragauge.report.html.comparison_page import comparison_page

    return comparison_page(view)


REPORT = ComparisonReport(
    name="html",
    title="one page for the browser, with both ranked lists of every question",
    syntax="xml",
    content=_text,
    suffixes=(".html",),
    detailed=True,
)
