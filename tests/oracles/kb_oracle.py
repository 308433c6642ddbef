"""The seven numbers of the kb evaluation, one query at a time, written from its description.

Nothing of the package is imported, so that the two can disagree. What the description leaves open
is decided here as the specification decides it, and said beside the line.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from fractions import Fraction
from typing import Any, Literal, NamedTuple

Row = dict[str, Any]
CUT_OFFS = (1, 3, 5, 10)
DEEPEST = 10


class Share(NamedTuple):
    """A mean and over how many queries it is; null over none."""

    value: Fraction | None
    n: int

    @property
    def stored(self) -> float | None:
        """As it is written down: four decimals."""
        return None if self.value is None else round(float(self.value), 4)


def mean(values: Sequence[Fraction | bool]) -> Share:
    if not values:
        return Share(None, 0)
    return Share(sum(map(Fraction, values), Fraction(0)) / len(values), len(values))


def hits_of(result: Row) -> list[Row]:
    """The hits in their order; a query that failed returned none, whatever was stored of it."""
    return [] if failed(result) else list(result.get("hits_top_k") or [])


def failed(result: Row) -> bool:
    return result.get("error") is not None


def answer_of(result: Row) -> Row | None:
    """The RAG answer; a search alone has none, and neither has a query that failed."""
    return None if failed(result) else result.get("answer")


def first_correct(query: Row, result: Row) -> int | None:
    """The rank of the first chunk that is expected."""
    for rank, hit in enumerate(hits_of(result), start=1):
        if hit["chunk_id"] in query["expected_chunk_ids"]:
            return rank
    return None


def covered(query: Row, result: Row, k: int) -> Fraction:
    """Which part of the expected documents the first k chunks belong to."""
    expected = set(query["expected_doc_ids"])
    seen = {hit["doc_id"] for hit in hits_of(result)[:k]}
    return Fraction(len(expected & seen), len(expected))


def reciprocal(query: Row, result: Row) -> Fraction:
    rank = first_correct(query, result)
    return Fraction(0) if rank is None or rank > DEEPEST else Fraction(1, rank)


def right_strings(query: Row, answer: Row) -> bool:
    text = answer["answer"]
    present = all(each in text for each in query.get("must_contain") or [])
    return present and not any(each in text for each in query.get("forbidden") or [])


def cited(answer: Row) -> list[Any]:
    """What the citations name: a chunk by its id, or a place as (path, first line, last line)."""
    named: list[Any] = []
    for each in answer["citations"]:
        place = each["citation"] if isinstance(each, dict) else each
        if isinstance(place, dict):
            place = (place["path"], place["start"], place["end"])
        named.append(place)
    return named


def chunks_of(results: Sequence[Row]) -> set[Any]:
    """What the queries of a run returned, by id and by place: all that is known without the DB."""
    known: set[Any] = set()
    for hit in (hit for result in results for hit in hits_of(result)):
        place = hit["citation"]
        known |= {hit["chunk_id"], (place["path"], place["start"], place["end"])}
    return known


def aggregate(
    golden: Sequence[Row],
    results: Sequence[Row],
    *,
    database: Collection[Any] | None = None,
    unstored: Literal["invisible", "missed"] = "invisible",
) -> dict[str, Share]:
    """All metrics of a run.

    A query without a stored result is invisible to the source; `missed` counts it as one that
    found nothing, where something was to be found.
    """
    stored = {result["query_id"]: result for result in results}
    asked = [(query, stored[query["id"]]) for query in golden if query["id"] in stored]
    searched = list(asked)
    if unstored == "missed":
        searched += [(query, {}) for query in golden if query["id"] not in stored]
    by_chunk = [pair for pair in searched if pair[0].get("expected_chunk_ids")]
    by_doc = [pair for pair in searched if pair[0].get("expected_doc_ids")]
    found: dict[str, Share] = {}
    for k in CUT_OFFS:
        ranks = [first_correct(query, result) for query, result in by_chunk]
        found[f"hit@{k}"] = mean([rank is not None and rank <= k for rank in ranks])
        found[f"recall@{k}_doc"] = mean([covered(query, result, k) for query, result in by_doc])
    found["mrr"] = mean([reciprocal(query, result) for query, result in by_chunk])
    found["empty_result_rate"] = mean([not hits_of(result) for _, result in asked])
    answers = [
        (query, answer)
        for query, result in asked
        if (answer := answer_of(result)) is not None
    ]  # fmt: skip
    # A query without strings asks for nothing, and is right whatever is said.
    found["groundedness"] = mean([right_strings(query, answer) for query, answer in answers])
    known = chunks_of(results) if database is None else database
    # Every one of no citations resolves.
    found["citation_coverage"] = mean(
        [
            all(each in known for each in cited(answer))
            for _, answer in answers
            if answer["grounded"]
        ]
    )
    # The key must be there: without it the query says nothing of refusing.
    found["refusal_correctness"] = mean(
        [
            answer["grounded"] is False
            for query, answer in answers
            if query.get("expected_doc_ids") == []
        ]
    )
    return found
