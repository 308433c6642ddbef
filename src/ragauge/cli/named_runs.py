"""Runs by the names that commands take: stored runs, run files, folders of kept runs, scores.

Gates on a drop may be judged against several of them at once.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import click

from ragauge.cli.options import say
from ragauge.cli.store_options import is_file, temporary_store, the_store
from ragauge.model.baseline_name import BaselineName, parse_baseline_name

if TYPE_CHECKING:
    from ragauge.compare.common_gold import StoredRun
    from ragauge.config import Config
    from ragauge.gates.baselines import GateBaseline
    from ragauge.model.run import RunRecord, Store
    from ragauge.model.scores import Scores
    from ragauge.model.verdict import Gate, GateKey
    from ragauge.store.run_files import RunFile


class NamedBaseline(NamedTuple):
    """A baseline that was found: a run or scores, or the runs that the best is chosen from."""

    label: str
    source: StoredRun | Scores | None = None
    candidates: Sequence[StoredRun] = ()

    @property
    def has_hits(self) -> bool:
        """Whether the run has to be stored, so that both can be aligned."""
        from ragauge.compare.common_gold import StoredRun

        return bool(self.candidates) or isinstance(self.source, StoredRun)


def names_run(text: str) -> bool:
    """Whether a name is of a run, stored or in a file, and not of another kind of file."""
    from ragauge.store.run_files import read_run_file

    in_folder = parse_baseline_name(text).kind != "run"
    return in_folder or not is_file(text) or read_run_file(text) is not None


class RunFinder:
    """Finds runs by name; what it opens is closed with the stack, and read once."""

    def __init__(
        self,
        stack: ExitStack,
        config: Config,
        *,
        store: Store | None = None,
        open_store: Callable[[], Store] | None = None,
        suite: str | None = None,
    ) -> None:
        self.stack = stack
        self.config = config
        self.suite = suite
        self._store = store
        self._open_store = open_store or (lambda: stack.enter_context(the_store(None, config)))
        self._files: dict[str, StoredRun] = {}

    @property
    def store(self) -> Store:
        """The store of the command, opened when a run in it is named."""
        if self._store is None:
            self._store = self._open_store()
        return self._store

    def open_for(self, names: Sequence[str]) -> None:
        """Open the store now if any of the names is of a run in it: consent before work."""
        if any(parse_baseline_name(name).folder is None and not is_file(name) for name in names):
            _ = self.store

    def source(self, text: str) -> StoredRun | Scores:
        """The run of a name, or the scores in a file."""
        from ragauge.model import scores_document

        if names_run(text):
            return self.run(text)
        return scores_document.load_scores(text)

    def run(self, text: str) -> StoredRun:
        """The run of a name that `names_run` knows for one."""
        from ragauge.compare.common_gold import StoredRun
        from ragauge.store.runs import find_run

        run = self.run_in_file(text)
        return run or StoredRun(self.store, find_run(self.store, text, suite=self.suite))

    def run_in_file(self, text: str) -> StoredRun | None:
        """The run that a run file holds, named as one or by its folder; None for any other name."""
        from ragauge.store.run_files import read_run_file

        name = parse_baseline_name(text)
        if name.kind == "best-of":
            raise click.UsageError(f"{text} is for gates on a drop: name one run here")
        if name.folder is None:
            file = read_run_file(text)
        else:
            file = _in_folder(name)
            if file is None:
                raise _nothing_kept(name)
        return None if file is None else self._loaded(file)

    def _loaded(self, file: RunFile) -> StoredRun:
        """A run file as a stored run, in a store that is gone at the end.

        All share one store, but for files that hold different runs under one id.
        """
        from hashlib import sha256

        from ragauge.compare.common_gold import StoredRun
        from ragauge.store.run_files import import_run_file

        digest = sha256(file.path.read_bytes()).hexdigest()  # the pinned run is often a kept one
        if digest not in self._files:
            stores = [loaded.store for loaded in self._files.values()]
            free = (store for store in stores if store.run(file.run.run_id) is None)
            store = next(free, None) or self.stack.enter_context(temporary_store())
            self._files[digest] = StoredRun(store, import_run_file(file, store))
        return self._files[digest]

    def baselines(
        self, names: Sequence[str], *, run: RunRecord | None = None, allow_none: bool = False
    ) -> list[NamedBaseline]:
        """The baselines of a command or of ragauge.toml; `run` is the one to be judged, if stored.

        With `allow_none` a folder that keeps no run yet is left out: this is the first run.
        """
        parsed = [parse_baseline_name(text) for text in names or self.config.baselines]
        labels = [name.label for name in parsed]
        found = []
        for name in parsed:
            label = name.label if labels.count(name.label) == 1 else name.text
            if allow_none and name.folder is not None and not _keeps_any(name):
                say(f"note: {name.folder} keeps no run yet: nothing is compared with {name.label}")
            elif name.kind == "best-of":
                found.append(NamedBaseline(label, candidates=self._candidates(name, run)))
            else:
                found.append(NamedBaseline(label, self.source(name.text)))
        return found

    def _candidates(self, name: BaselineName, run: RunRecord | None) -> list[StoredRun]:
        """The last runs, the oldest first; of a store those of the suite, up to the run itself."""
        from ragauge.compare.common_gold import StoredRun
        from ragauge.store.run_files import kept_runs
        from ragauge.store.runs import find_run

        if name.folder is not None:
            files = kept_runs(Path(name.folder))[-name.count :]
            if not files:
                raise _nothing_kept(name)
            return [self._loaded(file) for file in files]
        suite = self.suite or "default"
        runs = [
            stored
            for stored in self.store.runs(suite=suite)
            if stored.status == "complete"
            and (name.branch is None or stored.branch == name.branch)
            and (run is None or _order(stored) < _order(run))
        ][-name.count :]
        if not runs:
            raise _nothing_kept(name)
        return [StoredRun(self.store, find_run(self.store, stored.run_id)) for stored in runs]


def _order(run: RunRecord) -> tuple[str, str]:
    return run.created_at, run.run_id


def _in_folder(name: BaselineName) -> RunFile | None:
    from ragauge.store.run_files import kept_runs, pinned_run

    folder = Path(name.folder or "")
    if name.kind == "pinned":
        return pinned_run(folder)
    return next(iter(kept_runs(folder)[-1:]), None)


def _keeps_any(name: BaselineName) -> bool:
    """Whether a folder keeps anything: if it does, nothing may be missing there."""
    from ragauge.store.run_files import kept_runs, pinned_run

    folder = Path(name.folder or "")
    return pinned_run(folder) is not None or bool(kept_runs(folder))


def _nothing_kept(name: BaselineName) -> Exception:
    from ragauge.errors import RagaugeError

    if name.folder is None:
        message = f"there is no run that `{name.text}` could be chosen from"
        hint = "store runs of the suite first; --allow-no-baseline is for a first run in a folder"
    else:
        noun = "pinned run" if name.kind == "pinned" else "run"
        message = f"`{name.folder}` keeps no {noun}"
        hint = "`ragauge runs keep` keeps one there; for the very first run say --allow-no-baseline"
    return RagaugeError.of("no-baseline", message, hint=hint)


def gate_baselines(
    named: Sequence[NamedBaseline],
    scores: Scores,
    run: StoredRun | None,
    gates: Sequence[Gate],
    *,
    allow_itself: bool = False,
) -> list[GateBaseline]:
    """What gates on a drop are judged against; runs with their hits are aligned with the run.

    So a change of chunks is no drop. `run` is the one to be judged, where it is stored. A run is no
    baseline of itself, but where nothing is judged (`allow_itself`).
    """
    from msgspec.structs import replace

    from ragauge.compare.align import align
    from ragauge.compare.best_run import best_runs
    from ragauge.compare.common_gold import StoredRun
    from ragauge.errors import RagaugeError
    from ragauge.gates.baselines import GateBaseline
    from ragauge.store.runs import run_scores

    def beside(source: StoredRun | Scores) -> GateBaseline:
        if not isinstance(source, StoredRun):
            return GateBaseline(scores=source)
        run_id = source.record.run_id
        if run is None:
            return GateBaseline(scores=run_scores(source.store, source.record), run_id=run_id)
        is_itself = source.store is run.store and run_id == run.record.run_id
        if is_itself and not allow_itself:
            raise RagaugeError.of(
                "incomparable",
                f"the baseline is the run itself ({run_id}): nothing can have dropped",
                hint="judge a run before it is kept, or name an earlier one as the baseline",
            )
        aligned = align(source, run)
        return GateBaseline(scores=aligned.a, beside=aligned.b, run_id=run_id)

    drops = [gate for gate in gates if gate.is_drop]
    several = len(named) > 1 or any(baseline.candidates for baseline in named)
    baselines = []
    for baseline in named if drops else ():
        label = baseline.label if several else None
        if baseline.source is not None:
            baselines.append(replace(beside(baseline.source), label=label))
            continue
        best = best_runs(baseline.candidates, scores, drops)
        by_run: dict[tuple[int, int], list[GateKey]] = {}
        newest = len(baseline.candidates) - 1
        for gate in drops:
            chosen = best.get(gate.key)  # without one the newest run says what cannot be compared
            place = newest if chosen is None else baseline.candidates.index(chosen.run)
            count = 1 if chosen is None else chosen.chosen_from
            by_run.setdefault((place, count), []).append(gate.key)
        for (place, count), keys in by_run.items():
            chosen_run = beside(baseline.candidates[place])
            only = frozenset(keys)
            baselines.append(replace(chosen_run, label=label, keys=only, chosen_from=count))
    return baselines
