"""What targets share: settings in addresses, and documents of other libraries made hits."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from ragauge.errors import RagaugeError
from ragauge.model.target import TargetError, TargetOptions
from ragauge.spans import Span
from ragauge.targets.shared.address import TargetSettings, split_address
from ragauge.targets.shared.foreign_hits import HitMaker, by_score, flat
from tests.support.cases import cases
from tests.support.corpora import made
from tests.support.target_calls import NATIVE, RED


def hit_of(metadata: dict[str, Any], *, corpus: Path | None = None, **more: Any) -> dict[str, Any]:
    """The hit of a document; `options` are those of the command line."""
    settings = TargetSettings(more.pop("options", {}))
    options = TargetOptions(corpus=None if corpus is None else str(corpus))
    return HitMaker(settings, options).hit(metadata, **more)


@pytest.mark.parametrize(
    ("address", "place", "given"),
    [
        ("dir", "dir", {}),
        ("dir?", "dir", {}),
        ("?a=1", "", {"a": "1"}),
        ("C:\\x?a=b%20c&embedder.path=/m", "C:\\x", {"a": "b c", "embedder.path": "/m"}),
        ("dir?a=", "dir", {"a": ""}),
        ("dir?a=x=y", "dir", {"a": "x=y"}),
    ],
)
def test_an_address_is_a_place_with_settings(
    address: str, place: str, given: dict[str, str]
) -> None:
    found, settings = split_address(address, TargetOptions(), ("a", "embedder."))
    assert (found, settings.given) == (place, given)


def test_unknown_settings_may_belong_to_the_place() -> None:
    options = TargetOptions(settings={"b": 2})
    place, settings = split_address("u://h/d?x=1&a=1&y=%2F", options, ("a", "b"), keep_unknown=True)
    assert place == "u://h/d?x=1&y=%2F"
    assert settings.given == {"a": "1", "b": 2}


@pytest.mark.parametrize("address", ["dir?c=1", "dir?c", "dir?embedder.=1"])
def test_an_unknown_setting_is_refused(address: str) -> None:
    with pytest.raises(RagaugeError) as raised:
        split_address(address, TargetOptions(), ("a", "embedder."))
    assert raised.value.problems[0].hint == "known: a, embedder.NAME"


@cases(
    ("metadata", "spans"),
    [
        ({"start": 3, "end": 9}, (Span(3, 9),)),
        ({"start": 3, "end": 9, "unit": "char"}, (Span(3, 9, "char"),)),
        ({"start_byte": 3, "end_byte": 9}, (Span(3, 9),)),
        ({"start_char": 3, "end_char": 9}, (Span(3, 9, "char"),)),
        ({"start_char_idx": 0, "end_char_idx": 9}, (Span(0, 9, "char"),)),
        ({"start_index": 3}, (Span(3, 8, "char"),)),  # five characters of text
        ({"offsets": [3, 9]}, (Span(3, 9),)),
        ({"source_spans": [[3, 9], [12, 20]]}, (Span(3, 9), Span(12, 20))),
        ({"line_start": 3, "line_end": 4}, (Span(3, 5, "line"),)),
        ({"start": 3}, (Span(3, 9),)),
        ({}, ()),
    ],
)
def test_places_are_read_under_the_names_in_use(
    metadata: dict[str, Any], spans: tuple[Span, ...]
) -> None:
    row = hit_of({**metadata, "source": "a.md"}, name="c", text="Äbcde")
    hit = NATIVE.trace({"hits": [row]}).hits[0]
    assert (hit.id, hit.doc, hit.spans) == ("c", "a.md", spans)


@pytest.mark.parametrize("bad", [{"start": 9, "end": 3}, {"start": "x", "end": 3}, {"offsets": 3}])
def test_a_place_that_cannot_be_read_is_an_error(bad: dict[str, Any]) -> None:
    with pytest.raises(TargetError, match="the place of a document cannot be read"):
        hit_of(bad, name="c")


def test_what_the_library_says_comes_before_metadata_and_options_before_both() -> None:
    metadata = {"id": "meta", "key": "own", "text": "of the metadata", "score": 2}
    assert hit_of(metadata)["id"] == "meta"
    assert hit_of(metadata, name="theirs")["id"] == "theirs"
    assert hit_of(metadata, name="theirs", options={"id": "key"})["id"] == "own"
    assert hit_of(metadata)["text"] == "of the metadata"
    assert hit_of(metadata, text="theirs")["text"] == "theirs"
    assert hit_of(metadata)["score"] == 2.0
    assert hit_of(metadata, score=0.0)["score"] == 0.0


def test_a_field_may_stand_deeper() -> None:
    metadata = {"meta": {"file": {"name": "a.md"}, "n": 3}, "a.b": "dotted"}
    options = {"doc": "meta.file.name", "id": "meta.n", "section": "a.b"}
    assert hit_of(metadata, options=options) == {"id": 3, "doc": "a.md", "section": "dotted"}
    with pytest.raises(TargetError, match=r"no field `meta\.n\.x`; its fields are a\.b, meta"):
        hit_of(metadata, options={"id": "meta.n.x"})


def test_a_document_without_id_and_place_is_an_error() -> None:
    with pytest.raises(TargetError, match="its fields are page, source: name one with --option id"):
        hit_of({"source": "a.md", "page": 3})
    named = NATIVE.trace({"hits": [hit_of({"source": "a.md"}, text="x")]}).hits[0]
    assert (named.doc, named.id[:5]) == ("a.md", "text=")
    row = hit_of({"source": "a.md", "start": 0, "end": 4}, text="x")
    assert "id" not in row  # the reader names it by its place
    assert NATIVE.trace({"hits": [row]}).hits[0].id == "a.md#byte=0-4"


def test_a_corpus_gives_bytes_section_type_and_hash(tmp_path: Path) -> None:
    corpus = made(tmp_path)
    metadata = {"source": "guide.md", "start": 72, "end": 86, "unit": "char"}
    row = hit_of(metadata, name="c", text=RED, corpus=corpus)
    assert (row["offsets"], row["section"], row["type"]) == ([73, 88], "S.1.1", "prose")
    assert len(row["doc_hash"]) == 64
    assert "unit" not in row
    own = hit_of({**metadata, "section": "S.9", "doc_hash": "h"}, name="c", corpus=corpus)
    assert (own["section"], own["doc_hash"]) == ("S.9", "h")
    other = hit_of({**metadata, "source": "other.md"}, name="c", corpus=corpus)
    assert (other["offsets"], other["unit"]) == ([72, 86], "char")
    # Of another version of the document: its text is looked up when the run is scored.
    assert hit_of({**metadata, "end": 870}, name="c", corpus=corpus)["offsets"] == [72, 870]


def test_a_payload_is_laid_flat() -> None:
    assert flat({"a": 1, "metadata": {"a": 2, "b": 3}})["a"] == 1
    assert flat({"a": 1, "metadata": {"a": 2, "b": 3}})["b"] == 3
    assert flat({"a": 1, "metadata": "text"}) == {"a": 1, "metadata": "text"}


def test_equal_scores_are_ordered_by_id() -> None:
    hits = [{"id": "b", "score": 1.0}, {"id": "a", "score": 1.0}, {"id": "c", "score": 2.0}]
    assert [hit["id"] for hit in by_score(hits)] == ["c", "a", "b"]
