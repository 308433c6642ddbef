"""`ragauge view`: a run, a comparison or a file of scores as a page in the browser."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from ragauge.cli.options import (
    ALLOW_OPTIONS,
    BASELINE_OPTION,
    GATE_OPTIONS,
    CommandOptions,
    options,
)
from ragauge.cli.output import judged, judged_drops, write_output
from ragauge.cli.store_options import (
    STORE_OPTION,
    TEXTS_OPTION,
    CorpusOption,
    details_in,
    is_file,
)
from ragauge.cli.streams import print_line

if TYPE_CHECKING:
    from ragauge.compare.common_gold import StoredRun
    from ragauge.model.scores import Scores

_PAGES = (".html", ".htm")
_LONGEST = 80


class _Page(NamedTuple):
    """A page, what it is called where no name is given, and where what it shows came from."""

    name: str
    sources: tuple[str, ...]
    content: str | bytes


@click.command("view", short_help="Open a run or saved scores as a page in the browser.")
@click.argument("name", metavar="RUN|FILE")
@click.option(
    "--against", "other", metavar="RUN", help="Compare it with this run; the page shows both."
)
@click.option(
    "--map",
    "migration",
    metavar="FILE",
    help="With --against, as in `compare`: the map between the corpora of the two runs.",
)
@TEXTS_OPTION
@options([*GATE_OPTIONS, BASELINE_OPTION, STORE_OPTION])
@click.option(
    "-o",
    "output",
    metavar="FILE",
    help="Write the page to FILE (default: into the user's folder for caches).",
)
@click.option("--no-open", is_flag=True, help="Only write the page, and print where it is.")
@options(ALLOW_OPTIONS)
def COMMAND(**values: Any) -> int:  # noqa: N802
    """Write a page that shows a run question by question, and open it in the browser.

    RUN is a stored run (id, tag, `baseline`, `latest`). FILE is a file of scores, whose page has no
    hits, or a page that was written before.

    The path of the page is printed. The exit code is 0 when the page was made, whatever its verdict
    says: `ragauge gate` decides. Gates are judged anew: say --baseline and --allow-... as they were
    said to `score`.
    """
    from ragauge.errors import RagaugeError

    asked = CommandOptions(**values)
    name, other, output = asked.name, asked.other, asked.output
    if asked.migration is not None and other is None:
        raise click.UsageError("--map goes with --against RUN")
    asked.texts = CorpusOption.of(asked.corpora, asked.config)
    if Path(name).suffix.lower() in _PAGES:
        if output is not None or other is not None or asked.gates is not None or asked.corpora:
            raise click.UsageError(f"{name} is a page: it is opened as it is, without options")
        path = Path(name)
        if not path.is_file():
            raise RagaugeError.of(
                "file-not-found", f"there is no file `{name}`", hint="check the path"
            )
    else:
        if output is not None and Path(output).suffix.lower() not in _PAGES:
            raise click.UsageError(f"-o {output}: a page is a file that ends in .html")
        asked.spare(
            [] if output is None else [output],
            {"scores": name, "other scores": other, "map": asked.migration},
        )
        page = _run_page(name, asked) if other is None else _pair_page(name, other, asked)
        path = Path(output) if output is not None else _cached_page_path(page)
        write_output(str(path), page.content)
    print_line(str(path))
    if not asked.no_open and not _opened(path):
        click.echo("no browser could be opened: open the page yourself", err=True)
    return 0


def _opened(path: Path) -> bool:
    import webbrowser

    try:
        with _aside():
            return webbrowser.open(path.resolve().as_uri())
    except (webbrowser.Error, OSError):
        return False


@contextmanager
def _aside() -> Iterator[None]:
    """Let what a browser prints go to standard error: the path is all that is printed here."""
    sys.stdout.flush()
    mine = os.dup(1)
    try:
        os.dup2(2, 1)
        yield
    finally:
        os.dup2(mine, 1)
        os.close(mine)


def _run_page(name: str, asked: CommandOptions) -> _Page:
    """The page of a stored run, or of a file of scores, whose hits nobody knows."""
    from ragauge import registry
    from ragauge.cli.named_runs import RunFinder, gate_baselines
    from ragauge.compare.common_gold import StoredRun
    from ragauge.model.report import View
    from ragauge.store import runs as run_store

    report = registry.report("html")
    with ExitStack() as stack:
        (source,) = _sources(stack, asked, name)
        store = run = None
        if isinstance(source, StoredRun):
            store, run = source.store, source.record
            scores = run_store.run_scores(store, run)
        else:
            scores = source
            _refuse_texts(asked)
        profile = registry.profile(scores.profile)
        gates = asked.all_gates(profile, scores.k)
        baselines = []
        if any(gate.is_drop for gate in gates):
            suite = None if run is None else run.suite
            finder = RunFinder(stack, asked.config, store=store, suite=suite)
            allow_none = asked.allow_no_baseline
            named = finder.baselines(asked.baseline, run=run, allow_none=allow_none)
            compared = source if isinstance(source, StoredRun) else None
            baselines = gate_baselines(named, scores, compared, gates)
        verdict = judged(
            scores,
            profile,
            gates,
            asked.config,
            allowed=asked.tolerance,
            as_of=asked.as_of,
            runs=[name if run is None else run],
            baselines=baselines,
        )
        view = View(
            scores=scores,
            verdict=verdict,
            profile=profile,
            full=True,
            details=details_in(stack, [report], store, run, scores, asked.texts),
        )
        called = run.run_id if run is not None else Path(name).stem
        return _Page(called, (_source(source, name),), report.content(view))


def _pair_page(name: str, other: str, asked: CommandOptions) -> _Page:
    """The page of a comparison: what the other run was, and what this one is."""
    from ragauge import registry
    from ragauge.compare import align, common_gold, compare
    from ragauge.model.comparison import ComparisonView
    from ragauge.report.drilldown.questions import details_of_comparison

    report = registry.comparisons()["html"]
    with ExitStack() as stack:
        a, b = _sources(stack, asked, other, name)
        if isinstance(a, common_gold.StoredRun) and isinstance(b, common_gold.StoredRun):
            aligned = align.align(a, b, detailed=report.detailed, migration=asked.migration)
        elif asked.migration is not None:
            raise click.UsageError("--map needs runs with their hits: stored runs")
        else:
            _refuse_texts(asked)
            aligned = compare.align_scores(a, b)
        runs = [run.record if isinstance(run, common_gold.StoredRun) else None for run in (b, a)]
        gates, verdict = judged_drops(
            aligned, asked.config, asked.gates, asked.tolerance, asked.as_of, runs
        )
        (one, before), (two, after) = compare.describe_run(a, other), compare.describe_run(b, name)
        comparison = compare.compare(
            aligned,
            one,
            two,
            gated=[gate.metric for gate in gates],
            config=(before, after),
            verdict=verdict,
        )
        details = None
        if (
            isinstance(a, common_gold.StoredRun)
            and isinstance(b, common_gold.StoredRun)
            and aligned.compared_gold
        ):
            texts = asked.texts.opened(stack)
            details = stack.enter_context(details_of_comparison(a, b, aligned, comparison, texts))
        view = ComparisonView(comparison=comparison, full=True, details=details)
        called = f"{_stem(two.name)}-against-{_stem(one.name)}"
        return _Page(called, (_source(b, name), _source(a, other)), report.content(view))


def _refuse_texts(asked: CommandOptions) -> None:
    """Refuse a corpus for scores without hits: there is nothing that its text could stand at."""
    if asked.texts.given:
        raise click.UsageError("--corpus needs runs with their hits: stored runs")


def _source(source: StoredRun | Scores, name: str) -> str:
    """Where something came from: the store, without secrets, and the run; or the path."""
    from ragauge.compare.common_gold import StoredRun
    from ragauge.files.redaction import redacted_url

    if isinstance(source, StoredRun):
        return f"{redacted_url(source.store.url)} {source.record.run_id}"
    return name if name == "-" else os.path.abspath(name)


def _stem(name: str) -> str:
    return Path(name).stem if is_file(name) else name


def _sources(stack: ExitStack, asked: CommandOptions, *names: str) -> list[StoredRun | Scores]:
    """The stored runs of these names, or the scores in the files."""
    from ragauge.cli.named_runs import RunFinder

    finder = RunFinder(
        stack,
        asked.config,
        open_store=lambda: stack.enter_context(asked.store()),
        suite=asked.config.suite,
    )
    for name in names:
        if is_file(name):
            _refuse_comparison(name)
    return [finder.source(name) for name in names]


def _refuse_comparison(name: str) -> None:
    from ragauge.errors import Place, RagaugeError

    path = Path(name)
    if not path.is_file():
        return
    with path.open("rb") as file:
        head = file.read(200)
    if b'"ragauge.compare/' in head:
        raise RagaugeError.of(
            "bad-scores",
            f"`{name}` is a comparison, which does not hold the runs themselves",
            hint="compare the runs again: `ragauge view B --against A`, or `ragauge compare A B "
            "-o report.html`",
            place=Place(name),
        )


def _cached_page_path(page: _Page) -> Path:
    """Where a page is kept that nobody named: in a folder that only its owner reads.

    Runs and files of one name, but of different places, have pages of their own.
    """
    from hashlib import sha256

    from ragauge.files.cache_dir import cache_folder

    characters = (
        character if character.isalnum() or character in "-_." else "_" for character in page.name
    )
    safe = os.fsencode("".join(characters).strip("."))[:_LONGEST].decode(errors="ignore")
    digest = sha256(os.fsencode("\0".join((page.name, *page.sources)))).hexdigest()[:8]
    folder = cache_folder() / "pages"
    with suppress(OSError):  # who writes the page says what is wrong
        folder.parent.mkdir(parents=True, exist_ok=True)
        folder.mkdir(mode=0o700, exist_ok=True)
    return folder / f"{safe}-{digest}.html"
