"""The project's `ragauge.toml`: files, profile, gates and waivers, committed with the code."""

from __future__ import annotations

import json
import math
import re
import tomllib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated, Any

import msgspec
from msgspec import Meta, Struct
from msgspec.structs import replace

from ragauge.errors import Place, Problem, RagaugeError
from ragauge.files.toml_lines import TomlKey, line_of_fault, line_of_key
from ragauge.formats.field_map import FieldMaps, field_maps
from ragauge.model.baseline_name import parse_baseline_name
from ragauge.model.options import CitationMode, Options, RefusalLanguage, RefusalRule
from ragauge.model.semantic import Bands
from ragauge.model.verdict import Waiver
from ragauge.text import compiled_pattern

FILE_NAME = "ragauge.toml"


class Refusal(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What counts as a refusal: the rule, more patterns, and the languages of the built-in ones."""

    rule: RefusalRule | None = None
    patterns: tuple[str, ...] = ()
    languages: tuple[RefusalLanguage, ...] = ("en",)


class CitationRule(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How a cited span is compared with a gold span."""

    mode: CitationMode = "within"
    window: Annotated[int, Meta(ge=0)] = 30


class _Written(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What the file may hold. Paths are relative to its folder."""

    gold: str | None = None
    trace: str | None = None
    profile: str | None = None
    dialect: str | None = None
    k: tuple[Annotated[int, Meta(ge=1)], ...] = ()
    metrics: tuple[str, ...] = ()
    gates: dict[str, Any] = {}
    waivers: tuple[Waiver, ...] = ()
    refusal: Refusal = Refusal()
    citation: CitationRule = CitationRule()
    chunks: str | None = None
    corpus: str | None = None
    baseline: str | tuple[str, ...] | None = None
    relevance_level: float = 1
    ignore_case: bool = False
    min_n: Annotated[int, Meta(ge=1)] = 5
    store: str | None = None
    target: str | None = None
    suite: str | None = None
    store_author: bool = False
    runs_dir: str | None = None
    system: dict[str, Any] = {}
    embed: str | None = None
    embed_cache: str | None = None
    embedders: dict[str, dict[str, Any]] = {}
    bands: dict[str, Bands] = {}
    fields: dict[str, Any] = {}
    live: dict[str, Any] = {}


class Config(_Written, frozen=True, kw_only=True, dict=True):
    """The settings of a project; `origin` is the file that they were read from."""

    origin: str = FILE_NAME

    @property
    def baselines(self) -> tuple[str, ...]:
        """The baselines that gates on a drop are judged against."""
        if self.baseline is None or isinstance(self.baseline, str):
            return () if self.baseline is None else (self.baseline,)
        return self.baseline

    @property
    def options(self) -> Options:
        """The readings that the file chooses."""
        return Options(
            citation_mode=self.citation.mode,
            citation_window=self.citation.window,
            ignore_case=self.ignore_case,
            relevance_level=self.relevance_level,
            min_n=self.min_n,
            refusal_rule=self.refusal.rule,
            refusal_languages=self.refusal.languages,
        )

    @property
    def field_maps(self) -> FieldMaps:
        """The project's own field names."""
        return field_maps(self.fields, place_of=lambda *key: self.place("fields", *key))

    @property
    def ignored_fields(self) -> tuple[str, ...]:
        """The fields of gold and traces that nothing reads, and that nothing is to be said of."""
        return _ignored_fields(self.fields)

    def place(self, *key: str | int) -> Place:
        """Where a setting stands in the file."""
        text = vars(self).get(_TEXT)
        return Place(self.origin, None if text is None else line_of_key(text, key))


_TEXT = "text"
"""The attribute of a configuration that holds the file as it was read; it is no setting."""


class _TomlFile(Struct, frozen=True):
    """A TOML file that was read: its text, and what it says."""

    name: str
    text: str
    table: dict[str, Any]

    def place(self, key: TomlKey) -> Place:
        """Where a key stands."""
        return Place(self.name, line_of_key(self.text, key))


def _read_toml(path: Path, *, missing: str, missing_hint: str, hint: str) -> _TomlFile:
    name = str(path)
    line: int | None = None
    try:
        data = path.read_bytes()
        try:
            text = data.decode("utf-8").replace("\r\n", "\n")
            return _TomlFile(name, text, tomllib.loads(text))
        except UnicodeDecodeError as error:
            line = data.count(b"\n", 0, error.start) + 1
            raise
        except (tomllib.TOMLDecodeError, RecursionError) as error:
            line = line_of_fault(text, error)
            raise
    except FileNotFoundError as error:
        raise RagaugeError.of(
            "file-not-found", f"there is no {missing} `{name}`", hint=missing_hint
        ) from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, OSError, RecursionError) as error:
        place = Place(name, line)
        raise RagaugeError.of("bad-config", f"{error}", hint=hint, place=place) from error


def load_config(path: Path) -> Config:
    """Read a configuration file; unknown keys are refused."""
    file = _read_toml(
        path,
        missing="file",
        missing_hint="`ragauge init` writes one",
        hint="the file must be TOML in UTF-8",
    )
    try:
        written = msgspec.convert(file.table, _Written)
    except msgspec.ValidationError as error:
        raise _unusable(
            f"{error}", file.place(faulty_key(file.table, str(error), _Written))
        ) from error
    if "\\u0000" in json.dumps(file.table, default=str):
        message = "a text has a NUL character, which no file and no name can have"
        raise _unusable(message, file.place(()))
    for number, pattern in enumerate(written.refusal.patterns):
        try:
            compiled_pattern(pattern, ignore_case=True)
        except ValueError as error:
            place = file.place(("refusal", "patterns", number))
            raise _unusable(f"the pattern {pattern!r}: {error}", place) from error
    if written.refusal.rule == "token" and written.refusal.patterns:
        message = '`rule = "token"` reads no patterns - at `$.refusal.patterns`'
        raise _unusable(message, file.place(("refusal", "patterns")))
    for number, waiver in enumerate(written.waivers):
        if not waiver.reason.strip():
            message = f"the waiver of `{waiver.gate}` has no reason"
            place = file.place(("waivers", number, "reason"))
            raise _unusable(f"{message} - at `$.waivers[{number}].reason`", place)
    if not math.isfinite(written.relevance_level):
        message = f"it must be a finite number: {written.relevance_level} - at `$.relevance_level`"
        raise _unusable(message, file.place(("relevance_level",)))
    try:
        _ignored_fields(written.fields)
    except msgspec.ValidationError as error:
        message = f"{error} - at `$.fields.ignore`"
        raise _unusable(message, file.place(("fields", "ignore"))) from error
    base = path.parent
    settings = {key: getattr(written, key) for key in written.__struct_fields__}
    # A file that is named in the configuration lies beside it, wherever the command is run.
    paths = {
        key: _beside(base, settings[key])
        for key in ("gold", "trace", "chunks", "corpus", "runs_dir")
    }
    config = Config(**{**settings, **paths}, origin=file.name)
    baselines = tuple(_baseline(base, name) for name in config.baselines)
    several = isinstance(written.baseline, tuple)
    settings["baseline"] = baselines if several else next(iter(baselines), None)
    if written.embed_cache != "none":
        paths["embed_cache"] = _beside(base, written.embed_cache)
    paths["store"] = _store(base, written.store)
    config = Config(**{**settings, **paths}, origin=file.name)
    vars(config)[_TEXT] = file.text
    _ = config.field_maps  # what is wrong with it is said with its line, whatever is read later
    return config


def _ignored_fields(fields: dict[str, Any]) -> tuple[str, ...]:
    """What `ignore` lists in `[fields]`, `[fields.gold]` and `[fields.traces]`."""
    tables = [fields, *(fields[side] for side in ("gold", "traces") if side in fields)]
    lists = (table.get("ignore", ()) for table in tables if isinstance(table, dict))
    return tuple(name for names in lists for name in msgspec.convert(names, tuple[str, ...]))


def _unusable(message: str, place: Place) -> RagaugeError:
    return RagaugeError.of(
        "bad-config",
        message,
        hint="keys: gold, trace, profile, dialect, k, metrics, chunks, corpus, baseline, "
        "store, target, suite, store_author, runs_dir, relevance_level, ignore_case, min_n, "
        "[system], [gates], [[waivers]] with gate, reason and expires (a date, YYYY-MM-DD), "
        "[refusal] rule, patterns and languages, [citation] mode and window, embed, embed_cache, "
        "[embedders.NAME] settings, [bands.ID] stable, target and risk, "
        "[fields] ignore, with [fields.gold] and [fields.traces], [live] for `ragauge serve`",
        place=place,
    )


def faulty_key(table: dict[str, Any], message: str, shape: type[Struct]) -> TomlKey:
    """The key that a message of msgspec is about: `... - at `$.waivers[0].expires``."""
    _, _, way = message.rpartition(" - at `$")
    key: TomlKey = ()
    for name, place in re.findall(r"\.(\w+)|\[(\d+|\.\.\.)\]", way):
        if place == "...":  # some key of a table: the first one that cannot be used by itself
            inner = _inner(table, key)
            names = (name for name in inner if _is_faulty(key, name, inner[name], shape))
            key += (next(names, ""),)
        else:
            key += (int(place) if place else name,)
    unknown = re.match(r"Object contains unknown field `(.+?)`", message)
    return key if unknown is None else (*key, unknown[1])


def _inner(table: dict[str, Any], key: TomlKey) -> dict[str, Any]:
    """The table that a key leads to."""
    for part in key:
        table = table[part]  # type: ignore[index]  # a number is the place in a list of tables
    return table


def _is_faulty(key: TomlKey, name: str, value: Any, shape: type[Struct]) -> bool:
    """Whether a value cannot be used where it stands, with nothing beside it."""
    alone: Any = {name: value}
    for part in reversed(key):
        alone = {str(part): alone}
    try:
        msgspec.convert(alone, shape)
    except msgspec.ValidationError:
        return True
    return False


_QUOTED = re.compile(r"`([^`]+)`")


def located(error: RagaugeError, config: Config, arguments: Sequence[str] = ()) -> RagaugeError:
    """The error with the line of `ragauge.toml` that it quotes a setting of, where it does.

    Names and paths are looked up long after the file was read, by code that does not know who
    named them. What stands in the arguments of the command was named there.
    """

    def with_place(problem: Problem) -> Problem:
        if problem.place is not None:
            return problem
        for key, value in _named(config):
            for quoted in _QUOTED.findall(problem.message):
                same = quoted == value or quoted.startswith(f"{value}/")
                if same and not any(quoted in argument for argument in arguments):
                    return replace(problem, place=config.place(*key))
        for name in config.embedders:
            if problem.message.startswith(f"the embedder {name}:"):
                return replace(problem, place=config.place("embedders", name))
        return problem

    if _TEXT not in vars(config):  # no file was read
        return error
    return RagaugeError(map(with_place, error.problems), total=error.total)


def _named(config: Config) -> Iterator[tuple[TomlKey, str]]:
    """The settings that name something outside of the file."""
    for key in (
        "profile", "dialect", "gold", "trace", "chunks", "corpus", "store", "target",
        "suite", "runs_dir", "embed_cache",
    ):  # fmt: skip
        if value := getattr(config, key):
            yield (key,), value
    for name in config.baselines:
        yield ("baseline",), name
    for number, metric in enumerate(config.metrics):
        yield ("metrics", number), metric
    for number, waiver in enumerate(config.waivers):
        yield ("waivers", number, "gate"), waiver.gate
    if config.embed:
        yield ("embed",), config.embed
        yield ("embed",), config.embed.partition(":")[0]
    for name in config.embedders:
        yield ("embedders", name), name
    yield from _texts_in(config.live, ("live",))


def _texts_in(value: Any, key: TomlKey) -> Iterator[tuple[TomlKey, str]]:
    """Every text below a key, with its own."""
    if isinstance(value, str):
        yield key, value
    elif isinstance(value, dict):
        for name, inner in value.items():
            yield from _texts_in(inner, (*key, name))
    elif isinstance(value, list):
        for number, inner in enumerate(value):
            yield from _texts_in(inner, (*key, number))


def _beside(base: Path, name: str | None) -> str | None:
    return None if name is None else str(base / name)


def _baseline(base: Path, text: str) -> str:
    """A baseline with its file or folder seen from the configuration; else a stored run."""
    if text in ("", "-"):
        raise RagaugeError.of("bad-config", "a baseline has no name", hint="name a run or a file")
    name = parse_baseline_name(text)
    if name.folder is not None:
        return name.in_folder(str(base / name.folder))
    return str(base / text) if name.kind == "run" and (base / text).exists() else text


def _store(base: Path, url: str | None) -> str | None:
    """A SQLite file is named relative to the configuration too."""
    scheme, slashes, path = (url or "").partition(":///")
    if scheme != "sqlite" or not slashes or path.startswith("/"):
        return url
    return f"{scheme}:///{base / path}"


class GatesFile(Struct, frozen=True):
    """Gates from a TOML file of their own, and where each of them stands."""

    gates: dict[str, Any]
    places: dict[str, Place]


def load_gates(path: Path) -> dict[str, Any]:
    """Read a gates file: a [gates] table, or gates at the top level."""
    return read_gates_file(path).gates


def read_gates_file(path: Path) -> GatesFile:
    """Read a gates file, with the lines of its gates."""
    file = _read_toml(
        path, missing="gates file", missing_hint="check the path", hint="a gates file is TOML"
    )
    table = file.table
    gates = table.get("gates", table)
    if "gates" in table and len(table) > 1:
        stray = [key for key in table if key != "gates"]
        raise RagaugeError.of(
            "bad-config",
            f"beside the table of gates there is {', '.join(f'`{key}`' for key in stray)}",
            hint="put every gate into [gates], or leave the heading out",
            place=file.place((stray[0],)),
        )
    if not isinstance(gates, dict) or not gates:
        raise RagaugeError.of(
            "bad-config",
            "there are no gates in the file",
            hint='write lines such as "answer.precision" = ">= 0.80"',
            place=file.place(("gates",)),
        )
    heading = ("gates",) if "gates" in table else ()
    return GatesFile(gates, {name: file.place((*heading, name)) for name in gates})
