"""JSON Schemas fit every file that is read or written, and refuse what readers refuse."""

from __future__ import annotations

import copy
import json
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from ragauge import registry
from ragauge.errors import RagaugeError
from ragauge.files.fields import FieldError
from ragauge.formats.schemas.catalogue import SCHEMAS, schema_text
from ragauge.formats.schemas.descriptions import COMPARE_FIELDS
from ragauge.formats.traces import RowReader
from ragauge.gates.judge import gate
from ragauge.model.options import Options
from ragauge.model.scores_document import from_document, to_document
from tests.conformance.runs import ORDINARY_GOLD, ORDINARY_TRACE, random_rows, scored
from tests.support.cases import cases
from tests.support.command import GOLD, TRACES, Folder
from tests.support.effort import examples

ROOT = Path(__file__).resolve().parents[3]
Row = dict[str, Any]
NATIVE = RowReader(registry.dialect("native"), own=False)


@cache
def validator(name: str, *, closed: bool = False) -> Draft202012Validator:
    """A validator; a closed one also refuses keys that the schema does not know."""
    schema = SCHEMAS[name]()
    return Draft202012Validator(_closed(schema) if closed else schema)


def _closed(node: Any) -> Any:
    if isinstance(node, list):
        return [_closed(each) for each in node]
    if not isinstance(node, dict):
        return node
    made = {key: _closed(value) for key, value in node.items()}
    if isinstance(made.get("properties"), dict) and "additionalProperties" not in made:
        made["additionalProperties"] = False
    return made


def complaints(name: str, value: Any, *, closed: bool = False) -> list[str]:
    found = validator(name, closed=closed).iter_errors(value)
    return [f"{each.json_path}: {each.message[:200]}" for each in found]


def rows_in(path: Path) -> Iterator[Row]:
    text = path.read_text("utf-8")
    yield from json.loads(text) if text.startswith("[") else map(json.loads, text.splitlines())


def refusal(kind: str, row: Row) -> FieldError | None:
    """Why the reader of that kind refuses a row; None if it takes it."""
    try:
        NATIVE.gold(row) if kind == "gold" else NATIVE.trace(row)
    except FieldError as error:
        return error
    return None


def read(kind: str, row: Row) -> bool:
    return refusal(kind, row) is None


# --- the schemas themselves ---


@cases("name", SCHEMAS)
def test_a_schema_is_one_and_names_no_host(name: str) -> None:
    schema = SCHEMAS[name]()
    Draft202012Validator.check_schema(schema)
    assert schema["$id"].startswith(f"urn:ragauge:schema:{name}:")
    text = schema_text(name)
    assert json.loads(text) == schema
    assert text.count("://") == 1  # the language that the schema is written in


@cases("name", SCHEMAS)
def test_the_command_prints_the_schema(folder: Folder, name: str) -> None:
    outcome = folder.run("schema", name)
    assert outcome.exit_code == 0
    assert outcome.out == schema_text(name)
    assert outcome.err == ""


@cases("name", SCHEMAS)
def test_the_file_in_the_docs_is_the_schema(name: str) -> None:
    path = ROOT / "docs" / "reference" / "schemas" / f"{name}.json"
    assert path.read_text("utf-8") == schema_text(name), "run `make docs`"


def test_an_unknown_schema_is_a_usage_error(folder: Folder) -> None:
    outcome = folder.run("schema", "run")
    assert outcome.exit_code == 2
    assert outcome.codes == {"usage"}


@pytest.mark.parametrize("name", ["gold", "trace"])
def test_every_known_field_has_a_description(name: str) -> None:
    item = SCHEMAS[name]()["$defs"]["item" if name == "gold" else "trace"]
    assert [key for key, field in item["properties"].items() if not field.get("description")] == []


def test_the_words_for_comparisons_are_those_of_its_keys() -> None:
    found = {
        each["description"] for each in _objects(SCHEMAS["compare"]()) if "description" in each
    }
    assert set(COMPARE_FIELDS.values()) - found == set()


def _objects(node: Any) -> Iterator[dict[str, Any]]:
    if isinstance(node, dict):
        yield node
    for each in node.values() if isinstance(node, dict) else node if isinstance(node, list) else ():
        yield from _objects(each)


# --- rows of files ---

