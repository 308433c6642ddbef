"""A group of commands that is a folder of modules; a module is imported when it is named."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Collection
from types import ModuleType
from typing import Any

import click


class CommandFolder(click.Group):
    """Finds commands in a package: each module there has a `COMMAND`, but for those left out.

    A folder in it is a group of commands, whose help is the docstring of the folder.
    """

    def __init__(
        self, *arguments: Any, package: str, without: Collection[str] = (), **settings: Any
    ) -> None:
        super().__init__(*arguments, **settings)
        self.package = package
        self.without = frozenset(without)

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002
        """Name the commands of the folder, without importing them."""
        folder = importlib.import_module(self.package).__path__
        names = (module.name for module in pkgutil.iter_modules(folder))
        return sorted(name for name in names if name not in self.without)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import a command, or make a folder of commands a group."""
        if cmd_name not in self.list_commands(ctx):
            return None
        module = importlib.import_module(f"{self.package}.{cmd_name}")
        if hasattr(module, "__path__"):
            return _group(cmd_name, module)
        command: click.Command = module.COMMAND
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the command that the arguments name, or say which name is near."""
        if args and not args[0].startswith("-") and args[0] not in self.list_commands(ctx):
            from ragauge.registry import unknown_name

            error = unknown_name("command", args[0], self.list_commands(ctx))
            raise click.UsageError(f"{error.problems[0].message}: {error.problems[0].hint}", ctx)
        return super().resolve_command(ctx, args)


def _group(name: str, folder: ModuleType) -> CommandFolder:
    description = folder.__doc__ or ""
    return CommandFolder(
        name,
        package=folder.__name__,
        no_args_is_help=False,
        help=description,
        short_help=description.partition("\n")[0],
    )
