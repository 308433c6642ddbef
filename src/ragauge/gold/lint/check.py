"""`gold lint`: the rules about one item and about the set as a whole, and the report on them."""

from __future__ import annotations

import difflib
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from msgspec import Struct, field, to_builtins
from msgspec.structs import replace

from ragauge.corpus.chunk_list import read_chunk_list
from ragauge.corpus.lookup import Lookup
from ragauge.corpus.resolve import Resolver, ResolveReport
from ragauge.errors import MAX_REPORTED, Problem
from ragauge.files.open import PathLike
from ragauge.formats.field_map import NO_FIELDS, FieldMaps
from ragauge.formats.gold import MIGRATED_TO
from ragauge.formats.loaded_rows import LoadedRows
from ragauge.gold.coverage import (
    COVERAGE,
    Reach,
    ReachFinder,
    SectionCoverage,
    SectionRef,
    coverage_json,
    coverage_of,
    evidence_of,
    same_place,
)
from ragauge.gold.findings import lacks_evidence, names_evidence, unread_fields
from ragauge.gold.fingerprints import Fingerprints, evidence_ids, text_changed
from ragauge.gold.gold_file import gold_file, lookup_of
from ragauge.gold.lint.near_duplicates import (
    NEAR_SHARE,
    group_near_duplicates,
    may_be_near,
    normalised,
    similarity,
)
from ragauge.gold.lint.rules import RULES, SEVERITIES, LintFinding, Severity, identity, lint_finding
from ragauge.gold.lock import Lock, changed_texts, lock_beside
from ragauge.gold.negatives import FARTHEST
from ragauge.ids import distance, lies_in, split_section
from ragauge.model.chunk import Chunk
from ragauge.model.field_spellings import GOLD_NAMES
from ragauge.model.gold import CHUNKS_ONLY, Anchor, GoldItem, names_chunks_only
from ragauge.model.options import Options
from ragauge.model.profile import Profile
from ragauge.spans import in_words
from ragauge.stats.sample_size import Size
from ragauge.text import MIN_NEEDLE, fold, phrase_needles, short_claims, some, substring_needles

SCHEMA = "ragauge.gold-lint/1"
PARAPHRASES = 3
"""Wordings of a question under `canary`: its convergence is measured over three slots."""
MAX_LISTED_ITEMS = 200
"""Items whose missing evidence is reported one by one: finding what may be meant takes time."""
SHOWN_CHANGE = 0.10
"""A set that cannot show a change of this much, in a rate near one half, is small: 193 can."""
_OTHER_DOCUMENT = 1 << 30
_PLACES = {name: place for place, name in enumerate(RULES)}

_Complaint = tuple[str, str, str]
"""What is wrong with an item: the rule, the message and the hint."""


class LintContext(Struct, frozen=True, kw_only=True):
    """What a gold set is judged by: the profile, the options, its corpus, and its lock."""

    profile: Profile
    options: Options = Options()
    dialect: str = "native"
    lookup: Lookup | None = None
    chunks: Mapping[str, Chunk] = {}
    lock: Lock | None = None


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
    coverage: SectionCoverage | None = None
    size: Size = field(default_factory=lambda: Size(0))

    def count(self, severity: Severity) -> int:
        """How many findings of a severity there are; a row that cannot be read is an error."""
        count = sum(finding.severity == severity for finding in self.findings)
        return count + (self.problem_count if severity == "error" else 0)


# Rules about one item


class NegativeCounts(Struct):
    """How many negatives were measured, and how many could not be."""

    negatives: int = 0
    unplaced: int = 0