FILES = [
    *(("gold", path) for path in sorted(ROOT.glob("examples/**/gold*.json*"))),
    *(("trace", path) for path in sorted(ROOT.glob("examples/**/[!g]*.jsonl"))),
    ("gold", ROOT / "src/ragauge/cli/demo_data/gold.jsonl"),
    ("trace", ROOT / "src/ragauge/cli/demo_data/trace.jsonl"),
]  # fmt: skip


@pytest.mark.slow
@cases(("kind", "path"), FILES, ids=lambda each: getattr(each, "name", each))
def test_files_of_the_project_fit(kind: str, path: Path) -> None:
    rows = list(rows_in(path))
    assert rows
    for row in [*rows, rows]:  # a file may be one array
        assert complaints(kind, row) == []


TITLED = re.compile(r"^```json title=(?P<name>\S+)\n(?P<text>.*?)^```", re.MULTILINE | re.DOTALL)


def shown_rows() -> Iterator[tuple[str, str, Row]]:
    for page in [ROOT / "README.md", *sorted(ROOT.glob("docs/**/*.md"))]:
        for block in TITLED.finditer(page.read_text("utf-8")):
            name = Path(block["name"]).name
            if not name.endswith("l"):
                continue
            for line in block["text"].splitlines():
                try:
                    yield page.name, name, json.loads(line)
                except ValueError:
                    continue  # a page that shows bad lines


def test_rows_on_pages_fit_unless_the_reader_refuses_them_too() -> None:
    seen = {"gold": 0, "trace": 0}
    for page, name, row in shown_rows():
        kinds = [
            kind for kind in seen if re.search({"gold": "gold|qa", "trace": "trac"}[kind], name)
        ]
        for kind in kinds:
            seen[kind] += 1
            if read(kind, row):
                assert complaints(kind, row) == [], (page, name)
    assert min(seen.values()) > 20, seen


def test_examples_of_metrics_fit() -> None:
    for metric in registry.metrics().values():
        traces = metric.example.trace
        assert complaints("gold", {"qid": "1", **metric.example.gold}) == [], metric.id
        for row in traces if isinstance(traces, list) else [traces]:
            assert complaints("trace", row) == [], metric.id


@cases("seed", range(20))
def test_random_valid_rows_fit(seed: int) -> None:
    gold, traces = random_rows(seed)
    for kind, rows in (("gold", gold), ("trace", traces)):
        for row in rows:
            assert read(kind, row)
            assert complaints(kind, row) == [], row


