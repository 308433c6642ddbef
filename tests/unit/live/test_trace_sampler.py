"""Sampling: a trace is in or out as a whole, the same on every server, at the rate that was set."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import msgspec
import pytest

from ragauge.formats.imports.span import TraceSpan
from ragauge.live.settings import LiveSettings
from ragauge.live.trace_sampler import TraceSampler, filling_rate, hash_share
from tests.support.cases import cases
from tests.support.live_server import PROTOBUF, live_client, otlp_request, spooled_ids


def sampler(*, gold: str | None = None, **rates: Any) -> TraceSampler:
    settings = msgspec.convert({"sampling": rates}, LiveSettings)
    return TraceSampler(
        settings,
        span_question=lambda span: span.attributes.get("question"),
        is_gold=None if gold is None else lambda text: text == gold,
    )


def span(trace_id: str, number: int = 1, *, parent: str | None = None, **options: Any) -> TraceSpan:
    return TraceSpan(trace_id, f"{number:016x}", parent, "s", 0, 1, {}, **options)


def names(by_rate: dict[float, list[TraceSpan]]) -> dict[float, list[str]]:
    return {rate: [one.span_id[-1] for one in spans] for rate, spans in by_rate.items()}


def test_the_hash_is_the_same_for_ever() -> None:
    """blake2b of the text in 8 bytes, its first 53 bits over 2^53; by another program."""
    # printf abc | b2sum -l 64 → d8bb14d833d59559; its first 53 bits over 2^53
    assert hash_share("abc") == (0xD8BB14D833D59559 >> 11) / 2**53


def test_a_share_is_below_1_and_even() -> None:
    shares = [hash_share(str(number)) for number in range(20_000)]
    assert min(shares) >= 0
    assert max(shares) < 1
    tenths = Counter(int(share * 10) for share in shares)
    # 2,000 in each tenth, standard deviation √(20,000·0.1·0.9) = 42: 5 of them are 212
    assert all(abs(tenths[tenth] - 2000) < 212 for tenth in range(10))


def test_the_largest_hash_is_taken_at_rate_1(monkeypatch: pytest.MonkeyPatch) -> None:
    """All bits set, over 2^64 it would be rounded to 1 and left out."""

    class Ones:
        def digest(self) -> bytes:
            return b"\xff" * 8

    monkeypatch.setattr("ragauge.live.trace_sampler.blake2b", lambda *_, **__: Ones())
    assert hash_share("any") < 1


def test_all_spans_of_a_trace_get_one_decision_in_any_request() -> None:
    chosen = sampler(rate=0.3, errors=0.3)
    ids = [f"{number:032x}" for number in range(500)]
    first = chosen.sample_spans("", [span(name, 1) for name in ids], now=0)
    second = sampler(rate=0.3, errors=0.3).sample_spans(
        "", [span(name, 2) for name in reversed(ids)], now=0
    )
    in_first = {one.trace_id for one in first.by_rate[0.3]}
    assert in_first == {one.trace_id for one in second.by_rate[0.3]}
    assert len(in_first) == 500 - first.left_out
    assert 100 < len(in_first) < 200  # 150 ± 5 standard deviations of 10


def test_a_higher_rate_keeps_what_a_lower_one_kept() -> None:
    spans = [span(f"{number:032x}") for number in range(2000)]
    kept = []
    for rate in (0.01, 0.1, 0.5):
        sampled = sampler(rate=rate).sample_spans("", spans, now=0)
        kept.append({one.trace_id for one in sampled.by_rate[rate]})
    assert kept[0] < kept[1] < kept[2]


def out_at(rate: float) -> str:
    """A trace id that a rate leaves out."""
    names = (f"{number:032x}" for number in range(1000))
    return next(name for name in names if hash_share(name) >= rate)


def test_a_trace_with_an_error_comes_whole_by_the_rate_of_errors() -> None:
    """The error is in the last span; the earlier ones have waited."""
    chosen, trace = sampler(rate=0.01, errors=1.0), out_at(0.01)
    for number in (1, 2):
        sampled = chosen.sample_spans("", [span(trace, number, parent="9")], now=0)
        assert (sampled.by_rate, sampled.left_out) == ({}, 1)
    failed = chosen.sample_spans("", [span(trace, 3, error="it broke")], now=1000)
    assert names(failed.by_rate) == {1.0: ["1", "2", "3"]}
    chosen.forget(failed.released)
    later = chosen.sample_spans("", [span(trace, 4, parent="9")], now=2000)
    assert names(later.by_rate) == {1.0: ["4"]}


def test_what_waited_waits_on_until_it_is_on_disk() -> None:
    chosen, trace = sampler(rate=0.01, errors=1.0), out_at(0.01)
    chosen.sample_spans("", [span(trace, 1, parent="9")], now=0)
    for _ in range(2):  # the first time the disk was full
        failed = chosen.sample_spans("", [span(trace, 2, error="it broke")], now=0)
        assert names(failed.by_rate) == {1.0: ["1", "2"]}


def test_another_tenant_has_other_traces() -> None:
    chosen, trace = sampler(rate=0.01, errors=1.0), out_at(0.01)
    chosen.sample_spans("a", [span(trace, 1, parent="9")], now=0)
    failed = chosen.sample_spans("b", [span(trace, 2, error="it broke")], now=0)
    assert names(failed.by_rate) == {1.0: ["2"]}


def test_waiting_spans_end_by_time_and_by_size() -> None:
    chosen, trace = sampler(rate=0.01, errors=1.0), out_at(0.01)
    chosen.sample_spans("", [span(trace, 1, parent="9")], now=0)
    # The longest trace takes 5 minutes.
    late = chosen.sample_spans("", [span(trace, 2, error="e")], now=300_001)
    assert names(late.by_rate) == {1.0: ["2"]}


def test_what_waits_has_a_limit_and_it_is_known_since_when_nothing_is_lost(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("ragauge.live.trace_sampler._HELD_BYTES", 2**20)
    chosen = sampler(rate=0.0, errors=1.0)
    for number in range(40):  # of 100,000 bytes each, a second apart: 10 of them may wait
        held = span(f"{number:032x}", parent="9")
        held.attributes["text"] = "x" * 100_000
        sampled = chosen.sample_spans("", [held], now=1000 * number)
        assert sampled.known_from == (1000 * (number - 10) + 1 if number >= 10 else 0)
    assert chosen._held_bytes <= 2**20
    assert [int(key[1], 16) for key in chosen._held] == list(range(30, 40))
    for number, expected in ((29, ["2"]), (39, ["1", "2"])):
        failed = chosen.sample_spans("", [span(f"{number:032x}", 2, error="e")], now=40_000)
        assert names(failed.by_rate) == {1.0: expected}
        assert failed.known_from == 29_001


def test_the_rest_of_a_trace_that_the_process_before_took_comes_in(tmp_path: Path) -> None:
    """An error came, the server died, and the root without an error comes to the next one."""
    trace = next(number for number in range(1, 99) if hash_share(f"{number:032x}") >= 0.01)
    sampling = {"rate": 0.01}
    failed = otlp_request(first=trace, error="it broke")
    del failed.resource_spans[0].scope_spans[0].spans[0]
    failed.resource_spans[0].scope_spans[0].spans[0].status.code = 2
    rest = otlp_request(first=trace)
    del rest.resource_spans[0].scope_spans[0].spans[1]
    with live_client(tmp_path, sampling=sampling) as client:
        client.post("/v1/traces", content=failed.SerializeToString(), headers=PROTOBUF)
        assert len(spooled_ids(client.app.state.live)) == 1  # type: ignore[attr-defined]
    with live_client(tmp_path, sampling=sampling) as client:
        client.post("/v1/traces", content=rest.SerializeToString(), headers=PROTOBUF)
        assert len(spooled_ids(client.app.state.live)) == 2  # type: ignore[attr-defined]


def test_gold_questions_have_a_rate_of_their_own() -> None:
    trace = out_at(0.01)
    asked = span(trace)
    asked.attributes["question"] = "what is it?"
    for gold, expected in (("what is it?", {1.0: ["1"]}), ("another", {})):
        chosen = sampler(rate=0.01, errors=0.0, gold=gold)
        assert names(chosen.sample_spans("", [asked], now=0).by_rate) == expected


def test_rows_are_sampled_by_the_same_rules() -> None:
    chosen, trace = sampler(rate=0.01, errors=0.5, gold="g"), out_at(0.5)
    assert chosen.sample_row(trace, {"question": "x"}) is None
    assert chosen.sample_row(trace, {"question": "x", "error": "e"}) is None  # its share is over .5
    assert chosen.sample_row(trace, {"question": "g"}) == 1.0
    inside = next(name for name in map(str, range(1000)) if hash_share(name) < 0.01)
    assert chosen.sample_row(inside, {"question": "x"}) == 0.01
    assert chosen.sample_row(inside, {"question": "x", "error": "e"}) == 0.5


def test_a_session_is_in_or_out_as_a_whole() -> None:
    chosen = sampler(rate=0.5, errors=0.0, by="session")
    for session in map(str, range(20)):
        decisions = set()
        for number in range(10):
            one = span(f"{number:032x}")
            one.attributes["session.id"] = session
            decisions.add(bool(chosen.sample_spans("", [one], now=0).by_rate))
        assert decisions == {hash_share(session) < 0.5}


def test_a_later_span_without_its_session_follows_its_trace() -> None:
    chosen = sampler(rate=0.5, errors=0.0, by="session")
    for number in range(50):
        first = span(f"{number:032x}")
        first.attributes["session.id"] = f"s{number}"
        second = span(f"{number:032x}", 2, parent="1")
        decisions = [bool(chosen.sample_spans("", [one], now=0).by_rate) for one in (first, second)]
        assert decisions[0] == decisions[1]


@cases(
    ("traces", "rate"), [(0, 1.0), (200, 1.0), (400, 0.5), (20_000, 0.01)]
)  # 200 of so many an hour
def test_the_rate_that_fills_a_window_in_an_hour(traces: int, rate: float) -> None:
    assert filling_rate(traces, 200) == rate


def test_the_server_advises_a_rate_by_its_traffic(tmp_path: Path) -> None:
    minute = 60_000
    clock = [1_800_000_000_000 // minute * minute]
    with live_client(
        tmp_path, clock=lambda: clock[0], sampling={"rate": 0.01, "errors": 0}
    ) as client:
        assert client.get("/readyz").json()["sampling"]["fills_a_window_an_hour"] is None
        for number in range(4):  # 50 traces a minute for 4 minutes: 3,000 an hour
            body = otlp_request(traces=50, first=1 + 50 * number).SerializeToString()
            assert client.post("/v1/traces", content=body, headers=PROTOBUF).status_code == 200
            clock[0] += minute
        clock[0] -= minute
        client.app.state.live.write_counts()  # type: ignore[attr-defined]
        advice = client.get("/readyz").json()["sampling"]
    assert advice["traces_an_hour"] == pytest.approx(3000)
    assert advice["fills_a_window_an_hour"] == pytest.approx(200 / 3000)


def test_by_default_one_in_a_hundred_is_stored(tmp_path: Path) -> None:
    with live_client(tmp_path, sampling={}) as client:
        body = otlp_request(traces=1000).SerializeToString()
        assert client.post("/v1/traces", content=body, headers=PROTOBUF).status_code == 200
        state = client.app.state.live  # type: ignore[attr-defined]
        traces = {trace for trace, _ in spooled_ids(state)}
        expected = {
            name for name in (f"{n:032x}" for n in range(1, 1001)) if hash_share(name) < 0.01
        }
        assert traces == expected
        assert len(spooled_ids(state)) == 2 * len(traces)
        totals = state.counts.totals("")
        assert totals["accepted"].spans + totals["sampled-out"].spans == 2000
        assert totals["accepted"].traces + totals["sampled-out"].traces == 1000
