"""`score --embed`: ΔS taken anew from texts, checked against what was recorded."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from ragauge import registry
from ragauge.formats import load
from ragauge.model.embedder import Embedding
from ragauge.model.semantic import Bands
from ragauge.scoring import score
from tests.support.command import GOLD, TRACES, Content, Folder, Outcome, Row
from tests.support.literal_embedder import ID, plane_only

# The question lies at (1, 0), so ΔS of a text of length 1 is 1 minus its first number.
ASKED = "1 0"
QUESTIONS: list[Row] = [
    {"qid": "A1", "question": ASKED, "relevant": ["near"], "anchor_section": "S.1"},
    {"qid": "A2", "question": ASKED, "relevant": ["right"], "anchor_section": "S.2"},
]
TEXTS = {"near": "0.8 0.6", "middle": "0.6 0.8", "right": "0 1", "back": "-1 0"}
DISTANCE = {"near": 0.2, "middle": 0.4, "right": 1.0, "back": 2.0}


def hit(name: str, **more: Any) -> Row:
    return {"id": name, "text": TEXTS[name], **more}


def trace(qid: str, *names: str, cites: Any = (), **more: Any) -> Row:
    return {
        "qid": qid,
        "question": ASKED,
        "topk": [hit(name) for name in names],
        "answer_citations": [{"id": name} for name in cites],
        **more,
    }


BOTH = [
    trace("A1", "near", "middle", "right", cites=("middle",)),
    trace("A2", "right", "back", "near", cites=("right", "near")),
]


@pytest.fixture(autouse=True)
def caches(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "caches"))


def measured(folder: Folder, traces: Content, *options: str, gold: Content = QUESTIONS) -> Outcome:
    return folder.score(
        traces, "--embed", "plane", "--profile", "all", "--metrics", "semantic.*",
        "--format", "json", "--full", *options, gold=gold,
    )  # fmt: skip


def values(outcome: Outcome) -> dict[str, float | None]:
    document = json.loads(outcome.out)
    return {name: each["value"] for name, each in document["metrics"].items()}


def test_distances_are_taken_from_texts(folder: Folder, monkeypatch: pytest.MonkeyPatch) -> None:
    """A1: hits .2 .4 1 (median .4), cited .4; A2: hits 1 2 .2 (median 1), cited 1."""
    plane_only(monkeypatch)
    outcome = measured(folder, BOTH)
    assert outcome.exit_code == 0, outcome.err
    found = values(outcome)
    assert found["semantic.delta_s_hits"] == pytest.approx(0.7)
    assert found["semantic.delta_s_cited"] == pytest.approx(0.7)
    document = json.loads(outcome.out)
    assert document["embedders"] == [ID]
    assert document["delta_s"]["embedder"] == ID
    assert document["delta_s"]["measured"] is True
    # .4 is where transitional begins, up to rounding of the vectors; 1 is risk.
    assert document["delta_s"]["zones"]["risk"] == 1
    # The evidence of A1 is at .2, that of A2 at 1: the median is .6, one is beyond .35.
    assert document["delta_s"]["anchors"] == {
        "n": 2, "median": 0.6, "p90": 0.92, "far": 1, "target": 0.35,
    }  # fmt: skip


def test_recorded_values_are_never_mixed_in(
    folder: Folder, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A hit or a citation without a text has no ΔS, whatever it recorded."""
    plane_only(monkeypatch)
    row = trace("A1", "middle", **{"ΔS": [0.11, 0.12, 0.13]})
    row["topk"] += [{"id": "bare"}, {"id": "empty", "text": "  "}]
    row["answer_citations"] = [{"id": "bare", "ΔS": 0.14}]
    outcome = measured(folder, [row], gold=QUESTIONS[:1])
    assert values(outcome)["semantic.delta_s_hits"] == pytest.approx(0.4)
    assert values(outcome)["semantic.delta_s_cited"] is None
    assert "1 hit without a text: no ΔS" in outcome.err


