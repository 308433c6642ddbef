"""The slots of a gold set: one question, paraphrase and seed each; their numbers and order."""

from __future__ import annotations

import re
from collections.abc import Callable, Container, Iterator, Sequence

from msgspec import Struct

from ragauge.errors import MAX_REPORTED, Place, Problem, RagaugeError
from ragauge.model.gold import GoldItem
from ragauge.model.target import TargetQuestion
from ragauge.text import compiled_pattern

Seeds = tuple[int, ...]
FIELDS: dict[str, Callable[[GoldItem], Sequence[str | None]]] = {
    "qid": lambda item: (item.qid,),
    "type": lambda item: (item.type,),
    "tag": lambda item: item.tags,
    "lang": lambda item: (item.lang,),
    "group": lambda item: (item.group,),
    "difficulty": lambda item: (item.difficulty,),
}
"""What a filter can ask of an item."""

_FILTER = re.compile(r"([a-z]+)(=|~)(.*)", re.DOTALL)


class QuestionSlot(Struct, frozen=True):
    """A slot: its number, counted from 0 over the whole gold set, and what is asked."""

    number: int
    question: TargetQuestion


class SlotSequence(Struct, frozen=True):
    """Slots that are asked one after another: the turns of a conversation, or a single slot."""

    slots: tuple[QuestionSlot, ...]


class GoldSlots:
    """The slots of a gold set: item by item, paraphrase by paraphrase, seed by seed."""

    def __init__(self, items: Sequence[GoldItem], seeds: Seeds = ()) -> None:
        self.items = items
        self.seeds: tuple[int | None, ...] = seeds or (None,)
        self.first: list[int] = []
        count = 0
        for item in items:
            self.first.append(count)
            count += max(1, len(item.paraphrases)) * len(self.seeds)
        self.count = count

    def sequences(self, wanted: Callable[[int], bool] = lambda _: True) -> Iterator[SlotSequence]:
        """The sequences in gold order that have a wanted slot, with all their slots."""
        conversations: dict[str, list[int]] = {}
        for place, item in enumerate(self.items):
            if item.turn is not None:
                conversations.setdefault(item.qid, []).append(place)
        for place, item in enumerate(self.items):
            # A conversation is yielded where its first turn stands in the file.
            if item.turn is None:
                sequences = iter([SlotSequence((slot,)) for slot in self._slots(place)])
            elif conversations[item.qid][0] == place:
                sequences = self._conversation(conversations[item.qid])
            else:
                continue
            for sequence in sequences:
                if any(wanted(slot.number) for slot in sequence.slots):
                    yield sequence

    def _slots(self, place: int) -> Iterator[QuestionSlot]:
        item = self.items[place]
        number = self.first[place]  # counted in advance, so that any item can be numbered by itself
        numbered: list[tuple[int | None, str]] = list(enumerate(item.paraphrases))
        for paraphrase, text in numbered or [(None, item.question or "")]:
            for seed in self.seeds:
                question = TargetQuestion(
                    qid=item.qid,
                    text=text,
                    paraphrase=paraphrase,
                    seed=seed,
                    turn=item.turn,
                    number=number,
                )
                yield QuestionSlot(number, question)
                number += 1

    def _conversation(self, places: Sequence[int]) -> Iterator[SlotSequence]:
        """A sequence for each seed, with all turns in their order."""
        ordered = sorted(places, key=lambda place: (self.items[place].turn or 0, place))
        slots = [slot for place in ordered for slot in self._slots(place)]
        for seed in self.seeds:
            yield SlotSequence(tuple(slot for slot in slots if slot.question.seed == seed))


def with_later_turns(slots: GoldSlots, numbers: Container[int]) -> Iterator[QuestionSlot]:
    """The slots with these numbers, and those that were asked with their answers as history."""
    for sequence in slots.sequences(numbers.__contains__):
        place = next(n for n, slot in enumerate(sequence.slots) if slot.number in numbers)
        yield from sequence.slots[place:]


def refuse_without_question(items: Sequence[GoldItem], name: str) -> None:
    """Raise if there are items without any text to ask."""
    problems = [
        Problem(
            "missing-field",
            "the item has no question to ask",
            'add the question as "question"',
            Place(name, item.line, item.qid),
        )
        for item in items
        if not all(text.strip() for text in item.paraphrases or (item.question or "",))
    ]
    if problems:
        raise RagaugeError(problems[:MAX_REPORTED], total=len(problems))


def choose_items(
    items: Sequence[GoldItem], filters: Sequence[str], limit: int | None
) -> list[GoldItem]:
    """The items that pass all filters, the first `limit` of them."""
    tests = [_test(text) for text in filters]
    passing = [item for item in items if all(test(item) for test in tests)]
    return passing if limit is None else passing[:limit]


def with_turns_before(items: Sequence[GoldItem], chosen: Sequence[GoldItem]) -> list[GoldItem]:
    """Chosen items in gold order, with the earlier turns of their conversations.

    A question that goes on with others means nothing without them.
    """
    last_turn: dict[str, int] = {}
    for item in chosen:
        if item.turn is not None:
            last_turn[item.qid] = max(item.turn, last_turn.get(item.qid, item.turn))
    if not last_turn:
        return list(chosen)
    chosen_ids = set(map(id, chosen))
    return [
        item
        for item in items
        if id(item) in chosen_ids
        or (item.turn is not None and item.turn < last_turn.get(item.qid, item.turn))
    ]


def _test(text: str) -> Callable[[GoldItem], bool]:
    """The test that a filter stands for: `FIELD=VALUE`, or `FIELD~REGEX` found anywhere in it."""
    match = _FILTER.fullmatch(text)
    if match is None or match[1] not in FIELDS:
        hint = f"write FIELD=VALUE or FIELD~REGEX; fields: {', '.join(FIELDS)}"
        raise RagaugeError.of("usage", f"`{text}` is no filter", hint=hint)
    field, value = FIELDS[match[1]], match[3]
    if match[2] == "=":
        return lambda item: value in field(item)
    try:
        pattern = compiled_pattern(value)
    except ValueError as error:
        raise RagaugeError.of(
            "usage", f"`{text}`: {error}", hint="what follows ~ is a regular expression"
        ) from error
    return lambda item: any(text is not None and pattern.search(text) for text in field(item))


def read_seeds(text: str | None) -> Seeds:
    """The seeds of a list such as `0,1,2`; without one every question is asked once."""
    if text is None:
        return ()
    try:
        seeds = tuple(int(part) for part in text.split(","))
    except ValueError as error:
        raise RagaugeError.of(
            "usage", f"seeds are whole numbers, got `{text}`", hint="for example --seeds 0,1,2"
        ) from error
    # Stores hold seeds as integers of 64 bits.
    if len(set(seeds)) < len(seeds) or any(abs(seed) >= 1 << 63 for seed in seeds):
        raise RagaugeError.of(
            "usage", f"a seed stands twice or is too large: `{text}`", hint="for example 0,1,2"
        )
    return seeds
