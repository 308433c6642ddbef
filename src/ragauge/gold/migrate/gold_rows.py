"""Gold rows through a migration map: which fields hold evidence, and how each is rewritten.

A block that was split is replaced by all of its parts: each is evidence in `relevant`, with the
grade that the block had, and any of them will do in a group that the block was in. Blocks that
became one are listed once.

What has lost all of its evidence is a draft afterwards. An empty list would say something: that the
question is to be refused, or that no citation is right.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from ragauge.files.fields import FieldError, Row, as_id, as_list, as_object, as_text
from ragauge.formats.gold import DRAFT, MIGRATED_TO, PREVIOUS
from ragauge.gold.migrate.evidence import Rewriter, hash_in
from ragauge.ids import doc_of
from ragauge.model.field_spellings import GOLD_SPELLINGS, HIT_DOCS, HIT_IDS
from ragauge.spans import unit_in

_LISTS = (*GOLD_SPELLINGS["relevant"], *GOLD_SPELLINGS["places"])
_SECTIONS = (*GOLD_SPELLINGS["anchor_section"], *GOLD_SPELLINGS["decoy_section"])
_EVIDENCE = (
    *_LISTS,
    *GOLD_SPELLINGS["groups"],
    *GOLD_SPELLINGS["grades"],
    *GOLD_SPELLINGS["relevant_docs"],
)


def rewrite_gold(row: Row, rewriter: Rewriter) -> dict[str, Any]:
    """The fields of a gold row that change, with their new values.

    An item that was moved before is not moved again: its ids would go a second step.
    """
    if all(row.get(name) is None for name in GOLD_SPELLINGS["qid"]):
        hint = 'add a unique "qid" to every gold item'
        raise FieldError("missing-field", "the item has no id", hint)
    there = sum(_is_there(entry, rewriter) for entry in _members(row))
    if there or _is_stamped(row, rewriter):
        rewriter.tally["already new"] += there or 1
        return {}
    unit = unit_in(row, "", "byte")
    changed: dict[str, Any] = {}
    docs = list(dict.fromkeys(_docs(row)))
    rewriter.reused.clear()
    unmapped = len(rewriter.problems)
    for name, value in row.items():
        if value is None:
            continue
        if name in _LISTS or name in GOLD_SPELLINGS["negatives"]:
            changed[name] = _entries(value, name, rewriter, unit)
        elif name in GOLD_SPELLINGS["groups"]:
            groups = [
                _entries(group, f"{name}[{i}]", rewriter, unit)
                for i, group in enumerate(as_list(value, name))
            ]
            changed[name] = [group for group in groups if group]
        elif name in GOLD_SPELLINGS["grades"]:
            changed[name] = _grades(as_object(value, name), name, rewriter)
        elif name in GOLD_SPELLINGS["relevant_docs"]:
            changed[name] = _documents(value, name, rewriter)
        elif name in _SECTIONS:
            changed[name] = rewriter.section(value, docs, name)
    changed = {name: value for name, value in changed.items() if value != row[name]}
    _count_negatives(row, changed, rewriter)
    lost = _lost_fields(row, changed) if len(rewriter.problems) > unmapped else []
    for name in lost:
        changed[name] = changed[name] or None
        changed[f"{name}{PREVIOUS}"] = row[name]
    if lost or rewriter.reused:
        changed[DRAFT] = True
    if changed:
        changed[MIGRATED_TO] = rewriter.redirects.header.new.revision
    return changed


def is_dated(row: Row, rewriter: Rewriter) -> bool:
    """Whether an item says itself that it is of the old corpus: by a stamp, or by a hash."""
    if row.get(MIGRATED_TO) is not None:
        return True
    stated = (hash_in(entry) for entry in _members(row) if isinstance(entry, Mapping))
    return any(digest is not None and digest in rewriter.old_hashes for digest in stated)


def _is_stamped(row: Row, rewriter: Rewriter) -> bool:
    """Whether an item was moved to the new corpus before; one of a third corpus is refused."""
    stamp = row.get(MIGRATED_TO)
    if stamp is None:
        return False
    revision = as_text(stamp, MIGRATED_TO)
    header = rewriter.redirects.header
    if revision == header.old.revision:
        return False
    if revision == header.new.revision:
        return True
    raise FieldError(
        "already-migrated",
        f"the item was moved to revision {revision}, and the map leads from "
        f"{header.old.revision} to {header.new.revision}",
        "use the map that leads on from that revision: `ragauge corpus diff` makes it",
    )


def _lost_fields(row: Row, changed: Mapping[str, Any]) -> list[str]:
    """The fields of evidence that hold none any more, or that a whole group is missing in."""
    lost = [
        name
        for name in _EVIDENCE
        if name in changed
        and (_counted(changed[name]) == 0 or _groups_of(changed[name]) < _groups_of(row[name]))
    ]
    sections = [name for name in GOLD_SPELLINGS["anchor_section"] if name in changed]
    # A section is evidence of its own only where there is no other.
    if sections and not any(_counted(row.get(name)) for name in _EVIDENCE):
        lost += [name for name in sections if changed[name] is None]
    return lost


def _counted(value: Any) -> int:
    """How many pieces of evidence a field holds; of graded ids those that are relevant."""
    if isinstance(value, Mapping):
        return sum(not isinstance(grade, int | float) or grade > 0 for grade in value.values())
    if isinstance(value, list):
        return sum(len(entry) if isinstance(entry, list) else 1 for entry in value)
    return int(value is not None)


def _groups_of(value: Any) -> int:
    return sum(isinstance(entry, list) for entry in value) if isinstance(value, list) else 0


def _members(row: Row) -> Iterator[Any]:
    """The entries of an item's evidence, also those in groups."""
    for name in (*_LISTS, *GOLD_SPELLINGS["groups"]):
        value = row.get(name)
        for entry in value if isinstance(value, list) else ():
            yield from entry if isinstance(entry, list) else (entry,)


