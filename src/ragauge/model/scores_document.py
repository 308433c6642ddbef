"""The scores document: scores and verdict as plain JSON values, and back again."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from itertools import islice, zip_longest
from pathlib import Path
from typing import Any, Literal, TypeVar

import msgspec
import numpy as np

from ragauge.errors import Place, RagaugeError
from ragauge.files.open import PathLike, opened
from ragauge.metrics.metric import Tally
from ragauge.model.labels import LABELS
from ragauge.model.metric_names import current_id
from ragauge.model.options import Options
from ragauge.model.placement import Placing
from ragauge.model.scores import (
    PLACE_UNKNOWN,
    SCHEMA,
    BandEnd,
    ErroredValue,
    MetricResult,
    PerQuestion,
    QuestionEnds,
    QuestionList,
    QuestionResult,
    Scores,
    SliceResult,
    StageDelta,
)
from ragauge.model.semantic import Semantic
from ragauge.model.unit_ranks import UnitFindings, UnitRanks
from ragauge.model.verdict import (
    DamagedQuestion,
    GateChances,
    GateResult,
    Verdict,
    VerdictBlock,
)
from ragauge.stats.intervals import Interval

DECIMALS = 4
T = TypeVar("T")


def rounded(value: float | None) -> float | None:
    """Round as every stored and printed value is rounded; -0.0 becomes 0.0."""
    return None if value is None else round(value, DECIMALS) + 0.0


def rounded_pair(interval: Interval | None) -> list[float | None] | None:
    """The bounds of an interval, rounded."""
    return None if interval is None else [rounded(interval[0]), rounded(interval[1])]


def json_text(document: object) -> str:
    """A document as indented JSON, with a newline behind it."""
    return msgspec.json.format(msgspec.json.encode(document), indent=2).decode() + "\n"


def to_document(
    scores: Scores, verdict: Verdict, *, full: bool, raw_slices: bool = False
) -> dict[str, Any]:
    """Everything that was measured and judged; `full` adds each question.

    With `raw_slices` each part of a slice is JSON already: of thousands of parts that takes a
    tenth of the memory.
    """
    tally = scores.tally
    document: dict[str, Any] = {
        "schema": SCHEMA,
        "profile": scores.profile,
        "dialect": scores.dialect,
        "k": list(scores.k),
        "inputs": {"gold": scores.gold_name, "trace": scores.trace_name},
        "gold_hash": scores.gold_hash,
        "missing": tally.missing,
        "duplicates": tally.duplicates,
        "unknown": tally.unknown,
        "errored": tally.errored,
        "skipped": tally.gold_skipped + tally.trace_skipped,
        "counts": msgspec.to_builtins(tally),
        "metrics": metrics_document(scores),
        "slices": _slices(scores, _raw if raw_slices else None),
        "refusal_rules": scores.refusal_rules,
        "refusal_table": scores.confusion,
        "lambda": scores.states,
        "embedders": list(scores.embedders),
        "cites": scores.cites,
        "options": msgspec.to_builtins(scores.options),
        "verdict": verdict_document(verdict),
        "warnings": list(scores.warnings),
        "skipped_lines": list(scores.skipped),
    }
    if scores.errors:
        document["errors"] = scores.errors
    if scores.placing is not None:
        document["placing"] = msgspec.to_builtins(scores.placing)
    if scores.joined:
        document["joined"] = scores.joined
    if scores.blocks:
        document["blocks"] = [_block(block) for block in scores.blocks]
    if scores.stage != "last":
        document["stage"] = scores.stage
    if scores.stages:
        document["stages"] = [_stage(delta) for delta in scores.stages]
    if scores.semantic is not None:
        document["delta_s"] = _semantic(scores.semantic)
    if full:
        document["questions"] = _questions(scores)
    return document


def metrics_document(scores: Scores) -> dict[str, Any]:
    """The metrics of scores, as their document has them."""
    return {name: _metric(result) for name, result in scores.metrics.items()}


def _stage(delta: StageDelta) -> dict[str, Any]:
    document: dict[str, Any] = msgspec.to_builtins(delta)
    return {**document, "first": rounded(delta.first), "last": rounded(delta.last)}


def _semantic(semantic: Semantic) -> dict[str, Any]:
    """What is known of ΔS, its distances rounded as all values are."""
    document: dict[str, Any] = msgspec.to_builtins(semantic)
    if semantic.bands.calibration is None:
        del document["bands"]["calibration"]
    for name, keys in (("anchors", ("median", "p90")), ("recheck", ("worst",))):
        for key in keys if name in document else ():
            document[name][key] = rounded(document[name][key])
    return document


def _slices(scores: Scores, pack: Callable[[object], object] | None) -> dict[str, Any]:
    """Each metric over each part: value, n and interval, where it has a value there."""
    return {
        dimension: {
            name: _slice(part) if pack is None else pack(_slice(part))
            for name, part in parts.items()
        }
        for dimension, parts in scores.slices.items()
    }


def _slice(part: SliceResult) -> dict[str, Any]:
    metrics = {
        name: _slice_metric(result)
        for name, result in part.metrics.items()
        if result.value is not None or result.band is not None
    }
    return {"n": part.n, "metrics": metrics}


def _slice_metric(result: MetricResult) -> dict[str, Any]:
    entry = {
        "value": rounded(result.value),
        "n": result.n,
        "interval": rounded_pair(result.interval),
        "unrounded": _unrounded(result),
    }
    if result.detectable is not None:
        entry["detectable"] = rounded(result.detectable)
    if result.errored is not None:
        entry["errored"] = msgspec.to_builtins(result.errored)
    return {**entry, **_band(result)}


def _raw(part: object) -> msgspec.Raw:
    return msgspec.Raw(msgspec.json.encode(part))


def _unrounded(result: MetricResult) -> list[float | None]:
    """Value, then the bounds where there are any, then the detectable change where there is one."""
    if result.value is None:
        return []
    change = () if result.detectable is None else (result.detectable,)
    return [result.value, *(result.interval or ()), *change]


def _questions(scores: Scores) -> list[dict[str, Any]]:
    """Each question with its label and its value of each metric, as measured, not rounded."""
    entries: list[dict[str, Any]] = msgspec.to_builtins(list(scores.questions))
    values = scores.per_question
    if values is not None:
        columns = values.values.T.tolist()
        for entry, column in zip(entries, columns, strict=True):
            entry["values"] = {
                name: value
                for name, value in zip(values.metrics, column, strict=True)
                if not math.isnan(value)  # else the metric has no value here
            }
        for entry, gold_hash in zip(entries, values.hashes, strict=False):
            entry["gold_hash"] = gold_hash
        if values.reciprocals is not None:
            for entry, reciprocal in zip(entries, values.reciprocals.tolist(), strict=True):
                entry["reciprocal"] = None if math.isnan(reciprocal) else reciprocal
        if values.units is not None:
            for entry, parts in zip(entries, _parts_by_question(values), strict=True):
                if parts:
                    entry["slices"] = parts
            for entry, unit_fields in zip(entries, _unit_fields(values.units), strict=True):
                entry.update(unit_fields)
        if values.ends is not None:
            _add_ends(entries, values, values.ends)
    return entries


def _add_ends(entries: list[dict[str, Any]], values: PerQuestion, ends: QuestionEnds) -> None:
    """Add the ends of values that depend on places, and the best and the worst ranks."""
    sides = [None if units is None else units.findings() for units in (ends.best, ends.worst)]
    for question in ends.questions.tolist():
        entry = entries[question]
        entry["bands"] = {
            name: [low, high]
            for name, low, high in zip(
                values.metrics,
                ends.low[:, question].tolist(),
                ends.high[:, question].tolist(),
                strict=True,
            )
            if low < high
        }
        for name, findings in zip(("best", "worst"), sides, strict=True):
            if findings is not None and "units" in entry:
                for unit, ranks in zip(entry["units"], findings[question].ranks, strict=True):
                    unit[name] = ranks


def _parts_by_question(values: PerQuestion) -> list[dict[str, list[str]]]:
    """The parts that each question is in, by dimension."""
    parts: list[dict[str, list[str]]] = [{} for _ in values.qids]
    for dimension, names in values.slices.items():
        for name, places in names.items():
            for place in places.tolist():
                parts[place].setdefault(dimension, []).append(name)
    return parts


def _slices_of_questions(document: _ScoresDocument) -> dict[str, dict[str, Any]]:
    """For each dimension the questions in each part, as far as the file says."""
    places: dict[str, dict[str, list[int]]] = {}
    for place, question in enumerate(document.questions):
        for dimension, names in question.slices.items():
            for name in names:
                places.setdefault(dimension, {}).setdefault(name, []).append(place)
    return {
        dimension: {name: np.array(listed, np.int64) for name, listed in sorted(names.items())}
        for dimension, names in places.items()
    }


def _unit_fields(units: UnitRanks) -> Iterator[dict[str, Any]]:
    """What is written of the units of each question; which slot found what, if it has several."""
    findings = units.findings()
    names = units.names or [()] * len(findings)
    slot, wording, good = (
        iter(column.tolist()) for column in (units.slot, units.wording, units.good)
    )
    for question, unit_names in zip(findings, names, strict=True):
        written = [
            {"name": name, "ranks": ranks}
            for name, ranks in zip_longest(unit_names, question.ranks)
        ]
        fields: dict[str, Any] = {"slots": question.slots, "units": written}
        if units.has_slots:
            for unit in written:
                unit["slots"] = list(islice(slot, len(unit["ranks"])))
            fields |= {
                "wordings": list(islice(wording, question.slots)),
                "good": list(islice(good, question.slots)),
            }
            if question.slots <= 1:  # there is nothing to tell
                del fields["wordings"], fields["good"]
                for unit in written:
                    del unit["slots"]
        yield fields


def _metric(result: MetricResult) -> dict[str, Any]:
    entry: dict[str, Any] = {
        "value": rounded(result.value),
        "n": result.n,
        "records": result.records,
        "excluded": result.excluded,
        "interval": rounded_pair(result.interval),
        "version": result.version,
        "better": result.better,
    }
    if result.detectable is not None:
        entry["detectable"] = rounded(result.detectable)
    if result.interval_reason is not None:
        entry["interval_reason"] = result.interval_reason
    if result.note is not None:
        entry["note"] = result.note
    if result.errored is not None:
        entry["errored"] = msgspec.to_builtins(result.errored)
    if result.value is None:
        entry["reason"] = result.reason
        entry["default"] = result.default
    else:
        entry["unrounded"] = _unrounded(result)
    return {**entry, **_band(result)}


def _band(result: MetricResult) -> dict[str, Any]:
    """The least and the greatest value of a metric that depends on the place of the evidence."""
    if result.band is None:
        return {}
    entry: dict[str, Any] = {"band": rounded_pair(result.band)}
    if result.ends is not None:
        entry["ends"] = msgspec.to_builtins(result.ends)
    return entry


def verdict_document(verdict: Verdict) -> dict[str, Any]:
    """The verdict with each gate's value, threshold, n and margin."""
    return {
        "status": verdict.status,
        "exit_code": int(verdict.exit_code),
        "gates": [_gate(result) for result in verdict.gates],
        "blocks": [_block(block) for block in verdict.blocks],
    }


