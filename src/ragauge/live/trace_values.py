"""What is kept of a live trace: its row as it came, its values for scoring, and its names.

The row is JSON in our own names, without `qid` and `seed`: both depend on the gold set and the
window that a trace is looked at in, and are put in front of it then. The values are the trace as
`score` reads it from that row, without the texts of hits that nothing measures.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Mapping, Sequence
from contextlib import ExitStack
from hashlib import blake2b
from typing import Any, Literal

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from ragauge.corpus.document_names import DocumentNames
from ragauge.corpus.manifest import read_blocks, read_documents
from ragauge.files.fields import FieldError, Row
from ragauge.files.open import PathLike
from ragauge.files.ranges import rows_of
from ragauge.formats.detect import choose
from ragauge.formats.dialects.native import DIALECT
from ragauge.formats.fast_rows import FastDecoder
from ragauge.formats.field_map import NO_FIELDS, FieldMaps
from ragauge.formats.json_rows import decode_row
from ragauge.formats.load import open_source, read_gold
from ragauge.formats.traces import RowReader
from ragauge.ids import parts_of
from ragauge.model.field_spellings import INDEX_NAMES, TRACE_SPELLINGS
from ragauge.model.gold import GoldItem
from ragauge.model.trace import Hit, Trace
from ragauge.text import question_key

TraceState = Literal["scored", "errored", "unusable"]

_LEVEL = 1
_encode_row = msgspec.json.Encoder().encode
_encode_trace = msgspec.json.Encoder(order="deterministic").encode
_SET_LATER = ("seed", *TRACE_SPELLINGS["qid"], "unknown_ids", "oversampled")
_LONGEST_NAME, _MOST_BYTES = 200, 480
"""Five names make a key, and PostgreSQL has indexes for keys of up to 2,700 bytes."""
_NOTHING: dict[str, Any] = {}


class LiveGold:
    """The gold set that live questions are held against, read by our own names.

    `rows` are those of its file, as JSON; none is a set without items.
    """

    def __init__(self, rows: Sequence[bytes] = ()) -> None:
        reader = RowReader(DIALECT, own=False)
        self.items: dict[str, GoldItem] = {}
        self.rows: dict[str, bytes] = {}
        for line, row in enumerate(rows, start=1):
            item = reader.gold(decode_row(row, cut=False, overlong=False), line)
            if item.turn is None:  # a turn is no question that somebody asks again
                self.items[item.qid], self.rows[item.qid] = item, row
        listed = b"\n".join(rows)
        self.packed = zlib.compress(listed)
        self.digest = blake2b(listed, digest_size=16).hexdigest()
        self._by_text: dict[str, str | None] = {}
        for item in self.items.values():
            for text in (item.question, *item.paraphrases):
                if key := question_key(text):
                    same = self._by_text.get(key, item.qid) == item.qid
                    self._by_text[key] = item.qid if same else None

    @classmethod
    def read(cls, path: PathLike | None, *, fields: FieldMaps = NO_FIELDS) -> LiveGold:
        """The gold set of a file; an empty one where there is none."""
        if path is None:
            return cls()
        with ExitStack() as stack:
            source = open_source(stack, path, fields=fields)
            assert source is not None  # a path is always opened
            choice = choose(DIALECT.name, None, gold=source)
            read_gold(path, source, choice).stop_on_problems()
            rows = [data for _, data, _, _ in rows_of(source)]
            return cls([msgspec.json.format(row, indent=-1) for row in rows])

    @classmethod
    def unpacked(cls, packed: bytes) -> LiveGold:
        """A gold set as it was stored."""
        return cls([row for row in zlib.decompress(packed).split(b"\n") if row])

    def match(self, qid: object, key: str) -> str | None:
        """The item that a question is: by its id, else by its text or a paraphrase of it.

        A text of two items matches none.
        """
        if isinstance(qid, str) and qid in self.items:
            return qid
        return self._by_text.get(key) if key else None


class KnownIds:
    """The ids that a corpus has: of its blocks, and of whatever lies in its documents."""

    def __init__(self, blocks: Iterable[str], documents: Iterable[str]) -> None:
        self._blocks = frozenset(blocks)
        self._documents = DocumentNames(tuple(documents))

    @classmethod
    def read(cls, folder: PathLike | None) -> KnownIds | None:
        """Those of a corpus; None where there is none."""
        if folder is None:
            return None
        corpus = read_documents(folder)
        blocks = (block.id for block in read_blocks(corpus))
        return cls(blocks, (document.doc for document in corpus.documents))

    def unknown(self, trace: Trace) -> tuple[str, ...]:
        """The ids of hits and citations that the corpus does not have, each once."""
        unknown: dict[str, None] = {}
        for hit in trace.hits:
            if not self._has(hit.id, hit.doc, hit.path):
                unknown[hit.id] = None
        if trace.answer is not None:
            for citation in trace.answer.listed:
                if not self._has(citation.id, citation.doc):
                    unknown[citation.id] = None
        return tuple(unknown)

    def _has(self, name: str, *documents: str | None) -> bool:
        if name in self._blocks:
            return True
        own = [doc for doc in documents if doc is not None]
        named = own or [doc for doc in (parts_of(name).doc,) if doc is not None]
        matches = [self._documents.match(doc) for doc in named]
        return any(match.doc is not None or match.ambiguous for match in matches)


class TraceValues(Struct, frozen=True, kw_only=True):
    """A live trace, as a row of `live_traces` has it, but for where and when it came."""

    trace_id: str
    app: str
    build: str
    index_hash: str
    question_type: str
    state: TraceState
    user_key: str | None
    question_key: str
    gold_id: str | None
    index_facts: str
    body: bytes | None
    measured: bytes | None
    problem: str | None = None


class TraceReader:
    """Reads rows as `score` does, and packs what is kept of them."""

    def __init__(self, app: str, gold: LiveGold, known: KnownIds | None) -> None:
        self.app = app
        self.gold = gold
        self.known_ids = known
        self._rows = RowReader(DIALECT, own=False)
        self._fast = FastDecoder(unread=True)

    def read(
        self, row: Mapping[str, Any], fallback_id: str, *, oversampled: bool = False
    ) -> TraceValues:
        """What is kept of a row; one that cannot be read is kept as it is, with the reason."""
        trace_id = row.get("trace_id")
        trace_id = storable(trace_id) if isinstance(trace_id, str) and trace_id else fallback_id
        facts = {name: row[name] for name in row if name not in _SET_LATER}
        facts["trace_id"] = trace_id
        if oversampled:
            facts["oversampled"] = True
        body = _encode_row(facts)
        trace: Trace | None = None
        problem: str | None = None
        try:
            trace = self._trace(body)
        except FieldError as error:
            problem = error.message
        if trace is not None and self.known_ids is not None:
            unknown = self.known_ids.unknown(trace)
            facts["unknown_ids"] = list(unknown)
            trace = replace(trace, unknown_ids=unknown)
            body = _encode_row(facts)
        question = None if trace is None else trace.question
        text = question_key(question)
        key = blake2b((text or f"\0{trace_id}").encode(), digest_size=12).hexdigest()
        gold_id = None if trace is None else self.gold.match(_own_qid(row), text)
        index = {} if trace is None else trace.index
        kind = self.gold.items[gold_id].type if gold_id is not None else row.get("type")
        return TraceValues(
            trace_id=trace_id,
            app=_name(row.get("app")) or self.app,
            build=_name(index.get("build")),
            index_hash=_name(index.get("index_hash")),
            question_type=_name(kind),
            state="unusable" if trace is None else "errored" if trace.error else "scored",
            user_key=_name(row.get("user_key")) or None,
            question_key=key,
            gold_id=gold_id,
            index_facts=_encode_trace(
                {name: index[name] for name in INDEX_NAMES if name in index and name != "build"}
            ).decode(),
            body=zlib.compress(body, _LEVEL),
            measured=None
            if trace is None
            else zlib.compress(_encode_trace(slim(trace, whole=gold_id is not None)), _LEVEL),
            problem=problem,
        )

    def unusable(self, trace_id: str, app: str | None) -> TraceValues:
        """What is kept of a trace whose spans are of no RAG system, or not all: that it came."""
        return TraceValues(
            trace_id=trace_id,
            app=_name(app) or self.app,
            build="",
            index_hash="",
            question_type="",
            state="unusable",
            user_key=None,
            question_key="",
            gold_id=None,
            index_facts="{}",
            body=None,
            measured=None,
            problem="no span of a known convention",
        )

    def _trace(self, body: bytes) -> Trace:
        fast = self._fast.row(body)
        trace = (
            None
            if fast is None
            else fast.trace(None, strip_citations=False, cites_in_text=self._rows.cites_in_text)
        )
        if trace is None:
            trace = self._rows.trace(decode_row(body, cut=False, overlong=False))
        return trace


def slim(trace: Trace, *, whole: bool) -> Trace:
    """A trace without what nothing measures; `whole` where gold may look at all of it."""
    if whole:
        return replace(trace, extra=_NOTHING)
    placed = trace.answer is not None and any(entry.placed for entry in trace.answer.cited)
    hits = (
        tuple(replace(hit, text=None) for hit in trace.hits)
        if placed
        else tuple(Hit(id=hit.id, doc=hit.doc, delta_s=hit.delta_s) for hit in trace.hits)
    )
    return replace(trace, hits=hits, extra=_NOTHING)


def _own_qid(row: Mapping[str, Any]) -> object:
    return next((row[name] for name in TRACE_SPELLINGS["qid"] if row.get(name)), None)


def _name(value: object) -> str:
    """A name by which traces are grouped: what is no text is none, and a long one is cut."""
    if not isinstance(value, str):
        return ""
    name = storable(value)
    if len(name) > _LONGEST_NAME:
        name = f"{name[: _LONGEST_NAME - 1]}…"
    data = name.encode()
    if len(data) > _MOST_BYTES:
        name = f"{data[: _MOST_BYTES - 3].decode(errors='ignore')}…"
    return name


def storable(text: str) -> str:
    """A text that any database takes: PostgreSQL has none with a NUL in it."""
    return text.replace("\0", "\ufffd")


def fallback_id(body_key: bytes, place: int) -> str:
    """An id for a row that has none: the same when its body is read again."""
    return blake2b(body_key + place.to_bytes(4, "big"), digest_size=16).hexdigest()


def row_with(qid: str, seed: int, body: bytes) -> bytes:
    """A stored row or trace with the question and the repeat that it is in a window."""
    head = b'{"qid":' + msgspec.json.encode(qid) + b',"seed":%d' % seed
    return head + (b"}" if body == b"{}" else b"," + body[1:])


def decoded_row(line: bytes) -> Row:
    """A native row of a spooled body; raises FieldError where it is none."""
    return decode_row(line, cut=False, overlong=False)
