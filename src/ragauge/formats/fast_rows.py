"""The fast path: rows of the usual shapes, decoded in one step by structs made for their spelling.

The names come from the tables in `model.dialect`. A struct takes one spelling of each field; which
one, is learned from the rows of the file. Everything else that is read of a row has to be absent or
null, or the row does not decode, and is read on the exact path, which knows every spelling and
alone decides what is an error. Where both paths can read a row they give the same trace.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache
from itertools import chain
from typing import Annotated, Any, ClassVar, Literal, NamedTuple, get_origin, get_type_hints

import msgspec
from msgspec import Meta, Struct

from ragauge.files.duplicate_keys import may_have_duplicate_keys
from ragauge.files.fields import INT64
from ragauge.formats.hits import MOST_COST, MOST_MS, MOST_TOKENS, is_disordered
from ragauge.formats.imports.answer_citations import cited_in_text
from ragauge.model.field_spellings import (
    ANSWER_SPELLINGS,
    GOLD_SPELLINGS,
    HIT_SPELLINGS,
    INDEX_NAMES,
    PERF_SPELLINGS,
    TRACE_NAMES,
    TRACE_SPELLINGS,
)
from ragauge.model.gold import Expect, GoldItem
from ragauge.model.trace import Answer, Hit, Timing, Trace, Usage
from ragauge.spans import PLACE_NAMES, Span
from ragauge.text import citations_in

WideInt = Annotated[int, Meta(ge=-INT64, le=INT64 - 1)]
Milliseconds = Annotated[float, Meta(ge=0, le=MOST_MS)]
Tokens = Annotated[float, Meta(ge=0, le=MOST_TOKENS)]
Money = Annotated[float, Meta(ge=0, le=MOST_COST)]
# Whole numbers beyond 64 bits are an error, and fractions are not: the exact path tells them apart.
_Score = Annotated[float, Meta(gt=-INT64, lt=INT64)]
_Offset = Annotated[int, Meta(ge=0, le=INT64 - 1)]
_OffsetPair = tuple[_Offset, _Offset]

HitKind = Literal["ids", "texts", "places"]
"""Hits are ids; objects with an id and perhaps a text; or objects that may say anything usual."""

_NAME_END = re.compile(rb'"\s*+:')
_NOT_USUAL = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)
_NULL = msgspec.Raw(b"null")
_decode_fields = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode
_decode_value = msgspec.json.Decoder().decode


# The classes below say which fields the structs may have, and of which types: `_make_struct` gives
# each the name that it has in a file. A field that a table of spellings has and no class here is
# left to the exact path.


class FastPerf:
    """The times of the parts."""

    __slots__ = ()
    retrieve: Milliseconds | None
    reason: Milliseconds | None


class FastHit:
    """A hit that is an object."""

    __slots__ = ()
    id: str
    doc: str | None
    section: str | None
    score: _Score | None
    rank: WideInt | None
    type: str | None
    text: str | None
    chunker_version: str | None
    doc_hash: str | None
    text_hash: str | None
    policy_hash: str | None
    span: _OffsetPair | None
    offsets: _OffsetPair | None
    start: _Offset | None
    end: _Offset | None

    def hit(self) -> Hit | None:
        """The hit; None where its place is given twice, or is none."""
        pair = self.offsets
        if pair is None:
            pair = self.span
        elif self.span is not None:
            return None
        if self.start is not None or self.end is not None:
            if pair is not None or self.start is None or self.end is None:
                return None
            pair = (self.start, self.end)
        if pair is not None and pair[1] < pair[0]:
            return None
        # By position, which takes half the time of names.
        return Hit(
            self.id,
            self.doc,
            self.section,
            self.score,
            self.type,
            self.text,
            () if pair is None else (Span(pair[0], pair[1]),),
            None,
            self.chunker_version,
            None,
            None,
            self.doc_hash,
            self.text_hash,
            self.policy_hash,
        )

    def text_hit(self) -> Hit:
        """The hit, where it has no place."""
        return Hit(
            self.id,
            type=self.type,
            text=self.text,
            doc_hash=self.doc_hash,
            text_hash=self.text_hash,
            policy_hash=self.policy_hash,
        )


class FastAnswer:
    """An answer that is an object."""

    __slots__ = ()
    claim: str | None
    text: str | None
    citations: list[str] | None


class FastAnswerParts(NamedTuple):
    """What an answer says, and whether its citations stand in its text alone."""

    claim: str | None
    text: str | None
    citations: Sequence[str] | None
    in_text: bool


_NO_ANSWER = FastAnswerParts(None, None, None, False)


class FastRow:
    """A row of a usual shape. Its attributes are called after the fields, however they are spelled.

    `answer` is an object or a string, as `answer_is_object` says; beside an object there is no
    list of citations in the row.
    """

    __slots__ = ()
    hit_kind: ClassVar[HitKind]
    answer_is_object: ClassVar[bool]
    qid: str | None
    question: str | None
    paraphrase: WideInt | None
    seed: WideInt | None
    turn: WideInt | None
    hits: list[Any] | None
    answer: Any
    citations: list[str] | None
    perf: FastPerf | None
    total_ms: Milliseconds | None
    tokens: Tokens | None
    cost: Money | None

    @property
    def hit_ids(self) -> Sequence[str]:
        """The ids of the hits."""
        if self.hit_kind == "ids":
            return self.hits or ()
        return [hit.id for hit in self.hits or ()]

    def answered(self, *, cites_in_text: bool) -> FastAnswerParts:
        """The parts of the answer; `cites_in_text` says whether brackets in it are read."""
        if not self.answer_is_object:
            claim, text, citations = None, self.answer, self.citations
        elif self.answer is None:
            return _NO_ANSWER
        else:
            claim, text, citations = self.answer.claim, self.answer.text, self.answer.citations
        if citations is None and text is not None:
            citations = citations_in(text)
            if citations is None and cites_in_text:
                in_text = cited_in_text(text, self.hit_ids)
                return FastAnswerParts(claim, text, in_text, in_text is not None)
        return FastAnswerParts(claim, text, citations, False)

    def timing(self) -> Timing | None:
        """How long the parts took, where the row records it."""
        perf, total = self.perf, self.total_ms
        if perf is None:
            return None if total is None else Timing(total=total)
        retrieve, reason = perf.retrieve, perf.reason
        if total is None and retrieve is not None and reason is not None:
            total = retrieve + reason
        if retrieve is None and reason is None and total is None:
            return None
        return Timing(retrieve=retrieve, reason=reason, total=total)

    def usage(self) -> Usage | None:
        """What the trace cost, where the row records it."""
        if self.tokens is None and self.cost is None:
            return None
        return Usage(tokens=self.tokens, cost=self.cost)

    def trace(
        self, line: int | None, *, strip_citations: bool, cites_in_text: bool
    ) -> Trace | None:
        """The trace of the row without its unread fields; None if the exact path must read it."""
        listed: Sequence[Any] = self.hits or ()
        hits: tuple[Hit, ...]
        disordered = False
        if self.hit_kind == "ids":
            hits = tuple(map(Hit, listed))
        elif self.hit_kind == "texts":
            hits = tuple([hit.text_hit() for hit in listed])
        else:
            hits = tuple([hit for entry in listed if (hit := entry.hit()) is not None])
            if len(hits) < len(listed):
                return None
            ranks = [hit.rank for hit in listed if hit.rank is not None]
            scores = [hit.score for hit in listed if hit.score is not None]
            disordered = is_disordered(ranks, scores)
        claim, text, citations, in_text = self.answered(cites_in_text=cites_in_text)
        answer = None
        if not (claim is None and text is None and citations is None):
            if citations is not None:
                citations = tuple(map(str.strip, citations) if strip_citations else citations)
            answer = Answer(claim=claim, text=text, citations=citations, cites_in_text=in_text)
        return Trace(
            qid=self.qid or None,
            question=self.question,
            paraphrase=self.paraphrase,
            seed=self.seed,
            turn=self.turn,
            hits=hits,
            answer=answer,
            timing=self.timing(),
            usage=self.usage(),
            index={
                name: index for name in INDEX_NAMES if (index := getattr(self, name)) is not None
            },
            disordered=disordered,
            line=line,
        )


def _types(fast: type) -> dict[str, Any]:
    """The fields of one of these classes, with their types."""
    hints = get_type_hints(fast, include_extras=True)
    return {field: kind for field, kind in hints.items() if get_origin(kind) is not ClassVar}


_SHAPED = ("hits", "answer", "citations", "perf")
"""Fields of a row whose type depends on its shape."""
_ROW_TYPES = {
    **{field: kind for field, kind in _types(FastRow).items() if field not in _SHAPED},
    **dict.fromkeys(INDEX_NAMES, str | None),
}
_READ = frozenset((*_ROW_TYPES, *_SHAPED))
_PLACED_HIT_TYPES = _types(FastHit)
_TEXT_HIT_TYPES = {
    field: _PLACED_HIT_TYPES[field]
    for field in ("id", "text", "type", "doc_hash", "text_hash", "policy_hash")
}
_ANSWER_TYPES = _types(FastAnswer)
_PERF_TYPES = _types(FastPerf)

# The names of places belong to `spans`, which reads them; each is its own field here.
_HIT_NAMES = {**HIT_SPELLINGS, **{name: (name,) for name in PLACE_NAMES}}
_ROW_NAMES = {
    **TRACE_SPELLINGS,
    **{name: (name,) for name in INDEX_NAMES},
    "retrieval": ("retrieval",),
}
_ROW_FIELD_OF = {name: field for field, names in _ROW_NAMES.items() for name in names}
_HIT_FIELD_OF = {name: field for field, names in _HIT_NAMES.items() for name in names}

Spelling = tuple[tuple[str, str], ...]
"""Fields, each with the one name that it has."""


class Shape(NamedTuple):
    """How the rows of a file are spelled, and what they have beside the usual fields.

    `spelling` is in the order of the row: msgspec finds names quickest in their order. `extent`
    says what a row may have beside one spelling of each usual field: nothing; other names that are
    read, with null for a value; or also names that nothing reads. `open_parts` says the last
    of hits, answers and times. `closed` are names that may only be null, because no other than own
    names are read of their fields.
    """

    spelling: Spelling = ()
    hit_spelling: Spelling = ()
    hit_kind: HitKind = "ids"
    answer_is_object: bool = True
    extent: Literal["usual", "nulls", "unread"] = "usual"
    open_parts: bool = False
    closed: frozenset[str] = frozenset()


def shape_of(data: bytes, closed: frozenset[str] = frozenset()) -> Shape | None:
    """The shape of a row; None if no fast struct can read it, or if it has a closed name."""
    try:
        values = _decode_fields(data)
        spelled: dict[str, str] = {}
        extent: Literal["usual", "nulls", "unread"] = "usual"
        for name, raw in values.items():
            field = _ROW_FIELD_OF.get(name)
            if field is None:
                extent = "unread"
            elif raw == _NULL:
                extent = "nulls" if extent == "usual" else extent
            elif field in spelled or name in closed or field not in _READ:
                return None
            else:
                spelled[field] = name
        parts = {
            field: _decode_value(values[spelled[field]]) for field in _SHAPED if field in spelled
        }
    except _NOT_USUAL:
        return None
    answer, perf = parts.get("answer"), parts.get("perf", {})
    answer_is_object = isinstance(answer, dict) or (answer is None and "citations" not in parts)
    # An object has its own citations; under its first spelling an answer must be an object.
    if answer_is_object and "citations" in parts:
        return None
    if not answer_is_object and spelled.get("answer") == TRACE_SPELLINGS["answer"][0]:
        return None
    hits = _shape_of_hits(parts.get("hits", []))
    if hits is None or not isinstance(perf, dict):
        return None
    hit_kind, hit_spelling, open_hits = hits
    open_parts = (
        open_hits
        or (isinstance(answer, dict) and _has_more(answer, ANSWER_SPELLINGS, _ANSWER_TYPES))
        or _has_more(perf, PERF_SPELLINGS, _PERF_TYPES)
    )
    return Shape(
        tuple(spelled.items()), hit_spelling, hit_kind, answer_is_object, extent, open_parts, closed
    )


def _shape_of_hits(hits: Any) -> tuple[HitKind, Spelling, bool] | None:
    """What kind of hits a list has, how they are spelled, and whether they have other names."""
    if not isinstance(hits, list):
        return None
    if all(isinstance(hit, str) for hit in hits):
        return "ids", (), False
    spelled: dict[str, str] = {}
    names: set[str] = set()
    for hit in hits:
        if not isinstance(hit, dict):
            return None
        names |= hit.keys()
        for name, value in hit.items():
            field = _HIT_FIELD_OF.get(name)
            if field is None or value is None:
                continue
            if field not in _PLACED_HIT_TYPES or spelled.setdefault(field, name) != name:
                return None
    hit_kind: HitKind = "texts" if spelled.keys() <= _TEXT_HIT_TYPES.keys() else "places"
    types = _TEXT_HIT_TYPES if hit_kind == "texts" else _PLACED_HIT_TYPES
    usual = {spelled.get(field, _HIT_NAMES[field][0]) for field in types}
    return hit_kind, tuple(spelled.items()), not names <= usual


def _has_more(
    value: Mapping[str, Any], spellings: Mapping[str, tuple[str, ...]], types: Mapping[str, Any]
) -> bool:
    """Whether an object has other names than the first spelling of each usual field."""
    return not value.keys() <= {spellings[field][0] for field in types}


def _make_struct(
    base: Any,
    types: Mapping[str, Any],
    spellings: Mapping[str, Sequence[str]],
    spelling: Spelling = (),
    nulls: Iterable[str] = (),
    *,
    closed: bool,
    **namespace: Any,
) -> Any:
    """A struct of these fields; those not in `spelling` have their first name.

    `nulls` are names that may only be null. Names beyond ASCII are never declared: `_is_plain`
    sends rows that have one to the exact path.
    """
    spelled = dict(spelling)
    names = {field: spellings[field][0] for field in types} | spelled
    fields: list[tuple[str, Any, Any]] = []
    for field in (*spelled, *(field for field in types if field not in spelled)):
        kind = types[field]
        default: Any = None if kind == kind | None else msgspec.NODEFAULT  # or it must be there
        fields.append((field, kind, msgspec.field(default=default, name=names[field])))
    for place, name in enumerate(sorted(set(nulls) - set(names.values()))):
        if name.isascii():
            fields.append((f"null_{place}", None, msgspec.field(default=None, name=name)))
    return msgspec.defstruct(
        base.__name__,
        fields,
        bases=(base, Struct),
        namespace=namespace,
        forbid_unknown_fields=closed,
        gc=False,
        kw_only=True,
    )


_MOST_DECODERS = 256
_decoders: dict[Shape, Callable[[bytes], FastRow]] = {}


def _decoder(shape: Shape) -> Callable[[bytes], FastRow]:
    """Decode rows of a shape; decoders are kept, as it takes a millisecond to make one.

    Shapes that differ only in which fields there are, or in their order, share one: a field under
    its first spelling is read whether a shape names it or not.
    """
    key = shape._replace(
        spelling=_unusual(shape.spelling, _open_names(shape)),
        hit_spelling=_unusual(shape.hit_spelling, _HIT_NAMES),
    )
    if key not in _decoders:
        if len(_decoders) == _MOST_DECODERS:
            _decoders.clear()
        _decoders[key] = _make_decoder(shape)
    return _decoders[key]


def _unusual(spelling: Spelling, spellings: Mapping[str, Sequence[str]]) -> Spelling:
    """The fields that have another name than their first."""
    return tuple(sorted(pair for pair in spelling if pair[1] != spellings[pair[0]][0]))


def _open_names(shape: Shape) -> dict[str, Sequence[str]]:
    """The names of each field of a row that are not closed; the structs take the first."""
    if not shape.closed:
        return {**_ROW_NAMES}
    return {
        field: tuple(name for name in names if name not in shape.closed) or names
        for field, names in _ROW_NAMES.items()
    }


def _make_decoder(shape: Shape) -> Callable[[bytes], FastRow]:

    def part(
        base: Any,
        types: Mapping[str, Any],
        spellings: Mapping[str, Sequence[str]],
        spelling: Spelling = (),
    ) -> Any:
        nulls = chain.from_iterable(spellings.values()) if shape.open_parts else ()
        return _make_struct(base, types, spellings, spelling, nulls, closed=not shape.open_parts)

    hits: Any = str
    if shape.hit_kind != "ids":
        hit_types = _TEXT_HIT_TYPES if shape.hit_kind == "texts" else _PLACED_HIT_TYPES
        hits = part(FastHit, hit_types, _HIT_NAMES, shape.hit_spelling)
    perf = part(FastPerf, _PERF_TYPES, PERF_SPELLINGS)
    types = {**_ROW_TYPES, "hits": list[hits] | None, "perf": perf | None}
    names = _open_names(shape)
    if shape.answer_is_object:
        types["answer"] = part(FastAnswer, _ANSWER_TYPES, ANSWER_SPELLINGS) | None
    else:
        types |= {"answer": str | None, "citations": list[str] | None}
        names["answer"] = TRACE_SPELLINGS["answer"][1:]  # the first is always an object
    row = _make_struct(
        FastRow,
        types,
        names,
        shape.spelling,
        () if shape.extent == "usual" else TRACE_NAMES,
        closed=shape.extent != "unread",
        hit_kind=shape.hit_kind,
        answer_is_object=shape.answer_is_object,
    )
    return msgspec.json.Decoder(row).decode


def _is_plain(data: bytes) -> bool:
    """Whether the names of a row are all ASCII, and its bytes are text.

    Values that are passed over are not decoded, so their bytes are checked here.
    """
    if data.isascii() and b"\\u" not in data:
        return True
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    # A name with a letter beyond ASCII, plain or escaped: only the exact path knows what it means.
    for match in _NAME_END.finditer(data):
        end = match.start()
        name = data[data.rfind(b'"', 0, end) + 1 : end]
        if not name.isascii() or b"\\u" in name:
            return False
    return True


_LONGEST_PAUSE = 63
_MOST_RECENT = 4


class _RowDecoder(NamedTuple):
    """Decodes rows, whose bytes may have to be checked before."""

    decode: Callable[[bytes], FastRow]
    checks: bool


class FastDecoder:
    """Decodes the rows of one file, by the shapes of those that came before.

    Without `unread` a row that has a field which nothing reads is left to the exact path, which
    keeps it; and so is one that has a name which is `closed`.
    """

    def __init__(self, *, unread: bool, closed: frozenset[str] = frozenset()) -> None:
        self.unread = unread
        self.closed = closed
        self._pause = self._paused = 0
        # The last ones that were of use, the very last first: a log may hold rows of some systems.
        self._recent = [_RowDecoder(_decoder(Shape(closed=closed)), checks=False)]

    def _learn(self, data: bytes) -> bool:
        """Take the shape of a row that did not decode; False if that changes nothing."""
        # To look at the shape of a row takes half as long as to read it on the exact path. Where no
        # struct fits, the next rows are mostly alike: so it pauses, each time for twice as long.
        if self._paused < self._pause:
            self._paused += 1
            return False
        shape = shape_of(data, self.closed)
        if shape is not None and (self.unread or shape.extent != "unread"):
            checks = shape.open_parts or shape.extent == "unread"
            decoder = _RowDecoder(_decoder(shape), checks)
            if decoder not in self._recent:
                self._recent = [decoder, *self._recent[: _MOST_RECENT - 1]]
                self._pause = self._paused = 0
                return True
        self._pause, self._paused = min(2 * self._pause + 1, _LONGEST_PAUSE), 0
        return False

    def row(self, data: bytes) -> FastRow | None:
        """Decode a row; None if it is for the exact path."""
        row = self._try(data)
        if row is None and self._learn(data):
            row = self._try(data)
        return row

    def _try(self, data: bytes) -> FastRow | None:
        for place, recent in enumerate(self._recent):
            if recent.checks and not _is_plain(data):
                continue
            try:
                row = recent.decode(data)
            except _NOT_USUAL:
                continue
            if place:
                self._recent.insert(0, self._recent.pop(place))
            return row
        return None

    def rows(self, data: Sequence[bytes]) -> list[FastRow] | None:
        """Decode rows that all have one shape; None if they have not."""
        rows = self._try_all(data)
        if rows is None and self._learn(data[0]):
            rows = self._try_all(data)
        return rows

    def _try_all(self, data: Sequence[bytes]) -> list[FastRow] | None:
        recent = self._recent[0]
        if recent.checks:
            odd = [row for row in data if not row.isascii() or b"\\u" in row]
            if odd and not _is_plain(b"\n".join(odd)):
                return None
        try:
            return list(map(recent.decode, data))
        except _NOT_USUAL:
            return None

    def trace(
        self, data: bytes, line: int | None, *, strip_citations: bool, cites_in_text: bool
    ) -> Trace | None:
        """The trace of a row; None if it is for the exact path."""
        row = self.row(data)
        if row is None:
            return None
        return row.trace(line, strip_citations=strip_citations, cites_in_text=cites_in_text)


class FastGold:
    """A gold row of the usual shape: ids for evidence, and claims that are substrings."""

    __slots__ = ()
    qid: Annotated[str, Meta(min_length=1)]
    question: str | None
    answerable: bool | Expect | None
    relevant: tuple[str, ...] | None
    claims: tuple[str, ...] | None

    def given(self) -> int:
        """How many of the fields the row has."""
        fields = (self.question, self.answerable, self.relevant, self.claims)
        return 5 - fields.count(None)

    def item(self, line: int) -> GoldItem:
        """The gold item of the row."""
        expect: Expect | None
        if self.answerable is None or isinstance(self.answerable, str):
            expect = self.answerable
        else:
            expect = "answer" if self.answerable else "refuse"
        return GoldItem(
            qid=self.qid,
            question=self.question,
            expect=expect,
            relevant=self.relevant or (),
            claims_any=self.claims,
            line=line,
        )


_GOLD_TYPES = {**_types(FastGold), "answerable": bool | None}
_GOLD_FIELD_OF = {name: field for field in _GOLD_TYPES for name in GOLD_SPELLINGS[field]}


@lru_cache(maxsize=64)
def _gold_decoder(spelling: Spelling) -> Callable[[bytes], FastGold]:
    types = _GOLD_TYPES
    if ("answerable", "expect") in spelling:  # a word, where the other name is a flag
        types = {**types, "answerable": Expect | None}
    row = _make_struct(FastGold, types, GOLD_SPELLINGS, spelling, closed=True)
    return msgspec.json.Decoder(row).decode


def _is_single(data: bytes, fields: int) -> bool:
    """Whether a row with so many fields has no key twice, by the quickest look that can tell."""
    # Every key has a colon behind it; text may have more of them.
    return (
        data.count(b":") == fields
        or len(_NAME_END.findall(data)) == fields
        or not may_have_duplicate_keys(data)
    )


class FastGoldDecoder:
    """Decodes the rows of one gold file. A row with any other field is for the exact path."""

    def __init__(self, closed: frozenset[str] = frozenset()) -> None:
        self.closed = closed
        # A closed name is never the first spelling of a field that no row has.
        self._spelling: Spelling = tuple(
            (field, next(name for name in GOLD_SPELLINGS[field] if name not in closed))
            for field in _GOLD_TYPES
            if GOLD_SPELLINGS[field][0] in closed
        )
        self._decode = _gold_decoder(self._spelling)

    def item(self, data: bytes, line: int) -> GoldItem | None:
        """The gold item of a row; None if it is for the exact path."""
        while True:
            try:
                row = self._decode(data)
                return row.item(line) if _is_single(data, row.given()) else None
            except _NOT_USUAL:
                if not self._learn(data):
                    return None

    def _learn(self, data: bytes) -> bool:
        """Take the spelling of a row that did not decode; False if that changes nothing."""
        try:
            values = _decode_fields(data)
        except _NOT_USUAL:
            return False
        named = [(_GOLD_FIELD_OF.get(name), name) for name, raw in values.items() if raw != _NULL]
        fields = [field for field, _ in named]
        # `gold_claim` is cut into phrases, by a rule of the exact path.
        if None in fields or len(set(fields)) < len(fields) or "gold_claim" in values:
            return False
        spelling = tuple((field, name) for field, name in named if field is not None)
        if not self.closed.isdisjoint(name for _, name in spelling):
            return False
        absent = self._spelling if self.closed else ()
        spelling += tuple(pair for pair in absent if pair[0] not in dict(spelling))
        if spelling == self._spelling:
            return False
        self._spelling, self._decode = spelling, _gold_decoder(spelling)
        return True
