"""Packed texts give back what was packed, wherever the bytes lie."""

from __future__ import annotations

import copy
import os
import pickle
from contextlib import ExitStack
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragauge import registry
from ragauge.model.gold import GoldItem
from ragauge.model.options import Options
from ragauge.scoring.gold_table import gold_table
from ragauge.scoring.packed_texts import (
    BlockWriter,
    PackedBlock,
    PackedLists,
    PackedTexts,
    PackedTextWriter,
    Texts,
    UnpackedValues,
    encoded,
)
from ragauge.scoring.trace_columns import GoldKeys

TEXTS = st.text(st.characters(categories=("L", "N", "P", "Cc", "Cs", "So")), max_size=6)


def packed_lists(lists: list[Texts]) -> PackedLists:
    writer, odd = PackedTextWriter(), {}
    for place, texts in enumerate(lists):
        if not writer.add_list(texts):
            odd[place] = texts
    block = BlockWriter()
    block.add_texts("ids", writer)
    return PackedLists(block.block(), "ids", odd)


def keys_of(*qids: str, **fields: object) -> GoldKeys:
    items = [GoldItem(qid=qid, **fields) for qid in qids]  # type: ignore[arg-type]
    return gold_table(items, registry.profile("all"), Options(), name="gold").keys


@given(st.lists(TEXTS))
def test_texts_come_back(texts: list[str]) -> None:
    writer = PackedTextWriter()
    for text in texts:
        writer.add(encoded(text))
    block = BlockWriter()
    block.add_texts("names", writer)
    packed = PackedTexts(block.block(), "names")
    assert list(packed) == texts == packed
    assert [packed[place] for place in range(len(packed))] == texts
    assert packed[1:3] == texts[1:3]
    assert packed[::-2] == texts[::-2]


@given(st.lists(st.lists(TEXTS, max_size=4).map(tuple)))
def test_lists_come_back(lists: list[Texts]) -> None:
    packed = packed_lists(lists)
    assert list(packed) == lists
    assert [packed[place] for place in range(len(packed))] == lists


def test_lists_that_look_like_others_come_back() -> None:
    """No text, one empty text, and a text with what is put between texts are different lists."""
    lists: list[Texts] = [(), ("",), ("", ""), ("a\x1fb",), ("a", "b"), ("\x1f",)]
    assert list(packed_lists(lists)) == lists


@given(st.lists(TEXTS.filter(bool), unique=True), TEXTS)
def test_the_index_finds_what_is_there_and_nothing_else(qids: list[str], other: str) -> None:
    index = keys_of(*qids).by_qid
    assert [index.last(qid) for qid in qids] == list(range(len(qids)))
    assert index.last(other) == (qids.index(other) if other in qids else None)


def test_texts_with_one_hash_are_told_apart() -> None:
    # CRC-32 of both is 0x4DDB0C25.
    index = keys_of("plumless", "buckeroo").by_qid
    assert (index.last("plumless"), index.last("buckeroo")) == (0, 1)
    assert index.last("plumles") is None


def test_a_question_of_two_items_names_neither() -> None:
    keys = keys_of("a", "b", question="Who?", paraphrases=("Who?", "Whose?"))
    assert keys.by_question.numbers("who?") == [0, 1]
    assert keys.by_question.only("who?") is None
    one = keys_of("a", question="Who?", paraphrases=("Who?", "Whose?")).by_question
    assert (one.only("who?"), one.only("whose?"), one.only("Whom?")) == (0, 0, None)


def test_a_shared_block_travels_as_a_path_and_outlives_its_file() -> None:
    qids = [f"question {number}" for number in range(1000)]
    keys = keys_of(*qids, relevant=("a", "b"))
    alone = len(msgspec.msgpack.encode(keys))
    with ExitStack() as stack:
        keys.block.share(stack)
        sent = msgspec.msgpack.encode(keys)
        received = msgspec.msgpack.decode(sent, type=GoldKeys)
        assert list(received.evidence) == [("a", "b")] * 1000
        assert received.by_qid.last("question 7") == 7
        if os.name == "posix":
            assert len(sent) < 1000 < alone
    assert keys.block.path is None
    assert list(PackedTexts(keys.block, "qid")) == qids
    assert keys.by_qid.last("question 999") == 999
    with ExitStack() as stack:  # for another engine
        keys.block.share(stack)
        received = msgspec.msgpack.decode(msgspec.msgpack.encode(keys), type=GoldKeys)
        assert received.by_qid.last("question 999") == 999


def test_a_pickled_copy_is_a_plain_list() -> None:
    block = keys_of("a", "b").block
    with ExitStack() as stack:
        block.share(stack)
        qids = PackedTexts(block, "qid")
        assert pickle.loads(pickle.dumps(qids)) == copy.deepcopy(qids) == ["a", "b"]


def test_without_room_for_a_file_the_bytes_travel(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "missing"))
    keys = keys_of("a", "b")
    with ExitStack() as stack:
        keys.block.share(stack)
        received = msgspec.msgpack.decode(msgspec.msgpack.encode(keys), type=GoldKeys)
    assert keys.block.path is None
    assert received.by_qid.last("b") == 1


def test_offsets_of_64_bits_are_read() -> None:
    """Texts of 4 GiB and more have wide offsets; here few texts have them too."""
    writer = BlockWriter()
    writer._wide = True
    texts = PackedTextWriter()
    for text in ("one", "", "three"):
        texts.add(encoded(text))
    writer.add_texts("names", texts)
    block = writer.block()
    assert list(PackedTexts(block, "names")) == ["one", "", "three"]
    decoded = msgspec.msgpack.decode(msgspec.msgpack.encode(block), type=PackedBlock)
    assert list(PackedTexts(decoded, "names")) == ["one", "", "three"]


def test_only_so_many_values_stay() -> None:
    made: list[int] = []

    def double(number: int) -> int | None:
        made.append(number)
        return None if number < 0 else 2 * number

    cached = UnpackedValues(double, most=2)
    assert [cached[number] for number in (1, 2, 3, 3, 2, 1, -1, -1)] == [
        2,
        4,
        6,
        6,
        4,
        2,
        None,
        None,
    ]
    assert made == [1, 2, 3, 3, -1, -1]
