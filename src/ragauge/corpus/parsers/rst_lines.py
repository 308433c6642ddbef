"""Lines of reStructuredText: explicit markup such as directives, found by its indentation.

What docutils says of directives that it does not know is not enough to find their ends; explicit
markup begins at the left margin and goes on as long as lines are blank or indented.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from msgspec import Struct

_EXPLICIT = re.compile(r"\.\.(?:\s|$)")
_DIRECTIVE = re.compile(r"\.\.\s+([\w][\w:.+-]*?)\s*::(?:\s+(.*?))?\s*$")
_NOTE = re.compile(r"\.\.\s+\[[^\]]+\]\s")
_ADORNMENT = re.compile(r"([!-/:-@\[-`{-~])\1*\s*$")
_OPTION = re.compile(r"\s+:([\w-]+(?: [\w-]+)*):(?:\s+(.*?))?\s*$")
_ROLE = re.compile(r":[\w.+:-]+:`([^`]*)`")
_LITERAL = re.compile(r"``(.+?)``")
_QUOTED = re.compile(r"`([^`]+)`_{0,2}")
_STRESSED = re.compile(r"(\*\*?)(\S(?:.*?\S)?)\1")
_TARGET = re.compile(r"\s*<[^<>]*>\s*$")


class Explicit(Struct, frozen=True):
    """Explicit markup: its first line, the line behind its last, and what it is.

    `name` is that of a directive, `note` for footnotes and citations, and empty for targets,
    comments and substitutions. `body` is the first line behind the argument and the options.
    """

    first: int
    end: int
    name: str = ""
    argument: str = ""
    options: dict[str, str] = {}
    body: int = 0


def explicit_blocks(lines: Sequence[str]) -> list[Explicit]:
    """All explicit markup at the left margin; lines are counted from 0."""
    blocks = []
    at, free = 0, True  # whether a block may begin here
    while at < len(lines):
        line = lines[at]
        if free and _EXPLICIT.match(line):
            end = at + 1
            while end < len(lines) and (not lines[end].strip() or lines[end][0] in " \t"):
                end += 1
            blocks.append(_explicit(lines, at, end))
            at = end
            continue
        free = not line.strip() or _ADORNMENT.match(line) is not None
        at += 1
    return blocks


def _explicit(lines: Sequence[str], first: int, end: int) -> Explicit:
    while end > first + 1 and not lines[end - 1].strip():
        end -= 1
    directive = _DIRECTIVE.match(lines[first])
    if directive is None:
        return Explicit(first, end, "note" if _NOTE.match(lines[first]) else "", body=end)
    options: dict[str, str] = {}
    body = first + 1
    while body < end and lines[body].strip():
        option = _OPTION.match(lines[body])
        if option is not None:
            options[option[1]] = option[2] or ""
        elif not options:  # the argument goes on, or the content begins
            break
        body += 1
    while body < end and not lines[body].strip():
        body += 1
    return Explicit(first, end, directive[1].lower(), directive[2] or "", options, body)


def is_adornment(line: str) -> bool:
    """Whether a line is one character repeated, as above and below titles."""
    return _ADORNMENT.match(line) is not None


def plain_title(line: str) -> str:
    """A title without its inline markup; roles are taken at their word, known or not."""
    line = _ROLE.sub(lambda match: _TARGET.sub("", match[1]) or match[1], line.strip())
    line = _LITERAL.sub(r"\1", line)
    line = _QUOTED.sub(lambda match: _TARGET.sub("", match[1]) or match[1], line)
    return _STRESSED.sub(r"\2", line)
