"""Runs and comparisons made by hand for the HTML page, of any size, with known contents."""

from __future__ import annotations

import base64
import json
import re
import zlib
from collections.abc import Sequence
from typing import Any

import numpy as np

from ragauge import registry
from ragauge.codes import ExitCode
from ragauge.metrics.metric import Tally
from ragauge.model.comparison import (
    AnswerChange,
    Cause,
    ComparedRun,
    Comparison,
    ComparisonView,
    Delta,
    QueryComparison,
)
from ragauge.model.drilldown import Attempt, Drilldown, Expected, Passage
from ragauge.model.report import View
from ragauge.model.scores import (
    MetricResult,
    PerQuestion,
    QuestionList,
    QuestionResult,
    Scores,
    SliceResult,
)
from ragauge.model.semantic import Bands, Semantic
from ragauge.model.verdict import Gate, GateResult, Verdict

LABELS = ("OK", "ANS_NO_HIT", "OK", "REFUSAL_OK", "HALLUCINATION")
"""The labels of the questions, over and over: two of five are to be looked at."""
CAUSES = (None, "ranked-too-low", None, None, None)
TYPES = ("prose", "table", "code")


def metric(value: float | None, n: int = 100, **more: Any) -> MetricResult:
    interval = None if value is None else (max(0.0, value - 0.1), min(1.0, value + 0.1))
    known: dict[str, Any] = {
        "value": value, "n": n, "records": n, "excluded": {}, "interval": interval, "version": 1,
        "better": "higher",
    }  # fmt: skip
    return MetricResult(**{**known, **more})


def gate_result(name: str = "recall", metric_id: str = "retrieval.recall@5") -> GateResult:
    gate = Gate(name=name, metric=metric_id, better="higher", threshold=0.8, given="0.80",
                origin="profile x")  # fmt: skip
    return GateResult(gate=gate, status="fail", value=0.6, n=100, margin=-0.2,
                      interval=(0.5, 0.7), detectable=0.1)  # fmt: skip


def tally(n: int, **more: int) -> Tally:
    zero = dict.fromkeys(Tally.__struct_fields__, 0)
    return Tally(**{**zero, "gold": n, "traces": n, "scored": n, "answered": n, **more})


def passage(place: int, text: str | None = None, **more: Any) -> Passage:
    known: dict[str, Any] = {
        "id": f"guide.md#S.{place}", "doc": "guide.md", "section": f"S.{place}",
        "where": f"bytes {place}-{place + 9}", "score": 1 - place / 100, "text": text,
    }  # fmt: skip
    return Passage(**{**known, **more})


def drilldown(i: int, *, hits: int = 3, words: int = 8, attempts: int = 1) -> Drilldown:
    """Question i: its evidence is its second hit, and the word `treasure` is highlighted in it."""
    text = f"before treasure behind {' '.join(f'w{(i * 7 + j) % 997}' for j in range(words))}"
    found = tuple(
        passage((i * 3 + place) % 5000, f"{text} {place}", delta_s=0.25,
                **({"marks": ("gold", "cited"), "highlights": ((7, 15),)} if place == 1 else {}))
        for place in range(hits)
    )  # fmt: skip
    return Drilldown(
        qid=f"Q-{i:05d}",
        question=f"What is the number {i} of {TYPES[i % 3]}?",
        paraphrases=(f"Say number {i}.",),
        expect="answer",
        gold=f"gold.jsonl:{i + 1}",
        expected=(Expected(name=f"guide.md#S.{i}", doc="guide.md", quote="treasure"),),
        negatives=("guide.md#S.9",),
        claims=("a claim",),
        must_contain=("this",),
        forbidden=("that",),
        type=TYPES[i % 3],
        tags=("smoke",),
        attempts=tuple(
            Attempt(
                seed=None if attempts == 1 else str(each), trace=f"trace.jsonl:{i + 1}", hits=found,
                answer=f"The answer {i}.", refusal="token" if i % 5 == 3 else None,
                citations=(found[1],) if hits > 1 else (), latency_ms=120.0, delta_s=0.3,
                lambda_state="→",
            )
            for each in range(attempts)
        ),
    )  # fmt: skip


