"""Markdown: CommonMark with tables and front matter, by the line ranges of markdown-it-py.

Only blocks are parsed; what stands inside a line is looked at where it decides something: titles,
paragraphs that may be images, and captions. Link definitions and rules (`---`) are no pieces.
Front matter is a piece of code with the role `front-matter`, so that a citation of it has a place.
A table's rows are counted with its header, as in HTML.
"""

from __future__ import annotations

import codecs
import re
from functools import cache
from typing import TYPE_CHECKING, Any

from ragauge.fields import FieldError
from ragauge.model.corpus import BlockType, Extent, Heading, Parsed, Parser, Piece

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from markdown_it.token import Token

_LINE_END = re.compile(rb"\r\n|\r|\n")
_TEXT_LINE_END = re.compile(r"\r\n|\r|\n")
_BLANKS = b" \t\r\n\v\f"
_FENCE = re.compile(rb"---[ \t]*")
_CLOSING = re.compile(rb"(?:---|\.\.\.)[ \t]*")
_KEY = re.compile(rb"""\s*(?:[\w."'-][^:]*:(?:\s|$)|\{)""")
_TITLE = re.compile(r"""^title:[ \t]+(["']?)(.*?)\1[ \t]*$""", re.MULTILINE)
_CAPTION = re.compile(
    r"[*_\s]*(?:figure|fig\.?|table|tab\.|abbildung|abb\.|tabelle)\s*[0-9]+(?:\s+(\S))?",
    re.IGNORECASE,
)
_TAG = re.compile(r"<[^<>]*>")
_ALT = re.compile(r"""<img\b[^<>]*?\balt\s*=\s*(?:"([^"]*)"|'([^']*)')""", re.IGNORECASE)
_COMMENT = re.compile(r"\s*<!--.*-->\s*", re.DOTALL)
# Longer titles and captions are shown as they are written: inline markup is not linear in length.
_LONGEST_INLINE = 4_000
_MOST_BRACKETS = 200
# Lists count twice. Below that the parser looks no further, and takes what follows along.
_DEEPEST = 100


@cache
def _machine() -> MarkdownIt:
    from markdown_it import MarkdownIt

    return MarkdownIt("commonmark", {"maxNesting": _DEEPEST}).enable("table")


