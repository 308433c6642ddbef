"""Results in Python: metrics by their short names, frames, files, pages, and what a notebook shows.

Scores, verdicts and comparisons of the model know nothing of reports. What Python functions return
are the same values, with these methods on top.
"""

from __future__ import annotations

import difflib
import os
from collections.abc import ItemsView, Iterator, KeysView, Mapping, Sequence, ValuesView
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, Any, Literal, TypeVar

import msgspec
import numpy as np
from msgspec import Struct

from ragauge import registry
from ragauge.api.kept_inputs import KeptInputs
from ragauge.codes import ExitCode
from ragauge.errors import Problem, RagaugeError
from ragauge.files.atomic_write import atomic_file
from ragauge.files.open import PathLike
from ragauge.files.table_writer import TableColumn
from ragauge.model import phrases
from ragauge.model.comparison import Comparison, ComparisonView, Delta, KindCheck
from ragauge.model.drilldown import Drilldowns
from ragauge.model.profile import Profile
from ragauge.model.report import ReportFormat, View
from ragauge.model.scores import MetricResult, Scores
from ragauge.model.scores_document import to_document, verdict_document
from ragauge.model.verdict import GateResult, Verdict
from ragauge.report.ci.entries import decision
from ragauge.report.question_columns import compared_columns, question_columns

if TYPE_CHECKING:
    import pandas

R = TypeVar("R", bound=ReportFormat[Any])
D = TypeVar("D")

_NEAREST = 3
"""Names that an error proposes."""


class MetricNameError(RagaugeError, KeyError):
    """No metric of the result goes by the name, or the name means two of them."""

    def __init__(self, message: str, hint: str, *, ambiguous: bool = False) -> None:
        super().__init__([Problem("unknown-metric", message, hint)])
        self.ambiguous = ambiguous

    def __reduce__(self) -> tuple[Any, ...]:
        problem = self.problems[0]
        return _name_error, (problem.message, problem.hint, self.ambiguous)


def _name_error(message: str, hint: str, ambiguous: bool) -> MetricNameError:
    return MetricNameError(message, hint, ambiguous=ambiguous)


def metric_id(name: object, measured: Sequence[str], profile: Profile) -> str:
    """The id of the metric that a name means: an id, or a short name as gates have it.

    Without a cut-off a name means the only one that was measured. Short names that surprise under
    the profile, as `recall@5` under `ship`, are an error: gates with them are old, code is new.
    """
    if not isinstance(name, str):
        message = f"the name of a metric is a text, got: {type(name).__name__}"
        raise MetricNameError(message, "for example scores['citation.hit_rate']")
    if name in measured:
        return name
    if profile.is_deprecated(name):
        raise _ambiguous(name, measured, profile)
    meant = profile.meant(name)
    if meant in measured:
        return meant
    cut = [each_id for each_id in measured if each_id.partition("@")[0] == meant]
    if len(cut) == 1:
        return cut[0]
    if cut:
        message = f"`{name}` was measured at several cut-offs"
        raise MetricNameError(message, f"say which: {', '.join(cut)}")
    raise _unknown(name, meant, measured, profile)


def _ambiguous(name: str, measured: Sequence[str], profile: Profile) -> MetricNameError:
    short, at, cut = name.partition("@")
    meant = profile.meant(name)
    bases = [
        metric.id
        for metric in registry.metrics().values()
        if metric.id.rpartition(".")[2] == short and (metric.at_k or not at)
    ]
    ids = dict.fromkeys([meant, *(f"{base}{at}{cut}" for base in bases)])
    others = " or ".join(f"`{other}`" for other in ids if other != meant)
    message = (
        f"`{name}` may mean `{meant}`, as it does in gates of profile {profile.name}, or {others}"
    )
    there = [full for full in ids if full in measured]
    hint = f"write the full id: {' or '.join(ids)}"
    if len(there) < len(ids):
        hint += f"; these scores have {', '.join(there) or 'neither'}"
    return MetricNameError(message, hint, ambiguous=True)


def _unknown(name: str, meant: str, measured: Sequence[str], profile: Profile) -> MetricNameError:
    by_name = {full.rpartition(".")[2]: full for full in measured}
    by_name |= {
        alias: alias
        for alias in profile.aliases
        if profile.meant(alias) in measured and not profile.is_deprecated(alias)
    }
    by_name |= {full: full for full in measured}
    near = [
        by_name[match]
        for wanted in dict.fromkeys((name, meant))
        for match in difflib.get_close_matches(wanted, by_name, _NEAREST, 0.5)
    ]
    listed = ", ".join(dict.fromkeys(near))
    if meant.partition("@")[0] in registry.metrics():
        hint = f'score with also=["{meant}"]'
        hint = f"{hint}; near it are {listed}" if near else hint
        return MetricNameError(f"`{meant}` was not measured", hint)
    hint = f"did you mean {listed}?" if near else f"measured: {', '.join(measured[:12])}"
    return MetricNameError(f"there is no metric `{name}`", hint)


