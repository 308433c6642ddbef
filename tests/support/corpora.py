"""Small corpora for tests, with every byte counted by hand."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from ragauge.corpus.build import build
from ragauge.corpus.lookup import Lookup
from ragauge.corpus.manifest import read_corpus

# Ä has two bytes.
#   0 heading to 7, 9 prose to 41, 43 heading to 51, 53 code to 71, 73 prose to 88; 89 in all
GUIDE = (
    "# Guide\n\nÄpfel are red. Bananas are not.\n\n"
    "## Setup\n\n```sh\nmake all\n```\n\nÄpfel are red.\n"
)
#   0 prose to 8, 10 prose to 18; 19 in all
NOTES = "Plain a.\n\nPlain b.\n"

FIRST, CODE, LAST = "guide.md#S.1.p.Bk001", "guide.md#S.1.1.c.Bk001", "guide.md#S.1.1.p.Bk002"
NOTE = "sub/notes.txt#S.0.p.Bk001"


def made(folder: Path, files: Mapping[str, str | bytes] | None = None, out: str = "corpus") -> Path:
    """Build a corpus of some files, by default the guide and the notes."""
    sources = folder / f"{out}-sources"
    for name, text in (files or {"guide.md": GUIDE, "sub/notes.txt": NOTES}).items():
        path = sources / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text.encode() if isinstance(text, str) else text)
    build([str(sources)], folder / out, workers=1)
    return folder / out


def looked_up(folder: Path, files: Mapping[str, str | bytes] | None = None) -> Lookup:
    """The lookup of such a corpus."""
    return Lookup(read_corpus(made(folder, files)))
