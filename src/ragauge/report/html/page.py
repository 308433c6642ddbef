"""The page around its parts: the policy, the style, the script and the data, in one file."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Callable, Iterable, Sequence
from functools import cache
from hashlib import sha256
from importlib.resources import files

from ragauge import __version__
from ragauge.report.html.data_blocks import block
from ragauge.report.html.details import Gathered
from ragauge.report.html.markup import Child, Markup, element, own_text, shortened, together
from ragauge.report.html.size_budget import BUDGET


@cache
def _asset(name: str) -> str:
    """A file beside this module; line ends are the same everywhere, since the policy hashes it."""
    return (files("ragauge.report.html") / name).read_text("utf-8").replace("\r\n", "\n")


def _hashed(text: str) -> str:
    return f"'sha256-{b64encode(sha256(text.encode()).digest()).decode()}'"


def policy() -> str:
    """What a browser may do with the page: run our script, use our style, and nothing else."""
    return (
        f"default-src 'none'; style-src {_hashed(_asset('report.css'))}; "
        f"script-src {_hashed(_asset('report.js'))}; base-uri 'none'; form-action 'none'"
    )


def page(
    title: str,
    head: Iterable[Child],
    parts: Sequence[tuple[str, str, Markup | None]],
    blocks: Iterable[tuple[str, str]],
) -> str:
    """The whole file. `parts` are sections with the name and the key of their link."""
    shown = [(name, key, part) for name, key, part in parts if part is not None]
    links = [element("li", element("a", name, href=f"#{key}")) for name, key, _ in shown if name]
    body = [
        element("a", "Skip to the questions", href="#questions", class_="skip"),
        element(
            "header",
            element(
                "div",
                element("p", "ragauge", class_="brand"),
                element("nav", element("ul", links), aria_label="Parts of this page"),
                element("button", "Theme", id="theme", type="button", hidden=True),
                class_="bar",
            ),
        ),
        element("main", head, [part for _, _, part in shown]),
        element("footer", element("p", f"ragauge {__version__}. This file needs no network.")),
        element("dialog", id="drill", aria_labelledby="drill-title"),
        together(block(name, text) for name, text in blocks),
        own_text("script", _asset("report.js")),
    ]
    document = element(
        "html",
        element(
            "head",
            element("meta", charset="utf-8"),
            element("meta", http_equiv="Content-Security-Policy", content=policy()),
            element("meta", name="viewport", content="width=device-width, initial-scale=1"),
            element("meta", name="color-scheme", content="light dark"),
            element("meta", name="referrer", content="no-referrer"),
            element("title", shortened(title)),
            own_text("style", _asset("report.css")),
        ),
        element("body", body),
        lang="en",
    )
    return f"<!doctype html>\n{document.source}\n"


Blocks = list[tuple[str, str]]
_NOTICE = 2000
"""Bytes that are kept free for what the page says of what was left out."""


def filled(
    write: Callable[[Blocks, Sequence[str]], str],
    blocks: Blocks,
    details: Gathered | None,
    budget: int = BUDGET,
) -> str:
    """The page with its drill-downs, as far as they fit; what does not fit is told on it."""
    if details is None:
        return write(blocks, ())
    room = budget - len(write(blocks, ()).encode()) - _NOTICE
    made = details.packed(room)
    told = made.omitted.sentences()
    notes = []
    if told:
        notes.append(
            f"To keep this page below {budget / 1e6:.1f} MB, {'; '.join(told)}. Questions that "
            "fail keep theirs the longest."
        )
        if made.omitted.answers or made.omitted.lost_answers or made.omitted.questions:
            notes.append("The search finds what is on this page.")
    return write([*blocks, *made.named], notes)
