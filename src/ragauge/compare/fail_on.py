"""`--fail-on`: how many questions may have lost something, and whether more did."""

from __future__ import annotations

import re
from collections.abc import Sequence
from fractions import Fraction

from msgspec import Struct

from ragauge.compare import metric_deltas
from ragauge.compare.align import UNMATCHED, Aligned
from ragauge.compare.document_level import is_by_document
from ragauge.compare.repeat_noise import repeat_noise
from ragauge.errors import RagaugeError
from ragauge.model.comparison import (
    Comparison,
    DocKind,
    Kind,
    KindCheck,
    QueryComparison,
    doc_kind,
)
from ragauge.model.phrases import count
from ragauge.model.scores import Scores

_LIMIT = re.compile(r"(regression|loss)(?::(\d{1,9})|:(\d{1,3}(?:\.\d{1,6})?)%)?")
_HINT = "write regression or loss, with `:2` for two questions or `:1%` for a share of them"


class FailOn(Struct, frozen=True):
    """A kind of question, and how many there may be: a number of them, or a share of all."""

    kind: Kind
    questions: int = 0
    share: Fraction = Fraction(0)
    given: str = ""

    @classmethod
    def parse(cls, text: str) -> FailOn:
        """Read `regression`, `regression:2` or `regression:1.5%`, or the same with `loss`."""
        match = _LIMIT.fullmatch(text)
        if match is None:
            message = f"--fail-on `{text}` is not understood"
            raise RagaugeError.of("usage", message, hint=_HINT)
        kind: Kind = "loss" if match[1] == "loss" else "regression"
        share = Fraction(match[3] or 0) / 100
        if share >= 1:
            message = f"--fail-on `{text}` can never fail: all questions are allowed"
            raise RagaugeError.of("usage", message, hint=_HINT)
        return cls(kind, int(match[2] or 0), share, text)

    def allowed(self, compared: int) -> int:
        """How many of so many questions may be of the kind."""
        return max(self.questions, int(self.share * compared))

    def forbidden(self, *, strict: bool) -> tuple[Kind, ...]:
        """The kinds that count: a regression is a loss, and `mixed` counts if it is asked for."""
        kinds: tuple[Kind, ...] = ("regression", *(("mixed",) if strict else ()))
        return (*kinds, "loss") if self.kind == "loss" else kinds


def _worst(query: QueryComparison, kinds: Sequence[Kind]) -> Kind | None:
    """The first of these kinds that a question is of, in retrieval or in its answer."""
    own = _sure_kind(query, kinds), None if query.answer is None else query.answer.kind
    return next((kind for kind in kinds if kind in own), None)


def _sure_kind(query: QueryComparison, kinds: Sequence[Kind]) -> Kind | None:
    """The kind that counts; of a question whose places disagree, what holds at all of them."""
    if query.certain:
        return query.kind
    if query.regression == "yes":  # it loses something at every place, in one way or another
        return "regression"
    is_worse = bool(query.possible) and all(kind in kinds for kind in query.possible)
    return query.possible[-1] if is_worse else None


def _is_open(query: QueryComparison, kinds: Sequence[Kind]) -> bool:
    """Whether a question may be of these kinds, by what gold does not say."""
    if query.answer is not None and query.answer.kind == "undecided":
        return True
    return not query.certain and (
        query.regression == "open" or any(kind in kinds for kind in query.possible)
    )


def _is_open_by_document(query: QueryComparison) -> bool:
    """Whether only that is unknown of a question which its documents do not say."""
    answer = None if query.answer is None else query.answer.kind
    return query.doc_kind is not None and answer != "undecided" and is_by_document(query.rungs)


def recall_tolerance(limits: Sequence[FailOn]) -> float:
    """How much the recall of a question with more units than the cut-off may fall.

    Of several limits the strictest holds: one that is looser must not hide what another forbids.
    """
    return float(min((limit.share for limit in limits), default=Fraction(0)))


