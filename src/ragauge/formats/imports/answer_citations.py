"""Citations that stand in the text of an answer: ids or numbers of hits in brackets, footnotes."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from ragauge.formats.imports.api_citations import cited_hits, hit_name, references_of
from ragauge.formats.imports.foreign_format import Row
from ragauge.text import citations_in

_BRACKETED = re.compile(r"\[\^?([^\[\]\n]{1,200})\]|【([^【】\n]{1,200})】")
_ID = re.compile(r"(?=.*[\d#/._:-])(?=.*[^\W\d])[^\s|]{2,}")
"""What may be an id: no blanks, a letter, and a digit or a sign that words do not have."""
_SEPARATOR = re.compile("[,;]")
_WORD = r"(?:(?:docs?|documents?|sources?|passages?|context|refs?)[.:]?\s*#?)?"
_NUMBER = rf"{_WORD}\d{{1,4}}(?:\s*[-\u2013]\s*\d{{1,4}})?"
_NUMBERS = re.compile(rf"\s*{_NUMBER}(?:\s*(?:[,;]|and)\s*\^?{_NUMBER})*\s*", re.IGNORECASE)
"""Numbers of hits: `1`, `1, 3`, `1-3`, and with a word before them, as `doc1` of Azure."""
_RANGE = re.compile(r"(\d+)(?:\s*[-\u2013]\s*(\d+))?")


def with_citations(row: Row) -> None:
    """Give a trace the citations that its answer names, unless it has a list of them."""
    answer, listed = row.get("answer"), row.get("citations")
    if isinstance(listed, list):
        if not all(isinstance(entry, str) for entry in listed):
            row["citations"] = cited_hits(references_of(listed), row.get("hits") or ())
        return
    if listed is not None or not isinstance(answer, str):
        return
    if "[" not in answer and "【" not in answer:
        return
    if citations_in(answer) is not None:  # `citations: [a, b]` is read wherever traces are
        return
    if citations := cited_in(answer, row.get("hits") or ()):
        row["citations"] = citations


def cited_in_text(text: str | None, hit_ids: Sequence[str]) -> tuple[str, ...] | None:
    """The hits that a text cites in brackets, by number or id; None where it cites none."""
    if text is None or not hit_ids or ("[" not in text and "【" not in text):
        return None
    return tuple(cited_in(text, hit_ids)) or None


def cited_in(answer: str, hits: Sequence[Any]) -> list[str]:
    """The ids of hits that a text cites, each once, in the order of the text.

    `[1]`, `[1, 3]`, `[1-3]`, `[^1]` and `[doc1]` are numbers of hits from 1, as prompts number
    them; `【1†source】` is what OpenAI's assistants write. What is in brackets and names no hit
    is not a citation: Markdown links and asides look the same. A hit that has no id is called as
    it is where traces are read, and only a number can mean it.
    """
    present = {hit_id for hit in hits if (hit_id := _hit_id(hit)) is not None}
    names: dict[int, str | None] = {}  # by number: to find a name takes time, and few are cited
    cited: dict[str, None] = {}
    for match in _BRACKETED.finditer(answer):
        if answer[match.end() : match.end() + 1] == "(":  # a link of Markdown
            continue
        inside = (match[1] or match[2]).partition("†")[0].strip()
        if inside in present:
            cited[inside] = None
            continue
        parts = [part.strip() for part in _SEPARATOR.split(inside)]
        if all(part in present for part in parts):
            cited.update(dict.fromkeys(parts))
        elif not present and all(map(_ID.fullmatch, parts)):
            # Exports without ids have those that the answer names, which the prompt had.
            cited.update(dict.fromkeys(parts))
        elif _NUMBERS.fullmatch(inside):
            for first, last in _RANGE.findall(inside):
                for number in range(max(int(first), 1), min(int(last or first), len(hits)) + 1):
                    if number not in names:
                        names[number] = hit_name(hits[number - 1])
                    if (name := names[number]) is not None:
                        cited[name] = None
    return list(cited)


def _hit_id(hit: Any) -> str | None:
    hit_id = hit.get("id") if isinstance(hit, dict) else hit
    return None if hit_id is None else str(hit_id)
