"""Gates on ΔS in bands: thresholds by hand, and how such gates are written."""

from __future__ import annotations

import pytest

from ragauge import registry
from ragauge.errors import RagaugeError
from ragauge.gates.bands import limit_text, zone_limit
from ragauge.gates.parse import parse_items, parse_table, profile_gates
from ragauge.model.semantic import Bands, Zone
from tests.support.cases import cases

CANARY = registry.profile("canary")
K = (5,)


@cases(
    ("zone", "metric", "bands", "limit"),
    [
        ("stable", "semantic.delta_s_cited", Bands(), 0.40),
        ("stable", "semantic.delta_s_cited_p90", Bands(), 0.55),  # .40 + ¾ · .20
        ("stable", "semantic.delta_s_hits_p90@5", Bands(), 0.55),
        ("transitional", "semantic.delta_s_cited", Bands(), 0.60),
        ("stable", "semantic.delta_s_cited", Bands(stable=0.64, target=0.65, risk=0.82), 0.64),
        # .64 + ¾ · .18 = .775
        ("stable", "semantic.delta_s_hits_p90", Bands(stable=0.64, target=0.65, risk=0.82), 0.775),
    ],
)
def test_a_zone_ends_where_the_bands_say(
    zone: Zone, metric: str, bands: Bands, limit: float
) -> None:
    assert zone_limit(zone, metric, bands) == limit


@pytest.mark.parametrize(("limit", "text"), [(0.4, "0.40"), (0.775, "0.775"), (1.0, "1.00")])
def test_a_limit_shows_all_of_its_decimals(limit: float, text: str) -> None:
    assert limit_text(limit) == text


def test_the_gates_of_canary_are_the_numbers_of_the_source_without_calibration() -> None:
    gates = {gate.name: gate for gate in profile_gates(CANARY, K)}
    median, p90 = gates["delta_s_median"], gates["delta_s_p90"]
    assert (median.zone, median.threshold, median.given) == ("stable", 0.4, "0.40")
    assert (p90.zone, p90.threshold, p90.given) == ("stable", 0.55, "0.55")


def test_a_number_takes_the_place_of_a_zone() -> None:
    (gate,) = parse_items("delta_s_median=0.45", CANARY, K)
    assert (gate.zone, gate.threshold) == (None, 0.45)
    (gate,) = parse_items("delta_s_median=transitional", CANARY, K)
    assert (gate.zone, gate.threshold) == ("transitional", 0.60)


@pytest.mark.parametrize(
    ("table", "words"),
    [
        ({"coverage": {"zone": "stable"}}, "coverage = stable"),
        ({"delta_s_median": {"zone": "risk"}}, "risk"),
        ({"delta_s_median": {"zone": "stable", "threshold": 0.4}}, "one of threshold, zone"),
    ],
)
def test_a_zone_is_of_delta_s_and_stands_alone(table: dict[str, object], words: str) -> None:
    with pytest.raises(RagaugeError) as refused:
        parse_table(table, CANARY, K, origin="g.toml")
    assert words in str(refused.value)