def scores(n: int, **more: Any) -> Scores:
    """A run of n questions; recall@5 of question i is (i % 11) / 10, ΔS is (i % 100) / 100."""
    results = [
        QuestionResult(
            qid=f"Q-{i:05d}", label=LABELS[i % 5], gold=f"gold.jsonl:{i + 1}",
            trace=f"trace.jsonl:{i + 1}", labels={LABELS[i % 5]: 1}, cause=CAUSES[i % 5],
        )
        for i in range(n)
    ]  # fmt: skip
    names = ("retrieval.recall@5", "semantic.delta_s_cited", "answer.coverage")
    steps = np.arange(n)
    values = np.array([(steps % 11) / 10, (steps % 100) / 100, np.full(n, np.nan)])
    parts = {name: SliceResult(n=n, metrics={"retrieval.recall@5": metric(0.5)}) for name in TYPES}
    known: dict[str, Any] = {
        "profile": "all", "dialect": "native", "k": (1, 5), "gold_name": "gold.jsonl",
        "trace_name": "trace.jsonl", "tally": tally(n, errored=2), "metrics": {
            "retrieval.recall@1": metric(0.25), "retrieval.recall@5": metric(0.6),
            "refusal.under": metric(0.1, better="lower"), "latency.total_ms": metric(812.5),
            "citation.hit_rate": metric(None, 0, reason="no-citations"),
        },
        "refusal_rules": {"token": 3}, "questions": QuestionList.of(results),
        "warnings": ("2 traces carry an error",), "skipped": ("trace.jsonl:9: bad-json",),
        "slices": {"type": parts}, "confusion": {"answered, to be refused": 1},
        "states": {"computed": {"→": 3, "×": 1}},
        "per_question": PerQuestion(
            metrics=names, qids=[each.qid for each in results], turns=[None] * n, values=values,
        ),
        "semantic": Semantic(embedder="words", bands=Bands()),
    }  # fmt: skip
    return Scores(**{**known, **more})


def verdict(*gates: GateResult) -> Verdict:
    code = ExitCode.GATE_FAILED if gates else ExitCode.PASS
    return Verdict(status="fail" if gates else "pass", exit_code=code, gates=gates, blocks=())


def run_view(n: int, *, details: Sequence[Drilldown] | None = None, **more: Any) -> View:
    return View(
        scores=scores(n, **more), verdict=verdict(gate_result()),
        profile=registry.profiles()["all"], details=details,
    )  # fmt: skip


def run_page(view: View) -> str:
    return registry.reports()["html"].text(view)


def comparison_view(n: int, **more: Any) -> ComparisonView:
    """n questions compared: every third is a regression, then a win, then a draw."""
    kinds = ("regression", "win", "draw")
    ranks: tuple[tuple[int | None, int | None], ...] = ((1, None), (3, 1), (2, 2))
    queries = tuple(
        QueryComparison(
            query_id=f"Q-{i:05d}", kind=kinds[i % 3],  # type: ignore[arg-type]
            a_hit_rank=ranks[i % 3][0], b_hit_rank=ranks[i % 3][1], rungs=("exact",),
            answer=AnswerChange(kind="draw", a_label="OK", b_label="OK"),
        )
        for i in range(n)
    )  # fmt: skip
    details = []
    for i in range(n):
        one = drilldown(i)
        other = Attempt(trace=f"head.jsonl:{i + 1}", hits=one.attempts[0].hits[::-1], answer="B.")
        fields = {name: getattr(one, name) for name in one.__struct_fields__}
        details.append(Drilldown(**{**fields, "other": (other,)}))
    counted = {kind: sum(query.kind == kind for query in queries) for kind in kinds}
    known: dict[str, Any] = {
        **{
            run: ComparedRun(name=name, profile="kb", gold_name="gold.jsonl", trace_name=trace)
            for run, name, trace in (("run_a", "main", "a.jsonl"), ("run_b", "head", "b.jsonl"))
        },
        "match": "exact", "rungs": {"exact": n}, "aggregate_a": {}, "aggregate_b": {},
        "deltas": (
            Delta(metric="retrieval.recall@5", better="higher", a=0.5, b=0.4, delta=-0.1, n=n,
                  interval=(-0.15, -0.05), p=0.01, p_holm=0.02, detectable=0.04, gated=True),
            Delta(metric="latency.total_ms", better="lower", a=800.0, b=700.0, delta=-100.0, n=n),
        ),
        "kinds": counted, "answer_kinds": {"draw": n}, "per_query": queries, "counted": n,
        "left_out": {"changed": 1}, "notes": ("a note",),
        "causes": (Cause(about="chunker", key="size", a="512", b="256"),),
    }  # fmt: skip
    return ComparisonView(comparison=Comparison(**{**known, **more}), details=details)


def comparison_page(view: ComparisonView) -> str:
    return registry.comparisons()["html"].text(view)


def unpacked(page: str) -> dict[str, Any]:
    """The blocks of a page by name, as a browser reads them."""
    found = re.findall(r'<script type="application/x-ragauge-block" id="([^"]+)">([^<]*)<', page)
    return {
        name: json.loads(zlib.decompress(base64.b64decode(text, validate=True)))
        for name, text in found
    }
