"""The project's `ragauge.toml`: files, profile, gates and waivers, committed with the code."""

from __future__ import annotations

import json
import math
import tomllib
from pathlib import Path
from typing import Annotated, Any

import msgspec
from msgspec import Meta, Struct

from ragauge.errors import Place, RagaugeError
from ragauge.model.options import CitationMode, Options
from ragauge.model.semantic import Bands
from ragauge.model.verdict import Waiver
from ragauge.text import compiled_pattern

FILE_NAME = "ragauge.toml"


class Refusal(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Natural-language patterns that also count as a refusal; none unless configured."""

    patterns: tuple[str, ...] = ()


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
    k: tuple[int, ...] = ()
    metrics: tuple[str, ...] = ()
    gates: dict[str, Any] = {}
    waivers: tuple[Waiver, ...] = ()
    refusal: Refusal = Refusal()
    citation: CitationRule = CitationRule()
    chunks: str | None = None
    corpus: str | None = None
    baseline: str | None = None
    relevance_level: float = 1
    ignore_case: bool = False
    min_n: Annotated[int, Meta(ge=1)] = 5
    store: str | None = None
    suite: str | None = None
    runs_dir: str | None = None
    system: dict[str, Any] = {}
    embed: str | None = None
    embed_cache: str | None = None
    embedders: dict[str, dict[str, Any]] = {}
    bands: dict[str, Bands] = {}


class Config(_Written, frozen=True, kw_only=True):
    """The settings of a project; `origin` is the file that they were read from."""

    origin: str = FILE_NAME

    @property
    def options(self) -> Options:
        """The readings that the file chooses."""
        return Options(
            citation_mode=self.citation.mode,
            citation_window=self.citation.window,
            ignore_case=self.ignore_case,
            relevance_level=self.relevance_level,
            min_n=self.min_n,
        )


def _read_toml(path: Path, *, missing: str, missing_hint: str, hint: str) -> dict[str, Any]:
    name = str(path)
    try:
        return tomllib.loads(path.read_text("utf-8"))
    except FileNotFoundError as error:
        raise RagaugeError.of(
            "file-not-found", f"there is no {missing} `{name}`", hint=missing_hint
        ) from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, OSError, RecursionError) as error:
        raise RagaugeError.of("bad-config", f"{error}", hint=hint, place=Place(name)) from error


def load_config(path: Path) -> Config:
    """Read a configuration file; unknown keys are refused."""
    name = str(path)
    table = _read_toml(
        path,
        missing="file",
        missing_hint="`ragauge init` writes one",
        hint="the file must be TOML in UTF-8",
    )
    try:
        written = msgspec.convert(table, _Written)
        if "\\u0000" in json.dumps(table, default=str):
            raise ValueError("a text has a NUL character, which no file and no name can have")
        for pattern in written.refusal.patterns:
            compiled_pattern(pattern, ignore_case=True)
        if not math.isfinite(written.relevance_level):
            raise ValueError(
                f"it must be a finite number: {written.relevance_level} - at `$.relevance_level`"
            )
    except ValueError as error:  # what msgspec raises is one too
        raise RagaugeError.of(
            "bad-config",
            f"{error}",
            hint="keys: gold, trace, profile, dialect, k, metrics, chunks, corpus, baseline, "
            "store, suite, runs_dir, relevance_level, ignore_case, min_n, [system], [gates], "
            "[[waivers]] with gate, reason and expires (a date, YYYY-MM-DD), [refusal] patterns, "
            "[citation] mode and window, embed, embed_cache, [embedders.NAME] settings, "
            "[bands.ID] stable, target and risk",
            place=Place(name),
        ) from error
    base = path.parent
    settings = {key: getattr(written, key) for key in written.__struct_fields__}
    # A file that is named in the configuration lies beside it, wherever the command is run.
    paths = {
        key: _beside(base, settings[key])
        for key in ("gold", "trace", "chunks", "corpus", "runs_dir")
    }
    if written.baseline is not None and (base / written.baseline).exists():
        paths["baseline"] = str(base / written.baseline)  # else it is the name of a stored run
    if written.embed_cache != "none":
        paths["embed_cache"] = _beside(base, written.embed_cache)
    paths["store"] = _store(base, written.store)
    return Config(**{**settings, **paths}, origin=name)


def _beside(base: Path, name: str | None) -> str | None:
    return None if name is None else str(base / name)


def _store(base: Path, url: str | None) -> str | None:
    """A SQLite file is named relative to the configuration too."""
    scheme, slashes, path = (url or "").partition(":///")
    if scheme != "sqlite" or not slashes or path.startswith("/"):
        return url
    return f"{scheme}:///{base / path}"


def load_gates(path: Path) -> dict[str, Any]:
    """Read a gates file: a [gates] table, or gates at the top level."""
    table = _read_toml(
        path, missing="gates file", missing_hint="check the path", hint="a gates file is TOML"
    )
    place = Place(str(path))
    gates = table.get("gates", table)
    if "gates" in table and len(table) > 1:
        beside = ", ".join(f"`{key}`" for key in table if key != "gates")
        raise RagaugeError.of(
            "bad-config",
            f"beside the table of gates there is {beside}",
            hint="put every gate into [gates], or leave the heading out",
            place=place,
        )
    if not isinstance(gates, dict) or not gates:
        raise RagaugeError.of(
            "bad-config",
            "there are no gates in the file",
            hint='write lines such as "answer.precision" = ">= 0.80"',
            place=place,
        )
    return gates
