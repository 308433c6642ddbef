"""PDF with a text layer: pypdfium2 gives characters and boxes, the layout is found from them.

Pages are joined by a form feed. The origins give, for each block, the index of its first character
on its page, as pdfium counts. Tables are recognised by ruled lines or by aligned columns; pictures
are not.
"""

from __future__ import annotations

import ctypes
import re
import traceback
from collections.abc import Callable, Iterator
from functools import partial
from math import hypot, isfinite
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from ragauge.corpus.canonical_text import TextWriter, missing_package, well_formed
from ragauge.corpus.garbled_text import is_garbled
from ragauge.corpus.parsers.pdf_blocks import PdfBlock, blocks_of, style_of, title_key
from ragauge.corpus.parsers.pdf_layout import (
    Edge,
    PdfLine,
    PdfPage,
    PdfWord,
    lines_in_order,
    rounded,
    running_lines,
)
from ragauge.corpus.parsers.pdf_tables import with_aligned_tables, with_ruled_tables
from ragauge.files.fields import FieldError
from ragauge.model.corpus import Heading, Parsed, Parser, Piece

_LIGATURES = {0xFB00: "ff", 0xFB01: "fi", 0xFB02: "fl", 0xFB03: "ffi", 0xFB04: "ffl", 0xFB06: "st"}
_HYPHENS = (0x02, 0xAD, 0xFFFE)  # how pdfium gives a hyphen at the end of a line, and a soft one
# Not every font of fixed width has the flag that says so; then its name tells.
_MONO = re.compile(r"mono|courier|consol|menlo|typewriter|cmtt|inconsolata", re.IGNORECASE)
_FIXED_PITCH = 1
_WRONG_PASSWORD = 4
_MOST_EDGES = 20_000  # of a page; a drawing has more


def parse(source: bytes) -> Parsed:
    """Read a PDF that has a text layer."""
    try:
        import pypdfium2  # type: ignore[import-untyped]
    except ImportError as error:
        raise missing_package("PDF") from error
    try:
        document = pypdfium2.PdfDocument(source)
    except pypdfium2.PdfiumError as error:
        raise _unreadable(error) from error
    remarks = _Remarks()
    try:
        pages = [_page(document, number, remarks) for number in range(len(document))]
        outlines = _outlines(document)
        named = _title(document)
    finally:
        document.close()
    without = running_lines(pages)
    lines = [
        lines_in_order(page, {row for number, row in without if number == place})
        for place, page in enumerate(pages)
    ]
    return _written(lines, outlines, remarks, named)


def _unreadable(error: Exception) -> FieldError:
    why, hint = "the PDF is damaged, or is something else", "make it again, or leave it out"
    if getattr(error, "err_code", None) == _WRONG_PASSWORD or "password" in str(error).lower():
        why, hint = "the PDF is encrypted", "save a copy of it that needs no password"
    return FieldError("bad-document", why, hint)


class _Remarks(Struct):
    """What a reader should know of pages, by their numbers from 1."""

    damaged: list[int] = []
    empty: list[int] = []
    garbled: list[int] = []
    without_tables: list[int] = []
    tracebacks: list[str] = []
    rotated: int = 0

    def table_failed(self, number: int, error: Exception) -> None:
        """Record that looking for tables failed on a page, whose words then stay prose."""
        if number not in self.without_tables:
            self.without_tables.append(number)
        self.tracebacks.append("".join(traceback.format_exception(error)))

    def notes(self, pages: int) -> Iterator[str]:
        """The remarks in words, for a document of so many pages."""
        if self.damaged:
            yield f"damaged pages left out: {_listed(self.damaged)}"
        if self.rotated:
            yield f"letters that do not stand upright left out: {self.rotated}"
        if self.empty and len(self.empty) == pages:
            yield "no text layer: recognise its letters first (OCR)"
        elif self.empty:
            yield f"pages without text: {_listed(self.empty)}"
        if self.garbled:
            where = _listed(self.garbled)
            yield f"pages whose text layer is not words (recognise their letters, OCR): {where}"
        if self.without_tables:
            where = _listed(self.without_tables)
            yield f"pages whose tables could not be read, and are prose: {where}"