class _Reader:
    """Walks over the top-level blocks of one text and collects headings and pieces."""

    def __init__(self, text: bytes) -> None:
        self.text = text
        self.starts = [0, *(found.end() for found in _LINE_END.finditer(text))]
        self.env: dict[str, Any] = {}
        self.headings: list[Heading] = []
        self.pieces: list[Piece] = []
        self.notes: list[str] = []
        self.above: int | None = None
        """The figure or table that the next paragraph stands directly behind."""

    def extent(self, first: int, stop: int) -> Extent:
        """The bytes of some lines, without the blank end."""
        begin, end = self._start(first), self._start(stop)
        return begin, begin + len(self.text[begin:end].rstrip(_BLANKS))

    def _start(self, line: int) -> int:
        return self.starts[line] if line < len(self.starts) else len(self.text)

    def add(self, kind: BlockType, lines: tuple[int, int], **attrs: Any) -> None:
        span = self.extent(*lines)
        if span[0] < span[1]:
            self.pieces.append(Piece(type=kind, span=span, attrs=attrs))

    def front_matter(self) -> int:
        """Take a leading block between `---` and `---`; return the number of its lines."""
        if not _FENCE.fullmatch(self._line(0)):
            return 0
        keys = 0
        for number in range(1, len(self.starts)):
            line = self._line(number)
            if _CLOSING.fullmatch(line):
                self.add("code", (0, number + 1), language="yaml", role="front-matter")
                return number + 1
            if number == 1 and not line.strip():
                return 0  # a rule with an empty line behind it
            if not keys and line.strip() and not line.lstrip().startswith(b"#"):
                keys += 1
                if not _KEY.match(line):
                    return 0
        return 0

    def _line(self, number: int) -> bytes:
        return self.text[self._start(number) : self._start(number + 1)].rstrip(b"\r\n")

    def walk(self, source: str, skipped: int) -> None:
        """Take the blocks of the text behind the skipped lines."""
        machine = _machine()
        tokens: list[Token] = []
        machine.block.parse(
            _TEXT_LINE_END.sub("\n", source).replace("\0", "\N{REPLACEMENT CHARACTER}"),
            machine, self.env, tokens,
        )  # fmt: skip
        deepest = max((token.level for token in tokens), default=0)
        if deepest >= _DEEPEST - 1:
            self.notes.append("a list or quote is nested too deep: what follows may be part of it")
        for position, token in enumerate(tokens):
            if token.level or token.nesting < 0 or token.map is None:
                continue
            lines = (token.map[0] + skipped, token.map[1] + skipped)
            above, self.above = self.above, None
            if token.type == "heading_open":
                title = self._plain(tokens[position + 1].content)
                level = int(token.tag[1:])
                self.headings.append(Heading(level=level, title=title, span=self.extent(*lines)))
            elif token.type == "paragraph_open":
                self._paragraph(tokens[position + 1].content, lines, above)
            elif token.type == "table_open":
                self._table(tokens, position, lines)
            elif token.type in ("fence", "code_block"):
                language = token.info.split()[0].strip("{}.") if token.info.strip() else ""
                self.add("code", lines, **({"language": language} if language else {}))
            elif token.type == "html_block":
                self._html(token.content, lines)
            elif token.type != "hr":
                self.add("prose", lines)

    def _table(self, tokens: list[Token], position: int, lines: tuple[int, int]) -> None:
        rows = columns = 0
        for token in _until(tokens, position):
            rows += token.type == "tr_open"
            columns += token.type == "th_open"
        self.add("table", lines, rows=rows, columns=columns)
        self.above = len(self.pieces) - 1

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
        if not content.startswith(("![", "[![")):
            self.add("prose", lines)
            return
        alts = self._images(content)
        if alts is not None:
            self._figure(lines, alts)
            return
        # Images with their caption on the lines below, in the same paragraph.
        written = content.split("\n")
        count = 0
        while count < len(written) and written[count].lstrip().startswith(("![", "[![")):
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
        machine = _machine()
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


def _until(tokens: list[Token], position: int) -> list[Token]:
    """The tokens of a top-level block, behind the one that opens it."""
    stop = position + 1
    while tokens[stop].level:
        stop += 1
    return tokens[position + 1 : stop]


def _begins_as_caption(content: str) -> bool:
    """Whether it begins with `Figure 1` or the like; `Figure 1 shows` is running text."""
    found = _CAPTION.match(content)
    return found is not None and not (found[1] or "").islower()


def parse(data: bytes) -> Parsed:
    """Take top-level headings, and every other top-level block as a piece."""
    text = data.removeprefix(codecs.BOM_UTF8)
    try:
        source = text.decode()
    except UnicodeDecodeError as error:
        raise FieldError(
            "bad-encoding",
            f"the bytes from {error.start + len(data) - len(text)} on are not UTF-8",
            "convert the file to UTF-8; dropping the bytes would move every offset behind them",
        ) from error
    reader = _Reader(text)
    title = None
    skipped = reader.front_matter()
    if skipped:
        front = text[: reader.extent(0, skipped)[1]].decode()
        found = _TITLE.search(_TEXT_LINE_END.sub("\n", front))
        title = found[2].strip() if found else None
        behind = reader.starts[skipped] if skipped < len(reader.starts) else len(text)
        source = text[behind:].decode()
    reader.walk(source, skipped)
    if not title:
        title = next((heading.title for heading in reader.headings if heading.title), None)
    return Parsed(
        text=text,
        headings=tuple(reader.headings),
        pieces=tuple(reader.pieces),
        title=title,
        origins=() if len(text) == len(data) else ((0, 3, len(text)),),
        notes=tuple(reader.notes),
    )


PARSER = Parser(
    name="markdown", title="Markdown", suffixes=(".md", ".markdown"), parse=parse
)  # fmt: skip
