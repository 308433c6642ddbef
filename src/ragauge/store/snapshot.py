"""Snapshot: how a run was configured and scored, as the JSON that is stored with it."""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from ragauge import __version__, registry
from ragauge.errors import Place, RagaugeError
from ragauge.files.redaction import redacted
from ragauge.model.evidence import Evidence
from ragauge.model.metric_names import current_id
from ragauge.model.options import Options
from ragauge.scoring.scoring_run import InputFacts, ScoringPlan


class ScoringRules(Struct, frozen=True, kw_only=True):
    """What a run was scored by, all in words, so that it can be scored again."""

    profile: str
    dialect: str
    own: bool
    k: tuple[int, ...]
    metrics: tuple[str, ...]
    options: Options = Options()
    count_repeats: bool = False
    intervals: bool = True
    asked_k: bool = False


class Snapshot(Struct, frozen=True, kw_only=True):
    """The stored form.

    `system` is what the user says of the system under test, without secrets.
    """

    scoring: ScoringRules
    inputs: InputFacts
    system: dict[str, Any] = {}
    ragauge_version: str = ""

    def encoded(self) -> str:
        """As JSON."""
        return msgspec.json.encode(self, order="deterministic").decode()

    def compared(self, evidence: Evidence) -> dict[str, Any]:
        """What may explain a difference between two runs."""
        rules = self.scoring
        options = msgspec.to_builtins(rules.options)
        del options["chunks"]  # a digest, which says nothing that the chunkers do not say
        return {
            **evidence.observed(),
            **self.system,
            "k": list(rules.k),
            "profile": rules.profile,
            "options": options,
        }


def snapshot_of(
    plan: ScoringPlan,
    inputs: InputFacts,
    *,
    system: Mapping[str, Any],
    ragauge_version: str = __version__,
) -> Snapshot:
    """The snapshot of a run that was scored by a plan."""
    return Snapshot(
        scoring=ScoringRules(
            profile=plan.profile.name,
            dialect=plan.dialect.name,
            own=plan.own,
            k=plan.k,
            metrics=tuple(metric.id for metric in plan.selected),
            options=plan.options,
            count_repeats=plan.count_repeats,
            intervals=plan.intervals,
            asked_k=plan.asked_k,
        ),
        inputs=inputs,
        system=redacted(dict(system)),
        ragauge_version=ragauge_version,
    )


def read_snapshot(text: str, name: str) -> Snapshot:
    """The snapshot of a stored run."""
    try:
        return msgspec.json.decode(text, type=Snapshot)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        message = f"how {name} was scored cannot be read: {error}"
        hint = "import the run again from an export"
        raise RagaugeError.of("bad-store", message, hint=hint) from error


def rules_under(rules: ScoringRules, profile: str | None) -> ScoringRules:
    """The rules of a run, or what they become under another profile, with its metrics and k."""
    if profile is None or profile == rules.profile:
        return rules
    other = registry.profile(profile)
    names = tuple(metric.id for metric in registry.select(other.metrics, other.k))
    return msgspec.structs.replace(rules, profile=profile, k=other.k, metrics=names)


def plan_of(rules: ScoringRules, *, metrics: tuple[str, ...] | None = None) -> ScoringPlan:
    """The plan by which a run is scored again; metrics that are gone are excluded."""
    names = [current_id(name) for name in (rules.metrics if metrics is None else metrics)]
    metrics_now = registry.metrics()
    return ScoringPlan(
        profile=registry.profile(rules.profile),
        dialect=registry.dialect(rules.dialect),
        own=rules.own,
        k=rules.k,
        selected=registry.select(
            [name for name in names if name.partition("@")[0] in metrics_now], rules.k
        ),
        options=rules.options,
        absent_counts=rules.options.missing != "exclude",
        intervals=rules.intervals,
        count_repeats=rules.count_repeats,
        asked_k=rules.asked_k,
    )


def load_system(path: Path) -> dict[str, Any]:
    """Read how a system is configured from a JSON, TOML or YAML file."""
    name = str(path)
    readers: dict[str, Callable[[bytes], Any]] = {
        ".json": msgspec.json.decode,
        ".toml": lambda data: tomllib.loads(data.decode()),
        ".yaml": _yaml,
        ".yml": _yaml,
    }
    read = readers.get(path.suffix.lower())
    try:
        if read is None:
            raise ValueError(f"the suffix says the format: {', '.join(readers)}")
        table = read(path.read_bytes())
        if not isinstance(table, dict):
            raise ValueError("it must be a table of settings")
    except FileNotFoundError as error:
        raise RagaugeError.of(
            "file-not-found", f"there is no file `{name}`", hint="check the path"
        ) from error
    except (ValueError, OSError, RecursionError) as error:  # what the readers raise is of these
        message = f"`{name}` cannot be read as a snapshot: {error}"
        hint = 'write settings such as {"chunker": {"version": "md-v2"}}'
        raise RagaugeError.of("bad-config", message, hint=hint, place=Place(name)) from error
    return {str(key): value for key, value in msgspec.to_builtins(table).items()}


def _yaml(data: bytes) -> Any:
    try:
        return msgspec.yaml.decode(data)
    except ImportError as error:
        message = "YAML needs a package that is not installed"
        hint = "pip install 'ragauge[yaml]'"
        raise RagaugeError.of("missing-extra", message, hint=hint) from error