def item_complaints(item: GoldItem, context: LintContext) -> Iterator[_Complaint]:
    """What is wrong with an item by itself."""
    yield from _question(item, texts=context.dialect != "trec")  # judgements have no questions
    if lacks_evidence(item):
        hint = "name the chunks or places that hold the answer, or set answerable to false"
        yield "no-evidence", "the item is answerable and names no evidence", hint
    if item.expect == "refuse" and names_evidence(item):
        hint = "remove the evidence (near misses belong in negatives), or set answerable to true"
        yield "refusal-with-evidence", "the item is unanswerable and names evidence", hint
    yield from _claims(item, context.profile)
    yield from _contradictions(item, context.options)
    yield from _relevant_negatives(item)
    if context.profile.name == "canary" and len(set(item.paraphrases)) < PARAPHRASES:
        yield (
            "few-paraphrases",
            f"the item has {len(set(item.paraphrases))} paraphrases, and {PARAPHRASES} are asked",
            "add wordings of the same question, not of the same words",
        )


def _question(item: GoldItem, *, texts: bool) -> Iterator[_Complaint]:
    wordings = enumerate(item.paraphrases)
    blank = [f"paraphrases[{number}]" for number, text in wordings if not text.strip()]
    if item.question is not None and not item.question.strip() and not blank:
        blank = ["the question"]
    for name in blank:
        yield ("empty-question", f"{name} has no text", "write it, or remove it")
    if item.question is None and texts:
        yield ("no-question", "the item has no question", "add the question")


def _claims(item: GoldItem, profile: Profile) -> Iterator[_Complaint]:
    claims = item.claims_any or ()
    needles = phrase_needles if item.claim_rule == "phrase" else substring_needles
    by_word = profile.join.short_claims == "words"
    short = [
        claim
        for claim in claims
        if not needles([claim]) and not (by_word and short_claims([claim]))
    ]
    if not short:
        return
    least = f"under {profile.name} a claim needs {MIN_NEEDLE} characters"
    if by_word:
        least = f"a claim needs a word, and a phrase a run of {MIN_NEEDLE} letters or digits,"
    if len(short) == len(claims) and item.expect != "refuse":
        yield (
            "unmatchable-claims",
            f"no claim can match: {_quoted(short)}",
            f"{least} to match; quote more of the answer",
        )
        return
    for claim in short:
        yield (
            "short-claim",
            f"the claim {_quoted([claim])} can never match",
            f"{least} to match; quote more of the answer, or remove it",
        )


def _contradictions(item: GoldItem, options: Options) -> Iterator[_Complaint]:
    ignore_case = options.ignore_case
    required = dict.fromkeys(item.must_contain)
    wanted = [(text, fold(text, ignore_case=ignore_case)) for text in required]
    for text in dict.fromkeys(item.forbidden):
        folded = fold(text, ignore_case=ignore_case)
        if not folded:
            message = "the empty string is forbidden, and every answer contains it"
            yield "contradiction", message, "remove it"
            continue
        # Only this way round: with `port` asked for, `port 80` may be forbidden.
        for other, folded_other in wanted:
            if folded in folded_other:
                both = f"forbidden, and stands in {_quoted([other])}, which is asked for"
                if folded == folded_other:
                    both = "both asked for and forbidden"
                hint = "no answer can pass: remove one of them"
                yield "contradiction", f"{_quoted([text])} is {both}", hint


def _relevant_negatives(item: GoldItem) -> Iterator[_Complaint]:
    if not (item.negatives or item.negative_places) and item.decoy_section is None:
        return
    named = {entry if isinstance(entry, str) else entry.id for entry in evidence_of(item)}
    for name in dict.fromkeys(map(_negative_name, negatives_of(item))):
        if name in named:
            message = f"`{name}` is both evidence and a negative"
            yield "relevant-negative", message, "remove it from one of the lists"
    if item.decoy_section is not None and item.anchor_section is not None:
        decoy, anchor = split_section(item.decoy_section), split_section(item.anchor_section)
        apart = None not in (decoy[0], anchor[0]) and decoy[0] != anchor[0]
        if not apart and lies_in(decoy[1], anchor[1]):
            yield (
                "relevant-negative",
                f"the decoy section `{item.decoy_section}` lies in the anchor section "
                f"`{item.anchor_section}`",
                "name another section as decoy",
            )


