"""Owns the page of the benchmarks: its headings, and a marked block for what each one printed."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

INTRODUCTION = """\
# Benchmarks

Written by `make bench` and `make slow`. Each table names the command that made it. The machine is
shared: compare the ratios, not the seconds. `benchmarks/README.md` says what is measured and how to
run it again.
"""
TITLES = {
    "score": "Scoring traces, beside a plain scorer",
    "gold": "Memory with large gold sets, beside a plain scorer",
    "store": "Storing and comparing runs, beside plain scripts",
    "report": "Writing a run as a page, beside scoring it",
    "trec": "Scoring TREC files, beside other libraries",
    "resampling": "Intervals and tests, beside plain numpy",
    "corpus": "Building a corpus and following an edit, beside reading it",
    "runner": "Asking a system, beside a bare loop",
    "spans": "Importing spans, beside decoding them",
    "versions": "Before and after the last large change",
    "slow-fuzz": "Campaign: properties and oracles with many examples",
    "fuzz": "Campaign: broken input for every reader, parser and command",
    "slow-imports": "Campaign: exports of other tools",
    "slow-docs": "Campaign: every command of every page",
    "slow-documents": "Campaign: real documents, and changed ones",
    "slow-live": "Campaign: a server under load",
    "slow-scale": "Campaign: large files, cut in many ways",
    "slow-chunkings": "Campaign: chunkings against the truth",
    "slow-stats": "Campaign: how often intervals cover, and equal runs differ",
}


def markers(name: str) -> tuple[str, str]:
    """Say what stands before and after a block."""
    return f"<!-- {name}:begin -->\n", f"\n<!-- {name}:end -->"


def write_sections(path: Path, measured: Mapping[str, str]) -> None:
    """Write the blocks that were measured; all else on the page stays as it is."""
    page = path.read_text(encoding="utf-8") if path.exists() else INTRODUCTION
    for name, text in measured.items():
        page = _with_section(page, name, text, path.name)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(page, encoding="utf-8", newline="\n")


def _with_section(page: str, name: str, text: str, page_name: str) -> str:
    begin, end = markers(name)
    before, opened, rest = page.partition(begin)
    if opened:
        _, closed, after = rest.partition(end)
        if not closed:
            raise SystemExit(f"error: {page_name} has {begin.strip()} but not {end.strip()}")
        return f"{before}{begin}{text}{end}{after}"
    section = f"## {TITLES[name]}\n\n{begin}{text}{end}\n"
    names = list(TITLES)
    for following in names[names.index(name) + 1 :]:
        heading = f"## {TITLES[following]}\n"
        if heading in page:
            return page.replace(heading, f"{section}\n{heading}", 1)
    return f"{page.rstrip()}\n\n{section}"
