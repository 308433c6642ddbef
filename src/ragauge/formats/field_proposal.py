"""A proposal for `[fields]`: which fields of a user's files look like which of ours.

Names say what a field may be; values decide. An id is the right one if the other file has it too,
and so are hits and evidence.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from functools import lru_cache
from importlib.util import find_spec
from itertools import islice
from typing import Any, NamedTuple

import msgspec
from msgspec import Struct

from ragauge.errors import RagaugeError
from ragauge.files.fields import shown
from ragauge.files.open import PathLike, UnpackedFile, inspect, unpacked
from ragauge.files.ranges import rows_of
from ragauge.formats.detect import TREC
from ragauge.formats.field_map import Side
from ragauge.formats.field_path import ITSELF, MISSING, field_path, opened_text
from ragauge.formats.imports.convert import native_rows, recognise
from ragauge.formats.imports.coverage import Coverage
from ragauge.formats.imports.foreign_format import ForeignFile, ForeignFormat
from ragauge.formats.table_cells import CellReader, opened_cell
from ragauge.formats.wrapped_rows import unwrapped_columns, unwrapped_rows
from ragauge.model.field_spellings import GOLD_NAMES, GOLD_SPELLINGS, TRACE_NAMES, TRACE_SPELLINGS
from ragauge.text import question_key

LOOKED_AT = 500
"""Rows of a file that are looked at."""
_DEEPEST = 4
_LONG_TEXT = 60
"""Entries of a list that are longer than this on average, or have many blanks, are no ids."""
_LONGEST_ID = 64

_QUESTION = (
    "question", "query", "prompt", "user_input", "user_query", "question_text", "query_text",
    "input", "utterance", "user_message", "message", "ask", "q",
)  # fmt: skip
_QID = (
    "qid", "q_id", "query_id", "question_id", "case_id", "test_id", "example_id", "item_id",
    "sample_id", "qa_id", "case", "number", "nr", "no", "key", "id", "uid",
)  # fmt: skip
_OF_QUESTION = frozenset(_QID[: _QID.index("case")])
"""Names of ids that are those of questions and of nothing else."""
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
            "positive_ids", "positives", "chunk_id", "chunk_ids", "passage_id", "passage_ids",
            "quote", "quotes",
        ),
        "relevant_docs": (
            "relevant_docs", "expected_docs", "expected_documents", "expected_doc", "source_file",
            "source_files", "source", "document", "documents", "doc", "doc_id", "file", "filename",
            "file_name",
        ),
        "answerable": ("answerable", "is_answerable", "has_answer"),
        "references": (
            "references", "reference", "reference_answer", "expected_answer", "expected_output",
            "ground_truth", "gold_answer", "ideal", "target", "answer", "expected",
        ),
        "tags": ("tags", "labels", "categories", "category", "topic", "topics"),
    },
}  # fmt: skip
_HIT_NAMES: Mapping[str, tuple[str, ...]] = {
    "id": ("id", "chunk_id", "_id", "node_id", "id_", "point_id", "uuid", "uid", "key", "pk"),
    "text": ("text", "content", "page_content", "chunk", "snippet", "passage", "body"),
    "score": ("score", "similarity", "relevance_score", "relevance"),
    "doc": (
        "doc", "doc_id", "document_id", "source", "file", "file_path", "path", "filename",
        "file_name", "url",
    ),
}  # fmt: skip
_OURS_IN_HITS = {"id": {"id", "chunk_id"}, "text": {"text"}, "score": {"score"}, "doc": {"doc"}}

# Names that are in no list are known by their words: `topChunks`, `bot_reply`, `Source document`.
_NAME_WORD = re.compile(r"[A-Z]?[a-z0-9]+|[A-Z]+(?![a-z])")
_ANSWER_WORDS = {"answer", "response", "reply", "completion"}
_GENERATED_WORDS = {"generated", "generation", "predicted", "prediction", "output"}
_EXPECTED_WORDS = {
    "expected", "reference", "gold", "golden", "ideal", "correct", "truth", "target", "supporting",
    "relevant", "positive",
}  # fmt: skip
_CHUNK_WORDS = {
    "chunk", "chunks", "passage", "passages", "context", "contexts", "evidence", "snippet",
    "snippets", "excerpt", "excerpts", "quote", "quotes", "paragraph", "paragraphs", "node",
    "nodes",
}  # fmt: skip
_DOCUMENT_WORDS = {
    "doc", "docs", "document", "documents", "source", "sources", "file", "files", "filename",
    "url", "urls", "page", "pages",
}  # fmt: skip
_FOUND_WORDS = {
    "retrieved", "retrieval", "hit", "hits", "result", "results", "match", "matches", "candidates",
    "points", "neighbors", "neighbours",
}  # fmt: skip
_CITED_WORDS = {"cited", "citation", "citations"}
_HIT_WORDS = {
    "id": {"id", "uid", "uuid", "key"},
    "text": {"text", "content", "body", "snippet", "passage"},
    "score": {"score", "similarity", "relevance"},
    "doc": {"doc", "document", "source", "file", "path", "filename", "url", "uri"},
}
_LISTS = ("hits", "citations", "relevant", "relevant_docs")
_EVIDENCE = ("relevant", "relevant_docs")
_FILE = {"gold": "gold set", "traces": "traces"}
_FILE_NAME = re.compile(r".*[^\s#]\.[A-Za-z][A-Za-z0-9]{0,5}")
_NUMBER_BEHIND = re.compile(r"(?P<stem>.*[^0-9])[0-9]{1,3}")
_GOLD_FILES = {"gold", "golden", "goldens", "qrels", "truth", "testset", "cases", "expected"}
_TRACE_FILES = {"log", "logs", "trace", "traces", "run", "runs", "result", "results", "answers"}
_USERS, _MODELS = ("user", "human"), ("assistant", "ai", "model", "bot")


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
    """The rows of a file that were looked at; those of another tool under our names."""

    name: str
    rows: list[dict[str, Any]]
    format: str | None
    sides: tuple[Side, ...]
    open_text: Callable[[str], Any]
    tabular: bool = False


Leaves = Mapping[str, Sequence[Any]]
"""The values of the rows by their paths; shallow paths first."""


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
        columns = unwrapped_columns(stack, file)
        file = file if columns is None else columns.file
        form = recognise(ForeignFile(file))
        if form is None:
            file = _unwrapped(stack, file)
        source = inspect(file)
        open_text = opened_cell if source.tabular else opened_text
        if form is not None:
            sides: list[Side] = ["traces"] if form.read_traces is not None else []
            sides += ["gold"] if form.read_gold is not None else []
            imported = _imported(form, ForeignFile(file), sides[0])
            return _Table(source.name, imported, form.title, tuple(sides), open_text)
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


def _unwrapped(stack: ExitStack, file: UnpackedFile) -> UnpackedFile:
    """The file of the rows that stand in one object, whichever side they are."""
    roots = {*_QUESTION, *_QID, *_NAMES["traces"]["answer"], *GOLD_NAMES} - {"result", "text"}
    unwrapped = unwrapped_rows(stack, file, "traces", roots=roots)
    return file if unwrapped is None else unwrapped.file


def _imported(form: ForeignFormat, file: ForeignFile, side: Side) -> list[dict[str, Any]]:
    """The first rows of another tool's file under our names: the other file is held against it."""
    try:
        return list(islice(native_rows(form, [file], side, coverage=Coverage()), LOOKED_AT))
    except RagaugeError:
        return []  # whoever scores it is told


