"""Spans of text: half-open intervals of one unit, their unions, and how rows hold them.

A byte span and a line span say different things: only spans of the same unit are ever compared.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from msgspec import Struct

from ragauge.files.fields import FieldError, Row, as_int, as_list, as_text, wrong_type

UNITS = ("byte", "char", "line", "page", "token", "ms")
EXACT_UNITS = ("byte", "char")
"""Units that say where a text begins and ends; a line has its line end, and a page its margins."""
_PAIRS = (
    ("start", "end", None),
    ("start_byte", "end_byte", "byte"),
    ("start_char", "end_char", "char"),
    ("start_char_idx", "end_char_idx", "char"),
    ("start_index", "end_index", "char"),
    ("start_token", "end_token", "token"),
    ("start_ms", "end_ms", "ms"),
    ("line_start", "line_end", "line"),
    ("start_line", "end_line", "line"),
)
OFFSET_PAIRS = tuple((start, end) for start, end, _ in _PAIRS)
"""Names of offsets, as pairs."""
PLACE_NAMES = (
    *("span", "offsets", "source_spans", "unit", "kind"),
    *(name for pair in OFFSET_PAIRS for name in pair),
)
"""Every name under which an object says where it lies."""

Merged = list[tuple[int, int]]
"""Disjoint intervals in ascending order."""


class Span(Struct, frozen=True, order=True, omit_defaults=True):
    """From `start` up to, and not including, `end`."""

    start: int
    end: int
    unit: str = "byte"

    @property
    def length(self) -> int:
        """How many units it covers."""
        return self.end - self.start


def spans_in(row: Row, path: str, *, unit: str = "byte") -> tuple[Span, ...]:
    """The spans that an object holds, under any of their spellings; none if it holds none.

    `unit` is what plain offsets mean where the object does not say.
    """
    unit = unit_in(row, path, unit)
    for name in ("span", "offsets"):
        if row.get(name) is not None:
            return (_one(row[name], f"{path}.{name}", unit),)
    listed = row.get("source_spans")
    if listed is not None:
        where = f"{path}.source_spans"
        entries = enumerate(as_list(listed, where))
        spans = tuple(_one(value, f"{where}[{i}]", unit) for i, value in entries)
        if len({span.unit for span in spans}) > 1:
            message = f"`{where}` holds spans of different units"
            raise FieldError("mixed-units", message, "use one unit: bytes")
        return spans
    span = _fields(row, path, unit)
    return () if span is None else (span,)


def span_of_text(row: Row, path: str, text: str, *, unit: str = "byte") -> tuple[Span, ...]:
    """The span of an object that says where its text begins, and not where it ends."""
    unit = unit_in(row, path, unit)
    for start, _, own in _PAIRS:
        if row.get(start) is not None and (own or unit) in EXACT_UNITS:
            first = as_int(row[start], f"{path}.{start}")
            size = len(text) if (own or unit) == "char" else len(text.encode(errors="replace"))
            return (_checked(first, first + size, own or unit, path),)
    return ()


def place_name(doc: str, spans: Sequence[Span]) -> str:
    """A name for a place that has no id: equal places have equal names."""
    return f"{doc}#{spans[0].unit}={spans[0].start}-{spans[-1].end}"


def unit_in(row: Row, path: str, fallback: str) -> str:
    """The unit that an object names for its offsets."""
    written = row.get("unit")
    if written is None:
        return fallback
    name = as_text(written, f"{path}.unit" if path else "unit").strip().lower()
    name = name[:-1] if name.endswith("s") and name != "ms" else name
    name = {"character": "char", "codepoint": "char"}.get(name, name)
    if name not in UNITS:
        raise wrong_type(f"{path}.unit", f"one of {', '.join(UNITS)}", written, "offsets are bytes")
    return name


def _one(value: Any, path: str, unit: str) -> Span:
    if isinstance(value, list):
        if len(value) != 2:
            raise wrong_type(path, "a pair of offsets", value, "write [start, end]")
        return _checked(value[0], value[1], unit, path)
    if isinstance(value, Mapping):
        kind = value.get("kind")
        inner = unit_in(value, path, kind if kind in UNITS else unit)
        span = _fields(value, path, inner)
        if span is not None:
            return span
    raise wrong_type(path, "offsets", value, 'write [start, end] or {"start": 0, "end": 9}')


def _fields(row: Row, path: str, unit: str) -> Span | None:
    kind_of_plain = "line" if row.get("kind") in ("line", "code") else None
    for start, end, own in _PAIRS:
        if row.get(start) is not None and row.get(end) is not None:
            # Lines and pages are numbered inclusively wherever they are written down.
            if (own or kind_of_plain) == "line":
                return _checked(row[start], as_int(row[end], f"{path}.{end}") + 1, "line", path)
            return _checked(row[start], row[end], own or unit, path)
    if row.get("kind") == "page" and row.get("page") is not None:
        page = as_int(row["page"], f"{path}.page")
        return _checked(page, page + 1, "page", path)
    return None


def _checked(start: Any, end: Any, unit: str, path: str) -> Span:
    first, last = as_int(start, f"{path} start"), as_int(end, f"{path} end")
    if first < 0 or last < first:
        expected = "offsets from 0 with start before end"
        raise wrong_type(path, expected, [first, last], "spans are half-open: [start, end)")
    return Span(first, last, unit)


def merged(spans: Iterable[tuple[int, int]]) -> Merged:
    """The union of intervals as disjoint ones."""
    union: Merged = []
    for start, end in sorted(spans):
        if end <= start:
            continue
        if union and start <= union[-1][1]:
            if end > union[-1][1]:
                union[-1] = (union[-1][0], end)
        else:
            union.append((start, end))
    return union


def size(union: Sequence[tuple[int, int]]) -> int:
    """How much a union covers."""
    if len(union) == 1:
        return union[0][1] - union[0][0]
    return sum(end - start for start, end in union)


def overlap(one: Sequence[tuple[int, int]], other: Sequence[tuple[int, int]]) -> int:
    """How much two unions have in common."""
    if len(one) == len(other) == 1:
        return max(0, min(one[0][1], other[0][1]) - max(one[0][0], other[0][0]))
    common = i = j = 0
    while i < len(one) and j < len(other):
        common += max(0, min(one[i][1], other[j][1]) - max(one[i][0], other[j][0]))
        if one[i][1] <= other[j][1]:
            i += 1
        else:
            j += 1
    return common


def shared(one: Sequence[Span], other: Sequence[Span]) -> tuple[int, int]:
    """What two places have in common, and the length of the shorter, in the unit of the first."""
    if not one or not other:
        return 0, 0
    mine, theirs = of_unit(one, one[0].unit), of_unit(other, one[0].unit)
    return overlap(mine, theirs), min(size(mine), size(theirs))


def share_half(one: Sequence[Span], other: Sequence[Span]) -> bool:
    """Whether two places share at least half of the shorter."""
    common, shorter = shared(one, other)
    return shorter > 0 and 2 * common >= shorter


def of_unit(spans: Sequence[Span], unit: str) -> Merged:
    """The union of those spans that have a unit."""
    if len(spans) == 1:
        only = spans[0]
        return [(only.start, only.end)] if only.unit == unit and only.length else []
    return merged((span.start, span.end) for span in spans if span.unit == unit)


_WORDS = {"byte": "bytes", "char": "characters", "line": "line", "page": "page", "token": "tokens"}


def in_words(spans: Sequence[Span]) -> str:
    """Where spans lie, as people say it: lines and pages are numbered with the last one in."""
    if len(spans) == 1 and spans[0].unit == "byte":
        return f"bytes {spans[0].start}-{spans[0].end}"
    parts: list[str] = []
    before = None
    for span in spans:
        start, end, name = span.start, span.end, _WORDS.get(span.unit, span.unit)
        numbered = f"{start}-{end}"
        if span.unit in ("line", "page"):
            numbered = str(start) if end <= start + 1 else f"{start}-{end - 1}"
            name += "s" if end > start + 1 else ""
        parts.append(numbered if name == before else f"{name} {numbered}")
        before = name
    return ", ".join(parts)