def test_the_question_may_stand_in_the_gold_set(
    folder: Folder, monkeypatch: pytest.MonkeyPatch
) -> None:
    plane_only(monkeypatch)
    gold = [{"qid": "A1", "paraphrases": ["0 1", ASKED], "relevant": ["near"]}]
    rows = [
        {"qid": "A1", "paraphrase": number, "topk": [hit("near")], "answer_citations": ["near"]}
        for number in (0, 1)
    ]
    outcome = measured(folder, rows, gold=gold)
    # 1 - 0.6 for the first wording, 1 - 0.8 for the second: 0.3 in the mean.
    assert values(outcome)["semantic.delta_s_cited"] == pytest.approx(0.3)


def test_texts_may_stand_in_a_list_of_chunks(
    folder: Folder, monkeypatch: pytest.MonkeyPatch
) -> None:
    plane_only(monkeypatch)
    chunk = {"id": "near", "doc": "d", "start": 0, "end": 7, "text": TEXTS["near"]}
    folder.write("chunks.jsonl", [chunk])
    rows = [{"qid": "A1", "question": ASKED, "topk": ["near"], "answer_citations": ["near"]}]
    outcome = measured(folder, rows, "--chunks", "chunks.jsonl", gold=QUESTIONS[:1])
    assert values(outcome)["semantic.delta_s_cited"] == pytest.approx(0.2)


def test_texts_may_stand_in_the_corpus(folder: Folder, monkeypatch: pytest.MonkeyPatch) -> None:
    """A hit that only says where it lies gets its text from there."""
    plane_only(monkeypatch)
    folder.write("docs/a.md", "# 0 1\n\n0.6 0.8\n")
    assert folder.run("corpus", "build", "docs", "-o", "corpus").exit_code == 0
    rows = [{"qid": "A1", "question": ASKED, "topk": [{"id": "x", "doc": "a.md", "span": [7, 14]}]}]
    outcome = measured(folder, rows, "--corpus", "corpus", gold=QUESTIONS[:1])
    assert values(outcome)["semantic.delta_s_hits"] == pytest.approx(0.4)


GUIDE = "# 0 1\n\n0.6 0.8\n\n0.8 0.6\n"  # paragraphs at 7 to 14 and at 16 to 23
FAR, NEAR = [7, 14], [16, 23]


def cited(folder: Folder, *citations: Row, hits: Sequence[Row] = ()) -> Outcome:
    folder.write("docs/a.md", GUIDE)
    assert folder.run("corpus", "build", "docs", "-o", "corpus").exit_code == 0
    row = {
        "qid": "A1", "question": ASKED, "topk": [*hits],
        "answer": {"claim": "x", "citations": [*citations]},
    }  # fmt: skip
    return measured(folder, [row], "--corpus", "corpus", gold=QUESTIONS[:1])


@pytest.mark.parametrize(
    ("citations", "distance"),
    [
        ([{"id": "mine", "doc": "a.md", "section": "S.1", "span": NEAR}], 0.2),
        ([{"doc": "a.md", "span": FAR}], 0.4),
        ([{"id": "a.md#S.1.p.Bk009", "span": FAR}], 0.4),  # the id names the document
        ([{"id": "gone"}, {"id": "mine", "doc": "a.md", "span": NEAR}], 0.2),
        ([{"id": "mine", "doc": "a.md", "span": FAR}, {"id": "h"}], 0.4),  # the first has a text
        ([{"id": "a.md#S.1.p.Bk001", "doc": "a.md", "span": NEAR}], 0.4),  # a block: all of it
    ],
    ids=["place", "no id", "grammar", "second", "first", "block"],
)
def test_a_citation_that_is_no_hit_has_the_text_of_its_place(
    folder: Folder, monkeypatch: pytest.MonkeyPatch, citations: list[Row], distance: float
) -> None:
    plane_only(monkeypatch)
    outcome = cited(folder, *citations, hits=[hit("right") | {"id": "h"}])
    assert values(outcome)["semantic.delta_s_cited"] == pytest.approx(distance)
    assert "without a citation" not in outcome.err


