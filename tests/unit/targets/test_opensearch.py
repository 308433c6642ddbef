"""The targets `opensearch:` and `elasticsearch:`, over HTTP against a stand-in for the servers."""

from __future__ import annotations

import base64
import json
import os
import sqlite3
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragauge.errors import RagaugeError
from ragauge.files import http_client
from ragauge.model.target import TargetError, TargetOptions, TargetQuestion
from ragauge.spans import Span
from ragauge.targets.opensearch import own_body
from ragauge.targets.shared.address import TargetSettings
from ragauge.targets.shared.foreign_hits import HitMaker
from tests.support.command import Folder
from tests.support.corpora import FIRST, LAST, made
from tests.support.search_server import BOTH, Json, SearchServer, searching
from tests.support.target_calls import (
    LEXICAL,
    RED,
    asked,
    assert_finds_last,
    names,
    opened,
    refusal,
    stored,
)
from tests.support.web_servers import Request, http

PASSWORD = "hunter2-hunter2"
PLAIN = {"type": "text"}
WORDS: Json = {
    "text": {"type": "text", "fields": {"raw": {"type": "keyword"}}},
    "title": PLAIN,
    "meta": {"properties": {"author": PLAIN}},
    "notes": {"type": "nested", "properties": {"body": PLAIN}},
    "labels": {"type": "flattened"},
}
VECTORS: dict[str, Json] = {
    "opensearch": {
        "type": "knn_vector",
        "dimension": 2048,
        "method": {"name": "hnsw", "space_type": "cosinesimil"},
    },
    "elasticsearch": {"type": "dense_vector", "dims": 2048, "similarity": "cosine"},
}
METRICS = {"opensearch": "cosinesimil", "elasticsearch": "cosine"}


def index_of(product: str, corpus: Path) -> SearchServer:
    """The chunks of a corpus as an index holds them, with a vector that is never asked for."""
    documents = {
        name: {**more, "text": text, "title": name.split("#")[0], "embedding": vector}
        for name, vector, text, more in stored(corpus)
    }
    mapping = deepcopy({"properties": {**WORDS, "embedding": VECTORS[product]}})
    return SearchServer(product=product, documents=documents, mapping=mapping)


Serve = Callable[[SearchServer], SearchServer]


