"""The error codes of asking a system: name, title and explanation, taken up by `codes`."""

from __future__ import annotations

Entry = tuple[str, str, str]

USAGE: tuple[Entry, ...] = (
    (
        "bad-target",
        "a target cannot be asked at all",
        "A target is python:module:function, http://..., command:PROGRAM, or what a plugin brings. "
        "The function, program or option that is named must be there; what goes wrong with single "
        "questions later is recorded with them.",
    ),
    (
        "cannot-resume",
        "a stored run cannot be gone on with",
        "Only a run that `ragauge run` began has questions left to ask, and only with the gold "
        "set, the target, the seeds and the k that it began with: half a run of one system and "
        "half of another would be a run of neither.",
    ),
    (
        "run-held",
        "another process is writing the run",
        "One process at a time asks for a run and stores its results. Wait until it ends, or end "
        "it; then `ragauge run --resume RUN` goes on with what is left. A process that is gone, "
        "however it ended, holds nothing.",
    ),
)
NOT_EVALUABLE: tuple[Entry, ...] = (
    (
        "too-many-errors",
        "the target failed too often, and the run was stopped",
        "There were more errors than --max-errors allows, or very many calls that never came back. "
        "What was answered is stored: mend the target, then go on with --resume and "
        "--retry-errors.",
    ),
)
