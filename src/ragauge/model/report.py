"""Reports: a name, a file suffix, and a function from a view of the scores to what is written."""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, Literal, TypeVar

from msgspec import Struct

from ragauge.model.drilldown import Drilldowns
from ragauge.model.profile import Profile
from ragauge.model.scores import Scores
from ragauge.model.verdict import Verdict

Syntax = Literal["text", "json", "xml", "csv", "commands"]
"""Who reads what a report makes: people, programs, or a CI service that obeys it."""


class View(Struct, frozen=True, kw_only=True):
    """What a report shows, and for whom: `full` asks for all, width and colour are the screen's.

    `details` are the questions one by one, where a report asked for them. `raw_csv` leaves cells of
    CSV as they are that a spreadsheet would compute.
    """

    scores: Scores
    verdict: Verdict
    profile: Profile
    full: bool = False
    width: int = 80
    color: bool = False
    details: Drilldowns | None = None
    raw_csv: bool = False


ViewT = TypeVar("ViewT")


class ReportFormat(Struct, Generic[ViewT], frozen=True, kw_only=True):
    """A way to write a view down; `content` is a pure function, and its text ends with a newline.

    Bytes are for files only; `detailed` says that it shows questions one by one. `syntax` says how
    its text is made safe for a terminal.
    """

    name: str
    title: str
    content: Callable[[ViewT], str | bytes]
    suffixes: tuple[str, ...] = ()
    detailed: bool = False
    syntax: Syntax = "text"

    def text(self, view: ViewT) -> str:
        """What a report of text says."""
        content = self.content(view)
        assert isinstance(content, str), self.name
        return content


class Report(ReportFormat[View], frozen=True, kw_only=True):
    """A way to write scores down; `needs` are metrics that must be measured for it.

    A report that is not public stands in for another one under some profile.
    """

    needs: tuple[str, ...] = ()
    public: bool = False
