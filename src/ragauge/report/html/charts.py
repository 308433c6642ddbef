"""Charts as SVG, drawn when the page is made: points and bars with words beside every colour.

A drawing has classes and no colours of its own; the style of the page gives these, for light and
dark. Each has a text that says the same for those who do not see it.
"""

from __future__ import annotations

from collections.abc import Sequence

from markupsafe import Markup
from msgspec import Struct

from ragauge.model import phrases
from ragauge.report.html.markup import coordinate, shortened, svg
from ragauge.stats.intervals import Interval

WIDTH = 400
_LEFT, _TOP, _HEIGHT = 34, 12, 170
"""Where the field of a chart with axes begins, and how high it is."""
_NAMES = 118
"""Room for the names of lines at their right end."""
_LINE = 13
"""Least distance between two names."""
_SHORT = 42
"""Characters of a name that fit above a bar or beside a dot."""


class ChartLine(Struct, frozen=True):
    """One line of a chart by k: a value for each k, None where there is none."""

    name: str
    values: tuple[float | None, ...]


class Bar(Struct, frozen=True):
    """A counted thing; `tone` is good, warn, bad or quiet."""

    name: str
    count: int
    tone: str = "quiet"


class Dot(Struct, frozen=True):
    """A value with its interval and what to say beside it."""

    name: str
    value: float
    interval: Interval | None = None
    note: str = ""


class Figure(Struct, frozen=True):
    """A chart with its title, and what there is to know about it."""

    title: str
    note: str
    drawing: Markup


def _drawing(label: str, height: float, parts: Sequence[Markup], width: float = WIDTH) -> Markup:
    return svg(
        "svg",
        svg("title", label),
        *parts,
        viewBox=f"0 0 {coordinate(width)} {coordinate(height)}",
        role="img",
        aria_label=label,
    )


def _text(x: float, y: float, text: str, **more: str) -> Markup:
    return svg("text", text, x=x, y=y, **more)


def _rect(x: float, y: float, width: float, height: float, class_: str, **more: float) -> Markup:
    return svg("rect", x=x, y=y, width=width, height=height, **more, class_=class_)


def _rule(x1: float, y1: float, x2: float, y2: float, class_: str) -> Markup:
    return svg("line", x1=x1, y1=y1, x2=x2, y2=y2, class_=class_)


def _titled(shape: Markup, title: str) -> Markup:
    return svg("g", svg("title", title), shape)


def spread(places: Sequence[float], gap: float, most: float) -> list[float]:
    """Places moved apart until they are `gap` from each other, in their order and up to `most`."""
    order = sorted(range(len(places)), key=lambda i: (places[i], i))
    moved = [0.0] * len(places)
    last = float("-inf")
    for i in order:
        moved[i] = last = max(places[i], last + gap)
    # That may have pushed the last ones too far: push back from the end.
    last = float("inf")
    for i in reversed(order):
        moved[i] = last = min(moved[i], most, last - gap)
    return moved


def lines(ks: Sequence[int], drawn: Sequence[ChartLine]) -> Markup:
    """Values between 0 and 1 over k; each line is named at its end and has marks of its own."""
    right = WIDTH - _NAMES
    step = (right - _LEFT) / max(len(ks) - 1, 1)
    bottom = _TOP + _HEIGHT
    parts = []
    for tick in (0.0, 0.25, 0.5, 0.75, 1.0):
        y = bottom - tick * _HEIGHT
        parts.append(_rule(_LEFT, y, right, y, "grid"))
        parts.append(_text(_LEFT - 6, y + 4, f"{tick:g}", text_anchor="end", class_="tick"))
    for i, k in enumerate(ks):
        x = _LEFT + i * step
        parts.append(_text(x, bottom + 16, str(k), text_anchor="middle", class_="tick"))
    ends = []
    for number, line in enumerate(drawn):
        points = [
            (_LEFT + i * step, bottom - value * _HEIGHT, k, value)
            for i, (k, value) in enumerate(zip(ks, line.values, strict=True))
            if value is not None
        ]
        path = " L".join(f"{coordinate(x)} {coordinate(y)}" for x, y, _, _ in points)
        shapes = [svg("path", d=f"M{path}", class_="stroke")]
        for x, y, k, value in points:
            mark = _mark(number, x, y)
            shapes.append(_titled(mark, f"{line.name}@{k}: {phrases.number(value)}"))
        parts.append(svg("g", *shapes, class_=f"series s{number}"))
        ends.append(points[-1][1])
    for number, (line, y) in enumerate(zip(drawn, spread(ends, _LINE, bottom), strict=True)):
        x = right + 18
        mark = _mark(number, x - 8, y)
        name = _text(x, y + 4, shortened(line.name, 17), class_="name")
        parts.append(svg("g", mark, name, class_=f"series s{number}"))
    values_by_line = "; ".join(
        f"{line.name} "
        + ", ".join(
            f"{phrases.number(value)} at {k}" for k, value in zip(ks, line.values, strict=True)
        )
        for line in drawn
    )
    return _drawing(f"Metrics by k: {values_by_line}", bottom + 24, parts)


