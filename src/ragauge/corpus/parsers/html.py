"""HTML: blocks of visible text, from the tags and characters that turbohtml finds.

turbohtml's tokenizer is that of the HTML standard: what it makes of malformed markup is defined
there, and does not change from one version to the next. A block ends where the standard says that
an element does, whatever is not closed or not nested. Head, scripts, styles, templates and
navigation are excluded; headers, footers and asides stay. The origins count characters of the
decoded source, without a byte order mark.
"""

from __future__ import annotations

import codecs
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from ragauge.corpus.canonical_text import (
    Atom,
    TextWriter,
    missing_package,
    stripped,
    utf8,
    without_bom,
)
from ragauge.files.fields import FieldError
from ragauge.model.corpus import BlockType, Heading, Parsed, Parser, Piece

# Tokens with their places in the source

_LINE_END = re.compile(r"(\r\n|\r|\n)")
_NOTHING = "</>"
"""What the standard passes over, as if it were not there."""
_NOT_ALIKE = re.compile(r"\r\n|</>")  # where turbohtml's text is not what the source has
_BEFORE_VALUE = re.compile(r"""[^=]*=\s*(["']?)""")
_CHARSET = re.compile(
    rb"""<meta\s[^>]*?charset\s*=\s*["']?\s*([\w:.-]+)|^\s*<\?xml[^>]*?encoding=["']([\w:.-]+)""",
    re.IGNORECASE,
)
# Codecs of Python that are none of files; and a page cannot say in ASCII that it is UTF-16, so the
# standard takes that as UTF-8.
_NOT_FOR_FILES = ("idna", "punycode", "unicode", "raw_unicode", "undefined", "utf-7", "utf-16")


class Tag(Struct, frozen=True):
    """A start tag or an end tag; `raw` is how the source has it, from a place on."""

    name: str
    closing: bool
    attrs: Mapping[str, str] = {}
    raw: str = ""
    start: int = 0


class Chars(Struct, frozen=True):
    """Characters between tags; a reference such as `&amp;` is what it stands for."""

    text: str
    start: int


class UnfinishedMarkup(Struct, frozen=True):
    """The end of a source that is no text, because a tag or a comment in it never ends."""

    start: int


def decoded(source: bytes) -> tuple[str, tuple[str, ...]]:
    """Decode a page by its byte order mark, its declared charset, or as UTF-8; and notes on it."""
    if source.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return _by(source, "utf-16"), ("decoded as utf-16, as its byte order mark says",)
    plain = without_bom(source)
    # The standard looks at the first 1,024 bytes; a byte order mark counts for more.
    declared = _CHARSET.search(plain[:1024]) if plain is source else None
    if declared is None:
        return utf8(plain), ()
    name = (declared[1] or declared[2]).decode("ascii", "replace").lower()
    # What the web calls Latin-1 and ASCII has always been Windows-1252.
    name = {"iso-8859-1": "cp1252", "latin1": "cp1252", "us-ascii": "cp1252"}.get(name, name)
    try:
        codec = codecs.lookup(name)
    except LookupError:
        return utf8(plain), (f"its charset `{name}` is unknown; decoded as UTF-8",)
    if codec.name == "utf-8" or codec.name.startswith(_NOT_FOR_FILES):
        return utf8(plain), ()
    return _by(plain, codec.name), (f"decoded as {codec.name}, as its charset says",)


def _by(source: bytes, codec: str) -> str:
    try:
        return source.decode(codec)
    except (UnicodeError, LookupError) as error:  # not every codec is one of text
        message = f"the bytes are not {codec}, which the page says they are"
        hint = "convert the file to UTF-8, and its charset too"
        raise FieldError("bad-encoding", message, hint) from error


