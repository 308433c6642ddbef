"""The registry: components are found in their folders, and names resolve to metrics."""

from __future__ import annotations

from importlib import import_module
from importlib.resources import files

import msgspec
import pytest

from ragauge import registry, score
from ragauge.errors import RagaugeError
from ragauge.model.gold import Anchor, GoldItem
from ragauge.model.trace import Hit, Trace
from ragauge.spans import Span
from tests.support.cases import cases

METRICS = registry.metrics()
AT_K = [metric.id for metric in METRICS.values() if metric.at_k]
PLAIN = [metric.id for metric in METRICS.values() if not metric.at_k]


def selected(*names: str, ks: tuple[int, ...] = (1, 5)) -> list[str]:
    return [each.id for each in registry.select(names, ks)]


def modules(folder: str) -> set[str]:
    names = (entry.name for entry in files(f"ragauge.{folder}").iterdir())
    return {name.removesuffix(".py") for name in names if name.endswith(".py")} - {"__init__"}


def test_every_file_of_a_folder_is_a_component() -> None:
    """A new file needs no second list anywhere."""
    assert set(registry.dialects()) == modules("formats.dialects")
    assert set(registry.reports()) == modules("report.scores") - {"github_summary"} | {"summary"}
    families = {
        name.partition("_")[0]
        for name in modules("metrics")
        if hasattr(import_module(f"ragauge.metrics.{name}"), "METRICS")
    }
    assert {metric.id.partition(".")[0] for metric in METRICS.values()} == families
    tomls = {entry.name for entry in files("ragauge.profiles").iterdir()}
    assert {f"{name}.toml" for name in registry.profiles()} == {
        name for name in tomls if name.endswith(".toml")
    }