@pytest.fixture(autouse=True)
def _nobody(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """An environment that knows no passwords, and no connection that was kept."""
    for name in list(os.environ):
        if name.startswith(("OPENSEARCH_", "ELASTIC_")):
            monkeypatch.delenv(name)
    yield
    http_client.close()


@pytest.fixture
def serve() -> Iterator[Serve]:
    """Puts an index on a server, until the end of the test."""
    with ExitStack() as stack:
        yield lambda index: stack.enter_context(searching(index))


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    return made(tmp_path)


@pytest.fixture(params=BOTH)
def index(request: pytest.FixtureRequest, corpus: Path, serve: Serve) -> SearchServer:
    return serve(index_of(request.param, corpus))


@pytest.fixture
def plain(corpus: Path, serve: Serve) -> SearchServer:
    """One product, where it does not matter which."""
    return serve(index_of("opensearch", corpus))


def failure(target: Any, text: str = RED) -> TargetError:
    with pytest.raises(TargetError) as raised:
        target.ask(TargetQuestion(qid="1", text=text))
    return raised.value


def problem_of(address: str, **settings: Any) -> tuple[str, str]:
    (problem,) = refusal(address, **settings).problems
    assert problem.code == "bad-target"
    return problem.message, problem.hint


# --- what is asked, and what is made of the answer ---


def test_words_are_looked_for_in_a_field(index: SearchServer) -> None:
    target = opened(f"{index.address}?match=text")
    trace = asked(target)
    assert_finds_last(trace)
    assert names(trace.hits) == [LAST, FIRST]  # the other three share no word with the question
    assert [hit.score for hit in trace.hits] == [1.0, 0.6]  # three words of three, of five
    (body,) = index.searches
    wanted = body.pop("_source")
    assert body == {
        "size": 3,
        "query": {"match": {"text": {"query": RED}}},
        "track_total_hits": False,
    }
    assert {"source", "section", "start", "end", "text", "chunker_version"} <= set(wanted)
    assert "metadata.source" in wanted
    assert not {"embedding", "id", "_id", "score", "*"} & set(wanted)
    target.close()


def test_documents_that_tie_stay_in_the_order_of_the_server(plain: SearchServer) -> None:
    plain.documents = {name: {"text": "red"} for name in ("c", "a", "b")}
    trace = asked(opened(f"{plain.address}?match=text"), "red")
    assert names(trace.hits) == ["c", "a", "b"]


def test_several_fields_may_weigh_differently(index: SearchServer) -> None:
    index.documents["t"] = {"text": "blue", "title": "red"}
    index.documents["u"] = {"text": "red sky", "title": "red"}
    target = opened(f"{index.address}?match=title^4,text", k=2)
    trace = asked(target, "red sky")
    assert [(hit.id, hit.score) for hit in trace.hits] == [
        ("t", 2.0),
        ("u", 2.0),
    ]  # half of the words, four times
    (body,) = index.searches
    assert body["query"] == {"multi_match": {"query": "red sky", "fields": ["title^4", "text"]}}
    target.close()


def test_the_nearest_vectors_are_asked_for_as_each_product_wants_it(
    index: SearchServer, corpus: Path
) -> None:
    target = opened(f"{index.address}?vector=embedding", k=5, **LEXICAL)
    trace = asked(target)
    assert_finds_last(trace)
    assert trace.hits[0].score == pytest.approx(1.0, abs=1e-6)
    exact = asked(opened(f"vector:{corpus}", k=5, **LEXICAL))
    assert names(trace.hits) == names(exact.hits)
    assert trace.index["embed_model"] == "lexical-hash-v1"
    assert trace.index["metric"] == METRICS[index.product]
    (body,) = index.searches
    if index.elastic:
        vector = body["knn"].pop("query_vector")
        assert body["knn"] == {"field": "embedding", "k": 5, "num_candidates": 100}
        assert "query" not in body
    else:
        vector = body["query"]["knn"]["embedding"].pop("vector")
        assert body["query"] == {"knn": {"embedding": {"k": 5}}}
    assert len(vector) == 2048
    assert body["size"] == 5
    target.close()


def test_more_candidates_can_be_looked_at(corpus: Path, serve: Serve) -> None:
    index = serve(index_of("elasticsearch", corpus))
    asked(opened(f"{index.address}?vector=embedding&candidates=500", **LEXICAL))
    asked(opened(f"{index.address}?vector=embedding", k=150, **LEXICAL))
    sent = [request.json["knn"] for request in index.requests if "/_search" in request.line]
    assert [(each["k"], each["num_candidates"]) for each in sent] == [(3, 500)] * 2 + [
        (150, 150)
    ] * 2


def test_a_question_without_a_direction_is_near_nothing(index: SearchServer) -> None:
    target = opened(f"{index.address}?vector=embedding", **LEXICAL)
    assert asked(target, "?!").hits == ()
    assert index.searches == []
    target.close()


OWN = """{"query": {"multi_match": {"query": {question}, "fields": ["text"]}},
          "size": "{k}", "_source": ["text", "{}"], "from": 0}"""


@pytest.mark.parametrize("in_file", [True, False])
def test_a_body_of_ones_own_is_filled_with_values(
    index: SearchServer, tmp_path: Path, in_file: bool
) -> None:
    (tmp_path / "own.json").write_text(OWN, "utf-8")
    question = 'red "quoted", {k} \\ {question}\n'
    target = opened(index.address, k=2, body=f"@{tmp_path / 'own.json'}" if in_file else OWN)
    asked(target, question)
    (body,) = index.searches
    assert body == {
        "query": {"multi_match": {"query": question, "fields": ["text"]}},
        "size": 2,
        "_source": ["text", "{}"],
        "from": 0,
    }
    assert target.about["query"]["query"]["multi_match"]["query"] == "{question}"


def test_a_body_of_ones_own_may_ask_for_vectors(index: SearchServer) -> None:
    shapes = {
        "opensearch": '{"query": {"knn": {"embedding": {"vector": {vector}, "k": 7}}}}',
        "elasticsearch": '{"knn": {"field": "embedding", "query_vector": "{vector}", "k": 7,'
        ' "num_candidates": 9}}',
    }
    target = opened(index.address, body=shapes[index.product], **LEXICAL)
    trace = asked(target)
    assert_finds_last(trace)
    assert len(trace.hits) == 3  # the server was asked for k, though it looked at seven
    assert trace.index["embed_model"] == "lexical-hash-v1"
    target.close()


def test_a_server_that_gives_more_than_k_is_cut(plain: SearchServer) -> None:
    body = '{"query": {"match": {"text": {question}}}, "size": 5}'
    assert names(asked(opened(plain.address, k=1, body=body)).hits) == [LAST]


@given(
    st.text(), st.integers(0, 10_000), st.lists(st.floats(width=32, allow_nan=False), max_size=3)
)
def test_no_question_can_break_out_of_its_hole(text: str, k: int, vector: list[float]) -> None:
    """Whatever is asked, the server reads the values back and the rest as it was written."""
    vector = [each for each in vector if abs(each) < 1e30]
    body = own_body('{"a": [{question}, "{k}"], "b": {"{": {vector}}, "c": "\\"{k\\""}')
    sent = json.loads(body.filled({"question": text, "k": k, "vector": vector}))
    assert sent == {"a": [text, k], "b": {"{": vector}, "c": '"{k"'}


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("{", "the body is no JSON"),
        ("[{question}]", "no JSON object"),
        ("{question}", "no JSON object"),
        ('{"query": {"match_all": {}}, "size": {k}}', "asks every question alike"),
        ('{"q": "title:{question}"}', "`{question}` is only a part"),
        ('{"q": "{{question}}"}', "`{question}` is only a part"),
        ('{"{question}": 1}', "only a part of a text or a name"),
        ('{"q": {question}, "r": ["{vector} "]}', "`{vector}` is only a part"),
        ("@gone.json", "`gone.json` cannot be read: no such file"),
        ('{"a":' * 100_000, "the body is no JSON"),
    ],
)
def test_a_body_that_cannot_be_filled_is_refused(body: str, message: str) -> None:
    assert message in problem_of("opensearch:http://127.0.0.1:9/chunks", body=body)[0]