def _block(block: VerdictBlock) -> dict[str, str]:
    return {"code": block.code, "message": block.message}


def _gate(result: GateResult) -> dict[str, Any]:
    gate = result.gate
    return {
        "name": gate.name,
        **({} if gate.against is None else {"against": gate.against}),
        "metric": gate.metric,
        "slice": gate.part,
        "drop": gate.is_drop,
        "demand": f"{gate.sign} {gate.given}",
        "status": result.status,
        "value": rounded(result.value),
        "threshold": gate.threshold,
        "n": result.n,
        "margin": rounded(result.margin),
        "interval": rounded_pair(result.interval),
        "detectable": rounded(result.detectable),
        "policy": gate.policy,
        "chances": _chances(result.chances),
        "origin": gate.origin,
        "reason": result.reason,
        "caution": result.caution,
        "waived": result.waived,
        "damage": [_damaged(question) for question in result.damage],
    }


def _damaged(question: DamagedQuestion) -> dict[str, Any]:
    entry: dict[str, Any] = msgspec.to_builtins(question)
    return {
        name: rounded(value) if isinstance(value, float) else value for name, value in entry.items()
    }


def _chances(chances: GateChances | None) -> dict[str, Any] | None:
    """How often the gate decides wrongly, rounded as all values are."""
    if chances is None:
        return None
    document: dict[str, Any] = msgspec.to_builtins(chances)
    return {
        name: rounded(value) if isinstance(value, float) else value
        for name, value in document.items()
    }


