"""The tiny system that all exports of this folder come from: four passages, three questions.

No model and no network: answers are written down, passages are ranked by shared words.
"""

from __future__ import annotations

PASSAGES = {
    "session.md#1": "Signing in opens a session. Signing out ends it.",
    "session.md#2": "A session is valid for 30 minutes after the last request.",
    "anhänge.md#1": "Ein Anhang darf höchstens 25 MB groß sein.",
    "billing.md#1": "Invoices are sent on the first day of the month.",
}
CASES = [
    {
        "qid": "B1",
        "question": "How long is a session valid?",
        "answer": "A session is valid for 30 minutes. [session.md#2]",
        "expected": "30 minutes after the last request",
        "relevant": ["session.md#2"],
    },
    {
        "qid": "B2",
        "question": "Who founded the company?",
        "answer": "not in context",
        "expected": None,
        "relevant": [],
    },
    {
        "qid": "B3",
        "question": "Wie groß darf ein Anhang sein?",
        "answer": "Höchstens 25 MB. [anhänge.md#1]",
        "expected": "höchstens 25 MB",
        "relevant": ["anhänge.md#1"],
    },
]


def retrieve(question: str, k: int = 2) -> list[dict[str, object]]:
    """The passages that share most words with a question; equals in the order of their ids."""
    words = set(question.lower().strip("?").split())
    ranked = sorted(
        PASSAGES, key=lambda name: (-len(words & set(PASSAGES[name].lower().split())), name)
    )
    return [
        {
            "id": name,
            "text": PASSAGES[name],
            "score": len(words & set(PASSAGES[name].lower().split())),
        }
        for name in ranked[:k]
    ]
