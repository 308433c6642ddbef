"""Reading YAML as JSON Lines: a list of items, each on the line of the file where it begins.

Items are composed one at a time from the events of PyYAML's parser, so that a long list takes no
more memory than a short one, and tags can make nothing but text, numbers, truth values, null,
lists and mappings.
"""

from __future__ import annotations

import codecs
import json
import os
import re
from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from typing import Any, BinaryIO, NamedTuple

from ragauge.errors import Place, RagaugeError
from ragauge.files.parquet_reader import finite, first_line, missing_extra

MAX_DEPTH = 200
ROOM = 64 * 1024 * 1024
"""Bytes that the aliases of a file may stand for, beside 16 times the size of the file."""
ROW_KEYS = ("queries", "items", "questions")
CONFIG_KEY = "tests"
"""A mapping with this key is the configuration of another tool, and one row as a whole."""
UNIT = "unit"
"""A key above the list of items that holds for each: the unit of their offsets."""
_YAML = "tag:yaml.org,2002:"
_ODD_BREAK = re.compile("[\x85\u2028\u2029]|\\r(?=[^\\n])")
_SCALARS = frozenset(
    _YAML + kind for kind in ("null", "bool", "int", "float", "binary", "timestamp", "str")
)
_COLLECTIONS = frozenset({None, "!", *(_YAML + kind for kind in ("map", "seq", "set", "omap"))})
# YAML 1.1 takes 0123, 1_000 and 12:30 for numbers (83, 1000, 750); as ids they are text.
_NUMBER = re.compile(r"[-+]?(?:0|[1-9][0-9]*|[0-9]*\.[0-9]*(?:[eE][-+]?[0-9]+)?)")


def yaml_lines(file: BinaryIO, name: str) -> Iterator[bytes]:
    """Yield the items of a YAML file as JSON Lines, each on the line where it begins.

    Blank lines keep them there; items that begin on one line follow each other from it on.
    """
    try:
        import yaml
    except ImportError as error:
        raise missing_extra("yaml", "PyYAML", name) from error
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    written = 0
    text = _Text(file, name)
    # The stubs know of files of bytes and files of text, not of what has a `read` alone.
    stream: Any = text
    with closing(yaml.parse(stream, Loader=loader)) as events:
        for line, row in _ItemComposer(events, text, name).rows():
            blank = max(0, line - written - 1)
            data = json.dumps(row, ensure_ascii=False, allow_nan=False)
            yield b"\n" * blank + data.encode("utf-8", "surrogatepass") + b"\n"
            written += blank + 1


class _Text:
    """The characters of a file, and on which line each is.

    YAML also ends a line where no editor and no other reader of ours does: at a carriage return
    alone, and at three characters that are found in text taken from web pages.
    """

    def __init__(self, file: BinaryIO, name: str) -> None:
        self._file = file
        self._name = name
        self._decoder = codecs.getincrementaldecoder("utf-8-sig")()
        self._characters = 0
        self._last = ""
        self.size = os.fstat(file.fileno()).st_size
        self._breaks: list[int] = []

    def read(self, size: int) -> str:
        """Return some more characters, and none at the end."""
        text = ""
        try:
            while not text and (data := self._file.read(size)):
                text = self._decoder.decode(data)
            text = text or self._decoder.decode(b"", final=True)
        except UnicodeDecodeError as error:
            raise self._not_utf8(error.reason) from error
        # The last character is looked at again: it may be the first half of CRLF.
        seen = self._last + text
        start = self._characters - len(self._last)
        for match in _ODD_BREAK.finditer(seen):
            self._breaks.append(start + match.start())
        self._characters += len(text)
        self._last = seen[-1:] if seen.endswith("\r") else ""
        return text

    def line(self, mark: Any) -> int:
        """The line, from 1, of what the parser has marked."""
        return int(mark.line) + 1 - bisect_left(self._breaks, mark.index)

    def lines(self) -> Iterator[bytes]:
        """Read the file again, line by line."""
        self._file.seek(0)
        return iter(self._file)

    def _not_utf8(self, reason: str) -> RagaugeError:
        faults = ((number, _fault(line)) for number, line in enumerate(self.lines(), start=1))
        line, fault = next(((line, fault) for line, fault in faults if fault), (None, "the file"))
        message = f"{fault} is not UTF-8: {reason}"
        hint = "convert the file to UTF-8"
        return RagaugeError.of("bad-encoding", message, hint=hint, place=Place(self._name, line))


