"""A small corpus with umlauts and emoji, whose bytes are counted by hand in the tests."""

from __future__ import annotations

from typing import Any

from ragauge.corpus.build import build
from ragauge.corpus.lookup import Lookup, open_corpus
from tests.support.command import Folder

# ö, ß and ä take two bytes each, 🙂 takes four.
GUIDE = (
    "# Größe\n\nDie Größe 🙂 zählt.\n\n## Port\n\nThe port is 8080. It can be changed.\n\n"
    "```toml\nport = 8080\n```\n\n## Host\n\nThe host is local. It can be changed.\n"
)
NOTES = "Old settings are kept for a day.\n\nThe port is 8080. It can be changed.\n"
BLOCK = "guide.md#S.1.p.Bk001"
PORT = "guide.md#S.1.1.p.Bk001"
CODE = "guide.md#S.1.1.c.Bk002"
HOST = "guide.md#S.1.2.p.Bk001"


def make_corpus(folder: Folder, **files: str) -> Lookup:
    """Build `corpus` from the two documents, or from others, given as name=text."""
    given = {name.replace("_", "."): text for name, text in files.items()}
    for name, text in (given or {"guide.md": GUIDE, "notes.txt": NOTES}).items():
        folder.write(f"docs/{name}", text)
    build(["docs"], "corpus", workers=1)
    return open_corpus("corpus")


def bytes_of(lookup: Lookup, entry: dict[str, Any]) -> str:
    """The text at the place of an entry."""
    return lookup.text(entry["doc"])[entry["start"] : entry["end"]].decode()
