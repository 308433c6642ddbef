"""Traffic: bodies become rows once, whatever happens in between."""

from __future__ import annotations

import random
import zlib
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec
import pytest

from ragauge.formats.imports.span import TraceSpan
from ragauge.live import assemble
from ragauge.live import traffic as traffic_module
from ragauge.live.assemble import AssembledTrace, PendingTrace
from ragauge.live.delete import delete_traces
from ragauge.live.retention import RetentionPart
from ragauge.live.settings import LiveSettings, Retention, Sampling, WindowRule
from ragauge.live.spool import decode_spans
from ragauge.live.trace_values import KnownIds, LiveGold, TraceReader
from ragauge.live.traffic import MARKER, QUARANTINE
from ragauge.live.windows import MinuteCell, OpenWindow
from ragauge.live.worker import LiveWorker, ScoredTraffic
from tests.support.cases import cases
from tests.unit.live.live_traffic import GOLD, MINUTE, START, SpoolOfTests, traffic, worker


@pytest.fixture
def spool(tmp_path: Path) -> Iterator[SpoolOfTests]:
    spool = SpoolOfTests(tmp_path)
    yield spool
    spool.close()


def spans(
    trace: int, attributes: Mapping[str, str] | None = None, *, offset: int = 0
) -> list[TraceSpan]:
    """A chain with a retriever below it; their times are those of their arrival."""
    begun = START * 1_000_000 + offset
    app = {"service.name": "shop", "service.version": "v1"}
    return [
        TraceSpan(
            f"{trace:032x}", "a" * 16, None, "ask", begun, begun + 9_000,
            {"openinference.span.kind": "CHAIN", "input.value": f"Question {trace}?",
             "output.value": "So.", **(attributes or {})}, None, 0, app,
        ),
        TraceSpan(
            f"{trace:032x}", "b" * 16, "a" * 16, "search", begun + 1_000, begun + 2_000,
            {"openinference.span.kind": "RETRIEVER", "input.value": f"Question {trace}?",
             "retrieval.documents.0.document.id": "a.md#1"}, None, 0, app,
        ),
    ]  # fmt: skip


def stored(part: ScoredTraffic, columns: str = "trace_id, state, app, build, minute") -> list[Any]:
    sql = f"SELECT {columns} FROM live_traces ORDER BY trace_id"
    return [tuple(row) for row in part.traffic.database.read(sql)]


def outcomes(part: ScoredTraffic) -> dict[str, tuple[int, int]]:
    rows = part.traffic.database.read(
        "SELECT outcome, sum(spans), sum(traces) FROM live_counts GROUP BY outcome"
    )
    return {name: (int(spans), int(traces)) for name, spans, traces in rows}