def _sides(tables: Sequence[_Table]) -> list[Side]:
    """Which side each file is: the one whose fields it has more of; one gold set at the most."""
    weights = [_weight(table) for table in tables]
    sides: list[Side] = ["gold" if weight > 0 else "traces" for weight in weights]
    if len(tables) == 2 and sides[0] == sides[1]:
        most = max(range(2), key=weights.__getitem__)  # the first of equals, as for `score`
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
    words = _words(os.path.basename(table.name))
    weight += bool(words & _GOLD_FILES) - bool(words & _TRACE_FILES)
    return (
        weight
        + any(_words(name) & _EXPECTED_WORDS for name in names)
        + 2 * bool(names & GOLD_NAMES - TRACE_NAMES)
        - 2 * bool(names & TRACE_NAMES - GOLD_NAMES - {"answer"})
    )


class _KnownValues(NamedTuple):
    """What the other file has, by which fields are recognised whatever they are called.

    `side` is the side that they come from. `evidence` are ids or texts, `docs` names of documents.
    """

    side: Side
    qids: set[str]
    questions: set[str]
    evidence: set[str]
    docs: set[str]

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
                        if table.tabular and isinstance(value, str):
                            listed.update(_cell_ids(value))
        questions = {question_key(text) for text in single}
        docs = {_base_name(text) for text in listed if len(text) < 300}
        return cls("traces", single, questions, listed, docs)

    @classmethod
    def in_gold(cls, table: _Table, proposal: FileProposal) -> _KnownValues:
        """Those of the fields that were proposed for a gold set."""
        paths = {field.name: field.path for field in proposal.fields}
        if table.format is not None:
            paths = {name: name for name in ("qid", "question", *_EVIDENCE)}

        def values(name: str) -> set[str]:
            if not paths.get(name):
                return set()
            find = field_path(paths[name], table.open_text).find
            found = [find(row) for row in table.rows]
            if name in _EVIDENCE and table.tabular:
                found = [_cell_ids(one) if isinstance(one, str) else one for one in found]
            return {text for value in found for text in (_texts(value) or _strings([value]))}

        questions = {question_key(text) for text in values("question")}
        docs = {_base_name(text) for text in values("relevant_docs")}
        return cls("gold", values("qid"), questions, values("relevant"), docs)


