"""The mirror: which questions are asked again, how often, and what becomes of a broken shadow."""

from __future__ import annotations

import json
import zlib
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec
import pytest

from ragauge import registry
from ragauge.formats.traces import RowReader
from ragauge.live.database import LiveDatabase, open_database
from ragauge.live.delete import delete_traces
from ragauge.live.mirror import MOST_WAITING, CircuitBreaker, Mirror, gold_scorer, native_row
from ragauge.live.pairs import PairValues
from ragauge.live.settings import LiveSettings, MirrorRule, Redaction
from ragauge.live.trace_sampler import hash_share
from ragauge.live.trace_values import KnownIds
from ragauge.model.gold import GoldItem
from ragauge.model.options import Options
from ragauge.model.trace import Answer, Citation, Hit, Timing, Trace
from ragauge.spans import Span
from tests.support.web_servers import Request, Server, http, serving

NOW = 1_790_000_040_000
MINUTE = 60_000
LIVE_ROW = {
    "question": "How long do refunds take?",
    "hits": [{"id": "a"}, {"id": "b"}],
    "answer": {"text": "Five days.", "citations": ["a"]},
    "latency_ms": 80,
}


@pytest.fixture
def database(tmp_path: Path) -> Iterator[LiveDatabase]:
    opened = open_database(f"sqlite:///{tmp_path / 'live.db'}")
    yield opened
    opened.close()


def add_traces(
    database: LiveDatabase,
    names: Sequence[str],
    *,
    row: dict[str, Any] | None = None,
    arrived: int = NOW - 1000,
    **columns: Any,
) -> None:
    values = {
        "tenant": "", "app": "shop", "build": "b1", "index_hash": "i1", "question_type": "",
        "arrived": arrived, "minute": arrived // MINUTE, "state": "scored", "sample_rate": 1.0,
        "question_key": None, "body": zlib.compress(json.dumps(row or LIVE_ROW).encode()),
        **columns,
    }  # fmt: skip
    names_of = ", ".join(["trace_id", *values])
    marks = ", ".join("?" * (len(values) + 1))
    with database.transaction():
        sql = f"INSERT INTO live_traces ({names_of}) VALUES ({marks})"
        database.execute_many(sql, [(name, *values.values()) for name in names])


def pairs(database: LiveDatabase) -> list[tuple[Any, ...]]:
    sql = "SELECT trace_id, role, state FROM live_pairs ORDER BY trace_id, role DESC"
    return [tuple(row) for row in database.read(sql)]


def measured(database: LiveDatabase, trace_id: str, role: str = "shadow") -> PairValues:
    sql = "SELECT measured FROM live_pairs WHERE trace_id = ? AND role = ?"
    return msgspec.json.decode(database.read(sql, (trace_id, role))[0][0], type=PairValues)


def why(database: LiveDatabase, trace_id: str) -> str:
    sql = "SELECT measured FROM live_pairs WHERE trace_id = ? AND role = 'shadow'"
    return str(json.loads(database.read(sql, (trace_id,))[0][0])["why"])


def rule(target: str, **more: Any) -> MirrorRule:
    return MirrorRule(**{"target": target, "rate": 1.0, "qps": 1000.0, "timeout": 5.0, **more})


def mirror_of(database: LiveDatabase, target: str, **more: Any) -> Mirror:
    return Mirror(LiveSettings(shadow=rule(target, **more)), database)


def run_until_idle(mirror: Mirror, now: int = NOW) -> int:
    """Step until everything that was found has been asked; the time that it is then."""
    for _ in range(50):
        mirror.step(now)
        mirror.wait()
        now += 1000
        if mirror._batch is None and not mirror._waiting:
            break
    mirror.step(now)
    return now


@pytest.fixture
def shadow_server() -> Iterator[Server]:
    def answer(_: Request) -> bytes:
        hits = [{"id": "a"}, {"id": "c"}]
        text = {"text": "Five days.", "citations": ["c"]}
        return http({"hits": hits, "answer": text, "index_hash": "i2"})

    with serving(answer) as server:
        yield server


