"""Fields that nothing reads are found in a sample of a file, and near misses are named."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from ragauge.files.open import opened
from ragauge.formats.unread_fields import (
    FieldUse,
    field_use,
    near_name,
    sampled_rows,
    unread_notes,
)
from ragauge.model.field_spellings import GOLD_NAMES, TRACE_NAMES
from tests.support.cases import cases


def use_of(
    tmp_path: Path, rows: list[dict[str, Any]], side: str = "trace", **options: Any
) -> FieldUse:
    """Look at the fields of rows that were written as JSON Lines."""
    path = tmp_path / f"{side}.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    with opened(path) as source:
        return field_use(source, "gold" if side == "gold" else "trace", **options)


@cases(
    ("written", "meant"),
    [
        ("gold_citation", "gold_citations"),  # singular and plural
        ("goldCitations", "gold_citations"),  # another way to join words
        ("Gold-Citations", "gold_citations"),
        ("citations_gold", "gold_citations"),  # the order of words
        ("answerble", "answerable"),  # a letter that is lost
        ("anwserable", "answerable"),  # two letters that changed places
        ("paraphrase", "paraphrases"),
        ("qID", "qid"),
        ("tag", "tags"),
        ("time", None),  # one letter off `type`, and another word
        ("gold_standard", None),
        ("title", None),
        ("x" * 10_000, None),
    ],
)
def test_near_misses_of_gold_fields(written: str, meant: str | None) -> None:
    assert near_name(written, GOLD_NAMES) == meant


@cases(
    ("written", "meant"),
    [
        ("retreived_ids", "retrieved_ids"),
        ("retrieved_id", "retrieved_ids"),
        ("ids_retrieved", "retrieved_ids"),
        ("anser_json", "answer_json"),
        ("answers", "answer"),
        ("top_k", "topk"),
        ("contexts", None),
        ("metadata", None),
        ("", None),
    ],
)
def test_near_misses_of_trace_fields(written: str, meant: str | None) -> None:
    assert near_name(written, TRACE_NAMES) == meant


def test_a_near_miss_is_named_with_its_share_of_the_rows(tmp_path: Path) -> None:
    rows = [{"qid": str(n), "gold_citation": ["a"]} for n in range(3)]
    use = use_of(tmp_path, rows, "gold")
    assert unread_notes([use]) == [
        "`gold_citation` is in every gold row looked at and is not read: "
        "did you mean `gold_citations`?"
    ]
    use = use_of(tmp_path, [*rows, {"qid": "4", "gold_citations": ["a"]}], "gold")
    assert unread_notes([use]) == [
        "`gold_citation` is in 3 of 4 gold rows looked at and is not read: "
        "did you mean `gold_citations`?"
    ]


def test_a_near_miss_beside_the_field_itself_is_another_field(tmp_path: Path) -> None:
    use = use_of(tmp_path, [{"qid": "1", "answer": "a", "answers": ["a", "b"]}])
    assert unread_notes([use]) == [
        "1 other field is not read: `ragauge validate --fields` lists it"
    ]


def test_the_rest_of_both_files_is_one_line(tmp_path: Path) -> None:
    gold = use_of(tmp_path, [{"qid": "1", "origin": "x", "author": "y"}], "gold")
    trace = use_of(tmp_path, [{"qid": "1", "host": "x", "retreived_ids": ["a"]}])
    assert unread_notes([gold, trace]) == [
        "`retreived_ids` is in every trace row looked at and is not read: "
        "did you mean `retrieved_ids`?",
        "3 other fields are not read: `ragauge validate --fields` lists them",
    ]


def test_fields_inside_hits_and_answers_are_looked_at(tmp_path: Path) -> None:
    row = {
        "qid": "1",
        "topk": [{"chunkid": "a", "url": "https://example.org"}],
        "answer_json": {"claim": "x", "citation": ["a"], "model": "m"},
        "perf": {"t_retrieve": 1},
    }
    use = use_of(tmp_path, [row])
    assert {entry.name: entry.meant for entry in use.unread} == {
        "topk[].chunkid": "topk[].chunk_id",
        "topk[].url": None,
        "answer_json.citation": "answer_json.citations",
        "answer_json.model": None,
        "perf.t_retrieve": "perf.t_retrieve_ms",
    }


def test_nulls_say_nothing(tmp_path: Path) -> None:
    use = use_of(tmp_path, [{"qid": "1", "note": None, "answer": None}])
    assert use.unread == ()
    assert use.read == {"qid"}


def test_ignored_fields_are_not_named(tmp_path: Path) -> None:
    rows = [{"qid": "1", "gold_citation": ["a"], "origin": "x", "host": "y"}]
    use = use_of(tmp_path, rows, "gold", ignore=("gold_citation", "origin"))
    assert [entry.name for entry in use.unread] == ["host"]


@pytest.mark.parametrize("form", ["lines", "array", "object"])
def test_all_layouts_are_looked_at(tmp_path: Path, form: str) -> None:
    rows = [{"qid": "1", "anwser": "a"}]
    text = {
        "lines": json.dumps(rows[0]),
        "array": json.dumps(rows, indent=1),
        "object": json.dumps(rows[0], indent=1),
    }[form]
    path = tmp_path / "trace.json"
    path.write_text(text)
    with opened(path) as source:
        use = field_use(source, "trace")
    assert [(entry.name, entry.meant) for entry in use.unread] == [("anwser", "answer")]
    assert use.looked == 1


@pytest.mark.parametrize("form", ["lines", "array"])
def test_a_sample_is_the_first_thousand_rows_and_a_thousand_over_the_file(
    tmp_path: Path, form: str
) -> None:
    rows = [{"qid": str(n), "text": "x" * 200} for n in range(20_000)]
    path = tmp_path / "trace.json"
    lines = map(json.dumps, rows)
    path.write_text("\n".join(lines) if form == "lines" else f"[{','.join(lines)}]")
    with opened(path) as source:
        numbers = [int(json.loads(row)["qid"]) for row in sampled_rows(source)]
    assert numbers[:1000] == list(range(1000))
    assert numbers == sorted(set(numbers))  # no row twice
    spread = numbers[1000:]
    assert 900 <= len(spread) <= 1000
    # Every tenth part of what is behind the first thousand is looked at; of lines, evenly.
    parts = [sum(low <= n < low + 1900 for n in spread) for low in range(1000, 20_000, 1900)]
    least, most = (70, 130) if form == "lines" else (40, 300)
    assert all(least <= part <= most for part in parts)


def test_lines_that_are_no_rows_are_passed_over(tmp_path: Path) -> None:
    path = tmp_path / "trace.jsonl"
    path.write_bytes(b'\n{"qid": "1", "anwser": "a"}\nnonsense\n[1]\n\xff\n{"qid": "2"}')
    with opened(path) as source:
        use = field_use(source, "trace")
    assert use.looked == 2
    assert [(entry.name, entry.rows) for entry in use.unread] == [("anwser", 1)]
