"""The campaign: a short one over everything, and every case that a long one has found."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from multiprocessing import get_context
from pathlib import Path

import pytest

from ragauge.codes import ExitCode
from tests.fuzz.campaign import campaign, case_of, keep
from tests.fuzz.case import CASES, Case, Finding, read_case, write_case
from tests.fuzz.collect import COMMAND as COLLECT
from tests.fuzz.examine import isolate, run_case
from tests.fuzz.faulty import crash, dislike_nul, never_end
from tests.fuzz.mutate import command_of
from tests.fuzz.targets import NOT_RUN, Target, all_commands, all_targets
from tests.fuzz.worker import Worker
from tests.support.effort import FIRST_SEED, seeds

pytestmark = [
    pytest.mark.slow,
    pytest.mark.xdist_group("fuzz"),
    pytest.mark.skipif(sys.platform == "win32", reason="the watchdog needs POSIX signals"),
]


@pytest.fixture(scope="module")
def targets(tmp_path_factory: pytest.TempPathFactory) -> list[Target]:
    return all_targets(tmp_path_factory.mktemp("targets"))


@pytest.fixture(scope="module")
def worker() -> Iterator[Worker]:
    worker = Worker()
    yield worker
    worker.close()


@pytest.mark.parametrize("path", sorted(CASES.glob("*.json")), ids=lambda path: path.stem)
def test_a_fault_of_the_past_stays_fixed(path: Path, worker: Worker) -> None:
    assert worker.examine(read_case(path)) == []


def test_a_short_campaign_finds_nothing(targets: list[Target]) -> None:
    """Two cases of each target; `make fuzz` tries for minutes, from a new seed."""
    rounds = len(seeds(2))
    results = campaign(
        targets, seed=FIRST_SEED, goes_on=lambda number: number < rounds, processes=1
    )
    assert set(results.tried.values()) == {rounds}
    assert [
        f"--seed {FIRST_SEED} --only {found.case.target} --case {found.number}: {found.finding}"
        for found in results.found.values()
    ] == []


def test_good_files_are_read(targets: list[Target], tmp_path: Path) -> None:
    """Else a campaign would break what is refused anyway."""
    cases = [case for target in targets if target.broken for case in target.good_cases()]
    with ProcessPoolExecutor(1, get_context("spawn"), initializer=isolate) as process:
        outcomes = list(process.map(run_case, cases, [tmp_path / "case"] * len(cases)))
    refused = {int(ExitCode.USAGE), int(ExitCode.BAD_INPUT), int(ExitCode.BUG)}
    assert [
        (case.target, case.arguments, outcome.exit_code, outcome.err)
        for case, outcome in zip(cases, outcomes, strict=True)
        if outcome.exit_code in refused
    ] == []


def test_every_command_is_tried(targets: list[Target]) -> None:
    lines = [command.split() for target in targets for command in target.commands]
    words = [line for line in lines if line[0] != COLLECT]
    tried = {" ".join(line[: command_of(line)[1]]) for line in words}
    assert tried == all_commands() - NOT_RUN


def test_a_case_is_the_same_for_the_same_seed(targets: list[Target]) -> None:
    for target in targets:
        cases = [case_of(target, seed, 3) for seed in (1, 1, 2)]
        assert cases[0] == cases[1]
        assert cases[0] != cases[2]


def test_a_planted_fault_is_found_made_small_and_kept(tmp_path: Path) -> None:
    content = b'{"qid": "A"}\n' * 5
    target = Target("planted", {"gold.jsonl": content, "other.txt": b"x"}, ["gold.jsonl"],
                    ["validate gold.jsonl --profile ship"])  # fmt: skip
    new_worker = partial(Worker, dislike_nul)
    results = campaign(
        [target], seed=1, goes_on=lambda number: number < 100, processes=2, new_worker=new_worker
    )
    ((signature, found),) = results.found.items()
    assert signature == ("bug", "reader.py:1")
    assert results.times[signature] > 1, "a fault that shows often is one fault"
    path = keep(found, tmp_path, new_worker=new_worker)
    assert read_case(path) == Case("planted", {"gold.jsonl": b"\x00"}, ("validate",))
    assert path.name.startswith("planted-")


def test_a_case_that_never_ends_is_found_and_the_campaign_goes_on() -> None:
    worker = Worker(never_end, cpu_seconds=0.2)
    try:
        for _ in range(2):
            (finding,) = worker.examine(Case("x", {}, ()))
            assert finding.signature == ("hang", "faulty.py never_end")
    finally:
        worker.close()


def test_a_process_that_crashes_is_found_and_the_campaign_goes_on() -> None:
    worker = Worker(crash)
    try:
        (finding,) = worker.examine(Case("x", {}, ("crash",)))
        assert finding.signature == ("crash", "-11 faulty.py crash")
        assert worker.examine(Case("x", {}, ())) == []
    finally:
        worker.close()


def test_a_kept_case_can_be_read_by_people_and_back(tmp_path: Path) -> None:
    case = Case("x", {"a": b"text\n", "b": b"\xff\x00"}, ("score", "\udcff"), frozenset({"b"}))
    path = write_case(case, Finding("bug", "join.py:5", "it fails"), tmp_path)
    assert read_case(path) == case
    document = json.loads(path.read_text("utf-8"))
    assert document["files"]["a"] == "text\n"
    assert document["found"] == "bug: it fails"
