"""Moves the fragments of `changes/` into CHANGELOG.md under the heading of a release.

Run as `python scripts/changelog.py --version 0.1.0 --date 2026-11-15`; the fragments are deleted.
`--check` only says whether every fragment is well-formed.
"""

from __future__ import annotations

import argparse
import re
import sys
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
MARKER = "<!-- releases -->"
# The order of the sections of a release. Changed numbers come first: they surprise most.
TITLES = {
    "metric": "Metrics that give other numbers",
    "added": "Added",
    "changed": "Changed",
    "fixed": "Fixed",
    "removed": "Removed",
}
NAME = re.compile(r"(?P<slug>[a-z0-9]+(?:-[a-z0-9]+)*)\.(?P<kind>[a-z]+)\.md")
VERSION = re.compile(r"\d+\.\d+\.\d+(?:(?:a|b|rc)\d+)?")
LINE_WIDTH = 100
MOST_CHARACTERS = 400


class ChangelogError(Exception):
    """What whoever writes a fragment or a release can mend; one problem a line."""


@dataclass(frozen=True)
class Fragment:
    """One change, as a user sees it."""

    path: Path
    slug: str
    kind: str
    text: str


def read_fragments(folder: Path) -> list[Fragment]:
    """All fragments in the order of the page, or an error that names every problem."""
    fragments: list[Fragment] = []
    problems: list[str] = []
    for path in sorted(folder.iterdir()):
        if path.name == "README.md" or path.name.startswith("."):
            continue
        match = NAME.fullmatch(path.name)
        if match is None or match["kind"] not in TITLES:
            problems.append(
                f"{path.name}: the name must be SLUG.KIND.md, the slug of a-z, 0-9 and hyphens, "
                f"the kind one of {', '.join(TITLES)}"
            )
            continue
        text = path.read_text(encoding="utf-8")
        problems += [f"{path.name}: {problem}" for problem in problems_of(text)]
        fragments.append(Fragment(path, match["slug"], match["kind"], " ".join(text.split())))
    if problems:
        raise ChangelogError("\n".join(problems))
    kinds = list(TITLES)
    return sorted(fragments, key=lambda each: (kinds.index(each.kind), each.slug))


def problems_of(text: str) -> list[str]:
    """What is wrong with the text of a fragment."""
    body = text.strip()
    if not body:
        return ["it is empty: write one or two sentences"]
    problems = []
    if "\n\n" in body:
        problems.append("it must be one paragraph: two changes are two files")
    if body.startswith(("#", "- ", "* ")):
        problems.append("it must begin with the sentence, without a heading or a bullet")
    if not body.endswith("."):
        problems.append("it must end with a full stop")
    if len(body) > MOST_CHARACTERS:
        problems.append(f"it has {len(body)} characters, the most is {MOST_CHARACTERS}")
    return problems


def release_section(version: str, released: str, fragments: Sequence[Fragment]) -> str:
    """The section of one release, from its heading to its last bullet."""
    blocks = [f"## {version} ({released})"]
    for kind, title in TITLES.items():
        bullets = [_bullet(each.text) for each in fragments if each.kind == kind]
        if bullets:
            blocks += [f"### {title}", "\n".join(bullets)]
    return "\n\n".join(blocks) + "\n"


def _bullet(text: str) -> str:
    return textwrap.fill(
        text,
        LINE_WIDTH,
        initial_indent="- ",
        subsequent_indent="  ",
        break_long_words=False,
        break_on_hyphens=False,
    )


def with_release(changelog: str, section: str, version: str) -> str:
    """The changelog with the section as its newest release."""
    if changelog.count(MARKER) != 1:
        raise ChangelogError(f"CHANGELOG.md must have the line `{MARKER}` once")
    if re.search(rf"^## {re.escape(version)} ", changelog, re.MULTILINE):
        raise ChangelogError(f"CHANGELOG.md has a section for {version} already")
    before, after = changelog.split(MARKER)
    older = after.strip("\n")
    return f"{before}{MARKER}\n\n{section}" + (f"\n{older}\n" if older else "")


def release(root: Path, version: str, released: str) -> int:
    """Write the release into CHANGELOG.md, delete the fragments, and say how many there were."""
    if VERSION.fullmatch(version) is None:
        raise ChangelogError(f"the version must look like 0.1.0 or 0.1.0rc1, got {version!r}")
    try:
        released = date.fromisoformat(released).isoformat()
    except ValueError:
        raise ChangelogError(f"the date must look like 2026-11-15, got {released!r}") from None
    fragments = read_fragments(root / "changes")
    if not fragments:
        raise ChangelogError("there are no fragments in changes/: nothing to release")
    page = root / "CHANGELOG.md"
    section = release_section(version, released, fragments)
    page.write_text(
        with_release(page.read_text(encoding="utf-8"), section, version),
        encoding="utf-8",
        newline="\n",
    )
    for fragment in fragments:
        fragment.path.unlink()
    return len(fragments)


def main(arguments: Sequence[str] | None = None, *, root: Path = ROOT) -> int:
    """Check or release, as the command line says."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--check", action="store_true", help="only check the fragments")
    parser.add_argument("--version", help="the version that is released, such as 0.1.0")
    parser.add_argument("--date", help="the day of the release, such as 2026-11-15")
    options = parser.parse_args(arguments)
    try:
        if options.check:
            print(f"{len(read_fragments(root / 'changes'))} fragments are well-formed")
        elif not options.version or not options.date:
            parser.error("give --version and --date, or --check")
        else:
            count = release(root, options.version, options.date)
            print(f"{count} fragments moved into CHANGELOG.md under {options.version}")
    except ChangelogError as error:
        for line in str(error).splitlines():
            print(f"error: {line}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