def test_a_body_that_is_no_text_is_refused(tmp_path: Path) -> None:
    (tmp_path / "own.json").write_bytes(b"\xff")
    message, _ = problem_of("opensearch:http://h/chunks", body=f"@{tmp_path / 'own.json'}")
    assert "cannot be read" in message


def test_the_metadata_of_frameworks_stand_one_level_deeper(plain: SearchServer) -> None:
    inside = {"source": "/data/guide.md", "start_index": 72, "chunker_version": "c/3", "big": 1}
    plain.documents = {"u-1": {"text": RED, "metadata": inside, "vector_field": [0.5]}}
    target = opened(f"{plain.address}?match=text&strip=/data/")
    (hit,) = asked(target).hits
    assert (hit.id, hit.doc, hit.text) == ("u-1", "guide.md", RED)
    assert hit.spans == (Span(72, 86, "char"),)
    assert hit.chunker_version == "c/3"


@pytest.mark.parametrize("inside", [True, False])
@pytest.mark.parametrize(
    "held",
    [
        {"doc_path": "a.md", "start": 2, "end": 9, "section_id": "S.2", "type": "code"},
        {"file_name": "a.md", "start_byte": 2, "end_byte": 9, "doc_hash": "h", "text_hash": "t"},
        {"document_id": "a.md", "start_char": 2, "end_char": 9, "policy_hash": "p"},
        {"source": "a.md", "start_char_idx": 2, "end_char_idx": 9},
        {"path": "a.md", "start_index": 2, "content": "red"},
        {"doc": "a.md", "offsets": [2, 9], "unit": "char"},
        {"doc": "a.md", "span": [2, 9]},
        {"doc": "a.md", "source_spans": [[2, 9], [12, 14]]},
        {"doc": "a.md", "line_start": 2, "line_end": 3},
    ],
)
def test_every_field_that_a_hit_is_made_of_is_asked_for(
    plain: SearchServer, held: Json, inside: bool
) -> None:
    """What comes of the fields that are asked for is what would come of all."""
    plain.documents = {"u": {"title": "red", **({"metadata": held} if inside else held)}}
    (row,) = opened(f"{plain.address}?match=title").ask(TargetQuestion(qid="1", text="red"))["hits"]
    whole = HitMaker(TargetSettings({}), TargetOptions()).hit(held, name="u", score=1.0)
    assert row == whole
    assert len(row) >= 4


def test_places_become_bytes_where_the_corpus_is_known(plain: SearchServer, corpus: Path) -> None:
    plain.documents = {"u-1": {"text": RED, "doc": "guide.md", "start_index": 72}}
    (hit,) = asked(opened(f"{plain.address}?match=text", corpus=corpus)).hits
    assert (hit.spans, hit.section, hit.type) == ((Span(73, 88),), "S.1.1", "prose")


def test_fields_can_be_named(plain: SearchServer) -> None:
    held = {"nr": 7, "file": "x.md", "at": {"von": 2, "bis": 9}, "kapitel": "S.1", "weight": 0.5}
    plain.documents = {"u-1": {"text": "red", "body": "red", "secret": 1, **held}}
    address = (
        f"{plain.address}?match=text&id=nr&doc=file&start=at.von&end=at.bis&section=kapitel"
        "&score=weight&text=body"
    )
    (hit,) = asked(opened(address), "red").hits
    assert (hit.id, hit.doc, hit.section, hit.score) == ("7", "x.md", "S.1", 0.5)
    assert hit.spans == (Span(2, 9),)
    wanted = plain.searches[0]["_source"]
    assert {"nr", "file", "at.von", "weight", "body"} <= set(wanted)
    assert "text" not in wanted
    reason = failure(opened(f"{plain.address}?match=text&section=page"), "red").reason
    assert reason == "a document has no field `page`; its fields are text"


def test_a_sorted_body_has_no_scores(plain: SearchServer) -> None:
    """A field that is called `score` is not what the server ranked by."""
    plain.documents = {"a": {"text": "red", "score": 3}, "b": {"text": "red", "score": 9}}
    body = '{"query": {"match": {"text": {question}}}, "sort": ["_doc"], "_source": true}'
    hits = asked(opened(plain.address, body=body), "red").hits
    assert [(hit.id, hit.score) for hit in hits] == [("a", None), ("b", None)]


def test_the_same_copy_of_a_shard_is_asked_every_time(plain: SearchServer) -> None:
    asked(opened(f"{plain.address}?match=text"))
    asked(opened(f"{plain.address}?match=text&preference=none"))
    asked(opened(f"{plain.address}?match=text&preference=a%26b&routing=7&search_pipeline=p"))
    lines = [request.line for request in plain.requests if "/_search" in request.line]
    assert [line.split(" ")[1] for line in lines[1::2]] == [
        "/chunks/_search?preference=ragauge",
        "/chunks/_search",
        "/chunks/_search?preference=a%26b&routing=7&search_pipeline=p",
    ]