def test_a_scored_question_is_asked_of_a_real_service_and_the_pair_is_stored(
    database: LiveDatabase, shadow_server: Server
) -> None:
    add_traces(database, ["t1"])
    mirror = mirror_of(database, f"{shadow_server.url}/ask")
    run_until_idle(mirror)
    mirror.close()
    assert pairs(database) == [("t1", "shadow", "answered")]
    assert shadow_server.requests[0].json["question"] == LIVE_ROW["question"]
    values = measured(database, "t1")
    assert (values.found, values.expected, values.rung) == (1, 2, "id")  # `a` of `a`, `b`
    assert values.same_citations is False
    assert (values.live.outcome, values.other.outcome) == ("cited", "cited")
    assert values.other.index == "i2"
    assert values.live.ms == 80
    assert values.other.ms is not None
    sql = "SELECT app, live, question_key, asked, minute, body FROM live_pairs"
    app, live, key, asked, minute, body = database.read(sql)[0]
    assert (app, live, key, asked, minute) == ("shop", "i1", "t1", NOW, NOW // MINUTE)
    stored = RowReader(registry.dialect("native"), own=False).trace(
        json.loads(zlib.decompress(body))
    )
    assert [hit.id for hit in stored.hits] == ["a", "c"]


def test_a_citation_that_the_corpus_does_not_have_is_not_valid(
    database: LiveDatabase, shadow_server: Server
) -> None:
    """The shadow cites `c`, which is among its hits and in no document."""
    add_traces(database, ["t1"])
    settings = LiveSettings(shadow=rule(shadow_server.url, live=shadow_server.url, self_rate=1.0))
    mirror = Mirror(settings, database, known_ids=KnownIds(["a", "b"], []))
    run_until_idle(mirror)
    mirror.close()
    for role in ("shadow", "again", "self"):
        values = measured(database, "t1", role)
        assert (values.live.outcome, values.other.outcome) == ("cited", "invalid")


def test_a_trace_that_was_deleted_meanwhile_is_not_mirrored(
    database: LiveDatabase, shadow_server: Server
) -> None:
    add_traces(database, ["t1", "t2"])
    mirror = mirror_of(database, shadow_server.url)
    mirror._scan(NOW)  # both wait
    delete_traces(database, None, trace_ids=["t1"], now=NOW)
    now = run_until_idle(mirror)
    assert pairs(database) == [("t2", "shadow", "answered")]
    # Another server may have claimed one in that moment: it is forgotten with the next look.
    with database.transaction() as execute:
        execute("UPDATE live_pairs SET trace_id = 't1'", ())
    mirror._tidy("", "shop", now)
    assert pairs(database) == []
    mirror.close()


def test_nothing_is_asked_twice_after_a_restart(
    database: LiveDatabase, shadow_server: Server
) -> None:
    add_traces(database, ["t1", "t2"])
    for _ in range(2):
        mirror = mirror_of(database, shadow_server.url)
        run_until_idle(mirror)
        mirror.close()
    assert len(shadow_server.requests) == 2


def test_a_trace_that_comes_late_into_a_minute_is_seen(
    database: LiveDatabase, shadow_server: Server
) -> None:
    mirror = mirror_of(database, shadow_server.url)
    add_traces(database, ["t1"])
    now = run_until_idle(mirror)
    add_traces(database, ["t2"], arrived=NOW - 2 * MINUTE)
    run_until_idle(mirror, now + 1000)
    mirror.close()
    assert [name for name, _, _ in pairs(database)] == ["t1", "t2"]


def test_the_rate_chooses_by_a_stable_hash(database: LiveDatabase, shadow_server: Server) -> None:
    names = [f"t{number}" for number in range(60)]
    add_traces(database, names)
    mirror = mirror_of(database, shadow_server.url, rate=0.2)
    run_until_idle(mirror)
    mirror.close()
    chosen = sorted(name for name in names if hash_share(name) < 0.2)
    assert 4 <= len(chosen) <= 20
    assert [name for name, _, _ in pairs(database)] == chosen


def test_both_systems_are_asked_once_more_for_a_part(
    database: LiveDatabase, shadow_server: Server
) -> None:
    add_traces(database, ["t1"])
    live = {"hits": ["a", "x"], "answer": {"text": "Five days.", "citations": ["a"]}}
    with serving(lambda _: http(live)) as live_server:
        mirror = mirror_of(database, shadow_server.url, live=live_server.url, self_rate=1.0)
        run_until_idle(mirror)
        mirror.close()
        assert len(live_server.requests) == 1
    assert pairs(database) == [
        ("t1", "shadow", "answered"),
        ("t1", "self", "answered"),
        ("t1", "again", "answered"),
    ]
    assert len(shadow_server.requests) == 2
    again = measured(database, "t1", "self")
    assert (again.found, again.expected, again.same_citations) == (1, 2, True)


def test_without_a_live_target_nothing_is_asked_again(
    database: LiveDatabase, shadow_server: Server
) -> None:
    add_traces(database, ["t1"])
    mirror = mirror_of(database, shadow_server.url, self_rate=1.0)
    run_until_idle(mirror)
    mirror.close()
    assert pairs(database) == [("t1", "shadow", "answered")]


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        ({**LIVE_ROW, "question": ""}, "no-question"),
        ({**LIVE_ROW, "question": "My key is [redacted], why?"}, "redacted-question"),
        ({**LIVE_ROW, "turn": 2}, "conversation"),
    ],
)
def test_what_cannot_be_asked_as_it_was_is_skipped_with_the_reason(
    database: LiveDatabase, shadow_server: Server, row: dict[str, Any], reason: str
) -> None:
    add_traces(database, ["t1"], row=row)
    mirror = mirror_of(database, shadow_server.url)
    run_until_idle(mirror)
    mirror.close()
    assert pairs(database) == [("t1", "shadow", "skipped")]
    assert why(database, "t1") == reason
    assert not shadow_server.requests


