"""Gold sets of any content: the order of items plays no part, and no change goes unseen."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from ragauge import registry
from ragauge.gold.lint.check import LintContext, check
from ragauge.gold.lock import compare, lock_text, make_lock, read_lock
from ragauge.model.gold import Anchor, GoldItem
from ragauge.spans import Span

TEXT = st.sampled_from(["", "Why?", "why", "Which port is it?", "Which ports is it?", "8080"])
NAME = st.sampled_from(
    ["c1", "c2", "a.md#S.1.p.Bk001", "a.md#S.1.1.1.1.1.c.Bk001", "b.md#S.2.p.Bk1"]
)
NAMES = st.lists(NAME, max_size=3).map(tuple)
TEXTS = st.lists(TEXT, max_size=3).map(tuple)
ANCHOR = st.builds(
    Anchor, doc=st.sampled_from(["a.md", "b.md"]), quote=st.none() | TEXT,
    spans=st.integers(0, 9).map(lambda start: (Span(start, start + 3),)),
)  # fmt: skip
FIELDS: dict[str, st.SearchStrategy[Any]] = {
    "turn": st.none() | st.integers(0, 2),
    "question": st.none() | TEXT,
    "paraphrases": TEXTS,
    "expect": st.sampled_from([None, "answer", "refuse"]),
    "relevant": NAMES,
    "anchors": st.lists(ANCHOR, max_size=2).map(tuple),
    "places": st.lists(ANCHOR, max_size=1).map(tuple),
    "relevant_docs": st.none() | NAMES,
    "groups": st.lists(st.tuples(NAME | ANCHOR), max_size=2).map(tuple),
    "grades": st.dictionaries(NAME, st.sampled_from([0.0, 1.0, 2.0]), max_size=2),
    "anchor_section": st.sampled_from([None, "S.1", "a.md#S.1.1"]),
    "negatives": NAMES,
    "negative_places": st.lists(ANCHOR, max_size=2, unique=True).map(tuple),
    "decoy_section": st.sampled_from([None, "S.1", "S.1.1"]),
    "claims_any": st.none() | TEXTS,
    "claim_rule": st.sampled_from(["substring", "phrase"]),
    "references": TEXTS,
    "must_contain": TEXTS,
    "forbidden": TEXTS,
    "constraints": TEXTS,
    "type": st.sampled_from([None, "code"]),
    "tags": TEXTS,
    "group": st.none() | TEXT,
    "difficulty": st.none() | TEXT,
    "lang": st.none() | TEXT,
    "extra": st.dictionaries(st.sampled_from(["note", "negative"]), TEXT, max_size=2),
}
ITEM = st.builds(GoldItem, qid=st.sampled_from(["Q1", "Q2", "Q3"]), **FIELDS)
SETS = st.lists(ITEM, max_size=6)


def key(item: GoldItem) -> tuple[str, int | None]:
    return item.qid, item.turn


def findings(items: list[GoldItem], profile: str) -> list[tuple[Any, ...]]:
    numbered = [replace(item, line=line) for line, item in enumerate(items, 1)]
    report = check(numbered, LintContext(profile=registry.profile(profile)), name="gold")
    lines = [float("inf") if finding.line is None else finding.line for finding in report.findings]
    assert lines == sorted(lines)
    facts = [
        (finding.rule, finding.severity, finding.message, finding.qid, finding.turn, finding.times)
        for finding in report.findings
    ]
    return sorted(facts, key=repr)


@given(st.data(), SETS, st.sampled_from(["all", "canary", "ship"]))
def test_the_order_of_items_does_not_change_what_is_found(
    data: st.DataObject, items: list[GoldItem], profile: str
) -> None:
    unique = list({key(item): item for item in items}.values())
    if profile == "ship":
        unique = list({item.qid: item for item in items}.values())
    shuffled = data.draw(st.permutations(unique))
    assert findings(unique, profile) == findings(shuffled, profile)


@given(SETS)
def test_what_is_frozen_is_read_again_and_is_the_same(
    tmp_path_factory: Any, items: list[GoldItem]
) -> None:
    unique = list({key(item): item for item in items}.values())
    text = lock_text(make_lock(unique, "native", "gold"))
    path = tmp_path_factory.getbasetemp() / "property.lock"
    path.write_text(text, "utf-8")
    lock = read_lock(path)
    assert lock_text(lock) == text
    assert lock_text(make_lock(unique[::-1], "native", "gold")) == text
    difference = compare(lock, unique, "gold")
    assert difference.same
    assert difference.unchanged == len(unique)


def test_every_field_of_an_item_is_drawn() -> None:
    assert {"qid", "line", *FIELDS} == set(GoldItem.__struct_fields__)


@given(st.data(), ITEM, st.sampled_from(sorted(FIELDS.keys() - {"turn"})))
def test_any_change_of_any_field_is_found(data: st.DataObject, item: GoldItem, field: str) -> None:
    changed = replace(item, **{field: data.draw(FIELDS[field])})
    difference = compare(make_lock([item], "native", "gold"), [changed], "gold")
    if changed == item:
        assert difference.same
        return
    [changed_item] = [*difference.changed, *difference.remarked]
    assert bool(difference.remarked) == (field == "extra")
    names = {change.field for change in (*changed_item.changes, *changed_item.unread)}
    assert names <= {"note", "negative"} if field == "extra" else names == {field}