PLACE = {"doc": "guide.md", "start": 0, "end": 9}
GOOD_GOLD: list[Row] = [
    {"qid": "a"}, {"q_id": 7}, {"id": "x", "qid": None}, {"query_id": "x", "anything": [1]},
    {"qid": "a", "relevant": ["p1", 2, {"id": "p3"}, {"chunk_id": 4, "text": "t"}]},
    {"qid": "a", "relevant": [{"quote": "so"}, {"id": "b", "quote": "so"}]},
    {"qid": "a", "relevant": [PLACE, {**PLACE, "id": "b", "quote": "so", "section": "S.1"}]},
    {"qid": "a", "gold_spans": [{"doc_id": "d", "span": [0, 4]}]},
    {"qid": "a",
     "gold_spans": [{"doc_path": "d", "source_spans": [{"start_line": 1, "end_line": 2}]}]},
    {"qid": "a", "gold_spans": [{"doc": "d", "kind": "page", "page": 3}]},
    {"qid": "a", "groups": [["p1", PLACE], [2]], "grades": {"p1": 2, "p2": 0.5}},
    {"qid": "a", "expected_doc": "d", "negatives": [], "turn": 2, "draft": False},
    {"qid": "a", "expected_doc_ids": ["d", 4], "unit": " Characters ", "lang": None},
    {"qid": "a", "gold_claim": "so", "tags": ["x"]}, {"qid": "a", "gold_claim": ["so"]},
    {"qid": "a", "answerable": None, "paraphrases": None, "section_id": 4},
]  # fmt: skip
BAD_GOLD: list[Row] = [
    {}, {"qid": ""}, {"qid": None}, {"question": "no id"}, {"qid": True}, {"qid": 1.5},
    {"qid": 2**63}, {"qid": "a", "question": 7}, {"qid": "a", "paraphrases": "one"},
    {"qid": "a", "paraphrases": [1]}, {"qid": "a", "answerable": "yes"},
    {"qid": "a", "answerable": 1},
    {"qid": "a", "relevant": "p1"}, {"qid": "a", "relevant": [1.5]},
    {"qid": "a", "gold_ids": [None]},
    {"qid": "a", "relevant": [{}]}, {"qid": "a", "relevant": [{"doc": "d"}]},
    {"qid": "a", "relevant": [{"id": "x", "start": 0, "end": 4}]},
    {"qid": "a", "relevant": [{"start": 0, "end": 4}]},
    {"qid": "a", "relevant": [{"doc": "d", "quote": "so"}]},
    {"qid": "a", "relevant": [{"quote": " "}]},
    {"qid": "a", "relevant": [{"doc": "d", "start": -1, "end": 4}]},
    {"qid": "a", "relevant": [{"doc": "d", "span": [0]}]},
    {"qid": "a", "relevant": [{"doc": "d", "span": [0, 1, 2]}]},
    {"qid": "a", "relevant": [{"doc": "d", "span": "0-4"}]},
    {"qid": "a", "relevant": [{"doc": "d", "span": {}}]},
    {"qid": "a", "relevant": [{"doc": "d", "source_spans": [], "start": 0, "end": 4}]},
    {"qid": "a", "relevant": [{**PLACE, "quote": 7}]},
    {"qid": "a", "relevant": [{**PLACE, "unit": "em"}]},
    {"qid": "a", "relevant": [{"path": "d", "start": 0, "end": 4}]},
    {"qid": "a", "gold_spans": ["p1"]}, {"qid": "a", "gold_spans": [{"id": "p1"}]},
    {"qid": "a", "groups": ["p1"]}, {"qid": "a", "groups": [[]]}, {"qid": "a", "groups": [[None]]},
    {"qid": "a", "grades": ["p1"]}, {"qid": "a", "grades": {"p1": "2"}},
    {"qid": "a", "expected_doc": 1.5}, {"qid": "a", "relevant_docs": [None]},
    {"qid": "a", "anchor_section": ["S.1"]}, {"qid": "a", "negatives": "n"},
    {"qid": "a", "gold_claim_substr": "so"}, {"qid": "a", "gold_claim": 4},
    {"qid": "a", "must_contain": "so"}, {"qid": "a", "forbidden": [1]},
    {"qid": "a", "constraints": {}},
    {"qid": "a", "turn": "1"}, {"qid": "a", "turn": True}, {"qid": "a", "unit": "em"},
    {"qid": "a", "unit": 4}, {"qid": "a", "type": 1}, {"qid": "a", "tags": "x"},
    {"qid": "a", "group": 1}, {"qid": "a", "difficulty": 2}, {"qid": "a", "lang": []},
    {"qid": "a", "draft": True}, {"qid": "a", "draft": "no"},
]  # fmt: skip
GOOD_TRACE: list[Row] = [
    {}, {"qid": 7, "seed": "s", "turn": 1, "paraphrase": 0}, {"q": "?", "topk": []},
    {"topk": ["a", 2, {"id": "b", "score": 1, "text": None, "rank": "any"}]},
    {"topk": [{"path": "d", "offsets": [0, 4]}, {"doc": "d", "citation": {"start": 0, "end": 4}}]},
    {"retrieval": ["a"]}, {"retrieval": {"hits": [{"chunk_id": 1}], "other": 3}},
    {"answer": "text"}, {"answer": {"claim": "c", "citations": "none"}}, {"answer_json": {}},
    {"citations": "p1"}, {"citations": 7}, {"citations": ["a", {"citation": "b"}]},
    {"citations": [{"citation": {"doc": "d", "kind": "region", "x": 1}}]},
    {"citations": [{"doc": "d", "start": 0, "end": 4}], "error": {"code": 1}},
    {"ΔS": 0.5}, {"topk": ["a"], "delta_s": [None]}, {"λ_state": "→"}, {"lambda": 0.4},
    {"lambda_states": ["Convergent", " x "]}, {"lambda_state": 4}, {"lambda": "weight"},
    {"latency_ms": 12.5, "perf": {"t_retrieve_ms": 1, "t_reason_ms": {}}}, {"perf": 4},
    {"topk": [{"text": "so"}, {"snippet": "so"}, {"doc": "d", "text": "so", "start": 3}]},
    {"index_hash": 7, "metric": ["cosine"], "refused": False, "grounded": None},
]  # fmt: skip
BAD_TRACE: list[Row] = [
    {"qid": 1.5}, {"id": ["a"]}, {"question": 1}, {"paraphrase": "1"}, {"paraphrase": 1.5},
    {"seed": 1.5}, {"seed": True}, {"turn": "2"}, {"topk": "a"}, {"chunks": {"id": "a"}},
    {"topk": [None]}, {"topk": [1.5]}, {"topk": [{}]}, {"topk": [{"section": "d"}]},
    {"topk": [{"start": 0, "end": 4}]}, {"topk": [{"id": "a", "score": "0.8"}]},
    {"topk": [{"text": " "}]},
    {"topk": [{"id": "a", "text": 4}]}, {"topk": [{"id": "a", "type": 4}]},
    {"topk": [{"id": "a", "snippet": 4}]}, {"topk": [{"id": "a", "span": [0]}]},
    {"topk": [{"id": "a", "doc": 1.5}]}, {"topk": [{"id": "a", "doc_hash": []}]},
    {"topk": [{"id": "a", "chunker_version": 1.5}]}, {"topk": [{"id": "a", "delta_s": 3}]},
    {"topk": [{"id": "a", "citation": {"span": [0]}}]},
    {"retrieval": "a"}, {"retrieval": {"hits": "a"}}, {"retrieval": [{}]},
    {"answer": 4}, {"answer": ["a"]}, {"answer_json": "text"}, {"answer_json": {"claim": 4}},
    {"answer": {"text": 4}}, {"answer": {"citations": [None]}}, {"answer": {"refused": "no"}},
    {"answer": {"grounded": 1}}, {"answer": {"constraints_echo": "c"}}, {"answer_text": 4},
    {"citations": [None]}, {"citations": [{}]}, {"citations": [{"doc": "d"}]},
    {"citations": [{"citation": {}, "doc": "d", "start": 0, "end": 4}]},
    {"citations": [{"citation": {"doc": "d"}}]}, {"answer_citations": [1.5]},
    {"refused": "no"}, {"grounded": 0}, {"constraints_echo": [1]},
    {"ΔS": "0.5"}, {"ΔS": 2.5}, {"ΔS": -0.1}, {"topk": ["a"], "delta_s": ["0.5"]},
    {"answer": {"claim": "c", "delta_s": 3}}, {"lambda_state": "sideways"},
    {"λ_states": ["→", "sideways"]}, {"answer": {"lambda_final": "sideways"}},
    {"latency_ms": "12"}, {"latency_ms": -1}, {"elapsed_ms": 10**12},
    {"perf": {"t_reason_ms": "1"}},
]  # fmt: skip


