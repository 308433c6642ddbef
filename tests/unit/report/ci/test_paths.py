"""Paths as CI systems show them."""

from __future__ import annotations

from pathlib import Path

import pytest

from ragauge.report.ci.paths import FileLocation, location_of, seen_from_root


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "repo/part").mkdir(parents=True)
    monkeypatch.chdir(tmp_path / "repo/part")
    for name in ("GITHUB_WORKSPACE", "CI_PROJECT_DIR"):
        monkeypatch.delenv(name, raising=False)


@pytest.mark.parametrize(
    ("given", "seen"),
    [
        ("gold.jsonl", "gold.jsonl"),
        ("./a/../gold.jsonl", "gold.jsonl"),
        ("eval set/gold.jsonl", "eval set/gold.jsonl"),
        ("../gold.jsonl", "../gold.jsonl"),
        ("/other/gold.jsonl", "/other/gold.jsonl"),
        ("..gold", "..gold"),
        ("no\0name/x", "no\0name/x"),
    ],
)
def test_seen_from_the_working_directory(given: str, seen: str) -> None:
    assert seen_from_root(given) == seen


@pytest.mark.parametrize("variable", ["GITHUB_WORKSPACE", "CI_PROJECT_DIR"])
def test_seen_from_the_repository(
    variable: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where CI says which folder that is and the process works in it."""
    monkeypatch.setenv(variable, str(tmp_path / "repo"))
    assert seen_from_root("gold.jsonl") == "part/gold.jsonl"
    assert seen_from_root("../gold.jsonl") == "gold.jsonl"
    assert seen_from_root(str(tmp_path / "repo/x/g.jsonl")) == "x/g.jsonl"
    assert seen_from_root("../../out.jsonl") == "../../out.jsonl"
    monkeypatch.setenv(variable, str(tmp_path / "elsewhere"))
    assert seen_from_root("gold.jsonl") == "gold.jsonl"
    monkeypatch.setenv(variable, str(tmp_path / "rep"))
    assert seen_from_root("gold.jsonl") == "gold.jsonl"


@pytest.mark.parametrize("variable", ["GITHUB_WORKSPACE", "CI_PROJECT_DIR"])
@pytest.mark.parametrize("here", [".", "..", "../aside", "/"])
def test_below_the_repository_it_counts_wherever_the_process_works(
    variable: str, here: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Above the repository and beside it too; what is outside keeps its whole name."""
    root = tmp_path / "repo"
    (tmp_path / "aside").mkdir()
    monkeypatch.chdir(root)
    monkeypatch.chdir(here)
    monkeypatch.setenv(variable, str(root))
    assert seen_from_root(str(root / "x/g.jsonl")) == "x/g.jsonl"
    outside = str(tmp_path / "repository/g.jsonl")
    assert seen_from_root(outside) == outside


def test_a_linked_folder_is_followed_and_a_linked_file_keeps_its_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "link").symlink_to(tmp_path / "repo")
    (tmp_path / "repo/part/data.jsonl").touch()
    (tmp_path / "repo/part/gold.jsonl").symlink_to("data.jsonl")
    monkeypatch.setenv("GITHUB_WORKSPACE", str(tmp_path / "link"))
    assert seen_from_root("gold.jsonl") == "part/gold.jsonl"
    assert seen_from_root(str(tmp_path / "link/part/gold.jsonl")) == "part/gold.jsonl"


@pytest.mark.parametrize(
    ("place", "spot"),
    [
        ("g.jsonl:12", FileLocation("g.jsonl", 12)),
        ("a:b.jsonl:3", FileLocation("a:b.jsonl", 3)),
        ("g.jsonl", FileLocation("g.jsonl", None)),
        ("g:0", FileLocation("g", None)),
        ("g:x", FileLocation("g:x", None)),
        ("g:1234567890", FileLocation("g:1234567890", None)),
        ("<stdin>:15", None),
        ("<stdin>", None),
        ("-:4", None),
        ("-", None),
        ("", None),
        (None, None),
    ],
)
def test_places_are_files_and_lines(place: str | None, spot: FileLocation | None) -> None:
    assert location_of(place) == spot
