"""`--fail-on`: how many questions may have lost something, and whether more did."""

from __future__ import annotations

import re
from collections.abc import Sequence
from fractions import Fraction

from msgspec import Struct

from ragauge.compare import metric_deltas
from ragauge.compare.align import UNMATCHED, Aligned
from ragauge.compare.repeat_noise import repeat_noise
from ragauge.errors import RagaugeError
from ragauge.model.comparison import Comparison, Kind, KindCheck, QueryComparison
from ragauge.model.phrases import count
from ragauge.model.scores import Scores

_LIMIT = re.compile(r"(regression|loss)(?::(\d{1,9})|:(\d{1,3}(?:\.\d{1,6})?)%)?")
_HINT = "write regression or loss, with `:2` for two questions or `:1%` for a share of them"


class FailOn(Struct, frozen=True):
    """A kind of question, and how many there may be: a number of them, or a share of all."""

    kind: Kind
    questions: int = 0
    share: Fraction = Fraction(0)

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
        return cls(kind, int(match[2] or 0), share)

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


def recall_tolerance(limits: Sequence[FailOn]) -> float:
    """How much the recall of a question with more units than the cut-off may fall."""
    return float(max((limit.share for limit in limits), default=Fraction(0)))


def check_kinds(
    comparison: Comparison,
    aligned: Aligned,
    limits: Sequence[FailOn],
    *,
    strict: bool = False,
    repeats: Sequence[Scores] = (),
) -> tuple[KindCheck, ...]:
    """Count the questions of each forbidden kind, in retrieval or answer, and judge them.

    Of questions that the baseline asked several times, those do not count that its own noise
    explains. `repeats` are further runs of the baseline's system. Of evidence that stands somewhere
    in a chunk nobody knows what is noise: it explains nothing there.
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
        explained = len(worse.keys() & noise.repeated) if noise.explains else 0
        checks.append(
            KindCheck(
                kind=limit.kind,
                kinds={kind: list(worse.values()).count(kind) for kind in kinds},
                allowed=limit.allowed(comparison.counted),
                explained=explained,
                open=sum(
                    place not in worse and _is_open(query, kinds)
                    for place, query in enumerate(comparison.per_query)
                ),
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
        reasons.append(
            f"{count(is_open, 'question')} {verb} open (place-unknown): gold names chunks, and "
            "they may have lost something or not; `ragauge gold pin --narrow` decides, "
            "--accept-open judges without them"
        )
    return "; ".join(reasons) or None
