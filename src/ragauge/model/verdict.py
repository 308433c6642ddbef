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
from ragauge.stats.error_rates import Policy
from ragauge.stats.intervals import Interval

Status = Literal["not-judged", "pass", "review", "fail", "not-evaluable"]
ORDER: tuple[Status, ...] = ("not-judged", "pass", "review", "fail", "not-evaluable")
"""From the least to the worst. What is not judged leaves the verdict to the other gates."""


GateKey = tuple[str, bool, str | None]
"""What a threshold is on: the metric, whether it is a drop, and the slice."""


class Gate(Struct, frozen=True, kw_only=True):
    """One threshold on one metric. `given` is the threshold as it was written.

    `is_drop`: it limits how much worse the metric is than in the baseline. `part` narrows it
    to a slice, as `type=table`. `instead` is judged where no answer of the run cites anything.
    `zone`: the threshold is where a zone of ΔS ends, in the bands of the run's embedder.
    `deprecated` is the short name that it was written with, where that one surprises. Where there
    are several baselines, `against` names the one of this gate; as the best run of `chosen_from`.
    `moved_from` is the metric that it was written for, where it is judged by document instead.
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
    policy: Policy = "point"
    is_drop: bool = False
    part: str | None = None
    instead: str | None = None
    deprecated: str | None = None
    joined_id: str | None = None
    against: str | None = None
    chosen_from: int = 1
    zone: Zone | None = None
    moved_from: str | None = None

    @property
    def sign(self) -> str:
        """The comparison that must hold."""
        return ">=" if self.better == "higher" and not self.is_drop else "<="

    @property
    def key(self) -> GateKey:
        """What the threshold is on; a later one on the same replaces it.

        A gate on an id that was joined with another was in force beside the gates on that one: it
        still is, so that no gate of a profile is lost to an old line of somebody's configuration.
        """
        return self.joined_id or self.moved_from or self.metric, self.is_drop, self.part


class Waiver(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A gate that may fail until a date, and why."""

    gate: str
    reason: str
    expires: date

    def covers(self, gate: Gate) -> bool:
        """Whether it names the gate, or the gate's metric by its id of today or an old one."""
        metrics = gate.metric, gate.moved_from
        return self.gate == gate.name or current_id(self.gate) in metrics


class DamagedQuestion(Struct, frozen=True, kw_only=True):
    """A question that helped to make a gate fail.

    value, before   its value of the gated metric, and that in the baseline of a drop
    damage          how much worse than in the baseline, or than the best there is
    share           of all damage
    lost            the expected pieces that were found less often than in the baseline
    """

    query_id: str
    value: float
    damage: float
    share: float
    turn: int | None = None
    before: float | None = None
    lost: tuple[str, ...] = ()


class GateChances(Struct, frozen=True, kw_only=True):
    """How often a gate decides wrongly at this n, as shares of runs.

    An unchanged system is one that is as the run says; for a drop, as the baseline is. `worse` is
    the true value (or drop) of a system that lies the smallest detectable change beyond the
    threshold. `perfect_from`: the fewest questions of which a perfect score (for a drop: no change)
    passes `confident-pass`; None for another policy, or where no number does.
    """

    fails_unchanged: float
    reviews_unchanged: float = 0.0
    worse: float | None = None
    passes_worse: float | None = None
    reviews_worse: float | None = None
    perfect_from: int | None = None


class GateResult(Struct, frozen=True, kw_only=True):
    """One gate's verdict; `margin` is positive on the good side of the threshold.

    `detectable` is the smallest change that a run of this n would show in four cases of five.
    `caution` is what a reader should know before trusting the verdict, whatever it is.
    `damage` are the questions that made it fail, the worst first.
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
    caution: str | None = None
    damage: tuple[DamagedQuestion, ...] = ()
    chances: GateChances | None = None


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
