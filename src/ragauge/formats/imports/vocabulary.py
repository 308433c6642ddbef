"""A convention for spans, as a component: which span retrieved, and where its documents stand."""

from __future__ import annotations

from collections.abc import Callable

from msgspec import Struct

from ragauge.formats.imports.span import SpanFacts, TraceSpan


class Vocabulary(Struct, frozen=True, kw_only=True):
    """How one convention names things in the attributes of a span.

    marks     a span with one of these attributes is of the convention
    prefixes  so do attributes begin that are left where an exporter dropped the marks
    general   tried behind the others: a span may follow this convention beside another one
    read      what a span of the convention says
    """

    name: str
    title: str
    marks: tuple[str, ...]
    read: Callable[[TraceSpan], SpanFacts]
    prefixes: tuple[str, ...] = ()
    general: bool = False
