"""`ragauge init`: a configuration, a sample gold set, and a CI workflow that fails the build."""

from __future__ import annotations

from pathlib import Path

import click

from ragauge.cli.shared import write_new

_CONFIG = """\
# What `ragauge score` reads and demands. Commit this file: a gate is part of the code.
gold = "eval/gold.jsonl"
trace = "runs/trace.jsonl"
profile = "ship"
k = [5]

# Names are the profile's short names or metric ids (`ragauge metrics`).
[gates]
precision = ">= 0.80"
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

_FILES = {
    "ragauge.toml": _CONFIG,
    "eval/gold.jsonl": _GOLD,
    ".github/workflows/ragauge.yml": _WORKFLOW,
}


@click.command("init", short_help="Write ragauge.toml, sample gold and a CI workflow.")
@click.argument("folder", default=".", metavar="[FOLDER]")
@click.option("--force", is_flag=True, help="Replace files that are already there.")
def COMMAND(folder: str, force: bool) -> int:  # noqa: N802
    """Write ragauge.toml, a sample gold set and a CI workflow into FOLDER."""
    root = Path(folder)
    write_new({root / name: text for name, text in _FILES.items()}, force=force)
    click.echo(
        "\nNext:\n"
        "  1. put your own questions into eval/gold.jsonl\n"
        "  2. let your pipeline write runs/trace.jsonl, one line a question:\n"
        '     {"qid": "Q001", "retrieved_ids": ["refunds#1", "refunds#2"],\n'
        '      "answer_json": {"claim": "Refunds arrive within 14 days.",'
        ' "citations": ["refunds#2"]}}\n'
        "  3. ragauge score"
    )
    return 0
