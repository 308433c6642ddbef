"""Names of baselines: what is a folder, what is a number, and what is a run."""

from __future__ import annotations

import pytest

from ragauge.errors import RagaugeError
from ragauge.model.baseline_name import parse_baseline_name
from tests.support.cases import cases


@cases(
    ("text", "kind", "count", "branch", "folder", "label"),
    [
        ("monday", "run", 1, None, None, "monday"),
        ("baseline:nightly", "run", 1, None, None, "baseline:nightly"),
        ("runs/live.json", "run", 1, None, None, "live.json"),
        ("latest", "run", 1, None, None, "latest"),
        ("latest:kept", "latest", 1, None, "kept", "latest"),
        ("pinned:C:\\kept", "pinned", 1, None, "C:\\kept", "pinned"),
        ("best-of:10", "best-of", 10, None, None, "best-of:10"),
        ("best-of:3@feature/x", "best-of", 3, "feature/x", None, "best-of:3@feature/x"),
        ("best-of:3:a/b c", "best-of", 3, None, "a/b c", "best-of:3"),
    ],
)
def test_names_are_read(
    text: str, kind: str, count: int, branch: str | None, folder: str | None, label: str
) -> None:
    name = parse_baseline_name(text)
    assert (name.kind, name.count, name.branch, name.folder) == (kind, count, branch, folder)
    assert name.label == label
    if folder is not None:
        assert parse_baseline_name(name.in_folder("x")).folder == "x"


@cases("text", ["best-of", "best-of:", "best-of:0", "best-of:-1", "best-of:1:"])
def test_what_looks_like_a_best_run_and_is_none_is_refused(text: str) -> None:
    with pytest.raises(RagaugeError) as caught:
        parse_baseline_name(text)
    assert caught.value.code == "usage"
