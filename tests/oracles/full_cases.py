"""Random small gold sets and runs for every metric, in one spelling, drawn from small worlds.

A case is a world of blocks (ids that say nothing, ids of the seed's form, foreign chunks, ids with
their document) and a flavour of run (answers, turns, retrieval alone, grades). Blocks are few and
short, so that ties, repeats, overlaps and near misses happen all the time.

What the specification leaves open is kept out, so that a difference is a mistake of one side:
a citation never says less about its place than a hit with the same id, hits of traces that are not
scored are hits of scored ones too, and a question is asked with numbers or with texts, not both.
"""

from __future__ import annotations

import copy
import itertools
import random
from dataclasses import dataclass
from typing import Any

Row = dict[str, Any]

FLAVOURS = (
    "plain",
    "seed",
    "chunks",
    "typed",
    "turns",
    "index",
    "graded",
    "mixed",
)
PHRASES = (
    "rejects null keys",
    "Null Keys",
    "opens at nine",
    "caf\u00e9 au lait",
    "cafe\u0301 au lait",
    "see 4",
    "abcd",
)
SAYINGS = (
    "It rejects null keys.",
    "NULL KEYS are refused",
    "The shop opens at nine; see 4.",
    "A cafe\u0301 au lait",
    "abcd",
    "So.",
    "",
)
TOKENS = ("not in context", " Not in context\n", "NOT IN CONTEXT")
NEARLY_TOKENS = ("Not in context.", "not  in context", "I don't know.", "I do not know why.")
CONSTRAINTS = ("cite first", "no advice", "Cite first")
STATES = ("→", "←", "<>", "×")
LETTERS = "pctfx"


def case(seed: int) -> tuple[list[Row], list[Row]]:
    """Gold rows and trace rows, the same ones for the same seed."""
    rng = random.Random(seed)
    return _Maker(rng, FLAVOURS[seed % len(FLAVOURS)]).rows()


@dataclass(frozen=True)
class _Block:
    """A block of the world, with all that there is to know of it."""

    id: str
    doc: str | None
    section: str | None
    start: int
    end: int
    tells_section: bool  # by its id


@dataclass
class _World:
    name: str
    blocks: list[_Block]

    @property
    def docs(self) -> list[str]:
        return sorted({block.doc for block in self.blocks if block.doc})

    def of(self, doc: str) -> list[_Block]:
        return [block for block in self.blocks if block.doc == doc]


@dataclass
class _Run:
    """How the questions of a case are asked, and what its traces carry."""

    paraphrases: int
    numbered: bool
    seeds: tuple[int | None, ...]
    answers: bool
    skill: float  # how often evidence is found and cited
    refusing: float
    delta_s: str  # "", "list" or "own"
    states: bool
    timed: float


