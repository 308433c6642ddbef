"""From a decoded gold row to a gold item: every spelling, every check, every error."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from ragauge.files.fields import (
    FieldError,
    Row,
    as_bool,
    as_id,
    as_ids,
    as_int,
    as_list,
    as_number,
    as_object,
    as_text,
    as_texts,
    meaning,
    pick,
    pick_as,
    wrong_type,
)
from ragauge.model.field_spellings import (
    GOLD_NAMES,
    GOLD_SPELLINGS,
    HIT_DOCS,
    HIT_IDS,
    HIT_SECTIONS,
)
from ragauge.model.gold import GRAINS, Anchor, ClaimRule, Expect, GoldItem, Grain, NarrowedFrom
from ragauge.spans import Span, spans_in, unit_in

Own = Mapping[str, tuple[str, ...]]
"""The names that a dialect owns, by field."""
Locate = Callable[[Row, Own], Row]
"""Makes of a gold row one whose evidence has its bytes."""

DRAFT = "draft"
"""The field that marks an item which a person has still to confirm."""
MIGRATED_TO = "migrated_to"
"""The field that holds the revision of the corpus which `gold migrate` moved an item to."""
PREVIOUS = "_prev"
"""Stands behind the name of a field that keeps evidence which has no place in the new corpus."""


def misspelt_id(row: Row) -> str | None:
    """A sentence on the field of a row that is probably meant for its id."""
    names = [name for name in _possible_ids(row) if name not in GOLD_NAMES]
    for spelling in GOLD_SPELLINGS["qid"]:
        for name in difflib.get_close_matches(spelling, names, 1, 0.75):
            return f"`{name}` is not read: did you mean `{spelling}`?"
    return None


def _possible_ids(row: Row) -> list[str]:
    return [name for name, value in row.items() if isinstance(value, str | int) and len(name) < 60]


def _id_hint(row: Row) -> str:
    """What to do about a row without an id: it may have one under a name that nothing reads."""
    hint = 'add a unique "qid" to every gold item'
    if sentence := misspelt_id(row):
        return f"{sentence} Rename it, or {hint}"
    ids = [name for name in _possible_ids(row) if name.lower().endswith(("id", "key"))]
    return f"{hint}, or say which field it is: --gold-field qid={ids[0]}" if ids else hint


def gold_item(row: Row, own: Own, line: int | None, *, expects_by_docs: bool = False) -> GoldItem:
    """Make a gold item of a row; `own` names win over any other spelling.

    `expects_by_docs`: the documents that are expected say whether there is an answer.
    """
    _refuse_draft(row)

    def take(field: str) -> tuple[str, Any]:
        return pick(row, GOLD_SPELLINGS[field], own.get(field, ()), meaning=meaning)

    def texts(field: str) -> tuple[str, ...]:
        name, value = take(field)
        return as_texts(value, name)

    def text(field: str) -> str | None:
        name, value = take(field)
        return None if value is None else as_text(value, name)

    name, value = take("qid")
    if value is None:
        raise FieldError("missing-field", "the item has no id", _id_hint(row))
    qid = as_id(value, name)
    if not qid:
        raise wrong_type(name, "a non-empty id", value, "give every gold item its own id")
    paraphrases = texts("paraphrases")
    question = text("question")
    if question is None and paraphrases:
        question = paraphrases[0]
    unit = unit_in(row, "", "byte")
    ids, anchors = _evidence(*take("relevant"), unit)
    places = _anchors(*take("places"), unit)
    groups = _groups(take("groups")[1], unit)
    grades = _grades(take("grades")[1])
    if not (ids or anchors or groups or grades):
        anchors, places = places, ()
    negatives, negative_places = _negatives(*take("negatives"), unit)
    refuse_mixed_units(
        span for anchor in (*anchors, *places, *negative_places) for span in anchor.spans
    )
    claims, rule = _claims(*take("claims"))
    docs = _docs(*take("relevant_docs"))
    name, value = take("turn")
    return GoldItem(
        qid=qid,
        turn=as_int(value, name) if value is not None else None,
        question=question,
        paraphrases=paraphrases,
        expect=_expect(row, own, docs if expects_by_docs else None),
        relevant=ids,
        anchors=anchors,
        places=places,
        relevant_docs=docs,
        groups=groups,
        grades=grades,
        anchor_section=_section(*take("anchor_section")),
        negatives=negatives,
        negative_places=negative_places,
        decoy_section=_section(*take("decoy_section")),
        claims_any=claims,
        claim_rule=rule,
        references=_references(
            *pick(
                row,
                GOLD_SPELLINGS["references"],
                own.get("references", ()),
                meaning=lambda value: _references("", value),
            )
        ),
        must_contain=texts("must_contain"),
        forbidden=texts("forbidden"),
        constraints=texts("constraints"),
        type=text("type"),
        tags=texts("tags"),
        group=text("group"),
        difficulty=text("difficulty"),
        lang=text("lang"),
        extra={key: row[key] for key in row if key not in GOLD_NAMES and key != DRAFT},
        line=line,
    )


def _refuse_draft(row: Row) -> None:
    """Refuse an item that `gold new` drafted and that nobody has confirmed yet."""
    draft = row.get(DRAFT)
    if draft is None or not as_bool(draft, DRAFT):
        return
    empty = not any(row.get(name) for name in GOLD_SPELLINGS["question"])
    raise FieldError(
        "draft-item",
        "the item is a draft without a question" if empty else "the item is still a draft",
        f"{'write the question, check the evidence' if empty else 'check it'}, and remove `draft`",
    )


def _evidence(name: str, value: Any, unit: str) -> tuple[tuple[str, ...], tuple[Anchor, ...]]:
    """Evidence entries: plain ids, and those that name a place in a document."""
    members = [] if value is None else _members(name, value, unit)
    for i, entry in enumerate(value or ()):
        _refuse_irrelevant(entry, f"{name}[{i}]")
    anchors = dict.fromkeys(member for member in members if isinstance(member, Anchor))
    return tuple(member for member in members if isinstance(member, str)), tuple(anchors)


def _members(name: str, value: Any, unit: str) -> list[str | Anchor]:
    return [_member(entry, f"{name}[{i}]", unit) for i, entry in enumerate(as_list(value, name))]


_GRADES = ("grade", "relevance", "rel")


def _refuse_irrelevant(entry: Any, path: str) -> None:
    """Refuse what an entry itself says is no evidence: it would count as found."""
    for name in _GRADES if isinstance(entry, Mapping) else ():
        grade = entry.get(name)
        if isinstance(grade, int | float) and grade <= 0:
            message = f"`{path}.{name}` is {grade}: what is not relevant is no evidence"
            raise FieldError("bad-field", message, 'leave it out, or write "grades": {"ID": 0, …}')


def _member(value: Any, path: str, unit: str) -> str | Anchor:
    if not isinstance(value, Mapping):
        return as_id(value, path)
    own_id = pick_as(as_id, value, HIT_IDS, inside=f"{path}.")
    spans = spans_in(value, path, unit=unit)
    doc_name, doc = pick(value, HIT_DOCS, inside=f"{path}.")
    if not spans and value.get("quote") is not None:
        quote = as_text(value["quote"], f"{path}.quote")
        if doc is None and quote.strip():  # it stands wherever a hit has its words
            return Anchor(doc="", spans=(), id=own_id, quote=quote, grain=_grain(value, path))
        hint = "name the corpus with --corpus, or let `ragauge gold pin` find its bytes there"
        raise FieldError("quote-unpinned", f"`{path}` names a quote without its offsets", hint)
    if not spans and own_id is not None:
        return own_id
    if doc is None or not spans or any(span.length == 0 for span in spans):
        hint = 'write "id" or {"doc": "guide.md", "start": 120, "end": 180}'
        raise wrong_type(path, "an id, or a place in a document", value, hint)
    quote = value.get("quote", value.get("text"))
    return Anchor(
        doc=as_id(doc, doc_name),
        spans=spans,
        id=own_id,
        section=pick_as(as_id, value, HIT_SECTIONS, inside=f"{path}."),
        quote=as_text(quote, f"{path}.quote") if quote is not None else None,
        grain=_grain(value, path),
        narrowed_from=_narrowed_from(value, path, unit),
    )


def _narrowed_from(value: Mapping[str, Any], path: str, unit: str) -> NarrowedFrom | None:
    """The chunk that an entry was narrowed from, as `gold pin --narrow` writes it."""
    origin = value.get("narrowed_from")
    if origin is None:
        return None
    where = f"{path}.narrowed_from"
    if not isinstance(origin, Mapping):
        raise wrong_type(where, "an object", origin, "leave it as `gold pin --narrow` wrote it")
    counts = {
        name: as_int(origin[name], f"{where}.{name}")
        for name in ("drawn", "of", "seed")
        if origin.get(name) is not None
    }
    return NarrowedFrom(
        id=pick_as(as_id, origin, HIT_IDS, inside=f"{where}."),
        spans=spans_in(origin, where, unit=unit),
        **counts,
    )


def _grain(value: Mapping[str, Any], path: str) -> Grain | None:
    """Whether an entry is the evidence or a chunk that holds it; None if it does not say."""
    grain = value.get("grain")
    if grain is None:
        return None
    for known in GRAINS:
        if grain == known:
            return known
    raise wrong_type(f"{path}.grain", " or ".join(GRAINS), grain, "write `evidence` or `chunk`")


def _anchors(name: str, value: Any, unit: str) -> tuple[Anchor, ...]:
    if value is None:
        return ()
    members = _members(name, value, unit)
    for i, member in enumerate(members):
        if isinstance(member, str):
            raise wrong_type(f"{name}[{i}]", "a place in a document", member, "add doc, start, end")
    return tuple(member for member in dict.fromkeys(members) if isinstance(member, Anchor))


def refuse_mixed_units(spans: Iterable[Span]) -> None:
    """Refuse an item whose offsets count different things."""
    units = {span.unit for span in spans}
    if len(units) > 1:
        message = f"the evidence of the item mixes {' and '.join(sorted(units))} offsets"
        raise FieldError("mixed-units", message, "use one unit: bytes in the document's UTF-8 text")


def _groups(value: Any, unit: str) -> tuple[tuple[str | Anchor, ...], ...]:
    groups = []
    for i, group in enumerate(as_list(value, "groups") if value is not None else ()):
        path = f"groups[{i}]"
        members = tuple(dict.fromkeys(_members(path, group, unit)))
        if not members:
            raise wrong_type(path, "a list of at least one id", group, "no group can be empty")
        groups.append(members)
    return tuple(groups)


def _grades(value: Any) -> dict[str, float]:
    graded = {} if value is None else as_object(value, "grades")
    return {name: as_number(grade, f"grades.{name}") for name, grade in graded.items()}


def _docs(name: str, value: Any) -> tuple[str, ...] | None:
    if value is None or value == "":  # a table has no other way to say that there is none
        return None
    return (as_id(value, name),) if isinstance(value, str | int) else as_ids(value, name)


def _expect(row: Row, own: Own, docs: tuple[str, ...] | None) -> Expect | None:
    """What is to be done: said outright, or by the documents that are expected (none: refuse)."""
    names, own_names = GOLD_SPELLINGS["answerable"], own.get("answerable", ())
    name, value = pick(row, names, own_names, meaning=_expectation)
    if value is not None:
        return expectation(name, value)
    if docs is None:
        return None
    return "answer" if docs else "refuse"


def expectation(name: str, value: Any) -> Expect | None:
    """What a field says is to be done: `answerable` is a flag, `expect` a word."""
    if name != "expect":
        return "answer" if as_bool(value, name) else "refuse"
    if not isinstance(value, str) or value not in _EXPECTATIONS:
        hint = "write answer, refuse, or null where it is not known"
        raise wrong_type(name, "`answer` or `refuse`", value, hint)
    return _EXPECTATIONS[value]


def _expectation(value: Any) -> Any:
    """What a value of any spelling means, so that `true` and `answer` agree."""
    if isinstance(value, bool):
        return "answer" if value else "refuse"
    return value


_EXPECTATIONS: Mapping[str, Expect | None] = {
    "answer": "answer",
    "refuse": "refuse",
    "unlabelled": None,
}


def _negatives(name: str, value: Any, unit: str) -> tuple[tuple[str, ...], tuple[Anchor, ...]]:
    """Hard negatives: plain ids, and those that are a place or a quote."""
    members = [
        _quote(entry, f"{name}[{i}]") or _member(entry, f"{name}[{i}]", unit)
        for i, entry in enumerate(as_list(value, name) if value is not None else ())
    ]
    anchors = dict.fromkeys(member for member in members if isinstance(member, Anchor))
    return tuple(member for member in members if isinstance(member, str)), tuple(anchors)


def _quote(value: Any, path: str) -> Anchor | None:
    """A negative that is a quote and no place: it is found by the texts of hits."""
    if not isinstance(value, Mapping) or value.get("quote") is None or spans_in(value, path):
        return None
    quote = as_text(value["quote"], f"{path}.quote")
    if not quote.strip():
        raise wrong_type(path, "a quote of at least one word", value, "quote some text")
    return Anchor(
        doc=pick_as(as_id, value, HIT_DOCS, inside=f"{path}.") or "",
        spans=(),
        id=pick_as(as_id, value, HIT_IDS, inside=f"{path}."),
        section=pick_as(as_id, value, HIT_SECTIONS, inside=f"{path}."),
        quote=quote,
    )


def _references(name: str, value: Any) -> tuple[str, ...]:
    """Right answers: one, several, or `{"text": [...]}` as SQuAD has them; blank ones are none."""
    if isinstance(value, Mapping):
        name, value = f"{name}.text", value.get("text")
    listed = value if isinstance(value, list) else [] if value is None else [value]
    texts = []
    for i, entry in enumerate(listed):
        # SQuAD's own files: {"text": ..., "answer_start": ...}
        text = entry.get("text") if isinstance(entry, Mapping) else entry
        if isinstance(text, int | float) and not isinstance(text, bool):
            text = str(text)
        texts.append(as_text(text, f"{name}[{i}]" if isinstance(value, list) else name))
    return tuple(dict.fromkeys(text for text in texts if text.strip()))


def _section(name: str, value: Any) -> str | None:
    return as_id(value, name) or None if value is not None else None


def _claims(name: str, value: Any) -> tuple[tuple[str, ...] | None, ClaimRule]:
    if value is None:
        return None, "substring"
    if name == "gold_claim":
        claims = (value,) if isinstance(value, str) else as_texts(value, name)
        return tuple(claim for claim in claims if claim), "phrase"
    return as_texts(value, name), "substring"
