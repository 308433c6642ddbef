"""Reads what modules import from their text; the package itself is never imported."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

PACKAGE = "ragauge"
SOURCE = Path(__file__).resolve().parents[2] / "src" / PACKAGE


@dataclass(frozen=True)
class Import:
    """One imported name. `name` is None for `import module`, else the name after `import`."""

    module: str
    name: str | None
    line: int
    runs_on_import: bool  # at module level and outside `if TYPE_CHECKING:`


@dataclass(frozen=True)
class Module:
    """A module by its dotted name, with its text."""

    name: str
    text: str
    is_package: bool = False

    @cached_property
    def tree(self) -> ast.Module:
        return ast.parse(self.text, filename=self.name)

    @cached_property
    def nodes(self) -> list[ast.AST]:
        return list(ast.walk(self.tree))

    @cached_property
    def imports(self) -> list[Import]:
        return list(self._imports_in(self.tree.body, runs_on_import=True))

    def _imports_in(
        self, statements: Sequence[ast.AST], *, runs_on_import: bool
    ) -> Iterator[Import]:
        for statement in statements:
            if isinstance(statement, ast.Import):
                for alias in statement.names:
                    yield Import(alias.name, None, statement.lineno, runs_on_import)
            elif isinstance(statement, ast.ImportFrom):
                origin = self._absolute(statement.module, statement.level)
                for alias in statement.names:
                    yield Import(origin, alias.name, statement.lineno, runs_on_import)
            elif isinstance(statement, ast.If) and _asks_for_type_checking(statement.test):
                yield from self._imports_in(statement.body, runs_on_import=False)
                yield from self._imports_in(statement.orelse, runs_on_import=runs_on_import)
            else:
                inside = isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef)
                # Imports are statements: expressions, most of a tree, need no look.
                for field in ("body", "orelse", "handlers", "finalbody", "cases"):
                    yield from self._imports_in(
                        getattr(statement, field, ()), runs_on_import=runs_on_import and not inside
                    )

    def _absolute(self, module: str | None, level: int) -> str:
        if level == 0:
            return module or ""
        parts = self.name.split(".")
        base = parts[: len(parts) - level + (1 if self.is_package else 0)]
        return ".".join([*base, *([module] if module else [])])


def _asks_for_type_checking(test: ast.expr) -> bool:
    return (isinstance(test, ast.Name) and test.id == "TYPE_CHECKING") or (
        isinstance(test, ast.Attribute) and test.attr == "TYPE_CHECKING"
    )


def read_modules(folder: Path = SOURCE) -> dict[str, Module]:
    """Every module below a package folder, by dotted name."""
    found = {}
    for path in sorted(folder.rglob("*.py")):
        parts = [folder.name, *path.relative_to(folder).with_suffix("").parts]
        is_package = parts[-1] == "__init__"
        name = ".".join(parts[:-1] if is_package else parts)
        found[name] = Module(name, path.read_text(encoding="utf-8"), is_package)
    return found


def target(found: Import, modules: Mapping[str, Module]) -> str | None:
    """Our module that an import reaches; `from ragauge import text` reaches ragauge.text."""
    if found.module.partition(".")[0] != PACKAGE:
        return None
    if found.name is not None and f"{found.module}.{found.name}" in modules:
        return f"{found.module}.{found.name}"
    return found.module


def _reached(module: Module, modules: Mapping[str, Module]) -> list[str]:
    reached = {target(each, modules) or "" for each in module.imports if each.runs_on_import}
    return sorted(reached & modules.keys() - {module.name})


def import_cycle(modules: Mapping[str, Module]) -> list[str] | None:
    """A cycle of imports that run on import, its first module again at the end."""
    graph = {name: _reached(module, modules) for name, module in modules.items()}
    done: set[str] = set()

    def walk(name: str, path: list[str]) -> list[str] | None:
        if name in path:
            return [*path[path.index(name) :], name]
        if name in done:
            return None
        for reached in graph[name]:
            cycle = walk(reached, [*path, name])
            if cycle is not None:
                return cycle
        done.add(name)
        return None

    for name in sorted(graph):
        cycle = walk(name, [])
        if cycle is not None:
            return cycle
    return None
