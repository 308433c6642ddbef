"""`calibrate`: ΔS of evidence, hard negatives and random texts, and the bands that follow."""

from __future__ import annotations

import json
import math
import tomllib
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from ragauge.diagnose.calibrate import CalibrationPairs, auc, fit_bands, pairs_of
from ragauge.gates.bands import zone_limit
from ragauge.model.chunk import Chunk
from ragauge.model.gold import Anchor, GoldItem
from ragauge.model.semantic import Bands
from ragauge.model.trace import Hit, Trace
from ragauge.scoring.known_texts import TextFinder, TextsById
from ragauge.spans import Span
from tests.support.command import Folder, Row
from tests.support.corpora import looked_up
from tests.support.literal_embedder import ID, plane_only


@pytest.fixture(autouse=True)
def caches(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "caches"))


def at(distance: float) -> str:
    """A text at this ΔS from the question `1 0`."""
    return f"{1 - distance:.6f} {math.sqrt(1 - (1 - distance) ** 2):.6f}"


def files(folder: Folder, count: int = 30) -> None:
    """Evidence from .30 on, hard negatives from .65 on, and others from .80 on, each .001 apart."""
    gold: list[Row] = []
    traces: list[Row] = []
    for number in range(count):
        step = number / 1000
        gold.append({
            "qid": f"Q{number:02}", "question": "1 0", "relevant": [f"e{number}"],
            "negatives": [f"n{number}"],
        })  # fmt: skip
        texts = {f"e{number}": 0.30 + step, f"n{number}": 0.65 + step, f"o{number}": 0.80 + step}
        traces.append({
            "qid": f"Q{number:02}", "question": "1 0",
            "topk": [{"id": name, "text": at(value)} for name, value in texts.items()],
        })  # fmt: skip
    folder.write("gold.jsonl", gold)
    folder.write("trace.jsonl", traces)


def run(folder: Folder, *options: str) -> dict[str, object]:
    outcome = folder.run(
        "calibrate", "gold.jsonl", "--traces", "trace.jsonl", "--embed", "plane",
        "--format", "json", *options,
    )  # fmt: skip
    assert outcome.exit_code == 0, outcome.err
    document: dict[str, object] = json.loads(outcome.out)
    return document


def test_pairs_are_measured_by_kind(folder: Folder, monkeypatch: pytest.MonkeyPatch) -> None:
    """30 values from .300 to .329: p50 is .3145, p10 .3029; all of them are in the stable zone."""
    plane_only(monkeypatch)
    files(folder)
    found = run(folder)
    groups = found["groups"]
    assert isinstance(groups, dict)
    positive = groups["positive"]
    assert positive["n"] == 30
    assert positive["percentiles"]["p50"] == pytest.approx(0.3145, abs=1e-4)
    assert positive["percentiles"]["p10"] == pytest.approx(0.3029, abs=1e-4)
    assert positive["zones"] == {"stable": 1.0, "transitional": 0.0, "risk": 0.0}
    assert positive["on_target"] == 1.0
    assert groups["negative"]["n"] == 30
    assert groups["negative"]["zones"]["risk"] == 1.0
    assert groups["random"]["n"] == 150  # five for each question
    assert found["auc"]["negative"] == 1.0  # type: ignore[index]
    assert found["embedder"] == ID
    assert found["lexical"] is False


