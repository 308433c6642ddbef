"""`scripts/requirements.py`: every file that CI installs has its hash, and every pin is used."""

from __future__ import annotations

import hashlib
import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

import requirements
from tests.support.cases import cases

ROOT = Path(__file__).resolve().parents[3]
ENTRY = re.compile(
    r"(?P<name>[a-z0-9-]+)==(?P<version>\S+)(?: ; (?P<marker>.+?))?"
    r"(?P<hashes>(?: \\\n    --hash=sha256:[0-9a-f]{64})+)\n"
)
each_environment = cases("name", requirements.ENVIRONMENTS)


def entries(name: str) -> dict[str, re.Match[str]]:
    text = (ROOT / "requirements" / f"{name}.txt").read_text("utf-8")
    body = "".join(line for line in text.splitlines(keepends=True) if not line.startswith("#"))
    matches = list(ENTRY.finditer(body))
    assert "".join(match[0] for match in matches) == body, "something has no pin or no hash"
    return {match["name"]: match for match in matches}


@each_environment
def test_every_package_has_the_pinned_version(name: str) -> None:
    """After a change of a version, run `make requirements`."""
    pins = requirements.pinned((ROOT / requirements.ENVIRONMENTS[name].pins).read_text("utf-8"))
    packages = entries(name)
    assert {package: match["version"] for package, match in packages.items()} == {
        package: pins[package] for package in packages
    }


@each_environment
def test_whatever_pyproject_asks_for_is_there(name: str) -> None:
    """After a change of `pyproject.toml`, run `make requirements`."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    packages = entries(name)
    for text in requirements.wanted(requirements.ENVIRONMENTS[name], project):
        requirement = Requirement(text)
        match = packages[canonicalize_name(requirement.name)]
        assert requirement.specifier.contains(match["version"], prereleases=True), text
        assert match["marker"] == (requirement.marker and str(requirement.marker)), text


def test_the_demo_installs_little() -> None:
    assert len(entries("demo")) <= 16 < len(entries("dev"))


def test_make_installs_nothing_without_a_hash() -> None:
    makefile = (ROOT / "Makefile").read_text("utf-8")
    rules = dict(re.findall(r"^\$\((\w*READY)\): .*\n((?:\t.*\n)+)", makefile, re.M))
    assert set(rules) == {"READY", "DEMO_READY", "ADAPTERS_READY", "SITE_READY", "BENCH_READY"}
    for name in set(rules) - {"BENCH_READY"}:
        installs = re.findall(r"bin/python (.+)", rules[name])
        assert re.fullmatch(r"\$\(HASHED\) requirements/[a-z]+\.txt( --no-compile)?", installs[0])
        assert [line.split()[0] for line in installs[1:]] in ([], ["$(PACKAGE)"])
    assert "HASHED := $(PIP) --no-deps --require-hashes --requirement\n" in makefile
    assert re.search(r"^PACKAGE := \$\(PIP\) --no-deps --no-build-isolation ", makefile, re.M)


@cases(
    ("filename", "usable"),
    [
        ("click-8.5.1-py3-none-any.whl", True),
        ("click-8.5.1.tar.gz", True),
        ("click-8.5.2-py3-none-any.whl", False),
        ("click-8.5.1-cp311-cp311-manylinux_2_28_x86_64.whl", True),
        ("click-8.5.1-cp314-cp314t-macosx_11_0_arm64.whl", True),
        ("click-8.5.1-cp310-cp310-manylinux_2_28_x86_64.whl", False),
        ("click-8.5.1-cp38-abi3-manylinux_2_28_x86_64.whl", True),
        ("click-8.5.1-pp311-pypy311_pp73-manylinux_2_28_x86_64.whl", False),
        ("click-8.5.1-py2-none-any.whl", False),
        ("click-8.5.1.exe", False),
    ],
)
def test_which_files_of_a_version_are_listed(filename: str, *, usable: bool) -> None:
    assert requirements.is_usable(filename, "8.5.1") is usable


@pytest.mark.slow
def test_hashes_come_from_the_configured_index(tmp_path: Path) -> None:
    """In a process of its own: pip's inner modules leave files open."""
    digests = [hashlib.sha256(text).hexdigest() for text in (b"wheel", b"source", b"other")]
    names = ("thing-1.0-py3-none-any.whl", "thing-1.0.tar.gz", "thing-1.1-py3-none-any.whl")
    links = "".join(
        f'<a href="../files/{name}#sha256={digest}">{name}</a>\n'
        for name, digest in zip(names, digests, strict=True)
    )
    page = tmp_path / "simple" / "thing" / "index.html"
    page.parent.mkdir(parents=True)
    page.write_text(f"<!DOCTYPE html><html><body>{links}</body></html>", "utf-8")
    configured = {name: value for name, value in os.environ.items() if not name.startswith("PIP_")}
    configured |= {
        "PIP_CONFIG_FILE": os.devnull,
        "PIP_INDEX_URL": page.parents[1].as_uri(),
        "PYTHONPATH": str(ROOT / "scripts"),
    }
    code = "import requirements; print(*requirements.Index().hashes('thing', '{}'))"
    listed, refused = (
        subprocess.run(
            [sys.executable, "-c", code.format(version)],
            env=configured, capture_output=True, encoding="utf-8", check=False,
        )
        for version in ("1.0", "2.0")
    )  # fmt: skip
    assert listed.stdout.split() == sorted(digests[:2]), listed.stderr
    assert "no index offers a file of thing 2.0 with its hash" in refused.stderr


def test_a_package_for_some_machines_keeps_its_marker() -> None:
    texts = ["click>=8", "pgserver; python_version < '3.13'"]
    text = requirements.render(
        "x",
        "pins.txt",
        {"pgserver": "0.1", "click": "8"},
        {"click": ["a"], "pgserver": ["b", "c"]},
        requirements.markers_of(texts),
    )
    assert text.splitlines()[2:] == [
        "click==8 \\",
        "    --hash=sha256:a",
        'pgserver==0.1 ; python_version < "3.13" \\',
        "    --hash=sha256:b \\",
        "    --hash=sha256:c",
    ]
