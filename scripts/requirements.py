"""Writes `requirements/*.txt`: what each environment installs, with the hashes of every file.

Run as `make requirements` after a change of `pyproject.toml` or of a version in
`constraints*.txt` or `docs/constraints.txt`; `python scripts/requirements.py demo` writes one file
only. pip says which packages an environment needs, and every index that pip is configured for says
which files there are of each: all wheels for CPython 3.11 and newer, and the source. A file that
appears later under the same version is then refused, as is one that was exchanged.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from packaging.requirements import Requirement
from packaging.utils import (
    InvalidSdistFilename,
    InvalidWheelFilename,
    canonicalize_name,
    parse_sdist_filename,
    parse_wheel_filename,
)
from packaging.version import InvalidVersion, Version

ROOT = Path(__file__).resolve().parents[1]
FOLDER = ROOT / "requirements"
OLDEST_MINOR = 11  # of Python 3, as `requires-python` says


@dataclass(frozen=True)
class Environment:
    """What one of make's environments holds: extras of the package, other packages, the pins."""

    pins: str
    package: bool = True  # with what the package and its build need
    extras: tuple[str, ...] = ()
    others: tuple[str, ...] = ()


ENVIRONMENTS = {
    "demo": Environment("constraints.txt"),
    "dev": Environment("constraints.txt", extras=("dev",)),
    "adapters": Environment(
        "constraints-adapters.txt",
        extras=("adapters", "corpus", "serve"),
        others=(
            "pytest",
            "pytest-randomly",
            "pytest-xdist",
            "hypothesis",
            # Clients of the live monitor.
            "openinference-instrumentation-langchain",
            "openinference-instrumentation-llama-index",
            "opentelemetry-exporter-otlp-proto-http",
        ),
    ),
    "site": Environment(
        "docs/constraints.txt", package=False, others=("sphinx", "myst-parser", "furo")
    ),
}


class RequirementsError(Exception):
    """What whoever changes a version can fix."""


def wanted(environment: Environment, project: Mapping[str, Any]) -> list[str]:
    """The requirements that an environment begins with, as `pyproject.toml` says them."""
    texts = list(environment.others)
    if environment.package:
        texts += project["project"]["dependencies"] + project["build-system"]["requires"]
    for extra in environment.extras:
        texts += project["project"]["optional-dependencies"][extra]
    return texts


def resolve(texts: Sequence[str], pins: Path) -> dict[str, str]:
    """All packages that these need, by pip: version by name."""
    command = [
        sys.executable, "-m", "pip", "install", "--quiet", "--dry-run", "--ignore-installed",
        "--only-binary", ":all:", "--constraint", str(pins), "--report", "-", *texts,
    ]  # fmt: skip
    done = subprocess.run(command, stdout=subprocess.PIPE, encoding="utf-8", check=False)
    if done.returncode:
        raise RequirementsError(f"pip could not resolve what {pins.name} pins")
    metadata = [entry["metadata"] for entry in json.loads(done.stdout)["install"]]
    return {canonicalize_name(each["name"]): each["version"] for each in metadata}


def pinned(text: str) -> dict[str, str]:
    """The version by name, of lines such as `click==8.5.1`."""
    lines = [line.partition("#")[0].strip() for line in text.splitlines()]
    requirements = [Requirement(line) for line in lines if line]
    return {
        canonicalize_name(each.name): str(each.specifier).removeprefix("==")
        for each in requirements
    }


class Index:
    """The files that the configured indexes offer, asked as pip asks them.

    pip has no command that lists files with hashes, so this uses its inner modules: they know
    the configured indexes, certificates and credentials, and both forms of an index page.
    """

    def __init__(self) -> None:
        from pip._internal.commands import create_command

        command: Any = create_command("install")
        options, _ = command.parse_args([])
        session = command._build_session(options)
        self._collector = command._build_package_finder(options, session)._link_collector

    def hashes(self, name: str, version: str) -> list[str]:
        """The sha256 of every file of a version that some CPython of ours can install."""
        digests = {
            link.hash
            for link in self._links(name)
            if link.hash_name == "sha256" and is_usable(link.filename, version)
        }
        if not digests:
            raise RequirementsError(f"no index offers a file of {name} {version} with its hash")
        return sorted(digests)

    def _links(self, name: str) -> Iterator[Any]:
        from pip._internal.index.collector import parse_links
        from pip._internal.models.link import Link

        for url in self._collector.search_scope.get_index_urls_locations(name):
            page = self._collector.fetch_response(Link(url))
            if page is not None:
                yield from parse_links(page)


def is_usable(filename: str, version: str) -> bool:
    """Whether a file is of that version, and the source or a wheel for CPython 3.11 or newer."""
    try:
        if not filename.endswith(".whl"):
            return parse_sdist_filename(filename)[1] == Version(version)
        _, found, _, tags = parse_wheel_filename(filename)
    except (InvalidSdistFilename, InvalidWheelFilename, InvalidVersion):
        return False
    return found == Version(version) and any(_runs(tag.interpreter, tag.abi) for tag in tags)


def _runs(interpreter: str, abi: str) -> bool:
    if interpreter.startswith("cp3"):
        return abi in ("abi3", "none") or int(interpreter[3:] or 0) >= OLDEST_MINOR
    return interpreter.startswith("py3")


def render(
    name: str,
    pins: str,
    versions: Mapping[str, str],
    hashes: Mapping[str, Sequence[str]],
    markers: Mapping[str, str],
) -> str:
    """The file: a package a line, in the order of names, with its hashes below it."""
    lines = [
        f"# What make installs for `{name}`, with hashes. Made by `make requirements` from",
        f"# {pins}; change a version there, not here.",
    ]
    for package, version in sorted(versions.items()):
        marker = f" ; {markers[package]}" if package in markers else ""
        entry = [f"{package}=={version}{marker}"]
        entry += [f"    --hash=sha256:{digest}" for digest in hashes[package]]
        lines.append(" \\\n".join(entry))
    return "\n".join(lines) + "\n"


def markers_of(texts: Sequence[str]) -> dict[str, str]:
    """The marker of each package that is only wanted on some machines."""
    requirements = [Requirement(text) for text in texts]
    always = {canonicalize_name(each.name) for each in requirements if each.marker is None}
    return {
        canonicalize_name(each.name): str(each.marker)
        for each in requirements
        if each.marker is not None and canonicalize_name(each.name) not in always
    }


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", choices=[[], *ENVIRONMENTS], metavar="NAME")
    names = parser.parse_args(arguments).names or list(ENVIRONMENTS)
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    index = Index()
    try:
        for name in names:
            environment = ENVIRONMENTS[name]
            pins = ROOT / environment.pins
            texts = wanted(environment, project)
            versions = resolve(texts, pins)
            loose = sorted(versions.keys() - pinned(pins.read_text("utf-8")).keys())
            if loose:
                raise RequirementsError(f"{environment.pins} has no version of {', '.join(loose)}")
            with ThreadPoolExecutor(8) as threads:
                digests = threads.map(index.hashes, versions.keys(), versions.values())
                hashes = dict(zip(versions, digests, strict=True))
            text = render(name, environment.pins, versions, hashes, markers_of(texts))
            (FOLDER / f"{name}.txt").write_text(text, "utf-8")
    except RequirementsError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
