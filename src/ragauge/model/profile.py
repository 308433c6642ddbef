"""Profiles: a named choice of metrics, short names, join rules and gates."""

from __future__ import annotations

import re
from typing import Any, Literal

from msgspec import Struct

from ragauge.model.metric_names import current_id

_CUT_OFF = re.compile(r"@[0-9]+")


class JoinRules(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How traces meet gold items, and what counts as an answer.

    by          the field that joins: the id, the question's text, or the id with the text behind it
    keep        the traces that are scored: the last of a question, the last of a slot, or every one
    refusal     `token`: only the exact token; `natural`: flags first, then the token, configured
                patterns, and the built-in ones; `grounded`: only `grounded: false`, as the source
                of `kb` has it
    absent      a record without an answer is excluded by name, or counts as an empty answer
    unlabelled  items without `answerable`: in no class; as unanswerable; as the source of `ship`
                has them (counted as unanswerable, never wrong to answer); or as answerable where
                there is evidence or an anchor section
    no_evidence what recall_all makes of an answerable item without evidence
    short_claims
                claims of fewer than 5 characters are sought as whole words, or never match, as the
                sources of `ship` and `smoke` have it
    nothing_to_check
                what groundedness makes of an item without strings, and citation coverage of an
                answer without citations: it is excluded by name, or satisfied, as in the source of
                `kb`
    no_claims   whether claim containment is also asked of items that name no claims
    unit        what a mean is over: questions, or every scored row
    grid        whether a question that lacks a slot (paraphrase × seed) that others have is only
                warned of, or makes the run not evaluable
    errored_hits
                what `retrieval.empty` makes of a trace with an error, where errors are looked at:
                it is excluded by name, or counts as one without hits, as the source of `kb` has
                it. A missing trace is excluded either way; `--missing exclude` excludes both
    """

    by: Literal["qid", "question", "either"] = "either"
    keep: Literal["last", "slot", "every"] = "slot"
    refusal: Literal["token", "natural", "grounded"] = "natural"
    absent: Literal["excluded", "empty-answer"] = "excluded"
    unlabelled: Literal["unlabelled", "unanswerable", "creditable", "by-evidence"] = "unlabelled"
    no_evidence: Literal["excluded", "recalled"] = "excluded"
    short_claims: Literal["words", "never"] = "words"
    nothing_to_check: Literal["excluded", "satisfied"] = "excluded"
    no_claims: Literal["excluded", "counted"] = "excluded"
    duplicate_gold: Literal["error", "last"] = "error"
    unit: Literal["question", "row"] = "question"
    grid: Literal["warned", "complete"] = "warned"
    errored_hits: Literal["excluded", "empty"] = "excluded"


class Profile(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A profile as its TOML file states it.

    `instead` names, for a metric that a gate is on, the metric that is judged in its place where
    no answer of the run cites anything. `deprecated` lists the short names that mean something
    else than people expect: gates by them keep working, with a note that says the full id.
    """

    name: str
    title: str
    source: str
    dialect: str = "native"
    metrics: tuple[str, ...] = ("*",)
    k: tuple[int, ...] = (1, 3, 5, 10)
    correct: str = "answer.precision"
    join: JoinRules = JoinRules()
    aliases: dict[str, str] = {}
    deprecated: tuple[str, ...] = ()
    empty: dict[str, float] = {}
    instead: dict[str, str] = {}
    gates: dict[str, str | dict[str, Any]] = {}
    titles: dict[str, str] = {}
    reports: dict[str, str] = {}

    def meant(self, name: str) -> str:
        """The metric that a name means, with its cut-off if there is one; any other name as it is.

        A short name with `@k` stands for every cut-off: where `recall@k_doc` is one, `recall@5_doc`
        means its metric at 5. Where the profile measures a metric at one cut-off only, a short
        name without a cut-off means that one. An old id means the one that replaced it.
        """
        aliases = self.aliases
        if name in aliases:
            meant = aliases[name]
            measured = [metric for metric in self.metrics if metric.partition("@")[0] == meant]
            return measured[0] if len(measured) == 1 and "@k" not in name else meant
        short, at, rest = name.partition("@")
        behind = rest.lstrip("0123456789")
        if at and f"{short}@k{behind}" in aliases:
            return f"{aliases[f'{short}@k{behind}']}@{rest.removesuffix(behind)}"
        if at and "_" not in behind and f"{short}@k" in aliases:
            return f"{aliases[f'{short}@k']}@{rest}"  # that it is no cut-off is said elsewhere
        return current_id(name)

    def is_deprecated(self, name: str) -> bool:
        """Whether a name is a short one that surprises, at whatever cut-off."""
        return name in self.deprecated or _CUT_OFF.sub("@k", name, 1) in self.deprecated

    @property
    def follows_source(self) -> bool:
        """Whether the profile reproduces a source's numbers, down to its 0/0 and its absences."""
        return self.join.absent == "empty-answer"
