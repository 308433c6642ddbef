"""Trace rows through a migration map: hits, citations, and ids inside the text of an answer.

A redirected citation keeps its old id as `id_prev`; a hit does, if it is an object. A hit on a
block that was split becomes hits on all of its parts, at its rank; hits that became one stay two,
so that ranks stay what they were.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from ragauge.files.fields import Row, as_list
from ragauge.gold.migrate.evidence import Rewriter
from ragauge.model import greek_names
from ragauge.model.field_spellings import TRACE_SPELLINGS
from ragauge.text import citation_list

_CITATIONS = TRACE_SPELLINGS["citations"]
_NOT_IN_TEXT = re.compile(r"[\s,\]]")
_PART = re.compile(r"[^,\s]+")
REDIRECTS = "redirects"
"""The field that notes which ids in the text of an answer were replaced."""


def rewrite_trace(row: Row, rewriter: Rewriter) -> dict[str, Any]:
    """The fields of a trace that change, with their new values."""
    changed: dict[str, Any] = {}
    replaced: list[dict[str, str]] = []
    cited_in_text = not _has_citation_list(row)
    for name, value in row.items():
        if value is None:
            continue
        if name in TRACE_SPELLINGS["hits"]:
            changed[name] = _hits(value, name, row, changed, rewriter)
        elif name == "retrieval":
            changed[name] = _retrieval(value, row, changed, rewriter)
        elif name in _CITATIONS and isinstance(value, list):
            changed[name] = _citations(value, name, rewriter)
        elif name in TRACE_SPELLINGS["answer"] and isinstance(value, dict):
            changed[name] = _answer(value, name, rewriter, replaced)
        elif cited_in_text and name in ("answer", "answer_text") and isinstance(value, str):
            changed[name] = _in_text(value, name, rewriter, replaced)
    if replaced:
        changed[REDIRECTS] = replaced
    return {name: value for name, value in changed.items() if name not in row or value != row[name]}


def _has_citation_list(row: Row) -> bool:
    """Whether the citations stand in a list, so that those in the text are not read."""
    body = [row.get(name) for name in TRACE_SPELLINGS["answer"]]
    inner = [part.get("citations") for part in body if isinstance(part, Mapping)]
    return any(isinstance(value, list) for value in [*inner, *map(row.get, _CITATIONS)])


def _hits(
    value: Any, path: str, row: Row, changed: dict[str, Any], rewriter: Rewriter
) -> list[Any]:
    """The new hits; where they became more or fewer, lists that are parallel to them as well."""
    moved = [
        rewriter.entry(hit, f"{path}[{i}]", prev=isinstance(hit, dict))
        for i, hit in enumerate(as_list(value, path))
    ]
    rewriter.tally["hit on several parts"] += sum(len(new) > 1 for new in moved)
    if any(len(new) != 1 for new in moved):
        for name in greek_names.DELTA_S:
            listed = row.get(name)
            if isinstance(listed, list) and len(listed) == len(moved):
                pairs = zip(listed, moved, strict=True)
                changed[name] = [value for value, new in pairs for _ in new]
    return [hit for new in moved for hit in new]


def _retrieval(value: Any, row: Row, changed: dict[str, Any], rewriter: Rewriter) -> Any:
    if isinstance(value, list):
        return _hits(value, "retrieval", row, changed, rewriter)
    if not isinstance(value, dict):
        return value
    inside = {
        name: _hits(value[name], f"retrieval.{name}", row, changed, rewriter)
        for name in TRACE_SPELLINGS["hits"]
        if isinstance(value.get(name), list)
    }
    return {**value, **inside}


def _citations(value: list[Any], path: str, rewriter: Rewriter) -> list[Any]:
    """The new citations; one that several became stands once."""
    citations: list[Any] = []
    seen: dict[str, int] = {}
    for i, citation in enumerate(value):
        for new in rewriter.entry(citation, f"{path}[{i}]", prev=True):
            bare = isinstance(new, dict) and set(new) == {"id", "id_prev"}
            name = new.get("id") if bare else None
            if name is None or seen.setdefault(name, i) == i:
                citations.append(new)
            else:
                rewriter.tally["citation of one block twice"] += 1
    return citations


def _answer(
    body: Row, path: str, rewriter: Rewriter, replaced: list[dict[str, str]]
) -> dict[str, Any]:
    rewritten = dict(body)
    if isinstance(body.get("citations"), list):
        rewritten["citations"] = _citations(body["citations"], f"{path}.citations", rewriter)
        return rewritten
    for name in ("text", "answer"):
        if isinstance(body.get(name), str):
            rewritten[name] = _in_text(body[name], f"{path}.{name}", rewriter, replaced)
    return rewritten


def _in_text(text: str, path: str, rewriter: Rewriter, replaced: list[dict[str, str]]) -> str:
    """Replace ids in the first `citations: [a, b]` of an answer."""
    listed = citation_list(text)
    if listed is None:
        return text

    def other(match: re.Match[str]) -> str:
        old = match[0]
        ids = rewriter.ids(old, path)
        if ids is not None and any(_NOT_IN_TEXT.search(new_id) for new_id in ids):
            rewriter.fail(path, f"the new id of `{old}` cannot stand in text: `{ids[0]}`")
            ids = None
        new = rewriter.rejected(old) if ids is None else ids
        replaced.extend({"id": new_id, "id_prev": old} for new_id in new if new_id != old)
        return ", ".join(new)

    ids = _PART.sub(other, text[listed.first : listed.last])
    return text[: listed.first] + ids + text[listed.last :]