def _mark(number: int, x: float, y: float) -> Markup:
    """Circle, square, diamond or triangle: lines are told apart without their colour."""
    form = number % 4
    if form == 0:
        return svg("circle", cx=x, cy=y, r=3.5, class_="mark")
    if form == 1:
        return _rect(x - 3, y - 3, 6, 6, "mark")
    at = coordinate
    path = (
        f"M{at(x)} {at(y - 4)} L{at(x + 4)} {at(y)} L{at(x)} {at(y + 4)} L{at(x - 4)} {at(y)} Z"
        if form == 2
        else f"M{at(x)} {at(y - 4)} L{at(x + 4)} {at(y + 3)} L{at(x - 4)} {at(y + 3)} Z"
    )
    return svg("path", d=path, class_="mark")


def bars(label: str, rows: Sequence[Bar]) -> Markup:
    """Counts as bars from left to right, each with its name above and its count behind."""
    most = max(row.count for row in rows)
    total = sum(row.count for row in rows)
    room = WIDTH - 110
    parts = []
    for i, row in enumerate(rows):
        y = i * 33
        share = row.count / total if total else 0
        width = row.count / most * room if most else 0
        parts.append(_text(0, y + 11, shortened(row.name, _SHORT), class_="name"))
        least = 1.5 if row.count else 0.0
        bar = _rect(0, y + 17, max(width, least), 9, f"fill {row.tone}", rx=2)
        parts.append(_titled(bar, f"{shortened(row.name)}: {row.count}"))
        parts.append(
            _text(width + 8, y + 26, f"{row.count:,} · {100 * share:.1f} %", class_="tick")
        )
    counts = ", ".join(f"{shortened(row.name)} {row.count}" for row in rows)
    return _drawing(f"{label}: {counts}", len(rows) * 33, parts)


def histogram(
    label: str,
    counts: Sequence[int],
    *,
    low: float,
    step: float,
    zones: Sequence[Bar],
    ends: Sequence[float],
) -> Markup:
    """How many values lie where: bins of `step` from `low`, coloured by the zone they are in.

    `zones` come in order and `ends` say where each but the last one ends. What lies behind the
    last bin is not drawn.
    """
    most = max(counts)
    right, bottom = WIDTH - 8, _TOP + 22 + _HEIGHT
    width = (right - _LEFT) / len(counts)
    parts = [_rule(_LEFT, bottom, right, bottom, "axis")]
    parts.append(
        _text(_LEFT - 6, bottom - _HEIGHT + 4, f"{most:,}", text_anchor="end", class_="tick")
    )
    parts.append(_rule(_LEFT, bottom - _HEIGHT, right, bottom - _HEIGHT, "grid"))
    for i, count in enumerate(counts):
        start = low + i * step
        zone = zones[sum(start + step / 2 >= end for end in ends)]
        height = count / most * _HEIGHT
        x, y = _LEFT + i * width + 0.5, bottom - height
        bar = _rect(x, y, max(width - 1, 0.5), height, f"fill {zone.tone}")
        parts.append(_titled(bar, f"{start:.2f} to {start + step:.2f}: {count}"))
    high = low + step * len(counts)
    scale = (right - _LEFT) / (high - low)
    inside = [end for end in ends if end < high]
    for end in inside:
        x = _LEFT + (end - low) * scale
        parts.append(_rule(x, _TOP + 14, x, bottom, "edge"))
    starts = [low, *ends]
    for zone, start, end in zip(zones, starts, [*ends, high], strict=True):
        if start >= high:
            continue
        middle = _LEFT + (max(start, low) + min(end, high) - 2 * low) / 2 * scale
        name, tone = f"{zone.name} {zone.count:,}", f"name {zone.tone}"
        parts.append(_text(middle, _TOP + 6, name, text_anchor="middle", class_=tone))
    for tick in (low, *inside, high):
        x = _LEFT + (tick - low) * scale
        parts.append(_text(x, bottom + 16, f"{tick:.2f}", text_anchor="middle", class_="tick"))
    zone_counts = ", ".join(f"{zone.name} {zone.count}" for zone in zones)
    return _drawing(f"{label}: {zone_counts}", bottom + 24, parts)