@cases(
    ("kind", "row"),
    [("gold", row) for row in GOOD_GOLD] + [("trace", row) for row in GOOD_TRACE],
    ids=str,
)
def test_what_is_read_fits(kind: str, row: Row) -> None:
    assert read(kind, row)
    assert complaints(kind, row) == []


@cases(
    ("kind", "row"),
    [("gold", row) for row in BAD_GOLD] + [("trace", row) for row in BAD_TRACE],
    ids=str,
)
def test_what_is_refused_does_not_fit(kind: str, row: Row) -> None:
    assert not read(kind, row)
    assert complaints(kind, row) != []


def test_gold_that_is_not_pinned_does_not_fit_and_the_schema_says_so(folder: Folder) -> None:
    """The reader refuses it too; `gold pin` adds the offsets."""
    folder.write("docs/a.md", "# A\n\nRefunds take 14 days.\n")
    item = {"qid": "Q", "question": "q", "answerable": True,
            "relevant": [{"doc": "a.md", "quote": "Refunds take 14 days."}]}  # fmt: skip
    folder.write("gold.jsonl", [item])
    assert not read("gold", item)
    assert complaints("gold", item) != []
    assert "`ragauge gold pin`" in SCHEMAS["gold"]()["description"]
    assert folder.run("corpus", "build", "docs", "-o", "corpus").exit_code == 0
    done = folder.run("gold", "pin", "gold.jsonl", "--corpus", "corpus", "-o", "pinned.jsonl")
    assert done.exit_code == 0, done.err
    for pinned in rows_in(folder.path / "pinned.jsonl"):
        assert read("gold", pinned)
        assert complaints("gold", pinned) == []


