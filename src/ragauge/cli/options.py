"""What several commands need: common options, the values of them all, and talking on stderr."""

from __future__ import annotations

import math
import os
import re
import shutil
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack
from functools import cached_property
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, TypeVar

import click

from ragauge.cli.streams import print_line

if TYPE_CHECKING:
    from ragauge.compare.common_gold import StoredRun
    from ragauge.config import Config
    from ragauge.formats.field_map import FieldMaps
    from ragauge.gates.judge import Tolerance
    from ragauge.gold.migrate.evidence import OnUnmapped
    from ragauge.gold.migrate.files import MigratedKind
    from ragauge.model.embedder import Embedding
    from ragauge.model.profile import Profile
    from ragauge.model.run import Store
    from ragauge.model.verdict import Gate
    from ragauge.trust.needs import Need

F = TypeVar("F", bound=Callable[..., Any])

CONFIG_IN_USE = "ragauge.config"
"""The configuration of a command, in the `meta` of its context."""


def whole_number(
    *names: str, least: int, most: int | None = None, default: int | None = None, **settings: Any
) -> Callable[[F], F]:
    """An option that takes a whole number; the help shows its default where it has one."""
    bounds = click.IntRange(least, most)
    shown = default is not None
    return click.option(*names, type=bounds, default=default, show_default=shown, **settings)


def choice(*names: str, of: Sequence[str], default: str, help: str) -> Callable[[F], F]:
    """An option that takes one of some words."""
    return click.option(
        *names, type=click.Choice(of), default=default, show_default=True, help=help
    )


ALLOWED_HOSTS = "ragauge.allowed-hosts"
"""The hosts of --allow-host, in the `meta` of a command's context."""


def _keep_hosts(context: click.Context, _option: click.Parameter, hosts: tuple[str, ...]) -> None:
    from ragauge.trust.consent import parse_host

    for host in hosts:
        if parse_host(host) is None:
            raise click.BadParameter(f"{host!r} is no host: write HOST or HOST:PORT, without http")
    context.meta[ALLOWED_HOSTS] = hosts


ALLOW_HOST_OPTION = click.option(
    "--allow-host",
    multiple=True,
    metavar="HOST",
    expose_value=False,
    callback=_keep_hosts,
    help="A host that ragauge.toml names may be connected to. Repeats; see also `ragauge trust`.",
)
_SHARE = re.compile(r"(\d+(?:\.\d+)?)(\s*%)?")


def _error_share(_context: click.Context, _option: click.Parameter, text: str | None) -> float:
    """How many of the traces may have an error: `1%` or `0.01`."""
    match = _SHARE.fullmatch("0" if text is None else text.strip())
    share = None if match is None else float(match[1]) / (100 if match[2] else 1)
    if share is None or share > 1:
        raise click.BadParameter(f"it takes a share as 1% or 0.01, got {text!r}")
    return share


ALLOW_OPTIONS = [
    click.option(
        "--allow-missing",
        is_flag=True,
        help="Judge although gold items have no trace, here or in the baseline, or are left out "
        "of a comparison as nothing recognises what they expect in both runs.",
    ),
    click.option(
        "--allow-errored",
        metavar="[=SHARE]",
        default=None,
        callback=_error_share,
        help="Judge although traces carry errors, here or in the baseline, as their profile counts "
        "them: any number of them, or up to a share (--allow-errored=1%).",
    ),
    click.option(
        "--allow-skipped",
        is_flag=True,
        help="Judge although bad lines were skipped, here or in the baseline.",
    ),
    click.option(
        "--allow-empty", is_flag=True, help="Judge although nothing was answered or answerable."
    ),
    click.option(
        "--allow-other-questions",
        is_flag=True,
        help="Judge although many traces are about other questions than their gold items.",
    ),
    click.option(
        "--allow-fewer-questions",
        is_flag=True,
        help="Judge drops although less than 90 % of the baseline's questions can be compared.",
    ),
    click.option(
        "--allow-no-baseline",
        is_flag=True,
        help="Leave gates on a drop out where no baseline is named, or its folder keeps no run "
        "yet: this is the first.",
    ),
]


