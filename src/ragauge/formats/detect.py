"""Choosing dialect, profile and cut-offs: what is given wins, then what the files look like."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence, Set
from itertools import chain, pairwise

from msgspec import Struct
from msgspec.structs import replace

from ragauge import registry
from ragauge.errors import Place, RagaugeError
from ragauge.files.json_faults import STRING
from ragauge.files.ranges import Source
from ragauge.model.dialect import Dialect
from ragauge.model.field_spellings import IMPORTED
from ragauge.model.metric_names import MAX_K
from ragauge.model.profile import Profile
from ragauge.text import some


class FormatChoice(Struct, frozen=True, kw_only=True):
    """The dialect and profile of a run, and whether the dialect's own names win.

    `sole`: its profile was asked for by name, so that no other name is read of some fields.
    """

    dialect: Dialect
    profile: Profile
    own: bool
    sole: bool = False
    note: str | None = None


def choose(
    dialect: str,
    profile: str | None,
    *,
    gold: Source | None = None,
    trace: Source | None = None,
    loaded: Sequence[str] = (),
) -> FormatChoice:
    """Decide on dialect and profile; `loaded` are the dialects of sets read before."""
    for source in (gold, trace):
        if source is not None:
            refuse_other_content(source)
    gold_names = sniff(gold) if gold is not None else set()
    trace_names = sniff(trace) if trace is not None else set()
    if gold is not None and trace is not None:
        refuse_swapped(gold_names, trace_names, gold.name, trace.name)
    _refuse_other_trec(gold, trace)
    sources = [source for source in (gold, trace) if source is not None]
    if dialect == "auto" and any(source.layout in TREC for source in sources):
        dialect = "trec"
    if dialect == "auto" and IMPORTED in gold_names | trace_names:
        # Any spelling, also under a profile: no dialect has the names of another tool's rows.
        read_as = recognise_gold(gold_names) or registry.dialect("native")
        chosen = registry.profile(profile or "all")
        return FormatChoice(dialect=read_as, profile=chosen, own=False)
    if profile is not None:
        chosen = registry.profile(profile)
        name = chosen.dialect if dialect == "auto" else dialect
        own = dialect != "auto" or name != "native"
        sole = name == chosen.dialect
        read_as = registry.dialect(name)
        if chosen.follows_source:  # which reads no citations but those of a list
            read_as = replace(read_as, cites_in_text=False)
        return FormatChoice(dialect=read_as, profile=chosen, own=own, sole=sole)
    if dialect != "auto":
        forced = registry.dialect(dialect)
        return FormatChoice(dialect=forced, profile=registry.profile(forced.profile), own=True)
    if loaded and len(set(loaded)) == 1 and not gold_names and not trace_names:
        detected, note = registry.dialect(loaded[0]), None
    else:
        detected, note = detect(gold_names, trace_names)
    implied = registry.profile(detected.profile)
    return FormatChoice(dialect=detected, profile=implied, own=True, note=note)


def _refuse_other_trec(gold: Source | None, trace: Source | None) -> None:
    """Raise if a run stands where judgements belong, or the other way round."""
    for source, layout, belongs in (
        (gold, "run", "a TREC run, and the gold set comes first"),
        (trace, "qrels", "TREC judgements, and the run comes second"),
    ):
        if source is not None and source.layout == layout:
            hint = "give the judgements (qrels), then the run"
            raise RagaugeError.of("usage", f"`{source.name}` looks like {belongs}", hint=hint)


def cutoffs(k: Sequence[int] | int | None, profile: Profile) -> tuple[int, ...]:
    """The cut-offs of a run: those given, or the profile's own."""
    ks = profile.k if k is None else (k,) if isinstance(k, int) else tuple(k)
    if not ks or any(not isinstance(cutoff, int) or not 1 <= cutoff <= MAX_K for cutoff in ks):
        message = f"k must be whole numbers from 1 to {MAX_K:,}, got {list(ks)}"
        raise RagaugeError.of("usage", message, hint="for example --k 5")
    if len(profile.k) == 1 and len(ks) != 1:
        message = f"the profile {profile.name} takes one k, got {len(ks)}"
        raise RagaugeError.of("usage", message, hint="give one, or use --profile all")
    return tuple(dict.fromkeys(ks))


SNIFFED = 64 * 1024
"""So many bytes at the head of a file tell its dialect."""

TREC = ("qrels", "run")
"""Layouts that are no JSON."""

_TOKEN = re.compile(STRING + rb"|[{}\[\]:]", re.DOTALL)


def sniff(source: Source) -> set[str]:
    """The field names of the rows at the head of a file; nothing is checked."""
    with open(source.path, "rb") as file:
        file.seek(source.start)
        head = file.read(SNIFFED)
    names: set[str] = set()
    if source.layout in TREC:
        return names
    depth, rows_at = 0, 1 if source.layout == "array" else 0
    tokens = [match.group() for match in _TOKEN.finditer(head)]
    for token, following in pairwise(tokens):
        if token in (b"{", b"["):
            depth += 1
        elif token in (b"}", b"]"):
            depth -= 1
        elif following == b":" and depth == rows_at + 1 and token != b":":
            names.add(token[1:-1].decode("utf-8", "replace"))
    return names