def negatives_of(item: GoldItem) -> tuple[str | Anchor, ...]:
    """The hard negatives of an item: ids, then places and quotes."""
    return tuple(dict.fromkeys((*item.negatives, *item.negative_places)))


def _negative_name(negative: str | Anchor) -> str:
    """How a negative is called: by its id, or by its place."""
    if isinstance(negative, str):
        return negative
    where = in_words(negative.spans) or f"“{negative.quote}”"
    return negative.id or " ".join(filter(None, [negative.doc, where]))


def near_paraphrases(wordings: Sequence[str]) -> Iterator[_Complaint]:
    """Wordings of an item, as they are compared, that are nearly the same."""
    seen: list[str] = []
    for text in wordings:
        alike = max((similarity(text, other) for other in seen), default=0.0) if text else 0.0
        if alike >= NEAR_SHARE:
            words = "the same words" if alike == 1 else f"nearly the same words ({alike:.2f})"
            yield (
                "near-duplicate-paraphrase",
                f"two wordings of the question have {words}: {_quoted([text])}",
                "word it anew, or remove it",
            )
        seen.append(text)


def wordings_of(item: GoldItem) -> list[str]:
    """The question and its paraphrases, as they are compared.

    A question that is the first paraphrase counts once.
    """
    question = [] if item.question is None else [item.question]
    if question and item.paraphrases and item.paraphrases[0] == item.question:
        question = []
    return [normalised(text) for text in (*question, *item.paraphrases)]


def far_negatives(
    item: GoldItem,
    sections: Sequence[SectionRef],
    section_ref: Callable[[str], SectionRef],
    judged: NegativeCounts,
) -> Iterator[_Complaint]:
    """The negatives that are far from all sections of the answer; `section_ref` locates an id."""
    for negative in negatives_of(item):
        name = _negative_name(negative)
        ref = section_ref(name)
        if isinstance(negative, Anchor):
            ref = (negative.doc or ref[0], negative.section or ref[1])
        steps = [_steps(ref, section) for section in sections]
        known_steps = [count for count in steps if count is not None]
        judged.negatives += 1
        if not known_steps:
            judged.unplaced += 1
        elif min(known_steps) > FARTHEST:
            away = f"{min(known_steps)} edges away"
            if min(known_steps) == _OTHER_DOCUMENT:
                away = "in another document"
            yield (
                "far-negative",
                f"the negative `{name}` is {away} from the answer",
                f"choose one no more than {FARTHEST} edges away: `ragauge gold negatives` "
                "lists some",
            )


def _steps(one: SectionRef, other: SectionRef) -> int | None:
    if one[0] is not None and other[0] is not None and one[0] != other[0]:
        return _OTHER_DOCUMENT
    if one[1] is None or other[1] is None:
        return None
    return distance(one[1], other[1])


def _quoted(texts: list[str]) -> str:
    shortened = [text if len(text) <= 40 else f"{text[:37]}..." for text in texts[:3]]
    more = f" and {len(texts) - 3} more" if len(texts) > 3 else ""
    return ", ".join(f"`{text}`" for text in shortened) + more


def unresolved(
    items: Sequence[GoldItem], resolver: Resolver, report: ResolveReport
) -> Iterator[LintFinding]:
    """What of the evidence is not in the corpus; beyond some items it is only counted.

    `found` gets the counts of what was looked up.
    """
    # A report that is full already only counts, which is fast; the texts are made afterwards, for
    # the first items by id. So the findings do not depend on the order of the file.
    brief = ResolveReport(problems=[Problem("unresolved", "", "")] * MAX_REPORTED)
    bad: list[tuple[GoldItem, int]] = []
    for item in items:
        count = sum(1 for _ in resolver.item(item, brief))
        if count:
            bad.append((item, count))
    report.ids, report.places, report.quotes = brief.ids, brief.places, brief.quotes
    report.problem_count = sum(count for _, count in bad)
    bad.sort(key=lambda entry: identity(entry[0]))
    for item, _ in bad[:MAX_LISTED_ITEMS]:
        for error in resolver.item(item, ResolveReport()):
            yield lint_finding(error.code, error.message, error.hint, item)
    more = sum(count for _, count in bad[MAX_LISTED_ITEMS:])
    if more:
        yield lint_finding(
            "unresolved",
            f"{more} more ids or places of {len(bad) - MAX_LISTED_ITEMS} other items are not in "
            "the corpus",
            "fix those above first: is it the corpus that the set was made for?",
            times=more,
        )