def _is_there(entry: Any, rewriter: Rewriter) -> bool:
    if not isinstance(entry, Mapping):
        return False
    doc = next((entry[name] for name in HIT_DOCS if isinstance(entry.get(name), str)), None)
    return doc is not None and rewriter.is_there(entry, doc)


def _entries(value: Any, path: str, rewriter: Rewriter, unit: str) -> list[Any]:
    """Rewrite a list; what several entries became stands in it once."""
    rewritten: list[Any] = []
    first_from: dict[str, int] = {}
    for i, old in enumerate(as_list(value, path)):
        for new in rewriter.entry(old, f"{path}[{i}]", unit=unit):
            # Entries that became the same are one; what the author wrote twice stays twice.
            if first_from.setdefault(repr(new), i) == i or new == old:
                rewritten.append(new)
    return rewritten


def _grades(grades: Mapping[str, Any], path: str, rewriter: Rewriter) -> dict[str, Any]:
    """Grades follow their ids; where several ids became one, the highest grade counts."""
    rewritten: dict[str, Any] = {}
    for old, grade in grades.items():
        ids = rewriter.ids(old, f"{path}.{old}")
        for new in rewriter.rejected(old) if ids is None else ids:
            if new in rewritten and rewritten[new] != grade:
                rewriter.tally["grade of several"] += 1
                both = (rewritten[new], grade)
                numbers = all(isinstance(value, int | float) for value in both)
                rewritten[new] = max(both) if numbers else grade
            else:
                rewritten[new] = grade
    return rewritten


def _documents(value: Any, path: str, rewriter: Rewriter) -> Any:
    if not isinstance(value, list):
        names = rewriter.documents(value, path)
        return names if len(names) != 1 else names[0] if names[0] != str(value) else value
    renamed: dict[str, None] = {}
    for i, doc in enumerate(value):
        renamed.update(dict.fromkeys(rewriter.documents(doc, f"{path}[{i}]")))
    same = [str(doc) for doc in value] == list(renamed)
    return value if same else list(renamed)


def _docs(row: Row) -> Iterable[str]:
    """The documents that an item speaks of: a bare section is in one of them."""
    listed = list(_members(row))
    grades = row.get("grades")
    listed += grades if isinstance(grades, Mapping) else []
    for entry in listed:
        if isinstance(entry, Mapping):
            values = [entry.get(name) for name in (*HIT_DOCS, *HIT_IDS)]
            yield from (one for one in values[: len(HIT_DOCS)] if isinstance(one, str))
            listed += [one for one in values[len(HIT_DOCS) :] if isinstance(one, str)]
        elif isinstance(entry, str) and (doc := doc_of(entry)) is not None:
            yield doc
    for name in GOLD_SPELLINGS["relevant_docs"]:
        value = row.get(name)
        for one in value if isinstance(value, list) else [value]:
            if isinstance(one, str | int) and not isinstance(one, bool):
                yield as_id(one, name)


def _count_negatives(row: Row, changed: Mapping[str, Any], rewriter: Rewriter) -> None:
    """Count the negatives that are evidence now."""

    def both(fields: Mapping[str, Any]) -> set[str]:
        relevant = [fields.get(name) for name in GOLD_SPELLINGS["relevant"]]
        ids = {str(entry) for listed in relevant if isinstance(listed, list) for entry in listed}
        negatives = fields.get("negatives")
        return ids & {str(entry) for entry in negatives if entry} if negatives else set()

    rewriter.tally["negative now relevant"] += len(both({**row, **changed}) - both(row))
