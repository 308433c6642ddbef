"""What is known of the ΔS of a run: its embedder, its bands, and how it was checked."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta, Struct

Distance = Annotated[float, Meta(ge=0, le=2)]
LEXICAL = "lexical"
"""What the id of every embedder begins with that compares words and not meanings."""


def is_lexical(embedder: str) -> bool:
    """Whether an embedder compares words: its ΔS never feeds a gate."""
    return embedder.startswith(LEXICAL)


class BandCalibration(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What bands rest on: how many pairs, and how far the edges could be elsewhere (95 %).

    `auc` is the share of cases in which evidence is nearer than what it was held `against`.
    `judged` is False where that is too seldom for gates.
    """

    auc: Annotated[float, Meta(ge=0, le=1)]
    evidence: Annotated[int, Meta(ge=0)]
    others: Annotated[int, Meta(ge=0)]
    against: str
    stable: tuple[float, float]
    risk: tuple[float, float]
    judged: bool = True


class Bands(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Where the zones of ΔS end: stable below `stable`, risk from `risk`, transitional between.

    `target` is what a single item should stay at or below. They belong to one embedder; these are
    the numbers of the source documents, which name none. `calibration` says what they rest on.
    """

    stable: Distance = 0.40
    target: Distance = 0.45
    risk: Distance = 0.60
    calibration: BandCalibration | None = None

    def __post_init__(self) -> None:
        if not self.stable <= self.target <= self.risk:
            raise ValueError("bands must not descend: stable, target, risk")

    def zone(self, value: float) -> str:
        """The zone of a distance."""
        if value < self.stable:
            return "stable"
        return "risk" if value >= self.risk else "transitional"


ZONES = ("stable", "transitional", "risk")
Zone = Literal["stable", "transitional"]
"""A zone that a gate can ask for: nobody asks for risk."""


class Recheck(Struct, frozen=True, kw_only=True):
    """How recorded ΔS differ from measured ones; `listed` are the first that do."""

    compared: int
    differing: int
    worst: float
    tolerance: float
    listed: tuple[str, ...] = ()
    recorded_by: tuple[str, ...] = ()


class Anchored(Struct, frozen=True, kw_only=True):
    """ΔS of questions and their own evidence; `far` are beyond the target for gold items."""

    n: int
    median: float
    p90: float
    far: int
    target: float


class Semantic(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The ΔS of a run: how many questions are in which zone of the bands.

    `measured` says that ΔS was taken by ragauge from texts, and not recorded.
    """

    embedder: str
    bands: Bands
    zones: dict[str, int] = {}
    measured: bool = False
    anchors: Anchored | None = None
    recheck: Recheck | None = None
