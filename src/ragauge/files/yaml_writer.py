"""Writing YAML: values that any reader gets back, and the region of each item in a file.

Only what JSON has is written. Text that another reader could take for a number, a date or a truth
value is put in quotes. An edit replaces the fields of an item that it changes, so that comments,
quotes and the layout of all else stay byte by byte as a person wrote them.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

WIDTH = 100
_PLAIN = re.compile(r"[A-Za-z][\w./@+#-]*(?: [\w./@+-]+)*", re.ASCII)
_WORDS = frozenset({"y", "n", "yes", "no", "on", "off", "true", "false", "null"})
# YAML folds, refuses or drops these where they stand in quotes as they are.
_ESCAPED = re.compile("[\x7f-\x9f\u2028\u2029\ud800-\udfff\ufeff\ufffe\uffff]")
_COMMENT = re.compile("#[^\\n]*")
_LITERAL = re.compile("[^\\S \\n]|[\x00-\x09\x0b-\x1f\x7f-\x9f\u2028\u2029\ufeff\ufffe\uffff]")


class FieldRegion(NamedTuple):
    """Where a field of an item stands, from its name to the end of its value."""

    name: str
    start: int
    end: int


class Region(NamedTuple):
    """Where an item stands: from a character up to another, its column, and how it is written.

    `fields` are those of an item that is written a line each.
    """

    start: int
    end: int
    column: int
    flow: bool
    fields: tuple[FieldRegion, ...] = ()


def item_text(item: Mapping[str, Any], *, column: int = 2, literal: bool = True) -> str:
    """Write an item as a mapping, whose first line is to stand at a column.

    `literal`: text of several lines may be written as such.
    """
    return "\n".join(_mapping(item, column, literal=literal)).lstrip(" ")


def list_text(items: Sequence[Mapping[str, Any]], comments: Sequence[Sequence[str]] = ()) -> str:
    """Write a list of items with a blank line between them, and comments above each."""
    parts = []
    for position, item in enumerate(items):
        lines = comments[position] if position < len(comments) else ()
        above = "".join(f"# {line}\n" for line in lines)
        parts.append(f"{above}- {item_text(item)}\n")
    return "\n".join(parts) if parts else "[]\n"


def flow_text(value: Any) -> str:
    """Write a value on one line."""
    if isinstance(value, Mapping):
        inside = ", ".join(f"{_scalar(key)}: {flow_text(item)}" for key, item in value.items())
        return f"{{{inside}}}"
    if isinstance(value, list | tuple):
        return f"[{', '.join(flow_text(item) for item in value)}]"
    return _scalar(value)


def _mapping(value: Mapping[str, Any], indent: int, *, literal: bool) -> list[str]:
    lines: list[str] = []
    for key, item in value.items():
        name = f"{' ' * indent}{_scalar(key)}:"
        if isinstance(item, Mapping) and item:
            lines += [name, *_mapping(item, indent + 2, literal=literal)]
        elif isinstance(item, list | tuple) and _is_long(item, indent + len(key)):
            lines += [name, *_sequence(item, indent + 2, literal=literal)]
        elif literal and isinstance(item, str) and _is_literal(item):
            sign = "|" if item.endswith("\n") else "|-"
            body = item.removesuffix("\n").split("\n")
            indented = [f"{' ' * (indent + 2)}{line}" if line else "" for line in body]
            lines += [f"{name} {sign}", *indented]
        else:
            lines.append(f"{name} {flow_text(item)}")
    return lines


def _sequence(values: Sequence[Any], indent: int, *, literal: bool) -> list[str]:
    lines: list[str] = []
    dash = f"{' ' * indent}- "
    for item in values:
        if isinstance(item, Mapping) and item:
            inner = _mapping(item, indent + 2, literal=literal)
            lines += [dash + inner[0].lstrip(" "), *inner[1:]]
        else:
            lines.append(dash + flow_text(item))
    return lines


def _is_long(values: Sequence[Any], room: int) -> bool:
    if any(isinstance(item, Mapping) and item for item in values):
        return True
    return bool(values) and room + len(flow_text(values)) > WIDTH


def _is_literal(value: str) -> bool:
    """Whether a text of several lines reads the same when it is written line by line."""
    body = value.removesuffix("\n")
    first, newline, _ = body.partition("\n")
    # Blanks at the end of an item cannot be told from those behind it, and editors remove them.
    if not newline or body != body.rstrip() or not first or first.startswith(" "):
        return False
    return _LITERAL.search(value) is None


def _scalar(value: Any) -> str:
    if isinstance(value, str):
        # Quotes where any reader of YAML 1.1 or 1.2 could see something else than text.
        if _PLAIN.fullmatch(value) and value.lower() not in _WORDS:
            return value
        quoted = json.dumps(value, ensure_ascii=False)
        return _ESCAPED.sub(lambda match: f"\\u{ord(match[0]):04x}", quoted)
    text = json.dumps(value, allow_nan=False)
    if isinstance(value, float) and "e" in text and "." not in text:
        return text.replace("e", ".0e")  # YAML 1.1 takes 1e-05 for text
    return text


def regions(text: str, keys: Sequence[str]) -> list[Region] | None:
    """Where the items of a file stand: those of its list, or of the list under one of some keys.

    None if they cannot be replaced one by one, because an alias in one stands for another.
    """
    top = _composed(text)
    if top is not None and top.id == "mapping":
        lists = [node for key, node in top.value if key.value in keys]
        top = lists[0] if len(lists) == 1 else None
    if top is None or top.id != "sequence":
        return None
    item_regions = []
    seen: set[int] = set()
    for node in top.value:
        end = _end(node, seen)
        if end is None:
            return None
        start = node.start_mark
        body = text[start.index : end].rstrip()
        flow = bool(top.flow_style or node.flow_style or node.id != "mapping")
        fields = () if flow else tuple(_field_regions(node, text))
        item_end = start.index + len(body)
        item_regions.append(Region(start.index, item_end, start.column, flow, fields))
    return item_regions


def _field_regions(node: Any, text: str) -> Iterator[FieldRegion]:
    for key, value in node.value:
        start, end = key.start_mark.index, _end(value, set())
        body = text[start : start if end is None else end].rstrip()
        yield FieldRegion(str(key.value), start, start + len(body))


def rest_of_line(text: str, at: int) -> str:
    """What stands on a line from a character on."""
    end = text.find("\n", at)
    return text[at:] if end < 0 else text[at:end]


class Edit(NamedTuple):
    """New text, and up to where it stands for the old one."""

    text: str
    end: int


def edited_item(
    text: str, region: Region, old: Mapping[str, Any], new: Mapping[str, Any]
) -> Edit | None:
    """An item with those fields written anew that changed, in their places.

    New fields come last; what was taken out takes its line along. None if the fields of the item
    cannot be told apart, or stand in another order.
    """
    fields = {field.name: field for field in region.fields}
    names = [name for name in new if name in fields]
    added = [name for name in new if name not in fields]
    in_order = names == [name for name in fields if name in new]
    # Each field begins a line of its own, but for the first one behind the dash.
    apart = all("\n" in text[one.end : other.start] for one, other in pairwise(region.fields))
    if [*fields] != [*old] or not in_order or not names or [*new] != [*names, *added] or not apart:
        return None
    if names[0] != region.fields[0].name:
        return None
    parts: list[str] = []
    at = region.start
    for field in region.fields:
        rest = rest_of_line(text, field.end)
        if field.name not in new:
            parts.append(text[at : text.rindex("\n", at, field.start)])
            at = min(field.end + len(rest), region.end)
        elif json.dumps(new[field.name]) != json.dumps(old[field.name]):  # 1 is not true
            value = {field.name: new[field.name]}
            literal = not rest.strip()
            parts += [
                text[at : field.start],
                item_text(value, column=region.column, literal=literal),
            ]
            at = field.end
    end = region.end
    if added:  # behind a comment on the last line
        end += len(rest_of_line(text, end).rstrip())
    parts.append(text[at:end])
    for line in _mapping({name: new[name] for name in added}, region.column, literal=True):
        parts += ["\n", line]
    return Edit("".join(parts), end)


def _composed(text: str) -> Any:
    """The tree of a file. PyYAML must be there, and the file must be one that it reads."""
    import yaml

    return yaml.compose(text, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))


class ScalarText(NamedTuple):
    """A value as it is written, and from where to where."""

    value: str
    start: int
    end: int


def value_of(text: str, key: str) -> ScalarText | None:
    """The value of a key that stands beside the list of items; None if it is no scalar."""
    top = _composed(text)
    for name, node in top.value if top is not None and top.id == "mapping" else ():
        if name.value == key and node.id == "scalar":
            return ScalarText(str(node.value), node.start_mark.index, node.end_mark.index)
    return None


def comments(text: str) -> list[int]:
    """Where comments begin: at each `#` that is not inside a value."""
    if "#" not in text:
        return []
    import yaml

    positions: list[int] = []
    at = 0
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    for token in yaml.scan(text, Loader=loader):
        start = token.start_mark.index
        if start > at:
            gap = text[at:start]
            positions += [at + match.start() for match in _COMMENT.finditer(gap)]
        at = max(at, token.end_mark.index)
    return positions


def _end(node: Any, seen: set[int]) -> int | None:
    """Where the last written part of a node ends; None if a part of it stands elsewhere.

    The end that PyYAML marks for a block is the beginning of what follows it, behind comments.
    """
    if id(node) in seen:
        return None
    seen.add(id(node))
    if node.id == "scalar" or node.flow_style or not node.value:
        if node.id != "scalar" and not all(_end(part, seen) is not None for part in _parts(node)):
            return None
        return int(node.end_mark.index)
    ends = [_end(part, seen) for part in _parts(node)]
    return None if None in ends else max(part for part in ends if part is not None)


def _parts(node: Any) -> list[Any]:
    if node.id == "mapping":
        return [part for pair in node.value for part in pair]
    return list(node.value)
