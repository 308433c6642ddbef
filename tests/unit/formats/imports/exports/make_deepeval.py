"""Writes deepeval/: run with deepeval 4.3.1, in this folder, DEEPEVAL_TELEMETRY_OPT_OUT=1."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

folder = Path("deepeval")
# Before the import, which reads it.
os.environ["DEEPEVAL_RESULTS_FOLDER"] = str(folder / "results")

from deepeval import evaluate  # noqa: E402
from deepeval.dataset import EvaluationDataset, Golden  # noqa: E402
from deepeval.metrics import BaseMetric  # noqa: E402
from deepeval.test_case import LLMTestCase  # noqa: E402
from shop import CASES, PASSAGES, retrieve  # noqa: E402


class Answered(BaseMetric):
    """Whether there is an answer: a metric that needs no model."""

    threshold = 0.5
    async_mode = False

    def measure(self, test_case, *_, **__):
        self.score = 1.0 if test_case.actual_output else 0.0
        self.success = self.score >= self.threshold
        self.reason = "has an output"
        return self.score

    async def a_measure(self, test_case, *_, **__):
        return self.measure(test_case)

    def is_successful(self):
        return self.success

    @property
    def __name__(self):
        return "Answered"


goldens = [
    Golden(
        input=case["question"],
        expected_output=case["expected"],
        context=[PASSAGES[name] for name in case["relevant"]],
        source_file=case["relevant"][0].partition("#")[0] if case["relevant"] else None,
        additional_metadata={"qid": case["qid"]},
    )
    for case in CASES
]
folder.mkdir(exist_ok=True)
dataset = EvaluationDataset(goldens=goldens)
for kind in ("json", "csv", "jsonl"):
    dataset.save_as(file_type=kind, directory=str(folder), file_name="goldens")
cases = [
    LLMTestCase(
        input=case["question"],
        actual_output=case["answer"],
        expected_output=case["expected"],
        retrieval_context=[hit["text"] for hit in retrieve(case["question"])],
        completion_time=0.25,
        name=case["qid"],
    )
    for case in CASES
]
evaluate(test_cases=cases, metrics=[Answered()])
(written,) = (folder / "results").glob("test_run_*.json")
shutil.move(written, folder / "test-run.json")
shutil.move(".deepeval/.latest_test_run.json", folder / "latest-test-run.json")
shutil.rmtree(folder / "results")
shutil.rmtree(".deepeval")
