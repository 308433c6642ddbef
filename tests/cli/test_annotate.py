"""`ragauge traces annotate`: results as each service documents them, as files and by HTTP."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Literal

import msgspec
import pytest

from ragauge import registry
from tests.support.command import GOLD, TRACES, Folder, Outcome, Row
from tests.support.web_servers import Request, http, serving

HEX = "0123456789abcdef" * 2
IDS = [
    {"trace_id": f"{n}{HEX[1:]}", "span_id": f"{n}{HEX[1:16]}", "ts": f"2026-11-16T10:0{n}:00Z"}
    for n in range(len(TRACES))
]
SERVED: list[Row] = [
    {**trace, **ids, "latency_ms": 250} for trace, ids in zip(TRACES, IDS, strict=True)
]
METRICS = "retrieval.recall@3,citation.hit_rate"
SECRET = "sk-lf-5f8e0c1a-very-secret"


class LangfuseScore(msgspec.Struct, forbid_unknown_fields=True, rename="camel"):
    """`CreateScoreRequest` of Langfuse's API, as far as it is used."""

    id: str
    trace_id: str
    name: str
    value: float | str
    data_type: Literal["NUMERIC", "CATEGORICAL"]
    metadata: dict[str, Any]
    timestamp: str | None = None
    comment: str | None = None


class PhoenixResult(msgspec.Struct, forbid_unknown_fields=True):
    label: str | None = None
    score: float | None = None
    explanation: str | None = None


class PhoenixAnnotation(msgspec.Struct, forbid_unknown_fields=True):
    """`SpanAnnotationData` of Phoenix's API."""

    span_id: str
    name: str
    annotator_kind: Literal["LLM", "CODE", "HUMAN"]
    result: PhoenixResult
    metadata: dict[str, Any]
    identifier: str


class PhoenixBody(msgspec.Struct, forbid_unknown_fields=True):
    data: list[PhoenixAnnotation]


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ragauge.files.http_retries.time.sleep", lambda _: None)
    for annotator in registry.annotators().values():
        for name in annotator.host_variables:
            monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("LANGFUSE_PUBLIC_KEY", "pk-lf-1")
    monkeypatch.setenv("LANGFUSE_SECRET_KEY", SECRET)
    monkeypatch.setenv("PHOENIX_API_KEY", SECRET)
    monkeypatch.delenv("OTEL_EXPORTER_OTLP_HEADERS", raising=False)


@pytest.fixture
def scored(folder: Folder) -> Folder:
    return saved(folder, SERVED)


def saved(folder: Folder, traces: Sequence[Row], *options: str) -> Folder:
    folder.write("gold.jsonl", GOLD)
    folder.write("trace.jsonl", traces)
    folder.run(
        *("score", "gold.jsonl", "trace.jsonl", "--profile", "all", "--metrics", METRICS),
        *("--full", "-o", "scores.json", *options),
    )
    return folder


def annotate(folder: Folder, service: str, *options: str) -> Outcome:
    return folder.run("traces", "annotate", "scores.json", "--to", service, *options)


def written(folder: Folder, service: str, *options: str) -> list[Row]:
    done = annotate(folder, service, "-o", "out.jsonl", *options)
    assert done.exit_code == 0, done.err
    return [json.loads(line) for line in Path("out.jsonl").read_text().splitlines()]


def sent(
    folder: Folder, service: str, answer: Callable[[Request], bytes | None]
) -> tuple[Outcome, list[Request]]:
    with serving(answer) as server:
        done = annotate(folder, service, "--send", "--host", f"{server.url}/")
        return done, server.requests


def inserted(request: Request) -> bytes:
    body = msgspec.convert(request.json, PhoenixBody)
    return http({"data": [{"id": str(n)} for n in range(len(body.data))]})


def test_scores_for_langfuse(scored: Folder) -> None:
    rows = written(scored, "langfuse")
    scores = [msgspec.convert(row, LangfuseScore) for row in rows]
    first = [(one.name, one.value, one.data_type) for one in scores[:3]]
    assert first == [
        ("retrieval.recall@3", 1.0, "NUMERIC"),
        ("citation.hit_rate", 1.0, "NUMERIC"),
        ("ragauge.label", "OK", "CATEGORICAL"),
    ]
    assert {one.trace_id for one in scores} == {ids["trace_id"] for ids in IDS}
    assert len({one.id for one in scores}) == len(scores) == 7  # A2 is refused: it has a label
    assert scores[0].metadata == {"source": "ragauge", "qid": "A1"}
    assert scores[0].timestamp == "2026-11-16T10:00:00Z"


