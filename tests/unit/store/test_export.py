"""A run goes into a file and comes back as it was, or not at all."""

from __future__ import annotations

import gzip
import io
import json
import math
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest

from ragauge.errors import RagaugeError
from ragauge.model.run import Store, ValueColumn
from ragauge.store import export
from ragauge.store import runs as run_store
from ragauge.store.stored_scores import serialise_values
from tests.support.command import GOLD, TRACES, lines_of
from tests.support.postgres import own_schema, server_url
from tests.support.stored_runs import MORE_GOLD, WRONG, change, put

# Traces of all kinds: an error, a question that nobody asked, seeds, times, ΔS and odd letters.
ODD = [
    {**TRACES[0], "seed": 1, "latency_ms": {"total": 12.25}},
    {**TRACES[0], "seed": "zwei \N{GREEK SMALL LETTER LAMDA}\u2028", "note": {"a": [1, None]}},
    {"qid": "A2", "error": "time is up"},
    {"qid": "Z9", "retrieved_ids": ["p1#1"], "answer_json": {"claim": "?", "citations": []}},
    {"qid": "A3", "retrieved_ids": [{"id": "pB#1", "score": 1 / 3, "text": "only"}]},
]
CHUNKS = [
    {"id": f"c{number}", "doc": "guide.md", "start": number * 10, "end": number * 10 + 10}
    for number in range(2500)  # blocks of 1024
]


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def store() -> Iterator[Store]:
    with run_store.opened_store("sqlite:///ragauge.db", create=True) as opened:
        yield opened


@pytest.fixture
def other() -> Iterator[Store]:
    with run_store.opened_store("sqlite:///other.db", create=True) as opened:
        yield opened


def exported(store: Store, name: str) -> bytes:
    stream = io.BytesIO()
    export.export_run(store, run_store.find_run(store, name), stream)
    return stream.getvalue()


def imported(store: Store, data: bytes, **options: Any) -> export.Imported:
    Path("run.jsonl").write_bytes(data)
    return export.import_run(store, "run.jsonl", **options)


def refused(store: Store, data: bytes) -> RagaugeError:
    """The error of an import that must leave nothing behind."""
    with pytest.raises(RagaugeError) as caught:
        imported(store, data)
    assert caught.value.code == "bad-export"
    assert store.runs() == []
    return caught.value


def sealed(lines: list[bytes]) -> bytes:
    """Lines with an end that says that they are whole."""
    body = b"".join(lines[:-1])
    end = {**json.loads(lines[-1]), "sha256": sha256(body).hexdigest()}
    return body + json.dumps(end).encode() + b"\n"


def everything(store: Store, run_id: str) -> list[Any]:
    run = store.run(run_id)
    assert run is not None
    scorings = store.scorings(run_id)
    return [
        msgspec.structs.replace(run, tags=()),
        list(store.gold(run.gold_key)),
        [] if run.chunks is None else list(store.chunks(run.chunks)),
        list(store.results(run_id)),
        scorings,
        [store.values(run_id, each.number) for each in scorings],
    ]


def test_a_run_comes_back_as_it_was(store: Store, other: Store) -> None:
    """Whatever is stored of a run is the same in the other store; only tags stay behind."""
    put(store, "a", ODD, profile="all", tags=("nightly",), commit_hash="abc", suite="s",
        system={"embedder": {"model": "\x1b x"}})  # fmt: skip
    data = exported(store, "a")
    assert imported(other, data).counts.results == 5
    assert everything(other, "a") == everything(store, "a")
    assert run_store.find_run(other, "a").tags == ()
    assert exported(other, "a") == data


def test_a_list_of_chunks_comes_along(store: Store, other: Store) -> None:
    Path("chunks.jsonl").write_bytes(lines_of(CHUNKS))
    put(store, "a", gold=[{**GOLD[0], "gold_citations": ["c7"]}],
        traces=[{**TRACES[0], "retrieved_ids": ["c8", "p1#1"]}],
        chunks=Path("chunks.jsonl"), profile="all")  # fmt: skip
    data = exported(store, "a")
    kinds = [json.loads(line)["kind"] for line in data.splitlines()]
    assert kinds.count("chunks") == 3  # 2500 chunks, 1024 to a block
    imported(other, data)
    assert everything(other, "a") == everything(store, "a")
    assert exported(other, "a") == data


