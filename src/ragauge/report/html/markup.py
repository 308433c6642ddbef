"""HTML elements as values: all that is put into one is escaped, unless it is an element itself.

Only this module writes markup from text, so that no other place can forget to escape.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from msgspec import Struct

_VOID = frozenset({"br", "input", "link", "meta", "wbr"})
_NAME = re.compile(r"[a-z][a-zA-Z0-9-]*\Z")
_FORBIDDEN = re.compile(r"style|src|srcdoc|action|formaction|on.*")
"""Attributes that a page under a strict policy has no use for."""
_UNSAFE = re.compile(
    r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069\ud800-\udfff]"
)
_ENTITIES = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;", "'": "&#39;"})
_RAW_END = re.compile(r"</|<!--")


class Markup(Struct, frozen=True):
    """A piece of HTML, which goes into an element as it is."""

    source: str


Child = Markup | str | int | None
Attribute = str | int | float | bool | None


def visible(text: str) -> str:
    """Text whose controls are seen as escapes and do nothing; line ends and tabs stay."""
    ends = text.replace("\r\n", "\n").replace("\r", "\n")
    return _UNSAFE.sub(lambda found: ascii(found[0])[1:-1], ends)


def escaped(text: str) -> str:
    """Text as HTML has it, inside an element or between double quotes."""
    return visible(text).translate(_ENTITIES)


def shortened(text: str, most: int = 200) -> str:
    """A text for one line of a table, cut where it is too long for anybody to read there."""
    line = " ".join(text[: 2 * most].split())
    return line if len(line) <= most and len(text) <= 2 * most else f"{line[:most]}…"


def coordinate(value: float) -> str:
    """A number of a drawing, with one decimal where it needs one."""
    told = f"{value:.1f}"
    return "0" if told == "-0.0" else told.removesuffix(".0")


def element(tag: str, *children: Child | Iterable[Child], **attributes: Attribute) -> Markup:
    """An element; `class_` stands for class, `aria_label` for aria-label.

    Attributes that are None or False are left away, and True is one without a value.
    """
    parts = [f"<{_checked(tag)}"]
    for name, value in attributes.items():
        if value is not None and value is not False:
            parts.append(_attribute(name.rstrip("_").replace("_", "-"), value))
    parts.append(">")
    if tag in _VOID:
        assert not children, tag
        return Markup("".join(parts))
    parts.extend(_source(child) for child in _flat(children))
    parts.append(f"</{tag}>")
    return Markup("".join(parts))


def breakable(name: str) -> Markup:
    """A dotted name that may be broken behind its dots and underscores."""
    parts = re.split(r"(?<=[._])", name)
    return element("code", [piece for part in parts for piece in (part, element("wbr"))][:-1])


def together(children: Iterable[Child]) -> Markup:
    """Several pieces behind one another."""
    return Markup("".join(_source(child) for child in children))


def own_text(tag: str, text: str, **attributes: Attribute) -> Markup:
    """An element whose text is not escaped: our own style and script, and data as base64.

    HTML has no way to escape in there, so a text that could end the element is refused.
    """
    assert tag in ("style", "script"), tag
    if _RAW_END.search(text):
        raise ValueError(f"the text of `{tag}` could end it")
    opening = element(tag, **attributes).source.removesuffix(f"</{tag}>")
    return Markup(f"{opening}{text}</{tag}>")


def _flat(children: Iterable[Child | Iterable[Child]]) -> Iterable[Child]:
    for child in children:
        if child is None or isinstance(child, (Markup, str, int)):
            yield child
        else:
            yield from child


def _source(child: Child) -> str:
    if child is None:
        return ""
    return child.source if isinstance(child, Markup) else escaped(str(child))


def _attribute(name: str, value: str | int | float | bool) -> str:
    if value is True:
        return f" {_checked(name)}"
    if _FORBIDDEN.fullmatch(name.lower()):
        raise ValueError(f"the attribute `{name}` is not for this page")
    text = coordinate(value) if isinstance(value, float) else str(value)
    if name == "href" and not text.startswith("#"):
        raise ValueError("a link leads to a place on this page")
    return f' {_checked(name)}="{escaped(text)}"'


def _checked(name: str) -> str:
    if not _NAME.match(name):
        raise ValueError(f"`{name}` is no name of an element or attribute")
    return name