def tolerance_of(allow: Mapping[str, Any]) -> Tolerance:
    """What the options of ALLOW_OPTIONS excuse, by their names: `allow_missing` and so on."""
    from ragauge.gates.judge import Tolerance

    return Tolerance(**{name.removeprefix("allow_"): value for name, value in allow.items()})


class FormatOption(click.Option):
    """An option whose help names the formats there are, looked up when somebody reads it.

    The reports bring the libraries that draw tables; a command that prints no help does not wait
    for them.
    """

    comparisons = False

    @property
    def help(self) -> str:
        """What is printed, and the names that it may have."""
        from ragauge import registry

        if self.comparisons:
            names = list(registry.comparisons())
        else:
            names = [name for name, report in registry.reports().items() if report.public]
        usual = [name for name in ("table", "json", "md") if name in names]
        return f"What is printed: {', '.join([*usual, *sorted(set(names) - set(usual))])}."

    @help.setter
    def help(self, _told: str | None) -> None:
        """Nothing is told by hand."""


class ComparisonFormatOption(FormatOption):
    """The same for comparisons, which have formats of their own."""

    comparisons = True


FORMAT_OPTION = click.option(
    "--format", "format_name", cls=FormatOption, default="table", metavar="NAME", show_default=True
)
COMPARISON_FORMAT_OPTION = click.option(
    "--format",
    "format_name",
    cls=ComparisonFormatOption,
    default="table",
    metavar="NAME",
    show_default=True,
)
BASELINE_OPTION = click.option(
    "--baseline",
    multiple=True,
    metavar="RUN",
    help="The live system, for gates on a drop: a stored run (id, tag, `baseline`), a file from "
    "--save-run or `score --full -o FILE.json`, latest:DIR, pinned:DIR, best-of:N, or "
    "best-of:N:DIR. Repeats: the gates must hold against each.",
)
SAVE_RUN_OPTION = click.option(
    "--save-run",
    metavar="FILE",
    help="Also write the run with its hits to FILE.jsonl.gz, which `compare`, `gate` and "
    "--baseline read.",
)
DELTA_S_OPTION = click.option(
    "--require-delta-s",
    is_flag=True,
    help="Gates on ΔS that cannot be judged, as calibration showed, block the verdict.",
)
_STRICTNESS = "ragauge.strictness"
"""What a command shall not let pass, by the name of its option, in the `meta` of its context."""


def _keep_strictness(context: click.Context, option: click.Parameter, value: bool) -> None:
    context.meta.setdefault(_STRICTNESS, {})[option.name] = value


def is_strict(option: str) -> bool:
    """Whether `require_gates` or `fail_on_review` was asked for."""
    context = click.get_current_context(silent=True)
    return context is not None and bool(context.meta.get(_STRICTNESS, {}).get(option))


GATE_OPTIONS = [
    click.option(
        "--accept-doc-level",
        is_flag=True,
        help="Where two runs share only documents, judge drops (and --fail-on) by document, under "
        "the name of that metric (else exit 4): found documents do not show found evidence.",
    ),
    click.option(
        "--gates",
        metavar="GATES",
        help="NAME=NUMBER,... or METRIC>=NUMBER,... or a TOML file; on top of ragauge.toml and "
        "the profile's own.",
    ),
    click.option(
        "--config", "config_path", metavar="FILE", help="Read this instead of ./ragauge.toml."
    ),
    click.option(
        "--as-of", metavar="DATE", help="The day that waivers are judged on (default: today)."
    ),
    click.option(
        "--require-gates",
        is_flag=True,
        expose_value=False,
        callback=_keep_strictness,
        help="Exit 2 where there are no gates, instead of deciding nothing.",
    ),
    click.option(
        "--fail-on-review",
        is_flag=True,
        expose_value=False,
        callback=_keep_strictness,
        help="Exit 1, not 0, where the verdict is REVIEW.",
    ),
]
EMBED_OPTIONS = [
    click.option(
        "--embed",
        metavar="NAME[:MODEL]",
        help="Take ΔS from texts with this embedder: minilm, hashing (lexical), openai, "
        "sentence_transformers.",
    ),
    click.option(
        "--embed-cache",
        metavar="FILE",
        help="Where vectors are kept; `none` keeps nothing (default: the user's folder for "
        "caches).",
    ),
]


