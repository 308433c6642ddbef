"""The target `python:module:function`: a function of the user's own, called in this process."""

from __future__ import annotations

import asyncio
import inspect
import math
import threading
from collections.abc import Callable, Coroutine, Mapping
from typing import Any

import msgspec

from ragauge.files.redaction import REDACTED, is_secret
from ragauge.model.target import TargetError, TargetKind, TargetOptions, TargetQuestion
from ragauge.targets.shared.address import QUESTION_FIELDS, question_fields, refused
from ragauge.targets.shared.foreign_hits import failure
from ragauge.targets.shared.import_object import object_at


class PythonTarget:
    """Calls a function, plain or async. Async ones share one event loop in a thread of its own."""

    def __init__(self, address: str, options: TargetOptions) -> None:
        self.address = address
        self.k = options.k
        self.timeout = options.timeout
        self.settings = {name: _value(option) for name, option in options.settings.items()}
        self.secrets = [
            str(option) for name, option in options.settings.items() if option and is_secret(name)
        ]
        self.function = _function(address)
        self.names, self.first = _parameters(self.function, address, self.settings)
        self.loop: asyncio.AbstractEventLoop | None = None
        called = getattr(self.function, "__call__", None)  # noqa: B004  (an object may be async)
        if inspect.iscoroutinefunction(self.function) or inspect.iscoroutinefunction(called):
            self.loop = asyncio.new_event_loop()
            self.thread = threading.Thread(
                target=self.loop.run_forever, daemon=True, name="ragauge-async"
            )
            self.thread.start()

    @property
    def about(self) -> Mapping[str, Any]:
        """Nothing that the address and the options do not say."""
        return {}

    def ask(self, question: TargetQuestion) -> Any:
        """Call the function with what it takes."""
        arguments = question_fields(question, self.k)
        arguments["history"] = [msgspec.to_builtins(exchange) for exchange in question.history]
        named = {name: arguments[name] for name in self.names} | self.settings
        positional = (question.text,) if self.first else ()
        try:
            answered = self.function(*positional, **named)
            if self.loop is not None and inspect.iscoroutine(answered):
                return self._awaited(self.loop, answered)
            return answered
        except TargetError:
            raise
        except (Exception, SystemExit) as error:
            failed = failure(error)
            for secret in self.secrets:
                failed.reason = failed.reason.replace(secret, REDACTED)
            # What the network raises is worth another try, and what says so itself.
            wait = _retry_after(error)
            says_so = wait is not None or bool(getattr(error, "transient", False))
            passing = failed.transient or says_so
            raise TargetError(failed.reason, transient=passing, wait=wait) from error

    def _awaited(self, loop: asyncio.AbstractEventLoop, answered: Coroutine[Any, Any, Any]) -> Any:
        future = asyncio.run_coroutine_threadsafe(answered, loop)
        try:
            return future.result(self.timeout)
        except TimeoutError as error:
            if not future.done():
                future.cancel()
                reason = f"no answer within {self.timeout:g} s"
                raise TargetError(reason, transient=True) from error
            raise

    def close(self) -> None:
        """Stop the event loop; calls that hang are left behind."""
        if self.loop is not None:
            self.loop.call_soon_threadsafe(self.loop.stop)
            self.thread.join(1.0)
            if not self.thread.is_alive():
                self.loop.close()


def _retry_after(error: BaseException) -> float | None:
    """The seconds that an exception asks to wait by its `retry_after`, as a busy service does."""
    seconds = getattr(error, "retry_after", None)
    if isinstance(seconds, bool) or not isinstance(seconds, int | float):
        return None
    return float(seconds) if 0 <= seconds < math.inf else None


def _value(option: Any) -> Any:
    """An option as JSON where it is JSON: a number, true, a list; a text where it is not."""
    try:
        return msgspec.json.decode(option) if isinstance(option, str) else option
    except (ValueError, RecursionError):
        return option


def _function(address: str) -> Callable[..., Any]:
    """The function that an address names."""
    function = object_at(address, "python", "function")
    if not callable(function):
        place, _, name = address.rpartition(":")
        raise refused(f"`{name}` in `{place}` is no function", "name a function that answers")
    return function  # type: ignore[no-any-return]


def _parameters(
    function: Callable[..., Any], address: str, settings: Mapping[str, Any]
) -> tuple[list[str], bool]:
    """Which of the given names a function takes, and whether its first parameter is the question.

    A function of one parameter is asked by it, whatever its name.
    """
    try:
        parameters = inspect.signature(function).parameters
    except (TypeError, ValueError):
        return [], True  # written in C: it takes the question
    kinds = {name: parameter.kind for name, parameter in parameters.items()}
    everything = inspect.Parameter.VAR_KEYWORD in kinds.values()
    by_name = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
    names = [name for name in QUESTION_FIELDS if everything or kinds.get(name) in by_name]
    needed = [
        name
        for name, parameter in parameters.items()
        if parameter.default is parameter.empty
        and parameter.kind not in (parameter.VAR_KEYWORD, parameter.VAR_POSITIONAL)
        and name not in names
        and name not in settings
    ]
    unknown = [] if everything else sorted(name for name in settings if name not in kinds)
    if unknown:
        raise refused(
            f"`{address}` takes no `{unknown[0]}`", "an --option goes to a parameter of that name"
        )
    taken = "question" in names and not everything
    first = len(needed) == 1 and not taken and next(iter(parameters)) == needed[0]
    if needed and not first:
        raise refused(
            f"`{address}` needs `{needed[-1]}`, which nothing gives it",
            f"it can take {', '.join(QUESTION_FIELDS)}, and what --option NAME=VALUE says",
        )
    if first and "question" in names:
        names.remove("question")
    return names, first


TARGET = TargetKind(
    name="python",
    title="a Python function: python:module:function",
    schemes=("python",),
    open=PythonTarget,
)
