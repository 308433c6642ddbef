"""What the tests of targets share: how one is opened, asked, and read back."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec
import pytest

from ragauge import registry
from ragauge.embed.embedders.hashing import Hashing
from ragauge.errors import RagaugeError
from ragauge.formats.traces import RowReader
from ragauge.model.target import Target, TargetOptions, TargetQuestion
from ragauge.model.trace import Hit, Trace
from ragauge.spans import Span
from ragauge.targets.shared.corpus_index import Passages
from tests.support.corpora import LAST

NATIVE = RowReader(registry.dialect("native"), own=False)
LEXICAL: dict[str, Any] = {"embedder": "hashing", "cache": "none"}
"""An embedder without a model, and nothing written to the user's folder."""

RED = "Äpfel are red."
"""A question that LAST answers word by word, and FIRST among other things."""

OF_LAST: dict[str, Any] = {
    "doc": "guide.md",
    "section": "S.1.1",
    "spans": (Span(73, 88),),
    "type": "prose",
}
"""Where LAST lies; see the guide in `corpora`."""


def opened(address: str, *, k: int = 3, corpus: Path | None = None, **settings: Any) -> Target:
    """Open the target behind an address."""
    scheme, _, rest = address.partition(":")
    options = TargetOptions(
        k=k, settings=settings, scheme=scheme, corpus=None if corpus is None else str(corpus)
    )
    return registry.targets()[scheme].open(rest, options)


def asked(target: Target, text: str = RED, **more: Any) -> Trace:
    """The trace of a question, read back as the line of a file would be."""
    row = dict(target.ask(TargetQuestion(qid="Q-1", text=text, **more)))
    return NATIVE.trace(msgspec.json.decode(msgspec.json.encode({"qid": "Q-1", **row})))


def names(hits: Sequence[Hit]) -> list[str]:
    return [hit.id for hit in hits]


def assert_finds_last(trace: Trace) -> None:
    """The first hit is LAST, with its place, section and type, and with its text."""
    first = trace.hits[0]
    assert first.id == LAST
    assert {name: getattr(first, name) for name in OF_LAST} == OF_LAST
    assert first.text == RED
    assert not trace.disordered


def refusal(address: str, **settings: Any) -> RagaugeError:
    """The error of an address that can never work."""
    with pytest.raises(RagaugeError) as raised:
        opened(address, **settings)
    return raised.value


def stored(corpus: Path) -> list[tuple[str, list[float], str, dict[str, Any]]]:
    """The chunks of a corpus as databases hold them: id, vector, text, metadata."""
    passages = Passages(str(corpus))
    texts = list(passages.texts())
    vectors = Hashing().embed(texts, "document").vectors
    rows = []
    for name, chunk, text, vector in zip(
        passages.ids, passages.chunks, texts, vectors, strict=True
    ):
        span = chunk.spans[0]
        metadata = {"source": chunk.doc, "section": chunk.section, "type": chunk.type}
        rows.append(
            (name, vector.tolist(), text, {**metadata, "start": span.start, "end": span.end})
        )
    return rows
