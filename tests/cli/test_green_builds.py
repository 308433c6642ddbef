"""Green builds that must not be: ways to get exit 0 out of a system that is bad, or unknown.

Each case begins with a run that is right, and does one thing to it. What it ends in is said by the
exit code and by a phrase that names the reason.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

import pytest

from tests.support.cases import cases
from tests.support.command import Folder, Row

N = 60
HIT = "retrieval.hit@5"
RECALL = "retrieval.recall@5"
Edit = Callable[[Row], Row | None]


class Case(NamedTuple):
    """What is done to the files, the command, and what has to come of it."""

    name: str
    command: str
    code: int
    phrase: str
    gold: Edit | None = None
    traces: Edit | None = None
    files: Mapping[str, str] = MappingProxyType({})


def number_of(row: Row) -> int:
    return int(row["qid"][1:])


def gold_rows() -> list[Row]:
    """60 questions, of which every sixth has no answer."""
    return [
        {
            "qid": f"q{n:02}",
            "question": f"What is the value of setting number {n}?",
            "answerable": n % 6 != 5,
            "gold_claim_substr": [f"setting {n} is {n * n}"] if n % 6 != 5 else [],
            "gold_citations": [f"doc{n}#1"] if n % 6 != 5 else [],
            "tags": ["rare"] if n == 1 else ["usual"],
        }
        for n in range(N)
    ]


def trace_rows() -> list[Row]:
    """A system that finds, answers, cites and refuses all of them rightly."""
    return [
        {
            "qid": f"q{n:02}",
            "q": f"What is the value of setting number {n}?",
            "retrieved_ids": [f"doc{n}#1", "doc0#2", "doc0#3"],
            "answer_json": {"claim": f"The setting {n} is {n * n}.", "citations": [f"doc{n}#1"]}
            if n % 6 != 5
            else {"claim": "not in context", "citations": []},
        }
        for n in range(N)
    ]


def edited(rows: list[Row], edit: Edit | None) -> list[Row]:
    if edit is None:
        return rows
    changed = (edit(row) for row in rows)
    return [row for row in changed if row is not None]


@pytest.fixture(scope="module")
def baseline(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    """The right run as a saved scores file, under `all` and under `ship`."""
    from ragauge.gates.judge import gate
    from ragauge.model.scores_document import json_text, to_document
    from ragauge.scoring.score import score

    folder = tmp_path_factory.mktemp("baseline")
    names = []
    for name, rows in (("gold.jsonl", gold_rows()), ("trace.jsonl", trace_rows())):
        names.append(folder / name)
        names[-1].write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    saved = {}
    for profile in ("all", "ship"):
        scores = score(*names, profile=profile, hashes=True)
        document = to_document(scores, gate(scores, []), full=True)
        saved[f"{profile}.json"] = json_text(document).encode()
    return saved


# --- what is done to rows ---


def only(*numbers: int) -> Edit:
    return lambda row: row if number_of(row) in numbers else None


def without(*fields: str, but: tuple[int, ...] = ()) -> Callable[[Row], Row]:
    """Take fields out of all rows but some."""

    def edit(row: Row) -> Row:
        if number_of(row) in but:
            return row
        return {key: value for key, value in row.items() if key not in fields}

    return edit


def setting(numbers: tuple[int, ...], **fields: Any) -> Callable[[Row], Row]:
    return lambda row: {**row, **fields} if number_of(row) in numbers else row


def failing(*numbers: int) -> Callable[[Row], Row]:
    """Traces that carry an error, and nothing else."""
    return lambda row: (
        {"qid": row["qid"], "q": row["q"], "error": "timeout"} if number_of(row) in numbers else row
    )


def missing(*numbers: int) -> Edit:
    return lambda row: None if number_of(row) in numbers else row


def lost(*numbers: int) -> Callable[[Row], Row]:
    """Questions whose evidence is not found any more."""
    return setting(tuple(numbers), retrieved_ids=["doc0#2", "doc0#3"])


def renamed(row: Row) -> Row:
    return {**row, "qid": f"r{row['qid'][1:]}"}


def asks_otherwise(row: Row) -> Row:
    """Another question under the same id."""
    return {**row, "question": f"Who wrote chapter {number_of(row)} of the handbook?"}


EVERY = tuple(range(N))
SCORE = "score gold.jsonl trace.jsonl --profile all"
SHIP = "score gold.jsonl trace.jsonl --profile ship"
DROP = f"{SCORE} --baseline all.json --gates gates.toml"
SHIP_DROP = f"{SHIP} --baseline ship.json --gates gates.toml"


def table(metric: str, options: str) -> dict[str, str]:
    return {"gates.toml": f'"{metric}" = {options}\n'}


def outside(item: str, phrase: str = "outside the range") -> Case:
    return Case(f"threshold {item}", f"{SCORE} --gates {item}", 2, phrase)


def written(name: str, options: str, phrase: str, *, code: int = 2, metric: str = HIT) -> Case:
    """A gate as it stands in a file."""
    command = f"{SCORE} --baseline all.json --gates gates.toml"
    return Case(f"gate with {name}", command, code, phrase, files=table(metric, options))


def config(name: str, text: str, phrase: str, *, code: int = 2, more: str = "") -> Case:
    """A ragauge.toml with gates and waivers, over a run that has lost a third of its evidence."""
    gates = f'[gates]\n"{HIT}" = ">= 0.95"\n'
    return Case(
        name,
        f"{SCORE} {more}".strip(),
        code,
        phrase,
        traces=lost(*range(0, N, 3)),
        files={"ragauge.toml": gates + text},
    )


def waiver(**fields: str) -> str:
    lines = "".join(f"{key} = {value}\n" for key, value in fields.items())
    return f"[[waivers]]\n{lines}"


THRESHOLDS = [
    outside("retrieval.recall@5>=1.5"),
    outside("retrieval.recall@5>=-0.2"),
    outside("retrieval.recall@5>=70"),
    outside("retrieval.precision@5>=-1"),
    outside("retrieval.mrr@10>=-0.001"),
    outside("retrieval.ndcg@10>=2"),
    outside("retrieval.empty<=5"),
    outside("retrieval.negative@5<=20"),
    outside("answer.precision>=-1"),
    outside("answer.coverage>=95"),
    outside("answer.compliance>=-98"),
    outside("citation.accuracy>=95"),
    outside("citation.hit_rate>=1.0001"),
    outside("refusal.under<=5"),
    outside("under<=5"),
    outside("over<=10"),
    outside("refusal.f1>=80"),
    outside("semantic.delta_s_cited<=40"),
    outside("semantic.delta_s_hits@5<=2.01"),
    outside("stability.rank_tau>=-2"),
    outside("stability.flip_rate<=15"),
    outside("run.errored<=2"),
    outside("run.missing<=100"),
    outside("retrieval.recall@5>=nan", "must be a finite number"),
    outside("retrieval.empty<=inf", "must be a finite number"),
    outside("retrieval.recall@5<=0.1", "is better when higher"),
    outside("retrieval.empty>=0.1", "is better when lower"),
    outside("retrieval.recal@5>=0.9", "retrieval.recall"),
    outside("retrieval.recall>=0.9", "say the cut-off"),
    outside("retrieval.recall@5", "cannot read the gate"),
    Case("ship: under<=5", f"{SHIP} --gates under<=5", 2, "outside the range"),
    Case("ship: over=100", f"{SHIP} --gates over=100", 2, "outside the range"),
    Case("ship: precision=-1", f"{SHIP} --gates precision=-1", 2, "outside the range"),
    Case("ship: chr=75", f"{SHIP} --gates chr=75", 2, "write 0.75 for 75 %"),
]
TABLES = [
    written("max_drop = 2", "{ max_drop = 2 }", "outside the range"),
    written("max_drop = 1.01", "{ max_drop = 1.01 }", "outside the range"),
    written("max_drop = 20", "{ max_drop = 20 }", "write 0.2 for 20 %"),
    written("max_drop = -3", "{ max_drop = -3 }", "outside the range"),
    written("max_drop = nan", "{ max_drop = nan }", "finite"),
    written("max_drop = inf", "{ max_drop = inf }", "finite"),
    written("a drop of ΔS", "{ max_drop = 2.5 }", "outside", metric="semantic.delta_s_cited"),
    written("a band beyond", "{ threshold = 0.9, review = [0.5, 9] }", "outside the range"),
    written("a band below", "{ threshold = 0.9, review = [-5, 0.9] }", "outside the range"),
    written("a band upside down", "{ threshold = 0.9, review = [0.9, 0.1] }", "review = [low"),
    written("min_n = 0", "{ threshold = 0.9, min_n = 0 }", "min_n"),
    written("min_n = -5", "{ threshold = 0.9, min_n = -5 }", "min_n"),
    written("min_n as a text", '{ threshold = 0.9, min_n = "5" }', "min_n"),
    written("a policy misspelt", '{ threshold = 0.9, policy = "confident" }', "confident-fail"),
    written("a policy of none", '{ threshold = 0.9, policy = "none" }', "confident-fail"),
    written("a key misspelt", "{ treshold = 0.9 }", "treshold"),
    written("another key", "{ threshold = 0.9, enabled = false }", "enabled"),
    written("no number at all", "{ min_n = 5 }", "needs one of threshold, zone and max_drop"),
    written("two numbers", "{ threshold = 0.9, max_drop = 0.1 }", "needs one of"),
    written("true", "true", "write a number"),
    written("an empty text", '""', "write a number"),
    written("a word", '"high"', "must be a number"),
    written("the wrong sign", '"<= 0.9"', "is better when higher"),
    written("a slice without a value", '{ threshold = 0.9, slice = "tag" }', "type=table"),
    Case("a gates file without gates", f"{SCORE} --gates gates.toml", 2, "no gates in the file",
         files={"gates.toml": "# later\n"}),
    Case("a gates file that is not there", f"{SCORE} --gates gates.toml", 2, "no gates file"),
    Case("a gates file that is no TOML", f"{SCORE} --gates gates.toml", 2, "TOML",
         files={"gates.toml": "hit@5 >= 0.9\n"}),
    Case("gates under another heading", f"{SCORE} --gates gates.toml", 2, "gate",
         files={"gates.toml": f'[gate]\n"{HIT}" = 2\n'}),
    Case("no gates, and they are required", f"{SCORE} --require-gates", 2, "has no gates"),
    Case("gates on the wrong table of ragauge.toml", SCORE, 2, "unknown field `gate`",
         files={"ragauge.toml": f'[gate]\n"{HIT}" = 0.9\n'}),
]  # fmt: skip
FEW = [
    Case("gold cut to one question", f"{SCORE} --gates {HIT}>=0.9", 4, "n = 1 is below min_n = 5",
         gold=only(1), traces=only(1)),
    Case("gold cut to four questions", f"{SCORE} --gates {HIT}>=0.9", 4, "n = 4 is below",
         gold=only(1, 2, 3, 4), traces=only(1, 2, 3, 4)),
    Case("ship: gold cut to one question", SHIP, 4, "a run of one question shows nothing",
         gold=only(1), traces=only(1)),
    Case("smoke: gold cut to one question",
         "score gold.jsonl trace.jsonl --profile smoke", 4, "a run of one question",
         gold=only(1), traces=only(1)),
    Case("ship: an own gate on one question", f"{SHIP} --gates {RECALL}>=0.9", 4, "below min_n",
         gold=only(1), traces=only(1)),
    Case("evidence in one item of 60", f"{SCORE} --gates {RECALL}>=0.9", 4, "n = 1 is below",
         gold=without("gold_citations", but=(1,)), traces=lost(*range(2, N))),
    Case("evidence in four items of 60", f"{SCORE} --gates {RECALL}>=0.9", 4, "n = 4 is below",
         gold=without("gold_citations", but=(1, 2, 3, 4))),
    Case("claims in one item of 60", f"{SCORE} --gates answer.claim_containment>=0.9", 4,
         "n = 1 is below", gold=without("gold_claim_substr", but=(1,))),
    Case("one answer, the rest refused", f"{SCORE} --gates answer.precision>=0.9", 4, "n = 1",
         traces=setting((0, *EVERY[2:]), answer_json={"claim": "not in context"})),
    Case("one citation", f"{SCORE} --gates citation.precision>=0.9", 4, "n = 1 is below",
         traces=setting((0, *EVERY[2:]), answer_json={"claim": "It is so.", "citations": []})),
    Case("a slice of one question", f"{SCORE} --gates gates.toml", 4, "too few for a value",
         files=table(HIT, '{ threshold = 0.9, slice = "tag=rare" }')),
    Case("a slice that is not there", f"{SCORE} --gates gates.toml", 4, "0 questions",
         files=table(HIT, '{ threshold = 0.9, slice = "tag=none" }')),
    Case("a slice of a dimension that is not there", f"{SCORE} --gates gates.toml", 4,
         "0 questions", files=table(HIT, '{ threshold = 0.9, slice = "colour=red" }')),
    Case("more asked for than there are", f"{SCORE} --gates gates.toml", 4, "n = 50 is below",
         files=table(HIT, "{ threshold = 0.9, min_n = 100 }")),
    Case("a drop on four questions", f"{DROP} --allow-fewer-questions", 4, "is below min_n",
         gold=only(1, 2, 3, 4),
         traces=only(1, 2, 3, 4), files=table(HIT, "{ max_drop = 0.02 }")),
    Case("should be refused in one item", f"{SCORE} --gates refusal.under<=0.05", 4, "n = 1",
         gold=setting(EVERY[6:], answerable=True)),
    Case("a metric of nothing", f"{SCORE} --gates answer.token_f1>=0.5", 4, "0/0"),
    Case("spans nobody has", f"{SCORE} --gates retrieval.span_recall@5>=0.5", 4, "0/0"),
    Case("slots nobody has", f"{SCORE} --gates stability.convergent>=0.95", 4, "0/0"),
    Case("times nobody has", f"{SCORE} --gates latency.total_ms<=100", 4, "0/0"),
]  # fmt: skip
ABSENT = [
    Case("no traces at all", f"{SCORE} --gates {HIT}>=0.9", 5, "NOTHING MEASURED",
         traces=missing(*EVERY)),
    Case("no gold at all", f"{SCORE} --gates {HIT}>=0.9", 5, "NOTHING MEASURED",
         gold=missing(*EVERY)),
    Case("ship: no traces at all", SHIP, 5, "NOTHING MEASURED", traces=missing(*EVERY)),
    Case("traces of other ids", f"{SCORE} --gates {HIT}>=0.9 --allow-missing", 5, "NOTHING",
         traces=lambda row: {**renamed(row), "q": "Another thing?"}),
    Case("half of the traces", f"{SCORE} --gates {HIT}>=0.9", 4, "30 of 60 gold items have no",
         traces=only(*range(30))),
    Case("one trace missing", f"{SCORE} --gates {HIT}>=0.9", 4, "1 of 60 gold items has no trace",
         traces=missing(7)),
    Case("ship: one trace missing", SHIP, 4, "1 of 60 gold items has no trace",
         traces=missing(5)),
    Case("hits without ids", f"{SCORE} --gates {HIT}>=0.1", 1, "FAIL",
         traces=setting(EVERY, retrieved_ids=[])),
    Case("no evidence in gold", f"{SCORE} --gates {RECALL}>=0.9", 4, "0/0",
         gold=without("gold_citations")),
    Case("an unknown evidence key", f"{SCORE} --gates {RECALL}>=0.9", 4, "0/0",
         gold=lambda row: {**without("gold_citations")(row), "evidense": row["gold_citations"]}),
    Case("traces about other questions", f"{SCORE} --gates {HIT}>=0.9", 4, "foreign-traces",
         traces=lambda row: {**row, "q": "Who wrote this handbook, and when was it printed?"}),
    Case("gold that asks otherwise", f"{SCORE} --gates {HIT}>=0.9", 4, "foreign-traces",
         gold=asks_otherwise),
    Case("bad lines that are skipped", f"{SCORE} --gates {HIT}>=0.9 --on-bad-line skip", 4,
         "skipped", traces=setting((3,), retrieved_ids=7)),
    Case("bad lines", f"{SCORE} --gates {HIT}>=0.9", 3, "retrieved_ids",
         traces=setting((3,), retrieved_ids=7)),
    Case("ship: everything refused", SHIP, 1, "FAIL",
         traces=setting(EVERY, answer_json={"claim": "not in context", "citations": []})),
    Case("ship: nothing answered, nothing answerable", SHIP, 4, "NOT EVALUABLE",
         gold=setting(EVERY, answerable=False),
         traces=setting(EVERY, answer_json={"claim": "not in context", "citations": []})),
]  # fmt: skip
ERRORED = [
    Case("ship: 60 errored traces", SHIP, 4, "60 traces carry an error", traces=failing(*EVERY)),
    Case("ship: all answerable errored", SHIP, 4, "at their worst",
         traces=failing(*(n for n in EVERY if n % 6 != 5))),
    Case("ship: over-refusal hidden by errors", f"{SHIP} --gates precision=0,chr=0,under=1", 4,
         "over", traces=failing(*range(0, N, 5))),
    Case("ship: 20 errored traces", SHIP, 4, "20 traces carry an error",
         traces=failing(*range(0, N, 3))),
    Case("ship: 2 of 10 refusals errored", SHIP, 4, "under", traces=failing(5, 11)),
    Case("smoke: 60 errored traces", "score gold.jsonl trace.jsonl --profile smoke", 4,
         "60 traces carry an error", traces=failing(*EVERY)),
    Case("smoke: 12 errored traces", "score gold.jsonl trace.jsonl --profile smoke", 4,
         "an error", traces=failing(*range(0, N, 5))),
    Case("errors left out of recall", f"{SCORE} --missing exclude --gates {RECALL}>=0.95", 4,
         "at their worst", traces=failing(*range(0, N, 4))),
    Case("errors left out of answers", f"{SCORE} --gates answer.precision>=0.95", 4,
         "at their worst", traces=failing(*range(0, N, 4))),
    Case("errors that let a level fail", f"{SCORE} --gates {RECALL}>=0.95", 4, "at their best",
         traces=failing(*range(0, N, 4))),
    Case("errors and a sure failure", f"{SCORE} --gates {RECALL}>=0.95", 1, "FAIL",
         traces=lambda row: failing(0, 1)(lost(*range(2, 50))(row))),
    Case("more errors than are let pass", f"{SCORE} --gates {RECALL}>=0.9 --allow-errored=10%", 4,
         "an error", traces=failing(*range(0, N, 6))),
    Case("ship: more errors than are let pass", f"{SHIP} --allow-errored=0.01", 4, "an error",
         traces=failing(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11)),
    Case("a share of errors that is none", f"{SCORE} --allow-errored=lots", 2, "1% or 0.01"),
    Case("a share above all", f"{SCORE} --allow-errored=200%", 2, "1% or 0.01"),
    Case("a drop hidden by errors", DROP, 4, "an error", traces=failing(*range(0, N, 6)),
         files=table("answer.precision", "{ max_drop = 0.02 }")),
    Case("a drop of retrieval by errors", DROP, 4, "at their best",
         traces=failing(*range(0, N, 6)), files=table(RECALL, "{ max_drop = 0.02 }")),
    Case("ship: a drop with errors", SHIP_DROP, 4, "an error", traces=failing(0, 1, 2),
         files=table("answer.grounded_precision", "{ max_drop = 0.5 }")),
    Case("errors in a slice", f"{SCORE} --gates gates.toml", 4, "at their worst",
         traces=failing(*range(0, N, 4)),
         files=table("answer.precision", '{ threshold = 0.9, slice = "tag=usual" }')),
    Case("confident-fail with errors", f"{SCORE} --gates gates.toml", 4, "at their worst",
         traces=failing(*range(0, N, 2)),
         files=table("answer.precision", '{ threshold = 0.9, policy = "confident-fail" }')),
]  # fmt: skip
BASELINES = [
    Case("a drop judged on 1 of 60 questions", DROP, 4, "1 of 50 questions of the baseline",
         gold=only(1), traces=only(1), files=table(HIT, "{ max_drop = 0.02, min_n = 1 }")),
    Case("a drop judged on 30 of 60 questions", DROP, 4, "--allow-fewer-questions",
         gold=only(*range(30)), traces=only(*range(30)), files=table(HIT, "{ max_drop = 0.02 }")),
    Case("the worst questions taken out of gold", DROP, 4, "gone or changed: q00, q01",
         gold=only(*range(10, N)), traces=only(*range(10, N)),
         files=table(HIT, "{ max_drop = 0.02 }")),
    Case("other questions under the same ids, and the baseline of ragauge.toml",
         SCORE, 4, f"no question has {HIT} in both runs",
         gold=asks_otherwise, traces=without("q"),
         files={"ragauge.toml": 'baseline = "all.json"\n[gates]\n'
                + table(HIT, "{ max_drop = 0.02 }")["gates.toml"]}),
    Case("other questions under the same ids", DROP, 4, "no question has",
         gold=asks_otherwise, traces=without("q"),
         files=table(HIT, "{ max_drop = 0.02 }")),
    Case("ten other questions under their ids", DROP, 4, "less than 90 %",
         gold=lambda row: asks_otherwise(row) if number_of(row) < 12 else row,
         traces=without("q"), files=table(HIT, "{ max_drop = 0.02 }")),
    Case("evidence swapped under the same ids", DROP, 4, "no question has",
         gold=lambda row: {**row, "gold_citations": ["doc0#2"]},
         files=table(HIT, "{ max_drop = 0.02 }")),
    Case("evidence taken out of 20 items", DROP, 4, "less than 90 %",
         gold=lambda row: without("gold_citations")(row) if number_of(row) < 20 else row,
         files=table(HIT, "{ max_drop = 0.02 }")),
    Case("all ids renamed", DROP, 4, "no question has", gold=renamed, traces=renamed,
         files=table(HIT, "{ max_drop = 0.02 }")),
    Case("no baseline", f"{SCORE} --gates gates.toml", 4, "there is no baseline",
         files=table(HIT, "{ max_drop = 0.02 }")),
    Case("a baseline that is not there", f"{SCORE} --baseline none.json --gates gates.toml", 2,
         "none.json", files=table(HIT, "{ max_drop = 0.02 }")),
    Case("a baseline that is no scores file",
         f"{SCORE} --baseline gold.jsonl --gates gates.toml", 3, "not a scores file",
         files=table(HIT, "{ max_drop = 0.02 }")),
    Case("a baseline of another profile", f"{SCORE} --baseline ship.json --gates gates.toml", 4,
         "is not in the baseline", files=table(HIT, "{ max_drop = 0.02 }")),
    Case("a baseline of other options", f"{DROP} --missing exclude", 4, "different missing",
         files=table(HIT, "{ max_drop = 0.02 }")),
    Case("a metric that the baseline lacks", DROP, 4, "is not in the baseline",
         files=table("answer.token_f1", "{ max_drop = 0.02 }")),
    Case("a drop of a third", DROP, 1, "FAIL", traces=lost(*range(0, N, 3)),
         files=table(HIT, "{ max_drop = 0.02 }")),
    Case("a drop of one question more than allowed", DROP, 1, "FAIL", traces=lost(0, 1),
         files=table(HIT, "{ max_drop = 0.02 }")),
    Case("a drop that is not surely small", DROP, 1, "upper bound",
         files=table(HIT, '{ max_drop = 0.02, policy = "confident-pass" }')),
    Case("a drop that is surely large", DROP, 1, "surely beyond", traces=lost(*range(0, N, 3)),
         files=table(HIT, '{ max_drop = 0.02, policy = "confident-fail" }')),
    Case("a drop that may be large", f"{DROP} --fail-on-review", 1, "REVIEW", traces=lost(0, 1),
         files=table(HIT, '{ max_drop = 0.02, policy = "confident-fail" }')),
    Case("a drop of traces that are missing", DROP, 4, "no trace", traces=missing(*range(0, N, 3)),
         files=table(HIT, "{ max_drop = 0.02 }")),
    Case("a drop of traces that are missing, let pass", f"{DROP} --allow-missing", 1, "FAIL",
         traces=missing(*range(0, N, 3)), files=table(HIT, "{ max_drop = 0.02 }")),
]  # fmt: skip
LATER = '"2999-01-31"'
WAIVERS = [
    config("a waiver without a reason", waiver(gate=f'"{HIT}"', expires=LATER), "reason"),
    config("a waiver with an empty reason",
           waiver(gate=f'"{HIT}"', reason='""', expires=LATER), "has no reason"),
    config("a waiver with a blank reason",
           waiver(gate=f'"{HIT}"', reason='"  \\t "', expires=LATER), "has no reason"),
    config("a waiver without an end", waiver(gate=f'"{HIT}"', reason='"known"'), "expires"),
    config("a waiver of no date",
           waiver(gate=f'"{HIT}"', reason='"known"', expires='"never"'), "expires"),
    config("a waiver of another gate",
           waiver(gate='"over"', reason='"known"', expires=LATER), "there is no such gate"),
    config("a waiver that expired",
           waiver(gate=f'"{HIT}"', reason='"known"', expires='"2020-01-31"'),
           "the waiver expired on 2020-01-31", code=1),
    config("--as-of that revives a waiver",
           waiver(gate=f'"{HIT}"', reason='"known"', expires='"2020-01-31"'),
           "waivers are not judged by a day before it", more="--as-of 2020-01-01"),
    config("--as-of one day too early",
           waiver(gate=f'"{HIT}"', reason='"known"', expires='"2025-01-31"'),
           "waivers are not judged by a day before it", more="--as-of 2025-01-31"),
    config("--as-of that is no date",
           waiver(gate=f'"{HIT}"', reason='"known"', expires='"2020-01-31"'),
           "YYYY-MM-DD", more="--as-of yesterday"),
    config("--as-of after the waiver",
           waiver(gate=f'"{HIT}"', reason='"known"', expires='"2998-01-31"'),
           "the waiver expired", code=1, more="--as-of 2999-01-01"),
]  # fmt: skip
POLICIES = [
    Case("30 of 30 is not surely 0.95", f"{SCORE} --gates gates.toml", 1, "lower bound 0.88",
         gold=only(*(n for n in range(36) if n % 6 != 5)),
         traces=only(*(n for n in range(36) if n % 6 != 5)),
         files=table(HIT, '{ threshold = 0.95, policy = "confident-pass" }')),
    Case("the same by its old name", f"{SCORE} --gates gates.toml", 1, "lower bound 0.88",
         gold=only(*(n for n in range(36) if n % 6 != 5)),
         traces=only(*(n for n in range(36) if n % 6 != 5)),
         files=table(HIT, '{ threshold = 0.95, policy = "interval" }')),
    Case("5 of 5 is not surely 0.8", f"{SCORE} --gates gates.toml", 1, "lower bound 0.56",
         gold=only(0, 1, 2, 3, 4), traces=only(0, 1, 2, 3, 4),
         files=table(RECALL, '{ threshold = 0.8, policy = "confident-pass" }')),
    Case("50 of 50 reciprocal ranks are not surely 0.95", f"{SCORE} --gates gates.toml", 1, "0.92",
         files=table("retrieval.mrr@10", '{ threshold = 0.95, policy = "confident-pass" }')),
    Case("nothing is surely 1", f"{SCORE} --gates gates.toml", 1, "lower bound",
         files=table(HIT, '{ threshold = 1.0, policy = "confident-pass" }')),
    Case("nothing is surely never", f"{SCORE} --gates gates.toml", 1, "upper bound",
         files=table("retrieval.empty", '{ threshold = 0.0, policy = "confident-pass" }')),
    Case("surely below", f"{SCORE} --gates gates.toml", 1, "surely beyond",
         traces=lost(*range(0, N, 2)),
         files=table(HIT, '{ threshold = 0.9, policy = "confident-fail" }')),
    Case("perhaps below", f"{SCORE} --gates gates.toml --fail-on-review", 1, "REVIEW",
         traces=lost(0, 1, 2, 3),
         files=table(HIT, '{ threshold = 0.95, policy = "confident-fail" }')),
    Case("in the review band", f"{SCORE} --gates gates.toml --fail-on-review", 1, "REVIEW",
         traces=lost(0, 1), files=table(HIT, "{ threshold = 0.95, review = [0.94, 0.98] }")),
    Case("no interval", f"{SCORE} --gates gates.toml --no-intervals", 4, "no interval to judge by",
         files=table(HIT, '{ threshold = 0.5, policy = "confident-fail" }')),
    Case("one below the threshold", f"{SCORE} --gates gates.toml", 1, "FAIL", traces=lost(0, 1, 2),
         files=table(HIT, '">= 0.95"')),
    Case("a hair below the threshold", f"{SCORE} --gates {HIT}>=0.9400000001", 1, "FAIL",
         traces=lost(0, 1, 2)),
]  # fmt: skip
KEY = {"compare.toml": f'"{HIT}" = {{ max_drop = 0.02 }}\n'}
COMPARE = "compare good.jsonl trace.jsonl --gold gold.jsonl --profile all"
COMPARISONS = [
    Case("compare: an unknown evidence key", f"{COMPARE} --fail-on regression", 4,
         "only 0 of 60 questions expect any evidence",
         gold=lambda row: {**without("gold_citations")(row), "evidense": row["gold_citations"]},
         traces=lost(*EVERY)),
    Case("compare: an unknown evidence key, by a gate", f"{COMPARE} --gates compare.toml", 4,
         "no question has",
         gold=lambda row: {**without("gold_citations")(row), "evidense": row["gold_citations"]},
         traces=lost(*EVERY), files=KEY),
    Case("compare: an unknown evidence key in most items", f"{COMPARE} --fail-on regression", 4,
         "only 2 of 60 questions expect", traces=lost(0, *EVERY[3:]),
         gold=lambda row: row if number_of(row) in (1, 2) else {
             **without("gold_citations")(row), "evidense": row["gold_citations"]}),
    Case("compare: all lost but one", f"{COMPARE} --fail-on regression", 1, "regression",
         traces=lost(*EVERY[1:])),
    Case("compare: all lost but one, by a gate", f"{COMPARE} --gates compare.toml", 1, "FAIL",
         traces=lost(*EVERY[1:]), files=KEY),
    # Not one hit is named as in gold, and what is cited is: are these ids of another index?
    Case("compare: all lost", f"{COMPARE} --fail-on regression", 4, "no hit is",
         traces=lost(*EVERY)),
    Case("compare: all lost, by a gate", f"{COMPARE} --gates compare.toml", 4, "no hit is",
         traces=lost(*EVERY), files=KEY),
    Case("compare: a level on the command line", f"{COMPARE} --gates {HIT}>=0.9", 2, "max_drop"),
    Case("compare: no gates, and they are required", f"{COMPARE} --require-gates", 2, "no gate is"),
    Case("compare: an empty run", f"{COMPARE} --fail-on regression", 5, "no trace of",
         traces=missing(*EVERY)),
    Case("compare: max_drop = 2", f"{COMPARE} --gates compare.toml", 2, "outside the range",
         traces=lost(*EVERY), files={"compare.toml": f'"{HIT}" = {{ max_drop = 2 }}\n'}),
    Case("compare: traces of other questions", f"{COMPARE} --fail-on regression", 4,
         "--allow-other-questions",
         traces=lambda row: {**row, "q": "Who wrote this handbook, and when was it printed?"}),
]  # fmt: skip
CASES = [
    *THRESHOLDS, *TABLES, *FEW, *ABSENT, *ERRORED, *BASELINES, *WAIVERS, *POLICIES, *COMPARISONS,
]  # fmt: skip


def test_there_are_many_ways_and_each_is_one() -> None:
    names = [case.name for case in CASES]
    assert len(names) == len(set(names))
    assert len(names) >= 120


@cases("case", CASES, ids=lambda case: case.name)
def test_no_green_build(case: Case, folder: Folder, baseline: dict[str, bytes]) -> None:
    folder.write("gold.jsonl", edited(gold_rows(), case.gold))
    folder.write("trace.jsonl", edited(trace_rows(), case.traces))
    folder.write("good.jsonl", trace_rows())
    contents: dict[str, str | bytes] = {**baseline, **case.files}
    for name, content in contents.items():
        folder.write(name, content)
    outcome = folder.run(*case.command.split())
    text = " ".join(f"{outcome.out}\n{outcome.err}".split())
    assert outcome.exit_code == case.code, text[-1500:]
    assert case.phrase in text, text[-1500:]
    last = outcome.out.strip().splitlines()[-1:]
    assert not (last and last[0].startswith("PASS"))


@cases(
    ("command", "files"),
    [
        (f"{SCORE} --gates {HIT}>=0.95", {}),
        (SHIP, {}),
        ("score gold.jsonl trace.jsonl --profile smoke", {}),
        (DROP, table(HIT, "{ max_drop = 0.02 }")),
        (DROP, table(HIT, '{ max_drop = 0.0, policy = "confident-fail" }')),
        (f"{SCORE} --gates gates.toml",
         table(HIT, '{ threshold = 0.9, policy = "confident-pass" }')),
        (f"{COMPARE} --fail-on regression --gates compare.toml", KEY),
    ],
)  # fmt: skip
def test_the_right_run_passes(
    command: str, files: dict[str, str], folder: Folder, baseline: dict[str, bytes]
) -> None:
    """Else all that stands above would hold for nothing."""
    for name, rows in (("gold", gold_rows()), ("trace", trace_rows()), ("good", trace_rows())):
        folder.write(f"{name}.jsonl", rows)
    contents: dict[str, str | bytes] = {**baseline, **files}
    for name, content in contents.items():
        folder.write(name, content)
    outcome = folder.run(*command.split())
    assert outcome.exit_code == 0, outcome.out + outcome.err


STORED = [
    ("gone", only(*range(40)), only(*range(40)), "less than 90 %"),
    ("asked otherwise", asks_otherwise, without("q"), "no unchanged question"),
    (
        "asked otherwise in part",
        lambda row: asks_otherwise(row) if number_of(row) < 20 else row,
        without("q"),
        "gone or changed: q00, q01",
    ),
]


@pytest.mark.parametrize(
    ("gold", "traces", "phrase"),
    [row[1:] for row in STORED],
    ids=[row[0] for row in STORED],
)
def test_stored_runs_are_judged_as_files_are(
    gold: Edit, traces: Edit, phrase: str, folder: Folder
) -> None:
    """Two stored runs are first brought on common ground, on which nothing is missing any more."""
    folder.write("gates.toml", f'"{HIT}" = {{ max_drop = 0.02 }}\n')
    for name, edits in (("old", (None, None)), ("new", (gold, traces))):
        folder.write("gold.jsonl", edited(gold_rows(), edits[0]))
        folder.write("trace.jsonl", edited(trace_rows(), edits[1]))
        stored = ("--store", "sqlite:///runs.db", "--run-id", name)
        assert folder.run(*SCORE.split(), *stored).exit_code == 0
    for command in ("gate new --baseline old", "compare old new"):
        outcome = folder.run(
            *command.split(), "--gates", "gates.toml", "--store", "sqlite:///runs.db"
        )
        assert outcome.exit_code == 4, outcome.out + outcome.err
        assert phrase in " ".join(f"{outcome.out} {outcome.err}".split())


def test_a_run_with_a_limit_is_judged_on_its_own_questions(folder: Folder) -> None:
    """Its snapshot says that it has fewer: it is not mistaken for one that lost some."""
    folder.write("gates.toml", f'"{HIT}" = {{ max_drop = 0.02 }}\n')
    folder.write("gold.jsonl", gold_rows())
    rows = {row["q"]: row["retrieved_ids"] for row in trace_rows()}
    folder.write(
        "own.py", f"ROWS = {rows!r}\n\ndef ask(question):\n    return {{'hits': ROWS[question]}}\n"
    )
    asked = "run --gold gold.jsonl --target python:own.py:ask --profile all --no-timing"
    store = ("--store", "sqlite:///runs.db")
    assert folder.run(*asked.split(), "--run-id", "whole", *store).exit_code == 0
    judged = ("--gates", "gates.toml", "--baseline", "whole", *store)
    limited = folder.run(*asked.split(), "--limit", "20", "--run-id", "part", *judged)
    assert limited.exit_code == 0, limited.out + limited.err
    assert folder.run("gate", "part", *judged).exit_code == 0
