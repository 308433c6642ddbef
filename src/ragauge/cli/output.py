"""How results leave a command: formats and files by name, the verdict, and talk on stderr."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

import click

from ragauge.cli.options import day, gates_from, is_strict, say, screen
from ragauge.cli.streams import print_text

if TYPE_CHECKING:
    from datetime import date

    from ragauge.compare.align import Aligned
    from ragauge.config import Config
    from ragauge.gates.baselines import GateBaseline
    from ragauge.gates.judge import Tolerance
    from ragauge.model.drilldown import Drilldowns
    from ragauge.model.profile import Profile
    from ragauge.model.report import Report, View
    from ragauge.model.run import RunRecord
    from ragauge.model.scores import Scores
    from ragauge.model.verdict import Gate, Verdict, Waiver


OUTPUT_OPTIONS = [
    click.option(
        "-o",
        "outputs",
        multiple=True,
        metavar="FILE",
        help="Also write FILE; its suffix says the format, or NAME:FILE does. Repeats.",
    ),
    click.option(
        "--raw-csv",
        is_flag=True,
        help="Write ids to CSV as they are, also those that a spreadsheet would run as a formula.",
    ),
]


class _Format(Protocol):
    @property
    def name(self) -> str: ...

    @property
    def suffixes(self) -> tuple[str, ...]: ...


R = TypeVar("R", bound=_Format)


def format_of(output: str, reports: Mapping[str, R]) -> tuple[R, str]:
    """The format that `-o FILE` or `-o NAME:FILE` asks for, and the file."""
    name, colon, path = output.partition(":")
    if colon and name in reports:
        if not path:
            raise click.UsageError(f"-o {output}: name a file behind the colon")
        if path == "-":
            raise click.UsageError(
                f"-o {output}: -o writes files; --format NAME prints to standard output"
            )
        return reports[name], path
    suffix = Path(output).suffix.lower()
    for report in reports.values():
        if suffix in report.suffixes:
            return report, output
    suffixes = sorted(suffix for report in reports.values() for suffix in report.suffixes)
    raise click.UsageError(
        f"-o {output}: the suffix says the format; known: {', '.join(suffixes)}; "
        f"or write NAME:FILE with one of {', '.join(sorted(reports))}"
    )


def output_files(outputs: Iterable[str]) -> list[str]:
    """The files that outputs of scores name."""
    return [format_of(output, public_reports())[1] for output in outputs]


def spare_inputs(
    files: Sequence[str],
    config: Config,
    config_path: str | None,
    *,
    gates: str | None = None,
    baselines: Sequence[str] = (),
    store_url: str | None = None,
    others: Mapping[str, str | None],
) -> None:
    """Refuse to write files over what is read, or over each other.

    `others` goes from what an input is to its name.
    """
    if not files:
        return
    from ragauge.cli.store_options import url_of
    from ragauge.config import FILE_NAME

    inputs = {
        **others,
        "configuration": config_path or FILE_NAME,
        "gates file": gates,
        "store": url_of(store_url, config),
    }
    for place, file in enumerate(files):
        spare(file, inputs)
        for baseline in baselines or config.baselines:
            spare(file, {"baseline": baseline})
        spare_outputs(file, files[:place])


def spare_outputs(file: str, others: Iterable[str | None], *, option: str = "-o") -> None:
    """Refuse to write a file that another option writes too."""
    for other in others:
        if other is not None and _is_same_file(_written_path(file), _written_path(other)):
            raise click.UsageError(f"{option} {file} would replace {other}, which is written too")


def spare(file: str | None, inputs: Mapping[str, str | None], *, option: str = "-o") -> None:
    """Refuse to write a file over one of the inputs, named by what each of them is.

    Where an input is no file that is there (a stored run, a list of gates), nothing can be lost.
    """
    if file is None:
        return
    from ragauge.files.atomic_write import refuse_special

    refuse_special(file)
    for what, name in inputs.items():
        if name is not None and _is_read(_written_path(file), name):
            raise click.UsageError(
                f"{option} {file} would replace the {what}, which is read: name another file"
            )


def _written_path(file: str) -> Path:
    """Where a file comes to stand: links are followed, and `nosuch/..` goes back to its folder."""
    return Path(os.path.realpath(file))


def _is_same_file(one: Path, other: Path) -> bool:
    """Whether two paths without links are one file, which need not be there yet."""
    try:
        return one.samefile(other)
    except OSError:
        if str(one).casefold() != str(other).casefold():
            return False
        return one == other or _ignores_case(one.parent)


def _ignores_case(folder: Path) -> bool:
    """Whether a file system takes `A.json` for `a.json`, as far as the names of folders show it."""
    for path in (folder, *folder.parents[:-1]):
        swapped = path.with_name(path.name.swapcase())
        if swapped != path and path.exists():
            return swapped.exists() and swapped.samefile(path)
    return False


_SQLITE = "sqlite:///"
_BESIDE_SQLITE = ("", "-wal", "-shm", "-journal")
"""What SQLite keeps beside its file, while it is open or after a crash."""


def _is_read(output: Path, name: str) -> bool:
    """Whether a file is an input, under whatever name, or a part of one."""
    try:
        if name == "-":
            return os.path.samestat(os.stat(output), os.fstat(0))
        if name.startswith(_SQLITE):  # it may be made only later
            store = name.removeprefix(_SQLITE)
            return any(_is_same_file(output, _written_path(store + end)) for end in _BESIDE_SQLITE)
        path = _written_path(name)
        if path.is_dir():
            return _is_part(output, path)
        return path.exists() and _is_same_file(output, path)
    except (OSError, ValueError):  # no name that a file can have
        return False


def _is_part(output: Path, folder: Path) -> bool:
    """Whether a file is one that is read of a folder: a corpus, or one of the form of BEIR."""
    from ragauge.files.atomic_write import in_corpus

    if in_corpus(output):
        return output.is_relative_to(folder)
    if output.parent == folder:
        return output.name in ("queries.jsonl", "corpus.jsonl")
    return output.parent == folder / "qrels"


def printable(content: str | bytes, name: str) -> str:
    """What a format wrote, if a screen can show it."""
    if isinstance(content, bytes):
        raise click.UsageError(f"--format {name} is for files: write it with -o {name}:FILE")
    return content


def write_output(path: str, content: str | bytes) -> None:
    """Write what a format made, whole or not at all."""
    from ragauge.files.atomic_write import atomic_file

    with atomic_file(path) as file:
        file.write(content.encode() if isinstance(content, str) else content)


def public_reports() -> dict[str, Report]:
    """The reports that may be asked for by name."""
    from ragauge import registry

    return {name: report for name, report in registry.reports().items() if report.public}


def choose_report(name: str, profile: Profile) -> Report:
    """The report of that name, or the profile's own version of it."""
    from ragauge import registry

    public = public_reports()
    if name not in public:
        raise registry.unknown_name("format", name, public)
    return registry.report(profile.reports.get(name, name))


