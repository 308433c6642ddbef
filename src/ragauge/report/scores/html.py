"""The report as one HTML file: verdict, metrics, charts, and every question with its hits."""

from __future__ import annotations

from ragauge.model.report import Report, View


def _text(view: View) -> str:
    # Jinja2, numpy and all that makes a page are imported when one is made: every command that
    # knows the names of reports imports this module.
    from ragauge.report.html.run_page import run_page

    return run_page(view)


REPORT = Report(
    name="html",
    title="one page for the browser, with every question",
    syntax="xml",
    content=_text,
    suffixes=(".html",),
    public=True,
    detailed=True,
)
