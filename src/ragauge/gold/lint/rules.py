"""The rules of `gold lint`: one table of names, severities and explanations, and what is found."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

from ragauge.codes import CODES
from ragauge.errors import Place
from ragauge.model.gold import GoldItem
from ragauge.text import plain

Severity = Literal["error", "warning", "note"]
SEVERITIES: tuple[Severity, ...] = ("error", "warning", "note")


class LintRule(Struct, frozen=True):
    """One rule: how much it matters, what it says, and why."""

    name: str
    severity: Severity
    title: str
    explanation: str


class LintFinding(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A place where a rule does not hold; `times` is more than 1 where one finding tells many."""

    rule: str
    severity: Severity
    message: str
    hint: str
    line: int | None = None
    qid: str | None = None
    turn: int | None = None
    times: int = 1

    def text(self, file: str) -> str:
        """The finding as it is printed, like any problem of a file."""
        qid = self.qid if self.turn is None else f"{self.qid} turn {self.turn}"
        lines = (
            f"{self.severity}[{self.rule}]: {self.message}",
            f"  --> {Place(file, self.line, qid)}",
            f"  hint: {self.hint}",
        )
        return "\n".join(map(plain, lines))


def _rules(severity: Severity, *entries: tuple[str, str, str]) -> dict[str, LintRule]:
    return {name: LintRule(name, severity, title, text) for name, title, text in entries}


def _shared(*names: str) -> dict[str, LintRule]:
    """Rules that are errors of other commands too, under the same names."""
    codes = (CODES[name] for name in names)
    return {code.name: LintRule(code.name, "error", code.title, code.explanation) for code in codes}


RULES: dict[str, LintRule] = {
    **_shared("duplicate-qid", "unresolved", "quote-moved", "text-changed", "mixed-units"),
    **_rules(
        "error",
        ("empty-question", "a question or paraphrase has no text",
         "Nothing can be asked, and whatever a system does with nothing would be scored."),
        ("no-evidence", "an answerable item names no evidence",
         "No hit can be right: retrieval metrics leave the item out, and under ship only an "
         "answer without citations counts as a hit. Name chunks, places or documents."),
        ("refusal-with-evidence", "an unanswerable item names evidence",
         "Either there is an answer in the evidence, or the evidence is none. Near misses "
         "belong in negatives."),
        ("unmatchable-claims", "no claim of an item can ever match",
         "Under ship and smoke substrings of fewer than 5 characters never match; elsewhere they "
         "match as whole words. A longer phrase needs a run of 5 letters, digits, blanks or "
         "hyphens. An item with such claims only is always wrong."),
        ("contradiction", "an answer must contain what it must not",
         "A forbidden string stands inside one that the answer must contain, so no answer can "
         "pass. The other way round is fine: `port` may be asked for and `port 80` forbidden."),
        ("relevant-negative", "a hard negative is also evidence",
         "The same chunk would be counted as right and as wrong. With a corpus, chunks that "
         "share half of the shorter one are the same; a decoy section must not be the anchor."),
    ),
    **_rules(
        "warning",
        ("no-question", "an item has no question",
         "Traces can be joined by id, but nothing can be asked, and `run` leaves it out."),
        ("not-pinned", "evidence is an id, and nothing says which text it stands for",
         "The id of a block says where it stands. After a section was inserted, the ids behind it "
         "are those of other text, and no rule can tell. `ragauge gold pin` gives evidence its "
         "quote, `ragauge gold freeze --corpus` notes a fingerprint of its text in the lock."),
        ("short-claim", "a claim is too short to match",
         "Under ship and smoke substrings of fewer than 5 characters never match; elsewhere they "
         "match as whole words. The other claims of the item are long enough, so that it can "
         "still be right."),
        ("far-negative", "a hard negative is far from the answer",
         "A negative is hard if it is near: in the same document, and no more than 4 edges "
         "away in the title tree, which is as far as a cousin section. Others are rarely "
         "retrieved, so that metrics on negatives look better than they are."),
        ("near-duplicate-question", "items ask nearly the same",
         "Their words share four fifths of their runs of four characters, and name the same "
         "numbers. Such items count an answer twice, and intervals become too narrow. Items "
         "of conversations are not compared."),
        ("near-duplicate-paraphrase", "paraphrases of an item are nearly the same",
         "Stability is measured over wordings. Wordings that share four fifths of their runs "
         "of four characters measure nothing."),
        ("few-paraphrases", "an item has fewer than 3 paraphrases",
         "Under canary a question is asked in 3 wordings; convergence needs all of them."),
        ("missing-type", "no question is on a type of content that the corpus has",
         "Failures on code, tables or figures do not show in a mean over prose."),
        ("low-coverage", "the questions reach too few sections of the corpus",
         "At least .80 of the sections that have text should hold evidence of a question. What "
         "no question reaches can break unseen."),
        ("misspelt-field", "a field that nothing reads is spelt almost like one that is read",
         "Unknown fields are kept and play no part. A misspelt one says nothing to any metric."),
    ),
    **_rules(
        "note",
        ("few-of-type", "too few questions are on a type of content",
         "A slice of fewer questions than min_n (5) shows no value."),
        ("set-size", "the set is too small to show a change of 0.10",
         "The smallest change of a rate near one half that a run of this size shows in four "
         "cases of five is larger than 0.10. About 200 questions show that much."),
        ("chunks-only", "all evidence is whole chunks: this set will not survive a new chunker",
         "The id of a chunk, and its place, say that the evidence stands somewhere in it. With "
         "other chunks a comparison is a band. `ragauge gold pin --narrow` writes down where."),
        ("unread-field", "nothing reads a field",
         "It is kept, plays no part in any metric, and does not change the hash of the item."),
    ),
}  # fmt: skip
"""Every rule by its name, the gravest first."""


def lint_finding(
    rule: str, message: str, hint: str, item: GoldItem | None = None, *, times: int = 1
) -> LintFinding:
    """A finding about an item, or about the whole set."""
    return LintFinding(
        rule=rule,
        severity=RULES[rule].severity if rule in RULES else "error",
        message=message,
        hint=hint,
        line=None if item is None else item.line,
        qid=None if item is None else item.qid,
        turn=None if item is None else item.turn,
        times=times,
    )


def identity(item: GoldItem) -> tuple[str, int]:
    """What orders items, wherever they stand in a file."""
    return item.qid, -1 if item.turn is None else item.turn
