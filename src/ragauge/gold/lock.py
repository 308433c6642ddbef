"""The lock of a gold set: what every item said when it was frozen, and what changed since.

JSON Lines, sorted by id and turn, so that a version control system shows what a change changes: the
first line is about the set, each other line holds an item with its hash. The item is there whole,
with the fields that nothing reads, so that a change can be shown and not only noticed. Frozen with
its corpus, a set also has a fingerprint of the text that each of its ids stands for.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from hashlib import sha256
from pathlib import Path
from typing import Any, NoReturn

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from ragauge.corpus.chunk_list import read_chunk_list
from ragauge.errors import MAX_REPORTED, Place, Problem, RagaugeError
from ragauge.files.atomic_write import write_atomically
from ragauge.files.open import PathLike
from ragauge.formats.field_map import NO_FIELDS, FieldMaps
from ragauge.formats.gold import MIGRATED_TO
from ragauge.gold.fingerprints import Fingerprints, named_ids
from ragauge.gold.gold_file import gold_file, lookup_of
from ragauge.model.gold import GoldItem
from ragauge.model.payloads import gold_hash, item_hash

SCHEMA = "ragauge.gold-lock/1"
SUFFIX = ".lock"
_COMPRESSED = (".gz", ".zst")
_encode = msgspec.json.Encoder(order="deterministic").encode

Key = tuple[str, int | None]
Texts = dict[Key, dict[str, str]]
"""The fingerprints of the ids that items name, by item and id."""


class _LockHeader(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The first line."""

    schema: str
    dialect: str
    count: int
    gold_hash: str
    texts_hash: str | None = None