_LOOKED_AT = 4096
_COLUMN_NAME = re.compile(r"\s*\"?[^\W\d][\w .#/:()\[\]-]{0,80}\"?\s*")


def refuse_other_content(source: Source) -> None:
    """Raise if a file is a table with a header, or binary: once, and not for each of its lines."""
    if source.layout != "lines":
        return
    with open(source.path, "rb") as file:
        file.seek(source.start)
        head = file.read(_LOOKED_AT)
    body = head.lstrip()
    if body[:1] in (b"{", b"["):
        return
    place = Place(source.name, 1)
    if _is_binary(head):
        message = f"`{source.name}` is binary, and of no kind that is read"
        hint = "export it as JSON Lines, a JSON array or Parquet"
        raise RagaugeError.of("not-rows", message, hint=hint, place=place)
    columns = _header(body)
    if columns:
        message = f"`{source.name}` is CSV and not JSON: its columns are {some(columns)}"
        hint = "a table is read from a file called .csv or .tsv; or write one JSON object a line"
        raise RagaugeError.of("not-rows", message, hint=hint, place=place)


def _is_binary(head: bytes) -> bool:
    """Whether bytes hold what no text holds, beside being no UTF-8 or having NUL bytes."""
    controls = sum(byte < 32 and byte not in b"\t\n\r\f\x1b" for byte in head)
    try:
        head.decode()
    except UnicodeDecodeError as error:
        if error.end < len(head):  # else it was cut in the middle of a character
            return controls > 0
    return controls > len(head) // 100 and controls > 1


def _header(body: bytes) -> list[str]:
    """The names of the columns, if the first line is a header and the next has as many cells."""
    lines = body.decode("utf-8", "replace").splitlines()
    for separator in (",", ";", "\t"):
        columns = lines[0].split(separator)
        is_header = len(columns) > 1 and all(map(_COLUMN_NAME.fullmatch, columns))
        # A cell may hold the separator too, so the next line may have more of them.
        if is_header and (len(lines) < 2 or separator in lines[1]):
            return [column.strip().strip('"') for column in columns]
    return []


def detect(gold_names: set[str], trace_names: set[str]) -> tuple[Dialect, str | None]:
    """The dialect that the field names speak of, and a note where they leave doubt."""
    dialects = registry.dialects().values()
    gold = recognise_gold(gold_names)
    by_marks = [(dialect, dialect.trace_marks, frozenset[str]()) for dialect in dialects]
    trace = _best(trace_names, by_marks)
    # A family by the marks of one file alone must own some name of the other one too.
    if gold is not None and trace is None and not _owns(gold.own_trace, trace_names):
        gold = None
    if trace is not None and gold is None and not _owns(trace.own_gold, gold_names):
        trace = None
    if gold is None and trace is None:
        note = "no dialect was recognised by its field names: read by any spelling, under `all`"
        return registry.dialect("native"), note if gold_names or trace_names else None
    if gold is None or trace is None or gold.name == trace.name:
        return gold or trace or registry.dialect("native"), None
    note = (
        f"the gold set looks like dialect {gold.name} and the traces like {trace.name}: "
        "both are read by any spelling, under the profile `all`"
    )
    return registry.dialect("native"), note


_GOLD_WORDS = frozenset(("answerable", "relevant", "relevant_docs"))
_TRACE_WORDS = frozenset(("hits", "retrieved", "topk"))
"""Names that no dialect has to itself, but that stand on one side only."""


def refuse_swapped(gold_names: set[str], trace_names: set[str], gold: str, trace: str) -> None:
    """Raise if the gold file has the marks of traces, and the trace file those of gold."""
    dialects = registry.dialects().values()
    gold_marks = _GOLD_WORDS.union(*(dialect.gold_marks for dialect in dialects))
    trace_marks = _TRACE_WORDS.union(*(dialect.trace_marks for dialect in dialects))
    swapped = gold_names & trace_marks and trace_names & gold_marks
    if swapped and not gold_names & gold_marks and not trace_names & trace_marks:
        message = f"`{gold}` looks like a trace file, and `{trace}` like a gold set"
        raise RagaugeError.of("usage", message, hint="the gold set comes first")


def _owns(own: Mapping[str, tuple[str, ...]], names: set[str]) -> bool:
    return not names or any(name in names for owned in own.values() for name in owned)


def recognise_gold(names: Set[str]) -> Dialect | None:
    """The dialect that gold of some field names is in; None where they leave doubt.

    Names that a dialect owns count as well as its marks, so that a question of `kb` or `smoke`
    that gets paraphrases or a section is still one.
    """
    return _best(
        names,
        [
            (dialect, dialect.gold_marks, frozenset(chain(*dialect.own_gold.values())))
            for dialect in registry.dialects().values()
        ],
    )


def _best(
    names: Set[str], families: Sequence[tuple[Dialect, frozenset[str], frozenset[str]]]
) -> Dialect | None:
    """The dialect with the most marks and own names; without a mark, or level, it is none."""
    counted = [
        (len(names & marks) + len(names & own) if names & marks else 0, dialect.name, dialect)
        for dialect, marks, own in families
    ]
    most, _, best = max(counted)
    is_alone = sum(count == most for count, _, _ in counted) == 1
    return best if most > 0 and is_alone else None
