"""Builds the documentation site from the pages of the project, with Sphinx.

Run as `python scripts/website.py -o build/site` with the packages of requirements/site.txt, or as
`make site`.
docs/README.md is the front page and the only list of pages: its sections are the chapters, its
links their pages, in that order. Pages are copied to a temporary folder, so that they can stay as a
forge shows them: plain Markdown, plain relative links.
"""

from __future__ import annotations

import argparse
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from changelog import ChangelogError, read_fragments, release_section

ROOT = Path(__file__).resolve().parents[1]
FRONT = "docs/README.md"
CHANGELOG = "CHANGELOG.md"
UNRELEASED = re.compile(r"(?<=\n## Unreleased\n).*?(?=<!-- releases -->)", re.DOTALL)
FENCE = re.compile(r"```(?P<language>[a-z]*)(?P<options>.*)")
LINK = re.compile(r"(?P<text>\[[^\]]*)?\]\((?P<target>[^)\s]+)\)")
OUTSIDE = re.compile(r"[a-z]+:")


class SiteError(Exception):
    """What whoever writes a page can mend; one problem a line."""


@dataclass(frozen=True)
class Chapter:
    """A section of the front page, and the pages that it links to."""

    title: str
    lines: list[str]
    pages: dict[str, str]  # from the path of a page to the words that link to it

    @property
    def name(self) -> str:
        """The page of the chapter itself."""
        return f"{self.title.lower().replace(' ', '-')}/index"


def site_name(path: str) -> str:
    """Where a page of the project stands on the site, without the suffix."""
    name = path.removesuffix(".md")
    if path == FRONT:
        return "index"
    if name.startswith("docs/"):
        return name.removeprefix("docs/")
    name = "overview" if path == "README.md" else name.removesuffix("/README").lower()
    return f"project/{name}"


def plain_lines(lines: Sequence[str]) -> Iterator[tuple[int, bool]]:
    """The number of each line, and whether it is prose: neither in a block nor its fence."""
    inside = False
    for number, line in enumerate(lines):
        fence = FENCE.fullmatch(line) is not None
        yield number, not inside and not fence
        inside ^= fence


def chapters(text: str) -> list[Chapter]:
    """The chapters of the front page; a section without links to pages is none."""
    found: list[Chapter] = []
    lines = text.split("\n")
    for number, prose in plain_lines(lines):
        line = lines[number]
        if prose and line.startswith("## "):
            found.append(Chapter(line.removeprefix("## "), [], {}))
        elif found:
            found[-1].lines.append(line)
            for match in LINK.finditer(line) if prose else ():
                path = resolved(FRONT, match["target"])
                if path.endswith(".md") and match["text"] is not None:
                    found[-1].pages.setdefault(path, match["text"].removeprefix("["))
    return [each for each in found if each.pages]


def resolved(page: str, target: str) -> str:
    """The path that a link of a page leads to, from the root of the project."""
    name = target.partition("#")[0]
    return os.path.normpath(PurePosixPath(page).parent / name).replace("\\", "/") if name else page


def listed(found: Iterable[Chapter], root: Path) -> list[str]:
    """Every page of the site in the order of the front page; no page of docs/ may be left over."""
    pages = [FRONT, *dict.fromkeys(path for chapter in found for path in chapter.pages)]
    written = sorted(each.relative_to(root).as_posix() for each in root.glob("docs/**/*.md"))
    problems = [f"{path}: {FRONT} does not link to it" for path in written if path not in pages]
    problems += [f"{FRONT}: {path} is not there" for path in pages if not (root / path).is_file()]
    if problems:
        raise SiteError("\n".join(problems))
    return pages


def staged(path: str, text: str, pages: Iterable[str], root: Path, *, at: str = "") -> str:
    """A page as Sphinx gets it: links between the places of the site, file names as captions."""
    known = {each: site_name(each) for each in pages}
    here = PurePosixPath(at or site_name(path)).parent
    lines = text.split("\n")
    problems = []

    def link(match: re.Match[str]) -> str:
        target, words = match["target"], match["text"]
        if OUTSIDE.match(target) or target.startswith("#"):
            return match[0]
        reached, fragment = resolved(path, target), target.partition("#")[2]
        if reached in known:
            relative = os.path.relpath(f"{known[reached]}.md", here).replace("\\", "/")
            return f"{words or ''}]({relative}{'#' if fragment else ''}{fragment})"
        if reached.endswith(".md") or not (root / reached).exists() or words is None:
            problems.append(f"{path}: the link to {target} leads to no page of the site")
            return match[0]
        if reached.startswith("docs/"):
            relative = os.path.relpath(reached.removeprefix("docs/"), here).replace("\\", "/")
            return f"{words}]({relative})"
        return words.removeprefix("[")  # a file of the project that is not published

    made = []
    for number, prose in plain_lines(lines):
        line = lines[number]
        fence = FENCE.fullmatch(line)
        if prose:
            made.append(LINK.sub(link, line))
        elif fence and fence["language"]:
            made += _fence(fence)
        else:
            made.append(line)
    if problems:
        raise SiteError("\n".join(problems))
    return "\n".join(made)


