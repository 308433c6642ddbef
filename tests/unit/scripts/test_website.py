"""How pages of the project become pages of the site."""

from __future__ import annotations

from pathlib import Path

import pytest

import reference
import website
from ragauge import registry

ROOT = Path(__file__).resolve().parents[3]
FRONT = """# Title

A sentence with a [link](how-to/a.md) that is in no chapter.

## How to

- [The first](how-to/a.md): words
- [The second](how-to/b.md#part)

## Elsewhere

No page here: [the licence](../LICENSE).

## Project

- [Design](../DESIGN.md), [changes](../CHANGELOG.md)
"""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    texts = {
        "docs/README.md": FRONT,
        "docs/how-to/a.md": "# A\n\n[b](b.md#part), [c](../../DESIGN.md), [file](../../LICENSE)\n",
        "docs/how-to/b.md": "# B\n\n## Part\n",
        "DESIGN.md": "# Design\n\n[a](docs/how-to/a.md)\n",
        "CHANGELOG.md": "# Changelog\n\n## Unreleased\n\n[There](changes/).\n\n<!-- releases -->\n",
        "LICENSE": "",
        "changes/one.added.md": "One is there.\n",
    }
    for name, text in texts.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, "utf-8")
    return tmp_path


def test_sections_with_pages_are_chapters_in_the_order_of_the_front_page(project: Path) -> None:
    made = website.sources(project)
    assert list(made) == [
        *("index", "how-to/a", "how-to/b", "project/design", "project/changelog"),
        *("how-to/index", "project/index"),
    ]
    assert made["index"].endswith(":hidden:\n\nhow-to/index\nproject/index\n```\n")
    tree = made["how-to/index"].partition(":hidden:")[2].split("\n")
    assert tree[2:4] == ["The first </how-to/a>", "The second </how-to/b>"]
    assert made["project/index"].startswith("# Project\n\n- [Design](design.md), ")


def test_links_go_between_the_places_of_the_site_and_files_become_words(project: Path) -> None:
    made = website.sources(project)
    assert made["how-to/a"] == "# A\n\n[b](b.md#part), [c](../project/design.md), file\n"
    assert "[a](../how-to/a.md)" in made["project/design"]
    assert "[The first](how-to/a.md): words" in made["index"]


def test_a_file_of_the_docs_stays_a_link_and_is_taken_along(project: Path) -> None:
    (project / "docs" / "how-to" / "x").mkdir()
    (project / "docs" / "how-to" / "x" / "s.json").write_text("{}", "utf-8")
    (project / "DESIGN.md").write_text("# D\n\n[s](docs/how-to/x/s.json), [l](LICENSE)\n", "utf-8")
    assert website.sources(project)["project/design"] == "# D\n\n[s](../how-to/x/s.json), l\n"
    assert website.attached(project) == ["docs/how-to/x/s.json"]


def test_the_changelog_shows_what_is_not_released_yet(project: Path) -> None:
    text = website.sources(project)["project/changelog"]
    assert text == (
        "# Changelog\n\n## Unreleased\n\n### Added\n\n- One is there.\n\n<!-- releases -->\n"
    )
    (project / "changes" / "one.added.md").unlink()
    text = website.sources(project)["project/changelog"]
    assert text == "# Changelog\n\n## Unreleased\n\nNothing.\n\n<!-- releases -->\n"


def test_blocks_keep_their_text_and_files_get_a_caption(project: Path) -> None:
    page = project / "docs" / "how-to" / "b.md"
    page.write_text(
        '```json title=a.json\n[x](y.md)\n```\n```text output-of="ls -l"\nz\n```\n```\n(w)\n```\n'
    )
    assert website.sources(project)["how-to/b"] == (
        "```{code-block} json\n:caption: a.json\n\n[x](y.md)\n```\n```text\nz\n```\n```\n(w)\n```\n"
    )


def test_lower_headings_of_a_chapter_follow_its_title(project: Path) -> None:
    front = project / "docs" / "README.md"
    front.write_text(FRONT.replace("- [The second]", "\n### More\n\n- [The second]"), "utf-8")
    made = website.sources(project)
    assert "\n### More\n" in made["index"]
    assert "\n## More\n" in made["how-to/index"]


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("docs/how-to/c.md", "# C\n", "docs/how-to/c.md: docs/README.md does not link to it"),
        ("docs/how-to/b.md", "[x](gone.md)\n", "docs/how-to/b.md: the link to gone.md leads to no"),
        ("docs/how-to/b.md", "[x](../../gone)\n", "the link to ../../gone leads to no page"),
        ("docs/README.md", "## C\n\n[x](c.md)\n", "docs/README.md: docs/c.md is not there"),
    ],
)
def test_pages_that_nobody_reaches_and_links_that_do_not_arrive_are_named(
    project: Path, name: str, text: str, said: str
) -> None:
    (project / name).write_text(text, "utf-8")
    with pytest.raises(website.SiteError) as caught:
        website.sources(project)
    assert said in str(caught.value)


def test_a_folder_that_is_no_site_is_not_replaced(project: Path) -> None:
    target = project / "precious"
    target.mkdir()
    (target / "file").write_text("kept", "utf-8")
    with pytest.raises(website.SiteError, match="is no site"):
        website.build(target, project)
    assert (target / "file").read_text("utf-8") == "kept"


def test_every_page_of_this_project_is_on_the_site_with_one_title() -> None:
    made = website.sources(ROOT)
    for name, text in made.items():
        lines = text.split("\n")
        titles = [
            lines[n] for n, prose in website.plain_lines(lines) if prose and lines[n][:2] == "# "
        ]
        assert len(titles) == 1, f"{name}: {titles}"
    written = [path.relative_to(ROOT).as_posix() for path in ROOT.glob("docs/**/*.md")]
    assert {website.site_name(path) for path in written} <= set(made)
    assert {f"reference/{name.removesuffix('.md')}" for name in reference.PAGES} <= set(made)


def test_decisions_are_listed_by_their_number() -> None:
    pages = website.listed(website.chapters((ROOT / website.FRONT).read_text("utf-8")), ROOT)
    decisions = [path for path in pages if path.startswith("docs/decisions/")]
    assert decisions == sorted(decisions)
    assert decisions[0].endswith("/0001-msgspec-structs.md")


def test_the_glossary_is_sorted_and_has_every_family_of_metrics() -> None:
    glossary = (ROOT / "docs" / "glossary.md").read_text("utf-8")
    entries = [line.removeprefix("## ") for line in glossary.split("\n") if line[:3] == "## "]
    assert {"Effective item", "Population", "Slot"} <= set(entries)
    assert sorted(set(entries), key=sort_key) == entries
    families = {metric.partition(".")[0] for metric in registry.metrics()}
    assert {each for each in families if f"`{each}.*`" not in glossary} == set()


def sort_key(word: str) -> str:
    """Greek letters stand where their names do."""
    return word.replace("Δ", "delta ").replace("λ", "lambda").lower()
