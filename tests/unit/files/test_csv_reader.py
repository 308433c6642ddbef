"""CSV and TSV: a header and rows of texts, each on its own line, or an error that names it."""

from __future__ import annotations

import gzip
import json
from contextlib import ExitStack
from pathlib import Path

import pytest

from ragauge.errors import RagaugeError
from ragauge.files.ranges import rows_of
from ragauge.formats.field_map import field_maps
from ragauge.formats.load import load_gold, load_traces, open_source
from ragauge.model.gold import Anchor


def saved(folder: Path, text: str, name: str = "t.csv") -> Path:
    path = folder / name
    path.write_bytes(text.encode("utf-8"))
    return path


def refused(path: Path) -> list[tuple[str, int | None]]:
    with pytest.raises(RagaugeError) as raised:
        load_traces(path)
    return [(one.code, one.place.line if one.place else None) for one in raised.value.problems]


def test_cells_become_what_their_field_takes(tmp_path: Path) -> None:
    text = (
        "qid,question,hits,answer,refused,latency_ms,seed\r\n"
        '007,"Is ""x"" it?","[""a"", ""b""]","[1] Yes, it\nis.",FALSE,12.5,3\r\n'
        "b,,a|b;c,,,,\r\n"
        "c,,a; b,,,,\r\n"
    )
    one, two, three = load_traces(saved(tmp_path, text)).traces
    assert (one.qid, one.question, one.seed, one.line) == ("007", 'Is "x" it?', 3, 2)
    assert one.answer is not None
    # A text stays a text, also if it begins as a list does.
    assert (one.answer.text, one.answer.refused) == ("[1] Yes, it\nis.", False)
    assert one.timing is not None
    assert one.timing.total == 12.5
    assert [hit.id for hit in one.hits] == ["a", "b"]
    assert ([hit.id for hit in two.hits], two.line) == (["a", "b;c"], 4)  # the cell has two lines
    assert [hit.id for hit in three.hits] == ["a", "b"]
    assert (two.answer, two.question) == (None, None)


def test_gold_in_a_table(tmp_path: Path) -> None:
    text = (
        "qid;question;answerable;gold_claim_substr;relevant;expected_doc\n"
        "a;Q?;yes;one; two|three;a.md#1|a.md#2;a.md\n".replace("one; two", '"one; two"')
        + 'b;R?;0;;"[{""doc"": ""a.md"", ""start"": 1, ""end"": 3}]";\n'
    )
    one, two = load_gold(saved(tmp_path, text)).items
    assert one.claims_any == ("one; two", "three")  # sentences have semicolons
    assert (one.relevant, one.relevant_docs, one.expect) == (
        ("a.md#1", "a.md#2"),
        ("a.md",),
        "answer",
    )
    assert two.expect == "refuse"
    assert isinstance(two.anchors[0], Anchor)


def test_lists_as_pandas_writes_them(tmp_path: Path) -> None:
    """`to_csv` prints lists as Python does; nothing of it is evaluated."""
    cell = """\"['a', ""it's"", 'b\\\\n']\""""
    text = f"qid,hits\nx,{cell}\n"
    (trace,) = load_traces(saved(tmp_path, text)).traces
    assert [hit.id for hit in trace.hits] == ["a", "it's", "b\\n"]
    objects = "qid,hits\nx,\"[{'id': 'a', 'score': 0.5, 'text': None}]\"\n"
    (trace,) = load_traces(saved(tmp_path, objects)).traces
    assert [(hit.id, hit.score) for hit in trace.hits] == [("a", 0.5)]


def test_an_array_as_numpy_prints_it_is_refused(tmp_path: Path) -> None:
    """['a' 'b'] would be one string to Python, and long arrays are printed with gaps."""
    assert refused(saved(tmp_path, "qid,hits\nx,['a' 'b']\n")) == [("bad-field", 2)]


def test_tabs_semicolons_and_a_byte_order_mark(tmp_path: Path) -> None:
    tabs = saved(tmp_path, "\ufeffqid\tanswer\na\tx, y; z\n", "t.tsv")
    assert load_traces(tabs).traces[0].answer.text == "x, y; z"  # type: ignore[union-attr]
    semicolons = saved(tmp_path, "qid;answer\na;x, y\n")
    assert load_traces(semicolons).traces[0].answer.text == "x, y"  # type: ignore[union-attr]


def test_gzip(tmp_path: Path) -> None:
    path = tmp_path / "t.csv.gz"
    path.write_bytes(gzip.compress(b"qid,hits\na,x|y\n"))
    assert [hit.id for hit in load_traces(path).traces[0].hits] == ["x", "y"]


def test_own_names_in_a_table(tmp_path: Path) -> None:
    text = 'Key,Bot answer,Docs\na,Yes.,"[{""uid"": ""x""}]"\n'
    fields = {"qid": "Key", "answer": "Bot answer", "hits": "Docs[].uid"}
    (trace,) = load_traces(saved(tmp_path, text), fields=fields).traces
    assert (trace.qid, [hit.id for hit in trace.hits]) == ("a", ["x"])
    assert trace.answer is not None
    assert trace.answer.text == "Yes."


def test_every_ragged_row_is_named(tmp_path: Path) -> None:
    text = 'qid,answer\na,"x\ny"\nb,1,2\nc\nd,ok\n'
    assert refused(saved(tmp_path, text)) == [("bad-csv", 4), ("bad-csv", 5)]


def test_a_bad_cell_is_named_with_its_line(tmp_path: Path) -> None:
    text = "qid,refused,latency_ms\na,maybe,1\nb,true,fast\n"
    assert refused(saved(tmp_path, text)) == [("bad-field", 2), ("bad-field", 3)]


@pytest.mark.parametrize(
    ("data", "code"),
    [
        (b"qid,qid\na,b\n", "bad-csv"),
        (b"qid,answer\na,\xff\n", "bad-encoding"),
        (b"qid,answer\na,\x00\n", "nul-byte"),
    ],
)
def test_files_that_are_no_tables(tmp_path: Path, data: bytes, code: str) -> None:
    path = tmp_path / "t.csv"
    path.write_bytes(data)
    with pytest.raises(RagaugeError) as raised:
        load_traces(path)
    (problem,) = raised.value.problems
    line = 1 if b"qid,qid" in data else 2
    assert (problem.code, problem.place and problem.place.line) == (code, line)


def test_json_and_trec_under_such_a_name_stay_what_they_are(tmp_path: Path) -> None:
    rows = saved(tmp_path, '{"qid": "a"}\n')
    assert load_traces(rows).traces[0].qid == "a"
    qrels = saved(tmp_path, "query-id\tcorpus-id\tscore\nq\td\t1\n", "qrels.tsv")
    assert load_gold(qrels).items[0].grades == {"d": 1.0}
    empty = saved(tmp_path, "", "e.csv")
    assert load_traces(empty).traces == ()


def test_texts_in_a_cell_are_hits(tmp_path: Path) -> None:
    text = "qid,contexts\na,One text; here.|Another one.\nb,\"['Only this.']\"\n"
    fields = {"hits": "contexts", "hits.text": "."}
    out = saved(tmp_path, text)
    with ExitStack() as stack:
        source = open_source(stack, out, "traces", fields=field_maps(fields))
        assert source is not None
        rows = [json.loads(data) for _, data, _, _ in rows_of(source)]
    assert [row["hits"] for row in rows] == [
        [{"text": "One text; here."}, {"text": "Another one."}],
        [{"text": "Only this."}],
    ]