def dots(label: str, rows: Sequence[Dot], *, low: float = 0.0, high: float = 1.0) -> Markup:
    """Values on one scale, each with its interval as a line through the dot."""
    right, left = WIDTH - 10, 6
    scale = (right - left) / (high - low)
    parts = []
    bottom = len(rows) * 32
    for tick in (low, (low + high) / 2, high):
        x = left + (tick - low) * scale
        parts.append(_rule(x, 0, x, bottom, "grid"))
        anchor = "start" if tick == low else "end" if tick == high else "middle"
        parts.append(_text(x, bottom + 14, f"{tick:g}", text_anchor=anchor, class_="tick"))
    for i, row in enumerate(rows):
        y = i * 32 + 22
        title = f"{shortened(row.name)}: {phrases.number(row.value)}"
        parts.append(_text(left, y - 10, shortened(row.name, _SHORT), class_="name"))
        value = " · ".join(filter(None, (phrases.number(row.value), row.note)))
        parts.append(_text(right, y - 10, value, text_anchor="end", class_="tick"))
        if row.interval is not None:
            bounds = _drawn(row.interval, low, high)
            ends = [left + (min(max(end, low), high) - low) * scale for end in bounds]
            parts.append(_rule(ends[0], y, ends[1], y, "whisker"))
            title += f" ({phrases.interval(row.interval)})"
        x = left + (min(max(row.value, low), high) - low) * scale
        parts.append(_titled(svg("circle", cx=x, cy=y, r=4, class_="dot"), title))
    values = ", ".join(f"{shortened(row.name)} {phrases.number(row.value)}" for row in rows)
    return _drawing(f"{label}: {values}", bottom + 20, parts)


def _drawn(interval: Interval, low: float, high: float) -> tuple[float, float]:
    """An interval that is open goes on to the end of the scale."""
    lower, upper = interval
    return low if lower is None else lower, high if upper is None else upper


STRIP = 132
_STRIP_HEIGHT = 16


def strip(
    label: str,
    value: float,
    interval: Interval | None,
    *,
    low: float,
    high: float,
    zero: bool = False,
    detectable: float | None = None,
    tone: str = "plain",
) -> Markup:
    """One value with its interval, small enough for a row of a table.

    With `zero` there is a line at 0, and around it what is too small to be detected is shaded.
    """
    margin = 5
    scale = (STRIP - 2 * margin) / (high - low)

    def place(number: float) -> float:
        return margin + (min(max(number, low), high) - low) * scale

    middle = _STRIP_HEIGHT / 2
    parts = [_rule(margin, middle, STRIP - margin, middle, "grid")]
    if zero:
        if detectable is not None:
            begin, end = place(-detectable), place(detectable)
            parts.append(_rect(begin, 1, end - begin, _STRIP_HEIGHT - 2, "shade"))
        parts.append(_rule(place(0), 0, place(0), _STRIP_HEIGHT, "axis"))
    if interval is not None:
        begin, end = (place(bound) for bound in _drawn(interval, low, high))
        parts.append(_rule(begin, middle, end, middle, "whisker"))
    parts.append(svg("circle", cx=place(value), cy=middle, r=3.5, class_="dot"))
    return svg(
        "svg",
        svg("title", label),
        *parts,
        viewBox=f"0 0 {STRIP} {_STRIP_HEIGHT}",
        width=STRIP,
        height=_STRIP_HEIGHT,
        role="img",
        aria_label=label,
        class_=f"strip {tone}",
    )
