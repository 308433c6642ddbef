"""Several baselines: gates on a drop are judged against each, and the worst verdict stands.

One baseline that moves with the branch lets a metric fall for ever, a little with each merge.
Beside it may stand one that is pinned, and the best of the last runs.
"""

from __future__ import annotations

from collections.abc import Sequence, Set
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from ragauge.codes import ExitCode
from ragauge.gates.judge import judge
from ragauge.gates.waivers import refuse_unusable
from ragauge.model.scores import Scores
from ragauge.model.verdict import ORDER, Gate, GateKey, GateResult, Verdict, Waiver


class GateBaseline(Struct, frozen=True, kw_only=True):
    """What gates on a drop are judged against.

    scores       the baseline; None if there is none
    beside       the run, where it was aligned with the baseline, else the scores that are judged
    label        what the baseline is called, where there are several
    run_id       the run behind the label
    keys         of the gates that it is for; None for all
    chosen_from  of so many runs it was chosen as the best: bounds are wider by that
    """

    scores: Scores | None
    beside: Scores | None = None
    label: str | None = None
    run_id: str | None = None
    keys: Set[GateKey] | None = None
    chosen_from: int = 1

    def gates(self, gates: Sequence[Gate]) -> list[Gate]:
        """Those of the gates on a drop that are judged against this baseline."""
        drops = [gate for gate in gates if gate.is_drop]
        if self.keys is not None:
            drops = [gate for gate in drops if gate.key in self.keys]
        if self.label is None:
            return drops
        return [
            replace(
                gate,
                title=f"{gate.title or gate.name} vs {self.label}",
                against=self.label,
                chosen_from=self.chosen_from,
            )
            for gate in drops
        ]


def judge_against(
    scores: Scores,
    gates: Sequence[Gate],
    baselines: Sequence[GateBaseline],
    *,
    waivers: Sequence[Waiver] = (),
    **options: Any,
) -> Verdict:
    """Judge as `judge` does, with each gate on a drop against each baseline that is for it."""
    if not any(gate.is_drop for gate in gates):
        baselines = ()
    if len(baselines) <= 1 and all(baseline.label is None for baseline in baselines):
        only = baselines[0] if baselines else GateBaseline(scores=None)
        return judge(
            scores, gates, waivers=waivers, baseline=only.scores, beside=only.beside, **options
        )
    refuse_unusable(waivers, gates)
    verdicts = []
    levels = [gate for gate in gates if not gate.is_drop]
    groups = [(None, levels), *((each, each.gates(gates)) for each in baselines)]
    groups = [(baseline, judged) for baseline, judged in groups if judged]
    for baseline, judged in groups:
        verdict = judge(
            scores,
            judged,
            waivers=[waiver for waiver in waivers if any(map(waiver.covers, judged))],
            baseline=None if baseline is None else baseline.scores,
            beside=None if baseline is None else baseline.beside,
            alone=len(groups) == 1,  # ΔS that decides nothing leaves it to gates on a drop
            **options,
        )
        run_id = None if baseline is None else baseline.run_id
        verdicts.append(verdict if run_id is None else _naming(verdict, run_id))
    return _together(gates, verdicts)


def _naming(verdict: Verdict, run_id: str) -> Verdict:
    """The verdict whose results say which run they are against."""
    results = (
        result
        if result.value is None
        else replace(result, reason=f"against {run_id}: {result.reason}")
        for result in verdict.gates
    )
    return replace(verdict, gates=tuple(results))


def _together(gates: Sequence[Gate], verdicts: Sequence[Verdict]) -> Verdict:
    """The verdict of all gates: results in the order of the gates, and the worst status."""
    by_key: dict[object, list[GateResult]] = {}
    for verdict in verdicts:
        for result in verdict.gates:
            by_key.setdefault(result.gate.key, []).append(result)
    worst = max(
        verdicts,
        key=lambda one: (one.exit_code == ExitCode.NOTHING_MEASURED, ORDER.index(one.status)),
    )
    keys = dict.fromkeys(gate.key for gate in gates)  # two gates may be on the same thing
    blocks = dict.fromkeys(block for verdict in verdicts for block in verdict.blocks)
    return Verdict(
        status=worst.status,
        exit_code=worst.exit_code,
        gates=tuple(result for key in keys for result in by_key.get(key, ())),
        blocks=tuple(blocks),
    )
