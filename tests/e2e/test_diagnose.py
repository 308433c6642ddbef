"""`diagnose`, `prompt` and `shadow` on stored runs, as real processes: same input, same bytes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.e2e.process import GOLD, TRACES, WRONG, run, write

EXAMPLES = Path(__file__).resolve().parents[2] / "examples" / "canary"
FIXED = {"SOURCE_DATE_EPOCH": "1794733200"}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store with two runs of the example, and one with a hallucination."""
    path = tmp_path_factory.mktemp("explaining")
    write(path / "gold.jsonl", GOLD)
    write(path / "good.jsonl", TRACES)
    write(path / "wrong.jsonl", WRONG)
    assert run(path, "score", "gold.jsonl", "wrong.jsonl", "--run-id", "wrong", "--store").stderr
    for name in ("live", "shadow"):
        run(
            path, "score", EXAMPLES / "gold.jsonl", EXAMPLES / f"{name}.jsonl", "--run-id", name,
            "--store", env=FIXED,
        )  # fmt: skip
    return path


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (("diagnose", "wrong", "--format", "json"), 0),
        (("diagnose", "shadow"), 0),
        (("prompt", "shadow"), 0),
        (("shadow", "--live", "live", "--shadow", "shadow", "--format", "json"), 1),
        (("shadow", "--live", "live", "--shadow", "live", "--format", "md"), 0),
    ],
)
def test_the_seed_of_hashes_changes_no_byte(
    folder: Path, arguments: tuple[str, ...], code: int
) -> None:
    one, other = (run(folder, *arguments, env={"PYTHONHASHSEED": seed}) for seed in ("1", "2"))
    assert (one.returncode, one.stderr) == (code, "")
    assert one.stdout == other.stdout
    assert one.stdout.endswith("\n")


def test_the_example_is_judged_as_by_hand(folder: Path) -> None:
    """The same gates, values and verdict as `score --baseline`."""
    by_hand = run(
        folder, "gate", "shadow", "--baseline", "live", "--format", "json",
    )  # fmt: skip
    in_one = run(folder, "shadow", "--live", "live", "--shadow", "shadow", "--format", "json")
    assert by_hand.returncode == in_one.returncode == 1
    one, other = (json.loads(each.stdout)["verdict"] for each in (by_hand, in_one))
    assert one == other


def test_looking_writes_nothing(folder: Path) -> None:
    """The store keeps its bytes."""
    before = (folder / "ragauge.db").read_bytes()
    run(folder, "diagnose", "wrong")
    run(folder, "prompt", "wrong")
    run(folder, "shadow", "--live", "live", "--shadow", "shadow")
    assert (folder / "ragauge.db").read_bytes() == before