def test_threads_may_ask_at_once(plain: SearchServer) -> None:
    target = opened(f"{plain.address}?match=text")
    questions = [
        TargetQuestion(qid=str(n), text=("Äpfel", "make", "plain b.")[n % 3]) for n in range(24)
    ]
    alone = [target.ask(each) for each in questions]
    with ThreadPoolExecutor(6) as pool:
        assert list(pool.map(target.ask, questions)) == alone
    target.close()


# --- what goes wrong with one question ---


@pytest.mark.parametrize(
    ("status", "headers", "transient", "wait"),
    [
        ("400 Bad Request", {}, False, None),
        ("401 Unauthorized", {}, False, None),
        ("403 Forbidden", {"Retry_After": "5"}, False, 5.0),
        ("404 Not SearchResponse", {}, False, None),
        ("429 Too Many Requests", {"Retry_After": "7"}, True, 7.0),
        ("500 Internal Server Error", {}, True, None),
        ("502 Bad Gateway", {"Retry_After": "soon"}, True, None),
        ("503 Service Unavailable", {}, True, None),
        ("504 Gateway Timeout", {}, True, None),
    ],
)
def test_a_server_that_refuses_is_the_error_of_a_question(
    index: SearchServer, status: str, headers: dict[str, str], transient: bool, wait: float | None
) -> None:
    target = opened(f"{index.address}?match=text")
    said = {"type": "some_exception", "reason": "no\n  luck"}
    body = {"error": {"root_cause": [said], "type": "all_failed", "reason": "all"}, "status": 1}
    index.instead = lambda _: http(body, status, **headers)
    error = failure(target)
    assert (error.transient, error.wait) == (transient, wait)
    assert error.reason.endswith(f"/chunks answered {status[:3]}: some_exception: no luck")
    target.close()


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ({"error": "no handler found", "status": 400}, ": no handler found"),
        ({"error": {"type": "t", "reason": "r"}}, ": t: r"),
        ({"error": {"root_cause": [], "reason": "r"}}, ": r"),
        ({"error": {"root_cause": [3], "type": 3, "reason": None}}, ': {"error"'),
        ({"message": "too\nmany"}, ': {"message"'),
        (["no"], ': ["no"]'),
        (b"Unauthorized", ": Unauthorized"),
        (b"<html>\n\xff", ": <html> \N{REPLACEMENT CHARACTER}"),
        (b"", "answered 400"),
        (b"[" * 100_000, ": [["),
    ],
)
def test_a_refusal_is_told_in_the_words_of_the_server(
    plain: SearchServer, body: Any, said: str
) -> None:
    target = opened(f"{plain.address}?match=text")
    plain.instead = lambda _: http(body, "400 Bad Request")
    reason = failure(target).reason
    assert said in reason
    assert "\n" not in reason
    assert len(reason) < 300


LACKING: list[tuple[Json, str]] = [
    ({"timed_out": True}, "the search was timed out before its end"),
    (
        {
            "_shards": {
                "total": 2,
                "successful": 1,
                "failed": 1,
                "failures": [{"shard": 0, "reason": {"type": "query_shard", "reason": "no"}}],
            }
        },
        "1 of 2 shards did not answer: query_shard: no",
    ),
    (
        {"_shards": {"total": 2, "successful": 2, "failed": 1, "failures": [3]}},
        "1 of 2 shards did not answer",
    ),
    ({"_shards": {"total": 5, "successful": 3, "failed": 0}}, "2 of 5 shards did not answer"),
    (
        {"_clusters": {"total": 3, "successful": 2, "skipped": 1}},
        "1 of 3 clusters did not answer",
    ),
]


@pytest.mark.parametrize(("more", "reason"), LACKING)
def test_half_an_answer_is_an_error_and_no_short_list(
    index: SearchServer, more: Json, reason: str
) -> None:
    target = opened(f"{index.address}?match=text")
    index.twist = lambda body: body | more
    error = failure(target)
    assert error.reason.endswith(f"/chunks: {reason}")
    assert error.transient
    target.close()


def test_shards_that_could_be_skipped_have_answered(plain: SearchServer) -> None:
    shards = {"total": 5, "successful": 5, "skipped": 3, "failed": 0}
    plain.twist = lambda body: (
        body
        | {
            "_shards": shards,
            "_clusters": {"total": 1, "successful": 1},
        }
    )
    assert_finds_last(asked(opened(f"{plain.address}?match=text")))


@pytest.mark.parametrize(
    "body",
    [
        b"<html>",
        b"",
        b"\xff\xfe",
        b"[" * 100_000,
        [],
        {},
        {"timed_out": False, "hits": {"hits": []}},
        {"timed_out": False, "_shards": {"total": 1, "successful": 1}, "hits": {"total": 3}},
        {"_shards": {"total": 1, "successful": 1}, "hits": {"hits": []}},
        {
            "timed_out": False,
            "_shards": {"total": 1, "successful": 1},
            "hits": {"hits": [{"_score": 1.0, "_source": {"id": "a"}}]},
        },
        {
            "timed_out": False,
            "_shards": {"total": 1, "successful": 1},
            "hits": {"hits": [{"_id": "a", "_score": "high"}]},
        },
    ],
)
def test_an_answer_that_is_none_is_the_error_of_a_question(plain: SearchServer, body: Any) -> None:
    target = opened(f"{plain.address}?match=text")
    plain.instead = lambda _: http(body)
    error = failure(target)
    assert "/chunks answered something else (" in error.reason
    assert not error.transient


