"""Owns the campaign on chunkings: comparisons by chunk ids, held against the truth by bytes.

Every ordered pair of four chunkings, searched by BM25, and with the second search weakened. Sets
have the true bytes of their evidence: generated ones, and the public one of `../shared`, if it is
there.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from itertools import permutations
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from tests.support import rechunked  # noqa: E402

from table import grid  # noqa: E402

SOTU = ROOT.parent / "shared" / "samples" / "chroma_sotu"
HIT = "retrieval.hit@10"
MAX_DROP = 0.02
MOST_WRONG, MOST_MISSED = 0.005, 0.002
"""Shares of sure regressions that may be wrong, and of true ones that may be called `no`: of all
comparisons together, as the rule was measured."""
HEADS = (
    *("set", "b", "pairs", "off, most", "width", "sign wrong / open", "gate wrong / open"),
    *("true regr.", "sure (wrong)", "open", "missed (held)", "kinds of evidence"),
)

SCORE_HEADS = ("set", "metric", "pairs", "values", "width", "truth outside")


def campaign(effort: float) -> int:
    """Print the table, and say whether anything is wrong that may not be."""
    rows, faults = [], 0
    every: Counter[str] = Counter()
    for name, texts in _sets(effort):
        for weakened in (False, True):
            totals, off, width = _compare_all(texts, weakened=weakened, effort=effort)
            rows.append(_row(name, totals, off, width, weakened=weakened))
            faults += _is_faulty(totals)
            every += totals
    print(grid("llrrrrrrrrrr", HEADS, rows))
    print(
        f"\n{faults} of {len(rows)} rows with an error that may not be: a sign, a gate or a kind "
        "of evidence that is wrong, or a missed regression of evidence that its chunk holds. "
        f"{every['wrong']} of {every['sure']:,} sure regressions are wrong (at most "
        f"{MOST_WRONG:.1%} may be), {every['missed']} of {every['true']:,} true ones are called "
        f"`no` (at most {MOST_MISSED:.1%}): their evidence is cut by the border of its chunk."
    )
    faults += every["wrong"] > MOST_WRONG * every["sure"]
    faults += every["missed"] > MOST_MISSED * every["true"]
    outside = _score_all(effort)
    return int(faults > 0 or outside > 0)


def _score_all(effort: float) -> int:
    """Print whether `score` by chunks holds the truth, and say how often it does not."""
    rows, outside = [], 0
    for name, texts in _sets(effort):
        chunks = {chunking: rechunked.chunked(texts, chunking) for chunking in rechunked.CHUNKINGS}
        hits = {
            chunking: rechunked.SearchedChunks(texts, cut).searched()
            for chunking, cut in chunks.items()
        }
        pairs = list(permutations(chunks, 2))[: max(1, round(12 * min(1, effort)))]
        held = [rechunked.held_values(texts, chunks[a], hits[b]) for a, b in pairs]
        for metric in (f"retrieval.{one}" for one in rechunked.MEASURED):
            values = sum(one.values[metric] for one in held)
            missed = sum(one.outside[metric] for one in held)
            width = sum(one.width[metric] for one in held) / max(1, values)
            rows.append((name, metric, str(len(pairs)), f"{values:,}", f"{width:.2f}", str(missed)))
            outside += missed
        outside += sum(one.means_outside for one in held)
    print("\n`score` by chunks, of evidence that one chunk holds:\n")
    print(grid("llrrrr", SCORE_HEADS, rows))
    print(f"\n{outside} true values or means outside their band")
    return outside


def _sets(effort: float) -> Iterator[tuple[str, rechunked.TextSet]]:
    if SOTU.exists():
        yield "speech", rechunked.read_sotu(SOTU)
    questions = max(20, round(300 * effort))
    for seed in (1, 2):
        yield f"generated {seed}", rechunked.generated(documents=20, questions=questions, seed=seed)


def _compare_all(
    texts: rechunked.TextSet, *, weakened: bool, effort: float
) -> tuple[Counter[str], float, float]:
    chunks = {name: rechunked.chunked(texts, name) for name in rechunked.CHUNKINGS}
    indexes = {name: rechunked.SearchedChunks(texts, chunks[name]) for name in chunks}
    hits = {name: index.searched() for name, index in indexes.items()}
    later = {name: index.searched(weakened=weakened) for name, index in indexes.items()}
    totals: Counter[str] = Counter()
    off = width = 0.0
    pairs = list(permutations(chunks, 2))[: max(1, round(12 * min(1, effort)))]
    for a, b in pairs:
        ranks = [
            (
                rechunked.true_ranks(question, hits[a][question.qid]),
                rechunked.true_ranks(question, later[b][question.qid]),
            )
            for question in texts.questions
        ]
        traces = [list(rechunked.traces(texts, found)) for found in (hits[a], later[b])]
        document = _compared(rechunked.id_gold(texts, chunks[a]), *traces)
        evidence = _compared(rechunked.evidence_gold(texts), *traces)
        totals["pairs"] += 1
        low, high = _band(document)
        true = sum(any(two) - any(one) for one, two in ranks) / len(ranks)
        off = max(off, low - true, true - high)
        width += high - low
        _count_decisions(totals, document["exit_code"], low, high, true)
        held = [rechunked.is_whole(question, chunks[a]) for question in texts.questions]
        _count_questions(totals, document["per_query"], ranks, held)
        kinds = [each["kind"] for each in evidence["per_query"]]
        right = [rechunked.true_kind(*pair) for pair in ranks]
        totals["kinds"] += len(kinds)
        totals["kinds right"] += sum(x == y for x, y in zip(kinds, right, strict=True))
    return totals, off, width / len(pairs)


def _compared(*files: list[dict[str, Any]]) -> dict[str, Any]:
    """The comparison of two runs by a gold set, made by the command."""
    with tempfile.TemporaryDirectory(prefix="ragauge-chunkings-") as folder:
        for name, rows in zip(("gold", "a", "b"), files, strict=True):
            text = "".join(json.dumps(row) + "\n" for row in rows)
            Path(folder, f"{name}.jsonl").write_text(text, "utf-8")
        Path(folder, "gates.toml").write_text(
            f'[gates]\n"{HIT}" = {{ max_drop = {MAX_DROP} }}\n', "utf-8"
        )
        command = [sys.executable, "-m", "ragauge", "compare", "a.jsonl", "b.jsonl"]
        command += ["--gold", "gold.jsonl", "--k", "10", "--gates", "gates.toml"]
        done = subprocess.run(
            [*command, "--format", "json"], cwd=folder, capture_output=True, text=True, check=False
        )
        document: dict[str, Any] = json.loads(done.stdout)
        return document


def _band(document: dict[str, Any]) -> tuple[float, float]:
    delta = document["deltas"][HIT]
    if delta["band"] is None:
        return delta["unrounded"]["delta"], delta["unrounded"]["delta"]
    return delta["band"][0], delta["band"][1]


def _count_decisions(
    totals: Counter[str], exit_code: int, low: float, high: float, true: float
) -> None:
    """Whether the sign of the difference and the gate are right, wrong or open."""
    if abs(true) > 0.01:
        if low * high <= 0:
            totals["sign open"] += 1
        elif (low > 0) != (true > 0):
            totals["sign wrong"] += 1
    if exit_code == 4:
        totals["gate open"] += 1
    elif exit_code != int(-true > MAX_DROP + 1e-12):
        totals["gate wrong"] += 1


def _count_questions(
    totals: Counter[str],
    queries: list[dict[str, Any]],
    ranks: list[tuple[list[int | None], list[int | None]]],
    held: list[bool],
) -> None:
    for query, (one, two), is_held in zip(queries, ranks, held, strict=True):
        lost = any(x and not y for x, y in zip(one, two, strict=True))
        told = query["regression"]
        totals["true"] += lost
        totals["sure"] += told == "yes"
        totals["wrong"] += told == "yes" and not lost
        totals["open"] += told == "open"
        totals["missed"] += told == "no" and lost
        totals["missed held"] += told == "no" and lost and is_held


def _is_faulty(totals: Counter[str]) -> bool:
    return bool(
        totals["sign wrong"]
        or totals["gate wrong"]
        or totals["missed held"]
        or totals["kinds right"] < totals["kinds"]
    )


def _row(
    name: str, totals: Counter[str], off: float, width: float, *, weakened: bool
) -> tuple[str, ...]:
    return (
        name,
        "weakened" if weakened else "alike",
        f"{totals['pairs']}",
        f"{off:.3f}",
        f"{width:.2f}",
        f"{totals['sign wrong']} / {totals['sign open']}",
        f"{totals['gate wrong']} / {totals['gate open']}",
        f"{totals['true']:,}",
        f"{totals['sure']:,} ({totals['wrong']})",
        f"{totals['open']:,}",
        f"{totals['missed']} ({totals['missed held']})",
        f"{totals['kinds right']:,} of {totals['kinds']:,}",
    )
