"""Grounds: what two stored runs know, and which questions they share, before they are scored."""

from __future__ import annotations

from collections.abc import Set
from functools import cached_property

from msgspec import Struct
from msgspec.structs import replace

from ragauge.compare.follow_map import Follower
from ragauge.compare.known_documents import Side
from ragauge.corpus.chunk_list import full_texts
from ragauge.errors import RagaugeError
from ragauge.model.chunk import Chunk
from ragauge.model.evidence import Evidence
from ragauge.model.gold import GoldItem
from ragauge.model.payloads import thaw_chunks, thaw_evidence, thaw_gold
from ragauge.model.run import RunRecord, Store
from ragauge.store.snapshot import ScoringRules, Snapshot, read_snapshot

Key = tuple[str, int | None]


class Stored:
    """A run in a store, complete."""

    def __init__(self, store: Store, record: RunRecord) -> None:
        self.store = store
        self.record = record

    @cached_property
    def evidence(self) -> Evidence:
        """What the run knows of chunks and documents."""
        return thaw_evidence(self.record.evidence, self.record.run_id)


class Known(Struct, frozen=True):
    """What is known of a stored run before its results are looked at."""

    gold_key: str
    snapshot: Snapshot
    evidence: Evidence
    items: list[GoldItem]
    hashes: dict[Key, str]
    chunks: dict[str, Chunk]


def known_of(run: Stored, shared: Known | None) -> Known:
    """What a run knows; a gold set that it shares with the other run is read once."""
    record, store = run.record, run.store
    if shared is not None and shared.gold_key == record.gold_key:
        items, hashes = shared.items, shared.hashes
    else:
        rows = list(store.gold(record.gold_key))
        items = thaw_gold(rows, record.run_id)
        hashes = {(row.query_id, row.turn): row.item_hash for row in rows}
    return Known(
        record.gold_key,
        read_snapshot(record.snapshot, record.run_id),
        run.evidence,
        items,
        hashes,
        {} if record.chunks is None else thaw_chunks(store.chunks(record.chunks), record.run_id),
    )


def rules_of(a: ScoringRules, b: ScoringRules) -> tuple[ScoringRules, list[str]]:
    """The rules that both runs are scored by: those of run b, and a note where they differ."""
    differing = [name for name in ("profile", "k", "options") if _plain(a, name) != _plain(b, name)]
    told = [
        f"the runs were scored by different {' and '.join(differing)}: both were scored again by "
        "those of run b"
    ]
    return b, told if differing else []


def _plain(rules: ScoringRules, name: str) -> object:
    value = getattr(rules, name)
    return replace(value, chunks=None) if name == "options" else value


def metrics_of(a: ScoringRules, b: ScoringRules) -> tuple[str, ...]:
    """The metrics of both runs."""
    return tuple(dict.fromkeys((*b.metrics, *a.metrics)))


def common_items(
    known_a: Known, known_b: Known, a: Stored, b: Stored, follower: Follower | None
) -> tuple[list[GoldItem], dict[Key, GoldItem], dict[str, int]]:
    """The gold items that both runs have unchanged, and how many were left out, by reason.

    Items that followed the corpus count as unchanged; they come as run a has them, too.
    """
    one, other = known_a.hashes, known_b.hashes
    both = one.keys() & other.keys()
    earlier = {} if follower is None else _earlier(known_a, known_b, follower)
    items = [
        item
        for item in known_b.items
        if (key := (item.qid, item.turn)) in earlier or one.get(key) == other[key]
    ]
    if not items:
        raise RagaugeError.of(
            "nothing-in-common",
            f"{a.record.run_id} and {b.record.run_id} have no unchanged question in common",
            hint="compare runs of the same gold set: `ragauge runs list` shows their gold hashes",
        )
    reasons = {
        "gold-changed": sum(one[key] != other[key] and key not in earlier for key in both),
        "only-in-a": len(one.keys() - both),
        "only-in-b": len(other.keys() - both),
    }
    return items, earlier, {reason: n for reason, n in reasons.items() if n}


def set_aside(known: Known, keys: Set[Key]) -> list[GoldItem]:
    """The items of a run that are not compared.

    Its traces of them are not unknown, and they are what later turns of a conversation may cite.
    """
    return [item for item in known.items if (item.qid, item.turn) not in keys]


def _earlier(known_a: Known, known_b: Known, follower: Follower) -> dict[Key, GoldItem]:
    """The items of run a that run b has as the map leads to them."""
    before = {(item.qid, item.turn): item for item in known_a.items}
    found: dict[Key, GoldItem] = {}
    for item in known_b.items:
        key = item.qid, item.turn
        old = before.get(key)
        changed = old is not None and known_a.hashes[key] != known_b.hashes[key]
        if old is not None and changed and follower.is_same(old, item):
            found[key] = old
    follower.questions = len(found)
    return found


def side_of(run: Stored, known: Known, keys: Set[Key]) -> Side:
    """The run as the ladder sees it; `keys` are the questions that are compared.

    Rows of a turn that has an item of its own are never those of an item without one.
    """
    carries: dict[Key, int] = {}
    for qid, turn, carried in run.store.carried(run.record.run_id):
        key: Key = (qid, turn)
        if key not in keys:
            if key in known.hashes:
                continue
            key = (qid, None)
        carries[key] = carries.get(key, -1) & carried
    return Side(
        evidence=known.evidence,
        carries=carries,
        chunks=known.chunks,
        texts=full_texts(known.chunks),
    )
