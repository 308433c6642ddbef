"""Tokens of HTML with their places in the source, in linear time whatever is malformed.

What the parser of the standard library makes of malformed input is not promised to stay the same
from one version of Python to the next, and canonical text must.
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Iterator, Mapping
from html import unescape

from msgspec import Struct

from ragauge.canontext import Atom, utf8, without_bom
from ragauge.fields import FieldError

# Elements whose content has no tags: it ends at their own end tag.
RAW = frozenset(
    ("script", "style", "textarea", "title", "xmp", "iframe", "noembed", "noframes", "plaintext")
)
_NAME = re.compile(r"[^\s/>]*", re.ASCII)
_SKIP = re.compile(r"[\s/]*", re.ASCII)
_ATTRIBUTE = re.compile(r"[^\s/>][^\s/>=]*", re.ASCII)
_VALUE = re.compile(r"""\s*=\s*(?:"([^"]*)"|'([^']*)'|([^\s>]*))""", re.ASCII)
_REFERENCE = re.compile(r"&(?:#[0-9]{1,9};?|#[xX][0-9a-fA-F]{1,8};?|[a-zA-Z][a-zA-Z0-9]{1,40};?)")

_CHARSET = re.compile(
    rb"""<meta\s[^>]*?charset\s*=\s*["']?\s*([\w:.-]+)|^\s*<\?xml[^>]*?encoding=["']([\w:.-]+)""",
    re.IGNORECASE,
)
_NOT_FOR_FILES = ("idna", "punycode", "unicode", "raw_unicode", "undefined", "utf-7", "utf-16")


class Tag(Struct, frozen=True):
    """A start tag or an end tag; `places` say where in the source each value begins."""

    name: str
    closing: bool
    attrs: Mapping[str, str] = {}
    places: Mapping[str, int] = {}


class Chars(Struct, frozen=True):
    """Characters between tags, as the source has them, from a place on."""

    raw: str
    start: int
    literal: bool = False


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


def tokens(source: str) -> Iterator[Tag | Chars]:
    """The tags and the characters of a source in order; comments and declarations are left out."""
    at, size = 0, len(source)
    last_end = source.rfind(">")  # behind it nothing can be a tag
    while at < size:
        opening = source.find("<", at)
        if opening < 0 or opening > last_end:
            yield Chars(source[at:], at)
            return
        following = source[opening + 1]
        letter = source[opening + 2 : opening + 3] if following == "/" else following
        if letter.isascii() and letter.isalpha():
            if opening > at:
                yield Chars(source[at:opening], at)
            tag, at = _tag(source, opening)
            yield tag
            if not tag.closing and tag.name in RAW:
                inside = at
                at = _end_of_raw(source, inside, tag.name)
                if at > inside:
                    yield Chars(source[inside:at], inside, literal=tag.name != "title")
        elif following in "!?/":
            if opening > at:
                yield Chars(source[at:opening], at)
            at = _end_of_markup(source, opening)
        else:
            yield Chars(source[at : opening + 1], at)
            at = opening + 1


def references(chars: str, start: int) -> Iterator[Atom]:
    """The text of raw characters: references such as `&amp;` are atoms of their own."""
    at = 0
    for found in _REFERENCE.finditer(chars):
        meant = unescape(found[0])
        if meant == found[0]:
            continue
        if found.start() > at:
            yield chars[at : found.start()], start + at
        yield meant, start + found.start()
        at = found.end()
    if at < len(chars):
        yield chars[at:], start + at


def _tag(source: str, opening: int) -> tuple[Tag, int]:
    closing = source[opening + 1] == "/"
    found = _NAME.match(source, opening + 1 + closing)
    assert found is not None  # it matches nothing, too
    attrs: dict[str, str] = {}
    places: dict[str, int] = {}
    at = found.end()
    while True:
        skipped = _SKIP.match(source, at)
        at = at if skipped is None else skipped.end()
        name = _ATTRIBUTE.match(source, at)
        if name is None:  # the end of the tag, or of the source
            return Tag(found[0].lower(), closing, attrs, places), min(at + 1, len(source))
        value = _VALUE.match(source, name.end())
        key = name[0].lower()
        if value is None:
            at = name.end()
            attrs.setdefault(key, "")
            continue
        at = value.end()
        if key not in attrs and value.lastindex:
            attrs[key] = value[value.lastindex]
            places[key] = value.start(value.lastindex)


def _end_of_raw(source: str, at: int, name: str) -> int:
    """Where the end tag of an element with raw content begins; without one, the source's end."""
    if name == "plaintext":
        return len(source)
    found = re.compile(rf"</{name}(?=[\s/>])", re.IGNORECASE).search(source, at)
    return len(source) if found is None else found.start()


def _end_of_markup(source: str, opening: int) -> int:
    """Where a comment or a declaration ends; an unclosed comment ends with the source."""
    if source.startswith("<!--", opening):
        if source.startswith((">", "->"), opening + 4):
            return source.index(">", opening) + 1
        end = source.find("-->", opening + 4)
        return len(source) if end < 0 else end + 3
    if source.startswith("<![CDATA[", opening):
        end = source.find("]]>", opening)
        return len(source) if end < 0 else end + 3
    end = source.find(">", opening)
    return len(source) if end < 0 else end + 1
