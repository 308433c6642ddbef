"""Stored runs in the terminal: tables that fit the screen, lines of words, and JSON values."""

from __future__ import annotations

import json
import textwrap
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from msgspec import Struct

from ragauge import registry
from ragauge.codes import ExitCode
from ragauge.model import phrases
from ragauge.model.evidence import Evidence
from ragauge.model.metric_names import metric_label
from ragauge.model.report import View
from ragauge.model.run import RunRecord, Scoring
from ragauge.model.scores import Scores
from ragauge.model.scores_document import rounded, to_document
from ragauge.model.verdict import Verdict
from ragauge.store.history import measured_in
from ragauge.store.snapshot import Snapshot
from ragauge.text import plain

RUNS = "ragauge.runs/1"
RUN_INFO = "ragauge.run-info/1"
SHORT_HASH = 8
_ENTRY = ("run_id", "created_at", "suite", "profile", "status", "results", "gold_hash",
          "commit_hash", "branch", "author", "dirty")  # fmt: skip
_GAP = "  "
_LABEL = 11
_LISTED = 5
_INCOMPLETE = "incomplete: it was stopped, or is still being stored; it has no scores"
_CHANGED = ", with files changed since"
_NOT_JUDGED = Verdict(status="pass", exit_code=ExitCode.PASS, gates=(), blocks=())


class TerminalColumn(NamedTuple):
    """A column of a table; a small `rank` finds room before a large one, and 0 always does."""

    head: str
    cells: Sequence[str]
    rank: int = 0
    right: bool = False


def table(
    columns: Sequence[TerminalColumn],
    width: int,
    *,
    above: Mapping[int, Sequence[str]] | None = None,
) -> list[str]:
    """The lines of a table in a screen's width; `above` has lines to put above some rows.

    What is shown is shown whole: columns that have no room, or nothing in them, are not shown.
    """
    from rich.cells import cell_len

    columns_with_cells = [
        column._replace(cells=[plain(cell) for cell in column.cells])
        for column in columns
        if any(column.cells) or not column.rank
    ]
    sizes = {
        column.head: max(map(cell_len, [column.head, *column.cells]))
        for column in columns_with_cells
    }
    needed, heads_with_room = -len(_GAP), set()
    for column in sorted(columns_with_cells, key=lambda column: column.rank):
        wanted = needed + len(_GAP) + sizes[column.head]
        if wanted <= width or not column.rank:
            needed = wanted
            heads_with_room.add(column.head)
    visible = [column for column in columns_with_cells if column.head in heads_with_room]

    def line(texts: Sequence[str]) -> str:
        parts = []
        for column, text in zip(visible, texts, strict=True):
            blanks = " " * (sizes[column.head] - cell_len(text))
            parts.append(blanks + text if column.right else text + blanks)
        return _GAP.join(parts).rstrip()

    lines = [line([column.head for column in visible]), "─" * min(needed, width)]
    for place in range(len(visible[0].cells)):
        lines += (above or {}).get(place, ())
        lines.append(line([column.cells[place] for column in visible]))
    return lines


def moment(created_at: str) -> str:
    """A time to the minute, as tables have it."""
    return created_at[:16].replace("T", " ")


def short_commit(run: RunRecord) -> str:
    """The beginning of a commit's hash, with `+` where files were changed since."""
    return (run.commit_hash or "")[:SHORT_HASH] + "+" * (run.dirty or False)


class Headline(Struct, frozen=True):
    """The one value that represents a run in a list."""

    metric: str
    value: float

    def __str__(self) -> str:
        return f"{phrases.number(self.value)} {metric_label(self.metric)}"


def headline(run: RunRecord) -> Headline | None:
    """What the profile calls correct, or else the first metric with a value; None without any."""
    metrics = measured_in(run) or {}
    profile = registry.profiles().get(run.profile)
    names = [name for name in metrics if not name.startswith("run.")]
    for name in [*([profile.correct] if profile is not None else []), *names]:
        value = metrics[name].value if name in metrics else None
        if value is not None:
            return Headline(name, value)
    return None


def run_entry(run: RunRecord) -> dict[str, Any]:
    """What is known of a run without reading its results, as plain JSON values."""
    head = headline(run)
    return {
        **{name: getattr(run, name) for name in _ENTRY},
        "tags": list(run.tags),
        "headline": None if head is None else {"metric": head.metric, "value": rounded(head.value)},
    }


def run_list(runs: Sequence[RunRecord], width: int) -> list[str]:
    """The table of runs."""
    heads = [headline(run) for run in runs]
    return table(
        [
            TerminalColumn("run", [run.run_id for run in runs]),
            TerminalColumn("created", [moment(run.created_at) for run in runs], 2),
            TerminalColumn("suite", [run.suite for run in runs], 4),
            TerminalColumn("profile", [run.profile for run in runs], 3),
            TerminalColumn("status", [run.status for run in runs]),
            TerminalColumn("results", [str(run.results) for run in runs], 5, right=True),
            TerminalColumn("tags", [", ".join(run.tags) for run in runs], 1),
            TerminalColumn("gold", [run.gold_hash[:SHORT_HASH] for run in runs], 6),
            TerminalColumn("branch", [run.branch or "" for run in runs], 7),
            TerminalColumn("commit", [short_commit(run) for run in runs], 8),
            TerminalColumn("headline", ["" if head is None else str(head) for head in heads], 9),
        ],
        width,
    )


