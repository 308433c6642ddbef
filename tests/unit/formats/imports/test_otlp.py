"""OTLP in all its forms gives the same traces, and damaged files say where."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest

from ragauge.errors import Place, RagaugeError
from ragauge.files.open import UnpackedFile, unpacked
from ragauge.formats.imports import otlp_json
from ragauge.formats.imports.convert import recognise
from ragauge.formats.imports.coverage import Coverage
from ragauge.formats.imports.foreign_format import ForeignFile, ImportOptions
from ragauge.formats.imports.otlp import FORMAT
from tests.support.cases import cases
from tests.support.spans import body, chain, imported, protobuf, retriever, span, written

REQUEST = body(
    retriever(2, ["a", "ü"], "q?", parent=1),
    chain(1, "q?", "It is. [ü]", attributes={"metadata": '{"qid": "Q1"}', "n": 7, "x": 0.5}),
    resource={"service.version": "2"},
)
OTHER = body(chain(1, "r?", "y", trace=2), retriever(2, ["b"], "r?", parent=1, trace=2))


def test_json_in_any_layout_is_the_same(tmp_path: Path) -> None:
    both = {"resourceSpans": REQUEST["resourceSpans"] + OTHER["resourceSpans"]}
    layouts = {
        "one line": json.dumps(both),
        "pretty": json.dumps(both, indent=2),
        "lines": f"{json.dumps(REQUEST)}\n{json.dumps(OTHER)}\n",
        "blank lines": f"\n{json.dumps(REQUEST)}\n\n{json.dumps(OTHER)}",
        "array": json.dumps([REQUEST, OTHER]),
        "byte order mark": "\ufeff" + json.dumps(both),
        "tempo": json.dumps({"batches": both["resourceSpans"]}),
        "with metrics": f'{{"resourceMetrics": []}}\n{json.dumps(both)}\n',
    }
    expected = None
    for name, text in layouts.items():
        path = tmp_path / "spans.json"
        path.write_text(text, encoding="utf-8")
        rows = imported(path)
        expected = expected or rows
        assert rows == expected, name
    assert expected is not None
    assert [row["question"] for row in expected] == ["q?", "r?"]


@cases("block", [1, 64, 5_000])
@cases("large", [200, 3_000, 100_000])
def test_json_of_any_size_is_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, block: int, large: int
) -> None:
    """Lines over the ends of blocks, lines and documents that are decoded part by part."""
    both = {"resourceSpans": REQUEST["resourceSpans"] + OTHER["resourceSpans"]}
    layouts = {
        "one line": json.dumps(both),
        "pretty": json.dumps(both, indent=2),
        "lines": f"{json.dumps(OTHER)}\n{json.dumps(REQUEST)}\n",
        "blank lines": f"\n\n{json.dumps(REQUEST)}\n  \n{json.dumps(OTHER)}",
        "array": json.dumps([REQUEST, OTHER]),
        "byte order mark": "\ufeff" + json.dumps(both),
        "with metrics": f'{{"resourceMetrics": []}}\n{json.dumps(both)}\n',
    }
    path = tmp_path / "spans.json"
    path.write_text(json.dumps(both), encoding="utf-8")
    expected = imported(path)
    monkeypatch.setattr(otlp_json, "_BLOCK", block)
    monkeypatch.setattr(otlp_json, "_LARGE", large)
    for name, text in layouts.items():
        path.write_text(text, encoding="utf-8")
        assert imported(path) == expected, name


def test_a_damaged_part_of_a_large_document_says_where(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(otlp_json, "_LARGE", 100)
    text = json.dumps(REQUEST, indent=2)
    path = tmp_path / "spans.json"
    path.write_text(text, encoding="utf-8")
    file = ForeignFile(UnpackedFile(str(path), str(path), False))
    path.write_text(text.replace('"input.value"', "input.value", 1), encoding="utf-8")
    with pytest.raises(RagaugeError) as caught:
        list(otlp_json.json_spans(file))
    line = text[: text.index('"input.value"')].count("\n") + 1
    assert caught.value.problems[0].code == "bad-spans"
    assert caught.value.problems[0].place == Place(str(path), line)


def test_a_span_of_another_type_says_which_one_it_is(tmp_path: Path) -> None:
    spans = [chain(1, "q?", "It is."), {**chain(2, "r?", "It is not."), "traceId": 7}]
    path = tmp_path / "spans.jsonl"
    path.write_text(f"{json.dumps(REQUEST)}\n{json.dumps(body(*spans))}\n", encoding="utf-8")
    with pytest.raises(RagaugeError) as caught:
        imported(path)
    (problem,) = caught.value.problems
    assert (problem.code, problem.place) == ("bad-spans", Place(str(path), 2))
    assert "got `int` - at `$.traceId` of span 2" in problem.message


def test_numbers_beyond_64_bits_hide_nothing(tmp_path: Path) -> None:
    """Such a number anywhere in a span once made the word "None" of its question."""
    late = 2**64 + 5
    output = json.dumps({"answer": "It is.", "seed": 10**40})
    spans = [
        chain(1, "q?", output, endTimeUnixNano=str(late)[:19] + "9"),
        span(
            2,
            {
                "mlflow.spanType": '"RETRIEVER"',
                "mlflow.spanInputs": '{"query": "q?"}',
                "mlflow.spanOutputs": json.dumps(
                    [{"id": "a", "metadata": {"score": 10**40}}, {"id": "b", "score": 10**400}]
                ),
            },
            parent=1,
        ),
        span(3, {"mlflow.spanType": '"CHAIN"', "mlflow.spanOutputs": f"[{10**30}]"}, parent=1),
    ]
    (row,) = imported(written(tmp_path / "spans.json", *spans))
    assert row["question"] == "q?"
    assert row["answer"] == "It is."
    assert row["hits"] == [{"id": "a", "score": 1e40}, {"id": "b"}]


def test_protobuf_and_json_are_the_same(tmp_path: Path) -> None:
    (tmp_path / "a.pb").write_bytes(protobuf(REQUEST))
    (tmp_path / "a.json").write_text(json.dumps(REQUEST), encoding="utf-8")
    assert imported(tmp_path / "a.pb") == imported(tmp_path / "a.json")


def test_protobuf_in_any_framing_is_the_same(tmp_path: Path) -> None:
    one, other = protobuf(REQUEST), protobuf(OTHER)

    def varint(number: int) -> bytes:
        low, rest = number & 127, number >> 7
        return bytes([low | 128]) + varint(rest) if rest else bytes([low])

    framings = {
        "concatenated": one + other,
        "file exporter": b"".join(len(x).to_bytes(4, "big") + x for x in (one, other)),
        "delimited": b"".join(varint(len(x)) + x for x in (one, other)),
    }
    expected = None
    for name, data in framings.items():
        path = tmp_path / "spans.pb"
        path.write_bytes(data)
        rows = imported(path)
        expected = expected or rows
        assert rows == expected, name
    assert expected is not None
    assert [row["question"] for row in expected] == ["q?", "r?"]


def test_a_message_larger_than_what_is_parsed_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "spans.pb"
    path.write_bytes(protobuf(REQUEST))
    expected = imported(path)
    for limit in (400, 60, 0):  # then scopes are parsed one by one, then spans
        monkeypatch.setattr("ragauge.formats.imports.otlp_protobuf._AT_ONCE", limit)
        assert imported(path) == expected


def test_ids_in_base64_are_those_in_hex(tmp_path: Path) -> None:
    text = json.dumps(REQUEST)
    path = tmp_path / "spans.json"
    path.write_text(text, encoding="utf-8")
    expected = imported(path)
    for hexed, based in (
        (f"{1:032x}", "AAAAAAAAAAAAAAAAAAAAAQ=="),
        (f"{1:016x}", "AAAAAAAAAAE="),
        (f"{2:016x}", "AAAAAAAAAAI="),
    ):
        text = text.replace(f'"{hexed}"', f'"{based}"')
    path.write_text(text, encoding="utf-8")
    assert imported(path) == expected


def test_numbers_may_be_text_or_numbers(tmp_path: Path) -> None:
    path = tmp_path / "spans.json"
    path.write_text(json.dumps(REQUEST), encoding="utf-8")
    expected = imported(path)
    text = json.dumps(REQUEST)
    for one in REQUEST["resourceSpans"][0]["scopeSpans"][0]["spans"]:
        for name in ("startTimeUnixNano", "endTimeUnixNano"):
            text = text.replace(f'"{one[name]}"', one[name])
    path.write_text(text, encoding="utf-8")
    assert imported(path) == expected


def test_a_gzipped_body_is_unpacked_whatever_its_name_is(tmp_path: Path) -> None:
    path = tmp_path / "spans.pb"
    path.write_bytes(gzip.compress(protobuf(REQUEST)))
    with unpacked(path) as file:
        counts = Coverage()
        assert FORMAT.read_traces is not None
        rows = list(FORMAT.read_traces([ForeignFile(file)], ImportOptions(), counts))
    assert [row["question"] for row in rows] == ["q?"]


def test_a_truncated_body_is_an_error_that_says_where(tmp_path: Path) -> None:
    data = protobuf(REQUEST) + protobuf(OTHER)
    path = tmp_path / "spans.pb"
    path.write_bytes(data[:-10])
    with pytest.raises(RagaugeError) as caught:
        imported(path)
    problem = caught.value.problems[0]
    assert problem.code == "bad-spans"
    assert "at byte" in problem.message
    assert problem.place is not None
    assert problem.place.file == str(path)


@pytest.mark.parametrize("cut", [0.3, 0.6, 0.99])
def test_truncated_json_is_an_error_that_says_where(tmp_path: Path, cut: float) -> None:
    text = json.dumps(REQUEST, indent=1)
    path = tmp_path / "spans.json"
    path.write_text(text[: int(len(text) * cut)], encoding="utf-8")
    with pytest.raises(RagaugeError) as caught:
        imported(path)
    assert caught.value.problems[0].code == "bad-spans"


def test_without_the_package_the_error_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "spans.pb"
    path.write_bytes(protobuf(REQUEST))
    monkeypatch.setitem(__import__("sys").modules, "opentelemetry.proto.trace.v1.trace_pb2", None)
    with pytest.raises(RagaugeError) as caught:
        imported(path)
    assert caught.value.problems[0].code == "missing-extra"
    assert caught.value.problems[0].hint == 'pip install "ragauge[otlp]"'


@cases(
    "text",
    ["\n{}\n", "\n\n\n\n\n", "\n\n\nhello", '\n{"qid": "a", "hits": []}\n' * 40, "a\x00b" * 50, ""],
)
def test_text_is_not_taken_for_protobuf(tmp_path: Path, text: str) -> None:
    path = tmp_path / "traces.jsonl"
    path.write_text(text, encoding="utf-8")
    assert recognise(ForeignFile(UnpackedFile("x", str(path), False))) is None


def test_spans_without_values_or_attributes(tmp_path: Path) -> None:
    bare = {"traceId": "1", "spanId": "2", "attributes": None, "status": None}
    odd = chain(1, "q?", "x")
    odd["attributes"] += [{"key": "nothing"}, {"key": "null", "value": None}, {}]
    (row,) = imported(written(tmp_path / "spans.json", bare, odd))
    assert row["question"] == "q?"


def test_logs_are_said_to_be_no_spans(tmp_path: Path) -> None:
    path = tmp_path / "logs.json"
    path.write_text(json.dumps({"resourceLogs": [{"scopeLogs": []}]}), encoding="utf-8")
    counts = Coverage()
    assert imported(path, coverage=counts) == []
    assert counts.sentences() == ["1 file of metrics or logs, without spans at their start"]
