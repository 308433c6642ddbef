"""Markdown: CommonMark with tables and front matter, by the line ranges of markdown-it-py.

Only blocks are parsed; inline markup is looked at where it decides something: titles, paragraphs
that may be images, and captions. Link definitions and rules (`---`) are no pieces.
Front matter is a piece of code with the role `front-matter`, so that a citation of it has a place.
A table's rows are counted with its header, as in HTML.
"""

from __future__ import annotations

import re
import tomllib
from functools import cache
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from ragauge.corpus.canonical_text import kept_text, line_starts, lines_of
from ragauge.model.corpus import BlockType, Extent, Heading, Parsed, Parser, Piece

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from markdown_it.rules_block import StateBlock
    from markdown_it.token import Token

_BLANKS = b" \t\r\n\v\f"
# Front matter: its first line, its last line, and how its first key may look.
_FRONT = {
    "yaml": (
        re.compile(rb"---[ \t]*"),
        re.compile(rb"(?:---|\.\.\.)[ \t]*"),
        re.compile(rb"""\s*(?:[\w."'-][^:]*:(?:\s|$)|\{)"""),
    ),
    "toml": (
        re.compile(rb"\+\+\+[ \t]*"),
        re.compile(rb"\+\+\+[ \t]*"),
        re.compile(rb"""\s*(?:[\w."'-][^=]*=|\[)"""),
    ),
}
_TITLE = re.compile(r"^title:[ \t]++(.*)$", re.MULTILINE)
_CAPTION = re.compile(
    r"[*_\s]*(?:figure|fig\.?|table|tab\.|abbildung|abb\.|tabelle)\s*[0-9]+(?:\s+(\S))?",
    re.IGNORECASE,
)
_IMAGES = ("![", "[![")
_TAG = re.compile(r"<[^<>]*>")
_ALT = re.compile(r"""<img\b[^<>]*?\balt\s*=\s*(?:"([^"]*)"|'([^']*)')""", re.IGNORECASE)
_COMMENT = re.compile(r"\s*<!--.*-->\s*", re.DOTALL)
# Longer titles and captions are shown as they are written: inline markup is not linear in length.
_LONGEST_INLINE = 4_000
_MOST_BRACKETS = 200
# Every level is a call within a call; lists count twice. What is deeper is taken as plain text:
# the parser would skip the rest of the file, and Python would run out of stack at some depth.
_DEEPEST = 250
_DEEPEST_INLINE = 100


class _TopBlock(Struct, gc=False):
    """A block at the top, as much of it as is needed when all link definitions are known."""

    type: str
    lines: tuple[int, int]
    content: str = ""
    tag: str = ""
    rows: int = 0
    columns: int = 0


@cache
def _inline_machine() -> MarkdownIt:
    from markdown_it import MarkdownIt

    return MarkdownIt("commonmark", {"maxNesting": _DEEPEST_INLINE})


@cache
def _block_machine() -> MarkdownIt:
    """A machine that hands over each block at the top, so that tokens do not pile up."""
    from markdown_it import MarkdownIt

    machine = MarkdownIt("commonmark", {"maxNesting": 2 * _DEEPEST}).enable("table")
    machine.block.ruler.before("table", "hand_over", _hand_over)
    return machine


def _hand_over(state: StateBlock, first: int, stop: int, silent: bool) -> bool:
    """Before every block: take the ones before it at the top, and what is nested too deep.

    The parser itself would skip all that follows, to the end of the file.
    """
    if state.level == 0:
        _collect(state.tokens, state.env["tops"])
        return False
    if state.level < _DEEPEST or silent:
        return False
    state.env["too deep"] = True
    last = first + 1
    while last < stop and (state.isEmpty(last) or state.sCount[last] >= state.blkIndent):
        last += 1
    while state.isEmpty(last - 1):
        last -= 1
    state.line = last
    return True


def _collect(tokens: list[Token], tops: list[_TopBlock]) -> None:
    """Turn the tokens of blocks at the top into what is needed of them."""
    for position, token in enumerate(tokens):
        if token.level or token.nesting < 0 or token.map is None:
            continue
        top = _TopBlock(token.type, (token.map[0], token.map[1]), tag=token.tag)
        if token.type == "heading_open":
            top.content = tokens[position + 1].content
        elif token.type == "paragraph_open":
            content = tokens[position + 1].content
            if content.startswith(_IMAGES) or content[:1] in "*_" or _begins_as_caption(content):
                top.content = content
        elif token.type == "table_open":
            for inner in tokens[position + 1 :]:
                top.rows += inner.type == "tr_open"
                top.columns += inner.type == "th_open"
        elif token.type in ("fence", "code_block"):
            top.content = token.info
        elif token.type == "html_block":
            top.content = token.content
        tops.append(top)
    tokens.clear()