def test_a_redirect_is_not_followed(plain: SearchServer) -> None:
    target = opened(f"{plain.address}?match=text")
    plain.instead = lambda _: http(b"", "307 Moved", Location="https://other/chunks?token=abc")
    reason = failure(target).reason
    assert reason.endswith("answered 307, to https://other/chunks: write that address")


def test_a_server_that_goes_away_may_come_back(plain: SearchServer) -> None:
    target = opened(f"{plain.address}?match=text")
    plain.instead = lambda _: None
    error = failure(target)
    assert error.transient
    plain.instead = None
    assert_finds_last(asked(target))


# --- what can never work ---


def test_a_server_that_is_not_there_is_refused() -> None:
    message, hint = problem_of("opensearch:http://me:pw-pw-pw@127.0.0.1:9/chunks?match=text")
    assert message == "http://127.0.0.1:9/chunks cannot be reached: connection refused"
    assert "check the address" in hint


@pytest.mark.parametrize(
    ("query", "settings", "message"),
    [
        ("?match=text&vector=embedding", {}, "not match and vector"),
        ("?match=", {}, "told none"),
        ("?match=text,,title", {}, "names no field between its commas"),
        ("?match=^2", {}, "names no field"),
        ("?match=Text", {}, "the index has no field `Text`"),
        ("?match=text,nowhere^2", {}, "the index has no field `nowhere`"),
        ("?match=text.gone", {}, "the index has no field `text.gone`"),
        ("?match=meta", {}, "the index has no field `meta`"),
        ("?match=notes.body", {}, "`notes.body` stands in nested objects"),
        ("?match=text&embedder=hashing", {}, "`embedder` is for vectors"),
        ("?match=text&embedder.path=x", {}, "`embedder.path` is for vectors"),
        ("?match=text&candidates=9", {}, "`candidates` is for the vectors of Elasticsearch"),
        ("?match=text&colour=1", {}, "takes no `colour`"),
        ("?match=text&unit=words", {}, "`unit` is `words`"),
        ("?vector=text", LEXICAL, "the index has no vectors in `text`"),
        ("?vector=gone", LEXICAL, "the index has no vectors in `gone`"),
        ("?match=text&key_env=NO_SUCH_KEY", {}, "the environment has no `NO_SUCH_KEY`"),
        ("?match=text&user=me", {}, "_PASSWORD`"),
    ],
)
def test_what_can_never_be_asked_is_refused(
    index: SearchServer, query: str, settings: dict[str, Any], message: str
) -> None:
    assert message in problem_of(f"{index.address}{query}", **settings)[0]


def test_without_a_way_the_words_of_the_usual_field_are_searched(index: SearchServer) -> None:
    target = opened(index.address)
    assert_finds_last(asked(target))
    assert index.searches[0]["query"] == {"match": {"text": {"query": RED}}}
    target.close()


def test_without_a_way_an_embedder_asks_for_the_vectors(index: SearchServer) -> None:
    target = opened(f"{index.address}?embedder=hashing&cache=none")
    assert_finds_last(asked(target))
    assert "knn" in json.dumps(index.searches[0])
    target.close()


def test_without_a_way_the_fields_must_be_plain(plain: SearchServer) -> None:
    """Several fields with vectors, none with a text, or an index that does not tell its fields."""
    plain.mapping["properties"]["second"] = VECTORS["opensearch"]
    message, hint = problem_of(f"{plain.address}?embedder=hashing&cache=none")
    assert message == "the index has vectors in embedding, second"
    assert hint == "write vector=FIELD"
    del plain.mapping["properties"]["text"]
    none = "the target takes one of match, vector and body, and was told none"
    assert problem_of(plain.address)[0] == none
    plain.told = False
    assert problem_of(plain.address)[0] == none


@pytest.mark.parametrize(
    "query", ["meta.author", "labels.colour", "text.raw", "t*", "title,text^3"]
)
def test_fields_inside_of_others_can_be_searched(plain: SearchServer, query: str) -> None:
    plain.documents["x"] = {"meta.author": "red"}
    opened(f"{plain.address}?match={query}").close()


def test_fields_that_are_computed_can_be_searched(plain: SearchServer) -> None:
    plain.mapping["runtime"] = {"shout": {"type": "keyword"}}
    opened(f"{plain.address}?match=shout").close()


@pytest.mark.parametrize("field", ["text^2", "te*"])
def test_one_field_with_a_weight_or_a_pattern_is_asked_as_several_are(
    plain: SearchServer, field: str
) -> None:
    """`match` itself knows neither."""
    asked(opened(f"{plain.address}?match={field}"))
    assert plain.searches[0]["query"] == {"multi_match": {"query": RED, "fields": [field]}}


def test_the_fields_that_there_are_are_listed(plain: SearchServer) -> None:
    _, hint = problem_of(f"{plain.address}?match=body")
    assert hint == "it has: labels, meta.author, text, text.raw, title"
    _, hint = problem_of(f"{plain.address}?vector=body", **LEXICAL)
    assert hint == "it has them in: embedding"
    plain.mapping = {"properties": {f"f{n:02}": {"type": "text"} for n in range(30)}}
    _, hint = problem_of(f"{plain.address}?match=body")
    assert hint.endswith("f18, f19, ...")


