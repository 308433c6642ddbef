"""Packed texts: the strings of a gold set as bytes, which worker processes share.

A million questions as Python objects take about a gigabyte in every process. Here their texts lie
behind each other in one block of bytes, which workers map from a file. A text becomes an object
when it is asked for; the first ones stay objects, so that a usual gold set is unpacked once.
"""

from __future__ import annotations

import mmap
import os
from array import array
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from itertools import pairwise
from typing import Any, TypeVar, overload
from zlib import crc32

from msgspec import Struct

from ragauge.files.temporary_file import temporary_file

Texts = tuple[str, ...]
Key = TypeVar("Key")
Value = TypeVar("Value")

CACHED = 1 << 15
"""Values that stay objects once they were made."""

_NARROW = "I"  # numbers of 32 bits
_WIDE = "Q"
_BETWEEN = b"\x1f"
_ALIGNED = 8


class PackedBlock(Struct, kw_only=True, dict=True):
    """Columns of bytes behind each other, by name, in memory or in a file.

    It can travel to a worker process: with its bytes, or where it is shared with the path of a file
    that has them. `wide`: offsets have 64 bits.
    """

    columns: dict[str, tuple[int, int]] = {}
    data: bytearray = bytearray()
    path: str | None = None
    wide: bool = False

    @property
    def buffer(self) -> bytearray | mmap.mmap:
        """All bytes; the pages of a mapped file are there once for all processes."""
        if self.path is not None and "_mapped" not in self.__dict__:
            with open(self.path, "rb") as file:
                self.__dict__["_mapped"] = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        buffer: bytearray | mmap.mmap = self.__dict__.get("_mapped", self.data)
        return buffer

    def start(self, name: str) -> int:
        """Where a column begins."""
        return self.columns.get(name, (0, 0))[0]

    def numbers(self, name: str, kind: str = _NARROW) -> memoryview:
        """A column of numbers."""
        first, last = self.columns.get(name, (0, 0))
        view: memoryview = memoryview(self.buffer)[first:last]
        return view.cast(kind)  # type: ignore[call-overload,no-any-return]

    def offsets(self, name: str) -> memoryview:
        """Where the texts of a column begin and end."""
        return self.numbers(f"{name} offsets", _WIDE if self.wide else _NARROW)

    def share(self, stack: ExitStack) -> None:
        """Move the bytes to a temporary file that workers can map, as long as the stack lasts.

        Where that cannot be, they stay in memory, and each worker is sent its own.
        """
        if self.path is not None or not self.columns or os.name != "posix":
            return
        try:
            copy = stack.enter_context(temporary_file())
            copy.file.write(self.buffer)
            copy.file.flush()
        except OSError:
            return
        self.__dict__.pop("_mapped", None)
        self.path = copy.path
        self.data = bytearray()
        _ = self.buffer  # the mapping is made now, and outlives the file
        stack.callback(self._file_is_gone)

    def _file_is_gone(self) -> None:
        self.path = None


class BlockWriter:
    """Puts the columns of a block together."""

    def __init__(self) -> None:
        self._columns: dict[str, Any] = {}
        self._wide = False

    def add(self, name: str, data: Any) -> None:
        """Add a column of bytes, or an array of numbers."""
        self._columns[name] = data

    def add_texts(self, name: str, texts: PackedTextWriter) -> None:
        """Add texts; the writer is empty after that."""
        self._wide = self._wide or len(texts.data) >= 1 << 32
        self.add(name, texts.data)
        self.add(f"{name} offsets", texts.offsets)
        texts.data, texts.offsets = bytearray(), array(_WIDE, [0])

    def block(self) -> PackedBlock:
        """The block; the columns are gone after that."""
        block = PackedBlock(wide=self._wide)
        data = bytearray()
        columns: dict[str, tuple[int, int]] = {}
        while self._columns:
            name, column = self._columns.popitem()
            if name.endswith(" offsets") and not self._wide:
                column = array(_NARROW, column)
            first = len(data)
            data += memoryview(column).cast("B") if len(column) else b""
            columns[name] = first, len(data)
            data += bytes(-len(data) % _ALIGNED)
        block.columns, block.data = columns, data
        return block


class PackedTextWriter:
    """Texts that are packed as they come; also lists of texts."""

    def __init__(self) -> None:
        self.data = bytearray()
        self.offsets = array(_WIDE, [0])

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def add(self, data: bytes) -> None:
        """Add a text by its bytes."""
        self.data += data
        self.offsets.append(len(self.data))

    def add_list(self, texts: Texts) -> bool:
        """Add a list of texts; False, and none of them, where a text is like what is between."""
        joined = _BETWEEN.join(map(encoded, texts)) if texts else b""
        plain = not texts or (bool(joined) and joined.count(_BETWEEN) == len(texts) - 1)
        self.add(joined if plain else b"")
        return plain


