"""`ragauge compare`: two runs side by side, whatever became of their chunks."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ragauge.cli.options import (
    ALLOW_OPTIONS,
    COMPARISON_FORMAT_OPTION,
    FIELD_OPTIONS,
    GATE_OPTIONS,
    STAGE_OPTION,
    WORKERS_OPTION,
    CommandOptions,
    choice,
    options,
    say,
    screen,
    whole_numbers,
)
from ragauge.cli.output import OUTPUT_OPTIONS, format_of, judged_drops, printable, write_output
from ragauge.cli.store_options import STORE_OPTION, CorpusOption, is_file
from ragauge.cli.streams import print_text

if TYPE_CHECKING:
    from ragauge.compare.align import Aligned
    from ragauge.compare.common_gold import StoredRun
    from ragauge.model.comparison import ComparedRun, ComparisonReport
    from ragauge.model.run import RunRecord
    from ragauge.model.scores import Scores

    DescribedRun = tuple[ComparedRun, Mapping[str, object]]


@click.command("compare", short_help="Compare two runs, question by question.")
@click.argument("a", metavar="A")
@click.argument("b", metavar="B")
@click.option("--gold", metavar="FILE", help="The gold set, where A and B are trace files.")
@click.option("--profile", metavar="NAME", help="For trace files, as in `score`.")
@click.option("--dialect", metavar="NAME", help="For trace files, as in `score`.")
@options([*FIELD_OPTIONS, STAGE_OPTION])
@click.option("--k", metavar="K[,K...]", help="For trace files, as in `score`.")
@click.option("--chunks-a", metavar="FILE", help="Where the chunks of trace file A lie.")
@click.option("--chunks-b", metavar="FILE", help="Where the chunks of trace file B lie.")
@click.option(
    "--strict-chunker-version",
    "strict",
    is_flag=True,
    help="Refuse (exit 4) unless every expected item is recognised by its chunk id in both runs.",
)
@choice(
    "--overlap",
    of=["cumulative", "single"],
    default="cumulative",
    help="Half of an expected span must be covered by the hits up to a rank together, or by one.",
)
@click.option(
    "--map",
    "migration",
    metavar="FILE",
    help="From `corpus diff`, where A and B retrieved from two versions of a corpus: places and "
    "gold that moved are followed.",
)
@click.option(
    "--corpus",
    "corpora",
    multiple=True,
    metavar="DIR",
    help="A built corpus: hits of trace files are placed in it, and an HTML page shows its text "
    "where the runs have none. Repeats, for two versions of a corpus (default: the one in "
    "ragauge.toml).",
)
@click.option(
    "--fail-on",
    multiple=True,
    metavar="KIND[:MOST]",
    help="Exit 1 if a question is a regression (or a loss), in retrieval or answer; MOST may be: "
    "regression:2, or regression:1% of the questions. Repeats.",
)
@click.option(
    "--strict", "strict_kinds", is_flag=True, help="Questions that are mixed count for --fail-on."
)
@click.option(
    "--repeat-of-a",
    "repeats",
    multiple=True,
    metavar="RUN",
    help="Another run of the system of A, as A is given: --fail-on does not count what the noise "
    "between such runs explains. Repeats. Seeds of one run tell it without this.",
)
@click.option(
    "--accept-open",
    is_flag=True,
    help="With --fail-on: pass although it cannot be told of some questions whether they lost "
    "something, as gold names chunks and not the evidence in them (else exit 4).",
)
@click.option(
    "--least-evidence",
    type=click.IntRange(2, 100_000),
    default=40,
    show_default=True,
    metavar="BYTES",
    help="The shortest evidence that may stand in a chunk that gold names.",
)
@click.option(
    "--guess-place",
    is_flag=True,
    help="Add a column with the differences if evidence stands where the words of the question do. "
    "No gate, kind, p-value or headline goes by it.",
)
@options([*GATE_OPTIONS, STORE_OPTION])
@COMPARISON_FORMAT_OPTION
@options(OUTPUT_OPTIONS)
@click.option("--write-report", is_flag=True, help="Also write RUNS_DIR/B/report.md.")
@click.option("--runs-dir", metavar="DIR", help="For --write-report (default: runs).")
@click.option("--full", is_flag=True, help="List every question, draws too.")
@options(ALLOW_OPTIONS[:6])
@WORKERS_OPTION
def COMMAND(**values: Any) -> int:  # noqa: N802
    """Compare run B with run A, question by question.

    A and B are stored runs (id, tag, `baseline`, `latest`), run files (--save-run, `runs export`,
    latest:DIR, pinned:DIR), files of scores, or trace files with --gold.

    Expected items are recognised by the best rung that works in both runs: chunk id, span of the
    document, quote, document. Metrics of both runs are computed under the same rung.

    Gates on a drop (max_drop) are judged here, gates on one run by `gate` and `score`.
    """
    from msgspec.structs import replace

    from ragauge import registry
    from ragauge.codes import ExitCode
    from ragauge.compare import common_gold, compare, fail_on
    from ragauge.model.comparison import ComparisonView
    from ragauge.model.verdict import Verdict

    asked = CommandOptions(**values)
    limits = [fail_on.FailOn.parse(text) for text in dict.fromkeys(asked.fail_on)]
    if (asked.strict_kinds or asked.repeats) and not limits:
        raise click.UsageError("--strict and --repeat-of-a are about --fail-on: give it too")
    config, corpora = asked.config, asked.corpora
    report = _report(asked.format_name)
    written = [format_of(output, registry.comparisons()) for output in asked.outputs]
    inputs = {
        "first run": asked.a,
        "second run": asked.b,
        "gold set": asked.configured("gold"),
        "first list of chunks": asked.chunks_a,
        "second list of chunks": asked.chunks_b,
        "map": asked.migration,
    }
    asked.spare([path for _, path in written], inputs)
    detailed = any(chosen.detailed for chosen in (report, *(filed for filed, _ in written)))
    if corpora and not detailed and not any(map(is_file, (asked.a, asked.b))):
        raise click.UsageError("--corpus is for trace files, and for a page that shows texts")
    with ExitStack() as stack:
        one, other, *repeats = stack.enter_context(_runs(asked))
        details = None
        aligned, side_a, side_b = _aligned(one, other, asked, detailed=detailed)
        drop_gates, verdict = judged_drops(
            aligned,
            config,
            asked.gates,
            asked.tolerance,
            asked.as_of,
            [_named(other, asked.b), _named(one, asked.a)],
        )
        blocks = compare.comparison_blocks(aligned, asked.tolerance)
        if blocks:
            nothing = Verdict(status="pass", exit_code=ExitCode.PASS, gates=(), blocks=())
            verdict = (verdict or nothing).blocked_by(blocks)
        for note in aligned.field_notes:
            say(f"warning: {note}")
        comparison = compare.compare(
            aligned,
            side_a[0],
            side_b[0],
            gated=[gate.metric for gate in drop_gates],
            config=(side_a[1], side_b[1]),
            verdict=verdict,
            tolerance=fail_on.recall_tolerance(limits),
        )
        if asked.write_report:
            folder = Path(asked.configured("runs_dir") or "runs") / _safe(comparison.run_b.name)
            written.append((_report("md"), str(folder / "report.md")))
            asked.spare([path for _, path in written], inputs)
        if (
            isinstance(one, common_gold.StoredRun)
            and isinstance(other, common_gold.StoredRun)
            and detailed
        ):
            from ragauge.report.drilldown.questions import details_of_comparison

            texts = CorpusOption.of(corpora, config).opened(stack)
            details = stack.enter_context(
                details_of_comparison(one, other, aligned, comparison, texts)
            )
        checks = fail_on.check_kinds(
            comparison,
            aligned,
            limits,
            strict=asked.strict_kinds,
            repeats=[_repeated(run, other, asked) for run in repeats],
            accept_doc_level=asked.accept_doc_level,
        )
        view = ComparisonView(
            comparison=comparison,
            full=asked.full,
            raw_csv=asked.raw_csv,
            details=details,
            fail_on=checks,
            undecided=fail_on.why_undecided(
                comparison,
                checks,
                aligned.field_notes,
                allow_missing=bool(asked.allow_missing),
                accept_open=asked.accept_open,
            ),
        )
        for file_report, path in written:
            write_output(path, file_report.content(view))
        content = report.content(replace(view, **screen()))
        print_text(printable(content, report.name), report.syntax)
    return int(view.exit_code)


@contextmanager
def _runs(asked: CommandOptions) -> Iterator[list[StoredRun | Scores]]:
    """The two runs and the repeats of the first, as they are named."""
    from ragauge.cli.named_runs import RunFinder

    with ExitStack() as stack:
        finder = RunFinder(
            stack,
            asked.config,
            open_store=lambda: stack.enter_context(asked.store()),
            suite=asked.config.suite or "default",
        )
        finder.open_for((asked.a, asked.b))
        runs: list[StoredRun | Scores] = []
        corpora = asked.corpora or (() if asked.config.corpus is None else (asked.config.corpus,))
        corpus = None  # of two versions the first is that of A
        traced = False
        for number, name in enumerate((asked.a, asked.b, *asked.repeats)):
            if number < 2 and number < len(corpora):
                corpus = corpora[number]
            elif number >= 2:  # as the first
                corpus = corpora[0] if corpora else None
            chunks = asked.chunks_b if number == 1 else asked.chunks_a
            run = finder.run_in_file(name)
            if run is None and is_file(name) and _is_trace_file(name, asked):
                runs.append(_trace_file(stack, name, chunks, corpus, asked))
                traced = True
            else:
                runs.append(finder.source(name) if run is None else run)
                if asked.stage == "first":
                    raise click.UsageError(
                        f"--stage first: {name} is no trace file, and was scored"
                    )
        if not traced:
            _refuse_options_of_traces(asked)
        yield runs


def _refuse_options_of_traces(asked: CommandOptions) -> None:
    """Raise if an option is for trace files, and there are none: it would change nothing."""
    given = {
        "--profile": asked.profile,
        "--dialect": asked.dialect,
        "--field": asked.own_fields,
        "--k": asked.k,
        "--chunks-a": asked.chunks_a,
        "--chunks-b": asked.chunks_b,
    }
    ignored = [name for name, value in given.items() if value]
    if ignored:
        raise click.UsageError(f"{', '.join(ignored)}: for trace files; A and B are scored already")


def _is_trace_file(name: str, asked: CommandOptions) -> bool:
    return asked.configured("gold") is not None and not holds_scores(name)


def _trace_file(
    stack: ExitStack, name: str, chunks: str | None, corpus: str | None, asked: CommandOptions
) -> StoredRun:
    """A trace file as a run in a store of its own, gone at the end."""
    ks = whole_numbers("--k", asked.k) or asked.config.k or None
    gold = asked.configured("gold") or ""
    return asked.scored_file(stack, gold, name, k=ks, chunks=chunks, corpus=corpus)


_SCORES = re.compile(rb'"schema":\s*"ragauge\.scores/')


def holds_scores(name: str) -> bool:
    """Whether a file says that it holds scores; one that is not there is no trace file either.

    What is the profile's own stands before that. A trace cannot say it by chance: inside its texts
    the quotes are escaped.
    """
    if name == "-" or Path(name).is_dir():
        return False
    if not Path(name).exists():
        return True
    with open(name, "rb") as file:
        return _SCORES.search(file.read(1 << 20)) is not None


def _report(name: str) -> ComparisonReport:
    from ragauge import registry

    reports = registry.comparisons()
    if name not in reports:
        raise registry.unknown_name("format", name, reports)
    return reports[name]


def _named(run: StoredRun | Scores, name: str) -> RunRecord | str:
    """The record of a run, stored or in a file; the name of a file that does not say its date."""
    from ragauge.compare.common_gold import StoredRun

    return run.record if isinstance(run, StoredRun) and run.record.created_at else name


def _safe(name: str) -> str:
    """A run's name as the name of a folder."""
    return "".join(
        character if character.isalnum() or character in "-_.:" else "_" for character in name
    ).strip(".")


