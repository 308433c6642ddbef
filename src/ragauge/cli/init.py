"""`ragauge init`: a configuration with sample gold and a CI workflow, or for a user's own files."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from ragauge.cli.options import choice, write_new
from ragauge.cli.streams import print_line, print_lines

if TYPE_CHECKING:
    from ragauge.formats.field_proposal import FileProposal

_CONFIG = """\
# What `ragauge score` reads and demands. Commit this file: a gate is part of the code.
gold = "eval/gold.jsonl"
trace = "runs/trace.jsonl"
profile = "ship"
k = [5]

# Names are the profile's short names or metric ids (`ragauge metrics`). By confident-fail a gate
# fails only what is surely too bad, so that chance does not break builds; what only may be says
# REVIEW (`--fail-on-review` fails it). For a release, confident-pass asks for what is surely good.
[gates]
"answer.grounded_precision" = { threshold = ">= 0.80", policy = "confident-fail" }
chr = { threshold = ">= 0.75", policy = "confident-fail" }
under = { threshold = "<= 0.05", policy = "confident-fail" }
over = { threshold = "<= 0.10", policy = "confident-fail" }
# Against the last accepted run (--baseline): the interval is the tolerance.
# "retrieval.recall_all@5" = { max_drop = 0.0, policy = "confident-fail" }

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
# gates of its own: begin with these, and move them to what your system reaches. By confident-fail a
# gate fails only what is surely too bad, so that chance does not break builds; what only may be
# says REVIEW (`--fail-on-review` fails it). A gate needs 5 questions, or what its min_n says.
[gates]
"hit@5" = { threshold = ">= 0.80", policy = "confident-fail" }
"recall@5_doc" = { threshold = ">= 0.80", policy = "confident-fail" }
groundedness = { threshold = ">= 0.80", policy = "confident-fail" }
citation_coverage = { threshold = ">= 0.95", policy = "confident-fail" }
refusal_correctness = { threshold = ">= 0.80", policy = "confident-fail" }
empty_result_rate = { threshold = "<= 0.40", policy = "confident-fail" }
# Against the last accepted run (--baseline): the interval is the tolerance.
# mrr_drop = { metric = "mrr", max_drop = 0.0, policy = "confident-fail" }

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


@click.command("init", short_help="Write ragauge.toml: a sample project, or for your own files.")
@click.argument("paths", nargs=-1, metavar="[FOLDER | FILE...]")
@choice(
    "--profile",
    of=list(_FILES),
    default="ship",
    help="What a sample project is for: gates on answers, or a golden set in YAML.",
)
@click.option("--force", is_flag=True, help="Replace files that are already there.")
@click.option("--dry-run", is_flag=True, help="With FILEs: print ragauge.toml, write nothing.")
def COMMAND(paths: tuple[str, ...], profile: str, force: bool, dry_run: bool) -> int:  # noqa: N802
    """Write ragauge.toml: with a sample gold set and a CI workflow into FOLDER, or for your FILEs.

    FILEs are a gold set, traces, or both, in any form that `score` reads. Their rows are looked at,
    and what their fields look like is written into ragauge.toml as [fields], beside what stands
    there already. Read it before you trust it: names only say what a field may be.
    """
    files = [path for path in paths if Path(path).is_file() or Path(path).suffix]
    if files and len(files) < len(paths):
        raise click.UsageError("give either one folder, or files")
    if files:
        return _own_files(files, force=force, dry_run=dry_run)
    if len(paths) > 1 or dry_run:
        what = "--dry-run goes with files" if dry_run else "give one folder, or files"
        raise click.UsageError(what)
    root = Path(paths[0] if paths else ".")
    write_new({root / name: text for name, text in _FILES[profile].items()}, force=force)
    click.echo(f"\nNext:\n{_NEXT[profile]}  3. ragauge score")
    return 0


_OWN_HEAD = "# What `ragauge score` reads. Commit this file; gates go into [gates].\n"


