"""What the commands on stored runs share: the store option, and how a run or a file is named."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import click

if TYPE_CHECKING:
    from ragauge.compare.common_gold import Stored
    from ragauge.config import Config
    from ragauge.corpus.excerpts import Excerpts
    from ragauge.model.drilldown import Drilldowns
    from ragauge.model.report import Report
    from ragauge.model.run import RunRecord, Store
    from ragauge.model.scores import Scores
    from ragauge.scoring.inputs import Kept
    from ragauge.store.temporary_run import Aside

_SUFFIXES = (".json", ".jsonl", ".gz", ".zst", ".parquet", ".yaml", ".yml", ".txt", ".run")
STORE_OPTION = click.option(
    "--store",
    "store_url",
    metavar="URL",
    help="The store: sqlite:///FILE or postgresql://... (default: the one in ragauge.toml, else "
    "sqlite:///ragauge.db).",
)
TEXTS_OPTION = click.option(
    "--corpus",
    "corpora",
    multiple=True,
    metavar="DIR",
    help="A built corpus: an HTML page shows its text where the run has none. Repeats, for two "
    "versions of a corpus (default: the one in ragauge.toml).",
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
    from ragauge.store.runs import DEFAULT_URL

    return given or config.store or DEFAULT_URL


@contextmanager
def the_store(given: str | None, config: Config, *, create: bool = False) -> Iterator[Store]:
    """The store that a command works on, closed at the end."""
    from ragauge.store.runs import opened_store

    with opened_store(url_of(given, config), create=create) as store:
        yield store


@contextmanager
def passing_store() -> Iterator[Store]:
    """A store that is gone at the end, for what is looked at once."""
    import tempfile

    from ragauge.store.runs import opened_store

    with (
        tempfile.TemporaryDirectory(prefix="ragauge-") as folder,
        opened_store(f"sqlite:///{Path(folder) / 'run.db'}", create=True) as store,
    ):
        yield store


def details_in(
    stack: ExitStack,
    reports: Sequence[Report],
    store: Store | None,
    run: RunRecord | None,
    scores: Scores,
    texts: Texts | None = None,
) -> Drilldowns | None:
    """The questions of a stored run one by one, where any of the reports shows them."""
    if store is None or run is None or not any(each.detailed for each in reports):
        return None
    from ragauge.report.drilldown.questions import details_of_run

    known = None if texts is None else texts.opened(stack)
    return stack.enter_context(details_of_run(store, run, scores, known))


class Texts(NamedTuple):
    """The corpora that say what stands at places: as given, or as ragauge.toml has it."""

    given: tuple[str, ...]
    configured: str | None = None

    @classmethod
    def of(cls, given: str | Sequence[str] | None, config: Config) -> Texts:
        """What a command was told; one corpus or several versions of it."""
        folders = (given,) if isinstance(given, str) else tuple(given or ())
        return cls(folders, None if folders else config.corpus)

    def opened(self, stack: ExitStack) -> Excerpts | None:
        """Texts that are read when they are asked for; what could not be shown is told at the end.

        A corpus that only ragauge.toml names need not be there: a run is looked at anywhere.
        """
        from ragauge.corpus.excerpts import Excerpts
        from ragauge.text import plain

        folders = self.given
        if self.configured is not None:
            if not Path(self.configured).is_dir():
                told = f"the corpus `{self.configured}` of ragauge.toml is not there"
                click.echo(f"warning: {plain(told)}: its texts are not shown", err=True)
                return None
            folders = (self.configured,)
        if not folders:
            return None
        texts = Excerpts(folders)
        stack.callback(_tell, texts)
        return texts


def _tell(texts: Excerpts) -> None:
    """Say of how much in a corpus no text was shown, or a part of it."""
    from ragauge.model.phrases import count
    from ragauge.report.drilldown.corpus_texts import MOST

    for what, found, noun, why in (
        ("no text", texts.foreign, "document", "the corpus has other content than the run knows"),
        ("no text", texts.lost, "place", "not to be found in the documents of the corpus"),
        ("a part of the text", texts.cut, "passage", f"longer than {MOST:,} characters"),
    ):
        if found:
            told = f"{what} is shown of {count(len(found), noun)}: {why}"
            click.echo(f"warning: {told}", err=True)


def is_file(name: str) -> bool:
    """Whether an argument names a file (or standard input) rather than a stored run."""
    path = Path(name)
    looks = "/" in name or "\\" in name or path.suffix in _SUFFIXES
    return name == "-" or looks or path.exists()


def new_id(_context: click.Context, _option: click.Parameter, run_id: str | None) -> str | None:
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
    name: str | None,
    config: Config,
    store: Store | None,
    run: RunRecord | None,
    *,
    suite: str | None = None,
) -> Against:
    """The baseline of that name: a file of scores, or a stored run.

    Two stored runs are brought on common ground, so that a change of chunks is no drop.
    """
    from ragauge.compare import align, common_gold
    from ragauge.model import scores_document
    from ragauge.store import runs as run_store

    name = name or config.baseline
    if name is None:
        return Against()
    if is_file(name):
        return Against(scores_document.load_scores(name))
    with ExitStack() as stack:
        if store is None:
            store = stack.enter_context(the_store(None, config))
        live = run_store.find_run(store, name, suite=run.suite if run is not None else suite)
        if run is None:
            return Against(run_store.run_scores(store, live))
        aligned = align.align(common_gold.Stored(store, live), common_gold.Stored(store, run))
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
        self,
        wanted: Storing,
        config: Config,
        store: Store | None,
        stack: ExitStack,
        reports: Sequence[Report],
    ) -> None:
        self.wanted = wanted
        self.config = config
        self.store = store
        self.stack = stack
        self.reports = reports
        self.detailed = any(each.detailed for each in reports)
        self.stored: RunRecord | None = None
        self.aside: Aside | None = None
        self.live = Against()
        self.opposite: Stored | None = None
        self.compared: Stored | None = None
        self.system: dict[str, Any] = {}
        if store is not None:
            from ragauge.store.snapshot import load_system

            self.system = dict(config.system)
            if wanted.snapshot is not None:
                self.system |= load_system(Path(wanted.snapshot))

    def find_baseline(self, name: str | None) -> None:
        """Find what a drop is judged against, before anything is scored."""
        from ragauge.compare.common_gold import Stored
        from ragauge.store.runs import find_run

        name = name or self.config.baseline
        if name is None or is_file(name):
            self.live = against(name, self.config, None, None)
            return
        store = self.store or self.stack.enter_context(the_store(None, self.config))
        self.opposite = Stored(store, find_run(store, name, suite=self.suite))

    def baseline(self) -> Against:
        """What a drop is judged against; a stored run on common ground with the one at hand."""
        from ragauge.compare import align
        from ragauge.store import runs as run_store

        if self.opposite is None:
            return self.live
        if self.compared is None:
            return Against(run_store.run_scores(self.opposite.store, self.opposite.record))
        aligned = align.align(self.opposite, self.compared)
        return Against(aligned.a, aligned.b)

    @property
    def suite(self) -> str:
        """The suite that the run goes to."""
        return self.wanted.suite or self.config.suite or "default"

    @property
    def keep(self) -> Callable[[Kept], None] | None:
        """What stores the run: where it stays, or as long as it is compared with its baseline."""
        if self.store is not None:
            return self._keep
        return None if self.opposite is None else self._keep_for_a_while

    @property
    def look(self) -> Callable[[Kept], None] | None:
        """What puts the run aside, if there is no store and a report shows its questions."""
        return self._put_aside if self.store is None and self.detailed else None

    def _put_aside(self, kept: Kept) -> None:
        from ragauge.store.temporary_run import put_aside

        self.aside = self.stack.enter_context(put_aside(kept))

    def _keep(self, kept: Kept) -> None:
        """Store the run, unless nothing was measured."""
        from ragauge.store.git_commit import commit_hash
        from ragauge.store.runs import Wanted, store_run

        assert self.store is not None
        if not kept.scores.measured:
            click.echo("warning: nothing was measured, so nothing was stored", err=True)
            if self.detailed:
                self._put_aside(kept)
            return
        self.stored = store_run(
            self.store,
            kept,
            Wanted(
                run_id=self.wanted.run_id,
                suite=self.suite,
                tags=self.wanted.tags,
                commit_hash=self.wanted.commit or commit_hash(Path.cwd(), os.environ),
                system=self.system,
            ),
        )
        told = f"{self.stored.results} results"
        click.echo(f"stored {told} as {self.stored.run_id} in {self.store.name}", err=True)

        self._compare(self.store, self.stored)

    def _keep_for_a_while(self, kept: Kept) -> None:
        from ragauge.store.runs import Wanted, store_run

        if kept.scores.measured:
            store = self.stack.enter_context(passing_store())
            self._compare(store, store_run(store, kept, Wanted(run_id="run", created_at="")))

    def _compare(self, store: Store, run: RunRecord) -> None:
        from ragauge.compare.common_gold import Stored

        self.compared = Stored(store, run)

    def details(self, scores: Scores, texts: Texts | None = None) -> Drilldowns | None:
        """The questions one by one, where they were asked for."""
        if self.aside is None:
            return details_in(self.stack, self.reports, self.store, self.stored, scores, texts)
        from ragauge.report.drilldown.questions import details_of_aside

        known = None if texts is None else texts.opened(self.stack)
        return details_of_aside(self.aside, scores, known)


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
    from ragauge.store.runs import refuse_tag

    for tag in wanted.tags:
        refuse_tag(tag)
    with ExitStack() as stack:
        store = stack.enter_context(the_store(wanted.url, config, create=True))
        if wanted.run_id is not None and store.run(wanted.run_id) is not None:
            from ragauge.errors import RagaugeError

            raise RagaugeError.of(
                "run-exists",
                f"the run `{wanted.run_id}` is already in {store.name}",
                hint="choose another --run-id, or delete the old run",
            )
        yield Shelf(wanted, config, store, stack, reports)
