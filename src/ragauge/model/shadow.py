"""Shadow verdicts: may a second index take over some of the traffic of the live one?"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from msgspec import Struct

from ragauge.model.agreement import Agreement
from ragauge.model.comparison import ComparedRun, Delta, Kind, Match, MatchLevel
from ragauge.model.diagnosis import DiagnosisFinding, Witness
from ragauge.model.verdict import GateResult, Verdict

SCHEMA = "ragauge.shadow/1"

Decision = Literal["eligible", "review", "not-eligible", "not-evaluable"]
DECISIONS: Mapping[str, Decision] = {
    "pass": "eligible",
    "review": "review",
    "fail": "not-eligible",
    "not-evaluable": "not-evaluable",
}
"""What each status of a verdict decides."""


class FailedGate(Struct, frozen=True, kw_only=True):
    """A gate that does not hold: its worst questions, and the step to take."""

    gate: GateResult
    worst: tuple[Witness, ...]
    step: str


class ShadowSlice(Struct, frozen=True, kw_only=True):
    """The questions with evidence of one type: how many, and each gated metric in both runs.

    Below the least n that is shown there are no values.
    """

    n: int
    deltas: tuple[Delta, ...] = ()


class ShadowReport(Struct, frozen=True, kw_only=True):
    """The shadow beside the live run, and what was decided.

    match, rungs   at which levels the evidence was matched on both sides
    deltas         the gated metrics, shadow less live, over the common questions
    types          the same by type of the evidence
    kinds          wins, losses and regressions of retrieval and of answers
    findings       likely causes of what rose against the live run, the likeliest first
    unjudged       gates on answers, where the indexes alone were judged
    """

    profile: str
    live: ComparedRun
    shadow: ComparedRun
    verdict: Verdict
    match: Match
    rungs: Mapping[MatchLevel, int]
    deltas: tuple[Delta, ...]
    types: Mapping[str, ShadowSlice]
    agreement: Agreement
    failed: tuple[FailedGate, ...] = ()
    kinds: Mapping[Kind, int] = {}
    answer_kinds: Mapping[Kind, int] = {}
    findings: tuple[DiagnosisFinding, ...] = ()
    counted: int = 0
    left_out: Mapping[str, int] = {}
    notes: tuple[str, ...] = ()
    unjudged: tuple[str, ...] = ()

    @property
    def decision(self) -> Decision:
        """What was decided, in one word."""
        return DECISIONS[self.verdict.status]
