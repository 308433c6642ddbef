"""Exact match, F1 and ROUGE-L are SQuAD's and rouge-score's, on random texts and on known numbers.

`rouge-score` brings four packages with it, so it is not among those of the tests: where it is
installed it is asked, and everywhere the numbers that it gave are held against ours.
"""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest

from ragauge import score
from ragauge.scoring.reference_answers import AnswerText, ReferenceAnswer
from tests.conformance.runs import write
from tests.oracles import reference_oracle
from tests.support.cases import cases

CLOSE = 1e-12
WORDS = (
    "a", "an", "the", "The", "cat", "Cat.", "sat", "on", "mat,", "\"mat\"", "u.s.", "2,000",
    "3.5%", "naïve", "Straße", "東京", "don't", "e-mail", "A", "the-end", "_x_", "—", "…", "the’s",
    "\u00a0", "ﬁve", "İ", "and", "is", "not", "14", "days",
)  # fmt: skip
METRICS = ("answer.exact_match", "answer.token_f1", "answer.rouge_l")

# answer, reference, F of rougeL as rouge-score 0.1.2 gives it with RougeScorer(["rougeL"])
ROUGE = [
    (
        "The quick brown dog jumps on the log.",
        "The quick brown fox jumps over the lazy dog",
        0.5882352941176471,
    ),
    (
        "It takes 14 days, at most.",
        "Refunds arrive within 14 days of the request.",
        0.28571428571428575,
    ),
    ("naïve Bayes – 3.5% better", "The naive Bayes model is 3.5 % better.", 0.5714285714285715),
    ("not in the docs", "The answer is not in the docs", 0.7272727272727273),
    ("", "Something", 0.0),
    ("東京", "Tokyo 東京", 0.0),
    ("x_y z", "x y z", 1.0),
    ("a b c d e f g h", "h g f e d c b a", 0.125),
]


def likeness(answer: str, reference: str) -> tuple[float, float, float]:
    return ReferenceAnswer(reference).likeness(AnswerText(answer))


def texts(rng: random.Random) -> tuple[str, str]:
    """An answer, and a reference that mostly shares some of its words."""
    answer = rng.choices(WORDS, k=rng.randrange(12))
    reference = rng.choices(WORDS, k=rng.randrange(12))
    if rng.random() < 0.5:
        reference = [word for word in answer if rng.random() < 0.8] + reference[:2]
    if rng.random() < 0.1:
        reference = [word.upper() for word in answer]
    blank = rng.choice([" ", " ", "  ", "\n", "\t"])
    return blank.join(answer), " ".join(reference)


def test_every_measure_equals_the_oracle() -> None:
    rng = random.Random(7)
    matches = 0
    for _ in range(4000):
        answer, reference = texts(rng)
        exact, f1, rouge = likeness(answer, reference)
        assert exact == reference_oracle.exact_match(answer, reference), (answer, reference)
        wanted = reference_oracle.token_f1(answer, reference)
        assert f1 == pytest.approx(wanted, abs=CLOSE), (answer, reference)
        wanted = reference_oracle.rouge_l(answer, reference)
        assert rouge == pytest.approx(wanted, abs=CLOSE), (answer, reference)
        matches += exact == 1.0
    assert matches > 100


@cases(("answer", "reference", "value"), ROUGE)
def test_rouge_l_has_the_numbers_of_rouge_score(answer: str, reference: str, value: float) -> None:
    assert likeness(answer, reference)[2] == pytest.approx(value, abs=CLOSE)
    assert reference_oracle.rouge_l(answer, reference) == pytest.approx(value, abs=CLOSE)


def test_rouge_l_is_that_of_the_package() -> None:
    scorer: Any = pytest.importorskip("rouge_score.rouge_scorer").RougeScorer(["rougeL"])
    rng = random.Random(11)
    for _ in range(2000):
        answer, reference = texts(rng)
        theirs = scorer.score(reference, answer)["rougeL"].fmeasure
        assert likeness(answer, reference)[2] == pytest.approx(theirs, abs=CLOSE)
    for answer, reference, value in ROUGE:
        assert scorer.score(reference, answer)["rougeL"].fmeasure == value


@pytest.mark.parametrize("seed", range(3))
def test_scores_are_means_of_the_best_reference(seed: int, tmp_path: Path) -> None:
    """Through files: the best of several references, refusals and items without one left out."""
    rng = random.Random(seed)
    gold: list[dict[str, Any]] = []
    traces: list[dict[str, Any]] = []
    wanted: dict[str, list[float]] = {metric: [] for metric in METRICS}
    for number in range(40):
        pairs = [texts(rng) for _ in range(rng.randrange(1, 4))]
        answer = pairs[0][0] or "x"
        references = [reference for _, reference in pairs if reference.strip()]
        gold.append({"qid": f"q{number}", "reference_answers": references})
        refuses = number % 9 == 8
        said: Any = "not in context" if refuses else answer
        traces.append({"qid": f"q{number}", "topk": ["p1"], "answer": {"text": said}})
        if references and not refuses:
            for name, values in wanted.items():
                measure = getattr(reference_oracle, name.partition(".")[2])
                values.append(max(measure(answer, reference) for reference in references))
    scores = score(
        write(tmp_path / "gold.jsonl", gold),
        write(tmp_path / "trace.jsonl", traces),
        profile="all",
        metrics=METRICS,
        intervals=False,
    )
    for name, values in wanted.items():
        assert scores.metrics[name].n == len(values)
        mean = sum(values) / len(values)
        assert scores.metrics[name].value == pytest.approx(mean, abs=1e-9), name