def test_errored_live_traces_are_not_mirrored(
    database: LiveDatabase, shadow_server: Server
) -> None:
    add_traces(database, ["t1"], state="errored")
    add_traces(database, ["t2"], body=None)
    mirror = mirror_of(database, shadow_server.url)
    run_until_idle(mirror)
    mirror.close()
    assert pairs(database) == []


def test_no_more_than_the_cap_are_asked(
    database: LiveDatabase, monkeypatch: pytest.MonkeyPatch
) -> None:
    """2 a second: one at the start, 2 after a second, and at most 20 after any pause."""
    add_traces(database, [f"t{number:02d}" for number in range(40)])
    mirror = mirror_of(database, "http://shadow.invalid/ask", qps=2.0)
    asked: list[str] = []

    def answers(questions: Sequence[tuple[str, str]]) -> list[Trace | None]:
        asked.extend(key for key, _ in questions)
        return [Trace() for _ in questions]

    monkeypatch.setattr(mirror.shadow, "ask", answers)
    counts = []
    for now in (NOW, NOW + 1000, NOW + 1200, NOW + 1500, NOW + 3_601_500):
        mirror.step(now)
        mirror.wait()
        mirror.step(now)
        counts.append(len(asked))
    assert counts == [1, 3, 3, 4, 24]


def test_the_breaker_opens_after_errors_and_lets_one_question_try() -> None:
    breaker = CircuitBreaker(5, 60)
    for _ in range(4):
        breaker.note(0, failed=True)
    assert not breaker.is_open(0)
    breaker.note(0, failed=False)  # errors in a row count
    for _ in range(5):
        breaker.note(1000, failed=True)
    assert (breaker.room(1000), breaker.room(60_999), breaker.room(61_000)) == (0, 0, 1)
    breaker.note(61_500, failed=True)  # the one that tried failed: another minute
    assert (breaker.room(121_499), breaker.room(121_500)) == (0, 1)
    breaker.note(122_000, failed=False)
    assert breaker.room(122_000) is None


def test_a_broken_shadow_is_given_a_rest_and_the_gap_is_on_record(database: LiveDatabase) -> None:
    add_traces(database, [f"t{number:02d}" for number in range(20)])
    with serving(lambda _: http({"detail": "broken"}, "500 Internal Server Error")) as server:
        mirror = mirror_of(database, server.url, qps=1.0, open_seconds=60.0)
        now = NOW
        for _ in range(16):
            mirror.step(now)
            mirror.wait()
            now += 1000
        asked = len(server.requests)
        mirror.step(now)
        states = [state for _, _, state in pairs(database)]
        assert asked == 5
        assert states.count("errored") == 5
        assert states.count("skipped") >= 8
        assert all(
            why(database, name) == "circuit-open"
            for name, _, state in pairs(database)
            if state == "skipped"
        )
        mirror.close()


