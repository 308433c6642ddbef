"""Paths into rows: dotted with `[]` in the core, JMESPath beyond."""

from __future__ import annotations

from typing import Any

import pytest

from ragauge.errors import RagaugeError
from ragauge.formats.field_path import MISSING, field_path
from tests.support.cases import cases

ROW = {
    "response": "Yes.",
    "metadata": {"qid": "A1", "x.y": 2},
    "flat.name": "dots",
    "sources": [
        {"id": "a", "node": {"text": "t1"}},
        {"id": "b"},
        {"node": {"text": "t3"}},
    ],
    "groups": [{"docs": [{"id": "a"}, {"id": "b"}]}, {}, {"docs": [{"id": "c"}]}],
    "packed": '{"documents": [{"id": "p1"}, {"id": "p2"}]}',
    "nothing": None,
    "prose": "[1] is what it says",
    "context_10": "c10",
    "context_1": "c1",
    "context_2": "",
    "context_11": "",
    "context_x": "no",
    "hit 1 id": "h1",
}


@cases(
    ("path", "value"),
    [
        ("response", "Yes."),
        ("metadata.qid", "A1"),
        ('metadata."x.y"', 2),
        ("flat.name", "dots"),  # a name that has the dot itself
        ("sources[0].id", "a"),
        ("sources[-1].node.text", "t3"),
        ("groups[].docs[].id", ["a", "b", "c"]),  # the group without docs adds no entry
        ("packed.documents[].id", ["p1", "p2"]),  # JSON inside of a text
        ("nothing", None),
        ("context_*", ["c1", "", "c10"]),  # by number, without the empty ones at the end
        ("hit * id", ["h1"]),
        ("other_*", MISSING),
        ("absent", MISSING),
        ("response.inner", MISSING),
        ("sources[7].id", MISSING),
        ("absent[].id", MISSING),
        ("prose.inner", MISSING),
    ],
)
def test_dotted_paths(path: str, value: Any) -> None:
    assert field_path(path).find(ROW) == value


def test_an_entry_without_the_field_keeps_its_rank() -> None:
    """The third source has no id: without its null, nothing below it would be at its rank."""
    assert field_path("sources[].id").find(ROW) == ["a", "b", None]


def test_each_entry_of_what_is_no_list_stays_what_it_is() -> None:
    """Whoever reads the field says that it is no list; here nothing is guessed."""
    assert field_path("response[].id").find(ROW) == "Yes."


def test_other_expressions_are_jmespath() -> None:
    path = field_path("sources[?id=='b'].id | [0]")
    assert path.find(ROW) == "b"
    assert path.find({"sources": []}) is MISSING
    assert field_path("sources[].{id: id, text: node.text}").find(ROW)[0] == {
        "id": "a",
        "text": "t1",
    }


def test_a_path_that_is_neither_is_refused() -> None:
    with pytest.raises(RagaugeError) as raised:
        field_path("sources[?id=")
    assert raised.value.code == "bad-field-path"


def test_without_the_package_jmespath_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    import sys

    monkeypatch.setitem(sys.modules, "jmespath", None)
    with pytest.raises(RagaugeError) as raised:
        field_path("sources[*].id")
    assert raised.value.code == "missing-extra"
    assert "ragauge[http]" in str(raised.value)
