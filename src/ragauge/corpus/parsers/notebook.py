"""Jupyter notebooks: their Markdown and code cells in order, without what code has printed.

Outputs are excluded and counted: they change with every run and would re-key the document. Origins
count characters of the file, without a byte order mark; what is escaped there has none.
"""

from __future__ import annotations

import json
import json.scanner
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from msgspec.structs import replace

from ragauge import registry
from ragauge.corpus.canonical_text import Atom, TextWriter, utf8, well_formed, without_bom
from ragauge.files.fields import FieldError, as_list, as_object, as_text, wrong_type
from ragauge.model.corpus import Extent, Heading, Parsed, Parser, Piece

BOM_CHARACTER = "\ufeff"
# A run that is no escape, two escapes that are one character together, or any other escape.
_RUN = re.compile(
    r"([^\\]+)|\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}"
    r"|\\u[0-9a-fA-F]{4}|\\."
)
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
    writer = TextWriter()
    headings: list[Heading] = []
    pieces: list[Piece] = []
    notes: dict[str, None] = {}
    title: str | None = None
    outputs = attachments = 0
    for cell, path in _cells(notebook):
        kind = as_text(cell.get("cell_type"), f"{path}.cell_type")
        atoms = _source(cell, path)
        content = "".join(text for text, _ in atoms).encode()
        outputs += len(as_list(cell.get("outputs") or [], f"{path}.outputs"))
        attachments += len(as_object(cell.get("attachments") or {}, f"{path}.attachments"))
        if not content.strip():
            continue
        at, end = writer.block(atoms)
        first = len(pieces)
        if kind == "markdown":
            inner = registry.parsers()[".md"].parse(content)
            headings += [replace(one, span=_moved(one.span, at)) for one in inner.headings]
            pieces += [_moved_piece(piece, at, first) for piece in inner.pieces]
            notes.update(dict.fromkeys(inner.notes))
            title = title or inner.title
        elif kind == "heading":  # of format 3
            level = cell.get("level")
            level = level if isinstance(level, int) and 1 <= level <= 6 else 1
            name = " ".join(content.decode().split())
            headings.append(Heading(level=level, title=name, span=(at, end)))
            title = title or name
        elif kind == "code":
            own = cell.get("language")  # of format 3
            spoken = _magic(content) or (own if isinstance(own, str) else None) or language
            attrs = {"language": well_formed(spoken)} if spoken else {}
            pieces.append(Piece(type="code", span=(at, end), attrs=attrs))
        else:
            pieces.append(Piece(type="prose", span=(at, end)))
    if outputs:
        notes[f"outputs left out: {outputs}"] = None
    if attachments:
        notes[f"attachments left out: {attachments}"] = None
    return Parsed(
        text=writer.text,
        origins=writer.origins,
        headings=tuple(headings),
        pieces=tuple(pieces),
        title=title,
        notes=tuple(notes),
    )


class _Placed(str):
    """A text of the file, and the characters that it is written with."""

    at: int
    raw: str


def _decoded(source: bytes) -> Mapping[str, Any]:
    text = utf8(without_bom(source))
    if not text.strip():
        return {"cells": []}  # an empty file, as a new notebook is on some systems
    try:
        value = _placing_decoder().decode(text)
    except RecursionError as error:
        raise FieldError("too-deep", "the objects are nested too deeply", _HINT) from error
    except ValueError as error:
        raise FieldError("bad-json", f"the notebook is not JSON: {error}", _HINT) from error
    return as_object(value, "notebook")


def _placing_decoder() -> json.JSONDecoder:
    """The decoder of the standard library, with texts that know where they stand."""

    def string(text: str, at: int, strict: bool = True) -> tuple[str, int]:
        value, end = json.decoder.scanstring(text, at, strict)  # type: ignore[attr-defined]
        placed = _Placed(value)
        placed.at, placed.raw = at, text[at : end - 1]
        return placed, end

    decoder = json.JSONDecoder()
    decoder.parse_string = string  # type: ignore[attr-defined]
    decoder.scan_once = json.scanner.py_make_scanner(decoder)  # type: ignore[attr-defined]
    return decoder


def _atoms(value: str) -> Iterator[Atom]:
    """A text in runs that stand in the file as they are, and in characters that are escaped."""
    if not isinstance(value, _Placed):
        yield well_formed(value), None
        return
    for run in _RUN.finditer(value.raw):
        if run[1] is not None:
            yield run[1], value.at + run.start()
        else:
            yield well_formed(json.loads(f'"{run[0]}"')), None


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


def _source(cell: Mapping[str, Any], path: str) -> list[Atom]:
    """The text of a cell, which is a string or a list of lines; its line ends become LF."""
    value = cell["input"] if "source" not in cell and "input" in cell else cell.get("source", "")
    if isinstance(value, list):
        parts = [as_text(line, f"{path}.source[{i}]") for i, line in enumerate(value)]
    elif isinstance(value, str):
        parts = [value]
    else:
        raise wrong_type(f"{path}.source", "a string or a list of strings", value, _HINT)
    return _trimmed(_with_plain_ends([atom for part in parts for atom in _atoms(part)]))


def _with_plain_ends(atoms: Sequence[Atom]) -> list[Atom]:
    """Atoms whose line ends are LF; in a file they are escaped, so each is an atom of its own."""
    plain: list[Atom] = []
    after_return = False
    for text, origin in atoms:
        if not (after_return and text == "\n"):
            plain.append(("\n", None) if text == "\r" else (text, origin))
        after_return = text == "\r"
    return plain


def _trimmed(atoms: list[Atom]) -> list[Atom]:
    """Atoms without a byte order mark before them and without empty lines around them."""
    if atoms and atoms[0][0].startswith(BOM_CHARACTER):
        text, origin = atoms[0]
        atoms[0] = text[1:], None if origin is None else origin + 1
    filled = [place for place, (text, _) in enumerate(atoms) if text.strip("\n")]
    return atoms[filled[0] : filled[-1] + 1] if filled else []


def _language(notebook: Mapping[str, Any]) -> str | None:
    """The language that the metadata name, of the kernel's own or of its specification."""
    metadata = notebook.get("metadata")
    for part, name in (("language_info", "name"), ("kernelspec", "language")):
        info = metadata.get(part) if isinstance(metadata, dict) else None
        value = info.get(name) if isinstance(info, dict) else None
        if isinstance(value, str) and value:
            return value.lower()
    return None


def _magic(content: bytes) -> str | None:
    """The language that a cell magic such as `%%bash` switches to."""
    languages = {"bash", "sh", "html", "javascript", "js", "latex", "perl", "ruby", "sql", "r"}
    match = re.match(rb"%%(\w+)", content)
    name = match[1].decode("ascii", "replace").lower() if match else ""
    return {"js": "javascript"}.get(name, name) if name in languages else None


def _moved(span: Extent, by: int) -> Extent:
    return span[0] + by, span[1] + by


def _moved_piece(piece: Piece, by: int, first: int) -> Piece:
    """A piece of a cell as a piece of the notebook; `of` counts the pieces before it."""
    attrs = dict(piece.attrs)
    if isinstance(attrs.get("of"), int):
        attrs["of"] += first
    return replace(piece, span=_moved(piece.span, by), attrs=attrs)


PARSER = Parser(name="notebook", title="Jupyter notebook", suffixes=(".ipynb",), parse=parse)
