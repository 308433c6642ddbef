"""A convention for spans, as a component: which span retrieved, and where its documents stand."""

from __future__ import annotations

from msgspec import Struct


class Vocabulary(Struct, frozen=True, kw_only=True):
    """How one convention names things in the attributes of a span."""

    name: str
    title: str