def other_texts(
    items: Sequence[GoldItem], fingerprints: Fingerprints, lock: Lock | None
) -> Iterator[LintFinding]:
    """Ids that stand for other text than when the set was frozen, or for which nothing shows it."""
    for changed in changed_texts(lock, items, fingerprints) if lock is not None else ():
        error = text_changed(changed.name, changed.text)
        yield lint_finding(error.code, error.message, error.hint, changed.item)
    unpinned: dict[str, None] = {}
    having: list[GoldItem] = []
    for item in items:
        frozen = lock.texts_of((item.qid, item.turn), item.extra.get(MIGRATED_TO)) if lock else {}
        names = [
            name
            for name in evidence_ids(item)
            if name not in frozen and fingerprints.of_id(name) is not None
        ]
        unpinned.update(dict.fromkeys(names))
        if names:
            having.append(item)
    if having:
        ids = "1 id" if len(unpinned) == 1 else f"{len(unpinned)} ids"
        count = f"{len(having)} item{'' if len(having) == 1 else 's'}"
        yield lint_finding(
            "not-pinned",
            f"the text of {ids} in the evidence of {count} is noted nowhere: "
            f"{some(sorted(unpinned))}",
            "`ragauge gold pin` gives evidence its quote, `gold freeze --corpus` a fingerprint",
            min(having, key=identity),
            times=len(having),
        )


def overlapping_negatives(
    item: GoldItem, reach: Reach, reach_finder: ReachFinder
) -> Iterator[_Complaint]:
    """Negatives that lie where the evidence lies, under another id."""
    for negative in negatives_of(item):
        if negative not in item.relevant and same_place(reach_finder.spots(negative), reach.places):
            yield (
                "relevant-negative",
                f"the negative `{_negative_name(negative)}` lies where the evidence lies",
                "choose another negative, or another place",
            )


# Rules about the set as a whole


def duplicate_ids(items: Sequence[GoldItem], *, turns: bool) -> Iterator[LintFinding]:
    """Ids that stand twice; with `turns` an id may stand once a turn."""
    by_key: dict[tuple[str, int | None], list[GoldItem]] = {}
    for item in items:
        by_key.setdefault((item.qid, item.turn if turns else None), []).append(item)
    for (qid, turn), same in by_key.items():
        if len(same) > 1:
            with_turn = "" if turn is None else f" with turn {turn}"
            lines = [str(item.line) for item in same if item.line is not None]
            where = f"they stand on lines {some(lines)}: " if lines else ""
            message = f"{len(same)} items have the id `{qid}`{with_turn}"
            hint = f"{where}give every item its own id"
            yield lint_finding("duplicate-qid", message, hint, same[0], times=len(same) - 1)


