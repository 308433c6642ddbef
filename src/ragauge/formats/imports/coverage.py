"""What an import found: how many traces have an id, a question, texts, scores, answers, errors."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from msgspec import Struct, field

from ragauge.model.field_spellings import FIRST_HITS

JOINS = ("by id", "by question", "ambiguous", "unmatched")
"""How rows were joined with a gold set, in the order in which they are reported."""

_EXPECTED = ("reference_answers", "claims_any", "must_contain", "forbidden")


class Coverage(Struct, kw_only=True):
    """Counts that grow while rows are read; `notes` counts what was odd, sentence by sentence."""

    format: str = ""
    rows: int = 0
    qids: int = 0
    questions: int = 0
    answers: int = 0
    cited: int = 0
    errors: int = 0
    reranked: int = 0
    hits: int = 0
    hit_ids: int = 0
    hit_texts: int = 0
    hit_scores: int = 0
    evidence: int = 0
    references: int = 0
    joins: dict[str, int] = field(default_factory=dict)
    notes: dict[str, int] = field(default_factory=dict)

    def note(self, what: str, count: int = 1) -> None:
        """Count something odd; `what` goes behind the number: "spans without their parent"."""
        if count:
            self.notes[what] = self.notes.get(what, 0) + count

    def join(self, how: str) -> None:
        """Count how a row was joined, by one of JOINS."""
        self.joins[how] = self.joins.get(how, 0) + 1

    def add(self, row: Mapping[str, Any]) -> None:
        """Count the fields of a trace of our own."""
        self.rows += 1
        self.qids += row.get("qid") is not None
        self.questions += row.get("question") is not None
        self.answers += row.get("answer") is not None
        self.cited += bool(row.get("citations"))
        self.errors += bool(row.get("error"))
        self.reranked += FIRST_HITS in row
        ids = texts = scores = 0
        hits = row.get("hits") or ()
        for hit in hits:
            if isinstance(hit, dict):  # not a Mapping: that would take far longer to find out
                ids += hit.get("id") is not None
                texts += hit.get("text") is not None
                scores += hit.get("score") is not None
            else:
                ids += 1
        self.hits += len(hits)
        self.hit_ids += ids
        self.hit_texts += texts
        self.hit_scores += scores

    def add_gold(self, row: Mapping[str, Any]) -> None:
        """Count the fields of a gold item of our own."""
        self.rows += 1
        self.qids += row.get("qid") is not None
        self.questions += row.get("question") is not None
        self.evidence += bool(row.get("relevant") or row.get("relevant_docs"))
        self.references += any(row.get(name) for name in _EXPECTED)

    def gold_table(self) -> Sequence[tuple[str, str]]:
        """The names and counts of a gold set, as they are printed below each other."""
        of_rows = f" of {self.rows}"
        return [
            ("gold items", f"{self.rows}"),
            ("  with a question id", f"{self.qids}{of_rows}"),
            ("  with a question", f"{self.questions}{of_rows}"),
            ("  with evidence", f"{self.evidence}{of_rows}"),
            ("  with expected text", f"{self.references}{of_rows}"),
        ]

    def table(self) -> Sequence[tuple[str, str]]:
        """The names and counts, as they are printed below each other."""
        of_rows, of_hits = f" of {self.rows}", f" of {self.hits}"
        lines = [
            ("traces", f"{self.rows}"),
            ("  with a question id", f"{self.qids}{of_rows}"),
            ("  with a question", f"{self.questions}{of_rows}"),
            ("  with an answer", f"{self.answers}{of_rows}"),
            ("  with citations", f"{self.cited}{of_rows}"),
            ("  with an error", f"{self.errors}{of_rows}"),
            ("hits", f"{self.hits}"),
            ("  with an id", f"{self.hit_ids}{of_hits}"),
            ("  with a text", f"{self.hit_texts}{of_hits}"),
            ("  with a score", f"{self.hit_scores}{of_hits}"),
        ]
        if self.joins:
            lines.append(("joined with gold", ""))
            lines += [(f"  {how}", f"{self.joins.get(how, 0)}{of_rows}") for how in JOINS]
        return lines

    def sentences(self) -> list[str]:
        """What was odd, in the order in which it was met."""
        return [_counted(count, what) for what, count in self.notes.items()]

    def join_sentences(self) -> list[str]:
        """How rows were joined with gold, where not all were joined by id."""
        counts = [f"{self.joins[how]} {how}" for how in JOINS if self.joins.get(how)]
        by_id_alone = set(self.joins) <= {"by id"}
        return [] if by_id_alone else [f"joined with the gold set: {', '.join(counts)}"]


def _counted(count: int, what: str) -> str:
    """A number and what it counts; notes begin with the plural of a noun."""
    noun, _, rest = what.partition(" ")
    return f"{count:,} {noun.removesuffix('s') if count == 1 else noun} {rest}"
