"""Choosing dialect, profile and cut-offs: what is given wins, then what the files look like."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from ragauge import registry
from ragauge.errors import RagaugeError
from ragauge.loading import TREC, detect, refuse_swapped, sniff
from ragauge.model.dialect import Dialect
from ragauge.model.profile import Profile
from ragauge.source import Source


class Choice(Struct, frozen=True, kw_only=True):
    """The dialect and profile of a run, and whether the dialect's own names win."""

    dialect: Dialect
    profile: Profile
    own: bool
    note: str | None = None


def choose(
    dialect: str,
    profile: str | None,
    *,
    gold: Source | None = None,
    trace: Source | None = None,
    loaded: Sequence[str] = (),
) -> Choice:
    """Decide on dialect and profile; `loaded` are the dialects of sets read before."""
    gold_names = sniff(gold) if gold is not None else set()
    trace_names = sniff(trace) if trace is not None else set()
    if gold is not None and trace is not None:
        refuse_swapped(gold_names, trace_names, gold.name, trace.name)
    _refuse_other_trec(gold, trace)
    given = [source for source in (gold, trace) if source is not None]
    if dialect == "auto" and any(source.layout in TREC for source in given):
        dialect = "trec"
    if profile is not None:
        chosen = registry.profile(profile)
        if dialect != "auto":
            return Choice(dialect=registry.dialect(dialect), profile=chosen, own=True)
        own = chosen.dialect != "native"
        return Choice(dialect=registry.dialect(chosen.dialect), profile=chosen, own=own)
    if dialect != "auto":
        forced = registry.dialect(dialect)
        return Choice(dialect=forced, profile=registry.profile(forced.profile), own=True)
    if loaded and len(set(loaded)) == 1 and not gold_names and not trace_names:
        found, note = registry.dialect(loaded[0]), None
    else:
        found, note = detect(gold_names, trace_names)
    return Choice(dialect=found, profile=registry.profile(found.profile), own=True, note=note)


def _refuse_other_trec(gold: Source | None, trace: Source | None) -> None:
    """Raise if a run stands where judgements belong, or the other way round."""
    for source, layout, belongs in (
        (gold, "run", "a TREC run, and the gold set comes first"),
        (trace, "qrels", "TREC judgements, and the run comes second"),
    ):
        if source is not None and source.layout == layout:
            raise RagaugeError.of(
                "usage", f"`{source.name}` looks like {belongs}",
                hint="give the judgements (qrels), then the run",
            )  # fmt: skip


def cutoffs(k: Sequence[int] | int | None, profile: Profile) -> tuple[int, ...]:
    """The cut-offs of a run: those given, or the profile's own."""
    ks = profile.k if k is None else (k,) if isinstance(k, int) else tuple(k)
    if not ks or any(not isinstance(each, int) or each < 1 for each in ks):
        raise RagaugeError.of(
            "usage", f"k must be whole numbers from 1, got {list(ks)}", hint="for example --k 5"
        )
    if len(profile.k) == 1 and len(ks) != 1:
        raise RagaugeError.of(
            "usage", f"the profile {profile.name} takes one k, got {len(ks)}",
            hint="give one, or use --profile all",
        )  # fmt: skip
    return tuple(dict.fromkeys(ks))
