"""An item of a data set that another tool keeps: an input, an expected output, and metadata."""

from __future__ import annotations

from typing import Any

from ragauge.formats.imports.coverage import Coverage
from ragauge.formats.imports.foreign_format import Row
from ragauge.formats.imports.payload import answer_in, decoded, qid_in, question_in
from ragauge.model.field_spellings import GOLD_SPELLINGS
from ragauge.text import REFUSAL_TOKEN, normalise

_COPIED = tuple(
    name
    for field, names in GOLD_SPELLINGS.items()
    if field not in ("qid", "question", "claims", "group")
    for name in names
)
"""What metadata may say of an item under the names that gold has anyway, such as `relevant`."""

_WEAK = (
    "items whose expected output is a claim too (weak: an answer has to contain it word for word)"
)


def gold_row(item_id: Any, given: Any, expected: Any, metadata: Any, coverage: Coverage) -> Row:
    """The gold item that an item is.

    Its id is `qid` in the metadata, or its own. Evidence, slices and `answerable` are taken from
    the metadata; data sets have no place of their own for them.
    """
    metadata = decoded(metadata)
    metadata = metadata if isinstance(metadata, dict) else {}
    row: Row = {}
    qid = qid_in(metadata)
    if qid is None and isinstance(given, dict):
        qid = qid_in(given)
    if qid is None and isinstance(item_id, str | int):
        qid = str(item_id)
    if qid is not None:
        row["qid"] = qid
    if (question := question_in(given)) is not None:
        row["question"] = question
    answer = answer_in(expected)
    if answer is not None and normalise(answer) == REFUSAL_TOKEN:
        row["answerable"] = False
    elif answer is not None:
        row |= {"answerable": True, "reference_answers": [answer], "claims_any": [answer]}
        coverage.note(_WEAK)
    for name in _COPIED:
        if metadata.get(name) is not None:
            row[name] = metadata[name]
    return row
