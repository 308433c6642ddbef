"""What the commands on stored runs share: the store option, and how a run or a file is named."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import click

if TYPE_CHECKING:
    from ragauge.config import Config
    from ragauge.inputs import Kept
    from ragauge.model.aggregate import Scores
    from ragauge.model.drilldown import Drilldowns
    from ragauge.model.report import Report
    from ragauge.model.run import RunRecord, Store

_SUFFIXES = (".json", ".jsonl", ".gz", ".zst", ".parquet", ".yaml", ".yml", ".txt", ".run")
STORE_OPTION = click.option(
    "--store",
    "store_url",
    metavar="URL",
    help="The store: sqlite:///FILE or postgresql://... (default: the one in ragauge.toml, else "
    "sqlite:///ragauge.db).",
)
CONFIG_OPTION = click.option(
    "--config", "config_path", metavar="FILE", help="Read this instead of ./ragauge.toml."
)
ANY_FORMAT = click.option(
    "--format",
    "format_name",
    type=click.Choice(["table", "json"]),
    default="table",
    show_default=True,
    help="What is printed.",
)


def url_of(given: str | None, config: Config) -> str:
    """The URL of the store: as given, as configured, or the default."""
    from ragauge.archive import DEFAULT_URL

    return given or config.store or DEFAULT_URL


@contextmanager
def the_store(given: str | None, config: Config, *, create: bool = False) -> Iterator[Store]:
    """The store that a command works on, closed at the end."""
    from ragauge.archive import opened_store

    with opened_store(url_of(given, config), create=create) as store:
        yield store


@contextmanager
def passing_store() -> Iterator[Store]:
    """A store that is gone at the end, for what is looked at once."""
    import tempfile

    from ragauge.archive import opened_store

    with (
        tempfile.TemporaryDirectory(prefix="ragauge-") as folder,
        opened_store(f"sqlite:///{Path(folder) / 'run.db'}", create=True) as store,
    ):
        yield store


def details_in(
    stack: ExitStack, reports: Sequence[Report], store: Store | None, run: RunRecord | None,
    scores: Scores,
) -> Drilldowns | None:  # fmt: skip
    """The questions of a stored run one by one, where any of the reports shows them."""
    if store is None or run is None or not any(each.detailed for each in reports):
        return None
    from ragauge.drilling import details_of_run

    return stack.enter_context(details_of_run(store, run, scores))


def is_file(name: str) -> bool:
    """Whether an argument names a file (or standard input) rather than a stored run."""
    path = Path(name)
    looks = "/" in name or "\\" in name or path.suffix in _SUFFIXES
    return name == "-" or looks or path.exists()


def new_id(
    _context: click.Context, _option: click.Parameter, run_id: str | None
) -> str | None:  # fmt: skip
    """Refuse an id of a run that could not be told from the name of a file later."""
    if run_id is None:
        return None
    odd = "/" in run_id or "\\" in run_id or Path(run_id).suffix in (*_SUFFIXES, ".html", ".htm")
    if odd or run_id == "-":
        raise click.BadParameter(
            f"{run_id!r} looks like the name of a file: write it without slashes and suffix"
        )
    return run_id


class Against(NamedTuple):
    """What gates on a drop compare: the baseline, and what to set beside it, if that differs."""

    baseline: Scores | None = None
    beside: Scores | None = None


def against(
    name: str | None, config: Config, store: Store | None, run: RunRecord | None,
    *, suite: str | None = None,
) -> Against:  # fmt: skip
    """The baseline of that name: a file of scores, or a stored run.

    Two stored runs are brought on common ground, so that a change of chunks is no drop.
    """
    from ragauge import archive, pipeline, versus

    name = name or config.baseline
    if name is None:
        return Against()
    if is_file(name):
        return Against(pipeline.load_scores(name))
    with ExitStack() as stack:
        if store is None:
            store = stack.enter_context(the_store(None, config))
        live = archive.find_run(store, name, suite=run.suite if run is not None else suite)
        if run is None:
            return Against(archive.run_scores(store, live))
        aligned = versus.align(versus.Stored(store, live), versus.Stored(store, run))
        return Against(aligned.a, aligned.b)


class Storing(NamedTuple):
    """How a run is to be stored, as the command line says; no `url` at all for not at all."""

    url: str | None
    run_id: str | None = None
    suite: str | None = None
    tags: tuple[str, ...] = ()
    snapshot: str | None = None
    commit: str | None = None


class Shelf:
    """Where `score` puts its run: in a store, aside for those who look at questions, or nowhere."""

    def __init__(
        self, wanted: Storing, config: Config, store: Store | None, stack: ExitStack,
        reports: Sequence[Report],
    ) -> None:  # fmt: skip
        self.wanted = wanted
        self.config = config
        self.store = store
        self.stack = stack
        self.reports = reports
        self.detailed = any(each.detailed for each in reports)
        self.stored: RunRecord | None = None
        self.aside: tuple[Store, RunRecord] | None = None
        self.system: dict[str, Any] = {}
        if store is not None:
            from ragauge.snapshots import load_system

            self.system = dict(config.system)
            if wanted.snapshot is not None:
                self.system |= load_system(Path(wanted.snapshot))

    def run_of(self, name: str | None) -> RunRecord | None:
        """The stored run of that name, if the store is open and it is not the name of a file."""
        from ragauge.archive import find_run

        if name is None or self.store is None or is_file(name):
            return None
        return find_run(self.store, name, suite=self.suite)

    @property
    def suite(self) -> str:
        """The suite that the run goes to."""
        return self.wanted.suite or self.config.suite or "default"

    @property
    def keeps(self) -> bool:
        """Whether the run is wanted at all."""
        return self.store is not None or self.detailed

    def keep(self, kept: Kept) -> None:
        """Store the run, unless nothing was measured."""
        from ragauge.archive import Wanted, store_run
        from ragauge.commits import commit_hash

        if self.store is not None and not kept.scores.measured:
            click.echo("warning: nothing was measured, so nothing was stored", err=True)
        if self.store is None or not kept.scores.measured:
            if self.detailed:
                aside = self.stack.enter_context(passing_store())
                named = Wanted(run_id="run", created_at="")
                self.aside = aside, store_run(aside, kept, named)
            return
        self.stored = store_run(self.store, kept, Wanted(
            run_id=self.wanted.run_id, suite=self.suite, tags=self.wanted.tags,
            commit_hash=self.wanted.commit or commit_hash(Path.cwd(), os.environ),
            system=self.system,
        ))  # fmt: skip
        told = f"{self.stored.results} results"
        click.echo(f"stored {told} as {self.stored.run_id} in {self.store.name}", err=True)

    def details(self, scores: Scores) -> Drilldowns | None:
        """The questions one by one, where they were asked for."""
        store, run = self.aside or (self.store, self.stored)
        return details_in(self.stack, self.reports, store, run, scores)

    def told(self, scores: Scores, *, hashes: bool) -> Scores:
        """The scores as they are without the run put aside: with hashes only if asked for."""
        from msgspec.structs import replace

        values = scores.per_question
        if hashes or self.store is not None or values is None:
            return scores
        return replace(scores, gold_hash=None, per_question=replace(values, hashes=()))


@contextmanager
def storing(wanted: Storing, config: Config, reports: Sequence[Report]) -> Iterator[Shelf]:
    """The shelf for a run; the store is opened before anything is scored."""
    if wanted.url is None:
        given = [
            flag
            for flag, value in (
                ("--run-id", wanted.run_id),
                ("--suite", wanted.suite),
                ("--tag", wanted.tags),
                ("--snapshot", wanted.snapshot),
                ("--commit", wanted.commit),
            )
            if value
        ]
        if given:
            raise click.UsageError(f"{', '.join(given)} is for stored runs: add --store")
        with ExitStack() as stack:
            yield Shelf(wanted, config, None, stack, reports)
        return
    if wanted.url and "://" not in wanted.url:
        raise click.UsageError(
            f"--store takes a URL, got {wanted.url!r}: write --store=sqlite:///FILE, or put a bare "
            "--store at the end"
        )
    from ragauge.archive import refuse_tag

    for tag in wanted.tags:
        refuse_tag(tag)
    with ExitStack() as stack:
        store = stack.enter_context(the_store(wanted.url, config, create=True))
        if wanted.run_id is not None and store.run(wanted.run_id) is not None:
            from ragauge.errors import RagaugeError

            raise RagaugeError.of(
                "run-exists", f"the run `{wanted.run_id}` is already in {store.name}",
                hint="choose another --run-id, or delete the old run",
            )  # fmt: skip
        yield Shelf(wanted, config, store, stack, reports)
