"""Every path reads every spelling of every field; the tables are the one place to add one."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import ragauge
from ragauge.formats import fast_rows
from tests.support import spellings
from tests.support.cases import cases

FAST_FIELDS = {*fast_rows._ROW_TYPES, *fast_rows._SHAPED}
REPOSITORY = Path(__file__).parents[3]


@pytest.mark.slow
def test_every_path_reads_every_spelling(tmp_path: Path) -> None:
    """Fast, exact, in memory and stored: one trace; and one score, whatever the field is called."""
    assert spellings.disagreements(tmp_path) == []


@pytest.mark.slow
def test_workers_read_every_spelling(tmp_path: Path) -> None:
    """Two processes give the scores that one gives."""
    assert not spellings.pool_disagreement(tmp_path)


def test_every_spelling_of_a_gold_field_is_read(tmp_path: Path) -> None:
    assert spellings.gold_disagreements(tmp_path) == []


@cases(
    "spelled",
    [row for row in spellings.trace_rows() if row.table == "row" and row.field in FAST_FIELDS],
    ids=lambda row: row.name,
)
def test_usual_fields_are_fast_under_any_name(spelled: spellings.Spelled) -> None:
    """The comparison says something: no spelling of these sends a row to the exact path."""
    assert spellings.fast_trace(spelled.row) is not None


def test_a_field_that_nothing_reads_is_noticed() -> None:
    """The fast path knows of unread fields: rows read in full keep them, by the exact path."""
    row = {**spellings.BASE, "mood": "good"}
    data = spellings.as_line(row)
    assert fast_rows.FastDecoder(unread=False).row(data) is None
    lenient = fast_rows.FastDecoder(unread=True)
    assert lenient.row(data) is not None
    shape = fast_rows.shape_of(data)
    assert shape is not None
    assert shape.extent == "unread"
    assert spellings.exact_trace(row).extra == {"mood": "good"}


def test_rows_of_two_systems_with_optional_fields_need_few_decoders(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """To make a decoder takes far longer than to read a row: fields that come and go need none."""
    monkeypatch.setattr(fast_rows, "_decoders", {})
    objects: dict[str, Any] = {"topk": [{"id": "a#1", "score": 1.0}], "answer": {"text": "yes"}}
    texts: dict[str, Any] = {"retrieved_ids": ["a#1"], "answer": "yes", "citations": ["a#1"]}
    optional: dict[str, Any] = {
        "seed": 1,
        "q": "why?",
        "elapsed_ms": 3,
        "build": "b",
        "rev": "r",
        "turn": 1,
    }
    decoder = fast_rows.FastDecoder(unread=False)
    for number in range(2 ** len(optional)):
        chosen = [name for bit, name in enumerate(optional) if number >> bit & 1]
        row = {"qid": "1", **(objects if number % 2 else texts)}
        row |= {name: optional[name] for name in chosen[:: 1 if number % 3 else -1]}
        assert decoder.row(spellings.as_line(row)) is not None
    assert len(fast_rows._decoders) < 8


def test_shapes_share_a_decoder_whatever_fields_there_are_and_in_whatever_order() -> None:
    """A log of many systems would else make a decoder for every combination that it holds."""
    rows: list[dict[str, Any]] = [
        {"qid": "1", "question": "why?", "topk": ["a#1"]},
        {"topk": ["a#1"], "seed": 1, "question": "why?", "build": "b", "qid": "1"},
    ]
    shapes = [fast_rows.shape_of(spellings.as_line(row)) for row in rows]
    assert shapes[0] is not None
    assert shapes[1] is not None
    assert shapes[0] != shapes[1]
    assert fast_rows._decoder(shapes[0]) is fast_rows._decoder(shapes[1])


def test_two_spellings_of_one_field_are_for_the_exact_path() -> None:
    """Whether they agree, and which one wins under a dialect, only the exact path knows."""
    for more in ({"q_id": "q9"}, {"topk": ["p9"]}, {"hits": [{"id": "p2"}]}):
        assert spellings.fast_trace({**spellings.BASE, **more}) is None
        assert spellings.fast_trace({**spellings.BASE, **dict.fromkeys(more)}) is not None


ADDED = """
def _with_made_up(table):
    return {
        field: tuple(dict.fromkeys((*names, f"made_up_{field}"))) for field, names in table.items()
    }


TABLE = _with_made_up(TABLE)
"""
CHECK = """
import sys
from pathlib import Path
from tests.support import spellings
from ragauge.model import field_spellings

folder = Path(sys.argv[1])
assert "made_up_hits" in field_spellings.TRACE_NAMES
assert "made_up_relevant" in field_spellings.GOLD_NAMES
assert len([row for row in spellings.trace_rows() if "made_up" in row.name]) > 30
print(spellings.disagreements(folder, prefix="made_up") + spellings.gold_disagreements(folder))
print(spellings.pool_disagreement(folder))
"""


@pytest.mark.slow
def test_a_spelling_added_to_a_table_is_read_everywhere(tmp_path: Path) -> None:
    """In a copy of the package each field gets one more name, in the tables and nowhere else."""
    copy = tmp_path / "ragauge"
    shutil.copytree(Path(ragauge.__file__).parent, copy, ignore=shutil.ignore_patterns("*.pyc"))
    source = (copy / "model" / "field_spellings.py").read_text(encoding="utf-8")
    for table in ("GOLD", "TRACE", "HIT", "ANSWER", "PERF"):
        name = f"{table}_SPELLINGS"
        (written,) = re.findall(rf"(?ms)^{name}: Mapping.*?^\}}\n", source)
        source = source.replace(written, written + ADDED.replace("TABLE", name))
    (copy / "model" / "field_spellings.py").write_text(source, encoding="utf-8")
    path = os.pathsep.join([str(tmp_path), str(REPOSITORY)])
    result = subprocess.run(
        [sys.executable, "-c", CHECK, str(tmp_path)],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": path},
        check=False,
    )
    assert result.stderr == ""
    assert result.stdout == "[]\nFalse\n"
