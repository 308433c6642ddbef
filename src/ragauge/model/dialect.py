"""Dialects: which field names a family of files uses, and how to recognise it."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct

from ragauge.model.field_spellings import GOLD_SPELLINGS, TRACE_SPELLINGS


class Dialect(Struct, frozen=True, kw_only=True):
    """A family of files: the names it owns, the marks it is known by, the profile it implies.

    An own name wins over any other spelling in the row; among own names the first that is there
    and not empty wins. `expects_by_docs`: an item that expects no document is to be refused, one
    that expects some is to be answered. Of the fields in `sole_gold` and `sole_trace` only own
    names are read where the profile is asked for by name, because the source reads no other.
    `cites_in_text`: without a list of citations, `[1]` in the text cites the first hit; no source
    reads that.
    """

    name: str
    title: str
    source: str
    profile: str
    gold_marks: frozenset[str]
    trace_marks: frozenset[str]
    own_gold: Mapping[str, tuple[str, ...]]
    own_trace: Mapping[str, tuple[str, ...]]
    strip_citations: bool = False
    cites_in_text: bool = False
    expects_by_docs: bool = False
    sole_gold: tuple[str, ...] = ()
    sole_trace: tuple[str, ...] = ()

    @property
    def closed_gold(self) -> frozenset[str]:
        """The names in gold that are not read where only own names are."""
        return _closed(self.sole_gold, self.own_gold, GOLD_SPELLINGS)

    @property
    def closed_trace(self) -> frozenset[str]:
        """The names in traces that are not read where only own names are."""
        closed = _closed(self.sole_trace, self.own_trace, TRACE_SPELLINGS)
        return closed | {"retrieval"} if "hits" in self.sole_trace else closed


def _closed(
    fields: tuple[str, ...],
    own: Mapping[str, tuple[str, ...]],
    spellings: Mapping[str, tuple[str, ...]],
) -> frozenset[str]:
    return frozenset(
        name for field in fields for name in spellings[field] if name not in own.get(field, ())
    )