def tokens(source: str) -> Iterator[Tag | Chars | UnfinishedMarkup]:
    """The tags and the characters of a source in order, without comments and declarations."""
    try:
        from turbohtml import TokenType, tokenize
    except ImportError as error:
        raise missing_package("HTML") from error
    # Tokens have a line and a column; their offsets count CRLF as one character, the source as two.
    lines = [0, *(line_end.end() for line_end in _LINE_END.finditer(source))]
    end, token = 0, None
    for token in tokenize(source, resolve_references=False, capture_source=True):
        start = lines[token.line - 1] + token.col
        if token.type == TokenType.TEXT:
            for chars in _runs(token.data or "", source, start):
                yield chars
                end = chars.start + len(chars.text)
            continue
        raw = token.source or ""
        end = _behind(source, start, len(raw))
        if token.type == TokenType.CHARACTER_REFERENCE:
            yield from _reference(token.data or "", raw, start)
        elif token.tag is not None:
            closing = token.type == TokenType.END_TAG
            attrs = dict(token.attrs or ())
            yield Tag(token.tag, closing, attrs, source[start:end] if attrs else "", start)
    # Where a page ends inside a tag, the standard drops the rest and there is no token for it. A
    # comment or declaration that never ends is a token, but what it has swallowed is no markup.
    markup = token.source if token is not None and token.tag is None else None
    if markup and markup[0] == "<" and markup[-1] != ">":
        end = start
    if source[end:].replace(_NOTHING, ""):
        yield UnfinishedMarkup(end)


def _runs(data: str, source: str, at: int) -> Iterator[Chars]:
    """Text as the source has it: with its own line ends, and apart where `</>` was passed over."""
    if source.startswith(data, at):
        yield Chars(data, at)
        return
    # `left` counts the characters of the token that the source still has to account for.
    begin, left = at, len(data)
    for match in _NOT_ALIKE.finditer(source, at):
        if match.start() - at >= left:
            break
        left -= match.start() - at
        at = match.end()
        if match[0] == "\r\n":
            left -= 1
        elif data.startswith(_NOTHING, len(data) - left):  # in a script it is text
            left -= len(_NOTHING)
        else:
            if match.start() > begin:
                yield Chars(source[begin : match.start()], begin)
            begin = at
    if at + left > begin:
        yield Chars(source[begin : at + left], begin)


def _behind(source: str, start: int, length: int) -> int:
    """Where a number of characters ends, if CR and LF together count as one."""
    end = start + length
    at = source.find("\r\n", start, end)
    while at >= 0:
        end += 1
        at = source.find("\r\n", at + 2, end)
    return end


def _reference(meant: str, raw: str, start: int) -> Iterator[Chars]:
    """What a reference stands for; letters behind one without `;` are their own.

    In `&notit` the token has these letters, too: what is equal at the end of both is text.
    """
    behind = 0
    while behind < len(meant) - 1 and meant[-1 - behind] == raw[-1 - behind]:
        behind += 1
    yield Chars(meant[: len(meant) - behind], start)
    if behind:
        yield Chars(meant[-behind:], start + len(raw) - behind)


def value_atoms(tag: Tag, name: str) -> list[Atom]:
    """The value of an attribute, with the places in the source that it comes from."""
    from turbohtml import parse_fragment

    value = tag.attrs.get(name, "")
    if not value:
        return []
    # The tokenizer gives the value of an attribute without its place, the tree of a fragment gives
    # the place. References in between shift places, so the bare value is read once more as the
    # text of a title, in which only references count.
    raw = tag.raw.replace("\r", " ")  # as long as it was, and white space as well
    element = parse_fragment(raw, source_locations=True).find(tag.name)
    where = element.source_location if element is not None else None
    if where is None or name not in where.attrs:
        return [(value, tag.start)]
    first, end = where.attrs[name].start_offset, where.attrs[name].end_offset
    opening = _BEFORE_VALUE.match(raw, first, end)
    if opening is None:
        return [(value, tag.start + first)]
    first, end = opening.end(), end - len(opening[1])
    atoms = [
        (token.text, tag.start + first + token.start - len("<title>"))
        for token in tokens(f"<title>{raw[first:end]}")
        if isinstance(token, Chars)
    ]
    # Inside of attributes some references without `;` are none.
    same = "".join(text for text, _ in atoms).split() == value.split()
    return list(atoms) if same else [(value, tag.start + first)]


# Blocks of text