def test_a_cited_hit_is_measured_whole_as_it_was_retrieved(
    folder: Folder, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The citation points to a part of the hit; recorded ΔS are of hits, and so are these."""
    plane_only(monkeypatch)
    outcome = cited(folder, {"id": "h", "doc": "a.md", "span": NEAR}, hits=[
        {"id": "h", "doc": "a.md", "span": [7, 23]}
    ])  # fmt: skip
    assert values(outcome)["semantic.delta_s_cited"] == pytest.approx(0.4)
    assert values(outcome)["semantic.delta_s_hits"] == pytest.approx(0.4)


@pytest.mark.parametrize(
    "citation",
    [{"id": "gone"}, {"id": "mine", "doc": "b.md", "span": NEAR},
     {"id": "mine", "doc": "a.md", "span": [16, 99]}],
)  # fmt: skip
def test_citations_without_a_text_are_told(
    folder: Folder, monkeypatch: pytest.MonkeyPatch, citation: Row
) -> None:
    plane_only(monkeypatch)
    outcome = cited(folder, citation)
    assert values(outcome)["semantic.delta_s_cited"] is None
    told = "1 answer without a citation that has a text: no ΔS of what is cited"
    assert told in outcome.err
    silent = cited(folder)
    assert "without a citation" not in silent.err  # nothing is cited


def test_evidence_by_place_is_measured_from_the_corpus(
    folder: Folder, monkeypatch: pytest.MonkeyPatch
) -> None:
    plane_only(monkeypatch)
    folder.write("docs/a.md", GUIDE)
    assert folder.run("corpus", "build", "docs", "-o", "corpus").exit_code == 0
    evidence = [{"doc": "a.md", "start": 16, "end": 23}]
    gold = [{"qid": "A1", "question": ASKED, "relevant": evidence}]
    outcome = measured(folder, [trace("A1", "near")], "--corpus", "corpus", gold=gold)
    anchors = json.loads(outcome.out)["delta_s"]["anchors"]
    assert (anchors["n"], anchors["median"]) == (1, 0.2)


def test_recorded_values_are_checked(folder: Folder, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of four recorded values, .25 is .05 off and .9 is .1 off; the others fit."""
    plane_only(monkeypatch)
    rows = [
        trace("A1", "near", "middle", "right", embed_model="old", **{"ΔS": [0.25, 0.405, None]}),
        trace("A2", "right", "back", **{"ΔS": [0.9, 2.0]}),
    ]
    outcome = measured(folder, rows, "--verify-delta-s")
    found = json.loads(outcome.out)["delta_s"]["recheck"]
    assert (found["compared"], found["differing"]) == (4, 2)
    assert (found["worst"], found["tolerance"]) == (0.1, 0.01)
    assert found["recorded_by"] == ["old"]
    assert found["listed"] == [
        "trace.jsonl:1: hit 1 of A1: recorded 0.2500, measured 0.2000",
        "trace.jsonl:2: hit 1 of A2: recorded 0.9000, measured 1.0000",
    ]
    assert "2 of 4 recorded ΔS differ from the measured ones by more than 0.01" in outcome.err
    wide = measured(folder, rows, "--verify-delta-s", "0.07")
    assert json.loads(wide.out)["delta_s"]["recheck"]["differing"] == 1


@pytest.mark.parametrize("option", [["--verify-delta-s"], ["--embed-cache", "x.db"]])
def test_options_of_embedding_need_an_embedder(folder: Folder, option: list[str]) -> None:
    outcome = folder.score(BOTH, *option, gold=QUESTIONS)
    assert (outcome.exit_code, outcome.out) == (2, "")
    assert "need --embed NAME" in outcome.err


def test_texts_that_were_cut_off_are_told(folder: Folder, monkeypatch: pytest.MonkeyPatch) -> None:
    plane_only(monkeypatch)
    row = trace("A1")
    row["topk"] = [{"id": "long", "text": "0.6 0.8 and more words"}]
    outcome = measured(folder, [row], gold=QUESTIONS[:1])
    assert f"1 text was longer than {ID} reads" in outcome.err
    assert any("1 text was longer" in text for text in json.loads(outcome.out)["warnings"])


@pytest.mark.parametrize(("model", "warned"), [(ID, True), ("org/plane", True), ("other", False)])
def test_a_retriever_that_ranks_by_the_same_embedder_is_told(
    folder: Folder, monkeypatch: pytest.MonkeyPatch, model: str, warned: bool
) -> None:
    plane_only(monkeypatch)
    outcome = measured(folder, [trace("A1", "near", embed_model=model)], gold=QUESTIONS[:1])
    assert ("near by construction" in outcome.err) is warned
    assert json.loads(outcome.out)["embedders"] == [ID]


@pytest.mark.slow
def test_the_number_of_workers_and_the_cache_do_not_show(
    folder: Folder, monkeypatch: pytest.MonkeyPatch
) -> None:
    plane_only(monkeypatch)
    rows = [
        trace(
            f"Q{number}", *[("near", "middle", "right")[(number + each) % 3] for each in range(3)]
        )
        for number in range(900)
    ]
    gold = [{"qid": f"Q{number}", "question": ASKED, "relevant": ["near"]} for number in range(900)]
    first = measured(folder, rows, "--workers", "1", "--embed-cache", "none", gold=gold)
    assert first.exit_code == 0
    for options in (["--workers", "3"], ["--workers", "1"], ["--embed-cache", "other.db"]):
        assert measured(folder, rows, *options, gold=gold).out == first.out


@pytest.mark.parametrize("profile", ["ship", "smoke", "canary", "kb", "all"])
def test_other_metrics_are_what_they_are_without(
    folder: Folder, monkeypatch: pytest.MonkeyPatch, profile: str
) -> None:
    """Traces that go through the embedder are scored as those that do not."""
    plane = plane_only(monkeypatch)
    rows = [{**row, "q": None, "question": row["q"]} for row in TRACES]
    rows += [{"qid": "A1", "error": "timeout"}, {"qid": "stray", "retrieved_ids": []}]
    plain = folder.score(rows, "--profile", profile, "--format", "json", "--full", gold=GOLD)
    also = folder.score(
        rows, "--profile", profile, "--format", "json", "--full", "--embed", "plane", gold=GOLD
    )
    one, other = json.loads(plain.out), json.loads(also.out)
    assert other.pop("delta_s")["zones"] == {"stable": 0, "transitional": 0, "risk": 0}
    assert [each for each in other["warnings"] if "ΔS" not in each] == one.pop("warnings")
    del other["warnings"]
    assert one == other
    assert plain.exit_code == also.exit_code
    assert plane.asked == []  # where there is no text, questions are not embedded either


def test_bad_lines_keep_their_places(folder: Folder, monkeypatch: pytest.MonkeyPatch) -> None:
    plane_only(monkeypatch)
    good = json.dumps(BOTH[0], ensure_ascii=False)
    content = f"{good}\n\n17\n{good[:-5]}\n"
    plain = folder.score(content, gold=QUESTIONS)
    refused = folder.score(content, "--embed", "plane", gold=QUESTIONS)
    assert refused.exit_code == plain.exit_code == 3
    assert refused.problems == plain.problems
    assert [each.where for each in refused.problems] == ["trace.jsonl:3", "trace.jsonl:4"]
    skipped = folder.score(content, "--embed", "plane", "--on-bad-line=skip", gold=QUESTIONS)
    assert "skipped: trace.jsonl:3" in skipped.err


def test_a_json_array_keeps_its_lines(folder: Folder, monkeypatch: pytest.MonkeyPatch) -> None:
    plane_only(monkeypatch)
    rows = ",\n".join(json.dumps(each, ensure_ascii=False) for each in BOTH)
    outcome = measured(folder, f"[\n{rows}\n]")
    questions = json.loads(outcome.out)["questions"]
    assert [each["trace"] for each in questions] == ["trace.jsonl:2", "trace.jsonl:3"]


def test_a_trec_run_has_nothing_to_measure(folder: Folder) -> None:
    folder.write("qrels", "1 0 d 1\n")
    folder.write("run.txt", "1 Q0 d 1 0.5 x\n")
    outcome = folder.run("score", "qrels", "run.txt", "--embed", "hashing")
    assert (outcome.exit_code, outcome.codes) == (2, {"usage"})


def test_traces_in_memory_are_measured_too(monkeypatch: pytest.MonkeyPatch, folder: Folder) -> None:
    plane_only(monkeypatch)
    gold = load.load_gold(folder.write("gold.jsonl", QUESTIONS))
    traces = load.load_traces(folder.write("trace.jsonl", BOTH))
    scores = score.score(gold, traces, profile="all", embed=Embedding(name="plane", cache="none"))
    assert scores.metrics["semantic.delta_s_hits"].value == pytest.approx(0.7)


# What is decided.


def test_lexical_distances_feed_no_gate(folder: Folder) -> None:
    rows = [{**BOTH[0], "topk": [{"id": "near", "text": "one"}]}]
    gates = "semantic.delta_s_hits<=2"
    outcome = folder.score(
        rows, "--embed", "hashing", "--profile", "all", "--gates", gates, "--format", "json",
        gold=QUESTIONS[:1],
    )  # fmt: skip
    assert outcome.exit_code == 4
    assert "lexical-embedder" in outcome.codes
    assert "feeds no gate" in outcome.err


def test_measured_distances_feed_gates(folder: Folder, monkeypatch: pytest.MonkeyPatch) -> None:
    plane_only(monkeypatch)
    for bound, code in (("0.71", 0), ("0.69", 1)):
        gate = f'"semantic.delta_s_hits" = {{ threshold = {bound}, min_n = 1 }}\n'
        folder.write("bound.toml", gate)
        outcome = measured(folder, BOTH, "--gates", "bound.toml")
        assert outcome.exit_code == code


@pytest.mark.slow
def test_runs_of_different_embedders_are_not_compared(
    folder: Folder, monkeypatch: pytest.MonkeyPatch
) -> None:
    for run, name in (("one", "plane@1"), ("two", "plane@2"), ("three", "plane@2")):
        with monkeypatch.context() as patch:
            plane_only(patch, name)
            measured(folder, BOTH, "--store", "--run-id", run)
    folder.write("gates.toml", '"semantic.delta_s_hits" = { max_drop = 0.02, min_n = 1 }\n')
    options = ("--gates", "gates.toml", "--format", "json")
    apart = folder.run("compare", "one", "two", *options)
    delta = json.loads(apart.out)["deltas"]["semantic.delta_s_hits"]
    assert (delta["delta"], delta["reason"]) == (
        None,
        "ΔS of different embedders is never compared",
    )
    assert apart.exit_code == 4
    alike = folder.run("compare", "two", "three", *options)
    assert json.loads(alike.out)["deltas"]["semantic.delta_s_hits"]["delta"] == 0
    assert alike.exit_code == 0


def test_a_stored_run_keeps_its_embedder_and_its_distances(
    folder: Folder, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Scoring it again takes no text and no model: nothing changes."""
    with monkeypatch.context() as patch:
        plane_only(patch)
        measured(folder, BOTH, "--store", "--run-id", "one", "--verify-delta-s")
    assert "plane" not in registry.embedders()
    assert folder.run("rescore", "one").out == "one: unchanged\n"
    found = json.loads(folder.run("runs", "show", "one", "--format", "json").out)
    assert ID in json.dumps(found)


# Bands.


def test_bands_of_the_embedder_are_used(folder: Folder, monkeypatch: pytest.MonkeyPatch) -> None:
    """Cited .4 and 1: with these bands the first is risk, the second too."""
    plane_only(monkeypatch)
    folder.write("ragauge.toml", f'[bands."{ID}"]\nstable = 0.1\ntarget = 0.2\nrisk = 0.3\n')
    outcome = measured(folder, BOTH)
    found = json.loads(outcome.out)["delta_s"]
    assert found["bands"] == {"stable": 0.1, "target": 0.2, "risk": 0.3}
    assert found["zones"] == {"stable": 0, "transitional": 0, "risk": 2}
    compact = folder.score(
        BOTH, "--embed", "plane", "--profile", "all", "--format", "compact", gold=QUESTIONS
    )
    assert json.loads(compact.out)["bad_qids"] == ["A1", "A2"]


def test_zones_are_shown_in_the_table(folder: Folder, monkeypatch: pytest.MonkeyPatch) -> None:
    """Cited: A1 at .4, which rounding may put on either side, and A2 at 1."""
    plane_only(monkeypatch)
    options = ("--embed", "plane", "--profile", "all", "--metrics", "semantic.*")
    outcome = folder.score(BOTH[1:], *options, gold=QUESTIONS[1:])
    told = "questions by zone of ΔS: stable 0, transitional 0, risk 1"
    assert told in " ".join(outcome.out.split())


def test_bands_are_used_for_recorded_distances_of_their_embedder(folder: Folder) -> None:
    folder.write("ragauge.toml", "[bands.own]\nstable = 0.1\ntarget = 0.2\nrisk = 0.3\n")
    row = trace("A1", "near", cites=("near",), embed_model="own", **{"ΔS": [0.25]})
    options = ("--profile", "all", "--metrics", "semantic.*", "--format", "json")
    outcome = folder.score([row], *options, gold=QUESTIONS[:1])
    found = json.loads(outcome.out)["delta_s"]
    assert found["zones"] == {"stable": 0, "transitional": 1, "risk": 0}
    assert "measured" not in found
    other = folder.score([{**row, "embed_model": "other"}], *options, gold=QUESTIONS[:1])
    assert "delta_s" not in json.loads(other.out)


@pytest.mark.parametrize(
    "bands",
    ["stable = 0.5\ntarget = 0.4", "risk = 3", "riks = 0.5"],
    ids=["order", "range", "name"],
)
def test_bands_that_make_no_sense_are_refused(folder: Folder, bands: str) -> None:
    folder.write("ragauge.toml", f"[bands.x]\n{bands}\n")
    outcome = folder.score(BOTH, gold=QUESTIONS)
    assert (outcome.exit_code, outcome.codes) == (2, {"bad-config"})


@pytest.mark.parametrize(
    ("value", "zone"),
    [(0.3999, "stable"), (0.40, "transitional"), (0.5999, "transitional"), (0.60, "risk")],
)
def test_zones_of_the_source_documents(value: float, zone: str) -> None:
    assert Bands().zone(value) == zone


def test_the_embedder_may_stand_in_the_configuration(
    folder: Folder, monkeypatch: pytest.MonkeyPatch
) -> None:
    plane_only(monkeypatch)
    folder.write("ragauge.toml", 'embed = "plane"\nembed_cache = "vectors.db"\n')
    outcome = folder.score(
        BOTH, "--profile", "all", "--metrics", "semantic.*", "--format", "json", gold=QUESTIONS
    )
    assert json.loads(outcome.out)["embedders"] == [ID]
    assert (folder.path / "vectors.db").exists()
