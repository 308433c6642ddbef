"""Random small gold sets and traces, the ways to write them down, and what two runs must share.

Ids, seeds and words come from tiny alphabets, so that overlaps, repeats and ties happen all the
time. A trace is drawn as a slot and a content, and then spelled in one of many shapes.
"""

from __future__ import annotations

import gzip
import json
import random
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
from hypothesis import strategies as st

from ragauge import score
from ragauge.model.scores import Scores

Row = dict[str, Any]

IDS = ("p1", "p2", "p3", "pä4")
SAID = (
    "It rejects null keys.", "NULL KEYS", "Not in context", " not in context\n", "It is not in "
    "context.", "", "left", "Straße", "So. citations: [p1, p2]", "So. Citations: [p3 pä4]",
    "So. citations: []",
)  # fmt: skip
CLAIMS = ("null keys", "null", "straße", "left!", "It rejects null keys.")
CONSTRAINTS = ("Be brief.", "Be exact.")
MOST_QUESTIONS = 6
MOST_TRACES = 12
SHAPES = ("usual", "usual", "text", "odd")
PLAIN = ("plain",)
SEEDS: dict[int | str | None, int | None] = {None: None, 0: 0, 1: 1, "s": 2}
"""The seeds, and the numbers that stand for them where only numbers may."""
SAID_ONLY = 2
"""The paraphrase that traces do not number: its text tells which it is."""


class Data(NamedTuple):
    """A gold set and its traces, as rows."""

    gold: list[Row]
    trace: list[Row]


class Slot(NamedTuple):
    """The place of a trace: the question's number, and what tells its slots apart."""

    question: int
    paraphrase: int | None
    seed: int | str | None
    turn: int | None


id_lists = st.lists(st.sampled_from(IDS), max_size=4)
claim_lists = st.lists(st.sampled_from(CLAIMS), max_size=3)


@st.composite
def gold_sets(draw: st.DrawFn, *, paraphrased: bool = False) -> list[Row]:
    """Some questions, labelled or not, in the usual spelling or in others."""
    rows = []
    for number in range(draw(st.integers(1, MOST_QUESTIONS))):
        row: Row = {"qid": f"q{number}", "question": f"Frage {number}?"}
        expect = draw(st.sampled_from((True, True, False, None)))
        if draw(st.booleans()):
            row |= {"gold_claim_substr": draw(claim_lists), "gold_citations": draw(id_lists)}
            row["answerable"] = expect
            if expect is None:
                del row["answerable"]
        else:
            row[draw(st.sampled_from(("relevant", "gold_ids", "expected_chunk_ids")))] = draw(
                id_lists
            )
            row["answerable"] = expect
            if draw(st.booleans()):
                row["gold_claim"] = " - ".join(draw(claim_lists))
            row["constraints"] = draw(st.lists(st.sampled_from(CONSTRAINTS), max_size=2))
            row["tags"] = ["extra"]
        if paraphrased:
            row["paraphrases"] = [f"Wie {number}?", f"Was {number}?", f"Sag {number}!"]
        rows.append(row)
    return rows


@st.composite
def slots(
    draw: st.DrawFn, questions: int, paraphrases: tuple[int | None, ...], *, unique: bool
) -> list[Slot]:
    """Places for traces; the question behind the last of the gold set is unknown."""
    one = st.builds(
        Slot,
        st.integers(0, questions),
        st.sampled_from(paraphrases),
        st.sampled_from(tuple(SEEDS)),
        st.sampled_from((None, None, None, 1)),
    )
    size = draw(st.integers(0, MOST_TRACES))
    apart = (lambda slot: slot) if unique else None
    return draw(st.lists(one, min_size=size, max_size=size, unique_by=apart))


@st.composite
def traces(draw: st.DrawFn, slot: Slot, shapes: tuple[str, ...] = SHAPES) -> Row:
    """One trace of a slot, in any shape that is read."""
    shape = draw(st.sampled_from(shapes))
    if shape == "plain":
        return _plain(draw, slot)
    row = _place(draw, slot)
    if shape == "usual":
        row |= _usual(draw)
    elif shape == "text":
        row |= _text(draw)
    else:
        row |= _odd(draw)
    if shapes is SHAPES and not draw(st.integers(0, 7)):
        row["error"] = draw(st.sampled_from(("timeout", "", None, {"code": 500})))
    return row