class _Inputs(msgspec.Struct):
    gold: str
    trace: str


class _Metric(MetricResult, frozen=True, kw_only=True):
    unrounded: list[float | None] = msgspec.field(default_factory=list)

    def result(self) -> MetricResult:
        """The result as it was before it was rounded, so that a gate decides as it did then."""
        value, interval, detectable = self.value, self.interval, self.detectable
        if self.unrounded:
            value, *others = self.unrounded
            if interval is not None and len(others) >= 2:
                interval = (others[0], others[1])
                detectable = others[2] if len(others) > 2 else None
        fields = {name: getattr(self, name) for name in MetricResult.__struct_fields__}
        band = self.band if self.ends is None else (self.ends[0].value, self.ends[1].value)
        numbers = {"value": value, "interval": interval, "detectable": detectable, "band": band}
        return MetricResult(**{**fields, **numbers})


class _Slice(msgspec.Struct):
    value: float | None
    n: int
    interval: Interval | None
    unrounded: list[float | None] = []
    detectable: float | None = None
    errored: tuple[ErroredValue, ErroredValue] | None = None
    band: tuple[float, float] | None = None
    ends: tuple[BandEnd, BandEnd] | None = None


class _SavedSlice(msgspec.Struct):
    n: int
    metrics: dict[str, _Slice]

    def result(self, metrics: dict[str, _Metric]) -> SliceResult:
        """The part as it was, with what the metric as a whole says of versions and direction."""
        results = {}
        for name, saved in self.metrics.items():
            whole = metrics[name]
            why = "too-few" if saved.ends is None else PLACE_UNKNOWN
            results[name] = _Metric(
                value=saved.value,
                n=saved.n,
                records=saved.n,
                excluded={},
                interval=saved.interval,
                version=whole.version,
                better=whole.better,
                reason=None if saved.value is not None else why,
                detectable=saved.detectable,
                unrounded=saved.unrounded,
                errored=saved.errored,
                band=saved.band,
                ends=saved.ends,
            ).result()
        return SliceResult(n=self.n, metrics=results)


