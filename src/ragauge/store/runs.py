"""Stored runs: a run goes into a store, is found there by name, and is scored again from it."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from typing import Any, NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from ragauge import registry
from ragauge.corpus.chunk_list import chunk_list_digest
from ragauge.errors import MAX_REPORTED, RagaugeError
from ragauge.files.ranges import Source
from ragauge.files.temporary_file import temporary_file
from ragauge.model.chunk import Chunk
from ragauge.model.gold import GoldItem
from ragauge.model.payloads import (
    freeze_chunks,
    freeze_evidence,
    freeze_gold,
    gold_key,
    readable,
    thaw_chunks,
    thaw_gold,
)
from ragauge.model.run import FILE_SUFFIXES, GoldRow, RunRecord, Scoring, Store
from ragauge.model.scores import MetricResult, Scores
from ragauge.model.scores_document import from_document
from ragauge.model.semantic import Semantic
from ragauge.scoring.chunk_facts import CollectedFacts, FactsCollector, expected_ids, negative_ids
from ragauge.scoring.engines.choose import Engine, stored_engine
from ragauge.scoring.gold_table import gold_table
from ragauge.scoring.inputs import Gold, ScoredRun, Traces
from ragauge.scoring.results import with_hashes
from ragauge.scoring.score import score, score_stored
from ragauge.scoring.scoring_run import InputFacts
from ragauge.scoring.tasks.task import RangeTask
from ragauge.scoring.tasks.unpack import WHOLE_RUN, Unpack
from ragauge.store.packed_slices import join_slices
from ragauge.store.snapshot import Snapshot, plan_of, read_snapshot, snapshot_of
from ragauge.store.stored_scores import deserialise_scores, serialise_scores, value_texts

DEFAULT_URL = "sqlite:///ragauge.db"
LATEST = "latest"
BASELINE = "baseline"
_SHORTEST = 4  # characters that are taken for the beginning of an id


def open_store(url: str, *, create: bool = False) -> Store:
    """Open the store behind a URL."""
    scheme = url.partition("://")[0]
    kinds = registry.stores()
    if "://" not in url or scheme not in kinds:
        message = f"`{url.partition('@')[2] or url}` is not a store"
        hint = f"known: {', '.join(sorted(kinds))}; for example {DEFAULT_URL}"
        raise RagaugeError.of("bad-store-url", message, hint=hint)
    return kinds[scheme].open(url, create=create)


@contextmanager
def opened_store(url: str, *, create: bool = False) -> Iterator[Store]:
    """The store behind a URL, closed at the end."""
    store = open_store(url, create=create)
    try:
        yield store
    finally:
        store.close()


class RunDescription(Struct, frozen=True, kw_only=True):
    """How a run is to be stored: its name and what is said of the system it measured.

    `is_file` says that the id is the name of a file: in a store that is gone at the end.
    """

    run_id: str | None = None
    suite: str = "default"
    tags: tuple[str, ...] = ()
    commit_hash: str | None = None
    branch: str | None = None
    author: str | None = None
    dirty: bool | None = None
    system: Mapping[str, Any] = {}
    created_at: str | None = None
    is_file: bool = False


def store_run(store: Store, scored: ScoredRun, description: RunDescription) -> RunRecord:
    """Store a run that was scored; it is marked complete when its last row and scores are in.

    What is returned is the run as it is in the store, with its evidence: two runs are compared by
    that.
    """
    scores = scored.scores
    gathered = facts_of_chunks(scored)
    values_now = [result.value for result in scores.metrics.values()]
    run = add_run(
        store,
        description,
        snapshot_of(scored.plan, scored.inputs, system=description.system),
        scored.items,
        scored.chunks,
        gold_hash=scores.gold_hash or "",
        content=f"{scores.gold_hash}{scores.tally}{values_now}{scores.trace_name}",
    )
    count = 0
    measured = value_texts(scores)
    for batch in scored.rows:
        results = batch.result_rows(count, measured)
        if results:
            store.add_results(run.run_id, results)
        count += len(results)
        gathered.merge(batch.gathered)
    add_scores(store, run, scores, count, gathered)
    for tag in description.tags:
        store.tag(tag, run.run_id)
    stored = store.run(run.run_id)
    assert stored is not None, "it was stored a moment ago"
    return stored


def add_scores(
    store: Store, run: RunRecord, scores: Scores, results: int, gathered: CollectedFacts
) -> None:
    """Add the first scores of a run that has all its results, and mark it complete."""
    scoring, values = serialise_scores(scores, number=1, created_at=run.created_at)
    evidence = freeze_evidence(gathered.evidence())
    store.finish(run.run_id, results=results, evidence=evidence, scoring=scoring, values=values)


def keep_run(
    store: Store,
    gold: Gold,
    traces: Traces,
    *,
    run_id: str | None = None,
    suite: str = "default",
    tags: tuple[str, ...] = (),
    system: Mapping[str, Any] | None = None,
    commit_hash: str | None = None,
    **options: Any,
) -> Scores:
    """Score traces against gold, as `scoring.score` does with its options, and store the run.

    `system` says how the system under test is configured; secrets in it are not stored.
    """
    if run_id is not None:
        refuse_run_id(run_id)  # before the work is done
    description = RunDescription(
        run_id=run_id, suite=suite, tags=tags, system=system or {}, commit_hash=commit_hash
    )
    return score(
        gold, traces, keep=lambda scored: _store_scored(store, scored, description), **options
    )


def _store_scored(store: Store, scored: ScoredRun, description: RunDescription) -> None:
    unmeasured = scored.scores.unmeasured
    if unmeasured is not None:
        hint = "nothing was stored; compare the ids and the fields of the two files"
        raise RagaugeError.of(unmeasured.code, unmeasured.message, hint=hint)
    store_run(store, scored, description)


def add_run(
    store: Store,
    description: RunDescription,
    snapshot: Snapshot,
    items: Sequence[GoldItem],
    chunks: Mapping[str, Chunk],
    *,
    gold_hash: str,
    content: str,
) -> RunRecord:
    """Add a run with its gold set and its chunks; it is incomplete until it is finished.

    Without a chosen id it gets one that sorts by time and says a little of its `content`.
    """
    for tag in description.tags:
        refuse_tag(tag)
    if description.run_id is not None and not description.is_file:
        refuse_run_id(description.run_id)
    created_at = now() if description.created_at is None else description.created_at
    stamp = created_at.replace("-", "").replace(":", "")
    rows = freeze_gold(items)
    run = RunRecord(
        run_id=description.run_id or f"{stamp}-{sha256(content.encode()).hexdigest()[:6]}",
        suite=description.suite,
        profile=snapshot.scoring.profile,
        created_at=created_at,
        commit_hash=description.commit_hash,
        branch=description.branch,
        author=description.author,
        dirty=description.dirty,
        gold_hash=gold_hash,
        gold_key=gold_key(rows),
        chunks=chunk_list_digest(chunks) if chunks else None,
        snapshot=snapshot.encoded(),
    )
    blocks = freeze_chunks(chunks)
    return begin_run(store, run, rows, blocks, chosen=description.run_id is not None)


def begin_run(
    store: Store, run: RunRecord, gold: Sequence[GoldRow], chunks: Sequence[bytes], *, chosen: bool
) -> RunRecord:
    """Add the run with what it asks; an id that nobody chose gives way to one that is there."""
    for attempt in range(2, 100):
        try:
            store.begin(run, gold=gold, chunks=chunks)
        except RagaugeError as error:
            if chosen or error.code != "run-exists":
                raise
            run = replace(run, run_id=f"{run.run_id.partition('.')[0]}.{attempt}")
        else:
            return run
    raise RagaugeError.of("run-exists", f"`{run.run_id}` is taken", hint="choose a --run-id")


def facts_of_chunks(scored: ScoredRun) -> CollectedFacts:
    """What the list of chunks says of chunks and documents, before any hit does."""
    items = scored.items
    gatherer = FactsCollector(expected_ids(items), scored.chunks, negatives=negative_ids(items))
    gatherer.add_chunks()
    return gatherer.take()


def now() -> str:
    """The time in UTC, to the second; SOURCE_DATE_EPOCH stands in for the clock where it is set."""
    return time_text(_moment())


def _moment() -> datetime:
    fixed = os.environ.get("SOURCE_DATE_EPOCH", "")
    return datetime.fromtimestamp(int(fixed), UTC) if fixed.isdecimal() else datetime.now(UTC)


def time_text(moment: datetime) -> str:
    """A time as it is stored: such texts sort as their times do."""
    return moment.strftime("%Y-%m-%dT%H:%M:%SZ")


_RUN_ID = re.compile(r"[^\W_][\w.:+=@-]{0,199}")


def refuse_run_id(run_id: str) -> None:
    """Raise if a run could not be named by this id later: it would be an option, a file or a word.

    The same for an id that was chosen on the command line, in Python, or by who exported the run.
    """
    if not _RUN_ID.fullmatch(run_id) or run_id in (LATEST, BASELINE):
        shown = run_id if len(run_id) <= 60 else f"{run_id[:57]}..."
        message = f"`{shown}` cannot be the id of a run"
        hint = (
            "an id is of letters, digits and . _ - : + = @, up to 200 of them, the first one a "
            f"letter or a digit; `{LATEST}` and `{BASELINE}` have a meaning of their own"
        )
        raise RagaugeError.of("usage", message, hint=hint)
    if os.path.splitext(run_id)[1] in (*FILE_SUFFIXES, ".html", ".htm"):
        message = f"`{run_id}` cannot be the id of a run: it looks like the name of a file"
        raise RagaugeError.of("usage", message, hint="write it without the suffix")


def refuse_tag(tag: str) -> None:
    """Raise if a tag could be mistaken for something else."""
    odd = not tag.isprintable() or tag.strip() != tag or "/" in tag or tag.startswith("-")
    if not tag or tag == LATEST or odd:
        hint = f"a tag is a short word without slashes or blanks at its ends, and not `{LATEST}`"
        raise RagaugeError.of("usage", f"`{tag}` cannot be a tag", hint=hint)


def baseline_tag(suite: str) -> str:
    """The tag that names the baseline of a suite."""
    return BASELINE if suite == "default" else f"{BASELINE}:{suite}"


def find_run(
    store: Store, name: str, *, suite: str | None = None, complete: bool = True
) -> RunRecord:
    """The run of an id, the beginning of an id, a tag, `baseline` of a suite, or `latest`."""
    runs = store.runs()
    if name == BASELINE and suite is not None:
        name = baseline_tag(suite)
    # An id wins over a tag, and both over a meaning of its own: whoever named a run so meant it.
    matching = [run for run in runs if run.run_id == name]
    matching = matching or [run for run in runs if name in run.tags]
    if not matching and name == LATEST:
        complete_runs = [run for run in runs if run.status == "complete"]
        matching = [run for run in complete_runs if suite in (None, run.suite)][-1:]
    if not matching and len(name) >= _SHORTEST:
        matching = [run for run in runs if run.run_id.startswith(name)]
    run = store.run(matching[0].run_id) if len(matching) == 1 else None
    if run is None:
        raise _unknown(store, name, matching, runs)
    if complete and run.status != "complete":
        message = f"the run `{run.run_id}` is not complete"
        hint = "it was stopped, or is still being stored; see `ragauge runs list`"
        raise RagaugeError.of("incomplete-run", message, hint=hint)
    return run


def outdated_runs(
    runs: Sequence[RunRecord],
    *,
    incomplete: bool = False,
    older_than: timedelta | None = None,
    keep: int | None = None,
) -> list[RunRecord]:
    """Those runs, sorted from the oldest to the newest, that fit all that is asked for.

    incomplete   the run was not stored to its end
    older_than   it was stored longer ago; a run whose time is not known is not
    keep         it is complete, and so many of its suite are newer
    """
    fitting = list(runs)
    if keep is not None:
        newest: dict[str, list[str]] = {}
        for run in runs:
            if run.status == "complete":
                newest.setdefault(run.suite, []).append(run.run_id)
        outdated = {run_id for run_ids in newest.values() for run_id in run_ids[:-keep]}
        fitting = [run for run in fitting if run.run_id in outdated]
    if incomplete:
        fitting = [run for run in fitting if run.status != "complete"]
    if older_than is not None:
        try:
            latest = time_text(_moment() - older_than)
        except OverflowError:  # nothing is that old
            return []
        fitting = [run for run in fitting if "" < run.created_at < latest]
    return fitting


def _unknown(
    store: Store, name: str, matching: list[RunRecord], runs: list[RunRecord]
) -> RagaugeError:
    if len(matching) > 1:
        listed = ", ".join(run.run_id for run in matching[:5])
        message = f"`{name}` is the beginning of {len(matching)} runs"
        return RagaugeError.of("unknown-run", message, hint=f"write more of it: {listed}")
    newest = [run.run_id for run in runs][-3:]
    hint = f"the last ones are {', '.join(newest)}" if newest else "nothing was stored there yet"
    return RagaugeError.of("unknown-run", f"there is no run `{name}` in {store.name}", hint=hint)


def run_scores(store: Store, run: RunRecord) -> Scores:
    """The scores of a run as they were stored last."""
    scorings = store.scorings(run.run_id)
    if not scorings:
        return recompute_scores(store, run)
    last = scorings[-1]
    return deserialise_scores(last, store.values(run.run_id, last.number), run.run_id)


class StoredTraces(NamedTuple):
    """The traces of a stored run as a file of rows, and what is known of where they came from."""

    source: Source
    inputs: InputFacts


def begin_loading(
    stack: ExitStack, store: Store, run: RunRecord, engine: Engine
) -> Callable[[], StoredTraces]:
    """Begin to read the traces of a run back; what is returned waits for the last of them.

    Rows go to a temporary file, which is gone when the stack is closed; those that cannot be read
    are named.
    """
    if not readable(run.schema_version):
        message = f"the results of `{run.run_id}` were stored by a newer ragauge"
        raise RagaugeError.of("newer-store", message, hint="upgrade ragauge")
    inputs = read_snapshot(run.snapshot, run.run_id).inputs
    path = stack.enter_context(temporary_file()).path
    results = engine.map(RangeTask(Unpack(store.url, run.run_id, path)), WHOLE_RUN)

    def loaded() -> StoredTraces:
        unpacked = next(results)
        if unpacked.failure:
            raise RagaugeError(unpacked.failure)
        with_problems = inputs
        if unpacked.problem_count:
            with_problems = replace(
                inputs,
                trace_problems=(*inputs.trace_problems, *unpacked.problems)[:MAX_REPORTED],
                trace_problem_count=inputs.trace_problem_count + unpacked.problem_count,
            )
        size = os.path.getsize(path)
        source = Source(inputs.trace_name, path, 0, size, "lines", ())
        return StoredTraces(source, with_problems)

    return loaded


def recompute_scores(store: Store, run: RunRecord, *, workers: int | None = None) -> Scores:
    """The scores of a stored run under the formulas of this version; nothing is written."""
    with ExitStack() as stack:
        engine = stored_engine(stack, run.results, workers)
        loading = begin_loading(stack, store, run, engine)
        plan = plan_of(read_snapshot(run.snapshot, run.run_id).scoring)
        items = thaw_gold(store.gold(run.gold_key), run.run_id)
        chunks = stored_chunks(store, run)
        loaded = loading()
        name = loaded.inputs.gold_name
        table = gold_table(items, plan.profile, plan.options, name=name, chunks=chunks)
        scores = score_stored(table, loaded.source, plan, given=loaded.inputs, engine=engine)
        scores = replace(scores, semantic=stored_semantic(store, run))
        return with_hashes(scores, items, plan.profile, chunks)


def stored_chunks(store: Store, run: RunRecord) -> dict[str, Chunk]:
    """The list of chunks that a run was scored with; empty where it had none."""
    return {} if run.chunks is None else thaw_chunks(store.chunks(run.chunks), run.run_id)


def stored_semantic(store: Store, run: RunRecord) -> Semantic | None:
    """What was known of ΔS when a run was stored: its texts are not measured again."""
    with suppress(RagaugeError):
        for scoring in store.scorings(run.run_id)[:1]:
            return from_document(scoring.aggregate.encode(), run.run_id).semantic
    return None


def _parsed(scoring: Scoring) -> Any:
    """What a scoring says, whatever the order of its members and how its slices are packed."""
    return json.loads(join_slices(scoring.aggregate, scoring.slices))


class MetricChange(Struct, frozen=True, kw_only=True):
    """One metric before and after a run was scored again."""

    metric: str
    old: MetricResult | None
    new: MetricResult | None


class Rescored(Struct, frozen=True, kw_only=True):
    """What scoring a run again changed; `number` is None where nothing did."""

    run_id: str
    number: int | None
    changes: tuple[MetricChange, ...]


def rescore(store: Store, run: RunRecord, *, workers: int | None = None) -> Rescored:
    """Score a run again, and store the result beside the old one where it differs."""
    scorings = store.scorings(run.run_id)
    fresh = recompute_scores(store, run, workers=workers)
    number = scorings[-1].number + 1 if scorings else 1
    scoring, values = serialise_scores(fresh, number=number, created_at=now())
    old: dict[str, MetricResult] = {}
    if scorings:
        last = scorings[-1]
        before = store.values(run.run_id, last.number)
        old_aggregate = None
        with suppress(RagaugeError):  # old scores that cannot be read: new ones go beside them
            old = deserialise_scores(last, before, run.run_id).metrics
            old_aggregate = _parsed(last)
        if old_aggregate == _parsed(scoring) and before == values:
            return Rescored(run_id=run.run_id, number=None, changes=())
    store.add_scoring(run.run_id, scoring, values)
    new = deserialise_scores(scoring, values, run.run_id).metrics
    changes = tuple(
        MetricChange(metric=name, old=old.get(name), new=new.get(name))
        for name in dict.fromkeys([*new, *old])
        if old.get(name) != new.get(name)
    )
    return Rescored(run_id=run.run_id, number=number, changes=changes)