class ScoreResult(Scores, frozen=True, kw_only=True):
    """Scores as `ragauge.score` returns them: a mapping from names of metrics to their results.

    `scores["chr"]` and `scores["recall@5"]` take the short names that gates take. `kept` is what
    was scored, for pages that show hits.
    """

    kept: KeptInputs | None = None

    def __eq__(self, other: object) -> bool:
        """Whether both say the same of the same questions, whatever they were scored from."""
        if not isinstance(other, Scores):
            return NotImplemented
        return self.to_dict() == score_result(other).to_dict()

    def __hash__(self) -> int:
        return hash((self.profile, self.gold_name, self.trace_name, *self.metrics))

    def __getitem__(self, name: str) -> MetricResult:
        return self.metrics[metric_id(name, list(self.metrics), registry.profile(self.profile))]

    def __contains__(self, name: object) -> bool:
        try:
            metric_id(name, list(self.metrics), registry.profile(self.profile))
        except MetricNameError:
            return False
        return True

    def __iter__(self) -> Iterator[str]:
        return iter(self.metrics)

    def __len__(self) -> int:
        return len(self.metrics)

    def __repr__(self) -> str:
        return f"<ScoreResult: {phrases.run_summary(self)}; {self._headline}>"

    def get(self, name: str, default: D | None = None) -> MetricResult | D | None:
        """The result of a metric, or the default; a name that means two metrics is an error."""
        try:
            return self[name]
        except MetricNameError as error:
            if error.ambiguous:
                raise
            return default

    def keys(self) -> KeysView[str]:
        """The ids of the metrics."""
        return self.metrics.keys()

    def values(self) -> ValuesView[MetricResult]:
        """The results of the metrics."""
        return self.metrics.values()

    def items(self) -> ItemsView[str, MetricResult]:
        """The ids of the metrics with their results."""
        return self.metrics.items()

    @property
    def verdict(self) -> VerdictResult:
        """The verdict by the gates of the profile alone."""
        from ragauge.gates.judge import gate

        return verdict_result(gate(self), self)

    @property
    def _headline(self) -> str:
        return phrases.verdict_headline(self.verdict)

    def _view(self, details: Drilldowns | None = None) -> View:
        profile = registry.profile(self.profile)
        return View(scores=self, verdict=self.verdict, profile=profile, full=True, details=details)

    def _details(self, report: ReportFormat[Any]) -> AbstractContextManager[Drilldowns | None]:
        """The questions one by one, where a report shows them and their rows were kept."""
        if self.kept is None or not report.detailed:
            return nullcontext()
        return self.kept.details(self)

    def to_dict(self) -> dict[str, Any]:
        """The scores document, with every question."""
        return _plain(to_document(self, self.verdict, full=True))

    def to_pandas(self, table: Literal["metrics", "questions"] = "metrics") -> pandas.DataFrame:
        """A frame with a row for each metric, or for each question with its values."""
        _one_table(table, ("metrics", "questions"))
        if table == "questions":
            return _question_frame(question_columns(self))
        return _frame([_metric_row(name, result) for name, result in self.metrics.items()])

    def save(self, path: PathLike, *, format: str | None = None) -> None:
        """Write the scores to a file; its suffix says the format, as with `score --full -o FILE`.

        `ragauge gate`, `ragauge compare` and the functions of the same names read the JSON again.
        """
        profile = registry.profile(self.profile)
        report = _report_for(path, format, _score_reports())
        own = registry.report(profile.reports.get(report.name, report.name))
        with self._details(own) as details:
            _write(path, own.content(self._view(details)))

    def to_html(self) -> str:
        """The report as one HTML page, with the hits of questions where they were scored here."""
        report = registry.report("html")
        with self._details(report) as details:
            return report.text(self._view(details))

    def _repr_html_(self) -> str:
        from ragauge.report.html.notebook import score_summary

        return score_summary(self, self.verdict)


