"""Two indexes under one build, and documents that are retrieved more or less than before."""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from ragauge.live.alert_rules import DEFAULTS, read_window
from ragauge.live.alerts import AlertEvaluator, read_alerts
from ragauge.live.database import LiveDatabase, open_database
from ragauge.live.index_drift import (
    DocumentDrift,
    RetrievedDocuments,
    _Hits,
    _psi,
    apps_with_traces,
    document_psi,
    facts_seen,
)
from ragauge.live.settings import Alerts, LiveSettings
from tests.support.live_windows import MINUTE, NOON, add_trace, add_window, rate


@pytest.fixture
def database(tmp_path: Path) -> Iterator[LiveDatabase]:
    store = open_database(f"sqlite:///{tmp_path}/store.db")
    yield store
    store.close()


def states(database: LiveDatabase) -> dict[str, str]:
    return {
        key.series: record.state
        for key, record in read_alerts(database).items()
        if key.rule == "index-drift"
    }


def evaluator(database: LiveDatabase, **options: object) -> AlertEvaluator:
    return AlertEvaluator(LiveSettings(alerts=Alerts(**options)), database)  # type: ignore[arg-type]


def test_a_second_index_under_one_build_fires_at_once_and_ends(database: LiveDatabase) -> None:
    watch = evaluator(database)
    add_trace(database, NOON, index_hash="i1")
    watch.step(NOON + 1_000)
    assert states(database) == {}
    add_trace(database, NOON + 4 * MINUTE, index_hash="i2")
    watch.step(NOON + 4 * MINUTE + 1_000)
    assert states(database) == {"build=1.0 index_hash": "firing"}
    (record,) = read_alerts(database).values()
    assert record.details == {"index_hash": {"i1": 1, "i2": 1}}
    # Five minutes later only the new one answers; five more, and it is over.
    add_trace(database, NOON + 6 * MINUTE, index_hash="i2")
    watch.step(NOON + 6 * MINUTE)
    assert states(database) == {"build=1.0 index_hash": "firing"}
    add_trace(database, NOON + 10 * MINUTE, index_hash="i2")
    watch.step(NOON + 10 * MINUTE + 5_000)
    assert states(database) == {"build=1.0 index_hash": "firing"}
    add_trace(database, NOON + 11 * MINUTE, index_hash="i2")
    watch.step(NOON + 11 * MINUTE + 5_000)
    assert states(database) == {"build=1.0 index_hash": "resolved"}


def test_more_than_five_minutes_apart_is_a_change_and_no_drift(database: LiveDatabase) -> None:
    watch = evaluator(database)
    for minutes, index_hash in ((0, "i1"), (5, "i2")):
        add_trace(database, NOON + minutes * MINUTE, index_hash=index_hash)
        watch.step(NOON + minutes * MINUTE)
    assert states(database) == {}


def test_another_build_may_have_another_index(database: LiveDatabase) -> None:
    add_trace(database, NOON, build="1.0", index_hash="i1")
    add_trace(database, NOON, build="1.1", index_hash="i2")
    add_trace(database, NOON, build="1.0", index_hash="i2", app="other")
    add_trace(database, NOON, build="1.0", index_hash="i2", tenant="other")
    evaluator(database).step(NOON + 1_000)
    assert states(database) == {}


@pytest.mark.parametrize("fact", ["embed_model", "metric", "analyzer", "chunker_version"])
def test_every_fact_of_an_index_is_watched(database: LiveDatabase, fact: str) -> None:
    for value in ("one", "two"):
        add_trace(database, NOON, facts={fact: value, "other": value})
    evaluator(database).step(NOON + 1_000)
    assert states(database) == {f"build=1.0 {fact}": "firing"}
    payload = database.read("SELECT count(*) FROM live_outbox")[0][0]
    assert payload == 0  # no webhook, and no message that waits for one


def test_a_trace_that_names_no_index_says_nothing(database: LiveDatabase) -> None:
    add_trace(database, NOON, index_hash="")
    add_trace(database, NOON, index_hash="i1")
    evaluator(database).step(NOON + 1_000)
    assert states(database) == {}
    assert [one.values for one in facts_seen(database, "", "shop", NOON)] == [{"i1": 1}]


def test_it_can_be_turned_off(database: LiveDatabase) -> None:
    for index_hash in ("i1", "i2"):
        add_trace(database, NOON, index_hash=index_hash)
    evaluator(database, off=("index-drift",)).step(NOON + 1_000)
    assert states(database) == {}


def test_silence_does_not_resolve_a_drift(database: LiveDatabase) -> None:
    for index_hash in ("i1", "i2"):
        add_trace(database, NOON, index_hash=index_hash)
    watch = evaluator(database)
    watch.step(NOON + 1_000)
    watch.step(NOON + 30 * MINUTE)
    assert set(states(database).values()) == {"firing"}
    watch.step(NOON + 61 * MINUTE)
    assert set(states(database).values()) == {"no-data"}


def test_apps_are_found_without_reading_their_traces(database: LiveDatabase) -> None:
    for tenant, app in (("", "b"), ("", "a"), ("t", "a"), ("", "a")):
        add_trace(database, NOON, tenant=tenant, app=app)
    assert apps_with_traces(database) == [("", "a"), ("", "b"), ("t", "a")]


# --- documents ---


