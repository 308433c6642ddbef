"""Drafts of gold items from the blocks of a corpus; a person writes the question.

Nothing is invented: a draft has evidence, its section and hard negatives, an empty question, and
the mark `draft`, with which it is neither scored nor accepted. Its fields have the names of one
dialect, so that drafts that go into a gold set leave its dialect, and with it profile and gates, as
they are.
"""

from __future__ import annotations

import json
from collections import Counter, deque
from collections.abc import Sequence
from hashlib import sha256
from typing import Any

from msgspec import Struct

from ragauge import registry
from ragauge.corpus.bm25 import words_of
from ragauge.corpus.lookup import Lookup, open_corpus
from ragauge.errors import RagaugeError
from ragauge.files import yaml_writer
from ragauge.files.fields import FieldError
from ragauge.formats.gold import DRAFT
from ragauge.formats.gold_files import form_of, read_items
from ragauge.gold.negatives import Suggester
from ragauge.gold.pin import Pinner
from ragauge.ids import lies_in
from ragauge.model.corpus import Block
from ragauge.model.dialect import Dialect
from ragauge.model.field_spellings import GOLD_SPELLINGS
from ragauge.model.gold import GoldItem
from ragauge.text import plain

LEAST_WORDS = 3
"""A block of fewer words is no answer to anything."""
_LONGEST_COMMENT = 160

Row = dict[str, Any]


class Draft(Struct, frozen=True):
    """A row of the gold file to be, what its author should see beside it, and its block."""

    row: Row
    comments: tuple[str, ...]
    block: Block


class DraftFields(Struct, frozen=True, kw_only=True):
    """How drafts are written: the dialect, and names and ids of the set that they shall go into."""

    dialect: Dialect
    names: frozenset[str] = frozenset()
    qids: frozenset[str] = frozenset()

    def row(self, block: Block, qid: str, evidence: Any, negatives: Sequence[Any]) -> Row:
        """The row of a draft."""
        by_docs = self.dialect.expects_by_docs
        paraphrases, section = self._own("paraphrases"), self._own("anchor_section")
        return {
            self._name("qid"): qid,
            self._name("question"): "",
            **({paraphrases: []} if paraphrases else {}),
            **({self._name("relevant_docs"): [block.doc]} if by_docs else {"answerable": True}),
            self._name("relevant"): [evidence],
            **({section: f"{block.doc}#{block.section}"} if section else {}),
            "negatives": list(negatives),
            "type": block.type,
            DRAFT: True,
        }

    def _name(self, field: str) -> str:
        """The name of a field in the set, or else in the dialect, or else the usual one."""
        spellings = GOLD_SPELLINGS[field]
        own = self.dialect.own_gold.get(field, ())
        names = [name for name in (*own, *spellings) if name in self.names]
        return [*names, *own, *spellings][0]

    def _own(self, field: str) -> str | None:
        """The name of a field that marks a dialect; None if that is not the dialect of the set."""
        name = self._name(field)
        return name if name in self.names or name in self.dialect.gold_marks else None


def draft(
    lookup: Lookup,
    count: int,
    fields: DraftFields,
    *,
    sections: Sequence[str] = (),
    per_section: int = 1,
    negatives: int = 5,
) -> list[Draft]:
    """Draft items; `sections` such as `guide.md#S.2` are meant with all that is below them."""
    chosen = choose_blocks(lookup, count, sections=sections, per_section=per_section)
    if not chosen:
        return []
    suggester = Suggester(lookup) if negatives else None
    pinner = Pinner(lookup)
    drafts: list[Draft] = []
    taken = set(fields.qids)
    for block in chosen:
        spot = lookup.spot_of(block)
        qid = _qid(block, taken)
        taken.add(qid)
        item = GoldItem(qid=qid, question="")
        suggested = suggester.suggest(item, [spot], negatives) if suggester is not None else []
        evidence = pinner.entry(block.id, "relevant[0]").value
        placed = [pinner.entry(negative.id, "negatives").value for negative in suggested]
        row = fields.row(block, qid, evidence, placed)
        drafts.append(Draft(row, _comments(lookup, block), block))
    return drafts


def choose_blocks(
    lookup: Lookup, count: int, *, sections: Sequence[str] = (), per_section: int = 1
) -> list[Block]:
    """Choose blocks so that documents come first, then types, then sections, in reading order.

    At each step the document that was chosen least goes on, with the type that was chosen least.
    """
    waiting = _candidates(lookup, sections)
    docs: Counter[str] = Counter()
    types: Counter[str] = Counter()
    used: Counter[tuple[str, str]] = Counter()
    order = {doc: place for place, doc in enumerate(waiting)}
    chosen: list[Block] = []
    while len(chosen) < count:
        open_queues = []
        for doc, by_type in waiting.items():
            for kind, queue in by_type.items():
                while queue and used[doc, queue[0].section] >= per_section:
                    queue.popleft()
                if queue:
                    key = (docs[doc], types[kind], order[doc], queue[0].span[0])
                    open_queues.append((key, doc, kind))
        if not open_queues:
            break
        _, doc, kind = min(open_queues)
        block = waiting[doc][kind].popleft()
        chosen.append(block)
        docs[doc] += 1
        types[kind] += 1
        used[doc, block.section] += 1
    place = {block.id: at for at, block in enumerate(lookup.corpus.blocks)}
    return sorted(chosen, key=lambda block: place[block.id])


