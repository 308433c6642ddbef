"""`ragauge init`: a configuration, a sample gold set, and a CI workflow that fails the build."""

from __future__ import annotations

from pathlib import Path

import click

from ragauge.cli.options import choice, write_new

_CONFIG = """\
# What `ragauge score` reads and demands. Commit this file: a gate is part of the code.
gold = "eval/gold.jsonl"
trace = "runs/trace.jsonl"
profile = "ship"
k = [5]

# Names are the profile's short names or metric ids (`ragauge metrics`).
[gates]
"answer.grounded_precision" = ">= 0.80"
chr = ">= 0.75"
under = "<= 0.05"
over = "<= 0.10"
# "retrieval.recall_all@5" = { threshold = ">= 0.70", min_n = 30, policy = "interval" }

# A gate may fail until a date, with a reason that reviewers can read.
# [[waivers]]
# gate = "over"
# reason = "the refund pages are being rewritten"
# expires = "2030-01-31"
"""

_GOLD = """\
{"qid": "Q001", "question": "How long does a refund take?", "answerable": true, \
"gold_claim_substr": ["within 14 days"], "gold_citations": ["refunds#2"]}
{"qid": "Q002", "question": "Which plan includes audit logs?", "answerable": true, \
"gold_claim_substr": ["enterprise plan"], "gold_citations": ["plans#4"]}
{"qid": "Q003", "question": "Who won the office raffle?", "answerable": false, \
"gold_claim_substr": [], "gold_citations": []}
"""

_KB_CONFIG = """\
# What `ragauge score` reads and demands. Commit this file: a gate is part of the code.
gold = "eval/golden.yaml"
trace = "runs/results.jsonl"
profile = "kb"

# Names are the profile's short names or metric ids (`ragauge metrics`). The profile kb has no
# gates of its own: begin with these, and move them to what your system reaches.
[gates]
"hit@5" = ">= 0.80"
"recall@5_doc" = ">= 0.80"
groundedness = ">= 0.80"
citation_coverage = ">= 0.95"
refusal_correctness = ">= 0.80"
empty_result_rate = "<= 0.40"
# mrr = { threshold = ">= 0.70", min_n = 30, policy = "interval" }

# A gate may fail until a date, with a reason that reviewers can read.
# [[waivers]]
# gate = "hit@5"
# reason = "the refund pages are being rewritten"
# expires = "2030-01-31"
"""

_KB_GOLD = """\
# The golden set: what each query should find, and what an answer to it must say.
#
# expected_doc_ids: []   the query has no answer in the knowledge base and should be refused;
#                        without the key nothing is said of it, and no refusal is counted.
# expected_doc_ids       documents that should be among the hits (recall@k_doc)
# expected_chunk_ids     chunks of which one should be among the hits (hit@k, mrr)
# must_contain           strings that must all be in the answer; the case counts
# forbidden              strings of which none may be in it (groundedness)
- id: kb-001
  query: How long does a refund take?
  expected_doc_ids: [refunds]
  expected_chunk_ids: ["refunds#2"]
  must_contain: ["14 days"]
  forbidden: ["30 days"]
- id: kb-002
  query: Which plan includes audit logs?
  expected_doc_ids: [plans]
  expected_chunk_ids: ["plans#4"]
  must_contain: ["Enterprise"]
- id: kb-003
  query: Who won the office raffle?
  expected_doc_ids: []
"""

_WORKFLOW = """\
name: rag quality

on: [pull_request]

jobs:
  ragauge:
    runs-on: ubuntu-latest
    steps:
      - uses: actions/checkout@v4
      - uses: actions/setup-python@v5
        with:
          python-version: "3.12"
      - run: pip install ragauge
      # Let your pipeline answer the questions of eval/gold.jsonl into runs/trace.jsonl here.
      - run: ragauge validate
      # Exit code 1 (a gate failed), 4 (not evaluable) or 5 (nothing measured) fails the build.
      - run: ragauge score --full -o ragauge.json -o ragauge.md
      - run: cat ragauge.md >> "$GITHUB_STEP_SUMMARY"
        if: always()
"""

_PLACE = ".github/workflows/ragauge.yml"
_KB_WORKFLOW = (
    _WORKFLOW.replace("pip install ragauge", 'pip install "ragauge[yaml]"')
    .replace("eval/gold.jsonl", "eval/golden.yaml")
    .replace("runs/trace.jsonl", "runs/results.jsonl")
)
_FILES = {
    "ship": {"ragauge.toml": _CONFIG, "eval/gold.jsonl": _GOLD, _PLACE: _WORKFLOW},
    "kb": {"ragauge.toml": _KB_CONFIG, "eval/golden.yaml": _KB_GOLD, _PLACE: _KB_WORKFLOW},
}
_NEXT = {
    "ship": (
        "  1. put your own questions into eval/gold.jsonl\n"
        "  2. let your pipeline write runs/trace.jsonl, one line a question:\n"
        '     {"qid": "Q001", "retrieved_ids": ["refunds#1", "refunds#2"],\n'
        '      "answer_json": {"claim": "Refunds arrive within 14 days.",'
        ' "citations": ["refunds#2"]}}\n'
    ),
    "kb": (
        "  1. put your own queries into eval/golden.yaml\n"
        "  2. let your pipeline write runs/results.jsonl, one line a query:\n"
        '     {"query_id": "kb-001",'
        ' "hits_top_k": [{"chunk_id": "refunds#2", "doc_id": "refunds"}],\n'
        '      "answer": {"text": "Within 14 days.", "grounded": true,'
        ' "citations": ["refunds#2"]}}\n'
    ),
}


@click.command("init", short_help="Write ragauge.toml, sample gold and a CI workflow.")
@click.argument("folder", default=".", metavar="[FOLDER]")
@choice(
    "--profile",
    of=list(_FILES),
    default="ship",
    help="What the project is for: gates on answers, or a golden set in YAML.",
)
@click.option("--force", is_flag=True, help="Replace files that are already there.")
def COMMAND(folder: str, profile: str, force: bool) -> int:  # noqa: N802
    """Write ragauge.toml, a sample gold set and a CI workflow into FOLDER."""
    root = Path(folder)
    write_new({root / name: text for name, text in _FILES[profile].items()}, force=force)
    click.echo(f"\nNext:\n{_NEXT[profile]}  3. ragauge score")
    return 0
