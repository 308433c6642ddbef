"""The benchmarks run, and stop where values disagree; how fast anything is, no test says."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.e2e.process import environment
from tests.support.postgres import server_url

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
KEPT = "measured in another year, and kept"
PAGE = f"# Old\n\n<!-- score:begin -->\n{KEPT}\n<!-- score:end -->\n"
TINY = ("--questions", "500", "--metrics", "4", "--repeats", "1000")
TIMEOUT = 120

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("benchmarks")]


def python(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    """Run an interpreter that finds the modules of the benchmarks."""
    return subprocess.run(
        [sys.executable, *map(str, arguments)],
        cwd=BENCHMARKS,
        env=environment(PYTHONDONTWRITEBYTECODE="1"),
        capture_output=True,
        encoding="utf-8",
        timeout=TIMEOUT,
        check=False,
    )


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The data and the page of one small run over TREC files and one over resamples."""
    folder = tmp_path_factory.mktemp("benchmarks")
    page = folder / "page.md"
    page.write_text(PAGE, encoding="utf-8")
    done = python(
        "run.py", "--only", "trec", "--only", "resampling", "--rounds", "1", "--dir", folder,
        "--queries", "200", "--peers", "pytrec_eval", *TINY, "--write", page,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return folder


@pytest.fixture
def page(folder: Path) -> str:
    return (folder / "page.md").read_text(encoding="utf-8")


def block(page: str, name: str) -> str:
    """What stands between the markers of a benchmark."""
    found = re.search(f"<!-- {name}:begin -->\n(.*)\n<!-- {name}:end -->", page, re.DOTALL)
    assert found, f"there is no block {name}"
    return found[1]


def table(text: str, first: str) -> list[list[str]]:
    """The rows below the header whose first cell begins so."""
    lines = text.splitlines()
    start = next(n for n, line in enumerate(lines) if line.lstrip("| ").startswith(first))
    rows = []
    for line in lines[start + 2 :]:
        if not line.startswith("|"):
            break
        rows.append([cell.strip() for cell in line.strip("|").split("|")])
    return rows


def test_what_was_not_measured_stays_on_the_page(page: str) -> None:
    assert block(page, "score") == KEPT
    order = [page.index(f"<!-- {name}:begin -->") for name in ("score", "trec", "resampling")]
    assert order == sorted(order)


def test_the_trec_tables_have_each_contender(page: str) -> None:
    text = block(page, "trec")
    rows = table(text, "queries")
    assert [row[:3] for row in rows] == [["200", "ragauge", "1"], ["200", "pytrec_eval", "1"]]
    figures = [float(cell) for row in rows for cell in row[3:]]
    assert len(figures) == 2 * 6
    assert all(figure > 0 for figure in figures)
    assert [row[:2] for row in table(text, "target")] == [
        ["time of pytrec_eval", "≥ 5"],
        ["memory of pytrec_eval", "> 1"],
    ]


def test_every_trec_value_was_compared(page: str) -> None:
    # 200 queries × 6 metrics × 4 cut-offs
    assert "all 4,800 values of 200 queries with tied scores" in block(page, "trec")


@pytest.mark.parametrize(
    ("was", "becomes", "complaint"),
    [
        (r"\n101,([^,\n]*,[^,\n]*),\d\.\d{4},", r"\n101,\1,0.9999,", "of query 101 is 0.9999"),
        (r"\n101,[^\n]*", "", "199 queries in values.csv, 200"),
        (r"retrieval\.map@10", "retrieval.map@20", "lacks [('retrieval.map', 10)]"),
    ],
)
def test_a_wrong_value_stops_the_benchmark(
    folder: Path, tmp_path: Path, was: str, becomes: str, complaint: str
) -> None:
    ours = (folder / "trec" / "ties" / "values.csv").read_text(encoding="utf-8")
    wrong = tmp_path / "values.csv"
    compare = (
        "import sys, pathlib, trec; print(trec.compare_values(*map(pathlib.Path, sys.argv[1:])))"
    )
    theirs = folder / "trec" / "ties" / "pytrec_eval.json"
    wrong.write_text(ours, encoding="utf-8")
    assert python("-c", compare, wrong, theirs).stdout == "4800\n"
    changed = re.sub(was, becomes, ours)
    assert changed != ours
    wrong.write_text(changed, encoding="utf-8")
    done = python("-c", compare, wrong, theirs)
    assert done.returncode == 1
    assert complaint in done.stderr


def test_a_peer_that_is_not_installed_is_named(tmp_path: Path) -> None:
    hidden = "import sys, trec; trec.find_spec = lambda name: None; sys.exit(trec.main())"
    done = python("-c", hidden, "--peers", "ranx", "--dir", tmp_path)
    assert done.returncode == 1
    assert done.stderr.startswith("error: ranx not installed here\n  hint: ")


def test_the_resampling_tables_have_each_contender(page: str) -> None:
    text = block(page, "resampling")
    rows = table(text, "what")
    assert len(rows) == 1 + 4 * 2  # imports alone; each work by ragauge and by plain numpy
    assert rows[0][0] == "imports and data alone"
    assert [row[1].split()[0] for row in rows[1:]] == ["ragauge", "plain"] * 4
    assert all(float(row[3]) > 0 and float(row[4]) > 0 for row in rows[1:])
    limits = [row[1] for row in table(text, "target")]
    assert limits == ["< 2", "< 300", "< 2", "< 300"]  # intervals, then permutation


@pytest.fixture(scope="module")
def stored(tmp_path_factory: pytest.TempPathFactory) -> str:
    """What a small run over stored results writes where there is no PostgreSQL."""
    folder = tmp_path_factory.mktemp("stored")
    hidden = (
        "import sys, run, store_server; store_server._programs = lambda: None; sys.exit(run.main())"
    )
    done = python(
        "-c", hidden, "--only", "store", "--results", "300", "--compared", "200", "--rounds", "1",
        "--dir", folder, "--write", folder / "page.md",
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return block((folder / "page.md").read_text(encoding="utf-8"), "store")


def test_the_table_of_storing_has_each_contender(stored: str) -> None:
    rows = table(stored, "results")
    assert [row[1] for row in rows] == ["plain"] * 4 + ["placed"] * 4
    assert all(row[0] == "300" for row in rows)
    for script, unstored, sqlite, postgres in (rows[:4], rows[4:]):
        assert (script[2], script[4]) == ("plain script", "1.00")
        assert unstored[2] == "`score`, not stored"
        assert (script[5], unstored[5], unstored[7]) == ("", "", "")
        assert sqlite[2] == "`score --store=sqlite:///`"
        assert float(sqlite[3]) - float(unstored[3]) == pytest.approx(float(sqlite[5]), abs=0.02)
        assert all(float(row[3]) > 0 and float(row[4]) > 0 for row in (script, unstored, sqlite))
        assert postgres[2] == "`score --store=postgresql://`"
        assert postgres[3:] == ["no server", "", "", "", ""]


def test_the_table_of_comparing_has_each_situation(stored: str) -> None:
    rows = table(stored, "questions")
    assert [row[2] for row in rows] == ["plain script", "`compare --format json`"] * 3
    assert [row[1] for row in rows[::2]] == [row[1] for row in rows[1::2]]
    assert [row[1].partition(", ")[0] for row in rows[::2]] == [
        "same chunks", "other chunks", "other chunks",
    ]  # fmt: skip
    assert all(row[0] == "200" and float(row[3]) > 0 and float(row[4]) > 0 for row in rows)


def test_targets_are_not_reached_at_other_sizes(stored: str) -> None:
    rows = table(stored, "target")
    assert [row[1] for row in rows] == ["< 120"] * 4 + ["< 10"] * 3
    assert [row[3] for row in rows] == ["not at this size", "not measured"] * 2 + [
        "not at this size"
    ] * 3


def test_results_are_stored_on_a_server_that_is_named(
    request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    url = server_url(request.config)
    script = (
        "import sys, pathlib, store; size = store.Size(50, 10); place = pathlib.Path(sys.argv[1]); "
        "found = store.measured_storing(size, 1, place, sys.argv[2]); "
        "print(store.storing_table([each for _, some in found for each in some], size))"
    )
    done = python("-c", script, tmp_path, url)
    assert done.returncode == 0, done.stderr
    rows = table(done.stdout, "results")
    assert [row[2] for row in rows][3::4] == ["`score --store=postgresql://`"] * 2
    assert all(float(row[3]) > 0 and float(row[4]) > 0 for row in rows)


def test_another_count_stops_the_benchmark() -> None:
    check = (
        "import store; plain = {'win': 1, 'loss': 2}; "
        "store.check_kinds('ids', plain, {'kinds': {'retrieval': plain}}); print('agreed'); "
        "store.check_kinds('ids', plain, {'kinds': {'retrieval': {'win': 2, 'loss': 1}}})"
    )
    done = python("-c", check)
    assert (done.returncode, done.stdout) == (1, "agreed\n")
    assert done.stderr.startswith("error: ids: compare counts {'win': 2, 'loss': 1}, the plain")


def test_memory_is_measured_beside_that_of_the_plain_scorer(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    done = python("gold_memory.py", "--gold-sizes", "20,200", "--dir", tmp_path, "--write", page)
    assert done.returncode == 0, done.stderr
    measured = block(page.read_text(encoding="utf-8"), "gold")
    sizes = table(measured, "questions")
    assert [row[0] for row in sizes] == ["20"] * 4 + ["200"] * 4
    assert {row[5] for row in sizes if "baseline" in row[1]} == {"1.00"}
    assert len(table(measured, "from 20 to 200 questions")) == 4
    assert "target" not in measured  # only of a million questions is anything promised


def test_asking_is_measured_beside_a_bare_loop() -> None:
    done = python("runner.py", "--questions", "100", "--rounds", "1")
    assert done.returncode == 0, done.stderr
    assert "| `ragauge run` " in done.stdout
    assert "| bare loop of `http.client` |" in done.stdout
    assert " ms are added to a function that takes 1" in done.stdout


def test_two_versions_are_measured_side_by_side(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    size = ("--size", "0.002", "--rounds", "1", "--only", "TREC")
    done = python("versions.py", "--before", "HEAD", *size, "--write", page)
    assert done.returncode == 0, done.stderr
    assert "| `score`, TREC |" in block(page.read_text(encoding="utf-8"), "versions")
    assert done.stdout.rstrip().endswith("| yes         |")


def test_no_pattern_takes_more_than_linear_time() -> None:
    """Times are compared with each other only, and each verdict is the least of several."""
    done = python("patterns.py", "--rounds", "1")
    assert done.returncode == 0, done.stdout + done.stderr
    assert re.search(r"^[12]\d\d patterns, 0 of them slow$", done.stdout, re.MULTILINE), done.stdout


def test_citations_take_the_same_time_a_byte_at_any_length() -> None:
    """Sixteen times the answer: a search that is not linear takes sixteen times as long a byte."""
    done = python("patterns.py", "--citations")
    assert done.returncode == 0, done.stderr
    ratio = re.search(r"^ratio ([0-9.]+)", done.stdout, re.MULTILINE)
    assert ratio, done.stdout
    assert float(ratio[1]) < 5


def test_spans_are_imported_from_every_kind_of_file(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(PAGE, encoding="utf-8")
    done = python(
        "spans.py", "--spans", "800", "--rounds", "1", "--large", "1600",
        "--dir", tmp_path, "--write", page,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    for name in ("spans.pb", "spans.jsonl", "document.json"):
        assert done.stdout.count(name) >= 3, done.stdout  # both readers, and the large file
    text = page.read_text(encoding="utf-8")
    assert KEPT in text
    assert "<!-- spans:begin -->" in text


def test_the_overview_takes_as_long_with_more_days() -> None:
    """Twenty times the rows: a query that reads them all takes many times as long."""
    done = python("dashboard.py", "--days", "20", "--rounds", "5")
    rows = dict(re.findall(r"^\| `([^`]+)` .*\| ([0-9.]+) \|$", done.stdout, re.MULTILINE))
    assert {"/", "/alerts", "/ingest"} <= rows.keys(), done.stdout + done.stderr
    assert float(rows["/"]) < 4, done.stdout
