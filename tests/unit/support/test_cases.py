"""The decorator of many small cases: all are run, each failure is named, none shares a folder."""

from __future__ import annotations

import inspect
import os
from pathlib import Path

import pytest

from tests.support.cases import cases
from tests.support.command import Folder


def test_all_cases_are_run_and_each_that_fails_is_named() -> None:
    seen = []

    @cases("number, word", [(1, "a"), pytest.param(2, "b", id="two"), (3, "c")])
    def check(number: int, word: str) -> None:
        seen.append(word)
        assert number % 2 == 0, f"{number} is odd"

    with pytest.raises(pytest.fail.Exception) as raised:
        check()
    assert seen == ["a", "b", "c"]
    said = str(raised.value)
    assert said.startswith("2 of 3 cases fail")
    assert "--- number=1, word='a'" in said
    assert "1 is odd" in said
    assert "--- number=3, word='c'" in said
    assert "3 is odd" in said
    assert "two" not in said
    assert f"{__file__}:" in said


def test_one_failure_alone_is_the_error_itself_with_the_name_of_its_case() -> None:
    @cases("text", ["1", "x"], ids=lambda text: f"<{text}>")
    def check(text: str) -> None:
        int(text)

    with pytest.raises(ValueError, match="invalid literal") as raised:
        check()
    assert raised.value.__notes__ == ["the only case of 2 that fails: <x>"]


def test_a_skip_is_said_after_the_other_cases_were_run() -> None:
    seen = []

    @cases("number", [1, 2])
    def check(number: int) -> None:
        seen.append(number)
        if number == 1:
            pytest.skip("not here")

    with pytest.raises(pytest.skip.Exception, match="1 of 2 cases: number=1: not here"):
        check()
    assert seen == [1, 2]


def test_no_case_is_no_green_test() -> None:
    with pytest.raises(pytest.skip.Exception, match="no cases"):
        cases("number", [])(print)()


def test_marks_of_one_case_are_refused() -> None:
    with pytest.raises(TypeError, match="no marks of its own"):
        cases("number", [pytest.param(1, marks=pytest.mark.slow)])


@cases("again", [1, 2])
@cases("name", ["a", "b"])
def test_each_case_has_a_folder_an_environment_and_an_output_of_its_own(
    again: int,
    name: str,
    folder: Folder,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert again in (1, 2)
    assert Path.cwd() == tmp_path == folder.path
    assert not list(tmp_path.iterdir())
    assert "RAGAUGE_CASE" not in os.environ
    assert capsys.readouterr().out == ""
    folder.write(name, "seen")
    monkeypatch.setenv("RAGAUGE_CASE", name)
    print(name)


def test_pytest_sees_the_fixtures_and_not_the_names_of_a_case() -> None:
    test = test_each_case_has_a_folder_an_environment_and_an_output_of_its_own
    assert list(inspect.signature(test).parameters) == [
        "folder", "tmp_path", "monkeypatch", "capsys",
    ]  # fmt: skip