FROM_OPTION = click.option(
    "--from",
    "format_name",
    default="auto",
    show_default=True,
    metavar="NAME",
    help="The format of the files, or `fields` for names of your own; auto recognises it.",
)
GOLD_FIELD_OPTION = click.option(
    "--gold-field",
    "own_gold_fields",
    multiple=True,
    metavar="FIELD=PATH",
    help="Where your gold rows have a field, as `relevant=evidence[].chunk`. Repeats; also "
    "[fields.gold] in ragauge.toml.",
)
FIELD_OPTIONS = [
    click.option(
        "--field",
        "own_fields",
        multiple=True,
        metavar="FIELD=PATH",
        help="Where your rows have a field, as `answer=response` or `hits=sources[].id`. Repeats; "
        "also [fields] in ragauge.toml.",
    ),
    GOLD_FIELD_OPTION,
]


STAGE_OPTION = choice(
    "--stage",
    of=["last", "first"],
    default="last",
    help="Where a reranker follows a retriever (`hits_before_rerank`): score the list after it, or "
    "before it.",
)


MOVE_OPTIONS = [
    click.option("--map", "migration", required=True, metavar="MAP", help="From `corpus diff`."),
    click.option("-o", "out", required=True, metavar="FILE", help="The new file, as JSON Lines."),
    click.option(
        "--min-confidence",
        type=click.FloatRange(0, 1),
        default=0.85,
        show_default=True,
        help="Take what has less for unmapped.",
    ),
    choice(
        "--on-unmapped",
        of=["stop", "keep", "drop"],
        default="stop",
        help="What to do with an id or a place that has no new one.",
    ),
]
THREE_FORMATS = choice(
    "--format",
    "format_name",
    of=["table", "json", "md"],
    default="table",
    help="What is printed.",
)
WORKERS_OPTION = click.option(
    "--workers", type=click.IntRange(1, 256), help="Processes (default: by size)."
)


def finite(_context: click.Context, _option: click.Parameter, value: float | None) -> float | None:
    """Refuse what is no number, or has no end: `nan` passes every comparison with a limit."""
    if value is not None and not math.isfinite(value):
        raise click.BadParameter(f"it must be a finite number, got {value}")
    return value


ASK_OPTIONS = [
    click.option(
        "--option",
        "pairs",
        multiple=True,
        metavar="NAME=VALUE",
        help="What the target is told beside; ${NAME} in headers and URLs is taken from the "
        "environment. Repeats.",
    ),
    click.option(
        "--filter",
        "filters",
        multiple=True,
        metavar="FILTER",
        help="Only items with type=..., tag=..., lang=..., group=..., difficulty=... or qid=...; ~ "
        "instead of = takes a regular expression. Repeats: all must hold.",
    ),
    click.option(
        "--rate", metavar="N/s", help="Questions a second (/s), minute (/m) or hour (/h)."
    ),
    click.option(
        "--max-errors",
        type=click.IntRange(0),
        metavar="N",
        help="Stop after more errors than these; the run can be resumed.",
    ),
    click.option("--no-timing", is_flag=True, help="Do not store how long answers took."),
    click.option(
        "--cutoffs", metavar="K[,K...]", help="Cut-offs of the metrics (the profile's own)."
    ),
    click.option(
        "--corpus", metavar="DIR", help="A built corpus: for targets that search one, too."
    ),
    click.option("--chunks", metavar="FILE", help="Where the chunks of the index lie."),
    click.option("--embedder", metavar="NAME", help="For targets that compare vectors."),
]
"""What a command that asks targets takes beside their address."""