class VerdictResult(Verdict, frozen=True, kw_only=True):
    """A verdict as `ragauge.gate` returns it, with the scores that were judged."""

    scores: ScoreResult

    def __eq__(self, other: object) -> bool:
        """Whether both decide the same by the same gates; the scores are not compared."""
        if not isinstance(other, Verdict):
            return NotImplemented
        names = Verdict.__struct_fields__
        return all(getattr(self, name) == getattr(other, name) for name in names)

    def __hash__(self) -> int:
        return hash((self.status, self.exit_code, self.gates, self.blocks))

    def __getitem__(self, name: str) -> GateResult:
        by_name = {result.gate.name: result for result in self.gates}
        by_name |= {result.gate.metric: result for result in self.gates} | by_name
        if not isinstance(name, str) or name not in by_name:
            near = difflib.get_close_matches(str(name), by_name, _NEAREST, 0.5)
            hint = f"did you mean {', '.join(near)}?" if near else f"gates: {', '.join(by_name)}"
            raise MetricNameError(f"there is no gate `{name}`", hint)
        return by_name[name]

    def __repr__(self) -> str:
        return f"<VerdictResult: {phrases.verdict_headline(self)}>"

    @property
    def passed(self) -> bool:
        """Whether gates were judged, and none of them failed or was left undecided."""
        return bool(self.gates) and self.exit_code == ExitCode.PASS

    def _view(self, details: Drilldowns | None = None) -> View:
        profile = registry.profile(self.scores.profile)
        plain = msgspec.structs.replace(profile, reports={})
        return View(scores=self.scores, verdict=self, profile=plain, full=True, details=details)

    def to_dict(self) -> dict[str, Any]:
        """The verdict: its status, its exit code, and each gate with its value and threshold."""
        return _plain(verdict_document(self))

    def to_pandas(self) -> pandas.DataFrame:
        """A frame with a row for each gate."""
        return _frame([_flat_interval(entry) for entry in self.to_dict()["gates"]])

    def save(self, path: PathLike, *, format: str | None = None) -> None:
        """Write the verdict to a file with the scores that were judged, every question too.

        The suffix says the format, as with `ragauge gate -o FILE`.
        """
        report = _report_for(path, format, _score_reports())
        with self.scores._details(report) as details:
            _write(path, report.content(self._view(details)))

    def to_html(self) -> str:
        """The report as one HTML page, under these gates."""
        report = registry.report("html")
        with self.scores._details(report) as details:
            return report.text(self._view(details))

    def _repr_html_(self) -> str:
        from ragauge.report.html.notebook import score_summary

        return score_summary(self.scores, self)


class ComparisonResult(Comparison, frozen=True, kw_only=True):
    """A comparison as `ragauge.compare` returns it: a mapping from metrics to their differences.

    `fail_on` is what was counted of the kinds of questions that may not be, and `undecided` says
    why that cannot be told.
    """

    fail_on: tuple[KindCheck, ...] = ()
    undecided: str | None = None

    def _ids(self) -> dict[str, Delta]:
        return {delta.metric: delta for delta in self.deltas}

    def __getitem__(self, name: str) -> Delta:
        deltas = self._ids()
        return deltas[metric_id(name, list(deltas), registry.profile(self.run_b.profile))]

    def __contains__(self, name: object) -> bool:
        try:
            metric_id(name, list(self._ids()), registry.profile(self.run_b.profile))
        except MetricNameError:
            return False
        return True

    def __iter__(self) -> Iterator[str]:
        return iter(self._ids())

    def __len__(self) -> int:
        return len(self.deltas)

    def __repr__(self) -> str:
        kinds = ", ".join(f"{count} {kind}" for kind, count in self.kinds.items() if count)
        named = f"{self.run_a.name} → {self.run_b.name}"
        questions = phrases.count(self.counted, "question")
        decided = f"; {decision(self._view())}" if self.fail_on else ""
        return f"<ComparisonResult: {named}, {questions}: {kinds}{decided}>"

    def _view(self) -> ComparisonView:
        return ComparisonView(comparison=self, fail_on=self.fail_on, undecided=self.undecided)

    @property
    def exit_code(self) -> ExitCode:
        """What `ragauge compare` would end with: gates on drops, `fail_on`, no meaning at all."""
        return self._view().exit_code

    def to_dict(self) -> dict[str, Any]:
        """The comparison as its JSON has it."""
        text = registry.comparisons()["json"].text(self._view())
        return msgspec.json.decode(text, type=dict[str, Any])

    def to_pandas(self, table: Literal["metrics", "questions"] = "metrics") -> pandas.DataFrame:
        """A frame with a row for each metric, or for each question with both its sides."""
        _one_table(table, ("metrics", "questions"))
        if table == "questions":
            return _question_frame(compared_columns(self))
        rows = []
        for delta in self.deltas:
            row = {"metric": delta.metric, **msgspec.to_builtins(delta)}
            rows.append(_flat_interval(row))
        return _frame(rows)

    def save(self, path: PathLike, *, format: str | None = None) -> None:
        """Write the comparison to a file; its suffix says the format, as with `compare -o FILE`."""
        report = _report_for(path, format, registry.comparisons())
        _write(path, report.content(self._view()))

    def to_html(self) -> str:
        """The comparison as one HTML page."""
        return registry.comparisons()["html"].text(self._view())

    def _repr_html_(self) -> str:
        from ragauge.report.html.notebook import comparison_summary

        return comparison_summary(self._view())