def _aligned(
    one: StoredRun | Scores, other: StoredRun | Scores, asked: CommandOptions, *, detailed: bool
) -> tuple[Aligned, DescribedRun, DescribedRun]:
    """Both runs on the gold that they share, and what is said of each."""
    from ragauge.compare import align, common_gold, compare, fail_on

    if isinstance(one, common_gold.StoredRun) and isinstance(other, common_gold.StoredRun):
        aligned = align.align(
            one,
            other,
            overlap=asked.overlap,
            strict=asked.strict,
            workers=asked.workers,
            detailed=detailed,
            migration=asked.migration,
            least_evidence=asked.least_evidence,
            guess_place=asked.guess_place,
        )
        return aligned, compare.describe_run(one), compare.describe_run(other)
    from ragauge.scoring.places import LEAST_EVIDENCE

    hits = asked.strict, asked.overlap != "cumulative", asked.migration, asked.corpora
    if any(hits) or asked.least_evidence != LEAST_EVIDENCE or asked.guess_place:
        raise click.UsageError(
            "--strict-chunker-version, --overlap, --map, --corpus, --least-evidence and "
            "--guess-place need runs with their hits: stored runs or trace files, not files of "
            "scores"
        )
    aligned = compare.align_scores(one, other)
    if asked.fail_on:
        fail_on.refuse_without_ranks(aligned)
    return aligned, compare.describe_run(one, asked.a), compare.describe_run(other, asked.b)


def _repeated(
    repeat: StoredRun | Scores, other: StoredRun | Scores, asked: CommandOptions
) -> Scores:
    """A repeat of run A as it is beside run B: on the gold that they share, matched as A is."""
    from ragauge.compare import align, common_gold, compare

    if isinstance(repeat, common_gold.StoredRun) and isinstance(other, common_gold.StoredRun):
        return align.align(
            repeat,
            other,
            overlap=asked.overlap,
            workers=asked.workers,
            migration=asked.migration,
            least_evidence=asked.least_evidence,
        ).a
    return compare.align_scores(repeat, other).a
