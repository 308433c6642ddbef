"""The page around its parts: the policy, the style, the script and the data, in one file."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Callable, Sequence
from hashlib import sha256
from typing import Any

from ragauge import __version__
from ragauge.report.html.details import PageDetails
from ragauge.report.html.markup import environment, package_text, raw_text
from ragauge.report.html.size_budget import BUDGET

Blocks = list[tuple[str, str]]
"""The data of a page: names of blocks with their compressed JSON."""
MOST_PRINTED = 300
"""Questions that paper and a browser without scripts list."""
_NOTICE = 2000
"""Bytes that are reserved for what the page says of what was left out."""


def _csp_hash(text: str) -> str:
    return f"'sha256-{b64encode(sha256(text.encode()).digest()).decode()}'"


def policy() -> str:
    """What a browser may do on a page; a server that shows pages says it too."""
    style, script = package_text("report.css"), package_text("report.js")
    return (
        f"default-src 'none'; style-src {_csp_hash(style)}; "
        f"script-src {_csp_hash(script)}; base-uri 'none'; form-action 'none'"
    )


def render(template: str, *, blocks: Blocks, **context: Any) -> str:
    """The whole file, from one of our templates.

    A browser may run our script, use our style, and nothing else: the policy names both by hash.
    """
    style, script = package_text("report.css"), package_text("report.js")
    page = environment().get_template(template)
    return page.render(
        **context,
        version=__version__,
        policy=policy(),
        style=raw_text(style),
        script=raw_text(script),
        blocks=[(name, raw_text(text)) for name, text in blocks],
    )


def fill_page(
    write: Callable[[Blocks, Sequence[str]], str],
    blocks: Blocks,
    details: PageDetails | None,
    budget: int = BUDGET,
) -> str:
    """The page with its drill-downs, as far as they fit; it says what does not fit.

    `write` makes the page from blocks and notes. It is called twice: how much room there is for
    drill-downs is known once all else is written.
    """
    if details is None:
        return write(blocks, ())
    room = budget - len(write(blocks, ()).encode()) - _NOTICE
    detail_blocks = details.blocks_within(room)
    omitted = detail_blocks.omitted
    omissions = omitted.sentences()
    notes = []
    if omissions:
        notes.append(
            f"To keep this page below {budget / 1e6:.1f} MB, {'; '.join(omissions)}. Questions "
            "that fail keep theirs the longest."
        )
        if omitted.answers or omitted.lost_answers or omitted.questions:
            notes.append("The search finds what is on this page.")
    return write([*blocks, *detail_blocks.named], notes)
