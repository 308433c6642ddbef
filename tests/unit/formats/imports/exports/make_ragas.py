"""Writes ragas/: run with ragas 0.4.3 and langchain-community below 0.4, in this folder."""

from __future__ import annotations

from pathlib import Path

from ragas import EvaluationDataset
from ragas.dataset_schema import MultiTurnSample, SingleTurnSample
from ragas.messages import AIMessage, HumanMessage
from shop import CASES, PASSAGES, retrieve

folder = Path("ragas")
folder.mkdir(exist_ok=True)


def sample(case: dict, *, ids: bool) -> SingleTurnSample:
    """A row as ragas has it, with the ids of the passages or without."""
    hits = retrieve(case["question"])
    fields = {
        "user_input": case["question"],
        "response": case["answer"],
        "reference": case["expected"] or "not in context",
        "retrieved_contexts": [hit["text"] for hit in hits],
    }
    if ids:
        fields["retrieved_context_ids"] = [hit["id"] for hit in hits]
        fields["reference_context_ids"] = case["relevant"]
    else:
        fields["reference_contexts"] = [PASSAGES[name] for name in case["relevant"]]
    return SingleTurnSample(**fields)


with_ids = EvaluationDataset([sample(case, ids=True) for case in CASES])
with_ids.to_jsonl(folder / "ids.jsonl")
with_ids.to_csv(folder / "ids.csv")
EvaluationDataset([sample(case, ids=False) for case in CASES]).to_jsonl(folder / "texts.jsonl")
talk = MultiTurnSample(
    user_input=[
        HumanMessage(content="How long is a session valid?"),
        AIMessage(content="30 minutes."),
        HumanMessage(content="And after the last request?"),
        AIMessage(content="That is when the 30 minutes begin."),
    ],
    reference="30 minutes after the last request",
)
EvaluationDataset([talk]).to_jsonl(folder / "turns.jsonl")
