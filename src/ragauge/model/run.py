"""Runs: what is stored of one evaluation, so that it can be scored and compared again."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from typing import Literal, NamedTuple, Protocol

from msgspec import Struct

from ragauge.model.access import Access

Status = Literal["incomplete", "complete"]

PAYLOAD_SCHEMA = 1
"""The form of stored traces and gold items; a reader knows every form up to its own."""


FILE_SUFFIXES = (".json", ".jsonl", ".gz", ".zst", ".parquet", ".yaml", ".yml", ".txt", ".run")
"""By these an argument is a file, also one that is not there, and no stored run."""


class RunRecord(Struct, frozen=True, kw_only=True):
    """One stored run. It is incomplete until its last result and its scores are in.

    gold_hash   what the gold set says, whatever its order and its lines
    gold_key    names the stored copy of the gold set, byte by byte
    chunks      names the stored list of chunks, if the run has one
    snapshot    how the system was configured and the run was scored, as JSON
    aggregate   the scores, as JSON; `{}` until there are any
    results     how many are stored, also of a run that is incomplete
    branch      where the commit was checked out; None where nobody knows
    author      who made the commit; stored only where the project asks for it
    dirty       whether files of the work tree were changed since the commit; None if unknown
    evidence    what the run knows of chunks and documents, packed; empty in listings
    """

    run_id: str
    suite: str
    profile: str
    created_at: str
    commit_hash: str | None
    gold_hash: str
    gold_key: str
    chunks: str | None = None
    snapshot: str = "{}"
    aggregate: str = "{}"
    status: Status = "incomplete"
    schema_version: int = PAYLOAD_SCHEMA
    results: int = 0
    branch: str | None = None
    author: str | None = None
    dirty: bool | None = None
    evidence: bytes = b""
    tags: tuple[str, ...] = ()


class GoldRow(NamedTuple):
    """One stored gold item; `payload` is its packed JSON."""

    ordinal: int
    query_id: str
    turn: int | None
    item_hash: str
    payload: bytes


class ResultFacts(NamedTuple):
    """The narrow part of a stored result: enough to match and to query without unpacking.

    hit_rank   the rank of the first evidence, from 1; none if it was not found
    carries    what the hits of the trace carry, as bits of `Carries`
    outcome    `ok`, `errored` or `unknown` (its question is not in the gold set)
    """

    ordinal: int
    query_id: str
    paraphrase: int | None
    seed: str | None
    turn: int | None
    hit_rank: int | None
    carries: int
    outcome: str
    delta_s: float | None
    latency_ms: float | None


class ResultRow(NamedTuple):
    """One stored result: its facts, the whole trace as packed JSON, and what was measured.

    `values` is a JSON list: what the first scoring found for the question of the result, a number
    or null for each metric, in the order of that scoring's columns. None where the question is
    unknown, and in runs of an older store.
    """

    facts: ResultFacts
    payload: bytes
    values: str | None = None


class Scoring(Struct, frozen=True, kw_only=True):
    """One scoring of a run, numbered from 1; a later one does not replace the earlier ones.

    `questions` holds the packed label of each question, `aggregate` the scores as JSON, without
    their slices, and `slices` these, packed; empty where there are none.
    """

    number: int
    created_at: str
    ragauge_version: str
    aggregate: str
    questions: bytes = b""
    slices: bytes = b""


class ValueColumn(NamedTuple):
    """The values of one metric for all questions in gold order, packed."""

    metric: str
    version: int
    payload: bytes


class CompactedStore(NamedTuple):
    """How many bytes a store took before it was compacted, and takes now."""

    before: int
    after: int


class Store(Protocol):
    """A place that keeps runs. Every method is one transaction, or a stream that reads.

    A reader never sees half of a batch; a run that was not finished stays incomplete and harms
    nothing. Errors that a user can fix are `RagaugeError`.
    """

    name: str
    """How the store is called in messages; never a password."""

    url: str
    """What opens it again, with its password: never shown."""

    def begin(
        self, run: RunRecord, *, gold: Iterable[GoldRow] = (), chunks: Iterable[bytes] = ()
    ) -> None:
        """Add a run as incomplete, with its gold set and chunks; `run-exists` if its id is taken.

        All of it or nothing; a gold set or a list of chunks that is there stays as it is.
        """

    def hold(self, run_id: str) -> AbstractContextManager[None]:
        """Hold a run while it is asked for and scored; `run-held` if another process holds it."""

    def add_gold(self, gold_key: str, rows: Iterable[GoldRow]) -> None:
        """Add a gold set under its key, all of it or nothing; one that is there stays as it is."""

    def add_chunks(self, digest: str, blocks: Iterable[bytes]) -> None:
        """Add a list of chunks under its digest, likewise."""

    def add_results(self, run_id: str, rows: Sequence[ResultRow]) -> None:
        """Add a batch of results; when it returns, they are safe on disk."""

    def replace_results(self, run_id: str, rows: Sequence[ResultRow]) -> None:
        """Put results in the place of those that have the same ordinals, all or none."""

    def set_values(self, run_id: str, values: Sequence[tuple[int, str | None]]) -> None:
        """Set what was measured of some results, each named by its ordinal."""

    def reopen(self, run_id: str, *, dropping: Sequence[int] = ()) -> None:
        """Make a run incomplete again: its scorings go, its results stay, but those of `dropping`.

        All of it or nothing, so that no result of before stays in a run that is asked again.
        """

    def finish(
        self,
        run_id: str,
        *,
        results: int,
        evidence: bytes,
        scoring: Scoring,
        values: Iterable[ValueColumn],
    ) -> None:
        """Add the first scoring, fill in the rest of the run, and mark it complete."""

    def add_scoring(self, run_id: str, scoring: Scoring, values: Iterable[ValueColumn]) -> None:
        """Add a further scoring, and make its aggregate that of the run."""

    def runs(self, *, suite: str | None = None) -> list[RunRecord]:
        """All runs, the oldest first, with their tags and without their evidence."""

    def run(self, run_id: str) -> RunRecord | None:
        """One run with its evidence and tags; None if there is none of that id."""

    def gold(self, gold_key: str) -> Iterator[GoldRow]:
        """The items of a stored gold set, in their order."""

    def chunks(self, digest: str) -> Iterator[bytes]:
        """The blocks of a stored list of chunks, in their order."""

    def facts(self, run_id: str) -> Iterator[ResultFacts]:
        """The narrow part of all results, by ordinal; streams."""

    def outcomes(self, run_id: str) -> Iterator[tuple[int, str]]:
        """The ordinals and outcomes of all results and nothing else, by ordinal; streams."""

    def carried(self, run_id: str) -> Iterator[tuple[str, int | None, int]]:
        """Question, turn and what the hits carry, of all results without an error; streams."""

    def payloads(self, run_id: str) -> Iterator[tuple[int, bytes]]:
        """The ordinals and payloads of all results and nothing else, by ordinal; streams."""

    def results(self, run_id: str, *, values: bool = False) -> Iterator[ResultRow]:
        """All results, by ordinal, with their values if asked for.

        It streams, so that memory does not grow with the run.
        """

    def scorings(self, run_id: str) -> list[Scoring]:
        """All scorings of a run, the first one first."""

    def values(
        self, run_id: str, number: int, metrics: Sequence[str] | None = None
    ) -> list[ValueColumn]:
        """The values of one scoring, in the order they were added; of some metrics if named."""

    def tag(self, tag: str, run_id: str) -> None:
        """Let a tag name a run; it leaves the run that it named before."""

    def untag(self, tag: str) -> None:
        """Remove a tag, if it is there."""

    def delete(self, run_id: str) -> None:
        """Remove a run with all that belongs to it, and gold sets and lists that no run needs."""

    def reuse_deleted(self) -> None:
        """Let what is stored next take the space of what was deleted, at once."""

    def compact(self) -> CompactedStore:
        """Return the space of what was deleted; other processes wait for it meanwhile."""

    def close(self) -> None:
        """Let go of the connection."""


class StoreKind(Struct, frozen=True, kw_only=True):
    """A kind of store: the schemes of its URLs, and how one is opened.

    `open` creates what is missing and migrates what is old; with `create=False` a store that is
    not there is an error. `reaches` says which hosts a URL leads to; without it a URL in
    ragauge.toml needs the user's consent as code does.
    """

    name: str
    title: str
    schemes: tuple[str, ...]
    open: Callable[..., Store]
    reaches: Callable[[str], Sequence[Access]] | None = None
