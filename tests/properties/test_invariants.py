"""What holds of every run: ranges, what grows with k, what mirrors what, and who wins a slot."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragauge import registry
from ragauge.model.scores import Scores
from tests.properties.datasets import (
    Data,
    Row,
    Slot,
    data_sets,
    scored,
    traces,
    unordered,
)
from tests.support.effort import examples

PROFILES = ("all", "ship", "smoke")
CUT_OFFS = (1, 2, 3, 4, 5, 10)
CLOSE = 1e-12


@examples(40)
@given(data=data_sets(), profile=st.sampled_from(PROFILES))
def test_values_lie_in_their_range(data: Data, profile: str) -> None:
    """A value lies in its interval, and both in the range; null has a reason and no interval."""
    scores = scored(data, profile=profile, k=2)
    for name, result in scores.metrics.items():
        if result.value is None:
            assert result.reason
            assert result.interval is None
            assert result.n == result.records == 0 or result.reason == "zero-denominator"
            continue
        least, most = registry.metrics()[name.partition("@")[0]].range
        assert least <= result.value <= most, name
        assert result.reason is None
        if result.interval is not None:
            low, high = result.interval
            ordered = [
                bound for bound in (least, low, result.value, high, most) if bound is not None
            ]
            assert ordered == sorted(ordered), name


@examples(40)
@given(data=data_sets(), profile=st.sampled_from(PROFILES))
def test_counts_add_up(data: Data, profile: str) -> None:
    """Every trace is scored, a duplicate or unknown; every item has a label a record."""
    scores = scored(data, profile=profile, k=2)
    tally = scores.tally
    assert tally.traces == len(data.trace)
    assert tally.gold == len(data.gold) == len(scores.questions)
    if profile == "smoke":
        assert tally.traces == tally.scored + tally.unknown
    else:
        assert tally.traces == tally.scored + tally.duplicates + tally.unknown
    missing = [each for each in scores.questions if each.labels == {"MISSING": 1}]
    assert len(missing) == tally.missing
    assert sum(sum(each.labels.values()) for each in scores.questions) == (
        tally.scored + tally.missing
    )
    assert tally.answered == scores.metrics["answer.precision"].records
    records = tally.scored + (tally.missing if profile != "smoke" else 0)
    for name, result in scores.metrics.items():
        if name.startswith("stability."):
            assert result.n + sum(result.excluded.values()) == tally.gold, name
        elif name not in ("run.duplicate", "run.unknown"):
            assert result.records + sum(result.excluded.values()) == records, name


@examples(40)
@given(data=data_sets())
def test_recall_grows_with_k(data: Data) -> None:
    """What is in the top k is in the top k + 1."""
    scores = scored(data, k=CUT_OFFS, metrics=["retrieval.recall_all"])
    values = [scores.metrics[f"retrieval.recall_all@{k}"].value for k in CUT_OFFS]
    assert len({result.n for result in scores.metrics.values()}) == 1
    if values[0] is None:
        assert set(values) == {None}
    else:
        assert values == sorted(value for value in values if value is not None)


@examples(40)
@given(data=data_sets())
def test_refusals_mirror_each_other(data: Data) -> None:
    """Call each answerable item unanswerable and back: under is one less over, on the same n."""
    turned = [{**row, "answerable": _turned(row.get("answerable"))} for row in data.gold]
    first, second = scored(data), scored(Data(turned, data.trace))
    for one, other in (("refusal.over", "refusal.under"), ("refusal.under", "refusal.over")):
        before, after = first.metrics[one], second.metrics[other]
        assert (before.n, before.records) == (after.n, after.records)
        if before.value is not None and after.value is not None:
            assert before.value + after.value == pytest.approx(1, abs=CLOSE)
        else:
            assert before.value is after.value


def _turned(answerable: bool | None) -> bool | None:
    return None if answerable is None else not answerable


def _comparable(scores: Scores) -> dict[str, object]:
    """All but what a replaced trace adds to: the traces read, and the duplicates among them."""
    shared = unordered(scores)
    del shared["written"]
    shared["metrics"] = {
        name: result
        for name, result in scores.metrics.items()
        if name not in ("run.duplicate", "run.unknown")
    }
    shared["tally"] = msgspec.structs.replace(scores.tally, traces=0, duplicates=0)
    return shared


@st.composite
def _with_another(draw: st.DrawFn) -> tuple[Data, Row, Row]:
    """A data set, and two more traces of one slot of a question that it has."""
    data = draw(data_sets(unique=True))
    slot = Slot(draw(st.integers(0, len(data.gold) - 1)), None, "another", None)
    return data, draw(traces(slot)), draw(traces(slot))


@examples(40)
@given(drawn=_with_another())
def test_the_last_trace_of_a_slot_wins(drawn: tuple[Data, Row, Row]) -> None:
    """A trace that a later one replaces changes nothing but the count of duplicates.

    And what citations resolve to: its hits are hits of the run too.
    """
    data, early, late = drawn
    alone = scored(Data(data.gold, [*data.trace, late]))
    replaced = scored(Data(data.gold, [early, *data.trace, late]))
    for scores in (alone, replaced):
        for resolved in ("citation.resolved", "citation.coverage"):
            scores.metrics.pop(resolved)
    assert _comparable(replaced) == _comparable(alone)
    assert replaced.tally.duplicates == alone.tally.duplicates + 1
    assert replaced.tally.traces == alone.tally.traces + 1
    assert replaced.metrics["run.duplicate"].value == (
        replaced.tally.duplicates / replaced.tally.traces
    )


@examples(25)
@given(data=data_sets(unique=True), times=st.integers(2, 3))
def test_the_same_traces_again_change_nothing(data: Data, times: int) -> None:
    """A file of traces written after itself scores as before, where slots are kept apart."""
    once, again = scored(data), scored(Data(data.gold, data.trace * times))
    assert _comparable(again) == _comparable(
        # The unknown traces are unknown again.
        msgspec.structs.replace(
            once, tally=msgspec.structs.replace(once.tally, unknown=once.tally.unknown * times)
        )
    )


@examples(25)
@given(data=data_sets(), times=st.integers(2, 3))
def test_every_row_twice_is_the_same_mean(data: Data, times: int) -> None:
    """Under `smoke`, where every row counts, each row again leaves every rate as it is."""
    once = scored(data, profile="smoke")
    again = scored(Data(data.gold, data.trace * times), profile="smoke")
    for name, result in once.metrics.items():
        if name != "run.duplicate":
            assert again.metrics[name].value == result.value, name
            assert again.metrics[name].n == (result.n * (times if name == "run.unknown" else 1)), (
                name
            )


@examples(25)
@given(data=data_sets())
def test_leaving_missing_traces_out_touches_retrieval_and_slots_alone(data: Data) -> None:
    """`--missing exclude` leaves missing and errored traces out of retrieval metrics, by name.

    A slot that has an error is left out of the comparison of slots, too. All other metrics leave
    such traces out anyway.
    """
    counted, excluded = scored(data), scored(data, missing="exclude")
    for name, result in counted.metrics.items():
        other = excluded.metrics[name]
        if name.startswith("stability."):
            assert other.n <= result.n
            continue
        if not name.startswith("retrieval."):
            assert other == result, name
            continue
        left_out = [other.excluded.get(reason, 0) for reason in ("missing", "errored")]
        assert left_out == [counted.tally.missing, counted.tally.errored]
        assert other.records <= result.records
        if other.records == result.records:
            assert other.value == result.value