@pytest.mark.parametrize(
    "address",
    [
        "opensearch:http://h:9200?match=text",
        "opensearch:http://h:9200/?match=text",
        "opensearch:http://h:9200/_all?match=text",
        "opensearch:http://h:9200/chunks/_search?match=text",
        "opensearch:http://h:9200/chunks#x?match=text",
        "opensearch:chunks?match=text",
        "opensearch:ftp://h/chunks?match=text",
        "elasticsearch:http://h:port/chunks?match=text",
    ],
)
def test_an_address_without_an_index_is_refused(address: str) -> None:
    message, hint = problem_of(address)
    assert "names no index" in message or "the URL cannot be read" in message
    assert hint.startswith(f"write {address.partition(':')[0]}:http://HOST:9200/INDEX")


def test_an_index_may_lie_below_a_path_of_a_proxy(plain: SearchServer) -> None:
    ours = plain.answer

    def behind(request: Request) -> bytes | None:
        assert "/search/api/" in request.line
        plain.instead = None
        line = request.line.replace("/search/api/", "/")
        answer = ours(Request(request.number, line, request.headers, request.body))
        plain.instead = behind
        return answer

    plain.instead = behind
    address = plain.address.replace("/chunks", "/search/api/chunks/")
    target = opened(f"{address}?match=text")
    assert target.about["index"] == "chunks"


def test_an_index_that_is_not_there_is_refused(index: SearchServer) -> None:
    address = index.address.replace("/chunks", "/chunk")
    message, hint = problem_of(f"{address}?match=text")
    assert message.endswith("/chunk answered 404: index_not_found_exception: no such index [chunk]")
    assert hint == "check the name of the index"


def test_a_pattern_that_means_no_index_is_refused(plain: SearchServer) -> None:
    plain.instead = lambda _: http({})
    assert "no index has this name" in problem_of(f"{plain.address}-*?match=text")[0]


def test_an_empty_index_is_refused(index: SearchServer) -> None:
    index.documents.clear()
    message, _ = problem_of(f"{index.address}?match=text")
    assert message == "the index `chunks` is empty"


def test_an_index_without_all_its_shards_is_refused(plain: SearchServer) -> None:
    ours = plain.answer

    def red(request: Request) -> bytes | None:
        if "/_count" in request.line:
            return http({"count": 3, "_shards": {"total": 3, "successful": 2, "failed": 0}})
        plain.instead = None
        answer = ours(request)
        plain.instead = red
        return answer

    plain.instead = red
    message, _ = problem_of(f"{plain.address}?match=text")
    assert message.endswith("/chunks: 1 of 3 shards did not answer")


@pytest.mark.parametrize("body", [b"<html>", [], {"chunks": {"mappings": []}}, {"name": "node"}])
def test_something_else_than_a_search_server_is_refused(plain: SearchServer, body: Any) -> None:
    plain.instead = lambda _: http(body)
    message, hint = problem_of(f"{plain.address}?match=text")
    assert "answered something else" in message
    assert hint == "is it a server of OpenSearch?"


@pytest.mark.parametrize(("more", "reason"), LACKING)
def test_a_server_that_is_not_well_is_refused_at_once(
    plain: SearchServer, more: Json, reason: str
) -> None:
    plain.twist = lambda body: body | more
    message, hint = problem_of(f"{plain.address}?match=text")
    assert message.endswith(f"/chunks: {reason}")
    assert "whether the server is well" in hint


def test_the_other_product_is_noticed(corpus: Path, serve: Serve) -> None:
    elastic = serve(index_of("elasticsearch", corpus))
    address = elastic.address.replace("elasticsearch:", "opensearch:")
    message, hint = problem_of(f"{address}?match=text")
    assert message.endswith("/chunks is Elasticsearch")
    assert hint == "write elasticsearch: for opensearch:"
    other = serve(index_of("opensearch", corpus))
    address = other.address.replace("opensearch:", "elasticsearch:")
    message, hint = problem_of(f"{address}?vector=embedding", **LEXICAL)
    assert message == "the vectors in `embedding` are those of OpenSearch"
    assert hint == "write opensearch: for elasticsearch:"


def test_vectors_of_another_length_are_refused(index: SearchServer) -> None:
    held = index.mapping["properties"]["embedding"]
    held["dims" if index.elastic else "dimension"] = 3
    message, hint = problem_of(f"{index.address}?vector=embedding", **LEXICAL)
    assert message == ("the vectors of `embedding` have 3 numbers, those of lexical-hash-v1 2048")
    assert "embedder=NAME" in hint


def test_a_length_that_the_mapping_hides_is_found_by_trying(index: SearchServer) -> None:
    held = index.mapping["properties"]["embedding"]
    held.pop("dims" if index.elastic else "dimension")
    index.documents = {"a": {"embedding": [1.0, 0.0]}}
    message, hint = problem_of(f"{index.address}?vector=embedding", **LEXICAL)
    assert "answered 400: illegal_argument_exception: the query vector has a different" in message
    assert hint.startswith("one search was tried first")