def _page(document: Any, place: int, remarks: _Remarks) -> PdfPage:
    """The words of a page with its ruled tables; a page that cannot be read is empty."""
    import pypdfium2

    number = place + 1
    try:
        page = document[place]
        textpage = page.get_textpage()
        rotation, box = page.get_rotation(), page.get_bbox()
    except pypdfium2.PdfiumError:
        remarks.damaged.append(number)
        return PdfPage((), 0.0, 0.0)
    quarter, words, others = _upright(textpage.raw, rotation // 90)
    left, bottom, right, top = box
    edges = ((bottom, top), (-right, -left), (-top, -bottom), (left, right))[quarter]
    drawn = _edges(page.raw, _CharacterReader(textpage.raw, quarter))
    textpage.close()
    page.close()
    remarks.rotated += others
    if not words and not others:
        remarks.empty.append(number)
    elif is_garbled([word.text for word in words]):
        remarks.garbled.append(number)
    result = PdfPage(tuple(words), *edges, drawn)
    try:
        return with_ruled_tables(result)
    except Exception as error:  # a table that is missed still has its words
        remarks.table_failed(number, error)
        return replace(result, edges=())


def _listed(numbers: list[int]) -> str:
    first_ten = ", ".join(map(str, numbers[:10]))
    return first_ten if len(numbers) <= 10 else f"{first_ten} and {len(numbers) - 10} more"


def _upright(handle: Any, quarter: int) -> tuple[int, list[PdfWord], int]:
    """The quarter by which a page is turned to be read, its words, and how many letters are not.

    A page is read as it is seen, unless most of it is set sideways, as wide tables are. The page's
    own rotation comes first, so that the other three quarters are seldom tried.
    """
    best: tuple[int, list[PdfWord], int] = (quarter, [], 0)
    most = -1
    for turn in (quarter, *(other for other in range(4) if other != quarter)):
        words_or_lengths = list(_words(handle, turn))
        words = [word for word in words_or_lengths if isinstance(word, PdfWord)]
        letters = sum(len(word.text) for word in words)
        others = sum(count for count in words_or_lengths if isinstance(count, int))
        if letters > most:
            most, best = letters, (turn, words, others)
        if letters >= others:
            break
    return best


class _CharacterReader:
    """Reads characters of a page, turned upright by quarters."""

    def __init__(self, handle: Any, quarter: int) -> None:
        from pypdfium2 import raw

        self.raw, self.handle, self.quarter = raw, handle, quarter
        self.box = raw.FS_RECTF()
        self.x, self.y = ctypes.c_double(), ctypes.c_double()
        self.matrix = raw.FS_MATRIX()
        self.name = ctypes.create_string_buffer(256)
        self.flags = ctypes.c_int()

    def turned(self, x: float, y: float) -> tuple[float, float]:
        """A point, or a direction, as it is seen after the page was turned."""
        return ((x, y), (y, -x), (-x, -y), (-y, x))[self.quarter]

    def place(self, index: int) -> tuple[float, float, float] | None:
        """The left and right edge of a character and its baseline."""
        if not self.raw.FPDFText_GetLooseCharBox(self.handle, index, self.box):
            return None
        if not self.raw.FPDFText_GetCharOrigin(self.handle, index, self.x, self.y):
            return None
        box = self.box
        if not all(map(isfinite, (box.left, box.right, self.x.value, self.y.value))):
            return None
        one, _ = self.turned(box.left, box.bottom)
        other, _ = self.turned(box.right, box.top)
        return min(one, other), max(one, other), self.turned(self.x.value, self.y.value)[1]

    def font(self, index: int) -> tuple[float, bool, bool]:
        """The size of a character as it is seen, if its width is fixed, and if it is upright."""
        size = float(self.raw.FPDFText_GetFontSize(self.handle, index))
        upright = True
        if self.raw.FPDFText_GetMatrix(self.handle, index, self.matrix):
            size *= hypot(self.matrix.c, self.matrix.d)
            right, up = self.turned(self.matrix.a, self.matrix.b)
            upright = right > 0 and abs(up) <= 0.3 * right  # up to 17 degrees
        self.name.value = b""
        self.raw.FPDFText_GetFontInfo(self.handle, index, self.name, len(self.name), self.flags)
        name = self.name.value.decode("utf-8", "replace")
        fixed = bool(self.flags.value & _FIXED_PITCH) or _MONO.search(name) is not None
        # A size of nothing, or one that no page can hold, is none: all ratios would fail on it.
        return (size if 0.1 <= size <= 10_000 else 1.0), fixed, upright


def _words(handle: Any, quarter: int) -> Iterator[PdfWord | int]:
    """The words of a page in the order of the file; of one that is not upright its length."""
    gatherer = _CharacterReader(handle, quarter)
    count = gatherer.raw.FPDFText_CountChars(handle)
    text, first, size, fixed, upright = "", 0, 0.0, False, True
    left = right = y = 0.0
    before: tuple[float, float, float] | None = None

    def word() -> PdfWord | int:
        if not upright:
            return len(text)
        return PdfWord(well_formed(text), left, right, y, size, fixed, first)

    for index in range(count):
        code = gatherer.raw.FPDFText_GetUnicode(handle, index)
        letter = "-" if code in _HYPHENS else _LIGATURES.get(code) or chr(code)
        place = None if letter.isspace() or letter < " " else gatherer.place(index)
        if place is None:
            if text:
                yield word()
            text = ""
            continue
        # Many files have no space characters: a gap of a quarter of the size ends a word. Kerning
        # and accents go back a little, a new line or cell goes back further.
        level = abs(place[2] - y) <= 0.5 * size
        near = level and -0.5 * size <= place[0] - right <= 0.25 * size
        near = near or place == before  # the second letter of a ligature
        if text and not near:
            yield word()
            text = ""
        if not text:
            size, fixed, upright = gatherer.font(index)
            first, left, y = index, place[0], place[2]
        text += letter
        right, before = place[1], place
    if text:
        yield word()


def _edges(page: Any, gatherer: _CharacterReader) -> tuple[Edge, ...]:
    """The straight lines that are drawn on a page, and the sides of boxes; of too many none."""
    raw = gatherer.raw
    edges: list[Edge] = []
    for number in range(raw.FPDFPage_CountObjects(page)):
        drawn = raw.FPDFPage_GetObject(page, number)
        if raw.FPDFPageObj_GetType(drawn) == raw.FPDF_PAGEOBJ_PATH:
            edges += _edges_of(drawn, gatherer)
        if len(edges) > _MOST_EDGES:
            return ()
    return tuple(edges)


def _edges_of(path: Any, gatherer: _CharacterReader) -> Iterator[Edge]:
    raw, matrix = gatherer.raw, gatherer.matrix
    x, y = ctypes.c_float(), ctypes.c_float()
    if not raw.FPDFPageObj_GetMatrix(path, matrix):
        return
    a, b, c, d, e, f = (getattr(matrix, name) for name in "abcdef")
    before = (0.0, 0.0)
    for number in range(min(raw.FPDFPath_CountSegments(path), _MOST_EDGES)):
        segment = raw.FPDFPath_GetPathSegment(path, number)
        raw.FPDFPathSegment_GetPoint(segment, x, y)
        here = gatherer.turned(a * x.value + c * y.value + e, b * x.value + d * y.value + f)
        kind = raw.FPDFPathSegment_GetType(segment)
        # The side that closes a box is a line, too.
        if kind == raw.FPDF_SEGMENT_LINETO and all(map(isfinite, (*before, *here))):
            yield (*before, *here)
        before = here


def _utf16(call: Callable[[Any, int], int]) -> str:
    """A text that pdfium writes into a buffer as UTF-16; it may end in half a pair.

    pypdfium2 decodes it strictly, and one bad title would be the end of the whole file.
    """
    size = call(None, 0)
    buffer = ctypes.create_string_buffer(size)
    call(buffer, size)
    return buffer.raw[: max(size - 2, 0)].decode("utf-16-le", "replace")


def _title(document: Any) -> str:
    """The title that the file gives itself."""
    from pypdfium2 import raw

    return _utf16(partial(raw.FPDF_GetMetaText, document.raw, b"Title")).strip()


def _outlines(document: Any) -> dict[int, dict[str, int]]:
    """The titles of the outline with their levels, by page."""
    import pypdfium2
    from pypdfium2 import raw

    outlines: dict[int, dict[str, int]] = {}
    try:
        for entry in document.get_toc():
            if hasattr(entry, "get_title"):
                title = _utf16(partial(raw.FPDFBookmark_GetTitle, entry.raw))
                target = entry.get_dest()
                page = None if target is None else target.get_index()
            else:  # before version 5
                title, page = entry.title, entry.page_index
            key = title_key(title)
            if page is not None and key:
                outlines.setdefault(page, {}).setdefault(key, min(entry.level + 1, 6))
    except (pypdfium2.PdfiumError, UnicodeDecodeError):  # the second before version 5
        return {}
    return outlines


def _with_aligned_tables(
    lines: list[PdfLine], number: int, remarks: _Remarks, *, mono_is_code: bool
) -> list[PdfLine]:
    try:
        return with_aligned_tables(lines, mono_is_code=mono_is_code)
    except Exception as error:
        remarks.table_failed(number, error)
        return lines


def _written(
    pages: list[list[PdfLine]], outlines: dict[int, dict[str, int]], remarks: _Remarks, named: str
) -> Parsed:
    """Write the blocks of all pages as canonical text."""
    style = style_of(pages)
    tabled = [
        _with_aligned_tables(lines, number, remarks, mono_is_code=style.mono_is_code)
        for number, lines in enumerate(pages, 1)
    ]
    blocks = [
        blocks_of(lines, style, outlines.get(number, {})) for number, lines in enumerate(tabled)
    ]
    levels = _levels([block for page in blocks for block in page])
    writer = TextWriter()
    headings: list[Heading] = []
    pieces: list[Piece] = []
    starts: list[int] = []
    for number, page in enumerate(blocks):
        if number:
            writer.add([("\f", None)])
        starts.append(writer.length)
        for place, block in enumerate(page):
            if place:
                writer.add([("\n\n", None)])
            span = writer.add([(block.text, block.index)])
            if block.kind == "heading":
                level = block.level or levels[rounded(block.size)]
                headings.append(Heading(level=level, title=block.text, span=span))
            else:
                rows, columns = block.table
                attrs = {"rows": rows, "columns": columns} if rows else {}
                pieces.append(Piece(type=block.kind, span=span, page=number + 1, attrs=attrs))
    _attach_captions(pieces, writer.text)
    top = min((heading.level for heading in headings), default=0)
    title = next((heading.title for heading in headings if heading.level == top), named or None)
    return Parsed(
        text=writer.text,
        headings=tuple(headings),
        pieces=tuple(pieces),
        title=title,
        origins=writer.origins,
        pages=tuple(starts),
        notes=tuple(remarks.notes(len(pages))),
        tracebacks=tuple(remarks.tracebacks),
    )


def _attach_captions(pieces: list[Piece], text: bytes) -> None:
    """Tie the caption of a table to the table right before or behind it on its page."""
    for place, piece in enumerate(pieces):
        if piece.type != "caption" or text[piece.span[0] : piece.span[0] + 3].lower() != b"tab":
            continue
        for near in (place + 1, place - 1):
            there = pieces[near] if 0 <= near < len(pieces) else None
            if there is not None and there.type == "table" and there.page == piece.page:
                pieces[place] = replace(piece, attrs={"of": near})
                break


def _levels(blocks: list[PdfBlock]) -> dict[float, int]:
    """The level of each size of heading: that of the outline where it names one of this size.

    A size that the outline never names has the level of the next smaller one that it does name.
    """
    headings = [block for block in blocks if block.kind == "heading"]
    level_by_size: dict[float, int] = {}
    for block in headings:
        if block.level:
            size = rounded(block.size)
            level_by_size[size] = min(block.level, level_by_size.get(size, 6))
    sizes = sorted({rounded(block.size) for block in headings}, reverse=True)
    if not level_by_size:
        return {size: min(rank, 6) for rank, size in enumerate(sizes, 1)}
    deepest = min(max(level_by_size.values()) + 1, 6)
    named = level_by_size.items()
    return {
        size: min((level for outlined, level in named if outlined <= size), default=deepest)
        for size in sizes
    }


PARSER = Parser(name="pdf", title="PDF", suffixes=(".pdf",), parse=parse, version=3, native=True)
