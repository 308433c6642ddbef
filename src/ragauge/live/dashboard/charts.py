"""Charts of live traffic as SVG, drawn by the server: they need no script.

A drawing has classes and no colours of its own. It is drawn for wide screens and for narrow ones,
of which the style shows one: text that shrinks with the picture cannot be read on a phone.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from datetime import UTC, datetime

from markupsafe import Markup
from msgspec import Struct

from ragauge.live.dashboard.queries import MinuteTraffic
from ragauge.report.html.markup import coordinate, shortened, svg

MOST_LINES = 6
"""Lines of one chart: so many colours can be told apart."""
_LEFT, _RIGHT, _TOP, _BOTTOM = 46, 10, 10, 24
_MINUTE = 60_000
_STEPS = tuple(
    _MINUTE * minutes
    for minutes in (1, 5, 15, 30, 60, 180, 360, 720, 1440, 2880, 10080, 20160, 43200)
)


class ChartPoint(Struct, frozen=True):
    """A value at a time, with its interval; over several windows, the least and the most."""

    at: int
    value: float | None
    low: float | None = None
    high: float | None = None
    label: str = ""


class TimeLine(Struct, frozen=True):
    """One line over time; `None` values break it."""

    name: str
    points: tuple[ChartPoint, ...]


class _Scale(Struct, frozen=True):
    width: float
    height: float
    begin: int
    end: int
    low: float
    high: float

    def x(self, at: float) -> float:
        room = self.width - _LEFT - _RIGHT
        return _LEFT + room * (at - self.begin) / max(self.end - self.begin, 1)

    def y(self, value: float) -> float:
        room = self.height - _TOP - _BOTTOM
        share = (value - self.low) / (self.high - self.low)
        return _TOP + room * (1 - min(max(share, 0.0), 1.0))


def value_text(value: float | None) -> str:
    """A value in few characters: four digits behind the dot below 10, none above 100."""
    if value is None:
        return "–"
    size = abs(value)
    digits = 4 if size < 10 else 1 if size < 100 else 0
    return f"{value + 0.0:,.{digits}f}"


def nice_range(values: Sequence[float]) -> tuple[float, float, float]:
    """Ends of an axis that hold the values, and the step of its ticks: 1, 2 or 5 times 10^n."""
    low, high = min(values), max(values)
    share = low >= 0 and high <= 1
    if high - low < 1e-9:
        pad = max(abs(high) * 0.1, 0.05)
        low, high = low - pad, high + pad
    else:
        pad = (high - low) * 0.08
        low, high = low - pad, high + pad
    raw = (high - low) / 4
    power = 10.0 ** math.floor(math.log10(raw))
    step = next(power * factor for factor in (1, 2, 5, 10) if power * factor >= raw * (1 - 1e-9))
    low, high = math.floor(low / step) * step, math.ceil(high / step) * step
    if share:
        low, high = max(low, 0.0), min(high, 1.0)
    elif min(values) >= 0:
        low = max(low, 0.0)
    return low, high, step


def clock(at: int, *, day: bool) -> str:
    """A time in UTC, as a tick has it."""
    return datetime.fromtimestamp(at / 1000, UTC).strftime("%m-%d" if day else "%H:%M")


def _time_ticks(begin: int, end: int, most: int) -> tuple[list[int], int]:
    step = next((step for step in _STEPS if (end - begin) / step <= most), _STEPS[-1])
    first = -(-begin // step) * step
    return list(range(first, end + 1, step)), step


def _axes(scale: _Scale, step: float, most_ticks: int) -> list[Markup]:
    parts = []
    decimals = max(0, -math.floor(math.log10(step) + 1e-9))
    for number in range(round((scale.high - scale.low) / step) + 1):
        tick = scale.low + number * step
        y = scale.y(tick)
        parts.append(svg("line", x1=_LEFT, y1=y, x2=scale.width - _RIGHT, y2=y, class_="grid"))
        text = f"{tick + 0.0:,.{decimals}f}"
        parts.append(svg("text", text, x=_LEFT - 6, y=y + 4, text_anchor="end", class_="tick"))
    ticks, time_step = _time_ticks(scale.begin, scale.end, most_ticks)
    for at in ticks:
        x = scale.x(at)
        bottom = scale.height - _BOTTOM
        parts.append(svg("line", x1=x, y1=bottom, x2=x, y2=bottom + 4, class_="axis"))
        text = clock(at, day=time_step >= 1440 * _MINUTE)
        parts.append(svg("text", text, x=x, y=bottom + 17, text_anchor="middle", class_="tick"))
    return parts


def _runs(points: Sequence[ChartPoint], gap: int) -> list[list[ChartPoint]]:
    """Points that are joined: a value that is missing, or a long silence, breaks the line."""
    runs: list[list[ChartPoint]] = [[]]
    last: int | None = None
    for point in points:
        if point.value is None or (last is not None and point.at - last > gap):
            runs.append([])
        if point.value is not None:
            runs[-1].append(point)
            last = point.at
    return [run for run in runs if run]


def _line(scale: _Scale, number: int, line: TimeLine, gap: int) -> Markup:
    shapes = []
    at = coordinate
    for run in _runs(line.points, gap):
        banded = [point for point in run if point.low is not None and point.high is not None]
        if len(banded) > 1:
            upper = [f"{at(scale.x(p.at))} {at(scale.y(p.high or 0.0))}" for p in banded]
            lower = [f"{at(scale.x(p.at))} {at(scale.y(p.low or 0.0))}" for p in reversed(banded)]
            shapes.append(svg("path", d=f"M{' L'.join([*upper, *lower])} Z", class_="band"))
        path = " L".join(f"{at(scale.x(p.at))} {at(scale.y(p.value or 0.0))}" for p in run)
        shapes.append(svg("path", d=f"M{path}", class_="stroke"))
    marked = [point for point in line.points if point.value is not None]
    if len(marked) <= 90:
        for point in marked:
            mark = svg(
                "circle", svg("title", point.label), cx=scale.x(point.at),
                cy=scale.y(point.value or 0.0), r=2.6, class_="mark",
            )  # fmt: skip
            shapes.append(mark)
    return svg("g", *shapes, class_=f"series s{number % MOST_LINES}")


def _drawing(
    label: str,
    lines: Sequence[TimeLine],
    begin: int,
    end: int,
    edges: Sequence[float],
    gap: int,
    size: tuple[float, float, int],
    class_: str,
) -> Markup:
    values = [
        number
        for line in lines
        for point in line.points
        for number in (point.value, point.low, point.high)
        if number is not None
    ]
    width, height, ticks = size
    low, high, step = nice_range([*values, *edges])
    scale = _Scale(width, height, begin, end, low, high)
    parts = _axes(scale, step, ticks)
    for edge in edges:
        y = scale.y(edge)
        parts.append(svg("line", x1=_LEFT, y1=y, x2=width - _RIGHT, y2=y, class_="edge"))
        text = svg("text", f"{edge:g}", x=width - _RIGHT, y=y - 4, text_anchor="end", class_="tick")
        parts.append(text)
    parts += [_line(scale, number, line, gap) for number, line in enumerate(lines)]
    return svg(
        "svg", svg("title", label), *parts, viewBox=f"0 0 {coordinate(width)} {coordinate(height)}",
        role="img", aria_label=label, class_=f"time {class_}",
    )  # fmt: skip


def time_chart(
    label: str,
    lines: Sequence[TimeLine],
    *,
    begin: int,
    end: int,
    edges: Sequence[float] = (),
    gap: int,
) -> Markup | None:
    """Lines over time with their intervals, for a wide screen and for a narrow one.

    `edges` are thresholds; a silence of more than `gap` milliseconds breaks a line.
    """
    if not any(point.value is not None for line in lines for point in line.points):
        return None
    drawn = lines[:MOST_LINES]
    wide = _drawing(label, drawn, begin, end, edges, gap, (1140, 280, 9), "onwide")
    narrow = _drawing(label, drawn, begin, end, edges, gap, (380, 220, 4), "onnarrow")
    return wide + narrow


def spark_line(values: Sequence[float | None], threshold: float | None) -> Markup:
    """The last values of a tile, without axes; what it says stands beside it in numbers."""
    width, height = 200.0, 28.0
    numbers = [value for value in values if value is not None]
    if len(numbers) < 2:
        return Markup("")
    low = min([*numbers, *([] if threshold is None else [threshold])])
    high = max([*numbers, *([] if threshold is None else [threshold])])
    room = (high - low) or 1.0

    def y(value: float) -> float:
        return 3 + (height - 6) * (1 - (value - low) / room)

    step = width / max(len(values) - 1, 1)
    parts = []
    if threshold is not None:
        level = y(threshold)
        parts.append(svg("line", x1=0, y1=level, x2=width, y2=level, class_="edge"))
    points = [ChartPoint(place, value) for place, value in enumerate(values)]
    for run in _runs(points, len(values)):
        path = " L".join(
            f"{coordinate(point.at * step)} {coordinate(y(point.value or 0.0))}" for point in run
        )
        parts.append(svg("path", d=f"M{path}", class_="stroke"))
    return svg(
        "svg", *parts, viewBox=f"0 0 {coordinate(width)} {coordinate(height)}",
        preserveAspectRatio="none", aria_hidden="true", class_="spark",
    )  # fmt: skip


def interval_strip(
    value: float,
    interval: tuple[float | None, float | None] | None,
    edges: Sequence[float],
) -> Markup:
    """A share between 0 and 1 with its interval and its thresholds; nothing for other values."""
    bounds = [bound for bound in (interval or ()) if bound is not None]
    if not all(0 <= number <= 1 for number in (value, *bounds, *edges)):
        return Markup("")
    width, height, margin = 200.0, 14.0, 4.0

    def x(number: float) -> float:
        return margin + (width - 2 * margin) * number

    middle = height / 2
    parts = [svg("line", x1=margin, y1=middle, x2=width - margin, y2=middle, class_="grid")]
    for edge in edges:
        parts.append(svg("line", x1=x(edge), y1=0, x2=x(edge), y2=height, class_="limit"))
    if interval is not None:
        low = 0.0 if interval[0] is None else interval[0]
        high = 1.0 if interval[1] is None else interval[1]
        parts.append(svg("line", x1=x(low), y1=middle, x2=x(high), y2=middle, class_="whisker"))
    parts.append(svg("circle", cx=x(value), cy=middle, r=3.5, class_="dot"))
    return svg(
        "svg", *parts, viewBox=f"0 0 {coordinate(width)} {coordinate(height)}",
        aria_hidden="true", class_="strip",
    )  # fmt: skip


def traffic_bars(minutes: Sequence[MinuteTraffic], begin: int, end: int) -> Markup | None:
    """Samples by the minute, from `begin` up to `end`, as bars."""
    if not minutes:
        return None
    width, height, foot = 1140.0, 64.0, 16.0
    most = max(minute.samples for minute in minutes)
    step = width / (end - begin)
    parts = []
    for minute in minutes:
        if begin <= minute.minute < end:
            tall = (height - foot) * minute.samples / most
            title = f"{clock(minute.minute * _MINUTE, day=False)} UTC: {minute.samples:,} samples"
            parts.append(
                svg(
                    "rect", svg("title", title), x=(minute.minute - begin) * step,
                    y=height - foot - tall, width=max(step - 1, 0.8), height=tall, class_="fill",
                )
            )  # fmt: skip
    parts.append(svg("line", x1=0, y1=height - foot, x2=width, y2=height - foot, class_="axis"))
    total = sum(minute.samples for minute in minutes)
    label = f"Samples by the minute: {total:,} in {end - begin} minutes, at most {most:,}"
    return svg(
        "svg", svg("title", label), *parts, viewBox=f"0 0 {coordinate(width)} {coordinate(height)}",
        role="img", aria_label=shortened(label), preserveAspectRatio="none", class_="traffic",
    )  # fmt: skip