def test_psi_by_hand() -> None:
    """Two bursts of 4 traces; the first has `a` 3 times and `b` once, the second the reverse.

    Half a trace is in each of 101 bins: 3.5, 1.5 and 99 × 0.5 of 54.5 on either side. Two bins
    differ by 2 / 54.5, with a ratio of 3.5 / 1.5.
    """
    hits = _Hits(
        cluster=np.array([0, 0, 0, 0, 1, 1, 1, 1]),
        document=np.array([0, 0, 0, 1, 1, 1, 1, 0]),
        weight=np.ones(8),
        bin_of=np.array([0, 1]),
    )
    psi = _psi(hits, np.array([True, False]))
    assert math.isclose(psi, 2 * (2 / 54.5) * math.log(3.5 / 1.5))


def test_documents_that_were_never_retrieved_before_have_a_bin_of_their_own() -> None:
    """4 traces of a new document, 4 of an old one: 4.5 against 0.5 in two of 101 bins."""
    hits = _Hits(
        cluster=np.array([0, 1]),
        document=np.array([0, 1]),
        weight=np.array([4.0, 4.0]),
        bin_of=np.array([7, 7]),  # the same bin, by the hash
    )
    psi = _psi(hits, np.array([True, False]))
    assert math.isclose(psi, 2 * (4 / 54.5) * math.log(4.5 / 0.5))


def retrieved(
    seed: int, n: int, *, index: str = "d", an_hour: int = 25
) -> list[RetrievedDocuments]:
    """Traces of 60 questions, of which each has its documents and some come often."""
    random = np.random.Generator(np.random.PCG64(seed))
    questions = np.minimum(random.geometric(0.05, n), 60)
    return [
        RetrievedDocuments(
            f"q{question} {number // an_hour}",
            tuple(f"{index}{(7 * question + place) % 200}" for place in range(5)),
        )
        for number, question in enumerate(questions.tolist())
    ]


@pytest.mark.slow
def test_equal_traffic_has_no_drift_beyond_its_noise() -> None:
    """The plain PSI of two such samples is 0.1 and more; what is left of it is near 0.

    Draws that are independent have no bursts, so shuffling bursts takes off a little too much.
    """
    rule = DEFAULTS["document-drift"]
    readings = [
        read_window(
            rule, document_psi(retrieved(seed, 200, an_hour=200), retrieved(seed + 100, 800))
        )
        for seed in range(10)
    ]
    assert {reading.outcome for reading in readings} == {"good"}
    values = [reading.measured.value or math.nan for reading in readings]
    assert -0.15 < sum(values) / 10 < 0.05


def test_other_documents_are_a_drift() -> None:
    measured = document_psi(retrieved(1, 200, index="new", an_hour=200), retrieved(2, 800))
    assert read_window(DEFAULTS["document-drift"], measured).outcome == "breach"
    assert measured.interval is not None
    low, high = measured.interval
    assert low is not None
    assert high is not None
    assert measured.value is not None
    assert low < measured.value < high


def test_one_question_that_comes_often_is_one_piece_of_evidence() -> None:
    """150 of 200 traces are one burst: its documents are shuffled as one, so noise is wide."""
    current = retrieved(1, 50) + [RetrievedDocuments("hot", ("x1", "x2"))] * 150
    measured = document_psi(current, retrieved(2, 800))
    lone = [RetrievedDocuments(f"n{place}", ("x1", "x2")) for place in range(150)]
    spread = document_psi(retrieved(1, 50) + lone, retrieved(2, 800))
    assert measured.interval is not None
    assert spread.interval is not None
    assert measured.interval[0] is not None
    assert spread.interval[0] is not None
    assert measured.interval[0] < spread.interval[0]


def test_too_few_traces_have_no_psi() -> None:
    few, many = retrieved(1, 99), retrieved(2, 800)
    assert document_psi(few, many).value is None
    assert document_psi(many, few).value is None
    assert document_psi([RetrievedDocuments("q", ())] * 500, many).n == 0


def test_documents_of_a_window_are_held_against_the_week_before(database: LiveDatabase) -> None:
    begins = NOON + 120 * MINUTE
    for place, trace in enumerate(retrieved(1, 300)):
        hits = [f"{document}#1" for document in trace.documents]
        add_trace(database, NOON + place * 10_000, hits=hits, question=trace.burst.split()[0])
    for place, trace in enumerate(retrieved(2, 150, index="new")):
        hits = [f"{document}#1" for document in trace.documents]
        add_trace(database, begins + place * 1_000, hits=hits, question=trace.burst.split()[0])
    measured = DocumentDrift(database).measure("", "shop", begins, begins + 5 * MINUTE)
    assert measured.n == 150
    assert read_window(DEFAULTS["document-drift"], measured).outcome == "breach"
    nothing = DocumentDrift(database).measure("", "nobody", begins, begins + 5 * MINUTE)
    assert nothing.n == 0


def test_unknown_ids_are_a_rule_like_any_other(database: LiveDatabase) -> None:
    watch = evaluator(database)
    for number in (1, 2):
        ends = NOON + number * 5 * MINUTE
        add_window(database, ends, {"live.unknown_ids": rate(0.2)})
        watch.step(ends + 1_000)
    assert {key.rule: record.state for key, record in read_alerts(database).items()} == {
        "unknown-ids": "firing"
    }
