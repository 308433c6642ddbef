"""A gold file in the editor: its items as a form shows them, and what a form gives back.

Nothing here knows of HTTP. Places are UTF-8 bytes; the form says which text it saw at them, and an
entry whose text is another is refused, so that no offset that was counted wrongly is ever stored.
"""

from __future__ import annotations

from collections.abc import Mapping
from hashlib import sha256
from pathlib import Path
from threading import Lock
from typing import Any, Literal

from msgspec import Struct

from ragauge.corpus.lookup import CorpusSpot, Lookup
from ragauge.errors import RagaugeError
from ragauge.files.atomic_write import write_atomically
from ragauge.files.fields import FieldError, Row, as_id, as_list, meaning, pick
from ragauge.formats.gold import DRAFT, expectation
from ragauge.formats.gold_evidence import only_document, relevant_name
from ragauge.formats.gold_files import GoldRows, read_items, without_draft, written
from ragauge.gold.lock import Lock as GoldLock
from ragauge.gold.pin import Pinner, frozen_texts
from ragauge.model.field_spellings import GOLD_SPELLINGS, HIT_IDS
from ragauge.model.gold import GoldItem
from ragauge.spans import unit_in

_RELEVANT = GOLD_SPELLINGS["relevant"]
_EXPECT = {True: "answer", False: "refuse", None: ""}
_ANSWERABLE = {value: answerable for answerable, value in _EXPECT.items()}


def _negative_ids(item: GoldItem) -> tuple[str, ...]:
    """The hard negatives that have an id, with or without a place."""
    placed = (place.id for place in item.negative_places if place.id is not None)
    return tuple(dict.fromkeys((*item.negatives, *placed)))


def _put(row: dict[str, Any], name: str, value: Any) -> None:
    """Give a field another value where it stands; a value of None takes it out."""
    if value is None:
        row.pop(name, None)
    else:
        row[name] = value


class ChangedOnDiskError(Exception):
    """The file is not the one that was read: somebody else has written it."""


class SpotView(Struct, frozen=True):
    """A place in a document, in bytes."""

    doc: str
    start: int
    end: int


class EvidenceView(Struct, frozen=True, kw_only=True):
    """One entry of evidence: `ref` is its place among the entries of the row.

    `problem` says why its place is not known; it is kept all the same.
    """

    ref: int
    label: str
    spots: tuple[SpotView, ...] = ()
    problem: str | None = None


class ItemView(Struct, frozen=True, kw_only=True):
    """A gold item as the form shows it; `blocked` says why the form cannot show it."""

    index: int
    line: int
    qid: str
    question: str = ""
    paraphrases: tuple[str, ...] = ()
    expect: str = ""
    evidence: tuple[EvidenceView, ...] = ()
    negatives: tuple[str, ...] = ()
    anchor_section: str = ""
    draft: bool = False
    blocked: str | None = None


class DocumentView(Struct, frozen=True, kw_only=True):
    """A document: its canonical text, its blocks and its sections with their first bytes."""

    doc: str
    text: str
    blocks: tuple[tuple[str, int, int], ...]
    sections: tuple[tuple[str, str, int], ...]


class NewEvidence(Struct, frozen=True, forbid_unknown_fields=True):
    """Text that was selected: its bytes, and what the form saw there."""

    doc: str
    start: int
    end: int
    quote: str


