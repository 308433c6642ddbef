"""Placement: by what the hits of a run were placed, and why some were not."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct

PLACED: Mapping[str, str] = {
    "id": "id",
    "offsets": "offsets",
    "text": "text",
    "part": "part of the text",
    "quote": "text beside a quote",
}
"""By what a hit was placed, in words."""

UNPLACED: Mapping[str, str] = {
    "no-corpus": "no place, and there is no corpus to look the text up in",
    "no-text": "no known id, no place and no text",
    "unknown-document": "a document that the corpus does not have",
    "other-name": "a document that gold names otherwise",
    "offsets-elsewhere": "offsets outside the document",
    "text-not-found": "a text that does not stand there",
    "ambiguous": "a name or a text that several places have",
}
"""Why hits were not placed, in words that follow "have"."""

_CURES: Mapping[str, str] = {
    "no-corpus": "name the corpus with --corpus DIR (`ragauge corpus build` makes one), so that "
    "hits are placed by their texts",
    "no-text": "let the traces have the text of each hit, or name the list of chunks that the ids "
    "are of with --chunks",
    "unknown-document": "name the corpus that the index was built from, or let the traces have "
    "the text of each hit",
    "other-name": "name the corpus with --corpus DIR, so that documents are known by the end of "
    "their path",
    "offsets-elsewhere": "the index was built from another version of the documents: build the "
    "corpus from the same ones, or let the traces have the text of each hit",
    "text-not-found": "name the corpus that the index was built from: the texts of the hits do "
    "not stand in this one",
    "ambiguous": "give each hit its document or its offsets: their texts stand in several places",
}


class Placing(Struct, frozen=True, kw_only=True):
    """How many hits of the questions whose evidence has a place were placed by what.

    `unplaced` counts the others by reason. `prefixes` are the beginnings of document names that
    the corpus's names lack, or the other way round.
    """

    placed: dict[str, int] = {}
    unplaced: dict[str, int] = {}
    prefixes: tuple[str, ...] = ()

    @property
    def is_hopeless(self) -> bool:
        """Whether there were hits, and not one has a place."""
        return bool(self.unplaced) and not self.placed

    @property
    def cure(self) -> str:
        """What to do about the commonest reason."""
        return _CURES[max(self.unplaced, key=lambda reason: self.unplaced[reason])]

    def reasons(self) -> str:
        """Why hits were not placed, each reason with its count."""
        return "; ".join(
            f"{n} {'has' if n == 1 else 'have'} {UNPLACED[reason]}"
            for reason, n in self.unplaced.items()
        )

    def sentences(self) -> list[str]:
        """What a reader of the scores should know."""
        looked_up = any(how in self.placed for how in ("text", "part"))
        if not (looked_up or self.unplaced or self.prefixes):
            return []
        total = sum(self.placed.values()) + sum(self.unplaced.values())
        placed = ", ".join(f"{PLACED[how]} {n}" for how, n in self.placed.items())
        by = f" (by {placed})" if placed else ""
        hits = "1 hit was" if total == 1 else f"{total} hits were"
        sentence = f"{sum(self.placed.values())} of {hits} placed{by}"
        if self.unplaced:
            sentence += f"; {self.reasons()}"
        sentences = [sentence]
        if self.prefixes:
            first = ", ".join(f"`{prefix}`" for prefix in self.prefixes[:3])
            more = f" and {len(self.prefixes) - 3} more" if len(self.prefixes) > 3 else ""
            sentences.append(f"names of documents were matched without their prefix {first}{more}")
        return sentences


def placing(counts: Mapping[str, int], prefixes: set[str]) -> Placing | None:
    """The counts in their fixed order; None where nothing was counted."""
    if not counts:
        return None
    return Placing(
        placed={how: counts[how] for how in PLACED if counts.get(how)},
        unplaced={reason: counts[reason] for reason in UNPLACED if counts.get(reason)},
        prefixes=tuple(sorted(prefixes)),
    )