def _cell_ids(cell: str) -> list[str]:
    """What a cell holds, read as a list of ids."""
    try:
        listed = _read_ids({"relevant": cell})["relevant"]
    except Exception:  # a list that is none: whoever reads the file is told
        return [cell]
    return [text for text in listed if isinstance(text, str)] if isinstance(listed, list) else []


_read_ids = CellReader("gold")


def _base_name(name: str) -> str:
    return re.split(r"[/\\]", name.strip())[-1].lower()


class _Proposer:
    """Chooses the fields of one file, one after the other; what one has taken no other gets."""

    def __init__(self, table: _Table, side: Side, known: _KnownValues | None) -> None:
        self.table = table
        self.side = side
        self.known = known
        self.leaves = _by_path(table)
        self.taken: set[str] = set()
        self.fields: dict[str, ProposedField] = {}

    def propose(self) -> None:
        self._add("question", *self._question())
        self._add("qid", *self._qid())
        if self.side == "traces":
            self._messages()
            self._add("hits", *self._hits())
            self._add("answer", *self._answer())
            for field in ("citations", "error", "latency_ms"):
                self._add(field, self._named(field, lists=field == "citations"), "")
            self._drop_foreign_ids()
        else:
            self._add_evidence()
            self._add("answerable", self._named("answerable"), "")
            self._add("references", *self._references())
            self._add("tags", self._named("tags"), "")

    def _add(self, field: str, path: str | None, reason: str) -> None:
        if path is None or field in self.fields:
            return
        values = self._values(path)
        self.taken.add(path)
        spellings = GOLD_SPELLINGS if self.side == "gold" else TRACE_SPELLINGS
        names = spellings["total_ms"] if field == "latency_ms" else spellings.get(field, (field,))
        example = shown(values[0]) if values else ""
        self.fields[field] = ProposedField(field, path, example, path not in names, reason)
        if field in _LISTS:
            for part in _parts(field, values, self.known, self.table.open_text):
                self.fields[part.name] = part

    def _values(self, path: str) -> Sequence[Any]:
        """The values under a path, also where it is one of numbered fields."""
        if path in self.leaves:
            return self.leaves[path]
        find = field_path(path, self.table.open_text).find
        found = [find(row) for row in self.table.rows]
        return [value for value in found if value is not MISSING and value not in (None, [])]

    def _named(self, field: str, *, lists: bool | None = None) -> str | None:
        return next(iter(self._candidates(_NAMES[self.side][field], lists=lists)), None)

    def _candidates(self, names: Sequence[str], *, lists: bool | None = None) -> list[str]:
        """The paths whose last name is one of some, those of the first name first."""
        paths = [
            path
            for path, values in self.leaves.items()
            if path not in self.taken and (lists is None or _has_lists(values) == lists)
        ]
        return _by_name(paths, names)

    def _free(self, *, lists: bool) -> list[str]:
        """The paths that nothing has taken, with lists or without any."""
        return [
            path
            for path, values in self.leaves.items()
            if path not in self.taken and _has_lists(values) == lists
        ]

    def _question(self) -> tuple[str | None, str]:
        """The path to the questions: by its name, else that whose texts the other file has too."""
        named = [path for path in self._candidates(_QUESTION) if _is_text(self.leaves[path])]
        if self.known is not None:
            shares = {
                path: len({question_key(value) for value in values} & self.known.questions)
                for path, values in self.leaves.items()
                if _is_text(values) and (self.known.side == "gold" or not _are_ids(values, None))
            }
            best, reason = _best(shares, f"questions of the {_FILE[self.known.side]}")
            if best is not None and (not named or not shares.get(named[0])):
                return best, reason
        return next(iter(named), None), ""

    def _qid(self) -> tuple[str | None, str]:
        """The path to the ids of questions: that whose values the other file has, else by name."""
        named = [path for path in self._candidates(_QID, lists=False) if path not in self.taken]
        known = self.known
        if known is not None and known.qids:
            shares = {
                path: share
                for path, values in self.leaves.items()
                if path not in self.taken
                and _may_be_ids(values)
                and 2 * len(values) >= len(self.table.rows)
                and (share := _id_share(values, known))
            }
            what = f"in the {_FILE[known.side]}"
            # `query_id` is one even where a question has several rows, one for each of its hits.
            strong = {p: shares[p] for p in shares if _last_name(p) in _OF_QUESTION}
            unique = {p: n for p, n in shares.items() if _is_unique(self.leaves[p])}
            for some in (strong, shares if known.side == "gold" else unique):
                best, reason = _best(some, what)
                if best is not None:
                    return best, reason
        unique_names = [path for path in named if _is_unique(self.leaves[path])]
        return next(iter(unique_names), None), ""

    def _hits(self) -> tuple[str | None, str]:
        """The path to what was retrieved: the list with evidence in it, else the one so named."""
        paths = [path for path in self._free(lists=True) if not _is_messages(self.leaves[path])]
        paths = [path for path in paths if not _words(_last_name(path)) & _CITED_WORDS]
        best, reason = self._shared_evidence(paths)
        if best is not None:
            return best, reason
        named = _by_name(paths, _NAMES["traces"]["hits"]) or _by_words(
            paths, _CHUNK_WORDS | _DOCUMENT_WORDS | _FOUND_WORDS
        )
        if named:
            return named[0], ""
        numbered = self._numbered(_CHUNK_WORDS | _DOCUMENT_WORDS | _FOUND_WORDS)
        if numbered is not None:
            return numbered, "a column for each rank"
        if self.table.tabular:  # a cell with one id in it, or with several behind each other
            cells = self._free(lists=False)
            best, reason = self._shared_evidence(cells)
            words = _CHUNK_WORDS | _FOUND_WORDS | {"docs", "documents", "sources"}
            named = _by_name(cells, _NAMES["traces"]["hits"]) or _by_words(cells, words)
            return best or next(iter(named), None), reason
        return None, ""

    def _shared_evidence(self, paths: Sequence[str]) -> tuple[str | None, str]:
        """The path that shares most with the evidence of the other file."""
        known = self.known
        if known is None:
            return None, ""
        shares, documents = {}, {}
        for path in paths:
            texts = {text for value in self._values(path) for text in _strings([value])}
            if self.table.tabular:
                cells = [value for value in self._values(path) if isinstance(value, str)]
                texts.update(text for cell in cells for text in _cell_ids(cell))
            shares[path] = len(texts & known.evidence)
            documents[path] = len({_base_name(text) for text in texts} & known.docs)
        where = "in lists of the traces" if known.side == "traces" else "evidence of the gold set"
        best, reason = _best(shares, where)
        return (best, reason) if best is not None else _best(documents, f"{where}, by their file")

    def _numbered(self, words: set[str]) -> str | None:
        """The path of fields that are numbered, such as `context_1` to `context_5`."""
        stems: dict[str, int] = {}
        for path in self._free(lists=False):
            match = _NUMBER_BEHIND.fullmatch(path)
            if match is not None and "." not in path and _words(match["stem"]) & words:
                stems[match["stem"]] = stems.get(match["stem"], 0) + 1
        stem = next((stem for stem, count in stems.items() if count > 1), None)
        if stem is None:
            return None
        self.taken.update(
            path for path in self.leaves if _NUMBER_BEHIND.fullmatch(path) and path.startswith(stem)
        )
        return f"{stem}*"

    def _messages(self) -> None:
        """Question and answer where a row is a conversation: its last messages."""
        for path, values in self.leaves.items():
            if path in self.taken or not _is_messages(values):
                continue
            for field, roles in (("answer", _MODELS), ("question", _USERS)):
                if field in self.fields or (field == "answer" and self._answer()[0] is not None):
                    continue
                found = _message_path(path, values, roles)
                if found is not None:
                    self._add(field, found, "the last message of its role")

    def _answer(self) -> tuple[str | None, str]:
        """The path to the answers: by its name, by its words, or the only text that is left."""
        free = [path for path in self._free(lists=False) if _is_text(self.leaves[path])]
        named = _by_name(free, _NAMES["traces"]["answer"])
        if not named:
            named = [path for path in free if _last_word(path) in _ANSWER_WORDS]
            named += [path for path in free if _words(_last_name(path)) & _GENERATED_WORDS]
            named = [path for path in named if not _words(_last_name(path)) & _EXPECTED_WORDS]
        if named:
            return named[0], ""
        texts = [path for path in free if _has_sentences(self.leaves[path])]
        return (texts[0], "the only text that is left") if len(texts) == 1 else (None, "")

    def _references(self) -> tuple[str | None, str]:
        free = [path for path in self._free(lists=False) if _is_text(self.leaves[path])]
        free += self._free(lists=True)
        named = _by_name(free, _NAMES["gold"]["references"])
        named += [
            path
            for path in free
            if _words(_last_name(path)) & _EXPECTED_WORDS
            and _words(_last_name(path)) & (_ANSWER_WORDS | _GENERATED_WORDS | {"truth"})
        ]
        return next(iter(named), None), ""

    def _add_evidence(self) -> None:
        """Evidence of both kinds, by name, by the hits of the traces, or by the words of a name."""
        for lists in (True, False):
            for field in _EVIDENCE:
                names = _NAMES["gold"][field]
                for path in self._candidates(names, lists=lists)[:1]:
                    self._add(self._kind_of(path, field), path, "")
        if not any(field in self.fields for field in _EVIDENCE):
            best, reason = self._shared_evidence(
                [*self._free(lists=True), *self._free(lists=False)]
            )
            if best is not None:
                self._add(self._kind_of(best, "relevant"), best, reason)
        for lists in (True, False):
            for path in self._free(lists=lists):
                words = _words(_last_name(path))
                if words & (_ANSWER_WORDS | {"question", "query"}) or _last_word(path) == "type":
                    continue
                if words & _CHUNK_WORDS or (words & _EXPECTED_WORDS and words & {"id", "ids"}):
                    self._add("relevant", path, "")
                elif words & _DOCUMENT_WORDS and _is_text_or_list(self.leaves[path]):
                    self._add("relevant_docs", path, "")
        numbered = self._numbered(_CHUNK_WORDS) if "relevant" not in self.fields else None
        self._add("relevant", numbered, "a column for each piece")

    def _kind_of(self, path: str, field: str) -> str:
        """Whether evidence is documents: its values are names of files, and not of their parts."""
        texts = [text for value in self.leaves[path] for text in _strings([value]) if text.strip()]
        if field == "relevant" and texts and all(map(_FILE_NAME.fullmatch, texts)):
            return "relevant_docs" if _are_ids(texts, None) else field
        return field

    def _drop_foreign_ids(self) -> None:
        """Where ids are not the gold set's and questions are, say that rows have no id of one."""
        qid, known = self.fields.get("qid"), self.known
        if qid is None or known is None or known.side != "gold":
            return
        if {text for value in self.leaves[qid.path] for text in _texts(value)} & known.qids:
            return
        question = self.fields.get("question")
        asked = self._values(question.path) if question is not None else ()
        if {question_key(text) for value in asked for text in _texts(value)} & known.questions:
            reason = f"the gold set knows no id of `{qid.path}`: rows are joined by their questions"
            self.fields["qid"] = ProposedField("qid", "", "", True, reason)
        elif known.qids:
            del self.fields["qid"]


