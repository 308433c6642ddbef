"""What the commands on stored runs share: the store option, and how a run or a file is named."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from ragauge.cli.options import ALLOW_HOST_OPTION, options, permit_store
from ragauge.cli.streams import print_line
from ragauge.model.run import FILE_SUFFIXES

if TYPE_CHECKING:
    from ragauge.cli.named_runs import NamedBaseline
    from ragauge.compare.common_gold import StoredRun
    from ragauge.config import Config
    from ragauge.corpus.excerpts import Excerpts
    from ragauge.gates.baselines import GateBaseline
    from ragauge.model.drilldown import Drilldowns
    from ragauge.model.report import Report
    from ragauge.model.run import RunRecord, Store
    from ragauge.model.scores import Scores
    from ragauge.model.verdict import Gate
    from ragauge.report.drilldown.questions import JustScored
    from ragauge.scoring.inputs import ScoredRun
    from ragauge.scoring.score import ScoredInputs
    from ragauge.store.runs import RunDescription

STORE_OPTION = options(
    [
        click.option(
            "--store",
            "store_url",
            metavar="URL",
            help="The store: sqlite:///FILE or postgresql://... (default: the one in ragauge.toml, "
            "else sqlite:///ragauge.db).",
        ),
        ALLOW_HOST_OPTION,
    ]
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


def url_of(url: str | None, config: Config) -> str:
    """The URL of the store: as given, as configured, or the default."""
    from ragauge.store.runs import DEFAULT_URL

    return url or config.store or DEFAULT_URL


@contextmanager
def the_store(url: str | None, config: Config, *, create: bool = False) -> Iterator[Store]:
    """The store that a command works on, closed at the end."""
    from ragauge.store.runs import opened_store

    if not url:
        permit_store(config)
    with opened_store(url_of(url, config), create=create) as store:
        yield store


def checkout_facts(config: Config, commit: str | None = None) -> dict[str, Any]:
    """Where a run comes from, as a `RunDescription` has it; `commit` is what the user says."""
    from ragauge.store.git_commit import git_facts

    facts = git_facts(Path.cwd(), os.environ, commit=commit, author=config.store_author)
    return facts._asdict()


@contextmanager
def temporary_store() -> Iterator[Store]:
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
    texts: CorpusOption | None = None,
) -> Drilldowns | None:
    """The questions of a stored run one by one, where any of the reports shows them."""
    if store is None or run is None or not any(report.detailed for report in reports):
        return None
    from ragauge.report.drilldown.questions import details_of_run

    excerpts = None if texts is None else texts.opened(stack)
    return stack.enter_context(details_of_run(store, run, scores, excerpts))


class CorpusOption(NamedTuple):
    """The corpora that say what stands at places: as given, or as ragauge.toml has it."""

    given: tuple[str, ...]
    configured: str | None = None

    @classmethod
    def of(cls, folders_given: str | Sequence[str] | None, config: Config) -> CorpusOption:
        """The corpora that a command was given: one, or several versions of it."""
        folders = (folders_given,) if isinstance(folders_given, str) else tuple(folders_given or ())
        return cls(folders, None if folders else config.corpus)

    def opened(self, stack: ExitStack) -> Excerpts | None:
        """Texts that are read when they are asked for; what is not shown is reported at the end.

        A corpus that only ragauge.toml names need not be there: a run is looked at anywhere.
        """
        from ragauge.corpus.excerpts import Excerpts

        folders = self.given
        if self.configured is not None:
            if not Path(self.configured).is_dir():
                reason = f"the corpus `{self.configured}` of ragauge.toml is not there"
                print_line(f"warning: {reason}: its texts are not shown", err=True)
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

    for what, passages, noun, why in (
        ("no text", texts.foreign, "document", "the corpus has other content than the run knows"),
        ("no text", texts.lost, "place", "not to be found in the documents of the corpus"),
        ("a part of the text", texts.cut, "passage", f"longer than {MOST:,} characters"),
    ):
        if passages:
            shown_of = f"{what} is shown of {count(len(passages), noun)}"
            print_line(f"warning: {shown_of}: {why}", err=True)


def is_file(name: str) -> bool:
    """Whether an argument names a file (or standard input) rather than a stored run."""
    path = Path(name)
    looks = "/" in name or "\\" in name or path.suffix in FILE_SUFFIXES
    return name == "-" or looks or path.exists()


def refuse_run_file_name(name: str, option: str = "--save-run") -> None:
    """Refuse a name by which nobody would know the file for a run, or find it packed."""
    from ragauge.store.run_files import SUFFIXES

    if not name.endswith(SUFFIXES):
        raise click.UsageError(f"{option} {name}: the name ends with {' or '.join(SUFFIXES)}")


def new_id(_context: click.Context, _option: click.Parameter, run_id: str | None) -> str | None:
    """Refuse what can be no id of a run, before anything is done."""
    if run_id is not None:
        from ragauge.store.runs import refuse_run_id

        refuse_run_id(run_id)
    return run_id


class StoreRequest(NamedTuple):
    """How a run is to be stored, as the command line says; no `url` at all for not at all.

    `save_run` is the run file that is written of it.
    """

    url: str | None
    save_run: str | None = None
    run_id: str | None = None
    suite: str | None = None
    tags: tuple[str, ...] = ()
    snapshot: str | None = None
    commit: str | None = None


class RunDestination:
    """Where `score` puts its run: in a store, on a page, or nowhere."""

    def __init__(
        self,
        request: StoreRequest,
        config: Config,
        store: Store | None,
        stack: ExitStack,
        reports: Sequence[Report],
    ) -> None:
        self.request = request
        self.config = config
        self.store = store
        self.stack = stack
        self.reports = reports
        self.detailed = any(report.detailed for report in reports)
        self.stored: RunRecord | None = None
        self.scored: JustScored | None = None
        self.baselines: Sequence[NamedBaseline] = ()
        self.compared: StoredRun | None = None
        self.system: dict[str, Any] = {}
        if store is not None or request.save_run is not None:
            from ragauge.store.snapshot import load_system

            self.system = dict(config.system)
            if request.snapshot is not None:
                self.system |= load_system(Path(request.snapshot))

    def find_baselines(self, names: Sequence[str], *, allow_none: bool = False) -> None:
        """Find what drops are judged against, before anything is scored."""
        from ragauge.cli.named_runs import RunFinder

        finder = RunFinder(self.stack, self.config, store=self.store, suite=self.suite)
        self.baselines = finder.baselines(names, allow_none=allow_none)

    def gate_baselines(self, scores: Scores, gates: Sequence[Gate]) -> list[GateBaseline]:
        """What drops are judged against, on common ground with the run at hand."""
        from ragauge.cli.named_runs import gate_baselines

        return gate_baselines(self.baselines, scores, self.compared, gates)

    @property
    def suite(self) -> str:
        """The suite that the run goes to."""
        return self.request.suite or self.config.suite or "default"

    @property
    def stores(self) -> bool:
        """Whether the run is stored: for good, or to be saved or compared with baselines."""
        temporary = self.request.save_run is not None or self._has_hits
        return self.store is not None or temporary

    @property
    def _has_hits(self) -> bool:
        return any(baseline.has_hits for baseline in self.baselines)

    def take(self, scored: ScoredInputs) -> None:
        """Put the run where it belongs, while its files are open."""
        if not self.stores and not self.detailed:
            return
        run = scored.to_store()
        if self.store is not None and run.scores.measured:
            self._store(self.store, run)
        elif self.store is not None:
            click.echo("warning: nothing was measured, so nothing was stored", err=True)
        elif self.stores and run.scores.measured:
            self._store_for_now(run)
        elif self.request.save_run is not None:
            click.echo("warning: nothing was measured, so no run was saved", err=True)
        if self.request.save_run is not None and self.compared is not None:
            self._save_run(self.request.save_run, self.compared)
        if self.detailed and self.stored is None:
            from ragauge.report.drilldown.questions import just_scored

            self.scored = self.stack.enter_context(just_scored(run))

    def _store(self, store: Store, run: ScoredRun) -> None:
        from ragauge.compare.common_gold import StoredRun
        from ragauge.model.gold import CHUNKS_ONLY, names_chunks_only
        from ragauge.store.runs import store_run

        self.stored = store_run(store, run, self._description)
        results = f"{self.stored.results} results"
        print_line(f"stored {results} as {self.stored.run_id} in {store.name}", err=True)
        if names_chunks_only(run.items):
            print_line(f"note: {CHUNKS_ONLY}", err=True)
        self.compared = StoredRun(store, self.stored)

    @property
    def _description(self) -> RunDescription:
        """What is stored of the run beside its results."""
        from ragauge.store.runs import RunDescription

        return RunDescription(
            run_id=self.request.run_id,
            suite=self.suite,
            tags=self.request.tags,
            **checkout_facts(self.config, self.request.commit),
            system=self.system,
        )

    def _store_for_now(self, run: ScoredRun) -> None:
        """Store the run until the command ends; only one that is saved gets a name and a time."""
        from ragauge.compare.common_gold import StoredRun
        from ragauge.store.runs import RunDescription, store_run

        store = self.stack.enter_context(temporary_store())
        description = RunDescription(run_id="run", created_at="")
        if self.request.save_run is not None:
            description = self._description
        self.compared = StoredRun(store, store_run(store, run, description))

    def _save_run(self, name: str, run: StoredRun) -> None:
        from ragauge.store.run_files import write_run_file

        write_run_file(run.store, run.record, name)
        print_line(f"saved the run {run.record.run_id} to {name}", err=True)

    def details(self, scores: Scores, texts: CorpusOption | None = None) -> Drilldowns | None:
        """The questions one by one, where they were asked for."""
        if self.scored is None:
            return details_in(self.stack, self.reports, self.store, self.stored, scores, texts)
        from ragauge.report.drilldown.questions import details_of_scored

        excerpts = None if texts is None else texts.opened(self.stack)
        return details_of_scored(self.scored, scores, excerpts)


@contextmanager
def destination_of(
    request: StoreRequest, config: Config, reports: Sequence[Report]
) -> Iterator[RunDestination]:
    """The destination of a run; the store is opened before anything is scored."""
    if request.save_run is not None:
        refuse_run_file_name(request.save_run)
    if request.url is None:
        if request.tags:
            raise click.UsageError("--tag is for stored runs: add --store")
        flags = [
            flag
            for flag, value in (
                ("--run-id", request.run_id),
                ("--suite", request.suite),
                ("--snapshot", request.snapshot),
                ("--commit", request.commit),
            )
            if value and request.save_run is None
        ]
        if flags:
            raise click.UsageError(
                f"{', '.join(flags)} is for stored runs: add --store, or --save-run FILE"
            )
        with ExitStack() as stack:
            yield RunDestination(request, config, None, stack, reports)
        return
    if request.url and "://" not in request.url:
        raise click.UsageError(
            f"--store takes a URL, got {request.url!r}: write --store=sqlite:///FILE, or put a "
            "bare --store at the end"
        )
    from ragauge.store.runs import refuse_tag

    for tag in request.tags:
        refuse_tag(tag)
    with ExitStack() as stack:
        store = stack.enter_context(the_store(request.url, config, create=True))
        if request.run_id is not None and store.run(request.run_id) is not None:
            from ragauge.errors import RagaugeError

            message = f"the run `{request.run_id}` is already in {store.name}"
            hint = "choose another --run-id, or delete the old run"
            raise RagaugeError.of("run-exists", message, hint=hint)
        yield RunDestination(request, config, store, stack, reports)