def test_the_same_scores_give_the_same_bytes_and_ids(scored: Folder) -> None:
    for service in registry.annotators():
        assert written(scored, service) == written(scored, service)


def test_evaluation_attributes_are_spans_that_can_be_read_back(scored: Folder) -> None:
    rows = written(scored, "openinference", "--metrics", "retrieval.*")
    (resource,) = rows[0]["resourceSpans"]
    (span,) = resource["scopeSpans"][0]["spans"]
    values = {one["key"]: next(iter(one["value"].values())) for one in span["attributes"]}
    assert span["traceId"] == IDS[0]["trace_id"]
    assert span["parentSpanId"] == IDS[0]["span_id"]
    assert span["endTimeUnixNano"] == str(1794823200 * 10**9 + 250 * 10**6)
    assert values["openinference.span.kind"] == "EVALUATOR"
    prefix = "trace.evaluations.0.evaluation."
    assert {key.removeprefix(prefix): one for key, one in values.items() if prefix in key} == {
        "name": "retrieval.recall@3",
        "score": 1.0,
        "annotator_kind": "CODE",
        "identifier": "ragauge",
    }
    assert values["trace.evaluations.1.evaluation.label"] == "OK"
    done = scored.run("traces", "import", "out.jsonl", "-o", "again.jsonl", "--from", "otlp")
    assert (done.exit_code, done.codes) == (5, {"nothing-measured"})  # an evaluation is no trace


def test_annotations_are_sent_to_phoenix(scored: Folder) -> None:
    done, requests = sent(scored, "phoenix", inserted)
    assert (done.exit_code, done.out.split(" took ")[1]) == (0, "7 of 7\n")
    (request,) = requests
    assert request.line == "POST /v1/span_annotations?sync=true HTTP/1.1"
    assert request.headers["authorization"] == f"Bearer {SECRET}"
    body = msgspec.convert(request.json, PhoenixBody)
    assert {one.span_id for one in body.data} == {ids["span_id"] for ids in IDS}
    assert {one.identifier for one in body.data} == {"ragauge"}
    assert "connecting to 127.0.0.1" in done.err
    assert SECRET not in done.out + done.err


def test_scores_are_sent_to_langfuse(scored: Folder) -> None:
    done, requests = sent(
        scored, "langfuse", lambda _: http({"message": "Accepted"}, "202 Accepted")
    )
    assert done.exit_code == 0
    (request,) = requests
    assert request.line == "POST /api/public/scores HTTP/1.1"
    pair = base64.b64decode(request.headers["authorization"].removeprefix("Basic ")).decode()
    assert pair == f"pk-lf-1:{SECRET}"
    assert request.headers["content-type"] == "application/json"
    assert len(msgspec.convert(request.json, list[LangfuseScore])) == 7


def test_what_langfuse_rejects_is_counted_and_not_sent_again(scored: Folder) -> None:
    error = {"message": f"Trace not found for {SECRET}"}
    results = {"accepted": 5, "rejected": 2, "errors": [error, error]}
    done, requests = sent(scored, "langfuse", lambda _: http(results, "207 Multi-Status"))
    assert (done.exit_code, done.codes, len(requests)) == (2, {"not-sent"}, 1)
    assert "took 5 of 7, refused 2" in done.err
    assert "(2 times)" in done.err
    assert SECRET not in done.err


def test_a_langfuse_that_takes_no_lists_gets_one_score_at_a_time(scored: Folder) -> None:
    def answer(request: Request) -> bytes:
        if isinstance(request.json, list):
            return http({"message": "Expected object"}, "400 Bad Request")
        msgspec.convert(request.json, LangfuseScore)
        return http({"id": request.json["id"]})

    done, requests = sent(scored, "langfuse", answer)
    assert (done.exit_code, done.out.split(" took ")[1]) == (0, "7 of 7\n")
    taken = [request.json["id"] for request in requests if isinstance(request.json, dict)]
    assert len(taken) == len(set(taken)) == 7


