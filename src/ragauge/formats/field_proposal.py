"""A proposal for `[fields]`: which fields of a user's files look like which of ours.

Names say what a field may be; values decide. An id is the right one if the other file has it too.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from itertools import islice
from typing import Any, NamedTuple

import msgspec
from msgspec import Struct

from ragauge.files.fields import shown
from ragauge.files.open import PathLike, inspect, unpacked
from ragauge.files.ranges import rows_of
from ragauge.formats.detect import TREC
from ragauge.formats.field_map import Side
from ragauge.formats.field_path import ITSELF, MISSING, field_path, opened_text
from ragauge.formats.imports.convert import recognise
from ragauge.formats.imports.foreign_format import ForeignFile
from ragauge.formats.table_cells import opened_cell
from ragauge.model.field_spellings import GOLD_NAMES, GOLD_SPELLINGS, TRACE_NAMES, TRACE_SPELLINGS
from ragauge.text import question_key

LOOKED_AT = 500
"""Rows of a file that are looked at."""
_DEEPEST = 4
_LONG_TEXT = 60
"""Entries of a list that are longer than this on average, or have many blanks, are no ids."""

_QUESTION = (
    "question", "query", "prompt", "user_input", "user_query", "question_text", "query_text",
    "input", "utterance", "user_message", "message", "ask", "q",
)  # fmt: skip
_QID = (
    "qid", "q_id", "query_id", "question_id", "case_id", "test_id", "example_id", "item_id",
    "sample_id", "case", "number", "nr", "no", "key", "id", "uid",
)  # fmt: skip
_NAMES: Mapping[Side, Mapping[str, tuple[str, ...]]] = {
    "traces": {
        "question": _QUESTION,
        "qid": _QID,
        "hits": (
            "hits", "sources", "source_documents", "retrieved_documents", "retrieved_docs",
            "retrieved_chunks", "retrieved_contexts", "retrieval_context", "retrieved", "documents",
            "docs", "contexts", "context", "chunks", "passages", "search_results", "source_nodes",
            "nodes", "results", "matches",
        ),
        "answer": (
            "answer", "response", "generated_answer", "bot_answer", "model_answer", "output",
            "completion", "prediction", "generation", "reply", "model_output", "answer_text",
            "result", "text",
        ),
        "citations": ("citations", "cited", "cited_sources", "cited_ids", "cited_chunks"),
        "error": ("error", "exception", "error_message"),
        "latency_ms": ("latency_ms", "duration_ms", "elapsed_ms", "response_time_ms", "time_ms"),
    },
    "gold": {
        "question": _QUESTION,
        "qid": _QID,
        "relevant": (
            "relevant", "relevant_ids", "relevant_chunks", "evidence", "evidence_ids",
            "gold_chunks", "gold_ids", "gold_docs", "expected_ids", "expected_chunks",
            "expected_sources", "expected_contexts", "reference_context_ids", "supporting_facts",
            "positive_ids", "positives",
        ),
        "relevant_docs": (
            "relevant_docs", "expected_docs", "expected_documents", "expected_doc", "source_file",
            "source_files", "source", "document", "documents", "doc",
        ),
        "answerable": ("answerable", "is_answerable", "has_answer"),
        "references": (
            "references", "reference", "reference_answer", "expected_answer", "expected_output",
            "ground_truth", "gold_answer", "ideal", "target", "answer", "expected",
        ),
        "tags": ("tags", "labels", "categories"),
    },
}  # fmt: skip
_HIT_NAMES: Mapping[str, tuple[str, ...]] = {
    "id": ("id", "chunk_id", "_id", "node_id", "id_", "point_id", "uuid", "uid", "key", "pk"),
    "text": ("text", "content", "page_content", "chunk", "snippet", "passage", "body"),
    "score": ("score", "similarity", "relevance_score", "relevance"),
    "doc": ("doc", "doc_id", "document_id", "source", "file", "file_path", "path", "filename"),
}
_OURS_IN_HITS = {"id": {"id", "chunk_id"}, "text": {"text"}, "score": {"score"}, "doc": {"doc"}}
_NAME_WORD = re.compile(r"[A-Z]?[a-z0-9]+|[A-Z]+(?![a-z])")
_ANSWER_WORDS = ("answer", "response", "reply", "completion")
_EXPECTED_WORDS = {"expected", "reference", "gold", "golden", "ideal", "correct", "truth", "target"}
_LISTS = ("hits", "citations", "relevant")
_FILE = {"gold": "gold set", "traces": "traces"}


class ProposedField(Struct, frozen=True):
    """One of our fields, the path to it in a user's rows, an example, and why.

    `needed`: the field is not read under this name already.
    """

    name: str
    path: str
    example: str
    needed: bool
    reason: str = ""


class FileProposal(Struct, frozen=True, kw_only=True):
    """What a file is taken for: one side, its fields, and the fields that mean nothing to us.

    `format` is that of another tool, whose files need no fields.
    """

    name: str
    side: Side
    rows: int
    fields: tuple[ProposedField, ...] = ()
    unread: tuple[str, ...] = ()
    format: str | None = None


class _Table(NamedTuple):
    """The rows of a file that were looked at."""

    name: str
    rows: list[dict[str, Any]]
    format: str | None
    sides: tuple[Side, ...]
    open_text: Callable[[str], Any]
    tabular: bool = False


def propose(names: Sequence[PathLike]) -> list[FileProposal]:
    """Say which of some files is the gold set, which are traces, and where their fields are."""
    tables = [_table(name) for name in names]
    sides = _sides(tables)
    gold = [table for table, side in zip(tables, sides, strict=True) if side == "gold"]
    others = [table for table, side in zip(tables, sides, strict=True) if side == "traces"]
    hints = _KnownValues.in_traces(others) if others else None
    proposals = {id(table): _proposal(table, "gold", hints) for table in gold}
    known = _KnownValues.in_gold(gold[0], proposals[id(gold[0])]) if gold else None
    for table, side in zip(tables, sides, strict=True):
        if side == "traces":
            proposals[id(table)] = _proposal(table, "traces", known)
    return [proposals[id(table)] for table in tables]


def _table(name: PathLike) -> _Table:
    with ExitStack() as stack:
        file = stack.enter_context(unpacked(name))
        form = recognise(ForeignFile(file))
        source = inspect(file)
        open_text = opened_cell if source.tabular else opened_text
        if form is not None:
            sides: list[Side] = ["traces"] if form.read_traces is not None else []
            sides += ["gold"] if form.read_gold is not None else []
            return _Table(source.name, [], form.title, tuple(sides), open_text, source.tabular)
        rows: list[dict[str, Any]] = []
        if source.layout not in (*TREC, "empty"):
            for _, data, _, _ in islice(rows_of(source), LOOKED_AT):
                try:
                    rows.append(msgspec.json.decode(data, type=dict[str, Any]))
                except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
                    continue
        trec: tuple[Side, ...] = {"qrels": ("gold",), "run": ("traces",)}.get(source.layout, ())  # type: ignore[assignment]
        title = f"TREC {source.layout}" if trec else None
        return _Table(source.name, rows, title, trec, open_text, source.tabular)


def _sides(tables: Sequence[_Table]) -> list[Side]:
    """Which side each file is: the one whose fields it has more of; one gold set at the most."""
    weights = [_weight(table) for table in tables]
    sides: list[Side] = ["gold" if weight > 0 else "traces" for weight in weights]
    if len(tables) == 2 and sides[0] == sides[1]:
        most = max(range(2), key=weights.__getitem__)
        sides = ["gold" if place == most else "traces" for place in range(2)]
    return sides


def _weight(table: _Table) -> int:
    """How much more a file looks like gold than like traces."""
    if len(table.sides) == 1:
        return 9 if table.sides[0] == "gold" else -9
    names = {path.rpartition(".")[2].lower() for row in table.rows[:20] for path, _ in _leaves(row)}
    names |= {name.lower() for row in table.rows[:20] for name in row}
    weight = 0
    for field in ("relevant", "relevant_docs", "references", "answerable"):
        weight += bool(names & {*_NAMES["gold"][field]} - {"answer", "documents", "source"})
    for field in ("hits", "answer", "error", "latency_ms"):
        weight -= bool(names & {*_NAMES["traces"][field]})
    return (
        weight
        + 2 * bool(names & GOLD_NAMES - TRACE_NAMES)
        - 2 * bool(names & TRACE_NAMES - GOLD_NAMES - {"answer"})
    )


class _KnownValues(NamedTuple):
    """What the other file has, by which fields are recognised whatever they are called.

    `side` is the side that they come from.
    """

    side: Side
    qids: set[str]
    questions: set[str]
    evidence: set[str]

    @classmethod
    def in_traces(cls, tables: Sequence[_Table]) -> _KnownValues:
        """All short texts of traces may be ids of questions, and those in lists ids of hits."""
        single: set[str] = set()
        listed: set[str] = set()
        for table in tables:
            for values in _by_path(table).values():
                for value in values:
                    if isinstance(value, list):
                        listed.update(_strings(value))
                    else:
                        single.update(_texts(value))
        return cls("traces", single, {question_key(text) for text in single}, listed)

    @classmethod
    def in_gold(cls, table: _Table, proposal: FileProposal) -> _KnownValues:
        """Those of the fields that were proposed for a gold set."""
        paths = {field.name: field.path for field in proposal.fields}

        def values(name: str) -> set[str]:
            if name not in paths:
                return set()
            find = field_path(paths[name], table.open_text).find
            return {text for row in table.rows for text in _texts(find(row))}

        questions = {question_key(text) for text in values("question")}
        evidence = values("relevant")
        if table.tabular:
            evidence = {part.strip() for text in evidence for part in re.split(r"[|;]", text)}
        return cls("gold", values("qid"), questions, evidence)


def _proposal(table: _Table, side: Side, known: _KnownValues | None) -> FileProposal:
    if table.format is not None:
        return FileProposal(name=table.name, side=side, rows=0, format=table.format)
    leaves = _by_path(table)
    fields: dict[str, ProposedField] = {}
    taken: set[str] = set()
    spellings = GOLD_SPELLINGS if side == "gold" else TRACE_SPELLINGS
    for field, names in _NAMES[side].items():
        if field not in spellings and field != "latency_ms":
            continue
        is_list = field in ("hits", "relevant")
        candidates = _candidates(leaves, names, taken, is_list=is_list)
        if is_list and table.tabular:  # a cell with one id in it, or with several behind each other
            candidates += _candidates(leaves, names, taken, is_list=False)
        if field == "answer" and not candidates:
            candidates = [path for path in leaves if path not in taken and _ends_as_answer(path)]
        if field in ("answer", "references"):
            candidates = [path for path in candidates if _is_text(leaves[path])]
        path: str | None = next(iter(candidates), None)
        reason = ""
        if field == "question":
            path, reason = _chosen_question(candidates, leaves, known)
        elif field == "qid":
            path, reason = _chosen_id(candidates, leaves, known, taken)
        elif field == "relevant" and path is None:
            path, reason = _chosen_evidence(leaves, known, taken)
        if path is None:
            continue
        taken.add(path)
        fields[field] = _field(field, path, leaves.get(path, []), side, reason)
        if field in _LISTS:
            for part in _parts(field, leaves[path], known, table.open_text):
                fields[part.name] = part
    qid = fields.get("qid")
    if known is not None and known.side == "gold" and known.qids and qid is not None:
        _drop_foreign_ids(fields, leaves, known)
    roots = {re.split(r"[.\[]", path, maxsplit=1)[0] for path in taken if path}
    ours = GOLD_NAMES if side == "gold" else TRACE_NAMES
    names_there = dict.fromkeys(name for row in table.rows for name in row)
    unread = tuple(name for name in names_there if name not in roots and name not in ours)
    ordered = tuple(fields.values())
    return FileProposal(
        name=table.name, side=side, rows=len(table.rows), fields=ordered, unread=unread
    )


def _by_path(table: _Table) -> dict[str, list[Any]]:
    """The values under each path of the rows, shallow paths first."""
    leaves: dict[str, list[Any]] = {}
    for row in table.rows:
        for path, value in _leaves(row, table.open_text):
            leaves.setdefault(path, []).append(value)
    return dict(sorted(leaves.items(), key=lambda entry: entry[0].count(".")))


def _leaves(
    value: Mapping[str, Any],
    open_text: Callable[[str], Any] = opened_text,
    before: str = "",
    depth: int = 1,
) -> Iterator[tuple[str, Any]]:
    """Every path of an object with its value; lists are values, and so are texts."""
    for name, inner in value.items():
        path = f"{before}{_quoted(name)}"
        opened = inner
        if isinstance(inner, str) and inner.lstrip()[:1] in ("{", "["):
            opened = open_text(inner)
        if opened is None:
            continue
        if isinstance(opened, dict):
            if depth < _DEEPEST:
                yield from _leaves(opened, open_text, f"{path}.", depth + 1)
        else:
            yield path, opened


def _quoted(name: str) -> str:
    return name if re.fullmatch(r"[\w\- /:#$%+]+", name) else msgspec.json.encode(name).decode()


def _candidates(
    leaves: Mapping[str, Sequence[Any]], names: Sequence[str], taken: set[str], *, is_list: bool
) -> list[str]:
    """The paths whose last name is one of some, those of the first name first."""
    paths = [
        path
        for path, values in leaves.items()
        if path not in taken and any(isinstance(value, list) for value in values) == is_list
    ]
    order = {name: place for place, name in enumerate(names)}

    def rank(path: str) -> int:
        last = path.rpartition(".")[2].strip('"').lower().replace(" ", "_").replace("-", "_")
        return order.get(last, len(order))

    named = [path for path in paths if rank(path) < len(order)]
    return sorted(named, key=lambda path: (path.count("."), rank(path)))


def _ends_as_answer(path: str) -> bool:
    """Whether the last word of a name is one for answers: `bot_reply`, `llmResponse`."""
    name = path.rpartition(".")[2].strip('"')
    words = [word.lower() for word in _NAME_WORD.findall(name)]
    return bool(words) and words[-1] in _ANSWER_WORDS and not _EXPECTED_WORDS & {*words}


def _chosen_question(
    candidates: Sequence[str], leaves: Mapping[str, Sequence[Any]], known: _KnownValues | None
) -> tuple[str | None, str]:
    """The path to the questions: by its name, else that whose texts the other file has too."""
    named = [path for path in candidates if _is_text(leaves[path])]
    if named or known is None:
        return next(iter(named), None), ""
    shares = {
        path: len({question_key(value) for value in values} & known.questions)
        for path, values in leaves.items()
        if _is_text(values) and (known.side == "gold" or not _are_ids(values, None))
    }
    return _best(shares, f"are questions of the {_FILE[known.side]}")


def _chosen_id(
    candidates: Sequence[str],
    leaves: Mapping[str, Sequence[Any]],
    known: _KnownValues | None,
    taken: set[str],
) -> tuple[str | None, str]:
    """The path to the ids of questions: that whose values the other file has, else by its name."""
    if known is not None and known.qids:
        shares = {
            path: len({text for value in values for text in _texts(value)} & known.qids)
            for path, values in leaves.items()
            if path not in taken
            and not any(isinstance(value, list) for value in values)
            and (known.side == "gold" or _is_unique(values))
        }
        best, reason = _best(shares, f"are in the {_FILE[known.side]}")
        if best is not None:
            return best, reason
    unique = [path for path in candidates if _is_unique(leaves[path])]
    return next(iter(unique), None), ""


def _chosen_evidence(
    leaves: Mapping[str, Sequence[Any]], known: _KnownValues | None, taken: set[str]
) -> tuple[str | None, str]:
    """The path to evidence that no name tells: that whose values are among the hits of traces."""
    if known is None:
        return None, ""
    shares = {
        path: len({text for value in values for text in _strings([value])} & known.evidence)
        for path, values in leaves.items()
        if path not in taken
    }
    return _best(shares, f"are in lists of the {_FILE[known.side]}")


def _best(shares: Mapping[str, int], what: str) -> tuple[str | None, str]:
    """The path that shares most, and how much; none if none shares anything."""
    best = max(shares, key=lambda path: shares[path], default=None)
    if best is None or not shares[best]:
        return None, ""
    return best, f"{shares[best]} of its values {what}"


def _is_unique(values: Sequence[Any]) -> bool:
    return len(set(map(str, values))) == len(values)


def _strings(value: Any) -> Iterator[str]:
    """Every text in a list, at any depth."""
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, list):
        for entry in value:
            yield from _strings(entry)
    elif isinstance(value, str):
        yield value


def _drop_foreign_ids(
    fields: dict[str, ProposedField], leaves: Mapping[str, Sequence[Any]], known: _KnownValues
) -> None:
    """Where no id is the gold set's and questions are, say that rows have no id of a question."""
    path = fields["qid"].path
    if {text for value in leaves[path] for text in _texts(value)} & known.qids:
        return
    question = fields.get("question")
    asked = leaves.get(question.path, ()) if question is not None else ()
    if {question_key(text) for value in asked for text in _texts(value)} & known.questions:
        reason = f"the gold set knows no id of `{path}`: rows are joined by their questions"
        fields["qid"] = ProposedField("qid", "", "", True, reason)
    else:
        del fields["qid"]


