"""Causes: what differs between two configurations, sorted, short, and without secrets."""

from __future__ import annotations

import datetime
import json
import random
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from ragauge.compare.config_causes import ABOUT, BOOKKEEPING, LONGEST, cause_note, causes
from ragauge.model.comparison import Cause
from tests.support.cases import cases


def seen(a: dict[str, Any], b: dict[str, Any]) -> list[tuple[str, str, str | None, str | None]]:
    return [(each.about, each.key, each.a, each.b) for each in causes(a, b)]


def test_a_whole_configuration() -> None:
    a = {
        "run_id": "r1", "created_at": "2026-01-01", "eval_k": 5, "chunker_version": "md-v1",
        "embedding": {"model": "a", "dimensions": 384}, "llm": {"model_id": "m", "temperature": 0},
        "gold_hash": "x", "timings": {"total": 3.5}, "corpus": {"rev": 1}, "note": "one",
    }  # fmt: skip
    b = {
        "run_id": "r2", "created_at": "2026-01-02", "eval_k": 10, "chunker_version": "md-v2",
        "embedding": {"model": "b", "dimensions": 384},
        "llm": {"model_id": "m", "temperature": 0.5},
        "gold_hash": "y", "timings": {"total": 9}, "corpus": {"rev": 2}, "prompt": "p",
    }  # fmt: skip
    assert seen(a, b) == [
        ("chunker", "chunker_version", '"md-v1"', '"md-v2"'),
        ("embedder", "embedding.model", '"a"', '"b"'),
        ("prompt", "prompt", None, '"p"'),
        ("model", "llm.temperature", "0", "0.5"),
        ("k", "eval_k", "5", "10"),
        ("gold", "gold_hash", '"x"', '"y"'),
        ("corpus", "corpus.rev", "1", "2"),
        ("other", "note", '"one"', None),
    ]
    assert cause_note(causes(a, b)) == (
        "chunker_version md-v1 → md-v2; embedding.model a → b; prompt unset → p; and 5 more"
    )


@cases(
    ("key", "about"),
    [
        ("chunk_size", "chunker"), ("chunker.version", "chunker"), ("splitter", "chunker"),
        ("policy_hash", "chunker"), ("overlap", "chunker"), ("target_tokens", "chunker"),
        ("chunkOverlap", "chunker"), ("corpus.chunker_version", "chunker"),
        ("chunker.seed", "chunker"), ("parent_chunks", "chunker"), ("text_splitter", "chunker"),
        ("embedding.model", "embedder"), ("embedder", "embedder"), ("vector", "embedder"),
        ("dimensions", "embedder"), ("index.embedding_model", "embedder"),
        ("EMBED_MODEL", "embedder"),
        ("prompt_version", "prompt"), ("answer_template", "prompt"), ("llm.prompt", "prompt"),
        ("template", "prompt"), ("llm", "model"), ("model_id", "model"), ("temperature", "model"),
        ("seed", "model"), ("judge.model", "model"), ("llm.max_tokens", "model"),
        ("k", "k"), ("eval_k", "k"), ("top_k", "k"), ("topK", "k"), ("rrf_k", "k"),
        ("retriever.k", "k"), ("score_gate", "k"), ("rerank.model", "k"), ("reranker", "k"),
        ("index.top_k", "k"), ("gold_hash", "gold"), ("gold.documents", "gold"),
        ("corpus_rev", "corpus"), ("index.type", "corpus"), ("parser", "corpus"),
        ("parser_version", "corpus"), ("documents", "corpus"), ("rev", "corpus"),
        ("build", "corpus"), ("k1", "other"), ("name", "other"), ("revenue", "other"),
        ("kind", "other"), ("seedling", "other"), ("λ", "other"), ("", "other"),
    ],
)  # fmt: skip
def test_what_it_is_about(key: str, about: str) -> None:
    value: Any = 1
    for name in reversed(key.split(".")):
        value = {name: value}
    assert seen({}, value) == [(about, key, None, "1")]


def test_what_explains_nothing_is_left_out() -> None:
    for name in BOOKKEEPING:
        assert causes({name: 1}, {name: 2}) == ()
        assert causes({"x": {name: {"y": 1}}}, {}) == ()
    assert causes({"createdAt": 1, "runId": 2}, {}) == ()


