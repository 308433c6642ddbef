"""The checks of test_layers.py find what they are for: each is run on a small made-up package."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from .source_text import Import, Module, import_cycle
from .test_layers import import_problems, is_network, layer_of, prints


def package(sources: Mapping[str, str], *, root: str = "") -> dict[str, Module]:
    """Modules by their name below `ragauge`; every folder gets its `__init__`."""
    modules = {"ragauge": Module("ragauge", root, is_package=True)}
    for local, text in sources.items():
        name = f"ragauge.{local}"
        folder = name.rpartition(".")[0]
        modules.setdefault(folder, Module(folder, "", is_package=True))
        modules[name] = Module(name, text)
    return modules


def problems(importer: str, text: str, *others: str) -> list[str]:
    modules = package({importer: text, **dict.fromkeys(others, "")})
    return import_problems(f"ragauge.{importer}", modules)


def test_an_import_that_points_up_is_told_in_a_sentence() -> None:
    assert problems("metrics.answer", "from ragauge.pipeline import score", "pipeline") == [
        "`ragauge.metrics.answer` (layer 2) imports `ragauge.pipeline` (layer 4): "
        "imports point down only"
    ]


@pytest.mark.parametrize(
    "text",
    [
        "import ragauge.pipeline",
        "from ragauge import pipeline",
        "from ragauge import pipeline as wiring",
        "from .. import pipeline",
        "from ..pipeline import score",
        "def late():\n    from ragauge import pipeline",
        "class A:\n    def late(self):\n        import ragauge.pipeline",
        "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from ragauge import pipeline",
        "try:\n    import ragauge.pipeline\nexcept ImportError:\n    pass",
    ],
)
def test_every_way_to_write_an_import_is_seen(text: str) -> None:
    assert len(problems("metrics.answer", text, "pipeline")) == 1


@pytest.mark.parametrize(
    ("importer", "text", "other"),
    [
        ("errors", "import ragauge.model.gold", "model.gold"),
        ("model.gold", "from ragauge import registry", "registry"),
        ("model.gold", "from ragauge import wording", "wording"),
        ("metrics.answer", "from ragauge.metrics import run", "metrics.run"),
        ("metrics.answer", "from . import run", "metrics.run"),
        ("metrics.answer", "from ragauge.dialects import ship", "dialects.ship"),
        ("metrics.answer", "import ragauge.document", "document"),
        ("document", "from ragauge.reports import md", "reports.md"),
        ("reports.md", "from ragauge import gates", "gates"),
        ("reports.md", "from ragauge.reports.json import REPORT", "reports.json"),
        ("rows", "from ragauge.engines import pool", "engines.pool"),
        ("engines.pool", "from ragauge.pipeline import score", "pipeline"),
        ("engines.pool", "from ragauge import score", "pipeline"),
        ("pipeline", "import ragauge.cli.main", "cli.main"),
        ("cli.score", "from ragauge.cli.demo import COMMAND", "cli.demo"),
        ("cli.main", "from ragauge.cli import score", "cli.score"),
        ("cli.score", "import ragauge.gone", "cli.main"),
    ],
)
def test_what_is_forbidden_is_found(importer: str, text: str, other: str) -> None:
    assert len(problems(importer, text, other)) == 1


@pytest.mark.parametrize(
    ("importer", "text", "other"),
    [
        ("source", "from ragauge.errors import Place", "errors"),
        ("model.metric", "from ragauge.model.batch import Batch", "model.batch"),
        ("registry", "from ragauge.model.metric import Metric", "model.metric"),
        ("reports.md", "from ragauge.document import rounded", "document"),
        ("reports.md", "from ragauge import registry", "registry"),
        ("gates", "from ragauge import registry", "registry"),
        ("rows", "from ragauge.reduce import Reducer", "reduce"),
        ("pipeline", "from ragauge.engines import pool", "engines.pool"),
        ("engines.pool", "import ragauge", "pipeline"),
        ("cli.main", "from ragauge import __version__", "pipeline"),
        ("cli.score", "from ragauge.cli.shared import opened", "cli.shared"),
        ("__main__", "from ragauge.cli.main import main", "cli.main"),
        ("errors", "import msgspec", "text"),
    ],
)
def test_what_is_allowed_is_left_alone(importer: str, text: str, other: str) -> None:
    assert problems(importer, text, other) == []


def test_the_root_imports_the_wiring_only_inside_functions() -> None:
    lazy = package({"pipeline": ""}, root="def late():\n    from ragauge import pipeline")
    eager = package({"pipeline": ""}, root="from ragauge.pipeline import score")
    assert import_problems("ragauge", lazy) == []
    assert import_problems("ragauge", eager) == [
        "`ragauge` imports `ragauge.pipeline` (layer 4): "
        "the package root imports inside functions only"
    ]


def test_a_module_of_no_layer_is_noticed() -> None:
    assert layer_of("ragauge.utils") is None
    assert layer_of("ragauge.metrics_of_ours") is None  # a folder's name is not a prefix
    assert layer_of("ragauge.metrics.answer") == 2
    assert layer_of("ragauge.metrics") == 2


def test_a_cycle_is_shown_from_end_to_end() -> None:
    modules = package(
        {
            "rows": "from ragauge.join import Ledger",
            "join": "from ragauge import labels",
            "labels": "import ragauge.rows",
        }
    )
    assert import_cycle(modules) == [
        "ragauge.join", "ragauge.labels", "ragauge.rows", "ragauge.join",
    ]  # fmt: skip


@pytest.mark.parametrize(
    "back",
    [
        "def late():\n    from ragauge import rows",
        "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from ragauge import rows",
        "import typing\nif typing.TYPE_CHECKING:\n    from ragauge import rows",
    ],
)
def test_imports_that_do_not_run_make_no_cycle(back: str) -> None:
    assert import_cycle(package({"rows": "import ragauge.join", "join": back})) is None


def test_the_else_of_type_checking_runs() -> None:
    back = "if TYPE_CHECKING:\n    pass\nelse:\n    from ragauge import rows"
    assert import_cycle(package({"rows": "import ragauge.join", "join": back})) is not None


@pytest.mark.parametrize(
    ("module", "name", "expected"),
    [
        ("socket", None, True),
        ("http.client", None, True),
        ("http", "server", True),
        ("urllib", "request", True),
        ("urllib.request", "urlopen", True),
        ("urllib.parse", "quote", False),
        ("httpsomething", None, False),
    ],
)
def test_network_modules_are_recognised(module: str, name: str | None, expected: bool) -> None:
    assert is_network(Import(module, name, 1, runs_on_import=True)) is expected


def test_print_is_found_as_a_call_only() -> None:
    text = '"""print(1)"""\npprint(1)\nprint(2)\nreports.print(3)\n'
    assert prints(Module("ragauge.join", text)) == [3]
