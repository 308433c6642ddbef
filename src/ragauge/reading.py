"""The exact path from a decoded row to the model: every spelling, every check, every error."""

from __future__ import annotations

from typing import Any

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
    as_text,
    as_texts,
    conflict,
    pick,
    shown,
    wrong_type,
)
from ragauge.model.dialect import (
    GOLD_NAMES,
    GOLD_SPELLINGS,
    HIT_IDS,
    TRACE_NAMES,
    TRACE_SPELLINGS,
    Dialect,
)
from ragauge.model.gold import ClaimRule, Expect, GoldItem
from ragauge.model.trace import Answer, Hit, Trace
from ragauge.text import citations_in


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
            return pick(row, GOLD_SPELLINGS[field], own.get(field, ()), meaning=_meaning)

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
            extra={key: value for key, value in row.items() if key not in GOLD_NAMES},
            line=line,
        )

    def trace(self, row: Row, line: int | None = None) -> Trace:
        """Make a trace of a row."""
        own = self.own_trace

        def take(field: str) -> tuple[str, Any]:
            return pick(row, TRACE_SPELLINGS[field], own.get(field, ()), meaning=_meaning)

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
            extra={key: value for key, value in row.items() if key not in TRACE_NAMES},
            line=line,
        )

    def _hits(self, row: Row) -> tuple[Hit, ...]:
        own = self.own_trace.get("hits", ())
        name, value = pick(row, TRACE_SPELLINGS["hits"], own, meaning=_meaning)
        nested = row.get("retrieval")
        if nested is not None and (value is None or not own):
            inner = nested if isinstance(nested, dict) else {"": as_list(nested, "retrieval")}
            names = TRACE_SPELLINGS["hits"] if isinstance(nested, dict) else ("",)
            where, found = pick(inner, names, inside="retrieval.", meaning=_meaning)
            if value is not None and found is not None and _meaning(found) != _meaning(value):
                raise conflict(name, where.rstrip("."), value, found)
            if value is None:
                name, value = where.rstrip("."), found
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
            if plain is not None and plain is not value and "answer" not in own:
                text = None if isinstance(plain, dict) else as_text(plain, "answer")
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
        inside_only = isinstance(value, dict) and "answer" in own
        return self._assemble(row, body, name, text, inside_only=inside_only)

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
        echo_name, echo = f"{name}.constraints_echo", body.get("constraints_echo")
        if echo is None:
            echo_name, echo = "constraints_echo", outer.get("constraints_echo")
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
            constraints_echo=as_texts(echo, echo_name) if echo is not None else None,
        )

    def _citations(self, body: Row, outer: Row, name: str) -> tuple[str, Any]:
        own = self.own_trace.get("citations", ())
        outside_name, outside = pick(outer, TRACE_SPELLINGS["citations"], own, meaning=_meaning)
        inner = body.get("citations")
        if inner is None:
            return outside_name, outside
        if outside is not None and _meaning(outside) != _meaning(inner):
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


def _meaning(value: Any) -> Any:
    """What a value says as an id or a list of ids: 7 is "7", and {"id": "a"} is "a"."""
    if isinstance(value, list):
        return [_meaning(each) for each in value]
    if isinstance(value, dict):
        found = [value[name] for name in HIT_IDS if value.get(name) is not None]
        return _meaning(found[0]) if found else value
    return str(value) if isinstance(value, int) and not isinstance(value, bool) else value


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


def _optional_text(row: Row, name: str, *, inside: str = "") -> str | None:
    value = row.get(name)
    return None if value is None else as_text(value, inside + name)


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
        type=_optional_text(value, "type", inside=f"{path}."),
        text=_optional_text(value, "text", inside=f"{path}."),
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
    inner, outside = body.get(field), outer.get(field)
    if inner is not None and outside is not None and inner != outside:
        raise conflict(f"{name}.{field}", field, inner, outside)
    if inner is not None:
        return as_bool(inner, f"{name}.{field}")
    return None if outside is None else as_bool(outside, field)
