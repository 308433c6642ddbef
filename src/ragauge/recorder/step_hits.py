"""Which hits are those of a question, where an app retrieved several times for it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from ragauge import registry
from ragauge.recorder.hit_objects import hits_of

CHOICES = ("last", "first", "union")
"""Of several retrievals: as `traces import --retrieval` has it."""


class Retrieval(NamedTuple):
    """One retrieval: what was asked, and the documents that came back."""

    question: str | None
    documents: Any


class RetrievalChoice(str):
    """One of CHOICES."""

    def __new__(cls, name: object) -> RetrievalChoice:
        """The choice of that name."""
        if not isinstance(name, str) or name not in CHOICES:
            raise registry.unknown_name("choice of retrieval", str(name), CHOICES)
        return super().__new__(cls, name)


def chosen_hits(retrievals: Sequence[Retrieval], choice: RetrievalChoice) -> list[Any]:
    """The hits of the chosen retrieval, or of all of them, each once."""
    if choice != "union":
        return hits_of(retrievals[0 if choice == "first" else -1].documents)
    hits: dict[str, Any] = {}
    for retrieval in retrievals:
        for hit in hits_of(retrieval.documents):
            key = hit.get("id") or hit.get("text") if isinstance(hit, dict) else hit
            hits.setdefault(str(key), hit)
    return list(hits.values())
