"""TREC files: what a line is, the order of a list, and the ranks of judged documents.

Every rule has a case made by hand; random files are compared with a plain reading and sorting,
with blocks of any size, with one thread and with two.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

import numpy as np
import pytest

from ragauge.codes import CODES
from ragauge.errors import MAX_REPORTED
from ragauge.files import ranges as source_module
from ragauge.files.open import opened
from ragauge.formats.trec import lines as trec_lines
from ragauge.formats.trec import qrels as trec
from ragauge.formats.trec import ranks as trecmatch
from ragauge.formats.trec.lines import BadLine
from ragauge.formats.trec.qrels import Qrels, TrecRow, qrels_rows, read_qrels, run_rows
from ragauge.formats.trec.ranks import MatchedRun, UnknownQuery, match
from ragauge.formats.trec.tokens import Tokens, decimals, fingerprints, integers, keys, padded
from tests.support.cases import cases

BOM = b"\xef\xbb\xbf"
BLOCKS = (1, 40, 170, 1000, 1 << 20)
Ranks = dict[str, dict[str, int]]


@dataclass
class Outcome:
    """A matched run with names in place of numbers, and the same by a plain reading."""

    ranks: Ranks
    hits: dict[str, int]
    first_lines: dict[str, int]
    unknown: dict[str, int]
    disordered: int
    repeated: int
    lines: int
    bad: list[int] = field(default_factory=list)


def write(folder: Path, data: bytes, name: str = "lines.txt") -> str:
    (folder / name).write_bytes(data)
    return str(folder / name)


def qrels_of(folder: Path, data: bytes, **options: int) -> Qrels:
    with opened(write(folder, data, "qrels.txt")) as source:
        return read_qrels(source, **options)


def match_of(folder: Path, qrels: bytes, run: bytes, **options: int) -> tuple[Qrels, MatchedRun]:
    judged = qrels_of(folder, qrels, **options)
    with opened(write(folder, run, "run.txt")) as source:
        return judged, match(judged, source, **options)


def grades(qrels: Qrels) -> dict[str, dict[str, int]]:
    return {
        qid: {
            qrels.docs.get(index).decode(): int(qrels.grade[index])
            for index in range(int(qrels.offsets[number]), int(qrels.offsets[number + 1]))
        }
        for number, qid in enumerate(qrels.qids)
    }


def outcome(qrels: Qrels, matched: MatchedRun) -> Outcome:
    seen = [number for number in range(len(qrels.qids)) if matched.seen[number]]
    ranks = {
        qid: {
            qrels.docs.get(index).decode(): int(matched.rank[index])
            for index in range(int(qrels.offsets[number]), int(qrels.offsets[number + 1]))
        }
        for number, qid in enumerate(qrels.qids)
    }
    assert len(matched.unknown) == min(matched.unknown_count, trecmatch.MOST_UNKNOWN)
    assert (matched.hits[~matched.seen] == 0).all()
    assert (matched.first_line[~matched.seen] == 0).all()
    return Outcome(
        ranks,
        {qrels.qids[number]: int(matched.hits[number]) for number in seen},
        {qrels.qids[number]: int(matched.first_line[number]) for number in seen},
        {each.qid: each.line for each in matched.unknown},
        matched.disordered,
        matched.repeated,
        matched.lines,
        [each.line for each in matched.problems],
    )


def plainly(qrels: bytes, run: bytes) -> Outcome:
    """Read, sort and look up in the plainest way; a bad line has the wrong number of fields."""
    judged: dict[str, dict[str, int]] = {}
    for row in qrels.decode().split("\n"):
        if row.strip():
            qid, _, docid, grade = row.split()
            judged.setdefault(qid, {})[docid] = int(grade)
    lists: dict[str, list[tuple[float, bytes]]] = {}
    first: dict[str, int] = {}
    bad: list[int] = []
    count = 0
    for line, row in enumerate(run.decode().split("\n"), 1):
        if len(row.split()) == 1:
            bad.append(line)
        elif row.strip():
            qid, _, docid, _, score, _ = row.split()
            with np.errstate(over="ignore"):
                lists.setdefault(qid, []).append((float(np.float32(float(score))), docid.encode()))
            first.setdefault(qid, line)
            count += 1
    ranks: Ranks = {}
    disordered = repeated = 0
    for qid, docs in judged.items():
        ordered = sorted(lists.get(qid, []), reverse=True)
        disordered += ordered != lists.get(qid, [])
        repeated += len({docid for _, docid in ordered}) < len(ordered)
        names = [docid.decode() for _, docid in ordered]
        ranks[qid] = {docid: names.index(docid) if docid in names else -1 for docid in docs}
    known, unknown = judged.keys() & lists.keys(), lists.keys() - judged.keys()
    return Outcome(
        ranks,
        {qid: len(lists[qid]) for qid in known},
        {qid: first[qid] for qid in known},
        {qid: first[qid] for qid in unknown},
        disordered,
        repeated,
        count,
        bad[:MAX_REPORTED],
    )


def run_lines(*rows: str) -> bytes:
    return "".join(f"{row}\n" for row in rows).encode()


# --- qrels ---------------------------------------------------------------------------------------


def test_judgements_are_grouped_by_query_in_the_order_of_their_lines(tmp_path: Path) -> None:
    qrels = qrels_of(tmp_path, b"q2 0 a 1\nq2 0 b -2\nq1 0 a 3\nq1 0 c 0\n")
    assert qrels.qids == ["q2", "q1"]
    assert qrels.offsets.tolist() == [0, 2, 4]
    assert [qrels.docs.get(index).decode() for index in range(4)] == ["a", "b", "a", "c"]
    assert qrels.grade.tolist() == [1, -2, 3, 0]
    assert qrels.grade.dtype == np.int32
    assert qrels.first_line.tolist() == [1, 3]
    assert (qrels.lines, qrels.duplicates, qrels.problem_count) == (4, 0, 0)


@cases("block_bytes", BLOCKS)
def test_lines_of_a_query_need_not_be_together(tmp_path: Path, block_bytes: int) -> None:
    data = b"q1 0 a 1\nq2 0 a 2\nq1 0 b 3\nq3 0 a 4\nq2 0 c 5\n"
    qrels = qrels_of(tmp_path, data, block_bytes=block_bytes)
    assert grades(qrels) == {"q1": {"a": 1, "b": 3}, "q2": {"a": 2, "c": 5}, "q3": {"a": 4}}
    assert qrels.first_line.tolist() == [1, 2, 4]


@cases("block_bytes", BLOCKS)
def test_of_two_lines_for_a_document_the_last_wins(tmp_path: Path, block_bytes: int) -> None:
    data = b"q1 0 a 1\nq1 0 b 1\nq2 0 a 5\nq1 0 a 2\nq1 0 a 3\n"
    qrels = qrels_of(tmp_path, data, block_bytes=block_bytes)
    assert grades(qrels) == {"q1": {"a": 3, "b": 1}, "q2": {"a": 5}}
    assert (qrels.lines, qrels.duplicates) == (5, 2)
    assert qrels.offsets.tolist() == [0, 2, 3]
    assert len(qrels.fingerprint) == len(qrels.docs) == 3


@cases(
    "data",
    [
        b"q1 0 a 1\nq2 0 b 2\n",
        b"q1 0 a 1\nq2 0 b 2",
        BOM + b"q1 0 a 1\nq2 0 b 2\n",
        b"q1\t0\ta\t1\r\nq2\t0\tb\t2\r\n",
        b"q1   0 \t a\t\t1\nq2 0 b 2\n",
        b"  q1 0 a 1  \n\tq2 0 b 2 \r\n",
        b"\nq1 0 a 1\n\n \t\nq2 0 b 2\n\r\n",
        b"q1 0 a +1\nq2 0 b 002",
        b"query-id\tcorpus-id\tscore\nq1\ta\t1\nq2\tb\t2\n",
        b"\r\nquery-id\tcorpus-id\tscore\r\nq1\ta\t1\r\nq2\tb\t2\r\n",
        b"q1 0 a 1\x0b\x0c\nq2 0 b 2\n",  # blank to C, and so to trec_eval
    ],
)
@cases("block_bytes", [1, 1 << 20])
def test_the_same_judgements_in_many_spellings(
    tmp_path: Path, data: bytes, block_bytes: int
) -> None:
    qrels = qrels_of(tmp_path, data, block_bytes=block_bytes)
    assert grades(qrels) == {"q1": {"a": 1}, "q2": {"b": 2}}
    assert qrels.problems == ()
    with opened(write(tmp_path, data)) as source:
        rows = [row for row in qrels_rows(source) if isinstance(row, TrecRow)]
    assert [(row.qid, row.docid, row.number) for row in rows] == [("q1", "a", 1), ("q2", "b", 2)]
    assert [row.line for row in rows] == qrels.first_line.tolist()


def test_lines_are_counted_with_the_header_and_blank_lines(tmp_path: Path) -> None:
    data = b"\nquery-id\tcorpus-id\tscore\nq1\ta\t1\n\nq2\tb\tx\nq3\tb\t1\n"
    qrels = qrels_of(tmp_path, data)
    assert qrels.first_line.tolist() == [3, 6]
    assert [bad.line for bad in qrels.problems] == [5]


@cases("data", [b"", b"\n", BOM, b" \r\n\n", b"query-id corpus-id score"])
def test_an_empty_file_has_nothing(tmp_path: Path, data: bytes) -> None:
    qrels, matched = match_of(tmp_path, data, b"q1 Q0 a 1 1.0 t\n")
    assert (qrels.qids, qrels.offsets.tolist(), len(qrels.docs)) == ([], [0], 0)
    assert (matched.unknown_count, matched.lines, len(matched.rank)) == (1, 1, 0)
    _, matched = match_of(tmp_path, b"q1 0 a 1\n", b"" if data.startswith(b"q") else data)
    assert matched.rank.tolist() == [-1]
    assert matched.seen.tolist() == [False]


@cases("name", ["é", "文書", "🦜", "[1]", '{"a":1}', "x" * 300, "a\u00a0b", "\x01"])
def test_ids_are_any_bytes_without_blanks(tmp_path: Path, name: str) -> None:
    qrels, matched = match_of(
        tmp_path, f"{name} 0 {name} 1\n".encode(), run_lines(f"{name} Q0 {name} 1 2.5 t")
    )
    assert qrels.qids == [name]
    assert qrels.docs.get(0).decode() == name
    assert matched.rank.tolist() == [0]


# --- bad lines -----------------------------------------------------------------------------------

BAD_QRELS = [
    (b"q1 0 a", "not-a-row"),
    (b"q1 0 a 1 2", "not-a-row"),
    (b"q1", "not-a-row"),
    (b"q1 0 a 1.0", "bad-field"),
    (b"q1 0 a one", "bad-field"),
    (b"q1 0 a -", "bad-field"),
    (b"q1 0 a 1_0", "bad-field"),
    (b"q1 0 a 2147483648", "bad-field"),
    (b"q1 0 a " + b"9" * 5000, "bad-field"),
    ("q1 0 a \u0661".encode(), "bad-field"),
    (b"q1 0 \xff 1", "bad-encoding"),
    (b"q1 0 a\0 1", "nul-byte"),
]
BAD_RUN = [
    (b"q1 Q0 a 1 1.0", "not-a-row"),
    (b"q1 Q0 a b 1 1.0 t", "not-a-row"),
    (b"q1 Q0 a 1 nan t", "bad-field"),
    (b"q1 Q0 a 1 inf t", "bad-field"),
    (b"q1 Q0 a 1 -Infinity t", "bad-field"),
    (b"q1 Q0 a 1 1e400 t", "bad-field"),
    (b"q1 Q0 a 1 0x10 t", "bad-field"),
    (b"q1 Q0 a 1 1_0 t", "bad-field"),
    (b"q1 Q0 a 1 . t", "bad-field"),
    (b"q1 Q0 a 1 + t", "bad-field"),
    (b"q1 Q0 a 1 -. t", "bad-field"),
    (b"q1 Q0 a 1 1.2.3 t", "bad-field"),
    (b"q1 Q0 a 1 1,5 t", "bad-field"),
    (b"q1 Q0 a 1 1.5e t", "bad-field"),
    (b"q1 Q0 a 1 1.0 \xc3", "bad-encoding"),
    (b"q1 Q0 a 1 1.0 t\0", "nul-byte"),
]


@cases(("bad", "code"), BAD_QRELS)
@cases("block_bytes", [1, 1 << 20])
def test_a_bad_qrels_line_is_named_and_left_out(
    tmp_path: Path, bad: bytes, code: str, block_bytes: int
) -> None:
    data = b"q1 0 b 1\n\n" + bad + b"\nq2 0 a 1\n"
    qrels = qrels_of(tmp_path, data, block_bytes=block_bytes)
    assert grades(qrels) == {"q1": {"b": 1}, "q2": {"a": 1}}
    assert qrels.first_line.tolist() == [1, 4]
    assert [(each.line, each.code) for each in qrels.problems] == [(3, code)]
    assert code in CODES
    assert qrels.problems[0].hint
    with opened(write(tmp_path, data)) as source:
        rows = list(qrels_rows(source))
    assert rows == [TrecRow(1, "q1", "b", 1), qrels.problems[0], TrecRow(4, "q2", "a", 1)]
    assert str(qrels.problems[0].at("x.txt").place) == "x.txt:3"


@cases(("bad", "code"), BAD_RUN)
@cases("block_bytes", [1, 1 << 20])
def test_a_bad_run_line_is_named_and_left_out(
    tmp_path: Path, bad: bytes, code: str, block_bytes: int
) -> None:
    run = b"q1 Q0 b 1 3.5 t\n" + bad + b"\nq1 Q0 c 2 2.5 t"
    _, matched = match_of(tmp_path, b"q1 0 a 1\nq1 0 b 1\nq1 0 c 1\n", run, block_bytes=block_bytes)
    assert matched.rank.tolist() == [-1, 0, 1]
    assert (matched.hits.tolist(), matched.lines, matched.problem_count) == ([2], 2, 1)
    assert [(each.line, each.code) for each in matched.problems] == [(2, code)]
    with opened(write(tmp_path, run)) as source:
        assert list(run_rows(source)) == [
            TrecRow(1, "q1", "b", 3.5), matched.problems[0], TrecRow(3, "q1", "c", 2.5),
        ]  # fmt: skip


def test_the_messages_say_what_was_expected_and_what_was_found(tmp_path: Path) -> None:
    qrels = qrels_of(tmp_path, b"q1 0 a\nq1 0 a one\n")
    assert qrels.problems == (
        BadLine(
            1,
            "not-a-row",
            'a qrels line has 4 fields (query iteration document grade), got 3: "q1 0 a"',
            "begin the file with the line `query-id\tcorpus-id\tscore` if it is a BEIR file",
        ),
        BadLine(
            2,
            "bad-field",
            '`grade` must be an integer, got "one"',
            "write the grade as a whole number",
        ),
    )


@cases("block_bytes", BLOCKS)
def test_all_bad_lines_are_counted_and_the_first_are_kept(tmp_path: Path, block_bytes: int) -> None:
    run = b"".join(b"q1 Q0 d%d 1 %s t\n" % (i, b"x" if i % 2 else b"1.0") for i in range(100))
    _, matched = match_of(tmp_path, b"q1 0 d0 1\n", run, block_bytes=block_bytes)
    assert matched.problem_count == 50
    assert [each.line for each in matched.problems] == [2 * i + 2 for i in range(MAX_REPORTED)]
    assert matched.hits.tolist() == [50]


def test_a_line_too_long_to_be_held_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in (source_module, trec_lines):
        monkeypatch.setattr(module, "MAX_LINE", 100)
    run = b"q1 Q0 a 1 3.0 t\n" + b"x" * 450 + b"\nq1 Q0 b 1 2.0 t\n" + b"q2 Q0 a 1 1.0 t\n" * 20
    run += b"q1 Q0 c 1 1.0 t\n"
    _, matched = match_of(tmp_path, b"q1 0 b 1\nq1 0 c 1\n", run, block_bytes=200)
    assert [(each.line, each.code) for each in matched.problems] == [(2, "line-too-long")]
    assert matched.rank.tolist() == [1, 2]


# --- the order of a list -------------------------------------------------------------------------


def ranks_of(folder: Path, *rows: str, qid: str = "q1") -> dict[str, int]:
    """Match a run of one query, with every document judged."""
    names = dict.fromkeys(row.split()[0] for row in rows)
    qrels = "".join(f"{qid} 0 {name} 1\n" for name in names).encode()
    run = run_lines(*(f"{qid} Q0 {name} 0 {score} t" for name, score in map(str.split, rows)))
    judged, matched = match_of(folder, qrels, run)
    return outcome(judged, matched).ranks[qid]


@cases(
    ("rows", "expected"),
    [
        (("a 1.0", "b 3.0", "c 2.0"), "bca"),
        (("a -1.5", "b -0.5", "c -2.5"), "bac"),
        (("a 9.5", "b 10.5", "c 1.5"), "bac"),
        (("a 1e-3", "b 1e-2", "c 0.005"), "bca"),
        (("a 1", "b 2", "c 3"), "cba"),
        (("a 5", "b 5.0", "c 5.00"), "cba"),
        (("a 0", "b -0.0", "c +0"), "cba"),
        (("a .5", "b 5.", "c 1"), "bca"),
        (("a 12345678.5", "b 123456789.5", "c 12345.5"), "bac"),
        (("a 16777216", "b 16777217", "c 16777215"), "bac"),  # a and b are one float32
        (("a 0.30000001", "b 0.3", "c 0.300000015"), "cba"),  # all three are
        (("a 1e39", "b 1e300", "c 3e38"), "bac"),  # two are infinite
        (("a 1e-60", "b 0", "c 1e-50"), "cba"),  # all are 0
        (("a 17.98420524597168", "b 17.98420524597169", "c 17.9842052459"), "cba"),
        (("a 1.00000005960464477539062", "b 1.0", "c 1.00000011920928955"), "cba"),
    ],
)
def test_scores_are_compared_in_single_precision_and_ties_by_id(
    tmp_path: Path, rows: tuple[str, ...], expected: str
) -> None:
    assert ranks_of(tmp_path, *rows) == {name: expected.index(name) for name in "abc"}


def test_tied_ids_are_compared_as_bytes_the_largest_first(tmp_path: Path) -> None:
    names = ["doc-long-name-2", "doc-long-name-10", "doc", "doc-long-name-1", "é", "z", "Z", "doc1"]
    names += [f"{'p' * 300}{number}" for number in range(3)]
    expected = sorted((name.encode() for name in names), reverse=True)
    ranks = ranks_of(tmp_path, *(f"{name} 1.25" for name in names))
    assert [name.encode() for name in sorted(ranks, key=ranks.__getitem__)] == expected
    ranks = ranks_of(tmp_path, *(f"{name.decode()} 1.25" for name in expected[3:]))
    assert list(ranks.values()) == list(range(len(names) - 3))


def test_disordered_queries_are_counted_and_the_rank_column_is_not_looked_at(
    tmp_path: Path,
) -> None:
    run = run_lines(
        "q1 Q0 a 2 2.0 t", "q1 Q0 b 1 1.0 t",  # in order, whatever the rank column says
        "q2 Q0 a 1 1.0 t", "q2 Q0 b 2 2.0 t",
        "q3 Q0 b 1 1.0 t", "q3 Q0 a 2 1.0 t",  # tied, and b > a
        "q4 Q0 a 1 1.0 t", "q4 Q0 b 2 1.0 t",
        "q5 Q0 a 1 1.0 t", "q5 Q0 a 2 1.0 t",
        "q9 Q0 a 1 1.0 t", "q9 Q0 b 2 2.0 t",  # not judged, not counted
    )  # fmt: skip
    qrels = b"".join(b"q%d 0 a 1\n" % number for number in range(1, 7))
    judged, matched = match_of(tmp_path, qrels, run)
    assert matched.disordered == 2
    assert matched.repeated == 1
    assert matched.rank.tolist() == [0, 1, 1, 1, 0, -1]
    assert matched.seen.tolist() == [True] * 5 + [False]
    assert matched.unknown == (UnknownQuery("q9", 11),)
    assert outcome(judged, matched).first_lines == {"q1": 1, "q2": 3, "q3": 5, "q4": 7, "q5": 9}


@cases("block_bytes", BLOCKS)
def test_a_repeated_document_keeps_its_places_and_counts_at_the_best(
    tmp_path: Path, block_bytes: int
) -> None:
    run = run_lines(
        "q1 Q0 a 1 1.0 t", "q1 Q0 b 2 5.0 t", "q1 Q0 a 3 4.0 t", "q1 Q0 b 4 3.0 t", "q1 Q0 c 5 2 t"
    )
    # b (5) a (4) b (3) c (2) a (1)
    _, matched = match_of(tmp_path, b"q1 0 a 1\nq1 0 b 1\nq1 0 c 1\n", run, block_bytes=block_bytes)
    assert matched.rank.tolist() == [1, 0, 3]
    assert (matched.hits.tolist(), matched.repeated, matched.disordered) == ([5], 1, 1)


def test_the_first_unknown_queries_are_named_and_all_are_counted(tmp_path: Path) -> None:
    run = b"".join(b"u%d Q0 a 1 1 t\nq1 Q0 a 1 1 t\n" % (number % 50) for number in range(100))
    _, matched = match_of(tmp_path, b"q1 0 a 1\n", run, block_bytes=300)
    assert matched.unknown_count == 50
    assert matched.unknown == tuple(UnknownQuery(f"u{i}", 2 * i + 1) for i in range(20))
    assert (matched.hits.tolist(), matched.lines) == ([100], 200)


# --- numbers and hashes --------------------------------------------------------------------------


def tokens_of(names: list[bytes]) -> Tokens:
    size = np.array([len(name) for name in names], np.int64)
    return Tokens(padded(b"".join(names)), np.cumsum(size) - size, size)


def spellings(random: Random) -> Iterator[str]:
    for _ in range(3000):
        value = random.choice(
            (random.uniform(-50, 50), random.random() * 1e-6, random.uniform(0, 1e10),
             float(random.randrange(10 ** random.randint(1, 17))))
        )  # fmt: skip
        yield repr(value)
        yield f"{value:.{random.randint(0, 22)}f}"
        yield f"{value:+.{random.randint(0, 8)}f}"
        yield f"{value:.{random.randint(1, 12)}g}"


def test_decimals_are_the_singles_of_the_nearest_doubles() -> None:
    texts = [*spellings(Random(5)), "0", "-0", "00000001.5", "1" * 15, "1" * 16, "1" * 24 + ".5"]
    numbers, odd = decimals(tokens_of([text.encode() for text in texts]))
    sure = set(range(len(texts))) - set(odd.tolist())
    plain = [index for index, text in enumerate(texts) if "e" not in text and len(text) <= 16]
    assert len(sure & set(plain)) >= 0.99 * len(plain)
    for index in sure:
        assert numbers[index] == np.float32(float(texts[index])), texts[index]


def test_integers_of_any_sign_and_width() -> None:
    texts = ["0", "7", "-1", "+12", "00012345", "-12345678", "12345678", "", "-", "123456789", "1x"]
    numbers, odd = integers(tokens_of([text.encode() for text in texts]))
    assert numbers[:7].tolist() == [0, 7, -1, 12, 12345, -12345678, 12345678]
    assert odd.tolist() == [7, 8, 9, 10]


def test_a_hash_depends_on_the_bytes_of_the_token_alone() -> None:
    names = [b"a" * size + b"%d" % digit for size in range(40) for digit in range(3)]
    together = fingerprints(tokens_of(names))
    alone = [int(fingerprints(tokens_of([name]))[0]) for name in names]
    assert together.tolist() == alone
    assert len(set(alone)) == len(names)


# --- random files --------------------------------------------------------------------------------


def random_score(random: Random) -> str:
    value = random.choice((random.uniform(-3, 3), random.uniform(0, 30), 1.25))
    if random.random() < 0.2:
        value = 20 + random.randrange(5) * 2e-7  # different doubles, mostly one single
    form = random.choice(
        ("{:.6f}", "{:.6f}", "{:.2f}", "{:.15f}", "{!r}", "{:.9f}", "{:e}", "{:.0f}")
    )
    return form.format(value)


def random_files(seed: int) -> tuple[bytes, bytes]:
    random = Random(seed)
    separators = [" "] if seed % 3 == 0 else [" ", "\t", "  ", " \t "]
    end = random.choice(("\n", "\n", "\r\n", " \n"))
    stem = random.choice(("d", "doc-", "véry-long-document-name-", ""))
    docs = [f"{stem}{number}" for number in range(random.choice((8, 40)))]
    queries = [f"q{'x' * random.choice((0, 0, 12))}{number}" for number in range(12)]

    def line(*fields: object) -> str:
        return random.choice(separators).join(map(str, fields)) + end

    judged, results = [], []
    for qid in queries[:9]:
        chosen = random.choices(docs, k=random.randint(1, 8))
        judged += [line(qid, 0, docid, random.randint(-1, 3)) for docid in chosen]
    for qid in queries[2:]:
        chosen = random.sample(docs, random.randint(1, len(docs)))
        if random.random() < 0.3:
            chosen += random.choices(chosen, k=2)
        scores = [random_score(random) for _ in chosen]
        if random.random() < 0.5:
            scores.sort(key=float, reverse=True)
        rows = enumerate(zip(chosen, scores, strict=True), 1)
        results += [line(qid, "Q0", docid, rank, score, "t") for rank, (docid, score) in rows]
    if seed % 4 == 0:
        random.shuffle(results)
        random.shuffle(judged)
    if seed % 5 == 0:
        results.insert(len(results) // 2, "\n")
    return "".join(judged).encode(), "".join(results).rstrip("\r\n").encode()


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(16))
def test_random_files_give_what_a_plain_reading_gives(tmp_path: Path, seed: int) -> None:
    qrels, run = random_files(seed)
    expected = plainly(qrels, run)
    for block_bytes, threads in ((1, 1), (40, 2), (170, 1), (170, 2), (1000, 2), (1 << 20, 1)):
        found = match_of(tmp_path, qrels, run, block_bytes=block_bytes, threads=threads)
        assert outcome(*found) == expected, (block_bytes, threads)


@pytest.mark.slow
@cases("seed", range(8))
def test_a_block_with_bad_lines_is_cut_and_nothing_else_changes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    monkeypatch.setattr(trec_lines, "_SMALL", 100)
    qrels, run = random_files(seed)
    rows = run.split(b"\n")
    for place in sorted(Random(seed).sample(range(len(rows)), 3 + 10 * (seed % 3)), reverse=True):
        rows.insert(place, b"\r" if place % 5 == 0 else b"bad")
    run = b"\n".join(rows)
    expected = plainly(qrels, run)
    assert expected.bad
    for block_bytes in (1000, 1 << 20):
        found = match_of(tmp_path, qrels, run, block_bytes=block_bytes)
        assert outcome(*found) == expected


@cases("seed", range(6))
@cases("coarse", [0, 3 << 62, 0x1F << 59])
def test_colliding_hashes_change_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int, coarse: int
) -> None:
    for module in (trec, trecmatch):
        monkeypatch.setattr(
            module, "keys", lambda words, group: keys(words, group) & np.uint64(coarse)
        )
    qrels, run = random_files(seed)
    assert outcome(*match_of(tmp_path, qrels, run)) == plainly(qrels, run)


@cases("seed", range(8))
def test_the_rows_of_a_file_are_those_of_a_plain_reading(tmp_path: Path, seed: int) -> None:
    qrels, run = random_files(seed)
    with ExitStack() as stack:
        judged = stack.enter_context(opened(write(tmp_path, qrels, "qrels.txt")))
        results = stack.enter_context(opened(write(tmp_path, run, "run.txt")))
        found = [*qrels_rows(judged), *run_rows(results)]
    expected: list[TrecRow] = []
    for line, row in enumerate(qrels.decode().split("\n"), 1):
        if row.strip():
            qid, _, docid, grade = row.split()
            expected.append(TrecRow(line, qid, docid, int(grade)))
    for line, row in enumerate(run.decode().split("\n"), 1):
        if row.strip():
            qid, _, docid, _, score, _ = row.split()
            expected.append(TrecRow(line, qid, docid, float(score)))
    assert found == expected


@contextmanager
def no_slow_path(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    def refuse(*_: object) -> None:
        raise AssertionError("a regular block was read line by line")

    with monkeypatch.context() as patched:
        patched.setattr(trec_lines, "_one_by_one", refuse)
        yield


@cases("gap", [" ", "\t", "  ", " \t"])
@cases("end", ["\n", "\r\n", " \n"])
def test_regular_files_are_never_read_line_by_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, gap: str, end: str
) -> None:
    rows = [("q1", "Q0", f"é{i}", str(i), f"{1 / (i + 1)!r}", "t") for i in range(50)]
    run = "".join(gap.join(row) + end for row in rows).encode()
    with no_slow_path(monkeypatch):
        _, matched = match_of(tmp_path, "q1 0 é3 1\nq1 0 é49 1".encode(), run)
    assert matched.rank.tolist() == [3, 49]


@pytest.mark.parametrize("seed", range(6))
def test_pytrec_eval_finds_the_same_ranks(tmp_path: Path, seed: int) -> None:
    pytrec_eval = pytest.importorskip("pytrec_eval")
    random = Random(seed)
    docs = [f"d{number}" for number in range(60)]
    results = {
        f"q{number}": {docid: random_score(random) for docid in random.sample(docs, 50)}
        for number in range(5)
    }
    qrels = "".join(f"{qid} 0 {docid} 1\n" for qid in results for docid in docs).encode()
    run = run_lines(
        *(
            f"{qid} Q0 {docid} 1 {score} t"
            for qid in results
            for docid, score in results[qid].items()
        )
    )
    ranks = outcome(*match_of(tmp_path, qrels, run, block_bytes=500)).ranks
    for docid in docs:
        evaluator = pytrec_eval.RelevanceEvaluator(
            {qid: {docid: 1} for qid in results}, {"recip_rank"}
        )
        lists = {
            qid: {name: float(score) for name, score in scores.items()}
            for qid, scores in results.items()
        }
        for qid, values in evaluator.evaluate(lists).items():
            rank = ranks[qid][docid]
            expected = 0.0 if rank < 0 else 1 / (rank + 1)
            assert math.isclose(values["recip_rank"], expected), (qid, docid)
