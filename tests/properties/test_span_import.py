"""Traces that are written as spans and read again are the same, in any order, cut and encoding."""

from __future__ import annotations

import json
from importlib.util import find_spec
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from tests.support.effort import examples
from tests.support.spans import body, imported, protobuf, span

# Nothing in brackets, which would cite, and no JSON, which would be taken apart.
WORDS = st.text(st.characters(exclude_categories=("Cs", "Cc"), exclude_characters='[]{}【】"'))
TEXT = WORDS.filter(lambda text: bool(text.strip()) and "citations" not in text.lower())
Fields = dict[str, st.SearchStrategy[Any]]
HIT_FIELDS: Fields = {
    "doc": TEXT,
    "score": st.floats(allow_nan=False, allow_infinity=False),
    "text": st.text(st.characters(codec="utf-8"), min_size=1),
}
ID: Fields = {"id": TEXT}
HIT = st.fixed_dictionaries(ID, optional=HIT_FIELDS)
ASKED: Fields = {"question": TEXT, "hits": st.lists(HIT, max_size=12)}
TRACE_FIELDS: Fields = {"qid": TEXT, "answer": TEXT, "session": TEXT, "index_hash": TEXT}
TRACE = st.fixed_dictionaries(ASKED, optional=TRACE_FIELDS)


def spans_of(number: int, trace: dict[str, Any]) -> list[dict[str, Any]]:
    """A trace as OpenInference would write it."""
    metadata = {name: trace[name] for name in ("qid", "index_hash") if name in trace}
    top = {"openinference.span.kind": "CHAIN", "input.value": trace["question"]}
    if metadata:
        top["metadata"] = json.dumps(metadata)
    if "answer" in trace:
        top["output.value"] = trace["answer"]
    if "session" in trace:
        top["session.id"] = trace["session"]
    found: dict[str, Any] = {"openinference.span.kind": "RETRIEVER", "input.value": "rewritten"}
    for rank, hit in enumerate(trace["hits"]):
        prefix = f"retrieval.documents.{rank}.document"
        found[f"{prefix}.id"] = hit["id"]
        if "doc" in hit:
            found[f"{prefix}.metadata"] = json.dumps({"source": hit["doc"]})
        if "score" in hit:
            found[f"{prefix}.score"] = float(hit["score"])
        if "text" in hit:
            found[f"{prefix}.content"] = hit["text"]
    return [span(1, top, trace=number), span(2, found, parent=1, trace=number)]


ENCODINGS = st.booleans() if find_spec("opentelemetry") else st.just(False)
"""Whether spans are protobuf; without its package they are JSON."""


@given(st.lists(TRACE, min_size=1, max_size=5), st.integers(0, 2**32), ENCODINGS)
@examples(60)
def test_what_is_written_as_spans_is_read_as_it_was(
    traces: list[dict[str, Any]], seed: int, as_protobuf: bool
) -> None:
    spans = [one for number, trace in enumerate(traces, 1) for one in spans_of(number, trace)]
    rng = Random(seed)
    rng.shuffle(spans)
    cut = rng.randrange(len(spans) + 1)
    with TemporaryDirectory() as folder:
        paths = []
        for number, part in enumerate((spans[:cut], spans[cut:])):
            if part:
                path = Path(folder) / f"{number}.spans"
                request = body(*part)
                data = protobuf(request) if as_protobuf else json.dumps(request).encode()
                path.write_bytes(data)
                paths.append(path)
        rows = imported(*paths)
    for row in rows:
        del row["latency_ms"], row["perf"], row["ts"], row["trace_id"], row["span_id"]
    assert rows == traces
