"""Gold over the documentation of two releases of a package: nothing changes its meaning unseen.

The documents are those of click 8.1.8 and 8.2.1, from their source distributions.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tarfile
from pathlib import Path
from typing import NamedTuple

import pytest
import yaml

from ragauge.corpus.build import build
from ragauge.corpus.lookup import Lookup, open_corpus
from ragauge.formats.load import load_gold
from tests.support.command import Folder, Row

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("real-docs")]

RELEASES = ("8.1.8", "8.2.1")
EVERY = 3  # of the blocks of the old version one in so many is evidence


class Releases(NamedTuple):
    old: Lookup
    new: Lookup
    folder: Path


@pytest.fixture(scope="module")
def releases(tmp_path_factory: pytest.TempPathFactory) -> Releases:
    folder = tmp_path_factory.mktemp("releases")
    for release in RELEASES:
        pip = [sys.executable, "-m", "pip", "--retries", "1", "--timeout", "15", "download"]
        source = ["--no-deps", "--no-binary", ":all:", "--dest", str(folder), f"click=={release}"]
        try:
            done = subprocess.run([*pip, *source], capture_output=True, timeout=180, check=False)
        except subprocess.TimeoutExpired:
            pytest.skip("the documents cannot be fetched in time")
        if done.returncode:
            pytest.skip(f"the documents cannot be fetched: {done.stderr.decode()[-200:]}")
        with tarfile.open(folder / f"click-{release}.tar.gz") as archive:
            archive.extractall(folder, filter="data")
    for name, release in zip(("old", "new"), RELEASES, strict=True):
        build([str(folder / f"click-{release}" / "docs")], str(folder / name), workers=1)
    return Releases(open_corpus(str(folder / "old")), open_corpus(str(folder / "new")), folder)


@pytest.fixture
def work(folder: Folder, releases: Releases) -> Folder:
    for name in ("old", "new"):
        (folder.path / name).symlink_to(releases.folder / name)
    done = folder.run("corpus", "diff", "old", "new", "-o", "map.jsonl")
    assert done.exit_code == 0, done.err
    return folder


def kb_gold(lookup: Lookup) -> list[Row]:
    """A question on every third block, by its id alone."""
    return [
        {"id": f"q{number}", "query": f"What is said in {block.section} of {block.doc}?",
         "expected_doc_ids": [block.doc], "expected_chunk_ids": [block.id]}
        for number, block in enumerate(lookup.corpus.blocks[::EVERY])
    ]  # fmt: skip


def other_text(releases: Releases, gold: list[Row]) -> set[str]:
    """The ids that both versions have, for different texts: the truth, from the corpora alone."""
    ids = {name for row in gold for name in row["expected_chunk_ids"]}
    old, new = releases.old.blocks, releases.new.blocks
    return {name for name in ids & new.keys() if old[name].fingerprint != new[name].fingerprint}


def findings(folder: Folder, gold: str, corpus: str, rule: str) -> list[Row]:
    outcome = folder.run("gold", "lint", gold, "--corpus", corpus, "--format", "json")
    listed: list[Row] = json.loads(outcome.out)["findings"]
    return [finding for finding in listed if finding["rule"] == rule]


def test_every_id_that_means_other_text_is_noticed_and_none_is_pinned(
    work: Folder, releases: Releases
) -> None:
    gold = kb_gold(releases.old)
    work.write("gold.jsonl", gold)
    (unpinned,) = findings(work, "gold.jsonl", "new", "not-pinned")
    assert unpinned["times"] > 50
    assert work.run("gold", "freeze", "gold.jsonl", "--corpus", "old").exit_code == 0
    assert findings(work, "gold.jsonl", "old", "text-changed") == []
    truth = other_text(releases, gold)
    assert len(truth) > 20
    changed = findings(work, "gold.jsonl", "new", "text-changed")
    assert {finding["message"].split("`")[1] for finding in changed} == truth
    run = ("gold", "pin", "gold.jsonl", "--corpus", "new", "-o", "pinned.jsonl")
    assert work.run(*run).exit_code == 3
    done = work.run(*run, "--on-unresolved", "keep")
    assert done.exit_code == 0, done.err
    rows = [json.loads(line) for line in (work.path / "pinned.jsonl").read_text().splitlines()]
    for row, before in zip(rows, gold, strict=True):
        (entry,) = row["expected_chunk_ids"]
        if entry != before["expected_chunk_ids"][0]:
            old = releases.old.blocks[entry["id"]]
            assert " ".join(entry["quote"].lower().split()) == " ".join(
                releases.old.quote(releases.old.spot_of(old)).lower().split()
            )


@pytest.mark.parametrize("out", ["moved.jsonl", "moved.yaml"])
def test_what_is_gone_is_a_draft_and_nothing_is_moved_twice(
    work: Folder, releases: Releases, out: str
) -> None:
    gold = kb_gold(releases.old)
    work.write("gold.jsonl", gold)
    migrate = ("gold", "migrate", "--map", "map.jsonl", "--on-unmapped", "drop")
    done = work.run(*migrate, "gold.jsonl", "-o", out)
    assert done.exit_code == 4
    text = (work.path / out).read_text("utf-8")
    read = yaml.safe_load(text) if out.endswith(".yaml") else map(json.loads, text.splitlines())
    rows: list[Row] = list(read)
    drafts = [row for row in rows if row.get("draft")]
    assert 0 < len(drafts) < len(rows) / 2
    assert f"items now drafts         {len(drafts)}, " in done.out
    assert not any(value in ([], {}) for row in rows for value in row.values())
    work.write("confirmed.jsonl", [row for row in rows if not row.get("draft")])
    assert {item.expect for item in load_gold(work.path / "confirmed.jsonl").items} == {"answer"}
    # Again: not a byte changes, and no item becomes a draft that was none.
    done = work.run(*migrate, out, "-o", f"again-{out}")
    assert done.exit_code == 0, done.err
    assert (work.path / f"again-{out}").read_text("utf-8") == text


def test_every_place_that_is_off_by_a_blank_is_reported(work: Folder, releases: Releases) -> None:
    """Most blocks have a line end on both sides, where stripping hides a byte more or less."""
    work.write("gold.jsonl", kb_gold(releases.old)[:150])  # lint lists 200 one by one
    run = ("gold", "pin", "gold.jsonl", "--corpus", "old", "-o", "pinned.jsonl")
    assert work.run(*run).exit_code == 0
    assert findings(work, "pinned.jsonl", "old", "quote-moved") == []
    rows = [json.loads(line) for line in (work.path / "pinned.jsonl").read_text().splitlines()]
    shifted = []
    for number, row in enumerate(rows):
        (entry,) = row["expected_chunk_ids"]
        text = releases.old.text(entry["doc"])
        first, last = [(1, 0), (0, 1), (1, 1)][number % 3]
        start, end = entry["start"] - first, entry["end"] + last
        if "quote" in entry and start >= 0 and end <= len(text):
            entry |= {"start": start, "end": end}
            shifted.append(row["id"])
    work.write("shifted.jsonl", rows)
    assert len(shifted) > 50
    moved = findings(work, "shifted.jsonl", "old", "quote-moved")
    assert [finding["qid"] for finding in moved] == shifted


def test_negatives_leave_the_dialect_of_a_real_set(work: Folder, releases: Releases) -> None:
    gold = [
        {"id": row["id"], "query": row["query"], "expected_chunk_ids": row["expected_chunk_ids"]}
        for row in kb_gold(releases.old)[:40]
    ]
    work.write("gold.jsonl", gold)
    run = ("gold", "negatives", "gold.jsonl", "--corpus", "old", "-o", "gold.jsonl")
    assert work.run(*run).exit_code == 0
    assert load_gold(work.path / "gold.jsonl").dialect == "kb"
    items = load_gold(work.path / "gold.jsonl").items
    assert sum(bool(item.negative_places) for item in items) > 30
