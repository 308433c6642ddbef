"""The exact path from a decoded row to the model: every spelling, every check, every error."""

from __future__ import annotations

from typing import Any

import msgspec

from ragauge.errors import Place, Problem
from ragauge.fields import (
    FieldError,
    Row,
    as_bool,
    as_id,
    as_ids,
    as_int,
    as_list,
    as_number,
    as_object,
    as_text,
    as_texts,
    pick,
    shown,
    wrong_type,
)
from ragauge.model.dialect import GOLD_SPELLINGS, HIT_IDS, TRACE_SPELLINGS, Dialect
from ragauge.model.gold import ClaimRule, Expect, GoldItem
from ragauge.model.trace import Answer, Hit, Trace
from ragauge.source import MAX_LINE
from ragauge.text import citations_in

_GOLD_NAMES = frozenset(name for names in GOLD_SPELLINGS.values() for name in names)
_TRACE_NAMES = frozenset(name for names in TRACE_SPELLINGS.values() for name in names)
_TRACE_NAMES |= {"retrieval"}


def decode_row(data: bytes, *, last: bool, overlong: bool) -> Row:
    """Decode the bytes of one row, or raise a FieldError that says what is wrong with them."""
    if overlong:
        raise FieldError(
            "line-too-long",
            f"the line is longer than {MAX_LINE // 2**20} MiB",
            "a newline is missing, or the row holds a whole document: write one row per line",
        )
    try:
        text_problem = _text_problem(data)
        if text_problem is not None:
            raise text_problem
        row = msgspec.json.decode(data)
    except msgspec.DecodeError as error:
        if last and "truncated" in str(error):
            raise FieldError(
                "truncated-line",
                "the last line ends in the middle of an object",
                "the writer was stopped: write the row again, or remove the line",
            ) from error
        raise FieldError("bad-json", str(error), _json_hint(data)) from error
    except RecursionError as error:
        raise FieldError(
            "too-deep", "the row is nested too deeply", "write a flat object"
        ) from error
    if not isinstance(row, dict):
        raise FieldError(
            "not-a-row",
            f"a row must be an object, got {shown(row)}",
            "write one JSON object per line, or a JSON array of objects",
        )
    return row


def _text_problem(data: bytes) -> FieldError | None:
    if b"\0" in data:
        return FieldError(
            "nul-byte",
            f"NUL byte at byte {data.index(0)} of the row",
            "the file was damaged while it was written; write the row again",
        )
    try:
        data.decode()
    except UnicodeDecodeError as error:
        return FieldError(
            "bad-encoding",
            f"byte {error.start} of the row is not UTF-8: {error.reason}",
            "convert the file to UTF-8",
        )
    return None


def _json_hint(data: bytes) -> str:
    body = data.strip()
    if b"NaN" in body or b"Infinity" in body:
        return "NaN and Infinity are not JSON: write null"
    if body in (b"{", b"}", b"[", b"]") or body.endswith((b",", b"{", b"[")):
        return "write each object on one line, or the whole file as one JSON array"
    if body.endswith((b",}", b",]", b", }", b", ]")):
        return "remove the comma before the closing bracket"
    if body.startswith(b"{'"):
        return "JSON strings take double quotes"
    if not body.startswith(b"{"):
        return "every line must be one JSON object"
    return "check the line with a JSON tool"


