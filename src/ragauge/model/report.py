"""Reports: a name, a file suffix, and a function from a view of the scores to what is written."""

from __future__ import annotations

from collections.abc import Callable

from msgspec import Struct

from ragauge.model.drilldown import Drilldowns
from ragauge.model.profile import Profile
from ragauge.model.scores import Scores
from ragauge.model.verdict import Verdict


class View(Struct, frozen=True, kw_only=True):
    """What a report shows, and for whom: `full` asks for all, width and colour are the screen's.

    `details` are the questions one by one, where a report asked for them.
    """

    scores: Scores
    verdict: Verdict
    profile: Profile
    full: bool = False
    width: int = 80
    color: bool = False
    details: Drilldowns | None = None


class Report(Struct, frozen=True, kw_only=True):
    """A way to write scores down; `content` is a pure function, and its text ends with a newline.

    Bytes are for files only. `needs` are metrics that must be measured for it, and `detailed` says
    that it shows questions one by one. A report that is not public stands in for another one under
    some profile.
    """

    name: str
    title: str
    content: Callable[[View], str | bytes]
    suffixes: tuple[str, ...] = ()
    needs: tuple[str, ...] = ()
    public: bool = False
    detailed: bool = False

    def text(self, view: View) -> str:
        """What a report of text says."""
        content = self.content(view)
        assert isinstance(content, str), self.name
        return content
