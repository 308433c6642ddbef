"""Many small cases in one test: all of them are run, and each that fails is named."""

from __future__ import annotations

import functools
import inspect
import itertools
import traceback
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

import pytest

Test = Callable[..., None]


class Case(NamedTuple):
    """The arguments of one case, and what it is called where it fails."""

    name: str
    arguments: dict[str, Any]


def cases(
    names: str | Sequence[str],
    values: Iterable[Any],
    *,
    ids: Callable[[Any], object] | Iterable[object] | None = None,
) -> Callable[[Test], Test]:
    """As `pytest.mark.parametrize`, but one test: pytest takes 3 ms of CPU for each of its own.

    `folder`, `tmp_path`, `monkeypatch` and `capsys` are new for each case; all cases share any
    other fixture, so it must be one that no case changes.
    """
    name_list = [name.strip() for name in names.split(",")] if isinstance(names, str) else names
    case_list = _case_list(list(name_list), list(values), ids)

    def decorate(test: Test) -> Test:
        signature = inspect.signature(test)

        @functools.wraps(test)
        def run_all(*arguments: Any, **fixtures: Any) -> None:
            if not case_list:
                pytest.skip("there are no cases")
            failures: list[tuple[str, BaseException]] = []
            skipped = []
            for number, case in enumerate(case_list):
                try:
                    with _own_fixtures(fixtures, number) as own:
                        test(*arguments, **own, **case.arguments)
                except pytest.skip.Exception as skip:
                    skipped.append(f"{case.name}: {skip}")
                except (Exception, pytest.fail.Exception) as error:
                    failures.append((case.name, error))
            _report(failures, len(case_list))
            if skipped:  # the others have passed
                pytest.skip(f"{len(skipped)} of {len(case_list)} cases: {'; '.join(skipped)}")

        kept = [each for name, each in signature.parameters.items() if name not in name_list]
        run_all.__signature__ = signature.replace(parameters=kept)  # type: ignore[attr-defined]
        return run_all

    return decorate


def _case_list(
    names: list[str], values: list[Any], ids: Callable[[Any], object] | Iterable[object] | None
) -> list[Case]:
    """The cases with their names: as `ids` or `pytest.param` say, else by the arguments."""
    labels = [None] * len(values) if ids is None or callable(ids) else list(ids)
    found = []
    for value, label in zip(values, labels, strict=True):
        param = value if isinstance(value, type(pytest.param())) else None
        if param is not None and param.marks:
            raise TypeError("a case has no marks of its own: use pytest.mark.parametrize")
        if param is not None:
            row: Sequence[Any] = param.values
        else:
            row = (value,) if len(names) == 1 else value
        name = (param.id if param is not None else None) or label
        if name is None:
            words = [ids(each) if callable(ids) else None for each in row]
            name = ", ".join(
                f"{key}={each!r:.80}" if word is None else str(word)
                for key, each, word in zip(names, row, words, strict=True)
            )
        found.append(Case(str(name), dict(zip(names, row, strict=True))))
    return found


@contextmanager
def _own_fixtures(fixtures: dict[str, Any], number: int) -> Iterator[dict[str, Any]]:
    """The fixtures with a folder, an environment and an output that no other case has touched."""
    own = dict(fixtures)
    with pytest.MonkeyPatch.context() as patch:
        if "monkeypatch" in own:
            own["monkeypatch"] = patch
        if "capsys" in own:
            own["capsys"].readouterr()
        base = own["folder"].path if "folder" in own else own.get("tmp_path")
        if base is not None:
            # A test with cases inside of cases has folders inside of folders.
            path = base / f"case-{number}"
            path.mkdir()
            if "tmp_path" in own:
                own["tmp_path"] = path
            if "folder" in own:
                own["folder"] = own["folder"].at(path)
                patch.chdir(path)
        yield own


def _report(failures: list[tuple[str, BaseException]], count: int) -> None:
    if not failures:
        return
    first, error = failures[0]
    if len(failures) == 1:
        error.add_note(f"the only case of {count} that fails: {first}")
        raise error
    texts = [f"--- {name}\n{_told(error)}" for name, error in failures]
    pytest.fail(f"{len(failures)} of {count} cases fail\n" + "\n".join(texts), pytrace=False)


def _told(error: BaseException) -> str:
    """Where an error was raised, counted from the test, and what it says."""
    frames = traceback.extract_tb(error.__traceback__)
    inside = itertools.dropwhile(lambda frame: frame.filename == __file__, frames)
    places = [f"{frame.filename}:{frame.lineno} {frame.name}" for frame in inside]
    return "\n".join([*places[:1], *places[1:][-1:], f"{type(error).__name__}: {error}"])
