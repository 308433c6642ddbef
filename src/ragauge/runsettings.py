"""What a test says of its run: files, options of scoring, demands and signals."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

import msgspec
from msgspec import Struct

from ragauge import registry
from ragauge.config import load_gates
from ragauge.errors import RagaugeError
from ragauge.gates import judge as gating
from ragauge.model.options import CitationMode

FILES = ("gold", "trace", "chunks", "corpus", "baseline", "config")
"""Settings that name a file or a folder."""
NO_CONFIG = "none"


class Settings(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """What a test says of its run: the options of `ragauge score`, and what is demanded.

    config       instead of the project's `ragauge.toml`; `none` for none at all
    gates        demands on top of those of the profile and of `ragauge.toml`
    invariants   demands that stand alone, whatever the profile demands
    signals      metrics that are recorded and never judged
    """

    gold: str | None = None
    trace: str | None = None
    profile: str | None = None
    dialect: str | None = None
    k: int | tuple[int, ...] | None = None
    metrics: tuple[str, ...] = ()
    chunks: str | None = None
    corpus: str | None = None
    baseline: str | None = None
    config: str | None = None
    missing: Literal["count", "exclude"] = "count"
    on_bad_line: Literal["stop", "skip"] = "stop"
    citation_mode: CitationMode | None = None
    relevance_level: float | None = None
    ignore_case: bool | None = None
    min_n: int | None = None
    intervals: bool = True
    gates: str | dict[str, Any] | None = None
    invariants: str | tuple[str, ...] = ()
    signals: str | tuple[str, ...] = ()
    allow_missing: bool = False
    allow_errored: bool = False
    allow_skipped: bool = False
    allow_empty: bool = False
    allow_no_baseline: bool = False

    @property
    def tolerance(self) -> gating.Tolerance:
        """What may be wrong with a run that is judged all the same."""
        return gating.Tolerance(
            missing=self.allow_missing, errored=self.allow_errored, skipped=self.allow_skipped,
            empty=self.allow_empty, no_baseline=self.allow_no_baseline,
        )  # fmt: skip


def read_settings(given: Mapping[str, Any], folders: Sequence[Path]) -> Settings:
    """Check what a test says; file names are looked for in the folders, the first one first."""
    known = Settings.__struct_fields__
    for name in given:
        if name not in known:
            raise registry.unknown_name("setting", name, known)
    values = {name: os.fspath(v) if isinstance(v, os.PathLike) else v for name, v in given.items()}
    for name in FILES:
        value = values.get(name)
        if isinstance(value, str) and not (name == "config" and value == NO_CONFIG):
            values[name] = located(value, folders)
    if isinstance(values.get("gates"), str) and values["gates"].endswith(".toml"):
        values["gates"] = load_gates(Path(located(values["gates"], folders)))
    if isinstance(values.get("metrics"), str):
        values["metrics"] = values["metrics"].split(",")
    try:
        return msgspec.convert(values, Settings)
    except msgspec.ValidationError as error:
        raise RagaugeError.of(
            "usage", f"the settings of the test cannot be used: {error}",
            hint="they are those of `ragauge score`, with gates, invariants and signals",
        ) from error  # fmt: skip


def located(name: str, folders: Sequence[Path]) -> str:
    """The file of that name in the first folder that has it; where none has, in the first."""
    paths = [folder / name for folder in folders]
    return str(next((path for path in paths if path.exists()), paths[0]))


def texts(given: str | Sequence[str]) -> list[str]:
    """One text or several, as a list."""
    return [given] if isinstance(given, str) else list(given)
