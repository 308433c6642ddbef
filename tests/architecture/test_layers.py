"""Imports point down only; the table below is the one place that says who is in which layer."""

from __future__ import annotations

import ast
from collections.abc import Mapping

import pytest

from .source_text import PACKAGE, SOURCE, Import, Module, import_cycle, read_modules, target

# A name stands for that module of ragauge; `name.*` for the folder and everything below it.
LAYERS: tuple[tuple[str, ...], ...] = (
    # 0: leaves
    (
        "bm25", "cachefolder", "canontext", "codes", "commits", "distances", "embeddingcodes",
        "errors", "fields", "framing", "greek", "holding", "htmlsource", "ids", "jsontext",
        "opening", "pacing", "pausing", "pdfblocks", "pdflayout", "pdftables", "redacting",
        "repopaths", "resemblance", "rstlines", "runsets", "sheetfiles", "sidework", "source",
        "spans", "stats.*", "tabular", "targetcodes", "testcases", "text", "trec", "treclines",
        "trecmatch", "trecwords", "trimming", "webclient", "wordpiece", "workflowcommands",
        "writing", "yamlitems", "yamltext",
    ),
    # 1: frozen nouns, how they are worded, and the finder of components
    (
        "asking", "contrasting", "markdown", "migrating", "model.*", "page.*", "registry",
        "rulings", "screens", "sheets", "sidebyside", "wording",
    ),
    # 2: components, and the document that reports share
    (
        "comparisons.*", "dialects.*", "document", "embedders.*", "metrics.*", "parsers.*",
        "reports.*", "stores.*",
    ),
    # 3: verbs, and folders of data
    (
        "adapting", "addressing", "aggregate", "agreement", "answering", "beir", "byquestion",
        "calibrating", "causes", "changes", "choosing", "chunklist", "citefirst", "closeup",
        "comparing", "config", "contrast", "corpus.*", "decoding", "demands", "demo.*", "detail",
        "diagnosis.*", "drafting", "drops", "embedding", "entries", "expecting", "falling",
        "findings", "following", "freezing", "fullrows", "gates", "gathering", "goldentries",
        "goldreading", "goldrewriting", "goldrows", "goldstats", "goldtable", "highlighting",
        "hitreading", "importing", "jobs", "join", "keeping", "knowing", "knowntexts", "labels",
        "ladder", "laying", "leads", "ledger", "lexical", "linting.*", "loading", "locating",
        "lockfile", "looking", "nearest", "negatives", "oneplace", "packing", "passages", "pieces",
        "pinning", "placedrows", "placing", "probing", "profiles.*", "quoting", "ranking",
        "reaching", "reading", "reciting", "recognising", "redirecting", "reduce", "refining",
        "remeasuring", "reshaping", "results", "rewriting", "rows", "rungnotes", "runlines",
        "runsettings", "sameness", "schemas.*", "scoredtraces", "scoring", "searchbody",
        "searchindex", "searchreply", "searchserver", "secondopinion", "selftest", "settling",
        "shadowtexts", "shapes", "showing", "sizing", "slicing", "slots", "snapshots", "standins",
        "summary", "timeline", "tracerewriting", "trecgold", "unpacking", "vectorcache", "worst",
    ),
    # 4: ways to run, and the wiring
    (
        "archive", "aside", "asserting", "authoring", "building", "completing", "continuing",
        "curating", "diagnosing", "drilling", "editing.*", "engines.*", "exporting", "grounds",
        "inputs", "measuredinput", "pipeline", "probed", "reloading", "relocating", "runner",
        "running", "shadowing", "slotlabels", "targets.*", "validating", "versus",
    ),
    # 5: faces
    (
        "__main__", "cli.*", "pytest_plugin",
    ),
)  # fmt: skip
ROOT_LAYER = 5  # `ragauge` itself: the face for Python, which imports the wiring when it is used
COMPONENTS = ("comparisons", "dialects", "embedders", "metrics", "parsers", "reports", "stores")
SHARED_BY_REPORTS = ("document",)
SHARED_BY_COMMANDS = ("cli.folders", "cli.main", "cli.outputs", "cli.shared", "cli.storage")
MOST_LINES = 400
NETWORK = (
    "aiohttp", "ftplib", "http", "httpx", "requests", "smtplib", "socket", "socketserver", "ssl",
    "urllib.request", "urllib3", "xmlrpc",
)  # fmt: skip

# The form of `gold edit` listens, on this machine only; it connects nowhere, as a test of it shows.
LISTENS = {"ragauge.editing.server": "http.server"}
# These connect, to the address that the user names and to no other, when the user names one.
CONNECTS = ("webclient",)

MODULES = read_modules()
every_module = pytest.mark.parametrize("name", sorted(MODULES))


def local_name(module: str) -> str:
    """`metrics.answer` for `ragauge.metrics.answer`."""
    return module.removeprefix(PACKAGE).removeprefix(".")


def layer_of(module: str) -> int | None:
    local = local_name(module)
    if not local:
        return ROOT_LAYER
    for layer, entries in enumerate(LAYERS):
        for entry in entries:
            folder = entry.removesuffix(".*")
            if local == folder or (entry != folder and local.startswith(f"{folder}.")):
                return layer
    return None


def import_problems(name: str, modules: Mapping[str, Module]) -> list[str]:
    """What is wrong with the imports of one module, each in a sentence."""
    problems = []
    for found in modules[name].imports:
        reached = target(found, modules)
        if reached is None:
            continue
        if reached not in modules:
            problems.append(f"`{name}` imports `{reached}`, which does not exist")
            continue
        reason = _root_reason(found, name) if reached == PACKAGE else _reason(name, reached, found)
        if reason is not None:
            problems.append(f"{_layered(name)} imports {_layered(reached)}: {reason}")
    return list(dict.fromkeys(problems))


