"""Store errors: what can go wrong with a database, in the words that users read."""

from __future__ import annotations

from ragauge.errors import RagaugeError


def unknown_run(name: str, run_id: str) -> RagaugeError:
    """Build the error for a run that is not there."""
    message = f"{name} has no run `{run_id}`"
    return RagaugeError.of("unknown-run", message, hint="`ragauge runs list` shows what there is")


def run_exists(name: str, run_id: str) -> RagaugeError:
    """Build the error for an id that is taken."""
    hint = "choose another --run-id, or delete the old run with `ragauge runs delete`"
    return RagaugeError.of("run-exists", f"{name} already has a run `{run_id}`", hint=hint)


def run_held(run_id: str) -> RagaugeError:
    """Build the error for a run that another process is writing."""
    hint = f"wait until it ends; `ragauge run --resume {run_id}` then goes on with what is left"
    return RagaugeError.of("run-held", f"another process is writing the run `{run_id}`", hint=hint)


def nothing_stored(name: str) -> RagaugeError:
    """Build the error for a store that should be there and is not."""
    hint = f"check the URL, or store a run: `ragauge score ... --store {name}`"
    return RagaugeError.of("store-unavailable", f"nothing has been stored in {name} yet", hint=hint)


def newer_store(name: str, found: int, known: int) -> RagaugeError:
    """Build the error for a store that a newer ragauge wrote."""
    message = f"{name} has version {found}, and this ragauge knows versions up to {known}"
    hint = "upgrade ragauge, or use another store; nothing was changed"
    return RagaugeError.of("newer-store", message, hint=hint)


def read_only(name: str, hint: str) -> RagaugeError:
    """Build the error for a store that may be read and not be written."""
    message = f"{name} is read-only: nothing can be stored, changed or deleted there"
    return RagaugeError.of("store-unavailable", message, hint=hint)


def old_and_read_only(name: str, version: int, newest: int, hint: str) -> RagaugeError:
    """Build the error for a store that must be migrated and cannot be."""
    message = (
        f"{name} has version {version}, and is read-only: it cannot be migrated to version {newest}"
    )
    return RagaugeError.of("store-unavailable", message, hint=hint)


def not_ours(name: str, why: str) -> RagaugeError:
    """Build the error for something that is no store, or is one no more."""
    hint = "check the URL; a store that was damaged must be restored from a copy"
    return RagaugeError.of("bad-store", f"{name} is not a store that can be used: {why}", hint=hint)


def unavailable(name: str, words: str, hint: str) -> RagaugeError:
    """Build the error for a database that refuses, with its own words."""
    return RagaugeError.of("store-unavailable", f"{name} cannot be used: {words}", hint=hint)


def clash(name: str, words: str) -> RagaugeError:
    """Build the error for two writers that wrote the same thing."""
    hint = "another process may have stored the same at the same time; look, and try again"
    return unavailable(name, words, hint)