@cases("kind", ["gold", "trace"])
@cases("row", [7, "text", None, [7], [[]]], ids=str)
def test_what_is_no_row_does_not_fit(kind: str, row: object) -> None:
    assert complaints(kind, row) != []


# Numbers that are no whole numbers have a fraction here: for JSON Schema 1.0 is a whole number,
# the readers take it as written.
SCALARS = st.one_of(
    st.none(), st.booleans(), st.integers(-3, 9), st.sampled_from([0.5, 2.5, -0.25]),
    st.sampled_from(["", "a", "S.1", "→", "byte", "chars", "sideways", "page", "0.5"]),
)  # fmt: skip
NAMES_INSIDE = st.sampled_from([
    "id", "chunk_id", "doc", "doc_path", "path", "section", "text", "quote", "claim", "citations",
    "span", "source_spans", "kind", "page", "unit", "score", "type", "citation", "refused", "hits",
    "delta_s", "lambda_state", "t_reason_ms", "constraints_echo", "snippet", "doc_hash",
])  # fmt: skip
PAIR = st.sampled_from([{"start": 0, "end": 4}, {"start_line": 1, "end_line": 1}, {}, {"start": 1}])
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.tuples(st.dictionaries(NAMES_INSIDE, inner, max_size=3), PAIR).map(
            lambda both: {**both[0], **both[1]}
        ),
        st.just([0, 4]),
    ),
    max_leaves=8,
)


def _names(kind: str) -> list[str]:
    schema = SCHEMAS[kind]()["$defs"]["item" if kind == "gold" else "trace"]
    return sorted(schema["properties"])


# Each in one spelling, so that none can disagree; that a list of ΔS is as long as the hits, that
# ends do not mix units and that citations meet their like, no schema can say.
UNSAYABLE = ("mixed-units", "field-conflict")


def changed(value: Any, data: st.DataObject) -> Any:
    """A copy in which something anywhere is removed or replaced."""
    made = copy.deepcopy(value)
    path = data.draw(st.sampled_from(sorted(_paths(made), key=str)))
    holder: Any = made
    for step in path[:-1]:
        holder = holder[step]
    if data.draw(st.booleans()):
        del holder[path[-1]]
    else:
        holder[path[-1]] = data.draw(VALUES)
    return made