MAX_DEPTH = 512  # as browsers do; deeper elements still give their text
HEADINGS = frozenset(("h1", "h2", "h3", "h4", "h5", "h6"))
LISTS = frozenset(("ul", "ol", "dl", "menu", "dir"))
PREFORMATTED = frozenset(("pre", "listing", "xmp", "plaintext"))
ROWS = frozenset(("thead", "tbody", "tfoot"))
CELLS = frozenset(("td", "th"))
TABLE_PARTS = ROWS | CELLS | {"tr", "caption", "colgroup"}
VOID = frozenset(
    "area base br col embed hr img input link meta param source track wbr".split()  # noqa: SIM905
)
DROPPED = frozenset(
    "head script style template noscript nav svg textarea iframe noembed noframes title".split()  # noqa: SIM905
)
IN_HEAD = frozenset(
    "base link meta title noscript noframes style script template head".split()  # noqa: SIM905
)
# A heading that was not closed ends at these; the standard would make them its children, and all
# that follows would be one title.
ENDS_HEADING = LISTS | PREFORMATTED | HEADINGS
ENDS_HEADING |= {"p", "table", "blockquote", "section", "article", "figure", "hr"}
BLOCKS = ENDS_HEADING | TABLE_PARTS
BLOCKS |= set(
    """address aside body center dd details dialog div dt fieldset figcaption footer form header
    hgroup html legend li main nav option optgroup search select summary""".split()  # noqa: SIM905
)
# A `p` that was not closed ends at any other block, and not at these.
KEEPS_P = TABLE_PARTS | {"option", "optgroup", "select", "legend", "body", "html"}
SCOPE = CELLS | {"table", "caption"}  # no end tag inside of these closes what is outside

_WORDS = re.compile(r"[^ \t\n\f\r]+(?: [^ \t\n\f\r]+)*")
_LANGUAGE = re.compile(r"(?:^|\s)(?:language|lang|highlight)-(?:source-)?([\w+#.-]+)")
_SPACE, _NEWLINE = 1, 2


def parse(source: bytes) -> Parsed:
    """Read a page of HTML."""
    text, notes = decoded(source)
    reader = _HtmlReader()
    for token in tokens(text.replace("\x00", "\ufffd")):
        if isinstance(token, UnfinishedMarkup):
            line, rest = text.count("\n", 0, token.start) + 1, len(text) - token.start
            notes += (f"a tag or comment in line {line} never ends: {rest} characters left out",)
        elif isinstance(token, Chars):
            reader.chars(token)
        elif token.closing:
            reader.end(token.name)
        else:
            reader.start(token)
    reader.close(len(reader.stack))
    reader.flush()
    if reader.left_out:
        notes += (f"navigation left out: {reader.left_out}",)
    first = next((heading.title for heading in reader.headings if heading.level == 1), None)
    return Parsed(
        text=reader.writer.text,
        headings=tuple(reader.headings),
        pieces=tuple(reader.pieces),
        title=" ".join(reader.title.split()) or first,
        origins=reader.writer.origins,
        notes=notes,
    )


class _Element(Struct):
    name: str
    dropped: bool = False
    kind: str = ""  # of what becomes one piece: prose, code, table, caption, heading
    group: int | None = None  # of a figure: the place of its first piece
    classes: str = ""