def _place(draw: st.DrawFn, slot: Slot) -> Row:
    row: Row = {}
    if draw(st.integers(0, 4)):
        row["qid"] = f"q{slot.question}"
    said = slot.paraphrase == SAID_ONLY
    paraphrase = None if said else slot.paraphrase
    named = {"paraphrase": paraphrase, "seed": slot.seed, "turn": slot.turn}
    null_is_written = draw(st.booleans())
    row |= {name: value for name, value in named.items() if value is not None or null_is_written}
    if said or "qid" not in row or draw(st.integers(0, 2)):
        text = f"Sag {slot.question}!" if said else f"Frage {slot.question}?"
        row[draw(st.sampled_from(("q", "q", "question", "query")))] = text
    return row


def _plain(draw: st.DrawFn, slot: Slot) -> Row:
    """The five fields of the source's own example, and nothing else."""
    row: Row = {"qid": f"q{slot.question}", "q": f"Frage {slot.question}?", "seed": slot.seed}
    if slot.seed is None:
        del row["seed"]
    row["retrieved_ids"] = draw(id_lists)
    row["answer_json"] = {"claim": draw(st.sampled_from(SAID)), "citations": draw(id_lists)}
    return row


def _usual(draw: st.DrawFn) -> Row:
    answer: Row = {}
    if draw(st.integers(0, 5)):
        answer["claim"] = draw(st.sampled_from((*SAID, None)))
    if draw(st.integers(0, 5)):
        answer["citations"] = draw(st.one_of(id_lists, st.none()))
    row: Row = {"answer_json": answer, "latency_ms": 12.5}
    if draw(st.integers(0, 5)):
        row["retrieved_ids"] = draw(id_lists)
    return row


def _text(draw: st.DrawFn) -> Row:
    row: Row = {"answer": draw(st.sampled_from((*SAID, None)))}
    more: Row = draw(st.sampled_from(({}, {}, {"text": "T", "type": "prose"}, {"score": 0.5})))
    row["chunks"] = [{"id": each, **more} for each in draw(id_lists)]
    if draw(st.booleans()):
        row["citations"] = draw(st.one_of(id_lists, st.none()))
    return row


def _odd(draw: st.DrawFn) -> Row:
    row: Row = {}
    ids = draw(id_lists)
    name = draw(st.sampled_from(("topk", "items", "retrieved", "hits_top_k", "hits", "retrieval")))
    row[name] = [{"chunk_id": each, "doc": "d"} for each in ids] if draw(st.booleans()) else ids
    if name == "retrieval" and draw(st.booleans()):
        row[name] = {"retrieved_ids": row[name]}
    if draw(st.booleans()):
        row["answer_text"] = draw(st.sampled_from(SAID))
    if draw(st.booleans()):
        cited: Any = [{"id": each} for each in draw(id_lists)]
        row[draw(st.sampled_from(("answer_citations", "cited_chunks")))] = cited
    for flag in ("refused", "grounded"):
        if not draw(st.integers(0, 2)):
            row[flag] = draw(st.booleans())
    if draw(st.booleans()):
        row["constraints_echo"] = draw(st.lists(st.sampled_from(CONSTRAINTS), max_size=2))
    return row


@st.composite
def data_sets(draw: st.DrawFn, *, unique: bool = False) -> Data:
    """A gold set and traces; with `unique` no two traces are of one slot."""
    paraphrased = not draw(st.integers(0, 3))
    gold = draw(gold_sets(paraphrased=paraphrased))
    # Often all rows have one shape: then they are reduced together.
    shapes = draw(st.sampled_from((SHAPES, SHAPES, ("usual",), ("text",), PLAIN)))
    paraphrases = (None, 0, 1, SAID_ONLY) if paraphrased else (None, None, 0, 1)
    places = draw(slots(len(gold), paraphrases, unique=unique))
    if shapes is PLAIN:
        places = [Slot(each.question, None, SEEDS[each.seed], None) for each in places]
        places = list(dict.fromkeys(places)) if unique else places
    return Data(gold, [draw(traces(slot, shapes)) for slot in places])