def _proposal(table: _Table, side: Side, known: _KnownValues | None) -> FileProposal:
    if table.format is not None:
        return FileProposal(name=table.name, side=side, rows=0, format=table.format)
    proposer = _Proposer(table, side, known)
    proposer.propose()
    roots = {re.split(r"[.\[]", path, maxsplit=1)[0] for path in proposer.taken if path}
    ours = GOLD_NAMES if side == "gold" else TRACE_NAMES
    names_there = dict.fromkeys(name for row in table.rows for name in row)
    unread = tuple(name for name in names_there if _quoted(name) not in roots and name not in ours)
    fields = tuple(proposer.fields.values())
    return FileProposal(
        name=table.name, side=side, rows=len(table.rows), fields=fields, unread=unread
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


# --- what names say ---


def _last_name(path: str) -> str:
    """The last name of a path as it stands in the lists above."""
    last = path.rpartition(".")[2].strip('"')
    return last.lower().replace(" ", "_").replace("-", "_")


@lru_cache(4096)
def _words(name: str) -> frozenset[str]:
    return frozenset(word.lower() for word in _NAME_WORD.findall(name))


def _last_word(path: str) -> str:
    words = [word.lower() for word in _NAME_WORD.findall(path.rpartition(".")[2].strip('"'))]
    return words[-1] if words else ""


def _by_name(paths: Iterable[str], names: Sequence[str]) -> list[str]:
    """The paths whose last name is one of some: shallow ones first, then by the order of names."""
    order = {name: place for place, name in enumerate(names)}
    named = [path for path in paths if _last_name(path) in order]
    return sorted(named, key=lambda path: (path.count("."), order[_last_name(path)]))


def _by_words(paths: Iterable[str], words: set[str]) -> list[str]:
    """The paths whose last name has one of some words."""
    return [path for path in paths if _words(path.rpartition(".")[2]) & words]


# --- what values say ---


def _best(shares: Mapping[str, int], what: str) -> tuple[str | None, str]:
    """The path that shares most, and how much; none if none shares anything."""
    best = max(shares, key=lambda path: shares[path], default=None)
    if best is None or not shares[best]:
        return None, ""
    return best, f"{shares[best]} of its values {'is' if shares[best] == 1 else 'are'} {what}"


def _id_share(values: Sequence[Any], known: _KnownValues) -> int:
    """How many ids of questions two files share; 0 where that may be chance."""
    texts = {text for value in values for text in _texts(value)}
    share = len(texts & known.qids)
    # One file may have far more questions than the other, but not both.
    fewest = len(texts) if known.side == "traces" else min(len(texts), len(known.qids))
    return share if 2 * share >= fewest else 0


def _is_unique(values: Sequence[Any]) -> bool:
    return len(set(map(str, values))) == len(values)


def _has_lists(values: Sequence[Any]) -> bool:
    return any(isinstance(value, list) for value in values)


def _is_text(values: Sequence[Any]) -> bool:
    return all(isinstance(value, str) for value in values)


def _is_text_or_list(values: Sequence[Any]) -> bool:
    return all(isinstance(value, str | list) for value in values)


def _may_be_ids(values: Sequence[Any]) -> bool:
    """Whether values may be ids of questions: short, single, and no sentences."""
    if _has_lists(values):
        return False
    texts = [str(value) for value in values if not isinstance(value, bool | float)]
    return bool(texts) and _are_ids(texts, None) and max(map(len, texts)) <= _LONGEST_ID


def _are_ids(texts: Sequence[str], known: _KnownValues | None) -> bool:
    if known is not None and known.evidence & set(texts):
        return True
    sample = texts[:200]
    if not sample:
        return False
    blanks = sum(text.count(" ") for text in sample) / len(sample)
    return blanks < 3 and sum(map(len, sample)) / len(sample) < _LONG_TEXT


def _has_sentences(values: Sequence[Any]) -> bool:
    """Whether most values are of several words; times and names of models are not."""
    return 2 * sum(len(str(value).split()) > 2 for value in values) > len(values)


def _strings(value: Any) -> Iterator[str]:
    """Every text in a list, at any depth."""
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, list):
        for entry in value:
            yield from _strings(entry)
    elif isinstance(value, str):
        yield value


