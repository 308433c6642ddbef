"""Jupyter notebooks: their Markdown and code cells in order, without what code has printed.

Outputs are left out and counted: they change with every run and would re-key the document.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from ragauge import registry
from ragauge.canontext import utf8, well_formed, without_bom
from ragauge.fields import FieldError, as_list, as_object, as_text, wrong_type
from ragauge.model.corpus import Extent, Heading, Parsed, Parser, Piece

_LINE_END = re.compile(r"\r\n|\r")
_HINT = "save the notebook again with Jupyter"


def parse(source: bytes) -> Parsed:
    """Read a notebook of format 3 or 4."""
    try:
        return _parsed(source)
    except FieldError as error:
        if error.code in ("bad-field", "bad-json", "missing-field"):
            raise FieldError("bad-document", error.message, error.hint) from error
        raise


def _parsed(source: bytes) -> Parsed:
    notebook = _decoded(source)
    language = _language(notebook)
    text = bytearray()
    headings: list[Heading] = []
    pieces: list[Piece] = []
    notes: dict[str, None] = {}
    title: str | None = None
    outputs = attachments = 0
    for cell, path in _cells(notebook):
        kind = as_text(cell.get("cell_type"), f"{path}.cell_type")
        content = _source(cell, path).encode()
        outputs += len(as_list(cell.get("outputs") or [], f"{path}.outputs"))
        attachments += len(as_object(cell.get("attachments") or {}, f"{path}.attachments"))
        if not content.strip():
            continue
        if text:
            text += b"\n\n"
        at, first = len(text), len(pieces)
        text += content
        if kind == "markdown":
            inner = registry.parsers()[".md"].parse(content)
            headings += [_moved_heading(each, at) for each in inner.headings]
            pieces += [_moved_piece(each, at, first) for each in inner.pieces]
            notes.update(dict.fromkeys(inner.notes))
            title = title or inner.title
        elif kind == "heading":  # of format 3
            level = cell.get("level")
            level = level if isinstance(level, int) and 1 <= level <= 6 else 1
            name = " ".join(content.decode().split())
            headings.append(Heading(level=level, title=name, span=(at, len(text))))
            title = title or name
        elif kind == "code":
            own = cell.get("language")  # of format 3
            spoken = _magic(content) or (own if isinstance(own, str) else None) or language
            attrs = {"language": spoken} if spoken else {}
            pieces.append(Piece(type="code", span=(at, len(text)), attrs=attrs))
        else:
            pieces.append(Piece(type="prose", span=(at, len(text))))
    if outputs:
        notes[f"outputs left out: {outputs}"] = None
    if attachments:
        notes[f"attachments left out: {attachments}"] = None
    return Parsed(
        text=bytes(text),
        headings=tuple(headings),
        pieces=tuple(pieces),
        title=title,
        notes=tuple(notes),
    )


def _decoded(source: bytes) -> Mapping[str, Any]:
    import json

    text = utf8(without_bom(source))
    if not text.strip():
        return {"cells": []}  # an empty file, as a new notebook is on some systems
    try:
        value = json.loads(text)
    except RecursionError as error:
        raise FieldError("too-deep", "the objects are nested too deeply", _HINT) from error
    except ValueError as error:
        raise FieldError("bad-json", f"the notebook is not JSON: {error}", _HINT) from error
    return as_object(value, "notebook")


def _cells(notebook: Mapping[str, Any]) -> list[tuple[Mapping[str, Any], str]]:
    """The cells and their paths; format 3 keeps them in worksheets."""
    if "cells" in notebook:
        lists = [(notebook["cells"], "cells")]
    elif "worksheets" in notebook:
        sheets = as_list(notebook["worksheets"], "worksheets")
        lists = [
            (as_object(sheet, f"worksheets[{i}]").get("cells") or [], f"worksheets[{i}].cells")
            for i, sheet in enumerate(sheets)
        ]
    else:
        raise FieldError("missing-field", "the notebook has no `cells`", _HINT)
    return [
        (as_object(cell, f"{path}[{i}]"), f"{path}[{i}]")
        for cells, path in lists
        for i, cell in enumerate(as_list(cells, path))
    ]


def _source(cell: Mapping[str, Any], path: str) -> str:
    """The text of a cell, which is a string or a list of lines; its line ends become LF."""
    value = cell["input"] if "source" not in cell and "input" in cell else cell.get("source", "")
    if isinstance(value, list):
        lines = [as_text(each, f"{path}.source[{i}]") for i, each in enumerate(value)]
        value = "".join(lines)
    if not isinstance(value, str):
        raise wrong_type(f"{path}.source", "a string or a list of strings", value, _HINT)
    return _LINE_END.sub("\n", well_formed(value)).removeprefix("\ufeff").strip("\n")


def _language(notebook: Mapping[str, Any]) -> str | None:
    """The language that the metadata name, of the kernel's own or of its specification."""
    metadata = notebook.get("metadata")
    for part, name in (("language_info", "name"), ("kernelspec", "language")):
        found = metadata.get(part) if isinstance(metadata, dict) else None
        value = found.get(name) if isinstance(found, dict) else None
        if isinstance(value, str) and value:
            return value.lower()
    return None


def _magic(content: bytes) -> str | None:
    """The language that a cell magic such as `%%bash` switches to."""
    languages = {"bash", "sh", "html", "javascript", "js", "latex", "perl", "ruby", "sql", "r"}
    first = content.split(b"\n", 1)[0]
    found = re.match(rb"%%(\w+)", first)
    name = found[1].decode("ascii", "replace").lower() if found else ""
    return {"js": "javascript"}.get(name, name) if name in languages else None


def _moved(span: Extent, by: int) -> Extent:
    return span[0] + by, span[1] + by


def _moved_heading(heading: Heading, by: int) -> Heading:
    return Heading(level=heading.level, title=heading.title, span=_moved(heading.span, by))


def _moved_piece(piece: Piece, by: int, first: int) -> Piece:
    """A piece of a cell as a piece of the notebook; `of` counts the pieces before it."""
    attrs = dict(piece.attrs)
    if isinstance(attrs.get("of"), int):
        attrs["of"] += first
    return Piece(type=piece.type, span=_moved(piece.span, by), attrs=attrs)


PARSER = Parser(name="notebook", title="Jupyter notebook", suffixes=(".ipynb",), parse=parse)