class _MarkdownReader:
    """Walks over the top-level blocks of one text and collects headings and pieces."""

    def __init__(self, text: bytes) -> None:
        self.text = text
        self.starts = line_starts(text)
        self.env: dict[str, Any] = {}
        self.headings: list[Heading] = []
        self.pieces: list[Piece] = []
        self.notes: list[str] = []
        self.above: int | None = None
        """The figure or table that the next paragraph stands directly behind."""

    def extent(self, first: int, stop: int) -> Extent:
        """The bytes of some lines, without the blank end."""
        begin, end = self.start(first), self.start(stop)
        return begin, begin + len(self.text[begin:end].rstrip(_BLANKS))

    def start(self, line: int) -> int:
        """The first byte of a line; behind the last one the end of the text."""
        return self.starts[line] if line < len(self.starts) else len(self.text)

    def add(self, kind: BlockType, lines: tuple[int, int], **attrs: Any) -> None:
        span = self.extent(*lines)
        if span[0] < span[1]:
            self.pieces.append(Piece(type=kind, span=span, attrs=attrs))

    def front_matter(self) -> int:
        """Take a leading block between `---` or `+++`; return the number of its lines."""
        first = self._line(0)
        languages = [name for name, parts in _FRONT.items() if parts[0].fullmatch(first)]
        if not languages:
            return 0
        language = languages[0]
        _, closing, key = _FRONT[language]
        keys = 0
        for number in range(1, len(self.starts)):
            line = self._line(number)
            if closing.fullmatch(line):
                self.add("code", (0, number + 1), language=language, role="front-matter")
                return number + 1
            if number == 1 and not line.strip():
                return 0  # a rule with an empty line behind it
            if not keys and line.strip() and not line.lstrip().startswith(b"#"):
                keys += 1
                if not key.match(line):
                    return 0
        return 0

    def _line(self, number: int) -> bytes:
        return self.text[self.start(number) : self.start(number + 1)].rstrip(b"\r\n")

    def walk(self, source: str, skipped: int) -> None:
        """Take the blocks of the text behind the skipped lines."""
        machine = _block_machine()
        tops: list[_TopBlock] = []
        self.env["tops"] = tops
        tokens: list[Token] = []
        plain = source.replace("\r\n", "\n").replace("\r", "\n")
        plain = plain.replace("\0", "\N{REPLACEMENT CHARACTER}")
        machine.block.parse(plain, machine, self.env, tokens)
        _collect(tokens, tops)
        if self.env.get("too deep"):
            self.notes.append("lists or quotes are nested too deep: what is in them was not parsed")
        for top in tops:
            lines = (top.lines[0] + skipped, top.lines[1] + skipped)
            above, self.above = self.above, None
            if top.type == "heading_open":
                title, level = self._plain(top.content), int(top.tag[1:])
                self.headings.append(Heading(level=level, title=title, span=self.extent(*lines)))
            elif top.type == "paragraph_open":
                self._paragraph(top.content, lines, above)
            elif top.type == "table_open":
                self.add("table", lines, rows=top.rows, columns=top.columns)
                self.above = len(self.pieces) - 1
            elif top.type in ("fence", "code_block"):
                language = top.content.split()[0].strip("{}.") if top.content.strip() else ""
                self.add("code", lines, **({"language": language} if language else {}))
            elif top.type == "html_block":
                self._html(top.content, lines)
            elif top.type != "hr":
                self.add("prose", lines)

    def _html(self, content: str, lines: tuple[int, int]) -> None:
        lowered = content.lstrip()[:8].lower()
        has_image = "<img" in content.lower() and not _TAG.sub("", content).strip()
        if lowered.startswith("<figure") or has_image:
            self._figure(lines, [one or other for one, other in _ALT.findall(content)])
        elif _COMMENT.fullmatch(content) and content.count("<!--") == content.count("-->"):
            self.add("prose", lines, role="comment")
        else:
            self.add("prose", lines)

    def _figure(self, lines: tuple[int, int], alts: list[str]) -> None:
        alt = ", ".join(filter(None, (" ".join(alt.split()) for alt in alts)))
        self.add("figure", lines, **({"alt": alt} if alt else {}))
        self.above = len(self.pieces) - 1

    def _paragraph(self, content: str, lines: tuple[int, int], above: int | None) -> None:
        if above is not None and self._is_caption(content):
            self.add("caption", lines, of=above)
            return
        if not content.startswith(_IMAGES):
            self.add("prose", lines)
            return
        alts = self._images(content)
        if alts is not None:
            self._figure(lines, alts)
            return
        # Images with their caption on the lines below, in the same paragraph.
        written = content.split("\n")
        count = 0
        while count < len(written) and written[count].lstrip().startswith(_IMAGES):
            count += 1
        alts = self._images("\n".join(written[:count]))
        if alts is not None and self._is_caption("\n".join(written[count:])):
            middle = lines[0] + count
            self._figure((lines[0], middle), alts)
            self.add("caption", (middle, lines[1]), of=len(self.pieces) - 1)
            self.above = None
        else:
            self.add("prose", lines)

    def _inline(self, content: str) -> list[Token]:
        tokens: list[Token] = []
        machine = _inline_machine()
        machine.inline.parse(content, machine, self.env, tokens)
        return tokens

    def _images(self, content: str) -> list[str] | None:
        """The alternative texts, if the content is images and nothing else."""
        if content.rstrip()[-1:] not in (")", "]") or content.count("[") > _MOST_BRACKETS:
            return None
        alts = []
        for token in self._inline(content):
            if token.type == "image":
                alts.append(token.content)
            elif token.type not in ("softbreak", "hardbreak", "link_open", "link_close") and (
                token.type != "text" or token.content.strip()
            ):
                return None
        return alts or None

    def _is_caption(self, content: str) -> bool:
        if _begins_as_caption(content):
            return True
        if content[:1] not in ("*", "_") or len(content) > _LONGEST_INLINE:
            return False
        tokens = [token for token in self._inline(content) if token.type != "text" or token.content]
        if not tokens or tokens[0].type not in ("em_open", "strong_open"):
            return False
        closes = [i for i, token in enumerate(tokens) if token.level == 0 and token.nesting < 0]
        return closes == [len(tokens) - 1]

    def _plain(self, content: str) -> str:
        """What a reader sees of a title: without emphasis, links and code marks."""
        if len(content) > _LONGEST_INLINE:
            return " ".join(content.split())
        parts = []
        for token in self._inline(content):
            if token.type in ("softbreak", "hardbreak"):
                parts.append(" ")
            elif token.type != "html_inline":
                parts.append(token.content)
        return " ".join("".join(parts).split())