PATIENCE_OPTIONS = [
    click.option(
        "--max-wait",
        type=click.FloatRange(0, 86_400),
        default=900.0,
        show_default=True,
        callback=finite,
        metavar="SECONDS",
        help="How long a target that is busy (429, Retry-After) may put a question off, in all.",
    ),
    click.option(
        "--keep-going",
        is_flag=True,
        help="Ask all questions, also if the first 20 results all have the same error.",
    ),
]


def of_them_errors(errors: int, reasons: Mapping[str, int]) -> str:
    """What is said of errors behind the number of results: how many, and why."""
    from ragauge.model.error_reasons import counted_reasons

    return f", {errors} of them errors: {counted_reasons(reasons)}" if errors else ""


def options(decorators: Sequence[Callable[[F], F]]) -> Callable[[F], F]:
    """Apply several option decorators, in order."""

    def apply(function: F) -> F:
        for decorator in reversed(decorators):
            function = decorator(function)
        return function

    return apply


def whole_numbers(option: str, text: str | None) -> tuple[int, ...] | None:
    """The numbers of an option that takes several."""
    if text is None:
        return None
    try:
        return tuple(int(part) for part in text.split(","))
    except ValueError as error:
        raise click.UsageError(f"{option} takes whole numbers, got {text!r}") from error


def gold_and_trace(
    files: Sequence[str], gold: str | None, trace: str | None
) -> tuple[str | None, str | None]:
    """Gold and traces by option or by position; a position is for what no option names."""
    positions = iter(files)
    gold = next(positions, None) if gold is None else gold
    trace = next(positions, None) if trace is None else trace
    if (spare := next(positions, None)) is not None:
        raise click.UsageError(f"two files at most, GOLD and TRACE: {spare!r} is one too many")
    return gold, trace


class CommandOptions(SimpleNamespace):
    """The values of a command's options by their names, and what some of them come to together."""

    @cached_property
    def config(self) -> Config:
        """The configuration: --config, or ./ragauge.toml where there is one."""
        return read_config(self.config_path)

    @property
    def field_maps(self) -> FieldMaps:
        """The field names of the project, with those of FIELD_OPTIONS on top."""
        fields, gold_fields = (
            getattr(self, name, ()) for name in ("own_fields", "own_gold_fields")
        )
        maps = self.config.field_maps.updated(fields, gold_fields)
        return maps.at_stage(getattr(self, "stage", "last"))

    @property
    def tolerance(self) -> Tolerance:
        """What the options of ALLOW_OPTIONS excuse."""
        values = vars(self).items()
        allowed = {name: value for name, value in values if name.startswith("allow_")}
        return tolerance_of(
            {
                **allowed,
                "no_delta_s": not getattr(self, "require_delta_s", False),
                "doc_level": getattr(self, "accept_doc_level", False),
            }
        )

    def store(self, *, create: bool = False) -> AbstractContextManager[Store]:
        """The store that the command works on, closed at the end."""
        from ragauge.cli.store_options import the_store

        return the_store(self.store_url, self.config, create=create)

    def all_gates(self, profile: Profile, ks: Sequence[int]) -> list[Gate]:
        """The gates of the profile, the configuration and --gates."""
        return gates_from(profile, ks, self.config, self.gates)

    def configured(self, name: str) -> Any:
        """The option of that name, or else what the configuration says."""
        return getattr(self, name, None) or getattr(self.config, name)

    def scored_file(self, stack: ExitStack, gold: str, trace: str, **settings: Any) -> StoredRun:
        """A trace file as a run in a store of its own, gone at the end."""
        from ragauge.cli.store_options import temporary_store
        from ragauge.compare.common_gold import StoredRun
        from ragauge.run.shadow import scored_run

        config = self.config
        store = stack.enter_context(temporary_store())
        settings = {
            "profile": self.configured("profile"),
            "dialect": self.configured("dialect") or "auto",
            "k": config.k or None,
            "refusal_patterns": config.refusal.patterns,
            "options": config.options,
            "intervals": False,
            "fields": self.field_maps,
            "ignore_fields": config.ignored_fields,
            **settings,
        }
        return StoredRun(store, scored_run(store, gold, trace, trace, **settings))

    def spare(
        self,
        files: Sequence[str],
        others: Mapping[str, str | None],
        *,
        baselines: Sequence[str] = (),
    ) -> None:
        """Refuse to write files over what is read; `others` goes from what it is to its name."""
        from ragauge.cli.output import spare_inputs

        spare_inputs(
            files,
            self.config,
            self.config_path,
            gates=getattr(self, "gates", None),
            baselines=baselines,
            store_url=getattr(self, "store_url", None),
            others=others,
        )