def near_duplicate_questions(
    items: Sequence[GoldItem], wordings: Sequence[Sequence[str]]
) -> Iterator[LintFinding]:
    """Items that ask nearly the same; a family of them is one finding.

    `wordings` are those of each item, as they are compared.
    """
    ids = sorted({item.qid for item in items if item.turn is None})
    number_of = {qid: number for number, qid in enumerate(ids)}
    texts: list[str] = []
    owners: list[int] = []
    first: dict[str, GoldItem] = {}
    for item, item_texts in zip(items, wordings, strict=True):
        if item.turn is None:
            first.setdefault(item.qid, item)
            texts += item_texts
            owners += [number_of[item.qid]] * len(item_texts)
    families = group_near_duplicates(texts, owners)
    members = {owner for family in families if len(family) == 2 for owner in family}
    words: dict[int, list[str]] = {}
    for text, owner in zip(texts, owners, strict=True):
        if owner in members and text:
            words.setdefault(owner, []).append(text)
    for family in families:
        names = [ids[owner] for owner in family]
        alike = "nearly the same"
        if len(family) == 2:
            one, other = family
            most = max(similarity(a, b) for a in words[one] for b in words[other])
            alike = "the same" if most == 1 else f"nearly the same ({most:.2f})"
        message = f"{len(names)} items ask {alike}: {some(names)}"
        hint = "keep one of them, or make the others ask for something else"
        item, times = first[names[0]], len(names) - 1
        yield lint_finding("near-duplicate-question", message, hint, item, times=times)


def unread_field_findings(items: Sequence[GoldItem]) -> Iterator[LintFinding]:
    """Fields that nothing reads, each with the field that may be meant."""
    for name, having in sorted(unread_fields(items).items()):
        # `answerabel` is 0.9 like `answerable`; a lower cutoff would suspect more honest remarks.
        near = difflib.get_close_matches(name.lower(), sorted(GOLD_NAMES), 1, cutoff=0.8)
        count = f"{len(having)} item{'' if len(having) == 1 else 's'}"
        item = min(having, key=identity)
        rule = "misspelt-field" if near else "unread-field"
        hint = "leave it if it is a remark; `ragauge explain unread-field` says more"
        if near:
            hint = f"did you mean `{near[0]}`?"
        message = f"nothing reads the field `{name}` of {count}"
        yield lint_finding(rule, message, hint, item, times=len(having))


def balance(
    types: Mapping[str, int], coverage: SectionCoverage | None, min_n: int
) -> Iterator[LintFinding]:
    """Types of content that too few questions, or none, are on."""
    for name, blocks in coverage.blocks.items() if coverage is not None else ():
        if name != "caption" and not types.get(name):  # nobody asks about a caption alone
            message = f"no question is on {name}; the corpus has {blocks} such blocks"
            hint = f"add {min_n} or more, so that the slice has a value"
            yield lint_finding("missing-type", message, hint)
    for name, count in sorted(types.items()):
        if count < min_n:
            noun = "question is" if count == 1 else "questions are"
            message = f"{count} {noun} on {name}, and a slice needs {min_n}"
            hint = f"add {min_n - count} more, or do not read the slice"
            yield lint_finding("few-of-type", message, hint)


def low_coverage(coverage: SectionCoverage | None) -> Iterator[LintFinding]:
    """Whether the questions reach too few sections."""
    share = None if coverage is None else coverage.share
    if coverage is not None and share is not None and share < COVERAGE:
        yield lint_finding(
            "low-coverage",
            f"the questions reach {coverage.sections_reached} of {coverage.sections} sections "
            f"({share:.2f}), and the target is {COVERAGE:.2f}",
            "`ragauge gold new` drafts items from a section",
        )


def only_chunks(items: Sequence[GoldItem]) -> Iterator[LintFinding]:
    """Whether all evidence is whole chunks."""
    if names_chunks_only(items):
        yield lint_finding(
            "chunks-only",
            CHUNKS_ONLY,
            "it makes of a chunk the sentence that is the evidence; with other chunks, a "
            "comparison by whole chunks is a band",
        )


def small_set(set_size: Size) -> Iterator[LintFinding]:
    """Whether the set is too small to show much."""
    if set_size.detectable is not None and set_size.detectable > SHOWN_CHANGE:
        yield lint_finding(
            "set-size",
            f"{set_size.n} question{'' if set_size.n == 1 else 's'}: a change of a rate below "
            f"{set_size.detectable:.2f} would not show",
            f"a change of {SHOWN_CHANGE:.2f} takes {set_size.needed(SHOWN_CHANGE)} questions, "
            f"one of 0.05 takes {set_size.needed(0.05)}",
        )


# All rules


