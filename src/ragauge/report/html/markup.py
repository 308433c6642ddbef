"""Text as HTML: the templates of the pages, and the few elements that code writes itself.

Import it only where a page is made: Jinja2 and our templates take some 70 ms to load.
"""

from __future__ import annotations

import re
from functools import cache
from importlib.resources import files
from typing import Any

from jinja2 import Environment, FunctionLoader, StrictUndefined
from markupsafe import Markup

from ragauge.model import phrases
from ragauge.model.labels import GOOD
from ragauge.model.metric_names import metric_label

SIGNS = {"good": "✓", "warn": "!", "bad": "✕", "quiet": "·"}
"""For those who do not see the colour."""
STATUS_TONES: dict[str, str] = {
    "pass": "good", "review": "warn", "fail": "bad", "not-evaluable": "bad", "waived": "warn",
    "not-judged": "warn",
}  # fmt: skip
# Labels of questions that went wrong without harm: nothing false was said.
_MILD = ("OVER_REFUSAL", "CLAIM_MISSING", "OUT_OF_SCOPE")
_UNDECIDED = ("UNLABELLED", "NO_ANSWER")

# Controls, direction marks and halves of characters. HTML cannot write some of them at all, a
# browser drops or obeys the others, and no reader would see what a trace holds there.
_UNSAFE = re.compile(
    r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069\ud800-\udfff]"
)
_RAW_END = re.compile(r"</|<!--")


def label_tone(label: str) -> str:
    """The tone of a question's label."""
    if label in GOOD:
        return "good"
    if label in _UNDECIDED:
        return "quiet"
    return "warn" if label in _MILD else "bad"


def visible(text: str) -> str:
    """Text whose controls are seen as escapes and do nothing; line ends and tabs stay."""
    unix_lines = text.replace("\r\n", "\n").replace("\r", "\n")
    return _UNSAFE.sub(lambda match: ascii(match[0])[1:-1], unix_lines)


def shortened(text: str, most: int = 200) -> str:
    """A text for one line of a table, cut where it is too long for anybody to read there."""
    line = " ".join(text[: 2 * most].split())
    return line if len(line) <= most and len(text) <= 2 * most else f"{line[:most]}…"


def breakable(name: str) -> Markup:
    """A dotted name that may be broken behind its dots and underscores."""
    return Markup("<wbr>").join(visible(part) for part in re.split(r"(?<=[._])", name))


def raw_text(text: str) -> Markup:
    """The text of a `style` or `script`: our own files, and data as base64.

    HTML has no way to escape in there, so a text that could end the element is refused.
    """
    if _RAW_END.search(text):
        raise ValueError("the text could end the element that it is for")
    return Markup(text)


def svg(tag: str, *children: str, **attributes: str | float) -> Markup:
    """An element of a drawing; `class_` stands for class, `text_anchor` for text-anchor."""
    pairs = Markup("").join(
        Markup(' {}="{}"').format(
            name.rstrip("_").replace("_", "-"),
            visible(value) if isinstance(value, str) else coordinate(value),
        )
        for name, value in attributes.items()
    )
    inside = Markup("").join(map(_output, children))
    return Markup("<{0}{1}>{2}</{0}>").format(tag, pairs, inside)


def coordinate(value: float) -> str:
    """A number of a drawing, with one decimal where it needs one."""
    text = f"{value:.1f}"
    return "0" if text == "-0.0" else text.removesuffix(".0")


def _output(value: Any) -> str:
    """What the page has for a value. Jinja2 escapes it afterwards, unless it is markup.

    Joining markup and text with `~` escapes before this is called: controls would get through.
    """
    if value is None:
        return ""
    return value if isinstance(value, Markup) else visible(str(value))


@cache
def package_text(name: str) -> str:
    """A file of this package; line ends are the same everywhere, since the policy hashes it."""
    return (files("ragauge.report.html") / name).read_text("utf-8").replace("\r\n", "\n")


@cache
def environment() -> Environment:
    """Jinja2 for our templates: everything is escaped, and a name that is not there is an error."""
    jinja = Environment(
        loader=FunctionLoader(lambda name: package_text(f"templates/{name}")),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=_output,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        auto_reload=False,
    )
    jinja.filters.update(
        label=metric_label,
        short=shortened,
        breakable=breakable,
        commas=lambda count: f"{count:,}",
        spaced=lambda name: name.replace("_", " "),
    )
    jinja.globals.update(phrases=phrases, SIGNS=SIGNS, STATUS_TONES=STATUS_TONES)
    return jinja