class _SavedUnit(msgspec.Struct):
    name: str | None
    ranks: tuple[int, ...]
    slots: tuple[int, ...] = ()
    best: tuple[int, ...] | None = None
    worst: tuple[int, ...] | None = None

    def is_valid(self, slots: int) -> bool:
        """Whether it can be what a question with so many slots found."""
        at_ends = [ranks for ranks in (self.ranks, self.best, self.worst) if ranks is not None]
        return (
            all(len(ranks) <= slots for ranks in at_ends)
            and len(self.slots) in (0, len(self.ranks))
            and all(rank > 0 for ranks in at_ends for rank in ranks)
            and all(0 <= slot < slots for slot in self.slots)
        )


class _SavedQuestion(QuestionResult, frozen=True, kw_only=True):
    values: dict[str, float] = msgspec.field(default_factory=dict)
    gold_hash: str | None = None
    reciprocal: float | msgspec.UnsetType | None = msgspec.UNSET
    slots: int | None = None
    units: tuple[_SavedUnit, ...] | msgspec.UnsetType = msgspec.UNSET
    slices: dict[str, tuple[str, ...]] = msgspec.field(default_factory=dict)
    wordings: tuple[int, ...] = ()
    good: tuple[int, ...] = ()
    bands: dict[str, tuple[float, float]] | None = None