def test_a_batch_ends_when_the_breaker_would_open(database: LiveDatabase) -> None:
    """Twenty at once would be twenty errors: what was not asked any more is skipped."""
    add_traces(database, [f"t{number:02d}" for number in range(20)])
    with serving(lambda _: http({"detail": "no"}, "500 Internal Server Error")) as server:
        mirror = mirror_of(database, server.url, qps=20.0)
        mirror._refill(NOW - 60_000)
        run_until_idle(mirror)
        mirror.close()
        # those in flight when the fifth error came are answered too
        assert 5 <= len(server.requests) < 20
    states = [state for _, _, state in pairs(database)]
    assert states.count("errored") == len(server.requests)
    assert states.count("skipped") == 20 - len(server.requests)


def test_a_hanging_shadow_times_out_off_the_workers_thread(database: LiveDatabase) -> None:
    add_traces(database, ["t1"])

    def hang(_: Request) -> bytes | None:
        server.ended.wait(5)
        return None

    with serving(hang) as server:
        mirror = mirror_of(database, server.url, timeout=0.2)
        mirror.step(NOW)  # comes back at once
        assert pairs(database) == [("t1", "shadow", "asking")]
        mirror.wait()
        mirror.step(NOW + 1000)
        mirror.close()
    assert pairs(database) == [("t1", "shadow", "timed-out")]
    assert measured(database, "t1").other.outcome == "failed"


def test_a_target_that_cannot_be_opened_is_a_failed_pair(database: LiveDatabase) -> None:
    add_traces(database, ["t1"])
    mirror = mirror_of(database, "python:no_such_module_here:ask")
    run_until_idle(mirror)
    assert pairs(database) == [("t1", "shadow", "errored")]


def test_secrets_that_a_shadow_repeats_are_not_stored(database: LiveDatabase) -> None:
    add_traces(database, ["t1"])
    answer = {"hits": ["a"], "answer": "Your key is tok-5up3r-s3cret-value and sk-abcdef1234567890"}
    with serving(lambda _: http(answer)) as server:
        options = {"header.Authorization": "Bearer tok-5up3r-s3cret-value"}
        mirror = mirror_of(database, server.url, options=options)
        run_until_idle(mirror)
        mirror.close()
        assert server.requests[0].headers["authorization"] == "Bearer tok-5up3r-s3cret-value"
    row = database.read("SELECT shadow, body, measured FROM live_pairs")[0]
    text = f"{row[0]} {zlib.decompress(row[1]).decode()} {row[2].decode()}"
    assert "5up3r" not in text
    assert "sk-abcdef" not in text
    assert "[redacted]" in text


def test_what_the_project_hides_is_hidden_in_answers_of_the_shadow(
    database: LiveDatabase,
) -> None:
    add_traces(database, ["t1"])
    answer = {"hits": [{"id": "a", "text": "Call 555-0199 now"}], "answer": "Call 555-0199."}
    with serving(lambda _: http(answer)) as server:
        redaction = Redaction(patterns=(r"\d{3}-\d{4}",))
        mirror = Mirror(LiveSettings(shadow=rule(server.url), redaction=redaction), database)
        run_until_idle(mirror)
        mirror.close()
    body = zlib.decompress(database.read("SELECT body FROM live_pairs")[0][0]).decode()
    assert "555" not in body
    assert body.count("[redacted]") == 2


def test_no_texts_are_kept_where_texts_are_not(
    database: LiveDatabase, shadow_server: Server
) -> None:
    add_traces(database, ["t1"])
    settings = LiveSettings(shadow=rule(shadow_server.url), redaction=Redaction(texts=True))
    mirror = Mirror(settings, database)
    run_until_idle(mirror)
    mirror.close()
    assert pairs(database) == [("t1", "shadow", "answered")]
    assert database.read("SELECT body FROM live_pairs") == [(None,)]


def test_questions_beyond_the_queue_are_counted(
    database: LiveDatabase, shadow_server: Server
) -> None:
    add_traces(database, [f"t{number:04d}" for number in range(MOST_WAITING + 7)])
    mirror = mirror_of(database, shadow_server.url, qps=0.001)
    mirror.step(NOW)
    mirror.wait()
    mirror.close()
    assert database.read("SELECT outcome, traces FROM live_counts") == [("not-mirrored", 7)]


