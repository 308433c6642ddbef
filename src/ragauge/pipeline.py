"""The wiring: from file names to scores and verdicts. This is the public API."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack
from datetime import date
from pathlib import Path
from typing import Literal

from msgspec import Struct

from ragauge import gates as gating
from ragauge import registry
from ragauge.choosing import Choice, choose, cutoffs
from ragauge.document import from_document
from ragauge.errors import Problem, RagaugeError
from ragauge.findings import gold_findings
from ragauge.loading import Loaded, load_gold_rows, load_trace_rows
from ragauge.model.aggregate import Scores
from ragauge.model.gold import GoldItem, GoldSet
from ragauge.model.profile import Profile
from ragauge.model.trace import Trace, TraceSet
from ragauge.model.verdict import Gate, Verdict, Waiver
from ragauge.reading import Reader
from ragauge.rows import Job, Partial
from ragauge.scoring import Run, ScoringPlan, unique_items
from ragauge.source import RANGE_BYTES, Range, Source, opened, plan

PathLike = str | os.PathLike[str]
POOL_FROM_BYTES = 16 * 1024 * 1024
MOST_WORKERS = 8
Engine = Callable[[Job, Sequence[Range]], Iterator[Partial]]
GateMaker = Callable[[Profile, Sequence[int]], Sequence[Gate]]


def load_gold(path: PathLike, *, dialect: str = "auto") -> GoldSet:
    """Read a gold set. Any bad row is an error that names all bad rows (up to 20)."""
    with opened(path) as source:
        choice = choose(dialect, None, gold=source)
        loaded = load_gold_rows(source, Reader(choice.dialect, own=choice.own))
        loaded.stop_on_problems()
        return GoldSet(
            items=tuple(loaded.items), name=source.name, dialect=choice.dialect.name,
            notes=source.notes,
        )  # fmt: skip


def load_traces(path: PathLike, *, dialect: str = "auto") -> TraceSet:
    """Read a trace file into memory. To score a large file, give `score` its path instead."""
    with opened(path) as source:
        choice = choose(dialect, None, trace=source)
        loaded = load_trace_rows(source, Reader(choice.dialect, own=choice.own))
        loaded.stop_on_problems()
        return TraceSet(
            traces=tuple(loaded.items), name=source.name, dialect=choice.dialect.name,
            notes=source.notes,
        )  # fmt: skip


def score(
    gold: PathLike | GoldSet | Iterable[GoldItem],
    traces: PathLike | TraceSet | Iterable[Trace],
    *,
    profile: str | None = None,
    dialect: str = "auto",
    k: Sequence[int] | int | None = None,
    metrics: Sequence[str] = (),
    gates: Sequence[Gate] | GateMaker = (),
    missing: Literal["count", "exclude"] = "count",
    on_bad_line: Literal["stop", "skip"] = "stop",
    refusal_patterns: Sequence[str] = (),
    workers: int | None = None,
    intervals: bool = True,
    count_repeats: bool = True,
) -> Scores:
    """Score traces against gold.

    Files are streamed; sets and lists from memory are taken as they are. `gates` (or a function
    that makes them for the profile found) only adds the metrics that they name: `gate` decides.
    `count_repeats` looks for ids that stand twice among the hits of a trace, which takes time. The
    result does not depend on `workers`.
    """
    _one_of("missing", missing, ("count", "exclude"))
    _one_of("on_bad_line", on_bad_line, ("stop", "skip"))
    with ExitStack() as stack:
        gold_source = _source(stack, gold)
        trace_source = _source(stack, traces)
        loaded_as = [
            each.dialect for each in (gold, traces) if isinstance(each, GoldSet | TraceSet)
        ]
        choice = choose(dialect, profile, gold=gold_source, trace=trace_source, loaded=loaded_as)
        engine = _engine(stack, trace_source, workers) if trace_source is not None else None
        ks = cutoffs(k, choice.profile)
        skip = on_bad_line == "skip"
        loaded = _gold(gold, gold_source, choice)
        if not skip:
            loaded.stop_on_problems()
        demanded = gates(choice.profile, ks) if callable(gates) else gates
        selected = registry.select(
            [*(metrics or choice.profile.metrics), *(gate.metric for gate in demanded)], ks
        )
        run = Run(
            ScoringPlan(
                profile=choice.profile,
                dialect=choice.dialect,
                own=choice.own,
                k=ks,
                selected=selected,
                absent_counts=missing != "exclude",
                patterns=tuple(refusal_patterns),
                intervals=intervals,
                count_repeats=count_repeats,
            ),
            loaded.items,
            gold_name=_name(gold, gold_source, "<gold>"),
            trace_name=_name(traces, trace_source, "<traces>"),
        )
        run.note_gold(loaded.problems, loaded.problem_count, gold_source)
        if choice.note:
            run.warnings.append(choice.note)
        if trace_source is not None and engine is not None:
            ranges = plan(trace_source)
            run.note_source(trace_source, ranges)
            run.add_partials(engine(run.job(trace_source), ranges))
        else:
            items = traces.traces if isinstance(traces, TraceSet) else tuple(traces)  # type: ignore[arg-type]
            run.add_traces(items)  # type: ignore[arg-type]
        if not skip:
            run.stop_on_problems()
        return run.finish()


def gate(
    scores: Scores | PathLike,
    gates: str | dict[str, object] | Sequence[Gate] | None = None,
    *,
    allow_missing: bool = False,
    allow_errored: bool = False,
    allow_skipped: bool = False,
    allow_empty: bool = False,
    waivers: Sequence[Waiver] = (),
    today: date | None = None,
) -> Verdict:
    """Judge scores (or a saved scores file) by gates.

    `gates` may be text (`"precision=0.80,refusal.over<=0.1"`), a table as in `ragauge.toml`, or
    Gate values, which stand alone; text and tables go on top of the gates of the scores' profile.
    Waivers are judged on `today`, by the clock if it is not given.
    """
    if not isinstance(scores, Scores):
        scores = load_scores(scores)
    profile = registry.profile(scores.profile)
    layers = [profile_gates(profile, scores.k)]
    if isinstance(gates, str):
        layers.append(gating.parse_items(gates, profile, scores.k))
    elif isinstance(gates, dict):
        layers.append(gating.parse_table(gates, profile, scores.k, origin="gates"))
    elif gates is not None:
        layers = [list(gates)]
    return gating.judge(
        scores,
        gating.merge(*layers),
        source_rules=profile.follows_source,
        tolerance=gating.Tolerance(
            missing=allow_missing, errored=allow_errored, skipped=allow_skipped, empty=allow_empty
        ),
        waivers=waivers,
        today=date.today() if waivers and today is None else today,
    )


class FileCheck(Struct, frozen=True, kw_only=True):
    """What is in one file, and what is wrong with it."""

    name: str
    kind: str
    rows: int
    dialect: str
    notes: tuple[str, ...]
    problems: tuple[Problem, ...]
    problem_count: int


class Checks(Struct, frozen=True, kw_only=True):
    """The checks of the files, and how they fit together."""

    files: tuple[FileCheck, ...]
    findings: tuple[str, ...] = ()


def validate(
    gold: PathLike | None,
    trace: PathLike | None,
    *,
    profile: str | None = None,
    dialect: str = "auto",
) -> Checks:
    """Read gold and traces to the end and say what is wrong; problems are not raised."""
    with ExitStack() as stack:
        gold_source = _source(stack, gold)
        trace_source = _source(stack, trace)
        choice = choose(dialect, profile, gold=gold_source, trace=trace_source)
        reader = Reader(choice.dialect, own=choice.own)
        checks: list[FileCheck] = []
        findings = [choice.note] if choice.note else []
        items: list[GoldItem] = []
        if gold_source is not None:
            loaded = load_gold_rows(gold_source, reader)
            items = loaded.items
            checks.append(_check(gold_source, "gold items", len(items), choice, loaded))
            unique_items(items, choice.profile, gold_source.name)
        if trace_source is not None:
            plan_ = ScoringPlan(
                profile=choice.profile, dialect=choice.dialect, own=choice.own,
                k=choice.profile.k, selected=[], intervals=False,
            )  # fmt: skip
            run = Run(
                plan_, items, gold_name=_name(gold, gold_source, "<gold>"),
                trace_name=trace_source.name,
            )  # fmt: skip
            ranges = plan(trace_source)
            run.note_source(trace_source, ranges)
            engine = _engine(stack, trace_source, None)
            run.add_partials(engine(run.job(trace_source), ranges))
            found = run.problems_found()
            checks.append(_check(trace_source, "traces", run.traces, choice, found))
            if items:
                findings += run.together()
        findings += gold_findings(items)
        return Checks(files=tuple(checks), findings=tuple(findings))


def _check(source: Source, kind: str, rows: int, choice: Choice, loaded: Loaded) -> FileCheck:
    return FileCheck(
        name=source.name, kind=kind, rows=rows, dialect=choice.dialect.name, notes=source.notes,
        problems=tuple(loaded.problems), problem_count=loaded.problem_count,
    )  # fmt: skip


def load_scores(path: PathLike) -> Scores:
    """Read a saved scores file."""
    with opened(path) as source:
        return from_document(Path(source.path).read_bytes(), source.name)


def profile_gates(profile: Profile, k: Sequence[int]) -> list[Gate]:
    """The gates that are built into a profile."""
    return gating.parse_table(profile.gates, profile, k, origin=f"profile {profile.name}")


def _one_of(name: str, value: str, known: Sequence[str]) -> None:
    if value not in known:
        raise RagaugeError.of(
            "usage", f"{name} must be one of {', '.join(known)}, got {value!r}",
            hint="check the spelling",
        )  # fmt: skip


def _source(stack: ExitStack, given: object) -> Source | None:
    if isinstance(given, str | os.PathLike):
        return stack.enter_context(opened(given))
    return None


def _name(given: object, source: Source | None, fallback: str) -> str:
    if source is not None:
        return source.name
    return given.name if isinstance(given, GoldSet | TraceSet) else fallback


def _gold(given: object, source: Source | None, choice: Choice) -> Loaded:
    if source is not None:
        return load_gold_rows(source, Reader(choice.dialect, own=choice.own))
    items = given.items if isinstance(given, GoldSet) else list(given)  # type: ignore[call-overload]
    return Loaded(list(items), [], 0)


def _engine(stack: ExitStack, source: Source, workers: int | None) -> Engine:
    """The engine for a trace file; a pool is started here, so that it warms up meanwhile."""
    if _worker_count(workers, source.size) <= 1:
        from ragauge.engines import local

        return local.run
    from ragauge.engines.pool import Pool

    return stack.enter_context(Pool(_worker_count(workers, source.size))).run


def _worker_count(workers: int | None, size: int) -> int:
    if workers is None:
        if size < POOL_FROM_BYTES:
            return 1
        cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
        workers = min(cores or 1, MOST_WORKERS)
    return max(1, min(workers, -(-size // RANGE_BYTES)))