S = TypeVar("S", bound=Struct)


def _promoted(kind: type[S], value: Struct, **more: Any) -> S:
    fields = {name: getattr(value, name) for name in value.__struct_fields__}
    return kind(**{**fields, **more})


def score_result(scores: Scores, kept: KeptInputs | None = None) -> ScoreResult:
    """Scores with the methods for Python, and what was scored."""
    return scores if isinstance(scores, ScoreResult) else _promoted(ScoreResult, scores, kept=kept)


def verdict_result(verdict: Verdict, scores: Scores) -> VerdictResult:
    """A verdict with the methods for Python."""
    return _promoted(VerdictResult, verdict, scores=score_result(scores))


def comparison_result(comparison: Comparison, **more: Any) -> ComparisonResult:
    """A comparison with the methods for Python, and what was decided of its questions."""
    return _promoted(ComparisonResult, comparison, **more)


def _score_reports() -> dict[str, Any]:
    return {name: report for name, report in registry.reports().items() if report.public}


def _report_for(path: object, name: object, reports: Mapping[str, R]) -> R:
    """The report of a name, or the one that the suffix of a file stands for."""
    if not isinstance(path, str | os.PathLike):
        message = f"a file is named by a text or a path, got: {type(path).__name__}"
        raise RagaugeError.of("usage", message, hint='for example save("scores.json")')
    if name is not None:
        if not isinstance(name, str) or name not in reports:
            raise registry.unknown_name("format", str(name), reports)
        return reports[name]
    suffix = os.path.splitext(os.fspath(path))[1].lower()
    for report in reports.values():
        if suffix in report.suffixes:
            return report
    suffixes = sorted(suffix for report in reports.values() for suffix in report.suffixes)
    raise RagaugeError.of(
        "usage",
        f"`{os.fspath(path)}`: the suffix says the format, and `{suffix}` stands for none",
        hint=f"known: {', '.join(suffixes)}; or format= one of {', '.join(sorted(reports))}",
    )


def _write(path: PathLike, content: str | bytes) -> None:
    with atomic_file(path) as file:
        file.write(content.encode() if isinstance(content, str) else content)


def _plain(document: object) -> dict[str, Any]:
    """A document as whoever reads its JSON has it: lists and no tuples."""
    return msgspec.json.decode(msgspec.json.encode(document), type=dict[str, Any])


def _metric_row(name: str, result: MetricResult) -> dict[str, Any]:
    low, high = result.interval or (None, None)
    return {
        "metric": name,
        "value": result.value,
        "low": low,
        "high": high,
        "n": result.n,
        "records": result.records,
        "better": result.better,
        "detectable": result.detectable,
        "version": result.version,
        "note": phrases.metric_note(result) or None,
        **({} if result.band is None else {"band": list(result.band)}),
    }


def _flat_interval(row: dict[str, Any]) -> dict[str, Any]:
    low, high = row.pop("interval", None) or (None, None)
    return {**row, "low": low, "high": high}


def _one_table(table: object, tables: Sequence[str]) -> None:
    if not isinstance(table, str) or table not in tables:
        message = f"there is no table {table!r}"
        raise RagaugeError.of("usage", message, hint=f"known: {', '.join(tables)}")


def _pandas() -> Any:
    try:
        import pandas
    except ImportError as error:
        message = "a frame needs pandas, which is not installed"
        hint = "pip install pandas; or take to_dict()"
        raise RagaugeError.of("missing-extra", message, hint=hint) from error
    return pandas


def _frame(rows: list[dict[str, Any]]) -> pandas.DataFrame:
    frame: pandas.DataFrame = _pandas().DataFrame(rows)
    return frame


def _question_frame(columns: Sequence[TableColumn]) -> pandas.DataFrame:
    """A frame of the columns that CSV and Parquet have; whole numbers may lack, as turns do."""
    pandas = _pandas()
    data: dict[str, Any] = {}
    for column in columns:
        if column.kind == "number":
            data[column.name] = np.asarray(column.values, np.float64)
        elif column.kind == "whole":
            data[column.name] = pandas.array(list(column.values), dtype="Int64")
        else:
            data[column.name] = list(column.values)
    frame: Any = pandas.DataFrame(data)
    return frame
