"""The page of the settings names each key, with the default that it has."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from ragauge.config import load_config
from ragauge.errors import RagaugeError
from ragauge.live import settings
from ragauge.live.settings import LiveSettings, live_settings
from tests.support.cases import cases

PAGE = Path(__file__).resolve().parents[3] / "docs" / "live-settings.md"
TABLES: dict[str, type[msgspec.Struct]] = {
    "[live]": LiveSettings,
    "[live.sampling]": settings.Sampling,
    "[live.redaction]": settings.Redaction,
    "[live.retention]": settings.Retention,
    "[live.window]": settings.WindowRule,
    "[live.limits]": settings.IngestLimits,
    "[live.alerts]": settings.Alerts,
    "[live.alerts.rules.NAME]": settings.AlertRule,
    "[[live.alerts.webhooks]]": settings.Webhook,
    "[live.shadow]": settings.MirrorRule,
    "[live.shadow.promote]": settings.PromotionRule,
}


def rows() -> dict[str, dict[str, str]]:
    """The default of each key as the page has it, by table."""
    parts = re.split(r"^## `(.+)`$", PAGE.read_text("utf-8"), flags=re.MULTILINE)[1:]
    pairs = zip(parts[::2], parts[1::2], strict=True)
    return {name: dict(re.findall(r"^\| `(\w+)` \| (.*?) \|", text, re.M)) for name, text in pairs}


def own_keys(kind: type[msgspec.Struct]) -> Iterator[tuple[str, Any]]:
    for field in msgspec.structs.fields(kind):
        is_table = kind is LiveSettings and f"[live.{field.name}]" in TABLES
        if not is_table:
            yield field.name, field.default


def test_every_table_of_settings_is_on_the_page() -> None:
    structs = {
        value
        for value in vars(settings).values()
        if isinstance(value, type) and issubclass(value, msgspec.Struct)
        and value.__module__ == settings.__name__
    }  # fmt: skip
    assert structs == set(TABLES.values())
    assert list(rows()) == list(TABLES)


@cases("table", TABLES)
def test_the_page_has_each_key_and_its_default(table: str) -> None:
    written = rows()[table]
    keys = dict(own_keys(TABLES[table]))
    assert list(written) == [name for name in written if name in keys], "a key that is not there"
    assert set(written) == set(keys)
    for name, default in keys.items():
        if isinstance(default, str | int | float | bool):
            expected = json.dumps(default) if isinstance(default, str | bool) else f"{default!r}"
            assert written[name] == f"`{expected}`", name


@cases(
    ("text", "line"),
    [
        ("[live]\nhots = 'x'\n", 2),
        ("[live.sampling]\nrate = 2\n", 2),
        ("[live.sampling]\nby = 'user'\n", 2),
        ("[live.limits]\nbody_bytes = 0\n", 2),
    ],
)
def test_a_wrong_setting_is_an_error_with_its_line(tmp_path: Path, text: str, line: int) -> None:
    file = tmp_path / "ragauge.toml"
    file.write_text(text)
    with pytest.raises(RagaugeError) as error:
        live_settings(load_config(file))
    assert error.value.problems[0].code == "bad-config"
    place = error.value.problems[0].place
    assert place is not None
    assert place.line == line
