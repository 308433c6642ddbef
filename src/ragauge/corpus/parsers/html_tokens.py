"""Pages of HTML as characters, and their tokens with places, as turbohtml tells them.

Its tokenizer is that of the HTML standard: what it makes of malformed markup is laid down there,
and does not change from one version to the next.
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Iterator, Mapping

from msgspec import Struct

from ragauge.corpus.canonical_text import Atom, utf8, without_bom
from ragauge.errors import RagaugeError
from ragauge.files.fields import FieldError

_LINE_END = re.compile(r"\r\n|\r|\n")
_NOTHING = "</>"
"""What the standard passes over, as if it were not there."""
_NOT_ALIKE = re.compile(r"\r\n|</>")  # where turbohtml's text is not what the source has
_BEFORE_VALUE = re.compile(r"""[^=]*=\s*(["']?)""")
_CHARSET = re.compile(
    rb"""<meta\s[^>]*?charset\s*=\s*["']?\s*([\w:.-]+)|^\s*<\?xml[^>]*?encoding=["']([\w:.-]+)""",
    re.IGNORECASE,
)
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
        raise FieldError(
            "bad-encoding",
            f"the bytes are not {codec}, which the page says they are",
            "convert the file to UTF-8, and its charset too",
        ) from error


def tokens(source: str) -> Iterator[Tag | Chars | UnfinishedMarkup]:
    """The tags and the characters of a source in order, without comments and declarations."""
    try:
        from turbohtml import TokenType, tokenize
    except ImportError as error:
        raise RagaugeError.of(
            "missing-extra",
            "HTML needs a package that is not installed",
            hint="pip install 'ragauge[corpus]'",
        ) from error
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
    """What a reference stands for; letters behind one without `;` are their own."""
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
