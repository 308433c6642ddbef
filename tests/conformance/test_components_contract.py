"""Every profile, dialect, report and command keeps the contract of its kind."""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path

import click
import pytest

from ragauge import gate, registry
from ragauge.cli.main import root, run
from ragauge.gates.parse import profile_gates
from ragauge.model.dialect import Dialect
from ragauge.model.field_spellings import GOLD_SPELLINGS, TRACE_SPELLINGS
from ragauge.model.profile import Profile
from ragauge.model.report import Report, View
from tests.conformance.runs import ORDINARY_GOLD, ORDINARY_TRACE, Row, scored
from tests.support.cases import cases

PROFILES = list(registry.profiles().values())
DIALECTS = list(registry.dialects().values())
REPORTS = list(registry.reports().values())
COMMANDS = root.list_commands(click.Context(root))

each_profile = cases("profile", PROFILES, ids=lambda profile: profile.name)
each_dialect = cases("dialect", DIALECTS, ids=lambda dialect: dialect.name)
each_report = cases("report", REPORTS, ids=lambda report: report.name)
each_command = cases("name", COMMANDS)


def test_a_profile_has_the_name_of_its_file() -> None:
    """`--profile NAME` and NAME.toml are the same name."""
    stems = {entry.name for entry in files("ragauge.profiles").iterdir()}
    assert {f"{profile.name}.toml" for profile in PROFILES} == {
        stem for stem in stems if stem.endswith(".toml")
    }


@each_profile
def test_names_of_a_profile_resolve(profile: Profile) -> None:
    """Metrics, short names, 0/0 defaults, titles, reports and dialect all name something."""
    known = registry.metrics()
    assert registry.select(profile.metrics, profile.k)
    for short, meant in profile.aliases.items():
        assert registry.select([meant], profile.k), short
        assert short not in known
    assert profile.empty.keys() <= known.keys()
    assert known[profile.correct].value is not None
    assert known[profile.correct].binary
    assert profile.titles.keys() <= profile.gates.keys()
    assert profile.reports.keys() | set(profile.reports.values()) <= registry.reports().keys()
    assert profile.dialect in registry.dialects()
    assert profile.title.strip()
    assert profile.source.strip()


@each_profile
def test_gates_of_a_profile_resolve(profile: Profile) -> None:
    """Every gate demands a metric that the profile measures, with a threshold as written."""
    gates = profile_gates(profile, profile.k)
    assert [each.name for each in gates] == list(profile.gates)
    measured = {each.id for each in registry.select(profile.metrics, profile.k)}
    for each in gates:
        assert each.metric in measured
        assert 0 <= each.threshold <= 1
        assert each.better == registry.metrics()[each.metric.partition("@")[0]].better


@each_dialect
def test_own_names_are_known_spellings(dialect: Dialect) -> None:
    """What a dialect calls its own is read under every dialect, for the same field."""
    for own, spellings in (
        (dialect.own_gold, GOLD_SPELLINGS),
        (dialect.own_trace, TRACE_SPELLINGS),
    ):
        assert own.keys() <= spellings.keys()
        for field, names in own.items():
            assert names
            assert set(names) <= set(spellings[field]), field


def test_no_spelling_stands_for_two_fields() -> None:
    """A name in a row means one field."""
    for spellings in (GOLD_SPELLINGS, TRACE_SPELLINGS):
        names = [name for each in spellings.values() for name in each]
        assert len(names) == len(set(names))


@each_dialect
def test_a_dialect_leads_to_a_profile(dialect: Dialect) -> None:
    """A dialect chooses a profile that exists, and says what it is and where it comes from."""
    assert dialect.profile in registry.profiles()
    assert dialect.title.strip()
    assert dialect.source.strip()


def test_dialects_are_told_apart() -> None:
    """No mark, in gold or in traces, speaks for two dialects."""
    for marks in ([d.gold_marks for d in DIALECTS], [d.trace_marks for d in DIALECTS]):
        assert len(frozenset().union(*marks)) == sum(map(len, marks))


def _view(
    folder: Path, profile: Profile, gold: list[Row], trace: list[Row], *, full: bool = False
) -> View:
    k = profile.k[0]
    scores = scored(folder, gold, trace, profile=profile.name, k=k, metrics=())
    return View(scores=scores, verdict=gate(scores), profile=profile, full=full)


@each_profile
@each_report
@cases("full", [False, True])
def test_a_report_shows_an_ordinary_run(
    report: Report, profile: Profile, full: bool, tmp_path: Path
) -> None:
    """Every report can show a run of every profile; a text ends with one newline."""
    content = report.content(_view(tmp_path, profile, ORDINARY_GOLD, ORDINARY_TRACE, full=full))
    assert _ends_well(content)
    assert content == report.content(
        _view(tmp_path, profile, ORDINARY_GOLD, ORDINARY_TRACE, full=full)
    )


@each_profile
@each_report
def test_a_report_shows_an_empty_run(report: Report, profile: Profile, tmp_path: Path) -> None:
    """No gold, or gold without traces, can be shown too."""
    for gold in ([], ORDINARY_GOLD):
        assert _ends_well(report.content(_view(tmp_path, profile, gold, [])))


def _ends_well(content: str | bytes) -> bool:
    """Bytes are no text and end as they do."""
    if isinstance(content, bytes):
        return bool(content)
    return content.endswith("\n") and not content.endswith("\n\n")


@each_report
def test_a_report_says_what_it_is(report: Report) -> None:
    """A report has a title, and its suffixes are file suffixes that no other report takes."""
    assert report.title.strip()
    for suffix in report.suffixes:
        assert suffix.startswith(".")
        assert [each.name for each in REPORTS if suffix in each.suffixes] == [report.name]


def test_there_are_commands() -> None:
    """The commands are found, so that the tests below have something to test."""
    assert {"score", "gate", "validate", "metrics", "explain", "init", "demo"} <= set(COMMANDS)


@each_command
def test_a_command_has_help(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    """A command says what it does in one line and at length, and `--help` prints it."""
    command = root.get_command(click.Context(root), name)
    assert command is not None
    assert command.name == name
    assert (command.short_help or "").strip()
    assert (command.help or "").strip()
    assert run([name, "--help"]) == 0
    shown = capsys.readouterr()
    assert shown.out.startswith(f"Usage: ragauge {name}")
    assert (command.help or "").split("\n")[0].split(".")[0][:40] in shown.out
    assert shown.err == ""


@each_command
def test_options_of_a_command_have_help(name: str) -> None:
    """Every option says what it is for."""
    command = root.get_command(click.Context(root), name)
    assert command is not None
    silent = [
        parameter.opts
        for parameter in command.params
        if isinstance(parameter, click.Option) and not (parameter.help or "").strip()
    ]
    assert silent == []