class ItemEdit(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What the form says of one item; evidence is an entry that was there, or a new one."""

    index: int
    question: str
    paraphrases: list[str]
    expect: Literal["", "answer", "refuse"]
    evidence: list[int | NewEvidence]
    negatives: list[str]
    anchor_section: str
    draft: bool


class SaveRequest(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a form saves: its edits, and the revision of the file that it was shown."""

    revision: str
    edits: list[ItemEdit]


class FileView(Struct, frozen=True, kw_only=True):
    """The file as a form shows it; the revision is a hash of its bytes."""

    name: str
    revision: str
    items: tuple[ItemView, ...]
    documents: tuple[str, ...]


class GoldEditor:
    """A gold file that is being edited, with the corpus that its evidence lies in.

    `lock` knows which text ids stood for when the set was frozen.
    """

    def __init__(
        self, path: str, lookup: Lookup, dialect: str = "auto", *, lock: GoldLock | None = None
    ) -> None:
        self.path = path
        self.dialect = dialect
        self.frozen = lock
        self.lookup = lookup
        self.pinner = Pinner(lookup)
        self.gold = self._read()
        self._lock = Lock()

    def _read(self) -> GoldRows:
        gold = read_items(self.path, self.dialect)
        if gold.text is None:
            message = f"`{gold.name}` is packed or no file, and cannot be edited in its place"
            hint = "unpack it, or write it as JSON Lines or YAML"
            raise RagaugeError.of("usage", message, hint=hint)
        return gold

    def file(self) -> FileView:
        """The file as it is on disk now."""
        with self._lock:
            if not self._is_unchanged():
                self.gold = self._read()
            return self._view()

    def _view(self) -> FileView:
        return FileView(
            name=self.gold.name,
            revision=self._revision,
            items=tuple(self._item(index) for index in range(len(self.gold.rows))),
            documents=tuple(self.lookup.documents),
        )

    @property
    def _revision(self) -> str:
        return sha256(self.gold.text or b"").hexdigest()

    def _is_unchanged(self) -> bool:
        try:
            return Path(self.path).read_bytes() == self.gold.text
        except OSError:
            return False

    def document(self, doc: str) -> DocumentView:
        """One document; a FieldError if the corpus has none of that name."""
        with self._lock:
            text = self.lookup.text(doc).decode()
        return DocumentView(
            doc=doc,
            text=text,
            blocks=tuple((block.id, *block.span) for block in self.lookup.blocks_by_doc[doc]),
            sections=tuple(
                (section.id, section.title, section.subtree[0])
                for section in self.lookup.sections_by_doc[doc]
            ),
        )

    def save(self, saving: SaveRequest) -> FileView:
        """Write the file with some items changed, and read it again.

        Raises `RagaugeError` with what is wrong, or `ChangedOnDiskError`; then nothing is written.
        """
        with self._lock:
            if saving.revision != self._revision or not self._is_unchanged():
                raise ChangedOnDiskError
            changes: dict[int, dict[str, Any]] = {}
            problems = []
            for edit in saving.edits:
                try:
                    row = self._changed(edit)
                except FieldError as error:
                    problems.append(self.gold.problem(error, edit.index))
                    continue
                if row != self.gold.rows[edit.index].fields:
                    changes[edit.index] = row
            if problems:
                raise RagaugeError(problems)
            if changes:
                write_atomically(self.path, written(self.gold, changes, self.path))
                self.gold = self._read()
            return self._view()

    def _item(self, index: int) -> ItemView:
        raw = self.gold.rows[index]
        row = raw.fields
        try:
            return self._readable(index, row)
        except FieldError as error:
            qid = pick(row, GOLD_SPELLINGS["qid"][:1])[1]
            return ItemView(
                index=index,
                line=raw.line,
                qid=str(qid if qid is not None else f"line {raw.line}"),
                blocked=f"{error.message}; {error.hint}",
            )

    def _readable(self, index: int, row: Row) -> ItemView:
        evidence = self._evidence(row, frozen_texts(self.gold, index, self.frozen))
        item = self._item_of(row)
        question = self._field(row, "question")[1]
        return ItemView(
            index=index,
            line=self.gold.rows[index].line,
            qid=item.qid,
            question=question if isinstance(question, str) else "",
            paraphrases=item.paraphrases,
            expect=self._expect(row),
            evidence=evidence,
            negatives=_negative_ids(item),
            anchor_section=item.anchor_section or "",
            draft=row.get(DRAFT) is True,
        )

    def _expect(self, row: Row) -> str:
        """What the item says is to be done; empty where it says nothing itself."""
        name, value = self._field(row, "answerable")
        return "" if value is None else expectation(name, value) or ""

    @property
    def _own(self) -> Mapping[str, tuple[str, ...]]:
        return self.gold.reader.own_gold

    def _field(self, row: Row, field: str) -> tuple[str, Any]:
        """The name and value of a field; the name that it would have if it is not there."""
        own = self._own.get(field, ())
        name, value = pick(row, GOLD_SPELLINGS[field], own, meaning=meaning)
        return name or next(iter(own), GOLD_SPELLINGS[field][0]), value

    def _evidence(self, row: Row, frozen: Mapping[str, str]) -> tuple[EvidenceView, ...]:
        name = relevant_name(row, self._own)
        value = row.get(name)
        unit, doc = unit_in(row, "", "byte"), only_document(row, self._own)
        views = []
        for ref, entry in enumerate(as_list(value, name) if value is not None else ()):
            path = f"{name}[{ref}]"
            label = str(meaning(entry)) if not isinstance(meaning(entry), dict) else ""
            try:
                spots = self.pinner.entry(entry, path, unit=unit, doc=doc, frozen=frozen).spots
            except FieldError as error:
                text = label or str(entry.get("quote", path))
                views.append(EvidenceView(ref=ref, label=text, problem=error.message))
                continue
            spot_views = tuple(SpotView(spot.doc, spot.start, spot.end) for spot in spots)
            views.append(EvidenceView(ref=ref, label=label, spots=spot_views))
        return tuple(views)

    def _changed(self, edit: ItemEdit) -> dict[str, Any]:
        """The row with what the form says of it; what it says again stays untouched."""
        if not 0 <= edit.index < len(self.gold.rows):
            raise ChangedOnDiskError  # the form was shown another file
        row = self.gold.rows[edit.index].fields
        view = self._readable(edit.index, row)
        new = dict(row)
        if edit.question != view.question:
            new[self._field(row, "question")[0]] = edit.question
        if tuple(edit.paraphrases) != view.paraphrases:
            new["paraphrases"] = edit.paraphrases
        if edit.expect != view.expect:
            name = self._field(row, "answerable")[0]
            _put(new, name, edit.expect or None if name == "expect" else _ANSWERABLE[edit.expect])
        if edit.anchor_section != view.anchor_section:
            self._check_section(edit, view)
            _put(new, self._field(row, "anchor_section")[0], edit.anchor_section or None)
        if tuple(edit.negatives) != view.negatives:
            for name in edit.negatives:
                if name not in view.negatives:
                    self.lookup.block(name)
            # The form has ids; negatives that are places stay as they are.
            placed = [entry for entry in row.get("negatives") or () if isinstance(entry, Mapping)]
            kept = [e for e in placed if all(e.get(name) is None for name in HIT_IDS)]
            by_id = {as_id(pick(e, HIT_IDS)[1], "negatives"): e for e in placed if e not in kept}
            new["negatives"] = [*(by_id.get(name, name) for name in edit.negatives), *kept]
        if edit.evidence != [entry.ref for entry in view.evidence]:
            self._set_evidence(new, row, edit)
        if edit.draft:
            new[DRAFT] = True
        else:
            if view.draft and not (edit.question.strip() or edit.paraphrases):
                raise FieldError(
                    "draft-item", "a draft without a question stays a draft", "write the question"
                )
            new.pop(DRAFT, None)
        self._item_of(new)
        return new

    def _check_section(self, edit: ItemEdit, view: ItemView) -> None:
        """A section that is new in an item must be in the corpus; its document may be left out."""
        docs = {spot.doc for entry in view.evidence for spot in entry.spots}
        docs |= {entry.doc for entry in edit.evidence if isinstance(entry, NewEvidence)}
        if edit.anchor_section:
            self.lookup.section(edit.anchor_section, next(iter(docs)) if len(docs) == 1 else None)

    def _item_of(self, row: Row) -> GoldItem:
        """The item without its evidence, whose problems are shown beside each entry."""
        bare = {name: [] if name in _RELEVANT else value for name, value in row.items()}
        return self.gold.reader.gold(without_draft(bare), None)

    def _set_evidence(self, new: dict[str, Any], row: Row, edit: ItemEdit) -> None:
        name = relevant_name(row, self._own)
        old_entries = row.get(name) or []
        entries: list[Any] = []
        for place, entry in enumerate(edit.evidence):
            if isinstance(entry, NewEvidence):
                spot = self._spot(entry)
                fresh = {"doc": spot.doc, "start": spot.start, "end": spot.end}
                entries.append(self.pinner.entry(fresh, f"{name}[{place}]").value)
            elif 0 <= entry < len(old_entries):
                entries.append(old_entries[entry])
            else:
                raise ChangedOnDiskError
        # The unit is the row's: new bytes beside old characters would be read as characters.
        fresh_in_characters = unit_in(row, "", "byte") != "byte" and any(
            isinstance(entry, NewEvidence) for entry in edit.evidence
        )
        present = [spelling for spelling in _RELEVANT if new.get(spelling) is not None]
        new.update(dict.fromkeys(present or [name], entries))
        if fresh_in_characters:
            message = "the item counts its offsets otherwise than in bytes"
            raise FieldError("mixed-units", message, "run `ragauge gold pin` on the file first")

    def _spot(self, selected: NewEvidence) -> CorpusSpot:
        """The place that the form means, which must have the text that it saw there."""
        spot = self.lookup.spot(selected.doc, selected.start, selected.end)
        if self.lookup.quote(spot) != selected.quote:
            raise FieldError(
                "quote-moved",
                f"the text at {selected.start} to {selected.end} of `{selected.doc}` is not "
                "what was selected",
                "load the page again; if it stays, please report it",
            )
        return spot