def _texts(value: Any) -> list[str]:
    """The ids or texts that a value holds: itself, or its entries."""
    if value is MISSING or value is None or isinstance(value, bool):
        return []
    if isinstance(value, list):
        return [text for entry in value for text in _texts(entry)]
    if isinstance(value, dict):
        return [text for name in ("id", "chunk_id") for text in _texts(value.get(name))]
    return [str(value)] if isinstance(value, str | int) else []


def _is_messages(values: Sequence[Any]) -> bool:
    """Whether values are lists of messages, each with the role of who wrote it."""
    entries = [entry for value in values if isinstance(value, list) for entry in value]
    return bool(entries) and all(
        isinstance(entry, dict) and isinstance(entry.get("role"), str) and "content" in entry
        for entry in entries
    )


def _message_path(path: str, values: Sequence[Any], roles: Sequence[str]) -> str | None:
    """The path to the last message of a role: by its place from the end, or as JMESPath."""
    places = set()
    for value in values:
        found = [n - len(value) for n, one in enumerate(value) if one["role"].lower() in roles]
        places.add(found[-1] if found else None)
    if places == {None}:
        return None
    if len(places) == 1:
        return f"{path}[{places.pop()}].content"
    used = {one["role"] for value in values for one in value if one["role"].lower() in roles}
    if len(used) == 1 and find_spec("jmespath") is not None:
        return f"{path}[?role=='{used.pop()}'] | [-1].content"
    return None