def say(text: str) -> None:
    """Say a line on standard error."""
    print_line(text, err=True)


def rounded(value: object) -> object:
    """The same document with its numbers to four places."""
    if isinstance(value, dict):
        return {key: rounded(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [rounded(item) for item in value]
    return round(value, 4) if isinstance(value, float) else value


def read_config(path: str | None) -> Config:
    """Read the given configuration, or ./ragauge.toml where there is one."""
    from ragauge.config import FILE_NAME, Config, load_config

    here = Path(FILE_NAME) if path is None else Path(path)
    config = load_config(here) if path is not None or here.exists() else Config()
    context = click.get_current_context(silent=True)
    if context is not None:
        context.meta[CONFIG_IN_USE] = config  # so that an error can be found in it
    return config


def permit(config: Config, needs: Sequence[Need]) -> None:
    """Refuse what the configuration leads to and the user has not consented to."""
    from ragauge.trust.consent import require

    if needs:
        context = click.get_current_context(silent=True)
        hosts = () if context is None else context.meta.get(ALLOWED_HOSTS, ())
        require(config, needs, allowed_hosts=hosts)


def permit_embedder(config: Config, chosen: str | None) -> None:
    """Refuse an embedder that the configuration leads to and nobody has consented to."""
    if chosen is not None or config.embed is not None:
        from ragauge.trust.needs import needs_of_embedder

        permit(config, needs_of_embedder(config, chosen))


def permit_store(config: Config) -> None:
    """Refuse the store of the configuration where nobody has consented to it."""
    if config.store is not None:
        from ragauge.trust.needs import needs_of_store

        permit(config, needs_of_store(config))


def embedding(
    name: str | None, cache: str | None, tolerance: float | None, config: Config
) -> Embedding | None:
    """How ΔS is to be taken anew; None where it is not."""
    from ragauge.model.embedder import Embedding

    permit_embedder(config, name)
    name = name or config.embed
    if name is None:
        if tolerance is not None or cache is not None:
            raise click.UsageError("--verify-delta-s and --embed-cache need --embed NAME")
        return None
    return Embedding(
        name=name,
        settings=config.embedders,
        cache=cache or config.embed_cache,
        tolerance=tolerance,
    )


def gates_from(
    profile: Profile,
    k: Sequence[int],
    config: Config,
    text: str | None,
    *,
    may_require: bool = True,
) -> list[Gate]:
    """The gates of the profile, the configuration and the command line, put together.

    `may_require`: with --require-gates it is an error if there are none.
    """
    from ragauge.config import read_gates_file
    from ragauge.gates import parse
    from ragauge.gates.parse import profile_gates

    layers = [
        profile_gates(profile, k),
        parse.parse_table(
            config.gates,
            profile,
            k,
            origin=config.origin,
            place_of=lambda name: config.place("gates", name),
        ),
    ]
    if text is not None and (text.endswith(".toml") or os.path.isfile(text)):
        file = read_gates_file(Path(text))
        places = file.places.__getitem__
        layers.append(parse.parse_table(file.gates, profile, k, origin=text, place_of=places))
    elif text is not None:
        layers.append(parse.parse_items(text, profile, k))
    gates = parse.merge(*layers)
    if may_require and not gates and is_strict("require_gates"):
        raise click.UsageError(
            f"--require-gates: the profile {profile.name} has no gates; give --gates, or set them "
            "in ragauge.toml"
        )
    # A command asks for its gates when it plans and again when it judges; a note is said once.
    context = click.get_current_context(silent=True)
    printed: set[str] = (
        set() if context is None else context.meta.setdefault("ragauge.notes", set())
    )
    for note in parse.deprecation_notes(gates, profile):
        if note not in printed:
            say(f"note: {note}")
            printed.add(note)
    return gates


def day(text: str | None, *, needed: bool) -> Any:
    """The date that waivers are judged on; the clock is only asked when there are waivers."""
    from datetime import date

    if text is not None:
        try:
            return date.fromisoformat(text)
        except ValueError as error:
            raise click.UsageError(f"--as-of takes a date as YYYY-MM-DD, got {text!r}") from error
    return date.today() if needed else None


def screen() -> dict[str, Any]:
    """Width and colour of standard output: 80 columns and none where it is not a terminal."""
    if not sys.stdout.isatty():
        return {"width": 80, "color": False}
    return {
        "width": shutil.get_terminal_size((80, 24)).columns,
        "color": "NO_COLOR" not in os.environ and os.environ.get("TERM") != "dumb",
    }


def write_new(files: Mapping[Path, str], *, force: bool) -> None:
    """Write files that are not there yet, all or none; with `force` replace those that are."""
    from ragauge.errors import RagaugeError
    from ragauge.files.atomic_write import write_atomically

    there = [str(path) for path in files if path.exists()]
    if there and not force:
        hint = "nothing was written; use --force to replace them, or another folder"
        raise RagaugeError.of("file-exists", f"already there: {', '.join(there)}", hint=hint)
    for path, text in files.items():
        write_atomically(path, text)
        print_line(f"wrote {path}")


def move(
    what: MigratedKind,
    name: str,
    migration: str,
    out: str,
    *,
    least: float,
    on_unmapped: OnUnmapped,
    corpus: str | None = None,
) -> int:
    """Move a file to the next version of its corpus, and tell what was done."""
    from ragauge.codes import ExitCode
    from ragauge.gold.migrate.files import migrate_file, summary_lines

    done = migrate_file(
        what, name, migration, out, least=least, on_unmapped=on_unmapped, corpus=corpus
    )
    print_line(f"wrote {out}")
    for line in summary_lines(done, on_unmapped):
        print_line(line)
    for problem in done.problems:
        say(f"unmapped: {problem.place}: {problem.message}")
    if done.unmapped > len(done.problems):
        click.echo(f"unmapped: ... and {done.unmapped - len(done.problems)} more", err=True)
    for problem in done.drafts:
        say(f"draft: {problem.place}: {problem.message}")
    if done.draft_count > len(done.drafts):
        click.echo(f"draft: ... and {done.draft_count - len(done.drafts)} more", err=True)
    # The file is there, and no command will score it before a person has looked at the drafts.
    return int(ExitCode.NOT_EVALUABLE) if done.draft_count else 0


_RATE = re.compile(r"(\d+(?:\.\d+)?)(?:/(s|m|h))?")
_SECONDS = {None: 1, "s": 1, "m": 60, "h": 3600}


def questions_a_second(text: str | None) -> float | None:
    """Read `--rate`: how many questions a second; None for as many as there can be."""
    if text is None:
        return None
    match = _RATE.fullmatch(text)
    if match is None or not float(match[1]):
        raise click.UsageError(f"--rate takes a number as in 20/s, 100/m or 500/h, got {text!r}")
    return float(match[1]) / _SECONDS[match[2]]


def target_settings(pairs: Sequence[str]) -> dict[str, str]:
    """Read the values of `--option`."""
    settings: dict[str, str] = {}
    for pair in pairs:
        name, equals, value = pair.partition("=")
        if not equals or not name or name in settings:
            raise click.UsageError(f"--option takes NAME=VALUE, each name once, got {pair!r}")
        settings[name] = value
    return settings
