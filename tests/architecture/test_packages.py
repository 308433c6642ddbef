"""The shape of the source: who may import whom, and what every module keeps to.

A new module needs no entry here; a new package goes into ORDER.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Mapping

import pytest

from tests.architecture.source_text import (
    PACKAGE,
    SOURCE,
    Import,
    Module,
    import_cycle,
    read_modules,
    target,
)

# A package may import what stands behind it, never what stands before it.
ORDER = (
    "__main__", "pytest_plugin", "testing", "api",
    "cli", "live", "recorder", "report", "run", "diagnose", "compare", "targets", "store", "gates",
    "trust", "config", "scoring",
    "embed", "gold", "corpus", "formats", "registry", "model", "metrics", "stats",
    "ids", "quotes", "spans", "files", "concurrency", "errors", "text", "codes",
)  # fmt: skip
MOST_ROOT_MODULES = 14

# Folders of components, each with the constant by which the registry knows a component.
COMPONENTS = {
    "cli": "COMMAND",
    "cli.corpus": "COMMAND",
    "cli.gold": "COMMAND",
    "cli.live": "COMMAND",
    "cli.traces": "COMMAND",
    "corpus.parsers": "PARSER",
    "embed.embedders": "EMBEDDER",
    "formats.dialects": "DIALECT",
    "formats.imports": "FORMAT",
    "formats.imports.vocabularies": "VOCABULARY",
    "metrics": "METRICS",
    "report.annotations": "ANNOTATOR",
    "report.comparison": "REPORT",
    "report.scores": "REPORT",
    "store.databases": "STORE",
    "targets": "TARGET",
}
FACES = ("__main__", "cli", "pytest_plugin")
"""Who talks to the user."""

NETWORK = (
    "aiohttp", "ftplib", "http", "httpx", "requests", "smtplib", "socket", "socketserver", "ssl",
    "urllib.request", "urllib3", "xmlrpc",
)  # fmt: skip
# The form of `gold edit` listens, on this machine only; it connects nowhere, as a test of it shows.
# The client connects to the address that the user names, when the user names one.
NETWORKERS = {"ragauge.gold.editor.server": "http.server", "ragauge.files.http_client": ""}

# Gerunds that are terms of the field; any other module is named by a noun or by its command.
TERMS = {"chunking", "hashing", "resampling", "scoring", "testing"}

# Names that say nothing of what they hold, and how many of all names may be such.
PLACEHOLDERS = {"each", "found", "told", "given", "known", "made", "kept", "said", "shown"}
MOST_PLACEHOLDERS = 0.03
_BINDING = (
    ast.AnnAssign, ast.AugAssign, ast.NamedExpr, ast.For, ast.AsyncFor, ast.comprehension
)  # fmt: skip

MODULES = read_modules()

# All in one process: what one test has parsed, the next need not.
pytestmark = pytest.mark.xdist_group("architecture")


def local_name(module: str) -> str:
    """`metrics.answer` for `ragauge.metrics.answer`."""
    return module.removeprefix(PACKAGE).removeprefix(".")


def place_of(module: str) -> int | None:
    """How far behind the package of a module stands in the order; None if it is not in it."""
    top = local_name(module).partition(".")[0]
    return ORDER.index(top) if top in ORDER else None


def is_component(name: str, modules: Mapping[str, Module]) -> bool:
    """Whether a module exports the constant of its folder."""
    constant = COMPONENTS.get(local_name(name).rpartition(".")[0])
    return constant is not None and constant in _bound(modules[name].tree)


def _bound(tree: ast.Module) -> set[str]:
    names: set[str] = set()
    for statement in tree.body:
        targets = statement.targets if isinstance(statement, ast.Assign) else []
        if isinstance(statement, ast.AnnAssign):
            targets = [statement.target]
        names |= {each.id for each in targets if isinstance(each, ast.Name)}
        if isinstance(statement, ast.FunctionDef):  # a click command is a decorated function
            names.add(statement.name)
    return names


def import_problems(name: str, modules: Mapping[str, Module]) -> list[str]:
    """What is wrong with the imports of one module, each in a sentence."""
    problems = []
    for imported in modules[name].imports:
        reached = target(imported, modules)
        if reached is None:
            continue
        if reached not in modules:
            problems.append(f"`{name}` imports `{reached}`, which does not exist")
            continue
        root = reached == PACKAGE
        reason = _root_reason(imported, name) if root else _reason(name, reached, imported, modules)
        if reason is not None:
            problems.append(f"`{name}` imports `{reached}`: {reason}")
    return list(dict.fromkeys(problems))


def _root_reason(imported: Import, name: str) -> str | None:
    """The root may be asked for what it owns (`__version__`), not for the API that it forwards."""
    if imported.name is None or imported.name.startswith("__") or name == PACKAGE:
        return None
    return f"take `{imported.name}` from the module that owns it, not through the package root"


def _reason(
    importer: str, reached: str, imported: Import, modules: Mapping[str, Module]
) -> str | None:
    if importer == PACKAGE:
        lazy = not imported.runs_on_import
        return None if lazy else "the package root imports inside functions only"
    here, there = place_of(importer), place_of(reached)
    if here is None or there is None:
        return "its package is not in ORDER of tests/architecture/test_packages.py"
    if there < here:
        return "ORDER says that it may not"
    folder = local_name(importer).rpartition(".")[0]
    siblings = folder == local_name(reached).rpartition(".")[0]
    both = siblings and is_component(importer, modules) and is_component(reached, modules)
    return f"components of `{folder}` never import each other" if both else None


def unused_parts(modules: Mapping[str, Module]) -> list[str]:
    """Modules among components that export no constant and that no sibling or command imports."""
    reached = {
        (name, target(imported, modules))
        for name, module in modules.items()
        for imported in module.imports
    }
    stray = []
    commands = f"{PACKAGE}.cli."
    for name, module in modules.items():
        folder = name.rpartition(".")[0]
        if local_name(folder) not in COMPONENTS or local_name(folder).startswith("cli"):
            continue
        if module.is_package or is_component(name, modules):
            continue
        if not any(to == name and who.startswith((f"{folder}.", commands)) for who, to in reached):
            stray.append(name)
    return stray


def is_network(imported: Import) -> bool:
    """Whether an import is one of NETWORK or below it; `from urllib import request` counts too."""
    dotted = imported.module if imported.name is None else f"{imported.module}.{imported.name}"
    return any(f"{dotted}.".startswith(f"{each}.") for each in NETWORK)


def prints(module: Module) -> list[int]:
    """The lines that call `print`."""
    return [
        node.lineno
        for node in module.nodes
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Name)
        and node.func.id == "print"
    ]


def gerunds(modules: Mapping[str, Module]) -> list[str]:
    """Modules whose name ends with a gerund that is no term of the field."""
    last_words = {name: name.rpartition(".")[2].rpartition("_")[2] for name in modules}
    return [name for name, word in last_words.items() if word.endswith("ing") and word not in TERMS]


def shared_class_names(modules: Mapping[str, Module]) -> dict[str, list[str]]:
    """Public classes that several modules define, with these modules."""
    owners: dict[str, list[str]] = {}
    for name, module in modules.items():
        for statement in module.tree.body:
            if isinstance(statement, ast.ClassDef) and not statement.name.startswith("_"):
                owners.setdefault(statement.name, []).append(name)
    return {name: places for name, places in owners.items() if len(places) > 1}


def bindings(nodes: Iterable[ast.AST]) -> list[str]:
    """Every name that is bound by `=`, `for`, `with`, `:=` or a comprehension, each time."""
    targets: list[ast.expr | None] = []
    for node in nodes:
        if isinstance(node, ast.Assign):
            targets += node.targets
        elif isinstance(node, ast.With):
            targets += [item.optional_vars for item in node.items]
        elif isinstance(node, _BINDING):
            targets.append(node.target)
    return [
        name.id
        for target in targets
        if target is not None
        for name in ast.walk(target)
        if isinstance(name, ast.Name) and isinstance(name.ctx, ast.Store)
    ]


def test_there_is_source_to_read() -> None:
    assert f"{PACKAGE}.errors" in MODULES, "src/ragauge was not found: these tests checked nothing"


def test_imports_follow_the_order_of_packages() -> None:
    problems = [problem for name in MODULES for problem in import_problems(name, MODULES)]
    assert not problems, "\n".join(problems)


def test_no_module_imports_itself_through_others() -> None:
    cycle = import_cycle(MODULES)
    assert cycle is None, f"these modules import each other in a circle: {' → '.join(cycle or [])}"


def test_the_root_holds_few_modules() -> None:
    """Files grow inside packages; the root does not grow."""
    flat = [path.stem for path in SOURCE.glob("*.py")]
    assert len(flat) <= MOST_ROOT_MODULES, f"{len(flat)} modules in the root: {sorted(flat)}"


def test_every_module_begins_with_what_it_owns() -> None:
    bare = [name for name, module in MODULES.items() if not ast.get_docstring(module.tree)]
    assert not bare, f"no docstring that says what it owns: {', '.join(bare)}"


def test_modules_are_named_by_nouns() -> None:
    bad = gerunds(MODULES)
    assert not bad, f"say what it holds, not what it does: {', '.join(bad)}"


def test_no_two_public_classes_share_a_name() -> None:
    """A class carries its subject, so that its name alone says which one is meant."""
    shared = shared_class_names(MODULES)
    lines = (f"{name}: {', '.join(places)}" for name, places in sorted(shared.items()))
    assert not shared, "\n".join(lines)


def test_names_say_what_they_hold() -> None:
    by_module = {name: bindings(module.nodes) for name, module in MODULES.items()}
    bad = {name: sum(bound in PLACEHOLDERS for bound in names) for name, names in by_module.items()}
    share = sum(bad.values()) / sum(map(len, by_module.values()))
    worst = sorted(bad, key=lambda name: -bad[name])[:10]
    listed = ", ".join(f"{name} ({bad[name]})" for name in worst)
    assert share < MOST_PLACEHOLDERS, f"{share:.1%} of all names are placeholders: {listed}"


def test_packages_begin_with_a_docstring_and_nothing_else() -> None:
    """Importing `ragauge.model.gold` runs `ragauge.model` too, so nothing may hide in there."""
    full = [
        name
        for name, module in MODULES.items()
        if module.is_package
        and name != PACKAGE
        and len(module.tree.body) != 1
        and not is_component(name, MODULES)
    ]
    assert not full, f"more than a docstring in the `__init__` of {', '.join(full)}"


def test_what_lies_among_components_belongs_to_one() -> None:
    stray = unused_parts(MODULES)
    assert not stray, f"neither a component nor used by one beside it: {', '.join(stray)}"


def test_only_faces_print() -> None:
    printing = {
        name: lines
        for name, module in MODULES.items()
        if local_name(name).partition(".")[0] not in FACES and (lines := prints(module))
    }
    assert not printing, f"only {', '.join(FACES)} talk to the user: {printing}"


def test_nothing_reaches_for_the_network() -> None:
    connecting = [
        f"`{name}` imports `{imported.module}` on line {imported.line}"
        for name, module in MODULES.items()
        for imported in module.imports
        if is_network(imported) and NETWORKERS.get(name) not in ("", imported.module)
    ]
    assert not connecting, "ragauge opens no connections:\n" + "\n".join(connecting)


def test_the_package_holds_nothing_but_what_it_needs() -> None:
    """What an editor or a patch leaves behind would go into the wheel."""
    kinds = {".css", ".html", ".js", ".jsonl", ".py", ".sql", ".toml", ".typed"}
    stray = [
        str(path.relative_to(SOURCE))
        for path in SOURCE.rglob("*")
        if path.is_file() and path.suffix not in kinds and path.parent.name != "__pycache__"
    ]
    assert stray == []
