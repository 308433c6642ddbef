"""Finds components in their folders and in entry points, so that no second list exists.

A component module exports one constant: METRICS, DIALECT, FORMAT, VOCABULARY, REPORT,
ANNOTATOR, STORE, PARSER, TARGET, EMBEDDER or COMMAND.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Iterable
from functools import cache
from typing import TYPE_CHECKING, Any, TypeVar

from ragauge.errors import RagaugeError

if TYPE_CHECKING:
    from ragauge.metrics.metric import Metric, Selected
    from ragauge.model.comparison import ComparisonReport
    from ragauge.model.corpus import Parser
    from ragauge.model.dialect import Dialect
    from ragauge.model.embedder import EmbedderKind
    from ragauge.model.profile import Profile
    from ragauge.model.report import Report
    from ragauge.model.run import StoreKind
    from ragauge.model.target import TargetKind

T = TypeVar("T")


def _constants(folder: str, constant: str, group: str) -> list[Any]:
    """The constants of a folder's modules, then those of the entry-point group ragauge.GROUP.

    Modules without the constant are what the components of that folder share.
    """
    from importlib.metadata import entry_points

    package = importlib.import_module(f"ragauge.{folder}")
    names = sorted(module.name for module in pkgutil.iter_modules(package.__path__))
    modules = [importlib.import_module(f"ragauge.{folder}.{name}") for name in names]
    constants = [getattr(module, constant) for module in modules if hasattr(module, constant)]
    for point in sorted(entry_points(group=f"ragauge.{group}"), key=lambda point: point.name):
        try:
            constants.append(point.load())
        except Exception as error:
            raise RagaugeError.of(
                "bad-plugin",
                f"the plugin `{point.value}` cannot be loaded: {error}",
                hint="update or uninstall the package that brings it",
            ) from error
    return constants


def _by_name(folder: str, constant: str, group: str) -> dict[str, Any]:
    return {component.name: component for component in _constants(folder, constant, group)}


def unknown_name(kind: str, name: str, choices: Iterable[str]) -> RagaugeError:
    """Build the error for a name that no component has."""
    import difflib

    names = sorted(choices)
    near = difflib.get_close_matches(name, names, 1)
    listed = ", ".join(names) if len(names) <= 12 else "see `ragauge metrics`"
    hint = f"did you mean `{near[0]}`?" if near else f"known: {listed}"
    code = "unknown-metric" if kind == "metric" else "unknown-name"
    return RagaugeError.of(code, f"there is no {kind} `{name}`", hint=hint)


@cache
def metrics() -> dict[str, Metric]:
    """All metrics by id, in the order of their ids."""
    every = [metric for group in _constants("metrics", "METRICS", "metrics") for metric in group]
    return {metric.id: metric for metric in sorted(every, key=lambda metric: metric.id)}


@cache
def dialects() -> dict[str, Dialect]:
    """All dialects by name."""
    from ragauge.model.field_spellings import GOLD_SPELLINGS, TRACE_SPELLINGS

    every: dict[str, Dialect] = _by_name("formats.dialects", "DIALECT", "dialects")
    for dialect in every.values():
        for own, spellings in (
            (dialect.own_gold, GOLD_SPELLINGS),
            (dialect.own_trace, TRACE_SPELLINGS),
        ):
            for field, names in own.items():
                # The fast path reads the names of the tables: any other would be passed over.
                for name in sorted(set(names) - set(spellings.get(field, ()))):
                    raise RagaugeError.of(
                        "bad-plugin",
                        f"the dialect `{dialect.name}` calls `{name}` its own name of `{field}`, "
                        "and nothing reads that",
                        hint="own names are among those of `ragauge.model.field_spellings`",
                    )
    return every


@cache
def foreign_formats() -> dict[str, Any]:
    """All formats of other tools by name; their type is that of `formats.imports`."""
    return _by_name("formats.imports", "FORMAT", "formats")


@cache
def vocabularies() -> dict[str, Any]:
    """All conventions for spans by name; their type is that of `formats.imports`."""
    return _by_name("formats.imports.vocabularies", "VOCABULARY", "vocabularies")


@cache
def reports() -> dict[str, Report]:
    """All reports by name."""
    return _by_name("report.scores", "REPORT", "reports")


@cache
def comparisons() -> dict[str, ComparisonReport]:
    """All reports of comparisons by name."""
    return _by_name("report.comparison", "REPORT", "comparisons")


@cache
def annotators() -> dict[str, Any]:
    """All services that show results beside traces; their type is that of `report.annotations`."""
    return _by_name("report.annotations", "ANNOTATOR", "annotators")


@cache
def embedders() -> dict[str, EmbedderKind]:
    """All kinds of embedder by name."""
    return _by_name("embed.embedders", "EMBEDDER", "embedders")


@cache
def stores() -> dict[str, StoreKind]:
    """All kinds of store by the scheme of their URLs."""
    kinds = _constants("store.databases", "STORE", "stores")
    return {scheme: kind for kind in kinds for scheme in kind.schemes}


@cache
def parsers() -> dict[str, Parser]:
    """All parsers by the suffix of the files that they read."""
    kinds = _constants("corpus.parsers", "PARSER", "parsers")
    return {suffix: parser for parser in kinds for suffix in parser.suffixes}


@cache
def targets() -> dict[str, TargetKind]:
    """All kinds of target by the scheme of their addresses."""
    kinds = _constants("targets", "TARGET", "targets")
    return {scheme: kind for kind in kinds for scheme in kind.schemes}


@cache
def profiles() -> dict[str, Profile]:
    """All profiles by name, from the TOML files beside the package's `profiles`."""
    import tomllib
    from importlib.resources import files

    import msgspec

    from ragauge.model.profile import Profile

    entries = sorted(files("ragauge.profiles").iterdir(), key=lambda entry: entry.name)
    tables = [tomllib.loads(e.read_text("utf-8")) for e in entries if e.name.endswith(".toml")]
    return {table["name"]: msgspec.convert(table, Profile) for table in tables}


