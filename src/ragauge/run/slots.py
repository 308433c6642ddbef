"""Slots: which questions a gold set asks, how they are numbered, and which are asked in order."""

from __future__ import annotations

import re
from collections.abc import Callable, Container, Iterator, Sequence

from msgspec import Struct

from ragauge.errors import MAX_REPORTED, Place, Problem, RagaugeError
from ragauge.model.gold import GoldItem
from ragauge.model.target import Question

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


class Slot(Struct, frozen=True):
    """A slot: its number, counted from 0 over the whole gold set, and what is asked."""

    number: int
    question: Question


class Strand(Struct, frozen=True):
    """Slots that are asked one after another: the turns of a conversation, or a single slot."""

    slots: tuple[Slot, ...]

    @property
    def conversation(self) -> bool:
        """Whether what was answered before is told with a question."""
        return self.slots[0].question.turn is not None


class Slots:
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

    def strands(self, wanted: Callable[[int], bool] = lambda _: True) -> Iterator[Strand]:
        """The strands in gold order that have a slot which is wanted, with all their slots."""
        conversations: dict[str, list[int]] = {}
        for place, item in enumerate(self.items):
            if item.turn is not None:
                conversations.setdefault(item.qid, []).append(place)
        for place, item in enumerate(self.items):
            if item.turn is None:
                found = iter([Strand((slot,)) for slot in self._slots(place)])
            elif conversations[item.qid][0] == place:
                found = self._conversation(conversations[item.qid])
            else:
                continue
            for strand in found:
                if any(wanted(slot.number) for slot in strand.slots):
                    yield strand

    def _slots(self, place: int) -> Iterator[Slot]:
        item = self.items[place]
        number = self.first[place]
        numbered: list[tuple[int | None, str]] = list(enumerate(item.paraphrases))
        for paraphrase, text in numbered or [(None, item.question or "")]:
            for seed in self.seeds:
                yield Slot(
                    number,
                    Question(
                        qid=item.qid,
                        text=text,
                        paraphrase=paraphrase,
                        seed=seed,
                        turn=item.turn,
                        number=number,
                    ),
                )
                number += 1

    def _conversation(self, places: Sequence[int]) -> Iterator[Strand]:
        """A strand for each seed, with all turns in their order."""
        ordered = sorted(places, key=lambda place: (self.items[place].turn or 0, place))
        slots = [slot for place in ordered for slot in self._slots(place)]
        for seed in self.seeds:
            yield Strand(tuple(slot for slot in slots if slot.question.seed == seed))


def followed(slots: Slots, numbers: Container[int]) -> Iterator[Slot]:
    """The slots of some numbers, and those that were asked with their answers as history."""
    for strand in slots.strands(numbers.__contains__):
        place = next(n for n, slot in enumerate(strand.slots) if slot.number in numbers)
        yield from strand.slots[place:]


def refuse_unasked(items: Sequence[GoldItem], name: str) -> None:
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


def chosen(items: Sequence[GoldItem], filters: Sequence[str], limit: int | None) -> list[GoldItem]:
    """The items that pass all filters, the first `limit` of them."""
    tests = [_test(text) for text in filters]
    kept = [item for item in items if all(test(item) for test in tests)]
    return kept if limit is None else kept[:limit]


def with_turns_before(items: Sequence[GoldItem], kept: Sequence[GoldItem]) -> list[GoldItem]:
    """Chosen items in gold order, with the turns that stand before them in their conversations.

    A question that goes on with others means nothing without them.
    """
    last: dict[str, int] = {}
    for item in kept:
        if item.turn is not None:
            last[item.qid] = max(item.turn, last.get(item.qid, item.turn))
    if not last:
        return list(kept)
    chosen_ones = set(map(id, kept))
    return [
        item
        for item in items
        if id(item) in chosen_ones
        or (item.turn is not None and item.qid in last and item.turn < last[item.qid])
    ]


def _test(text: str) -> Callable[[GoldItem], bool]:
    """The test that a filter stands for: `FIELD=VALUE`, or `FIELD~REGEX` found anywhere in it."""
    match = _FILTER.fullmatch(text)
    if match is None or match[1] not in FIELDS:
        raise RagaugeError.of(
            "usage",
            f"`{text}` is no filter",
            hint=f"write FIELD=VALUE or FIELD~REGEX; fields: {', '.join(FIELDS)}",
        )
    field, value = FIELDS[match[1]], match[3]
    if match[2] == "=":
        return lambda item: value in field(item)
    try:
        pattern = re.compile(value)
    except re.error as error:
        raise RagaugeError.of(
            "usage", f"`{text}`: {error}", hint="what follows ~ is a regular expression"
        ) from error
    return lambda item: any(each is not None and pattern.search(each) for each in field(item))


def read_seeds(text: str | None) -> Seeds:
    """The seeds of a list such as `0,1,2`; without one every question is asked once."""
    if text is None:
        return ()
    try:
        seeds = tuple(int(each) for each in text.split(","))
    except ValueError as error:
        raise RagaugeError.of(
            "usage", f"seeds are whole numbers, got `{text}`", hint="for example --seeds 0,1,2"
        ) from error
    if len(set(seeds)) < len(seeds) or any(abs(seed) >= 1 << 63 for seed in seeds):
        raise RagaugeError.of(
            "usage", f"a seed stands twice or is too large: `{text}`", hint="for example 0,1,2"
        )
    return seeds