class _LockLine(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Any other line."""

    qid: str
    turn: int | None
    hash: str
    item: GoldItem
    texts: dict[str, str] = {}


class Lock(Struct, frozen=True, kw_only=True):
    """A frozen gold set: the dialect it was read in, its hash, and its items by id and turn.

    `texts` has an entry for each item whose ids were found in the corpus that it was frozen with.
    """

    dialect: str
    gold_hash: str
    items: dict[Key, GoldItem]
    texts: Texts = {}

    def texts_of(self, key: Key, migrated_to: object) -> Mapping[str, str]:
        """The fingerprints of an item's ids, by id.

        There are none if the item was moved to another corpus since: its ids are of other blocks.
        """
        item = self.items.get(key)
        if item is None or item.extra.get(MIGRATED_TO) != migrated_to:
            return {}
        return self.texts.get(key, {})


class ChangedText(Struct, frozen=True, kw_only=True):
    """An id of an item that stands for other text than when the set was frozen."""

    item: GoldItem
    name: str
    text: str


class FieldChange(Struct, frozen=True):
    """One field of an item, before and after; None where it says nothing."""

    field: str
    old: Any
    new: Any


class ChangedItem(Struct, frozen=True, kw_only=True):
    """An item that says something else now; `unread` are changes of fields that nothing reads."""

    item: GoldItem
    changes: tuple[FieldChange, ...]
    unread: tuple[FieldChange, ...] = ()


class LockDifference(Struct, frozen=True, kw_only=True):
    """What is different from a lock, each list by id and turn."""

    unchanged: int
    changed: tuple[ChangedItem, ...] = ()
    remarked: tuple[ChangedItem, ...] = ()
    removed: tuple[GoldItem, ...] = ()
    added: tuple[GoldItem, ...] = ()

    @property
    def same(self) -> bool:
        """Whether nothing at all is different."""
        return not (self.changed or self.remarked or self.removed or self.added)


def lock_path(gold: str | os.PathLike[str]) -> Path:
    """Where the lock of a gold set is by default: `eval/gold.jsonl` has `eval/gold.lock`.

    A set from standard input has no such place.
    """
    if os.fspath(gold) == "-":
        message = "a gold set from standard input has no lock beside it"
        raise RagaugeError.of("usage", message, hint="name the file of the lock")
    path = Path(gold)
    if path.suffix in _COMPRESSED and path.with_suffix("").suffix:
        path = path.with_suffix("")
    return Path(f"{path}{SUFFIX}") if Path(gold).is_dir() else path.with_name(path.stem + SUFFIX)


def make_lock(items: Sequence[GoldItem], dialect: str, name: str) -> Lock:
    """Freeze a gold set; an id that stands twice is refused, because a lock has one item an id."""
    by_key: dict[Key, GoldItem] = {}
    problems: list[Problem] = []
    for item in items:
        key = (item.qid, item.turn)
        if key in by_key:
            with_turn = "" if item.turn is None else f" with turn {item.turn}"
            first = f"first on line {by_key[key].line}"
            message = f"the id `{item.qid}`{with_turn} stands twice, {first}"
            hint, place = (
                "give every gold item its own id (or turn)",
                Place(name, item.line, item.qid),
            )
            problems.append(Problem("duplicate-qid", message, hint, place))
        by_key.setdefault(key, item)
    if problems:
        raise RagaugeError(problems[:MAX_REPORTED], total=len(problems))
    in_order = sorted(by_key, key=lambda key: (key[0], key[1] is not None, key[1] or 0))
    ordered = {key: replace(by_key[key], line=None) for key in in_order}
    return Lock(dialect=dialect, gold_hash=_hash_of(ordered), items=ordered)


def lock_text(lock: Lock) -> str:
    """The text of a lock."""
    count, digest = len(lock.items), lock.gold_hash
    head = _LockHeader(
        schema=SCHEMA,
        dialect=lock.dialect,
        count=count,
        gold_hash=digest,
        texts_hash=_texts_hash(lock.texts),
    )
    lines = [_encode(head)]
    lines += [
        _encode(
            _LockLine(
                qid=key[0],
                turn=key[1],
                hash=item_hash(item),
                item=item,
                texts=lock.texts.get(key, {}),
            )
        )
        for key, item in lock.items.items()
    ]
    return b"\n".join([*lines, b""]).decode()


def read_lock(path: str | os.PathLike[str]) -> Lock:
    """Read a lock; one that is damaged, edited or newer is refused."""
    name = str(path)
    try:
        data = Path(path).read_bytes()
    except FileNotFoundError as error:
        hint = "`ragauge gold freeze` writes one; --lock names another"
        raise RagaugeError.of("file-not-found", f"there is no lock `{name}`", hint=hint) from error
    except OSError as error:
        message = f"`{name}` cannot be read: {error.strerror or error}"
        raise RagaugeError.of("file-unreadable", message, hint="check its permissions") from error
    lines = data.split(b"\n")
    head = _read_header(lines[0], name)
    items: dict[Key, GoldItem] = {}
    texts: Texts = {}
    decode = msgspec.json.Decoder(_LockLine).decode
    for number, line in enumerate(lines[1:], 2):
        if not line:
            if number != len(lines):
                _refuse(name, number, "the line is empty")
            continue
        try:
            row = decode(line)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            _refuse(name, number, f"the line cannot be read: {error}")
        key = (row.qid, row.turn)
        if key != (row.item.qid, row.item.turn) or row.hash != item_hash(row.item):
            _refuse(name, number, f"the item `{row.qid}` does not have the hash of its line")
        if key in items:
            _refuse(name, number, f"the item `{row.qid}` stands twice")
        items[key] = row.item
        if row.texts:
            texts[key] = row.texts
    # Each line must have its hash, and the first line that of the set: an edit by hand or half a
    # merge is an error, and never a pass.
    if len(items) != head.count or _hash_of(items) != head.gold_hash:
        _refuse(name, 1, f"it speaks of {head.count} items that are not those of the lines below")
    if _texts_hash(texts) != head.texts_hash:
        _refuse(name, 1, "it speaks of texts that are not those of the lines below")
    return Lock(dialect=head.dialect, gold_hash=head.gold_hash, items=items, texts=texts)


def lock_beside(gold: PathLike, path: PathLike | None = None) -> Lock | None:
    """The lock that is named, or the one beside a gold set; None if there is none beside it."""
    if path is None:
        if os.fspath(gold) == "-" or not lock_path(gold).is_file():
            return None
        path = lock_path(gold)
    return read_lock(path)


def _read_header(line: bytes, name: str) -> _LockHeader:
    try:
        fields = msgspec.json.decode(line)
        schema = fields.get("schema") if isinstance(fields, dict) else None
        if isinstance(schema, str) and schema.startswith("ragauge.gold-lock/") and schema != SCHEMA:
            message = f"the lock is of schema `{schema}`, and this version reads `{SCHEMA}`"
            hint = "upgrade ragauge, or freeze the set again"
            raise RagaugeError.of("bad-lock", message, hint=hint, place=Place(name, 1))
        head = msgspec.json.decode(line, type=_LockHeader)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        _refuse(name, 1, f"the line cannot be read: {error}")
    if head.schema != SCHEMA:
        _refuse(name, 1, "it is no lock of a gold set")
    return head


def _refuse(name: str, line: int, why: str) -> NoReturn:
    message = f"the lock cannot be used: {why}"
    hint = "take it from version control again; locks are not edited by hand"
    raise RagaugeError.of("bad-lock", message, hint=hint, place=Place(name, line))


def compare(lock: Lock, items: Sequence[GoldItem], name: str) -> LockDifference:
    """What is different between a lock and a gold set that was read in its dialect."""
    now = make_lock(items, lock.dialect, name).items
    lines = {(item.qid, item.turn): item.line for item in items}
    both = [
        changes(old, replace(now[key], line=lines[key]))
        for key, old in lock.items.items()
        if key in now
    ]
    new = [key for key in now if key not in lock.items]
    return LockDifference(
        unchanged=sum(not (item.changes or item.unread) for item in both),
        changed=tuple(item for item in both if item.changes),
        remarked=tuple(item for item in both if item.unread and not item.changes),
        removed=tuple(item for key, item in lock.items.items() if key not in now),
        added=tuple(replace(now[key], line=lines[key]) for key in new),
    )


def changes(old: GoldItem, new: GoldItem) -> ChangedItem:
    """What is different between two versions of an item, field by field."""
    was, now = (msgspec.to_builtins(replace(item, line=None)) for item in (old, new))
    unread_was, unread_now = was.pop("extra", {}), now.pop("extra", {})
    return ChangedItem(
        item=new,
        changes=_changes(was, now, GoldItem.__struct_fields__),
        unread=_changes(unread_was, unread_now, sorted({*unread_was, *unread_now})),
    )


def _changes(
    old: dict[str, Any], new: dict[str, Any], names: Iterable[str]
) -> tuple[FieldChange, ...]:
    # As JSON 1 and true are not the same, though Python calls them equal.
    return tuple(
        FieldChange(name, old.get(name), new.get(name))
        for name in names
        if _encode(old.get(name)) != _encode(new.get(name)) or (name in old) != (name in new)
    )


def _hash_of(items: dict[Key, GoldItem]) -> str:
    return gold_hash((qid, turn, item_hash(item)) for (qid, turn), item in items.items())


def _texts_hash(texts: Texts) -> str | None:
    """A hash over all fingerprints, whatever their order; None without any."""
    if not texts:
        return None
    listed = sorted((qid, turn or 0, sorted(by_id.items())) for (qid, turn), by_id in texts.items())
    return sha256(_encode(listed)).hexdigest()[:16]


def with_texts(lock: Lock, fingerprints: Fingerprints | None, before: Lock | None) -> Lock:
    """A lock with fingerprints from a corpus, or else those of the lock that was there before.

    What is not in this corpus keeps the fingerprint that it had.
    """
    texts: Texts = {}
    for key, item in lock.items.items():
        by_id = dict(before.texts_of(key, item.extra.get(MIGRATED_TO))) if before else {}
        named = {*named_ids(item), item.anchor_section, item.decoy_section}
        by_id = {name: text for name, text in by_id.items() if name in named}
        if fingerprints is not None:
            by_id |= fingerprints.of_item(item)
        if by_id:
            texts[key] = dict(sorted(by_id.items()))
    return replace(lock, texts=texts)


def changed_texts(
    lock: Lock, items: Iterable[GoldItem], fingerprints: Fingerprints
) -> Iterator[ChangedText]:
    """The ids of some items that stand for other text than when the set was frozen."""
    for item in items:
        frozen = lock.texts_of((item.qid, item.turn), item.extra.get(MIGRATED_TO))
        if not frozen:
            continue
        for name, text in fingerprints.of_item(item).items():
            if frozen.get(name, text) != text:
                yield ChangedText(item=item, name=name, text=fingerprints.text_of(name, item))


class FreezeResult(Struct, frozen=True):
    """A lock that was written (`fresh`), or that was there already."""

    path: Path
    lock: Lock
    fresh: bool


class VerifyResult(Struct, frozen=True):
    """A lock, the set as it would be frozen now, and what is different between them."""

    path: Path
    lock: Lock
    now: Lock
    difference: LockDifference
    texts: tuple[ChangedText, ...] = ()

    @property
    def is_same(self) -> bool:
        """Whether nothing at all is different, fingerprints included."""
        return self.difference.same and self.lock.texts == self.now.texts


def _fingerprints(corpus: PathLike | None, chunks: PathLike | None) -> Fingerprints | None:
    lookup = lookup_of(corpus)
    return None if lookup is None else Fingerprints(lookup, read_chunk_list(chunks))


def freeze(
    gold: PathLike,
    out: PathLike | None = None,
    *,
    corpus: PathLike | None = None,
    chunks: PathLike | None = None,
    profile: str | None = None,
    dialect: str = "auto",
    force: bool = False,
    fields: FieldMaps = NO_FIELDS,
) -> FreezeResult:
    """Write the lock of a gold set; one that holds another set is only replaced by `force`.

    With a corpus it has fingerprints of the text that ids stand for. Without one it keeps those
    that the lock has already.
    """
    path = Path(out) if out is not None else lock_path(gold)
    if path.exists() and os.path.samefile(path, gold):
        raise RagaugeError.of(
            "file-exists", f"`{path}` is the gold set itself", hint="name another file for its lock"
        )
    with gold_file(gold, profile=profile, dialect=dialect, fields=fields) as file:
        lock = make_lock(file.items, file.choice.dialect.name, file.source.name)
    before = _readable(path)
    lock = with_texts(lock, _fingerprints(corpus, chunks), before)
    text = lock_text(lock)
    if path.exists():
        if path.is_file() and path.read_bytes() == text.encode():
            return FreezeResult(path, lock, False)
        if not force and not _only_adds_texts(before, lock):
            raise RagaugeError.of(
                "file-exists",
                f"`{path}` is already there, and holds something else",
                hint="`ragauge gold verify` shows what changed (with --corpus also texts), and "
                "--update writes it anew; --force replaces it unseen",
            )
    write_atomically(path, text)
    return FreezeResult(path, lock, True)


def _only_adds_texts(before: Lock | None, lock: Lock) -> bool:
    """Whether a lock says all that the one before says, and fingerprints besides."""
    if before is None or (before.items, before.dialect) != (lock.items, lock.dialect):
        return False
    return all(
        by_id.items() <= lock.texts.get(key, {}).items() for key, by_id in before.texts.items()
    )


def _readable(path: Path) -> Lock | None:
    """The lock at a path, if there is one that can be read."""
    try:
        return read_lock(path) if path.is_file() else None
    except RagaugeError:
        return None


def verify(
    gold: PathLike,
    lock: PathLike | None = None,
    *,
    corpus: PathLike | None = None,
    chunks: PathLike | None = None,
    fields: FieldMaps = NO_FIELDS,
) -> VerifyResult:
    """Compare a gold set with its lock, read in the dialect that the lock names.

    With a corpus, the text that ids stand for is compared too.
    """
    path = Path(lock) if lock is not None else lock_path(gold)
    stored = read_lock(path)
    with gold_file(gold, dialect=stored.dialect, fields=fields) as file:
        items, name = file.items, file.source.name
    fingerprints = _fingerprints(corpus, chunks)
    now = with_texts(make_lock(items, stored.dialect, name), fingerprints, stored)
    texts = () if fingerprints is None else changed_texts(stored, items, fingerprints)
    return VerifyResult(path, stored, now, compare(stored, items, name), tuple(texts))


def update(verified: VerifyResult) -> None:
    """Write the lock anew, as the set was when it was verified."""
    write_atomically(verified.path, lock_text(verified.now))