def _field(field: str, path: str, values: Sequence[Any], side: Side, reason: str) -> ProposedField:
    spellings = GOLD_SPELLINGS if side == "gold" else TRACE_SPELLINGS
    names = spellings.get(field, (field,)) if field != "latency_ms" else spellings["total_ms"]
    example = shown(values[0]) if values else ""
    return ProposedField(field, path, example, path not in names, reason)


def _parts(
    field: str,
    values: Sequence[Any],
    known: _KnownValues | None,
    open_text: Callable[[str], Any],
) -> list[ProposedField]:
    """Where the entries of a list have their ids, texts and scores."""
    entries = [entry for value in values if isinstance(value, list) for entry in value]
    if field == "relevant":  # a table has one sentence in a cell
        entries += [value for value in values if isinstance(value, str) and value.strip()]
    objects = [entry for entry in entries if isinstance(entry, dict)]
    if not objects:
        texts = [entry for entry in entries if isinstance(entry, str)]
        if field != "relevant" and texts and not _are_ids(texts, known):
            return [ProposedField(f"{field}.text", ITSELF, shown(texts[0]), True, "they are texts")]
        if field == "relevant" and texts and not _are_ids(texts, None):
            return [ProposedField("relevant.quote", ITSELF, shown(texts[0]), True, "quotes")]
        return []
    leaves: dict[str, list[Any]] = {}
    for entry in objects:
        for inner, value in _leaves(entry, open_text):
            leaves.setdefault(inner, []).append(value)
    leaves = dict(sorted(leaves.items(), key=lambda one: one[0].count(".")))
    parts: list[ProposedField] = []
    taken: set[str] = set()
    for name, names in _HIT_NAMES.items():
        if name == "score" and field == "relevant":
            continue
        candidates = _candidates(leaves, names, taken, is_list=False)
        reason = ""
        # A gold set that names evidence by its words has no ids to compare with.
        if name == "id" and known is not None and _are_ids(sorted(known.evidence), None):
            shares = {
                inner: len(
                    {text for value in inner_values for text in _texts(value)} & known.evidence
                )
                for inner, inner_values in leaves.items()
            }
            best = max(shares, key=lambda inner: shares[inner], default=None)
            if best is not None and shares[best]:
                candidates = [best]
                reason = f"{shares[best]} of its values are evidence of the gold set"
        if candidates:
            inner = candidates[0]
            taken.add(inner)
            needed = inner not in _OURS_IN_HITS[name]
            written = "quote" if name == "text" and field == "relevant" else name
            example = shown(leaves[inner][0])
            parts.append(ProposedField(f"{field}.{written}", inner, example, needed, reason))
    return parts


def _texts(value: Any) -> list[str]:
    """The ids or texts that a value holds: itself, or its entries."""
    if value is MISSING or value is None or isinstance(value, bool):
        return []
    if isinstance(value, list):
        return [text for entry in value for text in _texts(entry)]
    if isinstance(value, dict):
        return [text for name in ("id", "chunk_id") for text in _texts(value.get(name))]
    return [str(value)] if isinstance(value, str | int) else []


def _is_text(values: Sequence[Any]) -> bool:
    return all(isinstance(value, str) for value in values)


def _are_ids(texts: Sequence[str], known: _KnownValues | None) -> bool:
    if known is not None and known.evidence & set(texts):
        return True
    sample = texts[:200]
    if not sample:
        return False
    blanks = sum(text.count(" ") for text in sample) / len(sample)
    return blanks < 3 and sum(map(len, sample)) / len(sample) < _LONG_TEXT