class Reader:
    """Reads rows of one file under a dialect; `own` says whether its own names win."""

    def __init__(self, dialect: Dialect, *, own: bool) -> None:
        self.dialect = dialect
        self.own_gold = dialect.own_gold if own else {}
        self.own_trace = dialect.own_trace if own else {}
        self.strip_citations = own and dialect.strip_citations

    def gold(self, row: Row, line: int | None = None) -> GoldItem:
        """Make a gold item of a row."""
        own = self.own_gold

        def take(field: str) -> tuple[str, Any]:
            return pick(row, GOLD_SPELLINGS[field], own.get(field, ()))

        name, value = take("qid")
        if value is None:
            raise FieldError(
                "missing-field", "the item has no id", 'add a unique "qid" to every gold item'
            )
        qid = as_id(value, name)
        if not qid:
            raise wrong_type(name, "a non-empty id", value, "give every gold item its own id")
        paraphrases = as_texts(take("paraphrases")[1], "paraphrases")
        name, value = take("question")
        question = as_text(value, name) if value is not None else None
        if question is None and paraphrases:
            question = paraphrases[0]
        name, value = take("relevant")
        relevant = as_ids(value, name)
        claims, rule = _claims(*take("claims"))
        return GoldItem(
            qid=qid,
            question=question,
            paraphrases=paraphrases,
            expect=_expect(take("answerable")[1]),
            relevant=relevant,
            claims_any=claims,
            claim_rule=rule,
            constraints=as_texts(take("constraints")[1], "constraints"),
            type=_optional_text(row, "type"),
            tags=as_texts(row.get("tags"), "tags"),
            group=_optional_text(row, "group"),
            difficulty=_optional_text(row, "difficulty"),
            lang=_optional_text(row, "lang"),
            extra={key: value for key, value in row.items() if key not in _GOLD_NAMES},
            line=line,
        )

    def trace(self, row: Row, line: int | None = None) -> Trace:
        """Make a trace of a row."""
        own = self.own_trace

        def take(field: str) -> tuple[str, Any]:
            return pick(row, TRACE_SPELLINGS[field], own.get(field, ()))

        name, value = take("qid")
        qid = as_id(value, name) if value is not None else None
        name, value = take("question")
        question = as_text(value, name) if value is not None else None
        name, value = take("paraphrase")
        paraphrase = as_int(value, name) if value is not None else None
        name, value = take("turn")
        turn = as_int(value, name) if value is not None else None
        return Trace(
            qid=qid or None,
            question=question,
            paraphrase=paraphrase,
            seed=_seed(row.get("seed")),
            turn=turn,
            hits=self._hits(row),
            answer=self._answer(row),
            error=_error(row.get("error")),
            extra={key: value for key, value in row.items() if key not in _TRACE_NAMES},
            line=line,
        )

    def _hits(self, row: Row) -> tuple[Hit, ...]:
        name, value = pick(row, TRACE_SPELLINGS["hits"], self.own_trace.get("hits", ()))
        nested = row.get("retrieval")
        if value is None and nested is not None:
            if isinstance(nested, list):
                name, value = "retrieval", nested
            else:
                name, value = pick(
                    as_object(nested, "retrieval"), TRACE_SPELLINGS["hits"], inside="retrieval."
                )
        if value is None:
            return ()
        return tuple(_hit(each, f"{name}[{i}]") for i, each in enumerate(as_list(value, name)))

    def _answer(self, row: Row) -> Answer | None:
        own = self.own_trace
        name, value = pick(row, TRACE_SPELLINGS["answer"][:1], own.get("answer", ()))
        plain = row.get("answer")
        if value is None:
            name, value = ("answer", plain) if plain is not None else ("", None)
        elif isinstance(value, dict) and isinstance(plain, dict) and value != plain and not own:
            raise FieldError(
                "field-conflict",
                f"`{name}` and `answer` are the same field and disagree",
                "keep one of them, or choose the profile whose spelling is meant",
            )
        body: Row = {}
        text: str | None = None
        if isinstance(value, dict):
            body = value
            text = plain if isinstance(plain, str) and "answer" not in own else None
        elif value is not None:
            if name == "answer_json":
                raise wrong_type(
                    name, "an object", value, 'write {"claim": "...", "citations": ["..."]}'
                )
            text = as_text(value, name)
        if row.get("answer_text") is not None:
            more = as_text(row["answer_text"], "answer_text")
            if text is not None and text != more and not own:
                raise FieldError(
                    "field-conflict",
                    "`answer` and `answer_text` are the same field and disagree",
                    "keep one of them, or choose the profile whose spelling is meant",
                )
            text = more if text is None else text
        return self._assemble(row, body, name, text, inside_only=bool(body) and "answer" in own)

    def _assemble(
        self, row: Row, body: Row, name: str, text: str | None, *, inside_only: bool
    ) -> Answer | None:
        claim = as_text(body["claim"], f"{name}.claim") if body.get("claim") is not None else None
        if text is None and body.get("text") is not None:
            text = as_text(body["text"], f"{name}.text")
        outer: Row = {} if inside_only else row
        where, listed = self._citations(body, outer, name)
        citations: tuple[str, ...] | None = None
        odd = False
        if isinstance(listed, list):
            citations = tuple(_citation(each, f"{where}[{i}]") for i, each in enumerate(listed))
            if self.strip_citations:
                citations = tuple(each.strip() for each in citations)
        else:
            odd = bool(listed)
            found = citations_in(text) if text is not None else None
            citations = tuple(found) if found is not None else None
        refused = _flag(body, outer, "refused", name)
        grounded = _flag(body, outer, "grounded", name)
        _, echo = pick(body, ("constraints_echo",))
        if echo is None:
            echo = outer.get("constraints_echo")
        if not odd and all(
            each is None for each in (claim, text, citations, refused, grounded, echo)
        ):
            return None
        return Answer(
            claim=claim,
            text=text,
            citations=citations,
            odd_citations=odd and citations is None,
            refused=refused,
            grounded=grounded,
            constraints_echo=as_texts(echo, "constraints_echo") if echo is not None else None,
        )

    def _citations(self, body: Row, outer: Row, name: str) -> tuple[str, Any]:
        own = self.own_trace.get("citations", ())
        outside_name, outside = pick(outer, TRACE_SPELLINGS["citations"], own)
        inner = body.get("citations")
        if inner is None:
            return outside_name, outside
        if outside is not None and outside != inner:
            if own and isinstance(outside, list):
                return outside_name, outside
            raise FieldError(
                "field-conflict",
                f"`{name}.citations` and `{outside_name}` disagree",
                "keep one of them, or choose the profile whose spelling is meant",
            )
        return f"{name}.citations", inner

    def problem(self, error: FieldError, row: Row | None, place: Place) -> Problem:
        """Give a field error its place: file, line, item and dialect."""
        qid = None
        if row is not None:
            for name in TRACE_SPELLINGS["qid"]:
                value = row.get(name)
                if isinstance(value, str | int) and value != "":
                    qid = str(value)
                    break
        where = Place(place.file, place.line, qid, self.dialect.name)
        return Problem(error.code, error.message, error.hint, where)


