"""Names of documents: which document of a corpus is meant by a path that begins otherwise.

Loaders write the path that they opened (`/data/docs/guide/a.md`), and a corpus the path below its
own root (`guide/a.md`). One is the end of the other, part by part.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import NamedTuple
from urllib.parse import unquote

_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]{0,30}://")
_SEVERAL = ""
"""Stands for the documents of a name that several end with; no document is called so."""


class DocumentMatch(NamedTuple):
    """The document that a name means: one, none, or several (`ambiguous`)."""

    doc: str | None = None
    ambiguous: bool = False


class DocumentNames:
    """Finds the documents of a corpus by any path that ends as theirs, or that theirs ends as."""

    def __init__(self, names: Iterable[str]) -> None:
        self._names: dict[str, str] = {}
        self._ends: dict[str, str] = {}
        for name in names:
            parts = _parts(name)
            # Two documents may be one when written plainly; then only their own names tell them.
            whole = "/".join(parts)
            self._names[whole] = _SEVERAL if whole in self._names else name
            for first in range(1, len(parts)):
                end = "/".join(parts[first:])
                self._ends[end] = _SEVERAL if end in self._ends else name
        self._exact = frozenset(names)
        self._matches: dict[str, DocumentMatch] = {}

    def match(self, name: str) -> DocumentMatch:
        """The document that a name means."""
        match = self._matches.get(name)
        if match is None:
            match = self._match(name)
            if match.doc is None and not match.ambiguous and "%" in name:
                match = self._match(unquote(name))
            self._matches[name] = match
        return match

    def _match(self, name: str) -> DocumentMatch:
        if name in self._exact:
            return DocumentMatch(name)
        parts = _parts(name)
        # The longest end first: `a/b.md` is meant by `/docs/a/b.md`, not `b.md`.
        for first in range(len(parts)):
            doc = self._names.get("/".join(parts[first:]))
            if doc is not None:
                if doc == _SEVERAL:
                    return DocumentMatch(ambiguous=True)
                return DocumentMatch(doc)
        whole = "/".join(parts)
        doc = self._ends.get(whole)
        if doc is None:
            return DocumentMatch()
        if doc == _SEVERAL:
            return DocumentMatch(ambiguous=True)
        return DocumentMatch(doc)


def prefix_between(name: str, doc: str) -> str:
    """What a name has before a document's, or the document's before the name; else nothing."""
    path = name.replace("\\", "/")
    if path.endswith(f"/{doc}"):
        return name[: len(name) - len(doc)]
    return doc[: len(doc) - len(path)] if doc.endswith(f"/{path}") else ""


def _parts(name: str) -> list[str]:
    """The parts of a path or an address, whatever separates them."""
    path = name.replace("\\", "/")
    if scheme := _SCHEME.match(path):
        path = path[scheme.end() :]
    return [part for part in path.split("/") if part not in ("", ".")]
