"""The wheel works where nothing else is: in an empty environment, run from an empty folder."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import venv
import zipfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "src" / "ragauge"
MOST_PACKAGES = 10  # ragauge, its five dependencies, and the four that these bring
MOST_MEGABYTES = 110
# What an environment holds before anything is installed.
TOOLS = ("pip", "setuptools", "pkg_resources", "_distutils_hack", "distutils-precedence")

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("wheel")]


@dataclass(frozen=True)
class Environment:
    """An environment with the wheel in it, and an empty folder to work in."""

    folder: Path
    work: Path

    @property
    def programs(self) -> Path:
        return self.folder / ("Scripts" if os.name == "nt" else "bin")

    @property
    def site_packages(self) -> Path:
        (found,) = self.folder.glob("[Ll]ib/**/site-packages")
        return found

    def run(self, program: str, *arguments: str) -> subprocess.CompletedProcess[str]:
        return run([str(self.programs / program), *arguments], self.work)


def run(command: Sequence[str], folder: Path) -> subprocess.CompletedProcess[str]:
    """Run a command that sees nothing of the source tree."""
    clean = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    return subprocess.run(
        command,
        cwd=folder,
        env={**clean, "PIP_DISABLE_PIP_VERSION_CHECK": "1", "PYTHONUTF8": "1"},
        capture_output=True,
        encoding="utf-8",
        timeout=300,
        check=False,
    )


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Built with the installed hatchling: no index is asked, so a failure is always ours."""
    folder = tmp_path_factory.mktemp("wheel")
    built = run(
        [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", str(folder), "."],
        ROOT,
    )
    assert built.returncode == 0, built.stdout + built.stderr
    (found,) = folder.glob("*.whl")
    return found


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Environment:
    folder = tmp_path_factory.mktemp("installed")
    environment = Environment(folder / "venv", folder / "empty")
    environment.work.mkdir()
    venv.create(environment.folder, with_pip=True)
    pip = ("-m", "pip", "--quiet", "--retries", "1", "--timeout", "15", "install")
    # Any version of one dependency: whether it is found says if there is an index at all.
    probe = environment.run("python", *pip, "--dry-run", "--no-deps", "click")
    if probe.returncode != 0:
        pytest.skip(f"no package index can be reached: {probe.stderr.strip().splitlines()[-1]}")
    done = environment.run(
        "python", *pip, "--constraint", str(ROOT / "constraints.txt"), str(wheel)
    )
    assert done.returncode == 0, done.stderr
    return environment


def test_the_wheel_holds_the_package_with_its_data_and_nothing_else(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
    inside = {name for name in names if not name.partition("/")[0].endswith(".dist-info")}
    expected = {
        path.relative_to(PACKAGE.parent).as_posix()
        for path in PACKAGE.rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    assert inside == expected
    assert "ragauge/py.typed" in names
    assert {f"ragauge/profiles/{name}.toml" for name in ("all", "ship", "smoke")} <= names
    assert any(name.endswith("/licenses/LICENSE") for name in names)


def test_the_api_can_be_imported(installed: Environment) -> None:
    code = "import ragauge; from ragauge import score; print(ragauge.__file__)"
    done = installed.run("python", "-c", code)
    assert done.returncode == 0, done.stderr
    assert Path(done.stdout.strip()).is_relative_to(installed.site_packages)


def test_the_command_helps(installed: Environment) -> None:
    done = installed.run("ragauge", "--help")
    assert done.returncode == 0, done.stderr
    assert "score" in done.stdout


def test_the_demo_runs_from_an_empty_folder(installed: Environment) -> None:
    done = installed.run("ragauge", "demo")
    assert done.returncode == 0, done.stderr
    assert "FAIL" in done.stdout  # the sample has one gate that fails
    assert not list(installed.work.iterdir()), "the demo left files behind"


def test_few_packages_come_along(installed: Environment) -> None:
    done = installed.run("python", "-m", "pip", "list", "--format", "json")
    assert done.returncode == 0, done.stderr
    names = sorted({each["name"].lower() for each in json.loads(done.stdout)} - set(TOOLS))
    assert "ragauge" in names
    assert len(names) <= MOST_PACKAGES, names


def test_the_installation_stays_small(installed: Environment) -> None:
    size = sum(
        path.stat().st_size
        for entry in installed.site_packages.iterdir()
        if not entry.name.startswith(TOOLS)
        for path in (entry.rglob("*") if entry.is_dir() else [entry])
        if path.is_file()
    )
    megabytes = size / 1e6
    assert megabytes <= MOST_MEGABYTES, f"{megabytes:.0f} MB are installed"
