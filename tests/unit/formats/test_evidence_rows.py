"""A gold table with a row for each piece of evidence is read as one item a question."""

from __future__ import annotations

from pathlib import Path

import pytest

from ragauge import load_gold
from ragauge.errors import RagaugeError
from ragauge.model.gold import GoldItem


def items(tmp_path: Path, *lines: str, **fields: str) -> list[GoldItem]:
    path = tmp_path / "gold.csv"
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return list(load_gold(path, fields={"gold": fields}).items)


def test_rows_of_one_question_are_its_evidence(tmp_path: Path) -> None:
    found = items(
        tmp_path,
        "qid,question,relevant,tags",
        "q1,Why not?,a#1,x",
        "q2,Who else?,b#1,x",
        "q1,why  NOT?,a#2,x",
        "q3,When?,,x",
    )
    assert [(item.qid, item.relevant) for item in found] == [
        ("q1", ("a#1", "a#2")),
        ("q2", ("b#1",)),
        ("q3", ()),
    ]


def test_without_ids_the_question_tells_them_apart(tmp_path: Path) -> None:
    found = items(tmp_path, "question,relevant_docs", "Why?,a.md", "Why?,b.md", "Who?,a.md")
    assert [item.relevant_docs for item in found] == [("a.md", "b.md"), ("a.md",)]


def test_judgements_have_grades(tmp_path: Path) -> None:
    found = items(
        tmp_path, "qid,passage,relevance", "q1,a,2", "q1,b,0", "q2,c,1", relevant="passage"
    )
    assert [dict(item.grades) for item in found] == [{"a": 2, "b": 0}, {"c": 1}]


def test_rows_that_say_something_else_are_two_items(tmp_path: Path) -> None:
    """Then an id is there twice, which is an error with its line where gold is scored."""
    found = items(tmp_path, "qid,question,relevant", "q1,Why?,a", "q1,Who?,b")
    assert [item.relevant for item in found] == [("a",), ("b",)]
    same = items(tmp_path, "qid,question,relevant", "q1,Why?,a", "q1,Why?,a")
    assert len(same) == 2


def test_an_item_stands_on_the_line_of_its_first_row(tmp_path: Path) -> None:
    with pytest.raises(RagaugeError) as caught:
        items(tmp_path, "qid,relevant,grades", "q1,a,", "q1,b,", 'q2,c,"{""c"": ""x""}"', "q3,d,")
    place = caught.value.problems[0].place
    assert place is not None
    assert place.line == 4


@pytest.mark.parametrize(
    ("cell", "ids"),
    [
        ("a-1|b-2", ("a-1", "b-2")),
        ("a-1; b-2", ("a-1", "b-2")),
        ("a-1, b-2", ("a-1", "b-2")),
        ("1,2", ("1", "2")),
        ("Smith, John.pdf", ("Smith, John.pdf",)),  # a name with a comma
        ('["a,1", "b"]', ("a,1", "b")),
    ],
)
def test_ids_in_one_cell(tmp_path: Path, cell: str, ids: tuple[str, ...]) -> None:
    quoted = cell.replace('"', '""')
    (item,) = items(tmp_path, "qid,relevant", f'q1,"{quoted}"')
    assert item.relevant == ids