def test_spans_that_phoenix_does_not_have_are_found_and_the_others_kept(scored: Folder) -> None:
    unknown = IDS[1]["span_id"]

    def answer(request: Request) -> bytes:
        body = msgspec.convert(request.json, PhoenixBody)
        if any(one.span_id == unknown for one in body.data):
            return http(b"Spans with IDs do not exist.", "404 Not Found")
        return inserted(request)

    done, _ = sent(scored, "phoenix", answer)
    assert (done.exit_code, done.codes) == (2, {"not-sent"})
    assert "took 6 of 7, refused 1" in done.err
    assert "status 404: Spans with IDs do not exist. (1 time)" in done.err


@pytest.mark.parametrize("status", ["401 Unauthorized", "403 Forbidden"])
def test_wrong_keys_end_it_at_once(scored: Folder, status: str) -> None:
    done, requests = sent(scored, "langfuse", lambda _: http({"message": SECRET}, status))
    assert (done.exit_code, done.codes, len(requests)) == (2, {"not-sent"}, 1)
    assert "(the keys); 0 results were taken" in done.err
    assert SECRET not in done.err


@pytest.mark.parametrize("status", ["429 Too Many Requests", "503 Service Unavailable"])
def test_a_busy_service_is_asked_again(scored: Folder, status: str) -> None:
    def answer(request: Request) -> bytes:
        busy = http(b"later", status, Retry_After="1")
        return busy if request.number < 3 else inserted(request)

    done, requests = sent(scored, "phoenix", answer)
    assert (done.exit_code, len(requests)) == (0, 4)
    assert len({request.body for request in requests}) == 1  # the same ids every time


def test_a_service_that_stays_down_is_given_up(scored: Folder) -> None:
    done, requests = sent(scored, "phoenix", lambda _: http(b"", "500 Internal Server Error"))
    assert (done.exit_code, done.codes, len(requests)) == (2, {"not-sent"}, 6)
    assert "took 0 of 7, 7 were not sent" in done.err


def test_an_answer_that_is_not_the_service_s_is_no_success(scored: Folder) -> None:
    done, _ = sent(scored, "phoenix", lambda _: http(b"<html>Sign in</html>"))
    assert (done.exit_code, done.codes) == (2, {"not-sent"})
    assert "took 0 of 7, refused 7" in done.err


def test_a_redirect_is_not_followed_with_the_keys(scored: Folder) -> None:
    with serving(inserted) as other:
        moved = http(b"", "302 Found", Location=other.url)
        done, _ = sent(scored, "phoenix", lambda _: moved)
        assert (done.exit_code, other.requests) == (2, [])


def test_spans_that_a_collector_rejects_are_counted(
    scored: Folder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_HEADERS", "x-key=a%20b,other=c")
    partial = {"partialSuccess": {"rejectedSpans": "1", "errorMessage": "too old"}}
    done, requests = sent(scored, "openinference", lambda _: http(partial))
    assert (done.exit_code, done.codes) == (2, {"not-sent"})
    assert "took 2 of 3, refused 1" in done.err
    assert (requests[0].headers["x-key"], requests[0].headers["other"]) == ("a b", "c")
    assert len(requests[0].json["resourceSpans"][0]["scopeSpans"][0]["spans"]) == 3


def test_the_host_may_come_from_the_environment(
    scored: Folder, monkeypatch: pytest.MonkeyPatch
) -> None:
    with serving(inserted) as server:
        monkeypatch.setenv("PHOENIX_COLLECTOR_ENDPOINT", server.url)
        done = annotate(scored, "phoenix", "--send")
    assert done.exit_code == 0
    assert "(named by PHOENIX_COLLECTOR_ENDPOINT)" in done.err


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ((), "give -o FILE to write the results, or --send"),
        (("-o", "out.jsonl", "--send"), "give -o FILE to write the results, or --send"),
        (("-o", "out.jsonl", "--host", "http://x"), "--host goes with --send"),
        (("--send",), "--send needs to know where to"),
        (("--send", "--host", "phoenix"), "the host is no address"),
        (("-o", "scores.json"), "scores.json"),
        (("-o", "out.jsonl", "--metrics", "nothing.*"), "`nothing.*` has no values"),
    ],
)
def test_what_is_refused_before_anything_is_sent(
    scored: Folder, options: tuple[str, ...], said: str
) -> None:
    done = annotate(scored, "phoenix", *options)
    assert done.exit_code == 2
    assert said in done.err


