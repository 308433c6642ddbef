"""Common gold: what two stored runs were scored with, and which questions they share."""

from __future__ import annotations

from collections.abc import Set
from functools import cached_property

from msgspec import Struct
from msgspec.structs import replace

from ragauge.compare.follow_map import MapFollower
from ragauge.compare.same_documents import KnownDocuments
from ragauge.corpus.chunk_list import full_texts
from ragauge.errors import RagaugeError
from ragauge.model.chunk import Chunk
from ragauge.model.evidence import Evidence
from ragauge.model.gold import GoldItem
from ragauge.model.payloads import thaw_evidence, thaw_gold
from ragauge.model.run import RunRecord, Store
from ragauge.store.runs import stored_chunks
from ragauge.store.snapshot import ScoringRules, Snapshot, read_snapshot

Key = tuple[str, int | None]
"""A question: its id and its turn."""


class StoredRun:
    """A run in a store, complete."""

    def __init__(self, store: Store, record: RunRecord) -> None:
        self.store = store
        self.record = record

    @cached_property
    def evidence(self) -> Evidence:
        """What the run knows of chunks and documents."""
        return thaw_evidence(self.record.evidence, self.record.run_id)


class StoredInputs(Struct, frozen=True):
    """What a stored run was scored with; its results are not read for this.

    `hashes` are of what each item says: order, lines and fields that nothing reads do not count.
    """

    gold_key: str
    snapshot: Snapshot
    items: list[GoldItem]
    hashes: dict[Key, str]
    chunks: dict[str, Chunk]

    def items_beside(self, keys: Set[Key]) -> list[GoldItem]:
        """The items of the run that are not compared.

        Its traces of them are not unknown, and they are what later turns of a conversation may
        cite.
        """
        if len(keys) == len(self.items):  # mostly all are compared
            return []
        return [item for item in self.items if (item.qid, item.turn) not in keys]


def read_inputs(run: StoredRun, other: StoredInputs | None = None) -> StoredInputs:
    """What a run was scored with; a gold set that it shares with the other run is read once."""
    record, store = run.record, run.store
    if other is not None and other.gold_key == record.gold_key:
        items, hashes = other.items, other.hashes
    else:
        rows = list(store.gold(record.gold_key))
        items = thaw_gold(rows, record.run_id)
        hashes = {(row.query_id, row.turn): row.item_hash for row in rows}
    return StoredInputs(
        record.gold_key,
        read_snapshot(record.snapshot, record.run_id),
        items,
        hashes,
        stored_chunks(store, record),
    )


class CommonGold(Struct, frozen=True):
    """The questions that two runs share.

    items      as the second run has them
    earlier    those of them that moved with the corpus, as the first run has them
    excluded   how many questions are not compared, by reason
    """

    items: list[GoldItem]
    earlier: dict[Key, GoldItem]
    excluded: dict[str, int]


def common_gold(
    a: StoredInputs, b: StoredInputs, names: tuple[str, str], follower: MapFollower | None = None
) -> CommonGold:
    """Find the gold items that both runs have unchanged; `names` are those of the runs.

    An item that was edited in between is another question, whatever its id: a delta would measure
    the edit. Items that only followed their corpus count as unchanged.
    """
    in_both = a.hashes.keys() & b.hashes.keys()
    earlier = {} if follower is None else _moved_items(a, b, follower)
    items = [
        item
        for item in b.items
        if (key := (item.qid, item.turn)) in earlier or a.hashes.get(key) == b.hashes[key]
    ]
    if not items:
        raise RagaugeError.of(
            "nothing-in-common",
            f"{names[0]} and {names[1]} have no unchanged question in common",
            hint="compare runs of the same gold set: `ragauge runs list` shows their gold hashes",
        )
    excluded = {
        "gold-changed": sum(
            a.hashes[key] != b.hashes[key] and key not in earlier for key in in_both
        ),
        "only-in-a": len(a.hashes.keys() - in_both),
        "only-in-b": len(b.hashes.keys() - in_both),
    }
    return CommonGold(items, earlier, {reason: n for reason, n in excluded.items() if n})


def _moved_items(a: StoredInputs, b: StoredInputs, follower: MapFollower) -> dict[Key, GoldItem]:
    """The items of run a that run b has as the map leads to them."""
    items_a = {(item.qid, item.turn): item for item in a.items}
    moved: dict[Key, GoldItem] = {}
    for item in b.items:
        key = item.qid, item.turn
        old = items_a.get(key)
        changed = old is not None and a.hashes[key] != b.hashes[key]
        if old is not None and changed and follower.is_same(old, item):
            moved[key] = old
    follower.questions = len(moved)
    return moved


def common_rules(a: ScoringRules, b: ScoringRules) -> tuple[ScoringRules, list[str]]:
    """The rules that both runs are scored by: those of run b, and a note where they differ."""
    differing = [
        name for name in ("profile", "k", "options") if _comparable(a, name) != _comparable(b, name)
    ]
    if not differing:
        return b, []
    return b, [
        f"the runs were scored by different {' and '.join(differing)}: both were scored again by "
        "those of run b"
    ]


def _comparable(rules: ScoringRules, name: str) -> object:
    """A rule without the digest of the list of chunks, which every run has of its own."""
    value = getattr(rules, name)
    return replace(value, chunks=None) if name == "options" else value


def documents_of(run: StoredRun, inputs: StoredInputs, keys: Set[Key]) -> KnownDocuments:
    """What a run knows of documents and chunks; `keys` are the questions that are compared.

    Rows of a turn that has an item of its own are never those of an item without one.
    """
    carries: dict[Key, int] = {}
    for qid, turn, carried in run.store.carried(run.record.run_id):
        key: Key = (qid, turn)
        if key not in keys:
            if key in inputs.hashes:
                continue
            key = (qid, None)
        # A bit holds for a question only if every result has it. -1 has all bits.
        carries[key] = carries.get(key, -1) & carried
    return KnownDocuments(run.evidence, carries, inputs.chunks, full_texts(inputs.chunks))