def test_a_query_that_the_server_does_not_know_is_refused(index: SearchServer) -> None:
    message, _ = problem_of(index.address, body='{"query": {"mtach": {"text": {question}}}}')
    assert message.endswith("answered 400: parsing_exception: unknown query [mtach]")
    assert "Result window" in problem_of(f"{index.address}?match=text", k=10_001)[0]
    assert (
        "no server gives 10,001"
        in problem_of(f"{index.address}?vector=embedding", k=10_001, **LEXICAL)[0]
    )


@pytest.mark.parametrize("candidates", ["2", "10001", "many"])
def test_candidates_are_at_least_k(corpus: Path, serve: Serve, candidates: str) -> None:
    index = serve(index_of("elasticsearch", corpus))
    message, _ = problem_of(f"{index.address}?vector=embedding&candidates={candidates}", **LEXICAL)
    assert "from 3 to 10000" in message


def test_who_may_only_search_can_ask(index: SearchServer) -> None:
    """The server does not say what the index is; the rest is as always."""
    index.told = False
    target = opened(f"{index.address}?match=text")
    assert_finds_last(asked(target))
    assert (target.about["indexes"], target.about["mapping"]) == (None, None)
    assert target.about["documents"] == 5
    assert "index_hash" not in target.about


def test_an_index_says_which_it_is(index: SearchServer) -> None:
    def about() -> dict[str, Any]:
        return dict(opened(f"{index.address}?match=text").about)

    first = about()
    assert first == about()
    assert first["indexes"] == ["chunks/Xq0vW1c3R5mT7bN9kL2pZg"]
    assert (first["documents"], first["k"], first["index"]) == (5, 3, "chunks")
    assert first["query"]["query"] == {"match": {"text": {"query": "{question}"}}}
    index.uuid = "another"
    second = about()
    index.documents["new"] = {"text": "x"}
    third = about()
    index.mapping["properties"]["new"] = {"type": "text"}
    fourth = about()
    hashes = [each["index_hash"] for each in (first, second, third, fourth)]
    assert len(set(hashes)) == 4
    assert first["mapping"] == second["mapping"] == third["mapping"] != fourth["mapping"]
    assert asked(opened(f"{index.address}?match=text")).index["index_hash"] == hashes[3]


# --- who asks ---


def basic(pair: str) -> str:
    return f"Basic {base64.b64encode(pair.encode()).decode()}"


AUTHORISED: list[tuple[str, dict[str, str], str, str, str]] = [
    ("opensearch", {"OPENSEARCH_PASSWORD": PASSWORD}, "", "", basic(f"admin:{PASSWORD}")),
    (
        "opensearch",
        {"OPENSEARCH_PASSWORD": f"{PASSWORD}\n", "OPENSEARCH_USERNAME": "eva"},
        "",
        "",
        basic(f"eva:{PASSWORD}"),
    ),
    ("opensearch", {"OPENSEARCH_TOKEN": PASSWORD}, "", "", f"Bearer {PASSWORD}"),
    ("elasticsearch", {"ELASTIC_API_KEY": PASSWORD}, "", "", f"ApiKey {PASSWORD}"),
    (
        "elasticsearch",
        {"ELASTIC_API_KEY": f"id:{PASSWORD}"},
        "",
        "",
        basic(f"id:{PASSWORD}").replace("Basic", "ApiKey"),
    ),
    ("elasticsearch", {"ELASTIC_PASSWORD": PASSWORD}, "", "", basic(f"elastic:{PASSWORD}")),
    (
        "elasticsearch",
        {"ELASTIC_API_KEY": "k", "ELASTIC_PASSWORD": PASSWORD},
        "",
        "&user=eva",
        basic(f"eva:{PASSWORD}"),
    ),
    ("elasticsearch", {"MINE": PASSWORD}, "", "&key_env=MINE", f"ApiKey {PASSWORD}"),
    ("opensearch", {"MINE": PASSWORD}, "", "&key_env=MINE&user=eva", basic(f"eva:{PASSWORD}")),
    ("opensearch", {"OPENSEARCH_TOKEN": "t"}, f"eva:{PASSWORD}@", "", basic(f"eva:{PASSWORD}")),
    ("opensearch", {"OPENSEARCH_PASSWORD": PASSWORD}, "eva@", "", basic(f"eva:{PASSWORD}")),
    ("opensearch", {}, "eva:hunter2%2Dhunter2@", "", basic(f"eva:{PASSWORD}")),
]


@pytest.mark.parametrize(("product", "variables", "user", "query", "header"), AUTHORISED)
def test_who_asks_is_told_by_the_environment_or_the_address(
    corpus: Path,
    serve: Serve,
    monkeypatch: pytest.MonkeyPatch,
    product: str,
    variables: dict[str, str],
    user: str,
    query: str,
    header: str,
) -> None:
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    index = index_of(product, corpus)
    index.allowed = header
    address = serve(index).address.replace("http://", f"http://{user}") + f"?match=text{query}"
    target = opened(address)
    assert_finds_last(asked(target))
    assert PASSWORD not in str(target.about)
    # A server that repeats what it was sent gives nothing away.
    told = f"{PASSWORD} {header.partition(' ')[2]}"
    index.instead = lambda _: http({"error": told}, "401 Unauthorized")
    error = failure(target)
    assert not error.transient
    assert error.reason.endswith("answered 401: [redacted] [redacted]")
    message, hint = problem_of(address)
    assert message.endswith("answered 401: [redacted] [redacted]")
    assert ("OPENSEARCH_TOKEN" if product == "opensearch" else "ELASTIC_API_KEY") in hint