class _HtmlReader:
    """Takes tags and characters in order, and writes a block when one is complete."""

    def __init__(self) -> None:
        self.writer = TextWriter()
        self.pieces: list[Piece] = []
        self.headings: list[Heading] = []
        self.title = ""
        self.named: _Element | None = None  # the element that holds the title
        self.left_out = 0
        self.stack: list[_Element] = []
        self.opened: Counter[str] = Counter()
        self.dropping = 0
        self.region: _Element | None = None
        self.tables: list[_Element] = []
        self._begin()
        self.rows: list[list[list[Atom]]] = []
        self.caption: list[Atom] = []
        self.language: str | None = None

    def _begin(self) -> None:
        self.atoms: list[Atom] = []
        self.pending = 0
        self.pending_at: int | None = None
        self.words = self.images = False

    # Characters

    def chars(self, token: Chars) -> None:
        """Take characters: they belong to the title, to what is left out, or to the text."""
        top = self.stack[-1] if self.stack else None
        if top is not None and top.name == "head" and token.text.strip():
            self.end("head")
        if top is not None and top.name == "title" and not self.opened["svg"]:
            if not self.title.strip():
                self.named = top
            self.title += token.text if self.named is top else ""
        if not self.dropping:
            self._put(token.text, token.start)

    def _put(self, text: str, at: int, *, image: bool = False) -> None:
        kind = self.region.kind if self.region is not None else ""
        if kind in ("prose", "code") and any(self.opened[name] for name in PREFORMATTED):
            self._put_lines(text, at)
            return
        end = 0
        for words in _WORDS.finditer(text):
            if words.start() > end:
                self._separate(_SPACE, at + end)
            self._emit(words[0], at + words.start())
            self.words, self.images = self.words or not image, self.images or image
            end = words.end()
        if end < len(text):
            self._separate(_SPACE, at + end)

    def _put_lines(self, text: str, at: int) -> None:
        self.words = True
        for part in _LINE_END.split(text) if "\r" in text else (text,):
            if part:
                self._emit("\n" if part in ("\r", "\r\n") else part, at)
            at += len(part)

    def _emit(self, text: str, at: int) -> None:
        if self.pending and self.atoms and not self.atoms[-1][0].endswith("\n"):
            newline = self.pending == _NEWLINE
            self.atoms.append(("\n", None) if newline else (" ", self.pending_at))
        self.atoms.append((text, at))
        self.pending, self.pending_at = 0, None

    def _separate(self, strength: int, at: int | None = None) -> None:
        if not self.pending:
            self.pending_at = at
        self.pending = max(self.pending, strength)

    # Tags

    def start(self, tag: Tag) -> None:
        """Take a start tag, after closing what it implies to be over."""
        name = tag.name
        if self.opened["head"] and name not in IN_HEAD:
            self._close_to(("head",), ())
        if name in VOID:
            self._void(tag)
            return
        self._close_implied(name)
        navigation = name == "nav" or tag.attrs.get("role", "").lower() == "navigation"
        classes = tag.attrs.get("class", "")
        dropped = name in DROPPED or navigation or "headerlink" in classes.split()
        block = name in BLOCKS
        if block and not self.dropping:
            self._boundary()
        if name == "code" and self.region is not None and self.region.kind == "code":
            self.language = self.language or _language(classes)
        if name in ("html", "body") or not (block or dropped or self.dropping):
            return
        if len(self.stack) >= MAX_DEPTH:
            return
        element = _Element(name, dropped, classes=classes)
        if not (dropped or self.dropping):
            self._open(element, tag.attrs)
        self.left_out += navigation and not self.dropping
        self.dropping += dropped
        self.stack.append(element)
        self.opened[name] += 1

    def _void(self, tag: Tag) -> None:
        if self.dropping:
            return
        if tag.name == "br":
            self._break()
        elif tag.name == "hr":
            self._close_implied("hr")
            self._boundary()
        elif tag.name == "img":
            for text, at in value_atoms(tag, "alt"):
                self._put(text, at or 0, image=True)

    def _break(self) -> None:
        kind = self.region.kind if self.region is not None else ""
        if kind == "code":
            self.atoms.append(("\n", None))
        else:
            self._separate(_SPACE if kind in ("table", "caption", "heading") else _NEWLINE)

    def _close_implied(self, name: str) -> None:
        if name in ENDS_HEADING:
            self._close_to(HEADINGS, SCOPE)
        if name in BLOCKS and name not in KEEPS_P:
            self._close_to(("p",), SCOPE)
        if name == "li":
            self._close_to(("li",), SCOPE | LISTS)
        elif name in ("dt", "dd"):
            self._close_to(("dt", "dd"), SCOPE | LISTS)
        elif name in CELLS:
            self._close_to(CELLS, ("table", "tr"))
        elif name == "tr":
            self._close_to(("tr", "caption"), ("table",))
        elif name in ROWS:
            self._close_to(ROWS | {"caption"}, ("table",))

    def _open(self, element: _Element, attrs: Mapping[str, str]) -> None:
        """Begin what becomes a piece of its own, or a part of it."""
        name = element.name
        if name == "table":
            self.tables.append(element)
        own = bool(self.tables) and self.tables[-1] is self.region
        if self.region is not None:
            if own and name in (*CELLS, "tr", "caption"):
                self._keep_stray()
                if name == "tr" or (name in CELLS and not self.rows):
                    self.rows.append([])
            return
        in_figure = any(outer.group is not None for outer in self.stack[-8:])  # not far above
        if name in LISTS or name == "blockquote":
            element.kind = "prose"
        elif name == "table" and attrs.get("role") not in ("presentation", "none"):
            element.kind, self.rows, self.caption = "table", [], []
        elif name in PREFORMATTED:
            element.kind = "code"
            near = [element.classes, *(outer.classes for outer in self.stack[-2:][::-1])]
            self.language = next(filter(None, map(_language, near)), None)
        elif name in HEADINGS:
            element.kind = "heading"
        elif name == "figcaption" and in_figure:
            element.kind = "caption"
        elif name == "figure":
            element.group = len(self.pieces)
        if element.kind:
            self.region = element

    def end(self, name: str) -> None:
        """Take an end tag; one that closes nothing is passed over."""
        if name == "br":
            self._void(Tag("br", closing=False))
        elif name in HEADINGS:
            self._close_to(HEADINGS, SCOPE)
        elif self.opened[name]:
            barrier = ("table",) if name in TABLE_PARTS else () if name == "table" else SCOPE
            self._close_to((name,), barrier)

    def _close_to(self, names: Any, barrier: Any) -> None:
        """Close elements up to the nearest of some names, unless a barrier is before it."""
        # Without this count, a page of unclosed tags would walk the whole stack for each of them.
        if not any(self.opened[name] for name in names):
            return
        for count, element in enumerate(reversed(self.stack), 1):
            if element.name in names:
                self.close(count)
                return
            if element.name in barrier:
                return

    def close(self, count: int) -> None:
        """Close the innermost elements."""
        for _ in range(count):
            element = self.stack.pop()
            self.opened[element.name] -= 1
            self.dropping -= element.dropped
            if self.dropping or element.dropped:
                continue
            if self.region is not None and self.tables and self.tables[-1] is self.region:
                self._end_of_part(element.name)
            if element is self.region:
                self._end_of_region(element)
            elif element.name in BLOCKS:
                self._boundary()
            if self.tables and self.tables[-1] is element:
                self.tables.pop()
            if element.group is not None:
                self._pair(element.group)

    # Blocks

    def _boundary(self) -> None:
        """A block begins or ends here: outside of regions that ends a paragraph."""
        if self.region is None:
            self.flush()
        elif self.region.kind in ("table", "caption", "heading"):
            self._separate(_SPACE)
        else:
            self._separate(_NEWLINE)

    def _end_of_part(self, name: str) -> None:
        if name in CELLS and self.rows:
            self.rows[-1].append(stripped(self.atoms))
            self._begin()
        elif name == "caption":
            self.caption = self.caption or stripped(self.atoms)
            self._begin()
        elif name in TABLE_PARTS or name == "table":  # any other block is in a cell
            self._keep_stray()

    def _keep_stray(self) -> None:
        """Text of a table that is in no cell, which nobody should write, is a row of its own."""
        stray = stripped(self.atoms)
        if stray:
            self.rows.append([stray])
        self._begin()

    def _end_of_region(self, element: _Element) -> None:
        self.region = None
        kind = element.kind
        if kind == "heading":
            atoms = stripped(self.atoms)
            if atoms:
                title = "".join(text for text, _ in atoms)
                level = int(element.name[1])
                span = self.writer.block(atoms)
                self.headings.append(Heading(level=level, title=title, span=span))
            self._begin()
        elif kind == "table":
            self._table()
        elif kind == "code":
            self.flush("code", {"language": self.language} if self.language else {})
        else:
            self.flush("caption" if kind == "caption" else "prose")

    def _table(self) -> None:
        rows = [row for row in self.rows if any(row)]
        caption, self.rows, self.caption = self.caption, [], []
        if caption:
            self.atoms = caption
            self.flush("caption", {"of": len(self.pieces) + 1} if rows else {})
        self._begin()
        for row in rows:
            self.atoms += [("\n", None)] if self.atoms else []
            for place, cell in enumerate(row):
                self.atoms += [(" | ", None)] if place else []
                self.atoms += cell
        self.flush("table", {"rows": len(rows), "columns": max(map(len, rows), default=0)})

    def flush(self, kind: BlockType | None = None, attrs: Mapping[str, Any] | None = None) -> None:
        """Write the block that was gathered, if there is anything in it."""
        atoms = stripped(self.atoms, lines=kind == "code")
        attrs = dict(attrs or {})
        if kind is None and self.images and not self.words:
            kind, attrs = "figure", {"alt": "".join(text for text, _ in atoms)}
        self._begin()
        if atoms:
            span = self.writer.block(atoms)
            self.pieces.append(Piece(type=kind or "prose", span=span, attrs=attrs))

    def _pair(self, first: int) -> None:
        """Tie the captions of a figure to what they are captions of."""
        inside = range(first, len(self.pieces))
        illustrated = [i for i in inside if self.pieces[i].type in ("figure", "table", "code")]
        for i in inside:
            piece = self.pieces[i]
            if illustrated and piece.type == "caption" and "of" not in piece.attrs:
                self.pieces[i] = replace(piece, attrs={"of": illustrated[0]})


def _language(classes: str) -> str | None:
    match = _LANGUAGE.search(classes)
    return None if match is None or match[1] in ("default", "none") else match[1].lower()


PARSER = Parser(name="html", title="HTML", suffixes=(".html", ".htm"), parse=parse, native=True)