class _ScoresDocument(msgspec.Struct):
    schema: str
    profile: str
    dialect: str
    k: list[int] | int
    inputs: _Inputs
    counts: Tally
    metrics: dict[str, _Metric]
    refusal_rules: dict[str, int]
    slices: dict[str, dict[str, _SavedSlice]] = {}
    refusal_table: dict[str, int] = {}
    lambda_: dict[str, dict[str, int]] = msgspec.field(default_factory=dict, name="lambda")
    embedders: tuple[str, ...] = ()
    cites: bool = False
    errors: dict[str, int] = {}
    joined: dict[str, int] = {}
    options: Options = Options()
    questions: tuple[_SavedQuestion, ...] = ()
    warnings: tuple[str, ...] = ()
    skipped_lines: tuple[str, ...] = ()
    gold_hash: str | None = None
    delta_s: Semantic | None = None
    placing: Placing | None = None
    blocks: tuple[VerdictBlock, ...] = ()
    stage: Literal["last", "first"] = "last"
    stages: tuple[StageDelta, ...] = ()


LAYOUT = _ScoresDocument
"""What a scores document must look like to be read; the JSON schema is made of it."""


def _bad_scores(name: str, problem: str, hint: str) -> RagaugeError:
    return RagaugeError.of("bad-scores", f"`{name}` {problem}", hint=hint, place=Place(name))


def from_document(data: bytes, name: str) -> Scores:
    """Read a scores document back: all but the rows of profiles that score every row."""
    try:
        document = msgspec.json.decode(data, type=_ScoresDocument)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        short = b'"under_refusal"' in data and b'"schema"' not in data
        what = "the short JSON of the profile ship, which has no n"
        what = what if short else f"not a scores file: {error}"
        hint = "save one with `ragauge score ... --full -o scores.json`"
        raise _bad_scores(name, f"is {what}", hint) from error
    if document.schema != SCHEMA:
        problem = f"has the schema `{document.schema}`, this version reads `{SCHEMA}`"
        raise _bad_scores(name, problem, "score the traces again with this version")
    labels = {question.label for question in document.questions}
    labels.update(*(question.labels for question in document.questions))
    unknown = sorted(labels.difference(LABELS))
    if unknown:
        problem = f"has the label `{unknown[0]}`, which this version does not know"
        raise _bad_scores(name, problem, f"labels are {', '.join(LABELS)}")
    _rename_metrics(document)
    parts = [part for named in document.slices.values() for part in named.values()]
    strange = [name for part in parts for name in part.metrics if name not in document.metrics]
    if strange:
        problem = f"has `{strange[0]}` in a slice and not among its metrics"
        hint = "save it again with `ragauge score ... --full -o scores.json`"
        raise _bad_scores(name, problem, hint)
    return Scores(
        profile=document.profile,
        dialect=document.dialect,
        k=(document.k,) if isinstance(document.k, int) else tuple(document.k),
        gold_name=document.inputs.gold,
        trace_name=document.inputs.trace,
        tally=document.counts,
        metrics={name: saved.result() for name, saved in document.metrics.items()},
        refusal_rules=document.refusal_rules,
        questions=QuestionList.of(document.questions),
        warnings=document.warnings,
        skipped=document.skipped_lines,
        options=document.options,
        slices={
            dimension: {name: part.result(document.metrics) for name, part in parts.items()}
            for dimension, parts in document.slices.items()
        },
        confusion=document.refusal_table,
        states=document.lambda_,
        embedders=document.embedders,
        cites=document.cites,
        errors=document.errors,
        joined=document.joined,
        per_question=_per_question(document),
        gold_hash=document.gold_hash,
        semantic=document.delta_s,
        placing=document.placing,
        blocks=document.blocks,
        stage=document.stage,
        stages=document.stages,
    )


def _rename_metrics(document: _ScoresDocument) -> None:
    """Give metrics that a file names by an old id the id of today.

    Where it has both, as those with → and `stability.convergent`, they are the same numbers.
    """
    if all(current_id(metric_id) == metric_id for metric_id in document.metrics):
        return
    document.metrics = _renamed(document.metrics)
    for slices in document.slices.values():
        for saved_slice in slices.values():
            saved_slice.metrics = _renamed(saved_slice.metrics)
    document.questions = tuple(
        msgspec.structs.replace(
            question,
            values=_renamed(question.values),
            bands=None if question.bands is None else _renamed(question.bands),
        )
        for question in document.questions
    )


