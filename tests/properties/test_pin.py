"""Pinning: the quote stands at its bytes, and pinning again changes nothing."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragauge.corpus.build import build
from ragauge.corpus.lookup import Lookup, open_corpus
from ragauge.files.fields import FieldError
from ragauge.gold.pin import Pinner, pin_file
from tests.support.effort import examples

WORDS = st.sampled_from(["port", "Größe", "🙂", "naïve", "日本語", "the", "e\u0301", "x"])
LINES = st.lists(WORDS, min_size=1, max_size=6).map(" ".join)
TEXT = st.lists(st.one_of(LINES, LINES.map("## {}".format)), min_size=1, max_size=8).map(
    "\n\n".join
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("pinning")


def corpus_of(folder: Path, text: str) -> Lookup:
    (folder / "docs").mkdir(exist_ok=True)
    (folder / "docs" / "a.md").write_text(text, "utf-8", newline="\n")
    build([folder / "docs"], folder / "corpus", workers=1)
    return open_corpus(str(folder / "corpus"))


@examples(25)
@given(TEXT, st.data())
def test_a_quote_cut_anywhere_is_pinned_to_its_bytes(
    folder: Path, text: str, data: st.DataObject
) -> None:
    lookup = corpus_of(folder, text)
    start = data.draw(st.integers(0, len(text) - 1))
    end = data.draw(st.integers(start + 1, len(text)))
    pinner = Pinner(lookup)
    by_characters = pinner.entry({"doc": "a.md", "start": start, "end": end, "unit": "char"}, "x")
    entry = by_characters.value
    assert (
        text.encode()[entry["start"] : entry["end"]].decode() == text[start:end] == entry["quote"]
    )
    assert pinner.entry(entry, "x").value == entry
    if not text[start:end].strip():
        return
    count = len([at for at in range(len(text)) if text.startswith(text[start:end], at)])
    if count > 1:
        with pytest.raises(FieldError):
            pinner.entry({"doc": "a.md", "quote": text[start:end]}, "x")
    else:
        pinned = pinner.entry({"doc": "a.md", "quote": text[start:end]}, "x").value
        assert (pinned["start"], pinned["end"]) == (entry["start"], entry["end"])


@examples(25)
@given(TEXT, st.data())
def test_pinning_what_is_pinned_gives_the_same_bytes(
    folder: Path, text: str, data: st.DataObject
) -> None:
    lookup = corpus_of(folder, text)
    ids = [block.id for block in lookup.corpus.blocks]
    if not ids:
        return
    entries: st.SearchStrategy[Any] = st.one_of(
        st.sampled_from(ids),
        st.sampled_from(ids).map(lambda name: {"note": 1, "chunk_id": name}),
        st.just({"doc": "a.md", "start": 0, "end": 1, "unit": "char"}),
    )
    rows = [
        {"qid": str(number), "relevant": data.draw(st.lists(entries, max_size=3))}
        for number in range(3)
    ]
    name = data.draw(st.sampled_from(["gold.jsonl", "gold.json", "gold.yaml"]))
    gold, new = str(folder / name), str(folder / f"new-{name}")
    Path(gold).write_text(json.dumps(rows, ensure_ascii=False), "utf-8")
    pin_file(gold, str(folder / "corpus"), new)
    once = Path(new).read_bytes()
    again = pin_file(new, str(folder / "corpus"), new)
    assert again.changes == {}
    assert Path(new).read_bytes() == once
