"""The exact path from a decoded row to the model: every spelling, every check, every error."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from msgspec.structs import replace

from ragauge.errors import Place, Problem
from ragauge.files.fields import (
    FieldError,
    Row,
    as_bool,
    as_id,
    as_int,
    as_list,
    as_text,
    as_texts,
    conflict,
    meaning,
    pick,
    pick_as,
    shown,
    wrong_type,
)
from ragauge.formats import hits as hit_objects
from ragauge.formats.gold import Own, gold_item
from ragauge.formats.imports.answer_citations import cited_in_text
from ragauge.model.dialect import Dialect
from ragauge.model.field_spellings import (
    ANSWER_SPELLINGS,
    INDEX_NAMES,
    TRACE_NAMES,
    TRACE_SPELLINGS,
)
from ragauge.model.gold import GoldItem
from ragauge.model.trace import Answer, Citation, Hit, Trace
from ragauge.spans import shared
from ragauge.text import citations_in


class RowReader:
    """Reads rows of one file under a dialect; `own` says whether its own names win.

    `sole`: of some fields no other names are read, as the dialect says; `closed_names` tells which
    of those a row has.
    `locate` gives evidence its bytes before it is read, where a corpus is at hand.
    """

    def __init__(
        self,
        dialect: Dialect,
        *,
        own: bool,
        sole: bool = False,
        locate: Callable[[Row, Own], Row] | None = None,
    ) -> None:
        self.dialect = dialect
        self.locate = locate
        self.own_gold = dialect.own_gold if own else {}
        self.own_trace = dialect.own_trace if own else {}
        self.strip_citations = own and dialect.strip_citations
        self.cites_in_text = dialect.cites_in_text
        self.closed_gold = dialect.closed_gold if sole else frozenset[str]()
        self.closed_trace = dialect.closed_trace if sole else frozenset[str]()

    def gold(self, row: Row, line: int | None = None) -> GoldItem:
        """Make a gold item of a row."""
        by_docs = self.dialect.expects_by_docs
        closed = self.closed_gold.intersection(row)
        if closed:
            item = self.gold({name: row[name] for name in row if name not in closed}, line)
            return replace(
                item, extra={**item.extra, **{name: row[name] for name in sorted(closed)}}
            )
        if self.locate is not None:
            row = self.locate(row, self.own_gold)
        return gold_item(row, self.own_gold, line, expects_by_docs=by_docs)

    def trace(self, row: Row, line: int | None = None) -> Trace:
        """Make a trace of a row."""
        own = self.own_trace
        closed = self.closed_trace.intersection(row)
        if closed:
            if not closed.isdisjoint(TRACE_SPELLINGS["hits"]):  # its ΔS go with those hits
                closed |= {name for name in TRACE_SPELLINGS["delta_s"] if name in row}
            trace = self.trace({name: row[name] for name in row if name not in closed}, line)
            extra = {**trace.extra, **{name: row[name] for name in sorted(closed)}}
            return replace(trace, extra=extra)

        def take(field: str, convert: Callable[[Any, str], Any]) -> Any:
            name, value = pick(row, TRACE_SPELLINGS[field], own.get(field, ()), meaning=meaning)
            return None if value is None else convert(value, name)

        qid, question = take("qid", as_id), take("question", as_text)
        paraphrase, turn = take("paraphrase", as_int), take("turn", as_int)
        hits, disordered = self._hits(row)
        answer = self._answer(row)
        if self.cites_in_text and answer is not None and answer.citations is None:
            in_text = cited_in_text(answer.text, [hit.id for hit in hits])
            if in_text is not None and not answer.odd_citations:
                answer = replace(answer, citations=in_text, cites_in_text=True)
        hits, answer = _with_distances(row, hits, _identified(answer, hits))
        return Trace(
            qid=qid or None,
            question=question,
            paraphrase=paraphrase,
            seed=take("seed", _as_seed),
            turn=turn,
            hits=hits,
            answer=answer,
            error=take("error", _as_error),
            lambda_state=_state(row),
            timing=hit_objects.timing(row),
            usage=hit_objects.usage(row),
            index=_index(row),
            unknown_ids=take("unknown_ids", _as_ids),
            oversampled=bool(take("oversampled", as_bool)),
            disordered=disordered,
            extra={key: value for key, value in row.items() if key not in TRACE_NAMES},
            line=line,
        )

    def _hits(self, row: Row) -> tuple[tuple[Hit, ...], bool]:
        """The hits in the order of the list, and whether their ranks or scores disagree with it."""
        own = self.own_trace.get("hits", ())
        name, value = pick(row, TRACE_SPELLINGS["hits"], own, meaning=meaning)
        nested = row.get("retrieval")
        if nested is not None and (value is None or not own):
            inner = nested if isinstance(nested, dict) else {"": as_list(nested, "retrieval")}
            names = TRACE_SPELLINGS["hits"] if isinstance(nested, dict) else ("",)
            inner_name, inner_hits = pick(inner, names, inside="retrieval.", meaning=meaning)
            inner_name = inner_name.rstrip(".")
            both = value is not None and inner_hits is not None
            if both and meaning(inner_hits) != meaning(value):
                raise conflict(name, inner_name, value, inner_hits)
            if value is None:
                name, value = inner_name, inner_hits
        if value is None:
            return (), False
        listed = as_list(value, name)
        hits = tuple(hit_objects.hit(entry, f"{name}[{i}]") for i, entry in enumerate(listed))
        return hits, hit_objects.out_of_order(listed)

    def _answer(self, row: Row) -> Answer | None:
        """The answer: an object, a text, or an object with its text beside it."""
        own = self.own_trace
        # The first spelling is always an object; the others may be the text alone.
        object_name, *other_names = TRACE_SPELLINGS["answer"]
        own_names = own.get("answer", ())
        name, value = pick(row, (object_name,), own_names)
        own_others = [other for other in own_names if other != object_name]
        plain_name, plain = pick(row, other_names, own_others)
        if value is None:
            name, value = plain_name, plain
        elif isinstance(value, dict) and isinstance(plain, dict) and value != plain and not own:
            message = f"`{name}` and `{plain_name}` are the same field and disagree"
            hint = "keep one of them, or choose the profile whose spelling is meant"
            raise FieldError("field-conflict", message, hint)
        body: Row = {}
        text: str | None = None
        if isinstance(value, dict):
            body = value
            if plain is not None and plain is not value and "answer" not in own:
                text = None if isinstance(plain, dict) else as_text(plain, plain_name)
        elif value is not None:
            if name == object_name:
                raise wrong_type(
                    name, "an object", value, 'write {"claim": "...", "citations": ["..."]}'
                )
            text = as_text(value, name)
        text_name, beside = pick(row, TRACE_SPELLINGS["text"])
        if beside is not None:
            more = as_text(beside, text_name)
            if text is not None and text != more and not own:
                raise FieldError(
                    "field-conflict",
                    f"`{plain_name or 'answer'}` and `{text_name}` are the same field and disagree",
                    "keep one of them, or choose the profile whose spelling is meant",
                )
            text = more if text is None else text
        inside_only = isinstance(value, dict) and "answer" in own
        return self._assemble(row, body, name, text, inside_only=inside_only)

    def _assemble(
        self, row: Row, body: Row, name: str, text: str | None, *, inside_only: bool
    ) -> Answer | None:
        claim = pick_as(as_text, body, ANSWER_SPELLINGS["claim"], inside=f"{name}.")
        if not inside_only:
            beside = pick_as(as_text, row, TRACE_SPELLINGS["claim"])
            if claim is not None and beside is not None and claim != beside:
                raise conflict(f"{name}.claim", "claim", claim, beside)
            claim = beside if claim is None else claim
        for inner_name in ANSWER_SPELLINGS["text"]:
            if text is None and body.get(inner_name) is not None:
                text = as_text(body[inner_name], f"{name}.{inner_name}")
        outer: Row = {} if inside_only else row
        path, listed = self._citations(body, outer, name)
        citations: tuple[str, ...] | None = None
        cited: tuple[Citation, ...] = ()
        odd = False
        if isinstance(listed, list):
            entries = tuple(
                hit_objects.citation(entry, f"{path}[{i}]") for i, entry in enumerate(listed)
            )
            citations = tuple(entry.id for entry in entries)
            if any(entry != Citation(entry.id) for entry in entries):
                cited = entries
            if self.strip_citations:
                citations = tuple(chunk_id.strip() for chunk_id in citations)
        else:
            odd = bool(listed)
            written = citations_in(text) if text is not None else None
            citations = None if written is None else tuple(written)
        # No source has these, so that one outside the answer is no other spelling of its fields.
        flags = {
            key: row[key]
            for key in ("refused", "grounded")
            if isinstance(row.get(key), bool) and body.get(key) is None
        }
        refused = _flag(body, outer or flags, "refused", name)
        grounded = _flag(body, outer or flags, "grounded", name)
        echo_name, echo = pick(body, ANSWER_SPELLINGS["constraints_echo"], inside=f"{name}.")
        if echo is None:
            echo_name, echo = pick(outer, TRACE_SPELLINGS["constraints_echo"])
        parts = (claim, text, citations, refused, grounded, echo)
        if not odd and all(part is None for part in parts):
            return None
        return Answer(
            claim=claim,
            text=text,
            citations=citations,
            cited=cited,
            odd_citations=odd and citations is None,
            refused=refused,
            grounded=grounded,
            constraints_echo=as_texts(echo, echo_name) if echo is not None else None,
        )

    def _citations(self, body: Row, outer: Row, name: str) -> tuple[str, Any]:
        own = self.own_trace.get("citations", ())
        outside_name, outside = pick(outer, TRACE_SPELLINGS["citations"], own, meaning=meaning)
        inner_name, inner = pick(body, ANSWER_SPELLINGS["citations"], inside=f"{name}.")
        if inner is None:
            return outside_name, outside
        if outside is not None and meaning(outside) != meaning(inner):
            if own and isinstance(outside, list):
                return outside_name, outside
            message = f"`{inner_name}` and `{outside_name}` disagree"
            hint = "keep one of them, or choose the profile whose spelling is meant"
            raise FieldError("field-conflict", message, hint)
        return inner_name, inner

    def closed_names(self, row: Row) -> list[str]:
        """The names in a trace that say something and are not read."""
        return [name for name in sorted(self.closed_trace) if row.get(name) is not None]

    def problem(self, error: FieldError, row: Row | None, place: Place) -> Problem:
        """Give a field error its place: file, line, item and dialect."""
        ids = [(row or {}).get(name) for name in TRACE_SPELLINGS["qid"]]
        qid = next((str(own) for own in ids if isinstance(own, str | int) and own != ""), None)
        where = Place(place.file, place.line, qid, self.dialect.name)
        return Problem(error.code, error.message, error.hint, where)


def _as_seed(value: Any, path: str) -> int | str:
    return value if isinstance(value, str) else as_int(value, path)


def _as_ids(value: Any, path: str) -> tuple[str, ...]:
    return tuple(as_id(entry, f"{path}[{i}]") for i, entry in enumerate(as_list(value, path)))


def _as_error(value: Any, _: str) -> str | None:
    if value is False or value == "":
        return None
    return value if isinstance(value, str) else shown(value)


def _identified(answer: Answer | None, hits: tuple[Hit, ...]) -> Answer | None:
    """Give citations that are only a place the id of the hit that lies there, if one does."""
    if answer is None or not any(citation.placed for citation in answer.cited):
        return answer
    cited = []
    for citation in answer.cited:
        # The hit that shares most with it; of several the one that ranks first.
        share, minus_rank = max(
            ((_shared(citation, hit), -rank) for rank, hit in enumerate(hits)), default=(0.0, 0)
        )
        if citation.placed and share >= 0.5:
            cited.append(replace(citation, id=hits[-minus_rank].id, placed=False))
        else:
            cited.append(citation)
    return replace(answer, cited=tuple(cited), citations=tuple(citation.id for citation in cited))


def _shared(citation: Citation, hit: Hit) -> float:
    """How much a citation and a hit of its document share, as a share of the shorter."""
    if citation.doc not in (hit.doc, hit.path):
        return 0.0
    if not citation.spans or not hit.spans:
        return float(citation.id == hit.spot)
    common, shorter = shared(citation.spans, hit.spans)
    return common / shorter if shorter else 0.0


def _with_distances(
    row: Row, hits: tuple[Hit, ...], answer: Answer | None
) -> tuple[tuple[Hit, ...], Answer | None]:
    """Give hits and answer the ΔS that the row records beside them.

    A list goes with the hits, entry by entry; one number is the answer's, or where there is no
    answer the first hit's.
    """
    listed, overall = hit_objects.distances(row)
    if listed is not None:
        if len(listed) != len(hits):
            expected = f"a list of one number for each of the {len(hits)} hits"
            raise wrong_type("ΔS", expected, listed, "write null for a hit without ΔS")
        hits = tuple(
            replace(hit, delta_s=distance) if distance is not None else hit
            for hit, distance in zip(hits, listed, strict=True)
        )
    for name in TRACE_SPELLINGS["answer"]:
        body = row.get(name)
        if isinstance(body, dict) and answer is not None:
            inner = hit_objects.distances(body, f"{name}.")[1]
            overall = overall if inner is None else inner
    if overall is not None and answer is not None:
        answer = replace(answer, delta_s=overall)
    elif overall is not None and hits and hits[0].delta_s is None:
        hits = (replace(hits[0], delta_s=overall), *hits[1:])
    return hits, answer


def _state(row: Row) -> str | None:
    """The recorded λ; the final state that stands in the answer comes first."""
    for name in TRACE_SPELLINGS["answer"]:
        body = row.get(name)
        if isinstance(body, dict) and (state := hit_objects.state(body)) is not None:
            return state
    return hit_objects.state(row)


def _index(row: Row) -> dict[str, str]:
    return {
        name: value if isinstance(value, str) else shown(value)
        for name in INDEX_NAMES
        if (value := row.get(name)) is not None
    }


def _flag(body: Row, outer: Row, field: str, name: str) -> bool | None:
    inner_name, inner = pick(body, ANSWER_SPELLINGS[field], inside=f"{name}.")
    outside_name, outside = pick(outer, TRACE_SPELLINGS[field])
    if inner is not None and outside is not None and inner != outside:
        raise conflict(inner_name, outside_name, inner, outside)
    if inner is not None:
        return as_bool(inner, inner_name)
    return None if outside is None else as_bool(outside, outside_name)
