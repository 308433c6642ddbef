"""The values of each question as CSV: one line a question, one column a metric."""

from __future__ import annotations

import csv
import io
import math
import re
from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from ragauge.document import DECIMALS
from ragauge.model.report import Report, View

_STEPS = 10**DECIMALS
_TO_QUOTE = re.compile(r'[,"\r\n]|^\s|\s$|^$')


def _text(view: View) -> str:
    values = view.scores.per_question
    if values is None:
        return "qid\n"
    heads = ["qid"]
    columns: list[Sequence[str]] = [_quoted(values.qids)]
    if any(turn is not None for turn in values.turns):
        heads.append("turn")
        columns.append(["" if turn is None else str(turn) for turn in values.turns])
    heads.append("label")
    questions = view.scores.questions
    columns.append(questions.labels)
    if any(cause is not None for cause in questions.causes):
        heads.append("cause")
        columns.append([cause or "" for cause in questions.causes])
    words = np.array([f"{step / _STEPS:.{DECIMALS}f}" for step in range(_STEPS + 1)], object)
    for place, name in enumerate(values.metrics):
        if not np.isnan(values.values[place]).all():  # else nobody has a value
            heads.append(name)
            columns.append(_shown(values.values[place], words))
    lines = [",".join(heads), *map(",".join, zip(*columns, strict=True))]
    return "\n".join(lines) + "\n"


def _quoted(texts: Iterable[str]) -> list[str]:
    """Texts as CSV has them: in quotes where they hold a comma, a quote or a line end."""
    return [_quote(text) if _TO_QUOTE.search(text) else text for text in texts]


def _quote(text: str) -> str:
    buffer = io.StringIO()
    csv.writer(buffer, lineterminator="", quoting=csv.QUOTE_ALL).writerow([text])
    return buffer.getvalue()


def _shown(values: NDArray[np.float64], words: NDArray[np.object_]) -> list[str]:
    """Values with four decimals, empty for none. Most lie between 0 and 1: those are looked up."""
    steps = values * _STEPS
    with np.errstate(invalid="ignore"):
        place = np.rint(steps)
        # Close to the middle of two steps only the exact value can tell which is nearer.
        plain = (values >= 0) & (values <= 1) & (np.abs(np.abs(steps - place) - 0.5) > 1e-6)
    column = words[np.where(plain, place, 0).astype(np.int64)]
    for i in np.flatnonzero(~plain).tolist():
        value = float(values[i])
        column[i] = "" if math.isnan(value) else f"{value + 0.0:.{DECIMALS}f}"
    found: list[str] = column.tolist()
    return found


REPORT = Report(
    name="csv", title="the values of each question", content=_text, suffixes=(".csv",), public=True
)
