"""The target `command:` and programs that write more lines, or others, than they were asked for.

Whether a line comes before or after the next question is asked is a matter of chance. What is
asserted holds in both cases: no answer of one question stands as that of another.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest

from ragauge.model.target import RevisingTarget, TargetError, TargetOptions, TargetQuestion
from ragauge.run import run
from ragauge.run.resume import FOLLOWS
from ragauge.targets.command import TOO_MANY, CommandTarget
from tests.cli.test_run import problem, status, stored
from tests.support.command import Folder

# `say` writes lines at once; `answer` may name its slot, or its id.
BEGINNING = """
import json, sys
def say(*rows):
    texts = [row if isinstance(row, str) else json.dumps(row) for row in rows]
    sys.stdout.write("".join(text + "\\n" for text in texts)); sys.stdout.flush()
def answer(asked, *names):
    return {"hits": [asked["question"]], **{name: asked[name] for name in names}}
NAMES = sys.argv[1:]
questions = map(json.loads, sys.stdin)
"""
ONCE = "for asked in questions: say(answer(asked, *NAMES))\n"
TWICE = "for asked in questions: say(*[answer(asked, *NAMES)] * 2)\n"
GREETING = f"say({{'status': 'ready', 'answer': 'warm-up'}})\n{ONCE}"
# The second line of an answer is written when the next question was read.
LATE = """
before = []
for asked in questions:
    say(*before, answer(asked, *NAMES))
    before = [answer(asked, *NAMES)]
"""
FAREWELL = f"{ONCE}say('4 questions were answered')\n"
LOGGING = f"say('Loading model...')\n{ONCE}"
SLOT, QID = ("slot",), ("qid",)


def command(program: str, *names: str) -> str:
    Path("program.py").write_text(BEGINNING + program)
    return " ".join([f"command:{sys.executable} program.py", *names])


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


@contextmanager
def opened(program: str, *names: str) -> Iterator[CommandTarget]:
    target = run.open_target(command(program, *names), TargetOptions(timeout=60.0))
    assert isinstance(target, CommandTarget)
    with closing(target):
        yield target


def question(number: int, **more: Any) -> TargetQuestion:
    return TargetQuestion(qid=f"Q{number}", text=f"text {number}", number=number, **more)


def outcomes(target: CommandTarget, count: int) -> dict[int, str]:
    """What becomes of questions: `right`, `wrong`, or the reason of an error."""
    found = {}
    for number in range(count):
        try:
            given = target.ask(question(number))
            found[number] = "right" if given.get("hits") == [f"text {number}"] else "wrong"
        except TargetError as error:
            found[number] = error.reason
    return {**found, **target.settle()}


@pytest.mark.parametrize("names", [(), SLOT, QID, (*SLOT, *QID)])
@pytest.mark.parametrize("program", [ONCE, FAREWELL])
def test_one_line_for_each_question_is_in_order(program: str, names: tuple[str, ...]) -> None:
    with opened(program, *names) as target:
        assert outcomes(target, 5) == dict.fromkeys(range(5), "right")
        assert target.doubts == 0


@pytest.mark.slow
@pytest.mark.parametrize("names", [(), SLOT, QID])
@pytest.mark.parametrize("program", [TWICE, GREETING], ids=["twice", "greeting"])
def test_a_line_too_many_is_an_error_of_every_question(
    program: str, names: tuple[str, ...]
) -> None:
    with opened(program, *names) as target:
        assert outcomes(target, 5) == dict.fromkeys(range(5), TOO_MANY)


@pytest.mark.slow
@pytest.mark.parametrize("count", [2, 3, 4, 5])
@pytest.mark.parametrize("names", [(), SLOT, QID])
def test_a_late_line_is_never_the_answer_to_the_next_question(
    names: tuple[str, ...], count: int
) -> None:
    with opened(LATE, *names) as target:
        found = outcomes(target, count)
    assert set(found.values()) <= {"right", TOO_MANY}
    assert found[0] == TOO_MANY


def test_one_question_costs_only_the_answers_of_its_process_that_have_no_name() -> None:
    once_twice = """
for asked in questions:
    names = () if asked["question"] == "text 1" else NAMES
    say(*[answer(asked, *names)] * (2 if asked["question"] == "text 3" else 1))
"""
    with opened(once_twice, "qid") as target:
        found = outcomes(target, 6)
    # Q1 has no name and Q3 was answered twice; 4 and 5 were asked of another process
    assert found == {**dict.fromkeys(range(6), "right"), 1: TOO_MANY, 3: TOO_MANY}


def test_an_id_is_no_name_where_it_has_several_slots() -> None:
    with opened(TWICE, "qid") as target:
        for seed in range(3):
            target.ask(TargetQuestion(qid="Q", text="text", seed=seed, number=seed))
        assert set(target.settle()) == {0, 1, 2}
    with opened(ONCE, "qid", "seed") as target:
        for seed in range(3):
            target.ask(TargetQuestion(qid="Q", text="text", seed=seed, number=seed))
        assert not any(process.unnamed for process in target.idle)


def test_a_line_that_is_no_answer_is_an_error_of_one_question() -> None:
    with opened(LOGGING) as target:
        found = outcomes(target, 3)
    for reason in found.values():
        assert reason.startswith("a line of the output is no JSON")
        assert reason.endswith("Loading model...")
    with opened("for asked in questions: say('7')\n") as target:
        assert outcomes(target, 2) == dict.fromkeys(
            range(2), "an answer is an object or a list of hits, got 7"
        )


def test_garbage_before_an_answer_does_not_harm_the_answers_before() -> None:
    garbage = """
