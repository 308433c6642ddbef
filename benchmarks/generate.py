"""Owns the synthetic data of the benchmarks: a gold file and a trace file like real ones.

Run as `python benchmarks/generate.py --traces 1000000 --questions 10000 --out DIR`.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from random import Random

VERSION = 1  # raise it whenever the rows change, so that stored files are made again

HITS = 10
CLAIM_LENGTH = 150
FACT_WORDS = 5  # a fact takes the place of so many filler words
REFUSAL = "not in context"
# The mix of the rows, as shares.
ANSWERABLE = 0.8
RETRIEVED = 0.8  # traces whose ten ids hold the evidence
REFUSED, REFUSED_UNANSWERABLE = 0.06, 0.5  # together about 15 % of all traces
CONTAINED = 0.8  # answers to answerable questions that state the fact
UPPER_CASE = 0.2  # of those, in other letters than the gold file
MISCITED, UNRETRIEVED = 0.05, 0.03
# Already escaped for JSON: a few words need escapes or more than one byte, as in real text.
FILLER = (
    "the index keeps each block under its own section and a reader that follows an older link "
    "finds that page again because every release stores when values were written by which "
    "service so limits apply per tenant not per request while naïve clients retry after "
    r"\"timeout\" until quota returns default region encrypted backups expire unless pinned"
)
SUBJECTS = "cache,queue,replica,tenant,snapshot,token,gateway,shard,ledger,volume"
VERBS = "rejects,keeps,drops,retries,signs,merges,expires,copies,limits,encrypts"
OBJECTS = "null keys,old rows,late events,empty pages,large files,stale leases"


@dataclass(frozen=True)
class Parameters:
    """What decides every byte of the two files."""

    traces: int
    questions: int
    seed: int = 1
    version: int = VERSION


@dataclass(frozen=True)
class Files:
    """Where the two files are, and how large the trace file is."""

    gold: Path
    trace: Path
    trace_bytes: int


@dataclass(frozen=True, slots=True)
class Question:
    """A gold row, with the parts of its traces that never change already formatted."""

    gold_line: str
    head: str
    asked: str
    answerable: bool
    ids: tuple[str, ...]  # each in JSON quotes
    fact: str


def build_questions(parameters: Parameters, random: Random, ids: list[str]) -> list[Question]:
    """Invent the gold set: 80 % answerable, one to three evidence ids each."""
    subjects, verbs, objects = (words.split(",") for words in (SUBJECTS, VERBS, OBJECTS))
    questions = []
    for number in range(parameters.questions):
        subject, verb, thing = (random.choice(words) for words in (subjects, verbs, objects))
        fact = f"{subject} {number} {verb} {thing}"
        answerable = random.random() < ANSWERABLE
        count = random.choices((1, 2, 3), weights=(70, 20, 10))[0] if answerable else 0
        evidence = tuple(random.sample(ids, count))
        row = {
            "qid": f"Q{number:06d}",
            "question": f"Is it true that {subject} {number} {verb}?",
            "answerable": answerable,
            "gold_claim_substr": [fact] if answerable else [],
            "gold_citations": [json.loads(each) for each in evidence],
        }
        questions.append(
            Question(
                gold_line=json.dumps(row) + "\n",
                head=f'{{"qid":"{row["qid"]}","seed":',
                asked=f',"q":"{row["question"]}","retrieved_ids":[',
                answerable=answerable,
                ids=evidence,
                fact=fact,
            )
        )
    return questions


def build_sentences(random: Random, count: int) -> list[list[str]]:
    """Make the stock of filler that claims are put together from."""
    stock, sentences = FILLER.split(), []
    for _ in range(count):
        words: list[str] = []
        while sum(map(len, words)) + len(words) < CLAIM_LENGTH:
            words.append(random.choice(stock))
        sentences.append(words)
    return sentences


def answer_of(
    question: Question, hits: list[str], random: Random, sentences: list[list[str]]
) -> str:
    """Format one answer: a refusal, a right claim or a wrong one, mostly citing what was found."""
    chance = random.random
    if chance() < (REFUSED if question.answerable else REFUSED_UNANSWERABLE):
        return f'{{"claim":"{REFUSAL}","citations":[]}}'
    words = sentences[int(chance() * len(sentences))]
    if question.answerable and chance() < CONTAINED:
        fact = question.fact.upper() if chance() < UPPER_CASE else question.fact
        place = int(chance() * (len(words) - FACT_WORDS))
        words = [*words[:place], fact, *words[place + FACT_WORDS :]]
    claim = " ".join(words)
    found = [each for each in question.ids if each in hits]
    if not found or chance() < MISCITED:
        found = [hits[int(chance() * HITS)]]
    if chance() < UNRETRIEVED:
        found.append('"elsewhere#1"')  # cited, but never retrieved
    return f'{{"claim":"{claim}.","citations":[{",".join(found)}]}}'


def trace_blocks(
    parameters: Parameters, questions: list[Question], random: Random, ids: list[str]
) -> Iterator[str]:
    """Yield the trace lines, one seed of all questions at a time."""
    chance = random.random
    sentences = build_sentences(random, 5_000)
    starts = len(ids) - HITS
    for seed, first in enumerate(range(0, parameters.traces, parameters.questions)):
        random.shuffle(questions)
        lines = []
        for question in questions[: parameters.traces - first]:
            start = int(chance() * starts)
            hits = ids[start : start + HITS]
            if chance() < RETRIEVED:
                for each in question.ids:
                    hits[int(chance() * chance() * HITS)] = each  # squared: near the top
            answer = answer_of(question, hits, random, sentences)
            lines.append(
                f'{question.head}{seed}{question.asked}{",".join(hits)}],"answer_json":{answer}}}\n'
            )
        yield "".join(lines)


def generate(parameters: Parameters, out: Path) -> Files:
    """Write gold.jsonl and trace.jsonl into `out`, unless they are there already."""
    out.mkdir(parents=True, exist_ok=True)
    gold, trace, stamp = out / "gold.jsonl", out / "trace.jsonl", out / "stamp.json"
    if stamp.exists() and gold.exists() and trace.exists():
        wanted = asdict(parameters) | {"trace_bytes": trace.stat().st_size}
        if json.loads(stamp.read_text(encoding="utf-8")) == wanted:
            return Files(gold, trace, trace.stat().st_size)
    stamp.unlink(missing_ok=True)  # written last: an interrupted run leaves no stamp

    random = Random(parameters.seed)
    ids = [f'"p{number // 10}#{number % 10}"' for number in range(100_000)]
    random.shuffle(ids)
    questions = build_questions(parameters, random, ids)
    with gold.open("w", encoding="utf-8", newline="\n") as file:
        file.writelines(question.gold_line for question in questions)
    with trace.open("w", encoding="utf-8", newline="\n") as file:
        file.writelines(trace_blocks(parameters, questions, random, ids))
    size = trace.stat().st_size
    stamp.write_text(json.dumps(asdict(parameters) | {"trace_bytes": size}), encoding="utf-8")
    return Files(gold, trace, size)


def main() -> int:
    """Generate from the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--traces", type=int, default=1_000_000)
    parser.add_argument("--questions", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--out", type=Path, required=True)
    options = parser.parse_args()
    files = generate(Parameters(options.traces, options.questions, options.seed), options.out)
    print(f"{files.gold.name}, {files.trace.name}: {files.trace_bytes:,} bytes", file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main())
