"""reStructuredText: docutils finds the blocks, the text stays the bytes of the file.

Nothing is included, inserted or fetched, and directives or roles that docutils does not know, such
as those of Sphinx, stay prose. What docutils says of such directives is not enough to find their
ends; so explicit markup is found here by its indentation: it begins at the left margin and goes on
as long as lines are blank or indented.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal

from msgspec import Struct

from ragauge.corpus.canonical_text import (
    line_starts,
    lines_of,
    missing_package,
    trimmed,
    utf8,
    without_bom,
)
from ragauge.files.fields import FieldError
from ragauge.model.corpus import BlockType, Heading, Parsed, Parser, Piece

if TYPE_CHECKING:
    from docutils import nodes

_EXPLICIT = re.compile(r"\.\.(?:\s|$)")
_DIRECTIVE = re.compile(r"\.\.\s+([\w][\w:.+-]*?)\s*::(?:\s+(\S(?:.*\S)?)?)?\s*$")
_NOTE = re.compile(r"\.\.\s+\[[^\]]+\]\s")
_ADORNMENT = re.compile(r"([!-/:-@\[-`{-~])\1*\s*$")  # a character repeated, around titles
_OPTION = re.compile(r"\s+:([\w-]+(?: [\w-]+)*):(?:\s+(\S(?:.*\S)?)?)?\s*$")
_ROLE = re.compile(r":[\w.+:-]+:`([^`]*)`")
_LITERAL = re.compile(r"``(.+?)``")
_QUOTED = re.compile(r"`([^`]+)`_{0,2}")
_STRESSED = re.compile(r"(\*\*?)(\S(?:.*?\S)?)\1")
_TARGET = re.compile(r"(?<!\s)\s*+<[^<>]*>\s*$")
# Longer titles are shown as they are written: inline markup is not linear in length.
_LONGEST_INLINE = 4_000


class Explicit(Struct, frozen=True):
    """Explicit markup: its first line, the line behind its last, and what it is.

    `name` is that of a directive, `note` for footnotes and citations, and empty for targets,
    comments and substitutions. `body` is the first line behind the argument and the options.
    """

    first: int
    end: int
    name: str = ""
    argument: str = ""
    options: dict[str, str] = {}
    body: int = 0


def explicit_blocks(lines: Sequence[str]) -> list[Explicit]:
    """All explicit markup at the left margin; lines are counted from 0."""
    blocks = []
    at, free = 0, True  # whether a block may begin here
    while at < len(lines):
        line = lines[at]
        if free and _EXPLICIT.match(line):
            end = at + 1
            while end < len(lines) and (not lines[end].strip() or lines[end][0] in " \t"):
                end += 1
            blocks.append(_explicit(lines, at, end))
            at = end
            continue
        free = not line.strip() or _ADORNMENT.match(line) is not None
        at += 1
    return blocks


def _explicit(lines: Sequence[str], first: int, end: int) -> Explicit:
    while end > first + 1 and not lines[end - 1].strip():
        end -= 1
    directive = _DIRECTIVE.match(lines[first])
    if directive is None:
        return Explicit(first, end, "note" if _NOTE.match(lines[first]) else "", body=end)
    options: dict[str, str] = {}
    body = first + 1
    while body < end and lines[body].strip():
        option = _OPTION.match(lines[body])
        if option is not None:
            options[option[1]] = option[2] or ""
        elif not options:  # the argument goes on, or the content begins
            break
        body += 1
    while body < end and not lines[body].strip():
        body += 1
    return Explicit(first, end, directive[1].lower(), directive[2] or "", options, body)


def plain_title(line: str) -> str:
    """A title without its inline markup; roles are taken at their word, known or not."""
    line = line.strip()
    if len(line) > _LONGEST_INLINE:
        return line
    line = _ROLE.sub(lambda match: _TARGET.sub("", match[1]) or match[1], line)
    line = _LITERAL.sub(r"\1", line)
    line = _QUOTED.sub(lambda match: _TARGET.sub("", match[1]) or match[1], line)
    return _STRESSED.sub(r"\2", line)


CODE = frozenset(
    ("code", "code-block", "sourcecode", "parsed-literal", "doctest", "testcode", "testoutput",
     "prompt", "ipython", "jupyter-execute", "productionlist")
)  # fmt: skip
TABLES = frozenset(("table", "list-table", "csv-table", "flat-table"))
FIGURES = frozenset(("image", "figure"))
# Directives that are about the document and say nothing themselves.
SILENT = frozenset(
    ("", "contents", "sectnum", "section-numbering", "meta", "include", "raw", "role",
     "default-role", "title", "date", "target-notes", "toctree", "index", "highlight",
     "currentmodule", "py:currentmodule", "literalinclude")
)  # fmt: skip
_OTHER_LINE_ENDS = re.compile("[\x0b\x0c\x1c-\x1e\x85\u2028\u2029\x00]")


class _RstBlock(Struct):
    """What begins at a line, counted from 0, and ends where the next one begins.

    Of a heading `title` is the line of its words, behind the first if there is a line over them.
    """

    first: int
    kind: BlockType | Literal["heading", ""]
    level: int = 0
    title: int = 0
    attrs: dict[str, Any] = {}
    explicit: Explicit | None = None


def parse(source: bytes) -> Parsed:
    """Read a file of reStructuredText."""
    text = without_bom(source)
    lines = lines_of(utf8(text))
    starts = [*line_starts(text), len(text)]
    tree = _doctree([_OTHER_LINE_ENDS.sub(" ", line) for line in lines])
    explicit = explicit_blocks(lines)
    inside = {line for markup in explicit for line in range(markup.first, markup.end)}
    tables = _tables(tree)
    docutils_blocks = [block for block in _blocks(tree, 0, lines) if block.first not in inside]
    # A table with no blank line behind it has a wrong line, which may be one of a heading.
    in_headings = {
        line
        for block in docutils_blocks
        if block.kind == "heading"
        for line in range(block.first, block.title + 2)
    }
    blocks = [
        _RstBlock(markup.first, "", explicit=markup)
        for markup in explicit
        if markup.first not in in_headings  # a title between two lines may look like one
    ]
    blocks += [
        block
        for block in docutils_blocks
        if block.kind == "heading" or block.first not in in_headings
    ]
    blocks.sort(key=lambda block: block.first)
    headings: list[Heading] = []
    pieces = _piece(text, starts, 0, blocks[0].first if blocks else len(lines), "prose", {})
    highlight = ""
    after_heading = 0  # the line behind the last heading
    ends = [*(block.first for block in blocks[1:]), len(lines)]
    for block, end in zip(blocks, ends, strict=False):
        if block.kind == "heading":
            # What looks like a line over the title may be the one under the title before.
            first = max(block.first, after_heading)
            after_heading = min(block.title + 2, len(lines))
            span = trimmed(text, starts[first], starts[after_heading])
            heading = plain_title(lines[block.title])
            headings.append(Heading(level=block.level, title=heading, span=span))
            pieces += _piece(text, starts, min(after_heading, end), end, "prose", {})
        elif block.explicit is not None:
            if block.explicit.name == "highlight":
                highlight = block.explicit.argument.lower()
            pieces += _directive(text, starts, block.explicit, tables, len(pieces))
            # What docutils gave no line of its own, such as a damaged table, is still text.
            pieces += _piece(text, starts, block.explicit.end, end, "prose", {})
        elif block.kind == "code" and not block.attrs and highlight not in ("", "none"):
            pieces += _piece(text, starts, block.first, end, "code", {"language": highlight})
        elif block.kind:
            pieces += _piece(text, starts, block.first, end, block.kind, block.attrs)
        else:
            pieces += _piece(text, starts, block.first + 1, end, "prose", {})
    title = headings[0].title if headings else None
    return Parsed(text=text, headings=tuple(headings), pieces=tuple(pieces), title=title)


def _doctree(lines: list[str]) -> nodes.document:
    """What docutils makes of the lines, without reading any other file or printing anything."""
    try:
        from docutils.frontend import get_default_settings
        from docutils.parsers.rst import Parser as Docutils
        from docutils.utils import new_document
    except ImportError as error:
        raise missing_package("reStructuredText") from error
    settings = get_default_settings(Docutils)
    settings.report_level = settings.halt_level = 5
    settings.warning_stream = False
    settings.file_insertion_enabled = settings.raw_enabled = False
    settings.syntax_highlight = "none"
    settings.line_length_limit = max(10_000, *map(len, lines)) + 1
    document = new_document("source", settings)
    try:
        Docutils().parse("\n".join(lines), document)
    except RecursionError as error:
        raise FieldError(
            "too-deep", "the blocks are nested too deeply", "nest lists and quotes less"
        ) from error
    return document


def _blocks(parent: nodes.Element, depth: int, lines: list[str]) -> list[_RstBlock]:
    """The blocks of a document or a section in order; what stands in lists and quotes is theirs."""
    from docutils import nodes

    blocks: list[_RstBlock] = []
    for node in parent.children:
        line = (getattr(node, "line", None) or 0) - 1
        if isinstance(node, nodes.section):
            under = min(line, len(lines) - 1)
            over = under >= 2 and _ADORNMENT.match(lines[under - 2]) and lines[under - 1]
            title = max(under - 1, 0)
            first = title
            if over and lines[under - 2].rstrip() == lines[under].rstrip():
                first -= 1
            blocks.append(_RstBlock(first, "heading", depth + 1, title))
            blocks += _blocks(node, depth + 1, lines)
        elif 0 <= line < len(lines) and not isinstance(node, nodes.title | nodes.system_message):
            kind, attrs = _kind(node)
            blocks.append(_RstBlock(line, kind, attrs=attrs))
    return blocks


def _kind(node: nodes.Node) -> tuple[BlockType | Literal[""], dict[str, Any]]:
    from docutils import nodes

    if isinstance(node, nodes.doctest_block):
        return "code", {"language": "pycon"}
    if isinstance(node, nodes.literal_block):
        return "code", {}
    if isinstance(node, nodes.table):
        return "table", _size(node)
    if isinstance(node, nodes.transition | nodes.comment | nodes.target):
        return "", {}
    return "prose", {}


def _tables(tree: nodes.document) -> dict[int, dict[str, Any]]:
    """The size of each table by its line."""
    from docutils import nodes

    tables = tree.findall(nodes.table)
    return {table.line - 1: _size(table) for table in tables if table.line is not None}


def _size(table: nodes.table) -> dict[str, Any]:
    from docutils import nodes

    return {
        "rows": sum(1 for _ in table.findall(nodes.row)),
        "columns": sum(1 for _ in table.findall(nodes.colspec)),
    }


def _directive(
    text: bytes,
    starts: list[int],
    directive: Explicit,
    tables: dict[int, dict[str, Any]],
    place: int,
) -> list[Piece]:
    """The pieces of a directive; a caption and a legend are pieces of their own."""
    first, end = directive.first, directive.end
    if directive.name in CODE:
        language = directive.argument.lower() or ("pycon" if directive.name == "doctest" else "")
        plain = directive.name in ("parsed-literal", "productionlist", "testoutput")
        attrs = {"language": language} if language and not plain else {}
        return _piece(text, starts, first, end, "code", attrs)
    if directive.name in TABLES:
        near = (size for line, size in tables.items() if first <= line < end)
        attrs = next(near, {})
        if not directive.argument or directive.body >= end:
            return _piece(text, starts, first, end, "table", attrs)
        title = directive.argument.encode()
        begin = text.index(title, text.index(b"::", starts[first]) + 2)
        span = (begin, begin + len(title))
        caption = [Piece(type="caption", span=span, attrs={"of": place + 1})]
        return caption + _piece(text, starts, first + 1, end, "table", attrs)
    if directive.name in FIGURES:
        attrs = {"alt": directive.options["alt"]} if directive.options.get("alt") else {}
        pieces = _piece(text, starts, first, directive.body, "figure", attrs)
        if directive.body < end:
            lines = range(directive.body, end)
            blank = (line for line in lines if not text[starts[line] : starts[line + 1]].strip())
            break_at = next(blank, end)
            pieces += _piece(text, starts, directive.body, break_at, "caption", {"of": place})
            pieces += _piece(text, starts, break_at, end, "prose", {})
        return pieces
    return [] if directive.name in SILENT else _piece(text, starts, first, end, "prose", {})


def _piece(
    text: bytes, starts: list[int], first: int, end: int, kind: BlockType, attrs: dict[str, Any]
) -> list[Piece]:
    """A piece of whole lines, or nothing if they are blank."""
    span = trimmed(text, starts[first], starts[end])
    if span[0] == span[1]:
        return []
    if kind != "code":
        inside = text[span[0] : span[1]]
        span = (span[1] - len(inside.lstrip(b" \t")), span[1])
    return [Piece(type=kind, span=span, attrs=attrs)]


PARSER = Parser(name="rst", title="reStructuredText", suffixes=(".rst",), parse=parse, version=2)
