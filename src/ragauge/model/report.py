"""Reports: a name, a file suffix, and a function from a view of the scores to text."""

from __future__ import annotations

from collections.abc import Callable

from msgspec import Struct

from ragauge.model.aggregate import Scores
from ragauge.model.profile import Profile
from ragauge.model.verdict import Verdict


class View(Struct, frozen=True, kw_only=True):
    """What a report shows, and for whom: `full` asks for all, width and colour are the screen's."""

    scores: Scores
    verdict: Verdict
    profile: Profile
    full: bool = False
    width: int = 80
    color: bool = False


class Report(Struct, frozen=True, kw_only=True):
    """A way to write scores down; `text` is a pure function and ends with a newline.

    `needs` are metrics that must be measured for it. A report that is not public stands in for
    another one under some profile.
    """

    name: str
    title: str
    text: Callable[[View], str]
    suffixes: tuple[str, ...] = ()
    needs: tuple[str, ...] = ()
    public: bool = False
