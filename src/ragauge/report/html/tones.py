"""The tones of a page: good, warn, bad and quiet, each with a colour in the style and a sign."""

from __future__ import annotations

from ragauge.model.labels import GOOD

SIGNS = {"good": "✓", "warn": "!", "bad": "✕", "quiet": "·"}
"""For those who do not see the colour."""
STATUS_TONES: dict[str, str] = {
    "pass": "good", "review": "warn", "fail": "bad", "not-evaluable": "bad", "waived": "warn",
}  # fmt: skip
# Labels of questions that went wrong without harm: nothing false was said.
_MILD = ("OVER_REFUSAL", "CLAIM_MISSING", "OUT_OF_SCOPE")
_UNDECIDED = ("UNLABELLED", "NO_ANSWER")


def label_tone(label: str) -> str:
    """The tone of a question's label."""
    if label in GOOD:
        return "good"
    if label in _UNDECIDED:
        return "quiet"
    return "warn" if label in _MILD else "bad"
