"""What a reader should be told of how the expected pieces of two runs were recognised."""

from __future__ import annotations

from collections.abc import Mapping

from ragauge.model.comparison import RUNGS, Match, Rung


class Told:
    """Counts of what does not show in the rungs.

    rewritten   expected texts that are not in the documents of both sides
    anywhere    expected texts that are looked for in any document
    unplaced    places beside the evidence that say nothing any more
    renamed     documents that the sides call by other names
    strangers   pieces whose ids are not believed, because the runs have no id in common
    textless    pieces of changed documents that only texts could find, and there are none
    negatives   hard negatives that cannot be recognised in both runs
    """

    def __init__(self) -> None:
        self.rewritten = self.anywhere = self.unplaced = 0
        self.strangers = self.textless = self.negatives = 0
        self.renamed: dict[str, tuple[str, str]] = {}

    def notes(self, off: str | None, left_out: int) -> list[str]:
        """All of it in words; `off` is an id for which chunker versions cannot be believed."""
        found = []
        if off is not None:
            found.append(
                f"chunk `{off}` is not the same in both runs although nothing says that "
                "the chunking changed: equal ids alone are not taken for equal chunks"
            )
        if self.strangers:
            found.append(
                "the runs share no chunk id, and neither says by what chunker: "
                f"{_many(self.strangers, 'piece')} recognised by place or quote"
            )
        if self.renamed:
            name = min(self.renamed)
            one, other = self.renamed[name]
            found.append(
                f"documents with another name in the other run: {len(self.renamed):,}, "
                f"for example `{one}` and `{other}`"
            )
        if self.rewritten:
            found.append(
                f"{_many(self.rewritten, 'expected text')} not in the documents of both runs: "
                "deleted, rewritten, or in several documents"
            )
        if self.textless:
            found.append(
                f"{_many(self.textless, 'expected piece')} compared by document alone: the "
                "document changed, and a run has no text to look for a quote in "
                "(lists of chunks with texts, or --map, tell more)"
            )
        if self.anywhere:
            found.append(
                f"{_many(self.anywhere, 'expected text')} looked for in any document, because a "
                "run does not know its document"
            )
        if self.unplaced:
            found.append(
                f"{_many(self.unplaced, 'place')} left out that gold gives beside the evidence: "
                "the document changed, or a run has no spans to compare with"
            )
        if self.negatives:
            found.append(
                f"{_many(self.negatives, 'hard negative')} left out on both sides: no place or "
                "quote recognises it in both runs"
            )
        if left_out:
            found.append(
                f"{_many(left_out, 'expected piece')} left out on both sides: nothing recognises "
                "it in both runs"
            )
        return found


def _many(count: int, what: str) -> str:
    return f"{count:,} {what} was" if count == 1 else f"{count:,} {what}s were"


def match_of(counts: Mapping[Rung, int]) -> Match:
    """One word for the rungs of all expected pieces."""
    used = [rung for rung in RUNGS if counts[rung]]
    if not used or used == ["none"]:
        return "none"
    if len(used) > 1:
        return "mixed"
    matches: dict[Rung, Match] = {
        "exact": "exact",
        "doc_span": "fallback_doc_span",
        "quote": "fallback_quote",
        "doc": "fallback_doc",
    }
    return matches[used[0]]
