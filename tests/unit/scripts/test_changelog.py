"""`scripts/changelog.py`: fragments become a section of CHANGELOG.md, or nothing is touched."""

from __future__ import annotations

from pathlib import Path

import pytest

import changelog
from tests.support.cases import cases

START = "# Changelog\n\n## Unreleased\n\nSee changes/.\n\n<!-- releases -->\n"
RELEASE = ("--version", "0.2.0", "--date", "2026-11-15")


def project(folder: Path, *, page: str = START, **fragments: str) -> Path:
    """A folder with a changelog and fragments; `some_slug__added` is `some-slug.added.md`."""
    (folder / "changes").mkdir()
    (folder / "changes" / "README.md").write_text("# How to\n", encoding="utf-8")
    (folder / "CHANGELOG.md").write_text(page, encoding="utf-8")
    for key, text in fragments.items():
        slug, _, kind = key.partition("__")
        path = folder / "changes" / f"{slug.replace('_', '-')}.{kind}.md"
        path.write_text(text, encoding="utf-8")
    return folder


def left(folder: Path) -> list[str]:
    return sorted(path.name for path in (folder / "changes").iterdir())


def test_a_release_orders_by_kind_then_by_slug_and_deletes_the_fragments(tmp_path: Path) -> None:
    root = project(
        tmp_path,
        zebra__added="Zebras are\nscored.\n",
        fixed_it__fixed="It works.\n",
        apples__added="Apples are scored.\n",
        recall__metric="`retrieval.recall` counts sets (version 1 to 2).\n",
    )
    assert changelog.main(RELEASE, root=root) == 0
    assert (root / "CHANGELOG.md").read_text(encoding="utf-8") == (
        START + "\n## 0.2.0 (2026-11-15)\n"
        "\n### Metrics that give other numbers\n"
        "\n- `retrieval.recall` counts sets (version 1 to 2).\n"
        "\n### Added\n"
        "\n- Apples are scored.\n- Zebras are scored.\n"
        "\n### Fixed\n"
        "\n- It works.\n"
    )
    assert left(root) == ["README.md"]


def test_the_newest_release_stands_first(tmp_path: Path) -> None:
    older = START + "\n## 0.1.0 (2026-10-01)\n\n### Added\n\n- The beginning.\n"
    root = project(tmp_path, page=older, more__added="There is more.\n")
    assert changelog.main(RELEASE, root=root) == 0
    assert (root / "CHANGELOG.md").read_text(encoding="utf-8") == (
        START + "\n## 0.2.0 (2026-11-15)\n\n### Added\n\n- There is more.\n"
        "\n## 0.1.0 (2026-10-01)\n\n### Added\n\n- The beginning.\n"
    )


def test_long_sentences_are_wrapped_under_their_bullet(tmp_path: Path) -> None:
    root = project(tmp_path, long__added=f"{'word ' * 30}end.\n")
    assert changelog.main(RELEASE, root=root) == 0
    bullets = (root / "CHANGELOG.md").read_text(encoding="utf-8").splitlines()[-2:]
    assert bullets[0].startswith("- word")
    assert bullets[1].startswith("  word")
    assert max(map(len, bullets)) <= changelog.LINE_WIDTH


@cases(
    ("name", "text", "said"),
    [
        ("no-kind.md", "A sentence.\n", "SLUG.KIND.md"),
        ("wrong.improved.md", "A sentence.\n", "metric, added, changed, fixed, removed"),
        ("Upper.added.md", "A sentence.\n", "SLUG.KIND.md"),
        ("notes.txt", "A sentence.\n", "SLUG.KIND.md"),
        ("empty.added.md", " \n", "it is empty"),
        ("stop.added.md", "No full stop\n", "full stop"),
        ("two.added.md", "One.\n\nTwo.\n", "one paragraph"),
        ("bullet.added.md", "- A sentence.\n", "without a heading or a bullet"),
        ("long.added.md", "x" * 400 + ".", "401 characters"),
    ],
)
def test_a_bad_fragment_is_named_and_nothing_is_written(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str, text: str, said: str
) -> None:
    root = project(tmp_path, good__added="A sentence.\n")
    (root / "changes" / name).write_text(text, encoding="utf-8")
    for arguments in (["--check"], RELEASE):
        assert changelog.main(arguments, root=root) == 1
        error = capsys.readouterr().err
        assert error.startswith(f"error: {name}: ")
        assert said in error
    assert (root / "CHANGELOG.md").read_text(encoding="utf-8") == START
    assert left(root) == sorted(["README.md", "good.added.md", name])


def test_every_bad_fragment_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    root = project(tmp_path, one__added="No stop\n", two__better="A sentence.\n")
    assert changelog.main(["--check"], root=root) == 1
    assert [line.split(":")[1] for line in capsys.readouterr().err.splitlines()] == [
        " one.added.md", " two.better.md",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--version", "1", "--date", "2026-11-15"), "the version must look like"),
        (("--version", "0.2.0", "--date", "15.11.2026"), "the date must look like"),
        (("--version", "0.1.0", "--date", "2026-11-15"), "a section for 0.1.0 already"),
    ],
)
def test_a_release_that_makes_no_sense_touches_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], arguments: tuple[str, ...], said: str
) -> None:
    page = START + "\n## 0.1.0 (2026-10-01)\n"
    root = project(tmp_path, page=page, more__added="There is more.\n")
    assert changelog.main(arguments, root=root) == 1
    assert said in capsys.readouterr().err
    assert (root / "CHANGELOG.md").read_text(encoding="utf-8") == page
    assert left(root) == ["README.md", "more.added.md"]


def test_without_fragments_there_is_no_release(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert changelog.main(RELEASE, root=project(tmp_path)) == 1
    assert "no fragments" in capsys.readouterr().err


def test_a_changelog_without_its_marker_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    root = project(tmp_path, page="# Changelog\n", more__added="There is more.\n")
    assert changelog.main(RELEASE, root=root) == 1
    assert "<!-- releases -->" in capsys.readouterr().err
    assert left(root) == ["README.md", "more.added.md"]


def test_version_and_date_belong_together(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        changelog.main(["--version", "0.2.0"])
    assert "give --version and --date" in capsys.readouterr().err


def test_the_fragments_and_the_changelog_of_this_project_are_ready() -> None:
    changelog.read_fragments(changelog.ROOT / "changes")
    page = (changelog.ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    assert page.count(changelog.MARKER) == 1