def test_keys_that_are_not_set_are_named(scored: Folder, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("LANGFUSE_SECRET_KEY")
    with serving(inserted) as server:
        done = annotate(scored, "langfuse", "--send", "--host", server.url)
        assert (done.exit_code, server.requests) == (2, [])
    assert "LANGFUSE_SECRET_KEY is not set" in done.err


def test_traces_without_ids_are_counted_and_none_is_an_error(folder: Folder) -> None:
    half = [SERVED[0], {**SERVED[1], "span_id": None}, TRACES[2]]
    done = annotate(saved(folder, half), "phoenix", "-o", "out.jsonl")
    assert done.exit_code == 0
    assert "wrote out.jsonl: 3 lines for 1 trace" in done.out
    assert "left out: 1 scored trace without `trace_id`" in done.err
    assert "left out: 1 trace without a span id (`span_id`)" in done.err
    none = annotate(saved(folder, TRACES), "phoenix", "-o", "none.jsonl")
    assert (none.exit_code, none.codes) == (5, {"nothing-measured"})
    assert not Path("none.jsonl").exists()


def test_other_traces_than_those_that_were_scored_are_refused(scored: Folder) -> None:
    scored.write("other.jsonl", SERVED[::-1])
    done = annotate(scored, "phoenix", "-o", "out.jsonl", "--traces", "other.jsonl")
    assert (done.exit_code, done.codes) == (3, {"bad-scores"})
    scored.write("short.jsonl", SERVED[:1])
    done = annotate(scored, "phoenix", "-o", "out.jsonl", "--traces", "short.jsonl")
    assert (done.exit_code, done.codes) == (3, {"bad-scores"})


def test_each_trace_of_a_question_is_given_the_mean_and_told_so(folder: Folder) -> None:
    missed = {**SERVED[0], "seed": 2, "retrieved_ids": ["x"], "trace_id": "f" * 32}
    done = annotate(saved(folder, [{**SERVED[0], "seed": 1}, missed]), "langfuse", "-o", "o.jsonl")
    assert "several traces of 1 question:" in done.err
    rows = [json.loads(line) for line in Path("o.jsonl").read_text().splitlines()]
    recall = [row for row in rows if row["name"] == "retrieval.recall@3"]
    assert [row["value"] for row in recall] == [0.5, 0.5]
    assert {row["traceId"] for row in recall} == {IDS[0]["trace_id"], "f" * 32}
    assert recall[0]["metadata"]["mean_of_traces"] == 2


def test_scores_without_questions_are_refused(folder: Folder) -> None:
    saved(folder, SERVED)
    folder.run("score", "gold.jsonl", "trace.jsonl", "--profile", "all", "-o", "short.json")
    done = folder.run("traces", "annotate", "short.json", "--to", "phoenix", "-o", "out.jsonl")
    assert (done.exit_code, done.codes) == (3, {"bad-scores"})
    unknown = annotate(folder, "nowhere", "-o", "out.jsonl")
    assert (unknown.exit_code, unknown.codes) == (2, {"unknown-name"})


def test_an_export_keeps_the_ids_that_its_results_go_back_to(folder: Folder) -> None:
    fixtures = Path(__file__).parents[1] / "fixtures" / "imports"
    folder.write("gold.jsonl", (fixtures / "gold.jsonl").read_bytes())
    folder.write("spans.json", (fixtures / "openinference-langchain.json").read_bytes())
    folder.run(
        *("score", "gold.jsonl", "spans.json", "--profile", "all", "--metrics", METRICS),
        *("--full", "-o", "scores.json"),
    )
    assert annotate(folder, "phoenix", "-o", "out.jsonl").exit_code == 0
    export = Path("spans.json").read_text()
    spans = [
        span
        for line in export.splitlines()
        for resource in json.loads(line)["resourceSpans"]
        for scope in resource["scopeSpans"]
        for span in scope["spans"]
    ]
    roots = {span["spanId"] for span in spans if not span.get("parentSpanId")}
    rows = [json.loads(line) for line in Path("out.jsonl").read_text().splitlines()]
    assert rows
    assert {row["span_id"] for row in rows} <= roots