def test_what_a_server_was_asking_when_it_died_is_marked(
    database: LiveDatabase, shadow_server: Server
) -> None:
    add_traces(database, ["t1"], arrived=NOW)
    mirror = mirror_of(database, shadow_server.url)
    mirror.step(NOW)
    mirror.wait()  # and the process ends before it is stored
    later = NOW + 16 * MINUTE
    add_traces(database, ["t2"], arrived=later)
    next_one = mirror_of(database, shadow_server.url)
    run_until_idle(next_one, later)
    assert pairs(database) == [("t1", "shadow", "skipped"), ("t2", "shadow", "answered")]
    assert why(database, "t1") == "interrupted"


def test_two_servers_on_one_store_ask_a_question_once(
    database: LiveDatabase, shadow_server: Server
) -> None:
    add_traces(database, ["t1"])
    one, other = mirror_of(database, shadow_server.url), mirror_of(database, shadow_server.url)
    one._scan(NOW)
    other._scan(NOW)  # both have seen it
    for mirror in (one, other):
        run_until_idle(mirror)
        mirror.close()
    assert len(shadow_server.requests) == 1


def test_another_configuration_of_the_shadow_is_another_shadow(database: LiveDatabase) -> None:
    def name(**more: Any) -> str:
        mirror = mirror_of(database, "http://u:pa55word@host/ask", **more)
        assert mirror.shadow is not None
        return mirror.shadow.name

    assert name() != name(k=5)
    assert name() != name(options={"body": '{"q": {question}}'})
    assert "pa55word" not in name()


def test_no_shadow_is_no_work(database: LiveDatabase) -> None:
    add_traces(database, ["t1"])
    mirror = Mirror(LiveSettings(), database)
    mirror.step(NOW)
    mirror.close()
    assert pairs(database) == []


def test_values_of_gold_questions_are_of_both_sides(
    database: LiveDatabase, shadow_server: Server
) -> None:
    add_traces(database, ["t1"], gold_id="Q1")

    def coverage(gold_id: str, trace: Trace) -> dict[str, float | None]:
        assert gold_id == "Q1"
        return {"answer.coverage": float(trace.answer is not None and trace.hits[1].id == "b")}

    settings = LiveSettings(shadow=rule(shadow_server.url))
    mirror = Mirror(settings, database, gold_values=coverage)
    run_until_idle(mirror)
    mirror.close()
    assert measured(database, "t1").gold == {"answer.coverage": (1.0, 0.0)}


def test_a_gold_question_is_scored_as_score_does() -> None:
    item = GoldItem(qid="Q1", question="q", expect="answer", relevant=("a",))
    values = gold_scorer({"Q1": item}, Options())
    cites_a = Trace(hits=(Hit("a"), Hit("b")), answer=Answer(text="x", citations=("a",)))
    cites_b = Trace(hits=(Hit("a"), Hit("b")), answer=Answer(text="x", citations=("b",)))
    # the gold has no span, so there is no citation.accuracy
    assert values("Q1", cites_a) == {"answer.coverage": 1.0, "citation.accuracy": None}
    assert values("Q1", cites_b) == {"answer.coverage": 0.0, "citation.accuracy": None}
    assert values("gone", cites_a) == {}


@pytest.mark.parametrize(
    "make",
    [
        lambda: Trace(hits=(Hit("a"), Hit("b")), question="q"),
        lambda: Trace(
            question="q",
            hits=(
                Hit(
                    "a",
                    doc="d.md",
                    section="S.1",
                    score=0.5,
                    text="some text",
                    spans=(Span(0, 9), Span(20, 30)),
                    delta_s=0.25,
                    chunker_version="v2",
                ),
            ),
            answer=Answer(
                text="It is so.",
                citations=("a",),
                cited=(Citation("a", doc="d.md", spans=(Span(0, 9),)),),
                refused=False,
            ),
            timing=Timing(total=12.5),
            index={"index_hash": "i2"},
        ),
        lambda: Trace(question="q", error="it broke"),
    ],
)
def test_a_stored_answer_reads_as_the_same_trace(make: Callable[[], Trace]) -> None:
    trace = make()
    row = json.loads(json.dumps(native_row(trace)))
    again = RowReader(registry.dialect("native"), own=False).trace(row)
    assert again == trace
