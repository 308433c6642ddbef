"""Dialects: which field names a family of files uses, and how to recognise it."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct


class Dialect(Struct, frozen=True, kw_only=True):
    """A family of files: the names it owns, the marks it is known by, the profile it implies.

    An own name wins over any other spelling in the row; among own names the first that is there
    and not empty wins. `expects_by_docs`: an item that expects no document is to be refused, one
    that expects some is to be answered.
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
    expects_by_docs: bool = False
