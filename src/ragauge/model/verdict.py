"""Gates and verdicts: thresholds on metrics, and whether they are met."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date
from typing import Literal

from msgspec import Struct

from ragauge.codes import CODES, ExitCode
from ragauge.metrics.metric import Better
from ragauge.model.metric_names import current_id
from ragauge.model.semantic import Zone
from ragauge.stats.intervals import Interval

Status = Literal["not-judged", "pass", "review", "fail", "not-evaluable"]
ORDER: tuple[Status, ...] = ("not-judged", "pass", "review", "fail", "not-evaluable")
"""From the least to the worst. What is not judged leaves the verdict to the other gates."""


class Gate(Struct, frozen=True, kw_only=True):
    """One threshold on one metric. `given` is the threshold as it was written.

    `is_drop`: it limits how much worse the metric is than in the baseline. `part` narrows it
    to a slice, as `type=table`. `instead` is judged where no answer of the run cites anything.
    `zone`: the threshold is where a zone of ΔS ends, in the bands of the run's embedder.
    `deprecated` is the short name that it was written with, where that one surprises.
    """

    name: str
    metric: str
    better: Better
    threshold: float
    given: str
    origin: str
    title: str | None = None
    min_n: int = 0
    review: tuple[float, float] | None = None
    policy: Literal["point", "interval"] = "point"
    is_drop: bool = False
    part: str | None = None
    instead: str | None = None
    deprecated: str | None = None
    joined_id: str | None = None
    zone: Zone | None = None

    @property
    def sign(self) -> str:
        """The comparison that must hold."""
        return ">=" if self.better == "higher" and not self.is_drop else "<="

    @property
    def key(self) -> tuple[str, bool, str | None]:
        """What the threshold is on; a later one on the same replaces it.

        A gate on an id that was joined with another was in force beside the gates on that one: it
        still is, so that no gate of a profile is lost to an old line of somebody's configuration.
        """
        return self.joined_id or self.metric, self.is_drop, self.part


class Waiver(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A gate that may fail until a date, and why."""

    gate: str
    reason: str
    expires: date

    def covers(self, gate: Gate) -> bool:
        """Whether it names the gate, or the gate's metric by its id of today or an old one."""
        return self.gate == gate.name or current_id(self.gate) == gate.metric


class GateResult(Struct, frozen=True, kw_only=True):
    """One gate's verdict; `margin` is positive on the good side of the threshold.

    `detectable` is the smallest change that a run of this n would show in four cases of five.
    """

    gate: Gate
    status: Status
    value: float | None
    n: int
    margin: float | None
    interval: Interval | None
    detectable: float | None
    reason: str | None = None
    waived: str | None = None
    code: str | None = None


class VerdictBlock(Struct, frozen=True):
    """A reason for which the run cannot be judged, whatever its gates say."""

    code: str
    message: str

    @property
    def exit_code(self) -> ExitCode:
        """The exit code that its code stands for; one of another version is not evaluable."""
        code = CODES.get(self.code)
        return ExitCode.NOT_EVALUABLE if code is None else code.exit


class Verdict(Struct, frozen=True, kw_only=True):
    """The worst of all gates and blocks, and the exit code that it stands for."""

    status: Status
    exit_code: ExitCode
    gates: tuple[GateResult, ...]
    blocks: tuple[VerdictBlock, ...]

    def blocked_by(self, blocks: Sequence[VerdictBlock]) -> Verdict:
        """The verdict where something else makes the run not evaluable, too.

        Of a block of the verdict with the same code, what is given here says more.
        """
        if not blocks:
            return self
        codes = {block.code for block in blocks}
        every = (*blocks, *(block for block in self.blocks if block.code not in codes))
        unmeasured = any(block.exit_code == ExitCode.NOTHING_MEASURED for block in every)
        return Verdict(
            status="not-evaluable",
            exit_code=ExitCode.NOTHING_MEASURED if unmeasured else ExitCode.NOT_EVALUABLE,
            gates=self.gates,
            blocks=every,
        )

    @property
    def gates_pass(self) -> bool:
        """Whether every gate passes (or is waived), leaving blocks aside."""
        fine = ("not-judged", "pass", "review")
        return all(result.status in fine or result.waived for result in self.gates)

    @property
    def unjudged(self) -> list[GateResult]:
        """The gates that were left out of the verdict, as their ΔS decides nothing."""
        return [result for result in self.gates if result.status == "not-judged"]