def test_spans_of_several_bodies_become_one_trace_when_it_is_quiet(spool: SpoolOfTests) -> None:
    part = worker(spool)
    chain, search = spans(1)
    spool.put_spans([search], START)
    spool.put_spans([chain], START + 4 * MINUTE)  # the root comes last, within five minutes
    part.step(START + 9_000)
    assert stored(part) == []
    assert spool.reader.depth() == 2
    settings = LiveSettings(sampling=Sampling(rate=1.0), assemble_after=290)
    part = worker(spool, settings=settings)
    part.traffic.step(START + 4 * MINUTE + 1_900)
    assert stored(part) == []  # the root has ended, but not two seconds ago
    part.traffic.step(START + 4 * MINUTE + 2_000)
    assert stored(part) == [(f"{1:032x}", "scored", "shop", "v1", START // MINUTE + 4)]
    assert spool.reader.depth() == 0
    row = msgspec.json.decode(zlib.decompress(stored(part, "body")[0][0]))
    assert [hit["id"] for hit in row["hits"]] == ["a.md#1"]


def test_spans_that_come_for_longer_than_five_minutes_make_one_trace_of_the_first(
    spool: SpoolOfTests,
) -> None:
    """Out of order, and again and again before it is quiet: after five minutes it is scored."""
    part = worker(spool)
    chain, search = spans(1)
    spool.put_spans([search], START)
    for number in range(1, 45):  # each 8 seconds, the last of them after 352
        late = spans(1)[1]
        late.span_id, late.attributes = f"{100 + number:016x}", {"http.method": "GET"}
        spool.put_spans([late], START + 8_000 * number)
    spool.put_spans([chain], START + 360_000)
    for now in range(START, START + 400_000, 2_000):
        part.traffic.step(now)
    assert [row[:2] for row in stored(part)] == [(f"{1:032x}", "scored")]
    assert part.traffic.assembler.open == {}
    assert spool.reader.depth() == 0
    row = msgspec.json.decode(zlib.decompress(stored(part, "body")[0][0]))
    assert [hit["id"] for hit in row["hits"]] == ["a.md#1"]


def test_a_trace_without_a_root_is_scored_after_a_while_and_two_roots_are_one_trace(
    spool: SpoolOfTests,
) -> None:
    part = worker(spool)
    _, search = spans(1)
    first, second = spans(2)[0], spans(2)[0]
    second.span_id = "c" * 16
    spool.put_spans([search, first, second], START)
    part.traffic.step(START + 9_999)
    assert [row[0] for row in stored(part)] == [f"{2:032x}"]  # its root has ended
    part.traffic.step(START + 10_000)
    assert [row[:2] for row in stored(part)] == [
        (f"{1:032x}", "scored"), (f"{2:032x}", "scored"),
    ]  # fmt: skip


def test_a_span_id_with_other_content_is_counted_and_the_same_content_is_not(
    spool: SpoolOfTests,
) -> None:
    part = worker(spool)
    chain, search = spans(1)
    other = spans(1)[1]
    other.attributes = {**other.attributes, "retrieval.documents.0.document.id": "z.md#9"}
    spool.put_spans([chain, search], START)
    spool.put_spans([search], START + 1)
    spool.put_spans([other], START + 2)
    part.traffic.step(START + MINUTE)
    assert outcomes(part) == {"scored": (2, 1), "conflict": (1, 1)}


def test_spans_of_no_rag_system_are_counted_as_unusable(spool: SpoolOfTests) -> None:
    part = worker(spool)
    span = spans(1)[0]
    span.attributes = {"http.method": "GET"}
    spool.put_spans([span], START)
    part.traffic.step(START + MINUTE)
    assert stored(part, "state, app, body") == [("unusable", "shop", None)]


def test_a_bad_row_is_kept_with_its_state_and_the_others_are_scored(spool: SpoolOfTests) -> None:
    part = worker(spool)
    body = b'{"question": "a?", "hits": "none"}\n{"question": "b?", "hits": []}\nno json\n'
    spool.put("rows", body, START)
    part.traffic.step(START + 1)
    assert sorted(row[1] for row in stored(part)) == ["errored", "scored", "unusable"]


def test_a_skewed_clock_is_marked_and_counts_when_it_came(spool: SpoolOfTests) -> None:
    part = worker(spool)
    spool.put_spans(spans(1, offset=-START * 1_000_000), START)  # a clock of 1970
    spool.put_spans(spans(2, offset=365 * 86400 * 10**9), START)  # a clock of next year
    spool.put_spans(spans(3), START)
    part.traffic.step(START + MINUTE)
    minute = START // MINUTE
    assert stored(part, "skewed, minute") == [(1, minute), (1, minute), (0, minute)]


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(6))
def test_a_crash_anywhere_gives_the_same_rows(
    tmp_path: Path, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every transaction, deletion and step may be the last; the rows are those without a crash."""
    monkeypatch.setattr(traffic_module, "BODIES", 3)
    draw = random.Random(seed)
    results = []
    for crashes in (False, True):
        folder = tmp_path / str(crashes)
        folder.mkdir()
        spool = SpoolOfTests(folder)
        settings = LiveSettings(sampling=Sampling(rate=1.0), window=WindowRule(samples=20))
        rows = traffic(60, seed=seed)
        for minute in range(6):
            spool.put_rows(rows[10 * minute : 10 * minute + 10], START + minute * MINUTE)
            spool.put_spans(spans(1000 + minute), START + minute * MINUTE + 1)
        part = worker(spool, gold=GOLD, settings=settings)
        while True:
            if crashes:
                left = draw.randrange(1, 150)

                def dying(call: Any) -> Any:
                    def count(*arguments: Any, **options: Any) -> Any:
                        nonlocal left
                        left -= 1
                        if left == 0:
                            raise KeyboardInterrupt
                        result = call(*arguments, **options)
                        left -= 1
                        if left == 0:
                            raise KeyboardInterrupt
                        return result

                    return count

                part.traffic.spool.delete = dying(part.traffic.spool.delete)  # type: ignore[method-assign]
                part.traffic._store = dying(part.traffic._store)  # type: ignore[method-assign]
                part.windows._store = dying(part.windows._store)  # type: ignore[method-assign]
                part.windows._sum_minute = dying(part.windows._sum_minute)  # type: ignore[method-assign]
            try:
                part.step(START + 7 * MINUTE)
                break
            except KeyboardInterrupt:
                # Deaths of a process are many in this test, and no body is to blame.
                (folder / MARKER).unlink(missing_ok=True)
                part = worker(spool, gold=GOLD, settings=settings)
        read = part.traffic.database.read
        results.append(
            [
                stored(part, "trace_id, state, build, minute, gold_id, body, measured"),
                read("SELECT outcome, traces, spans FROM live_counts ORDER BY 1, 2, 3"),
                read(
                    "SELECT minute, build, samples, partials FROM eval_live_minutes ORDER BY 1, 2"
                ),
                read(
                    "SELECT build, index_hash, question_type, begins_at, ends_at, samples, "
                    "aggregate_json FROM eval_live_windows ORDER BY 1, 2, 3, 4"
                ),
            ]
        )
        assert spool.reader.depth() == 0
        spool.close()
    assert len(results[0][0]) == 66
    assert results[0][3]
    assert results[0] == results[1]


def test_a_body_that_kills_the_worker_three_times_is_put_aside(
    spool: SpoolOfTests, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = traffic(3)
    for place, row in enumerate(rows):
        spool.put_rows([row], START + place)
    read = TraceReader.read

    def dying(self: TraceReader, row: Any, *arguments: Any, **options: Any) -> Any:
        if row["trace_id"] == rows[1]["trace_id"]:
            raise SystemExit  # as if the process were gone
        return read(self, row, *arguments, **options)

    monkeypatch.setattr(TraceReader, "read", dying)
    deaths = 0
    for _ in range(10):
        try:
            part = worker(spool)
            part.traffic.step(START + MINUTE)
            break
        except SystemExit:
            deaths += 1
    assert deaths == 3
    assert len(stored(part)) == 2
    assert outcomes(part)["quarantined"] == (0, 1)
    assert [path.suffix for path in (spool.folder / QUARANTINE).iterdir()] == [".rows"]
    assert spool.reader.depth() == 0


def test_a_trace_that_cannot_be_put_together_holds_up_no_other(
    spool: SpoolOfTests, monkeypatch: pytest.MonkeyPatch
) -> None:
    put_together = assemble.rows_of

    def failing(traces: Iterable[PendingTrace]) -> Iterator[AssembledTrace]:
        for trace in traces:
            if trace.trace_id == f"{2:032x}":
                raise ValueError("a fault of ours")
            yield from put_together([trace])

    monkeypatch.setattr(traffic_module, "rows_of", failing)
    part = worker(spool)
    for trace in (1, 2, 3):
        spool.put_spans(spans(trace), START)
    part.step(START + MINUTE)
    assert [row[1] for row in stored(part)] == ["scored", "unusable", "scored"]
    assert outcomes(part)["quarantined"] == (0, 1)
    (path,) = (spool.folder / QUARANTINE).iterdir()
    assert {span.trace_id for span in decode_spans(path.read_bytes())} == {f"{2:032x}"}
    assert spool.reader.depth() == 0


def test_a_trace_that_comes_late_counts_in_the_first_open_minute(spool: SpoolOfTests) -> None:
    part = worker(spool)
    spool.put_rows([{"trace_id": "1", "question": "a?", "hits": []}], START)
    part.step(START + 3 * MINUTE)  # seals two minutes
    spool.put_rows([{"trace_id": "2", "question": "a?", "hits": []}], START + 1)
    part.step(START + 3 * MINUTE + 1)
    first = START // MINUTE
    assert stored(part, "trace_id, minute") == [("1", first), ("2", first + 2)]
    assert outcomes(part)["late"] == (0, 1)


def test_errors_that_have_their_own_rate_do_not_count_as_traffic(spool: SpoolOfTests) -> None:
    settings = LiveSettings(sampling=Sampling(rate=0.1))
    part = worker(spool, settings=settings)
    rows = [{"trace_id": f"{n}", "question": f"{n}?", "error": "boom"} for n in range(200)]
    spool.put_rows(rows, START, rate=1.0)
    part.traffic.step(START + 1)
    bodies = [msgspec.json.decode(zlib.decompress(row[0])) for row in stored(part, "body")]
    sampled = [body for body in bodies if not body.get("oversampled")]
    assert 10 <= len(sampled) <= 35  # a tenth of 200, by their hashes


@cases(
    ("began", "ended", "received", "has_root", "state"),
    [
        (-2_000, 3_000, 4_000, True, "unusable"),  # earlier spans went with the process before
        (1_000, 3_000, 4_000, True, "scored"),
        (1_000, 3_000, 4_000, False, "unusable"),  # nobody knows when it began
        (-2_000, 299_000, 300_000, True, "scored"),  # what is lost is 5 minutes old at most
        (-2_000, 299_000, 300_000, False, "scored"),
        (3_599_000, 3_603_000, 4_000, True, "unusable"),  # by a clock that is an hour ahead
        (-START, 1 - START, 4_000, True, "unusable"),  # by a clock of 1970
    ],
)
def test_a_trace_kept_for_its_question_is_not_scored_where_its_first_spans_may_be_lost(
    tmp_path: Path, began: int, ended: int, received: int, has_root: bool, state: str
) -> None:
    """The server began at START and keeps 1 %; this trace is kept by the rate of gold."""
    spool = SpoolOfTests(tmp_path)
    part = worker(spool, settings=LiveSettings(sampling=Sampling(rate=0.01)))
    trace = [span for span in spans(1) if has_root or span.parent_id is not None]
    for span in trace:
        span.start, span.end = (START + began) * 10**6, (START + ended) * 10**6
    spool.put_spans(trace, START + received, known_from=START)
    part.traffic.step(START + received + 20_000)
    assert [row[:2] for row in stored(part)] == [(f"{1:032x}", state)]
    assert ("incomplete" in outcomes(part)) == (state == "unusable")
    assert spool.reader.depth() == 0
    spool.close()


def test_the_rate_of_all_traffic_never_leaves_spans_out(spool: SpoolOfTests) -> None:
    part = worker(spool)
    spool.put_spans(spans(1), START + 1_000, known_from=START)
    part.traffic.step(START + MINUTE)
    assert outcomes(part) == {"scored": (2, 1)}


def test_ids_are_held_against_the_corpus(spool: SpoolOfTests) -> None:
    known = KnownIds(["a.md#S1"], ["a.md", "guide/b.md"])
    part = worker(spool, known=known)
    hits = ["a.md#S1", {"id": "b-7", "doc": "/data/guide/b.md"}, "c.md#S1", "opaque"]
    spool.put_rows([{"question": "a?", "hits": hits, "citations": ["x"], "answer": "y"}], START)
    part.traffic.step(START + 1)
    body = msgspec.json.decode(zlib.decompress(stored(part, "body")[0][0]))
    assert body["unknown_ids"] == ["c.md#S1", "opaque", "x"]


def test_gold_matches_by_id_text_or_paraphrase_and_not_where_two_items_ask_it() -> None:
    twice = [*GOLD, {"qid": "G4", "question": "where is  the Switch?"}]
    gold = LiveGold([msgspec.json.encode(row) for row in twice])
    reader = TraceReader("app", gold, None)
    matches = {
        text: reader.read({"question": text}, "t").gold_id
        for text in ("WHAT is scu?", "explain  SCU", "Where is the switch?", "Why?")
    }
    assert matches == {
        "WHAT is scu?": "G1", "explain  SCU": "G1", "Where is the switch?": None, "Why?": None,
    }  # fmt: skip
    assert reader.read({"qid": "G2", "question": "x"}, "t").gold_id == "G2"
    assert reader.read({"question": "explain SCU"}, "t").question_type == "lookup"


def test_a_trace_is_deleted_everywhere_even_while_a_worker_holds_it(spool: SpoolOfTests) -> None:
    part = worker(spool)
    spool.put_rows(
        [{"trace_id": "1", "user_key": "u", "question": "a?", "hits": []},
         {"trace_id": "2", "question": "b?", "hits": []}], START,
    )  # fmt: skip
    part.traffic.step(START + 1)
    spool.put_spans([*spans(3, {"user.id": "u"}), *spans(4)], START)
    part.traffic.step(START + 2)  # held in memory, and in the spool
    spool.put_rows([{"trace_id": "5", "user_key": "u", "question": "c?", "hits": []}], START)
    deleted = delete_traces(
        part.traffic.database, spool.reader, user_keys=["u"], trace_ids=["2"], now=START + 3
    )
    assert (deleted.traces, deleted.spooled) == (2, 2)
    assert spool.reader.depth() == 1
    part.traffic.step(START + MINUTE)
    assert [row[0] for row in stored(part)] == [f"{4:032x}"]
    assert spool.reader.depth() == 0


def test_old_bodies_go_before_old_traces_and_windows_stay_longest(spool: SpoolOfTests) -> None:
    part = worker(spool, settings=LiveSettings(window=WindowRule(samples=1)))
    spool.put_rows([{"trace_id": "1", "question": "a?", "hits": []}], START)
    part.step(START + 6 * MINUTE)
    database = part.traffic.database
    retention = RetentionPart(database, Retention(bodies=1, traces=2, windows=3))
    counts = []
    for days in (1, 2, 3, 4):
        retention.step(START + days * 24 * 60 * MINUTE + 10 * MINUTE)
        counts.append(
            [
                database.read(f"SELECT count(*) FROM {what}")[0][0]
                for what in (
                    "live_traces WHERE body IS NOT NULL", "live_traces",
                    "eval_live_minutes", "eval_live_windows",
                )
            ]
        )  # fmt: skip
    assert counts == [[0, 1, 1, 1], [0, 0, 1, 1], [0, 0, 0, 0], [0, 0, 0, 0]]


def test_a_part_that_fails_rests_longer_each_time_and_the_others_go_on() -> None:
    class Failing:
        name = "failing"

        def __init__(self, fails: bool) -> None:
            self.fails, self.steps = fails, []  # type: ignore[var-annotated]

        def step(self, now: int) -> None:
            self.steps.append(now)
            if self.fails:
                raise OSError("away")

    failing, fine = Failing(True), Failing(False)
    runner = LiveWorker([failing, fine])
    for now in range(0, 8_000, 500):
        runner.step(now)
    assert failing.steps == [0, 1000, 3000, 7000]  # pauses of 1, 2 and 4 seconds
    assert len(fine.steps) == 16
    assert runner.failures == {"failing": 4}


@cases(
    ("samples", "until", "end"),
    [
        ({0: 200}, 3, None),  # 200 samples, four minutes
        ({0: 200}, 4, 5),  # five minutes
        ({0: 100, 7: 100}, 7, 8),  # the 200th comes in the eighth minute
        ({0: 100, 7: 99}, 1438, None),
        ({0: 100, 7: 99}, 1439, 1440),  # a day: too little traffic
        ({0: 100, 1440: 100}, 1440, 1440),  # the second hundred is of the next day
    ],
)
def test_when_a_window_ends(samples: dict[int, int], until: int, end: int | None) -> None:
    cells = tuple(MinuteCell(minute, count, count) for minute, count in samples.items())
    assert OpenWindow(0, cells).end(WindowRule(), until) == end
