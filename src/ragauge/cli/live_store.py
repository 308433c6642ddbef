"""The store of the live monitor: which one a command works on, and whether the user allows it."""

from __future__ import annotations

from ragauge.cli.options import CommandOptions, permit, permit_store


def live_store_url(asked: CommandOptions) -> str:
    """The store: as given, as [live] has it, as the project has it, or a file of its own."""
    from ragauge.live.database import DEFAULT_URL
    from ragauge.live.settings import live_settings
    from ragauge.trust.needs import needs_of_live

    if asked.store_url:
        return str(asked.store_url)
    config = asked.config
    if store := live_settings(config).store:
        permit(config, [need for need in needs_of_live(config) if need.key == ("store",)])
        return store
    permit_store(config)
    return config.store or DEFAULT_URL
