"""The ledger: which slots of which questions are taken, and which are missing."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from ragauge.metrics.columns import Bools, Column
from ragauge.model.trace import SlotKey

DENSE_CELLS = 64_000_000
"""64 MB of bytes: 100,000 questions with 640 slots each."""

Pair = tuple[int | None, int | str | None]
"""Paraphrase and seed."""


class Ledger:
    """Remembers which slots of which questions are taken; the first to come takes the slot.

    Slots × questions is a table of bytes while it is small. Runs whose slots hardly repeat (a new
    random seed for every trace) would need a huge one; they go into sorted runs that are merged
    as they grow.
    """

    def __init__(self, questions: int, *, dense_cells: int = DENSE_CELLS) -> None:
        self.questions = questions
        self.dense_cells = dense_cells
        self.codes: dict[SlotKey, int] = {}
        self.taken: Bools = np.zeros(0, np.bool_)
        self.runs: list[NDArray[np.int64]] | None = None

    def claim(self, question: NDArray[np.int32], slots: NDArray[np.int64]) -> Bools:
        """Take the slots of these records, in their order; say which were still free."""
        keys = slots * self.questions + question
        first = np.zeros(len(keys), np.bool_)
        # Mostly no slot is there twice in a batch; a sort that shows it is cheaper than `unique`.
        ordered = np.sort(keys)
        if len(keys) and bool((ordered[1:] == ordered[:-1]).any()):
            first[np.unique(keys, return_index=True)[1]] = True
        else:
            first[:] = True
        fresh: Bools = first & ~self._held(keys)
        self._hold(keys[fresh])
        return fresh

    def code(self, key: SlotKey) -> int:
        """The number of a slot key, the same for the whole run."""
        return self.codes.setdefault(key, len(self.codes))

    def _held(self, keys: NDArray[np.int64]) -> Bools:
        if self.runs is None and len(self.codes) * self.questions <= self.dense_cells:
            needed = len(self.codes) * self.questions
            if needed > len(self.taken):
                grown = np.zeros(max(needed, 2 * len(self.taken)), np.bool_)
                grown[: len(self.taken)] = self.taken
                self.taken = grown
            return self.taken[keys]
        if self.runs is None:
            self.runs = [np.flatnonzero(self.taken).astype(np.int64)]
            self.taken = np.zeros(0, np.bool_)
        held = np.zeros(len(keys), np.bool_)
        for run in self.runs:
            if len(run):
                place = np.minimum(np.searchsorted(run, keys), len(run) - 1)
                held |= run[place] == keys
        return held

    def _hold(self, keys: NDArray[np.int64]) -> None:
        if self.runs is None:
            self.taken[keys] = True
            return
        self.runs.append(np.sort(keys))
        # Each run is at least twice as long as the next one, so a key is merged O(log n) times and
        # there are few runs to search.
        while len(self.runs) > 1 and len(self.runs[-2]) < 2 * len(self.runs[-1]):
            last = self.runs.pop()
            self.runs[-1] = np.sort(np.concatenate([self.runs[-1], last]))

    def missing_slots(self, seen: Bools, paraphrases: Column | None = None) -> int:
        """Slots of paraphrases × seeds seen in the run that questions with a trace lack.

        Where it is known how many paraphrases a question has, no others are missed.
        """
        if not self.questions or not self.codes:
            return 0
        pairs = {(paraphrase, seed) for paraphrase, seed, _ in self.codes}
        grid = len({paraphrase for paraphrase, _ in pairs}) * len({seed for _, seed in pairs})
        asked = int(np.count_nonzero(seen))
        if self.runs is None:
            rows = self.taken[: len(self.codes) * self.questions].reshape(-1, self.questions)
            order = {pair: i for i, pair in enumerate(sorted(pairs, key=repr))}
            filled = np.zeros((len(order), self.questions), np.bool_)
            for (paraphrase, seed, _), code in self.codes.items():
                filled[order[paraphrase, seed]] |= rows[code] & seen
            lacking = grid * asked - int(np.count_nonzero(filled))
            if paraphrases is not None and (paraphrases > 0).any():
                lacking -= self._impossible(seen, paraphrases, filled, order)
            return lacking
        # Too many slots for a table: without turns every slot is a pair of its own.
        taken = sum(int(np.count_nonzero(seen[run % self.questions])) for run in self.runs)
        return max(0, grid * asked - taken)

    def _impossible(
        self,
        seen: Bools,
        paraphrases: Column,
        filled: Bools,
        order: Mapping[Pair, int],
    ) -> int:
        """Empty slots of the grid that a question with its own paraphrases cannot have."""
        numbers = {paraphrase for paraphrase, _, _ in self.codes}
        seeds = {seed for _, seed, _ in self.codes}
        own = seen & (paraphrases > 0)
        count = 0
        for paraphrase in numbers:
            beyond = own if paraphrase is None else own & (paraphrases <= paraphrase)
            if paraphrase is None and len(numbers) == 1:
                continue  # the run does not distinguish paraphrases
            for seed in seeds:
                place = order.get((paraphrase, seed))
                empty = beyond if place is None else beyond & ~filled[place]
                count += int(np.count_nonzero(empty))
        # A question without paraphrases is asked once a seed, though others have some.
        single = seen & (paraphrases == 0)
        for seed in seeds:
            places = [
                order[pair] for pair in ((number, seed) for number in numbers) if pair in order
            ]
            present = np.count_nonzero(filled[places][:, single], axis=0)
            count += int(np.sum(len(numbers) - np.maximum(present, 1)))
        return count
