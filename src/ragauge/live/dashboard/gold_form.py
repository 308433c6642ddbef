"""A question of live traffic becomes a gold item: what the form asks, and the row that it makes.

An item that somebody confirmed is no draft: it says which hits hold the answer, or that there is
none. `ragauge gold lint` takes the file of candidates as it is.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from ragauge.errors import RagaugeError
from ragauge.formats.gold import gold_item
from ragauge.live.dashboard.queries import GoldCandidate

MOST_CHARACTERS = 20_000
HINT = "go back to the trace, and complete the form"


def candidate(
    trace_id: str, fields: Mapping[str, Sequence[str]], *, question_type: str, created: int
) -> GoldCandidate:
    """The candidate that a form describes; `bad-field` where it is not complete."""
    question = _one(fields, "question").strip()
    expect = _one(fields, "expect")
    relevant = list(dict.fromkeys(fields.get("relevant", ())))
    if not question:
        raise RagaugeError.of("bad-field", "the question is empty", hint=HINT)
    if len(question) > MOST_CHARACTERS:
        message = f"the question has more than {MOST_CHARACTERS:,} characters"
        raise RagaugeError.of("bad-field", message, hint="shorten it")
    if expect not in ("answer", "refuse"):
        message = "say whether the question can be answered"
        raise RagaugeError.of("bad-field", message, hint=HINT)
    if expect == "answer" and not relevant:
        message = "choose at least one hit that holds the answer"
        raise RagaugeError.of("bad-field", message, hint=HINT)
    row: dict[str, object] = {
        "qid": f"live-{trace_id}",
        "question": question,
        "answerable": expect == "answer",
        "relevant": relevant if expect == "answer" else [],
        **({"type": question_type} if question_type else {}),
    }
    gold_item(row, {}, None, expects_by_docs=False)  # whatever it is, `gold lint` can read it
    text = msgspec.json.encode(row).decode()
    return GoldCandidate(trace_id=trace_id, created=created, item_json=text)


def _one(fields: Mapping[str, Sequence[str]], name: str) -> str:
    values = fields.get(name, ())
    return values[0] if values else ""


def candidate_lines(candidates: Sequence[GoldCandidate]) -> str:
    """The candidates as JSON lines."""
    return "".join(f"{one.item_json}\n" for one in candidates)