def _parts(
    field: str,
    values: Sequence[Any],
    known: _KnownValues | None,
    open_text: Callable[[str], Any],
) -> list[ProposedField]:
    """Where the entries of a list have their ids, texts and scores."""
    entries = [entry for value in values if isinstance(value, list) for entry in value]
    if field in _EVIDENCE:  # a table has one sentence in a cell
        entries += [value for value in values if isinstance(value, str) and value.strip()]
    objects = [entry for entry in entries if isinstance(entry, dict)]
    if not objects:
        return _plain_entries(
            field, [one for one in entries if isinstance(one, str)], values, known
        )
    if field == "relevant_docs":
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
        single = [path for path in leaves if path not in taken and not _has_lists(leaves[path])]
        candidates = _by_name(single, names)
        candidates += [path for path in single if _last_word(path) in _HIT_WORDS[name]]
        reason = ""
        wanted = _wanted(name, known)
        if wanted:
            shares = {path: len(_compared(name, leaves[path]) & wanted) for path in single}
            best = max(shares, key=lambda path: shares[path], default=None)
            if best is not None and shares[best]:
                candidates = [best]
                reason = _best(shares, "evidence of the gold set")[1]
        if candidates:
            inner = candidates[0]
            taken.add(inner)
            needed = inner not in _OURS_IN_HITS[name]
            written = "quote" if name == "text" and field == "relevant" else name
            example = shown(leaves[inner][0])
            parts.append(ProposedField(f"{field}.{written}", inner, example, needed, reason))
    return parts


