"""What is probed: the traces of a file or of a stored run that are scored, and their gold items.

Files are read, and traces joined with gold, as `score` does it.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack

from msgspec import Struct

from ragauge.diagnose.scored_traces import UNKNOWN, ScoredTraces, scored_traces
from ragauge.errors import RagaugeError
from ragauge.files.open import PathLike
from ragauge.formats.detect import FormatChoice, choose
from ragauge.formats.load import as_trec, load_gold, open_source, read_gold, read_traces
from ragauge.model.gold import GoldItem
from ragauge.model.payloads import thaw_gold, trace_of
from ragauge.model.profile import JoinRules
from ragauge.model.run import RunRecord, Store
from ragauge.model.trace import Trace
from ragauge.scoring.identify import EvidenceIdentifier
from ragauge.scoring.inputs import stored_engine
from ragauge.scoring.scoring_run import ScoringPlan
from ragauge.store.runs import begin_loading
from ragauge.store.snapshot import plan_of, read_snapshot


class ProbeInput(Struct, frozen=True, kw_only=True):
    """Traces that are scored, and the gold items that they are of; none where no gold is known."""

    scored: ScoredTraces
    items: Sequence[GoldItem] = ()


def probed_file(
    traces: PathLike, gold: PathLike | None, *, profile: str | None = None, dialect: str = "auto"
) -> ProbeInput:
    """The traces of a file, with the gold set where one is given."""
    with ExitStack() as stack:
        trace_source = open_source(stack, traces)
        gold_source = as_trec(open_source(stack, gold), trace_source)
        assert trace_source is not None
        choice = choose(dialect, profile, gold=gold_source, trace=trace_source)
        loaded = read_traces(trace_source, choice)
        loaded.stop_on_problems()
        recogniser = None
        if gold_source is not None:
            gold_set = read_gold(gold, gold_source, choice)
            gold_set.stop_on_problems()
            recogniser = _recogniser(choice, gold_set.items, gold_source.name)
        return _probed(loaded.items, choice.profile.join, recogniser, trace_source.name)


def probed_run(store: Store, run: RunRecord, gold: PathLike | None) -> ProbeInput:
    """The traces of a stored run, with its own gold set or with another one."""
    snapshot = read_snapshot(run.snapshot, run.run_id)
    if gold is None:
        items, name = thaw_gold(store.gold(run.gold_key), run.run_id), snapshot.inputs.gold_name
    else:
        gold_set = load_gold(gold)
        items, name = list(gold_set.items), gold_set.name
    with ExitStack() as stack:
        engine = stored_engine(stack, run.results, 1)
        source = begin_loading(stack, store, run, engine)().source
        with open(source.path, "rb") as file:
            traces = [trace_of(line) for line in file]
    recogniser = EvidenceIdentifier(
        plan_of(snapshot.scoring, metrics=()), items, {}, gold_name=name
    )
    return _probed(traces, recogniser.rules, recogniser, run.run_id)


def _recogniser(choice: FormatChoice, items: Sequence[GoldItem], name: str) -> EvidenceIdentifier:
    plan = ScoringPlan(
        profile=choice.profile,
        dialect=choice.dialect,
        own=choice.own,
        k=choice.profile.k,
        selected=[],
    )
    return EvidenceIdentifier(plan, items, {}, gold_name=name)


def _probed(
    traces: Sequence[Trace], rules: JoinRules, recogniser: EvidenceIdentifier | None, name: str
) -> ProbeInput:
    if not traces:
        raise RagaugeError.of(
            "nothing-measured",
            f"there is no trace in `{name}`",
            hint="a probe needs traces whose hits have texts or ΔS",
        )
    scored = scored_traces(traces, rules, known=recogniser)
    if scored.left_out.get(UNKNOWN, 0) == len(traces):
        raise RagaugeError.of(
            "nothing-measured",
            f"no trace of `{name}` belongs to a gold item",
            hint="compare one id of each file: a changed prefix is the usual cause",
        )
    return ProbeInput(scored=scored, items=() if recogniser is None else recogniser.items)