def check(items: Sequence[GoldItem], context: LintContext, *, name: str) -> LintReport:
    """Judge a gold set by every rule."""
    reach_finder = ReachFinder(context.lookup, context.chunks)
    reaches = [reach_finder.reach(item) for item in items]
    pairs = zip(items, reaches, strict=True)
    answered = [reach for item, reach in pairs if item.expect != "refuse"]
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
            complaints = [*item_complaints(item, context)]
            if alike:
                complaints += near_paraphrases(texts)
            if item.negatives or item.negative_places:
                complaints += far_negatives(item, reach.sections, reach_finder.section_ref, judged)
                if context.lookup is not None:
                    complaints += overlapping_negatives(item, reach, reach_finder)
            for rule, message, hint in complaints:
                yield lint_finding(rule, message, hint, item)
        if context.lookup is not None and resolved is not None:
            chunks = context.chunks or None
            yield from unresolved(items, Resolver(context.lookup, chunks), resolved)
            fingerprints = Fingerprints(context.lookup, context.chunks)
            yield from other_texts(items, fingerprints, context.lock)
        yield from duplicate_ids(items, turns=turns)
        yield from near_duplicate_questions(items, wordings)
        yield from unread_field_findings(items)
        yield from balance(types, coverage, context.options.min_n)
        yield from low_coverage(coverage)
        yield from small_set(size)
        yield from only_chunks(items)

    return LintReport(
        name=name,
        dialect=context.dialect,
        profile=context.profile.name,
        items=len(items),
        findings=tuple(sorted(found(), key=_order)) if items else (),
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
        "coverage": coverage_json(report.coverage),
        "size": size_json(report.size),
    }


def size_json(size: Size) -> dict[str, Any]:
    """What the size of a set can show, as a document."""
    return {
        "n": size.n,
        "half_width": None if size.half_width is None else round(size.half_width, 4),
        "detectable": None if size.detectable is None else round(size.detectable, 4),
    }


def _duplicate_keys(loaded: LoadedRows) -> Iterator[LintFinding]:
    """Items that were read although an object has a key twice; elsewhere they are unreadable."""
    for problem in loaded.duplicate_keys:
        place = problem.place
        yield LintFinding(
            rule=problem.code,
            severity="warning",
            message=problem.message,
            hint=problem.hint,
            line=None if place is None else place.line,
            qid=None if place is None else place.qid,
        )
    more = loaded.duplicate_key_count - len(loaded.duplicate_keys)
    if more:
        message = f"{more} more items have a key twice in one object"
        hint = "keep one of the two; a decoder takes the last and drops the other"
        yield LintFinding(
            rule="duplicate-key", severity="warning", message=message, hint=hint, times=more
        )


def lint(
    gold: PathLike,
    *,
    corpus: PathLike | None = None,
    chunks: PathLike | None = None,
    lock: PathLike | None = None,
    profile: str | None = None,
    dialect: str = "auto",
    options: Options = Options(),  # noqa: B008  (frozen)
    fields: FieldMaps = NO_FIELDS,
) -> LintReport:
    """Judge a gold set by every rule; rows that cannot be read are told and left out.

    With a corpus, the text that ids stand for is compared with the lock: the one that is named, or
    the one beside the set.
    """
    lookup = lookup_of(corpus)
    with gold_file(gold, profile=profile, dialect=dialect, lookup=lookup, fields=fields) as file:
        context = LintContext(
            profile=file.choice.profile,
            options=options,
            dialect=file.choice.dialect.name,
            lookup=lookup,
            chunks=read_chunk_list(chunks),
            lock=None if lookup is None else lock_beside(gold, lock),
        )
        report = check(file.loaded.items, context, name=file.source.name)
        findings = (*report.findings, *_duplicate_keys(file.loaded))
        return replace(
            report,
            findings=tuple(sorted(findings, key=_order)),
            problems=tuple(file.loaded.problems),
            problem_count=file.loaded.problem_count,
            notes=tuple(file.notes),
        )
