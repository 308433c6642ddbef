"""What is known of the ΔS of a run: its embedder, its bands, and how it was checked."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta, Struct

Distance = Annotated[float, Meta(ge=0, le=2)]
LEXICAL = "lexical"
"""What the id of every embedder begins with that compares words and not meanings."""


def is_lexical(embedder: str) -> bool:
    """Whether an embedder compares words: its ΔS never feeds a gate."""
    return embedder.startswith(LEXICAL)


class Bands(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Where the zones of ΔS end: stable below `stable`, risk from `risk`, transitional between.

    `target` is what a single item should stay at or below. They belong to one embedder; these are
    the numbers of the source documents, which name none.
    """

    stable: Distance = 0.40
    target: Distance = 0.45
    risk: Distance = 0.60

    def __post_init__(self) -> None:
        if not self.stable <= self.target <= self.risk:
            raise ValueError("bands must not descend: stable, target, risk")

    def zone(self, value: float) -> str:
        """The zone of a distance."""
        if value < self.stable:
            return "stable"
        return "risk" if value >= self.risk else "transitional"


ZONES = ("stable", "transitional", "risk")


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
