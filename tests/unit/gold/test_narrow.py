"""`gold pin --narrow`: a chunk becomes the sentence that holds the answer, and never by a guess."""

from __future__ import annotations

import io
import json
from typing import Any

import pytest

from tests.support.command import Folder, Outcome, Row

TEXT = (
    "The port is 8080 by default. Größe counts in bytes. The service listens on localhost only.\n"
    "\n"
    "A second paragraph names the limit. The limit is forty requests a second. Then it waits.\n"
)
CHUNK: Row = {"id": "c1", "doc": "guide.md", "start": 0, "end": len(TEXT.encode())}


def narrow(folder: Folder, gold: list[Row], *options: str, stdin: str = "") -> Outcome:
    (folder.path / "docs").mkdir(exist_ok=True)
    folder.write("docs/guide.md", TEXT)
    folder.write("chunks.jsonl", [CHUNK])
    folder.write("gold.jsonl", gold)
    if not (folder.path / "corpus").exists():
        assert folder.run("corpus", "build", "docs", "-o", "corpus").exit_code == 0
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("sys.stdin", io.StringIO(stdin))
        return folder.run(
            "gold", "pin", "gold.jsonl", "--corpus", "corpus", "--chunks", "chunks.jsonl",
            "-o", "new.jsonl", *options,
        )  # fmt: skip


def entry(folder: Folder, row: int = 0) -> dict[str, Any]:
    lines = (folder.path / "new.jsonl").read_text("utf-8").splitlines()
    (found,) = json.loads(lines[row])["relevant"]
    value: dict[str, Any] = found
    return value


def item(qid: str = "A", **more: Any) -> Row:
    return {"qid": qid, "question": "What is the limit?", "relevant": ["c1"], **more}


def test_a_string_that_stands_once_tells_its_sentence(folder: Folder) -> None:
    """The bytes are those of the document, in which `ö` and `ß` are two each."""
    outcome = narrow(folder, [item(gold_claim_substr=["forty requests"])], "--narrow")
    assert outcome.exit_code == 0, outcome.err
    found = entry(folder)
    start = len(TEXT[: TEXT.index("The limit is")].encode())
    sentence = "The limit is forty requests a second."
    assert (found["start"], found["end"]) == (start, start + len(sentence))
    assert (found["quote"], found["grain"], found["by"]) == (sentence, "evidence", "string")
    assert found["narrowed_from"] == {"id": "c1", "start": 0, "end": len(TEXT.encode())}
    assert "id" not in found
    assert "1 entries narrowed to the sentence with a string" in outcome.out


@pytest.mark.parametrize("string", ["limit", "8080", "nowhere to be found"])
def test_what_no_string_tells_is_left(folder: Folder, string: str) -> None:
    """It stands twice, is shorter than five characters, or is not there."""
    outcome = narrow(folder, [item(gold_claim_substr=[string])], "--narrow")
    assert entry(folder)["grain"] == "chunk"
    assert "1 entries left as whole chunks" in outcome.out


def test_a_person_chooses_among_sentences(folder: Folder) -> None:
    """Those with words of the question come first; the third time it is a number of the list."""
    outcome = narrow(folder, [item()], "--narrow", stdin="9\nx\n2\n")
    shown = [line for line in outcome.err.splitlines() if line.startswith("   1  ")]
    assert shown == ["   1  The limit is forty requests a second."]  # `is`, `the`, `limit`
    found = entry(folder)
    assert (found["grain"], found["by"]) == ("evidence", "person")
    assert found["quote"] in TEXT


def test_nobody_there_leaves_all(folder: Folder) -> None:
    narrow(folder, [item(), item("B")], "--narrow")
    assert (entry(folder)["grain"], entry(folder, 1)["grain"]) == ("chunk", "chunk")


def comparison(folder: Folder, count: int) -> None:
    queries = [
        {"query_id": f"q{n:02}", "turn": None, "regression": "open" if n % 2 else "no"}
        for n in range(count)
    ]
    folder.write("cmp.json", json.dumps({"per_query": queries}))


def test_only_open_questions_and_a_sample_of_them(folder: Folder) -> None:
    """Of ten open ones four are drawn, the same every time, and the gold set says so."""
    comparison(folder, 20)
    gold = [item(f"q{n:02}", gold_claim_substr=["forty requests"]) for n in range(20)]
    options = ("--narrow", "--open", "cmp.json")
    narrow(folder, gold, *options)
    grains = [entry(folder, n)["grain"] for n in range(20)]
    assert grains == ["chunk", "evidence"] * 10
    drawn = []
    for seed in ("0", "0", "1"):
        outcome = narrow(folder, gold, *options, "--sample", "4", "--seed", seed)
        assert "4 entries narrowed" in outcome.out
        drawn.append([n for n in range(20) if entry(folder, n)["grain"] == "evidence"])
    assert drawn[0] == drawn[1] != drawn[2]
    origin = entry(folder, drawn[2][0])["narrowed_from"]
    assert (origin["drawn"], origin["of"], origin["seed"]) == (4, 10, 1)


def test_narrowing_again_changes_nothing(folder: Folder) -> None:
    narrow(folder, [item(gold_claim_substr=["forty requests"])], "--narrow")
    first = (folder.path / "new.jsonl").read_text("utf-8")
    rows = [json.loads(line) for line in first.splitlines()]
    narrow(folder, rows, "--narrow")
    assert (folder.path / "new.jsonl").read_text("utf-8") == first


@pytest.mark.parametrize("options", [("--open", "cmp.json"), ("--narrow", "--sample", "3")])
def test_options_that_need_others(folder: Folder, options: tuple[str, ...]) -> None:
    comparison(folder, 2)
    assert narrow(folder, [item()], *options).exit_code == 2


def test_a_file_that_is_no_comparison(folder: Folder) -> None:
    folder.write("cmp.json", "[]")
    outcome = narrow(folder, [item()], "--narrow", "--open", "cmp.json")
    assert (outcome.exit_code, outcome.codes) == (3, {"not-rows"})
