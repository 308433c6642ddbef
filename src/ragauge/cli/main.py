"""The command `ragauge`: finds commands in folders, turns errors into messages and exit codes."""

from __future__ import annotations

import atexit
import contextlib
import importlib
import io
import os
import pkgutil
import re
import signal
import sys
import threading
from collections.abc import Collection
from functools import cached_property
from typing import Any, NoReturn

import click

import ragauge
from ragauge.cli.options import CONFIG_IN_USE, say
from ragauge.cli.streams import safe_streams
from ragauge.codes import ExitCode
from ragauge.errors import RagaugeError
from ragauge.files import connections

_INTERRUPTED = 130
_HALF_PAIR = re.compile("[\ud800-\udfff]")
"""How Python keeps the bytes of arguments that are not UTF-8."""
_NOT_COMMANDS = {
    "demo_data", "live_store", "main", "named_runs", "options", "output", "store_options",
    "streams",
}  # fmt: skip


class CommandFolder(click.Group):
    """Finds commands in a package: each module there has a `COMMAND`, but for those left out.

    A module is imported when it is named. A folder in it is a group of commands, whose help is the
    docstring of the folder.
    """

    def __init__(
        self, *arguments: Any, package: str, without: Collection[str] = (), **settings: Any
    ) -> None:
        super().__init__(*arguments, **settings)
        self.package = package
        self.without = frozenset(without)

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002
        """Name the commands of the folder, without importing them."""
        return self._names

    @cached_property
    def _names(self) -> list[str]:
        folder = importlib.import_module(self.package).__path__
        names = (module.name for module in pkgutil.iter_modules(folder))
        return sorted(name for name in names if name not in self.without)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import a command, or make a folder of commands a group."""
        if cmd_name not in self.list_commands(ctx):
            return None
        module = importlib.import_module(f"{self.package}.{cmd_name}")
        if hasattr(module, "__path__"):
            description = module.__doc__ or ""
            return CommandFolder(
                cmd_name,
                package=module.__name__,
                no_args_is_help=False,
                help=description,
                short_help=description.partition("\n")[0],
            )
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


@click.group(
    cls=CommandFolder,
    package="ragauge.cli",
    without=_NOT_COMMANDS,
    # Colours are ours alone: what looks like one in data is shown as an escape, not taken out.
    context_settings={
        "help_option_names": ["-h", "--help"],
        "max_content_width": 100,
        "color": True,
    },
    epilog="Exit codes: 0 pass, 1 a gate failed, 2 usage, 3 bad input, 4 not evaluable, "
    "5 nothing measured, 70 a bug in ragauge.",
)
@click.version_option(ragauge.__version__, "--version", message="%(prog)s %(version)s")
def root() -> None:
    """Decide on hard numbers whether a retrieval-augmented system may ship."""


def main() -> NoReturn:
    """Run the command line and exit with the code that the outcome stands for."""
    # One thread a multiplication: what is drawn at random brings its own threads.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    for stream in (sys.stdout, sys.stderr):
        # Where the encoding has no character for something, an escape is better than a crash.
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    if sys.stdout is None:  # closed by who called us: what is written to files still is
        sys.stdout = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115
    if signal.getsignal(signal.SIGTERM) == signal.SIG_DFL:
        # So that temporary files are removed, as after an interrupt.
        signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    try:
        code = run(sys.argv[1:])
    except SystemExit as end:  # of the order to end
        code = end.code if isinstance(end.code, int) else int(ExitCode.BUG)
    _leave(code)


def _leave(code: int) -> NoReturn:
    """End the process, at once where calls of a target were abandoned and still run.

    Python ends such a thread when it comes back from native code, by unwinding its stack: below
    frames of C++ or Rust, which do not let that pass, the process dies with SIGABRT and code 134.
    """
    if not any(thread.daemon for thread in threading.enumerate()):
        sys.exit(code)
    if code != _INTERRUPTED:  # who interrupts does not want to wait for anything
        atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError, ValueError, AttributeError):  # None if it was closed
            stream.flush()
    os._exit(code)


def run(arguments: list[str]) -> int:
    """Run the command line on arguments; return the exit code."""
    with safe_streams():
        return _run(arguments)


def _with_values(arguments: list[str]) -> list[str]:
    """The arguments with the value of an option that needs none and takes one behind `=` only.

    click would take the next argument for it, which is a file.
    """
    end = arguments.index("--") if "--" in arguments else len(arguments)
    options = [f"{word}=100%" if word == "--allow-errored" else word for word in arguments[:end]]
    return [*options, *arguments[end:]]


def _run(arguments: list[str]) -> int:
    if any("\0" in argument for argument in arguments):
        say("error[usage]: an argument has a NUL character")
        say("  hint: no file and no name can have one")
        return int(ExitCode.USAGE)
    context: click.Context | None = None
    connections.listen(say)
    try:
        with root.make_context("ragauge", _with_values(arguments)) as context:
            code = root.invoke(context)
        sys.stdout.flush()
        return int(code or 0)
    except click.exceptions.Exit as stop:
        return int(stop.exit_code)
    except click.UsageError as error:
        if not arguments:
            click.echo(root.get_help(click.Context(root, info_name="ragauge")))
            return int(ExitCode.USAGE)
        name = error.ctx.command_path if error.ctx is not None else "ragauge"
        say(f"error[usage]: {error.format_message()}")
        say(f"  hint: `{name} --help` shows the usage")
        return int(ExitCode.USAGE)
    except click.ClickException as error:
        say(f"error[usage]: {error.format_message()}")
        return int(ExitCode.USAGE)
    except RagaugeError as error:
        config = None if context is None else context.meta.get(CONFIG_IN_USE)
        if config is not None:
            from ragauge.config import located

            error = located(error, config, arguments)
        for line in str(error).split("\n"):
            say(line)
        return int(error.exit_code)
    except (click.Abort, KeyboardInterrupt):
        say("interrupted")
        return _INTERRUPTED
    except BrokenPipeError:
        _silence()  # the reader of our output went away, as in `| head`
        return 141
    except OSError as error:
        _silence()
        say(f"error[file-unreadable]: {error.strerror or error}")
        say("  hint: the output could not be written, or a file went away while it was read")
        return int(ExitCode.USAGE)
    except UnicodeEncodeError as error:
        # A file may be named by bytes that are not UTF-8; a suite, a tag or a filter may not.
        if not any(map(_HALF_PAIR.search, arguments)):
            return _bug(error)
        say("error[usage]: an argument has bytes that are not UTF-8")
        say("  hint: only names of files may have them")
        return int(ExitCode.USAGE)
    except Exception as error:
        return _bug(error)


def _silence() -> None:
    """Send what is left of the output nowhere, so that Python does not complain at exit."""
    with contextlib.suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _bug(error: Exception) -> int:
    import traceback

    if os.environ.get("RAGAUGE_DEBUG"):
        traceback.print_exception(error)
    frame = traceback.extract_tb(error.__traceback__)[-1]
    module = os.path.basename(frame.filename)
    say(f"error[bug]: {type(error).__name__}: {error} ({module}:{frame.lineno})")
    say(
        "  hint: this is a fault in ragauge, not in your files; please report it, with "
        "RAGAUGE_DEBUG=1 for the whole story"
    )
    return int(ExitCode.BUG)
