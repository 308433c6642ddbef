"""A user's own field names: which of their fields is which of ours, in gold and in traces.

A map is applied where a file is opened. What is read from there on has our names, on the fast path
and in workers as well as on the exact path.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Literal

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from ragauge.errors import Place, RagaugeError
from ragauge.files.fields import Row
from ragauge.formats.field_path import ITSELF, MISSING, FieldPath, field_path, opened_text
from ragauge.model.field_spellings import (
    FIRST_HITS,
    GOLD_NAMES,
    GOLD_SPELLINGS,
    HIT_DOCS,
    HIT_IDS,
    HIT_SECTIONS,
    HIT_SPELLINGS,
    TRACE_NAMES,
    TRACE_SPELLINGS,
)
from ragauge.spans import PLACE_NAMES
from ragauge.text import some

Side = Literal["gold", "traces"]
SIDES: tuple[Side, Side] = ("gold", "traces")
IGNORE = "ignore"
"""The key of the list of fields that are known to be unread."""

Stage = Literal["last", "first"]
"""Where a reranker follows a retriever: the list of the reranker, or the one that it was given."""

_SPELLINGS = {
    "gold": GOLD_SPELLINGS,
    "traces": {**TRACE_SPELLINGS, FIRST_HITS: (FIRST_HITS,)},
}
_NAMES = {"gold": GOLD_NAMES, "traces": TRACE_NAMES}
# Fields that the reader takes for one another: where one is mapped, the others do not count.
_SAME = (("answer", "text"),)
_PLACES = {name: (name,) for name in PLACE_NAMES}
_HIT_PARTS = {**HIT_SPELLINGS, **_PLACES}
_EVIDENCE_PARTS = {
    "id": HIT_IDS,
    "doc": HIT_DOCS,
    "section": HIT_SECTIONS,
    "quote": ("quote", "text"),
    "occurrence": ("occurrence",),
    **_PLACES,
}
_PARTS: Mapping[Side, Mapping[str, Mapping[str, tuple[str, ...]]]] = {
    "gold": {"relevant": _EVIDENCE_PARTS},
    "traces": {"hits": _HIT_PARTS, "citations": _HIT_PARTS, FIRST_HITS: _HIT_PARTS},
}
"""Lists whose entries have fields of their own, which `hits.text=page_content` names."""


class FieldEntry(Struct, frozen=True, kw_only=True):
    """One of our fields, and where a user's rows have it; without a path they do not have it.

    `required`: some row must have it, or the path is a mistake.
    """

    name: str
    path: str
    origin: str
    required: bool = True
    place: Place | None = None

    @property
    def part(self) -> tuple[str, str] | None:
        """The list and the field of its entries that are meant, where it is one."""
        head, dot, inner = self.name.partition(".")
        return (head, inner) if dot else None


class FieldMap(Struct, frozen=True, kw_only=True):
    """The entries for one side, and the fields of it that are known to be unread.

    `stage` says which list of hits is read where traces have those before and after a reranker.
    `by_question`: gold has no ids, so what is called an id in a trace is that of something else.
    """

    side: Side
    entries: tuple[FieldEntry, ...] = ()
    ignore: tuple[str, ...] = ()
    stage: Stage = "last"
    by_question: bool = False

    @property
    def roots(self) -> frozenset[str]:
        """The fields of a row that the paths begin with."""
        paths = (field_path(entry.path) for entry in self.entries if entry.path)
        whole = (entry.part is None for entry in self.entries if entry.path)
        return frozenset(
            path.root for path, is_row in zip(paths, whole, strict=True) if is_row and path.root
        )

    def updated(self, entries: Sequence[FieldEntry]) -> FieldMap:
        """The map with other entries for the fields that are named."""
        names = {entry.name for entry in entries}
        rest = tuple(entry for entry in self.entries if entry.name not in names)
        return replace(self, entries=(*rest, *entries))


class FieldMaps(Struct, frozen=True, kw_only=True):
    """The field names of a project: of its gold set and of its traces."""

    gold: FieldMap = FieldMap(side="gold")
    traces: FieldMap = FieldMap(side="traces")

    def updated(self, fields: Sequence[str], gold_fields: Sequence[str]) -> FieldMaps:
        """The maps with what the options `--field` and `--gold-field` say on top of them."""
        maps = self
        options: list[tuple[str, Sequence[str], Sequence[Side]]] = [
            ("--field", fields, SIDES),
            ("--gold-field", gold_fields, ("gold",)),
        ]
        for option, texts, sides in options:
            for text in texts:
                name, equals, path = (part.strip() for part in text.partition("="))
                if not equals or not name:
                    message = f"`{option} {text}` names no field"
                    hint = f"write {option} answer=response, or {option} hits=sources[].id"
                    raise RagaugeError.of("usage", message, hint=hint)
                maps = maps._with(name, path, f"{option} {text}", sides, None)
        return maps

    def at_stage(self, stage: Stage) -> FieldMaps:
        """The maps for the list of hits before or after a reranker."""
        return replace(self, traces=replace(self.traces, stage=stage))

    def _with(
        self, name: str, path: str, origin: str, sides: Sequence[Side], place: Place | None
    ) -> FieldMaps:
        """The maps with one more entry, on each of the sides that has such a field."""
        having = [side for side in sides if name in _known_names(side)]
        if not having:
            raise _unknown(name, origin, sides, place)
        if path:
            field_path(path)  # a mistake in it is said before any file is read
        by_side: dict[str, FieldMap] = {"gold": self.gold, "traces": self.traces}
        for side in having:
            # A name that both sides have stands for the traces; gold may have the field as it is.
            required = side == "traces" or len(having) == 1
            entry = FieldEntry(name=name, path=path, origin=origin, required=required, place=place)
            by_side[side] = by_side[side].updated([entry])
        return FieldMaps(gold=by_side["gold"], traces=by_side["traces"])


NO_FIELDS = FieldMaps()


def field_maps(
    table: Mapping[str, Any] | None,
    *,
    place_of: Callable[..., Place | None] = lambda *_: None,
) -> FieldMaps:
    """Read the table `[fields]` of a configuration, or the same as a dictionary.

    Its own entries are for every side that has such a field, `gold` and `traces` hold those of one
    side; `ignore` is a list of fields that are known to be unread.
    """
    maps = FieldMaps()
    for name, value in (table or {}).items():
        if name in SIDES and isinstance(value, Mapping):
            continue
        if name == IGNORE:
            ignore = _names(value, f"[fields] {IGNORE}", place_of(name))
            maps = FieldMaps(
                gold=_ignoring(maps.gold, ignore), traces=_ignoring(maps.traces, ignore)
            )
        else:
            path = _path(name, value, "[fields]", place_of(name))
            maps = maps._with(name, path, f"[fields] {name}", SIDES, place_of(name))
    for side in SIDES:
        part = (table or {}).get(side)
        for name, value in (part or {}).items():
            place, heading = place_of(side, name), f"[fields.{side}]"
            if name == IGNORE:
                ignore = _names(value, f"{heading} {IGNORE}", place)
                gold, traces = maps.gold, maps.traces
                maps = FieldMaps(
                    gold=_ignoring(gold, ignore) if side == "gold" else gold,
                    traces=_ignoring(traces, ignore) if side == "traces" else traces,
                )
            else:
                path = _path(name, value, heading, place)
                maps = maps._with(name, path, f"{heading} {name}", (side,), place)
    return maps


def as_field_maps(fields: FieldMaps | Mapping[str, Any] | None) -> FieldMaps:
    """Field maps as they are, or read from a dictionary."""
    return fields if isinstance(fields, FieldMaps) else field_maps(fields)


def _ignoring(one: FieldMap, names: tuple[str, ...]) -> FieldMap:
    together = tuple(dict.fromkeys((*one.ignore, *names)))
    return replace(one, ignore=together)


def _names(value: Any, origin: str, place: Place | None) -> tuple[str, ...]:
    if not isinstance(value, list | tuple) or not all(isinstance(one, str) for one in value):
        hint = 'write ignore = ["field", "other_field"]'
        raise RagaugeError.of(
            "bad-config", f"`{origin}` must be a list of names", hint=hint, place=place
        )
    return tuple(value)


def _path(name: str, value: Any, origin: str, place: Place | None) -> str:
    if not isinstance(value, str):
        message = f"`{name}` of {origin} must be a path, as text"
        hint = 'write answer = "response", or hits = "sources[].id"'
        raise RagaugeError.of("bad-config", message, hint=hint, place=place)
    return value.strip()


def _known_names(side: Side) -> set[str]:
    parts = {f"{head}.{inner}" for head, inner_ in _PARTS[side].items() for inner in inner_}
    spelled = {
        f"{head}.{name}"
        for head, fields in _PARTS[side].items()
        for names in fields.values()
        for name in names
    }
    return {*_NAMES[side], *_SPELLINGS[side], *parts, *spelled}


def _unknown(name: str, origin: str, sides: Sequence[Side], place: Place | None) -> RagaugeError:
    listed = sorted({one for side in sides for one in _known_names(side)})
    near = difflib.get_close_matches(name, listed, 3)
    fields = sorted({field for side in sides for field in _SPELLINGS[side]})
    hint = f"did you mean {' or '.join(f'`{one}`' for one in near)}? " if near else ""
    message = f"`{origin}`: there is no field `{name}`"
    hint += f"ours stands to the left of the sign, yours to the right; ours are {', '.join(fields)}"
    return RagaugeError.of("unknown-name", message, hint=hint, place=place)


class _Mapped(Struct, frozen=True):
    """An entry that is ready for use: the name to write, and the path to read."""

    entry: FieldEntry
    name: str
    path: FieldPath | None


class FieldMapper:
    """Gives the rows of one file our names, by a map.

    `open_text` says what a text holds that a path leads into, `open_list` what one holds that
    stands for a list.
    """

    def __init__(
        self,
        fields: FieldMap,
        open_text: Callable[[str], Any] = opened_text,
        open_list: Callable[[str], Any] = opened_text,
    ) -> None:
        self.side = fields.side
        self.open_text = open_text
        self.open_list = open_list
        whole = [entry for entry in fields.entries if entry.part is None]
        self.mapped = [self._mapped(entry, entry.name, _SPELLINGS[self.side]) for entry in whole]
        self.parts: dict[str, list[_Mapped]] = {}
        for entry in fields.entries:
            if entry.part is not None:
                head, inner = entry.part
                one = self._mapped(entry, inner, _PARTS[self.side][head])
                self.parts.setdefault(head, []).append(one)
        self.entry_mappers = {
            head: _EntryMapper(parts, _PARTS[self.side][head]) for head, parts in self.parts.items()
        }
        self.whole_row = any(one.path is not None and one.path.root is None for one in self.mapped)
        self.replaced = self._replaced()
        self.names = _NAMES[self.side]

    def _mapped(
        self, entry: FieldEntry, name: str, spellings: Mapping[str, tuple[str, ...]]
    ) -> _Mapped:
        path = field_path(entry.path, self.open_text) if entry.path else None
        return _Mapped(entry, _written_name(name, spellings), path)

    def _replaced(self) -> set[str]:
        """Every name of the fields that are mapped: none of them may disagree with the map."""
        spellings = _SPELLINGS[self.side]
        fields = {_field_of(one.name, spellings) for one in self.mapped}
        for together in _SAME:
            if self.side == "traces" and fields & set(together):
                fields |= set(together)
        names = {name for field in fields for name in spellings.get(field, (field,))}
        return names | ({"retrieval"} if "hits" in fields else set())

    def __call__(self, row: Mapping[str, Any]) -> dict[str, Any]:
        """A row under our names; the values of `row` may be raw JSON."""
        decoded = _Decoded(row, whole=self.whole_row)
        values: dict[str, Any] = {}
        drop = set(self.replaced)
        for one in self.mapped:
            if one.path is None:
                continue
            value = row.get(one.path.root, MISSING) if one.path.plain else one.path.find(decoded)  # type: ignore[arg-type]
            if value is not MISSING:
                values[one.name] = value
            # What a field was made of is not one more field that nothing reads.
            for root in (one.path.root, one.path.text):
                if root is not None and root not in self.names:
                    drop.add(root)
            if one.path.covers is not None:
                drop.update(filter(one.path.covers, row))
        renamed = {name: value for name, value in row.items() if name not in drop}
        renamed.update(values)
        for head, map_entry in self.entry_mappers.items():
            self._map_parts(renamed, head, map_entry)
        return renamed

    def _map_parts(self, row: dict[str, Any], head: str, map_entry: _EntryMapper) -> None:
        for name in _SPELLINGS[self.side][head]:
            if name in row:
                entries = plain_value(row[name])
                if isinstance(entries, str):
                    entries = self.open_list(entries)
                if isinstance(entries, str) and map_entry.itself:  # one of which the map tells
                    entries = [entries] if entries.strip() else []
                if isinstance(entries, list):
                    row[name] = [*map(map_entry, entries)]

    def missing(self, rows: Iterator[Row]) -> list[FieldEntry]:
        """The entries whose paths lead to nothing in any of the rows."""
        waiting = [one for one in self.mapped if one.path is not None]
        inner = {
            head: [one for one in parts if one.path is not None]
            for head, parts in self.parts.items()
        }
        with_entries: set[str] = set()
        with_lists: set[str] = set()
        for row in rows:
            waiting = [one for one in waiting if one.path is None or one.path.find(row) is MISSING]
            if any(inner.values()):
                self._look_inside(row, inner, with_lists, with_entries)
            if not waiting and not any(inner.values()):
                return []
        # Where no list has an entry, nothing is known of the fields of entries. Where there is not
        # even a list, there is nothing that they could be in.
        unseen = [
            one
            for head, parts in inner.items()
            if head in with_entries or head not in with_lists
            for one in parts
        ]
        return [one.entry for one in (*waiting, *unseen)]

    def _look_inside(
        self,
        row: Row,
        inner: dict[str, list[_Mapped]],
        with_lists: set[str],
        with_entries: set[str],
    ) -> None:
        own = {one.name: one for one in self.mapped}
        for head, parts in inner.items():
            names = _SPELLINGS[self.side][head]
            lists = [
                path.find(row) if (path := own[name].path) is not None else MISSING
                for name in names
                if name in own
            ] or [row.get(name) for name in names]
            if any(listed is not None and listed is not MISSING for listed in lists):
                with_lists.add(head)
            for listed in lists:
                entries = self.open_list(listed) if isinstance(listed, str) else listed
                for entry in entries if isinstance(entries, list) else ():
                    if not isinstance(entry, Mapping):
                        parts[:] = [one for one in parts if one.entry.path != ITSELF]
                    else:
                        with_entries.add(head)
                        parts[:] = [
                            one
                            for one in parts
                            if one.path is None or one.path.find(entry) is MISSING
                        ]


class _Decoded(dict[str, Any]):
    """A row whose raw values are decoded when a path asks for them."""

    def __init__(self, row: Mapping[str, Any], *, whole: bool) -> None:
        super().__init__(
            {name: plain_value(value) for name, value in row.items()} if whole else row
        )

    def __getitem__(self, name: str) -> Any:
        value = super().__getitem__(name)
        if isinstance(value, msgspec.Raw):
            value = plain_value(value)
            self[name] = value
        return value


def plain_value(value: Any) -> Any:
    """A value of a row, decoded where it is raw JSON."""
    return msgspec.json.decode(value) if isinstance(value, msgspec.Raw) else value


class _EntryMapper:
    """Gives the entries of a list our names.

    An entry that is no object stays what it is, an id, unless a path says what it is itself.
    """

    def __init__(self, parts: Sequence[_Mapped], spellings: Mapping[str, tuple[str, ...]]) -> None:
        read = {name for names in spellings.values() for name in names}
        paths = [(one.name, one.path) for one in parts if one.path is not None]
        self.itself = [name for name, path in paths if path.text == ITSELF]
        self.finds = [(name, path.root if path.plain else None, path.find) for name, path in paths]
        self.drop = {
            name
            for one in parts
            for name in spellings.get(_field_of(one.name, spellings), (one.name,))
        }
        self.drop |= {path.root for _, path in paths if path.root and path.root not in read}

    def __call__(self, entry: Any) -> Any:
        """An entry under our names."""
        if not isinstance(entry, dict):
            return dict.fromkeys(self.itself, entry) if self.itself else entry
        renamed = {name: value for name, value in entry.items() if name not in self.drop}
        for name, plain, find in self.finds:
            value = find(entry) if plain is None else entry.get(plain)
            if value is not MISSING and value is not None:
                renamed[name] = value
        return renamed


def _field_of(name: str, spellings: Mapping[str, tuple[str, ...]]) -> str:
    """The field that a name spells."""
    return next((field for field, names in spellings.items() if name in names), name)


def _written_name(name: str, spellings: Mapping[str, tuple[str, ...]]) -> str:
    """The name that a value is written under: as the user calls the field, if that is read."""
    if any(name in names for names in spellings.values()):
        return name
    return spellings[name][0] if name in spellings else name


def refuse_missing(
    missing: Sequence[FieldEntry], name: str, side: Side, present: Sequence[str]
) -> None:
    """Raise for required entries that no row of a file has anything for."""
    problems = []
    noun = "gold item" if side == "gold" else "trace"
    for entry in missing:
        if not entry.required:
            continue
        near = difflib.get_close_matches(entry.path.partition(".")[0].partition("[")[0], present, 1)
        hint = f"did you mean `{near[0]}`? " if near else ""
        hint += f"fields there: {some([f'`{one}`' for one in present], 12)}" if present else ""
        problems.append(
            RagaugeError.of(
                "field-not-found",
                f"`{entry.origin}`: no {noun} of `{name}` has `{entry.path}`",
                hint=hint or "check the path",
                place=entry.place or Place(name),
            ).problems[0]
        )
    if problems:
        raise RagaugeError(problems)
