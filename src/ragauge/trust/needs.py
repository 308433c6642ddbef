"""Needs of a `ragauge.toml`: the hosts and the code that its settings lead to, with their lines."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

from msgspec import Struct

from ragauge import registry
from ragauge.config import Config
from ragauge.errors import Place, RagaugeError
from ragauge.files.redaction import redacted
from ragauge.files.toml_lines import TomlKey
from ragauge.model.access import Access


class Need(Struct, frozen=True):
    """A host or code that a setting of the file leads to, and where that setting stands."""

    access: Access
    place: Place
    key: TomlKey = ()
    """The setting of `[live]` that it is."""


def needs_of_store(config: Config) -> list[Need]:
    """What the store that the file names leads to; nothing where it is a file."""
    if config.store is None:
        return []
    return [Need(access, config.place("store")) for access in _accesses_of_store(config.store)]


def _accesses_of_store(url: str) -> Sequence[Access]:
    kind = registry.stores().get(url.partition("://")[0])
    if kind is None:
        return ()  # opening it will say so
    return _undeclared("a store", kind.name) if kind.reaches is None else kind.reaches(url)


def needs_of_target(config: Config) -> list[Need]:
    """What the target that the file names leads to."""
    if config.target is None:
        return []
    place = config.place("target")
    return [Need(access, place) for access in _accesses_of_target(config.target)]


def target_leads_outside(address: str) -> bool:
    """Whether a target connects or runs code, by its address."""
    try:
        return bool(_accesses_of_target(address))
    except RagaugeError:  # its secrets were taken out, and it can no longer be read
        return True


def _accesses_of_target(address: str) -> Sequence[Access]:
    """What asking a target leads to: code, unless its kind says that it is less."""
    kind = registry.targets().get(address.partition(":")[0])
    if kind is None:
        return ()
    if kind.reaches is None:
        return (Access(code=f"the target {redacted(address)}"),)
    return kind.reaches(address)


def needs_of_embedder(config: Config, chosen: str | None = None) -> list[Need]:
    """What the embedder leads to by settings of the file; `chosen` is its name from elsewhere."""
    name = chosen or config.embed
    if name is None:
        return []
    kind_name, _, model = name.partition(":")
    kind = registry.embedders().get(kind_name)
    if kind is None:
        return []
    settings = dict(config.embedders.get(kind_name, {}))
    places: dict[str, TomlKey] = {key: ("embedders", kind_name, key) for key in settings}
    if model:
        settings["model"] = model
        places.pop("model", None)
        if chosen is None:
            places["model"] = ("embed",)
    accesses = (
        _undeclared("an embedder", kind_name, tuple(settings))
        if kind.reaches is None
        else kind.reaches(settings)
    )
    return [
        Need(access, config.place(*place))
        for access in accesses
        if (place := _first(places, access.keys)) is not None
    ]


def embedder_leads_outside(name: str) -> bool:
    """Whether an embedder connects or runs code, by its name alone."""
    kind_name, _, model = name.partition(":")
    kind = registry.embedders().get(kind_name)
    if kind is None or kind.reaches is None:
        return True
    try:
        return bool(kind.reaches({"model": model} if model else {}))
    except RagaugeError:  # it has no address, as long as nobody gives it one
        return True


def needs_of_live(config: Config) -> list[Need]:
    """What `[live]` leads to: its store, the systems it asks, webhooks, and commands it runs."""
    needs = []
    for key, value in live_settings_outside(config.live):
        place = config.place("live", *key)
        if key[0] == "store":
            accesses = _accesses_of_store(value)
        elif key[-1] in _LIVE_OPTIONS:
            names = ", ".join(sorted(set(_VARIABLE.findall(value))))
            accesses = (Access(code=f"the values of {names}, for a target"),) if names else ()
        elif key[-1] == "url":
            accesses = _accesses_of_webhook(config.live, key, value)
        elif key[-1] == "secret_variable":
            continue  # the need of its URL names it; when it changes, trust ends
        elif key[-1] in _LIVE_COMMANDS:
            accesses = (Access(code=f"the command {redacted(value)}"),)
        else:
            accesses = _accesses_of_target(value)
        needs += [Need(access, place, key) for access in accesses]
    return needs


_VARIABLE = re.compile(r"\$\{(\w+)\}")
_LIVE_OPTIONS = ("options", "live_options")
_LIVE_COMMANDS = ("on_promote", "on_roll_back")


def live_settings_outside(live: Mapping[str, Any]) -> list[tuple[TomlKey, str]]:
    """The settings of `[live]` that lead outside, with their keys; a store in a file is none."""
    shadow, alerts = _table(live.get("shadow")), _table(live.get("alerts"))
    webhooks = alerts.get("webhooks")
    entries: list[tuple[TomlKey, Any]] = [(("store",), live.get("store"))]
    names = ("target", "live", *_LIVE_COMMANDS)
    entries += [(("shadow", name), shadow.get(name)) for name in names]
    for name in _LIVE_OPTIONS:
        if options := shadow.get(name):
            text = json.dumps(options, sort_keys=True, ensure_ascii=True, default=str)
            entries.append((("shadow", name), text))
    for number, webhook in enumerate(webhooks if isinstance(webhooks, list) else ()):
        entries += [
            (("alerts", "webhooks", number, name), _table(webhook).get(name))
            for name in ("url", "secret_variable")
        ]
    return [
        (key, value)
        for key, value in entries
        if isinstance(value, str) and not (key == ("store",) and value.startswith("sqlite:"))
    ]


def _accesses_of_webhook(live: Mapping[str, Any], key: TomlKey, url: str) -> Sequence[Access]:
    # Here, because every command asks what it needs, and few of them need a connection.
    from ragauge.files.http_client import WebError, host_and_port

    try:
        host, port = host_and_port(url)
    except WebError:
        return ()  # starting the server will say so
    webhook = _table(_table(live["alerts"])["webhooks"][int(key[2])])
    variable = webhook.get("secret_variable")
    # The secret signs; it is not sent, but who names the variable chooses what is signed with.
    return (Access(host=host, port=port, variables=(variable,) if variable else ()),)


def _table(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _first(places: Mapping[str, TomlKey], keys: Sequence[str]) -> TomlKey | None:
    return next((places[key] for key in keys if key in places), None)


def _undeclared(what: str, name: str, keys: tuple[str, ...] = ()) -> Sequence[Access]:
    """A plugin that does not say what its settings lead to may connect anywhere."""
    return (Access(code=f"{what} of the kind `{name}`, with settings of the file", keys=keys),)


def all_needs(config: Config) -> list[Need]:
    """Everything that the file leads to, in whichever command."""
    needs = [*needs_of_store(config), *needs_of_target(config), *needs_of_embedder(config)]
    needs += needs_of_live(config)
    for name in config.embedders:  # --embed may choose any of them
        needs += needs_of_embedder(config, name)
    by_place = {(need.place.line, need.access.host, need.access.code): need for need in needs}
    return sorted(by_place.values(), key=lambda need: need.place.line or 0)