def test_every_line_is_json_that_any_tool_can_read(store: Store) -> None:
    put(store, "a")
    lines = [json.loads(line) for line in exported(store, "a").splitlines()]
    assert lines[0]["schema"] == "ragauge.run/2"
    assert lines[0]["snapshot"]["inputs"]["gold_name"] == "gold.jsonl"
    gold = [line["item"]["qid"] for line in lines if line["kind"] == "gold"]
    assert gold == ["A1", "A2", "A3"]
    traces = [line["trace"] for line in lines if line["kind"] == "result"]
    assert traces[2]["answer"]["citations"] == ["pB#1"]
    values = {line["metric"]: line["values"] for line in lines if line["kind"] == "values"}
    assert values["answer.grounded_precision"] == [1.0, None, 1.0]  # A2 is refused
    assert lines[-1]["counts"] == {
        "gold": 3, "chunks": 0, "results": 3, "scorings": 1, "values": len(values), "unreadable": 0,
    }  # fmt: skip


def test_all_scorings_come_along_in_their_order(store: Store, other: Store) -> None:
    put(store, "a")
    (first,) = store.scorings("a")
    later = msgspec.structs.replace(
        first, number=2, created_at="2026-02-01T00:00:00Z", aggregate='{"metrics":{}}'
    )
    store.add_scoring("a", later, store.values("a", 1)[:2])
    data = exported(store, "a")
    imported(other, data)
    assert [each.number for each in other.scorings("a")] == [1, 2]
    assert run_store.find_run(other, "a").aggregate == '{"metrics":{}}'
    assert everything(other, "a") == everything(store, "a")
    assert exported(other, "a") == data


@pytest.mark.parametrize(
    "values",
    [
        [math.nan, -0.0, 5e-324, 1.7976931348623157e308, 0.1 + 0.2, 1 / 3],
        [math.inf, math.nan, 1.0],
        [],
    ],
)
def test_numbers_come_back_to_the_last_bit(store: Store, other: Store, values: list[float]) -> None:
    put(store, "a")
    (first,) = store.scorings("a")
    payload = serialise_values(np.array(values, np.float64))
    column = ValueColumn("answer.precision", 3, payload)
    store.add_scoring("a", msgspec.structs.replace(first, number=2), [column])
    imported(other, exported(store, "a"))
    assert other.values("a", 2) == [column]


def test_rows_that_cannot_be_read_are_kept_byte_by_byte(store: Store, other: Store) -> None:
    put(store, "a")
    for ordinal, data in ((0, b"\x00\xff"), (1, b"")):
        change("UPDATE eval_query_results SET result_json = ? WHERE ordinal = ?", data, ordinal)
    change("UPDATE eval_scorings SET questions = x'01'")
    change("UPDATE eval_metric_values SET payload = x'02' WHERE metric = 'refusal.over'")
    change("UPDATE eval_runs SET evidence = x'03', config_snapshot_json = 'no { JSON'")
    data = exported(store, "a")
    done = imported(other, data)
    assert done.counts.unreadable == 5  # two results, the questions, a metric, the evidence
    assert everything(other, "a") == everything(store, "a")
    assert exported(other, "a") == data


def test_without_its_gold_set_a_run_is_not_exported(store: Store) -> None:
    put(store, "a")
    change("UPDATE eval_gold_items SET item_json = x'00' WHERE ordinal = 1")
    with pytest.raises(RagaugeError) as caught:
        exported(store, "a")
    assert caught.value.code == "bad-store"