class StoredRunInfo(Struct, frozen=True, kw_only=True):
    """All that `runs show` prints of a run; a run that is not complete has no scores."""

    run: RunRecord
    snapshot: Snapshot
    evidence: Evidence
    scorings: Sequence[Scoring]
    scores: Scores | None
    full: bool = False


def info_document(info: StoredRunInfo) -> dict[str, Any]:
    """What is stored of a run, as plain JSON values; the scores are the scores document."""
    run, snapshot, evidence = info.run, info.snapshot, info.evidence
    inputs, rules = snapshot.inputs, snapshot.scoring
    scores = None
    if info.scores is not None:
        scores = to_document(info.scores, _NOT_JUDGED, full=info.full)
        del scores["verdict"]  # nothing was judged
    return {
        "schema": RUN_INFO,
        "run": run_entry(run),
        "inputs": {
            "gold": inputs.gold_name,
            "trace": inputs.trace_name,
            "chunks": run.chunks,
            "notes": list(inputs.notes),
            "gold_bad_lines": inputs.gold_problem_count,
            "trace_bad_lines": inputs.trace_problem_count,
            "bad_lines": _bad_lines(snapshot),
        },
        "scored_by": {"dialect": rules.dialect, "k": list(rules.k), "metrics": list(rules.metrics)},
        "system": snapshot.system,
        "observed": evidence.observed(),
        "seen": {"expected_chunks": len(evidence.expected), "documents": len(evidence.docs)},
        "scorings": [
            {name: getattr(scoring, name) for name in ("number", "created_at", "ragauge_version")}
            for scoring in info.scorings
        ],
        "scores": scores,
    }


def info_lines(info: StoredRunInfo, width: int) -> list[str]:
    """What is stored of a run, in words; the scores come below it."""
    run, snapshot, evidence = info.run, info.snapshot, info.evidence
    inputs, rules = snapshot.inputs, snapshot.scoring
    bad = inputs.gold_problem_count + inputs.trace_problem_count
    listed = _bad_lines(snapshot)
    most = len(listed) if info.full else _LISTED
    more = [f"... and {bad - most} more"] if bad > most else []
    cutoffs = ", ".join(map(str, rules.k))
    seen = [
        phrases.count(len(evidence.expected), "expected chunk"),
        phrases.count(len(evidence.docs), "document"),
    ]
    scorings = [
        f"{scoring.number}: {scoring.created_at}, ragauge {scoring.ragauge_version}"
        for scoring in info.scorings
    ]
    facts: list[tuple[str, list[str]]] = [
        ("run", [run.run_id]),
        ("status", [run.status if run.status == "complete" else _INCOMPLETE]),
        ("created", [run.created_at]),
        ("suite", [run.suite]),
        ("profile", [f"{run.profile}, dialect {rules.dialect}, k = {cutoffs}"]),
        ("commit", [run.commit_hash + _CHANGED * (run.dirty or False)] if run.commit_hash else []),
        ("branch", [run.branch] if run.branch else []),
        ("author", [run.author] if run.author else []),
        ("tags", [", ".join(run.tags)] if run.tags else []),
        ("gold", [f"{inputs.gold_name}, hash {run.gold_hash[:SHORT_HASH]}"]),
        ("traces", [f"{inputs.trace_name}, {phrases.count(run.results, 'result')}"]),
        ("chunks", [f"a list of chunks, {run.chunks}"] if run.chunks else []),
        ("notes", list(inputs.notes)),
        ("bad lines", [*listed[:most], *more]),
        ("system", _flat(snapshot.system)),
        ("observed", _flat(evidence.observed())),
        ("seen", [", ".join(seen)] if evidence.expected or evidence.docs else []),
        ("scorings", scorings),
    ]
    return [line for label, texts in facts for line in labelled(label, texts, width)]


def labelled(label: str, texts: Sequence[str], width: int) -> list[str]:
    """Lines with their label before the first of them, wrapped to a screen's width."""
    lines = []
    for place, text in enumerate(texts):
        head = (label if place == 0 else "").ljust(_LABEL)
        lines += textwrap.wrap(
            plain(text),
            max(width, 40),
            initial_indent=head,
            subsequent_indent=" " * _LABEL,
            break_on_hyphens=False,
            break_long_words=False,
        ) or [head.rstrip()]
    return lines


def _bad_lines(snapshot: Snapshot) -> list[str]:
    inputs = snapshot.inputs
    return [
        f"{problem.place}: {problem.message}" if problem.place is not None else problem.message
        for problem in (*inputs.gold_problems, *inputs.trace_problems)
    ]


def _flat(values: Mapping[str, Any], before: str = "") -> list[str]:
    """Nested values as lines `chunker.size: 512`."""
    lines = []
    for name, value in values.items():
        if isinstance(value, Mapping) and value:
            lines += _flat(value, f"{before}{name}.")
        else:
            text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
            lines.append(f"{before}{name}: {text}")
    return lines


def scores_lines(scores: Scores, *, full: bool, width: int) -> list[str]:
    """The scores as `score` prints them, without gates and without colour."""
    profile = registry.profile(scores.profile)
    view = View(scores=scores, verdict=_NOT_JUDGED, profile=profile, full=full, width=width)
    text = registry.report("table").text(view)
    # Ids come from files: what moves a terminal's cursor is shown, not sent.
    return [plain(line) for line in text.split("\n")[:-3]]
