"""Targets: systems that are asked the questions of a gold set, one slot at a time."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol, runtime_checkable

from msgspec import Struct

from ragauge.model.access import Access


class Exchange(Struct, frozen=True):
    """An earlier turn of a conversation: what was asked, and what this very system answered."""

    question: str
    answer: str | None


class TargetQuestion(Struct, frozen=True, kw_only=True):
    """What a target is asked: the text of one slot, and which slot it is.

    `paraphrase` counts from 0 where an item has paraphrases; `history` are the turns before;
    `number` is that of the slot, which no other question of the run has.
    """

    qid: str
    text: str
    paraphrase: int | None = None
    seed: int | None = None
    turn: int | None = None
    history: tuple[Exchange, ...] = ()
    number: int = 0


class TargetOptions(Struct, frozen=True, kw_only=True):
    """What a target is opened with.

    k         how many hits are wanted
    timeout   seconds that one question may take
    corpus    the folder of a built corpus, for targets that search one
    chunks    a list of chunks of that corpus; its blocks where there is none
    embedder  the name of the embedder of targets that compare vectors
    settings  whatever else was said on the command line or in ragauge.toml, by name
    scheme    the scheme that the address had, for kinds that know several
    """

    k: int = 10
    timeout: float = 60.0
    corpus: str | None = None
    chunks: str | None = None
    embedder: str | None = None
    settings: Mapping[str, Any] = {}
    scheme: str = ""


class TargetError(Exception):
    """A target could not answer: recorded as the error of the slot, never the end of a run.

    `transient` errors are worth another try; `wait` are the seconds that the target asked for. A
    target that asks for a wait is `busy`, and so is one that says it without a time: the question
    was not tried, and comes back later.
    """

    def __init__(
        self,
        reason: str,
        *,
        transient: bool = False,
        wait: float | None = None,
        busy: bool = False,
    ) -> None:
        super().__init__(reason)
        self.reason = reason
        self.transient = transient
        self.wait = wait
        self.busy = transient and (busy or wait is not None)


class Target(Protocol):
    """A system under test. It may be asked from several threads at once."""

    @property
    def about(self) -> Mapping[str, Any]:
        """How it is configured, without secrets: stored with the run."""

    def ask(self, question: TargetQuestion) -> Mapping[str, Any]:
        """Answer one slot with a trace row in any dialect; raise `TargetError` where it cannot."""

    def close(self) -> None:
        """Let go of processes, connections and files."""


@runtime_checkable
class RevisingTarget(Protocol):
    """A target that may find out later that what it gave was the answer to another question."""

    @property
    def doubts(self) -> int:
        """How many answers do not stand, as far as is known."""

    def settle(self) -> Mapping[int, str]:
        """Why answers do not stand, by the numbers of their slots; called when all is asked."""


class TargetKind(Struct, frozen=True, kw_only=True):
    """A kind of target: the schemes of its addresses, and how one is opened.

    `open` gets the address without its scheme. It raises `RagaugeError` for an address that can
    never work: a module that is not there, a corpus that cannot be read.

    `reaches` says which hosts an address leads to, if it is hosts alone; without it the address
    needs the user's consent as code does, wherever it was not named on the command line.
    """

    name: str
    title: str
    schemes: tuple[str, ...]
    open: Callable[[str, TargetOptions], Target]
    reaches: Callable[[str], Sequence[Access]] | None = None