def _fence(opening: re.Match[str]) -> list[str]:
    options = dict(each.partition("=")[::2] for each in shlex.split(opening["options"]))
    if "title" in options:
        return [f"```{{code-block}} {opening['language']}", f":caption: {options['title']}", ""]
    return [f"```{opening['language']}"]


def toctree(entries: Iterable[str]) -> list[str]:
    """Where pages stand in the navigation; it shows nothing by itself."""
    return ["", "```{toctree}", ":hidden:", "", *entries, "```", ""]


def with_fragments(text: str, folder: Path) -> str:
    """The changelog with what is not released yet, which stands in files of its own."""
    fragments = read_fragments(folder)
    section = release_section("-", "-", fragments).partition("\n")[2]
    said = section if fragments else "\nNothing.\n"
    return UNRELEASED.sub(lambda _: f"{said}\n", text)


def sources(root: Path = ROOT) -> dict[str, str]:
    """The text of every page by its name on the site, as Sphinx gets it."""
    front = (root / FRONT).read_text("utf-8")
    found = chapters(front)
    pages = listed(found, root)
    made = {}
    problems = []
    for path in pages:
        text = (root / path).read_text("utf-8")
        if path == CHANGELOG:
            text = with_fragments(text, root / "changes")
        try:
            made[site_name(path)] = staged(path, text, pages, root)
        except SiteError as error:
            problems.append(str(error))
    if problems:
        raise SiteError("\n".join(problems))
    made["index"] += "\n".join(toctree(each.name for each in found))
    for chapter in found:
        entries = [f"{words} </{site_name(path)}>" for path, words in chapter.pages.items()]
        lines = [
            line.removeprefix("#") if line.startswith("###") else line for line in chapter.lines
        ]
        body = staged(FRONT, "\n".join(lines), pages, root, at=chapter.name)
        made[chapter.name] = "\n".join([f"# {chapter.title}", body, *toctree(entries)])
    return made


def attached(root: Path = ROOT) -> list[str]:
    """The files of docs/ that pages link to and that are no pages, such as schemas."""
    front = (root / FRONT).read_text("utf-8")
    found = set()
    for path in listed(chapters(front), root):
        lines = (root / path).read_text("utf-8").split("\n")
        for match in (
            m for n, prose in plain_lines(lines) if prose for m in LINK.finditer(lines[n])
        ):
            reached = "" if OUTSIDE.match(match["target"]) else resolved(path, match["target"])
            if reached.startswith("docs/") and not reached.endswith(".md"):
                found.add(reached)
    return sorted(found)


def build(target: Path, root: Path = ROOT) -> int:
    """Make the site in a folder that replaces the target, and say how many pages it has."""
    if target.exists() and any(target.iterdir()) and not (target / "searchindex.js").exists():
        raise SiteError(f"{target} is there and is no site: nothing was built")
    made = sources(root)
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".site-", dir=target.parent) as name:
        work = Path(name).resolve()
        for page, text in made.items():
            path = work / "pages" / f"{page}.md"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, "utf-8", newline="\n")
        for file in attached(root):
            path = work / "pages" / file.removeprefix("docs/")
            path.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(root / file, path)
        run_sphinx(work, root)
        shutil.rmtree(target, ignore_errors=True)
        (work / "html").rename(target)
    return len(made)


def run_sphinx(work: Path, root: Path) -> None:
    """Turn `work/pages` into `work/html`; whatever Sphinx complains of is an error."""
    command: list[str | Path] = [
        *(sys.executable, "-m", "sphinx", "-b", "html", "-q", "-E", "-j", "auto"),
        *("-W", "--keep-going", "-n"),
        *("-c", root / "docs", "-d", work / "trees", work / "pages", work / "html"),
    ]
    done = subprocess.run(command, cwd=root, capture_output=True, encoding="utf-8", check=False)
    if done.returncode:
        said = (done.stderr + done.stdout).replace(f"{work / 'pages'}{os.sep}", "")
        raise SiteError(said.strip())
    for left_over in (".buildinfo", "objects.inv"):
        (work / "html" / left_over).unlink(missing_ok=True)


def main(arguments: Sequence[str] | None = None) -> int:
    """Build the site, and say where it is."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("-o", "--output", type=Path, default=ROOT / "build" / "site")
    options = parser.parse_args(arguments)
    try:
        count = build(options.output)
    except (SiteError, ChangelogError) as error:
        for line in str(error).splitlines():
            print(f"error: {line}", file=sys.stderr)
        return 1
    print(f"{count} pages: open {os.path.relpath(options.output / 'index.html')}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