@cases(
    ("a", "b", "expected"),
    [
        ({"x": None}, {}, [("other", "x", "null", None)]),  # null is not absent
        ({"x": {}}, {}, [("other", "x", "{}", None)]),
        ({}, {}, []),
        ({"x": 1}, {"x": 1.0}, []),
        ({"x": 1}, {"x": True}, [("other", "x", "1", "true")]),
        ({"x": "1"}, {"x": 1}, [("other", "x", '"1"', "1")]),
        ({"x": [1, {"b": 1, "a": 2}]}, {"x": [1.0, {"a": 2, "b": 1}]}, []),
        ({"x": [1, 2]}, {"x": [2, 1]}, [("other", "x", "[1, 2]", "[2, 1]")]),
        ({"x": "a\nb"}, {"x": "ä"}, [("other", "x", '"a\\nb"', '"ä"')]),
        ({"x": 1}, {"x": {"y": 1}}, [("other", "x", "1", None), ("other", "x.y", None, "1")]),
        (
            {"x.y": 1, "x": {"y": 2}},
            {"x.y": 2, "x": {"y": 2}},
            [("other", "x.y", "1", "2")],
        ),
        ({"x": datetime.date(2026, 1, 2)}, {}, [("other", "x", '"2026-01-02"', None)]),
    ],
)
def test_values(a: dict[str, Any], b: dict[str, Any], expected: list[Any]) -> None:
    assert seen(a, b) == expected


def test_long_values_are_cut() -> None:
    ((_, _, one, other),) = seen({"x": "a" * 100}, {"x": list(range(100))})
    assert one == '"' + "a" * 58 + "…"
    assert other is not None
    assert other.startswith("[0, 1, 2, ")
    assert len(one) == len(other) == LONGEST
    assert seen({"x": "a" * 58}, {})[0][2] == '"' + "a" * 58 + '"'  # just 60


def test_long_values_are_cut_where_they_differ() -> None:
    """Two prompts with the same beginning would look the same."""
    same = "You are a helpful assistant. " * 5
    ((_, _, one, other),) = seen({"prompt": same + "Be brief."}, {"prompt": same + "Be kind."})
    assert (one, other) == ('…sistant. Be brief."', '…sistant. Be kind."')
    (longer,) = causes({"prompt": same}, {"prompt": same + "b" * 200})
    assert longer.a != longer.b
    assert longer.b is not None
    assert len(longer.b) == LONGEST
    assert cause_note([longer]) == f"prompt … assistant.  → {longer.b}"


def test_secrets_never_appear() -> None:
    a = {"api_key": "hunter2", "url": "https://me:hunter2@a/x", "k": 5}
    b = {"api_key": "hunter3", "url": "https://me:hunter3@b/x", "k": 5, "token": "hunter4"}
    found = causes(a, b)
    assert [(each.key, each.a, each.b) for each in found] == [
        ("token", None, '"[redacted]"'),
        ("url", '"https://me:[redacted]@a/x"', '"https://me:[redacted]@b/x"'),
    ]
    assert "hunter" not in repr(found) + str(cause_note(found))


@cases(
    ("pairs", "expected"),
    [
        ([], None),
        ([("5", "10")], "x 5 → 10"),
        ([('""', "null")], 'x "" → null'),
        ([('"a b"', None)], "x a b → unset"),
        ([("1", "2")] * 3, "x 1 → 2; x 1 → 2; x 1 → 2"),
        ([("1", "2")] * 4, "x 1 → 2; x 1 → 2; x 1 → 2; and 1 more"),
    ],
)
def test_notes(pairs: list[tuple[str | None, str | None]], expected: str | None) -> None:
    assert cause_note([Cause(about="other", key="x", a=a, b=b) for a, b in pairs]) == expected


snapshots = st.dictionaries(
    st.sampled_from(["k", "model", "chunk_size", "x", "prompt", "gold", "run_id"]),
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(max_size=80),
        lambda inner: (
            st.lists(inner, max_size=3)
            | st.dictionaries(st.sampled_from(["k", "y", "z"]), inner, max_size=3)
        ),
        max_leaves=6,
    ),
)


@given(snapshots, snapshots, st.randoms(use_true_random=False))
def test_all_configurations(a: dict[str, Any], b: dict[str, Any], rng: random.Random) -> None:
    """The same is no cause, sides mirror, the order of keys is nothing, all is short and sorted."""
    found = causes(a, b)
    assert causes(a, json.loads(json.dumps(a))) == ()
    assert [(each.key, each.b, each.a) for each in causes(b, a)] == [
        (each.key, each.a, each.b) for each in found
    ]
    shuffled = dict(rng.sample(list(a.items()), len(a)))
    assert causes(shuffled, b) == found
    assert [ABOUT.index(each.about) for each in found] == sorted(
        ABOUT.index(each.about) for each in found
    )
    for each in found:
        assert each.a != each.b
        assert all(len(text) <= LONGEST for text in (each.a, each.b) if text is not None)
    assert (cause_note(found) is None) == (not found)
