"""Workflow commands of GitHub Actions: one line that makes an annotation."""

from __future__ import annotations

from typing import Literal

from ragauge.report.ci.paths import FileLocation
from ragauge.text import plain

Level = Literal["error", "warning", "notice"]
MOST_ANNOTATIONS = 10
"""How many annotations of a level GitHub shows of one step."""
_LONGEST = 1000


LEVELS: tuple[Level, ...] = ("error", "warning", "notice")


def not_annotated(what: str) -> str:
    """The notice about what there is no room for."""
    reason = f"not annotated, because GitHub shows {MOST_ANNOTATIONS} of a kind"
    return command("notice", f"{reason}: {what}", title="ragauge")


def command(
    level: Level, message: str, *, title: str = "", location: FileLocation | None = None
) -> str:
    """The line for one annotation; none of the texts can end it or add a property."""
    properties = []
    if location is not None:
        properties.append(f"file={_property(location.file)}")
        if location.line is not None:
            properties.append(f"line={location.line}")
    if title:
        properties.append(f"title={_property(title)}")
    joined = f" {','.join(properties)}" if properties else ""
    return f"::{level}{joined}::{_data(message)}"


def _data(text: str) -> str:
    """Text behind the second pair of colons."""
    short = plain(text)
    if len(short) > _LONGEST:
        short = f"{short[: _LONGEST - 1]}…"
    return short.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    """Text between them, where a colon or a comma would end it."""
    return _data(text).replace(":", "%3A").replace(",", "%2C")