def _renamed(by_metric: dict[str, T]) -> dict[str, T]:
    return {current_id(metric_id): value for metric_id, value in by_metric.items()}


def _per_question(document: _ScoresDocument) -> PerQuestion | None:
    if not any(question.values or question.bands for question in document.questions):
        return None
    names = tuple(
        name
        for name in document.metrics
        if any(
            name in question.values or name in (question.bands or ())
            for question in document.questions
        )
    )
    values = [
        [question.values.get(name, math.nan) for question in document.questions] for name in names
    ]
    hashes = [question.gold_hash for question in document.questions]
    saved = [question.reciprocal for question in document.questions]
    reciprocals = None  # of a file that was saved before there were any
    if msgspec.UNSET not in saved:
        floats = [math.nan if value is None else value for value in saved]
        reciprocals = np.array(floats, np.float64)
    return PerQuestion(
        metrics=names,
        qids=[question.qid for question in document.questions],
        turns=[question.turn for question in document.questions],
        values=np.array(values, np.float64),
        hashes=[] if None in hashes else [value for value in hashes if value is not None],
        reciprocals=reciprocals,
        units=_units(document),
        slices=_slices_of_questions(document),
        ends=_question_ends(document, names),
    )


def _question_ends(document: _ScoresDocument, names: Sequence[str]) -> QuestionEnds | None:
    """The ends of values that depend on places; None where no value does."""
    questions = [
        place for place, question in enumerate(document.questions) if question.bands is not None
    ]
    if not questions:
        return None
    low, high = (
        np.array(
            [
                [
                    (question.bands or {}).get(name, (question.values.get(name, math.nan),) * 2)[
                        end
                    ]
                    for question in document.questions
                ]
                for name in names
            ],
            np.float64,
        )
        for end in (0, 1)
    )
    return QuestionEnds(
        low=low,
        high=high,
        questions=np.array(questions, np.int64),
        best=_units_at(document, "best"),
        worst=_units_at(document, "worst"),
    )


def _units_at(document: _ScoresDocument, end: Literal["best", "worst"]) -> UnitRanks | None:
    """The ranks of what is expected at one end; None where the file does not say."""
    if _units(document) is None:
        return None
    findings = []
    for question in document.questions:
        assert question.units is not msgspec.UNSET and question.slots is not None
        ranks = [
            unit.ranks if getattr(unit, end) is None else getattr(unit, end)
            for unit in question.units
        ]
        findings.append(UnitFindings(question.slots, tuple(ranks)))
    return UnitRanks.of(findings)


def _units(document: _ScoresDocument) -> UnitRanks | None:
    """The ranks of what is expected; None of a file that was saved before there were any."""
    findings, names = [], []
    slot: list[int] = []
    wording: list[int] = []
    good: list[int] = []
    for question in document.questions:
        if question.units is msgspec.UNSET or question.slots is None:
            return None
        if any(not unit.is_valid(question.slots) for unit in question.units):
            return None
        ranks = tuple(unit.ranks for unit in question.units)
        findings.append(UnitFindings(question.slots, ranks))
        names.append(tuple(unit.name for unit in question.units if unit.name is not None))
        wording += question.wordings or [0] * question.slots
        good += question.good or [0] * question.slots
        for unit in question.units:
            slot += unit.slots or [0] * len(unit.ranks)
    named = all(len(each) == len(one.ranks) for each, one in zip(names, findings, strict=True))
    units = UnitRanks.of(findings, names if named else ())
    return msgspec.structs.replace(
        units,
        slot=np.array(slot, np.int64),
        wording=np.array(wording, np.int64),
        good=np.array(good, np.int64),
    )


def load_scores(path: PathLike) -> Scores:
    """Read a saved scores file."""
    with opened(path) as source:
        return from_document(Path(source.path).read_bytes(), source.name)