def _named(kind: str, name: str, components: dict[str, T]) -> T:
    if name not in components:
        raise unknown_name(kind, name, components)
    return components[name]


def dialect(name: str) -> Dialect:
    """The dialect of that name."""
    return _named("dialect", name, dialects())


def foreign_format(name: str) -> Any:
    """The format of another tool of that name."""
    return _named("format", name, foreign_formats())


def profile(name: str) -> Profile:
    """The profile of that name."""
    return _named("profile", name, profiles())


def report(name: str) -> Report:
    """The report of that name."""
    return _named("format", name, reports())


def select(names: Iterable[str], ks: Iterable[int]) -> list[Selected]:
    """Resolve metric names (`*`, `family.*`, `id`, `id@k`) to metrics at their cut-offs.

    An id that a metric had before is as good as its own.
    """
    from ragauge.metrics.metric import Selected
    from ragauge.model.metric_names import MAX_K, current_id

    chosen: dict[str, Selected] = {}
    for name in map(current_id, names):
        base, at, cut = name.rpartition("@") if "@" in name else (name, "", "")
        if base == "*" or base.endswith(".*"):
            matching = [
                metric
                for metric in metrics().values()
                if metric.id.startswith(base[:-1])
                and (metric.at_k or not at or base == "*")
                and not (metric.only_named and base == "*")
            ]
        else:
            matching = [metrics()[base]] if base in metrics() else []
        if not matching:
            raise unknown_name("metric", name, metrics())
        is_cut = cut.isascii() and cut.isdecimal() and len(cut) < 10 and 0 < int(cut) <= MAX_K
        if at and not (is_cut and all(metric.at_k or metric.may_cut for metric in matching)):
            raise RagaugeError.of(
                "unknown-metric",
                f"`{name}` has no such cut-off",
                hint="k is a whole number from 1, on metrics that have a cut-off",
            )
        for metric in matching:
            cuts: list[int | None] = [int(cut)] if at else [*ks] if metric.at_k else [None]
            for k in cuts:
                selected = Selected(metric, k)
                chosen.setdefault(selected.id, selected)
    return list(chosen.values())
