"""`ragauge probe`: what ΔS says of an index: over ranks, against decoys, of several retrievers."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

import click

from ragauge.cli.options import (
    EMBED_OPTIONS,
    CommandOptions,
    options,
    permit_embedder,
    rounded,
    say,
    whole_numbers,
)
from ragauge.cli.store_options import ANY_FORMAT, CONFIG_OPTION, STORE_OPTION, is_file
from ragauge.cli.streams import print_json, print_lines

if TYPE_CHECKING:
    from ragauge.diagnose.probes import Probe
    from ragauge.diagnose.scored_traces import ProbeInput, ScoredTraces
    from ragauge.embed.measure import Measurer
    from ragauge.model.semantic import Bands
    from ragauge.scoring.known_texts import TextFinder

_TEXT_OPTIONS = [
    click.option("--corpus", metavar="DIR", help="A corpus, for texts that traces lack."),
    click.option("--chunks", metavar="FILE", help="A list of chunks, with texts or places."),
]
_GOLD_OPTION = click.option(
    "--gold",
    metavar="FILE",
    help="The gold set: traces of no item are left out, and questions are taken from there where "
    "traces have none (default: that of a stored run).",
)
_SHARED = [*EMBED_OPTIONS, *_TEXT_OPTIONS, ANY_FORMAT, STORE_OPTION, CONFIG_OPTION]


@click.group("probe", no_args_is_help=False, short_help="Find what is wrong with an index by ΔS.")
def COMMAND() -> None:  # noqa: N802
    """Find what is wrong with an index by ΔS.

    TRACES is a trace file or a stored run. Of each slot the last trace counts, as in `score`, and a
    turn of a conversation is a question. Each probe prints its rule and its numbers. Exit code 1 if
    the rule finds a fault, 4 if there is too little to judge or ΔS is lexical, 5 if there is
    nothing at all.
    """


@COMMAND.command("k-sweep", short_help="ΔS of the first 5, 10 and 20 hits.")
@click.argument("traces", metavar="TRACES")
@_GOLD_OPTION
@click.option("--k", "ks", default="5,10,20", show_default=True, metavar="K,K[,K...]")
@options(_SHARED)
def _k_sweep(
    traces: str,
    gold: str | None,
    ks: str,
    **shared: Any,
) -> int:
    """Look at ΔS of the first k hits: flat and high, or falling with k?"""
    from ragauge.diagnose import probes

    cutoffs = sorted({*(whole_numbers("--k", ks) or ())})
    if len(cutoffs) < 2 or cutoffs[0] < 1:
        raise click.UsageError("--k takes at least two different numbers from 1")
    with _Bench(**shared) as bench:
        scored = bench.measured(bench.read(traces, gold))
        name, bands = bench.bands([scored])
        return bench.show(probes.k_sweep(scored, cutoffs, bands), name)


@COMMAND.command("triangulate", short_help="The first hit between anchor and decoy.")
@click.argument("gold", metavar="GOLD")
@click.argument("traces", metavar="TRACES")
@options(_SHARED)
def _triangulate(
    gold: str,
    traces: str,
    **shared: Any,
) -> int:
    """Compare ΔS of the first hit to the anchor of GOLD with ΔS to a decoy, its first negative."""
    from ragauge.diagnose import probes
    from ragauge.scoring.known_texts import TextsById

    with _Bench(**shared) as bench:
        measurer = bench.measurer
        if measurer is None:
            raise click.UsageError("triangulate compares texts: give --embed NAME")
        probed = bench.read(traces, gold)
        pool = TextsById(bench.texts, probed.scored.traces())
        references = probes.references_of(probed.items, pool)
        probe = probes.triangulate(probed.scored, references, pool, measurer)
        return bench.show(probe, measurer.embedder.id)


@COMMAND.command("hybrid", short_help="Two retrievers by themselves, and together.")
@click.option("--sparse", required=True, metavar="TRACES", help="The lexical retriever alone.")
@click.option("--dense", required=True, metavar="TRACES", help="The vector retriever alone.")
@click.option("--hybrid", "both", required=True, metavar="TRACES", help="Both together.")
@click.option("--k", type=click.IntRange(1), default=5, show_default=True, metavar="K")
@_GOLD_OPTION
@options(_SHARED)
def _hybrid(
    sparse: str,
    dense: str,
    both: str,
    k: int,
    gold: str | None,
    **shared: Any,
) -> int:
    """See whether two retrievers are good by themselves, and worse together."""
    from ragauge.diagnose import probes

    with _Bench(**shared) as bench:
        runs = {
            name: bench.measured(bench.read(source, gold))
            for name, source in (("sparse", sparse), ("dense", dense), ("hybrid", both))
        }
        name, _ = bench.bands(runs.values())
        return bench.show(probes.hybrid(runs, k), name)


class _Bench:
    """What a probe works with: traces, texts, an embedder, and the bands of its ΔS."""

    def __init__(self, **shared: Any) -> None:
        self.asked = CommandOptions(**shared)
        self.config = self.asked.config
        self.measurer: Measurer | None = None
        self.texts: TextFinder

    def __enter__(self) -> _Bench:
        from ragauge.embed.measure import open_measurer
        from ragauge.scoring.known_texts import known_texts

        with ExitStack() as stack:
            configured = self.asked.configured
            permit_embedder(self.config, self.asked.embed)
            self.texts = known_texts(stack, configured("chunks"), configured("corpus"))
            embedder, cache = configured("embed"), configured("embed_cache")
            if embedder is not None:
                self.measurer = stack.enter_context(
                    open_measurer(embedder, settings=self.config.embedders, cache=cache)
                )
            self.stack = stack.pop_all()
        return self

    def __exit__(self, *failure: object) -> None:
        self.stack.close()

    def read(self, name: str, gold: str | None) -> ProbeInput:
        """The scored traces of a file or of a stored run, with their gold items."""
        from ragauge.diagnose.scored_traces import probed_file, probed_run

        if is_file(name):
            return probed_file(
                name,
                gold,
                profile=self.config.profile,
                dialect=self.config.dialect or "auto",
                fields=self.config.field_maps,
            )
        from ragauge.store.runs import find_run

        with self.asked.store() as store:
            return probed_run(store, find_run(store, name), gold)

    def measured(self, probed: ProbeInput) -> ScoredTraces:
        """The traces with ΔS by the embedder; as they recorded it where none is chosen."""
        from ragauge.scoring.remeasure import Remeasurer

        if self.measurer is None:
            return probed.scored
        remeasurer = Remeasurer(self.measurer, probed.items, self.texts)
        return probed.scored.with_traces(remeasurer.traces(probed.scored.traces()))

    def bands(self, runs: Iterable[ScoredTraces]) -> tuple[str | None, Bands]:
        """The embedder of the ΔS, and its bands; ΔS of several embedders is refused."""
        from ragauge.errors import RagaugeError
        from ragauge.model.semantic import Bands

        models = {
            trace.embedder or trace.index.get("embed_model")
            for run in runs
            for trace in run.traces()
        }
        names = sorted(model for model in models if model is not None)
        if len(names) > 1:
            message = f"the ΔS of these traces come from {', '.join(names[:3])}"
            hint = "measure all of them with one: --embed NAME"
            raise RagaugeError.of("mixed-embedders", message, hint=hint)
        name = names[0] if names else None
        return name, self.config.bands.get(name or "", Bands())

    def show(self, probe: Probe, embedder: str | None) -> int:
        """Print what a probe found, and return its exit code."""
        import msgspec
        from msgspec.structs import replace

        from ragauge.codes import ExitCode
        from ragauge.model.semantic import is_lexical

        if is_lexical(embedder or "") and probe.finding != "not-evaluable":
            reason = f"the ΔS is lexical and is not judged (it would be: {probe.finding})"
            probe = replace(probe, finding="not-evaluable", reason=f"{reason}; {probe.reason}")
        probe = replace(probe, embedder=embedder)
        for note in self.measurer.notes() if self.measurer is not None else ():
            say(f"warning: {note}")
        if self.asked.format_name == "json":
            print_json(rounded(msgspec.to_builtins(probe)))
        else:
            print_lines(_lines(probe))
        if probe.finding == "not-evaluable":
            return int(ExitCode.NOT_EVALUABLE)
        return int(ExitCode.PASS if probe.finding == "ok" else ExitCode.GATE_FAILED)


def _lines(probe: Probe) -> list[str]:
    from ragauge.diagnose.scored_traces import UNKNOWN
    from ragauge.model.phrases import question_name
    from ragauge.text import plain, some

    lines = [
        f"{probe.probe}: {probe.finding}",
        f"  {probe.reason}",
        f"  rule: {probe.rule}",
        plain(f"  embedder: {probe.embedder or 'not known'}, questions: {probe.n}"),
    ]
    for name, value in probe.numbers.items():
        lines.append(f"  {name:<16} {_value_text(value)}")
    if probe.worst:
        lines.append("  worst")
        for row in probe.worst:
            values = {key: value for key, value in row.items() if key not in ("qid", "turn")}
            cells = ", ".join(f"{key} {_value_text(value)}" for key, value in values.items())
            lines.append(f"    {question_name(row['qid'], row.get('turn'))}: {cells}")
    for reason, n in probe.left_out.items():
        names = f": {some(probe.unknown)}" if reason.startswith(UNKNOWN) else ""
        lines.append(plain(f"  left out: {_counted(n, reason)}{names}"))
    return lines


def _counted(n: int, reason: str) -> str:
    """A number of what a reason begins with: `1 trace of no gold item`."""
    for noun in ("questions", "traces", "slots", "gold items"):
        if n == 1 and reason.startswith(f"{noun} "):
            return f"1 {noun[:-1]}{reason.removeprefix(noun)}"
    return f"{n} {reason}"


def _value_text(value: object) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{key}: {_value_text(item)}" for key, item in value.items())
    return f"{value:.4f}" if isinstance(value, float) else str(value)
