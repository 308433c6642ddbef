"""The parts that pages share: tables, facts, gates, notices, and the place of the questions."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from msgspec import Struct

from ragauge.metrics.metric import Better
from ragauge.model import phrases
from ragauge.model.labels import GOOD, MEANINGS
from ragauge.model.metric_names import metric_label
from ragauge.model.verdict import GateResult, Status, Verdict
from ragauge.report.html import charts
from ragauge.report.html.markup import Child, Markup, breakable, element, shortened
from ragauge.report.html.question_table import Choice

TONES: dict[str, str] = {
    "pass": "good", "review": "warn", "fail": "bad", "not-evaluable": "bad", "waived": "warn",
}  # fmt: skip
_SYMBOLS = {"good": "✓", "warn": "!", "bad": "✕", "quiet": "·"}
_MILD = ("OVER_REFUSAL", "CLAIM_MISSING", "OUT_OF_SCOPE")
_UNDECIDED = ("UNLABELLED", "NO_ANSWER")
MARKS = {
    "gold": "evidence", "document": "right document", "negative": "known wrong", "cited": "cited",
}  # fmt: skip
"""How the marks of hits are called on the page."""
PAPER_ROWS = 300
"""Questions that paper and a browser without scripts list."""


class Head(Struct, frozen=True):
    """The head of a column; numbers stand at the right."""

    name: str
    number: bool = False
    about: str | None = None


def chip(word: str, tone: str) -> Markup:
    """A word in a colour, with a sign for those who do not see it."""
    sign = element("span", _SYMBOLS[tone], aria_hidden="true")
    return element("span", sign, f" {word}", class_=f"chip {tone}")


def label_tone(label: str) -> str:
    """The tone of a label."""
    if label in GOOD:
        return "good"
    if label in _UNDECIDED:
        return "quiet"
    return "warn" if label in _MILD else "bad"


LABEL_CHOICES = [Choice(name, label_tone(name), said) for name, said in MEANINGS.items()]


def section(key: str, title: str, *children: Child | Iterable[Child]) -> Markup:
    """A part of the page under its heading."""
    heading = element("h2", title, id=f"{key}-title")
    return element("section", heading, *children, id=key, aria_labelledby=f"{key}-title")


def table(
    caption: str, heads: Sequence[Head | str], rows: Iterable[Sequence[Child]], *, class_: str = ""
) -> Markup:
    """A table that scrolls in itself where it is wider than the screen."""
    columns = [head if isinstance(head, Head) else Head(head) for head in heads]
    top = element(
        "tr",
        [
            element(
                "th",
                head.name,
                scope="col",
                class_="number" if head.number else None,
                title=head.about,
            )
            for head in columns
        ],
    )
    body = [
        element(
            "tr",
            [
                element(
                    "th" if place == 0 else "td",
                    cell,
                    scope="row" if place == 0 else None,
                    class_="number" if columns[place].number else None,
                )
                for place, cell in enumerate(row)
            ],
        )
        for row in rows
    ]
    made = element(
        "table",
        element("caption", caption, class_="unseen"),
        element("thead", top),
        element("tbody", body),
        class_=class_ or None,
    )
    return element("div", made, class_="scroll", tabindex="0", role="region", aria_label=caption)


def facts(pairs: Iterable[tuple[str, Child]]) -> Markup:
    """Names with what is known of them."""
    rows = [
        element("div", element("dt", name), element("dd", value))
        for name, value in pairs
        if value is not None and value != ""
    ]
    return element("dl", rows, class_="facts")


def counts(numbers: Iterable[tuple[str, int, str]]) -> Markup:
    """Counts in large figures, each with its name and a tone."""
    tiles = [
        element("div", element("dt", name), element("dd", f"{count:,}"), class_=f"tile {tone}")
        for name, count, tone in numbers
    ]
    return element("dl", tiles, class_="tiles")


def listed(lines: Iterable[str]) -> Markup | None:
    """Lines as a list; nothing if there are none."""
    items = [element("li", shortened(line, 2000)) for line in lines]
    return element("ul", items, class_="lines") if items else None


def code(text: str | None) -> Markup | None:
    """An id or a place."""
    return None if text is None else element("code", shortened(text))


def verdict_banner(status: Status | None, headline: str, below: Iterable[Child]) -> Markup:
    """What came of it all, at the top of the page."""
    tone = "quiet" if status is None else TONES[status]
    return element(
        "div",
        element("p", chip_sign(tone), element("strong", shortened(headline, 1000))),
        element("p", below, class_="below"),
        class_=f"banner {tone}",
    )


def chip_sign(tone: str) -> Markup:
    """The sign of a tone by itself."""
    return element("span", _SYMBOLS[tone], class_="sign", aria_hidden="true")


def gates(verdict: Verdict) -> Markup:
    """The gates and the blocks, or that there are none."""
    parts: list[Child] = []
    if verdict.blocks:
        told = [f"{block.message} ({block.code})" for block in verdict.blocks]
        parts.append(element("div", listed(told), class_="notice bad"))
    if verdict.gates:
        heads: list[Head | str] = [
            "gate",
            "verdict",
            Head("value", True),
            Head("demand", True),
            Head("margin", True),
            Head("n", True),
            Head("detectable", True, "the change that this n would show in four cases of five"),
            Head("95 % interval", True),
            "note",
        ]
        parts.append(table("Gates", heads, map(_gate, verdict.gates)))
        parts.append(listed(phrases.origins(verdict)))
    else:
        parts.append(element("p", "No gates: nothing was decided.", class_="quiet"))
    return section("gates", "Gates", parts)


def _gate(result: GateResult) -> list[Child]:
    status = "waived" if result.waived else result.status
    metric = f"drop of {result.gate.metric}" if result.gate.is_drop else result.gate.metric
    about = metric if result.gate.part is None else (f"{metric}, {result.gate.part}")
    name = shortened(phrases.gate_name(result))
    below = element("small", breakable(shortened(about))) if about != name else None
    return [
        element("span", name, below, class_="stacked"),
        chip(status, TONES[status]),
        phrases.number(result.value),
        phrases.demand(result),
        phrases.margin(result),
        str(result.n),
        phrases.number(result.detectable),
        phrases.interval(result.interval),
        shortened(phrases.gate_note(result), 400),
    ]


def metric_name(name: str, *, gated: bool, better: Better) -> Markup:
    """A metric's label or id, with what there is to know to read its value."""
    marks = [*(["gated"] if gated else []), *(["less is better"] if better == "lower" else [])]
    told = element("small", f" {' · '.join(marks)}") if marks else None
    return element("span", breakable(shortened(metric_label(name))), told)


