"""The checks of test_packages.py find what they are for: each is run on a small made-up package."""

from __future__ import annotations

import ast
from collections.abc import Mapping

import pytest

from tests.architecture.source_text import Import, Module, import_cycle
from tests.architecture.test_packages import (
    bindings,
    gerunds,
    import_problems,
    is_network,
    prints,
    shared_class_names,
    unused_parts,
)
from tests.support.cases import cases


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


def test_an_import_against_the_order_is_told_in_a_sentence() -> None:
    text = "from ragauge.scoring.score import score"
    assert problems("metrics.answer", text, "scoring.score") == [
        "`ragauge.metrics.answer` imports `ragauge.scoring.score`: ORDER says that it may not"
    ]


@cases(
    "text",
    [
        "import ragauge.scoring.score",
        "from ragauge.scoring import score",
        "from ragauge.scoring import score as wiring",
        "from ..scoring import score",
        "from ..scoring.score import score",
        "def late():\n    from ragauge.scoring import score",
        "class A:\n    def late(self):\n        import ragauge.scoring.score",
        "import typing\nif typing.TYPE_CHECKING:\n    from ragauge.scoring import score",
        "try:\n    import ragauge.scoring.score\nexcept ImportError:\n    pass",
    ],
)
def test_every_way_to_write_an_import_is_seen(text: str) -> None:
    assert len(problems("metrics.answer", text, "scoring.score")) == 1


@cases(
    ("importer", "text", "other"),
    [
        ("errors", "import ragauge.model.gold", "model.gold"),
        ("model.gold", "from ragauge import registry", "registry"),
        ("files.open", "from ragauge.spans import merged", "spans"),
        ("scoring.score", "import ragauge.cli.main", "cli.main"),
        ("scoring.score", "from ragauge import score", "scoring.other"),
        ("formats.load", "from ragauge.utils import anything", "utils"),
        ("errors", "from ragauge.nowhere import anything", "text"),
    ],
)
def test_what_is_forbidden_is_found(importer: str, text: str, other: str) -> None:
    assert len(problems(importer, text, other)) == 1


@cases(
    ("importer", "text", "other"),
    [
        ("files.open", "from ragauge.errors import Place", "errors"),
        ("metrics.metric", "from ragauge.metrics.batch import Batch", "metrics.batch"),
        ("report.scores.md", "from ragauge import registry", "registry"),
        ("scoring.score", "from ragauge.scoring.engines import local", "scoring.engines.local"),
        ("scoring.score", "import ragauge", "cli.main"),
        ("cli.main", "from ragauge import __version__", "cli.score"),
        ("__main__", "from ragauge.cli.main import main", "cli.main"),
        ("errors", "import msgspec", "text"),
    ],
)
def test_what_is_allowed_is_left_alone(importer: str, text: str, other: str) -> None:
    assert problems(importer, text, other) == []


def test_components_share_parts_and_never_import_each_other() -> None:
    modules = package({
        "metrics.answer": "from ragauge.metrics import batch, run\nMETRICS = ()",
        "metrics.run": "METRICS = ()",
        "metrics.batch": "",
        "metrics.forgotten": "METRIC = ()",
    })  # fmt: skip
    assert import_problems("ragauge.metrics.answer", modules) == [
        "`ragauge.metrics.answer` imports `ragauge.metrics.run`: "
        "components of `metrics` never import each other"
    ]
    assert unused_parts(modules) == ["ragauge.metrics.forgotten"]


def test_the_root_imports_inside_functions_only() -> None:
    lazy = package({"testing": ""}, root="def late():\n    from ragauge import testing")
    eager = package({"testing": ""}, root="from ragauge.testing import score")
    assert import_problems("ragauge", lazy) == []
    assert import_problems("ragauge", eager) == [
        "`ragauge` imports `ragauge.testing`: the package root imports inside functions only"
    ]


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


@cases(
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


def test_gerunds_are_found_at_the_end_of_a_name() -> None:
    names = ("store.laying", "corpus.chunking", "corpus.diff.reading_order", "run.bookkeeping")
    bad = gerunds(package(dict.fromkeys(names, "")))
    assert bad == ["ragauge.store.laying", "ragauge.run.bookkeeping"]


def test_public_classes_of_one_name_are_found() -> None:
    modules = package({
        "gold.lock": "class Change: ...\nclass _Line: ...",
        "store.runs": "class Change: ...\nclass _Line: ...\nclass Run: ...",
    })  # fmt: skip
    assert shared_class_names(modules) == {"Change": ["ragauge.gold.lock", "ragauge.store.runs"]}


def test_every_way_to_bind_a_name_is_counted() -> None:
    text = """
a = b, (c, *d) = e = value
f: int = 1
f += 1
for g in [h for h in x if (i := h)]:
    with g as j, k: obj.attribute[0] = 1
"""
    assert sorted(bindings(ast.walk(ast.parse(text)))) == [*"abcdeffghij"]