class _Maker:
    def __init__(self, rng: random.Random, flavour: str) -> None:
        self.rng = rng
        self.flavour = flavour
        self.world = self._world()
        self.run = _Run(
            paraphrases=0 if flavour == "turns" else rng.choice((0, 0, 2, 3)),
            numbered=rng.random() < 0.5,
            seeds=rng.choice(((None,), (7,), (0, 1), (0, 1), (1, 2, 3))),
            answers=flavour != "index",
            skill=rng.choice((0.3, 0.7, 1.0)),
            refusing=rng.choice((0.0, 0.2, 0.5, 0.9)),
            delta_s=rng.choice(("", "list", "list", "own")),
            states=rng.random() < 0.6,
            timed=rng.choice((0.0, 0.5, 1.0)),
        )

    def chance(self, share: float) -> bool:
        return self.rng.random() < share

    # --- the whole --------------------------------------------------------------------------------

    def rows(self) -> tuple[list[Row], list[Row]]:
        rng = self.rng
        gold: list[Row] = []
        size = rng.randint(3, 12)
        for number in range(size):
            qid = f"q{number:02d}"
            if self.flavour == "turns":
                gold += self._dialogue(qid)
            else:
                gold.append(self._item(qid, number))
        traces: list[Row] = []
        untraced = rng.choice((0.0, 0.1, 0.3))
        for item in gold:
            if not traces or not self.chance(untraced):  # a run has at least one trace
                traces += self._traces_of(item, gold)
        if self.chance(0.3):
            traces += [self._trace({"qid": f"stranger{n}"}, {}) for n in range(rng.randint(1, 2))]
        rng.shuffle(gold)
        rng.shuffle(traces)
        _settle(gold, traces)
        return gold, traces

    def _dialogue(self, qid: str) -> list[Row]:
        """Rows of one conversation: one for each turn, one for all, or one for the other turns."""
        turns: list[int | None] = list(range(1, self.rng.randint(1, 3) + 1))
        form = self.rng.random()
        if form < 0.25:
            turns = [None]
        elif form < 0.4:
            turns = [*turns[:1], None]
        rows = []
        for turn in turns:
            row = self._item(qid, turn or 0)
            if turn is not None:
                row["turn"] = turn
            rows.append(row)
        return rows

    def _traces_of(self, item: Row, gold: list[Row]) -> list[Row]:
        rng = self.rng
        texts = item.get("paraphrases") or []
        turns: list[int | None] = [item.get("turn")]
        if self.flavour == "turns" and "turn" not in item:
            taken = {row.get("turn") for row in gold if row["qid"] == item["qid"]}
            turns = [turn for turn in (1, 2, 3) if turn not in taken]
        asked = range(len(texts)) if texts else (None,)
        steady = self._trace({}, item) if self.chance(0.4) else None
        traces: list[Row] = []
        for turn, number, seed in itertools.product(turns, asked, self.run.seeds):
            if traces and self.chance(0.1):
                continue
            slot: Row = {"qid": item["qid"]}
            if number is None:
                if "question" in item and self.chance(0.5):
                    slot["query"] = item["question"]
            elif self.run.numbered:
                slot["paraphrase"] = number
            else:
                slot["query"] = texts[number]
            if seed is not None:
                slot["seed"] = seed
            if turn is not None:
                slot["turn"] = turn
            if steady and self.chance(0.85):
                traces.append(copy.deepcopy({**slot, **steady}))
            else:
                traces += [self._trace(slot, item) for _ in range(rng.choice((1,) * 8 + (2,)))]
        return traces

    # --- worlds -----------------------------------------------------------------------------------

    def _world(self) -> _World:
        rng = self.rng
        names = {"plain": "plain", "graded": "plain", "turns": rng.choice(("plain", "seed"))}
        name = names.get(self.flavour, self.flavour)
        if name in ("index", "mixed"):
            name = rng.choice(("plain", "seed", "chunks", "typed"))
        if name == "plain":
            return _World(name, [_Block(f"c{n}", None, None, 0, 0, False) for n in range(1, 13)])
        if name == "seed":
            return _World(name, self._laid_out("guide.md", name))
        blocks = self._laid_out("guide.md", name) + self._laid_out("api.md", name)
        if name == "typed":
            blocks += [_Block(f"p1#{n}", "p1", None, 40 * n, 40 * n + 40, False) for n in (1, 2)]
        return _World(name, blocks)

    def _laid_out(self, doc: str, world: str) -> list[_Block]:
        """The blocks of a document, one after the other; foreign chunks may overlap."""
        rng = self.rng
        blocks = []
        place = rng.randint(0, 20)
        for number in range(1, rng.randint(5, 8)):
            end = place + rng.choice((20, 35, 50, 80, 120))
            section = rng.choice(("S.1", "S.1.2", "S.1.10", "S.1.2.1", "S.2", "S.2.1"))
            tells = world in ("seed", "typed")
            name = f"{section}.{rng.choice(LETTERS)}.Bk{number:03d}{rng.choice(('', 'a'))}"
            if world == "typed" and doc == "api.md":
                name = f"{doc}|r=8c1e9a02|s={section[2:]}|p=000|b={number:03d}"
            elif world == "typed":
                name = f"{doc}#{name}"
            elif world == "chunks":
                name = f"k{doc[0]}{number}"
            blocks.append(_Block(name, doc, section, place, end, tells))
            place = end + rng.choice((0, 0, 1, 10))
            if world == "chunks":
                place -= rng.choice((0, 0, 15))
        return blocks

    # --- gold -------------------------------------------------------------------------------------

    def _item(self, qid: str, number: int) -> Row:
        rng = self.rng
        row: Row = {"qid": qid}
        if self.run.paraphrases and self.chance(0.9):
            texts = [f"Question {qid}, put in way {way}?" for way in range(self.run.paraphrases)]
            row["paraphrases"] = texts
            if self.chance(0.5):
                row["question"] = texts[0]
        else:
            row["question"] = f"Question {qid}, part {number}?"
        expect = rng.choice((True, True, True, False, None))
        if expect is not None:
            row["answerable"] = expect
        if expect is not False or self.chance(0.2):
            self._put_evidence(row)
        elif self.chance(0.2):
            row["relevant"] = []
        self._put_words(row)
        row |= {
            name: value
            for name, value in (
                ("type", rng.choice(("prose", "code", "table"))),
                ("tags", rng.sample(("old", "new", "odd"), 2)),
                ("lang", rng.choice(("en", "de"))),
                ("difficulty", rng.choice(("easy", "hard"))),
            )
            if self.chance(0.4)
        }
        return row

    def _put_evidence(self, row: Row) -> None:
        rng = self.rng
        ids = [block.id for block in rng.sample(self.world.blocks, rng.randint(1, 4))]
        others = [block.id for block in self.world.blocks if block.id not in ids]
        if self.flavour == "graded":
            self._put_grades(row, ids, others)
        elif self.chance(0.9):
            self._put_relevant(row, ids, others)
        if self.chance(0.6):
            size = min(len(others), rng.randint(1, 3))
            row["negatives"] = rng.sample(others, size)
        if self.world.name in ("chunks", "typed") and self.chance(0.5):
            self._put_docs(row, ids)
        if self.chance(0.7):
            self._put_anchor(row, ids)

    def _put_grades(self, row: Row, ids: list[str], others: list[str]) -> None:
        rng = self.rng
        row.setdefault("answerable", True)
        row["grades"] = {name: rng.choice((1, 2, 3)) for name in ids}
        row["grades"] |= {name: rng.choice((0, 0, -1, 1)) for name in others[: rng.randint(0, 3)]}
        if self.chance(0.3):
            ungraded = [name for name in others if name not in row["grades"]]
            row["relevant"] = rng.sample(ids, 1) + ungraded[: rng.randint(0, 2)]
            row["relevant"] += row["relevant"][: rng.choice((0, 0, 1))]
        if self.chance(0.2):
            row["groups"] = [ids[:2], others[:2]]

    def _put_relevant(self, row: Row, ids: list[str], others: list[str]) -> None:
        rng = self.rng
        if self.chance(0.25):
            members = [*ids, *others[:2]]
            row["groups"] = [
                rng.sample(members, rng.randint(1, min(2, len(members))))
                for _ in range(rng.randint(1, 3))
            ]
            if self.chance(0.5):
                return
        known = {block.id: block for block in self.world.blocks}
        spanned = self.world.name != "plain" and self.chance(
            0.8 if self.world.name == "chunks" else 0.5
        )
        entries: list[str | Row] = []
        for name in ids:
            block = known[name]
            draw = rng.random()
            if not spanned or draw < 0.2 or block.section is None:
                entries.append(name)
            elif draw < 0.5:
                entries.append({"id": name, **_anchor(block.doc, block.start, block.end)})
            else:
                start = max(0, block.start + rng.randint(-25, 25))
                entries.append(_anchor(block.doc, start, start + rng.choice((10, 30, 60, 130))))
        entries += entries[: rng.choice((0, 0, 0, 1))]  # the same again is no other piece
        row["relevant"] = entries

    def _put_docs(self, row: Row, ids: list[str]) -> None:
        """All documents of the evidence, and maybe one more."""
        docs = {block.doc for block in self.world.blocks if block.id in ids and block.doc}
        for entry in row.get("relevant", []):
            if isinstance(entry, dict):
                docs.add(entry["doc"])
        for group in row.get("groups", []):
            docs |= {block.doc for block in self.world.blocks if block.id in group and block.doc}
        if self.chance(0.3):
            docs.add(self.rng.choice([*self.world.docs, "missing.md"]))
        row["expected_doc_ids"] = sorted(docs)

    def _put_anchor(self, row: Row, ids: list[str]) -> None:
        """A section; where a gold span has no section of its own, only the one that it lies in."""
        rng = self.rng
        block = next(block for block in self.world.blocks if block.id == rng.choice(ids[:1]))
        section = block.section or "S.1"
        doc = block.doc
        loose = self._loose_spans(row)
        if loose:
            doc = loose[0]["doc"]
            around = {
                other.section
                for span in loose
                for other in self.world.of(span["doc"])
                if other.start < span["end"] + 60 and span["start"] - 60 < other.end
            }
            if len(around) != 1:
                return
            section = around.pop() or "S.1"
        elif self.chance(0.3):
            section = section.rpartition(".")[0]
            section = section if section != "S" else "S.1"
        told = "expected_doc_ids" in row
        if self.chance(0.3 if self.world.name == "chunks" else 1) and not told:
            section = f"{doc}#{section}" if self.world.name in ("chunks", "typed") else section
        row["anchor_section"] = section

    def _loose_spans(self, row: Row) -> list[Row]:
        """The gold spans whose section no id tells."""
        known = {block.id: block for block in self.world.blocks}
        spans = [entry for entry in row.get("relevant", []) if isinstance(entry, dict)]
        return [s for s in spans if "id" not in s or not known[s["id"]].tells_section]

    def _put_words(self, row: Row) -> None:
        rng = self.rng
        if self.chance(0.5):
            row["gold_claim_substr"] = rng.sample(PHRASES, rng.randint(0, 3))
        if self.chance(0.3):
            row["must_contain"] = rng.sample(PHRASES, rng.randint(0, 2))
        if self.chance(0.3):
            row["forbidden"] = rng.sample(PHRASES, rng.randint(0, 2))
        if self.chance(0.3):
            row["constraints"] = rng.sample(CONSTRAINTS, rng.randint(1, 2))

    # --- traces -----------------------------------------------------------------------------------

    def _trace(self, slot: Row, item: Row) -> Row:
        rng = self.rng
        trace = dict(slot)
        places = self._places(item)
        if self.chance(0.95):
            trace["topk"] = self._hits(item, places)
            if self.run.delta_s == "list" and self.chance(0.9):
                trace["ΔS"] = [_delta_s(rng) for _ in trace["topk"]]
        if self.run.answers and self.chance(0.93):
            trace["answer_json"] = self._answer(item, trace.get("topk", []), places)
        if self.run.states and self.chance(0.8):
            trace["λ_state"] = rng.choice((STATES[0], *STATES))
        if self.chance(self.run.timed):
            self._put_times(trace)
        if self.chance(0.06):
            trace["error"] = rng.choice(("timeout", {"code": 500}))
            trace.pop("λ_state", None)
        return trace

    def _places(self, item: Row) -> set[str]:
        """What is shown of a block beside its id, alike in all hits and citations of a trace."""
        named = {entry["doc"] for entry in item.get("relevant", []) if isinstance(entry, dict)}
        if self.world.name == "chunks":
            told = "expected_doc_ids" in item or "anchor_section" in item
            if len(named) == 1 and not told and self.chance(0.4):
                return {"section", "offsets"}
            return {"doc", "section", "offsets"}
        if self.world.name in ("seed", "typed") and self.chance(0.75):
            return {"offsets"}
        return set()

    def _hits(self, item: Row, places: set[str]) -> list[Row]:
        rng = self.rng
        blocks = rng.sample(self.world.blocks, rng.randint(0, len(self.world.blocks)))
        blocks = blocks[: rng.choice((3, 6, 12))]
        evidence = set(self._wanted(item))
        if self.chance(self.run.skill):
            others = evidence | set(item.get("negatives", []))
            blocks += [b for b in self.world.blocks if b.id in others and b not in blocks]
        rng.shuffle(blocks)
        if self.chance(self.run.skill):
            blocks.sort(key=lambda block: block.id not in evidence)
            if len(blocks) > 2 and self.chance(0.5):
                blocks[0], blocks[2] = blocks[2], blocks[0]
        rows = [_shown(block, places) for block in blocks]
        if self.run.delta_s == "own":
            for row in rows:
                if self.chance(0.8):
                    row["ΔS"] = _delta_s(rng)
        if rows and self.chance(0.25):
            rows.insert(rng.randint(0, len(rows)), dict(rng.choice(rows)))
        if self.chance(0.5):
            for place, row in enumerate(rows):
                row["score"] = round(0.99 - 0.03 * place, 2)
        return rows

    def _wanted(self, item: Row) -> list[str]:
        """Ids of evidence, and of blocks that share bytes with evidence."""
        spans = [entry for entry in item.get("relevant", []) if isinstance(entry, dict)]
        near = [
            block.id
            for block in self.world.blocks
            for span in spans
            if block.doc == span["doc"] and block.start < span["end"] and span["start"] < block.end
        ]
        return list(dict.fromkeys([*_ids_of(item), *near]))

    def _answer(self, item: Row, hits: list[Row], places: set[str]) -> Row:
        rng = self.rng
        answer: Row = {}
        one_slot = not self.run.paraphrases and len(self.run.seeds) == 1
        if not one_slot or self.flavour == "turns" or self.chance(0.9):
            answer["claim"] = self._claim(item)
        if self.chance(0.9) or not answer:
            answer["citations"] = self._citations(item, hits, places)
        refusing = self.chance(self.run.refusing)
        if item.get("answerable") is False and self.run.refusing:
            refusing = refusing or self.chance(0.5)
        if refusing:
            form = rng.choice(("flag", "token", "grounded"))
            if form == "flag":
                answer["refused"] = True
            elif form == "token":
                answer["claim"] = rng.choice(TOKENS)
            else:
                answer["grounded"] = False
            if self.chance(0.6):
                answer["citations"] = []
        elif self.chance(0.1):
            answer["refused"] = False
            answer["claim"] = rng.choice((*TOKENS, *SAYINGS))
        elif self.chance(0.1):
            answer["claim"] = rng.choice(NEARLY_TOKENS)
        if "grounded" not in answer and answer.get("refused") is not True and self.chance(0.15):
            answer["grounded"] = True
        if self.chance(0.3):
            echo = [f" {text}" for text in item.get("constraints", []) if self.chance(0.8)]
            answer["constraints_echo"] = echo + rng.sample(CONSTRAINTS, rng.randint(0, 1))
        return answer

    def _claim(self, item: Row) -> str:
        rng = self.rng
        wanted = [*item.get("gold_claim_substr", []), *item.get("must_contain", [])]
        parts = [text for text in wanted if self.chance(0.8)] if self.chance(0.6) else []
        parts += rng.sample(SAYINGS, rng.randint(0, 2))
        text = " ".join(parts)
        return rng.choice((text, text, text, text.upper()))

    def _citations(self, item: Row, hits: list[Row], places: set[str]) -> list[str | Row]:
        rng = self.rng
        ids = [hit["id"] for hit in hits]
        wanted = [name for name in self._wanted(item) if name in ids or self.chance(0.2)]
        if self.chance(self.run.skill) and wanted:
            pool = wanted * 4 + ids
        else:
            pool = ids if self.chance(0.5) else [block.id for block in self.world.blocks]
        chosen = rng.choices(pool, k=rng.choice((0, 1, 1, 1, 2, 3))) if pool else []
        chosen = list(dict.fromkeys(chosen))
        known = {block.id: block for block in self.world.blocks}
        citations: list[str | Row] = []
        for name in chosen:
            shown = set(places)
            if self.world.name in ("seed", "typed") and self.chance(0.5):
                shown.add("offsets")
            citation = _shown(known[name], shown)
            if "offsets" in citation:
                citation["offsets"] = self._moved(known[name], item)
            if self.run.delta_s and self.chance(0.3):
                citation["ΔS"] = _delta_s(rng)
            citations.append(name if set(citation) == {"id"} else citation)
        if self.chance(0.08):
            citations.append("nowhere")
        citations += citations[: rng.choice((0, 0, 0, 1))]
        return citations

    def _moved(self, block: _Block, item: Row) -> list[int]:
        """The block's span, or one near it, or one near a gold span."""
        rng = self.rng
        start, end = block.start, block.end
        spans = [entry for entry in item.get("relevant", []) if isinstance(entry, dict)]
        # A cited section is not held against the anchor section where the gold span has none.
        open_question = "anchor_section" in item and self._loose_spans(item)
        if spans and not open_question and self.chance(0.3):
            span = rng.choice(spans)
            start, end = span["start"], span["end"]
        if self.chance(0.5):
            start = max(0, start + rng.choice((-40, -31, -30, -29, -5, 5, 20)))
            end = max(start + 1, end + rng.choice((-20, -5, 5, 29, 30, 31)))
        return [start, end]

    def _put_times(self, trace: Row) -> None:
        rng = self.rng
        perf: Row = {}
        if self.chance(0.8):
            perf["t_retrieve_ms"] = rng.choice((12, 30, 45, 61.5))
        if self.chance(0.7):
            perf["t_reason_ms"] = rng.choice((200, 350, 410.25))
        if perf:
            trace["perf"] = perf
        if self.chance(0.3):
            trace["latency_ms"] = rng.choice((250, 400, 999))