def _plain_entries(
    field: str, texts: Sequence[str], values: Sequence[Any], known: _KnownValues | None
) -> list[ProposedField]:
    """What the entries of a list are that are no objects: ids need no word, texts and files do."""
    if field == "hits" and not texts:  # the cells of a table, with names of files between bars
        texts = [text for value in values if isinstance(value, str) for text in _cell_ids(value)]
    if not texts or field == "relevant_docs":
        return []
    if field == "relevant":
        if _are_ids(texts, None):
            return []
        return [ProposedField("relevant.quote", ITSELF, shown(texts[0]), True, "quotes")]
    is_evidence = known is not None and bool(known.evidence & set(texts))
    if known is not None and not is_evidence and {_base_name(text) for text in texts} & known.docs:
        return [ProposedField(f"{field}.doc", ITSELF, shown(texts[0]), True, "names of documents")]
    if not _are_ids(texts, known) or (is_evidence and not _are_ids(texts, None)):
        return [ProposedField(f"{field}.text", ITSELF, shown(texts[0]), True, "they are texts")]
    return []


def _wanted(name: str, known: _KnownValues | None) -> set[str]:
    """What the gold set names that a field of a hit may hold."""
    if known is None or known.side != "gold":
        return set()
    # A gold set that names evidence by its words has no ids to compare with.
    if name == "id" and _are_ids(sorted(known.evidence), None):
        return known.evidence
    return known.docs if name == "doc" else set()


def _compared(name: str, values: Sequence[Any]) -> set[str]:
    texts = {text for value in values for text in _texts(value)}
    return {_base_name(text) for text in texts} if name == "doc" else texts