def _own_files(files: Sequence[str], *, force: bool, dry_run: bool) -> int:
    """Propose the fields of a user's files, and write them into ragauge.toml."""
    from ragauge.config import FILE_NAME
    from ragauge.files.atomic_write import write_atomically
    from ragauge.formats.field_proposal import propose

    proposals = propose(files)
    for proposal in proposals:
        _refuse_unusable(proposal)
        for line in _proposal_lines(proposal):
            print_line(line)
    path = Path(FILE_NAME)
    text = _config_text(path, proposals, force=force)
    if dry_run:
        print_lines(["", f"{FILE_NAME} would be:", "", *text.splitlines()])
        return 0
    write_atomically(path, text)
    print_lines(["", f"wrote {FILE_NAME}; check the mapping, then: ragauge score"])
    return 0


def _refuse_unusable(proposal: FileProposal) -> None:
    from ragauge.errors import Place, RagaugeError
    from ragauge.text import some

    names = {field.name for field in proposal.fields}
    wanted = {"question", "qid"} if proposal.side == "gold" else {"hits", "answer"}
    if proposal.format is None and not names & wanted:
        what = "a question or an id" if proposal.side == "gold" else "hits or an answer"
        there = some([f"`{name}`" for name in proposal.unread], 12) or "no fields"
        raise RagaugeError.of(
            "field-not-found",
            f"nothing in `{proposal.name}` looks like {what}: it has {there}",
            hint="say where they are: --field hits=PATH --field answer=PATH, see `score --help`",
            place=Place(proposal.name),
        )


def _proposal_lines(proposal: FileProposal) -> Iterator[str]:
    from ragauge.model.phrases import count

    noun = "gold set" if proposal.side == "gold" else "traces"
    if proposal.format is not None:
        yield f"{proposal.name}: {noun}, read as {proposal.format}: no [fields] needed"
        return
    yield f"{proposal.name}: {noun}, {count(proposal.rows, 'row')} looked at"
    for field in proposal.fields:
        arrow = f"  {field.name:<16} <- {field.path or '(none)':<28}"
        notes = [field.example, field.reason, "" if field.needed else "read as it is"]
        yield f"{arrow} {'; '.join(note for note in notes if note)}".rstrip()
    if proposal.unread:
        yield f"  not read: {', '.join(proposal.unread)}"


def _config_text(path: Path, proposals: Sequence[FileProposal], *, force: bool) -> str:
    """The text of ragauge.toml: what is there, and behind it what is proposed."""
    from ragauge.config import load_config
    from ragauge.errors import Place, RagaugeError

    tables = "".join(_fields_table(proposal) for proposal in proposals)
    if path.exists() and not force:
        if load_config(path).fields:
            message = f"`{path}` has [fields] already, and nothing was written"
            hint = "--dry-run --force prints what it would be; --force replaces the whole file"
            raise RagaugeError.of("file-exists", message, hint=hint, place=Place(str(path)))
        text = path.read_text("utf-8")
        return text + ("" if text.endswith("\n") or not text else "\n") + tables
    names = {proposal.side: proposal.name for proposal in reversed(proposals)}
    settings = [
        f"{key} = {_toml_text(names[side])}\n"
        for key, side in (("gold", "gold"), ("trace", "traces"))
        if side in names
    ]
    return _OWN_HEAD + "".join(settings) + tables


def _fields_table(proposal: FileProposal) -> str:
    """The table of one side; fields that are read as they are need no line."""
    lines = [
        f"{field.name if field.name.isidentifier() else _toml_text(field.name)} = "
        f"{_toml_text(field.path)}{f'  # {field.reason}' if field.reason else ''}\n"
        for field in proposal.fields
        if field.needed
    ]
    if proposal.unread and lines:
        lines.append(f"ignore = [{', '.join(map(_toml_text, proposal.unread))}]\n")
    return f"\n[fields.{proposal.side}]\n{''.join(lines)}" if lines else ""


def _toml_text(text: str) -> str:
    """A text as TOML has it, which is as JSON has it."""
    import json

    return json.dumps(text, ensure_ascii=False)