def charts_section(figures: Sequence[Markup]) -> Markup | None:
    """The charts side by side; nothing if there are none."""
    if not figures:
        return None
    return section("charts", "Charts", element("div", figures, class_="charts"))


def tone_bars(label: str, counted: Mapping[str, int], tones: Mapping[str, str]) -> Markup:
    """Counts by name as bars."""
    return charts.bars(
        label, [charts.Bar(name, n, tones.get(name, "quiet")) for name, n in counted.items()]
    )


def questions(total: int, paper: Markup | None, notes: Iterable[str]) -> Markup:
    """The place of the table of questions, which the script fills.

    `paper` is the list that is printed, and read where scripts do not run.
    """
    told = list(notes)
    parts: list[Child] = [element("p", line, class_="notice") for line in told]
    parts.append(
        element(
            "noscript",
            element(
                "p",
                f"This browser runs no scripts: the table of all {total:,} questions with its "
                "filters, and the drill-down of each, are missing. All else is here.",
                class_="notice warn",
            ),
        )
    )
    parts.append(element("div", id="table", hidden=True))
    if paper is not None:
        parts.append(element("div", paper, class_="paper"))
    return section("questions", "Questions", parts)


def paper_list(
    title: str, heads: Sequence[str], rows: Sequence[Sequence[Child]], total: int
) -> Markup:
    """A list for paper; how many more there are than it shows is said."""
    made = [element("h3", f"{title} ({total:,})"), table(title, heads, rows)]
    if total > len(rows):
        made.append(element("p", f"... and {total - len(rows):,} more."))
    return element("div", made)
