"""An embedder whose vectors stand in the texts: `0.6 0.8` is the vector (0.6, 0.8)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pytest

from ragauge import registry
from ragauge.model.embedder import Embedded, EmbedderKind, Role

ID = "plane@test"


class Plane:
    """Reads the two numbers that a text begins with; a text of more than four words is cut off."""

    dimensions = 2
    lexical = False

    def __init__(self, name: str = ID) -> None:
        self.id = name
        self.asked: list[tuple[str, Role]] = []

    def embed(self, texts: Sequence[str], role: Role) -> Embedded:
        self.asked += [(text, role) for text in texts]
        rows = [[float(each) for each in text.split()[:2]] for text in texts]
        cut = [len(text.split()) > 4 for text in texts]
        return Embedded(np.array(rows, np.float32).reshape(len(texts), 2), cut)


def plane_only(monkeypatch: pytest.MonkeyPatch, name: str = ID) -> Plane:
    """Make `--embed plane` known beside the embedders that there are."""
    plane = Plane(name)

    def opened(_: Mapping[str, Any]) -> Plane:
        return plane

    kind = EmbedderKind(name="plane", title="a plane", open=opened)
    every = {**registry.embedders(), "plane": kind}
    monkeypatch.setattr(registry, "embedders", lambda: every)
    return plane
