"""Freezing: gold items, traces, chunks and what a run knows as bytes to store, and back.

A payload is JSON (what a run knows is MessagePack), packed with zlib: any tool can read it.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from hashlib import blake2b, sha256
from itertools import islice

import msgspec
from msgspec.structs import replace

from ragauge.concurrency import paused_collector
from ragauge.errors import Place, Problem, RagaugeError
from ragauge.model.chunk import Chunk
from ragauge.model.evidence import Evidence
from ragauge.model.gold import GoldItem
from ragauge.model.run import PAYLOAD_SCHEMA, GoldRow
from ragauge.model.trace import Trace

_LEVEL = 1  # higher levels save 2 % and cost as much time again
_BLOCK = 1024  # chunks of a list to a block
_encode = msgspec.json.Encoder(order="deterministic").encode
trace_of = msgspec.json.Decoder(Trace).decode
"""The trace that the JSON of a payload holds."""
_decode_item = msgspec.json.Decoder(GoldItem).decode
_decode_chunks = msgspec.json.Decoder(list[tuple[str, Chunk]]).decode
UNREADABLE = (zlib.error, msgspec.DecodeError, UnicodeDecodeError, RecursionError)
"""What a payload that was damaged may raise."""


@contextmanager
def _reading(what: str, hint: str = "import the run again from an export") -> Iterator[None]:
    """Report a payload that cannot be read."""
    try:
        yield
    except UNREADABLE as error:
        raise RagaugeError.of("bad-store", f"{what} cannot be read: {error}", hint=hint) from error


def trace_json(trace: Trace) -> bytes:
    """The JSON of a trace, in one line."""
    return _encode(trace)


def freeze_trace(trace: Trace) -> bytes:
    """The payload of a trace."""
    return zlib.compress(trace_json(trace), _LEVEL)


def thaw(payload: bytes) -> bytes:
    """The JSON in a payload."""
    return zlib.decompress(payload)


def freeze_gold(items: Sequence[GoldItem]) -> list[GoldRow]:
    """The rows of a gold set."""
    return [
        GoldRow(place, item.qid, item.turn, item_hash(item), zlib.compress(_encode(item), _LEVEL))
        for place, item in enumerate(items)
    ]


@paused_collector()
def thaw_gold(rows: Iterable[GoldRow], name: str) -> list[GoldItem]:
    """The items of a stored gold set; one that cannot be read spoils the whole set."""
    hint = "without its gold set a run cannot be scored: import it again from an export"
    with _reading(f"a gold item of {name}", hint):
        return [_decode_item(zlib.decompress(row.payload)) for row in rows]


def item_hash(item: GoldItem) -> str:
    """A hash of what an item says; where it stands and fields that nothing reads play no part."""
    return sha256(_encode(replace(item, line=None, extra={}))).hexdigest()[:16]


def gold_hash(hashes: Iterable[tuple[str, int | None, str]]) -> str:
    """A hash of a gold set by the id, turn and hash of its items, whatever their order."""
    lines = sorted(f"{qid}\0{'' if turn is None else turn}\0{item}" for qid, turn, item in hashes)
    return sha256("\n".join(lines).encode()).hexdigest()


def gold_key(rows: Iterable[GoldRow]) -> str:
    """A name for a gold set with its order and its lines."""
    digest = sha256()
    for row in rows:
        digest.update(zlib.decompress(row.payload) + b"\n")
    return digest.hexdigest()


def freeze_chunks(chunks: Mapping[str, Chunk]) -> list[bytes]:
    """A list of chunks in blocks."""
    listed = iter(sorted(chunks.items(), key=lambda entry: entry[0]))
    blocks = []
    while block := list(islice(listed, _BLOCK)):
        blocks.append(zlib.compress(_encode(block), _LEVEL))
    return blocks


def thaw_chunks(blocks: Iterable[bytes], name: str) -> dict[str, Chunk]:
    """The list of chunks that the blocks hold."""
    with _reading(f"the list of chunks of {name}"):
        return dict(entry for block in blocks for entry in _decode_chunks(zlib.decompress(block)))


def freeze_evidence(evidence: Evidence) -> bytes:
    """What a run knows of chunks and documents, packed."""
    return zlib.compress(msgspec.msgpack.encode(evidence), _LEVEL)


def thaw_evidence(payload: bytes, name: str) -> Evidence:
    """What a stored run knows; nothing for a run that was never finished."""
    if not payload:
        return Evidence()
    with _reading(f"what {name} knows of its chunks"):
        return msgspec.msgpack.decode(zlib.decompress(payload), type=Evidence)


def unreadable(name: str, error: Exception | None = None, *, ordinal: int | None = None) -> Problem:
    """A stored result that cannot be read: one problem, not the end of the run."""
    reason = "" if error is None else f": {error}"
    return Problem(
        "bad-store",
        f"a stored result cannot be read{reason}",
        "it is counted and left out; import the run again from an export if there is one",
        Place(name, ordinal),
    )


def number_of(text: str) -> int:
    """A 64-bit number for a text, never 0."""
    return int.from_bytes(blake2b(text.encode(), digest_size=8).digest(), "little") or 1


def id_number(name: str) -> int:
    """A number for a chunk id; its upper half is cheap to compute, and decides what is sketched."""
    return zlib.crc32(name.encode()) << 32 | (number_of(name) & 0xFFFFFFFF)


def readable(schema_version: int) -> bool:
    """Whether payloads of a schema can be read."""
    return schema_version <= PAYLOAD_SCHEMA