def _paths(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    if path:
        yield path
    if isinstance(value, dict):
        for key in value:
            yield from _paths(value[key], (*path, key))
    elif isinstance(value, list):
        for place, each in enumerate(value):
            yield from _paths(each, (*path, place))


@pytest.mark.parametrize("kind", ["gold", "trace"])
@pytest.mark.slow
@examples(250)
@given(data=st.data())
def test_what_fits_is_read(kind: str, data: st.DataObject) -> None:
    """Rows of any fields, and rows that were right before something in them was changed."""
    if data.draw(st.booleans()):
        row = data.draw(st.dictionaries(st.sampled_from(_names(kind)), VALUES, max_size=2))
        row |= {"qid": "a"} if kind == "gold" else {}
    else:
        right = GOOD_GOLD if kind == "gold" else GOOD_TRACE[1:]
        row = changed(data.draw(st.sampled_from(right)), data)
    if complaints(kind, row):
        return
    refused = refusal(kind, row)
    assert refused is None or refused.code in UNSAYABLE or "for each of the" in refused.message, (
        row,
        refused.message,
    )


# --- documents ---


@pytest.mark.slow
@pytest.mark.parametrize("full", [False, True])
@pytest.mark.parametrize("profile", sorted(registry.profiles()))
def test_scores_of_every_profile_fit_and_hold_no_key_that_the_schema_lacks(
    tmp_path: Path, profile: str, full: bool
) -> None:
    for gold, traces in ((ORDINARY_GOLD, ORDINARY_TRACE), (ORDINARY_GOLD, []), random_rows(3)):
        scores = scored(tmp_path, gold, traces, profile=profile, hashes=full)
        document = json.loads(json.dumps(to_document(scores, gate(scores), full=full)))
        assert complaints("scores", document, closed=True) == []


@cases("profile", sorted(registry.profiles()))
def test_written_scores_of_every_profile_fit(folder: Folder, profile: str) -> None:
    """Also those of `ship`, whose JSON has the keys of its source in front."""
    folder.score(None, "--profile", profile, "--full", "-o", "scores.json")
    document = json.loads((folder.path / "scores.json").read_text("utf-8"))
    assert complaints("scores", document) == []


def test_measured_delta_s_fits(folder: Folder) -> None:
    traces = [{**row, "retrieved_ids": None, "topk": [{"id": "p1#1", "text": "X rejects keys."}]}
              for row in TRACES]  # fmt: skip
    outcome = folder.score(
        traces, "--profile", "all", "--embed", "hashing", "--embed-cache", "none",
        "--verify-delta-s", "--format", "json",
    )  # fmt: skip
    document = json.loads(outcome.out)
    assert document["delta_s"]["measured"]
    assert complaints("scores", document, closed=True) == []


@pytest.mark.parametrize("name", ["score-all.json", "score-ship-full.json"])
def test_golden_scores_fit(name: str) -> None:
    document = json.loads((ROOT / "tests/golden/expected" / name).read_text("utf-8"))
    assert complaints("scores", document) == []


@pytest.fixture(scope="module")
def document(tmp_path_factory: pytest.TempPathFactory) -> Row:
    scores = scored(tmp_path_factory.mktemp("scores"), ORDINARY_GOLD, ORDINARY_TRACE,
                    metrics=["answer.precision", "retrieval.recall@2", "answer.coverage"],
                    hashes=True, k=[2], options=Options(min_n=1))  # fmt: skip
    found: Row = json.loads(json.dumps(to_document(scores, gate(scores), full=True)))
    return found


@pytest.mark.slow
@examples(150)
@given(data=st.data())
def test_scores_that_fit_are_read(document: Row, data: st.DataObject) -> None:
    """One key is removed, or its value replaced: what fits then can still be read."""
    other = changed(document, data)
    if complaints("scores", other):
        return
    said = ""
    try:
        from_document(json.dumps(other).encode(), "scores.json")
    except RagaugeError as error:
        said = str(error)
    # That bands ascend, and that slices have no metrics of their own, no schema can say.
    assert not said or "bands must not descend" in said or "in a slice" in said


@pytest.mark.parametrize("change", [{"label": "GOOD"}, {"labels": {"GOOD": 1}}])
def test_labels_are_those_that_are_read(document: Row, change: Row) -> None:
    """One that nobody knows does not fit, and is an error where it is read."""
    first, *others = document["questions"]
    other = {**document, "questions": [{**first, **change}, *others]}
    assert complaints("scores", other) != []
    with pytest.raises(RagaugeError, match="has the label `GOOD`"):
        from_document(json.dumps(other).encode(), "scores.json")


def test_a_slice_with_a_metric_of_its_own_is_an_error_and_no_crash(document: Row) -> None:
    parts = {
        "type": {"table": {"n": 1, "metrics": {"no.such": {"value": 1, "n": 1, "interval": None}}}}
    }
    data = json.dumps({**document, "slices": parts}).encode()
    with pytest.raises(RagaugeError, match=r"`no\.such` in a slice"):
        from_document(data, "scores.json")


def test_a_scores_document_of_another_version_does_not_fit(document: Row) -> None:
    assert complaints("scores", document) == []
    assert complaints("scores", {**document, "schema": "ragauge.scores/1"}) != []


@pytest.mark.slow
@pytest.mark.parametrize("profile", sorted(registry.profiles()))
def test_comparisons_of_every_profile_fit_and_hold_no_unknown_key(
    folder: Folder, profile: str
) -> None:
    folder.write("gold.jsonl", GOLD)
    wrong = [{**TRACES[0], "retrieved_ids": ["p9"]}, {**TRACES[1], "answer_json": {"claim": "Z."}}]
    folder.write("a.jsonl", TRACES)
    folder.write("b.jsonl", wrong)
    outcome = folder.run(
        "compare", "a.jsonl", "b.jsonl", "--gold", "gold.jsonl", "--profile", profile,
        "--format", "json",
    )  # fmt: skip
    assert outcome.out, outcome.err
    document = json.loads(outcome.out)
    assert complaints("compare", document, closed=True) == []
    assert len(document["per_query"]) == 3
    for key in document:
        without = {name: value for name, value in document.items() if name != key}
        assert complaints("compare", without) != [], key
