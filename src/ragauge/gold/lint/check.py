"""All rules over a gold set, and the report of what they found."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from msgspec import Struct, field, to_builtins

from ragauge.corpus.chunk_list import read_chunk_list
from ragauge.corpus.lookup import Lookup
from ragauge.corpus.resolve import Resolver, ResolveReport
from ragauge.errors import Problem
from ragauge.files.open import PathLike
from ragauge.gold.coverage import COVERAGE, Coverage, ReachFinder, coverage_of
from ragauge.gold.gold_file import gold_file, lookup_of
from ragauge.gold.lint import set_rules
from ragauge.gold.lint.item_rules import (
    NegativeCounts,
    far_negatives,
    item_findings,
    near_paraphrases,
    overlapping_negatives,
    unresolved,
    wordings_of,
)
from ragauge.gold.lint.near_duplicates import may_be_near
from ragauge.gold.lint.rules import RULES, SEVERITIES, LintFinding, Severity
from ragauge.model.chunk import Chunk
from ragauge.model.gold import GoldItem
from ragauge.model.options import Options
from ragauge.model.profile import Profile
from ragauge.stats.sample_size import Size

SCHEMA = "ragauge.gold-lint/1"
_PLACES = {name: place for place, name in enumerate(RULES)}


class LintContext(Struct, frozen=True, kw_only=True):
    """What a gold set is judged by: the profile, the options, and what is known of its corpus."""

    profile: Profile
    options: Options = Options()
    dialect: str = "native"
    lookup: Lookup | None = None
    chunks: Mapping[str, Chunk] = {}


class LintReport(Struct, frozen=True, kw_only=True):
    """What was found in a gold set, in the order of its lines.

    `problems` are rows that could not be read: the first of them, and `problem_count` in all. What
    was not judged is counted: `turns` of conversations whose words were not compared, and
    `unplaced` of the `negatives`, of which it is not known where they lie.
    """

    name: str
    dialect: str
    profile: str
    items: int
    findings: tuple[LintFinding, ...]
    problems: tuple[Problem, ...] = ()
    problem_count: int = 0
    notes: tuple[str, ...] = ()
    turns: int = 0
    negatives: int = 0
    unplaced: int = 0
    types: dict[str, int] = {}
    resolved: ResolveReport | None = None
    coverage: Coverage | None = None
    size: Size = field(default_factory=lambda: Size(0))

    def count(self, severity: Severity) -> int:
        """How many findings of a severity there are; a row that cannot be read is an error."""
        count = sum(finding.severity == severity for finding in self.findings)
        return count + (self.problem_count if severity == "error" else 0)


def check(
    items: Sequence[GoldItem],
    context: LintContext,
    *,
    name: str,
    problems: Sequence[Problem] = (),
    problem_count: int = 0,
    notes: Sequence[str] = (),
) -> LintReport:
    """Judge a gold set by every rule."""
    reach_finder = ReachFinder(context.lookup, context.chunks)
    reaches = [reach_finder.reach(item) for item in items]
    answered = [
        reach for item, reach in zip(items, reaches, strict=True) if item.expect != "refuse"
    ]
    wordings = [wordings_of(item) for item in items]
    judged = NegativeCounts()
    resolved = None if context.lookup is None else ResolveReport()
    coverage = None if context.lookup is None else coverage_of(context.lookup, answered)
    types = Counter(kind for reach in answered for kind in dict.fromkeys(reach.types))
    turns = context.profile.join.keep == "slot"
    size = Size(len({(item.qid, item.turn if turns else None) for item in items}))

    def found() -> Iterator[LintFinding]:
        near = may_be_near(wordings)
        for item, reach, texts, alike in zip(items, reaches, wordings, near, strict=True):
            yield from item_findings(
                item,
                context.options,
                texts=context.dialect != "trec",
                paraphrases=context.profile.name == "canary",
            )
            if alike:
                yield from near_paraphrases(item, texts)
            if item.negatives:
                yield from far_negatives(item, reach.sections, reach_finder.section_ref, judged)
                if context.lookup is not None:
                    yield from overlapping_negatives(item, reach, reach_finder)
        if context.lookup is not None and resolved is not None:
            chunks = context.chunks or None
            yield from unresolved(items, Resolver(context.lookup, chunks), resolved)
        yield from set_rules.duplicates(items, turns=turns)
        yield from set_rules.near_duplicates(items, wordings)
        yield from set_rules.unread(items)
        yield from set_rules.balance(types, coverage, context.options.min_n)
        yield from set_rules.low_coverage(coverage)
        yield from set_rules.size(size)

    return LintReport(
        name=name,
        dialect=context.dialect,
        profile=context.profile.name,
        items=len(items),
        findings=tuple(sorted(found(), key=_order)) if items else (),
        problems=tuple(problems),
        problem_count=problem_count,
        notes=tuple(notes),
        turns=sum(item.turn is not None for item in items),
        negatives=judged.negatives,
        unplaced=judged.unplaced,
        types=dict(sorted(types.items())),
        resolved=resolved,
        coverage=coverage,
        size=size,
    )


def _order(finding: LintFinding) -> tuple[float, int, str, str]:
    """By line; what is said of the whole set comes last."""
    line = float("inf") if finding.line is None else finding.line
    return line, _PLACES.get(finding.rule, -1), finding.qid or "", finding.message


def to_json(report: LintReport) -> dict[str, Any]:
    """The report as a document."""
    coverage = report.coverage
    return {
        "schema": SCHEMA,
        "gold": report.name,
        "dialect": report.dialect,
        "profile": report.profile,
        "items": report.items,
        "unreadable": report.problem_count,
        "counts": {severity: report.count(severity) for severity in SEVERITIES},
        "rules": dict(sorted(Counter(finding.rule for finding in report.findings).items())),
        "problems": [
            {
                "code": problem.code,
                "message": problem.message,
                "hint": problem.hint,
                "line": None if problem.place is None else problem.place.line,
            }
            for problem in report.problems
        ],
        "findings": [to_builtins(finding) for finding in report.findings],
        "not_judged": {"turns": report.turns, "negatives": report.unplaced},
        "types": report.types,
        "looked_up": None
        if report.resolved is None
        else {
            "ids": report.resolved.ids,
            "places": report.resolved.places,
            "quotes": report.resolved.quotes,
            "not_found": report.resolved.problem_count,
        },
        "coverage": None
        if coverage is None
        else {
            "sections": coverage.sections,
            "sections_reached": coverage.sections_reached,
            "share": None if coverage.share is None else round(coverage.share, 4),
            "target": COVERAGE,
            "documents": coverage.docs,
            "documents_reached": coverage.docs_reached,
        },
        "size": size_json(report.size),
    }


def size_json(size: Size) -> dict[str, Any]:
    """What the size of a set can show, as a document."""
    return {
        "n": size.n,
        "half_width": None if size.half_width is None else round(size.half_width, 4),
        "detectable": None if size.detectable is None else round(size.detectable, 4),
    }


def lint(
    gold: PathLike,
    *,
    corpus: PathLike | None = None,
    chunks: PathLike | None = None,
    profile: str | None = None,
    dialect: str = "auto",
    options: Options = Options(),  # noqa: B008  (frozen)
) -> LintReport:
    """Judge a gold set by every rule; rows that cannot be read are told and left out."""
    lookup = lookup_of(corpus)
    with gold_file(gold, profile=profile, dialect=dialect, lookup=lookup) as file:
        context = LintContext(
            profile=file.choice.profile,
            options=options,
            dialect=file.choice.dialect.name,
            lookup=lookup,
            chunks=read_chunk_list(chunks),
        )
        return check(
            file.loaded.items,
            context,
            name=file.source.name,
            problems=file.loaded.problems,
            problem_count=file.loaded.problem_count,
            notes=file.notes,
        )