def test_a_server_that_knows_nobody_is_sent_nothing(plain: SearchServer) -> None:
    asked(opened(f"{plain.address}?match=text"))
    assert all("authorization" not in request.headers for request in plain.requests)


def test_who_may_not_ask_is_refused_at_once(index: SearchServer) -> None:
    index.allowed = "someone else"
    message, hint = problem_of(f"{index.address}?match=text")
    assert "answered 401: security_exception: unable to authenticate" in message
    assert "_USERNAME and " in hint


@pytest.mark.parametrize(
    ("user", "query"), [("eva:pw-pw-pw@", "&key_env=X"), ("eva@", "&user=bob"), ("e:p@", "&user=b")]
)
def test_who_asks_is_told_once(user: str, query: str) -> None:
    message, _ = problem_of(f"opensearch:http://{user}h/chunks?match=text{query}")
    assert message == "who asks is told twice"


def test_a_password_that_cannot_be_sent_is_refused_unseen(
    plain: SearchServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENSEARCH_TOKEN", "pass\nword")
    message, _ = problem_of(f"{plain.address}?match=text")
    assert message == "the header `Authorization` cannot be sent"


# --- a whole run ---

GOLD = [
    {"qid": "Q1", "question": RED, "relevant": [LAST]},
    {"qid": "Q2", "question": "make all", "relevant": ["guide.md#S.1.1.c.Bk001"]},
    {"qid": "Q3", "question": "plain b.", "relevant": ["none"]},
]


def run(folder: Folder, index: SearchServer, *more: str) -> Any:
    address = index.address.replace("http://", f"http://eva:{PASSWORD}@")
    return folder.run(
        "run", "--gold", "gold.jsonl", "--target", f"{address}?match=text", "--run-id", "one",
        "--profile", "all", "--cutoffs", "1", "--no-timing", "--retries", "0", "--format", "json",
        "--full", *more,
    )  # fmt: skip


def resume(folder: Folder, index: SearchServer, *more: str) -> Any:
    address = index.address.replace("http://", f"http://eva:{PASSWORD}@")
    return folder.run("run", "--resume", "one", "--target", f"{address}?match=text", *more)


@pytest.fixture
def asking(folder: Folder) -> Folder:
    folder.write("gold.jsonl", GOLD)
    return folder


def test_a_run_is_asked_stored_and_scored(asking: Folder, index: SearchServer) -> None:
    done = run(asking, index)
    assert done.exit_code == 0, done.err
    values = json.loads(done.out)["metrics"]
    assert values["retrieval.hit@1"]["value"] == pytest.approx(2 / 3, abs=1e-4)
    assert values["run.errored"]["value"] == 0.0
    with closing(sqlite3.connect(asking.path / "ragauge.db")) as database:
        ((snapshot,),) = database.execute("SELECT config_snapshot_json FROM eval_runs").fetchall()
    target = json.loads(snapshot)["system"]["target"]
    assert target["indexes"] == ["chunks/Xq0vW1c3R5mT7bN9kL2pZg"]
    assert "eva:[redacted]@" in target["address"]
    held = (asking.path / "ragauge.db").read_bytes()
    assert PASSWORD.encode() not in held
    assert basic(f"eva:{PASSWORD}")[6:].encode() not in held
    assert PASSWORD not in done.out + done.err


def test_what_failed_is_asked_again_of_the_same_index_only(
    asking: Folder, index: SearchServer
) -> None:
    def failing(body: Json) -> Json:
        red = any(hit["_id"] == LAST for hit in body["hits"]["hits"])
        return body | {"_shards": {"total": 2, "successful": 1, "failed": 1}} if red else body

    index.twist = failing
    done = run(asking, index)
    assert "1 of them errors" in done.err
    assert json.loads(done.out)["metrics"]["run.errored"]["value"] == pytest.approx(1 / 3, abs=1e-4)
    index.twist = lambda body: body
    index.uuid = "another-index-of-that-name"
    other = resume(asking, index, "--retry-errors")
    assert other.exit_code == 2
    assert "was begun with another `indexes` of its target" in other.err
    index.uuid = SearchServer.uuid
    again = resume(asking, index, "--retry-errors", "--format", "json", "--full")
    assert again.exit_code == 0, again.err
    assert json.loads(again.out)["metrics"]["run.errored"]["value"] == 0.0


def test_a_run_of_a_server_that_is_gone_stores_nothing(asking: Folder, index: SearchServer) -> None:
    index.instead = lambda _: None
    done = run(asking, index)
    assert done.exit_code == 2
    assert done.codes == {"bad-target"}
    assert PASSWORD not in done.err
    with pytest.raises(RagaugeError):
        opened(f"{index.address}?match=text")
