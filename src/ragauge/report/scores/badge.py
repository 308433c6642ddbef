"""A badge as SVG: the name, and the result of the run in a word and a colour."""

from __future__ import annotations

import html
import math
from typing import NamedTuple

from ragauge.codes import ExitCode
from ragauge.model.phrases import count
from ragauge.model.report import Report, View
from ragauge.model.verdict import Verdict
from ragauge.report.ci.junit_xml import legal
from ragauge.text import plain

_LABEL = "ragauge"
_HEIGHT = 20
_PAD = 6

# White on each of these has a contrast of 4.5 or more.
_COLORS = {
    "pass": "#2a7a2e", "review": "#8a5a00", "fail": "#b3261e", "not-evaluable": "#5f4b8b",
    "none": "#2c5f8a",
}  # fmt: skip

# How wide characters are in the face that most systems take for Verdana at 11 pixels, in tenths.
_WIDTHS = {
    **dict.fromkeys("ijlI|.,:;'! ", 39), **dict.fromkeys("frt()[]/-", 47),
    **dict.fromkeys("cksvxyzJ", 62), **dict.fromkeys("mMW@%", 105), "w": 90,
    **dict.fromkeys("ABCDEFGHKLNOPQRSTUVXYZ", 77),
}  # fmt: skip
_USUAL = 70

_HEADLINE = (
    "answer.coverage", "answer.grounded_precision", "answer.precision", "retrieval.recall",
    "retrieval.hit", "retrieval.mrr",
)  # fmt: skip
"""Metrics that speak for a run without gates, the first that has a value."""


class _BadgeMessage(NamedTuple):
    text: str
    status: str


def _message(view: View) -> _BadgeMessage:
    verdict = view.verdict
    if verdict.exit_code == ExitCode.NOTHING_MEASURED:
        return _BadgeMessage("nothing measured", "not-evaluable")
    if verdict.gates or verdict.blocks:
        return _BadgeMessage(_decided(verdict), verdict.status)
    for base in _HEADLINE:
        for name, result in view.scores.metrics.items():
            ends = (result.value,) if result.band is None else result.band
            known = [_short(end) for end in ends if end is not None]
            if name.partition("@")[0] == base and known:
                short_name = name.partition(".")[2][:40]
                return _BadgeMessage(f"{short_name} {' … '.join(known)}", "none")
    return _BadgeMessage("no gates", "none")


def _decided(verdict: Verdict) -> str:
    if verdict.status == "fail":
        failed = sum(result.status == "fail" and not result.waived for result in verdict.gates)
        return f"fail {count(failed, 'gate')}"
    return "not evaluable" if verdict.status == "not-evaluable" else verdict.status


def _short(value: float) -> str:
    """Two decimals; never a 1 or a 0 that is none."""
    if 0 < value < 1:
        value = min(max(value, 0.01), 0.99)
    return f"{value + 0.0:.2f}"


def _width(text: str) -> int:
    return math.ceil(sum(_WIDTHS.get(character, _USUAL) for character in text) / 10) + 2 * _PAD


def _svg(badge: _BadgeMessage) -> str:
    left, right = _width(_LABEL), _width(badge.text)
    whole = left + right
    label = _LABEL
    message_text = html.escape(legal(plain(badge.text)), quote=False).replace('"', "&quot;")
    half, middle = left / 2, left + right / 2
    words = "".join(
        f'<text x="{x:g}" y="14" textLength="{length}">{text}</text>'
        for x, length, text in (
            (half, left - 2 * _PAD, label),
            (middle, right - 2 * _PAD, message_text),
        )
    )
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{whole}" height="{_HEIGHT}" role="img" '
        f'aria-label="{label}: {message_text}"><title>{label}: {message_text}</title>'
        f'<rect width="{left}" height="{_HEIGHT}" fill="#454545"/>'
        f'<rect x="{left}" width="{right}" height="{_HEIGHT}" fill="{_COLORS[badge.status]}"/>'
        f'<g fill="#fff" text-anchor="middle" font-family="Verdana,DejaVu Sans,sans-serif" '
        f'font-size="11">{words}</g></svg>\n'
    )


REPORT = Report(
    name="badge",
    title="a badge with the verdict, as SVG",
    syntax="xml",
    content=lambda view: _svg(_message(view)),
    suffixes=(".svg",),
    public=True,
)