def large_data(seed: int, questions: int) -> Data:
    """A data set of many questions with two seeds each, for what only shows from 30 on."""
    rng = random.Random(seed)
    gold: list[Row] = []
    trace: list[Row] = []
    for number in range(questions):
        qid, question = f"q{number}", f"Frage {number}?"
        evidence = rng.choices(IDS, k=rng.randrange(3))
        expect: Row = {} if rng.random() < 0.1 else {"answerable": rng.random() < 0.7}
        known = {"gold_citations": evidence, "gold_claim_substr": ["null keys"]}
        gold.append({"qid": qid, "question": question, **expect, **known})
        for run in range(2):
            if rng.random() < 0.15:
                continue
            hits = [*rng.choices(IDS, k=2), *evidence] if rng.random() < 0.8 else []
            answer = {"claim": rng.choice(SAID), "citations": rng.choices(IDS, k=rng.randrange(3))}
            row: Row = {"qid": qid, "q": question, "seed": run, "retrieved_ids": hits}
            row["answer_json"] = answer
            if rng.random() < 0.1:
                row["error"] = "timeout"
            trace.append(row)
    return Data(gold, trace)


def as_lines(rows: list[Row]) -> bytes:
    """JSON Lines."""
    return b"".join(json.dumps(row, ensure_ascii=False).encode() + b"\n" for row in rows)


def _joined(rows: list[Row], mark: str) -> bytes:
    return mark.join(json.dumps(row) for row in rows).encode()


LAYOUTS: dict[str, Callable[[list[Row]], bytes]] = {
    "lines": as_lines,
    "escaped": lambda rows: b"".join(json.dumps(row).encode() + b"\n" for row in rows),
    "no last newline": lambda rows: as_lines(rows)[:-1],
    "CRLF": lambda rows: as_lines(rows).replace(b"\n", b"\r\n"),
    "byte order mark": lambda rows: b"\xef\xbb\xbf" + as_lines(rows),
    "gzip": lambda rows: gzip.compress(as_lines(rows)),
    "array": lambda rows: b"[" + _joined(rows, ",\n") + b"]",
    "gzipped array": lambda rows: gzip.compress(b"[" + _joined(rows, " ,\r\n ") + b"\n]\n"),
}
"""Ways to write rows down; row i stands on line i + 1 in all of them."""


class Files(NamedTuple):
    """Where a data set was written."""

    gold: Path
    trace: Path


@contextmanager
def written(data: Data, layout: str = "lines") -> Iterator[Files]:
    """Write a data set to files that are gone afterwards."""
    with tempfile.TemporaryDirectory() as folder:
        files = Files(Path(folder, "gold"), Path(folder, "trace"))
        files.gold.write_bytes(LAYOUTS[layout](data.gold))
        files.trace.write_bytes(LAYOUTS[layout](data.trace))
        yield files


def scored(data: Data, *, layout: str = "lines", **options: Any) -> Scores:
    """Score a data set by way of files: all metrics, under the profile `all` if not said."""
    options = {"profile": "all", "metrics": ["*"], **options}
    with written(data, layout) as files:
        return score(*files, **options)


def essence(scores: Scores) -> dict[str, Any]:
    """All that two runs over the same rows must share to the last bit, lines included."""
    return {
        "metrics": scores.metrics,
        # As bytes too: entries that come in another order would be printed in another order.
        "written": msgspec.json.encode((scores.metrics, scores.refusal_rules)),
        "tally": scores.tally,
        "refusal rules": scores.refusal_rules,
        "rows": scores.rows,
        "questions": [
            (each.qid, each.label, _line(each.gold), _line(each.trace), each.labels)
            for each in scores.questions
        ],
    }


def unordered(scores: Scores) -> dict[str, Any]:
    """What two runs over the same rows in another order must share to the last bit."""
    shared = essence(scores)
    shared["questions"] = {each.qid: (each.label, each.labels) for each in scores.questions}
    shared["rows"] = sorted(map(repr, scores.rows))
    return shared


def _line(place: str | None) -> str:
    return "" if place is None else place.rpartition(":")[2]