def _expect(value: Any) -> Expect | None:
    if value is None:
        return None
    return "answer" if as_bool(value, "answerable") else "refuse"


def _claims(name: str, value: Any) -> tuple[tuple[str, ...] | None, ClaimRule]:
    if value is None:
        return None, "substring"
    if name == "gold_claim":
        claims = (value,) if isinstance(value, str) else as_texts(value, name)
        return tuple(claim for claim in claims if claim), "phrase"
    return as_texts(value, name), "substring"


def _optional_text(row: Row, name: str) -> str | None:
    value = row.get(name)
    return None if value is None else as_text(value, name)


def _seed(value: Any) -> int | str | None:
    if value is None or isinstance(value, str):
        return value
    return as_int(value, "seed")


def _error(value: Any) -> str | None:
    if value is None or value is False or value == "":
        return None
    return value if isinstance(value, str) else shown(value)


def _hit(value: Any, path: str) -> Hit:
    if isinstance(value, str):
        return Hit(value)
    if not isinstance(value, dict):
        return Hit(as_id(value, path))
    name, found = pick(value, HIT_IDS, inside=f"{path}.")
    if found is None:
        raise wrong_type(
            path, "an id or an object with an id", value, f"add one of {', '.join(HIT_IDS)}"
        )
    doc_name, doc = pick(value, ("doc", "doc_id", "doc_path"), inside=f"{path}.")
    section_name, section = pick(value, ("section", "section_id"), inside=f"{path}.")
    score = value.get("score")
    return Hit(
        id=as_id(found, name),
        doc=as_id(doc, doc_name) if doc is not None else None,
        section=as_id(section, section_name) if section is not None else None,
        score=as_number(score, f"{path}.score") if score is not None else None,
        type=_optional_text(value, "type"),
        text=_optional_text(value, "text"),
    )


def _citation(value: Any, path: str) -> str:
    if not isinstance(value, dict):
        return as_id(value, path)
    name, found = pick(value, HIT_IDS, inside=f"{path}.")
    if found is None:
        raise wrong_type(
            path, "an id or an object with an id", value, f"add one of {', '.join(HIT_IDS)}"
        )
    return as_id(found, name)


def _flag(body: Row, outer: Row, field: str, name: str) -> bool | None:
    value = body.get(field)
    if value is not None:
        return as_bool(value, f"{name}.{field}")
    value = outer.get(field)
    return None if value is None else as_bool(value, field)