def test_an_installed_dialect_owns_only_names_that_are_read(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The fast path would pass over any other name: no hits, without a word."""
    own = {"hits": ("documents",)}
    dialect = msgspec.structs.replace(registry.dialects()["native"], name="mine", own_trace=own)
    monkeypatch.setattr(registry, "_by_name", lambda *_: {"mine": dialect})
    with pytest.raises(RagaugeError, match="the dialect `mine` calls `documents` its own name"):
        registry.dialects.__wrapped__()


def test_an_installed_metric_gets_the_bytes_that_it_says_it_reads(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """What a metric reads hangs on what it says, not on its id."""
    mine = msgspec.structs.replace(METRICS["retrieval.span_recall"], id="mine.recall")
    monkeypatch.setattr(registry, "metrics", lambda: {**METRICS, "mine.recall": mine})
    items = [GoldItem(qid="a", anchors=(Anchor(doc="d", spans=(Span(0, 10),)),))]
    traces = [Trace(qid="a", hits=(Hit(id="x", doc="d", spans=(Span(0, 10),)),))]
    scores = score(items, traces, metrics=["mine.recall"], profile="all", k=(5,))
    assert scores.metrics["mine.recall@5"].value == 1.0


def test_metrics_are_in_the_order_of_their_ids() -> None:
    """So lists and documents do not depend on file order."""
    assert list(METRICS) == sorted(METRICS)
    assert AT_K
    assert PLAIN


def test_a_star_is_every_metric_at_every_cut_off() -> None:
    """Metrics without a cut-off come once; those of live traffic are asked for by name."""
    expected = [
        name
        for metric in METRICS.values()
        if not metric.id.startswith("live.")
        for name in ([f"{metric.id}@1", f"{metric.id}@5"] if metric.at_k else [metric.id])
    ]
    assert selected("*") == expected


def test_a_family_is_all_metrics_of_that_name() -> None:
    """`refusal.*` is what begins with `refusal.`."""
    assert selected("refusal.*") == [name for name in METRICS if name.startswith("refusal.")]
    assert selected("retrieval.*", ks=(3,)) == [
        f"{name}@3" if name in AT_K else name for name in METRICS if name.startswith("retrieval.")
    ]


def test_a_cut_off_may_be_written() -> None:
    """It goes over those of the run, also for a family that has cut-offs."""
    assert selected("retrieval.recall_all@7") == ["retrieval.recall_all@7"]
    assert selected("retrieval.recall_all") == ["retrieval.recall_all@1", "retrieval.recall_all@5"]
    assert selected("retrieval.*@7", ks=(1, 2)) == [f"{name}@7" for name in AT_K]


def test_what_is_named_twice_is_selected_once() -> None:
    """At its first place, so the order of the names is the order of the report."""
    assert selected("refusal.over", "refusal.*", "refusal.over") == [
        "refusal.over",
        *(name for name in METRICS if name.startswith("refusal.") and name != "refusal.over"),
    ]
    assert selected("retrieval.recall_all@5", "retrieval.recall_all") == [
        "retrieval.recall_all@5",
        "retrieval.recall_all@1",
    ]
    assert selected() == []


@cases(
    "name",
    [
        "",
        "recall",
        "answer",
        "answer.",
        "answer.nothing",
        "nothing.*",
        "Answer.precision",
        "answer.precision ",
        "retrieval.recall_all@",
        "retrieval.recall_all@0",
        "retrieval.recall_all@-1",
        "retrieval.recall_all@five",
        "retrieval.recall_all@1.5",
        "retrieval.recall_all@5@5",
        "retrieval.recall_all@\u00b2",  # a superscript two: a digit to some functions only
        "answer.precision@5",
        "*@5",
    ],
)
def test_a_name_that_is_no_metric_is_refused(name: str) -> None:
    """Also a cut-off on a metric that has none."""
    with pytest.raises(RagaugeError) as caught:
        selected(name)
    assert (caught.value.code, caught.value.exit_code) == ("unknown-metric", 2)
    assert caught.value.problems[0].hint


def test_an_unknown_name_is_told_with_the_nearest_or_all() -> None:
    """One suggestion if there is a near one, else the whole list."""
    near = registry.unknown_name("profile", "shpi", registry.profiles())
    assert near.problems[0].hint == "did you mean `ship`?"
    far = registry.unknown_name("profile", "zzz", registry.profiles())
    assert far.problems[0].hint == f"known: {', '.join(sorted(registry.profiles()))}"
    assert near.code == "unknown-name"
    assert registry.unknown_name("metric", "zzz", METRICS).code == "unknown-metric"


@pytest.mark.parametrize("kind", ["dialect", "profile", "report"])
def test_components_are_found_by_name_or_refused(kind: str) -> None:
    """With exit code 2 and the kind in the message."""
    find = getattr(registry, kind)
    for name, component in getattr(registry, f"{kind}s")().items():
        assert find(name) is component
    with pytest.raises(RagaugeError) as caught:
        find("nothing-like-it")
    assert (caught.value.code, caught.value.exit_code) == ("unknown-name", 2)


def test_profiles_name_only_what_exists() -> None:
    """Their metrics, aliases, gates, titles, defaults, reports and dialects."""
    for profile in registry.profiles().values():
        assert profile.dialect in registry.dialects()
        assert registry.select(profile.metrics, profile.k)
        assert profile.correct in METRICS
        assert set(profile.aliases.values()) <= set(METRICS)
        assert set(profile.empty) <= set(METRICS)
        named = {
            gate.get("metric", name).partition("@")[0] if isinstance(gate, dict) else name
            for name, gate in profile.gates.items()
        }
        assert named <= set(profile.aliases) | set(METRICS)
        assert set(profile.instead) <= set(METRICS)
        assert registry.select(profile.instead.values(), profile.k) or not profile.instead
        assert set(profile.titles) <= set(profile.gates)
        assert set(profile.reports) | set(profile.reports.values()) <= set(registry.reports())
    for dialect in registry.dialects().values():
        assert dialect.profile in registry.profiles()


@pytest.mark.parametrize("ks", [(3,), (1, 3, 5, 10), (10,)])
def test_the_profile_all_has_the_usual_reciprocal_rank_at_any_k(ks: tuple[int, ...]) -> None:
    selected = [chosen.id for chosen in registry.select(registry.profile("all").metrics, ks)]
    assert selected.count("retrieval.mrr@10") == 1
    assert [name for name in selected if name.startswith("retrieval.recall@")] == [
        f"retrieval.recall@{k}" for k in ks
    ]