def _fault(line: bytes) -> str:
    try:
        line.decode()
    except UnicodeDecodeError as error:
        return f"byte {error.start} of the line"
    return ""


class _ComposedValue(NamedTuple):
    """A value, and how large and how deep it is when every alias in it is written out."""

    value: Any
    size: int
    depth: int


class _Repeating(dict[str, Any]):
    """A mapping that has a key twice; its JSON has both, the last one behind the other.

    What a key twice means is decided where rows are read, for all kinds of file.
    """

    def __init__(self, mapping: Mapping[str, Any], dropped: Sequence[tuple[str, Any]]) -> None:
        super().__init__(mapping)
        self.dropped = dropped

    def items(self) -> Any:
        """All pairs, for the encoder."""
        return [*self.dropped, *super().items()]


def _with_dropped(mapping: dict[str, Any], old: dict[str, Any]) -> dict[str, Any]:
    return _Repeating(mapping, old.dropped) if isinstance(old, _Repeating) else mapping


class _ItemComposer:
    """Composes the items of a document from its events, one at a time.

    Aliases share what they stand for. What they would take when written out is counted and not
    done, so that a few lines of aliases to aliases are refused at once.
    """

    def __init__(self, events: Iterator[Any], text: _Text, name: str) -> None:
        import yaml

        self._yaml = yaml
        self._resolver: Any = yaml.resolver.Resolver()
        self._constructor = yaml.constructor.SafeConstructor()
        self._events = events
        self._text = text
        self._name = name
        self._room = ROOM + 16 * text.size
        self._anchors: dict[str, _ComposedValue | None] = {}  # None: not read to its end yet

    def rows(self) -> Iterator[tuple[int, Any]]:
        """Yield the line, from 1, and the value of each item."""
        yaml = self._yaml
        self._next()
        if isinstance(self._next(), yaml.StreamEndEvent):
            return
        top = self._next()
        if isinstance(top, yaml.SequenceStartEvent):
            yield from self._items()
        elif isinstance(top, yaml.MappingStartEvent):
            yield from self._named_items(top)
        elif not (isinstance(top, yaml.ScalarEvent) and top.value == ""):
            raise self._bad_top(top)
        self._next()
        if not isinstance(further := self._next(), yaml.StreamEndEvent):
            hint = "write one list; remove the line `---`"
            raise self._bad(further, "the file holds more than one document", hint)

    def _items(self, unit: Any = None) -> Iterator[tuple[int, Any]]:
        """The items of a list; the unit of the file is that of each which names none."""
        while not isinstance(event := self._next(), self._yaml.SequenceEndEvent):
            row = self._part(event, 1).value
            if unit is not None and isinstance(row, dict) and row.get(UNIT) is None:
                row = _with_dropped({**row, UNIT: unit}, row)
            yield self._text.line(event.start_mark), row

    def _named_items(self, top: Any) -> Iterator[tuple[int, Any]]:
        list_keys: list[str] = []
        settings: dict[str, Any] = {}
        unit: Any = None
        while not isinstance(event := self._next(), self._yaml.MappingEndEvent):
            key, value = self._key(event), self._next()
            if key in ROW_KEYS and isinstance(value, self._yaml.SequenceStartEvent):
                list_keys.append(key)
                if len(list_keys) > 1:
                    message = f"`{list_keys[0]}` and `{key}` are both lists of items"
                    hint = "keep one of them, or write the other to a file of its own"
                    raise self._bad(event, message, hint)
                yield from self._items(unit)
                continue
            setting = self._part(value, 1).value
            settings[str(key)] = setting
            if key == UNIT and setting is not None:
                if unit not in (None, setting):
                    message = f"`{UNIT}` stands twice, and says `{unit}` and `{setting}`"
                    raise self._bad(event, message, "keep one of the two", code="duplicate-key")
                if list_keys:  # the items were read already, and as bytes
                    message = f"`{UNIT}` stands below the list of items that it is the unit of"
                    hint = f"write it above `{list_keys[0]}`, or in each item"
                    raise self._bad(event, message, hint)
                unit = setting
        if not list_keys and CONFIG_KEY in settings:
            yield self._text.line(top.start_mark), settings
        elif not list_keys:
            raise self._bad_top(top)

    def _bad_top(self, top: Any) -> RagaugeError:
        names = ", ".join(f"`{key}`" for key in ROW_KEYS)
        message = f"the file is no list, and has no list under {names}"
        return self._bad(top, message, "write a list of items, each beginning with `- `")

    def _part(self, event: Any, level: int) -> _ComposedValue:
        yaml = self._yaml
        if isinstance(event, yaml.AliasEvent):
            part = self._alias(event)
        else:
            if event.anchor is not None:
                self._anchors[event.anchor] = None
            if isinstance(event, yaml.ScalarEvent):
                part = _ComposedValue(self._scalar(event), len(event.value) + 4, 0)
            elif event.tag not in _COLLECTIONS:
                raise self._bad(event, f"the tag `{event.tag}` is not known", "remove the tag")
            elif level > MAX_DEPTH:
                raise self._too_deep(event)
            elif isinstance(event, yaml.SequenceStartEvent):
                part = self._sequence(level)
            else:
                part = self._mapping(level)
            if event.anchor is not None:
                self._anchors[event.anchor] = part
        if level + part.depth > MAX_DEPTH + 1:
            raise self._too_deep(event)
        return part

    def _sequence(self, level: int) -> _ComposedValue:
        parts = []
        while not isinstance(event := self._next(), self._yaml.SequenceEndEvent):
            parts.append(self._part(event, level + 1))
        return _around([part.value for part in parts], parts)

    def _mapping(self, level: int) -> _ComposedValue:
        own: dict[str, Any] = {}
        dropped: list[tuple[str, Any]] = []
        merged: dict[str, Any] = {}
        parts = []
        while not isinstance(event := self._next(), self._yaml.MappingEndEvent):
            key = self._key(event)
            part = self._part(self._next(), level + 1)
            parts.append(part._replace(size=part.size + len(key) + 4))
            if key == "<<" and getattr(event, "implicit", (False,))[0]:
                mappings = part.value if isinstance(part.value, list) else [part.value]
                if not all(isinstance(mapping, dict) for mapping in mappings):
                    hint = "name a mapping: `<<: *anchor`"
                    raise self._bad(event, "`<<` takes mappings only", hint)
                for mapping in mappings:
                    merged = {**mapping, **merged}
            else:
                if key in own:
                    dropped.append((key, own[key]))
                own[key] = part.value
        mapping = {**merged, **own}
        return _around(_Repeating(mapping, dropped) if dropped else mapping, parts)

    def _key(self, event: Any) -> str:
        """The key as it is written: `on`, `1` and `2024-01-05` are names here."""
        if isinstance(event, self._yaml.AliasEvent):
            value = self._alias(event).value
            if isinstance(value, str):
                return value
        elif isinstance(event, self._yaml.ScalarEvent):
            if event.anchor is not None:
                self._anchors[event.anchor] = _ComposedValue(event.value, len(event.value) + 4, 0)
            return str(event.value)
        raise self._bad(event, "a key must be text", "write the key in quotes")

    def _alias(self, event: Any) -> _ComposedValue:
        part = self._anchors.get(event.anchor)
        if part is None:
            inside = event.anchor in self._anchors
            reason = "is inside what it stands for" if inside else "stands for nothing above it"
            hint = "write the value itself"
            raise self._bad(event, f"the alias `*{event.anchor}` {reason}", hint)
        self._room -= part.size
        if self._room < 0:
            message = f"the aliases stand for more than {ROOM // 2**20} MiB"
            raise self._bad(event, message, "write the values themselves, in smaller files")
        return part

    def _scalar(self, event: Any) -> Any:
        yaml, text, tag = self._yaml, event.value, event.tag
        if tag in (None, "!"):
            tag = self._resolver.resolve(yaml.ScalarNode, text, event.implicit)
            if tag not in _SCALARS:  # `=` and `<<`, which mean something in other places
                return text
            special = tag.endswith("float") and text.strip("+-").lower() in (".inf", ".nan")
            if tag.endswith(("int", "float")) and not special and not _NUMBER.fullmatch(text):
                return text
        elif tag not in _SCALARS:
            raise self._bad(event, f"the tag `{tag}` is not known", "remove the tag")
        try:
            make = yaml.constructor.SafeConstructor.yaml_constructors[tag]
            value = make(self._constructor, yaml.ScalarNode(tag, text))
            if isinstance(value, float):
                return finite(value)
            if isinstance(value, bytes):
                return value.decode()
        except (ValueError, KeyError, AttributeError, yaml.YAMLError) as error:
            reason = f"`{text if len(text) <= 60 else text[:57] + '...'}` cannot be read"
            if isinstance(error, ValueError):
                reason += f": {first_line(error).partition(';')[0]}"
            hint = "write null where there is no value, and put text in quotes"
            raise self._bad(event, reason, hint) from error
        return value.isoformat() if hasattr(value, "isoformat") else value

    def _next(self) -> Any:
        yaml = self._yaml
        try:
            return next(self._events)
        except yaml.MarkedYAMLError as error:
            mark = error.problem_mark or error.context_mark
            line = None if mark is None else self._text.line(mark)
            message = error.problem or error.context or str(error)
            place, hint = Place(self._name, line), self._hint(message, line)
            raise RagaugeError.of("bad-yaml", message, hint=hint, place=place) from error
        except yaml.YAMLError as error:
            raise self._bad_character(error) from error

    def _hint(self, message: str, line: int | None) -> str:
        numbered = enumerate(self._text.lines(), start=1)
        text = next((line_text for number, line_text in numbered if number == line), b"")
        if b"\t" in text[: len(text) - len(text.lstrip())]:
            return "indent with spaces: YAML takes no tabs there"
        if "mapping values" in message or "cannot start any token" in message:
            return "put text in quotes when it has `: ` in it or begins with a special character"
        return "check the indentation, and whether every quote and bracket is closed"

    def _bad_character(self, error: Any) -> RagaugeError:
        """The parser says which character it does not take, and not on which line."""
        code = getattr(error, "character", None)
        bad = chr(code).encode() if isinstance(code, int) else str(code).encode()
        lines = enumerate(self._text.lines(), start=1)
        return RagaugeError.of(
            "bad-yaml",
            getattr(error, "reason", None) or first_line(error),
            hint="remove control characters, or write them as escapes in double quotes",
            place=Place(self._name, next((number for number, line in lines if bad in line), None)),
        )

    def _too_deep(self, event: Any) -> RagaugeError:
        message = f"the item is nested more than {MAX_DEPTH} levels deep"
        return self._bad(event, message, "write a flat mapping", code="too-deep")

    def _bad(self, event: Any, message: str, hint: str, code: str = "bad-yaml") -> RagaugeError:
        place = Place(self._name, self._text.line(event.start_mark))
        return RagaugeError.of(code, message, hint=hint, place=place)


def _around(value: Any, parts: list[_ComposedValue]) -> _ComposedValue:
    depth = max((part.depth for part in parts), default=0)
    return _ComposedValue(value, 2 + sum(part.size for part in parts), depth + 1)