def report_for_file(output: str, profile: Profile) -> tuple[Report, str]:
    """The report that an output asks for, by its suffix or its name, and the file."""
    report, path = format_of(output, public_reports())
    return choose_report(report.name, profile), path


def asked_reports(format_name: str, outputs: Sequence[str], profile: Profile) -> list[Report]:
    """The reports that a command line asks for, the printed one first."""
    chosen = [choose_report(format_name, profile)]
    return chosen + [report_for_file(output, profile)[0] for output in outputs]


def is_partial(run: RunRecord | str | None) -> bool:
    """Whether a stored run was begun with --limit or --filter, and has fewer questions for that."""
    if run is None or isinstance(run, str):
        return False
    from ragauge.store.snapshot import read_snapshot

    target = read_snapshot(run.snapshot, run.run_id).system.get("target")
    return isinstance(target, dict) and bool(target.get("limit") or target.get("filters"))


def refuse_past(
    today: date, runs: Sequence[RunRecord | str | None], waivers: Sequence[Waiver]
) -> None:
    """Refuse to judge runs as of a day on which they were not there yet.

    A waiver that expired would be valid again. Stored runs and run files say when they were made.
    Other files do not, and when they were last written changes with every checkout: of those only a
    waiver that is expired by now is refused, which no run can need that was made since.
    """
    from datetime import date, datetime

    days = []
    undated = False
    for run in runs:
        if isinstance(run, str):
            undated = undated or run == "-" or os.path.exists(run)
        elif run is not None and run.created_at:
            days.append(datetime.fromisoformat(run.created_at).astimezone().date())
        else:
            undated = undated or run is not None
    if days and today < max(days):
        raise click.UsageError(
            f"--as-of {today}: the run is of {max(days)}, and waivers are not judged by a day "
            "before it"
        )
    revived = [waiver for waiver in waivers if today <= waiver.expires < date.today()]
    if undated and revived:
        raise click.UsageError(
            f"--as-of {today}: the waiver of `{revived[0].gate}` expired on {revived[0].expires}, "
            "and a run without a date is one of today: waivers are not judged by a day before it"
        )


def judged(
    scores: Scores,
    profile: Profile,
    gates: Sequence[Gate],
    config: Config,
    *,
    allowed: Tolerance,
    as_of: str | None,
    runs: Sequence[RunRecord | str | None] = (),
    baselines: Sequence[GateBaseline] = (),
) -> Verdict:
    """Judge scores by gates, with the waivers of the configuration.

    `runs` are what is judged, stored or as a file, and then what it is compared with.
    """
    from msgspec.structs import replace

    from ragauge.gates.baselines import judge_against

    if runs and is_partial(runs[0]):
        allowed = replace(allowed, fewer_questions=True)
    today = day(as_of, needed=bool(config.waivers))
    if as_of is not None and config.waivers:
        refuse_past(today, runs, config.waivers)
    return judge_against(
        scores,
        gates,
        baselines,
        source_rules=profile.follows_source,
        whole_grid=profile.join.grid == "complete",
        tolerance=allowed,
        waivers=config.waivers,
        today=today,
        fail_on_review=is_strict("fail_on_review"),
        bands=config.bands,
    )