def _begins_as_caption(content: str) -> bool:
    """Whether it begins with `Figure 1` or the like; `Figure 1 shows` is running text."""
    match = _CAPTION.match(content)
    return match is not None and not (match[1] or "").islower()


def _unquoted(text: str) -> str:
    is_quoted = len(text) > 1 and text[0] in "\"'" and text[-1] == text[0]
    return text[1:-1] if is_quoted else text


def _front_title(front: str) -> str | None:
    """The title that front matter names, if it can be read."""
    lines = lines_of(front)
    if not front.startswith("+++"):
        match = _TITLE.search("\n".join(lines))
        return _unquoted(match[1].rstrip(" \t")).strip() if match else None
    try:
        title = tomllib.loads("\n".join(lines[1:-1])).get("title")
    except tomllib.TOMLDecodeError:
        return None
    return title.strip() if isinstance(title, str) else None


def parse(data: bytes) -> Parsed:
    """Take top-level headings, and every other top-level block as a piece."""
    text, source, origins = kept_text(data)
    reader = _MarkdownReader(text)
    title = None
    skipped = reader.front_matter()
    if skipped:
        title = _front_title(text[: reader.extent(0, skipped)[1]].decode())
        source = text[reader.start(skipped) :].decode()
    reader.walk(source, skipped)
    if not title:
        title = next((heading.title for heading in reader.headings if heading.title), None)
    return Parsed(
        text=text,
        headings=tuple(reader.headings),
        pieces=tuple(reader.pieces),
        title=title,
        origins=origins,
        notes=tuple(reader.notes),
    )


PARSER = Parser(name="markdown", title="Markdown", suffixes=(".md", ".markdown"), parse=parse)
