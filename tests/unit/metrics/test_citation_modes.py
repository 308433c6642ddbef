"""When a cited span agrees with a gold span: the three modes, and where they are chosen."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.support.cases import cases
from tests.support.command import Folder, Outcome, Row

GOLD: list[Row] = [
    {"qid": "q", "question": "?", "relevant": [{"doc": "d.md", "start": 1000, "end": 1200}]}
]
ONLY = ("--profile", "all", "--metrics", "citation.accuracy", "--format", "json")
MODES = ("within", "endpoints", "overlap")

# The gold span is 1000 to 1200, widened by 30 it is 970 to 1230.
EDGES = [
    # cited           within  endpoints overlap
    ((1000, 1200), (True, True, True)),
    ((970, 1230), (True, True, True)),
    ((969, 1200), (False, False, True)),
    ((1000, 1231), (False, False, True)),
    ((1030, 1170), (True, True, True)),
    ((1031, 1170), (True, False, True)),
    ((1030, 1169), (True, False, True)),
    ((1100, 1101), (True, False, True)),
    ((970, 1000), (False, False, True)),  # inside the window, but it does not overlap the gold
    ((970, 1001), (True, False, True)),
    ((1199, 1230), (True, False, True)),
    ((1200, 1230), (False, False, True)),
    ((900, 970), (False, False, False)),  # half-open: it ends where the window begins
    ((900, 971), (False, False, True)),
    ((1229, 1300), (False, False, True)),
    ((1230, 1300), (False, False, False)),
    ((0, 5000), (False, False, True)),
]


def cited(*spans: tuple[int, int]) -> list[Row]:
    citations = [{"doc": "d.md", "start": start, "end": end} for start, end in spans]
    return [{"qid": "q", "answer_json": {"claim": "x", "citations": citations}}]


def accuracy(outcome: Outcome) -> Any:
    return json.loads(outcome.out)["metrics"]["citation.accuracy"]["value"]


@cases(("span", "agrees"), EDGES)
def test_the_edges_of_the_window(
    folder: Folder, span: tuple[int, int], agrees: tuple[bool, bool, bool]
) -> None:
    """Each mode on both sides of each edge."""
    found = [
        accuracy(folder.score(cited(span), *ONLY, "--citation-mode", mode, gold=GOLD))
        for mode in MODES
    ]
    assert found == [float(each) for each in agrees]


def test_one_citation_that_agrees_is_enough(folder: Folder) -> None:
    """Whatever the others say."""
    outcome = folder.score(cited((0, 9), (1000, 1200), (5000, 6000)), *ONLY, gold=GOLD)
    assert accuracy(outcome) == 1.0


def test_another_document_never_agrees(folder: Folder) -> None:
    """Not even where the mode asks for little."""
    rows = cited((1000, 1200))
    rows[0]["answer_json"]["citations"][0]["doc"] = "other.md"
    outcome = folder.score(rows, *ONLY, "--citation-mode", "overlap", gold=GOLD)
    assert accuracy(outcome) == 0.0


def test_without_a_choice_the_span_must_lie_within(folder: Folder) -> None:
    """1031 to 1170 tells within from endpoints, 969 to 1200 from overlap."""
    assert accuracy(folder.score(cited((1031, 1170)), *ONLY, gold=GOLD)) == 1.0
    assert accuracy(folder.score(cited((969, 1200)), *ONLY, gold=GOLD)) == 0.0


@pytest.mark.parametrize("mode", MODES)
def test_the_mode_is_recorded(folder: Folder, mode: str) -> None:
    """In the options of the scores document, and it comes back with saved scores."""
    outcome = folder.score(
        cited((1031, 1170)), *ONLY, "--citation-mode", mode, "-o", "scores.json", gold=GOLD
    )
    options = json.loads(outcome.out)["options"]
    assert (options["citation_mode"], options["citation_window"]) == (mode, 30)
    again = folder.run(
        "gate", "scores.json", "--gates", "citation.accuracy=0", "--format", "json"
    )  # fmt: skip
    assert json.loads(again.out)["options"] == options


def test_mode_and_window_may_stand_in_the_configuration(folder: Folder) -> None:
    """A window of 10: 990 to 1210; the command line's mode wins, and the window stays."""
    folder.write("ragauge.toml", '[citation]\nmode = "endpoints"\nwindow = 10\n')
    outcome = folder.score(cited((990, 1210)), *ONLY, gold=GOLD)
    assert accuracy(outcome) == 1.0
    options = json.loads(outcome.out)["options"]
    assert (options["citation_mode"], options["citation_window"]) == ("endpoints", 10)
    assert accuracy(folder.score(cited((989, 1210)), *ONLY, gold=GOLD)) == 0.0
    assert accuracy(folder.score(cited((1100, 1110)), *ONLY, gold=GOLD)) == 0.0
    within = folder.score(cited((1100, 1110)), *ONLY, "--citation-mode", "within", gold=GOLD)
    assert accuracy(within) == 1.0
    assert json.loads(within.out)["options"]["citation_window"] == 10
    far = folder.score(cited((989, 1200)), *ONLY, "--citation-mode", "within", gold=GOLD)
    assert accuracy(far) == 0.0


def test_a_window_of_nothing(folder: Folder) -> None:
    """Endpoints must then be equal, and a span that touches does not overlap."""
    folder.write("ragauge.toml", '[citation]\nmode = "endpoints"\nwindow = 0\n')
    assert accuracy(folder.score(cited((1000, 1200)), *ONLY, gold=GOLD)) == 1.0
    assert accuracy(folder.score(cited((1000, 1199)), *ONLY, gold=GOLD)) == 0.0
    touching = folder.score(cited((1200, 1300)), *ONLY, "--citation-mode", "overlap", gold=GOLD)
    assert accuracy(touching) == 0.0


def test_an_unknown_mode_is_refused(folder: Folder) -> None:
    """On the command line and in the configuration: exit code 2."""
    assert folder.score(cited((0, 9)), "--citation-mode", "near", gold=GOLD).exit_code == 2
    folder.write("ragauge.toml", '[citation]\nmode = "near"\n')
    outcome = folder.score(cited((0, 9)), gold=GOLD)
    assert (outcome.exit_code, outcome.codes) == (2, {"bad-config"})


def test_a_window_below_zero_is_refused(folder: Folder) -> None:
    """It would make the gold span smaller, which nobody can mean."""
    folder.write("ragauge.toml", "[citation]\nwindow = -5\n")
    assert folder.score(cited((1000, 1200)), gold=GOLD).exit_code == 2