def test_the_same_files_give_the_same_bytes(
    folder: Folder, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Random pairs are drawn by a hash of the question's id: also from a shuffled gold set."""
    plane_only(monkeypatch)
    files(folder)
    first = run(folder)
    lines = (folder.path / "gold.jsonl").read_text().splitlines(keepends=True)
    (folder.path / "gold.jsonl").write_text("".join(reversed(lines)))
    assert run(folder, "--embed-cache", "none") == first


def test_bands_are_written_for_the_configuration(
    folder: Folder, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is written can be used as it is."""
    plane_only(monkeypatch)
    files(folder)
    proposed = run(folder, "-o", "ragauge.toml")["proposed"]
    written = tomllib.loads((folder.path / "ragauge.toml").read_text())
    assert written == {"bands": {ID: proposed}}
    assert run(folder)["bands"] == proposed


def test_too_few_pairs_propose_nothing(folder: Folder, monkeypatch: pytest.MonkeyPatch) -> None:
    plane_only(monkeypatch)
    files(folder, 5)
    found = run(folder)
    assert found["proposed"] is None
    assert "too few" in str(found["reason"])
    outcome = folder.run(
        "calibrate", "gold.jsonl", "--traces", "trace.jsonl", "--embed", "plane", "-o", "b.toml"
    )
    assert (outcome.exit_code, outcome.codes) == (4, {"too-few"})
    assert not (folder.path / "b.toml").exists()


def test_an_embedder_that_separates_nothing_judges_no_gates(
    folder: Folder, monkeypatch: pytest.MonkeyPatch
) -> None:
    plane_only(monkeypatch)
    files(folder)
    text = (folder.path / "trace.jsonl").read_text()
    rows = [json.loads(line) for line in text.splitlines()]
    for row in rows:
        row["topk"] = [{**hit, "text": f"{at(0.5)} {hit['id']}"} for hit in row["topk"]]
    folder.write("trace.jsonl", rows)
    found = run(folder)
    assert found["auc"] == {"negative": 0.5, "random": 0.5}
    proposed = found["proposed"]
    assert isinstance(proposed, dict)
    assert proposed["calibration"]["judged"] is False


def test_what_has_no_text_is_counted(folder: Folder, monkeypatch: pytest.MonkeyPatch) -> None:
    plane_only(monkeypatch)
    files(folder)
    more: list[Row] = [
        {"qid": "X", "question": "1 0", "relevant": ["gone"], "negatives": ["gone too"]},
        {
            "qid": "Y",
            "question": "1 0",
            "relevant": [{"doc": "d", "start": 0, "end": 17, "quote": at(0.3)}],
        },
    ]
    with (folder.path / "gold.jsonl").open("a") as file:
        file.write("".join(json.dumps(each) + "\n" for each in more))
    found = run(folder)
    assert found["left_out"] == {"evidence without a text": 1, "negatives without a text": 1}
    assert found["groups"]["positive"]["n"] == 31  # type: ignore[index]


def test_without_any_text_nothing_is_measured(folder: Folder) -> None:
    files(folder)
    outcome = folder.run("calibrate", "gold.jsonl", "--embed", "hashing")
    assert (outcome.exit_code, outcome.codes, outcome.out) == (5, {"nothing-measured"}, "")


def test_an_embedder_is_needed(folder: Folder) -> None:
    files(folder)
    assert folder.run("calibrate", "gold.jsonl").exit_code == 2


def test_the_table_shows_the_three_kinds(folder: Folder, monkeypatch: pytest.MonkeyPatch) -> None:
    plane_only(monkeypatch)
    files(folder)
    outcome = folder.run("calibrate", "gold.jsonl", "--traces", "trace.jsonl", "--embed", "plane")
    for said in ("evidence  ", "hard negatives", "random texts", "proposed   stable < "):
        assert said in outcome.out
    lexical = folder.run("calibrate", "gold.jsonl", "--traces", "trace.jsonl", "--embed", "hashing")
    assert "lexical-hash-v1 (lexical)" in lexical.out


# What is random.


def drawn(
    items: list[GoldItem], texts: TextFinder, traces: list[Trace] | None = None
) -> CalibrationPairs:
    return pairs_of(items, TextsById(texts, traces or []))[0]


def named(item: GoldItem, number: int) -> GoldItem:
    """The same with a question by which its pairs are told."""
    return replace(item, qid=f"Q{number:02}", question=f"question {number}")


def words(number: int) -> str:
    """A text that shares no stretch with another one."""
    return f"{number:02} " * 9


PLACES = {f"c{number:02}": Chunk("d", (Span(100 * number, 100 * number + 90),), text=words(number))
          for number in range(12)}  # fmt: skip


def placed(number: int, start: int = 0, end: int = 90, **more: Any) -> Anchor:
    return Anchor(doc="d", spans=(Span(100 * number + start, 100 * number + end),), **more)


FORMS = {
    "id": lambda n: GoldItem(qid="", relevant=(f"c{n:02}",)),
    "place": lambda n: GoldItem(qid="", anchors=(placed(n),)),
    "pinned": lambda n: GoldItem(qid="", anchors=(placed(n, quote=words(n)),)),
    "id and place": lambda n: GoldItem(qid="", anchors=(placed(n, id=f"c{n:02}"),)),
    "a part": lambda n: GoldItem(qid="", anchors=(placed(n, 85, 90),)),
    "a quote": lambda n: GoldItem(qid="", anchors=(Anchor(doc="", spans=(), quote=words(n)),)),
    "a grade": lambda n: GoldItem(qid="", grades={f"c{n:02}": 1.0}),
    "a group": lambda n: GoldItem(qid="", groups=((f"c{n:02}",),)),
    "a known place": lambda n: GoldItem(qid="", relevant=("other",), places=(placed(n),)),
    "a negative": lambda n: GoldItem(qid="", relevant=("other",), negatives=(f"c{n:02}",)),
}


@pytest.mark.parametrize("form", FORMS)
def test_no_random_text_is_the_evidence_however_that_is_named(form: str) -> None:
    """Twelve chunks, five drawn for each question: with every form of gold the same ones."""
    items = [named(FORMS[form](number), number) for number in range(12)]
    found = drawn(items, TextFinder(PLACES, None)).random
    for number in range(12):
        mine = [text for question, text in found if question == f"question {number}"]
        assert len(mine) == 5
        assert words(number) not in mine
    by_id = [named(FORMS["id"](number), number) for number in range(12)]
    assert found == drawn(by_id, TextFinder(PLACES, None)).random


def test_a_hit_at_the_evidence_is_no_random_text() -> None:
    """Hits have ids of another chunker: their places tell that two of six touch the evidence."""
    hits = [
        Hit(f"h{number}", doc="d", text=words(number), spans=(Span(start, start + 50),))
        for number, start in enumerate((0, 49, 60, 110, 160, 210))
    ]
    item = GoldItem(qid="A", question="?", anchors=(Anchor(doc="d", spans=(Span(40, 60),)),))
    found = drawn([item], TextFinder({}, None), [Trace(qid="A", hits=tuple(hits))])
    assert {text for _, text in found.random} <= {words(number) for number in (2, 3, 4, 5)}
    assert found.random


@pytest.mark.parametrize(
    "item",
    [
        GoldItem(qid="A", question="?", relevant_docs=("d",)),
        GoldItem(qid="A", question="?", anchor_section="d#S.2"),
        GoldItem(qid="A", question="?", anchor_section="S.2", relevant_docs=("d",)),
    ],
)
def test_a_document_or_section_is_the_evidence_of_an_item_that_names_no_more(
    item: GoldItem,
) -> None:
    chunks = {
        f"{doc}{number}": Chunk(doc, (), section="S.2.1", text=words(number))
        for doc, number in (("d", 1), ("d", 2), ("e", 3), ("e", 4))
    }
    found = drawn([item], TextFinder(chunks, None)).random
    assert {text for _, text in found} == {words(3), words(4)}


@given(
    st.integers(0, 60), st.integers(1, 40), st.integers(5, 30), st.integers(0, 4),
    st.sampled_from("ABCDEFGH"),
)  # fmt: skip
def test_no_random_text_shares_a_byte_with_the_evidence(
    start: int, length: int, size: int, lap: int, qid: str
) -> None:
    """A document of 100 bytes, cut into chunks that overlap; the evidence lies anywhere."""
    text = "".join(chr(256 + place) for place in range(100))  # every character only once
    chunks = {
        f"c{at}": Chunk("d", (Span(at, at + size),), text=text[at : at + size])
        for at in range(0, 100 - size, max(1, size - lap))
    }
    anchor = Anchor(doc="d", spans=(Span(start, start + length),))
    found = drawn([GoldItem(qid=qid, question="?", anchors=(anchor,))], TextFinder(chunks, None))
    own = set(text[start : start + length])
    assert all(own.isdisjoint(said) for _, said in found.random)


def test_places_without_a_quote_are_read_from_the_corpus(tmp_path: Path) -> None:
    """Bytes 25 to 41 of the guide; its line 3 is all of that paragraph."""
    texts = TextFinder({}, looked_up(tmp_path))
    spans = [Span(25, 41), Span(3, 4, "line")]
    items = [
        GoldItem(qid=f"Q{n}", question="?", anchors=(Anchor(doc="guide.md", spans=(span,)),))
        for n, span in enumerate(spans)
    ]
    assert [text for _, text in drawn(items, texts).positive] == [
        "Bananas are not.", "Äpfel are red. Bananas are not.\n",
    ]  # fmt: skip


def test_gold_by_bytes_needs_no_quote_with_a_corpus(
    folder: Folder, monkeypatch: pytest.MonkeyPatch
) -> None:
    plane_only(monkeypatch)
    folder.write("docs/a.md", "# 0 1\n\n0.6 0.8\n")
    assert folder.run("corpus", "build", "docs", "-o", "corpus").exit_code == 0
    evidence = [{"doc": "a.md", "start": 7, "end": 14}]
    folder.write("gold.jsonl", [{"qid": "A", "question": "1 0", "relevant": evidence}])
    outcome = folder.run(
        "calibrate", "gold.jsonl", "--corpus", "corpus", "--embed", "plane", "--format", "json"
    )
    assert outcome.exit_code == 0, outcome.err
    groups = json.loads(outcome.out)["groups"]
    assert groups["positive"]["percentiles"]["p50"] == 0.4
    assert groups["random"]["n"] == 0  # the only block is the evidence


# The arithmetic.


@pytest.mark.parametrize(
    ("near", "far", "expected"),
    [
        ([0.1, 0.2], [0.3, 0.4], 1.0),
        ([0.3, 0.4], [0.1, 0.2], 0.0),
        ([0.1, 0.4], [0.2, 0.4], 0.625),  # nearer, nearer, further, a tie: 2.5 of 4
        ([0.2], [0.2], 0.5),
        ([], [0.2], None),
        ([0.2], [], None),
    ],
)
def test_auc_counts_pairs(near: list[float], far: list[float], expected: float | None) -> None:
    assert auc(np.array(near), np.array(far)) == expected


@given(st.lists(st.floats(0, 2), min_size=1), st.lists(st.floats(0, 2), min_size=1))
def test_auc_is_the_share_of_pairs(near: list[float], far: list[float]) -> None:
    wins = sum((one < other) + (one == other) / 2 for one in near for other in far)
    assert auc(np.array(near), np.array(far)) == pytest.approx(wins / (len(near) * len(far)))


def by_question(values: Iterable[float]) -> dict[str, list[float]]:
    return {f"Q{number:03}": [value] for number, value in enumerate(values)}


def test_edges_lie_between_evidence_and_the_others() -> None:
    """All evidence at .50, all others at .70: both edges are .60, and no question moves them."""
    fitted = fit_bands(by_question([0.5] * 40), by_question([0.7] * 40), 1.0, (40, 40), "others")
    bands = fitted.bands
    assert bands is not None
    assert (bands.stable, bands.risk) == (0.60, 0.60)
    assert bands.calibration is not None
    assert (bands.calibration.stable, bands.calibration.risk) == ((0.6, 0.6), (0.6, 0.6))
    assert (fitted.passes, fitted.fails) == (1.0, 1.0)


def test_evidence_passes_the_gates_that_it_was_not_made_from() -> None:
    """120 questions around .52 and .68, spread by .05: the halves agree on bands between them."""
    chance = np.random.default_rng(7)
    near, far = chance.normal(0.52, 0.05, 120).tolist(), chance.normal(0.68, 0.05, 120).tolist()
    fitted = fit_bands(by_question(near), by_question(far), 0.98, (120, 120), "hard negatives")
    bands = fitted.bands
    assert bands is not None
    assert bands.calibration is not None
    assert bands.calibration.judged
    assert np.median(near) < bands.stable < np.median(far)
    low, high = bands.calibration.stable
    assert low <= bands.stable <= high
    assert high - low < 0.05
    # p90 of evidence is .52 + 1.28 · .05 = .584, that of the others .744
    assert np.quantile(near, 0.9) < zone_limit("stable", "_p90", bands) < np.quantile(far, 0.9)
    assert fitted.passes is not None
    assert fitted.passes >= 0.95
    assert fitted.fails is not None
    assert fitted.fails >= 0.95


@pytest.mark.parametrize("apart", [0.74, 0.5])
def test_texts_that_are_not_apart_leave_the_gates_unjudged(apart: float) -> None:
    chance = np.random.default_rng(7)
    near, far = chance.normal(0.52, 0.1, 80).tolist(), chance.normal(0.55, 0.1, 80).tolist()
    fitted = fit_bands(by_question(near), by_question(far), apart, (80, 80), "hard negatives")
    assert fitted.bands is not None
    assert fitted.bands.calibration is not None
    assert not fitted.bands.calibration.judged
    assert replace(fitted.bands, calibration=None) == Bands()


def test_few_questions_fit_nothing() -> None:
    fitted = fit_bands(by_question([0.5] * 8), by_question([0.7] * 8), 1.0, (8, 8), "others")
    assert fitted.bands is None


@given(
    st.lists(st.floats(0, 2), min_size=30, max_size=40),
    st.lists(st.floats(0, 2), min_size=30, max_size=40),
)
@settings(max_examples=10, deadline=None)
def test_bands_never_descend(near: list[float], far: list[float]) -> None:
    bands = fit_bands(by_question(near), by_question(far), 0.9, (30, 30), "others").bands
    if bands is not None:
        assert 0 <= bands.stable <= bands.target <= bands.risk <= 2


# The gates of canary.


def canary_files(folder: Folder, distance: float, other: float) -> None:
    """40 questions, two wordings and seeds; the evidence is this far away, and cited."""
    gold: list[Row] = []
    traces: list[Row] = []
    for number in range(40):
        step = number / 1000
        texts = {f"e{number}": at(distance + step), f"n{number}": at(other + step)}
        gold.append({
            "qid": f"Q{number:02}", "paraphrases": ["1 0", "1.0 0"], "negatives": [f"n{number}"],
            "relevant": [{"id": f"e{number}", "doc": "d", "start": number, "end": number + 1}],
        })  # fmt: skip
        for wording in ("1 0", "1.0 0"):
            for seed in (1, 2):
                cited = {"id": f"e{number}", "doc": "d", "offsets": [number, number + 1]}
                traces.append({
                    "qid": f"Q{number:02}", "query": wording, "seed": seed,
                    "topk": [{"id": name, "text": text} for name, text in texts.items()],
                    "answer_citations": [cited],
                })  # fmt: skip
    folder.write("gold.jsonl", gold)
    folder.write("trace.jsonl", traces)


CALIBRATE = ("calibrate", "gold.jsonl", "--traces", "trace.jsonl", "--embed", "plane")
SHADOW = (
    "shadow", "--live", "trace.jsonl", "--shadow", "trace.jsonl", "--gold", "gold.jsonl",
    "--embed", "plane",
)  # fmt: skip


def test_a_perfect_system_is_eligible_against_itself(
    folder: Folder, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its ΔS is .52 and more: beyond .40 of the source, and well inside the bands of its own."""
    plane_only(monkeypatch)
    canary_files(folder, 0.52, 0.80)
    before = folder.run(*SHADOW)
    assert before.exit_code == 1
    assert "not eligible for canary: ΔS median, ΔS p90" in before.out
    assert "no bands are calibrated" in before.out
    assert folder.run(*CALIBRATE, "-o", "ragauge.toml").exit_code == 0
    after = folder.run(*SHADOW)
    assert after.exit_code == 0, after.out
    assert after.out.rstrip().endswith("eligible for canary")
    assert "by the source's numbers (<= 0.40): fail" in after.out
    scored = folder.run(
        "score", "gold.jsonl", "trace.jsonl", "--embed", "plane", "--allow-no-baseline"
    )
    assert scored.exit_code == 0, scored.out


def test_a_system_that_cites_hard_negatives_is_not(
    folder: Folder, monkeypatch: pytest.MonkeyPatch
) -> None:
    plane_only(monkeypatch)
    canary_files(folder, 0.52, 0.80)
    assert folder.run(*CALIBRATE, "-o", "ragauge.toml").exit_code == 0
    rows = [json.loads(line) for line in (folder.path / "trace.jsonl").read_text().splitlines()]
    for row in rows:
        row["answer_citations"] = [{"id": row["topk"][1]["id"]}]
    folder.write("wrong.jsonl", rows)
    judged = folder.run(*(name.replace("trace", "wrong") for name in SHADOW), "--format", "json")
    status = {gate["name"]: gate["status"] for gate in json.loads(judged.out)["verdict"]["gates"]}
    assert (status["delta_s_median"], status["delta_s_p90"]) == ("fail", "fail")


def test_gates_that_cannot_tell_are_not_judged_and_named_at_the_end(
    folder: Folder, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Hard negatives are as near as evidence: the AUC is about a half."""
    plane_only(monkeypatch)
    canary_files(folder, 0.52, 0.521)
    calibrated = folder.run(*CALIBRATE, "-o", "ragauge.toml")
    assert calibrated.exit_code == 0
    assert "gates on ΔS are not judged" in calibrated.out
    left = folder.run(*SHADOW)
    assert left.exit_code == 0, left.out
    last = " ".join(left.out.split("\n\n")[-1].split())
    assert last.startswith("eligible for canary (not judged: ΔS median, ΔS p90: ΔS of plane does")
    assert "AUC 0.5" in last
    scored = folder.run(
        "score", "gold.jsonl", "trace.jsonl", "--embed", "plane", "--allow-no-baseline",
        "-o", "junit:gates.xml", "--format", "github",
    )  # fmt: skip
    assert scored.exit_code == 0
    assert "::notice title=ragauge gate ΔS median%3A not judged::" in scored.out
    xml = (folder.path / "gates.xml").read_text("utf-8")
    assert "not-judged: ΔS median: " in xml
    assert "verdict: not-judged" in xml
    assert "waived: ΔS median" not in xml
    table = folder.run(
        "score", "gold.jsonl", "trace.jsonl", "--embed", "plane", "--allow-no-baseline"
    )
    risks = table.out.partition("how often the gates decide wrongly")[2].partition("\n\n")[0]
    assert "coverage" in risks
    assert "ΔS" not in risks
    required = folder.run(*SHADOW, "--require-delta-s")
    assert required.exit_code == 4
    assert "cannot be judged" in required.out
    alone = folder.run(
        "score", "gold.jsonl", "trace.jsonl", "--embed", "plane", "--profile", "all",
        "--gates", "semantic.delta_s_cited=stable",
    )  # fmt: skip
    assert alone.exit_code == 4
    assert "no gate is left to decide" in alone.out
    gates = (
        '"semantic.delta_s_cited" = { zone = "stable" }\n"retrieval.hit@5" = { max_drop = 0.1 }\n'
    )
    folder.write("gates.toml", gates)
    waived = folder.run(
        "score", "gold.jsonl", "trace.jsonl", "--embed", "plane", "--profile", "all",
        "--gates", "gates.toml", "--allow-no-baseline",
    )  # fmt: skip
    assert waived.exit_code == 4
    assert "no gate is left to decide" in waived.out


def test_a_stored_run_is_judged_by_the_bands_of_today(
    folder: Folder, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Calibration after the fact needs no new measurement; and a run keeps the bands it had."""
    plane_only(monkeypatch)
    canary_files(folder, 0.52, 0.80)
    score = ("score", "gold.jsonl", "trace.jsonl", "--embed", "plane", "--allow-no-baseline")
    assert folder.run(*score, "--store", "--run-id", "one").exit_code == 1
    assert folder.run(*CALIBRATE, "-o", "ragauge.toml").exit_code == 0
    assert folder.run("gate", "one", "--allow-no-baseline").exit_code == 0
    assert folder.run(*score, "--store", "--run-id", "two").exit_code == 0
    (folder.path / "ragauge.toml").unlink()
    assert folder.run("gate", "two", "--allow-no-baseline").exit_code == 0
    assert folder.run("gate", "one", "--allow-no-baseline").exit_code == 1
