"""Expected evidence on the page of a comparison: where it lies, by the chunks of either side."""

from __future__ import annotations

import pytest
from tests.support.chunked_runs import TEXT, Index, asked, item
from tests.support.command import Folder

from ragauge.cli.store_options import temporary_store
from ragauge.compare import align, common_gold, compare
from ragauge.report.drilldown.questions import details_of_comparison
from ragauge.store import runs as run_store

CHUNKS = [("old-", 0, 100), ("old-", 100, 200), ("new-", 90, 150), ("new-", 150, 210)]


@pytest.mark.parametrize(
    ("relevant", "where"), [("old-100", "bytes 100-200"), ("new-90", "bytes 90-150")]
)
def test_an_expected_id_of_either_side_has_its_place(
    folder: Folder, relevant: str, where: str
) -> None:
    """The traces hold ids alone; what lies where stands in the list of chunks of each run."""
    runs = []
    with temporary_store() as store:
        for prefix in ("old-", "new-"):
            index = Index("doc", TEXT, prefix, kept=())
            mine = [each for each in CHUNKS if each[0] == prefix]
            folder.write(
                f"{prefix}chunks.jsonl",
                [{"id": f"{prefix}{start}", "doc": "doc", "span": [start, end],
                  "text": TEXT[start:end]} for _, start, end in mine],
            )  # fmt: skip
            hits = [index.hit(start, end) for _, start, end in mine]
            run_store.keep_run(
                store, [item(relevant)], [asked(*hits)], run_id=prefix, profile="all",
                intervals=False, chunks=f"{prefix}chunks.jsonl",
            )  # fmt: skip
            runs.append(common_gold.StoredRun(store, run_store.find_run(store, prefix)))
        a, b = runs
        aligned = align.align(a, b, detailed=True)
        (one, _), (other, _) = compare.describe_run(a), compare.describe_run(b)
        comparison = compare.compare(aligned, one, other)
        with details_of_comparison(a, b, aligned, comparison) as details:
            (found,) = details
    (expected,) = found.expected
    assert (expected.name, expected.doc, expected.where) == (relevant, "doc", where)
