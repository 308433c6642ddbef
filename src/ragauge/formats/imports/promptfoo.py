"""promptfoo: results of `eval -o` as traces; results or `promptfooconfig.yaml` as a gold set."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import msgspec

from ragauge.errors import Place, RagaugeError
from ragauge.formats.imports.coverage import Coverage
from ragauge.formats.imports.foreign_format import ForeignFile, ForeignFormat, ImportOptions, Row
from ragauge.formats.imports.json_file import json_objects
from ragauge.formats.imports.row_parts import (
    distinct_items,
    expect_answers,
    first_of,
    head_names,
    id_of,
    text_of,
)
from ragauge.text import REFUSAL_TOKEN, normalise, some

_QUESTIONS = ("question", "query", "user_input", "input", "prompt", "message", "q")
_QIDS = ("qid", "q_id", "query_id", "question_id", "id")
_ERROR = 2
"""The `failureReason` of a call that failed; 1 is an assertion, which is no error of the system."""
_ROW = {"testCase", "vars"}
_CSV = {"Status", "Score", "Grader Reason"}
_HIT_LISTS = ("retrieved", "hits", "documents", "sources", "context")


def _recognise(file: ForeignFile) -> bool:
    row = file.first_row
    results = row.get("results")
    if isinstance(results, dict):
        return isinstance(results.get("results"), list) or "evalId" in row
    if "tests" in row:
        return _is_config(row)
    names = head_names(file)
    return names >= _ROW or names >= _CSV or _are_tests(file)


def _is_config(row: Row) -> bool:
    tests = row["tests"]
    listed = isinstance(tests, list) and all(isinstance(test, dict) for test in tests)
    cases = listed and any("vars" in test or "assert" in test for test in tests)
    return cases or "prompts" in row or "providers" in row


def _are_tests(file: ForeignFile) -> bool:
    row = file.first_row
    return isinstance(row.get("vars"), dict) and isinstance(row.get("assert", []), list)


def _results(files: Sequence[ForeignFile]) -> Iterator[tuple[ForeignFile, Row]]:
    """The results in files: of one JSON document, or a line each."""
    for file in files:
        for row in json_objects(file):
            inner = row.get("results")
            if isinstance(inner, dict) and isinstance(inner.get("results"), list):
                for result in inner["results"]:
                    if isinstance(result, dict):
                        yield file, result
            else:
                yield file, row


def _read_traces(
    files: Sequence[ForeignFile], options: ImportOptions, coverage: Coverage
) -> Iterator[Row]:
    results = list(_results(files))
    for file, row in results:
        if "vars" not in row or not ({"response", "promptIdx", "provider"} & row.keys()):
            raise _unscorable(file, row)
    runs = _runs([row for _, row in results])
    names = list(dict.fromkeys(runs))
    if options.run is not None and options.run not in names:
        hint = f"runs in the file: {_listed(names)}"
        raise RagaugeError.of("usage", f"there is no run `{options.run}`", hint=hint)
    if options.run is None and len(names) > 1:
        raise _several(results[0][0], names)
    for (file, row), run in zip(results, runs, strict=True):
        if options.run in (None, run):
            yield _trace(row, file, options, coverage)


def _runs(rows: Sequence[Row]) -> list[str]:
    """The name of the run that each result belongs to: a provider, and a prompt if it has some."""
    providers = [_provider(row) for row in rows]
    prompts: dict[str, set[Any]] = {}
    for provider, row in zip(providers, rows, strict=True):
        prompts.setdefault(provider, set()).add(_prompt(row))
    return [
        provider if len(prompts[provider]) == 1 else f"{provider}, prompt {_prompt(row)}"
        for provider, row in zip(providers, rows, strict=True)
    ]


def _provider(row: Row) -> str:
    provider = row.get("provider")
    if isinstance(provider, dict):
        provider = first_of(provider, "label", "id")
    return str(provider) if provider is not None else "unnamed provider"


def _prompt(row: Row) -> str:
    """The label of a prompt, before it was filled in; the index counts providers as well."""
    prompt = row.get("prompt")
    label = prompt.get("label") if isinstance(prompt, dict) else None
    return str(row.get("promptIdx", "") if label is None else label)


def _trace(row: Row, file: ForeignFile, options: ImportOptions, coverage: Coverage) -> Row:
    trace = _identity(row.get("testCase"), row.get("vars"), file, options)
    if "question" not in trace and isinstance(row.get("prompt"), dict):
        raw = text_of(row["prompt"].get("raw"))
        if raw is not None:
            trace["question"] = raw
            coverage.note("questions taken from the whole prompt")
    response = row.get("response")
    response = response if isinstance(response, dict) else {}
    metadata = response.get("metadata")
    hits = _hits(metadata if isinstance(metadata, dict) else {})
    if hits is not None:
        trace["hits"] = hits
    failed = row.get("failureReason") == _ERROR or first_of(response, "error") is not None
    error = first_of(response, "error") or (row.get("error") if failed else None)
    if failed:
        trace["error"] = str(error or "error").strip().partition("\n")[0]
    else:
        _set_answer(trace, response.get("output"))
    latency = row.get("latencyMs")
    if isinstance(latency, int | float) and not isinstance(latency, bool) and latency >= 0:
        trace["latency_ms"] = latency
    return trace


def _set_answer(trace: Row, output: Any) -> None:
    """The output as the answer: a text, or an object with a text and perhaps citations."""
    if isinstance(output, str):
        trace["answer"] = output
    elif isinstance(output, dict):
        text = first_of(output, "answer", "text", "output", "response", "claim")
        trace["answer"] = text if isinstance(text, str) else msgspec.json.encode(output).decode()
        if isinstance(output.get("citations"), list):
            trace["citations"] = output["citations"]
    elif output is not None:
        trace["answer"] = msgspec.json.encode(output).decode()


def _hits(metadata: Mapping[str, Any]) -> list[Any] | None:
    for name in _HIT_LISTS:
        listed = metadata.get(name)
        if isinstance(listed, str) and listed.strip():
            listed = [listed]
        if not isinstance(listed, list):
            continue
        # Texts stand under `context`; elsewhere a bare string is an id.
        return [
            {"text": entry} if isinstance(entry, str) and name == "context" else entry
            for entry in listed
        ]
    return None


def _read_gold(
    files: Sequence[ForeignFile], options: ImportOptions, coverage: Coverage
) -> Iterator[Row]:
    return distinct_items(_items(files, options, coverage), coverage)


def _items(
    files: Sequence[ForeignFile], options: ImportOptions, coverage: Coverage
) -> Iterator[Row]:
    for file, row in _results(files):
        if "tests" in row:
            common = row.get("defaultTest")
            common = common if isinstance(common, dict) else {}
            tests = row["tests"]
            if not isinstance(tests, list):
                tests = [tests]
            for test in tests:
                if not isinstance(test, dict):
                    raise _elsewhere(file, test)
                yield _item(_with_common(test, common), None, file, options, coverage)
        elif isinstance(row.get("testCase"), dict):
            yield _item(row["testCase"], row.get("vars"), file, options, coverage)
        elif isinstance(row.get("vars"), dict):
            yield _item(row, None, file, options, coverage)
        else:
            raise _unscorable(file, row)


def _with_common(test: Row, common: Row) -> Row:
    """A test case with what `defaultTest` says of all."""
    merged = {**common, **test}
    for name in ("vars", "metadata"):
        parts = (part for part in (common.get(name), test.get(name)) if isinstance(part, dict))
        merged[name] = {key: value for part in parts for key, value in part.items()}
    asserts = [part for part in (common.get("assert"), test.get("assert")) if part]
    merged["assert"] = [one for part in asserts if isinstance(part, list) for one in part]
    return merged


def _item(
    test: Row, variables: Any, file: ForeignFile, options: ImportOptions, coverage: Coverage
) -> Row:
    item = _identity(test, variables, file, options)
    metadata = test.get("metadata")
    if isinstance(metadata, dict) and isinstance(metadata.get("relevant"), list):
        item["relevant"] = metadata["relevant"]
    expected = _Expected()
    for assertion in test.get("assert") or ():
        expected.add(assertion, coverage)
    expected.write(item, coverage)
    return item


class _Expected:
    """What the assertions of a test case come to."""

    def __init__(self) -> None:
        self.refuse = False
        self.claims: list[str] = []
        self.must_contain: list[str] = []
        self.forbidden: list[str] = []
        self.answers: list[str] = []

    def add(self, assertion: Any, coverage: Coverage) -> None:
        """Take an assertion; those that have no counterpart are counted by their types."""
        if not isinstance(assertion, dict):
            return
        kind = str(assertion.get("type", ""))
        if kind == "assert-set" and isinstance(assertion.get("assert"), list):
            for inner in assertion["assert"]:
                self.add(inner, coverage)
            return
        values = _values(assertion.get("value"))
        target = {
            "contains": self.must_contain,
            "contains-all": self.must_contain,
            "icontains": self.claims,
            "icontains-any": self.claims,
            "contains-any": self.claims,
            "not-contains": self.forbidden,
            "not-contains-any": self.forbidden,
            "equals": self.answers,
            "factuality": self.answers,
            "context-recall": self.answers,
        }.get(kind)
        if target is None or values is None:
            coverage.note(f"assertions of the type `{kind}` that gold cannot say (left out)")
            return
        if kind == "equals" and [normalise(value) for value in values] == [REFUSAL_TOKEN]:
            self.refuse = True
            return
        if kind == "icontains" and self.claims:
            coverage.note("further `icontains`: of the claims of an item one is enough")
        target += values

    def write(self, item: Row, coverage: Coverage) -> None:
        """Say it of a gold item."""
        expect_answers(item, self.answers, coverage)
        if self.claims:
            item["claims_any"] = list(dict.fromkeys(self.claims))
        if self.must_contain:
            item["must_contain"] = list(dict.fromkeys(self.must_contain))
        if self.forbidden:
            item["forbidden"] = list(dict.fromkeys(self.forbidden))
        if self.refuse:
            item["answerable"] = False
        elif self.claims or self.must_contain:
            item["answerable"] = True


def _values(value: Any) -> list[str] | None:
    """The texts of an assertion; None for templates, scripts and files, which are not run."""
    listed = value if isinstance(value, list) else [value]
    texts = [str(one) if isinstance(one, int | float) else one for one in listed]
    if not texts or not all(isinstance(text, str) for text in texts):
        return None
    if any("{{" in text or text.startswith("file://") for text in texts):
        return None
    return texts


def _identity(test: Any, variables: Any, file: ForeignFile, options: ImportOptions) -> Row:
    """The id and the question of a test case."""
    test = test if isinstance(test, dict) else {}
    if not isinstance(variables, dict):
        variables = test.get("vars")
    variables = variables if isinstance(variables, dict) else {}
    metadata = test.get("metadata")
    metadata = metadata if isinstance(metadata, dict) else {}
    identity: Row = {}
    qid = id_of(first_of(variables, *_QIDS)) or id_of(first_of(metadata, *_QIDS))
    if qid is not None:
        identity["qid"] = qid
    question = _question(variables, file, options)
    if question is not None:
        identity["question"] = question
    return identity


def _question(
    variables: Mapping[str, Any], file: ForeignFile, options: ImportOptions
) -> str | None:
    if options.question is not None:
        return text_of(variables.get(options.question))
    named = [name for name in _QUESTIONS if text_of(variables.get(name)) is not None]
    if named:
        return str(variables[named[0]])
    others = [name for name in variables if name not in _QIDS and name != "context"]
    if len(others) > 1:
        command = "ragauge traces import --question NAME (or ragauge gold import)"
        raise RagaugeError.of(
            "usage",
            f"which variable of `{file.name}` holds the question: {some(others)}?",
            hint=f"name it: {command}",
            place=Place(file.name),
        )
    return text_of(variables[others[0]]) if others else None


def _several(file: ForeignFile, names: Sequence[str]) -> RagaugeError:
    message = f"`{file.name}` holds {len(names)} runs: {_listed(names)}"
    hint = f'score one at a time: ragauge traces import {file.name} --run "{names[0]}" -o OUT'
    return RagaugeError.of("usage", message, hint=hint, place=Place(file.name))


def _listed(names: Sequence[str]) -> str:
    return some([f"`{name}`" for name in names])


def _unscorable(file: ForeignFile, row: Row) -> RagaugeError:
    if row.keys() >= _CSV:
        message = f"`{file.name}` is promptfoo's table, which has neither hits nor errors"
    else:
        message = f"`{file.name}` holds test cases of promptfoo, and no results"
    hint = "let promptfoo write them: promptfoo eval -o results.json"
    return RagaugeError.of("usage", message, hint=hint, place=Place(file.name))


def _elsewhere(file: ForeignFile, test: Any) -> RagaugeError:
    message = f"the test cases of `{file.name}` are in another file: `{test}`"
    hint = "give that file, or results.json, which has the test cases too"
    return RagaugeError.of("usage", message, hint=hint, place=Place(file.name))


FORMAT = ForeignFormat(
    name="promptfoo",
    title="promptfoo results",
    source="promptfoo 0.123.1",
    recognise=_recognise,
    read_traces=_read_traces,
    read_gold=_read_gold,
)
