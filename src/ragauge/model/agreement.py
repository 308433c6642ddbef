"""Agreement: how alike two runs retrieve and cite, whether or not either is right."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

SAME_CITATIONS = 0.98
"""The share of identical citations that a cutover asks for; the rest must be replaced."""

By = Literal["id", "place"]


class DifferingSlot(Struct, frozen=True, kw_only=True):
    """A slot whose citations differ between the runs.

    `replaced` pairs what run a cites with what run b cites of the same text; `lost` is cited by a
    alone, `gained` by b alone.
    """

    qid: str
    paraphrase: int | None = None
    seed: str | None = None
    turn: int | None = None
    replaced: tuple[tuple[str, str], ...] = ()
    lost: tuple[str, ...] = ()
    gained: tuple[str, ...] = ()

    @property
    def mapped(self) -> bool:
        """Whether everything that run a cites has a replacement."""
        return not self.lost


class AgreementFigure(Struct, frozen=True, kw_only=True):
    """One figure: the mean over questions of the mean over slots, and how many there were."""

    value: float | None
    questions: int
    slots: int


class Agreement(Struct, frozen=True, kw_only=True):
    """Two runs slot by slot.

    by           whether chunks were recognised by id, or by place since the chunkings differ
    slots        slots that both runs have without an error; the others are counted by side
    citations    the share of slots, of those where either cites, that cite the same
    rbo, tau     of the hits: rank-biased overlap, and Kendall's tau of the first ten
    differing    every slot that cites otherwise, in the order of the ids
    """

    by: By
    slots: int
    only_a: int
    only_b: int
    citations: AgreementFigure
    rbo: AgreementFigure
    tau: AgreementFigure
    differing: tuple[DifferingSlot, ...] = ()

    @property
    def unmapped(self) -> int:
        """Slots that cite in run a what has no replacement in run b."""
        return sum(not slot.mapped for slot in self.differing)

    @property
    def meets_target(self) -> bool | None:
        """Whether citations are as alike as a cutover asks for, the rest replaced."""
        if self.citations.value is None:
            return None
        return self.citations.value >= SAME_CITATIONS and not self.unmapped
