"""The commands as functions of Python: `score`, `gate` and `compare`, of files or of memory."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from datetime import date
from functools import wraps
from inspect import signature
from pathlib import Path
from typing import Any, ParamSpec, TypeGuard

from ragauge import registry
from ragauge.api.arguments import checked, described, is_gates, refuse_no_rows
from ragauge.api.kept_inputs import KeptInputs
from ragauge.api.results import (
    ComparisonResult,
    ScoreResult,
    VerdictResult,
    comparison_result,
    score_result,
    verdict_result,
)
from ragauge.codes import ExitCode
from ragauge.compare import align
from ragauge.compare import compare as comparing
from ragauge.compare import fail_on as failing
from ragauge.compare.common_gold import StoredRun
from ragauge.config import load_gates
from ragauge.errors import RagaugeError
from ragauge.files.open import PathLike
from ragauge.formats import load
from ragauge.formats.rows_in_memory import rereadable
from ragauge.gates import judge, parse
from ragauge.gates.judge import Tolerance
from ragauge.model import scores_document
from ragauge.model.profile import Profile
from ragauge.model.run import RunRecord
from ragauge.model.scores import Scores
from ragauge.model.verdict import Gate, Verdict, VerdictBlock, Waiver
from ragauge.scoring import score as scoring
from ragauge.scoring.inputs import Gold, ScoredRun, Traces
from ragauge.scoring.places import LEAST_EVIDENCE
from ragauge.store import runs as run_store
from ragauge.store.run_files import import_run_file, read_run_file

P = ParamSpec("P")
Gates = str | os.PathLike[str] | Mapping[str, Any] | Sequence[str] | Sequence[Gate]
"""Gates: text, a table, a file of them, several texts, or values."""


_score = checked(scoring.score)
_keep_run = checked(run_store.keep_run)


@wraps(scoring.score)
def score(gold: Gold, traces: Traces, **options: Any) -> ScoreResult:
    """Score traces against gold; the result keeps both, for pages that show hits.

    Results can be compared, so they have hashes unless they are not asked for.
    """
    _own_gates(options)
    options.setdefault("hashes", True)
    gold, traces = rereadable(gold), rereadable(traces)
    kept = KeptInputs(gold, traces, **options)
    return score_result(_score(gold, traces, **options), kept)


@wraps(run_store.keep_run)
def keep_run(*args: Any, **options: Any) -> ScoreResult:
    """Score traces, and store the run."""
    _own_gates(options)
    return score_result(_keep_run(*args, **options))


for _function in (score, keep_run):
    _function.__annotations__ = {**_function.__annotations__, "return": "ScoreResult"}
_shown = signature(scoring.score)
score.__signature__ = _shown.replace(  # type: ignore[attr-defined]
    parameters=[
        parameter.replace(default=True) if name == "hashes" else parameter
        for name, parameter in _shown.parameters.items()
    ],
    return_annotation="ScoreResult",
)


def _own_gates(options: dict[str, Any]) -> None:
    if "gates" in options and not callable(options["gates"]):
        options["gates"] = _gate_maker(options["gates"])


load_gold = checked(load.load_gold)
load_traces = checked(load.load_traces)
opened_store = checked(run_store.opened_store)


def load_scores(path: PathLike) -> ScoreResult:
    """Read scores that were saved: by `save`, or by `ragauge score --full -o FILE.json`."""
    if not isinstance(path, str | os.PathLike):
        message = f"saved scores are read from a path, got: {type(path).__name__}"
        raise RagaugeError.of("usage", message, hint="give the path of a file")
    return score_result(scores_document.load_scores(path))


_JUDGING = frozenset(signature(judge.gate).parameters) - {"beside"}
"""What `gate` takes beside scores; the rest is for scoring."""


@checked
def gate(
    scores: Scores | Traces,
    gates: Gates | None = None,
    *,
    gold: Gold | None = None,
    baseline: Scores | Traces | None = None,
    waivers: Sequence[Waiver] = (),
    today: date | None = None,
    **options: Any,
) -> VerdictResult:
    """Judge scores, saved scores, a run file, or traces with their gold set, by gates.

    `gates` may be text (`"precision>=0.80,refusal.over<=0.1"`), several of them, a table as in
    `ragauge.toml`, or a file of gates: they go on top of the gates of the profile. Gate values
    stand alone. With `gold`, traces are scored first, with the other options of `score`. Gates
    on a drop are judged against `baseline`, which is given in the same ways; against a run file,
    runs with their hits are compared as by `compare`, whatever their chunking. Waivers are judged
    on `today`, by the clock if it is not given. What the command lets pass by an option is let pass
    by an argument of its name: `allow_missing=True`, `allow_errored=True`.
    """
    asked = _gate_maker(gates)
    judging = {name: options.pop(name) for name in _JUDGING.intersection(options)}
    _refuse_unused(options, gold, scores, baseline)
    beside = other = None
    with ExitStack() as stack:
        run, before = _run_in_file(stack, scores), _run_in_file(stack, baseline)
        if run is None:
            judged = _scores("scores", scores, gold, asked, options)
        else:
            judged = run_store.run_scores(run.store, run.record)
        if before is not None:
            other = run_store.run_scores(before.store, before.record)
            own = run
            if own is None and not _is_scored(scores, gold):
                stored = _run(stack, "scores", scores, gold, "run", options)
                own = stored if isinstance(stored, StoredRun) else None
            if own is not None:
                aligned = align.align(before, own)
                other, beside = aligned.a, aligned.b
        elif baseline is not None:
            other = _scores("baseline", baseline, gold, asked, options)
        verdict = judge.gate(
            judged,
            asked(registry.profile(judged.profile), judged.k),
            baseline=other,
            beside=beside,
            waivers=waivers,
            today=today,
            **judging,
        )
    return verdict_result(verdict, judged)


def _run_in_file(stack: ExitStack, given: object) -> StoredRun | None:
    """The run that a run file holds, in a store that is gone at the end; None for all else."""
    file = read_run_file(os.fspath(given)) if _is_path(given) else None
    if file is None:
        return None
    from ragauge.cli.store_options import temporary_store

    store = stack.enter_context(temporary_store())
    return StoredRun(store, import_run_file(file, store))


def _gates(gates: object) -> str | Mapping[str, Any] | Sequence[Gate] | None:
    """Gates as text, as a table, or as values; several texts are one."""
    if gates is None or isinstance(gates, Mapping):
        return gates
    if isinstance(gates, os.PathLike) or (isinstance(gates, str) and gates.endswith(".toml")):
        return load_gates(Path(gates))
    if isinstance(gates, str):
        return gates
    if isinstance(gates, Sequence) and not isinstance(gates, bytes):
        if gates and all(isinstance(gate, str) for gate in gates):
            return ",".join(gates)
        if is_gates(gates):
            return gates
    raise RagaugeError.of(
        "usage",
        f"gates are a text, a table, or a list of them, got: {described(gates)}",
        hint='for example gates="recall@5>=0.8" or gates={"refusal.over": 0.1}',
    )


def _gate_maker(gates: object) -> scoring.GateMaker:
    """Gates on top of those of a profile that is not known yet."""
    table = _gates(gates)
    return lambda profile, ks: parse.merge(*_layers(table, profile, ks))


def _layers(
    gates: str | Mapping[str, Any] | Sequence[Gate] | None, profile: Profile, ks: Sequence[int]
) -> list[list[Gate]]:
    own = parse.profile_gates(profile, ks)
    if gates is None:
        return [own]
    if isinstance(gates, str):
        return [own, parse.parse_items(gates, profile, ks)]
    if isinstance(gates, Mapping):
        return [own, parse.parse_table(gates, profile, ks, origin="gates")]
    return [list(gates)]


def _scores(
    what: str,
    given: object,
    gold: object,
    gates: scoring.GateMaker | None,
    options: Mapping[str, Any],
) -> Scores:
    """The scores that were given, that a file holds, or those of traces with their gold set."""
    if isinstance(given, Scores):
        return given
    if _is_path(given) and _is_scored(given, gold):
        return scores_document.load_scores(given)
    if gold is not None:
        refuse_no_rows("traces", given)
        rows: tuple[Any, Any] = rereadable(gold), rereadable(given)
        options = {**options, "gates": gates or ()}
        return score_result(scoring.score(*rows, **options), KeptInputs(*rows, **options))
    raise RagaugeError.of(
        "usage",
        f"{what} must be those of `score`, or a path, got: {described(given)}",
        hint="give what `ragauge.score` returned, a file that was saved, or traces with gold=",
    )


def _refuse_unused(options: Mapping[str, Any], gold: object, *given: object) -> None:
    """Refuse options of scoring where nothing is scored: all that was given is scored already."""
    said = [name for name, value in options.items() if value is not None]
    runs = [run for run in given if run is not None]
    if said and all(_is_scored(run, gold) for run in runs):
        raise RagaugeError.of(
            "usage",
            f"{', '.join(said)}: what was scored already takes no options of scoring",
            hint="give traces and gold=, or leave the options out",
        )


def _is_scored(given: object, gold: object) -> bool:
    """Whether what was given are scores, or a file that is read as such."""
    if isinstance(given, Scores):
        return True
    if not _is_path(given):
        return False
    return gold is None or _holds_scores(given) or read_run_file(os.fspath(given)) is not None


def _is_path(given: object) -> TypeGuard[PathLike]:
    return isinstance(given, str | os.PathLike)


def _holds_scores(path: PathLike) -> bool:
    from ragauge.cli.compare import holds_scores

    return holds_scores(os.fspath(path))


@checked
def compare(
    a: Scores | Traces,
    b: Scores | Traces,
    *,
    gold: Gold | None = None,
    gates: Gates | None = None,
    names: tuple[str, str] | None = None,
    overlap: align.Overlap = "cumulative",
    strict: bool = False,
    fail_on: str | Sequence[str] = (),
    strict_kinds: bool = False,
    accept_open: bool = False,
    accept_doc_level: bool = False,
    chunks_a: PathLike | None = None,
    chunks_b: PathLike | None = None,
    least_evidence: int = LEAST_EVIDENCE,
    guess_place: bool = False,
    workers: int | None = None,
    **options: Any,
) -> ComparisonResult:
    """Compare run b with run a, question by question.

    Each is the scores of `score`, a file of saved scores, a run file, or traces with their `gold`
    set: a path, rows, a frame. Of traces and run files, expected items are recognised by chunk id,
    span, quote or document, whatever the chunking; scores are compared as they are. `gates` may be
    on drops (`max_drop`) only. `fail_on` makes `exit_code` 1 where questions lost something:
    "regression", "loss", or with how many may: "regression:2", "regression:1%". `strict_kinds`
    counts questions that are mixed, and `accept_open` judges without those of which nobody can
    tell; `accept_doc_level` judges by document where the runs share no more. `names` are what the
    runs are called. `least_evidence` is how many bytes of a chunk that gold names the evidence has
    at least; `guess_place` adds what a difference is if the evidence stands where the words of the
    question do, by which nothing is decided. Traces take the other options of `score`, and what
    `gate` lets pass is let pass here, too: `allow_missing=True`.
    """
    limits = [failing.FailOn.parse(text) for text in dict.fromkeys(fail_on)]
    if strict_kinds and not limits:
        message = "strict_kinds is about fail_on, which is not given"
        raise RagaugeError.of("usage", message, hint='for example fail_on="regression"')
    allowed = {f"allow_{name}": name for name in Tolerance.__struct_fields__ if name != "doc_level"}
    lenient = {allowed[name]: options.pop(name) for name in allowed.keys() & options.keys()}
    tolerance = Tolerance(**{**lenient, "doc_level": accept_doc_level})
    asked, gold = _gate_maker(gates), rereadable(gold)
    called = _names(a, b, names)
    chunked = {"chunks_a": chunks_a, "chunks_b": chunks_b}
    _refuse_unused({**options, **chunked}, gold, a, b)
    options["workers"] = workers
    with ExitStack() as stack:
        one = _run(stack, "a", a, gold, called[0], {**options, "chunks": chunks_a})
        other = _run(stack, "b", b, gold, called[1], {**options, "chunks": chunks_b})
        if isinstance(one, StoredRun) and isinstance(other, StoredRun):
            aligned = align.align(
                one,
                other,
                overlap=overlap,
                strict=strict,
                workers=workers,
                least_evidence=least_evidence,
                guess_place=guess_place,
            )
        elif strict or overlap != "cumulative" or least_evidence != LEAST_EVIDENCE or guess_place:
            message = (
                "strict, overlap, least_evidence and guess_place need runs with their hits, and "
                "scores hold none"
            )
            raise RagaugeError.of("usage", message, hint="give traces on both sides, with gold=")
        else:
            aligned = comparing.align_scores(one, other)
            if limits:
                failing.refuse_without_ranks(aligned)
        drops, verdict = _judged_drops(aligned, asked, tolerance)
        blocks = comparing.comparison_blocks(aligned, tolerance)
        if blocks:
            nothing = Verdict(status="pass", exit_code=ExitCode.PASS, gates=(), blocks=())
            verdict = (verdict or nothing).blocked_by(blocks)
        (run_a, config_a), (run_b, config_b) = (
            comparing.describe_run(run, name)
            for run, name in zip((one, other), called, strict=True)
        )
        comparison = comparing.compare(
            aligned,
            run_a,
            run_b,
            gated=[gate.metric for gate in drops],
            config=(config_a, config_b),
            verdict=verdict,
            tolerance=failing.recall_tolerance(limits),
        )
    checks = failing.check_kinds(
        comparison, aligned, limits, strict=strict_kinds, accept_doc_level=accept_doc_level
    )
    return comparison_result(
        comparison,
        fail_on=checks,
        undecided=failing.why_undecided(
            comparison,
            checks,
            aligned.field_notes,
            allow_missing=tolerance.missing,
            accept_open=accept_open,
        ),
    )


def _names(a: object, b: object, names: object) -> tuple[str, str]:
    if names is None:
        return _name(a, "a"), _name(b, "b")
    if (
        isinstance(names, list | tuple)
        and len(names) == 2
        and all(isinstance(name, str) and name for name in names)
    ):
        return names[0], names[1]
    message = f"names are those of the two runs, got: {names!r}"
    raise RagaugeError.of("usage", message, hint='for example names=("before", "after")')


def _name(run: object, letter: str) -> str:
    """What a run is called: by its file, or by the letter of its side."""
    if _is_path(run):
        return os.fspath(run)
    name = run.trace_name if isinstance(run, Scores) else "<"
    return letter if name.startswith("<") else name


def _run(
    stack: ExitStack, side: str, given: object, gold: object, name: str, options: dict[str, Any]
) -> StoredRun | Scores:
    """Scores as they are; run files and traces as runs in stores of their own, gone at the end."""
    run = _run_in_file(stack, given)
    if run is not None:
        return run
    if _is_scored(given, gold) or gold is None:
        return _scores(f"run {side}", given, gold, None, options)
    refuse_no_rows(f"run {side}", given)
    from ragauge.cli.store_options import temporary_store

    store = stack.enter_context(temporary_store())
    return StoredRun(store, _stored(store, gold, rereadable(given), name, options))


def _stored(
    store: Any, gold: object, traces: object, name: str, options: Mapping[str, Any]
) -> RunRecord:
    blocks: list[VerdictBlock] = []
    records: list[RunRecord] = []

    def keep(run: ScoredRun) -> None:
        unmeasured = run.scores.unmeasured
        if unmeasured is not None:
            blocks.append(unmeasured)
            return
        description = run_store.RunDescription(run_id=name, created_at="", is_file=True)
        records.append(run_store.store_run(store, run, description))

    rows: tuple[Any, Any] = gold, traces
    scoring.score(*rows, keep=keep, **{"intervals": False, **options})
    if not records:
        message = f"nothing was measured of {name}: {blocks[0].message}"
        hint = "compare one id and the fields of the traces with those of the gold set"
        raise RagaugeError.of(blocks[0].code, message, hint=hint)
    return run_store.find_run(store, name)


def _judged_drops(
    aligned: align.Aligned, asked: scoring.GateMaker, tolerance: Tolerance
) -> tuple[list[Gate], Verdict | None]:
    """The gates on a drop, and their verdict, if there are any; others are judged by `gate`."""
    scores = aligned.b
    profile = registry.profile(scores.profile)
    every = asked(profile, scores.k)
    stray = [
        gate.name for gate in every if not gate.is_drop and not gate.origin.startswith("profile ")
    ]
    if stray:
        message = f"a comparison judges gates on a drop only, got: {', '.join(stray)}"
        hint = 'write {"recall@5": {"max_drop": 0.02}}; `ragauge.gate` judges one run'
        raise RagaugeError.of("usage", message, hint=hint)
    drops = [gate for gate in every if gate.is_drop]
    if not drops:
        return [], None
    return drops, judge.judge(
        scores,
        drops,
        source_rules=profile.follows_source,
        whole_grid=profile.join.grid == "complete",
        tolerance=tolerance,
        baseline=aligned.a,
    )
