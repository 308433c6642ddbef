"""Packed slices: the slices of a scoring apart from the aggregate that they belong to.

The aggregate is plain JSON, for anyone who asks a store with SQL; its slices were three quarters of
it, so they have a column of their own, as JSON packed with zlib.
"""

from __future__ import annotations

import zlib
from typing import Any, NamedTuple

import msgspec
from msgspec import Raw

_LEVEL = 6  # a scoring has few kilobytes of slices: time plays no part, and 1 takes a quarter more
_BEFORE = "metrics"  # the member behind which slices stand in a scores document
_SLICES = "slices"
UNREADABLE_SLICES = (zlib.error, msgspec.DecodeError, UnicodeError, RecursionError)
"""What slices or an aggregate that were damaged may raise."""

_members_of = msgspec.json.Decoder(dict[str, Raw]).decode


class SplitAggregate(NamedTuple):
    """An aggregate without its slices, and these packed; empty where it has none."""

    aggregate: str
    slices: bytes


def pack_slices(slices: Any) -> bytes:
    """The slices of a scores document, packed; nothing for none."""
    return zlib.compress(msgspec.json.encode(slices), _LEVEL) if slices else b""


def unpack_slices(payload: bytes) -> bytes:
    """The JSON of packed slices."""
    return zlib.decompress(payload) if payload else b"{}"


def split_slices(aggregate: str) -> SplitAggregate:
    """Take the slices out of an aggregate; all else in it stays as it is, byte by byte.

    Text that is no object, as in a store that was damaged, stays as it is too.
    """
    try:
        members = _members_of(aggregate)
    except UNREADABLE_SLICES:
        return SplitAggregate(aggregate, b"")
    slices = members.pop(_SLICES, None)
    if slices is None:
        return SplitAggregate(aggregate, b"")
    return SplitAggregate(
        msgspec.json.encode(members).decode(), zlib.compress(bytes(slices), _LEVEL)
    )


def join_slices(aggregate: str, payload: bytes) -> str:
    """Put packed slices back where they stand in a scores document; the way back of a split."""
    if not payload:
        return aggregate
    members = _members_of(aggregate)
    slices = Raw(unpack_slices(payload))
    joined: dict[str, Raw] = {}
    for name, value in members.items():
        joined[name] = value
        if name == _BEFORE:
            joined[_SLICES] = slices
    joined.setdefault(_SLICES, slices)
    return msgspec.json.encode(joined).decode()