def test_a_file_that_ends_early_is_refused_wherever_it_ends(store: Store, other: Store) -> None:
    put(store, "a")
    data = exported(store, "a")
    lines = data.splitlines(keepends=True)
    cuts = {0, 1, len(data) - 1, len(data) // 2}
    cuts |= {len(b"".join(lines[:count])) for count in range(1, len(lines))}
    for cut in sorted(cuts):
        assert "no end" in refused(other, data[:cut]).problems[0].message


def test_a_changed_file_is_refused(store: Store, other: Store) -> None:
    put(store, "a")
    data = exported(store, "a")
    for old, new in ((b"rejects", b"accepts"), (b'"hit_rank":2', b'"hit_rank":1')):
        assert old in data
        assert "changed" in refused(other, data.replace(old, new, 1)).problems[0].message
    lines = data.splitlines(keepends=True)
    refused(other, b"".join([lines[0], *lines[2:]]))
    refused(other, data + lines[-2])
    refused(other, data + b"\n")


def test_a_line_that_should_not_be_there_is_named(store: Store, other: Store) -> None:
    """Also where the sum at the end is right."""
    put(store, "a")
    lines = exported(store, "a").splitlines(keepends=True)
    odd = sealed([*lines[:4], b'{"kind":"poem"}\n', *lines[4:]])
    place = refused(other, odd).problems[0].place
    assert place is not None
    assert place.line == 5
    refused(other, sealed([lines[0], *lines[2:]]))  # no evidence
    refused(other, sealed([*lines[:-3], lines[-1], lines[-1]]))
    refused(other, sealed([*lines[:3], *lines[2:]]))  # a gold item twice
    refused(other, sealed([line for line in lines if b'"kind":"result"' not in line]))
    refused(other, sealed([line for line in lines if b'"kind":"scoring"' not in line]))


def test_another_gold_set_under_the_key_of_one_is_refused(store: Store, other: Store) -> None:
    """Runs share gold sets by their key: a file must not bring another one under it."""
    put(store, "a")
    lines = exported(store, "a").splitlines(keepends=True)
    forged = sealed([line.replace(b"rejects null", b"accepts null") for line in lines])
    refused(other, forged)
    put(other, "mine")  # the same gold set is there now, and still the file is refused
    with pytest.raises(RagaugeError):
        imported(other, forged)
    assert [run.run_id for run in other.runs()] == ["mine"]
    assert b"rejects null" in exported(other, "mine")


def test_an_import_that_fails_half_way_is_undone(
    store: Store, other: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(store, "a")
    data = exported(store, "a")

    def full(*_: object, **__: object) -> None:
        raise RagaugeError.of("store-unavailable", "the disk is full", hint="make room")

    monkeypatch.setattr(other, "finish", full)
    with pytest.raises(RagaugeError) as caught:
        imported(other, data)
    assert caught.value.code == "store-unavailable"
    assert other.runs() == []


def test_an_import_that_is_interrupted_stays_incomplete(
    store: Store, other: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(store, "a")
    data = exported(store, "a")

    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(other, "finish", interrupted)
    with pytest.raises(KeyboardInterrupt):
        imported(other, data)
    assert [(run.run_id, run.status) for run in other.runs()] == [("a", "incomplete")]


def test_an_id_that_is_taken_is_refused_and_its_run_stays(store: Store) -> None:
    put(store, "a")
    put(store, "b", WRONG, day=2)
    before = everything(store, "a")
    with pytest.raises(RagaugeError) as caught:
        imported(store, exported(store, "b"), run_id="a")
    assert caught.value.code == "run-exists"
    assert everything(store, "a") == before
    assert imported(store, exported(store, "b"), run_id="c").run_id == "c"
    assert everything(store, "c")[1:] == everything(store, "b")[1:]


def test_a_run_of_a_newer_ragauge_is_refused(store: Store, other: Store) -> None:
    put(store, "a")
    change("UPDATE eval_runs SET schema_version = 99")
    assert "newer" in refused(other, exported(store, "a")).problems[0].message


@pytest.mark.parametrize("data", [b"", b"{}\n", b"\xff\xfe{}", lines_of(GOLD), b"[1, 2]\n"])
def test_other_files_are_no_exports(other: Store, data: bytes) -> None:
    refused(other, data)


def test_packed_files_are_the_same_every_time_and_read_by_what_is_in_them(
    store: Store, other: Store
) -> None:
    put(store, "a")
    run = run_store.find_run(store, "a")
    for name in ("one.jsonl.gz", "deep/two.jsonl.gz"):
        with export.gzip_if_named_so(name) as file:
            export.export_run(store, run, file)
    data = Path("one.jsonl.gz").read_bytes()
    assert data == Path("deep/two.jsonl.gz").read_bytes()
    assert gzip.decompress(data) == exported(store, "a")
    Path("named.txt").write_bytes(data)
    export.import_run(other, "named.txt")
    assert everything(other, "a") == everything(store, "a")
    with run_store.opened_store("sqlite:///third.db", create=True) as third:
        refused(third, data[: len(data) // 2])


def test_a_file_is_whole_or_not_there(tmp_path: Path) -> None:
    Path("old.jsonl").write_bytes(b"old")

    def stop() -> None:
        with export.gzip_if_named_so("old.jsonl") as file:
            file.write(b"new")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        stop()
    assert Path("old.jsonl").read_bytes() == b"old"
    with export.gzip_if_named_so("old.jsonl") as file:
        file.write(b"new")
    assert Path("old.jsonl").read_bytes() == b"new"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["old.jsonl"]


def test_a_place_that_cannot_be_written_is_named() -> None:
    Path("file").write_bytes(b"")
    with pytest.raises(RagaugeError) as caught, export.gzip_if_named_so("file/run.jsonl"):
        pass
    assert caught.value.code == "file-unreadable"


@pytest.mark.slow
@pytest.mark.xdist_group("postgres")
def test_a_run_goes_from_one_kind_of_store_to_another(
    store: Store, request: pytest.FixtureRequest
) -> None:
    """PostgreSQL gives back the same bytes, keeps nothing of a bad file, and shares gold sets."""
    put(store, "a", ODD, profile="all", system={"prompt": "\N{GREEK SMALL LETTER LAMDA}"})
    data = exported(store, "a")
    forged = sealed(
        [line.replace(b"rejects null", b"accepts null") for line in data.splitlines(True)]
    )
    with (
        own_schema(server_url(request.config)) as url,
        run_store.opened_store(url, create=True) as postgres,
    ):
        refused(postgres, forged)
        imported(postgres, data)
        assert everything(postgres, "a") == everything(store, "a")
        assert exported(postgres, "a") == data
        with pytest.raises(RagaugeError):
            imported(postgres, forged, run_id="b")
        assert [run.run_id for run in postgres.runs()] == ["a"]


@pytest.mark.slow
def test_many_results_go_in_batches(store: Store, other: Store) -> None:
    many = [{**TRACES[0], "seed": seed} for seed in range(5000)]
    put(store, "a", many, gold=MORE_GOLD, profile="all")
    data = exported(store, "a")
    imported(other, data)
    assert sum(1 for _ in other.facts("a")) == 5000
    assert exported(other, "a") == data


# --- texts that hits share ---

LONG, OTHER = "the same chunk of text, " * 8, "another chunk of text, " * 8
SHARED = [
    {**TRACES[0], "retrieved_ids": [{"id": "a", "text": LONG}, {"id": "b", "text": OTHER}]},
    {**TRACES[1], "retrieved_ids": [{"id": "b", "text": OTHER}, {"id": "s", "text": "short"}]},
    {**TRACES[2], "retrieved_ids": [{"id": "s", "text": "short"}, {"id": "a", "text": LONG}]},
]


def test_a_text_is_written_once_and_comes_back_everywhere(store: Store, other: Store) -> None:
    put(store, "a", SHARED, profile="all")
    data = exported(store, "a")
    lines = data.splitlines()
    results = [line for line in map(json.loads, lines) if line["kind"] == "result"]
    assert [line.get("same_texts") for line in results] == [None, [[0, 1]], [[1, 0]]]
    assert b"".join(line for line in lines if b'"kind":"result"' in line).count(LONG.encode()) == 1
    imported(other, data)
    assert everything(other, "a") == everything(store, "a")
    assert exported(other, "a") == data


@pytest.mark.parametrize("same", [[[0, 7]], [[9, 0]], [[0, -1]], [[-1, 0]], [[0, 0], [0, 1]]])
def test_texts_that_did_not_come_before_are_refused(store: Store, other: Store, same: Any) -> None:
    put(store, "a", SHARED, profile="all")
    lines = exported(store, "a").splitlines(keepends=True)
    place = next(n for n, line in enumerate(lines) if b'"same_texts"' in line)
    lines[place] = json.dumps({**json.loads(lines[place]), "same_texts": same}).encode() + b"\n"
    assert "it cannot be read" in refused(other, sealed(lines)).problems[0].message


def test_a_small_file_does_not_unfold_without_end(
    store: Store, other: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(store, "a", SHARED, profile="all")
    data = exported(store, "a")
    monkeypatch.setattr(export.SharedTexts, "ALWAYS_UNFOLDED", 200)
    monkeypatch.setattr(export.SharedTexts, "MOST_TIMES", 0)
    assert "more than 0 times the file" in refused(other, data).problems[0].message


def test_files_of_the_first_form_are_read(store: Store, other: Store) -> None:
    """They repeat every text, and say so in their first line."""
    put(store, "a", ODD, profile="all")
    lines = exported(store, "a").splitlines(keepends=True)
    lines[0] = lines[0].replace(b"ragauge.run/2", b"ragauge.run/1")
    imported(other, sealed(lines))
    assert everything(other, "a") == everything(store, "a")
