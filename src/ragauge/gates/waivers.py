"""Waivers: a gate that fails may pass until a day, with a reason."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date

from msgspec.structs import replace

from ragauge.errors import RagaugeError
from ragauge.model.verdict import Gate, GateResult, Waiver


def refuse_stray(waivers: Sequence[Waiver], gates: Sequence[Gate]) -> None:
    """Refuse a waiver whose gate is not there: it would silently do nothing."""
    for waiver in waivers:
        if not any(map(waiver.covers, gates)):
            raise RagaugeError.of(
                "bad-config",
                f"a waiver names `{waiver.gate}`, and there is no such gate",
                hint=f"gates: {', '.join(gate.name for gate in gates) or 'none'}",
            )


def with_waiver(result: GateResult, waivers: Sequence[Waiver], today: date | None) -> GateResult:
    """The result, waived or with a note that its waiver expired.

    Without a date every waiver has expired: nothing passes by a day that is not known.
    """
    of_gate = [waiver for waiver in waivers if waiver.covers(result.gate)]
    if result.status in ("not-judged", "pass", "review") or not of_gate:
        return result
    last = max(of_gate, key=lambda waiver: waiver.expires)
    if today is not None and today <= last.expires:
        note = f"waived until {last.expires}: {last.reason}"
        return replace(result, waived=note)
    note = f"the waiver expired on {last.expires}"
    reason = note if result.reason is None else f"{result.reason}; {note}"
    return replace(result, reason=reason)