def _candidates(lookup: Lookup, sections: Sequence[str]) -> dict[str, dict[str, deque[Block]]]:
    """The blocks that may be chosen, by document and type."""
    wanted = [lookup.section(name) for name in sections]
    waiting: dict[str, dict[str, deque[Block]]] = {}
    for block in lookup.corpus.blocks:
        near = (section.id for section in wanted if section.doc == block.doc)
        if wanted and not any(lies_in(block.section, section) for section in near):
            continue
        start, end = block.span
        if len(words_of(lookup.text(block.doc)[start:end].decode())) >= LEAST_WORDS:
            waiting.setdefault(block.doc, {}).setdefault(block.type, deque()).append(block)
    return waiting


def _qid(block: Block, taken: set[str]) -> str:
    """An id that the same block always gets."""
    digest = sha256(block.id.encode()).hexdigest()
    length = 8  # readable; where two blocks have the same eight digits, one gets more
    while f"q-{digest[:length]}" in taken:
        length += 1
    return f"q-{digest[:length]}"


def _comments(lookup: Lookup, block: Block) -> tuple[str, ...]:
    """Where the block stands: the titles above it, and how its section begins."""
    by_id = {section.id: section for section in lookup.sections_by_doc[block.doc]}
    titles: list[str] = []
    section = by_id.get(block.section)
    anchor = section.anchor if section is not None else None
    while section is not None:
        titles.insert(0, section.title)
        section = by_id.get(section.parent) if section.parent is not None else None
    named = " > ".join(title for title in titles if title)
    lines = [f"{block.doc}#{block.section}" + (f": {named}" if named else "")]
    if anchor is not None:
        beginning = lookup.text(block.doc)[anchor[0] : anchor[1]].decode()
        lines.append(f"begins with: {beginning}")
    return tuple(_comment(line) for line in lines)


def _comment(text: str) -> str:
    """A text as one line that YAML takes as a comment."""
    line = " ".join(plain(" ".join(text.split())).split())
    return line if len(line) <= _LONGEST_COMMENT else f"{line[: _LONGEST_COMMENT - 3]}..."


class Drafts(Struct, frozen=True, kw_only=True):
    """The text of a file of drafts, and how much of the corpus it covers."""

    text: str
    drafts: int
    types: dict[str, int]
    documents: int
    all_documents: int
    sections: int
    all_sections: int


def draft_text(
    corpus: str,
    out: str,
    *,
    count: int = 20,
    sections: Sequence[str] = (),
    per_section: int = 1,
    negatives: int = 5,
    dialect: str = "native",
    like: str | None = None,
) -> Drafts:
    """Draft items from a corpus, in the form that the name of the file says.

    Fields have the names of a dialect, or those of the gold set `like`, whose ids are not used.
    """
    form = form_of(out, "array")
    fields = DraftFields(dialect=registry.dialect(dialect)) if like is None else _fields_of(like)
    lookup = open_corpus(corpus)
    try:
        drafts = draft(
            lookup, count, fields, sections=sections, per_section=per_section, negatives=negatives
        )
    except FieldError as error:
        raise RagaugeError.of(error.code, error.message, hint=error.hint) from error
    if not drafts:
        message = "the corpus has no block to draft from"
        hint = "a block needs three words; name other sections, or build the corpus again"
        raise RagaugeError.of("nothing-measured", message, hint=hint)
    rows = [item.row for item in drafts]
    if form == "yaml":
        text = yaml_writer.list_text(rows, [item.comments for item in drafts])
    else:
        lines = [json.dumps(row, ensure_ascii=False) for row in rows]
        array = form == "array"
        text = "[\n" + ",\n".join(lines) + "\n]\n" if array else "\n".join([*lines, ""])
    types = Counter(item.block.type for item in drafts)
    return Drafts(
        text=text,
        drafts=len(rows),
        types=dict(sorted(types.items(), key=lambda entry: (-entry[1], entry[0]))),
        documents=len({item.block.doc for item in drafts}),
        all_documents=len(lookup.documents),
        sections=len({(item.block.doc, item.block.section) for item in drafts}),
        all_sections=len({(block.doc, block.section) for block in lookup.corpus.blocks}),
    )


def _fields_of(gold: str) -> DraftFields:
    """How the items of a gold set are written."""
    items = read_items(gold)
    return DraftFields(
        dialect=items.reader.dialect,
        names=frozenset(name for raw in items.rows for name in raw.fields),
        qids=frozenset(
            str(raw.fields[name])
            for raw in items.rows
            for name in GOLD_SPELLINGS["qid"]
            if name in raw.fields
        ),
    )