def _anchor(doc: str | None, start: int, end: int) -> Row:
    return {"doc": doc, "start": start, "end": end}


def _shown(block: _Block, places: set[str]) -> Row:
    row: Row = {"id": block.id}
    if "doc" in places and block.doc:
        row["doc"] = block.doc
    if "section" in places and block.section:
        row["section"] = block.section
    if "offsets" in places:
        row["offsets"] = [block.start, block.end]
    return row


def _delta_s(rng: random.Random) -> float:
    return rng.randint(5, 90) / 100


def _ids_of(item: Row) -> list[str]:
    """The ids that an item names as evidence, in whatever form."""
    ids = [e if isinstance(e, str) else e.get("id") for e in item.get("relevant", [])]
    ids += itertools.chain.from_iterable(item.get("groups", []))
    ids += [name for name, grade in item.get("grades", {}).items() if grade > 0]
    return [name for name in ids if name]


def _settle(gold: list[Row], traces: list[Row]) -> None:
    """Take from traces that are not scored, or errored, what would make them matter to others."""
    qids = {row["qid"] for row in gold}
    last: dict[tuple[Any, ...], Row] = {}
    for trace in traces:
        names = ("qid", "paraphrase", "query", "seed", "turn")
        key = tuple(trace.get(name) for name in names)
        if "paraphrase" in trace or not _asks_by_text(gold, trace):
            key = tuple(trace.get(name) for name in names if name != "query")
        if trace["qid"] in qids:
            last[key] = trace
    scored = [trace for trace in last.values() if "error" not in trace]
    ids = {hit["id"] for trace in scored for hit in trace.get("topk", [])}
    answered = any("answer_json" in trace for trace in scored)
    for trace in traces:
        if any(trace is other for other in scored):
            continue
        kept = [hit["id"] in ids for hit in trace.get("topk", [])]
        for name in ("topk", "ΔS"):
            if name in trace:
                trace[name] = list(itertools.compress(trace[name], kept))
        if not answered:
            trace.pop("answer_json", None)


def _asks_by_text(gold: list[Row], trace: Row) -> bool:
    texts = [row.get("paraphrases", []) for row in gold if row["qid"] == trace["qid"]]
    return any(trace.get("query") in of_row for of_row in texts)