def check_kinds(
    comparison: Comparison,
    aligned: Aligned,
    limits: Sequence[FailOn],
    *,
    strict: bool = False,
    repeats: Sequence[Scores] = (),
    accept_doc_level: bool = False,
) -> tuple[KindCheck, ...]:
    """Count the questions of each forbidden kind, in retrieval or answer, and judge them.

    Of questions that the baseline asked several times, those do not count that its own noise
    explains. `repeats` are further runs of the baseline's system. Of evidence that stands somewhere
    in a chunk nobody knows what is noise: it explains nothing there. With `accept_doc_level`, of
    questions that are open as nothing but their documents is known, those count that are worse by
    document.
    """
    pairs = metric_deltas.pair(aligned.a, aligned.b)
    placed = frozenset(() if aligned.places is None else aligned.places.questions)
    unknown = frozenset(place for place, at in enumerate(pairs.mine.tolist()) if at in placed)
    checks = []
    for limit in limits:
        noise = repeat_noise(
            (aligned.a, *repeats),
            aligned.b,
            pairs,
            k=comparison.k,
            ranks=limit.kind == "loss",
            unknown=unknown,
        )
        kinds = limit.forbidden(strict=strict)
        worse = {
            place: kind
            for place, query in enumerate(comparison.per_query)
            if (kind := _worst(query, kinds)) is not None
        }
        open_questions = [
            query
            for place, query in enumerate(comparison.per_query)
            if place not in worse and _is_open(query, kinds)
        ]
        by_document = [query for query in open_questions if _is_open_by_document(query)]
        doc_kinds: dict[DocKind, int] = {}
        if accept_doc_level:
            found = [query.doc_kind for query in by_document]
            names = [name for kind in kinds if (name := doc_kind(kind)) is not None]
            doc_kinds = {name: found.count(name) for name in names}
        explained = len(worse.keys() & noise.repeated) if noise.explains else 0
        checks.append(
            KindCheck(
                kind=limit.kind,
                given=limit.given or limit.kind,
                kinds={kind: list(worse.values()).count(kind) for kind in kinds},
                allowed=limit.allowed(comparison.counted),
                explained=explained,
                doc_kinds=doc_kinds,
                open=len(open_questions) - (len(by_document) if accept_doc_level else 0),
                by_document=0 if accept_doc_level else len(by_document),
                repeated=len(noise.repeated),
                unstable=noise.unstable,
                p=noise.p,
            )
        )
    return tuple(checks)


def refuse_without_ranks(aligned: Aligned) -> None:
    """Raise if files of scores do not say what was found: nobody could tell what was lost."""
    if aligned.ranked and aligned.every_unit:
        return
    lacks = "the ranks of all evidence" if aligned.ranked else "ranks"
    raise RagaugeError.of(
        "incomparable",
        f"--fail-on cannot be judged: a file of scores does not have {lacks}",
        hint="save both again with `ragauge score --full -o FILE.json`, or compare stored runs",
    )


def why_undecided(
    comparison: Comparison,
    checks: Sequence[KindCheck],
    unread: Sequence[str],
    *,
    allow_missing: bool = False,
    accept_open: bool = False,
) -> str | None:
    """Why --fail-on cannot be judged: of some questions nobody can say what became of them.

    Or nothing is expected of most of them, and the files have fields that nothing reads: evidence
    under a name that is misspelt would make every question a draw.
    """
    if not checks:
        return None
    judged, questions = sum(comparison.kinds.values()), len(comparison.per_query)
    if unread and 2 * judged < questions:
        return (
            f"only {judged} of {count(questions, 'question')} expect any evidence, and "
            f"{unread[0]}; name fields that nothing needs in [fields] ignore"
        )
    reasons = []
    toothless = [check for check in checks if check.allowed >= comparison.counted]
    if toothless:
        verb = "was" if comparison.counted == 1 else "were"
        reasons.append(
            f"`{toothless[0].given}` can never fail: {count(comparison.counted, 'question')} "
            f"{verb} compared, and it allows {toothless[0].allowed}"
        )
    left = comparison.left_out.get(UNMATCHED, 0)
    if left and not allow_missing:
        verb = "is" if left == 1 else "are"
        reasons.append(
            f"{count(left, 'question')} {verb} recognised by nothing in both runs; --allow-missing "
            "judges without them"
        )
    is_open = max((check.open for check in checks if check.is_open), default=0)
    if is_open and not accept_open:
        verb = "is" if is_open == 1 else "are"
        by_document = max(check.by_document for check in checks if check.is_open)
        cures = []
        if by_document:
            verb_of = "is" if by_document == 1 else "are"
            cures.append(
                f"of {by_document} nothing but documents {verb_of} known in both runs: "
                "--accept-doc-level judges by document"
            )
        if by_document < is_open:
            cures.append("gold names chunks: `ragauge gold pin --narrow` decides")
        reasons.append(
            f"{count(is_open, 'question')} {verb} open (place-unknown) and may have lost something "
            f"or not; {'; '.join(cures)}; --accept-open judges without them"
        )
    return "; ".join(reasons) or None
