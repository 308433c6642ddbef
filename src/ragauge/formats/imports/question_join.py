"""Joining imported traces with gold: by the question's id, else by its text."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from ragauge.formats.imports.coverage import Coverage
from ragauge.formats.imports.foreign_format import Row
from ragauge.text import question_key


class QuestionJoin:
    """Gives traces the id of the gold question that they ask; a text of two questions gives none.

    `questions` goes from the id of each gold item to its text.
    """

    def __init__(self, questions: Mapping[str, str] | Iterable[tuple[str, str]]) -> None:
        pairs = questions.items() if isinstance(questions, Mapping) else questions
        self.ids: set[str] = set()
        self.by_text: dict[str, str | None] = {}
        for qid, text in pairs:
            self.ids.add(qid)
            if key := question_key(text):
                same = self.by_text.get(key, qid) == qid
                self.by_text[key] = qid if same else None

    def apply(self, row: Row, coverage: Coverage) -> None:
        """Set `qid` where the text decides it, and count how."""
        qid = row.get("qid")
        if qid is not None and str(qid) in self.ids:
            coverage.join("by id")
            return
        question = row.get("question")
        key = question_key(question) if isinstance(question, str) else ""
        if key not in self.by_text:
            coverage.join("unmatched")
        elif (matched := self.by_text[key]) is None:
            coverage.join("ambiguous")
        else:
            coverage.join("by question")
            if qid is not None:
                row["imported_qid"] = qid
            row["qid"] = matched