for asked in questions:
    say(*["Loading..."] * (asked["question"] == "text 2"), answer(asked))
"""
    with opened(garbage) as target:
        found = outcomes(target, 5)
    assert found.pop(2).startswith("a line of the output is no JSON")
    assert set(found.values()) == {"right"}


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        ({"slot": 9}, "the answer is for slot 9, and slot 1 was asked"),
        ({"slot": "1x"}, "the answer is for slot 1x, and slot 1 was asked"),
        ({"qid": "Z"}, "the answer is for `Z`, and `Q1` was asked"),
    ],
)
def test_an_answer_for_another_question_is_an_error_of_its_own(
    row: dict[str, Any], reason: str
) -> None:
    other = f"""
for asked in questions:
    say({{**answer(asked), **({row!r} if asked["slot"] == 1 else {{}})}})
"""
    with opened(other) as target:
        found = outcomes(target, 2)
    assert found == {0: "right", 1: reason}


def test_a_program_that_names_slots_names_them_always() -> None:
    forgetful = """
for asked in questions:
    say(answer(asked, *(NAMES if asked["slot"] != 2 else ())))
"""
    with opened(forgetful, "slot") as target:
        found = outcomes(target, 4)
    told = "the answer names no `slot`, as other answers of the program do: "
    assert found == {0: "right", 1: "right", 2: f'{told}{{"hits":["text 2"]}}', 3: "right"}


def test_the_slot_is_no_part_of_the_answer() -> None:
    with opened(ONCE, "slot") as target:
        assert target.ask(question(3)) == {"hits": ["text 3"]}
    with opened(
        "for asked in questions: say({**answer(asked), 'slot': str(asked['slot'])})\n"
    ) as target:
        assert target.ask(question(3)) == {"hits": ["text 3"]}


def test_a_model_over_a_program_takes_back_what_the_program_does() -> None:
    address = "openai:http://127.0.0.1:9/v1?model=m"
    settings = {"retriever": command(TWICE)}
    with closing(run.open_target(address, TargetOptions(settings=settings))) as target:
        target.retriever.ask(question(4))  # type: ignore[attr-defined]
        assert isinstance(target, RevisingTarget)
        assert set(target.settle()) == {4}


# --- ragauge run


@pytest.fixture
def gold(folder: Folder, monkeypatch: pytest.MonkeyPatch) -> Folder:
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1794733200")
    rows = [{"qid": f"Q{n}", "question": f"c{n}", "relevant": [f"c{n}"]} for n in range(6)]
    folder.write("gold.jsonl", rows)
    return folder


def asking(program: str, *names: str, run_id: str = "one") -> list[str]:
    return ["run", "--gold", "gold.jsonl", "--target", command(program, *names), "--run-id", run_id,
            "--profile", "all", "--no-timing", "--format", "json"]  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("concurrency", ["1", "4"])
@pytest.mark.parametrize("program", [TWICE, GREETING], ids=["twice", "greeting"])
def test_a_run_of_shifted_answers_has_errors_and_no_hits(
    gold: Folder, program: str, concurrency: str
) -> None:
    done = gold.run(*asking(program), "--concurrency", concurrency)
    assert done.exit_code == 4
    assert "stored 6 results as one in sqlite:///ragauge.db, 6 of them errors" in done.err
    rows = [row[-1] for row in stored(gold)["results"]]
    assert [row["error"] for row in rows] == [TOO_MANY] * 6
    assert not any(row.get("hits") for row in rows)
    assert json.loads(done.out)["counts"]["errored"] == 6


@pytest.mark.slow
def test_a_mended_program_is_asked_again(gold: Folder) -> None:
    gold.run(*asking(TWICE))
    (gold.path / "program.py").write_text(BEGINNING + ONCE)
    again = gold.run("run", "--resume", "one", "--retry-errors", "--format", "json")
    assert again.exit_code == 0, again.err
    gold.run(*asking(ONCE, run_id="two"))
    assert stored(gold)["results"] == stored(gold, "two")["results"]


def test_turns_after_an_answer_that_does_not_stand_do_not_stand_either(gold: Folder) -> None:
    rows = [
        {"qid": qid, "turn": turn, "question": f"{qid}{turn}", "relevant": [f"{qid}{turn}"]}
        for qid in "CD"
        for turn in (1, 2, 3)
    ]
    gold.write("gold.jsonl", rows)
    once_twice = """
for asked in questions:
    say(*[answer(asked, "slot")] * (2 if asked["question"] == "C2" else 1))
"""
    gold.run(*asking(once_twice), "--concurrency", "1", "--allow-errored")
    found = {row[-1]["question"]: row[-1].get("error") for row in stored(gold)["results"]}
    assert found == {
        "C1": None, "C2": TOO_MANY, "C3": FOLLOWS, "D1": None, "D2": None, "D3": None,
    }  # fmt: skip


def test_answers_that_do_not_stand_count_as_errors(gold: Folder) -> None:
    done = gold.run(*asking(TWICE), "--max-errors", "3", "--concurrency", "1")
    assert (done.exit_code, problem(done)[0]) == (4, "too-many-errors")
    assert status(gold) == "incomplete"
    assert {row[7] for row in stored(gold)["results"]} == {"errored"}