def _layered(name: str) -> str:
    return f"`{name}`" if name == PACKAGE else f"`{name}` (layer {layer_of(name)})"


def _root_reason(found: Import, name: str) -> str | None:
    """The root may be asked for what it owns (`__version__`), not for the API that it forwards."""
    if found.name is None or found.name.startswith("__") or name == PACKAGE:
        return None
    return f"take `{found.name}` from the module that owns it, not through the package root"


def _reason(importer: str, imported: str, found: Import) -> str | None:
    if importer == PACKAGE:
        lazy = not found.runs_on_import
        return None if lazy else "the package root imports inside functions only"
    here, there = layer_of(importer), layer_of(imported)
    if here is None or there is None:
        return None  # test_every_module_is_in_a_layer speaks of it
    if there > here:
        return "imports point down only"
    return _same_layer_reason(local_name(importer), local_name(imported), here, there)


def _same_layer_reason(importer: str, imported: str, here: int, there: int) -> str | None:
    """Where a layer has rules of its own; elsewhere neighbours may import each other."""
    folder, neighbour = importer.partition(".")[0], imported.partition(".")[0]
    if here != there:
        return None
    if here == 1 and folder == "model" and neighbour != "model":
        return f"the model knows nothing of `{imported}`"
    if here == 2 and folder == neighbour and folder in COMPONENTS:
        return f"components of `{folder}` never import their siblings"
    if here == 2 and folder in ("reports", "comparisons") and imported in SHARED_BY_REPORTS:
        return None
    if here == 2:
        return "kinds of component never import each other"
    if here == 4 and folder == "targets":
        return "a target answers questions and knows nothing of its siblings and of the wiring"
    if here == 4 and folder == "engines" and imported == "pipeline":
        return "an engine runs what it is given and knows nothing of the wiring"
    if here == 5 and imported not in SHARED_BY_COMMANDS:
        return f"commands share only {' and '.join(SHARED_BY_COMMANDS)}, never each other"
    return None


def is_network(found: Import) -> bool:
    """Whether an import is one of NETWORK or below it; `from urllib import request` counts too."""
    dotted = found.module if found.name is None else f"{found.module}.{found.name}"
    return any(f"{dotted}.".startswith(f"{each}.") for each in NETWORK)


def prints(module: Module) -> list[int]:
    """The lines that call `print`."""
    return [
        node.lineno
        for node in ast.walk(module.tree)
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Name)
        and node.func.id == "print"
    ]


def test_there_is_source_to_read() -> None:
    assert f"{PACKAGE}.errors" in MODULES, "src/ragauge was not found: these tests checked nothing"


@every_module
def test_every_module_is_in_a_layer(name: str) -> None:
    assert layer_of(name) is not None, (
        f"`{name}` is in no layer: add it to LAYERS in tests/architecture/test_layers.py, "
        "in the lowest layer that holds all it imports"
    )


@every_module
def test_imports_point_down_only(name: str) -> None:
    problems = import_problems(name, MODULES)
    assert not problems, "\n".join(problems)


def test_no_module_imports_itself_through_others() -> None:
    cycle = import_cycle(MODULES)
    assert cycle is None, f"these modules import each other in a circle: {' → '.join(cycle or [])}"


@every_module
def test_every_module_says_what_it_owns(name: str) -> None:
    assert ast.get_docstring(MODULES[name].tree), (
        f"`{name}` has no docstring: begin it with a sentence that says what it owns"
    )


@every_module
def test_modules_stay_short(name: str) -> None:
    lines = MODULES[name].text.count("\n")
    assert lines <= MOST_LINES, (
        f"`{name}` has {lines} lines, the most is {MOST_LINES}: are there two jobs in one room?"
    )


@pytest.mark.parametrize("name", sorted(each.name for each in MODULES.values() if each.is_package))
def test_folders_begin_with_a_docstring_and_nothing_else(name: str) -> None:
    """Importing `ragauge.model.gold` runs `ragauge.model` too, so nothing may hide in there."""
    if name == PACKAGE:
        return
    body = MODULES[name].tree.body
    assert len(body) == 1, f"the `__init__` of `{name}` must be a docstring and nothing else"


@every_module
def test_only_faces_print(name: str) -> None:
    layer = layer_of(name)
    if layer is None or layer < 5:
        lines = prints(MODULES[name])
        assert not lines, f"`{name}` prints on lines {lines}: only layer 5 talks to the user"


@every_module
def test_nothing_reaches_for_the_network(name: str) -> None:
    found = [
        each
        for each in MODULES[name].imports
        if is_network(each)
        and LISTENS.get(name) != each.module
        and local_name(name) not in CONNECTS
    ]
    assert not found, "\n".join(
        f"`{name}` imports `{each.module}` on line {each.line}: ragauge opens no connections"
        for each in found
    )


def test_the_package_holds_nothing_but_what_it_needs() -> None:
    """What an editor or a patch leaves behind would go into the wheel."""
    kinds = {".css", ".html", ".js", ".jsonl", ".py", ".sql", ".toml", ".typed"}
    stray = [
        str(path.relative_to(SOURCE))
        for path in SOURCE.rglob("*")
        if path.is_file() and path.suffix not in kinds and path.parent.name != "__pycache__"
    ]
    assert stray == []