def judged_drops(
    aligned: Aligned,
    config: Config,
    gates_option: str | None,
    allowed: Tolerance,
    as_of: str | None,
    runs: Sequence[RunRecord | str | None] = (),
) -> tuple[list[Gate], Verdict | None]:
    """The gates on a drop, and their verdict, if there are any.

    Other gates are on one run, and judged by `gate` and `score`. Nobody may think that they passed
    here: one that the command line names is refused, and one of a gates file is told.
    """
    from msgspec.structs import replace

    from ragauge import registry
    from ragauge.gates.baselines import GateBaseline

    scores = aligned.b
    profile = registry.profile(scores.profile)
    gates = gates_from(profile, scores.k, config, gates_option, may_require=False)
    drops = [gate for gate in gates if gate.is_drop]
    chosen_here = ("--gates", gates_option)
    stray = [gate for gate in gates if not gate.is_drop and gate.origin in chosen_here]
    names = ", ".join(gate.name for gate in stray)
    if any(gate.origin == "--gates" for gate in stray):
        raise click.UsageError(
            f"--gates {names}: a comparison judges gates on a drop (max_drop) only; "
            "`ragauge gate` and `ragauge score` judge this one"
        )
    if stray:
        say(f"note: not judged here, as they are not on a drop: {names} (by `ragauge gate`)")
    context = click.get_current_context()
    if not drops and is_strict("require_gates") and not context.params.get("fail_on"):
        raise click.UsageError(
            "--require-gates: no gate is on a drop (max_drop), and there is no --fail-on"
        )
    if not drops:
        return [], None
    waivers = tuple(waiver for waiver in config.waivers if any(map(waiver.covers, drops)))
    config = replace(config, waivers=waivers)
    baselines = [GateBaseline(scores=aligned.a)]
    return drops, judged(
        scores,
        profile,
        drops,
        config,
        allowed=allowed,
        as_of=as_of,
        runs=runs,
        baselines=baselines,
    )


def conclude(
    scores: Scores,
    profile: Profile,
    gates: Sequence[Gate],
    config: Config,
    *,
    format_name: str,
    outputs: Sequence[str],
    full: bool,
    raw_csv: bool,
    details: Drilldowns | None = None,
    **judging: Any,
) -> int:
    """Judge scores, write and print what was asked for, and return the exit code.

    `judging` is what `judged` takes beside.
    """
    from ragauge.model.report import View

    verdict = judged(scores, profile, gates, config, **judging)
    view = View(
        scores=scores,
        verdict=verdict,
        profile=profile,
        full=full,
        details=details,
        raw_csv=raw_csv,
    )
    warn(view)
    emit(view, format_name, outputs)
    talk(view, format_name)
    return int(verdict.exit_code)


def emit(view: View, format_name: str, outputs: Sequence[str]) -> None:
    """Write the files that were asked for, then print the chosen format."""
    import msgspec

    contents: dict[str, str | bytes] = {}
    for output in outputs:
        report, path = report_for_file(output, view.profile)
        if report.name not in contents:
            contents[report.name] = report.content(view)
        write_output(path, contents[report.name])
    report = choose_report(format_name, view.profile)
    if format_name == "table" or report.name not in contents:
        contents[report.name] = report.content(msgspec.structs.replace(view, **screen()))
    print_text(printable(contents[report.name], report.name), report.syntax)


def warn(view: View) -> None:
    """Say on stderr what a reader should know before any number."""
    for block in view.scores.blocks:  # also where it is let pass
        say(f"warning: {block.code}: {block.message}")
    for warning in view.scores.warnings:
        say(f"warning: {warning}")
    for line in view.scores.skipped:
        say(f"skipped: {line}")
    more = view.scores.tally.gold_skipped + view.scores.tally.trace_skipped
    more -= len(view.scores.skipped)
    if more > 0:
        say(f"skipped: ... and {more} more")


def talk(view: View, format_name: str) -> None:
    """Say on stderr what the printed format does not: failed gates, the verdict."""
    from ragauge.model import phrases

    if format_name == "table":
        return
    for result in view.verdict.gates:
        if result.status != "pass":
            note = phrases.gate_note(result)
            say(
                f"gate `{phrases.gate_name(result)}`: {phrases.number(result.value)} "
                f"{phrases.threshold_text(result)} (n = {result.n}): {result.status}"
                + (f" - {note}" if note else "")
            )
    few = [result for result in view.verdict.gates if result.caution is not None]
    if few:
        names = ", ".join(f"{phrases.gate_name(result)} (n = {result.n})" for result in few)
        say(f"warning: judged on few questions: {names}")
    if view.verdict.gates or view.verdict.blocks:
        say(f"verdict: {phrases.verdict_headline(view.verdict)}")