def encoded(text: str) -> bytes:
    """The bytes of a text. Half a surrogate pair, which no file has, comes from a caller."""
    return text.encode("utf-8", "surrogatepass")


class PackedTexts(Sequence[str]):
    """The texts of a column."""

    def __init__(self, block: PackedBlock, name: str) -> None:
        self._block = block
        self._name = name
        self._size = max(0, len(block.offsets(name)) - 1)

    def __len__(self) -> int:
        return self._size

    @overload
    def __getitem__(self, place: int) -> str: ...

    @overload
    def __getitem__(self, place: slice) -> list[str]: ...

    def __getitem__(self, place: int | slice) -> str | list[str]:
        if isinstance(place, slice):
            return list(map(self.reader(), range(*place.indices(self._size))))
        return self.reader()(range(self._size)[place])

    def __iter__(self) -> Iterator[str]:
        start, buffer = self._block.start(self._name), self._block.buffer
        for first, last in pairwise(self._block.offsets(self._name)):
            yield buffer[start + first : start + last].decode("utf-8", "surrogatepass")

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and list(self) == list(other)

    __hash__ = None  # type: ignore[assignment]

    def __reduce__(self) -> tuple[type[list[str]], tuple[list[str]]]:
        """What is copied or pickled is a plain list: the bytes may be in a file of this process."""
        return list, (list(self),)

    def reader(self) -> Callable[[int], str]:
        """What gives the text at a place, for many places."""
        start, buffer = self._block.start(self._name), self._block.buffer
        offsets = self._block.offsets(self._name)

        def text(place: int) -> str:
            data = buffer[start + offsets[place] : start + offsets[place + 1]]
            return data.decode("utf-8", "surrogatepass")

        return text


class PackedLists(Sequence[Texts]):
    """The lists of texts of a column; `odd` are those that could not be packed, by their places."""

    def __init__(self, block: PackedBlock, name: str, odd: Mapping[int, Texts]) -> None:
        self._joined = PackedTexts(block, name)
        self._odd = odd

    def __len__(self) -> int:
        return len(self._joined)

    @overload
    def __getitem__(self, place: int) -> Texts: ...

    @overload
    def __getitem__(self, place: slice) -> list[Texts]: ...

    def __getitem__(self, place: int | slice) -> Texts | list[Texts]:
        if isinstance(place, slice):
            return list(map(self.reader(), range(*place.indices(len(self)))))
        return self.reader()(range(len(self))[place])

    def __iter__(self) -> Iterator[Texts]:
        return map(self.reader(), range(len(self)))

    def reader(self) -> Callable[[int], Texts]:
        """What gives the list at a place, for many places."""
        joined, odd, between = self._joined.reader(), self._odd, _BETWEEN.decode()

        def texts(place: int) -> Texts:
            text = joined(place)
            if text:
                return tuple(text.split(between))
            return odd.get(place, ()) if odd else ()

        return texts


class PackedIndex:
    """Finds the numbers that belong to a text, by the texts of a column."""

    def __init__(self, block: PackedBlock, name: str) -> None:
        self._buffer, self._start = block.buffer, block.start(name)
        self._offsets = block.offsets(name)
        self._entries = block.numbers(f"{name} entries")
        self._buckets = block.numbers(f"{name} buckets")
        self._numbers = block.numbers(f"{name} numbers")
        self._mask = len(self._buckets) - 2

    def numbers(self, text: str) -> list[int]:
        """The numbers of a text, in the order in which they were added."""
        if self._mask < 0:
            return []
        data, start, offsets = encoded(text), self._start, self._offsets
        bucket = crc32(data) & self._mask
        return [
            self._numbers[entry]
            for entry in self._entries[self._buckets[bucket] : self._buckets[bucket + 1]]
            if self._buffer[start + offsets[entry] : start + offsets[entry + 1]] == data
        ]

    def last(self, text: str) -> int | None:
        """The last number of a text."""
        numbers = self.numbers(text)
        return numbers[-1] if numbers else None

    def only(self, text: str) -> int | None:
        """The number of a text that has but one."""
        numbers = self.numbers(text)
        return numbers[0] if len(numbers) == 1 else None


class UnpackedValues(dict[Key, Value]):
    """Values by their keys: made when they are asked for, and kept while there are not too many.

    What is kept is looked up as quickly as in any dictionary.
    """

    def __init__(self, make: Callable[[Key], Value], *, most: int | None = None) -> None:
        super().__init__()
        self._make = make
        self._most = CACHED if most is None else most

    def __missing__(self, key: Key) -> Value:
        value = self._make(key)
        if value is not None and len(self) < self._most:
            self[key] = value
        return value
